"""Remove from an item the parts that its page refuses for some uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from comity.policies.elements.rules import ElementRules, Traced
from comity.policies.elements.spans import Cut, removals


class Redacted(NamedTuple):
    """The fields of an item after redaction.

    Attributes:
        changed: name -> new value, of the fields with new values.
        removed: names of the fields that are removed, because their names are refused.
        traced: positions of the elements in the item after redaction."""

    changed: dict[str, Any]
    removed: frozenset[str]
    traced: list[Traced]


def redacted_fields(
    rules: ElementRules,
    fields: Mapping[str, Any],
    declared: Mapping[str, str],
    uses: Iterable[str],
    *,
    names: Iterable[str] = (),
) -> Redacted:
    """Return the fields without the parts that are refused for the uses.

    A field with the whole document gets the document without the refused elements. In other fields
    the covered parts are removed: characters of the main text, members of lists, else the whole
    value. If its name is refused, the field is removed. Refused URLs are not listed either.
    `declared` and `names` are arguments of `ElementRules.traced`."""
    uses = tuple(uses)
    traced = rules.traced(fields, declared, names=names, without=uses)
    refused = {id(element) for element in rules.refused(uses)}
    removed_names = frozenset(
        name for trace in traced if id(trace.element) in refused for name in trace.names
    )
    whole = {
        name: value
        for name, value in fields.items()
        if refused and name not in removed_names and rules.is_document(value)
    }
    documents = {name: rules.document_without(uses, value) for name, value in whole.items()}
    spans = [
        span
        for trace in traced
        if id(trace.element) in refused
        for span in trace.spans
        if span[0] not in documents
    ]
    cut = Cut(fields, removals(fields, spans), removed_names)
    remaining = []
    for trace in traced:
        is_refused = id(trace.element) in refused
        now: Iterable[Any] = (
            tuple(span)
            for span in cut.moved(trace.spans)
            if not (is_refused and span[0] in documents)
        )
        remaining.append(
            trace._replace(
                spans=tuple(now),
                names=tuple(name for name in trace.names if name not in removed_names),
            )
        )
    changed = {
        name: value for name, value in cut.fields.items() if value is not fields[name]
    } | documents
    return Redacted(changed, removed_names, remaining)
