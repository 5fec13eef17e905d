"""Kinds: the conversion of JSON values to an Arrow type and back.

A value fits a kind only if the conversion to Arrow and back returns an equal value. From an Arrow
array, a kind makes JSON values, or pieces of JSON text. To join whole columns of text takes a
fraction of the time for making a dict of each row. If the array has the type that the kind writes,
text is made from it directly. For other types, text is made from the values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from json.encoder import encode_basestring
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.files.json_pieces import (
    Pieces,
    escape,
    join_members,
    join_pieces,
    join_present,
    object_of,
    texts_of,
)
from comity.policies.syntax.remembered import Remembered

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_REMEMBERED = 1024  # the maximum number of cached values of a kind
_EXACT = 2**53  # integers up to this are exact as floats


class MisfitError(Exception):
    """The value does not fit: its conversion to the type and back would change it."""


class ArrowKind(Protocol):
    """The conversion between an Arrow type and values in JSON."""

    @property
    def type(self) -> pa.DataType:
        """The type that this kind writes."""

    def fit(self, value: Any) -> Any:
        """Return the value in the form that Arrow takes. MisfitError: it does not fit."""

    def values(self, array: pa.Array) -> list[Any]:
        """Return the values of an array, None for a null.

        The array may have any type with these values, not only `type`."""

    def pieces(self, array: pa.Array) -> Pieces:
        """Return the values of an array as JSON, null for a null."""


class ArrowText:
    """A text."""

    def __init__(self, type_: pa.DataType | None = None) -> None:
        self.type = type_ or pa.string()

    def fit(self, value: Any) -> str:
        if type(value) is not str:
            raise MisfitError
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise MisfitError from None
        return value

    def values(self, array: pa.Array) -> list[Any]:
        return plain(array)

    def pieces(self, array: pa.Array) -> Pieces:
        return (
            ['"', escape(array), '"']
            if pa.types.is_string(array.type)
            else texts_of(self.values(array))
        )


class ArrowTruth:
    """True or false."""

    type = pa.bool_()

    def fit(self, value: Any) -> bool:
        if type(value) is not bool:
            raise MisfitError
        return value

    def values(self, array: pa.Array) -> list[Any]:
        return plain(array)

    def pieces(self, array: pa.Array) -> Pieces:
        return (
            [array.cast(pa.string())]
            if pa.types.is_boolean(array.type)
            else texts_of(self.values(array))
        )


class Whole:
    """A whole number."""

    def __init__(self, type_: pa.DataType | None = None) -> None:
        self.type = type_ or pa.int64()
        bits = self.type.bit_width
        signed = pa.types.is_signed_integer(self.type)
        self._range = range(-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else range(2**bits)

    def fit(self, value: Any) -> int:
        if type(value) is not int or value not in self._range:
            raise MisfitError
        return value

    def values(self, array: pa.Array) -> list[Any]:
        values = plain(array)
        if pa.types.is_floating(array.type):  # pandas makes floats of columns with nulls
            return [
                int(value) if value is not None and value.is_integer() else value
                for value in values
            ]
        return values

    def pieces(self, array: pa.Array) -> Pieces:
        return (
            [array.cast(pa.string())]
            if pa.types.is_integer(array.type)
            else texts_of(self.values(array))
        )


class OneValue:
    """A kind that fits only one value."""

    def __init__(self, kind: ArrowKind, value: Any) -> None:
        self.type = kind.type
        self.values = kind.values
        self.pieces = kind.pieces
        self._kind = kind
        self._value = value

    def fit(self, value: Any) -> Any:
        if self._kind.fit(value) != self._value:
            raise MisfitError
        return value


class Number:
    """A number, as a float. The integer 1 is converted to 1.0, which is equal to 1."""

    type = pa.float64()

    def fit(self, value: Any) -> float:
        if type(value) is int and -_EXACT <= value <= _EXACT:
            return float(value)
        if type(value) is not float:
            raise MisfitError
        return value

    def values(self, array: pa.Array) -> list[Any]:
        return plain(array)

    def pieces(self, array: pa.Array) -> Pieces:
        return texts_of(self.values(array))


class ArrowMoment:
    """A date and time in UTC, as text in one form. A text in another form does not fit, because it
    would be changed."""

    type = pa.timestamp("us", "UTC")

    def __init__(self, suffix: str) -> None:
        """`suffix`: "Z" for whole seconds, or "+00:00" for the form that Python writes."""
        self._suffix = suffix

    def fit(self, value: Any) -> int:
        if type(value) is not str:
            raise MisfitError
        return _instant(value, self._suffix)

    def values(self, array: pa.Array) -> list[Any]:
        if not pa.types.is_timestamp(array.type):
            return _foreign(array)
        # Without a time zone, the moment is a local time at an unknown place.
        suffix = self._suffix if array.type.tz else ""
        instants = (
            array.cast(pa.timestamp("us", array.type.tz), safe=False).cast(pa.int64()).to_pylist()
        )
        return [instant if instant is None else _text_of(instant, suffix) for instant in instants]

    def pieces(self, array: pa.Array) -> Pieces:
        distinct = array.dictionary_encode()
        [texts] = texts_of(self.values(distinct.dictionary))
        return [texts.take(distinct.indices)]


@lru_cache(10_000)
def _instant(text: str, suffix: str) -> int:
    """Return the microseconds since 1970. MisfitError: `_text_of` would return another text."""
    try:
        instant = (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, TypeError):  # a date without a time zone
        raise MisfitError from None
    if _text_of(instant, suffix) != text:
        raise MisfitError
    return instant


@lru_cache(10_000)
def _text_of(instant: int, suffix: str) -> str:
    try:
        text = (_EPOCH + timedelta(microseconds=instant)).isoformat()
    except OverflowError:
        return str(instant)
    return text.replace("+00:00", suffix)


class ArrowList:
    """A list without nulls."""

    def __init__(self, member: ArrowKind, type_: pa.DataType | None = None) -> None:
        self.type = type_ or pa.list_(member.type)
        self._member = member

    def fit(self, value: Any) -> list[Any]:
        if type(value) is not list:
            raise MisfitError
        return [self._member.fit(member) for member in value]

    def values(self, array: pa.Array) -> list[Any]:
        values = _lists(array, self._member)
        if array.null_count:
            return [
                members if is_there else None
                for members, is_there in zip(values, _valid(array), strict=True)
            ]
        return list(values)

    def pieces(self, array: pa.Array) -> Pieces:
        if not pa.types.is_list(array.type):
            return texts_of(self.values(array))
        members = array.flatten()
        texts = join_pieces(self._member.pieces(members), len(members))
        return ["[", join_members(pc.coalesce(texts, "null"), array), "]"]


class Struct:
    """An object with these members. A missing member is null.

    The members in `nullable` are never missing, and may be null."""

    def __init__(
        self,
        members: Mapping[str, ArrowKind],
        required: Iterable[str] = (),
        nullable: Iterable[str] = (),
    ) -> None:
        self.members = dict(members)
        self.type = pa.struct([(name, kind.type) for name, kind in members.items()])
        self.nullable = frozenset(nullable)
        self.required = frozenset(required) | self.nullable
        self._fits = {
            name: _Nullable(kind).fit if name in self.nullable else kind.fit
            for name, kind in members.items()
        }

    def fit(self, value: Any) -> dict[str, Any]:
        if type(value) is not dict or not self.required <= value.keys():
            raise MisfitError
        try:
            return {name: self._fits[name](member) for name, member in value.items()}
        except KeyError:
            raise MisfitError from None

    def values(self, array: pa.Array) -> list[Any]:
        if not pa.types.is_struct(array.type):
            return _foreign(array)
        columns = {
            field.name: self.members.get(field.name, _ANY).values(array.field(number))
            for number, field in enumerate(array.type)
        }
        values: list[Any] = rows(len(array), columns, self.nullable)
        if array.null_count:
            return [
                members if is_there else None
                for members, is_there in zip(values, _valid(array), strict=True)
            ]
        return values

    def pieces(self, array: pa.Array) -> Pieces:
        if not pa.types.is_struct(array.type):
            return texts_of(self.values(array))
        columns = {field.name: array.field(number) for number, field in enumerate(array.type)}
        pieces = object_of(members(columns, self.members, self.nullable), len(array))
        return (
            [pc.if_else(array.is_valid(), join_pieces(pieces, len(array)), None)]
            if array.null_count
            else pieces
        )


class _Nullable:
    def __init__(self, kind: ArrowKind) -> None:
        self._kind = kind

    def fit(self, value: Any) -> Any:
        return value if value is None else self._kind.fit(value)


class ArrowMap:
    """An object with any keys, as a list of structs. The first member of a struct is the key.

    It is not a map, because some readers of Parquet have no maps."""

    def __init__(self, key: str, value: Struct) -> None:
        self._key = key
        self._text = ArrowText()
        self._value = value
        self._members = ArrowList(
            Struct({key: self._text, **value.members}, (key, *value.required), value.nullable)
        )
        self.type = self._members.type

    def fit(self, value: Any) -> list[dict[str, Any]]:
        if type(value) is not dict:
            raise MisfitError
        return [
            {self._key: self._text.fit(key), **self._value.fit(member)}
            for key, member in value.items()
        ]

    def values(self, array: pa.Array) -> list[Any]:
        return [
            members if members is None else self._object(members)
            for members in self._members.values(array)
        ]

    def _object(self, members: list[Any]) -> Any:
        """Return an object of the members.

        If a member has no key, or two members have equal keys, another program has written the
        list, and it is returned unchanged."""
        try:
            keyed = {member[self._key]: member for member in members}
        except (KeyError, TypeError):
            return members
        if len(keyed) < len(members):
            return members
        for member in members:
            del member[self._key]
        return keyed

    def pieces(self, array: pa.Array) -> Pieces:
        if not self._is_keyed(array):
            return texts_of(self.values(array))
        structs = array.flatten()
        columns = {field.name: structs.field(number) for number, field in enumerate(structs.type)}
        keys = self._text.pieces(columns.pop(self._key))
        values = object_of(
            members(columns, self._value.members, self._value.nullable), len(structs)
        )
        return ["{", join_members(join_pieces([*keys, ":", *values], len(structs)), array), "}"]

    def _is_keyed(self, array: pa.Array) -> bool:
        """Return True if these are lists of structs with a key each, and no list repeats a key."""
        if not (pa.types.is_list(array.type) and pa.types.is_struct(array.type.value_type)):
            return False
        structs = array.flatten()
        if [field.name for field in structs.type].count(self._key) != 1:
            return False
        keys = structs.field(self._key)
        if structs.null_count or keys.null_count or not pa.types.is_string(keys.type):
            return False
        pairs = name_numbers(keys, pc.list_parent_indices(array))
        return bool(pc.count_distinct(pairs).as_py() == len(pairs))


class Common:
    """Values that are often repeated. The results of `fit` are cached, and must not be changed."""

    def __init__(self, kind: ArrowKind) -> None:
        self.type = kind.type
        self.values = kind.values
        self.pieces = kind.pieces
        self.fit = Remembered(kind.fit, most=MAX_REMEMBERED)


class Spans:
    """Spans in a record: [field], [field, index in the list] or [field, start, end].

    `start` is the index of the first character of the span. `end` is the index after its last."""

    type = pa.struct([("field", pa.string()), ("start", pa.int64()), ("end", pa.int64())])

    def __init__(self) -> None:
        self._struct = Struct(
            {"field": ArrowText(), "start": Whole(), "end": Whole()}, required=("field",)
        )

    def fit(self, value: Any) -> dict[str, Any]:
        if type(value) is not list or not 1 <= len(value) <= 3:
            raise MisfitError
        return self._struct.fit(dict(zip(("field", "start", "end"), value, strict=False)))

    def values(self, array: pa.Array) -> list[Any]:
        names = ("field", "start", "end")
        return [
            span and [span[name] for name in names if name in span]
            for span in self._struct.values(array)
        ]

    def pieces(self, array: pa.Array) -> Pieces:
        if array.type != self.type:
            return texts_of(self.values(array))
        parts = [kind.pieces(array.field(name)) for name, kind in self._struct.members.items()]
        pieces = ["[", *join_present(parts, len(array)), "]"]
        return (
            [pc.if_else(array.is_valid(), join_pieces(pieces, len(array)), None)]
            if array.null_count
            else pieces
        )


class Foreign:
    """Values that only other programs write, e.g. dates, decimals and bytes. They can be read."""

    def __init__(self, type_: pa.DataType) -> None:
        self.type = type_

    def fit(self, value: Any) -> Any:
        raise MisfitError

    def values(self, array: pa.Array) -> list[Any]:
        return _foreign(array)

    def pieces(self, array: pa.Array) -> Pieces:
        return texts_of(self.values(array))


_ANY = Foreign(pa.null())


def _foreign(array: pa.Array) -> list[Any]:
    return [
        value if value is None else json.loads(json.dumps(value, default=_text))
        for value in plain(array)
    ]


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def plain(array: pa.Array) -> list[Any]:
    """Return the values as Python values.

    A value becomes a text if Python cannot represent it, e.g. a date in the year 10000 or in an
    unknown time zone."""
    try:
        values: list[Any] = array.to_pylist()
    except (OverflowError, ValueError, LookupError):
        values = [_cell(array.slice(row, 1)) for row in range(len(array))]
    return values


def _cell(array: pa.Array) -> Any:
    try:
        return array[0].as_py()
    except (OverflowError, ValueError, LookupError):
        return " ".join(array.to_string().strip("[]").split())


def _valid(array: pa.Array) -> list[Any]:
    return plain(array.is_valid())


def _lists(array: pa.Array, member: ArrowKind) -> Iterator[list[Any]]:
    if pa.types.is_null(array.type):
        return iter([[]] * len(array))
    if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        return iter(_foreign(array))
    offsets = array.offsets.to_pylist()
    start = offsets[0]
    members = member.values(array.values[start : offsets[-1]])
    return (members[first - start : end - start] for first, end in pairwise(offsets))


def name_numbers(names: pa.StringArray, lists: pa.Array) -> pa.Int64Array:
    """Return a number for each name. Two numbers are equal if the names and the lists are equal.

    `lists`: for each name, the number of its list."""
    distinct = names.dictionary_encode()
    return pc.add(
        pc.multiply(lists, len(distinct.dictionary) + 1), distinct.indices.cast(pa.int64())
    )


def rows(
    length: int, columns: Mapping[str, list[Any]], nullable: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """Return a dict for each row of the columns, without members that are None.

    The columns in `nullable` keep None."""
    full = {
        name: column for name, column in columns.items() if name in nullable or None not in column
    }
    names = tuple(full)
    records = (
        [dict(zip(names, row, strict=True)) for row in zip(*full.values(), strict=True)]
        if full
        else [{} for _ in range(length)]
    )
    for name, column in columns.items():
        if name not in full:
            for row, value in zip(records, column, strict=True):
                if value is not None:
                    row[name] = value
    return records


def members(
    columns: Mapping[str, pa.Array], kinds: Mapping[str, ArrowKind], nullable: Iterable[str] = ()
) -> list[Pieces]:
    """Return the columns as members of objects, `"name":value`. Nulls become missing members.

    The columns in `nullable` have `"name":null` instead."""
    result = []
    for name, array in columns.items():
        if name in nullable or array.null_count < len(array):
            pieces = kinds.get(name, _ANY).pieces(array)
            if name in nullable and array.null_count:
                pieces = [pc.coalesce(join_pieces(pieces, len(array)), "null")]
            result.append([encode_basestring(name) + ":", *pieces])
    return result
