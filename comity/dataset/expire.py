"""The expiry of datasets: remove the records that may no longer be kept, and log their removal.

NAME.expired.jsonl lists the removed records. In a folder, each file is a task, as in an export to
a folder: the process with the task replaces the old file. If a run is interrupted, some files may
be replaced already, and the next run processes the rest."""

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
from comity.dataset.croissant import FileFacts, after_removal, facts_of
from comity.dataset.files.folders import Dataset, open_dataset
from comity.dataset.files.formats import Reader, open_rewriter, open_writer
from comity.dataset.files.places import is_within
from comity.dataset.job import (
    JobOptions,
    each_file,
    fields_with_tag,
    files_of,
    find_recrawled,
    first_of,
    open_readers,
    paths_read,
)
from comity.dataset.passes import Note, Outcome, Sinks, run
from comity.dataset.permissions.expiry import ExpiryTerms, judge_expiry
from comity.dataset.records import FETCH, DatasetError, PositionedRecord, Record
from comity.dataset.side_files import (
    PendingLines,
    UnreadLines,
    beside,
    side_files,
    side_folder,
    side_folders,
)
from comity.dataset.tags.sources import GUESSED, TagSource
from comity.policies.registry import NO_OPT_OUTS, OptOuts

# The causes of records with unknown limits begin with one of these words.
UNTAGGED = ("no-tag", "several-tags", "invalid-tag")


class ExpirePass(NamedTuple):
    """A pass that keeps the records that need not be removed, with a note for each other record."""

    terms: ExpiryTerms
    fields: Sequence[str] | None = None
    """The fields to read. None: all fields."""

    def __call__(self, records: list[Record]) -> Outcome:
        summary, staying, notes = Summary(), [], []
        for record in records:
            answer = judge_expiry(record, self.terms)
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


class _NothingGoes(Exception):  # noqa: N818  # not an error
    """Raised to leave a dataset unchanged, because no record is removed, or in a dry run."""


def expire(
    datasets: Sequence[Path],
    now: datetime,
    taken_down: Iterable[str] = (),
    *,
    tags: TagSource = GUESSED,
    opt_outs: OptOuts = NO_OPT_OUTS,
    dry_run: bool = False,
    options: JobOptions = JobOptions(),  # noqa: B008
) -> RecordCounts:
    """Remove from datasets all records that may no longer be kept. Return counts of all records.

    `now`: the moment of the expiry, aware. `taken_down`: URLs of pages to take down. `opt_outs`:
    registries. Records that an entry refuses for every use are removed. `dry_run`: True to count
    the records and change nothing.

    DatasetError: a dataset cannot be used or written. The file that cannot be used is unchanged.
    Datasets before it, and some files of its folder, have been changed already."""
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
    recrawled = find_recrawled(readers, options, tags)
    terms = ExpiryTerms.create(now, recrawled, taken_down, tags, opt_outs)
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
    return expire_one.expire(task, options).summary.counts


def _expire_folder(
    dataset: Dataset, tasks: Sequence[_Expiring], expire_one: _Expire, options: JobOptions
) -> RecordCounts:
    """Expire the files of a folder. The folder has no manifest until all files are complete."""
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
        # Compare the files themselves: an earlier run may have been killed after it had changed a
        # file and before it wrote the manifest.
        if manifest.digests(described) != {file.name: file.sha256 for file in files}:
            described = after_removal(
                folder, described, summary.composition, removed=removed, when=when, files=files
            )
        manifest.write(folder, described)
    return summary.counts


class _Expiring(NamedTuple):
    reader: Reader
    folder: Path | None = None  # the folder that is the dataset; None: the file is the dataset


class _Expired(NamedTuple):
    """The outcome for a file."""

    summary: Summary
    notes: Sequence[Note] = ()  # one for each removed record
    facts: FileFacts | None = None


class _Expire(NamedTuple):
    """A task that removes from a file all records that may no longer be kept."""

    terms: ExpiryTerms
    dry_run: bool
    altered: frozenset[Path]  # datasets and files that another program has changed
    tells_facts: bool = False

    def __call__(self, task: _Expiring) -> _Expired:
        """Expire one file of a folder, within one process."""
        notes: list[Note] = []
        outcome = self.expire(task, JobOptions(1, removed=notes.append))
        assert task.folder
        name = task.reader.path.relative_to(task.folder).as_posix()
        facts = (
            facts_of(task.reader.path, name, outcome.summary.counts.kept)
            if self.tells_facts
            else None
        )
        return outcome._replace(notes=notes, facts=facts)

    def expire(self, task: _Expiring, options: JobOptions) -> _Expired:
        """Expire a file."""
        return _expire(task, self, options)

    def facts_of_change(self, path: Path) -> dict[str, bool]:
        """Return members to add to the new manifest: CHANGED_OUTSIDE, if `path` was altered.

        Without this member, the new manifest would vouch for records that another program has
        added, and that the old manifest did not describe. {} if `path` was not altered."""
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
        writer = None if dry_run else stack.enter_context(rewriter or open_writer(path, [path]))
        sinks = Sinks(summary.merge, note, unread.add, options.progress)
        run(
            ExpirePass(terms, fields_with_tag(terms.tags, *FETCH) if rewriter else None),
            [reader],
            sinks,
            writer=writer,
            workers=options.workers,
            executor=options.executor,
        )
        summary.counts.unreadable += unread.records
        # A part of the table is unreadable. Replacing the file would lose it, though another
        # program may be able to read some of it.
        if unread.unkept and not rewriter:
            raise DatasetError(
                f"{path}: {unread.unkept}. It would be lost, so nothing has changed:"
                " export the readable records instead"
            )
        if dry_run or not (expired_lines.number or unread.number):
            raise _NothingGoes
        if not rewriter and summary.counts.causes == {"no-tag": summary.counts.records}:
            raise DatasetError(
                f"{path}: no record has a tag, and all would go, so nothing has changed:"
                " name the place of the tags with --tag"
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
                after_removal(
                    path,
                    described,
                    summary.composition,
                    removed=summary.counts.causes,
                    when=terms.now,
                ),
            )
    if not dry_run and not manifest.current(path) and (described := manifest.read(path)):
        # An earlier run was killed after it replaced the dataset, before it wrote the manifest.
        described |= expire_one.facts_of_change(path)
        manifest.write(
            path,
            after_removal(path, described, summary.composition, removed={}, when=terms.now),
        )
    return _Expired(summary)
