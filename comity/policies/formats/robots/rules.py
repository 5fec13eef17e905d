"""The rules of robots.txt."""

from comity.policies.answers.rule import ALLOWS, FINDING, LIMITS, REFUSES, SILENT, Rule

RULES = {
    "robots.allow": Rule(ALLOWS, "RFC 9309 section-2.2.2", "an Allow line is the most specific match"),
    "robots.disallow": Rule(REFUSES, "RFC 9309 section-2.2.2", "a Disallow line is the most specific match"),
    "robots.no-match": Rule(SILENT, "RFC 9309 section-2.2.2", "no rule of the group matches the path"),
    "robots.no-group": Rule(SILENT, "RFC 9309 section-2.2.1", "no group names the agent and there is none for `*`"),
    "robots.self": Rule(ALLOWS, "RFC 9309 section-2.2.2", "/robots.txt itself is always allowed"),
    "robots.unavailable": Rule(SILENT, "RFC 9309 section-2.3.1.3", "there is no robots.txt: nothing is restricted"),
    "robots.unreachable": Rule(
        REFUSES, "RFC 9309 section-2.3.1.4", "robots.txt cannot be had: everything is disallowed", is_unreachable=True
    ),
    "robots.visit-time": Rule(LIMITS, "Visit-time (extension)", "the site asks for visits at other hours", status=429),
    "robots.agent": Rule(
        FINDING, "RFC 9309 section-2.2.1", "the value of a User-agent line is more than a product token, or none"
    ),
    "robots.joined": Rule(FINDING, "RFC 9309 section-2.2.1", "a list of User-agent lines goes on after a record of another kind"),
    "robots.long-line": Rule(
        FINDING, "RFC 9309 section-2.5", "an over-long line: a Disallow is read up to the limit, an Allow not at all"
    ),
    "robots.misspelled": Rule(FINDING, "RFC 9309 section-2.2", "a misspelled name is read as the record that is meant"),
    "robots.missing-colon": Rule(FINDING, "RFC 9309 section-2.2", "a record without its colon is accepted"),
    "robots.no-agent": Rule(FINDING, "RFC 9309 section-2.2.1", "a rule before any User-agent line binds nobody"),
    "robots.oversized": Rule(FINDING, "RFC 9309 section-2.5", "lines past the limit of octets are not read"),
    "robots.path": Rule(FINDING, "RFC 9309 section-2.2.2", "a pattern that begins with neither `/` nor `*` matches nothing"),
    "robots.rates": Rule(
        FINDING, "RFC 9309 section-2.2.4", "there are more Crawl-delay, Request-rate and Visit-time lines than are read"
    ),
    "robots.sitemaps": Rule(FINDING, "RFC 9309 section-2.2.4", "there are more Sitemap lines than are read"),
}
