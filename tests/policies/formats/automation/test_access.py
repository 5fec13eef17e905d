"""Answers of automation-preferences.txt about requests and pages, with robots.txt and ACAP."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Decision, Fetched, Site, Verdict
from comity.policies.answers.request import Facts
from comity.policies.formats.automation import access as automated
from comity.policies.formats.automation.access import Automated
from comity.policies.formats.automation.grammar import MAX_REPEATED
from comity.policies.site import MAX_AGENTS

ORIGIN = "https://example.com"
AGENT = Agent("examplebot", purposes=("news",), uses=("index",), defaults={"index": Verdict.ALLOW})
GET = "scope: /\nallowed-methods: GET, HEAD\n"
UNAVAILABLE = Fetched(status=503)


def site(automation: str | Fetched | None, robots: str = "") -> Site:
    files: dict[str, Any] = {"/robots.txt": robots.encode()}
    if automation is not None:
        files["/automation-preferences.txt"] = (
            automation if isinstance(automation, Fetched) else automation.encode()
        )
    return Site.from_files(ORIGIN, files)


def verdict_and_rules(decision: Decision) -> tuple[str, list[str]]:
    return decision.verdict.value, [reason.rule for reason in decision.reasons]


ALLOWED = ("allow", ["automation.allow"])


@pytest.mark.parametrize(
    ("automation", "robots", "asked", "expected"),
    [
        pytest.param(None, "", {"method": "POST"}, ("allow", ["robots.no-group"]), id="no file"),
        pytest.param(
            "scope: /a\n",
            "",
            {"method": "POST"},
            ("allow", ["robots.no-group"]),
            id="no group matches",
        ),
        pytest.param(GET, "", {}, ALLOWED, id="listed"),
        pytest.param(GET, "", {"method": "post"}, ("deny", ["automation.method"]), id="not listed"),
        pytest.param("scope: /\n", "", {}, ("deny", ["automation.method"]), id="none listed"),
        pytest.param(
            GET,
            "User-agent: *\nAllow: /",
            {},
            ("allow", ["robots.allow", "automation.allow"]),
            id="both permit, both are named",
        ),
        pytest.param(
            GET,
            "User-agent: *\nDisallow: /",
            {},
            ("deny", ["robots.disallow"]),
            id="it widens nothing of robots.txt",
        ),
        pytest.param(
            GET,
            "ACAP-crawler: *\nACAP-disallow-crawl: /",
            {},
            ("deny", ["acap.disallow"]),
            id="it widens nothing of ACAP",
        ),
        pytest.param(
            GET,
            "User-agent: *\nDisallow: /",
            {"method": "PUT"},
            ("deny", ["robots.disallow", "automation.method"]),
            id="both refuse",
        ),
        pytest.param(
            GET,
            "User-agent: *\nAllow: /",
            {"method": "PUT"},
            ("deny", ["automation.method"]),
            id="robots.txt allows",
        ),
        pytest.param(f"{GET}allowed-purposes: news", "", {}, ALLOWED, id="the agent's purpose"),
        pytest.param(
            f"{GET}allowed-purposes: news",
            "",
            {"purposes": ["spam"]},
            ("deny", ["automation.purpose"]),
            id="that of the request",
        ),
        pytest.param(
            GET,
            "",
            {"headers": {"Accept": "application/json"}},
            ("deny", ["automation.api"]),
            id="inferred",
        ),
        pytest.param(
            GET,
            "",
            {"headers": {"Accept": "application/json"}, "kind": "document"},
            ALLOWED,
            id="said otherwise",
        ),
        pytest.param(
            GET,
            "",
            {"kind": ("api", "xhr")},
            ("deny", ["automation.api", "automation.xhr"]),
            id="two kinds",
        ),
        pytest.param(
            f"{GET}api-automation: with-key-only",
            "",
            {"kind": "api", "headers": {"x-api-KEY": "k"}},
            ALLOWED,
            id="with a key",
        ),
        pytest.param(
            "\0", "", {"method": "POST"}, ("deny", ["automation.unreachable"]), id="rejected"
        ),
        pytest.param("\0", "", {}, ("allow", ["robots.no-group"]), id="rejected, plain"),
        pytest.param(UNAVAILABLE, "", {}, ("allow", ["robots.no-group"]), id="fails, GET"),
        pytest.param(
            UNAVAILABLE, "", {"method": "HEAD"}, ("allow", ["robots.no-group"]), id="fails, HEAD"
        ),
        pytest.param(
            UNAVAILABLE,
            "",
            {"method": "DELETE"},
            ("deny", ["automation.unreachable"]),
            id="fails, DELETE",
        ),
        pytest.param(
            UNAVAILABLE, "", {"kind": "api"}, ("deny", ["automation.unreachable"]), id="fails, API"
        ),
        pytest.param(
            UNAVAILABLE,
            "",
            {"automations": ["cdp"]},
            ("deny", ["automation.unreachable"]),
            id="fails, browser",
        ),
        pytest.param(
            f"{GET}\n" + "scope: /b\n\n" * 1001,
            "",
            {"method": "POST"},
            ("deny", ["automation.unread"]),
            id="more than is read",
        ),
        pytest.param(
            f"{GET}\n" + "scope: /b\n\n" * 1001, "", {}, ALLOWED, id="more than is read, plain"
        ),
    ],
)
@pytest.mark.requirement("AUTO-12", "AUTO-14", "AUTO-20", "AUTO-13", "AUTO-4", "MEET-1")
def test_access(
    automation: str | Fetched | None,
    robots: str,
    asked: dict[str, Any],
    expected: tuple[str, list[str]],
) -> None:
    assert (
        verdict_and_rules(site(automation, robots).access(AGENT, f"{ORIGIN}/x", **asked))
        == expected
    )


CLOSED = b"scope: /x\nallowed-methods:\n\nscope: /y\nallowed-methods: GET, POST\n"


@pytest.mark.requirement("RFC-10", "AUTO-1")
@pytest.mark.parametrize(
    ("media_type", "body", "expected"),
    [
        (b"text/plain", CLOSED, ["automation.method", "automation.allow", "automation.allow"]),
        (b"text/html", CLOSED, ["automation.method", "automation.allow", "automation.allow"]),
        # Not served as text: the file refuses as before, and permits only plain GET and HEAD.
        (
            b"application/json",
            CLOSED,
            ["automation.method", "automation.allow", "automation.unread"],
        ),
        (
            b"text/plain",
            b"<!-- ours -->\n" + CLOSED,
            ["automation.method", "automation.allow", "automation.allow"],
        ),
        (b"text/plain", b"<p>" + CLOSED, ["robots.no-group"] * 3),
        (b"text/plain", b"<pre>\nuser-agent: *\n" + CLOSED, ["robots.no-group"] * 3),
    ],
)
def test_the_content_tells_whether_there_is_a_file(
    media_type: bytes, body: bytes, expected: list[str]
) -> None:
    fetched = Fetched(status=200, headers=((b"Content-Type", media_type),), body=body)
    asked = (("/x", "GET"), ("/y", "GET"), ("/y", "POST"))
    decisions = [
        site(fetched).access(AGENT, ORIGIN + path, method=method) for path, method in asked
    ]
    assert [decision.reasons[0].rule for decision in decisions] == expected


@pytest.mark.requirement("AUTO-20")
def test_the_operator_can_choose_full_refusal() -> None:
    strict = Agent("examplebot", automation_required=True)
    assert verdict_and_rules(site(UNAVAILABLE).access(strict, f"{ORIGIN}/x")) == (
        "deny",
        ["automation.unreachable"],
    )
    assert site(None).access(strict, f"{ORIGIN}/x").verdict is Verdict.ALLOW
    assert site(UNAVAILABLE).access(strict, f"{ORIGIN}/robots.txt").verdict is Verdict.ALLOW


@pytest.mark.requirement("AUTO-14")
@given(
    methods=st.lists(st.sampled_from(["GET", "HEAD", "POST"])),
    robots=st.sampled_from(["", "User-agent: *\nDisallow: /x", "User-agent: *\nAllow: /x"]),
    method=st.sampled_from(["GET", "POST"]),
)
def test_it_never_widens(methods: list[str], robots: str, method: str) -> None:
    alone = site(None, robots).access(AGENT, f"{ORIGIN}/x", method=method)
    both = site(f"scope: /\nallowed-methods: {', '.join(methods)}\n", robots).access(
        AGENT, f"{ORIGIN}/x", method=method
    )
    permitted = method in methods and alone.verdict is Verdict.ALLOW
    assert both.verdict is (Verdict.ALLOW if permitted else Verdict.DENY)


def annotated_page(annotation: str) -> bytes:
    return (
        f'<script type="application/ld+json">{{"@type": "AutomationPolicyAnnotation", '
        f"{annotation}}}</script>"
    ).encode()


def page_of(
    automation: str | None,
    annotation: str,
    facts: Facts = Facts(),  # noqa: B008
    robots: str = "",
) -> Any:
    headers = [(b"Content-Type", b"text/html")]
    return site(automation, robots).page(
        AGENT, f"{ORIGIN}/x", headers=headers, body=annotated_page(annotation), facts=facts
    )


@pytest.mark.parametrize(
    ("automation", "annotation", "facts", "expected"),
    [
        pytest.param(None, '"allowedPurposes": []', Facts(), "automation.purpose", id="no file"),
        pytest.param(
            GET,
            '"allowedPurposes": ["spam"]',
            Facts(),
            "automation.purpose",
            id="narrower than the file",
        ),
        pytest.param(GET, '"allowedPurposes": ["news"]', Facts(), None, id="listed"),
        pytest.param(
            f"{GET}allowed-purposes: spam",
            '"allowedPurposes": ["news"]',
            Facts(),
            None,
            id="in place of the file's",
        ),
        pytest.param(
            None, '"allowedAutomations": []', Facts(), None, id="a plain client uses none"
        ),
        pytest.param(
            None,
            '"allowedAutomations": []',
            Facts(automations=("cdp",)),
            "automation.mechanism",
            id="no mechanism",
        ),
    ],
)
@pytest.mark.requirement("AUTX-11")
def test_an_annotation_speaks_for_its_page(
    automation: str | None, annotation: str, facts: Facts, expected: str | None
) -> None:
    page = page_of(automation, annotation, facts)
    for use in ("crawl", "index", "follow"):
        decision = page.uses[use]
        assert decision.verdict is (Verdict.DENY if expected else Verdict.ALLOW), use
    if expected:
        [reason] = page.uses["index"].reasons
        assert (reason.rule, reason.source.url, reason.source.part) == (
            expected,
            f"{ORIGIN}/x",
            "JSON-LD",
        )
        assert reason.source.line == 1
        assert annotation.partition(":")[0] in reason.source.text
        assert page.permissions["uses"]["index"]["stated"] is True


@pytest.mark.requirement("AUTX-11", "AUTO-14")
def test_an_annotation_does_not_widen_robots_txt() -> None:
    page = page_of(None, '"allowedPurposes": ["news"]', robots="User-agent: *\nDisallow: /")
    assert (page.uses["crawl"].verdict, page.uses["crawl"].reasons[0].rule) == (
        Verdict.DENY,
        "robots.disallow",
    )


@pytest.mark.requirement("AUTX-11")
def test_an_annotation_refuses_what_was_permitted_before_the_page_came() -> None:
    of_site, url = site(None), f"{ORIGIN}/x"
    access = of_site.access(AGENT, url)
    page = of_site.page(AGENT, url, body=annotated_page('"allowedPurposes": []'), access=access)
    assert (access.verdict, page.uses["crawl"].verdict) == (Verdict.ALLOW, Verdict.DENY)


@pytest.mark.requirement("AUTX-11", "META-3")
def test_an_annotation_speaks_for_the_images_in_its_page() -> None:
    body = b'<meta name="robots" content="noimageindex">' + annotated_page('"allowedPurposes": []')
    page = site(None).page(AGENT, f"{ORIGIN}/x", body=body)
    assert {reason.rule for reason in page.embedded["preserve"].reasons} == {"automation.purpose"}


@pytest.mark.requirement("AUTX-11")
def test_a_policy_file_that_is_a_page_is_refused_by_its_annotation_alone() -> None:
    for purpose, verdict in (("news", Verdict.ALLOW), ("spam", Verdict.DENY)):
        page = site("").page(
            AGENT, f"{ORIGIN}/robots.txt", body=annotated_page(f'"allowedPurposes": ["{purpose}"]')
        )
        assert page.uses["index"].verdict is verdict


@pytest.mark.requirement("AUTX-11")
def test_what_is_wrong_in_an_annotation_is_told_of_the_page() -> None:
    findings = page_of(GET, '"allowedMethods": ["GET"]').findings
    assert [(finding.rule, finding.url) for finding in findings] == [
        ("automation.annotation", f"{ORIGIN}/x")
    ]


@pytest.mark.requirement("WHY-1")
def test_losing_groups_are_considered() -> None:
    automation = f"{GET}\nscope: /x\nallowed-methods: GET\n"
    reasons = site(automation).considered(AGENT, f"{ORIGIN}/x", Facts(method="HEAD"))
    assert [(reason.rule, reason.source.line) for reason in reasons] == [
        ("automation.method", 5),
        ("automation.allow", 2),
    ]


@pytest.mark.requirement("WHY-1", "AUTO-12")
def test_without_a_file_nothing_of_it_is_considered() -> None:
    for automation in (None, UNAVAILABLE):
        assert site(automation).considered(AGENT, f"{ORIGIN}/x", Facts(method="HEAD")) == ()


@pytest.mark.requirement("AUTO-9")
@pytest.mark.parametrize(
    ("host", "verdict"),
    [("example.com", Verdict.DENY), ("*.com", Verdict.DENY), ("e.org", Verdict.ALLOW)],
)
def test_a_group_binds_on_its_hosts(host: str, verdict: Verdict) -> None:
    asked = site(f"scope: /\nhost: {host}\nallowed-methods: GET\n")
    assert asked.access(AGENT, f"{ORIGIN}/x", method="POST").verdict is verdict


@pytest.mark.requirement("AUTX-7")
@pytest.mark.parametrize(
    ("host", "verdict"), [("example.com", Verdict.DENY), ("example.org", Verdict.ALLOW)]
)
def test_paths_of_pages_not_to_fetch_from_are_those_of_the_site(
    host: str, verdict: Verdict
) -> None:
    asked = site(f"{GET}allow-xhr: open\ndisallow-fetch-from: /a\n")
    assert (
        asked.access(
            AGENT, f"{ORIGIN}/x", kind="xhr", headers={"Referer": f"https://{host}/a"}
        ).verdict
        is verdict
    )


@pytest.mark.requirement("AUTO-18")
def test_what_is_kept_of_agents_is_bounded() -> None:
    asked = site(GET)
    for number in range(MAX_AGENTS + 5):
        assert (
            asked.access(Agent(f"bot{number}"), f"{ORIGIN}/x", method="POST").verdict
            is Verdict.DENY
        )
    assert len(asked._readings.views) <= MAX_AGENTS


def test_a_site_knows_whom_it_names() -> None:
    robots = (
        "User-agent: RobotsBot\nUser-agent: *\nDisallow:\n\nACAP-crawler: Acap Bot/2*\n"
        "ACAP-permissions-reference: /more.txt\n"
    )
    named = Site.from_files(
        ORIGIN,
        {
            "/robots.txt": robots.encode(),
            "/more.txt": b"User-agent: referredbot\nDisallow: /\n",
            "/automation-preferences.txt": b"user-agent: AutomationBot, *\nscope: /\n",
            "/ai.txt": b"User-agent: AiBot\nDisallow: /\n",
        },
    )
    assert named.crawler_names == {
        "robotsbot",
        "acap bot/2*",
        "referredbot",
        "automationbot",
        "aibot",
    }


@pytest.mark.requirement("AUTX-2")
def test_limits_of_two_sites_are_two() -> None:
    """Even if their files are equal."""
    files = {"/automation-preferences.txt": f"{GET}request-limit: 5/minute\n".encode()}
    keys = set()
    for origin in (ORIGIN, "http://example.com", "https://example.com:8080", "https://example.org"):
        [limits] = Site.from_files(origin, files).limits(AGENT, f"{origin}/a")
        assert limits.key.startswith(f"{origin} ")
        keys.add(limits.key)
    assert len(keys) == 4


@pytest.mark.requirement("AUTO-20", "WHY-1")
def test_the_reason_where_nobody_knows_names_the_file_or_its_outcome() -> None:
    for automation, part in (
        (f"{GET}\n" + "scope: /b\n\n" * 1001, "body"),
        (UNAVAILABLE, "status"),
    ):
        [reason] = site(automation).access(AGENT, f"{ORIGIN}/a", method="POST").reasons
        assert (reason.source.url, reason.source.part) == (
            f"{ORIGIN}/automation-preferences.txt",
            part,
        )


@pytest.mark.requirement("AUTO-18")
def test_what_is_kept_of_requests_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automated, "MAX_DECIDED", 3)
    asked = site(GET)
    for number in range(9):
        for method, verdict in (("GET", Verdict.ALLOW), (f"M{number}", Verdict.DENY)):
            assert asked.access(AGENT, f"{ORIGIN}/x", method=method).verdict is verdict
    answers = asked._view(AGENT)._readings["automation"]
    assert isinstance(answers, Automated)
    assert 0 < len(answers._decisions) <= 3


@pytest.mark.requirement("AUTX-2", "AUTX-3", "AUTX-14")
@pytest.mark.parametrize(
    ("line", "value", "advice"),
    [
        ("request-limit: 60/minute", (60, 60), ""),
        ("request-limit: 1/5s", None, "12/minute"),
        ("request-limit: 1/7s", None, "8/minute"),
        ("request-limit: 10 per minute", None, "10/minute"),
        ("request-limit: 2 requests / 10 sec", None, "12/minute"),
        ("request-limit: 5/m", None, "5/minute"),
        ("request-limit: 1 in 2 days", None, ""),
        ("request-limit: 1/1500ms", None, ""),
        ("request-limit: soon", None, ""),
        ("request-limit:", None, ""),
        ("concurrent-limit: 2", 2, ""),
        ("concurrent-limit: 3 requests", 1, "`3`"),
        ("concurrent-limit: -2", 1, "`1`"),
        ("concurrent-limit: 2.5", 1, "`1`"),
        ("concurrent-limit: few", 1, "`1`"),
    ],
)
def test_limits_name_their_lines_and_what_to_write_instead(
    line: str, value: Any, advice: str
) -> None:
    (limits,) = site(f"scope: /\nallowed-methods: GET\n{line}\n").limits(AGENT, f"{ORIGIN}/")
    (limit,) = limits.stated
    assert (limit.name, limit.source.line, limit.source.text) == (line.partition(":")[0], 3, line)
    assert (limit.window[:2] if limit.window else limit.concurrent) == value
    is_unread = value is None or (value == 1 and advice)
    assert bool(limit.advice) is bool(is_unread) is limits.is_unread
    assert advice in limit.advice
    assert ("here" in limit.advice) is bool(advice and value is None)
    (obeyed,) = limits.lines(20.0)
    assert (obeyed.window[:2] if obeyed.window else obeyed.concurrent) == (
        (1, 20.0) if value is None else value
    )


@pytest.mark.requirement("AUTX-14")
def test_a_limit_that_stands_too_often_says_so() -> None:
    body = "scope: /\nallowed-methods: GET\n" + "request-limit: 60/minute\n" * (MAX_REPEATED + 1)
    (limits,) = site(body).limits(AGENT, f"{ORIGIN}/")
    assert limits.unreadable
    assert limits.stated[-1].advice == f"write it at most {MAX_REPEATED} times in a group"
