"""The site's statements on single elements of a response, for spiders:

from comity.crawler import elements

elements.text(response)                          the main text
found = elements.of(response)
found.permits("train", response.css("p.quote"))  may it be used in this way?
found.covering(response.css("p.quote"))          the elements of ai.txt that it touches, with their guidelines"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from itemadapter import ItemAdapter
from scrapy.http import HtmlResponse, Response, TextResponse

from comity.policies import Page, Verdict
from comity.policies.document.main_text import main_text
from comity.policies.elements.rules import Element

if TYPE_CHECKING:
    from comity.gate.pages.responses import ResponsePages

CSS = "comity_css"  # in the metadata of an item's field: the selector that it is taken with; "": from no element

_responses: WeakKeyDictionary[Response, ResponsePages] = WeakKeyDictionary()


class Elements:
    """The elements of one page for which something else holds."""

    def __init__(self, page: Page | None) -> None:
        self._page = page

    def __iter__(self) -> Iterator[Element]:
        """The page as a whole is among them where rules name that."""
        return iter(self._page.elements if self._page else ())

    def covering(self, selection: Any) -> list[Element]:
        """The elements that it is a part of, or that it has parts of.

        `selection`: what `response.css()` and `xpath()` give, single or as a list, or a value that was taken from the page. Of a
        value that is not found in the page nobody can tell: every element for which something is refused covers it."""
        rules = self._page.element_rules if self._page else None
        return rules.covering(selection) if rules else []

    def permits(self, use: str, selection: Any) -> bool:
        """True where neither the page as a whole nor an element that covers the selection refuses the use."""
        if self._page is None or self._page.uses[use].verdict is Verdict.DENY:
            return False
        rules = self._page.element_rules
        return (
            rules is None
            or not self._page.refusable([use])
            or rules.permits(use, rules.covering(selection))
        )


def of(response: Response) -> Elements:
    """LookupError where the response did not come through a crawl with comity's downloader middleware."""
    if response not in _responses:
        raise LookupError(
            f"{response} did not come through comity: is its downloader middleware on?"
        )
    return Elements(_responses[response].page_now(response))


def text(response: TextResponse, extract: Callable[[str], str] | None = None) -> str:
    """The main text of an HTML page, as the ready spiders take it. Where an item has this text in a field, its tag says to the
    character where elements are in it.

    `extract`: takes the text from the source of a page in another way. It never sees the elements that are refused for one of
    COMITY_USES, and the text counts as a part of each of the others, unless it is found outside of them."""
    if extract is not None:
        return _extracted(response, extract)
    page = None
    with suppress(LookupError):  # then the tag will find the same text
        page = _responses[response].page_now(response)
    rules = page.element_rules if page else None
    main = rules.text if rules else ""  # of what is no HTML but by its media type nothing is known
    if (
        main
        or (rules and not isinstance(response, HtmlResponse))
        or response.selector.type == "json"
    ):
        return main
    return main_text(response.selector)


def _extracted(response: TextResponse, extract: Callable[[str], str]) -> str:
    if response not in _responses:
        return extract(response.text)
    responses = _responses[response]
    try:
        page = responses.page_now(response)
    except LookupError:  # what is refused of it nobody knows yet
        return ""
    if page is None or page.element_rules is None:
        return extract(response.text)
    return page.element_rules.made_without(page.refusable(page.agent.uses), extract)


def register(response: Response, responses: ResponsePages) -> None:
    _responses[response] = responses


def declared(item: Any) -> dict[str, str]:
    """Field -> the selector that it is taken with, of those fields whose class says so."""
    adapter = ItemAdapter(item)
    metas: Iterator[tuple[str, Mapping[str, Any]]] = (
        (name, adapter.get_field_meta(name)) for name in adapter.field_names()
    )
    return {name: str(meta[CSS]) for name, meta in metas if CSS in meta}
