"""AutomationPolicyAnnotation in pages (draft-liao-aipref-autoctl-ext section-3.5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from comity.policies import Agent, Finding, Page, Site, Verdict
from comity.policies.answers.qualifiers import Extract
from comity.policies.document.document import Content
from comity.policies.formats.automation.annotation import (
    MAX_ANNOTATIONS,
    MAX_DEPTH,
    MAX_NODES,
    MAX_SCRIPT,
    MAX_SCRIPTS,
    TYPE,
    Annotation,
    annotations_in,
    merge,
)
from comity.policies.formats.automation.directives import Directives, UrlPattern
from comity.policies.formats.automation.grammar import MAX_REPEATED, MAX_VALUES
from tests.selection import one_in

HTML = "text/html; charset=utf-8"


def read(
    page: str | bytes, *, content_type: str = HTML, token: str = "comity"
) -> tuple[tuple[Annotation, ...], tuple[Finding, ...]]:
    body = page.encode() if isinstance(page, str) else page
    return annotations_in(Content([(b"Content-Type", content_type.encode())], body), token)[:2]


def script(text: str, written_type: str = "application/ld+json") -> str:
    return f'<!DOCTYPE html><title>x</title><script type="{written_type}">{text}</script><p>y'


def read_annotation(fields: str) -> tuple[dict[str, list[Any]], list[str]]:
    """Return each stated field's values of a page with one annotation, and rules of findings."""
    (annotation,), findings = read(script(f'{{"@type": "{TYPE}", {fields}}}'))
    return stated_values(annotation.directives), [finding.rule for finding in findings]


def stated_values(directives: Directives) -> dict[str, list[Any]]:
    return {
        field: [one.value for one in values]
        for field, values in directives._asdict().items()
        if values
    }


NOTHING: frozenset[str] = frozenset()


@pytest.mark.requirement("AUTX-11")
def test_example_of_the_draft() -> None:
    """Section 3.5, with the braces that its text lacks. Its final comma is not valid JSON."""
    page = """<!DOCTYPE html>
<html>
<script type="application/ld+json">
{
  "@context": "https://schema.org",
  "@type": "AutomationPolicyAnnotation",
  "allowedAutomations": [],
  "allowedPurposes": [],

}
</script>
"""
    (annotation,), findings = read(page)
    assert stated_values(annotation.directives) == {
        "allowed_purposes": [NOTHING],
        "allowed_automations": [NOTHING],
    }
    assert annotation.line == 4
    fields = (
        '"@type": "AutomationPolicyAnnotation", "allowedAutomations": [], "allowedPurposes": [],'
    )
    assert annotation.text == f'{{ "@context": "https://schema.org", {fields} }}'
    assert not findings


