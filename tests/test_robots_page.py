"""docs/robots.md says what the code does: the examples of its tables are tried."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from comity.policies import Agent, Site, Verdict
from comity.policies.syntax.urls import spellings

PAGE = (Path(__file__).parent.parent / "docs" / "robots.md").read_text("utf-8")
ORIGIN = "https://example.com"
SPELLINGS = PAGE.partition("\n## What a server takes a path for\n")[2].partition("\n## ")[0]
EXAMPLES = [
    example
    for row in SPELLINGS.splitlines()
    if row.startswith("| ") and "`/closed/a` is also" not in row and "MEET-6" not in row
    for example in re.findall(r"`(/[^`]+)`", row.split("|")[2])
]


def test_there_are_so_many() -> None:
    assert len(EXAMPLES) == 12


@pytest.mark.requirement("MEET-6")
@pytest.mark.parametrize("example", EXAMPLES)
def test_what_a_path_is_taken_for(example: str) -> None:
    assert "/closed/a" in spellings(example)[1:]
    site = Site.from_files(ORIGIN, {"/robots.txt": b"User-agent: *\nDisallow: /closed/\n"})
    assert site.access(Agent("examplebot"), ORIGIN + example).verdict is Verdict.DENY


@pytest.mark.requirement("MEET-6")
@pytest.mark.parametrize(
    ("rules", "target", "verdict"),
    [
        ("Disallow: /x/", "/x/../robots.txt", Verdict.DENY),
        ("Allow: /this/*/exactly\nDisallow: /", "/this//exactly", Verdict.ALLOW),
        ("Disallow: /p%25$", "/p%2525", Verdict.ALLOW),
    ],
)
def test_examples_of_the_readings(rules: str, target: str, verdict: Verdict) -> None:
    assert f"`{target}`" in SPELLINGS
    site = Site.from_files(ORIGIN, {"/robots.txt": f"User-agent: *\n{rules}\n".encode()})
    assert site.access(Agent("examplebot"), ORIGIN + target).verdict is verdict
