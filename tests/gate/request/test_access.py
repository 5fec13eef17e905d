"""New decisions and reused decisions about a request, counted in questions to its site."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pytest
from scrapy import Spider
from scrapy.http import Request
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler

from comity.gate.fetching.fetcher import OriginPolicies
from comity.gate.fetching.reach import Reach
from comity.gate.request.access import Access
from comity.gate.request.facts import RequestFacts
from comity.gate.request.passage import Passages
from comity.gate.request.sessions import DeclaredSession, Sessions
from comity.policies import Agent, Decision, Reason, Site, Source, Verdict
from comity.policies.answers.request import Facts
from comity.policies.formats.distrusted import distrusted
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import AgentReading, Format, SiteReading

ORIGIN = "https://example.org"
ALLOW, DENY, DEFER = Verdict.ALLOW, Verdict.DENY, Verdict.DEFER
PLAIN_FILE = "User-agent: *\nDisallow: /private\n"
XHR = {"X-Requested-With": "XMLHttpRequest"}


def policies(robots: str = PLAIN_FILE, preferences: str = "", **others: Any) -> OriginPolicies:
    files = {"/robots.txt": robots.encode()}
    if preferences:
        files["/automation-preferences.txt"] = preferences.encode()
    return OriginPolicies(
        site=Site.from_files(ORIGIN, files), fresh_until=0.0, unreachable=False, **others
    )


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of the URLs that sites were asked about."""
    urls: list[str] = []
    judge = Site.judge

    def counted(self: Site, agent: Agent, url: str, *arguments: Any) -> Decision:
        urls.append(url)
        return judge(self, agent, url, *arguments)

    monkeypatch.setattr(Site, "judge", counted)
    return urls


@pytest.fixture
def make() -> Callable[..., Access]:
    def make(*sessions: DeclaredSession) -> Access:
        store: Any = SimpleNamespace(session_began=lambda host, secret, now: now)
        declared = Sessions(sessions, store)
        declared.send()
        referrals: Any = SimpleNamespace(referrer_reach=lambda request: None)
        agent, stats = Agent("testbot"), MemoryStatsCollector(get_crawler(Spider))
        return Access(
            Passages(),
            stats,
            RequestFacts(Settings(), agent),
            agent,
            referrals,
            declared,
            skip_unusable=True,
        )

    return make


def verdict(access: Access, *arguments: Any, **options: Any) -> Verdict:
    return access.decide(*arguments, **options).verdict


@pytest.mark.requirement("RFC-2")
@pytest.mark.parametrize("preferences", ["", "scope: /\nallowed-methods: GET\n"])
def test_an_unchanged_request_is_judged_once(
    make: Callable[..., Access], judged: list[str], preferences: str
) -> None:
    """It passes the queue and the downloader middlewares, with one question to its site."""
    access, known, request = make(), policies(preferences=preferences), Request(f"{ORIGIN}/open")
    assert verdict(access, known, request, waits=True) is ALLOW
    assert verdict(access, known, request) is ALLOW
    decision = access.decide_again(request)
    assert decision is not None
    assert decision.verdict is ALLOW
    assert access.admit(request)
    assert access.refusal_if_changed(request) is None
    assert judged == [f"{ORIGIN}/open"]
    outgoing = access._passages[ref(request)].outgoing_to(request.url)
    assert outgoing
    assert (outgoing.site, outgoing.decision) == (known.site, decision)


@pytest.mark.requirement("RFC-2")
def test_renewed_policies_are_asked_anew(make: Callable[..., Access], judged: list[str]) -> None:
    access, request = make(), Request(f"{ORIGIN}/open")
    assert verdict(access, policies(), request) is ALLOW
    assert verdict(access, policies(), request) is ALLOW  # equal files in another Site object
    assert verdict(access, policies("User-agent: *\nDisallow: /\n"), request) is DENY
    assert len(judged) == 3
    assert verdict(access, policies(barred_for=Reach.PUBLIC), request) is DENY
    assert access._passages[ref(request)].outgoing_to(request.url) is None
    assert not access.admit(request)


