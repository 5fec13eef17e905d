"""A connection to a database of the shared state.

A batch of calls is one transaction, in a thread of its own, so that the event loop never waits. If
the database gives no answer in time, the thread is left alone with its connection, and another one
takes its place. A transaction that was left alone may still happen, as all calls that fail."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, ClassVar

from comity.cluster.errors import StateError
from comity.cluster.sql.address import SqlAddress
from comity.cluster.sql.database import Database, Process, StateAwayError
from comity.cluster.sql.schema import TABLES
from comity.cluster.sql.sqlite import SqliteDatabase
from comity.cluster.sql.steps import books, crawl, pace, queue  # noqa: F401  # they register their steps
from comity.cluster.sql.steps.step import STEPS, NamedCall, run_steps
from comity.cluster.sql.work import Work
from comity.cluster.steps.line import PATIENCE, Call, Line, LineConnection

REPEATS = 10  # times that a transaction is tried if another one is in its way
SLOTS = 64  # rows of `count` of one queue
# A server's clock goes at most this much faster than that of this machine, and its step is at
# least so many microseconds.
DRIFT, STEP = 1.001, 10_000


def database_class(address: SqlAddress) -> type[Database]:
    """Return the class for the database. ImportError: the extra `postgresql` is missing."""
    if address.path is not None:
        return SqliteDatabase
    from comity.cluster.sql.postgresql import PostgresDatabase

    return PostgresDatabase


def open_database(address: SqlAddress, patience: float = PATIENCE) -> Database:
    """Connect to the database, and create its tables if it has none. StateError: it is away."""
    kind = database_class(address)
    db: Database | None = None
    try:
        db = kind(address, patience)
        if not db.has_tables():
            with db.transaction():
                db.prepare(TABLES)
    except kind.failures as error:
        if db is not None:
            db.close()
        raise kind.error(error, address) from error
    return db


def steady() -> float:
    """Return seconds by a clock of this machine that makes no steps."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)  # it goes on while the machine sleeps
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class SqlConnection(LineConnection):
    """A connection to the database of the shared state."""

    def __init__(self, address: SqlAddress, *, patience: float = PATIENCE) -> None:
        super().__init__(address, SqlLine(address, patience), SqlLine(address, patience))

    def be_durable(self) -> None:
        """Confirm no call before it is on the disk. Call this before the first call of a step."""
        for line in (self._calls, self._beats):
            assert isinstance(line, SqlLine)
            line.is_durable = True

    def begin_with(self, step: str, keys: Sequence[str]) -> None:
        super().begin_with(step, keys[:1])  # a database has one row for all shards


class _Thread:
    """A thread that carries out functions one after the other. A process can end without it."""

    def __init__(self) -> None:
        self._work: SimpleQueue[tuple[Callable[[], Any], Callable[..., object]] | None]
        self._work = SimpleQueue()
        threading.Thread(target=self._run, name="comity-state", daemon=True).start()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            function, done = work
            try:
                result = function()
            except BaseException as error:  # the caller gets it
                done(None, error)
            else:
                done(result, None)

    async def run(self, function: Callable[[], Any]) -> Any:
        """Carry out the function in the thread, and return its result."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()

        def finish(result: Any, error: BaseException | None) -> None:
            if answer.done():  # the caller did not wait
                return
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(error)

        def done(result: Any, error: BaseException | None) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(finish, result, error)

        self._work.put((function, done))
        return await answer

    def end(self, function: Callable[[], object]) -> None:
        """End the thread after this last function."""
        self._work.put((function, lambda result, error: None))
        self._work.put(None)


class SqlLine(Line):
    """One connection to a database, and the calls that wait for it."""

    most: ClassVar = 100
    failures: ClassVar = (StateError, TimeoutError)

    def __init__(self, address: SqlAddress, patience: float) -> None:
        super().__init__(address, patience)
        self._thread: _Thread | None = None
        self._db: Database | None = None
        self._slot = secrets.randbelow(SLOTS)
        self._clocks: tuple[int, float] | None = None  # the server's clock and ours, at one moment
        self._stepped = False
        self.is_durable = False

    @property
    def is_connected(self) -> bool:
        return self._db is not None

    async def _connect(self) -> None:
        self._thread = _Thread()
        self._db = await self._thread.run(self._open)
        await self._begin()

    def _open(self) -> Database:
        db = open_database(self._address, self._patience)
        if self.is_durable:
            try:
                db.be_durable()
            except db.failures as error:
                db.close()
                raise db.error(error, self._address) from error
        return db

    async def _disconnect(self) -> None:
        thread, db = self._thread, self._db
        self._thread = self._db = None
        if thread is not None:
            thread.end(db.close if db is not None else lambda: None)

    async def _run(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        thread, db = self._thread, self._db
        assert thread is not None
        assert db is not None
        answers: list[Any] = []
        for group in _groups([(step, key, arguments) for step, key, *arguments in calls]):
            try:
                answers += await thread.run(partial(self._transact, db, group))
            except StateError as error:
                if isinstance(error, StateAwayError):
                    raise
                answers += [error] * len(group)
        return answers

    def _transact(self, db: Database, calls: Sequence[NamedCall]) -> list[Any]:
        """Carry out calls in one transaction. If it fails, all of them fail."""
        for repeat in range(1, REPEATS + 1):
            work = Work(db, self._slot, self._read_clock)
            try:
                with db.transaction():
                    answers = run_steps(work, calls)
                    if work.has_stepped:
                        pace.since(work)
            except db.failures as error:
                if db.is_worth_a_repeat(error) and repeat < REPEATS:
                    continue
                raise db.error(error, self._address) from error
            self._stepped = False
            return answers
        raise AssertionError

    def _read_clock(self, db: Database) -> tuple[Process, bool]:
        """Read the server's clock. Return True if it was set forward since the last transaction.

        The time between two readings is at most that from before the first to after the second."""
        begin = steady()
        process = db.process()
        if self._clocks is not None:
            before, then = self._clocks
            if process.now - before > (steady() - then) * 1e6 * DRIFT + STEP:
                self._stepped = True  # until a transaction has noted it
        self._clocks = process.now, begin
        return process, self._stepped

    def _error(self, call: Call, error: Exception) -> Exception:
        return error

    def _is_over(self, answers: Sequence[Any]) -> bool:
        return False


def _groups(calls: Sequence[NamedCall]) -> list[list[NamedCall]]:
    """Return the calls in groups, each for one transaction."""
    groups: list[list[NamedCall]] = []
    is_open = False
    for call in calls:
        is_alone = STEPS[call[0]].is_alone
        if is_open and not is_alone:
            groups[-1].append(call)
        else:
            groups.append([call])
        is_open = not is_alone
    return groups
