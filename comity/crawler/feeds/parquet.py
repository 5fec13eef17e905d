"""Parquet files of a crawl: items in typed columns, their tag too (comity/dataset/typed.py)."""

from __future__ import annotations

import json
from typing import IO, Any

from scrapy.exporters import BaseItemExporter
from scrapy.utils.serialize import ScrapyJSONEncoder

from comity.crawler.options import stop

try:
    from comity.dataset.parquet import Rows
    from comity.dataset.typed import encode
except ModuleNotFoundError as error:
    if error.name != "pyarrow":
        raise
    stop("Parquet feeds need pyarrow, which is not installed: pip install 'comity[parquet]'")

BATCH = 200  # items that wait as they are; then they wait as columns, for a row group


class ParquetExporter(BaseItemExporter):
    """What a feed of JSON lines would hold, in columns. The first items say which there are."""

    def __init__(self, file: IO[bytes], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._rows = Rows(file)
        self._encoder: json.JSONEncoder = ScrapyJSONEncoder()
        self._items: list[dict[str, Any]] = []

    def export_item(self, item: Any) -> None:
        self._items.append(json.loads(self._encoder.encode(dict(self.get_serialized_fields(item)))))
        if len(self._items) >= BATCH:
            self._flush()

    def finish_exporting(self) -> None:
        self._flush()
        self._rows.close()

    def _flush(self) -> None:
        self._rows.write(encode(self._items))
        self._items = []
