"""docs/policy-command.md says what `scrapy policy` does: its options, its files, its keys, and which rules lose."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from pathlib import Path

import pytest
from scrapy.settings import Settings

from comity.crawler.commands.policy import PolicyCommand
from comity.gate.explanation import explain
from comity.gate.second_opinion import READERS, sentences
from comity.policies import Agent, Site

PAGE = (Path(__file__).parent.parent / "docs" / "policy-command.md").read_text("utf-8")
OPTIONS = {
    name: row[1].strip()
    for row in (line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| `-"))
    for name in re.findall(r"--?[a-z](?:-?[a-z])*", row[0])
}
ORIGIN = "https://example.com"
AGENT = Agent("examplebot")


def site(**files: str) -> Site:
    return Site.from_files(
        ORIGIN, {f"/{name.replace('_', '-')}.txt": text.encode() for name, text in files.items()}
    )


def test_options() -> None:
    parser, before = (
        ArgumentParser(usage="scrapy policy", conflict_handler="resolve") for _ in range(2)
    )
    command = PolicyCommand()
    command.settings = Settings()
    command.add_options(parser)
    super(PolicyCommand, command).add_options(before)
    own = set(parser._option_string_actions) - set(before._option_string_actions)
    assert own == set(OPTIONS) - {"-s"}
    usage = PAGE.partition("```\n")[2].partition("\n```")[0]
    assert own == set(re.findall(r"--[a-z-]+", usage))


def test_keys_of_the_json() -> None:
    paragraph = PAGE.partition("The keys of the JSON: ")[2].partition("\n\n")[0]
    top_level = re.sub(r"\[[^]]*\]\([^)]*\)", "", paragraph)
    top_level = re.sub(r"\([^()]*\)", "", top_level)
    told = explain(site(robots="User-agent: *\nDisallow: /\n"), AGENT, ORIGIN)
    assert sorted(re.findall(r"`(\w+)`", top_level)) == sorted(told)
    for key in told["reasons"][0]:
        assert f"`{key}`" in paragraph


def test_other_readers() -> None:
    section = PAGE.partition("## Other readers of robots.txt\n")[2]
    rows = [row.split(" | ") for row in section.splitlines() if row.startswith("| ")][1:]
    assert [row[1] for row in rows] == [f"`{reader.module}`" for reader in READERS]
    assert [
        row[0].removeprefix("| ").startswith(reader.subject)
        for row, reader in zip(rows, READERS, strict=True)
    ] == [True] * len(rows)
    robots = "User-agent: examplebot\nContent-Usage: train-ai=n\nUser-agent: x\nDisallow: /a\n"
    told = explain(site(robots=robots), AGENT, f"{ORIGIN}/a")
    assert (
        section.partition("```\n")[2].partition("\n```")[0].splitlines()[3:]
        == sentences(told["other_readers"], told["unread_uses"])[:1]
    )
    for key in told["other_readers"][0]:
        assert f"`{key}`" in section


@pytest.mark.requirement("WHY-1", "WHY-2")
@pytest.mark.parametrize(
    ("files", "decide", "lose"),
    [
        (
            {"robots": "User-agent: *\nDisallow: /a/\nAllow: /a/b\n"},
            [("robots.allow", 3)],
            [("robots.disallow", 2)],
        ),
        (
            {
                "automation_preferences": "scope: /\nallowed-methods: GET\n\nscope: /a/\nallowed-methods: POST\n"
            },
            [("automation.method", 5)],
            [("automation.allow", 2)],
        ),
        (
            {"robots": "User-agent: *\nDisallow: /a/\nACAP-crawler: *\nACAP-allow-crawl: /a/\n"},
            [("acap.allow", 4)],
            [("robots.disallow", 2)],
        ),
        (
            {
                "robots": "User-agent: *\nDisallow: /a/\n",
                "automation_preferences": "scope: /\nallowed-methods: GET\n",
            },
            [("robots.disallow", 2)],
            [("automation.allow", 2)],
        ),
        (
            {"robots": "User-agent: *\nDisallow: /a/\nUser-agent: otherbot\nDisallow: /a/b\n"},
            [("robots.disallow", 2)],
            [],
        ),
        (
            {"robots": "User-agent: *\nDisallow: /a/\nContent-Usage: train-ai=n\n"},
            [("robots.disallow", 2)],
            [],
        ),
    ],
    ids=[
        "a shorter pattern",
        "a group that does not apply",
        "a line that ACAP replaces",
        "a permission beside a refusal",
        "",
        "",
    ],
)
def test_rules_that_match_and_lose(
    request: pytest.FixtureRequest,
    files: dict[str, str],
    decide: list[tuple[str, int]],
    lose: list[tuple[str, int]],
) -> None:
    """Each kind that the page names, and what is none."""
    told = explain(site(**files), AGENT, f"{ORIGIN}/a/b")
    assert [(reason["rule"], reason["line"]) for reason in told["reasons"]] == decide
    assert [(reason["rule"], reason["line"]) for reason in told["overruled"]] == lose
    assert not lose or request.node.callspec.id in " ".join(PAGE.split())
