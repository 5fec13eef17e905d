"""Which request is next, and when, by a clock that the tests move."""

from __future__ import annotations

from datetime import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import Request

from comity.crawler.frontier.host_queues import Lane, Lanes
from comity.crawler.pace.ledger import Limit
from comity.crawler.pace.limiter import Unit, asked_windows
from comity.policies import Agent, Site
from comity.policies.syntax.windows import Window

ORIGIN = "https://example.org"


def request(path: str, priority: int = 0) -> Request:
    return Request(f"{ORIGIN}/{path}", priority=priority)


def lanes(*names: str) -> tuple[Lanes, list[Lane]]:
    """Lanes with one waiting request each."""
    queue, made = Lanes(), []
    for name in names:
        lane = Lane(name, None)
        lane.push(request(name), 0)
        queue.add(lane)
        made.append(lane)
    return queue, made


@given(st.lists(st.integers(-2, 2)))
def test_higher_priority_first_and_then_who_came_first(priorities: list[int]) -> None:
    lane = Lane(ORIGIN, None)
    requests = [request(str(number), priority) for number, priority in enumerate(priorities)]
    for each in requests:
        lane.push(each, each.priority)
    assert [lane.pop() for _ in requests] == sorted(requests, key=lambda each: -each.priority)
    assert not lane


def test_what_was_out_goes_first_within_its_priority() -> None:
    lane = Lane(ORIGIN, None)
    first, second, urgent = request("1"), request("2"), request("3", priority=1)
    lane.push(first, 0)
    lane.push(second, 0)
    assert lane.pop() is first
    lane.push(urgent, 1)
    lane.push_back(first)
    assert [lane.pop(), lane.pop(), lane.pop()] == [urgent, first, second]
    lane.push(second, 0)
    lane.push_back(urgent)
    assert [lane.pop(), lane.pop()] == [urgent, second]
    assert not lane


def test_a_lane_keeps_the_pace_of_its_host_and_of_its_scopes() -> None:
    alone, scope = host(), Unit(f"{ORIGIN} 1", (), 8)
    assert [Lane(ORIGIN, alone).units, Lane(ORIGIN, alone, (scope,)).units] == [(alone,), (alone, scope)]
    assert [Lane("", None).units, Lane("", None, (scope,)).units] == [(), (scope,)]
    assert (Lane(ORIGIN, alone, (scope,)).scopes, Lane(ORIGIN, alone).aside, Lane(ORIGIN, alone).fetched) == ((scope,), "", None)


def test_lanes_are_next_in_the_order_in_which_they_are_due() -> None:
    queue, (a, b, c) = lanes("a", "b", "c")
    queue.date(a, 3)
    queue.date(b, 1)
    queue.date(c, 1)
    assert queue.next(0.9) is None
    assert queue.next_due() == 1
    assert [queue.next(3), queue.next(3), queue.next(3), queue.next(3)] == [b, c, a, None]
    assert queue.next_due() is None


def test_last_date_of_a_lane_counts() -> None:
    queue, (a, b) = lanes("a", "b")
    queue.date(a, 1)
    queue.date(b, 2)
    queue.date(a, 3)
    assert queue.next_due() == 2
    assert queue.next(2) is b
    assert queue.next(2) is None
    assert queue.next_due() == 3
    queue.date(a, 2)
    assert queue.next(2) is a
    assert queue.next(9) is None


def test_key_of_the_queue_on_disk_is_replaced_by_its_request() -> None:
    lane = Lane(ORIGIN, None)
    lane.push(7, 0)
    lane.push(8, 1)
    assert lane.pop() == 8
    assert lane.peek() == 7
    lane.replace(first := request("7"))
    lane.push(9, 0)
    assert (lane.pop(), lane.pop()) == (first, 9)


def test_lanes_of_one_origin_have_a_scope_each() -> None:
    queue = Lanes()
    scope, other = Unit(f"{ORIGIN} 1", (), 8), Unit(f"{ORIGIN} 2", (), 8)
    made = [Lane(ORIGIN, host()), Lane(ORIGIN, host(), (scope,)), Lane(ORIGIN, host(), (scope, other))]
    for lane in made:
        queue.add(lane)
    asked = [(), (scope,), (scope, other), (other,), (other, scope)]
    assert [queue.get(ORIGIN, scopes) for scopes in asked] == [*made, None, None]
    assert queue.get("") is None
    queue.drop(made[0])
    assert [queue.get(ORIGIN, scopes) for scopes in asked[:3]] == [None, *made[1:]]


@pytest.mark.requirement("AUTX-2")
def test_request_that_is_moved_has_the_place_that_it_would_have_had() -> None:
    lane, scope = Lane(ORIGIN, None), Lane(ORIGIN, None)
    requests = [request(str(number)) for number in range(4)]
    for number, each in enumerate(requests):
        (scope if number == 2 else lane).push(each, 0)
    scope.push(first := request("first", priority=1), 1)
    lane.push_back(returned := request("returned"))
    while lane:
        assert not lane.move(scope, None)
    assert [scope.pop() for _ in range(6)] == [first, returned, *requests]


@pytest.mark.requirement("AUTX-2", "SEC-6")
def test_request_that_is_moved_stands_by_its_key_in_the_queue_on_disk() -> None:
    """Unless it was out already: then it may have changed."""
    lane, scope = Lane(ORIGIN, None), Lane(ORIGIN, None)
    lane.push(7, 0)
    lane.replace(request("7"))
    lane.push_back(returned := request("8"))
    assert (lane.move(scope, 8), lane.move(scope, 7)) == (False, True)
    assert (scope.pop(), scope.pop()) == (returned, 7)


