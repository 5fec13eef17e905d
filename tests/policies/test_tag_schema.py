"""The JSON Schema of the tag, and the shapes that it is made from."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from comity.policies.answers.rule import RULES
from comity.policies.syntax.shapes import (
    Constant,
    Count,
    Either,
    Keyed,
    Member,
    Moment,
    Names,
    Nullable,
    Number,
    Object,
    Row,
    Several,
    Shape,
    Text,
    Truth,
    definitions,
)
from comity.policies.tag import REASON, TAG, schema


def test_the_schema_is_valid() -> None:
    Draft202012Validator.check_schema(schema())


def test_every_part_of_the_tag_is_explained_or_named() -> None:
    assert all(member.description for name, member in TAG.members.items() if name != "schema")


def test_ids_of_rules_fit() -> None:
    assert [rule for rule in RULES if not REASON.members["rule"].shape.is_valid(rule)] == []


JSON = st.recursive(
    st.sampled_from(
        [None, True, False, 0, 1, 2, -1, 1.5, "", "a", "b", "1", "2027-01-01T00:00:00Z"]
    ),
    lambda values: (
        st.lists(values, max_size=3) | st.dictionaries(st.sampled_from("ab"), values, max_size=3)
    ),
    max_leaves=6,
)
SHAPES: list[Shape] = [
    Text(),
    Text("[ab]+"),
    Text(values=("", "a")),
    Count(),
    Truth(),
    Constant(True),
    Constant(1),
    Number(),
    Either(Count(), Constant(None), Several(Text("a"), name="texts")),
    Names(),
    Nullable(Text("a")),
    Several(Text("a"), at_least=1),
    Several(Names()),
    Row(Text(), Count(), Count()),
    Object({"a": Member(Count()), "b": Member(Names(), "Some.", is_required=False)}),
    Keyed("letter", Text(), pattern="a", required=("a",)),
    Keyed("letter", Several(Count(), name="counts", description="Numbers."), at_least=1),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_a_shape_takes_what_its_schema_takes(shape: Shape) -> None:
    validator = Draft202012Validator(shape.schema | {"$defs": definitions(shape)})

    @given(JSON)
    def agree(value: Any) -> None:
        assert shape.is_valid(value) == validator.is_valid(value)

    agree()


@pytest.mark.parametrize("text", ["2027-01-01T00:00:00", "soon", "2027-13-01T00:00:00Z", 5, None])
def test_a_moment_is_one(text: Any) -> None:
    assert Moment("Z").is_valid("2027-01-01T00:00:00Z")
    assert not Moment("Z").is_valid(text)


def test_a_pattern_ends_where_the_text_does() -> None:
    assert not Text("[a-z]+").is_valid("abc\n")
