"""The length of text that may be shown of a record.

content(record)              the fields that hold something of the page
beyond(record, limit)        what is more than a permission allows to show"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from comity.dataset.records import IDENTITY, Record
from comity.policies.answers.decision import UseDecision
from comity.policies.document.snippet import snippet
from comity.policies.elements.spans import Removals, is_empty


def content(record: Record) -> list[str]:
    """The fields that hold something of the page."""
    return [
        field for field, value in record.items() if field not in IDENTITY and not is_empty(value)
    ]


def beyond(record: Record, limit: UseDecision) -> Removals:
    """Removals for the record to show no more text than `max_chars` and `max_words` of the limit permit.

    `text`, or else the first text, is cut to the limit, and other fields stay as long as all together are within it. `title`
    counts by itself: it names the page beside its snippet."""
    removed: Removals = {}
    fields = content(record)
    texts = [field for field in fields if isinstance(record[field], str) and field != "title"]
    main = "text" if "text" in texts else next(iter(texts), "")
    length = NO_LENGTH
    for field in sorted(
        fields, key=lambda field: field != main
    ):  # the main text first, others as they come
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
    """Return whether the texts together are no longer than `max_chars` and `max_words` of the limit permit."""
    return NO_LENGTH.with_texts(texts, limit) is not None


class _Length(NamedTuple):
    """The length of texts that stand one behind the other, with a space between them."""

    chars: int
    words: int

    def with_texts(self, texts: Iterable[str], limit: UseDecision) -> _Length | None:
        """Return the length with these texts behind them. None: that is more than the limit permits."""
        chars, words = self
        for text in texts:
            chars += 1 + len(text)
            if limit.max_chars is not None and chars > limit.max_chars:
                return None
            if limit.max_words is not None:
                most = min(
                    limit.max_words - words, len(text)
                )  # there are no more words than characters
                words += len(text.split(None, most))
                if words > limit.max_words:
                    return None
        return _Length(chars, words)


NO_LENGTH = _Length(-1, 0)  # no space stands before the first text


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
