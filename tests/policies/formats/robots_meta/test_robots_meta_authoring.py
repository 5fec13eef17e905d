"""Checks of robots meta elements and X-Robots-Tag fields beyond their syntax."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.document.document import Content
from comity.policies.formats.robots_meta.checks import check_document


def rules_in(*metas: tuple[str, str], fields: tuple[str, ...] = ()) -> list[tuple[str, int]]:
    page = "<!doctype html>\n" + "\n".join(
        f'<meta name="{name}" content="{text}">' for name, text in metas
    )
    headers = [
        (b"Content-Type", b"text/html"),
        *((b"X-Robots-Tag", field.encode()) for field in fields),
    ]
    return sorted(
        (finding.rule, finding.line)
        for finding in check_document(Content(headers, page.encode()), "u")
    )


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("index, noindex", ["robots-meta.contradiction"]),
        ("follow, none", ["robots-meta.contradiction"]),
        ("all, nofollow", ["robots-meta.contradiction"]),
        ("nosnippet, max-snippet:20", ["robots-meta.contradiction"]),
        ("max-snippet:20, max-snippet:40", ["robots-meta.contradiction"]),
        ("noindex, no-index", ["robots-meta.duplicate", "robots-meta.misspelled"]),
        ("no-index", ["robots-meta.misspelled"]),
        ("max_snippet:50", ["robots-meta.misspelled"]),
        ("noindex nofollow", ["robots-meta.misspelled"]),
        ("noindex; nofollow, noarchive", ["robots-meta.misspelled"]),
        ("noai", ["robots-meta.informal"]),
        ("noodp", ["robots-meta.obsolete"]),
        ("noindx", ["robots-meta.misspelled"]),
        ("max-snipet:20", ["robots-meta.misspelled"]),
        ("max-snippet=50", ["robots-meta.misspelled"]),
        ("noindex, max-image-preview = none", ["robots-meta.misspelled"]),
    ],
)
def test_what_cannot_be_meant_is_found_with_its_line(text: str, findings: list[str]) -> None:
    assert rules_in(("robots", text)) == [(rule, 2) for rule in findings]
    assert rules_in(fields=(text,)) == [(rule, 0) for rule in findings]


@pytest.mark.parametrize(
    "text",
    [
        "noindex, nofollow",
        "index, follow, max-snippet:-1, max-image-preview:large, max-video-preview:-1",
        "none",
        "nosnippet, max-snippet:0",
        "unavailable_after: 2030-01-31",
        "something of nobody",
        "",
    ],
)
def test_what_can_be_meant_is_left_alone(text: str) -> None:
    assert rules_in(("robots", text)) == rules_in(fields=(text,)) == []


@pytest.mark.requirement("META-5")
@pytest.mark.parametrize(
    ("element", "findings"),
    [
        ('<meta name="robots" value="noindex">', ["robots-meta.attribute"]),
        ('<meta name="author" value="noindex">', []),
        ('<meta http-equiv="robots" content="noindex">', ["robots-meta.attribute"]),
        ('<meta property="robots" content="noindex">', ["robots-meta.attribute"]),
        (
            '<meta property="googlebot" content="noindx, noindex">',
            [],
        ),  # only known directives would show that it is for an agent
        (
            '<meta property="otherbot" content="noai">',
            ["robots-meta.attribute", "robots-meta.informal"],
        ),
        ('<meta property="og:title" content="noindex">', []),
        (
            '<meta http-equiv="X-Robots-Tag" content="noindx">',
            ["robots-meta.attribute", "robots-meta.misspelled"],
        ),
        (
            '<meta http-equiv="X-Robots-Tag" content="noindex, index">',
            ["robots-meta.attribute", "robots-meta.contradiction"],
        ),
        ('<meta http-equiv="refresh" content="noindx">', []),
    ],
)
def test_elements_with_another_attribute_are_checked_and_told(
    element: str, findings: list[str]
) -> None:
    content = Content([(b"Content-Type", b"text/html")], b"\n" + element.encode())
    assert sorted((each.rule, each.line) for each in check_document(content, "u")) == [
        (rule, 2) for rule in findings
    ]


def test_agents_are_told_apart() -> None:
    assert rules_in(("robots", "noindex"), ("googlebot", "index")) == []
    assert rules_in(("googlebot", "noindex, index"), ("robots", "index")) == [
        ("robots-meta.contradiction", 2)
    ]
    assert rules_in(fields=("googlebot: noindex, otherbot: index",)) == []
    assert rules_in(("robots", "index"), ("robots", "noindex")) == [
        ("robots-meta.contradiction", 2)
    ]


@pytest.mark.parametrize(
    ("name", "right"),
    [("robot", "robots"), ("robotos", "robots"), ("google-bot", "Googlebot"), ("gptbto", "GPTBot")],
)
def test_a_name_that_nobody_has_is_found(name: str, right: str) -> None:
    page = f'<!doctype html>\n<meta name="{name}" content="noindex">'
    [finding] = check_document(Content([(b"Content-Type", b"text/html")], page.encode()), "u")
    assert (finding.rule, finding.line) == ("robots-meta.misspelled", 2)
    assert finding.message == f"No crawler is called `{name}`. Write `{right}`."
    [finding] = check_document(Content([(b"X-Robots-Tag", f"{name}: noindex".encode())], b""), "u")
    assert finding.message == f"No crawler is called `{name}`. Write `{right}`."


def test_a_value_behind_an_equals_sign_is_told_with_its_colon() -> None:
    page = b'<!doctype html>\n<meta name="robots" content="Max-Snippet = 50">'
    [finding] = check_document(Content([(b"Content-Type", b"text/html")], page), "u")
    assert (
        finding.message == "Other crawlers do not read `Max-Snippet = 50`. Write `max-snippet:50`."
    )


@given(st.text(alphabet="noindex,:-max snipet0 ;*", max_size=100))
def test_nothing_raises(text: str) -> None:
    rules_in(("robots", text), fields=(text,))
