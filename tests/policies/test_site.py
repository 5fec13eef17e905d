"""A site and a page as a whole: missing files, the texts of decisions, and the stated uses."""

from __future__ import annotations

import gc
import time
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256

import pytest

from comity.policies import (
    Agent,
    Decision,
    Fetched,
    Finding,
    PolicyError,
    Reason,
    Site,
    Source,
    UseDecision,
    Verdict,
)
from comity.policies.answers.fetched import Availability, availability
from comity.policies.answers.rule import RULES
from comity.policies.formats.robots import reading
from comity.policies.syntax.printable import MAX_SHOWN, printable
from comity.policies.syntax.urls import origin_of, target_of

AGENT = Agent("examplebot")
URL = "https://example.com/page"


def site(body: bytes | Fetched) -> Site:
    return Site.from_files("https://example.com", {"/robots.txt": body})


OUTCOMES = [
    (Fetched(status=200, body=b"User-agent: *"), Availability.PRESENT),
    (Fetched(status=204), Availability.PRESENT),
    (
        Fetched(status=200, body=b"x", headers=((b"content-type", b"text/HTML; charset=utf-8"),)),
        Availability.PRESENT,
    ),
    (
        Fetched(status=200, body=b"<p>x", headers=((b"content-type", b"text/plain"),)),
        Availability.ABSENT,
    ),
    (Fetched(status=200, body=b"\xef\xbb\xbf \n<!DOCTYPE html>"), Availability.ABSENT),
    (Fetched(status=200, body=b"<html lang=en>"), Availability.ABSENT),
    (Fetched(status=206, body=b"User-agent: *"), Availability.UNREACHABLE),
    (Fetched(status=301), Availability.ABSENT),
    (Fetched(status=401), Availability.ABSENT),
    (Fetched(status=404, body=b"User-agent: *\nDisallow: /"), Availability.ABSENT),
    (Fetched(status=410), Availability.ABSENT),
    (Fetched(status=429), Availability.UNREACHABLE),
    (Fetched(status=500), Availability.UNREACHABLE),
    (Fetched(status=599), Availability.UNREACHABLE),
    (Fetched(status=600), Availability.UNREACHABLE),
    (Fetched(status=100), Availability.UNREACHABLE),
    (Fetched(status=0, error="refused"), Availability.UNREACHABLE),
    (Fetched(status=200, body=b"User-agent: *", error="truncated"), Availability.UNREACHABLE),
]


@pytest.mark.requirement("RFC-5", "RFC-6", "RFC-7", "RFC-10")
@pytest.mark.parametrize(
    ("fetched", "want"),
    OUTCOMES,
    ids=[f"{fetched.status}-{want.value}" for fetched, want in OUTCOMES],
)
def test_what_an_outcome_means(fetched: Fetched, want: Availability) -> None:
    assert availability(fetched) is want
    decision = site(fetched).access(AGENT, URL)
    assert (decision.verdict is Verdict.DENY) == (want is Availability.UNREACHABLE)


@pytest.mark.requirement("RFC-6", "RFC-7", "RFC-10", "WHY-1")
@pytest.mark.parametrize(
    ("fetched", "rule", "text"),
    [
        (Fetched(status=404), "robots.unavailable", "HTTP status 404"),
        (Fetched(status=200, body=b"<html>"), "robots.unavailable", "an HTML page"),
        (Fetched(status=503), "robots.unreachable", "HTTP status 503"),
        (Fetched(status=0, error="reset\x1b[2J"), "robots.unreachable", "reset\ufffd[2J"),
    ],
)
def test_the_reason_without_a_file(fetched: Fetched, rule: str, text: str) -> None:
    found = site(fetched)
    [reason] = found.access(AGENT, URL).reasons
    assert (reason.rule, reason.source.text, reason.source.part, reason.source.line) == (
        rule,
        text,
        "status",
        0,
    )
    assert found.considered(AGENT, URL) == ()
    assert found.rates(AGENT) is None
    assert (found.findings, found.sitemaps) == ((), ())


