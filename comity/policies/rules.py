"""Every rule id that a decision or a finding may name, with its specification and what it means.

The tests hold that every id is documented in docs/rules.md and proved by a test."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    spec: str  # "RFC 9309 section-2.2.2"
    summary: str


RULES: dict[str, Rule] = {
    rule: Rule(spec=spec, summary=summary)
    for rule, spec, summary in (
        # Access
        ("robots.allow", "RFC 9309 section-2.2.2", "an Allow line is the most specific match"),
        ("robots.disallow", "RFC 9309 section-2.2.2", "a Disallow line is the most specific match"),
        ("robots.no-match", "RFC 9309 section-2.2.2", "no rule of the group matches the path"),
        ("robots.no-group", "RFC 9309 section-2.2.1", "no group names the agent and there is none for `*`"),
        ("robots.self", "RFC 9309 section-2.2.2", "/robots.txt itself is always allowed"),
        ("robots.unavailable", "RFC 9309 section-2.3.1.3", "there is no robots.txt: nothing is restricted"),
        ("robots.unreachable", "RFC 9309 section-2.3.1.4", "robots.txt cannot be had: everything is disallowed"),
        ("robots.visit-time", "Visit-time (extension)", "the site asks for visits at other hours"),
        # Ours
        ("comity.default", "comity, docs/uses.md", "no source speaks of this use: the operator's default decides"),
        ("comity.no-page", "comity, docs/uses.md", "the item came from no page: no source can speak for it"),
        ("comity.not-evaluated", "comity, docs/rules.md", "the policy could not be evaluated: not understood is not permitted"),
        ("comity.scheme", "comity, docs/rules.md", "only http and https have policies that can be asked"),
        ("comity.max-delay", "comity, docs/settings.md", "the wait that the site asks for is longer than COMITY_MAX_DELAY"),
    )
}
