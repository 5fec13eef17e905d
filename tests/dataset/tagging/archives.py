"""WARC files of others, octet by octet, and policies of sites, for tests."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from comity.policies import Site
from comity.policies.answers.fetched import Fetched

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
THEN = datetime(2024, 5, 18, 1, 58, 10, tzinfo=UTC)
HTML = (b"Content-Type", b"text/html; charset=utf-8")


class Said(NamedTuple):
    """The policies of a site of one date."""

    site: Site
    absent: tuple[str, ...] = ()


class Policies:
    """Copies of policies that are had, by origin: of before a date, and of today. It can be
    pickled."""

    def __init__(
        self,
        then: Mapping[str, Any],
        now: Mapping[str, Any] | None = None,
        *,
        missing: Sequence[str] = (),
    ) -> None:
        """`then`, `now`: origin -> path -> text. `missing`: URLs of files without a copy."""
        self._then = {
            origin: self._said(origin, files, THEN, missing) for origin, files in then.items()
        }
        self._now = {
            origin: self._said(origin, files, NOW, missing) for origin, files in (now or {}).items()
        }

    def _said(
        self, origin: str, files: Mapping[str, Any], at: datetime, missing: Sequence[str]
    ) -> Said:
        fetched = {
            path: text
            if isinstance(text, Fetched)
            else Fetched(status=200, body=text.encode(), fetched_at=at)
            for path, text in files.items()
        }
        return Said(
            Site.from_files(origin, fetched),
            tuple(url for url in missing if url.startswith(origin)),
        )

    def at(self, origin: str, moment: datetime) -> Said | None:
        return self._then.get(origin) if moment >= THEN else None

    def today(self, origin: str) -> Said | None:
        return self._now.get(origin)


def record(kind: str, block: bytes, url: str = "https://a.test/", **fields: str) -> bytes:
    """One record. `fields`: with `_` for `-`; "" leaves one out."""
    named = {
        "WARC-Type": kind,
        "WARC-Target-URI": url,
        "WARC-Date": "2024-05-18T01:58:10Z",
        "WARC-Record-ID": "",
        "Content-Type": {
            "response": "application/http; msgtype=response",
            "request": "application/http",
        }.get(kind, "text/plain"),
        "Content-Length": str(len(block)),
        **{name.replace("_", "-"): value for name, value in fields.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items() if value)
    return b"WARC/1.1\r\n" + head.encode() + b"\r\n" + block + b"\r\n\r\n"


def http(
    body: bytes, *fields: tuple[bytes, bytes], status: str = "200 OK", end: bytes = b"\r\n"
) -> bytes:
    lines = [
        b"HTTP/1.1 " + status.encode(),
        *(name + b": " + value for name, value in fields or (HTML,)),
    ]
    return end.join((*lines, b"", b"")) + body


def page(
    body: bytes = b"<p>Hello</p>",
    *fields: tuple[bytes, bytes],
    url: str = "https://a.test/",
    **more: str,
) -> bytes:
    return record("response", http(body, *(fields or (HTML,))), url, **more)


def write(path: Path, *records: bytes) -> Path:
    """A file of these records, each a member of its own where the name says that it is
    compressed."""
    path.write_bytes(
        b"".join(gzip.compress(one, 1) if path.suffix == ".gz" else one for one in records)
    )
    return path
