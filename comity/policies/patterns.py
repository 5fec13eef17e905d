"""Path patterns: `*` for any octets, `$` at the end for the end, else a prefix (RFC 9309 section-2.2.2, section-2.2.3).

    normal_target(target)      path and query as they are compared
    normal_pattern(octets)     a pattern as it is compared
    PatternIndex(patterns)     which of the patterns match, and which of them decides

Patterns and targets are compared as ASCII text in one normal form, made on octets: escapes of unreserved characters are
decoded, other escapes get upper-case digits, and octets that no URL holds unescaped are escaped. A `*` or `$` that is
meant literally is `%2A` or `%24` on both sides. A `%` that begins no escape stays as it is."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable

# RFC 3986 section-2.2, section-2.3. `#`, `[` and `]` stay as they are: a pattern or a target may hold them, and nothing is gained.
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_RAW = _UNRESERVED | frozenset(b"/?:@!&'()+,;=*%#[]")

_ODD = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~/?:@!&'()+,;=*%#\[\]]")
_PLAIN_TARGET = re.compile(r"[A-Za-z0-9\-._~/?:@!&'()+,;=#\[\]]*").fullmatch
_PLAIN_PATTERN = re.compile(rb"[A-Za-z0-9\-._~/?:@!&'()+,;=#\[\]*]*").fullmatch

# Every octet and every spelling of its escape -> the normal form.
_NORMAL = {b"%c" % octet: b"%c" % octet if octet in _RAW else b"%%%02X" % octet for octet in range(256)} | {
    b"%" + high + low: b"%c" % octet if octet in _UNRESERVED else b"%%%02X" % octet
    for octet in range(256)
    for high in {b"%X" % (octet >> 4), b"%x" % (octet >> 4)}
    for low in {b"%X" % (octet & 15), b"%x" % (octet & 15)}
}


def _normal(octets: bytes) -> str:
    return _ODD.sub(lambda match: _NORMAL[match[0]], octets).decode("ascii")


def normal_target(target: str) -> str:
    """Path and query of a URL in normal form. Never raises."""
    if _PLAIN_TARGET(target):
        return target
    return _normal(target.encode("utf-8", "surrogatepass")).replace("*", "%2A")


def normal_pattern(octets: bytes) -> str:
    """A pattern in normal form: `*` are the wildcards, and a `$` can only be the last character and stands for the end."""
    if _PLAIN_PATTERN(octets):
        return octets.decode("ascii")
    return _normal(octets[:-1]) + "$" if octets.endswith(b"$") else _normal(octets)


def matches(rest: str, target: str, start: int) -> bool:
    """Whether a pattern matches the target from `start` on; `rest` begins with its first `*` or is its final "$".

    Each piece takes the first place where it fits, which leaves the most to the pieces after it: no place is tried twice,
    and the cost is at most len(target) + len(rest)."""
    anchored = rest.endswith("$")
    first, *pieces = (rest[:-1] if anchored else rest).split("*")
    assert not first
    if not anchored:
        pieces_before_end = pieces
        last = None
    elif pieces:
        *pieces_before_end, last = pieces
    else:
        return start == len(target)
    for piece in pieces_before_end:
        place = target.find(piece, start)
        if place < 0:
            return False
        start = place + len(piece)
    return last is None or (len(target) - len(last) >= start and target.endswith(last))


_STARS = re.compile(r"\*+")
_SPECIAL = re.compile(r"\*|\$$")


class PatternIndex:
    """The patterns of one rule set, numbered in the order given, packed into a few flat arrays.

    A pattern is filed under its literal prefix: all of it, or what stands before its first `*` or its final `$`. The
    prefixes are sorted, each knows the next shorter one that it begins with (its parent), so those that a target begins
    with are one binary search and a walk up. Only the wildcards filed under these are tried, one substring test each."""

    def __init__(self, patterns: Iterable[tuple[str, bool]]) -> None:
        """`patterns`: normal form, and whether it wins against another one of the same length. Of equals the first decides."""
        filed: dict[str, list[tuple[int, int, str]]] = {}  # prefix -> (rank, number, rest)
        for number, (pattern, preferred) in enumerate(patterns):
            special = _SPECIAL.search(pattern)
            prefix, rest = (pattern[: special.start()], pattern[special.start() :]) if special else (pattern, "")
            filed.setdefault(prefix, []).append((2 * len(pattern) + preferred, number, rest))
        prefixes = sorted(filed)
        self._text = "".join(prefixes)
        self._start = array("I", [0])  # entry -> where its prefix starts in _text
        self._parent = array("i")  # entry -> the longest other prefix that this one begins with, or -1
        self._literal = array("I", [0])  # entry -> where its literal patterns start in _literal_number
        self._literal_rank = array("I")
        self._literal_number = array("I")
        self._wild = array("I", [0])  # entry -> where its wildcard patterns start in the next four
        self._wild_rank = array("I")  # 2 * length of the pattern + preferred; the highest first
        self._wild_number = array("I")
        self._needles: list[str] = []  # the longest literal piece after the prefix
        self._rests: dict[int, str] = {}  # what a needle alone doesn't tell: several pieces, or the end
        chain: list[int] = []
        for entry, prefix in enumerate(prefixes):
            while chain and not prefix.startswith(prefixes[chain[-1]]):
                chain.pop()
            self._parent.append(chain[-1] if chain else -1)
            chain.append(entry)
            self._start.append(self._start[-1] + len(prefix))
            for rank, number, rest in sorted(filed[prefix], key=lambda item: (-item[0], item[1])):
                self._file(rank, number, rest)
            self._literal.append(len(self._literal_number))
            self._wild.append(len(self._wild_number))

    def _file(self, rank: int, number: int, rest: str) -> None:
        if not rest:
            self._literal_rank.append(rank)
            self._literal_number.append(number)
            return
        rest = _STARS.sub("*", rest)
        needle = max(rest.removesuffix("$").split("*"), key=len)
        if rest != "*" + needle:
            self._rests[len(self._needles)] = rest
        self._needles.append(needle)
        self._wild_rank.append(rank)
        self._wild_number.append(number)

    def best(self, target: str) -> int:
        """The number of the matching pattern that decides: the longest, then the preferred, then the first. -1: none."""
        best = best_rank = -1
        literal = False
        entry = self._deepest(target)
        while entry >= 0:
            if not literal and self._literal[entry] < self._literal[entry + 1]:
                literal = True  # prefixes further up are shorter
                place = self._literal[entry]
                if self._literal_rank[place] >= best_rank:
                    best, best_rank = self._better(best, best_rank, self._literal_number[place], self._literal_rank[place])
            first, end = self._wild[entry], self._wild[entry + 1]
            if first < end and self._wild_rank[first] >= best_rank:
                length = self._start[entry + 1] - self._start[entry]
                for place in self._hits(first, end, target, length):
                    best, best_rank = self._better(best, best_rank, self._wild_number[place], self._wild_rank[place])
                    break
            entry = self._parent[entry]
        return best

    def all(self, target: str) -> list[int]:
        """The numbers of all patterns that match, the deciding one first."""
        found: list[tuple[int, int]] = []
        entry = self._deepest(target)
        while entry >= 0:
            for place in range(self._literal[entry], self._literal[entry + 1]):
                found.append((-self._literal_rank[place], self._literal_number[place]))
            length = self._start[entry + 1] - self._start[entry]
            for place in self._hits(self._wild[entry], self._wild[entry + 1], target, length):
                found.append((-self._wild_rank[place], self._wild_number[place]))
            entry = self._parent[entry]
        return [number for _, number in sorted(found)]

    def _prefix(self, entry: int) -> str:
        return self._text[self._start[entry] : self._start[entry + 1]]

    def _deepest(self, target: str) -> int:
        """The longest prefix that the target begins with, or -1."""
        entry = bisect_right(range(len(self._parent)), target, key=self._prefix) - 1
        while entry >= 0 and not target.startswith(self._prefix(entry)):
            entry = self._parent[entry]
        return entry

    @staticmethod
    def _better(best: int, best_rank: int, number: int, rank: int) -> tuple[int, int]:
        return (number, rank) if (rank, -number) > (best_rank, -best) else (best, best_rank)

    def _hits(self, first: int, end: int, target: str, start: int) -> Iterable[int]:
        """The wildcard patterns of one prefix that match, the highest rank first."""
        rests = self._rests
        for place in [place for place, needle in enumerate(self._needles[first:end], first) if needle in target]:
            if place in rests:
                if matches(rests[place], target, start):
                    yield place
            elif target.find(self._needles[place], start) >= 0:
                yield place
