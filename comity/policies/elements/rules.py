"""The element rules about one page, and about the item that was made from it.

ElementRules(content, rules, ...)      the rules about one page, applied to its document
ElementRules.elements                  its elements, with the refused uses and the advice
ElementRules.source                    the decisions that they make about the whole page
ElementRules.traced(fields, declared)  the positions of the elements in an item"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from comity.policies.answers.decision import Finding, Reason, UseDecision, Verdict
from comity.policies.answers.element_rule import ACTIONS, ALL, ElementRule
from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.document.document import Content
from comity.policies.document.main_text import Span
from comity.policies.elements.coverage import (
    Covered,
    covered,
    findings,
    redacted,
    refused_for,
    refusing_actions,
    text_with_spans,
)
from comity.policies.elements.spans import MAX_SPANS, FieldSpan
from comity.policies.elements.text_runs import Pieces, Urls, may_have_addresses
from comity.policies.elements.unread import unread
from comity.policies.vocabulary.table import Vocabulary

if TYPE_CHECKING:
    from comity.policies.elements.provenance import Origins

# Limit of the reasons in one decision about a use of the whole document.
MAX_REASONS = 100

ReasonOf = Callable[[ElementRule], Reason]

# Up to so many URLs, a tag lists all URLs of all elements. If there are more, it lists only those
# that are in the item too.
MAX_TAG_URLS = 50


class ElementUses:
    """The rules that cover the whole document, as a source of decisions.

    Uses that a Guide names are "permitted but require additional instructions" (ai.txt paper,
    section-3.2). A Guide permits these uses only, and no related ones."""

    def __init__(
        self, rules: Iterable[ElementRule], vocabulary: Vocabulary, reason_of: ReasonOf
    ) -> None:
        rules = tuple(rules)
        self._vocabulary = vocabulary
        self._reason_of = reason_of
        self._refusing = _by_action(rule for rule in rules if rule.verdict is Verdict.DENY)
        self._guiding = _by_action(rule for rule in rules if rule.verdict is None)

    @property
    def named_uses(self) -> Iterable[str]:
        """The uses that the rules name. `*` stands for each action of section-3.3."""
        for action in {**self._refusing, **self._guiding}:
            yield from _ACTION_NAMES if action == ALL else (action,)

    def decide(self, use: str) -> UseDecision | None:
        refusing = _rules_of(self._refusing, refusing_actions(use, self._vocabulary))
        guiding = _rules_of(self._guiding, (use, *((ALL,) if use in _ACTION_NAMES else ())))
        if not refusing and not guiding:
            return None
        verdict = Verdict.DENY if refusing else Verdict.ALLOW
        return UseDecision(
            verdict=verdict,
            stated=True,
            reasons=tuple(dict.fromkeys(map(self._reason_of, refusing or guiding))),
        )

    def limits(self, use: str) -> tuple[tuple[Qualifiers, Reason], ...]:
        return ()


_ACTION_NAMES = tuple(map(str.lower, ACTIONS))


# Action -> the first MAX_REASONS rules that name it, each with its index among all rules.
_ByAction = dict[str, list[tuple[int, ElementRule]]]


def _by_action(rules: Iterable[ElementRule]) -> _ByAction:
    by_action: _ByAction = {}
    for number, rule in enumerate(rules):
        for action in sorted(rule.actions):
            naming = by_action.setdefault(action, [])
            if len(naming) < MAX_REASONS:
                naming.append((number, rule))
    return by_action


def _rules_of(by_action: _ByAction, actions: Iterable[str]) -> list[ElementRule]:
    """Return the first MAX_REASONS rules that name one of the actions, in their order."""
    numbered = {number: rule for action in actions for number, rule in by_action.get(action, ())}
    return [numbered[number] for number in sorted(numbered)[:MAX_REASONS]]


@dataclass(frozen=True, eq=False)
class Element:
    """An element: the part of a page that one selector covers, with all rules about it.

    Attributes:
        selector: CSS selector or dotted name, as written. "*": the whole document.
        type: file type of the rules, "html", "json" or "xml". "": any type.
        rules: the rules about the element, in the order of the file.
        reasons: reasons of the rules, each once.
        nodes: elements (lxml), or paths into JSON. A node may be inside another one.
        is_whole: True if it covers the whole document. It has no nodes then.
        spans: its positions in the main text of an HTML page.
        urls: absolute URLs of the links and images in it."""

    selector: str
    type: str
    rules: tuple[ElementRule, ...]
    reasons: tuple[Reason, ...]
    nodes: tuple[Any, ...] = ()
    is_whole: bool = False
    spans: tuple[Span, ...] = ()
    urls: tuple[str, ...] = ()

    @cached_property
    def deny(self) -> frozenset[str]:
        """Prohibited actions in lower case. "*": every action (AIT-7)."""
        return frozenset(
            action for rule in self.rules if rule.verdict is Verdict.DENY for action in rule.actions
        )

    @cached_property
    def guides(self) -> tuple[ElementRule, ...]:
        """The rules with advice for actions (AIT-8)."""
        return tuple(rule for rule in self.rules if rule.verdict is not Verdict.DENY)

    @property
    def tag(self) -> dict[str, Any]:
        """The element in the form of an item's tag, without reasons and positions in the item."""
        guide = [
            {
                "actions": sorted(rule.actions),
                "guidelines": [
                    {"lang": guideline.lang, "text": guideline.text}
                    for guideline in rule.guidelines
                ],
            }
            for rule in self.guides
        ]
        return {
            "selector": self.selector,
            "type": self.type,
            **({"whole": True} if self.is_whole else {}),
            "deny": sorted(self.deny),
            "guide": guide,
        }


