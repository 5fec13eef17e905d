"""The places of captures in an archive, as a list of downloads for curl.

An index of captures (CDXJ, Common Crawl's columnar index) has the WARC file, the offset and the
length of each capture. Each capture that may be used becomes a download of these octets:

    url = "https://data.example/crawl.warc.gz"
    range = "500-1499"
    max-filesize = 1000

`curl --config LIST > pages.warc.gz` writes the captures one after the other, as a WARC file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, Self
from urllib.parse import quote

from comity.dataset.counts.summary import Summary
from comity.dataset.evidence.decisions import Found
from comity.dataset.export.export import ExportPass
from comity.dataset.files.replacement import Replacement
from comity.dataset.job import (
    JobOptions,
    check_outside,
    files_of,
    find_recrawled,
    first_of,
    open_readers,
    paths_read,
)
from comity.dataset.passes import Outcome, Sinks, run
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError, Record
from comity.dataset.tags.sources import GUESSED
from comity.policies.formats import WELL_KNOWN
from comity.policies.syntax.urls import origin_or_empty, target_of

PLACE = NAME, OFFSET, LENGTH = "warc_filename", "warc_record_offset", "warc_record_length"
# Causes of captures that are left out
NO_PLACE, NO_POLICY_FILE = "no-place", "no-policy-file"

NEXT = b"next\n"  # the options that follow are for another download

_SOURCE = re.compile(r"https?://[a-z0-9\[][^\s\"\\?#]*", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,15}")


class Place(NamedTuple):
    """The place of a capture."""

    name: str
    """The path of the WARC file in the archive."""
    offset: int
    """The offset of the WARC record in octets."""
    length: int
    """The length of the WARC record in octets, at least 1."""


def place_of(record: Record) -> Place | None:
    """Return the place of a capture. None if the record has no valid place.

    A path must not lead out of the archive."""
    name, offset, length = (
        record.get(NAME),
        _number(record.get(OFFSET)),
        _number(record.get(LENGTH)),
    )
    if not isinstance(name, str) or offset is None or not length:
        return None
    parts = name.split("/")
    if not all(parts) or {".", ".."}.intersection(parts) or not name.isprintable():
        return None
    return Place(name, offset, length)


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    return int(value) if _NUMBER.fullmatch(str(value)) else None


def ranges(
    inputs: Sequence[Path],
    output: Path,
    terms: Terms | None,
    source: str,
    options: JobOptions = JobOptions(),  # noqa: B008  # immutable
) -> Summary:
    """Write the places of captures. Return counts of all records.

    `terms`: the captures that they permit are written. None: the captures of policy files are
    written, with any status. `source`: the URL of the archive.

    DatasetError: `source` is not valid, or a file cannot be used or written. `output` is then
    unchanged."""
    if not (source.isascii() and _SOURCE.fullmatch(source)):
        raise DatasetError(
            f"--from `{source}` is not the URL of an archive:"
            " write, for example, https://data.commoncrawl.org/"
        )
    readers, tags = open_readers(inputs), terms.tags if terms else GUESSED
    if first_of([output], files_of(paths_read(readers, tags))):
        raise DatasetError(f"{output} is read from: give the list another name")
    check_outside(output, inputs)
    if terms:
        recrawled = find_recrawled(
            readers, options, terms.tags, terms.uses, last_fetch=terms.last_fetch
        )
        terms = terms._replace(recrawled=recrawled)
    written, unreadable = Summary(), 0

    def count_unreadable(_: object) -> None:
        nonlocal unreadable
        unreadable += 1

    sinks = Sinks(written.merge, unreadable=count_unreadable, progress=options.progress)
    with _List(output, source) as writer:
        run(
            _PermittedPlaces(terms) if terms else _PolicyFiles(),
            readers,
            sinks,
            writer=writer,
            workers=options.workers,
            executor=options.executor,
        )
    written.counts.unreadable += unreadable
    return written


class _PermittedPlaces:
    """A pass that returns the records that may be used and have a place."""

    fields: Sequence[str] | None = None

    def __init__(self, terms: Terms) -> None:
        self._export = ExportPass(terms)

    def __call__(self, records: list[Record]) -> Outcome:
        summary, found, evidence = Summary(), [], Found(())
        for number, record in enumerate(records):
            if place_of(record) is None:
                summary.counts.drop(NO_PLACE)
            elif self._export.usable(record, number, summary, evidence) is not None:
                found.append(record)  # the usable record may lack fields
        return Outcome(found, summary)


class _PolicyFiles:
    """A pass that returns the captures of policy files."""

    fields: Sequence[str] | None = ("url", NAME, OFFSET, LENGTH)

    def __call__(self, records: list[Record]) -> Outcome:
        summary, found = Summary(), []
        for record in records:
            url = record.get("url")
            url = url if isinstance(url, str) and origin_or_empty(url) else ""
            if not url or target_of(url) not in WELL_KNOWN:
                summary.counts.drop(NO_POLICY_FILE)
            elif place_of(record) is None:
                summary.counts.drop(NO_PLACE)
            else:
                summary.counts.keep_several(1, {}, ())
                found.append(record)
        return Outcome(found, summary)


class _List:
    """A Writer of the list."""

    def __init__(self, path: Path, source: str) -> None:
        self.path = path
        self.encode: Callable[[Sequence[Record]], bytes] = partial(
            _downloads, source.removesuffix("/") + "/"
        )
        self._replacement = Replacement(path)

    def __enter__(self) -> Self:
        self._file: IO[bytes] = self._replacement.__enter__()
        self._file.write(b"# curl --config LIST > captures.warc.gz\n")
        self._is_first = True
        return self

    def write(self, encoded: bytes) -> None:
        self._file.write(encoded.removeprefix(NEXT) if self._is_first else encoded)
        self._is_first = self._is_first and not encoded

    def __exit__(self, *error: Any) -> None:
        self._replacement.__exit__(*error)


def _downloads(source: str, records: Sequence[Record]) -> bytes:
    return "".join(_download(source, place) for place in _places(records)).encode("ascii")


def _places(records: Sequence[Record]) -> Iterator[Place]:
    return (place for record in records if (place := place_of(record)) is not None)


def _download(source: str, place: Place) -> str:
    """Return the options of curl for a capture.

    A server that ignores `range` would send the whole file. `max-filesize` refuses its answer."""
    return (
        f'{NEXT.decode()}url = "{source}{quote(place.name)}"\n'
        f'range = "{place.offset}-{place.offset + place.length - 1}"\n'
        f"max-filesize = {place.length}\n"
        "fail\ngloboff\nsilent\nshow-error\n"
    )
