"""Which request is next, and when, by a clock that the tests move."""

from __future__ import annotations

from datetime import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import Request

from comity.crawler.frontier.book import Entry
from comity.crawler.frontier.waiting.host_queue import HostQueue
from comity.crawler.frontier.waiting.host_queues import HostQueues
from comity.gate.pace.ledger import PaceLimit
from comity.gate.pace.limiter import Limiter, windows_for
from comity.policies import Agent, Site
from comity.policies.syntax.windows import Window

ORIGIN = "https://example.org"


def entry(path: str, priority: int = 0, key: int | None = None) -> Entry:
    return Entry(Request(f"{ORIGIN}/{path}", priority=priority), key)


def host_queues(*names: str) -> tuple[HostQueues, list[HostQueue]]:
    """HostQueues with one waiting request each."""
    queues, made = HostQueues(), []
    for name in names:
        queue = HostQueue(name, None)
        queue.push(entry(name), 0)
        queues.add(queue)
        made.append(queue)
    return queues, made


@given(st.lists(st.integers(-2, 2)))
def test_higher_priority_first_and_then_who_came_first(priorities: list[int]) -> None:
    queue = HostQueue(ORIGIN, None)
    entries = [entry(str(number), priority) for number, priority in enumerate(priorities)]
    for each in entries:
        queue.push(each, each.request.priority)
    assert [queue.pop() for _ in entries] == sorted(
        entries, key=lambda each: -each.request.priority
    )
    assert not queue


def test_what_was_out_goes_first_within_its_priority() -> None:
    queue = HostQueue(ORIGIN, None)
    first, second, urgent = entry("1"), entry("2"), entry("3", priority=1)
    queue.push(first, 0)
    queue.push(second, 0)
    assert queue.pop() is first
    queue.push(urgent, 1)
    queue.push_back(first)
    assert [queue.pop(), queue.pop(), queue.pop()] == [urgent, first, second]
    queue.push(second, 0)
    queue.push_back(urgent)
    assert [queue.pop(), queue.pop()] == [urgent, second]
    assert not queue


def test_the_next_request_is_known_to_be_allowed_if_all_since_were() -> None:
    queue, scope = HostQueue(ORIGIN, None), HostQueue(ORIGIN, None)
    queue.push(1, 0)
    queue.push(2, 0, is_allowed=True)
    assert not queue.is_next_allowed
    queue.pop()
    assert queue.is_next_allowed
    queue.push_back(returned := entry("returned"))
    assert not queue.is_next_allowed
    assert queue.pop() is returned
    queue.push(3, 0)  # it may be refused, and may be the next one
    assert not queue.is_next_allowed
    scope.push(4, 0, is_allowed=True)
    scope.push(5, 0, is_allowed=True)
    queue.move(scope)
    assert (scope.pop(), scope.is_next_allowed) == (2, True)


def test_a_queue_keeps_the_pace_of_its_host_and_of_its_scopes() -> None:
    alone, scope = host(), Limiter(f"{ORIGIN} 1", (), 8)
    assert [HostQueue(ORIGIN, alone).limiters, HostQueue(ORIGIN, alone, (scope,)).limiters] == [
        (alone,),
        (alone, scope),
    ]
    assert [HostQueue("", None).limiters, HostQueue("", None, (scope,)).limiters] == [(), (scope,)]
    assert HostQueue(ORIGIN, alone, (scope,)).scopes == (scope,)
    assert (HostQueue(ORIGIN, alone).aside, HostQueue(ORIGIN, alone).fetched) == ("", None)


def test_queues_of_a_host_are_those_of_all_its_origins() -> None:
    names = ["http://a.test", "https://a.test:8443", "https://a.test.", "https://b.a.test", ""]
    queues, made = host_queues(*names)
    assert queues.of_host("a.test") == made[:3]


def test_queues_are_next_in_the_order_in_which_they_are_due() -> None:
    queues, (a, b, c) = host_queues("a", "b", "c")
    queues.date(a, 3)
    queues.date(b, 1)
    queues.date(c, 1)
    assert queues.next(0.9) is None
    assert queues.next_due() == 1
    assert [queues.next(3), queues.next(3), queues.next(3), queues.next(3)] == [b, c, a, None]
    assert queues.next_due() is None


