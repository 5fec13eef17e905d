"""The pace file: turns of one process and of several.

The tests move the clock, except those with two real processes."""

from __future__ import annotations

import itertools
import logging
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import time
from pathlib import Path
from time import time as clock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.gate.pace.ledger import (
    ASK_AGAIN,
    ASK_THROUGH,
    PENALTY,
    SCHEMA,
    SWEPT,
    PaceLimit,
    RateLedger,
)
from comity.policies.syntax.windows import DAY, MAX_STAMPS, Window

NOW = 1_800_000_000.0
TTL = 10.0
HOST = "example.org"
DELAY = (Window(1, 2),)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "pace.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[RateLedger]:
    ledger = RateLedger(path, owner_ttl=TTL)
    yield ledger
    ledger.close(NOW)


@pytest.fixture
def other(path: Path, ledger: RateLedger) -> Iterator[RateLedger]:
    """The ledger of another process."""
    other = RateLedger(path, owner_ttl=TTL)
    yield other
    other.close(NOW)


def turn(
    ledger: RateLedger, now: float, windows: Sequence[Window] = DELAY, host: str = HOST
) -> int:
    return turn_of_all(ledger, now, PaceLimit(host, tuple(windows)))


def due(
    ledger: RateLedger, now: float, windows: Sequence[Window] = DELAY, host: str = HOST
) -> float:
    """Return the moment to ask again, if there is no grant now."""
    return due_of_all(ledger, now, PaceLimit(host, tuple(windows)))[0]


def turn_of_all(ledger: RateLedger, now: float, *limits: PaceLimit) -> int:
    claim = ledger.acquire(limits, now)
    assert claim.number is not None
    assert claim.due == now
    return claim.number


def due_of_all(ledger: RateLedger, now: float, *limits: PaceLimit) -> tuple[float, str]:
    """Return the moment to ask again, and the name of the limit; "" if that is unknown."""
    claim = ledger.acquire(limits, now)
    assert claim.number is None
    assert claim.due > now
    return claim.due, claim.limit.name if claim.limit else ""


def keeps_to(window: Window, moments: Sequence[float]) -> bool:
    """Return whether every period as long as the window has only as many starts as permitted."""
    ordered = sorted(moments)
    ahead = ordered[window.requests :]
    return all(
        after - before >= window.seconds - 1e-4
        for before, after in zip(ordered, ahead, strict=False)
    )


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    db = sqlite3.connect(path)
    rows = db.execute(sql).fetchall()
    db.close()
    return rows


@pytest.mark.requirement("RATE-2")
def test_a_delay_counts_from_the_headers_for_every_process(
    ledger: RateLedger, other: RateLedger
) -> None:
    first = turn(ledger, NOW)
    assert due(ledger, NOW + 1) == due(other, NOW + 1) == NOW + 3
    assert due(other, NOW + 5) == NOW + 7
    ledger.settle(first, NOW + 6)
    assert due(ledger, NOW + 6) == due(other, NOW + 7) == NOW + 8
    turn(other, NOW + 8)
    turn(ledger, NOW, host="example.com")


@pytest.mark.requirement("RATE-2")
def test_what_never_went_out_counts_as_nothing(ledger: RateLedger, other: RateLedger) -> None:
    first = turn(ledger, NOW)
    ledger.end(first)
    second = turn(other, NOW)
    ledger.settle(first, NOW + 1)  # too late, so without effect
    other.settle(second, NOW)
    other.end(second)
    assert due(ledger, NOW + 1) == NOW + 2


@pytest.mark.requirement("RATE-2")
def test_a_request_that_is_out_for_long_is_asked_about_now_and_then(
    ledger: RateLedger, other: RateLedger
) -> None:
    """It may be cancelled, or its process may die.

    If only the number in flight is limited, it may end at any time.
    """
    turn(ledger, NOW, [Window(1, 3600)])
    assert due(other, NOW, [Window(1, 3600)]) == NOW + TTL
    assert NOW < due(other, NOW, [Window(1, 0)]) < NOW + 0.1


