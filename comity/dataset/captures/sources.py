"""Sources of captures of policy files: WARC files, and folders of files.

sources_in(path)       the sources that an argument names
Nothing raises on what is damaged: it is a Damage among the captures. Each source can be read again from where it was left."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from comity.dataset.files.places import is_local, stored_version
from comity.dataset.files.warc.items import POLICY
from comity.dataset.files.warc.messages import (
    content_length,
    covers_another,
    has_head,
    is_http,
    message,
    unchunked,
    words,
)
from comity.dataset.files.warc.records import BUFFER, PACKED, Damage, Fields, WarcRecord, records
from comity.policies import PolicyError
from comity.policies.answers.fetched import Fetched
from comity.policies.formats import WELL_KNOWN
from comity.policies.syntax.content_coding import decoded
from comity.policies.syntax.lines import MAX_BYTES
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_of, resolved, target_of

REDIRECTS = (301, 302, 303, 307, 308)
PROFILES = (
    "/revisit/identical-payload-digest",
    "/revisit/server-not-modified",
)  # of revisit records; WARC 1.1 section-6.7
ENDINGS = (".warc", ".warc.gz")
MAX_HEAD = 64 * 2**10  # octets of a head of HTTP that are read
MAX_BLOCK = (
    MAX_HEAD + 2 * MAX_BYTES
)  # of a record; chunks and compressed content take a little more than what is in them
SCHEMES = ("https", "http")  # of a site whose folder names its host alone

_STATUS = re.compile(rb"HTTP/[0-9.]+ ([1-9][0-9]{2})(?: |$)")


class Capture(NamedTuple):
    """An answer of a site to the question for one of its files, as it was at a moment."""

    url: str  # that was asked for
    answer: Fetched  # `fetched_at`: when; its body is content decoded, and at most MAX_BYTES of it
    location: str = (
        ""  # absolute URL to which it leads, or whose capture it repeats; "": it leads nowhere
    )
    repeats: datetime | None = None  # of the capture that has its content; None: it has its own
    is_unread: bool = False  # there was an answer, and nobody knows what it says


class Elsewhere(NamedTuple):
    """A capture of a URL that is none of a policy file, as far as it says itself: others may lead or refer to it."""

    url: str


class Entry(NamedTuple):
    """A capture, or a piece without one, and where in its source it stands."""

    offset: int
    end: int  # from where the source is read on
    content: Capture | Elsewhere | Damage


class Source(Protocol):
    """Captures that stand together. OSError where they cannot be read."""

    name: str  # by which the operator knows them, and no other source is called

    @property
    def version(self) -> str:
        """A text that is another one when anything in it may have changed."""

    @property
    def size(self) -> int:
        """Octets, or whatever its offsets count."""

    def read(self, start: int) -> Iterator[Entry]:
        """Yield what stands in it, from an offset on."""

    def read_at(self, offset: int) -> Capture | None:
        """The capture at the offset of an Elsewhere; None where it is not there any more."""


def sources_in(path: Path) -> Iterator[Source]:
    """The sources of a WARC file, or of a folder: the WARC files in it, and the folders of sites, each called by its host.

    PolicyError, with what to do about it, where it is none of these."""
    try:
        if path.is_dir():
            yield from _in_folder(path, is_named=True)
        elif path.name.lower().endswith(ENDINGS):
            with path.open("rb"):
                yield WarcSource(path)
        elif not path.exists():
            raise PolicyError(
                f"--policies {path}: there is no such file: name WARC files, folders or a policy store"
            )
        else:
            raise PolicyError(
                f"--policies {path}: its name says no form of captures: name it .warc or .warc.gz"
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
        raise PolicyError(
            f"--policies {path}: it cannot be read: {error}"
        ) from None  # by whatever library knows the store


def _in_folder(folder: Path, *, is_named: bool) -> Iterator[Source]:
    """Yield the sources in a folder. `is_named`: the operator has named it, and expects captures in it."""
    if any((folder / path.lstrip("/")).is_file() for path in WELL_KNOWN):
        host = folder.absolute().name
        origins = tuple(filter(None, (_origin(f"{scheme}://{host}") for scheme in SCHEMES)))
        if not origins or not ("." in host or host.startswith("localhost")):
            raise PolicyError(
                f"--policies {folder}: policy files of which host? Name the folder by it, e.g. example.com"
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
            f"--policies {folder}: no captures are in this folder: name one of WARC files, or of folders called by the hosts"
            " whose policy files are in them"
        )


def _in_file(path: Path) -> Iterator[Source]:
    if path.name.lower().endswith(ENDINGS):
        yield WarcSource(path)


def _urls(name: str, origins: tuple[str, ...]) -> Iterator[str]:
    """The URLs that a file in the folder of a site may have: one of another host stands in a folder with the name of that."""
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
    """A policy file on the disk, as it was when the file was changed last."""

    def __init__(self, path: Path, urls: tuple[str, ...]) -> None:
        """`urls`: whose file it may be; its offsets count them."""
        self.name = str(path.absolute())
        self.size = len(urls)
        self._path = path
        self._urls = urls

    @property
    def version(self) -> str:
        return _version(self._path)

    def read(self, start: int) -> Iterator[Entry]:
        answer = self._answer()
        for number, url in enumerate(self._urls[start:], start):
            content: Capture | Elsewhere = (
                Capture(url, answer) if _is_well_known(url) else Elsewhere(url)
            )
            yield Entry(number, number + 1, content)

    def read_at(self, offset: int) -> Capture | None:
        return Capture(self._urls[offset], self._answer())

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
    """A WARC file: of Common Crawl, of another archive, or of comity."""

    def __init__(self, path: Path) -> None:
        self.name = str(path.absolute())
        self._path = path

    @property
    def version(self) -> str:
        return _version(self._path)

    @property
    def size(self) -> int:
        return self._path.stat().st_size

    def read(self, start: int) -> Iterator[Entry]:
        with self._path.open("rb", BUFFER) as file:
            for record in records(file, start, self.size, _block_limit):
                if isinstance(record, Damage):
                    if record.error == PACKED:
                        raise PolicyError(
                            f"--policies {self._path}: it is packed as a whole: gunzip it first"
                        )
                    yield Entry(record.offset, record.end, record)
                elif _is_answer(record.fields):
                    yield Entry(record.offset, record.end, _content(record))

    def read_at(self, offset: int) -> Capture | None:
        with self._path.open("rb") as file:
            record = next(records(file, offset, offset + 1, lambda fields: MAX_BLOCK), None)
        if not isinstance(record, WarcRecord):
            return None
        content = _content(record, is_wanted=True)
        return content if isinstance(content, Capture) else None


def _is_answer(fields: Fields) -> bool:
    return fields.get("warc-type") in ("response", "resource", "revisit")


def _is_policy(fields: Fields) -> bool:
    """Return whether it is certain that the record is of a policy file."""
    return POLICY.lower() in fields or _target(fields).endswith(WELL_KNOWN)


def _target(fields: Fields) -> str:
    return fields.get("warc-target-uri", "").removeprefix("<").removesuffix(">")


def _block_limit(fields: Fields) -> int:
    """Octets of the block of a record that are wanted."""
    return MAX_BLOCK if _is_answer(fields) and _is_policy(fields) else 0


def _content(record: WarcRecord, *, is_wanted: bool = False) -> Capture | Elsewhere | Damage:
    """Return what a record has. `is_wanted`: another file leads or refers to it."""
    fields, target = record.fields, _target(record.fields)
    try:
        url = origin_of(target) + target_of(target)
    except ValueError:
        if target.startswith(("http:", "https:")):
            return Damage(
                record.offset, record.end, f"`{printable(target)}` is no http or https URL"
            )
        return Elsewhere(target)  # of another scheme, e.g. dns
    if not (is_wanted or POLICY.lower() in fields or _is_well_known(url)):
        return Elsewhere(url)
    try:
        moment = _date(fields.get("warc-date", ""))
    except (ValueError, OverflowError):
        return Damage(
            record.offset,
            record.end,
            f"`{printable(fields.get('warc-date', ''))}` is no date of a capture",
        )
    try:
        return _capture(record, url, moment)
    except ValueError as error:
        return Capture(url, Fetched(status=0, fetched_at=moment, error=str(error)), is_unread=True)


def _capture(record: WarcRecord, url: str, moment: datetime) -> Capture:
    """Return the capture in a record. ValueError, with what is wrong, for an answer of which nobody knows what it says."""
    fields = record.fields
    if fields.get("warc-type") == "revisit":
        return _revisit(fields, url, moment)
    if "warc-segment-number" in fields:
        raise ValueError("a segment of a record")
    cut = "warc-truncated" in fields or len(record.block) < record.length
    if not is_http(record):
        if fields.get("warc-type") != "resource":
            raise ValueError("no answer of HTTP")
        media_type = fields.get("content-type", "").encode("latin-1", "replace")
        return Capture(
            url,
            _complete_answer(200, ((b"content-type", media_type),), record.block, moment, cut=cut),
        )
    first, pairs, body = message(record.block)
    status = _STATUS.match(first)
    if not status or not has_head(record.block):
        raise ValueError("no answer of HTTP/1")
    if status[1][:1] == b"3":
        return _redirect(int(status[1]), pairs, url, moment)
    headers = tuple(pair for pair in pairs if pair[0] == b"content-type")
    if status[1][:1] != b"2":
        return Capture(url, Fetched(status=int(status[1]), headers=headers, fetched_at=moment))
    if covers_another(pairs, body):
        raise ValueError("the length of its record covers another one")
    body, cut = _content_of(pairs, body, cut=cut)
    return Capture(url, _complete_answer(int(status[1]), headers, body, moment, cut=cut))


def _revisit(fields: Fields, url: str, moment: datetime) -> Capture:
    """A capture that has found what an earlier one has (WARC 1.1 section-6.7)."""
    if not fields.get("warc-profile", "").endswith(PROFILES):
        raise ValueError("a revisit record of another profile")
    try:
        original = origin_of(target := fields.get("warc-refers-to-target-uri", url)) + target_of(
            target
        )
        repeats = _date(fields.get("warc-refers-to-date", ""))
    except (ValueError, OverflowError):
        raise ValueError("a revisit record that does not say of what") from None
    return Capture(url, Fetched(status=0, fetched_at=moment), original, repeats)


def _date(text: str) -> datetime:
    """Return a date of a record. ValueError or OverflowError for what is no date of ours."""
    moment = datetime.fromisoformat(text)
    moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    moment.timestamp()
    return moment


def _redirect(status: int, pairs: list[tuple[bytes, bytes]], url: str, moment: datetime) -> Capture:
    if status not in REDIRECTS:
        raise ValueError(f"HTTP status {status}, which names no place to go on")
    location = next((value for name, value in pairs if name == b"location"), b"")
    if not location:
        raise ValueError(f"HTTP status {status} without a Location")
    try:
        target = resolved(url, location)
    except ValueError:
        raise ValueError(f"led to {printable(location)}, which is no http or https URL") from None
    return Capture(url, Fetched(status=status, fetched_at=moment), target)


def _content_of(pairs: list[tuple[bytes, bytes]], body: bytes, *, cut: bool) -> tuple[bytes, bool]:
    """The content of a body as it was sent, and whether it goes on. ValueError where it cannot be had."""
    if transfer := words(pairs, b"transfer-encoding"):
        if transfer != [b"chunked"]:
            raise ValueError(f"Transfer-Encoding {printable(b', '.join(transfer))}")
        body, is_whole = unchunked(body)
        if not is_whole and not cut:
            raise ValueError("a body in chunks that breaks off")
    elif content_length(pairs) > len(body) and not cut:
        raise ValueError("a body that breaks off")
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
    """Return an answer that has the file. ValueError where the capture has less of the file than a crawl would have read."""
    if cut and len(body) < MAX_BYTES:
        raise ValueError(f"the capture was cut after {len(body)} octets")
    return Fetched(
        status=status,
        headers=headers,
        body=body[:MAX_BYTES],
        fetched_at=moment,
        oversized=cut or len(body) > MAX_BYTES,
    )
