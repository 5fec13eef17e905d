"""Findings about a robots.txt, lists of agents, and values at the limits (docs/robots.md)."""

from __future__ import annotations

import pytest

from comity.policies import Agent, Site, Verdict
from comity.policies.formats.robots import grammar as robots
from comity.policies.syntax.lines import MAX_LINE
from tests.selection import one_in

ORIGIN = "https://example.com"
ALLOW, DENY = Verdict.ALLOW, Verdict.DENY


def site(body: bytes) -> Site:
    return Site.from_files(ORIGIN, {"/robots.txt": body})


def access(body: bytes, path: str = "/x") -> Verdict:
    return site(body).access(Agent("examplebot"), ORIGIN + path).verdict


# The body; the rule, line and column of each finding. The column is that of the name, of the
# missing colon, or of the value.
FOUND: list[tuple[bytes, list[tuple[str, int, int]]]] = [
    (b"User-agent: *\nDisallow: *x\nAllow: /\nDisallow:\n", []),
    (b"User-agent: *\n  Dissallow: /Dissallow\n", [("robots.misspelled", 2, 3)]),
    (
        b"User-agent *\nDisallow /disallow\n",
        [("robots.missing-colon", 1, 11), ("robots.missing-colon", 2, 9)],
    ),
    (b"User-agent: *\nDisallow: private # private\n", [("robots.path", 2, 11)]),
    (b"User-agent: *\nDisallow: allow\n", [("robots.path", 2, 11)]),
    (b"User-agent: *\nDisallow: disallow\n", [("robots.path", 2, 11)]),
    (b"User-agent: *\n         Disallow: low\n", [("robots.path", 2, 20)]),
    (b"User-agent: *\nDisallow : low\n", [("robots.path", 2, 12)]),
    (b"ACAP-crawler: *\n Disallow: /disallow\n", [("acap.conventional", 2, 2)]),
    # before any group
    (b"Allow: /x\nUser-agent: *\nAllow: /y\n", [("robots.no-agent", 1, 0)]),
    # once for a list of agents that ends elsewhere by another reading, if Allow follows
    (b"User-agent: a\nX-Any: 1\nUser-agent: b\nAllow: /x\nAllow: /y\n", [("robots.joined", 2, 0)]),
    (b"User-agent: a\nX-Any: 1\nX-More: 1\nUser-agent: b\nAllow: /x\n", [("robots.joined", 2, 0)]),
    (b"User-agent: a\nSitemap: /s\nUser-agent: b\nAllow: /x\n", []),
    (b"User-agent: a\nCrawl-delay: 1\nUser-agent: b\nAllow: /x\n", [("robots.joined", 2, 0)]),
    (b"User-agent: a\nCrawl-delay: 1\nUser-agent: b\nDisallow: /x\n", []),
    (b"User-agent: a\nACAP-crawler: *\nUser-agent: b\nAllow: /x\n", [("robots.joined", 2, 0)]),
    (
        b"User-agent: a\nX-Any: 1\nACAP-crawler: *\nUser-agent: b\nAllow: /x\n",
        [("robots.joined", 2, 0)],
    ),
    (b"User-agent: a\n# x: 1\nprose\nUser-agent: b\nAllow: /x\n", []),
    (b"User-agent: a\nDisallow everything # x: 1\nUser-agent: b\nAllow: /x\n", []),
    (b"User-agent: a\nDisallow everything\nUser-agent: b\nAllow: /x\n", []),
]


@pytest.mark.requirement("RFC-12")
@pytest.mark.parametrize(("body", "want"), one_in(2, FOUND))
def test_findings_say_where(body: bytes, want: list[tuple[str, int, int]]) -> None:
    found = site(body).findings
    assert [(finding.rule, finding.line, finding.column) for finding in found] == want
    assert {finding.url for finding in found} <= {f"{ORIGIN}/robots.txt"}


