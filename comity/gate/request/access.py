"""May a request go out? One question, `Access.decide`, and by what it was admitted.

A request is decided on where its way begins and again wherever something may have changed since: when it is put into the queue,
where the policies are known by then (what is refused waits for nothing); when it is handed out, as the policies may be others by
then; in the downloader middleware, as one before it may have changed the request; and before it is sent, as one after it may.
Each of these asks `decide` or `decide_again`, which judge by the site's files only where the answer can be another one:

    policies    another Site object: they were fetched, or renewed, since the last answer
    request     URL or method; and what `Site.asks_facts` makes matter of it, its declarations and its session
    time        where `Site.depends_on_time` says so (visiting hours, formats of others), or the age of a session counts

So an unchanged request of a site whose policies are known is judged once. Whoever cannot tell judges anew; and what no longer
fits the request is no answer."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary, WeakSet, ref

from comity.gate.fetching.causes import cause_of
from comity.gate.fetching.fetcher import Policies
from comity.gate.fetching.reach import Reach
from comity.gate.http import HeaderFields, Request, fields_of
from comity.gate.request.facts import KEY, RequestFacts, check_target, declaration
from comity.gate.request.referrals import Referrals
from comity.gate.request.sessions import DeclaredSession, Sessions
from comity.gate.run.observer import Observer
from comity.gate.run.surroundings import Stats
from comity.policies import Agent, Decision, PolicyError, Reason, Site, Source, Verdict
from comity.policies.answers.request import PLAIN, Facts
from comity.policies.answers.rule import RULES
from comity.policies.syntax.urls import origin_or_empty

logger = logging.getLogger(__name__)

# Names of data that the operator has, not of sites: there is nobody to ask.
OWN_SCHEMES = ("data", "file", "s3")

_WITHOUT_SESSION = "comity.session"

# Media types of sitemaps. Many servers say of those, by X-Robots-Tag, that they are not to be indexed.
_LISTS = (b"application/xml", b"text/xml", b"application/gzip", b"application/x-gzip")


class Outgoing(NamedTuple):
    """A request as it was admitted, and the policies that govern what comes back."""

    url: str
    site: Site
    decision: Decision
    facts: Facts
    session: DeclaredSession | None


class _Question(NamedTuple):
    """All that the answer about a request depends on, time apart."""

    url: str
    method: str
    facts: Facts  # without its session; PLAIN where nothing of it matters
    session: DeclaredSession | None  # that it may carry


class _Answer(NamedTuple):
    question: _Question
    site: (
        ref[Site] | None
    )  # who waits keeps no site in memory; None: the URL has no origin, or nobody may lead there
    decision: Decision
    session: DeclaredSession | None = None  # that it goes with
    passes: bool = False  # with time


class _State:
    """The last answer about a request, and how it went out."""

    __slots__ = ("answer", "outgoing", "site")

    def __init__(self) -> None:
        self.answer: _Answer | None = None
        self.site: Site | None = None  # that was asked; None: none was, or the request waits
        self.outgoing: Outgoing | None = None


class Access:
    """The decisions about the requests of one crawl."""

    def __init__(
        self,
        stats: Stats,
        facts: RequestFacts,
        agent: Agent,
        referrals: Referrals,
        sessions: Sessions,
        *,
        skip_unusable: bool,
        observer: Observer = Observer(),  # noqa: B008  # it has no state
    ) -> None:
        """`skip_unusable`: sites that refuse every declared use are not crawled."""
        self.agent = agent
        self._stats = stats
        self._observer = observer
        self._referrals = referrals
        self._sessions = sessions
        self._facts = facts
        self.skips_unusable = skip_unusable and bool(
            agent.uses
        )  # the header fields of a response may refuse it
        self._ancillary: WeakSet[Request] = WeakSet()
        self._files: WeakSet[Request] = WeakSet()
        self._requests: WeakKeyDictionary[Request, _State] = WeakKeyDictionary()
        self.first_refused = ""  # URL of the first request that was refused
        self._reported: set[str] = (
            set()
        )  # origins that are not crawled, because nothing could be done with what they have
        self._reported_sessions: set[tuple[str, str]] = (
            set()
        )  # host of a session that was not used, and the rule why

    def exempt(self, request: Request) -> None:
        """Let the request be asked for though no declared use of its site is permitted: a permission asks for it."""
        self._ancillary.add(request)

    def expect_file(self, request: Request) -> None:
        """Take what comes for a file that goes with an item: nobody looks for links in it."""
        self._files.add(request)

    def decide(
        self, policies: Policies | None, request: Request, *, waits: bool = False
    ) -> Decision:
        """The decision by the policies of the request's origin. None: its URL has no origin. `waits`: the request will be decided
        on again before it goes out."""
        barred = self._barred(policies, request)
        state = self._requests.get(request)
        if state is None:
            state = self._requests[request] = _State()
        if barred is None and policies is not None:
            if not waits:
                state.site = policies.site
            return self._decide(policies.site, request, state).decision
        decision = _without_origin(request.url) if barred is None else barred
        state.site = None
        state.answer = _Answer(_Question(request.url, request.method, PLAIN, None), None, decision)
        return decision

    def decide_again(self, request: Request) -> Decision | None:
        """The decision about the request as it is now, by the policies of the last one, that was made in the same moment.

        None where there is none by which it could go out, or where it was about another URL or method."""
        state = self._requests.get(request)
        answer = state.answer if state is not None else None
        if (
            state is None
            or answer is None
            or (answer.question.url, answer.question.method) != (request.url, request.method)
        ):
            return None
        if answer.decision.verdict is Verdict.DEFER:  # it was not handed out by that
            return None
        if state.site is None or answer.decision.verdict is not Verdict.ALLOW:
            return answer.decision
        again = self._decide(state.site, request, state, is_same_moment=True).decision
        return again if again.verdict is not Verdict.DEFER else answer.decision

    def _barred(self, policies: Policies | None, request: Request) -> Decision | None:
        """The refusal of a request to which nobody may lead who leads there."""
        if policies is not None:
            return (
                inner_address(request.url, policies.barred_for, policies.error)
                if policies.barred_for is not None
                else None
            )
        if urlsplit(request.url).scheme in OWN_SCHEMES and not request.url.startswith("data:"):
            referrer_reach = self._referrals.referrer_reach(request)
            if referrer_reach is not None:
                return inner_address(
                    request.url, referrer_reach, "it names data of the operator's own"
                )
        return None

    def _decide(
        self, site: Site, request: Request, state: _State, *, is_same_moment: bool = False
    ) -> _Answer:
        try:
            question = self._question(site, request)
        except PolicyError as error:  # of the spider
            source = Source(url=request.url, part="request.meta", text=str(error))
            decision = Decision(
                verdict=Verdict.DENY, reasons=(Reason(rule="comity.declaration", source=source),)
            )
            unclear = _Answer(
                _Question(request.url, request.method, PLAIN, None),
                ref(site),
                decision,
                passes=True,
            )
            state.answer = unclear
            return unclear
        answer = state.answer
        if (
            answer is None
            or answer.site is None
            or answer.site() is not site
            or answer.question != question
            or (answer.passes and not is_same_moment)
        ):
            answer = state.answer = self._judge(site, request, question)
        return answer

    def _question(self, site: Site, request: Request) -> _Question:
        """PolicyError where what is declared makes no sense."""
        check_target(request)
        if not self._sessions and KEY not in request.meta and not site.asks_facts(self.agent):
            return _Question(request.url, request.method, PLAIN, None)
        session = (
            self._sessions.for_url(request.url)
            if self._sessions and declaration(request).session
            else None
        )
        return _Question(request.url, request.method, self._facts.for_request(request), session)

    def _judge(self, site: Site, request: Request, question: _Question) -> _Answer:
        decision, session = self._by_session(site, request, question)
        if decision.verdict is not Verdict.DENY and self._skips(request):
            unusable = site.unusable(self.agent, declaration(request).purposes)
            if unusable is not None:
                self._report_unusable(site.origin, unusable)
                decision, session = unusable, None
        has_session = question.session is not None or question.facts.session is not None
        passes = has_session or site.depends_on_time(self.agent)
        return _Answer(
            question, ref(site), decision, session, passes or decision.verdict is Verdict.DEFER
        )

    def _by_session(
        self, site: Site, request: Request, question: _Question
    ) -> tuple[Decision, DeclaredSession | None]:
        """The decision with the session of the host; where that is refused, without it."""
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
        """Return True if nothing can be done with the response until a missing policy file answers."""
        if not self._skips(request):
            return False
        try:
            return site.awaits_files(self.agent, declaration(request).purposes)
        except PolicyError:  # `decide` refuses the request
            return False

    def _skips(self, request: Request) -> bool:
        """True where the request is worth nothing if none of the declared uses is permitted."""
        return self.skips_unusable and request not in self._ancillary

    # What goes out

    def admit(self, request: Request) -> bool:
        """Remember by which policies the request goes out: they govern what comes back, whatever changes meanwhile.

        It has been decided on, as it is. False where its URL has no origin: then it has no policies."""
        state = self._requests[request]
        answer, site = state.answer, state.site
        if site is None:
            return False
        assert answer is not None
        session = answer.session
        if session is not None:
            request.meta["dont_cache"] = (
                True  # what only the session can see stays out of HttpCacheMiddleware
            )
        facts = self._facts.for_request(request, session.facts if session else None)
        state.outgoing = Outgoing(request.url, site, answer.decision, facts, session)
        return True

    def refusal_if_changed(self, request: Request) -> Decision | None:
        """The refusal of a request that is another than was admitted; None where it may go out as it is."""
        state = self._requests.get(request)
        if state is None:
            return None
        answer, outgoing = state.answer, state.outgoing
        if (
            answer is not None and answer.site is None and answer.question.url != request.url
        ):  # it was no site's
            return _changed(request.url, answer.question.url)
        if outgoing is None or not self._has_changed(outgoing, request):
            return None
        if origin_or_empty(request.url) != outgoing.site.origin:
            return _changed(request.url, outgoing.url)
        decision = self._decide(outgoing.site, request, state).decision
        if decision.verdict is not Verdict.ALLOW:
            return decision
        self.admit(request)
        return None

    def _has_changed(self, outgoing: Outgoing, request: Request) -> bool:
        """True where URL, method or, where that matters, the kind of the request are others. Credentials are not looked at: those
        of Scrapy's cookie jar come after the request was admitted."""
        if (outgoing.url, outgoing.facts.method) != (request.url, request.method.upper()):
            return True
        try:
            check_target(request)
            if not outgoing.site.asks_facts(self.agent):
                return False
            facts = self._facts.for_request(request)
        except PolicyError:
            return True
        return (facts.kinds, facts.automations, facts.purposes, facts.overriding) != (
            outgoing.facts.kinds,
            outgoing.facts.automations,
            outgoing.facts.purposes,
            outgoing.facts.overriding,
        )

    def outgoing(self, request: Request) -> Outgoing | None:
        """The request as it was admitted. None for what was not admitted as it is, such as policy files."""
        outgoing = self.admitted(request)
        return outgoing if outgoing is not None and outgoing.url == request.url else None

    def admitted(self, request: Request) -> Outgoing | None:
        """The same, whatever its URL is by now."""
        state = self._requests.get(request)
        return state.outgoing if state is not None else None

    def refused_by_headers(self, request: Request, headers: HeaderFields) -> Decision | None:
        """The refusal of every declared use, where the header fields of the response to a request that was admitted say so."""
        if not self._skips(request) or (outgoing := self.outgoing(request)) is None:
            return None
        if _lists_links(headers) and request not in self._files:
            return None
        return outgoing.site.refused_by_headers(self.agent, request.url, fields_of(headers))

    # What is counted and logged

    def record(self, request: Request, decision: Decision) -> None:
        """Count the decision, and log it where it refuses."""
        rule = decision.reasons[0].rule
        inc_value = self._stats.inc_value
        inc_value(f"comity/access/{decision.verdict.value}")
        inc_value(f"comity/access/{decision.verdict.value}/{rule}")
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

    def record_stopped(self, request: Request, decision: Decision) -> None:
        """Count and log the refusal of the response to a request that was allowed."""
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
                "%(origin)s is not crawled: it refuses every one of COMITY_USES (%(uses)s): %(decision)s. A licence goes into"
                " COMITY_ARRANGEMENTS; COMITY_SKIP_UNUSABLE=False crawls such sites",
                {"origin": origin, "uses": ", ".join(self.agent.uses), "decision": decision},
            )

    def _report_session(self, host: str, reason: Reason) -> None:
        """A request goes without the session of its host."""
        self._stats.inc_value(f"comity/session/left/{reason.rule}")
        if (host, reason.rule) not in self._reported_sessions:
            self._reported_sessions.add((host, reason.rule))
            logger.info(
                "Requests to %(host)s go without its session: %(why)s (further ones are not reported)",
                {"host": host, "why": reason},
            )


