"""Tags in a feed beside those of items: COMITY_TAG = "sidecar:FILE" (docs/items.md)."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any, Self

from scrapy.exporters import BaseItemExporter
from scrapy.utils.serialize import ScrapyJSONEncoder

from comity.crawler.crawl import Crawl
from comity.crawler.scrapy_internals import fields_of
from comity.dataset.sidecar import row
from comity.gate.request.referrals import current_page

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from comity.crawler.item_tags import ItemTags


class SidecarExporter(BaseItemExporter):
    """Writes a row for each item, under the id of its record in a feed of JSON lines.

    It comes before other feeds and writes at once, so that a killed process leaves no item without
    its row."""

    def __init__(self, file: IO[bytes], *, tags: ItemTags, **options: Any) -> None:
        super().__init__(dont_fail=True, **options)
        self._file = file
        self._tags = tags
        self._encoder: json.JSONEncoder = ScrapyJSONEncoder()

    @classmethod
    def from_crawler(cls, crawler: Crawler, file: IO[bytes], **options: Any) -> Self:
        return cls(file, tags=Crawl.of(crawler).tags, **options)

    def start_exporting(self) -> None:
        """Begin behind the present rows. A killed process may have left half a row."""
        self._file.write(b"\n")

    def export_item(self, item: Any) -> None:
        tag, page = self._tags.tag_of(item), current_page.get()
        if tag is not None:
            fields = json.loads(self._encoder.encode(fields_of(self, item)))
            self._file.write(row(fields, page.url if page else "", tag))
            self._file.flush()
