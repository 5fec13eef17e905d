"""One transaction: the rows that its calls change, which it has locked, and its moment.

A transaction locks the rows of hosts first, then those of limits of the pace, each in their order.
So two of them hardly ever wait for each other in a circle. If they do, one is rolled back and
repeated."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from comity.cluster.sql.database import Database, Process
from comity.cluster.sql.schema import ASIDE, COUNTS, LEASED, NOWHERE

HOUR = 3600 * 1_000_000
_NOTHING = (NOWHERE, 0, "", 0, 0)  # of a host without a row
_COLUMNS = "host, place, moment, owner, waiting, out"
_ADD = (
    f"INSERT INTO count VALUES (?, ?{', ?' * len(COUNTS)}) ON CONFLICT (queue, slot) DO UPDATE SET "
    + ", ".join(f"{name} = count.{name} + excluded.{name}" for name in COUNTS)
)


@lru_cache(1000)
def queue_id(key: str) -> int:
    """Return the id of a queue. Two of 10^6 queues have one id once in 10^7 databases."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big", signed=True)


class Host:
    """The row of a host, which this transaction has locked.

    Attributes:
        queue: The id of its queue.
        name: Its name.
        place: One of PLACES.
        moment: When its lease ends, or when it is due.
        owner: The worker that leases it, or "".
        waiting: The number of requests that wait.
        out: The number of requests that are out.
    """

    __slots__ = ("before", "has_row", "moment", "name", "out", "owner", "place", "queue", "waiting")

    def __init__(self, queue: int, name: bytes, values: tuple[Any, ...] | None) -> None:
        self.queue = queue
        self.name = name
        self.has_row = values is not None
        self.before = values or _NOTHING
        self.place, self.moment, self.owner, self.waiting, self.out = self.before

    @property
    def values(self) -> tuple[int, int, str, int, int]:
        return self.place, self.moment, self.owner, self.waiting, self.out

    def put(self, place: int, moment: int, owner: str = "") -> None:
        """Put the host into a place. A host without waiting requests is in none but LEASED."""
        self.place, self.moment, self.owner = place, moment, owner
        if place != LEASED and not self.waiting:
            self.place = NOWHERE


class Limit:
    """The row of a limit of the pace, which this transaction has locked.

    Attributes:
        name: Its name.
        starts: [owner, number of the turn, moment or None, keep], of each start.
        until: The row is needed until then.
    """

    __slots__ = ("before", "name", "starts", "until")

    def __init__(self, name: bytes, starts: str, until: int) -> None:
        self.name = name
        self.before = (starts, until)
        self.starts: list[list[Any]] = json.loads(starts)
        self.until = until


