"""Stands in for `lxml.etree` and parsel in an exported page. Pyodide from npm comes without lxml.

It reads well-formed XML without a DTD with expat. In all other cases, and for all other parts of
lxml, it raises NeedsLxml, so that nothing is read in another way than lxml reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from xml.parsers import expat

MAX_DEPTH = 250  # of nested elements; libxml2 refuses from 256 on


class NeedsLxml(BaseException):  # it ends a computation, as KeyboardInterrupt does
    """The answer depends on something that only lxml can read.

    It is no Exception: a handler of errors in files must not take it for one."""


class XMLSyntaxError(Exception):
    """The error of lxml. It is never raised: see NeedsLxml."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # questions of the import system
        raise AttributeError(name)
    raise NeedsLxml(name)


def Comment() -> None:  # noqa: N802  # the name in lxml
    """The tag of comments, as in lxml."""


def ProcessingInstruction() -> None:  # noqa: N802  # the name in lxml
    """The tag of processing instructions, as in lxml."""


class Tree:
    """A document. It is its own `docinfo`."""

    def __init__(self) -> None:
        self.encoding: str | None = None
        self.docinfo = self
        self.root: Node | None = None
        self.before: list[Node] = []  # the comments and instructions before the root
        self.after: list[Node] = []  # those behind it

    def getroot(self) -> Node | None:
        return self.root


class Node(list["Node"]):
    """An element or a comment, and its children."""

    def __init__(self, tag: Any, attrib: dict[str, str], parent: Node | None, tree: Tree) -> None:
        super().__init__()
        self.tag = tag
        self.attrib = attrib
        self.text: str | None = None
        self.tail: str | None = None
        self._parent = parent
        self._tree = tree

    __hash__ = object.__hash__  # type: ignore[assignment]  # a node is equal to itself alone

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __getattr__(self, name: str) -> Any:
        return __getattr__(name)

    def get(self, name: str, default: str | None = None) -> str | None:
        return self.attrib.get(name, default)

    def items(self) -> list[tuple[str, str]]:
        return [*self.attrib.items()]

    def getparent(self) -> Node | None:
        return self._parent

    def getroottree(self) -> Tree:
        return self._tree

    def iter(self, *names: str) -> Iterator[Node]:
        """Yield the node and all below it, in the order of the document.

        `names`: names of elements; `*` stands for any name, or any namespace. None: all nodes."""
        stack = [self]
        while stack:
            node = stack.pop()
            if not names or any(_is_named(node.tag, name) for name in names):
                yield node
            stack.extend(reversed(node))

    def iterdescendants(self, *names: str) -> Iterator[Node]:
        return (node for node in self.iter(*names) if node is not self)

    def itersiblings(self, *, preceding: bool = False) -> Iterator[Node]:
        """Yield the comments and instructions around the root. NeedsLxml: this is not the root."""
        if self._tree.root is not self:
            raise NeedsLxml("itersiblings")
        yield from reversed(self._tree.before) if preceding else self._tree.after

    def itertext(self) -> Iterator[str]:
        if self.text:
            yield self.text
        for child in self:
            if isinstance(child.tag, str):
                yield from child.itertext()
            if child.tail:
                yield child.tail


def _is_named(tag: Any, name: str) -> bool:
    if not isinstance(tag, str):
        return False
    space, _, local = tag.rpartition("}")
    wanted_space, is_qualified, wanted = name.rpartition("}")
    if wanted not in ("*", local):
        return False
    return name == "*" or wanted_space == "{*" or (wanted_space if is_qualified else "") == space


class QName:
    """The name of an element."""

    def __init__(self, node: Node) -> None:
        self.localname = node.tag.rpartition("}")[2]


def cleanup_namespaces(root: Node) -> None:
    """Do nothing, because nodes have no declarations of namespaces."""


