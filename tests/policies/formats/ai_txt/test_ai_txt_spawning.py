"""Spawning's form of ai.txt: the refusals of its patterns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Verdict
from comity.policies.answers.rule import RULES
from comity.policies.formats.ai_txt import spawning
from comity.policies.formats.ai_txt.spawning import MAX_PATTERNS
from comity.policies.syntax.lines import MAX_LINE


def lines(text: str, *targets: str, token: str = "ours") -> list[int]:
    """Return the line that refuses each target, or 0."""
    patterns = spawning(text.encode(), url="https://example.com/ai.txt").for_agent(token)
    said = [patterns.statements(target) for target in targets]
    assert all(len(statements) <= 1 for statements in said)
    return [statements[0].location.line if statements else 0 for statements in said]


@pytest.mark.requirement("SPAWN-2")
@pytest.mark.parametrize(
    ("pattern", "refused", "left"),
    [
        (
            "*.h",
            ["/a.h", "/b/a.H", "/a.h?x=.c", "/a.c.h", "/a%2Eh"],
            ["/a.html", "/a.h/", "/ah", "/a?b.h", "/h"],
        ),
        ("*.tar.gz", ["/a.tar.gz"], ["/a.gz", "/tar.gz/a"]),
        ("*.JPG$", ["/a.jpg"], ["/a.jpgx"]),
        (".jpg", ["/a.jpg"], ["/jpg"]),
        ("/", ["/", "/a?b"], []),
        ("*", ["/", "/a.b"], []),
        ("/img/", ["/img/a", "/img/?b"], ["/img", "/IMG/a"]),
        ("/*.jpg", ["/a.jpg", "/a.jpgx"], ["/a.png"]),
        ("/a$", ["/a"], ["/a?", "/ab"]),
        ("/caf\u00e9", ["/caf%c3%a9s"], ["/cafe"]),
        ("/\u00a0", ["/", "/a"], []),
        ("\u00a0*.jpg\u200b, \ufeff/b\u00a0", ["/a.jpg", "/b"], ["/a"]),
        ("/a\u00a0b", ["/a%C2%A0b"], ["/a", "/"]),
        ("*.jpg, *.png", ["/a.jpg", "/a.png"], ["/a.gif"]),
        ("*.jpg;*.png", ["/a.jpg", "/a.png"], ["/a.gif"]),
        ("*.jpg|.png; /b", ["/a.jpg", "/a.png", "/b/c"], ["/a.gif"]),
        ("/a;b=1|c", ["/a;b=1|c"], ["/a", "/a;b=1"]),
        ("images", ["/", "/a"], []),
        ("Train", ["/", "/a"], []),
        ("", [], ["/", "/a"]),
        ("# *", [], ["/", "/a"]),
    ],
)
def test_what_a_pattern_refuses(pattern: str, refused: list[str], left: list[str]) -> None:
    text = f"User-Agent: *\nDisallow: {pattern}\n"
    assert lines(text, *refused) == [2] * len(refused)
    assert lines(text, *left) == [0] * len(left)


@pytest.mark.requirement("SPAWN-2", "AIT-14")
def test_odd_spaces_are_reported_and_permit_nothing() -> None:
    file = spawning("User-Agent: *\nDisallow: /\u00a0\nAllow: /a\u00a0\n".encode())
    assert [(finding.rule, finding.line) for finding in file.findings] == [("spawning.pattern", 2)]
    assert file.for_agent("comity").statements("/a")


@pytest.mark.requirement("SPAWN-2")
@pytest.mark.parametrize(
    ("rules", "target", "line"),
    [
        ("Disallow: *\nAllow: *.jpg", "/a.jpg", 0),
        ("Disallow: *\nAllow: *.jpg", "/a.png", 2),
        ("Allow: /\nDisallow: *.c", "/a.c", 3),
        ("Allow: *.c\nDisallow: *.C", "/a.c", 3),
        ("Disallow: *.c\nAllow: *.c", "/a.c", 2),
        ("Allow: /ab.jpg\nDisallow: *.jpg", "/ab.jpg", 0),
        ("Disallow: /im/\nAllow: *.jpg", "/im/a.jpg", 0),
        ("Disallow: /img/\nAllow: *.jpg", "/img/a.jpg", 2),
        ("Allow: /img/\nDisallow: *.jpg", "/img/a.jpg", 3),
        ("Disallow: /images/\nAllow: *.jpg", "/images/a.jpg", 2),
        ("Allow: /\nDisallow: /", "/", 3),
        ("Disallow: jpg\nAllow: /a", "/a", 2),
        ("Disallow: *\nAllow: jpg", "/a.jpg", 2),
        ("Disallow: *\nAllow: *.jpg *.png", "/a.jpg", 2),
    ],
)
def test_the_longest_pattern_decides_and_a_refusal_on_a_tie(
    rules: str, target: str, line: int
) -> None:
    assert lines(f"User-Agent: *\n{rules}\n", target) == [line]


@pytest.mark.requirement("SPAWN-2")
def test_whom_a_group_binds() -> None:
    text = """\
