"""The pass of an export over columns instead of records: what the prefilter decides never becomes a record.

export_columns(batch, number, prefilter, judge) -> Outcome      what `judge` gives for the records of the batch, as columns"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.counts.column_summary import note
from comity.dataset.counts.summary import Summary
from comity.dataset.export.prefilter import Prefilter
from comity.dataset.files.arrow_schema import Rows, adapted, decode, proper
from comity.dataset.files.tag_columns import tag_column
from comity.dataset.passes import Outcome
from comity.dataset.records import ATTRIBUTION, INSTEAD, LICENSE, Record, Unreadable

_RESOURCES = pa.list_(
    pa.struct([(name, pa.string()) for name in ("role", "extract", "url", "content")])
)
_ADDED = {LICENSE: pa.list_(pa.string()), ATTRIBUTION: _RESOURCES, INSTEAD: _RESOURCES}


Judge = Callable[
    [Record, Summary], Record | None
]  # the record as it may be used, after it was counted; None: it may not


def export_columns(
    batch: pa.RecordBatch, number: int, prefilter: Prefilter, judge: Judge
) -> Outcome:
    """Return what may be used of a batch, and counts of the rest. `number`: of the first row in its file."""
    exported, sorted_rows = Summary(), prefilter.sort(batch)
    for refusal in sorted_rows.refusals.drop_null().value_counts().to_pylist():
        exported.counts.drop(refusal["values"], refusal["counts"])
    schema = schema_of_export(batch.schema)
    staying = adapted(batch.filter(sorted_rows.permitted), schema)
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
        elif (usable := judge(record, exported)) is not None:
            judged.append(usable)
            rows_of_judged.append(row)
    if not judged:
        return Outcome(Rows(staying), exported, unreadable=unreadable)
    rows = pc.indices_nonzero(sorted_rows.permitted).to_pylist() + rows_of_judged
    return Outcome(
        Rows(staying, judged, pc.sort_indices(pa.array(rows, pa.int64()))),
        exported,
        unreadable=unreadable,
    )


def schema_of_export(schema: pa.Schema) -> pa.Schema:
    """The schema of what comes out: with columns for any tag, and for what an export adds to records."""
    schema = proper(schema)
    return pa.schema(
        [
            *schema,
            *(pa.field(name, type_) for name, type_ in _ADDED.items() if name not in schema.names),
        ]
    )
