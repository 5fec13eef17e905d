"""The elements that rules cover on a page that was not fetched, as far as that is known."""

from __future__ import annotations

from collections.abc import Sequence

from comity.policies.answers.element_rule import ElementRule
from comity.policies.document.document import Content
from comity.policies.elements.coverage import Covered, covered

# File type -> a document without anything that a name could select.
_EMPTY = {
    "html": Content([(b"Content-Type", b"text/html")], b""),
    "json": Content([(b"Content-Type", b"application/json")], b"{}"),
    "xml": Content([(b"Content-Type", b"application/xml")], b"<none.of.comity/>"),
}


def unread(rules: Sequence[ElementRule]) -> tuple[Covered, ...]:
    """Return the coverage of each rule, in their order, without nodes.

    Only rules that cover every document as a whole are known to cover something."""
    types = [rule.file_type or "html" for rule in rules]
    coverage = {
        file_type: iter(
            covered(
                content,
                [
                    rule
                    for rule, type_of_rule in zip(rules, types, strict=True)
                    if type_of_rule == file_type
                ],
            )
        )
        for file_type, content in _EMPTY.items()
    }
    return tuple(next(coverage[file_type]) for file_type in types)
