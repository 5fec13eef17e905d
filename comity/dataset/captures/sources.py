"""Sources of captures of policy files: WARC files and folders of files.

    sources_in(path)       the sources that an argument names

A damaged piece raises no error. It is a Damage among the captures. If reading stops at an offset,
it can be continued from there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from comity.dataset.files.places import is_local, stored_version
from comity.dataset.files.warc.items import POLICY, UNREAD
from comity.dataset.files.warc.messages import (
    content_length,
    covers_another,
    has_head,
    is_http,
    message,
    unchunk,
    words,
)
from comity.dataset.files.warc.records import (
    PACKED,
    Damage,
    Fields,
    WarcRecord,
    end_of,
    member_at,
    place_of,
    records,
)
from comity.dataset.files.warc.wacz import findings, is_wacz, open_warc
from comity.dataset.records import DatasetError
from comity.policies import PolicyError
from comity.policies.answers.fetched import Fetched
from comity.policies.formats import WELL_KNOWN
from comity.policies.syntax.content_coding import decoded
from comity.policies.syntax.lines import MAX_BYTES
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_of, resolved, target_of

REDIRECTS = (301, 302, 303, 307, 308)
# Profiles of revisit records; WARC 1.1 section-6.7.
PROFILES = (
    "/revisit/identical-payload-digest",
    "/revisit/server-not-modified",
)
ENDINGS = (".warc", ".warc.gz", ".wacz")
MAX_HEAD = 64 * 2**10  # octets of an HTTP head that are read
# Octets of a record. Chunked and compressed bodies can be a little longer than their content.
MAX_BLOCK = MAX_HEAD + 2 * MAX_BYTES
SCHEMES = ("https", "http")  # for the folder of a site, which is named by a host only

_STATUS = re.compile(rb"HTTP/[0-9.]+ ([1-9][0-9]{2})(?: |$)")


class FileCapture(NamedTuple):
    """A site's answer to a request for one of its files, at a moment."""

    url: str
    """The URL that was requested."""
    answer: Fetched
    """The answer: `fetched_at` is its moment, `body` its decoded content, at most MAX_BYTES."""
    location: str = ""
    """The absolute URL of the redirect's target, or with `repeats`, of the repeated capture. Empty
    for other captures."""
    repeats: datetime | None = None
    """The moment of an earlier capture, if this capture repeats its content (WARC revisit). None:
    this capture has content itself."""
    is_unread: bool = False
    """True if there was an answer that cannot be read."""


class Elsewhere(NamedTuple):
    """A capture of a URL that is not known as a policy file.

    Policy files may still redirect or refer to it."""

    url: str
    """The URL that was requested."""


class SourceEntry(NamedTuple):
    """A capture, or a piece of the source without one, and its position in the source."""

    offset: int
    """The offset at which the entry begins, in octets."""
    end: int
    """The offset at which the next entry begins."""
    content: FileCapture | Elsewhere | Damage


class CaptureSource(Protocol):
    """A file or folder of captures. OSError: it cannot be read."""

    name: str
    """The unique name of the source, as the operator knows it."""

    @property
    def version(self) -> str:
        """A text that differs after any change of the source."""

    @property
    def size(self) -> int:
        """The size in the unit of its offsets, usually octets."""

    def read(self, start: int) -> Iterator[SourceEntry]:
        """Yield the entries from an offset on."""

    def read_at(self, offset: int) -> FileCapture | None:
        """Return the capture at the offset of an Elsewhere. None if it is no longer there."""


def sources_in(path: Path) -> Iterator[CaptureSource]:
    """Yield the sources of a WARC file or of a folder.

    The sources of a folder are its WARC files, and its subfolders for sites. The name of such a
    subfolder is the host of the site.

    PolicyError, with the remedy: the path is no source."""
    try:
        if path.is_dir():
            yield from _in_folder(path, is_named=True)
        elif path.name.lower().endswith(ENDINGS):
            with path.open("rb"):
                yield WarcSource(path)
        elif not path.exists():
            raise PolicyError(
                f"--policies {path}: there is no such file:"
                " name WARC files, folders or a policy store"
            )
        else:
            raise PolicyError(
                f"--policies {path}: unknown format of captures:"
                " write a name that ends in .warc, .warc.gz or .wacz"
            )
    except OSError as error:
        raise PolicyError(
            f"--policies {path}: it cannot be read: {error.strerror or error}"
        ) from None
    except PolicyError:
        raise
    except Exception as error:
        if is_local(path):
            raise
        # The library of an object store may raise anything.
        raise PolicyError(f"--policies {path}: it cannot be read: {error}") from None


