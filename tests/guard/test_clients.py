"""The counting of the guard: exact windows, bounded memory, and never a refusal for a client within
its limits."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.guard.clients import MAX_STAMPS, ClientLimit, Clients, client_of
from comity.policies.syntax.windows import Window, earliest

START = datetime(2027, 3, 1, 12, tzinfo=UTC).timestamp()


def limit(
    *windows: Window, concurrent: int | None = None, key: str = "k", tolerance: float = 0
) -> ClientLimit:
    return ClientLimit(key, "/automation-preferences.txt", windows, concurrent, tolerance)


def passes(
    clients: Clients, windows: list[Window], at: float, name: str = "c", tolerance: float = 0
) -> bool:
    return clients.claim(name, [limit(*windows, tolerance=tolerance)], at) is None


steps = st.lists(st.sampled_from([0.0, 0.125, 0.5, 1.0, 3.0, 10.0]), min_size=1, max_size=60)
windows = st.lists(
    st.tuples(st.integers(1, 5), st.sampled_from([1.0, 5.0, 20.0])).map(lambda pair: Window(*pair)),
    min_size=1,
    max_size=3,
)


@pytest.mark.requirement("GUARD-1", "AUTX-2")
@given(steps, windows)
def test_windows_hold_exactly_what_they_may(steps: list[float], windows: list[Window]) -> None:
    """Against the plain definition: a request is refused where with it some window would hold too
    many that passed."""
    clients, at, passed = Clients(10), START, list[float]()
    for step in steps:
        at += step
        fits = all(
            sum(1 for one in passed if one > at - window.seconds) < window.requests
            for window in windows
        )
        assert passes(clients, windows, at) == fits
        if fits:
            passed.append(at)


def most_in_any(seconds: float, passed: list[float]) -> int:
    """Requests in any period of this length, its end included."""
    passed = sorted(passed)
    return max(
        (bisect_right(passed, last) - bisect_right(passed, last - seconds) for last in passed),
        default=0,
    )


@pytest.mark.requirement("GUARD-1", "RATE-2", "AUTX-2")
@given(
    st.lists(
        st.tuples(
            st.integers(1, 40) | st.integers(250, 1200), st.sampled_from([1.0, 10.0, 200.0])
        ).map(lambda pair: Window(*pair)),
        min_size=1,
        max_size=3,
        unique_by=lambda window: window.seconds,
    ),
    st.lists(st.tuples(st.floats(0, 1.3), st.integers(1, 400)), min_size=1, max_size=12),
)
def test_no_window_holds_more_than_the_tolerance_permits(
    windows: list[Window], bursts: list[tuple[float, int]]
) -> None:
    """This holds for all arrivals: bursts, each some share of the longest window after the one
    before. One in ten of a window may be too many, so in a window for fewer than ten requests
    none."""
    clients, at, passed = Clients(10), START, list[float]()
    longest = max(window.seconds for window in windows)
    for share, requests in bursts:
        at += share * longest
        for number in range(requests):
            if passes(clients, windows, at + number * 1e-6, tolerance=0.1):
                passed.append(at + number * 1e-6)
    assert passed
    for window in windows:
        assert 10 * most_in_any(window.seconds, passed) <= 11 * window.requests


@pytest.mark.requirement("GUARD-1", "RATE-2")
@given(
    st.lists(
        st.tuples(st.integers(1, 100), st.sampled_from([1.0, 5.0, 20.0])).map(
            lambda pair: Window(*pair)
        ),
        min_size=1,
        max_size=3,
    ),
    st.lists(st.tuples(st.floats(0, 2), st.floats(0, 2), st.floats(0, 3)), min_size=1, max_size=60),
)
def test_who_keeps_the_pace_of_a_crawler_is_never_refused(
    windows: list[Window], ways: list[tuple[float, float, float]]
) -> None:
    """By `windows.earliest`, one request at a time, with any time on the way there, back, and in
    between."""
    clients, now, stamps = Clients(10), START, list[float]()
    for there, back, pause in ways:
        due = earliest(windows, stamps, 0, now)
        assert due is not None
        assert passes(clients, windows, due + there)
        now = due + there + back
        stamps.append(now)
        now += pause


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize("requests", [MAX_STAMPS, MAX_STAMPS + 1, 1000, 10 * MAX_STAMPS, 10**9])
def test_large_windows_count_too_few_rather_than_too_many(requests: int) -> None:
    clients, window = Clients(10), Window(requests, 60)
    every = -(-requests // MAX_STAMPS)
    asked = min(requests, 5000)
    assert all(passes(clients, [window], START + number * 0.001) for number in range(asked))
    if asked == requests:
        more = [passes(clients, [window], START + 30) for _ in range(2 * every)]
        assert not more[-1]
        assert more.count(True) < every
        assert passes(clients, [window], START + 60 + every * 0.001)  # the first have left
    assert len(clients._idle["c"].stamps["k", every].moments) <= 2 * (MAX_STAMPS + 2)


@pytest.mark.requirement("GUARD-1")
def test_memory_of_a_window_is_bounded() -> None:
    clients, window = Clients(10), Window(3, 1)
    assert all(passes(clients, [window], START + number) for number in range(1000))
    assert len(clients._idle["c"].stamps["k", 1].moments) <= 10


@pytest.mark.requirement("GUARD-1")
def test_the_longest_wait_is_told() -> None:
    clients, windows = Clients(10), [Window(1, 10), Window(2, 60)]
    assert passes(clients, windows, START)
    assert passes(clients, windows, START + 10)
    refused = clients.claim("c", [limit(*windows)], START + 15.5)
    assert refused
    assert (refused.seconds, refused.permitted) == (45, "requests in 60 s: at most 2")


@pytest.mark.requirement("GUARD-1")
def test_a_window_with_hours_binds_within_them() -> None:
    clients, windows = Clients(10), [Window(1, 60, time(8), time(12, 30))]
    assert passes(clients, windows, START)
    assert not passes(clients, windows, START + 1)
    afternoon = START + 3600
    assert passes(clients, windows, afternoon)
    assert passes(clients, windows, afternoon + 1)


@pytest.mark.requirement("GUARD-1")
def test_a_clock_that_is_set_back_forgets_nothing_and_refuses_for_no_longer_than_a_window() -> None:
    clients, windows = Clients(10), [Window(2, 60)]
    assert passes(clients, windows, START)
    assert passes(clients, windows, START + 1)
    assert not passes(clients, windows, START - 3600)
    assert not passes(clients, windows, START - 3541)
    assert [passes(clients, windows, START - 3540) for _ in range(3)] == [True, True, False]


@pytest.mark.requirement("GUARD-1")
def test_a_clock_that_is_a_little_behind_shortens_no_window() -> None:
    """As the clocks of processors, or of several processes that ask one after the other."""
    clients, windows = Clients(10), [Window(1, 60)]
    assert passes(clients, windows, START)
    assert not passes(clients, windows, START - 0.5)
    assert not passes(clients, windows, START + 59.75)
    assert passes(clients, windows, START + 60)


@pytest.mark.requirement("GUARD-1")
def test_windows_of_one_file_share_what_was_counted() -> None:
    """A client that uses another name, for which the file has another window, does not start
    anew."""
    clients, slow, slower = Clients(10), [Window(1, 10)], [Window(1, 20)]
    assert passes(clients, slow, START)
    assert not passes(clients, slower, START + 11)
    assert passes(clients, slow, START + 11)
    assert not passes(clients, slower, START + 30)
    assert passes(clients, slower, START + 31)


@pytest.mark.requirement("GUARD-1")
def test_the_least_recently_seen_are_forgotten_but_none_in_flight() -> None:
    clients, windows = Clients(3), [Window(1, 60)]
    busy = [limit(*windows, concurrent=1)]
    assert clients.claim("busy", busy, START) is None
    for name in "abc":
        assert passes(clients, windows, START, name)
    assert not passes(clients, windows, START + 1, "a")  # seen again
    assert passes(clients, windows, START + 1, "d")  # b is forgotten
    assert len(clients) == 4
    assert [name for name in "acdb" if passes(clients, windows, START + 2, name)] == ["b"]
    for number in range(100):
        passes(clients, windows, START, f"n{number}")
    assert len(clients) == 4
    refused = clients.claim("busy", busy, START + 61)
    assert refused
    assert refused.rule == "comity.concurrent"
    clients.release("busy", busy)
    assert clients.claim("busy", busy, START + 61) is None


def test_limits_of_one_request_all_hold_or_none_is_used_up() -> None:
    clients = Clients(10)
    short, long = limit(Window(1, 1), key="a"), limit(Window(2, 60), key="b")
    assert clients.claim("c", [short, long], START) is None
    for _ in range(5):
        assert clients.claim("c", [short, long], START) is not None
    assert clients.claim("c", [short, long], START + 1) is None
    assert clients.claim("c", [short, long], START + 2) is not None


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("192.0.2.1:5000", "192.0.2.1", True),
        ("192.0.2.1:5000", "192.0.2.2:5000", False),
        ("[2001:db8:0:1::1]:5000", "2001:db8:0:1::2", True),
        ("[::ffff:192.0.2.1]", "192.0.2.1", True),
        ("unknown:1", "unknown:2", False),
        ("", "unix:", False),
    ],
)
def test_whom_an_address_stands_for(one: str, other: str, is_same: bool) -> None:
    assert (client_of(one) == client_of(other)) is is_same
