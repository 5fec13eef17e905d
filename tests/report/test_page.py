"""The page: what sites have written is text in it, whatever it says; nothing runs, and nothing is loaded."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from typing import Any

import pytest
import turbohtml
from markupsafe import escape

from comity.report.difference import difference
from comity.report.page import MAX_TEXT, _part, _share, difference_page, page_of
from comity.report.value import NamedCount, Ranking, Report, ReportError, read_report
from tests.report.made_reports import HOSTILE, crawled

pytestmark = pytest.mark.requirement("REPORT-1", "SEC-4")

# Of HTML and SVG; nothing else stands in a page.
ELEMENTS = {
    *re.findall(
        r"\S+",
        "html head meta title style body header main section nav footer h1 h2 h3 p a ul ol li dl div dt dd small span strong"
        " code pre q bdi time figure figcaption table caption thead tbody tr th td details summary template"
        " fieldset legend label input svg g path rect circle text",
    )
}
ATTRIBUTES = {
    *re.findall(
        r"\S+",
        "lang charset http-equiv content name class id href datetime aria-label aria-labelledby aria-hidden scope role"
        " type value checked data-format tabindex open dir viewbox d x y rx ry cx cy r width height transform text-anchor xmlns:xlink xmlns",
    )
}


def elements(text: str) -> list[tuple[str, dict[str, Any]]]:
    document = turbohtml.parse(text)
    return [(element.tag, dict(element.attrs.items())) for element in document.find_all()]


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> Report:
    report = crawled(len(HOSTILE) * 2, 60, hostile=True, patch=monkeypatch)
    report.licences = Ranking([NamedCount(text, 1) for text in HOSTILE[:-1]])
    report.title, report.agent, report.notes = HOSTILE[0], HOSTILE[1], [*HOSTILE[:-1]]
    return report


def test_no_markup_but_its_own_is_in_it(hostile: Report) -> None:
    text = page_of(hostile)
    for name, attributes in elements(text):
        assert name in ELEMENTS, name
        assert {key.lower() for key in attributes} <= ATTRIBUTES, (name, attributes)
        assert attributes.get("href", "#").startswith("#"), attributes
    assert "<script" not in text
    assert not re.search(
        "[\u202a-\u202e\u2066-\u2069\u200b\ufeff\u0000\u001b]", text.partition("<template")[0]
    )


def test_a_report_that_somebody_else_has_written_does_no_more(hostile: Report) -> None:
    """Its values were never made printable."""

    def spoilt(value: Any) -> Any:
        if isinstance(value, str):
            return value + HOSTILE[0] + HOSTILE[8] + HOSTILE[10]
        if isinstance(value, list):
            return [spoilt(member) for member in value]
        return value

    report = read_report(page_of(hostile))
    report = replace(
        report, notes=spoilt(report.notes), state=spoilt(report.state), settings={"A": HOSTILE[0]}
    )
    report.advice = [
        replace(entry, why=spoilt(entry.why), example=spoilt(entry.example))
        for entry in report.advice
    ]
    for refusal in report.refusals:
        refusal.rule, refusal.summary, refusal.spec = map(
            spoilt, (refusal.rule, refusal.summary, refusal.spec)
        )
    for series in report.pace.series:
        series.host = spoilt(series.host)
    text = page_of(report)
    assert {name for name, _ in elements(text)} <= ELEMENTS
    shown = text.partition("<template")[0]
    assert "\u202e" not in shown
    assert "a" * (MAX_TEXT + 1) not in shown


def test_its_policy_permits_nothing_but_its_style(hostile: Report) -> None:
    text = page_of(hostile)
    style = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    assert len(style) == 1
    digest = base64.b64encode(hashlib.sha256(style[0].encode()).digest()).decode()
    [policy] = [
        attributes["content"] for name, attributes in elements(text) if "http-equiv" in attributes
    ]
    assert (
        policy
        == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert "style=" not in text
    assert not re.search(r"(?:src|url\(|@import|https?:)[^<]*", style[0])


def test_the_report_can_be_read_out_of_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    report = crawled(patch=monkeypatch)
    assert read_report(page_of(report)) == report


def test_what_it_says_is_what_the_report_says(monkeypatch: pytest.MonkeyPatch) -> None:
    report = crawled(patch=monkeypatch)
    text = page_of(report)
    assert f"All {report.pace.gaps:,} gaps that were measured kept the limit." in text
    assert (
        f"<dd>{report.counts['sent']:,}<small>and {report.counts['files']} for policy files" in text
    )
    for refusal in report.refusals:
        assert (
            f'<span class="count">{refusal.count:,}</span><span class="what"><code>{refusal.rule}</code>'
            in text
        )
    assert text.count("<svg") > 2 + len(report.pace.series)
    report.pace.below = 2
    assert f"2 of {report.pace.gaps:,} gaps were shorter than the limit." in page_of(report)


def test_figures_that_no_report_has_are_an_error() -> None:
    report = Report(source="crawl", title="a")
    report.timeline.sent = [10**400, 1]
    with pytest.raises(ReportError, match="its figures cannot be shown"):
        page_of(report)


@pytest.mark.parametrize("source", ["crawl", "items", "store", "stats"])
def test_an_empty_report_is_a_page(source: str) -> None:
    text = page_of(Report(source=source, title="nothing"))
    assert "<h1><bdi>nothing</bdi></h1>" in text
    assert elements(text)


def test_a_difference_is_a_page_as_harmless(hostile: Report) -> None:
    other = Report(source="crawl", title=HOSTILE[1])
    text = difference_page(difference(other, hostile), other, hostile)
    assert {name for name, _ in elements(text)} <= ELEMENTS
    assert "Refused requests" in text


@pytest.mark.parametrize(
    ("count", "total", "share"),
    [
        (0, 0, "–"),
        (0, 9, "0 %"),
        (1, 1000, "< 1 %"),
        (999, 1000, "> 99 %"),
        (9, 9, "100 %"),
        (1, 3, "33 %"),
    ],
)
def test_shares_are_honest(count: int, total: int, share: str) -> None:
    assert _share(count, total) == share


def test_a_gap_that_is_too_short_never_looks_like_the_limit() -> None:
    assert (_part(0.99999), _part(1.0), _part(None)) == ("0.999", "1.000", "–")


def test_every_link_leads_to_one_place(hostile: Report) -> None:
    """Names of hosts and rules are in ids. Different names have different ids."""
    found = [attributes for _, attributes in elements(page_of(hostile))]
    ids = [attributes["id"] for attributes in found if "id" in attributes]
    links = [attributes["href"][1:] for attributes in found if "row" in attributes.get("class", ())]
    assert len(set(ids)) == len(ids)
    assert len(links) > len(hostile.refusals)
    assert [link for link in links if link not in ids] == []


def test_a_section_without_entries_is_a_line() -> None:
    empty = Report(source="crawl", title="nothing", counts={"items": 0, "sites": 0})
    text = page_of(empty).partition("<main>")[2]
    lines = re.findall(r'<h2 id="\w+-h">[^<]+</h2>\s*<p class="none">[^<]+</p>\s*</section>', text)
    assert len(lines) == 7


def test_figures_name_their_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    report = crawled(patch=monkeypatch)
    text = page_of(report)
    refused, decided = report.counts["refused"], report.counts["refused"] + report.counts["allowed"]
    assert f"<small>{_share(refused, decided)} of {decided:,}</small>" in text
    assert "<dt>Sites without readable policies</dt>" in text
    assert '<th scope="col">Strictest limit</th>' in text


def test_a_line_has_examples(hostile: Report) -> None:
    text = page_of(hostile)
    url = next(line.urls[0] for refusal in hostile.refusals for line in refusal.lines if line.urls)
    assert f"For example: <bdi>{escape(url)}</bdi>" in text
