"""An export to a folder, with one file for each input file (comity.dataset.folder_output)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from comity.dataset import manifest
from comity.dataset.changed_outside import changed_outside
from comity.dataset.counts.summary import Summary
from comity.dataset.croissant import FileFacts, describe
from comity.dataset.export.export import ExportPass, history, write_usable
from comity.dataset.files.folders import nameable_folder
from comity.dataset.folder_output import FolderPart, evidence_files, folder_output
from comity.dataset.job import JobOptions, find_recrawled, run_facts
from comity.dataset.permissions.terms import Terms
from comity.dataset.side_files import UnreadLines


class _ExportPart(NamedTuple):
    """A task that reads a file, and writes its usable records."""

    work: ExportPass
    workers: int | None

    def __call__(self, part: FolderPart) -> tuple[Summary, FileFacts]:
        with (
            UnreadLines(part.aside()) as unread,
            part.evidence(with_evidence=self.work.with_evidence) as piece,
        ):
            with part.open_writer() as writer:
                summary = write_usable(
                    [part.reader], writer, (unread, piece), self.work, JobOptions(self.workers)
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
    """Write the usable records of datasets into a folder, one file for each input file.

    Return counts of all records. `inputs`: files and folders. `terms`: `terms.recrawled` is
    ignored. The inputs are searched for recrawled pages if the terms or the tags depend on them.
    `ending`: the ending of the new files, one of WRITABLE. "" keeps the ending of each file.

    DatasetError: a file cannot be used or written. `folder` is then unchanged."""
    folder, exported = nameable_folder(folder), Summary()
    with (
        evidence_files(folder, options) as evidence,
        folder_output(
            inputs, folder, kinds=("unreadable",), ending=ending, tags=terms.tags
        ) as output,
    ):
        altered = changed_outside(inputs, options)
        fetched_again = find_recrawled(
            output.readers, options, terms.tags, terms.uses, last_fetch=terms.last_fetch
        )
        terms = terms._replace(recrawled=fetched_again)
        work = ExportPass(terms, with_evidence=options.evidence is not None)
        results = output.results(partial(_ExportPart, work), options)
        for part, summary in zip(output.parts, results, strict=True):
            exported.merge(summary)
            if evidence:
                evidence.add_piece(part.piece)
        if evidence:
            evidence.finish()
    described = describe(
        folder, history(inputs, terms, exported, altered), exported.composition, output.facts
    )
    manifest.write(folder, described | run_facts(options))
    return exported
