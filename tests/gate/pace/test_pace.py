"""When a request may go out, by a clock that moves when there is nothing to do until later."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import weakref
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from scrapy.http import Request
from scrapy.settings import Settings

from comity.cluster.steps.turns import host_of
from comity.crawler.scrapy_internals import ScrapyRun
from comity.gate.pace import pace as module
from comity.gate.pace.ledger import PaceLimit, RateLedger
from comity.gate.pace.limiter import Limiter, slowest
from comity.gate.pace.pace import Pace
from comity.gate.request.passage import Passages
from comity.gate.run.flights import ClosingError
from comity.policies import Agent, Decision, Site, Verdict
from comity.policies.syntax.windows import Limits, Window
from tests.crawler.clock import EPOCH, Clock, Loop

URL = "https://a.test/"
AGENT = Agent("testbot")
ALLOWED = Decision(verdict=Verdict.ALLOW, reasons=())
SCOPE = "https://a.test 1"


def site(
    robots: str = "User-agent: *\nDisallow:\n",
    preferences: str = "",
    origin: str = "https://a.test",
) -> Site:
    return Site.from_files(
        origin,
        {"/robots.txt": robots.encode(), "/automation-preferences.txt": preferences.encode()},
    )


SITE = site()


class Crawl:
    """The parts of a crawl that the pace uses."""

    def __init__(
        self, path: Path, clock: Clock, settings: Mapping[str, Any], min_delay: float
    ) -> None:
        self.clock = clock
        self.woken = 0
        self.slot = SimpleNamespace(closing=None, nextcall=SimpleNamespace(schedule=self._wake))
        self.active: set[Request] = set()
        engine = SimpleNamespace(
            spider=object(), _slot=self.slot, downloader=SimpleNamespace(active=self.active)
        )
        crawler: Any = SimpleNamespace(settings=Settings(dict(settings)), engine=engine)
        self.ledger = RateLedger(path)
        self.pace = Pace(
            Passages(),
            ScrapyRun(crawler),
            self.ledger,
            crawler.settings,
            min_delay=min_delay,
            max_delay=300.0,
        )
        self.freed: list[Limiter] = []
        self.parked: set[Limiter] = set()  # limiters that a queue of the scheduler waits for
        self.pace.freed = self._unpark

    def _wake(self) -> None:
        self.woken += 1

    def _unpark(self, limiter: Limiter) -> bool:
        self.freed.append(limiter)
        return limiter in self.parked

    @property
    def wall(self) -> float:
        return EPOCH + self.clock.now

    def start(
        self, *limiters: Limiter, url: str = URL, handed_out: bool = True, grant: int = 0
    ) -> Request:
        request = Request(url)
        self.active.add(request)
        self.pace.start(request, limiters, handed_out=handed_out, grant=grant)
        assert self.pace.sends(request)
        return request

    def answer(self, request: Request) -> None:
        self.pace.settle_start(request)

    def leave(self, request: Request) -> None:
        self.active.discard(request)
        self.pace.end_flight(request)

    async def acquire(
        self, *limiters: Limiter, at_most: float = 300.0, request: Request | None = None
    ) -> float | None:
        request = request or Request(URL)
        self.active.add(request)
        too_long = await self.pace.acquire(request, limiters, at_most=at_most)
        assert self.pace.sends(request)
        return too_long


T = TypeVar("T")
Make = Callable[..., Crawl]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "monotonic", lambda: clock.now)
    monkeypatch.setattr(module, "time", lambda: EPOCH + clock.now)
    monkeypatch.setattr("comity.gate.pace.ledger.time", lambda: EPOCH + clock.now)
    monkeypatch.setattr(module, "call_later", clock.call_later)
    return clock


@pytest.fixture
def make(clock: Clock, tmp_path: Path) -> Iterator[Make]:
    made: list[Crawl] = []

    def make(min_delay: float = 0.0, **settings: Any) -> Crawl:
        made.append(Crawl(tmp_path / "pace.sqlite", clock, settings, min_delay))
        return made[-1]

    yield make
    for crawl in made:
        crawl.pace.close()


def run(clock: Clock, does: Awaitable[T]) -> T:
    async def main() -> T:
        return await does

    with asyncio.Runner(loop_factory=lambda: Loop(clock)) as runner:
        return runner.run(main())


@pytest.mark.requirement("RATE-1")
@pytest.mark.parametrize(
    ("min_delay", "settings", "delay", "most"),
    [
        (0, {"CONCURRENT_REQUESTS_PER_DOMAIN": 8}, 0, 8),
        (0, {"CONCURRENT_REQUESTS_PER_DOMAIN": 1}, 0, 1),
        (0, {"CONCURRENT_REQUESTS_PER_DOMAIN": 0}, 0, 1),
        (0, {"CONCURRENT_REQUESTS_PER_DOMAIN": 2}, 0, 2),
        (0.5, {}, 0.5, 1),
        (0.5, {"DOWNLOAD_DELAY": 2}, 2, 1),
        (3, {"DOWNLOAD_DELAY": 2}, 3, 1),
        (0, {"DOWNLOAD_SLOTS": {"a.test": {"delay": 4}}}, 4, 1),
        (5, {"DOWNLOAD_SLOTS": {"a.test": {"delay": 4}}}, 5, 1),
        (0, {"DOWNLOAD_SLOTS": {"a.test": {"concurrency": 3}}}, 0, 3),
        (0, {"DOWNLOAD_SLOTS": {"a.test": {"concurrency": 0}}}, 0, 1),
        (0, {"DOWNLOAD_SLOTS": {"a.test": {"concurrency": 2}, "": {"concurrency": 5}}}, 0, 2),
        (0, {"DOWNLOAD_SLOTS": {"b.test": {"delay": 4, "concurrency": 3}}}, 0, 8),
        (0, {"AUTOTHROTTLE_START_DELAY": 7}, 0, 8),
        (0, {"AUTOTHROTTLE_START_DELAY": 7, "AUTOTHROTTLE_ENABLED": True}, 7, 1),
        (
            0,
            {"AUTOTHROTTLE_START_DELAY": 7, "AUTOTHROTTLE_ENABLED": True, "DOWNLOAD_DELAY": 9},
            9,
            1,
        ),
    ],
)
def test_what_the_operator_limits(
    make: Make, min_delay: float, settings: dict[str, Any], delay: float, most: int
) -> None:
    host = make(min_delay, **settings).pace.host(URL)
    assert (host.delay(EPOCH), host.most, host.name) == (delay, most, "a.test")


def test_a_host_is_its_name_whatever_the_scheme_and_the_port(make: Make) -> None:
    pace = make().pace
    hosts = [
        pace.host(url)
        for url in (URL, "http://A.test/x", "https://a.test:8443/", "https://b.test/", "data:,x")
    ]
    assert [host is hosts[0] for host in hosts] == [True, True, True, False, False]
    assert [host.name for host in hosts] == ["a.test"] * 3 + ["b.test", ""]


@pytest.mark.requirement("RATE-1")
def test_a_host_is_the_same_with_a_dot_behind_its_name(make: Make) -> None:
    pace = make(DOWNLOAD_SLOTS={"a.test": {"delay": 3}}).pace
    host, dotted = pace.host(URL), pace.host("http://a.test.:8080/x")
    assert dotted is host
    for origin in ("https://a.test", "https://a.test."):
        limits = Limits(f"{origin} 1", (Window(1, 5.0),), None, unreadable=False)
        # The turns of both are at this name in COMITY_STATE.
        assert host_of(pace.scope(limits).limits) == host.name
    pace.back_off("https://a.test./", 60.0)
    assert pace.try_acquire((host,)) is None


@pytest.mark.requirement("RATE-1", "AUTX-2", "AUTX-3")
def test_a_request_waits_for_its_host_and_its_scopes(make: Make) -> None:
    pace = make().pace
    lines = "request-limit: 60/minute\nconcurrent-limit: 2"
    limiting = site("User-agent: *\nCrawl-delay: 3", f"scope: /a\n{lines}\nallowed-methods: GET\n")
    host, scope = pace.limiters(AGENT, f"{URL}a", limiting)
    assert pace.limiters(AGENT, URL, limiting) == (host,)
    assert (host.windows, host.limits) == ((Window(1, 3),), (PaceLimit("a.test", (Window(1, 3),)),))
    assert (scope.windows, scope.most, scope.concurrent) == ((Window(60, 60),), 2, 2)
    assert pace.limiters(AGENT, f"{URL}a", limiting) == (host, scope)
    other = site("User-agent: *\nCrawl-delay: 5", origin="http://a.test")
    assert pace.limiters(AGENT, "http://a.test/", other) == (host,)
    assert host.windows == (Window(1, 3), Window(1, 5))


@pytest.mark.requirement("AUTX-2", "AUTX-3")
def test_limits_of_a_scope(make: Make) -> None:
    """An unreadable limit counts as one request in COMITY_MAX_DELAY seconds."""
    pace = make().pace
    scope = pace.scope(Limits(SCOPE, (Window(5, 60),), None))
    assert (scope.windows, scope.name) == ((Window(5, 60),), SCOPE)
    assert scope.most == 5
    assert pace.scope(Limits(SCOPE, (Window(5, 60),), None, unreadable=True)) is scope
    assert scope.windows == (Window(5, 60), Window(1, 300))
    pace.scope(Limits(SCOPE, (), 3))
    assert (len(scope.windows), scope.most) == (0, 3)
    pace.scope(Limits(SCOPE, (), 4))
    assert scope.most == 4
    pace.scope(Limits(SCOPE, (), None))
    assert scope.most > 10_000
    assert scope.limits == ()
    assert pace.scope(Limits("https://a.test 2", (), 1)) is not scope


@pytest.mark.requirement("RATE-1", "RATE-2")
def test_a_delay_counts_from_the_headers(make: Make, clock: Clock) -> None:
    crawl = make(2.0)
    host = crawl.pace.host(URL)
    grant = crawl.pace.try_acquire((host,))
    assert grant
    request = crawl.start(host, grant=grant)
    assert (host.in_flight, host.full) == (1, True)
    clock.now += 5
    assert crawl.pace.try_acquire((host,)) is None  # another crawl would get no grant either
    crawl.answer(request)
    assert (host.last, host.free_at) == (clock.now, clock.now + 2)
    clock.now += 1
    crawl.answer(request)  # the end of the body does not count
    crawl.leave(request)
    assert (host.last, host.free_at, host.in_flight) == (clock.now - 1, clock.now + 1, 0)
    assert crawl.pace.try_acquire((host,)) is None
    assert host.free_at == pytest.approx(clock.now + 1)
    clock.now += 1.001
    assert crawl.pace.try_acquire((host,))


@pytest.mark.requirement("RATE-1", "RATE-2")
def test_a_request_that_fails_counts_from_then(make: Make, clock: Clock) -> None:
    crawl, other = make(2.0), make(2.0)
    host = crawl.pace.host(URL)
    request = crawl.start(host, grant=crawl.pace.try_acquire((host,)) or 0)
    clock.now += 5
    crawl.leave(request)
    assert (host.last, host.free_at, host.in_flight) == (clock.now, clock.now + 2, 0)
    theirs = other.pace.host(URL)
    assert other.pace.try_acquire((theirs,)) is None
    assert theirs.free_at == pytest.approx(clock.now + 2)
    crawl.leave(request)  # it is not counted twice
    assert host.in_flight == 0


@pytest.mark.requirement("RATE-2")
def test_a_request_that_never_goes_out_counts_as_nothing(make: Make, clock: Clock) -> None:
    """Another middleware refuses it, or answers it from a cache."""
    crawl, other = make(2.0), make(2.0)
    host, theirs = crawl.pace.host(URL), other.pace.host(URL)
    request = crawl.start(host, grant=crawl.pace.try_acquire((host,)) or 0)
    assert not crawl.pace.forget_departed()
    assert host.in_flight == 1
    crawl.active.clear()
    assert crawl.pace.forget_departed()
    assert (host.in_flight, host.free_at, crawl.pace.was_handed_out(request)) == (
        0,
        float("-inf"),
        False,
    )
    assert not crawl.pace.forget_departed()
    assert other.pace.try_acquire((theirs,))


@pytest.mark.requirement("RATE-2")
def test_requests_outside_the_downloader_end_with_end_and_forget(make: Make) -> None:
    """`forget_departed` leaves them in flight."""
    crawl = make()
    host, request = crawl.pace.host(URL), Request(URL)
    crawl.pace.start(request, (host,), handed_out=False, in_downloader=False)
    gone = crawl.start(host)
    crawl.active.clear()
    assert crawl.pace.forget_departed()
    assert host.in_flight == 1
    assert not crawl.pace.was_handed_out(gone)
    crawl.pace.end_and_forget(request)
    assert (host.in_flight, host.last) == (0, crawl.clock.now)
    crawl.pace.end_and_forget(Request(URL))
    forgotten = weakref.ref(request)
    del request
    gc.collect()
    assert forgotten() is None


@pytest.mark.requirement("RATE-2")
def test_forget_departed_returns_whether_a_limiter_became_free(make: Make) -> None:
    crawl = make()
    host = crawl.pace.host(URL)
    crawl.start()  # a request without a limiter
    crawl.active.clear()
    assert not crawl.pace.forget_departed()
    crawl.start(host)
    crawl.start()
    crawl.active.clear()
    assert crawl.pace.forget_departed()
    released = crawl.start(host)
    crawl.pace.free_limiters(released)
    crawl.active.clear()
    assert not crawl.pace.forget_departed()


def test_a_request_that_was_handed_out_is_known_once(make: Make) -> None:
    """The middleware knows it when it comes for the first time.

    Requests that come again, or that did not come from the queue, are decided on again.
    """
    crawl = make()
    host = crawl.pace.host(URL)
    ours, theirs = crawl.start(host), crawl.start(host, handed_out=False)
    assert [crawl.pace.was_handed_out(each) for each in (ours, theirs, Request(URL))] == [
        True,
        False,
        False,
    ]
    assert crawl.pace.claim(ours)
    assert host.in_flight == 2
    assert not crawl.pace.claim(ours)
    assert host.in_flight == 1
    assert not crawl.pace.was_handed_out(ours)
    assert not crawl.pace.claim(theirs)
    assert (host.in_flight, crawl.pace.claim(Request(URL))) == (0, False)


def test_a_request_that_is_started_again_occupies_what_it_needs_now(make: Make) -> None:
    crawl = make()
    first, second = crawl.pace.host(URL), crawl.pace.host("https://b.test/")
    request = crawl.start(first)
    crawl.pace.start(request, (second,), handed_out=True)
    assert (first.in_flight, second.in_flight) == (0, 1)
    assert crawl.freed == [first]
    crawl.leave(request)
    assert crawl.freed == [first, second]


@pytest.mark.requirement("RATE-2", "AUTX-2")
def test_a_turn_of_all_units_or_of_none(make: Make, clock: Clock) -> None:
    """The limiter in the way is asked again later."""
    crawl = make()
    assert crawl.pace.try_acquire((crawl.pace.host(URL),)) == 0  # no limits
    host = crawl.pace.host(URL)
    host.restrict("https://a.test", (Window(1, 2),))
    scope = crawl.pace.scope(Limits(SCOPE, (Window(2, 60),), None))
    for _ in range(2):
        grant = crawl.pace.try_acquire((host, scope))
        assert grant
        crawl.leave(crawl.start(host, scope, grant=grant))
        clock.now += 10
    host.free_at = 0.0
    assert crawl.pace.try_acquire((host, scope)) is None
    assert [host.free_at, scope.free_at] == pytest.approx([0.0, clock.now + 40])
    first = crawl.pace.try_acquire((host,))
    assert first
    clock.now += 41
    crawl.leave(crawl.start(host, grant=first))
    scope.free_at = 0.0
    assert crawl.pace.try_acquire((host, scope)) is None
    assert [host.free_at, scope.free_at] == pytest.approx([clock.now + 2, 0.0])


@pytest.mark.requirement("RATE-2", "AUTX-3")
def test_requests_of_other_crawls_are_in_flight_too(make: Make, clock: Clock) -> None:
    crawl, other = make(), make()
    ours, theirs = (each.pace.scope(Limits(SCOPE, (), 1)) for each in (crawl, other))
    grant = other.pace.try_acquire((theirs,))
    assert grant
    request = other.start(theirs, grant=grant)
    assert crawl.pace.try_acquire((ours,)) is None
    assert clock.now < ours.free_at < clock.now + 1
    other.answer(request)
    assert crawl.pace.try_acquire((ours,)) is None  # until the body is there
    other.leave(request)
    assert crawl.pace.try_acquire((ours,))


@pytest.mark.requirement("RATE-1", "RATE-2")
def test_a_host_that_asks_to_be_left_alone(make: Make, clock: Clock) -> None:
    """A crawl that starts meanwhile waits, too. A penalty makes no wait shorter."""
    crawl = make()
    host = crawl.pace.host(URL)
    assert crawl.pace.back_off("http://a.test:81/x", 20) == pytest.approx(20)
    assert host.free_at == pytest.approx(clock.now + 20)
    clock.now += 5
    assert crawl.pace.back_off("https://d.test/", 0.5) == pytest.approx(0.5)
    assert crawl.pace.host("https://d.test/").free_at == pytest.approx(clock.now + 0.5)
    later = make()
    assert later.pace.host(URL).free_at == pytest.approx(clock.now + 15)
    assert later.pace.host("https://b.test/").free_at == float("-inf")
    host.free_at = clock.now + 100
    assert crawl.pace.back_off(URL, 30) == pytest.approx(30)
    assert host.free_at == clock.now + 100
    assert crawl.pace.back_off("https://b.test/", None) == pytest.approx(60)
    assert crawl.pace.back_off("https://c.test/", 0) == pytest.approx(0)
    assert crawl.pace.host("https://c.test/").free_at <= clock.now


def test_units_that_nothing_waits_for_are_forgotten(
    make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limiters in use or under a penalty stay: a new one would let out a request at once."""
    monkeypatch.setattr(module, "SWEEP", 8)
    crawl = make()
    urls = [
        f"https://{name}.test/"
        for name in ("idle", "queued", "flying", "awaited", "late", "due", "g", "h")
    ]
    idle, queued, flying, awaited, late, due, *_ = before = [
        crawl.pace.host(url) for url in urls[:7]
    ]
    queued.queues = awaited.awaited = 1
    late.free_at, due.free_at = clock.now + 1, clock.now
    crawl.start(flying)
    assert [crawl.pace.host(url) for url in urls[:7]] == before
    crawl.pace.host(urls[7])
    assert crawl.pace.host(urls[0]) is idle
    crawl.start(flying)
    after = [crawl.pace.host(url) for url in urls[:7]]
    assert [new is old for new, old in zip(after, before, strict=True)] == [
        False,
        True,
        True,
        True,
        True,
        False,
        False,
    ]


