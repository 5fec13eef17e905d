"""The counting of the guard: exact windows, bounded memory, and never a refusal for who keeps to a limit."""

from __future__ import annotations

from datetime import UTC, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.guard.clients import MAX_STAMPS, Clients, Limit, client_of
from comity.policies.limits import Window

START = datetime(2027, 3, 1, 12, tzinfo=UTC).timestamp()


def limit(*windows: Window, concurrent: int | None = None, key: str = "k") -> Limit:
    return Limit(key, "/automation-preferences.txt", windows, concurrent)


def passes(clients: Clients, windows: list[Window], at: float, name: str = "c") -> bool:
    return clients.claim(name, [limit(*windows)], at) is None


steps = st.lists(st.sampled_from([0.0, 0.125, 0.5, 1.0, 3.0, 10.0]), min_size=1, max_size=60)
windows = st.lists(
    st.tuples(st.integers(1, 5), st.sampled_from([1.0, 5.0, 20.0])).map(lambda pair: Window(*pair)), min_size=1, max_size=3
)


@pytest.mark.requirement("GUARD-1", "AUTX-2")
@given(steps, windows)
def test_windows_hold_exactly_what_they_may(steps: list[float], windows: list[Window]) -> None:
    """Against the plain definition: a request is refused where with it some window would hold too many that passed."""
    clients, at, passed = Clients(10, 0), START, list[float]()
    for step in steps:
        at += step
        fits = all(sum(1 for one in passed if one > at - window.seconds) < window.requests for window in windows)
        assert passes(clients, windows, at) == fits
        if fits:
            passed.append(at)


@pytest.mark.requirement("GUARD-1")
@given(steps, windows, st.lists(st.floats(0, 0.09), min_size=60, max_size=60))
def test_who_keeps_to_the_windows_is_not_refused_for_the_network(
    steps: list[float], windows: list[Window], late: list[float]
) -> None:
    """What was sent by the rules arrives up to a tenth of a second later, in order."""
    clients, sent, at, arrived = Clients(10, 0.1), list[float](), START, START
    for step, delay in zip(steps, late, strict=False):
        at += step
        if all(sum(1 for one in sent if one > at - window.seconds) < window.requests for window in windows):
            sent.append(at)
            arrived = max(arrived, at + delay)
            assert passes(clients, windows, arrived)


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize("requests", [MAX_STAMPS, MAX_STAMPS + 1, 1000, 10 * MAX_STAMPS, 10**9])
def test_large_windows_count_too_few_rather_than_too_many(requests: int) -> None:
    clients, window = Clients(10, 0), Window(requests, 60)
    every = -(-requests // MAX_STAMPS)
    asked = min(requests, 5000)
    assert all(passes(clients, [window], START + number * 0.001) for number in range(asked))
    if asked == requests:
        more = [passes(clients, [window], START + 30) for _ in range(2 * every)]
        assert not more[-1]
        assert more.count(True) < every
        assert passes(clients, [window], START + 60 + every * 0.001)  # the first have left
    stamps = clients._idle["c"].stamps["k", window]._stamps
    assert len(stamps) <= 2 * (MAX_STAMPS + 2)


@pytest.mark.requirement("GUARD-1")
def test_memory_of_a_window_is_bounded() -> None:
    clients, window = Clients(10, 0), Window(3, 1)
    assert all(passes(clients, [window], START + number) for number in range(1000))
    assert len(clients._idle["c"].stamps["k", window]._stamps) <= 10


@pytest.mark.requirement("GUARD-1")
def test_the_longest_wait_is_told() -> None:
    clients, windows = Clients(10, 0.1), [Window(1, 10), Window(2, 60)]
    assert passes(clients, windows, START)
    assert passes(clients, windows, START + 10)
    refused = clients.claim("c", [limit(*windows)], START + 15.5)
    assert refused
    assert (refused.seconds, refused.stated) == (45, "requests in 60 s: at most 2")


@pytest.mark.requirement("GUARD-1")
def test_a_window_with_hours_binds_within_them() -> None:
    clients, windows = Clients(10, 0), [Window(1, 60, time(8), time(12, 30))]
    assert passes(clients, windows, START)
    assert not passes(clients, windows, START + 1)
    afternoon = START + 3600
    assert passes(clients, windows, afternoon)
    assert passes(clients, windows, afternoon + 1)


@pytest.mark.requirement("GUARD-1")
def test_a_clock_that_is_set_back_refuses_nobody_for_long() -> None:
    clients, windows = Clients(10, 0), [Window(1, 60)]
    assert passes(clients, windows, START)
    assert passes(clients, windows, START - 3600)
    assert not passes(clients, windows, START - 3599)


@pytest.mark.requirement("GUARD-1")
def test_the_least_recently_seen_are_forgotten_but_none_in_flight() -> None:
    clients, windows = Clients(3, 0), [Window(1, 60)]
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
    clients = Clients(10, 0)
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
        ("", "unix:", False),
    ],
)
def test_whom_an_address_stands_for(one: str, other: str, is_same: bool) -> None:
    assert (client_of(one) == client_of(other)) is is_same
