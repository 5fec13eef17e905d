"""Pages with the same statements share one decision, and nothing else."""

from __future__ import annotations

import gc
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Site, Verdict
from comity.policies import site as site_module
from comity.policies.agent import Arrangement
from comity.policies.answers.decision import Reason, Source
from comity.policies.answers.request import PLAIN
from comity.policies.document.document import Content
from comity.policies.formats.distrusted import distrusted
from comity.policies.formats.format import Format, Response, Statements
from comity.policies.site import _shared_page, _shared_sources
from comity.policies.syntax.remembered import Remembered

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ORIGIN = "https://example.com"
AGENT = Agent("examplebot", uses=("train", "search", "index"))
AGENTS = [
    AGENT,
    Agent("otherbot", uses=("train",), defaults={"search": Verdict.ALLOW}),
    Agent("examplebot", uses=("train", "index"), content_usage=("aipref",), purposes=("news",)),
    Agent(
        "examplebot",
        uses=("train",),
        arrangements=(Arrangement("example.com", uses=frozenset(("train",))),),
    ),
]
ROBOTS = """User-agent: *
Content-Usage: train-ai=n
Content-Usage: /open train-ai=y, search=y
Content-Signal: search=yes, ai-train=no
Disallow: /closed
Allow: /
"""
FILES = [
    {},
    {"/robots.txt": b"User-agent: *\nDisallow: /closed\n"},
    {"/robots.txt": ROBOTS.encode()},
    {
        "/robots.txt": ROBOTS.encode(),
        "/.well-known/tdmrep.json": b'[{"location": "/open*", "tdm-reservation": 1}]',
    },
    {
        "/robots.txt": b"User-agent: *\nusage: ai=n\nDisallow: /closed",
        "/ai.txt": b"User-Agent: *\nDisallow: *.pdf\n",
    },
    {"/robots.txt": b"ACAP-crawler: *\nACAP-allow-index: /open time-limit=30-days\n"},
]
PATHS = ["/", "/open", "/open/1", "/open/a.pdf", "/closed", "/closed/../open", "/x;y", "/open?q"]
TYPES = [b"text/html", b"image/png", b"application/pdf"]
FIELDS = [
    (b"X-Robots-Tag", b"noai"),
    (b"X-Robots-Tag", b"otherbot: noindex, max-snippet: 0"),
    (b"X-Robots-Tag", b"unavailable_after: 2026-11-22T12:00:00Z, nonsense"),
    (b"Content-Usage", b"train-ai=n, search=y;x"),
    (b"Usage-Pref", b"ai=n"),
    (b"Content-Signal", b"search=yes, ai-train=no, other"),
    (b"tdm-reservation", b"0"),
    (b"tdm-reservation", b"1"),
    (b"tdm-policy", b"policy.json"),
    (b"Link", b'<license.xml>; rel="license"; type="application/rsl+xml"'),
]
LICENSE = """<rsl xmlns="https://rslstandard.org/rsl"><content url="/open"><license>
<prohibits type="usage">ai-train</prohibits></license></content></rsl>"""
ANNOTATION = '{"@type": "AutomationPolicyAnnotation", "allowedMechanisms": [], "rateLimit": "x"}'
MARKUP = [
    b"<p>text",
    b'<meta name="robots" content="noindex, noimageindex">',
    b'<meta name="Robots" content="nonsense, max-image-preview:none">\n'
    b'<meta name="otherbot" content="noindex">',
    b'<meta name="robots" content="unavailable_after: 2026-11-22T12:00:00Z">',
    b'<meta name="tdm-reservation" content="1"><meta name="tdm-policy" content="policy.json">',
    f'<script type="application/rsl+xml">{LICENSE}</script>'.encode(),
    b'<link rel="license" type="application/rsl+xml" href="license.xml">',
    f'<script type="application/ld+json">{ANNOTATION}</script>'.encode(),
    b"<p data-nosnippet>text",
]
MOMENTS = [NOW, NOW + timedelta(hours=12), NOW + timedelta(days=40)]
FACTS = [PLAIN, PLAIN._replace(method="POST"), PLAIN._replace(automations=("cdp",))]
REMEMBERED = [value for value in gc.get_objects() if type(value) is Remembered]

pages = st.tuples(
    st.sampled_from(AGENTS),
    st.sampled_from(PATHS),
    st.sampled_from(TYPES),
    st.lists(st.sampled_from(FIELDS), max_size=3),
    st.lists(st.sampled_from(MARKUP), max_size=3),
    st.sampled_from(MOMENTS),
    st.sampled_from(FACTS),
)


