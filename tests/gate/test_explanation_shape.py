"""The output of `comity policy --json` has the shape that docs/policy.schema.json states."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from jsonschema import Draft202012Validator

from comity.gate.explanation import explain
from comity.gate.explanation_shape import EXPLANATION, HISTORY
from comity.policies import Agent, Fetched, Site
from comity.policies.syntax.shapes import Object
from tests.generated import POLICY_SCHEMA

ORIGIN = "https://example.com"
AGENT = Agent("examplebot", uses=("index", "train"))
SCHEMA = json.loads(POLICY_SCHEMA.read_text("utf-8"))
ACAP = b"""User-agent: *
Visit-time: 0100-0200
Request-rate: 9/9 0800-1230
Crawl-delay: 0.5
Disallow: /x
Disallow: /
Allow: /a
Disalow: /typo
Sitemap: https://example.com/s.xml
ACAP-crawler: *
ACAP-allow-index: / time-limit=until-recrawled
ACAP-allow-present: / prohibited-modification=style must-use-resource=/r
ACAP-disallow-preserve: /
ACAP-request-take-down: /gone
"""
AUTOMATION = b"""scope: /
allowed-methods: GET
request-limit: 3/minute
request-limit: soon
concurrent-limit: 2
"""
AI = b"""User-agent: *
  Path: / html
    Element: img
      Disallow: Train
    Element: p
      Guide: Summarize
        Lang: en
        Guideline: Name us.
"""
FILES: list[dict[str, bytes | Fetched]] = [
    {},
    {"/robots.txt": ACAP},
    {"/robots.txt": b"User-agent: *\nVisit-time: 0100-0200\n"},
    {"/automation-preferences.txt": AUTOMATION},
    {"/ai.txt": AI},
    {"/robots.txt": Fetched(status=503, fetched_at=datetime(2026, 11, 21, tzinfo=UTC))},
    {"/robots.txt": Fetched(status=200, body=ACAP, fetched_at=datetime(2026, 11, 21, tzinfo=UTC))},
    {"/.well-known/tdmrep.json": b'[{"location": "/", "tdm-reservation": 1}]'},
    {"/ai.txt": Fetched(status=402, headers=((b"crawler-price", b"USD 0.01"),))},
]


@pytest.mark.requirement("WHY-1", "WHY-2")
@pytest.mark.parametrize("files", FILES, ids=lambda files: " ".join(files))
def test_an_explanation_has_its_shape(files: dict[str, bytes | Fetched]) -> None:
    told = explain(Site.from_files(ORIGIN, files), AGENT, f"{ORIGIN}/a")
    told = json.loads(json.dumps(told))
    Draft202012Validator(SCHEMA).validate(told)
    assert EXPLANATION.is_valid(told)
    assert told["schema"] == 1


def test_the_shape_knows_each_part() -> None:
    """Each list and object of the explanation has a value in one of the samples."""
    seen = {
        key
        for files in FILES
        for key, value in explain(Site.from_files(ORIGIN, files), AGENT, f"{ORIGIN}/a").items()
        if value
    }
    assert EXPLANATION.members.keys() - seen == set()


@pytest.mark.parametrize("shape", [EXPLANATION, HISTORY])
def test_every_member_is_explained(shape: Object) -> None:
    assert [name for name, member in shape.members.items() if not member.description] == []


def test_later_members_are_valid() -> None:
    told = explain(Site.from_files(ORIGIN, {}), AGENT, ORIGIN) | {"later": 1}
    Draft202012Validator(SCHEMA).validate(told)
    assert not EXPLANATION.is_valid(told)
    assert not Draft202012Validator(SCHEMA).is_valid(told | {"schema": 2})
