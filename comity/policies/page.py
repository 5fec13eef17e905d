"""The permissions of one fetched page."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, Protocol

from comity.policies.agent import Agent
from comity.policies.answers.combining import most_restrictive, strictest
from comity.policies.answers.decision import (
    OF_PAGE,
    Decision,
    Finding,
    Reason,
    Source,
    UseDecision,
    Verdict,
    with_page_url,
)
from comity.policies.answers.element_rule import ALL
from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.elements.coverage import refuses
from comity.policies.elements.rules import Element, ElementRules, Traced
from comity.policies.formats.format import PageSource, Unanswered, UseSource
from comity.policies.registry import OptOut
from comity.policies.syntax.printable import MAX_SHOWN
from comity.policies.tag import BASIC_USES, USE_NAME, without_extracts, write_tag
from comity.policies.vocabulary.table import Vocabulary

# Uses that a tag lists only because the site names them.
MAX_STATED = 100


# Rule of the reason that refuses a use because it is a prohibited modification.
MODIFICATION = "comity.modification"

# A restriction on a use that another source permits.
Limit = tuple[Qualifiers, Reason]


class RefusingSource:
    """A source that refuses every use."""

    named_uses = ()

    def __init__(self, reasons: tuple[Reason, ...]) -> None:
        self._refused = UseDecision(verdict=Verdict.DENY, stated=True, reasons=reasons)

    def decide(self, use: str) -> UseDecision | None:
        return self._refused

    def limits(self, use: str) -> tuple[Limit, ...]:
        return ()


class UnreachableSource:
    """A source that denies the uses that an unreachable policy file could refuse (MEET-8)."""

    named_uses = ()

    def __init__(self, unanswered: Unanswered, vocabulary: Vocabulary) -> None:
        self._terms = unanswered.terms
        self._vocabulary = vocabulary
        self._denied = UseDecision(verdict=Verdict.DENY, stated=False, reasons=(unanswered.reason,))

    def decide(self, use: str) -> UseDecision | None:
        return self._denied if any(self._covers(term, use) for term in self._terms) else None

    def _covers(self, term: str, use: str) -> bool:
        if term == ALL:
            return refuses((ALL,), use, self._vocabulary)
        name, _, word = term.partition(":")
        return word in self._vocabulary.related(name, use).words

    def limits(self, use: str) -> tuple[Limit, ...]:
        return ()


class OptOutSource:
    """A source that refuses the uses that entries of registries refuse (docs/opt-outs.md).

    Attributes:
        is_of_work: True if the entries are about the work itself. A licence from the site does not
            lift them, because the work may have another owner."""

    def __init__(
        self, opt_outs: Sequence[OptOut], vocabulary: Vocabulary, *, is_of_work: bool = False
    ) -> None:
        self.is_of_work = is_of_work
        self._opt_outs = opt_outs
        self._vocabulary = vocabulary

    @property
    def named_uses(self) -> Iterable[str]:
        return (use for opt_out in self._opt_outs for use in opt_out.uses)

    def decide(self, use: str) -> UseDecision | None:
        reasons = tuple(
            opt_out.reason for opt_out in self._opt_outs if opt_out.refuses(use, self._vocabulary)
        )
        return UseDecision(verdict=Verdict.DENY, stated=True, reasons=reasons) if reasons else None

    def limits(self, use: str) -> tuple[Limit, ...]:
        return ()


class Joint:
    """One source made of the sources of all targets for which a server may take a URL.

    Any refusal refuses. A permission counts only if all sources have it. The restrictions of all
    sources hold (docs/robots.md)."""

    def __init__(self, sources: Sequence[UseSource]) -> None:
        self._sources = sources

    @property
    def named_uses(self) -> Iterable[str]:
        return dict.fromkeys(use for source in self._sources for use in source.named_uses)

    def decide(self, use: str) -> UseDecision | None:
        decisions = [source.decide(use) for source in self._sources]
        speaking = [decision for decision in decisions if decision is not None]
        refusing = [decision for decision in speaking if decision.verdict is Verdict.DENY]
        if not refusing and len(speaking) < len(decisions):
            return None
        return most_restrictive(refusing or speaking)

    def limits(self, use: str) -> Iterable[Limit]:
        for source in self._sources:
            yield from _restrictions(source, use)


class RestrictingSource:
    """The refusals and restrictions of another page's source, without its permissions."""

    def __init__(self, source: UseSource, url: str) -> None:
        """`url` is the URL of the other page."""
        self._source = source
        self._url = url

    @property
    def named_uses(self) -> Iterable[str]:
        return (use for use in self._source.named_uses if self.decide(use) is not None)

    def decide(self, use: str) -> UseDecision | None:
        decision = self._source.decide(use)
        return (
            _with_page_url(decision, self._url)
            if decision is not None and decision.verdict is Verdict.DENY
            else None
        )

    def limits(self, use: str) -> Iterable[Limit]:
        for qualifiers, reason in _restrictions(self._source, use):
            yield from ((qualifiers, with_url) for with_url in with_page_url((reason,), self._url))