class Traced(NamedTuple):
    """An element, with its positions in an item.

    Attributes:
        element: the element.
        spans: its positions in the values of fields.
        names: the fields whose names contain text of the element.
        urls: all URLs of the element. If the elements of the page have more than MAX_TAG_URLS:
            only the URLs that the item contains.
        more_urls: True if the element has, or may have, URLs that are not in `urls`."""

    element: Element
    spans: tuple[FieldSpan, ...]
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    more_urls: bool = False

    @property
    def tag(self) -> dict[str, Any]:
        """The element in the form of an item's tag, without the reasons."""
        return {
            **self.element.tag,
            **({"urls": list(self.urls)} if self.urls else {}),
            **({"more_urls": True} if self.more_urls else {}),
            **({"names": list(self.names)} if self.names else {}),
            "spans": list(map(list, self.spans)),
        }


class ElementRules:
    """The element rules about one page.

    They are applied to a browser's tree of the page (markup.py), which differs from a spider's."""

    def __init__(
        self,
        content: Content,
        rules: Sequence[ElementRule],
        url: str,
        vocabulary: Vocabulary,
        reason_of: ReasonOf,
        *,
        is_read: bool = True,
    ) -> None:
        """Apply the rules to the document.

        Args:
            content: the page.
            rules: all rules that apply to the document.
            url: absolute URL of the page.
            vocabulary: the table that relates actions to uses.
            reason_of: returns the reason for a rule.
            is_read: False if the page was not fetched. `elements` then contains the element of
                each rule, because any may be in the page."""
        is_partial = is_read and any(rule.element != ALL for rule in rules)
        self._content = content
        # References keep the element objects, and so their ids, for the life of the page.
        self._alive = content.attributes if is_partial and content.kind == "html" else {}
        self._rules = rules
        self._url = url
        self._vocabulary = vocabulary
        self._reason_of = reason_of
        self._coverage = covered(self._content, rules) if is_read else unread(rules)
        # Text made from the page -> numbers of the elements that were removed before.
        self._without: dict[str, frozenset[int]] = {}
        grouped: dict[tuple[str, str], list[Covered]] = {}
        for part in self._coverage:
            if part.nodes or part.is_whole or not is_read:
                grouped.setdefault((part.rule.file_type, part.rule.element), []).append(part)
        self._grouped = list(grouped.values())
        # A rule that is not understood covers the whole document (its part has a cause). Its
        # prohibitions count, and its Guides do not.
        whole = (
            part.rule
            for part in self._coverage
            if part.is_whole and (part.rule.verdict is Verdict.DENY or not part.cause)
        )
        self.source = ElementUses(whole, vocabulary, reason_of)

    def beside(self, other: ElementRules) -> ElementRules:
        """Return these rules together with `other` ones about this page, each rule once."""
        rules = [*self._rules]
        reasons = {id(rule): self._reason_of(rule) for rule in rules}
        for rule in other._rules:
            reason, joined = other._reason_of(rule), rule
            if id(rule) in reasons:
                if reasons[id(rule)] == reason:
                    continue
                joined = replace(rule)  # equal files of two sites share their rules
            rules.append(joined)
            reasons[id(joined)] = reason
        return ElementRules(
            self._content, rules, self._url, self._vocabulary, lambda rule: reasons[id(rule)]
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Hints about rules that cover more than they say."""
        by_url: dict[str, list[Covered]] = {}
        for part in self._coverage:
            by_url.setdefault(self._reason_of(part.rule).source.url, []).append(part)
        return tuple(
            finding for url, coverage in by_url.items() for finding in findings(coverage, url=url)
        )

    @cached_property
    def _text(self) -> tuple[str, tuple[tuple[Span, ...], ...]]:
        return text_with_spans(self._content, [group[0] for group in self._grouped])

    @property
    def text(self) -> str:
        """The main text of an HTML page; "" of other documents."""
        return self._text[0]

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """The elements that are in the page, in the order of the file.

        An element that covers the whole document is included. If the page was not read, every
        element is."""
        return tuple(
            Element(
                selector=group[0].rule.element,
                type=group[0].rule.file_type,
                rules=tuple(part.rule for part in group),
                reasons=tuple(dict.fromkeys(self._reason_of(part.rule) for part in group)),
                nodes=group[0].nodes,
                is_whole=group[0].is_whole,
                spans=spans,
                urls=self._urls_without().by_element.get(number, ()) if group[0].nodes else (),
            )
            for number, (group, spans) in enumerate(zip(self._grouped, self._text[1], strict=True))
        )

    def refused(self, uses: Iterable[str]) -> list[Element]:
        """Return the elements that are refused for at least one of the uses.

        Elements that cover the whole document are left out."""
        uses = tuple(uses)
        parts = (element for element in self.elements if not element.is_whole)
        return [
            element
            for element in parts
            if any(refused_for(rule, uses, self._vocabulary) for rule in element.rules)
        ]

    def redacted(self, uses: Iterable[str]) -> bytes:
        """Return the body without the elements that are refused for one of the uses."""
        refusing = {id(rule) for element in self.refused(uses) for rule in element.rules}
        return redacted(
            self._content,
            [part for part in self._coverage if id(part.rule) in refusing],
            uses,
            self._vocabulary,
        )

    def made_without(self, uses: Iterable[str], make: Callable[[str], str]) -> str:
        """Remove the elements refused for one of the uses, and return `make(the remaining text)`.

        The result is remembered: `traced` looks for no removed element in a value equal to it."""
        uses = tuple(uses)
        refused = {id(element) for element in self.refused(uses)}
        text = make(_text_of(self._content, self.redacted(uses)))
        self._without[text] = frozenset(
            number for number, element in enumerate(self.elements) if id(element) in refused
        )
        return text

    def without(self, uses: Iterable[str]) -> ElementRules:
        """Return the rules about the page without the elements refused for one of the uses."""
        uses = tuple(uses)
        refusing = {id(rule) for element in self.refused(uses) for rule in element.rules}
        content = Content(self._content.headers, self.redacted(uses))
        rules = [rule for rule in self._rules if id(rule) not in refusing]
        return ElementRules(content, rules, self._url, self._vocabulary, self._reason_of)

    def traced(
        self,
        fields: Mapping[str, Any],
        declared: Mapping[str, str],
        *,
        names: Iterable[str] = (),
        without: Iterable[str] = (),
    ) -> list[Traced]:
        """Return each element with its positions in an item.

        Elements that cover the whole document have no positions.

        Args:
            fields: the item.
            declared: field -> the selector of its value. "": the value comes from no element.
                Fields that are missing here are searched for the text of elements.
            names: the field names that may themselves be text of the page.
            without: uses whose refused parts will be removed from the item."""
        spans_of: list[list[FieldSpan]] = [[] for _ in self._grouped]
        names_of: list[list[str]] = [[] for _ in self._grouped]
        for name, value in fields.items() if self._parts else ():
            selector = declared.get(name)
            if selector != "":
                for number, span in self._spans(name, value, selector):
                    spans_of[number].append(span)
        for name in names if self._parts else ():
            for number in self._origins.elements_of_name(name):
                names_of[number].append(name)
        urls = self._urls_in(fields, without)
        return [
            Traced(element, tuple(spans), tuple(its_names), *its_urls)
            for element, spans, its_names, its_urls in zip(
                self.elements, spans_of, names_of, urls, strict=True
            )
        ]

    def _urls_in(
        self, fields: Mapping[str, Any], without: Iterable[str]
    ) -> Iterator[tuple[tuple[str, ...], bool]]:
        """Yield for each element its URLs in the tag, and True if the tag leaves some out."""
        refused = {id(element) for element in self.refused(without)}
        refused_numbers = frozenset(
            number for number, element in enumerate(self.elements) if id(element) in refused
        )
        document = self._urls_without(refused_numbers)
        has_all = (
            document.is_complete and sum(map(len, document.by_element.values())) <= MAX_TAG_URLS
        )
        item = frozenset() if has_all else self._origins.urls_in(fields)
        for number in range(len(self._grouped)):
            urls = document.by_element.get(number, ())
            shared = urls if has_all else tuple(url for url in urls if url in item)
            yield (
                shared,
                not has_all
                and number in self._parts
                and (len(shared) < len(urls) or not document.is_complete),
            )

    def _urls_without(self, removed: frozenset[int] = frozenset()) -> Urls:
        """Return number of an element -> its URLs, except URLs that only removed elements have."""
        if not self._parts or not may_have_addresses(self._content):
            return Urls({}, is_complete=True)
        return self._pieces.urls_outside(removed) if removed else self._pieces.urls

    def _spans(
        self, name: str, value: Any, selector: str | None
    ) -> Iterator[tuple[int, FieldSpan]]:
        if isinstance(value, str) and value and value == self.text:
            coarse = sum(len(self.elements[number].spans) for number in self._parts) > MAX_SPANS
            for number in self._parts:
                spans = self.elements[number].spans
                for start, end in ((spans[0][0], spans[-1][1]),) if spans and coarse else spans:
                    yield number, (name, start, end)
        elif self.is_document(value):
            yield from ((number, (name,)) for number in self._parts)
        else:
            without = (
                self._without.get(value, frozenset()) if isinstance(value, str) else frozenset()
            )
            yield from (
                span
                for span in self._origins.spans(name, value, selector)
                if span[0] not in without
            )

    def is_document(self, value: Any) -> bool:
        """Return True if a value is the whole document, as text or as octets."""
        if isinstance(value, str):
            return bool(value) and value == self._document
        return isinstance(value, bytes) and bool(value) and value == self._content.body

    def document_without(self, uses: Iterable[str], value: str | bytes) -> str | bytes:
        """Return the document without the elements refused for one of the uses.

        It is text or octets, like `value`, which is the whole document."""
        octets = self.redacted(uses)
        return octets if isinstance(value, bytes) else _text_of(self._content, octets)

    @cached_property
    def _document(self) -> str:
        return _text_of(self._content, self._content.body)

    def covering(self, value: Any) -> list[Element]:
        """Return the elements that contain a value, or have parts in it.

        The value is a text, an element (lxml) or a JSON value that was taken from the page.
        Elements that cover the whole document are always included."""
        numbers = self._origins.elements(value) if self._parts else ()
        return [
            element
            for number, element in enumerate(self.elements)
            if element.is_whole or number in numbers
        ]

    def permits(self, use: str, elements: Iterable[Element]) -> bool:
        """Return True if none of the elements refuses the use."""
        return not any(
            refused_for(rule, (use,), self._vocabulary)
            for element in elements
            for rule in element.rules
        )

    @cached_property
    def _parts(self) -> Mapping[int, Sequence[Any]]:
        """Number of an element -> its nodes (places in JSON). Whole documents are not included."""
        return {
            number: group[0].places or group[0].nodes
            for number, group in enumerate(self._grouped)
            if group[0].nodes
        }

    @cached_property
    def _pieces(self) -> Pieces:
        denied = [
            number
            for number in self._parts
            if any(part.rule.verdict is Verdict.DENY for part in self._grouped[number])
        ]
        return Pieces(self._content, self._parts, denied, self._url)

    @cached_property
    def _origins(self) -> Origins:
        # It imports parsel, which only items of pages need.
        from comity.policies.elements.provenance import Origins

        return Origins(self._content, self._pieces)


def _text_of(content: Content, body: bytes) -> str:
    """Decode a body of the same kind as `content`."""
    if content.is_html:
        return Content(content.headers, body).text
    try:
        return body.decode(content.encoding)
    except UnicodeDecodeError:
        return ""
