"""ACAP permissions of a site and its pages: their time, their form, and required resources."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from comity.policies import (
    Agent,
    Arrangement,
    Decision,
    Fetched,
    Page,
    Reason,
    Site,
    Source,
    UseDecision,
    Verdict,
    snippet,
)
from comity.policies.answers.qualifiers import Extract, Resource
from comity.policies.formats.acap.resolution import MAX_REASONS
from comity.policies.formats.acap.usages import USAGES
from comity.policies.tag import join_tags
from tests.selection import one_in

ORIGIN = "https://example.com"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
COMITY = Agent("comity")
DAY = timedelta(days=1)


def agent_with(*features: str, host: str = "example.com") -> Agent:
    return Agent("comity", arrangements=(Arrangement(host, frozenset(features)),))


def site(text: str, **others: bytes | Fetched) -> Site:
    """Return a site. `others` maps the name of a file beside robots.txt to the response for it."""
    return Site.from_files(
        ORIGIN,
        {"/robots.txt": text.encode(), **{f"/{name}.txt": file for name, file in others.items()}},
    )


def record(*fields: str) -> str:
    return "\n".join(("ACAP-crawler: *", *fields, ""))


def page(text: str, agent: Agent = COMITY, path: str = "/a", **given: Any) -> Page:
    return site(text).page(agent, ORIGIN + path, **({"now": NOW} | given))


def why(decision: UseDecision) -> tuple[str, str, int]:
    """Return verdict, rule and line of the first reason."""
    return decision.verdict.value, decision.reasons[0].rule, decision.reasons[0].source.line


def crawl(found: Site, agent: Agent = COMITY, path: str = "/a") -> tuple[str, str, int]:
    decision = found.access(agent, ORIGIN + path, now=NOW)
    return decision.verdict.value, decision.reasons[0].rule, decision.reasons[0].source.line


def acap_findings(found: Site) -> list[tuple[str, int]]:
    return [
        (finding.rule, finding.line)
        for finding in found.findings
        if finding.rule.startswith("acap.")
    ]


# Time limits


@pytest.mark.requirement("ACAP-32")
@pytest.mark.parametrize("use", ["index", "preserve", "present", "present-oldcopy"])
def test_until_it_is_fetched_again(use: str) -> None:
    decision = page(
        record(f"ACAP-allow-{use}: / time-limit=until-recrawled"),
        first_seen={use: NOW - 1000 * DAY},
    ).uses[use]
    assert why(decision) == ("allow", "acap.allow", 2)
    assert (decision.until, decision.until_recrawled) == (None, True)


@pytest.mark.requirement("ACAP-32")
@pytest.mark.parametrize(
    ("now", "rule"),
    [
        ("2026-11-20T00:00:00", "acap.allow"),
        ("2026-11-30T00:00:00", "acap.allow"),
        ("2026-11-30T23:59:59", "acap.allow"),
        ("2026-12-01T00:00:00", "acap.expired"),
        ("2027-11-20T00:00:00", "acap.expired"),
    ],
)
@pytest.mark.parametrize("use", ["index", "preserve", "present"])
def test_until_the_end_of_a_day(use: str, now: str, rule: str) -> None:
    text = record(f"ACAP-allow-{use}: / time-limit=until-2026-11-30")
    decision = page(text, now=datetime.fromisoformat(now).replace(tzinfo=UTC)).uses[use]
    assert why(decision) == ("allow" if rule == "acap.allow" else "deny", rule, 2)
    assert decision.stated
    if rule == "acap.allow":
        assert decision.until == datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC)


@pytest.mark.requirement("ACAP-32")
@pytest.mark.parametrize(
    ("first_seen", "until"),
    [
        ({}, NOW + 3 * DAY),
        ({"index": NOW}, NOW + 3 * DAY),
        ({"index": NOW - 2 * DAY}, NOW + DAY),
        ({"index": NOW - 3 * DAY - timedelta(seconds=1)}, None),
        ({"index": NOW - 400 * DAY}, None),
        ({"preserve": NOW - 400 * DAY}, NOW + 3 * DAY),  # taken for another use
    ],
)
def test_days_from_the_first_taking(
    first_seen: dict[str, datetime], until: datetime | None
) -> None:
    found = page(record("ACAP-allow-index: / time-limit=3-days"), first_seen=first_seen)
    decision = found.uses["index"]
    assert decision.until == until
    assert why(decision) == (("allow", "acap.allow", 2) if until else ("deny", "acap.expired", 2))
    assert found.dated == ("index",)  # at any time before: else the period would begin again


@pytest.mark.requirement("ACAP-29", "ACAP-32")
def test_days_count_for_each_use_that_one_permission_covers() -> None:
    seen = {"present": NOW - 4 * DAY, "present-snippet": NOW - DAY}
    uses = page(record("ACAP-allow-present: / time-limit=3-days"), first_seen=seen).uses
    assert why(uses["present"]) == ("deny", "acap.expired", 2)
    assert uses["present-snippet"].until == NOW + 2 * DAY
    assert uses["present-link"].until == NOW + 3 * DAY


@pytest.mark.requirement("ACAP-32")
def test_a_number_of_days_past_all_calendars() -> None:
    decision = page(record("ACAP-allow-index: / time-limit=999999999-days")).uses["index"]
    assert why(decision) == ("allow", "acap.allow", 2)
    json.dumps(page(record("ACAP-allow-index: / time-limit=999999999-days")).permissions)


@pytest.mark.requirement("ACAP-32")
def test_the_uses_whose_first_taking_counts() -> None:
    agent = Agent("comity", uses=("index", "preserve", "present-snippet", "train"))
    text = record(
        "ACAP-allow-index: / time-limit=3-days",
        "ACAP-disallow-preserve: /",
        "ACAP-allow-present: /",
        "ACAP-allow-crawl: /",
    )
    dated = page(text, agent).dated
    assert {"index", "present-snippet"} <= set(dated)
    assert not {"crawl", "follow", "preserve", "train", "other"} & set(dated)


# Resources that must be used or included


HTML = (
    b'<html><head><meta name="Abstract" content="In short"><meta name="other" content="No"></head>'
    b'<body>\n<p id="summary">By <b>id</b></p><p class="lead first">By class</p>'
    b'<p class="lead">Second</p><div id="Leads" class="leader">x</div>\n</body></html>'
)


@pytest.mark.requirement("ACAP-33")
@pytest.mark.parametrize("use", ["index", "present", "present-snippet"])
@pytest.mark.parametrize(
    ("locator", "extract", "content"),
    [
        ("id:summary", Extract(kind="id", name="summary"), '<p id="summary">By <b>id</b></p>'),
        ("class:lead", Extract(kind="class", name="lead"), '<p class="lead first">By class</p>'),
        ("meta:abstract", Extract(kind="meta", name="abstract"), "In short"),
        ("META:ABSTRACT", Extract(kind="meta", name="ABSTRACT"), "In short"),
        ("id:nothing", None, ""),
        ("class:lea", None, ""),
        ("meta:summary", None, ""),
    ],
)
def test_an_element_of_the_page_instead_of_the_page(
    use: str, locator: str, extract: Extract | None, content: str
) -> None:
    text = record(f"ACAP-allow-{use}: / must-use-resource=the-acap:extract:{locator}")
    decision = page(text, agent_with("must-use-resource"), body=HTML).uses[use]
    if extract:
        assert why(decision) == ("allow", "acap.allow", 2)
        assert decision.must_use == (Resource(extract=extract, content=content),)
    else:
        assert why(decision) == ("deny", "acap.resource", 2)


@pytest.mark.requirement("ACAP-33")
@pytest.mark.parametrize(
    "media_type", [b"application/pdf", b"text/plain; charset=utf-8", b"image/svg+xml"]
)
def test_what_is_no_html_has_no_elements(media_type: bytes) -> None:
    text = record("ACAP-allow-index: / must-use-resource=the-acap:extract:id:summary")
    given: dict[str, Any] = {"body": HTML, "headers": ((b"Content-Type", media_type),)}
    assert why(page(text, agent_with("must-use-resource"), **given).uses["index"]) == (
        "deny",
        "acap.resource",
        2,
    )


@pytest.mark.requirement("ACAP-33", "ACAP-36")
@pytest.mark.parametrize(
    ("field", "use", "feature"),
    [
        ("ACAP-allow-index: / must-use-resource=/terms.txt", "index", "must-use-resource"),
        (
            "ACAP-allow-index: / must-use-resource=the-acap:extract:id:summary",
            "index",
            "must-use-resource",
        ),
        (
            "ACAP-allow-present: / must-include-resource=/terms.txt",
            "present",
            "must-include-resource",
        ),
        (
            "ACAP-allow-present: / must-include-resource=the-acap:credit:id:summary",
            "present-link",
            "must-include-resource",
        ),
    ],
)
def test_by_arrangement_with_this_host_only(field: str, use: str, feature: str) -> None:
    other = "must-include-resource" if feature == "must-use-resource" else "must-use-resource"
    given: dict[str, Any] = {
        "body": HTML,
        "resources": {f"{ORIGIN}/terms.txt": Fetched(status=200, body=b"terms")},
    }
    for agent in (
        COMITY,
        agent_with(other),
        agent_with(feature, host="example.org"),
        agent_with(feature, host="example.com:8080"),
    ):
        found = page(record(field), agent, **given)
        assert why(found.uses[use]) == ("deny", "acap.no-arrangement", 2)
        assert found.uses[use].stated
        assert found.required_resources == ()
    assert why(page(record(field), agent_with(feature), **given).uses[use]) == (
        "allow",
        "acap.allow",
        2,
    )


CREDIT = f"{ORIGIN}/credit.txt"


@pytest.mark.requirement("ACAP-33", "ACAP-36")
@pytest.mark.parametrize(
    "fetched",
    [
        None,
        Fetched(status=0, error="robots.disallow at https://example.com/robots.txt:2"),
        Fetched(status=403, body=b"no"),
        Fetched(status=404, body=b"no"),
        Fetched(status=500, body=b"no"),
        Fetched(status=304),
        Fetched(status=200, body=b"By", error="truncated"),
    ],
    ids=["absent", "refused", "403", "404", "500", "304", "truncated"],
)
@pytest.mark.parametrize(
    "qualifier",
    ["must-use-resource=/credit.txt", "must-include-resource=the-acap:credit:/credit.txt"],
)
def test_without_the_resource_there_is_no_permission(
    qualifier: str, fetched: Fetched | None
) -> None:
    agent = agent_with("must-use-resource", "must-include-resource")
    found = page(
        record(f"ACAP-allow-present: / {qualifier}"),
        agent,
        resources={CREDIT: fetched} if fetched else {},
    )
    assert why(found.uses["present"]) == ("deny", "acap.resource", 2)
    assert why(found.uses["present-snippet"]) == ("deny", "acap.resource", 2)
    assert found.required_resources == (CREDIT,)


@pytest.mark.requirement("ACAP-36")
@pytest.mark.parametrize(
    ("value", "resource"),
    [
        ("/credit.txt", Resource(uri=CREDIT, content="By A.")),
        ("credit.txt", Resource(uri=CREDIT, content="By A.")),
        ("the-acap:credit:/credit.txt", Resource(role="credit", uri=CREDIT, content="By A.")),
        ("THE-ACAP:LINK:/credit.txt", Resource(role="link", uri=CREDIT, content="By A.")),
        (
            "the-acap:link:https://terms.example/all",
            Resource(role="link", uri="https://terms.example/all", content="All terms"),
        ),
        (
            "the-acap:credit:meta:abstract",
            Resource(
                role="credit", extract=Extract(kind="meta", name="abstract"), content="In short"
            ),
        ),
        (
            "the-acap:link:class:lead",
            Resource(
                role="link",
                extract=Extract(kind="class", name="lead"),
                content='<p class="lead first">By class</p>',
            ),
        ),
    ],
)
def test_what_has_to_be_included(value: str, resource: Resource) -> None:
    text = (b"content-type", b"text/plain; charset=utf-8")
    resources = {
        CREDIT: Fetched(status=200, headers=(text,), body=b"By A."),
        "https://terms.example/all": Fetched(status=200, headers=(text,), body=b"All terms"),
    }
    agent = agent_with("must-include-resource")
    found = page(
        record(f"ACAP-allow-present: / must-include-resource={value}"),
        agent,
        resources=resources,
        body=HTML,
    )
    assert why(found.uses["present"]) == ("allow", "acap.allow", 2)
    assert found.uses["present"].must_include == (resource,)
    assert found.required_resources == ((resource.uri,) if resource.uri else ())


@pytest.mark.requirement("ACAP-33", "ACAP-36")
def test_only_what_decides_wants_a_resource() -> None:
    text = record(
        "ACAP-allow-index: / must-use-resource=/one.txt",
        "ACAP-allow-index: /a/ must-use-resource=/two.txt",
        "ACAP-allow-present: /a/ must-include-resource=/three.txt",
        "ACAP-disallow-present: /a/b",
    )
    agent = agent_with("must-use-resource", "must-include-resource")
    assert page(text, agent, "/a/b").required_resources == (f"{ORIGIN}/two.txt",)
    assert page(text, agent, "/a/c").required_resources == (
        f"{ORIGIN}/two.txt",
        f"{ORIGIN}/three.txt",
    )
    assert page(text, agent, "/").required_resources == (f"{ORIGIN}/one.txt",)


@pytest.mark.requirement("ACAP-33", "ACAP-42")
def test_a_permission_that_grants_nothing_wants_nothing() -> None:
    text = "ACAP-resource-set: all /\nACAP-resource-set: all /\n" + record(
        "ACAP-allow-index: the-acap:resource-set:all must-use-resource=/terms.txt"
    )
    found = page(text, agent_with("must-use-resource"))
    assert why(found.uses["index"]) == ("deny", "acap.unusable", 4)
    assert (found.required_resources, found.dated) == ((), ())


# Lengths


def permission(**restrictions: Any) -> UseDecision:
    reason = Reason(rule="acap.allow", source=Source(url=f"{ORIGIN}/robots.txt", line=2))
    return UseDecision(verdict=Verdict.ALLOW, stated=True, reasons=(reason,), **restrictions)


TEXT = "One two, three four."


@pytest.mark.requirement("ACAP-34")
@pytest.mark.parametrize(
    ("restrictions", "cut"),
    [
        ({}, TEXT),
        ({"max_chars": 20}, TEXT),
        ({"max_chars": 19}, "One two, three"),
        ({"max_chars": 14}, "One two, three"),
        ({"max_chars": 13}, "One two,"),
        ({"max_chars": 9}, "One two,"),
        ({"max_chars": 3}, "One"),
        ({"max_chars": 0}, ""),
        ({"max_words": 4}, TEXT),
        ({"max_words": 2}, "One two,"),
        ({"max_words": 0}, ""),
        ({"max_words": 3, "max_chars": 9}, "One two,"),
        ({"max_words": 1, "max_chars": 9}, "One"),
    ],
)
def test_snippet_ends_with_a_word(restrictions: dict[str, int], cut: str) -> None:
    assert snippet(TEXT, permission(**restrictions)) == cut


@pytest.mark.requirement("ACAP-34")
def test_no_snippet_where_it_is_refused() -> None:
    assert (
        snippet(TEXT, page(record("ACAP-disallow-present-snippet: /")).uses["present-snippet"])
        == ""
    )
    assert snippet(TEXT, page("").uses["present-snippet"]) == ""
    use = page(record("ACAP-allow-present-snippet: / max-length=2-words")).uses["present-snippet"]
    assert snippet(TEXT, use) == "One two,"


@given(
    text=st.text(st.sampled_from("ab \t\n\xa0é.")),
    chars=st.none() | st.integers(0, 12),
    words=st.none() | st.integers(0, 4),
)
@pytest.mark.requirement("ACAP-34")
def test_no_snippet_is_longer_than_permitted(
    text: str, chars: int | None, words: int | None
) -> None:
    cut = snippet(text, permission(max_chars=chars, max_words=words))
    assert cut.strip() in text
    assert chars is None or len(cut) <= chars
    assert words is None or len(cut.split()) <= words


# Related usages, several fields


@pytest.mark.requirement("ACAP-28")
def test_other_prohibits_uses_that_acap_does_not_know() -> None:
    agent = Agent(
        "comity", uses=("train",), defaults={"train": Verdict.ALLOW, "tdm": Verdict.ALLOW}
    )
    found = page(record("ACAP-allow-index: /", "ACAP-disallow-other: /"), agent)
    for use in (
        "train",
        "tdm",
        "preserve",
        "present",
        "present-snippet",
        "follow",
        "crawl",
        "other",
    ):
        assert why(found.uses[use]) == ("deny", "acap.disallow", 3)
        assert found.uses[use].stated
    assert why(found.uses["index"]) == ("allow", "acap.allow", 2)
    assert found.follow.verdict is Verdict.DENY


@pytest.mark.requirement("ACAP-28")
def test_other_permits_no_use_that_acap_does_not_know() -> None:
    found = page(record("ACAP-allow-other: /"), Agent("comity", uses=("train",)))
    for use in ("train", "genai"):
        assert (found.uses[use].verdict, found.uses[use].stated) == (Verdict.DENY, False)
    for use in ("index", "preserve", "present", "present-snippet", "follow"):
        assert why(found.uses[use]) == ("allow", "acap.allow", 2)


@pytest.mark.requirement("ACAP-30")
def test_links_of_a_page_that_are_not_followed() -> None:
    text = record(
        "ACAP-disallow-follow: /list/", "ACAP-allow-follow: /list/open/", "ACAP-allow-crawl: /"
    )
    assert page(text, path="/list/a").follow.verdict is Verdict.DENY
    assert why(page(text, path="/list/a").uses["follow"]) == ("deny", "acap.disallow", 2)
    assert why(page(text, path="/list/open/a").uses["follow"]) == ("allow", "acap.allow", 3)
    assert page(text, path="/a").follow.verdict is Verdict.ALLOW
    assert page(text, path="/list/a").uses["crawl"].verdict is Verdict.ALLOW


@pytest.mark.requirement("ACAP-47")
def test_restrictions_of_the_narrowest_fields_hold_together() -> None:
    text = record(
        "ACAP-allow-present-snippet: /a max-length=100-chars time-limit=9-days",
        "ACAP-allow-present-snippet: /a max-length=20-words time-limit=until-2026-11-22",
        "ACAP-allow-present-snippet: / max-length=5-words",
        "ACAP-allow-present: /a prohibited-modification=style",
    )
    decision = page(text).uses["present-snippet"]
    assert decision.restrictions() == {
        "until": datetime(2026, 11, 22, 23, 59, 59, tzinfo=UTC),
        "max_chars": 100,
        "max_words": 20,
    }
    assert [reason.source.line for reason in decision.reasons] == [2, 3]


@pytest.mark.requirement("ACAP-21", "ACAP-22", "ACAP-38")
@pytest.mark.parametrize(
    "field",
    [
        "ACAP-allow-index: /a max-length=3-words",
        "ACAP-allow-index: /a time-limit=soon",
        "ACAP-allow-index: /a time-limit=1-days time-limit=2-days",
        "ACAP-allow-index: /a licence=mine",
        "ACAP-allow-index: /a quickly",
    ],
)
def test_a_permission_that_cannot_be_honoured_refuses_where_it_decides(field: str) -> None:
    text = record("ACAP-allow-index: /", field)
    assert why(page(text).uses["index"]) == ("deny", "acap.unusable", 3)
    assert page(text).uses["index"].stated
    assert why(page(text, path="/b").uses["index"]) == ("allow", "acap.allow", 2)
    assert acap_findings(site(text)) == [("acap.qualifier", 3)]


# The tag

VALIDATOR = Draft202012Validator(
    json.loads(files("comity.policies").joinpath("permissions.schema.json").read_text())
)
QUALIFIED = record(
    "ACAP-allow-index: / time-limit=until-2026-11-30 must-use-resource=the-acap:extract:class:lead",
    "ACAP-allow-preserve: / time-limit=until-recrawled",
    "ACAP-allow-present-snippet: / max-length=250-chars",
    "ACAP-allow-present-oldsnippet: / max-length=30-words",
    "ACAP-allow-present: / prohibited-modification=style prohibited-modification=format"
    " must-include-resource=the-acap:credit:/credit.txt",
    "ACAP-allow-present-original: / prohibited-context=within-user-frame "
    "required-context=within-original-frame",
    "ACAP-disallow-present-thumbnail: /",
)


def check_tag(tag: dict[str, Any]) -> dict[str, Any]:
    VALIDATOR.validate(tag)
    assert json.loads(json.dumps(tag)) == tag
    for decision in tag["uses"].values():
        assert max(decision["because"]) < len(tag["reasons"])
    return tag


def qualifiers(tag: dict[str, Any], use: str) -> dict[str, Any]:
    return {
        name: value
        for name, value in tag["uses"][use].items()
        if name not in ("verdict", "stated", "because")
    }


@pytest.mark.requirement("ACAP-32", "ACAP-33", "ACAP-34", "ACAP-35", "ACAP-36", "ACAP-37")
def test_the_tag_has_the_restrictions() -> None:
    credit = Fetched(status=200, headers=((b"content-type", b"text/plain"),), body=b"By A.")
    agent = agent_with("must-use-resource", "must-include-resource")
    tag = check_tag(page(QUALIFIED, agent, body=HTML, resources={CREDIT: credit}).permissions)
    assert {use: qualifiers(tag, use) for use in tag["uses"]} == {
        "crawl": {},
        "follow": {},
        "index": {
            "until": "2026-11-30T23:59:59Z",
            "must_use": [
                {
                    "role": "",
                    "extract": "class:lead",
                    "url": "",
                    "content": '<p class="lead first">By class</p>',
                }
            ],
        },
        "preserve": {"until_recrawled": True},
        "present": {
            "prohibited_modifications": ["format", "style"],
            "must_include": [{"role": "credit", "extract": "", "url": CREDIT, "content": "By A."}],
        },
        "present-snippet": {"max_chars": 250},
        "present-oldsnippet": {"max_words": 30},
        "present-original": {
            "prohibited_contexts": ["within-user-frame"],
            "required_contexts": ["within-original-frame"],
        },
        "present-thumbnail": {},
    }
    assert tag["uses"]["present-thumbnail"]["verdict"] == "deny"
    because = tag["uses"]["preserve"]["because"][0]
    assert (tag["reasons"][because]["rule"], tag["reasons"][because]["line"]) == ("acap.allow", 3)


@pytest.mark.requirement("ACAP-33", "ACAP-36")
def test_the_tag_of_a_refusal_has_no_restrictions() -> None:
    tag = check_tag(page(QUALIFIED, body=HTML).permissions)
    for use in ("index", "present"):
        assert tag["uses"][use]["verdict"] == "deny"
        assert qualifiers(tag, use) == {}


def tag_of(text: str, origin: str, **given: Any) -> dict[str, Any]:
    found = Site.from_files(origin, {"/robots.txt": text.encode()})
    return check_tag(
        found.page(agent_with("must-use-resource"), f"{origin}/a", now=NOW, **given).permissions
    )


@pytest.mark.requirement("MEET-3")
def test_an_item_from_two_pages_keeps_the_restrictions_of_both() -> None:
    one = tag_of(
        record(
            "ACAP-allow-present-snippet: / max-length=250-chars time-limit=until-2026-11-30",
            "ACAP-allow-present-original: / prohibited-modification=style "
            "prohibited-context=within-user-frame",
            "ACAP-allow-index: / time-limit=until-recrawled",
            "ACAP-allow-preserve: / time-limit=3-days",
        ),
        "https://one.example",
    )
    other = tag_of(
        record(
            "ACAP-allow-present-snippet: / max-length=100-chars time-limit=5-days",
            "ACAP-allow-present-original: / prohibited-modification=format "
            "required-context=within-original-frame",
            "ACAP-allow-index: /",
            "ACAP-disallow-preserve: /",
        ),
        "https://two.example",
    )
    for first, second in ((one, other), (other, one)):
        both = check_tag(join_tags(COMITY, first, second))
        assert qualifiers(both, "present-snippet") == {
            "max_chars": 100,
            "until": "2026-11-26T12:00:00Z",
        }
        assert qualifiers(both, "present-original") == {
            "prohibited_modifications": ["format", "style"],
            "prohibited_contexts": ["within-user-frame"],
            "required_contexts": ["within-original-frame"],
        }
        assert qualifiers(both, "index") == {"until_recrawled": True}
        assert both["uses"]["preserve"]["verdict"] == "deny"
        assert qualifiers(both, "preserve") == {}
        urls = {
            both["reasons"][place]["url"] for place in both["uses"]["present-snippet"]["because"]
        }
        assert urls == {"https://one.example/robots.txt", "https://two.example/robots.txt"}


@pytest.mark.requirement("MEET-3")
def test_an_item_from_a_page_of_acap_and_one_without() -> None:
    one = tag_of(record("ACAP-allow-index: / time-limit=3-days"), "https://one.example")
    agent = Agent("comity", defaults={"index": Verdict.ALLOW})
    other = check_tag(
        Site.from_files("https://two.example", {})
        .page(agent, "https://two.example/a", now=NOW)
        .permissions
    )
    for first, second in ((one, other), (other, one)):
        both = check_tag(join_tags(agent, first, second))
        assert both["uses"]["index"]["verdict"] == "allow"
        assert qualifiers(both, "index") == {"until": "2026-11-24T12:00:00Z"}


SET = "the-acap:resource-set:s"
CITED = [
    # a field of a record, or definitions and a field, and the section of its mistake
    ("ACAP-allow-index: / unknown=1", "section-2.4.1.2"),
    ("ACAP-allow-index: / max-length=3-words", "section-2.4.1.2"),
    ("ACAP-allow-index: / 3-days", "section-3"),
    ("ACAP-allow-crawl: / time-limit=3-days", "section-2.5.1"),
    ("ACAP-allow-follow: / time-limit=3-days", "section-2.5.2"),
    ("ACAP-allow-index: / time-limit=soon", "section-2.5.3.1"),
    ("ACAP-allow-index: / must-use-resource=the-acap:extract:name:x", "section-2.5.3.2"),
    ("ACAP-allow-preserve: / time-limit=soon", "section-2.5.4.1"),
    ("ACAP-allow-present-link: / time-limit=soon", "section-2.5.5.2.1"),
    ("ACAP-allow-present: / must-use-resource=the-acap:extract:name:x", "section-2.5.5.2.2"),
    ("ACAP-allow-present-snippet: / max-length=long", "section-2.5.5.2.3"),
    ("ACAP-allow-present: / prohibited-modification=most", "section-2.5.5.2.4"),
    (
        "ACAP-allow-present: / prohibited-modification=any prohibited-modification=any",
        "section-2.5.5.2.4",
    ),
    ("ACAP-allow-present: / must-include-resource=the-acap:x:/x", "section-2.5.5.2.5"),
    ("ACAP-allow-present-original: / prohibited-context=none", "section-2.5.5.2.6"),
    ("ACAP-allow-present-original: / required-context=none", "section-2.5.5.2.7"),
    ("ACAP-allow-index: / time-limit=3-days time-limit=3-days", "section-2.5.5.2"),
    ("ACAP-allow-other: / time-limit=3-days", "section-2.5.6"),
    (
        "ACAP-qualified-usage: q index time-limit=3-days|ACAP-allow-(q): / time-limit=3-days",
        "section-2.4.1.3",
    ),
    ("|ACAP-allow-(q): /\nACAP-qualified-usage: q index time-limit=3-days", "section-2.7"),
    ("ACAP-qualified-usage: q index|ACAP-allow-(q): /", "section-2.7.1"),
    ("ACAP-qualified-usage: q index time-limit=soon|ACAP-allow-(q): /", "section-2.5.3.1"),
    ("ACAP-composite-usage: c index (q)|ACAP-allow-(c): /", "section-2.7.2"),
    (
        "ACAP-qualified-usage: q index time-limit=3-days\n"
        "ACAP-qualified-usage: q index time-limit=4-days|ACAP-allow-(q): /",
        "section-3",
    ),
    (f"ACAP-resource-set: s /\nACAP-resource-set: s /x|ACAP-allow-index: {SET}", "section-2.7.3"),
    (f"|ACAP-allow-index: {SET}\nACAP-resource-set: s /", "section-2.7"),
    ("ACAP-allow-index: /STRASSE", "section-2.8"),
    (f"ACAP-allow-index: / must-use-resource=/{'x' * 33_000}", "docs/acap.md"),
]


@pytest.mark.requirement("ACAP-38", "WHY-1")
@pytest.mark.parametrize(
    ("text", "section"), one_in(3, CITED), ids=[f"{section} {text[:40]}" for text, section in CITED]
)
def test_a_permission_that_grants_nothing_cites_why(text: str, section: str) -> None:
    definitions, _, field = text.rpartition("|")
    page = site(f"{definitions}\nACAP-crawler: *\n{field}\n").page(
        COMITY, f"{ORIGIN}/straße", now=NOW
    )
    reasons = [page.uses[use].reasons[0] for use in (*USAGES, "train")]
    unusable = [reason for reason in reasons if reason.rule == "acap.unusable"]
    specification = "comity," if section == "docs/acap.md" else "ACAP 1.0"
    assert {reason.spec for reason in unusable} == {f"{specification} {section}"}
    tagged = [
        reason["spec"]
        for reason in page.permissions["reasons"]
        if reason["rule"] == "acap.unusable"
    ]
    assert set(tagged) <= {f"{specification} {section}"}


# References and requests

NAMED = Agent("named")


@pytest.mark.requirement("ACAP-12")
def test_references_are_those_of_records_for_the_agent() -> None:
    text = """\