def outcome(site: Site, asked: tuple[Any, ...]) -> tuple[object, ...]:
    agent, path, media_type, fields, markup, now, facts = asked
    headers = ((b"Content-Type", media_type), *fields)
    page = site.page(
        agent, ORIGIN + path, headers=headers, body=b"".join(markup), now=now, facts=facts
    )
    uses = {use: page.uses[use] for use in (*AGENT.uses, "crawl", "follow", "preserve")}
    embedded = {use: page.embedded[use] for use in uses}
    later = page.asked_as(site.page(agent, f"{ORIGIN}/open", headers=headers, now=now))
    refused = site.refused_by_headers(agent, page.url, headers, now)
    told = (
        page.permissions,
        page.findings,
        page.redacted(["train"]),
        page.required_resources,
        refused,
    )
    return page.url, uses, embedded, list(page.uses), *told, later.permissions


@pytest.mark.requirement("WHY-1")
@given(st.sampled_from(FILES), st.lists(pages, min_size=2, max_size=6))
def test_a_page_says_what_it_says_alone_whatever_was_asked_before(
    files: dict[str, bytes], asked: list[tuple[Any, ...]]
) -> None:
    site = Site.from_files(ORIGIN, files)
    outcomes = [outcome(site, one) for one in asked]
    for one, after_others in zip(asked, outcomes, strict=True):
        forget()
        assert after_others == outcome(Site.from_files(ORIGIN, files), one)


def forget() -> None:
    """Empty the caches of all sites."""
    for cache in (_shared_page, _shared_sources):
        cache.cache_clear()
    for remembered in REMEMBERED:
        remembered._results.clear()


@pytest.mark.requirement("WHY-1")
def test_pages_that_send_the_same_are_decided_once() -> None:
    """The reasons of each page contain its own URL."""
    site = Site.from_files(ORIGIN, FILES[3])
    headers = ((b"Content-Type", b"text/html"), *FIELDS[:1], FIELDS[3])
    first, second = (
        site.page(AGENT, f"{ORIGIN}/{number}", headers=headers, body=MARKUP[1], now=NOW)
        for number in range(2)
    )
    assert first._uses is second._uses
    for page in (first, second):
        told = {reason.source.url for use in page.uses for reason in page.uses[use].reasons}
        in_tag = {reason["url"] for reason in page.permissions["reasons"]}
        assert told == in_tag
        assert page.url in told
        assert told.isdisjoint({first.url, second.url} - {page.url})


def test_a_format_of_others_is_asked_for_every_page(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def read_document(content: Content, response: Response) -> Statements:
        asked.append(response.url)
        reason = Reason(rule="comity.format", source=Source(url=response.url))
        return Statements(refused=(reason,) if len(asked) == 2 else ())

    others = distrusted(Format(name="others", rules={}, read_document=read_document))
    monkeypatch.setattr(site_module, "_READ_DOCUMENT", (("others", others.read_document),))
    site, agent = (
        Site.from_files(ORIGIN, {}),
        Agent("examplebot", uses=("index",), defaults={"index": Verdict.ALLOW}),
    )
    verdicts = [site.page(agent, f"{ORIGIN}/{number}").uses["index"].verdict for number in range(3)]
    assert verdicts == [Verdict.ALLOW, Verdict.DENY, Verdict.ALLOW]
    assert asked == [f"{ORIGIN}/{number}" for number in range(3)]


@pytest.mark.requirement("META-2")
def test_a_date_that_comes_ends_what_was_permitted_before() -> None:
    site = Site.from_files(ORIGIN, FILES[1])
    told = (
        {"headers": ((b"X-Robots-Tag", b"unavailable_after: 2026-11-22T12:00:00Z"),)},
        {"body": MARKUP[3]},
    )
    agent = Agent("examplebot", uses=("index",), defaults={"index": Verdict.ALLOW})
    for carrier in told:
        verdicts = [
            site.page(agent, f"{ORIGIN}/{n}", now=now, **carrier).uses["index"].verdict
            for n, now in enumerate(MOMENTS)
        ]
        assert verdicts == [Verdict.ALLOW, Verdict.DENY, Verdict.DENY]


def test_whoever_changes_a_tag_changes_no_other() -> None:
    site = Site.from_files(ORIGIN, FILES[1])
    first, second = (site.page(AGENT, f"{ORIGIN}/{number}") for number in range(2))
    expected = site.page(AGENT, f"{ORIGIN}/3").permissions
    for tag in (first.permissions, second.tag_of({}, {})):
        tag["uses"]["train"]["verdict"] = "allow"
        tag["reasons"].clear()
    assert (
        second.permissions
        == second.tag_of({}, {})
        == site.page(AGENT, f"{ORIGIN}/2").permissions
        == expected
    )


def test_other_declarations_get_other_answers() -> None:
    site, url = Site.from_files(ORIGIN, FILES[2]), f"{ORIGIN}/open"
    other = Agent("examplebot", uses=("train",), defaults={"index": Verdict.ALLOW})
    for agent in (AGENT, other, AGENT):
        assert (
            site.page(agent, url).permissions
            == Site.from_files(ORIGIN, FILES[2]).page(agent, url).permissions
        )
