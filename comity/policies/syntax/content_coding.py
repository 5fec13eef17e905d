"""Content codings of policy files, taken off within the limit of what is read (RFC 9110 section-8.4)."""

from __future__ import annotations

import zlib

from comity.policies.syntax.lines import MAX_BYTES
from comity.policies.syntax.printable import printable

MAX_MEMBERS = 100  # of a gzip file: each leaves a copy of what stands behind it

_GZIP = b"\x1f\x8b\x08"  # a member begins so (RFC 1952 section-2.3.1), and no text does


def decoded(body: bytes, content_encoding: bytes, *, is_cut: bool) -> tuple[bytes, bool]:
    """The content, and whether there is more than MAX_BYTES of it. ValueError, with what is wrong, where it cannot be had.

    `content_encoding`: in lower case; `is_cut`: the body goes on after these octets."""
    codings = [
        coding
        for coding in map(bytes.strip, content_encoding.split(b","))
        if coding not in (b"", b"identity")
    ]
    if not codings and not body.startswith(
        _GZIP
    ):  # LENIENT: gzip without its field, as a file is stored
        return body, is_cut
    if codings not in ([], [b"gzip"], [b"x-gzip"], [b"deflate"]):
        raise ValueError(f"Content-Encoding {printable(content_encoding)}, which was not asked for")
    content, rest = b"", body
    for _ in range(MAX_MEMBERS):
        decoder = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, as its first octets say
        try:
            content += decoder.decompress(rest, MAX_BYTES + 1 - len(content))
        except zlib.error as error:
            raise ValueError(f"compressed content that cannot be decoded: {error}") from None
        rest = decoder.unused_data
        if len(content) > MAX_BYTES or not rest.startswith(_GZIP):
            break
    is_more = is_cut or len(content) > MAX_BYTES
    if not is_more and (rest or not decoder.eof):
        raise ValueError("compressed content that breaks off or goes on after its end")
    return content, is_more
