"""Rules of ai.txt apply to the type that a document has by its octets, and to its media type."""

from __future__ import annotations

import pytest

from comity.policies import Agent, Page, Site, Verdict
from comity.policies.document.document import Content, file_types
from tests.selection import one_in

URL = "https://example.com/a/1"
HTML = "<!doctype html><html><body><p class=a>free</p><p class=b>refused</p></body></html>"
JSON = '{"a": "free", "b": "refused"}'
NDJSON = '{"a": "free", "b": "refused"}\n{"a": "free too", "b": "refused"}\n'
XML = "<r><a>free</a><b>refused</b></r>"
RSS = '<?xml version="1.0"?><rss><a>free</a><b>refused</b></rss>'
XHTML = (
    '<html xmlns="http://www.w3.org/1999/xhtml"><script src="a"/><p class="a">free</p>'
    '<p class="b">refused</p></html>'
)
BANNER = f"<!-- {'- ' * 3000}-->"  # like the licence of a template
RULES = {"html": ".b", "json": "b", "xml": "b", "": "b"}


def page_of(rule_type: str, element: str, media_type: str, body: str) -> Page:
    ai = f"User-agent: *\n  Path: /a/ {rule_type}\n    Element: {element}\n      Disallow: Train\n"
    site = Site.from_files("https://example.com", {"/ai.txt": ai.encode()})
    headers = [(b"Content-Type", media_type.encode())] if media_type else []
    return site.page(
        Agent("examplebot", uses=("train",), defaults={"train": Verdict.ALLOW}),
        URL,
        headers=headers,
        body=body.encode(),
    )


JSON_TYPES = [
    "application/json",
    "text/plain",
    "text/html",
    "text/javascript",
    "application/octet-stream",
    "application/x-json",
    "",
]
JSON_TYPES += [
    "application/ld+json; charset=utf-8",
    "application/problem+json",
    "text/x-json",
    "image/png",
]
XML_TYPES = [
    "application/xml",
    "text/plain",
    "application/octet-stream",
    "text/rss",
    "application/rss",
    "application/atom+xml",
    "",
]
HTML_TYPES = [
    "text/html",
    "text/plain",
    "application/octet-stream",
    "application/xhtml+xml",
    "application/pdf",
    "",
]
CASES = [
    *(("json", media_type, JSON) for media_type in JSON_TYPES),
    *(
        ("json", media_type, NDJSON)
        for media_type in (
            "application/x-ndjson",
            "application/jsonl",
            "text/plain",
            "application/json",
        )
    ),
    *(("json", "application/json", f"\ufeff \n{JSON}"),),
    *(
        ("xml", media_type, body)
        for media_type in XML_TYPES
        for body in (RSS, XML)
        if media_type or body == RSS
    ),
    ("xml", "text/html", RSS),
    ("html", "application/xml", XHTML),
    ("html", "application/xhtml+xml", XHTML),
    (
        "html",
        "text/html",
        '<?xml version="1.0"?><div><p class="a">free</p><p class="b">refused</p></div>',
    ),
    *(("html", media_type, HTML) for media_type in HTML_TYPES),
    # with any white space and comments before it
    ("json", "text/plain", " \n" * 3000 + JSON),
    ("xml", "text/plain", f'<?xml version="1.0"?>\n{BANNER}<r><a>free</a><b>refused</b></r>'),
    *(("html", media_type, BANNER + HTML) for media_type in HTML_TYPES if media_type),
    ("html", "text/plain", "\n" * 6000 + HTML),
    ("html", "application/octet-stream", f"<?xml version='1.0'?>{BANNER}{HTML}"),
]
# Without a clear media type, browsers and Scrapy decide that it is HTML.
CASES += [
    ("html", media_type, start + "<p class=a>free</p><p class=b>refused</p>")
    for media_type in (
        "application/octet-stream",
        "binary/octet-stream",
        "application/unknown",
        "x-unknown/x",
    )
    for start in (
        "<p>x</p>",
        "<DIV class=c>",
        "<script>1</script>",
        "<meta charset=utf-8>",
        "free<html>",
        "<br><!doctype html>",
    )
]