RESERVED = b'[{"location": "/", "tdm-reservation": 1}]'
PROHIBITED = (
    b'<content url="/"><license><prohibits type="usage">ai-train</prohibits></license></content>'
)
LICENCE = b'<rsl xmlns="https://rslstandard.org/rsl">%s</rsl>' % PROHIBITED
REFUSING = [
    ("/.well-known/tdmrep.json", RESERVED, "tdmrep.reserved"),
    (
        "/ai.txt",
        b"User-agent: *\n  Path: / html\n    Element: *\n      Disallow: Train\n",
        "ait.disallow",
    ),
    ("/ai.txt", b"User-agent: *\nDisallow: /\n", "spawning.disallow"),
    ("/license.xml", LICENCE, "rsl.prohibits"),
]


@pytest.mark.requirement("RFC-10")
@pytest.mark.parametrize(("path", "body", "rule"), REFUSING)
def test_every_file_is_known_by_its_content(path: str, body: bytes, rule: str) -> None:
    agent = Agent("examplebot", uses=("train",), defaults={"train": Verdict.ALLOW})

    def rules(body: bytes, media_type: bytes) -> list[str]:
        served = Fetched(status=200, body=body, headers=((b"Content-Type", media_type),))
        found = Site.from_files(
            "https://example.com",
            {"/robots.txt": b"License: /license.xml\n" * (path == "/license.xml"), path: served},
        )
        return [
            reason.rule
            for reason in found.page(agent, URL, headers=[(b"Content-Type", b"text/html")])
            .uses["train"]
            .reasons
        ]

    for media_type in (
        b"text/html; charset=utf-8",
        b"application/xhtml+xml",
        b"application/octet-stream",
    ):
        assert rules(body, media_type) == [rule]
    page = b"<!DOCTYPE html>\n<pre>\n" + body
    assert rules(page, b"text/plain") == [
        "rsl.unlicensed" if path == "/license.xml" else "comity.default"
    ]


def test_a_file_that_is_not_given_is_not_there() -> None:
    assert (
        Site.from_files("https://example.com", {}).access(AGENT, URL).reasons[0].rule
        == "robots.unavailable"
    )


@pytest.mark.requirement("WHY-1")
def test_a_reason_names_file_hash_and_time() -> None:
    at = datetime(2026, 11, 21, tzinfo=UTC)
    decision = site(Fetched(status=200, body=b"User-agent: *\nDisallow: /", fetched_at=at)).access(
        AGENT, URL
    )
    source = decision.reasons[0].source
    assert source.url == "https://example.com/robots.txt"
    assert source.fetched_at == at
    assert len(source.sha256) == 64
    assert str(decision) == (
        "deny: robots.disallow (RFC 9309 section-2.2.2) at https://example.com/robots.txt:2: "
        "'Disallow: /'"
    )


@pytest.mark.requirement("WHY-2")
def test_a_tag_names_all_files_with_status_hash_and_time() -> None:
    at = datetime(2026, 11, 21, tzinfo=UTC)
    files = {
        "/robots.txt": Fetched(status=200, body=b"x", fetched_at=at),
        "/ai.txt": Fetched(status=404, body=b"", fetched_at=at),
    }
    policies = Site.from_files("https://example.com", files).policies
    assert policies["https://example.com/robots.txt"] == {
        "status": 200,
        "sha256": sha256(b"x").hexdigest(),
        "fetched_at": "2026-11-21T00:00:00+00:00",
    }
    assert policies["https://example.com/ai.txt"] == {
        "status": 404,
        "sha256": None,
        "fetched_at": "2026-11-21T00:00:00+00:00",
    }
    not_there = {"status": 404, "sha256": None, "fetched_at": None}
    assert policies["https://example.com/automation-preferences.txt"] == not_there


