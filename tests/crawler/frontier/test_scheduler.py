"""The queue of a crawl, by a clock that moves when there is nothing to do until later. Nothing is asked over a network: the
policies of the sites are at hand, and each page takes as long as a test says."""

from __future__ import annotations

import asyncio
import gc
import logging
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import datetime, tzinfo
from functools import partial
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from scrapy import Spider, signals
from scrapy.core.scheduler import Scheduler as ScrapyScheduler
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.exceptions import NotConfigured
from scrapy.http import Request, Response
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.request import RequestFingerprinter

from comity.crawler.crawl import Crawl as OwnCrawl
from comity.crawler.frontier import scheduler, storages
from comity.crawler.frontier.book import Entry
from comity.crawler.frontier.journal import NAME, Journal
from comity.crawler.frontier.scheduler import Scheduler
from comity.crawler.frontier.waiting import policy_fetches, turns
from comity.crawler.scrapy_internals import WAKE
from comity.gate.fetching.fetcher import OriginPolicies
from comity.gate.fetching.files import Obtained, PolicyQuery
from comity.gate.fetching.freshness import DAY
from comity.gate.fetching.network import BarredError
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.reach import Reach, reach_of
from comity.gate.options import SettingsError
from comity.gate.request.referrals import KEY, set_referrer_reach
from comity.policies import Fetched, PolicyError
from tests.crawler.clock import EPOCH, Clock, Loop

A, B, C = "https://a.test", "https://b.test", "https://c.test"
OPEN = "User-agent: *\nDisallow:\n"
FOREVER = 10_000.0  # seconds; no crawl of a test takes as long
PRIVATE = "User-agent: *\nDisallow: /private\n"
ABSENT = Fetched(status=404)
# The parts of the scheduler that read the monotonic clock.
FRONTIER = tuple(
    f"crawler.frontier.{name}"
    for name in (
        "complaints",
        "scheduler",
        "waiting.policy_fetches",
        "waiting.turns",
        "waiting.waiting_requests",
        "waiting.wake_timer",
        "writes",
    )
)


class Pages(Spider):
    name = "pages"

    def parse(self, response: Any) -> None: ...

    def parse_page(self, response: Any) -> None: ...


def delay(seconds: float) -> str:
    return f"User-agent: *\nCrawl-delay: {seconds:g}\nDisallow: /private\n"


class Files:
    """The policy files of sites. An origin that is not named has an open robots.txt."""

    def __init__(self, clock: Clock, sites: Mapping[str, Any], takes: Mapping[str, float]) -> None:
        self.client = SimpleNamespace(network=SimpleNamespace(reach=reach_of))
        self.store = None
        self.sites = dict(sites)
        self.asked: list[tuple[float, str]] = []  # seconds since the start, origin
        self.under_way = 0
        self._clock = clock
        self._began = clock.now
        self._takes = takes

    def clock(self) -> float:
        return EPOCH + self._clock.now

    async def get(self, query: PolicyQuery, asker: object) -> Obtained:
        self.asked.append((self._clock.now - self._began, query.origin))
        self.under_way += 1
        try:
            await asyncio.sleep(self._takes.get(query.origin, 0))
        finally:
            self.under_way -= 1
        site = self.sites.get(query.origin, OPEN)
        if callable(site):
            site = site()
        if isinstance(site, Exception):
            raise site
        texts = {"/robots.txt": site} if not isinstance(site, Mapping) else site
        return Obtained(
            {path: self._file(texts.get(path, ABSENT)) for path in query.paths},
            frozenset(query.paths),
        )

    def _file(self, text: str | Fetched | PolicyFile) -> PolicyFile:
        if isinstance(text, PolicyFile):
            return text
        copy = Fetched(status=200, body=text.encode()) if isinstance(text, str) else text
        return PolicyFile(due=self.clock() + DAY, copy=copy)

    def fails(self, seconds: float) -> PolicyFile:
        """A robots.txt that cannot be had, and is not to be asked for again before so many seconds."""
        return PolicyFile(due=self.clock() + seconds, failure=Fetched(status=503))

    def opens(self, seconds: float) -> PolicyFile:
        """An open robots.txt that is fresh for so many seconds."""
        return PolicyFile(due=self.clock() + seconds, copy=Fetched(status=200, body=OPEN.encode()))

    async def leave(self) -> None: ...


class Out(NamedTuple):
    """What went out of the queue."""

    at: float  # seconds since the start
    url: str
    rule: str  # why it is refused; "": it is not


class Crawl:
    """What of a crawl the scheduler sees: Scrapy's engine with its downloader, where each page takes some seconds."""

    def __init__(
        self, clock: Clock, folder: Path, files: Files, settings: Mapping[str, Any]
    ) -> None:
        self.clock = clock
        self.began = clock.now
        self.files = files
        self.page_takes = 0.01  # seconds
        self.places = 16  # CONCURRENT_REQUESTS
        self.turns = 0  # how often the engine asked
        self.out: list[Out] = []
        self.most: dict[str, int] = {}  # requests at once, by host
        self.holds: dict[
            str, list[float]
        ] = {}  # URL -> for how many seconds the middleware puts it off, each time
        self.from_cache: set[str] = set()  # URLs that another middleware answers
        self.active: set[Request] = set()
        self.in_progress: set[Request] = set()
        self._woken = asyncio.Event()
        self.woken = 0
        defaults = {
            "COMITY_AGENT": "testbot",
            "COMITY_STORE": str(folder / "store.sqlite"),
            "COMITY_MIN_DELAY": 0,
        }
        self.crawler = Crawler(Pages, {**defaults, **settings})
        self.crawler.stats = MemoryStatsCollector(self.crawler)
        self.crawler.request_fingerprinter = RequestFingerprinter.from_crawler(self.crawler)
        self.spider = self.crawler.spider = Pages.from_crawler(self.crawler)
        self.slot = SimpleNamespace(
            closing=None,
            nextcall=SimpleNamespace(schedule=self._wake),
            inprogress=self.in_progress,
            scheduler=None,
        )
        downloader = SimpleNamespace(active=self.active, total_concurrency=self.places)
        self.engine = SimpleNamespace(spider=self.spider, _slot=self.slot, downloader=downloader)
        self.crawler.engine = cast(Any, self.engine)
        self.own = OwnCrawl.of(self.crawler)
        self.scheduler: Scheduler

    def _wake(self) -> None:
        self.woken += 1
        self._woken.set()

    @property
    def now(self) -> float:
        return self.clock.now - self.began

    @property
    def stats(self) -> dict[str, Any]:
        assert self.crawler.stats
        return self.crawler.stats.get_stats()

    @property
    def urls(self) -> list[str]:
        return [out.url for out in self.out]

    @property
    def times(self) -> list[tuple[float, str]]:
        return [(round(out.at, 1), out.url) for out in self.out]

    @property
    def refused(self) -> dict[str, str]:
        return {out.url: out.rule for out in self.out if out.rule}

    def add(self, *urls: str | Request) -> list[bool]:
        """In Scrapy's way."""
        taken = []
        for url in urls:
            request = Request(url) if isinstance(url, str) else url
            self.crawler.signals.send_catch_log(
                signals.request_scheduled, request=request, spider=self.spider
            )
            taken.append(self.scheduler.enqueue_request(request))
        self._woken.set()
        return taken

    async def go(self, seconds: float = FOREVER) -> None:
        """Until there is nothing to wait for, at most so many seconds. Waits as the engine does: it is woken, or nothing."""
        until = self.now + seconds
        while True:
            self._woken.clear()
            while len(self.active) < self.places:
                self.turns += 1
                request = self.scheduler.next_request()
                if request is None:
                    break
                self._goes_out(request)
            if not self.active and not self.scheduler.has_pending_requests():
                return
            try:
                async with asyncio.timeout(until - self.now):
                    await self._woken.wait()
            except TimeoutError:
                assert seconds < FOREVER, "it never ends"
                return

    def _goes_out(self, request: Request) -> None:
        self.active.add(request)
        self.in_progress.add(request)
        assert self.own.pace.claim(request)
        decision = self.own.access.decide_again(request)
        assert decision is not None
        if waits := self.holds.get(request.url):
            assert self.own.scheduler is not None
            assert self.own.scheduler.hold(request, waits.pop(0))
            self.active.discard(request)
            self.in_progress.discard(request)
            assert self.add(request) == [True]
            return
        rule = "" if decision.verdict.value == "allow" else decision.reasons[0].rule
        self.out.append(Out(self.now, request.url, rule))
        if rule or request.url in self.from_cache:
            self.active.discard(request)
            self.in_progress.discard(request)
            self._woken.set()
            return
        host = request.url.split("/")[2] if "//" in request.url else ""
        self.most[host] = max(self.most.get(host, 0), sum(host in each.url for each in self.active))
        asyncio.get_running_loop().call_later(self.page_takes, self.answered, request)

    def answered(self, request: Request) -> None:
        """The page is there, and its callback is through."""
        send = self.crawler.signals.send_catch_log
        send(signals.headers_received, request=request, body_length=0, spider=self.spider)
        self.active.discard(request)
        send(signals.request_left_downloader, request=request, spider=self.spider)
        self.in_progress.discard(request)
        self._woken.set()

    async def open(self) -> None:
        self.scheduler = Scheduler.from_crawler(self.crawler)
        opened: Any = self.scheduler.open(self.spider)
        if opened is not None:
            await maybe_deferred_to_future(opened)

    async def close(self) -> None:
        self.slot.closing = object()
        closed: Any = self.scheduler.close("finished")
        await maybe_deferred_to_future(closed)

    def run(self, *urls: str | Request) -> None:
        """Asks for the URLs, from beginning to end."""

        async def work() -> None:
            self.add(*urls)
            await self.go()

        self.does(work)

    def does(self, work: Callable[[], Awaitable[None]], *, is_killed: bool = False) -> None:
        """The work of a crawl that is opened before, and closed after it. `is_killed`: it is not closed."""

        async def all_of_it() -> None:
            await self.open()
            await work()
            if not is_killed:
                await self.close()

        with asyncio.Runner(loop_factory=lambda: Loop(self.clock)) as runner:
            runner.run(all_of_it())