SCOPE = "http://example.org /a"
FEW = PaceLimit("few in flight", (Window(2, 0.0),), through=True)


@pytest.mark.requirement("AUTX-2", "RATE-2")
def test_a_turn_is_one_of_all_its_limits_or_of_none(ledger: RateLedger, other: RateLedger) -> None:
    host, scope = PaceLimit(HOST, DELAY), PaceLimit(SCOPE, (Window(2, 60),))
    for seconds in (0, 10):
        ledger.settle(turn_of_all(ledger, NOW + seconds, host, scope), NOW + seconds)
    assert due_of_all(other, NOW + 11, host, scope) == (NOW + 60, SCOPE)
    assert due_of_all(other, NOW + 11, host) == (NOW + 12, HOST)
    for _ in range(3):
        due_of_all(other, NOW + 13, host, scope)
    last = turn_of_all(other, NOW + 13, host)  # requests that were not let out do not count
    other.settle(last, NOW + 59.5)
    assert due_of_all(ledger, NOW + 60, host, scope) == (NOW + 61.5, HOST)
    turn_of_all(ledger, NOW + 61.5, scope, host)


@pytest.mark.requirement("AUTX-2", "RATE-2")
def test_what_never_went_out_counts_under_none_of_its_limits(
    ledger: RateLedger, other: RateLedger
) -> None:
    limits = (
        PaceLimit(HOST, DELAY),
        PaceLimit(SCOPE, DELAY),
        PaceLimit("one in flight", (Window(1, 0.0),), through=True),
    )
    ledger.end(turn_of_all(ledger, NOW, *limits))
    turn_of_all(other, NOW, *limits)


@pytest.mark.requirement("AUTX-3", "RATE-2")
def test_as_many_are_in_flight_as_may_be_over_all_processes(
    ledger: RateLedger, other: RateLedger
) -> None:
    """It counts from the turn to the end of the body, not to the headers, and no longer."""
    free = PaceLimit(HOST, (Window(9, 1),))
    first, second = turn_of_all(ledger, NOW, free, FEW), turn_of_all(other, NOW, free, FEW)
    ledger.settle(first, NOW + 1)
    for each in (ledger, other):
        assert due_of_all(each, NOW + 2, free, FEW) == (NOW + 2 + ASK_THROUGH, FEW.name)
        turn_of_all(each, NOW + 2, free)
    ledger.end(first)
    third = turn_of_all(other, NOW + 2, free, FEW)
    due_of_all(ledger, NOW + 2, free, FEW)
    other.end(second)  # another middleware refused it
    other.settle(third, NOW + 3)
    other.end(third)
    for each in (ledger, other):
        turn_of_all(each, NOW + 3, free, FEW)


@pytest.mark.requirement("AUTX-3")
def test_more_may_be_in_flight_than_starts_are_remembered(ledger: RateLedger) -> None:
    many = PaceLimit("many", (Window(MAX_STAMPS + 6, 0.0),), through=True)
    turns = [turn_of_all(ledger, NOW, many) for _ in range(MAX_STAMPS + 6)]
    due_of_all(ledger, NOW, many)
    ledger.end(turns[0])
    turn_of_all(ledger, NOW, many)


@pytest.mark.requirement("AUTX-3", "SEC-6")
def test_what_a_dead_process_had_in_flight_ends(
    ledger: RateLedger, other: RateLedger, path: Path
) -> None:
    """It ends when the signs of life end, even long after its headers arrived.

    No row of it remains.
    """
    taken = [turn_of_all(other, NOW, FEW) for _ in range(2)]
    other.settle(taken[0], NOW + 1)
    for seconds in range(0, 100, 5):
        assert other.is_used
        other.beat(NOW + seconds)
        due_of_all(ledger, NOW + seconds, FEW)
    assert due_of_all(ledger, NOW + 104.99, FEW)[0] <= NOW + 105.05
    last = [turn_of_all(ledger, NOW + 105, FEW) for _ in range(2)]
    other.beat(NOW + 106)  # it was not dead, so its requests in flight count again
    ledger.end(last[0])
    due_of_all(ledger, NOW + 106, FEW)
    for number in taken:
        other.end(number)
    assert not other.is_used
    turn_of_all(other, NOW + 107, FEW)
    assert len(query(path, "SELECT * FROM start")) == 2


