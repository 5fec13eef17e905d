"""The summary of rows that are in the output of a pass as columns, and never become records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.counts.summary import Summary
from comity.dataset.files.columns.arrow_schema import EXTRA, kinds_of
from comity.dataset.files.columns.arrow_types import ArrowMoment
from comity.dataset.files.field_types import Fields, taken_for_date
from comity.dataset.permissions.terms import ARRANGEMENT
from comity.dataset.records import LICENSE

_MOMENT = ArrowMoment("+00:00")


def note(summary: Summary, batch: pa.RecordBatch, name: str) -> None:
    """Note in a summary that all rows of a batch are kept.

    `name`: the column with the tags of the rows. All of these tags must be valid."""
    tag = batch.column(name)
    agents = {
        entry["values"]: entry["counts"] for entry in tag.field("agent").value_counts().to_pylist()
    }
    summary.counts.keep_several(batch.num_rows, agents, _policies(tag))
    summary.arrangements.update(_arrangements(tag.field("reasons")))
    summary.licenses |= dict.fromkeys(_licenses(batch))
    summary.fields.tags[name] = None
    _note_fields(summary.fields, batch)


def _licenses(batch: pa.RecordBatch) -> list[str]:
    """Return the licenses that an earlier export has listed in the column LICENSE.

    [] if this column has other content than lists of texts."""
    if LICENSE not in batch.schema.names or not _is_list(batch.column(LICENSE)):
        return []
    texts = pc.list_flatten(batch.column(LICENSE)).drop_null()
    licenses: list[str] = (
        texts.unique().to_pylist() if texts.type in (pa.string(), pa.large_string()) else []
    )
    return licenses


def _is_list(values: pa.Array) -> bool:
    return bool(pa.types.is_list(values.type) or pa.types.is_large_list(values.type))


def _arrangements(reasons: pa.ListArray) -> dict[str, int]:
    """Return arrangement -> number of rows that it permits."""
    structs, rows = pc.list_flatten(reasons), pc.list_parent_indices(reasons)
    chosen = pc.equal(structs.field("rule"), ARRANGEMENT)
    distinct = (
        pa.table({"row": rows, "text": structs.field("text")})
        .filter(chosen)
        .group_by(["row", "text"])
        .aggregate([])
    )
    return {
        entry["values"]: entry["counts"] for entry in distinct["text"].value_counts().to_pylist()
    }


def _policies(tag: pa.StructArray) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the URL and the copy of each policy file. Equal copies are yielded once."""
    policies = pc.list_flatten(tag.field("policies"))
    names = ("status", "sha256", "fetched_at")
    copies = pa.table(
        {"url": policies.field("url"), **{name: policies.field(name) for name in names}}
    )
    if (earlier := policies.field("earlier")).null_count < len(earlier):
        others, of_files = pc.list_flatten(earlier), pc.list_parent_indices(earlier)
        columns = {
            "url": policies.field("url").take(of_files),
            **{name: others.field(name) for name in names},
        }
        copies = pa.concat_tables([copies, pa.table(columns)])
    copies = copies.group_by(["url", "status", "sha256"], use_threads=False).aggregate(
        [("fetched_at", "max")]
    )
    moments = _MOMENT.values(copies["fetched_at_max"].combine_chunks())
    values = (copies[name].to_pylist() for name in ("url", "status", "sha256"))
    for url, status, sha256, fetched_at in zip(*values, moments, strict=True):
        yield url, {"status": status, "sha256": sha256, "fetched_at": fetched_at}


def _note_fields(fields: Fields, batch: pa.RecordBatch) -> None:
    """Note the fields of rows.

    One value of a column shows its type, and one list with a member shows the type of its members.
    Texts are noted one by one, because each may be a date or not."""
    for text in batch.column(EXTRA).drop_null().unique().to_pylist():
        fields.note(json.loads(text))  # fields with an explicit null
    for name, kind in kinds_of(batch.schema).items():
        values = batch.column(name).drop_null()
        if _is_list(values):
            with_member = pc.list_parent_indices(values).filter(pc.list_flatten(values).is_valid())
            values = values.slice(with_member[0].as_py() if len(with_member) else 0, 1)
        elif not taken_for_date(name):
            values = values.slice(0, 1)
        for value in kind.values(values):
            fields.note({name: value})
