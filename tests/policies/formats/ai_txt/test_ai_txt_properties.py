"""Properties of ai.txt for any octets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree  # type: ignore[import-untyped]  # it ships no types

import comity.policies
from comity.policies import Verdict
from comity.policies.answers.rule import RULES
from comity.policies.formats.ai_txt import AiTxt, from_xml, kind_of, parse, to_text, to_xml
from comity.policies.syntax.lines import MAX_FINDINGS

SCHEMA: Any = etree.XMLSchema(etree.parse(Path(comity.policies.__file__).parent / "ai_txt.xsd"))

VALUES = {
    "User-agent:": "* a b a,b GPTBot/1.0 ! *x",
    "Path:": "/ /a/ /a*b$ html",
    "Element:": "* p #id a.b.c p\0 :root",
    "Disallow:": "Train Cite * Crop all \u0130 \u00e9",
    "Guide:": "Train Cite * x",
    "Lang:": "en de-DE en_GB und !",
    "Guideline:": "a #b \u00e9 c<d>&e \ufffe",
}
NAMES = [*VALUES, "disallow", "PATH :", "Path", "Version:", "#", "Allow:", ""]

value = st.one_of(
    st.sampled_from([word for words in VALUES.values() for word in words.split(" ")]),
    st.sampled_from(
        ["/my page html", "/a html json", "/a", "b json", "https://x/y html", "\u00a0", "\t"]
    ),
    st.text(max_size=6),
).map(lambda text: text.encode("utf-8", "surrogatepass"))
usual = st.sampled_from(list(VALUES)).flatmap(
    lambda name: st.lists(st.sampled_from(VALUES[name].split(" ")), min_size=1, max_size=3).map(
        lambda words: f"{name} {' '.join(words)}".encode()
    )
)
odd = st.builds(
    lambda indentation, name, values: indentation + name.encode() + b" " + b" ".join(values),
    st.sampled_from([b"", b"  ", b"    ", b"\t", b"\t  ", b"\xc2\xa0"]),
    st.sampled_from(NAMES),
    st.lists(value, max_size=3),
)


def line(name: str) -> st.SearchStrategy[list[bytes]]:
    return st.sampled_from(VALUES[name].split(" ")).map(lambda word: [f"{name} {word}".encode()])


def sequence(*parts: st.SearchStrategy[list[bytes]]) -> st.SearchStrategy[list[bytes]]:
    return st.tuples(*parts).map(lambda found: [one for part in found for one in part])


def several(part: st.SearchStrategy[list[bytes]], least: int = 1) -> st.SearchStrategy[list[bytes]]:
    return st.lists(part, min_size=least, max_size=2).map(
        lambda found: [one for lines in found for one in lines]
    )


actions = line("Disallow:") | sequence(
    line("Guide:"), several(sequence(line("Lang:"), line("Guideline:")), 0)
)
blocks = several(
    sequence(
        several(line("User-agent:")),
        several(
            sequence(
                several(line("Path:")),
                several(sequence(several(line("Element:")), several(actions))),
            )
        ),
    )
)
HEAD = b"User-agent: *\n  Path: / html\n    Element: p\n"
files = st.builds(
    lambda head, lines, end: head + end.join(lines),
    st.sampled_from([b"", HEAD, HEAD + b"      Disallow: Train\n"]),
    st.lists(usual | odd, max_size=20) | blocks,
    st.sampled_from([b"\n", b"\r", b"\r\n"]),
)
anything = files | st.binary() | st.binary().map(HEAD.__add__)


@pytest.mark.requirement("AIT-14", "SEC-1")
@given(anything, st.booleans())
def test_nothing_raises(body: bytes, cut: bool) -> None:
    kind_of(body)
    read = parse(body, url="u", cut=cut)
    lines = len(re.findall(rb"\r\n?|\n", body)) + 1
    assert len(read.findings) <= MAX_FINDINGS + 1
    for finding in read.findings:
        assert finding.rule in RULES
        assert finding.line <= lines
    for rule in read.rules:
        assert rule.agents
        assert rule.path.isascii()
        assert rule.element
        assert rule.actions
        assert rule.line <= lines
        assert body[: rule.offset].endswith((b"\n", b"\r")) or not rule.offset
    read.for_agent("a").rules_for("/a%ff?b", "text/html")


@pytest.mark.requirement("AIT-10")
@given(anything, st.booleans())
def test_text_to_values_to_text_is_stable(body: bytes, cut: bool) -> None:
    read = parse(body, cut=cut)
    text = to_text(read)
    again = parse(text.encode())
    assert again.rules == read.rules
    assert to_text(again) == text
    of_values = {
        "ait.action",
        "ait.file-type",
        "ait.path",
        "ait.language",
        "ait.empty",
        "comity.more-findings",
    }
    assert {one.rule for one in again.findings} <= of_values


@pytest.mark.requirement("AIT-10")
@given(anything, st.booleans())
def test_xml_and_back_gives_equal_rules(body: bytes, cut: bool) -> None:
    read = parse(body, cut=cut)
    document = to_xml(read)
    assert from_xml(document).rules == read.rules
    assert SCHEMA.validate(etree.fromstring(document)), SCHEMA.error_log


@pytest.mark.requirement("AIT-10", "SEC-1")
@given(anything.map(parse).map(to_xml), st.data())
def test_xml_that_is_damaged_raises_nothing(document: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(document)))
    end = data.draw(st.integers(start, len(document)))
    read = from_xml(document[:start] + data.draw(st.binary(max_size=5)) + document[end:])
    assert from_xml(to_xml(read)).rules == read.rules


@pytest.mark.requirement("AIT-14")
@given(
    files,
    st.sampled_from(
        [
            b"Version: 1",
            b"  Allow: /",
            b"\tpath to nowhere",
            b"Elements: p",
            b"x",
            b"\xff",
            b"Guideline x",
        ]
    ),
    st.data(),
)
def test_a_line_with_an_unknown_keyword_changes_nothing_else(
    body: bytes, line: bytes, data: st.DataObject
) -> None:
    lines = re.split(rb"\r\n?|\n", body)
    place = data.draw(st.integers(0, len(lines)))
    plain, other = (
        parse(b"\n".join(lines)),
        parse(b"\n".join([*lines[:place], line, *lines[place:]])),
    )
    assert other.rules == plain.rules
    if kind_of(body) == "elements" and len(plain.findings) < MAX_FINDINGS:
        moved = [
            (one.rule, one.message, one.line + (one.line > place), one.column)
            for one in plain.findings
        ]
        moved.append(("ait.keyword", "", place + 1, 0))
        assert sorted(one[::2] for one in moved) == sorted(
            (one.rule, one.line) for one in other.findings
        )


@pytest.mark.requirement("AIT-2")
@given(files, st.sampled_from([b"\n", b"\r", b"\r\n"]))
def test_comments_blank_lines_and_line_ends_change_nothing(body: bytes, end: bytes) -> None:
    lines = re.split(rb"\r\n?|\n", body)
    dressed = (end + b"  # Path: /b" + end + b"\t" + end).join(lines)
    assert parse(dressed).rules == parse(b"\n".join(lines)).rules


@pytest.mark.requirement("AIT-14")
@given(files)
def test_indentation_changes_nothing(body: bytes) -> None:
    flat = re.sub(rb"(?:\A|(?<=[\r\n]))[ \t]+", b"", body)
    assert parse(flat).rules == parse(body).rules


def refusals_of(read: AiTxt, target: str, token: str) -> set[tuple[str, str]]:
    rules = read.rules_for(target, token, "text/html")
    return {
        (rule.element, action)
        for rule in rules
        if rule.verdict is Verdict.DENY
        for action in rule.actions
    }


@pytest.mark.requirement("AIT-9")
@given(files, files, st.sampled_from(["/", "/a/b", "/my%20page"]), st.sampled_from(["a", "GPTBot"]))
def test_what_follows_lifts_no_prohibition(
    before: bytes, after: bytes, target: str, token: str
) -> None:
    """More text never prohibits less, if a block for another agent closes the earlier text."""
    closed = before + b"\nUser-agent: zzz\n  Path: / html\n    Element: z\n      Disallow: Train\n"
    assert refusals_of(parse(closed), target, token) <= refusals_of(
        parse(closed + after), target, token
    )
