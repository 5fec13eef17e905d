"""WARC files as archives publish them, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


class Answered(NamedTuple):
    """The facts of a WARC record: a site's answer to a request."""

    url: str
    body: bytes = b""
    status: str = "200 OK"
    headers: Mapping[str, str] = {}
    at: datetime = NOON
    fields: Mapping[str, str] = {}
    kind: str = "response"


def write_warc(path: Path, answers: Iterable[Answered]) -> Path:
    """As Common Crawl writes robots.txt captures: a request and a response, each a gzip member."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=path.suffix == ".gz")
        writer.write_record(
            writer.create_warcinfo_record(path.name, {"software": "Nutch 1.6 (CC)"})
        )
        for answer in answers:
            date = {"WARC-Date": answer.at.strftime("%Y-%m-%dT%H:%M:%SZ")}
            asked = StatusAndHeaders(
                "GET /robots.txt HTTP/1.1", [("Host", "x")], is_http_request=True
            )
            writer.write_record(
                writer.create_warc_record(
                    answer.url, "request", http_headers=asked, warc_headers_dict=date
                )
            )
            head = None
            if answer.kind != "resource":
                length = {"Content-Length": str(len(answer.body))} if answer.body else {}
                head = StatusAndHeaders(
                    answer.status,
                    list({"Content-Type": "text/plain", **length, **answer.headers}.items()),
                    "HTTP/1.1",
                )
            writer.write_record(
                writer.create_warc_record(
                    answer.url,
                    answer.kind,
                    payload=BytesIO(answer.body),
                    length=len(answer.body),
                    http_headers=head,
                    warc_headers_dict={**date, **answer.fields},
                )
            )
    return path
