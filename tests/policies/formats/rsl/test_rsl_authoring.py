"""Checks of RSL beyond its syntax."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Fetched
from comity.policies.document.document import Content
from comity.policies.formats import ROBOTS_LINES
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.rsl.authoring import AUTHORING
from comity.policies.formats.rsl.checks import check_document, check_rsl, check_site
from comity.policies.formats.rsl.licensing import read

ORIGIN = "https://example.com"
SEARCH = '<license><permits type="usage">search</permits></license>'


PAID = SEARCH[:-10] + "<payment type='crawl'><amount currency='{}'>{}</amount></payment></license>"


def rsl(*contents: str) -> bytes:
    return (
        '<?xml version="1.0"?>\n<rsl xmlns="https://rslstandard.org/rsl">\n'
        + "\n".join(contents)
        + "\n</rsl>"
    ).encode()


def content(licenses: str = SEARCH, url: str = "https://example.com/", more: str = "") -> str:
    return f'<content url="{url}"{more}>{licenses}</content>'


def rules_in(body: bytes) -> list[tuple[str, int]]:
    reported = read(body, "u").findings
    return sorted(
        (finding.rule, finding.line) for finding in check_rsl(body, "u") if finding not in reported
    )


@pytest.mark.parametrize(
    ("body", "findings"),
    [
        (rsl(content('<license><permits type="usage">train-ai</permits></license>')), [("rsl.usage",
         3)]),
        (rsl(content('<license><permits type="usage">search ai_train</permits></license>')),
         [("rsl.usage", 3)]),
        (rsl(content('<license><payment type="free"/></license>')), [("rsl.no-permits", 3)]),
        (rsl(content(f"{SEARCH[:-10]}<prohibits type='usage'>ai-all search</prohibits></license>")),
         [("rsl.contradiction", 3)]),
        (rsl(content(url="/[a-z]+/")), [("rsl.pattern", 3)]),
        (rsl(content(), content(url="https://example.org/")), [("rsl.other-host", 4)]),
        (rsl(content(), content()), [("rsl.repeated", 4)]),
        (rsl(content(more=' server="https://example.com/l"')), [("rsl.server", 3)]),
        (rsl(content('<license xmlns=""/>' + SEARCH)), [("rsl.namespace", 3)]),
        (rsl(content(f"{SEARCH[:-10]}<permits type='geo'>DE Germany</permits></license>")),
         [("rsl.value", 3)]),
        (rsl(content(f"{SEARCH[:-10]}<prohibits type='geo'>USA</prohibits></license>")),
         [("rsl.value", 3)]),
        (rsl(content(PAID.format("EUR", "1,50"))), [("rsl.value", 3)]),
        (rsl(content(PAID.format("EUR", "$ 2"))), [("rsl.value", 3)]),
        (rsl(content(PAID.format("euro", "1.50"))), [("rsl.value", 3)]),
        (rsl(content(PAID.format("", "1"))), [("rsl.value", 3)]),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_found_with_its_line(
    body: bytes, findings: list[tuple[str, int]]
) -> None:
    assert rules_in(b"\n" + body) == [(rule, line + 1) for rule, line in findings]
    assert rules_in(body) == findings


@pytest.mark.parametrize(
    "body",
    [
        rsl(content(), content(url="https://www.example.com/a")),
        rsl(content('<license><prohibits type="usage">ai-train</prohibits></license>')),
        rsl(
            content(
                '<license><permits type="usage">all</permits><prohibits '
                'type="usage">ai-train</prohibits></license>'
            )
        ),
        rsl(
            content(
                '<license><permits type="usage">search</permits><prohibits '
                'type="user">commercial</prohibits></license>'
            )
        ),
        rsl(
            content(
                SEARCH + '<x:note xmlns:x="urn:x"><x:content/></x:note>', url="/wiki/A_(b)*.html$"
            )
        ),
        rsl(content(f"{SEARCH[:-10]}<permits type='geo'>de all US-CA</permits></license>")),
        rsl(content(PAID.format("EUR", "0.015"))),
        rsl(content(PAID.format("XBT", "\n 2 "))),
        b"<html/>",
        b"<rsl",
    ],
)
def test_what_can_be_meant_is_left_alone(body: bytes) -> None:
    assert rules_in(body) == []


def test_every_element_that_is_not_of_rsl_is_found() -> None:
    body = rsl("<whatever/>", content("<license><deny/></license>", more=' foo="a"'))
    assert [
        finding.message
        for finding in read(body, "u").findings
        if finding.message.startswith("RSL has no ")
    ] == [
        "RSL has no element `whatever` here. It counts as an unknown condition.",
        "RSL has no attribute `foo` here. It counts as an unknown condition.",
        "RSL has no element `deny` here. It counts as an unknown condition.",
    ]


def test_references_that_others_pass_over_are_found() -> None:
    robots = (
        b"License: /rsl.xml\nLicense: https://example.com/rsl.xml\nLicense: MIT\n"
        b"License: https://example.com/rsl.xml b\n"
    )
    document = Fetched(status=200, body=rsl(content(), content()))
    files = {
        f"{ORIGIN}/robots.txt": Fetched(status=200, body=robots),
        f"{ORIGIN}/rsl.xml": document,
    }
    findings = check_site(SiteFiles(ORIGIN, files, robots_lines=ROBOTS_LINES))
    assert [(finding.rule, finding.url, finding.line) for finding in findings] == [
        ("rsl.reference", f"{ORIGIN}/robots.txt", 1),
        ("rsl.reference", f"{ORIGIN}/robots.txt", 4),
        ("rsl.repeated", f"{ORIGIN}/rsl.xml", 4),
    ]
    page = (
        b'<!doctype html>\n<link type="application/rsl+xml" href="/a"><link rel="license" '
        b'type="application/rsl+xml" href="/b">'
    )
    findings = check_document(Content([(b"Content-Type", b"text/html")], page), ORIGIN)
    assert [(finding.rule, finding.line) for finding in findings] == [("rsl.reference", 2)]


def test_a_document_is_known_by_its_root() -> None:
    (kind,) = AUTHORING.kinds
    assert kind.is_meant("x", rsl())
    assert kind.is_meant("x", b"\xef\xbb\xbf<?xml version='1.0'?><!-- a > b --><r:rsl xmlns:r='u'>")
    assert not kind.is_meant("x", b"<rslx/>")
    assert not kind.is_meant("x", b"<!-- <rsl> -->")


_ROOT = '<rsl xmlns="https://rslstandard.org/rsl">'
_PARTS = [
    "<content>",
    '<content url="/a b">',
    "<license>",
    '<permits type="usage">',
    "search",
    "</permits>",
    "</license>",
]


@given(st.lists(st.sampled_from([_ROOT, *_PARTS, "</content>", "</rsl>", "\n", "&"])))
def test_nothing_raises(parts: list[str]) -> None:
    check_rsl("".join(parts).encode(), "u")
