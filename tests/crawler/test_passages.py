"""Random lives of requests: what each end leaves behind.

The machine plays Scrapy's engine, its downloader and the servers. The parts of the crawl, its scheduler and its downloader
middlewares are the real ones, and the clock moves when there is nothing to do until later."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextvars import copy_context
from datetime import datetime, tzinfo
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch
from weakref import ref

import pytest
from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scrapy import signals
from scrapy.exceptions import DownloadFailedError, IgnoreRequest
from scrapy.http import Request, Response

from comity.crawler.middlewares.access import AccessMiddleware
from comity.crawler.middlewares.credentials import SessionFieldsMiddleware
from comity.crawler.middlewares.overload import RateMiddleware
from comity.gate.run.observer import Observer, Paced
from tests.crawler.clock import EPOCH, Clock, Loop
from tests.crawler.frontier.test_scheduler import Crawl, Files, delay
from tests.selection import examples

PLAIN, SLOW, SCOPED = "https://plain.test", "https://slow.test", "https://scoped.test"
SITES = {
    SLOW: delay(2),
    SCOPED: {
        "/robots.txt": "User-agent: *\nDisallow:\n",
        "/automation-preferences.txt": "scope: /few\nconcurrent-limit: 1\nallowed-methods: GET\n",
    },
}
PAGES = [f"{PLAIN}/", f"{SLOW}/", f"{SLOW}/private", f"{SCOPED}/", f"{SCOPED}/few", "data:,own"]
MOST = {PLAIN: 2, SLOW: 1, SCOPED: 2}  # requests to a server at a time
EPSILON = 0.002  # seconds; the ledger counts in milliseconds


class ResponseNeverReceived(Exception):  # noqa: N818  # the name of Twisted's error
    """The connection ended without an answer."""


class Counting(Observer):
    """Keeps the starts that are not settled."""

    def __init__(self) -> None:
        self.unsettled: set[object] = set()

    def starting(self, limiters: Sequence[Paced]) -> object:
        start = object()
        self.unsettled.add(start)
        return start

    def settled(self, limiters: Sequence[Paced], start: object) -> None:
        self.unsettled.remove(start)  # KeyError: the request is counted twice


class Life:
    """A request on its way, as the engine sees it.

    Attributes:
        stage: "out": it is in the middlewares before ours. "coming": our first middleware has it.
            "admitted": it is in the middlewares behind. "sending": its download has begun, or
            waits for another turn. "parsing": its callback runs.
        server: The origin whose server has the request now; "" if none has.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.stage = "out"
        self.task: asyncio.Task[Any] | None = None
        self.answer: asyncio.Future[Response] | None = None
        self.has_headers = False
        self.server = ""


def stage(*names: str) -> Callable[[Lives], bool]:
    return lambda machine: bool(machine.at(*names))


