"""The faults of a server that the conformance tests make.

The tests of a store subclass `Harness` and name it with `--harness PACKAGE.MODULE:CLASS`:

    class OwnServer(Harness):
        def kill(self) -> None:
            self.server.kill()

        def start(self) -> None:
            self.server.start()

A method that is not replaced says that its fault is not made. The test that needs it ends there,
and the summary lists it."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from comity.cluster.conformance.proxy import Proxy
from comity.cluster.state import SharedState, open_state


class FaultNotMade(pytest.skip.Exception):  # type: ignore[misc, name-defined]
    """A fault that this harness cannot make. The summary of the run lists it with its test."""


class Harness:
    """A store, and the faults of its server that can be made.

    Attributes:
        url: The URL of the store.
    """

    def __init__(self, url: str) -> None:
        """`url`: the value of --state; "" if it is not given, for a harness with a server."""
        self.url = url

    def state(self, crawl: str, ttl: float, *, url: str = "") -> SharedState:
        """Return a worker's access to the store. `url`: another address of the store."""
        return open_state(url or self.url, crawl, ttl)

    def close(self) -> None:
        """End what the harness has started."""

    # Faults of the server

    def kill(self) -> None:
        """End the server at once, as `kill -9` does."""
        raise FaultNotMade("server killed")

    def start(self) -> None:
        """Start the killed server with its files, and wait until it answers."""
        raise FaultNotMade("server killed")

    def pause(self) -> None:
        """Let the server stand still, as SIGSTOP does: connections stay open."""
        raise FaultNotMade("server frozen")

    def resume(self) -> None:
        """Let the paused server go on."""
        raise FaultNotMade("server frozen")

    def set_clock(self, now: float | None) -> None:
        """Set the clock of the store, and stop it.

        `now`: seconds since the epoch. None: the clock is that of the server again."""
        raise FaultNotMade("server clock set")

    def fill(self) -> None:
        """Leave the server no room for new requests."""
        raise FaultNotMade("server full")

    def make_room(self) -> None:
        """Give the full server room again."""
        raise FaultNotMade("server full")

    def promote(self) -> None:
        """End the server, and let a replica with all its data take its place."""
        raise FaultNotMade("fail-over")

    def proxy(self) -> tuple[Proxy, str]:
        """Return a connection that can lose answers, and the URL that leads over it."""
        parts = urlsplit(self.url)
        if not parts.hostname or not parts.port:
            raise FaultNotMade("answer lost")
        proxy = Proxy(parts.hostname, parts.port)
        place = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
        return proxy, parts._replace(netloc=f"{place}127.0.0.1:{proxy.port}").geturl()