class XMLParser:
    """A parser of one document."""

    def __init__(self, *, target: Any = None, remove_comments: bool = False, **_: bool) -> None:
        self._target = target
        self._has_comments = not remove_comments
        self._tree = Tree()
        self._open: list[Node] = []
        self._last: Node | None = None  # the last node that has ended; its tail is open
        self.events: list[tuple[str, Any]] = []
        parser = self._parser = expat.ParserCreate(namespace_separator="}")
        parser.buffer_text = True
        parser.ordered_attributes = True
        parser.XmlDeclHandler = self._declare
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartNamespaceDeclHandler = self._namespace
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.CommentHandler = lambda text: self._other(Comment, text)
        parser.ProcessingInstructionHandler = lambda _, text: self._other(
            ProcessingInstruction, text
        )

    def feed(self, chunk: bytes) -> None:
        self._parse(chunk, is_last=False)

    def close(self) -> Node | None:
        self._parse(b"", is_last=True)
        return self._tree.root

    def _parse(self, chunk: bytes, *, is_last: bool) -> None:
        try:
            self._parser.Parse(chunk, is_last)
        except (expat.ExpatError, LookupError, ValueError) as error:
            raise NeedsLxml(str(error)) from None

    def _declare(self, version: str, encoding: str | None, standalone: int) -> None:
        self._tree.encoding = encoding

    def _doctype(self, name: str, system: str | None, public: str | None, has_subset: int) -> None:
        if self._target is None:
            raise NeedsLxml("a DTD")
        self._target.doctype(name, public, system)

    def _namespace(self, prefix: str | None, uri: str | None) -> None:
        self.events.append(("start-ns", (prefix or "", uri or "")))

    def _start(self, name: str, attributes: Sequence[str]) -> None:
        pairs = dict(zip(map(_lxml_name, attributes[::2]), attributes[1::2], strict=True))
        if self._target is not None:
            self._target.start(_lxml_name(name), pairs)
            return
        if len(self._open) == MAX_DEPTH:
            raise NeedsLxml("a deep document")
        node = self._add(Node(_lxml_name(name), pairs, self._parent, self._tree))
        if self._tree.root is None:
            self._tree.root = node
        self._open.append(node)
        self._last = None
        self.events.append(("start", node))

    def _end(self, name: str) -> None:
        if self._target is None:
            self._last = self._open.pop()
            self.events.append(("end", self._last))

    def _text(self, text: str) -> None:
        if self._last is not None:
            self._last.tail = (self._last.tail or "") + text
        elif self._open:
            self._open[-1].text = (self._open[-1].text or "") + text

    def _other(self, tag: Any, text: str) -> None:
        if not self._has_comments or self._target is not None:
            return
        node = Node(tag, {}, self._parent, self._tree)
        node.text = text
        if self._open:
            self._last = self._add(node)
        else:
            (self._tree.before if self._tree.root is None else self._tree.after).append(node)

    @property
    def _parent(self) -> Node | None:
        return self._open[-1] if self._open else None

    def _add(self, node: Node) -> Node:
        if self._open:
            self._open[-1].append(node)
        return node


def _lxml_name(name: str) -> str:
    return f"{{{name}" if "}" in name else name


class _NoErrors:
    """The errors of a parser. There are none, because an error ends the computation."""

    def filter_from_errors(self) -> tuple[()]:
        return ()


class XMLPullParser(XMLParser):
    """A parser that tells what it has read."""

    feed_error_log = _NoErrors()

    def __init__(self, events: Sequence[str], *, remove_comments: bool, **_: bool) -> None:
        """`events`: start, end and start-ns are told."""
        super().__init__(remove_comments=remove_comments)

    def read_events(self) -> list[tuple[str, Any]]:
        events, self.events = self.events, []
        return events


class iterwalk:  # noqa: N801  # the name in lxml
    """The events of a walk over a tree: start and end of elements, comment, and pi."""

    def __init__(self, top: Node, *, events: Sequence[str]) -> None:
        """`events`: all events of this class are told."""
        self._stack = [("start", top)]
        self._skips = False

    def skip_subtree(self) -> None:
        """Leave out the children of the element that has just started."""
        self._skips = True

    def __iter__(self) -> Iterator[tuple[str, Node]]:
        while self._stack:
            event, node = self._stack.pop()
            self._skips = False
            if event == "end":
                yield event, node
            elif isinstance(node.tag, str):
                yield event, node
                self._stack.append(("end", node))
                if not self._skips:
                    self._stack.extend(("start", child) for child in reversed(node))
            else:
                yield "comment" if node.tag is Comment else "pi", node


# XPath -> a test of an element.
_QUERIES: dict[str, Callable[[Node], bool]] = {
    "//main | //*[@role='main']": lambda node: node.tag == "main" or node.get("role") == "main",
    "//article": lambda node: node.tag == "article",
    "//body": lambda node: node.tag == "body",
}


class Selector:
    """Stands in for the selector of parsel, for the queries of the main text alone."""

    def __init__(self, *, root: Node, type: str = "html") -> None:  # noqa: A002  # as in parsel
        self.root = root

    def xpath(self, query: str, **_: str) -> list[Selector]:
        """Return the elements that a query selects. NeedsLxml: the query is another one."""
        if query not in _QUERIES:
            raise NeedsLxml(query)
        return [Selector(root=node) for node in self.root.iter("*") if _QUERIES[query](node)]


def fromstring(body: bytes, parser: XMLParser) -> Node:
    """Return the root of a document."""
    parser.feed(body)
    root = parser.close()
    assert root is not None  # a document without an element is an error of expat
    return root
