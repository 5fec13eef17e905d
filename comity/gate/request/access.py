"""Decide whether a request may go out (`Access.decide`), and remember how it was admitted.

A request is decided on up to four times, because the grounds of the decision may change:

1. when it enters the queue, if its policies are already known: a refused request need not wait;
2. when it leaves the queue, because the policies may have been renewed;
3. in the downloader middleware, because an earlier middleware may have changed the request;
4. before it is sent, because a later middleware may have changed it.

Each step calls `decide` or `decide_again`. They judge by the site's files again only if one of
these has changed since the last answer:

    policies    the Site object: the policies were fetched or renewed
    request     URL or method; with `Site.asks_facts` also its declarations and its session
    time        with `Site.depends_on_time` (visiting hours, plug-in formats), or if the request
                has a session, because policies may ask for its age

So an unchanged request to a site with known policies is judged once. In doubt a request is judged
again, and an answer about an earlier form of the request is never used."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from urllib.parse import urlsplit
from weakref import ref

from comity.gate.fetching.causes import cause_of
from comity.gate.fetching.fetcher import OriginPolicies
from comity.gate.fetching.reach import Reach
from comity.gate.http import HeaderFields, Request, fields_of
from comity.gate.request.facts import KEY, RequestFacts, check_target, declaration
from comity.gate.request.passage import Answer, Outgoing, Passage, Passages, Question
from comity.gate.request.referrals import Referrals
from comity.gate.request.sessions import DeclaredSession, Sessions
from comity.gate.run.observer import Observer
from comity.gate.run.surroundings import Stats
from comity.policies import Agent, Decision, PolicyError, Reason, Site, Source, Verdict
from comity.policies.answers.request import PLAIN, Facts
from comity.policies.answers.rule import RULES
from comity.policies.document.offer import PAYMENT_REQUIRED, Offer
from comity.policies.syntax.urls import origin_or_empty

logger = logging.getLogger(__name__)

# Schemes of the operator's own data. Such data has no site, and so no policies.
OWN_SCHEMES = ("data", "file", "s3")

_WITHOUT_SESSION = "comity.session"
MAX_PRICES = 100  # that are counted separately

# Media types of sitemaps. Many servers forbid indexing of sitemaps themselves by X-Robots-Tag.
_LISTS = (b"application/xml", b"text/xml", b"application/gzip", b"application/x-gzip")


class Access:
    """The decisions about the requests of one crawl."""

    def __init__(
        self,
        passages: Passages,
        stats: Stats,
        facts: RequestFacts,
        agent: Agent,
        referrals: Referrals,
        sessions: Sessions,
        *,
        skip_unusable: bool,
        observer: Observer = Observer(),  # noqa: B008  # Observer has no state
    ) -> None:
        """`skip_unusable`: do not crawl sites that refuse every declared use."""
        self.agent = agent
        self._passages = passages
        self._stats = stats
        self._observer = observer
        self._referrals = referrals
        self._sessions = sessions
        self._facts = facts
        # If True, the header fields of a response are checked for refusals too.
        self.skips_unusable = skip_unusable and bool(agent.uses)
        self.first_refused = ""  # URL of the first refused request; "": no request was refused
        # Origins that are not crawled because they refuse every declared use.
        self._reported: set[str] = set()
        # Host of a session that was not used, and the rule that refused the session.
        self._reported_sessions: set[tuple[str, str]] = set()
        self._prices: set[str] = set()  # prices of offers that have a statistic

    def exempt(self, request: Request) -> None:
        """Do not refuse the request because its site permits no declared use.

        Such a request is not made for its own content: a permission requires it, or a page embeds
        its response."""
        self._passages[ref(request)].is_exempt = True

    def expect_file(self, request: Request) -> None:
        """Note that the response is a file of an item, so that no links are read from it.

        For other responses, `refused_by_headers` never refuses a sitemap."""
        self._passages[ref(request)].is_file = True

    def decide(
        self, policies: OriginPolicies | None, request: Request, *, waits: bool = False
    ) -> Decision:
        """Return the decision about the request.

        `policies`: the policies of the request's origin. None means that its URL has no origin.
        `waits`: True if the request will be decided on again before it goes out."""
        passage = self._passages[ref(request)]
        if policies is not None and policies.barred_for is None:
            if not waits:
                passage.site = policies.site
            return self._decide(policies.site, request, passage).decision
        decision = self._refuse_referral(policies, request)
        if decision is None:
            decision = _decide_without_origin(request.url)
        passage.site = None
        passage.answer = Answer(Question(request.url, request.method, PLAIN, None), None, decision)
        return decision

    def decide_again(self, request: Request) -> Decision | None:
        """Return the decision about the request in its present form, a moment after `decide`.

        The policies of that last decision apply. None means that there was no last decision, or
        that it was about another URL or method, or deferred the request."""
        passage = self._passages[ref(request)]
        answer = passage.answer
        if answer is None or (answer.question.url, answer.question.method) != (
            request.url,
            request.method,
        ):
            return None
        if answer.decision.verdict is Verdict.DEFER:  # a deferred request is not handed out
            return None
        if passage.site is None or answer.decision.verdict is not Verdict.ALLOW:
            return answer.decision
        again = self._decide(passage.site, request, passage, is_same_moment=True).decision
        return again if again.verdict is not Verdict.DEFER else answer.decision

    def _refuse_referral(
        self, policies: OriginPolicies | None, request: Request
    ) -> Decision | None:
        """Refuse the request if the referring site may not link to its address; else None.

        `policies`: None, or policies of an address to which the site may not link."""
        if policies is not None:
            assert policies.barred_for is not None
            return inner_address(request.url, policies.barred_for, policies.error)
        if urlsplit(request.url).scheme in OWN_SCHEMES and not request.url.startswith("data:"):
            referrer_reach = self._referrals.referrer_reach(request)
            if referrer_reach is not None:
                return inner_address(
                    request.url, referrer_reach, "the data belongs to the operator"
                )
        return None

    def _decide(
        self, site: Site, request: Request, passage: Passage, *, is_same_moment: bool = False
    ) -> Answer:
        answer = passage.answer
        if answer is not None and (answer.site is None or answer.site() is not site):
            answer = None
        try:
            check_target(request, passage)
            asks_facts = site.asks_facts(self.agent) if answer is None else answer.asks_facts
            # The attributes of a Question. Most of them are only compared, so they stay a tuple.
            question = (
                self._question_of_facts(request, passage)
                if asks_facts or self._sessions.are_sent or KEY in request.meta
                else (request.url, request.method, PLAIN, None)
            )
        except PolicyError as error:  # a mistake in the spider's declaration
            source = Source(url=request.url, part="request.meta", text=str(error))
            decision = Decision(
                verdict=Verdict.DENY, reasons=(Reason(rule="comity.declaration", source=source),)
            )
            unclear = Answer(
                Question(request.url, request.method, PLAIN, None),
                ref(site),
                decision,
                passes=True,
            )
            passage.answer = unclear
            return unclear
        if answer is None or answer.question != question or (answer.passes and not is_same_moment):
            answer = passage.answer = self._judge(
                site, request, passage, Question(*question), asks_facts=asks_facts
            )
        return answer

    def _question_of_facts(
        self, request: Request, passage: Passage
    ) -> tuple[str, str, Facts, DeclaredSession | None]:
        """Collect the attributes of a Question whose answer may depend on facts.

        PolicyError: the declaration of the request is invalid."""
        session = (
            self._sessions.for_request(request)
            if self._sessions.are_sent and declaration(request).session
            else None
        )
        facts = self._facts.for_request(request, passage.session)
        return request.url, request.method, facts, session

    def _judge(
        self,
        site: Site,
        request: Request,
        passage: Passage,
        question: Question,
        *,
        asks_facts: bool,
    ) -> Answer:
        decision, session = self._by_session(site, request, question)
        if decision.verdict is not Verdict.DENY and self.skips_unusable and not passage.is_exempt:
            unusable = site.unusable(self.agent, declaration(request).purposes)
            if unusable is not None:
                self._report_unusable(site.origin, unusable)
                decision, session = unusable, None
        has_session = question.session is not None or question.facts.session is not None
        passes = has_session or site.depends_on_time(self.agent)
        return Answer(
            question,
            ref(site),
            decision,
            session,
            passes or decision.verdict is Verdict.DEFER,
            asks_facts,
        )

    def _by_session(
        self, site: Site, request: Request, question: Question
    ) -> tuple[Decision, DeclaredSession | None]:
        """Return the decision with the session of the host, and that session.

        If the policies refuse the session but not the request, the request goes without it."""
        session = question.session
        if session is None:
            return site.judge(self.agent, request.url, question.facts), None
        decision = site.judge(
            self.agent, request.url, self._facts.for_request(request, session.facts)
        )
        if decision.verdict is not Verdict.DENY:
            return decision, session
        without = site.judge(self.agent, request.url, question.facts)
        if without.verdict is Verdict.DENY:
            return decision, None
        reason = Reason(
            rule=_WITHOUT_SESSION,
            source=Source(url="COMITY_SESSIONS", part="setting", text=session.host),
        )
        return replace(without, reasons=(*without.reasons, reason, decision.reasons[0])), None

    def awaits_files(self, site: Site, request: Request) -> bool:
        """Return True if every declared use is refused only until a missing file can be fetched.

        False for requests that need no permitted use (see `exempt`)."""
        if not self.skips_unusable or self._passages[ref(request)].is_exempt:
            return False
        try:
            return site.awaits_files(self.agent, declaration(request).purposes)
        except PolicyError:  # `decide` refuses the request
            return False

    # Admitted requests

    def admit(self, request: Request) -> bool:
        """Remember the policies by which the request goes out. Return False if it has none.

        These policies apply to the response, even if the site's policies change meanwhile. The
        request must have been decided on in its present form. It has no policies if its URL has
        no origin."""
        passage = self._passages[ref(request)]
        answer, site = passage.answer, passage.site
        if site is None:
            return False
        assert answer is not None
        session = answer.session
        if session is not None:
            # Responses for a session must not get into the cache of HttpCacheMiddleware.
            request.meta["dont_cache"] = True
        facts = self._facts.for_request(request, session.facts if session else passage.session)
        passage.outgoing = Outgoing(
            request.url, site, answer.decision, facts, session, answer.asks_facts
        )
        return True

    def refusal_if_changed(self, request: Request) -> Decision | None:
        """Refuse the request if it was changed after its admission and may not go out; else None.

        A changed request that the policies of the same origin allow is admitted again."""
        passage = self._passages[ref(request)]
        answer, outgoing = passage.answer, passage.outgoing
        # A request without a site must not become a request to a site.
        if answer is not None and answer.site is None and answer.question.url != request.url:
            return _refuse_changed(request.url, answer.question.url)
        if outgoing is None or not self._has_changed(outgoing, request, passage):
            return None
        if origin_or_empty(request.url) != outgoing.site.origin:
            return _refuse_changed(request.url, outgoing.url)
        decision = self._decide(outgoing.site, request, passage).decision
        if decision.verdict is not Verdict.ALLOW:
            return decision
        self.admit(request)
        return None

    def _has_changed(self, outgoing: Outgoing, request: Request, passage: Passage) -> bool:
        """Return True if the URL, the method or the target of the request has changed.

        If the policies ask for facts, then kinds, automations, purposes and overriding methods
        count too. So does a proxy that may not get the session. Other credentials are ignored:
        Scrapy adds its cookies after the admission."""
        method = outgoing.facts.method
        if outgoing.url != request.url or (
            method != request.method and method != request.method.upper()
        ):
            return True
        if outgoing.session is not None and self._sessions.for_request(request) is None:
            return True
        try:
            check_target(request, passage)
            if not outgoing.asks_facts:
                return False
            facts = self._facts.for_request(request, passage.session)
        except PolicyError:
            return True
        return (facts.kinds, facts.automations, facts.purposes, facts.overriding) != (
            outgoing.facts.kinds,
            outgoing.facts.automations,
            outgoing.facts.purposes,
            outgoing.facts.overriding,
        )

    def refused_by_headers(self, request: Request, headers: HeaderFields) -> Decision | None:
        """Return the refusal if the header fields of the response refuse every declared use.

        None means that they permit a use, that the request need not be checked (`exempt`) or was
        not admitted, or that the response is a sitemap, which is only read for its links."""
        passage = self._passages[ref(request)]
        if not self.skips_unusable or passage.is_exempt:
            return None
        if (outgoing := passage.outgoing_to(request.url)) is None:
            return None
        if _lists_links(headers) and not passage.is_file:
            return None
        return outgoing.site.refused_by_headers(self.agent, request.url, fields_of(headers))

    # Statistics and log

    def record(self, request: Request, decision: Decision) -> None:
        """Count the decision, and log it if it is a refusal."""
        verdict, rule = decision.verdict.value, decision.reasons[0].rule
        inc_value = self._stats.inc_value
        inc_value(f"comity/access/{verdict}")
        inc_value(f"comity/access/{verdict}/{rule}")
        self._observer.decided(request.url, decision)
        if decision.verdict is Verdict.DENY:
            self.first_refused = self.first_refused or request.url
            if rule in RULES and RULES[rule].is_unreachable:
                inc_value(
                    f"comity/access/unreachable/{cause_of(decision.reasons[0].source.text).name}"
                )
            level = logging.ERROR if rule == "comity.declaration" else logging.INFO
            logger.log(
                level,
                "Refused %(request)s: %(decision)s",
                {"request": request, "decision": decision},
            )
        elif len(decision.reasons) > 2 and decision.reasons[-2].rule == _WITHOUT_SESSION:
            self._report_session(decision.reasons[-2].source.text, decision.reasons[-1])

    def refuse_for_offer(self, request: Request, offer: Offer) -> Decision:
        """Return, count and log the refusal of a response that asks for payment or a licence."""
        rule = "comity.payment" if offer.status == PAYMENT_REQUIRED else "comity.license"
        source = Source(url=request.url, part="offer", text=str(offer))
        decision = Decision(verdict=Verdict.DENY, reasons=(Reason(rule=rule, source=source),))
        self.record_stopped(request, decision)
        price = str(offer.price) if offer.price else "no price"
        if price not in self._prices and len(self._prices) >= MAX_PRICES:
            price = "other prices"
        self._prices.add(price)
        self._stats.inc_value(f"comity/offers/{offer.status}")
        self._stats.inc_value(f"comity/offers/{offer.status}/{price}")
        return decision

    def record_stopped(self, request: Request, decision: Decision) -> None:
        """Count and log the refusal of a response to an allowed request."""
        self._stats.inc_value("comity/access/stopped")
        self._stats.inc_value(f"comity/access/stopped/{decision.reasons[0].rule}")
        self._observer.stopped(request.url, decision)
        logger.info(
            "Refused the response to %(request)s: %(decision)s",
            {"request": request, "decision": decision},
        )

    def _report_unusable(self, origin: str, decision: Decision) -> None:
        if origin not in self._reported:
            self._reported.add(origin)
            self._stats.inc_value("comity/sites/unusable")
            logger.info(
                "%(origin)s is not crawled: it refuses every one of COMITY_USES (%(uses)s):"
                " %(decision)s. A licence goes into COMITY_ARRANGEMENTS;"
                " COMITY_SKIP_UNUSABLE=False crawls such sites",
                {"origin": origin, "uses": ", ".join(self.agent.uses), "decision": decision},
            )

    def _report_session(self, host: str, reason: Reason) -> None:
        """Count, and log once per host and rule, that a request goes without its session."""
        self._stats.inc_value(f"comity/session/left/{reason.rule}")
        if (host, reason.rule) not in self._reported_sessions:
            self._reported_sessions.add((host, reason.rule))
            logger.info(
                "Requests to %(host)s go without its session: %(why)s"
                " (further ones are not reported)",
                {"host": host, "why": reason},
            )


def _lists_links(headers: HeaderFields) -> bool:
    """Return True if the response is a sitemap, which is useful for its links alone."""
    return (headers.get("Content-Type") or b"").partition(b";")[0].strip().lower() in _LISTS


def too_slow(
    url: str,
    wait: float,
    max_delay: float,
    *,
    not_before: datetime | None = None,
    causes: Iterable[Reason] = (),
) -> Decision:
    """Return the refusal of a request that would have to wait longer than `max_delay`.

    `wait`, `max_delay`: the wait and the maximum wait, in seconds.
    `not_before`: the moment when the wait is over. `causes`: the reasons for the wait."""
    source = Source(url=url, text=f"{wait:.0f} s to wait, at most {max_delay:g}")
    reasons = (Reason(rule="comity.max-delay", source=source), *causes)
    return Decision(verdict=Verdict.DENY, reasons=reasons, not_before=not_before)


def _refuse_changed(url: str, before: str) -> Decision:
    """Return the refusal of a request that was changed after it was judged.

    `url`: the URL to which it goes now. `before`: the URL that was judged."""
    source = Source(url=url, part="request", text=f"judged as {before}")
    return Decision(verdict=Verdict.DENY, reasons=(Reason(rule="comity.changed", source=source),))


def inner_address(url: str, referrer_reach: Reach, cause: str) -> Decision:
    """Return the refusal of a request to an address to which the referring site may not link.

    SEC-7. `referrer_reach`: the reach of the referring site. `cause`: the end of the reason's text.
    """
    text = f"a site at a {referrer_reach.value} address leads there: {cause}"
    return Decision(
        verdict=Verdict.DENY,
        reasons=(
            Reason(rule="comity.inner-address", source=Source(url=url, part="request", text=text)),
        ),
    )


def _decide_without_origin(url: str) -> Decision:
    """Allow the operator's own data, and refuse every other URL without an origin."""
    is_own_data = urlsplit(url).scheme in OWN_SCHEMES
    reason = Reason(
        rule="comity.no-site" if is_own_data else "comity.scheme",
        source=Source(url=url, part="request"),
    )
    return Decision(verdict=Verdict.ALLOW if is_own_data else Verdict.DENY, reasons=(reason,))
