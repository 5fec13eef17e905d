"""The pass of an export over columns. Rows that the prefilter decides never become records.

    export_columns(batch, number, prefilter, judge) -> Outcome

The outcome is the same as if `judge` had judged each record of the batch."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.counts.column_summary import note
from comity.dataset.counts.summary import Summary
from comity.dataset.export.prefilter import Prefilter
from comity.dataset.files.columns.arrow_foreign import proper
from comity.dataset.files.columns.arrow_schema import Rows, adapt, decode
from comity.dataset.files.columns.tag_columns import tag_column
from comity.dataset.passes import Outcome
from comity.dataset.records import ATTRIBUTION, INSTEAD, LICENSE, Record, Unreadable

_RESOURCES = pa.list_(
    pa.struct([(name, pa.string()) for name in ("role", "extract", "url", "content")])
)
_ADDED = {LICENSE: pa.list_(pa.string()), ATTRIBUTION: _RESOURCES, INSTEAD: _RESOURCES}


# A function that counts a record in the summary, and returns the record as it may be used. It
# returns None if the record may not be used.
Judge = Callable[[Record, Summary], Record | None]


def export_columns(
    batch: pa.RecordBatch, number: int, prefilter: Prefilter, judge: Judge
) -> Outcome:
    """Return the usable rows of a batch, with counts of all rows.

    `number`: the number of the batch's first row in the file."""
    exported, sorted_rows = Summary(), prefilter.sort(batch)
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
    """Return the schema of an export, with columns for tags and for fields that an export adds."""
    schema = proper(schema)
    return pa.schema(
        [
            *schema,
            *(pa.field(name, type_) for name, type_ in _ADDED.items() if name not in schema.names),
        ]
    )
