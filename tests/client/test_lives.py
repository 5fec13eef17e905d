"""Random lives of clients that share a store, with both libraries.

Requests succeed, fail, are cancelled, or are left half read. In all cases no refused request goes
out, the servers see the pace, and nothing is left behind."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
import httpx
import pytest

from comity.client import Client, ClosedError, RefusedError
from tests.client.conftest import over_aiohttp, over_httpx
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Loopback, Serve

TOLERANCE = 0.01  # seconds
PATIENCE = 120.0  # seconds after which a run counts as hanging
DELAYS = (0.05, 0.05, 0.0)  # seconds between requests, as the sites ask for
CLIENTS, LIVES, WORKERS, REQUESTS = 3, 2, 4, 8
PAGE = b"x" * 20_000

FAILURES = (
    *(RefusedError, ClosedError, TimeoutError, asyncio.CancelledError, OSError),
    *(httpx.HTTPError, aiohttp.ClientError),
)

Ask = Callable[..., Any]


class Site(NamedTuple):
    server: Loopback
    delay: float

    @property
    def requests(self) -> Iterator[tuple[float, str, str]]:
        """Time, path and request number of each request for a page."""
        for seen in self.server.seen:
            if not seen.path.endswith(".txt"):
                path, _, query = seen.path.partition("?")
                yield seen.at, path, query.rpartition("-")[2]


def page_routes(serve: Serve, chance: random.Random) -> dict[str, Any]:
    def slow(handler: BaseHTTPRequestHandler) -> bytes:
        time.sleep(chance.random() * 0.2)  # it takes its time
        return PAGE

    def silent(handler: BaseHTTPRequestHandler) -> None:
        """End the connection without an answer."""

    def half(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 20000\r\n\r\n"
            + PAGE[:5000]
        )

    def drips(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 20000\r\n\r\n"
        )
        for start in range(0, len(PAGE), 2000):
            handler.wfile.write(PAGE[start : start + 2000])
            time.sleep(chance.random() * 0.02)  # it takes its time

    def garbage(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"\x00 garbage\r\n\r\n")

    def redirect(handler: BaseHTTPRequestHandler) -> Any:
        return serve.Answer(
            "",
            status=302,
            headers={"Location": handler.path.partition("?")[2].replace("@", "://", 1)},
        )

    return {
        "/page": PAGE,
        "/no": PAGE,
        "/slow": slow,
        "/silent": silent,
        "/half": half,
        "/drips": drips,
        "/garbage": garbage,
        "/to": redirect,
        "/last": serve.Answer(PAGE, headers={"Connection": "close"}),
        "/busy": serve.Answer("", status=429, headers={"Retry-After": "1"}),
    }


KINDS = (
    "page",
    "page",
    "page",
    "slow",
    "silent",
    "half",
    "drips",
    "garbage",
    "last",
    "no",
    "no",
    "to",
    "to",
)


class Driver:
    """Make requests, and remember those with a complete answer."""

    def __init__(self, seed: int, sites: list[Site], store: Path) -> None:
        self._chance = random.Random(seed)
        self._sites = sites
        self._store = store
        self._numbers = count()
        self.whole: set[str] = set()  # numbers of requests with a complete answer
        self.outcomes: Counter[str] = Counter()

    def _target(self, number: int, hops: int = 0) -> str:
        chance = self._chance
        kind = "busy" if chance.random() < 0.01 else chance.choice(KINDS)
        if kind != "to" or hops == 3:
            return f"/{'page' if kind == 'to' else kind}?{number}"
        target = self._target(number, hops + 1)
        if chance.random() < 0.5:
            target = chance.choice(self._sites).server.origin.replace("://", "@", 1) + target
        return f"/to?{target.replace('?', '?-') if '?-' not in target else target}"

    async def _request(self, ask: Ask) -> None:
        chance, number = self._chance, next(self._numbers)
        url = chance.choice(self._sites).server.origin + self._target(number)
        task = asyncio.create_task(
            ask(
                chance.choice(("GET", "GET", "GET", "HEAD", "POST")),
                url,
                follows=chance.random() < 0.9,
            )
        )
        how = chance.random()
        try:
            if how < 0.2:
                await asyncio.wait_for(task, chance.random() * 0.2)
            elif how < 0.4:
                await asyncio.sleep(chance.random() * 0.1)  # the request is cancelled at any moment
                task.cancel()
                await task
            else:
                await asyncio.wait_for(asyncio.shield(task), PATIENCE)
        except FAILURES as error:
            self.outcomes[type(error).__name__] += 1
        else:
            self.outcomes["whole"] += 1
            self.whole.add(str(number))
        assert task.done(), f"{url} hangs"

    async def _work(self, asks: list[Ask]) -> None:
        for _ in range(REQUESTS):
            await self._request(self._chance.choice(asks))

    async def _live(self) -> None:
        chance = self._chance
        async with Client(
            "testbot",
            store=self._store,
            min_delay=0,
            max_delay=3,
            per_host=chance.choice((1, 2, 8)),
        ) as client:
            async with over_httpx(client) as first, over_aiohttp(client) as second:
                workers = [asyncio.create_task(self._work([first, second])) for _ in range(WORKERS)]
                if chance.random() < 0.3:
                    await asyncio.sleep(chance.random())  # the client is closed at any moment
                    await client.aclose()
                await asyncio.wait_for(asyncio.gather(*workers), PATIENCE * REQUESTS)
            assert client._parts
            pace = client._parts.pace
            assert not pace._flights
            assert not [
                limiter.name
                for limiter in pace._limiters.values()
                if limiter.in_flight or limiter.awaited
            ]

    async def run(self) -> None:
        async def lives() -> None:
            for _ in range(LIVES):
                await self._live()

        await asyncio.gather(*(lives() for _ in range(CLIENTS)))
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            _, left = await asyncio.wait(others, timeout=PATIENCE)
            assert not left


@pytest.mark.slow
@pytest.mark.requirement("WEB-3", "MEET-1", "RATE-2")
@pytest.mark.parametrize("seed", one_in(6, range(12)))
def test_however_clients_live_nothing_refused_goes_out_and_the_pace_is_kept(
    serve: Serve, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    sites = []
    for number, delay in enumerate(DELAYS, 1):
        robots = f"User-agent: *\nDisallow: /no\nCrawl-delay: {delay}\n"
        sites.append(
            Site(
                serve({"/robots.txt": robots, **page_routes(serve, chance)}, f"127.0.5.{number}"),
                delay,
            )
        )
    driver = Driver(seed, sites, tmp_path / "store.sqlite")
    asyncio.run(driver.run())
    assert driver.outcomes["whole"] > 10
    assert driver.outcomes["RefusedError"] > 10
    for site in sites:
        assert "/no" not in [path for _, path, _ in site.requests]
        # A request without a complete answer may reach the server after the client gave it up.
        times = [at for at, _, number in sorted(site.requests) if number in driver.whole]
        assert all(after - before > site.delay - TOLERANCE for before, after in pairwise(times))
