"""The response of each item, for exporters that write both. Scrapy hands them only the item."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self
from weakref import ref

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.http import Request, Response
from scrapy.settings import BaseSettings

from comity import extras
from comity.crawler.crawl import Crawl
from comity.dataset.records import ARRIVED_AT, REQUEST
from comity.gate.options import stop
from comity.gate.request.passage import Arrival, Passage
from comity.policies.syntax.printable import without_passwords

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

FETCHED = "comity_fetched"  # option of a feed: its items get FetchFields
NEEDS_RESPONSES = "{} EXTENSIONS to have comity.crawler.feeds.responses.ItemResponses at -1"
WARC_FORMATS = {"warc": False, "warc.gz": True, "gz": True}  # format -> is it compressed?


class ItemResponses:
    """Extension, active if a feed is a WARC file, and with COMITY_ITEMS.

    Its number must be below that of FeedExporter (0), so that it receives each item first."""

    def __init__(self, crawler: Crawler) -> None:
        feeds = crawler.settings.getdict("FEEDS")
        if not (_archives(crawler.settings) or any(FETCHED in feed for feed in feeds.values())):
            raise NotConfigured
        self._crawler = crawler
        # The responses of items that are exported now, by the id of the item.
        self._responses: dict[int, tuple[object, Response | None]] = {}
        crawler.signals.connect(self._note_arrival, signals.response_downloaded)
        crawler.signals.connect(self._note_item, signals.item_scraped)
        crawler.signals.connect(self._spider_opened, signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def __len__(self) -> int:
        """Return the number of items that are being exported now."""
        return len(self._responses)

    def response(self, item: object) -> Response | None:
        """Return the response of an item that is being exported; None if it came from none."""
        entry = self._responses.get(id(item))
        return entry[1] if entry else None

    def arrival(self, response: Response) -> Arrival:
        """Return the response's arrival. A response from a cache arrives at the first call."""
        if response.request is None:
            return _arriving_now(response)
        passage = self._passage(response.request)
        if passage.arrival is None:
            passage.arrival = _arriving_now(response)
        return passage.arrival

    def _note_arrival(self, response: Response, request: Request) -> None:
        self._passage(request).arrival = _arriving_now(response)

    def _passage(self, request: Request) -> Passage:
        return Crawl.of(self._crawler).passages[ref(request)]

    def _note_item(self, item: object, response: object) -> None:
        # In an errback `response` is a Failure.
        self._responses[id(item)] = (item, response if isinstance(response, Response) else None)

    def _spider_opened(self) -> None:
        """Let `_forget_item` receive each item after FeedExporter, which is connected by now."""
        self._crawler.signals.connect(self._forget_item, signals.item_scraped)

    def _forget_item(self, item: object) -> None:
        self._responses.pop(id(item), None)


class FetchFields:
    """The fields about the fetch of an item's page, for each item in COMITY_ITEMS.

    A page that was fetched twice has equal values of REQUEST, and different ones of ARRIVED_AT."""

    def __init__(self, crawler: Crawler) -> None:
        responses = crawler.get_extension(ItemResponses)
        if responses is None:
            raise NotConfigured(NEEDS_RESPONSES.format("COMITY_ITEMS needs"))
        self._responses = responses
        assert crawler.request_fingerprinter is not None
        self._fingerprint = crawler.request_fingerprinter.fingerprint

    def __call__(self, item: object) -> dict[str, str]:
        """Return the fields. {} for an item that came from no page."""
        response = self._responses.response(item)
        if response is None or response.request is None:
            return {}
        return {
            REQUEST: self._fingerprint(response.request).hex(),
            ARRIVED_AT: self._responses.arrival(response).received_at.isoformat(
                timespec="microseconds"
            ),
        }


def no_fields(_: object) -> dict[str, str]:
    """Return no fields, in the place of FetchFields for other feeds."""
    return {}


def _arriving_now(response: Response) -> Arrival:
    return Arrival(datetime.now(UTC), tuple(response.headers.getlist("Content-Encoding")))


def _archives(settings: BaseSettings) -> bool:
    """Return True if a feed is a WARC file.

    SettingsError: it cannot be written. Scrapy would crawl all the same."""
    formats = {
        without_passwords(str(uri)): str(feed.get("format", Path(str(uri)).suffix[1:]))
        for uri, feed in settings.getdict("FEEDS").items()
    }
    archives = {uri: name for uri, name in formats.items() if name in WARC_FORMATS}
    for uri, name in archives.items():
        if name == "gz" and not uri.endswith(".warc.gz"):
            stop(
                f"{uri}: this name does not tell the format of the compressed file:"
                " name it .warc.gz, or set the format"
            )
        if uri.endswith(".gz") != WARC_FORMATS[name] and "." in uri.rpartition("/")[2]:
            stop(
                f"{uri}: the format `{name}` does not fit the name: leave the format out,"
                " .warc and .warc.gz are known by their names"
            )
    if archives and extras.is_missing("warcio"):
        stop(extras.needs(next(iter(archives)), "warcio", "warc"))
    return bool(archives)
