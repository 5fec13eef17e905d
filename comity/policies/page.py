"""What may be done with one page that was fetched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from comity.policies.combine import most_restrictive
from comity.policies.formats.acap import PageUses
from comity.policies.qualifiers import read, written
from comity.policies.values import Agent, Decision, Finding, Reason, Source, UseDecision, Verdict

BASIC_USES = ("crawl", "follow", "index", "preserve", "present")  # ACAP 1.0 section 2.5; every tag lists them
_FOLLOW_DEFAULT = {"follow": Verdict.ALLOW}  # no statement against following is none; MEET-2 drops links on refusal only


class UseSource(Protocol):
    """What one source says of the uses of a page."""

    @property
    def stated(self) -> Iterable[str]:
        """The uses that it names."""

    def decide(self, use: str) -> UseDecision | None:
        """None: it does not speak of this use."""


class Refusal:
    """A source that refuses every use."""

    stated = ()

    def __init__(self, reasons: tuple[Reason, ...]) -> None:
        self._refused = UseDecision(verdict=Verdict.DENY, stated=True, reasons=reasons)

    def decide(self, use: str) -> UseDecision | None:  # it is the same for all
        return self._refused


class Uses(Mapping[str, UseDecision]):
    """Use -> decision. Any term can be asked; iteration lists the basic, the declared and the stated ones."""

    def __init__(self, agent: Agent, crawl: Decision, sources: Sequence[UseSource]) -> None:
        self._agent = agent
        self._sources = sources
        # DEFER speaks of the request, which was made: what came back may be kept by the crawl that fetched it.
        verdict = Verdict.DENY if crawl.verdict is Verdict.DENY else Verdict.ALLOW
        self._decided = {"crawl": UseDecision(verdict=verdict, stated=True, reasons=crawl.reasons)}

    def __getitem__(self, use: str) -> UseDecision:
        decision = self._decided.get(use)
        if decision is None:
            stated = [one for source in self._sources if (one := source.decide(use)) is not None]
            decision = self._decided[use] = most_restrictive(stated) if stated else _unstated(self._agent, use)
        return decision

    def __iter__(self) -> Iterator[str]:
        stated = (use for source in self._sources for use in source.stated)
        return iter(dict.fromkeys((*BASIC_USES, *self._agent.uses, *stated)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _unstated(agent: Agent, use: str) -> UseDecision:
    default = (_FOLLOW_DEFAULT | dict(agent.defaults)).get(use)
    text = f"{use}: {default.value}" if default else f"no default for {use}"
    source = Source(url="COMITY_DEFAULTS", part="setting", text=text)
    reason = Reason(rule="comity.default", source=source)
    return UseDecision(verdict=default or Verdict.DENY, stated=False, reasons=(reason,))


class Page:
    """The decisions for one response, and the tag that an item made from it carries."""

    def __init__(
        self,
        agent: Agent,
        url: str,
        *,
        access: Decision,
        acap: PageUses | None,
        refused: tuple[Reason, ...],
        policies: Mapping[str, Any],
        findings: Iterable[Finding],
        body: bytes,
    ) -> None:
        """`refused`: why the page as a whole may not be used."""
        self.agent = agent
        self.url = url
        self.uses = Uses(agent, access, [*([acap] if acap else ()), *([Refusal(refused)] if refused else ())])
        self.elements: tuple[object, ...] = ()  # element rules: no format that has them is read yet
        self.findings = tuple(findings)
        self._acap = acap
        self._policies = policies
        self._body = body

    @property
    def follow(self) -> Decision:
        """May the links of the page be followed?"""
        use = self.uses["follow"]
        return Decision(verdict=use.verdict, reasons=use.reasons)

    @property
    def wanted(self) -> tuple[str, ...]:
        """Absolute URLs of the resources that permissions ask to use or to include, as is arranged with the site."""
        return self._acap.wanted if self._acap else ()

    @property
    def dated(self) -> tuple[str, ...]:
        """The uses for which it counts when the page was first taken: a permission may end some days after."""
        return self._acap.dated if self._acap else ()

    def redacted(self, uses: Iterable[str]) -> bytes:
        """The body without what is refused for these uses; b"" where the page as a whole is refused for one of them."""
        return b"" if any(self.uses[use].verdict is Verdict.DENY for use in uses) else self._body

    @cached_property
    def permissions(self) -> dict[str, Any]:
        """The tag, by permissions.schema.json. Made once; callers that hand it on copy it."""
        return tag(self.agent, self.uses, self._policies)


def tag(agent: Agent, uses: Mapping[str, UseDecision], policies: Mapping[str, Any]) -> dict[str, Any]:
    """Decisions by use -> the tag on an item (schema 1)."""
    reasons: list[dict[str, Any]] = []
    places: dict[Reason, int] = {}

    def because(decision: UseDecision) -> list[int]:
        for reason in decision.reasons:
            if reason not in places:
                places[reason] = len(reasons)
                source = reason.source
                reasons.append(
                    {"rule": reason.rule, "spec": reason.spec, "url": source.url, "line": source.line, "text": source.text}
                )
        return [places[reason] for reason in decision.reasons]

    return {
        "schema": 1,
        "agent": agent.token,
        "uses": {
            use: {"verdict": decision.verdict.value, "stated": decision.stated, "because": because(decision)} | written(decision)
            for use, decision in uses.items()
        },
        "elements": [],
        "reasons": reasons,
        "policies": dict(policies),
    }


def combined(agent: Agent, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The tag of what came from two pages: of each use the more restrictive decision, stated before not stated.

    Where both permit, what restricts either restricts the whole."""
    reasons: list[dict[str, Any]] = []

    def because(one: dict[str, Any], places: list[int]) -> list[int]:
        found = [one["reasons"][place] for place in places]
        reasons.extend(reason for reason in found if reason not in reasons)
        return [reasons.index(reason) for reason in found]

    uses = {}
    for use in {**first["uses"], **second["uses"]}:
        # A tag that does not list the use leaves it to the default.
        tags = [one if use in one["uses"] else tag(agent, {use: _unstated(agent, use)}, {}) for one in (first, second)]
        deciding = [one for one in tags if one["uses"][use]["verdict"] == "deny"] or tags
        deciding = [one for one in deciding if one["uses"][use]["stated"]] or deciding[:1]
        places = [place for one in deciding for place in because(one, one["uses"][use]["because"])]
        qualifiers = read(deciding[0]["uses"][use]).conjoined(read(deciding[-1]["uses"][use]))
        decision = {key: deciding[0]["uses"][use][key] for key in ("verdict", "stated")}
        uses[use] = decision | {"because": list(dict.fromkeys(places))} | written(qualifiers)
    elements = [element | {"because": because(one, element["because"])} for one in (first, second) for element in one["elements"]]
    policies = {**second["policies"], **first["policies"]}
    return first | {"uses": uses, "elements": elements, "reasons": reasons, "policies": policies}


def no_page(agent: Agent, why: str) -> dict[str, Any]:
    """The tag of an item that came from no page: every basic and declared use is refused, and nobody said so."""
    reason = Reason(rule="comity.no-page", source=Source(url="", part="item", text=why))
    refused = UseDecision(verdict=Verdict.DENY, stated=False, reasons=(reason,))
    return tag(agent, dict.fromkeys((*BASIC_USES, *agent.uses), refused), {})
