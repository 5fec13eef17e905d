"""The expiry of datasets: takes out what may not be kept. What went is told in NAME.expired.jsonl.

Of a folder each file is a task of its own, as in an export to a folder: whoever does it puts the new file in the place of the old
one. Where that is interrupted some files are done, and the next run does the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from comity.dataset import manifest
from comity.dataset.changed_outside import changed_outside
from comity.dataset.counts.record_counts import RecordCounts
from comity.dataset.counts.summary import Summary
from comity.dataset.files.folders import Dataset, open_dataset
from comity.dataset.files.formats import Reader, open_rewriter, open_writer
from comity.dataset.files.places import is_within
from comity.dataset.job import (
    JobOptions,
    each_file,
    fields_with_tag,
    files_of,
    first_of,
    open_readers,
    paths_read,
    recrawled,
)
from comity.dataset.passes import Note, Outcome, Sinks, run
from comity.dataset.permissions.expiry import ExpiryTerms, expired
from comity.dataset.records import DatasetError, PositionedRecord, Record
from comity.dataset.side_files import (
    PendingLines,
    UnreadLines,
    beside,
    side_files,
    side_folder,
    side_folders,
)
from comity.dataset.tags.sources import GUESSED, TagSource

UNTAGGED = (
    "no-tag",
    "several-tags",
    "invalid-tag",
)  # how it begins why a record goes whose limits nobody knows


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
                note: Note = {
                    "url": record.get("url"),
                    "why": answer.cause,
                    "because": list(answer.reasons),
                }
                position = (
                    {"place": record.position} if isinstance(record, PositionedRecord) else {}
                )
                notes.append(
                    note
                    | position
                    | ({"record": record} if answer.cause.startswith(UNTAGGED) else {})
                )
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
    """Take out of datasets what may not be kept. When it returns, they are on the disk without it. `taken_down`: URLs.

    DatasetError where one cannot be used or written: it is as it was, those before it are done."""
    opened, readers = [open_dataset(path) for path in datasets], open_readers(datasets)
    files = files_of(paths_read(readers, tags))
    for reader in readers:
        if clash := first_of(side_files(reader.path), files):
            raise DatasetError(
                f"{clash} is written when {reader.path} expires: expire it by itself"
            )
    for folder in (
        side for dataset in opened if dataset.is_folder for side in side_folders(dataset.path)
    ):
        if any(is_within(reader.path, folder) for reader in readers):
            raise DatasetError(f"{folder} is written when a dataset expires: expire it by itself")
    terms = ExpiryTerms.create(now, recrawled(readers, options, tags), taken_down, tags)
    total, remaining = RecordCounts(), iter(readers)
    altered = frozenset(changed_outside(datasets, options))
    for dataset in opened:
        tasks = [
            _Expiring(next(remaining), dataset.path if dataset.is_folder else None)
            for _ in dataset.files
        ]
        expire_dataset = _expire_folder if dataset.is_folder else _expire_file
        total.merge(expire_dataset(dataset, tasks, _Expire(terms, dry_run, altered), options))
    return total


def _expire_file(
    _: Dataset, tasks: Sequence[_Expiring], expire_one: _Expire, options: JobOptions
) -> RecordCounts:
    [task] = tasks
    return expire_one.done(task, options).summary.counts


def _expire_folder(
    dataset: Dataset, tasks: Sequence[_Expiring], expire_one: _Expire, options: JobOptions
) -> RecordCounts:
    """The manifest of the folder comes back when all files are done."""
    folder, summary, facts = dataset.path, Summary(), []
    described = None if expire_one.dry_run else manifest.read(folder)
    if described:
        described |= expire_one.facts_of_change(folder)
        expire_one = expire_one._replace(tells_facts=True)
        manifest.retract(folder)
    for outcome in each_file(expire_one, tasks, options):
        summary.merge(outcome.summary)
        facts.append(outcome.facts)
        for note in outcome.notes:
            options.removed(note)
    if described:
        removed, when, files = (
            summary.counts.causes,
            expire_one.terms.now,
            [file for file in facts if file],
        )
        # Whatever this run has done: a process may have been killed when it had changed a file, and could not say so.
        if manifest.digests(described) != {file.name: file.sha256 for file in files}:
            described = manifest.changed(
                folder, described, summary.composition, removed=removed, when=when, files=files
            )
        manifest.write(folder, described)
    return summary.counts


class _Expiring(NamedTuple):
    reader: Reader
    folder: Path | None = None  # that the file is of


class _Expired(NamedTuple):
    """The outcome for a file."""

    summary: Summary
    notes: Sequence[Note] = ()  # what goes
    facts: manifest.FileFacts | None = None


class _Expire(NamedTuple):
    """A task: takes out of a file what may not be kept."""

    terms: ExpiryTerms
    dry_run: bool
    altered: frozenset[Path]  # what something else had changed
    tells_facts: bool = False

    def __call__(self, task: _Expiring) -> _Expired:
        """Return the outcome for a file, where several are done at a time."""
        notes: list[Note] = []
        outcome = self.done(task, JobOptions(1, removed=notes.append))
        assert task.folder
        name = task.reader.path.relative_to(task.folder).as_posix()
        facts = (
            manifest.facts_of(task.reader.path, name, outcome.summary.counts.kept)
            if self.tells_facts
            else None
        )
        return outcome._replace(notes=notes, facts=facts)

    def done(self, task: _Expiring, options: JobOptions) -> _Expired:
        return _expire(task, self, options)

    def facts_of_change(self, path: Path) -> dict[str, bool]:
        """Return what the new manifest of a dataset has besides: it must not vouch for what the old one did not describe."""
        return {manifest.CHANGED_OUTSIDE: True} if path in self.altered else {}


def _expire(task: _Expiring, expire_one: _Expire, options: JobOptions) -> _Expired:
    terms, dry_run = expire_one.terms, expire_one.dry_run
    reader, folder = task
    path, summary = reader.path, Summary()
    rewriter = open_rewriter(
        path, folder and side_folder(folder, "unreadable") / path.relative_to(folder)
    )
    unread, expired_lines = (
        UnreadLines(beside(path, "unreadable", folder)),
        PendingLines(beside(path, "expired", folder)),
    )
    with unread, expired_lines, ExitStack() as stack:

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
            executor=options.executor,
        )
        summary.counts.unreadable += unread.records
        if (
            unread.unkept and not rewriter
        ):  # a part of a table: it would be gone, whoever could still read something of it
            raise DatasetError(
                f"{path}: {unread.unkept}. It would be lost; export what can be read. Nothing has changed"
            )
        if dry_run or not (expired_lines.number or unread.number):
            raise _NothingGoes
        if not rewriter and summary.counts.causes == {"no-tag": summary.counts.records}:
            raise DatasetError(
                f"{path}: no record has a tag, and all would go; say where the tags are. Nothing has changed"
            )
        if rewriter:
            rewriter.copy()
        unread.append()
        expired_lines.append()
        described = manifest.read(path)
        manifest.retract(path)
        stack.close()  # the dataset is replaced
        if described:
            described |= expire_one.facts_of_change(path)
            manifest.write(
                path,
                manifest.changed(
                    path,
                    described,
                    summary.composition,
                    removed=summary.counts.causes,
                    when=terms.now,
                ),
            )
    if not dry_run and not manifest.current(path) and (described := manifest.read(path)):
        # A run was killed when the dataset was replaced, before its manifest was written.
        described |= expire_one.facts_of_change(path)
        manifest.write(
            path, manifest.changed(path, described, summary.composition, removed={}, when=terms.now)
        )
    return _Expired(summary)