def _in_folder(folder: Path, *, is_named: bool) -> Iterator[CaptureSource]:
    """Yield the sources in a folder.

    `is_named`: True if the operator wrote the path of the folder. Then a folder without captures is
    an error."""
    if any((folder / path.lstrip("/")).is_file() for path in WELL_KNOWN):
        host = folder.absolute().name
        origins = tuple(filter(None, (_origin(f"{scheme}://{host}") for scheme in SCHEMES)))
        if not origins or not ("." in host or host.startswith("localhost")):
            raise PolicyError(
                f"--policies {folder}: the name of this folder is not the host of its policy files:"
                " rename it, e.g. to example.com"
            )
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            yield FileSource(file, tuple(_urls(file.relative_to(folder).as_posix(), origins)))
        return
    is_empty = True
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        for source in _in_folder(entry, is_named=False) if entry.is_dir() else _in_file(entry):
            is_empty = False
            yield source
    if is_named and is_empty:
        raise PolicyError(
            f"--policies {folder}: no captures are in this folder: name a folder of WARC files, or"
            " one with a folder of policy files for each host, named by the host"
        )


def _in_file(path: Path) -> Iterator[CaptureSource]:
    if path.name.lower().endswith(ENDINGS):
        yield WarcSource(path)


def _urls(name: str, origins: tuple[str, ...]) -> Iterator[str]:
    """Yield the possible URLs of a file in the folder of a site.

    `name`: the path of the file in the folder of the site. A file of another host is in a subfolder
    with the name of that host."""
    for origin in origins:
        yield f"{origin}/{name}"
    host, slash, path = name.partition("/")
    if slash and "." in host[1:] and f"/{name}" not in WELL_KNOWN:
        yield from (
            f"{origin}/{path}" for scheme in SCHEMES if (origin := _origin(f"{scheme}://{host}"))
        )


def _origin(url: str) -> str:
    try:
        return origin_of(url)
    except ValueError:
        return ""


class FileSource:
    """A policy file on the disk. It counts as fetched at its last modification."""

    def __init__(self, path: Path, urls: tuple[str, ...]) -> None:
        """`urls`: the possible URLs of the file. Offsets of this source are indices of `urls`."""
        self.name = str(path.absolute())
        self.size = len(urls)
        self._path = path
        self._urls = urls

    @property
    def version(self) -> str:
        return _version(self._path)

    def read(self, start: int) -> Iterator[SourceEntry]:
        answer = self._answer()
        for number, url in enumerate(self._urls[start:], start):
            content: FileCapture | Elsewhere = (
                FileCapture(url, answer) if _is_well_known(url) else Elsewhere(url)
            )
            yield SourceEntry(number, number + 1, content)

    def read_at(self, offset: int) -> FileCapture | None:
        return FileCapture(self._urls[offset], self._answer())

    def _answer(self) -> Fetched:
        with self._path.open("rb") as file:
            body = file.read(MAX_BYTES + 1)
        changed = datetime.fromtimestamp(self._path.stat().st_mtime, UTC)
        return Fetched(
            status=200, body=body[:MAX_BYTES], fetched_at=changed, oversized=len(body) > MAX_BYTES
        )


def _version(path: Path) -> str:
    if not is_local(path):
        return stored_version(path)
    stat = path.stat()
    return f"{stat.st_size} {stat.st_mtime_ns}"


def _is_well_known(url: str) -> bool:
    return target_of(url) in WELL_KNOWN


