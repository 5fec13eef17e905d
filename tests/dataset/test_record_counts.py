"""Counts of a pass: uses by group, and the policies of the records that it keeps."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comity.dataset.counts import distinct, use_columns
from comity.dataset.counts import record_counts as counting
from comity.dataset.counts.distinct import DistinctCount
from comity.dataset.counts.record_counts import RecordCounts
from comity.dataset.counts.summary import Summary
from comity.dataset.counts.use_counts import BY, Tally, UseCounts
from comity.dataset.croissant import PolicyCount
from comity.dataset.files.columns import arrow_schema as typed
from comity.dataset.files.columns.arrow_schema import encode
from comity.dataset.stats import StatsPass
from tests.dataset.conftest import ROBOTS
from tests.selection import examples

if TYPE_CHECKING:
    from tests.dataset.conftest import MakeRecord

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SOON = (
    "2026-11-21T12:00:00Z",
    "2026-11-21T12:00:01Z",
    "2026-12-21T12:00:00Z",
    "2026-12-21T12:00:01Z",
)


def counted(records: list[Any], by: str, *uses: str) -> UseCounts:
    counts: UseCounts = StatsPass(NOW, by=by, uses=frozenset(uses))(records).result
    return counts


def counted_in_columns(records: list[Any], by: str, *uses: str) -> UseCounts:
    outcome = StatsPass(NOW, by=by, uses=frozenset(uses)).columns(encode(records), 1)
    assert not outcome.unreadable
    counts: UseCounts = outcome.result
    return counts


@pytest.fixture
def some(make_record: MakeRecord) -> list[Any]:
    elsewhere = {
        "final_url": "http://user@B.example:81/",
        "fetched_at": "2026-10-31T23:59:59-01:00",
    }
    records = [make_record(index={"until": until}) for until in SOON]
    records.append(make_record(index=None, train={"until_recrawled": True}, fields=elsewhere))
    return [*records, {"url": "https://example.com/"}]


@pytest.mark.requirement("MEET-3", "ACAP-32")
@pytest.mark.parametrize("count", [counted, counted_in_columns])
def test_uses_in_groups(some: list[Any], count: Any) -> None:
    by_use = count(some, "use")
    assert by_use.groups["index"] == {"index": Tally(allowed=3, refused=2, expiring=2)}
    assert by_use.groups["train"] == {"train": Tally(allowed=1)}
    assert by_use.refusing == {"acap.disallow": 2 * 4 + 3, "expired": 1}
    assert (by_use.records, by_use.causes, by_use.origins.number) == (6, {"no-tag": 1}, 2)
    by_origin = count(some, "origin")
    assert by_origin.groups["https://example.com"]["index"] == Tally(
        allowed=3, refused=1, expiring=2
    )
    assert by_origin.groups["http://b.example:81"]["index"] == Tally(refused=1)
    by_month = count(some, "month").groups
    assert {month: uses["index"].records for month, uses in by_month.items()} == {"2026-11": 5}
    by_rule = count(some, "rule", "index").groups
    assert by_rule == {
        "acap.allow": {"index": Tally(allowed=3, expiring=2)},
        "acap.disallow": {"index": Tally(refused=1)},
        "expired": {"index": Tally(refused=1)},
    }
    assert count(some, "use", "train", "unknown").groups.keys() == {"train"}


def test_rows_begin_with_what_is_most(some: list[Any]) -> None:
    rows = list(counted(some, "origin", "index").rows())
    assert rows == [
        {
            "origin": "https://example.com",
            "use": "index",
            "allowed": 3,
            "refused": 1,
            "expiring": 2,
        },
        {
            "origin": "http://b.example:81",
            "use": "index",
            "allowed": 0,
            "refused": 1,
            "expiring": 0,
        },
    ]
    dated = [
        record | {"fetched_at": date}
        for record, date in zip(some, ("2025-01-01", "2026-02-01", None), strict=False)
    ]
    assert [row["month"] for row in counted(dated, "month", "index").rows()] == [
        "2026-02",
        "2025-01",
        "",
    ]
    assert [row["use"] for row in counted(some, "use").rows()] == sorted(
        counted(some, "use").groups
    )
    assert json.loads(json.dumps(counted(some, "rule").as_json()))["rows"] == list(
        counted(some, "rule").rows()
    )


@pytest.mark.parametrize("url", [None, 5, "", "http://[x", "ftp://example.com/"])
def test_no_origin(make_record: MakeRecord, url: Any) -> None:
    assert list(counted([make_record(fields={"url": url, "final_url": url})], "origin").groups) == [
        ""
    ]


SAID = st.sampled_from(
    [None, {}, {"until": SOON[0]}, {"until": SOON[2]}, {"until": SOON[3]}, {"max_chars": 5}]
)
BROKEN = st.sampled_from([None, {}, "text", {"schema": 2, "uses": {}}, {"because": [9]}])
FIELDS = st.fixed_dictionaries(
    {
        "url": st.sampled_from(["https://a.test/1", "http://b.test:81/", None]),
        "final_url": st.sampled_from(["https://a.test/2", "", None]),
        "fetched_at": st.sampled_from(
            ["2026-11-21T12:00:00+00:00", "2026-11-01T00:30:00+01:00", "soon", "", None]
        ),
    }
)


@pytest.mark.requirement("MEET-3")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(SAID, SAID, FIELDS, st.none() | BROKEN), max_size=6),
    st.sampled_from(BY),
    st.booleans(),
)
def test_columns_count_like_records(
    make_record: MakeRecord, seen: list[Any], by: str, only_train: bool
) -> None:
    records = []
    for index, train, fields, broken in seen:
        record = make_record(index=index, train=train, fields=fields)
        if broken is not None:
            record["permissions"] = (
                record["permissions"] | broken if broken in ({}, {"because": [9]}) else broken
            )
        records.append(record)
    uses = ["train"] if only_train else []
    assert vars(counted_in_columns(records, by, *uses)) == vars(counted(records, by, *uses))


def test_rows_with_valid_tags_become_no_records(
    some: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []

    def decode(batch: pa.RecordBatch, rows: list[int]) -> Any:
        decoded.extend(rows)
        return typed.decode(batch, rows)

    monkeypatch.setattr(use_columns, "decode", decode)
    assert counted_in_columns(some, "use").records == 6
    assert decoded == [6]  # it has no tag


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(50))
@given(st.lists(st.tuples(SAID, FIELDS)), st.integers(0, 9), st.sampled_from(BY))
def test_uses_in_parts_or_at_once(
    make_record: MakeRecord, seen: list[Any], middle: int, by: str
) -> None:
    records = [make_record(train=said, fields=fields) for said, fields in seen]
    first = counted(records[:middle], by)
    first.merge(pickle.loads(pickle.dumps(counted(records[middle:], by))))
    assert first.as_json() == counted(records, by).as_json()


# The kept records


def test_policies_of_what_comes_out(
    make_record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = RecordCounts()
    robots = "https://example.com/robots.txt"
    copies = [
        {"status": 200, "sha256": "a" * 64, "fetched_at": "2026-11-21T03:00:00+00:00"},
        {"status": 200, "sha256": "a" * 64, "fetched_at": "2026-11-21T04:00:00+00:00"},
        {"status": 404, "sha256": None, "fetched_at": None},
    ]
    for copy in (*copies, copies[0]):
        record = make_record(index={})
        record["permissions"]["policies"] = {robots: copy}
        counts.keep(record["permissions"])
    counts.drop("no-tag")
    assert (counts.records, counts.kept, counts.agents, counts.causes) == (
        5,
        4,
        {"testbot": 4},
        {"no-tag": 1},
    )
    assert [list(of_file.values()) for of_file in counts.policies.values()] == [
        [copies[1], copies[2]]
    ]
    monkeypatch.setattr(counting, "MAX_POLICIES", 2)
    missing = {"status": 0, "sha256": None, "fetched_at": None}
    for url, copy in (
        ("https://b.example/", copies[0]),
        ("https://c.example/", missing),
        ("https://c.example/", missing),
    ):
        counts.keep(make_record()["permissions"] | {"policies": {url: copy}})
    assert list(counts.policies) == [robots]
    total = Summary()
    total.counts.merge(counts)
    total.counts.merge(pickle.loads(pickle.dumps(counts)))
    assert total.composition.policy_count == PolicyCount(
        all=4, listed=2, without_copy=1, is_estimate=False
    )


def test_copies_are_hashed_once(make_record: MakeRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []

    def noted(value: str) -> int:
        hashed.append(value)
        return distinct.hashed(value)

    monkeypatch.setattr(counting, "hashed", noted)
    missing = {"status": 0, "sha256": None, "fetched_at": None}
    counts, total = RecordCounts(), RecordCounts()
    counts.keep(make_record()["permissions"] | {"policies": {"https://c.example/": missing}})
    total.merge(counts)
    assert hashed == ["https://c.example/ 0"]
    assert total.copies.number == total.missing_copies.number == 1


def test_a_count_of_more_than_is_kept_is_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct, "KEPT", 1000)
    whole, parts = DistinctCount(), [DistinctCount() for _ in range(3)]
    for number in range(20_000):
        whole.add(str(number))
        parts[number % 3].add(str(number))
        parts[number % 2].add(str(number))
    total = DistinctCount()
    for part in parts:
        total.merge(part)
        total.merge(part)
    assert total.number == whole.number == pytest.approx(20_000, rel=0.1)
    assert not total.is_exact
    exact = DistinctCount()
    for number in range(1000):
        exact.add(str(number))
    assert (exact.number, exact.is_exact) == (1000, True)
    exact.add("one more")
    assert not exact.is_exact
    assert exact.number == pytest.approx(1001, rel=0.1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(50))
@given(st.lists(st.sampled_from("abc")), st.integers(0, 9))
def test_in_parts_or_at_once(make_record: MakeRecord, seen: list[str], middle: int) -> None:
    whole, first, second = RecordCounts(), RecordCounts(), RecordCounts()
    for place, name in enumerate(seen):
        tag = make_record()["permissions"]
        tag["policies"] = {f"https://{name}.test/robots.txt": tag["policies"][ROBOTS]}
        for counts in (whole, first if place < middle else second):
            counts.keep(tag)
            counts.drop("clip")
    first.merge(pickle.loads(pickle.dumps(second)))
    assert vars(first) == vars(whole)
