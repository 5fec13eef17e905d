"""The policies of origins, for one crawl: one look-up under way for an origin (docs/fetching.md).

How it works. Whoever wants the policies of an origin goes down as many steps as it has to:

    cached(origin)   in memory, as long as they are fresh
    get(origin)      the look-up that is under way for the origin, or a new one
    PolicyFiles      what another crawl of this process looks up at the same time, or has just looked up (files.py)
    PolicyStore      the files on disk, each as long as it is fresh (store.py, policy_copy.py)
    the server       a connection for all files of the origin (client.py), redirects (redirects.py), addresses
                     that may be asked (network.py, reach.py)

A look-up has two rounds: the files with names of their own, robots.txt first, and then those that these refer to. What robots.txt
refuses or fails to tell ends it early. Its outcome is one `Policies`, which never changes: newer ones take its place.

Who asks matters. A site may not lead to an inner address (SEC-7): then the outcome is barred for this site and its like, is kept
apart, and says nothing of the origin to the operator, who may ask there. So callers say who leads them there (`referrer_reach`),
and a look-up that began for somebody else is not taken for theirs.

A look-up raises nothing: what fails by a mistake of ours refuses the origin, and says so. ClosingError tells callers that the
crawl ends and nothing was learnt."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from comity.bounded import Bounded, BoundedSize
from comity.gate.fetching.causes import Cause, cause_of
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

MAX_SITES = 10_000  # origins that are kept in memory; the store has them all
MAX_SITE_BYTES = (
    32 * 1024 * 1024
)  # octets of their policy files; compiled they take up to three times as much


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The policies of an origin, and until when they may be used without asking again."""

    site: Site
    fresh_until: float  # seconds since the epoch; where `unreachable`, when it may be asked again
    unreachable: (
        bool  # a file that counts could not be had and no copy stands in: everything is refused
    )
    error: str = ""  # where `unreachable` or `barred_for` somebody: what happened
    failing_since: float = (
        0.0  # seconds since the epoch, where a file cannot be fetched; 0: unknown, or none fails
    )
    reach: Reach = Reach.PUBLIC  # of the server that gave robots.txt: for what the policies lead to
    server_reach: Reach = (
        Reach.PUBLIC
    )  # of the origin's own server, as far as it is known: for who leads there
    barred_for: Reach | None = (
        None  # the site that led there, which may not: nothing may be asked for, nor is anything known
    )

    def seen_from(self, referrer_reach: Reach | None) -> Policies:
        """The same policies as who leads to their origin has to see them: the reach of a site, None for the operator."""
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
    """`cached` answers from memory; `get` asks the store and then the server."""

    def __init__(
        self,
        run: Run,
        files: PolicyFiles,
        agent: Agent,
        *,
        paths: Iterable[str] = WELL_KNOWN,
        looked_up: Callable[[Policies], None] = lambda policies: None,
        overloaded: Callable[[str, int, float], object] = lambda url, status, seconds: None,
        observer: Observer = Observer(),  # noqa: B008  # it has no state
    ) -> None:
        """`agent`: who asks; some files are named for some agents only. `paths`: of the policy files of an origin, robots.txt
        among them. `looked_up`: is called with the policies whenever they were looked up. `overloaded`: is called with the URL of
        a file, the status that came instead of it, and the seconds for which its server wants to be left alone."""
        self.renew_before = 0.0  # seconds since the epoch: a copy that was confirmed earlier is asked for again, however fresh
        self._on_lookup = looked_up
        self._overloaded = overloaded
        self._observer = observer
        self._run = run
        self._files = files
        self._agent = agent
        self._clock = files.clock
        self._paths = tuple(paths)
        self._sites = Sites()
        self._barred: Bounded[tuple[str, Reach], Policies] = Bounded(
            MAX_SITES
        )  # by origin and who led there
        self._lost: Bounded[str, None] = Bounded(
            MAX_SITES
        )  # URLs of files that could not be had when they were asked for last
        self._flights: Flights[tuple[Reach | None, Policies]] = Flights(
            run
        )  # by origin: for whom, and what
        self._is_closed = False
        self._told: set[Cause] = set()  # of unreachable policies, each with a warning

    def cached(self, origin: str, referrer_reach: Reach | None = None) -> Policies | None:
        """The policies where they are in memory and fresh. `referrer_reach`: that of the site that leads to the origin, None
        where the operator asks."""
        policies = self._sites.get(origin)
        now = self._clock()
        if policies and now < policies.fresh_until <= now + DAY:
            return policies.seen_from(referrer_reach)
        barred = (
            self._barred.get((origin, referrer_reach))
            if self._barred and referrer_reach is not None
            else None
        )
        return barred if barred and now < barred.fresh_until <= now + DAY else None

    async def get(self, origin: str, referrer_reach: Reach | None = None) -> Policies:
        """The policies, fetched where needed. Raises ClosingError when the crawl ends meanwhile, nothing else.

        `referrer_reach`: that of the site that leads to the origin, None where the operator asks. An origin to which a site may
        not lead is remembered as such for this site and its like only: the operator may ask for it."""
        while (policies := self.cached(origin, referrer_reach)) is None:
            flight = self._flights.get(origin) or self._flights.begin(
                origin, self._look_up(origin, referrer_reach)
            )
            asker, policies = await self._flights.wait(flight)
            if asker is referrer_reach:
                break
        return policies.seen_from(referrer_reach)

    async def for_url(self, url: str, referrer_reach: Reach | None = None) -> Policies | None:
        """The policies of the URL's origin, as of `get`; None where it has no origin."""
        origin = origin_or_empty(url)
        if not origin:
            return None
        return self.cached(origin, referrer_reach) or await self.get(origin, referrer_reach)

    async def first_taken(
        self, url: str, uses: Iterable[str], moment: datetime
    ) -> dict[str, datetime]:
        """The moments when an item of the URL was first taken for each of these uses: at this time, where it never was before,
        and long ago, where nobody knows."""
        uses = tuple(uses)
        long_ago = dict.fromkeys(uses, datetime.min.replace(tzinfo=UTC))
        consequence = f"permissions for some days from the first use of {url} count as over"
        return await self._files.ask_store(
            long_ago, consequence, self, self._files.store.first_taken, url, uses, moment
        )

    async def requests_action(self, url: str, action: str, sha256: str, moment: datetime) -> bool:
        """Records that a site asks for the action on the URL. `sha256`: of the file that asks. False where the same file has
        asked for it before."""
        consequence = f"nobody will know that {action} of {url} was asked for"
        call = self._files.store.requests_action
        return await self._files.ask_store(
            True, consequence, self, call, url, action, sha256, moment
        )

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self._flights.close()
            await self._files.leave()

    def count(self, name: str, number: int = 1, place: str = "") -> None:
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
    ) -> tuple[Reach | None, Policies]:
        """Look the origin up. What fails by a mistake of ours refuses it, and says so."""
        try:
            policies = await self._looked_up(origin, referrer_reach)
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
        """Warn of the first origin that a cause closes: there may be a million."""
        cause = cause_of(error)
        if cause in self._told:
            return
        self._told.add(cause)
        logger.warning(
            "Nothing of %(origin)s is fetched: %(error)s. %(remedy)s `scrapy policy %(origin)s/` shows more. Further sites with"
            " this cause are logged at level INFO.",
            {"origin": origin, "error": error, "remedy": cause.remedy},
        )

    async def _looked_up(self, origin: str, referrer_reach: Reach | None) -> Policies:
        files, renewed = await self._have(
            PolicyQuery(origin, self._paths, referrer_reach, renew_before=self.renew_before)
        )
        policies = policies_of(origin, files, self._clock())
        references, licenses = (
            policies.site.references(self._agent),
            policies.site.licenses(self._agent),
        )
        if len(references) > MAX_REFERENCES:
            logger.warning(
                "%(origin)s refers to %(number)d policy files, of which only %(most)d are read: everything is refused",
                {"origin": origin, "number": len(references), "most": MAX_REFERENCES},
            )
            references = references[:MAX_REFERENCES]
        if references or licenses:
            paths = tuple(dict.fromkeys((*references, *licenses)))
            reach = files["/robots.txt"].reach
            more = await self._have(
                PolicyQuery(
                    origin, paths, referrer_reach, reach, tuple(references), self.renew_before
                )
            )
            files, renewed = files | more[0], renewed | more[1]
            policies = policies_of(origin, files, self._clock(), references)
        if not renewed:
            self.count("from_store")
        return policies

    async def _have(self, query: PolicyQuery) -> tuple[dict[str, PolicyFile], frozenset[str]]:
        """The files, and the paths of those that were just asked for."""
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

    def _bar(self, origin: str, referrer_reach: Reach | None, error: str) -> Policies:
        assert referrer_reach is not None
        robots = PolicyFile(due=self._clock() + MIN_LIFETIME, copy=Fetched(status=0, error=error))
        policies = replace(
            policies_of(origin, {"/robots.txt": robots}, self._clock()), barred_for=referrer_reach
        )
        self._barred[origin, referrer_reach] = policies
        return policies


class Sites(BoundedSize[str, Policies]):
    """The origins that were asked for last, within MAX_SITES and MAX_SITE_BYTES."""

    def __init__(self) -> None:
        super().__init__(MAX_SITES, MAX_SITE_BYTES, _size)


def _size(policies: Policies) -> int:
    return sum(len(file.body) for file in policies.site.files.values())


def policies_of(
    origin: str, files: Mapping[str, PolicyFile], now: float, references: Iterable[str] = ()
) -> Policies:
    current = {url_of(origin, path): file.current(now) for path, file in files.items()}
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
    return Policies(
        site=Site(origin, current),
        fresh_until=min(file.counts_until(now) for file in files.values()),
        unreachable=missing is not None,
        error=failure_reason(missing) if missing else "",
        failing_since=since.timestamp() if since else 0.0,
        reach=files["/robots.txt"].reach,
        server_reach=_server_reach(files),
    )


def _server_reach(files: Mapping[str, PolicyFile]) -> Reach:
    """A file that was had at an inner address, over whatever redirects, is one of an inner site: no other could lead there."""
    return next(
        (file.reach for file in files.values() if file.reach is not Reach.PUBLIC), Reach.PUBLIC
    )
