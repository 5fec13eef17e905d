"""RFC 9309, sentence by sentence: the verdict of a robots.txt on a path, and its line.

Rows marked `rfc` follow from its text, rows marked `lenient` from docs/robots.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import time
from typing import NamedTuple

import pytest

from comity.policies import Agent, Site, Verdict
from comity.policies.answers.rates import MAX_REQUEST_RATES, MAX_SECONDS, Rates, RequestRate
from comity.policies.formats.robots.rates import MAX_VALUE, crawl_delay, request_rates, visit_time
from tests.selection import one_in

ALLOW, DENY = Verdict.ALLOW, Verdict.DENY


class Case(NamedTuple):
    id: str
    robots: bytes
    path: str
    want: Verdict
    line: int  # of the deciding rule; 0: none decides
    rows: tuple[str, ...]
    agent: str = "ExampleBot"


BETWEEN = b"User-agent: examplebot\n%s\nUser-agent: b\nDisallow: /x"

CASES = [
    # section-2.1, protocol definition: groups, and the rules of the addressed group
    Case("2.1-agent", b"User-agent: examplebot\nDisallow: /x", "/x", DENY, 2, ("RFC-2",)),
    Case("2.1-other-agent", b"User-agent: otherbot\nDisallow: /", "/x", ALLOW, 0, ("RFC-2",)),
    Case("2.1-empty-file", b"", "/x", ALLOW, 0, ("RFC-2",)),
    # section-2.2, formal syntax: line ends, comments, white space, case of names
    Case("2.2-cr", b"User-agent: *\rDisallow: /x\r", "/x", DENY, 2, ("RFC-1",)),
    Case("2.2-crlf", b"User-agent: *\r\nDisallow: /x\r\n", "/x", DENY, 2, ("RFC-1",)),
    Case("2.2-mixed", b"User-agent: *\r\rAllow: /y\nDisallow: /x", "/x", DENY, 4, ("RFC-1",)),
    Case("2.2-no-last-end", b"User-agent: *\nDisallow: /x", "/x", DENY, 2, ("RFC-1",)),
    Case("2.2-bom", b"\xef\xbb\xbfUser-agent: *\nDisallow: /x", "/x", DENY, 2, ("RFC-1",)),
    Case(
        "2.2-two-boms",
        b"\xef\xbb\xbf\xef\xbb\xbfUser-agent: *\nDisallow: /x",
        "/x",
        DENY,
        2,
        ("RFC-1",),
    ),
    Case(
        "2.2-bom-of-a-second-file",
        b"User-agent: a\nAllow: /\n\xef\xbb\xbfUser-agent: *\nDisallow: /x",
        "/x",
        DENY,
        4,
        ("RFC-1",),
    ),
    Case(
        "2.2-bom-before-a-rule",
        b"User-agent: *\n\xef\xbb\xbfDisallow: /x",
        "/x",
        ALLOW,
        0,
        ("RFC-1",),
    ),
    Case("2.2-utf16", "User-agent: *\nDisallow: /x".encode("utf-16"), "/x", DENY, 2, ("RFC-13",)),
    Case("2.2-spaces", b" \tUser-agent \t: \t* \n  Disallow :/x \t\n", "/x", DENY, 2, ("RFC-1",)),
    Case("2.2-names", b"USER-AGENT: *\ndIsAlLoW: /x", "/x", DENY, 2, ("RFC-1",)),
    Case("2.2-comment", b"# a\nUser-agent: * # b\nDisallow: /x#c\n", "/x", DENY, 3, ("RFC-4",)),
    Case("2.2-comment-only", b"User-agent: *\n# Disallow: /x", "/x", ALLOW, 0, ("RFC-4",)),
    Case("2.2-blank-in-group", b"User-agent: *\n\n\nDisallow: /x", "/x", DENY, 4, ("RFC-2",)),
    Case("2.2-nul", b"User-agent: *\nDisallow: /a\x00b\nDisallow: /x", "/x", DENY, 3, ("RFC-13",)),
    Case(
        "2.2-control-ends-no-line",
        b"User-agent: *\nDisallow: /a\x0cAllow: /",
        "/x",
        ALLOW,
        0,
        ("RFC-13",),
    ),
    Case(
        "2.2-nel-ends-no-line",
        "User-agent: *\nAllow: /\u0085Disallow: /x".encode(),
        "/x",
        ALLOW,
        0,
        ("RFC-13",),
    ),
    # section-2.2.1, the user-agent line
    Case("2.2.1-case", b"User-agent: EXAMPLEBOT\nDisallow: /x", "/x", DENY, 2, ("RFC-2",)),
    Case(
        "2.2.1-own-over-any",
        b"User-agent: *\nDisallow: /\n\nUser-agent: examplebot\nDisallow: /y",
        "/x",
        ALLOW,
        0,
        ("RFC-2",),
    ),
    Case(
        "2.2.1-any",
        b"User-agent: otherbot\nAllow: /\n\nUser-agent: *\nDisallow: /x",
        "/x",
        DENY,
        5,
        ("RFC-2",),
    ),
    Case(
        "2.2.1-merged",
        b"User-agent: examplebot\nDisallow: /a\n\nUser-agent: *\nDisallow: /\n\n"
        b"User-agent: examplebot\nDisallow: /x",
        "/x",
        DENY,
        8,
        ("RFC-2",),
    ),
    Case(
        "2.2.1-any-merged",
        b"User-agent: *\nDisallow: /a\n\nUser-agent: *\nDisallow: /x",
        "/x",
        DENY,
        5,
        ("RFC-2", "SIG-4"),
    ),
    Case(
        "2.2.1-list",
        b"User-agent: otherbot\nUser-agent: examplebot\nDisallow: /x",
        "/x",
        DENY,
        3,
        ("RFC-2",),
    ),
    Case(
        "2.2.1-list-with-any",
        b"User-agent: otherbot\nUser-agent: *\nDisallow: /x",
        "/x",
        DENY,
        3,
        ("RFC-2",),
    ),
    Case(
        "2.2.1-no-prefix-of-ours", b"User-agent: example\nDisallow: /", "/x", ALLOW, 0, ("RFC-12",)
    ),
    Case(
        "2.2.1-ours-no-prefix",
        b"User-agent: examplebot-news\nDisallow: /",
        "/x",
        ALLOW,
        0,
        ("RFC-12",),
    ),
    Case("2.2.1-digits", b"User-agent: bot2\nDisallow: /x", "/x", DENY, 2, ("RFC-12",), "Bot2"),
    Case(
        "2.2.1-after-token",
        b"User-agent: examplebot/1.0 (+x)\nDisallow: /x",
        "/x",
        DENY,
        2,
        ("RFC-12",),
    ),
    Case("2.2.1-after-any", b"User-agent: *;\nDisallow: /x", "/x", DENY, 2, ("RFC-12",)),
    Case(
        "2.2.1-unseen-after-any", b"User-agent: *\xc2\xa0\nDisallow: /x", "/x", DENY, 2, ("RFC-12",)
    ),
    Case(
        "2.2.1-any-and-more", b"User-agent: *, otherbot\nDisallow: /x", "/x", DENY, 2, ("RFC-12",)
    ),
    Case("2.2.1-any-in-a-name", b"User-agent: *bot\nDisallow: /x", "/x", ALLOW, 0, ("RFC-12",)),
    Case("2.2.1-empty-agent", b"User-agent:\nDisallow: /", "/x", ALLOW, 0, ("RFC-12",)),
    Case(
        "2.2.1-rule-first", b"Disallow: /\nUser-agent: *\nDisallow: /y", "/x", ALLOW, 0, ("RFC-12",)
    ),
    Case("2.2.1-unknown-between", BETWEEN % b"X-Any: 1", "/x", DENY, 4, ("RFC-12",)),
    Case("2.2.1-delay-between", BETWEEN % b"Crawl-delay: 1", "/x", DENY, 4, ("RFC-12",)),
    Case(
        "2.2.1-usage-between",
        b"User-agent: examplebot\nContent-Usage: ai=n\nUser-agent: b\nDisallow: /x",
        "/x",
        DENY,
        4,
        ("RFC-12",),
    ),
    Case("2.2.1-rule-ends-list", BETWEEN % b"Allow: /", "/x", ALLOW, 2, ("RFC-12",)),
    Case(
        "2.2.1-empty-rule-ends-list",
        b"User-agent: examplebot\nDisallow:\nUser-agent: b\nDisallow: /x",
        "/x",
        ALLOW,
        0,
        ("RFC-12",),
    ),
    # section-2.2.2, allow and disallow lines
    Case(
        "2.2.2-longest",
        b"User-agent: *\nAllow: /x/page\nDisallow: /x/",
        "/x/page",
        ALLOW,
        2,
        ("RFC-3",),
    ),
    Case(
        "2.2.2-longest-denies",
        b"User-agent: *\nAllow: /x\nDisallow: /x/y",
        "/x/y",
        DENY,
        3,
        ("RFC-3",),
    ),
    Case(
        "2.2.2-order-is-nothing",
        b"User-agent: *\nDisallow: /x/y\nAllow: /x",
        "/x/y",
        DENY,
        2,
        ("RFC-3",),
    ),
    Case("2.2.2-tie", b"User-agent: *\nDisallow: /x\nAllow: /x", "/x", ALLOW, 3, ("RFC-3",)),
    Case(
        "2.2.2-longest-of-both-kinds",
        b"User-agent: *\nDisallow: /*b\nAllow: /xab",
        "/xab",
        ALLOW,
        3,
        ("RFC-3",),
    ),
    Case(
        "2.2.2-longest-has-a-star",
        b"User-agent: *\nAllow: /xab\nDisallow: /*abc",
        "/xabc",
        DENY,
        3,
        ("RFC-3",),
    ),
    Case(
        "2.2.2-tie-of-both-kinds",
        b"User-agent: *\nDisallow: /xab\nAllow: /x*b",
        "/xab",
        ALLOW,
        3,
        ("RFC-3",),
    ),
    Case(
        "2.2.2-tie-of-both-kinds-literal",
        b"User-agent: *\nDisallow: /x*b\nAllow: /xab",
        "/xab",
        ALLOW,
        3,
        ("RFC-3",),
    ),
    Case(
        "2.2.2-first-of-equals",
        b"User-agent: *\nDisallow: /x*b\nDisallow: /xab\nDisallow: /xab",
        "/xab",
        DENY,
        2,
        ("RFC-3",),
    ),
    Case(
        "2.2.2-first-of-equals-literal",
        b"User-agent: *\nDisallow: /xab\nDisallow: /x*b",
        "/xab",
        DENY,
        2,
        ("RFC-3",),
    ),
    Case("2.2.2-no-match", b"User-agent: *\nDisallow: /y", "/x", ALLOW, 0, ("RFC-3",)),
    Case("2.2.2-case", b"User-agent: *\nDisallow: /X", "/x", ALLOW, 0, ("RFC-3",)),
    Case("2.2.2-from-the-start", b"User-agent: *\nDisallow: /x", "/y/x", ALLOW, 0, ("RFC-3",)),
    Case("2.2.2-empty-pattern", b"User-agent: *\nDisallow:", "/x", ALLOW, 0, ("RFC-3",)),
    Case("2.2.2-query", b"User-agent: *\nDisallow: /x?a=", "/x?a=1", DENY, 2, ("RFC-3",)),
    Case("2.2.2-robots-txt", b"User-agent: *\nDisallow: /", "/robots.txt", ALLOW, 0, ("RFC-4",)),
    Case(
        "2.2.2-slash-stays-escaped",
        b"User-agent: *\nDisallow: /a%2Fb",
        "/a/b",
        ALLOW,
        0,
        ("RFC-12",),
    ),
    Case(
        "2.2.2-slash-escape-matches",
        b"User-agent: *\nDisallow: /a%2fb",
        "/a%2Fb",
        DENY,
        2,
        ("RFC-3",),
    ),
    Case(
        "2.2.2-unreserved-decoded",
        b"User-agent: *\nDisallow: /%78/~",
        "/x/%7E",
        DENY,
        2,
        ("RFC-3",),
    ),
    Case("2.2.2-utf8", "User-agent: *\nDisallow: /é".encode(), "/%C3%A9", DENY, 2, ("RFC-3",)),
    Case("2.2.2-utf8-escaped", b"User-agent: *\nDisallow: /%c3%a9", "/é", DENY, 2, ("RFC-3",)),
    Case("2.2.2-not-utf8", b"User-agent: *\nDisallow: /\xe9", "/%FF", ALLOW, 0, ("RFC-13",)),
    Case(
        "2.2.2-octets-counted",
        b"User-agent: *\nDisallow: /x%61*\nAllow: /xa",
        "/xab",
        DENY,
        2,
        ("RFC-12",),
    ),
    # section-2.2.3, special characters
    Case("2.2.3-star", b"User-agent: *\nDisallow: /*.gif", "/a/b.gif?c", DENY, 2, ("RFC-4",)),
    Case("2.2.3-star-is-empty", b"User-agent: *\nDisallow: /x*y", "/xy", DENY, 2, ("RFC-4",)),
    Case("2.2.3-stars", b"User-agent: *\nDisallow: /*a**b", "/xaxb", DENY, 2, ("RFC-4",)),
    Case("2.2.3-first-star", b"User-agent: *\nDisallow: *x", "/a/x", DENY, 2, ("RFC-4",)),
    Case("2.2.3-end", b"User-agent: *\nDisallow: /x$", "/x", DENY, 2, ("RFC-4",)),
    Case("2.2.3-not-the-end", b"User-agent: *\nDisallow: /x$", "/xy", ALLOW, 0, ("RFC-4",)),
    Case("2.2.3-star-end", b"User-agent: *\nDisallow: /*.gif$", "/a.gif.gif", DENY, 2, ("RFC-4",)),
    Case(
        "2.2.3-pieces-dont-overlap",
        b"User-agent: *\nDisallow: /*ab*ba$",
        "/xaba",
        ALLOW,
        0,
        ("RFC-4",),
    ),
    Case(
        "2.2.3-what-follows-a-star-comes-after-it",
        b"User-agent: *\nDisallow: /xa*xa",
        "/xa",
        ALLOW,
        0,
        ("RFC-4",),
    ),
    Case("2.2.3-dollar-inside", b"User-agent: *\nDisallow: /x$y", "/x$y", DENY, 2, ("RFC-12",)),
    Case("2.2.3-escaped-star", b"User-agent: *\nDisallow: /x%2Ay", "/xzy", ALLOW, 0, ("RFC-12",)),
    Case(
        "2.2.3-escaped-star-literal",
        b"User-agent: *\nDisallow: /x%2Ay",
        "/x*y",
        DENY,
        2,
        ("RFC-12",),
    ),
    Case("2.2.3-escaped-dollar", b"User-agent: *\nDisallow: /x%24", "/x$y", DENY, 2, ("RFC-12",)),
    # section-2.2.4, other records
    Case(
        "2.2.4-sitemap",
        b"User-agent: examplebot\nSitemap: https://e.com/s\nUser-agent: b\nDisallow: /x",
        "/x",
        DENY,
        4,
        ("RFC-11",),
    ),
    Case("2.2.4-unknown", b"User-agent: *\nNoindex: /x\nDisallow: /y", "/x", ALLOW, 0, ("RFC-12",)),
    # lenient readings
    Case("lenient-no-colon", b"User-agent *\nDisallow /x", "/x", DENY, 2, ("RFC-12",)),
    Case(
        "lenient-unseen-path", b"User-agent: *\nDisallow:\xc2\xa0/x\n", "/x", DENY, 2, ("RFC-12",)
    ),
    Case(
        "lenient-unseen-path-latin1",
        b"User-agent: *\nDisallow: \xa0 /x\n",
        "/x",
        DENY,
        2,
        ("RFC-12",),
    ),
    Case(
        "lenient-unseen-agent",
        b"User-agent: \xe2\x80\x8b*\nDisallow: /x",
        "/x",
        DENY,
        2,
        ("RFC-12",),
    ),
    Case(
        "lenient-no-unseen-allow",
        b"User-agent: *\nDisallow: /\nAllow:\xc2\xa0/x",
        "/x",
        DENY,
        2,
        ("RFC-12",),
    ),
    Case(
        "lenient-misspelled",
        b"Useragent: *\nDissallow: /x\nDisalow: /y",
        "/y",
        DENY,
        3,
        ("RFC-12",),
    ),
    Case(
        "lenient-no-misspelled-allow",
        b"User-agent: *\nDisallow: /\nAlow: /x",
        "/x",
        DENY,
        2,
        ("RFC-12",),
    ),
    Case(
        "lenient-prose",
        b"User-agent: *\nDisallow everything that is private",
        "/x",
        ALLOW,
        0,
        ("RFC-12",),
    ),
]


@pytest.mark.parametrize(
    "case",
    one_in(
        2,
        [
            pytest.param(case, id=case.id, marks=pytest.mark.requirement(*case.rows))
            for case in CASES
        ],
    ),
)
def test_case(case: Case) -> None:
    site = Site.from_files("https://example.com", {"/robots.txt": case.robots})
    decision = site.access(Agent(case.agent), "https://example.com" + case.path)
    assert (decision.verdict, decision.reasons[0].source.line) == (case.want, case.line)


FINDINGS = [
    (b"User-agent *\nDisallow: /", "robots.missing-colon", 1),
    (b"User-agent: *\nDisalow: /", "robots.misspelled", 2),
    (b"Disallow: /\n", "robots.no-agent", 1),
    (b"User-agent: bot/1.0\nDisallow: /", "robots.agent", 1),
    (b"User-agent: *\nDisallow: private/", "robots.path", 2),
    (b"User-agent: a\nCrawl-delay: 1\nUser-agent: b\nAllow: /x\nDisallow: /", "robots.joined", 2),
    (b"User-agent: *\nDisallow: /" + b"a" * 40_000, "robots.long-line", 2),
    (b"User-agent: *\n" + b"Sitemap: https://example.com/s\n" * 1002, "robots.sitemaps", 1002),
    (b"User-agent: *\n" + b"Crawl-delay: 1\n" * 1002, "robots.rates", 1002),
    (b"User-agent: *\nDisallow: /\n" + b"#" * 600_000, "robots.oversized", 0),
    (b"Disallow: /\n" * 101, "comity.more-findings", 0),
]


@pytest.mark.requirement("RFC-12", "RFC-9", "SEC-1")
@pytest.mark.parametrize(
    ("body", "rule", "line"), one_in(2, FINDINGS), ids=[rule for _, rule, _ in FINDINGS]
)
def test_finding(body: bytes, rule: str, line: int) -> None:
    site = Site.from_files("https://example.com", {"/robots.txt": body})
    assert (rule, line) in [(finding.rule, finding.line) for finding in site.findings]
    assert len(site.findings) <= 101


@pytest.mark.requirement("RFC-9", "SEC-1")
class TestLimits:
    def access(self, body: bytes, path: str) -> Verdict:
        site = Site.from_files("https://example.com", {"/robots.txt": body})
        return site.access(Agent("examplebot"), "https://example.com" + path).verdict

    def test_the_first_500_kib_are_read(self) -> None:
        filling = b"Disallow: /filling\n" * 26_900
        body = b"User-agent: *\n" + filling + b"Disallow: /last\n"
        assert 499 * 1024 < len(body) <= 512 * 1024
        assert self.access(body, "/last") is DENY

    def test_what_lies_past_the_limit_is_cut_at_a_line(self) -> None:
        body = (
            b"User-agent: *\n"
            + b"#" * (512 * 1024 - 14 - 1 - 12)
            + b"\n"
            + b"Allow: /private/page\nDisallow: /private\n"
        )
        assert body[: 512 * 1024].endswith(b"\nAllow: /priv")
        assert (
            self.access(b"User-agent: *\nDisallow: /private\n" + body[14:], "/private/page") is DENY
        )

    def test_white_space_is_part_of_a_line_of_any_length(self) -> None:
        gap = b" " * 40_000
        assert (
            self.access(
                b"User-agent: *\n" + gap + b"Disallow" + gap + b":" + gap + b"/x" + gap, "/x"
            )
            is DENY
        )

    def test_rates_past_their_limit_are_not_read(self) -> None:
        body = b"User-agent: *\n" + b"Crawl-delay: 1\n" * 999 + b"Crawl-delay: 2\nCrawl-delay: 3\n"
        rules = Site.from_files("https://example.com", {"/robots.txt": body}).rates(
            Agent("examplebot")
        )
        assert rules
        assert rules.crawl_delay == 2

    def test_the_end_of_a_long_allow_is_unknown(self) -> None:
        long = b"/a/" + b"b" * 40_000
        assert self.access(b"User-agent: *\nDisallow: /a\nAllow: " + long, long.decode()) is DENY
        assert self.access(b"User-agent: *\nDisallow: " + long, long.decode()) is DENY


@pytest.mark.requirement("RFC-11", "RATE-1")
def test_values_of_the_chosen_group() -> None:
    body = b"""User-agent: *
