"""Asks servers for one file: redirects are followed, and one deadline holds over all hops (docs/fetching.md)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from scrapy.http import Request

from comity.crawler.addresses import Reach
from comity.crawler.engine import closing, engine_of
from comity.crawler.freshness import DAY, lifetime
from comity.crawler.transfer import Hop, PolicyTransfer, TransferError
from comity.policies.text import printable
from comity.policies.urls import origin_of, resolved
from comity.policies.values import Fetched

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

MAX_HOPS = 5  # redirects that are followed; RFC 9309 section-2.3.1.2
REDIRECTS = (301, 302, 303, 307, 308)

# What is kept of an answer's headers: what freshness, conditional requests and the reading of the file need.
KEPT_HEADERS = frozenset(
    (b"age", b"cache-control", b"content-type", b"date", b"etag", b"expires", b"last-modified", b"retry-after")
)
MAX_HEADER = 4096  # octets of the value of one that is kept


class Answer(NamedTuple):
    """What came back after all redirects. Status 304: the copy is still good."""

    fetched: Fetched
    seconds: float = 0.0  # for which it counts; of a 304: at most, its headers may say less
    reach: Reach = Reach.PUBLIC  # of the server that gave it


class PolicyExchange:
    def __init__(self, crawler: Crawler, *, timeout: float, clock: Callable[[], float], patience: float | None = None) -> None:
        """`timeout`: seconds for one file over all its hops. `clock`: seconds since the epoch. `patience`: what is asked for is
        no policy file, so that each hop is judged by the policies of its own site and waits so many seconds more for its turn."""
        self._judged = patience is not None
        self._crawler = crawler
        self._timeout = timeout
        self._deadline = timeout + (patience or 0.0)
        self._clock = clock

    @cached_property
    def _transfer(self) -> PolicyTransfer:
        return PolicyTransfer.of(self._crawler)  # there only when the engine is

    def owns(self, request: Request) -> bool:
        """Whether the request is one of ours for a policy file (by identity: no meta key can claim it)."""
        return self._transfer.owns(request) if "_transfer" in self.__dict__ else False

    def made(self, request: Request) -> bool:
        """Whether the request is for a policy file, or for what one asks for."""
        return self._transfer.made(request) if "_transfer" in self.__dict__ else False

    def led_from(self, request: Request) -> Reach | None:
        """The reach of the site that leads to the request; None where it is no site but the operator."""
        return self._transfer.led_from(request) if engine_of(self._crawler) is not None else None

    async def ask(self, url: str, copy: Fetched | None, led_from: Reach | None = None) -> Answer:
        """`copy`: what is to be confirmed. `led_from`: the reach of the site that names the URL, where it is of another origin.
        CancelledError when the crawl ends."""
        try:
            async with asyncio.timeout(self._deadline):
                return await self._follow(url, copy, led_from)
        except TimeoutError:
            return Answer(Fetched(status=0, error=f"no answer within {self._deadline:g} seconds"))

    async def _follow(self, asked: str, copy: Fetched | None, reach: Reach | None) -> Answer:
        url = asked
        deadline = time.monotonic() + self._deadline
        seconds = DAY
        for _ in range(MAX_HOPS + 1):
            conditions = _conditions(copy) if copy and (copy.url or asked) == url else {}
            if closing(self._crawler):
                raise asyncio.CancelledError
            try:
                remaining = min(max(deadline - time.monotonic(), 0.01), self._timeout)
                hop = await self._transfer.hop(url, headers=conditions, seconds=remaining, led_from=reach, judged=self._judged)
            except TransferError as error:
                return Answer(Fetched(status=0, url=url, error=str(error)))
            now = self._clock()
            fetched = _fetched(hop, url, now)
            if hop.status == 304:
                if not conditions:
                    return Answer(_unusable(fetched, "a 304 to an unconditional request"))
                return Answer(fetched, seconds, hop.reach)
            seconds = min(seconds, lifetime(hop.headers, now))
            if hop.status // 100 != 3:
                return Answer(fetched, seconds, hop.reach)
            if hop.status not in REDIRECTS:
                return Answer(_unusable(fetched, f"HTTP status {hop.status}, which names no place to go on"))
            try:
                target = _target(url, hop)
            except ValueError as error:
                return Answer(_unusable(fetched, str(error)))
            if reach is not None or origin_of(target) != origin_of(asked):
                reach = hop.reach
            url = target
        return Answer(fetched, seconds, hop.reach)  # a redirect status: more than five, so unavailable


def _fetched(hop: Hop, url: str, now: float) -> Fetched:
    present = hop.status // 100 == 2
    headers = tuple((name, value) for name, value in hop.headers if name.lower() in KEPT_HEADERS and len(value) <= MAX_HEADER)
    return Fetched(
        status=hop.status,
        headers=headers,
        body=hop.body if present else b"",
        url=url,
        fetched_at=datetime.fromtimestamp(now, UTC),
        oversized=present and hop.oversized,
    )


def _unusable(fetched: Fetched, error: str) -> Fetched:
    return Fetched(status=fetched.status, headers=fetched.headers, url=fetched.url, fetched_at=fetched.fetched_at, error=error)


def _conditions(copy: Fetched) -> dict[str, str]:
    """RFC 9110 section-13.1: what makes the request conditional on the copy."""
    if copy.status // 100 != 2:
        return {}
    validators = {"If-None-Match": copy.header(b"ETag"), "If-Modified-Since": copy.header(b"Last-Modified")}
    return {name: value.decode("latin-1") for name, value in validators.items() if value}


def _target(url: str, hop: Hop) -> str:
    """Where a redirect leads. ValueError where there is none, or none that may be followed."""
    location = next((value for name, value in hop.headers if name.lower() == b"location"), b"").strip()
    if not location:
        raise ValueError(f"HTTP status {hop.status} without a Location")
    try:
        return resolved(url, location)
    except ValueError:
        raise ValueError(f"led to {printable(location)}, which is no http or https URL") from None
