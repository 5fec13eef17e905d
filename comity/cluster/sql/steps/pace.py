"""The steps of the pace of hosts, for all workers of all crawls of a database.

A start in flight counts as started now, as long as its owner gives signs of life. Then it counts as
started when the owner died: `ttl` after its last sign of life, because the request may have been
sent until then. The step that grants a start also gives a sign of life of its owner.

After the server was started anew, or a replica has taken its place, no start is granted before a
whole window is over: its last commits may be missing. The same holds after its clock was set
forward, because all starts look older then. A moment that lies ahead counts as now, because the
clock was set back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import time
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple

from comity.cluster.sql.steps.step import step
from comity.cluster.sql.work import HOUR, Limit, Work
from comity.policies.syntax.windows import MAX_STAMPS, Window, earliest

SECOND = 1_000_000
DAY = 24 * HOUR
FIRST = 60 * SECOND  # the first penalty if the host does not say how long
OWNER, TURN, MOMENT, KEEP = range(4)  # members of a start; its moment is None while it is in flight


class _Asked(NamedTuple):
    """A limit of a turn.

    Attributes:
        name: Its name.
        keep: Microseconds for which a settled start counts.
        soon: Microseconds until starts in flight are asked about again.
        own: The starts of the owner that are in flight under it.
        windows: Its windows.
    """

    name: bytes
    keep: int
    soon: int
    own: set[int]
    windows: tuple[Window, ...]


def _name(name: str | bytes) -> bytes:
    return name.encode() if isinstance(name, str) else name


@lru_cache(10_000)
def _window(requests: int, microseconds: int, begins: int, ends: int) -> Window:
    if begins < 0:
        return Window(requests, microseconds / SECOND)
    return Window(requests, microseconds / SECOND, _time(begins), _time(ends))


def _time(microseconds: int) -> time:
    minutes, seconds = divmod(microseconds // SECOND, 60)
    return time(*divmod(minutes, 60), seconds)


def _asked(arguments: Sequence[Any]) -> list[_Asked]:
    """Return the limits of a turn."""
    result, i = [], 0
    while i < len(arguments):
        name, keep, soon, own, number = arguments[i : i + 5]
        numbers = list(map(int, arguments[i + 5 : i + 5 + 4 * int(number)]))
        windows = tuple(_window(*numbers[n : n + 4]) for n in range(0, len(numbers), 4))
        flying = {int(turn) for turn in own.split(":") if turn}
        result.append(_Asked(_name(name), int(keep), int(soon), flying, windows))
        i += 5 + len(numbers)
    return result


def _limits_of_turn(arguments: Sequence[Any]) -> Iterable[bytes]:
    return [limit.name for limit in _asked(arguments[4:]) if limit.windows]


def _limits_of_grant(arguments: Sequence[Any]) -> Iterable[bytes]:
    return [_name(name) for name in arguments[2::2]]


# The clock and the process of the server


def since(work: Work, known: str | None = None) -> int:
    """Return when another process, or a step of the clock, was first seen; 0: never.

    `known`: the id of the process that a new connection saw last. None: it is no new connection."""
    noted = work.memory.get("since")
    if noted is not None and known is None:
        return int(noted)
    row = work.db.one("SELECT id, before, since FROM process")
    current, now, base = work.process
    of_row, before, moment = row or ("", "", 0)
    # A connection has begun with a row: the data were erased, with their starts.
    if work.has_stepped or (row is None and known is None):
        moment = now
    for other in filter(None, (of_row, known)):
        if other not in (current, before):
            moment, before = now, other
    if row is None:
        work.db.rows("INSERT INTO process VALUES (?, ?, ?, ?)", (current, before, moment, base))
    elif (current, before, moment) != row:
        work.db.rows(
            "UPDATE process SET id = ?, before = ?, since = ?, base = ?",
            (current, before, moment, base),
        )
    work.memory["since"] = moment = min(moment, now)
    return int(moment)


@step("pace look")
def look(work: Work, key: str, known: str | bytes) -> bytes:
    since(work, known.decode() if isinstance(known, bytes) else known)
    return work.process.id.encode()


# Signs of life


def _beats(work: Work) -> dict[str, int | None]:
    """Return owner -> its last sign of life, as far as this transaction has read them."""
    beats: dict[str, int | None] = work.memory.setdefault("beats", {})
    return beats


def _beat_of(work: Work, owner: str) -> int | None:
    beats = _beats(work)
    if owner not in beats:
        row = work.db.one("SELECT moment FROM beat WHERE owner = ?", (owner,))
        beats[owner] = None if row is None else row[0]
    return beats[owner]


def _write_beat(work: Work, owner: str) -> None:
    work.db.rows(
        "INSERT INTO beat VALUES (?, ?) ON CONFLICT (owner) DO UPDATE SET moment = excluded.moment",
        (owner, work.now),
    )
    _beats(work)[owner] = work.now


def _death(work: Work, owner: str, ttl: int) -> int | None:
    """Return when the owner died; None: it lives."""
    beat = _beat_of(work, owner)
    if beat is None:
        return work.now
    if beat > work.now + SECOND:  # the clock was set back
        _write_beat(work, owner)
        return None
    return beat + ttl if beat + ttl <= work.now else None


@step("pace beat")
def beat(work: Work, key: str, owner: str) -> int:
    _write_beat(work, owner)
    swept = _beat_of(work, "")
    if swept is None or abs(work.now - swept) > HOUR:
        _write_beat(work, "")
        _sweep(work)
    return 1


def _sweep(work: Work) -> None:
    """Forget the rows that are not needed any more."""
    for table, key, condition in (
        ("beat", "owner", "moment < ?"),
        ("pace", "name", "until < ?"),
        ("penalty", "host", "until + DAY < ?"),
    ):
        before = work.now - DAY if table == "beat" else work.now
        work.db.rows(
            f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table}"
            f" WHERE {condition.replace('DAY', str(DAY))}{work.db.lock_free})",
            (before,),
        )


@step("pace leave")
def leave(work: Work, key: str, owner: str) -> int:
    work.db.rows("DELETE FROM beat WHERE owner = ?", (owner,))
    _beats(work)[owner] = None
    return 1


@step("pace hold", limits=lambda arguments: map(_name, arguments[3::3]))
def hold(work: Work, key: str, owner: str, ttl: Any, *arguments: Any) -> int:
    _write_beat(work, owner)
    for i in range(0, len(arguments), 3):
        turn, name, keep = int(arguments[i]), arguments[i + 1], int(arguments[i + 2])
        limit = work.limit(_name(name))
        if _start(limit, owner, turn) is None:
            limit.starts.append([owner, turn, None, keep])
        _last(work, limit, keep + 2 * int(ttl))
    return 1


# Starts


def _start(limit: Limit, owner: str, turn: int) -> list[Any] | None:
    return next(
        (start for start in limit.starts if start[OWNER] == owner and start[TURN] == turn), None
    )


def _last(work: Work, limit: Limit, keep: int) -> None:
    """Let the row of the limit last for as long as its starts count."""
    if limit.until < work.now + keep + SECOND:
        limit.until = work.now + 2 * (keep + SECOND)  # twice as long, to write it less often


def _in_flight(work: Work, limit: Limit, owner: str, turn: int, ttl: int, own: set[int]) -> int:
    """Return the number of starts in flight. Those of dead owners are settled.

    They are settled under another name, because their owner may only have been slow."""
    flying = 0
    for start in limit.starts:
        if start[MOMENT] is not None:
            continue
        other, number = start[OWNER], start[TURN]
        if other != owner:
            moment = _death(work, other, ttl)
        elif number == turn:  # it is asked for again
            continue
        else:
            moment = None if number in own else work.now
        if moment is None:
            flying += 1
        else:
            start[OWNER], start[MOMENT] = f"{other}-", moment
    return flying


def _due(work: Work, asked: _Asked, owner: str, turn: int, ttl: int) -> float:
    """Return the moment, in seconds, when one more start may be granted under a limit."""
    limit, now = work.limit(asked.name), work.now
    flying = _in_flight(work, limit, owner, turn, ttl, asked.own)
    settled = [start for start in limit.starts if start[MOMENT] is not None]
    for start in settled:
        if start[MOMENT] > now + SECOND:  # it was written before the clock was set back
            start[MOMENT] = now
    floor = since(work)
    moments = sorted(max(start[MOMENT], floor) for start in settled) if asked.keep else []
    stamps = [moment / SECOND for moment in [floor] * MAX_STAMPS * bool(floor) + moments]
    moment = now / SECOND
    due = earliest(asked.windows, stamps, flying, moment)
    if due is not None:
        return due
    # Starts in flight may be cancelled, or their owner may be dead.
    due = earliest(asked.windows, [*stamps, *[moment] * flying], 0, moment)
    assert due is not None
    return min(max(due, moment + asked.soon / SECOND), moment + ttl / SECOND)


@step("pace turn", limits=_limits_of_turn)
def turn(
    work: Work, key: str, owner: str, turn: Any, ttl: Any, host: bytes, *arguments: Any
) -> list[int]:
    turn, ttl = int(turn), int(ttl)
    beat = _beat_of(work, owner)
    if beat is None or abs(work.now - beat) > ttl // 8:  # not each time: writing is slower
        _write_beat(work, owner)
    now = work.now / SECOND
    due, latest = now, 0
    asked = _asked(arguments)
    for position, limit in enumerate(asked, 1):
        if limit.windows and (free := _due(work, limit, owner, turn, ttl)) > due:
            due, latest = free, position
    _, until, _ = _penalty(work, host)
    if until / SECOND > due:
        due, latest = until / SECOND, 0
    if due > now:
        return [0, max(1, ceil((due - now) * SECOND)), latest]
    for limit in asked:
        if limit.windows:
            row = work.limit(limit.name)
            start = _start(row, owner, turn)
            if start is None:
                row.starts.append([owner, turn, None, limit.keep])
            else:
                start[MOMENT] = None
            _last(work, row, limit.keep + 2 * ttl)
    return [1]


@step("pace settle", limits=_limits_of_grant)
def settle(work: Work, key: str, owner: str, turn: Any, *arguments: Any) -> int:
    for name, keep in zip(arguments[::2], map(int, arguments[1::2]), strict=True):
        limit = work.limit(_name(name))
        start = _start(limit, owner, int(turn))
        if start is not None:
            limit.starts.remove(start)
        if keep:
            limit.starts.append([owner, int(turn), work.now, keep])
            _drop_old(work, limit, keep)
            _last(work, limit, keep)
    return 1


def _drop_old(work: Work, limit: Limit, keep: int) -> None:
    """Drop the starts that do not count any more."""
    flying = [start for start in limit.starts if start[MOMENT] is None]
    settled = sorted(
        (
            start
            for start in limit.starts
            if start[MOMENT] is not None and start[MOMENT] + max(start[KEEP], keep) > work.now
        ),
        key=lambda start: start[MOMENT],
    )
    limit.starts = settled[-MAX_STAMPS:] + flying


@step("pace end", limits=_limits_of_grant)
def end(work: Work, key: str, owner: str, turn: Any, *arguments: Any) -> int:
    for name in arguments[::2]:
        limit = work.limit(_name(name))
        start = _start(limit, owner, int(turn))
        if start is not None and start[MOMENT] is None:
            limit.starts.remove(start)
    return 1


# Penalties, and what is told of the pace


def _penalty(work: Work, host: bytes) -> tuple[int, int, int]:
    """Return the begin and the end of the host's penalty, and its last step."""
    penalties = work.memory.setdefault("penalties", {})
    if host not in penalties:
        row = work.db.one("SELECT began, until, step FROM penalty WHERE host = ?", (host,))
        penalties[host] = row or (0, 0, 0)
    began, until, step = penalties[host]
    if began > work.now + SECOND:  # the clock was set back
        began, until = work.now, work.now + until - began
    return began, until, step


