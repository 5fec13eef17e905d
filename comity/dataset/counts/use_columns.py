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
    SOON,
    Place,
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
        list(map(origin_of, values_of(batch, "final_url"), values_of(batch, "url"))),
    )
    months = [""] * batch.num_rows
    if MONTH in counts.tables:
        months = list(map(month_of, values_of(batch, "fetched_at")))
    places = list(map(Place, origins, months))
    for place, number in Counter(places).items():
        counts.note(place, number)
    counts.unread += pc.sum(tag.field("is_unread")).as_py() or 0
    reasons, uses = Flat(tag.field("reasons")), Flat(tag.field("uses"))
    starts = pc.subtract(pc.cumulative_sum(reasons.lengths), reasons.lengths)
    rules = reasons["rule"].take(
        pc.add(pc.list_element(uses["because"], 0), starts.take(uses.rows))
    )
    is_allowed = pc.equal(uses["verdict"], "allow")
    has_ended = pc.and_(is_allowed, _is_until(uses["until"], now))
    is_usable = pc.and_not(is_allowed, has_ended)
    ends_soon = pc.and_(is_usable, _is_until(uses["until"], now + SOON))
    rows, names, *decisions = (
        column.to_pylist()
        for column in (
            *(uses.rows, uses["use"], is_usable, ends_soon),
            pc.if_else(has_ended, EXPIRED, rules),
        )
    )
    alike = Counter(zip(names, *decisions, strict=True))
    for (use, may_use, is_soon, rule), number in alike.items():
        if not asked or use in asked:
            counts.count(use, rule, _tally(number, may_use=may_use, is_soon=is_soon))
    for by in counts.places:
        groups = [place.group(by) for place in places]
        of_rows = [groups[row] for row in rows]
        for (group, use, may_use, is_soon), number in Counter(
            zip(of_rows, names, *decisions[:2], strict=True)
        ).items():
            if not asked or use in asked:
                tally = _tally(number, may_use=may_use, is_soon=is_soon)
                counts.tables[by][group].add(use, tally)


def _tally(records: int, *, may_use: bool, is_soon: bool) -> Tally:
    """Return the tally of records with equal verdicts."""
    return Tally(records if may_use else 0, 0 if may_use else records, records if is_soon else 0)


def _is_until(moments: pa.Array, moment: datetime) -> pa.BooleanArray:
    """Return True for each row with a moment at or before `moment`. False for null."""
    return pc.fill_null(pc.less_equal(moments, pa.scalar(moment, pa.timestamp("us", "UTC"))), False)


def values_of(batch: pa.RecordBatch, name: str) -> list[Any]:
    """Return the values of a column as records have them."""
    if name not in batch.schema.names:
        return [None] * batch.num_rows
    values: list[Any] = kinds_of(batch.schema)[name].values(batch.column(name))
    return values
