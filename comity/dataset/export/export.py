"""Export the records of datasets that may be used at a moment, with a manifest beside the output.

An export takes one pass over the files, or two if the last fetch of each page matters. Files may be
larger than memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comity.dataset import manifest
from comity.dataset.changed_outside import changed_outside
from comity.dataset.counts.summary import Summary
from comity.dataset.croissant import History, describe
from comity.dataset.evidence.decisions import Found, Place, refusals
from comity.dataset.files.formats import Reader, Writer, open_writer
from comity.dataset.files.places import is_within
from comity.dataset.folder_output import evidence_files
from comity.dataset.job import (
    JobOptions,
    check_outside,
    files_of,
    find_recrawled,
    first_of,
    open_readers,
    paths_read,
    run_facts,
)
from comity.dataset.passes import Outcome, Sinks, run
from comity.dataset.permissions.apply_terms import apply_terms
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import PAGE_URLS, DatasetError, Record, moment_of
from comity.dataset.side_files import UnreadLines, beside, side_files

if TYPE_CHECKING:
    from comity.dataset.evidence.files import Collector


class ExportPass:
    """A pass that returns the usable records, without their refused parts."""

    fields: Sequence[str] | None = None

    def __init__(self, terms: Terms, *, with_evidence: bool = False) -> None:
        """`with_evidence`: True if outcomes have evidence."""
        self.terms = terms
        self.with_evidence = with_evidence
        self._prefilter: Any = None

    def __call__(self, records: list[Record]) -> Outcome:
        exported, found = Summary(), Found(self.terms.uses)
        usable = (
            self.usable(record, number, exported, found) for number, record in enumerate(records)
        )
        outcome = Outcome([record for record in usable if record is not None], exported)
        if not self.with_evidence:
            return outcome
        # Imported here because pyarrow is needed only for evidence and columns.
        from comity.dataset.evidence.tables import evidence_of

        return outcome._replace(evidence=evidence_of(found))

    def usable(self, record: Record, number: int, exported: Summary, found: Found) -> Record | None:
        """Return the record as it may be used. None if it may not be used.

        Both outcomes are counted in `exported`, and noted in `found` if there is evidence.
        `number`: the number of the record for the evidence."""
        answer = apply_terms(record, self.terms)
        if answer.record is None:
            exported.counts.drop(answer.cause)
        else:
            assert answer.tag
            exported.keep(answer.record, answer.tag)
        if self.with_evidence:
            url = next(
                (record[name] for name in PAGE_URLS if isinstance(record.get(name), str)), ""
            )
            place = Place(number, url, moment_of(record.get("fetched_at")))
            if answer.record is None:
                found.drop(place, refusals(answer, self.terms.uses))
            else:
                assert answer.read
                found.keep(place, answer.read.raw)
        return answer.record

    def columns(self, batch: Any, number: int) -> Outcome:
        # Imported here because pyarrow is installed only where there are columns.
        from comity.dataset.export.column_pass import export_columns
        from comity.dataset.export.prefilter import Prefilter

        self._prefilter = self._prefilter or Prefilter(self.terms)
        return export_columns(
            batch, number, self._prefilter, self.usable, with_evidence=self.with_evidence
        )


def export(
    inputs: Sequence[Path],
    output: Path,
    terms: Terms,
    options: JobOptions = JobOptions(),  # noqa: B008  # immutable
) -> Summary:
    """Write the usable records of datasets into a file. Return counts of all records.

    `inputs`: files and folders. `terms`: `terms.recrawled` is ignored. If the terms or the tags
    depend on it, it is computed from the inputs.

    DatasetError: a file cannot be used or written. `output` is then unchanged."""
    readers = open_readers(inputs)
    entering = open_writer(output, [reader.path for reader in readers])
    if clash := first_of((output, *side_files(output)), files_of(paths_read(readers, terms.tags))):
        raise DatasetError(f"{clash} is read from: give the export another name")
    check_outside(output, inputs)
    altered = changed_outside(inputs, options)
    evidence = evidence_files(output, options)
    with UnreadLines(beside(output, "unreadable")) as unread:
        with evidence as collector, manifest.restored_on_error(output), entering as writer:
            fetched_again = find_recrawled(
                readers, options, terms.tags, terms.uses, last_fetch=terms.last_fetch
            )
            terms = terms._replace(recrawled=fetched_again)
            work = ExportPass(terms, with_evidence=options.evidence is not None)
            exported = write_usable(readers, writer, (unread, collector), work, options)
            unread.replace()
            manifest.retract(output, is_replaced=True)
        manifest.write(
            output,
            describe(output, history(inputs, terms, exported, altered), exported.composition)
            | run_facts(options),
        )
    return exported


def write_usable(
    readers: Sequence[Reader],
    writer: Writer,
    aside: tuple[UnreadLines, Collector | None],
    work: ExportPass,
    options: JobOptions,
) -> Summary:
    """Write the usable records. Return counts of all records.

    `aside`: the side file for unreadable records, and the collector of evidence. The caller has
    entered `writer` and `aside` by `with`."""
    exported, (unread, collector) = Summary(), aside
    sinks = Sinks(exported.merge, unreadable=unread.add, progress=options.progress)
    if collector:
        sinks = collector.sinks(sinks)
    run(
        work,
        readers,
        sinks,
        writer=writer,
        workers=options.workers,
        executor=options.executor,
    )
    exported.counts.unreadable += unread.records
    if collector:
        collector.finish()
    return exported


def history(
    inputs: Sequence[Path], terms: Terms, exported: Summary, altered: Sequence[Path] = ()
) -> History:
    """Return the history of an export for its manifest.

    `inputs`: the files and folders that were read. If `dataset tag` tagged their records, their
    manifests say how, and this is copied into the new history. `altered`: datasets and files that
    no longer match their manifests. Manifests of altered inputs are not used."""
    counts = exported.counts
    manifests = (
        manifest.read(path) for path in inputs if not any(is_within(part, path) for part in altered)
    )
    entries = [
        description["comity:tagged"]
        for description in manifests
        if description and "comity:tagged" in description
    ]
    return History(
        description=f"Records that could be used for {', '.join(terms.uses)}"
        f" on {terms.now:%Y-%m-%d}, by what their sites said when they were fetched.",
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
