"""WACZ files: zip files that contain WARC files (https://specs.webrecorder.net/wacz/1.1.1/).

    open_warc(path)         opens a WARC file, or the WARC files in a WACZ file as one file
    findings(path)          yields the problems of a WACZ file as a whole

No member is unpacked to the disk. Octets of a stored member are read at their place in the zip
file. A compressed member is unpacked from its beginning on, and only forwards as a rule."""

from __future__ import annotations

import hashlib
import io
import json
import re
import stat
import struct
import zipfile
import zlib
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from comity.bounded import Bounded
from comity.dataset.files.warc.records import BUFFER, GZIP, WarcFiles, WarcSpan, looks_compressed
from comity.dataset.records import DatasetError, Unreadable
from comity.policies.syntax.printable import printable

ENDING = ".wacz"
DESCRIPTION = "datapackage.json"
# Endings of members that have, or may have, WARC records
CARRIERS = (".warc", ".warc.gz", ".arc", ".arc.gz", ENDING)
CHUNK = 2**18  # octets that are read or unpacked at a time
KEPT = 8  # unpacked chunks that are kept, because readers go back a little between two records
MAX_DESCRIPTION = 64 * 2**20  # octets of datapackage.json that are read
# Deflate stores at most 1,032 octets in one octet. A longer size is false.
MAX_RATIO = 1032
STEP = 4 * 2**20  # octets between two saved states of unpacking, at first
MAX_STATES = 64  # saved states of a member; each takes about 45 KB

# APPNOTE.TXT section-4.3.7: the local file header
_LOCAL = struct.Struct("<4s22xHH")
_SIGNATURE = b"PK\x03\x04"
_ENCRYPTED = 0x1 | 0x40 | 0x2000  # section-4.4.4: bits 0, 6 and 13
_STORED, _DEFLATED = 0, 8  # section-4.4.5
_HASH = re.compile(r"(sha256|md5):([0-9a-fA-F]+)")
# The errors of zipfile for damaged files
_ERRORS = (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, EOFError)


class Member(NamedTuple):
    """A readable member of the zip file."""

    name: str
    """The printable name of the member."""
    data: int
    """The offset of its octets in the zip file."""
    packed: int
    """The number of its octets in the zip file."""
    size: int
    """The number of its octets when unpacked."""
    is_deflated: bool
    """True if it is compressed."""
    crc: int
    """The CRC-32 of the unpacked octets, as the zip file states it."""


class _Contents(NamedTuple):
    """The list of the members in a zip file."""

    members: dict[str, Member]
    """All members that can be read, by name. Of several members with one name, the last."""
    warcs: list[Member]
    """The WARC files, in the order of the zip file."""
    problems: list[Unreadable]
    """The members that cannot be read, and names that occur twice."""


def open_warc(path: Path) -> IO[bytes]:
    """Open a WARC file, or the WARC files in a WACZ file.

    DatasetError: the WACZ file has no readable list of members. OSError: it cannot be opened."""
    file = path.open("rb", BUFFER)
    if not is_wacz(path):
        return file
    try:
        return _open_members(file, path, _contents(file, path).warcs)
    except BaseException:
        file.close()
        raise


def is_wacz(path: Path) -> bool:
    """Return True if a file is a WACZ file, by its name."""
    return path.name.lower().endswith(ENDING)


def findings(path: Path) -> Iterator[Unreadable]:
    """Yield the problems of a WACZ file beside those of its records.

    These are members that cannot be read, and WARC files that differ from their checksum in the
    zip file or from their hash in datapackage.json. All WARC files are read for it."""
    with path.open("rb", BUFFER) as file:
        contents = _contents(file, path)
        yield from contents.problems
        described, problems = _described(file, path, contents)
        yield from problems
        for member in contents.warcs:
            for error in _differences(file, path, member, described.get(member.name, "")):
                yield Unreadable(member.name, b"", error)


def _contents(file: IO[bytes], path: Path) -> _Contents:
    try:
        with zipfile.ZipFile(file) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
    except _ERRORS as error:
        raise DatasetError(
            f"{path} is damaged, or cut off while it was written: its list of members cannot be"
            f" read ({printable(str(error))}); `zip -FF {path} --out repaired.wacz` may repair it"
        ) from None
    size = file.seek(0, io.SEEK_END)
    contents, end = _Contents({}, [], []), 0
    counts = Counter(entry.filename for entry in entries)
    for entry in entries:
        name = printable(entry.filename)
        member = _member(file, entry, name, end, size)
        if isinstance(member, Member):
            end = member.data + member.packed
            contents.members[name] = member
            if _is_warc(name):
                contents.warcs.append(member)
        elif name == DESCRIPTION or name.lower().endswith(CARRIERS):
            contents.problems.append(Unreadable(name, b"", member))
    contents.problems.extend(
        Unreadable(printable(name), b"", "several members have this name")
        for name, count in counts.items()
        if count > 1
    )
    if not any(_is_warc(name) for name in counts):
        contents.problems.append(Unreadable(path.name, b"", "it contains no WARC file"))
    return contents


