"""The pass over columns gives the same lines, refusals, counts and manifest as the pass over
records, for any records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.dataset.counts.summary import Summary
from comity.dataset.croissant import History, describe
from comity.dataset.export.export import ExportPass
from comity.dataset.files import jsonl
from comity.dataset.files.columns import parquet
from comity.dataset.files.columns.arrow_schema import EXTRA, decode, encode, schema_of
from comity.dataset.passes import Outcome
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import Record, Unreadable
from comity.dataset.tags.sources import GUESSED, InField
from comity.policies.answers.decision import Verdict
from tests.selection import one_in

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
URL = "https://a.example/robots.txt"
ALLOW: dict[str, Any] = {"verdict": "allow", "stated": True, "because": [0]}
DENY: dict[str, Any] = {"verdict": "deny", "stated": False, "because": [1]}
RESOURCE = {"role": "credit", "extract": "", "url": "https://a.example/credit", "content": "By A"}
LIMITS: list[dict[str, Any]] = [
    {},
    {"until": "2026-11-30T00:00:00Z"},
    {"until": "2027-11-30T00:00:00Z"},
    {"until_recrawled": True},
    {"max_words": 2},
    {"prohibited_modifications": ["any"]},
    {"must_use": [RESOURCE]},
    {"must_include": [RESOURCE]},
    {"because": [2]},  # a licence
    {"because": [3, 0]},  # an arrangement
]
RULES = ("robots.allow", "comity.default", "rsl.permits", "comity.arrangement")
REASONS = [
    {
        "rule": rule,
        "spec": "a",
        "url": URL,
        "part": "setting",
        "line": 1,
        "text": f"a.example: {rule}, b",
    }
    for rule in RULES
]
TEXTS = st.sampled_from(
    [
        "",
        "a",
        'a "quote"\\',
        "line\nline\x00\x1f\x7f",
        "é\u2028😀",
        "\ud800",
        "2026-12-01",
        "Some words",
    ]
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**53, 2**63, 2**70, 0.0, -0.0])
    | st.floats()
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.fixed_dictionaries(
    {
        "text": st.just("Some words of it") | TEXTS,
        "links": st.lists(st.just("https://a.example/i.png"), max_size=2),
    },
    optional={
        "html": st.none(),
        "fetched_at": st.sampled_from(
            ["2026-12-01T12:00:00+00:00", "2026-12-01", "yesterday", None]
        ),
        "license": st.sampled_from(["MIT", ["MIT"], [1, None], [["a"]], {"a": 1}, None]),
        "attribution": JSON,
        "a": JSON,
        "b": st.lists(st.integers() | st.floats(), max_size=2),
        "c": st.fixed_dictionaries({}, optional={"d": JSON, "e": st.integers(0, 5)}),
        "images": st.just([{"url": "https://a.example/i.png"}]),
        EXTRA: TEXTS,
    },
)
ELEMENT = st.fixed_dictionaries(
    {
        "selector": st.just("p"),
        "type": st.sampled_from(["", "html"]),
        "deny": st.lists(
            st.sampled_from(["train", "index", "show", "clip", "*"]), max_size=2, unique=True
        ),
        "guide": st.sampled_from(
            [[], [{"actions": ["show"], "guidelines": [{"lang": "en", "text": "a"}]}]]
        ),
        "spans": st.lists(
            st.sampled_from([["text", 0, 4], ["text"], ["links", 0], ["other"]]), max_size=2
        ),
        "because": st.sampled_from([[0], [1, 0]]),
    },
    optional={
        "whole": st.just(True),
        "urls": st.just(["https://a.example/i.png"]),
        "more_urls": st.just(True),
        "names": st.just(["text", "a"]),
    },
)
POLICY = st.builds(
    lambda sha256, fetched_at: {
        "status": 200 if sha256 else 0,
        "sha256": sha256,
        "fetched_at": fetched_at,
    },
    st.sampled_from([None, "0" * 64, "1" * 64]),
    st.sampled_from([None, "2026-11-21T03:00:00+00:00", "2026-11-22T03:00:00.500000+00:00"]),
)
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    9,
    2**70,
    1.5,
    "",
    "allow",
    "a b",
    "\ud800",
    [],
    ["a", "a"],
    [9],
    {},
    {"a": None},
    [["a", 1]],
]


@st.composite
def tags(draw: st.DrawFn, most_damaged: int = 4) -> dict[str, Any]:
    """Tags. Up to the given number of ten are damaged."""
    uses = dict.fromkeys(("crawl", "follow", "index", "preserve", "present", "train"), ALLOW)
    for name in draw(
        st.sets(st.sampled_from(["index", "train", "preserve", "search"]), max_size=2)
    ):
        uses[name] = draw(
            st.sampled_from([ALLOW, DENY])
            | st.sampled_from(LIMITS).map(lambda limit: ALLOW | limit)
        )
    tag = {
        "schema": 1,
        "agent": draw(st.sampled_from(["testbot", "otherbot"])),
        "uses": uses,
        "elements": draw(st.just([]) | st.lists(ELEMENT, max_size=2)),
        "reasons": REASONS
        if any(max(use["because"]) > 1 for use in uses.values())
        else REASONS[:2],
        "policies": draw(
            st.dictionaries(st.sampled_from([URL, "https://b.example/"]), POLICY, max_size=2)
        ),
    }
    if draw(st.integers(0, 4)) == 0:
        tag["embedded"] = {"train": draw(st.sampled_from([ALLOW, DENY]))}
    tag = deepcopy(tag)
    if draw(st.integers(0, 9)) > 9 - most_damaged:
        damage(draw, tag)
    return tag


def damage(draw: st.DrawFn, value: Any) -> None:
    """Put something odd somewhere into a tag, or take something away."""
    while True:
        place = draw(
            st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value)))
        )
        if isinstance(value[place], dict | list) and value[place] and draw(st.booleans()):
            value = value[place]
            continue
        match draw(st.integers(0, 3)):
            case 0:
                del value[place]
            case 1 if isinstance(value, dict):
                value["odd"] = draw(st.sampled_from(ODD))
            case 1:
                value.append(value[place])
            case _:
                value[place] = draw(st.sampled_from(ODD))
        return


ALIKE = st.fixed_dictionaries(
    {
        "text": st.sampled_from(["Some words of it", 'a "quote"\\', "\x00é\u2028😀"]),
        "a": st.integers(0, 2**63 - 1),
    },
    optional={
        "html": st.none(),
        "fetched_at": st.sampled_from(["2026-12-01T12:00:00+00:00", "yesterday"]),
        "license": st.lists(st.just("MIT"), max_size=1),
        "b": st.lists(st.floats(), max_size=2),
        "c": st.fixed_dictionaries(
            {},
            optional={"d": st.booleans(), "e": st.lists(st.lists(st.integers(0, 5), max_size=2))},
        ),
    },
)
# Most of them are judged by columns.
RECORDS_ALIKE = st.builds(
    lambda fields, tag: fields | {"permissions": tag}, ALIKE, tags(most_damaged=1)
)


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Records with types that mostly differ."""
    record = draw(FIELDS)
    kind = draw(st.integers(0, 11))
    if kind:
        tag = draw(tags())
        record["comity_permissions" if kind == 1 else "permissions"] = (
            json.dumps(tag) if kind == 2 else tag
        )
        if kind == 3:
            record["other"] = tag
    return record


