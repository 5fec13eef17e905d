"""Rules that depend on the time are evaluated for the given time, in every way to ask."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from comity.policies import Agent, Site, Verdict
from comity.policies.answers.request import Facts, Session

ORIGIN = "https://example.com"
AGENT = Agent("examplebot", uses=("index",), purposes=("news",))
MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)
ROBOTS = "User-agent: *\nVisit-time: 0000-0001\nDisallow: /closed/\n"
GET = "scope: /\nallowed-methods: GET, HEAD\n"
REFERS = "ACAP-crawler: *\nACAP-permissions-reference: /more.txt\n"

# Files that welcome visits in the first minute of a day.
SITES: Mapping[str, Mapping[str, str]] = {
    "robots.txt alone": {"/robots.txt": ROBOTS},
    "automation-preferences.txt": {"/robots.txt": ROBOTS, "/automation-preferences.txt": GET},
    "ACAP": {"/robots.txt": f"{ROBOTS}\nACAP-crawler: *\nACAP-allow-index: /\n"},
    "a file that it refers to": {
        "/robots.txt": f"User-agent: *\nDisallow: /closed/\n\n{REFERS}",
        "/more.txt": ROBOTS,
    },
    "both files": {
        "/robots.txt": f"{ROBOTS}Crawl-delay: 1\n\n{REFERS}",
        "/more.txt": "User-agent: *\nAllow: /\n",
    },
}


def site(files: Mapping[str, str]) -> Site:
    return Site.from_files(ORIGIN, {path: text.encode() for path, text in files.items()})


@pytest.mark.requirement("RFC-11", "MEET-1", "MEET-6")
@pytest.mark.parametrize("target", ["/a", "/x/../a", "/x/..%2Fa"])
@pytest.mark.parametrize("files", SITES.values(), ids=SITES)
def test_visits_are_welcome_at_their_hours(files: Mapping[str, str], target: str) -> None:
    asked = site(files)
    for now, verdict in (
        (MIDNIGHT, Verdict.ALLOW),
        (MIDNIGHT + timedelta(hours=12), Verdict.DEFER),
    ):
        decision = asked.access(AGENT, ORIGIN + target, now=now)
        assert decision.verdict is verdict
        assert decision.not_before == (
            None if verdict is Verdict.ALLOW else MIDNIGHT + timedelta(days=1)
        )
        assert ("robots.visit-time" in [reason.rule for reason in decision.reasons]) is (
            verdict is Verdict.DEFER
        )
        assert asked.access(AGENT, f"{ORIGIN}/closed/", now=now).verdict is Verdict.DENY
        assert asked.rates(AGENT)


ANNOTATION = (
    '<script type="application/ld+json">{"@type": "AutomationPolicyAnnotation", '
    '"allowedPurposes": ["news"]}</script>'
)


@pytest.mark.requirement("RFC-11", "AUTX-11")
@pytest.mark.parametrize("files", SITES.values(), ids=SITES)
@pytest.mark.parametrize("markup", ["", ANNOTATION], ids=["page", "annotated page"])
def test_a_page_was_taken_when_it_was_taken(files: Mapping[str, str], markup: str) -> None:
    html = ((b"Content-Type", b"text/html"),)
    for target in ("/a", "/x/../a"):
        for now, is_late in ((MIDNIGHT, False), (MIDNIGHT + timedelta(hours=12), True)):
            page = site(files).page(
                AGENT, ORIGIN + target, headers=html, body=f"<p>{markup}".encode(), now=now
            )
            assert (
                "robots.visit-time" in [reason.rule for reason in page.uses["crawl"].reasons]
            ) is is_late, target


@pytest.mark.requirement("AUTX-10", "MEET-6")
@pytest.mark.parametrize("target", ["/a", "/x/../a"])
@pytest.mark.parametrize(
    "files",
    [
        {"/automation-preferences.txt": f"{GET}session-ttl: 1h\n"},
        {
            "/robots.txt": "ACAP-crawler: *\nACAP-allow-crawl: /\n",
            "/automation-preferences.txt": f"{GET}session-ttl: 1h\n",
        },
    ],
    ids=["alone", "with ACAP"],
)
def test_a_session_is_as_old_as_it_is_then(files: Mapping[str, str], target: str) -> None:
    asked, session = (
        site(files),
        Session(human_initiated=True, carries=frozenset(("cookie",)), started_at=MIDNIGHT),
    )
    for age, rules in ((timedelta(hours=1), False), (timedelta(hours=1, seconds=1), True)):
        decision = asked.access(
            AGENT, ORIGIN + target, session=session, headers={"Cookie": "a=b"}, now=MIDNIGHT + age
        )
        assert ("automation.session-ttl" in [reason.rule for reason in decision.reasons]) is rules
        assert decision.verdict is (Verdict.DENY if rules else Verdict.ALLOW)


@pytest.mark.requirement("AUTX-10", "AUTX-11", "MEET-6")
@pytest.mark.parametrize("target", ["/a", "/x/../a"])
def test_a_session_is_as_old_as_it_is_when_the_page_comes(target: str) -> None:
    facts = Facts(session=Session(human_initiated=True, started_at=MIDNIGHT))
    body = (
        b'<script type="application/ld+json">{"@type": "AutomationPolicyAnnotation", '
        b'"sessionTTL": "1h"}</script>'
    )
    for age, verdict in (
        (timedelta(hours=1), Verdict.ALLOW),
        (timedelta(hours=1, seconds=1), Verdict.DENY),
    ):
        now, html = MIDNIGHT + age, ((b"Content-Type", b"text/html"),)
        page = site({}).page(AGENT, ORIGIN + target, headers=html, body=body, facts=facts, now=now)
        assert page.uses["crawl"].verdict is verdict


@pytest.mark.requirement("META-2")
@pytest.mark.parametrize("is_field", [True, False])
def test_what_is_unavailable_after_a_date_is_so_then(is_field: bool) -> None:
    agent, date = (
        Agent("examplebot", uses=("index",), defaults={"index": Verdict.ALLOW}),
        "unavailable_after: 2040-01-01T00:00:00Z",
    )
    headers = [
        (b"Content-Type", b"text/html"),
        *([(b"X-Robots-Tag", date.encode())] if is_field else []),
    ]
    body = (
        b""
        if is_field
        else f'<html><head><meta name=robots content="{date}"></head></html>'.encode()
    )
    for year, verdict in ((2026, Verdict.ALLOW), (2041, Verdict.DENY)):
        now = datetime(year, 6, 1, tzinfo=UTC)
        assert (
            site({})
            .page(agent, f"{ORIGIN}/a", headers=headers, body=body, now=now)
            .uses["index"]
            .verdict
            is verdict
        )
        refused = site({}).refused_by_headers(agent, f"{ORIGIN}/a", headers, now)
        assert (refused is not None) is (is_field and verdict is Verdict.DENY)