windows = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 20)).map(lambda pair: Window(*pair)),
    min_size=1,
    max_size=3,
)
steps = st.tuples(
    st.integers(0, 1),  # which process
    st.floats(0, 30).map(lambda seconds: max(0.0, seconds - 20)),  # pause before it asks
    st.floats(0, 40),  # until the headers come
    st.floats(0, 1),  # at which part of that the server gets the request
    st.integers(0, 9).map(lambda number: number == 0),  # it is cancelled instead
)


@pytest.mark.requirement("RATE-2")
def test_two_processes_together_keep_every_window(ledger: RateLedger, other: RateLedger) -> None:
    both = (ledger, other)
    hosts = map(str, itertools.count())

    @given(windows, st.lists(steps, max_size=25))
    def check(limits: list[Window], requests: list[tuple[int, float, float, float, bool]]) -> None:
        host, now = next(hosts), NOW
        arrivals: list[float] = []
        # Its end, the index of its ledger, its number, and True if it is cancelled at its end.
        flights: list[tuple[float, int, int, bool]] = []
        for which, pause, takes, part, cancelled in requests:
            now += pause
            while True:
                for flight in sorted(flights):
                    if flight[0] <= now:
                        flights.remove(flight)
                        until, whose, number, unsent = flight
                        if unsent:
                            both[whose].end(number)
                        else:
                            both[whose].settle(number, until)
                for each in both:
                    each.beat(now)
                claim = both[which].acquire([PaceLimit(host, tuple(limits))], now)
                if claim.number is not None:
                    break
                assert now < claim.due <= now + 40 + max(window.seconds for window in limits)
                now = min([claim.due, *(flight[0] for flight in flights)])
            if not cancelled:
                arrivals.append(now + takes * part)
            flights.append((now + takes, which, claim.number, cancelled))
        for until, whose, number, _ in flights:
            both[whose].settle(number, until)
        assert all(keeps_to(window, arrivals) for window in limits)

    check()


@pytest.mark.requirement("RATE-2")
def test_the_rate_that_is_allowed_is_reached(ledger: RateLedger, other: RateLedger) -> None:
    """Two processes take turns, each when it was told to, and headers arrive at once."""
    limits = (Window(1, 1), Window(10, 20), Window(MAX_STAMPS, 300))
    starts: list[float] = []
    now = NOW
    for each in itertools.islice(itertools.cycle((ledger, other)), 200):
        claim = each.acquire([PaceLimit(HOST, limits)], now)
        if claim.number is None:
            now = claim.due
            claim = each.acquire([PaceLimit(HOST, limits)], now)
        assert claim.number is not None
        each.settle(claim.number, now)
        starts.append(now)
        past = [
            starts[-1 - requests] + seconds
            for requests, seconds, *_ in limits
            if requests < len(starts)
        ]
        assert now == max([NOW, *past])


@pytest.mark.requirement("RATE-2")
def test_old_starts_are_dropped_and_those_that_count_are_not(
    ledger: RateLedger, path: Path
) -> None:
    """The same is true for a process with shorter windows, and outside the hours of a long one."""
    slow, fast = [Window(2, 100)], [Window(1, 1)]
    for seconds in (0, 1):
        ledger.settle(turn(ledger, NOW + seconds, slow), NOW + seconds)
    for seconds in range(2, 90):
        ledger.settle(turn(ledger, NOW + seconds, fast), NOW + seconds)
    assert len(query(path, "SELECT * FROM start")) <= 4
    assert due(ledger, NOW + 90, slow) == NOW + 101
    at_night = Window(1, DAY, time(2), time(3))
    for seconds in range(100, 300):
        ledger.settle(turn(ledger, NOW + seconds, [at_night, *fast]), NOW + seconds)
    assert len(query(path, "SELECT * FROM start")) <= MAX_STAMPS + 1


