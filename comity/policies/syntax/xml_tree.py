"""XML from a site, as a tree of lxml: without DTDs and entities, and bounded (RSL-3).

    read(body)              the tree
    root_name(body)         what the root element is called, without a tree
    local_name(element)     and namespace, own_text, attributes, plain_attributes: what those who read an element need of it

libxml2 expands entities, reads files and lets declarations add attributes, so nothing behind `<!DOCTYPE` is ever read: a first
look ends there, or at the root. The second one builds the tree, stopped where there is too much of it. Lines are counted here:
those of libxml2 are where a start tag ends, and need not be right above 65,535."""

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
MAX_DEPTH = 50  # elements within each other
MAX_ATTRIBUTES = 250  # of an element
MAX_NAMESPACE = 1000  # characters; each element has a copy

_FEW = 100  # attributes, that are read sooner than looked for
_CHUNK = 64 * 1024  # octets between two looks at the limits
_OPTIONS = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}
_LINE_END = re.compile(r"\r\n?")
# In what is well-formed `<` stands nowhere else. Start tags, and a DTD, are what two characters match.
_MARKUP = re.compile(r"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[.*?\]\]>|<[^/]", re.DOTALL)
_ROOT = re.compile(
    rb"(?:\xef\xbb\xbf)?+(?:\s++|<!--(?:[^-]++|-(?!->))*+-->|<\?(?:[^?]++|\?(?!>))*+\?>)*+<(?:[\w.-]++:)?+([\w.-]++)[\s/>]"
)
_UNICODE = frozenset(("utf-8", "utf-16", "utf-16-le", "utf-16-be"))
_OCTETS = bytes(range(256))
_NO_ENCODING = "the encoding is none that is read"


class XmlError(ValueError):
    """A document that is not read. `is_limit`: it is too large."""

    def __init__(self, message: str, line: int = 0, *, is_limit: bool = False) -> None:
        super().__init__(message)
        self.line = line  # 1-based; 0: no line
        self.is_limit = is_limit


class XmlTree(NamedTuple):
    """A document. It has no comments and no instructions."""

    root: Any  # element (lxml)
    lines: Mapping[Any, int]  # element -> where its start tag begins, 1-based


def local_name(element: Any) -> str:
    """The name without its prefix."""
    name: str = element.tag
    return name.rpartition("}")[2]


def root_name(body: bytes) -> str:
    """Return the name of the root element without its prefix, by a look at the octets before it; "" where there is none."""
    match = _ROOT.match(body)
    return match[1].decode("ascii") if match else ""


def namespace(element: Any) -> str:
    """The namespace of the name; "": none."""
    name: str = element.tag
    return name.rpartition("}")[0].removeprefix("{")


def attributes(element: Any) -> list[tuple[str, str]]:
    """The names of its attributes, as lxml writes them, and their values, in their order; none of a comment. Linear in their
    number: `items()` and `values()` of lxml look for each value by its name, which takes the square of it."""
    if len(element.attrib) <= _FEW:
        pairs: list[tuple[str, str]] = element.items()
        return pairs
    return [(value.attrname, str(value)) for value in element.xpath("@*")]


def plain_attributes(element: Any) -> dict[str, str]:
    """The attributes in no namespace."""
    return {name: value for name, value in attributes(element) if not name.startswith("{")}


def own_text(element: Any) -> str:
    """The text without that of the element's children."""
    return "".join((element.text or "", *(child.tail or "" for child in element)))


def read(
    body: bytes, *, cut: bool = False, max_bytes: int = MAX_BYTES, max_elements: int = MAX_ELEMENTS
) -> XmlTree:
    """The tree. `cut`: there is more. XmlError where there is none, and for any DTD; linear in the octets."""
    if cut or len(body) > max_bytes:
        raise XmlError(f"the document has more than {max_bytes} octets", is_limit=True)
    if _has_dtd(body):
        raise XmlError("the document has a DTD", next(_lines(body, ()), 0))
    # Without `recover` lxml stops at what _error_of passes over, and goes on after an unbound prefix where a warning follows.
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
    if len(lines) != len(
        elements
    ):  # after some errors libxml2 does not look at what stands behind the root
        raise XmlError("there is something else than one element and what is in it")
    return XmlTree(elements[0], dict(zip(elements, lines, strict=True)))


def _too_much(limit: str, body: bytes, elements: Sequence[Any]) -> XmlError:
    """Return the error of a limit. `elements`: those before the one that is too much."""
    line = next(islice(_lines(body, elements), len(elements), None), 0)
    return XmlError(f"the document has more than {limit}", line, is_limit=True)


class _Prologue:  # a target of lxml, whose methods have the names that it calls
    """The prologue: what stands before the root."""

    is_over = False

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        raise XmlError(
            "the document has a DTD"
        )  # which stops the parser before it reads what is declared

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self.is_over = True

    def close(self) -> None:
        """End the prologue: nothing is built."""


def _has_dtd(body: bytes) -> bool:
    """Return whether there is a DTD.

    XmlError for what is no XML before the root: with `recover` a parser would read a DTD behind it."""
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
                f"this is no XML: {str(error.msg).strip()[:200]}", error.lineno or 0
            ) from None
    return False


def _chunks(body: bytes) -> Iterator[bytes]:
    """Yield the parts of it, and b"" at the end."""
    return (body[start : start + _CHUNK] for start in range(0, len(body) + _CHUNK, _CHUNK))


def _feed(parser: Any, chunk: bytes) -> None:
    """Let the parser go on; b"": there is no more, which it waits for with the last octets."""
    if chunk:
        parser.feed(chunk)
    else:
        parser.close()


def _error_of(parser: Any, chunk: bytes) -> XmlError | None:
    """Return the error in the chunk, but for namespaces that are no URIs, which harm nobody. What stands before that is read."""
    try:
        _feed(parser, chunk)
    except etree.XMLSyntaxError:
        return XmlError("this is no XML: there is no element")
    errors = parser.feed_error_log.filter_from_errors()
    entry = next((entry for entry in errors if entry.type != etree.ErrorTypes.WAR_NS_URI), None)
    return XmlError(f"this is no XML: {entry.message.strip()[:200]}", entry.line) if entry else None


def _lines(body: bytes, elements: Sequence[Any]) -> Iterator[int]:
    """Yield the line of each start tag, or of the DTD, as far as the document is well-formed.

    `elements`: of the document, from the first one; () where it has not been read."""
    declared = elements[0].getroottree().docinfo.encoding if elements else None
    text = _LINE_END.sub("\n", _decoded(body, read_bom(body)[0] or declared or "utf-8"))
    line, position = 1, 0
    for match in _MARKUP.finditer(text):
        if match.end() - match.start() == 2:
            line += text.count("\n", position, match.start())
            position = match.start()
            yield line


def _decoded(body: bytes, encoding: str) -> str:
    """Return the text. XmlError for the encodings of several octets that are not Unicode's: programs read them differently."""
    try:
        is_read = codecs.lookup(encoding).name in _UNICODE or len(
            _OCTETS.decode(encoding, "replace")
        ) == len(_OCTETS)
    except LookupError:
        is_read = False
    text = body.decode(encoding, "replace") if is_read else "\0"
    if "\0" in text:  # no character of XML: libxml2 has taken it for UTF-16
        raise XmlError(_NO_ENCODING, 1)
    return text