@pytest.mark.requirement("AIT-4", "AIT-5")
@pytest.mark.parametrize(("file_type", "media_type", "body"), one_in(3, CASES))
def test_a_rule_holds_for_what_the_octets_are(file_type: str, media_type: str, body: str) -> None:
    for rule_type in (file_type, ""):
        page = page_of(rule_type, RULES[file_type], media_type, body)
        assert [one.is_whole for one in page.elements] == [False]
        left = page.redacted(["train"])
        assert b"refused" not in left
        assert left.count(b"free") == body.count("free")


@pytest.mark.requirement("AIT-4", "AIT-13")
@pytest.mark.parametrize(
    ("rule_type", "element", "media_type", "body", "is_whole"),
    [
        ("json", "b", "application/json", HTML, [True]),  # its media type is wrong
        ("json", "b", "application/x-ndjson", "not JSON", [True]),
        ("xml", "b", "application/xml", JSON, [True]),
        ("xml", "b", "text/rss", "<rss><b>", [True]),
        # Browsers show it as a page without such an element.
        ("html", ".b", "text/html", JSON, []),
        ("html", ".b", "text/html", '{"a": "<p class=b>refused"}', [True]),
        ("html", "body", "text/html", JSON, [True]),
        ("html", ".b", "text/html", RSS, []),
        ("html", ".b", "application/json", JSON, []),  # the rule is for another file type
        ("json", "b", "text/html", HTML, []),
        ("xml", "b", "text/plain", "a < b", []),
        ("json", "b", "text/plain", "{b}", []),
        # JSON that only other readers accept, and JSON that no reader accepts
        ("json", "b", "text/plain", '{"a": 1, "b": 1, "b": 2}', [True]),
        (
            "json",
            "b",
            "application/octet-stream",
            '[[{"b": 1, "a": ' + "[" * 400 + "]" * 400 + "}]]",
            [True],
        ),
        ("json", "b", "text/html", '{"b": 1, "b": 2}', [True]),
        ("json", "b", "text/plain", '{"b": 1,}', [True]),
        ("json", "b", "text/plain", '{"a\\"": 1}\n{"b": 1', [True]),
        ("json", "b", "text/plain", "[1] a note {b: 2}", []),
        ("json", "b", "text/plain", "[[wiki]] {x}", []),
        ("html", "p", "text/plain", "<div><p>an example</p></div>", []),
        ("html", "p", "image/png", "<p>x</p>", []),
        ("html", "p", "application/json", "[<p>x</p>", []),
    ],
)
def test_a_rule_holds_for_what_it_is_served_as(
    rule_type: str, element: str, media_type: str, body: str, is_whole: list[bool]
) -> None:
    page = page_of(rule_type, element, media_type, body)
    assert [one.is_whole for one in page.elements] == is_whole
    assert page.redacted(["train"]) == (b"" if is_whole else body.encode())


@pytest.mark.requirement("AIT-4")
@pytest.mark.parametrize(
    ("media_type", "types"),
    [
        ("text/html; charset=x", "html"),
        ("application/xhtml+xml", "html xml"),
        ("application/vnd.wap.xhtml+xml", "html xml"),
        ("image/svg+xml", "xml"),
        ("text/rss", "xml"),
        ("application/x-json", "json"),
        ("application/vnd.api+json", "json"),
        ("application/x-ndjson", "json"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", ""),
        ("text/javascript", ""),
        ("text/plain", ""),
        ("", "html json xml"),
    ],
)
def test_file_types_of_media_types(media_type: str, types: str) -> None:
    assert file_types(media_type) == set(types.split())


@pytest.mark.requirement("AIT-5")
@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("a.b", '{"a": [{"c": 2}, {"c": 4}]}'),
        ("a.0.b", '{"a": [{"c": 2}, {"b": 3, "c": 4}]}'),
        ("a.1", '{"a": [{"b": 1, "c": 2}]}'),
        ("a.2.b", '{"a": [{"b": 1, "c": 2}, {"b": 3, "c": 4}]}'),
        ("/a/b", ""),
        ("a.b, c", ""),
        ("a[0].b", ""),
        ("$.a", ""),
        ("a . b", ""),
    ],
)
def test_names_of_json(name: str, left: str) -> None:
    page = page_of("json", name, "application/json", '{"a": [{"b": 1, "c": 2}, {"b": 3, "c": 4}]}')
    assert page.redacted(["train"]).decode() == left
    site = Site.from_files(
        "https://example.com",
        {"/ai.txt": f"User-agent: *\n  Path: / json\n    Element: {name}\n".encode()},
    )
    found = [finding.rule for finding in site.findings]
    assert ("ait.selector" in found) is (name != "a.b")


