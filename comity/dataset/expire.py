"""The expiry of datasets: takes out what may not be kept. What went is told in NAME.expired.jsonl."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from comity.dataset import manifest
from comity.dataset.files.formats import Reader, open_rewriter, open_writer
from comity.dataset.job import JobOptions, fields_with_tag, files_of, first_of, open_readers, recrawled
from comity.dataset.passes import Note, Outcome, Sinks, run
from comity.dataset.permissions.expiry import ExpiryTerms, expired
from comity.dataset.record_counts import RecordCounts
from comity.dataset.records import DatasetError, PositionedRecord, Record
from comity.dataset.side_files import PendingLines, UnreadLines, beside, side_files
from comity.dataset.summary import Summary
from comity.dataset.tag_sources import GUESSED, TagSource

UNTAGGED = ("no-tag", "several-tags", "invalid-tag")  # how it begins why a record goes whose limits nobody knows


class ExpirePass(NamedTuple):
    """A pass that keeps the records that stay."""

    terms: ExpiryTerms
    fields: Sequence[str] | None = None

    def __call__(self, records: list[Record]) -> Outcome:
        summary, staying, notes = Summary(), [], []
        for record in records:
            answer = expired(record, self.terms)
            if answer.cause:
                summary.counts.drop(answer.cause)
                note: Note = {"url": record.get("url"), "why": answer.cause, "because": list(answer.reasons)}
                position = {"place": record.position} if isinstance(record, PositionedRecord) else {}
                notes.append(note | position | ({"record": record} if answer.cause.startswith(UNTAGGED) else {}))
            else:
                assert answer.tag
                summary.keep(record, answer.tag)
                staying.append(record)
        return Outcome(staying, summary, notes)


class _NothingGoes(Exception):  # noqa: N818  # no error
    """Leaves a dataset as it is."""


def expire(
    datasets: Sequence[Path],
    now: datetime,
    taken_down: Iterable[str] = (),
    *,
    tags: TagSource = GUESSED,
    dry_run: bool = False,
    options: JobOptions = JobOptions(),  # noqa: B008
) -> RecordCounts:
    """`taken_down`: URLs. When it returns, the datasets are on the disk without what had to go.

    DatasetError where one cannot be used or written: it is as it was, those before it are done."""
    readers, files = open_readers(datasets), files_of(datasets)
    for path in datasets:
        if clash := first_of(side_files(path), files):
            raise DatasetError(f"{clash} is written when {path} expires: expire it by itself")
    terms = ExpiryTerms.create(now, recrawled(readers, options, tags), taken_down, tags)
    total = RecordCounts()
    for reader in readers:
        total.merge(_expire(reader, terms, dry_run=dry_run, options=options))
    return total


def _expire(reader: Reader, terms: ExpiryTerms, *, dry_run: bool, options: JobOptions) -> RecordCounts:
    path, summary, rewriter = reader.path, Summary(), open_rewriter(reader.path)
    with UnreadLines(path) as unread, PendingLines(beside(path, "expired")) as expired_lines, ExitStack() as stack:

        def note(notes: list[Note]) -> None:
            for line in notes:
                position, record = line.pop("place", None), line.pop("record", None)
                options.removed(line)
                if rewriter:
                    rewriter.leave_out(position, keep_aside=record is not None)
                elif record is not None:
                    unread.put({"place": "", "why": line["why"], "record": record})
                expired_lines.put(line | {"when": terms.now.isoformat(timespec="seconds")})

        stack.enter_context(suppress(_NothingGoes))
        stack.enter_context(manifest.restored_on_error(path))
        writer = None if dry_run else stack.enter_context(rewriter or open_writer(path))
        sinks = Sinks(summary.merge, note, unread.add, options.progress)
        run(
            ExpirePass(terms, fields_with_tag(terms.tags, "fetched_at") if rewriter else None),
            [reader],
            sinks,
            writer=writer,
            workers=options.workers,
        )
        summary.counts.unreadable += unread.records
        if dry_run or not (expired_lines.number or unread.number):
            raise _NothingGoes
        if not rewriter and summary.counts.causes == {"no-tag": summary.counts.records}:
            raise DatasetError(f"{path}: no record has a tag, and all would go; say where the tags are. Nothing has changed")
        if rewriter:
            rewriter.copy()
        unread.append()
        expired_lines.append()
        described = manifest.read(path)
        manifest.retract(path)
        stack.close()  # the dataset is replaced
        if described:
            manifest.write(
                path, manifest.changed(path, described, summary.composition, removed=summary.counts.causes, when=terms.now)
            )
    return summary.counts
