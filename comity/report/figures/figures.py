"""The main figures of a report, by name."""

from __future__ import annotations

from typing import NamedTuple

from comity.report.value import Report


class Figure(NamedTuple):
    """A count in a report.

    Attributes:
        number: The count.
        total: The number that a percentage refers to. None: the count has no percentage.
    """

    number: int
    total: int | None

    @property
    def percent(self) -> float:
        """The percentage of the total. It is 0 if the total is 0."""
        return 100 * self.number / self.total if self.total else 0.0


# Name -> the meaning of the figure.
MEANINGS = {
    "sent": "requests sent for pages",
    "refused": "requests refused by policies, of those decided",
    "failed": "requests without an answer, of those sent",
    "backed-off": "answers that say that a host is asked too often, of all answers",
    "too-soon": "gaps shorter than their limit, of those measured",
    "unreadable": "sites without readable policies, of those looked up",
    "items": "tagged items",
}


def figures_of(report: Report) -> dict[str, Figure]:
    """Return name -> figure of those that the report has, in the order of MEANINGS."""
    counts = report.counts
    found = {}
    for name, key, others in (
        ("sent", "sent", None),
        ("refused", "refused", ("refused", "allowed")),
        ("failed", "failed", ("sent",)),
        ("backed-off", "backed_off", ("answered",)),
    ):
        if counts.keys() >= {key, *(others or ())}:
            total = None if others is None else sum(counts[other] for other in others)
            found[name] = Figure(counts[key], total)
    if report.source == "crawl":
        found["too-soon"] = Figure(report.pace.below, report.pace.gaps)
    if report.source in ("crawl", "store") and "sites" in counts:
        found["unreadable"] = Figure(report.unreachable.number, counts["sites"])
    if "items" in counts:
        found["items"] = Figure(counts["items"] - counts.get("untagged", 0), None)
    return found
