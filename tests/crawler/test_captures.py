"""Policy stores as captures."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine

from comity.crawler.captures import open_captures
from comity.crawler.commands.policy_history import as_json, history
from comity.gate.fetching import store as store_module
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.store import PolicyStore
from comity.policies import Agent, Fetched, PolicyError, Verdict
from comity.policies.answers.request import PLAIN
from comity.policies.formats import WELL_KNOWN
from tests.dataset.captures.archives import NOON, Answered, write_warc

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)
AGENT = Agent("examplebot")
OPEN = Fetched(status=200, body=b"User-agent: *\nDisallow: /x\n", fetched_at=NOW - 20 * DAY)
FAILURE = Fetched(status=0, error="no answer")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "policies.sqlite"
    failing = PolicyFile(due=0.0, copy=OPEN, failure=FAILURE, failing_since=NOW - DAY, failures=3)
    never = PolicyFile(due=0.0, failure=FAILURE, failing_since=NOW - DAY, failures=1)
    others = {
        path: PolicyFile(due=0.0, copy=replace(OPEN, status=404, body=b""))
        for path in WELL_KNOWN[1:]
    }
    with closing(PolicyStore(path)) as opened:
        opened.save_sites(
            {
                "https://had.example": {"/robots.txt": PolicyFile(due=0.0, copy=OPEN), **others},
                "https://fails.example": {"/robots.txt": failing, **others},
                "https://never.example": {"/robots.txt": never},
            }
        )
    return path


def verdict(path: Path, origin: str, moment: datetime) -> Verdict | None:
    with open_captures([path], agent=AGENT, now=NOW) as captures:
        site = captures.at(origin, moment)
        return site.site.access(AGENT, f"{origin}/y").verdict if site else None


def test_a_store_says_what_sites_said_last_and_that_they_fail_now(store: Path) -> None:
    assert verdict(store, "https://had.example", NOW) is Verdict.ALLOW
    assert verdict(store, "https://had.example", NOW - 21 * DAY) is None
    assert verdict(store, "https://fails.example", NOW) is Verdict.ALLOW  # the good copy stands in
    assert (
        verdict(store, "https://fails.example", NOW + 11 * DAY) is Verdict.DENY
    )  # thirty days after it was confirmed
    assert verdict(store, "https://never.example", NOW) is Verdict.DENY
    assert verdict(store, "https://nobody.example", NOW) is None


def test_each_page_of_a_large_store_is_read(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "PAGE", 1)
    with closing(PolicyStore(store)) as opened:
        assert list(opened.origins()) == [
            f"https://{name}.example" for name in ("fails", "had", "never")
        ]


def test_a_damaged_row_is_counted_and_named(store: Path) -> None:
    with closing(sqlite3.connect(store, isolation_level=None)) as db:
        db.execute(
            "UPDATE file SET failures = 7 WHERE origin = 'https://fails.example' AND path = '/robots.txt'"
        )
    with open_captures([store], agent=AGENT, now=NOW) as captures:
        count, [unreadable] = captures.unreadable
        assert count == 1
        assert "https://fails.example" in unreadable.error
        assert captures.today("https://fails.example") is None
        assert captures.today("https://had.example") is not None


def test_a_store_that_has_changed_is_read_again(store: Path, tmp_path: Path) -> None:
    index = tmp_path / "index.sqlite"
    for body, expected in (
        (OPEN.body, Verdict.ALLOW),
        (b"User-agent: *\nDisallow: /\n", Verdict.DENY),
    ):
        with closing(PolicyStore(store)) as opened:
            changed = PolicyFile(due=0.0, copy=replace(OPEN, body=body))
            opened.save("https://had.example", {"/robots.txt": changed})
        with open_captures([store], agent=AGENT, index=index, now=NOW) as captures:
            site = captures.today("https://had.example")
            assert site is not None
            assert site.site.access(AGENT, "https://had.example/y").verdict is expected


def test_a_database_of_somebody_else_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (a)")
    with pytest.raises(PolicyError, match="is no policy store"):
        open_captures([path], agent=AGENT)


# The history of a site


ACAP = b"""User-agent: *
Visit-time: 0600-0700

ACAP-crawler: *
ACAP-allow-preserve: / time-limit=10-days
ACAP-allow-index: / time-limit=until-2024-06-15
"""


@pytest.mark.parametrize("called", ["2024-12-24T06:30Z", "2026-01-01T00:00Z"])
def test_a_history_depends_on_the_captures_alone(tmp_path: Path, called: str) -> None:
    moments = [NOON, NOON + 30 * DAY, NOON + 60 * DAY]
    answers = [Answered("https://example.com/robots.txt", ACAP, at=moment) for moment in moments]
    path = write_warc(tmp_path / "robots.warc", answers)
    with (
        time_machine.travel(called),
        open_captures([path], agent=Agent("examplebot", uses=("preserve", "index"))) as captures,
    ):
        visits = history(captures, "https://example.com/", PLAIN)
        told = as_json(visits, "https://example.com/", captures.agent)
    assert [visit.answers["preserve"].summary for visit in visits] == ["allow (for 10 days)"] * 3
    assert [date["answers"]["preserve"]["until"][:10] for date in told["dates"]] == [
        "2024-05-11",
        "2024-06-10",
        "2024-07-10",
    ]
    index = "allow (until 2024-06-15T23:59:59Z)"
    assert [visit.answers["index"].summary for visit in visits] == [index, index, "deny"]
    assert [visit.answers["access"].verdict for visit in visits] == [Verdict.DEFER] * 3
    assert [date["changed"] for date in told["dates"]] == [[], [], ["index"]]
