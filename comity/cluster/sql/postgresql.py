"""PostgreSQL, for the workers of any machines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, ClassVar

import psycopg
from psycopg import errors
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from comity.cluster.errors import StateError, StateFullError
from comity.cluster.sql.database import Database, Process, Row, StateAwayError
from comity.cluster.sql.schema import NAME
from comity.policies.syntax.printable import printable

# A server that was started anew, or a replica that has taken over, has another start. The moment is
# in microseconds since 1970.
_PROCESS = (
    "SELECT pg_postmaster_start_time()::text,"
    " (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
)
_FULL = (errors.DiskFull, errors.OutOfMemory)


class PostgresDatabase(Database):
    """A connection to a server of PostgreSQL."""

    lock: ClassVar = " FOR UPDATE"
    lock_free: ClassVar = " FOR UPDATE SKIP LOCKED"
    lock_shared: ClassVar = " FOR SHARE"
    types: ClassVar = {"BYTES": "BYTEA", "KEYED": ""}
    failures: ClassVar = (psycopg.Error,)

    def __init__(self, address: Any, patience: float) -> None:
        # The server ends a transaction whose worker is frozen: it would keep its locks.
        wait = round(patience * 1000)
        self._connection = psycopg.connect(
            **address.client_options(),
            autocommit=True,
            prepare_threshold=2,
            connect_timeout=max(2, round(patience)),
            keepalives_idle=max(1, round(patience)),
            tcp_user_timeout=wait,
            application_name="comity",
            options=f"-c search_path={NAME} -c statement_timeout={wait} -c TimeZone=UTC"
            f" -c idle_in_transaction_session_timeout={wait} -c client_min_messages=error",
        )
        # All numbers have one type, so that a statement is prepared once.
        self._connection.adapters.register_dumper(int, Int8Dumper)
        self._connection.adapters.register_dumper(int, Int8BinaryDumper)
        # Statements differ by the number of rows in them.
        self._connection.prepared_max = 500
        self._cursor = self._connection.cursor(binary=True)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        cursor = self._cursor.execute(_marked(sql), parameters or None)
        return cursor.fetchall() if cursor.description else []

    def begin(self) -> None:
        self.rows("BEGIN")

    def be_durable(self) -> None:
        # Other values than these wait for the disk, and for standbys.
        self.rows(
            "SELECT set_config('synchronous_commit', 'on', false)"
            " WHERE current_setting('synchronous_commit') IN ('off', 'local')"
        )

    def process(self) -> Process:
        row = self.one(_PROCESS)
        assert row is not None
        return Process(*row)

    def has_tables(self) -> bool:
        return self.rows(f"SELECT to_regclass('{NAME}.version') IS NOT NULL") == [(True,)]

    def prepare(self, tables: Sequence[str]) -> None:
        if self.has_tables():
            return
        # Several workers may begin at once.
        self.rows("SELECT pg_advisory_xact_lock(hashtext(?))", (NAME,))
        self.rows(f"CREATE SCHEMA IF NOT EXISTS {NAME}")
        super().prepare(tables)

    @classmethod
    def error(cls, error: Exception, place: object) -> StateError:
        text = printable(" ".join(str(error).split())) or type(error).__name__
        kind = StateFullError if isinstance(error, _FULL) else StateAwayError
        return kind(f"{place}: {text}")

    def is_worth_a_repeat(self, error: Exception) -> bool:
        return isinstance(error, errors.DeadlockDetected | errors.SerializationFailure)

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._connection.close()


@lru_cache(2000)
def _marked(sql: str) -> str:
    return sql.replace("?", "%s")
