"""Parquet files of a crawl: items and their tags in typed columns (docs/datasets.md)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from scrapy.exporters import BaseItemExporter
from scrapy.settings import BaseSettings
from scrapy.utils.serialize import ScrapyJSONEncoder
from w3lib.url import file_uri_to_path

from comity import extras
from comity.crawler.crawl import Crawl
from comity.crawler.feeds.responses import FetchFields, no_fields
from comity.crawler.scrapy_internals import fields_of
from comity.gate.options import stop
from comity.policies.syntax.printable import without_passwords

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from comity.dataset.files.columns.parquet import RowGroupWriter

BATCH = 200  # items that wait as values; then they wait as columns, for a row group
FORMAT = "parquet"


def check(settings: BaseSettings) -> None:
    """SettingsError: a feed cannot be written. Scrapy would crawl all the same."""
    for uri, feed in settings.getdict("FEEDS").items():
        if feed.get("format", Path(str(uri)).suffix[1:]) != FORMAT:
            continue
        if extras.is_missing("pyarrow"):
            stop(extras.needs(without_passwords(str(uri)), "pyarrow", "parquet"))
        parts = urlsplit(str(uri))
        path = Path(file_uri_to_path(str(uri)) if parts.scheme == "file" else str(uri))
        if (
            parts.scheme in ("", "file")
            and not feed.get("overwrite")
            and path.is_file()
            and path.stat().st_size
        ):
            stop(
                f"{path} exists, and Parquet files cannot be added to:"
                " give another name, or overwrite it with -O"
            )


class ParquetExporter(BaseItemExporter):
    """The records that a feed of JSON lines would have, in columns.

    The first items decide which columns there are. Parts of a feed are read as one table, so a
    column keeps the type that it had in the first part."""

    def __init__(
        self,
        file: IO[bytes],
        *,
        tagged: bool = True,
        columns: dict[str, Any] | None = None,
        fetch_fields: Callable[[object], dict[str, str]] = no_fields,
        **kwargs: Any,
    ) -> None:
        """`tagged`: True if items carry their tags.

        `fetch_fields`: returns the fields to add to an item.

        `columns`: the columns of earlier parts by name; the file adds its own. None: no parts."""
        super().__init__(**kwargs)
        # Scrapy loads the exporters of all formats for any feed, so pyarrow is imported here.
        from comity.dataset.files.columns import arrow_schema as typed
        from comity.dataset.files.columns import parquet

        self._parquet, self._typed = parquet, typed
        self._file = _CountingFile(file)
        self._tagged = tagged
        self._fetch_fields = fetch_fields
        self._columns = {} if columns is None else columns
        self._rows: RowGroupWriter | None = None
        self._encoder: json.JSONEncoder = ScrapyJSONEncoder()
        self._items: list[dict[str, Any]] = []

    @classmethod
    def from_crawler(
        cls, crawler: Crawler, file: IO[bytes], *, has_fetch: bool = False, **options: Any
    ) -> Self:
        """`has_fetch`: True if items get the fields about the fetch of their page."""
        if has_fetch:
            options["fetch_fields"] = FetchFields(crawler)
        return cls(file, tagged=Crawl.of(crawler).tags.are_in_items, **options)

    def export_item(self, item: Any) -> None:
        record = fields_of(self, item) | self._fetch_fields(item)
        self._items.append(json.loads(self._encoder.encode(record)))
        if len(self._items) >= BATCH:
            self._flush()

    def finish_exporting(self) -> None:
        self._flush().close()

    def _flush(self) -> RowGroupWriter:
        if self._rows is None:
            for column in self._typed.schema_of(self._items, tagged=self._tagged):
                self._columns.setdefault(column.name, column)
            self._rows = self._parquet.RowGroupWriter(
                self._file, self._typed.schema_with(self._columns.values())
            )
        self._rows.write(self._typed.encode(self._items))
        self._items = []
        return self._rows


class _CountingFile:
    """A file that is written from its front and stays open. It counts its octets.

    Standard output and compressed files cannot do that themselves."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._octets = 0

    def write(self, octets: bytes) -> int:
        self._file.write(octets)
        self._octets += len(octets)
        return len(octets)

    def tell(self) -> int:
        return self._octets

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass
