"""Help for authors of a robots.txt: words, checks beyond the syntax, and fixes."""

from __future__ import annotations

import inspect
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Site, Verdict
from comity.policies.answers.decision import Finding
from comity.policies.answers.fetched import Fetched
from comity.policies.answers.rule import FINDING
from comity.policies.answers.rule import RULES as ALL_RULES
from comity.policies.formats import ROBOTS_LINES
from comity.policies.formats.authoring import Directive, Draft, apply
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.robots import file, grammar
from comity.policies.formats.robots.authoring import AUTHORING, DIRECTIVES
from comity.policies.formats.robots.grammar import parse
from comity.policies.formats.robots.misplaced import ADVICE as ADVISED
from comity.policies.formats.robots.misplaced import advice
from comity.policies.formats.robots.rules import RULES
from comity.policies.syntax.lines import MAX_BYTES, MAX_FINDINGS
from comity.policies.syntax.records import RecordKind
from tests.selection import one_in

ORIGIN = "https://example.com"
URL = f"{ORIGIN}/robots.txt"
READING = "".join(map(inspect.getsource, (grammar, file)))


def test_every_record_that_is_read_is_a_directive() -> None:
    assert {directive.name.lower().encode() for directive in DIRECTIVES} == {
        kind.value for kind in RecordKind
    } - {b"acap-crawler"}


@pytest.mark.parametrize("directive", DIRECTIVES, ids=lambda directive: directive.name)
def test_every_directive_says_what_it_is(directive: Directive) -> None:
    name, spec, summary, value, within, *_ = directive
    assert spec
    assert summary[0].isupper()
    assert summary[-1] != "."
    assert set(within) <= {other.name for other in DIRECTIVES}
    for word in AUTHORING.values.get(value, {}):
        group = parse(f"User-agent: *\n{name}: {word}\n".encode()).for_agent("examplebot")
        assert group.has_group


def test_rates_that_are_offered_are_read() -> None:
    for value, read in (
        ("seconds", "crawl_delay"),
        ("rate", "request_rates"),
        ("hours", "visit_time"),
    ):
        [name] = [directive.name for directive in DIRECTIVES if directive.value == value]
        for word in AUTHORING.values[value]:
            rates = parse(f"User-agent: *\n{name}: {word}\n".encode()).for_agent("examplebot").rates
            assert getattr(rates, read)


def lint(text: str | bytes) -> list[tuple[int, str]]:
    """Return line and rule of each finding about a file, beyond those of reading it."""
    return [(finding.line, finding.rule) for finding in findings_of(text)]


def findings_of(text: str | bytes) -> list[Finding]:
    body = text if isinstance(text, bytes) else text.encode()
    files = SiteFiles(
        "https://example.com", {URL: Fetched(status=200, body=body)}, robots_lines=ROBOTS_LINES
    )
    assert AUTHORING.check_site
    return list(AUTHORING.check_site(files))


ANY = "User-agent: *\n"

