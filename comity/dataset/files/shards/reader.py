"""Shards of webdataset and img2dataset: tar files in which the files of a sample are side by side.

    000000000.jpg, 000000000.txt, 000000000.json       one sample, with the key 000000000

A record has the members of the JSON, the key in `__key__`, the text in `text` (in `txt` if the JSON
has a text), and the names of all other files in `__files__`. A new shard has the files of the
permitted samples that are still in `__files__`, and the rest of the record as JSON.

Nothing is unpacked to the disk. Links, devices, absolute names and names with `..` are unreadable,
so no new shard has them."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from comity.dataset.files import formats
from comity.dataset.files.formats import Part
from comity.dataset.records import KEY, Batch, DatasetError, Record, Unreadable, parse_json
from comity.gc_pause import gc_paused
from comity.policies.syntax.printable import printable

FILES = "__files__"
PART = 4 * 2**20  # octets of the shard
MAX_TEXT = 16 * 2**20  # the maximum octets of the JSON and of the text of a sample
MAX_HEAD = 2**20  # the maximum octets of a head, which may have a long name
# A name, as webdataset reads it: the key, and what the file is.
_NAME = re.compile(r"((?:.*/|)[^./][^.]*)\.([^/]*)", re.DOTALL)
_META = re.compile(r"__[^/]*__(/|$)")  # files about the shard, which webdataset leaves out
_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}
_FAILURES = (tarfile.TarError, ValueError, OverflowError, RecursionError, OSError)


class Member(NamedTuple):
    """A file of a sample."""

    name: str
    """Its name in the shard."""
    ending: str
    """The part of the name behind the key, in lower case, e.g. "jpg"."""
    offset: int
    """The offset of its content in the shard."""
    size: int
    """The octets of its content."""
    changed_at: float
    """Its time of change, in seconds since 1970."""


class Sample(NamedTuple):
    """The files of a sample."""

    key: str
    """The key, with the folder of the files in the shard."""
    offset: int
    """The offset at which its first file begins."""
    members: tuple[Member, ...]
    """The files, in their order."""
    error: str = ""
    """The reason why the sample cannot be read. "" if it can be read."""

    def member(self, ending: str) -> Member | None:
        """Return the file with this ending."""
        return next((member for member in self.members if member.ending == ending), None)

    def unreadable(self, error: str) -> Unreadable:
        """Return the sample as unreadable. Its octets stay in the shard."""
        name = printable(self.key)
        return Unreadable(f"sample `{name}` at octet {self.offset}", b"", error)


class _Heads:
    """An open shard that reads no more than heads."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        if size > MAX_HEAD:
            raise tarfile.ReadError(f"a head of {size} octets")
        return self._file.read(size)


def samples(file: IO[bytes], size: int, path: Path) -> Iterator[Sample | Unreadable]:
    """Yield the samples of an open shard, and its unreadable places.

    `size`: the octets of the shard. DatasetError: it is not a tar file."""
    sample: Sample | None = None
    for found in _members(file, size, path):
        if isinstance(found, Unreadable):
            yield found
            continue
        key, start, member = found
        if sample and sample.key == key:
            repeated = sample.member(member.ending)
            error = sample.error or (f"`{printable(member.name)}` is there twice" * bool(repeated))
            sample = sample._replace(members=(*sample.members, member), error=error)
        else:
            if sample:
                yield sample
            sample = Sample(key, start, (member,))
        if member.offset + member.size > size:
            sample = sample._replace(error=f"`{printable(member.name)}` is cut off")
    if sample:
        yield sample


def _members(
    file: IO[bytes], size: int, path: Path
) -> Iterator[tuple[str, int, Member] | Unreadable]:
    """Yield the files of samples, each with its key and its offset, and the unreadable places."""
    heads: Any = _Heads(file)
    end = -1
    try:
        archive = tarfile.open(fileobj=heads, mode="r:")  # noqa: SIM115  # `file` is closed
    except _FAILURES as error:
        raise DatasetError(f"{path} is not a tar file: at octet 0: {error}") from None
    try:
        while (head := archive.next()) is not None:
            setattr(archive, "members", [])  # noqa: B010  # tarfile would keep all heads
            if head.offset <= end:
                raise tarfile.ReadError("the size of a file is invalid")
            end = head.offset
            if not head.isdir() and (found := _member(head)):
                yield found
    except _FAILURES as error:
        yield _rest(archive.offset, str(error))
        return
    file.seek(archive.offset)
    block = file.read(tarfile.BLOCKSIZE)
    if any(block) or len(block) < tarfile.BLOCKSIZE:
        is_cut = len(block) < tarfile.BLOCKSIZE
        yield _rest(archive.offset, "the shard is cut off" if is_cut else "the head is damaged")
        return
    while block := file.read(PART):
        if any(block):
            yield _rest(file.tell() - len(block), "there is something behind the end")
            return