VALUES: list[tuple[str, dict[str, list[Any]]]] = [
    (
        '"allowedPurposes": ["Search", "news"]',
        {"allowed_purposes": [frozenset({"search", "news"})]},
    ),
    ('"allowedPurposes": "search, News"', {"allowed_purposes": [frozenset({"search", "news"})]}),
    ('"allowedPurposes": ["search, news"]', {"allowed_purposes": [frozenset({"search", "news"})]}),
    ('"allowedPurposes": ""', {"allowed_purposes": [NOTHING]}),
    (
        '"allowedPurposes": {"@list": ["search", {"@value": "news"}]}',
        {"allowed_purposes": [frozenset({"search", "news"})]},
    ),
    ('"allowedPurposes": {"@set": []}', {"allowed_purposes": [NOTHING]}),
    (
        '"allowedAutomations": ["webdriver", "headless"]',
        {"allowed_automations": [frozenset({"webdriver", "headless"})]},
    ),
    ('"apiAutomation": "with-key-only"', {"api_automation": ["with-key-only"]}),
    ('"apiAutomation": ["open"]', {"api_automation": ["open"]}),
    (
        '"@nest": {"allowXhr": "none"}, "apiAutomation": "open"',
        {"allow_xhr": ["none"], "api_automation": ["open"]},
    ),
    (
        '"@nest": [{"allowXhr": "none"}, 5, {"@nest": {"apiAutomation": "open"}}]',
        {"allow_xhr": ["none"], "api_automation": ["open"]},
    ),
    ('"allowXhr": " Read-Only "', {"allow_xhr": ["read-only"]}),
    ('"allowXhr": {"@value": "open", "@type": "xsd:string"}', {"allow_xhr": ["open"]}),
    (
        '"disallowFetchFrom": ["/account/*"]',
        {"disallow_fetch_from": [(UrlPattern("", "/account/*"),)]},
    ),
    (
        '"disallowFetchFrom": "/a, https://Example.com/b"',
        {"disallow_fetch_from": [(UrlPattern("", "/a"), UrlPattern("example.com", "/b"))]},
    ),
    ('"disallowFetchFrom": []', {"disallow_fetch_from": [()]}),
    ('"requireHumanInitiatedSession": true', {"require_human_initiated_session": [True]}),
    ('"requireHumanInitiatedSession": false', {"require_human_initiated_session": [False]}),
    ('"requireHumanInitiatedSession": "False"', {"require_human_initiated_session": [False]}),
    (
        '"requireHumanInitiatedSession": {"@value": false}',
        {"require_human_initiated_session": [False]},
    ),
    ('"sessionValidation": "oauth"', {"session_validation": ["oauth"]}),
    ('"sessionTtl": "30m"', {"session_ttl": [timedelta(minutes=30)]}),
    ('"https://schema.org/allowXhr": "open"', {"allow_xhr": ["open"]}),
    ('"schema:allowXhr": "open"', {"allow_xhr": ["open"]}),
    ('"allow-xhr": "open"', {"allow_xhr": ["open"]}),
    ('"Allowed\\u0050urposes": []', {"allowed_purposes": [NOTHING]}),
    ('"inLanguage": "de", "size": 12, "allowedxhr": 1', {}),
]


@pytest.mark.requirement("AUTX-11")
@pytest.mark.parametrize(
    ("fields", "want"), one_in(3, VALUES), ids=[fields for fields, _ in VALUES]
)
def test_fields(fields: str, want: dict[str, list[Any]]) -> None:
    assert read_annotation(fields) == (want, [])


UNREADABLE: list[tuple[str, dict[str, list[Any]]]] = [
    ('"allowedPurposes": null', {"allowed_purposes": [NOTHING]}),
    ('"allowedPurposes": ["search", 5]', {"allowed_purposes": [NOTHING]}),
    ('"allowedPurposes": {"@id": "search"}', {"allowed_purposes": [NOTHING]}),
    ('"allowedPurposes": ["search", "two words"]', {"allowed_purposes": [frozenset({"search"})]}),
    ('"allowedAutomations": 1e999', {"allowed_automations": [NOTHING]}),
    (
        f'"allowedAutomations": {["cdp"] * (MAX_VALUES + 1)}'.replace("'", '"'),
        {"allowed_automations": [NOTHING]},
    ),
    ('"apiAutomation": "yes"', {"api_automation": ["none"]}),
    ('"apiAutomation": []', {"api_automation": ["none"]}),
    ('"apiAutomation": ["open", "open"]', {"api_automation": ["none"]}),
    ('"allowXhr": true', {"allow_xhr": ["none"]}),
    ('"disallowFetchFrom": 5', {"disallow_fetch_from": [(UrlPattern("*", "/"),)]}),
    ('"requireHumanInitiatedSession": "no"', {"require_human_initiated_session": [True]}),
    ('"requireHumanInitiatedSession": 0', {"require_human_initiated_session": [True]}),
    ('"sessionValidation": "cookies"', {"session_validation": [""]}),
    ('"sessionTtl": 3600', {"session_ttl": [None]}),
    ('"sessionTtl": NaN', {"session_ttl": [None]}),
    ('"sessionTtl": "25"', {"session_ttl": [None]}),
    ('"sessionTtl": "169h"', {"session_ttl": [None]}),
    (f'"sessionTtl": {"9" * 5000}', {"session_ttl": [None]}),
]


@pytest.mark.requirement("AUTX-11", "AUTX-14", "AUTX-10")
@pytest.mark.parametrize(
    ("fields", "want"), one_in(2, UNREADABLE), ids=[fields[:50] for fields, _ in UNREADABLE]
)
def test_what_cannot_be_read_has_its_most_restrictive_value(
    fields: str, want: dict[str, list[Any]]
) -> None:
    assert read_annotation(fields) == (want, ["automation.value"])


