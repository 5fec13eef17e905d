"""An export to a folder: a file for each file that is read (comity.dataset.folder_output)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from comity.dataset import manifest
from comity.dataset.changed_outside import changed_outside
from comity.dataset.counts.summary import Summary
from comity.dataset.export.export import history, write_usable
from comity.dataset.files.folders import nameable_folder
from comity.dataset.folder_output import FolderPart, folder_output
from comity.dataset.job import JobOptions, recrawled
from comity.dataset.manifest import FileFacts
from comity.dataset.permissions.terms import Terms
from comity.dataset.side_files import UnreadLines


class _ExportPart(NamedTuple):
    """A task: reads a file, and writes what may be used of it."""

    terms: Terms
    workers: int | None

    def __call__(self, part: FolderPart) -> tuple[Summary, FileFacts]:
        with UnreadLines(part.aside()) as unread:
            with part.open_writer() as writer:
                summary = write_usable(
                    [part.reader], writer, unread, self.terms, JobOptions(self.workers)
                )
            unread.replace()
        return summary, part.facts(summary.counts.kept)


def export_folder(
    inputs: Sequence[Path],
    folder: Path,
    terms: Terms,
    options: JobOptions = JobOptions(),  # noqa: B008  # immutable
    *,
    ending: str = "",
) -> Summary:
    """Write what may be used of datasets into a folder, a file for each file.

    `inputs`: files and folders. `ending`: one of WRITABLE, that of the new files; "": that of each file.

    `terms`: without the pages that were fetched again; it finds them itself. DatasetError, and `folder` as it was, where a file
    cannot be used or written."""
    folder, exported = nameable_folder(folder), Summary()
    with folder_output(
        inputs, folder, kinds=("unreadable",), ending=ending, tags=terms.tags
    ) as output:
        altered = changed_outside(inputs, options)
        fetched_again = recrawled(
            output.readers, options, terms.tags, terms.uses, last_fetch=terms.last_fetch
        )
        terms = terms._replace(recrawled=fetched_again)
        for summary in output.results(partial(_ExportPart, terms), options):
            exported.merge(summary)
    described = manifest.manifest(
        folder, history(inputs, terms, exported, altered), exported.composition, output.facts
    )
    manifest.write(folder, described)
    return exported