@pytest.mark.requirement("RFC-12")
@pytest.mark.parametrize(
    ("name", "token"),
    [("archive.org_bot", "archive"), ("Mail.RU_Bot", "mail"), ("Sogou web spider", "sogou")],
)
def test_names_of_known_crawlers_are_read_as_tokens_without_a_finding(
    name: str, token: str
) -> None:
    read = site(f"User-agent: {name}\nDisallow: /\n".encode())
    assert read.findings == ()
    assert read.crawler_names == {token}


@pytest.mark.requirement("RFC-12")
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"bot/1.0", "`bot/1.0` is read as `bot`"),
        (b"", "`` names no crawler. Write `*` for all crawlers, or one crawler's name."),
        (b"(x)", "`(x)` names no crawler. Write `*` for all crawlers, or one crawler's name."),
    ],
)
def test_what_is_read_of_a_token(value: bytes, message: str) -> None:
    [finding] = site(b"User-agent: %s\nDisallow: /\n" % value).findings
    assert (finding.rule, finding.message) == ("robots.agent", message)


@pytest.mark.requirement("RFC-12", "SEC-1")
@pytest.mark.parametrize(
    ("record", "most", "rule"),
    [
        (b"Sitemap: https://example.com/s\n", robots.MAX_SITEMAPS, "robots.sitemaps"),
        (b"Crawl-delay: 1\n", robots.MAX_RATES, "robots.rates"),
    ],
)
def test_what_is_past_a_limit_is_told_once(record: bytes, most: int, rule: str) -> None:
    assert site(b"User-agent: *\n" + record * most).findings == ()
    [finding] = site(b"User-agent: *\n" + record * (most + 3)).findings
    assert (finding.rule, finding.line) == (rule, 1 + most + 1)


@pytest.mark.requirement("RFC-12")
@pytest.mark.parametrize(
    ("between", "verdict"),
    [
        (b"Disallow everything", DENY),  # prose: the list continues
        (b"Disallow everything that is private", DENY),
        (b"Disallow private", DENY),
        (b"Disallow /y", ALLOW),  # rules without their colon
        (b"Disallow *y", ALLOW),
        (b"Disallow: private", ALLOW),
    ],
)
def test_what_is_a_rule_without_its_colon(between: bytes, verdict: Verdict) -> None:
    """A rule ends the list of agents."""
    assert (
        access(b"User-agent: examplebot\n" + between + b"\nUser-agent: b\nDisallow: /x\n")
        is verdict
    )


@pytest.mark.requirement("RFC-12")
def test_rules_without_their_colon_bind() -> None:
    body = b"User-agent: *\nDisallow /x\nDisallow *y\nAllow /x/y/z\n"
    assert [access(body, path) for path in ("/x", "/a/y", "/x/y/z", "/a")] == [
        DENY,
        DENY,
        ALLOW,
        ALLOW,
    ]


@pytest.mark.requirement("RFC-9")
@pytest.mark.parametrize(("length", "verdict"), [(MAX_LINE, ALLOW), (MAX_LINE + 1, DENY)])
def test_a_permission_as_long_as_a_line_may_be(length: int, verdict: Verdict) -> None:
    path = "/a/" + "b" * (length - len("Allow: /a/"))
    assert access(f"User-agent: *\nDisallow: /a\nAllow: {path}\n".encode(), path) is verdict


@pytest.mark.requirement("RFC-9")
def test_of_a_file_that_was_cut_the_last_line_is_left_out() -> None:
    """The fetcher tells that it was cut; its length does not."""
    read = robots.parse(b"User-agent: *\nDisallow: /private\nAllow: /private/p", oversized=True)
    line = read.for_agent("examplebot").decide("/private/page")
    assert line
    assert (line.verdict, line.line) == (DENY, 2)
    assert [finding.rule for finding in read.findings] == ["robots.oversized"]


