"""JSON Lines of COMITY_ITEMS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from scrapy.exporters import JsonLinesItemExporter

from comity.crawler.feeds.responses import FetchFields
from comity.crawler.scrapy_internals import fields_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class LinesExporter(JsonLinesItemExporter):
    """Scrapy's JSON Lines in UTF-8, with the fields about the fetch of each item's page."""

    def __init__(self, file: Any, *, fetch_fields: FetchFields, **options: Any) -> None:
        super().__init__(file, **options)
        self._fetch_fields = fetch_fields

    @classmethod
    def from_crawler(cls, crawler: Crawler, file: Any, **options: Any) -> Self:
        return cls(file, fetch_fields=FetchFields(crawler), **options)

    def export_item(self, item: Any) -> None:
        record = fields_of(self, item) | self._fetch_fields(item)
        # A lone surrogate becomes `\udc80`, which is an escape of JSON.
        self.file.write(self.encoder.encode(record).encode("utf-8", "backslashreplace") + b"\n")
