"""Real robots.txt files with ACAP, against readings by hand.

The files are beside a checkout of the developers. Small files of our own show the same cases
everywhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from comity.policies import Agent, Site, Verdict
from comity.policies.formats.acap import parse

CORPUS = Path(__file__).parents[5] / "shared/corpus/acap"
ORIGIN = "https://example.com"

Crawl = dict[tuple[str, str], str]  # (agent, path) -> verdict, and the deciding lines


class File(NamedTuple):
    """The reading of one file.

    Agents are written as User-Agent strings: their token is the part before the slash.
    """

    name: str
    version: str
    records: list[tuple[list[str], int]]  # crawlers, number of fields
    findings: list[tuple[str, int]]  # rule, line
    crawl: Crawl


def crawls(site: Site, asked: Crawl) -> Crawl:
    found = {}
    for user_agent, path in asked:
        agent = Agent(user_agent.partition("/")[0], user_agent=user_agent)
        decision = site.access(agent, ORIGIN + path)
        lines = sorted({reason.source.line for reason in decision.reasons} - {0}) or [0]
        found[user_agent, path] = " ".join([decision.verdict.value, *map(str, lines)])
    return found


FILES = [
    File(
        "doi.org",
        "1.0",
        [(["*"], 9)],
        [],
        {
            ("comity", "/"): "allow 0",
            ("comity", "/drafts/a"): "deny 10 28",
            ("comity", "/Drafts/a"): "deny 28",  # ACAP's patterns do not tell cases apart
            ("comity", "/htdocs/9-98a"): "deny 7 22",
            ("Googlebot", "/gallery2/"): "deny 12 32",
        },
    ),
    File(
        "quotes.wsj.com",
        "",
        [(["*"], 21), (["MSNPTC/1.0"], 21)],
        [],
        {
            ("comity", "/"): "allow 0",
            ("comity", "/search?q=a"): "deny 13 57",
            ("comity", "/Search?q=a"): "deny 57",
            ("comity", "/Public/search/"): "deny 55",  # narrower than `/public/search*`
            ("comity", "/Public/searches"): "deny 56",
            ("comity", "/Articles/SB3"): "deny 62",
            ("MSNPTC/1.0", "/search?q=a"): "deny 35 80",
            ("MSNPTC/1.0", "/Search?q=a"): "deny 80",
            ("MSNPTC/2.0", "/Search?q=a"): "deny 57",  # its record names another version
            ("MSNPTC/1.0", "/"): "allow 0",
        },
    ),
    File(
        "the-acap.org.v1.1",
        "1.1",
        [(["*"], 1), (["*"], 9)],
        [],
        {
            ("comity", "/"): "allow 4 19",
            ("comity", "/ssl/a"): "deny 7 23",
            ("comity", "/SSL/a"): "deny 23",
            ("comity", "/cmsdesk/a"): "deny 33",
            ("comity", "/cmsdesk"): "allow 4 19",
            ("Googlebot", "/App_Data/a"): "deny 15 39",
        },
    ),
    File(
        "vulvodynia.pl",
        "1.0",
        [(["*"], 8)],
        [],
        {
            ("comity", "/"): "allow 0",
            ("comity", "/wp-admin/"): "deny 19",
            ("comity", "/wp-content/upload/a.png"): "allow 10 20",
            (
                "comity",
                "/wp-content/upload/a.js",
            ): "allow 10 20",  # its pattern is narrower than `/*.js` too
            ("comity", "/theme/a.js"): "deny 13",
            ("comity", "/author/a"): "deny 8",
            ("comity", "/blog/feed/"): "deny 5 16",
            ("Slurp", "/"): "deny 23",
            (
                "Slurp",
                "/wp-content/upload/a.png",
            ): "deny 23",  # the ACAP permission has another pattern
            ("Slurp", "/wp-admin/"): "deny 19 23",
            ("MJ12bot", "/"): "deny 98",
        },
    ),
    File(
        "www.independent.ie",
        "1.0",
        [(["*"], 19)],
        [],
        {
            ("comity", "/news"): "allow 0",
            ("comity", "/search/a"): "deny 81",
            ("comity", "/a.ece"): "deny 82",
            ("comity", "/a.ece?b"): "allow 0",
            ("comity", "/a?from=rss"): "deny 84",
            ("comity", "/a?START=10"): "deny 92",
            ("Googlebot", "/search/a"): "deny 7 81",
            (
                "Googlebot",
                "/Search/a",
            ): "deny 81",  # only the record for any crawler speaks, and it binds this one
            ("Bingbot", "/tablet/morning-edition/"): "deny 43 95",
            ("Mediapartners-Google", "/search/a"): "deny 81",
            ("ia_archiver", "/news"): "deny 70",
        },
    ),
    File(
        "www.rsc.org",
        "1.0",
        [(["gsa-crawler", "Guidebot"], 1), (["*"], 5)],
        [("acap.fused", 41)],
        {
            ("gsa-crawler", "/"): "deny 43",  # its conventional record allows it everything
            ("gsa-crawler", "/Labs/a"): "deny 43",
            ("Guidebot", "/"): "deny 9 43",
            ("comity", "/"): "allow 0",
            ("comity", "/Labs/a"): "deny 22 49",
            ("comity", "/labs/a"): "deny 49",
            ("comity", "/Publishing/EdSymp/"): "deny 19",
            ("comity", "/suppdata/a"): "allow 0",
            ("Slurp", "/suppdata/a"): "deny 73",  # a conventional record after those of ACAP
            ("Slurp", "/Labs/a"): "deny 49",
        },
    ),
    File(
        "www.supertecnicoatarde.com.br",
        "1.0",
        [(["*"], 1)],
        [],
        {
            ("comity", "/"): "allow 3 6",
            ("comity", "/a"): "allow 3 6",
            ("Googlebot", "/"): "allow 3 6",
        },
    ),
]


@pytest.mark.skipif(not CORPUS.exists(), reason="the real files are not here")
@pytest.mark.requirement(
    "ACAP-1",
    "ACAP-3",
    "ACAP-6",
    "ACAP-8",
    "ACAP-9",
    "ACAP-10",
    "ACAP-23",
    "ACAP-24",
    "ACAP-27",
    "ACAP-49",
)
@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_real_file(file: File) -> None:
    body = (CORPUS / f"{file.name}.txt").read_bytes()
    read = parse(body)
    assert (read.version, read.ignores_conventional) == (file.version, False)
    assert [(record.crawlers, len(record.fields)) for record in read.records] == file.records
    assert [(finding.rule, finding.line) for finding in read.findings] == file.findings
    site = Site.from_files(ORIGIN, {"/robots.txt": body})
    assert [
        (found.rule, found.line) for found in site.findings if found.rule.startswith("acap.")
    ] == file.findings
    assert crawls(site, file.crawl) == file.crawl
    for user_agent, path in file.crawl:
        page = site.page(Agent(user_agent.partition("/")[0], user_agent=user_agent), ORIGIN + path)
        told = [
            (page.uses[use].verdict, page.uses[use].stated)
            for use in ("index", "preserve", "present", "present-snippet")
        ]
        assert told == [(Verdict.DENY, False)] * 4  # they are about crawling only


@pytest.mark.skipif(not CORPUS.exists(), reason="the real files are not here")
def test_every_real_file_is_read() -> None:
    assert {path.stem for path in CORPUS.glob("*.txt")} == {file.name for file in FILES}


# The cases of the real files, each in a file of our own.

OWN = [
    File(
        # Two crawler lines with only comments between them begin one record. The converter meant
        # two: one without fields for a crawler that may do anything, and one for a crawler that may
        # do nothing.
        "fused",
        "",
        [(["house-search", "nosy"], 1), (["*"], 1)],
        [("acap.fused", 9)],
        {
            ("house-search", "/a"): "deny 11",
            ("nosy", "/a"): "deny 5 11",
            ("comity", "/a"): "allow 0",
            ("comity", "/labs/a"): "deny 13",
            ("slow", "/data/a"): "deny 15",
            ("slow", "/labs/a"): "deny 13",
        },
    ),
    File(
        "converted",
        "1.0",
        [(["*"], 2)],
        [],
        {
            ("comity", "/a"): "allow 0",
            ("comity", "/drafts/a"): "deny 3 7",
            ("comity", "/Old/a"): "deny 9",
        },
    ),
    File(
        "any-crawler-twice",
        "1.1",
        [(["*"], 1), (["*"], 2)],
        [],
        {
            ("comity", "/a"): "allow 3 7",
            ("comity", "/SSL/a"): "deny 11",
            ("comity", "/ssl/a"): "deny 5 11",
        },
    ),
    File(
        "version-in-a-name",
        "",
        [(["*"], 1), (["photobot/1.0"], 1)],
        [],
        {
            ("photobot/1.0", "/a"): "allow 4",
            ("photobot/1.1", "/a"): "deny 2",
            ("photobot", "/a"): "deny 2",
            ("comity", "/a"): "deny 2",
        },
    ),
    File(
        "narrower-permission",
        "",
        [(["*"], 3)],
        [],
        {
            ("comity", "/wp-admin/"): "deny 5",
            ("comity", "/wp-content/a.js"): "allow 2 6",
            ("comity", "/a.js"): "deny 4",
            ("slurp", "/wp-content/a.js"): "deny 8",
            ("slurp", "/wp-admin/"): "deny 5 8",
        },
    ),
    File(
        "any-crawler-binds-all",
        "",
        [(["*"], 3)],
        [],
        {
            ("comity", "/search/a"): "deny 8",
            ("bigbot", "/search/a"): "deny 2 8",
            ("bigbot", "/a?from=rss"): "deny 9",
            ("comity", "/a.asp"): "deny 10",
            ("comity", "/a.asp?b"): "allow 0",
        },
    ),
]
TEXTS = {
    "fused": """\
