"""The combination of several answers to one question: any refusal refuses (docs/rules.md).

    strictest(decisions)           of a request
    most_restrictive(decisions)    of a use

1. Any refusal refuses. What cannot be evaluated comes here as a refusal; nothing is skipped.
2. Else any "not now" defers a request, until the last of the moments that it has to wait for.
3. Else all is permitted: a use with the restrictions of all permissions together.
4. The reasons of a request are those of the answers that have its verdict, of a use those of all, the deciding ones first.
5. That nothing is stated is a reason for a request only where there is no other, and then once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from comity.policies.answers.decision import Decision, Reason, UseDecision, Verdict
from comity.policies.answers.rule import is_silent


def strictest(decisions: Sequence[Decision]) -> Decision:
    """Return whether the request may be made, when all of these have to permit it (MEET-1). At least one is given."""
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
    """Return whether the content may be used, when all of these have to permit it (MEET-3). At least one is given.

    Those that decide come first among the reasons; all that speak are among them."""
    if len(decisions) == 1:
        return decisions[0]
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
