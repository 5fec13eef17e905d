"""What a pass counts."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comity.dataset.counts import record_counts as counting
from comity.dataset.counts.record_counts import RecordCounts, Tally

if TYPE_CHECKING:
    from tests.dataset.conftest import MakeRecord

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.requirement("MEET-3", "ACAP-32")
def test_uses_by_host(make_record: MakeRecord) -> None:
    counts = RecordCounts()
    for until in ("2026-11-21T12:00:00Z", "2026-11-21T12:00:01Z", "2026-12-21T12:00:00Z", "2026-12-21T12:00:01Z"):
        counts.read(make_record(index={"until": until}), NOW)
    counts.read(make_record(index=None, train={"until_recrawled": True}, fields={"final_url": "http://user@B.example:81/"}), NOW)
    counts.read({}, NOW)
    assert counts.hosts["example.com"]["index"] == Tally(allowed=3, refused=1, expiring=2)
    assert counts.hosts["b.example:81"]["index"] == Tally(refused=1)
    assert counts.hosts["b.example:81"]["train"] == Tally(allowed=1)
    assert counts.rules == {"acap.disallow": 2 * 4 + 3, "expired": 1}
    assert (counts.records, counts.causes) == (6, {"no-tag": 1})
    assert json.loads(json.dumps(counts.as_json()))["hosts"]["b.example:81"]["train"] == {
        "allowed": 1,
        "refused": 0,
        "expiring": 0,
    }


@pytest.mark.parametrize("url", [None, 5, "", "http://[x"])
def test_no_host(make_record: MakeRecord, url: Any) -> None:
    counts = RecordCounts()
    counts.read(make_record(fields={"url": url, "final_url": url}), NOW)
    assert list(counts.hosts) == [""]


def test_policies_of_what_comes_out(make_record: MakeRecord, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert (counts.records, counts.kept, counts.agents, counts.causes) == (5, 4, {"testbot": 4}, {"no-tag": 1})
    assert counts.as_json()["policies"] == {robots: [copies[1], copies[2]]}
    assert not counts.has_more_policies
    monkeypatch.setattr(counting, "MAX_POLICIES", 2)
    counts.keep(make_record()["permissions"] | {"policies": {"https://b.example/": copies[0]}})
    assert counts.has_more_policies
    assert list(counts.policies) == [robots]
    total = RecordCounts()
    total.merge(counts)
    assert total.has_more_policies


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from([None, {}, {"until": "2026-11-22T12:00:00Z"}]))),
    st.integers(0, 9),
)
def test_in_parts_or_at_once(make_record: MakeRecord, seen: list[tuple[str, Any]], middle: int) -> None:
    whole, first, second = RecordCounts(), RecordCounts(), RecordCounts()
    for place, (host, said) in enumerate(seen):
        record = make_record(train=said, fields={"final_url": f"https://{host}/"})
        for counts in (whole, first if place < middle else second):
            counts.read(record, NOW)
            counts.keep(record["permissions"])
            counts.drop("clip")
    first.merge(pickle.loads(pickle.dumps(second)))
    assert first.as_json() == whole.as_json()
