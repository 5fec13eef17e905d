"""Explain the files of a site together: for everybody, for each crawler and for each class of use.

    explained = explain(source, agent)
    for group in explained.groups:      crawlers with equal answers
        for answer in group.answers:    a sentence, and the lines that decide

The explanation is made of decisions about sample URLs: an ordinary path that no file mentions, the
paths that the files mention, and the pages that were fetched. "Everything" describes the ordinary
path. Lines that treat other paths differently are listed as exceptions."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from functools import cached_property
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from comity.authoring.crawler_names import token_of
from comity.authoring.source import SiteSource, SourceFile
from comity.gate.options import DEFAULTS
from comity.policies import Agent, PolicyError, Reason, Site, Verdict
from comity.policies.answers.decision import Condition, UseDecision
from comity.policies.answers.element_rule import display_names
from comity.policies.answers.fetched import Availability, Fetched, availability
from comity.policies.answers.markup import is_marked_up, without_tags
from comity.policies.answers.rule import RULES
from comity.policies.page import Page
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_or_empty
from comity.policies.syntax.windows import StatedLimit
from comity.policies.tag import write_conditions
from comity.policies.vocabulary.known_crawlers import known
from comity.policies.vocabulary.use_classes import CLASSES, UseClass

# The limits of an explanation. A note says if there are more crawlers, paths or pages.
MAX_AGENTS = 100
MAX_SAMPLES = 500
MAX_PAGES = 50
MAX_CONDITIONS = 50  # groups of lines on requests that are explained for one crawler
MAX_NAMED = 3  # crawlers that each sentence names; more are "These crawlers"
MAX_EXCEPTIONS = 5  # exceptions that a sentence lists; `ExplainedAnswer.exceptions` has all
# The search for the lines that ask for rates reads the site again and again, with fewer lines. This
# is the maximum number of such readings. After them, answers about rates cite no line.
MAX_RATE_SITES = 50
# The candidates for the ordinary path.
UNSPOKEN = (
    "/any-other-page",
    *(f"/{char * 3}" for char in "zqxjykvw0123456789_-~bcdefghilmnoprstu"),
)
NOBODY = "any-other-crawler"  # a product token that no file contains
THESE = "These crawlers"
CONDITIONS = "conditions"  # the topic of sentences that do not name a crawler
SILENT = "silent"  # the verdict if no file decides


Limits = tuple[tuple[str, str], ...]  # names of the limits of a use, and their values as texts


class Citation(NamedTuple):
    """A line, field or element that decides.

    Attributes:
        file: The name of the file, as it is shown to the user.
        line: The line, from 1. 0 means the file as a whole, or no file.
        part: The part of the file or response: "body", "header X-Robots-Tag", ...
        text: The text of the line, field or element, as written.
        rule: The id of the rule.
        spec: The specification and section.
    """

    file: str
    line: int
    part: str
    text: str
    rule: str
    spec: str

    def __str__(self) -> str:
        part = "" if self.part in ("body", "status") else f" ({self.part})"
        return (f"{self.file}:{self.line}" if self.line else self.file) + part


class Exceptional(NamedTuple):
    """An exception: sample URLs for which a line decides otherwise than for the ordinary path.

    Attributes:
        verdict: "allow", "deny", "defer", "limit" or SILENT.
        citations: The lines that decide.
        limits: The limits of the permission.
        urls: The sample URLs.
    """

    verdict: str
    citations: tuple[Citation, ...]
    limits: Limits
    urls: tuple[str, ...]


class ExplainedAnswer(NamedTuple):
    """One sentence, and the lines that it is made from.

    Attributes:
        topic: "access", "conditions", "rates", "parts", "requests", or the names of CLASSES.
        verdict: "allow", "deny", "defer" or SILENT. Rates, and requests that have to meet
            conditions, have "limit".
        sentence: The sentence, in English. In the answers of `_Explainer` it has a placeholder
            `{subject}`.
        citations: The lines that decide for the ordinary path.
        exceptions: The sample URLs for which other lines decide.
        limits: The limits of the permission for the ordinary path.
    """

    topic: str
    verdict: str
    sentence: str
    citations: tuple[Citation, ...] = ()
    exceptions: tuple[Exceptional, ...] = ()
    limits: Limits = ()


class AgentGroup(NamedTuple):
    """Agents with equal answers.

    Attributes:
        agents: Their product tokens. () means everybody except the agents of other groups.
        answers: The answers, with a subject in their sentences.
    """

    agents: tuple[str, ...]
    answers: tuple[ExplainedAnswer, ...]


@dataclass(frozen=True)
class Explanation:
    """The meaning of the files of a site.

    Attributes:
        origin: The origin of the site.
        files: The name of each policy file, and the outcome of its fetch in words.
        groups: The groups of crawlers, everybody first.
        as_everybody: Crawlers in the files that have the answers of everybody.
        samples: The sample URLs.
        notes: Sentences about parts that were left out or could not be read.
    """

    origin: str
    files: tuple[tuple[str, str], ...]
    groups: tuple[AgentGroup, ...]
    as_everybody: tuple[str, ...]
    samples: tuple[str, ...]
    notes: tuple[str, ...]


class Outcome(NamedTuple):
    """The parts of a decision that a sentence depends on.

    Attributes:
        verdict: "allow", "deny", "defer", "limit" or SILENT.
        citations: The lines that decide, the deciding one first.
        limits: The limits of the permission.
    """

    verdict: str
    citations: tuple[Citation, ...]
    limits: Limits


def explain(
    source: SiteSource, agent: Agent, *, agents: Iterable[str] = (), urls: Iterable[str] = ()
) -> Explanation:
    """Explain the files of a site together.

    `agent`: the agent that fetched or reads the files. Only its vocabulary is used.
    `agents`: the crawlers to explain. Without any, all crawlers in the files are explained.
    `urls`: the sample URLs, absolute or as paths. Without any, the samples are the root and the
    paths in the files.
    PolicyError: a URL belongs to another site."""
    notes = [*source.notes, *source.place_notes]
    names = tuple(dict.fromkeys(agents)) or tuple(sorted(source.site.crawler_names - {"*", ""}))
    if len(names) > MAX_AGENTS:
        notes.append(
            f"the files name {len(names)} crawlers: only {MAX_AGENTS} are explained. "
            "Ask about others by name"
        )
        names = names[:MAX_AGENTS]
    samples = [_absolute(source.origin, url) for url in urls] or [
        source.origin + path for path in spoken_of(source)
    ]
    if len(samples) > MAX_SAMPLES:
        notes.append(f"the files contain {len(samples)} paths: only {MAX_SAMPLES} are explained")
    pages = source.pages[:MAX_PAGES]
    if len(source.pages) > MAX_PAGES:
        notes.append(f"there are {len(source.pages)} pages: only {MAX_PAGES} are explained")
    explainer = _Explainer(source, tuple(samples[:MAX_SAMPLES]), pages)
    everybody = explainer.answers(agent_named(agent, unnamed_token(source.site)))
    groups: dict[tuple[ExplainedAnswer, ...], list[str]] = {}
    for name in names:
        crawler = known(name)
        groups.setdefault(explainer.answers(agent_named(agent, name)), []).append(
            crawler.token if crawler else printable(name)
        )
    as_everybody = tuple(groups.pop(everybody, ()))
    subject = "Everybody else" if groups else "Everybody"
    return Explanation(
        source.origin,
        tuple((file.name, _outcome_of_file(file.fetched)) for file in source.files),
        (
            AgentGroup((), _with_subject(subject, everybody)),
            *(
                AgentGroup(tuple(members), _with_subject(_subject_of(members), answers))
                for answers, members in groups.items()
            ),
        ),
        as_everybody,
        explainer.samples,
        tuple(notes),
    )


def _with_subject(subject: str, answers: Iterable[ExplainedAnswer]) -> tuple[ExplainedAnswer, ...]:
    """Return the answers with the subject in their sentences.

    For the subject "Everybody", phrase a refusal as "Nobody may ..."."""
    words = {"{subject}": subject}
    if subject == THESE or " and " in subject:
        words = {"{subject} has": f"{subject} have", "{subject} is": f"{subject} are"} | words
    if subject.startswith("Everybody"):
        nobody = subject.replace("Everybody", "Nobody")
        words = {
            "{subject} may not": f"{nobody} may",
            "{subject} may fetch nothing": f"{nobody} may fetch anything",
            "whether {subject}": f"whether {subject.replace('Everybody', 'anybody')}",
        } | words
    elif subject == THESE:
        words = {"whether {subject}": f"whether {THESE.lower()}"} | words

    def complete(sentence: str) -> str:
        """Replace the first placeholder. Later ones belong to quotations from files."""
        placeholder = next(
            (placeholder for placeholder in words if placeholder in sentence), "{subject}"
        )
        return sentence.replace(placeholder, words[placeholder], 1)

    return tuple(
        answer
        if answer.topic == CONDITIONS
        else answer._replace(sentence=complete(answer.sentence))
        for answer in answers
    )


def _subject_of(names: Sequence[str]) -> str:
    """Return the subject of sentences about the crawlers of a group, which its heading names."""
    return THESE if len(names) > MAX_NAMED else _join_names(names)


def _join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _absolute(origin: str, url: str) -> str:
    absolute = origin + url if url.startswith("/") else url
    if origin_or_empty(absolute) != origin:
        raise PolicyError(
            f"`{printable(url)}` does not belong to {origin}: write a URL of this site, or a path"
        )
    return absolute


def unnamed_token(*sites: Site) -> str:
    """Return a product token that is in no file of the sites."""
    token = NOBODY
    while any(token in site.crawler_names for site in sites):
        token += "-"
    return token


def agent_named(agent: Agent, name: str) -> Agent:
    """Return the agent with another name, without its purposes, uses, arrangements and defaults.

    A name with other signs than a product token, such as `archive.org_bot`, becomes the value of
    the User-Agent field. Its token is the one that readers by RFC 9309 read in it."""
    token = token_of(name) or NOBODY
    user_agent = "" if token == name else name.rstrip("*")
    return replace(
        agent,
        token=token,
        user_agent=user_agent,
        purposes=(),
        uses=(),
        arrangements=(),
        defaults={},
    )


def _outcome_of_file(fetched: Fetched) -> str:
    if fetched.unreachable_since:
        since = f"{fetched.unreachable_since:%Y-%m-%d %H:%M} UTC"
        return f"cannot be fetched since {since}; its last good copy applies"
    match availability(fetched):
        case Availability.PRESENT:
            return "read" + (" up to the size limit" if fetched.oversized else "")
        case Availability.ABSENT:
            return f"states nothing: HTTP status {fetched.status}" + (
                ", an HTML page" if fetched.status // 100 == 2 else ""
            )
        case Availability.UNREACHABLE:
            cause = printable(fetched.error) or f"HTTP status {fetched.status}"
            return f"cannot be fetched: {cause}"


# ---- sample URLs

_PATH = re.compile(r"(?<![^\s:,])[/*.]\S*")  # in a line of text, not in a URL or a media type
_QUOTED = re.compile(r"[\"'](/[^\"'\s]*)[\"']")  # in JSON and XML
_COMMENT = re.compile(r"#.*")


def spoken_of(source: SiteSource, any_text: str = "any") -> list[str]:
    """Return the root, and a matching path for each pattern in the policy files, each once.

    `any_text`: the text in place of each `*`."""
    paths = (pattern.split("$")[0].replace("*", any_text) for pattern in _patterns(source))
    return list(
        dict.fromkeys(("/", *(path if path.startswith("/") else f"/{path}" for path in paths)))
    )


def _patterns(source: SiteSource) -> Iterator[str]:
    """Yield the paths and patterns in the policy files of every format, without file types."""
    for pattern in written_patterns(source):
        if pattern.startswith(("/", "*")) and "/" in pattern and not pattern.startswith("//"):
            yield pattern


def written_patterns(source: SiteSource) -> Iterator[str]:
    """Yield each text in the policy files that may be a path, a pattern or a file type."""
    for file in source.files:
        body = file.fetched.body
        text = (without_tags(body) if is_marked_up(body) else body).decode("utf-8", "replace")
        if text.lstrip("\ufeff \t\r\n").startswith(("<", "{", "[")):
            yield from _QUOTED.findall(text)
            continue
        for line in text.splitlines():
            for match in _PATH.finditer(_COMMENT.sub("", line)):
                yield match.group().rstrip(",")


def unspoken_path(source: SiteSource) -> str:
    """Return an ordinary path: the path of UNSPOKEN that matches the fewest patterns."""
    parts = [
        pattern.lower().split("$")[0].split("*") for pattern in dict.fromkeys(_patterns(source))
    ]
    return min(UNSPOKEN, key=lambda path: sum(_matches(path, pattern) for pattern in parts))


def _matches(path: str, parts: Sequence[str]) -> bool:
    """Return True if a pattern matches a path or its beginning.

    `parts`: the texts between the asterisks of the pattern."""
    position = len(parts[0]) if path.startswith(parts[0]) else -1
    for part in parts[1:]:
        if position < 0:
            return False
        start = path.find(part, position)
        position = start + len(part) if start >= 0 else -1
    return position >= 0


# ---- decisions, in words


def is_unreachable(rule: str) -> bool:
    """Return True if the rule refuses because a policy file cannot be fetched."""
    return rule in RULES and RULES[rule].is_unreachable


def _failure(citation: Citation) -> str:
    """Return the file that cannot be fetched, with the cause or with the line that names it."""
    if citation.line:
        return f"a file that {citation.file} names cannot be fetched: `{citation.text}`"
    return f"{citation.file} cannot be fetched: {citation.text}"


def met_reasons(conditions: Iterable[Condition]) -> frozenset[Reason]:
    """Return the reasons that some requests can satisfy. They limit access and do not refuse it."""
    return frozenset(condition.reason for condition in conditions if condition.can_be_met)


def access_outcome(
    source: SiteSource,
    page: Page,
    agent: Agent,
    url: str,
    met: frozenset[Reason],
    now: datetime | None = None,
) -> Outcome:
    """Return the decision about a plain request for a page.

    `page`: the permissions of the page. The page itself may refuse to be crawled.
    `met`: the reasons that some requests can satisfy (`met_reasons`).
    `now`: an aware datetime. None: the clock."""
    decision = source.site.access(agent, url, now=now)
    crawl = page.uses["crawl"]
    if crawl.verdict is Verdict.DENY and crawl.reasons != decision.reasons:
        return Outcome("deny", _citations(source, crawl.reasons[:1]), ())
    limits = (
        (("not_before", f"{decision.not_before:%Y-%m-%d %H:%M} UTC"),)
        if decision.not_before
        else ()
    )
    is_limited = decision.verdict is Verdict.DENY and met.issuperset(decision.reasons)
    return Outcome(
        "limit" if is_limited else decision.verdict.value,
        _citations(source, decision.reasons[:1]),
        limits,
    )


def use_outcome(source: SiteSource, use: UseDecision) -> Outcome:
    """Return the decision about a use of a page. The operator's defaults do not count."""
    is_decided = use.stated or is_unreachable(use.reasons[0].rule)
    verdict = use.verdict.value if is_decided else SILENT
    limits = tuple((name, _value_text(value)) for name, value in write_conditions(use).items())
    reasons = [reason for reason in use.reasons if reason.rule != "comity.default"]
    return Outcome(verdict, _citations(source, reasons if limits else reasons[:1]), limits)