@pytest.mark.requirement("RFC-2", "AUTO-9")
def test_a_changed_request_is_judged_again(make: Callable[..., Access], judged: list[str]) -> None:
    access, known = make(), policies(preferences="scope: /\nallowed-methods: GET\n")
    request = Request(f"{ORIGIN}/open")
    assert verdict(access, known, request) is ALLOW
    request.headers.update(XHR)
    decision = access.decide_again(request)
    assert decision is not None
    assert decision.verdict is DENY, decision
    assert len(judged) == 2
    request._set_url(f"{ORIGIN}/private")
    assert access.decide_again(request) is None
    assert verdict(access, known, request) is DENY


@pytest.mark.requirement("AUTO-9")
def test_a_request_changed_after_its_admission_is_judged_again(
    make: Callable[..., Access], judged: list[str]
) -> None:
    access, known = make(), policies(preferences="scope: /\nallowed-methods: GET\n")
    for change, is_refused in (
        (lambda request: request._set_url(f"{ORIGIN}/private"), True),
        (lambda request: request._set_url("https://example.net/open"), True),
        (lambda request: request._set_url(f"{ORIGIN}/also-open"), False),
        (lambda request: setattr(request, "method", "POST"), True),
        (lambda request: request.headers.update(XHR), True),
        (lambda request: request.meta.update(comity={"kind": "nonsense"}), True),
        # Cookies of Scrapy's jar.
        (lambda request: request.headers.update({"Cookie": "a=b"}), False),
        (lambda request: request.headers.update({"Host": "other.test"}), True),
    ):
        request = Request(f"{ORIGIN}/open")
        assert verdict(access, known, request) is ALLOW
        assert access.admit(request)
        change(request)
        assert (access.refusal_if_changed(request) is not None) is is_refused, change


@pytest.mark.requirement("RFC-2")
@pytest.mark.parametrize(
    ("hosts", "is_refused"),
    [
        (["a.test"], False),
        (["A.test:443"], False),
        (["a.test:8443"], True),
        (["other.test"], True),
        (["a.test", "other.test"], True),
        (["a.test@other.test"], True),
        (["other.test@a.test"], True),
        ([""], True),
        (["\xff"], True),
        (["a.test/"], True),
    ],
)
def test_a_host_field_may_not_name_another_site(
    make: Callable[..., Access], hosts: list[str], is_refused: bool
) -> None:
    """The site of the field answers (RFC 9110 section 7.2), but the site of the URL is judged."""
    access, request = (
        make(),
        Request("https://a.test/open", headers={"Host": hosts}, encoding="latin-1"),
    )
    decision = access.decide(policies(), request)
    assert (decision.verdict is DENY) is is_refused, decision
    assert (decision.reasons[0].rule == "comity.declaration") is is_refused


@pytest.mark.requirement("RATE-1")
def test_visiting_hours_are_asked_each_time_but_within_the_same_moment(
    make: Callable[..., Access], judged: list[str]
) -> None:
    access, known, request = (
        make(),
        policies("User-agent: *\nDisallow:\nVisit-time: 0000-2359\n"),
        Request(f"{ORIGIN}/open"),
    )
    for _ in range(3):
        # DEFER: the site is closed between 23:59 and 0:00.
        assert verdict(access, known, request) in (ALLOW, DEFER)
    assert len(judged) == 3
    access.decide_again(request)
    assert len(judged) == 3


class Hours(AgentReading):
    """A plug-in format that closes its sites at some time, without rates that announce it."""

    restricts_access = True
    is_open = True

    def access(
        self, target: str, sent: str, facts: Facts, now: datetime | None, page: object = None
    ) -> Decision | None:
        source = Source(url=f"{ORIGIN}/hours.txt", text="closed")
        return (
            None
            if self.is_open
            else Decision(verdict=DENY, reasons=(Reason(rule="robots.visit-time", source=source),))
        )