@pytest.mark.requirement("SEC-5", "MEET-5")
@pytest.mark.parametrize("depth", [200, 490, 990, 5000])
def test_json_of_any_depth_is_cut_or_refused(depth: int) -> None:
    page = page_of(
        "json", "b", "application/json", '{"b": 1, "a": ' + "[" * depth + "]" * depth + "}"
    )
    assert page.redacted(["train"]) == (
        b'{"a": ' + b"[" * depth + b"]" * depth + b"}" if depth < 300 else b""
    )


SEVERAL = [  # the fields, the kind of the document, and whether it is HTML for any reader
    (["text/plain", "text/html; charset=utf-8"], "text/html", "utf-8", True),
    (["text/html; charset=koi8-r", "text/plain"], "text/plain", "utf-8", True),
    (["application/pdf, text/html"], "text/html", "utf-8", True),
    (["text/plain; charset=koi8-r, TEXT/HTML;charset=cp1251"], "text/html", "cp1251", True),
    (["text/html; charset=utf-16", "text/html; charset=koi8-r"], "text/html", "koi8-r", True),
    (["text/html; charset=koi8-r", "text/html"], "text/html", "koi8-r", True),
    (
        ["text/html; charset=koi8-r", "text/html; x=y", "*/*", "html", ""],
        "text/html",
        "koi8-r",
        True,
    ),
    (['text/plain; x="a, text/html"'], "text/plain", "utf-8", False),
    (["text/html; charset=koi8-r, utf-8"], "text/html", "koi8-r", True),
    (["image/png", "text/plain; charset=koi8-r"], "text/plain", "koi8-r", False),
    (["plain", "text"], "text", "utf-8", True),
    (["", ""], "", "utf-8", True),
]


@pytest.mark.requirement("AIT-4", "MEET-5")
@pytest.mark.parametrize(("fields", "media_type", "encoding", "is_html"), SEVERAL)
def test_of_several_media_types_the_last_one_counts(
    fields: list[str], media_type: str, encoding: str, is_html: bool
) -> None:
    """Fetch section 3.5. A rule applies to the document as any reader reads it."""
    headers = [(b"Content-Type", field.encode()) for field in fields]
    content = Content(headers, b"<p class=b>refused</p><p>free")
    assert (content.media_type, content.encoding) == (media_type, encoding)
    ai = b"User-agent: *\n  Path: / html\n    Element: .b\n      Disallow: Train\n"
    site = Site.from_files("https://example.com", {"/ai.txt": ai})
    agent = Agent("examplebot", uses=("train",), defaults={"train": Verdict.ALLOW})
    left = site.page(agent, URL, headers=headers, body=content.body).redacted(["train"])
    assert (b"refused" not in left, b"free" in left) == (is_html, True)


@pytest.mark.requirement("META-1")
def test_kinds_are_told_without_a_parse_where_they_can_be() -> None:
    content = Content([(b"Content-Type", b"text/html")], HTML.encode())
    assert content.kind == "html"
    assert not {"markup", "html", "json", "xml", "text"} & vars(content).keys()
