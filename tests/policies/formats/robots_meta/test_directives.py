"""Robots meta elements and X-Robots-Tag fields: their statements to an agent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Site
from comity.policies.answers.decision import Finding, Verdict
from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.document.document import Content
from comity.policies.document.main_text import main_text
from comity.policies.formats.robots_meta import directives as robots_meta
from comity.policies.vocabulary.statement import Statement
from tests.selection import one_in

NOW = datetime(2026, 11, 21, tzinfo=UTC)
HTML = [(b"Content-Type", b"text/html; charset=utf-8")]

Said = dict[str, Verdict | None]


def header(*values: bytes) -> tuple[tuple[Statement, ...], tuple[Finding, ...]]:
    return robots_meta.header(values, "MyBot", now=NOW)


def verdicts_of(statements: tuple[Statement, ...]) -> Said:
    return {
        statement.term.removeprefix("robots-meta:"): statement.verdict for statement in statements
    }


def meta(body: bytes) -> tuple[tuple[Statement, ...], tuple[Finding, ...]]:
    return robots_meta.markup(Content(HTML, body), "MyBot", now=NOW)


ALLOW, DENY = Verdict.ALLOW, Verdict.DENY

TRAPS: list[tuple[bytes, Said, list[str]]] = [
    (b"noai, max-snippet:50", {"noai": DENY, "max-snippet": None}, []),
    (b"NOAI", {"noai": DENY}, []),
    (b"MyBot: noai", {"noai": DENY}, []),
    (b"mybot: noai", {"noai": DENY}, []),
    (b"MYBOT:noai", {"noai": DENY}, []),
    (b"none", {"noindex": DENY, "nofollow": DENY}, []),
    (b"otherbot: nofollow, noai", {}, ["robots-meta.agent"]),
]


@pytest.mark.requirement("META-4")
@pytest.mark.parametrize(("value", "want", "rules"), TRAPS)
def test_known_traps(value: bytes, want: Said, rules: list[str]) -> None:
    statements, findings = header(value)
    assert verdicts_of(statements) == want
    assert [finding.rule for finding in findings] == rules


@pytest.mark.requirement("META-4")
def test_what_is_for_another_agent_is_kept_as_it_is_written() -> None:
    _, (finding,) = header(b"otherbot: nofollow, noai, mybot: nofollow")
    assert finding.message == "`otherbot: nofollow, noai` is for the named crawler only."
    (statement,), (finding,) = header(b"otherbot: nofollow, noai | mybot: nofollow")
    assert finding.message == "`otherbot: nofollow, noai |` is for the named crawler only."
    assert statement.location.text == "mybot: nofollow"


@pytest.mark.requirement("META-1")
@pytest.mark.parametrize(
    ("value", "want"),
    [
        (
            '"noindex, nofollow"',
            {"noindex", "nofollow"},
        ),  # sent by servers whose configuration quotes twice
        ("'noindex', 'nofollow'", {"noindex", "nofollow"}),
        ("\u201cnoai\u201d", {"noai"}),
        ("[noindex]", {"noindex"}),
        ("noindex|nofollow", {"noindex", "nofollow"}),
        ("noindex/nofollow", {"noindex", "nofollow"}),
        ("noindex\u3001nofollow", {"noindex", "nofollow"}),
        ("noindex.", {"noindex"}),
        ("\ufeffnoindex", {"noindex"}),
        ("no\u200bindex", {"noindex"}),
        ("no index, no follow", {"noindex", "nofollow"}),
        ('"mybot: noai"', {"noai"}),
        ('"otherbot: noai"', set()),
        ('unavailable_after: "25 Jun 2010 15:00:00 PST"', {"unavailable_after"}),
        ('max-image-preview: "none"', {"max-image-preview"}),
        ("max-image-preview:[none]", {"max-image-preview"}),
        ("max-image-preview: none|noai", {"max-image-preview", "noai"}),
        ("max-image-preview|none", {"noindex", "nofollow"}),
        ("no, index", set()),
        ("index", set()),
        ('"index"', set()),
    ],
)
def test_marks_around_and_between_directives_hide_none(value: str, want: set[str]) -> None:
    assert set(verdicts_of(header(value.encode())[0])) == want
    if '"' not in value:
        assert set(verdicts_of(meta(f'<meta name="robots" content="{value}">'.encode())[0])) == want


def test_marks_are_told_to_their_author() -> None:
    assert [finding.rule for finding in header(b'"noai"')[1]] == ["robots-meta.value"]
    assert not header(b"noai")[1]


SCOPES = [
    ([b"noindex", b"nofollow"], {"noindex", "nofollow"}),
    # A scope lasts until the next agent, or the end of its field.
    ([b"otherbot: noindex, nofollow, mybot: noai"], {"noai"}),
    ([b"mybot: noai, otherbot: noindex, nofollow"], {"noai"}),
    ([b"otherbot: noindex", b"nofollow"], {"nofollow"}),
    ([b"otherbot: noindex, *: nofollow"], {"nofollow"}),
    ([b"otherbot: noindex, robots: nofollow"], {"nofollow"}),
    ([b"nofollow", b"mybot: noai"], {"nofollow", "noai"}),
    ([b"otherbot/2.1: noindex"], set()),
    ([b"otherbot: noindex, mybot/1.0: noai"], {"noai"}),
    ([b"otherbot: noindex, mybot/1.0-beta: noai"], {"noai"}),
    (["otherbot: noindex,\u00a0mybot: noai".encode()], {"noai"}),
    (["max\u2011snippet:0".encode()], {"nosnippet"}),
    (["otherbot: noindex\u2003mybot\u00a0: noai".encode()], {"noai"}),
    # A directive's own colon opens none, known or not.
    ([b"max-snippet: 50, noai"], {"max-snippet", "noai"}),
    ([b"unavailable_after: 25 Jun 2030 15:00:00 PST, noai"], {"unavailable_after", "noai"}),
    ([b"max-fragment:3, noai"], {"noai"}),
    ([b"noindex: true, noai"], {"noindex", "noai"}),
    ([b"otherbot: unavailable_after: 25 Jun 2010 15:00:00 PST, noai"], set()),
    ([b"otherbot: max-snippet:0"], set()),
    ([b"otherbot: mybot: noai"], {"noai"}),
    ([b"otherbot: noindex, mybot: soon, noai"], {"noai"}),
    ([b"otherbot: noindex, thirdbot: mybot: noai"], {"noai"}),
    # The agent's name, and the names of any agent, begin a scope wherever a directive could.
    ([b"otherbot: noindex mybot: noai"], {"noai"}),
    ([b"otherbot: noindex\tMyBot/1.0 : noai, nofollow"], {"noai", "nofollow"}),
    ([b"otherbot: noindex|mybot: noai"], {"noai"}),
    ([b"otherbot: noindex / robots: noai"], {"noai"}),
    ([b"otherbot: noindex, nofollow *: noai"], {"noai"}),
    ([b'otherbot: noindex "mybot": noai'], {"noai"}),
    ([b"otherbot: noindex mybot: max-snippet:0, thirdbot: noai"], {"nosnippet"}),
    ([b"otherbot: noindex mybot noai", b"otherbot: noindex, noai notmybot: nofollow"], set()),
    # Names are compared whole.
    ([b"mybot-news: noindex"], set()),
    ([b"bot: noindex"], set()),
]


@pytest.mark.requirement("META-1")
@pytest.mark.parametrize(("values", "want"), one_in(2, SCOPES))
def test_scopes(values: list[bytes], want: set[str]) -> None:
    statements, _ = header(*values)
    assert verdicts_of(statements).keys() == want


DIRECTIVES: list[tuple[bytes, Said]] = [
    (b"all, index, follow", {}),
    (b"max-snippet:-1, max-video-preview:-1, max-image-preview:large", {}),
    (
        b"noarchive, nocache, nosnippet, noimageindex",
        dict.fromkeys(("noarchive", "nocache", "nosnippet", "noimageindex"), DENY),
    ),
    (b"noai, noimageai, noml", {"noai": DENY, "noimageai": DENY, "noml": DENY}),
    (b"max-snippet:0", {"nosnippet": DENY}),
    (b"max-snippet:1", {"max-snippet": None}),
    (b"max-video-preview:1", {"max-video-preview": None}),
    (b"max-snippet:50, max-snippet:0", {"max-snippet": None, "nosnippet": DENY}),
    (b"Max-Image-Preview:NONE", {"max-image-preview": DENY}),
    (b"max-image-preview:standard", {"max-image-preview": None}),
    (b"max-image-preview:standard, max-image-preview:none", {"max-image-preview": DENY}),
    (b"max-image-preview:none, max-image-preview:standard", {"max-image-preview": DENY}),
    # A value that is also the name of a directive stays a value, with any space around the colon.
    (b"max-image-preview: none", {"max-image-preview": DENY}),
    (b"max-image-preview : none", {"max-image-preview": DENY}),
    (b"max-image-preview =none", {"max-image-preview": DENY}),
    (b"index, follow, max-image-preview: None, max-snippet: -1", {"max-image-preview": DENY}),
    (
        b"index max-image-preview: none nofollow none",
        {"max-image-preview": DENY, "nofollow": DENY, "noindex": DENY},
    ),
    (
        b"max-image-preview: standard none",
        {"max-image-preview": None, "noindex": DENY, "nofollow": DENY},
    ),
    (b"max-video-preview:0", {"max-video-preview": DENY}),
    (b"max-video-preview:20", {"max-video-preview": None}),
    (b"notranslate", {"notranslate": None}),
    (b"noindex, indexifembedded", {"noindex": DENY, "indexifembedded": None}),
    (b"indexifembedded, noindex", {"noindex": DENY, "indexifembedded": None}),
    # LENIENT: other separators of directives, and other spellings.
    (b"noindex;nofollow", {"noindex": DENY, "nofollow": DENY}),
    (b"noindex nofollow", {"noindex": DENY, "nofollow": DENY}),
    (b"no-index, No_Follow", {"noindex": DENY, "nofollow": DENY}),
    (b"max-snippet=0", {"nosnippet": DENY}),
    (
        b"noindex max-snippet : 50 nofollow",
        {"noindex": DENY, "max-snippet": None, "nofollow": DENY},
    ),
    (b"unavailable-after: 25 Jun 2010 15:00:00 PST", {"unavailable_after": DENY}),
]


@pytest.mark.requirement("META-2", "META-3")
@pytest.mark.parametrize(("value", "want"), one_in(2, DIRECTIVES))
def test_directives(value: bytes, want: Said) -> None:
    statements, findings = header(value)
    assert verdicts_of(statements) == want
    assert not findings
    body = b'<meta name="robots" content="' + value + b'">'
    in_markup = [
        one._replace(location=one.location._replace(part="meta robots", line=1))
        for one in statements
    ]
    assert list(meta(body)[0]) == in_markup


@pytest.mark.requirement("META-2")
def test_indexifembedded_alone_says_nothing() -> None:
    statements, (finding,) = header(b"indexifembedded, nofollow, indexifembedded")
    assert verdicts_of(statements) == {"nofollow": DENY}
    assert finding.rule == "robots-meta.value"
    (finding,) = meta(b'<p>\n<meta name="robots" content="indexifembedded">')[1]
    assert (finding.rule, finding.line) == ("robots-meta.value", 2)


@pytest.mark.requirement("META-2")
@pytest.mark.parametrize(
    ("value", "term", "qualifiers"),
    [
        (b"max-snippet:50", "max-snippet", Qualifiers(max_chars=50)),
        (
            b"max-snippet:50, max-snippet:20, max-snippet:30",
            "max-snippet",
            Qualifiers(max_chars=20),
        ),
        (
            b"notranslate",
            "notranslate",
            Qualifiers(prohibited_modifications=frozenset(("translation",))),
        ),
        (
            b"unavailable_after: Sunday, 01 Jan 2040 00:00:00 GMT",
            "unavailable_after",
            Qualifiers(until=datetime(2040, 1, 1, tzinfo=UTC)),
        ),
        (
            b"unavailable_after: 2041-01-01T00:00:00Z, unavailable_after: 2040-01-01T00:00:00Z",
            "unavailable_after",
            Qualifiers(until=datetime(2040, 1, 1, tzinfo=UTC)),
        ),
    ],
)
def test_limits(value: bytes, term: str, qualifiers: Qualifiers) -> None:
    (statement,), _ = header(value)
    assert statement.term == f"robots-meta:{term}"
    assert statement.rule == "robots-meta.limit"
    assert statement.verdict is None
    assert statement.qualifiers == qualifiers


@pytest.mark.requirement("META-2", "WHY-1")
@pytest.mark.parametrize(
    "value",
    [
        b"max-snippet:5, max-snippet=5, max-snippet:9",
        b"max-snippet:9, max-snippet:5, max-snippet=5",
    ],
)
def test_the_smallest_limit_is_quoted_as_it_stands_first(value: bytes) -> None:
    assert [statement.location.text for statement in header(value)[0]] == ["max-snippet:5"]


DATES = [
    # RFC 822, and with the four digits of RFC 1123
    ("25 Jun 2010 15:00:00 PST", "2010-06-25T23:00:00Z"),
    ("Sunday, 01 Jan 2023 00:00:00 GMT", "2023-01-01T00:00:00Z"),
    ("Sun, 1 Jan 23 00:00 +0100", "2022-12-31T23:00:00Z"),
    ("1 Jan 2023 00:00:00 +01:00", "2022-12-31T23:00:00Z"),
    ("1 Jan 2023 00:00:00 +00:00", "2023-01-01T00:00:00Z"),
    ("1 jan 2023 00:00:00 ut", "2023-01-01T00:00:00Z"),
    ("1 January 2023 00:00:00 Z", "2023-01-01T00:00:00Z"),
    # RFC 850
    ("Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37Z"),
    ("25-Aug-2007 15:00:00 EST", "2007-08-25T20:00:00Z"),
    # ISO 8601
    ("2023-01-01T00:00:00Z", "2023-01-01T00:00:00Z"),
    ("2023-01-01T00:00:00+02:00", "2022-12-31T22:00:00Z"),
    ("20230101T000000Z", "2023-01-01T00:00:00Z"),
    ("2023-01-01 00:00:00 GMT", "2023-01-01T00:00:00Z"),
    # No zone, or an unknown one: the earliest.
    ("2023-01-01", "2022-12-31T10:00:00Z"),
    ("25 Jun 2010 15:00 CET", "2010-06-25T01:00:00Z"),
    ("25 June 2010", "2010-06-24T10:00:00Z"),
    # None.
    ("never", None),
    ("32 Jan 2023 00:00:00 GMT", None),
    ("1 Foo 2023 00:00:00 GMT", None),
    ("1 Jan 2023 25:00:00 GMT", None),
    ("1 Jan 2023 00:00:00 +99:99", None),
    ("01/02/2023", None),
    ("0001-01-01", None),
    ("9999-12-31T23:59:59-12:00", None),
]


@pytest.mark.requirement("META-2")
@pytest.mark.parametrize(("text", "want"), one_in(3, DATES))
def test_dates(text: str, want: str | None) -> None:
    assert robots_meta.date(text) == (want and datetime.fromisoformat(want))


@pytest.mark.requirement("META-2")
@pytest.mark.parametrize("after", [b"", b", noai", b"; noai", b",noai", b" , mybot: noai"])
def test_the_comma_of_a_date_parts_nothing(after: bytes) -> None:
    statements, findings = header(b"unavailable_after: Sunday, 01 Jan 2040 00:00:00 GMT" + after)
    assert verdicts_of(statements) == {"unavailable_after": None} | (
        {"noai": DENY} if after else {}
    )
    assert not findings


@pytest.mark.requirement("META-2")
def test_it_ends_at_its_instant() -> None:
    value = [b"unavailable_after: 2023-01-01T00:00:00Z"]
    at = datetime(2023, 1, 1, tzinfo=UTC)
    for now, want in [
        (at - timedelta(seconds=1), None),
        (at, DENY),
        (at + timedelta(days=1), DENY),
    ]:
        (statement,), _ = robots_meta.header(value, "mybot", now=now)
        assert statement.verdict is want


UNREADABLE: list[tuple[bytes, Said, str]] = [
    (b"unavailable_after: soon", {"unavailable_after": DENY}, "robots-meta.value"),
    (b"max-snippet: few", {"nosnippet": DENY}, "robots-meta.value"),
    (b"max-snippet:-2", {"nosnippet": DENY}, "robots-meta.value"),
    (b"max-video-preview: x", {"max-video-preview": DENY}, "robots-meta.value"),
    (b"max-image-preview: huge", {"max-image-preview": DENY}, "robots-meta.value"),
    (b"max-snippet: none", {"nosnippet": DENY}, "robots-meta.value"),
    (b"max-snippet: all", {"nosnippet": DENY}, "robots-meta.value"),
    (b"max-video-preview : none", {"max-video-preview": DENY}, "robots-meta.value"),
    (b"unavailable_after: none", {"unavailable_after": DENY}, "robots-meta.value"),
    # Without a value there is no limit.
    (b"unavailable_after:", {}, "robots-meta.value"),
    (b"max-snippet", {}, "robots-meta.value"),
    # A directive that refuses by itself is no value.
    (b"max-snippet: noindex", {"noindex": DENY}, "robots-meta.value"),
    (b"max-image-preview none", {"noindex": DENY, "nofollow": DENY}, "robots-meta.value"),
    (b"nostore", {}, "robots-meta.unknown"),
    (b"please noindex this", {"noindex": DENY}, "robots-meta.unknown"),
    (b"noindex: true", {"noindex": DENY}, "robots-meta.unknown"),
]


@pytest.mark.requirement("META-2")
@pytest.mark.parametrize(("value", "want", "rule"), one_in(2, UNREADABLE))
def test_what_cannot_be_read(value: bytes, want: Said, rule: str) -> None:
    statements, findings = header(value)
    assert verdicts_of(statements) == want
    assert {finding.rule for finding in findings} == {rule}
    in_markup = robots_meta.markup(
        Content(HTML, b'<p>\n<meta name="robots" content="' + value + b'">'),
        "mybot",
        url="https://u.test/",
    )
    assert {(one.rule, one.line, one.url) for one in in_markup[1]} == {(rule, 2, "https://u.test/")}
    in_field = robots_meta.header([value], "mybot", url="https://u.test/")
    assert {(one.rule, one.line, one.url) for one in in_field[1]} == {(rule, 0, "https://u.test/")}


PAGES: list[tuple[bytes, Said]] = [
    (b'<meta name="robots" content="noindex">', {"noindex": DENY}),
    (b"<META NAME=ROBOTS CONTENT=NOINDEX>", {"noindex": DENY}),
    (b"<meta content='noindex' name = 'Robots'/>", {"noindex": DENY}),
    (b'<meta content="a > b, noindex" name="robots">', {"noindex": DENY}),
    (
        b'<meta name="MyBot" content="noai"><meta name="robots" content="nofollow">',
        {"noai": DENY, "nofollow": DENY},
    ),
    (
        b'<meta name="robots" content="index, follow"><meta name="mybot" content="none">',
        {"noindex": DENY, "nofollow": DENY},
    ),
    (b'<body><meta name="robots" content="noindex">', {"noindex": DENY}),
    (b'<meta name="robots"><meta name="robots" content="">', {}),
    (b'<!-- <meta name="robots" content="noindex"> -->', {}),
    (b'<meta name="mybot2" content="noindex"><p>name="robots"', {}),
    (b'<meta name="otherbot, MyBot" content="noai">', {"noai": DENY}),
    (b"<meta name='robots otherbot' content=noai>", {"noai": DENY}),
    (b'<meta name="mybot/1.0" content="noai">', {"noai": DENY}),
    (b'<meta name="otherbot, my-bot" content="noai">', {}),
    # The name of an element is its agent: its content opens no scope.
    (b'<meta name="robots" content="otherbot: noindex">', {"noindex": DENY}),
]


@pytest.mark.requirement("META-1")
@pytest.mark.parametrize(("body", "want"), one_in(2, PAGES))
def test_elements(body: bytes, want: Said) -> None:
    assert verdicts_of(meta(body)[0]) == want


@pytest.mark.requirement("META-1")
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig"])
def test_elements_in_other_encodings(encoding: str) -> None:
    body = '<meta name="robots" content="noindex">'.encode(encoding)
    charset = (
        b"utf-16-le"
        if encoding == "utf-16-le"
        else b"utf-8"
        if encoding == "utf-8-sig"
        else b"utf-16"
    )
    content = Content([(b"content-type", b"text/html; charset=" + charset)], body)
    assert verdicts_of(robots_meta.markup(content, "mybot")[0]) == {"noindex": DENY}


@pytest.mark.requirement("META-1")
@pytest.mark.parametrize("media_type", [b"text/html", b"application/xhtml+xml"])
def test_a_page_that_begins_with_an_xml_declaration_has_elements(media_type: bytes) -> None:
    page = (
        b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><meta '
        b'name="robots" content="noindex"/></html>'
    )
    assert verdicts_of(
        robots_meta.markup(Content([(b"Content-Type", media_type)], page), "mybot")[0]
    ) == {"noindex": DENY}


@pytest.mark.requirement("META-1")
@pytest.mark.parametrize("page", [b'{"robots": 1}', b"[]", b""])
def test_a_page_that_is_none_has_no_elements(page: bytes) -> None:
    assert list(Content(HTML, page).metas()) == []


@pytest.mark.requirement("META-1")
def test_other_media_types_have_no_elements() -> None:
    content = Content([(b"Content-Type", b"text/plain")], b'<meta name="robots" content="noindex">')
    assert robots_meta.markup(content, "mybot") == ((), ())


@pytest.mark.requirement("META-4")
def test_elements_for_other_agents() -> None:
    """Tags of sites of artists look like these (ai-txt/optout-meta-tags.html)."""
    body = b"""<!doctype html>
