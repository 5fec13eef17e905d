"""The evidence about rows of columns, by Arrow columns: no row becomes a record.

decide(tags, uses)          the statements that decide, as `decisions` returns them for one tag
Rows(...)                   rows, and the index of the tag of each
evidence_of_rows(...)       the evidence about a batch"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.evidence.schema import MOMENT
from comity.dataset.evidence.tables import COPY, COUNTS, REFUSALS, Evidence, plain
from comity.dataset.files.columns.tag_columns import Flat, numbers

_OF_DECISION = (
    *("use", "rule", "agent", "line", "policy_url", "policy_sha256", "policy_fetched_at"),
)


class Rows(NamedTuple):
    """Rows of a batch."""

    numbers: Sequence[int]
    """The number of each row."""
    urls: Sequence[str]
    """The URL of the page."""
    moments: Sequence[datetime | None]
    """The moment of the capture."""
    indices: Sequence[int]
    """The index of the tag."""
    tags: pa.StructArray
    """The tags. Each has at least one row."""
    dropped: bool = False
    """True if the rows are not in the output."""


def evidence_of_rows(rows: Rows, uses: Sequence[str], others: Evidence) -> Evidence:
    """Return the evidence about rows, and that about other records of the batch."""
    decided = decide(rows.tags, uses)
    refused = _refused(rows, decided)
    if others.refused.num_rows:
        refused = pa.concat_batches([refused, others.refused])
        refused = refused.take(pc.sort_indices(refused.column(0)))
    counts = Counter(rows.indices)
    weights = pa.array(map(counts.__getitem__, range(len(rows.tags))), pa.int64())
    named = [] if rows.dropped else _named(rows.tags.field("policies"), weights)
    by_copy = _by_copy(decided, weights, is_dropped=rows.dropped)
    return Evidence(refused, pa.concat_batches([*named, by_copy, others.counts]))


def decide(tags: pa.StructArray, uses: Sequence[str]) -> pa.RecordBatch:
    """Return the decisions about these uses, in the order of the tags and of the uses.

    The column `tag` has the index of the tag. The others are the fields of Decision."""
    listed = Flat(tags.field("uses"))
    place = pc.index_in(listed["use"], pa.array(uses, pa.string()))
    asked = place.is_valid()
    order = pc.sort_indices(
        pa.table({"tag": listed.rows.filter(asked), "place": place.filter(asked)}),
        [("tag", "ascending"), ("place", "ascending")],
    )
    tag = listed.rows.filter(asked).take(order)
    use = listed.values.filter(asked).take(order)
    reasons = Flat(tags.field("reasons"))
    starts = pc.subtract(pc.cumulative_sum(reasons.lengths), reasons.lengths)
    first = pc.add(pc.list_element(use.field("because"), 0), starts.take(tag))
    reason = reasons.values.take(first)
    status, sha256, fetched_at = _copies_of(tags.field("policies"), tag, reason)
    return pa.record_batch(
        {
            "tag": tag,
            "use": use.field("use"),
            "verdict": use.field("verdict"),
            "rule": reason.field("rule"),
            "agent": pc.coalesce(reason.field("agent"), tags.field("agent").take(tag)),
            "line": _lines(reason),
            "policy_url": reason.field("url"),
            "policy_sha256": sha256,
            "policy_fetched_at": fetched_at,
            "policy_status": status,
        }
    )


def _lines(reason: pa.StructArray) -> pa.StringArray:
    """Return the place of each statement and its text, as `line_of` does."""
    number, part = reason.field("line"), pc.fill_null(reason.field("part"), "")
    line = pc.binary_join_element_wise("line", number.cast(pa.string()), " ")
    line = pc.if_else(pc.greater(number, 0), line, "")
    place = _joined(part, line, ", ")
    return _joined(place, reason.field("text"), ": ")


def _joined(first: pa.StringArray, second: pa.StringArray, separator: str) -> pa.StringArray:
    """Join the texts that are not empty."""
    both = pc.binary_join_element_wise(first, second, separator)
    return pc.if_else(pc.equal(first, ""), second, pc.if_else(pc.equal(second, ""), first, both))


def _copies_of(
    policies: pa.ListArray, tag: pa.Int64Array, reason: pa.StructArray
) -> list[pa.Array]:
    """Return the status, SHA-256 and fetch time of the copy with each statement.

    They are null if the tag names no copy for its URL."""
    files = Flat(policies)
    copies = {name: files[name] for name in COPY[1:]}
    found = pc.index_in(_keys(tag, reason.field("url")), _keys(files.rows, files["url"]))
    dated = reason.field("fetched_at")
    if dated.null_count < len(dated):  # such tags have several copies of a file
        earlier = Flat(files["earlier"])
        keys = pa.concat_arrays(
            [
                _keys(files.rows, files["url"], files["fetched_at"]),
                _keys(
                    files.rows.take(earlier.rows),
                    files["url"].take(earlier.rows),
                    earlier["fetched_at"],
                ),
            ]
        )
        copies = {name: pa.concat_arrays([copies[name], earlier[name]]) for name in copies}
        exact = pc.index_in(_keys(tag, reason.field("url"), dated), keys)
        found = pc.coalesce(pc.if_else(dated.is_valid(), exact, None), found)
    return [copies[name].take(found) for name in COPY[1:]]


def _keys(rows: pa.Array, urls: pa.Array, moments: pa.Array | None = None) -> pa.StringArray:
    texts = [rows.cast(pa.string()), urls]
    if moments is not None:
        texts.append(pc.fill_null(moments.cast(pa.int64()).cast(pa.string()), ""))
    return pc.binary_join_element_wise(*texts, " ")


def _refused(rows: Rows, decided: pa.RecordBatch) -> pa.RecordBatch:
    denies = decided.filter(pc.equal(decided["verdict"], "deny"))
    of_tag = Counter(denies["tag"].to_pylist())
    offsets = [0, *accumulate(of_tag[tag] for tag in range(len(rows.tags)))]
    by_tag = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), numbers(denies.num_rows))
    by_row = Flat(by_tag.take(pa.array(rows.indices, pa.int64())))
    chosen = denies.take(by_row.values)
    arrays = {
        "number": pa.array(rows.numbers, pa.int64()).take(by_row.rows),
        "record": pa.nulls(len(by_row.rows), pa.string()),
        "url": _texts(rows.urls).take(by_row.rows),
        "captured_at": pa.array(rows.moments, MOMENT).take(by_row.rows),
        "dropped": pa.repeat(pa.scalar(rows.dropped), len(by_row.rows)),
        **{name: chosen[name] for name in _OF_DECISION},
    }
    return pa.RecordBatch.from_arrays([arrays[name] for name in REFUSALS.names], schema=REFUSALS)


def _texts(values: Sequence[str]) -> pa.StringArray:
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        return pa.array(map(plain, values), pa.string())


def _named(policies: pa.ListArray, weights: pa.Int64Array) -> list[pa.RecordBatch]:
    """Return the counts of the records whose tags name each copy. A copy may be repeated."""
    files = Flat(policies)
    records = weights.take(files.rows)
    batches = [_counts({name: files[name] for name in COPY}, records)]
    if files["earlier"].null_count < len(files["earlier"]):
        earlier = Flat(files["earlier"])
        copies = {name: earlier[name] for name in COPY[1:]} | {
            "url": files["url"].take(earlier.rows)
        }
        batches.append(_counts(copies, records.take(earlier.rows)))
    return batches


def _by_copy(
    decided: pa.RecordBatch, weights: pa.Int64Array, *, is_dropped: bool
) -> pa.RecordBatch:
    """Return the counts of the decisions by statements of each copy."""
    decided = decided.filter(decided["policy_status"].is_valid())
    denies = pc.equal(decided["verdict"], "deny")
    if is_dropped:
        decided, denies = decided.filter(denies), denies.filter(denies)
    records = weights.take(decided["tag"])
    columns = {
        **{name: decided[f"policy_{name}"] for name in COPY},
        **{name: decided[name] for name in ("use", "verdict")},
        **({"records": pc.multiply(records, 0)} if is_dropped else {}),
    }
    return _counts(columns, records, pc.if_else(denies, records, 0))


def _counts(
    columns: dict[str, pa.Array], records: pa.Int64Array, refused: pa.Int64Array | None = None
) -> pa.RecordBatch:
    length = len(records)
    arrays = {
        "use": pa.nulls(length, pa.string()),
        "verdict": pa.nulls(length, pa.string()),
        "records": records,
        "refused": pa.repeat(pa.scalar(0, pa.int64()), length) if refused is None else refused,
        **columns,
    }
    return pa.RecordBatch.from_arrays([arrays[name] for name in COUNTS.names], schema=COUNTS)
