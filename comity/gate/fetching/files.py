"""The policy files of origins: out of the store where they are fresh there, or asked for, and shared by the crawls of a process.

One look-up of an origin is its way from the store over the server back to the store. Whoever asks for the same meanwhile waits
for it, from whichever crawl, and it ends early only when nobody waits any more. So no file is asked for twice, and no crawl waits
for the end of another one.

What was learnt within a moment is written together, as to write one site costs as much as to write many. A killed process loses
that, and its files are asked for again.

    PolicyFiles.joined(...)    what the crawls of this thread share that have the same store, client options and timeout
    files.get(...)             the files of an origin
    files.leave()              the last crawl that leaves closes the store"""

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
from comity.gate.fetching.client import Client, Server
from comity.gate.fetching.freshness import DAY
from comity.gate.fetching.network import BarredError
from comity.gate.fetching.options import ClientOptions
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.reach import Reach
from comity.gate.fetching.redirects import Answer, Redirects, conditions
from comity.gate.fetching.store import PolicyStore, Store
from comity.policies.answers.fetched import Availability, Fetched, availability
from comity.policies.formats import FILES, accepted, lifetime
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_of

logger = logging.getLogger(__name__)
T = TypeVar("T")

ROBOTS = "/robots.txt"
ORIGINS_AT_ONCE = 256  # that are asked for files
# Until a file is asked for again without which pages are fetched all the same: as long as it is asked for, the origin waits.
BACK_OFF = 300.0  # seconds
# The longest wait after a failure whose cause the operator can remove. The next crawl is to see that it is removed.
LOCAL_BACK_OFF = 60.0  # seconds

CLAIM = 5.0  # seconds for which other processes leave an origin to one that asks it and gives no sign of life any more
CLAIM_AGAIN = 0.1  # seconds between two looks whether it is done
SAVE_AFTER = 0.5  # seconds at most from an answer until it is in the store


class Asker(Protocol):
    """The crawl for which something is looked up."""

    def count(self, name: str, number: int = 1, place: str = "") -> None:
        """`place`: the origin of requests, the URL of a file that was had or was not."""


class PolicyQuery(NamedTuple):
    """A look-up. What is looked up at the same time for two crawls is looked up once where all of this is equal."""

    origin: str
    paths: tuple[str, ...]  # or absolute URLs of files that others name
    referrer_reach: (
        Reach | None
    )  # that of the site that leads to the origin, None where the operator asks
    reach: Reach = Reach.PUBLIC  # of the origin's own server, which leads to files at other origins
    vital: tuple[str, ...] = (ROBOTS,)  # those of the paths without which no page is fetched
    renew_before: float = 0.0  # seconds since the epoch: a copy that was confirmed earlier is asked for again, however fresh


class Obtained(NamedTuple):
    """The outcome of a look-up."""

    files: dict[str, PolicyFile]  # by path
    renewed: frozenset[str]  # paths of those that were asked for, not taken from the store


@dataclass(slots=True, eq=False)
class _Batch:
    """Files that are about to be saved."""

    sites: dict[str, dict[str, PolicyFile]] = field(default_factory=dict)  # by origin and path
    is_due: asyncio.Event = field(default_factory=asyncio.Event)  # somebody waits for it
    task: asyncio.Task[None] | None = None


@dataclass(slots=True, eq=False)
class _LookUp:
    result: asyncio.Future[Obtained]
    task: asyncio.Task[None] | None = None
    waiting: int = 0

    def is_stale(self, now: float) -> bool:
        """True where it has ended with files that are to be asked for again by now."""
        has_ended = (
            self.result.done() and not self.result.cancelled() and self.result.exception() is None
        )
        return has_ended and any(file.is_due(now) for file in self.result.result().files.values())


_threads = threading.local()  # .shared: key -> what the crawls of the thread share


