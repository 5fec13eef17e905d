"""The words of the formats in each kind of file, as `Format.authoring` defines them.

words_of(kind, form) -> Words"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from comity.authoring.language_server.statements import COLON, Nesting, StatementForm
from comity.authoring.lint import PAGE, LintKind
from comity.policies.formats import FORMATS
from comity.policies.formats.authoring import Directive
from comity.policies.formats.format import Format

# Kinds of value.
AGENT = "agent"  # the agent that the statement applies to
PATH = "path"
SELECTORS = ("selector", "element")
NAME = "name"  # a name that the statement defines
URL = "url"
PLACEHOLDER = "NAME"  # in the values of a format: any name that the file defines

_ROBOTS = "/robots.txt"


class Word(NamedTuple):
    """A directive, element, member or other name of a format, and the format."""

    directive: Directive
    format: Format

    @property
    def value_kinds(self) -> tuple[str, ...]:
        """The kind of each word of the directive's value, in order: ("path", "preference").

        The last kind applies to all further words of a value, too."""
        return tuple(self.directive.value.split())

    def values_of(self, kind: str) -> Mapping[str, str]:
        """Return the values that the format lists for a kind: value -> its meaning."""
        return self.format.authoring.values.get(kind, {})


def kinds_at(kinds: tuple[str, ...], number: int) -> tuple[str, ...]:
    """Return the possible kinds of the word with this number in a value, counted from 0.

    If `kinds` begins with a path, the path may be left out. So the word 0 may be the path or the
    word after the path."""
    if not kinds:
        return ()
    kind = kinds[min(number, len(kinds) - 1)]
    return (kind, kinds[1]) if number == 0 and kind == PATH and len(kinds) > 1 else (kind,)


class FileWords:
    """The words of one kind of file.

    Attributes:
        words: The words.
        separator: The sign between the name and the value of a line.
    """

    def __init__(self, words: list[Word], separator: str = COLON) -> None:
        self.words = words
        self.separator = separator
        self._by_name: dict[str, list[Word]] = {}
        for word in words:
            self._by_name.setdefault(word.directive.name.lower(), []).append(word)
        self.openers = {name.lower() for word in words for name in word.directive.within}

    def get(self, name: str, within: str = "") -> Word | None:
        """Return the word of a name, or None.

        `within`: the name of the enclosing statement. It decides if the name has several words, for
        different places. The first word is returned if none of them is for this place."""
        words = self._by_name.get(name.lower(), ())
        return next((word for word in words if within in word.directive.within), None) or next(
            iter(words), None
        )

    def names_with(self, kind: str) -> frozenset[str] | None:
        """Return the names, in lower case, of words that may have a value of this kind.

        None means that the names are not enough to find these words: the kind of a value also
        depends on the enclosing statement, or on parentheses in the name."""
        names = {
            name: words
            for name, words in self._by_name.items()
            if any(kind in word.value_kinds for word in words)
        }
        is_certain = all(
            len({word.directive.value for word in words}) == 1 and "other" not in name
            for name, words in names.items()
        )
        return frozenset(names) if is_certain else None

    def below(self, name: str) -> Iterator[Word]:
        """Return the words of the statements that a statement with this name may contain."""
        return (
            word for word in self.words if name.lower() in map(str.lower, word.directive.within)
        )

    @property
    def anywhere(self) -> Iterator[Word]:
        """The words of statements that need no enclosing statement."""
        return (word for word in self.words if not word.directive.within)

    def nesting(self) -> dict[str, Nesting]:
        """Return the nesting of each name: name in lower case -> Nesting."""
        return {
            name: Nesting(
                frozenset(parent.lower() for word in words for parent in word.directive.within),
                name in self.openers,
                any(not word.directive.within for word in words),
            )
            for name, words in self._by_name.items()
        }


_FORMS = {
    StatementForm.LINES: ("line",),
    StatementForm.XML: ("element", "attribute"),
    StatementForm.JSON: ("member",),
    StatementForm.HTML: ("meta", "field", "word"),
}


@lru_cache
def words_in(kind_name: str, path: str, form: StatementForm) -> FileWords:
    """Return the words of a kind of file. `path`: its path on a site; "" means any path."""
    words: list[Word] = []
    separator = COLON
    for format_ in FORMATS:
        directives = [
            directive
            for directive in format_.authoring.directives
            if directive.form in _FORMS[form]
        ]
        owns = path in (file.path for file in format_.files) or kind_name in (
            kind.name for kind in format_.authoring.kinds
        )
        separator = format_.authoring.separator if owns else separator
        if not owns and path == _ROBOTS:
            directives = [
                directive for directive in directives if _is_robots_line(directive, format_)
            ]
        elif not owns and kind_name != PAGE:
            directives = []
        words += (Word(directive, format_) for directive in directives)
    return FileWords(words, separator)


def _is_robots_line(directive: Directive, format_: Format) -> bool:
    """Return True if the directive may be a line of robots.txt.

    It may be one if its format lists it in `robots_lines`, or has neither files, header fields,
    documents nor `robots_lines`."""
    if not (
        format_.files or format_.header_fields or format_.read_document or format_.robots_lines
    ):
        return True
    return directive.name.lower() in format_.robots_lines


def words_of(kind: LintKind | None, form: StatementForm) -> FileWords:
    """Return the words of a kind of file. `kind`: None gives no words."""
    return words_in(kind.name, kind.path, form) if kind else FileWords([])
