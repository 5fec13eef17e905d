"""A connection to a database: calls together, databases that are away, full, frozen or erased, and workers at the same time."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from typing import Self

import psycopg
import pytest

from comity.cluster.conformance.workers import A, B, bodies, keys, row, rows
from comity.cluster.errors import StateError, StateFullError, StateLostError
from comity.cluster.sql.address import SqlAddress
from comity.cluster.sql.books import SqlBooks
from comity.cluster.sql.connection import SqlConnection, SqlLine
from comity.cluster.sql.sqlite import SqliteDatabase
from comity.cluster.sql.state import SqlState
from comity.cluster.steps.queue import StepQueue
from tests.cluster.test_queue import workers
from tests.cluster.test_turns import relay
from tests.redis_server import DEADLINE, call_for
from tests.sql_server import PostgresServer, SqliteFile

Database = SqliteFile | PostgresServer
FIRST = 20  # requests that lead to others


def database_of(connection: SqlConnection) -> sqlite3.Connection:
    line = connection._calls
    assert isinstance(line, SqlLine)
    assert isinstance(line._db, SqliteDatabase)
    return line._db._connection


@pytest.mark.requirement("PAY-1")
@pytest.mark.parametrize("has_payments", [False, True])
def test_payments_are_on_the_disk_before_they_are_confirmed(
    server: Database, has_payments: bool
) -> None:
    async def run() -> tuple[str, str]:
        state = SqlState(server.url, "crawl", ttl=10)
        books = state.books() if has_payments else SqlBooks(state.address, state._connection)
        if isinstance(server, PostgresServer):
            server.execute("ALTER ROLE comity SET synchronous_commit = off")
        try:
            books.open(["shop.test USD"])
            assert await books.reserve("key", "shop.test USD", 1, 2)
            line = state._connection._calls
            assert isinstance(line, SqlLine)
            assert line._db is not None
            if isinstance(line._db, SqliteDatabase):
                return "sqlite", str(line._db.rows("PRAGMA synchronous")[0][0])
            return "postgresql", str(line._db.rows("SHOW synchronous_commit")[0][0])
        finally:
            if isinstance(server, PostgresServer):
                server.execute("ALTER ROLE comity RESET synchronous_commit")
            await state.close()

    kept = {("sqlite", "2"), ("postgresql", "on")}  # 2: FULL
    assert (asyncio.run(run()) in kept) is has_payments


def test_workers_at_the_same_time_lose_nothing_and_do_nothing_twice(server: Database) -> None:
    """Each of the FIRST requests leads to 10 others, some of which several workers find."""
    done: list[bytes] = []

    async def work(queue: StepQueue) -> None:
        while not await queue.is_finished():
            leases = await queue.lease(3, 5)
            for lease in leases:
                for request in lease.requests:
                    number = int(request.body.split()[1])
                    found = [
                        row(queue, 1000 + (number * 7 + n) % 300, host)
                        for n in range(10)
                        for host in (A, B, f"{number % 9}.example")
                        if number < FIRST
                    ]
                    await queue.put(found)
                await queue.ack(lease.host, keys(lease))
                done.extend(lease.host.encode() + b" " + entry.body for entry in lease.requests)
            await queue.release([lease.host for lease in leases])

    async def run() -> None:
        async with workers(server, "one", "two", "three", "four") as queues:  # type: ignore[arg-type]
            for number, queue in enumerate(queues):
                await queue.put(rows(queue, range(number * 5, number * 5 + 5), f"{number}.test"))
            await asyncio.gather(*map(work, queues))
            status = await queues[0].status()
            assert len(done) == len(set(done)) == status["done"] == status["put"]
            expected = {
                (host, 1000 + (number * 7 + n) % 300)
                for number in range(FIRST)
                for n in range(10)
                for host in (A, B, f"{number % 9}.example")
            }
            assert status["put"] == status["seen"] == FIRST + len(expected)
            assert status["hosts"] == status["waiting"] == status["out"] == 0

    asyncio.run(run())


def test_a_full_database_takes_no_requests_and_gives_out_those_that_it_has(
    server: Database,
) -> None:
    async def run() -> None:
        async with workers(server, "one") as (one,):  # type: ignore[arg-type]
            await one.put(rows(one, range(3)))
            assert isinstance(one._connection, SqlConnection)
            if isinstance(server, PostgresServer):
                server.execute(
                    "CREATE FUNCTION comity.full() RETURNS trigger LANGUAGE plpgsql AS"
                    " $$ BEGIN RAISE 'no space left' USING ERRCODE = 'disk_full'; END $$"
                )
                server.execute(
                    "CREATE TRIGGER full_disk BEFORE INSERT ON comity.request"
                    " EXECUTE FUNCTION comity.full()"
                )
            else:
                database = database_of(one._connection)
                (pages,) = database.execute("PRAGMA page_count").fetchone()
                database.execute(f"PRAGMA max_page_count = {pages + 3}")
            more = [row(one, number)._replace(body=bytes(5000)) for number in range(10, 20)]
            with pytest.raises(StateFullError, match=str(server.address())):
                await one.put(more)
            (lease,) = await one.lease(1, 10)
            assert bodies(lease) == [0, 1, 2]
            await one.ack(A, keys(lease))
            if isinstance(server, PostgresServer):
                server.execute("DROP TRIGGER full_disk ON comity.request")
            else:
                database.execute("PRAGMA max_page_count = 100000")
            assert await one.put(more) == [True] * 10

    asyncio.run(run())


def test_a_server_that_was_killed_has_all_that_it_has_answered(own_server: PostgresServer) -> None:
    changes: list[str] = []

    async def run() -> None:
        async with workers(own_server, "one") as (one,):  # type: ignore[arg-type]
            one.on_change(lambda: changes.append("changed"))
            one._connection.begin_with("pace look", ["pace"])
            call_for(one._connection, DEADLINE)
            await one.put(rows(one, range(5)))
            await one._connection._calls._disconnect()  # connections begin with the call
            (lease,) = await one.lease(1, 2)
            own_server.kill()
            with pytest.raises(StateError):  # sent over the old connection
                await one.ack(A, keys(lease))
            waits = asyncio.ensure_future(one.ack(A, keys(lease)))
            await asyncio.sleep(0)
            own_server.start()
            await waits
            assert changes == ["changed"]
            assert (await one.status())["done"] == 2
            rest = await one.more(A, 10)
            assert bodies(rest) == [2, 3, 4]

    asyncio.run(run())


def test_a_frozen_server_holds_up_no_loop(own_server: PostgresServer) -> None:
    async def run() -> None:
        async with workers(own_server, "one") as (one,):  # type: ignore[arg-type]
            await one.put(rows(one, range(3)))
            call_for(one._connection, 0.2)
            own_server.freeze()
            try:
                with pytest.raises(StateError, match="TimeoutError"):
                    await one.lease(1, 1)
            finally:
                own_server.thaw()
            call_for(one._connection, DEADLINE)
            while not (leases := await one.lease(1, 1)):
                # The call may have happened. Then its lease is given back by its owner's name.
                await one.bury("one")
            assert leases[0].host == A

    asyncio.run(run())


def test_a_worker_that_is_frozen_in_a_transaction_holds_up_the_others_for_a_while(
    postgres: PostgresServer,
) -> None:
    async def run() -> None:
        async with workers(postgres, "one", "two") as (one, two):  # type: ignore[arg-type]
            await one.put([*rows(one, range(2)), row(one, 3, B)])
            with psycopg.connect(postgres.dsn) as frozen:
                frozen.execute(
                    "SELECT 1 FROM comity.host WHERE host = %b FOR UPDATE", (A.encode(),)
                )
                call_for(two._connection, 0.5)
                await two._connection._calls._disconnect()
                # A host that another transaction has locked is left to it.
                assert [lease.host for lease in await two.lease(10, 10)] == [B]
                with pytest.raises(StateError):
                    await two.put(rows(two, range(5, 7)))
                assert await two.put([row(two, 8, B)]) == [True]
            assert await two.put(rows(two, range(5, 7))) == [True, True]

    asyncio.run(run())


class Recorder:
    """An address that leads to a server, and the types of the messages that clients send to it."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._sent: list[bytearray] = []
        self._ends: list[asyncio.Future[None]] = []

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        await asyncio.gather(*self._ends)  # the connections are closed

    def connection(self) -> SqlConnection:
        address = f"postgresql://comity@127.0.0.1:{self.port}/postgres?sslmode=disable"
        return SqlConnection(SqlAddress.parse(address, "crawl", {}))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent = bytearray()
        self._sent.append(sent)
        end = asyncio.get_running_loop().create_future()
        self._ends.append(end)
        server, to_server = await asyncio.open_connection("127.0.0.1", self._server.port)
        await asyncio.gather(relay(reader, to_server, sent), relay(server, writer))
        for connection in (to_server, writer):
            await connection.wait_closed()
        end.set_result(None)

    def types(self) -> list[str]:
        """The types of the messages of each connection, one letter for each message."""
        result = []
        for sent in self._sent:
            types, begin = "", 0
            while begin < len(sent):
                # The message that begins a connection has no type.
                type_, size_at = (
                    (sent[begin : begin + 1].decode(), begin + 1) if types else ("-", 0)
                )
                types += type_
                begin = size_at + int.from_bytes(sent[size_at : size_at + 4], "big")
            result.append(types)
        return result


def test_the_server_can_end_a_transaction_after_each_statement(postgres: PostgresServer) -> None:
    """A server ends no transaction of a frozen client that has sent statements without a Sync."""

    async def run() -> None:
        async with Recorder(postgres) as recorder:
            async with workers(recorder, "one") as (one,):  # type: ignore[arg-type]
                await one.put([*rows(one, range(5)), *rows(one, range(5, 10), B)])
                await one.tell({"pages": 3, "items": 2})
                for lease in await one.lease(2, 5):
                    await one.ack(lease.host, keys(lease))
            (types,) = recorder.types()
            assert types.count("E") > 20
            assert re.findall("E[^S]", types) == []

    asyncio.run(run())


def test_a_database_whose_tables_are_gone_has_lost_the_crawl(server: Database) -> None:
    async def run() -> None:
        async with workers(server, "one") as (one,):  # type: ignore[arg-type]
            await one.put(rows(one, range(3)))
            await one.renew([])
            server.erase()
            await one._connection._calls._disconnect()
            await one._connection._beats._disconnect()
            with pytest.raises(StateLostError, match="the crawl is gone"):
                await one.renew([])
            with pytest.raises(StateLostError, match="the crawl is gone"):
                await one.look()

    asyncio.run(run())