@pytest.mark.requirement("RFC-11", "RFC-13")
def test_a_sitemap_that_is_no_utf_8_takes_no_other_with_it() -> None:
    assert (
        "https://example.com/b"
        in site(b"Sitemap: https://example.com/\xff\nSitemap: https://example.com/b\n").sitemaps
    )


@pytest.mark.requirement("RFC-2")
@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"User-agent: examplebot\nDisallow:\n", "robots.no-match"),
        (b"User-agent: b\n", "robots.no-group"),
    ],
)
def test_a_group_without_a_rule_that_matches_is_a_group(body: bytes, rule: str) -> None:
    assert [
        reason.rule for reason in site(body).access(Agent("examplebot"), f"{ORIGIN}/x").reasons
    ] == [rule]


@pytest.mark.requirement("ACAP-27")
@pytest.mark.parametrize(
    "line",
    [b"Disallow: /a/", b"DISALLOW :/a/", b" disallow: /a/ # x", b"Disalow: /%61/", b"Disallow /a/"],
)
def test_a_rule_gives_way_to_a_field_of_acap_however_it_is_written(line: bytes) -> None:
    fields = b"ACAP-crawler: *\nACAP-allow-crawl: /a/\n"
    assert access(b"User-agent: *\n%s\n%s" % (line, fields), "/a/b") is ALLOW
    assert access(b"User-agent: *\n%s\n" % line, "/a/b") is DENY


@pytest.mark.requirement("ACAP-27")
@pytest.mark.parametrize("line", [b"Allow: /a/", b"ALLOW :/a/", b" allow: /a/ # x", b"Allow /%61/"])
def test_a_rule_that_says_the_same_as_a_field_of_acap_stays(line: bytes) -> None:
    fields = b"ACAP-crawler: *\nACAP-allow-crawl: /a/\n"
    assert access(b"User-agent: *\nDisallow: /a\n%s\n%s" % (line, fields), "/a/b") is ALLOW


@pytest.mark.requirement("ACAP-27")
def test_without_what_is_said_elsewhere_contested_rules_decide() -> None:
    rules = robots.parse(b"User-agent: *\nDisallow: /a\n").for_agent("examplebot", contested={"/a"})
    assert rules.deciding_line("/a") == 2
    assert rules.deciding_line("/a", lambda _: ALLOW) == 0
    assert (
        rules.deciding_line("/a", lambda _: DENY) == rules.deciding_line("/a", lambda _: None) == 2
    )


@pytest.mark.requirement("RFC-2")
def test_the_lines_of_a_group() -> None:
    """They extend from its first line to the start of the next group, or to the end of the file."""
    read = robots.parse(
        b"# a\nUser-agent: a\nDisallow: /x\n\nUser-agent: b\nDisallow: /y\n"
        b"User-agent: c\nDisallow: /z"
    )
    lines = [read.lines_of(group) for group in range(3)]
    assert [(own.start, own.stop) for own in lines[:2]] == [(2, 5), (5, 7)]
    assert lines[2].start == 7
    assert 8 in lines[2]
    rules = [read.for_agent(token).first_of(own) for token, own in zip("abc", lines, strict=True)]
    assert rules == [3, 6, 8]
    assert read.for_agent("c").first_of(lines[0]) == 0


@pytest.mark.requirement("RFC-12", "RFC-9")
@pytest.mark.parametrize(
    ("rules", "want"),
    [
        (b"", True),
        (b"Allow: /a\nAllow: *b\nDisallow:\nALLOW :/c\n", True),
        (b"Allow: /a\nDisallow: /b\n", False),
        (b"Allow: /a\nDISALLOW :/b\n", False),
        (b"Allow: X\n", False),
        (b"Allow: /" + b"a" * MAX_LINE, False),
    ],
)
def test_whether_a_group_does_nothing_but_allow(rules: bytes, want: bool) -> None:
    """An Allow line that matches nothing, or whose end is unknown, does not count."""
    assert robots.parse(b"User-agent: *\n" + rules).for_agent("examplebot").only_allows is want