def test_last_date_of_a_queue_counts() -> None:
    queues, (a, b) = host_queues("a", "b")
    queues.date(a, 1)
    queues.date(b, 2)
    queues.date(a, 3)
    assert queues.next_due() == 2
    assert queues.next(2) is b
    assert queues.next(2) is None
    assert queues.next_due() == 3
    queues.date(a, 2)
    assert queues.next(2) is a
    assert queues.next(9) is None


def test_key_of_the_queue_on_disk_is_replaced_by_its_request() -> None:
    queue = HostQueue(ORIGIN, None)
    queue.push(7, 0)
    queue.push(8, 1)
    assert queue.pop() == 8
    assert queue.peek() == 7
    queue.replace(first := entry("7", key=7))
    queue.push(9, 0)
    assert (queue.pop(), queue.pop()) == (first, 9)
    assert queue.peek() is None


def test_queues_of_one_origin_have_a_scope_each() -> None:
    queues = HostQueues()
    scope, other = Limiter(f"{ORIGIN} 1", (), 8), Limiter(f"{ORIGIN} 2", (), 8)
    made = [
        HostQueue(ORIGIN, host()),
        HostQueue(ORIGIN, host(), (scope,)),
        HostQueue(ORIGIN, host(), (scope, other)),
    ]
    for queue in made:
        queues.add(queue)
    asked = [(), (scope,), (scope, other), (other,), (other, scope)]
    assert [queues.get(ORIGIN, scopes) for scopes in asked] == [*made, None, None]
    assert queues.get("") is None
    queues.drop(made[0])
    assert [queues.get(ORIGIN, scopes) for scopes in asked[:3]] == [None, *made[1:]]


@pytest.mark.requirement("AUTX-2")
def test_request_that_is_moved_has_the_place_that_it_would_have_had() -> None:
    queue, scope = HostQueue(ORIGIN, None), HostQueue(ORIGIN, None)
    entries = [entry(str(number)) for number in range(4)]
    for number, each in enumerate(entries):
        (scope if number == 2 else queue).push(each, 0)
    scope.push(first := entry("first", priority=1), 1)
    queue.push_back(returned := entry("returned"))
    while queue:
        queue.move(scope)
    assert [scope.pop() for _ in range(6)] == [first, returned, *entries]


@pytest.mark.requirement("AUTX-2", "SEC-6")
def test_request_that_is_moved_stands_by_its_key_in_the_queue_on_disk() -> None:
    """Unless it was out already: then it may have changed."""
    queue, scope = HostQueue(ORIGIN, None), HostQueue(ORIGIN, None)
    queue.push(7, 0)
    queue.replace(entry("7", key=7))
    queue.push_back(returned := entry("8", key=8))
    queue.move(scope)
    queue.move(scope)
    assert (scope.pop(), scope.pop()) == (returned, 7)


def test_nobody_waits_for_what_is_set_aside() -> None:
    queues, (a, b) = host_queues("a", "b")
    queues.set_aside(a, "too slow")
    queues.set_aside(a, "too slow")
    assert (bool(queues), queues.aside()) == (True, [a])
    queues.date(a, 1)
    assert queues.next(1) is a  # it may be due again
    queues.drop(b)
    assert not queues
    queues.set_aside(a, "")
    assert (bool(queues), queues.aside()) == (True, [])
    queues.set_aside(a, "again")
    queues.drop(a)
    assert (bool(queues), queues.aside()) == (False, [])
    queues.add(a)
    assert (bool(queues), queues.aside()) == (True, [])


def test_dropped_lane_is_never_next() -> None:
    queues, (a, b) = host_queues("a", "b")
    queues.date(a, 1)
    queues.date(b, 2)
    queues.drop(a)
    assert queues.next(2) is b
    queues.drop(b)
    assert not queues


def test_queues_that_are_due_take_turns() -> None:
    queues, made = host_queues("a", "b", "c")
    for queue in made:
        queues.date(queue, 0)
    turns = []
    for now in range(1, 10):
        due = queues.next(now)
        assert due
        turns.append(due.origin)
        queues.date(due, now)
    assert turns == ["a", "b", "c"] * 3


