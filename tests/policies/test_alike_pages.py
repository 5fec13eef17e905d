"""Pages of a site of which the same is said share what is decided, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Site, Verdict

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ORIGIN = "https://example.com"
AGENT = Agent("examplebot", uses=("train", "search", "index"))
ROBOTS = """User-agent: *
Content-Usage: train-ai=n
Content-Usage: /open train-ai=y, search=y
Content-Signal: search=yes, ai-train=no
Disallow: /closed
Allow: /
"""
FILES = [
    {},
    {"/robots.txt": b"User-agent: *\nDisallow: /closed\n"},
    {"/robots.txt": ROBOTS.encode()},
    {"/robots.txt": ROBOTS.encode(), "/.well-known/tdmrep.json": b'[{"location": "/open*", "tdm-reservation": 1}]'},
    {"/robots.txt": b"User-agent: *\nusage: ai=n\nDisallow: /closed", "/ai.txt": b"User-Agent: *\nDisallow: *.pdf\n"},
    {"/robots.txt": b"ACAP-crawler: *\nACAP-allow-index: /open time-limit=30-days\n"},
]
PATHS = ["/", "/open", "/open/1", "/open/a.pdf", "/closed", "/closed/../open", "/x;y", "/open?q"]
TYPES = [b"text/html", b"image/png", b"application/pdf"]
FIELDS = [(), ((b"X-Robots-Tag", b"noai"),), ((b"tdm-reservation", b"0"),)]
BODIES = [b"", b"<p>text", b'<meta name="robots" content="noindex, noimageindex">', b"<p data-nosnippet>text"]

pages = st.tuples(st.sampled_from(PATHS), st.sampled_from(TYPES), st.sampled_from(FIELDS), st.sampled_from(BODIES))


def outcome(site: Site, asked: tuple[Any, ...]) -> tuple[object, ...]:
    path, media_type, fields, body = asked
    page = site.page(AGENT, ORIGIN + path, headers=((b"Content-Type", media_type), *fields), body=body, now=NOW)
    uses = {use: page.uses[use] for use in (*AGENT.uses, "crawl", "follow", "preserve")}
    embedded = {use: page.embedded[use] for use in uses}
    return page.url, uses, embedded, page.permissions, page.findings, page.redacted(["train"])


@pytest.mark.requirement("WHY-1")
@given(st.sampled_from(FILES), st.lists(pages, min_size=2, max_size=6))
def test_a_page_says_what_it_says_alone_whatever_was_asked_before(files: dict[str, bytes], asked: list[tuple[Any, ...]]) -> None:
    site = Site.from_files(ORIGIN, files)
    for one in asked:
        assert outcome(site, one) == outcome(Site.from_files(ORIGIN, files), one)


def test_whoever_changes_a_tag_changes_no_other() -> None:
    site = Site.from_files(ORIGIN, FILES[1])
    first, second = (site.page(AGENT, f"{ORIGIN}/{number}") for number in range(2))
    expected = site.page(AGENT, f"{ORIGIN}/3").permissions
    for tag in (first.permissions, second.tag_of({}, {})):
        tag["uses"]["train"]["verdict"] = "allow"
        tag["reasons"].clear()
    assert second.permissions == second.tag_of({}, {}) == site.page(AGENT, f"{ORIGIN}/2").permissions == expected


def test_other_declarations_get_other_answers() -> None:
    site, url = Site.from_files(ORIGIN, FILES[2]), f"{ORIGIN}/open"
    other = Agent("examplebot", uses=("train",), defaults={"index": Verdict.ALLOW})
    for agent in (AGENT, other, AGENT):
        assert site.page(agent, url).permissions == Site.from_files(ORIGIN, FILES[2]).page(agent, url).permissions
