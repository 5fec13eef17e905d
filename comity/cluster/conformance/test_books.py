"""The books of payments, which all workers and runs of a crawl share, if the store keeps any."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import pytest

from comity.cluster.conformance.harness import FaultNotMade, Harness
from comity.cluster.conformance.workers import eventually, until_answered
from comity.cluster.errors import StateError
from comity.gate.request.books import MOST, Books, BooksError, new_key
from comity.policies import PolicyError

NAME = "shop.test USD"


@asynccontextmanager
async def books_of(harness: Harness, crawl: str, *, url: str = "") -> AsyncIterator[Books]:
    state = harness.state(crawl, 10.0, url=url)
    books: Books | None = getattr(state, "books", lambda: None)()
    try:
        if books is None:
            raise FaultNotMade("payments booked")
        books.open([NAME])
        yield books
    finally:
        await state.close()


async def amounts(books: Books) -> tuple[int, int]:
    (account,) = await books.accounts()
    assert account.name == NAME
    return account.taken, account.charged


async def reserve(books: Books, amount: int, total: int) -> str:
    """Reserve an amount, and return its key. "": too little is left."""
    key = new_key()
    return key if await books.reserve(key, NAME, amount, total) else ""


def test_workers_never_take_more_than_the_sum(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with books_of(harness, crawl) as first, books_of(harness, crawl) as second:
            assert await first.accounts() == [(NAME, 0, 0)]
            keys = await asyncio.gather(*(reserve(books, 3, 10) for books in (first, second) * 5))
            assert sum(map(bool, keys)) == 3
            assert await amounts(second) == (9, 0)

    asyncio.run(run())


def test_amounts_are_exact(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        total = 10**18 - 1  # more than a float can tell apart
        async with books_of(harness, crawl) as books:
            assert await reserve(books, total - 1, total)
            assert not await reserve(books, 2, total)
            assert await reserve(books, 1, total)
            assert not await reserve(books, 1, total)
            assert await reserve(books, 0, total)
            assert await amounts(books) == (total, 0)

    asyncio.run(run())


def test_charges_give_the_rest_back(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with books_of(harness, crawl) as books:
            key = await reserve(books, 10, 10)
            assert not await reserve(books, 1, 10)
            books.settle(key, NAME, 10, 4)
            assert await amounts(books) == (4, 4)
            key = await reserve(books, 6, 10)
            books.settle(key, NAME, 6, 0)
            assert await amounts(books) == (4, 4)
            key = await reserve(books, 0, 10)
            books.settle(key, NAME, 0, 10**30)
            assert await amounts(books) == (MOST, MOST)
            assert not await reserve(books, 1, 10**18)

    asyncio.run(run())


def test_a_charge_above_the_amount_closes_the_account(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with books_of(harness, crawl) as books:
            first, second = await reserve(books, 2, 10), await reserve(books, 2, 10)
            books.settle(first, NAME, 2, 3)
            books.settle(second, NAME, 2, 0)
            assert await amounts(books) == (MOST, 3)
            assert not await reserve(books, 1, 10**18)

    asyncio.run(run())


def test_an_equal_key_is_an_equal_amount(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with books_of(harness, crawl) as books:
            keys = [new_key() for _ in range(3)]
            for key in [*keys, *keys]:
                assert await books.reserve(key, NAME, 3, 9)
            assert await amounts(books) == (9, 0)
            assert not await books.reserve(new_key(), NAME, 1, 9)

    asyncio.run(run())


def test_a_lost_answer_counts_once(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        proxy, url = harness.proxy()
        try:
            async with books_of(harness, crawl) as seen, books_of(harness, crawl, url=url) as books:
                for after in range(6):
                    before = await amounts(seen)
                    proxy.lose_answer(after)
                    key = new_key()
                    assert await books.reserve(key, NAME, 5, 100)
                    taken, charged = await amounts(seen)
                    assert (taken, charged) == (before[0] + 5, before[1])
                    proxy.lose_answer(after)
                    books.settle(key, NAME, 5, 2)
                    await books.accounts()  # after the charge, or its repetition
                    proxy.pass_all()
                    await books.accounts()
                    assert await amounts(seen) == (before[0] + 2, before[1] + 2)
                assert proxy.lost
        finally:
            proxy.close()

    asyncio.run(run())


def test_a_killed_server_keeps_reserved_amounts(own_harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with books_of(own_harness, crawl) as books:
            key = await reserve(books, 3, 10)
            books.settle(key, NAME, 3, 1)
            key = await reserve(books, 5, 10)
            own_harness.kill()
            own_harness.start()
            await until_answered(lambda: reserve_again(books, key))
            assert await amounts(books) == (6, 1)
            books.settle(key, NAME, 5, 5)
            assert await amounts(books) == (6, 6)

    asyncio.run(run())


def test_after_a_fail_over_reserved_amounts_stay(own_harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with AsyncExitStack() as stack:
            crawls = [f"{crawl}-{number}" for number in range(4)]  # on several nodes, if there are
            all_books = [await stack.enter_async_context(books_of(own_harness, n)) for n in crawls]
            for books in all_books:
                assert await reserve(books, 7, 10)
            own_harness.promote()
            for books in all_books:
                await eventually(partial(answers, books))
                assert await amounts(books) == (7, 0)

    asyncio.run(run())


async def answers(books: Books) -> bool:
    return bool(await books.accounts())


async def reserve_again(books: Books, key: str) -> None:
    """Reserve the amount of the key once more. StateError: the store does not answer yet."""
    try:
        assert await books.reserve(key, NAME, 5, 10)
    except BooksError as error:
        raise StateError(str(error)) from None


def test_another_currency_begins_no_new_sum(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with books_of(harness, crawl) as books:
            books.open([NAME])
            assert await amounts(books) == (0, 0)
            with pytest.raises(PolicyError, match="`shop"):
                books.open(["shop.test EUR"])
            assert await amounts(books) == (0, 0)

    asyncio.run(run())


def test_a_dead_worker_leaves_its_amounts_reserved(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with books_of(harness, crawl) as books:
            assert await reserve(books, 7, 10)
        async with books_of(harness, crawl) as books:
            assert await amounts(books) == (7, 0)
            assert not await reserve(books, 7, 10)

    asyncio.run(run())


def test_books_belong_to_their_crawl(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with books_of(harness, crawl) as books, books_of(harness, f"{crawl}-2") as others:
            key = await reserve(books, 10, 10)
            assert await reserve(others, 10, 10)
            state = harness.state(crawl, 0.1)
            queue = state.queue()
            await queue.open()
            await queue.close()
            await queue.delete()
            await state.close()
            assert await books.accounts() == []
            # Lost books begin no new sum.
            with pytest.raises(BooksError, match="were lost"):
                await books.reserve(new_key(), NAME, 1, 10)
            books.settle(key, NAME, 10, 10)
            assert await books.accounts() == []
            assert await amounts(others) == (10, 0)

    asyncio.run(run())