@pytest.mark.requirement("RATE-2")
def test_a_host_that_becomes_slower(ledger: RateLedger) -> None:
    """Its last start counts for the length of the new window."""
    ledger.settle(turn(ledger, NOW), NOW)
    for seconds in (1, 10, 59):
        assert due(ledger, NOW + seconds, [Window(1, 60)]) == NOW + 60
    turn(ledger, NOW + 60, [Window(1, 60)])


@pytest.mark.requirement("RATE-2", "SEC-1")
def test_hosts_that_nobody_asks_again_are_dropped(ledger: RateLedger, path: Path) -> None:
    hosts = [f"{number}.test" for number in range(2 * SWEPT + 9)]
    for host in hosts:
        ledger.settle(turn(ledger, NOW, host=host), NOW)
    turn(ledger, NOW, host="0.test", windows=[Window(9, 2)])
    ledger.back_off("0.test", 30, NOW)
    ledger.beat(NOW + 1)
    assert len(query(path, "SELECT * FROM start")) == len(hosts) + 1
    ledger.beat(NOW + 2)
    # Each sweep is short, so that no other process waits for it.
    assert len(query(path, "SELECT * FROM start")) >= len(hosts) - SWEPT
    for _ in range(5):
        ledger.beat(NOW + 2)
    assert query(path, "SELECT host, at FROM start") == [("0.test", None)]
    assert len(query(path, "SELECT * FROM penalty")) == 1
    for _ in range(2):
        ledger.beat(NOW + 90)
    assert query(path, "SELECT * FROM penalty") == []


@pytest.mark.requirement("RATE-2", "SEC-1")
def test_hosts_that_are_kept_do_not_keep_those_behind_them(ledger: RateLedger, path: Path) -> None:
    for number in range(SWEPT + 1):
        ledger.settle(turn(ledger, NOW, [Window(1, 3600)], host=f"{number}.test"), NOW)
    ledger.settle(turn(ledger, NOW, host="last.test"), NOW)
    for _ in range(2):
        ledger.beat(NOW + 3)
    assert query(path, "SELECT * FROM start WHERE host = 'last.test'") == []
    assert len(query(path, "SELECT * FROM start")) == SWEPT + 1


@pytest.mark.requirement("RATE-2")
def test_what_is_in_flight_when_a_crawl_ends_counts_from_then(
    path: Path, other: RateLedger
) -> None:
    ledger = RateLedger(path, owner_ttl=TTL)
    turn(ledger, began := clock())
    ledger.close()
    ended = clock()
    assert began + 2 <= due(other, ended + 1) <= ended + 2


@pytest.mark.requirement("RATE-1", "RATE-2")
@pytest.mark.parametrize("retry_after", [0, 0.2, None])
def test_what_is_reported_while_a_penalty_runs_makes_it_no_longer_than_it_says(
    ledger: RateLedger, retry_after: float | None
) -> None:
    assert ledger.back_off(HOST, 10, NOW) == NOW + 10
    assert ledger.back_off(HOST, retry_after, NOW + 9.5) == NOW + 10


@pytest.mark.requirement("RATE-2")
def test_a_short_delay_is_not_waited_for_longer_than_need_be(
    ledger: RateLedger, other: RateLedger
) -> None:
    """This is true even if a request of another process is in flight, which may settle any time."""
    turn(ledger, NOW, [Window(1, 0.001)])
    assert NOW < due(other, NOW, [Window(1, 0.001)]) <= NOW + ASK_AGAIN[1]


