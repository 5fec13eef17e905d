"""Every example of ACAP 1.0, section by section, with the outcome that its text states.

If an example is a single field, a crawler line is put before it. If a field is broken over two
lines to fit the page, it is one line here, as the NOTEs of section-2.5.5.2.4 and section-2.7 ask.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from comity.policies import Agent, Arrangement, Fetched, Site, Verdict
from comity.policies.answers.qualifiers import Extract, Resource
from tests.selection import one_in

ORIGIN = "https://example.com"
ROBOTS = f"{ORIGIN}/robots.txt"
NOW = datetime(2007, 12, 1, 12, tzinfo=UTC)
COMITY = Agent("comity")
NAMED = Agent("named-crawler")
SEARCHBOT = Agent(
    "searchbot", user_agent="Mozilla/5.0 (compatible; SearchBot/2.1; +https://search.example/bot)"
)
ARRANGED = Agent(
    "comity",
    arrangements=(
        Arrangement(
            "example.com",
            frozenset({"must-use-resource", "must-include-resource", "take-down", "re-crawl"}),
        ),
    ),
)


class Told(NamedTuple):
    """The expected answer to a question. `line` and `rule` are of the first reason."""

    verdict: Verdict
    rule: str
    line: int
    restrictions: dict[str, Any]


def permission(line: int, **restrictions: Any) -> Told:
    return Told(Verdict.ALLOW, "acap.allow", line, restrictions)


def refusal(line: int, rule: str = "acap.disallow") -> Told:
    return Told(Verdict.DENY, rule, line, {})


UNSTATED = Told(Verdict.DENY, "comity.default", 0, {})
UNSTATED_CRAWL = Told(Verdict.ALLOW, "robots.no-group", 0, {})


def answer_of(site: Site, path: str, use: str, agent: Agent = COMITY, **given: Any) -> Told:
    """Return the answer of the site on one use of one page, in December 2007."""
    url = ORIGIN + path
    page = site.page(agent, url, now=NOW, **given)
    decision = page.uses[use]
    reason = decision.reasons[0]
    if use == "crawl":
        access = site.access(agent, url, now=NOW)
        assert (access.verdict, access.reasons[0]) == (decision.verdict, reason)
    assert decision.stated == (reason.rule != "comity.default")
    if reason.source.line:
        assert (
            reason.source.text
            == site.files[reason.source.url]
            .body.decode()
            .splitlines()[reason.source.line - 1]
            .strip()
        )
    return Told(decision.verdict, reason.rule, reason.source.line, decision.restrictions())


def reading(text: str, **files: str) -> Site:
    """Return the reading of a site.

    `files` maps the name of a file beside robots.txt to its text.
    """
    others = {f"/{name}.txt": body.encode() for name, body in files.items()}
    return Site.from_files(ORIGIN, {"/robots.txt": text.encode(), **others})


# section-2.1: the introductory file. The two fields that it names as alternatives are commented out
# in the file. The tests below put them in.
INTRODUCTION = """\
##ACAP version=1.0
# Legacy robots.txt content...

User-agent: *
Disallow: /

User-agent: named-crawler
Allow: /index.html
Allow: /public/
Allow: /promotion/
Allow: /news/

# Un-comment the line below, if crawlers capable of understanding
# ACAP records are to ignore conventional records
# ACAP-ignore-conventional-records

# ACAP local definitions
# Resources found in three directories are crawlable
ACAP-resource-set: crawlable /public/ /promotion/ /news/

# On this site 'cache' means 'preserve (store) until re-crawled'
ACAP-qualified-usage: cache preserve time-limit=until-recrawled

# The same usages are permitted for all resources in the specified
# resource set, so we can define a composite usage
ACAP-composite-usage: basic-usages crawl index present

# Crawlers in general are prohibited to crawl this site
ACAP-crawler: *
ACAP-disallow-crawl: /

# Named crawler may crawl, index and display the content of /public/ ...

ACAP-crawler: named-crawler
# All my usages are permitted for the specified resource set...
ACAP-allow-(basic-usages): the-acap:resource-set:crawlable
# which is equivalent to permitting the three separate usages, which are
# commented out here...
# ACAP-allow-crawl: the-acap:resource-set:crawlable
# ACAP-allow-index: the-acap:resource-set:crawlable
# ACAP-allow-present: the-acap:resource-set:crawlable

