"""The policies of origins, for one crawl: one look-up at a time for each origin (docs/fetching.md).

The policies of an origin come from the first of these places that has them:

    cached(origin)   the policies in memory, as long as they are fresh
    get(origin)      the look-up that is under way for the origin, or a new one
    PolicyFiles      the files that another crawl of this process looks up, or has just looked up
                     (files.py)
    PolicyStore      the files on disk, each as long as it is fresh (store.py, policy_copy.py)
    the server       one connection for all files of the origin (client.py), redirects
                     (redirects.py), and addresses that may be asked (network.py, reach.py)

A look-up has two rounds: first the files with fixed names, robots.txt before the others, then the
files that these refer to. If robots.txt cannot be fetched and no copy replaces it, everything is
refused and the look-up ends early. Its outcome is one `Policies` object, which never changes: newer
objects replace it.

The outcome depends on the site that leads to the origin. A site may not lead to an inner address
(SEC-7). Then the outcome is barred for sites of its reach, and kept apart from other outcomes: it
does not count for the operator, who may ask the same origin. So each call names the reach of the
site (`referrer_reach`), and does not use the outcome of a look-up that began for another reach.

A look-up raises no error. If it fails by a bug of ours, it refuses the origin and logs that.
ClosingError tells callers that the crawl ends and that nothing was learnt."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from comity.bounded import Bounded, BoundedSize
from comity.gate.fetching.causes import FailureCause, cause_of
from comity.gate.fetching.files import BACK_OFF, PolicyFiles, PolicyQuery, failure_reason, url_of
from comity.gate.fetching.freshness import DAY, MIN_LIFETIME, TOO_MANY, retry_after
from comity.gate.fetching.network import BarredError
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.reach import Reach
from comity.gate.run.flights import Flights
from comity.gate.run.observer import Observer
from comity.gate.run.surroundings import Run
from comity.policies import Agent, Site
from comity.policies.answers.fetched import Availability, Fetched, availability
from comity.policies.formats import WELL_KNOWN
from comity.policies.formats.file import MAX_REFERENCES
from comity.policies.syntax.urls import origin_or_empty

logger = logging.getLogger(__name__)

MAX_SITES = 10_000  # the maximum number of origins in memory; the store has all of them
# The maximum octets of all policy files in memory. Compiled rules take up to three times as much.
MAX_SITE_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginPolicies:
    """The policies of an origin.

    Moments are seconds since the epoch.

    Attributes:
        site: The policies.
        fresh_until: The moment until which they may be used without asking the server again. If
            `unreachable`, the moment when the server may be asked again.
        unreachable: True if a needed file could not be fetched and no copy replaces it. Then
            everything is refused.
        error: The cause, if `unreachable` or `barred_for` is set; otherwise "".
        failing_since: The moment since when a file cannot be fetched; 0 if no file fails, or if the
            moment is unknown.
        reach: The reach of the server that sent robots.txt. It limits the addresses that the
            policies may lead to.
        server_reach: The reach of the origin's own server, as far as it is known. It limits the
            sites that may lead there.
        barred_for: The reach of the site that led to the origin and may not. Then nothing may be
            fetched there, and nothing is known about the origin. None if no site is barred.
    """

    site: Site
    fresh_until: float
    unreachable: bool
    error: str = ""
    failing_since: float = 0.0
    reach: Reach = Reach.PUBLIC
    server_reach: Reach = Reach.PUBLIC
    barred_for: Reach | None = None

    def seen_from(self, referrer_reach: Reach | None) -> OriginPolicies:
        """Return these policies for requests that a site of this reach leads to.

        They are barred if the site may not lead to the server. None: the operator asks.
        """
        if (
            referrer_reach is None
            or self.barred_for is referrer_reach
            or referrer_reach.may_lead_to(self.server_reach)
        ):
            return self
        return replace(
            self,
            barred_for=referrer_reach,
            error=f"its server is at a {self.server_reach.value} address",
        )


class PolicyFetcher:
    """The policies of origins: `cached` reads memory, `get` asks the store and then the server.

    Attributes:
        renew_before: Seconds since the epoch. Copies that were confirmed earlier are fetched again,
            even if they are fresh.
    """

    def __init__(
        self,
        run: Run,
        files: PolicyFiles,
        agent: Agent,
        *,
        paths: Iterable[str] = WELL_KNOWN,
        looked_up: Callable[[OriginPolicies], None] = lambda policies: None,
        overloaded: Callable[[str, int, float], object] = lambda url, status, seconds: None,
        observer: Observer = Observer(),  # noqa: B008  # an Observer has no state
    ) -> None:
        """Take the files, and the agent for which they are read.

        `agent`: some files are named for certain agents only. `paths`: the paths of the policy
        files of each origin, robots.txt among them. `looked_up`: called with the policies after
        each look-up. `overloaded`: called if a server has too many requests and asks for a pause
        (Retry-After), with the URL of the file, the HTTP status, and the seconds of the pause.
        """
        self.renew_before = 0.0
        self._on_lookup = looked_up
        self._overloaded = overloaded
        self._observer = observer
        self._run = run
        self._files = files
        self._agent = agent
        self._clock = files.clock
        self._paths = tuple(paths)
        self._sites = Sites()
        # By origin and the reach of the site that led there.
        self._barred: Bounded[tuple[str, Reach], OriginPolicies] = Bounded(MAX_SITES)
        # The URLs of files whose last fetch failed.
        self._lost: Bounded[str, None] = Bounded(MAX_SITES)
        # By origin: the reach that the look-up began for, and its outcome.
        self._flights: Flights[tuple[Reach | None, OriginPolicies]] = Flights(run)
        self._is_closed = False
        self._told: set[FailureCause] = (
            set()
        )  # causes of unreachable policies with a warning in the log

    def cached(self, origin: str, referrer_reach: Reach | None = None) -> OriginPolicies | None:
        """Return the policies if they are in memory and fresh; None otherwise.

        `referrer_reach`: the reach of the site that leads to the origin; None if the operator asks.
        """
        policies = self._sites.get(origin)
        now = self._clock()
        if policies and now < policies.fresh_until <= now + DAY:
            return policies if referrer_reach is None else policies.seen_from(referrer_reach)
        barred = (
            self._barred.get((origin, referrer_reach))
            if self._barred and referrer_reach is not None
            else None
        )
        return barred if barred and now < barred.fresh_until <= now + DAY else None

    async def get(self, origin: str, referrer_reach: Reach | None = None) -> OriginPolicies:
        """Return the policies, and fetch them if needed.

        `referrer_reach`: the reach of the site that leads to the origin; None if the operator asks.
        If the site may not lead to the origin, this is remembered for sites of its reach only: the
        operator may ask there. ClosingError, the only error: the crawl ends meanwhile.
        """
        while (policies := self.cached(origin, referrer_reach)) is None:
            flight = self._flights.get(origin) or self._flights.begin(
                origin, self._look_up(origin, referrer_reach)
            )
            asker, policies = await self._flights.wait(flight)
            if asker is referrer_reach:
                break
        return policies.seen_from(referrer_reach)

    async def for_url(self, url: str, referrer_reach: Reach | None = None) -> OriginPolicies | None:
        """Return the policies of the URL's origin, as `get` does; None if it has no origin."""
        origin = origin_or_empty(url)
        if not origin:
            return None
        return self.cached(origin, referrer_reach) or await self.get(origin, referrer_reach)

    async def first_taken(
        self, url: str, uses: Iterable[str], moment: datetime
    ) -> dict[str, datetime]:
        """Return the moment when an item of the URL was first taken for each of these uses.

        For a new use, it is `moment`, which is recorded. If the store fails, it is the first year
        of the calendar for each use, so that permissions for some days count as over.
        """
        uses = tuple(uses)
        long_ago = dict.fromkeys(uses, datetime.min.replace(tzinfo=UTC))
        consequence = f"permissions for some days from the first use of {url} count as over"
        return await self._files.ask_store(
            consequence,
            self,
            self._files.store.first_taken,
            url,
            uses,
            moment,
            otherwise=long_ago,
        )

    async def requests_action(self, url: str, action: str, sha256: str, moment: datetime) -> bool:
        """Record that a site asks for the action on the URL.

        `sha256`: the checksum of the file that asks. Return True if this is new, False if a file
        with this checksum has asked for the action before.
        """
        consequence = f"nobody will know that {action} of {url} was asked for"
        call = self._files.store.requests_action
        return await self._files.ask_store(
            consequence, self, call, url, action, sha256, moment, otherwise=True
        )

    async def close(self) -> None:
        """End the look-ups under way, and leave the shared files. A second call has no effect."""
        if not self._is_closed:
            self._is_closed = True
            await self._flights.close()
            await self._files.leave()

    def count(self, name: str, number: int = 1, place: str = "") -> None:
        """Add to a statistic. `place`: the origin of requests, or the URL of a file."""
        self._run.stats.inc_value(f"comity/policies/{name}", number)
        if name == "requests":
            self._observer.asked_for_files(place, number)
        elif name == "unreachable" and place not in self._lost:
            self._lost[place] = None
            self._run.stats.inc_value("comity/policies/lost")
        elif name in ("fetched", "not_modified") and place in self._lost:
            del self._lost[place]
            self._run.stats.inc_value("comity/policies/lost", -1)

    async def _look_up(
        self, origin: str, referrer_reach: Reach | None
    ) -> tuple[Reach | None, OriginPolicies]:
        """Look the origin up. If this fails by a bug of ours, refuse the origin and log that."""
        try:
            policies = await self._fetch_policies(origin, referrer_reach)
        except BarredError as error:
            return referrer_reach, self._bar(origin, referrer_reach, str(error))
        except Exception as error:
            logger.exception(
                "The policies of %(origin)s cannot be read: nothing of it is fetched",
                {"origin": origin},
            )
            robots = {
                "/robots.txt": PolicyFile(
                    due=self._clock() + BACK_OFF, copy=Fetched(status=0, error=repr(error))
                )
            }
            return referrer_reach, policies_of(origin, robots, self._clock())
        self._sites.put(origin, policies)
        self._observer.looked_up(origin, policies.site.files, policies.error)
        if policies.unreachable:
            self._warn(origin, policies.error)
        self._on_lookup(policies)
        return referrer_reach, policies

    def _warn(self, origin: str, error: str) -> None:
        """Warn about the first origin that is closed by this cause: there may be a million more."""
        cause = cause_of(error)
        if cause in self._told:
            return
        self._told.add(cause)
        logger.warning(
            "Nothing of %(origin)s is fetched: %(error)s. %(remedy)s"
            " `comity policy %(origin)s/` shows more."
            " Further sites with this cause are logged at level INFO.",
            {"origin": origin, "error": error, "remedy": cause.remedy},
        )

    async def _fetch_policies(self, origin: str, referrer_reach: Reach | None) -> OriginPolicies:
        files, renewed = await self._get_files(
            PolicyQuery(origin, self._paths, referrer_reach, renew_before=self.renew_before)
        )
        policies = policies_of(origin, files, self._clock())
        references, licenses = (
            policies.site.references(self._agent),
            policies.site.licenses(self._agent),
        )
        if len(references) > MAX_REFERENCES:
            logger.warning(
                "%(origin)s refers to %(number)d policy files, of which only %(most)d are read:"
                " everything is refused",
                {"origin": origin, "number": len(references), "most": MAX_REFERENCES},
            )
            references = references[:MAX_REFERENCES]
        if references or licenses:
            paths = tuple(dict.fromkeys((*references, *licenses)))
            reach = files["/robots.txt"].reach
            more = await self._get_files(
                PolicyQuery(
                    origin, paths, referrer_reach, reach, tuple(references), self.renew_before
                )
            )
            files, renewed = files | more[0], renewed | more[1]
            policies = policies_of(origin, files, self._clock(), references)
        if not renewed:
            self.count("from_store")
        return policies

    async def _get_files(self, query: PolicyQuery) -> tuple[dict[str, PolicyFile], frozenset[str]]:
        """Return the files, and the paths of the files that were just fetched.

        Call `overloaded` for each server that has too many requests and asks for a pause.
        """
        files, renewed = await self._files.get(query, self)
        for path in renewed:
            failure = files[path].failure
            if failure is not None and failure.status in TOO_MANY:
                seconds = retry_after(failure.headers, self._clock())
                if seconds is not None:
                    self._overloaded(
                        failure.url or url_of(query.origin, path), failure.status, seconds
                    )
        return files, renewed

    def _bar(self, origin: str, referrer_reach: Reach | None, error: str) -> OriginPolicies:
        """Remember that sites of this reach may not lead to the origin."""
        assert referrer_reach is not None
        robots = PolicyFile(due=self._clock() + MIN_LIFETIME, copy=Fetched(status=0, error=error))
        policies = replace(
            policies_of(origin, {"/robots.txt": robots}, self._clock()), barred_for=referrer_reach
        )
        self._barred[origin, referrer_reach] = policies
        return policies


