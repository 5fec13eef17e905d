"""What the components of one crawl share. The first component that asks makes it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urldefrag, urlsplit
from weakref import WeakKeyDictionary

from scrapy import signals
from scrapy.http import Headers, Request, Response
from scrapy.utils.asyncio import is_asyncio_available

from comity.crawler.action_requests import Actions
from comity.crawler.fetching.fetcher import Policies, PolicyFetcher
from comity.crawler.fetching.files import PolicyFiles
from comity.crawler.fetching.reach import Reach
from comity.crawler.fetching.store import PolicyStore
from comity.crawler.item_pages import ItemPages
from comity.crawler.item_tags import ItemTags
from comity.crawler.logs import show_nothing_hidden
from comity.crawler.options import ASYNCIO_REACTOR, Options, stop
from comity.crawler.pace.ledger import Budget
from comity.crawler.pace.limiter import Pace
from comity.crawler.page_resources import Resources
from comity.crawler.referrals import Referrals
from comity.crawler.request.facts import KEY, RequestFacts, declaration
from comity.crawler.request.sessions import DeclaredSession, Sessions
from comity.policies import Decision, Page, PolicyError, Reason, Site, Source, Verdict
from comity.policies.answers.fetched import Fetched
from comity.policies.answers.request import PLAIN, Facts
from comity.policies.document.document import Content
from comity.policies.document.nofollow import rel_nofollow
from comity.policies.syntax.urls import origin_or_empty

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from comity.crawler.frontier.scheduler import Scheduler

logger = logging.getLogger(__name__)


def open_store(options: Options) -> PolicyStore:
    """SettingsError where it cannot be used."""
    try:
        return PolicyStore(options.store)
    except PolicyError as error:
        stop(str(error))


def _files(crawler: Crawler, options: Options) -> PolicyFiles:
    """Of all crawls of this process that have the same store and client. SettingsError where the store cannot be used."""
    if not crawler.crawling:
        store = cast(PolicyStore, _Later(partial(open_store, options)))
        return PolicyFiles.of(store, options.client, timeout=options.policy_timeout)
    try:
        return PolicyFiles.joined(options.store, options.client, timeout=options.policy_timeout)
    except PolicyError as error:
        stop(str(error))


def open_budget(options: Options) -> Budget:
    """Of all crawls that share the store. SettingsError where it cannot be used."""
    try:
        return Budget(options.store.with_name("pace.sqlite"))
    except PolicyError as error:
        stop(str(error))


class _Later:
    """A store that is opened when something is asked of it; to close one that was never asked does nothing."""

    def __init__(self, open_it: Callable[[], Any]) -> None:
        self._open = open_it
        self._opened: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._opened is None:
            self._opened = self._open()
        return getattr(self._opened, name)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()


class Outgoing(NamedTuple):
    """By which policies a request goes out, and with what."""

    url: str
    site: Site
    decision: Decision
    facts: Facts
    session: DeclaredSession | None


class Runtime:
    """Options, policies and bookkeeping of one crawl."""

    def __init__(self, crawler: Crawler) -> None:
        # Tests of single components have no loop and no crawl; what they do not use is not opened.
        if crawler.crawling and not is_asyncio_available():
            stop(f"there is no asyncio loop: set TWISTED_REACTOR to {ASYNCIO_REACTOR}")
        show_nothing_hidden()  # Scrapy has made its handler by now
        self.options = Options.checked(crawler.settings)
        self._crawler = crawler
        files = _files(crawler, self.options)
        self.client = files.client
        self.agent = self.options.agent
        self.actions = Actions(crawler, self.agent)
        self.policies = PolicyFetcher(
            crawler,
            files,
            self.agent,
            found=lambda policies: self.actions.found(policies, self.policies),
            overloaded=self.penalize,
        )
        self.referrals = Referrals(crawler, self.policies, self.client, is_inner_allowed=self.options.inner == "allow")
        self._resources = Resources(crawler, self, self.client)
        budget = open_budget(self.options) if crawler.crawling else cast(Budget, _Later(partial(open_budget, self.options)))
        self.pace = Pace(crawler, budget, min_delay=self.options.min_delay, max_delay=self.options.max_delay)
        self.scheduler: Scheduler | None = None  # ours, where it is in use
        self.pages = ItemPages()
        self.tags = ItemTags(self.options.tag)
        self.sessions = Sessions(self.options.sessions, files.store)
        self._facts = RequestFacts(crawler.settings, self.agent)
        self._chosen: WeakKeyDictionary[Request, DeclaredSession] = WeakKeyDictionary()
        self._skipped: set[str] = set()  # origins that are not crawled, because nothing could be done with what they have
        self._left: set[tuple[str, str]] = set()  # host of a session that was not used, and the rule why: what was logged
        self._outgoing: WeakKeyDictionary[Request, Outgoing] = WeakKeyDictionary()
        self._pages: WeakKeyDictionary[Response, Page | None] = WeakKeyDictionary()
        self._whole: WeakKeyDictionary[Request, bytes] = WeakKeyDictionary()  # of responses that were stripped
        crawler.signals.connect(self._close, signals.spider_closed)

    @classmethod
    def of(cls, crawler: Crawler) -> Runtime:
        """It lives and dies with the crawler: a table of them would keep every crawler of a long process."""
        runtime: Runtime | None = vars(crawler).get("_comity")
        if runtime is None:
            runtime = vars(crawler)["_comity"] = cls(crawler)
        return runtime

    async def _close(self) -> None:
        await self.actions.close()
        await self._resources.close()
        await self.policies.close()
        self.pace.close()

    async def site(self, url: str, led_from: Reach | None = None) -> Site | None:
        """The site of the URL's origin, as of `policies_of`."""
        policies = await self.policies_of(url, led_from)
        return None if policies is None else policies.site

    async def policies_of(self, url: str, led_from: Reach | None = None) -> Policies | None:
        """The policies of the URL's origin, fetched where needed; None where it has no origin. Raises ClosingError.

        `led_from`: the reach of the site that leads there, None for what the operator asks for."""
        origin = origin_or_empty(url)
        if not origin:
            return None
        return self.policies.known(origin, led_from) or await self.policies.get(origin, led_from)

    def decide(self, policies: Policies | None, request: Request) -> Decision:
        """The decision by these policies; None: of a URL that has no origin."""
        if policies is not None and policies.barred_for is not None:
            return inner_address(request.url, policies.barred_for, policies.why)
        if policies is None and urlsplit(request.url).scheme in OWN_SCHEMES and not request.url.startswith("data:"):
            led_from = self.referrals.led_from(request)
            if led_from is not None:
                return inner_address(request.url, led_from, "it names data of the operator's own")
        return self.judge(None if policies is None else policies.site, request)

    def judge(self, site: Site | None, request: Request) -> Decision:
        """The decision by these policies."""
        if site is None:
            return _without_origin(request.url)
        decision = self._access(site, request)
        if decision.verdict is Verdict.DENY or not self._skips(request):
            return decision
        unusable = site.unusable(self.agent, declaration(request).purposes)
        if unusable is None:
            return decision
        self._record_unusable(site.origin, unusable)
        return unusable

    def _skips(self, request: Request) -> bool:
        """Whether the request is worth nothing where none of the declared uses is permitted."""
        return self.options.skip_unusable and bool(self.agent.uses) and not self._resources.asks_for(request)

    def refused_by_headers(self, request: Request, headers: Headers) -> Decision | None:
        """The refusal of every declared use, where the header fields of the response to a request that was admitted say so."""
        outgoing = self.outgoing(request)
        if outgoing is None or not self._skips(request) or _lists_links(headers):
            return None
        return outgoing.site.refused_by_headers(self.agent, request.url, _fields(headers))

    def _access(self, site: Site, request: Request) -> Decision:
        if not self.sessions and KEY not in request.meta and not site.asks_facts(self.agent):
            return site.judge(self.agent, request.url, PLAIN)
        try:
            return self._judged_by_facts(site, request)
        except PolicyError as error:  # of the spider
            source = Source(url=request.url, part="request.meta", text=str(error))
            return Decision(verdict=Verdict.DENY, reasons=(Reason(rule="comity.declaration", source=source),))

    def _judged_by_facts(self, site: Site, request: Request) -> Decision:
        """With the session of the host; where that is refused, without it. PolicyError where a declaration makes no sense."""
        self._chosen.pop(request, None)
        session = self.sessions.of(request.url) if self.sessions and declaration(request).session else None
        if session is None:
            return site.judge(self.agent, request.url, self._facts.of(request))
        decision = site.judge(self.agent, request.url, self._facts.of(request, session.facts))
        if decision.verdict is Verdict.DENY:
            without = site.judge(self.agent, request.url, self._facts.of(request))
            if without.verdict is Verdict.DENY:
                return decision
            left = Reason(rule=_LEFT, source=Source(url="COMITY_SESSIONS", part="setting", text=session.host))
            return replace(without, reasons=(*without.reasons, left, decision.reasons[0]))
        self._chosen[request] = session
        return decision

    def too_slow(self, url: str, wait: float) -> Decision:
        """The refusal of a request that cannot wait in the queue, where its host lets it out in `wait` seconds only."""
        text = f"{wait:.0f} s to wait, at most {self.options.max_delay:g}"
        return Decision(verdict=Verdict.DENY, reasons=(Reason(rule="comity.max-delay", source=Source(url=url, text=text)),))

    def penalize(self, url: str, status: int, seconds: float | None) -> float:
        """The host of the URL answered that it is asked too often. Seconds until it is asked again.

        `seconds`: that it wants; None: it does not say."""
        wait = self.pace.penalize(url, seconds)
        assert self._crawler.stats
        self._crawler.stats.inc_value(f"comity/pace/{status}")
        logger.info(
            "HTTP status %(status)d from %(url)s: its host is asked again in %(wait).0f s",
            {"status": status, "url": url, "wait": wait},
        )
        return wait

    def record(self, request: Request, decision: Decision) -> None:
        """Counts the decision, and logs it where it refuses."""
        stats = self._crawler.stats
        assert stats is not None
        rule = decision.reasons[0].rule
        stats.inc_value(f"comity/access/{decision.verdict.value}")
        stats.inc_value(f"comity/access/{decision.verdict.value}/{rule}")
        if decision.verdict is Verdict.DENY:
            level = logging.ERROR if rule == "comity.declaration" else logging.INFO
            logger.log(level, "Refused %(request)s: %(decision)s", {"request": request, "decision": decision})
        elif len(decision.reasons) > 2 and decision.reasons[-2].rule == _LEFT:
            self._record_left(*decision.reasons[-2:])

    def record_stopped(self, request: Request, decision: Decision) -> None:
        """Of a request that was allowed, the response is refused."""
        assert self._crawler.stats
        self._crawler.stats.inc_value("comity/access/stopped")
        self._crawler.stats.inc_value(f"comity/access/stopped/{decision.reasons[0].rule}")
        logger.info("Refused the response to %(request)s: %(decision)s", {"request": request, "decision": decision})

    def _record_unusable(self, origin: str, decision: Decision) -> None:
        if origin not in self._skipped:
            self._skipped.add(origin)
            assert self._crawler.stats
            self._crawler.stats.inc_value("comity/sites/unusable")
            logger.info(
                "%(origin)s is not crawled: it refuses every one of COMITY_USES (%(uses)s): %(decision)s. A licence goes into"
                " COMITY_ARRANGEMENTS; COMITY_SKIP_UNUSABLE=False crawls such sites",
                {"origin": origin, "uses": ", ".join(self.agent.uses), "decision": decision},
            )

    def _record_left(self, left: Reason, why: Reason) -> None:
        """A request goes without the session of its host."""
        assert self._crawler.stats
        self._crawler.stats.inc_value(f"comity/session/left/{why.rule}")
        host = left.source.text
        if (host, why.rule) not in self._left:
            self._left.add((host, why.rule))
            logger.info(
                "Requests to %(host)s go without its session: %(why)s (further ones are not reported)", {"host": host, "why": why}
            )

    def admit(self, request: Request, site: Site, decision: Decision) -> None:
        """Remembers by which policies the request goes out: they govern what comes back, whatever changes meanwhile."""
        session = self._chosen.pop(request, None)
        if session is not None:
            request.meta["dont_cache"] = True  # what only the session can see stays out of HttpCacheMiddleware
        facts = self._facts.of(request, session.facts if session else None)
        self._outgoing[request] = Outgoing(request.url, site, decision, facts, session)

    def refused_as_changed(self, request: Request) -> Decision | None:
        """The refusal of a request whose URL or method is another than was judged; None where it may go out as it is."""
        outgoing = self._outgoing.get(request)
        if outgoing is None or (outgoing.url, outgoing.facts.method) == (request.url, request.method.upper()):
            return None
        if origin_or_empty(request.url) != outgoing.site.origin:
            source = Source(url=request.url, part="request", text=f"judged as {outgoing.url}")
            return Decision(verdict=Verdict.DENY, reasons=(Reason(rule="comity.changed", source=source),))
        decision = self.judge(outgoing.site, request)
        if decision.verdict is not Verdict.ALLOW:
            return decision
        self.admit(request, outgoing.site, decision)
        return None

    def outgoing(self, request: Request) -> Outgoing | None:
        """None for what was not admitted as it is, such as policy files."""
        outgoing = self._outgoing.get(request)
        return outgoing if outgoing is not None and outgoing.url == request.url else None

    async def page(self, response: Response) -> Page | None:
        """What may be done with the response; None where its URL can have no policies. Raises ClosingError."""
        if response not in self._pages:
            self._pages[response] = self._judged(response, await self._site_of(response))
        return self._pages[response]

    def page_now(self, response: Response) -> Page | None:
        """The same, where it can be told at once. LookupError where the policies would have to be fetched."""
        if response not in self._pages:
            self._pages[response] = self._judged(response, self._site_known(response))
        return self._pages[response]

    async def stripped(self, request: Request, response: Response) -> Response:
        """The response without the elements that are refused for one of the declared uses. Raises ClosingError."""
        page = await self.page(response)
        if page is None or page.element_rules is None:
            return response
        body = page.element_rules.redacted(page.refusable(self.agent.uses))
        if body == response.body:
            return response
        self._whole[request] = response.body
        assert self._crawler.stats
        self._crawler.stats.inc_value("comity/responses/stripped")
        return response.replace(body=body)

    def rel_nofollow(self, response: Response) -> frozenset[str]:
        """The URLs that the page links with rel=nofollow only, canonical; none where that is not asked for."""
        if not self.options.rel_nofollow:
            return frozenset()
        return rel_nofollow(Content(_fields(response.headers), response.body), response.url)

    async def taken(self, response: Response, page: Page) -> Page:
        """The page, once something is made of it: when is remembered, and what goes with it is fetched. Raises ClosingError."""
        dated, wanted = page.dated, page.wanted
        if not dated and not wanted:
            return page
        site = await self._site_of(response)
        first_seen = await self.policies.first_taken(page.url, dated, datetime.now(UTC))
        asked = self._asked(response)
        origin = site.origin if site else asked.site.origin if asked else ""
        reach = (await self.policies.get(origin, self.referrals.led_to(response))).reach if wanted else Reach.PUBLIC
        resources = await self._resources.get(wanted, page.url, reach)
        return self._judged(response, site, first_seen=first_seen, resources=resources) or page

    def _asked(self, response: Response) -> Outgoing | None:
        """By what the response was asked for; None for what was not admitted."""
        return self._outgoing.get(response.request) if response.request else None

    def _asked_for(self, response: Response) -> Outgoing | None:
        """The same, where the response is of the page that was asked for."""
        asked = self._asked(response)
        return asked if asked and urldefrag(asked.url)[0] == urldefrag(response.url)[0] else None

    async def _site_of(self, response: Response) -> Site | None:
        """The policies of the response's own URL."""
        if own := self._asked_for(response):
            return own.site
        return await self.site(response.url, self.referrals.led_to(response))

    def _site_known(self, response: Response) -> Site | None:
        """The same. LookupError where they would have to be fetched."""
        if own := self._asked_for(response):
            return own.site
        asked = self._asked(response)
        origin = origin_or_empty(response.url)
        if not origin:
            if asked:
                return None
            raise LookupError(f"{response} has no policies")
        known = self.policies.known(origin, self.referrals.led_to(response))
        if not asked or not known:
            raise LookupError(f"{response} is not what was asked for: nobody knows yet what may be done with it")
        return known.site

    def _judged(
        self,
        response: Response,
        site: Site | None,
        *,
        first_seen: Mapping[str, datetime] | None = None,
        resources: Mapping[str, Fetched] | None = None,
    ) -> Page | None:
        """`site`: the policies of its own URL. Where that is not the one that was asked for, as where a browser was led
        elsewhere, the policies of both bind."""
        asked = self._asked(response)
        whole = self._whole.get(response.request) if response.request else None

        def judged(site: Site, url: str, decision: Decision | None) -> Page:
            return site.page(
                self.agent,
                url,
                status=response.status,
                headers=_fields(response.headers),
                body=response.body if whole is None else whole,
                first_seen=first_seen,
                resources=resources,
                access=decision,
                facts=asked.facts if asked else PLAIN,
            )

        first = judged(asked.site, asked.url, asked.decision) if asked else None
        if site is None or self._asked_for(response):
            page = first
        else:
            page = judged(site, response.url, None)
            page = page.asked_as(first) if first is not None else page
        if page is not None and page.element_rules is not None:
            uses = page.refusable(self.agent.uses)
            page.is_cut = whole is not None or (self.options.elements == "redact" and bool(page.element_rules.refused(uses)))
            if whole is not None:
                page.element_rules = page.element_rules.without(uses)
        return page


