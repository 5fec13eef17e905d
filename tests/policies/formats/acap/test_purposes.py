"""Purposes of the crawl and of one request (section-2.3.3), in access and in uses.

Rules are compiled once for all purposes.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.policies import Agent, Decision, Site, UseDecision, Verdict
from comity.policies.answers.request import PLAIN
from comity.policies.formats.acap import resolution
from comity.policies.formats.robots.reading import RobotsReading
from comity.policies.syntax.path_patterns import PatternIndex
from tests.selection import examples

ORIGIN = "https://example.com"
NEWS = Agent("examplebot", purposes=("news",))
NOBODY = Agent("examplebot")
ALLOW, DENY = Verdict.ALLOW, Verdict.DENY

TEXT = """\
User-agent: *
Disallow: /closed/
ACAP-crawler: *
ACAP-disallow-crawl: /closed/
ACAP-allow-index: /
ACAP-usage-purpose: news
ACAP-allow-crawl: /closed/
ACAP-disallow-index: /
"""


def site(text: str = TEXT) -> Site:
    return Site.from_files(ORIGIN, {"/robots.txt": text.encode()})


def why(decision: Decision | UseDecision) -> tuple[str, str, int]:
    reason = decision.reasons[0]
    return decision.verdict.value, reason.rule, reason.source.line


@pytest.mark.requirement("ACAP-16", "ACAP-27")
@pytest.mark.parametrize(
    ("acap", "verdict"),
    [
        # the field for the purpose decides for its pattern, and overrides the line of that pattern
        ("disallow-crawl: /a/|usage-purpose: news|allow-crawl: /a/", ALLOW),
        ("disallow-crawl: /a/|usage-purpose: news|allow-crawl: /a/ x=1", DENY),
        ("disallow-crawl: /a/|usage-purpose: n*|allow-crawl: /a/", ALLOW),
        # a field for another purpose or with another pattern does not
        ("disallow-crawl: /a/|usage-purpose: ads|allow-crawl: /a/", DENY),
        ("disallow-crawl: /a/|usage-purpose: news|allow-crawl: /a/b", DENY),
        ("disallow-crawl: /a/|usage-purpose: news|allow-crawl: /A/", DENY),
        # if two fields are for the purpose, either refuses
        ("usage-purpose: news|allow-crawl: /a/|disallow-crawl: /a/", DENY),
        ("usage-purpose: news|allow-crawl: /a/|usage-purpose: n*|disallow-crawl: /a/", DENY),
    ],
)
def test_what_a_permission_for_the_purpose_replaces(acap: str, verdict: Verdict) -> None:
    """A request without the purpose is refused."""
    text = "User-agent: *\nDisallow: /a/\nACAP-crawler: *\n" + "\n".join(
        f"ACAP-{field}" for field in acap.split("|")
    )
    assert site(text).access(NEWS, f"{ORIGIN}/a/b").verdict is verdict
    assert site(text).access(NOBODY, f"{ORIGIN}/a/b").verdict is DENY
    assert site(text).access(NOBODY, f"{ORIGIN}/a/b", purposes=["news"]).verdict is verdict


@pytest.mark.requirement("ACAP-16", "ACAP-27")
def test_what_a_prohibition_for_the_purpose_leaves_to_others() -> None:
    text = (
        "User-agent: *\nDisallow: /a/\nACAP-crawler: *\nACAP-allow-crawl: /a/\n"
        "ACAP-usage-purpose: news\nACAP-disallow-crawl: /a/"
    )
    assert why(site(text).access(NEWS, f"{ORIGIN}/a/b")) == ("deny", "acap.disallow", 6)
    assert why(site(text).access(NOBODY, f"{ORIGIN}/a/b")) == ("allow", "acap.allow", 4)


@pytest.mark.requirement("ACAP-15", "ACAP-16")
@pytest.mark.parametrize(
    ("purposes", "is_news"),
    [
        (None, None),
        ((), False),
        (["news"], True),
        ([" NEWS "], True),
        (["ads"], False),
        (["ads", "news"], True),
        ([""], False),
    ],
)
def test_purposes_of_a_request_take_the_place_of_those_of_the_crawl(
    purposes: list[str] | None, is_news: bool | None
) -> None:
    asked = site()
    for agent in (NEWS, NOBODY):
        decision = asked.access(agent, f"{ORIGIN}/closed/a", purposes=purposes)
        has_news = agent is NEWS if is_news is None else is_news
        assert decision.verdict is (ALLOW if has_news else DENY)
        page = asked.page(
            agent,
            f"{ORIGIN}/open",
            facts=PLAIN._replace(purposes=None if purposes is None else tuple(purposes)),
        )
        assert why(page.uses["index"]) == (
            ("deny", "acap.disallow", 8) if has_news else ("allow", "acap.allow", 5)
        )


@pytest.mark.requirement("ACAP-15", "WHY-1")
def test_the_rules_that_lose_are_those_for_the_purposes() -> None:
    asked = site()
    for purposes, lines in ((("news",), [7, 2, 4]), ((), [2, 4])):
        reasons = asked.considered(NOBODY, f"{ORIGIN}/closed/a", PLAIN._replace(purposes=purposes))
        assert [reason.source.line for reason in reasons] == lines


@pytest.mark.requirement("ACAP-27", "WHY-1")
def test_a_line_that_a_field_replaces_is_among_those_that_lose() -> None:
    text = (
        "User-agent: *\nDisallow: /a/\nAllow: /a/b\nACAP-crawler: *\nACAP-allow-crawl: /a/\n"
        "ACAP-disallow-crawl: /a/b\n"
    )
    asked = site(text)
    for path, lines in (("/a/", [5, 2]), ("/a/b", [6, 3, 2, 5])):
        decision = asked.access(NOBODY, ORIGIN + path)
        reasons = asked.considered(NOBODY, ORIGIN + path)
        assert [reason.source.line for reason in reasons] == lines
        assert reasons[0] == decision.reasons[0]
        assert [reason.rule for reason in reasons if reason.source.line == 2] == ["robots.disallow"]


@pytest.mark.requirement("ACAP-15")
def test_a_site_that_permits_nothing_but_for_a_purpose() -> None:
    agent = Agent("examplebot", uses=("index",))
    asked = site(
        "ACAP-crawler: *\nACAP-disallow-index: /\nACAP-usage-purpose: news\nACAP-allow-index: /a/\n"
    )
    assert asked.unusable(agent) is not None
    assert asked.unusable(agent, ("news",)) is None
    assert asked.unusable(agent, ("ads",)) is not None
    assert asked.unusable(Agent("examplebot", uses=("index",), purposes=("news",))) is None


@pytest.mark.requirement("ACAP-15")
@pytest.mark.parametrize(
    ("text", "asks"), [(TEXT, True), (TEXT.replace("ACAP-usage-purpose: news\n", ""), False)]
)
def test_where_purposes_matter_requests_are_asked_for_them(text: str, asks: bool) -> None:
    assert site(text).asks_facts(NOBODY) is asks


@pytest.mark.requirement("SEC-1", "ACAP-15")
def test_purposes_that_others_send_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []

    def count(patterns: Sequence[str]) -> PatternIndex:
        built.append(1)
        return PatternIndex(patterns)

    monkeypatch.setattr(resolution, "PatternIndex", count)
    asked = site()
    asked.access(NOBODY, ORIGIN)
    before = len(built)
    for number in range(2000):
        asked.access(NOBODY, f"{ORIGIN}/closed/", purposes=[f"purpose{number}"])
    assert len(built) == before
    reading = asked._view(NOBODY)._readings["robots"]
    assert isinstance(reading, RobotsReading)
    rules = reading._acap
    assert len(rules._views) <= resolution.MAX_VIEWS


PURPOSES = ("news", "ads", "maps")
patterns = st.sampled_from(["/", "/a", "/a/", "/A/", "*a", "/*/"])
fields = st.tuples(
    st.sampled_from(["", "news", "ads", "n*", "*"]),
    st.booleans(),
    st.sampled_from(["crawl", "index"]),
    patterns,
)
files = st.tuples(
    st.lists(st.tuples(st.booleans(), patterns), max_size=3),
    st.lists(
        st.tuples(st.sampled_from(["*", "examplebot"]), st.lists(fields, max_size=4)), max_size=3
    ),
)


def write_file(
    file: tuple[list[tuple[bool, str]], list[tuple[str, list[tuple[str, bool, str, str]]]]],
) -> str:
    rules, records = file
    lines = [
        "User-agent: *",
        *(f"{'Allow' if allows else 'Disallow'}: {pattern}" for allows, pattern in rules),
    ]
    for crawler, stated in records:
        lines.append(f"ACAP-crawler: {crawler}")
        for purpose, allows, usage, pattern in sorted(stated):
            lines += [f"ACAP-usage-purpose: {purpose}"] if purpose else []
            lines.append(f"ACAP-{'allow' if allows else 'disallow'}-{usage}: {pattern}")
    return "\n".join(lines) + "\n"


@pytest.mark.requirement("ACAP-15", "ACAP-16", "ACAP-27")
@settings(max_examples=examples(400))
@given(
    files,
    st.lists(st.frozensets(st.sampled_from(PURPOSES)), min_size=1, max_size=3),
    st.sampled_from(["/", "/a", "/a/b"]),
)
def test_a_request_is_judged_as_a_crawl_with_its_purposes(
    file: tuple[list[tuple[bool, str]], list[tuple[str, list[tuple[str, bool, str, str]]]]],
    asked: list[frozenset[str]],
    path: str,
) -> None:
    """Earlier questions do not change an answer."""
    text = write_file(file)
    one = site(text)
    for purposes in asked:
        agent = Agent("examplebot", purposes=tuple(sorted(purposes)))
        alone = site(text)
        assert one.access(NEWS, ORIGIN + path, purposes=agent.purposes) == alone.access(
            agent, ORIGIN + path
        )
        page = one.page(NEWS, ORIGIN + path, facts=PLAIN._replace(purposes=agent.purposes))
        assert page.uses["index"] == alone.page(agent, ORIGIN + path).uses["index"]
        assert one.considered(
            NEWS, ORIGIN + path, PLAIN._replace(purposes=agent.purposes)
        ) == alone.considered(agent, ORIGIN + path)
