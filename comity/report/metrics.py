"""The counters of a crawl for Prometheus: text over HTTP on this machine only.

They name no hosts and no pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from comity.report.collector import Collector
from comity.report.hosts import EDGES
from comity.report.value import ReportError

ADDRESS = "127.0.0.1"


class _Server:
    """A server of counters, in a thread of its own.

    It reads while the crawl counts. Each number is correct for a moment shortly before, but the
    numbers may be of different moments."""

    def __init__(self, port: int, *, subject: str) -> None:
        """`port`: 0 for any free port. `subject`: the setting or option with the port.

        ReportError: it cannot listen."""
        registry = CollectorRegistry()
        registry.register(self)
        try:
            self._server, self._thread = start_http_server(port, addr=ADDRESS, registry=registry)
        except OSError as error:
            raise ReportError(
                f"{subject}: cannot listen on {ADDRESS}, port {port}: {error.strerror}"
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
        raise NotImplementedError


class CrawlMetrics(_Server):
    """The counters of a crawl by several workers.

    Attributes:
        status: The last look at the crawl, with its totals.
    """

    def __init__(self, status: Mapping[str, Any], port: int) -> None:
        """`port`: 0 for any free port. ReportError: it cannot listen."""
        self.status = status
        super().__init__(port, subject="--metrics")

    def collect(self) -> Iterator[Metric]:
        status = self.status
        for name, text in _CRAWL_COUNTERS.items():
            yield CounterMetricFamily(f"comity_crawl_{name}", text, value=status[name])
        refused = CounterMetricFamily(
            "comity_crawl_refused", "Requests that the policies refuse.", labels=("rule",)
        )
        for rule, number in status["refused_by_rule"].items():
            refused.add_metric((rule,), number)
        yield refused
        for name, text in _CRAWL_GAUGES.items():
            if (value := status[name]) is not None:
                yield GaugeMetricFamily(f"comity_crawl_{name}", text, value=value)
        state = GaugeMetricFamily(
            "comity_crawl_state", "1 for the state of the crawl.", labels=("state",)
        )
        state.add_metric((status["state"],), 1)
        yield state


class Metrics(_Server):
    """The counters of one process."""

    def __init__(self, collector: Collector, port: int, *, waiting: Callable[[], int]) -> None:
        """`port`: 0 for any free port. `waiting`: returns the number of requests that wait.

        ReportError: it cannot listen."""
        self._collector = collector
        self._waiting = waiting
        super().__init__(port, subject="COMITY_METRICS")

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
    "stopped": "Responses that were refused by their status or header fields.",
    "backed_off": "Answers that said that the host is asked too often.",
}

_CRAWL_COUNTERS = {
    "requests": "Requests that went out, with each redirect and retry.",
    "pages": "Responses for the spider.",
    "items": "Items.",
    "bytes": "Octets of responses.",
    "policy_requests": "Requests for policy files.",
    "errors": "Requests that failed, and errors in callbacks.",
    "done": "Requests of the queue that are done.",
    "workers_left": "Workers that have left.",
    "workers_died": "Workers that were found dead.",
}
_CRAWL_GAUGES = {
    "waiting": "Requests that wait.",
    "out": "Requests that are out.",
    "set_aside": "Requests that are set aside.",
    "unreadable": "Requests that no worker is to read.",
    "hosts": "Hosts with requests that wait or are out.",
    "workers_alive": "Workers that give signs of life.",
    "seconds_left": "About how many seconds the waiting requests take.",
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
