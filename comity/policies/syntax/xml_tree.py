"""XML from a site, as a tree: without DTDs and entities, and bounded (RSL-3).

read(body)      the root element"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol
from xml.sax import SAXException
from xml.sax.handler import ContentHandler, feature_namespaces

from defusedxml.expatreader import DefusedExpatParser

from comity.policies.syntax.lines import MAX_BYTES

MAX_ELEMENTS = 20_000  # of a document
MAX_DEPTH = 50  # elements within each other


class XmlError(ValueError):
    """Why a document is not read. `is_limit`: it is too large."""

    def __init__(self, why: str, line: int = 0, *, is_limit: bool = False) -> None:
        super().__init__(why)
        self.line = line  # 1-based; 0: no line
        self.is_limit = is_limit


@dataclass(slots=True)
class Element:
    namespace: str  # "": none
    name: str  # without its prefix
    line: int  # 1-based, where it begins
    attributes: dict[str, str] = field(default_factory=dict)  # those in no namespace
    children: list[Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its own, without that of its children."""
        return "".join(self.pieces).strip()

    def named(self, name: str) -> Iterator[Element]:
        """The elements of that name in it, in the order of their start tags."""
        pending = [*reversed(self.children)]
        while pending:
            element = pending.pop()
            if element.name == name:
                yield element
            pending += reversed(element.children)


class _Attributes(Protocol):
    def items(self) -> list[tuple[tuple[str | None, str], str]]: ...


class _Builder(ContentHandler):  # its methods have the names of xml.sax
    """The tree, as far as it is read."""

    def __init__(self, parser: DefusedExpatParser, max_elements: int) -> None:
        super().__init__()
        self.root: Element | None = None
        self._parser = parser
        self._open: list[Element] = []
        self._left = self._max_elements = max_elements

    def startElementNS(self, name: tuple[str | None, str], qname: str | None, attrs: _Attributes) -> None:  # noqa: N802
        line = self._parser.getLineNumber() or 0
        self._left -= 1
        if self._left < 0 or len(self._open) == MAX_DEPTH:
            limits = f"more than {self._max_elements} elements, or more than {MAX_DEPTH} within each other"
            raise XmlError(f"the document has {limits}", line, is_limit=True)
        attributes = {key: value for (namespace, key), value in attrs.items() if not namespace}
        element = Element(name[0] or "", name[1], line, attributes)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def endElementNS(self, name: tuple[str | None, str], qname: str | None) -> None:  # noqa: N802
        self._open.pop()

    def characters(self, content: str) -> None:
        self._open[-1].pieces.append(content)


def read(body: bytes, *, cut: bool = False, max_bytes: int = MAX_BYTES, max_elements: int = MAX_ELEMENTS) -> Element:
    """The root. `cut`: there is more. XmlError where there is none, and for any DTD; linear in the octets."""
    if cut or len(body) > max_bytes:
        raise XmlError(f"the document has more than {max_bytes} octets", is_limit=True)
    parser = DefusedExpatParser(forbid_dtd=True)
    builder = _Builder(parser, max_elements)
    parser.setFeature(feature_namespaces, True)
    parser.setContentHandler(builder)
    try:
        parser.feed(body)
        parser.close()
    except XmlError:
        raise
    except (SAXException, ValueError, LookupError, RecursionError) as error:
        raise XmlError(_why(error), parser.getLineNumber() or 0) from None
    assert builder.root is not None  # without one the parser raises
    return builder.root


def _why(error: Exception) -> str:
    if isinstance(error, SAXException):
        return f"this is no XML: {error.getMessage()}"
    return "the document has a DTD" if type(error).__name__ == "DTDForbidden" else "the encoding is none that is read"
