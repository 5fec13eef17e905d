"""Sites with equal robots.txt files share one parsed file, and decide as if they did not."""

from __future__ import annotations

import gc
from dataclasses import replace
from datetime import datetime
from typing import Any
from weakref import WeakValueDictionary

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.policies import Agent, Site
from comity.policies.formats.robots import file as robots_file
from comity.policies.formats.robots import grammar
from tests.dataset.tagging.page_cases import page_case
from tests.dataset.tagging.page_grammar import AGENTS, ORIGIN
from tests.dataset.tagging.test_equality import agent_of, fetched, octets
from tests.selection import examples

OTHER = "https://www.other.example:8443"
ROBOTS = b"User-agent: *\nDisallow: /closed\nDisallow /x\nContent-Usage: train-ai=n\n"


def answers(site: Site, agent: Agent, made: dict[str, Any]) -> list[object]:
    """Return the answers of a site to all questions of an agent about a case."""
    now = datetime.fromisoformat(made["now"])
    url = site.origin + made["url"].removeprefix(ORIGIN)
    response = made["response"]
    body = response.get("body")
    page = site.page(
        agent,
        url,
        headers=[(octets(name), octets(value)) for name, value in response["headers"]],
        body=None if body is None else octets(body),
        now=now,
    )
    return [
        page.tag_of({"url": url}, {}),
        page.findings,
        site.access(agent, url, now=now),
        site.considered(agent, url),
        site.statements_key(agent, url, now),
        site.unusable(agent),
        site.awaits_files(agent),
        site.licenses(agent),
        site.references(agent),
        [(request.url, request.reason) for request in site.requests(agent)],
        [*site.conditions(agent)],
        site.limits(agent, url),
        site.findings,
        site.referred_files,
        site.sitemaps,
        site.crawler_names,
        site.policies,
    ]


@pytest.mark.requirement("RFC-10", "ACAP-12", "TAG-1")
@settings(max_examples=examples(60))
@given(st.integers(0, 10_000))
def test_shared_or_not(number: int) -> None:
    made = page_case(11, number)
    files = {path: fetched(file) for path, file in made["files"].items()}
    agents = [replace(agent_of(made["agent"]), token=token) for token in AGENTS]
    sites = [Site.from_files(origin, files) for origin in (ORIGIN, OTHER)]
    for site in sites:
        for agent in agents:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(robots_file, "_BODIES", WeakValueDictionary())
                alone = answers(Site.from_files(site.origin, files), agent, made)
            assert answers(site, agent, made) == alone


def test_equal_files_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    parse = grammar.parse

    def noted(octets: bytes, **arguments: Any) -> grammar.Robots:
        read.append(octets)
        return parse(octets, **arguments)

    monkeypatch.setattr(grammar, "parse", noted)
    agent, body = Agent("examplebot"), bytes(bytearray(ROBOTS))
    sites = [
        Site.from_files(origin, {"/robots.txt": octets})
        for origin, octets in ((ORIGIN, ROBOTS), (OTHER, body))
    ]
    for site in sites:
        reason = site.access(agent, f"{site.origin}/closed").reasons[0]
        assert reason.source.url == f"{site.origin}/robots.txt"
        assert {finding.url for finding in site.findings} == {f"{site.origin}/robots.txt"}
    assert read == [ROBOTS]
    del site, reason, sites
    gc.collect()
    assert (ROBOTS, False, False) not in robots_file._BODIES
