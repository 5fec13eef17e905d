"""The values that the queue of a crawl takes and gives, on any server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

PRIORITIES = range(-(2**53), 2**53 + 1)  # whole numbers that a score of a sorted set can hold
STATES = ("running", "paused", "ended")  # for `set_state`; see `is_finished` for the end


class QueuedRequest(NamedTuple):
    """A request that is put.

    Attributes:
        host: The name of its host.
        fingerprint: Its fingerprint; None if no filter asks for it.
        key: A value of `new_key`.
        priority: Its priority. Higher ones go out first.
        body: The packed request.
        is_start: True for a start request. It is seen only if it was put in this run of the crawl.
    """

    host: str
    fingerprint: bytes | None
    key: bytes
    priority: int
    body: bytes
    is_start: bool = False


class LeasedRequest(NamedTuple):
    """A request that was handed out.

    Attributes:
        key: Its key.
        priority: Its priority.
        body: The packed request.
        reads: How many workers died while they read it; -1 if no worker that had it ever died.
    """

    key: bytes
    priority: int
    body: bytes
    reads: int = -1


@dataclass(frozen=True, slots=True)
class Lease:
    """A host that is leased to this worker, with some of its requests.

    Attributes:
        host: The name of the host.
        requests: The requests, in the order in which they are to go out.
        waiting: The number of further requests that wait.
        rests: Seconds for which the host is to be left alone, because it is asked too often.
    """

    host: str
    requests: list[LeasedRequest]
    waiting: int
    rests: float = 0.0


@dataclass(frozen=True, slots=True)
class HostStatus:
    """A host with requests that wait or are out.

    Attributes:
        host: The name of the host.
        worker: The worker that leases it; "" for none.
        seconds: The time until the host is due, or until its lease ends.
        waiting: The number of requests that wait.
        out: The number of requests that are out.
        is_aside: True if the crawl does not wait for the host.
    """

    host: str
    worker: str
    seconds: float
    waiting: int
    out: int
    is_aside: bool


@dataclass(frozen=True, slots=True)
class UnreadableRequest:
    """A request that no worker is to read.

    Attributes:
        host: The host of the request.
        why: The reason, in words.
        body: The stored request.
    """

    host: str
    why: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Shard:
    """The counts of a shard at one look.

    Attributes:
        ready: Hosts that can be leased.
        wait: Seconds until the next host can be leased; inf if there is none.
        leased: Hosts that are leased.
        hosts_aside: Hosts that are set aside.
        hosts: All hosts.
        left: Requests that wait or are out.
        out: Requests that are out.
        aside: Requests that wait for a host which is set aside.
        put: Requests that were ever put.
        done: Requests that are done.
        filtered: Requests that were seen before, and so not put.
        seen: Fingerprints.
        unreadable: Requests that no worker is to read.
    """

    ready: int
    wait: float
    leased: int
    hosts_aside: int
    hosts: int
    left: int
    out: int
    aside: int
    put: int
    done: int
    filtered: int
    seen: int
    unreadable: int

    @classmethod
    def of(cls, answer: Sequence[int]) -> Self:
        ready, wait, *counts = answer
        return cls(ready, float("inf") if wait < 0 else wait / 1000, *counts)


class Sums(NamedTuple):
    """Some counts of the whole crawl.

    Attributes:
        state: The state of the crawl, one of STATES.
        reason: The finish reason, if the crawl was ended; else "".
        ended: Seconds since it was ended; 0.0 if it was not.
        began: Seconds since the run began.
        counts: The sums over all workers, in the order of the names.
    """

    state: str
    reason: str
    ended: float
    began: float
    counts: list[int]
