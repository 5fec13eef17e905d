"""Referrals that a crawl on loopback addresses cannot show."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import copy_context
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Spider, signals
from scrapy.http import Request, Response
from scrapy.utils.test import get_crawler

from comity.crawler.crawl import Crawl
from comity.gate.fetching.fetcher import OriginPolicies
from comity.gate.fetching.reach import Reach, reach_of
from comity.gate.request import referrals as module
from comity.gate.request.passage import Passages
from comity.gate.request.referrals import KEY, Referrals, current_page, set_referrer_reach
from comity.policies import Fetched, Site

SITE = "https://site.test"


def policies_at(reach: Reach, origin: str = SITE) -> OriginPolicies:
    site = Site(origin, {f"{origin}/robots.txt": Fetched(status=404)})
    return OriginPolicies(site=site, fresh_until=0.0, unreachable=False, server_reach=reach)


def referrals(*known: OriginPolicies, is_inner_allowed: bool = False) -> Referrals:
    fetcher: Any = SimpleNamespace(
        cached={policies.site.origin: policies for policies in known}.get
    )
    client: Any = SimpleNamespace(network=SimpleNamespace(reach=reach_of))
    return Referrals(Passages(), fetcher, client, is_inner_allowed=is_inner_allowed)


@pytest.fixture(autouse=True)
def _without_context() -> Iterator[None]:
    """Clear the context, which the next test would inherit."""
    yield
    referrals().handle(None)


def answer(request: Request, address: str | None) -> Response:
    return Response(
        request.url, request=request, ip_address=ip_address(address) if address else None
    )


@pytest.mark.requirement("SEC-7")
def test_a_name_of_the_operators_that_points_inward_later() -> None:
    """The operator's requests go there, but requests of the site's links do not.

    If the server had an inner address before, both go there."""
    for reach, is_refused in ((Reach.PUBLIC, True), (Reach.PRIVATE, False)):
        crawl = referrals(policies_at(reach))
        start = Request(f"{SITE}/")
        crawl.make(start)
        crawl.learn(policies_at(reach))
        assert crawl.referrer_reach(start) is None
        assert crawl.check_response(start, answer(start, "10.0.0.1")) is None
        link = set_referrer_reach(Request(f"{SITE}/secret"), Reach.PUBLIC)
        assert crawl.referrer_reach(link) is None  # the operator has asked for the origin
        assert (crawl.check_response(link, answer(link, "10.0.0.1")) is not None) is is_refused
        assert (
            crawl.check_response(
                set_referrer_reach(Request(f"{SITE}/open"), Reach.PUBLIC), answer(link, "8.8.8.8")
            )
            is None
        )


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "::1",
        "fd00:ec2::254",
        "fec0::1",
        "::ffff:127.0.0.1",
    ],
)
def test_where_an_answer_may_come_from(address: str) -> None:
    crawl = referrals()
    link = set_referrer_reach(Request(f"{SITE}/a"), Reach.PUBLIC)
    assert crawl.check_response(link, answer(link, address)) == (
        Reach.PUBLIC,
        reach_of(ip_address(address)),
    )
    allowing = referrals(is_inner_allowed=True)
    assert (
        allowing.check_response(
            set_referrer_reach(Request(f"{SITE}/a"), Reach.PUBLIC), answer(link, address)
        )
        is None
    )


@pytest.mark.requirement("SEC-7")
def test_without_an_address_the_policies_decide_the_reach() -> None:
    """Answers from a cache, a browser or a handler of the project have no address."""
    for known, reach in (([], Reach.PUBLIC), ([policies_at(Reach.PRIVATE)], Reach.PRIVATE)):
        crawl = referrals(*known)
        request = Request(f"{SITE}/a")
        assert crawl.check_response(request, answer(request, None)) is None
        assert request.meta[KEY] == reach.value


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize("value", ["operator", "", 0, ["private"], "loopback "])
def test_an_invalid_reach_takes_all_rights(value: object) -> None:
    assert referrals().referrer_reach(Request(f"{SITE}/a", meta={KEY: value})) is Reach.PUBLIC


@pytest.mark.requirement("SEC-7")
def test_contexts_of_other_crawls_do_not_matter() -> None:
    """A crawl may start another crawl while it handles a response."""
    outer, inner = referrals(), referrals()
    outer.handle(set_referrer_reach(Request(f"{SITE}/a"), Reach.PUBLIC))
    of_inner, of_outer = Request("http://10.0.0.1/"), Request("http://10.0.0.1/")
    inner.make(of_inner)
    outer.make(of_outer)
    assert (KEY in of_inner.meta, of_outer.meta[KEY]) == (False, "public")
    inside = copy_context()
    outer.handle(None)
    later = Request("http://10.0.0.1/")
    inside.run(outer.make, later)  # in a task of that page
    assert later.meta[KEY] == "public"


@pytest.mark.requirement("SEC-7")
def test_the_operators_origins_are_remembered_within_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_ORIGINS", 2)
    crawl = referrals()
    for number in (1, 2, 1, 3):
        crawl.make(Request(f"http://10.0.0.{number}/"))
    links = [
        set_referrer_reach(Request(f"http://10.0.0.{number}/a"), Reach.PUBLIC)
        for number in (1, 2, 3)
    ]
    assert [crawl.referrer_reach(link) for link in links] == [None, Reach.PUBLIC, None]


@pytest.mark.requirement("SEC-7")
def test_a_site_leads_to_requests_made_from_its_answer() -> None:
    """Before the answer, the operator leads to requests.

    A middleware of the project makes such a request, or makes the request itself again."""
    crawl = referrals()
    start = Request(f"{SITE}/")
    crawl.handle(start)
    before, after = Request("http://10.0.0.1/"), Request("http://10.0.0.2/")
    for request in (before, start):
        crawl.make(request)
        assert KEY not in request.meta
    assert crawl.check_response(start, answer(start, "8.8.8.8")) is None
    crawl.make(after)
    assert after.meta[KEY] == "public"
    assert [crawl.referrer_reach(request) for request in (before, after)] == [None, Reach.PUBLIC]
    crawl.handle(None)
    crawl.make(later := Request("http://10.0.0.2/"))
    assert KEY not in later.meta
    assert crawl.referrer_reach(after) is None  # now the operator has asked for it


@pytest.mark.requirement("SEC-7")
def test_requests_of_the_engine_are_made_in_its_context() -> None:
    crawler = get_crawler(Spider)
    Crawl.of(crawler).referrals.handle(set_referrer_reach(Request(f"{SITE}/"), Reach.PUBLIC))
    link = Request("http://10.0.0.1/")
    crawler.signals.send_catch_log(signals.request_scheduled, request=link, spider=None)
    assert link.meta[KEY] == "public"


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize(
    ("is_awaited", "in_page", "first", "reach"),
    [
        (True, False, "127.0.0.1", "loopback"),
        (True, False, "10.0.0.1", "public"),
        (True, False, None, "private"),
        (True, True, "127.0.0.1", "loopback"),
        (True, True, "10.0.0.1", "private"),
        (True, True, None, None),
        (False, False, "10.0.0.1", "private"),
        (False, False, None, None),
    ],
)
def test_the_site_of_an_awaited_response_leads_too(
    is_awaited: bool, in_page: bool, first: str | None, reach: str | None
) -> None:
    """The exception is a file that a pipeline only stores.

    `first`: the address of the page that makes the request; None: no answer came."""
    crawl = referrals(is_inner_allowed=True)
    maker = Request("http://site.test/")
    crawl.handle(maker)
    if first:
        crawl.check_response(maker, answer(maker, first))
    page: Any = object()
    token = current_page.set(page if in_page else None)
    fetched = Request("http://127.0.0.1/" if first else "http://10.0.0.9/")
    crawl.make(fetched, is_awaited=is_awaited)
    crawl.check_response(fetched, answer(fetched, None))
    current_page.reset(token)
    crawl.make(link := Request("http://b.test/"))
    assert link.meta.get(KEY) == reach


@pytest.mark.requirement("SEC-7")
def test_two_sites_that_differ_lead_to_the_public_alone() -> None:
    crawl = referrals()
    assert [
        set_referrer_reach(set_referrer_reach(Request(SITE), first), second).meta[KEY]
        for first in list(Reach)[1:3]
        for second in list(Reach)[1:3]
    ] == [
        "private",
        "public",
        "public",
        "link-local",
    ]
    private = set_referrer_reach(Request("http://10.0.0.1/"), Reach.PRIVATE)
    assert crawl.referrer_reach(private) is Reach.PRIVATE
    assert crawl.check_response(private, answer(private, None)) is None
    assert crawl.check_response(
        set_referrer_reach(Request("http://127.0.0.1/"), Reach.PRIVATE),
        Response("http://127.0.0.1/"),
    ) == (
        Reach.PRIVATE,
        Reach.LOOPBACK,
    )


@pytest.mark.requirement("SEC-7")
def test_no_referrer_reach() -> None:
    """A missing request has no reach, and no request has one if inner addresses are allowed."""
    crawl, allowing = referrals(), referrals(is_inner_allowed=True)
    link = set_referrer_reach(Request(f"{SITE}/a"), Reach.PUBLIC)
    assert [
        crawl.referrer_reach(None),
        allowing.referrer_reach(None),
        allowing.referrer_reach(link),
        crawl.referrer_reach(link),
    ] == [
        None,
        None,
        None,
        Reach.PUBLIC,
    ]


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize(
    ("url", "address", "proxy", "reach"),
    [
        # The address in the URL counts.
        ("http://10.0.0.1/", "8.8.8.8", "", Reach.PRIVATE),
        ("http://127.1/", None, "", Reach.LOOPBACK),
        ("http://10.0.0.1/", "127.0.0.1", "http://127.0.0.1:3128", Reach.PRIVATE),
        # The address of the proxy does not count.
        ("http://a.test/", "127.0.0.1", "http://127.0.0.1:3128", None),
        ("http://a.test/", "127.0.0.1", "", Reach.LOOPBACK),
        ("http://a.test/", None, "", None),
        ("data:,x", None, "", None),
        ("http://[/", "127.0.0.1", "", Reach.LOOPBACK),
    ],
)
def test_where_a_server_is(url: str, address: str | None, proxy: str, reach: Reach | None) -> None:
    crawl = referrals()
    request = set_referrer_reach(
        Request(f"{SITE}/", meta={"proxy": proxy} if proxy else {}), Reach.PUBLIC
    )
    response = Response(url, request=request, ip_address=ip_address(address) if address else None)
    assert crawl.check_response(request, response) == (
        None if reach is None else (Reach.PUBLIC, reach)
    )


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize("url", ["data:text/html,x", "about:blank", "http://[/"])
def test_the_site_that_led_to_data_leads_on(url: str) -> None:
    """Data have no site of their own. If the operator made the data, the operator leads on."""
    crawl = referrals(policies_at(Reach.LOOPBACK))
    for meta in ({}, {KEY: "private"}):
        request = Request("data:,x", meta=meta)
        crawl.handle(request)
        assert crawl.check_response(request, Response(url, request=request)) is None
        assert request.meta == meta
        crawl.make(link := Request("http://10.0.0.1/"))
        assert link.meta.get(KEY) == meta.get(KEY)


@pytest.mark.requirement("SEC-7")
def test_policies_are_those_of_the_origin_that_answered() -> None:
    crawl = referrals(policies_at(Reach.PRIVATE), policies_at(Reach.LOOPBACK, "https://b.test"))
    for origin, reach in (
        (SITE, "private"),
        ("https://b.test", "loopback"),
        ("https://c.test", "public"),
    ):
        request = Request(f"{SITE}/a")
        crawl.check_response(request, Response(f"{origin}/x"))
        assert request.meta[KEY] == reach


@pytest.mark.requirement("SEC-7")
def test_an_origin_that_was_asked_for_but_never_looked_at_is_public() -> None:
    """Its server is not known to have an inner address, so no site may lead there by its name."""
    crawl = referrals()
    crawl.make(Request(f"{SITE}/"))
    link = set_referrer_reach(Request(f"{SITE}/a"), Reach.PUBLIC)
    assert crawl.check_response(link, answer(link, "10.0.0.1")) == (Reach.PUBLIC, Reach.PRIVATE)
    crawl.learn(policies_at(Reach.PRIVATE))
    crawl.make(Request(f"{SITE}/b"))
    link = set_referrer_reach(Request(f"{SITE}/a"), Reach.PUBLIC)
    assert crawl.check_response(link, answer(link, "10.0.0.1")) is None
    crawl.learn(policies_at(Reach.PRIVATE, "https://other.test"))
    link = set_referrer_reach(Request("https://other.test/a"), Reach.PUBLIC)
    assert crawl.referrer_reach(link) is Reach.PUBLIC
