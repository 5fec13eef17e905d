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
        SILENT, "RFC 9309 section-2.2.1", "no group names the agent, and there is none for `*`"
    ),
    "robots.self": Rule(ALLOWS, "RFC 9309 section-2.2.2", "/robots.txt itself is always allowed"),
    "robots.unavailable": Rule(
        SILENT, "RFC 9309 section-2.3.1.3", "there is no robots.txt: nothing is restricted"
    ),
    "robots.unreachable": Rule(
        REFUSES,
        "RFC 9309 section-2.3.1.4",
        "robots.txt cannot be fetched: everything is disallowed",
        is_unreachable=True,
    ),
    "robots.visit-time": Rule(
        LIMITS, "Visit-time (extension)", "the site asks for visits at other hours", status=429
    ),
    "robots.agent": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "the value of a User-agent line is empty, or more than a product token",
    ),
    "robots.joined": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "a list of User-agent lines continues after a record of another kind",
    ),
    "robots.long-line": Rule(
        FINDING,
        "RFC 9309 section-2.5",
        "a line is too long: a Disallow is read up to the limit, an Allow not at all",
        severity=ERROR,
    ),
    "robots.markup": Rule(
        FINDING,
        "RFC 9309 section-2.3.1.1",
        "the records are in markup: only the refusals are read",
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
        "a misspelled name is read as the intended record",
        severity=ERROR,
    ),
    "robots.missing-colon": Rule(
        FINDING, "RFC 9309 section-2.2", "a record without its colon is accepted", severity=ERROR
    ),
    "robots.no-agent": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "a rule before any User-agent line applies to no crawler",
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
        "a blank line in a list of User-agent lines, one of them for `*`, does not end the list",
    ),
    "robots.colon": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "another character is in place of the colon: the line is not read",
        severity=ERROR,
    ),
    "robots.covered": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a shorter path with the same verdict covers this rule",
        severity=INFO,
    ),
    "robots.delay": Rule(
        FINDING,
        "Crawl-delay (extension)",
        "a Crawl-delay has no effect: a stricter limit applies too",
        severity=INFO,
    ),
    "robots.dollar": Rule(
        FINDING,
        "RFC 9309 section-2.2.3",
        "a `$` that is not the last character of a pattern is an ordinary character",
    ),
    "robots.duplicate": Rule(
        FINDING, "RFC 9309 section-2.2.2", "a group has the same rule twice", severity=INFO
    ),
    "robots.fragment": Rule(
        FINDING, "RFC 9309 section-2.2", "a `#` right after a path begins a comment"
    ),
    "robots.invisible": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "an invisible character is in a path or name, or before the name of a record",
        severity=ERROR,
    ),
    "robots.misplaced": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "robots.txt has no record for this request: the line is not read",
    ),
    "robots.no-rules": Rule(
        FINDING, "RFC 9309 section-2.2.1", "no rule follows the last User-agent lines"
    ),
    "robots.overruled": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a Disallow has no effect: an Allow for the same agents has the same path",
    ),
    "robots.quotes": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "quotes around a path or name count as a part of it",
        severity=ERROR,
    ),
    "robots.rate-value": Rule(
        FINDING,
        "RFC 9309 section-2.2.4",
        "the value of a Crawl-delay, Request-rate or Visit-time cannot be read: it has no effect",
    ),
    "robots.regex": Rule(
        FINDING,
        "RFC 9309 section-2.2.3",
        "a sign of regular expressions has no meaning in a pattern",
    ),
    "robots.repeated": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "another group of the same agents has the same rule",
        severity=INFO,
    ),
    "robots.same-agent": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "two groups name the same agent: the rules of both apply",
        severity=INFO,
    ),
    "robots.second-path": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a second path, or a comment after `//`, counts as a part of the path",
        severity=ERROR,
    ),
    "robots.several-agents": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "a User-agent line has several names: only the first counts",
        severity=ERROR,
    ),
    "robots.sitemap-url": Rule(
        FINDING, "RFC 9309 section-2.2.4", "the URL of a sitemap is not absolute"
    ),
    "robots.space": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a space and the text after it count as a part of the path",
        severity=INFO,
    ),
    "robots.star": Rule(
        FINDING,
        "RFC 9309 section-2.2.3",
        "a `*` at the end of a pattern changes nothing",
        severity=INFO,
    ),
    "robots.unknown": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "an unknown name is similar to that of a record: the line is not read",
        severity=ERROR,
    ),
    "robots.unread": Rule(
        FINDING, "RFC 9309 section-2.2.4", "a record that no known crawler reads", severity=INFO
    ),
    "robots.url": Rule(
        FINDING, "RFC 9309 section-2.2.2", "a URL is in place of a path", severity=ERROR
    ),
}
