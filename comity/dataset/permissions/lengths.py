"""The length of text that may be shown of a record.

content(record)              the fields that hold something of the page
beyond(record, limit)        what is more than a permission allows to show"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from comity.dataset.records import IDENTITY, Record
from comity.policies.answers.decision import UseDecision
from comity.policies.document.snippet import snippet
from comity.policies.elements.spans import Removals, is_empty


def content(record: Record) -> list[str]:
    """The fields that hold something of the page."""
    return [field for field, value in record.items() if field not in IDENTITY and not is_empty(value)]


def beyond(record: Record, limit: UseDecision) -> Removals:
    """Removals for the record to show no more text than `max_chars` and `max_words` of the limit permit.

    `text`, or else the first text, is cut to the limit, and other fields stay as long as all together are within it. `title`
    counts by itself: it names the page beside its snippet."""
    removed: Removals = {}
    fields = content(record)
    texts = [field for field in fields if isinstance(record[field], str) and field != "title"]
    main = "text" if "text" in texts else next(iter(texts), "")
    shown_texts: list[str] = []
    for field in sorted(fields, key=lambda field: field != main):  # the main text first, others as they come
        value = record[field]
        texts_so_far = [] if field == "title" else shown_texts
        if fits(" ".join((*texts_so_far, *_texts(value))), limit):
            texts_so_far.extend(_texts(value))
        elif field in ("title", main) and isinstance(value, str):
            cut = snippet(value, limit)
            texts_so_far.append(cut)
            removed[field] = [(len(cut), len(value))]
        else:
            removed[field] = None
    return removed


def fits(text: str, limit: UseDecision) -> bool:
    """Return whether the text is no longer than `max_chars` and `max_words` of the limit permit."""
    is_short = limit.max_chars is None or len(text) <= limit.max_chars
    most = None if limit.max_words is None else min(limit.max_words, len(text))  # there are no more words than characters
    return is_short and (most is None or len(text.split(None, most)) <= most)


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a value, names of members too, in their order."""
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            pending += reversed([part for member in value.items() for part in member])
        elif isinstance(value, list):
            pending += reversed(value)
