"""The policies of origins, with given files and a clock that the tests move."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from comity.crawler.scrapy_internals import ScrapyRun
from comity.gate.fetching import fetcher as module
from comity.gate.fetching.fetcher import OriginPolicies, PolicyFetcher, policies_of
from comity.gate.fetching.files import Obtained, PolicyQuery
from comity.gate.fetching.freshness import DAY
from comity.gate.fetching.network import BarredError
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.reach import Reach
from comity.gate.fetching.store import PolicyStore
from comity.gate.run.flights import ClosingError
from comity.policies import Agent, Fetched

ORIGIN = "https://a.test"
ROBOTS = "/robots.txt"
NOW = 1_800_000_000.0
T = TypeVar("T")


def had(
    body: bytes = b"User-agent: *\nDisallow:\n",
    due: float = NOW + DAY,
    reach: Reach = Reach.PUBLIC,
    **more: Any,
) -> PolicyFile:
    copy = Fetched(status=200, body=body, fetched_at=datetime.fromtimestamp(NOW, UTC))
    return PolicyFile(due=due, copy=copy, reach=reach, **more)


def failed(status: int, *headers: tuple[bytes, bytes], url: str = "") -> PolicyFile:
    return PolicyFile(due=0).after_failure(Fetched(status=status, headers=headers, url=url), NOW)


class World:
    """A crawl, and the files that it receives."""

    def __init__(self, *paths: str) -> None:
        self.now = NOW
        self.files: dict[str, PolicyFile] = {ROBOTS: had()}
        self.renewed: frozenset[str] = frozenset()
        self.error: Exception | None = None
        self.queries: list[PolicyQuery] = []
        self.store: Any = None
        self.consequences: list[str] = []
        self.left = 0
        self.found: list[OriginPolicies] = []
        self.overloaded: list[tuple[str, int, float]] = []
        self.stats: dict[str, int] = {}
        files: Any = self
        stats = SimpleNamespace(
            inc_value=lambda name, count: self.stats.update({name: self.stats.get(name, 0) + count})
        )
        engine = SimpleNamespace(spider=object(), _slot=SimpleNamespace(closing=None))
        crawler: Any = SimpleNamespace(stats=stats, engine=engine)
        self.fetcher = PolicyFetcher(
            ScrapyRun(crawler),
            files,
            Agent("testbot"),
            paths=paths or (ROBOTS,),
            looked_up=self.found.append,
            overloaded=lambda *told: self.overloaded.append(told),
        )

    def clock(self) -> float:
        return self.now

    async def get(self, query: PolicyQuery, crawl: object) -> Obtained:
        assert crawl is self.fetcher
        self.queries.append(query)
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        return Obtained({path: self.files[path] for path in query.paths}, self.renewed)

    async def ask_store(
        self,
        consequence: str,
        crawl: object,
        call: Callable[..., Any],
        *arguments: Any,
        otherwise: Any,
    ) -> Any:
        assert crawl is self.fetcher
        try:
            return call(*arguments)
        except OSError:
            self.consequences.append(consequence)
            return otherwise

    async def leave(self) -> None:
        self.left += 1

    def run(self, work: Callable[[PolicyFetcher], Awaitable[T]]) -> T:
        async def all_of_it() -> T:
            return await work(self.fetcher)

        return asyncio.run(all_of_it())

    def look_up(self, origin: str = ORIGIN, referrer_reach: Reach | None = None) -> OriginPolicies:
        return self.run(lambda fetcher: fetcher.get(origin, referrer_reach))


@pytest.mark.requirement("RFC-5")
def test_policies_are_known_as_long_as_they_are_fresh() -> None:
    """They count a day at most, even if the clock was set."""
    world = World()
    world.files[ROBOTS] = had(due=NOW + 100)
    assert world.fetcher.cached(ORIGIN) is None
    policies = world.look_up()
    assert (policies.fresh_until, policies.unreachable, policies.error) == (NOW + 100, False, "")
    assert policies.site.origin == ORIGIN
    world.now = NOW + 99
    assert world.fetcher.cached(ORIGIN) is policies is world.look_up()
    assert world.fetcher.cached("https://b.test") is None
    world.now = NOW + 100
    assert world.fetcher.cached(ORIGIN) is None
    world.now = NOW + 100 - DAY
    assert world.fetcher.cached(ORIGIN) is policies
    world.now -= 1
    assert world.fetcher.cached(ORIGIN) is None
    assert world.queries == [PolicyQuery(ORIGIN, (ROBOTS,), None)]
    assert world.found == [policies]
    assert world.stats == {"comity/policies/from_store": 1}


@pytest.mark.requirement("RFC-5")
def test_who_asks_at_the_same_time_gets_the_same() -> None:
    world = World()
    world.renewed = frozenset({ROBOTS})

    async def together(fetcher: PolicyFetcher) -> list[OriginPolicies]:
        return list(await asyncio.gather(*(fetcher.get(ORIGIN) for _ in range(3))))

    assert len(set(map(id, world.run(together)))) == 1
    assert len(world.queries) == 1
    assert world.stats == {}  # it came from the server


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize(
    ("file", "unreachable", "why"),
    [
        (failed(503), True, "HTTP status 503"),
        (failed(0), True, "HTTP status 0"),
        (PolicyFile(due=NOW + 9, copy=Fetched(status=404)), False, ""),
    ],
)
def test_what_cannot_be_had_is_said(file: PolicyFile, unreachable: bool, why: str) -> None:
    policies = policies_of(ORIGIN, {ROBOTS: file}, NOW)
    assert (policies.unreachable, policies.error) == (unreachable, why)


@pytest.mark.requirement("RFC-7")
def test_files_that_others_name_are_needed_as_well() -> None:
    named = "https://b.test/policy.txt"
    files = {ROBOTS: had(due=NOW + 50), "/ai.txt": failed(500), named: failed(503)}
    assert not policies_of(ORIGIN, files, NOW).unreachable
    policies = policies_of(ORIGIN, files, NOW, [named])
    assert (policies.unreachable, policies.error) == (True, "HTTP status 503")
    assert policies.fresh_until == min(NOW + 50, *(files[path].due for path in files))


@pytest.mark.requirement("SEC-7")
def test_an_inner_file_makes_an_inner_site() -> None:
    for files, reaches in (
        ({ROBOTS: had()}, (Reach.PUBLIC, Reach.PUBLIC)),
        ({ROBOTS: had(reach=Reach.PRIVATE)}, (Reach.PRIVATE, Reach.PRIVATE)),
        ({ROBOTS: had(), "/ai.txt": had(reach=Reach.LOOPBACK)}, (Reach.PUBLIC, Reach.LOOPBACK)),
    ):
        policies = policies_of(ORIGIN, files, NOW)
        assert (policies.reach, policies.server_reach) == reaches


@pytest.mark.requirement("SEC-7")
def test_policies_as_who_leads_there_may_see_them() -> None:
    policies = policies_of(ORIGIN, {ROBOTS: had(reach=Reach.PRIVATE)}, NOW)
    assert policies.seen_from(None) is policies.seen_from(Reach.PRIVATE) is policies
    barred = policies.seen_from(Reach.PUBLIC)
    assert (barred.barred_for, barred.error) == (Reach.PUBLIC, "its server is at a private address")
    assert barred.seen_from(Reach.PUBLIC) is barred
    world = World()
    world.files[ROBOTS] = had(reach=Reach.PRIVATE)
    assert world.look_up(referrer_reach=Reach.PUBLIC).barred_for is Reach.PUBLIC
    seen = world.fetcher.cached(ORIGIN, Reach.LINK_LOCAL)
    assert seen
    assert seen.barred_for is Reach.LINK_LOCAL
    assert world.look_up().barred_for is None


@pytest.mark.requirement("SEC-7")
def test_where_a_site_may_not_lead_the_operator_may() -> None:
    """The refusal is remembered for a minute, for all sites of its reach."""
    world = World()
    world.error = BarredError("its server is at a private address")
    barred = world.look_up(referrer_reach=Reach.PUBLIC)
    assert (barred.barred_for, barred.unreachable, barred.fresh_until) == (
        Reach.PUBLIC,
        True,
        NOW + 60,
    )
    assert barred.error == "its server is at a private address"
    assert world.found == []
    world.now += 59
    assert world.look_up(referrer_reach=Reach.PUBLIC) is barred
    assert world.fetcher.cached(ORIGIN, Reach.PUBLIC) is barred
    assert [world.fetcher.cached(ORIGIN, reach) for reach in (None, Reach.PRIVATE)] == [None, None]
    world.now += 1
    assert world.fetcher.cached(ORIGIN, Reach.PUBLIC) is None
    world.now = NOW + 60 - DAY - 1
    assert world.fetcher.cached(ORIGIN, Reach.PUBLIC) is None
    world.now, world.error = NOW, None
    assert world.look_up().barred_for is None
    assert [query.referrer_reach for query in world.queries] == [Reach.PUBLIC, None]


@pytest.mark.requirement("SEC-7", "SEC-1")
def test_what_is_barred_is_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SITES", 2)
    world = World()
    world.error = BarredError("inside")
    origins = [f"https://{number}.test" for number in range(3)]
    for origin in origins:
        world.look_up(origin, Reach.PUBLIC)
    assert [world.fetcher.cached(origin, Reach.PUBLIC) is not None for origin in origins] == [
        False,
        True,
        True,
    ]


@pytest.mark.requirement("RFC-7")
def test_a_mistake_of_ours_refuses_the_origin(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.error = ZeroDivisionError("oops")
    policies = world.look_up()
    assert (policies.unreachable, policies.fresh_until) == (True, NOW + 300)
    assert "oops" in policies.error
    assert world.found == []
    [record] = caplog.records
    assert record.exc_info
    world.error = None
    assert not world.look_up().unreachable  # the failure was not remembered


@pytest.mark.requirement("RATE-1")
@pytest.mark.parametrize(
    ("status", "headers", "url", "told"),
    [
        (429, [(b"Retry-After", b"30")], "", [(f"{ORIGIN}/robots.txt", 429, 30)]),
        (503, [(b"Retry-After", b"30")], "https://b.test/x", [("https://b.test/x", 503, 30)]),
        (503, [], "", []),
        (500, [(b"Retry-After", b"30")], "", []),
    ],
)
def test_a_server_that_is_asked_too_often_for_its_policies(
    status: int, headers: list[tuple[bytes, bytes]], url: str, told: list[tuple[str, int, float]]
) -> None:
    world = World(ROBOTS, "/ai.txt")
    world.files = {ROBOTS: failed(status, *headers, url=url), "/ai.txt": had()}
    world.renewed = frozenset(world.files)
    world.look_up()
    assert world.overloaded == told
    world = World()
    world.files = {ROBOTS: failed(status, *headers, url=url)}
    world.look_up()  # from the store: the failure is known already
    assert world.overloaded == []


@pytest.mark.requirement("ACAP-12")
@pytest.mark.parametrize("number", [1, 5, 6])
def test_files_that_robots_txt_refers_to(number: int, caplog: pytest.LogCaptureFixture) -> None:
    """References beyond the limit count as not fetched, so everything is refused."""
    named = [f"{ORIGIN}/policies/{each}.txt" for each in range(number)]
    lines = [f"ACAP-permissions-reference: {url}" for url in named]
    world = World()
    world.files[ROBOTS] = had(
        "\n".join(["ACAP-crawler: *", *lines, ""]).encode(), reach=Reach.PRIVATE
    )
    world.files |= dict.fromkeys(named, had(b"ACAP-crawler: *\nACAP-allow-crawl: /\n"))
    world.fetcher.renew_before = NOW - 9
    world.look_up(referrer_reach=Reach.PRIVATE)
    paths = tuple(named[:5])
    world.files[named[0]] = failed(503)
    world.now += 2 * DAY
    world.files[ROBOTS] = had(world.files[ROBOTS].copy.body, due=world.now + 1, reach=Reach.PRIVATE)  # type: ignore[union-attr]
    assert world.look_up().unreachable  # without them no page is fetched
    assert [query.paths for query in world.queries] == [(ROBOTS,), paths] * 2
    assert (
        world.queries[1].origin,
        world.queries[1].referrer_reach,
        world.queries[1].renew_before,
    ) == (
        ORIGIN,
        Reach.PRIVATE,
        NOW - 9,
    )
    assert (world.queries[1].reach, world.queries[1].vital) == (Reach.PRIVATE, paths)
    assert sum("refers to" in record.getMessage() for record in caplog.records) == 2 * (number > 5)


@pytest.mark.requirement("SEC-1")
def test_origins_in_memory_are_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number and their octets are limited.

    The origins asked for last are kept, and always the very last one.
    """
    origins = [f"https://{number}.test" for number in range(4)]

    def kept(sizes: list[int], *asked: int) -> list[bool]:
        world = World()
        for number, (origin, size) in enumerate(zip(origins, sizes, strict=False)):
            world.files[ROBOTS] = had(b"#" * size)
            world.look_up(origin)
            for one in asked if number == 1 else ():
                world.fetcher.cached(origins[one])
        return [world.fetcher.cached(origin) is not None for origin in origins[: len(sizes)]]

    monkeypatch.setattr(module, "MAX_SITES", 2)
    assert kept([1, 1, 1]) == [False, True, True]
    assert kept([1, 1, 1], 0) == [True, False, True]
    monkeypatch.setattr(module, "MAX_SITES", 9)
    monkeypatch.setattr(module, "MAX_SITE_BYTES", 100)
    assert kept([50, 50]) == [True, True]
    assert kept([50, 50, 1]) == [False, True, True]
    assert kept([50, 50, 200]) == [False, False, True]
    assert kept([40, 40, 40, 20]) == [False, True, True, True]
    world = World()
    for number in (0, 0, 0, 1):  # an origin that is looked up again counts once
        world.files[ROBOTS] = had(b"#" * 50, due=NOW + 1)
        world.now = NOW
        world.look_up(origins[number])
        world.fetcher._sites.put(origins[number], world.found[-1])
    assert [world.fetcher.cached(origin) is not None for origin in origins[:2]] == [True, True]


