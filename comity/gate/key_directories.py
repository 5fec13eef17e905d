"""The key directories of crawlers, for the guard (docs/signatures.md).

    KeyDirectories().find("https://bot.example.org/.well-known/...", keyid, is_listed=True)

`find` never waits: a thread fetches a directory that is not in memory, and the answer says when to
ask again. The client is that for policy files, with its rules for addresses: a directory at an
inner address is not fetched, whoever names it (SEC-2). Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from threading import Lock, Thread
from typing import TYPE_CHECKING

from comity.bounded import Bounded
from comity.extras import required
from comity.forks import call_in_forks
from comity.gate.fetching.client import Hop, PolicyClient
from comity.gate.fetching.connection import TransferError
from comity.gate.fetching.freshness import DAY, lifetime, retry_after
from comity.gate.fetching.network import Network
from comity.gate.fetching.options import TLS, ClientOptions
from comity.gate.fetching.proxies import Proxies
from comity.gate.fetching.reach import Reach
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_of
from comity.signatures import MEDIA_TYPE, WELL_KNOWN
from comity.signatures.message import KeyAnswer

if TYPE_CHECKING:
    from comity.signatures.keys import PublishedKey

MAX_OCTETS = 64 * 1024  # of a directory
TIMEOUT = 10.0  # seconds for a directory
MAX_DIRECTORIES = 1000  # directories in memory that clients have named
MAX_FETCHES = 4  # directories that clients have named, and that are fetched at a time
MAX_NEW = 30  # directories that clients have named, and that are new in a MINUTE
MINUTE = 60.0
# Seconds until a directory is fetched again that has failed, or that lacks a key.
# draft-ietf-webbotauth-httpsig-protocol-00 appendix C.5: "no more than five minutes".
RETRY, MAX_RETRY = 60.0, 300.0
MAX_STALE = 2 * DAY  # seconds for which keys are used while their directory fails
ASK_AGAIN = 2  # seconds to wait for a directory that is being fetched

logger = logging.getLogger(__name__)


@dataclass
class _Directory:
    """A directory in memory. Times are seconds since the epoch.

    Attributes:
        keys: The keys of the last good answer. None: there is no such answer.
        fetched_at: The time of the last good answer.
        due_at: The time from which it is fetched again.
        retry_at: The time before which it is not fetched again, whatever it lacks.
        problem: Why the last fetch failed; "" if it did not.
        is_underway: True while it is fetched.
    """

    keys: dict[str, PublishedKey] | None = None
    fetched_at: float = 0.0
    due_at: float = 0.0
    retry_at: float = 0.0
    problem: str = ""
    is_underway: bool = False

    def is_known(self, now: float) -> bool:
        return self.keys is not None and now < self.fetched_at + MAX_STALE


class KeyDirectories:
    """The key directories of crawlers. Several threads may use them."""

    def __init__(
        self,
        user_agent: str = "comity-guard",
        *,
        options: ClientOptions | None = None,
        network: Callable[[ClientOptions], Network] = Network,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Fetch nothing yet.

        Arguments:
            user_agent: The User-Agent field of the requests.
            options: The options of the client. None means direct connections.
            network: Returns the network for the options. Tests move addresses with it.
            clock: Returns the seconds since the epoch.

        PolicyError: the extra is not installed."""
        with required("KeyDirectories", "signatures", PolicyError):
            from comity.signatures.keys import read_key_set
        self._read_key_set = read_key_set
        self._options = options or ClientOptions(
            user_agent=user_agent, proxies=Proxies(), tls=TLS(), bind_address=None
        )
        self._network = network
        self._clock = clock
        self._listed: dict[str, _Directory] = {}
        self._named: Bounded[str, _Directory] = Bounded(MAX_DIRECTORIES)
        self._new: list[float] = []  # the times of the MAX_NEW last new directories
        self._underway = 0  # fetches of directories that clients have named
        self._lock = Lock()
        call_in_forks(self._forget_fetches)

    def expect(self, urls: Collection[str]) -> None:
        """Fetch these directories soon, unless they are known."""
        now = self._clock()
        with self._lock:
            for url in urls:
                directory = self._listed.setdefault(url, _Directory())
                if directory.due_at <= now:
                    self._begin(url, directory)

    def find(self, url: str, keyid: str, *, is_listed: bool) -> KeyAnswer:
        """Return the key of a directory, or when to ask again. It never waits.

        `is_listed`: True for a directory that the operator lists. False for one that a client
        names: only MAX_NEW of these are fetched in a minute."""
        now = self._clock()
        with self._lock:
            directory = self._directory(url, now, is_listed=is_listed)
            if directory is None:
                return KeyAnswer(None, "too many key directories are new", round(MINUTE))
            key = (directory.keys or {}).get(keyid)
            if directory.due_at <= now or (key is None and directory.retry_at <= now):
                self._begin(url, directory)
            if not directory.is_known(now) or (key is None and directory.is_underway):
                wait = ASK_AGAIN if directory.is_underway else directory.due_at - now
                problem = directory.problem or "it is being fetched"
                return KeyAnswer(None, f"key directory {url}: {problem}", max(1, round(wait)))
            return KeyAnswer(key.key if key is not None and key.is_valid(now) else None)

    def _forget_fetches(self) -> None:
        """Forget the fetches of the process that this one was forked from: they do not end here."""
        self._underway, self._lock = 0, Lock()
        for directory in (*self._listed.values(), *self._named.values()):
            directory.is_underway = False

    def _directory(self, url: str, now: float, *, is_listed: bool) -> _Directory | None:
        """Return a directory, perhaps a new one. None: too many are new."""
        known = self._listed.get(url) or self._named.get(url)
        if known is not None:
            return known
        if is_listed:
            return self._listed.setdefault(url, _Directory())
        self._new = [moment for moment in self._new if moment > now - MINUTE]
        if len(self._new) >= MAX_NEW:
            return None
        self._new.append(now)
        return self._named.setdefault(url, _Directory())

    def _begin(self, url: str, directory: _Directory) -> None:
        """Let a thread fetch the directory, unless one does.

        Of directories that clients have named, at most MAX_FETCHES are fetched at a time."""
        named = 0 if url in self._listed else 1
        if directory.is_underway or (named and self._underway >= MAX_FETCHES):
            return
        directory.is_underway = True
        self._underway += named
        thread = Thread(
            target=self._fetch,
            args=(url, directory, named),
            name="comity-key-directory",
            daemon=True,
        )
        try:
            thread.start()
        except RuntimeError:  # the system limits the number of threads
            problem = "no thread can be started to fetch it"
            self._end(url, directory, named, _Directory(problem=problem))

    def _fetch(self, url: str, directory: _Directory, named: int) -> None:
        fetched = _Directory(problem="the fetch failed")
        try:
            fetched = self._fetched(url)
        finally:
            with self._lock:
                self._end(url, directory, named, fetched)

    def _end(self, url: str, directory: _Directory, named: int, fetched: _Directory) -> None:
        """Note the outcome of a fetch. The caller has the lock."""
        self._underway -= named
        # A directory that fails "MUST NOT evict a cached entry" (section 6.10).
        if fetched.keys is not None:
            directory.keys, directory.fetched_at = fetched.keys, fetched.fetched_at
        directory.problem, directory.is_underway = fetched.problem, False
        now = self._clock()
        directory.retry_at = now + RETRY
        directory.due_at = max(fetched.due_at, directory.retry_at)
        if fetched.problem:
            logger.warning(
                "The key directory %(url)s cannot be used: %(problem)s",
                {"url": printable(url.encode()), "problem": fetched.problem},
            )

    def _fetched(self, url: str) -> _Directory:
        """Fetch a directory, and return what is known about it now."""
        due_at = 0.0
        try:
            hop = asyncio.run(self._ask(url))
            now = self._clock()
            due_at = now + min(retry_after(hop.headers, now) or RETRY, MAX_RETRY)
            keys = self._read(url, hop)
        except (TransferError, ValueError, OSError) as error:
            return _Directory(problem=str(error), due_at=due_at)
        return _Directory(keys, fetched_at=now, due_at=now + lifetime(hop.headers, now))

    async def _ask(self, url: str) -> Hop:
        """Return the answer. TransferError: there is none in time, or the address is barred."""
        client = PolicyClient(self._options, self._network)  # its event loop ends with the fetch
        async with client.server(origin_of(url), Reach.PUBLIC, lambda *_: None) as server:
            try:
                async with asyncio.timeout(TIMEOUT):
                    return await server.get(url, {"Accept": MEDIA_TYPE})
            except TimeoutError:
                raise TransferError(f"no answer within {TIMEOUT:g} seconds") from None

    def _read(self, url: str, hop: Hop) -> dict[str, PublishedKey]:
        """Return the keys of an answer. ValueError: it is no directory."""
        if hop.status != 200:  # section 5.5: "MUST NOT automatically follow HTTP redirects"
            raise ValueError(f"HTTP status {hop.status}")
        if hop.oversized or len(hop.body) > MAX_OCTETS:
            raise ValueError(f"it has more than {MAX_OCTETS} octets")
        types = [value for name, value in hop.headers if name.lower() == b"content-type"]
        media_type = types[-1].partition(b";")[0].strip().lower() if types else b""
        if url.endswith(WELL_KNOWN) and media_type != MEDIA_TYPE.encode():
            raise ValueError(f"its media type is not {MEDIA_TYPE}")
        return self._read_key_set(hop.body)
