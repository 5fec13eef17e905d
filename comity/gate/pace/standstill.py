"""Protection against late requests: what a process was about to send when it stood still is not sent when it goes on.

A process that gives no signs of life is taken for dead, and others ask the hosts that it was about to ask. One that was only
stopped (SIGSTOP, Ctrl-Z) would send what had its turn before, just after theirs. Before anything else it runs the handler of
SIGCONT: the connections over which something of that may go out are shut down, and the downloads end as failed. They are tried
again, in their turn. A request that was stopped before its download began ends where that begins.

A process that is stopped without a signal, as by the freezer of a container, is not told that it goes on: there only the second
of the two holds."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from comity.gate.http import Request
from comity.gate.pace.pace import Pace

FOLDER = Path("/dev/fd")  # of the descriptors of this process
PORTS = {"http": 80, "https": 443}
MOST = 5.0  # seconds until a request that was cancelled has ended

T = TypeVar("T")


class StoodStillError(Exception):
    """The request has lost its turn, and was not sent."""


class Standstill:
    """The requests that are being sent, or wait for their answers."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._tasks: dict[Request, asyncio.Task[Any]] = {}
        self._ended: dict[Request, Exception] = {}  # requests that were ended from here, and why
        self._is_left = asyncio.Event()  # no request is being sent

    def open(self) -> None:
        """Listen for SIGCONT, where that can be: in the main thread, and not on Windows. To be called within the loop."""
        self._loop = asyncio.get_running_loop()
        if hasattr(signal, "SIGCONT") and threading.current_thread() is threading.main_thread():
            _handler.add(self)

    def close(self) -> None:
        _handler.discard(self)

    async def guard(self, request: Request, send: Callable[[], Awaitable[T]]) -> T:
        """Send the request, which has had its turn. StoodStillError where that is over."""
        if self._pace.stood_still(request):
            raise _failure(request)
        task = asyncio.current_task()
        assert task
        self._tasks[request] = task
        try:
            return await send()
        except asyncio.CancelledError:
            if (error := self._ended.get(request)) is None:
                raise
            task.uncancel()
            raise error from None
        finally:
            del self._tasks[request]
            self._ended.pop(request, None)
            if not self._tasks:
                self._is_left.set()

    async def end_all(self, error: Callable[[], Exception]) -> None:
        """End all requests that are being sent or wait for their answers, and wait until they have ended. `error`: for each."""
        if not self._tasks:
            return
        self._is_left.clear()
        self._end({request: error() for request in self._tasks})
        with suppress(TimeoutError):
            async with asyncio.timeout(MOST):
                await self._is_left.wait()

    def goes_on(self) -> None:
        """The process goes on: end what has lost its turn meanwhile."""
        late = [request for request in self._tasks if self._pace.stood_still(request)]
        if late:
            end_connections({port for request in late for port in _ports(request)})
            self._loop.call_soon_threadsafe(
                self._end, {request: _failure(request) for request in late}
            )

    def _end(self, errors: Mapping[Request, Exception]) -> None:
        for request, error in errors.items():
            if (task := self._tasks.get(request)) is not None:
                self._ended[request] = error
                task.cancel()


class _Handler:
    """The handler of SIGCONT, one for all crawls and clients of the process. A chain of them would keep each one that ends before
    the next, with all that it knows, as long as there is always another."""

    def __init__(self) -> None:
        self._open: set[Standstill] = set()
        self._before: Any = None  # the handler that was there
        self._handle = self._goes_on  # one object, known by identity

    def add(self, standstill: Standstill) -> None:
        if not self._open:
            self._before = signal.signal(signal.SIGCONT, self._handle)
        self._open.add(standstill)

    def discard(self, standstill: Standstill) -> None:
        if standstill not in self._open:
            return
        self._open.remove(standstill)
        if not self._open and signal.getsignal(signal.SIGCONT) is self._handle:
            signal.signal(signal.SIGCONT, self._before)

    def _goes_on(self, number: int, frame: Any) -> None:
        for standstill in list(self._open):
            standstill.goes_on()
        before, self._before = (
            self._before,
            None,
        )  # one that was put in our place in between may call us in its turn
        try:
            if callable(before):
                before(number, frame)
        finally:
            self._before = before


_handler = _Handler()


def _failure(request: Request) -> StoodStillError:
    return StoodStillError(f"{request} was not sent in its turn: this process stood still")


def _ports(request: Request) -> Iterator[int]:
    for url in (request.url, request.meta.get("proxy")):
        if url:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            yield parts.port or PORTS.get(parts.scheme, 0)


def end_connections(ports: Container[int]) -> None:
    """Shut down the connections of this process to these ports, and those that are being made: nothing goes out over them any
    more, whoever has them."""
    for file in FOLDER.iterdir():
        with suppress(OSError):  # it is closed by now, or was never connected
            if file.is_socket():
                with socket.socket(fileno=os.dup(int(file.name))) as connection:
                    if _leads_to(connection, ports):
                        connection.shutdown(socket.SHUT_RDWR)


def _leads_to(connection: socket.socket, ports: Container[int]) -> bool:
    if (
        connection.family not in (socket.AF_INET, socket.AF_INET6)
        or connection.type != socket.SOCK_STREAM
    ):
        return False
    try:
        return connection.getpeername()[1] in ports
    except OSError:  # not connected yet: to whom is not known
        return not connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
