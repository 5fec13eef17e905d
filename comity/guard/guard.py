"""The guard of a site, which passes requests on to the application or answers them.

    guard.check(incoming) -> Pass | Answer

The guard answers requests for a policy file, for all clients. It judges automated requests as
comity's crawlers judge their own requests. It passes all other requests on. Of a response to an
automated request it reads the page (pages.py), which may refuse the request too."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import product
from math import ceil
from threading import Lock, local
from typing import NamedTuple

from comity.forks import call_in_forks
from comity.guard.agents import MAX_NAMED, MAX_WORDS, Agents, Asking
from comity.guard.answers import Answer, Problems, ServedFile, status_of
from comity.guard.clients import ClientLimit, Clients, RequestCounts, client_of
from comity.guard.files import Files, OwnFiles
from comity.guard.incoming import (
    KEY_HEADER,
    MAX_TARGETS,
    Incoming,
    is_automated,
    list_members,
    mechanisms,
)
from comity.guard.pages import MAX_PAGE, Fields, HeldPage, Pages
from comity.guard.promises import FIELD, SAFE_METHODS, conflict
from comity.guard.proofs import AgentRow, AgentTable, Proofs, rows_of
from comity.policies.agent import Agent
from comity.policies.answers.decision import Decision, Finding, Reason, Source, Verdict
from comity.policies.answers.errors import PolicyError
from comity.policies.answers.rates import Rates
from comity.policies.answers.request import PURPOSE_HEADER, XHR, Facts, Session, facts_of
from comity.policies.document.document import Content
from comity.policies.formats import WELL_KNOWN
from comity.policies.site import Site
from comity.policies.syntax.path_patterns import normal_target
from comity.policies.syntax.printable import MAX_SHOWN, printable
from comity.policies.syntax.urls import spellings, target_of
from comity.policies.syntax.windows import Window
from comity.signatures.message import Signature, SignedRequest

LONG_FIELDS = "comity.long-fields"
ROBOTS = "/robots.txt"  # the file with Crawl-delay and Request-rate, which limit each client

logger = logging.getLogger(__name__)

# Maximum lengths of an automated request. A longer request is refused: the guard would read only
# a part of it, and a rule may refuse the rest.
MAX_TARGET = 8000  # characters; RFC 9110 section-4.1 requires support of at least 8000 octets
# Characters of all spellings of all possible targets, multiplied by the number of possible crawlers
# and by the number of possible methods.
MAX_JUDGED = 2 * MAX_TARGET
MAX_REFERER = 2048  # characters, if the Referer matters
MAX_PURPOSES = 64
MAX_NAME = 64  # characters of a method or purpose; no file lists a longer one


class Pass:
    """The permission to pass a request on to the application.

    `is_counted`: True if the request counts as in flight. Then call `end` when the response is
    complete, or the client has disconnected. Otherwise no call is necessary.
    `reads_pages`: True if the guard may have to read the response. Then call `hold`."""

    def __init__(
        self,
        end: Callable[[], None] | None = None,
        hold: Callable[[int, Fields], HeldPage | None] | None = None,
    ) -> None:
        self.is_counted = end is not None
        self.reads_pages = hold is not None
        self._end = end
        self._hold = hold
        self._remaining: int | None = None  # octets of the body that are not sent yet

    def hold(self, status: int, fields: Fields, *, has_body: bool) -> HeldPage | None:
        """Return the response if it has to wait until its page is read. None: send it as it comes.

        `fields`: the header fields of the response."""
        return self._hold(status, fields) if self._hold and has_body else None

    def begins(self, length: str | None, *, has_body: bool = True) -> None:
        """Note that the header fields are being sent. A response without a body ends here.

        `length`: the Content-Length. None: there is no such field."""
        if not has_body:
            self.end()
        elif length and length.isascii() and length.isdigit():
            self._remaining = int(length)
            self.sends(0)

    def sends(self, octets: int) -> None:
        """Note that `octets` more octets of the body are being sent.

        The request ends with the last octet of the Content-Length. For the client, the response is
        complete then, even if the server reports its end later."""
        if self._remaining is not None:
            self._remaining -= octets
            if self._remaining <= 0:
                self.end()

    def end(self) -> None:
        """End the request. Further calls have no effect."""
        end, self._end = self._end, None
        if end:
            end()


UNTOUCHED = Pass()


class Guard:
    """The guard of one origin. Several threads may use it.

    Attributes:
        origin: The origin, e.g. "https://example.com".
        findings: The findings in the policy files.
        passed: Rule that decided -> the number of automated requests that were passed on. A request
            that its page refuses is not one of them.
        refused: Rule that decided -> the number of requests that were refused.
        agents: Who asked, and whether it was proved -> the number of automated requests."""

    def __init__(
        self,
        origin: str,
        files: Files,
        *,
        is_automated: Callable[[Incoming], bool] = is_automated,
        mechanisms: Callable[[Incoming], Iterable[str]] = mechanisms,
        session: Callable[[Incoming], Session | None] = lambda _: None,
        client: Callable[[Incoming], str] = lambda incoming: client_of(incoming.peer),
        uses: Callable[[Incoming], Iterable[str]] = lambda _: (),
        promises: Callable[[Incoming], str] = lambda _: "",
        max_page: int = MAX_PAGE,
        purpose_header: str = PURPOSE_HEADER,
        key_header: str = KEY_HEADER,
        max_age: int = 3600,
        tolerance: float = 0.1,
        max_clients: int = 10_000,
        challenge: str = 'Bearer realm="automation"',
        problem_types: str = "urn:comity:rule:",
        counts: RequestCounts | None = None,
        proofs: Proofs | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Read the policy files. docs/guard.md describes the arguments.

        PolicyError: a file is missing, or every crawler would reject it, or an argument is
        invalid."""
        _check(max_age=max_age, tolerance=tolerance, max_clients=max_clients)
        own_files = OwnFiles(origin, files)
        self.origin = own_files.origin
        self._site = Site.from_files(self.origin, own_files.judging)
        published = Site.from_files(self.origin, own_files.fetched)
        # Pages are judged by themselves: the files have permitted the request before.
        self._pages_of_thread = _PagesOfThread(self.origin)
        self._documents = published.files
        self._pages = Pages(max_page)
        self.findings: tuple[Finding, ...] = published.findings
        self.passed: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.agents: Counter[AgentRow] = AgentTable()
        self._served = {
            path: ServedFile(body, media_type, max_age)
            for path, body, media_type in own_files.served
        }
        self._is_automated = is_automated
        self._mechanisms = mechanisms
        self._session = session
        self._client = client
        self._uses = uses
        self._promises = promises
        self._purpose_header = purpose_header.lower()
        self._key_header = key_header
        self._problems = Problems(types=problem_types, challenge=challenge)
        self._tolerance = tolerance
        self._counts = Clients(max_clients) if counts is None else counts
        self._clock = clock
        self._begin_process()
        call_in_forks(self._begin_process)
        self._proofs = proofs
        proved = proofs.urls if proofs is not None else ()
        self._agents = Agents({*published.crawler_names, *proved}, key_header)

    def _begin_process(self) -> None:
        self._lock = Lock()
        # Requests that have ended, and are not yet released.
        self._ended: deque[tuple[str, tuple[ClientLimit, ...]]] = deque()

    def check(self, incoming: Incoming) -> Pass | Answer:
        """Decide on a request: pass it on or answer it. This never raises for any request."""
        lengths = [len(target) for target in incoming.targets]
        is_long = (
            max(lengths) > MAX_TARGET or sum(lengths) > MAX_JUDGED or len(lengths) > MAX_TARGETS
        )
        targets = _Targets((), frozenset(), 0) if is_long else _targets_of(incoming.targets)
        if not is_long and (answer := self._policy_file(incoming, targets)):
            return answer
        if answer := self._unpromised(incoming):
            return answer
        asking = self._agents.asking(incoming.field("user-agent"))
        if not (
            self._purpose_header in incoming.fields
            or asking.is_named
            or self._is_automated(incoming)
        ):
            return UNTOUCHED
        methods = tuple(dict.fromkeys(method.upper()[:MAX_NAME] for method in incoming.methods))
        if is_long or targets.length * len(asking.agents) * len(methods) > MAX_JUDGED:
            return self._refuse_long(
                incoming, "comity.long-target", f"the target: at most {MAX_TARGET} characters"
            )
        facts = self._facts(incoming)
        if too_long := _too_long(asking, facts):
            return self._refuse_long(incoming, LONG_FIELDS, too_long)
        if refusal := self._unproved(incoming, asking):
            return refusal
        client = self._client(incoming)
        kinds = [facts._replace(method=method) for method in methods]
        with self._lock:
            self._release_ended()
            judged = self._judge(incoming, client, kinds, targets.judged, asking.agents)
        self._settle()
        return judged

    def _unproved(self, incoming: Incoming, asking: Asking) -> Answer | None:
        """Note who asks, and return the refusal of a crawler's name that is not proved."""
        signatures: tuple[Signature, ...] = ()
        failure = None
        if self._proofs is not None:
            request = SignedRequest(
                incoming.method.upper(), self.origin + incoming.target, dict(incoming.fields)
            )
            signatures = self._proofs.check(request, self._clock())
            failure = self._proofs.failure(asking.names, signatures)
        with self._lock:
            self.agents.update(rows_of(self._proofs, asking.names, signatures))
            if failure is None:
                return None
            source = Source(url=self.origin, part="request", text=failure.detail)
            reason = Reason(rule=failure.rule, source=source)
            answer = self._refuse(incoming, (reason,), f"deny: {reason}", failure.wait)
        self._settle()
        return answer

    def _policy_file(self, incoming: Incoming, targets: _Targets) -> Pass | Answer | None:
        """Return the answer if the request is for a policy file of the site.

        Return UNTOUCHED for a plain GET or HEAD of a policy file that the site does not have: the
        application answers. Return None for all other requests, which `check` must judge: for
        another target, and for one that an application may read as several targets."""
        path, *others = {target.partition("?")[0] for target in targets.spellings}
        if others:
            return None
        if path in self._served:
            return self._served[path].answer(incoming.method, incoming.fields)
        is_plain = (
            incoming.method in ("GET", "HEAD")
            and targets.spellings.issubset(WELL_KNOWN)
            and len(incoming.methods) == 1
        )
        return UNTOUCHED if is_plain else None

    def _unpromised(self, incoming: Incoming) -> Answer | None:
        """Return the refusal of a request whose preferences for its content the site cannot keep.

        This judges the requests of people too: the preferences are those of the content's author.
        """
        if FIELD not in incoming.fields or SAFE_METHODS.issuperset(
            method.upper() for method in incoming.methods
        ):
            return None
        requested = incoming.field(FIELD)
        problem = conflict(requested, self._promises(incoming))
        if not problem:
            return None
        text = f"Content-Usage: {_loggable(requested)}"
        source = Source(url=self.origin, part="request", text=text)
        reason = Reason(rule="comity.promise", source=source)
        return self._refuse_alone(incoming, reason, f"deny: {reason}: {problem}")

    def _facts(self, incoming: Incoming) -> Facts:
        facts = facts_of(
            method="",  # set later: each possible method is judged
            kind=None,
            automations=self._mechanisms(incoming),
            purposes=list_members(incoming.field(self._purpose_header)),
            fields=incoming.fields,
            key_header=self._key_header,
            referer=incoming.field("referer") or None,
            session=self._session(incoming),
        )
        facts = facts._replace(overriding=())  # the judged methods include them
        # The Referer matters for XHR only.
        return facts if XHR in facts.kinds else facts._replace(referer=None)

    def _judge(
        self,
        incoming: Incoming,
        client: str,
        kinds: list[Facts],
        targets: tuple[str, ...],
        agents: tuple[Agent, ...],
    ) -> Pass | Answer:
        """Judge the request for each agent, method and target that it may have, and count it.

        The request passes if all of these judgements allow it, and all of their limits permit one
        more request of the client."""
        now = self._clock()
        moment = datetime.fromtimestamp(now, UTC)
        decisions = [
            self._site.judge(agent, self.origin + target, facts, moment)
            for agent, facts, target in product(agents, kinds, targets)
        ]
        if refusing := [
            decision for decision in decisions if decision.verdict is not Verdict.ALLOW
        ]:
            return self._refuse_by(incoming, refusing, now)
        limits: dict[str, ClientLimit] = {}
        for limit in (
            limit
            for agent, target in product(agents, targets)
            for limit in self._limits(agent, self.origin + target)
        ):
            limits[limit.key] = limits[limit.key].join(limit) if limit.key in limits else limit
        permitted = tuple(limits.values())
        too_many = self._counts.claim(client, permitted, now)
        if too_many:
            source = Source(url=self.origin + too_many.limit.path, text=too_many.permitted)
            reason = Reason(rule=too_many.rule, source=source)
            return self._refuse(incoming, (reason,), f"deny: {reason}", too_many.seconds)
        rule = decisions[0].reasons[0].rule
        self.passed[rule] += 1
        is_counted = any(limit.concurrent is not None for limit in permitted)
        return Pass(
            partial(self._release, os.getpid(), client, permitted) if is_counted else None,
            partial(self._hold, incoming, kinds, rule) if self._pages.are_read else None,
        )

    def _hold(
        self, incoming: Incoming, kinds: list[Facts], rule: str, status: int, fields: Fields
    ) -> HeldPage | None:
        """Return the response if it has to wait until its page is read, else None.

        `rule`: the rule by which the request was passed on."""
        uses = tuple(self._uses(incoming))
        return self._pages.hold(
            status,
            fields,
            partial(self._judge_page, incoming, kinds, rule, uses),
            partial(self._refuse_unread, incoming, rule),
            judges_fields=bool(uses),
        )

    def _judge_page(
        self,
        incoming: Incoming,
        kinds: list[Facts],
        rule: str,
        uses: tuple[str, ...],
        content: Content,
    ) -> Answer | None:
        """Return the refusal of a request by the response to it, or None.

        The response is judged for each crawler that the User-Agent may name."""
        agents = self._agents.addressed_by_pages(incoming.field("user-agent"), uses, content)
        if agents is None:
            at_most = f"User-Agent: at most {MAX_WORDS} words that the response contains"
            return self._refuse_page(incoming, rule, (self._long(LONG_FIELDS, at_most),))
        url = self.origin + target_of(incoming.target)
        moment = datetime.fromtimestamp(self._clock(), UTC)
        # Without the lock: a long page would stop the requests of all clients.
        site = self._pages_of_thread.site
        decisions = [
            site.refused_by_response(agent, url, content, facts, moment, self._documents)
            for agent, facts in product(agents, kinds)
        ]
        reasons = tuple(
            dict.fromkeys(
                reason
                for decision in decisions
                if decision is not None
                for reason in decision.reasons
            )
        )
        return self._refuse_page(incoming, rule, reasons) if reasons else None

    def _refuse_unread(self, incoming: Incoming, rule: str, text: str) -> Answer:
        url = self.origin + target_of(incoming.target)
        reason = Reason(rule="comity.unread", source=Source(url=url, text=text))
        return self._refuse_page(incoming, rule, (reason,))

    def _refuse_page(self, incoming: Incoming, rule: str, reasons: tuple[Reason, ...]) -> Answer:
        with self._lock:
            self.passed[rule] -= 1
            answer = self._refuse(incoming, reasons, f"deny: {status_of(reasons)[1]}", 0)
        self._settle()
        return answer

    def _release(self, pid: int, client: str, limits: tuple[ClientLimit, ...]) -> None:
        """Stop counting a request as in flight, without ever waiting for the lock.

        `pid`: the process that counts the request. A fork of it does not.

        Waiting could block forever: the garbage collector may end a request that the server
        dropped, and may do so in a thread that has already acquired the lock."""
        if pid == os.getpid():
            self._ended.append((client, limits))
            self._settle()

    def _settle(self) -> None:
        """Release the requests that have ended.

        If another thread has the lock, return at once. That thread calls `_settle` after it has
        released the lock, and then releases these requests."""
        while self._ended and self._lock.acquire(blocking=False):
            try:
                self._release_ended()
            finally:
                self._lock.release()

    def _release_ended(self) -> None:
        while self._ended:
            self._counts.release(*self._ended.popleft())

    def _limits(self, agent: Agent, url: str) -> Iterator[ClientLimit]:
        rates = self._site.rates(agent)
        if rates and (windows := _windows(rates)):
            yield ClientLimit(self.origin + ROBOTS, ROBOTS, windows, tolerance=self._tolerance)
        for limits in self._site.limits(agent, url):
            yield ClientLimit(
                limits.key, limits.source, limits.windows, limits.concurrent, self._tolerance
            )

    def _refuse_by(self, incoming: Incoming, refusing: list[Decision], now: float) -> Answer:
        """Refuse a request for these decisions.

        The detail of the answer is from a permanent refusal. It is from a temporary one (DEFER)
        only if there is no permanent one. The wait is that of the last `not_before`."""
        refusing.sort(key=lambda decision: decision.verdict is Verdict.DEFER)
        reasons = tuple(
            dict.fromkeys(reason for decision in refusing for reason in decision.reasons)
        )
        decision = replace(refusing[0], reasons=(status_of(reasons)[1],))
        opens = [decision.not_before.timestamp() for decision in refusing if decision.not_before]
        return self._refuse(incoming, reasons, str(decision), ceil(max(opens, default=now) - now))

    def _refuse_long(self, incoming: Incoming, rule: str, at_most: str) -> Answer:
        reason = self._long(rule, at_most)
        return self._refuse_alone(incoming, reason, f"deny: {reason}")

    def _long(self, rule: str, at_most: str) -> Reason:
        return Reason(rule=rule, source=Source(url=self.origin, part="request", text=at_most))

    def _refuse_alone(self, incoming: Incoming, reason: Reason, detail: str) -> Answer:
        with self._lock:
            answer = self._refuse(incoming, (reason,), detail, 0)
        self._settle()
        return answer

    def _refuse(
        self, incoming: Incoming, reasons: tuple[Reason, ...], detail: str, wait: int
    ) -> Answer:
        rule = status_of(reasons)[1].rule
        self.refused[rule] += 1
        logger.info(
            "Refused %(method)s %(target)s of %(peer)s: %(detail)s",
            {
                "method": _loggable(incoming.method),
                "target": _loggable(incoming.target),
                "peer": _loggable(incoming.peer),
                "detail": detail,
            },
        )
        return self._problems.answer(incoming.method, reasons, detail=detail, retry_after=wait)


