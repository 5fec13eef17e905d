"""An export: what may be used of some datasets so today, with a manifest beside it.

It is one pass over files of any size, or two where it depends on when pages were fetched last."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from comity.dataset import manifest
from comity.dataset.changed_outside import changed_outside
from comity.dataset.counts.summary import Summary
from comity.dataset.files.formats import Reader, Writer, open_writer
from comity.dataset.files.places import is_within
from comity.dataset.job import (
    JobOptions,
    check_outside,
    files_of,
    first_of,
    open_readers,
    paths_read,
    recrawled,
)
from comity.dataset.passes import Outcome, Sinks, run
from comity.dataset.permissions.terms import Terms, apply_terms
from comity.dataset.records import DatasetError, Record
from comity.dataset.side_files import UnreadLines, beside, side_files


class ExportPass:
    """A pass that gives the records as they may be used."""

    fields: Sequence[str] | None = None

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._prefilter: Any = None

    def __call__(self, records: list[Record]) -> Outcome:
        exported = Summary()
        usable = (self.usable(record, exported) for record in records)
        return Outcome([record for record in usable if record is not None], exported)

    def usable(self, record: Record, exported: Summary) -> Record | None:
        answer = apply_terms(record, self.terms)
        if answer.record is None:
            exported.counts.drop(answer.cause)
        else:
            assert answer.tag
            exported.keep(answer.record, answer.tag)
        return answer.record

    def columns(self, batch: Any, number: int) -> Outcome:
        # pyarrow is there where there are columns
        from comity.dataset.export.column_pass import export_columns
        from comity.dataset.export.prefilter import Prefilter

        self._prefilter = self._prefilter or Prefilter(self.terms)
        return export_columns(batch, number, self._prefilter, self.usable)


def export(
    inputs: Sequence[Path],
    output: Path,
    terms: Terms,
    options: JobOptions = JobOptions(),  # noqa: B008
) -> Summary:  # immutable
    """Write what may be used of datasets into a file, and count the rest.

    `inputs`: files and folders. `terms`: without the pages that were fetched again; it finds them itself.

    DatasetError, and `output` as it was, where a file cannot be used or written."""
    readers, entering = open_readers(inputs), open_writer(output)
    if clash := first_of((output, *side_files(output)), files_of(paths_read(readers, terms.tags))):
        raise DatasetError(f"{clash} is read from: give the export another name")
    check_outside(output, inputs)
    altered = changed_outside(inputs, options)
    with UnreadLines(beside(output, "unreadable")) as unread:
        with manifest.restored_on_error(output), entering as writer:
            fetched_again = recrawled(
                readers, options, terms.tags, terms.uses, last_fetch=terms.last_fetch
            )
            terms = terms._replace(recrawled=fetched_again)
            exported = write_usable(readers, writer, unread, terms, options)
            unread.replace()
            manifest.retract(output, is_replaced=True)
        manifest.write(
            output,
            manifest.manifest(
                output, history(inputs, terms, exported, altered), exported.composition
            ),
        )
    return exported


def write_usable(
    readers: Sequence[Reader],
    writer: Writer,
    unread: UnreadLines,
    terms: Terms,
    options: JobOptions,
) -> Summary:
    """Write what may be used. `writer`, `unread`: entered."""
    exported = Summary()
    sinks = Sinks(exported.merge, unreadable=unread.add, progress=options.progress)
    run(
        ExportPass(terms),
        readers,
        sinks,
        writer=writer,
        workers=options.workers,
        executor=options.executor,
    )
    exported.counts.unreadable += unread.records
    return exported


def history(
    inputs: Sequence[Path], terms: Terms, exported: Summary, altered: Sequence[Path] = ()
) -> manifest.History:
    """Return what the manifest says of an export.

    `inputs`: of records of others the export says how they were tagged, as their manifests do. `altered`: whose manifests do not
    describe them, so nobody knows how they were tagged."""
    counts = exported.counts
    described = (
        manifest.read(path) for path in inputs if not any(is_within(part, path) for part in altered)
    )
    entries = [
        description["comity:tagged"]
        for description in described
        if description and "comity:tagged" in description
    ]
    return manifest.History(
        description=f"Records that could be used for {', '.join(terms.uses)} on {terms.now:%Y-%m-%d},"
        " by what their sites said when they were fetched.",
        uses=terms.uses,
        exported_at=terms.now,
        counts={
            "read": counts.records,
            "exported": counts.kept,
            "refused": dict(counts.causes),
            "unreadable": counts.unreadable,
        },
        vocabulary={name: words.revision for name, words in terms.vocabulary.words.items()},
        defaults={use: verdict.value for use, verdict in terms.defaults.items()},
        tagged=[
            part for entry in entries for part in (entry if isinstance(entry, list) else [entry])
        ],
    )
