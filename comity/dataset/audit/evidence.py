"""The figures of the evidence files beside a dataset.

refusals = refusals_of(path)    the refused uses and the dropped records, by rule
copies = copies_of(path)        the copies of policy files that decided"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.counts.groups import Groups
from comity.dataset.evidence.schema import policies_path, read, refused_path
from comity.policies.syntax.urls import origin_or_empty

EXAMPLES = 3
MAX_REASONS = 1_000  # the maximum number of pairs of a use and a rule that are told apart
OTHERS = "others"
_RULE = ("use", "rule")
_EXAMPLE = ("url", "line", "policy_url", "policy_sha256", "policy_fetched_at", "captured_at")


class Reason(NamedTuple):
    """A use that was asked for, and the rule that refuses it."""

    use: str
    """The use. "": `rule` is another cause, and the record is not in the dataset."""
    rule: str
    """The rule or the cause."""


@dataclass
class Refused:
    """The rows of the evidence with one reason."""

    rows: int = 0
    dropped: int = 0
    """The rows of records that are not in the dataset."""
    examples: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Count:
    """A number of records."""

    records: int = 0

    def merge(self, other: Count) -> None:
        self.records += other.records


class Refusals:
    """The refused uses of a dataset."""

    def __init__(self) -> None:
        self.rows = 0
        self.dropped = 0  # records that are not in the dataset
        self.reasons: dict[Reason, Refused] = {}
        self.origins: Groups[str, Count] = Groups(Count)  # origin -> dropped records

    def add(self, batch: pa.RecordBatch, last: tuple[str, str] | None) -> tuple[str, str] | None:
        """Count the rows of a batch.

        `last`: file and record of the last row of a dropped record. Return the new ones."""
        self.rows += batch.num_rows
        table = pa.Table.from_batches([batch]).group_by(_RULE, use_threads=False)
        sums = table.aggregate([("use", "count"), ("dropped", "sum")])
        for row in sums.to_pylist():
            reason = Reason(row["use"], row["rule"])
            if reason not in self.reasons and len(self.reasons) >= MAX_REASONS:
                reason = Reason("", OTHERS)
            refused = self.reasons.setdefault(reason, Refused())
            refused.rows += row["use_count"]
            refused.dropped += row["dropped_sum"] or 0
            if (missing := EXAMPLES - len(refused.examples)) > 0:
                refused.examples += _examples(batch, row, missing)
        gone = batch.filter(batch.column("dropped"))
        names = ("file", "record", "url")
        for *record, url in zip(*(gone.column(name).to_pylist() for name in names), strict=True):
            if (current := (record[0], record[1])) != last:
                self.dropped += 1
                self.origins[origin_or_empty(url)].records += 1
                last = current
        return last

    def sorted_reasons(self) -> list[tuple[Reason, Refused]]:
        """Return the reasons, those of most rows first."""
        return sorted(self.reasons.items(), key=lambda entry: (-entry[1].rows, entry[0]))


def _examples(batch: pa.RecordBatch, row: dict[str, Any], most: int) -> Iterator[dict[str, Any]]:
    is_equal = pc.and_(*(pc.equal(batch.column(name), row[name]) for name in _RULE))
    found = batch.filter(is_equal).slice(0, most).select(_EXAMPLE)
    return map(plain, found.to_pylist())


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with moments as text."""
    return {
        name: value.isoformat(timespec="seconds") if hasattr(value, "isoformat") else value
        for name, value in row.items()
    }


def refusals_of(path: Path) -> Refusals:
    """Return the refused uses of a dataset. DatasetError: there is no readable evidence."""
    refusals, last = Refusals(), None
    for batch in read(refused_path(path)):
        last = refusals.add(batch, last)
    return refusals


@dataclass
class Copies:
    """The copies of policy files that decided about a dataset."""

    copies: int = 0
    files: int = 0
    """The URLs of policy files."""
    without_copy: int = 0
    """Files that were never captured, or gave no answer."""
    examples_without_copy: list[str] = field(default_factory=list)
    sources: Counter[str] = field(default_factory=Counter)
    """The file or store that copies are from -> copies."""


def copies_of(path: Path) -> Copies:
    """Count the copies of policy files. DatasetError: there is no readable evidence."""
    counts, last = Copies(), None
    for batch in read(policies_path(path), ["url", "status", "source"]):
        counts.copies += batch.num_rows
        for url, status, source in zip(*(column.to_pylist() for column in batch), strict=True):
            counts.files += url != last  # the rows are sorted by URL
            last = url
            if status == 0:
                counts.without_copy += 1
                if len(counts.examples_without_copy) < EXAMPLES:
                    counts.examples_without_copy.append(url)
            elif source in counts.sources or len(counts.sources) < MAX_REASONS:
                counts.sources[source or ""] += 1
    return counts