ACAP-crawler: named
ACAP-permissions-reference: /named.txt
ACAP-crawler: named
ACAP-permissions-reference: https://policies.example/all.txt#part
ACAP-crawler: *
ACAP-permissions-reference: any.txt
ACAP-crawler: somebody
ACAP-permissions-reference: /somebody.txt
"""
    found = site(text)
    assert set(found.references(NAMED)) == {
        f"{ORIGIN}/named.txt",
        "https://policies.example/all.txt",
        f"{ORIGIN}/any.txt",
    }
    assert found.references(COMITY) == (f"{ORIGIN}/any.txt",)
    assert site("").references(COMITY) == ()


@pytest.mark.requirement("ACAP-12")
def test_a_referenced_file_is_applied_together_with_the_one_that_refers_to_it() -> None:
    """Its patterns are paths of the referring site, on any host."""
    url = "https://policies.example/all.txt"
    text = (
        f"ACAP-crawler: *\nACAP-permissions-reference: {url}\nACAP-crawler: *\n"
        "ACAP-disallow-index: /private/\n"
    )
    policies = (
        b"ACAP-crawler: *\nACAP-allow-index: /\nACAP-disallow-crawl: /closed/\n"
        b"User-agent: *\nDisallow: /old/\n"
    )
    found = Site.from_files(ORIGIN, {"/robots.txt": text.encode(), url: policies})
    assert why(found.page(COMITY, f"{ORIGIN}/a", now=NOW).uses["index"]) == (
        "allow",
        "acap.allow",
        2,
    )
    assert found.page(COMITY, f"{ORIGIN}/a", now=NOW).uses["index"].reasons[0].source.url == url
    assert why(found.page(COMITY, f"{ORIGIN}/private/a", now=NOW).uses["index"]) == (
        "deny",
        "acap.disallow",
        4,
    )
    assert crawl(found, path="/closed/a") == ("deny", "acap.disallow", 3)
    assert crawl(found, path="/old/a") == ("deny", "robots.disallow", 5)
    assert crawl(found)[0] == "allow"
    assert url in found.page(COMITY, f"{ORIGIN}/a", now=NOW).permissions["policies"]


@pytest.mark.requirement("ACAP-12")
def test_a_referenced_file_speaks_to_the_crawlers_of_the_record_that_refers_to_it() -> None:
    text = "ACAP-crawler: named\nACAP-permissions-reference: /more.txt\n"
    found = site(
        text,
        more=b"ACAP-crawler: *\nACAP-disallow-crawl: /private/\nUser-agent: *\nDisallow: /old/\n",
    )
    assert crawl(found, NAMED, "/private/a") == ("deny", "acap.disallow", 2)
    assert crawl(found, NAMED, "/old/a") == ("deny", "robots.disallow", 4)
    assert crawl(found, COMITY, "/private/a")[0] == crawl(found, COMITY, "/old/a")[0] == "allow"


@pytest.mark.requirement("ACAP-12")
def test_fields_before_any_record_of_a_referenced_file() -> None:
    """The referring record addresses them: here they are for this crawler by name.

    So their permission overrides fields for any crawler.
    """
    text = (
        "ACAP-crawler: named\nACAP-permissions-reference: /more.txt\nACAP-crawler: *\n"
        "ACAP-disallow-index: /\n"
    )
    found = site(text, more=b"ACAP-allow-index: /\nACAP-disallow-crawl: /private/\n")
    assert crawl(found, NAMED, "/private/a") == ("deny", "acap.disallow", 2)
    assert why(found.page(NAMED, f"{ORIGIN}/a", now=NOW).uses["index"]) == (
        "allow",
        "acap.allow",
        1,
    )
    assert why(found.page(COMITY, f"{ORIGIN}/a", now=NOW).uses["index"]) == (
        "deny",
        "acap.disallow",
        4,
    )
    found = site(text.replace("named", "*", 1), more=b"ACAP-allow-index: /\n")
    assert why(found.page(NAMED, f"{ORIGIN}/a", now=NOW).uses["index"]) == (
        "deny",
        "acap.disallow",
        4,
    )


@pytest.mark.requirement("ACAP-12", "RFC-2")
def test_in_each_file_the_groups_that_name_the_crawler_or_those_for_any() -> None:
    """So no line in one file lifts a refusal of another."""
    text = (
        "User-agent: named\nDisallow: /one/\nACAP-crawler: *\n"
        "ACAP-permissions-reference: /more.txt\n"
    )
    more = b"User-agent: *\nDisallow: /two/\nUser-agent: named\nDisallow: /three/\n"
    found = site(text, more=more)
    assert crawl(found, NAMED, "/one/a") == ("deny", "robots.disallow", 2)
    assert crawl(found, NAMED, "/two/a")[0] == "allow"
    assert crawl(found, NAMED, "/three/a") == ("deny", "robots.disallow", 4)
    found = site(text, more=more.partition(b"User-agent: named")[0])
    assert crawl(found, NAMED, "/one/a") == ("deny", "robots.disallow", 2)
    assert crawl(found, NAMED, "/two/a") == ("deny", "robots.disallow", 2)
    assert crawl(found, COMITY, "/two/a") == ("deny", "robots.disallow", 2)
    assert crawl(found, COMITY, "/one/a")[0] == "allow"
    anybody = text.replace("named", "*", 1)
    for body in (b"", b"User-agent: named\nAllow: /one/\n", b"User-agent: named\nDisallow:\n"):
        assert crawl(site(anybody, more=body), NAMED, "/one/a") == ("deny", "robots.disallow", 2)


@pytest.mark.requirement("ACAP-12", "ACAP-27")
def test_a_permission_for_any_leaves_a_group_by_name_in_its_own_file_alone() -> None:
    """A group for any in another file gives way, even if this file names the crawler."""
    text = (
        "User-agent: named\nDisallow: /a/\nACAP-crawler: *\nACAP-permissions-reference: /more.txt\n"
    )
    more = (
        b"User-agent: *\nDisallow: /b/\nACAP-crawler: *\nACAP-allow-crawl: /a/\n"
        b"ACAP-allow-crawl: /b/\n"
    )
    assert crawl(site(text, more=more), NAMED, "/a/x") == ("deny", "robots.disallow", 2)
    assert crawl(site(text, more=more), NAMED, "/b/x") == ("allow", "acap.allow", 5)


@pytest.mark.requirement("ACAP-12", "RATE-1")
def test_the_pace_of_each_file_is_kept() -> None:
    text = (
        "User-agent: named\nCrawl-delay: 2\nACAP-crawler: *\n"
        "ACAP-permissions-reference: /more.txt\n"
    )
    rates = site(text, more=b"User-agent: *\nCrawl-delay: 5\n").rates(NAMED)
    assert rates
    assert rates.crawl_delay == 5


@pytest.mark.requirement("ACAP-12")
def test_a_reference_within_a_referenced_file_is_not_read() -> None:
    text = "ACAP-crawler: *\nACAP-permissions-reference: /one.txt\n"
    one = b"ACAP-crawler: *\nACAP-permissions-reference: /two.txt\nACAP-disallow-crawl: /one/\n"
    found = site(text, one=one, two=b"ACAP-crawler: *\nACAP-disallow-crawl: /two/\n")
    assert found.references(COMITY) == (f"{ORIGIN}/one.txt",)
    assert crawl(found, path="/one/a") == ("deny", "acap.disallow", 3)
    assert crawl(found, path="/two/a")[0] == "allow"
    assert ("acap.reference", 2, f"{ORIGIN}/one.txt") in [
        (told.rule, told.line, told.url) for told in found.findings
    ]


@pytest.mark.requirement("ACAP-12")
def test_other_fields_beside_a_reference_apply_too() -> None:
    found = site(
        "ACAP-crawler: *\nACAP-permissions-reference: /one.txt\nACAP-disallow-crawl: /b\n", one=b""
    )
    assert crawl(found, path="/b") == ("deny", "acap.disallow", 3)
    assert acap_findings(found) == [("acap.reference", 3)]


@pytest.mark.requirement("ACAP-14")
@pytest.mark.parametrize(
    "fetched",
    [
        None,
        Fetched(status=503),
        Fetched(status=429),
        Fetched(status=0, error="refused"),
        Fetched(status=200, error="truncated"),
    ],
    ids=["not-given", "503", "429", "network", "truncated"],
)
def test_a_reference_that_cannot_be_had_refuses_the_crawl(fetched: Fetched | None) -> None:
    text = (
        "ACAP-crawler: named\nACAP-permissions-reference: /named.txt\nACAP-crawler: *\n"
        "ACAP-allow-crawl: /\n"
    )
    found = site(text, **({"named": fetched} if fetched else {}))
    assert crawl(found, NAMED) == ("deny", "acap.reference-unreachable", 2)
    assert crawl(found, NAMED, "/robots.txt")[0] == "allow"
    # the record that refers to it addresses another
    assert crawl(found) == (
        "allow",
        "acap.allow",
        4,
    )
    # Other permissions, in ACAP or by default, do not matter.
    permitting = replace(
        NAMED, defaults=dict.fromkeys(("index", "preserve", "present", "train"), Verdict.ALLOW)
    )
    more = "ACAP-allow-present: /\nACAP-allow-other: /\n"
    also = site(
        text.replace("/named.txt\n", f"/named.txt\n{more}"),
        **({"named": fetched} if fetched else {}),
    )
    for each in (found, also):
        for use in ("index", "preserve", "present", "train"):
            decision = each.page(permitting, f"{ORIGIN}/a", now=NOW).uses[use]
            assert why(decision) == ("deny", "acap.reference-unreachable", 2)
            assert decision.stated


@pytest.mark.requirement("ACAP-14")
@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_reference_to_what_is_not_there_says_nothing(status: int) -> None:
    found = site(
        "ACAP-crawler: *\nACAP-permissions-reference: /more.txt\n",
        more=Fetched(status=status, body=b"x"),
    )
    assert crawl(found)[0] == "allow"


@pytest.mark.requirement("ACAP-14")
@pytest.mark.parametrize(
    "locator", ["ftp://example.com/a", "http://[x", "mailto:a@example.com", "http://"]
)
def test_a_reference_to_nowhere_cannot_be_had(locator: str) -> None:
    found = site(f"ACAP-crawler: *\nACAP-permissions-reference: {locator}\n")
    assert found.references(COMITY) == ()
    assert crawl(found) == ("deny", "acap.reference-unreachable", 2)


@pytest.mark.requirement("ACAP-13")
def test_definitions_are_seen_in_the_referenced_file() -> None:
    text = """\
