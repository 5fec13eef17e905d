"""Which parts of a document the element rules of ai.txt cover, where their text stands, and the document without them.

    covered(content, rules)                           by CSS selectors in HTML, by dotted names in JSON and XML (AIT-5)
    text_with_spans(content, covered)                 the main text, and the parts of it that are covered (MEET-5)
    redacted(content, covered, uses, vocabulary)      the body without what is refused
Where it cannot be told what a rule covers, it covers the whole document (AIT-13). Nothing raises, and the time is bounded."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

from lxml import etree  # type: ignore[import-untyped]  # it ships no types

from comity.policies.content import Content
from comity.policies.css import MAX_CHARS, SelectorError, select
from comity.policies.formats.ai_txt.values import ALL, Rule, file_types
from comity.policies.main_text import Span, main_text_with_spans
from comity.policies.outline import Budget, CostError, Outline, is_quirky
from comity.policies.text import printable
from comity.policies.values import Finding, Verdict
from comity.policies.vocabulary import Vocabulary

MAX_STEPS = 2_000_000  # for all rules of a document: about half a second
MAX_PARTS = 50  # of a dotted name
VOCABULARY = "ai-txt"  # in the table of vocabularies

# Kind of document -> file types by whose dotted names it can be read.
_TREES = {"html": ("xml",), "json": ("json",), "xml": ("xml",)}
_FETCHING = ("crawl", "follow")  # no action of ai.txt, so that `*` is none of these
_DECLARATIONS = (b"<!entity", b"<!attlist")  # in a DTD: what they declare is in the document twice
_GONE = "{https://comity.invalid/}gone"  # an element that is to be cut out; no parser of HTML makes a name of that kind


JsonPath = tuple[str | int, ...]  # keys of objects and places in arrays, from the top; the last one is a key


class Covered(NamedTuple):
    """What one rule covers."""

    rule: Rule
    nodes: tuple[Any, ...] = ()  # elements (lxml) of HTML or XML, or a JsonPath each; each once, some may be within others
    is_whole: bool = False  # the whole document; there are no nodes then
    why: str = ""  # the rule names a part, and yet the whole document is covered


class _WholeError(Exception):
    """Why the whole document is covered; "": because the rule says so."""


def kind_of(content: Content) -> str:
    """The file type by which element names are read, "html", "json" or "xml"; "": none of them."""
    types = file_types(content.media_type)
    if content.media_type:
        return "html" if "html" in types else next(iter(types), "")
    start = content.octets[:1000].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith((b"{", b"[")):
        return "json"
    return "xml" if start.startswith(b"<?xml") and b"<html" not in start else "html"


def covered(content: Content, rules: Iterable[Rule]) -> tuple[Covered, ...]:
    """What each of the rules covers, which apply to the document: one for each, in their order. It may be nothing."""
    document = _Document(content)
    found: dict[tuple[str, str], Covered] = {}
    said = []
    for rule in rules:
        key = rule.file_type, rule.element
        if key not in found:
            found[key] = document.covered_by(rule)
        said.append(found[key]._replace(rule=rule))
    return tuple(said)


def findings(said: Iterable[Covered], *, url: str = "") -> tuple[Finding, ...]:
    """The rules that cover more than they say, each line once. `url`: of the file that has them."""
    lines = {(one.rule.line, one.rule.element): one.why for one in said if one.why}
    return tuple(
        Finding(
            rule="ait.selector",
            message=f"`{printable(element.encode('utf-8', 'replace'))}` covers the whole document: {why}",
            url=url,
            line=line,
        )
        for (line, element), why in lines.items()
    )


class _Document:
    def __init__(self, content: Content) -> None:
        self._content = content
        self._kind = kind_of(content)
        self._budget = Budget(MAX_STEPS)
        self._unread = ""  # why nothing can be told of any part of it

    def covered_by(self, rule: Rule) -> Covered:
        try:
            return Covered(rule, tuple(self._nodes(rule)))
        except CostError:
            return Covered(rule, is_whole=True, why="it takes too long to tell what it selects")
        except SelectorError as error:
            return Covered(rule, is_whole=True, why=printable(str(error).encode("utf-8", "replace")))
        except _WholeError as error:
            return Covered(rule, is_whole=True, why=str(error))

    def _nodes(self, rule: Rule) -> list[Any]:
        if rule.element == ALL:
            raise _WholeError
        if self._unread:
            raise _WholeError(self._unread)
        self._budget.spend(1)
        file_type = rule.file_type or self._kind
        if file_type == "html" == self._kind:
            return self._proper(select(rule.element, self._outline), self._content.selector.root)
        if file_type not in _TREES.get(self._kind, ()):
            raise _WholeError(f"the document is no {file_type.upper() or 'HTML, JSON or XML'}")
        parts = rule.element.split(".")
        if len(rule.element) > MAX_CHARS or len(parts) > MAX_PARTS:
            raise _WholeError(f"the name has more than {MAX_CHARS} characters, or more than {MAX_PARTS} parts")
        if not all(parts) or any(sign in rule.element for sign in "[]*") or parts[0] == "$":
            raise _WholeError("it is no dotted name")
        if self._kind == "json":
            return [path for _, path in _named([(self._json, ())], parts, _members, self._budget)]
        if self._kind == "html":  # XHTML is XML too
            root, parts = self._content.selector.root, [part.lower() for part in parts]
        else:
            root = self._xml
        found = _named([root], parts, _children, self._budget)
        for end in range(1, len(parts) + 1):
            if ".".join(parts[:end]) in _names(root):
                found += _named([root], parts[end:], _children, self._budget)
        return self._proper([*dict.fromkeys(found)], root)

    @staticmethod
    def _proper(nodes: list[Any], root: Any) -> list[Any]:
        if root in nodes:
            raise _WholeError
        return nodes

    @cached_property
    def _outline(self) -> Outline:
        return Outline(self._content.selector.root, self._budget, any_case=is_quirky(self._content.text))

    @cached_property
    def _json(self) -> Any:
        try:
            return self._content.json
        except (ValueError, RecursionError) as error:
            self._refuse(f"the document is no JSON that is read: {type(error).__name__}")

    @cached_property
    def _xml(self) -> Any:
        try:
            root = self._content.xml
        except (etree.XMLSyntaxError, ValueError) as error:
            self._refuse(f"the document is no XML that is read: {type(error).__name__}")
        if any(declaration in self._content.octets for declaration in _DECLARATIONS):
            self._refuse("the document declares entities or attributes")
        return root

    def _refuse(self, why: str) -> NoReturn:
        self._unread = why
        raise _WholeError(why)


# Dotted names

Named = Callable[[Any, Collection[str], Budget], Iterator[tuple[str, Any]]]  # the parts of a node that have one of these names


def _named(tops: list[Any], parts: Sequence[str], named: Named, budget: Budget) -> list[Any]:
    """The parts of the nodes that have the dotted name. A dot may be one within a name, too."""
    waiting: list[list[Any]] = [tops, *([] for _ in parts)]
    for begin, nodes in enumerate(waiting[:-1]):
        ends = {".".join(parts[begin:end]): end for end in range(begin + 1, len(parts) + 1)} if nodes else {}
        for node in nodes:
            for name, part in named(node, ends.keys(), budget):
                waiting[ends[name]].append(part)
    return waiting[-1]


def _members(node: tuple[Any, JsonPath], names: Collection[str], budget: Budget) -> Iterator[tuple[str, Any]]:
    """Of an object, and of every object in an array."""
    pending = [node]
    while pending:
        value, path = pending.pop()
        if isinstance(value, list):
            budget.spend(len(value) * (1 + len(path) // 8))
            pending += [(one, (*path, place)) for place, one in enumerate(value)]
        elif isinstance(value, dict):
            budget.spend(len(names))
            yield from ((name, (value[name], (*path, name))) for name in names if name in value)


def _children(node: Any, names: Collection[str], budget: Budget) -> Iterator[tuple[str, Any]]:
    budget.spend(1 + 4 * len(node))
    for child in node:
        name = next((name for name in _names(child) if name in names), None)
        if name is not None:
            yield name, child


def _names(element: Any) -> tuple[str, ...]:
    """With its prefix and without it."""
    if not isinstance(element.tag, str):  # a comment, an instruction, an entity
        return ()
    local = element.tag.rpartition("}")[2]
    return (f"{element.prefix}:{local}", local) if element.prefix else (local,)


# Text


def text_with_spans(content: Content, said: Sequence[Covered]) -> tuple[str, tuple[tuple[Span, ...], ...]]:
    """The main text of HTML, "" of anything else; and for each of the covered parts where its text stands in that, ascending.

    Spans of one covered part neither touch nor overlap."""
    if kind_of(content) != "html":
        return "", tuple(() for _ in said)
    text, places = main_text_with_spans(content.selector, {node for one in said for node in one.nodes})
    whole = ((0, len(text)),) if text else ()
    return text, tuple(whole if one.is_whole else _merged(places[node] for node in one.nodes if node in places) for one in said)


def _merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return tuple(merged)


# Redaction


def refuses(actions: Collection[str], use: str, vocabulary: Vocabulary) -> bool:
    """Whether it refuses the use that these actions are prohibited: one of them is the use, covers it, or touches it.

    `actions`: lower case; "*": all."""
    if ALL in actions:
        return use not in _FETCHING
    return not refusing_actions(use, vocabulary).isdisjoint(actions)


def refusing_actions(use: str, vocabulary: Vocabulary) -> frozenset[str]:
    """The actions that refuse the use where they are prohibited, lower case; "*" among them where all do."""
    return vocabulary.related(VOCABULARY, use).words | {use.lower(), *(() if use in _FETCHING else (ALL,))}


def refused_for(rule: Rule, uses: Iterable[str], vocabulary: Vocabulary) -> bool:
    """Whether the rule refuses one of the uses."""
    return rule.verdict is Verdict.DENY and any(refuses(rule.actions, use, vocabulary) for use in uses)


def redacted(content: Content, said: Iterable[Covered], uses: Iterable[str], vocabulary: Vocabulary) -> bytes:
    """The body without the parts that are refused for one of the uses; b"" where all of it is. Else it stays as it came.

    Attributes, comments and scripts within an element go with it."""
    uses = tuple(uses)
    refused = [one for one in said if refused_for(one.rule, uses, vocabulary)]
    nodes = dict.fromkeys(node for one in refused for node in one.nodes)
    if any(one.is_whole for one in refused):
        return b""
    if not nodes:
        return content.body
    kind = kind_of(content)
    if kind == "json":
        return _without_members(content.json, nodes)
    return _html(content, _without(nodes)) if kind == "html" else _xml(_without(nodes))


def _without(nodes: Iterable[Any]) -> Any:
    """A copy of the document that has the elements, without them."""
    nodes = set(nodes)
    document = next(iter(nodes)).getroottree()
    own = copy.deepcopy(document)
    for element, twin in zip(document.getroot().iter("*"), own.getroot().iter("*"), strict=True):
        if element in nodes:
            twin.tag = _GONE
    etree.strip_elements(own, _GONE, with_tail=False)
    return own


_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def _html(content: Content, document: Any) -> bytes:
    # libxml2 makes up a doctype where there is none.
    doctype = "" if is_quirky(content.text) else document.docinfo.doctype
    text = etree.tostring(document, method="html", encoding="unicode", doctype=doctype).lstrip()
    bom = next((bom for bom in _BOMS if content.body.startswith(bom)), b"")
    octets: bytes = text.encode(content.encoding, "xmlcharrefreplace")
    return octets if octets.startswith(bom) else bom + octets


def _xml(document: Any) -> bytes:
    encoding = document.docinfo.encoding or "utf-8"
    octets: bytes = etree.tostring(document, encoding=encoding, xml_declaration=True, standalone=document.docinfo.standalone)
    return octets


def _without_members(document: Any, paths: Iterable[JsonPath]) -> bytes:
    document = copy.deepcopy(document)
    for path in paths:
        holder = document
        for step in path[:-1]:
            if isinstance(holder, dict) and step not in holder:  # what holds it is gone already
                break
            holder = holder[step]
        else:
            holder.pop(path[-1], None)
    return json.dumps(document).encode()
