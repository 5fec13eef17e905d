"""Servers behind the guard: uvicorn in a process of its own, and the one of the standard library in a thread."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"

# Listens first, so that nobody has to wait until it does.
UVICORN = """
import os, socket, sys, uvicorn
listening = socket.create_server(("127.0.0.1", 0))
os.environ["ORIGIN"] = f"http://127.0.0.1:{listening.getsockname()[1]}"
sys.path.insert(0, sys.argv[2])
config = uvicorn.Config(sys.argv[1], log_level="critical")
config.load()
print(os.environ["ORIGIN"], flush=True)
uvicorn.Server(config).run(sockets=[listening])
"""
WSGIREF = """
import importlib, os, sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler, WSGIServer

class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

class Handler(WSGIRequestHandler):
    log_message = lambda *_: None

ServerHandler.log_exception = lambda *_: None
server = Server(("127.0.0.1", 0), Handler)
os.environ["ORIGIN"] = f"http://127.0.0.1:{server.server_port}"
sys.path.insert(0, sys.argv[2])
module, _, name = sys.argv[1].partition(":")
server.set_app(getattr(importlib.import_module(module), name))
print(os.environ["ORIGIN"], flush=True)
server.serve_forever()
"""


@dataclass(frozen=True)
class Got:
    """One response."""

    status: int
    headers: dict[str, str]  # lower-case names
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

    def begin(self, target: str, method: str = "GET", body: str | None = None, **fields: str) -> http.client.HTTPConnection:
        """Sends a request. Names of fields are written with `_`."""
        connection = http.client.HTTPConnection(urlsplit(self.origin).netloc, timeout=20, source_address=(self.address, 0))
        added = {name.replace("_", "-"): value for name, value in fields.items()}
        connection.request(method, target, body, self.fields | added)
        return connection

    def ask(self, target: str, method: str = "GET", body: str | None = None, **fields: str) -> Got:
        connection = self.begin(target, method, body, **fields)
        try:
            response = connection.getresponse()
            return Got(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
        finally:
            connection.close()

    def raw(self, octets: bytes) -> bytes:
        """What comes back for octets as they are, until the server closes."""
        with socket.create_connection(urlsplit(self.origin).netloc.split(":"), timeout=20) as connection:  # type: ignore[arg-type]
            connection.sendall(octets)
            return b"".join(iter(lambda: connection.recv(65536), b""))


def person(origin: str) -> Client:
    """Who asks with a browser."""
    return Client(origin, fields={"User-Agent": BROWSER})


@contextmanager
def serving(server: str, app: str, folder: Path) -> Iterator[str]:
    """The origin of an app, "module:name", under UVICORN or WSGIREF in a process of its own."""
    command = [sys.executable, "-W", "error", "-c", server, app, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait(20)


class Servers:
    """What test modules reach through a fixture: they are loaded by file and cannot import this one."""

    Client = Client
    UVICORN, WSGIREF = UVICORN, WSGIREF
    person = staticmethod(person)
    serving = staticmethod(serving)


@pytest.fixture(scope="session")
def servers() -> Servers:
    return Servers()
