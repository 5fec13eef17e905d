"""The steps of a queue: the requests of one run of a crawl that wait or are out.

A host is LEASED, DUE, ASIDE or, without waiting requests, NOWHERE. Requests that are out belong to
a leased host. A lease that has ended counts until another worker takes the host. Then the requests
that were out wait again, in their old places."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from comity.cluster.sql.schema import ASIDE, COUNTS, DUE, LEASED, NOWHERE
from comity.cluster.sql.steps.step import step
from comity.cluster.sql.work import HOUR, Host, Work, queue_id

MOST_READS = 3  # if so many workers die while they read a request, no other is to read it
MOST_ENDED = 64  # leases that have ended, or hosts that were set aside, in one step
# Hosts that are counted. A worker leases at most HOSTS of host_share.py, and asks no further.
MOST_READY = 4096
_ONE = "queue = ? AND host = ?"


def _first(arguments: Sequence[Any]) -> Iterable[bytes]:
    return arguments[:1]


def _second(arguments: Sequence[Any]) -> Iterable[bytes]:
    return arguments[1:2]


def _ms(milliseconds: Any) -> int:
    return int(milliseconds) * 1000


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


@step("queue put", new_hosts=lambda arguments: arguments[4::6])
def put(
    work: Work, key: str, worker: str, is_first: str, run: Any, kept: Any, *arguments: Any
) -> bytes:
    queue, db = queue_id(key), work.db
    rows = [
        (host, digest, int(first or kept), request, score, body)
        for host, digest, first, request, score, body in zip(
            *(arguments[i::6] for i in range(6)), strict=True
        )
    ]
    answers: dict[str, str] = {}
    if is_first != "1":
        before = db.one(
            "SELECT answers FROM answer WHERE queue = ? AND worker = ?", (queue, worker)
        )
        answers = json.loads(before[0]) if before else {}
    rows_now = [row for row in rows if row[3].hex() not in answers]
    is_new = _seen(work, queue, int(run), [(row[1], row[2]) for row in rows_now if row[1]])
    put: dict[bytes, tuple[Any, ...]] = {}
    for host, digest, first, request, score, body in rows_now:
        name = request.hex()
        if name in answers:  # the key is in the call twice
            continue
        if digest and not is_new(digest, first):
            answers[name] = "0"
            work.count(queue, "filtered", 1)
        else:
            answers[name] = "1"
            put[request] = (queue, host, int(score), request, body)
    _put_requests(work, queue, list(put.values()))
    db.rows(
        "INSERT INTO answer VALUES (?, ?, ?, ?) ON CONFLICT (queue, worker) DO UPDATE SET"
        " moment = excluded.moment, answers = excluded.answers",
        (queue, worker, work.now, json.dumps(answers, separators=(",", ":"))),
    )
    return "".join(answers[row[3].hex()] for row in rows).encode()


def _seen(
    work: Work, queue: int, run: int, digests: Sequence[tuple[bytes, int]]
) -> Callable[[bytes, int], bool]:
    """Note that requests with these digests are put in the run.

    `digests`: each with the first run of which it counts as seen. Return a function that takes such
    a pair, and returns True once for each digest that was not seen."""
    rows = [(queue, digest, run) for digest in sorted({digest for digest, _ in digests})]
    insert = "INSERT INTO seen VALUES {list} ON CONFLICT DO NOTHING RETURNING digest"
    new = {digest for (digest,) in work.db.with_rows(insert, rows)}
    work.count(queue, "seen", len(new))
    # Requests of earlier runs that no longer count are rare.
    earlier: dict[bytes, int] = dict(
        work.db.rows_in(
            "SELECT digest, run FROM seen WHERE queue = ? AND run < ? AND digest IN ({list})"
            f" ORDER BY digest{work.db.lock}",
            (queue, max((first for _, first in digests), default=0)),
            [digest for _, digest, _ in rows if digest not in new],
        )
    )
    work.db.rows_in(
        "UPDATE seen SET run = ? WHERE queue = ? AND digest IN ({list})",
        (run, queue),
        sorted({digest for digest, first in digests if earlier.get(digest, run) < first}),
    )

    def is_new(digest: bytes, first: int) -> bool:
        if digest in new:
            new.discard(digest)
            return True
        if earlier.get(digest, run) < first:
            earlier[digest] = run
            return True
        return False

    return is_new


@step("queue forget")
def forget(work: Work, key: str, kept: Any, bucket: Any, number: Any) -> int:
    """Delete the digests of a bucket, which is their first octet, that are of earlier runs."""
    queue, past = queue_id(key), int(bucket) + 1
    end = "" if past > 255 else " AND digest < ?"
    parameters = (queue, int(kept), bytes([past - 1]), *([bytes([past])] if end else []))
    gone = work.db.rows(
        f"DELETE FROM seen WHERE queue = ? AND run < ? AND digest >= ?{end} RETURNING 1", parameters
    )
    work.count(queue, "seen", -len(gone))
    return past if past < 256 else -1


def _put_requests(work: Work, queue: int, rows: Sequence[tuple[Any, ...]]) -> None:
    """Let requests wait that do not wait yet."""
    there = work.db.with_rows(
        "INSERT INTO request VALUES {list} ON CONFLICT DO NOTHING RETURNING host", rows
    )
    work.count(queue, "put", len(there))
    for (name,) in there:
        _wait(work, work.host(queue, name), 1)


def _wait(work: Work, host: Host, number: int) -> None:
    """Note that further requests of the host wait."""
    host.waiting += number
    if host.place == NOWHERE:
        host.put(DUE, work.now)


def _all_back(work: Work, host: Host, *, is_dead: bool = False) -> None:
    """Let the requests that the owner had out wait again, in their old places.

    `is_dead`: the owner is dead, and one of the requests may be the cause."""
    if not host.out:
        return
    keys = work.db.rows(
        f"DELETE FROM out WHERE {_ONE} RETURNING key, reads", (host.queue, host.name)
    )
    if is_dead:
        work.db.with_rows(
            "INSERT INTO suspect VALUES {list} ON CONFLICT DO NOTHING",
            [(host.queue, host.name, key, 0) for key, _ in keys],
        )
    host.waiting += len(keys)
    host.out = 0


def _give_up(work: Work, host: Host, entry: tuple[bytes, int, bytes], why: bytes) -> None:
    """Let no worker read the request any more. `entry`: its key, score and body."""
    key, score, body = entry
    work.db.rows(
        f"DELETE FROM request WHERE {_ONE} AND score = ? AND key = ?",
        (host.queue, host.name, score, key),
    )
    work.db.rows(f"DELETE FROM suspect WHERE {_ONE} AND key = ?", (host.queue, host.name, key))
    work.db.rows(
        "INSERT INTO unreadable VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (host.queue, host.name, key, why, score, body),
    )
    work.count(host.queue, "unreadable", 1)


_TAKE = """SELECT request.key, score, body, coalesce(suspect.reads, -1) FROM request
LEFT JOIN suspect ON suspect.queue = request.queue AND suspect.host = request.host
    AND suspect.key = request.key