TERMS = st.builds(
    lambda uses, source, defaults: Terms.of(uses, now=NOW, tags=source, defaults=defaults),
    st.lists(
        st.sampled_from(["train", "index", "present", "search", "present-currentcopy"]),
        min_size=1,
        max_size=2,
    ),
    st.sampled_from([GUESSED, InField("permissions"), GUESSED, GUESSED, InField("other")]),
    st.sampled_from([{}, {}, {}, {}, {}, {"index": Verdict.ALLOW}]),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that a manifest can tell the size of."""
    made = tmp_path_factory.mktemp("export") / "a.jsonl"
    made.touch()
    return made


@pytest.mark.requirement("MEET-3", "MEET-5")
@given(
    st.lists(RECORDS_ALIKE, min_size=1, max_size=8) | st.lists(records(), max_size=6),
    st.lists(records(), max_size=2),
    st.integers(1, 9),
    TERMS,
)
def test_of_records(
    path: Path, first: list[Record], later: list[Record], size: int, terms: Terms
) -> None:
    # values that do not fit the types of the first records are in EXTRA
    batch = encode([*first, *later], schema_of(first))
    batches = [batch.slice(start, size) for start in range(0, batch.num_rows, size)]
    agree(path, batches, terms)


@pytest.mark.parametrize(
    "array",
    one_in(
        4,
        [
            pa.array(["MIT", None, 'b"'], pa.large_string()),
            pa.array([["a"], None, ["b", None]], pa.large_list(pa.string())),
            pa.array([["a"], None, ["b", None]]),
            pa.array([[None], None, []], pa.list_(pa.string())),
            pa.array([[["a"]], None, []]),
            pa.array([[1], None, [2]]),
            pa.array([{"x": 1}, None, {"x": None}]),
            pa.array([1.5, None, float("nan")]),
            pa.array([1, None, 2**64 - 1], pa.uint64()),
            pa.array([1, None, 2], pa.float32()),
            pa.array([b"a", None, b"\xff"]),
            pa.array([date(2026, 12, 1), None, date(1, 1, 1)]),
            pa.array([datetime(2026, 12, 1, tzinfo=UTC), None, datetime(1, 1, 1, tzinfo=UTC)]),
            pa.array([Decimal("1.5"), None, Decimal("2.0")]),
            pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
            pa.array(["a", None, "2026-12-01"]).dictionary_encode(),
            pa.array(["2026-12-01", None, "MIT"]),
            pa.array(["2026-12-01", None, "2026-12-01"]),
            pa.nulls(3),
        ],
    ),
    ids=lambda array: str(array.type),
)
@pytest.mark.parametrize(
    "name", one_in(5, ["license", "fetched_at", "attribution", "comity_permissions", "a"])
)
def test_of_columns_of_other_programs(path: Path, array: pa.Array, name: str) -> None:
    """Of the rows all but the last one, which gets a licence, stay as they are."""
    uses = dict.fromkeys(("crawl", "follow", "index", "preserve", "present", "train"), ALLOW)
    tag = {
        "schema": 1,
        "agent": "a",
        "uses": uses,
        "elements": [],
        "reasons": REASONS[:1],
        "policies": {},
    }
    licensed = {"uses": uses | {"train": ALLOW | {"because": [2]}}, "reasons": REASONS}
    tagged = encode([{"permissions": tag}, {"permissions": tag}, {"permissions": tag | licensed}])
    batch = pa.record_batch([array, *tagged.columns], [name, *tagged.schema.names])
    agree(path, [batch, batch.slice(1)], Terms.of(["train"], now=NOW))
    agree(path, [batch], Terms.of(["train"], now=NOW, tags=InField("permissions")))


@pytest.mark.requirement("MEET-3")
def test_of_modifications_that_are_prohibited_of_what_is_shown(path: Path) -> None:
    uses = dict.fromkeys(("crawl", "follow", "index", "preserve", "present", "translate"), ALLOW)
    tags = [
        {
            "schema": 1,
            "agent": "a",
            "uses": uses | more,
            "elements": [],
            "reasons": REASONS[:1],
            "policies": {},
        }
        for more in (
            {},
            {"present": ALLOW | {"prohibited_modifications": ["translation"]}},
            {"present-oldcopy": ALLOW | {"prohibited_modifications": ["any"]}},
            {"present": ALLOW | {"prohibited_modifications": ["style"]}},
            {"translate": ALLOW | {"prohibited_modifications": ["any"]}},
        )
    ]
    batch = encode([{"permissions": tag} for tag in tags])
    agree(path, [batch, batch.slice(1), batch.slice(3)], Terms.of(["translate"], now=NOW))
    agree(path, [batch], Terms.of(["preserve"], now=NOW))


def test_of_fields_without_values(path: Path) -> None:
    uses = dict.fromkeys(("crawl", "follow", "index", "preserve", "present", "train"), ALLOW)
    tag = {
        "schema": 1,
        "agent": "a",
        "uses": uses,
        "elements": [],
        "reasons": REASONS[:1],
        "policies": {},
    }
    made: list[Record] = [
        {"a": 1, "html": None, "permissions": tag},
        {"a": None, "modified": "today", "permissions": tag},
    ]
    agree(
        path, [encode([*made, made[1] | {"modified": "2026-12-01"}])], Terms.of(["train"], now=NOW)
    )


def agree(path: Path, batches: list[pa.RecordBatch], terms: Terms) -> None:
    work = ExportPass(terms)
    by_columns = [work.columns(batch, 1) for batch in batches]
    by_records = [_by_records(work, decode(batch)) for batch in batches]
    lines = _lines(jsonl.encode(one.records) for one in by_records)
    assert _lines(jsonl.encode_columns(one.records) for one in by_columns) == lines
    assert (
        _lines(jsonl.encode(_decoded(parquet.encode_columns(one.records))) for one in by_columns)
        == lines
    )
    assert [sorted(one.unreadable) for one in by_columns] == [
        sorted(one.unreadable) for one in by_records
    ]
    assert _told(path, by_columns) == _told(path, by_records)


def _by_records(work: ExportPass, batch: list[Record | Unreadable]) -> Outcome:
    readable = [record for record in batch if not isinstance(record, Unreadable)]
    return work(readable)._replace(
        unreadable=[record for record in batch if isinstance(record, Unreadable)]
    )


def _decoded(batch: pa.RecordBatch) -> list[Record]:
    return [record for record in decode(batch) if not isinstance(record, Unreadable)]


def _lines(parts: Iterator[bytes]) -> list[tuple[Any, list[int]]]:
    """Each line as its values, with numbers letter by letter, and its octets.

    Fields may have another order."""
    lines = b"".join(parts).split(b"\n")
    assert lines.pop() == b""
    as_text: Any = {"parse_float": str, "parse_int": str, "parse_constant": str}
    return [(json.loads(line, **as_text), sorted(line)) for line in lines]


def _told(path: Path, outcomes: list[Outcome]) -> Any:
    """The results in an order of their own: rows that columns decide are counted before the others
    of their batch."""
    summary = Summary()
    for outcome in outcomes:
        summary.merge(outcome.result)
    history = History("", ("train",), NOW, {}, {}, {})
    described = describe(path, history, summary.composition)
    described["recordSet"][0]["field"].sort(key=lambda field: field["name"])
    described["license"] = sorted(described.get("license", ()))
    for copies in described["comity:policies"].values():
        copies.sort(key=lambda copy: copy["sha256"] or "")
    return described, vars(summary.counts)
