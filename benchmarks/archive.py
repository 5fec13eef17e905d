"""WARC records and origins, for whoever measures what is made of them."""

from __future__ import annotations

import zlib


def origin(number: int) -> str:
    return f"https://www.site-{number:07}.example"


def record(kind: str, url: str, date: str, block: bytes, *, level: int = 6) -> bytes:
    """A record as a gzip member of its own."""
    fields = {
        "WARC-Type": kind,
        "WARC-Date": date,
        "WARC-Record-ID": f"<urn:uuid:{kind}-{url}>",
        "Content-Length": str(len(block)),
        "Content-Type": f"application/http; msgtype={kind}",
        "WARC-Target-URI": url,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    member = zlib.compressobj(level, zlib.DEFLATED, 31)
    return (
        member.compress(f"WARC/1.0\r\n{head}\r\n".encode() + block + b"\r\n\r\n") + member.flush()
    )