def _member(
    file: IO[bytes], entry: zipfile.ZipInfo, name: str, start: int, size: int
) -> Member | str:
    """Return a member, or the reason why it cannot be read.

    `start`: the end of the member before it. `size`: the size of the zip file."""
    if problem := _unread(entry, name.lower()):
        return problem
    file.seek(max(0, entry.header_offset))
    header = file.read(_LOCAL.size)
    if len(header) < _LOCAL.size or not header.startswith(_SIGNATURE):
        return "no member begins at its place in the zip file"
    _, name_length, extra_length = _LOCAL.unpack(header)
    data = entry.header_offset + _LOCAL.size + name_length + extra_length
    if entry.header_offset < start:
        return "its octets are those of another member too"
    if data + entry.compress_size > size:
        return "the file ends within it"
    is_deflated = entry.compress_type == _DEFLATED
    return Member(name, data, entry.compress_size, entry.file_size, is_deflated, entry.CRC)


def _unread(entry: zipfile.ZipInfo, name: str) -> str:
    """Return the reason why a member is not read. "" if it can be read."""
    if entry.flag_bits & _ENCRYPTED:
        return "it is encrypted: decrypt the file first"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "it is a symbolic link, which is not followed"
    if name.endswith((".arc", ".arc.gz")):
        return "ARC files cannot be read: convert it with `warcio recompress`"
    if name.endswith(ENDING):
        return "a WACZ file within a WACZ file: unzip it, and name it as another input"
    if entry.compress_type not in (_STORED, _DEFLATED):
        return f"its compression method {entry.compress_type} is not supported: store it"
    if entry.compress_type == _STORED and entry.file_size != entry.compress_size:
        return "it is stored, but its two sizes differ"
    if entry.file_size > MAX_RATIO * (entry.compress_size + 1):
        return "so few octets cannot be unpacked to its size"
    return ""


# Octets


def _open_members(file: IO[bytes], path: Path, members: Sequence[Member]) -> WarcFiles:
    spans: list[WarcSpan] = []
    start = 0
    raw = _Members(file, path, members)
    for member in members:
        raw.starts.append(start)
        raw.seek(start)
        beginning = raw.read(len(GZIP) + 2) or b""
        is_compressed = looks_compressed(beginning, member.name)
        spans.append(WarcSpan(member.name, start, start + member.size, is_compressed))
        start += member.size + 1
    raw.seek(0)
    return WarcFiles(raw, spans)