def test_licenses_that_robots_txt_refers_to_for_the_agent() -> None:
    lines = (
        b"User-agent: *\nDisallow:\nLicense: /license.xml\n\nUser-agent: other\n"
        b"License: https://example.org/other.xml\nDisallow:\n"
    )
    assert site(lines).licenses(AGENT) == ("https://example.com/license.xml",)
    assert site(lines).licenses(Agent("other")) == ("https://example.org/other.xml",)
    assert site(b"").licenses(AGENT) == ()


@pytest.mark.requirement("WHY-1")
def test_a_reason_of_a_use_names_the_place_of_its_statement() -> None:
    """It is a line of a file with hash and time, or a part of the response."""
    at = datetime(2026, 11, 21, tzinfo=UTC)
    files = {
        "/robots.txt": Fetched(
            status=200, body=b"User-agent: *\nDisallow:\nUsage: ai=n\n", fetched_at=at
        ),
        "/.well-known/tdmrep.json": Fetched(
            status=200,
            body=b'[\n{"location": "/", "tdm-reservation": 1}\n]',
            fetched_at=at,
            headers=((b"Content-Type", b"application/json"),),
        ),
    }
    headers = [
        (b"Content-Type", b"text/html"),
        (b"X-Robots-Tag", b"noindex"),
        (b"Content-Usage", b"train-ai=n"),
    ]
    body = b"<html><head>\n<meta name=robots content=noarchive></head></html>"
    page = Site.from_files("https://example.com", files).page(
        AGENT, URL, headers=headers, body=body
    )
    reasons = [reason for use in ("train", *page.uses) for reason in page.uses[use].reasons]
    tdmrep = "https://example.com/.well-known/tdmrep.json"
    assert {
        (each.rule, each.source.url, each.source.part, each.source.line, each.source.text)
        for each in reasons
    } >= {
        ("usage.disallow", "https://example.com/robots.txt", "body", 3, "Usage: ai=n"),
        ("tdmrep.reserved", tdmrep, "body", 2, '{"location": "/", "tdm-reservation": 1}'),
        ("robots-meta.disallow", URL, "meta robots", 2, "noarchive"),
        ("robots-meta.disallow", URL, "header X-Robots-Tag", 0, "noindex"),
        ("content-usage.disallow", URL, "header Content-Usage", 0, "train-ai=n"),
    }
    for rule, file in (
        ("usage.disallow", files["/robots.txt"]),
        ("tdmrep.reserved", files["/.well-known/tdmrep.json"]),
    ):
        sources = {
            (each.source.fetched_at, each.source.sha256) for each in reasons if each.rule == rule
        }
        assert sources == {(at, sha256(file.body).hexdigest())}


def test_decisions_per_line_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_DECIDED", 64)
    body = b"User-agent: *\n" + b"".join(b"Disallow: /%d/\n" % number for number in range(80))
    found = site(body)

    def count() -> int:
        gc.collect()
        return sum(isinstance(each, Decision) for each in gc.get_objects())

    before = count()
    lines = [
        found.access(AGENT, f"https://example.com/{number}/").reasons[0].source.line
        for number in range(80)
    ]
    assert lines == list(range(2, 82))
    assert count() - before <= 64


