"""The HTTP answer in a WARC record: its status, its header fields, and its body without codings."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import Any

from comity.dataset.files.warc.items import MAX_BLOCK
from comity.dataset.files.warc.messages import (
    content_length,
    covers_another,
    has_head,
    message,
    unchunk,
    words,
)
from comity.dataset.files.warc.records import GZIP
from comity.policies.syntax.printable import printable

PIECE = 2**12  # octets that are unpacked at a time
ZSTD = b"\x28\xb5\x2f\xfd"  # the beginning of a frame (RFC 8878 section-3.1.1)
# The second to fourth octet of a frame without content (section-3.1.2). The first may vary.
SKIPPABLE = b"\x2a\x4d\x18"

Head = list[tuple[bytes, bytes]]


def read_answer(block: bytes) -> tuple[int, Head, bytes]:
    """Return the status, the header fields and the body of an answer.

    ValueError, with the cause: the octets are not an answer of HTTP/1."""
    if not has_head(block):
        raise ValueError("not an HTTP/1 answer: its header does not end")
    first, head, body = message(block)
    words = first.split(None, 2)
    if (
        not first.startswith((b"HTTP/", b"ICY "))
        or len(words) < 2
        or len(words[1]) != 3
        or not words[1].isdigit()
    ):
        raise ValueError("not an HTTP/1 answer: it has no status")
    return int(words[1]), head, body


def content_of(head: Head, body: bytes, *, is_cut: bool) -> tuple[bytes, str]:
    """Return the body without codings, and the reason why it is incomplete.

    The reason is "" if the body is complete, or if `is_cut`: the record is known to be cut off, so
    the caller has a reason. ValueError, with the cause: the body cannot be read."""
    if covers_another(head, body):
        raise ValueError("its length is wrong: another record begins within it")
    codings = [coding for coding in words(head, b"content-encoding") if coding != b"identity"]
    transfer_codings = [
        coding for coding in words(head, b"transfer-encoding") if coding != b"identity"
    ]
    missing = ""
    if b"chunked" in transfer_codings:
        body, is_whole = unchunk(body)
        missing = "" if is_whole else "the chunked body is incomplete"
    elif not codings and content_length(head) > len(body):
        missing = "the body is shorter than its Content-Length"
    others = b", ".join(coding for coding in transfer_codings if coding != b"chunked")
    if others and body and not _is_document(body):
        missing = missing or f"Transfer-Encoding {printable(others)} cannot be removed"
    for coding in reversed(codings) if body else ():
        body, is_whole = _decode(body, coding)
        missing = missing or ("" if is_whole else "the compressed body is incomplete")
    return body, "" if is_cut else missing


def _decode(body: bytes, coding: bytes) -> tuple[bytes, bool]:
    """Return the content, and True if it is complete. ValueError: the coding cannot be removed.

    Some archives remove the coding and keep the header field. So a body that cannot be decoded, but
    looks like a document without decoding, is returned unchanged."""
    try:
        if coding in (b"gzip", b"x-gzip"):
            return _inflate(body, zlib.MAX_WBITS | 16)
        if coding == b"deflate":
            try:
                return _inflate(body, zlib.MAX_WBITS)
            except zlib.error:
                return _inflate(body, -zlib.MAX_WBITS)
        if coding == b"br":
            return _without_brotli(body)
        if coding == b"zstd":
            return _without_zstd(body)
    except ImportError as error:
        raise ValueError(
            f"Content-Encoding {printable(coding)}: {error.name} is not installed"
        ) from None
    except ValueError:
        raise
    except Exception as error:  # the library for the coding may raise anything
        if _is_document(body):
            return body, True
        raise ValueError(
            f"Content-Encoding {printable(coding)} cannot be removed: {error}"
        ) from None
    raise ValueError(f"Content-Encoding {printable(coding)} is not known")


def _without_brotli(body: bytes) -> tuple[bytes, bool]:
    import brotli  # type: ignore[import-untyped]  # it ships no types

    decoder = brotli.Decompressor()
    content = decoder.process(body, output_buffer_limit=MAX_BLOCK)
    if not decoder.is_finished() and _is_document(body):  # any octets may look like brotli
        return body, True
    return _require_length(
        content, is_more=not decoder.can_accept_more_data()
    ), decoder.is_finished()


def _without_zstd(body: bytes) -> tuple[bytes, bool]:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    return _unpack(
        body, zstd.ZstdDecompressor, lambda octets: octets == ZSTD or octets[1:] == SKIPPABLE
    )


def _is_document(body: bytes) -> bool:
    """Return True if the body is text that begins like markup or JSON."""
    try:
        return body.lstrip()[:1] in (b"<", b"{", b"[") and b"\0" not in body and bool(body.decode())
    except UnicodeDecodeError:
        return False


def _inflate(body: bytes, bits: int) -> tuple[bytes, bool]:
    return _unpack(
        body,
        lambda: zlib.decompressobj(bits),
        lambda octets: bits > zlib.MAX_WBITS and octets.startswith(GZIP[:2]),
    )


def _unpack(
    body: bytes, decoder_of: Callable[[], Any], is_start: Callable[[bytes], bool]
) -> tuple[bytes, bool]:
    """Return the content of all members or frames, and True if the last of them is complete.

    Octets after the last member or frame are ignored. `decoder_of`: returns a new decoder.
    `is_start`: returns True if its four octets begin a member or frame."""
    content, position, decoder = bytearray(), 0, decoder_of()
    while position < len(body):
        piece = body[position : position + PIECE]  # a decoder copies the octets behind its end
        content += _require_length(
            decoder.decompress(piece, MAX_BLOCK + 1 - len(content)), before=len(content)
        )
        position += len(piece) - len(decoder.unused_data)
        if decoder.eof:
            if not is_start(body[position : position + 4]):
                break
            decoder = decoder_of()
    return bytes(content), decoder.eof


def _require_length(content: bytes, *, before: int = 0, is_more: bool = False) -> bytes:
    """Return the content. ValueError: the content is too long.

    `before`: the octets that were unpacked before. `is_more`: True if more octets follow."""
    if is_more or before + len(content) > MAX_BLOCK:
        raise ValueError(f"it has more than {MAX_BLOCK} octets when unpacked")
    return content