class Work:
    """A transaction, and the rows that it has read.

    Attributes:
        db: The database.
        slot: The rows of `count` that this connection adds to.
        process: The process of the server.
        now: The moment of the transaction, in microseconds.
        has_stepped: True if the clock of the server was set forward since the last transaction.
        memory: Values that the steps of one kind share.
    """

    def __init__(
        self, db: Database, slot: int, read: Callable[[Database], tuple[Process, bool]]
    ) -> None:
        """`read`: reads the clock of the database, and returns True if it was set forward."""
        self.db = db
        self.slot = slot
        self._read = read
        self.has_stepped = False
        self.process = Process("", 0)
        self.now = 0
        self._hosts: dict[tuple[int, bytes], Host] = {}
        self._limits: dict[bytes, Limit] = {}
        self._counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self.memory: dict[str, Any] = {}

    def look_at_clock(self) -> None:
        """Take the moment of the transaction. Lock its rows before."""
        self.process, self.has_stepped = self._read(self.db)
        self.now = self.process.now

    # Rows

    def lock_hosts(self, queue: int, names: Iterable[bytes], new: Iterable[bytes]) -> None:
        """Lock the rows of hosts. `new`: the names of them whose rows are made if need be."""
        new = set(new)
        names = sorted(new.union(names))
        sql = f"SELECT {_COLUMNS} FROM host WHERE queue = ? AND host IN ({{list}}) ORDER BY host"
        rows = self.db.rows_in(sql + self.db.lock, (queue,), names)
        if missing := sorted(new.difference(row[0] for row in rows)):
            self.db.with_rows(
                "INSERT INTO host VALUES {list} ON CONFLICT DO NOTHING",
                [(queue, name, *_NOTHING) for name in missing],
            )
            rows += self.db.rows_in(sql + self.db.lock, (queue,), missing)
        found = {row[0]: row[1:] for row in rows}
        for name in names:
            self._hosts[queue, name] = Host(queue, name, found.get(name))

    def host(self, queue: int, name: bytes) -> Host:
        """Return a host that was locked."""
        return self._hosts[queue, name]

    def hosts(self, queue: int, where: str, parameters: tuple[Any, ...], lock: str) -> list[Host]:
        """Lock and return the hosts of a queue that a condition of SQL is about."""
        self.flush()
        sql = f"SELECT {_COLUMNS} FROM host WHERE queue = ? AND {where}"
        rows = self.db.rows(sql.replace("{lock}", lock), (queue, *parameters))
        hosts = [Host(queue, row[0], row[1:]) for row in rows]
        self._hosts |= {(queue, host.name): host for host in hosts}
        return hosts

    def lock_limits(self, names: Iterable[bytes]) -> None:
        """Lock the rows of limits. They are made if need be."""
        names = sorted(set(names))
        sql = "SELECT name, starts, until FROM pace WHERE name IN ({list}) ORDER BY name"
        rows = self.db.rows_in(sql + self.db.lock, (), names)
        if missing := sorted(set(names).difference(row[0] for row in rows)):
            self.db.with_rows(
                "INSERT INTO pace VALUES {list} ON CONFLICT DO NOTHING",
                [(name, "[]", 0) for name in missing],
            )
            rows += self.db.rows_in(sql + self.db.lock, (), missing)
        self._limits = {row[0]: Limit(*row) for row in rows}

    def limit(self, name: bytes) -> Limit:
        """Return a limit that was locked."""
        return self._limits[name]

    def count(self, queue: int, name: str, by: int) -> None:
        """Add to a count that is not in the rows of hosts."""
        self._counts[queue][name] += by

    # Writing

    def flush(self) -> None:
        """Write the rows that have changed."""
        changed = [host for host in self._hosts.values() if host.values != host.before]
        for host in changed:
            self._count_change(host)
        self._write_hosts(changed)
        for queue, counts in self._counts.items():
            if any(counts.values()):
                self.db.rows(_ADD, (queue, self.slot, *(counts[name] for name in COUNTS)))
        self._counts.clear()
        self._write_limits()

    def _write_hosts(self, changed: list[Host]) -> None:
        old = [host for host in changed if host.has_row]
        self.db.with_rows(
            "UPDATE host SET place = row.column3, moment = row.column4, owner = row.column5,"
            " waiting = row.column6, out = row.column7 FROM (VALUES {list}) AS row"
            " WHERE queue = row.column1 AND host = row.column2",
            [(host.queue, host.name, *host.values) for host in old],
        )
        self.db.with_rows(
            "INSERT INTO host VALUES {list}",
            [(host.queue, host.name, *host.values) for host in changed if not host.has_row],
            repeat=False,
        )
        for host in changed:
            host.before, host.has_row = host.values, True

    def _count_change(self, host: Host) -> None:
        counts = self._counts[host.queue]
        for sign, (place, _, _, waiting, out) in ((-1, host.before), (1, host.values)):
            counts["waiting"] += sign * waiting
            counts["out"] += sign * out
            counts["aside"] += sign * waiting * (place == ASIDE)
            counts["hosts"] += sign * (place != NOWHERE)
            counts["hosts_aside"] += sign * (place == ASIDE)
            counts["leased"] += sign * (place == LEASED)

    def _write_limits(self) -> None:
        rows = []
        for limit in self._limits.values():
            values = (json.dumps(limit.starts, separators=(",", ":")), limit.until)
            if values != limit.before:
                limit.before = values
                rows.append((limit.name, *values))
        self.db.with_rows(
            "UPDATE pace SET starts = row.column2, until = row.column3"
            " FROM (VALUES {list}) AS row WHERE name = row.column1",
            rows,
        )
