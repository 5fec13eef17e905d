"""Find URLs that show how a site's files treat all paths of a glob.

    witnesses = Witnesses(source)
    witnesses.of("/shop/**")    paths below /shop/, and whether they are enough

The decision about a path depends on the patterns of the files that match it. So one path for each
set of patterns that can match together is enough. An automaton reads the glob and all patterns at
once and finds these sets, each with its shortest path. If there are too many sets, each pattern is
read with the glob alone, and the result is not complete."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from comity.authoring.explaining import written_patterns
from comity.authoring.source import SiteSource
from comity.policies.syntax.path_patterns import foldings, normal_pattern, normal_target
from comity.policies.syntax.urls import origin_or_empty

# The maximum number of states of one search, and of paths that it finds.
MAX_STATES = 10_000
MAX_PATHS = 1000
# Characters for the places where a pattern has an asterisk, in the order of preference.
FILLERS = "qzxjykvw0123456789-_~bcdefghilmnoprstuQZXJYKVW!'(),:;@"
_URL = re.compile(r"https?://[^\s\"'<>]+", re.IGNORECASE)
_QUOTED = re.compile(r"[\"']([*.][^\"'\s]*)[\"']")


class Paths(NamedTuple):
    """Paths of a glob.

    Attributes:
        paths: The paths, the shortest first.
        is_complete: True if the paths show every set of patterns that can match together.
    """

    paths: tuple[str, ...]
    is_complete: bool


class Witnesses:
    """The patterns in the files of a site, and the paths that show their effects."""

    def __init__(self, source: SiteSource) -> None:
        self._patterns = tuple(dict.fromkeys(_patterns_of(source)))
        self._found: dict[str, Paths] = {}

    def of(self, path: str) -> Paths:
        """Return the paths of a glob. A path without asterisks is its only path."""
        if "*" not in path:
            return Paths((path,), is_complete=True)
        if path not in self._found:
            self._found[path] = self._search(path)
        return self._found[path]

    def _search(self, glob: str) -> Paths:
        found = _Automaton(glob, self._patterns).paths()
        if found.is_complete:
            return found
        paths = dict.fromkeys(found.paths)
        for pattern in self._patterns:
            paths |= dict.fromkeys(_Automaton(glob, (pattern,)).paths().paths)
        return Paths(tuple(paths), is_complete=False)

    @staticmethod
    def among(glob: str, paths: Iterable[str]) -> list[str]:
        """Return those of some paths that a glob contains."""
        automaton = _Automaton(glob, ())
        return [path for path in paths if automaton.accepts(normal_target(path))]


def _patterns_of(source: SiteSource) -> Iterator[str]:
    """Yield every pattern in the files, in the form in which patterns are compared.

    Some formats compare letters in any case, so each pattern is also in lower case. File types such
    as `*.jpg` are patterns for the end of a path."""
    for text in (*written_patterns(source), *_other_patterns(source)):
        pattern = normal_pattern(text.encode("utf-8", "surrogateescape"))
        pattern = pattern if pattern.startswith(("/", "*")) else f"*{pattern}"
        for written in dict.fromkeys((pattern, foldings(pattern)[0])):
            yield written
            if "/" not in written and not written.endswith("$"):
                yield f"{written}$"


def _other_patterns(source: SiteSource) -> Iterator[str]:
    """Yield patterns in absolute URLs, and quoted patterns that do not begin with a slash."""
    for file in source.files:
        text = file.fetched.body.decode("utf-8", "replace")
        yield from _QUOTED.findall(text)
        for match in _URL.finditer(text):
            if origin_or_empty(match[0]) == source.origin:
                parts = urlsplit(match[0])
                yield (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


class _Automaton:
    """Reads a path with a glob and several patterns at once.

    A state is a set of bits. Each glob or pattern has one bit for each position in its text, and
    the bit after its last position means that it matches."""

    def __init__(self, glob: str, patterns: Iterable[str]) -> None:
        self._at: dict[str, int] = {}  # character -> the positions that read it
        self._any = self._segment = 0  # positions of asterisks, and of those within a segment
        self._start = self._ends = 0
        self._decided: list[tuple[int, int]] = []  # the last asterisk of a pattern, its positions
        self._size = 0
        self._glob = self._add(_glob_symbols(glob))
        self._glob_end = self._ends
        for pattern in patterns:
            symbols = ["**" if char == "*" else char for char in pattern.removesuffix("$")]
            self._add(symbols if pattern.endswith("$") else [*symbols, "**"])
        filler = next((char for char in FILLERS if not self._has_letter(char)), None)
        self._has_filler = filler is not None
        self._filler = filler or FILLERS[0]

    def _has_letter(self, char: str) -> bool:
        return char.lower() in self._at or char.upper() in self._at

    def _add(self, symbols: list[str]) -> int:
        """Add a glob or pattern. Return the bits of its positions."""
        first = 1 << self._size
        self._start |= first
        for symbol in symbols:
            bit = 1 << self._size
            if symbol == "**":
                self._any |= bit
            elif symbol == "*":
                self._segment |= bit
            else:
                self._at[symbol] = self._at.get(symbol, 0) | bit
            self._size += 1
        end = 1 << self._size
        self._size += 1
        self._ends |= end
        positions = 2 * end - first
        if symbols and symbols[-1] == "**":
            self._decided.append((end >> 1, positions))
        return positions

    def _close(self, state: int) -> int:
        """Return the state with the positions after its asterisks, which may stand for nothing."""
        asterisks = self._any | self._segment
        while (closed := state | (state & asterisks) << 1) != state:
            state = closed
        # A pattern that matches every longer path has no more need of its other positions.
        for last, positions in self._decided:
            if state & last:
                state = state & ~positions | last | last << 1
        return state

    def _read(self, state: int, char: str) -> int:
        kept = self._any if char in "/?" else self._any | self._segment
        return self._close((state & self._at.get(char, 0)) << 1 | state & kept)

    def accepts(self, path: str) -> bool:
        state = self._close(self._start)
        for char in path:
            state = self._read(state, char)
        return bool(state & self._glob_end)

    def paths(self) -> Paths:
        """Return one path of the glob for each set of patterns that matches some path of it."""
        start = self._close(self._start)
        seen, queue = {start}, deque([(start, "")])
        found: dict[int, str] = {}
        while queue:
            state, text = queue.popleft()
            if state & self._glob_end:
                found.setdefault(state & self._ends, text)
            if len(seen) > MAX_STATES or len(found) == MAX_PATHS:
                return Paths(tuple(found.values()), is_complete=False)
            chars = [char for char, positions in self._at.items() if state & positions]
            for char in dict.fromkeys((self._filler, *chars, "/", "?")):
                reached = self._read(state, char)
                if reached & self._glob and reached not in seen:
                    seen.add(reached)
                    queue.append((reached, text + char))
        return Paths(tuple(found.values()), is_complete=self._has_filler)


def _glob_symbols(glob: str) -> list[str]:
    pieces = re.findall(r"\*\*|\*|[^*]+", glob)
    return [
        symbol
        for piece in pieces
        for symbol in ([piece] if "*" in piece else normal_pattern(piece.encode()))
    ]
