"""A report as JSON, in a file and in a page, and what is none."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from comity.report.value import (
    Line,
    Report,
    ReportedRefusal,
    ReportError,
    Series,
    as_json,
    embed,
    read_report,
)
from comity.report.value import ReportedLimit as _Limit

HOSTILE = "</template><script>alert(1)</script>&amp;\u202e\u2028'\"`"


def report() -> Report:
    lines = [Line(url=HOSTILE, text=HOSTILE, line=3)]
    made = Report(source="crawl", title="a", counts={"sent": 3}, notes=[HOSTILE])
    made.refusals = [
        ReportedRefusal(rule="robots.disallow", spec="", summary="", count=1, lines=lines)
    ]
    limit = _Limit(requests=1, seconds=0.5, is_stated=True)
    made.pace.series = [Series(host="a", why="requests", limit=limit, points=[(0.5, 1.0)])]
    return made


def test_it_is_the_same_after_it_was_read() -> None:
    assert read_report(as_json(report())) == report()
    assert read_report(as_json(report(), indent=2)) == report()


def test_it_is_read_out_of_a_page_and_ends_nothing_there() -> None:
    text = embed(report())
    assert not {"<", ">", "&"} & set(text)
    assert (
        read_report(f'<!doctype html><p>x</p><template id="report">{text}</template>') == report()
    )


def changed(**members: Any) -> str:
    return json.dumps(asdict(report()) | members)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is not JSON"),
        ("{", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "not a report of comity"),
        ('{"a": 1}', "not a report of comity"),
        ("<p>a page</p>", "it is a page without a report"),
        (changed(schema=2), "schema 2, and this version of comity reads schema 1"),
        (changed(counts={"sent": "3"}), "report.counts.sent has a value that no report has"),
        (changed(counts={"sent": True}), "report.counts.sent has a value"),
        (changed(refusals=[{"rule": "a"}]), "report.refusals[0] has no `count`"),
        (changed(refusals={}), "report.refusals has a value"),
        (changed(more=1), "report has `more`, which no report has"),
        (
            changed(pace={"series": [{"host": "a", "why": "", "limit": {}, "points": []}]}),
            "report.pace.series[0].limit has no",
        ),
        (changed(timeline={"seconds": 1, "sent": [None]}), "report.timeline.sent[0] has a value"),
        (changed(timeline={"seconds": float("nan")}), "it is not JSON"),
    ],
)
def test_what_is_none_says_why(text: str, message: str) -> None:
    with pytest.raises(ReportError) as caught:
        read_report(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_missing_is_as_it_is_by_default() -> None:
    assert read_report('{"schema": 1, "source": "items", "title": "a"}') == Report(
        source="items", title="a"
    )
