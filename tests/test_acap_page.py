"""The pages on ACAP in docs/ say what the code does: examples are run, tables compared, and readings have tests."""

from __future__ import annotations

import contextlib
import io
import json
import re
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from comity.dataset import sidecar
from comity.gate.pages.resources import MAX_KEPT, MAX_OF_A_PAGE
from comity.policies import Agent, Arrangement, Site, UseDecision, Verdict
from comity.policies.agent import FEATURES
from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.answers.rule import RULES
from comity.policies.formats.acap import grammar, resolution, usages
from comity.policies.formats.file import MAX_REFERENCES
from comity.policies.syntax.lines import MAX_BYTES, MAX_FINDINGS, MAX_LINE
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.collected import Collected

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "acap.md").read_text("utf-8")
ARRANGEMENTS = (DOCS / "arrangements.md").read_text("utf-8")

ORIGIN = "https://example.com"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def section(title: str, page: str = PAGE) -> str:
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def cells(text: str) -> list[list[str]]:
    """Of the rows of the tables in it, without their heads."""
    rows = [
        [cell.strip() for cell in line[1:-1].split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    heads = {at - 1 for at, row in enumerate(rows) if row[0] == "---"}
    return [row for at, row in enumerate(rows) if at not in heads and row[0] != "---"]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


# Examples


class Example(NamedTuple):
    text: str
    use: str
    path: str
    verdict: str
    line: int
    restrictions: str


EXAMPLES = [
    Example(text, use, code(path)[0], verdict, int(line), restrictions)
    for text, after in re.findall(r"\n```\n(.*?)```\n(.*?)(?=\n```|\n## )", PAGE, re.DOTALL)
    for use, path, verdict, line, restrictions in cells(after)
]


def test_examples_are_found() -> None:
    assert len({example.text for example in EXAMPLES}) == 3
    assert len(EXAMPLES) == 18


@pytest.mark.parametrize(
    "example", one_in(2, EXAMPLES), ids=lambda example: f"{example.use} {example.path}"
)
def test_example(example: Example) -> None:
    site = Site.from_files(ORIGIN, {"/robots.txt": example.text.encode()})
    use, _, purpose = example.use.partition(" for ")
    agent = Agent("examplebot", purposes=(purpose,) if purpose else ())
    decision = site.page(agent, ORIGIN + example.path, now=NOW).uses[use]
    assert (decision.verdict.value, decision.reasons[0].source.line) == (
        example.verdict,
        example.line,
    )
    restrictions = decision.restrictions()
    assert set(restrictions) == set(code(example.restrictions))
    for name, number in re.findall(r"`(\w+)`:? (\d+)", example.restrictions):
        assert restrictions[name] == (
            NOW + timedelta(days=int(number)) if name == "until" else int(number)
        )


def test_examples_have_nothing_to_find_fault_with() -> None:
    for text in {example.text for example in EXAMPLES}:
        assert Site.from_files(ORIGIN, {"/robots.txt": text.encode()}).findings == ()


# Fields, usages, qualifiers


def test_fields() -> None:
    (version, *fields) = (code(row[0])[0].partition(":")[0] for row in cells(section("Fields")))
    assert version == "##ACAP version=1.0"
    known = {
        grammar._IGNORE,
        grammar._REFERENCE,
        *grammar.DEFINITIONS,
        *(f"request-{action}" for action in grammar.ACTIONS),
    }
    known |= {"crawler", "usage-purpose", "allow-USAGE", "allow-(NAME)", "disallow-USAGE"}
    assert sorted(fields) == sorted(f"ACAP-{name}" for name in known)
    for field in (*fields, "ACAP-nothing"):
        text = f"ACAP-crawler: *\n{field.replace('USAGE', 'index')}: /\n"
        is_known = "acap.unknown-field" not in {
            finding.rule for finding in grammar.parse(text.encode()).findings
        }
        assert is_known == (field != "ACAP-nothing")


def test_usages() -> None:
    assert tuple(code(row[0])[0] for row in cells(section("Usages"))) == usages.USAGES


def decided(usage: str, qualifier: str) -> UseDecision:
    agent = Agent("examplebot", arrangements=(Arrangement("example.com", frozenset(FEATURES)),))
    text = f"ACAP-crawler: *\nACAP-allow-{usage}: / {qualifier}\n"
    return (
        Site.from_files(ORIGIN, {"/robots.txt": text.encode()})
        .page(agent, ORIGIN, now=NOW, body=b'<p id="a">')
        .uses[usage]
    )


RESOURCES = {
    "must-use-resource": "the-acap:extract:id:a",
    "must-include-resource": "the-acap:credit:id:a",
}


def test_qualifiers() -> None:
    seen = set()
    valid: set[str] = set()
    for qualifiers, whose, (key,) in (
        (code(qualifier), code(usage), code(key))
        for qualifier, usage, key in cells(section("Qualifiers"))
    ):
        name, _, first = qualifiers[0].partition("=")
        seen.add(name)
        if whose:  # else those of the row above
            valid = {
                usage
                for word in whose
                for usage in (usages.PRESENT_USAGES if word == "present-*" else (word,))
            }
        for value in (first, *qualifiers[1:]):
            written = f"{name}={RESOURCES[name] if value == 'RESOURCE' else value}"
            for usage in usages.USAGES:
                if usage in valid:
                    assert set(decided(usage, written).restrictions()) == {key}
                else:
                    assert decided(usage, written).reasons[0].rule == "acap.unusable"
    assert seen == set(usages._TYPES)


def test_each_qualifier_has_all_of_its_values() -> None:
    """Which the code does not list: a value that the page lacks would be found by the specification's own list."""
    modifications = next(
        row for row in cells(section("Qualifiers")) if "prohibited-modification" in row[0]
    )
    assert {value.rpartition("=")[2] for value in code(modifications[0])} == {
        value
        for value in ("any", "format", "style", "translation", "annotation", "resolution")
        if decided("present", f"prohibited-modification={value}").verdict is Verdict.ALLOW
    }


# Limits, findings, readings


def test_limits() -> None:
    numbers = [int(row[1].split()[0].replace(",", "")) for row in cells(section("Limits"))]
    limits = [MAX_BYTES // 1024, MAX_LINE // 1024, grammar.MAX_RECORDS, grammar.MAX_FIELDS]
    limits += [resolution.MAX_REASONS, MAX_REFERENCES, MAX_FINDINGS]
    assert numbers == limits
    assert f"{resolution.MAX_COMPARED:,} pairs" in section("Readings")


def test_every_finding_is_named() -> None:
    named = set(re.findall(r"`([a-z]+\.[a-z-]+)`", PAGE))
    findings = {
        code(row[0])[0]
        for row in cells(section("Findings in ACAP", (DOCS / "rules.md").read_text("utf-8")))
    }
    assert len(findings) == 29
    assert findings <= named <= set(RULES)


def test_every_reading_has_a_test(collected: Collected) -> None:
    readings = {row[0] for row in cells(section("Readings"))}
    assert len(readings) > 20
    assert readings - collected.proofs.keys() == set()


# Arrangements


def test_features() -> None:
    table = cells(section("Features", ARRANGEMENTS))
    assert tuple(code(row[0])[0] for row in table) == FEATURES
    for text in (code(row[1])[0].replace("RESOURCE", "/a") for row in table):
        acap = grammar.parse(f"ACAP-crawler: *\n{text}\n".encode())
        assert acap.findings == ()
        assert acap.records[0].fields or acap.records[0].requests


def test_resources() -> None:
    rows = cells(section("Resources", ARRANGEMENTS))
    for name, at in (("must-use-resource", 0), ("must-include-resource", 1)):
        for value in (value for row in rows for value in code(row[at])):
            (resource,) = usages.read_qualifiers(f"{name}={value}", "present").restrictions()[
                name.rpartition("-")[0].replace("-", "_")
            ]
            assert value.endswith(resource.uri or str(resource.extract))
    numbers = f"At most {MAX_OF_A_PAGE} for each page, and {MAX_BYTES // 1024} KiB each"
    assert numbers in ARRANGEMENTS
    assert f"The {MAX_KEPT} that were asked for last" in ARRANGEMENTS


@pytest.mark.requirement("ACAP-33", "ACAP-36")
def test_resources_are_relative_to_the_root_of_the_site() -> None:
    """Where the robots.txt is that names them."""
    assert "relative to the root of the site" in section("Resources", ARRANGEMENTS)
    agent = Agent("examplebot", arrangements=(Arrangement("example.com", frozenset(FEATURES)),))
    for qualifier in (
        "must-use-resource=",
        "must-include-resource=",
        "must-include-resource=the-acap:credit:",
    ):
        for locator, url in (
            ("a.txt", f"{ORIGIN}/a.txt"),
            ("/a.txt", f"{ORIGIN}/a.txt"),
            ("b/../a.txt", f"{ORIGIN}/a.txt"),
            ("https://example.org/a", "https://example.org/a"),
        ):
            text = f"ACAP-crawler: *\nACAP-allow-present: / {qualifier}{locator}\n"
            page = Site.from_files(ORIGIN, {"/robots.txt": text.encode()}).page(
                agent, f"{ORIGIN}/b/c.html", now=NOW
            )
            assert page.required_resources == (url,)


# Tags


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"\n```{language}\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)


def test_uses_in_tags_are_valid() -> None:
    schema = json.loads(
        files("comity.policies").joinpath("permissions.schema.json").read_text("utf-8")
    )
    use = Draft202012Validator(
        {"$defs": schema["$defs"], "$ref": "#/$defs/use"},
        format_checker=Draft202012Validator.FORMAT_CHECKER,
    )
    tag, conditions, *members = (
        block if block[0] == "{" else f"{{{block}}}" for block in blocks("items.md", "json")
    )
    members += (f"{{{block}}}" for block in blocks("arrangements.md", "json"))
    stated = [json.loads(tag)["uses"], json.loads(conditions)]
    stated += (
        member.get("embedded", member)
        for member in map(json.loads, members)
        if not {"elements", "id"} & member.keys()
    )
    decisions = [decision for uses in stated for decision in uses.values()]
    assert len(decisions) == 8
    for decision in decisions:
        use.validate(decision)


@pytest.mark.requirement("MEET-5")
def test_elements_in_tags_are_valid() -> None:
    schema = json.loads(
        files("comity.policies").joinpath("permissions.schema.json").read_text("utf-8")
    )
    elements = Draft202012Validator({"$defs": schema["$defs"], **schema["properties"]["elements"]})
    shown = [
        json.loads(f"{{{block}}}")["elements"]
        for block in blocks("items.md", "json")
        if block.startswith('"elements"')
    ]
    assert [len(one) for one in shown] == [1]
    for one in shown:
        elements.validate(one)


def test_the_row_of_a_sidecar() -> None:
    (shown,) = (
        json.loads(block) for block in blocks("items.md", "json") if block.startswith('{"id"')
    )
    assert list(shown) == list(json.loads(sidecar.row({"title": "A"}, shown["url"], {"schema": 1})))


def test_conditions() -> None:
    named = [
        name
        for row in cells(section("Conditions", (DOCS / "items.md").read_text("utf-8")))
        for name in code(row[0])
    ]
    assert named == [field.name for field in fields(Qualifiers)]


def test_the_snippet_on_the_page_of_uses() -> None:
    program, printed = re.findall(
        r"```python\n([^`]*)```\n```\n([^`]*)```", (DOCS / "uses.md").read_text("utf-8")
    )[0]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(program, {})
    assert output.getvalue() == printed


# Readings that are proved here


@pytest.mark.requirement("ACAP-8", "RFC-11")
def test_sitemaps_count_within_records_of_acap() -> None:
    text = b"ACAP-crawler: *\nACAP-allow-index: /\nSitemap: /sitemap.xml\nACAP-disallow-crawl: /private/\n"
    site = Site.from_files(ORIGIN, {"/robots.txt": text})
    assert site.sitemaps == (f"{ORIGIN}/sitemap.xml",)
    assert site.access(Agent("examplebot"), f"{ORIGIN}/private/").reasons[0].source.line == 4
    assert site.findings == ()


@pytest.mark.requirement("MEET-1")
@pytest.mark.parametrize(
    ("path", "reasons"),
    [
        ("/open", {("acap.allow", 4)}),
        ("/drafts/1", {("robots.disallow", 2)}),
        ("/closed/1", {("acap.disallow", 5)}),
        ("/drafts/closed/1", {("robots.disallow", 2), ("acap.disallow", 5)}),
    ],
)
def test_conventional_records_and_those_of_acap_both_have_to_permit_a_request(
    path: str, reasons: set[tuple[str, int]]
) -> None:
    text = b"User-agent: *\nDisallow: /drafts/\nACAP-crawler: *\nACAP-allow-crawl: /\nACAP-disallow-crawl: /*closed/\n"
    decision = Site.from_files(ORIGIN, {"/robots.txt": text}).access(
        Agent("examplebot"), ORIGIN + path
    )
    assert decision.verdict is (Verdict.ALLOW if path == "/open" else Verdict.DENY)
    assert {(reason.rule, reason.source.line) for reason in decision.reasons} == reasons


@pytest.mark.requirement("ACAP-7", "PREF-2")
def test_what_conventional_records_that_are_ignored_still_say() -> None:
    """Of access and pace nothing; of uses what other formats say there."""
    (row,) = (
        row
        for row in cells(section("Fields"))
        if code(row[0]) == ["ACAP-ignore-conventional-records"]
    )
    assert [name for name in code(row[2]) if not name.startswith(("User-", "acap."))] == [
        *("Allow", "Disallow", "Crawl-delay", "Request-rate", "Visit-time", "Content-Usage"),
    ]
    text = (
        "User-agent: *\nDisallow: /\nCrawl-delay: 5\nRequest-rate: 1/9\nVisit-time: 0200-0201\nContent-Usage: train-ai=n\n"
        "ACAP-ignore-conventional-records\nACAP-crawler: *\nACAP-allow-crawl: /\n"
    )
    agent = Agent("examplebot", defaults={"train-ai": Verdict.ALLOW})
    site = Site.from_files(ORIGIN, {"/robots.txt": text.encode()})
    assert site.access(agent, ORIGIN, now=NOW).verdict is Verdict.ALLOW
    assert site.rates(agent) is None
    assert (
        site.page(agent, ORIGIN, now=NOW).uses["train-ai"].reasons[0].rule
        == "content-usage.disallow"
    )


@pytest.mark.requirement("ACAP-7", "WHY-1")
def test_where_conventional_records_are_ignored_the_line_that_says_so_is_the_reason() -> None:
    text = b"User-agent: *\nDisallow: /\nACAP-ignore-conventional-records\nACAP-crawler: *\nACAP-disallow-crawl: /closed/\n"
    site = Site.from_files(ORIGIN, {"/robots.txt": text})
    for path, verdict, rule, line in (
        ("/a", Verdict.ALLOW, "acap.ignore-conventional", 3),
        ("/closed/a", Verdict.DENY, "acap.disallow", 5),
    ):
        decision = site.access(Agent("examplebot"), ORIGIN + path)
        (reason,) = decision.reasons
        assert (decision.verdict, reason.rule, reason.source.line) == (verdict, rule, line)
