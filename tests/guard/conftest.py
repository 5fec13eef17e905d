"""Servers behind the guard: uvicorn in a process of its own, and the one of the standard library in a thread."""

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
from typing import Any
from urllib.parse import urlsplit

import pytest

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"

# Listens first, so that nobody has to wait until it does.
SERVE = """
import os, socket, sys, uvicorn
listening = socket.create_server(("127.0.0.1", 0))
origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
os.environ["ORIGIN"] = origin
config = uvicorn.Config(sys.argv[1], app_dir=sys.argv[2], log_level="warning")
config.load()
print(origin, flush=True)
uvicorn.Server(config).run(sockets=[listening])
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
def under_uvicorn(app: str, folder: Path) -> Iterator[str]:
    command = [sys.executable, "-c", SERVE, app, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONWARNINGS": "error"}) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait(20)


class Running:
    """What the tests reach through a fixture: they are loaded by file and cannot import this one."""

    Client = Client
    Got = Got
    person = staticmethod(person)
    under_uvicorn = staticmethod(under_uvicorn)


@pytest.fixture(scope="session")
def servers() -> type[Running]:
    return Running