@step("pace penalize", limits=lambda arguments: arguments[:1])
def penalize(work: Work, key: str, host: bytes, wait: Any) -> int:
    now, wait = work.now, int(wait)
    began, until, step = _penalty(work, host)
    if until > now:
        until = max(until, now + max(wait, 0))
    else:
        if now >= until + max(until - began, FIRST):
            step = 0
        if wait < 0:
            wait = step = min(2 * step, DAY) if step else FIRST
        began, until = now, now + wait
    work.db.rows(
        "INSERT INTO penalty VALUES (?, ?, ?, ?) ON CONFLICT (host) DO UPDATE SET"
        " began = excluded.began, until = excluded.until, step = excluded.step",
        (host, began, until, step),
    )
    work.memory["penalties"][host] = began, until, step
    return int(until - now)


@step("pace rests")
def rests(work: Work, key: str, *hosts: bytes) -> list[int]:
    return [max(_penalty(work, host)[1] - work.now, 0) for host in hosts]


@step("pace pauses")
def pauses(work: Work, key: str, *hosts: bytes) -> list[int]:
    result = []
    for host in hosts:
        row = work.db.one("SELECT name, starts, until FROM pace WHERE name = ?", (host,))
        starts = Limit(*row).starts if row else []
        settled = [start for start in starts if start[MOMENT] is not None]
        flying = [start for start in starts if start[MOMENT] is None]
        newest = flying or sorted(settled, key=lambda start: start[MOMENT])
        keep = newest[-1][KEEP] if newest else 0
        result.append(keep // max(len(settled), 1))
    return result
