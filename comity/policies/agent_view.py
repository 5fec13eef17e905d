"""What the files of one site say to one agent: robots.txt and the files that it refers to, read once, compiled once."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import NamedTuple

from comity.policies.agent import Agent
from comity.policies.answers.combining import strictest
from comity.policies.answers.decision import ActionRequest, Decision, Reason, Source, UseDecision, Verdict
from comity.policies.answers.fetched import Availability, Fetched
from comity.policies.answers.rates import Rates
from comity.policies.answers.request import Facts
from comity.policies.carriers import ByVocabulary, Carried, SiteCarriers, by_vocabulary
from comity.policies.document.document import Content
from comity.policies.elements.rules import ElementRules, ElementUses
from comity.policies.formats.acap import Field, PageUses, PurposeView, Reference, Rules, SiteUses, Taken, addressed
from comity.policies.formats.acap.resolution import MAX_VIEWS
from comity.policies.formats.ai_txt import ACTIONS, Rule
from comity.policies.formats.ai_txt.values import ALL
from comity.policies.formats.automation.access import Annotated, Automated
from comity.policies.formats.automation.directives import Limits
from comity.policies.formats.file import AiFile, AutomationFile, File, RobotsFile
from comity.policies.formats.robots import grammar as robots
from comity.policies.page import AcapUses, UseSource, jointly
from comity.policies.syntax.urls import merges_slashes_only, resolved
from comity.policies.vocabulary.preferences import Preferences
from comity.policies.vocabulary.statement import Statement

NO_SNIPPET = "attribute data-nosnippet"  # as `Source.part`
_SILENT = Rules(Agent("nobody"), ())  # shared by the sites without ACAP, which most are
MAX_DECIDED = 1024  # decisions, or reasons, that are kept of one file: one for each line that decided


class Groups:
    """The conventional records of one file that bind the agent (RFC 9309 section-2.2.1)."""

    def __init__(self, file: RobotsFile, token: str, contested: Container[str]) -> None:
        """`contested`: patterns of which ACAP says something."""
        assert file.robots
        self.rules = file.robots.for_agent(token, contested=contested)
        self.by_name = file.robots.names(token)
        self._file = file
        self._decided: dict[int, Decision] = {}  # by the number of the deciding line; 0: none of a group, -1: no group

    def access(self, target: str, sent: str, now: datetime | None, acap: PurposeView | None = None) -> Decision:
        """`sent`: the URL's target as it is sent; `target` is one of its `spellings`. `acap`: what replaces lines."""
        replaced = partial(acap.on_crawling, by_name=self.by_name) if acap else None
        line = self.rules.deciding_line(target, replaced) or (0 if self.rules.has_group else -1)
        if target != sent and line > 0 and merges_slashes_only(sent, target) and line in self._lines(sent):
            return self.access(sent, sent, now, acap)  # there the line has been overcome
        decision = self._decided.get(line)
        if decision is None:
            if len(self._decided) >= MAX_DECIDED:
                self._decided.clear()
            decision = self._decided[line] = self._decide(target, replaced)
        visit_time = self.rules.rates.visit_time
        if visit_time and decision.verdict is Verdict.ALLOW:
            opens = visit_time.opens(now or datetime.now(UTC))
            if opens is not None:
                reason = self._file.reason("robots.visit-time", line=visit_time.line, text=visit_time.text)
                return Decision(verdict=Verdict.DEFER, reasons=(reason,), not_before=opens)
        return decision

    def matching(self, target: str) -> Iterator[Reason]:
        """All rules that match, the deciding one first."""
        return map(self._reason, self.rules.matching(target))

    def _lines(self, target: str) -> set[int]:
        """The numbers of those that match."""
        return {rule.line for rule in self.rules.matching(target)}

    def _decide(self, target: str, replaced: robots.Replaced | None) -> Decision:
        line = self.rules.decide(target, replaced)
        if line:
            return Decision(verdict=line.verdict, reasons=(self._reason(line),))
        rule = "robots.no-match" if self.rules.has_group else "robots.no-group"
        return Decision(verdict=Verdict.ALLOW, reasons=(self._file.reason(rule),))

    def _reason(self, line: robots.RuleLine) -> Reason:
        rule = "robots.allow" if line.verdict is Verdict.ALLOW else "robots.disallow"
        return self._file.reason(rule, line=line.line, text=line.text)


class _Referred(NamedTuple):
    """A file that a record for the agent refers to (ACAP 1.0 section-2.3.2)."""

    url: str  # absolute; "": nowhere that can be asked
    crawlers: tuple[str, ...]
    reference: Reference