WHERE request.queue = ? AND request.host = ? AND NOT EXISTS (
    SELECT 1 FROM out WHERE out.queue = request.queue AND out.host = request.host
        AND out.key = request.key)
ORDER BY score, request.key LIMIT ?"""


def _take(work: Work, host: Host, most: int) -> list[Any]:
    """Give the next requests of the host to its owner: key, score, body, reads, ..."""
    if not host.waiting:
        return []
    result: list[Any] = []
    out = []
    for key, score, body, reads in work.db.rows(_TAKE, (host.queue, host.name, most)):
        host.waiting -= 1
        if reads >= MOST_READS:
            why = f"{MOST_READS} workers died while they read it"
            _give_up(work, host, (key, score, body), why.encode())
        else:
            out.append((host.queue, host.name, key, score, reads))
            result += (key, score, body, reads)
    work.db.with_rows("INSERT INTO out VALUES {list} ON CONFLICT DO NOTHING", out)
    host.out += len(out)
    return result


def _recall(work: Work, queue: int, where: str, parameters: tuple[Any, ...], lock: str) -> int:
    hosts = work.hosts(queue, f"place = {ASIDE} AND {where}", parameters, lock)
    for host in hosts:
        host.put(DUE, work.now)
    return len(hosts)


@step("queue lease")
def lease(
    work: Work, key: str, worker: str, most: Any, per_host: Any, ttl: Any, unwanted: Any
) -> list[list[Any]]:
    queue, free = queue_id(key), work.db.lock_free
    until = (work.now, MOST_ENDED)
    ended = work.hosts(
        queue, f"place = {LEASED} AND moment <= ? ORDER BY moment LIMIT ?{{lock}}", until, free
    )
    for host in ended:
        _all_back(work, host, is_dead=True)
        host.put(DUE, work.now)
    _recall(work, queue, "moment <= ? ORDER BY moment LIMIT ?{lock}", until, free)
    result: list[list[Any]] = []
    while len(result) < int(most):
        hosts = work.hosts(
            queue,
            f"place = {DUE} AND moment <= ? ORDER BY moment LIMIT ?{{lock}}",
            (work.now - _ms(unwanted), int(most) - len(result)),
            free,
        )
        if not hosts:
            break
        for host in hosts:
            taken = _take(work, host, max(1, int(per_host)))
            if taken:  # else all of them are unreadable, or there is none
                host.put(LEASED, work.now + _ms(ttl), worker)
                result.append([host.name, host.waiting, *taken])
            else:
                host.put(DUE, work.now)
    return result


@step("queue more", hosts=_second)
def more(work: Work, key: str, worker: str, name: bytes, most: Any) -> list[Any] | None:
    host = work.host(queue_id(key), name)
    if not _has(host, worker):
        return None
    taken = _take(work, host, int(most))
    return [name, host.waiting, *taken]


def _has(host: Host, worker: str) -> bool:
    return bool(host.place == LEASED and host.owner == worker)


@step("queue ack", hosts=_first)
def ack(work: Work, key: str, name: bytes, *keys: bytes) -> int:
    queue, db = queue_id(key), work.db
    host = work.host(queue, name)
    out = db.rows_in(
        f"DELETE FROM out WHERE {_ONE} AND key IN ({{list}}) RETURNING score, key, reads",
        (queue, name),
        keys,
    )
    host.out -= len(out)
    for score in sorted({score for score, _, _ in out}):
        db.rows_in(
            f"DELETE FROM request WHERE {_ONE} AND score = ? AND key IN ({{list}})",
            (queue, name, score),
            [request for of, request, _ in out if of == score],
        )
    suspects = [request for _, request, reads in out if reads >= 0]
    done = len(out)
    if rest := sorted(set(keys).difference(request for _, request, _ in out)):
        # The worker has lost the host, or the call is repeated.
        waited = db.rows_in(
            f"DELETE FROM request WHERE {_ONE} AND key IN ({{list}}) RETURNING key",
            (queue, name),
            rest,
        )
        host.waiting -= len(waited)
        if not host.waiting and host.place in (DUE, ASIDE):
            host.place = NOWHERE
        given_up = db.rows_in(
            f"DELETE FROM unreadable WHERE {_ONE} AND key IN ({{list}}) RETURNING key",
            (queue, name),
            rest,
        )
        work.count(queue, "unreadable", -len(given_up))
        suspects += rest
        done += len(waited) + len(given_up)
    db.rows_in(f"DELETE FROM suspect WHERE {_ONE} AND key IN ({{list}})", (queue, name), suspects)
    work.count(queue, "done", done)
    return done


@step("queue renew", is_alone=True)
def renew(work: Work, key: str, worker: str, ttl: Any, *known: Any) -> list[bytes] | None:
    """Renew the leases of a worker.

    `known`: the names of its hosts: return those that it has lost, and renew only these. Or their
    number: renew all, and return the names of all if the number differs; -1: return them anyway."""
    queue = queue_id(key)
    hosts = work.hosts(
        queue,
        f"place = {LEASED} AND owner = ? ORDER BY host{{lock}}",
        (worker,),
        work.db.lock,
    )
    names = {host.name for host in hosts}
    listed = set(known)
    is_number = len(known) == 1 and isinstance(known[0], int)
    for host in hosts:
        if is_number or host.name in listed:
            host.moment = work.now + _ms(ttl)
    if not is_number:
        return [name for name in known if name not in names]
    return None if known[0] == len(names) else sorted(names)


@step("queue release", hosts=lambda arguments: arguments[1::2])
def release(work: Work, key: str, worker: str, *arguments: Any) -> int:
    released = 0
    for name, wait in zip(arguments[::2], arguments[1::2], strict=True):
        host = work.host(queue_id(key), name)
        if _has(host, worker):
            _all_back(work, host)
            host.put(DUE, work.now + _ms(wait))
            released += 1
    return released


@step("queue set_aside", hosts=_second)
def set_aside(work: Work, key: str, worker: str, name: bytes, wait: Any) -> int:
    host = work.host(queue_id(key), name)
    if not _has(host, worker):
        return 0
    _all_back(work, host)
    host.put(ASIDE, work.now + _ms(wait))
    return 1


@step("queue recall", is_alone=True)
def recall(work: Work, key: str, most: Any) -> int:
    return _recall(
        work, queue_id(key), "moment >= 0 ORDER BY host LIMIT ?{lock}", (int(most),), work.db.lock
    )


@step("queue bury", is_alone=True)
def bury(work: Work, key: str, worker: str) -> int:
    hosts = work.hosts(
        queue_id(key),
        f"place = {LEASED} AND owner = ? ORDER BY host{{lock}}",
        (worker,),
        work.db.lock,
    )
    for host in hosts:
        _all_back(work, host, is_dead=True)
        host.put(DUE, work.now)
    return len(hosts)


def _entry(work: Work, host: Host, key: bytes) -> tuple[int, bytes, bool] | None:
    """Return the score and the body of a request, and whether it is out. None: it is not here."""
    row = work.db.one(
        f"SELECT score FROM out WHERE {_ONE} AND key = ?", (host.queue, host.name, key)
    )
    where, parameters = ("", ()) if row is None else (" AND score = ?", row)
    found = work.db.one(
        f"SELECT score, body FROM request WHERE {_ONE} AND key = ?{where}",
        (host.queue, host.name, key, *parameters),
    )
    return None if found is None else (found[0], found[1], row is not None)


@step("queue read", hosts=_first)
def read(work: Work, key: str, name: bytes, is_done: Any, *keys: bytes) -> int:
    host = work.host(queue_id(key), name)
    if int(is_done):
        work.db.rows_in(
            f"DELETE FROM suspect WHERE {_ONE} AND key IN ({{list}})", (host.queue, name), keys
        )
        return 1
    there = [
        (host.queue, name, request, 1)
        for request in sorted(set(keys))
        if _entry(work, host, request)
    ]
    work.db.with_rows(
        "INSERT INTO suspect VALUES {list} ON CONFLICT (queue, host, key)"
        " DO UPDATE SET reads = suspect.reads + 1",
        there,
        repeat=False,
    )
    return 1


@step("queue give_up", hosts=_first)
def give_up(work: Work, key: str, name: bytes, *arguments: Any) -> int:
    host = work.host(queue_id(key), name)
    for request, why in zip(arguments[::2], arguments[1::2], strict=True):
        entry = _entry(work, host, request)
        if entry is None:
            continue
        score, body, is_out = entry
        if is_out:
            work.db.rows(f"DELETE FROM out WHERE {_ONE} AND key = ?", (host.queue, name, request))
            host.out -= 1
        else:
            host.waiting -= 1
            if not host.waiting and host.place in (DUE, ASIDE):
                host.place = NOWHERE
        _give_up(work, host, (request, score, body), _bytes(why))
    return 1


@step("queue unreadable")
def unreadable(work: Work, key: str, most: Any) -> list[list[bytes]]:
    rows = work.db.rows(
        "SELECT host, why, body FROM unreadable WHERE queue = ? ORDER BY host, key LIMIT ?",
        (queue_id(key), int(most)),
    )
    return [list(row) for row in rows]


@step("queue retry", is_alone=True)
def retry(work: Work, key: str, most: Any) -> int:
    queue, db = queue_id(key), work.db
    rows = db.rows(
        "DELETE FROM unreadable WHERE queue = ? AND (host, key) IN (SELECT host, key FROM"
        " unreadable WHERE queue = ? LIMIT ?) RETURNING host, score, key, body",
        (queue, queue, int(most)),
    )
    work.lock_hosts(queue, (), {row[0] for row in rows})
    db.with_rows(
        "INSERT INTO request VALUES {list} ON CONFLICT DO NOTHING", [(queue, *row) for row in rows]
    )
    for name, *_ in rows:
        _wait(work, work.host(queue, name), 1)
    work.count(queue, "unreadable", -len(rows))
    return len(rows)


@step("queue tries")
def tries(work: Work, key: str, origin: bytes, since: str, due: str) -> int:
    row = work.db.one(
        "INSERT INTO tries VALUES (?, ?, 1, ?, ?) ON CONFLICT (queue, origin) DO UPDATE SET"
        " times = CASE WHEN tries.since <> excluded.since THEN 1"
        " WHEN tries.due <> excluded.due THEN tries.times + 1 ELSE tries.times END,"
        " since = excluded.since, due = excluded.due RETURNING times",
        (queue_id(key), origin, since, due),
    )
    assert row is not None
    return int(row[0])


_READY = f"""SELECT count(*) FROM (SELECT 1 FROM host
WHERE queue = ? AND place = %d AND moment <= ? LIMIT {MOST_READY}) AS hosts"""
_NEXT = "SELECT min(moment) FROM host WHERE queue = ? AND place = %d"
_LOOK = ", ".join(f"({sql % place})" for sql in (_READY, _NEXT) for place in (LEASED, DUE, ASIDE))
_SUMS = ", ".join(f"coalesce(sum({name}), 0)" for name in COUNTS)


@step("queue look")
def look(work: Work, key: str) -> list[int]:
    queue = queue_id(key)
    work.flush()
    ready = (queue, work.now) * 3
    row = work.db.one(f"SELECT {_LOOK}", (*ready, queue, queue, queue))
    sums = work.db.one(f"SELECT {_SUMS} FROM count WHERE queue = ?", (queue,))
    assert row is not None
    assert sums is not None
    ended, due, recalled, *moments = row
    leased, hosts_aside, hosts, waiting, out, *others = map(int, sums)
    waits = [max(moment - work.now, 0) for moment in moments if moment is not None]
    wait = -(-min(waits) // 1000) if waits else -1
    return [
        ended + due + recalled,
        wait,
        max(leased - ended, 0),
        hosts_aside,
        hosts,
        waiting + out,
        out,
        *others,
    ]


@step("queue hosts")
def hosts(work: Work, key: str, most: Any) -> list[list[Any]]:
    rows = work.db.rows(
        "SELECT host, owner, moment, waiting, out, place FROM host WHERE queue = ? AND place > ?"
        " ORDER BY place, moment LIMIT ?",
        (queue_id(key), NOWHERE, int(most)),
    )
    return [
        [
            name,
            owner.encode(),
            (moment - work.now) // 1000,
            waiting,
            out,
            int(place == ASIDE),
        ]
        for name, owner, moment, waiting, out, place in rows
    ]


_OF_QUEUE = {
    "request": "host, score, key",
    "out": "host, key",
    "suspect": "host, key",
    "unreadable": "host, key",
    "seen": "digest",
    "tries": "origin",
    "answer": "worker",
    "count": "slot",
    "host": "host",
}


@step("queue delete", is_alone=True)
def delete(work: Work, key: str, most: Any) -> int:
    queue = queue_id(key)
    for table, columns in _OF_QUEUE.items():
        gone = work.db.rows(
            f"DELETE FROM {table} WHERE queue = ? AND ({columns}) IN (SELECT {columns} FROM {table}"
            " WHERE queue = ? LIMIT ?) RETURNING 1",
            (queue, queue, int(most)),
        )
        if len(gone) >= int(most):
            return 0
    return 1


def forget_old_answers(work: Work) -> None:
    """Forget the answers to puts that no worker repeats any more."""
    work.db.rows("DELETE FROM answer WHERE moment < ?", (work.now - HOUR,))
