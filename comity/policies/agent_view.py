"""The files of one site, read for one agent in all formats.

1. `SiteReading.for_agent` returns a reading for the agent, or None if the format has nothing for
   it. Only the methods of `AgentReading` that a format overrides are called, because thousands of
   pages are evaluated.
2. A server may take a URL for several targets (`spellings`, docs/robots.md). Each target is
   evaluated, and all of them have to permit.
3. A request needs the permission of every format with rules for requests, for every target
   (`AgentView.access`).
4. Statements about a target are in carriers: the files, the header fields, the document, other
   documents. All of them hold together, unless the format gives precedence to one carrier
   (`Format.conclude`): see `combine_carriers`.
5. All statements in one vocabulary are one source of decisions, from all carriers and formats.
   Several targets make a joint source, which permits a use if all of them permit it
   (`AgentView.sources`).
6. Sources of their own are the permissions that depend on the page or on the date
   (`AgentView.page_sources`), and the rules about elements of a page (`AgentView.element_rules`).
7. If sources disagree on a use, any refusal refuses. `page.Uses` asks them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial, reduce
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from comity.bounded import Bounded
from comity.policies.agent import Agent
from comity.policies.answers.combining import strictest
from comity.policies.answers.decision import (
    OF_PAGE,
    ActionRequest,
    Condition,
    Decision,
    Finding,
    Reason,
    Source,
    Verdict,
    with_page_url,
)
from comity.policies.answers.element_rule import ElementRule
from comity.policies.answers.rates import Rates
from comity.policies.answers.request import Facts
from comity.policies.document.document import Content
from comity.policies.elements.rules import ElementRules, ElementUses
from comity.policies.formats import FORMATS
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import (
    NO_STATEMENTS,
    AgentReading,
    Capture,
    ElementRuleSet,
    PageSource,
    Resource,
    SiteReading,
    Statements,
    Unanswered,
    UseSource,
    nothing_more,
)
from comity.policies.page import OptOutSource, UnreachableSource, jointly
from comity.policies.registry import OptOut
from comity.policies.syntax.windows import Limits
from comity.policies.vocabulary.preferences import Preferences
from comity.policies.vocabulary.statement import Statement
from comity.policies.vocabulary.table import Vocabulary

# Sets of purposes for which the refusal of the whole site is cached.
MAX_PURPOSES = 64

ByVocabulary = Mapping[str, Sequence[Statement]]  # name of a vocabulary -> its statements
_Stated = tuple[tuple[str, tuple[Statement, ...]], ...]
# All statements about one resource by vocabulary, the reasons for which every use is refused, and
# the unreachable files that could refuse more. Hashable.
Outcome = tuple[_Stated, tuple[Reason, ...], tuple[Unanswered, ...]]


class Carrier(NamedTuple):
    """The statements of one carrier in all formats.

    Attributes:
        statements: name of a format -> its statements."""

    statements: Mapping[str, Statements] = {}

    @property
    def refused(self) -> tuple[Reason, ...]:
        """The reasons for which every use is refused."""
        return tuple(
            reason for statements in self.statements.values() for reason in statements.refused
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Hints for the author of the statements."""
        return tuple(
            finding for statements in self.statements.values() for finding in statements.findings
        )

    @property
    def documents(self) -> tuple[str, ...]:
        """Absolute URLs of the documents to which the statements refer."""
        return tuple(url for statements in self.statements.values() for url in statements.documents)


NO_CARRIER = Carrier()


