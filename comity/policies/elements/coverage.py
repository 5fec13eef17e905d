"""Find the parts of a document that element rules cover, and remove them.

    covered(content, rules)                        parts by CSS selectors in HTML, by dotted names
                                                   in JSON and XML (AIT-5)
    text_with_spans(content, covered)              the main text, with the covered parts (MEET-5)
    redacted(content, covered, uses, vocabulary)   the body without the refused parts

If the parts of a rule cannot be found, the rule covers the whole document (AIT-13). No function
raises an error for a document, and the time is bounded."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from lxml import etree  # type: ignore[import-untyped]  # it ships no types

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.answers.element_rule import ALL, ElementRule, is_dotted_name
from comity.policies.document.document import Content, file_types
from comity.policies.document.json_documents import JsonPath
from comity.policies.document.main_text import Span, main_text_with_spans
from comity.policies.document.selector_index import Budget, CostError, Outline, lower, tree_name
from comity.policies.document.selectors import MAX_CHARS, SelectorError, compiled, select
from comity.policies.elements.spans import merge
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.table import Vocabulary

if TYPE_CHECKING:
    from comity.policies.document.markup import Markup

# Limit of the steps for all rules of a document together. They take about half a second.
MAX_STEPS = 2_000_000
# Limit of the parts of a dotted name.
MAX_PARTS = 50
# Name of the ai.txt actions in the table of vocabularies.
VOCABULARY = "ai-txt"

# Kind of a document -> the file types of rules whose dotted names are looked up in it.
_TREES = {"html": ("xml",), "json": ("json",), "xml": ("xml",)}
_WHOLE = "covers the whole document:"
_STEPS_OF_MEMBER = 8  # for each value in which names are looked up
_FETCHING = ("crawl", "follow")  # these are not actions, so `*` does not include them


# The id of the object or array that contains a value, and the key of the value in it. The id is
# valid as long as the document exists.
JsonPlace = tuple[int, str | int]


class Covered(NamedTuple):
    """The coverage of one rule.

    Attributes:
        rule: the rule.
        nodes: elements (lxml) of HTML or XML, or JsonPaths, each once. A node may be inside
            another one.
        is_whole: True if the rule covers the whole document. It has no nodes then.
        cause: why the rule covers more than its element. "": it does not.
        places: places of the nodes in JSON, in the order of the nodes."""

    rule: ElementRule
    nodes: tuple[Any, ...] = ()
    is_whole: bool = False
    cause: str = ""
    places: tuple[JsonPlace, ...] = ()


class _WholeError(Exception):
    """The whole document is covered. The text is the cause; "": the rule says so."""


def covered(content: Content, rules: Iterable[ElementRule]) -> tuple[Covered, ...]:
    """Return the coverage of each rule, in the order of the rules. A rule may cover nothing.

    `rules`: only rules that apply to the document."""
    rules = tuple(rules)
    document = _Document(content, rules)
    by_selector: dict[tuple[str, str], Covered] = {}
    coverage = []
    for rule in rules:
        key = rule.file_type, rule.element
        if key not in by_selector:
            by_selector[key] = document.covered_by(rule)
        coverage.append(by_selector[key]._replace(rule=rule))
    return tuple(coverage)


def findings(coverage: Iterable[Covered], *, url: str = "") -> tuple[Finding, ...]:
    """Return hints about the rules that cover more than they say, each line once.

    `url` is the URL of the file with the rules."""
    parts = {
        (part.rule.line, part.rule.element): part
        for part in coverage
        if part.cause and part.rule.finding
    }
    return tuple(
        Finding(
            rule=part.rule.finding,
            message=f"`{printable(element.encode('utf-8', 'replace'))}` {part.cause}",
            url=url,
            line=line,
        )
        for (line, element), part in parts.items()
    )


class _Document:
    """A document, to find the parts that rules cover."""

    def __init__(self, content: Content, rules: Iterable[ElementRule]) -> None:
        self._content = content
        self._kind = content.kind
        types = ("", *_TREES.get(self._kind, ()))
        self._dotted = dict.fromkeys(
            rule.element for rule in rules if rule.file_type in types and rule.element != ALL
        )
        self._budget = Budget(MAX_STEPS)
        self._unread = ""  # why the document cannot be read. "": it can

    def covered_by(self, rule: ElementRule) -> Covered:
        try:
            return self._covered_by(rule)
        except CostError:
            return Covered(
                rule, is_whole=True, cause=f"{_WHOLE} it takes too long to find its elements"
            )
        except SelectorError as error:
            return Covered(
                rule,
                is_whole=True,
                cause=f"{_WHOLE} {printable(str(error).encode('utf-8', 'replace'))}",
            )
        except _WholeError as error:
            return Covered(rule, is_whole=True, cause=f"{_WHOLE} {error}" if str(error) else "")

    def _covered_by(self, rule: ElementRule) -> Covered:
        if rule.element == ALL:
            raise _WholeError
        if self._unread:
            raise _WholeError(self._unread)
        self._budget.spend(1)
        file_type = rule.file_type or self._kind
        if file_type == "html" and "html" in (self._kind, *file_types(self._content.served_as)):
            return self._by_selector(rule)
        if file_type not in _TREES.get(self._kind, ()):
            raise _WholeError(f"the document is not {file_type.upper() or 'HTML, JSON or XML'}")
        meaning = self._by_dotted_name(rule.element)
        return Covered(rule, tuple(meaning.nodes), places=tuple(meaning.places))

    def _by_selector(self, rule: ElementRule) -> Covered:
        nodes, unread = select(rule.element, self._outline), compiled(rule.element).unread
        if nodes and self._kind != "html":
            raise _WholeError(f"the document is {self._kind.upper()} that is served as HTML")
        cause = (
            f"is read without {printable(', '.join(unread).encode('utf-8', 'replace'))}"
            if unread
            else ""
        )
        root = self._outline.elements[0]
        if cause and root in nodes:
            raise _WholeError(f"it {cause}")
        return Covered(rule, tuple(self._proper(nodes, root)), cause=cause)

    def _by_dotted_name(self, name: str) -> Meaning:
        """Return the meaning of a dotted name.

        _WholeError: the name is invalid or too long, or the document cannot be read."""
        parts = name.split(".")
        if len(name) > MAX_CHARS or len(parts) > MAX_PARTS:
            raise _WholeError(
                f"the name has more than {MAX_CHARS} characters, or more than {MAX_PARTS} parts"
            )
        if not all(parts):
            raise _WholeError("it is not a dotted name")
        root, meanings = self._by_name
        self._proper(meanings[name].nodes, root, name)
        return meanings[name]

    @cached_property
    def _by_name(self) -> tuple[Any, Mapping[str, Meaning]]:
        """The root of the document, and the meanings of the dotted names of all rules."""
        names, meanings = _Names(), {name: Meaning() for name in self._dotted}
        for name, meaning in meanings.items():
            parts = name.split(".")
            self._budget.spend(2 * len(parts))
            if all(parts) and len(parts) <= MAX_PARTS:
                names.add([*map(_as_in_html, parts)] if self._kind == "html" else parts, meaning)
        if self._kind == "json":
            document, root = self._json, ()
            if isinstance(document, dict | list):
                _in_json(document, names, self._budget)
        elif self._kind == "html":  # an HTML document may be XHTML, which is XML too
            root = self._root_of(self._content.markup)
            _in_xml(root, names, self._budget, _as_in_html)
        else:
            root = self._xml
            _in_xml(root, names, self._budget, str)
        return root, meanings

    @staticmethod
    def _proper(nodes: Collection[Any], root: Any, name: str = "") -> Collection[Any]:
        """Return `nodes` unchanged, if they are a proper part of the document.

        _WholeError: one of them is the root, or there are none and `name` is not a dotted name."""
        if root in nodes:
            raise _WholeError
        if not nodes and name and not is_dotted_name(name):
            raise _WholeError("it is not a dotted name")
        return nodes

    @cached_property
    def _outline(self) -> Outline:
        is_html = self._kind == "html"
        markup = self._content.markup if is_html else self._content.html
        return Outline(
            self._root_of(markup),
            self._budget,
            any_case=markup.is_quirky,
            known=self._content.attributes if is_html else None,
        )

    def _root_of(self, markup: Markup) -> Any:
        root = markup.root
        if markup.is_unread:
            self._refuse("the document is too long or too deeply nested to be read")
        return root

    @cached_property
    def _json(self) -> Any:
        try:
            return self._content.json.value
        except ValueError as error:
            self._refuse(f"the document is not readable JSON: {type(error).__name__}")

    @cached_property
    def _xml(self) -> Any:
        try:
            root = self._content.xml.root
        except (etree.XMLSyntaxError, ValueError) as error:
            self._refuse(f"the document is not readable XML: {type(error).__name__}")
        if self._content.declares:
            self._refuse("the document declares entities or attributes")
        return root

    def _refuse(self, cause: str) -> NoReturn:
        self._unread = cause
        raise _WholeError(cause)


# Dotted names


class Meaning:
    """The meaning of a name in a document.

    Attributes:
        nodes: see `Covered`, each once.
        places: see `Covered`."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.places: list[JsonPlace] = []