# File -> its findings
SAID: dict[str, list[tuple[int, str]]] = {
    # One line by itself
    f'{ANY}Disallow: "/a"': [(2, "robots.quotes")],
    f"{ANY}Disallow: “/a”": [(2, "robots.quotes")],
    "User-agent: 'foo'\nDisallow: /": [(1, "robots.quotes")],
    f'{ANY}Disallow: /*"': [],
    f"{ANY}Disallow:\xa0/a": [(2, "robots.invisible")],
    f"{ANY}Allow:\xa0/a": [(2, "robots.invisible")],
    f"{ANY}Disallow: /a\u200b": [(2, "robots.invisible")],
    f"{ANY}\xa0Disallow: /a": [(2, "robots.invisible")],
    f"{ANY}\ufeffDisallow: /a": [(2, "robots.invisible")],
    f"{ANY}Allow: /b\n\ufeff\ufeffUser-agent: foo\nDisallow: /a": [(3, "robots.invisible")],
    f"{ANY}Disallow\xa0: /a": [(2, "robots.invisible")],
    "User-agent: \ufefffoo\nDisallow: /": [(1, "robots.invisible")],
    f"{ANY}Disallow: /\xe4": [],
    f"{ANY}Disallow： /a": [(2, "robots.colon")],
    f"{ANY}Disallow = /a": [(2, "robots.colon")],
    f"{ANY}Disallow: https://example.org/a": [(2, "robots.url")],
    f"{ANY}Disallow: /https://example.org/a": [],
    f"{ANY}Disallow: /a /b": [(2, "robots.second-path")],
    f"{ANY}Disallow: /a Allow: /b": [(2, "robots.second-path")],
    f"{ANY}Disallow: /a b/": [(2, "robots.space")],
    f"{ANY}Disallow: /a # why": [],
    f"{ANY}Disallow: /a#b": [(2, "robots.fragment")],
    f"{ANY}Disallow: /#/admin": [(2, "robots.fragment")],
    f"{ANY}Disallow: /*.pdf$/": [(2, "robots.dollar")],
    f"{ANY}Disallow: /*.pdf$": [],
    f"{ANY}Disallow: /*$flag": [],
    f"{ANY}Disallow: /$LC.pdf": [],
    f"{ANY}Disallow: /(a|b)": [(2, "robots.regex")],
    f"{ANY}Disallow: /a[0-9]": [(2, "robots.regex")],
    f"{ANY}Disallow: /^a": [(2, "robots.regex")],
    f"{ANY}Disallow: /a\\.b": [(2, "robots.regex")],
    f"{ANY}Disallow: /.*": [(2, "robots.star")],
    f"{ANY}Disallow: /a(b)/?c[]=*.d": [],
    f"{ANY}Disallop: /a\nAllow: /": [(2, "robots.unknown")],
    f"{ANY}Alow: /a\nAllow: /": [(2, "robots.unknown")],
    f"{ANY}Licence: /a\nAllow: /": [(2, "robots.unknown")],
    f"{ANY}Disallow: /a // why": [(2, "robots.second-path")],
    f"{ANY}Disallow: /a //why": [(2, "robots.second-path")],
    f"{ANY}Host: example.com\nClean-param: a\nLicense: /a\nAllow: /": [],
    f"{ANY}Content-Signal: ai-train=no\nUsage: tdm=n\nContent-Usage: tdm=n\nAllow: /": [],
    f"{ANY}Noindex: /\nNofollow: /\nNo-archive: /\nAllow: /": [
        (line, "robots.misplaced") for line in (2, 3, 4)
    ],
    f"{ANY}DisallowAITraining: /\nDisallow-AI-Training: /\nAllow: /": [
        (3, "robots.misplaced"),
    ],
    f"{ANY}Deny: /a\nPermit: /b\nAllow: /": [(2, "robots.misplaced"), (3, "robots.misplaced")],
    f"{ANY}X-Robots-Tag: noai\ntdm-reservation: 1\nAllow: /": [
        (2, "robots.misplaced"),
        (3, "robots.misplaced"),
    ],
    f'{ANY}<meta name="robots" content="noindex">\n<META NAME=a>\nAllow: /': [
        (2, "robots.misplaced"),
        (3, "robots.misplaced"),
    ],
    f"{ANY}<style>\nbody {{\ncolor: red\n}}</style>\n<!-- a -->\nAllow: /": [
        (2, "robots.misplaced")
    ],
    f"{ANY}// a\n  //b\nAllow: /": [(2, "robots.misplaced"), (3, "robots.misplaced")],
    "User_agent: *\nDisallow: /": [(1, "robots.unknown")],
    "Bot: a\nDisallow: /": [(1, "robots.misplaced")],
    f"{ANY}Whatever: x\nLLMs-txt: /llms.txt\nAllow: /": [
        (2, "robots.unread"),
        (3, "robots.unread"),
    ],
    f"{ANY}Read https://example.com/ first.\nhttp://example.com\nAllow: /": [],
    "User-agent: foo, bar\nDisallow: /": [(1, "robots.several-agents")],
    "User-agent: Mozilla/4.0 (compatible; foo)\nDisallow: /": [],
    "User-agent: Offline Explorer\nDisallow: /": [],
    "Sitemap: /sitemap.xml": [(1, "robots.sitemap-url")],
    "Sitemap: https://example.com/sitemap.xml": [],
    f"{ANY}Disallow: /maps/\nSitemap: {ORIGIN}/maps/a.xml": [(3, "robots.sitemap-refused")],
    f"{ANY}Disallow: /maps/\nSitemap: https://other.test/maps/a.xml": [],
    f"{ANY}Disallow: /maps/\nAllow: /maps/*.xml$\nSitemap: {ORIGIN}/maps/a.xml": [],
    f"User-agent: foo\nDisallow: /maps/\nSitemap: {ORIGIN}/maps/a.xml": [],
    # Only the crawlers that the file names have a use for the sitemap.
    f"{ANY}Disallow: /\nUser-agent: foo\nAllow: /\nSitemap: {ORIGIN}/a.xml": [],
    f"{ANY}Crawl-delay: ten\nDisallow:": [(2, "robots.rate-value")],
    f"{ANY}Request-rate: 10\nDisallow:": [(2, "robots.rate-value")],
    f"{ANY}Visit-time: always\nDisallow:": [(2, "robots.rate-value")],
    # Groups
    f"User-agent: foo\n\n{ANY}Disallow: /": [(3, "robots.blank")],
    f"User-agent: foo\n{ANY}Disallow: /": [],
    "User-agent: foo\n\nUser-agent: bar\nDisallow: /": [],
    f"{ANY}Disallow: /\nUser-agent: foo": [(3, "robots.no-rules")],
    f"{ANY}Disallow: /\nUser-agent: foo\nDisallow:": [],
    f"{ANY}Disallow: /\nUser-agent: foo\nUsage: tdm=n": [],
    f"{ANY}Disallow: /\nUser-agent: foo\nMeta: /a.txt": [(4, "robots.unread")],
    ANY: [],
    "User-agent: foo\nDisallow: /a\nUser-agent: Foo\nDisallow: /b": [(3, "robots.same-agent")],
    f"{ANY}Crawl-delay: 5\nCrawl-delay: 10\nDisallow:": [(2, "robots.delay")],
    f"{ANY}Crawl-delay: 5\nRequest-rate: 1/10s\nDisallow:": [(2, "robots.delay")],
    f"{ANY}Crawl-delay: 5\nRequest-rate: 1/2s\nDisallow:": [],
    "User-agent: foo\nCrawl-delay: 9\nDisallow: /\n"
    "User-agent: foo\nUser-agent: bar\nCrawl-delay: 5\nDisallow: /": [(4, "robots.same-agent")],
    # Rules of one agent
    f"{ANY}Disallow: /a\nAllow: /a": [(2, "robots.overruled")],
    f"{ANY}Disallow: /a\nAllow: /%61": [(2, "robots.overruled")],
    f"{ANY}Disallow: /a\nUser-agent: foo\nAllow: /a": [],
    f"{ANY}Disallow: /a\nAllow: /b\nDisallow: /%61": [(4, "robots.duplicate")],
    "User-agent: foo\nDisallow: /a\nUser-agent: foo\nDisallow: /a": [
        (3, "robots.same-agent"),
        (4, "robots.repeated"),
    ],
    "User-agent: foo\nDisallow: /a\nUser-agent: foo\nUser-agent: bar\nDisallow: /a": [
        (3, "robots.same-agent")
    ],
    "User-agent: foo\nDisallow: /a\nUser-agent: foo\nAllow: /a": [
        (2, "robots.overruled"),
        (3, "robots.same-agent"),
    ],
    f"{ANY}Disallow: /a\nDisallow: /a/b": [(3, "robots.covered")],
    f"{ANY}Disallow: /\nDisallow: /*.pdf$": [(3, "robots.covered")],
    f"{ANY}Disallow: /a\nAllow: /a/b\nDisallow: /a/b/c": [],
    f"{ANY}Disallow: /a\nAllow: /a/b/c\nDisallow: /a/b": [(4, "robots.covered")],
    f"{ANY}Disallow: /a\nAllow: /*c\nDisallow: /a/b": [],
    f"{ANY}Disallow: /a\nAllow: /ax\nDisallow: /a*b": [],
    f"{ANY}Disallow: /a*b\nDisallow: /a*b/c": [],
    "User-agent: foo\nDisallow: /a\nDisallow: /a/b\nUser-agent: foo\nAllow: /a/": [
        (4, "robots.same-agent")
    ],
    f"{ANY}Disallow: /a*": [(2, "robots.star")],
    f"{ANY}Disallow: /a*\nAllow: /*": [],
    f"{ANY}Disallow: /a*\nAllow: /*b": [],
    f"{ANY}Disallow: /a*\nAllow: /b": [],
    f"{ANY}Disallow: /*": [(2, "robots.star")],
    f"{ANY}Disallow: *": [],
    f"{ANY}Disallow: /a\\B\\": [(2, "robots.backslash")],
    f"{ANY}Disallow: /a/../b": [(2, "robots.dot-segment")],
    f"{ANY}Disallow: /a/.": [],
    f"{ANY}Disallow: /a?file=/../etc": [],
    f"{ANY}Disallow: /a?b=c\\b": [],
    f"{ANY}Disallow: /a\\b?c=d\\e": [(2, "robots.backslash")],
    f"{ANY}Disallow: /a\nDisallow:": [(3, "robots.empty-rule")],
    "User-agent: foo\nDisallow:": [(2, "robots.empty-rule")],
    f"{ANY}Disallow: /a\n\nUser-agent: foo\nDisallow:": [],
    f"{ANY}Disallow:": [],
    f"{ANY}Disallow: /50%-off": [(2, "robots.escape")],
    f"{ANY}Disallow: /*%\nDisallow: /b%2": [],
    f"{ANY}Disallow: /.pdf": [(2, "robots.file-type")],
    f"{ANY}* Disallow: /a": [(2, "robots.list-mark")],
    "Please go away": [(0, "robots.no-records")],
    "# Please go away": [],
    f"{ANY}Crawl-delay: 5000": [(2, "robots.slow")],
    f"{ANY}Disallow; /a\nDisallow - /b": [(2, "robots.colon"), (3, "robots.colon")],
    "Crawl-delay: 5\nUser-agent: *\nDisallow: /a": [(1, "robots.no-agent")],
    "Sitemap:": [(1, "robots.sitemap-url")],
    "Sitemap: https://a.example/a https://a.example/b": [(1, "robots.sitemap-url")],
}