def test_a_format_of_others_is_asked_each_time(make: Callable[..., Access]) -> None:
    """Its answers may depend on unknown facts."""
    hours, of_site = Hours(), SiteReading()
    of_site.for_agent = lambda agent: hours  # type: ignore[method-assign]
    format_ = distrusted(Format(name="hours", rules={}, version=1, read_site=lambda site: of_site))
    access, known, request = make(), policies(), Request(f"{ORIGIN}/open")
    assert format_.read_site
    reading = format_.read_site(SiteFiles(ORIGIN, known.site.files))
    assert reading
    known.site._readings.by_format["hours"] = reading
    assert verdict(access, known, request) is ALLOW
    hours.is_open = False
    assert verdict(access, known, request) is DENY


@pytest.mark.requirement("RATE-1")
def test_no_decision_lets_a_deferred_request_out(make: Callable[..., Access]) -> None:
    """Outside of the visiting hours the middleware has to ask again."""
    now = datetime.now(UTC)
    begin, end = (now + timedelta(hours=hours) for hours in (6, 7))
    access, request = make(), Request(f"{ORIGIN}/open")
    assert (
        verdict(
            access,
            policies(f"User-agent: *\nDisallow:\nVisit-time: {begin:%H%M}-{end:%H%M}\n"),
            request,
        )
        is DEFER
    )
    assert access.decide_again(request) is None


@pytest.mark.requirement("AUTO-9")
def test_the_age_of_a_session_is_asked_each_time(
    make: Callable[..., Access], judged: list[str]
) -> None:
    session = DeclaredSession(host="example.org", cookies=(("a", "b"),))
    access, known, request = make(session), policies(), Request(f"{ORIGIN}/open")
    assert [verdict(access, known, request) for _ in range(2)] == [ALLOW] * 2
    assert len(judged) == 2
    assert access.admit(request)
    assert request.meta["dont_cache"]
    outgoing = access._passages[ref(request)].outgoing_to(request.url)
    assert outgoing
    assert outgoing.session
    assert outgoing.session.host == "example.org"


def test_a_proxy_that_is_chosen_after_the_admission_gets_no_session(
    make: Callable[..., Access],
) -> None:
    """Scrapy's middleware reads the environment only then."""
    local = "http://127.0.0.1"
    session = DeclaredSession(host="127.0.0.1", cookies=(("a", "b"),))
    access, request = make(session), Request(f"{local}/open")
    site = Site.from_files(local, {"/robots.txt": PLAIN_FILE.encode()})
    known = OriginPolicies(site=site, fresh_until=0.0, unreachable=False)
    assert verdict(access, known, request) is ALLOW
    assert access.admit(request)
    outgoing = access._passages[ref(request)].outgoing
    assert outgoing
    assert outgoing.session
    request.meta["proxy"] = "http://proxy.test:3128"
    assert access.refusal_if_changed(request) is None
    outgoing = access._passages[ref(request)].outgoing
    assert outgoing
    assert not outgoing.session


def test_waiting_requests_keep_no_policies_in_memory(make: Callable[..., Access]) -> None:
    access, known, request = make(), policies(), Request(f"{ORIGIN}/open")
    assert verdict(access, known, request, waits=True) is ALLOW
    site = weakref.ref(known.site)
    del known
    gc.collect()
    assert site() is None
    assert verdict(access, policies("User-agent: *\nDisallow: /\n"), request) is DENY


@pytest.mark.parametrize(("url", "expected"), [("data:,x", ALLOW), ("ftp://example.org/", DENY)])
def test_urls_without_an_origin_have_no_policies(
    make: Callable[..., Access], url: str, expected: Verdict
) -> None:
    access, request = make(), Request(url)
    assert verdict(access, None, request) is expected
    decision = access.decide_again(request)
    assert decision is not None
    assert decision.verdict is expected
    assert not access.admit(request)