class _Names:
    """A tree of dotted names by their parts, to look up all names at once."""

    def __init__(self) -> None:
        self.ends: list[Meaning] = []  # meanings of the names that end here
        self.has_numbers = False  # True if a next part is a number: it may be an index of an array
        # Part of a name, or index of an array -> a list of one tree: that of the parts behind it.
        self._ways: dict[str | int, NameNodes] = {}

    def add(self, parts: Iterable[str], meaning: Meaning) -> None:
        node = self
        for part in parts:
            behind = node._ways.setdefault(part, [_Names()])
            node.has_numbers = node.has_numbers or part.isdecimal()
            if _PLACE.fullmatch(part):
                node._ways[int(part)] = behind
            node = behind[0]
        node.ends.append(meaning)

    def next_nodes(self, key: str | int) -> NameNodes:
        """Return the tree behind a key or an array index, as a list of one; [] if there is none.

        A key with dots, as in {"a.b": 1}, is also looked up as several parts."""
        behind = self._ways.get(key, _NOTHING)
        if behind or isinstance(key, int) or "." not in key:
            return behind
        node = self
        for part in key.split("."):
            behind = node._ways.get(part, _NOTHING)
            if not behind:
                break
            node = behind[0]
        return behind


_PLACE = re.compile(r"0|[1-9][0-9]{0,8}")  # the index of an array, as written
_CONTAINERS = (dict, list)  # of JSON
# The nodes of the name tree that one place of a document has reached.
NameNodes = list[_Names]
_NOTHING: NameNodes = []