@pytest.mark.requirement("RATE-1")
@pytest.mark.parametrize(
    ("hours", "clock", "opens"),
    [
        ("0600-0845", "2026-11-21T06:00", None),
        ("0600-0845", "2026-11-21T07:00", None),
        ("0600-0845", "2026-11-21T05:59", "2026-11-21T06:00"),
        ("0600-0845", "2026-11-21T08:45", "2026-11-22T06:00"),
        ("0630-0845", "2026-11-21T08:44", None),
        ("0630-0845", "2026-11-21T08:46", "2026-11-22T06:30"),
        ("2200-0200", "2026-11-21T01:00", None),
        ("2200-0200", "2026-11-21T02:01", "2026-11-21T22:00"),
        ("2200-0200", "2026-11-21T12:00", "2026-11-21T22:00"),
        ("0600-0600", "2026-11-21T12:00", None),
    ],
)
def test_visit_time(hours: str, clock: str, opens: str | None) -> None:
    now = datetime.fromisoformat(clock).replace(tzinfo=UTC)
    found = site(f"User-agent: *\nVisit-time: {hours}\nDisallow: /private".encode())
    decision = found.access(AGENT, URL, now=now)
    if opens is None:
        assert decision.verdict is Verdict.ALLOW
        return
    assert decision.verdict is Verdict.DEFER
    assert decision.not_before == datetime.fromisoformat(opens).replace(tzinfo=UTC)
    assert decision.reasons[0].rule == "robots.visit-time"
    assert (decision.reasons[0].source.line, decision.reasons[0].source.text) == (
        2,
        f"Visit-time: {hours}",
    )
    assert str(decision).startswith(f"defer until {opens}:00+00:00: robots.visit-time")
    assert found.access(AGENT, "https://example.com/private", now=now).verdict is Verdict.DENY