@pytest.mark.parametrize("text", one_in(2, SAID))
def test_what_is_said(text: str) -> None:
    assert lint(text) == lint(text.replace("\n", "\r\n")) == SAID[text]


def test_every_rule_is_said_of_a_file() -> None:
    said = {rule for rules in SAID.values() for _, rule in rules}
    of_reading = {rule for rule in RULES if re.search(rf'"{re.escape(rule)}"', READING)}
    findings = {rule for rule, entry in RULES.items() if entry.effect is FINDING}
    assert said - of_reading == findings - of_reading


@pytest.mark.parametrize(
    ("line", "rule", "place"),
    [
        ("Disallow:  /a#b", "robots.fragment", "#b"),
        ("Disallow: /a /b", "robots.second-path", "/b"),
        ("Disallow: /x.pdf$/b", "robots.dollar", "$"),
        ("Disallow: /al[a-z]", "robots.regex", "[a-z]"),
        ("User-agent: a, bot", "robots.several-agents", "bot"),
        ("Sitemap: map", "robots.sitemap-url", "map"),
        ("Alow: alow", "robots.unknown", "Alow"),
        ("Disallow: /a // why", "robots.second-path", "// why"),
        ("  Noindex : /", "robots.misplaced", "Noindex"),
        ("  <meta name=robots> ", "robots.misplaced", "<meta name=robots>"),
        (" // why", "robots.misplaced", "//"),
        ("What ever: x", "robots.unread", "What ever"),
    ],
)
def test_where_it_stands(line: str, rule: str, place: str) -> None:
    [finding] = [finding for finding in findings_of(f"{ANY}{line}\n") if finding.rule == rule]
    assert finding.line == 2
    assert line[finding.column - 1 : finding.column - 1 + finding.length] == place
    assert finding.column - 1 == line.rfind(place) or rule == "robots.unknown"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "Noindex: /a",
            "No crawler reads `Noindex` in robots.txt. Send the field `X-Robots-Tag: "
            "noindex` with the pages, or write "
            '`<meta name="robots" content="noindex">` into them.',
        ),
        (
            "Disallow-AI-Training: /",
            "No crawler reads `Disallow-AI-Training` in robots.txt. Write `Content-Signal: "
            "ai-train=no` or "
            "`Content-Usage: train-ai=n` below a User-agent line.",
        ),
        ("Deny: /a", "No crawler reads `Deny` in robots.txt. Write `Disallow` instead."),
        (
            "X-Robots-Tag: a",
            "No crawler reads `X-Robots-Tag` in robots.txt. It is a field of responses: "
            "send it with the pages.",
        ),
        (
            "<meta name=robots {0}>",
            "No crawler reads HTML in robots.txt. Write `<meta name=robots {0}>` into the pages.",
        ),
        ("<p>", "No crawler reads HTML in robots.txt. Delete `<p>` and the other tags."),
        ("/*", "`/*` does not begin a comment. Write `#`."),
        ("/*why", "`/*` does not begin a comment. Write `#`."),
        ("/*** why ***/", "`/*` does not begin a comment. Write `#`."),
        (
            " /*.pdf$ # why",
            "A record is missing before this path, so the line is not read. "
            "Write `Disallow: /*.pdf$`.",
        ),
        (
            "/*?sort=",
            "A record is missing before this path, so the line is not read. "
            "Write `Disallow: /*?sort=`.",
        ),
        (
            "Crawl-delay: 3600",
            "The unit is seconds: at most 24 pages a day may be fetched. "
            "If you mean milliseconds, write `3.6`.",
        ),
        (
            "Disallow: /.pdf",
            "This rule matches only paths that begin with `/.pdf`, and not all files of this "
            "type. Write `/*.pdf`.",
        ),
        ("// a", "`//` does not begin a comment. Write `#`."),
        ("User_agent: a", "The record `User_agent` is unknown. Write `User-agent`."),
        (
            "Whatever: a",
            "No known crawler reads `Whatever`. Delete the line, or put `#` before it.",
        ),
        (
            "Disallow: /a // b",
            "`//` does not begin a comment, so `// b` counts as part of the path. Write `#`.",
        ),
    ],
)
def test_a_message_says_what_to_write_instead(line: str, message: str) -> None:
    assert [finding.message for finding in findings_of(f"{ANY}{line}\nAllow: /\n")] == [message]


