"""The evidence files of a dataset while they are written.

with EvidenceFiles(output, sources) as evidence:    replaces both files at the end
    evidence.add(file, before, batch)
with Piece(path) as piece:                          the evidence of one file of a folder
    piece.add(file, before, batch)
evidence.add_piece(path)"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import pyarrow as pa

from comity.dataset.evidence.decisions import Decision
from comity.dataset.evidence.schema import (
    POLICY_COLUMNS,
    REFUSED_COLUMNS,
    kept_path,
    policies_path,
    refused_path,
)
from comity.dataset.evidence.tables import (
    CopyCounts,
    Evidence,
    Sources,
    batch_of,
    plain,
    policies_of,
)
from comity.dataset.files.columns.parquet import RowGroupWriter
from comity.dataset.files.places import is_local
from comity.dataset.files.replacement import Replacement
from comity.dataset.passes import Sinks, UnreadRecord
from comity.policies.syntax.printable import without_passwords

# A function: a new file -> a function that writes the copy of a URL and a time into it
Keep = Callable[[IO[bytes]], Callable[[str, datetime], object]]
UNREADABLE = "unreadable"  # the cause of rows for records that cannot be read


class Collector(ABC):
    """Collects evidence. Enter it by `with`."""

    def __init__(self) -> None:
        self._counts = CopyCounts()
        self._files = ExitStack()

    @abstractmethod
    def write(self, refused: pa.RecordBatch) -> None:
        """Write rows of OUT.refused."""

    @abstractmethod
    def finish(self) -> None:
        """Write the counts of the copies."""

    def sinks(self, sinks: Sinks) -> Sinks:
        """Return sinks that pass the evidence to this collector too."""

        def add_unread(unread: UnreadRecord) -> None:
            sinks.unreadable(unread)
            self.add_unread(unread)

        return sinks._replace(unreadable=add_unread, evidence=self.add)

    def add(self, file: Path, before: int, evidence: Evidence) -> None:
        """Add the evidence about some records. `before`: see Evidence.rows."""
        self.write(evidence.rows(_name(file), before))
        self._counts.add(evidence.counts)

    def add_unread(self, unread: UnreadRecord) -> None:
        """Add a record that cannot be read."""
        position, _, error = unread.unreadable
        decision = Decision("", "deny", UNREADABLE, line=plain(error))
        row = (_name(unread.reader.path), plain(position), "", None, "", decision.rule)
        rest = ("", decision.line, "", None, None, True)
        self.write(batch_of([(*row, *rest)], REFUSED_COLUMNS))

    def __enter__(self) -> Self:
        self._files.enter_context(self._counts)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._files.__exit__(kind, error, trace)


class EvidenceFiles(Collector):
    """The new evidence files of a dataset. They replace the old ones at the end of `with`."""

    def __init__(self, output: Path, sources: Sources, keep: Keep | None = None) -> None:
        """`sources`: a function that returns the name of the source for each copy. `keep`: a
        function that opens an archive of copies. None: no copies are kept."""
        super().__init__()
        self._output, self._sources, self._keep = output, sources, keep

    @cached_property
    def _refused(self) -> RowGroupWriter:
        """It is opened when it is needed. If OUT cannot be written, its message comes first."""
        return self._opened(refused_path(self._output), REFUSED_COLUMNS)

    def _opened(self, path: Path, schema: pa.Schema) -> RowGroupWriter:
        file = self._files.enter_context(Replacement(path, is_named=False))
        return self._files.enter_context(RowGroupWriter(file, schema))

    def write(self, refused: pa.RecordBatch) -> None:
        self._refused.write(refused)

    def finish(self) -> None:
        self.write(batch_of([], REFUSED_COLUMNS))  # without refusals too, there is a file
        policies = self._opened(policies_path(self._output), POLICY_COLUMNS)
        keep = None
        if self._keep:
            archive = Replacement(kept_path(self._output), is_named=False)
            keep = self._keep(self._files.enter_context(archive))
        for sums in self._counts.sums():
            batch = policies_of(sums, self._sources)
            policies.write(batch)
            if keep:
                # Copies that are equal but for their status cannot be told apart by their time.
                urls, moments = (batch[name].to_pylist() for name in ("url", "fetched_at"))
                for url, moment in dict.fromkeys(zip(urls, moments, strict=True)):
                    if moment is not None:
                        keep(url, moment)

    def add_piece(self, path: Path) -> None:
        """Add the evidence about a file of a folder, and remove the piece."""
        for batch in load(path):
            if batch.schema.equals(REFUSED_COLUMNS):
                self.write(batch)
            else:
                self._counts.add(batch)
        path.unlink()


class Piece(Collector):
    """The evidence of one file of a folder, in a temporary file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def __enter__(self) -> Self:
        if is_local(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = self._files.enter_context(self._path.open("wb"))
        return super().__enter__()

    def write(self, refused: pa.RecordBatch) -> None:
        if refused.num_rows:
            pickle.dump(refused, self._file, pickle.HIGHEST_PROTOCOL)

    def finish(self) -> None:
        for sums in self._counts.sums():
            for batch in sums.to_batches():
                pickle.dump(batch, self._file, pickle.HIGHEST_PROTOCOL)


def load(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the batches in the file of a Piece."""
    with path.open("rb") as file:
        while True:
            try:
                yield pickle.load(file)  # noqa: S301  # this job wrote it
            except EOFError:
                return


def _name(path: Path) -> str:
    return without_passwords(str(path))
