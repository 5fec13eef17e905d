"""CPU per request of httpx and aiohttp, bare and through comity.client, on loopback.

All ask a server in another process for the same page, in turns, AT_ONCE at a time over connections that are kept, and read it. A
robots.txt of 20 rules is read at the start and is not counted. "asked facts": the site has an automation-preferences.txt too, so
that header fields matter; "limited": an own floor of 1 us, so that every request asks the pace file; "with the page": the
permissions of what came back are asked for."""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from typing import NamedTuple

import aiohttp
import httpx
from rounds import Rounds, alone, markdown, progress

from comity.client import Client
from comity.client import aiohttp as through_aiohttp
from comity.client import httpx as through_httpx

AT_ONCE = 8
ROBOTS = b"User-agent: *\n" + b"".join(b"Disallow: /private/%d/\n" % number for number in range(20))
PREFERENCES = b"scope: /\nallowed-methods: GET, HEAD\n"
PAGE = b"<!doctype html><title>A page</title>" + b"<p>Some text of a page.</p>" * 80


def response(status: bytes, media_type: bytes, body: bytes) -> bytes:
    fields = b"Server: bench\r\nContent-Type: %s\r\nContent-Length: %d\r\n" % (
        media_type,
        len(body),
    )
    return b"HTTP/1.1 %s\r\n%s\r\n%s" % (status, fields, body)


class Answers(asyncio.Protocol):
    """A site on its port: one has automation preferences."""

    has_preferences = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        *requests, self._received = (self._received + data).split(b"\r\n\r\n")
        for request in requests:
            if b" /page" in request:
                answer = response(b"200 OK", b"text/html", PAGE)
            elif b" /robots.txt " in request:
                answer = response(b"200 OK", b"text/plain", ROBOTS)
            elif self.has_preferences and b" /automation-preferences.txt " in request:
                answer = response(b"200 OK", b"text/plain", PREFERENCES)
            else:
                answer = response(b"404 Not Found", b"text/plain", b"not found")
            self._transport.write(answer)


class AnswersMore(Answers):
    has_preferences = True


async def serve(ready: Connection) -> None:
    loop = asyncio.get_running_loop()
    servers = [
        await loop.create_server(protocol, "127.0.0.1", 0) for protocol in (Answers, AnswersMore)
    ]
    ready.send([server.sockets[0].getsockname()[1] for server in servers])
    await asyncio.Event().wait()


def run_server(ready: Connection) -> None:
    asyncio.run(serve(ready))


Get = Callable[[str], Awaitable[object]]


class Way(NamedTuple):
    """A way to make requests."""

    name: str
    library: str
    is_through: bool = False
    has_preferences: bool = False
    min_delay: float = 0.0
    asks_page: bool = False

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Get]:
        if not self.is_through:
            async with self._opened(None) as get:
                yield get
            return
        async with (
            Client("benchbot", store=None, min_delay=self.min_delay, per_host=AT_ONCE) as client,
            self._opened(client) as get,
        ):
            yield get

    @asynccontextmanager
    async def _opened(self, client: Client | None) -> AsyncIterator[Get]:
        if self.library == "httpx":
            bare = httpx.AsyncHTTPTransport(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
            async with httpx.AsyncClient(
                transport=through_httpx.Transport(client, bare) if client else bare
            ) as http:

                async def get(url: str) -> None:
                    got = await http.get(url)
                    assert len(got.content) == len(PAGE)
                    if self.asks_page:
                        await through_httpx.page_of(got)

                yield get
            return
        middlewares = (through_aiohttp.middleware(client),) if client else ()
        async with aiohttp.ClientSession(middlewares=middlewares) as session:

            async def get_there(url: str) -> None:
                async with session.get(url) as got:
                    assert len(await got.read()) == len(PAGE)
                    if self.asks_page:
                        await through_aiohttp.page_of(got)

            yield get_there


WAYS = (
    Way("httpx", "httpx"),
    Way("httpx through comity", "httpx", is_through=True),
    Way("httpx through comity, asked facts", "httpx", is_through=True, has_preferences=True),
    Way("httpx through comity, limited", "httpx", is_through=True, min_delay=1e-6),
    Way("httpx through comity, with the page", "httpx", is_through=True, asks_page=True),
    Way("aiohttp", "aiohttp"),
    Way("aiohttp through comity", "aiohttp", is_through=True),
    Way("aiohttp through comity, with the page", "aiohttp", is_through=True, asks_page=True),
)


async def took(way: Way, origin: str, requests: int) -> float:
    """Seconds of CPU for a request."""
    numbers = iter(range(requests))

    async def ask(get: Get) -> None:
        for number in numbers:
            await get(f"{origin}/page?{number}")

    async with way.opened() as get:
        await asyncio.gather(*(get(f"{origin}/page") for _ in range(AT_ONCE)))
        began = time.process_time()
        await asyncio.gather(*(ask(get) for _ in range(AT_ONCE)))
        return (time.process_time() - began) / requests


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="default 7")
    parser.add_argument(
        "--requests", type=int, default=1000, metavar="N", help="of a round; default 1,000"
    )
    options = parser.parse_args()
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=run_server, args=(there,), daemon=True)
    server.start()
    ports: list[int] = here.recv()
    figures: dict[Way, list[float]] = {way: [] for way in WAYS}
    with progress() as bar, alone():
        task = bar.add_task("rounds", total=options.rounds * len(WAYS))
        for _ in range(options.rounds):
            for way in WAYS:
                origin = f"http://127.0.0.1:{ports[way.has_preferences]}"
                figures[way].append(asyncio.run(took(way, origin, options.requests)) * 1e6)
                bar.advance(task)
    server.terminate()
    of_way = {way: Rounds(tuple(times)) for way, times in figures.items()}
    bare = {way.library: of_way[way] for way in WAYS if not way.is_through}
    rows = [
        (
            way.name,
            str(rounds),
            f"{rounds.least / bare[way.library].least:.2f}",
            f"{rounds.least - bare[way.library].least:+.0f}",
        )
        for way, rounds in of_way.items()
    ]
    print(
        markdown(
            ("", "us of CPU a request: least (median)", "ratio of the least", "more, us"), rows
        ),
        end="",
    )


if __name__ == "__main__":
    main()
