"""CSV whose nested values, above all the tag, are JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from itemadapter import is_item
from scrapy.exporters import CsvItemExporter
from scrapy.utils.serialize import ScrapyJSONEncoder


class CsvExporter(CsvItemExporter):
    """CSV as Scrapy writes it, but with JSON where Scrapy writes Python's `repr`.

    A list of texts stays joined by commas."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._encoder: json.JSONEncoder = ScrapyJSONEncoder()

    def serialize_field(self, field: Mapping[str, Any], name: str, value: Any) -> Any:
        value_written = super().serialize_field(field, name, value)
        is_nested = isinstance(value_written, Mapping | list | tuple | set | frozenset) or is_item(
            value_written
        )
        return self._encoder.encode(value_written) if is_nested else value_written