class AgentView:
    """The answers of one site to one agent."""

    def __init__(
        self,
        agent: Agent,
        sites: Mapping[str, SiteReading],
        files: SiteFiles,
        unanswered: Mapping[str, tuple[Unanswered, ...]],
    ) -> None:
        """Read the site's files for the agent.

        Args:
            agent: the agent.
            sites: name of a format -> its reading of the files.
            files: the site's policy files.
            unanswered: name of a format -> its unreachable files that may refuse uses."""
        self.agent = agent
        self._files = files
        self.unanswered = unanswered if agent.denies_unreachable else {}
        self._readings = {
            name: reading
            for name, site in sites.items()
            if (reading := site.for_agent(agent)) is not None
        }
        self._restricting = tuple(
            (name, reading) for name, reading in self._readings.items() if reading.restricts_access
        )
        self._only = self._restricting[0][1] if len(self._restricting) == 1 else None
        readings = self._readings.items()
        self._stating = tuple(
            (name, reading) for name, reading in readings if _overrides(reading, "statements")
        )
        # Names of the formats with rules for requests.
        self._deciding_access = frozenset(
            name for name, reading in readings if _overrides(reading, "access")
        )
        self._ruling = tuple(
            reading for _, reading in readings if _overrides(reading, "element_rules")
        )
        self._differing = tuple(reading for _, reading in readings if not reading.is_same_for_pages)
        self._limiting = tuple(
            reading for _, reading in self._restricting if _overrides(reading, "limits")
        )
        self.has_limits = bool(self._limiting)
        """True if `limits` may return some."""
        self.depends_on_time = any(reading.depends_on_time for _, reading in self._restricting)
        """True if `access` may change with time, apart from the age of sessions."""
        self.asks_facts = any(reading.depends_on_request for reading in self._readings.values())
        """True if a decision may depend on more than the URL of a request."""

    # Access

    def access(
        self,
        targets: Sequence[str],
        facts: Facts,
        now: datetime | None,
        pages: Mapping[str, object] | None = None,
    ) -> Decision:
        """Return the decision about a request: may it be made?

        Args:
            targets: path and query in all `spellings`. All of them have to permit the request.
            facts: facts about the request.
            now: an aware datetime. None: the clock.
            pages: result of `access_rules`. None: no page came back yet."""
        if self._only is not None and len(targets) == 1 and not pages:
            answer = self._only.access(targets[0], targets[0], facts, now)
            assert answer is not None
            decision = answer
        else:
            decision = self._access_by_files(targets, facts, now, pages)
        if not self.agent.opt_outs.registries:
            return decision
        refusal = self._refusal_by_registries(targets)
        return decision if refusal is None else strictest([refusal, decision])

    def _access_by_files(
        self,
        targets: Sequence[str],
        facts: Facts,
        now: datetime | None,
        pages: Mapping[str, object] | None,
    ) -> Decision:
        """Return the decision of the site's files about a request."""
        sent = targets[0]
        restricting = self._restricting
        if pages:
            restricting = tuple(
                (name, reading)
                for name, reading in self._readings.items()
                if reading.restricts_access or name in pages
            )
        decisions = []
        for target in targets:
            for name, reading in restricting:
                page = pages.get(name) if pages else None
                decision = reading.access(target, sent, facts, now, page)
                if decision is not None:
                    decisions.append(decision)
        return strictest(decisions)

    def _refusal_by_registries(self, targets: Sequence[str]) -> Decision | None:
        return refusal_of_request(self.opt_outs(targets), self.agent.vocabulary)

    def opt_outs(self, targets: Sequence[str]) -> tuple[OptOut, ...]:
        """Return the entries of registries about the site, and about a URL of it.

        `targets`: path and query in all `spellings`."""
        if not self.agent.opt_outs.registries:
            return ()
        of_targets = self.agent.opt_outs.of_targets(self._files.origin, targets)
        return (*self._opt_outs_of_site, *of_targets)

    @cached_property
    def _opt_outs_of_site(self) -> tuple[OptOut, ...]:
        return self.agent.opt_outs.of_site(self._files.origin)

    def access_rules(self, document: Carrier) -> Mapping[str, object]:
        """Return name of a format -> its rules for requests in the page that came back.

        Only formats in which such rules count besides the files are included."""
        by_format = document.statements
        if not by_format:
            return {}
        return {
            name: state
            for name in self._deciding_access & by_format.keys()
            if (state := by_format[name].state) is not None
        }

    def unread_access_rules(self, document: Carrier) -> tuple[Reason, ...]:
        """Return the reasons why rules for requests in the page that came back cannot be read."""
        return tuple(
            reason
            for name, statements in document.statements.items()
            if name in self._deciding_access
            for reason in statements.refused
        )

    def disallows(self, target: str, facts: Facts) -> bool:
        """Return True if a Disallow line in one of the files decides."""
        return any(reading.disallows(target, facts) for _, reading in self._restricting)

    def considered(self, targets: Sequence[str], facts: Facts) -> tuple[Reason, ...]:
        """Return the reasons of all rules that match, the deciding ones first.

        `targets` and `facts` are arguments of `access`."""
        reasons = [
            reason
            for target in targets
            for _, reading in self._restricting
            for reason in reading.considered(target, facts)
        ]
        if (refusal := self._refusal_by_registries(targets)) is not None:
            reasons += refusal.reasons
        deciding = self.access(targets, facts, None).reasons
        return tuple(sorted(dict.fromkeys(reasons), key=lambda reason: reason not in deciding))

    @cached_property
    def rates(self) -> Rates | None:
        """The rates at which the site asks to be visited. None: it has no rules for any agent."""
        rates = [
            rates for reading in self._readings.values() if (rates := reading.rates) is not None
        ]
        return reduce(Rates.strictest, rates) if rates else None

    def limits(self, targets: Iterable[str]) -> tuple[Limits, ...]:
        """Return the limits on requests to these targets, besides `rates`."""
        limits = (reading.limits(target) for target in targets for reading in self._limiting)
        return tuple(dict.fromkeys(limit for limit in limits if limit is not None))

    @property
    def references(self) -> tuple[str, ...]:
        """Absolute URLs of further policy files that are needed to decide."""
        return tuple(
            dict.fromkeys(url for reading in self._readings.values() for url in reading.references)
        )

    @property
    def documents(self) -> tuple[str, ...]:
        """Absolute URLs of the licences to which the site's files refer."""
        return tuple(
            dict.fromkeys(url for reading in self._readings.values() for url in reading.documents)
        )

    def requests(self) -> tuple[ActionRequest, ...]:
        """Return the actions that the site asks the agent for."""
        return tuple(
            request for reading in self._readings.values() for request in reading.requests()
        )

    def conditions(self) -> Iterator[Condition]:
        """Yield the conditions on requests, to show them to people."""
        return (
            condition for reading in self._readings.values() for condition in reading.conditions()
        )

    # Uses

    def statements(self, resource: Resource) -> Carrier:
        """Return the statements of the site's files about one resource."""
        if not self._stating:
            return NO_CARRIER
        return Carrier({name: reading.statements(resource) for name, reading in self._stating})

    @cached_property
    def silent_outcome(self) -> Outcome | None:
        """The outcome for a page whose response states nothing. None: the site's files may."""
        return None if self._stating else combine_carriers([NO_CARRIER] * 4, self.unanswered)

    @property
    def is_same_for_pages(self) -> bool:
        """True if `access` and `statements` return everything that the files state about a page."""
        return not self._differing

    def page_sources(self, targets: Sequence[str], capture: Capture) -> list[list[PageSource]]:
        """Return the permissions of a page that statements cannot express, one list a format."""
        return [
            list(sources)
            for reading in self._differing
            if (sources := reading.sources(targets, capture))
        ]

    @cached_property
    def _unusable(self) -> Bounded[tuple[frozenset[str] | None, bool], Decision | None]:
        """(purposes, whether unreachable files count) -> refusal of the whole site."""
        return Bounded(MAX_PURPOSES)

    def unusable(self, purposes: Iterable[str] | None) -> Decision | None:
        """Return the refusal of every declared use of all pages, or None.

        `purposes` are those of the request. None: those of the agent."""
        return self._refusal_of_site(purposes)

    def awaits_files(self, purposes: Iterable[str] | None) -> bool:
        """Return True if every declared use is refused only until missing policy files answer."""
        if not self.unanswered or self.unusable(purposes) is not None:
            return False
        return self._refusal_of_site(purposes, with_unanswered=True) is not None

    def _refusal_of_site(
        self,
        purposes: Iterable[str] | None,
        *,
        with_unanswered: bool = False,
    ) -> Decision | None:
        """Return `unusable`, from the cache.

        If `with_unanswered`, unreachable files refuse the uses that they could refuse."""
        asked = None if purposes is None else frozenset(purposes)
        key = asked, with_unanswered
        if key not in self._unusable:
            self._unusable[key] = self._unusable_for(asked, with_unanswered=with_unanswered)
        return self._unusable[key]

    def _unusable_for(
        self, purposes: frozenset[str] | None, *, with_unanswered: bool
    ) -> Decision | None:
        if not self.agent.uses:
            return None
        readings = self._readings.values()
        statements = [statement for reading in readings for statement in reading.everywhere()]
        sources = self.sources([_by_vocabulary(statements)], is_of_one_page=False)
        for reading in readings:
            sources += reading.site_sources(purposes)
            if rules := reading.element_rules_everywhere():
                sources.append(
                    ElementUses(
                        rules.rules, self.agent.vocabulary, partial(_reason_of_rule, rules, "")
                    )
                )
        if self._opt_outs_of_site:
            sources.append(OptOutSource(self._opt_outs_of_site, self.agent.vocabulary))
        if with_unanswered:
            files = chain(*self.unanswered.values())
            sources += (UnreachableSource(file, self.agent.vocabulary) for file in files)
        return self.refusal_of_all(sources, self._files.origin)

    def refusal_of_all(self, sources: Sequence[UseSource], url: str) -> Decision | None:
        """Return the refusal if the sources refuse every declared use, else None.

        `url` is the URL of the page."""
        if "crawl" in self.agent.uses:  # USE-14: no preference refuses it
            return None
        reasons: dict[Reason, None] = {}
        for use in self.agent.uses:
            decisions = [source.decide(use) for source in sources]
            refusing = [
                decision
                for decision in decisions
                if decision is not None and decision.verdict is Verdict.DENY
            ]
            if not refusing or self.agent.licence(url, use) is not None:
                return None
            reasons |= dict.fromkeys(reason for decision in refusing for reason in decision.reasons)
        return Decision(verdict=Verdict.DENY, reasons=with_page_url(tuple(reasons), url))

    def sources(
        self, statements: Sequence[ByVocabulary], *, is_of_one_page: bool = True
    ) -> list[UseSource]:
        """Return the statements in each vocabulary as sources of decisions.

        Their reasons contain OF_PAGE in place of the page's URL.

        Args:
            statements: one mapping for each target.
            is_of_one_page: argument of `Preferences`."""
        source_of = partial(
            Preferences,
            self.agent.vocabulary,
            reason_of=self._reason,
            is_of_one_page=is_of_one_page,
        )
        if len(statements) == 1:
            return [source_of(name, in_vocabulary) for name, in_vocabulary in statements[0].items()]
        sources = []
        for name in dict.fromkeys(name for of_target in statements for name in of_target):
            distinct = dict.fromkeys(tuple(of_target.get(name, ())) for of_target in statements)
            sources.append(jointly([source_of(name, in_vocabulary) for in_vocabulary in distinct]))
        return sources

    def _reason(self, statement: Statement) -> Reason:
        position = statement.location
        if position.part == "body" and (file := self._files.response(position.url)):
            return file.reason(statement.rule, line=position.line, text=position.text)
        source = Source(
            url=position.url or OF_PAGE, part=position.part, line=position.line, text=position.text
        )
        return Reason(rule=statement.rule, source=source)

    def element_rules(
        self, target: str, content: Content, url: str, *, is_read: bool = True
    ) -> ElementRules | None:
        """Return the element rules of the site and of the page itself; None: there are none.

        `target` is the path and query of the page's URL. `is_read` is an argument of
        `elements.rules.ElementRules`."""
        rule_sets = [
            rules for reading in self._ruling if (rules := reading.element_rules(target, content))
        ]
        rule_sets += [
            rules for of_page in _PAGE_ELEMENTS if (rules := of_page(content, self.agent))
        ]
        if not rule_sets:
            return None
        all_rules = [rule for rules in rule_sets for rule in rules.rules]
        reason_of = partial(_reason_in_sets, rule_sets, url)
        return ElementRules(
            content, all_rules, url, self.agent.vocabulary, reason_of, is_read=is_read
        )


