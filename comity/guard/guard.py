"""Which requests go on to the site's application, and what the others are answered.

    guard.check(incoming) -> Pass | Answer

A policy file is answered to everybody. Of other requests the automated ones are judged, by the engine by which a crawler judges
what it is about to send; those of people pass."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from math import ceil
from threading import Lock

from comity.guard.answers import Answer, Problems, ServedFile, status_of
from comity.guard.clients import Clients, Limit, client_of
from comity.guard.files import ROBOTS_PATH, Files, OwnFiles
from comity.guard.incoming import KEY_HEADER, MAX_METHOD, Incoming, is_automated, mechanisms, purposes
from comity.policies.errors import PolicyError
from comity.policies.files import AUTOMATION_PATH
from comity.policies.limits import Window
from comity.policies.patterns import normal_target
from comity.policies.rates import Rates
from comity.policies.requests import PURPOSE_HEADER, XHR, Facts, Session, facts_of
from comity.policies.site import WELL_KNOWN, Site
from comity.policies.text import MAX_SHOWN, printable
from comity.policies.urls import spellings
from comity.policies.values import PRODUCT_TOKEN, Agent, Finding, Reason, Source, Verdict

logger = logging.getLogger(__name__)

MAX_WORDS = 64  # of a User-Agent
MAX_USER_AGENTS = 1024  # that are kept with whom they name


class Pass:
    """The request goes on to the application. `end` is to be called when its response is complete or its client has gone."""

    def __init__(self, end: Callable[[], None] | None = None) -> None:
        self.is_counted = end is not None  # else nobody has to call anything
        self._end = end
        self._left: int | None = None  # octets of the body that are still to go out

    def begins(self, length: str | None, *, has_body: bool = True) -> None:
        """The response's header fields go out. `length`: its Content-Length."""
        if not has_body:
            self.end()
        elif length and length.isascii() and length.isdigit():
            self.sends(0, left=int(length))

    def sends(self, octets: int, *, left: int | None = None) -> None:
        """Octets of the body go out: its last ones complete the response for the client, before anybody here hears of it."""
        self._left = self._left if left is None else left
        if self._left is not None:
            self._left -= octets
            if self._left <= 0:
                self.end()

    def end(self) -> None:
        end, self._end = self._end, None
        if end:
            end()


UNTOUCHED = Pass()


