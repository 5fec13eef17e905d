"""Preferences of groups that are one, because no rule is between their agents (RFC-12)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Site
from comity.policies.answers.decision import Verdict
from comity.policies.formats.robots import grammar as robots

ALLOW, DENY = Verdict.ALLOW, Verdict.DENY
ANY, OWN, OTHER = "User-agent: *\n", "User-agent: examplebot\n", "User-agent: otherbot\n"
USES = ("tdm", "ai", "genai", "search", "train-ai")


def site(text: str) -> Site:
    return Site.from_files("https://example.com", {"/robots.txt": text.encode()})


def verdicts_of(text: str, path: str = "/a", token: str = "examplebot") -> dict[str, str]:
    """Return the uses that have a statement."""
    uses = site(text).page(Agent(token), f"https://example.com{path}", body=b"").uses
    return {use: "y" if uses[use].verdict is ALLOW else "n" for use in USES if uses[use].stated}


TRAIN, NO_TRAIN = "Content-Usage: train-ai=y\n", "Content-Usage: train-ai=n\n"

JOINED: list[
    tuple[str, str, str, str, str]
] = [  # text, path, train-ai for *, examplebot and otherbot: "" if nothing is stated
    # A permission for another agent does not count, for a part or for all; a refusal does.
    (ANY + NO_TRAIN + OTHER + "Content-Usage: /open/ train-ai=y\n", "/open/a", "n", "n", "y"),
    (ANY + NO_TRAIN + OTHER + "Content-Usage: / train-ai=y\n", "/a", "n", "n", "y"),
    (ANY + TRAIN + OTHER + NO_TRAIN, "/a", "n", "n", "n"),
    (ANY + "Content-Usage: search=n\n" + OTHER + TRAIN, "/a", "", "", "y"),
    (OTHER + TRAIN + OWN + "Content-Usage: search=n\n", "/a", "", "", "y"),
    (OTHER + "Content-Usage: search=n\n" + OWN + TRAIN, "/a", "", "y", ""),
    # By one reading a longer path without the label overrides a shorter one: nothing is permitted.
    (ANY + TRAIN + OTHER + "Content-Usage: /open/ search=y\n", "/open/a", "", "", ""),
    (ANY + TRAIN + OTHER + "Content-Usage: /open/ search=y\n", "/a", "y", "y", ""),
    # Either kind of line ends the list, with any lines around it.
    (ANY + "Usage: x=y\n" + OTHER + TRAIN, "/a", "", "", "y"),
    (ANY + "Crawl-delay: 1\nX-Any: 1\nUsage: x=y\n" + OTHER + TRAIN, "/a", "", "", "y"),
    # A permission by both readings.
    (OTHER + OWN + TRAIN, "/a", "", "y", "y"),
    (OTHER + "Crawl-delay: 1\nX-Any: 1\n" + OWN + TRAIN, "/a", "", "y", "y"),
    (OWN + TRAIN + OTHER + TRAIN, "/a", "", "y", "y"),
    # With rules they are separate groups, and after rules too.
    (ANY + NO_TRAIN + "Allow: /\n" + OTHER + TRAIN, "/a", "n", "n", "y"),
    (ANY + "Allow: /\n" + NO_TRAIN + OTHER + TRAIN, "/a", "n", "n", "y"),
    # A line in a record of ACAP stands in no group, and ends no list.
    (OTHER + "ACAP-crawler: *\n" + NO_TRAIN + OWN + TRAIN, "/a", "n", "n", "n"),
    (OTHER + "ACAP-crawler: *\nUsage: x=y\n" + OWN + TRAIN, "/a", "", "y", "y"),
]


@pytest.mark.requirement("PREF-2", "USE-9", "RFC-12")
@pytest.mark.parametrize(("text", "path", "anybody", "examplebot", "otherbot"), JOINED)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_permission_counts_by_both_readings(
    text: str, path: str, anybody: str, examplebot: str, otherbot: str, end: str
) -> None:
    text = "\ufeff" + text.replace("\n", end)
    told = [
        verdicts_of(text, path, token).get("train-ai", "")
        for token in ("anybot", "examplebot", "otherbot")
    ]
    assert told == [anybody, examplebot, otherbot]


@pytest.mark.requirement("USE-10", "RFC-12")
def test_a_refusal_is_not_narrowed_to_the_paths_of_another_agent() -> None:
    text = ANY + "Usage: ai=n, search=y\n" + OTHER + "Allow: /open/\n"
    assert verdicts_of(text, "/a")["ai"] == verdicts_of(text, "/open/a")["ai"] == "n"
    assert ("search" in verdicts_of(text, "/a"), verdicts_of(text, "/open/a")["search"]) == (
        False,
        "y",
    )
    assert verdicts_of(text, "/a", "otherbot") == {}
    # RFC-12: it shares the rules, and so the line
    assert verdicts_of(text, "/open/a", "otherbot")["ai"] == "n"
    assert "search" not in verdicts_of(text, "/open/a", "otherbot")


@pytest.mark.requirement("PREF-5", "RFC-12")
def test_what_is_disallowed_has_refusals_alone() -> None:
    text = ANY + TRAIN + "Content-Usage: search=n\n" + OTHER + "Disallow: /\n"
    page = site(text).page(Agent("examplebot"), "https://example.com/a", body=b"")
    assert page.uses["search"].verdict is DENY
    assert not page.uses["train-ai"].stated
    # access follows RFC-12
    assert site(text).access(Agent("examplebot"), "https://example.com/a").verdict is DENY


FOUND: list[tuple[str, list[int]]] = [  # lines of robots.joined
    (ANY + NO_TRAIN + OTHER + TRAIN, [2]),
    (ANY + NO_TRAIN + TRAIN + OTHER + "Disallow: /\n", [2]),
    (ANY + "Usage: tdm=n\n" + OTHER + "Allow: /\n", [2]),  # once
    (ANY + "Crawl-delay: 1\nUsage: tdm=n\n" + OTHER + "Allow: /\n", [2, 3]),
    (ANY + "Usage: tdm=n\n" + OTHER + NO_TRAIN + OWN, [2, 4]),
    (ANY + "Usage: tdm=n\n", []),
    (ANY + "Usage: tdm=n\n\n" + "Allow: /\n" + OTHER + TRAIN, []),
    (ANY + "Usage: tdm=n\nDisallow:\n" + OTHER + TRAIN + OWN, [5]),
    ("Usage: tdm=n\n" + ANY + OTHER + TRAIN, []),
    (ANY + "ACAP-crawler: *\nUsage: tdm=n\n" + OTHER, []),
    (ANY + "X-Any: 1\n" + OTHER + TRAIN, []),
]


@pytest.mark.requirement("RFC-12", "WHY-1")
@pytest.mark.parametrize(("text", "lines"), FOUND)
def test_findings(text: str, lines: list[int]) -> None:
    findings = [finding for finding in site(text).findings if finding.rule == "robots.joined"]
    assert sorted(finding.line for finding in findings) == lines
    assert {finding.url for finding in findings} <= {"https://example.com/robots.txt"}


@pytest.mark.requirement("SEC-5")
def test_a_file_is_read_twice_only_where_the_readings_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings = []
    read = robots._FileReader.read

    def count(reader: robots._FileReader) -> robots.Robots:
        readings.append(reader)
        return read(reader)

    monkeypatch.setattr(robots._FileReader, "read", count)
    of_all = site(ANY + NO_TRAIN + "Allow: /\n" + OTHER + OWN + TRAIN)
    for token in ("examplebot", "otherbot"):
        of_all.page(Agent(token), "https://example.com/a", body=b"")
    assert len(readings) == 1
    of_all = site(ANY + NO_TRAIN + OTHER + TRAIN)
    for token in ("examplebot", "otherbot"):
        of_all.page(Agent(token), "https://example.com/a", body=b"")
    assert len(readings) == 3


LINES = (
    ANY,
    OWN,
    OTHER,
    NO_TRAIN,
    "Content-Usage: /a train-ai=y\n",
    "Usage: tdm=n\n",
    "Usage: tdm=y\n",
    "Allow: /a\n",
    "X: 1\n",
)


@pytest.mark.requirement("PREF-2", "USE-9", "RFC-12")
@given(st.lists(st.sampled_from(LINES), max_size=9))
def test_what_is_permitted_is_so_where_each_list_ends_at_a_preference(lines: list[str]) -> None:
    """An Allow line without a path ends a list of agents, and states nothing.

    After each preference, it makes the other reading.
    """
    text = "".join(lines)
    ended = "".join(f"{line}Allow:\n" if "sage:" in line else line for line in lines)
    for path in ("/a", "/b"):
        before, after = verdicts_of(text, path), verdicts_of(ended, path)
        assert {use for use in after if after[use] == "n"} <= {
            use for use in before if before[use] == "n"
        }
        assert {use for use in before if before[use] == "y"} <= {
            use for use in after if after[use] == "y"
        }
