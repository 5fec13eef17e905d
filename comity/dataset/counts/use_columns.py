"""Count the uses in whole columns. Rows with a visibly valid tag never become records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.counts.use_counts import (
    MONTH,
    ORIGIN,
    SOON,
    Tally,
    UseCounts,
    month_of,
    origin_of,
)
from comity.dataset.files.columns.arrow_schema import decode, kinds_of
from comity.dataset.files.columns.tag_columns import Flat, doubtful_rows, numbers, tag_column
from comity.dataset.permissions.expiry import EXPIRED
from comity.dataset.records import Record, Unreadable
from comity.dataset.tags.sources import TagSource


def count_columns(
    batch: pa.RecordBatch,
    number: int,
    counts: UseCounts,
    tags: TagSource,
    uses: frozenset[str],
    now: datetime,
    read: Callable[[Record], None],
) -> list[Unreadable]:
    """Count the uses of a batch, and return the rows that cannot be read.

    `number`: the number of the batch's first row in the file. `uses`: the uses to count. Empty: all
    uses in the tags. `read`: counts a record. It is called for each row for which the columns do
    not show that the tag is valid."""
    name, rows = tag_column(batch.schema, tags), numbers(batch.num_rows)
    doubtful = rows if name is None else doubtful_rows(batch, batch.column(name))
    if doubtful is None:
        _count(batch, name, counts, uses, now)
        return []
    is_doubtful = pc.is_in(rows, doubtful)
    sure = batch.filter(pc.invert(is_doubtful))
    if sure.num_rows:
        _count(sure, name, counts, uses, now)
    unreadable = []
    rows_of_records = [number + row for row in rows.filter(is_doubtful).to_pylist()]
    for record in decode(batch.filter(is_doubtful), rows_of_records):
        if isinstance(record, Unreadable):
            unreadable.append(record)
        else:
            read(record)
    return unreadable


def _count(
    batch: pa.RecordBatch, name: Any, counts: UseCounts, asked: frozenset[str], now: datetime
) -> None:
    """Count rows with valid tags. `name`: the column with the tags."""
    tag, origins = (
        batch.column(name),
        list(map(origin_of, _values(batch, "final_url"), _values(batch, "url"))),
    )
    counts.records += batch.num_rows
    for origin in set(origins):
        counts.origins.add(origin)
    reasons, uses = Flat(tag.field("reasons")), Flat(tag.field("uses"))
    starts = pc.subtract(pc.cumulative_sum(reasons.lengths), reasons.lengths)
    rules = reasons["rule"].take(
        pc.add(pc.list_element(uses["because"], 0), starts.take(uses.rows))
    )
    is_allowed = pc.equal(uses["verdict"], "allow")
    has_ended = pc.and_(is_allowed, _is_until(uses["until"], now))
    is_usable = pc.and_not(is_allowed, has_ended)
    ends_soon = pc.and_(is_usable, _is_until(uses["until"], now + SOON))
    groups = [""] * batch.num_rows
    if counts.by == ORIGIN:
        groups = origins
    elif counts.by == MONTH:
        groups = list(map(month_of, _values(batch, "fetched_at")))
    columns = (uses.rows, uses["use"], pc.if_else(has_ended, EXPIRED, rules), is_usable, ends_soon)
    rows, *others = (column.to_pylist() for column in columns)
    alike = Counter(zip((groups[row] for row in rows), *others, strict=True))
    for (group, use, rule, may_use, is_soon), number in alike.items():
        if not asked or use in asked:
            tally = Tally(
                number if may_use else 0, 0 if may_use else number, number if is_soon else 0
            )
            counts.count(group, use, rule, tally)


def _is_until(moments: pa.Array, moment: datetime) -> pa.BooleanArray:
    """Return True for each row with a moment at or before `moment`. False for null."""
    return pc.fill_null(pc.less_equal(moments, pa.scalar(moment, pa.timestamp("us", "UTC"))), False)


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    """Return the values of a column as records have them."""
    if name not in batch.schema.names:
        return [None] * batch.num_rows
    values: list[Any] = kinds_of(batch.schema)[name].values(batch.column(name))
    return values