ACAP-resource-set: open /news/ /blog/
ACAP-qualified-usage: cache preserve time-limit=until-recrawled
ACAP-crawler: *
ACAP-permissions-reference: /more.txt
"""
    more = b"ACAP-crawler: *\nACAP-allow-(cache): the-acap:resource-set:open\n"
    found = site(text, more=more)
    decision = found.page(COMITY, f"{ORIGIN}/blog/a", now=NOW).uses["preserve"]
    assert (why(decision), decision.until_recrawled) == (("allow", "acap.allow", 2), True)
    assert not found.page(COMITY, f"{ORIGIN}/a", now=NOW).uses["preserve"].stated


@pytest.mark.requirement("ACAP-13")
def test_definitions_of_the_referenced_file_are_not_seen_in_the_one_that_refers() -> None:
    text = (
        "ACAP-crawler: *\nACAP-allow-(cache): /\nACAP-crawler: *\n"
        "ACAP-permissions-reference: /more.txt\n"
    )
    more = (
        b"ACAP-qualified-usage: cache preserve time-limit=3-days\nACAP-crawler: *\n"
        b"ACAP-allow-(cache): /b\n"
    )
    found = site(text, more=more)
    assert found.page(COMITY, f"{ORIGIN}/a", now=NOW).uses["preserve"].verdict is Verdict.DENY
    assert found.page(COMITY, f"{ORIGIN}/b", now=NOW).uses["preserve"].until == NOW + 3 * DAY
    assert acap_findings(found) == [("acap.undefined", 2)]


@pytest.mark.requirement("ACAP-43")
def test_requests_of_records_for_the_agent() -> None:
    text = """\
