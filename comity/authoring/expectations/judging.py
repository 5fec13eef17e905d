"""Judge sentences by the decisions about a site.

judge = Judge(source, agent)
judge.check(Fetching("GPTBot", "/x", NO)).holds"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import product
from math import ceil, inf
from typing import NamedTuple

from comity.authoring.crawler_names import is_token, replace_name, token_of
from comity.authoring.expectations.sentences import (
    EVERYBODY,
    EVERYBODY_ELSE,
    GROUPS,
    LEAST,
    LIMITED,
    NO,
    OPEN,
    PERMITTED,
    REFUSED,
    TRAINING_CRAWLERS,
    YES,
    Fetching,
    Keeping,
    Meaning,
    Showing,
    Using,
    Waiting,
)
from comity.authoring.expectations.witnesses import Paths, Witnesses
from comity.authoring.explaining import (
    SILENT,
    Citation,
    Outcome,
    access_outcome,
    agent_named,
    is_unreachable,
    met_reasons,
    rate_citations,
    unnamed_token,
    use_outcome,
)
from comity.authoring.source import SiteSource
from comity.gate.options import DEFAULTS
from comity.policies import Agent, PolicyError, Reason
from comity.policies.page import Page
from comity.policies.syntax.windows import Window, windows_of
from comity.policies.vocabulary.known_crawlers import known, nearest, training_crawlers

KEPT = "preserve"  # the use that limits on days are read from
SHOWN = "present-snippet"  # the use that limits on words and characters are read from
INDEX_NAMES = ("/index.html", "/index.htm", "/index.xhtml")


class Answer(NamedTuple):
    """The answer about one sentence.

    Attributes:
        holds: True if the sentence holds.
        paths: The number of different paths that were judged.
        is_complete: True if these paths show every set of patterns that can match together.
        why: If the sentence does not hold, a sentence about the site that contradicts it.
        citation: The line that decides. None: the sentence holds, or no line decides.
    """

    holds: bool
    paths: int
    is_complete: bool
    why: str = ""
    citation: Citation | None = None


class _Contradiction(NamedTuple):
    """The decision that contradicts a sentence."""

    words: str
    citations: tuple[Citation, ...]


_Objection = Callable[[Agent, str, Page], _Contradiction | None]


class Judge:
    """Answers whether sentences hold for the files and pages of one site."""

    def __init__(self, source: SiteSource, agent: Agent, now: datetime | None = None) -> None:
        """`agent`: only its vocabulary is used. `now`: an aware datetime. None: the clock."""
        self.source = _with_folders(source)
        self._agent = agent
        self._whole_name = ""
        self._now = now or datetime.now(UTC)
        self.witnesses = Witnesses(source)
        self._pages = {page.url.removeprefix(source.origin): page for page in self.source.pages}
        self.names = tuple(sorted(source.site.crawler_names - {"*", ""}))
        self._judges: dict[str, Judge] = {}  # whole name -> its judge
        self._page = lru_cache(maxsize=100_000)(self._judge_page)
        self._conditions = lru_cache(maxsize=None)(self._read_conditions)
        self._rates = lru_cache(maxsize=None)(self._read_rates)

    def check(self, meaning: Meaning) -> Answer:
        """Return whether a sentence holds.

        For a name with other signs than a product token, it has to hold both for readers by RFC
        9309 and for those that compare whole names (crawler_names.py).

        PolicyError: the name of the crawler is misspelt, or a file that decides cannot be
        fetched."""
        answer = self._check(meaning)
        if answer.holds and meaning.subject not in GROUPS and not is_token(meaning.subject):
            return self._of_whole_name(meaning.subject)._check(meaning)
        return answer

    def _of_whole_name(self, name: str) -> Judge:
        """Return the judge for readers that compare the whole name in User-agent lines."""
        if name not in self._judges:
            token = unnamed_token(self.source.site)
            judge = Judge(replace_name(self.source, name, token), self._agent, self._now)
            judge._whole_name = token
            self._judges[name] = judge
        return self._judges[name]

    def _check(self, meaning: Meaning) -> Answer:
        match meaning:
            case Fetching(answer=answer):
                objection = self._objection_to_fetching(answer)
            case Using(use=use, answer=answer):
                objection = self._objection_to_using(use, answer)
            case Waiting(bound=bound, thousandths=thousandths):
                objection = self._objection_to_waiting(bound, thousandths / 1000)
            case Keeping(days=days):
                objection = self._objection_to_keeping(days)
            case Showing(number=number, unit=unit):
                objection = self._objection_to_showing(number, unit)
        return self._ask(meaning.subject, meaning.path, objection)

    def _ask(self, subject: str, path: str, objection: _Objection) -> Answer:
        paths, is_complete = self._paths(path)
        for name, agent in self._agents(subject):
            for each in paths:
                if contradiction := objection(agent, each, self._page(agent, each)):
                    return Answer(
                        holds=False,
                        paths=len(paths),
                        is_complete=is_complete,
                        why=f"{name} {contradiction.words.replace('{path}', each)}",
                        citation=next(iter(contradiction.citations), None),
                    )
        return Answer(holds=True, paths=len(paths), is_complete=is_complete)

    def _paths(self, path: str) -> Paths:
        """Return the paths to judge for a path or glob, with the pages that a glob contains."""
        found = self.witnesses.of(path)
        pages = self.witnesses.among(path, self._pages) if "*" in path else ()
        return found._replace(paths=tuple(dict.fromkeys((*found.paths, *pages))))

    def _agents(self, subject: str) -> Iterator[tuple[str, Agent]]:
        """Yield the crawlers of a sentence, with the names under which answers show them."""
        if self._whole_name:
            agent = replace(self._named(subject), token=self._whole_name)
            yield f"{subject}, for readers that compare the whole name,", agent
            return
        if subject in (EVERYBODY, EVERYBODY_ELSE):
            other = "a crawler that the files do not name" if self.names else EVERYBODY
            yield other, self._named(unnamed_token(self.source.site))
        if subject == EVERYBODY:
            for name in self.names:
                crawler = known(name)
                yield crawler.token if crawler else name, self._named(name)
        elif subject == TRAINING_CRAWLERS:
            for crawler in training_crawlers():
                yield crawler.token, self._named(crawler.token)
        elif subject != EVERYBODY_ELSE:
            meant = nearest(subject)
            if meant is not None and not self._is_in_files(subject.lower()):
                raise PolicyError(
                    f"there is no known crawler `{subject}`, and the files do not name it: "
                    f"write {meant.token}"
                )
            reading = "" if is_token(subject) else f", for readers that read `{token_of(subject)}`,"
            yield f"{subject}{reading}", self._named(subject)

    def _is_in_files(self, name: str) -> bool:
        """Return True if the files contain a name in lower case."""
        return name in self.names or any(
            name.encode() in file.fetched.body.lower() for file in self.source.files
        )

    def _named(self, name: str) -> Agent:
        return agent_named(self._agent, name)

    def url(self, path: str) -> str:
        return self.source.origin + path

    def _judge_page(self, agent: Agent, path: str) -> Page:
        site, file = self.source.site, self._pages.get(path)
        if file is None:
            return site.page(agent, self.url(path), body=None, now=self._now)
        fetched = file.fetched
        return site.page(agent, file.url, headers=fetched.headers, body=fetched.body, now=self._now)

    def _read_conditions(self, agent: Agent) -> frozenset[Reason]:
        return met_reasons(self.source.site.conditions(agent))

    # ---- what may be fetched

    def access(self, agent: Agent, path: str) -> Outcome:
        """Return the decision about a plain request. At other hours it may be another one."""
        page = self._page(agent, path)
        outcome = access_outcome(
            self.source, page, agent, self.url(path), self._conditions(agent), self._now
        )
        rates = self.source.site.rates(agent)
        if outcome.verdict == "defer" or (
            outcome.verdict == "allow" and rates is not None and rates.visit_time
        ):
            return outcome._replace(verdict="limit")
        return outcome

    def _objection_to_fetching(self, answer: str) -> _Objection:
        expected = {YES: "allow", NO: "deny", LIMITED: "limit"}[answer]
        words = {
            "allow": "may fetch {path}",
            "deny": "must not fetch {path}",
            "limit": "may fetch {path} under conditions",
        }

        def object_(agent: Agent, path: str, page: Page) -> _Contradiction | None:
            outcome = self.access(agent, path)
            _refuse_unreachable(outcome.citations)
            if outcome.verdict == expected:
                return None
            return _Contradiction(words[outcome.verdict], outcome.citations)

        return object_

    # ---- uses

    def _objection_to_using(self, use: str, answer: str) -> _Objection:
        expected = {PERMITTED: "allow", REFUSED: "deny", OPEN: SILENT}[answer]
        words = {
            "allow": f"may use {{path}}: the use `{use}` is permitted",
            "deny": f"must not use {{path}}: the use `{use}` is refused",
            SILENT: f"is not told about {{path}}: no line is about the use `{use}`",
        }

        def object_(agent: Agent, path: str, page: Page) -> _Contradiction | None:
            outcome = use_outcome(self.source, page.uses[use])
            _refuse_unreachable(outcome.citations)
            if outcome.verdict != expected:
                return _Contradiction(words[outcome.verdict], outcome.citations)
            if answer == PERMITTED and (access := self.access(agent, path)).verdict == "deny":
                return _Contradiction("must not fetch {path}", access.citations)
            return None

        return object_

    def _objection_to_keeping(self, days: int) -> _Objection:
        def object_(agent: Agent, path: str, page: Page) -> _Contradiction | None:
            use = page.uses[KEPT]
            outcome = use_outcome(self.source, use)
            _refuse_unreachable(outcome.citations)
            if outcome.verdict == "deny" or (
                use.until is not None and use.until - self._now <= timedelta(days=days)
            ):
                return None
            until = f"until {use.until:%Y-%m-%d}" if use.until else "without a limit of days"
            return _Contradiction(f"keeps {{path}} {until}", outcome.citations)

        return object_

    def _objection_to_showing(self, number: int, unit: str) -> _Objection:
        def object_(agent: Agent, path: str, page: Page) -> _Contradiction | None:
            use = page.uses[SHOWN]
            outcome = use_outcome(self.source, use)
            _refuse_unreachable(outcome.citations)
            limit = use.max_words if unit == "words" else use.max_chars
            if outcome.verdict == "deny" or (limit is not None and limit <= number):
                return None
            shown = f"{limit} {unit}" if limit is not None else f"any number of {unit}"
            return _Contradiction(f"shows {shown} of {{path}}", outcome.citations)

        return object_

    # ---- rates

    def waits(self, agent: Agent, path: str) -> tuple[float, float]:
        """Return the fewest and the most seconds between two requests that the files ask for.

        They differ by limits that hold at some hours only, and by limits that cannot be read."""
        site = self.source.site
        windows = [*windows_of(site.rates(agent))]
        uncertain: list[Window] = []
        for limits in site.limits(agent, self.url(path)):
            for limit in limits.lines(DEFAULTS["COMITY_MAX_DELAY"]):
                if limit.window is not None:
                    is_unread = limit.advice or (limits.unreadable and not limits.stated)
                    (uncertain if is_unread else windows).append(limit.window)
        always = [window for window in windows if window.start == window.end]
        return _longest(always), _longest((*windows, *uncertain))

    def waits_of(self, subject: str, path: str) -> tuple[float, float]:
        """Return the fewest and the most seconds of `waits` for several crawlers and paths."""
        waits = [
            self.waits(agent, each)
            for _, agent in self._agents(subject)
            for each in self._paths(path).paths
        ]
        return min(least for least, _ in waits), max(most for _, most in waits)

    def limits_of(
        self, subjects: Iterable[str], paths: Iterable[str]
    ) -> tuple[list[int], list[int], list[int]]:
        """Return the limits on days, words and characters, each with the lowest first."""
        limits: tuple[set[int], set[int], set[int]] = (set(), set(), set())
        agents = [agent for subject in subjects for _, agent in self._agents(subject)]
        for agent, path in product(agents, tuple(paths)):
            uses = self._page(agent, path).uses
            if until := uses[KEPT].until:
                limits[0].add(max(0, ceil((until - self._now) / timedelta(days=1))))
            for found, limit in zip(
                limits[1:], (uses[SHOWN].max_words, uses[SHOWN].max_chars), strict=True
            ):
                found.update(() if limit is None else (limit,))
        return sorted(limits[0]), sorted(limits[1]), sorted(limits[2])

    def _read_rates(self, agent: Agent) -> tuple[Citation, ...]:
        return rate_citations(self.source, agent)

    def _objection_to_waiting(self, bound: str, seconds: float) -> _Objection:
        def object_(agent: Agent, path: str, page: Page) -> _Contradiction | None:
            least, most = self.waits(agent, path)
            if seconds <= least if bound == LEAST else most <= seconds:
                return None
            asked = least if bound == LEAST else most
            words = f"is asked to wait {asked:g} s between requests"
            return _Contradiction(words, self._rates(agent))

        return object_


def _longest(windows: Iterable[Window]) -> float:
    """Return the longest average delay of the windows, in seconds."""
    return max(
        (window.seconds / window.requests if window.requests else inf for window in windows),
        default=0.0,
    )


def _refuse_unreachable(citations: tuple[Citation, ...]) -> None:
    """Raise PolicyError if the decision is that a file cannot be fetched."""
    if citations and is_unreachable(citations[0].rule):
        cause = f": {citations[0].text}" if citations[0].text else ""
        raise PolicyError(f"{citations[0]} is about a file that cannot be fetched{cause}")


def _with_folders(source: SiteSource) -> SiteSource:
    """Return the source with a page for each folder that has a file such as index.html."""
    urls = {page.url for page in source.pages}
    folders = (
        page._replace(url=page.url.removesuffix(name[1:]))
        for page in source.pages
        for name in INDEX_NAMES
        if page.url.endswith(name)
    )
    return source._replace(
        pages=(*source.pages, *(folder for folder in folders if folder.url not in urls))
    )