def _citations(source: SiteSource, reasons: Iterable[Reason]) -> tuple[Citation, ...]:
    return tuple(
        dict.fromkeys(
            Citation(
                source.name_of(reason.source.url),
                reason.source.line,
                reason.source.part,
                reason.source.text,
                reason.rule,
                reason.spec,
            )
            for reason in reasons
        )
    )


class _TooManySitesError(Exception):
    """The search for lines on rates needs more sites than MAX_RATE_SITES."""


class _Explainer:
    """Makes the answers about one site for any agent, from the same sample URLs and pages."""

    def __init__(
        self, source: SiteSource, samples: tuple[str, ...], pages: tuple[SourceFile, ...]
    ) -> None:
        self._source = source
        self._site = source.site
        self._general = source.origin + unspoken_path(source)
        of_pages = {page.url for page in pages}
        self._urls = tuple(url for url in dict.fromkeys(samples) if url not in of_pages)
        self._pages = pages
        self.samples = (*self._urls, *(page.url for page in pages))
        self._sites_without: dict[int, Site] = {}  # number of lines left out -> the site

    def answers(self, agent: Agent) -> tuple[ExplainedAnswer, ...]:
        """Return the answers for an agent, with {subject} in place of its name."""
        pages = {
            url: self._site.page(agent, url, body=None) for url in (self._general, *self._urls)
        }
        for file in self._pages:
            fetched = file.fetched
            pages[file.url] = self._site.page(
                agent, file.url, headers=fetched.headers, body=fetched.body
            )
        conditions = tuple(self._site.conditions(agent))
        met = met_reasons(conditions)
        access = {
            url: access_outcome(self._source, page, agent, url, met) for url, page in pages.items()
        }
        allowed = [
            url
            for url in access
            if url != self._general and access[url].verdict in ("allow", "limit")
        ]
        uses: list[ExplainedAnswer] = []
        for class_ in CLASSES:
            outcomes = {}
            for url in (self._general, *allowed):
                outcomes[url] = use_outcome(self._source, pages[url].uses[class_.use])
            uses.append(self._use_answer(class_, outcomes))
        return (
            self._access_answer(access),
            *map(self._conditions_answer, _condition_groups(conditions)),
            *self._rates(agent),
            *(answer for answer in uses if answer.sentence),
            *_silent_answers([answer for answer in uses if not answer.sentence]),
            *self._parts(pages),
            *self._requests(agent),
        )

    def _citations(self, reasons: Iterable[Reason]) -> tuple[Citation, ...]:
        return _citations(self._source, reasons)

    def _access_answer(self, outcomes: Mapping[str, Outcome]) -> ExplainedAnswer:
        general, exceptions = self._divide(outcomes)
        reference, is_silent = (
            _reference(general.citations),
            not general.citations or not general.citations[0].line,
        )
        unreachable = [citation for citation in general.citations if is_unreachable(citation.rule)]
        limited = [exception for exception in exceptions if exception.verdict == "limit"]
        match general.verdict:
            case "allow" | "limit":
                refused = [
                    exception
                    for exception in exceptions
                    if exception.verdict not in ("allow", "limit")
                ]
                sentence = "{subject} may fetch everything" + (
                    " under conditions" if general.verdict == "limit" else ""
                )
                sentence += "" if is_silent else reference
                if refused:
                    sentence += f" with {_count(refused)}: {_enumerate(refused)}"
                elif is_silent and not limited:
                    sentence += ": no line refuses a sample URL"
            case "deny" if unreachable:
                sentence = "{subject} may fetch nothing, as " + _failure(unreachable[0])
            case verdict:
                until = dict(general.limits).get("not_before")
                permitted = [exception for exception in exceptions if exception.verdict == "allow"]
                sentence = "{subject} may fetch nothing" + (
                    f" until {until}" if verdict == "defer" and until else ""
                )
                if permitted:
                    sentence += f" with {_count(permitted)}: {_enumerate(permitted)};"
                    sentence += f" the rest is refused{reference}"
                else:
                    sentence += reference
        sentence += f", under conditions by {_enumerate(limited)}" if limited else ""
        return ExplainedAnswer(
            "access", general.verdict, f"{sentence}.", general.citations, exceptions, general.limits
        )

    def _conditions_answer(self, conditions: Sequence[Condition]) -> ExplainedAnswer:
        """Return an answer about a group of conditions.

        Conditions of one line share one citation."""
        words: dict[tuple[Citation, ...], list[str]] = {}
        for condition in conditions:
            words.setdefault(self._citations((condition.reason,)), []).append(condition.words)
        by_position: dict[str, list[str]] = {}
        for citations, texts in words.items():
            by_position.setdefault(_reference(citations), []).extend(texts)
        scopes = conditions[0].scopes
        place = f"Under {_few(scopes)}" if scopes else "Everywhere"
        statements = ", ".join(
            f"{', '.join(texts)}{position}" for position, texts in by_position.items()
        )
        return ExplainedAnswer(
            CONDITIONS,
            "limit",
            f"{place}, {statements}.",
            tuple(citation for citations in words for citation in citations),
        )

    def _use_answer(self, class_: UseClass, outcomes: Mapping[str, Outcome]) -> ExplainedAnswer:
        """Return the answer about a class of uses.

        Its sentence is empty if no file and no page mentions the class."""
        general, exceptions = self._divide(outcomes)
        limits = f", {_limits_text(general.limits)}" if general.limits else ""
        reference = _reference(general.citations)
        if general.verdict == SILENT and not exceptions and not limits:
            return ExplainedAnswer(class_.name, SILENT, "")
        if general.verdict == "allow":
            sentence = f"{{subject}} may {class_.verb}{limits}{reference}"
        elif general.verdict == "deny" and is_unreachable(general.citations[0].rule):
            failure = _failure(general.citations[0])
            sentence = f"{{subject}} may not {class_.verb} as long as {failure}"
        elif general.verdict == "deny":
            sentence = f"{{subject}} may not {class_.verb}{reference}"
        else:
            sentence = f"Nothing says in general whether {{subject}} may {class_.verb}"
            sentence += f"; a permission is limited: {limits[2:]}{reference}" if limits else ""
        words = {"allow": "permitted by", "deny": "refused by", SILENT: "undecided for"}
        for verdict, word in words.items():
            of_verdict = [exception for exception in exceptions if exception.verdict == verdict]
            if of_verdict:
                sentence += f"; {word} {_enumerate(of_verdict)}"
        return ExplainedAnswer(
            class_.name,
            general.verdict,
            f"{sentence}.",
            general.citations,
            exceptions,
            general.limits,
        )

    def _divide(self, outcomes: Mapping[str, Outcome]) -> tuple[Outcome, tuple[Exceptional, ...]]:
        """Return the outcome for the ordinary path, and an exception for each other outcome."""
        general = outcomes[self._general]
        others: dict[Outcome, list[str]] = {}
        for url, outcome in outcomes.items():
            if (outcome.verdict, outcome.limits) != (general.verdict, general.limits):
                others.setdefault(outcome, []).append(url)
        exceptions = (
            Exceptional(outcome.verdict, outcome.citations, outcome.limits, tuple(urls))
            for outcome, urls in others.items()
        )
        return general, tuple(exceptions)

    def _rates(self, agent: Agent) -> Iterator[ExplainedAnswer]:
        rates = _rates_of(self._site, agent, self._general)
        if rates:
            citations = tuple(self._rate_lines(agent, rates))
            sentence = (
                f"{{subject}} has to keep this pace: {', '.join(rates)}{_reference(citations)}."
            )
            yield ExplainedAnswer("rates", "limit", sentence, citations)

    def _rate_lines(self, agent: Agent, rates: Sequence[str]) -> Iterator[Citation]:
        """Yield for each rate the line that asks for it.

        That is the first line such that the rate disappears when the line and all lines before it
        are left out."""
        lines = self._lines_on_rates

        def asks(rate: str, count: int) -> bool:
            """Return True if the site still asks for the rate without the first `count` lines."""
            return rate in _rates_of(self._without(count), agent, self._general)

        try:
            for rate in rates:
                if not asks(rate, len(lines)):
                    index = bisect_left(
                        range(1, len(lines) + 1), x=True, key=lambda count: not asks(rate, count)
                    )
                    file, number, text = lines[index]
                    yield Citation(self._source.name_of(file), number, "body", text, "", "")
        except _TooManySitesError:
            return

    @cached_property
    def _lines_on_rates(self) -> list[tuple[str, int, str]]:
        """The lines that may be about rates: URL of the file, number from 1, and text."""
        return [
            (file.url, number, printable(line))
            for file in self._source.files
            for number, line in enumerate(file.fetched.body.splitlines(), 1)
            if _RATE_LINE.match(line)
        ]

    def _without(self, count: int) -> Site:
        """Return the site without the first `count` lines on rates."""
        if count not in self._sites_without:
            if len(self._sites_without) == MAX_RATE_SITES:
                raise _TooManySitesError
            files = dict(self._site.files)
            for url in dict.fromkeys(url for url, _, _ in self._lines_on_rates[:count]):
                numbers = {
                    number for of_url, number, _ in self._lines_on_rates[:count] if of_url == url
                }
                lines = enumerate(files[url].body.splitlines(keepends=True), 1)
                body = b"".join(b"#\n" if number in numbers else line for number, line in lines)
                files[url] = replace(files[url], body=body)
            self._sites_without[count] = Site(self._site.origin, files)
        return self._sites_without[count]

    def _parts(self, pages: Mapping[str, Any]) -> Iterator[ExplainedAnswer]:
        refused: dict[tuple[Citation, ...], str] = {}
        guided: dict[tuple[Citation, ...], str] = {}
        for page in pages.values():
            for element in page.elements:
                selector = f"`{printable(element.selector)}`"
                citations = self._citations(element.reasons)
                if element.deny:
                    refused.setdefault(
                        citations, f"{selector} for {_actions(element.deny)}{_reference(citations)}"
                    )
                elif element.guides:
                    actions = {action for guide in element.guides for action in guide.actions}
                    guided.setdefault(
                        citations, f"{selector} for {_actions(actions)}{_reference(citations)}"
                    )
        for verdict, words, parts in (
            ("deny", "{subject} may not use parts of pages: ", refused),
            ("allow", "{subject} has to follow instructions about parts of pages: ", guided),
        ):
            if parts:
                sentence = words + _few(list(parts.values()))
                yield ExplainedAnswer(
                    "parts",
                    verdict,
                    f"{sentence}.",
                    tuple(citation for citations in parts for citation in citations),
                )

    def _requests(self, agent: Agent) -> Iterator[ExplainedAnswer]:
        requests = self._site.requests(agent)
        if requests:
            citations = self._citations(request.reason for request in requests)
            actions = _few(
                [f"{request.action} of {printable(request.url)}" for request in requests]
            )
            yield ExplainedAnswer(
                "requests",
                "limit",
                f"{{subject}} is asked for: {actions}{_reference(citations)}.",
                citations,
            )


