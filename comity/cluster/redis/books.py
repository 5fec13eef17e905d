"""The books of a crawl's payments on a server of Redis or Valkey.

An amount counts as reserved once it is on the disk of the server, and as many replicas have it as
the books have ever seen at a time. Until then its request is not sent. So a kill of the server does
not lose it, and a replica that stayed connected may take over.

WAIT lets a whole connection wait, so the books have one of their own. In a Cluster it leads to the
node of the crawl's keys."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from redis.exceptions import ResponseError

from comity.cluster.errors import StateError
from comity.cluster.redis.address import StateAddress
from comity.cluster.redis.connection import RedisLine
from comity.cluster.steps.books import StepBooks
from comity.cluster.steps.line import PATIENCE, LineConnection
from comity.gate.request.books import check_accounts
from comity.policies import PolicyError

CONFIRMED = ("books open", "books reserve")  # steps whose changes must not be lost
STEPS = (*CONFIRMED, "books settle", "books accounts")
# With these settings the server writes each change to its disk before it answers. WAITAOF is no
# replacement: with `everysec`, Valkey 9.1 answers it before the change is on the disk.
SYNCED = {"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}


class RedisBooks(StepBooks):
    """Books that all workers of a crawl share."""

    def __init__(self, address: StateAddress, *, patience: float = PATIENCE) -> None:
        super().__init__(books_connection(address, patience))
        self._address = address
        self._patience = patience

    def open(self, accounts: Iterable[str]) -> None:
        # Crawls call it in the thread of a loop that runs already.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, self._open([*accounts])).result()

    async def _open(self, accounts: list[str]) -> None:
        connection = books_connection(self._address, self._patience)
        try:
            known = await connection.call("books accounts", self._crawl)
            check_accounts(accounts, [name.decode() for name, _, _ in known])
            await connection.call("books open", self._crawl, *accounts)
        except StateError as error:
            raise PolicyError(f"COMITY_STATE: the books of payments fail: {error}") from None
        finally:
            await connection.close()

    async def disconnect(self) -> None:
        """Wait for the answers to all calls, and disconnect."""
        await self._connection.close()


def books_connection(address: StateAddress, patience: float) -> LineConnection:
    """Return a connection for the steps of books."""
    return LineConnection(address, BooksLine(address, patience), BooksLine(address, patience))


class BooksLine(RedisLine):
    """One connection to the server that has the books of a crawl."""

    async def _connect(self) -> None:
        options = self._options()
        if self._address.is_cluster:
            await super()._connect()
            node = self._client.get_node_from_key(self._address.prefix)
            await self._disconnect()
            options |= {"host": node.host, "port": node.port}
        await self._connect_to(options)
        # A call whose script is missing would run after later calls.
        await self._load(STEPS)
        await self._begin()

    def _is_over(self, answers: Sequence[Any]) -> bool:
        # Another node may have the keys by now.
        return any(isinstance(answer, Exception) for answer in answers)

    async def _run(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        answers = await super()._run(calls)
        changes = [
            number
            for number, (step, *_) in enumerate(calls)
            if step in CONFIRMED and isinstance(answers[number], list) and answers[number][0] == 1
        ]
        if changes:
            fault = await self._wait(max(answers[number][1] for number in changes))
            if fault:
                for number in changes:
                    answers[number] = ResponseError(fault)
        return answers

    async def _wait(self, replicas: int) -> str:
        """Wait until nothing can lose the changes of this connection. Return why it may; "": not.

        `replicas`: the number of replicas that must have them."""
        pipeline = self._client.pipeline(transaction=False)
        pipeline.config_get("*append*")
        pipeline.execute_command("WAIT", replicas, round(self._patience * 1000 / 2))
        settings, number = await pipeline.execute(raise_on_error=False)
        if isinstance(settings, ResponseError):
            user = self._address.user or "default"
            return (
                f"payments need to read its settings: ACL SETUSER {user} +config|get ({settings})"
            )
        for answer in (settings, number):
            if isinstance(answer, Exception):
                raise answer
        if wrong := [
            f"{name} {value}" for name, value in SYNCED.items() if settings.get(name) != value
        ]:
            # CONFIG SET alone would be over at the next start, which then loads no log.
            return (
                f"payments have to be on its disk: write `{'` and `'.join(wrong)}` into its"
                " configuration file, and start it again"
            )
        if number < replicas:
            return (
                f"{number} of {replicas} replicas have the payment: let the others connect. If"
                f" they are gone for good, HDEL {self._address.prefix}:accounts replicas"
            )
        return ""
