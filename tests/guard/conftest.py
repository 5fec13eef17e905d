"""Servers of others, each in a process of its own, for applications behind the guard."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"

# Each listens first, so that nobody has to wait until it does, and says where. Arguments:
# "module:name", the folder of the module, and what the server asks for.
_LISTEN = """
import importlib, os, socket, sys
target, folder, *options = sys.argv[1:]
listening = socket.create_server(("127.0.0.1", 0), backlog=100)
os.environ["ORIGIN"] = f"http://127.0.0.1:{listening.getsockname()[1]}"
sys.path.insert(0, folder)

def load():
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)

def ready():
    print(os.environ["ORIGIN"], flush=True)
"""
_UVICORN = """
import uvicorn
config = uvicorn.Config(target, log_level="critical", http=options[0], ws=options[1])
config.load()
ready()
uvicorn.Server(config).run(sockets=[listening])
"""
_UVICORN_WORKERS = """
os.environ["PYTHONPATH"] = folder
listening.set_inheritable(True)
ready()
import uvicorn
if __name__ == "__main__":
    options = {"workers": int(options[0]), "log_level": "critical", "app_dir": folder}
    uvicorn.run(target, fd=listening.fileno(), **options)
"""
_HYPERCORN = """
import asyncio
from hypercorn.asyncio import serve
from hypercorn.config import Config
config = Config()
config.bind = [f"fd://{listening.fileno()}"]
config.errorlog = None
app = load()
ready()
asyncio.run(serve(app, config))
"""
_GUNICORN = """
from gunicorn.app.base import BaseApplication

class Server(BaseApplication):
    def load_config(self):
        worker, threads, workers, preload = options
        settings = {
            "worker_class": worker,
            "threads": int(threads),
            "workers": int(workers),
            "preload_app": preload == "preload",
            "bind": f"fd://{listening.fileno()}",
            "graceful_timeout": 1,
            "control_socket_disable": True,
            "loglevel": "critical",
        }
        for name in settings.keys() & self.cfg.settings:
            self.cfg.set(name, settings[name])

    def load(self):
        return load()

ready()
Server().run()
"""
_WAITRESS = """
import waitress.server
app = load()
ready()
# An attack that takes `Connection: close` away waits for the server to close.
waitress.server.create_server(
    app, sockets=[listening], channel_timeout=3, cleanup_interval=1
).run()
"""
_WERKZEUG = """
import logging
from werkzeug.serving import make_server
logging.getLogger("werkzeug").disabled = True
app = load()
ready()
make_server("127.0.0.1", 0, app, threaded=True, fd=listening.fileno()).serve_forever()
"""
_WSGIREF = """
from socketserver import ThreadingMixIn
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler, WSGIServer

class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

class Handler(WSGIRequestHandler):
    log_message = lambda *_: None

ServerHandler.log_exception = lambda *_: None
server = Server(listening.getsockname(), Handler, bind_and_activate=False)
server.socket.close()
server.socket = listening
server.server_name, server.server_port = listening.getsockname()
server.setup_environ()
server.set_app(load())
ready()
server.serve_forever()
"""


class Server(NamedTuple):
    """A server of another project, as a program that runs an application, and its arguments."""

    kind: str
    """"asgi" or "wsgi"."""
    program: str
    options: tuple[str, ...] = ()


SERVERS = {
    "uvicorn-h11": Server("asgi", _UVICORN, ("h11", "wsproto")),
    "uvicorn-httptools": Server("asgi", _UVICORN, ("httptools", "websockets-sansio")),
    "uvicorn-2-workers": Server("asgi", _UVICORN_WORKERS, ("2",)),
    "hypercorn": Server("asgi", _HYPERCORN),
    "gunicorn-sync": Server("wsgi", _GUNICORN, ("sync", "1", "1", "")),
    "gunicorn-threads": Server("wsgi", _GUNICORN, ("gthread", "8", "1", "")),
    "gunicorn-uvicorn": Server("asgi", _GUNICORN, ("uvicorn_worker.UvicornWorker", "1", "1", "")),
    "gunicorn-2-workers": Server("wsgi", _GUNICORN, ("gthread", "8", "2", "")),
    "gunicorn-preload": Server("wsgi", _GUNICORN, ("gthread", "8", "2", "preload")),
    "werkzeug": Server("wsgi", _WERKZEUG),
    "waitress": Server("wsgi", _WAITRESS),
    "wsgiref": Server("wsgi", _WSGIREF),
}


@dataclass(frozen=True)
class Got:
    """One response."""

    status: int
    headers: dict[str, str]
    """Lower-case names."""
    body: bytes

    @property
    def problem(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/problem+json"
        found: dict[str, Any] = json.loads(self.body)
        assert found["status"] == self.status
        return found


@dataclass(frozen=True)
class Client:
    """A client with an address of its own."""

    origin: str
    address: str = "127.0.0.1"
    fields: dict[str, str] = field(default_factory=lambda: {"User-Agent": "testbot/1.0"})

    def begin(
        self, target: str, method: str = "GET", body: str | None = None, **fields: str
    ) -> http.client.HTTPConnection:
        """Sends a request. Names of fields are written with `_`."""
        connection = http.client.HTTPConnection(
            urlsplit(self.origin).netloc, timeout=300, source_address=(self.address, 0)
        )
        added = {name.replace("_", "-"): value for name, value in fields.items()}
        connection.request(method, target, body, self.fields | added)
        return connection

    def ask(self, target: str, method: str = "GET", body: str | None = None, **fields: str) -> Got:
        connection = self.begin(target, method, body, **fields)
        try:
            response = connection.getresponse()
            return Got(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                response.read(),
            )
        finally:
            connection.close()

    def raw(self, octets: bytes) -> bytes:
        """Return the octets that come back for these octets, until the server closes."""
        with self._connected() as connection:
            connection.sendall(octets)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def opens(self, octets: bytes) -> int:
        """Return the status of the answer, without waiting for the rest."""
        with self._connected() as connection:
            connection.sendall(octets)
            with connection.makefile("rb") as answer:
                return int(answer.readline().split()[1])

    def _connected(self) -> socket.socket:
        parts = urlsplit(self.origin)
        return socket.create_connection((parts.hostname, parts.port), 300, (self.address, 0))


def person(origin: str) -> Client:
    """A client with the User-Agent of a browser."""
    return Client(origin, fields={"User-Agent": BROWSER})


@contextmanager
def serving(server: str, app: str, folder: Path, **environment: str) -> Iterator[str]:
    """The origin of an application, "module:name", under one of SERVERS in a process of its own."""
    _, program, options = SERVERS[server]
    command = [
        sys.executable,
        "-W",
        "error",
        "-W",
        "ignore::ResourceWarning",
        "-c",
        _LISTEN + program,
        app,
        str(folder),
        *options,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | environment
    ) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait(300)


class Servers:
    """The functions that test modules get through a fixture: they are loaded by file and cannot
    import this one."""

    Client = Client
    SERVERS = SERVERS
    person = staticmethod(person)
    serving = staticmethod(serving)


@pytest.fixture(scope="session")
def servers() -> Servers:
    return Servers()
