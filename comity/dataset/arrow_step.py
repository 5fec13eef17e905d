"""A pass over columns as a step of other programs. It maps an Arrow batch or table to a new one."""

from __future__ import annotations

from typing import TypeVar, cast

import pyarrow as pa

from comity.dataset.counts.summary import Summary
from comity.dataset.files.columns.arrow_foreign import check_columns, readable, valid
from comity.dataset.files.columns.arrow_schema import adapt
from comity.dataset.passes import ColumnWork
from comity.dataset.records import Unreadable

Table = TypeVar("Table", pa.RecordBatch, pa.Table)


def pass_through(work: ColumnWork, batch: Table, schema: pa.Schema, summary: Summary) -> Table:
    """Return the output of a pass over a batch or table, as a batch or table with this schema.

    `summary`: the results of the pass are merged into it. The output lacks unreadable rows, which
    are counted in `summary`."""
    is_table = isinstance(batch, pa.Table)
    outputs = []
    check_columns(batch.schema)
    for record_batch in batch.to_batches() if is_table else [batch]:
        for part, number in valid(readable(record_batch), 1):
            if isinstance(part, Unreadable):
                summary.counts.unreadable += 1
                continue
            outcome = work.columns(part, number)
            summary.merge(outcome.result)
            summary.counts.unreadable += len(outcome.unreadable)
            outputs.append(adapt(outcome.records.columns, schema))
    table = pa.Table.from_batches(outputs, schema)
    if is_table:
        return cast(Table, table)
    [combined] = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema)]
    return cast(Table, combined)