def _restrictions(source: UseSource, use: str) -> Iterator[Limit]:
    """Yield the restrictions on the use, including those of the source's own permission."""
    yield from source.limits(use)
    decision = source.decide(use)
    if decision is not None and decision.restrictions():
        yield from ((decision, reason) for reason in decision.reasons)


def _with_page_url(decision: UseDecision, url: str) -> UseDecision:
    """Return the decision with the URL of the page in its reasons."""
    reasons = with_page_url(decision.reasons, url)
    return decision if reasons is decision.reasons else replace(decision, reasons=reasons)


def jointly(sources: Sequence[UseSource]) -> UseSource:
    """Return several sources as one. At least one is given."""
    return sources[0] if len(sources) == 1 else Joint(sources)


class Uses(Mapping[str, UseDecision]):
    """Use -> decision. Every use has one; iteration lists basic, declared and stated uses.

    The reasons contain OF_PAGE in place of the page's URL, as the sources do."""

    def __init__(
        self, agent: Agent, urls: Sequence[str], crawl: Decision, sources: Sequence[UseSource]
    ) -> None:
        """`urls` are the URLs of the page. A licence holds only if each of them has it."""
        self._agent = agent
        self._urls = urls
        self._sources = sources
        # DEFER is about the request, which was made: the crawl that fetched the page may keep it.
        verdict = Verdict.DENY if crawl.verdict is Verdict.DENY else Verdict.ALLOW
        self._decided = {"crawl": UseDecision(verdict=verdict, stated=True, reasons=crawl.reasons)}

    def __getitem__(self, use: str) -> UseDecision:
        decision = self._decided.get(use)
        if decision is None:
            decision = self._decided[use] = self._decide(use)
        return decision

    def _decide(self, use: str) -> UseDecision:
        """Decide about a use: arrangements first, the operator's default last (docs/uses.md)."""
        speaking = [
            answer for source in self._sources if (answer := source.decide(use)) is not None
        ]
        licences = [self._agent.licence(url, use) for url in self._urls]
        arranged = licences[0]
        if arranged is not None and None not in licences and not self._is_work_opted_out(use):
            source = Source(
                url="COMITY_ARRANGEMENTS",
                part="setting",
                text=f"{arranged.host}: {use}, {arranged.reference}",
            )
            reasons = (
                Reason(rule="comity.arrangement", source=source),
                *(most_restrictive(speaking).reasons if speaking else ()),
            )
            return UseDecision(verdict=Verdict.ALLOW, stated=True, reasons=reasons)
        decision = most_restrictive(speaking) if speaking else self._agent.default_of(use)
        if decision.verdict is Verdict.DENY and decision.stated:
            return decision
        if prohibiting := self._prohibiting(use):
            reason = Reason(rule=MODIFICATION, source=prohibiting[0].source)
            return UseDecision(
                verdict=Verdict.DENY,
                stated=True,
                reasons=tuple(dict.fromkeys((reason, *prohibiting, *decision.reasons))),
            )
        # A refusal by default keeps its limits: a different default may permit the use later.
        limits = [limit for source in self._sources for limit in source.limits(use)]
        if not limits:
            return decision
        reasons = tuple(dict.fromkeys((*decision.reasons, *(reason for _, reason in limits))))
        return replace(decision, reasons=reasons).conjoined(
            *(qualifiers for qualifiers, _ in limits)
        )

    def _is_work_opted_out(self, use: str) -> bool:
        return any(
            isinstance(source, OptOutSource)
            and source.is_of_work
            and source.decide(use) is not None
            for source in self._sources
        )

    def _prohibiting(self, use: str) -> list[Reason]:
        """Return the reasons that prohibit the modification that the use is (MEET-3)."""
        modifications = self._agent.vocabulary.modifications(use)
        if not modifications:
            return []
        restrictions = (
            restriction for source in self._sources for restriction in _restrictions(source, use)
        )
        return [
            reason
            for limit, reason in restrictions
            if not modifications.isdisjoint(limit.prohibited_modifications)
        ]

    def __iter__(self) -> Iterator[str]:
        """Yield the uses.

        A site's action is left out if its name cannot be the name of a use: it cannot be looked up.
        """
        named_uses = (
            use
            for source in self._sources
            for use in source.named_uses
            if len(use) <= MAX_SHOWN and USE_NAME.fullmatch(use)
        )
        return iter(
            dict.fromkeys(
                (*BASIC_USES, *self._agent.uses, *islice(dict.fromkeys(named_uses), MAX_STATED))
            )
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)