class Guard:
    """The guard of one origin. It may be asked by several threads.

    `findings`: what its files have to be told. `passed` and `refused`: automated requests by the rule that decided."""

    def __init__(
        self,
        origin: str,
        files: Files,
        *,
        is_automated: Callable[[Incoming], bool] = is_automated,
        mechanisms: Callable[[Incoming], Iterable[str]] = mechanisms,
        session: Callable[[Incoming], Session | None] = lambda _: None,
        client: Callable[[Incoming], str] = lambda incoming: client_of(incoming.peer),
        purpose_header: str = PURPOSE_HEADER,
        key_header: str = KEY_HEADER,
        max_age: int = 3600,
        tolerance: float = 0.1,
        max_clients: int = 10_000,
        challenge: str = 'Bearer realm="automation"',
        problem_types: str = "urn:comity:rule:",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """PolicyError where a file is missing or would be rejected by every crawler. The arguments: docs/guard.md."""
        _check(max_age=max_age, tolerance=tolerance, max_clients=max_clients)
        own = OwnFiles(origin, files)
        self.origin = own.origin
        self._site = Site.from_files(self.origin, own.judging)
        self.findings: tuple[Finding, ...] = Site.from_files(self.origin, own.fetched).findings
        self.passed: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._served = {path: ServedFile(body, media_type, max_age) for path, body, media_type in own.served}
        self._is_automated = is_automated
        self._mechanisms = mechanisms
        self._session = session
        self._client = client
        self._purpose_header = purpose_header.lower()
        self._key_header = key_header
        self._problems = Problems(types=problem_types, challenge=challenge)
        self._clients = Clients(max_clients, tolerance)
        self._clock = clock
        self._lock = Lock()
        self._nobody = next(name for length in count(1) if not self._site.names(name := "_" * length))
        self._agent = lru_cache(MAX_USER_AGENTS)(self._named)

    def check(self, incoming: Incoming) -> Pass | Answer:
        """May it go on? Whatever came, there is an answer."""
        targets = spellings(incoming.target)
        paths = [normal_target(target.partition("?")[0]) for target in targets]
        for path in paths:
            if file := self._served.get(path):
                return file.answer(incoming.method, incoming.fields)
        if incoming.method in ("GET", "HEAD") and all(path in WELL_KNOWN for path in paths):
            return UNTOUCHED  # who asks for policies is no less welcome where there are none
        if self._purpose_header not in incoming.fields and not self._is_automated(incoming):
            return UNTOUCHED
        facts = self._facts(incoming)
        client = self._client(incoming)
        with self._lock:
            return self._judge(incoming, targets, facts, client)

    def _facts(self, incoming: Incoming) -> Facts:
        facts = facts_of(
            method=incoming.method[:MAX_METHOD],
            kind=None,
            automations=self._mechanisms(incoming),
            purposes=purposes(incoming.field(self._purpose_header)),
            fields=incoming.fields,
            key_header=self._key_header,
            referer=incoming.field("referer") or None,
            session=self._session(incoming),
        )
        return facts if XHR in facts.kinds else facts._replace(referer=None)  # of other requests nobody asks for it

    def _judge(self, incoming: Incoming, targets: tuple[str, ...], facts: Facts, client: str) -> Pass | Answer:
        agent = self._agent(incoming.field("user-agent"))
        now = self._clock()
        limits: dict[str, Limit] = {}
        for target in targets:
            url = self.origin + target
            decision = self._site.judge(agent, url, facts, datetime.fromtimestamp(now, UTC))
            if decision.verdict is not Verdict.ALLOW:
                wait = ceil(decision.not_before.timestamp() - now) if decision.not_before else 0
                return self._refuse(incoming, decision.reasons, str(decision), wait)
            limits |= {limit.key: limit for limit in self._limits(agent, url)}
        stated = tuple(limits.values())
        too_many = self._clients.claim(client, stated, now)
        if too_many:
            source = Source(url=self.origin + too_many.limit.path, text=too_many.stated)
            reason = Reason(rule=too_many.rule, source=source)
            return self._refuse(incoming, (reason,), f"deny: {reason}", too_many.seconds)
        self.passed[decision.reasons[0].rule] += 1
        if all(limit.concurrent is None for limit in stated):
            return Pass()
        return Pass(lambda: self._release(client, stated))

    def _release(self, client: str, limits: tuple[Limit, ...]) -> None:
        with self._lock:
            self._clients.release(client, limits)

    def _limits(self, agent: Agent, url: str) -> Iterable[Limit]:
        rates = self._site.rates(agent)
        if rates and (windows := _windows(rates)):
            yield Limit(ROBOTS_PATH, ROBOTS_PATH, windows)
        for limits in self._site.limits(agent, url):
            yield Limit(limits.key, AUTOMATION_PATH, limits.windows, limits.concurrent)

    def _refuse(self, incoming: Incoming, reasons: tuple[Reason, ...], detail: str, wait: int) -> Answer:
        rule = status_of(reasons)[1].rule
        self.refused[rule] += 1
        logger.info(
            "Refused %(method)s %(target)s of %(peer)s: %(detail)s",
            {
                "method": _shown(incoming.method),
                "target": _shown(incoming.target),
                "peer": _shown(incoming.peer),
                "detail": detail,
            },
        )
        return self._problems.answer(incoming.method, reasons, detail=detail, retry_after=wait)

    def _named(self, user_agent: str) -> Agent:
        """Who asks: the first product token of a User-Agent that the site's files name; all others are one to them.

        So there are never more agents than names in the files, whatever clients send."""
        words = PRODUCT_TOKEN.findall(user_agent)[:MAX_WORDS]
        token = next((word.lower() for word in words if self._site.names(word)), self._nobody)
        return Agent(token, key_header=self._key_header)


def _windows(rates: Rates) -> tuple[Window, ...]:
    """As stated: a client may use them up in any way."""
    delay = (Window(1, rates.crawl_delay),) if rates.crawl_delay else ()
    return (*delay, *(Window(*rate) for rate in rates.request_rates))


def _shown(text: str) -> str:
    return printable(text[:MAX_SHOWN].encode("utf-8", "replace"))


def _check(*, max_age: int, tolerance: float, max_clients: int) -> None:
    if max_age < 0:
        raise PolicyError(f"max_age `{max_age}` is less than nothing: write seconds, 0 or more")
    if not 0 <= tolerance < 1:
        raise PolicyError(f"tolerance `{tolerance}` is no share of a window: write 0 or more, less than 1")
    if max_clients < 1:
        raise PolicyError(f"max_clients `{max_clients}` is too few: write 1 or more")