# ...but may only preserve copies in the locally-defined sense
# ACAP-allow-(cache): the-acap:resource-set:crawlable
"""
COMPOSITE = "ACAP-allow-(basic-usages): the-acap:resource-set:crawlable"
SEPARATE = [
    f"ACAP-allow-{usage}: the-acap:resource-set:crawlable"
    for usage in ("crawl", "index", "present")
]
CACHE = "ACAP-allow-(cache): the-acap:resource-set:crawlable"


def line_of(text: str) -> int:
    """Return the number of a line in the introductory file, commented out or not."""
    [found] = [
        number
        for number, line in enumerate(INTRODUCTION.splitlines(), 1)
        if line.removeprefix("# ") == text
    ]
    return found


def uncomment(*fields: str) -> str:
    text = INTRODUCTION
    for field in fields:
        text = text.replace(f"# {field}\n", f"{field}\n")
    return text


@pytest.mark.requirement("ACAP-6")
def test_introduction_has_nothing_to_find_fault_with() -> None:
    site = reading(INTRODUCTION)
    assert site.findings == ()
    assert (line_of("ACAP-disallow-crawl: /"), line_of(COMPOSITE), line_of(CACHE)) == (30, 36, 44)


@pytest.mark.requirement("ACAP-11", "ACAP-22", "ACAP-41")
@pytest.mark.parametrize(
    ("path", "conventional"),
    [
        ("/public/", 9),
        ("/public/a", 9),
        ("/promotion/a.html", 10),
        ("/news/2007/a?page=2", 11),
        ("/NEWS/A", 0),
    ],
)
def test_introduction_for_the_named_crawler(path: str, conventional: int) -> None:
    """`conventional` is the line that permits to crawl it too, with the pattern of the set."""
    site = reading(INTRODUCTION)
    access = site.access(NAMED, ORIGIN + path)
    assert access.verdict is Verdict.ALLOW
    assert {
        (reason.rule, reason.source.line) for reason in access.reasons if reason.source.line
    } == {
        ("acap.allow", 36),
        *([("robots.allow", conventional)] if conventional else []),
    }
    assert {
        use: answer_of(site, path, use, NAMED)
        for use in ("index", "present", "present-snippet", "preserve", "follow")
    } == {
        "index": permission(36),
        "present": permission(36),
        "present-snippet": permission(
            36
        ),  # section-2.5.5: "to present a particular resource in any way"
        "preserve": UNSTATED,  # commented out
        "follow": Told(Verdict.ALLOW, "comity.default", 0, {}),
    }


@pytest.mark.requirement("ACAP-11", "ACAP-27")
@pytest.mark.parametrize("path", ["/", "/index.html", "/private/a", "/publi"])
def test_introduction_for_the_named_crawler_outside_of_the_set(path: str) -> None:
    """The record for any crawler still applies there, to crawling.

    The conventional `Allow: /index.html` has another pattern than `ACAP-disallow-crawl: /`. Both
    apply, and the refusal refuses.
    """
    site = reading(INTRODUCTION)
    assert answer_of(site, path, "crawl", NAMED) == refusal(30)
    assert (
        answer_of(site, path, "index", NAMED) == answer_of(site, path, "present", NAMED) == UNSTATED
    )


@pytest.mark.requirement("ACAP-11")
@pytest.mark.parametrize("path", ["/", "/index.html", "/public/a", "/news/a"])
def test_introduction_for_crawlers_in_general(path: str) -> None:
    site = reading(INTRODUCTION)
    access = site.access(COMITY, ORIGIN + path)
    assert access.verdict is Verdict.DENY
    # Its conventional record and its ACAP record both refuse.
    assert {reason.source.line for reason in access.reasons} <= {5, 30}
    assert answer_of(site, path, "index") == answer_of(site, path, "preserve") == UNSTATED


@pytest.mark.requirement("ACAP-41")
def test_introduction_with_the_three_separate_usages() -> None:
    """The text says that they are equivalent to the composite one."""
    site = reading(uncomment(*SEPARATE).replace(f"{COMPOSITE}\n", f"# {COMPOSITE}\n"))
    for path in ("/public/a", "/promotion/a", "/news/a"):
        assert 39 in [reason.source.line for reason in site.access(NAMED, ORIGIN + path).reasons]
        assert answer_of(site, path, "crawl", NAMED).verdict is Verdict.ALLOW
        assert answer_of(site, path, "index", NAMED) == permission(40)
        assert answer_of(site, path, "present", NAMED) == permission(41)
        assert answer_of(site, path, "preserve", NAMED) == UNSTATED
    assert answer_of(site, "/private/a", "crawl", NAMED) == refusal(30)
    both = reading(uncomment(*SEPARATE))
    assert answer_of(both, "/news/a", "index", NAMED) == permission(36)


@pytest.mark.requirement("ACAP-32", "ACAP-40")
def test_introduction_with_its_permission_to_cache() -> None:
    site = reading(uncomment(CACHE))
    assert answer_of(site, "/news/a", "preserve", NAMED) == permission(44, until_recrawled=True)
    assert answer_of(site, "/news/a", "index", NAMED) == permission(36)
    assert (
        answer_of(site, "/private/a", "preserve", NAMED)
        == answer_of(site, "/news/a", "preserve")
        == UNSTATED
    )


@pytest.mark.requirement("ACAP-7")
def test_introduction_with_conventional_records_ignored() -> None:
    ignoring = uncomment("ACAP-ignore-conventional-records")
    site = reading(ignoring)
    assert site.findings == ()
    assert answer_of(site, "/news/a", "crawl", NAMED) == permission(36)
    assert answer_of(site, "/index.html", "crawl", NAMED) == refusal(30)
    assert answer_of(site, "/news/a", "crawl") == refusal(30)
    # Without the ACAP record for any crawler, its conventional `Disallow: /` does not come back.
    site = reading(ignoring.replace("ACAP-disallow-crawl: /\n", "ACAP-disallow-crawl: /private/\n"))
    assert answer_of(site, "/news/a", "crawl").verdict is Verdict.ALLOW
    assert answer_of(site, "/private/a", "crawl") == refusal(30)
    site = reading(
        INTRODUCTION.replace("ACAP-disallow-crawl: /\n", "ACAP-disallow-crawl: /private/\n")
    )
    assert answer_of(site, "/news/a", "crawl") == refusal(5, "robots.disallow")


@pytest.mark.requirement("ACAP-2", "ACAP-10")
def test_2_3_1_a_named_crawler() -> None:
    site = reading("ACAP-crawler: searchbot\nACAP-disallow-index: /\n")
    for agent in (SEARCHBOT, Agent("SEARCHBOT"), Agent("sb", user_agent="SearchBot/2.1")):
        assert answer_of(site, "/a", "index", agent) == refusal(2)
    for other in (COMITY, Agent("searchbots"), Agent("mysearchbot"), Agent("search")):
        assert answer_of(site, "/a", "index", other) == UNSTATED


@pytest.mark.requirement("ACAP-10")
def test_2_3_1_any_crawler() -> None:
    site = reading("ACAP-crawler: *\nACAP-disallow-index: /\n")
    for agent in (COMITY, SEARCHBOT, NAMED):
        assert answer_of(site, "/a", "index", agent) == refusal(2)


@pytest.mark.requirement("ACAP-12")
def test_2_3_2_a_reference_for_one_crawler() -> None:
    text = "ACAP-crawler: searchbot\nACAP-permissions-reference: /searchbot.txt\n"
    site = reading(
        text, searchbot="# for the bot\nACAP-crawler: searchbot\nACAP-disallow-crawl: /private/\n"
    )
    assert site.references(SEARCHBOT) == (f"{ORIGIN}/searchbot.txt",)
    assert answer_of(site, "/private/a", "crawl", SEARCHBOT) == refusal(3)
    assert (
        site.access(SEARCHBOT, f"{ORIGIN}/private/a").reasons[0].source.url
        == f"{ORIGIN}/searchbot.txt"
    )
    assert answer_of(site, "/a", "crawl", SEARCHBOT).verdict is Verdict.ALLOW
    assert site.references(COMITY) == ()
    assert answer_of(site, "/private/a", "crawl").verdict is Verdict.ALLOW


@pytest.mark.requirement("ACAP-15")
@pytest.mark.parametrize(
    ("purposes", "matches"),
    [
        (("news",), True),
        (("web", "News"), True),
        ((), False),
        (("newsletters",), False),
        (("old-news",), False),
    ],
)
def test_2_3_3_a_purpose_by_name(purposes: tuple[str, ...], matches: bool) -> None:
    site = reading("ACAP-crawler: *\nACAP-usage-purpose: news\nACAP-allow-index: /\n")
    agent = Agent("comity", purposes=purposes)
    assert answer_of(site, "/a", "index", agent) == (permission(3) if matches else UNSTATED)


@pytest.mark.requirement("ACAP-15")
@pytest.mark.parametrize(
    ("purpose", "matches"),
    [
        ("http://news.search.example/", True),
        ("http://news.search.example/uk/today", True),
        ("http://news.search.example", False),  # without the second slash
        ("https://news.search.example/", False),
        ("http://images.search.example/", False),
        ("news", False),
    ],
)
def test_2_3_3_purposes_by_a_pattern(purpose: str, matches: bool) -> None:
    site = reading(
        "ACAP-crawler: *\nACAP-usage-purpose: http://news.search.*/*\nACAP-allow-index: /\n"
    )
    assert answer_of(site, "/a", "index", Agent("comity", purposes=(purpose,))) == (
        permission(3) if matches else UNSTATED
    )


class Example(NamedTuple):
    """A part of a file, and its answers on uses of paths."""

    section: str
    rows: tuple[str, ...]
    fields: str  # as printed, the first one on line 2
    want: dict[tuple[str, str], Told]  # (path, use) -> the answer
    definitions: str = ""  # before the record, whose fields come so many lines later


ANNOTATION = frozenset({"annotation"})
END_OF_2007 = datetime(2007, 12, 31, 23, 59, 59, tzinfo=UTC)
THREE_DAYS = datetime(2007, 12, 4, 12, tzinfo=UTC)

EXAMPLES = [
    Example(
        "2.4.1.1",
        ("ACAP-20", "ACAP-48"),
        "ACAP-allow-index: /news/",
        {
            ("/news/a", "index"): permission(2),
            ("/a", "index"): UNSTATED,
            ("/news/a", "present"): UNSTATED,
        },
    ),
    Example(
        "2.4.1.2",
        ("ACAP-32",),
        # The text defines the value as `until-recrawled`; this shorter spelling of its own example
        # means the same.
        "ACAP-allow-preserve: /news/ time-limit=until-recrawl",
        {
            ("/news/a", "preserve"): permission(2, until_recrawled=True),
            ("/a", "preserve"): UNSTATED,
        },
    ),
    Example(
        "2.4.1.3",
        ("ACAP-21", "ACAP-23"),
        "ACAP-allow-(local-usage): /special/*.htm",
        {
            ("/special/a.htm", "preserve"): permission(3, until_recrawled=True),
            ("/special/deep/a.html?b", "preserve"): permission(3, until_recrawled=True),
            ("/special/a.pdf", "preserve"): UNSTATED,
        },
        definitions="ACAP-qualified-usage: local-usage preserve time-limit=until-recrawled",
    ),
    Example(
        "2.4.2",
        ("ACAP-20",),
        "ACAP-disallow-crawl: /private/",
        {
            ("/private/a", "crawl"): refusal(2),
            ("/private", "crawl"): UNSTATED_CRAWL,
            ("/private/a", "index"): UNSTATED,
        },
    ),
    Example(
        "2.4.4",
        ("ACAP-22",),
        "ACAP-allow-index: the-acap:resource-set:indexable",
        {
            ("/public/a", "index"): permission(3),
            ("/news/a", "index"): permission(3),
            ("/promote/a", "index"): permission(3),
            ("/a", "index"): UNSTATED,
        },
        definitions="ACAP-resource-set: indexable /public/ /news/ /promote/",
    ),
    Example(
        "2.5.1",
        ("ACAP-30",),
        "ACAP-disallow-crawl: /private/",
        {("/private/a", "crawl"): refusal(2)},
    ),
    Example(
        "2.5.3.1",
        ("ACAP-32",),
        """\
