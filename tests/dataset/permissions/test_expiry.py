"""Which records have to go, and when."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.dataset.permissions import expiry
from comity.dataset.permissions.expiry import ExpiryTerms, Fetches, Recrawled, judge_expiry, page_of
from comity.dataset.records import ARRIVED_AT, REQUEST, DatasetError

if TYPE_CHECKING:
    from tests.dataset.conftest import MakeRecord

UNTIL = datetime(2026, 12, 1, 12, tzinfo=UTC)
OVER = {"until": "2026-12-01T12:00:00Z"}
LATER = {"until": "2026-12-02T12:00:00Z"}
AGAIN = {"until_recrawled": True}


def fetched(url: Any, at: Any, final_url: Any = None) -> dict[str, Any]:
    return {"url": url, "final_url": final_url or url, "fetched_at": at}


def recrawled(*records: dict[str, Any]) -> Recrawled:
    fetches = Fetches()
    for record in records:
        fetches.note(record)
    return fetches.recrawled_pages()


@pytest.mark.requirement("ACAP-32")
@pytest.mark.parametrize(
    ("uses", "why"),
    [
        ({}, ""),  # nothing was permitted, and nothing has ended
        ({"index": {}}, ""),
        ({"index": OVER}, "expired:index"),
        ({"index": OVER, "train": None}, "expired:index"),
        ({"index": OVER, "train": {}}, ""),  # it may still be used
        ({"index": OVER, "train": LATER}, ""),
        ({"index": OVER, "present_link": OVER}, "expired:index"),
        ({"index": OVER, "preserve": {}}, ""),
        ({"index": {}, "preserve": OVER}, "expired:preserve"),  # a record that may not be kept goes
        ({"index": {}, "preserve": AGAIN}, "superseded:preserve"),
        ({"index": AGAIN}, "superseded:index"),
        ({"index": AGAIN, "train": {}}, ""),
        ({"index": AGAIN, "train": OVER}, "superseded:index"),
    ],
)
def test_what_goes(make_record: MakeRecord, uses: dict[str, Any], why: str) -> None:
    record = make_record(**uses)
    again = recrawled(record, fetched(record["url"], "2026-11-30T12:00:00+00:00"))
    answer = judge_expiry(record, ExpiryTerms.create(UNTIL, again))
    assert answer.cause == why
    assert bool(answer.reasons) == bool(why)
    assert judge_expiry(record, ExpiryTerms.create(UNTIL - timedelta(seconds=1))).cause == ""


@pytest.mark.requirement("ACAP-43")
@pytest.mark.parametrize(
    ("url", "goes"),
    [
        ("https://example.com/a", True),
        ("https://EXAMPLE.com:443/%61#b", True),
        ("https://example.com/asked", True),
        ("http://example.com/a", False),
        ("https://example.com/a?b", False),
        ("https://example.com/a/b", False),
    ],
)
def test_taken_down(make_record: MakeRecord, url: str, goes: bool) -> None:
    record = make_record(index={}, fields={"url": "https://example.com/asked"})
    assert judge_expiry(record, ExpiryTerms.create(UNTIL, taken_down=[url])).cause == (
        "taken-down" if goes else ""
    )
    assert (
        judge_expiry({"url": url}, ExpiryTerms.create(UNTIL, taken_down=[url])).cause
        == "taken-down"
    )


@pytest.mark.requirement("ACAP-43", "MEET-6")
@pytest.mark.parametrize(
    ("url", "goes"),
    [
        ("https://example.com/x/../bad/a", True),
        ("https://example.com/x/%2e%2e/bad/a?b", False),
        ("https://example.com//bad/a", True),
        ("https://example.com/bad;x/..%2fbad/a", True),
        ("https://example.com/bad/../a", False),
    ],
)
def test_taken_down_by_any_spelling(make_record: MakeRecord, url: str, goes: bool) -> None:
    terms = ExpiryTerms.create(UNTIL, taken_down=["https://example.com/bad/a"])
    assert judge_expiry(make_record(index={}, fields={"url": url}), terms).cause == (
        "taken-down" if goes else ""
    )
    assert judge_expiry(
        {"url": "https://example.com/bad/a"}, ExpiryTerms.create(UNTIL, taken_down=[url])
    ).cause == ("taken-down" if goes else "no-tag")


def test_what_has_no_limits_that_are_known(make_record: MakeRecord) -> None:
    assert judge_expiry({}, ExpiryTerms.create(UNTIL)).cause == "no-tag"
    assert (
        judge_expiry(make_record(index={"until": "soon"}), ExpiryTerms.create(UNTIL)).cause
        == "invalid-tag:uses"
    )
    nowhere = make_record(index=AGAIN, fields={"url": None, "final_url": None})
    assert judge_expiry(nowhere, ExpiryTerms.create(UNTIL)).cause == ""


@pytest.mark.requirement("ACAP-32")
@pytest.mark.parametrize(
    ("other", "is_later"),
    [
        (fetched("https://example.com/a", "2026-11-21T12:00:01+00:00"), True),
        (fetched("https://example.com/a", "2026-11-21T12:00:00.5+00:00"), True),
        (fetched("https://example.com/a", "2026-11-21T12:00:01"), True),  # without a zone: UTC
        (fetched("https://example.com/a#b", "2026-11-21T12:00:01+00:00"), True),
        (
            fetched("https://example.com/b", "2026-11-21T12:00:01+00:00", "https://example.com/a"),
            True,
        ),
        (fetched("https://example.com/a", "2026-11-21T12:00:00+00:00"), False),
        (fetched("https://example.com/a", "2026-11-21T13:00:00+02:00"), False),
        (fetched("https://example.com/b", "2026-11-21T12:00:01+00:00"), False),
        (fetched("https://example.com/a", "tomorrow"), False),
        (fetched(None, "2026-11-21T12:00:01+00:00"), False),
    ],
)
def test_a_later_record_of_the_same_page(other: dict[str, Any], is_later: bool) -> None:
    record = fetched("https://example.com/a", "2026-11-21T12:00:00+00:00")
    for records in ((record, other), (other, record)):
        assert recrawled(*records).supersedes(record) is is_later


@pytest.mark.requirement("STATE-2")
@pytest.mark.parametrize(
    ("other", "is_later"),
    [
        ({REQUEST: "ab", ARRIVED_AT: "2026-11-21T12:00:01+00:00"}, True),
        ({REQUEST: "ab", ARRIVED_AT: "2026-11-21T12:00:00+00:00"}, False),
        ({REQUEST: "cd", ARRIVED_AT: "2026-11-21T12:00:01+00:00"}, False),
        ({REQUEST: "ab", ARRIVED_AT: "tomorrow"}, False),
        ({REQUEST: ["ab"], ARRIVED_AT: "2026-11-21T12:00:01+00:00"}, False),
        ({REQUEST: "ab"}, False),
        (fetched("ab", "2026-11-21T12:00:01+00:00"), False),
        (fetched("https://example.com/a", "2026-11-21T12:00:01+00:00"), False),
    ],
)
def test_a_later_record_of_the_same_request(other: dict[str, Any], *, is_later: bool) -> None:
    """The URL does not count, because items of several pages may have it."""
    record = fetched("https://example.com/a", "2026-11-21T12:00:00+00:00")
    record |= {REQUEST: "ab", ARRIVED_AT: "2026-11-21T12:00:00+00:00"}
    for records in ((record, other), (other, record)):
        assert recrawled(*records).is_earlier_fetch(record) is is_later


@pytest.mark.requirement("ACAP-32")
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=20), st.integers(0, 20))
def test_in_parts_or_at_once(seen: list[tuple[int, int]], middle: int) -> None:
    records = [
        fetched(f"https://example.com/{page}", f"2026-11-21T12:00:0{at}Z") for page, at in seen
    ]
    whole, first, second = Fetches(), Fetches(), Fetches()
    for place, record in enumerate(records):
        whole.note(record)
        (first if place < middle else second).note(record)
    first.merge(pickle.loads(pickle.dumps(second)))
    for (page, at), record in zip(seen, records, strict=True):
        is_old = any(other == page and later > at for other, later in seen)
        for fetches in (whole, first):
            assert (
                pickle.loads(pickle.dumps(fetches.recrawled_pages())).supersedes(record) is is_old
            )


def test_pages() -> None:
    assert page_of("https://example.com") == page_of("https://example.com/#top")
    assert page_of("no URL") == "no URL"
    assert page_of("http://[x") == "http://[x"


@pytest.mark.requirement("REACH-5")
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3), st.booleans()), max_size=60),
    st.integers(1, 5),
)
def test_more_fetches_than_are_held_say_the_same(
    fetches: list[tuple[int, int, bool]], held: int
) -> None:
    """By way of temporary files, merged from parts that were pickled or not."""
    records = [
        fetched(f"https://example.com/{page}", f"2026-11-2{day}T12:00:00+00:00")
        for page, day, _ in fetches
    ]
    all_held = recrawled(*records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expiry, "MAX_HELD", held)
        whole, part = Fetches(), Fetches()
        for record, (_, _, ends) in zip(records, fetches, strict=True):
            part.note(record)
            if ends:
                whole.merge(pickle.loads(pickle.dumps(part)))
                part = Fetches()
        whole.merge(part)
        found = whole.recrawled_pages()
    again = pickle.loads(pickle.dumps(found))
    assert len(found) == len(all_held)
    for record in records:
        assert found.supersedes(record) == again.supersedes(record) == all_held.supersedes(record)


def test_files_of_pages_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "MAX_HELD", 2)
    found = Recrawled({1: 1, 2: 2, 3: 3})
    pickled = pickle.dumps(found)
    del found
    with pytest.raises(DatasetError, match="set TMPDIR to a folder that all machines share"):
        pickle.loads(pickled)
