"""One crawl by several workers over PostgreSQL, and over SQLite, with workers that are killed, frozen or slow: as over Redis."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.live.test_jobdir import asked, gaps, numbered
from tests.live.test_reach import (  # pytest runs the tests with the fixtures
    Workers,
    has_asked,
    mode,  # noqa: F401
    project,  # noqa: F401
    test_kill_9_of_a_worker_loses_no_page,  # noqa: F401
    test_nobody_waits_for_a_host_that_is_too_slow_and_what_waits_for_it_is_kept,  # noqa: F401
    test_worker_that_was_stopped_asks_no_host_too_soon,  # noqa: F401
    test_workers_share_a_crawl_and_end_by_themselves,  # noqa: F401
    workers,  # noqa: F401
    woven,
)
from tests.sql_server import PostgresServer, SqliteFile

if TYPE_CHECKING:
    from tests.conftest import Serve


@pytest.fixture(params=[pytest.param("postgresql", marks=pytest.mark.slow), "sqlite"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PostgresServer | SqliteFile]:
    if request.param == "sqlite":
        yield SqliteFile(tmp_path / "state")
        return
    server = PostgresServer(tmp_path / "state")
    server.start()
    yield server
    server.stop()


@pytest.mark.slow
@pytest.mark.parametrize("state", ["postgresql"], indirect=True)
@pytest.mark.requirement("REACH-2", "REACH-3")
def test_a_server_of_postgresql_that_is_killed_loses_no_page(
    serve: Serve,
    workers: Workers,  # noqa: F811
    state: PostgresServer,
) -> None:
    servers = woven(serve, 3, 12, "User-agent: *\nCrawl-delay: 0.2\n")
    running = workers.begin(2, urls=servers[0].url("/0"))
    running.until(partial(has_asked, servers, 12))
    state.kill()
    state.start()
    workers.end()
    for server in servers:
        assert set(asked(server)) == set(numbered(12))
        assert min(gaps(server)) >= 0.195


def test_a_crawl_in_a_database_is_paused_ended_and_deleted(
    serve: Serve,
    workers: Workers,  # noqa: F811
) -> None:
    servers = woven(serve, 2, 3)
    workers.begin(urls=servers[0].url("/0"))
    workers.end()
    assert workers.status()["done"] == 6
    assert "test is ended" in workers.frontier("--end").stdout
    assert "test is deleted" in workers.frontier("--delete").stdout
    assert "there is no crawl `test`" in workers.frontier("--once").stderr
