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
        # Findings
        ("comity.more-findings", "comity, docs/rules.md", "the file has more findings than are listed"),
        ("robots.agent", "RFC 9309 section-2.2.1", "the value of a User-agent line is more than a product token, or none"),
        ("robots.joined", "RFC 9309 section-2.2.1", "a list of User-agent lines goes on after a record of another kind"),
        (
            "robots.long-line",
            "RFC 9309 section-2.5",
            "an over-long line: a Disallow is read up to the limit, an Allow not at all",
        ),
        ("robots.misspelled", "RFC 9309 section-2.2", "a misspelled name is read as the record that is meant"),
        ("robots.missing-colon", "RFC 9309 section-2.2", "a record without its colon is accepted"),
        ("robots.no-agent", "RFC 9309 section-2.2.1", "a rule before any User-agent line binds nobody"),
        ("robots.oversized", "RFC 9309 section-2.5", "lines past the limit of octets are not read"),
        ("robots.path", "RFC 9309 section-2.2.2", "a pattern that begins with neither `/` nor `*` matches nothing"),
        ("robots.rates", "RFC 9309 section-2.2.4", "there are more Crawl-delay, Request-rate and Visit-time lines than are read"),
        ("robots.sitemaps", "RFC 9309 section-2.2.4", "there are more Sitemap lines than are read"),
        # Ours
        ("comity.default", "comity, docs/uses.md", "no source speaks of this use: the operator's default decides"),
        ("comity.no-page", "comity, docs/uses.md", "the item came from no page: no source can speak for it"),
        ("comity.scheme", "comity, docs/rules.md", "only http and https have policies that can be asked"),
        ("comity.no-site", "comity, docs/rules.md", "data:, file: and s3: name data of the operator's own: no site to ask"),
        ("comity.max-delay", "comity, docs/settings.md", "the wait that the site asks for is longer than COMITY_MAX_DELAY"),
    )
}