class _PagesOfThread(local):
    """The site that judges pages, one for each thread: a Site is used by one thread at a time."""

    def __init__(self, origin: str) -> None:
        self.site = Site.from_files(origin, {})


class _Targets(NamedTuple):
    """The targets that a request may mean."""

    judged: tuple[str, ...]  # the targets to judge; judging a target covers all its spellings
    spellings: frozenset[str]  # the spellings of all targets, in normal form
    length: int  # the number of characters in all spellings of `judged`


def _targets_of(targets: Iterable[str]) -> _Targets:
    judged: list[str] = []
    all_spellings: set[str] = set()
    length = 0
    for target in map(target_of, targets):
        spelled = spellings(target)
        normal = set(map(normal_target, spelled))
        if not normal <= all_spellings:
            judged.append(target)
            all_spellings |= normal
            length += sum(map(len, spelled))
    return _Targets(tuple(judged), frozenset(all_spellings), length)


def _too_long(asking: Asking, facts: Facts) -> str:
    """Return the first part of the request that is too long, and its limit, as text.

    For example "Referer: at most 2048 characters". "" if no part is too long."""
    purposes = facts.purposes or ()
    if not asking.is_clear:
        return f"User-Agent: at most {MAX_NAMED} crawlers that the files name"
    if len(purposes) > MAX_PURPOSES or any(len(purpose) > MAX_NAME for purpose in purposes):
        return f"purposes: at most {MAX_PURPOSES}, of at most {MAX_NAME} characters"
    if len(facts.referer or "") > MAX_REFERER:
        return f"Referer: at most {MAX_REFERER} characters"
    return ""


def _windows(rates: Rates) -> tuple[Window, ...]:
    """Return the rates as windows. Crawl-delay 5 becomes a window of 1 request in 5 seconds.

    A client may send the requests of a window at any times within it."""
    delay = (Window(1, rates.crawl_delay),) if rates.crawl_delay else ()
    return (*delay, *(Window(*rate) for rate in rates.request_rates))


def _loggable(text: str) -> str:
    return printable(text[:MAX_SHOWN].encode("utf-8", "replace"))


def _check(*, max_age: int, tolerance: float, max_clients: int) -> None:
    if max_age < 0:
        raise PolicyError(f"max_age `{max_age}` is negative: write seconds, 0 or more")
    if not 0 <= tolerance < 1:
        raise PolicyError(
            f"tolerance `{tolerance}` is not a share of a window: write 0 or more, less than 1"
        )
    if max_clients < 1:
        raise PolicyError(f"max_clients `{max_clients}` is too few: write 1 or more")