ACAP-allow-index: /public/ time-limit=until-recrawled

ACAP-allow-index: /news/2007/ time-limit=until-2007-12-31

ACAP-allow-index: /current-news/ time-limit=3-days""",
        {
            ("/public/a", "index"): permission(2, until_recrawled=True),
            ("/news/2007/a", "index"): permission(4, until=END_OF_2007),
            ("/current-news/a", "index"): permission(6, until=THREE_DAYS),
            ("/news/2006/a", "index"): UNSTATED,
            ("/public/a", "preserve"): UNSTATED,
        },
    ),
    Example(
        "2.5.4.1",
        ("ACAP-32",),
        """\
ACAP-allow-preserve: /public/ time-limit=until-recrawled

ACAP-allow-preserve: /news/2007/ time-limit=until-2007-12-31

ACAP-allow-preserve: /current-news/ time-limit=3-days""",
        {
            ("/public/a", "preserve"): permission(2, until_recrawled=True),
            ("/news/2007/a", "preserve"): permission(4, until=END_OF_2007),
            ("/current-news/a", "preserve"): permission(6, until=THREE_DAYS),
            ("/public/a", "index"): UNSTATED,
        },
    ),
    Example(
        "2.5.5",
        ("ACAP-29", "ACAP-30"),
        "ACAP-allow-present: /public/",
        {
            ("/public/a", use): permission(2)
            for use in (
                "present",
                "present-original",
                "present-currentcopy",
                "present-oldcopy",
                "present-snippet",
                "present-thumbnail",
                "present-oldsnippet",
                "present-oldthumbnail",
                "present-link",
            )
        }
        | {("/a", "present"): UNSTATED, ("/public/a", "index"): UNSTATED},
    ),
    Example(
        "2.5.5.1.1",
        ("ACAP-29",),
        "ACAP-disallow-present-original: /",
        {
            ("/a", "present-original"): refusal(2),
            ("/a", "present"): UNSTATED,
            ("/a", "present-currentcopy"): UNSTATED,
        },
    ),
    Example(
        "2.5.5.1.5",
        ("ACAP-29",),
        "ACAP-allow-present-snippet: /public/\nACAP-disallow-present-thumbnail: /public/",
        {
            ("/public/a", "present-snippet"): permission(2),
            ("/public/a", "present-thumbnail"): refusal(3),
            ("/public/a", "present-oldthumbnail"): UNSTATED,
            ("/public/a", "present"): UNSTATED,
        },
    ),
    Example(
        "2.5.5.2.1",
        ("ACAP-32",),
        "ACAP-allow-present: /public/ time-limit=until-recrawled\n\n"
        "ACAP-allow-present-snippet: /news/2007/ time-limit=3-days",
        {
            ("/public/a", "present"): permission(2, until_recrawled=True),
            ("/public/a", "present-link"): permission(2, until_recrawled=True),
            ("/news/2007/a", "present-snippet"): permission(4, until=THREE_DAYS),
            ("/news/2007/a", "present"): UNSTATED,
        },
    ),
    Example(
        "2.5.5.2.3",
        ("ACAP-34",),
        "ACAP-allow-present-snippet: /news/ max-length=250-chars",
        {
            ("/news/a", "present-snippet"): permission(2, max_chars=250),
            ("/news/a", "present-oldsnippet"): UNSTATED,
        },
    ),
    Example(
        "2.5.5.2.4-annotation",
        ("ACAP-35",),
        "ACAP-allow-present: /public/ prohibited-modification=annotation",
        {
            ("/public/a", "present"): permission(2, prohibited_modifications=ANNOTATION),
            ("/public/a", "present-original"): permission(2, prohibited_modifications=ANNOTATION),
        },
    ),
    Example(
        "2.5.5.2.4-style",
        ("ACAP-35",),
        "ACAP-allow-present-currentcopy: /public/ prohibited-modification=style",
        {
            ("/public/a", "present-currentcopy"): permission(
                2, prohibited_modifications=frozenset({"style"})
            ),
            ("/public/a", "present-oldcopy"): UNSTATED,
        },
    ),
    Example(
        "2.5.5.2.4-two",
        ("ACAP-35",),
        "ACAP-allow-present-currentcopy: /public/ prohibited-modification=format "
        "prohibited-modification=translation",
        {
            ("/public/a", "present-currentcopy"): permission(
                2, prohibited_modifications=frozenset({"format", "translation"})
            )
        },
    ),
    Example(
        "2.5.5.2.6",
        ("ACAP-37",),
        "ACAP-allow-present-currentcopy: /public/ prohibited-context=within-user-frame",
        {
            ("/public/a", "present-currentcopy"): permission(
                2, prohibited_contexts=frozenset({"within-user-frame"})
            )
        },
    ),
    Example(
        "2.5.5.2.7",
        ("ACAP-37",),
        "ACAP-allow-present-original: /public/ required-context=within-original-frame",
        {
            ("/public/a", "present-original"): permission(
                2, required_contexts=frozenset({"within-original-frame"})
            )
        },
    ),
    Example(
        "2.5.6",
        ("ACAP-28",),
        "ACAP-disallow-other: /public/",
        {
            ("/public/a", use): refusal(2)
            for use in (
                "crawl",
                "follow",
                "index",
                "preserve",
                "present",
                "present-snippet",
                "present-link",
                "other",
            )
        }
        | {("/a", "crawl"): UNSTATED_CRAWL, ("/a", "index"): UNSTATED},
    ),
    Example(
        "2.5.6-explicitly-permitted",
        ("ACAP-28",),
        "ACAP-disallow-other: /public/\nACAP-allow-index: /",
        {
            ("/public/a", "index"): permission(3),
            ("/public/a", "preserve"): refusal(2),
            ("/a", "preserve"): UNSTATED,
        },
    ),
    Example(
        "2.7.1",
        ("ACAP-40",),
        "ACAP-allow-(my-present-snippet): /public/",
        {
            ("/public/a", "present-snippet"): permission(
                3, max_chars=250, until=datetime(2007, 12, 6, 12, tzinfo=UTC)
            ),
            ("/public/a", "present"): UNSTATED,
        },
        definitions="ACAP-qualified-usage: my-present-snippet present-snippet time-limit=5-days "
        "max-length=250-chars",
    ),
    Example(
        "2.7.2",
        ("ACAP-41",),
        "ACAP-allow-(my-default-present): /public/",
        {
            ("/public/a", "present-snippet"): permission(4, max_words=30),
            ("/public/a", "present-thumbnail"): permission(4),
            ("/public/a", "present"): UNSTATED,
        },
        # The text prints the second definition first and says that it stands earlier in the file.
        definitions="""\
