"""The HTTP messages in records of WARC files."""

from __future__ import annotations

from comity.dataset.files.warc.records import Fields


def is_http(fields: Fields) -> bool:
    """True where the block of the record is an answer of HTTP."""
    media_type = fields.get("content-type", "").partition(";")[0].strip().lower()
    return fields.get("warc-type") == "response" and media_type == "application/http"


def message(octets: bytes) -> tuple[bytes, list[tuple[bytes, bytes]], bytes]:
    """First line, fields with their names in lower case, and body of an HTTP message."""
    head, _, body = octets.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    pairs = (line.partition(b":") for line in lines)
    return first, [(name.strip().lower(), value.strip()) for name, colon, value in pairs if colon], body
