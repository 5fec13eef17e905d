"""The counters of a crawl for Prometheus: text over HTTP on this machine only.

They name no hosts and no pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Self

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from comity.report.collector import Collector
from comity.report.hosts import EDGES
from comity.report.value import ReportError

ADDRESS = "127.0.0.1"


class Metrics:
    """A server of the counters, in a thread of its own.

    It reads while the crawl counts. Each number is correct for a moment shortly before, but the
    numbers may be of different moments."""

    def __init__(self, collector: Collector, port: int, *, waiting: Callable[[], int]) -> None:
        """`port`: 0 for any free port. `waiting`: returns the number of requests that wait.

        ReportError: it cannot listen."""
        self._collector = collector
        self._waiting = waiting
        registry = CollectorRegistry()
        registry.register(self)
        try:
            self._server, self._thread = start_http_server(port, addr=ADDRESS, registry=registry)
        except OSError as error:
            raise ReportError(
                f"COMITY_METRICS: cannot listen on {ADDRESS}, port {port}: {error.strerror}"
            ) from None
        self.port: int = self._server.server_port

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.port}/metrics"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics for a registry that asks before there is anything to count."""
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        collector = self._collector
        totals = collector.totals()
        for name, text in _COUNTERS.items():
            yield CounterMetricFamily(f"comity_{name}", text, value=totals[name])
        decisions = CounterMetricFamily(
            "comity_decisions", "Decisions about requests.", labels=("verdict", "rule")
        )
        for (verdict, rule), count in list(collector.verdicts.items()):
            decisions.add_metric((verdict, rule), count)
        yield decisions
        responses = CounterMetricFamily(
            "comity_responses", "Responses from the network.", labels=("status",)
        )
        for status, count in list(collector.statuses.items()):
            responses.add_metric((str(status),), count)
        yield responses
        uses = CounterMetricFamily(
            "comity_uses",
            "Uses of items, by what they permit.",
            labels=("use", "verdict", "stated"),
        )
        for (use, verdict, is_stated), count in list(collector.items.uses.counts.items()):
            uses.add_metric((use, verdict, "true" if is_stated else "false"), count)
        yield uses
        yield CounterMetricFamily(
            "comity_items", "Items that were tagged.", value=collector.items.items
        )
        actions = CounterMetricFamily(
            "comity_actions", "Actions that sites request.", labels=("action",)
        )
        for action, count in list(collector.actions.items()):
            actions.add_metric((action,), count)
        yield actions
        yield GaugeMetricFamily(
            "comity_sites", "Sites whose policies were looked up.", value=collector.sites.number
        )
        yield GaugeMetricFamily(
            "comity_sites_unreachable",
            "Sites whose policies cannot be fetched.",
            value=collector.sites.unreachable,
        )
        yield GaugeMetricFamily("comity_waiting", "Requests that wait.", value=self._waiting())
        yield _gaps(list(collector.hosts.gaps), collector.hosts.gap_sum)


# The counts of HostCount, and their descriptions.
_COUNTERS = {
    "sent": "Requests for pages that went out.",
    "answered": "Responses to them.",
    "files": "Requests for policy files.",
    "allowed": "Requests that the policies allow.",
    "refused": "Requests that the policies refuse.",
    "stopped": "Responses that were refused by their header fields.",
    "backed_off": "Answers that said that the host is asked too often.",
}


def _gaps(numbers: list[int], total: float) -> Metric:
    """Return the histogram of gaps. Requests of the first bucket came too soon."""
    buckets, cumulative = [], 0
    for edge, number in zip((*map(str, EDGES), "+Inf"), numbers, strict=True):
        cumulative += number
        buckets.append((edge, cumulative))
    return HistogramMetricFamily(
        "comity_gap",
        "Gaps between requests to a host, as parts of its limit: 1 is what it asks for.",
        buckets,
        sum_value=total,
    )
