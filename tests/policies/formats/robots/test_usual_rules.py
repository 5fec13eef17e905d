"""Rules that are read many at once equal rules that are read one by one."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from comity.policies.formats.robots import grammar as robots
from comity.policies.syntax.printable import printable

CORPUS = Path(__file__).parents[5] / "shared/corpus/robots/files"
MANY_AT_ONCE = ("_BLANKS", "_UNKNOWNS", "_MORE_RULES", "_USUAL_RULES", "_BARE_RULE")
NOTHING = re.compile(rb"(?!)")
TOKEN = "examplebot"

NAMES = (
    b"Disallow: |Allow: |Disallow:|Allow:|disallow: |allow:|DISALLOW: |ALLOW: |disAllow: |"
    b"DisAllow: |Dissallow: |Disalow:\n Disallow: |Disallow : |Disallow:  |Disallow:\t|Allow:  |"
    b"Disallow |Allow |Aallow: |xDisallow: |Noallow: |Disallow: Disallow: |"
)
PATTERNS = (
    b"/|/|*|/a|/a/b|/*b$|/a*|**|/$|$|/a$$|/a$b|/a%|/%61|/%2f|/a b|/a |/a # c|/a#c||a|/Allow: /b\n"
    b"/Disallow: /|/A|Allow: /|:/|/a"
)
OTHERS = (
    b"User-agent: *|User-agent: examplebot|User-agent: other|User-agent examplebot|"
    b"user-agent:examplebot/2|User-agent:\n|   |# Disallow: /|Sitemap: /s|Crawl-delay: 2|"
    b"Visit-time: 0100-0200|ACAP-crawler: *|ACAP-disallow-crawl: /a|X: 1|prose|: /"
)


def one_of(texts: bytes, *more: bytes) -> st.SearchStrategy[bytes]:
    return st.sampled_from([*re.split(rb"[|\n]", texts), *more])


odd_patterns = one_of(
    PATTERNS,
    b"/\xc3\xa9",
    b"/\xff",
    b"/\0",
    b"/\x0b",
    b"/\x1c",
    b"/\x85",
    b"/a\t",
    b"/" + b"a" * 1000,
    b"/" * 40_000,
)
rules = st.builds(
    b"%s%s".__mod__,
    st.tuples(
        st.sampled_from([b"Disallow: ", b"Allow: "]), st.sampled_from([b"/", b"/a", b"/*b$", b"*c"])
    ),
)
odd_rules = st.builds(b"%s%s".__mod__, st.tuples(one_of(NAMES), odd_patterns))
ends = st.sampled_from(
    [b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\n\n", b"\n\r", b"\0\n", b"\x0b", b""]
)
files = st.builds(
    b"%s%s%s".__mod__,
    st.tuples(
        st.sampled_from([b"", b"\xef\xbb\xbf"]),
        st.sampled_from([b"", b"User-agent: *\n", b"User-agent: examplebot\r\n"]),
        st.lists(
            st.builds(bytes.__add__, rules | rules | odd_rules | one_of(OTHERS), ends), max_size=30
        ).map(b"".join),
    ),
)


def read(body: bytes) -> tuple[dict[str, Any], ...]:
    """Return the state of a file and of its rules for an agent, with the input of the index."""
    with mock.patch.object(robots, "PatternIndex", lambda patterns, allows: (patterns, allows)):
        parsed = robots.parse(body)
        return vars(parsed), *(
            vars(parsed.for_agent(token, contested={"/", "/a"})) for token in (TOKEN, "other")
        )


def read_one_by_one(body: bytes) -> tuple[dict[str, Any], ...]:
    with ExitStack() as patches:
        for name in MANY_AT_ONCE:
            patches.enter_context(mock.patch.object(robots, name, NOTHING))
        return read(body)


@pytest.mark.requirement("RFC-1", "RFC-2", "RFC-3")
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_spelling(end: bytes) -> None:
    """Each spelling after usual rules and before others, and all of a kind together."""
    usual = b"Disallow: /x|Allow: /x/y|disallow: /z|Disallow:/|allow:*$".replace(b"|", end)
    every = [
        name + pattern
        for pattern in re.split(rb"[|\n]", PATTERNS)
        for name in re.split(rb"[|\n]", NAMES)
    ]
    for body in (
        end.join([b"User-agent: *", *(usual + end + rule for rule in every)]),
        end.join([b"User-agent: *", *sorted(every), b""]),
    ):
        assert read(body) == read_one_by_one(body)


@pytest.mark.requirement("RFC-1", "RFC-2", "RFC-3", "SEC-1")
@given(files)
@example(b"User-agent: *\nDisallow: /a\nDisallow:  /b\nAllow: /c\r\nDisallow: /d\rAllow: /e\n")
@example(b"User-agent: *\r\nDisallow: /\r\nAllow: /a$\r\nAllow: /b$c\r\nDisallow: *d\r\n")
def test_rules_read_at_once_are_rules_read_one_by_one(body: bytes) -> None:
    assert read(body) == read_one_by_one(body)


@pytest.mark.requirement("RFC-3", "WHY-1")
@given(files)
def test_a_rule_knows_its_line(body: bytes) -> None:
    parsed = robots.parse(body)
    bound = parsed.for_agent(TOKEN)
    lines = re.split(rb"(?<=\n)|(?<=\r)(?!\n)", parsed.text)
    for rule in bound.matching("/a/b"):
        assert printable(lines[rule.line - 1]) == rule.text
        assert bound.rule_in(rule.line) == rule
    assert bound.decide("/a/b") == (
        bound.rule_in(line) if (line := bound.deciding_line("/a/b")) else None
    )


@pytest.mark.requirement("RFC-1", "RFC-3")
@pytest.mark.skipif(not CORPUS.exists(), reason="the real files are not here")
def test_real_files(*, in_full: bool) -> None:
    for path in sorted(CORPUS.iterdir())[:: 1 if in_full else 8]:
        body = path.read_bytes()
        assert read(body) == read_one_by_one(body), path.name
