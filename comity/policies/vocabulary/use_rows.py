"""The rows in which reports and summaries count uses: one row for each question.

Several terms may ask one question: `train-ai` of AIPREF and `ai-train` of Content Signals have the
same meaning in the table of vocabularies. A tag lists both terms. A report has one row for the
question, and names the terms of the sources beside it.

    rows = UseRows(agent.vocabulary, agent.uses)
    rows.of(tag["uses"])        row -> its terms in the tag, the deciding one first
    named(row, terms)           the name of a row and its other terms"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from comity.policies.vocabulary.table import Vocabulary


class UseRows:
    """Maps uses to rows.

    A row has the name of the operator's term for its question. If the operator has none, it has
    the name of the table's first term."""

    def __init__(self, vocabulary: Vocabulary | None = None, declared: Iterable[str] = ()) -> None:
        self._vocabulary = vocabulary or Vocabulary.shipped()
        self._declared: dict[str, str] = {}  # question -> the operator's term
        for use in declared:
            self._declared.setdefault(self._vocabulary.question(use), use)
        questions = Counter(map(self._vocabulary.question, self._vocabulary.uses))
        self.shared = frozenset(
            self._row(question) for question, number in questions.items() if number > 1
        )
        """Names of the rows that have several terms."""

    def _row(self, question: str) -> str:
        return self._declared.get(question, question)

    def of(self, uses: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
        """Return row -> its terms. `uses`: the uses of a tag, with `verdict` and `stated`.

        The first term of a row decides: refusals come before permissions, and statements before
        defaults."""
        rows: dict[str, list[str]] = {}
        for use in uses:
            rows.setdefault(self._row(self._vocabulary.question(use)), []).append(use)
        for members in rows.values():
            if len(members) > 1:
                members.sort(
                    key=lambda use: (uses[use]["verdict"] != "deny", not uses[use]["stated"])
                )
        return rows


def named(row: str, terms: Collection[str]) -> tuple[str, list[str]]:
    """Return the name to show for a row, and the other terms that occurred in it.

    `terms`: the terms of the row that occurred, or none if they were not counted. If exactly one
    term occurred, it is the name. Otherwise the name is `row`."""
    name = row if row in terms or len(terms) != 1 else next(iter(terms))
    return name, sorted({*terms} - {name})