class _Members(io.RawIOBase):
    """The octets of several members one after the other.

    Between two members is one offset without an octet, so that no record continues in the next
    member."""

    def __init__(self, file: IO[bytes], path: Path, members: Sequence[Member]) -> None:
        self.starts: list[int] = []  # the offset of each member
        self._file, self._members, self._position = file, members, 0
        self._octets = [_octets(file, path, member) for member in members]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        end = self.starts[-1] + self._members[len(self.starts) - 1].size if self.starts else 0
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: end}[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        index = bisect_right(self.starts, self._position) - 1
        if index < 0:
            return 0
        octets = self._octets[index].read(self._position - self.starts[index], len(buffer))
        buffer[: len(octets)] = octets
        self._position += len(octets)
        return len(octets)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _Stored:
    """The octets of a stored member."""

    def __init__(self, file: IO[bytes], member: Member) -> None:
        self._file, self._member = file, member

    def read(self, offset: int, length: int) -> bytes:
        """Return at most `length` octets from an offset on. b"" behind the end."""
        length = min(length, self._member.size - offset)
        if length <= 0:
            return b""
        self._file.seek(self._member.data + offset)
        return self._file.read(length)


class _State(NamedTuple):
    """The state of unpacking at an offset."""

    offset: int
    """The number of octets that have been unpacked."""
    consumed: int
    """The number of octets of the member that have been read."""
    inflater: Any
    """The decompression object. It must be copied before it is used."""


class _States:
    """Saved states of a member, from which unpacking can go on."""

    def __init__(self) -> None:
        self._step = STEP
        self._states = [_State(0, 0, zlib.decompressobj(-zlib.MAX_WBITS))]

    def save(self, offset: int, consumed: int, inflater: Any) -> None:
        """Save a state if the last one is far away."""
        if offset >= self._states[-1].offset + self._step:
            states = [*self._states, _State(offset, consumed, inflater.copy())]
            if len(states) > MAX_STATES:
                states, self._step = states[::2], 2 * self._step
            self._states = states

    def before(self, offset: int) -> _State:
        """Return the last saved state at or before an offset."""
        states = self._states
        return states[bisect_right(states, offset, key=lambda state: state.offset) - 1]


# The states of the members that this process reads. Parts of a file are read one after the other,
# and each opens the file anew.
_states: Bounded[tuple[str, Member], _States] = Bounded(4)


class _Deflated:
    """The octets of a compressed member."""

    def __init__(self, file: IO[bytes], path: Path, member: Member) -> None:
        self._file, self._member = file, member
        self._states = _states.get((str(path), member)) or _States()
        _states[str(path), member] = self._states
        self._go_on(self._states.before(0))

    def _go_on(self, state: _State) -> None:
        self._offset, self._consumed = state.offset, state.consumed
        self._inflater = state.inflater.copy()
        self._chunks: deque[tuple[int, bytes]] = deque(maxlen=KEPT)  # with their offsets

    def read(self, offset: int, length: int) -> bytes:
        """Return at most `length` octets from an offset on. b"" behind the end.

        The octets end where they cannot be unpacked."""
        state = self._states.before(offset)
        first = self._chunks[0][0] if self._chunks else self._offset
        if offset < first or state.offset > self._offset:
            self._go_on(state)
        while offset >= self._offset:
            if not self._unpack():
                return b""
        start, chunk = next(one for one in reversed(self._chunks) if one[0] <= offset)
        return chunk[offset - start :][:length]

    def _unpack(self) -> bool:
        """Unpack the next chunk. Return False if there is none."""
        self._states.save(self._offset, self._consumed, self._inflater)
        left = self._member.size - self._offset
        while left > 0 and not self._inflater.eof:
            self._file.seek(self._member.data + self._consumed)
            packed = self._file.read(min(CHUNK, self._member.packed - self._consumed))
            try:
                chunk = self._inflater.decompress(packed, min(CHUNK, left))
            except zlib.error:
                return False
            self._consumed += len(packed) - len(self._inflater.unconsumed_tail)
            if chunk:
                self._chunks.append((self._offset, chunk))
                self._offset += len(chunk)
                return True
            if not packed:
                return False
        return False


def _octets(file: IO[bytes], path: Path, member: Member) -> _Stored | _Deflated:
    return _Deflated(file, path, member) if member.is_deflated else _Stored(file, member)


# Hashes


def _described(
    file: IO[bytes], path: Path, contents: _Contents
) -> tuple[dict[str, str], list[Unreadable]]:
    """Return the hash of each member that datapackage.json names, and the problems with it."""
    member = contents.members.get(DESCRIPTION)
    if member is None:
        is_named = any(problem.position == DESCRIPTION for problem in contents.problems)
        problem = "it is not in the file: members may be missing"
        return {}, [] if is_named else [Unreadable(DESCRIPTION, b"", problem)]
    octets = _octets(file, path, member)
    whole = b"".join(_pieces(octets, min(member.size, MAX_DESCRIPTION)))
    try:
        parsed = json.loads(whole)
        hashes = {
            printable(resource["path"]): resource.get("hash") or ""
            for resource in parsed["resources"]
        }
        if not all(isinstance(value, str) for value in hashes.values()):
            raise TypeError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}, [Unreadable(DESCRIPTION, b"", "it is not a description of a WACZ file")]
    known = {problem.position for problem in contents.problems}
    return hashes, [
        Unreadable(name, b"", f"{DESCRIPTION} names it, but it is not in the file")
        for name in hashes
        if _is_warc(name) and name not in contents.members and name not in known
    ]


def _is_warc(name: str) -> bool:
    return name.lower().endswith(CARRIERS[:2])


def _differences(file: IO[bytes], path: Path, member: Member, stated: str) -> Iterator[str]:
    """Yield the problems of a WARC file as a whole. `stated`: its hash in datapackage.json."""
    match = _HASH.fullmatch(stated)
    digest = hashlib.new(match[1], usedforsecurity=False) if match else None
    crc, size = 0, 0
    for piece in _pieces(_octets(file, path, member), member.size):
        crc, size = zlib.crc32(piece, crc), size + len(piece)
        if digest:
            digest.update(piece)
    if size < member.size:
        yield f"it cannot be unpacked after octet {size}"
    elif crc != member.crc:
        yield "it differs from its checksum in the zip file"
    elif match and digest and digest.hexdigest() != match[2].lower():
        yield f"it differs from its hash in {DESCRIPTION}: it was changed after it was packed"


def _pieces(octets: _Stored | _Deflated, size: int) -> Iterator[bytes]:
    offset = 0
    while offset < size:
        piece = octets.read(offset, min(CHUNK, size - offset))
        if not piece:
            return
        yield piece
        offset += len(piece)