def test_nobody_waits_for_what_is_set_aside() -> None:
    queue, (a, b) = lanes("a", "b")
    queue.set_aside(a, "too slow")
    queue.set_aside(a, "too slow")
    assert (bool(queue), queue.aside()) == (True, [a])
    queue.date(a, 1)
    assert queue.next(1) is a  # it may be due again
    queue.drop(b)
    assert not queue
    queue.set_aside(a, "")
    assert (bool(queue), queue.aside()) == (True, [])
    queue.set_aside(a, "again")
    queue.drop(a)
    assert (bool(queue), queue.aside()) == (False, [])
    queue.add(a)
    assert (bool(queue), queue.aside()) == (True, [])


def test_dropped_lane_is_never_next() -> None:
    queue, (a, b) = lanes("a", "b")
    queue.date(a, 1)
    queue.date(b, 2)
    queue.drop(a)
    assert queue.next(2) is b
    queue.drop(b)
    assert not queue


def test_lanes_that_are_due_take_turns() -> None:
    queue, made = lanes("a", "b", "c")
    for lane in made:
        queue.date(lane, 0)
    turns = []
    for now in range(1, 10):
        due = queue.next(now)
        assert due
        turns.append(due.origin)
        queue.date(due, now)
    assert turns == ["a", "b", "c"] * 3


def host(floor: float = 0.0) -> Unit:
    return Unit("example.org", (Window(1, floor),) if floor else (), 8)


@pytest.mark.requirement("RATE-1")
def test_a_host_keeps_the_limits_of_all_its_origins_and_of_the_operator() -> None:
    limited = host(0.5)
    limited.states("http://example.org", (Window(1, 0.1),))
    assert limited.delay(0) == 0.5
    limited.states("https://example.org", (Window(1, 2), Window(10, 60)))
    assert limited.delay(0) == 6
    assert limited.windows == (Window(1, 0.5), Window(1, 0.1), Window(1, 2), Window(10, 60))
    limited.states("https://example.org", ())
    assert limited.delay(0) == 0.5
    limited.states("https://example.org", (Window(1, 600, time(9), time(17)),))
    assert [limited.delay(hour * 3600) for hour in (8, 9, 16, 17)] == [0.5, 600, 600, 0.5]
    limited.states("https://example.org", ())
    limited.throttled(3)  # AutoThrottle may slow down
    assert limited.delay(0) == 3
    limited.throttled(0.1)
    assert limited.delay(0) == 0.5


@pytest.mark.requirement("RATE-1")
@pytest.mark.parametrize(
    ("windows", "full_at"),
    [((), 8), ((Window(1, 0.1),), 1), ((Window(5, 1),), 5), ((Window(50, 1),), 8), ((Window(1, 9, time(8), time(9)),), 8)],
)
def test_as_many_are_in_flight_as_its_windows_hold(windows: tuple[Window, ...], full_at: int) -> None:
    limited = host()
    limited.states(ORIGIN, windows)
    limited.in_flight = full_at - 1
    assert not limited.full
    limited.in_flight = full_at
    assert limited.full


@pytest.mark.requirement("AUTX-3")
@pytest.mark.parametrize(("windows", "concurrent", "full_at"), [((), 2, 2), ((Window(1, 9),), 2, 1), ((Window(5, 9),), 20, 5)])
def test_as_many_are_in_flight_as_the_scope_lets(windows: tuple[Window, ...], concurrent: int, full_at: int) -> None:
    scope = Unit(f"{ORIGIN} 1", (), 8)
    scope.states("", windows, concurrent)
    assert scope.most == full_at
    alone = Limit(f"{ORIGIN} 1 (in flight)", (Window(concurrent, 0.0),), through=True)
    assert scope.limits == (*((Limit(f"{ORIGIN} 1", windows),) if windows else ()), alone)
    scope.states("", windows)
    assert alone not in scope.limits


@pytest.mark.requirement("RATE-1")
def test_a_delay_that_becomes_known_late_counts_from_the_last_start() -> None:
    limited = host()
    limited.last = 10
    limited.rests()
    assert limited.free_at == 10
    limited.states(ORIGIN, (Window(1, 2), Window(10, 60)))
    assert limited.free_at == 12
    limited.throttled(5)
    assert limited.free_at == 15
    limited.states(ORIGIN, ())
    assert limited.free_at == 15  # what it was put off for is not taken back


@pytest.mark.requirement("RATE-1", "RFC-11")
@pytest.mark.parametrize(
    ("lines", "windows"),
    [
        ("Disallow:", ()),
        ("Crawl-delay: 3", (Window(1, 3),)),
        ("Request-rate: 1/4", (Window(1, 4),)),
        ("Crawl-delay: 3\nRequest-rate: 10/1m", (Window(1, 3), Window(10, 60))),
    ],
)
def test_asked_windows_are_all_that_a_site_says(lines: str, windows: tuple[Window, ...]) -> None:
    site = Site.from_files(ORIGIN, {"/robots.txt": f"User-agent: *\n{lines}\n".encode()})
    assert asked_windows(site, Agent("testbot")) == windows


def test_site_without_robots_txt_asks_for_no_delay() -> None:
    assert asked_windows(Site.from_files(ORIGIN, {}), Agent("testbot")) == ()