# our own search
User-agent: house-search
Disallow:
User-agent: nosy
Disallow: /
# our own search
ACAP-crawler: house-search
# nosy is kept out
ACAP-crawler: nosy
# User-agent: nosy
ACAP-disallow-crawl: /
ACAP-crawler: *
ACAP-disallow-crawl: /labs/
User-agent: slow
Disallow: /data/
""",
    "converted": """\
##ACAP version=1.0
User-agent: *
Disallow: /drafts/
Disallow: /old/
ACAP-crawler: *
# User-agent: *
ACAP-disallow-crawl: /drafts/
# Disallow: /drafts/
ACAP-disallow-crawl: /old/
# Disallow: /old/
""",
    "any-crawler-twice": """\
##ACAP version=1.1
User-agent:*
Allow:/
User-agent:*
Disallow: /ssl/
ACAP-crawler: *
ACAP-allow-crawl: /
#   Allow: /
ACAP-crawler: *
#   User-agent: *
ACAP-disallow-crawl:  /ssl/
ACAP-disallow-crawl:  /App_*/
""",
    "version-in-a-name": """\
ACAP-crawler: *
ACAP-disallow-crawl: /
ACAP-crawler: photobot/1.0
ACAP-allow-crawl: /
""",
    "narrower-permission": """\
