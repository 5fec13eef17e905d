"""Lines of JSON that are joined from columns have the values of the columns' records."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.dataset.files.columns import arrow_lines
from comity.dataset.files.columns.arrow_lines import lines
from comity.dataset.files.columns.arrow_schema import EXTRA, TAG, Rows, decode, encode, schema_of
from comity.dataset.records import Record, Unreadable, encode_line

SPANS = st.lists(
    st.tuples(st.text(max_size=3))
    | st.tuples(st.just("text"), st.integers(0, 9), st.integers(0, 9)),
    max_size=3,
)
TEXTS = st.sampled_from(
    ["", "a", 'a "quote"', "back\\slash", "line\nline", "\x00\x1f\x7f", "é\u2028😀", "a:b,{}[]"]
)
USE = st.fixed_dictionaries(
    {
        "verdict": TEXTS,
        "stated": st.booleans(),
        "because": st.lists(st.integers(-1, 3), max_size=3),
    },
    optional={
        "until": st.sampled_from(
            ["2026-12-01T12:00:00Z", "2026-12-01T12:00:00.5Z", "1900-02-28T23:59:59Z", "later"]
        ),
        "until_recrawled": st.booleans(),
        "max_words": st.integers(-(2**63), 2**63 - 1),
        "required_contexts": st.lists(TEXTS, max_size=2),
        "must_use": st.lists(
            st.fixed_dictionaries(dict.fromkeys(("role", "extract", "url", "content"), TEXTS)),
            max_size=2,
        ),
    },
)
ELEMENT = st.fixed_dictionaries(
    {
        "selector": TEXTS,
        "type": st.just("html"),
        "deny": st.lists(TEXTS, max_size=2),
        "guide": st.lists(
            st.just({"actions": ["show"], "guidelines": [{"lang": "und", "text": "a"}]}), max_size=1
        ),
        "spans": SPANS.map(lambda spans: [list(span) for span in spans]),
        "because": st.just([0]),
    },
    optional={
        "whole": st.just(True),
        "urls": st.lists(TEXTS, max_size=2),
        "names": st.lists(TEXTS, max_size=1),
    },
)
REASON = st.fixed_dictionaries(
    {"rule": TEXTS, "spec": TEXTS, "url": TEXTS, "line": st.integers(0, 9), "text": TEXTS},
    optional={"part": TEXTS},
)
POLICY = st.fixed_dictionaries(
    {
        "status": st.integers(0, 599),
        "sha256": st.none() | TEXTS,
        "fetched_at": st.none() | st.sampled_from(["2026-11-21T03:00:00.123456+00:00", "?"]),
    }
)
TAGS = st.fixed_dictionaries(
    {
        "schema": st.just(1),
        "agent": TEXTS,
        "uses": st.dictionaries(TEXTS, USE, max_size=3),
        "elements": st.lists(ELEMENT, max_size=2),
        "reasons": st.lists(REASON, max_size=2),
        "policies": st.dictionaries(TEXTS, POLICY, max_size=2),
    },
    optional={"embedded": st.dictionaries(TEXTS, USE, max_size=2)},
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None))
    | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | TEXTS, inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(["a", "b", 'c"\n', "permissions", EXTRA, ""])
RECORDS = st.lists(
    st.dictionaries(NAMES, JSON, max_size=4)
    | st.builds(lambda tag: {"a": "b", "permissions": tag}, TAGS),
    max_size=5,
)


def agree(rows: Rows, records: list[Any]) -> None:
    """The parsed lines and the records are equal, with the signs of zeros, and with floats as
    floats."""
    octets = lines(rows)
    assert octets == b"" or octets.endswith(b"\n")
    found = [json.loads(line, object_pairs_hook=once) for line in octets.split(b"\n")[:-1]]
    assert repr(list(map(ordered, found))) == repr(
        [ordered(record) for record in records if not isinstance(record, Unreadable)]
    )


def once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(members)) == len(members)
    return dict(members)


def ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: ordered(value[name]) for name in sorted(value)}
    return list(map(ordered, value)) if isinstance(value, list) else value


@pytest.mark.requirement("MEET-3")
@given(RECORDS, RECORDS, st.integers(0, 2), st.randoms(use_true_random=False))
def test_lines_of_columns_are_those_of_records(
    first: list[Record], later: list[Record], start: int, chance: Any
) -> None:
    schema = schema_of(first)
    batch = encode([*later, *first], schema).slice(start)
    agree(Rows(batch), decode(batch))
    numbers = list(range(batch.num_rows + len(first)))
    chance.shuffle(numbers)
    together = [*decode(batch), *first]
    agree(
        Rows(batch, first, pa.array(numbers, pa.int64())), [together[number] for number in numbers]
    )


def test_they_are_spelled_as_those_of_records() -> None:
    records: list[Record] = [
        {"a": 'é "\n', "number": 1e-7, "huge": 1e300},
        {"a": "b", "number": -0.0, "huge": math.inf},
    ]
    assert lines(Rows(encode(records))) == b"".join(map(encode_line, records))


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", None, 'b"'], pa.large_string()),
        pa.array([["a"], None, ["b", None]], pa.large_list(pa.string())),
        pa.array([["a"], None, ["b", None]]),
        pa.array([{"x": 1}, None, {"x": None}]),
        pa.array([1.5, None, math.nan]),
        pa.array([1, None, 2**64 - 1], pa.uint64()),
        pa.array([b"a", None, b"\xff"]),
        pa.array([date(2026, 12, 1), None, date(1, 1, 1)]),
        pa.array([datetime(2026, 12, 1, tzinfo=UTC), None, datetime(1, 1, 1, tzinfo=UTC)]),
        pa.array(["a", None, "b\n"]).dictionary_encode(),
        pa.nulls(3),
        pa.array([{}, None, {}], pa.struct([])),
    ],
    ids=lambda array: str(array.type),
)
def test_types_of_other_programs(array: pa.Array) -> None:
    batch = pa.record_batch([array, pa.array([1, 2, 3])], ["a", "b"])
    agree(Rows(batch), decode(batch))
    agree(Rows(batch.slice(1)), decode(batch.slice(1)))


def test_objects_whose_keys_stand_twice() -> None:
    """They are no objects, and stay lists of structs."""
    use = {"use": "a", "verdict": "deny", "stated": True, "because": [0]}
    for uses in ([use, use], [use, None], [use | {"use": None}], [use, use | {"use": "b"}]):
        tag = {
            "schema": 1,
            "agent": "a",
            "uses": uses,
            "elements": [],
            "reasons": [],
            "policies": [],
        }
        batch = pa.record_batch([pa.array([tag, None, tag], TAG.type)], ["permissions"])
        agree(Rows(batch), decode(batch))


@pytest.mark.parametrize("most", [100, 1])
def test_further_fields(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_lines, "MAX_DISTINCT", most)
    texts = [
        '{"a":null}',
        '{"x":null}',
        '{"x":null,"x":null}',
        '{"a":1}',
        '{"x":"\\ud800"}',
        "[]",
        "{",
        '{"\\u0061":null}',
        None,
    ]
    texts += ['{"a\nb":null}', '{"\0":null}']  # no JSON
    for value in ("b", None):
        columns = [pa.array([value] * len(texts), pa.string()), pa.array(texts)]
        batch = pa.record_batch(columns, ["a", EXTRA])
        agree(Rows(batch), decode(batch))


def test_columns_that_are_too_large_to_be_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = encode([{"a": "b", "c": None}, {"a": 'd"'}])
    expected = lines(Rows(batch))
    monkeypatch.setattr(arrow_lines, "MAX_OCTETS", 1)
    assert list(map(json.loads, lines(Rows(batch)).splitlines())) == list(
        map(json.loads, expected.splitlines())
    )