def refusal_of_request(opt_outs: Iterable[OptOut], vocabulary: Vocabulary) -> Decision | None:
    """Return the refusal of a request if one of the entries refuses to crawl; else None."""
    reasons = tuple(entry.reason for entry in opt_outs if entry.refuses("crawl", vocabulary))
    return Decision(verdict=Verdict.DENY, reasons=reasons) if reasons else None


def _overrides(reading: AgentReading, method: str) -> bool:
    """Return True if the format implements this method itself."""
    return getattr(type(reading), method) is not getattr(AgentReading, method)


_PAGE_ELEMENTS = tuple(format_.page_elements for format_ in FORMATS if format_.page_elements)
_CONCLUDING = tuple(
    (format_.name, format_.conclude) for format_ in FORMATS if format_.conclude is not nothing_more
)


def _reason_of_rule(rules: ElementRuleSet, url: str, rule: ElementRule) -> Reason:
    return rules.reason_of(rule, url)


def _reason_in_sets(rule_sets: Sequence[ElementRuleSet], url: str, rule: ElementRule) -> Reason:
    """Return the reason for a rule.

    The last set is short, so it is searched by identity. Other rules belong to the first set."""
    for rules in reversed(rule_sets[1:]):
        if any(candidate is rule for candidate in rules.rules):
            return rules.reason_of(rule, url)
    return rule_sets[0].reason_of(rule, url)


