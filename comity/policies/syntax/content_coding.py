"""Remove content codings, up to a limit (RFC 9110 section-8.4)."""

from __future__ import annotations

import zlib

from comity.policies.syntax.lines import MAX_BYTES
from comity.policies.syntax.printable import printable

# Members of a gzip file. For each member the octets behind it are copied.
MAX_MEMBERS = 100

# The beginning of a gzip member (RFC 1952 section-2.3.1). No text begins with it.
_GZIP = b"\x1f\x8b\x08"


def is_coded(body: bytes, content_encoding: bytes) -> bool:
    """Return True if `decoded` has to decode the body. The arguments are those of `decoded`."""
    # LENIENT: gzip without its field, for a file that is stored compressed.
    return bool(_codings(content_encoding)) or body.startswith(_GZIP)


def _codings(content_encoding: bytes) -> list[bytes]:
    return [
        coding
        for coding in map(bytes.strip, content_encoding.split(b","))
        if coding not in (b"", b"identity")
    ]


def decoded(
    body: bytes, content_encoding: bytes, *, is_cut: bool, most: int = MAX_BYTES
) -> tuple[bytes, bool]:
    """Return the content, and whether it was cut at `most` octets.

    ValueError: it cannot be decoded; the text says what is wrong.

    Args:
        body: the octets as received.
        content_encoding: value of the field, in lower case.
        is_cut: True if octets are missing at the end of the body."""
    if not is_coded(body, content_encoding):
        return body, is_cut
    codings = _codings(content_encoding)
    if codings not in ([], [b"gzip"], [b"x-gzip"], [b"deflate"]):
        raise ValueError(f"Content-Encoding {printable(content_encoding)}, which was not asked for")
    # RFC 9110 section-8.4.1.2: some send "deflate" without the zlib wrapper. Browsers read it.
    is_raw = codings == [b"deflate"] and not body.startswith(_GZIP) and not _is_zlib(body)
    content, rest = b"", body
    for _ in range(MAX_MEMBERS):
        # Raw, or else gzip or zlib, by its first octets.
        decoder = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS | 32)
        try:
            content += decoder.decompress(rest, most + 1 - len(content))
        except zlib.error as error:
            raise ValueError(f"compressed content that cannot be decoded: {error}") from None
        rest = decoder.unused_data
        if len(content) > most or not rest.startswith(_GZIP):
            break
    is_more = is_cut or len(content) > most
    if not is_more and (rest or not decoder.eof):
        raise ValueError("compressed content that breaks off or goes on after its end")
    return content, is_more


def _is_zlib(body: bytes) -> bool:
    """Return True if a body begins with the header of zlib (RFC 1950 section-2.2)."""
    return len(body) > 1 and body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0