Make = Callable[..., Crawl]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()

    class Moved(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Moved:
            return cls.fromtimestamp(EPOCH + clock.now, tz)

    for name in (*FRONTIER, "gate.pace.pace"):
        monkeypatch.setattr(f"comity.{name}.monotonic", lambda: clock.now)
    for name in ("crawler.frontier.waiting.turns", "gate.pace.pace", "gate.pace.ledger"):
        monkeypatch.setattr(f"comity.{name}.time", lambda: EPOCH + clock.now)
    monkeypatch.setattr("comity.gate.pace.pace.call_later", clock.call_later)
    for name in ("crawler.frontier.waiting.turns", "policies.formats.robots.reading"):
        monkeypatch.setattr(f"comity.{name}.datetime", Moved)
    return clock


@pytest.fixture
def make(clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """`make(sites, takes, **settings)` makes a crawl. `sites`: robots.txt, or files by path, by origin. `takes`: seconds that
    the policy files of an origin take."""
    made: list[Crawl] = []

    def make(
        sites: Mapping[str, Any] | None = None,
        takes: Mapping[str, float] | None = None,
        **settings: Any,
    ) -> Crawl:
        files = Files(clock, sites or {}, takes or {})
        monkeypatch.setattr("comity.crawler.crawl._files", lambda crawler, options, state: files)
        made.append(Crawl(clock, tmp_path, files, settings))
        return made[-1]

    yield make
    for crawl in made:
        crawl.own.pace.close()


def test_a_request_that_was_allowed_on_arrival_is_read_when_it_is_due(
    make: Make, tmp_path: Path
) -> None:
    """Until then, only its key is in memory. A request that may be refused is read before."""
    crawl = make({A: delay(10)}, JOBDIR=str(tmp_path / "job"))

    def first_waiting() -> Entry | int | None:
        queue = crawl.scheduler._waiting.queues.get(A)
        assert queue is not None
        return queue.peek()

    async def work() -> None:
        crawl.add(f"{A}/1", f"{A}/2")  # no policies are known
        await crawl.go(5)
        assert isinstance(first_waiting(), Entry)
        crawl.add(f"{A}/3", f"{A}/4")
        await crawl.go(15)
        assert isinstance(first_waiting(), int)
        await crawl.go()

    crawl.does(work)
    assert crawl.times == [(0, f"{A}/1"), (10, f"{A}/2"), (20, f"{A}/3"), (30, f"{A}/4")]


@pytest.mark.requirement("RFC-1", "WHY-2")
def test_nothing_of_an_origin_goes_out_before_its_policies_are_known(make: Make) -> None:
    """They are asked for once; what they refuse costs the host nothing."""
    crawl = make({A: delay(10), B: PRIVATE}, {A: 5})
    urls = [
        f"{origin}/{path}" for path in ("private/1", "1", "2", "private/2") for origin in (A, B)
    ]
    crawl.run(*urls)
    assert crawl.times == [
        (0, f"{B}/private/1"),
        (0, f"{B}/1"),
        (0, f"{B}/2"),
        (0, f"{B}/private/2"),
        (5, f"{A}/private/1"),
        (5, f"{A}/1"),
        (15, f"{A}/2"),
        (15, f"{A}/private/2"),
    ]
    assert crawl.refused == {url: "robots.disallow" for url in urls if "private" in url}
    assert crawl.files.asked == [(0, A), (0, B)]
    assert crawl.stats["scheduler/enqueued"] == crawl.stats["scheduler/dequeued"] == 8
    assert crawl.stats["scheduler/enqueued/memory"] == crawl.stats["scheduler/dequeued/memory"] == 8
    assert "comity/scheduler/left" not in crawl.stats


def test_what_is_known_to_be_refused_waits_for_nothing(make: Make) -> None:
    crawl = make({A: delay(100)})

    async def work() -> None:
        crawl.add(f"{A}/1", f"{A}/2", f"{A}/3")
        await crawl.go(50)
        assert crawl.add(f"{A}/private/1", f"{A}/4", f"{A}/private/2") == [True] * 3
        assert (len(crawl.scheduler), crawl.scheduler.has_pending_requests()) == (5, True)
        await crawl.go()
        assert (len(crawl.scheduler), crawl.scheduler.has_pending_requests()) == (0, False)
        crawl.add(f"{A}/private/3")
        assert (len(crawl.scheduler), crawl.scheduler.has_pending_requests()) == (1, True)
        await crawl.go()
        assert crawl.stats["scheduler/dequeued"] == 7

    crawl.does(work)
    assert crawl.times[:-1] == [
        (0, f"{A}/1"),
        (50, f"{A}/private/1"),
        (50, f"{A}/private/2"),
        (100, f"{A}/2"),
        (200, f"{A}/3"),
        (300, f"{A}/4"),
    ]


@pytest.mark.requirement("RFC-8")
def test_policies_that_have_become_stale_are_asked_for_again(make: Make) -> None:
    """One request goes out by them however short they are fresh."""
    crawl = make(COMITY_MIN_DELAY=60)
    crawl.files.sites[A] = lambda: crawl.files.opens(150)
    crawl.run(*(f"{A}/{number}" for number in range(5)))
    assert [time for time, _ in crawl.times] == [0, 60, 120, 180, 240]
    assert [round(time) for time, _ in crawl.files.asked] == [0, 180]
    crawl = make()
    crawl.files.sites[A] = lambda: crawl.files.opens(0)
    crawl.run(*(f"{A}/{number}" for number in range(3)))
    assert crawl.urls == [f"{A}/{number}" for number in range(3)]
    assert len(crawl.files.asked) == 3


@pytest.mark.requirement("RFC-8")
def test_who_is_judged_by_stale_policies_no_more(make: Make) -> None:
    """The site has changed its mind while the requests waited."""
    crawl = make(COMITY_MIN_DELAY=60)
    crawl.files.sites[A] = lambda: crawl.files.opens(100)

    async def work() -> None:
        crawl.add(f"{A}/1", f"{A}/private/2", f"{A}/private/3")
        await crawl.go(90)
        crawl.files.sites[A] = PRIVATE
        await crawl.go()

    crawl.does(work)
    assert crawl.refused == {f"{A}/private/3": "robots.disallow"}


@pytest.mark.requirement("RFC-8")
@pytest.mark.parametrize("wait", ["pace", "full", "visit-time", "retry-after"])
def test_nothing_goes_out_by_policies_that_became_stale_while_it_waited(
    make: Make, wait: str
) -> None:
    """Also not the first request for which they were asked for."""
    hours = (
        "User-agent: *\nVisit-time: 0820-0900\n" if wait == "visit-time" else OPEN
    )  # it is 08:16:40 UTC
    crawl = make(COMITY_MIN_DELAY=200 if wait == "pace" else 0, CONCURRENT_REQUESTS_PER_DOMAIN=1)
    crawl.page_takes = 200 if wait == "full" else 1
    crawl.files.sites[A] = lambda: PolicyFile(
        due=crawl.files.clock() + 60,
        copy=Fetched(status=200, body=(hours if crawl.now < 50 else PRIVATE).encode()),
    )

    async def work() -> None:
        if wait == "retry-after":
            crawl.own.pace.overloaded(A, 429, 200)
        elif wait != "visit-time":
            crawl.add("http://a.test/")  # at the same host
            await crawl.go(0.5)
        crawl.add(f"{A}/private/1", f"{A}/2")
        await crawl.go()

    crawl.does(work)
    assert crawl.refused == {f"{A}/private/1": "robots.disallow"}
    assert crawl.urls[-1] == f"{A}/2"
    assert (round(crawl.files.asked[-1][0], -1), crawl.files.asked[-1][1]) == (200, A)


@pytest.mark.requirement("RFC-8", "AUTX-2")
def test_nothing_goes_out_by_stale_policies_where_its_scope_was_waited_for(make: Make) -> None:
    """It was moved to a lane that was there, and that was not due."""
    preferences = {"/automation-preferences.txt": PREFERENCES}

    def files() -> dict[str, Any]:
        return {
            path: PolicyFile(due=crawl.files.clock() + 20, copy=copy)
            for path, copy in texts.items()
        }

    crawl = make()
    texts = {
        path: Fetched(status=200, body=text.encode())
        for path, text in ({"/robots.txt": OPEN} | preferences).items()
    }
    crawl.files.sites[A] = files

    async def work() -> None:
        crawl.add(f"{A}/slow/1", f"{A}/slow/2", f"{A}/slow/private/3")
        await crawl.go(30)
        texts["/robots.txt"] = Fetched(status=200, body=b"User-agent: *\nDisallow: /slow/private\n")
        await crawl.go()

    crawl.does(work)
    assert crawl.refused == {f"{A}/slow/private/3": "robots.disallow"}


@pytest.mark.requirement("RFC-8", "AUTX-2")
def test_policies_go_with_a_request_to_the_lane_of_its_scope(make: Make) -> None:
    """They are asked for once, however short they are fresh."""
    crawl = make()
    texts = {"/robots.txt": OPEN, "/automation-preferences.txt": PREFERENCES}
    crawl.files.sites[A] = lambda: {
        path: PolicyFile(due=crawl.files.clock(), copy=Fetched(status=200, body=text.encode()))
        for path, text in texts.items()
    }
    crawl.run(f"{A}/slow/1")
    assert (crawl.urls, len(crawl.files.asked)) == ([f"{A}/slow/1"], 1)


def test_higher_priority_goes_first_and_then_who_came_first(make: Make) -> None:
    crawl = make(takes={A: 1}, COMITY_MIN_DELAY=1)
    crawl.run(
        *(
            Request(f"{A}/{number}", priority=priority)
            for number, priority in enumerate((0, 5, 0, 5, -1))
        )
    )
    assert crawl.urls == [f"{A}/{number}" for number in (1, 3, 0, 2, 4)]


def test_origins_take_turns_whatever_their_priorities(make: Make) -> None:
    crawl = make()
    crawl.places = 1
    crawl.run(
        *(Request(f"{A}/{number}", priority=9) for number in range(4)),
        *(f"{B}/{number}" for number in range(3)),
        f"{C}/0",
    )
    assert crawl.urls == [
        f"{A}/0",
        f"{B}/0",
        f"{C}/0",
        f"{A}/1",
        f"{B}/1",
        f"{A}/2",
        f"{B}/2",
        f"{A}/3",
    ]


@pytest.mark.requirement("RATE-1")
def test_a_host_is_asked_at_its_pace_and_the_engine_only_when_it_is_due(make: Make) -> None:
    crawl = make({A: delay(7), B: delay(2), "http://a.test": delay(3)})
    crawl.page_takes = 0.5
    crawl.run(*(f"{origin}/{number}" for number in range(3) for origin in (A, B, "http://a.test")))
    on_a = [out.at for out in crawl.out if "a.test" in out.url]
    assert [after - before for before, after in pairwise(on_a)] == pytest.approx(
        [7.5] * 5, abs=0.01
    )
    on_b = [out.at for out in crawl.out if "b.test" in out.url]
    assert on_b == pytest.approx([0, 2.5, 5], abs=0.01)
    assert crawl.turns < 60


@pytest.mark.requirement("RATE-1")
def test_requests_at_once_to_a_host(make: Make) -> None:
    crawl = make(CONCURRENT_REQUESTS_PER_DOMAIN=2)
    crawl.page_takes = 1
    crawl.run(*(f"{origin}/{number}" for number in range(5) for origin in (A, B, "http://a.test")))
    assert crawl.most == {"a.test": 2, "b.test": 2}
    assert [round(out.at) for out in crawl.out if "a.test" in out.url] == [
        0,
        0,
        1,
        1,
        2,
        2,
        3,
        3,
        4,
        4,
    ]
    assert [round(out.at) for out in crawl.out if "b.test" in out.url] == [0, 0, 1, 1, 2]
    assert not any(
        limiter.queues or limiter.in_flight for limiter in crawl.own.pace._limiters.values()
    )


def test_what_never_reaches_the_network_takes_no_place(make: Make) -> None:
    crawl = make(CONCURRENT_REQUESTS_PER_DOMAIN=1)
    urls = [f"{A}/{number}" for number in range(4)]
    crawl.from_cache = set(urls)
    crawl.run(*urls)
    assert crawl.times == [(0, url) for url in urls]


def test_what_never_reaches_the_network_frees_its_host_at_once(make: Make) -> None:
    """Where there is nothing else to ask for, and soon where there is."""
    crawl = make(CONCURRENT_REQUESTS_PER_DOMAIN=1)

    async def work() -> None:
        crawl.add(f"{A}/1", f"{A}/2")
        assert crawl.scheduler.next_request() is None
        await asyncio.sleep(1)
        requests = [crawl.scheduler.next_request(), crawl.scheduler.next_request()]
        assert [request and request.url for request in requests] == [f"{A}/1", f"{A}/2"]

    crawl.does(work)
    assert crawl.stats["scheduler/dequeued"] == 2
    busy = make(CONCURRENT_REQUESTS_PER_DOMAIN=1)
    busy.places, busy.from_cache = 1, {f"{A}/1"}
    others = [f"{B}/{number}" for number in range(60)]
    busy.run(f"{A}/1", f"{A}/2", *others)
    assert 0.05 < busy.out[busy.urls.index(f"{A}/2")].at < 0.2


@pytest.mark.requirement("SEC-7")
def test_what_is_made_while_a_request_is_handled_is_led_there_by_its_site(make: Make) -> None:
    crawl = make()

    async def work() -> None:
        crawl.add(set_referrer_reach(Request(f"{A}/1"), Reach.LINK_LOCAL))
        assert crawl.scheduler.next_request() is None
        crawl.add(nobodys := Request(f"{B}/1"))
        assert KEY not in nobodys.meta
        await asyncio.sleep(1)
        assert crawl.scheduler.next_request() is not None
        crawl.add(of_site := Request(f"{B}/2"))
        assert of_site.meta[KEY] == Reach.LINK_LOCAL.value
        while crawl.scheduler.next_request():
            pass
        crawl.add(nobodys := Request(f"{B}/3"))
        assert KEY not in nobodys.meta

    crawl.does(work)


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize(("reach", "may"), [(Reach.PRIVATE, True), (Reach.PUBLIC, False)])
def test_where_the_server_is_that_the_operator_asked_for(
    make: Make, reach: Reach, may: bool
) -> None:
    """A site may lead to an inner server that the operator has asked for, not to one that turns out to be inside."""
    crawl = make()
    crawl.files.sites[A] = PolicyFile(
        due=EPOCH + crawl.clock.now + 100, copy=Fetched(status=200, body=OPEN.encode()), reach=reach
    )
    crawl.run(f"{A}/1")
    link = set_referrer_reach(Request(f"{A}/2"), Reach.PUBLIC)
    response = Response(link.url, request=link, ip_address=ip_address("10.0.0.1"))
    assert (crawl.own.referrals.check_response(link, response) is None) is may


@pytest.mark.requirement("SEC-7", "RFC-8")
def test_policies_that_were_fetched_for_who_may_lead_there(make: Make) -> None:
    """Who came before while they were fetched may not: they are for the one, and not for the other."""
    crawl = make(takes={A: 1})
    crawl.files.sites[A] = lambda: PolicyFile(
        due=crawl.files.clock(), copy=Fetched(status=200, body=OPEN.encode()), reach=Reach.PRIVATE
    )

    async def work() -> None:
        crawl.add(set_referrer_reach(Request(f"{A}/1"), Reach.PRIVATE))
        await crawl.go(0.5)
        crawl.add(set_referrer_reach(Request(f"{A}/2", priority=1), Reach.PUBLIC))
        await crawl.go()

    crawl.does(work)
    assert crawl.urls == [f"{A}/2", f"{A}/1"]
    assert crawl.refused == {f"{A}/2": "comity.inner-address"}


PREFERENCES = "scope: /slow\nrequest-limit: 1/minute\nallowed-methods: GET\n"


@pytest.mark.requirement("AUTX-2")
def test_a_slow_scope_does_not_hold_up_the_rest_of_its_site(make: Make) -> None:
    """Requests that waited before it was known are moved, and keep their place."""
    crawl = make(
        {A: {"/robots.txt": OPEN, "/automation-preferences.txt": PREFERENCES}},
        {A: 1},
        COMITY_MIN_DELAY=10,
    )
    urls = [f"{A}/{path}" for path in ("slow/1", "1", "slow/2", "2", "slow/3")]

    async def work() -> None:
        crawl.add(*urls)
        await crawl.go(0.5)
        crawl.add(Request(f"{A}/slow/first", priority=1))
        await crawl.go(15)
        crawl.add(f"{A}/slow/last", f"{A}/3")
        assert len(crawl.scheduler) == 6
        await crawl.go()
        assert len(crawl.scheduler) == 0

    crawl.does(work)
    slow = [(round(out.at), out.url.rpartition("/")[2]) for out in crawl.out if "slow" in out.url]
    assert [name for _, name in slow] == ["first", "1", "2", "3", "last"]
    assert all(after[0] - before[0] >= 60 for before, after in pairwise(slow))
    rest = [round(out.at) for out in crawl.out if "slow" not in out.url]
    assert len(rest) == 3
    assert rest[-1] < 50
    times = [out.at for out in crawl.out]
    assert all(after - before >= 10 for before, after in pairwise(times))


@pytest.mark.requirement("AUTX-2")
def test_who_waits_in_the_lane_of_the_origin_came_before(make: Make) -> None:
    """Whatever scope it is in, and though its scope was known when the other came."""
    preferences = PREFERENCES.replace("1/minute", "60/minute")
    crawl = make(
        {A: {"/robots.txt": OPEN, "/automation-preferences.txt": preferences}}, COMITY_MIN_DELAY=10
    )

    async def work() -> None:
        crawl.add(f"{A}/1", f"{A}/2", f"{A}/3", f"{A}/slow/1")
        await crawl.go(5)
        crawl.add(f"{A}/slow/2")
        await crawl.go()

    crawl.does(work)
    assert crawl.urls == [f"{A}/1", f"{A}/2", f"{A}/3", f"{A}/slow/1", f"{A}/slow/2"]


@pytest.mark.requirement("AUTX-3")
def test_requests_at_once_in_a_scope(make: Make) -> None:
    preferences = "scope: /few\nconcurrent-limit: 1\nallowed-methods: GET\n"
    crawl = make({A: {"/robots.txt": OPEN, "/automation-preferences.txt": preferences}})
    crawl.page_takes = 1
    crawl.run(
        *(f"{A}/few/{number}" for number in range(3)), *(f"{A}/{number}" for number in range(3))
    )
    assert [round(out.at) for out in crawl.out if "few" in out.url] == [0, 1, 2]
    assert [round(out.at) for out in crawl.out if "few" not in out.url] == [0, 0, 0]


@pytest.mark.requirement("AUTX-2")
def test_nobody_waits_until_all_of_a_scope_are_moved(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "MOVES", 3)
    crawl = make({A: {"/robots.txt": OPEN, "/automation-preferences.txt": PREFERENCES}})

    async def work() -> None:
        crawl.add(*(f"{A}/slow/{number}" for number in range(9)), f"{A}/1")
        assert crawl.scheduler.next_request() is None
        await asyncio.sleep(1)
        handed_out = []
        for _ in range(5):
            request = crawl.scheduler.next_request()
            handed_out.append(request and request.url)
            crawl.active.update([request] if request else [])
        assert handed_out == [f"{A}/slow/0", None, None, f"{A}/1", None]

    crawl.does(work)


@pytest.mark.requirement("RATE-4")
def test_a_host_that_is_too_slow_is_set_aside(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """What it refuses is refused, and nobody waits for the rest."""
    crawl = make({A: delay(3600), B: delay(300)}, JOBDIR="")
    crawl.run(f"{A}/private/1", f"{A}/1", f"{A}/2", f"{B}/1", f"{B}/2")
    assert crawl.times == [(0, f"{A}/private/1"), (0, f"{B}/1"), (300, f"{B}/2")]
    assert crawl.stats["comity/scheduler/set-aside"] == 2
    assert "comity/scheduler/left" not in crawl.stats
    assert (
        f"2 requests to {A} were set aside: its host is to be asked each 3600 s, at most 300 s (COMITY_MAX_DELAY); set JOBDIR to"
        " keep such requests" in caplog.text
    )
    assert B not in caplog.text


@pytest.mark.requirement("RATE-4")
@pytest.mark.parametrize(("hours", "goes_out"), [("0800-0900", False), ("1000-1100", True)])
def test_a_host_that_is_too_slow_at_other_hours_is_asked(
    make: Make, hours: str, goes_out: bool
) -> None:
    crawl = make({A: f"User-agent: *\nRequest-rate: 1/3600 {hours}\nDisallow: /private\n"})
    crawl.run(f"{A}/1")
    assert crawl.urls == [f"{A}/1"] * goes_out


@pytest.mark.requirement("RATE-4")
def test_a_host_that_was_too_slow_is_seen_again(make: Make) -> None:
    """Once its policies are stale, what they say now counts."""
    crawl = make({B: delay(299)})
    crawl.files.sites[A] = lambda: PolicyFile(
        due=crawl.files.clock() + 400,
        copy=Fetched(status=200, body=(delay(3600) if crawl.now < 300 else OPEN).encode()),
    )

    async def work() -> None:
        crawl.add(f"{A}/1", f"{A}/2", *(f"{B}/{number}" for number in range(4)))
        await crawl.go()
        assert not crawl.scheduler.has_pending_requests()

    crawl.does(work)
    assert [(round(at), url) for at, url in crawl.times if A in url] == [
        (600, f"{A}/1"),
        (600, f"{A}/2"),
    ]
    assert "comity/scheduler/set-aside" not in crawl.stats


@pytest.mark.requirement("RATE-4")
def test_the_hours_of_a_site_are_waited_for_when_they_are_near(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """It is 08:16:40 UTC, and others are crawled until 08:28."""
    hours = "User-agent: *\nVisit-time: {}\nDisallow: /private\n"
    crawl = make(
        {A: hours.format("0820-0900"), B: hours.format("0830-0900"), C: delay(110)},
        COMITY_MAX_DELAY=240,
    )

    async def work() -> None:
        crawl.add(f"{A}/1", f"{A}/2", f"{B}/1", *(f"{C}/{number}" for number in range(7)))
        await crawl.go(1)
        assert [queue.origin for queue in crawl.scheduler._waiting.queues.aside()] == [B]
        await crawl.go()

    crawl.does(work)
    assert [(round(at), url) for at, url in crawl.times if C not in url] == [
        (200, f"{A}/1"),
        (200, f"{A}/2"),
        (800, f"{B}/1"),
    ]
    late = make({A: hours.format("0920-0930"), B: hours.format("0830-0900")}, COMITY_MAX_DELAY=1200)
    late.run(f"{A}/private", f"{A}/1", f"{B}/1")
    assert late.refused == {f"{A}/private": "robots.disallow"}
    assert [url for url in late.urls if "private" not in url] == [f"{B}/1"]
    assert f"1 requests to {A} were set aside: it asks to come back later for" in caplog.text


@pytest.mark.requirement("RATE-4")
def test_a_host_that_wants_to_be_left_alone_for_long_is_set_aside(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """And one that is asked again in time is not."""
    for seconds, urls in ((299, [f"{A}/1", f"{A}/2"]), (400, [f"{A}/1"])):
        crawl = make(takes={A: 1})

        async def work(crawl: Crawl = crawl, seconds: int = seconds) -> None:
            crawl.add(f"{A}/1")
            await crawl.go()
            crawl.own.pace.overloaded(A, 429, seconds)
            crawl.add(f"{A}/2")
            await crawl.go()

        crawl.does(work)
        assert crawl.urls == urls
    assert (
        f"1 requests to {A} were set aside: its host is to be left alone for 400 s" in caplog.text
    )


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize(
    ("settings", "times"),
    [({"RETRY_TIMES": 2}, 3), ({"RETRY_ENABLED": False}, 1), ({"RETRY_TIMES": 0}, 1), ({}, 3)],
)
def test_what_cannot_be_had_is_asked_for_again(
    make: Make, settings: dict[str, Any], times: int
) -> None:
    """Then its requests are refused. Meanwhile nothing is asked of the host, and others go on."""
    crawl = make(**settings)
    crawl.files.sites[A] = lambda: crawl.files.fails(100)
    crawl.run(f"{A}/1", f"{B}/1", f"{A}/2")
    assert [(round(at), url) for at, url in crawl.files.asked if url == A] == [
        (100 * number, A) for number in range(times)
    ]
    at = {url: round(at) for at, url in crawl.times}
    assert at == {f"{B}/1": 0, f"{A}/1": 100 * (times - 1), f"{A}/2": 100 * (times - 1)}
    assert crawl.refused == dict.fromkeys((f"{A}/1", f"{A}/2"), "robots.unreachable")


@pytest.mark.requirement("RFC-7")
def test_a_site_that_recovers_is_asked_as_often_the_next_time(make: Make) -> None:
    crawl = make(RETRY_TIMES=1)
    answers = iter([crawl.files.fails(10), None, "again", None])

    def robots() -> PolicyFile:
        return crawl.files.fails(10) if next(answers) else crawl.files.opens(60)

    crawl.files.sites[A] = robots

    async def work() -> None:
        crawl.add(f"{A}/1")
        await crawl.go()
        await asyncio.sleep(100)
        crawl.add(f"{A}/2")
        await crawl.go()

    crawl.does(work)
    assert [round(at) for at, _ in crawl.files.asked] == [0, 10, 110, 120]
    assert (crawl.urls, crawl.refused) == ([f"{A}/1", f"{A}/2"], {})


@pytest.mark.requirement("RFC-7")
def test_lanes_of_one_origin_ask_for_its_policies_together(make: Make) -> None:
    """Two that wait for them count as one failure."""
    preferences = PREFERENCES.replace("1/minute", "60/minute")
    crawl = make(
        {A: {"/robots.txt": OPEN, "/automation-preferences.txt": preferences}},
        RETRY_TIMES=1,
        COMITY_MIN_DELAY=1,
    )

    async def work() -> None:
        crawl.add(f"{A}/slow/1", f"{A}/1")
        await crawl.go()
        crawl.add(*(f"{A}/{path}" for path in ("slow/2", "2", "slow/3", "3", "slow/4", "4")))
        crawl.clock.now += DAY
        crawl.files.sites[A] = lambda: crawl.files.fails(50)
        await crawl.go(40)
        crawl.files.sites[A] = OPEN
        await crawl.go()

    crawl.does(work)
    assert crawl.refused == {}
    assert len(crawl.out) == 8


@pytest.mark.requirement("RFC-7", "RATE-4")
def test_policies_that_are_not_to_be_asked_for_are_waited_for_within_bounds(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    crawl = make(COMITY_MAX_DELAY=200)
    crawl.files.sites[A] = lambda: crawl.files.fails(1000)
    crawl.run(f"{A}/1", f"{A}/2")
    assert (crawl.out, len(crawl.files.asked)) == ([], 1)
    assert crawl.stats["comity/scheduler/set-aside"] == 2
    assert (
        f"2 requests to {A} were set aside: its policies (HTTP status 503) are not to be asked for for 1000 s"
        in caplog.text
    )


def test_no_more_origins_are_asked_for_policies_at_a_time(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order in which they were wanted; others go on meanwhile."""
    monkeypatch.setattr(policy_fetches, "ORIGINS_AT_ONCE", 2)
    origins = [f"https://{number}.test" for number in range(6)]
    crawl = make(takes=dict.fromkeys(origins, 10) | {B: 1})

    async def work() -> None:
        crawl.add(f"{B}/1")
        await crawl.go()
        crawl.add(*(f"{origin}/" for origin in origins), f"{B}/2")
        await crawl.go(5)
        assert crawl.urls == [f"{B}/1", f"{B}/2"]
        assert crawl.files.under_way == 2
        await crawl.go()

    crawl.does(work)
    assert [(round(at), url) for at, url in crawl.files.asked[1:]] == [
        (1 + 10 * (number // 2), origin) for number, origin in enumerate(origins)
    ]


def test_policies_are_asked_for_while_no_request_can_go_out(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_fetches, "ORIGINS_AT_ONCE", 1)
    crawl = make()
    crawl.places, crawl.page_takes = 1, 1000

    async def work() -> None:
        crawl.add(f"{A}/1")
        await crawl.go(1)
        crawl.add(f"{B}/1", f"{C}/1", "http://a.test/")
        await crawl.go(100)
        assert len(crawl.files.asked) == 4

    crawl.does(work)
    assert crawl.urls == [f"{A}/1"]


@pytest.mark.requirement("RATE-2")
def test_a_request_that_is_held_comes_back_first_and_its_origin_waits(make: Make) -> None:
    crawl = make({A: PRIVATE})
    crawl.places = 1
    crawl.holds = {f"{A}/1": [20.0, 0.0]}

    async def work() -> None:
        crawl.add(Request(f"{A}/1", dont_filter=True), f"{A}/2", f"{B}/1", f"{B}/2")
        await crawl.go(5)
        assert len(crawl.scheduler) == 2
        assert crawl.scheduler.has_pending_requests()
        await crawl.go()

    crawl.does(work)
    assert crawl.times == [(0, f"{B}/1"), (0, f"{B}/2"), (20.1, f"{A}/1"), (20.1, f"{A}/2")]
    assert crawl.stats["comity/scheduler/held"] == 2
    assert crawl.stats["scheduler/enqueued"] == crawl.stats["scheduler/dequeued"] == 4
    assert "dupefilter/filtered" not in crawl.stats


def test_answers_of_hosts_that_are_gone_are_not_kept(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond those of the hosts that were asked last."""
    monkeypatch.setattr("comity.gate.fetching.fetcher.MAX_SITES", 10)
    crawl = make(RETRY_TIMES=1)
    hosts = [f"http://gone{number}.test" for number in range(100)]
    crawl.files.sites |= dict.fromkeys(hosts, lambda: crawl.files.fails(5))

    async def work() -> None:
        crawl.add(*(f"{host}/" for host in hosts))
        await crawl.go()

    crawl.does(work)
    assert [out.rule for out in crawl.out] == ["robots.unreachable"] * 100
    assert len(crawl.files.asked) == 200
    gc.collect()
    assert sum(isinstance(thing, OriginPolicies) for thing in gc.get_objects()) < 50


def test_only_what_was_handed_out_can_be_held(make: Make) -> None:
    """It frees its host, and does not come back at once whatever is asked for."""
    crawl = make(CONCURRENT_REQUESTS_PER_DOMAIN=1)

    async def work() -> None:
        crawl.add(f"{A}/1", f"{A}/2")
        assert not crawl.scheduler.hold(Request(f"{A}/1"), 1)
        crawl.scheduler.next_request()
        await asyncio.sleep(1)
        request = crawl.scheduler.next_request()
        assert request is not None
        crawl.active.add(request)
        crawl.in_progress.add(request)
        assert crawl.scheduler.next_request() is None
        assert crawl.scheduler.hold(request, -5)
        assert (len(crawl.scheduler), crawl.scheduler.has_pending_requests()) == (2, True)
        crawl.active.discard(request)
        crawl.add(request)
        assert crawl.scheduler.next_request() is None
        await asyncio.sleep(0.11)
        assert crawl.scheduler.next_request() is request
        assert len(crawl.scheduler) == 1
        crawl.active.add(request)
        crawl.answered(request)
        await crawl.go()

    crawl.does(work)
    assert crawl.urls == [f"{A}/2"]
    assert crawl.stats["comity/scheduler/held"] == 1


@pytest.mark.requirement("RATE-4")
def test_a_request_that_is_held_for_long_is_set_aside(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    crawl = make()
    crawl.holds = {f"{A}/1": [1000.0]}
    crawl.run(f"{A}/1", f"{A}/2")
    assert crawl.out == []
    assert f"2 requests to {A} were set aside: it asks to come back later for 1000 s" in caplog.text
    assert crawl.stats["scheduler/enqueued"] == 2
    assert crawl.stats.get("scheduler/dequeued", 0) == 0


@pytest.mark.requirement("SEC-7")
def test_urls_without_an_origin(make: Make) -> None:
    crawl = make()
    by_site = set_referrer_reach(Request("file:///etc/passwd"), Reach.PUBLIC)
    crawl.run("data:,1", "ftp://a.test/1", "file:///dev/null", by_site, f"{A}/1")
    assert crawl.refused == {
        "ftp://a.test/1": "comity.scheme",
        "file:///etc/passwd": "comity.inner-address",
    }
    assert sorted(crawl.urls) == [
        "data:,1",
        "file:///dev/null",
        "file:///etc/passwd",
        "ftp://a.test/1",
        f"{A}/1",
    ]
    assert [origin for _, origin in crawl.files.asked] == [A]


@pytest.mark.requirement("SEC-7")
def test_an_inner_site_may_be_asked_for_by_the_operator_only(make: Make) -> None:
    """What a site may not know costs the operator's own requests nothing."""
    inner = "http://10.0.0.1"
    crawl = make()
    crawl.files.sites[inner] = lambda: BarredError("its server is at a private address")

    async def work() -> None:
        crawl.add(
            set_referrer_reach(Request(f"{inner}/1"), Reach.PUBLIC),
            set_referrer_reach(Request(f"{inner}/2"), Reach.PUBLIC),
        )
        await crawl.go()
        assert crawl.refused == dict.fromkeys((f"{inner}/1", f"{inner}/2"), "comity.inner-address")
        assert len(crawl.files.asked) == 1
        crawl.files.sites[inner] = lambda: PolicyFile(
            due=crawl.files.clock() + DAY,
            copy=Fetched(status=200, body=PRIVATE.encode()),
            reach=Reach.PRIVATE,
        )
        crawl.add(
            f"{inner}/3",
            set_referrer_reach(Request(f"{inner}/4"), Reach.PUBLIC),
            f"{inner}/private",
        )
        await crawl.go()

    crawl.does(work)
    assert [crawl.refused.get(f"{inner}/{path}", "") for path in (3, 4, "private")] == [
        "",
        "",
        "robots.disallow",
    ]


@pytest.mark.requirement("SEC-7")
def test_policies_of_an_inner_site_are_not_for_who_may_not_lead_there(make: Make) -> None:
    """They are known in the crawl, as it asked for them as long as nobody knew where the server is."""
    crawl = make(takes={A: 1})
    crawl.files.sites[A] = PolicyFile(
        due=EPOCH + crawl.clock.now + 100,
        copy=Fetched(status=200, body=PRIVATE.encode()),
        reach=Reach.PRIVATE,
    )
    crawl.run(
        set_referrer_reach(Request(f"{A}/1"), Reach.PUBLIC),
        set_referrer_reach(Request(f"{A}/2"), Reach.PRIVATE),
    )
    assert crawl.refused == {f"{A}/1": "comity.inner-address"}


def test_a_crawl_that_ends_says_what_is_left(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """It waits for no policies any more, and nothing wakes it."""
    crawl = make({A: delay(100)}, {B: 1000})

    async def work() -> None:
        crawl.add(f"{A}/1", f"{A}/2", f"{A}/3", f"{B}/1", f"{B}/2")
        await crawl.go(10)
        assert crawl.files.under_way == 1
        await crawl.close()
        assert not [task for task in asyncio.all_tasks() if "_fetch" in repr(task)]
        woken = crawl.woken
        await asyncio.sleep(200)
        assert crawl.woken == woken

    crawl.does(work, is_killed=True)
    assert crawl.urls == [f"{A}/1"]
    assert crawl.now < 220
    assert crawl.stats["comity/scheduler/left"] == 4
    assert crawl.stats["scheduler/dequeued"] == 1
    assert "comity/scheduler/set-aside" not in crawl.stats
    assert caplog.messages == ["4 requests were still waiting when the crawl ended (finished)"]


def test_a_crawl_that_is_ending_asks_for_no_more_policies(make: Make) -> None:
    crawl = make()

    async def work() -> None:
        crawl.slot.closing = object()
        crawl.add(f"{A}/1")
        await crawl.go(10)

    crawl.does(work)
    assert (crawl.files.asked, crawl.out) == ([], [])


def test_duplicates_are_filtered_unless_the_request_says_otherwise(make: Make) -> None:
    crawl = make()
    taken: list[bool] = []

    async def work() -> None:
        taken.extend(
            crawl.add(
                f"{A}/1",
                f"{A}/1",
                Request(f"{A}/1", dont_filter=True),
                Request(f"{A}/1", dont_filter=True),
            )
        )
        await crawl.go()
        taken.extend(crawl.add(f"{A}/1"))

    crawl.does(work)
    assert taken == [True, False, True, True, False]
    assert crawl.urls == [f"{A}/1"] * 3
    assert crawl.stats["dupefilter/filtered"] == 2
    assert crawl.stats["scheduler/enqueued"] == 3


@pytest.mark.parametrize(("settings", "number"), [({}, 1), ({"DUPEFILTER_DEBUG": True}, 3)])
def test_duplicates_are_logged_as_scrapy_does(
    make: Make,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    settings: dict[str, Any],
    number: int,
) -> None:
    caplog.set_level(logging.DEBUG)
    crawl = make(JOBDIR=str(tmp_path / "job"), **settings)
    crawl.run(*[f"{A}/1"] * 4)
    assert caplog.text.count(f"Filtered duplicate request: <GET {A}/1>") == number


def test_what_only_wakes_the_engine_goes_nowhere(make: Make) -> None:
    crawl = make()

    async def work() -> None:
        assert crawl.scheduler.enqueue_request(WAKE)
        assert len(crawl.scheduler) == 0
        assert crawl.scheduler.next_request() is None

    crawl.does(work)
    assert "scheduler/enqueued" not in crawl.stats


def test_without_asyncio_no_crawl_begins(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    crawler = make().crawler
    monkeypatch.setattr(scheduler, "is_asyncio_available", lambda: False)
    assert isinstance(Scheduler.from_crawler(crawler), Scheduler)  # in the unit test of a project
    crawler.crawling = True
    with pytest.raises(NotConfigured, match="AsyncioSelectorReactor"):
        Scheduler.from_crawler(crawler)


def _of_no_spider(response: object) -> None:
    """A callback that cannot be stored."""


class Filter(BaseDupeFilter):
    """One of a project's own, that knows /seen."""

    events: list[str] = []  # noqa: RUF012

    @classmethod
    def from_crawler(cls, crawler: Any) -> Filter:
        cls.events = []
        return cls()

    def open(self) -> Any:
        self.events.append("open")

    async def _close(self) -> None:
        await asyncio.sleep(1)
        self.events.append("closed")

    def close(self, reason: str) -> Any:
        from scrapy.utils.defer import deferred_from_coro

        self.events.append(reason)
        return deferred_from_coro(self._close())

    def request_seen(self, request: Request) -> bool:
        return "seen" in request.url

    def log(self, request: Request, spider: Spider) -> None:
        self.events.append(f"{request.url} {spider.name}")


@pytest.mark.parametrize("folder", ["", "job"])
def test_the_filter_of_a_project_is_asked(
    make: Make, folder: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    crawl = make(DUPEFILTER_CLASS=Filter, JOBDIR=str(tmp_path / folder) if folder else "")
    crawl.run(f"{A}/1", f"{A}/seen", f"{A}/1", Request(f"{A}/seen", dont_filter=True))
    assert crawl.urls == [f"{A}/1", f"{A}/1", f"{A}/seen"]
    assert Filter.events == ["open", f"{A}/seen pages", "finished", "closed"]
    assert ("DUPEFILTER_CLASS is not Scrapy's own" in caplog.text) is bool(folder)


def killed(folder: Path) -> Path:
    """What is left where the process that has the folder is killed now."""
    copy = folder.with_name(f"{folder.name}-killed")
    copy.mkdir()
    for file in folder.iterdir():
        shutil.copyfile(file, copy / file.name)
    return copy


@pytest.mark.requirement("SEC-6")
def test_a_killed_crawl_goes_on_with_all_that_was_not_done(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What was out is asked for again, what is done is not. The order stays."""
    caplog.set_level(logging.INFO)
    crawl = make({A: delay(10)}, JOBDIR=str(tmp_path / "job"))
    copies: list[Path] = []

    async def work() -> None:
        crawl.page_takes = 3
        crawl.add(
            *(
                Request(f"{A}/{number}", priority=priority)
                for number, priority in enumerate((0, 5, 0, 0))
            )
        )
        crawl.add(f"{A}/private")
        await crawl.go(15)
        assert crawl.urls == [f"{A}/1", f"{A}/0"]
        crawl.add(Request(f"{A}/4", priority=1))
        await asyncio.sleep(0.2)
        copies.append(killed(tmp_path / "job"))

    crawl.does(work)
    again = make({A: delay(10)}, JOBDIR=str(copies[0]))

    async def rest() -> None:
        assert (len(again.scheduler), again.scheduler.has_pending_requests()) == (5, True)
        assert again.add(f"{A}/1", f"{A}/3", f"{A}/private") == [False, False, False]
        await again.go()

    again.does(rest)
    assert again.urls == [f"{A}/{name}" for name in (4, 0, 2, 3, "private")]
    assert again.refused == {f"{A}/private": "robots.disallow"}
    assert again.stats["scheduler/dequeued/disk"] == 5
    assert "JOBDIR: the crawl goes on with 5 requests that wait" in caplog.text
    last = make(JOBDIR=str(copies[0]))
    caplog.clear()
    last.run()
    assert last.out == []
    assert "goes on" not in caplog.text


@pytest.mark.requirement("SEC-6")
def test_a_crawl_that_ends_keeps_what_waits(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is set aside too; what was refused is done."""
    crawl = make({A: delay(100), B: delay(1000)}, JOBDIR=str(tmp_path / "job"))

    async def work() -> None:
        crawl.add(f"{A}/1", f"{A}/2", f"{A}/private", f"{B}/private", f"{B}/1")
        await crawl.go(20)
        crawl.add(f"{A}/private/2")
        await crawl.go(1)

    crawl.does(work)
    assert crawl.stats["scheduler/enqueued/disk"] == 6
    assert (
        "2 requests were still waiting when the crawl ended (finished); JOBDIR keeps them"
        in caplog.text
    )
    assert "at most 300 s (COMITY_MAX_DELAY); JOBDIR keeps them" in caplog.text
    again = make(JOBDIR=str(tmp_path / "job"))
    again.run()
    assert sorted(again.urls) == [f"{A}/2", f"{A}/private", f"{B}/1"]


@pytest.mark.requirement("SEC-6")
def test_what_cannot_be_stored_waits_in_memory(make: Make, tmp_path: Path) -> None:
    """It is seen when it is done: a crawl that goes on asks for it when it is led there again."""
    crawl = make({A: delay(10)}, JOBDIR=str(tmp_path / "job"))
    copies: list[Path] = []

    async def work() -> None:
        crawl.add(*(Request(f"{A}/{number}", callback=_of_no_spider) for number in range(3)))
        crawl.add(Request(f"{A}/3", callback=_of_no_spider, dont_filter=True), f"{A}/4")
        crawl.add(Request(f"{A}/private", callback=_of_no_spider))
        assert crawl.add(f"{A}/1", f"{A}/3") == [False, True]
        await crawl.go(15)
        await asyncio.sleep(0.2)
        copies.append(killed(tmp_path / "job"))

    crawl.does(work)
    assert crawl.stats["scheduler/unserializable"] == crawl.stats["scheduler/enqueued/memory"] == 5
    assert crawl.stats["scheduler/enqueued/disk"] == 2
    assert crawl.urls == [f"{A}/0", f"{A}/1"]
    again = make(JOBDIR=str(copies[0]))

    async def rest() -> None:
        assert len(again.scheduler) == 2
        assert again.add(*(f"{A}/{name}" for name in (0, 1, 2, "private"))) == [
            False,
            False,
            True,
            True,
        ]
        await again.go()

    again.does(rest)
    assert sorted(again.urls) == [f"{A}/{name}" for name in (2, 3, 4, "private")]


@pytest.mark.requirement("SEC-6", "STATE-3")
def test_a_request_that_is_stored_nowhere_stays_when_its_host_is_given_back(
    make: Make, tmp_path: Path
) -> None:
    """Others go on with the requests that they can read."""
    crawl = make({A: delay(10)}, JOBDIR=str(tmp_path / "job"))

    async def work() -> None:
        crawl.add(f"{A}/1", Request(f"{A}/2", callback=_of_no_spider), f"{A}/3", f"{B}/1")
        assert crawl.scheduler._waiting.waiting("a.test") == 2
        await crawl.go(1)  # one of them goes out
        assert crawl.scheduler._waiting.waiting("a.test") == 1
        assert len(crawl.scheduler._waiting.forget("a.test")) == 1
        assert (crawl.scheduler._waiting.waiting("a.test"), len(crawl.scheduler)) == (0, 1)
        await crawl.go()

    crawl.does(work)
    assert sorted(crawl.urls) == [f"{A}/1", f"{A}/2", f"{B}/1"]
    assert crawl.times[-1] == (10.0, f"{A}/2")


@pytest.mark.requirement("SEC-6", "STATE-3")
def test_a_host_can_be_given_back_while_its_policies_are_not_fetched_yet(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue that was emptied still stands in the line for fetches, before the new queue."""
    monkeypatch.setattr(policy_fetches, "ORIGINS_AT_ONCE", 1)
    crawl = make(takes={B: 5}, JOBDIR=str(tmp_path / "job"))

    async def work() -> None:
        crawl.add(f"{B}/1", f"{A}/1", Request(f"{A}/2", callback=_of_no_spider))
        assert len(crawl.scheduler._waiting.forget("a.test")) == 1
        await crawl.go()
        assert (len(crawl.scheduler), crawl.scheduler.has_pending_requests()) == (0, False)
        crawl.add(f"{A}/3")
        await crawl.go()

    crawl.does(work)
    assert crawl.urls == [f"{B}/1", f"{A}/2", f"{A}/3"]


@pytest.mark.requirement("SEC-6")
def test_a_request_is_done_when_its_callback_is_through(make: Make, tmp_path: Path) -> None:
    crawl = make(JOBDIR=str(tmp_path / "job"))
    copies: list[Path] = []

    async def work() -> None:
        crawl.add(f"{A}/1")
        await asyncio.sleep(1)
        request = crawl.scheduler.next_request()
        assert request is not None
        crawl.active.add(request)
        crawl.in_progress.add(request)
        await asyncio.sleep(1)
        copies.append(killed(tmp_path / "job"))
        crawl.answered(request)
        await asyncio.sleep(0.051)
        (tmp_path / "job").rename(tmp_path / "done")
        killed(tmp_path / "done")
        (tmp_path / "done").rename(tmp_path / "job")

    crawl.does(work)
    for folder, urls in ((copies[0], [f"{A}/1"]), (tmp_path / "done-killed", [])):
        again = make(JOBDIR=str(folder))
        again.run()
        assert again.urls == urls


@pytest.mark.requirement("SEC-6")
def test_what_cannot_be_read_is_said_and_kept(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others go on."""
    crawl = make({A: delay(1000), B: delay(1000)}, JOBDIR=str(tmp_path / "job"))
    callbacks = (None, crawl.spider.parse_page, None, crawl.spider.parse_page)
    crawl.run(
        *(Request(f"{A}/{number}", callback=callback) for number, callback in enumerate(callbacks)),
        Request(f"{B}/1", callback=crawl.spider.parse_page),
    )

    async def work(again: Crawl) -> None:
        assert len(again.scheduler) == 5
        await again.go()
        assert (len(again.scheduler), again.scheduler.has_pending_requests()) == (0, False)

    with monkeypatch.context() as later:
        later.delattr(Pages, "parse_page")
        again = make(JOBDIR=str(tmp_path / "job"))
        again.does(partial(work, again))

    assert sorted(again.urls) == [f"{A}/0", f"{A}/2"]
    assert again.stats["comity/scheduler/unreadable"] == 3
    assert "comity/scheduler/left" not in again.stats
    assert caplog.text.count("cannot be read") == 3
    last = make(JOBDIR=str(tmp_path / "job"))
    last.run()
    assert sorted(last.urls) == [f"{A}/1", f"{A}/3", f"{B}/1"]


class FullJournal(Journal):
    """On a disk that is full."""

    flushed = 0
    is_full = True

    def flush(self) -> None:
        FullJournal.flushed += 1
        if FullJournal.is_full:
            raise OSError("no space left")
        super().flush()


@pytest.mark.requirement("SEC-6")
def test_a_full_disk_is_said_once_a_minute(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The crawl goes on, and all is written as soon as it can be."""
    monkeypatch.setattr(storages, "Journal", FullJournal)
    FullJournal.flushed, FullJournal.is_full = 0, True
    crawl = make({A: delay(290)}, JOBDIR=str(tmp_path / "job"))

    async def work() -> None:
        crawl.add(f"{A}/1", f"{A}/2")
        await crawl.go(59)
        assert caplog.text.count("JOBDIR: no space left; comity tries again") == 1
        await crawl.go(2)
        assert caplog.text.count("JOBDIR: no space left; comity tries again") == 2
        assert FullJournal.flushed > 1000
        FullJournal.is_full = False
        await asyncio.sleep(0.1)
        monkeypatch.setattr(storages, "Journal", Journal)
        assert FullJournal.flushed > 1000
        flushed = FullJournal.flushed
        FullJournal.is_full = True
        await crawl.close()
        assert "JOBDIR: no space left; it lacks the latest changes" in caplog.text
        await asyncio.sleep(1)
        assert FullJournal.flushed == flushed + 1  # nothing is written any more

    crawl.does(work, is_killed=True)
    again = make(JOBDIR=str(tmp_path / "job"))
    again.run()
    assert again.urls == [f"{A}/2"]


@pytest.mark.requirement("SEC-6")
def test_a_damaged_queue_ends_the_crawl_with_a_line(make: Make, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / NAME).write_bytes(b"damaged" * 1000)
    crawl = make(JOBDIR=str(tmp_path / "job"))
    with pytest.raises(SettingsError, match="set JOBDIR to another folder") as caught:
        crawl.run()
    assert isinstance(caught.value, PolicyError)
    assert crawl.engine.spider is None  # Scrapy closes nothing that it has not opened


def test_a_queue_without_a_spider(make: Make, tmp_path: Path) -> None:
    """In the unit test of a project."""
    crawl = make(JOBDIR=str(tmp_path / "job"))
    crawl.crawler.spider = None
    crawl.run(Request(f"{A}/1", callback=crawl.spider.parse_page))
    assert crawl.urls == [f"{A}/1"]
    assert crawl.stats["scheduler/enqueued/disk"] == 1


@pytest.mark.requirement("SEC-6")
def test_a_request_that_is_held_survives(make: Make, tmp_path: Path) -> None:
    crawl = make(JOBDIR=str(tmp_path / "job"))
    crawl.holds = {f"{A}/1": [100.0]}
    copies: list[Path] = []

    async def work() -> None:
        crawl.add(f"{A}/1")
        await crawl.go(50)
        copies.append(killed(tmp_path / "job"))
        await crawl.go()

    crawl.does(work)
    assert crawl.urls == [f"{A}/1"]
    again = make(JOBDIR=str(copies[0]))
    again.run()
    assert again.urls == [f"{A}/1"]
    last = make(JOBDIR=str(tmp_path / "job"))
    last.run()
    assert last.out == []


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("dupefilter", ["scrapy.dupefilters.RFPDupeFilter", Filter])
def test_what_scrapys_own_scheduler_has_left_is_taken_over(
    make: Make, tmp_path: Path, dupefilter: Any
) -> None:
    """With what was seen, where that filter is Scrapy's own."""
    settings = {
        "JOBDIR": str(tmp_path / "job"),
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
    }
    before = make(**settings)
    left = ScrapyScheduler.from_crawler(before.crawler)
    left.open(before.spider)
    for number in range(2):
        assert left.enqueue_request(Request(f"{A}/{number}", callback=before.spider.parse_page))
    left.close("finished")
    crawl = make(**settings, DUPEFILTER_CLASS=dupefilter)

    async def work() -> None:
        assert len(crawl.scheduler) == 2
        assert crawl.add(f"{A}/0") == [dupefilter is Filter]
        await crawl.go()

    crawl.does(work)
    assert set(crawl.urls) == {f"{A}/0", f"{A}/1"}


@pytest.mark.requirement("SEC-6", "AUTX-2")
def test_a_request_of_a_slow_scope_keeps_its_place_in_jobdir(make: Make, tmp_path: Path) -> None:
    sites = {A: {"/robots.txt": OPEN, "/automation-preferences.txt": PREFERENCES}}
    crawl = make(sites, JOBDIR=str(tmp_path / "job"))

    async def work() -> None:
        crawl.add(*(f"{A}/slow/{number}" for number in range(3)), f"{A}/1")
        await crawl.go(10)
        assert sorted(crawl.urls) == [f"{A}/1", f"{A}/slow/0"]

    crawl.does(work)
    again = make(sites, JOBDIR=str(tmp_path / "job"))
    again.run()
    assert again.urls == [f"{A}/slow/1", f"{A}/slow/2"]
