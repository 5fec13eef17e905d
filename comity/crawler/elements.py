"""The site's statements on single elements of a response, for spiders:

from comity.crawler import elements

elements.text(response)                          the main text
found = elements.of(response)
found.permits("train", response.css("p.quote"))  may it be used in this way?
found.covering(response.css("p.quote"))          the elements of ai.txt that it touches, with
                                                 their guidelines"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import ref

from itemadapter import ItemAdapter
from parsel import Selector
from scrapy.http import HtmlResponse, JsonResponse, Response, TextResponse, XmlResponse

from comity.bounded import ByObject
from comity.policies import Page, Verdict
from comity.policies.document.main_text import main_text
from comity.policies.elements.rules import Element

if TYPE_CHECKING:
    from comity.gate.pages.responses import ResponsePages

# Key in the metadata of an item's field: the selector of the elements that the field is taken from;
# "" if the field is taken from no element.
CSS = "comity_css"

_responses: ByObject[Response, ResponsePages] = ByObject()


class Elements:
    """The elements of one page that have rules of their own."""

    def __init__(self, page: Page | None) -> None:
        self._page = page

    def __iter__(self) -> Iterator[Element]:
        """Yield the elements, among them the whole page if rules name it."""
        return iter(self._page.elements if self._page else ())

    def covering(self, selection: Any) -> list[Element]:
        """Return the elements that contain the selection, or a part of it.

        `selection`: a value of `response.css()` or `xpath()`, single or as a list, or a value that
        was taken from the page. A value that is not found in the page counts as covered by every
        element that has a refused use."""
        rules = self._page.element_rules if self._page else None
        return rules.covering(selection) if rules else []

    def permits(self, use: str, selection: Any) -> bool:
        """Return True if neither the page nor an element that covers the selection refuses this."""
        if self._page is None or self._page.uses[use].verdict is Verdict.DENY:
            return False
        rules = self._page.element_rules
        return (
            rules is None
            or not self._page.refusable([use])
            or rules.permits(use, rules.covering(selection))
        )


def of(response: Response) -> Elements:
    """Return the elements of a response that has rules for some of them.

    LookupError: the response did not come through a crawl with comity's downloader middleware."""
    if ref(response) not in _responses:
        raise LookupError(
            f"{response} did not come through comity: is its downloader middleware on?"
        )
    return Elements(_responses[ref(response)].page_now(response))


def text(response: TextResponse, extract: Callable[[str], str] | None = None) -> str:
    """Return the main text of an HTML page, as the ready spiders take it.

    If an item has this text in a field, its tag states the characters at which elements begin and
    end.

    `extract`: a function that extracts the text from the source of a page. It never sees the
    elements that are refused for one of COMITY_USES. The text counts as a part of each of the other
    elements, unless it is found outside of them."""
    if extract is not None:
        return _extract(response, extract)
    page = None
    with suppress(LookupError):  # without policies; the tag will find the same text
        page = _responses[ref(response)].page_now(response)
    rules = page.element_rules if page else None
    main = rules.text if rules else ""  # rules know the main text of HTML pages only
    if main or (rules and not isinstance(response, HtmlResponse)) or _is_json(response):
        return main
    return main_text(response.selector)


def _is_json(response: TextResponse) -> bool:
    """Return True if the page is a JSON document.

    `response.selector.type` says so since Scrapy 2.18 only."""
    if isinstance(response, HtmlResponse | XmlResponse):
        return False
    return isinstance(response, JsonResponse) or Selector(response.text).type == "json"


def _extract(response: TextResponse, extract: Callable[[str], str]) -> str:
    if ref(response) not in _responses:
        return extract(response.text)
    responses = _responses[ref(response)]
    try:
        page = responses.page_now(response)
    except LookupError:  # the refused elements are not known yet
        return ""
    if page is None or page.element_rules is None:
        return extract(response.text)
    return page.element_rules.made_without(page.refusable(page.agent.uses), extract)


def register(response: Response, responses: ResponsePages) -> None:
    _responses.put(response, responses)


def declared_selectors(item: Any) -> dict[str, str]:
    """Return the selectors of the fields whose class declares one, by field."""
    adapter = ItemAdapter(item)
    metas: Iterator[tuple[str, Mapping[str, Any]]] = (
        (name, adapter.get_field_meta(name)) for name in adapter.field_names()
    )
    return {name: str(meta[CSS]) for name, meta in metas if CSS in meta}
