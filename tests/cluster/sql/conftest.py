"""Databases for the tests of this folder: a file of SQLite, and a server of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from comity.cluster.sql.database import Process
from comity.cluster.sql.postgresql import PostgresDatabase
from comity.cluster.sql.sqlite import SqliteDatabase
from comity.cluster.steps import turns as turns_module
from tests.cluster.test_turns import NOW
from tests.sql_server import PostgresServer, SqliteFile, programs


class Servers:
    """The servers of PostgreSQL, each started when it is first used."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory = factory
        self.started: dict[Path, PostgresServer] = {}

    def get(self, program: Path) -> PostgresServer:
        """A server without any data, which other tests use too."""
        if program not in self.started:
            server = PostgresServer(self._factory.mktemp("postgresql"), program=program)
            server.start()
            self.started[program] = server
        self.started[program].erase()
        return self.started[program]

    def database(self, name: str) -> SqliteFile | PostgresServer:
        """A database without any data. "oldest": the oldest server of PostgreSQL that is here."""
        if name == "sqlite":
            return SqliteFile(self._factory.mktemp("sqlite"))
        return self.get(programs()[0 if name == "oldest" else -1])


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    servers = Servers(tmp_path_factory)
    yield servers
    for server in servers.started.values():
        server.stop()


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("oldest", marks=pytest.mark.slow)])
def server(request: pytest.FixtureRequest, servers: Servers) -> SqliteFile | PostgresServer:
    return servers.database(request.param)


@pytest.fixture
def postgres(servers: Servers) -> PostgresServer:
    return servers.get(programs()[-1])


@pytest.fixture
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A server of PostgreSQL that the test may kill."""
    server = PostgresServer(tmp_path_factory.mktemp("postgresql"))
    server.start()
    yield server
    server.stop()


class Clock:
    """The clock of the database and that of this machine, as the steps see them."""

    def __init__(self) -> None:
        self.now = NOW
        self.here = 0.0
        self.process = "first"

    def set(self, now: float) -> None:
        """Let time pass, or let both clocks go back."""
        self.here += now - self.now
        self.now = now

    def step(self, seconds: float) -> None:
        """Set only the clock of the database."""
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for kind in (SqliteDatabase, PostgresDatabase):
        monkeypatch.setattr(
            kind, "process", lambda db: Process(clock.process, round(clock.now * 1e6))
        )
    monkeypatch.setattr("comity.cluster.sql.connection.steady", lambda: clock.here)
    # The time between an answer and the look at it is no wait.
    monkeypatch.setattr(turns_module, "monotonic", lambda: 0.0)
    return clock