class PolicyFiles:
    """The policy files that some crawls share. What servers do and what the store fails to do raises nothing but BarredError."""

    def __init__(
        self,
        store: Store,
        client: Client,
        *,
        timeout: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`timeout`: seconds for one file over all its hops. `clock`: seconds since the epoch."""
        self.store = store
        self.client = client
        self.clock = clock
        self._redirects = Redirects(client, timeout=timeout, clock=clock)
        self._crawls = 1
        self._key: object = None
        self._look_ups: dict[PolicyQuery, _LookUp] = {}
        self._claims: dict[
            PolicyQuery, asyncio.Task[None]
        ] = {}  # while this process asks their origins, and no other one does
        self._batch: _Batch | None = None  # that is filled
        self._has_failed = False  # the store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="comity-store")
        self._semaphore = asyncio.Semaphore(ORIGINS_AT_ONCE)
        self._loop: asyncio.AbstractEventLoop | None = None

    @classmethod
    def from_options(cls, store: Store, options: ClientOptions, *, timeout: float) -> PolicyFiles:
        """Policy files that are shared with nobody yet."""
        return cls(store, Client(options, patience=timeout / 4), timeout=timeout)

    @classmethod
    def joined(
        cls,
        store: Path,
        options: ClientOptions,
        *,
        timeout: float,
        open_store: Callable[[Path], PolicyStore] = PolicyStore,
    ) -> PolicyFiles:
        """The files that the crawls of this thread share. PolicyError where the store cannot be used."""
        shared: dict[object, PolicyFiles] = vars(_threads).setdefault("shared", {})
        key = (store.resolve(), options, timeout)
        files = shared.get(key)
        if files is None or (
            files._loop is not None and files._loop.is_closed()
        ):  # a crawl that was torn off never leaves
            files = shared[key] = cls.from_options(open_store(store), options, timeout=timeout)
            files._key = key
        else:
            files._crawls += 1
        return files

    async def leave(self) -> None:
        """Let a crawl go that waits for nothing more. The last one closes the store."""
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
        otherwise: T,
        consequence: str,
        asker: Asker,
        call: Callable[..., T],
        *arguments: object,
    ) -> T:
        """Return the answer of the store. If the store fails, log the consequence and return `otherwise`.

        The first failure is a warning: on a full disk all that follow fail too."""
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
        """BarredError where nobody may lead to the origin from `referrer_reach`."""
        self._loop = asyncio.get_running_loop()
        while (look_up := self._look_ups.get(query)) is not None and look_up.is_stale(self.clock()):
            assert look_up.task
            self._save_now()
            await asyncio.wait([look_up.task])  # until it is in the store
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
                self._forget(query, look_up)
                assert look_up.task
                look_up.task.cancel()

    async def _look_up(self, query: PolicyQuery, look_up: _LookUp, asker: Asker) -> None:
        """Look the files up and save them. Whoever asks until they are in the store gets them from here: nobody reads there what
        is about to be replaced."""
        try:
            obtained, to_save = await self._obtain(query, asker)
            look_up.result.set_result(obtained)
            if to_save:
                await self._save(query.origin, to_save, asker)
        except Exception as error:
            look_up.result.set_exception(error)
            look_up.result.exception()  # it counts as seen, though nobody may be waiting any more
        finally:
            self._forget(query, look_up)
            look_up.result.cancel()  # unless it is done
            if (claim := self._claims.pop(query, None)) is not None:
                claim.cancel()
                await self.ask_store(
                    None, "others wait for it a while", asker, self.store.gives_back, query.origin
                )

    async def _save(self, origin: str, files: Mapping[str, PolicyFile], asker: Asker) -> None:
        """Save the files, together with whatever else is to be saved by then."""
        batch = self._batch
        if batch is None:
            batch = self._batch = _Batch()
            batch.task = asyncio.create_task(self._save_batch(batch, asker))
        batch.sites.setdefault(origin, {}).update(files)
        if not self._crawls:  # the last one has left: nothing is put off any more
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
        except Exception:  # a mistake of ours with one of them: the others are kept
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
            None,
            f"the policies of {subject} are kept in memory only",
            asker,
            self.store.save_sites,
            sites,
        )

    def _forget(self, query: PolicyQuery, look_up: _LookUp) -> None:
        if self._look_ups.get(query) is look_up:
            del self._look_ups[query]

    async def _obtain(
        self, query: PolicyQuery, asker: Asker
    ) -> tuple[Obtained, Mapping[str, PolicyFile]]:
        """The files, and those to save."""
        no_files: dict[str, PolicyFile] = {}
        unsaved = (
            dict(self._batch.sites.get(query.origin, no_files))
            if self._batch is not None
            else no_files
        )
        while True:
            stored = await self.ask_store(
                no_files, f"{query.origin} is asked instead", asker, self.store.load, query.origin
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
            await self._claim(query, asker)  # and look again what another process has saved by then
        async with self._semaphore:
            renewed = await self._renewed(query, due, stored, asker)
        return Obtained(files | renewed, frozenset(renewed)), renewed

    async def _claim(self, query: PolicyQuery, asker: Asker) -> None:
        """Claim the origin, or wait a moment for the process that asks it."""
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
        """Claim the origin, or prolong the claim. True where nobody else has it, or the store fails."""
        consequence = f"{query.origin} is asked, maybe by others too"
        return await self.ask_store(
            True, consequence, asker, self.store.claims_fetch, query.origin, CLAIM
        )

    async def _renewed(
        self, query: PolicyQuery, due: Sequence[str], stored: Mapping[str, PolicyFile], asker: Asker
    ) -> dict[str, PolicyFile]:
        """The files after they were asked for: those of the origin one after the other, those of others beside them.

        While robots.txt refuses everything, nothing else of the origin is asked for."""
        urls = {path: url_of(query.origin, path) for path in due}
        same_origin = [path for path in due if urls[path].startswith(f"{query.origin}/")]
        cross_origin = [
            asyncio.create_task(self._elsewhere(query, path, urls[path], stored, asker))
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

    async def _elsewhere(
        self,
        query: PolicyQuery,
        path: str,
        url: str,
        stored: Mapping[str, PolicyFile],
        asker: Asker,
    ) -> dict[str, PolicyFile]:
        """A file of another origin. That the site may not lead there is no news of the site."""
        async with self.client.server(origin_of(url), query.reach, asker.count) as server:
            return {path: await self._renew(query, path, url, stored.get(path), server, asker)}

    async def _renew(
        self,
        query: PolicyQuery,
        path: str,
        url: str,
        file: PolicyFile | None,
        server: Server,
        asker: Asker,
    ) -> PolicyFile:
        """Ask for the file, and return what is known of it then."""
        copy = file.copy if file else None
        is_vital = path in query.vital
        try:
            answer = await self._redirects.ask(url, copy, server, asker.count)
        except BarredError as error:
            if server.origin == query.origin:
                raise
            answer = Answer(Fetched(status=0, url=url, error=str(error)))
        now = self.clock()
        fetched = accepted(url, answer.fetched)
        if availability(fetched) is Availability.UNREACHABLE:
            at_most = LOCAL_BACK_OFF if cause_of(failure_reason(fetched)).is_local else DAY
            failed = (file or PolicyFile(due=0)).failed(
                fetched, now, 0.0 if is_vital else BACK_OFF, at_most
            )
            asker.count("unreachable", 1, url)
            _log(url, failed, now, is_vital=is_vital)
            return failed
        if fetched.status == 304:
            assert file
            assert file.copy
            asker.count("not_modified", 1, url)
            return file.confirmed(
                fetched.headers, min(answer.seconds, lifetime(url, file.copy)), now
            )
        asker.count("fetched", 1, url)
        seconds = min(answer.seconds, lifetime(url, fetched))
        return PolicyFile(due=now + seconds, copy=fetched, reach=answer.reach)


def url_of(origin: str, path: str) -> str:
    """`path`: or the absolute URL of a file that others name."""
    return origin + path if path.startswith("/") else path


def failure_reason(fetched: Fetched) -> str:
    return printable(fetched.error.encode()) or f"HTTP status {fetched.status}"


def _copy(stored: Mapping[str, PolicyFile], path: str) -> Fetched | None:
    return stored[path].copy if path in stored else None


def _refuses_all(robots: PolicyFile, now: float) -> bool:
    return availability(robots.current(now)) is Availability.UNREACHABLE


def _log(url: str, file: PolicyFile, now: float, *, is_vital: bool) -> None:
    meanwhile = "its last good copy is obeyed"
    if availability(file.current(now)) is Availability.UNREACHABLE:
        words = next(
            (file.unreachable for file in FILES if urlsplit(url).path == file.path),
            "it states nothing",
        )
        meanwhile = "nothing of the site is fetched" if is_vital else words
    assert file.failure
    logger.info(
        "Cannot have %(url)s: %(why)s; asked again at %(due)s, until then %(meanwhile)s",
        {
            "url": printable(url.encode(errors="replace")),
            "why": failure_reason(file.failure),
            "due": datetime.fromtimestamp(file.due, UTC).isoformat(timespec="seconds"),
            "meanwhile": meanwhile,
        },
    )
