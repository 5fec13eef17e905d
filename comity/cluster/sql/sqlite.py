"""SQLite, for the workers of one machine.

Its clock is that of the machine since it was started, plus a number that all processes share. So no
step of the time of the day changes the pace or a lease. It goes on while the machine sleeps."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from comity.cluster.errors import StateError, StateFullError
from comity.cluster.sql.database import Database, Process, Row, StateAwayError
from comity.policies.syntax.printable import printable

OLDEST = (3, 35)  # RETURNING
PRIVATE = 0o600  # it has requests with their cookies and passwords
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def boot() -> tuple[str, int]:
    """Return an id of the machine's start, and the microseconds since then.

    Other systems than Linux have none: it is the time since 1970 there."""
    try:
        return _BOOT.read_text("ascii").strip(), time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
    except (OSError, AttributeError):
        return "", time.time_ns() // 1000


class SqliteDatabase(Database):
    """A file of SQLite."""

    types: ClassVar = {"BYTES": "BLOB", "KEYED": " WITHOUT ROWID"}
    failures: ClassVar = (sqlite3.Error,)

    def __init__(self, address: Any, patience: float) -> None:
        try:
            address.path.touch(PRIVATE)
        except OSError as error:
            raise sqlite3.OperationalError(str(error)) from error
        self._connection = sqlite3.connect(
            address.path, timeout=patience, isolation_level=None, check_same_thread=False
        )
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "temp_store = MEMORY"):
            self._connection.execute(f"PRAGMA {pragma}")

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(sql, parameters).fetchall()

    def begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def be_durable(self) -> None:
        self.rows("PRAGMA synchronous = FULL")

    def process(self) -> Process:
        start, since = boot()
        if not start:
            return Process(start, since)
        row = self.one("SELECT id, base FROM process")
        # The first process since the machine was started sets the clock to the time of day. It
        # writes its row next: see steps/pace.py.
        base = row[1] if row and row[0] == start else time.time_ns() // 1000 - since
        return Process(start, since + base, base)

    def has_tables(self) -> bool:
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE name = 'version'"))

    @classmethod
    def error(cls, error: Exception, place: object) -> StateError:
        text = printable(str(error))
        if "full" in text:
            return StateFullError(f"{place}: {text}")
        if "locked" in text:
            return StateError(f"{place}: another process writes: {text}")
        return StateAwayError(f"{place}: {text}")

    def is_worth_a_repeat(self, error: Exception) -> bool:
        return False

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()
