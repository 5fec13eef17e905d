"""The books of a crawl's payments in a store that carries out steps."""

from __future__ import annotations

import asyncio

from comity.cluster.errors import StateError
from comity.cluster.steps.line import LineConnection
from comity.gate.request.books import MOST, Account, BooksError, no_account, report_failure

NAME = "COMITY_STATE: the books of payments"
TRIES = 3  # of a call


class StepBooks:
    """Books that all workers of a crawl share. Subclasses add `open`.

    A call whose answer is lost is repeated with the same key, and counts once."""

    is_shared = True

    def __init__(self, connection: LineConnection) -> None:
        self._connection = connection
        self._crawl = connection.address.prefix

    async def reserve(self, key: str, account: str, amount: int, total: int) -> bool:
        try:
            answer = await self._reserve(key, account, amount, total)
        except (Exception, asyncio.CancelledError) as error:
            # The request is not sent, and the amount may be reserved.
            self._settle(key, account, amount, 0, tries=TRIES, is_first=False)
            if isinstance(error, StateError):
                raise BooksError(
                    f"COMITY_STATE: the books of payments for `{account}` fail: {error}"
                ) from None
            raise
        if answer < 0:
            raise BooksError(f"COMITY_STATE: {no_account(account)}")
        return answer > 0

    async def _reserve(self, key: str, account: str, amount: int, total: int) -> int:
        for tries in range(TRIES, 0, -1):
            try:
                answer = await self._connection.call(
                    "books reserve", self._crawl, key, account, amount, total
                )
            except StateError:
                if tries == 1:
                    raise
            else:
                return int(answer[0])
        raise AssertionError

    def settle(self, key: str, account: str, amount: int, charged: int) -> None:
        self._settle(key, account, amount, min(charged, MOST), tries=TRIES, is_first=True)

    def _settle(
        self, key: str, account: str, amount: int, charged: int, *, tries: int, is_first: bool
    ) -> None:
        def check(answer: asyncio.Future[object]) -> None:
            if answer.cancelled() or (error := answer.exception()) is None:
                return
            if tries > 1:
                self._settle(key, account, amount, charged, tries=tries - 1, is_first=False)
            else:
                report_failure(NAME, account, error)

        arguments = (key, account, amount, charged, MOST, int(is_first))
        self._connection.call("books settle", self._crawl, *arguments).add_done_callback(check)

    async def accounts(self) -> list[Account]:
        try:
            rows = await self._connection.call("books accounts", self._crawl)
        except StateError as error:
            report_failure(NAME, "all accounts", error)
            return []
        return sorted(
            Account(name.decode(), int(taken), int(charged)) for name, taken, charged in rows
        )

    def close(self) -> None:
        """Do nothing: the state closes its connection, after the answers to all calls."""