def rate_citations(source: SiteSource, agent: Agent) -> tuple[Citation, ...]:
    """Return the lines that ask an agent to keep a pace."""
    answer = next(_Explainer(source, (), ())._rates(agent), None)
    return answer.citations if answer else ()


def _condition_groups(conditions: Iterable[Condition]) -> list[tuple[Condition, ...]]:
    """Return the conditions of each group of lines: MAX_CONDITIONS groups at most."""
    groups = groupby(conditions, attrgetter("scopes"))
    return [tuple(group) for _, group in islice(groups, MAX_CONDITIONS)]


_RATE_LINE = re.compile(
    rb"[\s\w-]*(?:delay|rate|limit|visit|concurren|window)[\w-]*\s*:", re.IGNORECASE
)


def _silent_answers(answers: Sequence[ExplainedAnswer]) -> Iterator[ExplainedAnswer]:
    """Yield one answer for all classes that no file mentions."""
    if answers:
        verb_of = {class_.name: class_.verb for class_ in CLASSES}
        verbs = "; ".join(verb_of[answer.topic] for answer in answers)
        yield ExplainedAnswer(
            ", ".join(answer.topic for answer in answers),
            SILENT,
            f"Nothing says whether {{subject}} may {verbs}.",
        )


def _rates_of(site: Site, agent: Agent, url: str) -> list[str]:
    rates, texts = site.rates(agent), []
    if rates:
        texts += [f"{rates.crawl_delay:g} s between requests"] if rates.crawl_delay else []
        texts += [
            _rate_text(rate.requests, rate.seconds) + _hours_text(rate.start, rate.end)
            for rate in rates.request_rates
        ]
        texts += (
            [f"visits{_hours_text(rates.visit_time.start, rates.visit_time.end)}"]
            if rates.visit_time
            else []
        )
    for limits in site.limits(agent, url):
        texts += map(_limit_text, limits.lines(DEFAULTS["COMITY_MAX_DELAY"]))
    return list(dict.fromkeys(texts))


