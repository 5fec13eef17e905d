"""The base of the readers of WARC files, which read WACZ files too."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from comity.dataset.files import formats
from comity.dataset.files.formats import Part
from comity.dataset.files.warc import wacz
from comity.dataset.files.warc.records import PACKED, Damage, member_at
from comity.dataset.records import Batch, DatasetError

# The position of the last part of a WACZ file: the problems of the file as a whole.
PROBLEMS = "problems"


class WarcReader(formats.Reader):
    """A reader of the WARC records in a file. It can be pickled."""

    @abstractmethod
    def record_parts(self) -> Iterator[Part]:
        """Yield the parts with records."""

    @abstractmethod
    def read_records(self, part: Part, fields: Sequence[str] | None) -> Iterator[Batch]:
        """Yield the records of a part."""

    def parts(self) -> Iterator[Part]:
        if not wacz.is_wacz(self.path):
            yield from self.record_parts()
            return
        left = self.size
        for part in self.record_parts():
            octets = min(part.octets, left)  # unpacked members have more octets than the file
            left -= octets
            yield part._replace(octets=octets)
        yield Part(PROBLEMS, left)

    def read(self, part: Part, fields: Sequence[str] | None = None) -> Iterator[Batch]:
        if part.position != PROBLEMS:
            yield from self.read_records(part, fields)
            return
        yield [*wacz.findings(self.path)]

    def may_mention(self, key: str, tags: Sequence[str] | None = None) -> bool:
        return True


def check_packed(path: Path, file: IO[bytes], damage: Damage) -> None:
    """Raise a DatasetError if the records are in one gzip member. They cannot be found then."""
    if damage.error == PACKED:
        name = ": ".join(filter(None, (str(path), member_at(file, damage.offset))))
        raise DatasetError(
            f"{name} is packed as a whole, its records cannot be found: gunzip it first"
        )
