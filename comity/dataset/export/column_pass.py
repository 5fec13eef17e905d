"""The pass of an export over columns instead of records: what the prefilter decides never becomes a record.

export_columns(batch, number, prefilter, judge) -> Outcome      what `judge` gives for the records of the batch, as columns"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.export.prefilter import Prefilter, tag_column
from comity.dataset.files.arrow_schema import EXTRA, Rows, adapted, decode, kinds_of, proper
from comity.dataset.files.arrow_types import Moment
from comity.dataset.manifest import Fields, taken_for_date
from comity.dataset.passes import Outcome
from comity.dataset.permissions.terms import ARRANGEMENT
from comity.dataset.records import ATTRIBUTION, INSTEAD, LICENSE, Record, Unreadable
from comity.dataset.summary import Summary

_RESOURCES = pa.list_(pa.struct([(name, pa.string()) for name in ("role", "extract", "url", "content")]))
_MOMENT = Moment("+00:00")
_ADDED = {LICENSE: pa.list_(pa.string()), ATTRIBUTION: _RESOURCES, INSTEAD: _RESOURCES}


Judge = Callable[[Record, Summary], Record | None]  # the record as it may be used, after it was counted; None: it may not


def export_columns(batch: pa.RecordBatch, number: int, prefilter: Prefilter, judge: Judge) -> Outcome:
    """`number`: of the first row in its file."""
    exported, sorted_rows = Summary(), prefilter.sort(batch)
    for refusal in sorted_rows.refusals.drop_null().value_counts().to_pylist():
        exported.counts.drop(refusal["values"], refusal["counts"])
    schema = schema_of_export(batch.schema)
    staying = adapted(batch.filter(sorted_rows.permitted), schema)
    name = tag_column(batch.schema, prefilter.tags)
    if staying.num_rows and name:
        _note(exported, staying, name)
    judged: list[Record] = []
    rows_of_judged: list[int] = []
    unreadable = []
    rest = pc.indices_nonzero(sorted_rows.rest).to_pylist()
    for row, record in zip(rest, decode(batch.filter(sorted_rows.rest)) if rest else (), strict=True):
        if isinstance(record, Unreadable):
            unreadable.append(record._replace(position=f"row {number + row}"))
        elif (usable := judge(record, exported)) is not None:
            judged.append(usable)
            rows_of_judged.append(row)
    if not judged:
        return Outcome(Rows(staying), exported, unreadable=unreadable)
    rows = pc.indices_nonzero(sorted_rows.permitted).to_pylist() + rows_of_judged
    return Outcome(Rows(staying, judged, pc.sort_indices(pa.array(rows, pa.int64()))), exported, unreadable=unreadable)


def schema_of_export(schema: pa.Schema) -> pa.Schema:
    """The schema of what comes out: with columns for any tag, and for what an export adds to records."""
    schema = proper(schema)
    return pa.schema([*schema, *(pa.field(name, type_) for name, type_ in _ADDED.items() if name not in schema.names)])


# What a manifest tells of records that are kept as they are


def _note(exported: Summary, batch: pa.RecordBatch, name: str) -> None:
    """`name`: of the column with the tags."""
    tag = batch.column(name)
    agents = {entry["values"]: entry["counts"] for entry in tag.field("agent").value_counts().to_pylist()}
    exported.counts.keep_several(batch.num_rows, agents, _policies(tag))
    exported.arrangements.update(_arrangements(tag.field("reasons")))
    exported.licenses |= dict.fromkeys(_licenses(batch))
    exported.fields.tags[name] = None
    _note_fields(exported.fields, batch)


def _licenses(batch: pa.RecordBatch) -> list[str]:
    """Those that an export has named before, and no field of that name that is anything else."""
    if LICENSE not in batch.schema.names or not _is_list(batch.column(LICENSE)):
        return []
    texts = pc.list_flatten(batch.column(LICENSE)).drop_null()
    licenses: list[str] = texts.unique().to_pylist() if texts.type in (pa.string(), pa.large_string()) else []
    return licenses


def _is_list(values: pa.Array) -> bool:
    return bool(pa.types.is_list(values.type) or pa.types.is_large_list(values.type))


def _arrangements(reasons: pa.ListArray) -> dict[str, int]:
    """Arrangements -> how many rows each permitted."""
    structs, rows = pc.list_flatten(reasons), pc.list_parent_indices(reasons)
    chosen = pc.equal(structs.field("rule"), ARRANGEMENT)
    distinct = pa.table({"row": rows, "text": structs.field("text")}).filter(chosen).group_by(["row", "text"]).aggregate([])
    return {entry["values"]: entry["counts"] for entry in distinct["text"].value_counts().to_pylist()}


def _policies(tag: pa.StructArray) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each copy once."""
    policies = pc.list_flatten(tag.field("policies"))
    columns = {name: policies.field(name) for name in ("url", "status", "sha256", "fetched_at")}
    copies = pa.table(columns).group_by(["url", "status", "sha256"], use_threads=False).aggregate([("fetched_at", "max")])
    moments = _MOMENT.values(copies["fetched_at_max"].combine_chunks())
    for copy, fetched_at in zip(copies.select(["url", "status", "sha256"]).to_pylist(), moments, strict=True):
        yield copy.pop("url"), copy | {"fetched_at": fetched_at}


def _note_fields(fields: Fields, batch: pa.RecordBatch) -> None:
    """One value of a column tells its type, and one list with a member that of the list. Of texts each may be a date or none."""
    for text in batch.column(EXTRA).drop_null().unique().to_pylist():
        fields.note(json.loads(text))  # fields without a value
    for name, kind in kinds_of(batch.schema).items():
        values = batch.column(name).drop_null()
        if _is_list(values):
            with_member = pc.list_parent_indices(values).filter(pc.list_flatten(values).is_valid())
            values = values.slice(with_member[0].as_py() if len(with_member) else 0, 1)
        elif not taken_for_date(name):
            values = values.slice(0, 1)
        for value in kind.values(values):
            fields.note({name: value})