class Lives(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.lives: list[Life] = []
        self.settled_at: dict[str, float] = {}  # origin -> when a request to it was settled last
        self.did: Counter[str] = Counter()
        self.is_closing = False

    @initialize()
    def open(self) -> None:
        logging.disable(logging.CRITICAL)  # pytest keeps log records, and they keep their requests
        self.clock = clock = Clock()
        self.patches = pytest.MonkeyPatch()

        class Moved(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Moved:
                return cls.fromtimestamp(EPOCH + clock.now, tz)

        for name in [
            "comity.gate.pace.pace",
            "comity.gate.pace.gate",
            "comity.gate.pace.ledger",
        ] + [name for name in sys.modules if name.startswith("comity.crawler.frontier.")]:
            moved = {
                "monotonic": lambda: clock.now,
                "time": lambda: EPOCH + clock.now,
                "datetime": Moved,
            }
            for word, function in moved.items():
                if callable(getattr(sys.modules[name], word, None)):
                    self.patches.setattr(f"{name}.{word}", function)
        self.patches.setattr("comity.gate.pace.pace.call_later", clock.call_later)
        self.patches.setenv("BEARER", "secret")
        self.observer = Counting()
        self.patches.setattr("comity.crawler.crawl._observer", lambda options: self.observer)
        files = Files(clock, SITES, {SLOW: 0.5})
        self.patches.setattr("comity.crawler.crawl._files", lambda *arguments: files)
        self.folder = TemporaryDirectory()
        session = {"bearer": "env:BEARER", "started_at": "2020-01-01T00:00:00+00:00"}
        limits = {"CONCURRENT_REQUESTS_PER_DOMAIN": 2, "COMITY_SESSIONS": {"plain.test": session}}
        self.crawl = Crawl(clock, Path(self.folder.name), files, limits)
        self.own, self.spider = self.crawl.own, self.crawl.spider
        self.crawl.engine.downloader.slots = {}
        self.crawl.engine.downloader.per_slot_settings = {}
        self.crawl.engine.downloader.get_slot_key = lambda request: ""
        self.access = AccessMiddleware(self.crawl.crawler)
        self.rate = RateMiddleware(self.crawl.crawler)
        self.fields = SessionFieldsMiddleware(self.crawl.crawler)
        self.runner = asyncio.Runner(loop_factory=lambda: Loop(clock))
        self.run(self.crawl.open())
        self.run(self._open())

    async def _open(self) -> None:
        self.own.standstill.open()

    # Engine

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work in a context of its own, then see which tasks have ended."""

        async def and_collect() -> None:
            await work
            while True:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                ended = [life for life in self.lives if life.task is not None and life.task.done()]
                if not ended:
                    return
                for life in ended:
                    await self.collect(life)

        self.runner.run(and_collect(), context=copy_context())

    def at(self, *stages: str) -> list[Life]:
        return [life for life in self.lives if life.stage in stages]

    def tell(self, signal: object, life: Life, **facts: Any) -> None:
        send = self.crawl.crawler.signals.send_catch_log
        for _, result in send(signal, request=life.request, spider=self.spider, **facts):
            assert not hasattr(result, "getTraceback"), result

    def goes_out(self, request: Request) -> None:
        self.crawl.active.add(request)
        self.crawl.in_progress.add(request)
        self.lives.append(Life(request))

    def leaves(self, life: Life, *, again: Request | None = None) -> None:
        """The request leaves the downloader. `again`: the request that is made instead."""
        self.crawl.active.remove(life.request)
        if again is not None:
            self.crawl.add(again)
        self.crawl.in_progress.remove(life.request)
        self.lives.remove(life)

    async def collect(self, life: Life) -> None:
        assert life.task is not None
        task, life.task = life.task, None
        error = task.exception()
        if life.stage == "coming":
            if isinstance(error, IgnoreRequest):
                return self.leaves(life)
            if error is not None:
                raise error
            if task.result() is not None:  # the scheduler takes it back
                self.did["held"] += 1
                return self.leaves(life, again=task.result())
            self.did["admitted"] += 1
            life.stage = "admitted"
            return None
        assert life.stage == "sending"
        life.answer = None
        self.tell(signals.request_left_downloader, life)
        flight = self.own.passages[ref(life.request)].flight
        assert flight is None or not flight.limiters
        if error is not None:
            self.fields.process_exception(life.request, Exception())
            if not isinstance(error, IgnoreRequest | DownloadFailedError):
                raise error
            is_retried = isinstance(error, DownloadFailedError) and not life.request.meta.get("n")
            return self.leaves(
                life, again=life.request.replace(meta={"n": 1}) if is_retried else None
            )
        response = await self.fields.process_response(life.request, task.result())
        answer = await self.rate.process_response(life.request, response)
        if isinstance(answer, Request):
            self.did["held"] += 1
            return self.leaves(life, again=answer)
        if response.status == 302:
            return self.leaves(life, again=life.request.replace(url=f"{SCOPED}/few"))
        response = await self.access.process_response(life.request, answer)
        self.crawl.active.remove(life.request)
        response.request = life.request
        assert await self.own.responses.page(response) or life.request.url.startswith("data:")
        life.stage = "parsing"
        return None

    # Rules

    @precondition(lambda machine: not machine.is_closing)
    @rule(
        urls=strategies.lists(strategies.sampled_from(PAGES), min_size=1, max_size=6),
        data=strategies.data(),
    )
    def a_page_links(self, urls: list[str], data: strategies.DataObject) -> None:
        """The operator or a callback makes requests for the scheduler."""
        parsing = data.draw(strategies.sampled_from([None, *self.at("parsing")]))

        async def link() -> None:
            self.own.referrals.handle(parsing.request if parsing else None)
            self.crawl.add(*(Request(url, dont_filter=True) for url in urls))

        self.run(link())
        self.the_engine_asks()

    @precondition(lambda machine: not machine.is_closing)
    @rule(url=strategies.sampled_from(PAGES))
    def code_downloads(self, url: str) -> None:
        """A media pipeline hands a request to the downloader, and waits for the response."""
        self.goes_out(Request(url))

    @precondition(lambda machine: not machine.is_closing)
    @rule()
    def the_engine_asks(self) -> None:
        async def ask() -> None:
            while len(self.crawl.active) < self.crawl.places:
                request = self.crawl.scheduler.next_request()
                if request is None:
                    return
                self.did["handed out"] += 1
                assert request not in self.crawl.active
                self.goes_out(request)

        self.run(ask())

    @precondition(stage("out"))
    @rule(data=strategies.data())
    def it_comes(self, data: strategies.DataObject) -> None:
        life = data.draw(strategies.sampled_from(self.at("out")))

        async def come() -> None:
            life.stage = "coming"
            life.task = asyncio.create_task(self.access.process_request(life.request))

        self.run(come())

    @precondition(stage("out", "admitted"))
    @rule(data=strategies.data(), is_made_again=strategies.booleans())
    def a_middleware_drops_it(self, data: strategies.DataObject, is_made_again: bool) -> None:
        """It refuses or answers the request, or returns the request to be made again."""
        life = data.draw(strategies.sampled_from(self.at("out", "admitted")))

        async def drop() -> None:
            self.leaves(life, again=life.request if is_made_again else None)

        self.run(drop())

    @precondition(stage("admitted"))
    @rule(data=strategies.data())
    def it_is_sent(self, data: strategies.DataObject) -> None:
        life = data.draw(strategies.sampled_from(self.at("admitted")))

        async def send() -> None:
            life.stage = "sending"
            try:
                await self.fields.process_request(life.request)
            except IgnoreRequest:
                raise AssertionError("an unchanged request is refused") from None
            life.task = asyncio.create_task(
                self.own._send(life.request, lambda: self.download(life))
            )

        self.run(send())

    async def download(self, life: Life) -> Response:
        """The server's view of the request."""
        origin = life.request.url.rpartition("/")[0] or "data:"
        servers = [other.server for other in self.lives]
        assert servers.count(origin) < MOST.get(origin, sys.maxsize)
        if origin == SLOW:
            assert self.clock.now >= self.settled_at.get(origin, 0) + 2 - EPSILON
        has_session = b"Authorization" in life.request.headers
        assert has_session == (origin == PLAIN)
        life.server, life.has_headers = origin, False
        life.answer = asyncio.get_running_loop().create_future()
        try:
            return await life.answer
        finally:
            life.server = ""
            if not life.has_headers:
                self.settled_at[origin] = self.clock.now

    def answering(self, data: strategies.DataObject) -> Life:
        return data.draw(strategies.sampled_from([life for life in self.lives if life.server]))

    @precondition(lambda machine: any(life.server for life in machine.lives))
    @rule(data=strategies.data())
    def headers_come(self, data: strategies.DataObject) -> None:
        life = self.answering(data)
        self.run(self.take_headers(life))

    async def take_headers(self, life: Life) -> None:
        if not life.has_headers:
            life.has_headers = True
            self.settled_at[life.server] = self.clock.now
            self.tell(signals.headers_received, life, headers={}, body_length=9)

    @precondition(lambda machine: any(life.server for life in machine.lives))
    @rule(data=strategies.data(), status=strategies.sampled_from([200, 302, 429]))
    def it_is_answered(self, data: strategies.DataObject, status: int) -> None:
        life = self.answering(data)

        async def answer() -> None:
            await self.take_headers(life)
            assert life.answer is not None
            life.answer.set_result(Response(life.request.url, status=status))

        self.run(answer())

    @precondition(lambda machine: any(life.server for life in machine.lives))
    @rule(data=strategies.data(), is_unanswered=strategies.booleans())
    def it_fails(self, data: strategies.DataObject, is_unanswered: bool) -> None:
        """After its headers, as a stream that breaks off, or before them."""
        life = self.answering(data)

        async def fail() -> None:
            error = DownloadFailedError("it failed")
            error.__cause__ = ResponseNeverReceived() if is_unanswered else OSError()
            assert life.answer is not None
            life.answer.set_exception(error)

        self.run(fail())

    @precondition(stage("parsing"))
    @rule(data=strategies.data())
    def it_is_parsed(self, data: strategies.DataObject) -> None:
        life = data.draw(strategies.sampled_from(self.at("parsing")))
        self.crawl.in_progress.remove(life.request)
        self.lives.remove(life)

    @rule(seconds=strategies.sampled_from([0.1, 1, 3, 70]))
    def time_passes(self, seconds: float) -> None:
        self.run(self.wait(seconds))

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    @rule(seconds=strategies.sampled_from([1, 50, 500]))
    def the_process_stands_still(self, seconds: float) -> None:
        async def stand_still() -> None:
            self.clock.now += seconds
            with patch("comity.gate.pace.standstill.end_connections"):
                self.own.standstill.goes_on()

        self.run(stand_still())

    @precondition(lambda machine: not machine.is_closing)
    @rule(is_sure=strategies.sampled_from([False] * 19 + [True]))
    def the_spider_closes(self, is_sure: bool) -> None:
        """The engine asks for no more requests, and waits for those that are out."""
        if is_sure:
            self.is_closing = True
            self.crawl.slot.closing = object()

    # Invariants

    @invariant()
    def limiters_are_occupied_by_flights(self) -> None:
        if not hasattr(self, "own"):
            return
        pace, passages = self.own.pace, self.own.passages
        occupied = Counter(limiter for flight in pace._flights for limiter in flight.limiters)
        for limiter in pace._limiters.values():
            assert limiter.in_flight == occupied[limiter]
            assert limiter.in_flight <= limiter.most
        for flight, request in pace._flights.items():
            assert passages[ref(request)].flight is flight
        grants = {flight.grant for flight in pace._flights if flight.limiters}
        assert set(pace._ledger._flights) <= grants  # type: ignore[attr-defined]

    @invariant()
    def credentials_are_on_requests_that_are_out(self) -> None:
        for life in self.lives:
            if life.stage != "sending":
                assert self.own.passages[ref(life.request)].replaced_fields is None
                assert b"Authorization" not in life.request.headers

    # Ends

    def teardown(self) -> None:
        if not hasattr(self, "own"):
            return
        try:
            self.finish()
            self.check_end()
        finally:
            self.run(self.own.close())
            self.runner.close()
            self.patches.undo()
            logging.disable(logging.NOTSET)
            self.folder.cleanup()

    def finish(self) -> None:
        """Bring every request to its end."""
        for _ in range(500):
            for life in list(self.lives):
                only = _Only(life)
                if life.stage == "out":
                    self.it_comes(only)
                elif life.stage == "admitted":
                    self.it_is_sent(only)
                elif life.server:
                    self.it_is_answered(only, 200)
                elif life.stage == "parsing":
                    self.it_is_parsed(only)
            if not self.is_closing:
                self.the_engine_asks()
            self.limiters_are_occupied_by_flights()
            is_left = not self.is_closing and self.crawl.scheduler.has_pending_requests()
            if not self.lives and not is_left:
                return
            self.time_passes(1.0)
        raise AssertionError(f"these never end: {[vars(life) for life in self.lives]}")

    def check_end(self) -> None:
        pace = self.own.pace
        pace.forget_departed()
        assert pace._flights == {}
        assert pace._ledger._flights == {}  # type: ignore[attr-defined]
        for limiter in pace._limiters.values():
            assert (limiter.in_flight, limiter.awaited) == (0, 0)
        assert not self.own.standstill._sending
        stats = self.crawl.stats
        assert stats.get("comity/access/allow", 0) == self.did["admitted"]
        if not self.is_closing:
            went = self.did["handed out"] - self.did["held"]
            assert stats.get("scheduler/dequeued", 0) == went
        gc.collect()
        assert len(self.own.passages) <= len(self.crawl.scheduler)
        self.run(self.crawl.close())


class _Only:
    """Plays the `data` of Hypothesis, and draws one given life."""

    def __init__(self, life: Life) -> None:
        self._life = life

    def draw(self, strategy: object) -> Any:
        return self._life


TestLives = pytest.mark.requirement("RATE-1", "RATE-2", "REACH-3")(Lives.TestCase)
TestLives.settings = settings(
    max_examples=examples(300, quick=3), stateful_step_count=40, deadline=None
)
