"""JSON without some members: the rest stays as it is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.document.json_documents import MAX_DEPTH, Json, JsonPath

NUMBERS = "[1.0, 1e5, -0, 1E+2, 12345678901234567890123456789, 0.10, 1e999]"
STRING = r'"\u00e9\/\ud83d\ude00é"'


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(
    ("text", "paths", "left"),
    [
        ('{"a": 1, "b": 2, "c": 3}', [("a",)], '{"b": 2, "c": 3}'),
        ('{"a": 1, "b": 2, "c": 3}', [("b",)], '{"a": 1, "c": 3}'),
        ('{"a": 1, "b": 2, "c": 3}', [("c",)], '{"a": 1, "b": 2}'),
        ('{"a": 1, "b": 2, "c": 3}', [("a",), ("b",)], '{"c": 3}'),
        ('{"a": 1, "b": 2, "c": 3}', [("c",), ("b",)], '{"a": 1}'),
        ('{"a": 1, "b": 2, "c": 3}', [("a",), ("c",)], '{"b": 2}'),
        ('{"a": 1}', [("a",)], "{}"),
        ('{"a": {"b": 1, "c": [2]}}', [("a", "b"), ("a",)], "{}"),
        ('{"a": {"b": 1, "c": [2]}}', [("a",), ("a", "b")], "{}"),
        ('[{"a": 1}, [{"a": 2, "b": "]"}]]', [(0, "a"), (1, 0, "a")], '[{}, [{"b": "]"}]]'),
        ("[1, 2, 3]", [(1,)], "[1, 3]"),
        (f'{{"n": {NUMBERS}, "a": 0}}', [("a",)], f'{{"n": {NUMBERS}}}'),
        (f'{{ "s" :\t{STRING} ,\n "a":[ ] }}', [("a",)], f'{{ "s" :\t{STRING} }}'),
        ('{"a\\u0062": 1, "c": 2}', [("ab",)], '{"c": 2}'),
        ('{"a": 1, "b": 2}\n{"a": 3}\n\n', [(0, "a"), (1, "a")], '{"b": 2}\n{}\n\n'),
        ('\x1e{"a": 1}\n\x1e{"a": 2, "b": 3}\n', [(1, "a")], '\x1e{"a": 1}\n\x1e{"b": 3}\n'),
    ],
)
def test_what_is_left(text: str, paths: list[JsonPath], left: str) -> None:
    assert Json(text.encode()).without(paths).decode() == left


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32-be"])
def test_encodings_stay(encoding: str) -> None:
    octets = '{"a": "ä", "b": "é€"}'.encode(encoding)
    assert Json(octets).without([]) == octets
    assert Json(octets).without([("a",)]) == '{"b": "é€"}'.encode(encoding)


@pytest.mark.requirement("SEC-5")
@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b" ",
        b"{",
        b'{"a": 1} x',
        b'{"a": 1, "a": 2}',
        b"nan",
        b"\xff",
        b"[" * 1_000_000,
        b"[" * 400 + b"]" * 400,
        b"1" * 5000,
    ],
    ids=range(10),
)
def test_what_is_no_json_that_is_read(octets: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # with any text
        Json(octets)


@pytest.mark.requirement("SEC-5")
def test_depth_is_of_no_account_up_to_the_limit() -> None:
    depth = MAX_DEPTH - 1
    octets = b'{"a":' * depth + b'{"b": 1, "c": 2}' + b"}" * depth
    assert (
        Json(octets).without([("a",) * depth + ("b",)])
        == b'{"a":' * depth + b'{"c": 2}' + b"}" * depth
    )


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("abc") | st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


def paths_of(value: Any, path: JsonPath = ()) -> list[JsonPath]:
    members = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [
        one for name, member in members for one in ((*path, name), *paths_of(member, (*path, name)))
    ]


def cut(value: Any, gone: set[JsonPath], path: JsonPath = ()) -> Any:
    if isinstance(value, dict):
        return {
            name: cut(member, gone, (*path, name))
            for name, member in value.items()
            if (*path, name) not in gone
        }
    if isinstance(value, list):
        return [
            cut(member, gone, (*path, at))
            for at, member in enumerate(value)
            if (*path, at) not in gone
        ]
    return value


@pytest.mark.requirement("MEET-5")
@given(st.lists(values, min_size=1, max_size=3), st.sampled_from([None, 1, "\t"]), st.data())
def test_what_goes_is_gone_and_nothing_else(
    documents: list[Any], indent: Any, data: st.DataObject
) -> None:
    text = "\n".join(json.dumps(document, indent=indent) for document in documents)
    top = documents if len(documents) > 1 else documents[0]
    inside = [path for path in paths_of(top) if len(path) > 1 or len(documents) == 1]
    gone = data.draw(st.sets(st.sampled_from(inside))) if inside else set()
    left = Json(text.encode()).without(gone)
    wanted = cut(top, gone)
    assert Json(left).value == wanted
    assert len(left) <= len(text.encode())
