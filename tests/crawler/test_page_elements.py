"""What a spider is told of the elements of its response; of crawls in tests/live/test_spider_elements.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Field, Item
from scrapy.http import HtmlResponse, JsonResponse, TextResponse

from comity.crawler import elements
from comity.policies import Agent, Page, Site, Verdict

ORIGIN = "https://example.com"
URL = f"{ORIGIN}/news/1.html"
BODY = b"<!doctype html><html><head><title>Title</title></head><body><main><p>free</p><p class=q>quoted</p></main></body></html>"
USES = ("train", "index")
QUOTED = "User-agent: *\n  Path: /news/ html\n    Element: .q\n      Disallow: Train\n"
WHOLE = "User-agent: *\n  Path: /news/ html\n    Element: *\n      Disallow: Train\n"


def response_of(
    ai: str = "",
    *,
    kind: type[TextResponse] = HtmlResponse,
    media_type: str = "text/html",
    body: bytes = BODY,
) -> Any:
    """One that came through a crawl. `ai`: the site's ai.txt; "": it has none."""
    agent = Agent("testbot", uses=USES, defaults=dict.fromkeys(USES, Verdict.ALLOW))
    response = kind(URL, headers={"Content-Type": media_type}, body=body, encoding="utf-8")
    site = Site.from_files(ORIGIN, {"/ai.txt": ai.encode()} if ai else {})
    page = site.page(agent, URL, headers=[(b"Content-Type", media_type.encode())], body=body)
    crawled(response, page)
    return response


def crawled(response: Any, page: Page | None) -> None:
    """`page`: what the crawl knows of this response, and of no other; None: nothing."""
    pages = {response: page}
    responses: Any = SimpleNamespace(page_now=pages.__getitem__)
    elements.register(response, responses)


@pytest.mark.requirement("AIT-7", "MEET-5")
@pytest.mark.parametrize(
    ("ai", "selector", "use", "is_permitted", "covering"),
    [
        (QUOTED, ".q", "train", False, [".q"]),
        (QUOTED, "main", "train", False, [".q"]),
        (QUOTED, "p:first-child", "train", True, []),
        (QUOTED, ".q", "index", True, [".q"]),
        (WHOLE, ".q", "train", False, ["*"]),
        (WHOLE, ".q", "index", True, ["*"]),
        (QUOTED.replace("Train", "Cite"), ".q", "train", True, [".q"]),
        ("", ".q", "train", True, []),
        ("User-agent: otherbot\n" + QUOTED.partition("\n")[2], ".q", "train", True, []),
    ],
)
def test_what_may_be_used_of_a_page(
    ai: str, selector: str, use: str, is_permitted: bool, covering: list[str]
) -> None:
    response = response_of(ai)
    asked = elements.of(response)
    assert asked.permits(use, response.css(selector)) is is_permitted
    assert [element.selector for element in asked.covering(response.css(selector))] == covering
    assert {element.selector for element in asked} >= set(covering)


@pytest.mark.requirement("AIT-7", "MEET-5")
def test_what_nobody_finds_in_the_page_is_not_permitted() -> None:
    """Where something of it is refused."""
    response = response_of(QUOTED)
    assert not elements.of(response).permits("train", "made up")
    assert elements.of(response).permits("train", "free")
    assert elements.of(response_of(QUOTED.replace("Train", "Cite"))).permits("train", "made up")


@pytest.mark.requirement("AIT-7", "MEET-5")
def test_of_a_page_that_nobody_knows_nothing_is_permitted() -> None:
    response = HtmlResponse(URL, body=BODY)
    crawled(response, None)
    asked = elements.of(response)
    assert not asked.permits("train", response.css("p"))
    assert (list(asked), asked.covering(response.css("p"))) == ([], [])
    assert elements.text(response) == "free\nquoted"


@pytest.mark.requirement("MEET-5")
def test_a_response_that_did_not_come_through_a_crawl_is_a_mistake() -> None:
    response = HtmlResponse(URL, body=BODY)
    with pytest.raises(LookupError, match="did not come through comity"):
        elements.of(response)
    assert elements.text(response) == "free\nquoted"


@pytest.mark.requirement("AIT-7", "MEET-5")
@pytest.mark.parametrize("ai", ["", QUOTED, WHOLE])
def test_the_main_text_is_the_same_whatever_the_rules(ai: str) -> None:
    assert elements.text(response_of(ai)) == "free\nquoted"


@pytest.mark.requirement("AIT-7", "MEET-5")
def test_the_main_text_is_that_of_the_page_whose_elements_the_tag_knows() -> None:
    """As browsers read it (HTML, section 13.2.6.1: what stands in a table for no cell comes before the table)."""
    body = b"<!doctype html><title>t</title><main><table><tr><td class=q>quoted</td></tr>free</table></main>"
    assert elements.text(response_of(QUOTED, body=body)) == "free\nquoted"


@pytest.mark.requirement("AIT-7", "MEET-5")
def test_a_document_that_is_no_html_has_no_main_text() -> None:
    """Where a server calls HTML something else, it has, unless rules speak of it: nobody could tell where elements are in it."""
    for kind in (TextResponse, JsonResponse):
        for ai in (QUOTED.replace("html", "json").replace(".q", "q"), ""):
            assert (
                elements.text(
                    response_of(
                        ai, kind=kind, media_type="application/json", body=b'{"q": "quoted"}'
                    )
                )
                == ""
            )
    for ai, text in ((QUOTED.replace("html", "txt").replace(".q", "*"), ""), ("", "free")):
        assert (
            elements.text(response_of(ai, kind=TextResponse, media_type="text/plain", body=b"free"))
            == text
        )


class Quote(Item):
    text = Field(comity_css=".q")
    title = Field()
    nowhere = Field(comity_css="")


@pytest.mark.requirement("AIT-7", "MEET-5")
def test_fields_say_by_their_class_where_they_come_from() -> None:
    assert elements.declared_selectors(Quote(text="x", title="y", nowhere="z")) == {
        "text": ".q",
        "nowhere": "",
    }
    assert elements.declared_selectors({"text": "x"}) == {}
