"""The requests that the guard passes on, and its answers to all others.

No server: the clock is the test's."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.guard import Answer, Guard, Incoming, Pass, credentials, is_automated, mechanisms
from comity.guard.agents import MAX_NAMED
from comity.guard.clients import ClientLimit, Clients, TooMany
from comity.guard.guard import MAX_JUDGED, MAX_REFERER, MAX_TARGET
from comity.guard.incoming import MAX_TARGETS
from comity.policies import Agent, Decision, PolicyError
from comity.policies.answers.request import MAX_METHODS, Session
from comity.policies.syntax.urls import spellings

ORIGIN = "https://example.com"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/126.0.0.0 Safari/537.36"
)
HEADLESS = CHROME.replace(" Chrome/", " HeadlessChrome/")
NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)

ROBOTS = b"""User-agent: *
Disallow: /private/
Disallow: /*.pdf$

User-agent: slowbot
Crawl-delay: 10
Disallow: /slow/

User-agent: nightbot
Visit-time: 0200-0400

ACAP-crawler: *
ACAP-disallow-crawl: /acap/
"""
AUTOMATION = b"""scope: /
allowed-methods: GET, HEAD

scope: /methods/
allowed-methods: POST

scope: /none/

scope: /purposes/
allowed-methods: GET
allowed-purposes: research, archiving

scope: /tools/
allowed-methods: GET
allowed-automations: headless

scope: /open/
allowed-methods: GET, POST
api-automation: open
allow-xhr: open
disallow-fetch-from: /account/*

scope: /keyed/
allowed-methods: GET
api-automation: with-key-only

scope: /reading/
allowed-methods: GET, POST
allow-xhr: read-only

scope: /account/
allowed-methods: GET
require-human-initiated-session: true
session-validation: cookie-based
session-ttl: 1h

scope: /limited/
allowed-methods: GET
request-limit: 2/minute

scope: /zero/
allowed-methods: GET
request-limit: 0/day

scope: /two/
allowed-methods: GET
concurrent-limit: 2

scope: /slow/
user-agent: namedbot
allowed-methods: GET, PUT
"""
FILES: dict[str, bytes | Path] = {"/robots.txt": ROBOTS, "/automation-preferences.txt": AUTOMATION}


class Clock:
    def __init__(self) -> None:
        self.now = NOW.timestamp()

    def __call__(self) -> float:
        return self.now


def sessions(incoming: Incoming) -> Session | None:
    """Cookies "person=minutes" and "machine=minutes": how long ago the session began."""
    name, _, minutes = incoming.fields.get("cookie", "").partition("=")
    if not minutes:
        return None
    began = NOW - timedelta(minutes=float(minutes))
    return Session(
        human_initiated=name == "person", carries=credentials(incoming.fields), started_at=began
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(clock: Clock) -> Guard:
    return Guard(ORIGIN, FILES, clock=clock, session=sessions)


def ask(
    guard: Guard, target: str, method: str = "GET", *, peer: str = "192.0.2.1", **fields: str
) -> Pass | Answer:
    named = {name.replace("_", "-").lower(): value for name, value in fields.items()}
    return guard.check(Incoming(method, target, {"user-agent": "examplebot/1.0", **named}, peer))


def told(checked: Pass | Answer) -> tuple[int, str]:
    """Status and rule. The status is 0 for a request that goes on to the application."""
    if isinstance(checked, Pass):
        checked.end()
        return 0, ""
    return checked.status, json.loads(checked.body)["rule"]


PASSES = (0, "")
JSON: dict[str, str] = {"accept": "application/json"}
XHR: dict[str, str] = {"x_requested_with": "XMLHttpRequest", "referer": f"{ORIGIN}/page"}

CASES: list[tuple[str, str, dict[str, str], tuple[int, str]]] = [
    # robots.txt and ACAP
    ("GET", "/", {}, PASSES),
    ("GET", "/private/diary", {}, (403, "robots.disallow")),
    ("GET", "/report.pdf", {}, (403, "robots.disallow")),
    ("GET", "/acap/", {}, (403, "acap.disallow")),
    # methods
    ("HEAD", "/", {}, PASSES),
    ("POST", "/", {}, (403, "automation.method")),
    ("post", "/methods/", {}, PASSES),
    ("GET", "/methods/", {}, (403, "automation.method")),
    ("GET", "/none/", {}, (403, "automation.method")),
    ("PURGE", "/open/", {}, (403, "automation.method")),
    # purposes
    ("GET", "/purposes/", {}, (403, "automation.purpose")),
    ("GET", "/purposes/", {"automation_purpose": "Research"}, PASSES),
    ("GET", "/purposes/", {"automation_purpose": "research, archiving"}, PASSES),
    (
        "GET",
        "/purposes/",
        {"automation_purpose": "research, training"},
        (403, "automation.purpose"),
    ),
    # tools
    ("GET", "/", {"user_agent": HEADLESS}, (403, "automation.mechanism")),
    ("GET", "/tools/", {"user_agent": HEADLESS}, PASSES),
    # API and XHR
    ("GET", "/", JSON, (403, "automation.api")),
    ("GET", "/open/", JSON, PASSES),
    ("POST", "/open/", {"content_type": "application/json"}, PASSES),
    ("GET", "/keyed/", JSON, (401, "automation.key")),
    ("GET", "/keyed/", JSON | {"authorization": "Basic eA=="}, PASSES),
    ("GET", "/keyed/", JSON | {"authorization": "Basic "}, (401, "automation.key")),
    ("GET", "/keyed/", JSON | {"x-api-key": " "}, (401, "automation.key")),
    ("GET", "/keyed/", JSON | {"x_api_key": "k"}, PASSES),
    ("GET", "/", XHR, (403, "automation.xhr")),
    ("GET", "/reading/", XHR, PASSES),
    ("POST", "/reading/", XHR, (403, "automation.xhr")),
    ("GET", "/open/", XHR, PASSES),
    ("GET", "/open/", XHR | {"referer": f"{ORIGIN}/account/1"}, (403, "automation.fetch-from")),
    ("GET", "/open/", {"sec_fetch_dest": "empty"}, (403, "automation.fetch-from")),
    # sessions
    ("GET", "/account/", {}, (401, "automation.session")),
    ("GET", "/account/", {"cookie": "person=10"}, PASSES),
    ("GET", "/account/", {"cookie": "machine=10"}, (401, "automation.session")),
    ("GET", "/account/", {"cookie": "person=61"}, (401, "automation.session-ttl")),
    ("POST", "/account/", {}, (403, "automation.method")),  # credentials would not help
    # nothing at all
    ("GET", "/zero/", {}, (403, "automation.none")),
    # the agent
    (
        "GET",
        "/slow/",
        {"user_agent": "Mozilla/5.0 (compatible; SlowBot/2.1; +https://bots.example)"},
        (403, "robots.disallow"),
    ),
    ("PUT", "/slow/", {"user_agent": "other (via namedbot)"}, PASSES),
    ("PUT", "/slow/", {}, (403, "automation.method")),
    ("GET", "/", {"user_agent": "nightbot"}, (429, "robots.visit-time")),
    # people
    ("POST", "/private/report.pdf", {"user_agent": FIREFOX}, PASSES),
    (
        "POST",
        "/private/",
        {"user_agent": FIREFOX, "automation_purpose": "research"},
        (403, "robots.disallow"),
    ),
]


@pytest.mark.requirement("GUARD-1", "AUTO-17", "AUTX-13")
@pytest.mark.parametrize(("method", "target", "fields", "want"), CASES)
def test_every_refusal_has_its_status(
    guard: Guard, method: str, target: str, fields: dict[str, str], want: tuple[int, str]
) -> None:
    assert told(ask(guard, target, method, **fields)) == want
    assert guard.refused.total() == (want != PASSES)


@pytest.mark.requirement("GUARD-1")
def test_a_problem_names_the_rule_and_its_line(guard: Guard) -> None:
    answer = ask(guard, "/private/")
    assert isinstance(answer, Answer)
    headers = dict(answer.headers)
    assert headers["Content-Type"] == "application/problem+json"
    assert int(headers["Content-Length"]) == len(answer.body)
    assert "Retry-After" not in headers
    assert "WWW-Authenticate" not in headers
    assert json.loads(answer.body) == {
        "type": "urn:comity:rule:robots.disallow",
        "title": "a Disallow line is the most specific match",
        "status": 403,
        "detail": (
            "deny: robots.disallow (RFC 9309 section-2.2.2) at "
            "https://example.com/robots.txt:2: 'Disallow: /private/'"
        ),
        "rule": "robots.disallow",
        "spec": "RFC 9309 section-2.2.2",
        "source": {
            "url": "https://example.com/robots.txt",
            "line": 2,
            "text": "Disallow: /private/",
        },
    }


@pytest.mark.requirement("GUARD-1")
def test_a_head_request_gets_no_body(guard: Guard) -> None:
    answer = ask(guard, "/private/", "HEAD")
    assert isinstance(answer, Answer)
    assert (answer.status, answer.body) == (403, b"")


@pytest.mark.requirement("GUARD-1", "AUTX-13")
def test_a_401_says_how_to_authenticate(clock: Clock) -> None:
    guard = Guard(ORIGIN, FILES, clock=clock, challenge='Basic realm="staff"')
    answer = ask(guard, "/account/")
    assert isinstance(answer, Answer)
    assert dict(answer.headers)["WWW-Authenticate"] == 'Basic realm="staff"'


@pytest.mark.requirement("GUARD-1", "AUTX-13")
def test_too_many_requests_wait(guard: Guard, clock: Clock) -> None:
    for _ in range(2):
        assert told(ask(guard, "/limited/")) == PASSES
        clock.now += 10
    for wait in (40, 40, 40):  # a refused request does not count
        answer = ask(guard, "/limited/")
        assert isinstance(answer, Answer)
        assert told(answer) == (429, "comity.rate")
        assert dict(answer.headers)["Retry-After"] == str(wait)
    assert told(ask(guard, "/")) == PASSES  # another scope
    assert told(ask(guard, "/limited/", peer="192.0.2.2")) == PASSES  # another client
    clock.now += 40
    assert told(ask(guard, "/limited/")) == PASSES
    assert told(ask(guard, "/limited/")) == (429, "comity.rate")
    assert guard.refused == {"comity.rate": 4}
    assert guard.passed.total() == 5


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize("target", ["/limited/../", "/x/..%2Flimited/"])
def test_the_limits_of_every_spelling_hold(guard: Guard, target: str) -> None:
    assert [told(ask(guard, target)) for _ in range(3)] == [PASSES, PASSES, (429, "comity.rate")]


@pytest.mark.requirement("GUARD-1")
def test_the_crawl_delay_of_a_group_holds_for_it(guard: Guard, clock: Clock) -> None:
    slow = {"user_agent": "slowbot"}
    assert [told(ask(guard, path, **slow)) for path in ("/a", "/b")] == [
        PASSES,
        (429, "comity.rate"),
    ]
    assert [told(ask(guard, path, peer="192.0.2.9")) for path in ("/a", "/b")] == [PASSES, PASSES]
    clock.now += 9.5
    assert told(ask(guard, "/c", **slow)) == (429, "comity.rate")
    clock.now += 0.5
    assert told(ask(guard, "/c", **slow)) == PASSES


@pytest.mark.requirement("GUARD-1", "AUTX-13")
def test_too_many_in_flight_wait(guard: Guard) -> None:
    first, second = ask(guard, "/two/a"), ask(guard, "/two/b")
    assert told(ask(guard, "/two/c")) == (429, "comity.concurrent")
    assert told(ask(guard, "/two/c", peer="192.0.2.2")) == PASSES
    assert isinstance(first, Pass)
    assert isinstance(second, Pass)
    first.end()
    first.end()  # twice is once
    third = ask(guard, "/two/c")
    assert isinstance(third, Pass)
    assert told(ask(guard, "/two/d")) == (429, "comity.concurrent")


@pytest.mark.requirement("GUARD-1")
def test_a_response_is_over_with_its_last_octet(guard: Guard) -> None:
    """The client may know of the end before the server does, and ask again."""
    first, second = ask(guard, "/two/a"), ask(guard, "/two/b")
    assert isinstance(first, Pass)
    assert isinstance(second, Pass)
    first.begins("10")
    first.sends(9)
    assert told(ask(guard, "/two/c")) == (429, "comity.concurrent")
    first.sends(1)
    assert told(ask(guard, "/two/c")) == PASSES
    second.begins(None)
    second.sends(1000)
    third = ask(guard, "/two/c")
    assert told(ask(guard, "/two/c")) == (429, "comity.concurrent")
    second.begins("7", has_body=False)
    assert isinstance(third, Pass)
    assert told(ask(guard, "/two/c")) == PASSES


@pytest.mark.requirement("GUARD-1")
def test_visit_time_says_when_to_come_back(guard: Guard) -> None:
    answer = ask(guard, "/", user_agent="nightbot")
    assert isinstance(answer, Answer)
    assert dict(answer.headers)["Retry-After"] == str(14 * 3600)


LIMITED = {
    "/automation-preferences.txt": (
        b"scope: /\nallowed-methods: GET, POST\nallowed-purposes: research\n"
    )
}
PURPOSE_LISTS = [
    ("research", PASSES),
    ("Research, research,, research", PASSES),
    ("," * 2100 + "research", PASSES),
    ("," * 60_000, (403, "automation.purpose")),
    ("research" + "," * 2100 + "training", (403, "automation.purpose")),
    (" " * 2100 + "research, training", (403, "automation.purpose")),
    (",".join(["research"] * 16 + ["training"]), (403, "automation.purpose")),
    (",".join([f"p{number}" for number in range(16)] + ["research"]), (403, "automation.purpose")),
    (",".join(f"p{number}" for number in range(65)), (431, "comity.long-fields")),
    ("research, " + "x" * 65, (431, "comity.long-fields")),
]


@pytest.mark.requirement("GUARD-1", "AUTO-13", "SEC-1")
@pytest.mark.parametrize("user_agent", ["examplebot", FIREFOX])
@pytest.mark.parametrize(("purposes", "want"), PURPOSE_LISTS)
def test_no_purpose_is_left_out(user_agent: str, purposes: str, want: tuple[int, str]) -> None:
    guard = Guard(ORIGIN, LIMITED)
    assert told(ask(guard, "/", automation_purpose=purposes, user_agent=user_agent)) == want


@pytest.mark.requirement("GUARD-1", "SEC-1")
def test_targets_that_are_not_looked_at_are_refused() -> None:
    guard = Guard(
        ORIGIN,
        {
            "/robots.txt": (
                b"User-agent: *\nDisallow: /*private\n\nUser-agent: abot\n"
                b"User-agent: bbot\nDisallow:\n"
            )
        },
    )
    long = "/" + "x" * (MAX_TARGET - 1)
    too_long = (414, "comity.long-target")
    assert told(ask(guard, long)) == PASSES
    assert told(ask(guard, long[:-7] + "private")) == (403, "robots.disallow")
    assert told(ask(guard, long + "x")) == too_long
    assert told(ask(guard, "/", x_original_url=long + "x")) == too_long
    assert told(ask(guard, long, user_agent="abot (bbot)")) == PASSES
    assert (
        told(ask(guard, long, user_agent="abot (bbot)", x_http_method_override="HEAD")) == too_long
    )
    assert told(ask(guard, long, user_agent=FIREFOX)) == PASSES
    assert told(ask(guard, long + "x" * 100_000, user_agent=FIREFOX)) == PASSES
    assert dict(guard.refused) == {"robots.disallow": 1, "comity.long-target": 3}


@pytest.mark.requirement("GUARD-1", "SEC-1")
@given(
    st.lists(
        st.text("ab/.%2fFeE5cC?*#:\\;é", min_size=1, max_size=12).map(
            lambda text: "/" + text * 500
        ),
        min_size=1,
        max_size=5,
    ),
    st.lists(st.sampled_from(["abot", "bbot", "cbot", "dbot"]), max_size=5),
    st.text("ab, ", max_size=20),
    st.text("/a,#", max_size=200),
)
def test_what_a_request_costs_is_bounded(
    targets: list[str], bots: list[str], override: str, others: str
) -> None:
    """In characters that are judged, all spellings, crawlers and methods together."""
    guard = Guard(
        ORIGIN,
        {
            "/robots.txt": (
                b"User-agent: abot\nUser-agent: bbot\nUser-agent: cbot\n"
                b"User-agent: dbot\nDisallow: /x\n"
            )
        },
    )
    judged, judge = list[int](), guard._site.judge

    def counting(agent: Agent, url: str, *arguments: Any) -> Decision:
        judged.append(sum(map(len, spellings(url))))
        return judge(agent, url, *arguments)

    guard._site.judge = counting  # type: ignore[method-assign,assignment]
    fields = {
        "user-agent": " ".join(bots),
        "x-http-method-override": override,
        "x-original-url": targets[-1],
        "x-rewrite-url": others,
    }
    guard.check(Incoming("GET", targets[0], fields, aliases=tuple(targets[1:])))
    assert sum(judged) <= MAX_JUDGED
    assert len(judged) <= MAX_TARGETS * MAX_NAMED * (MAX_METHODS + 2)


@pytest.mark.requirement("GUARD-1", "AUTX-7")
def test_a_referer_that_is_not_looked_at_is_refused_where_it_decides(guard: Guard) -> None:
    long = f"{ORIGIN}/" + "x" * MAX_REFERER
    assert told(ask(guard, "/open/", **XHR | {"referer": long})) == (431, "comity.long-fields")
    assert told(ask(guard, "/open/", **XHR | {"referer": long[:MAX_REFERER]})) == PASSES
    assert told(ask(guard, "/open/", referer=long)) == PASSES


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize("field", ["x_http_method_override", "x_http_method", "x_method_override"])
def test_a_method_that_a_field_puts_in_place_is_judged_too(guard: Guard, field: str) -> None:
    for value in ("DELETE", "delete", " GET , DELETE", "GET," * 20 + "DELETE", "X" * 10_000):
        assert told(ask(guard, "/open/", "POST", **{field: value})) == (403, "automation.method")
    for value in ("GET", "", ",,", "post"):
        assert told(ask(guard, "/open/", "POST", **{field: value})) == PASSES
    assert told(ask(guard, "/open/", "DELETE", **{field: "GET"})) == (403, "automation.method")
    assert told(ask(guard, "/open/", "POST", user_agent=FIREFOX, **{field: "DELETE"})) == PASSES


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize("field", ["x_original_url", "x_rewrite_url"])
def test_a_target_that_a_field_puts_in_place_is_judged_too(guard: Guard, field: str) -> None:
    for value in (
        "/private/x",
        "/a/../private/x",
        "https://example.com/private/x",
        "private/x",
        "a+b:/private/x",
    ):
        assert told(ask(guard, "/open/", **{field: value})) == (403, "robots.disallow")
    # Several fields of one name, joined: applications take the first, or the last. And without a
    # fragment, as a server takes it.
    for value in (
        "/open/, /private/x",
        "/open/,https://example.com/private/x",
        "/report.pdf, /open/",
        "/report.pdf#x",
    ):
        assert told(ask(guard, "/open/", **{field: value})) == (403, "robots.disallow")
    many = [
        ",".join(f"{number}{path}/open/{number}" for number in range(MAX_TARGETS))
        for path in ("", ",")
    ]
    assert told(ask(guard, "/open/", **{field: many[0]})) == PASSES
    assert told(ask(guard, "/open/", **{field: f"{many[0]},/private/x"})) == (
        403,
        "robots.disallow",
    )
    assert told(ask(guard, "/open/", **{field: many[1]})) == (414, "comity.long-target")
    assert (
        len(
            Incoming(
                "GET", "/", {field.replace("_", "-"): ",/".join(map(str, range(10_000)))}
            ).targets
        )
        <= 2 * MAX_TARGETS + 4
    )
    assert told(ask(guard, "/open/", **{field: "/open/?box=1,2,3,4"})) == PASSES
    assert told(ask(guard, "/private/x", **{field: "/open/"})) == (403, "robots.disallow")
    assert told(ask(guard, "/open/", **{field: "/open/x"})) == PASSES
    assert told(ask(guard, "/two/", **{field: "/limited/"})) == PASSES
    assert told(ask(guard, "/limited/", **{field: "/two/"})) == PASSES
    assert told(ask(guard, "/open/", **{field: "/limited/"})) == (429, "comity.rate")
    assert told(ask(guard, "/open/", user_agent=FIREFOX, **{field: "/private/"})) == PASSES


@pytest.mark.requirement("GUARD-1")
def test_targets_that_share_a_spelling_are_all_judged(guard: Guard) -> None:
    for target, alias in (
        ("/open//x", "/private/../open/x"),
        ("/open/x", "/private/../open//x"),
        ("/open/x", "/private/../open/x"),
    ):
        incoming = Incoming("GET", target, {"user-agent": "examplebot"}, "192.0.2.1", (alias,))
        assert told(guard.check(incoming)) == (403, "robots.disallow")


@pytest.mark.requirement("GUARD-1", "AUTX-13")
def test_of_several_refusals_that_for_good_is_told() -> None:
    files = {
        "/robots.txt": (
            b"User-agent: nightbot\nVisit-time: 0200-0400\nDisallow:\n\n"
            b"User-agent: daybot\nDisallow: /private/\n"
        ),
        "/automation-preferences.txt": b"scope: /account/\nallowed-methods: GET\n"
        b"require-human-initiated-session: true\n"
        b"\nscope: /\nallowed-methods: GET\n",
    }
    guard = Guard(ORIGIN, files, clock=Clock())
    assert told(ask(guard, "/account/", user_agent="daybot")) == (401, "automation.session")
    assert told(ask(guard, "/account/", user_agent="daybot", x_original_url="/private/")) == (
        403,
        "robots.disallow",
    )
    assert told(ask(guard, "/private/", user_agent="nightbot")) == (429, "robots.visit-time")
    answer = ask(guard, "/private/", user_agent="nightbot daybot")
    assert told(answer) == (403, "robots.disallow")
    assert isinstance(answer, Answer)
    assert json.loads(answer.body)["rules"] == ["robots.disallow", "robots.visit-time"]


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize(
    "user_agent", ["slowbot", "otherbot slowbot", "slowbot (slowerbot)", "slowerbot slowbot"]
)
def test_the_limits_of_all_whom_a_client_names_hold(clock: Clock, user_agent: str) -> None:
    robots = (
        b"User-agent: slowbot\nCrawl-delay: 10\nDisallow:\n\nUser-agent: slowerbot\n"
        b"Request-rate: 2/60\nDisallow:\n"
    )
    guard = Guard(ORIGIN, {"/robots.txt": robots}, clock=clock)
    passed = []
    for _ in range(120):
        passed += [clock.now] if told(ask(guard, "/", user_agent=user_agent)) == PASSES else []
        clock.now += 1
    assert [moment - passed[0] for moment in passed] == (
        [0, 10, 60, 70] if "slower" in user_agent else list(range(0, 120, 10))
    )


POLICY_FILES = {
    "/robots.txt": b"User-agent: *\nDisallow: /private/\n",
    "/automation-preferences.txt": AUTOMATION,
}


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize(
    ("method", "target", "fields", "want"),
    [
        # Of the site: the application never sees them.
        ("GET", "/robots.txt", {}, 200),
        ("GET", "/%72obots.txt", {}, 200),
        ("GET", "https://example.com/robots.txt", {}, 200),
        ("GET", "/robots.txt?x=/private/", {}, 200),
        ("POST", "/robots.txt", {}, 405),
        ("POST", "/robots.txt", {"x_http_method_override": "GET"}, 405),
        # Not of the site: for everybody to ask for.
        ("GET", "/ai.txt", {}, 0),
        ("HEAD", "/ai.txt", {}, 0),
        ("GET", "/%61i.txt", {}, 0),
        # A target that may also mean something else is judged, and counts.
        ("GET", "/private/../robots.txt", {}, "robots.disallow"),
        ("GET", "/private/../ai.txt", {}, "robots.disallow"),
        ("GET", "/limited/../ai.txt", {}, "counts"),
        ("GET", "/limited/../robots.txt", {}, "counts"),
        ("GET", "//ai.txt", {}, "automation.allow"),
        ("GET", "/ai.txt?page=private", {}, "automation.allow"),
        ("GET", "/ai.txt", {"x_original_url": "/private/"}, "robots.disallow"),
        ("GET", "/robots.txt", {"x_original_url": "/private/"}, "robots.disallow"),
        ("POST", "/ai.txt", {}, "automation.method"),
        ("GET", "/ai.txt", {"x_http_method_override": "DELETE"}, "automation.method"),
        ("GET", "/ai.txt/", {}, "automation.allow"),
        ("GET", "/AI.txt", {}, "automation.allow"),
    ],
)
def test_only_policy_files_are_exempt(
    method: str, target: str, fields: dict[str, str], want: int | str
) -> None:
    guard = Guard(ORIGIN, POLICY_FILES)
    checked = [ask(guard, target, method, **fields) for _ in range(3)]
    statuses = [one.status if isinstance(one, Answer) else 0 for one in checked]
    if isinstance(want, int):
        assert statuses == [want] * 3
        assert guard.passed.total() == guard.refused.total() == 0
    elif want == "counts":
        assert statuses == [0, 0, 429]
    else:
        assert {**guard.passed, **guard.refused} == {want: 3}


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize("target", ["/private/../robots.txt", "/private/../ai.txt", "//ai.txt"])
def test_people_get_to_the_application_by_odd_ways_too(target: str) -> None:
    guard = Guard(ORIGIN, POLICY_FILES)
    assert told(ask(guard, target, "POST", user_agent=FIREFOX)) == PASSES


SERVED = {
    "/robots.txt": (b"User-agent: *\nDisallow:\n", "text/plain; charset=utf-8"),
    "/automation-preferences.txt": (
        b"scope: /\nallowed-methods: POST\n",
        "text/plain; charset=utf-8",
    ),
    "/ai.txt": (b"User-Agent: *\nAllow: /\n", "text/plain; charset=utf-8"),
    "/.well-known/tdmrep.json": (b'[{"location": "/", "tdm-reservation": 1}]', "application/json"),
    "/trust.txt": (b"datatrainingallowed=no\n", "text/plain; charset=utf-8"),
}


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize("path", SERVED)
@pytest.mark.parametrize("user_agent", ["examplebot", FIREFOX])
def test_policy_files_are_served_to_everybody(path: str, user_agent: str) -> None:
    guard = Guard(ORIGIN, {path: body for path, (body, _) in SERVED.items()}, max_age=60)
    body, media_type = SERVED[path]
    answer = ask(guard, path, user_agent=user_agent)
    assert isinstance(answer, Answer)
    headers = dict(answer.headers)
    assert (answer.status, answer.body, headers["Content-Type"]) == (200, body, media_type)
    assert (headers["Content-Length"], headers["Cache-Control"]) == (str(len(body)), "max-age=60")
    head = ask(guard, path + "?x=1", "HEAD", user_agent=user_agent)
    assert head == Answer(200, answer.headers, b"")
    for held in (headers["ETag"], f'"other", W/{headers["ETag"]}', "*"):
        unchanged = ask(guard, path, if_none_match=held)
        assert isinstance(unchanged, Answer)
        assert (unchanged.status, unchanged.body, dict(unchanged.headers)["ETag"]) == (
            304,
            b"",
            headers["ETag"],
        )
    changed = ask(guard, path, if_none_match='"other"')
    assert isinstance(changed, Answer)
    assert changed.status == 200
    posted = ask(guard, path, "POST")
    assert isinstance(posted, Answer)
    assert (posted.status, dict(posted.headers)["Allow"]) == (405, "GET, HEAD")
    assert not guard.refused


@pytest.mark.requirement("GUARD-1")
def test_policy_files_that_the_site_has_not_may_be_asked_for_by_everybody() -> None:
    guard = Guard(ORIGIN, {"/automation-preferences.txt": b"scope: /\nrequest-limit: 1/day\n"})
    asked = [
        guard.check(Incoming(method, "/robots.txt", {"user-agent": "bot"}))
        for method in ("GET", "HEAD", "GET")
    ]
    assert all(isinstance(answer, Pass) for answer in asked)
    assert isinstance(guard.check(Incoming("POST", "/robots.txt", {"user-agent": "bot"})), Answer)
    assert sum(guard.passed.values()) == 0


@pytest.mark.requirement("GUARD-1")
def test_what_robots_txt_refers_to_is_served_and_obeyed(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_bytes(
        b"ACAP-crawler: *\nACAP-permissions-reference: /more/acap.txt\n"
    )
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "acap.txt").write_bytes(b"ACAP-disallow-crawl: /hidden/\n")
    guard = Guard(ORIGIN, tmp_path)
    assert told(ask(guard, "/hidden/")) == (403, "acap.disallow")
    answer = ask(guard, "/more/%61cap.txt")
    assert isinstance(answer, Answer)
    assert answer.body == b"ACAP-disallow-crawl: /hidden/\n"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"/robots.txt": Path("nowhere/robots.txt")},
            "nowhere/robots.txt cannot be read.*create it, or leave /robots.txt out",
        ),
        (
            Path("nowhere"),
            "nowhere has no policy file: create one of robots.txt, automation-preferences.txt",
        ),
        (
            {"/robots.txt": b"<!doctype html><p>Not found"},
            "https://example.com/robots.txt: an HTML page: .*correct the file",
        ),
        (
            {"/automation-preferences.txt": b"scope: /\n\x00"},
            "automation-preferences.txt: line 2 has the control byte",
        ),
        (
            {"/robots.txt": b"ACAP-crawler: *\nACAP-permissions-reference: /more.txt\n"},
            (
                "https://example.com/more.txt is missing: "
                "https://example.com/robots.txt:2 refers to it, so add it"
            ),
        ),
        (
            {"/robots.txt": b"ACAP-crawler: *\nACAP-permissions-reference: ftp://x/\n"},
            "robots.txt:2 has an invalid reference",
        ),
        ({"ftp://x/robots.txt": b""}, "`ftp://x/robots.txt` is neither a path nor a URL"),
    ],
)
def test_a_file_that_is_missing_or_rejected_is_said_at_the_start(files: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        Guard(ORIGIN, files)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"origin": "example.com"}, "not an http or https URL: write e.g. https://example.com"),
        ({"max_age": -1}, "max_age `-1`"),
        ({"tolerance": 1}, "tolerance `1`"),
        ({"max_clients": 0}, "max_clients `0`"),
    ],
)
def test_arguments_that_make_no_sense_are_said_at_the_start(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(PolicyError, match=message):
        Guard(**({"origin": ORIGIN, "files": FILES} | arguments))


def test_findings_are_those_of_the_files() -> None:
    guard = Guard(
        ORIGIN,
        {
            "/robots.txt": b"Disallow: /\n",
            "/automation-preferences.txt": b"scope: /\nrequest-limit: lots\n",
        },
    )
    assert {"robots.no-agent", "automation.value"} <= {finding.rule for finding in guard.findings}


@pytest.mark.requirement("GUARD-1", "AIT-14")
def test_findings_of_files_that_are_only_served() -> None:
    guard = Guard(
        ORIGIN, {"/ai.txt": b"User-agent: *\n  Path: /\n    Element: p\n      Disallow: Crop\n"}
    )
    assert [(one.rule, one.url, one.line) for one in guard.findings] == [
        ("ait.file-type", f"{ORIGIN}/ai.txt", 2),
        ("ait.action", f"{ORIGIN}/ai.txt", 4),
    ]


AI = (
    b"User-agent: *\n  Path: / html\n    Element: *\n      Disallow: *\n"
    b"User-agent: examplebot\nDisallow: /\n"
)


@pytest.mark.requirement("GUARD-1", "AIT-7", "SPAWN-2")
@pytest.mark.parametrize("user_agent", ["examplebot/1.0", "Mozilla/5.0 (compatible; other)"])
def test_what_speaks_of_uses_refuses_no_request(user_agent: str) -> None:
    guard = Guard(
        ORIGIN,
        {"/ai.txt": AI, "/.well-known/tdmrep.json": b'[{"location": "/", "tdm-reservation": 1}]'},
    )
    assert told(ask(guard, "/", user_agent=user_agent)) == PASSES
    assert not guard.refused


@pytest.mark.requirement("GUARD-1", "AUTX-5", "AUTX-9")
@pytest.mark.parametrize(
    ("fields", "carried"),
    [
        ({}, set()),
        ({"cookie": ""}, set()),
        ({"cookie": "a=b"}, {"cookie"}),
        ({"x-api-key": ""}, set()),
        ({"x-api-key": " "}, set()),
        ({"x-api-key": "k"}, {"token"}),
        ({"authorization": ""}, set()),
        ({"authorization": " \t"}, set()),
        ({"authorization": "Bearer"}, set()),
        ({"authorization": "Bearer  "}, set()),
        ({"authorization": "bearer x"}, {"token", "bearer"}),
        ({"authorization": "Basic eA=="}, {"token"}),
    ],
)
def test_what_a_request_carries(fields: dict[str, str], carried: set[str]) -> None:
    assert credentials(fields) == carried


AUTOMATED: list[tuple[bool, dict[str, str]]] = [
    (False, {"user-agent": FIREFOX}),
    (False, {"user-agent": CHROME}),
    (
        False,
        {
            "user-agent": (
                "Mozilla/5.0 (Linux; Android 9; CUBOT NOTE 20) AppleWebKit/537.36 "
                "(KHTML, like Gecko) Chrome/100"
            )
        },
    ),
    (
        False,
        {"user-agent": "Mozilla/5.0 (Windows NT 10.0; WOW64; Trident/7.0; rv:11.0) like Gecko"},
    ),
    (False, {"user-agent": "Lynx/2.9.0 libwww-FM/2.14"}),
    (True, {}),
    (True, {"user-agent": ""}),
    (True, {"user-agent": "curl/8.5.0"}),
    (True, {"user-agent": "Mozilla/5.0"}),
    (True, {"user-agent": "Mozilla/5.0 (compatible; examplebot/1.0)"}),
    (True, {"user-agent": FIREFOX + " (someone@example.com)"}),
    (True, {"user-agent": CHROME + " (+https://example.com/about)"}),
    (True, {"user-agent": HEADLESS}),
    (True, {"user-agent": CHROME, "sec-ch-ua": '"HeadlessChrome";v="126"'}),
    (True, {"user-agent": CHROME, "from": "someone@example.com"}),
]


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize(("is_program", "fields"), AUTOMATED)
def test_who_is_automated(is_program: bool, fields: dict[str, str]) -> None:
    assert is_automated(Incoming("GET", "/", fields)) is is_program


def test_the_owner_says_who_is_automated_and_by_which_tools(clock: Clock) -> None:
    guard = Guard(
        ORIGIN,
        FILES,
        clock=clock,
        is_automated=lambda incoming: "robot" in incoming.fields,
        mechanisms=lambda incoming: (
            *mechanisms(incoming),
            *incoming.fields.get("tools", "").split(),
        ),
        client=lambda incoming: incoming.fields.get("forwarded", ""),
    )
    assert told(ask(guard, "/private/")) == PASSES
    assert told(ask(guard, "/private/", robot="1")) == (403, "robots.disallow")
    assert told(ask(guard, "/tools/", robot="1", tools="headless cdp")) == (
        403,
        "automation.mechanism",
    )
    assert told(ask(guard, "/tools/", robot="1", tools="headless")) == PASSES
    asked = [told(ask(guard, "/limited/", robot="1", forwarded=client)) for client in "aaab"]
    assert asked == [PASSES, PASSES, (429, "comity.rate"), PASSES]


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize(
    "target",
    [
        "/private/",
        "//private/",
        "/./private/",
        "/public/../private/",
        "/public/%2e%2E/private/",
        "/public%2F..%2fprivate/x",
        "/%70rivate/",
        "http://elsewhere.example/private/",
        "/x/../../private/#fragment",
        "/private;x/",
        "/public/..;/private/",
        "/public/%252e%252e/private/",
        "/pri%09vate/",
        "/pub%0Dlic/%0a../private/",
        "a+b:/private/",
        "private/",
    ],
)
def test_no_spelling_gets_round_a_refusal(guard: Guard, target: str) -> None:
    assert told(ask(guard, target)) == (403, "robots.disallow")


@pytest.mark.requirement("GUARD-1", "MEET-6")
def test_no_spelling_gets_by_as_a_policy_file(guard: Guard) -> None:
    """Of those that the site has not: the request would go on to the application as it is."""
    assert told(ask(guard, "/ai.txt")) == PASSES
    assert told(ask(guard, "/private/..;/ai.txt")) == (403, "robots.disallow")
    assert told(ask(guard, "/ai.txt/../private/")) == (403, "robots.disallow")


@pytest.mark.parametrize(
    "target", ["/private", "/privat%25e/", "/public/private/", "/%2570rivate/", "/?/private/", "*"]
)
def test_other_paths_are_not_mistaken_for_it(guard: Guard, target: str) -> None:
    assert told(ask(guard, target)) == PASSES


odd = st.text(max_size=60) | st.text("/%.\\*?\0\n\x1b[31m:@é", max_size=60) | st.just("a" * 100_000)


@pytest.mark.requirement("GUARD-1", "SEC-1")
@given(
    method=odd,
    target=odd,
    fields=st.dictionaries(
        st.sampled_from(
            [
                "user-agent",
                "cookie",
                "referer",
                "accept",
                "automation-purpose",
                "authorization",
                "sec-fetch-dest",
            ]
        )
        | odd,
        odd,
    ),
    peer=odd,
)
def test_whatever_comes_has_an_answer(
    method: str, target: str, fields: dict[str, str], peer: str
) -> None:
    checked = SHARED.check(Incoming(method, target, fields, peer))
    if isinstance(checked, Answer):
        assert checked.status in (200, 304, 401, 403, 405, 414, 429, 431)
        assert checked.status_line.startswith(f"{checked.status} ")
    else:
        checked.end()


SHARED = Guard(ORIGIN, FILES)


@pytest.mark.requirement("GUARD-1", "SEC-1")
def test_no_client_makes_the_guard_grow(guard: Guard) -> None:
    for number in range(3000):
        ask(
            guard,
            f"/{number}",
            user_agent=f"bot{number}",
            automation_purpose=f"p{number}",
            peer=f"192.0.2.{number % 250}",
        )
    assert len(guard._site._readings.views) == 1
    assert set(guard.passed) == {"automation.allow"}


@pytest.mark.requirement("GUARD-1", "ACAP-15")
def test_a_prohibition_for_one_purpose_is_for_it_alone() -> None:
    acap = b"ACAP-crawler: *\nACAP-usage-purpose: training\nACAP-disallow-crawl: /essays/\n"
    guard = Guard(ORIGIN, {"/robots.txt": acap})
    asked = [
        told(ask(guard, "/essays/", automation_purpose=purpose))
        for purpose in ("research", "training", "x, training")
    ]
    assert asked == [PASSES, (403, "acap.disallow"), (403, "acap.disallow")]
    assert told(ask(guard, "/essays/")) == PASSES
    for number in range(300):
        assert (
            told(
                ask(
                    guard,
                    "/essays/",
                    automation_purpose=f"purpose{number}",
                    peer=f"192.0.2.{number % 250}",
                )
            )
            == PASSES
        )
    assert len(guard._site._readings.views) == 1  # rules are compiled once for all of them


@pytest.mark.requirement("SEC-4")
def test_refusals_are_logged_fit_to_show(guard: Guard, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "comity.guard.guard"):
        ask(guard, "/private/\x1b[31m\u202e")
    [record] = caplog.records
    assert record.getMessage().startswith(
        "Refused GET /private/\ufffd[31m\ufffd of 192.0.2.1: deny: robots.disallow (RFC 9309"
    )


class Collecting(Clients):
    """Ends an unused request while another request is counted, as the garbage collector may do."""

    def __init__(self, garbage: list[Pass]) -> None:
        super().__init__(10)
        self._garbage = garbage

    def claim(self, name: str, limits: Sequence[ClientLimit], now: float) -> TooMany | None:
        while self._garbage:
            self._garbage.pop().end()
        return super().claim(name, limits, now)


@pytest.mark.requirement("GUARD-1")
def test_what_ends_within_a_claim_waits_for_nobody() -> None:
    garbage: list[Pass] = []
    guard = Guard(ORIGIN, FILES, counts=Collecting(garbage))
    first, second = ask(guard, "/two/a"), ask(guard, "/two/b")
    assert isinstance(first, Pass)
    assert isinstance(second, Pass)
    garbage += [first, second]
    assert told(ask(guard, "/two/c")) == (429, "comity.concurrent")
    assert [told(ask(guard, "/two/d")) for _ in range(3)] == [PASSES] * 3


@pytest.mark.requirement("GUARD-1")
def test_threads_share_a_guard(guard: Guard) -> None:
    def one(number: int) -> tuple[int, str]:
        return told(
            ask(
                guard,
                "/limited/",
                user_agent=("slowbot", "namedbot", "x")[number % 3],
                peer=str(number % 5),
            )
        )

    with ThreadPoolExecutor(8) as threads:
        asked = list(threads.map(one, range(600)))
    passed = asked.count(PASSES)
    assert passed == guard.passed.total()
    assert 5 <= passed <= 10  # 5 clients, 2 a minute; slowbot has a Crawl-delay besides
    assert guard.refused.total() == 600 - passed
