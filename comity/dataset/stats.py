"""Statistics of datasets: how much of them may be used options. Nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from comity.dataset.counts.record_counts import RecordCounts
from comity.dataset.job import JobOptions, fields_with_tag, open_readers
from comity.dataset.passes import Outcome, Sinks, Unread, run
from comity.dataset.records import Record
from comity.dataset.tags.sources import GUESSED, TagSource


class StatsPass(NamedTuple):
    """A pass that counts what the tags permit."""

    now: datetime
    tags: TagSource = GUESSED

    @property
    def fields(self) -> Sequence[str] | None:
        return fields_with_tag(self.tags)

    def __call__(self, records: list[Record]) -> Outcome:
        counts = RecordCounts()
        for record in records:
            counts.read(record, self.now, self.tags)
        return Outcome([], counts)


def stats(datasets: Sequence[Path], now: datetime, options: JobOptions = JobOptions(), tags: TagSource = GUESSED) -> RecordCounts:  # noqa: B008
    """Nothing is written."""
    counts, readers = RecordCounts(), open_readers(datasets)

    def unreadable(_: Unread) -> None:
        counts.unreadable += 1

    run(
        StatsPass(now, tags),
        readers,
        Sinks(counts.merge, unreadable=unreadable, progress=options.progress),
        workers=options.workers,
        executor=options.executor,
    )
    return counts
