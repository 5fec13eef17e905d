"""Sites that ask for payment or a licence, and a site that sells, by what the servers saw, in both modes of Scrapy."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider
from scrapy.http import Request, Response

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback
    from tests.conftest import Serve as Servers
    from tests.live.test_jobdir import Project
    from tests.redis_server import Server

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

OPEN = "User-agent: *\nDisallow:\n"
TOLD = {"COMITY_DROP_UNUSABLE": False}  # or what errbacks say is dropped


class Buyer(Spider):
    """Asks for URLs, and says what came of each."""

    name = "buyer"
    urls: list[str] | str
    handle_httpstatus_list = (401, 402)

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls.split() if isinstance(self.urls, str) else self.urls:
            yield Request(url, self.parse, errback=self.failed, cb_kwargs={"asked": url})

    def parse(self, response: Response, asked: str) -> Any:
        yield {"asked": asked, "got": response.status}

    def failed(self, failure: Any) -> Any:
        yield {"asked": failure.request.cb_kwargs["asked"], "error": str(failure.value)}


class HastyBuyer(Buyer):
    """It does not wait long for the amounts of a worker that was killed."""

    name = "hasty-buyer"

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        from comity.gate.request import purchases

        purchases.PATIENCE = 3.0


class Seller:
    """The pages of a site that sells, and its own books.

    A request that offers enough is charged `price`. Others get status 402 with the price."""

    def __init__(
        self, serve: Servers, price: str = "0.01", pages: int = 10, **options: Any
    ) -> None:
        self.price = Decimal(price)
        self.sold: list[str] = []
        self._lock = threading.Lock()
        self._answer = serve.Answer
        routes: dict[str, Any] = {f"/{page}": self.sell for page in range(pages)}
        self.server = serve({"/robots.txt": OPEN} | routes, **options)

    def sell(self, handler: Any) -> Any:
        offered = handler.headers.get_all("crawler-max-price", [])
        if len(offered) == 1 and Decimal(offered[0].removeprefix("USD ")) >= self.price:
            with self._lock:
                self.sold.append(handler.path)
            return self._answer("page", headers={"crawler-charged": f"USD {self.price}"})
        return self._answer("pay", status=402, headers={"crawler-price": f"USD {self.price}"})

    def has_sold(self, number: int) -> bool:
        return len(self.sold) >= number

    @property
    def earned(self) -> Decimal:
        return self.price * len(self.sold)

    @property
    def urls(self) -> list[str]:
        return [self.server.url(path) for path in self.server.routes if path != "/robots.txt"]


def arranged(most: str, total: str, host: str = "127.0.0.1") -> dict[str, Any]:
    return {"COMITY_ARRANGEMENTS": {host: [{"max_price": most, "sum": total}]}}


def answer(serve: Servers, status: int, body: bytes | str = b"", **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return serve.Answer(body, status=status, headers=named)


def pages(server: Loopback) -> list[str]:
    return [path for path in server.paths if path != "/robots.txt"]


def fields(server: Loopback, name: str) -> dict[str, str]:
    """Return path -> the value of a header field, for all requests that have it."""
    return {seen.path: seen.headers[name] for seen in server.seen if name in seen.headers}


@pytest.mark.requirement("PAY-1", "RSL-4")
def test_a_refusal_names_its_offer(serve: Servers, crawl: Crawl) -> None:
    x402 = {"x402Version": 1, "accepts": [{"maxAmountRequired": "9", "asset": "A", "network": "N"}]}
    offers = {
        "/price": answer(serve, 402, crawler_price="USD 0.01"),
        "/nan": answer(serve, 402, crawler_price="USD NaN"),
        "/escape": answer(serve, 402, crawler_price="USD 1\x1b[31m"),
        "/x402": answer(serve, 402, json.dumps(x402)),
        "/link": answer(serve, 402, Link='</rsl.xml>; rel="license"'),
        "/none": answer(serve, 402, "pay at the counter"),
        "/token": answer(serve, 401, WWW_Authenticate='License error="invalid_request"'),
    }
    basic = {"/basic": answer(serve, 401, WWW_Authenticate="Basic")}
    server = serve({"/robots.txt": OPEN} | offers | basic)
    asked = [server.url(path) for path in (*offers, *basic)]
    crawled = crawl(Buyer, TOLD | {"RETRY_HTTP_CODES": [401, 402, 503]}, urls=asked)
    # A status that the project retries is retried, unless it is an offer.
    assert Counter(pages(server)) == Counter([*offers, *["/basic"] * 3])
    errors = {
        item["asked"].removeprefix(server.origin): item["error"]
        for item in crawled.items
        if "error" in item
    }
    assert errors.keys() == offers.keys()
    assert "comity.payment (RFC 9110 section-15.5.3)" in errors["/price"]
    assert "'402, crawler-price: USD 0.01'" in errors["/price"]
    assert "crawler-price: USD NaN" in errors["/nan"]
    assert "crawler-price: USD 1\ufffd[31m" in errors["/escape"]
    assert "x402: 9 units of A on N" in errors["/x402"]
    assert f"license: {server.url('/rsl.xml')}" in errors["/link"]
    assert "comity.license (RSL 1.0)" in errors["/token"]
    assert "WWW-Authenticate: License" in errors["/token"]
    stats = crawled.stats
    assert stats["comity/offers/402"] == stats["comity/access/stopped/comity.payment"] == 6
    assert stats["comity/offers/402/USD 0.01"] == 1
    assert stats["comity/offers/402/no price"] == 5
    assert stats["comity/offers/401"] == stats["comity/access/stopped/comity.license"] == 1
    assert "crawler-price: USD 0.01" in crawled.log
    assert not fields(server, "crawler-max-price")


@pytest.mark.requirement("PAY-1")
def test_prices_of_sites_do_not_fill_the_statistics(serve: Servers, crawl: Crawl) -> None:
    routes = {
        f"/{number}": answer(serve, 402, crawler_price=f"USD {number}") for number in range(120)
    }
    server = serve({"/robots.txt": OPEN} | routes)
    crawled = crawl(Buyer, urls=[server.url(path) for path in routes])
    prices = {name for name in crawled.stats if name.startswith("comity/offers/402/")}
    assert len(prices) == 101
    assert crawled.stats["comity/offers/402/other prices"] == 20


@pytest.mark.requirement("PAY-1", "REPORT-1")
def test_the_report_counts_offers_by_their_terms(
    serve: Servers, crawl: Crawl, tmp_path: Path
) -> None:
    from comity.report.value import read_report

    sellers = [Seller(serve, "0.01", host=f"127.0.0.{number}") for number in (2, 3)]
    file = tmp_path / "report.json"
    urls = [url for seller in sellers for url in seller.urls]
    crawled = crawl(Buyer, {"COMITY_REPORT": str(file)}, urls=urls)
    (refusal,) = read_report(file.read_text()).stopped
    assert (refusal.rule, refusal.count) == ("comity.payment", 20)
    assert {row.name: row.count for row in refusal.hosts.rows} == {"127.0.0.2": 10, "127.0.0.3": 10}
    assert [(line.text, line.count) for line in refusal.lines] == [
        ("402, crawler-price: USD 0.01", 20)
    ]
    assert "they ask for payment" in crawled.log


@pytest.mark.requirement("PAY-1")
@pytest.mark.parametrize("own_handler", [False, True])
def test_what_is_paid_equals_the_books_of_the_seller(
    serve: Servers, crawl: Crawl, own_handler: bool
) -> None:
    seller = Seller(serve, "0.01")
    settings = TOLD | {"COMITY_DOWNLOAD_HANDLER": own_handler}
    crawled = crawl(Buyer, settings | arranged("USD 0.05", "USD 0.14"), urls=seller.urls)
    assert sorted(seller.sold) == sorted(pages(seller.server))
    assert [item["got"] for item in crawled.items] == [200] * 10
    assert fields(seller.server, "crawler-max-price").keys() == set(seller.sold)
    assert "Payments to 127.0.0.1: USD 0.10 charged; USD 0.00 counts as spent too" in crawled.log
    assert crawled.stats["comity/payments/charged"] == 10


@pytest.mark.requirement("PAY-1")
def test_the_sum_is_never_exceeded(serve: Servers, crawl: Crawl) -> None:
    seller = Seller(serve, "0.01", pages=30)
    settings = arranged("USD 0.01", "USD 0.05") | {"CONCURRENT_REQUESTS_PER_DOMAIN": 16}
    crawled = crawl(Buyer, TOLD | settings, urls=seller.urls)
    assert seller.earned == Decimal("0.05")
    assert Counter("got" in item for item in crawled.items) == {True: 5, False: 25}
    assert crawled.stats["comity/offers/402/USD 0.01"] == 25
    assert "less than USD 0.01 is left of the sum USD 0.05" in crawled.log


@pytest.mark.requirement("PAY-1")
def test_a_price_above_the_highest_is_not_paid_and_costs_nothing(
    serve: Servers, crawl: Crawl
) -> None:
    seller = Seller(serve, "0.02")
    crawled = crawl(Buyer, TOLD | arranged("USD 0.01", "USD 0.01"), urls=seller.urls)
    assert not seller.sold
    assert len(fields(seller.server, "crawler-max-price")) == 10
    assert all("crawler-price: USD 0.02" in item["error"] for item in crawled.items)
    assert "Payments to 127.0.0.1: USD 0.00 charged; USD 0.00 counts" in crawled.log


@pytest.mark.requirement("PAY-1", "RSL-4")
def test_no_offer_and_no_token_goes_to_another_host(
    serve: Servers, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")
    terms = [{"license_token": f"file:{secret}"}, {"max_price": "USD 1", "sum": "USD 9"}]
    other = serve({"/robots.txt": OPEN, "/c": "c"}, host="127.0.0.2")
    server = serve(
        {
            "/robots.txt": OPEN,
            "/a": answer(serve, 302, Location=other.url("/c")),
            "/b": answer(serve, 302, Location="/d"),
            "/d": "d",
        }
    )
    crawled = crawl(
        Buyer,
        TOLD | {"COMITY_ARRANGEMENTS": {"127.0.0.1": terms}},
        urls=[server.url("/a"), server.url("/b"), other.url("/c?2")],
    )
    assert [item.get("got") for item in crawled.items] == [200, 200, 200]
    for name, value in (("crawler-max-price", "USD 1"), ("authorization", "License s3cret")):
        # Neither a policy file nor another host has it.
        assert fields(server, name) == dict.fromkeys(("/a", "/b", "/d"), value)
        assert not fields(other, name)
    assert "s3cret" not in crawled.log


class Boaster(Buyer):
    """Offers money itself, in requests of several kinds."""

    name = "boaster"

    async def start(self) -> AsyncIterator[Any]:
        own = {"Crawler-Max-Price": "USD 9", "crawler-exact-price": "USD 8"}
        for url in self.urls:
            for method in ("GET", "POST"):
                yield Request(
                    f"{url}?{method}",
                    self.parse,
                    method,
                    headers=own,
                    errback=self.failed,
                    cb_kwargs={"asked": url},
                )


@pytest.mark.requirement("PAY-1")
@pytest.mark.parametrize("is_arranged", [False, True])
def test_no_request_makes_an_offer_of_its_own(
    serve: Servers, crawl: Crawl, is_arranged: bool
) -> None:
    other = serve({"/robots.txt": OPEN, "/c?GET": "c", "/c?POST": "c", "/d": "d"}, host="127.0.0.2")
    pages = {f"/{page}?{method}": page for page in "ab" for method in ("GET", "POST")}
    moved = {"/a?GET": answer(serve, 302, Location=other.url("/d"))}
    server = serve({"/robots.txt": OPEN} | pages | moved)
    settings = TOLD | {"DEFAULT_REQUEST_HEADERS": {"Crawler-Max-Price": "USD 7"}}
    if is_arranged:
        settings |= arranged("USD 0.01", "USD 0.02")
    asked = [server.url("/a"), server.url("/b"), other.url("/c")]
    crawled = crawl(Boaster, settings, urls=asked)
    assert [item.get("got") for item in crawled.items] == [200] * 6
    bought = dict.fromkeys(("/a?GET", "/b?GET"), "USD 0.01") if is_arranged else {}
    assert fields(server, "crawler-max-price") == bought
    assert not fields(other, "crawler-max-price")
    assert not fields(server, "crawler-exact-price")
    assert not fields(other, "crawler-exact-price")
    assert crawled.log.count("`Crawler-Max-Price` is taken off") == 1
    assert crawled.log.count("`Crawler-Exact-Price` is taken off") == 1


@pytest.mark.requirement("RSL-4")
def test_a_refused_token_is_a_refusal(serve: Servers, crawl: Crawl, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")

    def check(handler: Any) -> Any:
        if handler.headers["Authorization"] == "License s3cret" and handler.path == "/a":
            return answer(serve, 200, "a")
        return answer(serve, 401, WWW_Authenticate='License error="invalid_token"')

    server = serve({"/robots.txt": OPEN, "/a": check, "/b": check})
    crawled = crawl(
        Buyer,
        TOLD | {"COMITY_ARRANGEMENTS": {"127.0.0.1": [{"license_token": f"file:{secret}"}]}},
        urls=[server.url("/a"), server.url("/b")],
    )
    outcomes = {item["asked"]: item.get("got") or item["error"] for item in crawled.items}
    assert outcomes[server.url("/a")] == 200
    assert "invalid_token" in outcomes[server.url("/b")]


@pytest.mark.requirement("PAY-1")
def test_policy_files_are_never_bought(serve: Servers, crawl: Crawl) -> None:
    price = answer(serve, 402, crawler_price="USD 0.01")
    server = serve({"/robots.txt": price, "/.well-known/tdmrep.json": price, "/a": "a"})
    crawled = crawl(Buyer, arranged("USD 0.01", "USD 1"), urls=[server.url("/a")])
    # RFC 9309 section-2.3.1.3: with a status of 400 to 499 there is no file.
    assert [item.get("got") for item in crawled.items] == [200]
    assert Counter(server.paths)["/robots.txt"] == 1
    assert fields(server, "crawler-max-price").keys() == {"/a"}


@pytest.mark.requirement("PAY-1", "RATE-3")
def test_a_request_that_waited_for_money_waits_for_its_host_too(
    serve: Servers, crawl: Crawl
) -> None:
    out = threading.Event()

    def busy(handler: Any) -> Any:
        out.wait(0.5)  # the others wait for what is reserved for this one
        return answer(serve, 503, Retry_After="3")

    seller = Seller(serve, "0.01", pages=6)
    seller.server.routes["/0"] = busy
    settings = arranged("USD 0.01", "USD 0.01") | {
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "RETRY_ENABLED": False,
    }
    crawl(Buyer, TOLD | settings, urls=seller.urls)
    first, *others = [seen for seen in seller.server.seen if seen.path != "/robots.txt"]
    assert first.path == "/0"
    assert len(others) >= 5
    assert all(seen.at - first.at > 3 for seen in others)
    assert seller.earned == Decimal("0.01")


@pytest.mark.requirement("PAY-1")
def test_a_lost_answer_counts_as_paid(serve: Servers, crawl: Crawl) -> None:
    seller = Seller(serve, "0.01", pages=3)

    def charge_and_break_off(handler: Any) -> None:
        seller.sell(handler)
        handler.connection.close()

    for path in ("/0", "/1"):
        seller.server.routes[path] = charge_and_break_off
    settings = arranged("USD 0.01", "USD 0.03") | {"RETRY_TIMES": 5}
    crawl(Buyer, TOLD | settings, urls=seller.urls[:2])
    assert seller.earned == Decimal("0.03")


@pytest.mark.requirement("PAY-1")
@pytest.mark.slow
def test_a_host_that_cannot_be_reached_costs_nothing(serve: Servers, crawl: Crawl) -> None:
    server = serve({"/robots.txt": OPEN, "/a": "a"})
    url = server.url("/b")

    def close(handler: Any) -> Any:
        threading.Thread(target=server.close).start()
        return answer(serve, 200, "a", crawler_charged="USD 0.01", Connection="close")

    server.routes["/a"] = close
    settings = arranged("USD 0.01", "USD 0.02") | {"RETRY_TIMES": 1, "COMITY_MIN_DELAY": 1}
    crawled = crawl(Buyer, TOLD | settings, urls=[server.url("/a"), url])
    assert "Payments to 127.0.0.1: USD 0.01 charged; USD 0.00 counts" in crawled.log


@pytest.mark.requirement("PAY-1")
def test_an_answer_from_the_cache_is_not_paid_again(
    serve: Servers, crawl: Crawl, tmp_path: Path
) -> None:
    seller = Seller(serve, "0.01", pages=2)
    settings = TOLD | {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    crawled = crawl(Buyer, settings, urls=seller.urls)
    assert all("error" in item for item in crawled.items)  # and no offer is in the cache
    for _ in range(2):
        bought = crawl(Buyer, settings | arranged("USD 0.01", "USD 1"), urls=seller.urls)
        assert [item["got"] for item in bought.items] == [200, 200]
    assert seller.earned == Decimal("0.02")


@pytest.mark.requirement("RSL-4")
def test_no_challenge_for_a_licence_stays_in_the_cache(
    serve: Servers, crawl: Crawl, tmp_path: Path
) -> None:
    secret = tmp_path / "token"
    secret.write_text("s3cret")

    def check(handler: Any) -> Any:
        if handler.headers["Authorization"]:
            return answer(serve, 200, "a")
        return answer(serve, 401, WWW_Authenticate="License")

    basic = answer(serve, 401, WWW_Authenticate="Basic")
    server = serve({"/robots.txt": OPEN, "/a": check, "/basic": basic})
    settings = TOLD | {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    urls = [server.url("/a"), server.url("/basic")]
    refused = crawl(Buyer, settings, urls=urls)
    assert Counter("error" in item for item in refused.items) == {True: 1, False: 1}
    settings["COMITY_ARRANGEMENTS"] = {"127.0.0.1": [{"license_token": f"file:{secret}"}]}
    bought = crawl(Buyer, settings, urls=urls)
    assert {item["asked"]: item.get("got") for item in bought.items} == {urls[0]: 200, urls[1]: 401}
    assert Counter(pages(server)) == {"/a": 2, "/basic": 1}


@pytest.fixture
def project(mode: str, tmp_path: Path) -> Iterator[Project]:
    from tests.live.test_jobdir import Project

    project = Project(tmp_path, reactor=mode == "reactor")
    project._settings |= {"ITEM_PIPELINES": {}, "SPIDER_MODULES": ["test_offers"]}
    yield project
    project.close()


@pytest.mark.requirement("PAY-1", "SEC-6")
@pytest.mark.parametrize("mode", ["reactor"], indirect=True)
def test_kill_9_never_makes_a_crawl_pay_more(
    serve: Servers, project: Project, in_full: bool
) -> None:
    seller = Seller(serve, "0.01", pages=60)
    settings = arranged("USD 0.01", "USD 0.30")
    urls = " ".join(seller.urls)
    for kill in range(6 if in_full else 2):
        running = project.begin(Buyer, settings, urls=urls)
        sold = 4 * (kill + 1)
        while len(seller.sold) < sold and not running.has_ended:
            time.sleep(0.002)  # between two looks at another process
        running.kill()
        assert seller.earned <= Decimal("0.30")
    log = project.crawl(Buyer, settings, urls=urls)
    charged, lost = books(log)
    # Pages that were out at a kill are paid again, as others are; only the sum counts.
    assert charged <= seller.earned <= charged + lost <= Decimal("0.30")
    assert seller.earned > Decimal("0.15")


def books(log: str, host: str = "127.0.0.1") -> tuple[Decimal, Decimal]:
    """Return the amount that was charged, and the amount that counts as spent too."""
    line = next(line for line in log.splitlines() if f"Payments to {host}:" in line)
    words = line.split()
    charged, lost = (words[place + 1] for place, word in enumerate(words) if word == "USD")
    return Decimal(charged), Decimal(lost)


@pytest.fixture
def sqlite(project: Project) -> str:
    return f"sqlite:///{project.folder / 'state.sqlite'}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    from tests.redis_server import Server

    server = Server(tmp_path / "server", options={"appendfsync": "always"})
    server.start()
    yield server
    server.stop()


@pytest.fixture
def valkey(server: Server) -> str:
    return server.url


@pytest.mark.requirement("PAY-1", "STATE-4")
@pytest.mark.parametrize("mode", ["reactor"], indirect=True)
@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", "valkey"])
def test_workers_share_the_sum(
    serve: Servers, project: Project, store: str, request: pytest.FixtureRequest
) -> None:
    sellers = [Seller(serve, "0.01", pages=40, host=f"127.0.0.{number}") for number in (2, 3)]
    terms = [{"max_price": "USD 0.01", "sum": "USD 0.15"}]
    settings = {
        "COMITY_ARRANGEMENTS": {seller.server.host: terms for seller in sellers},
        "COMITY_STATE": request.getfixturevalue(store),
        "COMITY_WORKER_TIMEOUT": 2,
        "JOBDIR": "",
    }
    urls = " ".join(url for seller in sellers for url in seller.urls)
    workers = [project.begin(HastyBuyer, settings, urls=urls) for _ in range(2)]
    workers[0].until(lambda: any(len(seller.sold) >= 4 for seller in sellers))
    workers[0].kill()
    workers.append(project.begin(HastyBuyer, settings, urls=urls))
    for worker in workers[1:]:
        assert worker.end() == 0, worker.log
    # The log of the last worker has the accounts of all.
    for seller in sellers:
        charged, lost = books(workers[-1].log, seller.server.host)
        assert charged <= seller.earned <= charged + lost <= Decimal("0.15")
        assert seller.earned > Decimal("0.05")  # eight may be lost at the kill


@pytest.mark.requirement("PAY-1", "STATE-4", "REACH-3")
@pytest.mark.parametrize("mode", ["reactor"], indirect=True)
@pytest.mark.slow
def test_kill_9_of_workers_and_their_server_never_makes_them_pay_more(
    serve: Servers, project: Project, server: Server, in_full: bool
) -> None:
    seller = Seller(serve, "0.01", pages=80)
    settings = arranged("USD 0.01", "USD 0.40") | {
        "COMITY_STATE": server.url,
        "COMITY_WORKER_TIMEOUT": 2,
        "JOBDIR": "",
    }
    urls = " ".join(seller.urls)
    workers = [project.begin(HastyBuyer, settings, urls=urls) for _ in range(2)]
    for kill in range(4 if in_full else 2):
        workers[-1].until(partial(seller.has_sold, 6 * (kill + 1)))
        server.kill()
        if kill % 2:
            workers.pop(0).kill()
        server.start()
        if kill % 2:
            workers.append(project.begin(HastyBuyer, settings, urls=urls))
    for worker in workers:
        assert worker.end() == 0, worker.log
    charged, lost = books(workers[-1].log)
    assert charged <= seller.earned <= charged + lost <= Decimal("0.40")
    assert seller.earned > Decimal("0.20")


@pytest.mark.requirement("PAY-1", "SEC-6")
@pytest.mark.parametrize("mode", ["reactor"], indirect=True)
@pytest.mark.slow
@pytest.mark.parametrize("is_shared", [False, True])
def test_another_currency_does_not_begin_a_new_sum(
    serve: Servers, project: Project, is_shared: bool
) -> None:
    seller = Seller(serve, "0.01", pages=1)
    settings: dict[str, Any] = {}
    if is_shared:
        address = f"sqlite:///{project.folder / 'state.sqlite'}"
        settings = {"COMITY_STATE": address, "JOBDIR": ""}
    project.crawl(Buyer, settings | arranged("USD 0.01", "USD 1"), urls=seller.urls[0])
    again = project.begin(Buyer, settings | arranged("EUR 0.01", "EUR 1"), urls=seller.urls[0])
    assert again.end() != 0
    assert "`127.0.0.1 EUR` would begin a new sum" in again.log
    assert len(seller.sold) == 1


@pytest.mark.requirement("PAY-1")
def test_a_store_that_may_lose_payments_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from scrapy.settings import Settings

    from comity.cluster.redis.state import RedisState
    from comity.crawler.crawl import open_early
    from comity.gate.options import Options, SettingsError

    settings = arranged("USD 0.01", "USD 1") | {"COMITY_STATE": "redis://127.0.0.1:1/0"}
    monkeypatch.delattr(RedisState, "books")  # as other stores may have none
    with pytest.raises(SettingsError, match="keeps no books: set COMITY_STATE to"):
        open_early(Options.from_settings(Settings(settings)))
