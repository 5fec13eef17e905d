"""The books of payments, which all workers and runs of a crawl share, if the store keeps any."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from comity.cluster.conformance.harness import FaultNotMade, Harness
from comity.gate.request.books import MOST, Books
from comity.policies import PolicyError

NAME = "shop.test USD"


@asynccontextmanager
async def books_of(harness: Harness, crawl: str) -> AsyncIterator[Books]:
    state = harness.state(crawl, 10.0)
    books: Books | None = getattr(state, "books", lambda: None)()
    try:
        if books is None:
            raise FaultNotMade("payments booked")
        yield books
    finally:
        await state.close()


async def amounts(books: Books) -> tuple[int, int]:
    (account,) = await books.accounts()
    assert account.name == NAME
    return account.taken, account.charged


def test_workers_never_take_more_than_the_sum(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with books_of(harness, crawl) as first, books_of(harness, crawl) as second:
            assert await first.accounts() == []
            granted = await asyncio.gather(
                *(books.reserve(NAME, 3, 10) for books in (first, second) * 5)
            )
            assert sum(granted) == 3
            assert await amounts(second) == (9, 0)

    asyncio.run(run())


def test_charges_give_the_rest_back(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with books_of(harness, crawl) as books:
            assert await books.reserve(NAME, 10, 10)
            assert not await books.reserve(NAME, 1, 10)
            books.settle(NAME, 10, 4)
            assert await amounts(books) == (4, 4)
            assert await books.reserve(NAME, 6, 10)
            books.settle(NAME, 6, 0)
            assert await amounts(books) == (4, 4)
            books.settle(NAME, 0, 10**30)
            assert await amounts(books) == (MOST, MOST)
            assert not await books.reserve(NAME, 1, 10**18)

    asyncio.run(run())


def test_a_charge_above_the_amount_closes_the_account(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with books_of(harness, crawl) as books:
            assert await books.reserve(NAME, 2, 10)
            assert await books.reserve(NAME, 2, 10)
            books.settle(NAME, 2, 3)
            books.settle(NAME, 2, 0)
            assert await amounts(books) == (MOST, 3)
            assert not await books.reserve(NAME, 1, 10**18)

    asyncio.run(run())


def test_another_currency_begins_no_new_sum(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with books_of(harness, crawl) as books:
            books.open([NAME])
            books.open([NAME])
            assert await amounts(books) == (0, 0)
            with pytest.raises(PolicyError, match="`shop"):
                books.open(["shop.test EUR"])
            assert await amounts(books) == (0, 0)

    asyncio.run(run())


def test_a_dead_worker_leaves_its_amounts_reserved(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with books_of(harness, crawl) as books:
            assert await books.reserve(NAME, 7, 10)
        async with books_of(harness, crawl) as books:
            assert await amounts(books) == (7, 0)
            assert not await books.reserve(NAME, 7, 10)

    asyncio.run(run())


def test_books_belong_to_their_crawl(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with books_of(harness, crawl) as books, books_of(harness, f"{crawl}-2") as others:
            assert await books.reserve(NAME, 10, 10)
            assert await others.reserve(NAME, 10, 10)
            state = harness.state(crawl, 0.1)
            queue = state.queue()
            await queue.open()
            await queue.close()
            await queue.delete()
            await state.close()
            assert await books.accounts() == []
            assert await amounts(others) == (10, 0)

    asyncio.run(run())
