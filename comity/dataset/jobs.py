"""What is done with datasets as wholes. Each is one or two passes over files of any size.

export(inputs, output, terms)      what may be used so today, with a manifest beside it
expire(datasets, limits)           takes out what may not be kept
stats(datasets)                    how much of them may be used how

What cannot be read is kept in NAME.unreadable.jsonl, what went in NAME.expired.jsonl."""

from __future__ import annotations

import base64
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from comity.dataset.counts import Counts
from comity.dataset.export import manifest as croissant
from comity.dataset.export.manifest import Fields
from comity.dataset.files.files import Reader, Replacement, open_beside, open_reader, open_rewriter, open_writer, sync
from comity.dataset.files.jsonl import encoded
from comity.dataset.passes import Note, Outcome, Sinks, Unread, run
from comity.dataset.permissions.expiry import NEVER_RECRAWLED, Fetches, Limits, Recrawled, expired
from comity.dataset.permissions.tags import GUESSED, Carried, TagSource
from comity.dataset.permissions.terms import ARRANGEMENT, CURRENT, Terms, judged
from comity.dataset.records import LICENSE, DatasetError, Placed, Record

UNTAGGED = ("no-tag", "several-tags", "invalid-tag")  # how it begins why a record goes whose limits nobody knows


class How(NamedTuple):
    """How a job is run."""

    workers: int | None = None  # None: as many as are of use
    progress: Callable[[int], object] = lambda _: None  # told how many octets have been read
    removed: Callable[[Note], object] = lambda _: None  # told of each record that goes: its `url`, `why` and `because`


class FetchPass(NamedTuple):
    """When each page was fetched last."""

    fields: Sequence[str] | None = ("url", "final_url", "fetched_at")

    def __call__(self, records: list[Record]) -> Outcome:
        fetches = Fetches()
        for record in records:
            fetches.note(record)
        return Outcome([], fetches)


def recrawled(readers: Sequence[Reader], how: How, tags: TagSource, uses: Iterable[str] = ()) -> Recrawled:
    """Which pages of these files were fetched more than once, where anything depends on it."""
    may_end = tags.fields is None or any(reader.may_mention("until_recrawled", tags.fields) for reader in readers)
    if CURRENT.isdisjoint(uses) and not may_end:
        return NEVER_RECRAWLED
    fetches = Fetches()
    run(FetchPass(), readers, Sinks(fetches.merge, progress=how.progress), workers=how.workers)
    return fetches.recrawled()