def _lists_links(headers: HeaderFields) -> bool:
    """True where the response may be worth having for its links alone."""
    return (headers.get("Content-Type") or b"").partition(b";")[0].strip().lower() in _LISTS


def too_slow(
    url: str,
    wait: float,
    max_delay: float,
    *,
    not_before: datetime | None = None,
    causes: Iterable[Reason] = (),
) -> Decision:
    """The refusal of a request that cannot wait in the queue, where its host lets it out in `wait` seconds only.

    `not_before`: the moment when that is over. `causes`: the reasons that it would have to wait for."""
    source = Source(url=url, text=f"{wait:.0f} s to wait, at most {max_delay:g}")
    reasons = (Reason(rule="comity.max-delay", source=source), *causes)
    return Decision(verdict=Verdict.DENY, reasons=reasons, not_before=not_before)


def _changed(url: str, before: str) -> Decision:
    """The refusal of a request that has become another site's. `before`: the URL that was judged."""
    source = Source(url=url, part="request", text=f"judged as {before}")
    return Decision(verdict=Verdict.DENY, reasons=(Reason(rule="comity.changed", source=source),))


def inner_address(url: str, referrer_reach: Reach, cause: str) -> Decision:
    """The refusal of a request that a site leads to and may not (SEC-7). `referrer_reach`: the reach of the site."""
    text = f"a site at a {referrer_reach.value} address leads there: {cause}"
    return Decision(
        verdict=Verdict.DENY,
        reasons=(
            Reason(rule="comity.inner-address", source=Source(url=url, part="request", text=text)),
        ),
    )


def _without_origin(url: str) -> Decision:
    is_own_data = urlsplit(url).scheme in OWN_SCHEMES
    reason = Reason(
        rule="comity.no-site" if is_own_data else "comity.scheme",
        source=Source(url=url, part="request"),
    )
    return Decision(verdict=Verdict.ALLOW if is_own_data else Verdict.DENY, reasons=(reason,))
