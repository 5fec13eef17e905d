"""Statistics of datasets: the number of records that permit each use, and the rules that decide.

    counts = stats([Path("items.parquet")], datetime.now(UTC), by="origin", uses=["train"])
    for row in counts.rows(): ...

The datasets do not change."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, NamedTuple

from comity.dataset.counts.use_counts import MONTH, USE, UseCounts
from comity.dataset.files.replacement import Replacement
from comity.dataset.job import (
    JobOptions,
    check_outside,
    fields_with_tag,
    files_of,
    first_of,
    open_readers,
    paths_read,
)
from comity.dataset.passes import Outcome, Sinks, UnreadRecord, run
from comity.dataset.records import DatasetError, Record
from comity.dataset.tags.sources import GUESSED, TagSource, read
from comity.policies.tag import TagError


class StatsPass(NamedTuple):
    """A pass that counts the uses that tags permit."""

    now: datetime
    """The moment of the count, aware."""
    tags: TagSource = GUESSED
    """The places of tags in records."""
    by: str = USE
    """The groups of the counts: "use", "rule", "origin" or "month"."""
    also: tuple[str, ...] = ()
    """Other groups that are counted too."""
    uses: frozenset[str] = frozenset()
    """The uses to count. Empty: all uses in the tags."""

    @property
    def fields(self) -> Sequence[str] | None:
        return fields_with_tag(
            self.tags, *(["fetched_at"] if MONTH in (self.by, *self.also) else ())
        )

    def __call__(self, records: list[Record]) -> Outcome:
        counts = UseCounts(self.by, self.also)
        for record in records:
            self._count(counts, record)
        return Outcome([], counts)

    def columns(self, batch: Any, number: int) -> Outcome:
        # Imported here because pyarrow is installed only where there are columns.
        from comity.dataset.counts.use_columns import count_columns

        counts = UseCounts(self.by, self.also)
        read = partial(self._count, counts)
        unreadable = count_columns(batch, number, counts, self.tags, self.uses, self.now, read)
        return Outcome([], counts, unreadable=unreadable)

    def _count(self, counts: UseCounts, record: Record) -> None:
        try:
            tag = read(record, self.tags)
        except TagError as error:
            counts.drop(str(error))
        else:
            counts.read(record, tag, self.uses, self.now)


def check_output(output: Path, datasets: Sequence[Path], tags: TagSource) -> None:
    """Check that counts of these datasets may be written to a file.

    DatasetError: the ending of `output` is unknown, or `output` is one of the files that are read,
    or would be in a folder that is read."""
    if output.suffix not in _WRITERS:
        raise DatasetError(
            f"{output}: unknown format: write a name that ends in {', '.join(_WRITERS)}"
        )
    if first_of([output], files_of(paths_read(open_readers(datasets), tags))):
        raise DatasetError(f"{output} is read from: give the counts another name")
    check_outside(output, datasets)


def write(counts: UseCounts, output: Path) -> None:
    """Write the rows of the counts as Parquet, CSV or JSON, as the ending of the file says.

    A `.json` file has the totals too.

    DatasetError: the file cannot be written."""
    with Replacement(output) as file:
        _WRITERS[output.suffix](counts, file)


def _write_parquet(counts: UseCounts, file: IO[bytes]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    types = [pa.string() if name in (counts.by, "use") else pa.int64() for name in counts.columns]
    rows = pa.Table.from_pylist(
        list(counts.rows()), pa.schema(list(zip(counts.columns, types, strict=True)))
    )
    parquet.write_table(rows, file, compression="zstd")


def _write_csv(counts: UseCounts, file: IO[bytes]) -> None:
    text = TextIOWrapper(file, "utf-8", newline="")
    writer = csv.DictWriter(text, counts.columns)
    writer.writeheader()
    writer.writerows(counts.rows())
    text.detach()


def _write_json(counts: UseCounts, file: IO[bytes]) -> None:
    file.write(json.dumps(counts.as_json(), indent=2).encode() + b"\n")


_WRITERS = {".parquet": _write_parquet, ".csv": _write_csv, ".json": _write_json}


def stats(
    datasets: Sequence[Path],
    now: datetime,
    options: JobOptions = JobOptions(),  # noqa: B008  # immutable
    tags: TagSource = GUESSED,
    *,
    by: str = USE,
    also: tuple[str, ...] = (),
    uses: Iterable[str] = (),
) -> UseCounts:
    """Count the uses in datasets at the aware moment `now`.

    `by`: the groups of the counts: "use", "rule", "origin" or "month". `also`: other groups that
    are counted too. `uses`: the uses to count. Empty: all uses in the tags.

    DatasetError: a file cannot be read."""
    counts, readers = UseCounts(by, also), open_readers(datasets)

    def unreadable(_: UnreadRecord) -> None:
        counts.unreadable += 1

    run(
        StatsPass(now, tags, by, also, frozenset(uses)),
        readers,
        Sinks(counts.merge, unreadable=unreadable, progress=options.progress),
        workers=options.workers,
        executor=options.executor,
    )
    return counts
