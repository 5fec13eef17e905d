"""Judgement by columns of tags with elements: a row that needs no cut never becomes a record."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.dataset.export.prefilter import Prefilter, Sorted
from comity.dataset.files.columns.arrow_schema import decode, encode
from comity.dataset.permissions.apply_terms import apply_terms
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import Record

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
ALLOW: dict[str, Any] = {"verdict": "allow", "stated": True, "because": [0]}
RULES = ("robots.allow", "acap.disallow", "rsl.permits", "comity.arrangement")
REASONS = [
    {"rule": rule, "spec": "a", "url": "https://a.example/robots.txt", "line": 1, "text": rule}
    for rule in RULES
]
ACTIONS = ["train", "Train", "train-ai", "index", "clip", "show", "crawl", "*", "search"]
SPANS = st.sampled_from(
    [
        ["text", 0, 4],
        ["text"],
        ["links", 0],
        ["text", 4, 2],
        ["other", 1],
        ["text", -1, 2],
        ["text", None],
        [],
        ["a", 1, 2, 3],
        [1],
    ]
)
ELEMENT = st.fixed_dictionaries(
    {
        "selector": st.just("p"),
        "type": st.sampled_from(["", "html", "html", "pdf"]),
        "deny": st.lists(st.sampled_from(ACTIONS), max_size=3),
        "guide": st.sampled_from(
            [
                [],
                [],
                [{"actions": ["show"], "guidelines": []}],
                [{"actions": ["a", "a"], "guidelines": []}],
            ]
        ),
        "spans": st.lists(SPANS, max_size=2),
        "because": st.sampled_from([[0], [1, 0], [2], [4], [], [-1]]),
    },
    optional={
        "whole": st.sampled_from([True, True, False]),
        "urls": st.lists(st.sampled_from(["https://a.example/i.png", "a"]), max_size=2),
        "more_urls": st.just(True),
        "names": st.lists(st.sampled_from(["text", "title"]), max_size=2),
    },
)


@st.composite
def records(draw: st.DrawFn) -> Record:
    uses: dict[str, Any] = dict.fromkeys(
        ("crawl", "follow", "index", "preserve", "present", "train"), ALLOW
    )
    for name in draw(
        st.sets(st.sampled_from(["index", "train", "present", "preserve"]), max_size=2)
    ):
        uses[name] = ALLOW | draw(
            st.sampled_from(
                [
                    {"verdict": "deny", "because": [1]},
                    {"because": [2]},
                    {"because": [3]},
                    {"until": "2026-11-30T00:00:00Z"},
                    {"max_words": 2},
                    {"prohibited_modifications": ["any"]},
                    {"prohibited_modifications": ["any", "any"]},
                ]
            )
        )
    embedded = draw(
        st.sampled_from(
            [
                {},
                {},
                {"embedded": {"train": ALLOW}},
                {"embedded": {"train": ALLOW | {"because": [9]}}},
            ]
        )
    )
    tag = {
        "schema": 1,
        "agent": "testbot",
        "uses": uses,
        **embedded,
        "elements": draw(st.lists(ELEMENT, max_size=2)),
        "reasons": REASONS,
        "policies": {},
    }
    return copy.deepcopy(
        {
            "text": "Some text to read",
            "links": ["https://a.example/i.png"],
            "title": "A",
            "permissions": tag,
        }
    )


TERMS = st.lists(
    st.sampled_from(["train", "index", "present", "present-clip", "crawl", "search"]),
    min_size=1,
    max_size=2,
).map(lambda uses: Terms.of(uses, now=NOW))


def agreed(found: list[Record], terms: Terms) -> Sorted:
    """Rows that are judged by columns as they are by records."""
    batch = encode(found)
    judged = Prefilter(terms).sort(batch)
    assert decode(batch) == found
    for record, is_permitted, cause in zip(
        found, judged.permitted.to_pylist(), judged.refusals.to_pylist(), strict=True
    ):
        answer = apply_terms(record, terms)
        if is_permitted:
            assert answer.record is record
        elif cause is not None:
            assert (answer.record, answer.cause) == (None, cause)
    return judged


@pytest.mark.requirement("MEET-3", "MEET-5")
@given(st.lists(records(), max_size=6), TERMS)
def test_columns_decide_what_records_decide(found: list[Record], terms: Terms) -> None:
    agreed(found, terms)


@pytest.mark.requirement("MEET-5")
def test_only_elements_that_refuse_a_use_are_cut() -> None:
    def is_decided(use: str, **element: Any) -> bool:
        plain = {
            "selector": "p",
            "type": "",
            "deny": ["train"],
            "guide": [],
            "spans": [["text", 0, 4]],
            "because": [0],
        }
        tag = {
            "schema": 1,
            "agent": "testbot",
            "elements": [plain | element],
            "reasons": REASONS[:2],
            "policies": {},
        }
        uses = dict.fromkeys(("crawl", "follow", "index", "preserve", "present", "train"), ALLOW)
        record = {
            "text": "Some text to read",
            "permissions": tag | {"uses": uses | {"train-ai": ALLOW | {"verdict": "deny"}}},
        }
        [is_left] = agreed([record], Terms.of([use], now=NOW)).rest.to_pylist()
        return not is_left

    assert is_decided("index")
    assert is_decided("train-ai")  # refused for any content of the page
    assert not is_decided("train")
    assert not is_decided("index", deny=["show", "*"])
    assert not is_decided("index", deny=["train", "train"])  # no valid tag
    assert not is_decided("index", spans=[["text", -1]])
    assert not is_decided("index", because=[4])
    assert not is_decided("train-ai", because=[4])
