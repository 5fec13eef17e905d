"""The books of payments on a server of Redis: disks that are late, replicas that are away or take over, and servers that lose data."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from comity.cluster.redis.books import RedisBooks
from comity.cluster.steps import books as steps_books
from comity.gate.request.books import BooksError, new_key
from comity.policies import PolicyError
from tests.cluster.test_turns import Forwarder
from tests.redis_server import DEADLINE, Server

pytestmark = pytest.mark.requirement("PAY-1", "REACH-3")
NAME = "shop.test USD"
ACCOUNTS, RESERVED = "comity:{crawl}:accounts", "comity:{crawl}:reserved"


@asynccontextmanager
async def books_of(server: Any, patience: float = DEADLINE) -> AsyncIterator[RedisBooks]:
    books = RedisBooks(server.address(), patience=patience)
    books.open([NAME])
    try:
        yield books
    finally:
        await books.disconnect()


async def amounts(books: RedisBooks) -> tuple[int, int]:
    (account,) = await books.accounts()
    return account.taken, account.charged


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    assert server._process is not None
    os.kill(server._process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server._process.pid, signal.SIGCONT)


def wait_for_replica(primary: Server) -> None:
    client: Any = primary.client()
    while "online" not in str(client.info("replication").get("slave0")):
        pass


@pytest.fixture
def one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps_books, "TRIES", 1)


@pytest.mark.slow
@pytest.mark.usefixtures("one_try")
def test_an_amount_counts_once_every_replica_has_it(own_server: Server, replica: Server) -> None:
    async def run() -> None:
        wait_for_replica(own_server)
        async with books_of(own_server) as books:
            assert await books.reserve(new_key(), NAME, 1, 10)
            with frozen(replica):
                async with books_of_known(own_server) as hasty:
                    with pytest.raises(BooksError, match="0 of 1 replicas have the payment"):
                        await hasty.reserve(new_key(), NAME, 1, 10)
                    assert await amounts(hasty) == (1, 0)  # it is given back
            assert await books.reserve(new_key(), NAME, 1, 10)
            replica.kill()
            async with books_of_known(own_server) as hasty:
                with pytest.raises(BooksError, match=r"HDEL comity:\{crawl\}:accounts replicas"):
                    await hasty.reserve(new_key(), NAME, 1, 10)
            own_server.client().hdel(ACCOUNTS, "replicas")
            assert await books.reserve(new_key(), NAME, 1, 10)

    asyncio.run(run())


@asynccontextmanager
async def books_of_known(server: Server) -> AsyncIterator[RedisBooks]:
    """Yield books that wait two seconds for a replica. Their account exists."""
    books = RedisBooks(server.address(), patience=4)
    try:
        yield books
    finally:
        await books.disconnect()


@pytest.mark.slow
@pytest.mark.usefixtures("one_try")
def test_a_replica_that_takes_over_has_all_amounts(own_server: Server, replica: Server) -> None:
    async def run() -> None:
        wait_for_replica(own_server)
        async with Forwarder(own_server) as forwarder, books_of(own_server):
            other = RedisBooks(forwarder.address)
            keys = [new_key() for _ in range(20)]
            assert all(await asyncio.gather(*(other.reserve(key, NAME, 1, 30) for key in keys)))
            own_server.kill()
            replica.client().replicaof("NO", "ONE")
            forwarder.lead_to(replica)
            for account in await other.accounts() or await other.accounts():
                assert account == (NAME, 20, 0)
            # It has no replica that could take over in its turn.
            with pytest.raises(BooksError, match="0 of 1 replicas"):
                await other.reserve(new_key(), NAME, 1, 30)
            own_server.start()
            own_server.client().replicaof("127.0.0.1", replica.port)
            while not await is_reserved(other):
                pass
            assert await amounts(other) == (21, 0)
            await other.disconnect()

    asyncio.run(run())


async def is_reserved(books: RedisBooks) -> bool:
    try:
        return await books.reserve(new_key(), NAME, 1, 30)
    except BooksError:
        return False


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("appendfsync", "everysec", "write `appendfsync always` into"),
        ("appendfsync", "no", "write `appendfsync always` into"),
        ("appendonly", "no", "write `appendonly yes` into"),
        ("no-appendfsync-on-rewrite", "yes", "write `no-appendfsync-on-rewrite no` into"),
    ],
)
def test_a_server_that_answers_before_a_payment_is_on_its_disk_confirms_none(
    own_server: Server, name: str, value: str, remedy: str
) -> None:
    async def run() -> None:
        async with books_of(own_server) as books:
            own_server.client().config_set(name, value)
            with pytest.raises(BooksError, match=remedy):
                await books.reserve(new_key(), NAME, 1, 10)
            with pytest.raises(PolicyError, match=f"the books of payments fail: .* {remedy}"):
                books.open([NAME])
            assert await amounts(books) == (0, 0)

    asyncio.run(run())


def test_a_server_that_hides_its_configuration_confirms_no_payment(own_server: Server) -> None:
    rights = ("on", "nopass", "resetkeys", "~comity:*", "+@all", "-@admin")
    client: Any = own_server.client()
    client.execute_command("ACL", "SETUSER", "default", *rights)
    with pytest.raises(PolicyError, match=r"ACL SETUSER default \+config\|get"):
        RedisBooks(own_server.address()).open([NAME])


def test_lost_books_begin_no_new_sum(own_server: Server) -> None:
    async def run() -> None:
        async with books_of(own_server) as books:
            assert await books.reserve(new_key(), NAME, 1, 10)
            own_server.client().flushall()
            with pytest.raises(BooksError, match="they were lost"):
                await books.reserve(new_key(), NAME, 1, 10)

    asyncio.run(run())


def test_the_charge_for_a_lost_amount_counts(own_server: Server) -> None:
    async def run() -> None:
        async with books_of(own_server) as books:
            key = new_key()
            assert await books.reserve(key, NAME, 5, 10)
            # As on a replica that took over without it.
            own_server.client().hset(ACCOUNTS, f"t:{NAME}", 0)
            own_server.client().delete(RESERVED)
            books.settle(key, NAME, 5, 3)
            assert await amounts(books) == (3, 3)

    asyncio.run(run())


def test_a_full_server_goes_on_booking(own_server: Server) -> None:
    async def run() -> None:
        async with books_of(own_server) as books:
            own_server.client().config_set("maxmemory", 1)
            key = new_key()
            assert await books.reserve(key, NAME, 5, 10)
            books.settle(key, NAME, 5, 3)
            assert await amounts(books) == (3, 3)

    asyncio.run(run())


def test_cancelled_requests_give_their_amounts_back(own_server: Server) -> None:
    async def run() -> None:
        async with books_of(own_server) as books:
            with frozen(own_server):
                task = asyncio.create_task(books.reserve(new_key(), NAME, 5, 10))
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
            assert await amounts(books) == (0, 0)

    asyncio.run(run())
