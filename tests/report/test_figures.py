"""The main figures of reports: thresholds, and their course over several reports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from comity.report.figures.figures import MEANINGS, Figure, figures_of
from comity.report.figures.thresholds import parse
from comity.report.figures.trend import Row, in_order, text_of, trend
from comity.report.value import Report, ReportedPace, ReportedUnreachable, ReportError

ROOT = Path(__file__).parent.parent.parent


def made(until: str = "", refused: int = 5, source: str = "crawl") -> Report:
    return Report(
        source=source,
        title="Crawl x",
        until=until,
        counts={
            "sent": 21,
            "answered": 20,
            "failed": 1,
            "allowed": 20,
            "refused": refused,
            "backed_off": 0,
            "sites": 3,
            "items": 18,
        },
        unreachable=ReportedUnreachable(number=1),
        pace=ReportedPace(gaps=10, below=0),
    )


def test_a_crawl_has_every_figure() -> None:
    assert [*figures_of(made())] == [*MEANINGS]


def test_a_report_lacks_the_figures_that_it_was_not_made_from() -> None:
    """The statistics of a crawl do not say which sites are unreadable, and 0 would pass."""
    assert figures_of(made(source="stats")).keys() == {
        *MEANINGS.keys() - {"too-soon", "unreadable"}
    }
    assert [*figures_of(Report(source="items", title="x", counts={"items": 1}))] == ["items"]


@pytest.mark.parametrize(
    ("threshold", "failure"),
    [
        (
            "refused>5%",
            "refused>5%: refused is 5 of 25, which is 20 %: 15 points above the threshold",
        ),
        ("refused>20%", ""),
        ("refused > 4", "refused>4: refused is 5 of 25: 1 above the threshold"),
        ("refused>5", ""),
        ("unreadable>0", "unreadable>0: unreadable is 1 of 3: 1 above the threshold"),
        ("items<100", "items<100: items is 18: 82 below the threshold"),
        ("items<18", ""),
        ("too-soon>0%", ""),
        (
            "failed>0.5%",
            "failed>0.5%: failed is 1 of 21, which is 4.76 %: 4.26 points above the threshold",
        ),
    ],
)
def test_a_threshold_fails_beyond_its_bound(threshold: str, failure: str) -> None:
    assert parse(threshold).failure(made()) == failure


def test_a_percentage_of_nothing_is_0() -> None:
    assert (
        parse("refused>0%").failure(
            Report(
                source="crawl",
                title="x",
                counts={
                    "refused": 0,
                    "allowed": 0,
                    "sent": 0,
                },
            )
        )
        == ""
    )


@pytest.mark.parametrize("text", ["", "refused", "refuse>1", "refused>", "refused=1", "items>-1"])
def test_another_text_is_no_threshold(text: str) -> None:
    with pytest.raises(ReportError, match="is not a threshold: write NAME>NUMBER"):
        parse(text)


@pytest.mark.parametrize(
    ("threshold", "source", "error"),
    [
        ("unreadable>0", "stats", "this report has no `unreadable`. It has: sent, refused"),
        ("items<5%", "crawl", "`items` has no percentage: write a number"),
    ],
)
def test_a_figure_that_the_report_lacks_is_an_error(
    threshold: str, source: str, error: str
) -> None:
    with pytest.raises(ReportError, match=error):
        parse(threshold).failure(made(source=source))


def test_a_trend_has_each_figure_once() -> None:
    rows = trend([made(), Report(source="items", title="x", counts={"items": 1})])
    assert [row.name for row in rows] == [*MEANINGS]
    assert rows[1] == Row("refused", MEANINGS["refused"], (Figure(5, 25), None))
    assert rows[1].points == (20.0, None)
    assert rows[-1].points == (18, 1)
    assert list(map(text_of, rows[1].values)) == ["5 (20 %)", "–"]


def test_reports_are_in_the_order_of_their_ends() -> None:
    new, old, undated = made("2026-11-02T00:00:00Z"), made("2026-11-01T00:00:00Z"), made()
    assert [*in_order({"new": new, "old": old})] == ["old", "new"]
    assert [*in_order({"new": new, "none": undated, "old": old})] == ["new", "none", "old"]


def test_the_docs_list_each_figure() -> None:
    page = (ROOT / "docs" / "report.md").read_text("utf-8")
    table = page.partition("| figure | meaning |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([a-z-]+)`", table, re.MULTILINE) == [*MEANINGS]
