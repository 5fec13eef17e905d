"""JSON text from columns: pieces of text are joined to one text for each row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from json.encoder import encode_basestring
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.records import to_json

# A piece is an array with a text for each row, or one text for all rows.
Pieces = list[Any]
_ESCAPED = r'["\\\x00-\x1f]'  # characters that a text in JSON must escape
_UNESCAPED = bytes(octet for octet in range(256) if octet >= 0x20 and octet not in b'"\\')


def texts_of(values: Iterable[Any]) -> Pieces:
    """Return the values as JSON text, one piece. None becomes null."""
    return [pa.array([value if value is None else to_json(value) for value in values], pa.string())]


def escape(texts: pa.StringArray) -> pa.StringArray:
    """Escape texts for JSON, without the quotation marks."""
    if not _octets(texts).translate(None, _UNESCAPED):
        return texts
    is_escaped = pc.fill_null(pc.match_substring_regex(texts, _ESCAPED), False)
    escaped = [encode_basestring(text)[1:-1] for text in texts.filter(is_escaped).to_pylist()]
    return pc.replace_with_mask(texts, is_escaped, pa.array(escaped, pa.string()))


def _octets(texts: pa.StringArray) -> bytes:
    """Return the octets of all texts, perhaps with octets between the texts that belong to none."""
    _, offsets, octets = texts.buffers()
    if octets is None or not len(texts):
        return b""
    starts = memoryview(offsets).cast("i")
    return bytes(memoryview(octets)[starts[texts.offset] : starts[texts.offset + len(texts)]])


def join_pieces(pieces: Pieces, length: int) -> pa.StringArray:
    """Join the pieces row by row. A row is null if a piece is null in it."""
    merged: Pieces = [""]
    for piece in pieces:
        if isinstance(piece, str) and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    if len(merged) == 1:
        return pa.repeat(merged[0], length)
    return pc.binary_join_element_wise(*merged, "")


def join_members(members: pa.StringArray, lists: pa.ListArray) -> pa.StringArray:
    """Return the members of each list, joined with commas.

    `members`: the members of the first list, then those of the second list, and so on. None of them
    is null."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    texts = pc.binary_join(pa.ListArray.from_arrays(offsets, members), ",")
    return pc.if_else(lists.is_valid(), texts, None) if lists.null_count else texts


def object_of(members: Sequence[Pieces], length: int) -> Pieces:
    """Return an object for each row, with the members that are not null.

    As in `rows`, the members that all objects have come first."""
    return ["{", *join_present(members, length), "}"]


def join_present(parts: Sequence[Pieces], length: int) -> Pieces:
    """Return the parts that are not null, with commas between them."""
    full = [pieces for pieces in parts if not _has_nulls(pieces)]
    others = [
        pc.coalesce(join_pieces([",", *pieces], length), "")
        for pieces in parts
        if _has_nulls(pieces)
    ]
    if others and not full:
        return [pc.utf8_slice_codeunits(join_pieces(others, length), 1)]
    return [piece for pieces in full for piece in (",", *pieces)][1:] + others


def _has_nulls(pieces: Pieces) -> bool:
    return any(not isinstance(piece, str) and piece.null_count for piece in pieces)
