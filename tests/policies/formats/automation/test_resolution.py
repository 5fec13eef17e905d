"""The group of an automation-preferences.txt that applies, and its refusals.

See draft-liao-aipref-autoctl-core-01 http-method-restrictions to scope-and-applicability, and
draft-liao-aipref-autoctl-ext section-3.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from comity.policies.answers.request import CREDENTIALS, PLAIN, Facts, Session
from comity.policies.formats.automation.directives import METHODS, Directives, DirectiveValue, Group
from comity.policies.formats.automation.grammar import parse
from comity.policies.formats.automation.resolution import GroupRefusal, ScopeRules, limits, refusals
from comity.policies.syntax.windows import Limits, Window
from tests.selection import one_in

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def rules(text: str, token: str = "examplebot", host: str = "example.com") -> ScopeRules:
    return ScopeRules(parse(text.encode()), token, host)


def line(text: str, target: str, token: str = "examplebot", host: str = "example.com") -> int:
    """Return the first line of the group that applies, or 0."""
    group = rules(text, token, host).group(target)
    return group.line if group else 0


class Speaks(NamedTuple):
    id: str
    rows: str
    text: str
    target: str
    line: int  # of the group that speaks, 0: none
    token: str = "examplebot"
    host: str = "example.com"


SPEAKS = [
    # AUTO-8: scope
    Speaks("prefix", "AUTO-8", "scope: /a", "/ab?c", 1),
    Speaks("no-match", "AUTO-8 AUTO-12", "scope: /a", "/b", 0),
    Speaks("nothing", "AUTO-12", "", "/", 0),
    Speaks("star", "AUTO-8", "scope: /*/b", "/a/x/bc", 1),
    Speaks("star-not", "AUTO-8", "scope: /*/b", "/a/xb", 0),
    Speaks("end", "AUTO-8", "scope: /a$", "/a", 1),
    Speaks("end-not", "AUTO-8", "scope: /a$", "/ab", 0),
    Speaks("case", "AUTO-8", "scope: /Admin", "/admin", 0),
    Speaks("escape", "AUTO-8", "scope: /%7ea/é", "/~a/%c3%a9", 1),
    Speaks("escaped-slash", "AUTO-8", "scope: /a%2fb", "/a/b", 0),
    Speaks("query", "AUTO-8", "scope: /a?b=", "/a?b=1", 1),
    Speaks("several", "AUTO-8", "scope: /x\nscope: /a", "/a", 1),
    Speaks("several-longest", "AUTO-8", "scope: /\nscope: /a/b\n\nscope: /a", "/a/b", 1),
    Speaks(
        "several-the-one-that-matches", "AUTO-8", "scope: /\nscope: /a/b\n\nscope: /a", "/a/c", 4
    ),
    Speaks("normalised-length", "AUTO-8", "scope: /a*c\n\nscope: /%61b", "/abc", 1),
    Speaks("url", "AUTO-8", "scope: http://example.com/a", "/ab", 1),
    Speaks("url-other-host", "AUTO-8", "scope: https://example.org/a\nscope: /b", "/a", 0),
    Speaks("url-beside-path", "AUTO-8", "scope: https://example.org/a\nscope: /b", "/b", 1),
    Speaks("url-port", "AUTO-8", "scope: https://example.com:8080/", "/", 0),
    Speaks(
        "url-own-port",
        "AUTO-8",
        "scope: https://example.com:8080/",
        "/",
        1,
        host="example.com:8080",
    ),
    Speaks("url-no-host", "AUTO-8", "scope: https://a b/", "/", 0),
    Speaks(
        "url-is-exact", "AUTO-8 AUTO-11", "scope: https://example.com/\n\nscope: /a/b", "/a/b", 1
    ),
    Speaks(
        "url-wildcard-is-not", "AUTO-8 AUTO-11", "scope: https://*.com/\n\nscope: /a/b", "/a/b", 3
    ),
    Speaks("url-any-scheme", "AUTO-8 AUTO-11", "scope: *://example.com/a\n\nscope: /a", "/a", 1),
    Speaks("url-any-scheme-other-host", "AUTO-8", "scope: *://example.org/a", "/a", 0),
    Speaks("url-part-of-a-scheme", "AUTO-8", "scope: http*://*.com/a", "/a", 1),
    Speaks("url-without-scheme", "AUTO-8", "scope: //example.com/a", "/a", 1),
    Speaks("url-without-scheme-other-host", "AUTO-8", "scope: //example.org/a", "/a", 0),
    Speaks("url-without-scheme-or-path", "AUTO-8", "scope: //example.com/a", "//example.com/a", 1),
    Speaks("url-wildcard-without-scheme", "AUTO-8 AUTO-11", "scope: *.com/a\n\nscope: /", "/a", 1),
    Speaks(
        "url-wildcard-without-scheme-is-not-exact",
        "AUTO-8 AUTO-11",
        "scope: *.com/\n\nscope: /a",
        "/a",
        3,
    ),
    Speaks("url-wildcard-without-scheme-or-path", "AUTO-8", "scope: *.com/a", "/x.com/a", 1),
    Speaks("path-with-a-dot-is-no-host", "AUTO-8", "scope: *.com", "/a", 0),
    Speaks(
        "url-and-host", "AUTO-8 AUTO-9", "scope: https://example.com/\nhost: example.org", "/", 0
    ),
    # AUTO-9: host
    Speaks("host", "AUTO-9", "scope: /\nhost: EXAMPLE.com", "/", 1),
    Speaks("host-dot", "AUTO-9", "scope: /\nhost: example.com", "/", 1, host="example.com."),
    Speaks("host-other", "AUTO-9", "scope: /\nhost: www.example.com", "/", 0),
    Speaks(
        "host-any-port", "AUTO-9", "scope: /\nhost: example.com", "/", 1, host="example.com:8080"
    ),
    Speaks(
        "host-port", "AUTO-9", "scope: /\nhost: example.com:8080", "/", 1, host="example.com:8080"
    ),
    Speaks(
        "host-other-port",
        "AUTO-9",
        "scope: /\nhost: example.com:8081",
        "/",
        0,
        host="example.com:8080",
    ),
    Speaks("host-default-port", "AUTO-9", "scope: /\nhost: example.com:443", "/", 1),
    Speaks("host-ipv6", "AUTO-9", "scope: /\nhost: [::1]", "/", 1, host="[::1]:8080"),
    Speaks("host-ipv6-port", "AUTO-9", "scope: /\nhost: [::1]:8080", "/", 1, host="[::1]:8080"),
    Speaks(
        "host-ipv6-other",
        "AUTO-9",
        "scope: /\nhost: [::2]\nhost: [::1]:81",
        "/",
        0,
        host="[::1]:8080",
    ),
    Speaks("host-letters", "AUTO-9", "scope: /\nhost: MÜLLER.de", "/", 1, host="xn--mller-kva.de"),
    Speaks(
        "host-letters-of-idna-2008",
        "AUTO-9",
        "scope: /\nhost: straße.de",
        "/",
        1,
        host="xn--strae-oqa.de",
    ),
    Speaks(
        "host-letters-of-idna-2008-port",
        "AUTO-9",
        "scope: /\nhost: βόλος.com:81",
        "/",
        1,
        host="xn--nxasmm1c.com:81",
    ),
    Speaks(
        "host-letters-of-idna-2008-below",
        "AUTO-9",
        "scope: /\nhost: *.straße.de",
        "/",
        1,
        host="a.xn--strae-oqa.de",
    ),
    Speaks(
        "url-letters-of-idna-2008",
        "AUTO-8 AUTO-9",
        "scope: https://straße.de/",
        "/",
        1,
        host="xn--strae-oqa.de",
    ),
    Speaks(
        "host-letters-of-idna-2003",
        "AUTO-9",
        "scope: /\nhost: straße.de",
        "/",
        1,
        host="strasse.de",
    ),
    Speaks(
        "host-a-label-that-is-none",
        "AUTO-9",
        "scope: /\nhost: xn--a-ecp.ru",
        "/",
        1,
        host="xn--a-ecp.ru",
    ),
    Speaks(
        "host-other-letters", "AUTO-9", "scope: /\nhost: straße.de", "/", 0, host="xn--mller-kva.de"
    ),
    Speaks(
        "host-wildcard", "AUTO-9", "scope: /\nhost: *.example.com", "/", 1, host="a.b.example.com"
    ),
    Speaks("host-wildcard-not-itself", "AUTO-9", "scope: /\nhost: *.example.com", "/", 0),
    Speaks(
        "host-wildcard-not-more",
        "AUTO-9",
        "scope: /\nhost: *.example",
        "/",
        0,
        host="a.example.com",
    ),
    Speaks(
        "host-wildcard-port",
        "AUTO-9",
        "scope: /\nhost: *.example.com:81",
        "/",
        0,
        host="a.example.com",
    ),
    Speaks(
        "host-wildcard-own-port",
        "AUTO-9",
        "scope: /\nhost: *.example.com:81",
        "/",
        1,
        host="a.example.com:81",
    ),
    Speaks("host-any", "AUTO-9", "scope: /\nhost: *", "/", 1),
    Speaks(
        "host-u-label",
        "AUTO-9",
        "scope: /\nhost: bücher.example",
        "/",
        1,
        host="xn--bcher-kva.example",
    ),
    Speaks(
        "host-a-label",
        "AUTO-9",
        "scope: /\nhost: xn--bcher-kva.example",
        "/",
        1,
        host="xn--bcher-kva.example",
    ),
    Speaks("host-list", "AUTO-9", "scope: /\nhost: a.com, example.com", "/", 1),
    Speaks("host-lines", "AUTO-9", "scope: /\nhost: example.com\nhost: a.com", "/", 1),
    Speaks("host-empty", "AUTO-9", "scope: /\nhost:", "/", 1),
    Speaks("host-none", "AUTO-9", "scope: /\nhost: ?", "/", 0),
    # AUTO-10: user-agent
    Speaks("agent", "AUTO-10", "scope: /\nuser-agent: other, ExampleBot", "/", 1),
    Speaks("agent-lines", "AUTO-10", "scope: /\nuser-agent: ExampleBot\nuser-agent: other", "/", 1),
    Speaks("agent-case", "AUTO-10", "scope: /\nuser-agent: examplebot", "/", 1, token="EXAMPLEBOT"),
    Speaks("agent-other", "AUTO-10", "scope: /\nuser-agent: example", "/", 0),
    Speaks("agent-any", "AUTO-10", "scope: /\nuser-agent: *", "/", 1),
    Speaks("agent-absent", "AUTO-10", "scope: /", "/", 1),
    Speaks("agent-empty", "AUTO-10 AUTX-1", "scope: /\nuser-agent:", "/", 0),
    # AUTO-11: specificity
    Speaks(
        "host-over-scope",
        "AUTO-11",
        "scope: /\nhost: example.com\n\nscope: /a/b\nuser-agent: ExampleBot",
        "/a/b",
        1,
    ),
    Speaks(
        "host-over-wildcard",
        "AUTO-11",
        "scope: /\nhost: example.com\n\nscope: /a\nhost: *.com",
        "/a",
        1,
    ),
    Speaks("wildcard-is-as-absent", "AUTO-11", "scope: /a\n\nscope: /\nhost: *.com", "/a", 1),
    Speaks(
        "one-of-hosts-exact", "AUTO-11", "scope: /\nhost: *.com, example.com\n\nscope: /a", "/a", 1
    ),
    Speaks(
        "scope-over-agent", "AUTO-11", "scope: /a/b\n\nscope: /a\nuser-agent: ExampleBot", "/a/b", 1
    ),
    Speaks("scope-over-later", "AUTO-11", "scope: /a/b\n\nscope: /a", "/a/b", 1),
    Speaks(
        "agent-over-later",
        "AUTO-11",
        "scope: /\nuser-agent: ExampleBot\n\nscope: /\nuser-agent: *\n\nscope: /",
        "/",
        1,
    ),
    Speaks(
        "agent-among-others", "AUTO-11", "scope: /\nuser-agent: *, ExampleBot\n\nscope: /", "/", 1
    ),
    Speaks("agent-any-is-as-absent", "AUTO-11", "scope: /\nuser-agent: *\n\nscope: /", "/", 4),
    Speaks("absent-before-any", "AUTO-11", "scope: /\n\nscope: /\nuser-agent: *", "/", 3),
    Speaks("later", "AUTO-11", "scope: /a\n\nscope: /a\n\nscope: /b", "/a", 3),
    Speaks("equal-length", "AUTO-11", "scope: /a*\n\nscope: /ab\n\nscope: /*b", "/ab", 5),
    # AUTO-5: no scope
    Speaks("no-scope", "AUTO-5", "allowed-methods: GET", "/a", 1),
    Speaks("no-scope-for-others", "AUTO-5", "user-agent: other", "/a", 0),
    Speaks(
        "no-scope-is-outranked",
        "AUTO-5",
        "scope: /\n\nhost: example.com\nuser-agent: ExampleBot",
        "/",
        1,
    ),
    Speaks("no-scope-where-none-matches", "AUTO-5", "scope: /a\n\nuser-agent: ExampleBot", "/b", 3),
    Speaks(
        "no-scope-host", "AUTO-5 AUTO-11", "host: example.com\n\nuser-agent: ExampleBot", "/", 1
    ),
    Speaks("no-scope-agent", "AUTO-5 AUTO-11", "user-agent: ExampleBot\n\nuser-agent: *", "/", 1),
    Speaks(
        "no-scope-later",
        "AUTO-5 AUTO-11",
        "user-agent: ExampleBot\n\nuser-agent: ExampleBot",
        "/",
        3,
    ),
    Speaks("empty-scope-is-none", "AUTO-5", "scope: /a\n\nscope:\nuser-agent: *", "/a", 1),
]


@pytest.mark.parametrize(
    "case",
    one_in(
        3,
        [
            pytest.param(case, id=case.id, marks=pytest.mark.requirement(*case.rows.split()))
            for case in SPEAKS
        ],
    ),
)
def test_which_group_speaks(case: Speaks) -> None:
    assert line(case.text, case.target, case.token, case.host) == case.line


@pytest.mark.requirement("AUTO-11")
def test_all_groups_that_match_the_one_that_speaks_first() -> None:
    text = (
        "scope: /\nscope: /a\n\nscope: /b\n\nuser-agent: *\n\nscope: /\nhost: example.com\n\n"
        "scope: /a\nhost: e.org\n\nscope: /a"
    )
    found = rules(text)
    assert [group.line for group in found.matching("/%61")] == [8, 14, 1, 6]
    assert [group.line for group in found.matching("/")] == [8, 1, 6]


@pytest.mark.requirement("AUTO-12")
def test_whether_anything_may_bind() -> None:
    text = (
        "scope: /\nuser-agent: a\nrequest-limit: 1/day\n\nscope: /\nuser-agent: b\n"
        "allowed-methods: GET\n\nuser-agent: c"
    )
    states = {token: rules(text, token) for token in "abcd"}
    assert [(one.is_stating, one.has_limits) for one in states.values()] == [
        (True, True),
        (True, False),
        (True, False),
        (False, False),
    ]
    assert not rules("scope: https://example.org/\nconcurrent-limit: 1\n").is_stating


# Refusals


def group(*directives: str) -> Group:
    [found] = parse("\n".join(["scope: /", *directives]).encode()).groups
    return found


def refusals_of(
    directives: Iterable[str],
    facts: Facts = PLAIN,
    purposes: tuple[str, ...] = (),
    annotation: Directives | None = None,
    host: str = "example.com",
) -> str:
    """Return the refusals of a group: each rule with its line, 0 for none, "@" for the annotation.

    Line 1 is the scope.
    """
    found = refusals(group(*directives), facts, purposes, NOW, annotation, host=host)
    shown = (
        (
            refusal.rule.removeprefix("automation."),
            "@" * refusal.from_annotation,
            refusal.directive.line if refusal.directive else 0,
        )
        for refusal in found
    )
    return ", ".join(f"{rule} {mark}{number}" for rule, mark, number in shown)


GET = "allowed-methods: GET"
ALL = f"allowed-methods: {', '.join(METHODS)}"


def api(**facts: Any) -> Facts:
    return Facts(kinds=("api",), **facts)


def xhr(**facts: Any) -> Facts:
    return Facts(kinds=("xhr",), **facts)


def using(session: Session | None) -> Facts:
    return Facts(session=session)


def aged(**age: float) -> Facts:
    return using(Session(started_at=NOW - timedelta(**age)))


class Case(NamedTuple):
    rows: str
    directives: tuple[str, ...]
    facts: Facts
    want: str
    purposes: tuple[str, ...] = ()


CASES = [
    # Methods
    Case("AUTO-7", (GET,), PLAIN, ""),
    Case("AUTO-7", (GET,), Facts(method="HEAD"), "method 2"),
    Case("AUTO-7", ("allowed-methods: GET, POST",), Facts(method="POST"), ""),
    Case("AUTO-7", (GET,), Facts(method="POST"), "method 2"),
    Case("AUTO-7", (GET,), Facts(method="BREW"), "method 2"),
    Case("AUTO-6", ("allowed-methods: get",), Facts(method="Get"), ""),
    Case("AUTO-7", (), PLAIN, "method 0"),
    Case("AUTO-7 AUTX-1", ("allowed-methods:",), PLAIN, "method 2"),
    Case(
        "AUTO-5",
        ("allowed-methods: GET, HEAD", "allowed-methods: HEAD, POST"),
        Facts(method="HEAD"),
        "",
    ),
    Case(
        "AUTO-5", ("allowed-methods: GET, HEAD", "allowed-methods: HEAD, POST"), PLAIN, "method 3"
    ),
    Case("AUTO-5", ("allowed-methods: HEAD", "allowed-methods: POST"), PLAIN, "method 2"),
    # Purposes
    Case("AUTO-13", (GET,), PLAIN, ""),
    Case("AUTO-13", (GET, "allowed-purposes: Archive, search"), PLAIN, "", ("archive",)),
    Case("AUTO-13", (GET, "allowed-purposes: archive"), PLAIN, "", ("Archive",)),
    Case("AUTO-13", (GET, "allowed-purposes: archive, search"), PLAIN, "", ("search", "archive")),
    Case(
        "AUTO-13",
        (GET, "allowed-purposes: archive, search"),
        PLAIN,
        "purpose 3",
        ("search", "train"),
    ),
    Case("AUTO-13", (GET, "allowed-purposes: archive"), PLAIN, "purpose 3", ("train",)),
    Case("AUTO-13", (GET, "allowed-purposes: archive"), PLAIN, "purpose 3"),
    Case("AUTO-13 AUTX-1", (GET, "allowed-purposes:"), PLAIN, "purpose 3", ("archive",)),
    Case("AUTO-13 AUTX-1", (GET, "allowed-purposes:"), PLAIN, "purpose 3"),
    Case(
        "AUTO-13", (GET, "allowed-purposes: archive"), Facts(purposes=("archive",)), "", ("train",)
    ),
    Case(
        "AUTO-13",
        (GET, "allowed-purposes: archive"),
        Facts(purposes=("train",)),
        "purpose 3",
        ("archive",),
    ),
    Case(
        "AUTO-13", (GET, "allowed-purposes: archive"), Facts(purposes=()), "purpose 3", ("archive",)
    ),
    Case("AUTO-5", (GET, "allowed-purposes: a, b", "allowed-purposes: b, c"), PLAIN, "", ("b",)),
    Case(
        "AUTO-5",
        (GET, "allowed-purposes: a, b", "allowed-purposes: b, c"),
        PLAIN,
        "purpose 4",
        ("a",),
    ),
    # Mechanisms
    Case("AUTX-4", (GET,), Facts(automations=("cdp",)), "mechanism 0"),
    Case(
        "AUTX-4",
        (GET, "allowed-automations: webdriver, headless"),
        Facts(automations=("headless", "WebDriver")),
        "",
    ),
    Case(
        "AUTX-4",
        (GET, "allowed-automations: webdriver, headless"),
        Facts(automations=("cdp", "headless")),
        "mechanism 3",
    ),
    Case(
        "AUTX-4 AUTX-1", (GET, "allowed-automations:"), Facts(automations=("cdp",)), "mechanism 3"
    ),
    Case("AUTX-4 AUTX-1", (GET, "allowed-automations:"), PLAIN, ""),
    Case("AUTX-4", (GET, "allowed-automations: my-tool"), Facts(automations=("my-tool",)), ""),
    Case(
        "AUTO-5",
        (GET, "allowed-automations: cdp", "allowed-automations: headed"),
        Facts(automations=("cdp",)),
        "mechanism 4",
    ),
    # API
    Case("AUTX-5", (GET,), api(), "api 0"),
    Case("AUTX-5", (GET,), api(has_key=True), "api 0"),
    Case("AUTX-5", (GET, "api-automation: none"), api(has_key=True), "api 3"),
    Case("AUTX-5", (GET, "api-automation: none"), PLAIN, ""),
    Case("AUTX-5", (GET, "api-automation: with-key-only"), api(), "key 3"),
    Case("AUTX-5", (GET, "api-automation: with-key-only"), api(has_key=True), ""),
    Case("AUTX-5", (GET, "api-automation: open"), api(), ""),
    Case("AUTX-5 AUTX-14", (GET, "api-automation: yes"), api(has_key=True), "api 3"),
    Case("AUTX-5", (GET, "api-automation: open", "api-automation: with-key-only"), api(), "key 4"),
    # XHR
    Case("AUTX-6", (GET,), xhr(), "xhr 0"),
    Case("AUTX-6", (GET, "allow-xhr: none"), xhr(), "xhr 3"),
    Case("AUTX-6", (GET, "allow-xhr: none"), PLAIN, ""),
    Case("AUTX-6", (ALL, "allow-xhr: read-only"), xhr(), ""),
    Case("AUTX-6", (ALL, "allow-xhr: read-only"), xhr(method="HEAD"), "xhr 3"),
    Case("AUTX-6", (ALL, "allow-xhr: read-only"), xhr(method="POST"), "xhr 3"),
    Case("AUTX-6", (ALL, "allow-xhr: open"), xhr(method="POST"), ""),
    Case("AUTX-6", (GET, "allow-xhr: open"), xhr(method="POST"), "method 2"),
    Case("AUTX-5 AUTX-6", (GET, "allow-xhr: open"), Facts(kinds=("api", "xhr")), "api 0"),
    # A method that a field puts in place of the first one
    Case("AUTO-7", (f"{GET}, POST",), Facts(method="POST", overriding=("DELETE",)), "method 2"),
    Case("AUTO-7", (GET,), Facts(overriding=("HEAD", "GET")), "method 2"),
    Case("AUTO-7", (GET,), Facts(method="POST", overriding=("GET",)), "method 2"),
    Case("AUTO-7", (ALL,), Facts(method="POST", overriding=("GET",)), ""),
    Case("AUTX-6", (ALL, "allow-xhr: read-only"), xhr(overriding=("POST",)), "xhr 3"),
    # Human-initiated sessions
    Case("AUTX-15", (GET,), using(None), ""),
    Case("AUTX-8", (GET, "require-human-initiated-session: true"), using(None), "session 3"),
    Case("AUTX-8", (GET, "require-human-initiated-session: true"), using(Session()), "session 3"),
    Case(
        "AUTX-8",
        (GET, "require-human-initiated-session: true"),
        using(Session(human_initiated=True)),
        "",
    ),
    Case("AUTX-8", (GET, "require-human-initiated-session: false"), using(None), ""),
    Case(
        "AUTX-8 AUTX-14",
        (GET, "require-human-initiated-session: perhaps"),
        using(Session()),
        "session 3",
    ),
    # Validation
    Case("AUTX-9", (GET, "session-validation: cookie-based"), using(None), ""),
    Case(
        "AUTX-9",
        (GET, "session-validation: cookie-based"),
        using(Session()),
        "session-validation 3",
    ),
    Case("AUTX-9", (GET, "session-validation: none"), using(Session()), ""),
    Case(
        "AUTX-9 AUTX-14",
        (GET, "session-validation: ?"),
        using(Session(carries=frozenset(CREDENTIALS))),
        "session-validation 3",
    ),
    *(
        Case(
            "AUTX-9",
            (GET, f"session-validation: {validation}"),
            using(Session(carries=frozenset({carried}))),
            "" if carried == credential else "session-validation 3",
        )
        for validation, credential in (
            ("cookie-based", "cookie"),
            ("token-based", "token"),
            ("oauth", "bearer"),
        )
        for carried in CREDENTIALS
    ),
    # TTL
    Case("AUTX-10", (GET, "session-ttl: 1h"), aged(), ""),
    Case("AUTX-10", (GET, "session-ttl: 1h"), aged(hours=1), ""),
    Case("AUTX-10", (GET, "session-ttl: 1h"), aged(hours=1, seconds=1), "session-ttl 3"),
    Case(
        "AUTX-10", (GET, "session-ttl: 1h", "session-ttl: 30m"), aged(minutes=31), "session-ttl 4"
    ),
    Case("AUTX-10", (GET, "session-ttl: 1h"), using(Session()), "session-ttl 3"),
    Case("AUTX-10", (GET, "session-ttl: 1h"), using(None), ""),
    Case("AUTX-10", (GET, "session-ttl: 169h"), aged(), "session-ttl 3"),
    Case("AUTX-10", (GET, "session-ttl: 169h"), using(None), ""),
    Case("AUTX-15", (GET,), aged(days=1000), ""),
    # Nothing at all
    Case("AUTX-2", (GET, "request-limit: 0/day"), PLAIN, "none 3"),
    Case("AUTX-2", (GET, "request-limit: 1/day", "request-limit: 0/hour"), PLAIN, "none 4"),
    Case("AUTX-3", (GET, "concurrent-limit: 0"), PLAIN, "none 3"),
    Case("AUTX-2 AUTX-3 AUTX-14", (GET, "request-limit: x", "concurrent-limit: x"), PLAIN, ""),
    # All at once, in the order of the specification
    Case(
        "AUTO-7 AUTO-13 AUTX-4 AUTX-5 AUTX-6 AUTX-8 AUTX-9 AUTX-10",
        (
            GET,
            "allowed-purposes:",
            "require-human-initiated-session: true",
            "session-validation: oauth",
            "session-ttl: 1s",
            "disallow-fetch-from: /",
            "concurrent-limit: 0",
        ),
        Facts(method="POST", kinds=("api", "xhr"), automations=("cdp",), session=Session()),
        "method 2, purpose 3, mechanism 0, api 0, xhr 0, fetch-from 7, session 4, "
        "session-validation 5, session-ttl 6, none 8",
    ),
]


@pytest.mark.parametrize(
    "case",
    one_in(
        3,
        [
            pytest.param(
                case, id=f"{number}-{case.want}", marks=pytest.mark.requirement(*case.rows.split())
            )
            for number, case in enumerate(CASES)
        ],
    ),
)
def test_refusals(case: Case) -> None:
    assert refusals_of(case.directives, case.facts, case.purposes) == case.want


@pytest.mark.requirement("AUTX-7")
@pytest.mark.parametrize(
    ("pages", "referer", "is_refused"),
    [
        ("/account/*, /cart$", "https://example.com/account/1", True),
        ("/account/*, /cart$", "https://example.com/cart", True),
        ("/account/*, /cart$", "https://example.com/cart?x", False),
        ("/account/*, /cart$", "https://example.com/a/account/", False),
        ("/%61ccount", "http://EXAMPLE.com:80/%61ccount#x", True),
        ("/account", "https://example.org/account", False),
        ("https://example.org/account", "https://example.org/account", True),
        ("https://example.org/account", "https://example.com/account", False),
        ("https://*.org/*b", "https://example.org/ab", True),
        ("http://example.com:8080/", "https://example.com/", False),
        ("*://example.org/a", "https://example.org/ab", True),
        ("http*://example.org/a", "https://example.org/ab", True),
        ("*://example.org/a", "https://example.com/a", False),
        ("*", "https://example.org/a", True),
        ("*", "https://example.com/a", True),
        ("*.example.org/a", "https://b.example.org/a", True),
        ("*.example.org/a", "https://example.com/a", False),
        ("//example.org/a, example.net/b", "https://example.org/a", True),
        ("//example.org/a, example.net/b", "https://example.net/b", True),
        ("//example.org/a, example.net/b", "https://example.net/a", False),
        ("cart", "https://example.com/cart", True),
        ("/", None, True),
        ("/", "about:client", True),
        ("/", "", True),
        ("", None, False),
        ("/a /b", "https://example.org/c", True),  # AUTX-14
    ],
)
def test_fetch_from(pages: str, referer: str | None, is_refused: bool) -> None:
    want = "fetch-from 4" if is_refused else ""
    assert (
        refusals_of((GET, "allow-xhr: open", f"disallow-fetch-from: {pages}"), xhr(referer=referer))
        == want
    )
    assert refusals_of((GET, f"disallow-fetch-from: {pages}"), Facts(referer=referer)) == ""


@pytest.mark.requirement("AUTX-7")
def test_fetch_from_absent_or_unknown_host() -> None:
    assert refusals_of((GET, "allow-xhr: open"), xhr()) == ""
    pages = (GET, "allow-xhr: open", "disallow-fetch-from: /a")
    assert refusals_of(pages, xhr(referer="https://example.org/a"), host="") == "fetch-from 4"
    assert (
        refusals_of(pages, xhr(referer="http://example.com:8080/a"), host="example.com:8080")
        == "fetch-from 4"
    )
    assert refusals_of(pages, xhr(referer="http://example.com/a"), host="example.com:8080") == ""


# Annotations: extension section-3.5


def annotation_of(*directives: str) -> Directives:
    return group(*directives).directives


BOTH = (GET, "allowed-purposes: archive", "allowed-automations: cdp")

ANNOTATED: list[tuple[tuple[str, ...], tuple[str, ...], Facts, tuple[str, ...], str]] = [
    (BOTH, ("allowed-purposes: train",), PLAIN, ("train",), ""),
    (BOTH, ("allowed-purposes: train",), PLAIN, ("archive",), "purpose @2"),
    (BOTH, ("allowed-purposes:",), PLAIN, ("archive",), "purpose @2"),
    ((GET,), ("allowed-purposes: train",), PLAIN, (), "purpose @2"),
    (BOTH, ("allowed-automations: headed",), Facts(automations=("headed",)), ("archive",), ""),
    (
        BOTH,
        ("allowed-automations: headed",),
        Facts(automations=("cdp",)),
        ("archive",),
        "mechanism @2",
    ),
    (BOTH, ("allowed-automations:",), Facts(automations=("cdp",)), ("archive",), "mechanism @2"),
    (BOTH, ("allowed-automations:",), PLAIN, ("archive",), ""),
    ((GET,), ("allowed-automations: cdp",), Facts(automations=("cdp",)), (), ""),
    ((GET,), ("api-automation: open",), api(), (), "api 0"),
    ((GET, "api-automation: none"), ("api-automation: open",), api(), (), "api 3"),
    ((GET, "api-automation: open"), ("api-automation: none",), api(), (), "api @2"),
    ((GET, "api-automation: open"), ("api-automation: with-key-only",), api(), (), "key @2"),
    ((GET,), ("allow-xhr: open",), xhr(), (), "xhr 0"),
    ((GET, "allow-xhr: open"), ("allow-xhr: none",), xhr(), (), "xhr @2"),
    ((GET, "allow-xhr: open"), ("disallow-fetch-from: /",), xhr(), (), "fetch-from @2"),
    ((GET,), ("require-human-initiated-session: true",), PLAIN, (), "session @2"),
    (
        (GET, "require-human-initiated-session: true"),
        ("require-human-initiated-session: false",),
        PLAIN,
        (),
        "session 3",
    ),
    ((GET,), ("session-validation: oauth",), using(Session()), (), "session-validation @2"),
    ((GET, "session-ttl: 1d"), ("session-ttl: 1h",), aged(hours=2), (), "session-ttl @2"),
    ((GET, "session-ttl: 1h"), ("session-ttl: 1d",), aged(hours=2), (), "session-ttl 3"),
    ((GET,), ("allowed-methods:", "request-limit: 0/day", "concurrent-limit: 0"), PLAIN, (), ""),
    ((GET,), ("allowed-methods: POST",), Facts(method="POST"), (), "method 2"),
    ((), ("allowed-methods: GET",), PLAIN, (), "method 0"),
]


@pytest.mark.requirement("AUTX-11")
@pytest.mark.parametrize(
    ("directives", "annotation", "facts", "purposes", "want"), one_in(3, ANNOTATED)
)
def test_annotations(
    directives: tuple[str, ...],
    annotation: tuple[str, ...],
    facts: Facts,
    purposes: tuple[str, ...],
    want: str,
) -> None:
    assert refusals_of(directives, facts, purposes, annotation_of(*annotation)) == want


@pytest.mark.requirement("AUTX-11", "AUTO-12")
def test_an_annotation_where_no_group_speaks() -> None:
    asked = Facts(method="POST", kinds=("api", "xhr"), automations=("cdp",), session=Session())
    assert refusals(None, asked, (), NOW) == []
    assert refusals(None, asked, (), NOW, annotation_of("api-automation: open")) == []
    annotation = annotation_of("allowed-purposes: train", "api-automation: none")
    assert refusals(None, asked, (), NOW, annotation) == [
        GroupRefusal("automation.purpose", annotation.allowed_purposes[0], from_annotation=True),
        GroupRefusal("automation.api", annotation.api_automation[0], from_annotation=True),
    ]


# Limits: extension section-3.1


@pytest.mark.requirement("AUTX-2", "AUTX-3", "AUTX-14", "AUTX-15")
@pytest.mark.parametrize(
    ("directives", "want"),
    [
        ((), None),
        (("request-limit: 60/minute",), ((Window(60, 60),), None, False)),
        (
            ("request-limit: 60/minute", "request-limit: 100/day"),
            ((Window(60, 60), Window(100, 86400)), None, False),
        ),
        (("concurrent-limit: 5",), ((), 5, False)),
        (("concurrent-limit: 5", "concurrent-limit: 2"), ((), 2, False)),
        (("concurrent-limit: 5", "concurrent-limit: few"), ((), 1, False)),
        (("request-limit: few",), ((), None, True)),
        (("request-limit: 1/second", "request-limit: 1 / hour"), ((Window(1, 1),), None, True)),
    ],
)
def test_limits(
    directives: tuple[str, ...], want: tuple[tuple[Window, ...], int | None, bool] | None
) -> None:
    found = limits(group(GET, *directives), "https://example.com")
    assert (found and found[1:4]) == want


@pytest.mark.requirement("AUTX-2", "AUTX-3")
def test_limits_of_each_origin_and_group_are_apart() -> None:
    text = "scope: /\nrequest-limit: 1/day\n\nscope: /a\nrequest-limit: 1/day"
    groups = parse(text.encode()).groups
    keys = {
        limits(group, origin).key  # type: ignore[union-attr]
        for group in groups
        for origin in ("https://a.com", "https://b.com")
    }
    assert len(keys) == 4
    assert isinstance(limits(groups[0], "https://a.com"), Limits)


# The comments of the samples (see test_grammar.py)

CORE_SAMPLE, EXTENDED_SAMPLE = (
    Path(__file__).with_name(f"sample-{name}.txt").read_text() for name in ("core", "extended")
)
ONE, TWO = ("PLACEHOLDER_PURPOSE1",), ("PLACEHOLDER_PURPOSE2",)


def answer_of_sample(
    text: str, token: str, target: str, facts: Facts, purposes: tuple[str, ...]
) -> list[str]:
    speaking = rules(text, token).group(target)
    assert speaking
    return [
        refusal.rule.removeprefix("automation.")
        for refusal in refusals(speaking, facts, purposes, NOW)
    ]


@pytest.mark.requirement("AUTO-2", "AUTO-5", "AUTO-11")
@pytest.mark.parametrize(
    ("token", "target", "method", "purposes", "want"),
    [
        ("other", "/", "GET", ONE, []),
        ("other", "/", "HEAD", TWO, []),
        ("other", "/", "POST", ONE, ["method"]),
        ("other", "/", "GET", (), ["purpose"]),
        ("other", "/admin/", "HEAD", ONE, []),  # Group 2 is ExampleBot's
        ("ExampleBot", "/admin/", "GET", ONE, []),
        ("ExampleBot", "/admin/", "HEAD", ONE, ["method"]),
        ("ExampleBot", "/admin/x", "GET", TWO, ["purpose"]),
        ("ExampleBot", "/", "HEAD", TWO, []),
    ],
)
def test_the_sample_of_the_core(
    token: str, target: str, method: str, purposes: tuple[str, ...], want: list[str]
) -> None:
    assert answer_of_sample(CORE_SAMPLE, token, target, Facts(method=method), purposes) == want


COOKIES = Session(
    human_initiated=True, carries=frozenset({"cookie"}), started_at=NOW - timedelta(minutes=45)
)
TOKEN = Session(
    human_initiated=True, carries=frozenset({"token"}), started_at=NOW - timedelta(minutes=15)
)


@pytest.mark.requirement(
    "AUTO-2",
    "AUTO-5",
    "AUTO-11",
    "AUTX-1",
    "AUTX-2",
    "AUTX-3",
    "AUTX-4",
    "AUTX-8",
    "AUTX-9",
    "AUTX-10",
)
@pytest.mark.parametrize(
    ("token", "target", "facts", "want"),
    [
        ("other", "/", Facts(session=COOKIES), []),
        ("other", "/", PLAIN, ["session"]),
        ("other", "/", Facts(session=TOKEN), ["session-validation"]),
        ("other", "/", Facts(session=COOKIES, automations=("headless",)), ["mechanism"]),
        ("other", "/", Facts(session=COOKIES, kinds=("api",)), ["key"]),
        ("other", "/", Facts(session=COOKIES, kinds=("api",), has_key=True), []),
        ("ExampleBot", "/", Facts(session=COOKIES), []),
        ("ExampleBot", "/admin/", Facts(session=TOKEN), []),
        ("ExampleBot", "/admin/", Facts(session=COOKIES), ["session-validation", "session-ttl"]),
        ("ExampleBot", "/admin/", PLAIN, ["session"]),
        ("ExampleBot", "/admin/", Facts(session=TOKEN, kinds=("api",), has_key=True), ["api"]),
        ("other", "/admin/", PLAIN, []),
        ("other", "/admin/", Facts(method="HEAD"), ["method"]),
        ("other", "/admin/", Facts(automations=("headless",)), ["mechanism"]),
    ],
)
def test_the_sample_of_the_extension(
    token: str, target: str, facts: Facts, want: list[str]
) -> None:
    assert answer_of_sample(EXTENDED_SAMPLE, token, target, facts, ONE) == want


@pytest.mark.requirement("AUTX-2", "AUTX-3", "AUTX-15")
def test_the_limits_of_the_sample_of_the_extension() -> None:
    def limits_of(token: str, target: str) -> tuple[tuple[Window, ...], int | None] | None:
        speaking = rules(EXTENDED_SAMPLE, token).group(target)
        found = limits(speaking, "https://example.com") if speaking else None
        return found and (found.windows, found.concurrent)

    assert limits_of("other", "/") == ((Window(60, 60),), 5)
    assert limits_of("ExampleBot", "/admin/") == ((Window(10, 60),), 2)
    assert limits_of("other", "/admin/") is None


@pytest.mark.requirement("AUTX-14")
def test_what_is_stated_by_hand_counts_as_well() -> None:
    """A caller may combine values itself, as the reader of annotations does."""
    own = Group(
        1,
        0,
        (),
        None,
        None,
        Directives(
            allowed_methods=(DirectiveValue(frozenset({"GET"})),),
            session_validation=(DirectiveValue("x"),),
        ),
    )
    assert refusals(own, PLAIN, (), NOW) == []
    session = Facts(session=Session(carries=frozenset(CREDENTIALS)))
    assert [refusal.rule for refusal in refusals(own, session, (), NOW)] == [
        "automation.session-validation"
    ]
