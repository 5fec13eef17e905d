"""Who says what of the uses of a page: the files of its site, the header fields of the response and its markup.

SiteCarriers     robots.txt, tdmrep.json and RSL documents, for one agent
of_fields        the header fields of one response
of_markup        one page
What they say is gathered by vocabulary, wherever it stands (docs/uses.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from comity.policies.agent import Agent
from comity.policies.answers.decision import Finding, Verdict
from comity.policies.answers.fetched import Availability, Fetched, availability
from comity.policies.document.document import Content
from comity.policies.formats.aipref import content_usage
from comity.policies.formats.aipref import short_strings as usage
from comity.policies.formats.content_signals import signals as content_signal
from comity.policies.formats.file import AiFile, File, RobotsFile
from comity.policies.formats.robots.extension_lines import extension_lines
from comity.policies.formats.robots_meta import directives as robots_meta
from comity.policies.formats.rsl import licensing as rsl
from comity.policies.formats.tdmrep import reservation as tdmrep
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.statement import Place, Statement

MAX_PROLOGUE = 2000  # octets in which an RSL document has its root element

Fields = Sequence[tuple[bytes, bytes]]

_FIELDS = frozenset(
    (
        b"content-usage",
        b"usage-pref",
        b"content-signal",
        b"content-signals",
        b"x-robots-tag",
        b"tdm-reservation",
        b"tdm-policy",
        b"link",
    )
)


class Carried(NamedTuple):
    """What one carrier, or several, say of one page."""

    statements: tuple[Statement, ...] = ()
    findings: tuple[Finding, ...] = ()
    licenses: tuple[str, ...] = ()  # absolute URLs of RSL documents that it refers to
    reservation: tdmrep.Reservation | None = None  # of its own; what comes later takes its place

    def and_then(self, other: Carried) -> Carried:
        return Carried(
            self.statements + other.statements,
            self.findings + other.findings,
            self.licenses + other.licenses,
            tdmrep.effective((self.reservation, other.reservation)),
        )


class SiteCarriers:
    """What the files of one site say to one agent."""

    def __init__(self, token: str, robots: RobotsFile, ai: AiFile, files: Mapping[str, Fetched], origin: str) -> None:
        """`token`: "*" for whatever is said to anybody. `files`: absolute URL -> what came back."""
        self._spawning = ai.spawning.for_agent(token) if ai.spawning and ai.spawning.patterns else None
        self._files = files
        self._tdmrep_url = origin + tdmrep.WELL_KNOWN
        lines = extension_lines(robots.robots) if robots.robots else ()
        self._usage: usage.Lines | None = None
        self._rules: content_usage.Rules | None = None
        self._signals: content_signal.Signals | None = None
        self._licenses = rsl.References()
        if lines and robots.robots:
            self._usage = usage.Lines(lines, robots.robots, token, url=robots.url)
            self._rules = content_usage.Rules(lines, robots.robots, token, url=robots.url)
            self._signals = content_signal.Signals(lines, robots.robots, token, url=robots.url)
            groups = robots.robots.groups_naming(token)
            self._licenses = rsl.in_robots(lines, groups, robots.robots.text, robots.url)

    @property
    def licenses(self) -> tuple[str, ...]:
        """The RSL documents that robots.txt refers to, absolute URLs."""
        return self._licenses.urls

    @property
    def is_silent(self) -> bool:
        """Whether nothing is said of any page."""
        has_licenses = bool(self._licenses.urls or self._licenses.unread)
        return self._usage is None and self._spawning is None and self._tdmrep is None and not has_licenses

    @property
    def findings(self) -> Iterator[Finding]:
        """What the authors of the files should know."""
        for source in (self._usage, self._rules, self._signals, self._tdmrep, *self._documents):
            yield from source.findings if source else ()

    def of(self, url: str, target: str, *, is_disallowed: bool = False, is_fetched: bool = True) -> Carried:
        """What is said of one resource. `target`: its path and query.

        `is_disallowed`: by robots.txt; then Content-Usage lines say nothing of it (draft-ietf-aipref-attach section robots), but
        that their refusals hold where it `is_fetched` all the same."""
        statements: tuple[Statement, ...] = ()
        if self._usage and self._rules and self._signals:
            dictionaries = self._rules.statements(target)
            if is_disallowed:
                dictionaries = tuple(one for one in dictionaries if is_fetched and one.verdict is Verdict.DENY)
            statements = (*self._usage.statements(target), *dictionaries, *self._signals.statements())
        if self._spawning:
            statements += self._spawning.statements(target)
        for document in self._documents:
            statements += document.statements(url)
        reservation = self._tdmrep.reservation(target) if self._tdmrep else None
        return Carried(statements + self._unlicensed, reservation=reservation)

    def everywhere(self, origin: str) -> tuple[Statement, ...]:
        """What is refused of all resources, and permitted of any."""
        statements: tuple[Statement, ...] = ()
        if self._usage and self._rules and self._signals:
            statements = (*self._usage.everywhere(), *self._rules.everywhere(), *self._signals.everywhere())
        if self._spawning:
            statements += self._spawning.everywhere()
        for document in self._documents:
            refused = {f"rsl:{term}" for term in document.everywhere(origin)}
            of_root = document.statements(f"{origin}/")
            statements += tuple(one if one.term in refused else one._replace(verdict=Verdict.ALLOW) for one in of_root)
        if self._tdmrep and self._tdmrep.everywhere():
            statements += tdmrep.statements((self._tdmrep.reservation("/"),))
        return statements + self._unlicensed

    @cached_property
    def _tdmrep(self) -> tdmrep.TdmRep | None:
        file = File(self._tdmrep_url, self._files.get(self._tdmrep_url, Fetched(status=404)))
        if not file.is_present:
            return None
        return tdmrep.read(file.fetched.body, file.url, cut=file.fetched.oversized)

    @cached_property
    def _documents(self) -> tuple[rsl.Rsl, ...]:
        present = (url for url in self._licenses.urls if _is_present(self._files.get(url)))
        return tuple(document_of(url, self._files[url]) for url in present)

    @cached_property
    def _unlicensed(self) -> tuple[Statement, ...]:
        """By the references whose documents cannot be had."""
        places = [Place(url=url, text="it cannot be had") for url in self._licenses.urls if not _is_present(self._files.get(url))]
        return tuple(one for place in (*self._licenses.unread, *places) for one in rsl.unlicensed(place))


def document_of(url: str, fetched: Fetched) -> rsl.Rsl:
    return rsl.read(fetched.body, url, cut=fetched.oversized)


def max_age(url: str, fetched: Fetched) -> float:
    """Seconds for which a policy file says itself that it may be used; infinity where it doesn't (RSL-3)."""
    if b"rsl" not in fetched.body[:MAX_PROLOGUE] or url.endswith(".txt") or not _is_present(fetched):
        return float("inf")
    return document_of(url, fetched).max_age.total_seconds()


