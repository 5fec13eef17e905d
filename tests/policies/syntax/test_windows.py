"""The time of the next request.

Simulated servers get a request at any time before the header fields of its response arrive."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Site
from comity.policies.syntax.windows import DAY, MAX_STAMPS, Window, delay_of, earliest, windows_of

MIDNIGHT = 1_800_057_600.0
MINUTE = 60
HOUR = 60 * MINUTE

windows = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 20)).map(lambda pair: Window(*pair)),
    min_size=1,
    max_size=3,
)
times = st.builds(time, st.integers(0, 23), st.sampled_from([0, 30]))
hours = st.none() | st.tuples(times, times)
periods = st.builds(
    lambda requests, minutes, hours: Window(requests, minutes * MINUTE, *(hours or ())),
    st.integers(1, 4),
    st.integers(1, 600),
    hours,
)


def at(hour: int, minute: int = 0) -> float:
    return MIDNIGHT + hour * HOUR + minute * MINUTE


def keeps_to(window: Window, moments: Sequence[float]) -> bool:
    """Return True if no period of the window's length contains more than it permits."""
    ordered = sorted(moments)
    ahead = ordered[window.requests :]
    return all(
        after - before >= window.seconds - 1e-4
        for before, after in zip(ordered, ahead, strict=False)
    )


@pytest.mark.requirement("RATE-2")
@given(
    windows,
    st.lists(
        st.tuples(
            # Seconds from a start to the next try, seconds until the header fields arrive, and the
            # part of these seconds after which the server gets the request.
            st.floats(0, 30).map(lambda seconds: max(0, seconds - 20)),
            st.floats(0, 40),
            st.floats(0, 1),
        ),
        max_size=40,
    ),
)
def test_no_window_ever_holds_more_at_the_server(
    limits: list[Window], requests: list[tuple[float, float, float]]
) -> None:
    now = MIDNIGHT
    arrivals: list[float] = []
    flights: list[float] = []  # when their header fields arrive
    stamps: list[float] = []
    for pause, takes, part in requests:
        now += pause
        while True:
            stamps = sorted(stamps + [moment for moment in flights if moment <= now])
            flights = sorted(moment for moment in flights if moment > now)
            due = earliest(limits, stamps, len(flights), now)
            if due is not None and due <= now:
                break
            now = min(moment for moment in [due, *flights] if moment is not None)
        arrivals.append(now + takes * part)
        flights.append(now + takes)
    assert all(keeps_to(window, arrivals) for window in limits)


@pytest.mark.requirement("RATE-2")
@given(windows, st.integers(0, 40))
def test_the_rate_that_is_allowed_is_reached(limits: list[Window], count: int) -> None:
    """If header fields arrive at once, each start is the first that all windows permit."""
    starts: list[float] = []
    now = MIDNIGHT
    for _ in range(count):
        due = earliest(limits, starts, 0, now)
        assert due is not None
        past = [
            starts[-requests] + seconds
            for requests, seconds, *_ in limits
            if requests <= len(starts)
        ]
        assert due == max([now, *past])
        assert earliest(limits, starts, 0, due) == due
        starts.append(due)
        now = due


@pytest.mark.requirement("RATE-1", "RATE-2")
@given(
    st.lists(periods, max_size=4),
    st.lists(st.integers(-900, 30), max_size=6),
    st.integers(0, 3),
    st.integers(0, 24 * 60 - 1),
)
def test_the_moment_is_the_first_that_is_allowed(
    limits: list[Window], minutes: list[int], in_flight: int, minute: int
) -> None:
    """Compare with every minute of the next day.

    Starts in the future count as now, and so do requests in flight."""
    now = MIDNIGHT + minute * MINUTE
    stamps = sorted(now + ago * MINUTE for ago in minutes)
    counted = [min(stamp, now) for stamp in stamps] + [now] * in_flight

    def is_allowed(moment: float) -> bool:
        return all(
            sum(moment - stamp < window.seconds for stamp in counted) < window.requests
            for window in limits
            if in_force(window, moment)
        )

    due = earliest(limits, stamps, in_flight, now)
    if any(in_flight >= window.requests and in_force(window, now) for window in limits):
        assert due is None
    else:
        first = (
            now + ahead * MINUTE for ahead in range(24 * 60) if is_allowed(now + ahead * MINUTE)
        )
        assert due == next(first)


def in_force(window: Window, moment: float) -> bool:
    if window.start is None or window.end is None or window.start == window.end:
        return True
    clock = datetime.fromtimestamp(moment, UTC).time()
    if window.start < window.end:
        return window.start <= clock < window.end
    return clock >= window.start or clock < window.end


