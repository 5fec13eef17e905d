"""The table that relates the words of all vocabularies to uses (MEET-4).

Vocabulary.shipped()              the table of vocabulary.toml
Vocabulary.from_toml(text)        an operator's own table, added to the shipped one or in its place
vocabulary.related(name, use)     the words of one vocabulary that matter for a use"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files
from typing import Any, NamedTuple

from comity.policies.answers.errors import PolicyError

KINDS = ("within", "touches")
DESCRIPTIONS = ("title", "specification", "revision", "section")
PROPERTIES = ("separate", "inherits")
# In a row: every use that the table does not name.
ANY = "*"
# Name of the vocabulary of ACAP 1.0 section-2.5.5.2.4.
MODIFICATION = "modification"


class Words(NamedTuple):
    """The words of one vocabulary.

    Attributes:
        name: name of the vocabulary.
        narrows: word -> the more general words that it narrows.
        title, specification, revision, section: the document that defines the vocabulary. "": not
            given.
        separate: True if each statement is evaluated alone. A refusal by any of them refuses.
        inherits: True if a permission of a general word also permits its narrower words by name.
            A refusal of a narrower word is then an exception."""

    name: str
    narrows: Mapping[str, tuple[str, ...]]
    title: str
    specification: str
    revision: str
    section: str
    separate: bool
    inherits: bool


class Relation(NamedTuple):
    """One row of the table.

    Attributes:
        uses: the uses that the row is about, or ANY.
        terms: "vocabulary:word".
        kind: "within" or "touches", of KINDS.
        rationale: why the row is in the table."""

    uses: tuple[str, ...]
    terms: tuple[str, ...]
    kind: str
    rationale: str


class Related(NamedTuple):
    """The words of one vocabulary that matter for one use.

    Attributes:
        levels: for each word that the use is within, that word, then the words that it narrows,
            nearest first.
        touching: words that refuse the use, and do not permit it.
        words: all of these words."""

    levels: tuple[tuple[tuple[str, ...], ...], ...]
    touching: frozenset[str]
    words: frozenset[str]


_UNRELATED = Related((), frozenset(), frozenset())


class Vocabulary:
    """The words of all vocabularies and the rows of the table. Immutable."""

    def __init__(self, words: Iterable[Words], relations: Iterable[Relation]) -> None:
        """Check the table. PolicyError: a row contains a word that no vocabulary has."""
        self.words = {vocabulary.name: vocabulary for vocabulary in words}
        self.relations = tuple(relations)
        self._check()
        self.uses = tuple(
            dict.fromkeys(use for relation in self.relations for use in relation.uses if use != ANY)
        )
        self._named_uses = frozenset(self.uses)
        self._related: dict[tuple[str, str], Related] = {}

    @classmethod
    def shipped(cls) -> Vocabulary:
        """Return the vocabulary that comes with comity."""
        return _load_shipped()

    @classmethod
    def from_toml(cls, text: str) -> Vocabulary:
        """Return an operator's table, added to the shipped one unless it says `replaces = true`.

        PolicyError: the text is not such a table."""
        return cls.shipped().joined(text)

    def joined(self, text: str) -> Vocabulary:
        """Return this table with the TOML table in `text` added.

        If `text` says `replaces = true`, it is returned alone. PolicyError: it is not a table."""
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise PolicyError(f"is not TOML: {error}") from None
        unknown = table.keys() - {"replaces", "vocabulary", "relation"}
        if unknown:
            raise PolicyError(
                f"`{min(unknown)}` has no meaning: write replaces, [vocabulary.NAME] or"
                " [[relation]]"
            )
        words, relations = dict(_words(table)), list(_relations(table))
        replaces = table.get("replaces", False)
        if not isinstance(replaces, bool):
            raise PolicyError("`replaces` is not true or false")
        if not replaces:
            words = dict(self.words) | {
                name: _merge(self.words.get(name), added) for name, added in words.items()
            }
            relations = [*self.relations, *relations]
        return Vocabulary(words.values(), relations)

    def _check(self) -> None:
        for vocabulary in self.words.values():
            for word, general in vocabulary.narrows.items():
                for more in general:
                    if more not in vocabulary.narrows:
                        raise PolicyError(
                            f"`{vocabulary.name}:{word}` narrows `{more}`, which is"
                            f" not a word of `{vocabulary.name}`"
                        )
            try:
                TopologicalSorter(vocabulary.narrows).prepare()
            except CycleError as error:
                raise PolicyError(
                    f"`{vocabulary.name}:{error.args[1][0]}` narrows itself"
                ) from None
        for relation in self.relations:
            for term in relation.terms:
                if not self.has(term):
                    raise PolicyError(
                        f"`{term}` is not a word of a vocabulary: write vocabulary:word"
                    )

    def has(self, term: str) -> bool:
        """Return True if the term is a word of one of the vocabularies."""
        name, _, word = term.partition(":")
        return name in self.words and word in self.words[name].narrows

    def general(self, name: str, word: str) -> list[str]:
        """Return all words that the word narrows, nearest first.

        `name` is the vocabulary of the word."""
        general: dict[str, None] = {}
        level = list(self.words[name].narrows[word])
        while level:
            general |= dict.fromkeys(level)
            level = [
                more
                for narrower in level
                for more in self.words[name].narrows.get(narrower, ())
                if more not in general
            ]
        return list(general)

    def related(self, name: str, use: str) -> Related:
        """Return the words of the vocabulary `name` that matter for the use."""
        if name not in self.words:
            return _UNRELATED
        if use not in self._named_uses and use not in self.words[name].narrows:
            use = ANY  # unknown uses are unlimited in number, so they share one entry
        related = self._related.get((name, use))
        if related is None:
            related = self._related[name, use] = self._relate(name, use)
        return related

    @cached_property
    def _questions(self) -> dict[str, str]:
        """Use -> the first use of the table to which all vocabularies give the same meaning."""
        first: dict[tuple[Related, ...], str] = {}
        return {
            use: first.setdefault(tuple(self.related(name, use) for name in self.words), use)
            for use in self.uses
        }

    def question(self, use: str) -> str:
        """Return the first use of the table that asks the same question: `train` for `ai-train`.

        A use that the table does not name is a question of its own."""
        return self._questions.get(use, use)

    def modifications(self, use: str) -> frozenset[str]:
        """Return the modifications that prohibit the use: translation and any for `translate`.

        Empty for a use that is not a modification."""
        return self.related(MODIFICATION, use).words

    def _relate(self, name: str, use: str) -> Related:
        row_use = use if use in self._named_uses else ANY
        within: dict[str, None] = {}
        touching = set()
        for relation in self.relations:
            if row_use in relation.uses:
                words = [
                    term.partition(":")[2] for term in relation.terms if term.startswith(f"{name}:")
                ]
                if relation.kind == "within":
                    within |= dict.fromkeys(words)
                else:
                    touching.update(words)
        # A registered word is also a use with the same name, unless a row gives it another meaning.
        if use in self.words[name].narrows and use not in touching:
            within[use] = None
        general = {more for word in within for more in self.general(name, word)}
        starts = [word for word in within if word not in general]
        levels = tuple(self._levels(name, word) for word in starts)
        return Related(levels, frozenset(touching), frozenset((*touching, *within, *general)))

    def _levels(self, name: str, word: str) -> tuple[tuple[str, ...], ...]:
        narrows = self.words[name].narrows
        levels: list[tuple[str, ...]] = [(word,)]
        seen = {word}
        while levels[-1]:
            level = tuple(
                dict.fromkeys(
                    more
                    for narrower in levels[-1]
                    for more in narrows[narrower]
                    if more not in seen
                )
            )
            seen.update(level)
            levels.append(level)
        return tuple(levels[:-1])


_added: list[str] = []  # texts of `add_vocabularies`


def add_vocabularies(text: str) -> None:
    """Add vocabularies of another package to the shipped table, and rows about their words.

    PolicyError: the text is not such a table, or it changes a shipped vocabulary, the meaning of
    its words, or the list of uses."""
    before, after = _load_shipped(), _load_shipped().joined(text)
    if after.relations[: len(before.relations)] != before.relations:
        raise PolicyError("it cannot replace the table: leave out `replaces`")
    if changed := next(
        (name for name, words in before.words.items() if after.words[name] != words), None
    ):
        raise PolicyError(f"it cannot change the vocabulary `{changed}`: write one of its own")
    for relation in after.relations[len(before.relations) :]:
        for term in relation.terms:
            if term.partition(":")[0] in before.words:
                raise PolicyError(
                    f"it cannot say what `{term}` means: it is not a word of the added vocabulary"
                )
        for use in relation.uses:
            if use not in (ANY, *before.uses):
                raise PolicyError(
                    f"the table has no use `{use}`: a word that is a use of its own name needs no"
                    " row"
                )
    _added.append(text)
    _load_shipped.cache_clear()


@cache
def _load_shipped() -> Vocabulary:
    table = tomllib.loads(
        files("comity.policies.vocabulary").joinpath("vocabulary.toml").read_text("utf-8")
    )
    vocabulary = Vocabulary(dict(_words(table)).values(), _relations(table))
    for text in _added:
        vocabulary = vocabulary.joined(text)
    return vocabulary


def _words(table: Mapping[str, Any]) -> Iterator[tuple[str, Words]]:
    for name, entry in _mapping(table.get("vocabulary", {}), "vocabulary").items():
        entry = _mapping(entry, f"vocabulary.{name}")
        narrows = {}
        for word, properties in _mapping(
            entry.get("terms", {}), f"vocabulary.{name}.terms"
        ).items():
            general = _mapping(properties, f"vocabulary.{name}.terms.{word}").get("narrows", [])
            narrows[word] = _texts(general, f"vocabulary.{name}.terms.{word}.narrows")
        descriptions: dict[str, Any] = {key: str(entry.get(key, "")) for key in DESCRIPTIONS}
        flags: dict[str, Any] = {key: entry.get(key, False) for key in PROPERTIES}
        for key, value in flags.items():
            if not isinstance(value, bool):
                raise PolicyError(f"vocabulary.{name}.{key} is not true or false")
        yield name, Words(name, narrows, **descriptions, **flags)


def _relations(table: Mapping[str, Any]) -> Iterator[Relation]:
    rows = table.get("relation", [])
    if not isinstance(rows, list):
        raise PolicyError("`relation` is not a list of rows: write [[relation]]")
    for number, row in enumerate(rows, 1):
        row_name = f"[[relation]] number {number}"
        row = _mapping(row, row_name)
        kind = row.get("kind")
        if kind not in KINDS:
            raise PolicyError(f"{row_name}: kind `{kind}` is unknown: write {' or '.join(KINDS)}")
        uses, terms = (
            _texts(row.get("uses"), f"{row_name}: uses"),
            _texts(row.get("terms"), f"{row_name}: terms"),
        )
        yield Relation(tuple(use.lower() for use in uses), terms, kind, str(row.get("why", "")))


def _merge(shipped: Words | None, added: Words) -> Words:
    if shipped is None:
        return added
    merged = {
        key: getattr(added, key) or getattr(shipped, key) for key in (*DESCRIPTIONS, *PROPERTIES)
    }
    return Words(added.name, {**shipped.narrows, **added.narrows}, **merged)


def _mapping(value: Any, key: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise PolicyError(f"{key} is not a table")
    return value


def _texts(value: Any, key: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise PolicyError(f"{key} is not a list of texts")
    return tuple(value)
