"""Records in Arrow columns as lines of JSON.

The columns are joined as text. Only few rows become records for this.

    lines(rows) -> bytes        the same lines as for the records that `decode` returns"""

from __future__ import annotations

import json
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.files.columns.arrow_schema import EXTRA, NULLS_ONLY, Rows, decode, kinds_of
from comity.dataset.files.columns.arrow_types import members
from comity.dataset.files.json_pieces import join_pieces, object_of
from comity.dataset.records import Record, Unreadable, encode_line

# The maximum octets of columns to join. An array of texts has at most 2 GB, and one character may
# become six.
MAX_OCTETS = 2**28
# The maximum number of distinct texts in EXTRA of a batch. If there are more, rows become records.
MAX_DISTINCT = 100


def lines(rows: Rows) -> bytes:
    """Return the rows as lines, without unreadable ones."""
    is_huge = rows.batch.nbytes > MAX_OCTETS
    texts = _of_records(decode(rows.batch)) if is_huge else _of_columns(rows.batch)
    if rows.order is not None:
        texts = pa.concat_arrays([texts, _of_records(rows.records).cast(texts.type)]).take(
            rows.order
        )
    octets = pc.sum(pc.binary_length(texts)).as_py() or 0
    return bytes(memoryview(texts.buffers()[2])[:octets]) if octets else b""


def _of_records(records: Iterable[Record | Unreadable]) -> pa.Array:
    octets = [b"" if isinstance(record, Unreadable) else encode_line(record) for record in records]
    return pa.array(octets, pa.large_binary())


def _of_columns(batch: pa.RecordBatch) -> pa.Array:
    kinds = kinds_of(batch.schema)
    null_fields, is_odd = _null_fields(batch)
    fields = [[null_fields], *members({name: batch.column(name) for name in kinds}, kinds)]
    octets = join_pieces([*object_of(fields, batch.num_rows), "\n"], batch.num_rows).cast(
        pa.large_binary()
    )
    if pc.any(is_odd).as_py():
        return pc.replace_with_mask(octets, is_odd, _of_records(decode(batch.filter(is_odd))))
    return octets


def _null_fields(batch: pa.RecordBatch) -> tuple[pa.StringArray, pa.BooleanArray]:
    """Return for each row the fields with null in EXTRA, as JSON text such as `"a":null,"b":null`.

    Also return True for each row that must become a record, because EXTRA has other content, or a
    column has a value for such a field."""
    length = batch.num_rows
    no_fields, is_odd = pa.nulls(length, pa.string()), pa.repeat(pa.scalar(False), length)
    if EXTRA not in batch.schema.names or (extra := batch.column(EXTRA)).null_count == length:
        return no_fields, is_odd
    distinct = extra.dictionary_encode()
    if len(distinct.dictionary) > MAX_DISTINCT:
        return no_fields, extra.is_valid()
    fields: list[str] = []
    for number, text in enumerate(distinct.dictionary.to_pylist()):
        has_text = pc.fill_null(pc.equal(distinct.indices, number), False)
        is_plain = pc.match_substring_regex(pa.scalar(text), NULLS_ONLY).as_py()
        names = json.loads(text) if is_plain else {}
        fields.append(",".join(f'"{name}":null' for name in names))
        if not is_plain:
            is_odd = pc.or_(is_odd, has_text)
        # A column with a value takes precedence over the null, so these rows become records.
        for name in names.keys() & set(batch.schema.names):
            is_odd = pc.or_(is_odd, pc.and_(has_text, batch.column(name).is_valid()))
    return pa.array(fields, pa.string()).take(distinct.indices), is_odd
