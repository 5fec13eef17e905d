"""What a collector hears, and what the report says of it."""

from __future__ import annotations

from typing import Any

import pytest

from comity.gate.options import Options
from comity.policies import ActionRequest, Decision, Reason, Source, Verdict
from comity.policies.answers.fetched import Fetched
from comity.policies.syntax.windows import Window
from comity.report import collector as module
from comity.report.collector import Collector
from comity.report.crawled import CrawlFacts, report_of
from comity.report.items import MAX_LINES, MAX_URL, RuleCount
from comity.report.value import Report
from tests.report.test_hosts import Limiter

ROBOTS = "https://a.example/robots.txt"


def decision(
    rule: str = "robots.disallow", verdict: Verdict = Verdict.DENY, **source: Any
) -> Decision:
    return Decision(
        verdict=verdict, reasons=(Reason(rule=rule, source=Source(**{"url": ROBOTS, **source})),)
    )


def reported(collector: Collector, options: Options | None = None, **stats: int) -> Report:
    from scrapy.settings import Settings

    named = {name.replace("__", "/"): number for name, number in stats.items()}
    return report_of(
        collector,
        CrawlFacts(
            "spider", "finished", options or Options.from_settings(Settings()), "", named, waiting=0
        ),
    )


def test_refusals_stand_by_rule_line_and_host() -> None:
    collector = Collector()
    for number in range(3):
        collector.decided(
            f"https://a.example/private/{number}", decision(line=3, text="Disallow: /private/")
        )
    collector.decided(
        "https://b.example/x", decision("comity.scheme", url="https://b.example/x", part="request")
    )
    collector.decided(
        "https://b.example/y", decision("comity.scheme", url="https://b.example/y", part="request")
    )
    collector.stopped(
        "https://a.example/z",
        decision("robots-meta.noindex", part="header X-Robots-Tag", text="noindex"),
    )
    collector.decided("https://a.example/", decision("robots.no-match", Verdict.ALLOW))
    report = reported(collector)
    first, second = report.refusals
    assert (first.rule, first.count, first.spec) == ("robots.disallow", 3, "RFC 9309 section-2.2.2")
    assert [(line.url, line.line, line.text, line.count) for line in first.lines] == [
        (ROBOTS, 3, "Disallow: /private/", 3)
    ]
    assert first.lines[0].urls == [f"https://a.example/private/{number}" for number in range(3)]
    assert second.lines[0].urls == ["https://b.example/x", "https://b.example/y"]
    assert [(host.name, host.count) for host in first.hosts.rows] == [("a.example", 3)]
    assert [(line.url, line.part, line.count) for line in second.lines] == [("", "request", 2)]
    assert [(refusal.rule, refusal.lines[0].part) for refusal in report.stopped] == [
        ("robots-meta.noindex", "header X-Robots-Tag")
    ]
    assert (report.counts["refused"], report.counts["allowed"], report.counts["stopped"]) == (
        5,
        1,
        1,
    )


def test_another_look_at_a_site_counts_once() -> None:
    collector = Collector()
    failed = {ROBOTS: Fetched(status=500)}
    collector.looked_up("https://a.example", failed, "HTTP status 500")
    collector.looked_up("https://a.example", failed, "HTTP status 500")
    collector.looked_up(
        "https://b.example", {"https://b.example/robots.txt": Fetched(status=404)}, ""
    )
    report = reported(collector)
    assert (report.counts["sites"], report.unreachable.number) == (2, 1)
    assert [(file.name, file.present, file.absent, file.unreachable) for file in report.files] == [
        ("/robots.txt", 0, 1, 1)
    ]
    collector.looked_up(
        "https://a.example", {ROBOTS: Fetched(status=200, body=b"User-agent: *\n")}, ""
    )
    report = reported(collector)
    assert report.unreachable.number == 0
    assert not report.unreachable.listed
    assert not report.unreachable.reasons.rows
    assert [(file.present, file.absent, file.unreachable) for file in report.files] == [(1, 1, 0)]


def test_a_request_under_several_limiters_has_one_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = Collector()
    host, scope = Limiter(), Limiter((Window(2, 4.0),), "https://a.example 0123456789")
    for moment in (0.0, 1.0, 5.0, 9.0):
        monkeypatch.setattr(module, "monotonic", lambda moment=moment: collector.began + moment)
        collector.settled([host, scope], collector.starting([host, scope]))
    report = reported(collector)
    pace = report.pace
    assert (pace.gaps, pace.first, report.counts["gaps"], report.counts["sent"]) == (3, 1, 3, 4)
    assert {row.name: row.count for row in pace.histogram if row.count} == {
        "1 to 1.05": 1,
        "1.25 to 1.5": 1,
        "2 to 3": 1,
    }
    assert {row.host: row.gaps for row in pace.least} == {
        "a.example": 3,
        "https://a.example (scope 012345)": 2,
    }


def test_a_long_crawl_has_longer_buckets_and_loses_no_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    collector = Collector()
    for moment in range(0, 5000, 7):
        now[0] = float(moment)
        collector.decided("https://a.example/", decision())
    timeline = reported(collector).timeline
    assert len(timeline.sent) == len(timeline.refused) <= module.BUCKETS
    assert timeline.seconds * module.BUCKETS >= 5000
    assert sum(timeline.refused) == len(range(0, 5000, 7))


def test_actions_and_statistics() -> None:
    collector = Collector()
    reason = Reason(
        rule="acap.request", source=Source(url=ROBOTS, line=9, text="ACAP-request-take-down: /gone")
    )
    for arranged in (True, False):
        collector.asked_to_act(
            ActionRequest(
                action="take-down", url="https://a.example/gone", arranged=arranged, reason=reason
            )
        )
    collector.backed_off("https://a.example/", 429)
    report = reported(collector, comity__scheduler__held=4, comity__items__dropped=2)
    assert report.actions.number == {"take-down": 2}
    assert report.actions.not_arranged == 1
    assert report.actions.listed[0].line.line == 9
    assert (report.counts["deferred"], report.counts["dropped"], report.counts["backed_off"]) == (
        4,
        2,
        1,
    )


def test_one_of_several_workers_says_so() -> None:
    from scrapy.settings import Settings

    options = Options.from_settings(Settings({"COMITY_STATE": "redis://127.0.0.1/0"}))
    assert "One of several workers" in reported(Collector(), options).notes[0]


def test_examples_are_few_and_short_however_many_lines_refuse() -> None:
    rule = RuleCount()
    for number in range(1000):
        for page in (*range(5), 0):
            rule.add((ROBOTS, "", number, "Disallow: /"), f"https://a.example/{page}" + "x" * 9999)
    assert len(rule.urls) <= 2 * MAX_LINES
    assert {len(urls) for urls in rule.urls.values()} == {3}
    assert {len(url) for urls in rule.urls.values() for url in urls} == {MAX_URL}


def test_examples_of_two_passes_are_joined() -> None:
    first, second = RuleCount(), RuleCount()
    key = (ROBOTS, "", 3, "Disallow: /")
    for rule, pages in ((first, "ab"), (second, "bcd")):
        for page in pages:
            rule.add(key, page)
    first.update(second)
    assert first.urls == {key: ("a", "b", "c")}
    assert first.count == 5
