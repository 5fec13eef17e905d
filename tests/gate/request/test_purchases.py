"""Books of payments, and purchases from hosts: what is reserved, booked and given back."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from comity.gate.http import Headers, PlainRequest
from comity.gate.request import purchases
from comity.gate.request.books import MOST, BooksError, FileBooks, new_key
from comity.gate.request.purchases import LicenseToken, Payment, Purchase, Purchases
from comity.gate.run.flights import ClosingError
from comity.policies import PolicyError, Price
from tests.test_forks import in_child, in_fork, is_well

forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

CENT = 10_000_000
URL = "https://shop.test/a"


class Stats(Counter[str]):
    def inc_value(self, key: str, count: int = 1) -> None:
        self[key.removeprefix("comity/payments/")] += count


def price(text: str) -> Price:
    parsed = Price.parse(text)
    assert parsed
    return parsed


class Shop:
    """Purchases from one host, at most 3 cents each and 10 cents in all."""

    def __init__(
        self, books: FileBooks, *tokens: LicenseToken, host: str = "shop.test", **options: Any
    ) -> None:
        self.stats: Any = Stats()
        payment = Payment(host, price("USD 0.03"), price("USD 0.1"))
        self.books = books
        books.open([payment.account])
        self.purchases = Purchases([payment], tokens, books, self.stats, **options)

    async def begin(self, url: str = URL, **options: Any) -> Purchase | None:
        return await self.purchases.begin(PlainRequest(url, **options))

    async def buy(self, *charged: str, status: int = 200) -> bool:
        purchase = await self.begin()
        if purchase is None:
            return False
        assert purchase.fields == {"Crawler-Max-Price": "USD 0.03"}
        self.purchases.answered(purchase, status, Headers({"crawler-charged": charged}))
        return True

    async def cents(self) -> tuple[float, float]:
        """The taken and the charged cents."""
        (account,) = await self.books.accounts()
        assert account.name == "shop.test USD"
        return account.taken / CENT, account.charged / CENT


@pytest.mark.requirement("PAY-1")
@pytest.mark.parametrize(
    ("status", "charged", "counts"),
    [
        (200, ["USD 0.02"], 2),
        (200, ["usd 0"], 0),
        (402, ["USD 0.02"], 2),
        (402, [], 0),
        (302, [], 0),
        (503, [], 0),
        (200, [], 3),
        (206, [], 3),
        (200, ["EUR 0.01"], 3),
        (404, ["EUR 0.01"], 3),
        (200, ["USD 0.01", "USD 0.01"], 3),
        (200, ["USD NaN"], 3),
        (200, ["USD 1e999"], 3),
        (200, ["USD -1"], 3),
        (200, ["USD " + "9" * 5000], 3),
        (200, ["USD 0.0200000001"], 3),
    ],
)
def test_charges(status: int, charged: list[str], counts: int) -> None:
    async def run() -> None:
        shop = Shop(FileBooks(None))
        assert await shop.buy(*charged, status=status)
        assert await shop.cents() == (counts, counts)

    asyncio.run(run())


@pytest.mark.requirement("PAY-1")
def test_the_sum_ends_the_offers(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        shop = Shop(FileBooks(None))
        assert [await shop.buy("USD 0.03") for _ in range(6)] == [True] * 3 + [False] * 3
        assert await shop.cents() == (9, 9)
        assert shop.stats == {"offered": 3, "charged": 3, "not-offered": 3}

    asyncio.run(run())
    assert caplog.text.count("less than USD 0.03 is left of the sum USD 0.1") == 1


@pytest.mark.requirement("PAY-1")
def test_requests_wait_for_amounts_that_may_be_given_back() -> None:
    async def run() -> None:
        shop = Shop(FileBooks(None))
        out = [await shop.begin() for _ in range(3)]
        waiting = [asyncio.ensure_future(shop.buy("USD 0.01")) for _ in range(4)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        for purchase in out:
            assert purchase
            shop.purchases.answered(purchase, 200, Headers({"crawler-charged": "USD 0.01"}))
        assert await asyncio.gather(*waiting) == [True] * 4
        assert await shop.cents() == (7, 7)

    asyncio.run(run())


@pytest.mark.requirement("PAY-1")
def test_a_waiting_request_is_let_go_when_nothing_comes_back() -> None:
    async def run() -> None:
        shop = Shop(FileBooks(None))
        out = [await shop.begin() for _ in range(3)]
        waiting = asyncio.ensure_future(shop.begin())
        for purchase in out:
            assert purchase
            await asyncio.sleep(0)
            shop.purchases.failed(purchase, is_sent=True)
        assert await waiting is None
        assert await shop.cents() == (9, 0)

    asyncio.run(run())


@pytest.mark.requirement("PAY-1")
def test_a_request_that_was_not_sent_costs_nothing() -> None:
    async def run() -> None:
        shop = Shop(FileBooks(None))
        for _ in range(9):
            purchase = await shop.begin()
            assert purchase
            shop.purchases.failed(purchase, is_sent=False)
        assert await shop.cents() == (0, 0)

    asyncio.run(run())


@pytest.mark.requirement("PAY-1")
def test_a_purchase_that_is_over_gives_nothing_back() -> None:
    async def run() -> None:
        shop = Shop(FileBooks(None))
        lost, free = await shop.begin(), await shop.begin()
        assert lost
        assert free
        shop.purchases.failed(lost, is_sent=True)
        shop.purchases.answered(free, 404, Headers())
        assert await shop.cents() == (3, 0)
        for purchase in (lost, free):
            shop.purchases.answered(purchase, 404, Headers())
            shop.purchases.failed(purchase, is_sent=False)
        assert await shop.cents() == (3, 0)
        assert shop.stats == {"offered": 2, "lost": 1, "free": 1}
        shop.books.settle(free.key, "shop.test USD", 3 * CENT, 0)
        assert await shop.cents() == (3, 0)

    asyncio.run(run())


@pytest.mark.requirement("PAY-1")
def test_one_waiting_request_asks_the_books(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        shop = Shop(FileBooks(None))
        out = [await shop.begin() for _ in range(3)]
        asked = Counter[str]()
        reserve = shop.books.reserve

        async def count(key: str, *arguments: Any) -> bool:
            asked["reserve"] += 1
            return await reserve(key, *arguments)

        monkeypatch.setattr(shop.books, "reserve", count)
        waiting = [asyncio.ensure_future(shop.begin()) for _ in range(50)]
        for purchase in out:
            assert purchase
            await asyncio.sleep(0)
            shop.purchases.failed(purchase, is_sent=True)
        assert await asyncio.gather(*waiting) == [None] * 50
        assert asked["reserve"] < 60

    asyncio.run(run())


@pytest.mark.requirement("PAY-1")
def test_a_wait_for_money_has_an_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def run() -> None:
        shop = Shop(FileBooks(None))
        out = [await shop.begin() for _ in range(3)]
        request = PlainRequest(URL)
        for _ in range(2):  # the task that has the money asks for more
            assert await shop.purchases.begin(request, at_most=0.01) is None
        assert out[0]
        shop.purchases.answered(out[0], 404, Headers())
        assert await shop.begin()
        assert shop.stats["not-offered"] == 2

    asyncio.run(run())
    assert caplog.text.count("requests wait for what others may give back of the sum USD 0.1") == 1
    assert caplog.text.count("was given back within 0.01 s") == 1


@pytest.mark.requirement("PAY-1")
@pytest.mark.parametrize("charged", ["USD 0.04", "USD 999999999"])
def test_a_higher_charge_is_booked_and_ends_the_offers(
    caplog: pytest.LogCaptureFixture, charged: str
) -> None:
    async def run() -> None:
        shop = Shop(FileBooks(None))
        assert await shop.buy(charged)
        assert not await shop.buy("USD 0.01")
        (account,) = await shop.books.accounts()
        assert account.charged == price(charged).billionths
        # No restart and no other worker offers more.
        again = Shop(shop.books)
        assert not await again.buy("USD 0.01")
        assert again.stats == {"not-offered": 1}
        await again.purchases.close()

    caplog.set_level(logging.INFO)
    asyncio.run(run())
    assert "and USD 0.03 was offered" in caplog.text
    assert "has charged more than was offered, so nothing more is offered" in caplog.text
    assert "less than" not in caplog.text
    assert " charged; nothing more is offered to it" in caplog.text


@pytest.mark.requirement("PAY-1")
def test_after_a_higher_charge_nothing_is_given_back() -> None:
    async def run() -> None:
        shop = Shop(FileBooks(None))
        out = await shop.begin()
        assert await shop.buy("USD 0.04")
        assert out
        shop.purchases.answered(out, 200, Headers({"crawler-charged": "USD 0"}))
        (account,) = await shop.books.accounts()
        assert account.is_closed

    asyncio.run(run())


@pytest.mark.requirement("PAY-1")
@pytest.mark.parametrize(
    ("host", "url", "is_paid"),
    [
        ("shop.test", "https://shop.test:8443/", True),
        ("shop.test", "http://SHOP.test/", True),
        ("shop.test:8443", "https://shop.test:8443/", True),
        ("shop.test:443", "https://shop.test/", True),
        ("shop.test:8443", "https://shop.test/", False),
        ("shop.test", "https://www.shop.test/", False),
        ("shop.test", "https://shop.test.evil.test/", False),
        ("shop.test", "https://shop.test@evil.test/", False),
        ("::1", "http://[::1]:8080/", True),
        ("[::1]:8080", "http://[::1]:8080/", True),
    ],
)
def test_hosts(host: str, url: str, is_paid: bool) -> None:
    async def run() -> bool:
        return await Shop(FileBooks(None), host=host).begin(url) is not None

    assert asyncio.run(run()) is is_paid


@pytest.mark.requirement("PAY-1")
def test_only_get_requests_without_a_browser_buy() -> None:
    async def run() -> None:
        shop = Shop(FileBooks(None))
        assert await shop.begin(method="POST") is None
        assert await shop.begin(method="HEAD") is None
        assert await shop.begin(meta={"playwright": True}) is None
        assert await shop.begin()

    asyncio.run(run())


@pytest.mark.requirement("RSL-4")
def test_tokens(caplog: pytest.LogCaptureFixture) -> None:
    async def fields(url: str, token: LicenseToken, **headers: str) -> dict[str, str]:
        purchases = Purchases([], [token], FileBooks(None), Stats())
        purchase = await purchases.begin(PlainRequest(url, headers=Headers(headers)))
        return purchase.fields if purchase else {}

    async def run() -> None:
        token = LicenseToken(host="shop.test", token="s3cret")
        sent = {"Authorization": "License s3cret"}
        assert await fields(URL, token) == sent
        assert await fields("http://shop.test/", token) == {}
        assert await fields("https://other.test/", token) == {}
        assert await fields(URL, token, Authorization="Bearer x") == {}
        assert (
            await fields("http://127.0.0.1/", LicenseToken(host="127.0.0.1", token="s3cret"))
            == sent
        )
        proxied = PlainRequest("http://127.0.0.1/", meta={"proxy": "http://proxy.test:3128"})
        local = LicenseToken(host="127.0.0.1", token="s3cret")
        assert await Purchases([], [local], None, Stats()).begin(proxied) is None
        open_token = LicenseToken(host="shop.test", token="s3cret", insecure=True)
        assert await fields("http://shop.test/", open_token) == sent

    asyncio.run(run())
    assert "not sent over http" in caplog.text
    assert "another Authorization field" in caplog.text
    assert "s3cret" not in caplog.text
    assert "s3cret" not in repr(LicenseToken(host="a", token="s3cret"))


@pytest.mark.requirement("PAY-1", "SEC-6")
def test_amounts_stay_reserved_after_the_end_of_a_process(tmp_path: Path) -> None:
    path = tmp_path / "job" / "payments.sqlite"

    async def run() -> None:
        first = Shop(FileBooks(path))
        assert await first.begin()
        assert await first.buy("USD 0.02")
        second = Shop(FileBooks(path))  # as after kill -9: the first never closes its books
        assert await second.cents() == (5, 2)
        assert [await second.buy("USD 0.03") for _ in range(3)] == [True, False, False]
        await second.purchases.close()

    asyncio.run(run())


@pytest.mark.requirement("PAY-1")
@pytest.mark.parametrize(
    ("known", "wanted", "is_refused"),
    [
        ("shop.test USD", "shop.test EUR", True),
        ("shop.test USD", "shop.test:443 USD", True),
        ("shop.test:443 USD", "shop.test USD", True),
        ("[::1]:80 USD", "::1 USD", True),
        ("::1 USD", "[::1]:80 EUR", True),
        ("shop.test USD", "shop.test USD", False),
        ("shop.test:443 USD", "shop.test:8443 USD", False),
        ("shop.test USD", "www.shop.test USD", False),
    ],
)
def test_no_other_form_of_a_host_begins_a_new_sum(
    tmp_path: Path, known: str, wanted: str, is_refused: bool
) -> None:
    path = tmp_path / "payments.sqlite"
    books = FileBooks(path)
    books.open([known])
    books.close()
    problem = f"`{wanted}` .* have `{known}`".replace("[", r"\[")
    with pytest.raises(PolicyError, match=problem) if is_refused else nullcontext():
        FileBooks(path).open([wanted])
    books = FileBooks(path)
    assert len(asyncio.run(books.accounts())) == len({known} if is_refused else {known, wanted})


@pytest.mark.requirement("PAY-1")
def test_several_forms_of_a_host_that_begin_together(tmp_path: Path) -> None:
    for _ in range(2):
        books = FileBooks(tmp_path / "payments.sqlite")
        books.open(["shop.test USD", "shop.test:8443 EUR"])
        books.close()


@pytest.mark.requirement("PAY-1")
def test_damaged_books_are_never_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "payments.sqlite"
    FileBooks(path).close()
    path.write_bytes(b"x" * 5000)
    with pytest.raises(PolicyError, match=r"the books of payments .* restore this file"):
        FileBooks(path)


@pytest.mark.requirement("PAY-1")
def test_lost_books_begin_no_new_sum() -> None:
    with pytest.raises(BooksError, match="no account `a USD` any more: they were lost"):
        asyncio.run(FileBooks(None).reserve("key", "a USD", 1, 2))


@pytest.mark.requirement("PAY-1")
def test_books_that_cannot_be_written_send_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        books = FileBooks(None)
        shop = Shop(books)
        purchase = await shop.begin()
        assert purchase
        books.close()
        shop.purchases.answered(purchase, 200, Headers())
        with pytest.raises(BooksError, match="the books of payments for `shop"):
            await shop.begin()
        assert await books.accounts() == []

    asyncio.run(run())
    assert caplog.text.count("The books of payments for") == 2
    assert "less than" not in caplog.text


class SharedBooks(FileBooks):
    """Books of several workers."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, is_shared=True)


