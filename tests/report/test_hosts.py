"""Counts by host: bounded, exact in total, and gaps against limits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time

import pytest

from comity.policies import Source
from comity.policies.syntax.windows import MAX_STAMPS, StatedLimit, Window
from comity.report import hosts as module
from comity.report.hosts import BINS, EDGES, HostCounts
from comity.report.value import Line, UnreadLimit

SECOND = Window(1, 1.0)


@dataclass
class Limiter:
    """As the pace has it."""

    windows: tuple[Window, ...] = (SECOND,)
    name: str = "a.example"
    floor: tuple[Window, ...] = ()
    in_flight: int = 0
    unread: tuple[StatedLimit, ...] = ()


def asked(
    counts: HostCounts, limiter: Limiter, *moments: tuple[float, float]
) -> list[float | None]:
    """The gaps before requests that start and are settled at these moments, as parts of the limit."""
    parts = []
    for started, settled in moments:
        gap = counts.gap(limiter, started)
        counts.settle(limiter, gap, settled)
        counts.count_of(limiter.name).sent += 1
        parts.append(gap.part if gap else None)
    return parts


def test_a_gap_is_from_the_headers_of_one_answer_to_the_start_of_the_next_request() -> None:
    counts = HostCounts()
    assert asked(counts, Limiter(), (0, 0.25), (1.25, 1.5), (2.0, 2.5)) == [None, 1.0, 0.5]
    pace = counts.pace(0.0)
    assert (pace.gaps, pace.below, pace.first, pace.unlimited) == (2, 1, 1, 0)
    assert {row.name: row.count for row in pace.histogram if row.count} == {
        "below 1": 1,
        "1 to 1.05": 1,
    }
    assert (pace.least[0].host, pace.least[0].least) == ("a.example", 0.5)


def test_a_limit_for_several_requests_is_measured_from_the_request_before_so_many() -> None:
    limiter = Limiter((Window(3, 10.0),))
    assert asked(HostCounts(), limiter, (0, 0), (1, 1), (2, 2), (10, 10), (10.5, 10.5)) == [
        None,
        None,
        None,
        1.0,
        0.95,
    ]


def test_what_is_in_flight_counts_as_now() -> None:
    limiter = Limiter((Window(2, 10.0),), in_flight=1)
    assert asked(HostCounts(), limiter, (0, 1), (11, 12)) == [None, 1.0]
    limiter.in_flight = 2
    counts = HostCounts()
    assert asked(counts, limiter, (5, 6)) == [0.0]


def test_of_several_limits_the_one_that_was_kept_most_narrowly_counts() -> None:
    limiter = Limiter((SECOND, Window(2, 10.0)), floor=(SECOND,))
    counts = HostCounts()
    assert asked(counts, limiter, (0, 0), (2, 2), (12, 12)) == [None, 2.0, 1.2]
    least = counts.pace(0.0).least[0]
    assert least.limit is not None
    assert (least.limit.requests, least.limit.seconds, least.limit.is_stated) == (2, 10.0, True)


def test_a_limit_of_some_hours_counts_then_and_one_for_very_many_in_parts() -> None:
    never = Window(1, 1000.0, time(0), time(0, 0, 1))
    many = Window(MAX_STAMPS * 10, 6400.0)
    counts = HostCounts()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "time", lambda: 12 * 3600.0)
        assert asked(counts, Limiter((never,)), (0, 0), (1, 1)) == [None, None]
    parts = asked(
        counts,
        Limiter((many,), "many.example"),
        *((float(moment), float(moment)) for moment in range(200)),
    )
    assert parts[:MAX_STAMPS] == [None] * MAX_STAMPS
    assert set(parts[MAX_STAMPS:]) == {MAX_STAMPS / many.part().seconds}


def test_hosts_without_limits_and_scopes() -> None:
    counts = HostCounts()
    asked(counts, Limiter(()), (0, 0), (0, 0))
    counts.settle(
        Limiter(name="https://a.example 0123456789"),
        counts.gap(Limiter(name="https://a.example 0123456789"), 1.0),
        1.0,
    )
    pace = counts.pace(0.0)
    assert (pace.gaps, pace.first, pace.unlimited) == (0, 0, 2)
    assert [host.host for host in counts.hosts().listed] == ["a.example"]
    asked_scope = counts.gap(Limiter(name="https://a.example 0123456789"), 3.0)
    counts.settle(Limiter(name="https://a.example 0123456789"), asked_scope, 3.0)
    assert [host.host for host in counts.pace(0.0).least] == ["https://a.example (scope 012345)"]


@pytest.mark.requirement("AUTX-14")
def test_limits_that_cannot_be_read_are_listed_once_with_their_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_LISTED", 2)
    counts = HostCounts()
    source = Source(
        url="https://a.example/automation-preferences.txt", line=3, text="request-limit: 1/5s"
    )
    slow = StatedLimit("request-limit", Window(1, 300.0), None, source, "write `12/minute`")
    one = StatedLimit("concurrent-limit", None, 1, source, "write `2`")
    scope = Limiter(name="https://a.example 0123456789", unread=(slow, one))
    asked(counts, scope, (0, 0), (400, 400))
    asked(counts, Limiter(name="https://b.example 0123456789", unread=(slow,)), (0, 0))
    line = Line(url=source.url, line=3, text=source.text)
    name = "https://a.example (scope 012345)"
    assert counts.pace(0.0).unread == [
        UnreadLimit(host=name, requests=1, seconds=300.0, line=line, advice="write `12/minute`"),
        UnreadLimit(host=name, requests=1, seconds=0.0, line=line, advice="write `2`"),
    ]


def test_memory_is_bounded_and_totals_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_HOSTS", 50)
    counts = HostCounts()
    for number in range(1000):
        host = counts.count_of(f"{number}.example")
        host.sent += 1 + number % 7
        host.refused += 1
    assert len(counts._hosts) <= 100
    hosts = counts.hosts()
    assert not hosts.is_exact
    assert hosts.number == pytest.approx(1000, rel=0.02)
    assert hosts.others is not None
    assert (
        sum(host.sent for host in (*hosts.listed, hosts.others))
        == counts.total()["sent"]
        == sum(1 + n % 7 for n in range(1000))
    )
    assert sum(row.count for row in hosts.sizes) == 1000


def test_the_hosts_with_most_requests_are_followed_and_each_that_was_asked_too_soon() -> None:
    counts = HostCounts()
    for number in range(60):
        for moment in range(2 + number * 10):
            asked(counts, Limiter(name=f"{number}.example"), (moment * 2.0, moment * 2.0))
    asked(counts, Limiter(name="soon.example"), (0, 0), (0.5, 0.5))
    series = {each.host: each for each in counts.pace(0.0).series}
    assert len(series) <= module.SERIES + module.MARGINS
    assert series["soon.example"].why == "margin"
    assert "59.example" in series
    assert all(part == 2.0 for _, part in series["59.example"].points)


def test_of_a_long_series_the_narrowest_gaps_stay() -> None:
    counts = HostCounts()
    moments = [(float(moment), float(moment)) for moment in range(3000)]
    moments[1500] = (1499.25, 1499.25)
    asked(counts, Limiter(), *moments)
    [series] = counts.pace(0.0).series
    assert len(series.points) < 2 * module.POINTS
    assert series.thinned > 1
    assert min(part for _, part in series.points) == 0.25


def test_every_edge_has_a_bin() -> None:
    assert len(BINS) == len(EDGES) + 1