ACAP-crawler: named
ACAP-request-take-down: /one.html?b=c
ACAP-request-re-crawl: /two.html
ACAP-crawler: *
ACAP-request-re-crawl: /two.html
ACAP-request-re-crawl: /three.html
ACAP-usage-purpose: news
ACAP-disallow-index: /
ACAP-request-take-down: /four.html
"""
    found = site(text)
    assert {(request.action, request.url) for request in found.requests(NAMED)} == {
        ("take-down", f"{ORIGIN}/one.html?b=c"),
        ("re-crawl", f"{ORIGIN}/two.html"),
        ("re-crawl", f"{ORIGIN}/three.html"),
    }
    assert len(found.requests(NAMED)) == 3
    assert [
        (request.reason.rule, request.reason.source.line) for request in found.requests(COMITY)
    ] == [
        ("acap.request", 5),
        ("acap.request", 6),
    ]
    assert {request.url for request in found.requests(COMITY)} == {
        f"{ORIGIN}/two.html",
        f"{ORIGIN}/three.html",
    }
    assert acap_findings(found) == [("acap.action", 9)]
    assert site("").requests(COMITY) == ()


@pytest.mark.requirement("ACAP-43")
def test_requests_are_for_arranged_features() -> None:
    text = record("ACAP-request-take-down: /one.html", "ACAP-request-re-crawl: /two.html")
    for features in ((), ("take-down",), ("re-crawl",), ("take-down", "re-crawl")):
        requests = site(text).requests(agent_with(*features))
        assert {request.action: request.arranged for request in requests} == {
            action: action in features for action in ("take-down", "re-crawl")
        }
        assert {
            (request.reason.source.line, request.reason.source.text) for request in requests
        } == {
            (2, "ACAP-request-take-down: /one.html"),
            (3, "ACAP-request-re-crawl: /two.html"),
        }
    assert [
        request.arranged
        for request in site(text).requests(agent_with("take-down", host="example.org"))
    ] == [False, False]


# Conventional records beside those of ACAP


@pytest.mark.requirement("ACAP-27")
@pytest.mark.parametrize(
    ("conventional", "acap", "agent", "path", "want"),
    [
        # The same pattern: the conventional field is ignored.
        ("*: Disallow: /a/", "*: allow /a/", "comity", "/a/b", ("allow", "acap.allow", 4)),
        ("*: Allow: /a/", "*: disallow /a/", "comity", "/a/b", ("deny", "acap.disallow", 4)),
        (
            "comity: Disallow: /a/",
            "comity: allow /a/",
            "comity",
            "/a/b",
            ("allow", "acap.allow", 4),
        ),
        ("*: Disallow: /a/", "comity: allow /a/", "comity", "/a/b", ("allow", "acap.allow", 4)),
        ("*: Disallow: /%61/", "*: allow /a/", "comity", "/a/b", ("allow", "acap.allow", 4)),
        (
            "*: Disallow: /*.gif$",
            "*: allow /*.gif$",
            "comity",
            "/b.gif",
            ("allow", "acap.allow", 4),
        ),
        # Not the corresponding field: the line names this crawler, the field does not.
        ("comity: Disallow: /a/", "*: allow /a/", "comity", "/a/b", ("deny", "robots.disallow", 2)),
        ("comity: Allow: /a/", "*: disallow /a/", "comity", "/a/b", ("deny", "acap.disallow", 4)),
        # Different patterns: both apply.
        ("*: Disallow: /", "*: allow /a/", "comity", "/a/b", ("deny", "robots.disallow", 2)),
        ("*: Disallow: /a/b", "*: allow /a/", "comity", "/a/b", ("deny", "robots.disallow", 2)),
        ("*: Disallow: /a/*", "*: allow /a/", "comity", "/a/b", ("deny", "robots.disallow", 2)),
        ("*: Disallow: /A/", "*: allow /a/", "comity", "/A/b", ("deny", "robots.disallow", 2)),
        ("*: Allow: /a/b", "*: disallow /a/", "comity", "/a/b", ("deny", "acap.disallow", 4)),
        # Records for others.
        ("*: Disallow: /a/", "named: allow /a/", "comity", "/a/b", ("deny", "robots.disallow", 2)),
        ("named: Disallow: /a/", "*: allow /a/", "comity", "/a/b", ("allow", "acap.allow", 4)),
    ],
)
def test_conventional_field_and_acap_field(
    conventional: str, acap: str, agent: str, path: str, want: tuple[str, str, int]
) -> None:
    whom, _, rule = conventional.partition(": ")
    crawler, _, field = acap.partition(": ")
    text = (
        f"User-agent: {whom}\n{rule}\nACAP-crawler: {crawler}\n"
        f"ACAP-{field.replace(' ', '-crawl: ')}\n"
    )
    assert crawl(site(text), Agent(agent), path) == want


@pytest.mark.requirement("ACAP-27")
@pytest.mark.parametrize("usage", ["index", "present", "other", "follow"])
def test_only_crawl_corresponds_to_conventional_rules(usage: str) -> None:
    text = f"User-agent: *\nDisallow: /a/\nACAP-crawler: *\nACAP-allow-{usage}: /a/\n"
    assert crawl(site(text), path="/a/b") == ("deny", "robots.disallow", 2)


@pytest.mark.requirement("ACAP-27", "ACAP-38")
def test_a_permission_that_grants_nothing_lifts_nothing() -> None:
    text = (
        "User-agent: *\nDisallow: /a/\nACAP-crawler: *\nACAP-allow-crawl: /a/ time-limit=3-days\n"
    )
    assert crawl(site(text), path="/a/b")[0] == "deny"


@pytest.mark.requirement("ACAP-7")
@pytest.mark.parametrize(
    "field", ["ACAP-ignore-conventional-records", "acap-ignore-CONVENTIONAL-records:"]
)
def test_conventional_records_are_ignored(field: str) -> None:
    text = (
        f"User-agent: *\nDisallow: /\nCrawl-delay: 9\n{field}\nACAP-crawler: named\n"
        "ACAP-disallow-crawl: /\n"
    )
    assert crawl(site(text)) == ("allow", "acap.ignore-conventional", 4)
    assert crawl(site(text), NAMED) == ("deny", "acap.disallow", 6)
    assert acap_findings(site(text)) == []


@pytest.mark.requirement("ACAP-7")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("User-agent: *\nDisallow: /\nACAP-ignore-conventional-records\n", 3),
        (
            "User-agent: *\nDisallow: /\nACAP-resource-set: a /a/\n"
            "ACAP-ignore-conventional-records\n"
            "ACAP-crawler: *\nACAP-allow-index: /\n",
            4,
        ),
        (
            "User-agent: *\nDisallow: /\nACAP-crawler: *\nACAP-allow-index: /\n"
            "ACAP-ignore-conventional-records\n",
            5,
        ),
    ],
    ids=["no-record", "after-a-definition", "after-a-record"],
)
def test_conventional_records_are_not_ignored(text: str, line: int) -> None:
    assert crawl(site(text)) == ("deny", "robots.disallow", 2)
    assert acap_findings(site(text)) == [("acap.ignored", line)]


@pytest.mark.requirement("ACAP-7")
def test_conventional_records_of_another_file_still_count() -> None:
    text = (
        "ACAP-ignore-conventional-records\nACAP-crawler: *\nACAP-permissions-reference: /more.txt\n"
    )
    found = site(text, more=b"User-agent: *\nDisallow: /old/\n")
    assert crawl(found, path="/old/a") == ("deny", "robots.disallow", 2)


@pytest.mark.requirement("ACAP-48")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "User-agent: *\nAllow: /\n",
        "##ACAP version=1.0\nUser-agent: *\nAllow: /\n",
        "User-agent: *\nAllow: /\nACAP-allow-index: /\n",  # within a conventional record
        "ACAP-crawler: somebody\nACAP-allow-index: /\nACAP-disallow-other: /\n",
    ],
    ids=["empty", "conventional", "version-only", "outside-a-record", "for-somebody"],
)
def test_without_acap_nothing_is_stated(text: str) -> None:
    found = page(text, agent_with("must-use-resource", "must-include-resource"))
    for use in ("index", "preserve", "present", "present-snippet", "follow", "other", "train"):
        decision = found.uses[use]
        assert not decision.stated
        assert decision.reasons[0].rule == "comity.default"
        assert decision.restrictions() == {}
    assert (found.required_resources, found.dated) == ((), ())
    assert list(found.uses) == ["crawl", "follow", "index", "preserve", "present"]


@pytest.mark.requirement("ACAP-32")
@pytest.mark.parametrize("first_seen", [{}, {"index": NOW}])
def test_no_days(first_seen: dict[str, datetime]) -> None:
    found = page(record("ACAP-allow-index: / time-limit=0-days"), first_seen=first_seen)
    assert why(found.uses["index"]) == ("deny", "acap.expired", 2)
    several = page(
        record("ACAP-allow-index: / time-limit=0-days", "ACAP-allow-index: / time-limit=3-days")
    )
    assert why(several.uses["index"])[:2] == ("deny", "acap.expired")


@pytest.mark.requirement("ACAP-14", "ACAP-47", "SEC-1", "WHY-1")
@pytest.mark.parametrize(
    ("field", "usage", "verdict"),
    [
        ("allow-index: / time-limit={}-days", "index", Verdict.ALLOW),
        ("allow-index: / must-use-resource=/{}", "index", Verdict.DENY),
        *((f"allow-{usage}: /*-{{}}-", usage, Verdict.ALLOW) for usage in ("index", "crawl")),
        *((f"disallow-{usage}: /*-{{}}-", usage, Verdict.DENY) for usage in ("index", "crawl")),
        ("disallow-other: /*-{}-", "ai-train", Verdict.DENY),
        ("allow-crawl: /*-{}- x", "crawl", Verdict.DENY),
        *(("permissions-reference: /{}.txt", usage, Verdict.DENY) for usage in ("index", "crawl")),
    ],
)  # fmt: skip
def test_a_decision_has_so_many_reasons_at_most(field: str, usage: str, verdict: Verdict) -> None:
    """The tag of each item contains them. The qualifiers of all permissions still apply."""
    numbers = range(300, 0, -1)
    text = record(*(f"ACAP-{field.format(number)}" for number in numbers))
    path = f"/-{'-'.join(map(str, numbers))}-"
    decision: Decision | UseDecision
    if usage == "crawl":
        decision = site(text).access(COMITY, ORIGIN + path, now=NOW)
    else:
        decision = page(text, path=path).uses[usage]
        assert decision.until == (NOW + DAY if "-days" in text else None)
    assert (decision.verdict, len(decision.reasons)) == (verdict, MAX_REASONS)


@pytest.mark.requirement("ACAP-45", "ACAP-47")
@pytest.mark.parametrize(
    ("named", "days"),
    [
        ("ACAP-allow-other: /", 30),
        ("ACAP-allow-index: /", 30),
        ("ACAP-allow-preserve: /", None),  # the same usage
        ("ACAP-allow-preserve: / time-limit=3-days", 3),
        ("ACAP-allow-preserve: / time-limit=60-days", 60),
    ],
)
def test_a_permission_by_name_of_a_more_general_usage_leaves_a_limit_for_all_in_force(
    named: str, days: int | None
) -> None:
    text = f"{record('ACAP-allow-preserve: / time-limit=30-days')}ACAP-crawler: named\n{named}\n"
    decision = site(text).page(NAMED, f"{ORIGIN}/a", now=NOW).uses["preserve"]
    assert (decision.verdict, decision.until) == (
        Verdict.ALLOW,
        None if days is None else NOW + days * DAY,
    )


@pytest.mark.requirement("ACAP-45", "ACAP-47")
def test_a_permission_by_name_to_present_leaves_the_length_of_snippets_for_all_in_force() -> None:
    text = (
        f"{record('ACAP-allow-present-snippet: / max-length=5-words')}ACAP-crawler: named\n"
        "ACAP-allow-present: /\n"
    )
    assert site(text).page(NAMED, f"{ORIGIN}/a", now=NOW).uses["present-snippet"].max_words == 5


@pytest.mark.requirement("ACAP-7")
def test_conventional_records_that_are_ignored_free_all_whom_no_record_names() -> None:
    text = (
        "ACAP-ignore-conventional-records\nACAP-crawler: named\nACAP-disallow-crawl: /a\n"
        "User-agent: *\nDisallow: /\n"
    )
    assert crawl(site(text), path="/a/b") == ("allow", "acap.ignore-conventional", 1)
    assert crawl(site(text), NAMED, path="/a/b")[0] == "deny"