class Binding:
    """The answers of one site to one agent."""

    def __init__(
        self,
        agent: Agent,
        file: RobotsFile,
        automation: AutomationFile,
        ai: AiFile,
        fetched: Mapping[str, Fetched],
        origin: str,
    ) -> None:
        """`file`: the robots.txt. `fetched`: absolute URL -> what came back, of the files that it refers to."""
        self._agent = agent
        self._origin = origin
        self._fetched = fetched
        self._automation = automation
        automated = Automated(agent, automation, origin)
        self.automated = None if automated.is_silent else automated  # what automation-preferences.txt says to the agent
        self._ai = ai
        bound = ai.elements.for_agent(agent.token) if ai.elements else None
        self._elements = bound if bound and bound.rules else None
        carriers = SiteCarriers(agent.token, file, ai, fetched, origin)
        self.carriers = None if carriers.is_silent else carriers  # what files say of uses, apart from ACAP
        self._file = file
        referred = list(_referred(agent, file))
        self.references = tuple(dict.fromkeys(one.url for one in referred if one.url))
        self._files = {file.url: file}  # those that say something
        self._reasons: dict[tuple[str, str, str, int], Reason] = {}  # by rule, its citation, and field of ACAP
        self._unusable: dict[frozenset[str], Decision | None] = {}  # by purposes
        self._stating: dict[str, File] = {}  # those that say something of uses, as they are asked for their reasons
        self._constant: list[Decision] = []  # what holds for every request
        self._unknown: list[Reason] = []  # why nobody knows what is permitted
        read = [file]
        for one in referred:
            found = _read_referred(one, file, fetched)
            if found is None or found.availability is Availability.UNREACHABLE:
                reason = file.line_reason("acap.reference-unreachable", one.reference.line, one.reference.at)
                self._unknown.append(reason)
            elif found.is_present:
                read.append(found)
        self._files |= {one.url: one for one in read}
        if not file.is_present:
            is_absent = file.availability is Availability.ABSENT
            rule, verdict = ("robots.unavailable", Verdict.ALLOW) if is_absent else ("robots.unreachable", Verdict.DENY)
            self._constant.append(Decision(verdict=verdict, reasons=(file.outcome_reason(rule),)))
        if self._unknown:
            self._constant.append(Decision(verdict=Verdict.DENY, reasons=tuple(self._unknown)))
        speaking = [one.acap for one in read if one.acap]
        self._acap = Rules(agent, speaking) if speaking else _SILENT
        self._bind_groups(read)

    def _bind_groups(self, read: list[RobotsFile]) -> None:
        for file in read:
            if file.acap and file.acap.ignores_conventional:
                reason = file.line_reason("acap.ignore-conventional", file.acap.ignores_conventional, file.acap.ignores_at)
                self._constant.append(Decision(verdict=Verdict.ALLOW, reasons=(reason,)))
        files = list({file.url: file for file in read if not (file.acap and file.acap.ignores_conventional)}.values())
        self._groups = [Groups(file, self._agent.token, self._acap.crawl_patterns) for file in files if file.robots]
        self.asks_facts = self.automated is not None or self._acap.asks_purposes  # whether more than its URL matters of a request
        # Most sites: one file, and no word of ACAP in it.
        self._single = self._groups[0] if len(self._groups) == 1 and not self._constant and not self._acap.records else None

    @property
    def rates(self) -> Rates | None:
        """How often the site asks to be visited; None where it has no rules for anybody."""
        if self._single:
            return self._single.rules.rates
        rates = None
        for groups in self._groups:
            rates = rates.strictest(groups.rules.rates) if rates else groups.rules.rates
        return rates

    def access(self, targets: Sequence[str], facts: Facts, now: datetime | None) -> Decision:
        """May the request be made? `targets`: path and query in all `spellings`; all of them have to permit it."""
        sent = targets[0]
        if len(targets) > 1:
            return strictest([self._access(target, sent, facts, now) for target in targets])
        if self._single and self.automated is None and sent != "/robots.txt":
            return self._single.access(sent, sent, now)
        return self._access(sent, sent, facts, now)

    def _access(self, target: str, sent: str, facts: Facts, now: datetime | None) -> Decision:
        crawl = self._crawl(target, sent, facts, now)
        if self.automated is None or (target == "/robots.txt" and facts.is_plain):
            return crawl
        stated = self.automated.access(target, facts, now)
        return crawl if stated is None else strictest([crawl, stated])

    def _crawl(self, target: str, sent: str, facts: Facts, now: datetime | None) -> Decision:
        """May it be fetched, by robots.txt and ACAP? `sent`: as of `Groups.access`."""
        if target == "/robots.txt":
            return Decision(verdict=Verdict.ALLOW, reasons=(self._file.reason("robots.self"),))
        if self._single:
            return self._single.access(target, sent, now)
        acap = self._acap.for_purposes(facts.purposes)
        answer = acap.matching(target).decide("crawl")
        decisions = [Decision(verdict=answer.verdict, reasons=tuple(map(self._field_reason, answer.fields)))] if answer else []
        decisions += self._constant
        decisions += (groups.access(target, sent, now, acap) for groups in self._groups)
        return strictest(decisions)

    def disallows(self, target: str, facts: Facts) -> bool:
        """Whether a Disallow line decides, in one of the files."""
        acap = self._acap.for_purposes(facts.purposes)
        return any(groups.access(target, target, None, acap).verdict is Verdict.DENY for groups in self._groups)

    def considered(self, targets: Sequence[str], facts: Facts) -> tuple[Reason, ...]:
        """Every rule that matches, the deciding ones first. `targets`: as of `access`."""
        reasons: list[Reason] = []
        acap = self._acap.for_purposes(facts.purposes)
        for target in targets:
            reasons += (reason for groups in self._groups for reason in groups.matching(target))
            reasons += map(self._field_reason, acap.matching(target).fields("crawl"))
            reasons += self.automated.considered(target, facts, None) if self.automated else ()
        deciding = self.access(targets, facts, None).reasons
        return tuple(sorted(dict.fromkeys(reasons), key=lambda reason: reason not in deciding))

    def annotated(self, targets: Sequence[str], facts: Facts, now: datetime | None, page: Annotated) -> Decision:
        """`access`, by what the page that came back says of itself: for it that comes before the file."""
        automated = self.automated or Automated(self._agent, self._automation, self._origin)
        decisions = [self._crawl(target, targets[0], facts, now) for target in targets]
        decisions += (stated for target in targets if (stated := automated.access(target, facts, now, page)) is not None)
        return strictest(decisions)

    def limits(self, targets: Iterable[str]) -> tuple[Limits, ...]:
        """How often requests like that may be made, besides `rates`: what each of the targets is limited to."""
        if self.automated is None or not self.automated.has_limits:
            return ()
        found = (self.automated.limits(target) for target in targets)
        return tuple(dict.fromkeys(limits for limits in found if limits is not None))

    def unusable(self, purposes: Iterable[str] | None) -> Decision | None:
        """The refusal, where the site refuses every declared use of all its pages to requests for these purposes; None: those of
        the agent."""
        acap = self._acap.for_purposes(purposes)
        if acap.purposes not in self._unusable:
            if len(self._unusable) >= MAX_VIEWS:
                self._unusable.clear()
            self._unusable[acap.purposes] = self._unusable_by(acap)
        return self._unusable[acap.purposes]

    def _unusable_by(self, acap: PurposeView) -> Decision | None:
        if not self._agent.uses or (self.carriers is None and self._elements is None and not self.speaks_acap):
            return None
        stated = self.carriers.everywhere(self._origin) if self.carriers else ()
        sources = self.sources([by_vocabulary(Carried(stated))], self._origin)
        if self.speaks_acap:
            sources.append(AcapUses(SiteUses(acap.everywhere(), self._because), self._agent.vocabulary))
        if self._elements:
            sources.append(ElementUses(self._elements.everywhere(), self._agent.vocabulary, self._said_of_elements))
        return self.refusal_of_all(sources, self._origin)

    def refusal_of_all(self, sources: Sequence[UseSource], url: str) -> Decision | None:
        """The refusal of every declared use, where that is what they say; None where one is left."""
        if "crawl" in self._agent.uses:  # USE-14: no preference refuses it
            return None
        reasons: dict[Reason, None] = {}
        for use in self._agent.uses:
            decisions = (source.decide(use) for source in sources)
            refusing = [one for one in decisions if one is not None and one.verdict is Verdict.DENY]
            if not refusing or self._agent.licence(url, use) is not None:
                return None
            reasons |= dict.fromkeys(reason for one in refusing for reason in one.reasons)
        return Decision(verdict=Verdict.DENY, reasons=tuple(reasons))

    def sources(self, statements: Sequence[ByVocabulary], url: str) -> list[UseSource]:
        """What is said in each vocabulary, as sources of decisions. `statements`: on each of the targets; `url`: of the page."""
        because = partial(self._stated, url)
        if len(statements) == 1:
            return [Preferences(self._agent.vocabulary, name, each, because) for name, each in statements[0].items()]
        found = []
        for name in dict.fromkeys(name for one in statements for name in one):
            distinct = dict.fromkeys(tuple(one.get(name, ())) for one in statements)
            found.append(jointly([Preferences(self._agent.vocabulary, name, each, because) for each in distinct]))
        return found

    def _stated(self, url: str, statement: Statement) -> Reason:
        place = statement.place
        if place.part == "body" and place.url in self._fetched:
            if place.url not in self._stating:
                self._stating[place.url] = File(place.url, self._fetched[place.url])
            return self._stating[place.url].reason(statement.rule, line=place.line, text=place.text)
        source = Source(url=place.url or url, part=place.part, line=place.line, text=place.text)
        return Reason(rule=statement.rule, source=source)

    def element_rules(self, target: str, content: Content, url: str, *, is_read: bool = True) -> ElementRules | None:
        """What ai.txt and the page itself say of its elements; None: nothing. `target`: path and query of its URL. `is_read`: see
        `ElementRules`."""
        rules = self._elements.rules_for(target, content.media_type, content.kind) if self._elements else ()
        if content.is_html and b"data-nosnippet" in content.octets:
            rules = (*rules, self._no_snippet)
        if not rules:
            return None
        because = partial(self._said_of_elements, url=url)
        return ElementRules(content, rules, url, self._agent.vocabulary, because, is_read=is_read)

    def _said_of_elements(self, rule: Rule, url: str = "") -> Reason:
        """`url`: of the page."""
        if rule is self._no_snippet:
            return Reason(rule="robots-meta.disallow", source=Source(url=url, part=NO_SNIPPET))
        return self._ai.line_reason(rule.id, rule.line, rule.at)

    @cached_property
    def _no_snippet(self) -> Rule:
        """What `nosnippet` refuses of a page, `data-nosnippet` refuses of an element (META-3). No action of ai.txt is named: it
        would refuse more."""
        vocabulary = self._agent.vocabulary
        own = {action.lower() for action in ACTIONS}
        uses = (use for use in vocabulary.uses if "nosnippet" in vocabulary.related("robots-meta", use).words)
        return Rule(
            agents=(ALL,),
            path="/",
            file_type="html",
            element="[data-nosnippet]",
            verdict=Verdict.DENY,
            actions=frozenset(use for use in uses if use not in own),
        )

    @property
    def speaks_of_elements(self) -> bool:
        """Whether the site has element rules for the agent."""
        return self._elements is not None

    @property
    def speaks_acap(self) -> bool:
        """Whether the site says anything in ACAP to the agent."""
        return bool(self._acap.records)

    def page_uses(self, targets: Iterable[str], taken: Taken, purposes: Iterable[str] | None) -> list[PageUses]:
        """What may be done with the page, by what holds for each of the targets. `purposes`: as of `unusable`."""
        refused = UseDecision(verdict=Verdict.DENY, stated=True, reasons=tuple(self._unknown)) if self._unknown else None
        distinct = dict.fromkeys(map(self._acap.for_purposes(purposes).matching, targets))
        return [PageUses(self._agent, matching, self._because, taken, refused=refused) for matching in distinct]

    def requests(self, origin: str) -> tuple[ActionRequest, ...]:
        """What the agent is asked to do, once for each resource (ACAP 1.0 section-2.6)."""
        found: dict[tuple[str, str], ActionRequest] = {}
        for file, request in ((record.url, request) for record in self._acap.records for request in record.requests):
            url = resolved(origin, request.path)
            if (request.action, url) not in found:
                is_arranged = self._agent.has_arranged(url, request.action)
                reason = self._files[file].line_reason("acap.request", request.line, request.at)
                asked = ActionRequest(action=request.action, url=url, arranged=is_arranged, reason=reason)
                found[request.action, url] = asked
        return tuple(found.values())

    def _field_reason(self, field: Field) -> Reason:
        if field.verdict is Verdict.DENY:
            return self._because("acap.disallow", field)
        return self._because("acap.unusable" if field.unusable else "acap.allow", field)

    def _because(self, rule: str, field: Field) -> Reason:
        citation = field.unusable if rule == "acap.unusable" else ""
        key = rule, citation, field.url, field.at
        reason = self._reasons.get(key)
        if reason is None:
            if len(self._reasons) >= MAX_DECIDED:
                self._reasons.clear()
            reason = self._reasons[key] = self._files[field.url].line_reason(rule, field.line, field.at, citation)
        return reason


def _referred(agent: Agent, file: RobotsFile) -> Iterator[_Referred]:
    """Each file once for the records that name the agent, and once for those for any crawler."""
    seen = set()
    for record in addressed(agent, [file.acap] if file.acap else ()).records:
        crawlers = ("*",) if "*" in record.crawlers else (agent.token,)
        for reference in record.references:
            url = file.referred(reference)
            if url != file.url and (url, crawlers) not in seen:
                seen.add((url, crawlers))
                yield _Referred(url, crawlers, reference)


def _read_referred(one: _Referred, file: RobotsFile, fetched: Mapping[str, Fetched]) -> RobotsFile | None:
    assert file.acap
    if one.url not in fetched:
        return None
    return RobotsFile(one.url, fetched[one.url], definitions=file.acap.definitions, crawlers=one.crawlers)