Disallow: *.a
Sitemap: https://example.com/sitemap.xml
User-Agent: *
Disallow: *.b
User-agent: Ours/2.0 !
User-agent: their-bot
Disallow: *.c
User-agent: ours
Disallow: *.d
"""
    targets = ("/x.a", "/x.b", "/x.c", "/x.d")
    assert lines(text, *targets) == [1, 0, 7, 9]
    assert lines(text, *targets, token="their-bot") == [1, 0, 7, 0]
    assert lines(text, *targets, token="other") == [1, 4, 0, 0]


@pytest.mark.requirement("SPAWN-2")
def test_a_statement_is_about_training_and_names_its_line() -> None:
    read = spawning(b"User-Agent: *\n  disallow: *.jpg # all\n", url="https://example.com/ai.txt")
    (statement,) = read.for_agent("ours").statements("/a.jpg")
    assert (statement.term, statement.verdict, statement.rule) == (
        "spawning:train",
        Verdict.DENY,
        "spawning.disallow",
    )
    assert statement.rule in RULES
    assert statement.location == ("body", 2, "disallow: *.jpg # all", "https://example.com/ai.txt")


@pytest.mark.requirement("SPAWN-2")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Disallow: jpg", "`jpg` is not a single path or file type, so it refuses everything."),
        ("Disallow: /a /b", "`/a /b` is not a single path or file type, so each part is read."),
        ("Allow: /a /b", "`/a /b` is not a single path or file type, so it permits nothing."),
    ],
)
def test_odd_values_are_reported(line: str, message: str) -> None:
    (finding,) = spawning(f"User-agent: *\n{line}\n".encode(), url="u").findings
    assert (finding.rule, finding.line, finding.url, finding.message) == (
        "spawning.pattern",
        2,
        "u",
        message,
    )


@pytest.mark.requirement("SPAWN-2", "SEC-1")
def test_what_is_not_read_refuses_everything() -> None:
    few = "User-agent: *\n" + "Disallow: *.a\n" * MAX_PATTERNS
    assert lines(few, "/a.b") == [0]
    assert lines(few + "Disallow: *.a\n", "/a.b", "/a.a") == [MAX_PATTERNS + 2] * 2
    assert spawning((few + "Disallow: *.a\n").encode()).findings[-1].rule == "spawning.pattern"
    assert lines(f"User-agent: *\nDisallow: /{'a' * MAX_LINE}\n", "/b") == [2]
    assert spawning(b"User-agent: *\nAllow: /\n", cut=True).for_agent("ours").statements("/b")


@pytest.mark.requirement("SEC-1")
@given(
    st.lists(
        st.sampled_from(
            [*b"User-agent: *|Disallow: |Allow: |*.jpg|/|\n|\r| |Path: /|a|\xff|,|$|#".split(b"|")]
        )
    )
    .map(b"".join)
    .map(lambda text: b"User-agent: *\nAllow: /\n" + text)
    | st.binary(),
    st.text(),
    st.booleans(),
)
def test_it_never_raises_and_a_refusal_more_never_permits(
    text: bytes, target: str, cut: bool
) -> None:
    before = (
        spawning(text, cut=cut)
        .for_agent("ours")
        .statements("/" + target.encode("utf-8", "replace").decode())
    )
    after = (
        spawning(b"Disallow: *.zzz\n" + text, cut=cut)
        .for_agent("ours")
        .statements("/" + target.encode("utf-8", "replace").decode())
    )
    assert not before or after
