"""The connections of a process that goes on after a standstill.

tests/live/test_reach.py tests its workers."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy.http import Request, Response

from comity.gate.pace.standstill import Standstill, StoodStillError, end_connections


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def listening(stack: ExitStack) -> socket.socket:
    return stack.enter_context(socket.create_server(("127.0.0.1", 0)))


def connect(stack: ExitStack, server: socket.socket) -> socket.socket:
    return stack.enter_context(socket.create_connection(server.getsockname()))


@pytest.mark.requirement("REACH-3")
def test_connections_to_a_port_are_ended_and_no_others(stack: ExitStack) -> None:
    asked, other = listening(stack), listening(stack)
    first, second = connect(stack, asked), connect(stack, other)
    pair = [stack.enter_context(end) for end in socket.socketpair()]
    connecting = stack.enter_context(socket.socket())
    connecting.settimeout(0)
    end_connections({asked.getsockname()[1]})
    with pytest.raises(BrokenPipeError):
        first.send(b"GET")
    assert second.send(b"GET") == 3
    assert pair[0].send(b"wake") == 4
    assert connect(stack, asked).send(b"GET") == 3  # the server still listens


@pytest.mark.requirement("REACH-3")
def test_a_download_that_is_under_way_fails_when_the_process_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late, in_time = Request("http://127.0.0.1:9/late"), Request("http://127.0.0.1:9/in-time")
    ended: list[set[int]] = []
    monkeypatch.setattr("comity.gate.pace.standstill.end_connections", ended.append)
    before: list[int] = []
    own = signal.signal(signal.SIGCONT, lambda number, frame: before.append(number))

    async def run() -> None:
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

        async def download(request: Request) -> Response:
            return await asyncio.shield(answer)

        stood_still = set[Request]()
        standstill = Standstill(
            cast(Any, SimpleNamespace(stood_still=lambda request: request in stood_still))
        )
        standstill.open()

        async def download_guarded(request: Request) -> Response:
            return await standstill.guard(request, lambda: download(request))

        downloads = [asyncio.create_task(download_guarded(request)) for request in (late, in_time)]
        await asyncio.sleep(0)
        stood_still.add(late)
        os.kill(os.getpid(), signal.SIGCONT)
        with pytest.raises(
            StoodStillError, match="was not sent in its turn: this process stood still"
        ):
            await downloads[0]
        with pytest.raises(StoodStillError):
            await download_guarded(late)
        answer.set_result(Response(in_time.url))
        assert (await downloads[1]).url == in_time.url
        standstill.close()

    try:
        asyncio.run(run())
        assert ended == [{9}]
        os.kill(os.getpid(), signal.SIGCONT)
        assert before == [signal.SIGCONT] * 2
    finally:
        signal.signal(signal.SIGCONT, own)


def test_what_was_closed_before_others_is_gone() -> None:
    """A process may have an open crawl or client at any time."""
    before: list[int] = []
    own = signal.signal(signal.SIGCONT, lambda number, frame: before.append(number))
    gone: list[weakref.ref[Standstill]] = []

    async def run() -> None:
        last: Standstill | None = None
        for _ in range(sys.getrecursionlimit()):
            standstill = Standstill(cast(Any, SimpleNamespace()))
            standstill.open()
            if last is not None:
                last.close()
                gone.append(weakref.ref(last))
            last = standstill
        os.kill(os.getpid(), signal.SIGCONT)
        assert last is not None
        last.close()

    try:
        handler = signal.getsignal(signal.SIGCONT)
        asyncio.run(run())
        assert before == [signal.SIGCONT]
        assert signal.getsignal(signal.SIGCONT) is handler
        gc.collect()
        assert not any(reference() for reference in gone)
    finally:
        signal.signal(signal.SIGCONT, own)


def test_a_handler_in_the_place_of_ours_may_call_it() -> None:
    told: list[int] = []

    async def run() -> None:
        for _ in range(2):
            standstill = Standstill(cast(Any, SimpleNamespace()))
            standstill.open()
            ours = signal.getsignal(signal.SIGCONT)

            def handler(number: int, frame: Any, ours: Any = ours) -> None:
                told.append(number)
                ours(number, frame)

            signal.signal(signal.SIGCONT, handler)
            standstill.close()
        os.kill(os.getpid(), signal.SIGCONT)

    own = signal.getsignal(signal.SIGCONT)
    try:
        asyncio.run(run())
        assert len(told) == 2
    finally:
        signal.signal(signal.SIGCONT, own)