_LEFT = "comity.session"

# Media types of sitemaps. Many servers say of those, by X-Robots-Tag, that they are not to be indexed.
_LISTS = (b"application/xml", b"text/xml", b"application/gzip", b"application/x-gzip")


def _lists_links(headers: Headers) -> bool:
    """Whether the response may be worth having for its links alone."""
    return (headers.get("Content-Type") or b"").partition(b";")[0].strip().lower() in _LISTS


def _fields(headers: Headers) -> Iterator[tuple[bytes, bytes]]:
    return ((name, value) for name, values in headers.items() for value in values)


# Names of data that the operator has, not of sites: there is nobody to ask.
OWN_SCHEMES = ("data", "file", "s3")


def _without_origin(url: str) -> Decision:
    own = urlsplit(url).scheme in OWN_SCHEMES
    reason = Reason(rule="comity.no-site" if own else "comity.scheme", source=Source(url=url, part="request"))
    return Decision(verdict=Verdict.ALLOW if own else Verdict.DENY, reasons=(reason,))


def inner_address(url: str, led_from: Reach, why: str) -> Decision:
    """The refusal of a request that a site leads to and may not (SEC-7). `led_from`: the reach of the site."""
    text = f"a site at a {led_from.value} address leads there: {why}"
    return Decision(
        verdict=Verdict.DENY,
        reasons=(Reason(rule="comity.inner-address", source=Source(url=url, part="request", text=text)),),
    )
