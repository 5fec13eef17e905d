"""The pattern index against a slow, obvious matcher, and its cost in counted steps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.syntax.path_patterns import (
    PatternIndex,
    covers,
    foldings,
    matches,
    normal_pattern,
    normal_target,
)
from tests.selection import one_in

UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
HEX = b"0123456789abcdefABCDEF"

WILDCARD, END = "any", "end"


def units(octets: bytes, *, pattern: bool) -> list[str]:
    """Return the units that are compared. A remaining escape has three (docs/robots.md)."""
    found: list[str] = []
    place = 0
    while place < len(octets):
        octet = octets[place]
        if (
            octet == ord("%")
            and len(octets) > place + 2
            and octets[place + 1] in HEX
            and octets[place + 2] in HEX
        ):
            value = int(octets[place + 1 : place + 3], 16)
            found += chr(value) if value in UNRESERVED else f"%{value:02X}"
            place += 3
            continue
        if pattern and octet == ord("*"):
            found.append(WILDCARD)
        elif pattern and octet == ord("$") and place == len(octets) - 1:
            found.append(END)
        elif octet in UNRESERVED or octet in b"/?:@!&'()+,;=%#[]":
            found.append(chr(octet))
        else:
            found += f"%{octet:02X}"
        place += 1
    return found


def slow_match(pattern: bytes, target: str) -> bool:
    """Follow all positions that the pattern can reach, unit by unit."""
    text = units(target.encode(), pattern=False)
    places = {0}
    for unit in units(pattern, pattern=True):
        if unit == WILDCARD:
            places = {later for place in places for later in range(place, len(text) + 1)}
        elif unit == END:
            places &= {len(text)}
        else:
            places = {place + 1 for place in places if place < len(text) and text[place] == unit}
    return bool(places)


def slow_length(pattern: bytes) -> int:
    return len(units(pattern, pattern=True))


PARTS = [
    b"/",
    b"a",
    b"b",
    b"ab",
    b"*",
    b"*",
    b"$",
    b"%",
    b"%61",
    b"%2F",
    b"%2A",
    b"%24",
    b"\xc3\xa9",
    b"%C3%a9",
    b"\xff",
    b".",
]
patterns = st.lists(st.sampled_from(PARTS), max_size=8).map(b"".join)
targets = st.lists(
    st.sampled_from(["/", "a", "b", "ab", "*", "$", "%61", "%2f", "%2A", "%", "é", ".", "?"]),
    max_size=10,
).map(lambda parts: "/" + "".join(parts))


@pytest.mark.requirement("RFC-3", "RFC-4", "RFC-12")
@given(st.lists(st.tuples(patterns, st.booleans()), max_size=12), targets)
def test_index_is_the_slow_matcher(rules: list[tuple[bytes, bool]], target: str) -> None:
    index = PatternIndex(
        [normal_pattern(pattern) for pattern, _ in rules],
        [number for number, (_, allow) in enumerate(rules) if allow],
    )
    matching = [number for number, (pattern, _) in enumerate(rules) if slow_match(pattern, target)]
    matching.sort(key=lambda number: (-slow_length(rules[number][0]), not rules[number][1], number))
    assert index.all(normal_target(target)) == matching
    assert index.best(normal_target(target)) == (matching[0] if matching else -1)


@pytest.mark.requirement("RFC-4")
@given(st.lists(st.text("ab*", max_size=6), min_size=130, max_size=150), st.text("ab", max_size=12))
def test_many_wildcards_of_one_prefix(rests: list[str], target: str) -> None:
    """Above a number they are filed by grams. Other patterns may be before and after them."""
    rules = [
        "/*ab*",
        "/",
        "/!*b",
        "/a*b$",
        *(f"/*{rest}{'$' if number % 3 == 0 else ''}" for number, rest in enumerate(rests)),
    ]
    index = PatternIndex(rules)
    assert sorted(index.all("/" + target)) == [
        number for number, rule in enumerate(rules) if slow_match(rule.encode(), "/" + target)
    ]


FOLDED = [
    ("/ABC", "/abc", True),
    ("/É", "/é", True),
    ("/%C3%89", "/%c3%a9", True),
    ("/ΣΊΣΥΦΟΣ", "/σίσυφος", True),
    ("/Ж*.ПНГ$", "/ж*.пнг$", True),
    ("/\u212a", "/k", True),  # KELVIN SIGN
    ("/É", "/e", False),
    ("/%C9", "/%E9", False),  # not UTF-8
    ("/a%2Fb", "/a/b", False),
    # only by full case folding
    ("/straße", "/STRASSE", None),
    ("/ẞ", "/ss", None),
    ("/İ", "/i\u0307", None),
    ("/ﬁ", "/FI", None),
    ("/straße", "/STRAẞE", True),
]


@pytest.mark.requirement("ACAP-23")
@pytest.mark.parametrize(("one", "other", "are_equal"), one_in(2, FOLDED))
def test_letters_in_one_case(one: str, other: str, are_equal: bool | None) -> None:
    (full, simple), (other_full, other_simple) = (
        foldings(normal_pattern(text.encode())) for text in (one, other)
    )
    assert (full == other_full) is (are_equal is not False)
    assert (simple == other_simple) is (are_equal is True)


@pytest.mark.requirement("ACAP-23", "SEC-1")
@given(st.text("aAzZ/*$%éÉßİıſﬁ\u0307\udcc3", max_size=12), st.sampled_from([0, 1]))
def test_folding_comes_to_rest_in_ascii(text: str, which: int) -> None:
    normal = normal_pattern(text.encode("utf-8", "surrogateescape"))
    once = foldings(normal)[which]
    assert once.isascii()
    assert once == once.lower()
    assert foldings(normal_pattern(once.encode()))[which] == once
    assert [char for char in once if char in "/*$"] == [char for char in normal if char in "/*$"]


@given(patterns, targets)
def test_one_pattern_covers_what_the_index_finds(pattern: bytes, target: str) -> None:
    normal = normal_pattern(pattern)
    assert covers(normal, normal_target(target)) == bool(
        PatternIndex([normal]).all(normal_target(target))
    )


class Counting(str):
    """A target that counts the octets that are searched."""

    steps = 0

    def find(self, sub: str, start: int = 0, *end: object) -> int:  # type: ignore[override]  # as the index calls it
        place = super().find(sub, start)
        Counting.steps += (place if place >= 0 else len(self)) - start + len(sub)
        return place


@pytest.mark.requirement("SEC-1")
@pytest.mark.parametrize("pieces", [10, 100, 1_000])
def test_a_wildcard_pattern_costs_no_more_than_its_length_and_the_targets(pieces: int) -> None:
    """A backtracking matcher would take a step for each way to place the pieces."""
    target = Counting("/" + "a" * 5_000)
    Counting.steps = 0
    assert not matches("*a" * pieces + "*b", target, 1)
    assert Counting.steps <= len(target) + 3 * pieces + 2


@pytest.mark.requirement("SEC-1", "RFC-4")
def test_equal_wildcards_are_tried_once() -> None:
    """RFC 9309 section-2.2.2: "Duplicate rules in a group MAY be deduplicated".

    Each of them is among the matching ones."""
    target = Counting("/" + "a" * 5_000)
    rules = ["/*aa*ab", "/*aa*aa"] * 1_000 + ["/**aa*aa"]
    index = PatternIndex(rules, [1_001, 1_003])
    Counting.steps = 0
    assert index.best(target) == 2_000
    assert Counting.steps <= 2 * len(target)
    Counting.steps = 0
    assert index.all(target) == [
        2_000,
        1_001,
        1_003,
        *(number for number in range(1, 2_000, 2) if number not in (1_001, 1_003)),
    ]
    assert Counting.steps <= 2 * len(target)


@pytest.mark.requirement("SEC-1")
def test_a_literal_costs_the_same_among_many() -> None:
    """The cost is the number of blocks of prefixes that are read."""
    small = PatternIndex([f"/{number}/" for number in range(10)])
    large = PatternIndex([f"/{number}/" for number in range(10_000)])
    looked: list[object] = []

    class Blocks(list[str]):
        def __getitem__(self, block: Any) -> Any:
            looked.append(block)
            return super().__getitem__(block)

    def count_reads(index: PatternIndex) -> int:
        looked.clear()
        index._texts._blocks = Blocks(index._texts._blocks)
        assert index.best("/5/x") >= 0
        return len(looked)

    assert count_reads(large) == count_reads(small) == 1
