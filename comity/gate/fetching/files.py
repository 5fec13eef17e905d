"""The policy files of origins, shared by the crawls of a process.

Fresh files come from the store, others from the server. A look-up of an origin reads the store,
asks the server and writes the store. Any crawl that needs the same files meanwhile waits for this
look-up, so no file is fetched twice. A look-up does not belong to the crawl that began it: it goes
on while any crawl waits for it, even if that crawl has ended.

Sites that are learnt within SAVE_AFTER seconds are written together, because writing many sites
costs as much as writing one. A killed process loses these sites, and they are fetched again.

    PolicyFiles.joined(...)    the files shared by all crawls of this thread with the same store,
                               client options and timeout
    files.get(...)             the files of an origin
    files.leave()              a crawl ends; the last one closes the store"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

from comity.gate.fetching.causes import cause_of
from comity.gate.fetching.client import OriginRequests, PolicyClient
from comity.gate.fetching.freshness import DAY
from comity.gate.fetching.network import BarredError
from comity.gate.fetching.options import ClientOptions
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.reach import Reach
from comity.gate.fetching.redirects import FinalAnswer, Redirects, conditions
from comity.gate.fetching.store import PolicyStore, Store
from comity.policies.answers.fetched import Availability, Fetched, availability
from comity.policies.formats import FILES, accepted, lifetime
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_of

logger = logging.getLogger(__name__)
T = TypeVar("T")

ROBOTS = "/robots.txt"
ORIGINS_AT_ONCE = 256  # origins whose servers are asked at the same time
# The minimum seconds from a failure to the next attempt, for a file that is not needed for fetching
# pages. Requests to the origin wait during each attempt, so attempts are rare.
BACK_OFF = 300.0
# The maximum seconds from a failure to the next attempt, if the cause is local: the operator can
# remove it, for example a wrong proxy. The wait is short so that the next crawl works again.
LOCAL_BACK_OFF = 60.0

# Seconds after which a claim on an origin expires. A process prolongs its claim while it asks the
# origin. If the process dies, another one takes over when the claim has expired.
CLAIM = 5.0
CLAIM_AGAIN = 0.1  # seconds between two attempts to claim an origin that is claimed already
SAVE_AFTER = 0.5  # the maximum seconds that a file waits for others before it is saved


class Asker(Protocol):
    """The crawl for which files are looked up."""

    def count(self, name: str, number: int = 1, place: str = "") -> None:
        """Add to a statistic. `place`: the origin of requests, or the URL of a file."""


class PolicyQuery(NamedTuple):
    """A look-up. Two crawls with equal queries at the same time share one look-up.

    Attributes:
        origin: The origin.
        paths: The paths of the files, or the absolute URLs of files that other files refer to.
        referrer_reach: The reach of the site that leads to the origin. None means that the operator
            asks for the origin.
        reach: The reach of the origin's own server. It is the referrer's reach for files at other
            origins.
        vital: The paths without which no page is fetched.
        renew_before: Seconds since the epoch. Copies that were confirmed earlier are fetched again,
            even if they are fresh.
    """

    origin: str
    paths: tuple[str, ...]
    referrer_reach: Reach | None
    reach: Reach = Reach.PUBLIC
    vital: tuple[str, ...] = (ROBOTS,)
    renew_before: float = 0.0


class Obtained(NamedTuple):
    """The outcome of a look-up.

    Attributes:
        files: The files by path.
        renewed: The paths of the files that were fetched now, and not taken from the store.
    """

    files: dict[str, PolicyFile]
    renewed: frozenset[str]


@dataclass(slots=True, eq=False)
class _Batch:
    """Files that will be saved together."""

    # origin -> path -> file
    sites: dict[str, dict[str, PolicyFile]] = field(default_factory=dict)
    is_due: asyncio.Event = field(default_factory=asyncio.Event)  # set to save the batch now
    task: asyncio.Task[None] | None = None


@dataclass(slots=True, eq=False)
class _LookUp:
    """A look-up under way; `waiting` is the number of crawls that wait for it."""

    result: asyncio.Future[Obtained]
    task: asyncio.Task[None] | None = None
    waiting: int = 0

    def is_stale(self, now: float) -> bool:
        """Return True if the look-up has succeeded, and one of its files is due again."""
        has_ended = (
            self.result.done() and not self.result.cancelled() and self.result.exception() is None
        )
        return has_ended and any(file.is_due(now) for file in self.result.result().files.values())


_threads = threading.local()  # .shared: key -> the PolicyFiles of the crawls of the thread


class PolicyFiles:
    """The policy files that several crawls share.

    Failures of servers and of the store raise no error, except BarredError.
    """

    def __init__(
        self,
        store: Store,
        client: PolicyClient,
        *,
        timeout: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take the store and the client.

        `timeout`: seconds for one file over all its redirects. `clock`: return the seconds since
        the epoch.
        """
        self.store = store
        self.client = client
        self.clock = clock
        self._redirects = Redirects(client, timeout=timeout, clock=clock)
        self._crawls = 1
        self._key: object = None
        self._look_ups: dict[PolicyQuery, _LookUp] = {}
        # Each query with a claim on its origin, and the task that prolongs the claim.
        self._claims: dict[PolicyQuery, asyncio.Task[None]] = {}
        self._batch: _Batch | None = None  # the batch that takes more sites; None if there is none
        self._has_failed = False  # True after a failure of the store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="comity-store")
        self._semaphore = asyncio.Semaphore(ORIGINS_AT_ONCE)
        self._loop: asyncio.AbstractEventLoop | None = None

    @classmethod
    def from_options(cls, store: Store, options: ClientOptions, *, timeout: float) -> PolicyFiles:
        """Return policy files that no other crawl shares yet."""
        return cls(store, PolicyClient(options, patience=timeout / 4), timeout=timeout)

    @classmethod
    def joined(
        cls,
        store: Path,
        options: ClientOptions,
        *,
        timeout: float,
        open_store: Callable[[Path], PolicyStore] = PolicyStore,
    ) -> PolicyFiles:
        """Join the crawls of this thread with the same arguments, and return their files.

        PolicyError: the store cannot be used.
        """
        shared: dict[object, PolicyFiles] = vars(_threads).setdefault("shared", {})
        key = (store.resolve(), options, timeout)
        files = shared.get(key)
        # A crawl that was torn off never calls `leave`, so its files are still in `shared`. They
        # cannot be used if its loop is closed.
        if files is None or (files._loop is not None and files._loop.is_closed()):
            files = shared[key] = cls.from_options(open_store(store), options, timeout=timeout)
            files._key = key
        else:
            files._crawls += 1
        return files

    async def leave(self) -> None:
        """Stop sharing the files. Call it once for each crawl that joined.

        The last crawl that leaves waits until all files are saved, and closes the store."""
        self._crawls -= 1
        if self._crawls:
            return
        shared = vars(_threads).get("shared", {})
        if shared.get(self._key) is self:
            del shared[self._key]
        self._save_now()
        await asyncio.gather(
            *(look_up.task for look_up in self._look_ups.values() if look_up.task),
            return_exceptions=True,
        )
        await asyncio.get_running_loop().run_in_executor(self._thread, self.store.close)
        self._thread.shutdown(wait=False)

    async def ask_store(
        self,
        consequence: str,
        asker: Asker,
        call: Callable[..., T],
        *arguments: object,
        otherwise: T,
    ) -> T:
        """Call the store in its thread, and return the result.

        After an OSError, log `consequence` and return `otherwise`. Only the first failure is logged
        as a warning, because on a full disk all later calls fail, too.
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)
        except OSError as error:
            asker.count("store_error")
            level = logging.INFO if self._has_failed else logging.WARNING
            self._has_failed = True
            logger.log(
                level, "%(error)s; %(consequence)s", {"error": error, "consequence": consequence}
            )
            return otherwise

    async def get(self, query: PolicyQuery, asker: Asker) -> Obtained:
        """Return the files. BarredError: a site of `referrer_reach` may not lead to the origin."""
        self._loop = asyncio.get_running_loop()
        while (look_up := self._look_ups.get(query)) is not None and look_up.is_stale(self.clock()):
            assert look_up.task
            self._save_now()
            await asyncio.wait([look_up.task])  # until its files are in the store
        if look_up is None:
            look_up = self._look_ups[query] = _LookUp(self._loop.create_future())
            look_up.task = asyncio.create_task(self._look_up(query, look_up, asker))
        else:
            asker.count("shared")
        look_up.waiting += 1
        try:
            return await asyncio.shield(look_up.result)
        finally:
            look_up.waiting -= 1
            if not look_up.waiting and not look_up.result.done():
                self._remove(query, look_up)
                assert look_up.task
                look_up.task.cancel()

    async def _look_up(self, query: PolicyQuery, look_up: _LookUp, asker: Asker) -> None:
        """Look the files up and save them.

        The look-up is removed only when the files are in the store. Until then, `get` returns the
        files of this look-up, and not the older files in the store.
        """
        try:
            obtained, to_save = await self._obtain(query, asker)
            look_up.result.set_result(obtained)
            if to_save:
                await self._save(query.origin, to_save, asker)
        except Exception as error:
            look_up.result.set_exception(error)
            # Mark the exception as retrieved: perhaps no crawl waits any more.
            look_up.result.exception()
        finally:
            self._remove(query, look_up)
            look_up.result.cancel()  # no effect if it is done
            if (claim := self._claims.pop(query, None)) is not None:
                claim.cancel()
                await self.ask_store(
                    "others wait for it a while",
                    asker,
                    self.store.gives_back,
                    query.origin,
                    otherwise=None,
                )

    async def _save(self, origin: str, files: Mapping[str, PolicyFile], asker: Asker) -> None:
        """Add the files to the current batch, and wait until the batch is saved."""
        batch = self._batch
        if batch is None:
            batch = self._batch = _Batch()
            batch.task = asyncio.create_task(self._save_batch(batch, asker))
        batch.sites.setdefault(origin, {}).update(files)
        if not self._crawls:  # the last crawl has left, so save at once
            batch.is_due.set()
        assert batch.task
        await asyncio.shield(batch.task)

    def _save_now(self) -> None:
        if self._batch is not None:
            self._batch.is_due.set()

    async def _save_batch(self, batch: _Batch, asker: Asker) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(SAVE_AFTER):
                await batch.is_due.wait()
        self._batch = None
        try:
            await self._save_sites(batch.sites, asker)
        except Exception:  # a bug of ours with one site: save the others one by one
            for origin, files in batch.sites.items():
                try:
                    await self._save_sites({origin: files}, asker)
                except Exception:
                    logger.exception(
                        "The policies of %(origin)s cannot be kept", {"origin": origin}
                    )

    async def _save_sites(
        self, sites: Mapping[str, Mapping[str, PolicyFile]], asker: Asker
    ) -> None:
        subject = next(iter(sites)) if len(sites) == 1 else f"{len(sites)} origins"
        await self.ask_store(
            f"the policies of {subject} are kept in memory only",
            asker,
            self.store.save_sites,
            sites,
            otherwise=None,
        )

    def _remove(self, query: PolicyQuery, look_up: _LookUp) -> None:
        if self._look_ups.get(query) is look_up:
            del self._look_ups[query]

    async def _obtain(
        self, query: PolicyQuery, asker: Asker
    ) -> tuple[Obtained, Mapping[str, PolicyFile]]:
        """Return the outcome of a look-up, and the files to save."""
        no_files: dict[str, PolicyFile] = {}
        unsaved = (
            dict(self._batch.sites.get(query.origin, no_files))
            if self._batch is not None
            else no_files
        )
        while True:
            stored = await self.ask_store(
                f"{query.origin} is asked instead",
                asker,
                self.store.load,
                query.origin,
                otherwise=no_files,
            )
            stored = {
                path: file.due_if_before(query.renew_before)
                for path, file in (stored | unsaved).items()
            }
            now = self.clock()
            files = {
                path: stored[path]
                for path in query.paths
                if path in stored and not stored[path].is_due(now)
            }
            due = [path for path in query.paths if path not in files]
            if not due or (ROBOTS in files and _refuses_all(files[ROBOTS], now)):
                return Obtained(files, frozenset()), no_files
            if not self.store.is_shared or query in self._claims:
                break
            # Then read the store again: another process may have saved the files.
            await self._claim(query, asker)
        async with self._semaphore:
            renewed = await self._fetch_due(query, due, stored, asker)
        return Obtained(files | renewed, frozenset(renewed)), renewed

    async def _claim(self, query: PolicyQuery, asker: Asker) -> None:
        """Claim the origin for the query.

        If another process or another query of this one has the claim, wait for CLAIM_AGAIN seconds.
        """
        is_asked_here = any(other.origin == query.origin for other in self._claims)
        if not is_asked_here and await self._holds_claim(query, asker):
            self._claims[query] = asyncio.create_task(self._keep_claim(query, asker))
        else:
            await asyncio.sleep(CLAIM_AGAIN)

    async def _keep_claim(self, query: PolicyQuery, asker: Asker) -> None:
        while True:
            await asyncio.sleep(CLAIM / 3)
            await self._holds_claim(query, asker)

    async def _holds_claim(self, query: PolicyQuery, asker: Asker) -> bool:
        """Claim the origin, or prolong the claim.

        Return True if the claim is now this process's own, or if the store fails.
        """
        consequence = f"{query.origin} is asked, maybe by others too"
        return await self.ask_store(
            consequence, asker, self.store.claims_fetch, query.origin, CLAIM, otherwise=True
        )

    async def _fetch_due(
        self, query: PolicyQuery, due: Sequence[str], stored: Mapping[str, PolicyFile], asker: Asker
    ) -> dict[str, PolicyFile]:
        """Fetch the files that are due, and return them.

        The files of the origin are fetched one after the other, and files of other origins at the
        same time. If robots.txt cannot be fetched and no copy replaces it, everything is refused.
        Then no other file of the origin is fetched.
        """
        urls = {path: url_of(query.origin, path) for path in due}
        same_origin = [path for path in due if urls[path].startswith(f"{query.origin}/")]
        cross_origin = [
            asyncio.create_task(self._renew_elsewhere(query, path, urls[path], stored, asker))
            for path in due
            if path not in same_origin
        ]
        renewed: dict[str, PolicyFile] = {}
        try:
            async with self.client.server(
                query.origin, query.referrer_reach, asker.count
            ) as server:
                for path in same_origin:
                    server.announce(
                        urls[path], conditions(urls[path], _copy(stored, path), urls[path])
                    )
                for path in same_origin:
                    renewed[path] = await self._renew(
                        query, path, urls[path], stored.get(path), server, asker
                    )
                    if path == ROBOTS and _refuses_all(renewed[path], self.clock()):
                        break
            for other in cross_origin:
                renewed |= await other
        finally:
            for other in cross_origin:
                other.cancel()
        return renewed

    async def _renew_elsewhere(
        self,
        query: PolicyQuery,
        path: str,
        url: str,
        stored: Mapping[str, PolicyFile],
        asker: Asker,
    ) -> dict[str, PolicyFile]:
        """Fetch a file of another origin, and return it under its path.

        If the site may not lead to that origin, this file counts as a failure. No BarredError."""
        async with self.client.server(origin_of(url), query.reach, asker.count) as server:
            return {path: await self._renew(query, path, url, stored.get(path), server, asker)}

    async def _renew(
        self,
        query: PolicyQuery,
        path: str,
        url: str,
        file: PolicyFile | None,
        server: OriginRequests,
        asker: Asker,
    ) -> PolicyFile:
        """Fetch the file, and return its new state.

        `file`: the state so far; None if the file was never looked up. BarredError: the site that
        leads to `query.origin` may not."""
        copy = file.copy if file else None
        is_vital = path in query.vital
        try:
            answer = await self._redirects.ask(url, copy, server, asker.count)
        except BarredError as error:
            if server.origin == query.origin:
                raise
            answer = FinalAnswer(Fetched(status=0, url=url, error=str(error)))
        now = self.clock()
        fetched = accepted(url, answer.fetched)
        if availability(fetched) is Availability.UNREACHABLE:
            at_most = LOCAL_BACK_OFF if cause_of(failure_reason(fetched)).is_local else DAY
            failed = (file or PolicyFile(due=0)).after_failure(
                fetched, now, 0.0 if is_vital else BACK_OFF, at_most
            )
            asker.count("unreachable", 1, url)
            _log_failure(url, failed, now, is_vital=is_vital)
            return failed
        if fetched.status == 304:
            assert file
            assert file.copy
            asker.count("not_modified", 1, url)
            return file.after_confirmation(
                fetched.headers, min(answer.seconds, lifetime(url, file.copy)), now
            )
        asker.count("fetched", 1, url)
        seconds = min(answer.seconds, lifetime(url, fetched))
        return PolicyFile(due=now + seconds, copy=fetched, reach=answer.reach)


def url_of(origin: str, path: str) -> str:
    """Return the URL of a policy file. `path` may be an absolute URL itself."""
    return origin + path if path.startswith("/") else path


def failure_reason(fetched: Fetched) -> str:
    """Return the reason of a failure: the error, or "HTTP status 503"."""
    return printable(fetched.error.encode()) or f"HTTP status {fetched.status}"


def _copy(stored: Mapping[str, PolicyFile], path: str) -> Fetched | None:
    return stored[path].copy if path in stored else None


def _refuses_all(robots: PolicyFile, now: float) -> bool:
    """Return True if robots.txt cannot be fetched and no copy replaces it."""
    return availability(robots.current(now)) is Availability.UNREACHABLE


def _log_failure(url: str, file: PolicyFile, now: float, *, is_vital: bool) -> None:
    meanwhile = "its last good copy is obeyed"
    if availability(file.current(now)) is Availability.UNREACHABLE:
        words = next(
            (file.unreachable for file in FILES if urlsplit(url).path == file.path),
            "it states nothing",
        )
        meanwhile = "nothing of the site is fetched" if is_vital else words
    assert file.failure
    logger.info(
        "Cannot fetch %(url)s: %(why)s. The next attempt is at %(due)s; until then, %(meanwhile)s.",
        {
            "url": printable(url.encode(errors="replace")),
            "why": failure_reason(file.failure),
            "due": datetime.fromtimestamp(file.due, UTC).isoformat(timespec="seconds"),
            "meanwhile": meanwhile,
        },
    )
