"""What the statements of one vocabulary say of the uses of a page, by the table of vocabulary.toml."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from comity.policies.answers.decision import Reason, UseDecision, Verdict
from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.vocabulary.statement import NOTHING, Statement
from comity.policies.vocabulary.table import Vocabulary

Because = Callable[[Statement], Reason]


class Preferences:
    """A source of decisions: all that is said in one vocabulary about one page, wherever it stands (USE-7, PREF-4)."""

    def __init__(self, vocabulary: Vocabulary, name: str, statements: Iterable[Statement], because: Because) -> None:
        """`name`: of the vocabulary that the statements are in."""
        self._vocabulary = vocabulary
        self._name = name
        self._because = because
        # By the identities of the statements: each speaks of many uses.
        self._reasons: dict[int, Reason] = {}
        self._decisions: dict[tuple[int, ...], UseDecision] = {}
        self._said: dict[str, list[Statement]] = {}  # by word
        self._limits: list[Statement] = []
        for statement in statements:
            self._said.setdefault(_word(statement), []).append(statement)
            if statement.verdict is None:
                self._limits.append(statement)

    @property
    def stated(self) -> tuple[str, ...]:
        """The words that are uses too."""
        return tuple(word for word, said in self._said.items() if word in self._vocabulary.uses and _verdict(said))

    def decide(self, use: str) -> UseDecision | None:
        """None: nothing that is said has to do with the use, or permits it.

        Of the words that the use is within, the nearest of which something is said speaks. Those that it touches refuse it too,
        unless the vocabulary puts the words that permit it before them."""
        related = self._vocabulary.related(self._name, use)
        if related.words.isdisjoint(self._said):
            return None
        speaking = [said for levels in related.levels for said in self._nearest(levels)]
        refusing = [one for one in speaking if one.verdict is Verdict.DENY]
        if not refusing:
            permitting = {_word(one) for one in speaking}
            inherits = self._vocabulary.words[self._name].inherits
            is_own = use in permitting or (inherits and any(one[0] == (use,) and self._nearest(one) for one in related.levels))
            said = sorted(related.touching.intersection(self._said))
            touching = [word for word in said if not self._comes_after(word, permitting, use if is_own else "")]
            refusing = [one for word in touching for one in self._said[word] if one.verdict is Verdict.DENY]
        deciding = refusing or speaking
        return self._decision(deciding) if deciding else None

    def limits(self, use: str) -> list[tuple[Qualifiers, Reason]]:
        """What restricts the use, should anybody permit it."""
        if not self._limits:
            return []
        words = self._vocabulary.related(self._name, use).words
        return [(one.qualifiers, self._reason(one)) for one in self._limits if _word(one) in words]

    def _comes_after(self, word: str, permitting: Collection[str], own: str) -> bool:
        """Whether a refusal of the word leaves the permission as it is: it is more general, or an exception to what permits.

        `own`: the use's own word, where it is permitted, by itself or as one that inherits (USE-4); else ""."""
        general = self._vocabulary.general
        return own in general(self._name, word) or any(word in general(self._name, one) for one in permitting)

    def _nearest(self, levels: Sequence[Sequence[str]]) -> list[Statement]:
        for level in levels:
            said = [one for word in level for one in self._said.get(word, ()) if one.verdict is not None]
            if said:
                return said
        return []

    def _decision(self, said: Sequence[Statement]) -> UseDecision:
        key = tuple(map(id, said))
        if key not in self._decisions:
            self._decisions[key] = self._decided(said)
        return self._decisions[key]

    def _decided(self, said: Sequence[Statement]) -> UseDecision:
        assert said[0].verdict
        reasons = tuple(dict.fromkeys(map(self._reason, said))) if len(said) > 1 else (self._reason(said[0]),)
        decision = UseDecision(verdict=said[0].verdict, stated=True, reasons=reasons)
        if decision.verdict is Verdict.DENY:
            return decision
        return decision.conjoined(*(one.qualifiers for one in said if one.qualifiers is not NOTHING))

    def _reason(self, statement: Statement) -> Reason:
        reason = self._reasons.get(id(statement))
        if reason is None:
            reason = self._reasons[id(statement)] = self._because(statement)
        return reason


def _verdict(said: Iterable[Statement]) -> bool:
    return any(one.verdict is not None for one in said)


def _word(statement: Statement) -> str:
    return statement.term.partition(":")[2]
