"""Servers that follow a script, and the outcome of requests to them."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

import pytest

from comity.gate.fetching.client import PolicyClient
from comity.gate.fetching.connection import TransferError
from comity.gate.fetching.network import BarredError
from comity.gate.fetching.options import TLS, ClientOptions
from comity.gate.fetching.proxies import Proxies
from comity.gate.fetching.reach import Reach

Script = Callable[["Peer"], None]

PATHS = ("/robots.txt", "/a.txt", "/b.txt", "/c.txt")


class Peer:
    """The server's end of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.received = b""
        self.requests: list[bytes] = []  # with their fields, without the empty line at the end

    @property
    def paths(self) -> list[str]:
        return [request.split(b" ")[1].decode() for request in self.requests]

    def read(self, number: int = 1) -> None:
        """Read this number of further requests."""
        while number:
            head, end, rest = self.received.partition(b"\r\n\r\n")
            if end:
                self.requests.append(head)
                self.received = rest
                number -= 1
            elif data := self.sock.recv(65536):
                self.received += data
            else:
                raise ConnectionError

    def send(self, octets: bytes) -> None:
        self.sock.sendall(octets)

    def wait_for_the_end(self) -> None:
        """Wait until the client hangs up."""
        with suppress(OSError):
            while self.sock.recv(65536):
                pass

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Server:
    """Each connection follows the script of its number. The last script serves all later ones."""

    def __init__(self, *scripts: Script, context: ssl.SSLContext | None = None) -> None:
        self.peers: list[Peer] = []
        self._scripts = scripts
        self._context = context
        self._is_closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.origin = f"{'https' if context else 'http'}://127.0.0.1:{port}"
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                if self._is_closed:
                    sock.close()
                    return
                script = self._scripts[min(len(self.peers), len(self._scripts) - 1)]
                self.peers.append(peer := Peer(sock))
                threading.Thread(target=self._follow, args=(peer, script), daemon=True).start()

    def _follow(self, peer: Peer, script: Script) -> None:
        with suppress(OSError):
            if self._context is not None:
                peer.sock = self._context.wrap_socket(peer.sock, server_side=True)
            script(peer)
        peer.sock.close()

    def close(self) -> None:
        # Otherwise the thread would still wait, and could accept a connection of the next server
        # with the same descriptor.
        self._is_closed = True
        socket.create_connection(self._listener.getsockname()).close()
        self._accepting.join()
        self._listener.close()


@pytest.fixture
def serving() -> Iterator[Callable[..., Server]]:
    """Return `serving(*scripts, context=None)`, which starts a server until the end of the test.

    `context`: the TLS context; None for no TLS.
    """
    servers: list[Server] = []

    def start(*scripts: Script, context: ssl.SSLContext | None = None) -> Server:
        servers.append(Server(*scripts, context=context))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def answer(body: bytes = b"", status: int = 200, *fields: str) -> bytes:
    head = "".join(f"{field}\r\n" for field in (f"Content-Length: {len(body)}", *fields))
    return f"HTTP/1.1 {status} Status\r\n{head}\r\n".encode() + body


def says(*octets: bytes, pieces: int = 0) -> Script:
    """Return a script that reads a request, sends this, and waits until the client hangs up.

    `pieces`: the octets of each piece that is sent.
    """

    def script(peer: Peer) -> None:
        peer.read()
        for chunk in octets:
            for start in range(0, len(chunk), pieces or len(chunk)):
                peer.send(chunk[start : start + (pieces or len(chunk))])
        peer.wait_for_the_end()

    return script


class Got(NamedTuple):
    """The outcomes of the requests for PATHS."""

    bodies: list[bytes | None]  # None for no clean answer
    errors: list[str]
    counts: dict[str, int]


def options(*, proxies: Proxies | None = None, verified: bool = True) -> ClientOptions:
    return ClientOptions(
        user_agent="testbot/1.0",
        proxies=proxies or Proxies(),
        tls=TLS(is_verified=verified),
        bind_address=None,
    )


async def no_pause() -> None:
    await asyncio.sleep(0)


def get_all(
    origin: str,
    *,
    paths: tuple[str, ...] = PATHS,
    client: PolicyClient | None = None,
    seconds: float = 60,
    between: Callable[[], Awaitable[None]] = no_pause,
    referrer_reach: Reach | None = None,
) -> Got:
    """Request PATHS from the server.

    `seconds`: the time limit of each request. `between`: called and awaited after each request.
    BarredError: the server may not be asked.
    """

    async def run() -> Got:
        bodies: list[bytes | None] = []
        errors: list[str] = []
        counts: dict[str, int] = {}

        def count(what: str, number: int, origin: str) -> None:
            counts[what] = number

        async with (client or PolicyClient(options())).server(
            origin, referrer_reach, count
        ) as server:
            for path in paths:
                server.announce(origin + path, {})
            for path in paths:
                try:
                    async with asyncio.timeout(seconds):
                        hop = await server.get(origin + path, {})
                except BarredError:
                    raise
                except (TransferError, TimeoutError) as error:
                    bodies.append(None)
                    errors.append(str(error) or type(error).__name__)
                else:
                    bodies.append(hop.body)
                await between()
        return Got(bodies, errors, counts)

    return asyncio.run(run())


def get(origin: str, *, client: PolicyClient | None = None, seconds: float = 60) -> Got:
    return get_all(origin, paths=PATHS[:1], client=client, seconds=seconds)
