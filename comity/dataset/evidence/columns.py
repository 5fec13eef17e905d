"""The evidence about rows of columns, by their distinct tags.

encode(tags, uses)              the decisions of tags, as an array of DECISIONS
evidence_of_columns(...)        the evidence about a batch"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.evidence.decisions import Decision, Found, decisions
from comity.dataset.evidence.schema import MOMENT
from comity.dataset.evidence.tables import COPY, COUNTS, REFUSALS, Evidence, evidence_of, plain

# The fields of Decision.
DECISIONS = pa.list_(
    pa.struct(
        [
            *((name, pa.string()) for name in Decision._fields[:6]),
            ("policy_fetched_at", MOMENT),
            ("policy_status", pa.int64()),
        ]
    )
)
_TEXTS = ("use", "rule", "line", "policy_url", "policy_sha256", "policy_fetched_at")


def encode(tags: Iterable[Mapping[str, Any] | None], uses: Sequence[str]) -> pa.ListArray:
    """Return the decisions of each tag about these uses. For None, there are no decisions."""
    return pa.array(
        [
            [decision._asdict() for decision in decisions(tag, uses)] if tag is not None else []
            for tag in tags
        ],
        DECISIONS,
    )


def evidence_of_columns(
    rows: Sequence[int],
    urls: Sequence[str],
    moments: Sequence[datetime | None],
    indices: Sequence[int],
    counts: Mapping[int, int],
    tags: pa.StructArray,
    decided: pa.ListArray,
    dropped: Found,
) -> Evidence:
    """Return the evidence about a batch.

    `rows`, `urls`, `moments`: the number, URL and capture date of each row that stays. `indices`:
    the index of its tag. `counts`: the number of rows with each tag. `tags`: distinct tags.
    `decided`: the decisions of each tag. `dropped`: the other rows."""
    others = evidence_of(dropped)
    refused = _refused(rows, urls, moments, decided.take(pa.array(indices, pa.int64())))
    if others.refused.num_rows:
        refused = pa.concat_batches([refused, others.refused])
        refused = refused.take(pc.sort_indices(refused.column(0)))
    used, weights = pa.array([*counts], pa.int64()), pa.array([*counts.values()], pa.int64())
    batches = [
        *_named(tags.field("policies").take(used), weights),
        _decided(decided.take(used), weights),
        others.counts,
    ]
    return Evidence(refused, pa.concat_batches(batches))


def _refused(
    rows: Sequence[int],
    urls: Sequence[str],
    moments: Sequence[datetime | None],
    decided: pa.ListArray,
) -> pa.RecordBatch:
    flat, parents = pc.list_flatten(decided), pc.list_parent_indices(decided)
    denies = pc.equal(flat.field("verdict"), "deny")
    parents = parents.filter(denies)
    columns = {name: flat.field(name).filter(denies) for name in _TEXTS}
    arrays = {
        "number": pa.array(rows, pa.int64()).take(parents),
        "record": pa.nulls(len(parents), pa.string()),
        "url": _texts(urls).take(parents),
        "captured_at": pa.array(moments, MOMENT).take(parents),
        "dropped": pa.repeat(pa.scalar(value=False), len(parents)),
        **columns,
    }
    return pa.RecordBatch.from_arrays([arrays[name] for name in REFUSALS.names], schema=REFUSALS)


def _texts(values: Sequence[str]) -> pa.StringArray:
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        return pa.array(map(plain, values), pa.string())


def _named(policies: pa.ListArray, weights: pa.Int64Array) -> list[pa.RecordBatch]:
    """Return the counts of the records whose tags name each copy. A copy may be repeated."""
    flat, parents = pc.list_flatten(policies), pc.list_parent_indices(policies)
    batches = [_counts({name: flat.field(name) for name in COPY}, weights.take(parents))]
    earlier = flat.field("earlier")
    if earlier.null_count < len(earlier):
        copies, of_files = pc.list_flatten(earlier), pc.list_parent_indices(earlier)
        names = {name: copies.field(name) for name in COPY[1:]}
        batches.append(
            _counts(
                {"url": flat.field("url").take(of_files), **names},
                weights.take(parents.take(of_files)),
            )
        )
    return batches


def _decided(decided: pa.ListArray, weights: pa.Int64Array) -> pa.RecordBatch:
    """Return the counts of the decisions by statements of each copy."""
    flat, parents = pc.list_flatten(decided), pc.list_parent_indices(decided)
    is_by_copy = flat.field("policy_status").is_valid()
    flat, weights = flat.filter(is_by_copy), weights.take(parents.filter(is_by_copy))
    columns = {
        **{name: flat.field(f"policy_{name}") for name in COPY},
        **{name: flat.field(name) for name in ("use", "verdict")},
    }
    denies = pc.equal(flat.field("verdict"), "deny")
    return _counts(columns, weights, pc.if_else(denies, weights, 0))


def _counts(
    columns: Mapping[str, pa.Array], records: pa.Int64Array, refused: pa.Int64Array | None = None
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