@pytest.mark.requirement("RATE-2", "SEC-6")
@pytest.mark.parametrize(
    ("table", "call"),
    [
        ("start", lambda ledger, turn: ledger.settle(turn, NOW)),
        ("start", lambda ledger, turn: ledger.end(turn)),
        ("owner", lambda ledger, turn: ledger.beat(NOW + 9)),
        ("start", lambda ledger, turn: ledger.beat(NOW + 9)),
        ("penalty", lambda ledger, turn: ledger.back_off(HOST, 5, NOW)),
        ("penalty", lambda ledger, turn: ledger.penalty(HOST, NOW)),
    ],
)
def test_whatever_fails_first_is_said_and_locks_nobody_out(
    ledger: RateLedger,
    path: Path,
    table: str,
    call: Callable[[RateLedger, int], object],
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = turn(ledger, NOW)
    ledger.beat(NOW)
    assert caplog.records == []
    ledger._db.execute(f"DROP TABLE {table}")
    call(ledger, first)
    [record] = caplog.records
    assert f"no such table: {table}" in record.getMessage()
    writer = sqlite3.connect(path, timeout=0)
    writer.execute("BEGIN IMMEDIATE")
    writer.close()


@pytest.mark.requirement("RATE-2", "SEC-6")
def test_the_turns_of_a_dead_process_end(path: Path, ledger: RateLedger, other: RateLedger) -> None:
    """Its request may have gone out at any moment until the process counted as dead."""
    turn(other, NOW)
    other.beat(NOW + 3)
    assert due(ledger, NOW + 12.9) == NOW + 14.9
    assert due(ledger, NOW + 13) == NOW + 15
    turn(ledger, NOW + 15)


@pytest.mark.requirement("RATE-2")
def test_a_process_that_was_thought_dead_goes_on(ledger: RateLedger, other: RateLedger) -> None:
    late = turn(other, NOW)
    assert due(ledger, NOW + 20, [Window(1, 60)]) == NOW + 70
    assert due(other, NOW + 71) == NOW + 73
    other.settle(late, NOW + 72)
    assert due(ledger, NOW + 72) == due(other, NOW + 72) == NOW + 74


@pytest.mark.requirement("RATE-2")
def test_turns_outlive_what_takes_longer_than_a_sign_of_life(
    ledger: RateLedger, other: RateLedger
) -> None:
    turn(other, NOW)
    for seconds in range(0, 60, 5):
        other.beat(NOW + seconds)
        due(ledger, NOW + seconds)
    turn(other, NOW + 60, host="example.com")  # also a sign of life
    due(ledger, NOW + 69)


@pytest.mark.requirement("RATE-2", "SEC-6")
def test_what_is_closed_has_nothing_in_flight(path: Path) -> None:
    first = RateLedger(path)
    first.settle(turn(first, NOW, host="settled.test"), NOW + 1)
    turn_of_all(first, NOW, PaceLimit(HOST, DELAY), FEW)
    first.close(NOW + 5)
    first.close(NOW + 9)
    second = RateLedger(path)
    assert due(second, NOW + 6) == NOW + 7
    assert due(second, NOW + 2, host="settled.test") == NOW + 3
    assert query(path, "SELECT * FROM owner WHERE beat < 1800000001") == []
    assert query(path, f"SELECT * FROM start WHERE host = '{FEW.name}'") == []
    second.close(NOW + 6)


@pytest.mark.requirement("RATE-2")
@pytest.mark.parametrize("back", [0.5, 3600, 1e9])
def test_a_clock_that_is_set_back_stops_nothing(
    ledger: RateLedger, other: RateLedger, back: float
) -> None:
    """A start in the future counts as now, once."""
    ledger.settle(turn(ledger, NOW), NOW)
    turn(other, NOW, host="in-flight.test")
    until = ledger.back_off("penalty.test", 30, NOW)
    past = NOW - back
    assert past + 2 <= due(ledger, past) <= NOW + 2
    turn(ledger, NOW + 2 if back < 1 else past + 2)
    assert ledger.penalty("penalty.test", past) == (until if back < 1 else past + 30)
    assert due(ledger, past + 1, host="penalty.test") == (until if back < 1 else past + 30)
    assert ledger.penalty("penalty.test", past + 30.5) == 0
    due(ledger, past, host="in-flight.test")
    assert due(ledger, past + TTL + 1, host="in-flight.test") <= past + TTL + 3
    turn(ledger, past + TTL + 3, host="in-flight.test")


class TestPenalties:
    @pytest.mark.requirement("RATE-1")
    def test_without_a_word_they_double_up_to_a_day(
        self, ledger: RateLedger, other: RateLedger
    ) -> None:
        now, lengths = NOW, []
        for each in itertools.islice(itertools.cycle((ledger, other)), 13):
            until = each.back_off(HOST, None, now)
            lengths.append(until - now)
            assert due(ledger, now) == due(other, until - 1) == other.penalty(HOST, now) == until
            now = until
        assert lengths == [60, 120, 240, 480, 960, 1920, 3840, 7680, 15360, 30720, 61440, DAY, DAY]
        assert ledger.penalty(HOST, now) == 0
        turn(ledger, now)

    @pytest.mark.requirement("RATE-1")
    def test_forgiven_after_as_long_as_the_last_one_lasted(self, ledger: RateLedger) -> None:
        def length(now: float) -> float:
            return ledger.back_off(HOST, None, now) - now

        assert length(NOW) == 60
        assert length(NOW + 119) == 120  # ends at 239
        assert length(NOW + 358) == 240  # ends at 598
        assert length(NOW + 838) == 60  # ends at 898
        assert length(NOW + 957) == 120
        # It ends at 2005. The quiet time is at least a minute.
        assert ledger.back_off(HOST, 5, NOW + 2000) == NOW + 2005
        assert length(NOW + 2064) == 60

    @pytest.mark.requirement("RATE-1")
    @pytest.mark.parametrize(
        ("retry_after", "seconds"),
        [
            (0, 0),
            (2.5, 2.5),
            (3600, 3600),
            (-5, 0),
            (float("-inf"), 0),
            (1e300, 365 * DAY),
            (float("inf"), 365 * DAY),
        ],
    )
    def test_what_the_host_says_holds(
        self, ledger: RateLedger, retry_after: float, seconds: float
    ) -> None:
        now = NOW
        for _ in range(3):
            assert ledger.back_off(HOST, retry_after, now) == now + seconds
            assert ledger.penalty(HOST, now) == (now + seconds if seconds else 0)
            now += seconds

    @pytest.mark.requirement("RATE-1")
    def test_no_number_is_no_word(self, ledger: RateLedger) -> None:
        assert ledger.back_off(HOST, float("nan"), NOW) == NOW + PENALTY

    @pytest.mark.requirement("RATE-1")
    def test_several_requests_in_flight_are_one_penalty(
        self, ledger: RateLedger, other: RateLedger
    ) -> None:
        assert ledger.back_off(HOST, None, NOW) == NOW + 60
        assert other.back_off(HOST, None, NOW + 1) == NOW + 60
        assert ledger.back_off(HOST, 10, NOW + 2) == NOW + 60
        assert other.back_off(HOST, 100, NOW + 3) == NOW + 103
        assert ledger.back_off(HOST, None, NOW + 103) == NOW + 103 + 120

    @pytest.mark.requirement("RATE-1")
    def test_one_host_each(self, ledger: RateLedger) -> None:
        ledger.back_off(HOST, 10, NOW)
        assert ledger.penalty("example.com", NOW) == 0
        turn(ledger, NOW, host="example.com")


@pytest.fixture
def writer(path: Path, ledger: RateLedger) -> Iterator[sqlite3.Connection]:
    """Another process, which locks the file for a long time."""
    db = sqlite3.connect(path, isolation_level=None)
    yield db
    db.close()


@pytest.mark.requirement("RATE-2", "RATE-3")
def test_a_busy_file_means_not_now(
    ledger: RateLedger, path: Path, writer: sqlite3.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """The pending writes are made later."""
    first, second = turn(ledger, NOW), turn(ledger, NOW, host="cancelled.test")
    writer.execute("BEGIN EXCLUSIVE")
    for host in (HOST, "cancelled.test", "new.test"):
        assert NOW + 1.005 <= due(ledger, NOW + 1, host=host) <= NOW + 1.02
    ledger.settle(first, NOW + 2)
    ledger.end(second)
    ledger.beat(NOW + 2)
    assert ledger.back_off("penalty.test", 100, NOW + 2) == NOW + 102
    assert ledger.back_off("penalty2.test", None, NOW + 2) == NOW + 62
    assert ledger.penalty("else.test", NOW + 2) == 0
    writer.execute("ROLLBACK")
    assert due(ledger, NOW + 3) == NOW + 4
    turn(ledger, NOW + 3, host="cancelled.test")
    assert ledger.penalty("penalty.test", NOW + 3) == NOW + 102
    assert ledger.penalty("penalty2.test", NOW + 3) == NOW + 62
    assert caplog.records == []
    assert ledger._late == []


@pytest.mark.requirement("RATE-2")
def test_what_could_not_be_written_is_with_the_next_write(
    ledger: RateLedger, other: RateLedger, writer: sqlite3.Connection
) -> None:
    first, second = turn(ledger, NOW), turn(ledger, NOW, host="second.test")
    writer.execute("BEGIN EXCLUSIVE")
    ledger.settle(first, NOW + 2)
    writer.execute("ROLLBACK")
    ledger.settle(second, NOW + 3)
    assert due(other, NOW + 3.5) == NOW + 4
    assert due(other, NOW + 3.5, host="second.test") == NOW + 5


@pytest.mark.requirement("RATE-2", "SEC-6")
@pytest.mark.parametrize("trouble", ["full", "damaged"])
def test_a_file_that_fails_gives_no_turns_and_says_so_once(
    ledger: RateLedger, path: Path, trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    host = "x" * 100_000 + ".test"  # needs pages of its own
    if trouble == "full":
        ledger._db.execute("PRAGMA max_page_count = 1")
    else:
        ledger._db.execute("DROP TABLE penalty")
    for seconds in range(3):
        assert due(ledger, NOW + seconds, host=host) == NOW + seconds + 1
        assert ledger.back_off(host, 100, NOW + seconds) == NOW + seconds + 100
        ledger.beat(NOW + seconds)
    if trouble == "full":
        ledger._db.execute("PRAGMA max_page_count = 1000000")
    else:
        assert ledger.penalty(HOST, NOW + 3) == NOW + 4
        mended = sqlite3.connect(path, timeout=0)  # other processes are not locked out meanwhile
        mended.executescript("CREATE TABLE penalty" + SCHEMA.partition("CREATE TABLE penalty")[2])
        mended.close()
    assert due(ledger, NOW + 3, host=host) == NOW + 102
    turn(ledger, NOW + 102, host=host)
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert f"pace file `{path}` fails" in record.getMessage()


@pytest.mark.requirement("RATE-2", "SEC-1")
def test_bad_values_are_no_permission(ledger: RateLedger) -> None:
    for host in ("", "\ud800\N{SNOWMAN}", "a\0b", "x" * 100_000):
        turn(ledger, NOW, host=host)
        due(ledger, NOW + 1, host=host)
    ledger.settle(turn(ledger, NOW), float("nan"))
    assert due(ledger, NOW + 1) == NOW + 3
    ledger.end(turn(ledger, NOW + 3))
    ledger.settle(10**30, NOW)
    ledger.end(-1)
    turn(ledger, NOW, [Window(0, 10)], host="zero.test")
    due(ledger, NOW, [Window(0, 10)], host="zero.test")
    turn(ledger, NOW, [], host="free.test")
    turn(ledger, NOW, [], host="free.test")


@pytest.mark.requirement("SEC-6")
def test_a_file_that_is_closed_gives_no_turns(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ledger = RateLedger(path)
    first = turn(ledger, NOW)
    ledger.close(NOW)
    assert due(ledger, NOW + 9) == NOW + 10
    ledger.settle(first, NOW + 9)
    ledger.beat(NOW + 9)
    assert caplog.records == []


# Takes turns for some seconds, but at least one turn, and one at a time over all processes. Prints
# two moments for each turn: just after its begin, and just before its end.
CRAWLER = """
import sys
import time
from pathlib import Path
from comity.gate.pace.ledger import RateLedger, PaceLimit
from comity.policies.syntax.windows import Window

path, requests, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
lasts = float(sys.argv[4])
limits = [
    PaceLimit("example.org", (Window(requests, seconds),)),
    PaceLimit("in flight", (Window(1, 0),), through=True),
]
ledger = RateLedger(Path(path), owner_ttl=0.5)
print("ready", flush=True)
sys.stdin.readline()
end, has_taken = time.time() + lasts, lasts == 0
while (now := time.time()) < end or not has_taken:
    claim = ledger.acquire(limits, now)
    if claim.number is None:
        # Wait as a crawl does: two processes have no clock that the test could move.
        time.sleep(max(0.0, claim.due - time.time()))
        continue
    began = time.time()
    ledger.settle(claim.number, time.time())
    print(began, time.time(), flush=True)
    ledger.end(claim.number)
    has_taken = True
if lasts > 0:
    ledger.close()
else:
    ledger.acquire(limits, time.time())
    print("in flight", flush=True)
    sys.stdin.readline()
"""


def crawler(path: Path, window: Window, lasts: float) -> subprocess.Popen[str]:
    arguments = [str(path), str(window.requests), str(window.seconds), str(lasts)]
    return subprocess.Popen(
        [sys.executable, "-c", CRAWLER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def say(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.slow
@pytest.mark.requirement("RATE-2")
@pytest.mark.parametrize("window", [Window(1, 0.02), Window(10, 0.2)])
def test_two_processes_share_a_host(path: Path, window: Window) -> None:
    """They create the file at the same time, and both get turns.

    Together they keep the window and the number in flight.
    """
    processes = [crawler(path, window, 2) for _ in range(2)]
    assert [read_line(process) for process in processes] == ["ready"] * 2
    for process in processes:
        say(process)
    outputs = [process.communicate(timeout=300)[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    flights = sorted(tuple(map(float, line.split())) for output in outputs for line in output)
    starts = [began for began, _ in flights]
    assert keeps_to(window, starts)
    assert all(ended <= began for (_, ended), (began, _) in itertools.pairwise(flights))
    assert min(map(len, outputs)) > 0


@pytest.mark.requirement("RATE-2", "SEC-6")
def test_kill_9_costs_no_more_than_a_delay(path: Path) -> None:
    """Another process goes on when the killed one has given no sign of life for `ttl` seconds."""
    process = crawler(path, Window(1, 3), 0)
    assert read_line(process) == "ready"
    say(process)
    assert read_line(process) == "in flight"
    process.kill()
    process.communicate()
    ledger = RateLedger(path, owner_ttl=0.5)
    [(beat,)] = query(path, "SELECT beat FROM owner")
    assert isinstance(beat, float)
    alone = PaceLimit("in flight", (Window(1, 0),), through=True)
    assert due(ledger, beat + 0.4, [Window(1, 3)]) == beat + 0.9
    assert due_of_all(ledger, beat + 0.4, alone) == (beat + 0.4 + ASK_THROUGH, "in flight")
    turn_of_all(ledger, beat + 0.6, alone)
    assert due(ledger, beat + 0.6, [Window(1, 3)]) == beat + 3.5
    turn(ledger, beat + 3.5, [Window(1, 3)])
    ledger.close()
