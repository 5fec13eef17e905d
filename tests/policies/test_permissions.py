"""Every tag is valid by the JSON Schema that the package ships."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError

from comity.policies import Agent, Fetched, Site, Verdict
from comity.policies.answers.qualifiers import Extract, Qualifiers, Resource
from comity.policies.answers.rule import RULES
from comity.policies.tag import (
    join_tags,
    no_page,
    read_conditions,
    without_extracts,
    write_conditions,
)

SCHEMA = json.loads(files("comity.policies").joinpath("permissions.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
AGENT = Agent("testbot", uses=("index", "train"), defaults={"train": Verdict.ALLOW})
URL = "https://example.com/a"


def check(tag: dict[str, Any]) -> None:
    assert json.loads(json.dumps(tag)) == tag
    VALIDATOR.validate(tag)
    for decision in (*tag["uses"].values(), *tag["elements"]):
        assert max(decision["because"]) < len(tag["reasons"])


def tag(robots: Any, agent: Agent = AGENT) -> dict[str, Any]:
    return (
        Site.from_files("https://example.com", {"/robots.txt": robots}).page(agent, URL).permissions
    )


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.requirement("WHY-1", "WHY-2")
@pytest.mark.parametrize(
    "robots",
    [
        b"",
        b"User-agent: *\nDisallow:\n",
        b"User-agent: *\nDisallow: /\n",
        Fetched(
            status=200,
            body=b"User-agent: *\nAllow: /a",
            fetched_at=datetime(2026, 11, 21, tzinfo=UTC),
        ),
        Fetched(status=404),
        Fetched(status=503),
        Fetched(status=0, error="connection refused"),
    ],
)
def test_every_outcome(robots: Any) -> None:
    check(tag(robots))


def test_what_a_tag_says() -> None:
    found = tag(b"User-agent: *\nAllow: /a\n")
    assert found["agent"] == "testbot"
    assert list(found["uses"]) == ["crawl", "follow", "index", "preserve", "present", "train"]
    crawl = found["uses"]["crawl"]
    assert (crawl["verdict"], crawl["stated"]) == ("allow", True)
    assert found["reasons"][crawl["because"][0]] == {
        "rule": "robots.allow",
        "spec": "RFC 9309 section-2.2.2",
        "url": "https://example.com/robots.txt",
        "line": 2,
        "text": "Allow: /a",
    }
    verdicts = {
        use: (decision["verdict"], decision["stated"]) for use, decision in found["uses"].items()
    }
    assert verdicts["index"] == ("deny", False)
    assert verdicts["train"] == ("allow", False)
    said = {
        use: found["reasons"][decision["because"][0]]
        for use, decision in found["uses"].items()
        if not decision["stated"]
    }
    assert {
        use: (reason["rule"], reason["url"], reason["text"]) for use, reason in said.items()
    } == {
        use: ("comity.default", "COMITY_DEFAULTS", text)
        for use, text in (
            ("follow", "follow: allow"),
            ("index", "no default for index"),
            ("preserve", "no default for preserve"),
            ("present", "no default for present"),
            ("train", "train: allow"),
        )
    }
    assert len(found["policies"]["https://example.com/robots.txt"]["sha256"]) == 64


@given(robots=st.binary(), uses=st.lists(st.sampled_from(["index", "train", "tdm", "crawl"])))
def test_no_file_makes_an_invalid_tag(robots: bytes, uses: list[str]) -> None:
    check(tag(robots, Agent("testbot", uses=tuple(uses))))


def test_item_without_a_page() -> None:
    found = no_page(AGENT, "the item came from no page")
    check(found)
    assert {(decision["verdict"], decision["stated"]) for decision in found["uses"].values()} == {
        ("deny", False)
    }
    assert [reason["rule"] for reason in found["reasons"]] == ["comity.no-page"]


def stating(origin: str, **uses: str) -> dict[str, Any]:
    """Return the tag of a page with statements about these uses."""
    made = Site.from_files(origin, {"/robots.txt": b""}).page(AGENT, f"{origin}/a").permissions
    for use, verdict in uses.items():
        made["reasons"].append(
            {
                "rule": "test.stated",
                "spec": "",
                "url": origin,
                "line": 1,
                "text": f"{use}: {verdict}",
            }
        )
        made["uses"][use] = {
            "verdict": verdict,
            "stated": True,
            "because": [len(made["reasons"]) - 1],
        }
    return made


def test_two_pages_give_the_more_restrictive_of_each_use() -> None:
    first = stating("https://one.example", index="allow", tdm="allow", ai="deny")
    second = stating("https://two.example", index="deny", train="deny", genai="allow")
    for one, other in ((first, second), (second, first)):
        both = join_tags(AGENT, one, other)
        check(both)
        found = {
            use: (decision["verdict"], decision["stated"]) for use, decision in both["uses"].items()
        }
        assert found["index"] == found["train"] == found["ai"] == ("deny", True)
        # The other page leaves it to the default.
        assert found["tdm"] == found["genai"] == ("deny", False)
        assert found["crawl"] == ("allow", True)
        assert both["reasons"][both["uses"]["index"]["because"][0]]["url"] == "https://two.example"
        assert {url for url in both["policies"] if url.endswith("/robots.txt")} == {
            f"https://{host}.example/robots.txt" for host in ("one", "two")
        }


def test_same_page_twice_changes_nothing() -> None:
    one = stating("https://one.example", index="allow", ai="deny")
    both = join_tags(AGENT, one, one)
    assert both["policies"] == one["policies"]
    assert {use: decision["verdict"] for use, decision in both["uses"].items()} == {
        use: decision["verdict"] for use, decision in one["uses"].items()
    }


@given(st.data())
def test_combining_never_gives_a_permission_that_one_of_them_lacks(data: st.DataObject) -> None:
    statements = st.dictionaries(
        st.sampled_from(["index", "train", "ai", "tdm"]), st.sampled_from(["allow", "deny"])
    )
    one, other = (
        stating("https://one.example", **data.draw(statements)),
        stating("https://two.example", **data.draw(statements)),
    )
    both = join_tags(AGENT, one, other)
    check(both)
    for use, decision in both["uses"].items():
        allowed = [
            tag["uses"][use]["verdict"] == "allow"
            if use in tag["uses"]
            else AGENT.defaults.get(use) is Verdict.ALLOW
            for tag in (one, other)
        ]
        assert (decision["verdict"] == "allow") == all(allowed)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"uses": {}},
        {"more": 1},
        {
            "uses": {
                use: {"verdict": "defer", "stated": True, "because": [0]}
                for use in tag(b"")["uses"]
            }
        },
    ],
)
def test_the_schema_refuses_what_is_no_tag(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        VALIDATOR.validate(tag(b"") | change)


@pytest.mark.requirement("AIT-6", "SEC-4")
@pytest.mark.parametrize(
    "name", ["a@b", "[red]x", "\u202eevil", "\x9bx", "a\u2028b", "É", "_a", "x" * 201]
)
def test_an_action_whose_name_is_none_of_a_use_is_in_no_list_of_uses(name: str) -> None:
    """With such a name no reader would understand the tag. The rule refuses all the same."""
    lines = (
        "User-agent: *",
        "  Path: / html",
        "    Element: *",
        f"      Disallow: {name} Train",
        "      Disallow: crop",
    )
    site = Site.from_files("https://example.com", {"/ai.txt": "\n".join(lines).encode()})
    made = site.page(AGENT, URL, body=b"<p>a").permissions
    check(made)
    assert set(made["uses"]) == {"crawl", "follow", "index", "preserve", "present", "train", "crop"}
    assert made["uses"]["train"]["verdict"] == "deny"


@pytest.mark.requirement("AIT-6", "SEC-1")
def test_of_uses_that_only_the_site_names_there_are_not_too_many() -> None:
    actions = "\n".join(f"      Disallow: a{number}" for number in range(1000))
    site = Site.from_files(
        "https://example.com",
        {"/ai.txt": f"User-agent: *\n  Path: /\n    Element: *\n{actions}".encode()},
    )
    page = site.page(AGENT, URL, body=None)
    check(page.permissions)
    assert len(page.permissions["uses"]) == 106
    assert page.uses["a999"].verdict is Verdict.DENY


def robots_meta(value: bytes, agent: Agent, origin: str = "https://one.example") -> dict[str, Any]:
    page = Site.from_files(origin, {"/robots.txt": b""}).page(
        agent, f"{origin}/a", headers=[(b"X-Robots-Tag", value)]
    )
    return page.permissions


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("default", [Verdict.ALLOW, Verdict.DENY])
def test_what_limits_a_use_is_said_whatever_the_default(default: Verdict) -> None:
    """A reader with another default needs the limit."""
    agent = Agent(
        "testbot",
        uses=("index", "present-snippet"),
        defaults={"index": default, "present-snippet": default},
    )
    found = robots_meta(b"max-snippet: 20, unavailable_after: 2040-01-01", agent)
    check(found)
    snippet, index = found["uses"]["present-snippet"], found["uses"]["index"]
    assert (snippet["verdict"], snippet["stated"], snippet["max_chars"]) == (
        default.value,
        False,
        20,
    )
    assert index["until"] == "2039-12-31T10:00:00Z"  # the first time zone in which the day begins
    rules = [found["reasons"][place]["rule"] for place in snippet["because"]]
    assert rules == ["comity.default", "robots-meta.limit", "robots-meta.limit"]


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("default", [Verdict.ALLOW, Verdict.DENY])
def test_limits_of_either_page_limit_an_item_of_both(default: Verdict) -> None:
    agent = Agent("testbot", uses=("present-snippet",), defaults={"present-snippet": default})
    one, free = (
        robots_meta(b"max-snippet: 20", agent),
        robots_meta(b"all", agent, "https://two.example"),
    )
    stated = json.loads(json.dumps(free))
    stated["reasons"].append({"rule": "test.stated", "spec": "", "url": "", "line": 1, "text": ""})
    stated["uses"]["present-snippet"] = {
        "verdict": "allow",
        "stated": True,
        "because": [len(stated["reasons"]) - 1],
        "max_words": 9,
    }
    for pair in ((one, free), (free, one), (one, stated), (stated, one)):
        both = join_tags(agent, *pair)
        check(both)
        snippet = both["uses"]["present-snippet"]
        assert (snippet["verdict"], snippet["max_chars"]) == (default.value, 20)
        assert snippet.get("max_words") == (9 if stated in pair else None)


def test_silence_that_nobody_has_asked_about_is_another() -> None:
    """A page that does not list a use may still be about it, in other words."""
    one, other = stating("https://one.example", genai="allow"), stating("https://two.example")
    found = join_tags(AGENT, one, other)
    parts = {
        use: found["reasons"][found["uses"][use]["because"][0]].get("part")
        for use in ("preserve", "genai")
    }
    assert parts == {"preserve": "setting", "genai": "item"}


@pytest.mark.requirement("MEET-3")
def test_a_refusal_that_is_no_silence_decides_before_one_by_default() -> None:
    """Another default permits a use that only silence refuses (docs/datasets.md).

    So a refusal with another reason has to be the one that decides."""
    silent, unknown = stating("https://one.example"), no_page(AGENT, "the item came from no page")
    unasked = stating("https://two.example") | {"uses": {}}
    for other, rule, part in (
        (unknown, "comity.no-page", "item"),
        (unasked, "comity.default", "item"),
    ):
        for pair in ((silent, other), (other, silent), (join_tags(AGENT, silent, other), silent)):
            both = join_tags(AGENT, *pair)
            check(both)
            use = both["uses"]["index"]
            reason = both["reasons"][use["because"][0]]
            assert (use["verdict"], use["stated"], reason["rule"], reason["part"]) == (
                "deny",
                False,
                rule,
                part,
            )


def reasons_of(tag: dict[str, Any], decision: dict[str, Any]) -> list[str]:
    return [
        f"{tag['reasons'][place]['rule']} {tag['reasons'][place]['url']}"
        for place in decision["because"]
    ]


@pytest.mark.requirement("META-3", "MEET-3")
def test_of_what_is_embedded_in_two_pages_the_more_restrictive_holds_too() -> None:
    """If one page has no rule of its own for embedded files, its rule for the page counts."""
    agent = Agent(
        "testbot",
        uses=("train", "index"),
        defaults={"train": Verdict.ALLOW, "index": Verdict.ALLOW},
    )
    images = robots_meta(b"noimageai", agent)
    silent, refusing = (
        robots_meta(value, agent, "https://two.example") for value in (b"all", b"noai, noindex")
    )
    both_images = robots_meta(b"noimageai, noindex", agent, "https://three.example")
    assert images["embedded"]["train"]["verdict"] == "deny"
    for pair in ((images, silent), (silent, images)):
        both = join_tags(agent, *pair)
        check(both)
        assert set(both["embedded"]) == set(images["embedded"])
        embedded = both["embedded"]["train"]
        assert (embedded["verdict"], embedded["stated"]) == ("deny", True)
        assert reasons_of(both, embedded) == ["robots-meta.disallow https://one.example/a"]
        assert (both["uses"]["train"]["verdict"], both["uses"]["train"]["stated"]) == (
            "allow",
            False,
        )
    for pair in ((images, refusing), (refusing, images)):
        both = join_tags(agent, *pair)
        check(both)
        decision = both.get("embedded", {}).get("train", both["uses"]["train"])
        assert (decision["verdict"], decision["stated"]) == ("deny", True)
        assert both["uses"]["train"]["verdict"] == both["uses"]["index"]["verdict"] == "deny"
        assert reasons_of(both, both["uses"]["train"]) == [
            "robots-meta.disallow https://two.example/a"
        ]
    both = join_tags(agent, images, both_images)
    assert sorted(reasons_of(both, both["embedded"]["train"])) == [
        f"robots-meta.disallow https://{host}.example/a" for host in ("one", "three")
    ]
    assert "embedded" not in join_tags(agent, silent, silent)
    assert join_tags(agent, images, images)["embedded"].keys() == images["embedded"].keys()


@pytest.mark.requirement("MEET-5")
def test_elements_of_two_pages_are_all_there_with_their_reasons() -> None:
    def page(host: str) -> dict[str, Any]:
        ai = f"# {host}\nUser-agent: *\n  Path: /\n    Element: p\n      Disallow: Train\n"
        site = Site.from_files(f"https://{host}", {"/ai.txt": ai.encode()})
        html = [(b"Content-Type", b"text/html")]
        return site.page(
            AGENT, f"https://{host}/a", headers=html, body=b"<html><head></head><body><p>a text</p>"
        ).tag_of({"text": "a text"}, {})

    one, other = page("one.example"), page("two.example")
    both = join_tags(AGENT, one, other)
    check(both)
    assert len(one["elements"]) == len(other["elements"]) == 1
    assert [reasons_of(both, element) for element in both["elements"]] == [
        [f"ait.disallow https://{host}.example/ai.txt"] for host in ("one", "two")
    ]
    assert [element | {"because": []} for element in both["elements"]] == [
        element | {"because": []} for element in (*one["elements"], *other["elements"])
    ]


@pytest.mark.requirement("WHY-1")
def test_the_tag_without_a_page_says_why() -> None:
    [reason] = no_page(AGENT, "made up")["reasons"]
    assert (reason["rule"], reason["url"], reason["part"], reason["text"]) == (
        "comity.no-page",
        "",
        "item",
        "made up",
    )


@pytest.mark.requirement("MEET-5", "ACAP-29")
def test_a_permission_that_needs_an_element_of_the_page_cannot_be_used_of_what_was_cut() -> None:
    """The element may be a removed one, or contain one. Other permissions stay as they are."""

    def resource(extract: str, content: str, url: str = "") -> dict[str, str]:
        return {"role": "", "extract": extract, "url": url, "content": content}

    made = stating(
        "https://one.example",
        index="allow",
        present="allow",
        preserve="allow",
        train="allow",
        ai="deny",
    )
    uses = made["uses"]
    uses["index"]["must_use"] = [resource("id:a", "<p>a</p>")]
    uses["present"]["must_include"] = [
        resource("", "a logo", "https://one.example/logo"),
        resource("meta:b", "b"),
    ]
    uses["preserve"]["must_use"] = [resource("id:a", "")]
    uses["train"]["must_include"] = [resource("", "a logo", "https://one.example/logo")]
    check(made)
    before = json.dumps(made)
    for tag, part in ((made, "uses"), (made | {"embedded": made["uses"]}, "embedded")):
        cut = without_extracts(tag)
        check(cut)
        for use in ("index", "present"):
            decision = cut[part][use]
            assert (decision["verdict"], decision["stated"], len(decision)) == ("deny", True, 3)
            [place] = decision["because"]
            was = made["reasons"][made["uses"][use]["because"][0]]
            assert cut["reasons"][place] == was | {
                "rule": "acap.resource",
                "spec": RULES["acap.resource"].spec,
            }
        assert {use: cut[part][use] for use in uses if use not in ("index", "present")} == {
            use: decision
            for use, decision in made["uses"].items()
            if use not in ("index", "present")
        }
        assert cut["reasons"][: len(made["reasons"])] == made["reasons"]
    assert json.dumps(made) == before


extracts = st.builds(
    Extract,
    kind=st.sampled_from(["id", "class", "meta"]),
    name=st.text("ab:c", min_size=1, max_size=3),
)
resources = st.builds(
    Resource,
    role=st.sampled_from(["", "credit", "link"]),
    extract=st.none() | extracts,
    uri=st.sampled_from(["", "https://example.com/logo"]),
    content=st.sampled_from(["", "<p>a</p>"]),
)
zones = st.sampled_from([UTC, timezone(timedelta(hours=-9))])
words = st.frozensets(st.sampled_from(["any", "style", "within-user-frame"]))
qualifiers = st.builds(
    Qualifiers,
    until=st.none() | st.builds(datetime.fromtimestamp, st.integers(10**9, 4 * 10**9), zones),
    until_recrawled=st.booleans(),
    max_chars=st.none() | st.integers(0, 99),
    max_words=st.none() | st.integers(0, 99),
    prohibited_modifications=words,
    prohibited_contexts=words,
    required_contexts=words,
    must_use=st.lists(resources, max_size=2).map(tuple),
    must_include=st.lists(resources, max_size=2).map(tuple),
)


@pytest.mark.requirement("WHY-2", "MEET-3")
@given(qualifiers)
def test_conditions_in_a_tag_are_read_as_they_were_written(stated: Qualifiers) -> None:
    in_tag = write_conditions(stated)
    assert json.loads(json.dumps(in_tag)) == in_tag
    assert read_conditions(in_tag) == stated
    assert in_tag.get("until", "Z").endswith("Z")
    assert read_conditions(in_tag | {"verdict": "allow", "stated": True, "because": [0]}) == stated


@pytest.mark.requirement("MEET-3")
@given(qualifiers, qualifiers)
def test_conditions_of_two_permissions_hold_together(one: Qualifiers, other: Qualifiers) -> None:
    for first, second in ((one, other), (other, one)):
        both = first.conjoined(second)
        for name in ("until", "max_chars", "max_words"):
            values = [
                getattr(each, name) for each in (one, other) if getattr(each, name) is not None
            ]
            assert getattr(both, name) == min(values, default=None)
        assert both.until_recrawled is (one.until_recrawled or other.until_recrawled)
        for name in (
            "prohibited_modifications",
            "prohibited_contexts",
            "required_contexts",
            "must_use",
            "must_include",
        ):
            assert set(getattr(both, name)) == {*getattr(one, name), *getattr(other, name)}
    assert one.conjoined() == one.conjoined(Qualifiers()) == one