class WarcSource:
    """A WARC or WACZ file from Common Crawl, another archive or comity."""

    def __init__(self, path: Path) -> None:
        self.name = str(path.absolute())
        self._path = path

    @property
    def version(self) -> str:
        return _version(self._path)

    @cached_property
    def size(self) -> int:
        with self._open() as file:
            return end_of(file)

    def _open(self) -> IO[bytes]:
        try:
            return open_warc(self._path)
        except DatasetError as error:
            raise PolicyError(f"--policies {error}") from None

    def read(self, start: int) -> Iterator[SourceEntry]:
        with self._open() as file:
            for record in records(file, start, self.size, _block_limit):
                if isinstance(record, Damage):
                    if record.error == PACKED:
                        place = ": ".join(
                            filter(None, (str(self._path), member_at(file, record.offset)))
                        )
                        raise PolicyError(
                            f"--policies {place}: it is packed as a whole: gunzip it first"
                        )
                    if is_wacz(self._path):
                        place = place_of(file, record.offset)
                        record = record._replace(error=f"{place}: {record.error}")
                    yield SourceEntry(record.offset, record.end, record)
                elif _is_answer(record.fields):
                    yield SourceEntry(record.offset, record.end, _content(record))
        if is_wacz(self._path):
            for number, (name, _, error) in enumerate(findings(self._path), self.size):
                damage = Damage(number, number + 1, f"{name}: {error}")
                yield SourceEntry(damage.offset, damage.end, damage)

    def read_at(self, offset: int) -> FileCapture | None:
        with self._open() as file:
            record = next(records(file, offset, offset + 1, lambda fields: MAX_BLOCK), None)
        if not isinstance(record, WarcRecord):
            return None
        content = _content(record, is_wanted=True)
        return content if isinstance(content, FileCapture) else None


def _is_answer(fields: Fields) -> bool:
    return fields.get("warc-type") in ("response", "resource", "revisit")


def _is_policy(fields: Fields) -> bool:
    """Return True if the record has the field POLICY, or its URL ends like that of a policy file.

    Its URL may still be another one, e.g. https://example.com/a/robots.txt."""
    return POLICY.lower() in fields or _target(fields).endswith(WELL_KNOWN)


def _target(fields: Fields) -> str:
    return fields.get("warc-target-uri", "").removeprefix("<").removesuffix(">")


def _block_limit(fields: Fields) -> int:
    """Return the maximum number of octets to read of the block of a record."""
    return MAX_BLOCK if _is_answer(fields) and _is_policy(fields) else 0


def _content(record: WarcRecord, *, is_wanted: bool = False) -> FileCapture | Elsewhere | Damage:
    """Return the content of a record.

    `is_wanted`: True if a policy file redirects or refers to the URL of the record."""
    fields, target = record.fields, _target(record.fields)
    try:
        url = origin_of(target) + target_of(target)
    except ValueError:
        if target.startswith(("http:", "https:")):
            return Damage(
                record.offset, record.end, f"`{printable(target)}` is no http or https URL"
            )
        return Elsewhere(target)  # a URL with another scheme, e.g. dns
    if not (is_wanted or POLICY.lower() in fields or _is_well_known(url)):
        return Elsewhere(url)
    try:
        moment = _date(fields.get("warc-date", ""))
    except (ValueError, OverflowError):
        return Damage(
            record.offset,
            record.end,
            f"`{printable(fields.get('warc-date', ''))}` is not a date of a capture",
        )
    try:
        return _capture(record, url, moment)
    except ValueError as error:
        return FileCapture(
            url, Fetched(status=0, fetched_at=moment, error=str(error)), is_unread=True
        )


