"""Cut the text of a record to the length that may be used.

content(record)              the fields with content of the page
beyond(record, limit)        the removals that bring a record within a limit"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from comity.dataset.records import IDENTITY, Record
from comity.policies.answers.decision import UseDecision
from comity.policies.document.snippet import snippet
from comity.policies.elements.spans import Removals, is_empty


def content(record: Record) -> list[str]:
    """Return the names of the fields with content of the page."""
    return [
        field for field, value in record.items() if field not in IDENTITY and not is_empty(value)
    ]


def beyond(record: Record, limit: UseDecision) -> Removals:
    """Return the removals that cut a record to `max_chars` and `max_words` of a limit.

    The main text is `text`, or if there is no such field, the first field with text. It comes
    first, and is cut to the limit. The other fields follow in their order: a field that would
    exceed the limit, together with the fields that stay, is removed. `title` does not count in this
    sum. It is cut to the limit by itself, because it names the page above the snippet."""
    removed: Removals = {}
    fields = content(record)
    texts = [field for field in fields if isinstance(record[field], str) and field != "title"]
    main = "text" if "text" in texts else next(iter(texts), "")
    length = NO_LENGTH
    # The main text comes first, then the others in their order.
    for field in sorted(fields, key=lambda field: field != main):
        value = record[field]
        before = NO_LENGTH if field == "title" else length
        after = before.with_texts(_texts(value), limit)
        if after is None and field in ("title", main) and isinstance(value, str):
            cut = snippet(value, limit)
            removed[field] = [(len(cut), len(value))]
            after = before.with_texts([cut], limit)
        elif after is None:
            removed[field] = None
        if after is not None and field != "title":
            length = after
    return removed


def fits(texts: Iterable[str], limit: UseDecision) -> bool:
    """Return True if the texts together exceed neither `max_chars` nor `max_words` of the limit."""
    return NO_LENGTH.with_texts(texts, limit) is not None


class _Length(NamedTuple):
    """The length of texts that are joined with spaces."""

    chars: int
    words: int

    def with_texts(self, texts: Iterable[str], limit: UseDecision) -> _Length | None:
        """Return the length with these texts added. None: it exceeds the limit."""
        chars, words = self
        for text in texts:
            chars += 1 + len(text)
            if limit.max_chars is not None and chars > limit.max_chars:
                return None
            if limit.max_words is not None:
                # A text has at most as many words as characters.
                most = min(limit.max_words - words, len(text))
                words += len(text.split(None, most))
                if words > limit.max_words:
                    return None
        return _Length(chars, words)


NO_LENGTH = _Length(-1, 0)  # the first text has no space before it


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a value in their order, including the names of an object's members."""
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            pending += reversed([part for member in value.items() for part in member])
        elif isinstance(value, list):
            pending += reversed(value)
