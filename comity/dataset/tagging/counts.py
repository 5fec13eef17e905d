"""The counts of a pass that tags. Those of parts are merged into those of the whole."""

from __future__ import annotations

from collections import Counter

from comity.dataset.counts.summary import Summary

MAX_NAMES = 1000  # of crawlers, and of why something is left out: files can name any
OTHERS = "others"


class Names(Counter[str]):
    """Counts by names, no more than MAX_NAMES of them."""

    def note(self, name: str, count: int = 1) -> None:
        self[name if name in self or len(self) < MAX_NAMES else OTHERS] += count


class Tagged(Summary):
    """Counts of a pass that tags: the tagged records, and the others by their fate. Mergeable, picklable."""

    def __init__(self) -> None:
        super().__init__()
        self.apart = 0
        self.undated = 0  # of the tagged records: those without a date that can be read
        self.left_out = Names()
        self.crawlers = Names()  # User-Agent by which pages were captured -> records
        self.verdicts = Names()  # of the agent's uses: "train: allow", "train: deny: rule"

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
        """The number of records that were read, in whatever way they came out."""
        return (
            self.counts.records + self.apart + self.counts.unreadable + sum(self.left_out.values())
        )