def _is_present(fetched: Fetched | None) -> bool:
    return fetched is not None and availability(fetched) is Availability.PRESENT


def of_fields(fields: Fields, agent: Agent, url: str, now: datetime | None) -> Carried:
    """What the header fields of one response say of its content."""
    named: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        if (name := name.lower()) in _FIELDS:
            named.setdefault(name, []).append(value)
    if not named:
        return Carried()
    found: list[tuple[tuple[Statement, ...], tuple[Finding, ...]]] = []
    if values := named.get(b"content-usage"):
        found.append(content_usage.field(values, readers=agent.content_usage, url=url))
    if values := named.get(b"usage-pref"):
        found.append(usage.string_field(values, url=url))
    for name, values in named.items():
        if name.startswith(b"content-signal"):
            found.append(content_signal.field(values, name.decode().title(), url=url))
    if values := named.get(b"x-robots-tag"):
        found.append(robots_meta.header(values, agent.token, now=now, url=url))
    references = rsl.in_fields(fields, url) if b"link" in named else rsl.References()
    unlicensed = [one for place in references.unread for one in rsl.unlicensed(place)]
    return _carried(found, unlicensed, references, tdmrep.fields(fields, url))


def of_markup(content: Content, token: str, url: str, now: datetime | None) -> Carried:
    """What a page, or another document, says of itself."""
    found = [robots_meta.markup(content, token, now=now, url=url)]
    references = rsl.in_markup(content, url)
    documents = rsl.inline(content, url)
    found += ((document.statements(url), document.findings) for document in documents)
    unlicensed = [one for place in references.unread for one in rsl.unlicensed(place)]
    return _carried(found, unlicensed, references, tdmrep.markup(content, url) or tdmrep.document(content, url))


def _carried(
    found: Iterable[tuple[tuple[Statement, ...], tuple[Finding, ...]]],
    unlicensed: Iterable[Statement],
    references: rsl.References,
    reservation: tdmrep.Reservation | None,
) -> Carried:
    statements, findings = _joined(found)
    findings += reservation.findings if reservation else ()
    return Carried((*statements, *unlicensed), findings, references.urls, reservation)


def licensed(urls: Iterable[str], resources: Mapping[str, Fetched], url: str) -> Carried:
    """What RSL documents say of a page that refers to them. `resources`: absolute URL -> what came back."""
    found = []
    for address in urls:
        fetched = resources.get(address)
        if fetched is not None and _is_present(fetched):
            document = document_of(address, fetched)
            found.append((document.statements(url), document.findings))
        else:
            found.append((rsl.unlicensed(Place(url=address, text=f"{printable(address.encode())} cannot be had")), ()))
    return Carried(*_joined(found))


def _joined(
    found: Iterable[tuple[tuple[Statement, ...], tuple[Finding, ...]]],
) -> tuple[tuple[Statement, ...], tuple[Finding, ...]]:
    found = list(found)
    return tuple(one for statements, _ in found for one in statements), tuple(one for _, findings in found for one in findings)


# What is said of images alone, for what is one.
_OF_IMAGES = {"robots-meta:noimageai": "robots-meta:noai", "robots-meta:noimageindex": "robots-meta:noindex"}

ByVocabulary = Mapping[str, Sequence[Statement]]


def of_images(said: ByVocabulary) -> ByVocabulary:
    """What is said of images: the same, where nothing else is said of them (META-3)."""
    about = said.get("robots-meta", ())
    if not any(statement.term in _OF_IMAGES for statement in about):
        return said
    return {**said, "robots-meta": [one._replace(term=_OF_IMAGES.get(one.term, one.term)) for one in about]}


def by_vocabulary(carried: Carried) -> ByVocabulary:
    """Name of a vocabulary -> all that is said in it."""
    said: dict[str, list[Statement]] = {}
    for statement in (*carried.statements, *tdmrep.statements((carried.reservation,))):
        said.setdefault(statement.term.partition(":")[0], []).append(statement)
    return said