@forks
@pytest.mark.requirement("PAY-1", "SEC-6")
def test_a_forked_process_keeps_to_the_sum(tmp_path: Path) -> None:
    path = tmp_path / "payments.sqlite"
    (ready, tell_ready), (go, tell_go) = os.pipe(), os.pipe()

    def opened() -> FileBooks:
        books = SharedBooks(path)
        books.open(["a USD"])
        return books

    def reserved(books: FileBooks) -> int:
        return sum(asyncio.run(books.reserve(new_key(), "a USD", 1, 5)) for _ in range(5))

    books = opened()

    def check() -> bool:
        with pytest.raises(BooksError):
            reserved(books)
        own = opened()
        os.write(tell_ready, b"x")
        os.read(go, 1)
        return reserved(own) == 5

    child = in_child(check)
    os.close(tell_ready)
    os.read(ready, 1)
    books.close()  # the last user of the file removes its log
    os.write(tell_go, b"x")
    assert is_well(child)
    assert reserved(opened()) == 0
    for each in (ready, go, tell_go):
        os.close(each)


@forks
@pytest.mark.requirement("PAY-1", "SEC-6")
def test_a_fork_waits_for_the_transaction_of_another_thread(tmp_path: Path) -> None:
    books = SharedBooks(tmp_path / "payments.sqlite")
    books.open(["a USD"])
    inside, forking = threading.Event(), threading.Event()

    def wait() -> int:
        inside.set()
        return not forking.wait(10)

    def reserve() -> bool:
        books._db.set_progress_handler(wait, 1)
        return asyncio.run(books.reserve(new_key(), "a USD", 1, 5))

    os.register_at_fork(before=forking.set)
    with ThreadPoolExecutor(1) as thread:
        reserving = thread.submit(reserve)
        assert inside.wait(10)
        assert in_fork(lambda: True)
        assert reserving.result()
    assert asyncio.run(books.accounts()) == [("a USD", 1, 0)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The moment by the monotonic clock, which each look sets forward by a minute."""
    moments = [1000.0]

    def monotonic() -> float:
        moments[0] += 60
        return moments[0]

    monkeypatch.setattr(purchases, "monotonic", monotonic)
    monkeypatch.setattr(purchases, "LOOK", 0.001)
    return moments


@pytest.mark.requirement("PAY-1", "STATE-4")
def test_a_worker_waits_for_what_another_one_gives_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purchases, "LOOK", 0.001)

    async def run() -> None:
        first, second = (Shop(SharedBooks(tmp_path / "shared")) for _ in range(2))
        out = [await first.begin() for _ in range(3)]
        waiting = asyncio.ensure_future(second.buy("USD 0.01"))
        await asyncio.wait([waiting], timeout=0.02)
        assert not waiting.done()
        assert out[0]
        first.purchases.answered(out[0], 200, Headers({"crawler-charged": "USD 0.01"}))
        assert await waiting

    asyncio.run(run())


@pytest.mark.requirement("PAY-1", "STATE-4")
def test_a_worker_does_not_wait_for_ever_for_dead_ones(
    tmp_path: Path, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        dead, shop = (Shop(SharedBooks(tmp_path / "shared")) for _ in range(2))
        for _ in range(3):
            assert await dead.begin()
        assert not await shop.buy()
        until = clock[0]
        assert until > 1000 + purchases.PATIENCE
        assert not await shop.buy()
        assert clock[0] < until + purchases.PATIENCE  # it does not wait a second time

    asyncio.run(run())
    assert caplog.text.count("less than USD 0.03 is left") == 1


@pytest.mark.requirement("PAY-1")
def test_the_end_of_the_crawl_ends_the_wait_for_money() -> None:
    async def run() -> None:
        ending = asyncio.Event()
        shop = Shop(FileBooks(None), is_closing=ending.is_set)
        out = [await shop.begin() for _ in range(3)]
        waiting = asyncio.ensure_future(shop.begin())
        await asyncio.sleep(0)
        ending.set()
        assert out[0]
        shop.purchases.failed(out[0], is_sent=False)
        with pytest.raises(ClosingError):
            await waiting
        assert await shop.cents() == (6, 0)

    asyncio.run(run())


def test_claims_beyond_any_column() -> None:
    async def run() -> None:
        books = FileBooks(None)
        books.open(["a USD"])
        keys = "abc"
        for key in keys:
            assert await books.reserve(key, "a USD", 1, 10**18)
        for key in keys:
            books.settle(key, "a USD", 1, 10**30)
        (account,) = await books.accounts()
        assert (account.taken, account.charged) == (MOST, MOST)

    asyncio.run(run())


def test_the_end_logs_the_accounts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def run() -> None:
        shop = Shop(FileBooks(None))
        await shop.begin()
        await shop.buy("USD 0.02")
        await shop.purchases.close()

    asyncio.run(run())
    assert "Payments to shop.test: USD 0.02 charged; USD 0.03 counts as spent too" in caplog.text
