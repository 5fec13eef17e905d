"""Fetches the policy files of an origin: one fetch in flight per origin, one deadline over all hops (docs/fetching.md)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from scrapy.http import Request
from w3lib.url import safe_url_string

from comity.crawler.addresses import Reach
from comity.crawler.engine import closing
from comity.crawler.freshness import DAY, lifetime
from comity.crawler.policy_file import PolicyFile
from comity.crawler.store import Store
from comity.crawler.transfer import Hop, PolicyTransfer, TransferError
from comity.policies import Site
from comity.policies.availability import Availability, availability
from comity.policies.site import WELL_KNOWN
from comity.policies.text import printable
from comity.policies.urls import origin_of, target_of
from comity.policies.values import Fetched

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

MAX_HOPS = 5  # redirects that are followed; RFC 9309 section-2.3.1.2
REDIRECTS = (301, 302, 303, 307, 308)
MAX_SITES = 10_000  # origins that are kept in memory; the store has them all
MAX_SITE_BYTES = 32 * 1024 * 1024  # octets of their policy files; compiled they take up to three times as much
CLOSING_CHECK = (
    0.1  # seconds between two looks whether the crawl is ending: Scrapy says so only after waiting for what is in flight
)

# What is kept of an answer's headers: what freshness, conditional requests and the reading of the file need.
KEPT_HEADERS = frozenset(
    (b"age", b"cache-control", b"content-type", b"date", b"etag", b"expires", b"last-modified", b"retry-after")
)
MAX_HEADER = 4096  # octets of the value of one that is kept


class ClosingError(Exception):
    """The crawl is ending: nothing more is fetched, and nothing was learnt about the site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The policies of an origin, and until when they may be used without asking again."""

    site: Site
    fresh_until: float  # seconds since the epoch; where `unreachable`, when it may be asked again
    unreachable: bool  # robots.txt could not be had and no copy stands in: everything is refused
    why: str = ""  # where `unreachable`: what happened


class PolicyFetcher:
    """`known` answers from memory; `get` asks the store and then the server."""

    def __init__(
        self,
        crawler: Crawler,
        store: Store,
        *,
        timeout: float,
        clock: Callable[[], float] = time.time,
        paths: Iterable[str] = WELL_KNOWN,
    ) -> None:
        """`timeout`: seconds for one policy file over all its hops. `clock`: seconds since the epoch. `paths`: of the policy
        files of an origin, robots.txt among them."""
        self._crawler = crawler
        self._store = store
        self._timeout = timeout
        self._clock = clock
        self._paths = tuple(paths)
        self._sites = _Sites()
        self._flights: dict[str, asyncio.Task[Policies]] = {}
        self._watch: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="comity-store")
        self._closed = False
        places = crawler.settings.getint("CONCURRENT_REQUESTS")
        self._places: AbstractAsyncContextManager[Any] = asyncio.Semaphore(max(1, places // 2)) if places > 0 else nullcontext()

    def known(self, origin: str) -> Policies | None:
        """The policies where they are in memory and fresh."""
        policies = self._sites.get(origin)
        return policies if policies and (now := self._clock()) < policies.fresh_until <= now + DAY else None

    async def get(self, origin: str) -> Policies:
        """The policies, fetched where needed. Raises ClosingError when the crawl ends meanwhile, nothing else."""
        policies = self.known(origin)
        if policies is not None:
            return policies
        if self._closed:
            raise ClosingError
        flight = self._flights.get(origin)
        if flight is None:
            flight = self._flights[origin] = asyncio.create_task(self._look_up(origin))
            flight.add_done_callback(lambda done: self._landed(origin, done))
            if self._watch is None or self._watch.done():
                self._watch = asyncio.create_task(self._watch_closing())
        try:
            return await asyncio.shield(flight)  # who waits no more takes nothing from the others
        except asyncio.CancelledError:
            if flight.cancelled():
                raise ClosingError from None  # nothing else cancels it
            raise

    def owns(self, request: Request) -> bool:
        """Whether the request is one of ours for a policy file (by identity: no meta key can claim it)."""
        return self._transfer.owns(request) if "_transfer" in self.__dict__ else False

    async def close(self) -> None:
        self._closed = True
        for flight in self._flights.values():
            flight.cancel()
        await asyncio.gather(*self._flights.values(), return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(self._thread, self._store.close)
        self._thread.shutdown(wait=False)

    @cached_property
    def _transfer(self) -> PolicyTransfer:
        return PolicyTransfer.of(self._crawler)  # there only when the engine is

    async def _watch_closing(self) -> None:
        while self._flights:
            if closing(self._crawler):
                for flight in self._flights.values():
                    flight.cancel()
            await asyncio.sleep(CLOSING_CHECK)

    def _landed(self, origin: str, flight: asyncio.Task[Policies]) -> None:
        del self._flights[origin]
        if not flight.cancelled():
            flight.exception()  # it counts as seen, though nobody may be waiting any more

    async def _look_up(self, origin: str) -> Policies:
        files = await self._load(origin)
        now = self._clock()
        due = [path for path in self._paths if path not in files or files[path].is_due(now)]
        if due:
            renewals = [asyncio.create_task(self._renew(origin + path, files.get(path))) for path in due]
            try:
                files |= dict(zip(due, await asyncio.gather(*renewals), strict=True))
            finally:
                for renewal in renewals:
                    renewal.cancel()
            await self._save(origin, files)
        else:
            self._count("from_store")
        policies = _policies(origin, files, self._clock())
        self._sites.put(origin, policies)
        return policies

    async def _load(self, origin: str) -> dict[str, PolicyFile]:
        try:
            files = await asyncio.get_running_loop().run_in_executor(self._thread, self._store.load, origin)
        except OSError as error:
            self._count("store_error")
            logger.warning("%(error)s; %(origin)s is asked instead", {"error": error, "origin": origin})
            return {}
        return {path: file for path, file in files.items() if path in self._paths}

    async def _save(self, origin: str, files: Mapping[str, PolicyFile]) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._store.save, origin, files)
        except OSError as error:
            self._count("store_error")
            logger.warning("%(error)s; the policies of %(origin)s are kept in memory only", {"error": error, "origin": origin})

    async def _renew(self, url: str, file: PolicyFile | None) -> PolicyFile:
        """What is known of the file after it was asked for. CancelledError, with nothing learnt, when the crawl ends."""
        async with self._places:
            try:
                async with asyncio.timeout(self._timeout):
                    fetched, seconds = await self._follow(url, file.copy if file else None)
            except TimeoutError:
                fetched, seconds = Fetched(status=0, error=f"no answer within {self._timeout:g} seconds"), 0.0
        if closing(self._crawler):
            raise asyncio.CancelledError
        now = self._clock()
        if availability(fetched) is Availability.UNREACHABLE:
            failed = (file or PolicyFile(due=0)).failed(fetched, now)
            self._count("unreachable")
            self._log(url, failed, now)
            return failed
        if fetched.status == 304:
            assert file
            self._count("not_modified")
            return file.confirmed(fetched.headers, seconds, now)
        self._count("fetched")
        return PolicyFile(due=now + seconds, copy=fetched)

    async def _follow(self, url: str, copy: Fetched | None) -> tuple[Fetched, float]:
        """What came back after all redirects, and for how many seconds it counts. Status 304: the copy is
        still good, for as long as it says and at most these seconds."""
        asked = url
        reach: Reach | None = None
        deadline = time.monotonic() + self._timeout
        seconds = DAY
        for _ in range(MAX_HOPS + 1):
            conditions = _conditions(copy) if copy and (copy.url or asked) == url else {}
            if closing(self._crawler):
                raise asyncio.CancelledError
            try:
                remaining = max(deadline - time.monotonic(), 0.01)
                hop = await self._transfer.hop(url, headers=conditions, seconds=remaining, redirected_from=reach)
            except TransferError as error:
                return Fetched(status=0, url=url, error=str(error)), 0.0
            now = self._clock()
            fetched = _fetched(hop, url, now)
            if hop.status == 304:
                return (fetched, seconds) if conditions else (_unusable(fetched, "a 304 to an unconditional request"), 0.0)
            seconds = min(seconds, lifetime(hop.headers, now))
            if hop.status // 100 != 3:
                return fetched, seconds
            if hop.status not in REDIRECTS:
                return _unusable(fetched, f"HTTP status {hop.status}, which names no place to go on"), 0.0
            try:
                target = _target(url, hop)
            except ValueError as error:
                return _unusable(fetched, str(error)), 0.0
            if reach is not None or origin_of(target) != origin_of(asked):
                reach = hop.reach
            url = target
        return fetched, seconds  # a redirect status: more than five, so unavailable

    def _count(self, what: str) -> None:
        if self._crawler.stats:
            self._crawler.stats.inc_value(f"comity/policies/{what}")

    def _log(self, url: str, file: PolicyFile, now: float) -> None:
        current = file.current(now)
        meanwhile = (
            "nothing of the site is fetched"
            if availability(current) is Availability.UNREACHABLE
            else "its last good copy is obeyed"
        )
        assert file.failure
        logger.info(
            "Cannot have %(url)s: %(why)s; asked again at %(due)s, until then %(meanwhile)s",
            {"url": url, "why": _why(file.failure), "due": _utc(file.due).isoformat(timespec="seconds"), "meanwhile": meanwhile},
        )


class _Sites:
    """The origins that were asked for last, within MAX_SITES and MAX_SITE_BYTES."""

    def __init__(self) -> None:
        self._sites: OrderedDict[str, Policies] = OrderedDict()
        self._bytes = 0

    def get(self, origin: str) -> Policies | None:
        policies = self._sites.get(origin)
        if policies is not None:
            self._sites.move_to_end(origin)
        return policies

    def put(self, origin: str, policies: Policies) -> None:
        if origin in self._sites:
            self._bytes -= _size(self._sites.pop(origin))
        self._sites[origin] = policies
        self._bytes += _size(policies)
        while len(self._sites) > 1 and (len(self._sites) > MAX_SITES or self._bytes > MAX_SITE_BYTES):
            self._bytes -= _size(self._sites.popitem(last=False)[1])


def _size(policies: Policies) -> int:
    return sum(len(file.body) for file in policies.site.files.values())


def _policies(origin: str, files: Mapping[str, PolicyFile], now: float) -> Policies:
    current = {origin + path: file.current(now) for path, file in files.items()}
    robots = current[f"{origin}/robots.txt"]
    unreachable = availability(robots) is Availability.UNREACHABLE
    return Policies(
        site=Site(origin, current),
        fresh_until=min(file.counts_until(now) for file in files.values()),
        unreachable=unreachable,
        why=_why(robots) if unreachable else "",
    )


def _why(fetched: Fetched) -> str:
    return printable(fetched.error.encode()) or f"HTTP status {fetched.status}"


def _fetched(hop: Hop, url: str, now: float) -> Fetched:
    present = hop.status // 100 == 2
    headers = tuple((name, value) for name, value in hop.headers if name.lower() in KEPT_HEADERS and len(value) <= MAX_HEADER)
    return Fetched(
        status=hop.status,
        headers=headers,
        body=hop.body if present else b"",
        url=url,
        fetched_at=_utc(now),
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
    """Where a redirect leads: an http or https URL without credentials and fragment. ValueError where there is none."""
    location = next((value for name, value in hop.headers if name.lower() == b"location"), b"").strip()
    if not location:
        raise ValueError(f"HTTP status {hop.status} without a Location")
    try:
        reference = urlsplit(safe_url_string(location))
        if reference.scheme and not reference.netloc:
            raise ValueError
        target = urljoin(url, reference.geturl())
        return origin_of(target) + target_of(target)
    except ValueError:
        raise ValueError(f"a redirect to {printable(location)}, which is no http or https URL") from None


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
