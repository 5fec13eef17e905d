"""Counts by host, and how well the pace of each host was kept, in bounded memory.

How the pace is measured. The server gets a request at some moment between its start here and the
headers of its answer. So the time between two requests, at the server, is at least the time from
the headers of the first to the start of the second. This time is the gap. For a limit of n requests
in some seconds, the gap begins at the headers of the n-th request before. Gaps are divided by the
seconds of their limit: 1 or more means that the limit was kept. The headers of a request in flight
count as if they came now, as in the pace itself (comity.policies.syntax.windows)."""

from __future__ import annotations

from heapq import nlargest, nsmallest
from math import inf, log
from time import time
from typing import NamedTuple
from zlib import crc32

from comity.gate.run.observer import Paced
from comity.policies.syntax.printable import printable
from comity.policies.syntax.windows import MAX_STAMPS, StatedLimit, Window
from comity.report.value import (
    Hosts,
    Line,
    NamedCount,
    ReportedHost,
    ReportedLimit,
    ReportedPace,
    Series,
    UnreadLimit,
)

# With more hosts, at least so many, those with most requests, keep counts of their own.
MAX_HOSTS = 10_000
MAX_LISTED = 200  # hosts in a report
LEAST = 10  # hosts with the least margin in a report
SERIES = 16  # hosts with most requests that are followed over time
MARGINS = 8  # hosts with the least margin that are followed over time
POINTS = 200  # points of a host's series
# Least gap that keeps its limit. It is less than 1 because gaps are measured by another clock than
# the one that paces all processes.
MIN_PART = 0.999
EDGES = (MIN_PART, 1.05, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)  # between the bins of the histogram
BINS = (
    "below 1",
    "1 to 1.05",
    "1.05 to 1.25",
    "1.25 to 1.5",
    "1.5 to 2",
    "2 to 3",
    "3 to 5",
    "5 to 10",
    "10 and more",
)
SIZES = {0: "none", 1: "1", 2: "2 to 9", 10: "10 to 99", 100: "100 to 999", 1000: "1,000 and more"}
SUMMED = ("sent", "answered", "files", "allowed", "refused", "stopped", "backed_off", "gaps")


class HostCount:
    """The counts of one host, or of a scope.

    Attributes:
        last: The moment when the headers of the last answer came; -inf if none came.
        stamps: The moments of the answers before, for limits of several requests; else None.
        least: The least gap, as a part of its limit; inf if there is none.
        least_of: The limit of the least gap, or of the last equal one; None if there is no gap.
        is_stated: True if the site asks for that limit.
    """

    __slots__ = (*SUMMED, "is_stated", "last", "least", "least_of", "stamps")

    def __init__(self) -> None:
        self.sent = self.answered = self.files = self.allowed = self.refused = self.stopped = (
            self.backed_off
        ) = self.gaps = 0
        self.last = -inf
        self.stamps: list[float] | None = None
        self.least = inf
        self.least_of: Window | None = None
        self.is_stated = False

    @property
    def weight(self) -> int:
        return self.sent + self.files + self.refused

    def add(self, other: HostCount) -> None:
        for name in SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.least = min(self.least, other.least)

    def as_host(self, name: str) -> ReportedHost:
        limit = None
        if self.least_of is not None:
            limit = ReportedLimit(
                requests=self.least_of.requests,
                seconds=self.least_of.seconds,
                is_stated=self.is_stated,
            )
        least = None if self.least == inf else round(self.least, 4)
        return ReportedHost(
            host=printable_name(name),
            least=least,
            limit=limit,
            **{field: getattr(self, field) for field in SUMMED},
        )


class Gap(NamedTuple):
    """The gap before a request, against its narrowest limit.

    Attributes:
        started: The start of the request, in monotonic seconds.
        part: The gap as a part of the limit.
        window: The limit.
    """

    started: float
    part: float
    window: Window


class _Followed:
    """The gaps of a host over time."""

    __slots__ = ("criterion", "host", "name", "points", "thinned")

    def __init__(self, name: str, host: HostCount, criterion: str) -> None:
        self.name, self.host, self.criterion = name, host, criterion
        self.points: list[tuple[float, float]] = []
        self.thinned = 1

    def add(self, seconds: float, part: float) -> None:
        points = self.points
        points.append((seconds, part))
        if len(points) >= 2 * POINTS:
            # Keep the narrower one of each pair, so that requests that came too soon stay visible.
            self.points = [
                min(pair, key=lambda point: point[1])
                for pair in zip(points[::2], points[1::2], strict=False)
            ]
            self.thinned *= 2

    def as_series(self, began: float) -> Series:
        window = self.host.least_of or Window(1, 0.0)
        return Series(
            host=printable_name(self.name),
            why=self.criterion,
            limit=ReportedLimit(
                requests=window.requests, seconds=window.seconds, is_stated=self.host.is_stated
            ),
            points=[(round(seconds - began, 2), round(part, 3)) for seconds, part in self.points],
            thinned=self.thinned,
        )


