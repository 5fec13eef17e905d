"""Fixes of lines in robots.txt: they change no decision, and mend their finding."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from comity.policies import Agent, Finding, Site
from comity.policies.answers.fetched import Fetched
from comity.policies.formats import FORMATS, ROBOTS_LINES
from comity.policies.formats.authoring import Draft, Fix, apply
from comity.policies.formats.file import SiteFiles

ORIGIN = "https://example.com"
URL = f"{ORIGIN}/robots.txt"
AGENTS = [Agent(token) for token in ("foo", "bar", "foobot", "other")]
PATHS = ("/", "/a", "/ab", "/abc", "/a/b", "/b", "/b/a.css", "/a*", "/ab%20c", "/A")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
USES = (
    "crawl",
    "index",
    "present",
    "present-snippet",
    "train",
    "ai-train",
    "ai-input",
    "search",
    "tdm",
    "train-genai",
    "other",
)
IN_ROBOTS = ("robots", "acap", "aipref", "content-signals")
RULES = {
    name: mend
    for each in FORMATS
    if each.name in IN_ROBOTS
    for name, mend in each.authoring.fixes.items()
}

AGENT_LINES = st.builds(
    "{}{}{}".format,
    st.sampled_from(
        ["User-agent: ", "user-agent:", "Useragent: ", "User agent ", "  USER-AGENT : "]
    ),
    st.sampled_from(["*", "foo", "bar", "Foo", "foobot"]),
    st.sampled_from(["", "", "/1.0", "\xa0", " bar", "*", ", bar", "  # why"]),
)
PATTERNS = st.one_of(
    st.text(alphabet="ab/*$", max_size=4).map("/{}".format),
    st.sampled_from(
        ["", "*", "a", "/*", "/a*", "/ab**", "/a%2A", "/ab*", "/a b", '"/a"', "/%61", "/a*$"]
    ),
)
RULE_LINES = st.builds(
    "{}{}{}".format,
    st.sampled_from(
        ["Disallow: ", "Allow: ", "Disallow:", "allow: ", "Disalow: ", "Disallow ", " Allow : "]
    ),
    PATTERNS,
    st.sampled_from(["", "", "", " # why", "#b"]),
)
RESOURCES = st.sampled_from(["/", "/a", "/a*", "/a/", "/b", "the-acap:resource-set:s", "", "/a /b"])
ACAP_LINES = st.one_of(
    st.builds(
        "ACAP-crawler{}{}".format,
        st.sampled_from([": ", " ", ":"]),
        st.sampled_from(["*", "foo", "foo, bar", ""]),
    ),
    st.builds(
        "ACAP-{}-{}{}{}{}".format,
        st.sampled_from(["allow", "disallow"]),
        st.sampled_from(["crawl", "index", "present", "other", "(u)", "unknown"]),
        st.sampled_from([": ", " ", ": "]),
        RESOURCES,
        st.sampled_from(["", "", " time-limit=3-days", " # why"]),
    ),
    st.sampled_from(
        [
            "ACAP-resource-set: s /a /b",
            "ACAP-resource-set s /a",
            "ACAP-qualified-usage: u index time-limit=1-days",
            "ACAP-qualified-usage u index time-limit=1-days",
            "ACAP-usage-purpose: research",
            "ACAP-usage-purpose research",
            "ACAP-ignore-conventional-records",
            "ACAP-ignore-conventional-records yes",
        ]
    ),
)
OTHER_LINES = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "# comment",
            "Sitemap: /s.xml",
            "Sitemaps: /s.xml",
            "Crawl delay: 5",
            "Crawl-delay 7",
            "Disallow",
        ]
    ),
    st.builds(
        "{}: {}".format,
        st.sampled_from(["Usage", "Usage-Pref"]),
        st.sampled_from(["tdm=n", "ai=y", "tdm=y, tdm=n"]),
    ),
    st.sampled_from(
        [
            "Content-Usage: train-ai=n",
            "Content-Usage: /a train-ai=y",
            "Content-Usage: /a train-ai=n, search=y",
        ]
    ),
    st.builds(
        "{}: {}{}".format,
        st.sampled_from(["Content-Signal", "Content-Signals", "content-signal "]),
        st.lists(
            st.sampled_from(
                [
                    "ai_train=no",
                    "ai-train=yes",
                    "search = yes",
                    '"search"=no',
                    "use=full",
                    "x=no",
                    "ai-input=n",
                ]
            ),
            min_size=1,
            max_size=3,
        ).flatmap(
            lambda signals: st.sampled_from([", ", ";", " ", ","]).map(
                lambda separator: separator.join(signals)
            )
        ),
        st.sampled_from(["", " # why"]),
    ),
)
FILES = st.builds(
    lambda lines, end, last: end.join(lines).encode() + (end.encode() if last else b""),
    st.lists(st.one_of(AGENT_LINES, RULE_LINES, RULE_LINES, ACAP_LINES, OTHER_LINES), max_size=14),
    st.sampled_from(["\n", "\n", "\r\n", "\r"]),
    st.booleans(),
)


def findings_of(body: bytes) -> list[Finding]:
    files = SiteFiles(ORIGIN, {URL: Fetched(status=200, body=body)}, robots_lines=ROBOTS_LINES)
    findings: list[Finding] = []
    for each in FORMATS:
        reading = each.read_site(files) if each.read_site else None
        findings += reading.findings if reading else ()
        findings += each.authoring.check_site(files) if each.authoring.check_site else ()
    return findings


def fixes_of(body: bytes) -> list[tuple[Finding, Fix]]:
    draft = Draft(URL, body)
    mended = (
        (finding, RULES[finding.rule](draft, finding))
        for finding in findings_of(body)
        if finding.rule in RULES
    )
    return [(finding, fix) for finding, fix in mended if fix and not fix.changes_decisions]


def decisions(body: bytes) -> list[object]:
    """Return the decisions without their lines."""
    site = Site.from_files(ORIGIN, {"/robots.txt": body})
    decided: list[object] = [site.sitemaps, site.crawler_names]
    for agent in AGENTS:
        decided.append(site.rates(agent))
        decided.append([(request.action, request.url) for request in site.requests(agent)])
        for path in PATHS:
            url = ORIGIN + path
            decided.append(site.access(agent, url).verdict)
            page = site.page(agent, url, now=NOW)
            for use in USES:
                decision = page.uses[use]
                decided.append((decision.verdict, decision.stated, decision.restrictions()))
    return decided


@given(FILES)
@example(b"User-agent: *\nDisallow: /a*\nAllow: /*\n")
@example(b"User-agent: *\nDisallow: /a\nDisallow: /a\nUser-agent: foo\nAllow: /")
def test_fixes_change_no_decision_and_mend_what_they_are_for(body: bytes) -> None:
    mended = body
    for _ in range(4):
        fixes = fixes_of(mended)
        if not fixes:
            break
        after, made = apply(mended, [fix for _, fix in fixes])
        assert made
        assert after != mended
        assert decisions(after) == decisions(body)
        mended = after
    assert fixes_of(mended) == []


# Small files in which groups often share agents, so that many rules are repeated or covered.
GROUPED = st.lists(
    st.tuples(
        st.lists(
            st.sampled_from(["User-agent: *", "User-agent: foo", "User-agent: bar"]),
            min_size=1,
            max_size=2,
        ),
        st.lists(
            st.sampled_from(
                [
                    "Disallow: /a",
                    "Disallow: /ab",
                    "Disallow: /abc",
                    "Disallow: /",
                    "Disallow:",
                    "Allow: /a",
                    "Allow: /ab",
                    "Crawl-delay: 5",
                    "Crawl-delay: 10",
                    "Crawl-delay: soon",
                    "Request-rate: 1/20",
                    "Content-Usage: train-ai=n",
                    "DisallowAITraining: /a",
                    "License: https://example.com/rsl.xml",
                    "Sitemap:",
                    "ACAP-crawler: foo",
                    "ACAP-crawler: bar",
                    "ACAP-disallow-crawl: /a",
                    "ACAP-disallow-crawl: /b",
                ]
            ),
            max_size=4,
        ),
    ),
    min_size=2,
    max_size=4,
).map(lambda groups: "\n\n".join("\n".join(agents + lines) for agents, lines in groups).encode())


@given(GROUPED)
@example(
    b"User-agent: foo\nDisallow: /a\n\nUser-agent: foo\nDisallow: /ab\n\nUser-agent: bar\nDisallow: /"
)
@example(
    b"User-agent: foo\nDisallow: /a\n\nUser-agent: foo\nDisallow: /ab\nDisallow: /abc\n\n"
    b"User-agent: bar\nDisallow: /"
)
def test_fixes_leave_every_group_its_agents(body: bytes) -> None:
    mended, names = body, agent_runs(body)
    while fixes := fixes_of(mended):
        mended, _ = apply(mended, [fix for _, fix in fixes])
        assert agent_runs(mended) == names
        assert decisions(mended) == decisions(body)


def agent_runs(body: bytes) -> list[list[bytes]]:
    """Return the agents of each group, as a reader sees them that knows only two rules."""
    runs: list[list[bytes]] = []
    is_open = False
    for line in body.splitlines():
        name, _, value = line.partition(b": ")
        if name == b"User-agent":
            runs = runs if is_open else [*runs, []]
            runs[-1].append(value)
        is_open = name == b"User-agent" or (
            is_open and not line.startswith((b"Allow:", b"Disallow:"))
        )
    return runs


OUTSIDE = [
    (each, mend)
    for each in FORMATS
    for rule, mend in each.authoring.fixes.items()
    if rule.endswith(".outside")
]


@pytest.mark.requirement("IDE-6")
def test_lines_outside_of_all_groups_get_one_group_together() -> None:
    names = sorted({name for each, _ in OUTSIDE for name in each.robots_lines})
    lines = [f"{name}: x" for name in names]
    above, below = "Sitemap: https://example.com/a.xml\r\n\r\n", "\r\n\r\nHost: example.com\r\n"
    joined = "\r\n# why\r\n\r\n".join(lines)
    draft = Draft(URL, f"{above}{joined}{below}".encode())
    fixes = [
        fix
        for line in range(1, draft.lines + 1)
        if draft.line(line).partition(b":")[0].decode() in names
        for _, mend in OUTSIDE
        if (fix := mend(draft, Finding(rule="", message="", url=URL, line=line)))
    ]
    body, made = apply(draft.body, fixes)
    assert len(OUTSIDE) == 4
    assert len(fixes) == 4 * len(names)
    assert len(made) == 1
    assert body.decode() == f"{above}User-agent: *\r\n{joined}\r\nDisallow:{below}"
