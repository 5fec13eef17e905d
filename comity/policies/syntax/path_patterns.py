"""Path patterns: `*` for any octets, `$` at the end for the end, else a prefix (RFC 9309 section-2.2.2, section-2.2.3).

    normal_target(target)      path and query as they are compared
    normal_pattern(octets)     a pattern as it is compared
    escaped_text(octets)       text in which patterns stand, whatever octets they have
    foldings(normal)           either of them, as it is compared without regard to case
    covers(pattern, target)    whether one pattern matches
    sample(pattern)            a target by which it is told which patterns cover others
    PatternIndex(patterns)     which of many patterns match, and which of them decides

Patterns and targets are compared as ASCII text in one normal form, made on octets: escapes of unreserved characters are
decoded, other escapes get upper-case digits, and octets that no URL holds unescaped are escaped. A `*` or `$` that is
meant literally is `%2A` or `%24` on both sides. A `%` that begins no escape stays as it is."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import compress, count, islice
from sys import intern

_SPECIAL = re.compile(r"\*|\$$")
_WILDCARD = "\0"  # in a sample: any characters; in no pattern in normal form

# RFC 3986 section-2.2, section-2.3
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_RAW = _UNRESERVED | frozenset(b"/?:@!&'()+,;=*%#[]")

_ODD = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~/?:@!&'()+,;=*%#\[\]]")
_PLAIN_TARGET = re.compile(r"[A-Za-z0-9\-._~/?:@!&'()+,;=#\[\]]*").fullmatch
NORMAL_IN_PATTERNS = rb"A-Za-z0-9\-._~/?:@!&'()+,;=\[\]*"  # octets that are normal where they stand; `#` begins comments too
_PLAIN_PATTERN = re.compile(rb"[%s#]*" % NORMAL_IN_PATTERNS).fullmatch

# Every octet and every spelling of its escape -> the normal form.
_NORMAL = {
    b"%c" % octet: b"%c" % octet if octet in _RAW else b"%%%02X" % octet for octet in range(256)
} | {
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


_NOT_UTF_8 = re.compile("[\udc80-\udcff]")  # as "surrogateescape" has it


def escaped_text(octets: bytes, length: int | None = None) -> str:
    """Return the text, with octets that are not UTF-8 as escapes: in the patterns that stand in it they are equal to these, and
    stay distinct (RFC-13). `length`: characters that are read."""
    text = octets.decode("utf-8", "surrogateescape")[:length]
    return _NOT_UTF_8.sub(lambda octet: f"%{ord(octet[0]) - 0xDC00:02X}", text)


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
    return folded, folded if len(full) == len(text) else _escaped(
        "".join(map(_folded_letter, text))
    )


def _folded_letter(char: str) -> str:
    letter = char.casefold()
    if len(letter) != 1:
        letter = char.lower()
    return letter if len(letter) == 1 else char


def _unescaped(escapes: re.Match[str]) -> str:
    return bytes.fromhex(escapes[0].replace("%", "")).decode("utf-8", "surrogateescape")


def _escaped(text: str) -> str:
    return _NOT_ASCII.sub(
        lambda other: f"%{other[0].encode('utf-8', 'surrogateescape').hex('%')}", text
    )


def covers(pattern: str, target: str) -> bool:
    """Return whether a pattern in normal form matches."""
    special = _SPECIAL.search(pattern)
    start = special.start() if special else len(pattern)
    return target.startswith(pattern[:start]) and (
        special is None or matches(pattern[start:], target, start)
    )


def sample(pattern: str) -> str:
    """Return a target that is covered by those patterns alone that cover all that the pattern does. `pattern`: normal form."""
    exact = pattern.endswith("$")
    return pattern.removesuffix("$").replace("*", _WILDCARD) + ("" if exact else _WILDCARD)


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
_BLOCK = 8  # prefixes that are kept as one text
_GRAM = 3  # characters
_MANY = (
    128  # wildcard patterns of one prefix, from which on they are filed by a gram of their needle
)


class _Prefixes:
    """Texts in sorted order, packed, and which of them a target begins with.

    Those that the next one begins with are the inner ones, mostly a few; each knows the last one before it that it begins with
    itself (its parent). The texts that a target begins with stand before it in the order, and all that stands between begins
    with them as well: they are the last one before it, or inner ones on the way up from the last inner one."""

    __slots__ = (
        "_blocks",
        "_firsts",
        "_inner",
        "_inner_texts",
        "_parent",
        "_shorter",
    )  # a site has several

    def __init__(self, texts: list[str]) -> None:
        """`texts`: sorted, in normal form, which has no line ends."""
        self._firsts = texts[::_BLOCK]
        self._blocks = [
            "\n".join(texts[start : start + _BLOCK]) for start in range(0, len(texts), _BLOCK)
        ]
        self._inner = array(
            "I", compress(count(), map(str.startswith, islice(texts, 1, None), texts))
        )
        self._inner_texts = [intern(texts[entry]) for entry in self._inner]
        self._parent = array("i")  # inner one -> the inner one that is its parent, or -1
        self._shorter = array("i")  # the same, but for parents that are its equals
        chain: list[int] = []
        for inner, text in enumerate(self._inner_texts):
            while chain and not text.startswith(self._inner_texts[chain[-1]]):
                chain.pop()
            parent = chain[-1] if chain else -1
            self._parent.append(parent)
            self._shorter.append(
                self._shorter[parent] if chain and text == self._inner_texts[parent] else parent
            )
            chain.append(inner)

    def longest(self, target: str) -> tuple[int, int] | None:
        """Return the first of `matching`; None: there is none. Of most targets nothing else is asked."""
        entry, text = self._before(target)
        if entry >= 0 and target.startswith(text):
            return entry, len(text)
        return next(self._inner_before(entry, target), None) if self._inner else None

    def matching(self, target: str) -> Iterator[tuple[int, int]]:
        """Return those that the target begins with, and their lengths: the longest first, and of equals the last."""
        entry, text = self._before(target)
        if entry >= 0 and target.startswith(text):
            yield entry, len(text)
        if self._inner:
            yield from self._inner_before(entry, target)

    def _before(self, target: str) -> tuple[int, str]:
        """Return the last one that the target is, or stands behind; -1: there is none."""
        block = bisect_right(self._firsts, target) - 1
        if block < 0:
            return -1, ""
        texts = self._blocks[block].split("\n")
        position = bisect_right(texts, target) - 1
        return block * _BLOCK + position, texts[position]

    def _inner_before(self, entry: int, target: str) -> Iterator[tuple[int, int]]:
        """Return the inner ones before an entry that the target begins with."""
        inner = bisect_left(self._inner, entry) - 1
        while inner >= 0:
            text = self._inner_texts[inner]
            if target.startswith(text):
                yield self._inner[inner], len(text)
                inner = self._parent[inner]
            else:
                inner = self._shorter[inner]

    def text(self, entry: int) -> str:
        return self._blocks[entry // _BLOCK].split("\n")[entry % _BLOCK]


class _Wildcards:
    """The wildcard patterns of one prefix, the longest first: tried by one substring test each, and equal ones once."""

    def __init__(self, ranked: list[tuple[int, int, str]]) -> None:
        """`ranked`: -rank, number, and what follows the prefix, in order."""
        equals: dict[
            str, list[tuple[int, int]]
        ] = {}  # what follows the prefix -> rank and number of those with it
        for negative_rank, number, rest in ranked:
            equals.setdefault(_STARS.sub("*", rest) if "**" in rest else rest, []).append(
                (-negative_rank, number)
            )
        self.rank = array("I", (ranks[0][0] for ranks in equals.values()))
        self.number = array("I", (ranks[0][1] for ranks in equals.values()))
        self.others = {
            index: ranks[1:] for index, ranks in enumerate(equals.values()) if len(ranks) > 1
        }
        self._needles: list[str] = []  # the longest literal piece after the prefix
        self._rests: list[
            str
        ] = []  # what a needle alone doesn't tell: several pieces, or the end; "" where it tells all
        for rest in equals:
            needle = max(rest.removesuffix("$").split("*"), key=len)
            self._needles.append(intern(needle))
            self._rests.append("" if rest == "*" + needle else intern(rest))
        self._grams = (
            self._by_gram() if len(equals) > _MANY else None
        )  # gram -> its patterns; "" for short needles

    def _by_gram(self) -> dict[str, list[int]]:
        grams: dict[str, list[int]] = {}
        for index, needle in enumerate(self._needles):
            needle_grams = [
                needle[offset : offset + _GRAM]
                for offset in range(min(len(needle), 32) - _GRAM + 1)
            ]
            rarest = min(needle_grams, key=lambda gram: len(grams.get(gram, ())), default="")
            grams.setdefault(rarest, []).append(index)
        return grams

    def hits(self, target: str, start: int) -> Iterator[int]:
        """Return those that match, by rank, and of equal ones the first. `start`: where the prefix ends."""
        if self._grams is None:
            indices = [index for index, needle in enumerate(self._needles) if needle in target]
        else:
            shared = {target[offset : offset + _GRAM] for offset in range(len(target) - _GRAM + 1)}
            shared.add("")
            of_grams = (self._grams[gram] for gram in shared & self._grams.keys())
            indices = sorted(
                index for of_gram in of_grams for index in of_gram if self._needles[index] in target
            )
        for index in indices:
            rest = self._rests[index]
            if (
                matches(rest, target, start)
                if rest
                else target.find(self._needles[index], start) >= 0
            ):
                yield index


_NO_PREFIXES, _NO_NUMBERS = _Prefixes([]), array("I")  # nobody adds to them


class PatternIndex:
    """The patterns of one rule set, numbered in the order given, packed.

    A pattern is filed under its literal prefix: all of it, or what stands before its first `*` or its final `$`. Those that a
    target begins with are one binary search and a walk up. Of the literal patterns, which are all prefix, the first that is
    met decides. Of the wildcards only those are tried, and compiled, that are filed under such a prefix; where they are many,
    only those that share a rare gram with the target.

    What is done for every pattern is done for all at once: files have thousands."""

    __slots__ = (
        "_compiled",
        "_filed",
        "_filed_start",
        "_number",
        "_preferred",
        "_prefixes",
        "_texts",
    )

    def __init__(self, patterns: Sequence[str], preferred: Sequence[int] = ()) -> None:
        """`patterns`: normal form. `preferred`: numbers, in order, of those that win against others of the same length.

        Of equals the first decides."""
        self._preferred = bytearray(len(patterns))  # 1 for the numbers that are
        for number in preferred:
            self._preferred[number] = 1
        numbers: Sequence[int] = range(len(patterns) - 1, -1, -1)
        if preferred:
            numbers = [
                *(number for number in numbers if not self._preferred[number]),
                *reversed(preferred),
            ]
        # The sort keeps the order of equals: the one that decides is the last. Wildcards among literals are met by no target, as
        # the normal form of targets has neither `*` nor `$`.
        numbers = sorted(numbers, key=patterns.__getitem__)
        texts = [patterns[number] for number in numbers]
        self._number = array("I", numbers)
        self._texts = _Prefixes(texts)
        filed: dict[str, list[int]] = {}  # prefix -> positions of its wildcards among the texts
        for position in [
            position for position, text in enumerate(texts) if "*" in text or "$" in text
        ]:
            filed.setdefault(texts[position].partition("*")[0].removesuffix("$"), []).append(
                position
            )
        self._prefixes, self._filed, self._filed_start = (
            _NO_PREFIXES,
            _NO_NUMBERS,
            _NO_NUMBERS,
        )  # of most files
        if filed:
            self._file(filed)
        self._compiled: dict[int, _Wildcards] = {}  # by prefix

    def _file(self, filed: dict[str, list[int]]) -> None:
        self._prefixes = _Prefixes(sorted(filed))
        self._filed = array("I")  # the positions, by prefix
        self._filed_start = array("I", [0])  # prefix -> where its positions start
        for prefix in sorted(filed):
            self._filed.extend(filed[prefix])
            self._filed_start.append(len(self._filed))

    def _rank(self, number: int, length: int) -> int:
        return 2 * length + self._preferred[number]

    def _wildcards(self, entry: int, length: int) -> _Wildcards:
        """The wildcards of a prefix. `length`: of the prefix."""
        wildcards = self._compiled.get(entry)
        if wildcards is None:
            wildcards = self._compiled[entry] = _Wildcards(self._ranked(entry, length))
        return wildcards

    def _ranked(self, entry: int, length: int) -> list[tuple[int, int, str]]:
        """-rank, number, and what follows the prefix, of its wildcards."""
        positions = self._filed[self._filed_start[entry] : self._filed_start[entry + 1]]
        texts = zip(
            map(self._number.__getitem__, positions), map(self._texts.text, positions), strict=True
        )
        return sorted(
            (-self._rank(number, len(text)), number, text[length:]) for number, text in texts
        )

    def best(self, target: str) -> int:
        """The number of the matching pattern that decides: the longest, then the preferred, then the first. -1: none.

        `target`: normal form."""
        best = best_rank = -1
        literal = self._texts.longest(target)  # the others are shorter
        if literal:
            entry, length = literal
            best = self._number[entry]
        if not self._filed:
            return best
        if literal:
            best_rank = self._rank(best, length)
        for entry, length in self._prefixes.matching(target):
            wildcards = self._wildcards(entry, length)
            if wildcards.rank[0] >= best_rank:
                for index in wildcards.hits(target, length):
                    number, rank = wildcards.number[index], wildcards.rank[index]
                    if rank > best_rank or (rank == best_rank and number < best):
                        best, best_rank = number, rank
                    break  # the others of this prefix have lower ranks
        return best

    def all(self, target: str) -> list[int]:
        """The numbers of all patterns that match, the deciding one first. `target`: normal form."""
        literals = ((self._number[entry], length) for entry, length in self._texts.matching(target))
        matching = [(self._rank(number, length), number) for number, length in literals]
        for entry, length in self._prefixes.matching(target):
            wildcards = self._wildcards(entry, length)
            for index in wildcards.hits(target, length):
                matching += [
                    (wildcards.rank[index], wildcards.number[index]),
                    *wildcards.others.get(index, ()),
                ]
        return [number for _, number in sorted(matching, key=lambda item: (-item[0], item[1]))]
