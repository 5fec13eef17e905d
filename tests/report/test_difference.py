"""What has changed from one report to another."""

from __future__ import annotations

import pytest

from comity.report.difference import Change, as_json, difference
from comity.report.value import Report
from tests.report.made_reports import crawled


def test_equal_reports_differ_in_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    report = crawled(patch=monkeypatch)
    assert difference(report, report) == []


def test_what_came_went_and_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = crawled(6, 60, patch=monkeypatch), crawled(6, 60, patch=monkeypatch)
    gone, changed = new.refusals.pop(), new.refusals[0]
    changed.count += 5
    changed.lines[0].count += 5
    new.counts["refused"] -= 2
    new.unreachable.listed[0].origin = "https://new.example"
    sections = {
        section.title: {change.name: change for change in section.changes}
        for section in difference(old, new)
    }
    rules = sections["Refused requests"]
    assert rules[gone.rule] == Change(gone.rule, gone.count, None)
    assert (rules[changed.rule].old, rules[changed.rule].delta) == (str(changed.count - 5), "+5")
    assert sections["Totals"]["refused"].delta == "-2"
    assert sections["Sites without readable policies"]["https://new.example"].old == "–"
    assert len(sections["Lines that refuse"]) >= 1


def test_the_greatest_changes_come_first_and_it_is_data() -> None:
    old, new = (
        Report(source="crawl", title="a", counts={"a": a, "b": b}) for a, b in ((1, 1), (2, 9))
    )
    assert as_json(difference(old, new)) == [
        {
            "title": "Totals",
            "what": "Count",
            "changes": [{"name": "b", "before": 1, "now": 9}, {"name": "a", "before": 1, "now": 2}],
        }
    ]
