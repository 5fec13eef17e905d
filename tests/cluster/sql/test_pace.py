"""The pace by a database: what another process of the server, or a step of its clock, makes of it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from comity.cluster.sql import sqlite as sqlite_module
from comity.cluster.sql.address import SqlAddress
from comity.cluster.sql.connection import open_database
from comity.gate.pace.ledger import PaceLimit
from tests.cluster.sql.conftest import Clock
from tests.cluster.test_turns import DELAY, HOST, NOW, Process, number, run
from tests.cluster.test_turns import Clock as AnyClock
from tests.sql_server import PostgresServer, SqliteFile

LIMIT = PaceLimit(HOST, DELAY)  # one request in 2 s
Database = SqliteFile | PostgresServer


async def start(process: Process) -> None:
    process.turns.settle(number(await process.acquire(LIMIT)), 0)
    await process.told()


@pytest.mark.requirement("RATE-2")
def test_after_another_process_has_taken_over_a_whole_window_is_waited(
    server: Database, clock: Clock
) -> None:
    async def test(them: list[Process], _: AnyClock) -> None:
        one, other = them
        await start(one)
        clock.set(NOW + 10)
        clock.process = "second"
        for process in them:  # one after the other: they wait once
            assert (await process.acquire(LIMIT)).number is None
            clock.set(clock.now + 0.5)
        clock.set(NOW + 11.9)
        assert (await one.acquire(LIMIT)).number is None
        clock.set(NOW + 12)
        await start(other)

    run(server, clock, test)  # type: ignore[arg-type]


@pytest.mark.requirement("RATE-2")
def test_a_step_forward_of_the_clock_lets_no_request_out_too_soon(
    server: Database, clock: Clock
) -> None:
    async def test(them: list[Process], _: AnyClock) -> None:
        one, other = them
        assert (await other.acquire(PaceLimit("b.example", DELAY))).number is not None
        await start(one)
        clock.step(3600)
        assert (await other.acquire(LIMIT)).number is None
        assert (await one.acquire(LIMIT)).number is None
        clock.set(clock.now + 1.9)
        assert (await one.acquire(LIMIT)).number is None
        clock.set(clock.now + 0.2)
        await start(one)

    run(server, clock, test)  # type: ignore[arg-type]


@pytest.mark.requirement("RATE-2")
def test_a_request_in_flight_counts_although_the_clock_was_set_forward(
    server: Database, clock: Clock
) -> None:
    """Its worker looks dead by that clock, and lives."""

    async def test(them: list[Process], _: AnyClock) -> None:
        one, other = them
        await other.acquire(PaceLimit("b.example", DELAY))
        grant = number(await one.acquire(LIMIT))
        clock.step(3600)
        assert (await other.acquire(LIMIT)).number is None
        one.turns.beat(0)
        clock.set(clock.now + 30)
        one.turns.beat(0)
        await one.told()
        assert (await other.acquire(LIMIT)).number is None
        one.turns.settle(grant, 0)
        await one.told()
        clock.set(clock.now + 1.9)
        assert (await other.acquire(LIMIT)).number is None

    run(server, clock, test)  # type: ignore[arg-type]


@pytest.mark.requirement("RATE-2")
def test_time_that_passes_is_no_step(server: Database, clock: Clock) -> None:
    async def test(them: list[Process], _: AnyClock) -> None:
        for seconds in (0.0, 2.0, 3600.0, 86400.0):
            clock.set(clock.now + seconds)
            await start(them[0])
            clock.set(clock.now + 2)

    run(server, clock, test, 1)  # type: ignore[arg-type]


def test_the_clock_of_a_file_makes_no_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All processes since the machine was started add one number to its clock."""
    monkeypatch.setattr(sqlite_module, "boot", lambda: ("this start", 5_000_000))
    address = SqlAddress.parse(f"sqlite:///{tmp_path / 'state'}", "crawl", {})
    monkeypatch.setattr(time, "time_ns", lambda: 1_800_000_000_000_000_000)
    first = open_database(address)
    with first.transaction():
        process = first.process()
        first.rows("INSERT INTO process VALUES (?, '', 0, ?)", (process.id, process.base))
    assert process.now == 1_800_000_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: 0)  # somebody sets the time of day
    monkeypatch.setattr(sqlite_module, "boot", lambda: ("this start", 7_000_000))
    second = open_database(address)
    assert second.process() == process._replace(now=process.now + 2_000_000)
    monkeypatch.setattr(time, "time_ns", lambda: 1_800_000_900_000_000_000)
    monkeypatch.setattr(sqlite_module, "boot", lambda: ("the next start", 1_000_000))
    assert second.process().id == "the next start"
    assert second.process().now == 1_800_000_900_000_000
    for db in (first, second):
        db.close()
