"""The HTTP messages in records of WARC files."""

from __future__ import annotations

import re
from collections.abc import Iterable

from comity.dataset.files.warc.records import WarcRecord

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_LINE_END = re.compile(rb"\r?\n")
_FOLD = re.compile(rb"\r?\n[ \t]+")  # RFC 9112 section-5.2: a field continues on the next line
# RFC 9112 section-7.1:  chunk = chunk-size [ chunk-ext ] CRLF chunk-data CRLF
# LENIENT: line feeds alone end lines, as in heads.
_CHUNK = re.compile(rb"([0-9A-Fa-f]++)[ \t]*+(?:;[^\r\n]*+)?\r?\n")

# The end of a record, and the beginning of the next one.
_NEXT = re.compile(rb"\r\n\r\nWARC/[0-9]+\.[0-9]+\r\n")


def is_http(record: WarcRecord) -> bool:
    """Return True if the record's block is an HTTP answer, by its media type or its beginning."""
    media_type = record.fields.get("content-type", "").partition(";")[0].strip().lower()
    is_response = record.fields.get("warc-type") == "response"
    return is_response and (media_type == "application/http" or record.block.startswith(b"HTTP/"))


def message(octets: bytes) -> tuple[bytes, list[tuple[bytes, bytes]], bytes]:
    """Return the first line, the fields and the body of an HTTP message. LF alone may end a line.

    The names of fields are in lower case."""
    end = _HEAD_END.search(octets)
    head, body = (octets[: end.start()], octets[end.end() :]) if end else (octets, b"")
    first, *lines = _LINE_END.split(_FOLD.sub(b" ", head))
    pairs = (line.partition(b":") for line in lines)
    return (
        first,
        [(name.strip().lower(), value.strip()) for name, colon, value in pairs if colon],
        body,
    )


def has_head(octets: bytes) -> bool:
    """Return True if these octets of a message contain its whole head."""
    return _HEAD_END.search(octets) is not None


def words(head: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    """Return the members of a comma-separated field, in lower case: "gzip, br" -> [gzip, br].

    `head`: fields with names in lower case. If there are several fields `name`, all count."""
    members = (
        word.strip().lower() for key, value in head if key == name for word in value.split(b",")
    )
    return [member for member in members if member]


def content_length(head: Iterable[tuple[bytes, bytes]]) -> int:
    """Return the largest Content-Length in octets. -1 if no Content-Length is a number."""
    return max(
        (int(word[:15]) for word in words(head, b"content-length") if word.isdigit()), default=-1
    )


def covers_another(head: Iterable[tuple[bytes, bytes]], body: bytes) -> bool:
    """Return True if `body` includes the beginning of the next WARC record, after its real end.

    The real end is at the Content-Length. Then the length in the WARC record is wrong."""
    length = content_length(head)
    return length >= 0 and _NEXT.search(body, length) is not None


def unchunk(body: bytes) -> tuple[bytes, bool]:
    """Decode a chunked body. Return the content, and True if the last chunk is present.

    Some archives remove the chunks and keep the header field. So a body without chunks is returned
    unchanged, with True."""
    if not _CHUNK.match(body):
        return body, True
    content, position = bytearray(), 0
    while match := _CHUNK.match(body, position):
        size = int(match[1], 16)
        if not size:
            return bytes(content), True
        content += body[match.end() : match.end() + size]
        end = _LINE_END.match(body, match.end() + size)
        if not end:
            break
        position = end.end()
    return bytes(content), False
