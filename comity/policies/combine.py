"""Several answers to one question become one (docs/rules.md).

Any refusal refuses; else any "not now" defers; else the request is allowed. Silence counts
only where nothing is stated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from comity.policies.values import Decision, UseDecision, Verdict

SILENT = frozenset(("robots.no-match", "robots.no-group", "robots.unavailable", "acap.ignore-conventional"))


def strictest(decisions: Sequence[Decision]) -> Decision:
    """May the request be made, when all of these have to permit it (MEET-1)? At least one is given."""
    for verdict in (Verdict.DENY, Verdict.DEFER, Verdict.ALLOW):
        speaking = [decision for decision in decisions if decision.verdict is verdict]
        if speaking:
            break
    reasons = [reason for decision in speaking for reason in decision.reasons]
    reasons = [reason for reason in reasons if reason.rule not in SILENT] or reasons[:1]
    opens = [decision.not_before for decision in speaking if decision.not_before]
    return Decision(verdict=verdict, reasons=tuple(reasons), not_before=max(opens, default=None))


def most_restrictive(decisions: Sequence[UseDecision]) -> UseDecision:
    """May the content be used, when all of these have to permit it (MEET-3)? At least one is given."""
    deciding = [decision for decision in decisions if decision.verdict is Verdict.DENY] or decisions
    reasons = tuple(dict.fromkeys(reason for decision in deciding for reason in decision.reasons))
    return replace(deciding[0], reasons=reasons).conjoined(*deciding[1:])