def host(floor: float = 0.0) -> Limiter:
    return Limiter("example.org", (Window(1, floor),) if floor else (), 8)


@pytest.mark.requirement("RATE-1")
def test_a_host_keeps_the_limits_of_all_its_origins_and_of_the_operator() -> None:
    limited = host(0.5)
    limited.restrict("http://example.org", (Window(1, 0.1),))
    assert limited.delay(0) == 0.5
    limited.restrict("https://example.org", (Window(1, 2), Window(10, 60)))
    assert limited.delay(0) == 6
    assert limited.windows == (Window(1, 0.5), Window(1, 0.1), Window(1, 2), Window(10, 60))
    limited.restrict("https://example.org", ())
    assert limited.delay(0) == 0.5
    limited.restrict("https://example.org", (Window(1, 600, time(9), time(17)),))
    assert [limited.delay(hour * 3600) for hour in (8, 9, 16, 17)] == [0.5, 600, 600, 0.5]
    limited.restrict("https://example.org", ())
    limited.throttled(3)  # AutoThrottle may slow down
    assert limited.delay(0) == 3
    limited.throttled(0.1)
    assert limited.delay(0) == 0.5


@pytest.mark.requirement("RATE-1")
@pytest.mark.parametrize(
    ("windows", "full_at"),
    [
        ((), 8),
        ((Window(1, 0.1),), 1),
        ((Window(5, 1),), 5),
        ((Window(50, 1),), 8),
        ((Window(1, 9, time(8), time(9)),), 8),
    ],
)
def test_as_many_are_in_flight_as_its_windows_hold(
    windows: tuple[Window, ...], full_at: int
) -> None:
    limited = host()
    limited.restrict(ORIGIN, windows)
    limited.in_flight = full_at - 1
    assert not limited.full
    limited.in_flight = full_at
    assert limited.full


@pytest.mark.requirement("AUTX-3")
@pytest.mark.parametrize(
    ("windows", "concurrent", "full_at"),
    [((), 2, 2), ((Window(1, 9),), 2, 1), ((Window(5, 9),), 20, 5)],
)
def test_as_many_are_in_flight_as_the_scope_lets(
    windows: tuple[Window, ...], concurrent: int, full_at: int
) -> None:
    scope = Limiter(f"{ORIGIN} 1", (), 8)
    scope.restrict("", windows, concurrent)
    assert scope.most == full_at
    alone = PaceLimit(f"{ORIGIN} 1 (in flight)", (Window(concurrent, 0.0),), through=True)
    assert scope.limits == (*((PaceLimit(f"{ORIGIN} 1", windows),) if windows else ()), alone)
    scope.restrict("", windows)
    assert alone not in scope.limits


@pytest.mark.requirement("RATE-1")
def test_a_delay_that_becomes_known_late_counts_from_the_last_start() -> None:
    limited = host()
    limited.last = 10
    limited.rest()
    assert limited.free_at == 10
    limited.restrict(ORIGIN, (Window(1, 2), Window(10, 60)))
    assert limited.free_at == 12
    limited.throttled(5)
    assert limited.free_at == 15
    limited.restrict(ORIGIN, ())
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
def test_windows_for_are_all_that_a_site_says(lines: str, windows: tuple[Window, ...]) -> None:
    site = Site.from_files(ORIGIN, {"/robots.txt": f"User-agent: *\n{lines}\n".encode()})
    assert windows_for(site, Agent("testbot")) == windows


def test_site_without_robots_txt_asks_for_no_delay() -> None:
    assert windows_for(Site.from_files(ORIGIN, {}), Agent("testbot")) == ()


@pytest.mark.requirement("RATE-3")
def test_parked_queues_are_due_when_their_limiter_is_free() -> None:
    queues, (first, second, dropped) = host_queues("a", "b", "c")
    limiter = host()
    limiter.free_at = 5.0
    for queue in (first, second, dropped):
        queues.park(queue, limiter)
    dropped.pop()
    assert queues.next_due() is None
    assert queues.unpark(limiter)
    assert queues.next_due() == 5.0
    assert [queues.next(5.0) for _ in range(3)] == [first, second, None]
    assert not queues.unpark(limiter)
    assert not queues.unpark(host())