class Sites(BoundedSize[str, OriginPolicies]):
    """The policies of the origins asked for last, within MAX_SITES and MAX_SITE_BYTES."""

    def __init__(self) -> None:
        super().__init__(MAX_SITES, MAX_SITE_BYTES, _size)


def _size(policies: OriginPolicies) -> int:
    return sum(len(file.body) for file in policies.site.files.values())


def policies_of(
    origin: str, files: Mapping[str, PolicyFile], now: float, references: Iterable[str] = ()
) -> OriginPolicies:
    """Return the policies that these files make at the moment `now`.

    `files`: by path, with robots.txt among them. `references`: the absolute URLs of further files
    without which everything is refused.
    """
    current = {}
    for path, file in files.items():
        url, fetched = url_of(origin, path), file.current(now)
        # The text of the response itself, so that memory has it once.
        current[fetched.url if fetched.url == url else url] = fetched
    needed = (current[url] for url in (f"{origin}/robots.txt", *references))
    missing = next(
        (file for file in needed if availability(file) is Availability.UNREACHABLE), None
    )
    failing = [
        file.failing_since
        for file in files.values()
        if availability(file.current(now)) is Availability.UNREACHABLE
    ]
    since = min((moment for moment in failing if moment), default=None)
    return OriginPolicies(
        site=Site(origin, current),
        fresh_until=min(file.counts_until(now) for file in files.values()),
        unreachable=missing is not None,
        error=failure_reason(missing) if missing else "",
        failing_since=since.timestamp() if since else 0.0,
        reach=files["/robots.txt"].reach,
        server_reach=_server_reach(files),
    )


def _server_reach(files: Mapping[str, PolicyFile]) -> Reach:
    """Return the reach of the origin's own server.

    A file from an inner address, even after redirects, shows an inner site: no other site can lead
    there.
    """
    return next(
        (file.reach for file in files.values() if file.reach is not Reach.PUBLIC), Reach.PUBLIC
    )
