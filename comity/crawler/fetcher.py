"""Fetches the policy files of an origin: one fetch in flight per origin (docs/fetching.md)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy.http import Request

from comity.crawler.addresses import Reach
from comity.crawler.engine import closing
from comity.crawler.exchange import PolicyExchange
from comity.crawler.freshness import DAY
from comity.crawler.policy_file import PolicyFile
from comity.crawler.store import Store
from comity.policies import Agent, Site
from comity.policies.availability import Availability, availability
from comity.policies.carriers import max_age
from comity.policies.files import AUTOMATION_PATH, accepted
from comity.policies.site import WELL_KNOWN
from comity.policies.text import printable
from comity.policies.values import Fetched

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)
T = TypeVar("T")

MAX_REFERENCES = 5  # files named by the files of an origin that are fetched; those after them count as not had
CONNECTIONS = 128  # at once, half of them for policy files: slow ones of many hosts hold up no other
MAX_SITES = 10_000  # origins that are kept in memory; the store has them all
MAX_SITE_BYTES = 32 * 1024 * 1024  # octets of their policy files; compiled they take up to three times as much
# Until a file is asked for again without which pages are fetched all the same: as long as it is asked for, the origin waits.
BACK_OFF = 300.0  # seconds
CLOSING_CHECK = (
    0.1  # seconds between two looks whether the crawl is ending: Scrapy says so only after waiting for what is in flight
)


def most_at_once(crawler: Crawler) -> int:
    """Connections that policy files may have, with those of the pages; 0: any number.

    Without a reactor, the download handlers have no more than CONCURRENT_REQUESTS in all."""
    most = crawler.settings.getint("CONCURRENT_REQUESTS")
    return max(most, CONNECTIONS) if most and crawler.settings.getbool("TWISTED_REACTOR_ENABLED", True) else most


class ClosingError(Exception):
    """The crawl is ending: nothing more is fetched, and nothing was learnt about the site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The policies of an origin, and until when they may be used without asking again."""

    site: Site
    fresh_until: float  # seconds since the epoch; where `unreachable`, when it may be asked again
    unreachable: bool  # a file that counts could not be had and no copy stands in: everything is refused
    why: str = ""  # where `unreachable`: what happened
    reach: Reach = Reach.PUBLIC  # of the server that gave robots.txt


class PolicyFetcher:
    """`known` answers from memory; `get` asks the store and then the server."""

    def __init__(
        self,
        crawler: Crawler,
        store: Store,
        agent: Agent,
        *,
        timeout: float,
        clock: Callable[[], float] = time.time,
        paths: Iterable[str] = WELL_KNOWN,
        found: Callable[[Site], None] = lambda site: None,
    ) -> None:
        """`agent`: who asks; some files are named for some agents only. `timeout`: seconds for one policy file over all its hops.
        `clock`: seconds since the epoch. `paths`: of the policy files of an origin, robots.txt among them. `found`: is told of
        the policies whenever they were looked up."""
        self.renew_before = 0.0  # seconds since the epoch: a copy that was confirmed earlier is asked for again, however fresh
        self._found = found
        self._crawler = crawler
        self._store = store
        self._agent = agent
        self._exchange = PolicyExchange(crawler, timeout=timeout, clock=clock)
        self._clock = clock
        self._paths = tuple(paths)
        self._sites = Sites()
        self._flights: dict[tuple[str, Reach | None], asyncio.Task[Policies]] = {}  # by origin and who leads there
        self._saves: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="comity-store")
        self._closed = False
        places = most_at_once(crawler) // 2
        self._places: AbstractAsyncContextManager[Any] = asyncio.Semaphore(max(1, places)) if places > 0 else nullcontext()

    def known(self, origin: str) -> Policies | None:
        """The policies where they are in memory and fresh."""
        policies = self._sites.get(origin)
        return policies if policies and (now := self._clock()) < policies.fresh_until <= now + DAY else None

    async def get(self, origin: str, led_from: Reach | None = None) -> Policies:
        """The policies, fetched where needed. Raises ClosingError when the crawl ends meanwhile, nothing else.

        `led_from`: the reach of the site that leads to the origin, None where the operator asks. What fails on the way from a
        site is not remembered: the operator may get through."""
        policies = self.known(origin)
        if policies is not None:
            return policies
        if self._closed:
            raise ClosingError
        key = (origin, led_from)
        flight = self._flights.get((origin, None)) or self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = asyncio.create_task(self._look_up(origin, led_from))
            flight.add_done_callback(lambda done: self._landed(key, done))
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
        return self._exchange.owns(request)

    def led_from(self, request: Request) -> Reach | None:
        """The reach of the site that leads to the request; None where it is no site but the operator."""
        return self._exchange.led_from(request)

    async def first_taken(self, url: str, uses: Iterable[str], at: datetime) -> dict[str, datetime]:
        """When an item of the URL was first taken for each of these uses: at this time, where it never was before, and long
        ago, where nobody knows."""
        uses = tuple(uses)
        long_ago = dict.fromkeys(uses, datetime.min.replace(tzinfo=UTC))
        consequence = f"permissions for some days from the first use of {url} count as over"
        return await self._ask_store(long_ago, consequence, self._store.first_taken, url, uses, at)

    async def requests_action(self, url: str, action: str, sha256: str, at: datetime) -> bool:
        """Records that a site asks for the action on the URL. `sha256`: of the file that asks. False where the same file has
        asked for it before."""
        consequence = f"nobody will know that {action} of {url} was asked for"
        return await self._ask_store(True, consequence, self._store.requests_action, url, action, sha256, at)

    async def close(self) -> None:
        self._closed = True
        for flight in self._flights.values():
            flight.cancel()
        await asyncio.gather(*self._flights.values(), return_exceptions=True)
        await asyncio.gather(*self._saves)
        await asyncio.get_running_loop().run_in_executor(self._thread, self._store.close)
        self._thread.shutdown(wait=False)

    async def _watch_closing(self) -> None:
        while self._flights:
            if closing(self._crawler):
                for flight in self._flights.values():
                    flight.cancel()
            await asyncio.sleep(CLOSING_CHECK)

    def _landed(self, key: tuple[str, Reach | None], flight: asyncio.Task[Policies]) -> None:
        del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # it counts as seen, though nobody may be waiting any more

    async def _look_up(self, origin: str, led_from: Reach | None) -> Policies:
        """What fails here by a mistake of ours refuses the origin, and says so."""
        try:
            return await self._looked_up(origin, led_from)
        except Exception as error:
            logger.exception("The policies of %(origin)s cannot be read: nothing of it is fetched", {"origin": origin})
            robots = {"/robots.txt": PolicyFile(due=self._clock() + BACK_OFF, copy=Fetched(status=0, error=repr(error)))}
            return policies_of(origin, robots, self._clock())

    async def _looked_up(self, origin: str, led_from: Reach | None) -> Policies:
        nothing: dict[str, PolicyFile] = {}
        stored = await self._ask_store(nothing, f"{origin} is asked instead", self._store.load, origin)
        stored = {path: file.due_if_before(self.renew_before) for path, file in stored.items()}
        files = await self._current(origin, self._paths, stored, led_from)
        policies = policies_of(origin, files, self._clock())
        named, licenses = policies.site.references(self._agent), policies.site.licenses(self._agent)
        if len(named) > MAX_REFERENCES:
            logger.warning(
                "%(origin)s refers to %(number)d policy files, of which only %(most)d are read: everything is refused",
                {"origin": origin, "number": len(named), "most": MAX_REFERENCES},
            )
            named = named[:MAX_REFERENCES]
        if named or licenses:
            paths = tuple(dict.fromkeys((*named, *licenses)))
            files |= await self._current(origin, paths, stored, led_from, files["/robots.txt"].reach, vital=named)
            policies = policies_of(origin, files, self._clock(), named)
        if all(file is stored.get(path) for path, file in files.items()):
            self._count("from_store")
        if led_from is None or not policies.unreachable:
            self._sites.put(origin, policies)
        self._found(policies.site)
        return policies

    async def _current(
        self,
        origin: str,
        paths: Sequence[str],
        stored: Mapping[str, PolicyFile],
        led_from: Reach | None,
        reach: Reach = Reach.PUBLIC,
        *,
        vital: Collection[str] = ("/robots.txt",),
    ) -> dict[str, PolicyFile]:
        """These files, asked for where they are due. `led_from`: the reach of who leads to the origin. `reach`: of the origin,
        which leads to those of other ones. `vital`: those without which no page is fetched."""
        now = self._clock()
        files = {path: stored[path] for path in paths if path in stored and not stored[path].is_due(now)}
        due = [path for path in paths if path not in files]
        if due:
            leading = {path: led_from if _url(origin, path).startswith(f"{origin}/") else reach for path in due}
            renewals = [
                asyncio.create_task(self._renew(origin, path, stored.get(path), leading[path], is_vital=path in vital))
                for path in due
            ]
            try:
                renewed = dict(zip(due, await asyncio.gather(*renewals), strict=True))
            finally:
                for renewal in renewals:
                    renewal.cancel()
            kept = {path: file for path, file in renewed.items() if led_from is None or file.failure is None}
            self._save(origin, kept)
            files |= renewed
        return files

    def _save(self, origin: str, files: Mapping[str, PolicyFile]) -> None:
        """Nobody waits for it."""
        consequence = f"the policies of {origin} are kept in memory only"
        save = asyncio.create_task(self._ask_store(None, consequence, self._store.save, origin, files))
        self._saves.add(save)
        save.add_done_callback(self._saves.discard)

    async def _ask_store(self, otherwise: T, consequence: str, call: Callable[..., T], *arguments: object) -> T:
        """`otherwise`, with a warning that says what follows, where the store fails."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)
        except OSError as error:
            self._count("store_error")
            logger.warning("%(error)s; %(consequence)s", {"error": error, "consequence": consequence})
            return otherwise

    async def _renew(
        self, origin: str, path: str, file: PolicyFile | None, led_from: Reach | None, *, is_vital: bool
    ) -> PolicyFile:
        """What is known of the file after it was asked for. CancelledError, with nothing learnt, when the crawl ends."""
        url = _url(origin, path)
        copy = file.copy if file else None
        async with self._places:
            fetched, seconds, reach = await self._exchange.ask(url, copy, led_from)
        if closing(self._crawler):
            raise asyncio.CancelledError
        now = self._clock()
        fetched = accepted(url, fetched)
        if availability(fetched) is Availability.UNREACHABLE:
            failed = (file or PolicyFile(due=0)).failed(fetched, now, 0.0 if is_vital else BACK_OFF)
            self._count("unreachable")
            self._log(url, failed, now, is_vital=is_vital)
            return failed
        if fetched.status == 304:
            assert file
            self._count("not_modified")
            assert file.copy
            return file.confirmed(fetched.headers, min(seconds, max_age(url, file.copy)), now)
        self._count("fetched")
        seconds = min(seconds, max_age(url, fetched))
        return PolicyFile(due=now + seconds, copy=fetched, reach=reach)

    def _count(self, what: str) -> None:
        if self._crawler.stats:
            self._crawler.stats.inc_value(f"comity/policies/{what}")

    def _log(self, url: str, file: PolicyFile, now: float, *, is_vital: bool) -> None:
        meanwhile = "its last good copy is obeyed"
        if availability(file.current(now)) is Availability.UNREACHABLE:
            nothing = "no requests but plain ones for pages are made" if url.endswith(AUTOMATION_PATH) else "it states nothing"
            meanwhile = "nothing of the site is fetched" if is_vital else nothing
        assert file.failure
        logger.info(
            "Cannot have %(url)s: %(why)s; asked again at %(due)s, until then %(meanwhile)s",
            {
                "url": printable(url.encode(errors="replace")),
                "why": _why(file.failure),
                "due": _utc(file.due).isoformat(timespec="seconds"),
                "meanwhile": meanwhile,
            },
        )


class Sites:
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


def policies_of(origin: str, files: Mapping[str, PolicyFile], now: float, named: Iterable[str] = ()) -> Policies:
    current = {_url(origin, path): file.current(now) for path, file in files.items()}
    needed = (current[url] for url in (f"{origin}/robots.txt", *named))
    missing = next((file for file in needed if availability(file) is Availability.UNREACHABLE), None)
    return Policies(
        site=Site(origin, current),
        fresh_until=min(file.counts_until(now) for file in files.values()),
        unreachable=missing is not None,
        why=_why(missing) if missing else "",
        reach=files["/robots.txt"].reach,
    )


def _url(origin: str, path: str) -> str:
    """`path`: or the absolute URL of a file that others name."""
    return origin + path if path.startswith("/") else path


def _why(fetched: Fetched) -> str:
    return printable(fetched.error.encode()) or f"HTTP status {fetched.status}"


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