User-agent: *
Allow: /wp-content
ACAP-crawler: *
ACAP-disallow-crawl: /*.js
ACAP-disallow-crawl: /wp-
ACAP-allow-crawl: /wp-content
user-agent: slurp
disallow: /
""",
    "any-crawler-binds-all": """\
User-agent: bigbot
Disallow: /search/
User-agent: *
Disallow:

Sitemap: https://example.com/sitemap.xml
ACAP-crawler: *
ACAP-disallow-crawl: /search/
ACAP-disallow-crawl: /*from=*
ACAP-disallow-crawl: /*.asp$
""",
}


@pytest.mark.requirement(
    "ACAP-1",
    "ACAP-3",
    "ACAP-6",
    "ACAP-8",
    "ACAP-9",
    "ACAP-10",
    "ACAP-23",
    "ACAP-24",
    "ACAP-27",
    "ACAP-49",
)
@pytest.mark.parametrize("file", OWN, ids=[file.name for file in OWN])
def test_own_file(file: File) -> None:
    read = parse(TEXTS[file.name].encode())
    assert read.version == file.version
    assert [(record.crawlers, len(record.fields)) for record in read.records] == file.records
    assert [(finding.rule, finding.line) for finding in read.findings] == file.findings
    assert (
        crawls(Site.from_files(ORIGIN, {"/robots.txt": TEXTS[file.name].encode()}), file.crawl)
        == file.crawl
    )


@pytest.mark.requirement("ACAP-3")
@pytest.mark.parametrize(
    "between", ["", "\n# a comment\n", "\r\n\r\n"], ids=["next-line", "comment", "blank"]
)
def test_crawler_lines_without_a_field_between_them_are_one_record(between: str) -> None:
    text = f"ACAP-crawler: one\n{between}ACAP-crawler: two\nACAP-disallow-crawl: /\n"
    site = Site.from_files(ORIGIN, {"/robots.txt": text.encode()})
    for token in ("one", "two"):
        assert site.access(Agent(token), f"{ORIGIN}/a").verdict is Verdict.DENY
    assert [found.rule for found in site.findings] == (["acap.fused"] if between else [])
