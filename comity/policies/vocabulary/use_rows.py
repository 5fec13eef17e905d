"""The rows in which reports and summaries count uses: one for each question, in whichever words sources ask it.

`train-ai` of AIPREF and `ai-train` of Content Signals are one question: the table of vocabularies says the same of both. A tag
lists both terms; a report has one row, and the words of the sources beside it.

    rows = UseRows(agent.vocabulary, agent.uses)
    rows.of(tag["uses"])        row -> the terms of the tag that are in it, the deciding one first
    named(row, terms)           the name of a row and the words beside it, by all terms that were in it"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from comity.policies.vocabulary.table import Vocabulary


class UseRows:
    """The row of each use. A row is named as the operator declares the use, else as the table has it first."""

    def __init__(self, vocabulary: Vocabulary | None = None, declared: Iterable[str] = ()) -> None:
        self._vocabulary = vocabulary or Vocabulary.shipped()
        self._declared: dict[str, str] = {}  # question -> how the operator declares it
        for use in declared:
            self._declared.setdefault(self._vocabulary.question(use), use)
        questions = Counter(map(self._vocabulary.question, self._vocabulary.uses))
        self.shared = frozenset(
            self._row(question) for question, number in questions.items() if number > 1
        )
        """The rows whose question is asked in several words."""

    def _row(self, question: str) -> str:
        return self._declared.get(question, question)

    def of(self, uses: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
        """Return row -> the uses in it. `uses`: of a tag, with `verdict` and `stated`.

        The first use of a row decides it: a refusal comes before a permission, and a statement before a default."""
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
    """Return the name of a row, and the other words for it. `terms`: all that were in it; none of a row without other words.

    A row with one term is named as this term."""
    name = row if row in terms or len(terms) != 1 else next(iter(terms))
    return name, sorted({*terms} - {name})
