"""Properties of every robots.txt."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Site, Verdict

AGENT = Agent("examplebot")
EOLS = [b"\n", b"\r", b"\r\n"]

RECORDS = b"""User-agent: *
User-agent: examplebot
User-agent: other
User-agent other
Disallow: /a
Disallow: /*b$
Disallow:
Disallow: /
Disalow: /c
Allow: /a/b
Allow: /
Crawl-delay: 2
Sitemap: /s
X-Unknown: 1
prose"""
records = st.sampled_from(RECORDS.split(b"\n"))
files = st.lists(records, max_size=12).map(b"\n".join)
paths = st.sampled_from(["/", "/a", "/a/b", "/ab", "/c", "/x?b"])


def site(body: bytes) -> Site:
    return Site.from_files("https://example.com", {"/robots.txt": body})


def access(body: bytes, path: str) -> Verdict:
    return site(body).access(AGENT, "https://example.com" + path).verdict


@pytest.mark.requirement("SEC-1")
@given(
    st.binary(max_size=2_000)
    | st.lists(records | st.binary(max_size=30), max_size=20).map(b"\n".join),
    st.text(max_size=20),
)
def test_nothing_raises(body: bytes, path: str) -> None:
    found = site(body)
    assert found.access(AGENT, "https://example.com/" + path).reasons
    assert found.page(AGENT, "https://example.com/" + path).permissions["schema"] == 1
    assert isinstance(found.findings, tuple)
    assert isinstance(found.sitemaps, tuple)
    rules = found.rates(AGENT)
    assert rules is None or rules.crawl_delay is None or rules.crawl_delay >= 0


@pytest.mark.requirement("RFC-1")
@given(files, paths, st.sampled_from(EOLS), st.booleans())
def test_comments_blank_lines_line_ends_and_a_bom_change_nothing(
    body: bytes, path: str, eol: bytes, bom: bool
) -> None:
    dressed = (b"\xef\xbb\xbf" if bom else b"") + re.sub(
        rb"\n", b" # x" + eol + eol + b"  # y: z" + eol, body
    )
    assert access(dressed, path) is access(body, path)


@pytest.mark.requirement("RFC-3")
@given(files, paths, st.sampled_from([b"/", b"/a", b"/*b$"]))
def test_a_refusal_more_never_allows(body: bytes, path: str, pattern: bytes) -> None:
    """The refusal is added to the chosen group. A new group would replace that for `*`."""
    with_own = body + b"\nUser-agent: examplebot\nDisallow:"
    more = with_own + b"\nDisallow: " + pattern
    if access(with_own, path) is Verdict.DENY:
        assert access(more, path) is Verdict.DENY


@pytest.mark.requirement("WHY-1")
@given(files, paths)
def test_the_reason_is_the_line(body: bytes, path: str) -> None:
    found = site(body)
    decision = found.access(AGENT, "https://example.com" + path)
    source = decision.reasons[0].source
    if source.line:
        assert body.split(b"\n")[source.line - 1].decode() == source.text
        assert found.considered(AGENT, "https://example.com" + path)[0] == decision.reasons[0]


@pytest.mark.requirement("RFC-4")
@given(files)
def test_robots_txt_itself_is_always_allowed(body: bytes) -> None:
    decision = site(body).access(AGENT, "https://example.com/robots.txt")
    assert (decision.verdict, decision.reasons[0].rule) == (Verdict.ALLOW, "robots.self")