def _limit_text(limit: StatedLimit) -> str:
    window = limit.window
    text = (
        _rate_text(window.requests, window.seconds) if window else f"{limit.concurrent} at a time"
    )
    return (
        f"{text}, as `{limit.source.text}` cannot be read ({limit.advice})"
        if limit.advice
        else text
    )


def _rate_text(requests: int, seconds: float) -> str:
    return f"{requests} request{'s' if requests != 1 else ''} in {seconds:g} s"


def _hours_text(start: time | None, end: time | None) -> str:
    return f" from {start:%H:%M} to {end:%H:%M} UTC" if start and end else ""


def _value_text(value: Any) -> str:
    return (
        " ".join(printable(str(item)) for item in value)
        if isinstance(value, list)
        else printable(str(value))
    )


_LIMITS = {
    "max_chars": "at most {} characters of them",
    "max_words": "at most {} words of them",
    "until": "until {}",
    "until_recrawled": "until they are fetched again",
}


def _limits_text(limits: Iterable[tuple[str, str]]) -> str:
    return ", ".join(
        _LIMITS.get(name, f"with {name.replace('_', ' ')} {{}}").format(value)
        for name, value in limits
    )


def _actions(actions: Iterable[str]) -> str:
    names = display_names(actions)
    return "everything" if "*" in names else ", ".join(map(printable, names))


