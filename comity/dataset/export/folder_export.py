"""An export to a folder: a file for each file that is read, under the same name, and one manifest for all.

A part of the work is a file. Whoever does it reads, judges and writes it by itself: nothing of the records comes to the process
that gives the work, only what was found out of them. That one names the files, puts the folder in its place, and writes the
manifest when all files are there. A part can be done again, whoever was killed in it: its file is replaced whole.

A run that was killed begins anew. Its files are not taken over: they were judged by the clock of that run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import NamedTuple

from comity.dataset import manifest
from comity.dataset.executors import PROCESSES
from comity.dataset.export.export import history, write_usable
from comity.dataset.files.folders import FolderReplacement, named, open_dataset
from comity.dataset.files.formats import WRITABLE, Reader, ending_of, open_writer
from comity.dataset.files.places import is_local, is_within
from comity.dataset.job import JobOptions, each_file, open_readers, recrawled
from comity.dataset.manifest import FileFacts
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError
from comity.dataset.side_files import UnreadLines, side_folder
from comity.dataset.summary import Summary

UNWRITABLE_AS = ".jsonl.gz"  # ending of what is read in a form that is not written


class _Part(NamedTuple):
    reader: Reader
    name: str  # of the new file in the folder
    folder: Path
    unreadable: Path  # a folder


class _Exported(NamedTuple):
    summary: Summary
    facts: FileFacts


class _ExportPart(NamedTuple):
    """A task: reads a file, and writes what may be used of it."""

    terms: Terms
    workers: int | None

    def __call__(self, part: _Part) -> _Exported:
        output, unreadable = part.folder / part.name, part.unreadable / f"{part.name}.jsonl"
        if is_local(output):
            output.parent.mkdir(parents=True, exist_ok=True)
        with UnreadLines(unreadable) as unread:
            with open_writer(output) as writer:
                summary = write_usable([part.reader], writer, unread, self.terms, JobOptions(self.workers))
            unread.replace()
        return _Exported(summary, manifest.facts_of(output, part.name, summary.counts.kept))


def export_folder(
    inputs: Sequence[Path],
    folder: Path,
    terms: Terms,
    options: JobOptions = JobOptions(),  # noqa: B008  # immutable
    *,
    ending: str = "",
) -> Summary:
    """`inputs`: files and folders. `ending`: one of WRITABLE, that of the new files; "": that of each file.

    `terms`: without the pages that were fetched again; it finds them itself. DatasetError, and `folder` as it was, where a file
    cannot be used or written."""
    folder = named(folder)
    aside = side_folder(folder, "unreadable")
    datasets, readers = [open_dataset(path) for path in inputs], open_readers(inputs)
    for clash in (folder, aside):
        if any(is_within(reader.path, clash) for reader in readers):
            raise DatasetError(f"{clash} is read from: give the export another name")
    names = [_new_name(dataset.name_of(file), ending) for dataset in datasets for file in dataset.files]
    [(twice, times)] = Counter(names).most_common(1)
    if times > 1:
        raise DatasetError(f"{folder / twice} would be written twice: two files have this name")
    exported, files = Summary(), []
    had = manifest.digests(manifest.read(folder))
    # In a store the old files go before the new ones come: then no manifest is beside them until all are there.
    restored = manifest.restored_on_error(folder) if is_local(folder) else nullcontext()
    with restored, ExitStack() as stack:
        parts_folder = stack.enter_context(FolderReplacement(folder, had.__contains__))
        unreadable = stack.enter_context(FolderReplacement(aside, lambda name: name.endswith(".jsonl")))
        terms = terms._replace(recrawled=recrawled(readers, options, terms.tags, terms.uses))
        parts = [_Part(reader, name, parts_folder, unreadable) for reader, name in zip(readers, names, strict=True)]
        is_one = len(parts) == 1 and options.executor == PROCESSES  # then it is shared among processes
        do = _ExportPart(terms, options.workers if is_one else 1)
        for outcome in each_file(do, parts, options._replace(workers=1) if is_one else options):
            exported.merge(outcome.summary)
            files.append(outcome.facts)
        manifest.retract(folder)
    manifest.write(folder, manifest.manifest(folder, history(inputs, terms, exported), exported.composition, files))
    return exported


def _new_name(name: str, ending: str) -> str:
    had = ending_of(name)
    return name[: len(name) - len(had)] + (ending or (had if had in WRITABLE else UNWRITABLE_AS))
