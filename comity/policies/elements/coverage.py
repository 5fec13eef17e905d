"""Which parts of a document the element rules of ai.txt cover, where their text stands, and the document without them.

    covered(content, rules)                           by CSS selectors in HTML, by dotted names in JSON and XML (AIT-5)
    text_with_spans(content, covered)                 the main text, and the parts of it that are covered (MEET-5)
    redacted(content, covered, uses, vocabulary)      the body without what is refused
Where it cannot be told what a rule covers, it covers the whole document (AIT-13). Nothing raises, and the time is bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

from lxml import etree  # type: ignore[import-untyped]  # it ships no types

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.document.document import Content, file_types
from comity.policies.document.json_documents import JsonPath
from comity.policies.document.main_text import Span, main_text_with_spans
from comity.policies.document.selector_index import Budget, CostError, Outline
from comity.policies.document.selectors import MAX_CHARS, SelectorError, compiled, select
from comity.policies.formats.ai_txt.reading import is_dotted_name
from comity.policies.formats.ai_txt.values import ALL, Rule
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.table import Vocabulary

MAX_STEPS = 2_000_000  # for all rules of a document: about half a second
MAX_PARTS = 50  # of a dotted name
VOCABULARY = "ai-txt"  # in the table of vocabularies

# Kind of document -> file types by whose dotted names it can be read.
_TREES = {"html": ("xml",), "json": ("json",), "xml": ("xml",)}
_WHOLE = "covers the whole document:"
_STEPS_OF_MEMBER = 8  # of an object
_FETCHING = ("crawl", "follow")  # no action of ai.txt, so that `*` is none of these


class Covered(NamedTuple):
    """What one rule covers."""

    rule: Rule
    nodes: tuple[Any, ...] = ()  # elements (lxml) of HTML or XML, or a JsonPath each; each once, some may be within others
    is_whole: bool = False  # the whole document; there are no nodes then
    why: str = ""  # it covers more than it says


class _WholeError(Exception):
    """Why the whole document is covered; "": because the rule says so."""


def covered(content: Content, rules: Iterable[Rule]) -> tuple[Covered, ...]:
    """What each of the rules covers, which apply to the document: one for each, in their order. It may be nothing."""
    rules = tuple(rules)
    document = _Document(content, rules)
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
            message=f"`{printable(element.encode('utf-8', 'replace'))}` {why}",
            url=url,
            line=line,
        )
        for (line, element), why in lines.items()
    )


class _Document:
    def __init__(self, content: Content, rules: Iterable[Rule]) -> None:
        self._content = content
        self._kind = content.kind
        types = ("", *_TREES.get(self._kind, ()))
        self._dotted = dict.fromkeys(rule.element for rule in rules if rule.file_type in types and rule.element != ALL)
        self._budget = Budget(MAX_STEPS)
        self._unread = ""  # why nothing can be told of any part of it

    def covered_by(self, rule: Rule) -> Covered:
        try:
            return self._covered_by(rule)
        except CostError:
            return Covered(rule, is_whole=True, why=f"{_WHOLE} it takes too long to tell what it selects")
        except SelectorError as error:
            return Covered(rule, is_whole=True, why=f"{_WHOLE} {printable(str(error).encode('utf-8', 'replace'))}")
        except _WholeError as error:
            return Covered(rule, is_whole=True, why=f"{_WHOLE} {error}" if str(error) else "")

    def _covered_by(self, rule: Rule) -> Covered:
        if rule.element == ALL:
            raise _WholeError
        if self._unread:
            raise _WholeError(self._unread)
        self._budget.spend(1)
        file_type = rule.file_type or self._kind
        if file_type == "html" and "html" in (self._kind, *file_types(self._content.media_type)):
            return self._by_selector(rule)
        if file_type not in _TREES.get(self._kind, ()):
            raise _WholeError(f"the document is no {file_type.upper() or 'HTML, JSON or XML'}")
        return Covered(rule, tuple(self._named(rule.element)))

    def _by_selector(self, rule: Rule) -> Covered:
        nodes, unread = select(rule.element, self._outline), compiled(rule.element).unread
        if nodes and self._kind != "html":
            raise _WholeError(f"the document is {self._kind.upper()} that is served as HTML")
        why = f"is read without {printable(', '.join(unread).encode('utf-8', 'replace'))}" if unread else ""
        root = self._outline.elements[0]
        if why and root in nodes:
            raise _WholeError(f"it {why}")
        return Covered(rule, tuple(self._proper(nodes, root)), why=why)

    def _named(self, name: str) -> list[Any]:
        """What the dotted name means."""
        parts = name.split(".")
        if len(name) > MAX_CHARS or len(parts) > MAX_PARTS:
            raise _WholeError(f"the name has more than {MAX_CHARS} characters, or more than {MAX_PARTS} parts")
        if not all(parts):
            raise _WholeError("it is no dotted name")
        root, found = self._by_name
        return self._proper([*found.get(name, ())], root, name)

    @cached_property
    def _by_name(self) -> tuple[Any, Found]:
        """The root, and what all names mean."""
        names = _Names()
        for name in self._dotted:
            parts = name.split(".")
            self._budget.spend(2 * len(parts))
            if all(parts) and len(parts) <= MAX_PARTS:
                names.add(name, [part.lower() for part in parts] if self._kind == "html" else parts)
        if self._kind == "json":
            document = self._json
            return (), _in_json(document, names, self._budget) if isinstance(document, dict | list) else {}
        root = self._content.markup.root if self._kind == "html" else self._xml  # XHTML is XML too
        return root, _in_xml(root, names, self._budget)

    @staticmethod
    def _proper(nodes: list[Any], root: Any, name: str = "") -> list[Any]:
        """The nodes, if they are less than the document, and if a name that means none of them can mean any."""
        if root in nodes:
            raise _WholeError
        if not nodes and name and not is_dotted_name(name):
            raise _WholeError("it is no dotted name")
        return nodes

    @cached_property
    def _outline(self) -> Outline:
        markup = self._content.markup if self._kind == "html" else self._content.html
        return Outline(markup.root, self._budget, any_case=markup.is_quirky)

    @cached_property
    def _json(self) -> Any:
        try:
            return self._content.json.value
        except ValueError as error:
            self._refuse(f"the document is no JSON that is read: {type(error).__name__}")

    @cached_property
    def _xml(self) -> Any:
        try:
            root = self._content.xml.root
        except (etree.XMLSyntaxError, ValueError) as error:
            self._refuse(f"the document is no XML that is read: {type(error).__name__}")
        if self._content.declares:
            self._refuse("the document declares entities or attributes")
        return root

    def _refuse(self, why: str) -> NoReturn:
        self._unread = why
        raise _WholeError(why)


# Dotted names


class _Names:
    """Dotted names, by their parts: all of them are looked for at once."""

    def __init__(self) -> None:
        self.ends: list[str] = []  # the names that end here
        self.has_numbers = False  # which may be places in arrays
        self._ways: dict[str, _Names] = {}

    def add(self, name: str, parts: Iterable[str]) -> None:
        here = self
        for part in parts:
            here.has_numbers = here.has_numbers or part.isdecimal()
            here = here._ways.setdefault(part, _Names())
        here.ends.append(name)

    def at(self, key: str) -> _Names | None:
        """What follows a key. A dot may be one within a name, too."""
        if "." not in key:
            return self._ways.get(key)
        here: _Names | None = self
        for part in key.split("."):
            here = here._ways.get(part) if here else None
        return here


Places = list[_Names]  # in the names, of what stands at one place of a document
Found = dict[str, dict[Any, None]]  # name -> what it means


def _in_json(document: Any, names: _Names, budget: Budget) -> Found:
    """Of an object, and of every object in an array. A number is a place in an array, too."""
    found: Found = {}
    pending: deque[tuple[Any, JsonPath, Places]] = deque([(document, (), [names])])
    while pending:
        value, path, places = pending.popleft()
        is_array = isinstance(value, list)
        budget.spend(len(value) * (1 + len(path) // 8))
        if is_array and not any(place.has_numbers for place in places):
            members = enumerate(value)
            pending.extend(((member, (*path, key), places)) for key, member in members if isinstance(member, dict | list))
            continue
        budget.spend(_STEPS_OF_MEMBER * len(value))
        for key, member in enumerate(value) if is_array else value.items():
            behind = [one for place in places if (one := place.at(str(key)))]
            for name in (name for one in behind for name in one.ends):
                found.setdefault(name, {})[(*path, key)] = None
            inner = [*places, *behind] if is_array else behind
            if inner and isinstance(member, dict | list):
                pending.append((member, (*path, key), inner))
    return found


def _in_xml(root: Any, names: _Names, budget: Budget) -> Found:
    """Names count from below the root; those that begin with its own are accepted."""
    found: Found = {}
    pending: deque[tuple[Any, Places]] = deque([(root, [names, *_behind([names], root, found)])])
    while pending:
        node, places = pending.popleft()
        budget.spend(2 * _STEPS_OF_MEMBER * len(node))
        pending.extend((child, behind) for child in node if (behind := _behind(places, child, found)))
    return found


def _behind(places: Places, node: Any, found: Found) -> Places:
    behind = [one for place in places for key in _names(node) if (one := place.at(key))]
    for name in (name for one in behind for name in one.ends):
        found.setdefault(name, {})[node] = None
    return behind


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
    if content.kind != "html":
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
    if content.kind == "json":
        return content.json.without(nodes)
    if content.kind == "xml":
        return content.xml.without(nodes, content.xml.encoding)
    bom = next((bom for bom in _BOMS if content.body.startswith(bom)), b"")
    octets = content.markup.without(nodes, content.encoding)
    return octets if octets.startswith(bom) else bom + octets


_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
