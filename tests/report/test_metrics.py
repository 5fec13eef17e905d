"""The counters for Prometheus, and the example dashboard."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from comity.policies import ActionRequest, Decision, Reason, Source, Verdict
from comity.policies.syntax.windows import Window
from comity.report.collector import Collector
from comity.report.metrics import Metrics
from comity.report.value import ReportError
from tests.report.made_reports import HOSTILE, Limiter, tag

DASHBOARD = Path(__file__).parents[2] / "examples" / "grafana" / "comity.json"


@pytest.fixture
def collector() -> Collector:
    collector = Collector()
    limiters = [Limiter("a.example", Window(1, 1.0))]
    for number in range(2):
        collector.settled(limiters, collector.starting(limiters))
        collector.received("https://a.example/", 200 + 204 * number)
        collector.tagged(tag("https://a.example", number))
    reason = Reason(
        rule="robots.disallow", source=Source(url="https://a.example/robots.txt", line=1)
    )
    collector.decided("https://a.example/", Decision(verdict=Verdict.DENY, reasons=(reason,)))
    collector.asked_to_act(
        ActionRequest(action="take-down", url="https://a.example/", arranged=True, reason=reason)
    )
    return collector


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    with urllib.request.urlopen(metrics.url, timeout=300) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_they_are_those_of_the_collector(collector: Collector) -> None:
    with Metrics(collector, 0, waiting=lambda: 7) as metrics:
        found = samples(metrics)
        collector.received("https://a.example/", 200)
        again = samples(metrics)
    assert metrics.url.startswith("http://127.0.0.1:")
    assert found["comity_sent_total",] == found["comity_answered_total",] == 2
    assert found["comity_waiting",] == 7
    assert found["comity_decisions_total", "deny", "robots.disallow"] == 1
    assert found["comity_responses_total", "404"] == 1
    assert (
        found["comity_uses_total", "deny", "false", "train"] == 1
    )  # one for each question, as the table names it
    assert found["comity_actions_total", "take-down"] == 1
    assert (
        found["comity_gap_bucket", "0.999"]
        == found["comity_gap_bucket", "+Inf"]
        == found["comity_gap_count",]
        == 1
    )
    assert again["comity_answered_total",] == 3


def test_what_sites_name_breaks_no_line(collector: Collector) -> None:
    for text in HOSTILE[:-1]:
        collector.items.uses.add((text[:100] + '"\n\\', "allow", True))
    with Metrics(collector, 0, waiting=int) as metrics:
        assert sum(name[0] == "comity_uses_total" for name in samples(metrics)) > len(HOSTILE) - 2


def test_a_port_in_use_is_an_error(collector: Collector) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ReportError, match=f"cannot listen on 127.0.0.1, port {port}"):
            Metrics(collector, port, waiting=int)


def test_every_metric_that_the_dashboard_names_is_there(collector: Collector) -> None:
    dashboard: dict[str, Any] = json.loads(DASHBOARD.read_text("utf-8"))
    queries = [
        target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())
    ]
    named = {name for query in queries for name in re.findall(r"\bcomity_\w+", query)}
    with Metrics(collector, 0, waiting=int) as metrics:
        there = {name for name, *_ in samples(metrics)}
    assert len(queries) >= 8
    assert named <= there
