"""The pace of hosts over all workers of all crawls on a server.

`RateLedger` keeps the pace on one machine in this way.

No method waits for the server. `acquire` sends a question, and returns "not now". When the answer
arrives, `on_answer` is called, and the next `acquire` returns the answer. A host never gets more
starts than its limits allow, even if leases end or messages are late:

- The step that grants a start also gives a sign of life, so no grant counts as a dead worker's.
- A grant is given back if its answer took long, or if it was not used in time: by then others may
  consider this worker dead.
- A start counts from the moment when the server learns that the headers came. This is later than
  the headers, so a gap is never too short.
- A message that could not be sent is sent again, until it arrives."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import time
from functools import partial
from time import monotonic
from typing import Any

from comity.bounded import Bounded
from comity.cluster.address import SHARDS, name_as_key, pace_key, pace_shard
from comity.cluster.errors import StateError
from comity.cluster.steps.line import LineConnection
from comity.gate.pace.ledger import ASK_AGAIN, ASK_THROUGH, FAILING, PENALTY, Grant, PaceLimit
from comity.policies.answers.rates import MAX_SECONDS
from comity.policies.syntax.urls import host_name
from comity.policies.syntax.windows import Window

logger = logging.getLogger(__name__)

REMEMBERED = 10_000  # limits or hosts in each cache of answers
THROUGH = " (in flight)"  # suffix of the name of a limit on requests in flight


@dataclass(slots=True, eq=False)
class _Inquiry:
    """A turn that was requested under some limits, and its outcome.

    Attributes:
        number: The number of the grant.
        sent: The moment of the request, in monotonic seconds.
        is_granted: True if the turn is granted.
        due: The moment to ask again, in monotonic seconds.
        limit: The limit that makes it wait, if known.
        timer: The timer that gives the grant back, or None.
    """

    number: int
    sent: float
    is_granted: bool = False
    due: float = math.inf
    limit: PaceLimit | None = None
    timer: asyncio.TimerHandle | None = None


class StepTurns:
    """A Ledger for workers on any machines: the grants of one of them.

    Times are seconds since the epoch by this worker's own clock. No other worker relies on them.

    Attributes:
        on_answer: Called with limits when `acquire` has an answer for them.
        rests: Called with a host and a time when a penalty lasts longer than `back_off` returned.
    """

    is_remote = True

    def __init__(
        self, connection: LineConnection, *, owner: str = "", owner_ttl: float = 10.0
    ) -> None:
        """`owner`: a unique name of letters and digits; "": a random name.

        `owner_ttl`: seconds without a sign of life after which a process counts as dead."""
        self.on_answer: Callable[[Sequence[PaceLimit]], object] = lambda limits: None
        self.rests: Callable[[str, float], object] = lambda host, until: None
        connection.begin_with("pace look", [pace_shard(shard) for shard in range(SHARDS)])
        self._connection = connection
        self.ttl = owner_ttl
        self._owner = owner or secrets.token_hex(5)
        self._grants = 0
        self._inquiries: dict[tuple[PaceLimit, ...], _Inquiry] = {}
        self._refused: Bounded[tuple[PaceLimit, ...], _Inquiry] = Bounded(REMEMBERED)
        # Grant -> its limits that still count its request as in flight.
        self._flights: dict[int, Sequence[PaceLimit]] = {}
        # Key of a limit -> numbers of its grants in flight, and of inquiries without an answer.
        self._flying: dict[str, set[int]] = {}
        self._shards: set[str] = set()  # keys of shards that have this process's sign of life
        self._encoded: Bounded[PaceLimit, tuple[list[Any], list[Any]]] = Bounded(REMEMBERED)
        self._penalties: Bounded[str, float] = Bounded(REMEMBERED)  # host -> until
        self._beaten = monotonic()
        self._is_closed = False

    @property
    def is_used(self) -> bool:
        """True if requests are in flight. `beat` has to be called until they have ended."""
        return bool(self._flights)

    def acquire(self, limits: Sequence[PaceLimit], now: float) -> Grant:
        """Return a grant to start a request now, or one without a number and when to ask again.

        `limits`: limits of one host, each with a name of its own; the grant is under all of them.
        The time to ask again is infinity if `on_answer` will be called then."""
        key = tuple(limits)
        inquiry = self._inquiries.get(key)
        moment = monotonic()
        if inquiry is not None:
            if not inquiry.is_granted:
                return Grant(None, math.inf)
            self._forget(key, inquiry)
            if moment < inquiry.sent + self.ttl / 2:
                return Grant(inquiry.number, now)
            self.end(inquiry.number)  # too late: this process was stopped meanwhile
        elif (refused := self._refused.get(key)) is not None:
            if moment < refused.due:
                return Grant(None, now + refused.due - moment, refused.limit)
            del self._refused[key]
        # Without a recent sign of life, the server could count this process as dead, and ignore its
        # requests in flight when it answers.
        if self._flights and moment >= self._beaten + self.ttl / 2:
            self.beat(now)
        self._ask(key)
        return Grant(None, math.inf)

    def settle(self, grant: int, moment: float) -> None:
        """Count the start from the moment when the server receives this.

        Call it when the headers came or the request failed. `moment` is not used: it is not by the
        server's clock."""
        limits = self._flights.pop(grant, ())
        if through := [limit for limit in limits if limit.through]:
            self._flights[grant] = through
        if settled := [limit for limit in limits if not limit.through]:
            self._tell("pace settle", grant, settled)

    def end(self, grant: int) -> None:
        """Forget the unsettled start of a request that has left the downloader.

        It was never sent, or it has ended."""
        if limits := self._flights.pop(grant, None):
            self._tell("pace end", grant, limits)

    def back_off(self, host: str, retry_after: float | None, now: float) -> float:
        """Let the host rest until the returned moment, or a later one of the server.

        See `RateLedger.back_off`. `rests` is called if it is later."""
        wait = (
            None
            if retry_after is None or math.isnan(retry_after)
            else min(max(retry_after, 0.0), float(MAX_SECONDS))
        )
        until = max(self._penalties.get(host, 0.0), now + (PENALTY if wait is None else wait))
        self._penalties[host] = until
        self._send(
            "pace penalize",
            host,
            -1 if wait is None else _us(wait),
            callback=partial(self._note_penalty, host, now, monotonic()),
        )
        return until

    def _note_penalty(self, host: str, now: float, sent: float, answer: Any) -> None:
        until = now + monotonic() - sent + answer / 1e6
        if until > self._penalties.get(host, 0.0):
            self._penalties[host] = until
            self.rests(host, until)

    def penalty(self, host: str, now: float) -> float:
        """Return the moment until which the host rests, as far as this process knows, or 0.0."""
        until = self._penalties.get(host, 0.0)
        return until if until > now else 0.0

    def beat(self, now: float) -> None:
        """Give a sign of life, so that the grants of this process stay valid.

        Call it at least twice in `owner_ttl`."""
        self._beaten = monotonic()
        by_shard: dict[str, list[tuple[int, PaceLimit]]] = {}
        for grant, limits in self._flights.items():
            if rows := [(grant, limit) for limit in limits if limit.windows]:
                by_shard.setdefault(pace_key(host_of(limits)), []).extend(rows)
        for key, rows in by_shard.items():
            self._connection.beat("pace beat", key, self._owner)
            arguments = [
                argument for grant, limit in rows for argument in (grant, *self._row(limit))
            ]
            holding = self._connection.call(
                "pace hold", key, self._owner, _us(self.ttl), *arguments
            )
            holding.add_done_callback(partial(self._end_late, rows))

    def _end_late(self, rows: Sequence[tuple[int, PaceLimit]], answer: asyncio.Future[Any]) -> None:
        """After an answer to `beat`, report the grants that have ended since it was sent.

        `beat` may have arrived after their end, and marked them as in flight again."""
        for grant, limit in rows:
            if limit not in self._flights.get(grant, ()) and not self._is_closed:
                self._tell("pace end", grant, [limit])

    def close(self, now: float | None = None) -> None:
        """Give everything back. Close the connection after this.

        Requests in flight count as settled when the server receives this."""
        for key, inquiry in list(self._inquiries.items()):
            self._forget(key, inquiry)
            if inquiry.is_granted:
                self.end(inquiry.number)
            else:
                self._tell("pace end", inquiry.number, key)
        for grant in list(self._flights):
            self.settle(grant, 0.0)
            self.end(grant)
        for shard in self._shards:
            self._connection.call("pace leave", shard, self._owner)
        self._is_closed = True

    # Requesting turns

    def _ask(self, limits: tuple[PaceLimit, ...]) -> None:
        number = self._grants = self._grants + 1
        inquiry = self._inquiries[limits] = _Inquiry(number, monotonic())
        host = host_of(limits)
        arguments: list[Any] = []
        for limit in limits:
            row, windows = self._encode(limit)
            flying = self._flying.setdefault(limit.key, set())
            arguments += [
                *row,
                _us(ASK_THROUGH if limit.through else ASK_AGAIN[0]),
                f":{':'.join(map(str, flying))}:",
                *windows,
            ]
            flying.add(number)
        shard = pace_key(host)
        self._shards.add(shard)
        answer = self._connection.call(
            "pace turn", shard, self._owner, number, _us(self.ttl), name_as_key(host), *arguments
        )
        answer.add_done_callback(partial(self._hear, limits, inquiry))

    def _hear(
        self, limits: tuple[PaceLimit, ...], inquiry: _Inquiry, answer: asyncio.Future[Any]
    ) -> None:
        if self._inquiries.get(limits) is not inquiry:  # the turns were closed meanwhile
            return
        moment = monotonic()
        error = None if answer.cancelled() else answer.exception()
        if answer.cancelled() or error is not None:
            if error is not None and not isinstance(error, StateError):
                logger.error("a turn failed", exc_info=error)
            self._forget(limits, inquiry)
            self._tell("pace end", inquiry.number, limits)  # the server may have granted it
            inquiry.due = moment + FAILING
            self._refused[limits] = inquiry
        elif answer.result()[0]:
            self._flights[inquiry.number] = limits
            spent = moment - inquiry.sent
            if spent >= self.ttl / 2:
                self._forget(limits, inquiry)
                self.end(inquiry.number)
                self._ask(limits)
                return
            inquiry.is_granted = True
            give_back = partial(self._give_back, limits, inquiry)
            inquiry.timer = asyncio.get_running_loop().call_later(self.ttl / 2 - spent, give_back)
        else:
            self._forget(limits, inquiry)
            self._land(inquiry.number, limits)
            _, wait, position = answer.result()
            inquiry.due = moment + max(wait / 1e6, 0.001)
            inquiry.limit = limits[position - 1] if position else None
            self._refused[limits] = inquiry
        self.on_answer(limits)

    def _give_back(self, limits: tuple[PaceLimit, ...], inquiry: _Inquiry) -> None:
        """Give back a grant that was not used in time."""
        if self._inquiries.get(limits) is inquiry:
            self._forget(limits, inquiry)
            self.end(inquiry.number)

    def _forget(self, limits: tuple[PaceLimit, ...], inquiry: _Inquiry) -> None:
        del self._inquiries[limits]
        if inquiry.timer is not None:
            inquiry.timer.cancel()
            inquiry.timer = None

    # Messages to the server

    def _tell(self, step: str, grant: int, limits: Sequence[PaceLimit]) -> None:
        self._land(grant, limits)
        rows = [part for limit in limits if limit.windows for part in self._row(limit)]
        if rows:
            self._send(step, host_of(limits), self._owner, grant, *rows, is_of_owner=True)

    def _send(
        self,
        step: str,
        host: str,
        *arguments: Any,
        is_of_owner: bool = False,
        callback: Callable[[Any], object] | None = None,
    ) -> None:
        """Call the step. If the server is away, repeat the call until it succeeds."""
        first = () if is_of_owner else (name_as_key(host),)
        answer = self._connection.call(step, pace_key(host), *first, *arguments)
        again = partial(
            self._send, step, host, *arguments, is_of_owner=is_of_owner, callback=callback
        )
        answer.add_done_callback(partial(self._check_sent, again, callback))

    def _check_sent(
        self,
        again: Callable[[], object],
        callback: Callable[[Any], object] | None,
        answer: asyncio.Future[Any],
    ) -> None:
        if answer.cancelled() or isinstance(answer.exception(), StateError):
            if not self._is_closed:
                asyncio.get_running_loop().call_later(FAILING, again)
        elif callback is not None and answer.exception() is None:
            callback(answer.result())

    def _land(self, grant: int, limits: Iterable[PaceLimit]) -> None:
        """Note that the grant is not in flight any more under these limits."""
        for limit in limits:
            flying = self._flying.get(limit.key)
            if flying is not None:
                flying.discard(grant)
                if not flying:
                    del self._flying[limit.key]

    def _row(self, limit: PaceLimit) -> list[Any]:
        return self._encode(limit)[0]

    def _encode(self, limit: PaceLimit) -> tuple[list[Any], list[Any]]:
        """Return two lists of arguments: the limit's key and lifetime, and its windows."""
        encoded = self._encoded.get(limit)
        if encoded is None:
            windows = [part for window in limit.windows for part in _window(window)]
            encoded = self._encoded[limit] = (
                [limit.key, _us(limit.keep)],
                [len(limit.windows), *windows],
            )
        return encoded


def host_of(limits: Sequence[PaceLimit]) -> str:
    """Return the host of the limits. Each limit is named by a host, or by a scope of an origin."""
    name = limits[0].name.removesuffix(THROUGH)
    return host_name(name.partition(" ")[0]) if "://" in name else name


def _us(seconds: float) -> int:
    return math.ceil(seconds * 1e6)


def _window(window: Window) -> tuple[int, int, int, int]:
    part = window.part()
    if part.start is None or part.end is None:
        return part.requests, _us(part.seconds), -1, -1
    return part.requests, _us(part.seconds), _day_us(part.start), _day_us(part.end)


def _day_us(moment: time) -> int:
    return (moment.hour * 3600 + moment.minute * 60 + moment.second) * 1_000_000
