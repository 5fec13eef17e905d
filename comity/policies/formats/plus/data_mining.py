"""The property Data Mining of PLUS in the XMP of a file.

    statements(body)    the statements of a file

The property is an element or an attribute. It is found by its namespace, without an XML parser, as
files may be cut off or damaged. Every reading of an open point is in docs/plus.md."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from comity.policies.answers.decision import Verdict
from comity.policies.document.document import is_pdf
from comity.policies.document.xmp import MAX_PACKET, MAX_TEXT, Unread, texts
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.statement import Location, Statement

NAMESPACE = b"ns.useplus.org/ldf/xmp/1.0"
MINING = "plus:data-mining"
# Key of a value -> the word of the vocabulary. The keys are in
# http://ns.useplus.org/ldf/vocab/.
PROHIBITED = {
    "DMI-PROHIBITED": MINING,
    "DMI-PROHIBITED-SEECONSTRAINT": MINING,
    "DMI-PROHIBITED-SEEEMBEDDEDRIGHTSEXPR": MINING,
    "DMI-PROHIBITED-SEELINKEDRIGHTSEXPR": MINING,
    "DMI-PROHIBITED-EXCEPTSEARCHENGINEINDEXING": "plus:data-mining-except-search",
    "DMI-PROHIBITED-AIMLTRAINING": "plus:aiml-training",
    "DMI-PROHIBITED-GENAIMLTRAINING": "plus:genaiml-training",
}
ALLOWED, UNSPECIFIED = "DMI-ALLOWED", "DMI-UNSPECIFIED"
MAX_PACKETS = 500  # packets of a file in one encoding. Each image of a PDF file may have one
MAX_VALUES = 100  # values of a packet
MAX_VALUE = 2000  # octets of a value
MAX_CONSTRAINTS = 120  # characters of the constraints that are shown

_XMLNS = re.compile(
    rb"xmlns:([A-Za-z_][\w.-]{0,50}+)\s{0,9}+=\s{0,9}+[\"']?+https?://%s" % re.escape(NAMESPACE)
)
_NAME = rb"([A-Za-z_][\w.-]{0,50}+):DataMining"
# The attribute, the empty element, or the start tag of the element. The rest of a tag that does not
# end is matched too, so that no value is lost in a file that is cut off.
_PROPERTY = re.compile(
    rb"\s%s\s{0,9}+=\s{0,9}+(?:\"([^\"<>]*+)\"|'([^'<>]*+)')?|<%s(?=[\s/>])([^<>]*+)(>?)"
    % (_NAME, _NAME)
)
_CONSTRAINTS = re.compile(
    rb":OtherConstraints\b(?:\s{0,9}+=\s{0,9}+[\"']|[^<>]{0,99}+>)((?s:.{0,1000}))"
)
_CONSTRAINTS_END = re.compile(rb"[\"']\s|</[^<>:]*:OtherConstraints")
_TAG = re.compile(rb"<[^<>]*+>")
_KEY = re.compile(r"(?:https?://ns\.useplus\.org/ldf/vocab/)?(DMI-[A-Z-]+)", re.IGNORECASE)


class _Value(NamedTuple):
    """A value of the property.

    Attributes:
        text: the value as written. "": it is empty.
        is_whole: False if its end is missing."""

    text: str
    is_whole: bool = True


def statements(body: bytes) -> tuple[Statement, ...]:
    """Return the statements of a file about data mining. It never raises."""
    found: dict[Statement, None] = {}
    for text in texts(body):
        if not isinstance(text, Unread):
            for packet in _packets(text):
                found |= dict.fromkeys(_of_packet(packet))
        # Encrypted PDF files have encrypted packets, and no statement that a reader could see.
        elif not (is_pdf(body) and b"/Encrypt" in body):
            found[_unread(text.cause)] = None
    return tuple(found)


def _packets(text: bytes) -> Iterator[bytes | None]:
    """Yield the parts of a text that declare the namespace, as UTF-8. None: there are too many."""
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        namespace, width = NAMESPACE.decode().encode(encoding), 1 + (encoding != "utf-8")
        opening, closing = "<".encode(encoding), "</rdf:RDF".encode(encoding)
        place = text.find(namespace)
        for _ in range(MAX_PACKETS):
            if place < 0:
                break
            start = text.rfind(opening, max(0, place - MAX_PACKET), place)
            start = start if start >= 0 and (place - start) % width == 0 else place
            end = text.find(closing, place, place + MAX_TEXT)
            end = end if end >= 0 else place + MAX_TEXT
            packet = text[start:end]
            yield packet if width == 1 else packet.decode(encoding, "replace").encode()
            place = text.find(namespace, end)
        if place >= 0:
            yield None


def _of_packet(packet: bytes | None) -> Iterator[Statement]:
    if packet is None:
        yield _unread(f"Only {MAX_PACKETS} packets of XMP are read.")
        return
    packet = _strip_comments(packet)
    prefixes = frozenset(_XMLNS.findall(packet))
    constraints = _constraints(packet)
    for number, value in enumerate(_values(packet, prefixes)):
        if number == MAX_VALUES:
            yield _unread(f"plus:DataMining: more than {MAX_VALUES} values")
            break
        yield from _of_value(value, constraints)


def _strip_comments(packet: bytes) -> bytes:
    first, *others = packet.split(b"<!--")
    # A `<!--` without `-->` begins no comment: the text after it may reserve the rights.
    return first + b"".join(
        part.partition(b"-->")[2] if b"-->" in part else part for part in others
    )


def _values(packet: bytes, prefixes: frozenset[bytes]) -> Iterator[_Value]:
    for match in _PROPERTY.finditer(packet):
        of_attribute, double, single, of_element, rest, end = match.groups()
        if (of_attribute or of_element) not in prefixes:
            continue
        if of_attribute:
            written = double if double is not None else single
            if written is None:
                yield _Value(_text(packet[match.end() : match.end() + MAX_VALUE]), is_whole=False)
            else:
                yield _Value(_text(written))
        elif end and not rest.rstrip().endswith(b"/"):
            content = packet[match.end() : match.end() + MAX_VALUE]
            inner, closing, _ = content.partition(b"</" + of_element + b":DataMining")
            # The value may be in an attribute of a tag: rdf:resource.
            yield _Value(_text(rest + b" " + inner), is_whole=bool(closing))
        else:
            yield _Value(_text(rest), is_whole=bool(end))


def _text(octets: bytes) -> str:
    return html.unescape(octets.decode("utf-8", "replace")).strip(" \t\r\n/")


def _of_value(value: _Value, constraints: str) -> Iterator[Statement]:
    """Yield the statements of a value. A value that is not understood refuses."""
    keys = [key.upper() for key in _KEY.findall(value.text)]
    shown = f"plus:DataMining: {', '.join(keys) or printable(value.text)}"
    location = Location(part="XMP", text=printable(f"{shown}{constraints}"))
    for key in keys:
        if key in PROHIBITED:
            yield Statement(PROHIBITED[key], Verdict.DENY, "plus.prohibited", location)
    understood = all(key in (*PROHIBITED, ALLOWED, UNSPECIFIED) for key in keys)
    if not (value.is_whole and understood) or (value.text and not keys):
        yield _unread(f"{shown}{constraints}")
    elif ALLOWED in keys:
        yield Statement(MINING, Verdict.ALLOW, "plus.allowed", location)


def _unread(text: str) -> Statement:
    location = Location(part="XMP", text=printable(text))
    return Statement(MINING, Verdict.DENY, "plus.unread", location)


def _constraints(packet: bytes) -> str:
    """Return the other constraints of the file, which travel with its tag; "": there are none."""
    match = _CONSTRAINTS.search(packet)
    if match is None:
        return ""
    text = _CONSTRAINTS_END.split(match[1], maxsplit=1)[0]
    shown = printable(" ".join(_text(_TAG.sub(b" ", text)).split())[:MAX_CONSTRAINTS])
    return f"; plus:OtherConstraints: {shown}" if shown else ""
