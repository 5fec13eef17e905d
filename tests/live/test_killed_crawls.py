"""Crawls that are killed with -9 lose no item, whatever file the items go to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.live.killed_crawls import FEEDS, HOSTS, TAGS, KilledCrawl
from tests.redis_server import Server

if TYPE_CHECKING:
    from tests.conftest import Serve

PLACES = ("JOBDIR", "COMITY_STATE")
QUICK = ("parquet", "untagged", "JOBDIR")
CASES = [
    pytest.param(*case, marks=() if case == QUICK else pytest.mark.slow)
    for case in ((feed, tag, place) for feed in FEEDS for tag in TAGS for place in PLACES)
]


@pytest.fixture
def state(place: str, tmp_path: Path) -> Iterator[Server | None]:
    if place == "JOBDIR":
        yield None
        return
    server = Server(tmp_path / "state")
    server.start()
    yield server
    server.stop()


@pytest.mark.slow
@pytest.mark.requirement("STATE-2")
@pytest.mark.parametrize(("feed", "tag", "place"), CASES)
def test_kill_9_loses_no_item(
    serve: Serve,
    tmp_path: Path,
    state: Server | None,
    feed: str,
    tag: str,
    place: str,
    *,
    in_full: bool,
) -> None:
    """`python benchmarks/lost_items.py` does it with 20 kills for each."""
    kills, pages = (6, 60) if in_full else (2, 30)
    outcome = KilledCrawl(tmp_path, serve, feed, TAGS[tag], state, pages=pages, delay=0.1).run(
        kills, Random(f"{feed}{tag}{place}")
    )
    assert outcome.pages == HOSTS * pages, outcome
    assert (outcome.lost, outcome.unreadable) == (0, 0), outcome
    assert outcome.items == 2 * outcome.pages, outcome
