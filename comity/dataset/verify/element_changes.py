"""The element rules of today's files against those in a tag: is anything of a record refused that was not?"""

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

DOCUMENT = "html"  # the field in which records have the page as it came, if anywhere
HTML = (b"Content-Type", b"text/html; charset=utf-8")
MARKUP = (
    b"Content-Type",
    b"application/xhtml+xml; charset=utf-8",
)  # HTML or XHTML, which says less: rules for either count

_FRONT = re.compile(r"\s*<(?:!doctype|html)\b", re.IGNORECASE)
_END = "</html>"
_DEPENDENT = re.compile(
    r"[+~:]"
)  # of a selector: what it finds may be another where other elements are missing

Key = tuple[str, str]  # selector, file type


def document_of(record: Record) -> Content | None:
    """The page, where the record has it from its front to its end."""
    text = record.get(DOCUMENT)
    if (
        not isinstance(text, str)
        or not _FRONT.match(text)
        or text[-100:].rstrip()[-len(_END) :].lower() != _END
    ):
        return None
    return Content((MARKUP,), text.encode("utf-8", "replace"))


class ElementChanges:
    """The elements of one page, by the files of then and those of today."""

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
        """`today`: all that rules name for the page. `document`: None where nobody has it. `is_same`: the files are those by
        which the record was tagged, so that the tag has what the page has of them. `had_rules`: there were such files."""
        self._vocabulary = vocabulary
        # As which it was served nobody knows: browsers read HTML and XHTML in other ways.
        self._documents = [document, Content((HTML,), document.body)] if document else []
        self._is_same = is_same
        self._had_rules = had_rules
        self._tagged: dict[Key, list[Mapping[str, Any]]] = {}
        for entry in tag["elements"]:
            if all(is_of_page(tag["reasons"][number], tag) for number in entry["because"]):
                continue  # the page says so itself
            self._tagged.setdefault((entry["selector"], entry["type"]), []).append(entry)
        self._today = [element for element in today if not is_same or _key(element) in self._tagged]

    def lost(self, use: str, *, was_licensed: bool) -> tuple[Element, Reason] | None:
        """An element that may be in the record and is refused for the use, although the record was not to be used without it.

        `was_licensed`: the use was, whatever was said of elements."""
        for element in self._today:
            refusal = None if element.is_whole else self._refusal(element, use)
            if refusal and self._is_new(element, use, was_licensed) and self._may_cover(element):
                return element, refusal
        return None

    def page_refusal(self, use: str) -> Reason | None:
        """The refusal of an element that was the whole page, and is refused today: what it covers has not changed."""
        for element in self._today:
            was_whole = any("whole" in entry for entry in self._tagged.get(_key(element), ()))
            if was_whole and (refusal := self._refusal(element, use)):
                return refusal
        return None

    def gained(self, use: str) -> bool:
        """Return whether an element is refused by the tag and not any more."""
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

    def _is_new(self, element: Element, use: str, was_licensed: bool) -> bool:
        """Return whether the refusal is new.

        Of a licensed use nothing was refused, so what the record has of the element it has for that use too."""
        return not (entries := self._tagged.get(_key(element))) or any(
            not refuses(entry["deny"], use, self._vocabulary)
            or (was_licensed and (entry["spans"] or "whole" in entry))
            for entry in entries
        )

    def _may_cover(self, element: Element) -> bool:
        """Return whether the record may have something of an element.

        What was taken from the page has nothing of what is not in the document. Where there was
        a file, elements may have been cut out of the document, by this crawl or an export."""
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
