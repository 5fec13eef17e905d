"""The report of a crawl, made from its counted events and its statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from comity.gate.options import Options
from comity.policies.syntax.printable import printable
from comity.report.advice import advice
from comity.report.collector import Collector
from comity.report.value import Report

# Counts of a report, and the statistics of Scrapy or comity that they are taken from.
STATS = {
    "deferred": "comity/scheduler/held",
    "set_aside": "comity/scheduler/set-aside",
    "dropped": "comity/items/dropped",
    "no_page": "comity/items/no-page",
    "unusable": "comity/sites/unusable",
    "not_followed": "comity/links/not-followed",
}


class CrawlFacts(NamedTuple):
    """The circumstances of a crawl, beside its events.

    Attributes:
        name: The name of the spider.
        state: "running", or the reason why the crawl ended.
        options: The options of the crawl.
        jobdir: The folder of JOBDIR; "" for none.
        stats: The statistics.
        waiting: The number of requests that wait.
    """

    name: str
    state: str
    options: Options
    jobdir: str
    stats: Mapping[str, Any]
    waiting: int


def report_of(collector: Collector, facts: CrawlFacts) -> Report:
    options, agent = facts.options, facts.options.agent
    report = Report(
        source="crawl",
        title=f"Crawl {printable(facts.name)}",
        agent=agent.token,
        user_agent=printable(agent.user_agent),
        uses_declared=list(agent.uses),
        state=printable(facts.state),
        settings={
            "COMITY_USES": ", ".join(agent.uses),
            "COMITY_DEFAULTS": ", ".join(
                f"{use}: {verdict.value}" for use, verdict in agent.defaults.items()
            ),
            "COMITY_PURPOSES": ", ".join(agent.purposes),
            "COMITY_ELEMENTS": options.elements,
            "COMITY_MIN_DELAY": f"{options.min_delay:g}",
            "COMITY_MAX_DELAY": f"{options.max_delay:g}",
            "JOBDIR": facts.jobdir,
        },
    )
    if options.state:
        report.notes.append(
            "One of several workers of a crawl (COMITY_STATE): this page is about this worker only"
        )
    collector.fill(report)
    report.counts |= {name: int(facts.stats.get(stat, 0)) for name, stat in STATS.items()}
    report.counts["left"] = int(
        facts.stats.get("comity/scheduler/left", facts.waiting if facts.state == "running" else 0)
    )
    report.elements.redacted = int(facts.stats.get("comity/items/redacted", 0))
    report.elements.stripped = int(facts.stats.get("comity/responses/stripped", 0))
    report.advice = advice(report)
    return report
