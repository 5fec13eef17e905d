"""Every question about a URL is answered for all targets that a server may read from it.

Any refusal refuses. A permission counts only if each target has it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from comity.policies import Agent, Fetched, Site, Verdict
from comity.policies.formats.ai_txt import parse as parse_ai_txt
from tests.selection import one_in

ORIGIN = "https://example.com"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ALLOW, DENY, DEFER = Verdict.ALLOW, Verdict.DENY, Verdict.DEFER
AGENT = Agent("examplebot", purposes=("news",))

# Spellings of /closed/a. None of them is one of /open/a.
CLOSED = [
    "/open/../closed/a",
    "/open/%2e%2e/closed/a",
    "/open%2F..%2Fclosed/a",
    "/open\\..\\closed\\a",
    "/open/..%5cclosed/a",
    "//closed/a",
    "/./closed/a",
    "/closed;jsessionid=1/a",
    "/open/..;/closed/a",
    "/open/%252e%252e/closed/a",
    "/closed%2Fa",
]
GET = "allowed-methods: GET\n"
REFUSING: Mapping[str, dict[str, str]] = {
    "robots.txt": {"/robots.txt": "User-agent: *\nDisallow: /closed/\n"},
    "acap": {
        "/robots.txt": "ACAP-crawler: *\nACAP-allow-crawl: /\nACAP-disallow-crawl: /closed/\n"
    },
    "acap, unusable": {
        "/robots.txt": "ACAP-crawler: *\nACAP-allow-crawl: /\nACAP-allow-crawl: /closed/ x=1\n"
    },
    "acap, referenced": {
        "/robots.txt": "ACAP-crawler: *\nACAP-permissions-reference: /acap.txt\n",
        "/acap.txt": "User-agent: *\nDisallow: /closed/\n",
    },
    "automation": {
        "/automation-preferences.txt": f"scope: /\n{GET}\nscope: /closed/\nallowed-methods: POST\n"
    },
}


def site(files: Mapping[str, str]) -> Site:
    return Site.from_files(ORIGIN, {path: text.encode() for path, text in files.items()})


@pytest.mark.requirement("MEET-6", "MEET-1", "WHY-1")
@pytest.mark.parametrize("files", one_in(3, REFUSING.values()), ids=REFUSING)
def test_access(files: dict[str, str]) -> None:
    asked = site(files)
    assert asked.access(AGENT, f"{ORIGIN}/open/a").verdict is ALLOW
    closed = asked.access(AGENT, f"{ORIGIN}/closed/a")
    for target in CLOSED:
        decision = asked.access(AGENT, ORIGIN + target)
        assert decision.verdict is DENY, target
        assert decision.reasons == closed.reasons, target
        assert set(closed.reasons) <= set(asked.considered(AGENT, ORIGIN + target)), target
        assert asked.considered(AGENT, ORIGIN + target)[0] == closed.reasons[0], target


@pytest.mark.requirement("MEET-6", "AUTX-6")
@pytest.mark.parametrize("target", CLOSED)
def test_access_of_other_kinds(target: str) -> None:
    text = f"scope: /\n{GET}allow-xhr: open\napi-automation: open\n\nscope: /closed/\n{GET}"
    asked = site({"/automation-preferences.txt": text})
    for kind in ("xhr", "api"):
        assert asked.access(AGENT, f"{ORIGIN}/open/a", kind=kind).verdict is ALLOW
        assert asked.access(AGENT, ORIGIN + target, kind=kind).verdict is DENY


@pytest.mark.requirement("MEET-6")
@pytest.mark.parametrize("files", one_in(3, REFUSING.values()), ids=REFUSING)
def test_what_is_sent_is_among_them(files: dict[str, str]) -> None:
    targets = ("../open/a", "%2e%2e/open/a", "/../../open/a", "..;/open/a", "..%2fopen/a")
    verdicts = {
        target: site(files).access(AGENT, f"{ORIGIN}/closed/{target}").verdict for target in targets
    }
    assert verdicts == dict.fromkeys(targets, DENY)


@pytest.mark.requirement("MEET-6", "RATE-1")
def test_a_wait_for_one_is_a_wait() -> None:
    """A refusal of one target comes before a wait for another."""
    hours = "User-agent: *\nVisit-time: 0200-0400\nDisallow: /closed/\n"
    assert site({"/robots.txt": hours}).access(AGENT, f"{ORIGIN}/open/..", now=NOW).verdict is DEFER
    assert site({"/robots.txt": hours}).access(AGENT, ORIGIN + CLOSED[0], now=NOW).verdict is DENY


@pytest.mark.requirement("MEET-6", "RFC-4")
@pytest.mark.parametrize(
    ("target", "verdict"),
    [
        ("/robots.txt", ALLOW),
        ("/x/../robots.txt", DENY),
        ("/robots.txt/../x", DENY),
        ("//robots.txt", DENY),
        ("/robots.txt;x", DENY),
        ("/robots.txt%2f..", DENY),
    ],
)
def test_robots_txt_itself(target: str, verdict: Verdict) -> None:
    """The exception for robots.txt needs targets that are all robots.txt."""
    for files in (
        {"/robots.txt": "User-agent: *\nDisallow: /\n"},
        {"/robots.txt": "ACAP-crawler: *\nACAP-disallow-crawl: /\n"},
        {"/automation-preferences.txt": "scope: /\nallowed-methods:\n"},
    ):
        assert site(files).access(AGENT, ORIGIN + target).verdict is verdict


@pytest.mark.requirement("MEET-6")
def test_a_permission_is_none_for_what_nobody_permits() -> None:
    """Even if the permission is for the URL as it is sent."""
    asked = site({"/robots.txt": "User-agent: *\nDisallow: /\nAllow: /open/\n"})
    assert asked.access(AGENT, f"{ORIGIN}/open/b/../a").verdict is ALLOW
    assert asked.access(AGENT, f"{ORIGIN}/open/../a").verdict is DENY
    assert asked.access(AGENT, f"{ORIGIN}/a/../open/").verdict is DENY


@pytest.mark.requirement("MEET-6", "RFC-3")
@pytest.mark.parametrize(
    ("rules", "target", "verdict"),
    [
        # A refusal of the sent URL that was overridden does not return if only slashes are merged.
        ("Allow: /this/*/exactly\nDisallow: /", "/this//exactly", ALLOW),
        ("Allow: /a//b\nDisallow: /a/", "/a//b/c", ALLOW),
        ("Allow: /é//b\nDisallow: /", "/é//b?//", ALLOW),
        # The refusal of any other spelling does.
        ("Allow: /a//b\nDisallow: /a/b", "/a//b/c", DENY),
        ("Allow: /a/\nDisallow: /a/closed/", "/a//closed/", DENY),
        ("Allow: /*/\nDisallow: /a/closed/", "/a//closed/", DENY),
        ("Disallow: /a/", "/a//b", DENY),
        ("Allow: /open\nDisallow: /", "/open/../a", DENY),
        ("Allow: /open\nDisallow: /", "/open//../a", DENY),
        ("Allow: /*.html\nDisallow: /", "/a;.html", DENY),
    ],
)
def test_slashes_that_are_merged(rules: str, target: str, verdict: Verdict) -> None:
    decision = site({"/robots.txt": f"User-agent: *\n{rules}\n"}).access(AGENT, ORIGIN + target)
    assert decision.verdict is verdict


@pytest.mark.requirement("MEET-6", "RFC-11")
@pytest.mark.parametrize(("hour", "verdict"), [(0, ALLOW), (1, DEFER), (23, DEFER)])
def test_slashes_that_are_merged_wait_for_the_hours_of_visits(hour: int, verdict: Verdict) -> None:
    """The hours are those of the given time."""
    asked = site(
        {
            "/robots.txt": "User-agent: *\nVisit-time: 0000-0001\nAllow: /this/*/exactly\n"
            "Disallow: /\n"
        }
    )
    now = datetime(2026, 11, 21, hour, tzinfo=UTC)
    assert asked.access(AGENT, f"{ORIGIN}/this//exactly", now=now).verdict is verdict


@pytest.mark.requirement("MEET-6", "AUTX-2", "AUTX-3")
@pytest.mark.parametrize("target", CLOSED)
def test_limits(target: str) -> None:
    text = (
        f"scope: /open/\n{GET}concurrent-limit: 2\n\nscope: /closed/\n{GET}request-limit: 1/hour\n"
    )
    asked = site({"/automation-preferences.txt": text})
    of_closed = asked.limits(AGENT, f"{ORIGIN}/closed/a")
    assert len(of_closed) == 1
    assert set(of_closed) <= set(asked.limits(AGENT, ORIGIN + target))
    both = asked.limits(AGENT, f"{ORIGIN}/open/../closed/a")
    assert both == (*asked.limits(AGENT, f"{ORIGIN}/open/"), *of_closed)
    assert asked.limits(AGENT, f"{ORIGIN}/other/../x") == ()


@pytest.mark.requirement("MEET-6", "AUTX-7")
@pytest.mark.parametrize("target", CLOSED)
def test_pages_from_which_scripts_ask(target: str) -> None:
    asked = site(
        {
            "/automation-preferences.txt": f"scope: /\n{GET}allow-xhr: open\n"
            f"disallow-fetch-from: /closed/\n"
        }
    )
    for referer, rule in ((target, "automation.fetch-from"), ("/open/../a", "automation.allow")):
        decision = asked.access(AGENT, f"{ORIGIN}/data", kind="xhr", referer=ORIGIN + referer)
        assert decision.reasons[0].rule == rule


RSL = (
    '<rsl xmlns="https://rslstandard.org/rsl"><content url="{}"><license>{}</license></content>'
    "</rsl>"
)
LICENSE = "License: /license.xml\n"
USES: Mapping[str, tuple[str, dict[str, str], dict[str, str]]] = {
    # A use, files that refuse it for /closed/, and files that permit it for /open/.
    "acap": (
        "index",
        {"/robots.txt": "ACAP-crawler: *\nACAP-disallow-index: /closed/\n"},
        {"/robots.txt": "ACAP-crawler: *\nACAP-allow-index: /open/\n"},
    ),
    "content-usage": (
        "train-ai",
        {"/robots.txt": "User-agent: *\nContent-Usage: /closed/ train-ai=n\n"},
        {"/robots.txt": "User-agent: *\nContent-Usage: /open/ train-ai=y\n"},
    ),
    "usage": (
        "search",
        {"/robots.txt": "User-agent: *\nUsage: search=n\nAllow: /closed/\n"},
        {"/robots.txt": "User-agent: *\nUsage: search=y\nAllow: /open/\n"},
    ),
    "tdmrep": (
        "tdm",
        {"/.well-known/tdmrep.json": '[{"location": "/closed/", "tdm-reservation": 1}]'},
        {"/.well-known/tdmrep.json": '[{"location": "/open/", "tdm-reservation": 0}]'},
    ),
    "rsl": (
        "ai-train",
        {
            "/robots.txt": "User-agent: *\n" + LICENSE,
            "/license.xml": RSL.format("/closed/", '<prohibits type="usage">ai-train</prohibits>'),
        },
        {
            "/robots.txt": "User-agent: *\n" + LICENSE,
            "/license.xml": RSL.format("/open/", '<permits type="usage">ai-train</permits>'),
        },
    ),
    "spawning": ("train", {"/ai.txt": "User-Agent: *\nDisallow: /closed/\n"}, {}),
    "ai.txt": (
        "train",
        {
            "/ai.txt": "User-agent: *\n  Path: /closed/ html\n    Element: *\n"
            "      Disallow: Train\n"
        },
        {},
    ),
}


@pytest.mark.requirement("MEET-6", "MEET-3")
@pytest.mark.parametrize(
    ("use", "files"), one_in(3, [(use, files) for use, files, _ in USES.values()]), ids=USES
)
def test_uses_that_are_refused(use: str, files: dict[str, str]) -> None:
    agent = Agent("examplebot", uses=(use,), defaults={use: ALLOW})
    asked = site(files)
    assert asked.page(agent, f"{ORIGIN}/open/a").uses[use].verdict is ALLOW
    closed = asked.page(agent, f"{ORIGIN}/closed/a").uses[use]
    for target in CLOSED:
        decision = asked.page(agent, ORIGIN + target).uses[use]
        assert (decision.verdict, decision.stated) == (DENY, True), target
        assert set(closed.reasons) <= set(decision.reasons), target
        assert decision.reasons[0] == closed.reasons[0], target


@pytest.mark.requirement("MEET-6", "MEET-3")
@pytest.mark.parametrize(
    ("use", "files"),
    one_in(2, [(use, files) for use, _, files in USES.values() if files]),
    ids=lambda use: str(use)[:9],
)
def test_uses_that_are_permitted_of_one_are_not_stated(use: str, files: dict[str, str]) -> None:
    asked = site(files)
    for default in (ALLOW, DENY):
        agent = Agent("examplebot", uses=(use,), defaults={use: default})
        permitted = asked.page(agent, f"{ORIGIN}/open/a").uses[use]
        assert (permitted.verdict, permitted.stated) == (ALLOW, True)
        assert asked.page(agent, f"{ORIGIN}/open/b/../a").uses[use] == permitted
        for target in ("/open/../a", "/a/../open/b", "/a/..;/open/b", "//open/a"):
            decision = asked.page(agent, ORIGIN + target).uses[use]
            assert (decision.verdict, decision.stated) == (default, False), target


@pytest.mark.requirement("MEET-6", "MEET-3", "ACAP-47")
def test_restrictions_of_each_hold() -> None:
    text = (
        "ACAP-crawler: *\nACAP-allow-present-snippet: /open/ max-length=9-words\n"
        "ACAP-allow-present-snippet: /closed/ max-length=5-words time-limit=until-recrawled\n"
    )
    agent = Agent("examplebot", defaults={"present-snippet": ALLOW})
    asked = site({"/robots.txt": text})
    both = asked.page(agent, f"{ORIGIN}/open/../closed/a").uses["present-snippet"]
    assert (both.verdict, both.stated, both.max_words, both.until_recrawled) == (
        ALLOW,
        True,
        5,
        True,
    )
    one = asked.page(agent, f"{ORIGIN}/open/../a").uses["present-snippet"]
    assert (one.verdict, one.stated, one.max_words, one.until_recrawled) == (ALLOW, False, 9, False)
    assert one.reasons[-1].rule == "acap.allow"


@pytest.mark.requirement("MEET-6", "RSL-2")
def test_licenses_that_a_page_refers_to() -> None:
    agent = Agent("examplebot", defaults={"ai-train": ALLOW})
    headers = [(b"Link", b'</license.xml>; rel="license"; type="application/rsl+xml"')]
    document = RSL.format("/closed/", '<prohibits type="usage">ai-train</prohibits>')
    resources = {f"{ORIGIN}/license.xml": Fetched(status=200, body=document.encode())}
    for target, verdict in (("/open/a", ALLOW), *((target, DENY) for target in CLOSED)):
        page = site({}).page(agent, ORIGIN + target, headers=headers, resources=resources)
        assert page.uses["ai-train"].verdict is verdict


@pytest.mark.requirement("MEET-6", "META-3")
def test_embedded_files_are_judged_alike() -> None:
    asked = site({"/robots.txt": "User-agent: *\nContent-Usage: /closed/ train-ai=n\n"})
    agent = Agent("examplebot", defaults={"train-ai": ALLOW})
    headers = [(b"X-Robots-Tag", b"noimageai")]
    page = asked.page(agent, f"{ORIGIN}/open/../closed/", headers=headers, body=b"<html>")
    assert page.embedded["train-ai"].verdict is page.uses["train-ai"].verdict is DENY


@pytest.mark.requirement("MEET-6")
def test_a_response_whose_fields_refuse_what_the_file_does_not() -> None:
    asked = site({"/robots.txt": "User-agent: *\nContent-Usage: /closed/ train-ai=n\n"})
    agent = Agent("examplebot", uses=("train-ai", "search"))
    headers = [(b"Content-Usage", b"search=n")]
    assert asked.refused_by_headers(agent, f"{ORIGIN}/open/a", headers) is None
    assert asked.refused_by_headers(agent, f"{ORIGIN}/open/../closed/a", headers) is not None


@pytest.mark.requirement("MEET-6")
def test_what_the_files_say_of_a_page_says_so_of_all() -> None:
    """Keys are equal only if `page` decides the same."""
    asked = site(
        {"/robots.txt": "User-agent: *\nDisallow: /shut/\nContent-Usage: /closed/ train-ai=n\n"}
    )
    plain = asked.statements_key(AGENT, f"{ORIGIN}/open/a", NOW)
    assert asked.statements_key(AGENT, f"{ORIGIN}/open/b/../a", NOW) == plain
    assert asked.statements_key(AGENT, f"{ORIGIN}/open/../closed/a", NOW) != plain
    assert asked.statements_key(AGENT, f"{ORIGIN}/open/../shut/a", NOW) != plain


@pytest.mark.requirement("MEET-6", "AIT-4", "AIT-9")
def test_rules_of_elements_add_up() -> None:
    text = "User-agent: *\n" + "".join(
        f"  Path: /{folder}/ html\n    Element: {element}\n      Disallow: Train\n"
        for folder, element in (("closed", "p"), ("open", "b"), ("other", "i"))
    )
    found = parse_ai_txt(text.encode()).rules_for("/open/../closed/a", "examplebot", "text/html")
    assert [rule.element for rule in found] == ["p", "b"]


@pytest.mark.requirement("MEET-6", "AUTX-11")
def test_annotations_come_before_the_group_of_each() -> None:
    text = f"scope: /\n{GET}allowed-purposes: news\n\nscope: /closed/\n{GET}allow-xhr: open\n"
    asked = site({"/automation-preferences.txt": text})
    body = (
        b'<script type="application/ld+json">{"@type": "AutomationPolicyAnnotation", '
        b'"allowedPurposes": ["ads"]}</script>'
    )
    page = asked.page(
        AGENT, f"{ORIGIN}/closed/../a", headers=[(b"Content-Type", b"text/html")], body=body
    )
    assert page.uses["crawl"].verdict is DENY
    assert page.uses["crawl"].reasons[0].source.part == "JSON-LD"