@pytest.mark.requirement("RATE-1")
@pytest.mark.parametrize(
    ("hours", "moment", "holds", "ends"),
    [
        ((time(8), time(12)), at(7, 59), False, at(12)),
        ((time(8), time(12)), at(8), True, at(12)),
        ((time(8), time(12)), at(12) - 0.001, True, at(12)),
        ((time(8), time(12)), at(12), False, at(36)),
        ((time(22, 30), time(6)), at(22, 30), True, at(30)),
        ((time(22, 30), time(6)), at(5, 59), True, at(6)),
        ((time(22, 30), time(6)), at(6), False, at(30)),
        ((time(8, 0, 30), time(12)), at(8) + 29, False, at(12)),
        ((time(8, 0, 30), time(12)), at(8) + 30, True, at(12)),
        ((time(9), time(9)), at(3), True, float("inf")),
        ((None, None), at(3), True, float("inf")),
    ],
)
def test_hours(
    hours: tuple[time | None, time | None], moment: float, holds: bool, ends: float
) -> None:
    window = Window(1, 10, *hours)
    assert window.holds(moment) is holds
    assert window.ends(moment) == ends


@pytest.mark.requirement("RATE-1")
def test_a_rate_with_hours_binds_within_them_only() -> None:
    slow = Window(1, 3 * HOUR, time(8), time(12))
    assert earliest([slow], [at(7, 30)], 0, at(7, 45)) == at(7, 45)
    assert earliest([slow], [at(7, 30)], 0, at(8)) == at(10, 30)
    assert earliest([slow], [at(11)], 0, at(11, 15)) == at(12)
    assert earliest([slow, Window(1, HOUR)], [at(7, 30)], 0, at(7, 45)) == at(10, 30)
    assert earliest([slow], [], 1, at(7)) == at(7)
    assert earliest([slow], [], 1, at(8)) is None


@given(st.integers(1, 2000), st.integers(1, 1000))
@pytest.mark.requirement("RATE-2")
def test_large_windows_are_kept_by_an_even_part_of_them(requests: int, seconds: int) -> None:
    window = Window(requests, seconds)
    part = window.part()
    assert part == window if requests <= MAX_STAMPS else part.requests <= MAX_STAMPS
    assert part.requests / part.seconds >= 0.96 * requests / seconds
    starts: list[float] = []
    now = MIDNIGHT
    for _ in range(2 * requests):
        due = earliest([window], starts[-MAX_STAMPS:], 0, now)
        assert due is not None
        now = due
        starts.append(now)
    assert keeps_to(window, starts)


@pytest.mark.requirement("AUTX-3", "RATE-2")
@pytest.mark.parametrize("requests", [1, MAX_STAMPS, MAX_STAMPS + 1, 10**6])
def test_a_period_of_no_seconds_holds_what_is_in_flight(requests: int) -> None:
    """It limits them for any number."""
    window = Window(requests, 0.0)
    assert earliest([window], [MIDNIGHT] * MAX_STAMPS, requests - 1, MIDNIGHT) == MIDNIGHT
    assert earliest([window], [], requests, MIDNIGHT) is None


@pytest.mark.requirement("RATE-1", "SEC-1")
@pytest.mark.parametrize("requests", [0, -1, -(10**30), 10**30])
def test_numbers_of_no_sense(requests: int) -> None:
    """Fewer than one count as one."""
    window = Window(requests, 10)
    assert earliest([window], [], 0, MIDNIGHT) == MIDNIGHT
    assert (
        earliest([window], [MIDNIGHT] * MAX_STAMPS, 0, MIDNIGHT) == MIDNIGHT + window.part().seconds
    )
    if requests < 1:
        assert window.part() == Window(1, 10)
        assert earliest([window], [MIDNIGHT], 0, MIDNIGHT) == MIDNIGHT + 10
    assert earliest([window], [], MAX_STAMPS, MIDNIGHT) is None
    assert delay_of([window]) == 10 / max(1, requests)


@pytest.mark.requirement("RATE-1")
@pytest.mark.parametrize(
    ("lines", "want", "delay"),
    [
        ("Disallow:", [], 0),
        ("Crawl-delay: 0", [], 0),
        ("Crawl-delay: 0.5", [Window(1, 0.5)], 0.5),
        ("Request-rate: 10/1m", [Window(10, 60)], 6),
        ("Crawl-delay: 3\nRequest-rate: 2/4", [Window(1, 3), Window(2, 4)], 3),
        (
            "Request-rate: 1/4\nRequest-rate: 1/9 2200-0600",
            [Window(1, 9, time(22), time(6)), Window(1, 4)],
            9,
        ),
        ("Request-rate: 1000/1h", [Window(62, 225)], 225 / 62),
    ],
)
def test_what_a_site_says(lines: str, want: list[Window], delay: float) -> None:
    site = Site.from_files(
        "https://example.org", {"/robots.txt": f"User-agent: *\n{lines}\n".encode()}
    )
    asked = windows_of(site.rates(Agent("testbot")))
    assert list(asked) == want
    assert delay_of(asked) == delay


def test_a_site_that_says_nothing() -> None:
    assert windows_of(None) == ()
    assert delay_of(()) == 0
    assert earliest((), [], 99, MIDNIGHT) == MIDNIGHT
    assert MIDNIGHT % DAY == 0
