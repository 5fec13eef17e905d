"""Read the images and other works of samples, because their metadata may refuse a use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, NamedTuple

from comity.dataset.files.shards import reader
from comity.dataset.files.shards.reader import Sample, content
from comity.dataset.files.warc.items import MAX_BLOCK
from comity.dataset.records import Record, Unreadable

# Ending of a file -> its media type. Files with other endings are no works, e.g. labels.
TYPES = {
    **dict.fromkeys(("jpg", "jpeg"), "image/jpeg"),
    **dict.fromkeys(("tif", "tiff"), "image/tiff"),
    **{name: f"image/{name}" for name in ("png", "webp", "gif", "bmp", "avif", "heic", "jxl")},
    "svg": "image/svg+xml",
    **{name: f"video/{name}" for name in ("mp4", "webm")},
    "mov": "video/quicktime",
    "mkv": "video/x-matroska",
    "mp3": "audio/mpeg",
    **{name: f"audio/{name}" for name in ("wav", "flac", "ogg")},
    "m4a": "audio/mp4",
    "pdf": "application/pdf",
}


class Work(NamedTuple):
    """A file of a sample that its site may have rules about."""

    media_type: str
    """Its media type."""
    body: bytes
    """Its content. Empty if it cannot be read."""
    unread: str = ""
    """The reason why it cannot be read. Empty if it can be read."""


class SampleRecord(Record):
    """The record of a sample, with its works."""

    __slots__ = ("works",)

    def __init__(self, record: Record, works: list[Work]) -> None:
        super().__init__(record)
        self.works = works


class WorksReader(reader.Reader):
    """A shard, read with the works of its samples."""

    def record(self, file: IO[bytes], sample: Sample) -> Record | Unreadable:
        record = super().record(file, sample)
        if isinstance(record, Unreadable):
            return record
        return SampleRecord(record, [*_works(file, sample)])


def _works(file: IO[bytes], sample: Sample) -> Iterator[Work]:
    for member in sample.members:
        if media_type := TYPES.get(member.ending.rpartition(".")[2]):
            try:
                yield Work(media_type, content(file, member, MAX_BLOCK))
            except ValueError as error:
                yield Work(media_type, b"", str(error))
