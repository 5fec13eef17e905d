"""Several answers to one question become one (docs/rules.md).

Any refusal refuses; else any "not now" defers; else the request is allowed. Silence counts
only where nothing is stated."""

from __future__ import annotations

from collections.abc import Sequence

from comity.policies.values import Decision, Verdict

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
