"""Write sentences that hold for a site today.

    sentences_of_today(Judge(source, agent))

Each sentence is checked before it is returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import ceil, floor, isfinite
from urllib.parse import urlsplit

from comity.authoring.expectations.judging import Judge
from comity.authoring.expectations.sentences import (
    ANYWHERE,
    EVERYBODY,
    EVERYBODY_ELSE,
    LEAST,
    LIMITED,
    MOST,
    NO,
    OPEN,
    PERMITTED,
    REFUSED,
    YES,
    Fetching,
    Keeping,
    Meaning,
    Showing,
    Using,
    Waiting,
    is_subject,
)
from comity.authoring.explaining import spoken_of, unspoken_path
from comity.policies.vocabulary.known_crawlers import known
from comity.policies.vocabulary.use_classes import CLASSES

MAX_PATHS = 100  # the paths for which sentences are written
MAX_NAMES = 50  # the crawlers for which sentences are written

_Makers = Sequence[Callable[[str, str], Meaning]]  # subject and path -> a possible meaning


def sentences_of_today(
    judge: Judge, names: Iterable[str] = (), urls: Iterable[str] = ()
) -> list[Meaning]:
    """Return the meanings of sentences that hold.

    `names`: the crawlers. Without any, they are those that the files name.
    `urls`: URLs or paths. Without any, they are the paths in the files, and the pages."""
    return list(dict.fromkeys(_Writer(judge, tuple(names), tuple(urls)).sentences()))


class _Writer:
    def __init__(self, judge: Judge, names: Sequence[str], urls: Sequence[str]) -> None:
        self._judge = judge
        crawlers = ((known(name), name) for name in names or judge.names)
        tokens = [crawler.token if crawler else name for crawler, name in crawlers]
        self._subjects = (
            EVERYBODY_ELSE,
            *[token for token in tokens if is_subject(token)][:MAX_NAMES],
        )
        source = judge.source
        paths = [_path_of(url) for url in urls] or [
            *spoken_of(source),
            unspoken_path(source),
            *(page.url.removeprefix(source.origin) for page in source.pages),
        ]
        usual = (path for path in paths if not any(char in path for char in "*# \t"))
        self._paths = tuple(dict.fromkeys(usual))[:MAX_PATHS]

    def sentences(self) -> Iterator[Meaning]:
        yield from self._about([_fetching(answer) for answer in (YES, NO, LIMITED)])
        for class_ in CLASSES:
            yield from self._about(
                [_using(class_.use, answer) for answer in (REFUSED, PERMITTED, OPEN)]
            )
        yield from self._waiting()
        yield from self._limits()

    def _about(self, makers: _Makers) -> Iterator[Meaning]:
        """Yield sentences about one topic: as few as possible, about as much as possible."""
        if meaning := self._first(makers, EVERYBODY, ANYWHERE):
            yield meaning
            return
        others = []
        for subject in self._subjects:
            if meaning := self._first(makers, subject, ANYWHERE):
                yield meaning
            else:
                others.append(subject)
        for path in self._paths:
            if len(others) == len(self._subjects) and (
                meaning := self._first_at(makers, EVERYBODY, path)
            ):
                yield meaning
                continue
            for subject in others:
                if meaning := self._first_at(makers, subject, path):
                    yield meaning

    def _first_at(self, makers: _Makers, subject: str, path: str) -> Meaning | None:
        """Return the sentence about a folder with all paths below it, or else about the path."""
        below = self._first(makers, subject, f"{path}**") if path[1:].endswith("/") else None
        return below or self._first(makers, subject, path)

    def _first(self, makers: _Makers, subject: str, path: str) -> Meaning | None:
        meanings = (make(subject, path) for make in makers)
        return next((meaning for meaning in meanings if self._judge.check(meaning).holds), None)

    def _waiting(self) -> Iterator[Meaning]:
        for subject in (EVERYBODY, *self._subjects):
            least, most = self._judge.waits_of(subject, ANYWHERE)
            if least:
                yield from self._if_it_holds(Waiting(subject, LEAST, floor(least * 1000)))
            if isfinite(most):
                yield from self._if_it_holds(Waiting(subject, MOST, ceil(most * 1000)))
            if subject == EVERYBODY and least == most:
                return

    def _limits(self) -> Iterator[Meaning]:
        days, words, characters = self._judge.limits_of(self._subjects, self._paths)
        for makers in (
            list(map(_keeping, days)),
            [_showing(number, "words") for number in words],
            [_showing(number, "characters") for number in characters],
        ):
            yield from self._about(makers) if makers else ()

    def _if_it_holds(self, meaning: Meaning) -> Iterator[Meaning]:
        if self._judge.check(meaning).holds:
            yield meaning


def _path_of(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _fetching(answer: str) -> Callable[[str, str], Meaning]:
    return lambda subject, path: Fetching(subject, path, answer)


def _using(use: str, answer: str) -> Callable[[str, str], Meaning]:
    return lambda subject, path: Using(subject, use, path, answer)


def _keeping(days: int) -> Callable[[str, str], Meaning]:
    return lambda subject, path: Keeping(subject, path, days)


def _showing(number: int, unit: str) -> Callable[[str, str], Meaning]:
    return lambda subject, path: Showing(subject, path, number, unit)