@pytest.mark.parametrize("name", ADVISED)
def test_what_is_advised_is_read(name: str) -> None:
    """comity knows the records that messages name."""
    for signal in re.findall(r"`(Content-[A-Z][a-z]*: [^`]*)`", advice(name)):
        site = Site.from_files(
            "https://example.com", {"/robots.txt": f"{ANY}{signal}\nAllow: /\n".encode()}
        )
        page = site.page(Agent("examplebot"), "https://example.com/", body=None)
        assert any(use.stated and use.verdict is Verdict.DENY for use in page.uses.values())
    for record in re.findall(r"Write `([^`]*)` instead", advice(name)):
        assert record.lower().encode() in {kind.value for kind in RecordKind}
    for word in re.findall(r"X-Robots-Tag: ([^`]*)`", advice(name)):
        site = Site.from_files("https://example.com", {})
        headers = [(b"X-Robots-Tag", word.encode())]
        page = site.page(Agent("examplebot"), "https://example.com/", headers=headers, body=b"<p>")
        assert page.findings == ()
        assert len(page.uses) > 1


def test_what_overrules_is_named() -> None:
    [finding] = findings_of(f"{ANY}Disallow: /a\n\nAllow: /a\n")
    assert (
        finding.message == "This rule has no effect: line 4 allows the same path, and Allow wins."
    )


