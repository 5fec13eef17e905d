"""Help for authors of usage preferences: words, and checks beyond the syntax."""

from __future__ import annotations

import pytest

from comity.policies.answers.decision import Finding
from comity.policies.answers.fetched import Fetched
from comity.policies.formats import ROBOTS_LINES
from comity.policies.formats.aipref import FORMAT, content_usage, short_strings
from comity.policies.formats.aipref.authoring import AUTHORING
from comity.policies.formats.file import SiteFiles
from comity.policies.vocabulary.table import Vocabulary
from tests.selection import one_in

URL = "https://example.com/robots.txt"
CHECK = AUTHORING.check_site


def test_every_line_is_a_directive() -> None:
    assert {directive.name.lower() for directive in AUTHORING.directives} == set(
        FORMAT.robots_lines
    )
    assert all(directive.spec and directive.summary for directive in AUTHORING.directives)


@pytest.mark.parametrize(
    ("kind", "vocabulary", "read"),
    [
        ("preference", "aipref", content_usage.read),
        ("short-preference", "usage", short_strings.read),
    ],
)
def test_every_label_is_offered_both_ways(kind: str, vocabulary: str, read: object) -> None:
    assert any(kind in directive.value.split() for directive in AUTHORING.directives)
    offered = AUTHORING.values[kind]
    labels = Vocabulary.shipped().words[vocabulary].narrows
    assert set(offered) == {f"{label}={value}" for label in labels for value in "yn"}
    for word in offered:
        assert list(read(word)) == [word.partition("=")[0]]  # type: ignore[operator]


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
    f"{ANY}Usage: tdm=n, search=y\nAllow: /": [],
    f"{ANY}Usage: train-ai=n\nAllow: /": [(2, 8, "usage.label")],
    f"{ANY}Usage: AI=n\nAllow: /": [(2, 8, "usage.label")],
    f"{ANY}Usage: mine=n\nAllow: /": [],
    f"{ANY}Usage: ai=y, tdm=y, ai=n\nAllow: /": [(2, 8, "usage.contradiction")],
    f"{ANY}Usage: ai=y\nUsage: ai=n\nAllow: /": [(2, 8, "usage.contradiction")],
    f"{ANY}Usage: ai=y\nAllow: /\nUser-agent: foo\nUsage: ai=n\nAllow: /": [],
    "User-agent: foo\nUsage: ai=y\nAllow: /\nUser-agent: foo\nUsage-Pref: ai=n\nAllow: /": [
        (2, 8, "usage.contradiction")
    ],
    f"Usage: ai=n\n{ANY}Usage: ai=y\nAllow: /": [(3, 8, "usage.contradiction")],
    f"{ANY}Content-Usage: train-ai=n, search=y\nAllow: /": [],
    f"{ANY}Content-Usage: train_ai=n\nAllow: /": [(2, 16, "content-usage.unknown")],
    f"{ANY}Content-Usage: train-ai=n, train-ai=y\nAllow: /": [(2, 16, "content-usage.repeated")],
    f"{ANY}Content-Usage: /a search=n\nContent-Usage: /a search=y\nAllow: /": [
        (3, 19, "content-usage.contradiction")
    ],
    f"{ANY}Content-Usage: /a search=n\nContent-Usage: /b search=y\nAllow: /": [],
    f'{ANY}Content-Usage: search=y;a="n, search=n"\nAllow: /': [],
    f"{ANY}Content-Usage: train-ai=n; search=y\nAllow: /": [(2, 0, "content-usage.parameter")],
    f"{ANY}Content-Usage: train-ai=n;reason=search\nAllow: /": [],
    f"{ANY}Content-Usage: no dictionary, search=y, search=n\nAllow: /": [],
}


@pytest.mark.parametrize("text", one_in(2, SAID))
def test_what_is_said(text: str) -> None:
    assert [(finding.line, finding.column, finding.rule) for finding in findings_of(text)] == SAID[
        text
    ]
