"""What the components of one crawl share. The first component that asks makes it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary, ref

from parsel import Selector
from scrapy import signals
from scrapy.http import Headers, HtmlResponse, Request, Response
from scrapy.utils.asyncio import is_asyncio_available

from comity.crawler.actions import Actions
from comity.crawler.addresses import Reach
from comity.crawler.budget import Budget
from comity.crawler.fetcher import PolicyFetcher
from comity.crawler.item_tags import ItemTags
from comity.crawler.items import ItemPages
from comity.crawler.options import ASYNCIO_REACTOR, Options, stop
from comity.crawler.pace import Pace
from comity.crawler.request_facts import KEY, RequestFacts, declaration
from comity.crawler.resources import Resources
from comity.crawler.sessions import DeclaredSession, Sessions
from comity.crawler.store import PolicyStore
from comity.policies import Decision, Page, PolicyError, Reason, Site, Source, Verdict
from comity.policies.content import Content
from comity.policies.links import rel_nofollow
from comity.policies.requests import PLAIN, Facts
from comity.policies.urls import origin_of
from comity.policies.values import Fetched

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from comity.crawler.scheduler import Scheduler

logger = logging.getLogger(__name__)


def open_store(options: Options) -> PolicyStore:
    """SettingsError where it cannot be used."""
    try:
        return PolicyStore(options.store)
    except PolicyError as error:
        stop(str(error))


def _budget(options: Options) -> Budget:
    """Of all crawls that share the store. SettingsError where it cannot be used."""
    try:
        return Budget(options.store.with_name("pace.sqlite"))
    except PolicyError as error:
        stop(str(error))


T = TypeVar("T")


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


def _now_or_later(crawler: Crawler, open_it: Callable[[Options], T], options: Options) -> T:
    return open_it(options) if crawler.crawling else cast(T, _Later(partial(open_it, options)))


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
        self.options = Options.checked(crawler.settings)
        store = _now_or_later(crawler, open_store, self.options)
        self.agent = self.options.agent
        self.actions = Actions(crawler, self.agent)
        self.policies = PolicyFetcher(
            crawler,
            store,
            self.agent,
            timeout=self.options.policy_timeout,
            found=lambda site: self.actions.found(site, self.policies),
        )
        self._resources = Resources(crawler, timeout=self.options.policy_timeout, patience=self.options.max_delay)
        budget = _now_or_later(crawler, _budget, self.options)
        self.pace = Pace(crawler, budget, min_delay=self.options.min_delay, max_delay=self.options.max_delay)
        self.scheduler: Scheduler | None = None  # ours, where it is in use
        self.pages = ItemPages()
        self.tags = ItemTags(self.options.tag)
        self.sessions = Sessions(self.options.sessions, store)
        self._facts = RequestFacts(crawler.settings, self.agent)
        self._chosen: WeakKeyDictionary[Request, DeclaredSession] = WeakKeyDictionary()
        self._skipped: set[str] = set()  # origins that are not crawled, because nothing could be done with what they have
        self._left: set[tuple[str, str]] = set()  # host of a session that was not used, and the rule why: what was logged
        self._outgoing: WeakKeyDictionary[Request, Outgoing] = WeakKeyDictionary()
        self._pages: WeakKeyDictionary[Response, Page | None] = WeakKeyDictionary()
        self._whole: WeakKeyDictionary[Request, bytes] = WeakKeyDictionary()  # of responses that were stripped
        self._crawler = crawler
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
        await self.policies.close()
        self.pace.close()

    async def site(self, url: str, led_from: Reach | None = None) -> Site | None:
        """The policies of the URL's origin, fetched where needed; None where it has no origin. Raises ClosingError.

        `led_from`: the reach of the site that leads there, None for what the operator asks for."""
        try:
            origin = origin_of(url)
        except ValueError:
            return None
        policies = self.policies.known(origin) or await self.policies.get(origin, led_from)
        return policies.site

    def judge(self, site: Site | None, request: Request) -> Decision:
        """The decision by these policies."""
        if site is None:
            return _without_origin(request.url)
        decision = self._access(site, request)
        if decision.verdict is Verdict.DENY or not self._skips(request):
            return decision
        unusable = site.unusable(self.agent)
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

    def outgoing(self, request: Request) -> Outgoing | None:
        """None for what was not admitted as it is, such as policy files."""
        outgoing = self._outgoing.get(request)
        return outgoing if outgoing is not None and outgoing.url == request.url else None

    async def page(self, response: Response) -> Page | None:
        """What may be done with the response; None where its URL can have no policies. Raises ClosingError."""
        if response not in self._pages:
            site, decision, facts = await self._governing(response)
            self._pages[response] = None if site is None else self._judged(response, site, decision, facts)
        return self._pages[response]

    def page_now(self, response: Response, *, untouched: bool = False) -> Page | None:
        """The same, where it can be told at once. LookupError where the policies would have to be fetched.

        `untouched`: the spider has not had the response yet, so that its tree is that of the body."""
        if response not in self._pages:
            outgoing = self._governs(response)
            if outgoing is None:
                raise LookupError(f"{response} is not what was asked for: nobody knows yet what may be done with it")
            tree = partial(_tree, ref(response)) if untouched else None
            self._pages[response] = self._judged(response, outgoing.site, outgoing.decision, outgoing.facts, parsed=tree)
        return self._pages[response]

    def knows(self, response: Response) -> bool:
        """Whether `page_now` does."""
        return response in self._pages or self._governs(response) is not None

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
        site, decision, facts = await self._governing(response)
        assert site
        first_seen = await self.policies.first_taken(page.url, dated, datetime.now(UTC))
        reach = (await self.policies.get(site.origin)).reach if wanted else Reach.PUBLIC
        resources = await self._resources.get(wanted, page.url, reach)
        return self._judged(response, site, decision, facts, first_seen=first_seen, resources=resources)

    async def _governing(self, response: Response) -> tuple[Site | None, Decision | None, Facts]:
        """The policies by which the response is judged, the decision by which it was asked for, and as what."""
        if outgoing := self._governs(response):
            return outgoing.site, outgoing.decision, outgoing.facts
        outgoing = self._outgoing.get(response.request) if response.request else None  # something else answered than was asked
        return await self.site(response.url), None, outgoing.facts if outgoing else PLAIN

    def _governs(self, response: Response) -> Outgoing | None:
        """By which the response was asked for; None where something else answered."""
        outgoing = self._outgoing.get(response.request) if response.request else None
        return outgoing if outgoing is not None and outgoing.url == response.url else None

    def _judged(
        self,
        response: Response,
        site: Site,
        decision: Decision | None,
        facts: Facts,
        *,
        first_seen: Mapping[str, datetime] | None = None,
        resources: Mapping[str, Fetched] | None = None,
        parsed: Callable[[str], Selector | None] | None = None,
    ) -> Page:
        whole = self._whole.get(response.request) if response.request else None
        page = site.page(
            self.agent,
            response.url,
            status=response.status,
            headers=_fields(response.headers),
            body=response.body if whole is None else whole,
            first_seen=first_seen,
            resources=resources,
            access=decision,
            facts=facts,
            parsed=parsed if whole is None else None,
        )
        if page.element_rules is not None:
            uses = page.refusable(self.agent.uses)
            page.is_cut = whole is not None or (self.options.elements == "redact" and bool(page.element_rules.refused(uses)))
            if whole is not None:
                page.element_rules = page.element_rules.without(uses)
        return page


def _tree(known: ref[Response], text: str) -> Selector | None:
    """What Scrapy makes of the text when the spider asks: it is parsed once. No page keeps its response alive: the selector is
    ours, for that of the response has a reference to it."""
    response = known()
    if isinstance(response, HtmlResponse) and response.text == text:
        return Selector(root=response.selector.root, type="html")
    return None


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
