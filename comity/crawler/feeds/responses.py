"""The response of each item, for exporters that write both: Scrapy hands them the item alone."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self
from weakref import WeakKeyDictionary

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.http import Request, Response
from scrapy.settings import BaseSettings

from comity.gate.options import stop

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

WARC_FORMATS = {"warc": False, "warc.gz": True, "gz": True}  # whether they are compressed


class Arrival(NamedTuple):
    """The facts of a response's arrival, which nobody knows any more when its items are exported."""

    received_at: datetime
    encodings: tuple[
        bytes, ...
    ]  # of its content, as the server sent it: the values of Content-Encoding


class ItemResponses:
    """Extension, where a feed is a WARC file. It stands before FeedExporter (0), to hear of each item first."""

    def __init__(self, crawler: Crawler) -> None:
        if not _archives(crawler.settings):
            raise NotConfigured
        self._crawler = crawler
        self._arrivals: WeakKeyDictionary[Request, Arrival] = WeakKeyDictionary()
        self._responses: dict[
            int, tuple[object, Response | None]
        ] = {}  # by the id of the item; of those being exported now
        crawler.signals.connect(self._downloaded, signals.response_downloaded)
        crawler.signals.connect(self._scraped, signals.item_scraped)
        crawler.signals.connect(self._spider_opened, signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def __len__(self) -> int:
        """Items that are being exported now."""
        return len(self._responses)

    def response(self, item: object) -> Response | None:
        """The response that the item came from, while it is exported; None where it came from none."""
        entry = self._responses.get(id(item))
        return entry[1] if entry else None

    def arrival(self, response: Response) -> Arrival:
        """The response's arrival: now, where it came from a cache."""
        arrival = self._arrivals.get(response.request) if response.request else None
        return arrival or Arrival(
            datetime.now(UTC), tuple(response.headers.getlist("Content-Encoding"))
        )

    def _downloaded(self, response: Response, request: Request) -> None:
        self._arrivals[request] = Arrival(
            datetime.now(UTC), tuple(response.headers.getlist("Content-Encoding"))
        )

    def _scraped(self, item: object, response: object) -> None:
        self._responses[id(item)] = (
            item,
            response if isinstance(response, Response) else None,
        )  # of an errback: a Failure

    def _spider_opened(self) -> None:
        """FeedExporter listens by now: who comes after it hears of each item after it."""
        self._crawler.signals.connect(self._exported, signals.item_scraped)

    def _exported(self, item: object) -> None:
        self._responses.pop(id(item), None)


def _archives(settings: BaseSettings) -> bool:
    """True for a feed that is a WARC file. SettingsError for one that cannot be written: Scrapy would crawl all the same."""
    formats = {
        str(uri): str(feed.get("format", Path(str(uri)).suffix[1:]))
        for uri, feed in settings.getdict("FEEDS").items()
    }
    archives = {uri: name for uri, name in formats.items() if name in WARC_FORMATS}
    for uri, name in archives.items():
        if name == "gz" and not uri.endswith(".warc.gz"):
            stop(
                f"{uri}: its name does not say what is compressed: of compressed files, only .warc.gz is known by its name"
            )
        if uri.endswith(".gz") != WARC_FORMATS[name] and "." in uri.rpartition("/")[2]:
            stop(
                f"{uri}: the format `{name}` does not fit the name: leave it out, .warc and .warc.gz are known by their names"
            )
    if archives and find_spec("warcio") is None:
        stop(f"{next(iter(archives))}: warcio is not installed: pip install 'comity[warc]'")
    return bool(archives)
