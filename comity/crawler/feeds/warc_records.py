"""Writes records of WARC files, octet by octet as given. It needs warcio."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from io import BytesIO
from typing import IO

import scrapy

# warcio ships no types.
from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

import comity


class RecordWriter:
    """Writes records into a file. In a compressed file each record is a gzip member."""

    def __init__(self, file: IO[bytes], *, compressed: bool) -> None:
        self._writer = _Writer(file, gzip=compressed, warc_version="1.1")
        self._info = ""  # id of the `warcinfo` record

    def write_info(self, *, user_agent: str, description: str) -> None:
        """Write the record that says how the file was made. Later records refer to it."""
        warcinfo = {
            "software": f"comity/{comity.__version__} Scrapy/{scrapy.__version__}"
            f" Python/{sys.version.split()[0]}",
            "format": "WARC File Format 1.1",
            "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/"
            "warc-1.1/",
            "http-header-user-agent": user_agent,
            "robots": "obey",
            "description": description,
        }
        self._info = ""
        lines = "".join(f"{name}: {value}\r\n" for name, value in warcinfo.items())
        self._info = self.write(
            "warcinfo", datetime.now(UTC), lines.encode(), content_type="application/warc-fields"
        )

    def write(
        self,
        kind: str,
        date: datetime,
        body: bytes,
        fields: Mapping[str, str] | None = None,
        *,
        head: bytes = b"",
        content_type: str = "",
    ) -> str:
        """Write a record, and return its id.

        `head`: the HTTP head before the body, or b"". `content_type`: for records without a head.
        """
        info = {"WARC-Warcinfo-ID": self._info} if self._info else {}
        record = self._writer.create_warc_record(
            "",
            kind,
            payload=BytesIO(body),
            length=len(body),
            warc_content_type=content_type,
            warc_headers_dict={
                "WARC-Date": date.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                **info,
                **(fields or {}),
            },
            http_headers=_AsSent(head) if head else None,
        )
        self._writer.write_record(record)
        name: str = record.rec_headers.get_header("WARC-Record-ID")
        return name


def head_of(first: str, fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the head of an HTTP message with this first line."""
    lines = (first.encode("latin-1", "replace"), *(key + b": " + value for key, value in fields))
    return b"\r\n".join(
        (*(line.replace(b"\r", b" ").replace(b"\n", b" ") for line in lines), b"", b"")
    )


class _Writer(WARCWriter):  # type: ignore[misc]  # it has no types
    # The block of a record without an HTTP head is its payload. Its block digest is enough, and
    # some readers know no payload digest there.
    NO_PAYLOAD_DIGEST_TYPES = ("warcinfo", "revisit", "metadata", "resource")


class _AsSent(StatusAndHeaders):  # type: ignore[misc]  # it has no types
    """The head of a message, octet by octet. warcio would change fields that are not ASCII."""

    def __init__(self, octets: bytes) -> None:
        super().__init__("", [])
        self.headers_buff = self._octets = octets

    def __bool__(self) -> bool:
        return True

    def compute_headers_buffer(self, header_filter: object = None) -> None:
        self.headers_buff = self._octets
