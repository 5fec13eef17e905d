"""The databases that the conformance tests run on: PostgreSQL and SQLite."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from comity.cluster.conformance.harness import FaultNotMade, Harness
from comity.cluster.conformance.proxy import Proxy
from comity.cluster.sql import connection as connection_module
from comity.cluster.sql.connection import open_database
from comity.cluster.sql.database import Database, Process
from comity.cluster.sql.postgresql import PostgresDatabase
from comity.cluster.sql.sqlite import SqliteDatabase
from tests.sql_server import PostgresServer, SqliteFile, programs


class _Clock:
    """The clock of a kind of database in this process, and the steady one."""

    def __init__(self, kind: type[Database]) -> None:
        self.now: float | None = None
        self._passed = 0.0  # seconds that tests let pass
        process, steady = kind.process, connection_module.steady

        def read(db: Database) -> Process:
            found = process(db)
            return found if self.now is None else found._replace(now=round(self.now * 1e6))

        kind.process = read  # type: ignore[assignment,method-assign]
        connection_module.steady = lambda: steady() + self._passed

    def set(self, now: float | None) -> None:
        if now is not None:
            self._passed += max(0.0, now - (self.now or 0.0))
        self.now = now


class OwnPostgres(Harness):
    """The newest server of PostgreSQL that there is here."""

    def __init__(self, url: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="comity-conformance-"))
        self.server = PostgresServer(self.folder, program=self.program())
        self.server.start()
        self._clock = _Clock(PostgresDatabase)
        super().__init__(self.server.url)

    def program(self) -> Path:
        return programs()[-1]

    def close(self) -> None:
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()

    def pause(self) -> None:
        self.server.freeze()

    def resume(self) -> None:
        self.server.thaw()

    def set_clock(self, now: float | None) -> None:
        self._clock.set(now)

    def fill(self) -> None:
        open_database(self.server.address()).close()
        self.server.execute(
            "CREATE FUNCTION comity.no_space() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE 'no space left' USING ERRCODE = 'disk_full'; END $$"
        )
        self.server.execute(
            "CREATE TRIGGER no_space BEFORE INSERT ON comity.request"
            " EXECUTE FUNCTION comity.no_space()"
        )

    def make_room(self) -> None:
        self.server.execute("DROP FUNCTION comity.no_space CASCADE")


class OldPostgres(OwnPostgres):
    """The oldest server of PostgreSQL that there is here."""

    def program(self) -> Path:
        return programs()[0]


class OwnSqlite(Harness):
    """A file of SQLite. It has no server that could fail."""

    def __init__(self, url: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="comity-conformance-"))
        self.file = SqliteFile(self.folder)
        self._clock = _Clock(SqliteDatabase)
        super().__init__(self.file.url)

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def set_clock(self, now: float | None) -> None:
        self._clock.set(now)

    def fill(self) -> None:
        self._run(
            "CREATE TRIGGER no_space BEFORE INSERT ON request BEGIN"
            " SELECT RAISE(FAIL, 'database or disk is full'); END"
        )

    def make_room(self) -> None:
        self._run("DROP TRIGGER no_space")

    def _run(self, sql: str) -> None:
        db = open_database(self.file.address())
        db.rows(sql)
        db.close()

    def proxy(self) -> tuple[Proxy, str]:
        raise FaultNotMade("answer lost")