def test_advice_to_delete_a_repeated_rule_has_a_fix() -> None:
    group = "User-agent: foo\nDisallow: /a\nDisallow: /b\n"
    text = group * 2
    repeated = [finding for finding in findings_of(text) if finding.rule == "robots.repeated"]
    assert [finding.message for finding in repeated] == [
        "This rule repeats line 2. Its group needs a rule: delete this one only if another is left.",
        "This rule repeats line 3. Delete it.",
    ]
    draft = Draft(URL, text.encode())
    fixes = [AUTHORING.fixes[finding.rule](draft, finding) for finding in repeated]
    assert [fix is not None for fix in fixes] == [False, True]


def test_of_each_rule_so_many_findings_are_listed() -> None:
    text = (
        ANY
        + "".join(f"Disallow: /{number} /b\n" for number in range(MAX_FINDINGS + 1))
        + "Disallow: /(a|b)\n"
    )
    rules = [rule for _, rule in lint(text)]
    assert rules.count("robots.second-path") == MAX_FINDINGS
    assert rules[-2:] == ["robots.regex", "comity.more-findings"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{ANY}Disalow /a\n", "User-agent: *\nDisallow: /a\n"),
        ("Useragent: foo/1.0\nDisallow:\n", "User-agent: foo\nDisallow:\n"),
        ("User-agent: foo\xa0\nDisallow:\n", "User-agent: foo\nDisallow:\n"),
        ("User-agent: foo, bar\nDisallow:\n", "User-agent: foo, bar\nDisallow:\n"),
        ("User-agent: foo/1.0 bar\nDisallow:\n", "User-agent: foo/1.0 bar\nDisallow:\n"),
        (f"{ANY}Disallow: /a\nDisallow: /a\nDisallow: /a # why\n", f"{ANY}Disallow: /a\n# why\n"),
        (f"{ANY}Disallow: /a** # why\n", f"{ANY}Disallow: /a # why\n"),
        (f"{ANY}Disallow: secret\n", f"{ANY}Disallow: secret\n"),
        (f"// ours\n{ANY}  //\nDisallow: /a // why\n", f"# ours\n{ANY}  #\nDisallow: /a // why\n"),
        (f"{ANY}Deny: /a\nNoindex: /\n", f"{ANY}Deny: /a\nNoindex: /\n"),
        (f"{ANY}/*.pdf$\n/*?sort=\n", f"{ANY}/*.pdf$\n/*?sort=\n"),
        (f"{ANY}/*{'a.' * 200}\n", f"{ANY}/*{'a.' * 200}\n"),
        (f"/* why */\n/*\n{ANY}", f"# why */\n#\n{ANY}"),
        (f"Sitemap: sitemap.xml\n{ANY}", f"Sitemap: https://site.test/sitemap.xml\n{ANY}"),
        (f"Sitemap: /a.php?a=1,2;b\n{ANY}", f"Sitemap: https://site.test/a.php?a=1,2;b\n{ANY}"),
        (f"Sitemap: //a.test/b\n{ANY}", f"Sitemap: https://a.test/b\n{ANY}"),
        (f"Sitemap: www.a.test/b.xml\n{ANY}", f"Sitemap: https://www.a.test/b.xml\n{ANY}"),
        (
            f"Sitemap: https://a.test/a?b=1,2;c http://a.test/d\n{ANY}",
            f"Sitemap: https://a.test/a?b=1,2;c\nSitemap: http://a.test/d\n{ANY}",
        ),
        (
            f"Sitemap: /a?b=1,2, /c.xml\n{ANY}",
            f"Sitemap: https://site.test/a?b=1,2\nSitemap: https://site.test/c.xml\n{ANY}",
        ),
        (f"Sitemap: site.map/a.xml\n{ANY}", f"Sitemap: site.map/a.xml\n{ANY}"),
        (f"Sitemap: //[a\n{ANY}", f"Sitemap: //[a\n{ANY}"),
        (f"Sitemap: see below\n{ANY}", f"Sitemap: see below\n{ANY}"),
        (f"{ANY}Disallow: /a b/c d.pdf\n", f"{ANY}Disallow: /a%20b/c%20d.pdf\n"),
        (f"{ANY}Disallow: /still life\n", f"{ANY}Disallow: /still%20life\n"),
        # The words behind the path may be a comment.
        (f"{ANY}Disallow: /a and all below it\n", f"{ANY}Disallow: /a and all below it\n"),
        (f"{ANY}Disallow: /a - no robots.\n", f"{ANY}Disallow: /a - no robots.\n"),
        (f"{ANY}Disallow: what is in /a/\n", f"{ANY}Disallow: what is in /a/\n"),
        # Readers of Crawl-delay alone would lose their limit.
        (
            f"{ANY}Crawl-delay: 10\nRequest-rate: 1/20\nDisallow: /x\n",
            f"{ANY}Crawl-delay: 10\nRequest-rate: 1/20\nDisallow: /x\n",
        ),
    ],
)
def test_what_is_mended(before: str, after: str) -> None:
    draft = Draft("https://site.test/robots.txt", before.encode())
    findings = [*parse(draft.body).findings, *findings_of(before)]
    fixes = [
        AUTHORING.fixes[finding.rule](draft, finding)
        for finding in findings
        if finding.rule in AUTHORING.fixes
    ]
    safe = [fix for fix in fixes if fix and not fix.changes_decisions]
    assert apply(draft.body, safe)[0].decode() == after


