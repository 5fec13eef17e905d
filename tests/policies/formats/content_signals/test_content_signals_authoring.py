"""Help for authors of Content Signals: words, and checks beyond the syntax."""

from __future__ import annotations

import pytest

from comity.policies.answers.decision import Finding
from comity.policies.answers.fetched import Fetched
from comity.policies.formats import ROBOTS_LINES
from comity.policies.formats.authoring import Draft, apply
from comity.policies.formats.content_signals import FORMAT
from comity.policies.formats.content_signals.authoring import AUTHORING
from comity.policies.formats.content_signals.signals import LABELS, LEVELS, field
from comity.policies.formats.file import SiteFiles
from tests.selection import one_in

URL = "https://example.com/robots.txt"
CHECK = AUTHORING.check_site


def test_every_line_is_a_directive() -> None:
    assert {directive.name.lower() for directive in AUTHORING.directives} == set(
        FORMAT.robots_lines
    )
    assert all(directive.spec and directive.summary for directive in AUTHORING.directives)


def test_every_signal_is_offered_and_read() -> None:
    offered = AUTHORING.values["signal"]
    signals = {f"{label}={value}" for label in LABELS for value in ("yes", "no")}
    assert set(offered) == signals | {f"use={level}" for level in LEVELS}
    for signal in offered:
        statements, findings = field([signal.encode()])
        assert statements
        assert not findings


def findings_of(text: str) -> list[Finding]:
    files = SiteFiles(
        "https://example.com",
        {URL: Fetched(status=200, body=text.encode())},
        robots_lines=ROBOTS_LINES,
    )
    assert CHECK
    return list(CHECK(files))


ANY = "User-agent: *\n"

# File -> its findings: line, column and rule
SAID: dict[str, list[tuple[int, int, str]]] = {
    f"{ANY}Content-Signal: search=yes,ai-train=no\nAllow: /": [],
    f"{ANY}Content-Signal: search=yes, ai-train=no, use=reference\nAllow: /": [],
    f"{ANY}Content-Signal: train-ai=no\nAllow: /": [(2, 17, "content-signal.label")],
    f"{ANY}Content-Signal: ai-trian=no\nAllow: /": [(2, 17, "content-signal.label")],
    f"{ANY}Content-Signal: mine=no\nAllow: /": [],
    f"{ANY}Content-Signal: ai_train=no\nAllow: /": [(2, 0, "content-signal.spelling")],
    f"{ANY}Content-Signal: search=yes; ai-train=no\nAllow: /": [(2, 0, "content-signal.spelling")],
    f"{ANY}Content-Signals: search=yes\nAllow: /": [(2, 0, "content-signal.spelling")],
    f"Content-Signal: search=yes\n{ANY}Allow: /": [(1, 0, "content-signal.outside")],
    f"{ANY}Allow: /\nACAP-crawler: foo\nContent-Signal: search=yes\n": [
        (4, 0, "content-signal.outside")
    ],
    "User-agent: foo\nContent-Signal: search=yes\nContent-Signal: search=no\nAllow: /": [
        (2, 17, "content-signal.contradiction")
    ],
    f"{ANY}Content-Signal: search=no\nAllow: /\nUser-agent: foo\n"
    "Content-Signal: search=yes\nAllow: /": [(5, 17, "content-signal.elsewhere")],
    f"{ANY}Content-Signal: search=yes\nAllow: /\nUser-agent: foo\n"
    "Content-Signal: search=no\nAllow: /": [],
}


@pytest.mark.parametrize("text", one_in(2, SAID))
def test_what_is_said(text: str) -> None:
    assert [(finding.line, finding.column, finding.rule) for finding in findings_of(text)] == SAID[
        text
    ]


def test_a_spelling_is_mended() -> None:
    before = f'{ANY} content-signals : "Search" = yes;ai_train=no  # why\nAllow: /\n'
    draft = Draft(URL, before.encode())
    fixes = [
        AUTHORING.fixes[finding.rule](draft, finding)
        for finding in findings_of(before)
        if finding.rule in AUTHORING.fixes
    ]
    after = f"{ANY} Content-Signal: search=yes, ai-train=no  # why\nAllow: /\n"
    assert apply(draft.body, filter(None, fixes))[0].decode() == after
    assert findings_of(after) == []
