"""Policy files as sites have them, with the decisions of a careful reader in docs/uses.md.

Each fixture has the quirks of a file that was found in public, and none of its text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from comity.policies import Agent, Site
from tests.selection import one_in

ORIGIN = "https://example.com"
USES = ("tdm", "train", "ai-input", "search")  # the columns of the table
TABLE = Path(__file__).parents[2] / "docs" / "uses.md"


class Sample(NamedTuple):
    """A file, and a row of the table.

    Attributes:
        file: the first cell.
        quirk: the second cell.
        outcome: for each of USES: "+" permitted, "-" refused, "?" not stated.
        files: path -> the file.
        path: path of the page.
        agent: token of the agent."""

    file: str
    quirk: str
    outcome: str
    files: dict[str, str]
    path: str = "/page"
    agent: str = "examplebot"


def tdmrep(*rules: Any) -> dict[str, str]:
    return {"/.well-known/tdmrep.json": json.dumps(list(rules), indent=2)}


def rule(location: str, reservation: int, **policy: str) -> dict[str, Any]:
    return {"location": location, "tdm-reservation": reservation} | {
        name.replace("_", "-"): url for name, url in policy.items()
    }


PAPERS = tdmrep(
    rule("/paper-*", 1, tdm_policy=f"{ORIGIN}/terms/"),
    rule("/draft-*", 1, tdm_policy=f"{ORIGIN}/terms/"),
    rule("/", 0, tdm_policy=f"{ORIGIN}/terms/"),
)
MANAGED = """# What the signals mean, at length.

# BEGIN managed content

User-agent: *
Content-Signal: search=yes,ai-train=no,use=reference
Allow: /

User-agent: trainbot
Disallow: /

# END managed content

User-agent: ourbot
Allow: /

User-agent: *
Disallow: /admin/
"""
PIECES = """# global
Content-Signal: search=yes,ai-train=yes,ai-input=yes  # for all

User-agent: *
Allow: /about.txt

User-agent: examplebot
Request-rate: 10/1m
User-agent: otherbot
Disallow: /private/

User-agent: *
Disallow: /
"""
ADDRESS = """User-agent: *
Allow: /
Policy: /policy.txt
Content-Signals: /signals.json
"""

SAMPLES = [
    # debats, itcop, nineplus, sourcelibrary; formosanbank and sigma have the policy on another host
    Sample(
        "tdmrep.json",
        "everything reserved, policy on its own host",
        "---?",
        tdmrep(rule("/", 1, tdm_policy="/terms")),
    ),
    Sample(
        "",
        "everything reserved, policy on another host",
        "---?",
        tdmrep(rule("/", 1, tdm_policy="https://example.org/t/LICENSE")),
    ),
    # healsdata, jack5079
    Sample("", "everything reserved, no policy", "---?", tdmrep(rule("/", 1))),
    # regenstudio-ordered
    Sample(
        "",
        "two patterns reserved before all else is not: a page of theirs",
        "---?",
        PAPERS,
        "/paper-7",
    ),
    Sample("", "the same: any other page", "+???", PAPERS),
    # xlr8harder.github.io
    Sample("", "nothing reserved, by `/*`", "+???", tdmrep(rule("/*", 0))),
    # MALFORMED-object-not-array
    Sample(
        "",
        "one object, not an array, that reserves nothing",
        "????",
        {
            "/.well-known/tdmrep.json": '{"tdm-reservation": 0, "policy": '
            '"https://example.com/terms.txt"}'
        },
    ),
    # MALFORMED-invented-schema
    Sample(
        "",
        "a schema of its own",
        "????",
        {
            "/.well-known/tdmrep.json": '{"@context": "http://www.w3.org/ns/tdmrep#", "type": '
            '"Reserved", "policy": "all"}'
        },
    ),
    # w3c-context
    Sample(
        "",
        "the JSON-LD context of policies, served as the file",
        "????",
        {
            "/.well-known/tdmrep.json": '{"@context": {"tdm": "http://www.w3.org/ns/tdmrep#", '
            '"mine": "tdm:mine"}}'
        },
    ),
    # serchen.com-cloudflare-managed-robots
    Sample(
        "Content Signals",
        "a managed block before the site's own groups",
        "--?+",
        {"/robots.txt": MANAGED},
    ),
    Sample(
        "",
        "the same, for an agent with a group of its own",
        "--??",
        {"/robots.txt": MANAGED},
        agent="ourbot",
    ),
    # crawler-commons-extensions-group-merging
    Sample(
        "", "one line before all groups, which stand in pieces", "?+++", {"/robots.txt": PIECES}
    ),
    # crawler-commons-extension-robots
    Sample("", "the address of a file instead of signals", "????", {"/robots.txt": ADDRESS}),
]
WORDS = {"+": "permitted", "-": "refused", "?": ""}


@pytest.mark.requirement("TDM-1", "TDM-2", "TDM-3", "SIG-1", "SIG-2", "SIG-4")
@pytest.mark.parametrize("sample", one_in(2, SAMPLES), ids=[sample.quirk for sample in SAMPLES])
def test_files_as_sites_have_them(sample: Sample) -> None:
    site = Site.from_files(ORIGIN, {path: text.encode() for path, text in sample.files.items()})
    uses = site.page(Agent(sample.agent), ORIGIN + sample.path).uses
    marks = {"allow": "+", "deny": "-"}
    assert (
        "".join(marks[uses[use].verdict.value] if uses[use].stated else "?" for use in USES)
        == sample.outcome
    )


def test_the_table_is_that_of_the_docs() -> None:
    cells = [
        (sample.file, sample.quirk, *(WORDS[mark] for mark in sample.outcome)) for sample in SAMPLES
    ]
    rows = [f"| {' | '.join(row)} |".replace("|  |", "| |").replace("|  |", "| |") for row in cells]
    assert "\n".join(rows) in TABLE.read_text("utf-8"), "\n".join(rows)