_ByFormat = Mapping[str, tuple[Unanswered, ...]]
_NONE: _ByFormat = MappingProxyType({})


def combine_carriers(carriers: Sequence[Carrier], unanswered: _ByFormat = _NONE) -> Outcome:
    """Return all statements about one resource, the refusals of every use, and the missing files.

    The missing files are those unreachable files that could refuse more. A format with its own
    `conclude` misses no file if its header fields or its document state something.

    Args:
        carriers: in the order files, header fields, document.
        unanswered: see `AgentView`."""
    statements = [
        statement
        for carrier in carriers
        if carrier.statements
        for in_format in carrier.statements.values()
        for statement in in_format.statements
    ]
    refused = [reason for carrier in carriers if carrier.statements for reason in carrier.refused]
    missing = dict(unanswered)
    for name, conclude in _CONCLUDING:
        states = [
            carrier.statements[name].state if name in carrier.statements else NO_STATEMENTS.state
            for carrier in carriers
        ]
        if name in missing and conclude([NO_STATEMENTS.state, *states[1:]]).statements:
            del missing[name]
        end = conclude(states)
        statements += end.statements
        refused += end.refused
    by_vocabulary = tuple(
        (name, tuple(in_vocabulary)) for name, in_vocabulary in _by_vocabulary(statements).items()
    )
    return by_vocabulary, tuple(dict.fromkeys(refused)), tuple(chain(*missing.values()))


def _by_vocabulary(statements: Iterable[Statement]) -> ByVocabulary:
    by_vocabulary: dict[str, list[Statement]] = {}
    for statement in statements:
        by_vocabulary.setdefault(statement.term.partition(":")[0], []).append(statement)
    return by_vocabulary


# Term -> the term that replaces it for an image, in the formats with rules for images.
_OF_IMAGES = {term: meaning for format_ in FORMATS for term, meaning in format_.of_images.items()}
_SPEAKING_OF_IMAGES = frozenset(term.partition(":")[0] for term in _OF_IMAGES)


def of_images(statements: ByVocabulary) -> ByVocabulary:
    """Return the statements about images: those about the page if there are no others (META-3)."""
    changed = {}
    for name in _SPEAKING_OF_IMAGES.intersection(statements):
        if any(statement.term in _OF_IMAGES for statement in statements[name]):
            changed[name] = [
                statement._replace(term=_OF_IMAGES.get(statement.term, statement.term))
                for statement in statements[name]
            ]
    return {**statements, **changed} if changed else statements