def _capture(record: WarcRecord, url: str, moment: datetime) -> FileCapture:
    """Return the capture in a record. ValueError, with the cause: its answer cannot be read."""
    fields = record.fields
    if UNREAD.lower() in fields:
        raise ValueError(printable(fields[UNREAD.lower()]))
    if fields.get("warc-type") == "revisit":
        return _revisit(fields, url, moment)
    if "warc-segment-number" in fields:
        raise ValueError("a segment of a record")
    cut = "warc-truncated" in fields or len(record.block) < record.length
    if not is_http(record):
        if fields.get("warc-type") != "resource":
            raise ValueError("not an HTTP answer")
        media_type = fields.get("content-type", "").encode("latin-1", "replace")
        return FileCapture(
            url,
            _complete_answer(200, ((b"content-type", media_type),), record.block, moment, cut=cut),
        )
    first, pairs, body = message(record.block)
    status = _STATUS.match(first)
    if not status or not has_head(record.block):
        raise ValueError("not an HTTP/1 answer")
    if status[1][:1] == b"3":
        return _redirect(int(status[1]), pairs, url, moment)
    headers = tuple(pair for pair in pairs if pair[0] == b"content-type")
    if status[1][:1] != b"2":
        return FileCapture(url, Fetched(status=int(status[1]), headers=headers, fetched_at=moment))
    if covers_another(pairs, body):
        raise ValueError("the length of its record is wrong: another record begins within it")
    body, cut = _content_of(pairs, body, cut=cut)
    return FileCapture(url, _complete_answer(int(status[1]), headers, body, moment, cut=cut))


def _revisit(fields: Fields, url: str, moment: datetime) -> FileCapture:
    """Return a capture that repeats the content of an earlier capture (WARC 1.1 section-6.7).

    ValueError, with the cause: the record does not identify the earlier capture."""
    if not fields.get("warc-profile", "").endswith(PROFILES):
        raise ValueError("a revisit record of another profile")
    try:
        original = origin_of(target := fields.get("warc-refers-to-target-uri", url)) + target_of(
            target
        )
        repeats = _date(fields.get("warc-refers-to-date", ""))
    except (ValueError, OverflowError):
        raise ValueError("a revisit record without a valid URL and date of its original") from None
    return FileCapture(url, Fetched(status=0, fetched_at=moment), original, repeats)


def _date(text: str) -> datetime:
    """Return the date of a record, in UTC. ValueError or OverflowError: it is not a valid date."""
    moment = datetime.fromisoformat(text)
    moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    moment.timestamp()
    return moment


def _redirect(
    status: int, pairs: list[tuple[bytes, bytes]], url: str, moment: datetime
) -> FileCapture:
    if status not in REDIRECTS:
        raise ValueError(f"HTTP status {status}, which names no place to go on")
    location = next((value for name, value in pairs if name == b"location"), b"")
    if not location:
        raise ValueError(f"HTTP status {status} without a Location")
    try:
        target = resolved(url, location)
    except ValueError:
        raise ValueError(f"led to {printable(location)}, which is no http or https URL") from None
    return FileCapture(url, Fetched(status=status, fetched_at=moment), target)


def _content_of(pairs: list[tuple[bytes, bytes]], body: bytes, *, cut: bool) -> tuple[bytes, bool]:
    """Decode a body. Return the content, and True if the content is cut off.

    `pairs`: the header fields. `cut`: True if the record says that the body is cut off. ValueError:
    the body is incomplete without being marked as cut off, or its coding is unknown."""
    if transfer := words(pairs, b"transfer-encoding"):
        if transfer != [b"chunked"]:
            raise ValueError(f"Transfer-Encoding {printable(b', '.join(transfer))}")
        body, is_whole = unchunk(body)
        if not is_whole and not cut:
            raise ValueError("an incomplete chunked body")
    elif content_length(pairs) > len(body) and not cut:
        raise ValueError("an incomplete body")
    return (
        decoded(body, b", ".join(words(pairs, b"content-encoding")), is_cut=cut)
        if body
        else (body, cut)
    )


def _complete_answer(
    status: int,
    headers: tuple[tuple[bytes, bytes], ...],
    body: bytes,
    moment: datetime,
    *,
    cut: bool,
) -> Fetched:
    """Return an answer with the content of the file, at most MAX_BYTES of it.

    `cut`: True if `body` is cut off. ValueError: it is cut off before MAX_BYTES octets,
    so a crawl would have read more of the file."""
    if cut and len(body) < MAX_BYTES:
        raise ValueError(f"the capture was cut after {len(body)} octets")
    return Fetched(
        status=status,
        headers=headers,
        body=body[:MAX_BYTES],
        fetched_at=moment,
        oversized=cut or len(body) > MAX_BYTES,
    )