@pytest.mark.requirement("AUTX-11")
@pytest.mark.parametrize(
    "field",
    ["allowedMethods", "requestLimit", "concurrentLimit", "scope", "host", "concurrent-limit"],
)
def test_what_has_no_place_in_an_annotation(field: str) -> None:
    assert read_annotation(f'"{field}": "0", "allowXhr": "open"') == (
        {"allow_xhr": ["open"]},
        ["automation.annotation"],
    )


@pytest.mark.requirement("AUTX-11")
def test_names_that_stand_twice_hold_both() -> None:
    want = {"allow_xhr": ["open", "none"]}
    assert read_annotation('"allowXhr": "open", "schema:allowXhr": "none"') == (
        want,
        ["automation.repeated"],
    )
    assert read_annotation('"allowXhr": "open", "allowXhr": "none"') == (
        want,
        ["automation.repeated"],
    )
    values, _ = read_annotation(", ".join(['"allowXhr": "open"'] * (MAX_REPEATED + 2)))
    assert values == {"allow_xhr": ["open"] * MAX_REPEATED + ["none"]}


@pytest.mark.requirement("AUTX-11")
@pytest.mark.parametrize(
    ("user_agent", "binds"),
    [
        ('"comity"', True),
        ('"Comity/1.0"', True),
        ('["otherbot", "COMITY"]', True),
        ('"otherbot,\u200b\u00a0comity"', True),
        ('"otherbot, *"', True),
        ('"otherbot"', False),
        ('"comitybot"', False),
        ("[]", False),
    ],
)
def test_an_annotation_for_others_does_not_bind(user_agent: str, binds: bool) -> None:
    page = script(
        f'{{"@type": "{TYPE}", "userAgent": {user_agent}, "allowedAutomations": ["cdp"]}}'
    )
    found, findings = read(page)
    assert (len(found) == 1, findings) == (binds, ())


@pytest.mark.requirement("AUTX-11")
def test_a_user_agent_that_cannot_be_read_is_everybody() -> None:
    assert read_annotation('"userAgent": 5, "allowXhr": "none"') == (
        {"allow_xhr": ["none"]},
        ["automation.agent"],
    )


NODE = f'{{"@type": "{TYPE}", "allowXhr": "none"}}'
NODES = [
    NODE,
    f"[1, [{NODE}]]",
    f'{{"@context": {{}}, "@graph": [{{"@type": "WebPage"}}, {NODE}]}}',
    f'{{"@type": "ImageObject", "policy": {{"a": [{NODE}]}}}}',
    f'{{"@type": ["WebPage", "{TYPE}"], "allowXhr": "none"}}',
    f'{{"@type": "https://schema.org/{TYPE}", "allowXhr": "none"}}',
    f'{{"@type": "https://example.com/terms#{TYPE}", "allowXhr": "none"}}',
    f'{{"@type": "schema:{TYPE}", "allowXhr": "none"}}',
    f'{{"type": "{TYPE}", "allowXhr": "none"}}',
    f'{{"@type": " {TYPE} ", "@type": "Thing", "allowXhr": "none"}}',
    NODE.replace("Automation", "\\u0041utomation"),
    NODE.replace("Policy", "\\u0050ol\\u0069c\\u0079"),
    NODE.replace('"@type"', '"\\u0040type"'),
    f"[{NODE},]",
    f"<![CDATA[ {NODE} ]]>",
    f"\ufeff{NODE}\ufeff",
    f'{{"text": "a\nb", "x": {NODE}}}',
    f'{{"text": ",] ,}} [[{{ ]]> \\" \\\\", "x": {NODE}}}',
    f'{{"n": {"9" * 5000}, "o": [NaN, -Infinity], "s": "\\ud800", "nul": "\\u0000", "x": {NODE}}}',
]


@pytest.mark.requirement("AUTX-11", "AUTX-12")
@pytest.mark.parametrize("text", one_in(2, NODES))
def test_where_annotations_are_found(text: str) -> None:
    (annotation,), findings = read(script(text))
    assert stated_values(annotation.directives) == {"allow_xhr": ["none"]}
    assert not findings


