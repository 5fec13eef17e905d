"""The counts of a pass that tags. Counts of parts can be merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from comity.dataset.counts.summary import Summary
from comity.dataset.tagging.tag_changes import Tag

# The maximum number of distinct names. Files can contain any number of crawlers and statuses.
MAX_NAMES = 1000
OTHERS = "others"


class NameCounts(Counter[str]):
    """Counts by name. All names beyond MAX_NAMES count as OTHERS."""

    def note(self, name: str, count: int = 1) -> None:
        self[name if name in self or len(self) < MAX_NAMES else OTHERS] += count


class Tagged(Summary):
    """Counts of a pass that tags: tagged records, records kept apart, and records left out.

    It can be merged and pickled."""

    def __init__(self) -> None:
        super().__init__()
        self.apart = 0
        self.undated = 0  # tagged records without a readable date
        self.left_out = NameCounts()
        self.crawlers = NameCounts()  # User-Agent that captured pages -> records
        # Verdict on one of the agent's uses ("train: allow", "train: deny: RULE") -> records.
        self.verdicts = NameCounts()

    def merge(self, other: Summary) -> None:
        super().merge(other)
        assert isinstance(other, Tagged)
        self.apart += other.apart
        self.undated += other.undated
        for name in ("left_out", "crawlers", "verdicts"):
            for key, count in getattr(other, name).items():
                getattr(self, name).note(key, count)

    @property
    def read(self) -> int:
        """The number of records that were read, with any outcome."""
        return (
            self.counts.records + self.apart + self.counts.unreadable + sum(self.left_out.values())
        )


def verdict_names(tag: Tag, uses: Iterable[str]) -> list[str]:
    """Return the names under which the verdicts of a tag on these uses are counted."""
    names = []
    for use in uses:
        decision = tag["uses"][use]
        verdict = decision["verdict"]
        rule = tag["reasons"][decision["because"][0]]["rule"] if verdict == "deny" else ""
        names.append(f"{use}: {verdict}{': ' if rule else ''}{rule}")
    return names
