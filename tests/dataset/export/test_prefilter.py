"""Judgement by columns gives the same results as judgement by records."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.dataset.export import prefilter
from comity.dataset.export.prefilter import Prefilter
from comity.dataset.files.columns.arrow_schema import EXTRA, decode, encode
from comity.dataset.permissions.apply_terms import apply_terms
from comity.dataset.permissions.expiry import Fetches, Recrawled
from comity.dataset.permissions.terms import Terms, TermsApplied
from comity.dataset.records import Record
from tests.selection import one_in

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
ROBOTS = "https://a.example/robots.txt"
RULES = ("robots.allow", "acap.disallow", "rsl.permits", "comity.arrangement", "robots-meta.limit")
RESOURCE = {"role": "credit", "extract": "", "url": "https://a.example/credit", "content": "By A"}
VALID: list[tuple[str, Any]] = [
    ("until", "2026-12-01T12:00:00Z"),
    ("until", "2026-12-01T12:00:01Z"),
    ("until_recrawled", True),
    ("until_recrawled", False),
    ("max_chars", 5),
    ("max_words", 0),
    ("prohibited_modifications", ["annotation"]),
    ("required_contexts", []),
    ("must_use", [RESOURCE]),
    ("must_include", [RESOURCE]),
]
INVALID: list[tuple[str, Any]] = [
    ("verdict", "perhaps"),
    ("because", []),
    ("because", [9]),
    ("because", [-1]),
    ("stated", None),
    ("max_chars", -1),
    ("until", "later"),
    ("prohibited_modifications", ["any", "any"]),
    ("must_use", [RESOURCE | {"role": "?"}]),
]
SPOILT: list[tuple[str, Any]] = [
    ("schema", 2),
    ("agent", "a b"),
    ("agent", "testbot\n"),
    ("reasons", []),
    ("reasons", [{"rule": "No rule", "spec": "", "url": "", "line": 1, "text": ""}] * 5),
    ("reasons", [{"rule": "a.b", "spec": "", "url": "", "line": -1, "text": ""}] * 5),
    ("policies", {ROBOTS: {"status": -1, "sha256": None, "fetched_at": None}}),
    ("policies", {ROBOTS: {"status": 200, "sha256": "ab" * 32 + "\n", "fetched_at": None}}),
    ("policies", {}),
    (
        "elements",
        [
            {
                "selector": "p",
                "type": "",
                "deny": ["train"],
                "guide": [],
                "spans": [["text", 0, 3]],
                "because": [0],
            }
        ],
    ),
    ("embedded", {"train": {"verdict": "deny", "stated": True, "because": [0]}}),
    ("embedded", {"index": {"verdict": "deny", "stated": True, "because": [0]}}),
    ("embedded", {}),
]


def plain() -> Record:
    uses = {
        use: {"verdict": "allow", "stated": True, "because": [0]}
        for use in ("crawl", "follow", "index", "preserve", "present")
    }
    reasons = [
        {"rule": rule, "spec": "a", "url": ROBOTS, "line": 1, "text": rule} for rule in RULES[:2]
    ]
    policies = {
        ROBOTS: {"status": 200, "sha256": "ab" * 32, "fetched_at": "2026-11-21T03:00:00+00:00"}
    }
    tag: Record = {
        "schema": 1,
        "agent": "testbot",
        "uses": uses,
        "elements": [],
        "reasons": reasons,
        "policies": policies,
    }
    return {
        "url": "https://a.example/",
        "fetched_at": "2026-11-21T03:00:00+00:00",
        "text": "Some text to read",
        "permissions": tag,
    }


@st.composite
def records(draw: st.DrawFn) -> Record:
    record = copy.deepcopy(plain())
    tag = record["permissions"]
    for use in draw(
        st.sets(st.sampled_from(["train", "index", "preserve", "present-snippet", "present"]))
    ):
        decision = {"verdict": draw(st.sampled_from(["allow", "allow", "deny"])), "stated": True}
        decision |= {"because": draw(st.lists(st.integers(0, 1), min_size=1, max_size=3))}
        tag["uses"][use] = decision | dict(draw(st.lists(st.sampled_from(VALID), max_size=2)))
    change = draw(
        st.sampled_from(
            ["", "", "", "license", "use", "gone", "name", "tag", "no tag", "null", "other"]
        )
    )
    if change == "license":
        tag["reasons"][0]["rule"] = draw(st.sampled_from(RULES))
    elif change == "use":
        tag["uses"][draw(st.sampled_from(sorted(tag["uses"])))].update(
            [draw(st.sampled_from(INVALID))]
        )
    elif change == "gone":
        del tag["uses"][draw(st.sampled_from(sorted(tag["uses"])))]
    elif change == "name":
        tag["uses"][draw(st.sampled_from(["Train", "", "a b", "train\n"]))] = {
            "verdict": "allow",
            "stated": True,
            "because": [0],
        }
    elif change == "tag":
        tag.update([draw(st.sampled_from(SPOILT))])
    elif change == "no tag":
        record["permissions"] = draw(st.sampled_from([None, {}, "deny", []]))
    elif change == "null":
        record |= {"html": None, "note": None}
    elif change == "other":
        record["text"] = 5
    return record


TERMS = st.builds(
    lambda uses, now, recrawled: Terms.of(uses, now=now, recrawled=recrawled),
    st.lists(
        st.sampled_from(["train", "index", "present-snippet", "present", "search"]),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([NOW, NOW - timedelta(microseconds=1), NOW + timedelta(seconds=1)]),
    st.sampled_from([Recrawled(), Recrawled({1: 2})]),
)


def agree(batch: pa.RecordBatch, terms: Terms) -> None:
    """Judgement by columns and by records."""
    said = Prefilter(terms).sort(batch)
    rest = said.rest.to_pylist()
    for record, kept, why, is_rest in zip(
        decode(batch), said.permitted.to_pylist(), said.refusals.to_pylist(), rest, strict=True
    ):
        assert kept + (why is not None) + is_rest == 1
        if not is_rest:
            assert isinstance(record, dict)
            answer = apply_terms(record, terms)
            assert answer.record == (record if kept else None)
            assert kept or answer.cause == why


@pytest.mark.requirement("MEET-3", "MEET-5")
@given(st.lists(records(), max_size=6), TERMS)
def test_columns_decide_what_records_decide(found: list[Record], terms: Terms) -> None:
    agree(encode(found), terms)


@pytest.mark.requirement("MEET-3", "MEET-5")
@pytest.mark.parametrize("asked", ["index", "present,index", "index,train", "present-snippet"])
def test_they_agree_on_each_condition_by_itself(asked: str) -> None:
    found = []
    for use in ("index", "present", "preserve", "follow"):
        for key, value in VALID + INVALID:
            found.append(plain() | {"images": ["a.png"]})
            found[-1]["permissions"]["uses"][use] |= {key: value}
    for key, value in SPOILT:
        found.append(plain() | {"images": ["a.png"]})
        found[-1]["permissions"][key] = value
    for rule in RULES:
        found.append(plain())
        found[-1]["permissions"]["reasons"][0]["rule"] = rule
    agree(encode(found), Terms.of(asked.split(","), now=NOW))


@pytest.mark.requirement("MEET-3")
def test_plain_records_need_no_second_look() -> None:
    refused = plain()
    refused["permissions"]["uses"]["index"] |= {"verdict": "deny", "because": [1]}
    batch = encode([plain(), refused, plain() | {"html": None}])
    said = Prefilter(Terms.of(["index"], now=NOW)).sort(batch)
    assert said.permitted.to_pylist() == [True, False, True]
    assert said.refusals.to_pylist() == [None, "deny:acap.disallow", None]
    assert (
        Prefilter(Terms.of(["train"], now=NOW)).sort(batch).refusals.to_pylist()
        == ["not-listed:train"] * 3
    )
    assert said.rest.true_count == 0


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("use", ["index", "preserve"])
def test_whether_a_page_was_fetched_again_is_asked_of_each(use: str) -> None:
    fetches, crawled = Fetches(), []
    for page, days in (("a", (1,)), ("b", (1, 2))):
        record = plain() | {"url": f"https://a.example/{page}"}
        record["permissions"]["uses"][use] |= {"until_recrawled": True}
        crawled.append(record)
        for day in days:
            fetches.note(record | {"fetched_at": f"2026-11-2{day}T03:00:00+00:00"})
    terms = Terms.of(["index"], now=NOW, recrawled=fetches.recrawled_pages())
    assert [apply_terms(record, terms).cause for record in crawled] == ["", f"superseded:{use}"]
    batch = encode(crawled)
    agree(batch, terms)
    assert Prefilter(terms).sort(batch).rest.to_pylist() == [True, True]


@pytest.mark.requirement("MEET-3")
def test_one_record_is_judged_for_all_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watched(record: Record, terms: Terms) -> TermsApplied:
        seen.append(record["url"])
        return apply_terms(record, terms)

    monkeypatch.setattr(prefilter, "apply_terms", watched)
    refused = plain()
    refused["permissions"]["uses"]["index"] |= {"verdict": "deny", "because": [1]}
    records = [
        one | {"url": f"https://a.example/{number}"}
        for number in range(10)
        for one in (plain(), refused)
    ]
    terms = Terms.of(["index"], now=NOW)
    sieve = Prefilter(terms)
    for _ in range(2):
        answer = sieve.sort(encode(records))
        assert answer.permitted.to_pylist() == [True, False] * 10
        assert answer.refusals.to_pylist() == [None, "deny:acap.disallow"] * 10
    assert len(seen) == 2


def columns_of(record: Record, **changed: Any) -> pa.RecordBatch:
    """Columns that no Writer writes, and another program may write."""
    batch = encode([plain(), record, plain()])
    for name, value in changed.items():
        values = batch.column(name).to_pylist()
        values[1] = value
        batch = batch.set_column(
            batch.schema.get_field_index(name),
            name,
            pa.array(values, batch.schema.field(name).type),
        )
    return batch


def twice(part: str) -> Any:
    row = encode([plain()]).column("permissions").to_pylist()[0]
    return row | {part: row[part] * 2}


def without(part: str, member: str) -> Any:
    row = encode([plain()]).column("permissions").to_pylist()[0]
    return row | {part: [one | {member: None} for one in row[part]]}


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize(
    "changed",
    one_in(
        2,
        [
            {"permissions": twice("uses")},
            {"permissions": twice("policies")},
            {"permissions": without("uses", "use")},
            {"permissions": without("uses", "verdict")},
            {"permissions": without("uses", "stated")},
            {"permissions": without("uses", "because")},
            {"permissions": without("reasons", "rule")},
            {"permissions": without("reasons", "line")},
            {"permissions": without("reasons", "text")},
            {"permissions": without("policies", "url")},
            {"permissions": without("policies", "status")},
            {"permissions": None},
            {EXTRA: "{"},
            {EXTRA: '{"permissions": {}}'},
            {EXTRA: '{"text":null,"more":1}'},
            {EXTRA: '{"text":null}'},
            {EXTRA: '{"a\nb":null}'},
        ],
    ),
)
def test_columns_that_others_have_altered_are_judged_as_they_are_read(
    changed: dict[str, Any],
) -> None:
    batch = columns_of(plain(), **changed)
    assert decode(batch) != [plain()] * 3 or EXTRA in changed
    terms = Terms.of(["index"], now=NOW)
    agree(batch, terms)
    assert Prefilter(terms).sort(batch).permitted.to_pylist()[::2] == [True, True]