def test_it_is_looked_for_idle_units_now_and_then(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Idle ones are dropped when the number doubles, and not with each request."""
    monkeypatch.setattr(module, "SWEEP", 4)
    crawl = make()
    used = [crawl.pace.host(f"https://{number}.test/") for number in range(6)]
    for limiter in used:
        limiter.queues = 1
    crawl.start(used[0])
    idle = [crawl.pace.host(f"https://idle{number}.test/") for number in range(5)]
    crawl.start(used[0])
    assert crawl.pace.host("https://idle0.test/") is idle[0]
    crawl.pace.host("https://idle5.test/")
    crawl.start(used[0])
    assert crawl.pace.host("https://idle0.test/") is not idle[0]


@pytest.mark.requirement("RATE-2")
def test_signs_of_life_while_requests_are_in_flight(make: Make, clock: Clock) -> None:
    """Otherwise other crawls would take this one for dead, and its requests for ended."""
    crawl, other = make(), make()
    ours, theirs = (each.pace.scope(Limits(SCOPE, (), 1)) for each in (crawl, other))

    async def fly() -> None:
        requests = []
        for _ in range(2):
            grant = crawl.pace.try_acquire((ours,))
            assert grant
            requests.append(crawl.start(ours, grant=grant))
            for _ in range(30):
                await asyncio.sleep(1)
                assert other.pace.try_acquire((theirs,)) is None
            crawl.leave(requests[-1])
            await asyncio.sleep(9)

    run(clock, fly())
    grant = other.pace.try_acquire((theirs,))
    assert grant
    assert crawl.pace.try_acquire((ours,)) is None
    clock.now += 30  # it shows no more signs of life
    assert crawl.pace.try_acquire((ours,))


@pytest.mark.requirement("RATE-2")
def test_nothing_goes_on_when_the_crawl_is_over(make: Make, clock: Clock) -> None:
    """For the other processes, requests in flight count from then on."""
    crawl, other = make(2.0), make(2.0)
    host, theirs = crawl.pace.host(URL), other.pace.host(URL)
    scope = crawl.pace.scope(Limits(SCOPE, (), 2))

    async def end() -> None:
        for _ in range(2):
            crawl.start(scope, grant=crawl.pace.try_acquire((scope,)) or 0)
        crawl.start(host, grant=crawl.pace.try_acquire((host,)) or 0)
        crawl.pace.close()
        timers = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        assert [timer for timer in timers if not timer.cancelled()] == []
        crawl.pace.close()

    run(clock, end())
    assert other.pace.try_acquire((theirs,)) is None
    clock.now += 2.1
    assert other.pace.try_acquire((theirs,))


@pytest.mark.requirement("RATE-2")
def test_a_pace_file_that_is_busy_is_asked_again_soon(
    make: Make, clock: Clock, tmp_path: Path
) -> None:
    crawl = make(2.0)
    host, scope = crawl.pace.host(URL), crawl.pace.scope(Limits(SCOPE, (), 2))
    writer = sqlite3.connect(tmp_path / "pace.sqlite")
    writer.execute("BEGIN EXCLUSIVE")
    assert crawl.pace.try_acquire((host, scope)) is None
    assert clock.now < host.free_at <= clock.now + 0.021
    writer.close()
    assert crawl.pace.try_acquire((host, scope))


@pytest.mark.requirement("RATE-1", "RATE-2")
def test_who_waits_in_place_keeps_the_pace(make: Make, clock: Clock) -> None:
    crawl = make(2.0)
    host, starts = crawl.pace.host(URL), []

    async def go(number: int) -> None:
        request = Request(f"{URL}{number}")
        assert await crawl.acquire(host, request=request) is None
        starts.append((clock.now, number))
        await asyncio.sleep(0.25)
        crawl.answer(request)
        await asyncio.sleep(0.5)
        crawl.leave(request)

    async def crawls() -> None:
        await asyncio.gather(*map(go, range(4)))

    run(clock, crawls())
    assert [number for _, number in starts] == [0, 1, 2, 3]
    assert [after - before for (before, _), (after, _) in pairwise(starts)] == [
        pytest.approx(2.25, abs=0.01)
    ] * 3
    assert (host.awaited, host.in_flight) == (0, 0)
    assert host in crawl.freed


@pytest.mark.requirement("RATE-4")
@pytest.mark.parametrize(
    ("wait", "at_most", "answered"),
    [(9.0, 10.0, None), (11.0, 10.0, 11.0), (10.0, 10.0, None), (0, 0, None)],
)
def test_nobody_waits_longer_than_is_asked(
    make: Make, clock: Clock, wait: float, at_most: float, answered: float | None
) -> None:
    crawl = make()
    host = crawl.pace.host(URL)
    host.free_at, began = clock.now + wait, clock.now
    assert run(clock, crawl.acquire(host, at_most=at_most)) == (
        None if answered is None else pytest.approx(answered)
    )
    assert clock.now == pytest.approx(began if answered else began + wait)
    assert (host.in_flight, host.awaited) == (0 if answered else 1, 0)
    assert crawl.freed[-1] is host


@pytest.mark.requirement("RATE-4")
def test_time_in_line_counts(make: Make, clock: Clock) -> None:
    """Of two requests that wait 6 s each, the second would wait 12 s in all."""
    crawl = make(6.0)
    host = crawl.pace.host(URL)

    async def go(first: Request, second: Request) -> tuple[float | None, float | None]:
        crawl.leave(crawl.start(host))

        async def then_leave() -> float | None:
            waited = await crawl.acquire(host, at_most=10, request=first)
            crawl.leave(first)
            return waited

        return await asyncio.gather(then_leave(), crawl.acquire(host, at_most=10, request=second))

    began = clock.now
    first, second = run(clock, go(Request(URL), Request(URL)))
    assert first is None
    assert second == pytest.approx(12, abs=0.01)
    assert clock.now == pytest.approx(began + 6, abs=0.01)


@pytest.mark.parametrize("is_full", [True, False])
def test_who_waits_is_told_that_the_crawl_is_ending(
    make: Make, clock: Clock, is_full: bool
) -> None:
    """It learns so within a second."""
    crawl = make(CONCURRENT_REQUESTS_PER_DOMAIN=1)
    host = crawl.pace.host(URL)
    if is_full:
        crawl.start(host)
    else:
        host.free_at = clock.now + 100

    async def end() -> None:
        asyncio.get_running_loop().call_later(5, setattr, crawl.slot, "closing", object())
        with pytest.raises(ClosingError):
            await crawl.acquire(host)

    began = clock.now
    run(clock, end())
    assert 5 <= clock.now - began <= 6.01
    assert (host.awaited, host.in_flight) == (0, int(is_full))


@pytest.mark.requirement("RATE-3")
def test_who_waits_for_a_full_host_goes_on_when_a_request_is_through(
    make: Make, clock: Clock
) -> None:
    """It also goes on within a second after a middleware answered the other request."""
    for is_told in (True, False):
        crawl = make(CONCURRENT_REQUESTS_PER_DOMAIN=1)
        host = crawl.pace.host(URL)
        request, began = crawl.start(host), clock.now

        async def go(
            crawl: Crawl = crawl,
            host: Limiter = host,
            request: Request = request,
            is_told: bool = is_told,
        ) -> None:
            end = crawl.leave if is_told else crawl.active.discard
            asyncio.get_running_loop().call_later(2.5, end, request)
            assert await crawl.acquire(host) is None

        run(clock, go())
        assert clock.now == pytest.approx(began + (2.5 if is_told else 3))


@pytest.mark.requirement("RATE-3", "AUTX-2")
def test_a_scope_holds_up_no_request_outside_of_it(make: Make, clock: Clock) -> None:
    """A request within a scope comes before the queues that wait for the host alone.

    It does not come before the queues that wait for both limiters.
    """
    crawl = make(CONCURRENT_REQUESTS_PER_DOMAIN=1)
    host, scope = crawl.pace.host(URL), crawl.pace.scope(Limits(SCOPE, (), 5))
    began, request = clock.now, crawl.start(host)
    crawl.parked.add(host)
    seen: list[tuple[int, int]] = []

    async def go() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(2.5, lambda: seen.append((host.awaited, scope.awaited)))
        loop.call_later(3.5, crawl.leave, request)
        assert await crawl.acquire(host, scope) is None

    run(clock, go())
    assert clock.now == pytest.approx(began + 3.5)
    assert seen == [(1, 1)]
    assert (host.awaited, scope.awaited, host.in_flight, scope.in_flight) == (0, 0, 1, 1)
    assert crawl.woken > 0  # the queues try again
    assert {host, scope} == set(crawl.freed)


@pytest.mark.requirement("RATE-1", "RATE-3")
def test_lanes_come_by_turns_with_who_waits_within_a_scope(make: Make, clock: Clock) -> None:
    """Queues try again whenever the waiting request looks, not only after it has gone out."""
    crawl = make()
    host, scope = crawl.pace.host(URL), crawl.pace.scope(Limits(SCOPE, (), 5))
    host.free_at = clock.now + 10
    crawl.parked.add(host)

    async def go() -> None:
        waiting = asyncio.ensure_future(crawl.acquire(host, scope))
        await asyncio.sleep(1.5)
        assert crawl.freed == [host]
        assert crawl.woken == 1
        await waiting

    run(clock, go())


@pytest.mark.requirement("RATE-2")
def test_who_waits_in_place_waits_for_other_crawls_too(make: Make, clock: Clock) -> None:
    crawl, other = make(0.3), make(0.3)
    host, theirs, began = crawl.pace.host(URL), other.pace.host(URL), clock.now
    other.leave(other.start(theirs, grant=other.pace.try_acquire((theirs,)) or 0))
    assert run(clock, crawl.acquire(host)) is None
    assert clock.now == pytest.approx(began + 0.3, abs=0.01)


@pytest.mark.parametrize("in_downloader", [True, False])
def test_what_waits_in_place_is_booked_as_what_it_is(
    make: Make, clock: Clock, in_downloader: bool
) -> None:
    crawl = make()
    host, request = crawl.pace.host(URL), Request(URL)
    waited = crawl.pace.acquire(request, (host,), at_most=1, in_downloader=in_downloader)
    assert run(clock, waited) is None
    assert not crawl.pace.was_handed_out(request)
    assert crawl.pace.forget_departed() is in_downloader
    assert host.in_flight == (0 if in_downloader else 1)


def test_the_slowest_unit_is_waited_for() -> None:
    quick, slow, full = Limiter("a", (), 1), Limiter("b", (), 1), Limiter("c", (), 1)
    quick.free_at, slow.free_at, full.in_flight = 1.0, 2.0, 1
    assert [
        slowest(limiters)
        for limiters in [(quick,), (quick, slow), (slow, quick), (slow, full, quick)]
    ] == [
        quick,
        slow,
        slow,
        full,
    ]
