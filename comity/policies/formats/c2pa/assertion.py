"""The assertion Training and Data Mining in the C2PA manifests of a file.

    statements(body)    the statements of a file

The assertion is found by its label in a description box of JUMBF (ISO 19566-5), without a parser of
the whole manifest, as files may be damaged. Signatures are not checked, so nothing is permitted.
Every reading of an open point is in docs/c2pa.md."""

from __future__ import annotations

import re
from collections.abc import Iterator

from comity.policies.answers.decision import Verdict
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.statement import Location, Statement

LABEL = b".training-mining"
ENTRIES = {
    b"data_mining": "cawg:data-mining",
    b"ai_training": "cawg:ai-training",
    b"ai_generative_training": "cawg:ai-generative-training",
    b"ai_inference": "cawg:ai-inference",
}
REFUSING = (b"notAllowed", b"constrained")
MAX_ASSERTIONS = 100  # assertions of a file; each ingredient of an image may have one
MAX_ASSERTION = 64 * 1024  # octets of an assertion
MAX_ENTRIES = 100  # entries of an assertion
MAX_SEGMENTS = 5000  # segments of JPEG before its image

# A description box: its type, a UUID, flags, and the label.
_DESCRIPTION = re.compile(rb"jumd.{17}(?:cawg|c2pa)\.training-mining(?:__\d{1,9})?\0", re.DOTALL)
_ENTRY = re.compile(
    rb"(?:cawg|c2pa)\.(data_mining|ai_training|ai_generative_training|ai_inference)(?![a-z_])"
)
# The member `use`: text strings of CBOR, which begin with their length, or JSON.
_USE = re.compile(
    rb"\x63use(?:\x67(allowed)|\x6a(notAllowed)|\x6b(constrained))"
    rb"|\"use\"\s{0,9}+:\s{0,9}+\"(?:(allowed)|(notAllowed)|(constrained))\""
)


def statements(body: bytes) -> tuple[Statement, ...]:
    """Return the refusals in the manifests of a file. It never raises."""
    if b"jumb" not in body:
        return ()
    found: dict[Statement, None] = {}
    for number, assertion in enumerate(_assertions(_joined(body))):
        if assertion is None or number == MAX_ASSERTIONS:
            found |= dict.fromkeys(_unread("an assertion that cannot be read"))
            if assertion is not None:
                break
        else:
            found |= dict.fromkeys(_of_assertion(assertion))
    return tuple(found)


def _joined(body: bytes) -> bytes:
    """Return a file with the parts of its manifests next to each other."""
    if body.startswith(b"\xff\xd8"):
        return _of_jpeg(body)
    return _of_gif(body) if body.startswith(b"GIF8") else body


def _of_jpeg(body: bytes) -> bytes:
    """Return the boxes in segments APP11, each of which repeats the head of its box."""
    boxes: dict[bytes, bytearray] = {}
    place = 2
    for _ in range(MAX_SEGMENTS):
        marker = body[place : place + 2]
        if marker[:1] != b"\xff" or marker in (b"\xff\xda", b"\xff\xd9"):
            break
        length = int.from_bytes(body[place + 2 : place + 4])
        segment = body[place + 4 : place + 2 + length]
        if marker == b"\xff\xeb" and segment.startswith(b"JP"):
            number, data = segment[2:4] + segment[8:16], segment[8:]
            if number in boxes:
                boxes[number] += data[8:]
            else:
                boxes[number] = bytearray(data)
        place += 2 + max(2, length)
    return b"".join(boxes.values())


def _of_gif(body: bytes) -> bytes:
    """Return the data of the application extensions of C2PA, which is in blocks of 255 octets."""
    parts = []
    for head in re.finditer(rb"!\xff\x0bC2PA_GIF.{3}", body, re.DOTALL):
        place = head.end()
        while place < len(body) and (length := body[place]):
            parts.append(body[place + 1 : place + 1 + length])
            place += 1 + length
        if len(parts) > MAX_SEGMENTS * 100:
            break
    return b"".join(parts)


def _assertions(boxes: bytes) -> Iterator[bytes | None]:
    """Yield the content of each assertion. None: it cannot be read."""
    for description in _DESCRIPTION.finditer(boxes):
        start = description.start() - 4
        length = int.from_bytes(boxes[max(0, start) : start + 4])
        box = start + length
        size, kind = int.from_bytes(boxes[box : box + 4]), boxes[box + 4 : box + 8]
        is_whole = length >= len(description[0]) + 4 and box + size <= len(boxes)
        if is_whole and kind in (b"cbor", b"json") and 8 < size <= MAX_ASSERTION:
            yield boxes[box + 8 : box + size]
        else:
            yield None


def _of_assertion(data: bytes) -> Iterator[Statement]:
    entries = list(_ENTRY.finditer(data))
    if b"entries" not in data or len(entries) > MAX_ENTRIES:
        yield from _unread("an assertion that cannot be read")
        return
    for number, entry in enumerate(entries, 1):
        end = entries[number].start() if number < len(entries) else len(data)
        uses = [use for found in _USE.findall(data[entry.end() : end]) for use in found if use]
        refusing = [use for use in REFUSING if use in uses]
        if refusing:
            yield _refusal(entry[1], "cawg.not-allowed", entry[0], refusing[0])
        elif not uses:
            yield _refusal(entry[1], "cawg.unread", entry[0], b"no use that can be read")


def _refusal(name: bytes, rule: str, label: bytes, use: bytes) -> Statement:
    location = Location(part="C2PA", text=printable(label + b": " + use))
    return Statement(ENTRIES[name], Verdict.DENY, rule, location)


def _unread(text: str) -> Iterator[Statement]:
    location = Location(part="C2PA", text=text)
    for term in ENTRIES.values():
        yield Statement(term, Verdict.DENY, "cawg.unread", location)