def test_a_file_near_its_limit_is_not_mended() -> None:
    body = f"{ANY}Disalow: /a\n".encode() + b"#\n" * (MAX_BYTES // 2 - 50)
    [finding] = parse(body).findings
    assert AUTHORING.fixes["robots.misspelled"](Draft(URL, body), finding) is None


# File -> the file after all of its fixes, in as many rounds as they need
WHOLLY_MENDED = {
    # A rule without a path permits everything. No fix refuses the site in its place.
    "User-agent: Googlebot\nDisallow:\n": "User-agent: Googlebot\nDisallow:\n",
    f"{ANY}Disallow: /a\nDisallow:\n": f"{ANY}Disallow: /a\n",
    # A refusal on the line of a permission stays a refusal.
    f"{ANY}Allow: /x/ Disallow: /y\n": f"{ANY}Allow: /x/\nDisallow: /y\n",
    f"{ANY}Disallow: /x/ Allow: /y\n": f"{ANY}Disallow: /x/\nAllow: /y\n",
    f"{ANY}Allow: /x/ Disallow: /y /z\n": f"{ANY}Allow: /x/\nDisallow: /y\nDisallow: /z\n",
    f"{ANY}Allow: /x /y No: /z\n": f"{ANY}Allow: /x /y No: /z\n",
    f"{ANY}Disallow: /a/, /b/\n": f"{ANY}Disallow: /a/\nDisallow: /b/\n",
    # A mended unit is not taken for milliseconds.
    f"{ANY}Crawl-delay: 20 minutes\nDisallow: /a\n": f"{ANY}Crawl-delay: 1200\nDisallow: /a\n",
    f"{ANY}Crawl-delay: 1500m\nDisallow: /a\n": f"{ANY}Crawl-delay: 90000\nDisallow: /a\n",
    f"{ANY}Crawl-delay: 1234567 seconds\nDisallow: /a\n": (
        f"{ANY}Crawl-delay: 1234567\nDisallow: /a\n"
    ),
    f"{ANY}Crawl-delay: 3600\nDisallow: /a\n": f"{ANY}Crawl-delay: 3600\nDisallow: /a\n",
    # One agent line is enough for all records before the first group.
    "Disallow: /x\nCrawl-delay: 5\nAllow: /y\n": (
        f"{ANY}Disallow: /x\nCrawl-delay: 5\nAllow: /y\n"
    ),
    # Browsers change no query.
    f"{ANY}Disallow: /a\\b/../c?d=e\\f/../g\n": f"{ANY}Disallow: /a/c?d=e\\f/../g\n",
    # A path without its name is no comment.
    f"{ANY} /*.pdf$ # why\n": f"{ANY} Disallow: /*.pdf$ # why\n",
}


@pytest.mark.parametrize("before", WHOLLY_MENDED)
def test_all_fixes_together_write_the_text_that_is_meant(before: str) -> None:
    body = before.encode()
    for _ in range(5):
        draft = Draft(URL, body)
        findings = [*parse(body).findings, *findings_of(body)]
        mends = [(AUTHORING.fixes.get(finding.rule), finding) for finding in findings]
        fixes = [fix for mend, finding in mends if mend and (fix := mend(draft, finding))]
        body, _ = apply(body, fixes)
    assert body.decode() == WHOLLY_MENDED[before]


@given(st.text(alphabet='UDAaCl: /*$#"\xa0\r\n,[0-9]=', max_size=80), st.binary(max_size=60))
def test_anything_can_be_checked(text: str, octets: bytes) -> None:
    for body in (text.encode(), octets, ANY.encode() + b"Disallow: " + octets):
        lines = body.count(b"\n") + body.count(b"\r") + 1
        assert all(
            0 <= finding.line <= lines and finding.rule in ALL_RULES
            for finding in findings_of(body)
        )