class UsesOfPage(Mapping[str, UseDecision]):
    """The decisions of `Uses`, with the URL of one page in the reasons."""

    def __init__(self, uses: Uses, url: str) -> None:
        self._uses = uses
        self._url = url

    def __getitem__(self, use: str) -> UseDecision:
        return _with_page_url(self._uses[use], self._url)

    def __iter__(self) -> Iterator[str]:
        return iter(self._uses)

    def __len__(self) -> int:
        return len(self._uses)


class Browsed(Protocol):
    """How a browser got a page."""

    @property
    def document_fields(self) -> Iterable[tuple[tuple[bytes, bytes], ...]]:
        """The header fields of each document that the browser showed on the way."""

    def tag(self, url: str) -> dict[str, Any]:
        """Return `browser` of the tag of an item. `url` is the last URL of the browser."""


class Page:
    """The decisions for one response, and the tag of an item made from it."""

    def __init__(
        self,
        agent: Agent,
        url: str,
        *,
        access: Decision,
        sources: Sequence[UseSource],
        embedded: Sequence[UseSource] | None,
        policies: Mapping[str, Any],
        page_sources: Sequence[PageSource] = (),
        licenses: tuple[str, ...] = (),
        findings: Iterable[Finding] = (),
        elements: ElementRules | None = None,
        body: bytes = b"",
        requested_urls: Sequence[str] = (),
    ) -> None:
        """Collect the decisions of the sources.

        Args:
            agent: the agent that asks.
            url: absolute URL of the page.
            access: decision on the request for the page.
            sources: sources of decisions about the page.
            embedded: sources of decisions about files embedded in the page. None: `sources`.
            policies: URL -> status, SHA-256 and fetch time of each policy file.
            page_sources: those of `sources` that need more than the page.
            licenses: absolute URLs of RSL documents that the page refers to.
            findings: hints for the author of the policies.
            elements: rules about elements of the page. None: there are none.
            body: the body as received.
            requested_urls: other URLs that led to the page."""
        self.agent = agent
        self.url = url
        self._urls = (url, *requested_urls)
        self._access, self._sources, self._embedded_sources = access, sources, embedded
        self._uses = Uses(agent, self._urls, access, sources)
        self._embedded = (
            self._uses if embedded is None else Uses(agent, self._urls, access, embedded)
        )
        self._name_uses()
        self._licenses = licenses
        self.is_cut = False
        """True if items and their tags contain nothing of refused elements."""
        self.browsed: Browsed | None = None
        """How a browser got the page. None: no browser was used."""
        self.element_rules = elements
        """Rules about elements of the page. None: there are none."""
        self.findings = tuple(findings)
        self._page_sources = page_sources
        self._policies = policies
        self._body = body
        self._same: Page | None = None  # a page with the same decisions

    def _name_uses(self) -> None:
        self.uses = UsesOfPage(self._uses, self.url)
        is_same = self._embedded is self._uses
        self.embedded = self.uses if is_same else UsesOfPage(self._embedded, self.url)
        """Use -> decision for files embedded in the page."""

    def _repr_html_(self) -> str:
        """Return the permissions of the page as a notebook shows them."""
        from comity import notebook

        return notebook.tag(self.permissions, f"{self.url} for {self.agent.token}")

    @property
    def follow(self) -> Decision:
        """May the links of the page be followed?"""
        use = self.uses["follow"]
        return Decision(verdict=use.verdict, reasons=use.reasons)

    @property
    def is_followed(self) -> bool:
        """True if the links of the page may be followed, as `follow` says with its reasons."""
        return self._uses["follow"].verdict is not Verdict.DENY

    @property
    def required_resources(self) -> tuple[str, ...]:
        """Absolute URLs of resources that are needed to decide.

        These are the resources that permissions require to be used or included, if the operator
        has arranged that with the site, and the licences that the page refers to."""
        return tuple(
            dict.fromkeys(
                (
                    *(url for uses in self._page_sources for url in uses.required_resources),
                    *self._licenses,
                )
            )
        )

    @property
    def dated(self) -> tuple[str, ...]:
        """The uses whose permission may end some days after the page was first used for them."""
        return tuple(dict.fromkeys(use for uses in self._page_sources for use in uses.dated))

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elements of the page with rules. The whole page is one of them if a rule names it."""
        return self.element_rules.elements if self.element_rules else ()

    def redacted(self, uses: Iterable[str]) -> bytes:
        """Return the body without the parts that are refused for these uses.

        It is b"" if the whole page is refused for one of the uses."""
        uses = tuple(uses)
        if any(self.uses[use].verdict is Verdict.DENY for use in uses):
            return b""
        return (
            self.element_rules.redacted(self.refusable(uses)) if self.element_rules else self._body
        )

    def refusable(self, uses: Iterable[str]) -> tuple[str, ...]:
        """Return the uses without a licence. The site's statements can refuse only these."""
        return tuple(
            use for use in uses if any(self.agent.licence(url, use) is None for url in self._urls)
        )

    def of_url(self, url: str, body: bytes, findings: tuple[Finding, ...]) -> Page:
        """Return a copy of this shared page for another URL with the same decisions.

        A shared page has no elements, no arranged licence and no decision that depends on the
        time."""
        page = object.__new__(Page)
        page.__dict__.update(self.__dict__)
        page.url, page._urls, page._body, page.findings, page._same = (
            url,
            (url,),
            body,
            findings,
            self,
        )
        page._name_uses()
        return page

    def asked_as(self, first: Page) -> Page:
        """Return this page as the response to another URL, that of `first`.

        The refusals for that URL hold for this page too. Its permissions permit nothing here."""
        rules = [page.element_rules for page in (self, first) if page.element_rules]
        is_same = self._embedded_sources is None and first._embedded_sources is None
        of_first = [RestrictingSource(source, first.url) for source in first._sources]
        embedded_of_first = [
            RestrictingSource(source, first.url)
            for source in first._embedded_sources or first._sources
        ]
        return Page(
            self.agent,
            self.url,
            access=strictest([first._access, self._access]),
            sources=[*self._sources, *of_first],
            embedded=None
            if is_same
            else [*(self._embedded_sources or self._sources), *embedded_of_first],
            page_sources=[*self._page_sources, *first._page_sources],
            licenses=tuple(dict.fromkeys((*self._licenses, *first._licenses))),
            policies={**first._policies, **self._policies},
            findings=dict.fromkeys((*self.findings, *first.findings)),
            body=self._body,
            elements=rules[0].beside(rules[1]) if len(rules) == 2 else next(iter(rules), None),
            requested_urls=first._urls,
        )

    @cached_property
    def permissions(self) -> dict[str, Any]:
        """The tag of an item that contains no element (permissions.schema.json).

        It is made once. Copy it before you change it, or call `tag_of`."""
        return self.tag_of({}, {})

    def tag_of(
        self, fields: Mapping[str, Any], declared: Mapping[str, str], *, names: Iterable[str] = ()
    ) -> dict[str, Any]:
        """Return a new tag for an item with these fields.

        `declared` and `names` are arguments of `ElementRules.traced`."""
        return self.tag_with(
            self.element_rules.traced(fields, declared, names=names) if self.element_rules else ()
        )

    def tag_with(self, elements: Iterable[Traced]) -> dict[str, Any]:
        """Return a new tag for an item that contains these elements."""
        present = tuple(elements)
        if present:
            tag: dict[str, Any] = self._new_tag(present)
        else:
            tag = pickle.loads(self._without_elements)  # noqa: S301  # made by comity itself
        for reason in tag["reasons"]:
            if reason["url"] == OF_PAGE:
                reason["url"] = self.url
        if self.browsed is not None:
            tag["browser"] = self.browsed.tag(self.url)
        return tag

    @cached_property
    def _without_elements(self) -> bytes:
        """The tag of an item that contains no element, pickled: that is the fastest way to copy."""
        return (
            pickle.dumps(self._new_tag(())) if self._same is None else self._same._without_elements
        )

    def _new_tag(self, elements: Sequence[Traced]) -> dict[str, Any]:
        # With several URLs some reasons contain the URL of a page, and it may be this page's URL.
        is_alone = len(self._urls) == 1
        uses, embedded = (self._uses, self._embedded) if is_alone else (self.uses, self.embedded)
        tag = write_tag(self.agent, uses, self._policies, embedded=embedded, elements=elements)
        return without_extracts(tag) if self.is_cut else tag