def _rest(offset: int, error: str) -> Unreadable:
    return Unreadable(f"octet {offset} and the rest", b"", error)


def _member(head: tarfile.TarInfo) -> tuple[str, int, Member] | Unreadable | None:
    """Return a file with its key and its offset. None if webdataset leaves it out."""
    name, error = head.name, ""
    if head.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or head.sparse is not None:
        error = f"is {_KINDS.get(head.type, 'not a plain file')}"
    elif not name.isprintable() and any("\ud800" <= char <= "\udfff" for char in name):
        error = "has a name that is not UTF-8"
    elif name.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", name):
        error = "has a name outside the folder of the shard"
    if error:
        return Unreadable(f"file at octet {head.offset}", b"", f"`{printable(name)}` {error}")
    match = _NAME.fullmatch(name)
    if match is None or _META.search(match[1]):
        return None
    member = Member(name, match[2].lower(), head.offset_data, head.size, head.mtime)
    return match[1], head.offset, member


class Reader(formats.Reader):
    """A shard. Its parts are some samples."""

    def may_mention(self, key: str, tags: Sequence[str] | None = None) -> bool:
        return True

    def parts(self) -> Iterator[Part]:
        found: list[Sample | Unreadable] = []
        done = size = 0
        with self.path.open("rb") as file:
            for sample in samples(file, self.size, self.path):
                found.append(sample)
                if isinstance(sample, Sample):
                    size += sum(member.size for member in sample.members)
                if size >= PART:
                    octets = min(size, self.size - done)
                    yield Part(tuple(found), octets)
                    done, size, found = done + octets, 0, []
        yield Part(tuple(found), self.size - done)

    def read(self, part: Part, fields: Sequence[str] | None = None) -> Iterator[Batch]:
        with self.path.open("rb") as file, gc_paused():
            yield [
                sample if isinstance(sample, Unreadable) else self.record(file, sample)
                for sample in part.position
            ]

    def record(self, file: IO[bytes], sample: Sample) -> Record | Unreadable:
        """Return the record of a sample. `file`: the open shard."""
        if sample.error:
            return sample.unreadable(sample.error)
        try:
            return record_of(file, sample)
        except (ValueError, RecursionError) as error:
            return sample.unreadable(str(error))


def content(file: IO[bytes], member: Member, limit: int) -> bytes:
    """Return the content of a file. ValueError: it has more octets than `limit`, or is cut off."""
    if member.size > limit:
        raise ValueError(f"`{printable(member.name)}` has more than {limit} octets")
    file.seek(member.offset)
    octets = file.read(member.size)
    if len(octets) < member.size:
        raise ValueError(f"`{printable(member.name)}` is cut off")
    return octets


def record_of(file: IO[bytes], sample: Sample) -> Record:
    """Return the record of a sample. ValueError: it cannot be read."""
    described, text = sample.member("json"), sample.member("txt")
    fields: Any = {}
    if described:
        try:
            fields = parse_json(content(file, described, MAX_TEXT))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"`{printable(described.name)}` is no JSON: {error}") from None
        if not isinstance(fields, dict):
            raise ValueError(f"`{printable(described.name)}` is no object")
    record = {KEY: sample.key, **fields}
    if text:
        record[_text_field(fields)] = content(file, text, MAX_TEXT).decode()
    others = [member.name for member in sample.members if member not in (described, text)]
    record[FILES] = others
    if name := next((name for name in (KEY, FILES, "txt") if name in fields), ""):
        raise ValueError(f"its JSON has a member `{name}`")
    return record


def _text_field(fields: Record) -> str:
    """Return the field for the content of the .txt file."""
    return "txt" if "text" in fields else "text"
