"""Read XML from a site as a tree of lxml, bounded, without DTDs and entities (RSL-3).

    read(body)              the tree
    root_name(body)         the name of the root element, without a tree
    local_name(element)     parts of an element, like namespace, own_text, attributes and
                            plain_attributes

A DTD can make libxml2 expand entities, read files and add attributes. Therefore documents with
`<!DOCTYPE` are refused. A first pass looks for it, and ends there or at the root. A second pass
builds the tree, and stops if it is too large. Line numbers are counted here, because libxml2 gives
the line where a start tag ends, and may be wrong above 65,535."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from lxml import etree  # type: ignore[import-untyped]  # it ships no types
from w3lib.encoding import read_bom

from comity.policies.syntax.lines import MAX_BYTES

MAX_ELEMENTS = 20_000  # of a document
MAX_DEPTH = 50  # of nested elements
MAX_ATTRIBUTES = 250  # of an element
MAX_NAMESPACE = 1000  # characters; lxml copies the namespace into the name of each element

_FEW = 100  # attributes for which lxml's own access is faster
_CHUNK = 64 * 1024  # octets between two checks of the limits
_OPTIONS = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}
_LINE_END = re.compile(r"\r\n?")
# All places with a `<` in well-formed XML, except end tags. A match of two characters is the start
# of a start tag or of a DTD; longer ones are comments, instructions and CDATA.
_MARKUP = re.compile(r"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[.*?\]\]>|<[^/]", re.DOTALL)
_ROOT = re.compile(
    rb"(?:\xef\xbb\xbf)?+(?:\s++|<!--(?:[^-]++|-(?!->))*+-->|<\?(?:[^?]++|\?(?!>))*+\?>)*+"
    rb"<(?:[\w.-]++:)?+([\w.-]++)[\s/>]"
)
_UNICODE = frozenset(("utf-8", "utf-16", "utf-16-le", "utf-16-be"))
_OCTETS = bytes(range(256))
_NO_ENCODING = "the encoding is not supported"


class XmlError(ValueError):
    """A document that cannot be read.

    Attributes:
        line: 1-based line number. 0: no line.
        is_limit: True if the document is too large."""

    def __init__(self, message: str, line: int = 0, *, is_limit: bool = False) -> None:
        super().__init__(message)
        self.line = line
        self.is_limit = is_limit


class XmlTree(NamedTuple):
    """A document without comments and processing instructions.

    Attributes:
        root: the root element (lxml).
        lines: element -> 1-based line where its start tag begins."""

    root: Any
    lines: Mapping[Any, int]


def local_name(element: Any) -> str:
    """Return the name of an element without its prefix."""
    name: str = element.tag
    return name.rpartition("}")[2]


def root_name(body: bytes) -> str:
    """Return the name of the root element without its prefix; "": there is none.

    Only the octets before it are read."""
    match = _ROOT.match(body)
    return match[1].decode("ascii") if match else ""


def namespace(element: Any) -> str:
    """Return the namespace of an element; "": none."""
    name: str = element.tag
    return name.rpartition("}")[0].removeprefix("{")


def attributes(element: Any) -> list[tuple[str, str]]:
    """Return the attributes of an element in order, with names as lxml writes them.

    A comment has none. The time is linear in the number of attributes. With `items()` and
    `values()` of lxml it is quadratic, because they look up each value by its name."""
    if len(element.attrib) <= _FEW:
        pairs: list[tuple[str, str]] = element.items()
        return pairs
    return [(value.attrname, str(value)) for value in element.xpath("@*")]


def plain_attributes(element: Any) -> dict[str, str]:
    """Return name -> value of the attributes without a namespace."""
    return {name: value for name, value in attributes(element) if not name.startswith("{")}


def own_text(element: Any) -> str:
    """Return the text of an element without that of its children."""
    return "".join((element.text or "", *(child.tail or "" for child in element)))


def read(
    body: bytes, *, cut: bool = False, max_bytes: int = MAX_BYTES, max_elements: int = MAX_ELEMENTS
) -> XmlTree:
    """Parse a document, in a time linear in its octets.

    `cut`: True if the end of the body is missing. XmlError: the document is cut off, not
    well-formed, or too large, or has a DTD."""
    if cut or len(body) > max_bytes:
        raise XmlError(f"the document has more than {max_bytes} octets", is_limit=True)
    if _has_dtd(body):
        raise XmlError("the document has a DTD", next(_lines(body, ()), 0))
    # `recover` reports all errors to _error_of, which decides. Without it lxml stops at errors that
    # _error_of ignores, and does not stop at an unbound prefix if a warning follows.
    tree_options = {"recover": True, "remove_comments": True, "remove_pis": True}
    parser = etree.XMLPullParser(("start", "end", "start-ns"), **tree_options, **_OPTIONS)
    elements: list[Any] = []
    depth = 0
    for chunk in _chunks(body):
        error = _error_of(parser, chunk)
        for event, value in parser.read_events():
            if event == "start":
                if len(elements) == max_elements or depth == MAX_DEPTH:
                    raise _too_much(
                        f"{max_elements} elements, or more than {MAX_DEPTH} within each other",
                        body,
                        elements,
                    )
                if len(value.attrib) > MAX_ATTRIBUTES:
                    raise _too_much(f"{MAX_ATTRIBUTES} attributes of an element", body, elements)
                elements.append(value)
                depth += 1
            elif event == "end":
                depth -= 1
            elif len(value[1]) > MAX_NAMESPACE:
                raise _too_much(f"{MAX_NAMESPACE} characters in a namespace", body, elements)
        if error:
            raise error
    if depth or not elements:
        raise XmlError("the document ends too early")
    lines = [*islice(_lines(body, elements), len(elements) + 1)]
    # After some errors libxml2 ignores everything behind the root.
    if len(lines) != len(elements):
        raise XmlError("there is content outside of the root element")
    return XmlTree(elements[0], dict(zip(elements, lines, strict=True)))


def _too_much(limit: str, body: bytes, elements: Sequence[Any]) -> XmlError:
    """Return the error for a limit. `elements` are those before the first one over the limit."""
    line = next(islice(_lines(body, elements), len(elements), None), 0)
    return XmlError(f"the document has more than {limit}", line, is_limit=True)


class _Prologue:  # a target of lxml, which calls these methods by name
    """The document before the root element.

    Attributes:
        is_over: True if the root has begun."""

    is_over = False

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        raise XmlError("the document has a DTD")  # stops the parser before the declarations

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self.is_over = True

    def close(self) -> None:
        """End the prologue. lxml needs this method; no tree is built."""


def _has_dtd(body: bytes) -> bool:
    """Return True if there is a DTD.

    XmlError: the text before the root is not XML. It is refused here, because the second pass uses
    `recover`, and would read a DTD behind the error."""
    prologue = _Prologue()
    parser = etree.XMLParser(target=prologue, **_OPTIONS)
    try:
        for chunk in _chunks(body):
            _feed(parser, chunk)
            if prologue.is_over:
                break
    except XmlError:
        return True
    except etree.XMLSyntaxError as error:
        if not prologue.is_over:
            raise XmlError(
                f"this is not XML: {str(error.msg).strip()[:200]}", error.lineno or 0
            ) from None
    return False


def _chunks(body: bytes) -> Iterator[bytes]:
    """Yield the parts of the body, and b"" at the end."""
    return (body[start : start + _CHUNK] for start in range(0, len(body) + _CHUNK, _CHUNK))


def _feed(parser: Any, chunk: bytes) -> None:
    """Give the parser a chunk. b"" ends the document, so that the parser reads its last octets."""
    if chunk:
        parser.feed(chunk)
    else:
        parser.close()


def _error_of(parser: Any, chunk: bytes) -> XmlError | None:
    """Feed the parser, and return the first error in the chunk, or None.

    Namespaces that are not URIs are harmless, so they are ignored. The parser has read everything
    before the error."""
    try:
        _feed(parser, chunk)
    except etree.XMLSyntaxError:
        return XmlError("this is not XML: there is no element")
    errors = parser.feed_error_log.filter_from_errors()
    entry = next((entry for entry in errors if entry.type != etree.ErrorTypes.WAR_NS_URI), None)
    return (
        XmlError(f"this is not XML: {entry.message.strip()[:200]}", entry.line) if entry else None
    )


def _lines(body: bytes, elements: Sequence[Any]) -> Iterator[int]:
    """Yield the line of each start tag, or of the DTD, as far as the document is well-formed.

    `elements`: the elements that were read so far, the root first. (): there are none yet. The root
    knows the declared encoding."""
    declared = elements[0].getroottree().docinfo.encoding if elements else None
    text = _LINE_END.sub("\n", _decode(body, read_bom(body)[0] or declared or "utf-8"))
    line, position = 1, 0
    for match in _MARKUP.finditer(text):
        if match.end() - match.start() == 2:
            line += text.count("\n", position, match.start())
            position = match.start()
            yield line


def _decode(body: bytes, encoding: str) -> str:
    """Return the text.

    XmlError: the encoding is unknown, or neither UTF-8, UTF-16 nor one with an octet for each
    character. Programs read the others differently."""
    try:
        is_read = codecs.lookup(encoding).name in _UNICODE or len(
            _OCTETS.decode(encoding, "replace")
        ) == len(_OCTETS)
    except LookupError:
        is_read = False
    text = body.decode(encoding, "replace") if is_read else "\0"
    if "\0" in text:  # not allowed in XML: libxml2 has read it as UTF-16
        raise XmlError(_NO_ENCODING, 1)
    return text
