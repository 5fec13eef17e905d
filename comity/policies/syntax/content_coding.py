"""Content codings of policy files, taken off within the limit of what is read (RFC 9110 section-8.4)."""

from __future__ import annotations

import zlib

from comity.policies.syntax.lines import MAX_BYTES
from comity.policies.syntax.printable import printable


def decoded(body: bytes, content_encoding: bytes, *, is_cut: bool) -> tuple[bytes, bool]:
    """The content, and whether there is more than MAX_BYTES of it. ValueError, with what is wrong, where it cannot be had.

    `is_cut`: the body goes on after these octets."""
    if content_encoding in (b"", b"identity"):
        return body, is_cut
    if content_encoding not in (b"gzip", b"x-gzip", b"deflate"):
        raise ValueError(f"Content-Encoding {printable(content_encoding)}, which was not asked for")
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, as its first octets say
    try:
        content = decoder.decompress(body, MAX_BYTES + 1)
    except zlib.error as error:
        raise ValueError(f"compressed content that cannot be decoded: {error}") from None
    is_more = is_cut or len(content) > MAX_BYTES
    if not is_more and (decoder.unused_data or not decoder.eof):
        raise ValueError("compressed content that breaks off or goes on after its end")
    return content, is_more
