"""Really Simple Licensing 1.0: statements of a document, and places of documents."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Site
from comity.policies.answers.decision import Verdict
from comity.policies.document.document import Content
from comity.policies.formats.rsl import grammar as rsl_grammar
from comity.policies.formats.rsl import licensing as rsl
from comity.policies.formats.rsl.licensing import TERMS, Rsl
from comity.policies.formats.rsl.references import MAX_REFERENCES
from comity.policies.syntax import xml_tree
from comity.policies.syntax.lines import MAX_BYTES, MAX_FINDINGS
from comity.policies.vocabulary.statement import Location, Statement
from tests.selection import one_in

URL = "https://example.com/rsl.xml"
PAGE = "https://example.com/blog/1.html"
ROOT = '<rsl xmlns="https://rslstandard.org/rsl"%s>%s</rsl>'

OUTCOMES = {"rsl.permits": "A", "rsl.prohibits": "P", "rsl.unlicensed": "U"}


def content(*licenses: str, url: str | None = "/", rest: str = "", attributes: str = "") -> str:
    place = "" if url is None else f' url="{url}"'
    inner = "".join(f"<license>{one}</license>" for one in licenses)
    return f"<content{place}{attributes}>{inner}{rest}</content>"


def permits(words: str, kind: str = "usage") -> str:
    return f'<permits type="{kind}">{words}</permits>'


def prohibits(words: str, kind: str = "usage") -> str:
    return f'<prohibits type="{kind}">{words}</prohibits>'


def read(*contents: str, attributes: str = "") -> Rsl:
    return rsl.read((ROOT % (attributes, "\n".join(contents))).encode(), URL)


def outcomes_of(statements: tuple[Statement, ...]) -> str:
    """Return a letter for each of all, ai-all, ai-train, ai-input, ai-index and search.

    A is permitted, P prohibited, U not licensed, - not stated.
    """
    outcomes = dict.fromkeys(TERMS, "-")
    for one in statements:
        assert one.verdict is (Verdict.ALLOW if one.rule == "rsl.permits" else Verdict.DENY)
        outcomes[one.term.removeprefix("rsl:")] = OUTCOMES[one.rule]
    return "".join(outcomes.values())


# After the six samples: each has the quirks of one document that a site serves. The first outcome
# is without an arrangement, the second with all conditions arranged. A careful person would license
# nothing without the conditions, and never a prohibited use.


class Sample(NamedTuple):
    name: str
    text: str
    url: str
    alone: str
    arranged: str


ATTRIBUTION = '<payment type="attribution"><standard>https://creativecommons.org/licenses/by/4.0/</standard></payment>'
SAMPLES = [
    Sample(
        # One list in two elements, and terms of attribution; training for sale.
        "davidtofan",
        content(
            permits("search")
            + permits("ai-input")
            + '<payment type="attribution"><custom>https://example.com/t</custom></payment>',
            permits("ai-train")
            + '<payment type="training"><custom>https://example.org/me</custom></payment>',
            url="https://example.com/",
        ),
        PAGE,
        "UUUUUU",
        "UUAAUA",
    ),
    Sample(
        # An invented element beside the contents, a version, terms within the payment, and invented
        # words.
        "ireneburresi",
        "<meta><publisher>P</publisher></meta>"
        + content(permits("search ai-input ai-index") + prohibits("ai-train") + ATTRIBUTION)
        + content(
            permits("search ai-input ai-index quote excerpt") + prohibits("ai-train") + ATTRIBUTION,
            url="/blog/",
        ),
        PAGE,
        "UUPUUU",
        "UUPAAA",
    ),
    Sample(
        # One list in three elements; attribution; a price for training.
        "crawl-price-index",
        content(
            permits("search")
            + permits("ai-index")
            + permits("ai-input")
            + '<payment type="attribution"/>',
            permits("ai-train")
            + '<payment type="training"><amount currency="USD">2.00</amount></payment>',
        ),
        PAGE,
        "UUUUUU",
        "UUAAAA",
    ),
    Sample(
        # It is free, but has a condition in an invented element; an invented word and an invented
        # type of legal text.
        "ofthepitch",
        content(
            *[
                "".join(
                    permits(word) for word in ("search", "ai-summarize", "ai-input", "ai-train")
                )
                + '<payment type="free"/><attribution '
                'required="true">Us</attribution><legal type="terms" url="/terms"/>'
            ],
            url="https://www.example.com/",
        ),
        PAGE,
        "UUUUUU",
        "UUAAUA",
    ),
    Sample(
        # About one repository at another host; an invented type of legal text.
        "maxschoon",
        content(
            permits("all") + ATTRIBUTION + '<legal type="license">https://example.org/A.md</legal>',
            url="https://example.org/us/it",
        ),
        "https://example.org/us/it/blob/main/a.md",
        "UUUUUU",
        "AAAAAA",
    ),
    Sample(
        "maxschoon-elsewhere",
        content(permits("all") + ATTRIBUTION, url="https://example.org/us/it"),
        PAGE,
        "------",
        "------",
    ),
    Sample(
        # RSL 0.9: commas, and types of permissions that 1.0 does not have; all users but
        # governments.
        "alexzeecomedy",
        content(
            permits("all")
            + permits("personal,non-commercial,commercial,education", "user")
            + permits("all", "distribution")
            + permits("all", "modification")
            + ATTRIBUTION
            + '<legal type="warranty">ownership,no-infringement</legal>',
            url="https://example.com/*",
        ),
        PAGE,
        "UUUUUU",
        "AAAAAA",
    ),
]


@pytest.mark.requirement("RSL-2")
@pytest.mark.parametrize("sample", SAMPLES, ids=[sample.name for sample in SAMPLES])
def test_documents_as_sites_have_them(sample: Sample) -> None:
    document = read(
        sample.text, attributes=' version="1.0"' if sample.name == "ireneburresi" else ""
    )
    assert outcomes_of(document.statements(sample.url)) == sample.alone
    assert outcomes_of(document.statements(sample.url, arranged=True)) == sample.arranged


# Words, lists and levels: name, document, outcome

CASES: list[tuple[str, str, str]] = [
    ("search-only", content(permits("search")), "UUUUUA"),
    ("all", content(permits("all")), "AAAAAA"),
    ("ai-all", content(permits("ai-all")), "UAAAAU"),
    ("free", content(permits("search") + '<payment type="free"/>'), "UUUUUA"),
    ("payment-without-type", content(permits("search") + "<payment/>"), "UUUUUA"),
    ("no-ai", content(prohibits("ai-all")), "-PPPP-"),
    ("no-list-at-all", content(""), "------"),
    ("no-license", content(), "UUUUUU"),
    ("all-but", content(permits("all") + prohibits("ai-train")), "AAPAAA"),
    ("nothing-but", content(permits("search") + prohibits("all")), "PPPPPA"),
    # "both in one scope"
    ("both", content(permits("ai-train search") + prohibits("ai-train")), "UUPUUA"),
    ("both-all", content(permits("all") + prohibits("all")), "PPPPPP"),
    ("both-in-two-licenses", content(permits("ai-train"), prohibits("ai-train")), "UUPUUU"),
    (
        "both-in-two-contents",
        content(permits("ai-train")) + content(prohibits("ai-train")),
        "UUPUUU",
    ),
    # Prohibitions are read leniently
    ("commas", content(prohibits("ai-train,ai-input; search")), "--PP-P"),
    ("repeats", content(prohibits("ai-train") + prohibits("ai-input")), "--PP--"),
    ("upper-case", content(prohibits("AI-Train")), "--P---"),
    ("no-type", content("<prohibits>ai-train</prohibits>"), "--P---"),
    ("singular", content('<prohibit type="usage">ai-train</prohibit>'), "--P---"),
    ("other-words", content(prohibits("train-ai")), "--P---"),
    ("other-ai-words", content(prohibits("ai-summaries")), "-PPPP-"),
    ("unknown-word", content(permits("all") + prohibits("scraping")), "PPPPPP"),
    ("unknown-word-and-named", content(permits("search") + prohibits("scraping")), "PPPPPA"),
    ("word-of-others", content(permits("search") + prohibits("x:scraping")), "UUUUUA"),
    (
        "beside-unknown-element",
        content(prohibits("ai-train") + "<wish/>", permits("search")),
        "UUPUUA",
    ),
    # Permissions are read strictly
    ("permits-commas", content(permits("search,ai-input")), "UUUUUU"),
    ("permits-repeats", content(permits("search") + permits("ai-input")), "UUUUUU"),
    ("permits-upper-case", content(permits("Search")), "UUUUUU"),
    ("permits-no-type", content("<permits>search</permits>"), "UUUUUU"),
    ("permits-unknown-word", content(permits("search quote")), "UUUUUA"),
    ("permits-unknown-type", content(permits("search") + permits("research", "purpose")), "UUUUUU"),
    (
        "permits-unknown-attribute",
        content('<permits type="usage" until="2020">search</permits>'),
        "UUUUUU",
    ),
    ("permits-child", content('<permits type="usage">search<if>x</if></permits>'), "UUUUUU"),
    (
        "prohibits-unknown-type",
        content(permits("search") + prohibits("all", "modification")),
        "UUUUUU",
    ),
    ("unknown-element", content(permits("search") + "<attribution/>"), "UUUUUU"),
    (
        "unknown-element-of-others",
        content(permits("search") + '<a xmlns="https://example.org/">x</a>'),
        "UUUUUA",
    ),
    ("unknown-element-in-content", content(permits("search"), rest="<unless/>"), "UUUUUU"),
    ("unknown-element-in-root", content(permits("search")) + "<meta/>", "UUUUUU"),
    (
        "known-elements-in-content",
        content(
            permits("search"), rest="<schema>/s</schema><copyright>U</copyright><terms>/t</terms>"
        ),
        "UUUUUA",
    ),
    ("unknown-attribute", content(permits("search"), attributes=' until="2020"'), "UUUUUU"),
    # Conditions that must be arranged
    ("payment", content(permits("search") + '<payment type="crawl"/>'), "UUUUUU"),
    ("payment-attribution", content(permits("search") + '<payment type="attribution"/>'), "UUUUUU"),
    (
        "payment-custom",
        content(permits("ai-all") + "<payment><custom>/ask</custom></payment>"),
        "UUUUUU",
    ),
    (
        "payment-free-yet",
        content(permits("search") + '<payment type="free"><standard>x</standard></payment>'),
        "UUUUUU",
    ),
    ("payment-alone", content('<payment type="crawl"/>'), "UUUUUU"),
    (
        "payment-alone-and-prohibited",
        content(prohibits("ai-train") + '<payment type="crawl"/>'),
        "UUPUUU",
    ),
    (
        "reporting",
        content(permits("search") + '<reporting type="audit" profile="https://example.org/"/>'),
        "UUUUUU",
    ),
    ("server", content(permits("search"), attributes=' server="https://example.org/"'), "UUUUUU"),
    ("encrypted", content(permits("search"), attributes=' encrypted="true"'), "UUUUUU"),
    (
        "not-encrypted",
        content(permits("search"), attributes=' encrypted="false" server="" lastmod="2026-01-01"'),
        "UUUUUA",
    ),
    ("legal", content(permits("search") + '<legal type="warranty">ownership</legal>'), "UUUUUA"),
    (
        "legal-unknown",
        content(permits("search") + '<legal type="terms">https://example.org/</legal>'),
        "UUUUUU",
    ),
    # Several licenses
    (
        "free-and-paid",
        content(permits("search"), permits("ai-train") + '<payment type="training"/>'),
        "UUUUUA",
    ),
    (
        "paid-all-free-search",
        content(permits("all") + '<payment type="crawl"/>', permits("search")),
        "UUUUUA",
    ),
    (
        "free-all-paid-training",
        content(permits("all"), permits("ai-train") + '<payment type="training"/>'),
        "AAUAAA",
    ),
    (
        "free-or-paid",
        content(permits("search") + '<payment type="crawl"/>', permits("search")),
        "UUUUUA",
    ),
    # Narrower paths
    # section-3.1.2
    (
        "narrower-prohibits",
        content(permits("all")) + content(prohibits("ai-train"), url="/blog/"),
        "AAPAAA",
    ),
    (
        "narrower-permits",
        content(prohibits("all")) + content(permits("all"), url="/blog/"),
        "AAAAAA",
    ),
    (
        "narrower-permits-word",
        content(prohibits("ai-train")) + content(permits("ai-train"), url="/blog/"),
        "UUAUUU",
    ),
    # The path is narrower, the word is broader: when in doubt, it is not licensed.
    (
        "narrower-permits-broadly",
        content(prohibits("ai-train")) + content(permits("all"), url="/blog/"),
        "AAPAAA",
    ),
    ("narrower-list", content(permits("all")) + content(permits("search"), url="/blog/"), "UUUUUA"),
    (
        "broader-list",
        content(permits("search")) + content(permits("ai-train"), url="/blog/"),
        "UUAUUU",
    ),
    (
        "narrower-for-all",
        content(permits("search")) + content(permits("all"), url="/blog/"),
        "AAAAAA",
    ),
    (
        "narrower-for-sale",
        content(permits("all")) + content(permits("all") + '<payment type="use"/>', url="/blog/"),
        "UUUUUU",
    ),
    ("elsewhere", content(permits("all")) + content(prohibits("all"), url="/shop/"), "AAAAAA"),
    ("order", content(prohibits("ai-train"), url="/blog/") + content(permits("all")), "AAPAAA"),
    (
        "star-is-no-narrower",
        content(prohibits("search")) + content(permits("search"), url="/*"),
        "UUUUUP",
    ),
    # Users and places
    ("user-other", content(permits("search") + permits("non-commercial", "user")), "UUUUUU"),
    (
        "user-all",
        content(
            permits("search")
            + permits("commercial non-commercial education government personal", "user")
        ),
        "UUUUUA",
    ),
    ("user-all-in-a-word", content(permits("search") + permits("all", "user")), "UUUUUA"),
    ("geo", content(permits("search") + permits("FR", "geo")), "UUUUUU"),
    ("user-prohibited", content(permits("search") + prohibits("commercial", "user")), "PPPPPP"),
    (
        "user-prohibited-no-type",
        content(permits("search") + "<prohibits>commercial</prohibits>"),
        "PPPPPP",
    ),
    ("geo-prohibited", content(permits("search") + prohibits("US", "geo")), "PPPPPP"),
    (
        "nothing-prohibited",
        content(permits("search") + prohibits("") + prohibits("", "purpose")),
        "UUUUUA",
    ),
    ("nobody-prohibited", content(permits("search") + prohibits("", "user")), "UUUUUA"),
]


@pytest.mark.requirement("RSL-2")
@pytest.mark.parametrize(
    ("text", "want"), one_in(3, [case[1:] for case in CASES]), ids=[case[0] for case in CASES]
)
def test_what_is_licensed(text: str, want: str) -> None:
    assert outcomes_of(read(text).statements(PAGE)) == want


WHO: list[tuple[str, tuple[str, ...], str]] = [
    (permits("non-commercial education", "user"), ("education",), "A"),
    (permits("non-commercial education", "user"), ("commercial",), "U"),
    (permits("non-commercial education", "user"), ("DE",), "U"),
    (permits("FR EU", "geo"), ("DE", "EU"), "A"),
    (permits("FR EU", "geo"), ("US",), "U"),
    (permits("education", "user") + permits("FR", "geo"), ("education", "FR"), "A"),
    (permits("education", "user") + permits("FR", "geo"), ("education", "US"), "U"),
    (prohibits("commercial", "user"), ("education",), "A"),
    (prohibits("commercial", "user"), ("education", "commercial"), "P"),
    (prohibits("commercial,government", "user"), ("government",), "P"),
    (prohibits("companies", "user"), ("education",), "P"),
    (prohibits("all", "geo"), ("DE",), "P"),
    (prohibits("US", "geo"), ("education",), "P"),
    (prohibits("US", "geo") + prohibits("DE", "geo"), ("us",), "P"),
    (prohibits("US", "geo"), ("DE",), "A"),
]


@pytest.mark.requirement("RSL-2")
@pytest.mark.parametrize(("terms", "who", "want"), one_in(2, WHO))
def test_users_and_places(terms: str, who: tuple[str, ...], want: str) -> None:
    assert (
        outcomes_of(read(content(permits("search") + terms)).statements(PAGE, users=who))[-1]
        == want
    )


@pytest.mark.requirement("RSL-2")
def test_an_arrangement_lifts_conditions_and_no_prohibition() -> None:
    document = read(
        content(
            permits("all")
            + prohibits("ai-train")
            + prohibits("US", "geo")
            + '<payment type="crawl"/>'
        )
    )
    assert outcomes_of(document.statements(PAGE, arranged=True)) == "PPPPPP"
    assert outcomes_of(document.statements(PAGE, arranged=True, users=("DE",))) == "AAPAAA"


# section-3.3: which resources

PLACES: list[tuple[str | None, str, bool]] = [
    ("/", PAGE, True),
    ("/*", PAGE, True),
    ("*", PAGE, True),
    ("", PAGE, True),
    ("/blog/", PAGE, True),
    ("/blog", PAGE, True),
    ("/Blog/", PAGE, False),
    ("/*.html$", PAGE, True),
    ("/*.html$", PAGE + "?a", False),
    ("/blog/%31", PAGE, True),
    ("https://example.com/blog/", PAGE, True),
    ("https://example.com", PAGE, True),
    ("https://EXAMPLE.com:443/", PAGE, True),
    ("http://www.example.com/", PAGE, True),
    ("https://example.com/", "https://www.example.com/", True),
    ("https://*.example.com/", "https://blog.example.com/a", True),
    ("https://*.example.com/", "https://www.example.com/a", True),
    ("https://*.example.com/", PAGE, False),
    ("https://example.com./", PAGE, True),
    ("https://example.com/", "https://example.com./blog/", True),
    ("//example.com/", PAGE, True),
    ("//example.org/", PAGE, False),
    ("/blog/1.html#top", PAGE, True),
    ("https://example.com/blog/1.html#top", PAGE, True),
    ("https://example.com", "https://example.com.example.org/", False),
    ("https://example.com:8080/", PAGE, False),
    ("https://example.org/", PAGE, False),
    ("https://example.com/shop/", PAGE, False),
    ("*://example.com/blog/", PAGE, True),
    ("https://straße.de/", "https://xn--strae-oqa.de/a", True),
    ("https://straße.de/", "https://www.xn--strae-oqa.de/a", True),
    ("https://straße.de/", "https://xn--mller-kva.de/a", False),
    ("\u200b/blog/\ufeff", PAGE, True),
    ("http*://example.com/shop/", PAGE, False),
    ("/shop?from=https://example.com/", PAGE, False),
    ("/blog/1.html?from=https://", PAGE + "?from=https://example.org/", True),
    ("*?from=https://", PAGE + "?from=https://example.org/", True),
    # Neither URL nor path: a prohibition applies everywhere.
    (None, PAGE, True),
    ("shop/", PAGE, True),
    ("urn:isbn:1", PAGE, True),
    ("ftp://example.com/", PAGE, True),
    ("https:///", PAGE, True),
]


@pytest.mark.requirement("RSL-2")
@pytest.mark.parametrize(("place", "url", "want"), one_in(3, PLACES))
def test_resources_of_a_prohibition(place: str | None, url: str, want: bool) -> None:
    assert outcomes_of(read(content(prohibits("search"), url=place)).statements(url)) == (
        "-----P" if want else "------"
    )


@pytest.mark.requirement("RSL-2")
@pytest.mark.parametrize("place", [None, "shop/", "urn:isbn:1", "ftp://example.com/", "https:///"])
def test_a_permission_for_nobody_knows_what_is_none(place: str | None) -> None:
    document = read(content(permits("all"), url=place))
    assert (
        outcomes_of(document.statements(PAGE))
        == outcomes_of(document.statements(PAGE, arranged=True))
        == "UUUUUU"
    )
    assert [finding.rule for finding in document.findings] == ["rsl.value"]


@pytest.mark.requirement("RSL-2")
def test_a_path_with_a_url_in_it_is_a_path() -> None:
    document = read(
        content(
            permits("all"),
            url="/web/2026/https://example.org/",
            rest="<alternate>/md?https://example.org/</alternate>",
        )
    )
    for target in ("/web/2026/https://example.org/a", "/md?https://example.org/"):
        assert outcomes_of(document.statements(f"https://example.com{target}")) == "AAAAAA"
    assert outcomes_of(document.statements(PAGE)) == "------"
    assert document.findings == ()


@pytest.mark.requirement("RSL-2")
def test_alternates_have_the_terms_of_their_content() -> None:
    document = read(
        content(
            prohibits("search"),
            url="/a.html",
            rest="<alternate type='text/markdown'>/a*.md</alternate><alternate/>",
        )
    )
    assert [
        outcomes_of(document.statements(f"https://example.com{path}"))[-1]
        for path in ("/a*.md", "/ab.md", "/a*.md5")
    ] == [
        "P",
        "-",
        "-",
    ]


@pytest.mark.requirement("RSL-2")
def test_reasons_are_the_lines_that_decide() -> None:
    lines = [
        "",
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<rsl xmlns="https://rslstandard.org/rsl">',
        '  <content url="/">',
        "    <license>",
        '      <permits type="usage">all</permits>',
        '      <prohibits type="usage">ai-train</prohibits>',
        "    </license>",
        "    <license>",
        '      <permits type="usage">ai-input</permits>',
        '      <payment type="use"/>',
        "    </license>",
        "  </content>",
        '  <content url="/blog/"><license><permits type="usage">search '
        "ai-index</permits></license></content>",
        "</rsl>",
    ]
    document = rsl.read("\r\n".join(lines).encode(), URL)
    places = {
        one.term.removeprefix("rsl:"): (one.rule, one.location)
        for one in document.statements("https://example.com/")
    }
    assert places["search"] == (
        "rsl.permits",
        Location("body", 6, '<permits type="usage">all</permits>', URL),
    )
    assert places["ai-train"] == (
        "rsl.prohibits",
        Location("body", 7, '<prohibits type="usage">ai-train</prohibits>', URL),
    )
    assert places["ai-input"] == (
        "rsl.unlicensed",
        Location("body", 11, '<payment type="use"/>', URL),
    )
    for line_end in ("\r\n", "\n", "\r"):
        document = rsl.read(line_end.join(lines).encode(), URL)
        (all_,) = (one for one in document.statements(PAGE) if one.term == "rsl:all")
        assert (all_.rule, all_.location.line) == ("rsl.unlicensed", 14)


@pytest.mark.requirement("RSL-2", "WHY-2")
def test_reasons_are_the_narrowest_and_prohibitions_first() -> None:
    document = read(
        content(permits("all"), permits("ai-train"), prohibits("ai-all")),
        content(prohibits("search"), url="/"),
        content(permits("ai-index"), prohibits("ai-index"), url="/blog/"),
        content(permits("search") + '<payment type="crawl"/>', url="/blog/"),
    )
    lines = {
        one.term.removeprefix("rsl:"): (one.rule, one.location.line)
        for one in document.statements(PAGE)
    }
    assert lines["ai-index"] == ("rsl.prohibits", 3)
    # a prohibition is stronger than a missing license
    assert lines["search"] == (
        "rsl.prohibits",
        2,
    )
    assert lines["ai-input"] == ("rsl.prohibits", 1)
    places = {
        one.term: one.location
        for one in read(content(permits("all")), content(permits("search"))).statements(PAGE)
    }
    assert (places["rsl:search"].line, places["rsl:ai-train"].line) == (2, 1)


@pytest.mark.requirement("RSL-2", "RSL-3", "WHY-2")
def test_where_what_is_no_document_is_told() -> None:
    broken = rsl.read(b"\n\n<rsl>\n<content></rsl>", URL)
    assert [(finding.url, finding.line) for finding in broken.findings] == [(URL, 4)]
    assert {one.location for one in broken.statements(PAGE)} == {
        Location("body", 4, "<content></rsl>", URL)
    }
    (inner,) = rsl.inline(
        page('<p>\n<script type="application/rsl+xml">\n<rsl>\n<content></rsl></script>')
    )
    assert [(finding.url, finding.line) for finding in inner.findings] == [("", 4)]
    assert {one.location.line for one in inner.statements(PAGE)} == {4}


# No valid document, RSL-3

DTD = '<!DOCTYPE rsl [<!ENTITY a "ai-train"><!ENTITY b "&a;&a;&a;">]>'
GOOD = ROOT % ("", content(permits("all")))
INVALID: list[tuple[str, bytes, str]] = [
    ("empty", b"", "syntax"),
    ("html", b"<!doctype html><html><head><title>Not found</title></head></html>", "syntax"),
    ("json", b'{"permits": "all"}', "syntax"),
    ("cut-off", GOOD.encode()[:-3], "syntax"),
    ("other-root", b"<rss><channel/></rss>", "syntax"),
    ("no-content", (ROOT % ("", "")).encode(), "syntax"),
    (
        "content-of-others",
        (ROOT % ("", '<content xmlns="https://example.org/" url="/"/>')).encode(),
        "syntax",
    ),
    ("dtd", f"{DTD}{GOOD}".encode(), "syntax"),
    ("dtd-alone", b"<!DOCTYPE rsl>" + GOOD.encode(), "syntax"),
    (
        "dtd-defaults",
        b'<!DOCTYPE rsl [<!ATTLIST permits type CDATA "usage">]>' + GOOD.encode(),
        "syntax",
    ),
    ("dtd-external", f'<!DOCTYPE rsl SYSTEM "file:///etc/passwd">{GOOD}'.encode(), "syntax"),
    ("entity", GOOD.replace(">all<", ">&all;<").encode(), "syntax"),
    ("encoding", b'<?xml version="1.0" encoding="utf-7"?>' + GOOD.encode(), "syntax"),
    ("encoding-wide", b'<?xml version="1.0" encoding="gb2312"?>' + GOOD.encode(), "syntax"),
    ("encoding-unknown", b'<?xml version="1.0" encoding="nothing"?>' + GOOD.encode(), "syntax"),
    ("long", GOOD.encode() + b" " * MAX_BYTES, "limit"),
    ("deep", b"<rsl>" * (xml_tree.MAX_DEPTH + 1), "limit"),
    ("many", b"<rsl>" + b"<a/>" * xml_tree.MAX_ELEMENTS + b"</rsl>", "limit"),
    ("many-contents", (ROOT % ("", content() * (rsl_grammar.MAX_SCOPES + 1))).encode(), "limit"),
    (
        "many-licenses",
        (ROOT % ("", content(*[permits("all")] * (rsl_grammar.MAX_LICENSES + 1)))).encode(),
        "limit",
    ),
]


@pytest.mark.requirement("RSL-2", "RSL-3", "SEC-1")
@pytest.mark.parametrize(
    ("body", "rule"), one_in(2, [case[1:] for case in INVALID]), ids=[case[0] for case in INVALID]
)
def test_no_valid_document_licenses_nothing(body: bytes, rule: str) -> None:
    document = rsl.read(body, URL)
    assert not document.is_valid
    assert (
        outcomes_of(document.statements(PAGE))
        == outcomes_of(document.statements(PAGE, arranged=True))
        == "UUUUUU"
    )
    assert document.findings[-1].rule == f"rsl.{rule}"
    assert document.everywhere() == set(TERMS)


@pytest.mark.requirement("RSL-3", "SEC-1")
def test_a_document_that_was_not_received_whole_licenses_nothing() -> None:
    assert outcomes_of(rsl.read(GOOD.encode(), URL, cut=True).statements(PAGE)) == "UUUUUU"


@pytest.mark.requirement("RSL-2")
def test_where_the_document_cannot_be_had() -> None:
    place = Location(
        "body", 3, "License: https://example.com/rsl.xml", "https://example.com/robots.txt"
    )
    statements = rsl.refuse_all(place)
    assert outcomes_of(statements) == "UUUUUU"
    assert {one.location for one in statements} == {place}


@pytest.mark.requirement("RSL-2")
@pytest.mark.parametrize(
    "namespace",
    ["", ' xmlns="https://rslstandard.org/rsl/"', ' xmlns="http://rslstandard.org/rsl"'],
)
def test_another_namespace_prohibits_and_permits_nothing(namespace: str) -> None:
    text = f"<rsl{namespace}>{content(permits('all') + prohibits('ai-train'))}</rsl>"
    assert outcomes_of(rsl.read(text.encode(), URL).statements(PAGE)) == "UUPUUU"


@pytest.mark.requirement("RSL-2")
def test_prefixes_and_encodings_of_xml_make_no_difference() -> None:
    text = GOOD.replace("<", "<r:").replace("<r:/", "</r:").replace("xmlns=", "xmlns:r=")
    for body in (
        text.encode(),
        text.encode("utf-16"),
        b"\xef\xbb\xbf" + text.encode(),
        b"\n \n<?xml version='1.0'?>" + text.encode(),
    ):
        assert outcomes_of(rsl.read(body, URL).statements(PAGE)) == "AAAAAA"


AGES = [
    ("", 30),
    (' max-age="7"', 7),
    (' max-age=" 1 "', 1),
    (' max-age="0"', 1),
    (' max-age="-1"', 1),
    (' max-age="soon"', 1),
    (' max-age="١"', 1),
    (' max-age="999999999"', 365),
    (' max-age="99999999999999999999"', 1),
]


@pytest.mark.requirement("RSL-3")
@pytest.mark.parametrize(("attributes", "days"), one_in(2, AGES))
def test_max_age(attributes: str, days: int) -> None:
    assert read(content(permits("all")), attributes=attributes).max_age == timedelta(days=days)


EVERYWHERE: list[tuple[str, str]] = [
    (content(prohibits("all")), "all ai-all ai-train ai-input ai-index search"),
    (content(prohibits("ai-all"), url="https://example.com/"), "ai-all ai-train ai-input ai-index"),
    (content(prohibits("ai-all"), url="https://example.org/"), ""),
    (content(prohibits("ai-all"), url="/blog/"), ""),
    (content(prohibits("ai-all"), url="/$"), ""),
    (content(prohibits("ai-train search")) + content(permits("search"), url="/o"), "ai-train"),
    (
        content(permits("all") + '<payment type="use"/>'),
        "all ai-all ai-train ai-input ai-index search",
    ),
    (
        content(prohibits("search"))
        + content(permits("search") + permits("education", "user"), url="/open/"),
        "search",
    ),
    (content(prohibits("ai-train search")) + content(permits("search"), url="/open/"), "ai-train"),
    (content(prohibits("ai-train")) + content(permits("all"), url="/open/"), ""),
    (
        content(prohibits("ai-train"))
        + content(permits("ai-train") + '<payment type="use"/>', url="/open/"),
        "ai-train",
    ),
    (content(permits("search")), "all ai-all ai-train ai-input ai-index"),
    (content(permits("all")), ""),
]


@pytest.mark.requirement("RSL-2")
@pytest.mark.parametrize(("text", "want"), one_in(2, EVERYWHERE))
def test_everywhere(text: str, want: str) -> None:
    assert read(text).everywhere() == set(want.split())
    assert read(text).everywhere(PAGE) == set(want.split())


@pytest.mark.requirement("SEC-1")
def test_findings_are_bounded_and_tell_lines() -> None:
    document = read(
        content(prohibits("x" * 1000)),
        *[content(permits("{}\u202e"), url="nowhere") for _ in range(200)],
    )
    assert len(document.findings) == MAX_FINDINGS + 1
    assert [finding.line for finding in document.findings[:3]] == [1, 2, 2]
    assert "\u202e" not in "".join(finding.message for finding in document.findings)


# RSL-1


class Line(NamedTuple):
    name: str
    value: bytes
    line: int
    offset: int
    group: int


ROBOTS = "https://example.com/robots.txt"


def in_robots(text: str, groups: list[int]) -> list[str]:
    """Return lines of the text with the number of their group, as a reader of robots.txt does."""
    lines, group, at, naming = [], -1, 0, False
    for number, line in enumerate(text.split("\n"), 1):
        name, _, value = line.partition(":")
        if name == "User-agent":
            group += not naming
        naming = name == "User-agent"
        if name == "License":
            lines.append(Line("license", value.strip().encode(), number, at, group))
        at += len(line) + 1
    found = rsl.in_robots(lines, groups, text.encode(), ROBOTS)
    assert all(place.url == ROBOTS and place.text.startswith("License: ") for place in found.unread)
    return [*found.urls, *(f"unread {place.line}" for place in found.unread)]


A, B, C = (f"https://example.com/{name}.xml" for name in "abc")
IN_ROBOTS: list[tuple[str, str, list[int], list[str]]] = [
    ("none", "User-agent: *\nDisallow:", [0], []),
    ("global", f"License: {A}\nUser-agent: *\nAllow: /", [0], [A]),
    ("group", f"User-agent: x\nLicense: {A}\n\nUser-agent: *\nLicense: {B}", [0], [A]),
    ("group-of-others", f"User-agent: x\nLicense: {A}\n\nUser-agent: *\nLicense: {B}", [1], [B]),
    ("group-of-others-alone", f"User-agent: x\nLicense: {A}\n\nUser-agent: *\nAllow: /", [1], []),
    ("group-replaces", f"License: {A}\nUser-agent: *\nLicense: {B}", [0], [B]),
    (
        "merged-groups",
        f"User-agent: *\nLicense: {A}\nUser-agent: x\nAllow: /\nUser-agent: *\nLicense: {B}",
        [0, 2],
        [A, B],
    ),
    ("no-group-is-ours", f"License: {A}\nUser-agent: x\nLicense: {B}", [], [A]),
    ("several", f"License: {A}\nLicense: {B}\nLicense: {A}", [], [A, B]),
    # At the end of the file, set apart by an empty line, after a group for others
    ("at-the-end", f"User-agent: x\nDisallow: /\n\n# RSL\nSitemap: /s.xml\nLicense: {A}", [], [A]),
    (
        "at-the-end-not-set-apart",
        f"User-agent: x\nDisallow: /\nSitemap: /s.xml\nLicense: {A}",
        [],
        [],
    ),
    ("at-the-end-of-ours", f"User-agent: *\nDisallow: /\n\nLicense: {A}", [0], [A]),
    (
        "far-from-the-group",
        f"User-agent: x\nDisallow: /\n\n{'#' * 4000}\n{'#' * 4000}\nLicense: {A}",
        [],
        [],
    ),
    ("relative", "License: /a.xml", [], [A]),
    ("relative-name", "License: a.xml", [], [A]),
    ("prose", "License: MIT\nLicense: see https://example.com/terms\nLicense:", [], []),
    ("other-scheme", "License: ftp://example.com/a.xml", [], ["unread 1"]),
    ("no-host", "License: https:///a.xml", [], ["unread 1"]),
    (
        "more-behind",
        f"License: {A} type=application/rsl+xml\nLicense: {A}, {B}\nLicense: /a.xml b",
        [],
        [f"unread {n}" for n in (1, 2, 3)],
    ),
    ("more-behind-in-a-group", f"License: {A}\nUser-agent: *\nLicense: <{B}> c", [0], ["unread 3"]),
    (
        "too-many",
        "\n".join(f"License: /{number}.xml" for number in range(7)),
        [],
        [
            *(f"https://example.com/{number}.xml" for number in range(MAX_REFERENCES)),
            "unread 6",
            "unread 7",
        ],
    ),
]


@pytest.mark.requirement("RSL-1")
@pytest.mark.parametrize(
    ("text", "groups", "want"),
    one_in(2, [case[1:] for case in IN_ROBOTS]),
    ids=[case[0] for case in IN_ROBOTS],
)
def test_license_lines_of_robots_txt(text: str, groups: list[int], want: list[str]) -> None:
    assert in_robots(text, groups) == want


@pytest.mark.requirement("RSL-1")
def test_many_license_lines_are_set_apart_together() -> None:
    """The empty line before the first sets all of them apart."""
    lines = [f"License: {A}" for _ in range(1000)]
    text = "\n".join(["User-agent: x", "Disallow: /", "", *lines, f"License: {B}"])
    assert in_robots(text, []) == [A, B]
    assert in_robots(text.replace("\n\n", "\n"), []) == []


@pytest.mark.requirement("SEC-1", "RSL-1")
def test_what_stands_before_license_lines_is_walked_once() -> None:
    """Twice the lines cost about twice the octets."""

    class Text(bytes):
        looked_at = 0

        def __getitem__(self, part: Any) -> Any:
            octets = bytes.__getitem__(self, part)
            self.looked_at += len(octets)
            return octets

    line = b"License:/a\n"
    for count in (500, 1000):
        text = Text(b"User-agent: x\nDisallow: /\n" + line * count)
        lines = [
            Line("license", b"/a", 3 + number, 26 + number * len(line), 0)
            for number in range(count)
        ]
        rsl.in_robots(lines, [], text, ROBOTS)
        assert 0 < text.looked_at <= 3 * len(text)


FIELDS: list[tuple[list[tuple[str, str]], list[str]]] = [
    ([], []),
    ([("Link", f'<{A}>; rel="license"; type="application/rsl+xml"')], [A]),
    ([("link", f"<{A}>;TYPE=application/rsl+xml;Rel=LICENSE")], [A]),
    (
        [
            (
                "Link",
                f'</x>; rel=next, <{A}> ; rel="copyright license" ; '
                'type="application/rsl+xml; charset=utf-8"',
            )
        ],
        [A],
    ),
    ([("Link", f'<{A}>; title="a, b; \\"c\\""; rel="license"; type="application/rsl+xml"')], [A]),
    (
        [
            ("Link", f'<{A}>; rel="license"; type="application/rsl+xml"'),
            ("Link", f'<{B}>; rel=license; type="application/rsl+xml"'),
        ],
        [A, B],
    ),
    ([("Link", '</a.xml>; rel="license"; type="application/rsl+xml"')], [A]),
    ([("Link", '<https://creativecommons.org/licenses/by/4.0/>; rel="license"')], []),
    ([("Link", '<https://example.com/rsl.xml>; rel="license"')], [URL]),
    ([("Link", '<https://example.com/rsl.xml>; rel="license"; type="text/html"')], []),
    ([("Link", f'<{A}>; rel="next"; rel="license"; type="application/rsl+xml"')], []),
    ([("Link", f'<{A}>; type="application/rsl+xml"')], []),
    ([("Link", '<mailto:a@example.com>; rel="license"; type="application/rsl+xml"')], ["unread"]),
    ([("X-Link", f'<{A}>; rel="license"; type="application/rsl+xml"')], []),
]


@pytest.mark.requirement("RSL-1")
@pytest.mark.parametrize(("lines", "want"), one_in(2, FIELDS))
def test_link_fields(lines: list[tuple[str, str]], want: list[str]) -> None:
    found = rsl.in_fields([(name.encode(), value.encode()) for name, value in lines], PAGE)
    assert [*found.urls, *("unread" for _ in found.unread)] == want


def page(text: str) -> Content:
    return Content([(b"Content-Type", b"text/html; charset=utf-8")], text.encode())


LINKS = [
    (f'<link rel="license" type="application/rsl+xml" href="{A}">', [A]),
    (f'<LINK REL="License" TYPE="Application/RSL+XML" HREF=" {A} ">', [A]),
    (f'<link rel="license" type="application/rsl&#43;xml" href="{A}">', [A]),
    ('<link rel="license" type="application/rsl+xml" href="../a.xml">', [A]),
    ('<link rel="license" href="/rsl.xml">', [URL]),
    ('<link rel="license" href="https://creativecommons.org/licenses/by/4.0/">', []),
    ('<link rel="license" href="http://[rsl.xml">', []),
    (
        '<link rel="license" type="application/rsl+xml" href="mailto:x">' * 9,
        ["unread"] * MAX_REFERENCES,
    ),
    ('<link rel="alternate" type="application/rsl+xml" href="/rsl.xml">', []),
    ('<link rel="license" type="application/rsl+xml" href="http://[">', ["unread"]),
    ('<link rel="license" type="application/rsl+xml">', []),
    (f'<!-- <link rel="license" type="application/rsl+xml" href="{A}"> -->', []),
]


@pytest.mark.requirement("RSL-1")
@pytest.mark.parametrize(("text", "want"), one_in(2, LINKS))
def test_link_elements(text: str, want: list[str]) -> None:
    found = rsl.in_markup(page(f"<!doctype html><head>{text}</head>"), PAGE)
    assert [*found.urls, *("unread" for _ in found.unread)] == want


BASES = [
    ('<base href="/terms/">', "https://example.com/terms/rsl.xml"),
    (
        '<base target="_top"><base href=" //example.org/terms/x "><base href="/a/">',
        "https://example.org/terms/rsl.xml",
    ),
    ('<base href="javascript:x">', "https://example.com/blog/rsl.xml"),
    ('<base href="http://[x/">', "https://example.com/blog/rsl.xml"),
    ('<!-- <base href="/terms/"> -->', "https://example.com/blog/rsl.xml"),
]


@pytest.mark.requirement("RSL-1")
@pytest.mark.parametrize(("base", "want"), BASES)
def test_a_relative_address_is_that_by_the_base_of_the_page(base: str, want: str) -> None:
    link = '<link rel="license" href="rsl.xml">'
    assert rsl.in_markup(page(f"<!doctype html><head>{base}{link}</head>"), PAGE).urls == (want,)
    assert rsl.in_markup(page(f"<!doctype html><head>{link}{base}</head>"), PAGE).urls == (want,)


@pytest.mark.requirement("RSL-1")
def test_a_page_without_the_words_is_not_parsed() -> None:
    content_ = page('<p class="license">' * 1000)
    assert rsl.in_markup(content_, PAGE) == ((), ())
    assert rsl.inline(content_) == ()
    assert "_selector" not in vars(content_)


@pytest.mark.requirement("RSL-1", "RSL-2")
def test_a_document_within_a_page_is_about_that_page() -> None:
    inner = '<?xml version="1.0"?>\n' + ROOT % (
        "",
        "\n" + content(permits("all") + prohibits("ai-train"), url="https://example.org/canonical"),
    )
    (document,) = rsl.inline(
        page(f'<head>\n<script type="application/rsl+xml">\n{inner}</script></head>')
    )
    statements = document.statements(PAGE)
    assert outcomes_of(statements) == "AAPAAA"
    (training,) = (one for one in statements if one.term == "rsl:ai-train")
    assert training.location._replace(text="") == Location("script application/rsl+xml", 5)
    assert "ai-train" in training.location.text


@pytest.mark.requirement("RSL-1", "RSL-2", "SEC-1")
def test_documents_within_a_page_that_are_none() -> None:
    script = '<script type="application/rsl+xml">%s</script>'
    (broken,) = rsl.inline(page(script % "<rsl>"))
    assert outcomes_of(broken.statements(PAGE)) == "UUUUUU"
    (many,) = rsl.inline(page(script % GOOD * 6))
    assert outcomes_of(many.statements(PAGE)) == "UUUUUU"
    assert len(rsl.inline(page(script % GOOD * 5))) == 5


# Any input

WORDS = st.sampled_from([*TERMS, "ai-train,search", "", "quote", "x:y"])
TERM = st.one_of(
    st.builds(permits, WORDS),
    st.builds(prohibits, WORDS),
    st.builds(
        permits,
        st.sampled_from(["commercial", "all", "FR"]),
        st.sampled_from(["user", "geo", "purpose"]),
    ),
    st.builds(
        prohibits,
        st.sampled_from(["commercial", "all", "FR"]),
        st.sampled_from(["user", "geo", "purpose"]),
    ),
    st.sampled_from(
        ['<payment type="free"/>', '<payment type="crawl"/>', "<reporting/>", "<what/>"]
    ),
)
CONTENT = st.builds(
    lambda url, licenses: content(*("".join(terms) for terms in licenses), url=url),
    st.sampled_from([None, "", "/", "/*", "/blog/", "https://example.com/", "nowhere"]),
    st.lists(st.lists(TERM, max_size=4), max_size=3),
)


@pytest.mark.requirement("RSL-2")
@given(
    st.lists(CONTENT, max_size=4),
    TERM,
    st.sampled_from(["/", "/blog/", "https://example.com/blog/1", ""]),
    st.booleans(),
)
def test_a_prohibition_more_never_permits_more(
    contents: list[str], term: str, url: str, arranged: bool
) -> None:
    if term.startswith("<prohibits") and "purpose" not in term:
        before = outcomes_of(read(*contents).statements(PAGE, arranged=arranged))
        after = outcomes_of(
            read(*contents, content(term, url=url)).statements(PAGE, arranged=arranged)
        )
        if contents:
            assert all(new != "A" or old == "A" for old, new in zip(before, after, strict=True))


@pytest.mark.requirement("RSL-2")
def test_an_answer_does_not_depend_on_those_before() -> None:
    document = read(
        content(permits("search") + permits("education", "user")),
        content(prohibits("search"), url="/shop/"),
    )
    for _ in range(2):
        for number in range(200):
            assert outcomes_of(document.statements(PAGE, users=(f"user-{number}",))) == "UUUUUU"
        assert outcomes_of(document.statements(PAGE, users=("education",))) == "UUUUUA"
        assert outcomes_of(document.statements(PAGE, arranged=True)) == "UUUUUA"
        assert (
            outcomes_of(document.statements("https://example.com/shop/", arranged=True)) == "UUUUUP"
        )


@pytest.mark.requirement("RSL-2")
@given(st.lists(CONTENT, min_size=1, max_size=4))
def test_order_makes_no_difference(contents: list[str]) -> None:
    assert outcomes_of(read(*contents).statements(PAGE)) == outcomes_of(
        read(*reversed(contents)).statements(PAGE)
    )


@pytest.mark.requirement("RSL-2")
@given(st.lists(CONTENT, min_size=1, max_size=4))
def test_what_is_refused_everywhere_is_refused_on_every_page(contents: list[str]) -> None:
    document = read(*contents)
    for url in (PAGE, "https://example.com/", "https://example.com/shop?x"):
        outcomes = dict(zip(TERMS, outcomes_of(document.statements(url)), strict=True))
        assert all(outcomes[term] in "PU" for term in document.everywhere())


@pytest.mark.requirement("RSL-3", "SEC-1")
@given(st.binary(max_size=100), st.text(max_size=30))
def test_never_raises(octets: bytes, text: str) -> None:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    for body in (
        octets,
        (
            ROOT
            % (f' max-age="{escaped}"', content(permits(escaped), prohibits(escaped), url=escaped))
        ).encode(errors="replace"),
    ):
        document = rsl.read(body, text)
        document.statements(text)
        document.everywhere(text)
    rsl.in_fields(
        [(b"Link", octets), (b"Link", b"<" + octets + b">; rel=license; type=application/rsl+xml")],
        PAGE,
    )
    markup = Content(
        [],
        b'<script type="application/rsl+xml">'
        + octets
        + b'</script><link rel=license href="rsl.xml'
        + octets,
    )
    rsl.in_markup(markup, PAGE)
    for document in rsl.inline(markup):
        document.statements(PAGE)
    rsl.in_robots([Line("license", octets, 1, 0, -1)], [], octets, ROBOTS)


@pytest.mark.requirement("SEC-1")
def test_a_link_field_is_read_in_linear_time() -> None:
    hostile = [
        b'<a>; x="' + b"\\" * 100_000,
        b"<a>" + b";a" * 50_000,
        b"<" * 100_000,
        b'<a>;a="b"' + b' ;a="b"' * 20_000 + b"<",
        b"<a>;" + b" " * 100_000,
    ]
    for value in hostile:
        assert rsl.in_fields([(b"Link", value + b"license")], PAGE).urls == ()


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"<rsl", "rsl.syntax"),
        (b"<a>" * 60, "rsl.limit"),
    ],
)
@pytest.mark.requirement("RSL-3", "SEC-1")
def test_documents_that_cannot_be_read_are_reported(body: bytes, rule: str) -> None:
    document = rsl.read(body)
    assert not document.is_valid
    assert {finding.rule for finding in document.findings} == {rule}


# robots.txt, whether all is licensed and ai-train prohibited: "" if nothing is stated
JOINED = [
    ("User-agent: mybot\nLicense: /all.xml\nLicense: /no.xml\nAllow: /\n", "all no"),
    ("User-agent: x\nUser-agent: mybot\nLicense: /all.xml\nAllow: /\n", "all"),
    # The line may end the list of agents.
    ("User-agent: x\nLicense: /all.xml\nUser-agent: mybot\nAllow: /\n", ""),
    ("User-agent: x\nLicense: /no.xml\nUser-agent: mybot\nAllow: /\n", "no"),
    ("User-agent: mybot\nLicense: /all.xml\nUser-agent: x\nAllow: /\n", "all"),
    ("User-agent: x\nLicense: /all.xml\nUser-agent: mybot\nLicense: /all.xml\nAllow: /\n", "all"),
    ("License: /all.xml\nUser-agent: x\nLicense: /no.xml\nUser-agent: mybot\nAllow: /\n", "no"),
    # A record of ACAP may be for another agent.
    ("User-agent: *\nAllow: /\nACAP-crawler: x\nLicense: /all.xml\n", ""),
    ("User-agent: *\nAllow: /\nACAP-crawler: x\nLicense: /no.xml\n", "no"),
    ("License: /all.xml\nUser-agent: *\nAllow: /\nACAP-crawler: x\nLicense: /no.xml\n", "all no"),
]


@pytest.mark.requirement("RSL-1", "RSL-2", "RFC-12")
@pytest.mark.parametrize(("text", "want"), JOINED)
def test_a_license_counts_by_each_reading_of_the_groups(text: str, want: str) -> None:
    files = {
        "/robots.txt": text.encode(),
        "/all.xml": (ROOT % ("", content(permits("all")))).encode(),
        "/no.xml": (ROOT % ("", content(prohibits("ai-train")))).encode(),
    }
    site = Site.from_files("https://example.com", files)
    agent = Agent("mybot", uses=("train-ai",))
    uses = site.page(agent, "https://example.com/a").uses
    licensed, prohibited = uses["search"], uses["train-ai"]
    words = [
        *(["all"] if licensed.stated and licensed.verdict is Verdict.ALLOW else []),
        *(["no"] if prohibited.stated and prohibited.verdict is Verdict.DENY else []),
    ]
    assert " ".join(words) == want
    assert (site.unusable(agent) is not None) is ("no" in want)
