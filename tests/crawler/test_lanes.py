"""Which request is next, and when, by a clock that the tests move."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import Request

from comity.crawler.lanes import Lane, Lanes
from comity.crawler.pace import Host, asked_delay
from comity.policies import Agent, Site

ORIGIN = "https://example.org"


def request(path: str, priority: int = 0) -> Request:
    return Request(f"{ORIGIN}/{path}", priority=priority)


def lanes(*names: str) -> tuple[Lanes, list[Lane]]:
    """Lanes with one waiting request each."""
    queue, made = Lanes(), []
    for name in names:
        lane = Lane(name, None)
        lane.push(request(name))
        queue.add(lane)
        made.append(lane)
    return queue, made


@given(st.lists(st.integers(-2, 2)))
def test_higher_priority_first_and_then_who_came_first(priorities: list[int]) -> None:
    lane = Lane(ORIGIN, None)
    requests = [request(str(number), priority) for number, priority in enumerate(priorities)]
    for each in requests:
        lane.push(each)
    assert [lane.pop() for _ in requests] == sorted(requests, key=lambda each: -each.priority)
    assert not lane


def test_what_was_out_goes_first_within_its_priority() -> None:
    lane = Lane(ORIGIN, None)
    first, second, urgent = request("1"), request("2"), request("3", priority=1)
    lane.push(first)
    lane.push(second)
    assert lane.pop() is first
    lane.push(urgent)
    lane.push_back(first)
    assert [lane.pop(), lane.pop(), lane.pop()] == [urgent, first, second]


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
    assert queue.next(2) is b
    assert queue.next(2) is None
    assert queue.next_due() == 3
    queue.date(a, 2)
    assert queue.next(2) is a
    assert queue.next(9) is None


def test_lane_is_not_due_before_what_it_was_put_off_to() -> None:
    queue, (a,) = lanes("a")
    a.not_before = 5
    queue.date(a, 1)
    assert queue.next(4.9) is None
    assert queue.next(5) is a


def test_dropped_lane_is_never_next() -> None:
    queue, (a, b) = lanes("a", "b")
    queue.date(a, 1)
    queue.date(b, 2)
    queue.drop(a)
    assert len(queue) == 1
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


@pytest.mark.requirement("RATE-1")
def test_longest_delay_of_its_origins_is_the_delay_of_a_host() -> None:
    host = Host(floor=0.5, ceiling=8, delay=0.5)
    host.states("http://example.org", 0.1)
    assert host.delay == 0.5
    host.states("https://example.org", 2)
    assert host.delay == 2
    host.states("https://example.org", 0)
    assert host.delay == 0.5


@pytest.mark.requirement("RATE-1")
@pytest.mark.parametrize(("delay", "full_at"), [(0.0, 8), (0.1, 1)])
def test_host_with_a_delay_has_one_request_in_flight(delay: float, full_at: int) -> None:
    host = Host(floor=delay, ceiling=8, delay=delay)
    host.in_flight = full_at - 1
    assert not host.full
    host.in_flight = full_at
    assert host.full


def test_delay_counts_from_the_last_answer() -> None:
    host = Host(floor=2, ceiling=8, delay=2)
    assert host.free_at <= 0
    host.last = 10
    assert host.free_at == 12


@pytest.mark.requirement("RATE-1", "RFC-11")
@pytest.mark.parametrize(
    ("lines", "delay"),
    [
        ("Disallow:", 0),
        ("Crawl-delay: 3", 3),
        ("Request-rate: 1/4", 4),
        ("Request-rate: 10/1m", 6),
        ("Crawl-delay: 3\nRequest-rate: 1/4", 4),
        ("Crawl-delay: 3\nRequest-rate: 2/4", 3),
    ],
)
def test_asked_delay_is_the_slowest_of_what_a_site_says(lines: str, delay: float) -> None:
    site = Site.from_files(ORIGIN, {"/robots.txt": f"User-agent: *\n{lines}\n".encode()})
    assert asked_delay(site, Agent("testbot")) == delay


def test_site_without_robots_txt_asks_for_no_delay() -> None:
    assert asked_delay(Site.from_files(ORIGIN, {}), Agent("testbot")) == 0
