"""Payments and license tokens of clients, by what a site that sells saw."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from comity.client import Client, RefusedError
from comity.client.aiohttp import middleware
from comity.gate.request.books import BooksError, FileBooks
from comity.policies import PolicyError
from tests.live.test_offers import OPEN, Seller, answer, fields

if TYPE_CHECKING:
    from tests.client.conftest import Library
    from tests.conftest import Serve

pytestmark = pytest.mark.requirement("PAY-1", "WEB-3")


def buyer(
    most: str,
    total: str,
    books: Path | None = None,
    max_delay: float | None = None,
    **terms: str,
) -> Client:
    arrangement: dict[str, Any] = {"max_price": most, "sum": total}
    more = [{name: value} for name, value in terms.items()]
    return Client(
        "testbot",
        store=None,
        min_delay=0,
        max_delay=max_delay,
        books=books,
        arrangements={"127.0.0.1": [arrangement, *more]},
    )


async def buy(client: Client, library: Library, urls: list[str]) -> list[Any]:
    """Ask for all URLs at the same time, and return statuses or errors."""
    async with client, library.opened(client) as ask:
        got = await asyncio.gather(*(ask("GET", url) for url in urls), return_exceptions=True)
    return [each if isinstance(each, BaseException) else each.status for each in got]


def test_what_a_client_pays_equals_the_books_of_the_seller(
    serve: Serve, library: Library, tmp_path: Path
) -> None:
    seller = Seller(serve, "0.01", pages=20)
    path = tmp_path / "payments.sqlite"
    for pages, earned in ((slice(0, 6), "0.06"), (slice(6, 20), "0.12")):
        client = buyer("USD 0.03", "USD 0.14", path)
        got = asyncio.run(buy(client, library, seller.urls[pages]))
        assert seller.earned == Decimal(earned)
        # Less than the highest price is left.
        refused = [error for error in got if error != 200]
        assert all(isinstance(error, RefusedError) and error.offer for error in refused)
        assert len(refused) == (0 if earned == "0.06" else 8)
    assert set(fields(seller.server, "crawler-max-price").values()) == {"USD 0.03"}
    (account,) = asyncio.run(FileBooks(path).accounts())
    assert (account.taken, account.charged) == (120_000_000, 120_000_000)


def test_clients_with_one_file_share_the_sum(
    serve: Serve, library: Library, tmp_path: Path
) -> None:
    seller = Seller(serve, "0.01", pages=12)

    async def run() -> None:
        clients = [buyer("USD 0.01", "USD 0.05", tmp_path / "books") for _ in range(3)]
        await asyncio.gather(
            *(buy(client, library, seller.urls[n::3]) for n, client in enumerate(clients))
        )

    asyncio.run(run())
    assert seller.earned == Decimal("0.05")


def test_no_redirect_repeats_what_is_sent(serve: Serve, library: Library, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("s3cret")
    other = serve({"/robots.txt": OPEN, "/c": "c"}, host="127.0.0.2")
    server = serve(
        {
            "/robots.txt": OPEN,
            "/a": answer(serve, 302, Location=other.url("/c")),
            "/b": answer(serve, 302, Location="/d"),
            "/d": "d",
        }
    )
    client = buyer("USD 1", "USD 9", license_token=f"file:{secret}")
    assert asyncio.run(buy(client, library, [server.url("/a"), server.url("/b")])) == [200, 200]
    for name, value in (("crawler-max-price", "USD 1"), ("authorization", "License s3cret")):
        assert fields(server, name) == dict.fromkeys(("/a", "/b", "/d"), value)
        assert not fields(other, name)
    assert client.counts["comity/payments/offered"] == 3


def test_an_answer_that_is_lost_counts_as_paid(serve: Serve, library: Library) -> None:
    seller = Seller(serve, "0.01", pages=8)

    def charge_and_break_off(handler: Any) -> None:
        seller.sell(handler)
        handler.connection.close()

    for path in list(seller.server.routes)[1:]:
        seller.server.routes[path] = charge_and_break_off
    got = asyncio.run(buy(buyer("USD 0.01", "USD 0.05"), library, seller.urls))
    assert all(isinstance(error, library.error) for error in got)
    # aiohttp itself asks again.
    assert seller.earned == Decimal("0.05")


def test_a_refused_request_and_a_dead_host_cost_nothing(
    serve: Serve, library: Library, tmp_path: Path
) -> None:
    server = serve({"/robots.txt": "User-agent: *\nDisallow: /no\n", "/a": "a"})
    path = tmp_path / "books"

    async def run() -> None:
        client = buyer("USD 1", "USD 1", path)
        async with client, library.opened(client) as ask:
            for _ in range(2):
                with pytest.raises(RefusedError):
                    await ask("GET", server.url("/no"))
            await client.admit(server.url("/"), method="POST")
            admission = await client.admit(server.url("/a"))
            assert admission.fields["Crawler-Max-Price"] == "USD 1"
            admission.failed(is_sent=False)
            server.close()
            for _ in range(2):
                with pytest.raises(library.error) as error:
                    await ask("GET", server.url("/a"))
                assert not isinstance(error.value, RefusedError)
        (account,) = await FileBooks(path).accounts()
        assert (account.taken, account.charged) == (0, 0)

    asyncio.run(run())


def test_the_end_of_the_client_ends_the_wait_for_money(serve: Serve) -> None:
    server = serve({"/robots.txt": OPEN, "/a": "a"})

    async def run() -> None:
        async with buyer("USD 1", "USD 1") as client:
            await client.admit(server.url("/a"))
            waiting = asyncio.create_task(client.admit(server.url("/a")))
            await asyncio.sleep(0)
        with pytest.raises(Exception, match="the client was closed"):
            await waiting

    asyncio.run(run())


def test_an_answered_request_offers_nothing_more(serve: Serve, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("s3cret")
    server = serve({"/robots.txt": OPEN})

    async def run() -> None:
        async with buyer("USD 1", "USD 3", license_token=f"file:{secret}") as client:
            admission = await client.admit(server.url("/a"))
            bought = {"Crawler-Max-Price", "Authorization"}
            assert admission.fields.keys() >= bought
            admission.answered(404)
            assert not admission.fields.keys() & bought

    asyncio.run(run())


def test_a_task_does_not_wait_for_itself(serve: Serve) -> None:
    server = serve({"/robots.txt": OPEN})

    async def run() -> None:
        async with buyer("USD 1", "USD 1", max_delay=0.01) as client:
            admissions = [await client.admit(server.url("/a")) for _ in range(2)]
            offers = [admission.fields.get("Crawler-Max-Price") for admission in admissions]
            assert offers == ["USD 1", None]

    asyncio.run(run())


def test_a_request_that_lost_its_turn_costs_nothing(
    serve: Serve, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve({"/robots.txt": OPEN, "/a": "a"})
    path = tmp_path / "books"

    async def run() -> None:
        client = buyer("USD 1", "USD 1", path)
        async with client, library.opened(client) as ask:
            monkeypatch.setattr(client.parts.pace, "stood_still", lambda request: True)
            with pytest.raises(library.error, match="this process stood still"):
                await ask("GET", server.url("/a"))
        (account,) = await FileBooks(path).accounts()
        assert (account.taken, account.charged) == (0, 0)

    asyncio.run(run())
    assert not fields(server, "crawler-max-price")


def test_no_proxy_of_a_request_gets_the_token(serve: Serve, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("s3cret")
    server = serve({"/robots.txt": OPEN, "/a": "a"})
    proxy = serve({server.url("/a"): "a"}, host="127.0.0.2")

    async def run() -> None:
        client = buyer("USD 1", "USD 3", license_token=f"file:{secret}")
        layers = (middleware(client),)
        async with (
            client,
            aiohttp.ClientSession(middlewares=layers) as session,
            session.get(server.url("/a"), proxy=proxy.url("/")) as response,
        ):
            assert await response.text() == "a"

    asyncio.run(run())
    assert list(fields(proxy, "crawler-max-price").values()) == ["USD 1"]
    assert not fields(proxy, "authorization")


def test_books_that_fail_send_nothing(serve: Serve, library: Library, tmp_path: Path) -> None:
    seller = Seller(serve)
    path = tmp_path / "books"

    async def run() -> None:
        client = buyer("USD 1", "USD 9", path)
        async with client, library.opened(client) as ask:
            with closing(sqlite3.connect(path)) as db, db:
                db.execute("DELETE FROM account")
            with pytest.raises(library.error, match="books of payments"):
                await ask("GET", seller.urls[0])
            with pytest.raises(BooksError):
                await client.admit(seller.urls[0])
        damaged = tmp_path / "damaged"
        damaged.write_text("no database, although this text is long enough for the header of one")
        with pytest.raises(PolicyError, match=r"^books: .* restore this file"):
            async with buyer("USD 1", "USD 9", damaged):
                pass

    asyncio.run(run())
    assert not seller.sold