class _Distinct:
    """An estimate of the number of different names, to about one in a hundred up to a million."""

    BITS = 1 << 20

    def __init__(self) -> None:
        self._seen = bytearray(self.BITS // 8)
        self._bits = 0

    def add(self, name: str) -> None:
        octet, bit = divmod(crc32(name.encode("utf-8", "replace")) % self.BITS, 8)
        if not self._seen[octet] >> bit & 1:
            self._seen[octet] |= 1 << bit
            self._bits += 1

    def __len__(self) -> int:
        return round(-self.BITS * log(max(1, self.BITS - self._bits) / self.BITS))


class HostCounts:
    """The counts of all hosts of a crawl."""

    def __init__(self) -> None:
        self._hosts: dict[str, HostCount] = {}
        # Scopes of automation-preferences.txt, which have limits of their own.
        self._scopes: dict[str, HostCount] = {}
        self._others = HostCount()  # hosts that are not counted separately any more
        self._other_sizes: dict[int, int] = {}
        self._distinct = _Distinct()
        self._followed: dict[str, _Followed] = {}
        self._narrow: dict[str, tuple[HostCount, float]] = {}  # hosts with the least margin
        self.gaps = [0] * len(BINS)
        self.gap_sum = 0.0
        self.unlimited = 0
        self.first = 0
        # Name of a scope, and a limit whose value cannot be read.
        self._unread: dict[tuple[str, StatedLimit], None] = {}

    def count_of(self, name: str) -> HostCount:
        """Return the counts of a host.

        If a new host is one too many, the counts of the hosts with fewest requests are summed up
        into one."""
        host = self._hosts.get(name)
        if host is None:
            if len(self._hosts) >= 2 * MAX_HOSTS:
                self._fold()
            host = self._hosts[name] = HostCount()
            self._distinct.add(name)
        return host

    def _fold(self) -> None:
        largest = dict(nlargest(MAX_HOSTS, self._hosts.items(), key=lambda item: item[1].weight))
        for name, host in self._hosts.items():
            if name not in largest:
                self._others.add(host)
                size = _size(host.sent)
                self._other_sizes[size] = self._other_sizes.get(size, 0) + 1
        self._hosts = largest

    def _count_of_limiter(self, name: str) -> HostCount:
        """Return the counts of a host or of a scope."""
        if not _is_scope(name):
            return self.count_of(name)
        scope = self._scopes.get(name)
        if scope is None:
            if len(self._scopes) >= MAX_HOSTS:
                del self._scopes[next(iter(self._scopes))]
            scope = self._scopes[name] = HostCount()
        return scope

    def gap(self, limiter: Paced, now: float) -> Gap | None:
        """Return the gap before a request that starts now, for the limit that it keeps least.

        None: there is no limit, or too few requests came before."""
        host = self._count_of_limiter(limiter.name)
        if len(self._unread) < MAX_LISTED:
            self._unread |= dict.fromkeys((limiter.name, limit) for limit in limiter.unread)
        narrowest: Gap | None = None
        for window in limiter.windows:
            if window.requests > MAX_STAMPS:
                window = window.part()
            if not window.seconds or (window.start is not None and not window.holds(time())):
                continue
            before = window.requests - limiter.in_flight
            if before <= 0:
                moment = now
            elif before == 1:
                moment = host.last
            elif host.stamps is not None and len(host.stamps) >= before:
                moment = host.stamps[-before]
            else:
                moment = -inf
            if moment == -inf:
                continue
            part = (now - moment) / window.seconds
            if narrowest is None or part < narrowest.part:
                narrowest = Gap(now, part, window)
        return narrowest

    def settle(
        self, limiter: Paced, gap: Gap | None, now: float, *, is_counted: bool = True
    ) -> None:
        """Note that the headers of the answer to a request have come.

        `is_counted`: True if the request counts by this limiter. A request under several limiters
        counts once."""
        host = self._count_of_limiter(limiter.name)
        host.last = now
        most = max([window.requests for window in limiter.windows], default=1)
        if most > 1:
            stamps = host.stamps = host.stamps or []
            stamps.append(now)
            if len(stamps) > 2 * MAX_STAMPS:
                del stamps[:-MAX_STAMPS]
        if gap is None:
            if is_counted and not _is_scope(limiter.name):  # a scope's request counts by its host
                self.first += bool(limiter.windows)
                self.unlimited += not limiter.windows
            return
        part = gap.part
        if is_counted:
            self.gaps[sum(part >= edge for edge in EDGES)] += 1
            self.gap_sum += part
        host.gaps += 1
        if part <= host.least or host.least_of is None:
            host.least, host.least_of = part, gap.window
            host.is_stated = gap.window not in limiter.floor
            self._note_margin(limiter.name, host)
        followed = self._followed.get(limiter.name)
        if followed is None:
            followed = self._follow(limiter.name, host)
        if followed is not None:
            followed.add(gap.started, part)

    def _note_margin(self, name: str, host: HostCount) -> None:
        if name in self._narrow or len(self._narrow) < LEAST:
            self._narrow[name] = host, host.least
            return
        widest = max(self._narrow, key=lambda other: self._narrow[other][1])
        if host.least < self._narrow[widest][1]:
            del self._narrow[widest]
            self._narrow[name] = host, host.least

    def _follow(self, name: str, host: HostCount) -> _Followed | None:
        """Begin a series for the host, or return None if the followed hosts matter more.

        A host that broke a limit replaces one with more margin. Another host replaces one that has
        less than half as many requests."""
        criterion, most = "requests", SERIES
        if host.least < MIN_PART:
            criterion, most = "margin", MARGINS
        elif len(self._followed) >= SERIES and host.gaps % 64:
            return None  # to save time, it is compared only at some of its requests
        rivals = [
            followed for followed in self._followed.values() if followed.criterion == criterion
        ]
        if len(rivals) >= most:
            if criterion == "margin":
                last = max(rivals, key=lambda followed: followed.host.least)
                is_before = host.least < last.host.least
            else:
                last = min(rivals, key=lambda followed: followed.host.sent)
                is_before = host.sent > 2 * last.host.sent
            if not is_before:
                return None
            del self._followed[last.name]
        self._followed[name] = _Followed(name, host, criterion)
        return self._followed[name]

    # The results

    def hosts(self) -> Hosts:
        is_exact = not self._other_sizes
        largest = nlargest(MAX_LISTED, self._hosts.items(), key=lambda item: item[1].weight)
        names = {name for name, _ in largest}
        others = HostCount()
        others.add(self._others)
        sizes = dict.fromkeys(SIZES, 0) | self._other_sizes
        for name, host in self._hosts.items():
            sizes[_size(host.sent)] += 1
            if name not in names:
                others.add(host)
        return Hosts(
            number=len(self._hosts) if is_exact else max(len(self._hosts), len(self._distinct)),
            is_exact=is_exact,
            listed=[host.as_host(name) for name, host in largest],
            others=others.as_host("") if others.weight else None,
            sizes=[NamedCount(SIZES[size], number) for size, number in sizes.items()],
        )

    def pace(self, began: float) -> ReportedPace:
        narrow = nsmallest(LEAST, self._narrow.items(), key=lambda item: item[1][1])
        followed = sorted(
            self._followed.values(), key=lambda rival: (rival.criterion, -rival.host.sent)
        )
        return ReportedPace(
            gaps=sum(self.gaps),
            below=self.gaps[0],
            histogram=[
                NamedCount(name, number) for name, number in zip(BINS, self.gaps, strict=True)
            ],
            unlimited=self.unlimited,
            first=self.first,
            least=[host.as_host(name) for name, (host, _) in narrow],
            series=[host.as_series(began) for host in followed],
            unread=[_unread(name, limit) for name, limit in self._unread],
        )

    def total(self) -> dict[str, int]:
        """Return the sums over all hosts."""
        hosts = [*list(self._hosts.values()), self._others]
        return {name: sum(getattr(host, name) for host in hosts) for name in SUMMED}


def _unread(name: str, limit: StatedLimit) -> UnreadLimit:
    """Return a limit whose value cannot be read, for the report."""
    requests, seconds = (
        (limit.window.requests, limit.window.seconds)
        if limit.window
        else (limit.concurrent or 0, 0.0)
    )
    source = limit.source
    line = Line(url=printable(source.url), line=source.line, text=printable(source.text))
    advice = printable(limit.advice)
    return UnreadLimit(
        host=printable_name(name), requests=requests, seconds=seconds, line=line, advice=advice
    )


def _is_scope(name: str) -> bool:
    """Return True for the name of a scope, which begins with an origin, and so has a scheme."""
    return "/" in name


def printable_name(name: str) -> str:
    """Return the name of a host, or of a scope: origin and digest of the group that limits it."""
    origin, space, digest = name.partition(" ")
    return printable(f"{origin} (scope {digest[:6]})" if space else name)


def _size(sent: int) -> int:
    return max(size for size in SIZES if sent >= size)
