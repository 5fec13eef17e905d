"""Help for authors of ACAP records: words, checks beyond the syntax, and fixes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.answers.decision import Finding
from comity.policies.answers.fetched import Fetched
from comity.policies.formats import ROBOTS_LINES
from comity.policies.formats.acap.authoring import AUTHORING, DIRECTIVES, VALUES
from comity.policies.formats.acap.grammar import parse
from comity.policies.formats.acap.usages import QUALIFIED, USAGES, read_qualifiers
from comity.policies.formats.authoring import Directive, Draft, apply
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.robots.authoring import AUTHORING as ROBOTS
from tests.selection import one_in

URL = "https://example.com/robots.txt"
CHECK = ROBOTS.check_site  # robots.txt is checked as a whole
NAMES = {directive.name for directive in DIRECTIVES}
DEFINITION = "ACAP-qualified-usage: teaser index time-limit=1-days\n"


@pytest.mark.parametrize("directive", one_in(3, DIRECTIVES), ids=lambda directive: directive.name)
def test_every_directive_is_known_and_says_what_it_is(directive: Directive) -> None:
    assert directive.spec.startswith("ACAP 1.0 section-")
    assert directive.summary[0].isupper()
    assert directive.summary[-1] != "."
    assert set(directive.within) <= NAMES
    acap = parse(f"{DEFINITION}ACAP-crawler: *\n{directive.name}: /a\n".encode())
    assert "acap.unknown-field" not in {finding.rule for finding in acap.findings}
    assert "acap.unknown-usage" not in {finding.rule for finding in acap.findings}


def test_every_usage_can_be_permitted_and_prohibited() -> None:
    assert {f"ACAP-{verb}-{usage}" for verb in ("allow", "disallow") for usage in USAGES} <= NAMES
    assert tuple(VALUES["usage"]) == USAGES


@pytest.mark.parametrize("usage", one_in(2, USAGES))
def test_qualifiers_that_are_offered_are_read(usage: str) -> None:
    [directive] = [directive for directive in DIRECTIVES if directive.name == f"ACAP-allow-{usage}"]
    path, *qualifier = directive.value.split()
    assert path == "path"
    offered = AUTHORING.values[qualifier[0]] if qualifier else {}
    assert {word.partition("=")[0] for word in offered} == {
        name for name, usages in QUALIFIED.items() if usage in usages
    }
    for word in offered:
        assert read_qualifiers(word, usage).restrictions()


def findings_of(text: str) -> list[Finding]:
    files = SiteFiles(
        "https://example.com",
        {URL: Fetched(status=200, body=text.encode())},
        robots_lines=ROBOTS_LINES,
    )
    assert CHECK
    return list(CHECK(files))


ANY = "ACAP-crawler: *\n"

# File -> its findings.
SAID: dict[str, list[tuple[int, str]]] = {
    "ACAP-crawler: foo, bar\nACAP-allow-index: /": [(1, "acap.several-crawlers")],
    "ACAP-crawler: Mozilla/5.0 (compatible; foo)\nACAP-allow-index: /": [],
    'ACAP-crawler: "foo"\nACAP-allow-index: /': [(1, "acap.quotes")],
    "ACAP-crawler: foo\u200b\nACAP-allow-index: /": [(1, "acap.invisible")],
    f'{ANY}ACAP-allow-index: "/a"': [(2, "acap.quotes")],
    f"{ANY}ACAP-disallow-index: /a\u200bb": [(2, "acap.invisible")],
    f"{ANY}ACAP-disallow-index: /*.pdf$/": [(2, "acap.dollar")],
    f"{ANY}ACAP-disallow-index: /(a|b)": [(2, "acap.regex")],
    f"{ANY}ACAP-disallow-index: /a /b": [(2, "acap.second-path")],
    f"{ANY}ACAP-allow-index: /a /b": [(2, "acap.second-path")],
    f"{ANY}ACAP-allow-index: time-limit=3-days": [(2, "acap.no-resource")],
    f"{ANY}ACAP-allow-index: /time-limit=3-days": [],
    f"{ANY}ACAP-allow-index: /?a=b time-limit=3-days": [],
    f"{ANY}ACAP-allow-index: /a\nACAP-disallow-index: /A": [(2, "acap.overruled")],
    f"{ANY}ACAP-allow-index: /a\nACAP-disallow-present: /a": [],
    f"{ANY}ACAP-allow-index: /a\nACAP-crawler: foo\nACAP-disallow-index: /a": [],
    f"{ANY}ACAP-allow-index: /a\nACAP-usage-purpose: research\nACAP-disallow-index: /a": [],
    f"{ANY}ACAP-allow-index: /a\nACAP-allow-follow: /\nACAP-allow-index: /a": [
        (4, "acap.repeated")
    ],
    f"{ANY}ACAP-allow-index: /a\nACAP-allow-index: /a time-limit=3-days": [],
    f"ACAP-resource-set: s /a\n{ANY}ACAP-allow-index: the-acap:resource-set:S": [],
    f"ACAP-resource-set: s /a\n{ANY}ACAP-allow-index: /s": [(1, "acap.unused")],
    f"{DEFINITION}{ANY}ACAP-allow-(teaser): /": [],
    f"{DEFINITION}ACAP-composite-usage: both follow (teaser)\n{ANY}ACAP-allow-(both): /": [],
    f"{DEFINITION}{ANY}ACAP-allow-index: /": [(1, "acap.unused")],
}


@pytest.mark.parametrize("text", one_in(3, SAID))
def test_what_is_said(text: str) -> None:
    assert [
        (finding.line, finding.rule)
        for finding in findings_of(text)
        if finding.rule.startswith("acap.")
    ] == SAID[text]


def test_a_permission_before_a_second_path_grants_nothing_and_a_prohibition_holds_without_it() -> (
    None
):
    [permission] = [
        finding
        for finding in findings_of(f"{ANY}ACAP-allow-index: /a /b")
        if finding.rule == "acap.second-path"
    ]
    assert permission.message.startswith("`/b` is a second path: the permission grants nothing")
    [prohibition] = [
        finding
        for finding in findings_of(f"{ANY}ACAP-disallow-index: /a /b")
        if finding.rule == "acap.second-path"
    ]
    assert prohibition.message.startswith("`/b` is a second path: it is not prohibited")
    assert (prohibition.column, prohibition.length) == (25, 2)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{ANY}ACAP-allow-index /a\n", f"{ANY}ACAP-allow-index: /a\n"),
        (f"{ANY}ACAP-allow-index: /a\nACAP-allow-index: /a\n", f"{ANY}ACAP-allow-index: /a\n"),
        (f"{ANY}ACAP-allow-index: http://a\n", f"{ANY}ACAP-allow-index: http://a\n"),
        *(
            (
                f"{ANY}ACAP-allow-index: / time-limit=until-{date}\n",
                f"{ANY}ACAP-allow-index: / time-limit=until-{right}\n",
            )
            for date, right in (
                ("31/12/2030", "2030-12-31"),
                ("5.5.2030", "2030-05-05"),
                ("01/02/2030", "01/02/2030"),
                ("31-02-2030", "31-02-2030"),
            )
        ),
    ],
)
def test_what_is_mended(before: str, after: str) -> None:
    draft = Draft(URL, before.encode())
    findings = [*parse(draft.body).findings, *findings_of(before)]
    fixes = [
        AUTHORING.fixes[finding.rule](draft, finding)
        for finding in findings
        if finding.rule in AUTHORING.fixes
    ]
    assert apply(draft.body, filter(None, fixes))[0].decode() == after


@given(
    st.lists(
        st.text(alphabet='ACPacp-rwleinds:=()/ *$,"\n', max_size=30).map("ACAP-{}".format),
        max_size=5,
    )
)
def test_anything_can_be_checked(lines: list[str]) -> None:
    for finding in findings_of("\n".join(lines)):
        assert 0 < finding.line <= 200 or finding.rule == "robots.no-records"


IGNORING = "ACAP-ignore-conventional-records\n"
NAMED = "ACAP-crawler: otherbot\nACAP-disallow-crawl: /\n"
CLOSED = "User-agent: *\nDisallow: /private/\n"


@pytest.mark.requirement("ACAP-7")
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{IGNORING}{NAMED}{CLOSED}", [1]),
        (f"{CLOSED}{IGNORING}ACAP-crawler: a\nACAP-crawler: b\nACAP-allow-index: /\n", [3]),
        (
            f"{IGNORING}{NAMED}{ANY}ACAP-disallow-crawl: /private/\n{CLOSED}",
            [],
        ),  # a record is for all
        (
            f'{IGNORING}{NAMED}ACAP-crawler: "x"\nACAP-disallow-crawl: /\n{CLOSED}',
            [],
        ),  # an unreadable record refuses for all
        (f"{IGNORING}{NAMED}{ANY}\n{CLOSED}", [1]),  # a record without a field does not count
        (f"{IGNORING}{NAMED}User-agent: *\nAllow: /\nDisallow:\n", []),  # nothing was refused
        (f"{IGNORING}{NAMED}", []),
        (f"{NAMED}{CLOSED}", []),
        (f"{NAMED}{IGNORING}{CLOSED}", []),  # without effect
    ],
)
def test_conventional_records_that_count_for_crawlers_that_are_not_named_no_more_are_told(
    text: str, lines: list[int]
) -> None:
    findings = [finding for finding in findings_of(text) if finding.rule == "acap.frees-others"]
    assert [finding.line for finding in findings] == lines
    for finding in findings:
        assert finding.message.endswith(
            "Add a record for `ACAP-crawler: *` with your prohibitions, or delete this line."
        )
