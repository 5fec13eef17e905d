"""Compare the element rules of today's files with those in a tag, to find new refusals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from comity.dataset.records import Record
from comity.dataset.verify.replay import Tag, is_of_page
from comity.policies.answers.decision import Reason
from comity.policies.document.document import Content
from comity.policies.elements.coverage import covered, refused_for, refuses
from comity.policies.elements.rules import Element
from comity.policies.vocabulary.table import Vocabulary

DOCUMENT = "html"  # the field with the unchanged page, if a record has it
HTML = (b"Content-Type", b"text/html; charset=utf-8")
# Element rules for HTML and for XHTML both apply to a page of this type.
MARKUP = (b"Content-Type", b"application/xhtml+xml; charset=utf-8")

_FRONT = re.compile(r"\s*<(?:!doctype|html)\b", re.IGNORECASE)
_END = "</html>"
# Parts of selectors whose matches change if other elements are missing.
_DEPENDENT = re.compile(r"[+~:]")

Key = tuple[str, str]  # selector, file type


def document_of(record: Record) -> Content | None:
    """Return the page from the field `html`. None if the field does not have a whole document."""
    text = record.get(DOCUMENT)
    if (
        not isinstance(text, str)
        or not _FRONT.match(text)
        or text[-100:].rstrip()[-len(_END) :].lower() != _END
    ):
        return None
    return Content((MARKUP,), text.encode("utf-8", "replace"))


class ElementChanges:
    """The element rules for one page: those in its tag, and those in today's files."""

    def __init__(
        self,
        tag: Tag,
        today: tuple[Element, ...],
        vocabulary: Vocabulary,
        *,
        document: Content | None,
        is_same: bool,
        had_rules: bool,
    ) -> None:
        """`today`: the elements that today's rules name for the page. `document`: the page, None
        if the record does not contain it. `is_same`: the files have not changed since the record
        was tagged, so the tag lists the elements that the page has. `had_rules`: at that time, the
        site had files with element rules."""
        self._vocabulary = vocabulary
        # Its media type is unknown, and browsers read HTML and XHTML differently.
        self._documents = [document, Content((HTML,), document.body)] if document else []
        self._is_same = is_same
        self._had_rules = had_rules
        self._tagged: dict[Key, list[Mapping[str, Any]]] = {}
        for entry in tag["elements"]:
            if all(is_of_page(tag["reasons"][number], tag) for number in entry["because"]):
                continue  # the rule is in the page itself
            self._tagged.setdefault((entry["selector"], entry["type"]), []).append(entry)
        self._today = [element for element in today if not is_same or _key(element) in self._tagged]

    def find_loss(self, use: str, *, was_licensed: bool) -> tuple[Element, Reason] | None:
        """Return an element with a new refusal for the use, if it may be in the record.

        `was_licensed`: a licence permitted the use, regardless of elements. None if there is no
        such element."""
        for element in self._today:
            refusal = None if element.is_whole else self._refusal(element, use)
            if (
                refusal
                and self._is_new(element, use, was_licensed=was_licensed)
                and self._may_cover(element)
            ):
                return element, refusal
        return None

    def page_refusal(self, use: str) -> Reason | None:
        """Return today's refusal of an element that was the whole page when it was tagged.

        Such an element still covers the whole page. None if no such element is refused."""
        for element in self._today:
            was_whole = any("whole" in entry for entry in self._tagged.get(_key(element), ()))
            if was_whole and (refusal := self._refusal(element, use)):
                return refusal
        return None

    def has_gain(self, use: str) -> bool:
        """Return True if the tag refuses an element for the use, and today's files do not."""
        if self._is_same:
            return False
        refused = {_key(element) for element in self._today if self._refusal(element, use)}
        return any(
            key not in refused
            and any(refuses(entry["deny"], use, self._vocabulary) for entry in entries)
            for key, entries in self._tagged.items()
        )

    def _refusal(self, element: Element, use: str) -> Reason | None:
        line = next(
            (rule.line for rule in element.rules if refused_for(rule, (use,), self._vocabulary)),
            None,
        )
        return next((reason for reason in element.reasons if reason.source.line == line), None)

    def _is_new(self, element: Element, use: str, *, was_licensed: bool) -> bool:
        """Return True if the refusal of an element is new.

        For a licensed use nothing was refused, so the record may still contain the element."""
        return not (entries := self._tagged.get(_key(element))) or any(
            not refuses(entry["deny"], use, self._vocabulary)
            or (was_licensed and (entry["spans"] or "whole" in entry))
            for entry in entries
        )

    def _may_cover(self, element: Element) -> bool:
        """Return True if the record may contain a part of an element.

        Return False if the record has the document, and the document has no such element. But if
        the site had element rules, the crawl or an export may have removed elements from the
        document. Then a selector that depends on other elements (_DEPENDENT) returns True."""
        if not self._documents or (self._had_rules and _DEPENDENT.search(element.selector)):
            return True
        if element.type == "json":
            return False
        parts = [
            part for document in self._documents for part in covered(document, element.rules[:1])
        ]
        return any(part.is_whole or part.nodes for part in parts)


def _key(element: Element) -> Key:
    return element.selector, element.type