class Exported:
    """What came out of a pass, and why other records did not. Mergeable; it can be pickled."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.fields = Fields()
        self.arrangements: Counter[str] = Counter()  # those that decided, of how many records
        self.licenses: dict[str, None] = {}

    def keep(self, record: Record, tag: Carried) -> None:
        self.counts.keep(tag.raw)
        self.fields.note(record, tag)
        licenses = record.get(LICENSE)
        if isinstance(licenses, list):  # and no field of that name that the record had before
            self.licenses |= dict.fromkeys(one for one in licenses if isinstance(one, str))
        texts = {reason["text"] for reason in tag.raw["reasons"] if reason["rule"] == ARRANGEMENT}
        self.arrangements.update(texts)

    def merge(self, other: Exported) -> None:
        self.counts.merge(other.counts)
        self.fields.merge(other.fields)
        self.arrangements.update(other.arrangements)
        self.licenses |= other.licenses

    @property
    def composition(self) -> croissant.Composition:
        counts = self.counts
        return croissant.Composition(
            fields=self.fields,
            agents=counts.agents,
            policies={url: list(copies.values()) for url, copies in sorted(counts.policies.items())},
            has_more_policies=counts.has_more_policies,
            arrangements=self.arrangements,
            licenses=tuple(self.licenses),
        )


class ExportPass(NamedTuple):
    """The records as they may be used."""

    terms: Terms
    fields: Sequence[str] | None = None

    def __call__(self, records: list[Record]) -> Outcome:
        exported = Exported()
        kept = [usable for record in records if (usable := self.judged(record, exported)) is not None]
        return Outcome(kept, exported)

    def judged(self, record: Record, exported: Exported) -> Record | None:
        answer = judged(record, self.terms)
        if answer.record is None:
            exported.counts.drop(answer.why)
        else:
            assert answer.tag
            exported.keep(answer.record, answer.tag)
        return answer.record

    def columns(self, batch: Any, number: int) -> Outcome:
        from comity.dataset.export.tables import export_columns  # pyarrow is there where there are columns

        return export_columns(self, batch, number)


def export(inputs: Sequence[Path], output: Path, terms: Terms, how: How = How()) -> Exported:  # noqa: B008  # immutable
    """`terms`: without the pages that were fetched again; it finds them itself.

    DatasetError, and `output` as it was, where a file cannot be used or written."""
    readers, entering = _open_readers(inputs), open_writer(output)
    if place := _first_of((output, *_side_files(output)), _files(inputs)):
        raise DatasetError(f"{place} is read from: give the export another name")
    exported = Exported()
    with _Unread(output) as unread:
        with croissant.kept(output), entering as writer:
            terms = terms._replace(recrawled=recrawled(readers, how, terms.tags, terms.uses))
            sinks = Sinks(exported.merge, unreadable=unread.add, progress=how.progress)
            run(ExportPass(terms), readers, sinks, writer=writer, workers=how.workers)
            exported.counts.unreadable += unread.records
            unread.replace()
            croissant.retract(output)
        croissant.write(output, croissant.manifest(output, _told(terms, exported), exported.composition))
    return exported


def _told(terms: Terms, exported: Exported) -> croissant.Told:
    counts = exported.counts
    return croissant.Told(
        description=f"Records that could be used for {', '.join(terms.uses)} on {terms.now:%Y-%m-%d},"
        " by what their sites said when they were fetched.",
        uses=terms.uses,
        exported_at=terms.now,
        counts={
            "read": counts.records,
            "exported": counts.kept,
            "refused": dict(counts.whys),
            "unreadable": counts.unreadable,
        },
        vocabulary={name: words.revision for name, words in terms.vocabulary.words.items()},
        defaults={use: verdict.value for use, verdict in terms.defaults.items()},
    )


class ExpirePass(NamedTuple):
    """The records that stay."""

    limits: Limits
    fields: Sequence[str] | None = None

    def __call__(self, records: list[Record]) -> Outcome:
        left, kept, notes = Exported(), [], []
        for record in records:
            answer = expired(record, self.limits)
            if answer.why:
                left.counts.drop(answer.why)
                note: Note = {"url": record.get("url"), "why": answer.why, "because": list(answer.because)}
                place = {"place": record.place} if isinstance(record, Placed) else {}
                notes.append(note | place | ({"record": record} if answer.why.startswith(UNTAGGED) else {}))
            else:
                assert answer.tag
                left.keep(record, answer.tag)
                kept.append(record)
        return Outcome(kept, left, notes)


def _read_of(tags: TagSource, *fields: str) -> tuple[str, ...] | None:
    """The tag, of which page the record is, and these fields; None: all."""
    return None if tags.fields is None else ("url", "final_url", *tags.fields, *fields)


class _NothingGoes(Exception):  # noqa: N818  # no error
    """Leaves a dataset as it is."""


def expire(
    datasets: Sequence[Path],
    now: datetime,
    taken_down: Iterable[str] = (),
    *,
    tags: TagSource = GUESSED,
    dry_run: bool = False,
    how: How = How(),  # noqa: B008
) -> Counts:
    """`taken_down`: URLs. When it returns, the datasets are on the disk without what had to go.

    DatasetError where one cannot be used or written: it is as it was, those before it are done."""
    readers, files = _open_readers(datasets), _files(datasets)
    for path in datasets:
        if place := _first_of(_side_files(path), files):
            raise DatasetError(f"{place} is written when {path} expires: expire it by itself")
    limits = Limits.of(now, recrawled(readers, how, tags), taken_down, tags)
    total = Counts()
    for reader in readers:
        total.merge(_expire(reader, limits, dry_run=dry_run, how=how))
    return total


def _expire(reader: Reader, limits: Limits, *, dry_run: bool, how: How) -> Counts:
    path, left, rewriter = reader.path, Exported(), open_rewriter(reader.path)
    with _Unread(path) as unread, _Lines(_beside(path, "expired")) as gone, ExitStack() as stack:

        def note(notes: list[Note]) -> None:
            for one in notes:
                place, record = one.pop("place", None), one.pop("record", None)
                how.removed(one)
                if rewriter:
                    rewriter.leave_out(place, keep_aside=record is not None)
                elif record is not None:
                    unread.put({"place": "", "why": one["why"], "record": record})
                gone.put(one | {"when": limits.now.isoformat(timespec="seconds")})

        stack.enter_context(suppress(_NothingGoes))
        stack.enter_context(croissant.kept(path))
        writer = None if dry_run else stack.enter_context(rewriter or open_writer(path))
        sinks = Sinks(left.merge, note, unread.add, how.progress)
        run(
            ExpirePass(limits, _read_of(limits.tags, "fetched_at") if rewriter else None),
            [reader],
            sinks,
            writer=writer,
            workers=how.workers,
        )
        left.counts.unreadable += unread.records
        if dry_run or not (gone.number or unread.number):
            raise _NothingGoes
        if not rewriter and left.counts.whys == {"no-tag": left.counts.records}:
            raise DatasetError(f"{path}: no record has a tag, and all would go; say where the tags are. Nothing has changed")
        if rewriter:
            rewriter.copy()
        unread.append()
        gone.append()
        described = croissant.read(path)
        croissant.retract(path)
        stack.close()  # the dataset is replaced
        if described:
            croissant.write(path, croissant.changed(path, described, left.composition, removed=left.counts.whys, at=limits.now))
    return left.counts


class StatsPass(NamedTuple):
    """What the tags permit."""

    now: datetime
    tags: TagSource = GUESSED

    @property
    def fields(self) -> Sequence[str] | None:
        return _read_of(self.tags)

    def __call__(self, records: list[Record]) -> Outcome:
        counts = Counts()
        for record in records:
            counts.read(record, self.now, self.tags)
        return Outcome([], counts)


def stats(datasets: Sequence[Path], now: datetime, how: How = How(), tags: TagSource = GUESSED) -> Counts:  # noqa: B008
    """Nothing is written."""
    counts, readers = Counts(), _open_readers(datasets)

    def unreadable(_: Unread) -> None:
        counts.unreadable += 1

    run(StatsPass(now, tags), readers, Sinks(counts.merge, unreadable=unreadable, progress=how.progress), workers=how.workers)
    return counts


def _open_readers(paths: Sequence[Path]) -> list[Reader]:
    """DatasetError where a file is among them twice, by whatever names."""
    readers = [open_reader(path) for path in paths]
    if len(_files(paths)) < len(paths):
        twice = next(path for number, path in enumerate(paths) if _first_of([path], _files(paths[:number])))
        raise DatasetError(f"{twice} is given twice")
    return readers


File = tuple[int, int]  # the same by whatever name


def _files(paths: Iterable[Path]) -> set[File]:
    return {(stat.st_dev, stat.st_ino) for stat in map(Path.stat, paths)}


def _first_of(places: Iterable[Path], files: set[File]) -> Path | None:
    """The first of these places where one of these files stands."""
    return next((place for place in places if place.exists() and not files.isdisjoint(_files([place]))), None)


def _side_files(dataset: Path) -> list[Path]:
    """What is written with it."""
    kept = (f"{dataset.name}.{what}" for what in ("unreadable.jsonl", "unreadable.warc", "unreadable.warc.gz", "expired.jsonl"))
    return [*map(dataset.with_name, kept), croissant.place_of(dataset), croissant.before(dataset)]


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name}.{what}.jsonl")


class _Lines:
    """Lines for a file beside a dataset. They go there when it is known that they are true."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0

    def __enter__(self) -> Self:
        self._held: IO[bytes] = tempfile.SpooledTemporaryFile(2**20, dir=str(self.path.parent))
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def put(self, line: Mapping[str, Any]) -> None:
        self._held.write(encoded(dict(line)))
        self.number += 1

    def append(self) -> None:
        """To what stands there, on the disk."""
        if not self.number:
            return
        with open_beside(self.path) as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # a killed process has left half a line
                    file.write(b"\n")
            self._copy(file)
            file.flush()
            os.fsync(file.fileno())
        sync(self.path.parent)

    def replace(self) -> None:
        """What stands there; where there are none, nothing stands there."""
        if self.number:
            with Replacement(self.path, is_named=False) as file:
                self._copy(file)
        else:
            self.path.unlink(missing_ok=True)

    def _copy(self, file: IO[bytes]) -> None:
        self._held.seek(0)
        while octets := self._held.read(2**20):
            file.write(octets)


class _Unread(_Lines):
    """What could not be read of a dataset."""

    def __init__(self, dataset: Path) -> None:
        super().__init__(_beside(dataset, "unreadable"))
        self.records = 0  # of the lines

    def add(self, unread: Unread) -> None:
        """UTF-8 as text, anything else in base64."""
        place, octets, why = unread.unreadable
        try:
            kept = {"text": octets.decode()}
        except UnicodeDecodeError:
            kept = {"base64": base64.b64encode(octets).decode("ascii")}
        self.records += 1
        self.put({"file": str(unread.reader.path), "place": place, "why": why, **kept})
