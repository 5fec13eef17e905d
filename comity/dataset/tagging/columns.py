"""Fields of records of others: which has the URL, the date, the text and the header fields of the page.

guessed(names)      by the names that usual datasets have
value_of(record)    what stands there, also within objects (`meta.url`), and in objects that are written as text"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from comity.dataset.records import DatasetError, is_blank, parsed
from comity.dataset.tagging.captured import CapturedPage, fields_of, moment_of

# FineWeb and Dolma: url, date; C4: url, timestamp; RedPajama 1: meta.url, meta.timestamp; RedPajama 2: url, date_download,
# raw_content; LAION: URL, TEXT; archives: target_uri. The first that is there counts; a dot stands before a member of an object.
URLS = ("final_url", "url", "URL", "uri", "target_uri", "warc_target_uri", "WARC-Target-URI", "meta.url", "metadata.url")
DATES = (
    *("fetched_at", "date", "timestamp", "date_download", "crawl_date", "warc_date", "WARC-Date", "created"),
    *("meta.timestamp", "meta.date", "metadata.timestamp", "metadata.date"),
)
TEXTS = ("text", "content", "raw_content", "TEXT", "caption")
HEADERS = ("headers", "http_headers", "response_headers", "meta.headers", "metadata.headers")


class Columns(NamedTuple):
    """The names of fields. "": the first of the usual ones that a record has."""

    url: str = ""
    date: str = ""
    text: str = ""
    headers: str = ""

    def names(self) -> tuple[tuple[str, ...], ...]:
        """The candidates for each, in the order of the fields of this class."""
        usual = (URLS, DATES, TEXTS, HEADERS)
        return tuple((name,) if name else names for name, names in zip(self, usual, strict=True))


def checked(columns: Columns, schema: Collection[str]) -> None:
    """Check the columns. DatasetError where a field that is named is none of a table's columns, or none has the URL."""
    for name in filter(None, columns):
        if name not in schema and name.partition(".")[0] not in schema:
            raise DatasetError(f"there is no field `{name}`: it has {', '.join(schema)}")
    if not any(first_part(name) in schema or name in schema for name in columns.names()[0]):
        raise DatasetError(f"no field looks like a URL: say which is, by --url-field; it has {', '.join(schema)}")


def first_part(name: str) -> str:
    return name.partition(".")[0]


def value_of(record: Mapping[str, Any], names: Iterable[str]) -> tuple[str, Any]:
    """The first of these fields that has a value, and that; "" and None where none has."""
    for name in names:
        value = record.get(name)
        if value is None and "." in name:
            value = _member(record, name)
        if not is_blank(value):
            return name, value
    return "", None


def _member(record: Mapping[str, Any], name: str) -> Any:
    value: Any = record
    for part in name.split("."):
        if isinstance(value, str) and value.startswith("{"):
            try:
                value = parsed(value)
            except (ValueError, RecursionError):
                return None
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def captured_page(url: Any, date: Any, headers: Any) -> CapturedPage:
    """The page of a record that has these values."""
    page = CapturedPage(url if isinstance(url, str) else "", moment_of(date))
    try:
        return page._replace(fields=fields_of(headers))
    except (ValueError, TypeError, KeyError, RecursionError):
        return page._replace(unread="its header fields cannot be read")
