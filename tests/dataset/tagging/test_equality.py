"""The tag of a captured page is that of a crawl: use for use, reason for reason, over generated
sites and pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.dataset.records import ARRIVED_AT, IDENTITY, KEY, REQUEST
from comity.dataset.tagging.judging import DECLARED, Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.record_tagger import Making
from comity.dataset.tagging.tagging import TagPass
from comity.dataset.tagging.warc import Reader
from comity.policies import Agent, Arrangement, Page, Site, Verdict
from comity.policies.answers.fetched import Fetched
from comity.policies.formats import WELL_KNOWN
from comity.policies.syntax.urls import target_of
from tests.dataset.tagging.archives import NOW, Said, http, record, write
from tests.dataset.tagging.page_cases import page_case
from tests.dataset.tagging.page_grammar import ORIGIN
from tests.selection import examples

MOMENT = "%Y-%m-%dT%H:%M:%S.%fZ"


def octets(text: str) -> bytes:
    return text.encode("latin-1", "replace")


class Everywhere:
    def __init__(self, site: Site) -> None:
        self._said = Said(site)

    def at(self, origin: str, moment: datetime) -> Said | None:
        return self._said if origin == self._said.site.origin else None

    def today(self, origin: str) -> None:
        return None


def fetched(made: dict[str, Any]) -> Fetched:
    headers = tuple((octets(name), octets(value)) for name, value in made.get("headers", ()))
    moments: dict[str, Any] = {
        name: datetime.fromisoformat(made[name])
        for name in ("fetched_at", "unreachable_since")
        if made.get(name)
    }
    given: dict[str, Any] = {
        name: made[name] for name in ("url", "error", "oversized") if name in made
    }
    return Fetched(
        status=made["status"],
        headers=headers,
        body=octets(made.get("body", "")),
        **given,
        **moments,
    )


def agent_of(made: dict[str, Any]) -> Agent:
    agent = Agent(
        made["token"],
        user_agent=made.get("user_agent", ""),
        uses=tuple(made["uses"]),
        purposes=tuple(made.get("purposes", ())),
        defaults={use: Verdict(word) for use, word in made.get("defaults", {}).items()},
        automation_required=made.get("automation_required", False),
    )
    arrangements = (
        Arrangement(
            one["host"], frozenset(one["features"]), frozenset(one["uses"]), one["reference"]
        )
        for one in made.get("arrangements", ())
    )
    return replace(agent, arrangements=tuple(arrangements))


def cases(seed: int, number: int) -> Iterator[dict[str, Any]]:
    """Yield the case, if a capture can have its page."""
    made = page_case(seed, number)
    if made["response"].get("body") is not None and target_of(made["url"]) not in WELL_KNOWN:
        yield made


def captured(made: dict[str, Any]) -> bytes:
    fields = [(octets(name), octets(value)) for name, value in made["response"]["headers"]]
    block = http(octets(made["response"]["body"]), *fields, (b"X-Any", b"1"))
    return record("response", block, made["url"], WARC_Date=made["now"].replace("+00:00", "Z"))


def crawled(page: Page, fields: dict[str, Any]) -> dict[str, Any]:
    """The tag that the item pipeline writes for an item of the ready spiders."""
    return page.tag_of(
        {name: value for name, value in fields.items() if name != "permissions"}, DECLARED
    )


@settings(max_examples=examples(25))
@given(st.integers(0, 10_000))
def test_generated_pages(number: int) -> None:
    compare_all(number)


@pytest.mark.slow
@pytest.mark.requirement("TAG-1")
@pytest.mark.parametrize("start", range(0, 2400, 200))
def test_many_generated_pages(start: int) -> None:
    for number in range(start, start + 200):
        compare_all(number)


def compare_all(number: int) -> None:
    import tempfile

    for made in cases(7, number):
        origin, now = ORIGIN, datetime.fromisoformat(made["now"])
        site = Site.from_files(
            origin, {path: fetched(file) for path, file in made["files"].items()}
        )
        agent = agent_of(made["agent"])
        with tempfile.TemporaryDirectory() as folder:
            path = write(Path(folder) / "pages.warc", captured(made))
            judge = Judge(Question.of(agent, now=max(now, NOW)), Everywhere(site))
            [record] = outcomes(judge, path)
        headers = [
            (octets(name), octets(value.strip(" \t")))
            for name, value in made["response"]["headers"]
        ] + [(b"X-Any", b"1")]
        page = site.page(
            agent,
            made["url"],
            headers=headers,
            body=octets(made["response"]["body"]),
            now=now,
        )
        if page.dated:
            first_seen = dict.fromkeys(page.dated, now)
            page = site.page(
                agent,
                made["url"],
                headers=headers,
                body=octets(made["response"]["body"]),
                now=now,
                first_seen=first_seen,
            )
        wanted, tag = crawled(page, record), dict(record["permissions"])
        assert tag.pop("as_of") == "capture"
        if wanted["uses"]["crawl"]["verdict"] == "allow":
            assert json.dumps(tag) == json.dumps(wanted), (number, made)
        else:  # no crawl of ours would have it
            allowed = [
                use for use, decision in tag["uses"].items() if decision["verdict"] == "allow"
            ]
            arranged = [
                use
                for use in allowed
                if tag["reasons"][tag["uses"][use]["because"][0]]["rule"] == "comity.arrangement"
            ]
            assert allowed == arranged, (number, made)


def outcomes(judge: Judge, path: Path) -> list[dict[str, Any]]:
    reader, work = Reader(path), TagPass(judge, Making())
    found = []
    for part in reader.parts():
        for batch in reader.read(part):
            assert all(isinstance(one, dict) for one in batch), batch
            found += work(batch).records  # type: ignore[arg-type]
    assert all(one.keys() >= IDENTITY - {KEY, REQUEST, ARRIVED_AT} for one in found)
    return found
