"""Path patterns of robots.txt (RFC 9309 section-2.2.2, section-2.2.3).

`*` matches any octets, `$` at the end matches the end. A pattern without `$` matches prefixes.

    normal_target(target)      path and query in the form that is compared
    normal_pattern(octets)     a pattern in the form that is compared
    escaped_text(octets)       text that contains patterns, for any octets
    foldings(normal)           a target or pattern in the form that is compared in any case
    covers(pattern, target)    does the pattern match?
    sample(pattern)            a target that shows which patterns cover others
    PatternIndex(patterns)     the matching ones of many patterns, and the one that decides

Patterns and targets are compared as ASCII text in one normal form, made from octets. Escapes of
unreserved characters are decoded, other escapes get upper-case digits, and octets that are not
allowed unescaped in a URL are escaped. A literal `*` or `$` is `%2A` or `%24` on both sides. A `%`
that begins no escape stays as it is."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import compress, count, islice
from sys import intern

_SPECIAL = re.compile(r"\*|\$$")
_WILDCARD = "\0"  # any characters, in a sample; never in a pattern in normal form

# RFC 3986 section-2.2, section-2.3
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_RAW = _UNRESERVED | frozenset(b"/?:@!&'()+,;=*%#[]")

_ODD = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~/?:@!&'()+,;=*%#\[\]]")
_PLAIN_TARGET = re.compile(r"[A-Za-z0-9\-._~/?:@!&'()+,;=#\[\]]*").fullmatch
# Octets that are in normal form. `#` is missing, because it also begins comments.
NORMAL_IN_PATTERNS = rb"A-Za-z0-9\-._~/?:@!&'()+,;=\[\]*"
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
    """Return path and query of a URL in normal form. It never raises."""
    return target if _PLAIN_TARGET(target) else _normal_target(target)


@lru_cache(maxsize=64)  # each format asks for the same target
def _normal_target(target: str) -> str:
    return _normal(target.encode("utf-8", "surrogatepass")).replace("*", "%2A")


def normal_pattern(octets: bytes) -> str:
    """Return a pattern in normal form: each `*` is a wildcard, and `$` is at most at the end."""
    if _PLAIN_PATTERN(octets):
        return octets.decode("ascii")
    return _normal(octets[:-1]) + "$" if octets.endswith(b"$") else _normal(octets)


_NOT_UTF_8 = re.compile("[\udc80-\udcff]")  # in the form of "surrogateescape"


def escaped_text(octets: bytes, length: int | None = None) -> str:
    """Return the text, with escapes for octets that are not UTF-8 (RFC-13).

    In a pattern in the text, these escapes equal the octets, and different octets stay different.
    `length` is the number of characters to read. None: all."""
    text = octets.decode("utf-8", "surrogateescape")[:length]
    return _NOT_UTF_8.sub(lambda octet: f"%{ord(octet[0]) - 0xDC00:02X}", text)


_OTHER_CHARACTERS = re.compile(r"(?:%[89A-F][0-9A-F])+")  # escapes of octets outside of ASCII
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def foldings(normal: str) -> tuple[str, str]:
    """Return a pattern or target in normal form, with the letters of all scripts in one case.

    The first result uses Unicode's full case folding, which turns "\u00df" into "ss". The second
    folds each letter to one letter. They are usually equal. Escapes get lower-case digits, and
    octets that are not UTF-8 stay unchanged."""
    if "%" not in normal:
        lower = normal.lower()
        return lower, lower
    text = _OTHER_CHARACTERS.sub(_unescape, normal)
    full = text.casefold()
    folded = _escape(full)
    return folded, folded if len(full) == len(text) else _escape("".join(map(_fold_letter, text)))


def _fold_letter(char: str) -> str:
    letter = char.casefold()
    if len(letter) != 1:
        letter = char.lower()
    return letter if len(letter) == 1 else char


def _unescape(escapes: re.Match[str]) -> str:
    return bytes.fromhex(escapes[0].replace("%", "")).decode("utf-8", "surrogateescape")


def _escape(text: str) -> str:
    return _NOT_ASCII.sub(
        lambda other: f"%{other[0].encode('utf-8', 'surrogateescape').hex('%')}", text
    )


def covers(pattern: str, target: str) -> bool:
    """Return True if a pattern in normal form matches."""
    special = _SPECIAL.search(pattern)
    start = special.start() if special else len(pattern)
    return target.startswith(pattern[:start]) and (
        special is None or matches(pattern[start:], target, start)
    )


def sample(pattern: str) -> str:
    """Return a target that exactly those patterns match that cover the whole pattern.

    `pattern` is in normal form."""
    exact = pattern.endswith("$")
    return pattern.removesuffix("$").replace("*", _WILDCARD) + ("" if exact else _WILDCARD)


def matches(rest: str, target: str, start: int) -> bool:
    """Return True if a pattern matches the target from `start` on.

    `rest` is the part of the pattern from its first `*`, or its final "$". Each piece takes the
    first place where it fits, which leaves most room for the pieces after it. So no place is tried
    twice, and the cost is at most len(target) + len(rest)."""
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
_BLOCK = 8  # prefixes that are stored in one text
_GRAM = 3  # characters
# With this many wildcard patterns of one prefix, they are filed by a gram of their needle.
_MANY = 128


class _Prefixes:
    """Texts in sorted order, packed, to find those that are a prefix of a target.

    An inner text is a prefix of the next text. There are usually few. The parent of a text is the
    last text before it that is a prefix of it. All prefixes of a target are before it in the order,
    and they are prefixes of everything between them and the target too. So they are the last text
    before the target, or inner texts on the way up from the last inner text."""

    # Slots, because a site has several of these.
    __slots__ = ("_blocks", "_firsts", "_inner", "_inner_texts", "_parent", "_shorter")

    def __init__(self, texts: list[str]) -> None:
        """`texts` are sorted and in normal form, which has no line ends."""
        self._firsts = texts[::_BLOCK]
        self._blocks = [
            "\n".join(texts[start : start + _BLOCK]) for start in range(0, len(texts), _BLOCK)
        ]
        self._inner = array(
            "I", compress(count(), map(str.startswith, islice(texts, 1, None), texts))
        )
        self._inner_texts = [intern(texts[entry]) for entry in self._inner]
        self._parent = array("i")  # inner text -> the inner text that is its parent, or -1
        self._shorter = array("i")  # inner text -> its next parent that is not equal, or -1
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

    @property
    def are_nested(self) -> bool:
        """True if one of the texts is a prefix of another one, or equal to it."""
        return bool(self._inner)

    def longest(self, target: str) -> tuple[int, int] | None:
        """Return the first of `matching`; None: there is none. Most targets need no more."""
        entry, text = self._before(target)
        if entry >= 0 and target.startswith(text):
            return entry, len(text)
        return next(self._inner_before(entry, target), None) if self._inner else None

    def matching(self, target: str) -> Iterator[tuple[int, int]]:
        """Yield the prefixes of the target with their lengths, the longest first.

        The last of equal texts comes first."""
        entry, text = self._before(target)
        if entry >= 0 and target.startswith(text):
            yield entry, len(text)
        if self._inner:
            yield from self._inner_before(entry, target)

    def _before(self, target: str) -> tuple[int, str]:
        """Return the last text that equals the target or is before it; -1: there is none."""
        block = bisect_right(self._firsts, target) - 1
        if block < 0:
            return -1, ""
        texts = self._blocks[block].split("\n")
        position = bisect_right(texts, target) - 1
        return block * _BLOCK + position, texts[position]

    def _inner_before(self, entry: int, target: str) -> Iterator[tuple[int, int]]:
        """Yield the inner texts before an entry that are prefixes of the target."""
        inner = bisect_left(self._inner, entry) - 1
        while inner >= 0:
            text = self._inner_texts[inner]
            if target.startswith(text):
                yield self._inner[inner], len(text)
                inner = self._parent[inner]
            else:
                inner = self._shorter[inner]

    def text(self, entry: int) -> str:
        """Return the text with this number."""
        return self._blocks[entry // _BLOCK].split("\n")[entry % _BLOCK]


class _Wildcards:
    """The wildcard patterns of one prefix, the longest first.

    Each is tried with one substring test, and equal ones once.

    Attributes:
        rank: index -> rank of the first of equal patterns.
        number: index -> number of the first of equal patterns.
        others: index -> rank and number of the other equal patterns."""

    def __init__(self, ranked: list[tuple[int, int, str]]) -> None:
        """`ranked` has -rank, number, and the text behind the prefix, in order."""
        # Text behind the prefix -> rank and number of the patterns with this text.
        equals: dict[str, list[tuple[int, int]]] = {}
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
        # The pattern behind the prefix, if the needle alone does not decide. "": it decides.
        self._rests: list[str] = []
        for rest in equals:
            needle = max(rest.removesuffix("$").split("*"), key=len)
            self._needles.append(intern(needle))
            self._rests.append("" if rest == "*" + needle else intern(rest))
        # Gram -> its patterns. "": those with short needles.
        self._grams = self._by_gram() if len(equals) > _MANY else None

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
        """Yield the matching patterns by rank, the first of equals. The prefix ends at `start`."""
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


_NO_PREFIXES, _NO_NUMBERS = _Prefixes([]), array("I")  # shared, never changed


class PatternIndex:
    """The patterns of one rule set, numbered in the given order, packed.

    A pattern is filed under its literal prefix, i.e. the part before its first `*` or its final
    `$`. One binary search and a walk up find the prefixes of a target. Among literal patterns,
    which are equal to their prefix, the first one found decides. Only the wildcard patterns under
    these prefixes are compiled and tried. If there are many, only those are tried that share a rare
    gram with the target.

    Work for every pattern is done for all at once, because files have thousands of patterns."""

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
        """Index the patterns.

        Among equal patterns the first decides.

        Args:
            patterns: in normal form.
            preferred: numbers, in order, of the patterns that win against others of equal length.
        """
        is_preferred = self._preferred = bytearray(len(patterns))  # 1 for preferred patterns
        is_other = bytearray(b"\1") * len(patterns)
        for number in preferred:
            is_preferred[number], is_other[number] = 1, 0
        numbers = [*preferred, *compress(range(len(patterns)), is_other)]
        numbers.reverse()
        # The sort is stable: among equal texts the deciding one is the last. No target equals a
        # wildcard pattern, because the normal form of targets has neither `*` nor `$`.
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
        # Most files have no wildcards.
        self._prefixes, self._filed, self._filed_start = _NO_PREFIXES, _NO_NUMBERS, _NO_NUMBERS
        if filed:
            self._file(filed)
        self._compiled: dict[int, _Wildcards] = {}  # by number of the prefix

    def _file(self, filed: dict[str, list[int]]) -> None:
        self._prefixes = _Prefixes(sorted(filed))
        self._filed = array("I")  # the positions, by prefix
        self._filed_start = array("I", [0])  # prefix -> start of its positions in _filed
        for prefix in sorted(filed):
            self._filed.extend(filed[prefix])
            self._filed_start.append(len(self._filed))

    def _rank(self, number: int, length: int) -> int:
        return 2 * length + self._preferred[number]

    def _wildcards(self, entry: int, length: int) -> _Wildcards:
        """Compile the wildcard patterns of a prefix with this length, and return them."""
        wildcards = self._compiled[entry] = _Wildcards(self._in_order(entry, length))
        return wildcards

    def _in_order(self, entry: int, length: int) -> list[tuple[int, int, str]]:
        """Return -rank, number, and the text behind the prefix, of its wildcard patterns."""
        positions = self._filed[self._filed_start[entry] : self._filed_start[entry + 1]]
        texts = zip(
            map(self._number.__getitem__, positions), map(self._texts.text, positions), strict=True
        )
        return sorted(
            (-self._rank(number, len(text)), number, text[length:]) for number, text in texts
        )

    def best(self, target: str) -> int:
        """Return the number of the matching pattern that decides; -1: none matches.

        The longest decides, then the preferred one, then the first. `target` is in normal form."""
        best = best_rank = -1
        literal = self._texts.longest(target)  # other literal matches are shorter
        if literal:
            entry, length = literal
            best = self._number[entry]
        if not self._filed:
            return best
        if literal:
            best_rank = self._rank(best, length)
        for entry, length in self._prefixes.matching(target):
            wildcards = self._compiled.get(entry) or self._wildcards(entry, length)
            if wildcards.rank[0] >= best_rank:
                for index in wildcards.hits(target, length):
                    number, rank = wildcards.number[index], wildcards.rank[index]
                    if rank > best_rank or (rank == best_rank and number < best):
                        best, best_rank = number, rank
                    break  # the others with this prefix have lower ranks
        return best

    def all(self, target: str) -> list[int]:
        """Return the numbers of all matching patterns, the deciding one first.

        `target` is in normal form."""
        if not self._filed and not self._texts.are_nested:  # at most one of the texts matches
            literal = self._texts.longest(target)
            return [self._number[literal[0]]] if literal else []
        literals = ((self._number[entry], length) for entry, length in self._texts.matching(target))
        matching = [(self._rank(number, length), number) for number, length in literals]
        for entry, length in self._prefixes.matching(target):
            wildcards = self._compiled.get(entry) or self._wildcards(entry, length)
            for index in wildcards.hits(target, length):
                matching += [
                    (wildcards.rank[index], wildcards.number[index]),
                    *wildcards.others.get(index, ()),
                ]
        return [number for _, number in sorted(matching, key=lambda item: (-item[0], item[1]))]
