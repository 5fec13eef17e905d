"""Who leads to a request: what cannot be shown by a crawl on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import copy_context
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.http import Request, Response

from comity.crawler import referrals as module
from comity.crawler.addresses import Reach, reach_of
from comity.crawler.fetcher import Policies
from comity.crawler.referrals import KEY, Referrals, led
from comity.policies import Fetched, Site

SITE = "https://site.test"


def policies_at(reach: Reach, origin: str = SITE) -> Policies:
    site = Site(origin, {f"{origin}/robots.txt": Fetched(status=404)})
    return Policies(site=site, fresh_until=0.0, unreachable=False, server_reach=reach)


def referrals(known: Policies | None = None, *, is_inner_allowed: bool = False) -> Referrals:
    fetcher: Any = SimpleNamespace(known=lambda origin: known)
    client: Any = SimpleNamespace(network=SimpleNamespace(reach=reach_of))
    return Referrals(Crawler(Spider), fetcher, client, is_inner_allowed=is_inner_allowed)


@pytest.fixture(autouse=True)
def _of_nobody() -> Iterator[None]:
    """The context of a test is handed on to the next one."""
    yield
    referrals().handle(None)


def answer(request: Request, address: str | None) -> Response:
    return Response(request.url, request=request, ip_address=ip_address(address) if address else None)


@pytest.mark.requirement("SEC-7")
def test_a_name_of_the_operators_that_points_inward_later() -> None:
    """The operator's requests go there, those of the site's links do not. To a server that was inside before, both do."""
    for reach, is_refused in ((Reach.PUBLIC, True), (Reach.PRIVATE, False)):
        crawl = referrals(policies_at(reach))
        start = Request(f"{SITE}/")
        crawl.make(start)
        crawl.learn(policies_at(reach))
        assert crawl.led_from(start) is None
        assert crawl.answered(start, answer(start, "10.0.0.1")) is None
        link = led(Request(f"{SITE}/secret"), Reach.PUBLIC)
        assert crawl.led_from(link) is None  # the origin was asked for
        assert (crawl.answered(link, answer(link, "10.0.0.1")) is not None) is is_refused
        assert crawl.answered(led(Request(f"{SITE}/open"), Reach.PUBLIC), answer(link, "8.8.8.8")) is None


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00:ec2::254", "fec0::1", "::ffff:127.0.0.1"]
)
def test_where_an_answer_may_come_from(address: str) -> None:
    crawl = referrals()
    link = led(Request(f"{SITE}/a"), Reach.PUBLIC)
    assert crawl.answered(link, answer(link, address)) == (Reach.PUBLIC, reach_of(ip_address(address)))
    allowing = referrals(is_inner_allowed=True)
    assert allowing.answered(led(Request(f"{SITE}/a"), Reach.PUBLIC), answer(link, address)) is None


@pytest.mark.requirement("SEC-7")
def test_what_nobody_says_the_policies_say() -> None:
    """Of an answer without an address: from a cache, a browser, a handler of the project's."""
    for known, reach in ((None, Reach.PUBLIC), (policies_at(Reach.PRIVATE), Reach.PRIVATE)):
        crawl = referrals(known)
        request = Request(f"{SITE}/a")
        assert crawl.answered(request, answer(request, None)) is None
        assert request.meta[KEY] == reach.value


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize("value", ["operator", "", 0, ["private"], "loopback "])
def test_what_is_no_reach_takes_all_rights(value: object) -> None:
    assert referrals().led_from(Request(f"{SITE}/a", meta={KEY: value})) is Reach.PUBLIC


@pytest.mark.requirement("SEC-7")
def test_contexts_of_other_crawls_do_not_matter() -> None:
    """One crawl may start another one where it handles a response."""
    outer, inner = referrals(), referrals()
    outer.handle(led(Request(f"{SITE}/a"), Reach.PUBLIC))
    of_inner, of_outer = Request("http://10.0.0.1/"), Request("http://10.0.0.1/")
    inner.make(of_inner)
    outer.make(of_outer)
    assert (KEY in of_inner.meta, of_outer.meta[KEY]) == (False, "public")
    inside = copy_context()
    outer.handle(None)
    later = Request("http://10.0.0.1/")
    inside.run(outer.make, later)  # what a task of that page does meanwhile
    assert later.meta[KEY] == "public"


@pytest.mark.requirement("SEC-7")
def test_the_operators_origins_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ORIGINS", 2)
    crawl = referrals()
    for number in (1, 2, 1, 3):
        crawl.make(Request(f"http://10.0.0.{number}/"))
    links = [led(Request(f"http://10.0.0.{number}/a"), Reach.PUBLIC) for number in (1, 2, 3)]
    assert [crawl.led_from(link) for link in links] == [None, Reach.PUBLIC, None]
