"""The items of pages, for the ready spiders."""

from __future__ import annotations

import hashlib

import pytest
from lxml import etree  # type: ignore[import-untyped]  # it ships no types
from parsel import Selector
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from comity.dataset.tagging.page_fields import title
from comity.policies.document.main_text import main_text
from comity.spiders.pages import page_item

TEXTS = [
    pytest.param("<p>one</p><p>two</p>", "one\ntwo", id="a line a block"),
    pytest.param(
        "<p>a <b>bold</b>\n  <i>move</i></p>", "a bold move", id="inline elements and white space"
    ),
    pytest.param("<p>a<br>b", "a\nb", id="br"),
    pytest.param("<nav>menu</nav><main><p>text</main><footer>end", "text", id="main is preferred"),
    pytest.param("<div role=main>text</div><p>else", "text", id="role=main too"),
    pytest.param(
        "<div role=main>one<main>two</main>three</div>",
        "one\ntwo\nthree",
        id="main within main, each text once",
    ),
    pytest.param("<aside hidden><main>text</main></aside>", "text", id="main wherever it stands"),
    pytest.param(
        "<article>one<article>in it</article></article><article>two</article><p>x",
        "one\nin it\ntwo",
        id="articles",
    ),
    pytest.param(
        "<script>var a</script><style>p{}</style>text<noscript>no</noscript>", "text", id="no code"
    ),
    pytest.param(
        "<header>h</header><nav>n</nav>text<aside>a</aside><footer>f</footer>",
        "text",
        id="no boilerplate",
    ),
    pytest.param("<p hidden>not seen</p><p>seen", "seen", id="hidden"),
    pytest.param("a<!-- comment -->b<?pi x?>c", "abc", id="comments and instructions"),
    pytest.param("<nav>n</nav> tail stays", "tail stays", id="text after what is left out"),
    pytest.param("<main></main><p>body", "body", id="an empty main is none"),
    pytest.param("<table><tr><td>1<td>2</table>", "1\n2", id="cells"),
    pytest.param("<p>unclosed <b>bold<p>next", "unclosed bold\nnext", id="broken markup"),
    pytest.param("", "", id="nothing"),
]


@pytest.mark.parametrize(("html", "text"), TEXTS)
def test_main_text(html: str, text: str) -> None:
    assert main_text(Selector(text=f"<html><body>{html}</body></html>")) == text


@pytest.mark.requirement("SEC-1")
def test_deep_nesting_is_read() -> None:
    """A recursive parser would fail at a thousand levels."""
    body = innermost = etree.Element("body")
    for _ in range(5_000):
        innermost = etree.SubElement(innermost, "div")
    innermost.text = "deep"
    assert main_text(Selector(root=body, type="html")) == "deep"


@pytest.mark.parametrize(
    ("html", "want"),
    [
        ("<title> A \n title </title><h1>h</h1>", "A title"),
        ("<title></title><h1>Head<b>ing</b></h1>", "Heading"),
        ("<body><svg><title>drawing</title></svg>", ""),
    ],
)
def test_title(html: str, want: str) -> None:
    assert title(Selector(text=html)) == want


def test_an_item_of_a_redirected_page() -> None:
    body = (
        b'<title>T</title><a href="/a#x">1</a><a href="/a">2</a><a href="mailto:m@example.com">'
        b'3</a><a href="http://[x">4</a>'
    )
    request = Request(
        "https://example.com/new", meta={"redirect_urls": ["https://example.com/old"]}
    )
    response = HtmlResponse(
        "https://example.com/new", body=body, headers={"Content-Type": "text/html"}, request=request
    )
    item = page_item(response)
    assert (item.url, item.final_url) == ("https://example.com/old", "https://example.com/new")
    assert item.links == ["https://example.com/a"]
    assert item.sha256 == hashlib.sha256(body).hexdigest()
    assert item.html is None
    assert page_item(response, html=True).html == body.decode()


def test_what_is_no_html_has_no_text() -> None:
    request = Request("https://example.com/a.pdf")
    response = Response(
        "https://example.com/a.pdf",
        body=b"%PDF",
        headers={"Content-Type": "application/pdf"},
        request=request,
    )
    item = page_item(response, html=True)
    assert (item.content_type, item.title, item.text, item.links, item.html) == (
        "application/pdf",
        "",
        "",
        [],
        None,
    )
