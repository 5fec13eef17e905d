"""`<meta http-equiv>` with the name of a header field, and `<meta property>` in place of `name`.

They can only refuse."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from comity.dataset.verify.replay import recall
from comity.policies import Agent, Page, Site
from comity.policies.answers.decision import Verdict
from comity.policies.document.document import Content
from tests.selection import one_in

ORIGIN = "https://example.com"
URL = f"{ORIGIN}/page"
ALLOW, DENY = Verdict.ALLOW, Verdict.DENY
AGENT = Agent(
    "MyBot", uses=("train", "index"), defaults=dict.fromkeys(("train", "index"), Verdict.ALLOW)
)
HTML, XHTML, SVG = "text/html", "application/xhtml+xml", "image/svg+xml"


def page_of(
    body: str | bytes, media_type: str = HTML, *fields: tuple[bytes, bytes], robots: bytes = b""
) -> Page:
    site = Site.from_files(ORIGIN, {"/robots.txt": robots})
    octets = body.encode() if isinstance(body, str) else body
    return site.page(
        AGENT, URL, headers=[(b"Content-Type", media_type.encode()), *fields], body=octets
    )


def equivalent(name: str, value: str) -> str:
    return f'<meta http-equiv="{name}" content="{value}">'


class Refusing(NamedTuple):
    markup: str
    use: str
    rule: str
    part: str
    text: str


REFUSING = {
    "noindex": Refusing(
        equivalent("X-Robots-Tag", "noindex"),
        "index",
        "robots-meta.disallow",
        "meta X-Robots-Tag",
        "noindex",
    ),
    "scope": Refusing(
        equivalent("X-Robots-Tag", "otherbot: noindex, MyBot: nofollow"),
        "follow",
        "robots-meta.disallow",
        "meta X-Robots-Tag",
        "MyBot: nofollow",
    ),
    "case": Refusing(
        "<META CONTENT=noai HTTP-EQUIV = 'x-robots-TAG'>",
        "train",
        "robots-meta.disallow",
        "meta X-Robots-Tag",
        "noai",
    ),
    "references": Refusing(
        "<meta http-equiv=x-robot&#115;-tag content=noai>",
        "train",
        "robots-meta.disallow",
        "meta X-Robots-Tag",
        "noai",
    ),
    "content-usage": Refusing(
        equivalent("Content-Usage", "train-ai=n"),
        "train",
        "content-usage.disallow",
        "meta Content-Usage",
        "train-ai=n",
    ),
    "usage-pref": Refusing(
        equivalent("Usage-Pref", "ai=n"), "train", "usage.disallow", "meta Usage-Pref", "ai=n"
    ),
    "content-signal": Refusing(
        equivalent("Content-Signal", "ai-train=no"),
        "train",
        "content-signal.disallow",
        "meta Content-Signal",
        "ai-train=no",
    ),
    "tdm-reservation": Refusing(
        equivalent("TDM-Reservation", "1"),
        "train",
        "tdmrep.reserved",
        "meta tdm-reservation",
        "tdm-reservation: 1",
    ),
    "property": Refusing(
        '<meta property="robots" content="noindex">',
        "index",
        "robots-meta.disallow",
        "meta robots",
        "noindex",
    ),
    "property-agent": Refusing(
        '<meta property=" MYBOT" content="nofollow">',
        "follow",
        "robots-meta.disallow",
        "meta mybot",
        "nofollow",
    ),
    "property-tdm": Refusing(
        '<meta property="tdm-reservation" content="1">',
        "train",
        "tdmrep.reserved",
        "meta tdm-reservation",
        "tdm-reservation: 1",
    ),
}


@pytest.mark.requirement("META-5")
@pytest.mark.parametrize("media_type", [HTML, XHTML, SVG])
@pytest.mark.parametrize("name", REFUSING)
def test_it_refuses(name: str, media_type: str) -> None:
    case = REFUSING[name]
    decision = page_of(f"<html>\n{case.markup}</html>", media_type).uses[case.use]
    assert (decision.verdict, decision.stated) == (DENY, True)
    (reason,) = decision.reasons
    source = reason.source
    assert (reason.rule, source.url, source.part, source.text) == (
        case.rule,
        URL,
        case.part,
        case.text,
    )
    assert source.line == (0 if name == "property-tdm" else 2)  # TDMRep has no lines of `meta`


@pytest.mark.requirement("META-5", "WHY-2")
@pytest.mark.parametrize("name", REFUSING)
def test_a_tag_tells_enough_to_read_it_once_more(name: str) -> None:
    case = REFUSING[name]
    again = recall(page_of(f"<html>{case.markup}").permissions)
    assert not again.lost
    site = Site.from_files(ORIGIN, {"/robots.txt": b""})
    decision = site.page(AGENT, URL, headers=again.headers, body=again.body).uses[case.use]
    assert (decision.verdict, decision.reasons[0].rule) == (DENY, case.rule)


@pytest.mark.requirement("META-5")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Content-Usage", "train-ai=y"),
        ("Usage-Pref", "ai=y"),
        ("Content-Signal", "ai-train=yes"),
        ("tdm-reservation", "0"),
    ],
)
@pytest.mark.parametrize("attribute", ["http-equiv", "property"])
def test_it_permits_nothing(attribute: str, name: str, value: str) -> None:
    decision = page_of(f'<meta {attribute}="{name}" content="{value}">').uses["train"]
    assert not decision.stated
    assert [reason.rule for reason in decision.reasons] == ["comity.default"]


@pytest.mark.requirement("META-5", "TDM-1")
@pytest.mark.parametrize("attribute", ["http-equiv", "property"])
def test_it_takes_no_refusal_back(attribute: str) -> None:
    """A `meta` by name overrides the field (sec-processing-priority). These do not."""
    given_up = 'tdm-reservation" content="0">'
    field = (b"tdm-reservation", b"1")
    assert page_of(f'<meta name="{given_up}', HTML, field).uses["train"].verdict is ALLOW
    assert page_of(f'<meta {attribute}="{given_up}', HTML, field).uses["train"].verdict is DENY


@pytest.mark.requirement("META-5", "TDM-1")
@pytest.mark.parametrize("attribute", ["http-equiv", "property"])
def test_it_refuses_beside_what_permits(attribute: str) -> None:
    body = (
        f'<meta name="tdm-reservation" content="0"><meta {attribute}="tdm-reservation" content="1">'
    )
    assert page_of(body).uses["train"].verdict is DENY


@pytest.mark.requirement("META-5")
@pytest.mark.parametrize(
    "markup",
    one_in(
        1,
        [
            '<meta name="description" property="robots" content="noindex">',  # it has a name
            '<meta name="" property="robots" content="noindex">',
            '<meta property="og:robots" content="noindex">',
            '<meta property="robots">',
            equivalent("X-Robots-Tag", "otherbot: noindex"),
            equivalent("X-Robots", "noindex"),
            equivalent("refresh", "0; url=/x-robots-tag"),
            '<!-- <meta property="robots" content="noindex"> -->',
            '<meta http-equiv="X-Robots-Tag">',
            # HTML has its own element for this field: `link`
            equivalent(
                "Link", "&lt;/license.xml>; rel=license; type=&quot;application/rsl+xml&quot;"
            ),
            '<p property="robots" content="noindex" http-equiv="X-Robots-Tag">',
        ],
    ),
)
def test_what_says_nothing(markup: str) -> None:
    assert [use.stated for name, use in page_of(markup).uses.items() if name != "crawl"] == [
        False
    ] * 5


@pytest.mark.requirement("META-5", "META-2")
def test_limits_count_and_are_joined() -> None:
    body = "".join(equivalent("X-Robots-Tag", f"max-snippet:{length}") for length in (70, 50, 60))
    decision = page_of(body, robots=b"ACAP-crawler: *\nACAP-allow-present-snippet: /\n").uses[
        "present-snippet"
    ]
    assert (decision.verdict, decision.max_chars) == (ALLOW, 50)


@pytest.mark.requirement("META-5", "SEC-1")
def test_a_page_full_of_them_has_few_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "".join(
        equivalent("X-Robots-Tag", f"noai, max-snippet:{number}, odd{number}")
        for number in range(3000)
    )
    page = page_of(body)
    assert len(page.permissions["reasons"]) < 20
    assert len(page.findings) < 200


@pytest.mark.requirement("META-5")
@pytest.mark.parametrize(
    "body",
    [
        b'<meta http-equiv="X-UA-Compatible" content="IE=edge"><p>x-robots-tag</p>',
        b'<meta property="og:title" content="robots"><a name=x>mybot</a>',
    ],
)
def test_a_page_without_any_is_not_parsed(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(content: Content) -> object:
        raise AssertionError

    monkeypatch.setattr(Content, "_tags", property(fail))
    page_of(body)
    with pytest.raises(AssertionError):
        page_of(body + b"<meta property=mybot content=noai>")
    with pytest.raises(AssertionError):
        page_of(body + b"<meta http-equiv='x-robots-tag' content=noai>")


@pytest.mark.requirement("META-5")
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig"])
@pytest.mark.parametrize("name", ["property", "noindex"])
def test_other_encodings(name: str, encoding: str) -> None:
    media_type = f"text/html; charset={encoding.removesuffix('-sig')}"
    assert page_of(REFUSING[name].markup.encode(encoding), media_type).uses["index"].verdict is DENY
