"""The evidence files of a dataset while they are written.

with EvidenceFiles(output, sources) as evidence:    replaces both files at the end
    evidence.add(file, before, batch)
with Piece(path) as piece:                          the evidence of one file of a folder
    piece.add(file, before, batch)
evidence.add_piece(path)"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import pyarrow as pa

from comity.dataset.evidence.decisions import Decision
from comity.dataset.evidence.schema import (
    POLICY_COLUMNS,
    REFUSED_COLUMNS,
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
        self.write(evidence.rows(str(file), before))
        self._counts.add(evidence.counts)

    def add_unread(self, unread: UnreadRecord) -> None:
        """Add a record that cannot be read."""
        position, _, error = unread.unreadable
        decision = Decision("", "deny", UNREADABLE, plain(error))
        row = (str(unread.reader.path), plain(position), "", None, "", decision.rule)
        rest = (decision.line, "", None, None, True)
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

    def __init__(self, output: Path, sources: Sources) -> None:
        """`sources`: a function that returns the name of the source for each copy."""
        super().__init__()
        self._output, self._sources = output, sources

    def __enter__(self) -> Self:
        with ExitStack() as files:
            policies, refused = (
                files.enter_context(Replacement(path, is_named=False))
                for path in (policies_path(self._output), refused_path(self._output))
            )
            self._policies = files.enter_context(RowGroupWriter(policies, POLICY_COLUMNS))
            self._refused = files.enter_context(RowGroupWriter(refused, REFUSED_COLUMNS))
            self._files.push(files.pop_all())
        return super().__enter__()

    def write(self, refused: pa.RecordBatch) -> None:
        self._refused.write(refused)

    def finish(self) -> None:
        for sums in self._counts.sums():
            self._policies.write(policies_of(sums, self._sources))

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