@pytest.mark.requirement("AUTX-11")
@pytest.mark.parametrize(
    "text",
    [
        '{"@type": "WebPage", "name": "AutomationPolicyAnnotation", "allowXhr": "none"}',
        f'{{"@type": "X{TYPE}", "allowXhr": "none"}}',
        f'{{"{TYPE}": {{"allowXhr": "none"}}}}',
        f'{{"@type": {{"@id": "{TYPE}"}}, "allowXhr": "none"}}',
        f'"{TYPE}"',
        "",
    ],
)
def test_what_is_no_annotation(text: str) -> None:
    assert read(script(text)) == ((), ())


@pytest.mark.requirement("AUTX-11")
@pytest.mark.parametrize(
    ("page", "content_type"),
    [
        (script(NODE, "APPLICATION/LD+JSON"), HTML),
        (script(NODE, " application/ld+json ; charset=utf-8"), HTML),
        (script(NODE, "application/ld&#43;json"), HTML),
        (script(NODE).replace("script", "SCRIPT"), HTML),
        (script(NODE), "application/xhtml+xml"),
        (script(NODE), ""),
        (script(NODE).encode("utf-16"), "text/html"),
        (script(NODE).encode("utf-16-le"), "text/html; charset=utf-16le"),
        (script(NODE), "text/html; charset=hex"),
        (script(NODE), "text/html; charset=unicode-escape"),
        (script(NODE), "text/html; charset=punycode"),
    ],
)
def test_where_scripts_are_found(page: str | bytes, content_type: str) -> None:
    (annotation,), _ = read(page, content_type=content_type)
    assert annotation.text == NODE


@pytest.mark.requirement("AUTX-11")
@pytest.mark.parametrize(
    ("page", "content_type"),
    [
        (script(NODE, "application/json"), HTML),
        (f"<script>{NODE}</script>", HTML),
        (f"<!-- {script(NODE)} -->", HTML),
        (f"<p>{TYPE}</p>", HTML),
        (f"# {script(NODE)}", "text/plain"),
        (f"%PDF {script(NODE)}", "application/pdf"),
        (NODE, "application/ld+json"),
    ],
)
def test_where_scripts_are_none(page: str, content_type: str) -> None:
    assert read(page, content_type=content_type) == ((), ())


