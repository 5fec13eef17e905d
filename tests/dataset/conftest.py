"""Records for the tests of passes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest

MakeRecord = Callable[..., dict[str, Any]]

ALLOW: dict[str, Any] = {"verdict": "allow", "stated": True, "because": [0]}
DENY: dict[str, Any] = {"verdict": "deny", "stated": True, "because": [1]}
BASIC = {"crawl": ALLOW, "follow": ALLOW, "index": DENY, "preserve": DENY, "present": DENY}
ROBOTS = "https://example.com/robots.txt"
REASONS = [
    {"rule": "acap.allow", "spec": "ACAP 1.0 section-2.4.1", "url": ROBOTS, "line": 3, "text": "ACAP-allow-index: /"},
    {"rule": "acap.disallow", "spec": "ACAP 1.0 section-2.4.2", "url": ROBOTS, "line": 4, "text": "ACAP-disallow-other: /"},
    {
        "rule": "ait.disallow",
        "spec": "ai.txt paper section-3.2",
        "url": "https://example.com/ai.txt",
        "line": 4,
        "text": "Disallow",
    },
    {"rule": "rsl.permits", "spec": "RSL 1.0", "url": "https://example.com/license.xml", "line": 2, "text": "permits"},
    {
        "rule": "comity.arrangement",
        "spec": "comity, docs/uses.md",
        "url": "COMITY_ARRANGEMENTS",
        "part": "setting",
        "line": 0,
        "text": "example.com: train, contract 1",
    },
]


@pytest.fixture
def make_record() -> MakeRecord:
    """make_record(train={}, index={"until": ...}, elements=[{...}], fields={...}): uses that are named are allowed, under these
    conditions, or refused where they are None."""

    def make(
        *,
        elements: Sequence[dict[str, Any]] = (),
        embedded: dict[str, Any] | None = None,
        fields: dict[str, Any] | None = None,
        **uses: dict[str, Any] | None,
    ) -> dict[str, Any]:
        stated = {name.replace("_", "-"): DENY if use is None else ALLOW | use for name, use in uses.items()}
        element = {"selector": "p", "type": "html", "deny": ["train"], "guide": [], "spans": [], "because": [2]}
        tag = {
            "schema": 1,
            "agent": "testbot",
            "uses": BASIC | stated,
            **({"embedded": {name: DENY if use is None else ALLOW | use for name, use in embedded.items()}} if embedded else {}),
            "elements": [element | one for one in elements],
            "reasons": REASONS,
            "policies": {ROBOTS: {"status": 200, "sha256": "0" * 64, "fetched_at": "2026-11-21T03:00:00+00:00"}},
        }
        page = {
            "url": "https://example.com/a",
            "final_url": "https://example.com/a",
            "status": 200,
            "fetched_at": "2026-11-21T12:00:00+00:00",
            "content_type": "text/html",
            "title": "A title",
            "text": "Some words of the page.",
            "links": ["https://example.com/b"],
            "sha256": "0" * 64,
            "html": None,
        }
        return copy.deepcopy(page | (fields or {}) | {"permissions": tag})

    return make
