"""The pass of an export over columns. Rows that the prefilter decides never become records.

    export_columns(batch, number, prefilter, judge) -> Outcome

The outcome is the same as if `judge` had judged each record of the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.counts.column_summary import note
from comity.dataset.counts.summary import Summary
from comity.dataset.evidence.columns import Rows as RowsOfEvidence
from comity.dataset.evidence.columns import evidence_of_rows
from comity.dataset.evidence.decisions import Found
from comity.dataset.evidence.tables import evidence_of
from comity.dataset.export.prefilter import Prefilter
from comity.dataset.files.columns.arrow_foreign import proper
from comity.dataset.files.columns.arrow_schema import Rows, adapt, decode, kinds_of
from comity.dataset.files.columns.tag_columns import tag_column
from comity.dataset.passes import Outcome
from comity.dataset.records import (
    ATTRIBUTION,
    INSTEAD,
    LICENSE,
    PAGE_URLS,
    Record,
    Unreadable,
    moment_of,
)

_RESOURCES = pa.list_(
    pa.struct([(name, pa.string()) for name in ("role", "extract", "url", "content")])
)
_ADDED = {LICENSE: pa.list_(pa.string()), ATTRIBUTION: _RESOURCES, INSTEAD: _RESOURCES}


# A function that counts a record in the summary, notes it in the evidence under a number, and
# returns the record as it may be used. It returns None if the record may not be used.
Judge = Callable[[Record, int, Summary, Found], Record | None]


def export_columns(
    batch: pa.RecordBatch,
    number: int,
    prefilter: Prefilter,
    judge: Judge,
    *,
    with_evidence: bool = False,
) -> Outcome:
    """Return the usable rows of a batch, with counts of all rows.

    `number`: the number of the batch's first row in the file."""
    exported, sorted_rows, found = Summary(), prefilter.sort(batch), Found(prefilter.uses)
    if with_evidence:
        sorted_rows = sorted_rows.without_others()
    for refusal in sorted_rows.refusals.drop_null().value_counts().to_pylist():
        exported.counts.drop(refusal["values"], refusal["counts"])
    schema = schema_of_export(batch.schema)
    staying = adapt(batch.filter(sorted_rows.permitted), schema)
    name = tag_column(batch.schema, prefilter.tags)
    if staying.num_rows and name:
        note(exported, staying, name)
    judged: list[Record] = []
    rows_of_judged: list[int] = []
    unreadable = []
    rest = pc.indices_nonzero(sorted_rows.rest).to_pylist()
    for row, record in zip(
        rest, decode(batch.filter(sorted_rows.rest)) if rest else (), strict=True
    ):
        if isinstance(record, Unreadable):
            unreadable.append(record._replace(position=f"row {number + row}"))
        elif (usable := judge(record, number + row, exported, found)) is not None:
            judged.append(usable)
            rows_of_judged.append(row)
    evidence = None
    if with_evidence:
        evidence = evidence_of(found)
        for is_in, dropped in ((sorted_rows.permitted, False), (sorted_rows.is_refused, True)):
            chosen = pc.indices_nonzero(is_in).to_pylist()
            if chosen and name:
                rows_of_tags = _rows(batch.filter(is_in), name, [number + row for row in chosen])
                evidence = evidence_of_rows(
                    rows_of_tags._replace(dropped=dropped), prefilter.uses, evidence
                )
    if not judged:
        return Outcome(Rows(staying), exported, unreadable=unreadable, evidence=evidence)
    rows = pc.indices_nonzero(sorted_rows.permitted).to_pylist() + rows_of_judged
    return Outcome(
        Rows(staying, judged, pc.sort_indices(pa.array(rows, pa.int64()))),
        exported,
        unreadable=unreadable,
        evidence=evidence,
    )


def _rows(batch: pa.RecordBatch, name: str, numbers: list[int]) -> RowsOfEvidence:
    """Return rows for the evidence. `name`: the column with their tags."""
    kinds = kinds_of(batch.schema)

    def values(column: str) -> list[Any]:
        return (
            kinds[column].values(batch.column(column))
            if column in kinds
            else [None] * batch.num_rows
        )

    pairs = zip(*map(values, PAGE_URLS), strict=True)
    urls = [next((url for url in pair if isinstance(url, str)), "") for pair in pairs]
    moments = [moment_of(moment) for moment in values("fetched_at")]
    return RowsOfEvidence(numbers, urls, moments, range(batch.num_rows), batch.column(name))


def schema_of_export(schema: pa.Schema) -> pa.Schema:
    """Return the schema of an export, with columns for tags and for fields that an export adds."""
    schema = proper(schema)
    return pa.schema(
        [
            *schema,
            *(pa.field(name, type_) for name, type_ in _ADDED.items() if name not in schema.names),
        ]
    )
