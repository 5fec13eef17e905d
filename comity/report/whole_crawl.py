"""The totals and the report of a crawl by several workers, from the counts at COMITY_STATE."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from comity.policies.syntax.printable import printable
from comity.report.collector import moment
from comity.report.sources import of_stats
from comity.report.value import Report

REFUSED = "comity/access/deny/"
# Totals, and the statistics that are added up for each.
_SUMS = {
    "requests": ("downloader/request_count",),
    "pages": ("response_received_count",),
    "items": ("item_scraped_count",),
    "bytes": ("downloader/response_bytes",),
    "policy_requests": ("comity/policies/requests",),
    "refused": ("comity/access/deny", "comity/access/stopped"),
    "errors": ("downloader/exception_count", "spider_exceptions/count"),
}
# Scrapy counts refusals as exceptions of the downloader.
_NO_ERRORS = "downloader/exception_type_count/scrapy.exceptions.IgnoreRequest"


def totals(counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the totals of a crawl as JSON values. `counts`: the sums over all workers."""
    sums: dict[str, Any] = {
        name: sum(counts.get(stat, 0) for stat in stats) for name, stats in _SUMS.items()
    }
    sums["errors"] -= counts.get(_NO_ERRORS, 0)
    sums["refused_by_rule"] = {
        name.removeprefix(REFUSED): number
        for name, number in counts.items()
        if name.startswith(REFUSED)
    }
    return sums


def report_of_crawl(status: Mapping[str, Any], settings: Mapping[str, str]) -> Report:
    """Return the report of a crawl.

    `status`: the result of `StepQueue.status`. `settings`: those that decide, as texts."""
    report = of_stats(status["counts"])
    now = time.time()
    report.title = f"Crawl {printable(status['crawl'])}"
    report.began = moment(now - status["seconds"])
    report.until = moment(now)
    report.state = status["finish_reason"] or status["state"]
    report.settings = dict(settings)
    report.agent = settings.get("COMITY_AGENT", "")
    report.user_agent = settings.get("USER_AGENT", "")
    report.uses_declared = settings["COMITY_USES"].split(", ") if "COMITY_USES" in settings else []
    report.counts |= {
        "left": status["waiting"] + status["out"],
        "set_aside": status["set_aside"],
        "workers": len(status["workers"]),
        "workers_left": status["workers_left"],
        "workers_died": status["workers_died"],
    }
    report.notes = ["The sums over all workers of the crawl. They name no hosts, files and lines"]
    if status["workers_died"]:
        report.notes.append(
            f"{status['workers_died']:,} workers died. Requests that they made in their last half"
            " second, and whose pages were not done, may be missing here. Other workers have"
            " repeated them"
        )
    return report
