"""Protection against late requests after a standstill.

If a process gives no signs of life, the other processes take it for dead, and send their requests
to its hosts. If the process was only stopped (SIGSTOP, Ctrl-Z), it would then send its late
requests just after those of the others. So it does two things when it goes on:

1. Before anything else it runs the handler of SIGCONT. The handler shuts down the connections over
   which late requests may go out, and ends the downloads as failed. They are tried again in their
   turn.
2. A request that was stopped before its download began ends where the download would begin.

A process can also be stopped without a signal, for example by the freezer of a container. It does
not learn that it goes on, so only the second point protects it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Container, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from comity.gate.http import Request
from comity.gate.pace.pace import Pace

FOLDER = Path("/dev/fd")  # the file descriptors of this process
PORTS = {"http": 80, "https": 443}
MOST = 5.0  # the maximum seconds to wait for the end of cancelled requests

T = TypeVar("T")


class StoodStillError(Exception):
    """The request has lost its turn and was not sent."""


class _Sending:
    """A request while it is being sent or waits for its answer.

    Attributes:
        request: The request.
        task: The task that sends it.
        error: The error that ends it. None: Standstill has not ended it.
    """

    __slots__ = ("error", "request", "task")

    def __init__(self, request: Request, task: asyncio.Task[Any]) -> None:
        self.request = request
        self.task = task
        self.error: Exception | None = None


class Standstill:
    """The requests that are being sent or wait for their answers."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._sending: set[_Sending] = set()
        self._is_left = asyncio.Event()  # set while no request is being sent

    def open(self) -> None:
        """Listen for SIGCONT, if possible: in the main thread, and not on Windows.

        Call this within the event loop.
        """
        self._loop = asyncio.get_running_loop()
        if hasattr(signal, "SIGCONT") and threading.current_thread() is threading.main_thread():
            _handler.add(self)

    def close(self) -> None:
        """Listen for SIGCONT no longer."""
        _handler.discard(self)

    async def guard(self, request: Request, send: Callable[[], Awaitable[T]]) -> T:
        """Send the request in its turn, and return the answer.

        StoodStillError: its turn is over, because this process stood still.
        """
        if self._pace.stood_still(request):
            raise _failure(request)
        task = asyncio.current_task()
        assert task
        sending = _Sending(request, task)
        self._sending.add(sending)
        try:
            return await send()
        except asyncio.CancelledError:
            if sending.error is None:
                raise
            task.uncancel()
            raise sending.error from None
        finally:
            self._sending.discard(sending)
            if not self._sending:
                self._is_left.set()

    async def end_all(self, error: Callable[[], Exception]) -> None:
        """End all requests that are being sent or wait for their answers.

        Return when they have ended, or after MOST seconds. `error`: make the error that one request
        raises.
        """
        if not self._sending:
            return
        self._is_left.clear()
        for sending in list(self._sending):
            self._end(sending, error())
        with suppress(TimeoutError):
            async with asyncio.timeout(MOST):
                await self._is_left.wait()

    def goes_on(self) -> None:
        """End the requests that lost their turn while the process stood still."""
        late = [sending for sending in self._sending if self._pace.stood_still(sending.request)]
        if late:
            end_connections({port for sending in late for port in _ports(sending.request)})
            for sending in late:
                self._loop.call_soon_threadsafe(self._end, sending, _failure(sending.request))

    def _end(self, sending: _Sending, error: Exception) -> None:
        if sending in self._sending:
            sending.error = error
            sending.task.cancel()


class _Handler:
    """The handler of SIGCONT, one for all crawls and clients of the process.

    The crawls do not chain handlers of their own: then a later handler would refer to the handler
    of an earlier crawl, and keep that crawl in memory after its end.
    """

    def __init__(self) -> None:
        self._open: set[Standstill] = set()
        self._before: Any = None  # the handler before ours
        self._handle = self._goes_on  # one object, as `discard` compares by identity

    def add(self, standstill: Standstill) -> None:
        """Call `goes_on` of this Standstill on SIGCONT; the first one installs the handler."""
        if not self._open:
            self._before = signal.signal(signal.SIGCONT, self._handle)
        self._open.add(standstill)

    def discard(self, standstill: Standstill) -> None:
        """Forget the Standstill; after the last one, restore the handler before ours."""
        if standstill not in self._open:
            return
        self._open.remove(standstill)
        if not self._open and signal.getsignal(signal.SIGCONT) is self._handle:
            signal.signal(signal.SIGCONT, self._before)

    def _goes_on(self, number: int, frame: Any) -> None:
        for standstill in list(self._open):
            standstill.goes_on()
        # A handler that was installed over ours may call ours: None in between prevents a loop.
        before, self._before = self._before, None
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
    """Shut down the connections of this process to these ports, and those still being made.

    No more bytes go out over them, even if other code holds them.
    """
    for file in FOLDER.iterdir():
        with suppress(OSError):  # the descriptor is closed by now, or was never connected
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
    except OSError:  # not connected yet, so its port is unknown
        return not connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
