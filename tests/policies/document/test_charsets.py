"""The character encoding of a page: only encodings of browsers count, and ASCII is never UTF-16."""

from __future__ import annotations

import codecs

import pytest
from w3lib.encoding import resolve_encoding

from comity.policies import Agent, Site
from comity.policies.document.document import CHARSETS, Content
from comity.policies.formats.automation.annotation import annotations_in
from tests.selection import one_in

AI_TXT = b"User-agent: *\n  Path: / html\n    Element: p\n      Disallow: Train\n"
ANNOTATION = (
    '<script type="application/ld+json">{"@type": "AutomationPolicyAnnotation", '
    '"allowedPurposes": []}</script>'
)
PAGE = (
    "<!doctype html><html><head>%s<meta name=robots content=noindex>"
    + ANNOTATION
    + "</head><body><p>SECRET é</p>rest</html>"
)
HTML, XHTML = "text/html", "application/xhtml+xml"
AGENT = Agent("examplebot")


def is_seen(body: bytes, content_type: str) -> bool:
    """Return True if the refusals of page and element are read. AssertionError: only some are."""
    headers = [(b"Content-Type", content_type.encode())]
    page = Site.from_files("https://example.com", {"/ai.txt": AI_TXT}).page(
        AGENT, "https://example.com/a", headers=headers, body=body
    )
    rules = page.element_rules
    assert rules
    seen = {
        page.uses["index"].stated,
        len(annotations_in(Content(headers, body), "examplebot")[0]) == 1,
        [len(element.nodes) for element in page.elements] == [1],
        b"SECRET" not in rules.redacted(["train"]).replace(b"\0", b""),
    }
    assert len(seen) == 1
    return seen.pop()


# Names of UTF-16, which mean UTF-8 in markup (HTML Standard section-13.2.3.2), and names that the
# Encoding Standard does not have.
NO_CHARSETS = [
    "utf-16",
    "UTF-16LE",
    "utf-16be",
    "utf-32",
    "utf-32-le",
    "ebcdic-cp-us",
    "cp037",
    "IBM500",
    "cp1140",
    "cp424",
]
NO_CHARSETS += ["cp875", "hz-gb-2312", "iso-2022-kr", "johab", "cp437"]
DECLARATIONS = [
    "<meta charset=%s>",
    "<meta http-equiv=Content-Type content='text/html; charset=%s'>",
    "<meta name=x content=y><META CHARSET='%s' />",
    "<?xml version='1.0' encoding='%s'?>",
]


@pytest.mark.requirement("AIT-5", "META-1", "AUTX-12")
@pytest.mark.parametrize("declaration", DECLARATIONS)
@pytest.mark.parametrize("charset", one_in(3, NO_CHARSETS))
def test_what_is_no_charset_in_markup_is_utf8(charset: str, declaration: str) -> None:
    body = (PAGE % (declaration % charset)).encode()
    assert is_seen(body, HTML)
    content = Content([(b"Content-Type", HTML.encode())], body)
    assert content.encoding == "utf-8"
    assert "é" in content.text


@pytest.mark.requirement("AIT-5", "META-1", "AUTX-12")
@pytest.mark.parametrize("charset", ["utf-16", "utf-16le", "utf-32", "cp037"])
def test_a_declaration_of_xhtml(charset: str) -> None:
    page = PAGE.replace(
        "<meta name=robots content=noindex>", "<meta name='robots' content='noindex'/>"
    ).removeprefix("<!doctype html>")
    page = page.replace("<html>", "<html xmlns='http://www.w3.org/1999/xhtml'>").replace(
        "</p>rest", "</p>rest</body>"
    )
    assert is_seen(f"<?xml version='1.0' encoding='{charset}'?>{page}".encode(), XHTML)


@pytest.mark.requirement("AIT-5", "META-1", "AUTX-12")
@pytest.mark.parametrize("charset", [name for name in NO_CHARSETS if "16" not in name])
def test_what_is_no_charset_in_the_field_is_passed_over(charset: str) -> None:
    assert is_seen((PAGE % "").encode(), f"{HTML}; charset={charset}")
    declared = (PAGE % "<meta charset=koi8-r>").encode()
    assert (
        Content([(b"Content-Type", f"{HTML}; charset={charset}".encode())], declared).encoding
        == "koi8-r"
    )


@pytest.mark.requirement("AIT-5", "META-1", "AUTX-12")
@pytest.mark.parametrize(
    ("charset", "encoding"),
    [
        ("utf-16", "utf-16-le"),
        # By its octets. Browsers read little-endian, and show nothing of it.
        ("utf-16", "utf-16-be"),
        ("utf-16", "utf-16"),  # with a BOM
        ("utf-16le", "utf-16-le"),
        ("utf-16be", "utf-16-be"),
        ("latin-1", "latin-1"),
        ("x-sjis", "utf-8-sig"),  # a BOM has precedence
        ("", "utf-16"),
        ("shift_jis", "ascii"),
        ("iso-2022-jp", "ascii"),
    ],
)
@pytest.mark.parametrize(
    "declaration", ["", "<meta charset=utf-16>", "<meta charset=cp037>", "<meta charset=utf-8>"]
)
def test_the_field_comes_before_the_markup(charset: str, encoding: str, declaration: str) -> None:
    body = (PAGE % declaration).encode(encoding, "xmlcharrefreplace")
    assert is_seen(body, f"{HTML}; charset={charset}" if charset else HTML)


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize("charset", sorted(CHARSETS))
def test_charsets(charset: str) -> None:
    """Each is the name of a codec that decodes ASCII as ASCII."""
    assert resolve_encoding(charset) == charset == codecs.lookup(charset).name
    ascii_text = bytes(range(0x20, 0x7F))
    assert ascii_text.decode(charset).encode() == ascii_text
    content = Content([(b"Content-Type", HTML.encode())], f"<meta charset={charset}>x".encode())
    assert (content.encoding, content.text) == (charset, f"<meta charset={charset}>x")


# Some labels of the Encoding Standard -> the codec.
LABELS = {
    "latin1": "cp1252", "us-ascii": "cp1252", "iso-8859-9": "cp1254", "iso-8859-11": "cp874",
    "gb2312": "gb18030", "gbk": "gb18030", "x-sjis": "cp932", "euc-kr": "cp949",
    "big5": "big5hkscs", "macintosh": "mac-roman", "koi8-u": "koi8-u", "ibm866": "cp866",
    "euc-jp": "euc_jp", "windows-1251": "cp1251", "utf8": "utf-8", "iso-8859-15": "iso8859-15",
}  # fmt: skip


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(("label", "codec"), one_in(3, list(LABELS.items())))
def test_labels(label: str, codec: str) -> None:
    assert (
        Content([(b"Content-Type", HTML.encode())], f"<meta charset={label}>".encode()).encoding
        == codec
    )
    assert Content([(b"Content-Type", f"{HTML}; charset={label}".encode())], b"x").encoding == codec
