"""Tag datasets of other programs. The output is a folder with one file for each input file.

See comity.dataset.folder_output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from comity.dataset import manifest
from comity.dataset.croissant import FileFacts, describe
from comity.dataset.files.folders import APART, nameable_folder
from comity.dataset.folder_output import FolderPart, evidence_files, folder_output
from comity.dataset.job import JobOptions, run_facts
from comity.dataset.side_files import PendingLines, UnreadLines
from comity.dataset.tagging.counts import Tagged
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.record_tagger import Making
from comity.dataset.tagging.site_order import judged_readers
from comity.dataset.tagging.tagging import (
    TagPass,
    captures_reader,
    check_columns,
    history,
    write_tagged,
)
from comity.dataset.tagging.verdicts import Verdicts, save


class _TagPart(NamedTuple):
    """A task that reads a file, and writes its records with their tags."""

    tagger: TagPass
    workers: int | None

    def __call__(self, part: FolderPart) -> tuple[Tagged, FileFacts]:
        with (
            UnreadLines(part.aside(0)) as unread,
            PendingLines(part.aside(1)) as apart,
            part.evidence(with_evidence=self.tagger.with_evidence) as piece,
        ):
            with part.open_writer() as writer:
                options = JobOptions(self.workers)
                aside = (unread, apart, piece)
                tagged = write_tagged([part.reader], writer, aside, self.tagger, options)
            unread.replace()
            apart.replace()
        return tagged, part.facts(tagged.counts.kept)


def tag_folder(
    inputs: Sequence[Path],
    folder: Path,
    judge: Judge,
    making: Making = Making(),  # noqa: B008  # immutable
    options: JobOptions = JobOptions(),  # noqa: B008  # immutable
    *,
    sources: Sequence[str] = (),
    ending: str = "",
) -> Tagged:
    """Write datasets with tags into a folder.

    `inputs`: files and folders. `ending`: the ending of the new files, one of WRITABLE. "" keeps
    the ending of each file. `sources`: the sources of the policies, for the manifest.

    DatasetError: a file cannot be used or written. `folder` is then unchanged."""
    folder, tagged = nameable_folder(folder), Tagged()
    tagger = TagPass(judge, making, with_evidence=options.evidence is not None)
    with (
        evidence_files(folder, options) as evidence,
        folder_output(
            inputs, folder, kinds=("unreadable", APART), ending=ending, reader_of=captures_reader
        ) as output,
    ):
        check_columns(output.readers, making.columns)
        files = [
            (target := part.folder / part.name).with_name(f".{target.name}.verdicts")
            for part in output.parts
        ]

        def keep(number: int, verdicts: Iterator[Verdicts]) -> Path:
            save(files[number], verdicts)
            return files[number]

        readers, options = judged_readers(output.readers, tagger, options, keep)
        pairs = zip(output.parts, readers, strict=True)
        output = output._replace(parts=[part._replace(reader=reader) for part, reader in pairs])
        results = output.results(partial(_TagPart, tagger), options)
        for part, file, part_counts in zip(output.parts, files, results, strict=True):
            file.unlink(missing_ok=True)
            tagged.merge(part_counts)
            if evidence:
                evidence.add_piece(part.piece)
        if evidence:
            evidence.finish()
    described = describe(folder, history(judge, tagged, sources), tagged.composition, output.facts)
    manifest.write(folder, described | run_facts(options))
    return tagged