@pytest.mark.requirement("AUTX-11")
@pytest.mark.parametrize("letter", ["&#65;", "&#x41;", "&#0065;"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_character_reference_hides_no_type(letter: str, encoding: str) -> None:
    node = NODE.replace("Automation", f"{letter}utomation")
    hidden = f"<script type='application/ld+json'>{node}</script>"
    page = f"<html xmlns='http://www.w3.org/1999/xhtml'><head><title>x</title>{hidden}</head><body/></html>"
    (annotation,), _ = read(page.encode(encoding), content_type="application/xhtml+xml")
    assert annotation.text == NODE
    assert len(read(f"<!doctype html><svg>{hidden}</svg>".encode(encoding))[0]) == 1
    # in a script of HTML it is not a reference
    assert read(f"<!doctype html>{hidden}".encode(encoding)) == (
        (),
        (),
    )


@pytest.mark.requirement("AUTX-11")
@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/octet-stream", "application/xhtml+xml", ""]
)
def test_a_page_is_one_by_its_octets_too(content_type: str) -> None:
    assert len(read(f"<!doctype html><p>{script(NODE)}", content_type=content_type)[0]) == 1


@pytest.mark.requirement("AUTX-11")
@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
def test_the_place_of_each_annotation(eol: str) -> None:
    lines = [
        "",
        "<html><script",
        " type='application/ld+json'",
        "> [",
        NODE,
        f', {{"@type": "{TYPE}",  "allowXhr": "open"}}, {NODE}',
        "]</script>",
        "<!-- \u2028 -->",
        f"<script type=application/ld+json>{NODE}</script>",
    ]
    found, _ = read(eol.join(lines))
    assert [annotation.line for annotation in found] == [5, 6, 6, 9]
    assert [annotation.text for annotation in found] == [
        NODE,
        NODE.replace("none", "open"),
        NODE,
        NODE,
    ]
    places = [
        (one.line, one.offset) for annotation in found for one in annotation.directives.allow_xhr
    ]
    assert places == [(5, 0), (6, 1), (6, 2), (9, 3)]
    assert [(one.line, one.offset) for one in merge(found).allow_xhr] == places


@pytest.mark.requirement("AUTX-12", "SEC-1")
@pytest.mark.parametrize(
    "charset",
    [
        "hex",
        "idna",
        "punycode",
        "undefined",
        "unicode-escape",
        "raw_unicode_escape",
        "rot13",
        "utf-7",
    ],
)
def test_codecs_that_are_no_charsets(charset: str) -> None:
    """Python has them, browsers do not.

    Some raise, some make text that cannot be encoded, one takes a minute.
    """
    page = f"<meta charset={charset}>{script(NODE)}\\ud800 +2AA-"
    for content_type in ("text/html", f"text/html; charset={charset}"):
        content = Content([(b"Content-Type", content_type.encode())], page.encode())
        assert content.text == page
        assert len(annotations_in(content, "comity")[0]) == 1


@pytest.mark.requirement("AUTX-12", "SEC-1")
@pytest.mark.parametrize("attribute", ["\x1b", "\x85=1", "\ufffe", "a:b:c", "xmlns:a=b"])
def test_attributes_with_names_that_are_none(attribute: str) -> None:
    page = (
        script(NODE).replace("<script ", f"<script {attribute} ")
        + f"<meta name=k content=v {attribute}>"
    )
    content = Content([(b"Content-Type", HTML.encode())], page.encode())
    assert len(annotations_in(content, "comity")[0]) == 1
    assert content.extracted(Extract(kind="meta", name="k")) == "v"


@pytest.mark.requirement("AUTX-11", "SEC-4")
def test_the_text_is_fit_to_show() -> None:
    (annotation,), (finding,) = read(
        script(f'{{"@type": "{TYPE}", "allowXhr": "\u202e\x1b[2J", "x": "{"y" * 1000}"}}')
    )
    for shown in (annotation.text, finding.message):
        assert shown.isprintable()
        assert len(shown) < 400


def nest(depth: int) -> str:
    return "[" * (depth - 1) + NODE + "]" * (depth - 1)


TOO_MUCH = [
    f'{{"@type": "{TYPE}"',
    f'{{"@type": "{TYPE}"}} x',
    f"{{'@type': '{TYPE}'}}",
    f'{{"@type": "{TYPE}"]',
    f'}}]{{"@type": "{TYPE}", "a": [',
    f'"{TYPE}',
    nest(MAX_DEPTH + 1),
    "[" * 10000 + TYPE,
    f"[{NODE}, {'[],' * MAX_NODES} 1]",
    f'[{NODE}, "{"x" * MAX_SCRIPT}"]',
]


@pytest.mark.requirement("AUTX-12", "SEC-1")
@pytest.mark.parametrize("text", one_in(2, TOO_MUCH), ids=[text[:40] for text in TOO_MUCH])
def test_broken_and_boundless_json_takes_nothing_from_what_other_scripts_state(text: str) -> None:
    found, findings = read("\n\n" + script(text) + script(NODE))
    assert [annotation.text for annotation in found] == [NODE]
    assert [(finding.rule, finding.line) for finding in findings] == [("automation.json-ld", 3)]


USER = Agent("comity", uses=("train",), defaults={"train": Verdict.ALLOW, "index": Verdict.ALLOW})


def page_of(body: str, content_type: str = HTML, files: Mapping[str, bytes] = {}) -> Page:
    site = Site.from_files("https://example.com", {"/robots.txt": b"", **files})
    headers = [(b"Content-Type", content_type.encode())]
    return site.page(USER, "https://example.com/a", headers=headers, body=body.encode())


@pytest.mark.requirement("AUTX-12")
@pytest.mark.parametrize("text", TOO_MUCH, ids=[text[:40] for text in TOO_MUCH])
@pytest.mark.parametrize(
    ("before", "after"), [("", ""), (NODE, ""), ("", NODE), ("{broken", '{"@type": "Thing"}')]
)
def test_broken_and_boundless_json_that_names_the_type_refuses_every_use(
    text: str, before: str, after: str
) -> None:
    """A good script beside it changes nothing."""
    page = page_of(f"\n\n{script(before)}\n{script(text)}\n{script(after)}")
    for use in ("train", "index", "preserve", "present", "follow", "anything"):
        decision = page.uses[use]
        assert (decision.verdict, decision.stated) == (Verdict.DENY, True)
        assert decision.reasons[0].rule == "automation.json-ld"
    source = page.uses["train"].reasons[0].source
    assert (source.url, source.part, source.line) == (page.url, "JSON-LD", 4)
    assert source.text.startswith(text[:3])
    assert page.uses["crawl"].verdict is Verdict.ALLOW


@pytest.mark.requirement("AUTX-12")
@pytest.mark.parametrize(
    ("page", "is_refused"),
    [
        (
            script("{broken") + script(f'{{"@type": "{TYPE}"}}') + script('{"\\u0041": broken'),
            False,
        ),  # others broke those
        (script('{"@type": "\\u0041utomationPolicyAnnotation"'), True),
        (script(f'{{"@type": "{TYPE}"', "application/LD+JSON; charset=utf-8"), True),
        (script(f'{{"@type": "{TYPE}"', "application/json"), False),  # it is no JSON-LD
        (script(f'{{"@type": "{TYPE}"', ""), False),
        (
            script(f'{{"@type": "{TYPE}", "userAgent": "otherbot"'),
            True,
        ),  # a broken script may bind any agent
        (f"<p>{TYPE} {{</p>" + script("{broken"), False),
        (script(NODE) * (MAX_SCRIPTS + 1), True),
        (script(f"[{', '.join([NODE] * (MAX_ANNOTATIONS + 1))}]"), True),
        # JSON-LD does not know the type in another case. It is probably meant, so its permissions
        # do not count.
        (script('{"@type": "automationPolicyAnnotation", "allowedPurposes": []}'), True),
        (script('{"@type": ["Thing", "https://schema.org/AUTOMATIONPOLICYANNOTATION"]}'), True),
        (script('{"name": "automationpolicyannotation"}'), False),
        (script(f'{{"articleBody": "{TYPE} {{"}}'), False),
    ],
)
def test_which_scripts_refuse(page: str, is_refused: bool) -> None:
    decision = page_of(page).uses["train"]
    assert (decision.verdict is Verdict.DENY) is is_refused
    assert decision.stated is is_refused
    assert (decision.reasons[0].rule == "automation.json-ld") is is_refused


@pytest.mark.requirement("AUTX-12")
def test_findings_that_are_not_listed_hide_no_broken_script() -> None:
    odd = f'{{"@type": "{TYPE}", "sessionTtl": "x"}}'
    many = script(f"[{', '.join([odd] * MAX_ANNOTATIONS)}]")
    page = page_of(many + script(f'{{"@type": "{TYPE}"'))
    assert "automation.json-ld" in [reason.rule for reason in page.uses["train"].reasons]


@pytest.mark.requirement("AUTX-12")
@pytest.mark.parametrize(
    "content_type", [HTML, "application/xhtml+xml", "text/html; charset=utf-16"]
)
def test_broken_scripts_of_other_pages(content_type: str) -> None:
    text = (
        '<html xmlns="http://www.w3.org/1999/xhtml"><script '
        f'type="application/ld+json">{{"@type": "{TYPE}"</script></html>'
    )
    octets = text.encode("utf-16" if "utf-16" in content_type else "utf-8")
    site = Site.from_files("https://example.com", {"/robots.txt": b""})
    headers = [(b"Content-Type", content_type.encode())]
    assert (
        site.page(USER, "https://example.com/a", headers=headers, body=octets).uses["train"].verdict
        is Verdict.DENY
    )


@pytest.mark.requirement("AUTX-12", "SEC-1")
def test_up_to_the_limits_all_is_read() -> None:
    assert len(read(script(nest(MAX_DEPTH)))[0]) == 1
    assert len(read(script(f'[{NODE}, "{"x" * (MAX_SCRIPT - len(NODE) - 6)}"]'))[0]) == 1
    assert len(read(script(f"[{', '.join([NODE] * MAX_ANNOTATIONS)}]"))[0]) == MAX_ANNOTATIONS
    assert len(read(script(NODE) * MAX_SCRIPTS)[0]) == MAX_SCRIPTS


@pytest.mark.requirement("AUTX-12", "SEC-1")
@pytest.mark.parametrize(
    ("page", "number"),
    [
        (script(f"[{', '.join([NODE] * (MAX_ANNOTATIONS + 1))}]"), MAX_ANNOTATIONS),
        (script(NODE) * (MAX_SCRIPTS + 1), MAX_SCRIPTS),
    ],
)
def test_of_too_many_the_first_are_read(page: str, number: int) -> None:
    found, findings = read(page)
    assert len(found) == number
    assert [finding.rule for finding in findings] == ["automation.json-ld"]


@pytest.mark.requirement("AUTX-12")
def test_broken_json_of_others_is_none_of_ours() -> None:
    assert (
        read(script("{broken") + script(f'{{"@type": "{TYPE}"}}') + script('{"\\u0041": broken'))[1]
        == ()
    )


@pytest.mark.requirement("AUTX-11")
def test_all_annotations_hold_in_any_order() -> None:
    nodes = [
        f'{{"@type": "{TYPE}", "allowedPurposes": ["a", "b"], "allowXhr": "open"}}',
        f'{{"@type": "{TYPE}", "allowedPurposes": ["b", "c"]}}',
        f'{{"@type": "{TYPE}", "allowXhr": "none", "sessionTtl": "1h"}}',
    ]
    together = []
    for ordered in permutations(nodes):
        found, _ = read(script(f"[{', '.join(ordered)}]"))
        together.append(
            {field: set(values) for field, values in stated_values(merge(found)).items()}
        )
    assert together[0] == {
        "allowed_purposes": {frozenset("ab"), frozenset("bc")},
        "allow_xhr": {"open", "none"},
        "session_ttl": {timedelta(hours=1)},
    }
    assert all(one == together[0] for one in together)
    assert merge(()) == Directives()


PIECES = [
    TYPE,
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "\\",
    "\\u0041",
    "\\ud800",
    '"@type":',
    '"allowedPurposes":',
    '"sessionTtl":',
]
PIECES += [
    "<![CDATA[",
    "]]>",
    "</script>",
    "<script type=application/ld+json>",
    "<!--",
    "-->",
    "NaN",
    "9" * 5000,
    "\r",
    "\n",
    "\0",
    " ",
]
PIECES += [
    '"@value":',
    '"@list":',
    "true",
    "null",
    NODE,
    '"userAgent":',
    '"disallowFetchFrom":',
    '"http://\u00e9"',
]
OCTETS = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=30).map(
    lambda parts: "".join(parts).encode("utf-8", "replace")
)
TYPES = st.sampled_from(
    [
        "",
        HTML,
        "application/xhtml+xml",
        "text/html; charset=utf-16",
        "text/html; charset=utf-7",
        "text/plain",
    ]
)


@pytest.mark.requirement("AUTX-12", "SEC-1")
@given(OCTETS, OCTETS | st.binary(), OCTETS | st.binary(), TYPES)
@example(b"", b"<script type>", b"", HTML)
def test_no_octets_make_it_raise(
    text: bytes, before: bytes, after: bytes, content_type: str
) -> None:
    page = before + b'<script type="application/ld+json">' + text + b"</script>" + after
    found, _ = read(page, content_type=content_type)
    for annotation in found:
        assert isinstance(annotation.directives, Directives)
        assert annotation.text.isprintable()
        assert annotation.line <= 1 + page.count(b"\n") + page.count(b"\r")


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["@value", "@list", "@type", "type", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@pytest.mark.requirement("AUTX-12", "AUTX-14")
@given(
    st.sampled_from(
        [
            "allowedPurposes",
            "allowedAutomations",
            "apiAutomation",
            "allowXhr",
            "disallowFetchFrom",
            "sessionTtl",
        ]
    ),
    json_values,
)
def test_a_known_field_always_states_something(field: str, value: Any) -> None:
    found, _ = read(script(json.dumps({"@type": TYPE, field: value})))
    assert len(stated_values(found[0].directives)) == 1