def _in_json(document: Any, names: _Names, budget: Budget) -> None:
    """Add the values in a JSON document to the meanings of their names.

    Names may leave out the indices of arrays: `a.b` is the `b` of each object in the array `a`.
    A number in a name is a key or an index."""
    # Each entry: a container, the path to it without its last step, the last step, and the nodes of
    # the name tree that the container has reached. If the step is None, the path is complete. Step
    # and path are joined only when needed: paths are long, and most values need none.
    pending: deque[tuple[Any, JsonPath, str | int | None, NameNodes]] = deque(
        [(document, (), None, [names])]
    )
    while pending:
        value, around, step, name_nodes = pending.popleft()
        steps = len(value) * (1 + (len(around) + (step is not None)) // 8)
        is_array = type(value) is list
        if is_array and not any(node.has_numbers for node in name_nodes):
            budget.spend(steps)
            path = around if step is None else (*around, step)
            pending.extend(
                (member, path, key, name_nodes)
                for key, member in enumerate(value)
                if type(member) in _CONTAINERS
            )
            continue
        budget.spend(steps + _STEPS_OF_MEMBER * len(value))
        for key, member in enumerate(value) if is_array else value.items():
            behind = (
                name_nodes[0].next_nodes(key)
                if len(name_nodes) == 1
                else [inner for node in name_nodes for inner in node.next_nodes(key)]
            )
            is_inner = (behind or is_array) and type(member) in _CONTAINERS
            if behind or is_inner:
                path = (*around, key) if step is None else (*around, step, key)
                for node in behind:
                    for meaning in node.ends:
                        meaning.nodes.append(path)
                        meaning.places.append((id(value), key))
                if is_inner:
                    inner_nodes = behind
                    if is_array:  # a name may skip this index too; equal nodes count once
                        inner_nodes = (
                            [*dict.fromkeys((*name_nodes, *behind))] if behind else name_nodes
                        )
                    pending.append((member, path, None, inner_nodes))


def _in_xml(root: Any, names: _Names, budget: Budget, as_named: Callable[[str], str]) -> None:
    """Add the elements of a document to the meanings of their names.

    A name may begin with the root's name, or with that of a child of the root. `as_named`
    normalizes the names of elements before they are compared."""
    pending: deque[tuple[Any, NameNodes]] = deque(
        [(root, [names, *_behind([names], root, as_named)])]
    )
    while pending:
        node, name_nodes = pending.popleft()
        budget.spend(2 * _STEPS_OF_MEMBER * len(node))
        pending.extend(
            (child, behind) for child in node if (behind := _behind(name_nodes, child, as_named))
        )


def _behind(name_nodes: NameNodes, node: Any, as_named: Callable[[str], str]) -> NameNodes:
    """Follow an element's name one step down the name tree, and return the nodes reached.

    `name_nodes`: the nodes that its parent has reached. If a rule's name ends at a node reached,
    the element is added to the meaning of that name."""
    keys = [*map(as_named, _names(node))]
    behind = [
        inner for name_node in name_nodes for key in keys for inner in name_node.next_nodes(key)
    ]
    for meaning in dict.fromkeys(meaning for inner in behind for meaning in inner.ends):
        meaning.nodes.append(node)
    return behind


def _as_in_html(name: str) -> str:
    """Return a name as the tree of an HTML document spells it: in lower case, and valid in XML."""
    return tree_name(lower(name))


def _names(element: Any) -> tuple[str, ...]:
    """Return the name of an element with its prefix, and without it."""
    if not isinstance(element.tag, str):  # a comment, an instruction, an entity
        return ()
    local = element.tag.rpartition("}")[2]
    return (f"{element.prefix}:{local}", local) if element.prefix else (local,)


# Text


def text_with_spans(
    content: Content, coverage: Sequence[Covered]
) -> tuple[str, tuple[tuple[Span, ...], ...]]:
    """Return the main text of HTML, and the spans of each covered part in it, ascending.

    Spans of one part do not touch or overlap. Other documents have the text ""."""
    if content.kind != "html":
        return "", tuple(() for _ in coverage)
    text, spans = main_text_with_spans(
        content.selector, {node for part in coverage for node in part.nodes}
    )
    whole = ((0, len(text)),) if text else ()
    return text, tuple(
        whole
        if part.is_whole
        else tuple(merge(spans[node] for node in part.nodes if node in spans))
        for part in coverage
    )


# Redaction


def refuses(actions: Collection[str], use: str, vocabulary: Vocabulary) -> bool:
    """Return True if a prohibition of these actions refuses the use.

    It does if one of the actions is the use, covers it or touches it. `actions` are in lower case;
    "*" is every action."""
    if ALL in actions:
        return use not in _FETCHING
    return not refusing_actions(use, vocabulary).isdisjoint(actions)


def refusing_actions(use: str, vocabulary: Vocabulary) -> frozenset[str]:
    """Return the actions whose prohibition refuses the use, in lower case.

    "*" is one of them unless the use is in _FETCHING."""
    return vocabulary.related(VOCABULARY, use).words | {
        use.lower(),
        *(() if use in _FETCHING else (ALL,)),
    }


def refused_for(rule: ElementRule, uses: Iterable[str], vocabulary: Vocabulary) -> bool:
    """Return True if the rule refuses one of the uses."""
    return rule.verdict is Verdict.DENY and any(
        refuses(rule.actions, use, vocabulary) for use in uses
    )


def redacted(
    content: Content, coverage: Iterable[Covered], uses: Iterable[str], vocabulary: Vocabulary
) -> bytes:
    """Return the body without the parts that are refused for one of the uses.

    It is b"" if the whole body is refused. Attributes, comments and scripts inside a refused
    element are removed with it. The rest stays unchanged."""
    uses = tuple(uses)
    refused = [part for part in coverage if refused_for(part.rule, uses, vocabulary)]
    nodes = dict.fromkeys(node for part in refused for node in part.nodes)
    if any(part.is_whole for part in refused):
        return b""
    if not nodes:
        return content.body
    if content.kind == "json":
        return content.json.without(nodes)
    if content.kind == "xml":
        return content.xml.without(nodes, content.xml.encoding)
    bom = next((bom for bom in _BOMS if content.body.startswith(bom)), b"")
    octets = content.markup.without(nodes, content.encoding)
    return octets if octets.startswith(bom) else bom + octets


_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