<meta name="CCBot" content="nofollow">
<meta name="description" content="all of noindex">
<meta name="rating" content="all">
<meta name="keywords" content="please, noindex">
<meta name="GPTBot" content="max-snippet:5">
<meta name="robots" content="noai, noimageai">"""
    statements, findings = meta(body)
    assert verdicts_of(statements) == {"noai": DENY, "noimageai": DENY}
    assert [(finding.rule, finding.line) for finding in findings] == [
        ("robots-meta.agent", 2),
        ("robots-meta.agent", 6),
    ]


@pytest.mark.requirement("META-1", "WHY-1")
@pytest.mark.parametrize(
    ("before", "line"),
    [
        (b"", 1),
        (b"<p>\n", 2),
        (b"\r\n \r\n<p>\r\n", 4),
        (b"\n\n", 3),
        (b"<p>\r<p>", 2),
        (b"<p>\r<p>\n", 3),
    ],
)
def test_the_place_is_the_line(before: bytes, line: int) -> None:
    (statement,), _ = meta(before + b'<meta name="robots" content="noindex: true">')
    assert statement.location == ("meta robots", line, "noindex: true", "")
    assert statement.rule == "robots-meta.disallow"


@pytest.mark.requirement("META-1", "SEC-4")
def test_the_place_in_a_field() -> None:
    (statement,), _ = header(b"nosnippet\x1b[0m nosnippet")
    assert statement.location.part == "header X-Robots-Tag"
    assert statement.location.text == "nosnippet\ufffd[0m nosnippet"


@pytest.mark.requirement("META-1")
def test_a_page_without_any_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(content: Content, attribute: str) -> object:
        raise AssertionError

    monkeypatch.setattr(Content, "metas_by_line", fail)
    body = (
        b'<meta name="viewport" content="x"><p>robots, mybot</p><a name="robotsx" href="/robots">'
    )
    assert meta(body) == ((), ())
    with pytest.raises(AssertionError):
        meta(body + b"<meta name=mybot content=noai>")


def snippet_text(body: bytes) -> str:
    """Return the text that is left for snippets."""
    page = Site.from_files("https://example.com", {}).page(
        READER, "https://example.com/", headers=HTML, body=body
    )
    left = Content(HTML, page.redacted(["present-snippet"]))
    return " ".join(left.text and main_text(left.selector).split())


READER = Agent(
    "testbot",
    uses=("present-snippet", "train"),
    defaults={"present-snippet": ALLOW, "train": ALLOW},
)


@pytest.mark.requirement("META-3")
@pytest.mark.parametrize(
    ("body", "left"),
    [
        (
            b"<html><head><title>t</title></head><body>One <span data-nosnippet>two "
            b"<b data-nosnippet>three</b></span>\n            four<!-- x --> five"
            b'<script>six</script> <div DATA-NOSNIPPET="false">seven<p>eight</div>nine</body>',
            "One four five nine",
        ),
        (b"<html data-nosnippet><p>one", ""),
        (b"<p>one <p>two", "one two"),
        (b"", ""),
    ],
)
def test_elements_with_the_attribute_are_in_no_snippet(body: bytes, left: str) -> None:
    assert snippet_text(body) == left


MEMBERS = st.sampled_from(
    b"""noindex nofollow none NOAI max-snippet:5 max-snippet:0 max-snippet:x
    max-image-preview:standard max-image-preview:none max-video-preview:3
    unavailable_after:2040-01-01 unavailable_after:2041-01-01 unavailable_after:2001-01-01
    notranslate indexifembedded all""".split()
)
UNKNOWN = st.sampled_from(
    [b"x", b"x:3", b"max-fragment: 3", b"", b" ", b"x=y", b"no", b":", b"=", b"\xff"]
)


def plainly(statements: tuple[Statement, ...]) -> set[tuple[str, Verdict | None, str]]:
    return {
        (statement.term, statement.verdict, str(statement.qualifiers)) for statement in statements
    }


@pytest.mark.requirement("META-1")
@given(
    st.lists(MEMBERS, max_size=8).flatmap(lambda one: st.tuples(st.just(one), st.permutations(one)))
)
def test_order_changes_nothing(lists: tuple[list[bytes], list[bytes]]) -> None:
    one, other = lists
    assert plainly(header(b", ".join(one))[0]) == plainly(header(*other)[0])


@pytest.mark.requirement("META-2")
@given(st.lists(MEMBERS, max_size=5), st.lists(MEMBERS | UNKNOWN, max_size=8))
def test_more_directives_never_lift_a_refusal(first: list[bytes], more: list[bytes]) -> None:
    def refusals_of(members: list[bytes]) -> set[str]:
        return {
            term
            for term, verdict in verdicts_of(header(b", ".join(members))[0]).items()
            if verdict is DENY
        }

    assert refusals_of(first) <= refusals_of(first + more)


@pytest.mark.requirement("META-2")
@given(st.lists(MEMBERS, max_size=5), UNKNOWN, st.integers(0, 5))
def test_unknown_directives_change_nothing_else(
    members: list[bytes], unknown: bytes, at: int
) -> None:
    more = [*members[:at], unknown, *members[at:]]
    assert plainly(header(b",".join(more))[0]) == plainly(header(b",".join(members))[0])


PIECES = st.sampled_from(
    [
        b",",
        b";",
        b":",
        b"=",
        b" ",
        b"mybot",
        b"otherbot",
        b"robots",
        b"unavailable_after",
        b"Sunday",
        b"1",
        b"-",
    ]
)


@pytest.mark.requirement("SEC-1")
@given(
    st.lists(
        st.lists(PIECES | MEMBERS | st.binary(max_size=4), max_size=12).map(b"".join), max_size=4
    )
)
def test_fields_never_raise(values: list[bytes]) -> None:
    statements, _ = header(*values)
    assert all(statement.location.text.isprintable() for statement in statements)


@pytest.mark.requirement("SEC-1")
@given(
    st.lists(
        PIECES
        | MEMBERS
        | st.sampled_from([b"<meta name=robots content='", b"'>", b"<p data-nosnippet>"]),
        max_size=12,
    )
)
def test_elements_never_raise(pieces: list[bytes]) -> None:
    body = b"".join(pieces)
    meta(body)
    snippet_text(body)


@pytest.mark.requirement("SEC-1")
@given(
    st.text(max_size=40)
    | st.from_regex(r"\d{1,4}[- ]\w{1,4}[- ]\d{1,5}( \d\d:\d\d)?( \w+| [+-]\d{4})?")
)
def test_dates_never_raise(text: str) -> None:
    found = robots_meta.date(text)
    assert found is None or found.tzinfo is UTC


@pytest.mark.requirement("SEC-1")
@pytest.mark.parametrize(
    "unit",
    [
        b"noindex,",
        b"mybot:",
        b"x:",
        b"unavailable_after:",
        b"unavailable_after ",
        b"otherbot: noindex,",
        b"max-snippet:9,",
        b" ",
    ],
)
def test_long_fields_say_little(unit: bytes) -> None:
    statements, findings = header(unit * (robots_meta.MAX_CHARS // len(unit)))
    assert len(statements) <= 1
    assert len(findings) <= 101


ALL_THAT_DIRECTIVES_REFUSE = set(
    verdicts_of(
        header(b"none, noarchive, nocache, nosnippet, noimageindex, noai, noimageai, noml")[0]
    )
) | {
    "max-image-preview",
    "max-video-preview",
    "unavailable_after",
}


@pytest.mark.requirement("SEC-1", "META-2")
@pytest.mark.parametrize("parts", [1, 7])
@pytest.mark.parametrize("is_field", [True, False])
def test_what_is_more_than_is_read_refuses_all_that_directives_can_refuse(
    parts: int, is_field: bool
) -> None:
    """The limit is for all fields together, or all elements together."""

    def read(octets: int) -> tuple[Said, list[str]]:
        values = [b"a" * len(range(octets)[number::parts]) for number in range(parts)]
        elements = b"".join(b'<meta name=robots content="%s">' % value for value in values)
        statements, findings = header(*values) if is_field else meta(elements)
        return verdicts_of(statements), [
            finding.rule for finding in findings if finding.rule != "robots-meta.unknown"
        ]

    assert read(robots_meta.MAX_CHARS) == ({}, [])
    assert read(robots_meta.MAX_CHARS + 1) == (
        dict.fromkeys(ALL_THAT_DIRECTIVES_REFUSE, DENY),
        ["robots-meta.unread"],
    )
    assert read(3 * robots_meta.MAX_CHARS) == (
        dict.fromkeys(ALL_THAT_DIRECTIVES_REFUSE, DENY),
        ["robots-meta.unread"],
    )


@pytest.mark.requirement("SEC-1", "META-2")
def test_all_that_is_not_too_much_is_read() -> None:
    """Everything is read to the last octet of the limit, and everything after it is refused."""
    longest = b"a" * (robots_meta.MAX_CHARS - 9) + b", noindex"
    assert verdicts_of(header(longest)[0]) == {"noindex": DENY}
    statements, _ = header(longest, b"noarchive")
    assert verdicts_of(statements) == dict.fromkeys(ALL_THAT_DIRECTIVES_REFUSE, DENY)
    assert {one.rule for one in statements} == {"robots-meta.disallow", "robots-meta.unread"}


@pytest.mark.requirement("SEC-1")
def test_what_is_more_than_is_read_of_elements_for_others_is_no_matter() -> None:
    body = b'<meta name=robots content=noarchive><meta name=description content="%s">' % (
        b"noindex " * robots_meta.MAX_CHARS
    )
    assert verdicts_of(meta(body)[0]) == {"noarchive": DENY}


@pytest.mark.requirement("META-3", "MEET-5")
def test_elements_that_are_in_no_snippet() -> None:
    body = b"<!doctype html><p>one <span data-nosnippet>two <a href=/in>in</a></span> three<p>four"
    page = Site.from_files("https://example.com", {}).page(
        READER, "https://example.com/", headers=HTML, body=body
    )
    assert page.uses["present-snippet"].verdict is page.uses["train"].verdict is ALLOW
    assert b"two" not in page.redacted(["present-snippet"])
    assert page.redacted(["train"]) == body
    assert page.element_rules
    tag = page.tag_of({"text": page.element_rules.text, "links": ["https://example.com/in"]}, {})
    [element] = tag["elements"]
    assert element["spans"] == [["text", 4, 10], ["links", 0]]
    assert {"present", "present-snippet", "present-oldsnippet", "ai-input"} <= set(element["deny"])
    assert set(element["deny"]).isdisjoint({"train", "index", "clip", "return"})
    reason = tag["reasons"][element["because"][0]]
    assert (reason["rule"], reason["url"]) == ("robots-meta.disallow", "https://example.com/")
    assert reason["part"] == "attribute data-nosnippet"


@pytest.mark.requirement("META-3")
def test_a_page_that_is_in_no_snippet_by_its_root() -> None:
    body = b"<!doctype html><html data-nosnippet><p>one"
    page = Site.from_files("https://example.com", {}).page(
        READER, "https://example.com/", headers=HTML, body=body
    )
    assert (page.uses["present-snippet"].verdict, page.uses["train"].verdict) == (DENY, ALLOW)
