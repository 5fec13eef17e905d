"""CDX indexes of WARC files: CDXJ, the JSON lines of CDX servers, and CDX with 11 fields.

A line becomes a record with the field names of Common Crawl's columnar index
(https://github.com/commoncrawl/cc-index-table). Other fields of CDXJ keep their names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NoReturn

from comity.dataset.files import jsonl
from comity.dataset.records import DatasetError, Record, Unreadable, parse_json

# https://iipc.github.io/warc-specifications/specifications/cdx-format/cdx-2015/
LEGEND = b"CDX N b a m s k r M S V g"
ELEVEN = (
    *("urlkey", "timestamp", "url", "mime", "status", "digest", "redirect", ""),
    *("length", "offset", "filename"),
)
# Names in CDX -> names in the columnar index, by `fromCDX` in its schema. Wayback servers have the
# last three names.
NAMES = {
    "urlkey": "url_surtkey",
    "timestamp": "fetch_time",
    "url": "url",
    "status": "fetch_status",
    "redirect": "fetch_redirect",
    "digest": "content_digest",
    "mime": "content_mime_type",
    "mime-detected": "content_mime_detected",
    "charset": "content_charset",
    "languages": "content_languages",
    "truncated": "content_truncated",
    "filename": "warc_filename",
    "offset": "warc_record_offset",
    "length": "warc_record_length",
    "original": "url",
    "mimetype": "content_mime_type",
    "statuscode": "fetch_status",
}
NUMBERS = ("fetch_status", "warc_record_offset", "warc_record_length")

SECONDS = 14  # digits of a date. Some indexes have milliseconds too.

_CDXJ = re.compile(rb"(\S+) ([0-9]{4,17}) (\{.*)")
_NUMBER = re.compile(r"[0-9]{1,18}")


class Reader(jsonl.Reader):
    """A CDX index. Its legend, and lines that begin with `!`, have no record."""

    def record(self, line: bytes, number: int) -> Record | Unreadable | None:
        line = line.rstrip(b"\r")
        if line.lstrip().startswith(b"CDX "):
            if line.split() != LEGEND.split():
                raise DatasetError(
                    f"{self.path}: CDX with other fields than `{LEGEND.decode()}` cannot be read:"
                    " convert it to CDXJ"
                )
            return None
        if line.startswith(b"!"):
            return None
        match = _CDXJ.fullmatch(line)
        key = {"urlkey": _text(match[1]), "timestamp": _text(match[2])} if match else {}
        octets = match[3] if match else line
        if octets.startswith(b"{"):
            try:
                return _columnar(key | parse_json(octets))
            except (ValueError, RecursionError) as error:
                return Unreadable(f"line {number}", line, f"is no JSON: {error}")
        fields = line.split()
        if len(fields) != len(ELEVEN):
            return Unreadable(
                f"line {number}", line, "is neither CDXJ nor JSON nor CDX with 11 fields"
            )
        values = {name: _text(field) for name, field in zip(ELEVEN, fields, strict=True) if name}
        return _columnar({name: value for name, value in values.items() if value != "-"})


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "replace")


def _columnar(fields: Record) -> Record:
    """Return the fields with the names and types of the columnar index."""
    record = {name: value for name, value in fields.items() if name not in NAMES}
    for name, value in fields.items():
        if name in NAMES:
            record[NAMES[name]] = value
    if isinstance(moment := record.get("fetch_time"), str):
        record["fetch_time"] = moment[:SECONDS]
    for name in NUMBERS:
        text = record.get(name)
        if isinstance(text, str) and _NUMBER.fullmatch(text):
            record[name] = int(text)
    return record


class Writer:
    """CDX cannot be written: `dataset ranges` writes the places of captures."""

    def __init__(self, path: Path) -> NoReturn:
        raise DatasetError(f"{path}: records cannot be written as CDX: choose .jsonl or .parquet")