ACAP-qualified-usage: present-30-word-snippet present-snippet max-length=30-words
ACAP-composite-usage: my-default-present (present-30-word-snippet) present-thumbnail""",
    ),
    Example(
        "2.7.3",
        ("ACAP-22", "ACAP-23"),
        "ACAP-disallow-index: the-acap:resource-set:images",
        {
            ("/a.gif", "index"): refusal(3),
            ("/deep/b.JPG", "index"): refusal(3),
            ("/c.png?size=2", "index"): refusal(3),
            ("/a.html", "index"): UNSTATED,
        },
        definitions="ACAP-resource-set: images *.gif *.jpg *.png",
    ),
]


@pytest.mark.parametrize(
    "example",
    one_in(
        2,
        [
            pytest.param(example, id=example.section, marks=pytest.mark.requirement(*example.rows))
            for example in EXAMPLES
        ],
    ),
)
def test_example(example: Example) -> None:
    site = reading(
        "\n".join(filter(None, (example.definitions, "ACAP-crawler: *", example.fields)))
    )
    assert site.findings == ()
    assert {(path, use): answer_of(site, path, use) for path, use in example.want} == example.want


ABSTRACT = '<p class="abstract">First</p>'
ARTICLE = f'<html><body>{ABSTRACT}<p class="abstract">Second</p><p>Rest</p></body></html>'.encode()


@pytest.mark.requirement("ACAP-33")
def test_2_5_3_2_index_by_another_resource() -> None:
    site = reading(
        "ACAP-crawler: *\nACAP-allow-index: /page-image.pdf "
        "must-use-resource=/page-image-index.txt\n"
    )
    index = f"{ORIGIN}/page-image-index.txt"
    assert answer_of(site, "/page-image.pdf", "index") == refusal(2, "acap.no-arrangement")
    assert site.page(COMITY, f"{ORIGIN}/page-image.pdf", now=NOW).required_resources == ()
    assert site.page(ARRANGED, f"{ORIGIN}/page-image.pdf", now=NOW).required_resources == (index,)
    terms = Fetched(status=200, headers=((b"content-type", b"text/plain"),), body=b"terms to index")
    assert answer_of(
        site, "/page-image.pdf", "index", ARRANGED, resources={index: terms}
    ) == permission(2, must_use=(Resource(uri=index, content="terms to index"),))
    assert answer_of(site, "/page-image.pdf", "index", ARRANGED) == refusal(2, "acap.resource")


@pytest.mark.requirement("ACAP-33")
def test_2_5_3_2_index_by_the_first_abstract() -> None:
    site = reading(
        "ACAP-crawler: *\nACAP-allow-index: /articles/ "
        "must-use-resource=the-acap:extract:class:abstract\n"
    )
    assert answer_of(site, "/articles/a", "index", body=ARTICLE) == refusal(
        2, "acap.no-arrangement"
    )
    assert answer_of(site, "/articles/a", "index", ARRANGED, body=ARTICLE) == permission(
        2, must_use=(Resource(extract=Extract(kind="class", name="abstract"), content=ABSTRACT),)
    )
    assert (
        site.page(ARRANGED, f"{ORIGIN}/articles/a", now=NOW, body=ARTICLE).required_resources == ()
    )
    assert answer_of(site, "/a", "index", ARRANGED, body=ARTICLE) == UNSTATED


@pytest.mark.requirement("ACAP-33")
def test_2_5_5_2_2_the_cover_as_the_thumbnail_of_every_page() -> None:
    site = reading(
        "ACAP-crawler: *\nACAP-allow-present-thumbnail: /book/pages/ "
        "must-use-resource=/book/cover.jpg\n"
    )
    cover = f"{ORIGIN}/book/cover.jpg"
    image = Fetched(status=200, headers=((b"content-type", b"image/jpeg"),), body=b"\xff\xd8\xff")
    for path in ("/book/pages/1", "/book/pages/2"):
        assert answer_of(site, path, "present-thumbnail") == refusal(2, "acap.no-arrangement")
        assert answer_of(
            site, path, "present-thumbnail", ARRANGED, resources={cover: image}
        ) == permission(2, must_use=(Resource(uri=cover),))
    assert answer_of(site, "/book/pages/1", "present-snippet", ARRANGED) == UNSTATED


@pytest.mark.requirement("ACAP-43")
def test_2_6_take_down_of_a_story() -> None:
    site = reading("ACAP-crawler: *\nACAP-request-take-down: /news/bad-story.htm\n")
    assert site.findings == ()
    for agent, arranged in ((COMITY, False), (ARRANGED, True)):
        [request] = site.requests(agent)
        assert (request.action, request.url, request.arranged) == (
            "take-down",
            f"{ORIGIN}/news/bad-story.htm",
            arranged,
        )
        assert (request.reason.source.url, request.reason.source.line) == (ROBOTS, 2)
    # it prohibits nothing by itself
    assert answer_of(site, "/news/bad-story.htm", "crawl") == UNSTATED_CRAWL


@pytest.mark.requirement("ACAP-6", "ACAP-7")
@pytest.mark.parametrize("first", ["", "##ACAP version=1.0\n"], ids=["without-a-version", "2.9.3"])
def test_2_9_1_conventional_records_are_ignored(first: str) -> None:
    conventional = "User-agent: *\nDisallow: /\n\n"
    acap = "ACAP-crawler: *\nACAP-disallow-crawl: /private/\n"
    lines = len(first.splitlines())
    site = reading(f"{first}{conventional}{acap}")
    assert answer_of(site, "/a", "crawl") == refusal(lines + 2, "robots.disallow")
    site = reading(f"{first}{conventional}ACAP-ignore-conventional-records\n{acap}")
    assert site.findings == ()
    assert answer_of(site, "/a", "crawl").verdict is Verdict.ALLOW
    assert answer_of(site, "/private/a", "crawl") == refusal(lines + 6)
