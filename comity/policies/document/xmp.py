"""XMP packets in images, video and PDF files (XMP specification, parts 1 and 3).

    texts(body)            the parts of a file that may have a packet, unpacked
    pdf_streams(body)      the packed metadata streams of a PDF file

Most files have their packets as plain text, so that readers can find them without knowing the kind
of file. Only three kinds need more: JPEG cuts long packets, and PNG and PDF may pack them. No part
is read as XML, so that entities and DTDs have no effect."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from comity.policies.document.document import is_pdf

MAX_STREAMS = 500  # metadata streams of a PDF file. Each of its images may have one
MAX_STREAMED = 20 * 256 * 1024  # unpacked octets after which no further stream is read
MAX_PACKET = 256 * 1024  # octets of a packed stream of PDF, and of the same stream unpacked
MAX_TEXT = 4 * 1024 * 1024  # unpacked octets of one text of PNG
MAX_CHUNKS = 4  # packed packets of a PNG file, which may have one
MAX_SEGMENTS = 2000  # segments of a JPEG file before its image

_STREAM = re.compile(rb"/Type\s{0,9}+/Metadata\b")


class Unread(NamedTuple):
    """A packet that cannot be read.

    Attributes:
        cause: the reason, as a sentence.
        is_limit: True if it exceeds a limit."""

    cause: str
    is_limit: bool = False


def texts(body: bytes) -> Iterator[bytes | Unread]:
    """Yield the octets in which packets are, with packed and cut packets as they were written."""
    if body.startswith(b"\xff\xd8"):
        yield from _jpeg(body)
        return
    yield body
    if body.startswith(b"\x89PNG"):
        yield from _png(body)
    elif is_pdf(body):
        yield from pdf_streams(body)


def pdf_streams(body: bytes) -> Iterator[bytes | Unread]:
    """Yield the packed metadata streams of a PDF file, unpacked."""
    octets_left = MAX_STREAMED
    for number, stream in enumerate(_STREAM.finditer(body)):
        if number == MAX_STREAMS or octets_left <= 0:
            yield Unread(f"Only {number} metadata streams of the PDF file are read.", is_limit=True)
            break
        start = body.find(b"stream", stream.end(), stream.end() + 1000)
        if start >= 0 and b"/FlateDecode" in body[max(0, stream.start() - 500) : start]:
            packed = body[start + 6 : start + 6 + MAX_PACKET].lstrip(b"\r\n")
            try:
                packet = zlib.decompressobj().decompress(packed, MAX_PACKET)
            except zlib.error:
                yield Unread("A metadata stream of the PDF file cannot be decompressed.")
            else:
                octets_left -= len(packet)
                yield packet
                if len(packet) == MAX_PACKET:
                    cause = f"Only {MAX_PACKET} octets of a metadata stream are read."
                    yield Unread(cause, is_limit=True)


_EXTENSION = b"http://ns.adobe.com/xmp/extension/\0"
_EXTENSION_HEAD = len(_EXTENSION) + 40  # with a digest of 32 octets, length and offset


def _jpeg(body: bytes) -> Iterator[bytes | Unread]:
    """Yield a JPEG file, and before it its long packets, whose parts are in several segments."""
    if _EXTENSION not in body:
        yield body
        return
    parts: dict[bytes, list[tuple[int, bytes]]] = {}  # digest -> offset and octets of each part
    others, place = [], 2
    for _ in range(MAX_SEGMENTS):
        # A marker of two octets, and the length of the segment without the marker.
        if body[place : place + 1] != b"\xff" or body[place + 1 : place + 2] in (b"\xda", b"\xd9"):
            break
        length = int.from_bytes(body[place + 2 : place + 4])
        segment = body[place + 4 : place + 2 + length]
        if segment.startswith(_EXTENSION):
            digest = segment[len(_EXTENSION) : len(_EXTENSION) + 32]
            offset = int.from_bytes(segment[_EXTENSION_HEAD - 4 : _EXTENSION_HEAD])
            parts.setdefault(digest, []).append((offset, segment[_EXTENSION_HEAD:]))
        else:
            others.append(segment)
        place += 2 + max(2, length)
    yield from (b"".join(part for _, part in sorted(of_one)) for of_one in parts.values())
    yield b"\n".join(others)
    yield body[place:]


# Type and keyword of a chunk, then the flag of a packed text, and the method.
_PNG_PACKED = b"iTXtXML:com.adobe.xmp\0\1\0"


def _png(body: bytes) -> Iterator[bytes | Unread]:
    """Yield the packed packets of a PNG file, unpacked."""
    place = body.find(_PNG_PACKED)
    for number in range(MAX_CHUNKS + 1):
        if place < 0:
            return
        if number == MAX_CHUNKS:
            cause = f"Only {MAX_CHUNKS} packed metadata chunks of the PNG file are read."
            yield Unread(cause, is_limit=True)
            return
        end = place + 4 + int.from_bytes(body[place - 4 : place])
        # A language tag and a translated keyword are before the text.
        yield _unpacked(body[place + len(_PNG_PACKED) : end].split(b"\0", 2)[-1])
        place = body.find(_PNG_PACKED, place + 1)


def _unpacked(packed: bytes) -> bytes | Unread:
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(packed, MAX_TEXT)
    except zlib.error:
        return Unread("A metadata chunk of the PNG file cannot be decompressed.")
    if unpacking.eof:
        return text
    if len(text) == MAX_TEXT:
        cause = f"A metadata chunk of the PNG file has more than {MAX_TEXT} octets."
        return Unread(cause, is_limit=True)
    return Unread("The end of a metadata chunk of the PNG file is missing.")
