"""The grammar of automation-preferences.txt: groups, and findings for their author.

The specifications are draft-liao-aipref-autoctl-core-01 and draft-liao-aipref-autoctl-ext.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.answers.fetched import Fetched
from comity.policies.answers.rule import RULES
from comity.policies.formats.automation import grammar
from comity.policies.formats.automation.directives import NOWHERE, Group, UrlPattern
from comity.policies.formats.automation.grammar import (
    Automation,
    media_type_findings,
    parse,
    rejection,
)
from comity.policies.formats.automation.value_syntax import DIRECTIVES, duration, url_pattern
from comity.policies.syntax.lines import MAX_BYTES, MAX_FINDINGS, MAX_LINE, text_of
from comity.policies.syntax.windows import Window
from tests.selection import one_in

URL = "https://example.com/automation-preferences.txt"


def read(text: str | bytes, *, cut: bool = False) -> Automation:
    return parse(text_of(text if isinstance(text, bytes) else text.encode())[0], url=URL, cut=cut)


def describe(group: Group) -> str:
    """Return a group as one line: its line number, selectors, and directives with values."""
    parts = [str(group.line)]
    parts += (f"scope {scope.host}{scope.path}" for scope in group.scopes)
    parts += () if group.hosts is None else (f"host {','.join(group.hosts) or '-'}",)
    parts += () if group.agents is None else (f"agent {','.join(sorted(group.agents)) or '-'}",)
    for name, stated in group.directives._asdict().items():
        parts += (f"{name.replace('_', '-')} {_value(one.value)}" for one in stated)
    return "; ".join(parts)


def _value(value: Any) -> str:
    match value:
        case frozenset():
            return ",".join(sorted(value)) or "-"
        case Window():
            return f"{value.requests}/{value.seconds:g}s"
        case timedelta():
            return f"{value.total_seconds():g}s"
        case tuple():
            return ",".join(pattern.host + pattern.path for pattern in value) or "-"
        case _:
            return str(value)


def describe_findings(automation: Automation) -> str:
    assert {finding.url for finding in automation.findings} <= {URL}
    return "; ".join(
        f"{finding.rule.removeprefix('automation.')} {finding.line}"
        for finding in automation.findings
    )


class Case(NamedTuple):
    id: str
    rows: str
    text: str | bytes
    said: str | list[str]  # of each group
    found: str = ""  # rule and line, "; " between the findings


def params(cases: Iterable[Case]) -> list[Any]:
    return [
        pytest.param(case, id=case.id, marks=pytest.mark.requirement(*case.rows.split()))
        for case in cases
    ]


LINES = [
    # file-location-and-format
    Case("empty", "AUTO-12", "", []),
    Case(
        "field",
        "AUTO-1",
        "scope: /\nallowed-methods: GET, HEAD",
        "1; scope /; allowed-methods GET,HEAD",
    ),
    Case("bom", "AUTO-1", b"\xef\xbb\xbfscope: /", "1; scope /"),
    Case("utf-16", "AUTO-1", "\ufeffscope: /é".encode("utf-16-le"), "1; scope /%C3%A9"),
    Case("comment", "AUTO-2", "# a\n  # scope: /b\nscope: /", "3; scope /"),
    Case(
        "comment-after-value",
        "AUTO-2",
        "scope: /a # all\nallowed-methods:GET#, POST",
        "1; scope /a; allowed-methods GET",
    ),
    Case(
        "markup", "AUTO-2", "<!-- a -->\nscope: /\n \t<!-- scope: /b -->", "2; scope /", "markup 1"
    ),
    Case(
        "markup-is-one-line",
        "AUTO-2",
        "scope: /\n<!--\nallowed-methods: GET\n-->",
        "1; scope /; allowed-methods GET",
        "markup 2",
    ),
    Case("markup-that-goes-on", "AUTO-2", "<!-- for\nall -->\nscope: /", "3; scope /", "markup 1"),
    Case(
        "markup-after-value",
        "AUTO-2",
        "scope: /a <!-- b -->\nallowed-methods: GET<!--",
        "1; scope /a; allowed-methods GET",
        "markup 1; markup 2",
    ),
    Case(
        "unknown",
        "AUTO-3",
        "x\nscope: /\nnew-directive: 1\nx-y\n?: !\nallowed-method: GET\nscopes: /x",
        "2; scope /",
    ),
    Case(
        "unknown-prose",
        "AUTO-3",
        "host names are read\nscope of this\nscope\nuser-agent\nuser-agent strings follow",
        [],
    ),
    Case("case", "AUTO-6", "SCOPE: /A\nAllowed-METHODS: GET", "1; scope /A; allowed-methods GET"),
    Case(
        "white-space",
        "AUTO-6",
        "\t scope \t:\t /a \t\n  allowed-methods:GET\t,\tHEAD ",
        "1; scope /a; allowed-methods GET,HEAD",
    ),
    Case(
        "cr",
        "AUTO-5",
        "scope: /\rallowed-methods: GET\r\rscope: /b\r",
        ["1; scope /; allowed-methods GET", "4; scope /b"],
    ),
    Case(
        "crlf",
        "AUTO-5",
        "scope: /\r\nallowed-methods: GET\r\n\r\nscope: /b\r\n",
        ["1; scope /; allowed-methods GET", "4; scope /b"],
    ),
    Case(
        "other-line-ends",
        "AUTO-6",
        "scope: /a\u2028host: b\x85",
        "1; scope /a%E2%80%A8host:%20b%C2%85",
        "scope 1",
    ),
    # formal-syntax: groups
    Case("group-ends-at-end", "AUTO-5", "scope: /a\n\nscope: /b", ["1; scope /a", "3; scope /b"]),
    Case(
        "group-ends-at-spaces",
        "AUTO-5",
        "scope: /a\n \t\nscope: /b",
        ["1; scope /a", "3; scope /b"],
    ),
    Case(
        "comment-ends-no-group",
        "AUTO-5",
        "scope: /a\n#\n<!-- -->\n x\nscope: /b",
        "1; scope /a; scope /b",
        "markup 3",
    ),
    Case(
        "any-order",
        "AUTO-5",
        "allowed-methods: GET\nuser-agent: *\nscope: /\nhost: e.com\nallowed-purposes: a",
        "1; scope /; host e.com; agent *; allowed-methods GET; allowed-purposes a",
    ),
    Case("only-scope", "AUTO-5", "scope: /", "1; scope /"),
    Case("several-scopes", "AUTO-8", "scope: /a\nscope: /b", "1; scope /a; scope /b"),
    Case(
        "continued",
        "AUTO-5",
        "scope: /\n\nallowed-methods: GET\nrequest-limit: 1/day\n\nallow-xhr: open\n\nscope: /b",
        ["1; scope /; allowed-methods GET; allow-xhr open; request-limit 1/86400s", "8; scope /b"],
        "continued 3; continued 6",
    ),
    Case(
        "continued-restricts",
        "AUTO-5",
        "scope: /\nallowed-methods: GET, POST\n\nallowed-methods: GET",
        "1; scope /; allowed-methods GET,POST; allowed-methods GET",
        "continued 4; repeated 4",
    ),
    Case(
        "not-continued-by-scope",
        "AUTO-5",
        "scope: /\n\nallowed-methods: GET\nscope: /b",
        ["1; scope /", "3; scope /b; allowed-methods GET"],
    ),
    Case(
        "not-continued-by-host",
        "AUTO-5",
        "scope: /\n\nallowed-methods: GET\nhost: e.com",
        ["1; scope /", "3; host e.com; allowed-methods GET"],
        "scope 3",
    ),
    Case(
        "not-continued-by-agent",
        "AUTO-5",
        "scope: /\n\nallowed-methods: GET\nuser-agent: a",
        ["1; scope /", "3; agent a; allowed-methods GET"],
        "scope 3",
    ),
    Case("no-scope-at-all", "AUTO-5", "allowed-methods: GET", "1; allowed-methods GET", "scope 1"),
    Case("unknown-continues-nothing", "AUTO-3", "scope: /\n\nx: y\n\n# z", "1; scope /"),
    Case(
        "repeated",
        "AUTO-5",
        "scope: /\nallowed-purposes: a, b\nallowed-purposes: b\nallowed-purposes: c",
        "1; scope /; allowed-purposes a,b; allowed-purposes b; allowed-purposes c",
        "repeated 3",
    ),
    # scope
    Case("scope-wildcards", "AUTO-8", "scope: /*/b$\nscope: *.php", "1; scope /*/b$; scope *.php"),
    Case("scope-normal", "AUTO-8", "scope: /%7Ea/é%e9%2f", "1; scope /~a/%C3%A9%E9%2F"),
    Case("scope-case", "AUTO-8", "scope: /Admin/", "1; scope /Admin/"),
    Case(
        "scope-url",
        "AUTO-8",
        "scope: HTTPS://E.com:443/a?b\nscope: http://e.com\nscope: http://e.com:8080?x",
        "1; scope e.com/a?b; scope e.com/; scope e.com:8080/?x",
    ),
    Case(
        "scope-url-idna",
        "AUTO-8",
        "scope: https://*.Bücher.example/a",
        "1; scope *.xn--bcher-kva.example/a",
    ),
    Case(
        "scope-url-no-host",
        "AUTO-8",
        "scope: https://a b/c\nscope: http:///x",
        f"1; scope {NOWHERE}/c; scope {NOWHERE}/x",
        "scope 1; scope 1; scope 2",
    ),
    Case("scope-no-slash", "AUTO-8", "scope: admin/", "1; scope /admin/", "scope 1"),
    Case("scope-query", "AUTO-8", "scope: ?print", "1; scope /?print", "scope 1"),
    Case("scope-space", "AUTO-8", "scope: /my docs/", "1; scope /my%20docs/", "scope 1"),
    Case(
        "scope-list",
        "AUTO-8",
        "scope: /a, /b,/c /d , https://e.com/f",
        "1; scope /a; scope /b; scope /c; scope /d; scope e.com/f",
        "scope 1",
    ),
    Case("scope-list-of-one", "AUTO-8", "scope: /a ,", "1; scope /a", "scope 1"),
    Case("scope-with-comma", "AUTO-8", "scope: /a,b*,*", "1; scope /a,b*,*"),
    Case(
        "scope-empty",
        "AUTO-5",
        "scope:\nallowed-methods: GET",
        "1; allowed-methods GET",
        "scope 1; scope 1",
    ),
    Case(
        "scope-empty-beside-another", "AUTO-5", "scope: # none\nscope: /a", "1; scope /a", "scope 1"
    ),
    Case("scope-empty-alone", "AUTO-5", "scope:", [], "scope 1"),
    # host
    Case("host", "AUTO-9", "scope: /\nhost: Example.COM.", "1; scope /; host example.com"),
    Case(
        "host-wildcard", "AUTO-9", "scope: /\nhost: *.example.com", "1; scope /; host *.example.com"
    ),
    Case(
        "host-idna",
        "AUTO-9",
        "scope: /\nhost: BÜCHER.example\nhost: *.bücher.example:8443",
        "1; scope /; host xn--bcher-kva.example,*.xn--bcher-kva.example:8443",
    ),
    Case(
        "host-port",
        "AUTO-9",
        "scope: /\nhost: e.com:8080\nhost: e.com:08443\nhost: [::1]:81",
        "1; scope /; host e.com:8080,e.com:8443,[::1]:81",
    ),
    Case(
        "host-default-port",
        "AUTO-9",
        "scope: /\nhost: e.com:0443\nhost: f.com:80",
        "1; scope /; host e.com,f.com",
    ),
    Case(
        "host-url", "AUTO-9", "scope: /\nhost: https://e.com/x", "1; scope /; host e.com", "host 2"
    ),
    Case(
        "host-long", "AUTO-9", f"scope: /\nhost: {'a.' * 126}a", f"1; scope /; host {'a.' * 126}a"
    ),
    Case(
        "host-list",
        "AUTO-9",
        "scope: /\nhost: a.com, b.com,",
        "1; scope /; host a.com,b.com",
        "host 2",
    ),
    Case(
        "host-none",
        "AUTO-9",
        "scope: /\nhost: a@b, c d",
        "1; scope /; host -",
        "host 2; host 2; host 2",
    ),
    Case(
        "host-dot-first",
        "AUTO-9",
        "scope: /\nhost: .e.com:81",
        "1; scope /; host e.com:81,*.e.com:81",
        "host 2",
    ),
    Case("host-dots-first", "AUTO-9", "scope: /\nhost: ..e.com", "1; scope /; host -", "host 2"),
    Case("host-dots", "AUTO-9", "scope: /\nhost: ..", "1; scope /; host -", "host 2"),
    Case(
        "host-odd-idna",
        "AUTO-9",
        f"scope: /\nhost: é*.com\nhost: \u3002é\nhost: {'é' * 301}",
        "1; scope /; host -",
        "host 2; host 3; host 4",
    ),
    Case("host-empty", "AUTO-9", "scope: /\nhost: ,", "1; scope /", "host 2"),
    # user-agent
    Case(
        "agents",
        "AUTO-10",
        "scope: /\nuser-agent: ExampleBot, other_bot-2\nuser-agent: *",
        "1; scope /; agent *,examplebot,other_bot-2",
    ),
    Case(
        "agent-more",
        "AUTO-10",
        "scope: /\nuser-agent: ExampleBot/1.0 (x), * all",
        "1; scope /; agent *,examplebot",
        "agent 2; agent 2",
    ),
    Case(
        "agent-none",
        "AUTO-10",
        "scope: /\nuser-agent: é, **",
        "1; scope /; agent -",
        "agent 2; agent 2",
    ),
    Case(
        "agent-empty", "AUTO-10 AUTX-1", "scope: /\nuser-agent:", "1; scope /; agent -", "agent 2"
    ),
    # no colon
    Case(
        "no-colon",
        "AUTX-14",
        "scope /a\nhost e.com\nuser-agent a, b\nallowed-methods GET\nrequest-limit",
        "1; scope /a; host e.com; agent a,b; allowed-methods -; request-limit None",
        "colon 1; colon 2; colon 3; colon 4; colon 5",
    ),
]


def values(*cases: tuple[str, str, str, str]) -> list[Case]:
    """Yield cases: the requirements, the value as written and as read.

    The value as read has a "!" if there is a finding.
    """
    return [
        Case(
            f"{line}",
            rows,
            f"scope: /\n{line}",
            f"1; scope /; {line.partition(':')[0]} {value}",
            "value 2" if told else "",
        )
        for rows, line, value, told in cases
    ]


VALUES = values(
    (
        "AUTO-6",
        "allowed-methods: GET, head ,POST,PUT,DELETE,PATCH,OPTIONS,TRACE,CONNECT",
        "CONNECT,DELETE,GET,HEAD,OPTIONS,PATCH,POST,PUT,TRACE",
        "",
    ),
    ("AUTX-1 AUTO-7", "allowed-methods:", "-", ""),
    ("AUTX-1 AUTO-7", "allowed-methods: \t# none", "-", ""),
    ("AUTX-1", "allowed-methods: ,,GET,", "GET", ""),
    ("AUTO-6 AUTX-14", "allowed-methods: GET, BREW", "GET", "!"),
    ("AUTO-6 AUTX-14", "allowed-methods: GET HEAD", "-", "!"),
    ("AUTO-6 AUTX-14", "allowed-methods: *", "-", "!"),
    (
        "AUTO-6 AUTX-14",
        "allowed-methods: GET, poſt, optıons",
        "GET",
        "!",
    ),  # to Unicode their capitals are those of ASCII
    ("AUTO-13", "allowed-purposes: Archive, SEARCH-index", "archive,search-index", ""),
    ("AUTX-1 AUTO-13", "allowed-purposes:", "-", ""),
    ("AUTO-13 AUTX-14", "allowed-purposes: a b, c", "c", "!"),
    (
        "AUTX-4",
        "allowed-automations: WebDriver, headless, my-tool/2",
        "headless,my-tool/2,webdriver",
        "",
    ),
    ("AUTX-1 AUTX-4", "allowed-automations:", "-", ""),
    ("AUTX-4 AUTX-14", "allowed-automations: cdp é", "-", "!"),
    ("AUTX-5", "api-automation: none", "none", ""),
    ("AUTX-5", "api-automation: With-Key-Only", "with-key-only", ""),
    ("AUTX-5", "api-automation: open", "open", ""),
    ("AUTX-5 AUTX-14", "api-automation: yes", "none", "!"),
    ("AUTX-5 AUTX-14", "api-automation:", "none", "!"),
    ("AUTX-6", "allow-xhr: none", "none", ""),
    ("AUTX-6", "allow-xhr: read-only", "read-only", ""),
    ("AUTX-6", "allow-xhr: open", "open", ""),
    ("AUTX-6 AUTX-14", "allow-xhr: open, read-only", "none", "!"),
    (
        "AUTX-7",
        "disallow-fetch-from: /account/*, *.php$,cart, https://E.com/a",
        "/account/*,*.php$,/cart,cart/,e.com/a",
        "",
    ),
    ("AUTX-7 AUTX-1", "disallow-fetch-from:", "-", ""),
    ("AUTX-7 AUTX-14", "disallow-fetch-from: /a /b", "*/", "!"),
    ("AUTX-7 AUTX-14", "disallow-fetch-from: /a, https:///b", "*/", "!"),
    ("AUTX-8", "require-human-initiated-session: true", "True", ""),
    ("AUTX-8", "require-human-initiated-session: False", "False", ""),
    ("AUTX-8 AUTX-14", "require-human-initiated-session: no", "True", "!"),
    ("AUTX-8 AUTX-14", "require-human-initiated-session:", "True", "!"),
    ("AUTX-9", "session-validation: cookie-based", "cookie-based", ""),
    ("AUTX-9", "session-validation: token-based", "token-based", ""),
    ("AUTX-9", "session-validation: OAuth", "oauth", ""),
    ("AUTX-9", "session-validation: none", "none", ""),
    ("AUTX-9 AUTX-14", "session-validation: captcha", "", "!"),
    ("AUTX-10", "session-ttl: 30m", "1800s", ""),
    ("AUTX-10 AUTX-14", "session-ttl: 30 m", "None", "!"),
    ("AUTX-10 AUTX-14", "session-ttl:", "None", "!"),
    ("AUTX-2", "request-limit: 5/second", "5/1s", ""),
    ("AUTX-2", "request-limit: 60/Minute", "60/60s", ""),
    ("AUTX-2", f"request-limit: {'0' * 20}7/hour", "7/3600s", ""),
    ("AUTX-2", "request-limit: 0/day", "0/86400s", ""),
    ("AUTX-2 AUTO-18", f"request-limit: {'9' * 6000}/day", "1000000000/86400s", ""),
    ("AUTX-2 AUTO-18", "request-limit: 10000000000/day", "1000000000/86400s", ""),
    ("AUTX-2 AUTX-14", "request-limit: 60/minutes", "None", "!"),
    ("AUTX-2 AUTX-14", "request-limit: 60", "None", "!"),
    ("AUTX-2 AUTX-14", "request-limit: -1/day", "None", "!"),
    ("AUTX-2 AUTX-14", "request-limit: ٣/day", "None", "!"),
    ("AUTX-3", "concurrent-limit: 5", "5", ""),
    ("AUTX-3", "concurrent-limit: 0", "0", ""),
    ("AUTX-3 AUTX-14", "concurrent-limit: many", "1", "!"),
    ("AUTX-3 AUTX-14", "concurrent-limit:", "1", "!"),
)


@pytest.mark.parametrize("case", one_in(3, params(LINES + VALUES)))
def test_text(case: Case) -> None:
    automation = read(case.text)
    assert [describe(group) for group in automation.groups] == (
        [case.said] if isinstance(case.said, str) else case.said
    )
    assert describe_findings(automation) == case.found
    assert automation.complete


@pytest.mark.requirement("AUTX-1")
def test_an_empty_list_is_not_an_absent_one() -> None:
    [group] = read("scope: /\nallowed-automations:").groups
    assert [stated.value for stated in group.directives.allowed_automations] == [frozenset()]
    assert group.directives.allowed_purposes == ()


@pytest.mark.requirement("AUTX-10")
@pytest.mark.parametrize(
    ("literal", "seconds"),
    [
        ("1s", 1),
        ("86400s", 86400),
        ("0s", None),
        ("86401s", None),
        ("1m", 60),
        ("1440m", 86400),
        ("0m", None),
        ("1441m", None),
        ("1h", 3600),
        ("168h", 604800),
        ("0h", None),
        ("169h", None),
        ("1d", 86400),
        ("365d", 31536000),
        ("0d", None),
        ("366d", None),
        ("01h", 3600),
        ("2H", 7200),
        ("1", None),
        ("h", None),
        ("", None),
        ("1.5h", None),
        ("-1h", None),
        ("1w", None),
        ("1hh", None),
        (" 1h", None),
        ("٣h", None),
        ("9" * 6000 + "s", None),
    ],
)
def test_duration(literal: str, seconds: int | None) -> None:
    assert duration(literal) == (None if seconds is None else timedelta(seconds=seconds))


@pytest.mark.requirement("AUTX-14")
def test_each_directive_has_its_place_among_the_values() -> None:
    lines = [name.decode() for name in DIRECTIVES]
    [group] = read("scope: /\n" + "\n".join(lines)).groups
    strictest = [directive.strictest for directive in DIRECTIVES.values()]
    assert [stated.value for [stated] in group.directives] == strictest
    assert list(group.directives._fields) == [name.replace("-", "_") for name in lines]


@pytest.mark.requirement("AUTO-5")
def test_a_statement_knows_its_line() -> None:
    text = b"# a\r\n\r\nscope: /\r\n# b\r\nallowed-methods: GET\r\n\r\nallow-xhr: open"
    [group] = parse(text).groups
    [methods], [xhr] = group.directives.allowed_methods, group.directives.allow_xhr
    places = [(group.line, group.offset), (methods.line, methods.offset), (xhr.line, xhr.offset)]
    names = [(line, text[at:].partition(b":")[0]) for line, at in places]
    assert names == [(3, b"scope"), (5, b"allowed-methods"), (7, b"allow-xhr")]


@pytest.mark.requirement("AUTO-5", "AUTX-14")
def test_findings_quote_and_point() -> None:
    finding, markup = read(
        "scope: /\nallowed-methods: GET, {BREW}\u202e # {}\n<!-- a -->\n<!-- b -->"
    ).findings
    assert (finding.line, finding.column) == (2, 23)
    assert finding.message == "`{BREW}\ufffd` is not a method, so it permits none"
    assert markup.message.startswith("2 lines of markup")


@pytest.mark.requirement("AUTO-10")
def test_who_is_named() -> None:
    automation = read("scope: /\nuser-agent: ExampleBot\n\nscope: /a\n\nscope: /b\nuser-agent: *")
    assert automation.names("EXAMPLEBOT")
    assert not automation.names("other")


@pytest.mark.requirement("AUTO-8")
@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        (b"/a", UrlPattern("", "/a")),
        (b"*", UrlPattern("", "*")),
        (b"a", UrlPattern("", "/a")),
        (b"//e.com/a", UrlPattern("", "//e.com/a")),
        (b"https://e.com", UrlPattern("e.com", "/")),
        (b"https://E.com:8080/%61$", UrlPattern("e.com:8080", "/a$")),
        (b"https://\xff/a", UrlPattern(NOWHERE, "/a")),
        (b"*://E.com/a", UrlPattern("e.com", "/a")),
        (b"http*://*.e.com", UrlPattern("*.e.com", "/")),
        (b"*:/e.com/a", UrlPattern("", "*:/e.com/a")),
    ],
)
def test_url_pattern(value: bytes, pattern: UrlPattern) -> None:
    assert url_pattern(value) == pattern


# Invisible characters, from joined files or word processors, hide no refusal.
UNSEEN = ["\ufeff", "\u00a0", "\u200b", " \u200b\t"]


@pytest.mark.requirement("AUTO-5", "AUTX-14")
@pytest.mark.parametrize("unseen", UNSEEN)
def test_something_that_cannot_be_seen_beside_the_name(unseen: str) -> None:
    automation = read(
        f"scope: /\nallowed-methods: GET\n\n{unseen}user-agent{unseen}: *\n"
        f"{unseen}scope: /a\nhost{unseen}: e.com\n"
        f"{unseen}allowed-purposes: search\nallowed-methods: GET\nallowed-automations{unseen}: cdp"
    )
    _, group = automation.groups
    assert (group.line, group.scopes, group.hosts) == (4, (UrlPattern("", "/a"),), ("e.com",))
    assert group.agents == frozenset(("*",))
    assert [value.value for value in group.directives.allowed_purposes] == [frozenset()]
    assert [value.value for value in group.directives.allowed_automations] == [frozenset()]
    assert [value.value for value in group.directives.allowed_methods] == [frozenset(("GET",))]


@pytest.mark.requirement("AUTO-8", "AUTO-9", "AUTO-10", "AUTX-7")
@pytest.mark.parametrize("unseen", UNSEEN)
def test_something_that_cannot_be_seen_around_a_value(unseen: str) -> None:
    (group,) = read(
        f"scope:{unseen}/a{unseen}\nhost: {unseen}e.com,{unseen}f.com\n"
        f"user-agent:{unseen}*,{unseen}Bot\n"
        f"disallow-fetch-from: /b,{unseen}/c"
    ).groups
    assert (group.scopes, group.hosts) == ((UrlPattern("", "/a"),), ("e.com", "f.com"))
    assert group.agents == frozenset(("*", "bot"))
    assert group.directives.disallow_fetch_from[0].value == (
        UrlPattern("", "/b"),
        UrlPattern("", "/c"),
    )


@pytest.mark.requirement("AUTO-8")
def test_something_that_cannot_be_seen_within_a_path_is_a_part_of_it() -> None:
    (group,) = read("scope: /a\u200cb").groups
    assert group.scopes == (UrlPattern("", "/a%E2%80%8Cb"),)


# The sample of draft-liao-aipref-autoctl-core-01, sample-automation-preferences-txt-file, and that
# of draft-liao-aipref-autoctl-ext section-8. Other files of the sample are left out, and comments
# are shortened.
SAMPLES = Path(__file__).parent


@pytest.mark.requirement("AUTO-2", "AUTO-5", "AUTO-6")
def test_the_sample_of_the_core() -> None:
    automation = read((SAMPLES / "sample-core.txt").read_bytes())
    assert [describe(group) for group in automation.groups] == [
        "5; scope /; host example.com; agent *; allowed-methods GET,HEAD;"
        " allowed-purposes placeholder_purpose1,placeholder_purpose2",
        "12; scope /admin/; host example.com; agent examplebot; allowed-methods GET; "
        "allowed-purposes placeholder_purpose1",
    ]
    assert describe_findings(automation) == "markup 1"


@pytest.mark.requirement(
    "AUTO-2",
    "AUTO-5",
    "AUTX-1",
    "AUTX-2",
    "AUTX-3",
    "AUTX-4",
    "AUTX-5",
    "AUTX-8",
    "AUTX-9",
    "AUTX-10",
)
def test_the_sample_of_the_extension() -> None:
    automation = read((SAMPLES / "sample-extended.txt").read_bytes())
    assert [describe(group) for group in automation.groups] == [
        "6; scope /; host example.com; agent *; allowed-methods GET,HEAD;"
        " allowed-purposes placeholder_purpose1,placeholder_purpose2; "
        "allowed-automations -; api-automation with-key-only;"
        " require-human-initiated-session True; session-validation cookie-based; session-ttl 3600s;"
        " request-limit 60/60s; concurrent-limit 5",
        "24; scope /admin/; host example.com; agent examplebot; allowed-methods GET; "
        "allowed-purposes placeholder_purpose1;"
        " require-human-initiated-session True; session-validation token-based; session-ttl 1800s;"
        " request-limit 10/60s; concurrent-limit 2",
        "39; scope /admin/; host example.com; agent *; allowed-methods GET",
    ]
    assert describe_findings(automation) == "markup 1; continued 13; continued 31"


TEXT = b"text/plain; charset=utf-8"


@pytest.mark.parametrize(
    ("media_type", "body", "why"),
    [
        pytest.param(*case, marks=pytest.mark.requirement(row))
        for row, *case in (
            ("AUTO-1", TEXT, b"scope: /\r\n\tallowed-methods: GET\r", ""),
            ("AUTO-1", b"", b"scope: /", ""),
            ("AUTO-1", b"Text/X-Robots", b"scope: /", ""),
            ("AUTO-1", b"application/octet-stream; a=b", b"scope: /", ""),
            ("AUTO-4", TEXT, b"scope: /\0", "line 1 has the control byte 0x00"),
            (
                "AUTO-4",
                TEXT,
                b"scope: /\r\n\rallow\x1bed: \x00",
                "line 3 has the control byte 0x1b",
            ),
            ("AUTO-4", TEXT, b"scope: /\x0b", "line 1 has the control byte 0x0b"),
            ("AUTO-4", TEXT, b"# \x0c", "line 1 has the control byte 0x0c"),
            ("AUTO-4", TEXT, b"\n\x1f", "line 2 has the control byte 0x1f"),
            ("AUTO-4", TEXT, b"scope: /\x7f", ""),
            ("AUTO-4", TEXT, "\ufeffscope: /".encode("utf-16"), ""),
            (
                "AUTO-4",
                TEXT,
                "\ufeffscope: /\x01".encode("utf-16"),
                "line 1 has the control byte 0x01",
            ),
        )
    ],
)
def test_rejection(media_type: bytes, body: bytes, why: str) -> None:
    assert (
        rejection(Fetched(status=200, headers=((b"content-type", media_type),), body=body)) == why
    )


@pytest.mark.requirement("AUTO-4")
def test_which_octets_are_control_bytes() -> None:
    rejected = {
        octet for octet in range(256) if rejection(Fetched(status=200, body=b"a%cb" % octet))
    }
    assert rejected == {*range(0x20)} - {*b"\t\r\n"}


@pytest.mark.requirement("AUTO-1")
@pytest.mark.parametrize(
    ("media_type", "is_told"),
    [
        (TEXT, False),
        (b'Text/Plain;charset="UTF-8"', False),
        (b"text/plain; format=flowed; charset=utf-8", False),
        (b"", False),
        (b"text/plain", True),
        (b"text/plain; charset=iso-8859-1", True),
        (b"text/markdown; charset=utf-8", True),
        (b"text/html; charset=utf-8", True),
        (b"application/json", True),
    ],
)
def test_the_media_type_that_is_meant(media_type: bytes, is_told: bool) -> None:
    findings = media_type_findings(
        Fetched(status=200, headers=((b"Content-Type", media_type),)), URL
    )
    assert [finding.rule for finding in findings] == ["automation.media-type"] * is_told


# Limits


def scopes(number: int) -> str:
    return "".join(f"scope: /{scope}\n" for scope in range(number))


def list_of(number: int, start: int = 0) -> str:
    return ",".join(f"a{item}" for item in range(start, start + number))


class Most(NamedTuple):
    id: str
    fits: str
    more: str  # than is read
    line: int  # from which on nothing is read


LIMITS = [
    Most(
        "groups",
        "scope: /\n\n" * grammar.MAX_GROUPS,
        "scope: /\n\n" * (grammar.MAX_GROUPS + 1),
        2 * grammar.MAX_GROUPS + 2,
    ),
    Most(
        "scopes", scopes(grammar.MAX_SCOPES), scopes(grammar.MAX_SCOPES + 1), grammar.MAX_SCOPES + 1
    ),
    Most(
        "values",
        f"scope: /\nallowed-purposes: {list_of(200)}",
        f"scope: /\nallowed-purposes: {list_of(201)}",
        2,
    ),
    Most(
        "agents",
        f"scope: /\nuser-agent: {list_of(200)}",
        f"scope: /\nuser-agent: {list_of(201)}",
        2,
    ),
    Most("hosts", f"scope: /\nhost: {list_of(200)}", f"scope: /\nhost: {list_of(201)}", 2),
    Most("all-hosts", "host: a.com\n" * 5000, "host: a.com\n" * 5001, 5001),
    Most("all-urls", "scope: http://a/\n" * 5000, "scope: http://a/\n" * 5001, 5001),
    Most(
        "all-pages",
        "".join(f"disallow-fetch-from: http://a/{line}\n" for line in range(5000)),
        "".join(f"disallow-fetch-from: http://a/{line}\n" for line in range(5001)),
        5001,
    ),
    Most(
        "items",
        "".join(f"user-agent: {list_of(200, 200 * line)}\n" for line in range(100)),
        "".join(f"user-agent: {list_of(200, 200 * line)}\n" for line in range(100))
        + "user-agent: a\n",
        101,
    ),
    Most("line", f"scope: /{'a' * (MAX_LINE - 8)}", f"scope: /\nscope: /{'a' * (MAX_LINE - 7)}", 2),
]


@pytest.mark.requirement("AUTO-18")
@pytest.mark.parametrize("most", one_in(2, [pytest.param(most, id=most.id) for most in LIMITS]))
def test_limits(most: Most) -> None:
    assert read(most.fits).complete
    automation = read(most.more + "\n\nscope: /last\nallowed-methods: POST")
    assert not automation.complete
    assert [finding.line for finding in automation.findings if finding.rule == "automation.limit"][
        -1
    ] == most.line
    assert automation.groups
    assert "/last" not in [scope.path for scope in automation.groups[-1].scopes]


@pytest.mark.requirement("AUTO-18")
def test_what_stands_before_the_limit_in_its_group_counts() -> None:
    automation = read(
        f"scope: /a\nallowed-methods: GET\nallowed-purposes: {list_of(201)}\nallow-xhr: open"
    )
    assert [describe(group) for group in automation.groups] == ["1; scope /a; allowed-methods GET"]


@pytest.mark.requirement("AUTO-18", "AUTO-3")
def test_long_lines_that_say_nothing_do_no_harm() -> None:
    long = "a" * (2 * MAX_LINE)
    automation = read(f"#{long}\n{long}: {long}\nscope: /  # {long}\n<!-- {long} -->")
    assert automation.complete
    assert [describe(group) for group in automation.groups] == ["3; scope /"]


@pytest.mark.requirement("AUTO-18", "AUTX-14")
def test_a_directive_that_stands_too_often_is_not_understood() -> None:
    automation = read("scope: /\n" + "allowed-methods: GET\n" * 17 + "allowed-methods: GET")
    [group] = automation.groups
    assert [len(stated.value) for stated in group.directives.allowed_methods] == [1] * 16 + [0]
    assert automation.complete
    assert describe_findings(automation) == "repeated 3; limit 18"


@pytest.mark.requirement("AUTO-18")
def test_a_cut_file_is_incomplete() -> None:
    text, cut = text_of(b"scope: /\n" + b"# " + b"a" * MAX_BYTES + b"\nscope: /b")
    automation = parse(text, url=URL, cut=cut)
    assert not automation.complete
    assert [describe(group) for group in automation.groups] == ["1; scope /"]
    assert describe_findings(automation) == "limit 0"


@pytest.mark.requirement("AUTO-18", "AUTX-3")
def test_limits_are_kept_under_the_same_key_by_all_who_read_the_same_group() -> None:
    def key(text: str) -> str:
        return read(text).groups[0].key

    limited = "scope: /b\nscope: /a\nuser-agent: b, a\nrequest-limit: 1/day"
    assert key(limited) == key(f"# moved\n\n{limited}\nallowed-methods: GET") == "dffdc0fa6d318860"
    assert key(limited) == key(
        "concurrent-limit: 2\nuser-agent: a\nscope: /a\nuser-agent: B\nscope: /b"
    )
    others = [
        "scope: /a\nrequest-limit: 1/day",
        "scope: /a\nhost: a.com\nrequest-limit: 1/day",
        f"{limited}\nhost: a.com",
    ]
    assert len({key(text) for text in (limited, *others)}) == 4
    assert key("scope: /a") == ""


# Properties for any octets

WRITTEN = [
    b"scope: /",
    b"scope: /a*b$",
    b"scope: http://\xc3\xa9.com/",
    b"scope:",
    b"scope /x",
    b"host: *.a.com",
    b"host: a.com, b.com:80",
    b"host: [",
    b"user-agent: *",
    b"user-agent: a, b",
    b"user-agent:",
    b"allowed-methods: GET, HEAD",
    b"allowed-methods:",
    b"allowed-purposes: a, b",
    b"allowed-automations: cdp",
    b"api-automation: open",
    b"api-automation",
    b"allow-xhr: x",
    b"disallow-fetch-from: /a, http://b/c",
    b"require-human-initiated-session: true",
    b"session-validation: oauth",
    b"session-ttl: 1h",
    b"session-ttl: 999d",
    b"request-limit: 1/day",
    b"request-limit: 1",
    b"concurrent-limit: 3",
    b"",
    b" \t",
    b"# scope: /c",
    b"<!-- scope: /d -->",
    b"allowed-methods: GET <!-- a",
    b"\xff\xfe",
    b": x",
    b"\0",
]
files = st.lists(st.sampled_from(WRITTEN) | st.binary(max_size=20), max_size=30).map(b"\n".join)
unknown = st.from_regex(rb"(?!scope|host)[a-z]{1,8}: [a-z/, ]{0,9}", fullmatch=True)


@pytest.mark.requirement("AUTO-18")
@given(st.binary(max_size=200) | files, st.booleans())
def test_no_octets_make_it_fail(octets: bytes, cut: bool) -> None:
    text, _ = text_of(octets)
    automation = parse(text, url=URL, cut=cut)
    assert automation.complete is not cut
    assert {finding.rule for finding in automation.findings} <= RULES.keys()
    assert rejection(Fetched(status=200, body=octets)).isprintable()
    ends = (text.count(b"\n"), text.count(b"\r"))
    assert all(1 <= group.line <= 1 + sum(ends) for group in automation.groups)


@pytest.mark.requirement("AUTO-3")
@given(files, unknown, st.data())
def test_an_unknown_directive_changes_nothing(
    octets: bytes, line: bytes, data: st.DataObject
) -> None:
    lines = text_of(octets)[0].splitlines()
    place = data.draw(st.integers(0, len(lines)))
    without = parse(b"\n".join([*lines[:place], b"#", *lines[place:]]), url=URL)
    with_it = parse(b"\n".join([*lines[:place], line, *lines[place:]]), url=URL)
    assert [describe(group) for group in without.groups] == [
        describe(group) for group in with_it.groups
    ]
    assert without.findings == with_it.findings


@pytest.mark.requirement("AUTO-18")
@given(st.lists(st.sampled_from(WRITTEN), max_size=300).map(b"\n".join))
def test_what_is_told_is_bounded(octets: bytes) -> None:
    assert len(parse(octets).findings) <= MAX_FINDINGS + 1


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("scope: /\nuser-agent: bot/1.0", "automation.agent"),
        ("scope: /\nallowed-methods GET", "automation.colon"),
        ("scope: /\n\nallowed-methods: GET", "automation.continued"),
        ("scope: /\nhost: a b", "automation.host"),
        ("\ufeff\ufeffscope: /", "automation.invisible"),
        ("scope: /\nuser-agent:\u00a0bot", "automation.invisible"),
        ("scope: /\n" * 20_001, "automation.limit"),
        ("scope: /\n<!-- -->", "automation.markup"),
        ("scope: /\nallowed-methods: GET\nallowed-methods: GET", "automation.repeated"),
        ("allowed-methods: GET", "automation.scope"),
        ("scope: /\nallow-xhr: maybe", "automation.value"),
    ],
)
@pytest.mark.requirement("AUTO-3", "AUTX-14")
def test_findings_have_rules(text: str, rule: str) -> None:
    assert {finding.rule for finding in read(text).findings} == {rule}


@pytest.mark.requirement("AUTO-5", "AUTX-14")
@pytest.mark.parametrize(
    ("line", "rule", "column"),
    [
        ("scope: cope", "automation.scope", 8),
        ("scope: https://h h/", "automation.scope", 8),
        ("host: ho/st", "automation.host", 7),
        ("host : s t", "automation.host", 8),
        ("user-agent: a b", "automation.agent", 13),
        ("  Scope /a", "automation.colon", 3),
        ("\u00a0Scope: /a", "automation.invisible", 3),
        ("host:\u00a0h", "automation.invisible", 8),
    ],
)
def test_a_finding_points_to_the_value_also_where_the_name_has_its_letters(
    line: str, rule: str, column: int
) -> None:
    findings = parse(line.encode()).findings
    assert (rule, 1, column) in [
        (finding.rule, finding.line, finding.column) for finding in findings
    ]
