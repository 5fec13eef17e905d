"""The books of a crawl's payments in a store that carries out steps."""

from __future__ import annotations

import asyncio

from comity.cluster.errors import StateError
from comity.cluster.steps.line import LineConnection
from comity.gate.request.books import MOST, Account, BooksError, report_failure

NAME = "COMITY_STATE: the books of payments"


class StepBooks:
    """Books that all workers of a crawl share. Subclasses add `open`.

    No call is repeated, because its answer may be lost after it has happened. An amount whose
    reservation or charge has no answer stays taken."""

    is_shared = True

    def __init__(self, connection: LineConnection) -> None:
        self._connection = connection
        self._crawl = connection.address.prefix

    async def reserve(self, account: str, amount: int, total: int) -> bool:
        try:
            return bool(
                await self._connection.call("books reserve", self._crawl, account, amount, total)
            )
        except StateError as error:
            raise BooksError(
                f"COMITY_STATE: the books of payments for `{account}` fail: {error}"
            ) from None

    def settle(self, account: str, amount: int, charged: int) -> None:
        answer = self._connection.call(
            "books settle", self._crawl, account, amount, min(charged, MOST)
        )
        answer.add_done_callback(lambda done: _check(account, done))

    async def accounts(self) -> list[Account]:
        try:
            rows = await self._connection.call("books accounts", self._crawl)
        except StateError as error:
            report_failure(NAME, "all accounts", error)
            return []
        return [Account(name.decode(), taken, charged) for name, taken, charged in rows]

    def close(self) -> None:
        """Do nothing: the state closes its connection, after the answers to all calls."""


def _check(account: str, answer: asyncio.Future[object]) -> None:
    if not answer.cancelled() and (error := answer.exception()) is not None:
        report_failure(NAME, account, error)
