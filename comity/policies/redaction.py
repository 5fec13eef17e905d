"""An item without what its page refuses for some uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from comity.policies.cutting import Cut, removals
from comity.policies.element_rules import ElementRules, Traced


def redacted_fields(
    rules: ElementRules, fields: Mapping[str, Any], declared: Mapping[str, str], uses: Iterable[str]
) -> tuple[dict[str, Any], list[Traced]]:
    """The fields that change, and where elements are in the item then. `declared`: as `ElementRules.traced` has it.

    A field that holds the whole document gets the document without the elements. Of any other what is covered goes: characters
    of the main text, members of lists, else the whole value. The URLs in it are not told either."""
    uses = tuple(uses)
    traced = rules.traced(fields, declared)
    refused = {id(element) for element in rules.refused(uses)}
    whole = {name: value for name, value in fields.items() if refused and rules.is_document(value)}
    documents = {name: rules.document_without(uses, value) for name, value in whole.items()}
    spans = [span for one in traced if id(one.element) in refused for span in one.spans if span[0] not in documents]
    cut = Cut(fields, removals(fields, spans))
    left = []
    for (element, places), urls in zip(traced, rules.urls_without(uses), strict=True):
        is_refused = id(element) in refused
        now: Iterable[Any] = (tuple(span) for span in cut.moved(places) if not (is_refused and span[0] in documents))
        left.append(Traced(replace(element, urls=urls), tuple(now)))
    changed = {name: value for name, value in cut.fields.items() if value is not fields[name]} | documents
    return changed, left
