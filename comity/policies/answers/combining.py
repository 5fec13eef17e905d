"""Combine the answers of several sources to one question: any refusal refuses (docs/rules.md).

    strictest(decisions)           about a request
    most_restrictive(decisions)    about a use

1. Any refusal refuses. Callers pass a refusal for everything that they cannot evaluate.
2. Otherwise any "not now" defers a request, until the last of the given times.
3. Otherwise all answers permit. A use gets the restrictions of all permissions together.
4. A request gets the reasons of the answers with its verdict. A use gets the reasons of all
   answers, the deciding ones first.
5. "Nothing is stated" is a reason for a request only if there is no other reason, and only once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from comity.bounded import Bounded
from comity.policies.answers.decision import Decision, Reason, UseDecision, Verdict
from comity.policies.answers.rule import is_silent


def strictest(decisions: Sequence[Decision]) -> Decision:
    """Return the combined decision about a request (MEET-1). At least one decision is given."""
    if len(decisions) == 1 and len(decisions[0].reasons) == 1:
        return decisions[0]
    for verdict in (Verdict.DENY, Verdict.DEFER, Verdict.ALLOW):
        speaking = [decision for decision in decisions if decision.verdict is verdict]
        if speaking:
            break
    reasons = list(dict.fromkeys(reason for decision in speaking for reason in decision.reasons))
    reasons = [reason for reason in reasons if not is_silent(reason.rule)] or reasons[:1]
    opens = [decision.not_before for decision in speaking if decision.not_before]
    return Decision(verdict=verdict, reasons=tuple(reasons), not_before=max(opens, default=None))


def most_restrictive(decisions: Sequence[UseDecision]) -> UseDecision:
    """Return the combined decision about a use (MEET-3). At least one decision is given.

    The reasons of all decisions are kept, the deciding ones first."""
    if len(decisions) == 1:
        return decisions[0]
    key = tuple(map(id, decisions))
    if (known := _COMBINED.get(key)) is not None:
        return known[0]
    combined = _combined(decisions)
    if not any(map(_is_of_page, decisions)):
        _COMBINED[key] = combined, tuple(decisions)
    return combined


def _is_of_page(decision: UseDecision) -> bool:
    """Return True if the decision is made anew for each page, and may hold resources of it."""
    return bool(decision.until or decision.must_use or decision.must_include)


# Ids of decisions -> the combined decision. The decisions themselves keep their ids valid: pages of
# a site share them.
_COMBINED: Bounded[tuple[int, ...], tuple[UseDecision, tuple[UseDecision, ...]]] = Bounded(1024)


def _combined(decisions: Sequence[UseDecision]) -> UseDecision:
    refusing = [decision for decision in decisions if decision.verdict is Verdict.DENY]
    if not refusing:
        return replace(decisions[0], reasons=_reasons(decisions)).conjoined(*decisions[1:])
    others = [decision for decision in decisions if decision.verdict is not Verdict.DENY]
    is_stated, reasons = (
        any(decision.stated for decision in refusing),
        _reasons((*refusing, *others)),
    )
    return UseDecision(verdict=Verdict.DENY, stated=is_stated, reasons=reasons)


def _reasons(decisions: Iterable[UseDecision]) -> tuple[Reason, ...]:
    return tuple(dict.fromkeys(reason for decision in decisions for reason in decision.reasons))
