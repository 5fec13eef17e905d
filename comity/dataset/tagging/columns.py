"""The fields of other people's records: URL, date, text, header fields, status, hash, media type.

Columns().names()           the usual names of these fields
value_of(record, names)     the first value. `meta.url` is the member `url` of the field `meta`,
                            which may be an object or JSON text
captured_page(...)          the page of a record"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from comity.dataset.records import DatasetError, is_blank, parse_json
from comity.dataset.tagging.captured import PART_OF_PAGE, CapturedPage, fields_of, moment_of

# FineWeb and Dolma: url, date; C4: url, timestamp; RedPajama 1: meta.url, meta.timestamp; RedPajama
# 2: url, date_download, raw_content; LAION: URL, TEXT; archives: target_uri; Common Crawl's
# columnar index: url, fetch_time, fetch_status, content_mime_type, content_mime_detected. The first
# field with a value counts. `object.member` is a member of an object.
URLS = (
    "final_url",
    "url",
    "URL",
    "uri",
    "target_uri",
    "warc_target_uri",
    "WARC-Target-URI",
    "meta.url",
    "metadata.url",
)
DATES = (
    *(
        "fetched_at",
        "date",
        "timestamp",
        "date_download",
        "crawl_date",
        "warc_date",
        "WARC-Date",
        "created",
        "fetch_time",
    ),
    *("meta.timestamp", "meta.date", "metadata.timestamp", "metadata.date"),
)
TEXTS = ("text", "content", "raw_content", "TEXT", "caption")
HEADERS = ("headers", "http_headers", "response_headers", "meta.headers", "metadata.headers")
STATUSES = ("fetch_status",)
HASHES = ("sha256",)  # comity's own records, img2dataset
TYPES = ("content_mime_type", "content_mime_detected")  # served and detected type: both count

_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+")


class Columns(NamedTuple):
    """The names of the fields of records. "" means the usual names."""

    url: str = ""
    """The URL of the page."""
    date: str = ""
    """The moment of the capture."""
    text: str = ""
    """The text of the page."""
    headers: str = ""
    """The header fields of the answer."""
    status: str = ""
    """The HTTP status."""
    sha256: str = ""
    """The SHA-256 of the answer's body."""
    type: str = ""
    """The media type."""
    page_url: str = ""
    """The URL of the page that shows the work at `url`. "" means that the page does not count."""

    def names(self, *, with_works: bool = True) -> tuple[tuple[str, ...], ...]:
        """Return the candidate names for each field of this class, in the order of the fields.

        `with_works`: False if no registry has works, so that `sha256` is not needed."""
        hashes = HASHES if with_works else ()
        usual = (URLS, DATES, TEXTS, HEADERS, STATUSES, hashes, TYPES, ())
        return tuple((name,) if name else names for name, names in zip(self, usual, strict=True))


def check_fields(columns: Columns, schema: Collection[str]) -> None:
    """Check the fields against the columns of a table.

    DatasetError: a named field is not among the columns, or no column can contain the URL."""
    for name in filter(None, columns):
        if name not in schema and name.partition(".")[0] not in schema:
            raise DatasetError(f"there is no field `{name}`: it has {', '.join(schema)}")
    if not any(first_part(name) in schema or name in schema for name in columns.names()[0]):
        raise DatasetError(
            f"no field looks like a URL: name it with --url-field; it has {', '.join(schema)}"
        )


def first_part(name: str) -> str:
    return name.partition(".")[0]


def value_of(record: Mapping[str, Any], names: Iterable[str]) -> tuple[str, Any]:
    """Return the first name of a field that is not blank, and the value of the field.

    "" and None if all fields are blank."""
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
                value = parse_json(value)
            except (ValueError, RecursionError):
                return None
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def captured_page(
    url: Any,
    date: Any,
    headers: Any,
    status: Any,
    sha256: Any,
    types: Iterable[Any],
    shown_on: Sequence[Any] = (),
) -> CapturedPage:
    """Return the page of a record with these values.

    `types`: the values of all TYPES. `shown_on`: the URLs of the pages that show the work."""
    page = CapturedPage(_text_or_empty(url), moment_of(date))
    if shown_on:
        beside = [CapturedPage(_text_or_empty(other), page.captured_at) for other in shown_on]
        page = page._replace(beside=tuple(beside))
    media_types = [text for text in map(str, types) if _MEDIA_TYPE.fullmatch(text)]
    if media_types:
        page = page._replace(media_types=",".join(media_types))
    if isinstance(sha256, str):
        page = page._replace(sha256=sha256.strip())
    if not is_blank(status):
        page = _with_status(page, status)
    try:
        return page._replace(fields=fields_of(headers))
    except (ValueError, TypeError, KeyError, RecursionError):
        return page._replace(unread="its header fields cannot be read")


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _with_status(page: CapturedPage, value: Any) -> CapturedPage:
    """Return the page with a status. Columns with nulls may contain it as a float."""
    page = page._replace(is_indexed=True)
    match = re.fullmatch(r"([1-5][0-9][0-9])(\.0)?", str(value).strip())
    if match is None:
        return page._replace(unread="its status cannot be read")
    status = int(match[1])
    return page._replace(status=status, unread=PART_OF_PAGE if status == 206 else "")
