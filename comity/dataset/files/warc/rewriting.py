"""Rewrite a WARC file without the items that must be removed.

All other records are copied octet by octet, in a compressed file as whole gzip members. If all
items of an answer are removed, the answer and its request are removed too. If the item directly
before an answer is removed and a later item of this answer stays, the later item is moved before
the answer. Records that belong to no answer stay: `warcinfo` and policy files."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from shutil import copyfileobj
from types import TracebackType
from typing import IO, Self, cast

from comity.dataset.files.replacement import Replacement
from comity.dataset.files.warc.items import (
    MAX_BLOCK,
    ItemPosition,
    belongs_to,
    is_item,
    item_of,
    key,
    name_of,
)
from comity.dataset.files.warc.records import BUFFER, Damage, WarcRecord, is_compressed, records
from comity.dataset.records import DatasetError, PositionedRecord, Record

CHUNK = 2**20  # octets that are copied at a time
STAYS, GOES, ASIDE = "stays", "goes", "aside"


class _Positions:
    """The positions of records with one fate, in the order of the file. Each takes 16 octets."""

    def __init__(self) -> None:
        self.offsets = array("Q")
        self.answers = array("Q")

    def add(self, position: ItemPosition) -> None:
        self.offsets.append(position.offset)
        self.answers.append(position.answer)


class _Fates:
    """The fates of the records of a file: STAYS, GOES or ASIDE. "" for an unreadable item."""

    def __init__(self, stays: _Positions, goes: _Positions, aside: _Positions) -> None:
        self._offsets = {STAYS: stays.offsets, GOES: goes.offsets, ASIDE: aside.offsets}
        self._removed, self._aside = (
            array("Q", sorted(goes.answers)),
            array("Q", sorted(aside.answers)),
        )
        # Answer with items that stay and others that do not -> offset of the first that stays.
        self.first: dict[int, int] = {}
        for offset, answer in zip(stays.offsets, stays.answers, strict=True):
            if answer and (_has(self._removed, answer) or _has(self._aside, answer)):
                self.first.setdefault(answer, offset)

    def fate(self, record: WarcRecord) -> str:
        if is_item(record.fields):
            for fate, offsets in self._offsets.items():
                if _has(offsets, record.offset):
                    return fate
            if isinstance(item_of(record), Damage):
                return ""
        answer = key(belongs_to(record))
        if not answer or answer in self.first:
            return STAYS
        return (
            GOES if _has(self._removed, answer) else ASIDE if _has(self._aside, answer) else STAYS
        )


def _has(numbers: array[int], number: int) -> bool:
    """Return True if a number is among these sorted numbers."""
    position = bisect_left(numbers, number)
    return position < len(numbers) and numbers[position] == number


class Rewriter:
    """A new version of a file, which replaces the file at the end of `with`.

    The caller must pass each record of the Reader to `write` or `leave_out`. Records to keep aside
    are appended to FILE.unreadable.warc (.gz) before they are removed from the file."""

    def __init__(self, path: Path, aside: Path | None = None) -> None:
        """`aside`: the file for the records to keep aside. None: FILE.unreadable.warc (.gz)."""
        self.path = path
        ending = ".warc.gz" if path.name.lower().endswith(".gz") else ".warc"
        self.aside = aside or path.with_name(f"{path.name}.unreadable{ending}")
        self._stays, self._goes, self._aside = _Positions(), _Positions(), _Positions()
        self._files = ExitStack()
        self._is_whole = False

    def __enter__(self) -> Self:
        self._output = self._files.enter_context(Replacement(self.path))
        self._state = self._file_state()
        return self

    def _file_state(self) -> tuple[int, int]:
        stat = self.path.stat()
        return stat.st_size, stat.st_mtime_ns

    @staticmethod
    def encode(staying: Sequence[Record]) -> list[ItemPosition]:
        return [cast(PositionedRecord, record).position for record in staying]

    def write(self, encoded: list[ItemPosition]) -> None:
        """Note the items that stay."""
        for position in encoded:
            self._stays.add(position)

    def leave_out(self, position: ItemPosition, *, keep_aside: bool) -> None:
        (self._aside if keep_aside else self._goes).add(position)

    def copy(self) -> None:
        """Copy the records that stay to the new file, and those to keep aside to the side file.

        DatasetError: the file has changed since the beginning of `with`."""
        fates, moved = _Fates(self._stays, self._goes, self._aside), set()
        with self.path.open("rb", BUFFER) as file, self.path.open("rb", BUFFER) as lookup:
            aside = (
                self._open_aside(compressed=is_compressed(file)) if self._aside.offsets else None
            )
            for record in records(
                file, 0, self._state[0], lambda fields: MAX_BLOCK if is_item(fields) else 0
            ):
                if isinstance(record, Damage) or record.offset in moved:
                    continue  # the caller writes damages to a side file
                fate = fates.fate(record)
                if fate == STAYS:
                    first = fates.first.get(key(name_of(record)), 0)
                    if first > record.offset and first not in moved:
                        moved.add(first)
                        item = next(records(lookup, first, first + 1))
                        _copy(lookup, item.offset, item.end, self._output)
                    _copy(lookup, record.offset, record.end, self._output)
                elif fate == ASIDE and aside:
                    _copy(lookup, record.offset, record.end, aside)
        if self._file_state() != self._state:
            raise DatasetError(
                f"{self.path} was written to meanwhile: expire it when that has ended"
            )
        self._is_whole = True

    def _open_aside(self, *, compressed: bool) -> IO[bytes]:
        self.aside.parent.mkdir(parents=True, exist_ok=True)
        aside = self._files.enter_context(Replacement(self.aside, is_named=False))
        if self.aside.exists():
            with self.aside.open("rb") as before:
                if before.read(1) and is_compressed(before) is not compressed:
                    raise DatasetError(
                        f"of {self.path} and {self.aside} one is compressed:"
                        " move the second one away"
                    )
                before.seek(0)
                copyfileobj(before, aside, CHUNK)
        return aside

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert error or self._is_whole
        self._files.__exit__(kind, error, trace)  # replaces the file for records kept aside first


def _copy(source: IO[bytes], start: int, end: int, output: IO[bytes]) -> None:
    source.seek(start)
    for offset in range(start, end, CHUNK):
        output.write(source.read(min(CHUNK, end - offset)))
