"""Items without refused values, field names and URLs, and exports that remove them by the tag."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import comity.policies
from comity.dataset.permissions.apply_terms import apply_terms
from comity.dataset.permissions.terms import Terms
from comity.policies import Agent, Page, Site, Verdict
from comity.policies.elements.redaction import redacted_fields
from comity.policies.elements.rules import MAX_TAG_URLS, ElementRules
from tests.selection import one_in

URL = "https://example.com/news/1.html"
AI = """User-agent: *
  Path: / html
    Element: .q
      Disallow: Train
    Element: .guided
      Guide: Train
"""
HEAD = (
    "<!doctype html><title>The title</title><dl><dt>Free heading<dd>free words"
    "<dt class=q>Secret heading<dd class=q>secret words"
)
BODY = f"{HEAD}<dt>Label<dd class=q>Label<dt class=q>Hidden<dd>more free words</dl>"
SCHEMA = Draft202012Validator(
    json.loads((Path(comity.policies.__file__).parent / "permissions.schema.json").read_text())
)


def page_of(body: str = BODY) -> Page:
    agent = Agent("examplebot", uses=("train",), defaults={"train": Verdict.ALLOW})
    site = Site.from_files("https://example.com", {"/ai.txt": AI.encode()})
    return site.page(
        agent, URL, headers=[(b"Content-Type", b"text/html; charset=utf-8")], body=body.encode()
    )


def rules_of(page: Page) -> ElementRules:
    assert page.element_rules
    return page.element_rules


def redact(page: Page, item: dict[str, Any]) -> dict[str, Any]:
    left = redacted_fields(rules_of(page), item, {}, ["train"], names=item)
    return {
        name: value for name, value in (item | left.changed).items() if name not in left.removed
    }


def export(page: Page, item: dict[str, Any], **later: Any) -> dict[str, Any]:
    """Return the exported item. `later` are fields that pipelines write after the tag."""
    tag = page.tag_of(item, {}, names=item)
    SCHEMA.validate(tag)
    found = apply_terms(
        json.loads(json.dumps(item | {"permissions": tag} | later)), Terms.of(["train"])
    )
    assert found.record is not None, found.cause
    assert "Secret" not in json.dumps(found.record)
    return {name: value for name, value in found.record.items() if name != "permissions"}


NAMES: list[tuple[dict[str, Any], dict[str, Any] | None]] = [
    ({"Secret heading": "free words"}, {}),
    ({"secret heading": "free words"}, {}),  # changed, so it may come from any element
    ({"SECRET HEADING": "free words", "a": "The title"}, {"a": "The title"}),
    ({"Hidden": "more free words"}, {}),
    ({"hidden": "more free words"}, {"hidden": "more free words"}),  # an identifier of the spider
    ({"Label": "The title"}, {"Label": "The title"}),  # it is also outside
    ({"made up": "The title"}, {}),
    ({"made_up": "The title", "made-up": "The title", "@type": "The title"}, None),
    ({"a": {"Secret heading": 1, "Free heading": 2}}, {"a": {}}),
    (
        {"a": [{"Secret heading": 1}, {"Free heading": "free words"}]},
        {"a": [{"Free heading": "free words"}]},
    ),
    ({"a": [[{"b": {"Secret heading": "free words"}}], "free words"]}, {"a": ["free words"]}),
]


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(("item", "left"), one_in(2, NAMES))
def test_names_are_cut_as_values_are(item: dict[str, Any], left: dict[str, Any] | None) -> None:
    page = page_of()
    expected = item if left is None else left
    assert redact(page, item) == expected
    assert export(page, item) == expected


@pytest.mark.requirement("MEET-5")
def test_names_that_a_class_declares_are_its_own() -> None:
    left = redacted_fields(rules_of(page_of()), {"Hidden": "free words"}, {}, ["train"])
    assert (left.changed, left.removed) == ({}, frozenset())


@pytest.mark.requirement("MEET-5")
def test_a_document_stays_of_its_type() -> None:
    page, text = page_of(), BODY
    item = redact(page, {"html": text, "body": text.encode(), "other": text.encode() + b" "})
    assert isinstance(item["html"], str)
    assert isinstance(item["body"], bytes)
    assert item["body"].decode() == item["html"] == page.redacted(["train"]).decode()
    assert item["other"] == b""  # the page does not contain it


# URLs

LINKS = 200
LISTING = "<!doctype html><title>t</title>" + "".join(
    f"<div class={kind}><img src='/{kind}/{number} a.jpg'><a href='/{kind}/{number}'>{number}</a>"
    f"</div>"
    for number in range(LINKS)
    for kind in ("q", "guided", "free")
)


def file(path: str) -> dict[str, str]:
    return {"url": f"https://example.com{path}", "path": f"full{path}"}


@pytest.mark.requirement("MEET-5", "SEC-5")
def test_a_tag_is_as_long_as_its_item() -> None:
    page = page_of(LISTING)
    small = page.tag_of({"url": URL, "image_urls": ["https://example.com/q/7 a.jpg"]}, {})
    assert len(json.dumps(small)) < 3000
    urls = {
        one["selector"]: (one.get("urls", []), one.get("more_urls", False))
        for one in small["elements"]
    }
    assert urls == {".q": (["https://example.com/q/7 a.jpg"], True), ".guided": ([], True)}
    few = page_of(BODY + "<p class=q><a href=/a>b</a><img src=/c>").tag_of({}, {})
    assert few["elements"][0]["urls"] == ["https://example.com/a", "https://example.com/c"]
    assert "more_urls" not in few["elements"][0]
    SCHEMA.validate(small)
    assert len(page.elements[0].urls) == 2 * LINKS > MAX_TAG_URLS


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(
    ("item", "files", "left"),
    [
        # The requested address is the one in the item, with Scrapy's escapes.
        (
            {"image_urls": ["https://example.com/q/7 a.jpg", "https://example.com/free/7 a.jpg"]},
            ["/q/7%20a.jpg", "/free/7%20a.jpg"],
            1,
        ),
        (
            {"image_urls": ["/q/7 a.jpg", "https://example.com/free/8"]},
            ["/q/7%20a.jpg", "/free/8"],
            1,
        ),
        (
            {"deep": [{"urls": ("https://example.com/q/7", "https://example.com/free/7")}]},
            ["/q/7", "/free/7"],
            1,
        ),
        # The item does not contain the requested address.
        ({"n": 1}, ["/q/9", "/q/10%20a.jpg"], 0),
        ({"n": 1}, ["/free/9"], 0),  # it may be from any element
        ({"image_urls": ["https://example.com/guided/3"]}, ["/guided/3"], 1),
    ],
)
def test_stored_files_of_refused_urls_go(item: dict[str, Any], files: list[str], left: int) -> None:
    page = page_of(LISTING)
    for field in ("files", "images"):
        record = export(page, item, **{field: [file(path) for path in files]})
        assert [one["url"].partition(".com/")[2].partition("/")[0] for one in record[field]] == (
            ["guided" if "guided" in files[0] else "free"] * left
        )


@pytest.mark.requirement("MEET-5")
def test_files_of_a_page_with_few_urls_are_told_apart_wherever_they_come_from() -> None:
    page = page_of("<!doctype html><p class=q><img src=/q.jpg></p><img src=/free.jpg>")
    record = export(
        page, {"n": 1}, files=[file("/q.jpg"), file("/free.jpg"), file("/elsewhere.jpg")]
    )
    assert [one["url"][19:] for one in record["files"]] == ["/free.jpg", "/elsewhere.jpg"]


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(
    "attributes",
    [
        "src=/q.jpg",
        "data-src=/q.jpg",
        "data-lazy='q.jpg?w=1'",
        "data-original=' ../q.jpg '",
        "data-srcset='small.jpg 1x, /q.jpg 2x'",
        "background=//example.com/q.jpg",
        "data-src='/q .jpg'",
        "style='background: url( \"/q.jpg\") no-repeat'",
        "data-props='{&quot;src&quot;: &quot;https:\\/\\/example.com\\/q.jpg&quot;}'",
        "onclick=\"show('https://example.com/q.jpg')\"",
    ],
)
def test_files_of_images_that_scripts_load(attributes: str) -> None:
    """Their URLs are in attributes that HTML does not define."""
    page = page_of(
        f"<!doctype html><base href=/dir/><p class=q><b {attributes}></b></p>"
        f"<b data-src=/free.jpg></b>"
    )
    address = (
        "/dir/q.jpg?w=1"
        if "lazy" in attributes
        else "/q%20.jpg"
        if "q ." in attributes
        else "/q.jpg"
    )
    record = export(page, {"n": 1}, images=[file(address), file("/free.jpg")])
    assert [one["url"][19:] for one in record["images"]] == ["/free.jpg"]


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("application/json", '{"q": {"image": "img/q.jpg"}, "free": "img/free.jpg"}'),
        ("application/json", '{"q": ["/img/q.jpg"], "free": "/img/free.jpg"}'),
        (
            "application/rss+xml",
            "<rss><q><url> https://example.com/img/q.jpg </url></q><url>/img/free.jpg</url></rss>",
        ),
        ("application/rss+xml", "<rss><q><m url='img/q.jpg'/></q><m url='img/free.jpg'/></rss>"),
    ],
)
def test_files_of_json_and_xml(media_type: str, body: str) -> None:
    kind = "json" if "json" in media_type else "xml"
    ai = f"User-agent: *\n  Path: / {kind}\n    Element: q\n      Disallow: Train\n"
    site = Site.from_files("https://example.com", {"/ai.txt": ai.encode()})
    agent = Agent("examplebot", uses=("train",), defaults={"train": Verdict.ALLOW})
    page = site.page(
        agent,
        "https://example.com/",
        headers=[(b"Content-Type", media_type.encode())],
        body=body.encode(),
    )
    record = export(page, {"n": 1}, images=[file("/img/q.jpg"), file("/img/free.jpg")])
    assert [one["url"][19:] for one in record["images"]] == ["/img/free.jpg"]


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(
    "urls",
    ["https://cdn.example/q.jpg", ["https://example.com/free.jpg", "https://cdn.example/q.jpg"]],
)
def test_a_file_goes_with_the_text_that_names_it(urls: str | list[str]) -> None:
    """The spider changed the address, so it may come from the element."""
    page = page_of("<!doctype html><p class=q><img src=/q-small.jpg></p><img src=/free.jpg>")
    files = [file("/free.jpg"), {"url": "https://cdn.example/q.jpg", "path": "full/q.jpg"}]
    record = export(page, {"image_urls": urls}, images=files)
    assert record == {
        "image_urls": ["https://example.com/free.jpg"] if isinstance(urls, list) else "",
        "images": files[:1],
    }


@pytest.mark.requirement("MEET-5")
def test_redacted_items_tell_no_refused_urls() -> None:
    page = page_of(LISTING)
    item = {
        "image_urls": [
            "https://example.com/q/7",
            "https://example.com/free/7",
            "https://example.com/guided/7",
        ]
    }
    left = redacted_fields(rules_of(page), item, {}, ["train"])
    assert left.changed == {"image_urls": item["image_urls"][1:]}
    assert "/q/" not in json.dumps(page.tag_with(left.traced))