def test_it_is_left_once_and_nothing_is_looked_up_after_that() -> None:
    world = World()

    async def close(fetcher: PolicyFetcher) -> None:
        waiting = asyncio.ensure_future(fetcher.get(ORIGIN))
        await asyncio.sleep(0)
        await fetcher.close()
        await fetcher.close()
        with pytest.raises(ClosingError):
            await waiting
        with pytest.raises(ClosingError):
            await fetcher.get("https://b.test")

    world.run(close)
    assert world.left == 1


@pytest.mark.requirement("RFC-5")
def test_copies_are_renewed_that_are_older_than_is_asked_for() -> None:
    world = World()
    world.fetcher.renew_before = NOW - 5
    world.look_up()
    assert world.queries == [PolicyQuery(ORIGIN, (ROBOTS,), None, renew_before=NOW - 5)]


@pytest.mark.requirement("ACAP-32", "ACAP-43")
def test_what_the_store_remembers_and_what_counts_where_it_cannot(tmp_path: Path) -> None:
    """Then a page counts as first taken long ago, so permissions for some days are over.

    An action counts as newly requested.
    """
    world, url, at = World(), f"{ORIGIN}/page", datetime.fromtimestamp(NOW, UTC)
    world.store = PolicyStore(tmp_path / "store")

    async def ask(fetcher: PolicyFetcher) -> tuple[dict[str, datetime], bool]:
        taken = await fetcher.first_taken(url, iter(["index", "train"]), at)
        return taken, await fetcher.requests_action(url, "take-down", "aa", at)

    assert world.run(ask) == (dict.fromkeys(["index", "train"], at), True)
    assert world.run(ask) == (dict.fromkeys(["index", "train"], at), False)
    assert world.store.take_downs() == [(url, at)]
    assert world.consequences == []
    world.store.close()
    assert world.run(ask) == (
        dict.fromkeys(["index", "train"], datetime.min.replace(tzinfo=UTC)),
        True,
    )
    assert len(world.consequences) == 2
    assert all(url in consequence for consequence in world.consequences)


@pytest.mark.requirement("RFC-7")
def test_an_older_copy_stands_in_for_a_month() -> None:
    world = World()
    world.files[ROBOTS] = had().after_failure(Fetched(status=503), NOW)
    assert not world.look_up().unreachable
    world.now = NOW + 31 * DAY
    world.files[ROBOTS] = had().after_failure(Fetched(status=503), world.now)
    assert world.look_up().unreachable
