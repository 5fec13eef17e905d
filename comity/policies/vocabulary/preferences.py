"""Decide about the uses of a page by the statements in one vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from comity.bounded import Bounded
from comity.policies.answers.decision import Reason, UseDecision, Verdict
from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.vocabulary.statement import NO_QUALIFIERS, Location, Statement
from comity.policies.vocabulary.table import Related, Vocabulary

# Uses whose decisions are cached.
MAX_USES = 256

ReasonOf = Callable[[Statement], Reason]
ByWord = dict[str, list[Statement]]


class Preferences:
    """A source of decisions: all statements about one page in one vocabulary (USE-7, PREF-4)."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        name: str,
        statements: Iterable[Statement],
        reason_of: ReasonOf,
        *,
        is_of_one_page: bool = True,
    ) -> None:
        """Index the statements.

        Args:
            vocabulary: the table.
            name: name of the vocabulary of the statements.
            statements: all statements in this vocabulary.
            reason_of: returns the reason for a statement.
            is_of_one_page: False if the statements come from `AgentReading.everywhere` and
                include permissions for any page. Such statements are never evaluated
                separately."""
        self._vocabulary = vocabulary
        self._name = name
        self._reason_of = reason_of
        # Both by the ids of statements, because a statement is about many uses.
        self._reasons: dict[int, Reason] = {}
        self._decisions: dict[tuple[int, ...], UseDecision] = {}
        self._by_use: Bounded[str, UseDecision | None] = Bounded(MAX_USES)
        self._by_word: ByWord = {}
        self._limits: list[Statement] = []
        is_separate = (
            is_of_one_page and name in vocabulary.words and vocabulary.words[name].separate
        )
        by_location: dict[Location, ByWord] = {}
        for statement in statements:
            self._by_word.setdefault(_word(statement), []).append(statement)
            if is_separate:
                by_location.setdefault(statement.location, {}).setdefault(
                    _word(statement), []
                ).append(statement)
            if statement.verdict is None:
                self._limits.append(statement)
        self._asked_alone = tuple(by_location.values()) if is_separate else (self._by_word,)

    @property
    def named_uses(self) -> tuple[str, ...]:
        """The words of the statements that are also uses."""
        return tuple(
            word
            for word, statements in self._by_word.items()
            if word in self._vocabulary.uses and _verdict(statements)
        )

    def decide(self, use: str) -> UseDecision | None:
        """Return the decision on a use. None: no statement refuses or permits it.

        If the vocabulary is separate, each group of statements with one location decides alone,
        and a refusal by any group refuses."""
        if use not in self._by_use:
            self._by_use[use] = self._decide(use)
        return self._by_use[use]

    def _decide(self, use: str) -> UseDecision | None:
        related = self._vocabulary.related(self._name, use)
        if related.words.isdisjoint(self._by_word):
            return None
        deciding = [
            statement
            for by_word in self._asked_alone
            for statement in self._deciding(use, related, by_word)
        ]
        refusing = [statement for statement in deciding if statement.verdict is Verdict.DENY]
        return self._decision(refusing or deciding) if deciding else None

    def _deciding(self, use: str, related: Related, by_word: ByWord) -> list[Statement]:
        """Return the statements that decide, all with one verdict.

        Among the words that the use is within, the nearest word with a statement decides. A word
        that touches the use refuses it too, unless the vocabulary gives precedence to the words
        that permit the use."""
        speaking = [
            statement for levels in related.levels for statement in _nearest(levels, by_word)
        ]
        refusing = [statement for statement in speaking if statement.verdict is Verdict.DENY]
        if not refusing:
            permitting = {_word(statement) for statement in speaking}
            inherits = self._vocabulary.words[self._name].inherits
            is_own = use in permitting or (
                inherits
                and any(
                    levels[0] == (use,) and _nearest(levels, by_word) for levels in related.levels
                )
            )
            words = sorted(related.touching.intersection(by_word))
            touching = [
                word
                for word in words
                if not self._comes_after(word, permitting, use if is_own else "")
            ]
            refusing = [
                statement
                for word in touching
                for statement in by_word[word]
                if statement.verdict is Verdict.DENY
            ]
        return refusing or speaking

    def limits(self, use: str) -> list[tuple[Qualifiers, Reason]]:
        """Return the restrictions that apply to the use if another source permits it."""
        if not self._limits:
            return []
        words = self._vocabulary.related(self._name, use).words
        return [
            (statement.qualifiers, self._reason(statement))
            for statement in self._limits
            if _word(statement) in words
        ]

    def _comes_after(self, word: str, permitting: Collection[str], own_word: str) -> bool:
        """Return True if a permission has precedence over a refusal of `word`.

        It has if `word` is more general than a permitting word, or an exception to the own word of
        the use. `own_word` is the use's own word if it is permitted, by itself or by inheritance
        (USE-4). "": it is not."""
        general = self._vocabulary.general
        return own_word in general(self._name, word) or any(
            word in general(self._name, permitting_word) for permitting_word in permitting
        )

    def _decision(self, statements: Sequence[Statement]) -> UseDecision:
        key = tuple(map(id, statements))
        if key not in self._decisions:
            self._decisions[key] = self._combine(statements)
        return self._decisions[key]

    def _combine(self, statements: Sequence[Statement]) -> UseDecision:
        assert statements[0].verdict
        reasons = (
            tuple(dict.fromkeys(map(self._reason, statements)))
            if len(statements) > 1
            else (self._reason(statements[0]),)
        )
        decision = UseDecision(verdict=statements[0].verdict, stated=True, reasons=reasons)
        if decision.verdict is Verdict.DENY:
            return decision
        return decision.conjoined(
            *(
                statement.qualifiers
                for statement in statements
                if statement.qualifiers is not NO_QUALIFIERS
            )
        )

    def _reason(self, statement: Statement) -> Reason:
        reason = self._reasons.get(id(statement))
        if reason is None:
            reason = self._reasons[id(statement)] = self._reason_of(statement)
        return reason


def _nearest(levels: Sequence[Sequence[str]], by_word: ByWord) -> list[Statement]:
    for level in levels:
        speaking = [
            statement
            for word in level
            for statement in by_word.get(word, ())
            if statement.verdict is not None
        ]
        if speaking:
            return speaking
    return []


def _verdict(statements: Iterable[Statement]) -> bool:
    return any(statement.verdict is not None for statement in statements)


def _word(statement: Statement) -> str:
    return statement.term.partition(":")[2]