def _reference(citations: Sequence[Citation]) -> str:
    positions = list(
        dict.fromkeys(
            str(citation)
            for citation in citations
            if citation.line or citation.part != "body" or citation.text
        )
    )
    return f" ({_few(positions)})" if positions else ""


def _count(exceptions: Sequence[Exceptional]) -> str:
    return "one exception" if len(exceptions) == 1 else f"{len(exceptions)} exceptions"


def _enumerate(exceptions: Sequence[Exceptional]) -> str:
    """Return the lines of the exceptions as written, with their places.

    Exceptions without a line are listed by the paths of their URLs."""
    texts = []
    for exception in exceptions:
        limits = f", {_limits_text(exception.limits)}" if exception.limits else ""
        text = next((citation.text for citation in exception.citations if citation.text), "")
        name = (
            f"`{text}`"
            if text
            else _few([printable(urlsplit(url).path or url) for url in exception.urls])
        )
        texts.append(f"{name}{limits}{_reference(exception.citations)}")
    return _few(texts)


def _few(texts: Sequence[str]) -> str:
    """Return the first MAX_EXCEPTIONS texts in one, and the number of the others."""
    more = len(texts) - MAX_EXCEPTIONS
    return ", ".join(texts[:MAX_EXCEPTIONS]) + (f" and {more} more" if more > 0 else "")