Crawl-delay: 9
Sitemap: https://example.com/one.xml
User-agent: otherbot
Disallow: /

User-agent: examplebot
Crawl-delay: 2
Crawl-delay: 5
Request-rate: 1/10 0800-1200
Request-rate: 1/2
Visit-time: 0600-0930
Visit-time: 0600-0845
Visit-time: 0500-0900
Crawl-delay: never
Disallow:
sitemap: /two.xml
"""
    site = Site.from_files("https://example.com", {"/robots.txt": body})
    rules = site.rates(Agent("examplebot"))
    assert rules
    assert rules.crawl_delay == 5
    assert rules.request_rates == (
        RequestRate(1, 10, time(8), time(12)),
        RequestRate(1, 2, None, None),
    )
    assert rules.visit_time
    assert (rules.visit_time.start.hour, rules.visit_time.end.minute, rules.visit_time.line) == (
        6,
        45,
        13,
    )
    assert site.sitemaps == ("https://example.com/one.xml", "https://example.com/two.xml")
    other = site.rates(Agent("otherbot"))
    assert other
    assert other.crawl_delay == 9
    assert (other.request_rates, other.visit_time) == ((), None)


@pytest.mark.requirement("RFC-11", "RATE-1", "SEC-1")
def test_every_request_rate_counts_the_slowest_first() -> None:
    """Up to a limit, even if they come from several groups or several files."""

    def rates(values: Iterable[str]) -> tuple[RequestRate, ...]:
        return request_rates(value.encode() for value in values)

    assert rates(["10/1m", "1/2", "1/2", "0/5", "5", "many", "100/1h"]) == (
        RequestRate(100, 3600, None, None),
        RequestRate(10, 60, None, None),
        RequestRate(1, 2, None, None),
    )
    assert rates(["1/" + "9" * 90, "9" * 90 + "/1"]) == (
        RequestRate(1, MAX_SECONDS, None, None),
        RequestRate(int("9" * 90), 1, None, None),
    )
    odd, even = (rates(f"{number}/60" for number in range(first, 41, 2)) for first in (1, 2))
    assert [rate.requests for rate in odd] == list(range(1, 2 * MAX_REQUEST_RATES, 2))
    for both in (
        Rates(None, odd).strictest(Rates(None, even)),
        Rates(None, even).strictest(Rates(None, odd)),
    ):
        assert [rate.requests for rate in both.request_rates] == list(
            range(1, MAX_REQUEST_RATES + 1)
        )


@pytest.mark.requirement("RFC-11", "RATE-1")
@pytest.mark.parametrize(
    ("one", "other"),
    [("0600-1000", "0700-1030"), ("2300-0100", "0600-0801"), ("0000-0000", "0000-2359")],
)
def test_the_longest_delay_and_the_shortest_visit_time_of_several_files_count(
    one: str, other: str
) -> None:
    """In any order of the files."""

    def rates(delay: float | None, hours: str) -> Rates:
        return Rates(delay, (), visit_time([(1, f"Visit-time: {hours}", hours.encode())]))

    shortest = {"0600-1000": other, "2300-0100": one, "0000-0000": other}[one]
    for first, second in ((rates(2, one), rates(5, other)), (rates(5, other), rates(None, one))):
        both = first.strictest(second)
        assert both.crawl_delay == 5
        assert both.visit_time
        assert both.visit_time.text == f"Visit-time: {shortest}"
    alone = rates(None, one)
    assert alone.strictest(Rates()) == Rates().strictest(alone) == alone


@pytest.mark.requirement("RFC-11", "RFC-13", "SEC-1")
def test_values_that_cannot_be_read_ask_for_nothing() -> None:
    """Values that are not UTF-8 or far too long are among them. The others count."""
    assert crawl_delay([b"\xff", b"9\xff", b"never", b"5", b"0" * 200 + b"9", b""]) == 5
    assert request_rates([b"\xff", b"1/\xff", b"1/" + b"0" * 200 + b"9", b"1/5"]) == (
        RequestRate(1, 5, None, None),
    )
    assert crawl_delay([b"\xff"]) is None
    assert crawl_delay([b"0" * (MAX_VALUE - 1) + b"5"]) == 5


@pytest.mark.requirement("RFC-11", "RATE-1", "ACAP-12")
@pytest.mark.parametrize("first", [True, False])
def test_what_a_file_that_is_referred_to_asks_for_counts_too(first: bool) -> None:
    one, other = (
        b"User-agent: *\nCrawl-delay: 5\n",
        b"User-agent: *\nVisit-time: 0600-0845\nCrawl-delay: 2\n",
    )
    robots, more = (one, other) if first else (other, one)
    refers = b"\nACAP-crawler: *\nACAP-permissions-reference: /more.txt\n"
    rates = Site.from_files(
        "https://example.com", {"/robots.txt": robots + refers, "/more.txt": more}
    ).rates(Agent("examplebot"))
    assert rates
    assert rates.visit_time
    assert (rates.crawl_delay, rates.visit_time.text) == (5, "Visit-time: 0600-0845")


@pytest.mark.requirement("RFC-2", "RFC-3", "WHY-1")
@pytest.mark.parametrize(
    ("robots", "rule"),
    [
        (b"", "robots.no-group"),
        (b"User-agent: other\nDisallow: /\n", "robots.no-group"),
        (b"User-agent: *\nDisallow: /x\n", "robots.no-match"),
        (b"User-agent: examplebot\nDisallow:\n", "robots.no-match"),
        (
            b"User-agent: examplebot\nCrawl-delay: 1\n\nUser-agent: other\nDisallow: /\n",
            "robots.disallow",
        ),  # one list of two
        (b"User-agent: *\nDisallow: /\nAllow: /y\n", "robots.allow"),
    ],
)
def test_silence_of_the_group_is_another_than_that_of_the_file(robots: bytes, rule: str) -> None:
    [reason] = (
        Site.from_files("https://example.com", {"/robots.txt": robots})
        .access(Agent("examplebot"), "https://example.com/y")
        .reasons
    )
    assert reason.rule == rule
