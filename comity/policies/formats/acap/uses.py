"""The uses of one page that ACAP permits (ACAP 1.0 section-2.5).

1. If a file with fields for the agent cannot be fetched, every use is refused (section-2.3.2).
2. A use that is a usage of ACAP is decided by the fields of this usage (`resolution`). Any other
   use can be refused by the usage `other`, and is never permitted (section-2.5.6).
3. A permission applies if its conditions are met: its time is not over, and the resources that must
   be used or included are arranged with the site and exist (section-2.5.3). Else the use is
   refused.
4. Uses of other vocabularies are refused if the table relates them to a refused usage
   (`RelatedUses`). A permission to show the page that prohibits a modification limits the uses that
   are this modification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from urllib.parse import urljoin

from comity.policies.agent import Agent
from comity.policies.answers.combining import most_restrictive
from comity.policies.answers.decision import Reason, UseDecision, Verdict
from comity.policies.answers.qualifiers import MODIFIABLE, Qualifiers, Resource
from comity.policies.document.document import Content
from comity.policies.formats.acap.grammar import Field
from comity.policies.formats.acap.resolution import Matching, UsageAnswer
from comity.policies.formats.acap.usages import OTHER, PRESENT_USAGES, USAGES
from comity.policies.formats.format import Capture
from comity.policies.syntax.urls import resolved
from comity.policies.vocabulary.table import Vocabulary

# The usages that can have a permission with a time-limit qualifier.
DATED = ("index", "preserve", "present", *PRESENT_USAGES)

ReasonOf = Callable[[str, Field], Reason]  # the id of a rule, and a field -> the reason


class PageUses:
    """The decisions of the fields that apply to a page, by use."""

    def __init__(
        self,
        agent: Agent,
        matching: Matching,
        reason_of: ReasonOf,
        capture: Capture,
        *,
        refused: UseDecision | None,
    ) -> None:
        """Store the fields and the page.

        `refused` is the decision on all uses if the permissions are unknown, else None.
        """
        self._refusal = refused
        self._agent = agent
        self._matching = matching
        self._reason_of = reason_of
        self._capture = capture

    @property
    def named_uses(self) -> Iterable[str]:
        """The usages that the fields name."""
        return self._matching.usages

    def decide(self, use: str) -> UseDecision | None:
        """Return the decision on a use, or None if nothing is stated.

        `use` may be a usage of ACAP or any other use. The usage `other` can prohibit other uses,
        and never permits them.
        """
        if self._refusal is not None:
            return self._refusal
        usage = use if use in USAGES else ""  # all other uses share one decision
        decision = self._matching.decisions.get(usage)
        if decision is not None:
            return decision
        answer = self._answer(use)
        if answer is None:
            return None
        if answer.verdict is Verdict.DENY:
            decision = self._matching.decisions[usage] = _refusal(answer, self._reason_of)
            return decision
        if not answer.qualifiers.depends_on_page:
            decision = self._matching.decisions[usage] = self._permission(answer)
            return decision
        return self._decide_on_page(answer, use)

    def _decide_on_page(self, answer: UsageAnswer, use: str) -> UseDecision:
        """Return the decision by a permission that has a time limit or requires resources."""
        capture, qualifiers, until = self._capture, answer.qualifiers, self._end(answer, use)
        if qualifiers.days == 0 or (until and until < capture.now):
            return self._refuse(answer, "acap.expired")
        must_use = self._find_resources(qualifiers.must_use, "must-use-resource")
        must_include = self._find_resources(qualifiers.must_include, "must-include-resource")
        if must_use is None or must_include is None:
            return self._refuse(answer, "acap.no-arrangement")
        if any(resource is None for resource in (*must_use, *must_include)):
            return self._refuse(answer, "acap.resource")
        permission = self._matching.permissions.get(use)
        if permission is None:  # all pages share it, only its end and its resources differ
            permission = self._matching.permissions[use] = self._permission(answer)
        if not must_use and not must_include:
            return replace(permission, until=until)
        return replace(
            permission,
            until=until,
            must_use=tuple(filter(None, must_use)),
            must_include=tuple(filter(None, must_include)),
        )

    @cached_property
    def required_resources(self) -> tuple[str, ...]:
        """URLs of the resources that permissions require to be used or included.

        A resource is left out if must-use-resource or must-include-resource, the feature that
        requires it, is not arranged with the site.
        """
        urls: dict[str, None] = {}
        for use in USAGES:
            answer = self._answer(use)
            if answer is None or answer.verdict is Verdict.DENY:
                continue
            for resources, feature in (
                (answer.qualifiers.must_use, "must-use-resource"),
                (answer.qualifiers.must_include, "must-include-resource"),
            ):
                if self._agent.has_arranged(self._capture.url, feature):
                    urls |= dict.fromkeys(
                        uri for resource in resources if (uri := self._absolute(resource))
                    )
        return tuple(urls)

    @cached_property
    def dated(self) -> tuple[str, ...]:
        """The usages of DATED that are permitted, with or without a time limit."""
        if self._refusal is not None:
            return ()
        answers = ((use, self._answer(use)) for use in DATED)
        return tuple(use for use, answer in answers if answer and answer.verdict is Verdict.ALLOW)

    def _answer(self, use: str) -> UsageAnswer | None:
        if use in USAGES:
            return self._matching.decide(use)
        answer = self._matching.decide(OTHER)
        return answer if answer and answer.verdict is Verdict.DENY else None

    def _permission(self, answer: UsageAnswer) -> UseDecision:
        """Return the permission with its restrictions, without an end by `days`."""
        reasons = tuple(self._reason_of("acap.allow", field) for field in answer.named_fields)
        decision = UseDecision(verdict=Verdict.ALLOW, stated=True, reasons=reasons)
        return decision.conjoined(answer.qualifiers)

    def _refuse(self, answer: UsageAnswer, rule: str) -> UseDecision:
        reasons = tuple(self._reason_of(rule, field) for field in answer.named_fields)
        return UseDecision(verdict=Verdict.DENY, stated=True, reasons=reasons)

    def _end(self, answer: UsageAnswer, use: str) -> datetime | None:
        """Return when the permission ends. `days` count from the first use. None: it has no end."""
        until, days = answer.qualifiers.until, answer.qualifiers.days
        if days is None:
            return until
        first = min(self._capture.first_seen.get(use, self._capture.now), self._capture.now)
        try:
            end = first + timedelta(days=days)
        except OverflowError:
            end = datetime.max.replace(tzinfo=UTC)
        return end if until is None else min(until, end)

    def _find_resources(
        self, resources: tuple[Resource, ...], feature: str
    ) -> list[Resource | None] | None:
        """Return the resources with their content. In the list, None replaces a missing resource.

        The result is None if `feature`, such as "must-use-resource", is not arranged with the site.
        """
        if not resources:
            return []
        if not self._agent.has_arranged(self._capture.url, feature):
            return None
        return [self._find_resource(resource) for resource in resources]

    def _find_resource(self, resource: Resource) -> Resource | None:
        """Return the resource with its content, or None if it does not exist."""
        if resource.extract:
            content = self._capture.content.extracted(resource.extract)
            return None if content is None else replace(resource, content=content)
        url = self._absolute(resource)
        fetched = self._capture.resources.get(url)
        if fetched is None or fetched.error or fetched.status // 100 != 2:
            return None
        return replace(resource, uri=url, content=Content(fetched.headers, fetched.body).text)

    def _absolute(self, resource: Resource) -> str:
        """Return the absolute URL of a resource, or "" if the resource has no valid URI."""
        try:
            return resolved(urljoin(self._capture.url, "/"), resource.uri) if resource.uri else ""
        except ValueError:
            return ""


class SiteUses:
    """The refusals of uses that apply to every resource of the site."""

    named_uses: Iterable[str] = ()
    required_resources: tuple[str, ...] = ()
    dated: tuple[str, ...] = ()

    def __init__(self, everywhere: Matching, reason_of: ReasonOf) -> None:
        self._everywhere = everywhere
        self._reason_of = reason_of

    def decide(self, use: str) -> UseDecision | None:
        """Return the refusal of a use, or None if there is none."""
        answer = self._everywhere.decide(use if use in USAGES else OTHER)
        return (
            _refusal(answer, self._reason_of) if answer and answer.verdict is Verdict.DENY else None
        )


class RelatedUses:
    """ACAP as a source of decisions on all uses.

    The usages of ACAP are uses themselves. They also refuse other uses that the table of
    vocabularies relates to them.
    """

    def __init__(self, uses: PageUses | SiteUses, vocabulary: Vocabulary) -> None:
        self._uses = uses
        self._vocabulary = vocabulary

    @property
    def named_uses(self) -> Iterable[str]:
        return self._uses.named_uses

    @property
    def required_resources(self) -> tuple[str, ...]:
        return self._uses.required_resources

    @property
    def dated(self) -> tuple[str, ...]:
        return self._uses.dated

    def decide(self, use: str) -> UseDecision | None:
        if use in USAGES:
            return self._uses.decide(use)
        decisions = map(self._uses.decide, _touching(self._vocabulary, use))
        refusing = [
            decision
            for decision in decisions
            if decision is not None and decision.verdict is Verdict.DENY
        ]
        return most_restrictive(refusing) if refusing else self._uses.decide(use)

    def limits(self, use: str) -> Sequence[tuple[Qualifiers, Reason]]:
        """Return the limits on a use that is a modification of the page, such as a translation.

        A limit comes from each permission to show the page that prohibits this modification.
        """
        modifications = self._vocabulary.modifications(use)
        if not modifications:
            return ()
        decisions = (
            decision for shown in MODIFIABLE if (decision := self._uses.decide(shown)) is not None
        )
        return [
            (Qualifiers(prohibited_modifications=prohibited), reason)
            for decision in decisions
            if (prohibited := modifications & decision.prohibited_modifications)
            for reason in decision.reasons
        ]


@lru_cache(maxsize=1024)
def _touching(vocabulary: Vocabulary, use: str) -> tuple[str, ...]:
    """Return the usages whose refusal refuses another use too."""
    return tuple(sorted(vocabulary.related("acap", use).touching))


def _refusal(answer: UsageAnswer, reason_of: ReasonOf) -> UseDecision:
    rules = (
        "acap.unusable" if field.verdict is Verdict.ALLOW else "acap.disallow"
        for field in answer.named_fields
    )
    reasons = tuple(
        reason_of(rule, field) for rule, field in zip(rules, answer.named_fields, strict=True)
    )
    return UseDecision(verdict=Verdict.DENY, stated=True, reasons=reasons)
