"""Tag datasets of other programs: the pass over the records, and the files that it writes.

Files may be larger than memory. Each input record is written with its tag, kept apart (--missing
keep-apart), left out because it is not a page, or unreadable. The sum of these four counts is the
number of input records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comity.dataset import manifest
from comity.dataset.croissant import History, describe
from comity.dataset.files.folders import APART
from comity.dataset.files.formats import Reader, Writer, format_of, open_writer
from comity.dataset.files.shards.works import WorksReader
from comity.dataset.folder_output import evidence_files
from comity.dataset.job import (
    JobOptions,
    check_outside,
    files_of,
    first_of,
    open_readers,
    run_facts,
)
from comity.dataset.passes import Note, Outcome, Sinks, run
from comity.dataset.records import DatasetError, Unreadable
from comity.dataset.side_files import PendingLines, UnreadLines, beside, side_files
from comity.dataset.tagging import warc
from comity.dataset.tagging.captured import CapturedRecord
from comity.dataset.tagging.columns import Columns, check_fields, value_of
from comity.dataset.tagging.counts import Tagged
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.record_tagger import Making, RecordTagger
from comity.dataset.tagging.site_order import judged_readers
from comity.policies.syntax.printable import without_passwords
from comity.policies.syntax.urls import origin_or_empty

if TYPE_CHECKING:
    from comity.dataset.evidence.files import Collector


class TagPass(RecordTagger):
    """A pass that tags records and columns."""

    def columns(self, batch: Any, number: int) -> Outcome:
        # Imported here because pyarrow is installed only where there are columns.
        from comity.dataset.tagging.columns_pass import tag_columns

        return tag_columns(batch, number, self)


def origins(
    readers: Iterable[Reader], columns: Columns, advance: Callable[[int], object]
) -> Iterator[str]:
    """Yield the origins of each record and of the page that shows it, with repetitions.

    `advance`: called with the number of octets read since its last call."""
    urls, *_, page_urls = columns.names()
    for reader in readers:
        for part in reader.parts():
            for batch in reader.read(part):
                for record in batch:
                    if isinstance(record, CapturedRecord):
                        found: list[Any] = [record.page.url if record.page else ""]
                    elif isinstance(record, Unreadable):
                        continue
                    else:
                        found = [value_of(record, names)[1] for names in (urls, page_urls)]
                    for url in found:
                        if isinstance(url, str) and (origin := origin_or_empty(url)):
                            yield origin
            advance(part.octets)


def captures_reader(reader: Reader) -> Reader:
    """Return a reader of the same file.

    For a WARC file, it reads captures instead of items. For a shard, it reads the works too."""
    kinds: dict[str, type[Reader]] = {"warc": warc.Reader, "tar": WorksReader}
    kind = kinds.get(format_of(reader.path))
    return kind(reader.path) if kind else reader


def check_columns(readers: Iterable[Reader], columns: Columns) -> None:
    """Check the columns of tables that have rows.

    DatasetError: a table lacks a field that the operator names, or has no field with URLs."""
    for reader in readers:
        if names := getattr(reader, "column_names", ()):
            check_fields(columns, names)


def tag_dataset(
    inputs: Sequence[Path],
    output: Path,
    judge: Judge,
    making: Making = Making(),  # noqa: B008  # immutable
    options: JobOptions = JobOptions(),  # noqa: B008  # immutable
    *,
    sources: Sequence[str] = (),
) -> Tagged:
    """Write datasets with tags into a file.

    Return counts of all records. `inputs`: files and folders. `sources`: the names of the sources
    of the policies, for the manifest.

    DatasetError: a file cannot be used or written. `output` is then unchanged."""
    readers = list(map(captures_reader, open_readers(inputs)))
    if clash := first_of(
        (output, *side_files(output)), files_of(reader.path for reader in readers)
    ):
        raise DatasetError(f"{clash} is read from: give the output another name")
    check_outside(output, inputs)
    check_columns(readers, making.columns)
    entering = open_writer(output, [reader.path for reader in readers])
    evidence = evidence_files(output, options)
    with (
        UnreadLines(beside(output, "unreadable")) as unread,
        PendingLines(beside(output, APART)) as apart,
    ):
        with evidence as collector, manifest.restored_on_error(output), entering as writer:
            tagger = TagPass(judge, making, with_evidence=options.evidence is not None)
            judged, options = judged_readers(readers, tagger, options)
            tagged = write_tagged(judged, writer, (unread, apart, collector), tagger, options)
            unread.replace()
            apart.replace()
            manifest.retract(output, is_replaced=True)
        manifest.write(
            output,
            describe(output, history(judge, tagged, sources), tagged.composition)
            | run_facts(options),
        )
    return tagged


def write_tagged(
    readers: Sequence[Reader],
    writer: Writer,
    aside: tuple[UnreadLines, PendingLines, Collector | None],
    tagger: TagPass,
    options: JobOptions,
) -> Tagged:
    """Write records with their tags.

    `aside`: the side files for unreadable records and for records that are kept apart, and the
    collector of evidence. The caller has entered `writer` and `aside` by `with`."""
    tagged, (unread, apart, collector) = Tagged(), aside

    def keep_apart(notes: list[Note]) -> None:
        for note in notes:
            apart.put(note["record"])

    sinks = Sinks(tagged.merge, keep_apart, unread.add, options.progress)
    if collector:
        sinks = collector.sinks(sinks)
    run(
        tagger,
        readers,
        sinks,
        writer=writer,
        workers=options.workers,
        executor=options.executor,
    )
    tagged.counts.unreadable += unread.records
    if collector:
        collector.finish()
    return tagged


def history(judge: Judge, tagged: Tagged, sources: Sequence[str]) -> History:
    """Return the history of tagging for the manifest."""
    question = judge.question
    registries = [
        {"name": registry.name, "sha256": registry.sha256, "entries": registry.entries}
        for registry in question.agent.opt_outs.registries
    ]
    moments = {
        "capture": ("when they were captured",),
        "today": (f"on {question.now:%Y-%m-%d}",),
        "both": ("when they were captured,", f"on {question.now:%Y-%m-%d}"),
    }[question.as_of]
    return History(
        description=f"Records of others, tagged by what their sites said {' and '.join(moments)}.",
        uses=question.agent.uses,
        exported_at=question.now,
        counts={
            "read": tagged.read,
            "tagged": tagged.counts.kept,
            "verdicts": dict(sorted(tagged.verdicts.items())),
            "apart": tagged.apart,
            "leftOut": dict(tagged.left_out.most_common()),
            "unreadable": tagged.counts.unreadable,
            "undated": tagged.undated,
        },
        vocabulary={
            name: words.revision for name, words in question.agent.vocabulary.words.items()
        },
        defaults={use: verdict.value for use, verdict in question.agent.defaults.items()},
        tagged={
            "agent": question.agent.token,
            "capturedBy": question.captured_by or dict(tagged.crawlers.most_common(MAX_CRAWLERS)),
            **({"capturedAt": question.captured_at.isoformat()} if question.captured_at else {}),
            "also": list(question.also),
            "asOf": question.as_of,
            "missing": question.missing,
            "policies": [*map(without_passwords, sources)],
            **({"registries": registries} if registries else {}),
        },
    )


MAX_CRAWLERS = 100  # the maximum number of User-Agents that a manifest lists
