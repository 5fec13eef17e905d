"""The lines of robots.txt that belong to other formats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.formats import ROBOTS_LINES
from comity.policies.formats.robots import grammar as robots
from comity.policies.formats.robots.extension_lines import ExtensionLine, extension_lines
from comity.policies.formats.robots.grammar import BEFORE_ALL, IN_ACAP
from comity.policies.syntax.lines import MAX_BYTES, MAX_LINE
from tests.selection import one_in


def lines_in(body: bytes, *, oversized: bool = False) -> list[ExtensionLine]:
    return list(extension_lines(robots.parse(body, oversized=oversized), ROBOTS_LINES))


LINES: list[tuple[bytes, tuple[str, bytes] | None]] = [
    (b"usage: tdm=n", ("usage", b"tdm=n")),
    (b"Usage:tdm=n", ("usage", b"tdm=n")),
    (b" \tUSAGE\t :\t tdm=n ,ai=y \t", ("usage", b"tdm=n ,ai=y")),
    (b"Usage-Pref: tdm=n", ("usage-pref", b"tdm=n")),
    (b"Content-Usage: /a train-ai=n", ("content-usage", b"/a train-ai=n")),
    (b"Content-Signal: search=yes", ("content-signal", b"search=yes")),
    (b"content-signals: search=yes", ("content-signals", b"search=yes")),
    (b"License: https://example.com/license.xml", ("license", b"https://example.com/license.xml")),
    (b"usage: tdm=n # no mining", ("usage", b"tdm=n")),
    (b"usage: tdm=n#,ai=y", ("usage", b"tdm=n")),
    (b"usage:", ("usage", b"")),
    (b"usage: \xff", ("usage", b"\xff")),
    (b"usage tdm=n", None),
    (b"# usage: tdm=n", None),
    (b"my usage: tdm=n", None),
    (b"usages: tdm=n", None),
    (b"content-signalss: search=yes", None),
    (b"usage-preference: tdm=n", None),
    (b"user-agent: usage: x", None),
    (b"\xc2\xa0usage: tdm=n", None),
]


@pytest.mark.requirement("USE-9")
@pytest.mark.parametrize(("line", "want"), one_in(3, LINES))
def test_lines(line: bytes, want: tuple[str, bytes] | None) -> None:
    for end in (b"", b"\n", b"\r", b"\r\n"):
        lines = lines_in(b"User-agent: *" + (end or b"\n") + line + end)
        assert [(one.name, one.value) for one in lines] == ([want] if want else []), end
        assert all(one.line == 2 and one.group == 0 for one in lines), end


def test_places() -> None:
    body = (
        b"\xef\xbb\xbfUsage: a=n\r\n\r\nUser-agent: x\rUser-agent: y\nUsage: b=n\n\n"
        b"Disallow: /\nUser-agent: *\r\n usage: c=n"
    )
    parsed = robots.parse(body)
    lines = extension_lines(parsed, ROBOTS_LINES)
    assert [(one.value, one.line, one.group) for one in lines] == [
        (b"a=n", 1, BEFORE_ALL),
        (b"b=n", 5, 0),
        (b"c=n", 9, 1),
    ]
    assert [parsed.text[one.offset : one.offset + 6].strip().lower() for one in lines] == [
        b"usage:",
        b"usage:",
        b"usage",
    ]
    assert lines[2].source("https://example.com/robots.txt") == (
        "body",
        9,
        "Usage: c=n",
        "https://example.com/robots.txt",
    )


def test_the_groups_that_bind_an_agent() -> None:
    parsed = robots.parse(
        b"User-agent: *\nAllow: /\nUser-agent: Me\nUser-agent: you\nAllow: /\n"
        b"User-agent: me\nAllow: /\n"
    )
    naming = {token: parsed.groups_naming(token) for token in ("me", "YOU", "other", "*")}
    assert naming == {"me": [1, 2], "YOU": [1], "other": [0], "*": [0]}
    assert robots.parse(b"User-agent: me\nAllow: /\n").groups_naming("other") == []


def test_in_an_acap_record_they_stand_in_no_group() -> None:
    ours, theirs = (
        b"User-agent: *\nUsage: a=n\nAllow: /\n",
        b"ACAP-crawler: x\nACAP-crawler: y\nUsage: b=n\n",
    )
    body = ours + theirs + b"User-agent: z\nUsage: c=n\nACAP-crawler: x\nUsage: d=n"
    assert [(one.value, one.group) for one in lines_in(body)] == [
        (b"a=n", 0),
        (b"b=n", IN_ACAP),
        (b"c=n", 1),
        (b"d=n", IN_ACAP),
    ]


def test_what_is_cut() -> None:
    """A last line that is cut by the fetcher is not read.

    A line that is too long is read to the limit.
    """
    assert (
        lines_in(b"User-agent: *\nUsage: ai=n\nUsage: tdm=n", oversized=True)[-1].value == b"ai=n"
    )
    (line,) = lines_in(b"User-agent: *\nUsage: " + b"a" * (MAX_LINE + 1))
    assert line.overlong
    assert line.value == b"a" * MAX_LINE
    (line,) = lines_in(b"User-agent: *\nUsage: " + b"a" * MAX_LINE)
    assert not line.overlong
    assert lines_in(b"#" * MAX_BYTES + b"\nUsage: tdm=n") == []


@pytest.mark.requirement("SEC-1")
@given(
    st.lists(
        st.sampled_from([name.encode() for name in ROBOTS_LINES])
        | st.binary(max_size=8)
        | st.sampled_from([b":", b"\n", b"\r", b"#"])
    )
)
def test_each_line_is_found_where_it_stands(pieces: list[bytes]) -> None:
    body = b"".join(pieces)
    for line in lines_in(body):
        written = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[line.line - 1]
        assert written.strip(b" \t\xef\xbb\xbf").lower().startswith(line.name.encode())
        assert line.value in written