@pytest.mark.requirement("RFC-11")
def test_visit_times_are_in_utc_wherever_the_crawler_is(monkeypatch: pytest.MonkeyPatch) -> None:
    found = site(b"User-agent: *\nVisit-time: 0600-0845")
    for zone in ("XXX-13", "XXX11", "UTC0"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        for hour, verdict in (
            (6, Verdict.ALLOW),
            (8, Verdict.ALLOW),
            (9, Verdict.DEFER),
            (5, Verdict.DEFER),
        ):
            now = datetime(2026, 11, 21, hour, tzinfo=UTC).astimezone(timezone(timedelta(hours=9)))
            assert found.access(AGENT, URL, now=now).verdict is verdict
    monkeypatch.undo()
    time.tzset()


def test_sitemaps_that_are_no_url_are_left_out() -> None:
    assert site(b"Sitemap: http://[x\nSitemap: /s.xml").sitemaps == ("https://example.com/s.xml",)


def test_uses_that_nobody_states() -> None:
    agent = Agent("examplebot", uses=("train",), defaults={"index": Verdict.ALLOW})
    page = site(b"").page(agent, URL, body=b"text")
    assert list(page.uses) == ["crawl", "follow", "index", "preserve", "present", "train"]
    assert len(page.uses) == 6
    told = {
        use: (page.uses[use].verdict.value, page.uses[use].stated)
        for use in ("crawl", "follow", "index", "train", "any")
    }
    assert told == {
        "crawl": ("allow", True),
        "follow": ("allow", False),
        "index": ("allow", False),
        "train": ("deny", False),
        "any": ("deny", False),
    }
    assert page.follow.verdict is Verdict.ALLOW
    assert page.redacted(("index",)) == b"text"
    assert page.redacted(("index", "train")) == b""
    assert page.elements == ()


def test_a_page_keeps_the_decision_that_it_was_asked_for_by() -> None:
    asked = site(b"User-agent: *\nAllow: /page").access(AGENT, URL)
    page = site(Fetched(status=503)).page(AGENT, URL, access=asked)
    assert page.uses["crawl"].reasons == asked.reasons


@pytest.mark.parametrize("meta", ["tdm-reservation", "robots"])
def test_what_a_page_says_of_its_uses_says_nothing_of_the_request(meta: str) -> None:
    """Only statements about requests (an annotation) make a page decide again about its request."""
    reason = Reason(rule="comity.no-site", source=Source(url=URL))
    asked_by = Decision(verdict=Verdict.ALLOW, reasons=(reason,))
    body = f'<meta name="{meta}" content="1">'.encode()
    page = site(b"User-agent: *\nDisallow: /").page(AGENT, URL, body=body, access=asked_by)
    assert page.uses["crawl"].reasons == (reason,)


def test_decisions_have_no_truth_value() -> None:
    reason = Reason(rule="robots.disallow", source=Source(url="https://example.com/robots.txt"))
    for decision in (
        Decision(verdict=Verdict.DENY, reasons=(reason,)),
        UseDecision(verdict=Verdict.DENY, stated=True, reasons=(reason,)),
    ):
        with pytest.raises(TypeError, match=r"compare \.verdict"):
            bool(decision)
    assert (
        str(decision)
        == "deny: robots.disallow (RFC 9309 section-2.2.2) at https://example.com/robots.txt"
    )


def test_a_finding_says_where() -> None:
    finding = Finding(
        rule="robots.path", message="m", url="https://example.com/robots.txt", line=3, column=9
    )
    assert str(finding) == "https://example.com/robots.txt:3:9: robots.path: m"
    assert str(Finding(rule="robots.path", message="m")) == "robots.path: m"


def test_every_rule_has_a_specification_and_a_summary() -> None:
    assert [rule for rule, told in RULES.items() if not (told.spec and told.summary)] == []


def test_an_agent_is_a_product_token() -> None:
    with pytest.raises(PolicyError, match="`two words` is not a product token"):
        Agent("two words")


@pytest.mark.parametrize(
    ("url", "origin", "target"),
    [
        ("https://EXAMPLE.com:443/a?b#c", "https://example.com", "/a?b"),
        ("http://example.com:8080", "http://example.com:8080", "/"),
        ("http://example.com:08080/", "http://example.com:8080", "/"),
        ("https://example.com:59999?q", "https://example.com:59999", "/?q"),
        ("https://example.com:65535/", "https://example.com:65535", "/"),
        ("http://example.com:443/", "http://example.com:443", "/"),
        ("http://user:secret@example.com/", "http://example.com", "/"),
        ("https://müller.example/", "https://xn--mller-kva.example", "/"),
        ("http://[::1]:80/x", "http://[::1]", "/x"),
        ("https://example.com?q", "https://example.com", "/?q"),
        ("https://example.com/?", "https://example.com", "/?"),
        (
            "https://example.com/a?u=https://other.example/b",
            "https://example.com",
            "/a?u=https://other.example/b",
        ),
        ("https://example.com?u=/x", "https://example.com", "/?u=/x"),
        ("http://a/b/c?d/e?f", "http://a", "/b/c?d/e?f"),
        ("http://a?b?c", "http://a", "/?b?c"),
        ("http://a?b/c", "http://a", "/?b/c"),
        ("http://a/?/b", "http://a", "/?/b"),
        ("http://a", "http://a", "/"),
    ],
)
def test_origin_and_target(url: str, origin: str, target: str) -> None:
    assert (origin_of(url), target_of(url)) == (origin, target)


def test_a_target_is_its_own_target() -> None:
    assert [target_of(target) for target in ("/a?b", "a", "?q=http://x/")] == [
        "/a?b",
        "/a",
        "/?q=http://x/",
    ]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "https:///x",
        "https://example.com:x/",
        "https://example.com:65536/",
        "https://example.com:1000x/",
        "https://[x/",
        "mailto:a@b",
        "https://a.example\\@example.com/",
        "",
    ],
)
def test_what_has_no_origin(url: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        origin_of(url)


@pytest.mark.requirement("SEC-4")
def test_printable() -> None:
    assert printable(b" a\tb ") == "a b"
    assert printable("a\u00a0b\u3000c") == "a b c"
    assert printable(b"\x1b[31m\x00\xe2\x80\xae\xe2\x80\xa8x") == "\ufffd[31m\ufffd\ufffd\ufffdx"
    assert printable("é日".encode()) == "é日"
    assert printable(b"\xff") == "\ufffd"
    assert len(printable(b"x" * 1000)) == MAX_SHOWN
