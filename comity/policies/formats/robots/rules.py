"""The rules of robots.txt."""

from comity.policies.answers.rule import ALLOWS, ERROR, FINDING, INFO, LIMITS, REFUSES, SILENT, Rule

RULES = {
    "robots.allow": Rule(
        ALLOWS, "RFC 9309 section-2.2.2", "an Allow line is the most specific match"
    ),
    "robots.disallow": Rule(
        REFUSES, "RFC 9309 section-2.2.2", "a Disallow line is the most specific match"
    ),
    "robots.no-match": Rule(
        SILENT, "RFC 9309 section-2.2.2", "no rule of the group matches the path"
    ),
    "robots.no-group": Rule(
        SILENT, "RFC 9309 section-2.2.1", "no group names the agent and there is none for `*`"
    ),
    "robots.self": Rule(ALLOWS, "RFC 9309 section-2.2.2", "/robots.txt itself is always allowed"),
    "robots.unavailable": Rule(
        SILENT, "RFC 9309 section-2.3.1.3", "there is no robots.txt: nothing is restricted"
    ),
    "robots.unreachable": Rule(
        REFUSES,
        "RFC 9309 section-2.3.1.4",
        "robots.txt cannot be had: everything is disallowed",
        is_unreachable=True,
    ),
    "robots.visit-time": Rule(
        LIMITS, "Visit-time (extension)", "the site asks for visits at other hours", status=429
    ),
    "robots.agent": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "the value of a User-agent line is more than a product token, or none",
    ),
    "robots.joined": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "a list of User-agent lines goes on after a record of another kind",
    ),
    "robots.long-line": Rule(
        FINDING,
        "RFC 9309 section-2.5",
        "an over-long line: a Disallow is read up to the limit, an Allow not at all",
        severity=ERROR,
    ),
    "robots.markup": Rule(
        FINDING,
        "RFC 9309 section-2.3.1.1",
        "the records stand in markup: the refusals alone are read",
        severity=ERROR,
    ),
    "robots.media-type": Rule(
        FINDING,
        "RFC 9309 section-2.3",
        "the file is served with another media type than text/plain",
    ),
    "robots.misspelled": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "a misspelled name is read as the record that is meant",
        severity=ERROR,
    ),
    "robots.missing-colon": Rule(
        FINDING, "RFC 9309 section-2.2", "a record without its colon is accepted", severity=ERROR
    ),
    "robots.no-agent": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "a rule before any User-agent line binds nobody",
        severity=ERROR,
    ),
    "robots.oversized": Rule(
        FINDING,
        "RFC 9309 section-2.5",
        "lines past the limit of octets are not read",
        severity=ERROR,
    ),
    "robots.path": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a pattern that begins with neither `/` nor `*` matches nothing",
        severity=ERROR,
    ),
    "robots.rates": Rule(
        FINDING,
        "RFC 9309 section-2.2.4",
        "there are more Crawl-delay, Request-rate and Visit-time lines than are read",
    ),
    "robots.sitemaps": Rule(
        FINDING, "RFC 9309 section-2.2.4", "there are more Sitemap lines than are read"
    ),
    "robots.blank": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "a blank line within a list of User-agent lines, of which one is for `*`: it ends no list",
    ),
    "robots.colon": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "another character stands in the place of the colon: the line is not read",
        severity=ERROR,
    ),
    "robots.covered": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a shorter path of the same verdict says it already",
        severity=INFO,
    ),
    "robots.delay": Rule(
        FINDING,
        "Crawl-delay (extension)",
        "a Crawl-delay beside one that is longer, or beside a slower Request-rate",
        severity=INFO,
    ),
    "robots.dollar": Rule(
        FINDING,
        "RFC 9309 section-2.2.3",
        "a `$` that is not the last character of a pattern is an ordinary character",
    ),
    "robots.duplicate": Rule(
        FINDING, "RFC 9309 section-2.2.2", "a rule stands twice in its group", severity=INFO
    ),
    "robots.fragment": Rule(
        FINDING, "RFC 9309 section-2.2", "a `#` right behind a path begins a comment"
    ),
    "robots.invisible": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "a character that cannot be seen stands in a path or name, or before the name of a record",
        severity=ERROR,
    ),
    "robots.misplaced": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "a wish that robots.txt has no such record for: the line is not read",
    ),
    "robots.no-rules": Rule(
        FINDING, "RFC 9309 section-2.2.1", "no rule follows the last User-agent lines"
    ),
    "robots.overruled": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a Disallow of a path that an Allow for the same agents has too: the Allow wins",
    ),
    "robots.quotes": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "quotes around a path or name are taken for a part of it",
        severity=ERROR,
    ),
    "robots.rate-value": Rule(
        FINDING,
        "RFC 9309 section-2.2.4",
        "the value of a Crawl-delay, Request-rate or Visit-time cannot be read: it asks "
        "for nothing",
    ),
    "robots.regex": Rule(
        FINDING,
        "RFC 9309 section-2.2.3",
        "a sign of regular expressions has no meaning in a pattern",
    ),
    "robots.repeated": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a rule stands in another group of the same agents too",
        severity=INFO,
    ),
    "robots.same-agent": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "two groups name the same agent: their rules hold together",
        severity=INFO,
    ),
    "robots.second-path": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a second path, or a comment behind `//`, is taken for a part of the path",
        severity=ERROR,
    ),
    "robots.several-agents": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "several names in a User-agent line: only the first is named",
        severity=ERROR,
    ),
    "robots.sitemap-url": Rule(
        FINDING, "RFC 9309 section-2.2.4", "a sitemap is named by no absolute URL"
    ),
    "robots.space": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a space, and what follows it, is taken for a part of the path",
        severity=INFO,
    ),
    "robots.star": Rule(
        FINDING,
        "RFC 9309 section-2.2.3",
        "a `*` at the end of a pattern, which matches the same without it",
        severity=INFO,
    ),
    "robots.unknown": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "a name that is nearly that of a record: the line is not read",
        severity=ERROR,
    ),
    "robots.unread": Rule(
        FINDING, "RFC 9309 section-2.2.4", "a record that no known crawler reads", severity=INFO
    ),
    "robots.url": Rule(
        FINDING, "RFC 9309 section-2.2.2", "a URL where a path belongs", severity=ERROR
    ),
}
