"""URLs that a page links only with rel=nofollow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.document.document import Content
from comity.policies.document.nofollow import canonical, rel_nofollow

PAGE = "http://example.com/d/page"
HTML = b"text/html; charset=utf-8"


def nofollow_urls(body: bytes, content_type: bytes = HTML) -> set[str]:
    urls = rel_nofollow(Content([(b"Content-Type", content_type)], body), PAGE)
    return {url.removeprefix("http://example.com") for url in urls}


@pytest.mark.requirement("MEET-2")
@pytest.mark.parametrize(
    ("body", "urls"),
    [
        ('<a href="a" rel="nofollow">', {"/d/a"}),
        ('<A HREF="/a" REL="NoFollow">', {"/a"}),
        ('<a href="/a" rel="noopener\tnofollow ugc">', {"/a"}),
        ('<a href="/a" rel="nofollow,noopener">', {"/a"}),
        ('<a href="/a" rel="nof&#111;llow">', {"/a"}),
        ('<a href="/a" rel="ugc sponsored">nofollow</a>', set()),
        ('<a href="/a" rel="dontnofollow">', set()),
        ('<area href="/a" rel="nofollow">', {"/a"}),
        ('<link href="/a" rel="nofollow"><a rel="nofollow">', set()),
        ('<a href=" /a#top " rel="nofollow">', {"/a"}),
        ('<a href="?b=2&amp;a=1" rel="nofollow">', {"/d/page?a=1&b=2"}),
        ('<a href="/a" rel="nofollow"><a href="/a#top">', set()),
        ('<a href="/a"><a href="/a" rel="nofollow"><a href="/b" rel="nofollow">', {"/b"}),
        ('<base href="/e/"><a href="a" rel="nofollow"><a href="/d/a">', {"/e/a"}),
        ('<base href="http://[x/"><a href="a" rel="nofollow">', {"/d/a"}),
        (
            '<a href="http://[x" rel="nofollow"><a href="//example.org/a" rel="nofollow">',
            {"http://example.org/a"},
        ),
        ('<!-- <a href="/a" rel="nofollow"> -->', set()),
    ],
)
def test_links(body: str, urls: set[str]) -> None:
    assert nofollow_urls(body.encode()) == urls
    assert nofollow_urls(body.encode(), b"text/plain") == set()


def test_utf16() -> None:
    assert nofollow_urls(
        b"\xff\xfe" + '<a href="/a" rel="nofollow">'.encode("utf-16-le"), b"text/html"
    ) == {"/a"}


@pytest.mark.requirement("MEET-2")
@pytest.mark.parametrize(
    ("charset", "address", "urls"),
    [
        ("latin-1", "/ä?q=ä", {"/%C3%A4?q=%E4", "/%C3%A4?q=%C3%A4"}),
        # The encoding of the page cannot write it.
        ("latin-1", "/?q=&#26085;", {"/?q=%E6%97%A5"}),
        ("shift-jis", "/?q=日", {"/?q=%93%FA", "/?q=%E6%97%A5"}),
        ("utf-8", "/?q=日", {"/?q=%E6%97%A5"}),
    ],
)
def test_a_query_is_asked_for_in_the_encoding_of_the_page_or_in_utf8(
    charset: str, address: str, urls: set[str]
) -> None:
    body = f'<a href="{address}" rel="nofollow">'.encode(charset)
    assert nofollow_urls(body, f"text/html; charset={charset}".encode()) == urls


PIECES = st.sampled_from(
    [
        b"<a ",
        b"<base ",
        b"href=",
        b"rel=nofollow",
        b"//[",
        b"'",
        b">",
        b"\0",
        b"#",
        b"http:",
        b"\xff",
    ]
)
TYPES = st.sampled_from(
    [
        HTML,
        b"",
        b"text/html; charset=punycode",
        b"text/html; charset=utf-16",
        b"text/html; charset=shift-jis",
    ]
)


@given(body=st.lists(PIECES | st.binary(max_size=5)).map(b"".join), content_type=TYPES)
def test_no_page_raises(body: bytes, content_type: bytes) -> None:
    for url in rel_nofollow(Content([(b"Content-Type", content_type)], body + b" nofollow"), PAGE):
        assert canonical(url) == url
