"""The answers of automation-preferences.txt, and of the annotations of a page, to one agent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from comity.bounded import Bounded
from comity.policies.agent import Agent
from comity.policies.answers.decision import Condition, Decision, Reason, Source, Verdict
from comity.policies.answers.fetched import Availability
from comity.policies.answers.request import Facts
from comity.policies.formats.automation.annotation import Annotation, merge
from comity.policies.formats.automation.conditions import conditions, pattern_text
from comity.policies.formats.automation.directives import DirectiveValue, Group
from comity.policies.formats.automation.file import AutomationFile
from comity.policies.formats.automation.resolution import GroupRefusal, ScopeRules, limits, refusals
from comity.policies.formats.format import AgentReading
from comity.policies.syntax.windows import Limits, StatedLimit

JSON_LD = "JSON-LD"  # the `part` of a source that is an annotation
ROBOTS = "/robots.txt"  # plain requests for this path are always allowed (RFC 9309 section-2.2.2)
MAX_DECIDED = 1024  # maximum cached decisions. There is one for each group and kind of request


class Automated(AgentReading):
    """The answers of one automation-preferences.txt to one agent."""

    def __init__(self, agent: Agent, file: AutomationFile, origin: str) -> None:
        self._agent = agent
        self._file = file
        self._origin = origin
        self._host = origin.partition("://")[2]
        automation = file.automation
        self._rules = ScopeRules(automation, agent.token, self._host) if automation else None
        self._is_unread = automation is not None and not automation.complete
        self.has_limits = self._rules is not None and self._rules.has_limits
        self._limits: dict[int, Limits | None] = {}  # a cache: offset of a group -> its limits
        self.restricts_access = self.depends_on_request = not self.is_silent

    @property
    def is_silent(self) -> bool:
        """True if the file makes no statement about any request."""
        is_unreachable = self._file.availability is Availability.UNREACHABLE
        return not (
            is_unreachable
            or self._is_unread
            or (self._rules is not None and self._rules.is_stating)
        )

    def access(
        self,
        target: str,
        sent: str,
        facts: Facts,
        now: datetime | None,
        page: object = None,
    ) -> Decision | None:
        """Return the decision on a request, or None if neither file nor page makes a statement.

        The arguments are those of `AgentReading.access`. `page` are the annotations of the page,
        or None.
        """
        assert page is None or isinstance(page, Annotated)
        if target == ROBOTS and facts.is_plain and page is None:
            return None
        if self._is_unknown(facts):
            rule = "automation.unread" if self._is_unread else "automation.unreachable"
            reason = self._file.reason(rule) if self._is_unread else self._file.outcome_reason(rule)
            return Decision(verdict=Verdict.DENY, reasons=(reason,))
        group = self._rules.group(target) if self._rules else None
        if group is None and page is None:
            return None
        # Decisions on other requests are not cached, because each request may have new, long facts.
        is_usual = facts.session is None and facts.referer is None and not facts.purposes
        if page is None and is_usual:
            assert group
            return self._cached_decision(group, facts)
        return self._decide(group, facts, now, page)

    def _is_unknown(self, facts: Facts) -> bool:
        """Return True if the request is refused because its statements are unknown (AUTO-20)."""
        if self._file.availability is Availability.UNREACHABLE:
            return self._agent.automation_required or not facts.is_plain
        return self._is_unread and not facts.is_plain

    def considered(self, target: str, facts: Facts) -> list[Reason]:
        """Return the reasons of each group that covers the URL, the applying group first."""
        groups = self._rules.matching(target) if self._rules else []
        decisions = (self._decide(group, facts, None, None) for group in groups)
        return [
            reason for decision in decisions if decision is not None for reason in decision.reasons
        ]

    def limits(self, target: str) -> Limits | None:
        """Return the limits on requests for the target, or None if none is stated."""
        group = self._rules.group(target) if self._rules and self.has_limits else None
        if group is None:
            return None
        if group.offset not in self._limits:
            self._limits[group.offset] = limits(group, self._origin, self._stated_limits(group))
        return self._limits[group.offset]

    def _stated_limits(self, group: Group) -> Iterator[StatedLimit]:
        """Yield the lines of a group that limit requests."""
        for rate in group.directives.request_limit:
            yield StatedLimit("request-limit", rate.value, None, self._source(rate), rate.advice)
        for number in group.directives.concurrent_limit:
            yield StatedLimit(
                "concurrent-limit", None, number.value, self._source(number), number.advice
            )

    def _source(self, directive: DirectiveValue[Any]) -> Source:
        return self._file.line_reason("automation.value", directive.line, directive.offset).source

    def conditions(self) -> Iterator[Condition]:
        """Yield the conditions of the groups that apply to the agent."""
        for group, scopes in self._rules.speaking() if self._rules else ():
            paths = tuple(dict.fromkeys(map(pattern_text, scopes)))
            for told in conditions(group.directives):
                source = told.directive or group
                reason = self._file.line_reason(told.rule, source.line, source.offset)
                scope = () if "/" in paths else paths
                yield Condition(
                    scopes=scope, words=told.words, reason=reason, can_be_met=told.can_be_met
                )

    @cached_property
    def _decisions(self) -> Bounded[tuple[int, Facts], Decision]:
        return Bounded(MAX_DECIDED)

    def _cached_decision(self, group: Group, facts: Facts) -> Decision:
        decision = self._decisions.get((group.offset, facts))
        if decision is None:
            decision = self._decide(group, facts, None, None)
            assert decision is not None
            self._decisions[group.offset, facts] = decision
        return decision

    def _decide(
        self, group: Group | None, facts: Facts, now: datetime | None, page: Annotated | None
    ) -> Decision | None:
        annotation = page.directives if page else None
        refused = refusals(
            group,
            facts,
            self._agent.purposes,
            now or datetime.now(UTC),
            annotation,
            host=self._host,
        )
        if refused:
            reasons = tuple(self._reason(refusal, group, page) for refusal in refused)
            return Decision(verdict=Verdict.DENY, reasons=reasons)
        if group is None:
            return None
        lines = [
            self._file.line_reason("automation.allow", line.line, line.offset)
            for line in group.directives.allowed_methods
        ]
        return Decision(verdict=Verdict.ALLOW, reasons=tuple(lines))

    def _reason(self, refusal: GroupRefusal, group: Group | None, page: Annotated | None) -> Reason:
        if refusal.from_annotation:
            assert page
            assert refusal.directive
            return page.reason(refusal.rule, refusal.directive.offset)
        source = refusal.directive or group
        assert source
        return self._file.line_reason(refusal.rule, source.line, source.offset)


class Annotated:
    """The annotations of one page (extension section-3.5)."""

    def __init__(self, url: str, annotations: Sequence[Annotation]) -> None:
        self._url = url
        self._annotations = annotations
        self.directives = merge(annotations)

    def reason(self, rule: str, number: int) -> Reason:
        """Return a reason that quotes the annotation with this number, from 0."""
        annotation = self._annotations[number]
        return Reason(
            rule=rule,
            source=Source(url=self._url, part=JSON_LD, line=annotation.line, text=annotation.text),
        )
