"""Sites with equal files share what was parsed, and may forget it, and decide as if they did not."""

from __future__ import annotations

import gc
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.policies import Agent, Fetched, Site
from comity.policies.formats.ai_txt import file as ai_file
from comity.policies.formats.automation import file as automation_file
from comity.policies.formats.file import ParsedBodies
from comity.policies.formats.robots import file as robots_file
from comity.policies.site import _shared_page, _shared_sources
from tests.dataset.tagging.page_cases import page_case
from tests.dataset.tagging.page_grammar import AGENTS, ORIGIN
from tests.dataset.tagging.test_equality import agent_of, fetched, octets
from tests.selection import examples

OTHER = "https://www.other.example:8443"
SHARING: tuple[Any, ...] = (robots_file, ai_file, automation_file)
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
                for module in SHARING:
                    patch.setattr(module, "_bodies", ParsedBodies(module._Body))
                alone = answers(Site.from_files(site.origin, files), agent, made)
            assert answers(site, agent, made) == alone


def test_the_first_question_reads_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    read_site = robots_file.RobotsFile.__init__

    def noted(file: robots_file.RobotsFile, url: str, *arguments: Any, **more: Any) -> None:
        read.append(url)
        read_site(file, url, *arguments, **more)

    monkeypatch.setattr(robots_file.RobotsFile, "__init__", noted)
    site, agent = Site.from_files(ORIGIN, {"/robots.txt": ROBOTS}), Agent("examplebot")
    assert read == []
    first, second = (site.access(agent, f"{ORIGIN}/closed") for _ in range(2))
    assert first == second
    assert read == [f"{ORIGIN}/robots.txt"]


FILES = {
    "/robots.txt": ROBOTS,
    "/ai.txt": b"User-agent: *\nDisallow: *.jpg\nDisallow: /closed *.x y\n",
    "/automation-preferences.txt": b"User-agent: *\nscope: /closed\nrequest-limit: many\n",
}


def test_equal_files_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reasons and the findings of each site have its own URLs."""
    read: list[bytes] = []
    for module in SHARING:
        body = module._Body

        def noted(octets: bytes, body: Any = body, **options: bool) -> Any:
            read.append(octets)
            return body(octets, **options)

        monkeypatch.setattr(module, "_bodies", ParsedBodies(noted))
    agent = Agent("examplebot", uses=("train",))
    sites = [
        Site.from_files(
            origin,
            {
                path: Fetched(
                    status=200,
                    body=bytes(bytearray(body)),
                    headers=((b"Content-Type", b"text/plain; charset=utf-8"),),
                )
                for path, body in FILES.items()
            },
        )
        for origin in (ORIGIN, OTHER)
    ]
    for site in sites:
        urls = {f"{site.origin}{path}" for path in FILES}
        assert {finding.url for finding in site.findings} == urls
        page = site.page(agent, f"{site.origin}/closed/1.jpg")
        sources = {reason.source.url for reason in page.uses["train"].reasons}
        assert sources == {f"{site.origin}/ai.txt", f"{site.origin}/robots.txt"}
    assert sorted(read) == sorted(FILES.values())
    assert [len(module._bodies._bodies) for module in SHARING] == [1, 1, 1]
    del site, page, sites
    for cache in (_shared_page, _shared_sources):
        cache.cache_clear()
    gc.collect()
    assert [len(module._bodies._bodies) for module in SHARING] == [0, 0, 0]
