"""Path patterns: `*` for any octets, `$` at the end for the end, else a prefix (RFC 9309 section-2.2.2, section-2.2.3).

    normal_target(target)      path and query as they are compared
    normal_pattern(octets)     a pattern as it is compared
    foldings(normal)           either of them, as it is compared without regard to case
    covers(pattern, target)    whether one pattern matches
    PatternIndex(patterns)     which of many patterns match, and which of them decides

Patterns and targets are compared as ASCII text in one normal form, made on octets: escapes of unreserved characters are
decoded, other escapes get upper-case digits, and octets that no URL holds unescaped are escaped. A `*` or `$` that is
meant literally is `%2A` or `%24` on both sides. A `%` that begins no escape stays as it is."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from sys import intern

_SPECIAL = re.compile(r"\*|\$$")

# RFC 3986 section-2.2, section-2.3
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
    """Return path and query of a URL in normal form. Never raises."""
    return target if _PLAIN_TARGET(target) else _normal_target(target)


@lru_cache(maxsize=64)  # one target is asked for by each format
def _normal_target(target: str) -> str:
    return _normal(target.encode("utf-8", "surrogatepass")).replace("*", "%2A")


def normal_pattern(octets: bytes) -> str:
    """A pattern in normal form: `*` are the wildcards, and a `$` can only be the last character and stands for the end."""
    if _PLAIN_PATTERN(octets):
        return octets.decode("ascii")
    return _normal(octets[:-1]) + "$" if octets.endswith(b"$") else _normal(octets)


_OTHER_CHARACTERS = re.compile(r"(?:%[89A-F][0-9A-F])+")  # in escapes: none of ASCII
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def foldings(normal: str) -> tuple[str, str]:
    """A pattern or target in normal form, with letters of all scripts in one case: by the full case folding of Unicode, which
    makes "ss" of "\u00df", and by one that makes one letter of one. Mostly they are equal.

    Escapes get lower-case digits, and octets that are no UTF-8 stay what they are."""
    if "%" not in normal:
        lower = normal.lower()
        return lower, lower
    text = _OTHER_CHARACTERS.sub(_unescaped, normal)
    full = text.casefold()
    folded = _escaped(full)
    return folded, folded if len(full) == len(text) else _escaped("".join(map(_folded_letter, text)))


def _folded_letter(char: str) -> str:
    letter = char.casefold()
    if len(letter) != 1:
        letter = char.lower()
    return letter if len(letter) == 1 else char


def _unescaped(escapes: re.Match[str]) -> str:
    return bytes.fromhex(escapes[0].replace("%", "")).decode("utf-8", "surrogateescape")


def _escaped(text: str) -> str:
    return _NOT_ASCII.sub(lambda other: f"%{other[0].encode('utf-8', 'surrogateescape').hex('%')}", text)


def covers(pattern: str, target: str) -> bool:
    """Return whether a pattern in normal form matches."""
    special = _SPECIAL.search(pattern)
    start = special.start() if special else len(pattern)
    return target.startswith(pattern[:start]) and (special is None or matches(pattern[start:], target, start))


def matches(rest: str, target: str, start: int) -> bool:
    """Return whether a pattern matches the target from `start` on; `rest` begins with its first `*` or is its final "$".

    Each piece takes the first place where it fits, which leaves the most to the pieces after it: no place is tried twice,
    and the cost is at most len(target) + len(rest)."""
    if rest == "$":
        return start == len(target)
    pieces = rest[1:].split("*")
    last = pieces.pop()[:-1] if rest.endswith("$") else ""
    for piece in pieces:
        position = target.find(piece, start)
        if position < 0:
            return False
        start = position + len(piece)
    return start + len(last) <= len(target) and target.endswith(last)


_STARS = re.compile(r"\*+")
_BLOCK = 16  # prefixes between two that are kept as text for the first step of the search
_GRAM = 3  # characters
_MANY = 128  # wildcard patterns of one prefix, from which on they are filed by a gram of their needle


class PatternIndex:
    """The patterns of one rule set, numbered in the order given, packed into a few flat arrays.

    A pattern is filed under its literal prefix: all of it, or what stands before its first `*` or its final `$`. The
    prefixes are sorted, each knows the next shorter one that it begins with (its parent), so those that a target begins
    with are one binary search and a walk up. Only the wildcards filed under these are tried, by one substring test each;
    where they are many, only those that share a rare gram with the target."""

    def __init__(self, patterns: Iterable[tuple[str, bool]]) -> None:
        """`patterns`: normal form, and whether it wins against another one of the same length. Of equals the first decides."""
        filed: dict[str, list[tuple[int, int, str]]] = {}  # prefix -> (-rank, number, rest)
        for number, (pattern, preferred) in enumerate(patterns):
            prefix, rest = pattern, ""
            if "*" in pattern or "$" in pattern:
                special = _SPECIAL.search(pattern)
                assert special
                prefix, rest = pattern[: special.start()], pattern[special.start() :]
            filed.setdefault(prefix, []).append((-2 * len(pattern) - preferred, number, rest))
        prefixes = sorted(filed)
        self._blocks = prefixes[::_BLOCK]
        self._text = "".join(prefixes)
        self._start = array("I", [0])  # entry -> where its prefix starts in _text
        self._parent = array("i")  # entry -> the longest other prefix that this one begins with, or -1
        self._literal = array("I", [0])  # entry -> where its literal patterns start in the next two
        self._preferred = bytearray()
        self._literal_number = array("I")
        self._wild = array("I", [0])  # entry -> where its wildcard patterns start in the next three
        self._wild_rank = array("I")  # 2 * length of the pattern + preferred; the highest first
        self._wild_number = array("I")
        self._needles: list[str] = []  # the longest literal piece after the prefix
        self._rests: list[str] = []  # what a needle alone doesn't tell: several pieces, or the end; "" where it tells all
        self._grams: dict[int, dict[str, list[int]]] = {}  # entry -> gram -> its wildcard patterns; "" for short needles
        chain: list[int] = []
        for entry, prefix in enumerate(prefixes):
            while chain and not prefix.startswith(prefixes[chain[-1]]):
                chain.pop()
            self._parent.append(chain[-1] if chain else -1)
            chain.append(entry)
            self._start.append(self._start[-1] + len(prefix))
            for rank, number, rest in sorted(filed[prefix]):
                if rest:
                    self._file_wildcard(-rank, number, rest)
                else:
                    self._preferred.append(-rank & 1)
                    self._literal_number.append(number)
            self._literal.append(len(self._literal_number))
            self._wild.append(len(self._wild_number))
            if self._wild[entry + 1] - self._wild[entry] > _MANY:
                self._grams[entry] = self._by_gram(self._wild[entry], self._wild[entry + 1])

    def _file_wildcard(self, rank: int, number: int, rest: str) -> None:
        if "**" in rest:
            rest = _STARS.sub("*", rest)
        needle = max(rest.removesuffix("$").split("*"), key=len)
        self._needles.append(intern(needle))
        self._rests.append("" if rest == "*" + needle else intern(rest))
        self._wild_rank.append(rank)
        self._wild_number.append(number)

    def _by_gram(self, first: int, end: int) -> dict[str, list[int]]:
        grams: dict[str, list[int]] = {}
        for index, needle in enumerate(self._needles[first:end], first):
            needle_grams = [needle[offset : offset + _GRAM] for offset in range(min(len(needle), 32) - _GRAM + 1)]
            rarest = min(needle_grams, key=lambda gram: len(grams.get(gram, ())), default="")
            grams.setdefault(rarest, []).append(index)
        return grams

    def best(self, target: str) -> int:
        """The number of the matching pattern that decides: the longest, then the preferred, then the first. -1: none.

        `target`: normal form."""
        best = best_rank = -1
        literal = False
        entry = self._deepest(target)
        while entry >= 0:
            if not literal:
                index = self._literal[entry]
                if index < self._literal[entry + 1]:
                    literal = True  # prefixes further up are shorter
                    number = self._literal_number[index]
                    rank = 2 * (self._start[entry + 1] - self._start[entry]) + self._preferred[index]
                    if rank > best_rank or (rank == best_rank and number < best):
                        best, best_rank = number, rank
            index, end = self._wild[entry], self._wild[entry + 1]
            if index < end and self._wild_rank[index] >= best_rank:
                for index in self._hits(entry, target):
                    number, rank = self._wild_number[index], self._wild_rank[index]
                    if rank > best_rank or (rank == best_rank and number < best):
                        best, best_rank = number, rank
                    break  # the others of this prefix have lower ranks
            entry = self._parent[entry]
        return best

    def all(self, target: str) -> list[int]:
        """The numbers of all patterns that match, the deciding one first. `target`: normal form."""
        matching: list[tuple[int, int]] = []
        entry = self._deepest(target)
        while entry >= 0:
            length = self._start[entry + 1] - self._start[entry]
            literals = range(self._literal[entry], self._literal[entry + 1])
            matching += ((2 * length + self._preferred[index], self._literal_number[index]) for index in literals)
            matching += ((self._wild_rank[index], self._wild_number[index]) for index in self._hits(entry, target))
            entry = self._parent[entry]
        return [number for _, number in sorted(matching, key=lambda item: (-item[0], item[1]))]

    def _prefix(self, entry: int) -> str:
        return self._text[self._start[entry] : self._start[entry + 1]]

    def _deepest(self, target: str) -> int:
        """The longest prefix that the target begins with, or -1."""
        block = bisect_right(self._blocks, target) * _BLOCK
        entries = range(block - _BLOCK, min(block, len(self._parent))) if block else ()
        entry = block - _BLOCK + bisect_right(entries, target, key=self._prefix) - 1
        while entry >= 0 and not target.startswith(self._prefix(entry)):
            entry = self._parent[entry]
        return entry

    def _hits(self, entry: int, target: str) -> Iterator[int]:
        """The wildcard patterns of one prefix that match, by rank."""
        first, end = self._wild[entry], self._wild[entry + 1]
        grams = self._grams.get(entry)
        if grams is None:
            indices = [index for index, needle in enumerate(self._needles[first:end], first) if needle in target]
        else:
            shared = {target[offset : offset + _GRAM] for offset in range(len(target) - _GRAM + 1)}
            shared.add("")
            indices = sorted(index for gram in shared & grams.keys() for index in grams[gram] if self._needles[index] in target)
        start = self._start[entry + 1] - self._start[entry]
        for index in indices:
            rest = self._rests[index]
            if matches(rest, target, start) if rest else target.find(self._needles[index], start) >= 0:
                yield index
