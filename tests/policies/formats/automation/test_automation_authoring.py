"""Checks of an automation-preferences.txt beyond its syntax, and fixes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Fetched
from comity.policies.formats.authoring import apply
from comity.policies.formats.automation import FORMAT as AUTOMATION
from comity.policies.formats.automation.checks import check_site
from comity.policies.formats.automation.directives import PATH
from comity.policies.formats.automation.file import AutomationFile
from comity.policies.formats.file import SiteFiles
from tests.policies.formats.mending import apply_fixes, findings_of, fixes_of

ORIGIN = "https://example.com"
GET = "allowed-methods: GET\n"


def rules_in(text: str | bytes) -> list[tuple[str, int]]:
    body = text.encode() if isinstance(text, str) else text
    files = SiteFiles(
        ORIGIN, {f"{ORIGIN}/automation-preferences.txt": Fetched(status=200, body=body)}
    )
    return sorted((finding.rule, finding.line) for finding in check_site(files))


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("scope: /\nallowed-method: GET\n" + GET, [("automation.unknown", 2)]),
        ("scope: /\nspeed: high\n" + GET, [("automation.unknown", 2)]),
        ("scope: /\n  // ours\n" + GET, [("automation.unknown", 2)]),
        ("scope: /\nallowed-purposes: search\n", [("automation.no-methods", 1)]),
        (f"scope: /[a-z]+/\n{GET}", [("automation.pattern", 1)]),
        (f"scope: '/a'\n{GET}", [("automation.pattern", 1)]),
        (f"scope: /a\n{GET}allowed-automations: headles, cdp\n", [("automation.word", 3)]),
        (f"scope: /a\n{GET}\nscope: /a\n{GET}", [("automation.shadowed", 1)]),
        (f"scope: /a\nuser-agent: *\n{GET}\nscope: /b\nscope: /a\nuser-agent: *\n{GET}",
         [("automation.shadowed", 1)]),
        (f"user-agent: x\n{GET}\nscope: /\nuser-agent: x\n{GET}", [("automation.shadowed", 1)]),
        (f"host: example.com\nscope: /\n{GET}\nhost: example.org\nscope: /\n{GET}",
         [("automation.other-host", 5)]),
        (f"scope: /\n{GET}disallow-fetch-from: /a\n", [("automation.no-effect", 3)]),
        (f"scope: /\n{GET}allow-xhr: none\ndisallow-fetch-from: /a\n", [("automation.no-effect",
         4)]),
        ("scope: /\nallowed-methods:\napi-automation: open\n", [("automation.no-effect", 3)]),
        (f"scope: /\n{GET}request-limit: 60/minute\nrequest-limit: 1/second\n",
         [("automation.slack-limit", 3)]),
        (f"scope: /\n{GET}request-limit: 10/hour\nrequest-limit: 10/minute\n",
         [("automation.slack-limit", 4)]),
        (f"scope: /\n{GET}request-limit: 0/hour\n", [("automation.zero", 3)]),
        (f"scope: /\n{GET}concurrent-limit: 0\n", [("automation.zero", 3)]),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_found_with_its_line(
    text: str, findings: list[tuple[str, int]]
) -> None:
    assert rules_in(text) == findings


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<!-- Version: 2.0 -->\n# a: b\n",
        f"scope: /\n{GET}",
        f"scope: /*.pdf$\n{GET}allow-xhr: open\ndisallow-fetch-from: /a\n",
        f"scope: /a\n{GET}\nscope: /a\nuser-agent: x\n{GET}\nscope: /a/b\n{GET}",
        f"scope: /a\nscope: /b\n{GET}\nscope: /a\n{GET}",
        f"user-agent: x\n{GET}\nscope: /\nuser-agent: y\n{GET}",
        f"host: example.org\nscope: /\n{GET}",
        f"host: *.com\nscope: /\n{GET}\nhost: example.com\nscope: /\n{GET}",
        f"scope: /\n{GET}request-limit: 1/second\nrequest-limit: 30/minute\n",
        f"scope: /\n{GET}allowed-automations: selenium, puppeteer\n",
        "scope: /\nallowed-methods:\n",
    ],
)  # fmt: skip
def test_what_can_be_meant_is_left_alone(text: str) -> None:
    assert rules_in(text) == []


_LINES = [
    "scope: /a",
    "scope: /",
    "user-agent: x",
    "host: example.com",
    "",
    "allowed-methods: GET",
    "x: y",
    "api-automation",
]


@given(st.lists(st.sampled_from([*_LINES, "request-limit: 1/hour"]), max_size=12))
def test_nothing_raises(lines: list[str]) -> None:
    rules_in("\n".join(lines))


# Fixes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"scope /a\n{GET}", f"scope: /a\n{GET}"),
        (f"<!-- ours -->\nscope: /a <!-- b -->\n{GET}<!-- c", f"# ours\nscope: /a # b\n{GET}# c"),
        (f"scope: /\n{GET}{GET}\nscope: /a\n{GET}", f"scope: /\n{GET}\nscope: /a\n{GET}"),
        (f"// ours\nscope: /\n//\n{GET}", f"# ours\nscope: /\n#\n{GET}"),
        (f"scope: /\n{GET}{GET}\n{GET}", None),  # the group goes on
        (f"scope: /\n{GET}Allowed-Methods: GET\n{GET}", f"scope: /\n{GET}"),
        # No safe fix: without its colon it permits nothing.
        ("scope: /\nallowed-methods GET\n", None),
        (f"scope: /\n{GET}\ufeff{GET}", None),
        (f"scope: /\n{GET}allowed-methods: GET, HEAD\n", None),
    ],
)
def test_what_is_safe_is_mended(text: str, expected: str | None) -> None:
    once = apply_fixes(AUTOMATION, PATH, text.encode())
    assert once.decode() == (text if expected is None else expected)
    assert apply_fixes(AUTOMATION, PATH, once) == once


_WRITTEN = (
    "scope: /a|scope /b|host example.com|user-agent: x|user-agent y|allowed-methods: GET|"
    "allowed-methods: GET, HEAD|\nrequest-limit: 1/hour|request-limit: 1/hour <!-- x -->|"
    "<!-- note -->|<!-- a|b -->|allow-xhr open|// note|//|scope: /a <!-- b --> c\n  <!--x--> y|# z"
)


def meaning(body: bytes) -> list[object]:
    automation = AutomationFile(f"{ORIGIN}{PATH}", Fetched(status=200, body=body)).automation
    assert automation
    return [
        (
            group.scopes,
            group.hosts,
            group.agents,
            [{str(value.value) for value in values} for values in group.directives],
            group.key,
        )
        for group in automation.groups
    ]


@given(st.lists(st.sampled_from(_WRITTEN.replace("\n", "|").split("|")), max_size=14))
def test_fixes_change_no_group_and_mend_what_they_are_for(lines: list[str]) -> None:
    body = "\n".join(lines).encode()
    for finding, fix in fixes_of(AUTOMATION, PATH, body):
        once, _ = apply(body, [fix])
        assert meaning(once) == meaning(body)
        before, after = (
            [each.rule for each in findings_of(AUTOMATION, PATH, of)] for of in (body, once)
        )
        assert after.count(finding.rule) < before.count(finding.rule)
    states = [body]
    while (again := apply_fixes(AUTOMATION, PATH, states[-1])) != states[-1]:
        assert meaning(again) == meaning(body)
        states.append(again)
        assert len(states) < 5  # if one line has two fixes, the second run makes the other


def test_groups_for_the_same_hosts_are_compared_whatever_their_order() -> None:
    hosts = [f"host: h{number}.example.com\n" for number in range(3)]
    scopes = "scope: /a\nscope: /b\n"
    body = (
        f"{scopes}{''.join(hosts)}allowed-methods: GET\n\n"
        f"{scopes}{''.join(reversed(hosts))}allowed-methods: GET\n"
    )
    assert ("automation.shadowed", 1) in rules_in(body)
    assert ("automation.shadowed", 7) not in rules_in(body)
