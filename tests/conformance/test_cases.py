"""The public test cases for robots.txt parsers, from the folder that stands beside a checkout of the developers.

Elsewhere this module has nothing to run; the project's own tests hold fixtures of their own."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from comity.policies import Agent, Site, Verdict
from comity.policies.formats.robots import grammar as robots
from comity.policies.syntax.urls import target_of

CORPUS = Path(__file__).parents[3] / "shared/corpus/robots"

pytestmark = pytest.mark.skipif(not CORPUS.exists(), reason="the public cases are not here")


def cases() -> Iterator[dict[str, Any]]:
    with (CORPUS / "cases.jsonl").open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def body_of(case: dict[str, Any]) -> bytes:
    if "robots_b64" in case:
        return base64.b64decode(str(case["robots_b64"]))
    if "robots_file" in case:
        return (CORPUS / str(case["robots_file"])).read_bytes()
    return str(case["robots"]).encode()


def allowed(case: dict[str, Any]) -> bool:
    body = body_of(case)
    target = target_of(case["url"])
    line = robots.parse(body).for_agent(case["agent"]).decide(target)
    return target == "/robots.txt" or line is None or line.verdict is Verdict.ALLOW


@pytest.mark.requirement("RFC-2", "RFC-3", "RFC-4", "RFC-12", "RFC-13")
def test_every_case_that_follows_from_the_rfc() -> None:
    following = [case for case in cases() if case["rfc9309"]]
    assert len(following) == 2045
    assert [case["id"] for case in following if allowed(case) != case["allowed"]] == []


@pytest.mark.requirement("RFC-3", "MEET-6")
def test_what_else_servers_may_take_a_path_for_contradicts_no_case() -> None:
    """Site.access asks for all of it."""
    found = []
    for case in (case for case in cases() if case["rfc9309"]):
        origin, target = "https://example.com", target_of(case["url"])
        site = Site.from_files(origin, {"/robots.txt": body_of(case)})
        if (site.access(Agent(case["agent"]), origin + target).verdict is Verdict.DENY) is case[
            "allowed"
        ]:
            found.append(case["id"])
    assert found == []


KINDS = [
    "contradicts RFC 9309",
    "without an absolute path",
    "agent matched by prefix",
    "agent is not a product token",
]

# kind -> how many are answered as the case's source does, and how many otherwise. The reasons stand in docs/robots.md.
OTHERS = {
    "contradicts RFC 9309": (49, 99),
    "without an absolute path": (10, 1),
    "agent matched by prefix": (130, 0),
    "agent is not a product token": (125, 2),
    "open: bom": (4, 0),
    "open: colon": (10, 1),
    "open: dollar": (9, 10),
    "open: escape": (2, 1),
    "open: length": (7, 6),
    "open: norm": (22, 23),
    "open: typos": (12, 0),
    "open: ua": (34, 3),
    "unmarked": (1, 0),
}


def kind(case: dict[str, Any]) -> str:
    if "open" in case:
        return f"open: {', '.join(case['open'])}"
    return next((kind for kind in KINDS if kind in case.get("note", "")), "unmarked")


@pytest.mark.requirement("RFC-12")
def test_the_others_are_answered_as_the_docs_say() -> None:
    others = [case for case in cases() if not case["rfc9309"]]
    assert len(others) == 561
    answers = Counter((kind(case), allowed(case) == case["allowed"]) for case in others)
    assert {name: (answers[name, True], answers[name, False]) for name, _ in answers} == OTHERS
