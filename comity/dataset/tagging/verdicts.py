"""Verdicts on the rows of a table that are made before the rows are tagged.

    Verdicts(rows, indices, answers)        the verdicts on some rows
    JudgedReader(reader, stretches, ...)    a reader that gives each row its verdict

An answer is the tag of a row, or None if the row must be kept apart. Rows with equal answers share
one. A row without a verdict is judged when it is tagged. A table of columns has its answers as an
Arrow array, and JSON Lines have them as pickled objects, so each answer is encoded once."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from comity.dataset.files import formats
from comity.dataset.files.formats import Part
from comity.dataset.files.places import is_local, stored_version
from comity.dataset.records import Batch, DatasetError, Unreadable
from comity.dataset.tagging.captured import JudgedRecord
from comity.dataset.tagging.tag_changes import Tag

Answer = Tag | None


class AnswerForm(Protocol):
    """The form of the answers for one kind of reader."""

    def encode(self, answers: Sequence[Answer]) -> Any:
        """Return encoded answers."""

    def join(self, pieces: Sequence[Any]) -> Any:
        """Return the answers of several results of `encode` together."""

    def take(self, encoded: Any, indices: Sequence[int]) -> Any:
        """Return the answers with these indices."""


class PickledAnswers:
    """The answers for records: a list of pickled objects."""

    def encode(self, answers: Sequence[Answer]) -> list[bytes]:
        return [pickle.dumps(answer, pickle.HIGHEST_PROTOCOL) for answer in answers]

    def join(self, pieces: Sequence[list[bytes]]) -> list[bytes]:
        return [*chain.from_iterable(pieces)]

    def take(self, encoded: list[bytes], indices: Sequence[int]) -> list[bytes]:
        return [encoded[index] for index in indices]


PICKLED = PickledAnswers()


class Verdicts(NamedTuple):
    """The verdicts on some rows of a file. They can be pickled."""

    rows: list[int]
    """The numbers of the rows in the file."""
    indices: list[int]
    """The index in `answers` for each row."""
    answers: Any
    """The encoded answers. None if there are no rows."""


NONE = Verdicts([], [], None)


def join(several: Sequence[Verdicts], form: AnswerForm) -> Verdicts:
    """Return the verdicts of several objects together."""
    if not several:
        return NONE
    rows: list[int] = []
    indices: list[int] = []
    start = 0
    for verdicts in several:
        rows += verdicts.rows
        indices += [start + index for index in verdicts.indices]
        start += len(verdicts.answers)
    return Verdicts(rows, indices, form.join([verdicts.answers for verdicts in several]))


class Stretch(NamedTuple):
    """Consecutive parts of a file whose rows are tagged together."""

    first: int
    """The number that is added to the numbers of rows in these parts (see RowPages)."""
    parts: int
    """The number of parts."""


class JudgedReader(formats.Reader):
    """A reader of records that gives each row its verdict. Its parts are stretches.

    A pickled reader reads any part, and finds the parts only if the verdicts are in a file."""

    def __init__(
        self,
        reader: formats.Reader,
        version: object,
        stretches: Sequence[Stretch],
        verdicts: Iterator[Verdicts] | Path,
    ) -> None:
        """`version`: the version of the file when its rows were judged. `verdicts`: those of each
        stretch, or the file that contains them (see `save`)."""
        super().__init__(reader.path)
        self.reader = reader
        self._version, self._stretches, self._verdicts = version, stretches, verdicts

    def __getstate__(self) -> dict[str, Any]:
        is_stream = isinstance(self._verdicts, Iterator)
        return self.__dict__ | ({"_verdicts": None} if is_stream else {})

    def may_mention(self, key: str, tags: Sequence[str] | None = None) -> bool:
        return self.reader.may_mention(key, tags)

    def parts(self) -> Iterator[Part]:
        parts = self.reader.parts()
        verdicts = self._verdicts if isinstance(self._verdicts, Iterator) else load(self._verdicts)
        for stretch, of_stretch in zip(self._stretches, verdicts, strict=False):
            of_file = tuple(islice(parts, stretch.parts))
            octets = sum(part.octets for part in of_file)
            yield Part((of_file, stretch.first, of_stretch), octets)
        if next(parts, None) is not None or version_of(self.path) != self._version:
            raise DatasetError(f"{self.path} has changed while it was read: run the command again")

    def read(self, part: Part, fields: Sequence[str] | None = None) -> Iterator[Batch]:
        parts, number, verdicts = part.position
        index_of = dict(zip(verdicts.rows, verdicts.indices, strict=True))
        last: int | None = None
        answer: Answer = None
        for of_file in parts:
            for batch in self.reader.read(of_file, fields):
                judged: Batch = []
                for row, record in enumerate(batch, number):
                    index = index_of.get(row)
                    if index is None or isinstance(record, Unreadable):
                        judged.append(record)
                        continue
                    if index != last:
                        last, answer = index, pickle.loads(verdicts.answers[index])  # noqa: S301
                    judged.append(JudgedRecord(record, answer))
                number += len(batch)
                yield judged


class JudgedColumns(JudgedReader):
    """A reader of columns that gives each row its verdict, in a further column (see columns_pass).

    A pickled reader is like a pickled JudgedReader."""

    def read_columns(
        self, part: Part, fields: Sequence[str] | None = None
    ) -> Iterator[tuple[Any, int]]:
        # Imported here because pyarrow is installed only where there are columns.
        from comity.dataset.tagging.columns_pass import with_verdicts

        parts, _, verdicts = part.position
        index_of = dict(zip(verdicts.rows, verdicts.indices, strict=True))
        reader: Any = self.reader
        for of_file in parts:
            for batch, number in reader.read_columns(of_file, fields):
                if not isinstance(batch, Unreadable) and index_of:
                    rows = range(number, number + batch.num_rows)
                    batch = with_verdicts(batch, [*map(index_of.get, rows)], verdicts.answers)
                yield batch, number


def save(path: Path, verdicts: Iterable[Verdicts]) -> None:
    """Write verdicts to a new file."""
    if is_local(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for of_stretch in verdicts:
            pickle.dump(of_stretch, file, pickle.HIGHEST_PROTOCOL)


def load(path: Path) -> Iterator[Verdicts]:
    """Yield the verdicts in a file that `save` has written."""
    with path.open("rb") as file:
        while True:
            try:
                verdicts: Verdicts = pickle.load(file)  # noqa: S301  # this job wrote it
            except EOFError:
                return
            yield verdicts


def version_of(path: Path) -> object:
    """Return an object that changes whenever a file changes."""
    if not is_local(path):
        return stored_version(path)
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns
