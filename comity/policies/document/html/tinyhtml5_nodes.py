"""The nodes that tinyhtml5 builds a tree of, and the stack of its open elements.

The nodes of tinyhtml5 itself keep their children and texts in lists and strings, so that a hostile
page takes the square of its length. These have links to their siblings instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tinyhtml5.constants import namespaces, scoping_elements
from tinyhtml5.treebuilder import TreeBuilder, _list_elements

from comity.policies.document.html.tree import UnreadError

HTML: str = namespaces["html"]
# Nodes that are no elements have these names.
TEXT, COMMENT, DOCTYPE, DOCUMENT = "#text", "#comment", "#doctype", "#document"
# Open elements. Browsers limit the depth of the tree to 512 elements.
MAX_OPEN = 512
# Variant of a scope -> names of the elements at which it ends (section-13.2.4.2).
_SELECT = frozenset(((HTML, "select"),))
_SCOPES = {
    variant: frozenset(names if variant == "table" else {*names, *scoping_elements, *_SELECT})
    for variant, (names, _) in _list_elements.items()
    if variant != "select"
}
_IMPLIED = frozenset(("dd", "dt", "li", "optgroup", "option", "p", "rb", "rp", "rt", "rtc"))


class Node:
    """An element, text, comment, doctype, or the document.

    Attributes:
        local: its name in lower case (names of SVG have capitals), or one of TEXT, COMMENT, ...
        name: the same, with the namespace before it if that is not HTML. tinyhtml5 compares names
            alone where the standard means elements of HTML.
        name_tuple: namespace and local name.
        attributes: name as written -> value.
        parts: the text, in parts.
        start: offset of the start tag in the text of the page. -1: there is none.
        end: offset behind the start tag."""

    __slots__ = (
        *("after", "attributes", "before", "end", "first", "last", "local", "name"),
        *("name_tuple", "namespace", "parent", "parts", "start"),
    )

    def __init__(self, local: str, namespace: str = HTML, text: str = "") -> None:
        self.local = local
        self.namespace = namespace
        self.name = local if namespace == HTML else f"{namespace} {local}"
        self.name_tuple = (namespace, local)
        self.attributes: dict[str, str] = {}
        self.parts = [text]
        self.start = self.end = -1
        self.parent: Node | None = None
        self.first: Node | None = None
        self.last: Node | None = None
        self.before: Node | None = None
        self.after: Node | None = None

    @property
    def is_element(self) -> bool:
        return self.local[0] != "#"

    def append_child(self, node: Node) -> None:
        self.insert_before(node, None)

    def insert_before(self, node: Node, reference: Node | None) -> None:
        """Insert a node without a parent before a child. None: behind all children."""
        before = reference.before if reference else self.last
        node.parent, node.before, node.after = self, before, reference
        if before:
            before.after = node
        else:
            self.first = node
        if reference:
            reference.before = node
        else:
            self.last = node

    def remove_child(self, node: Node) -> None:
        if node.before:
            node.before.after = node.after
        else:
            self.first = node.after
        if node.after:
            node.after.before = node.before
        else:
            self.last = node.before
        node.parent = node.before = node.after = None

    def detach(self) -> None:
        if self.parent:
            self.parent.remove_child(self)

    def insert_text(self, text: str, insert_before: Node | None = None) -> None:
        before = insert_before.before if insert_before else self.last
        if before and before.local == TEXT:
            before.parts.append(text)
        else:
            self.insert_before(Node(TEXT, text=text), insert_before)

    def move_children(self, parent: Node, before: Node | None = None) -> None:
        """Move the children to another parent, before one of its children. None: to the end."""
        child = self.first
        while child:
            following = child.after
            self.remove_child(child)
            parent.insert_before(child, before)
            child = following

    def clone(self) -> Node:
        """Return an element with the same name and attributes, without children."""
        node = Node(self.local, self.namespace)
        node.attributes = dict(self.attributes)
        return node

    def walk(self) -> Iterator[tuple[Node, bool]]:
        """Yield each node inside twice: True where it begins, False where it ends."""
        node = self.first
        while node:
            yield node, True
            if node.first:
                node = node.first
                continue
            yield node, False
            while not node.after:
                if node.parent is None or node.parent is self:
                    return
                node = node.parent
                yield node, False
            node = node.after

    def elements(self) -> Iterator[Node]:
        """Yield the elements inside, in the order of the document."""
        return (node for node, begins in self.walk() if begins and node.is_element)

    @property
    def text(self) -> str:
        """The text of this node and of those inside, without comments."""
        if not self.first:
            return "".join(self.parts)
        return "".join(
            part
            for node, begins in self.walk()
            if begins and node.local == TEXT
            for part in node.parts
        )


class Builder(TreeBuilder):
    """The tree builder of tinyhtml5, with nodes of this module."""

    def reset(self) -> None:
        super().reset()
        self.document = Node(DOCUMENT)

    def create_element(self, token: Mapping[str, Any]) -> Node:
        node = Node(token["name"], token.get("namespace", HTML))
        node.attributes = {
            name if isinstance(name, str) else ":".join(filter(None, name[:2])): value
            for name, value in token["data"].items()
        }
        node.start, node.end = token.get("start", -1), token.get("end", -1)
        return node

    def insert_element_normal(self, token: Mapping[str, Any]) -> Node:
        node = self.create_element(token)
        self.open_elements[-1].append_child(node)
        self.push(node)
        return node

    def insert_element_table(self, token: Mapping[str, Any]) -> Node:
        node: Node = super().insert_element_table(token)
        self.push(self.open_elements.pop())
        return node

    def push(self, node: Node) -> None:
        """Add an open element. UnreadError: there are too many."""
        if len(self.open_elements) >= MAX_OPEN:
            raise UnreadError
        self.open_elements.append(node)

    def insert_comment(self, token: Mapping[str, Any], parent: Node) -> None:
        parent.append_child(Node(COMMENT, text=token["data"]))

    def insert_doctype(self, token: Mapping[str, Any]) -> None:
        node = Node(DOCTYPE, text=token["name"] or "")
        node.attributes = {
            name: token[name] for name in ("publicId", "systemId") if token[name] is not None
        }
        self.document.append_child(node)

    def element_in_scope(self, target: str | Node, variant: str | None = None) -> bool:
        """Return True if an element, or one of HTML with this name, is in scope.

        `variant`: "button", "list" or "table" (section-13.2.4.2). The `html` at the start of the
        stack ends every scope."""
        ends = _SCOPES[variant]
        for node in reversed(self.open_elements):
            if node is target or node.name == target:
                return True
            if node.name_tuple in ends:
                return False
        return False

    def generate_implied_end_tags(self, exclude: str | None = None) -> None:
        while (name := self.open_elements[-1].name) in _IMPLIED and name != exclude:
            self.open_elements.pop()
