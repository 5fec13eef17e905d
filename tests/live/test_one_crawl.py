"""The workers of a crawl have one configuration, one total and one end, by what the servers saw of all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.live.test_jobdir import asked, numbered, tree
from tests.live.test_reach import Workers, mode, project, state, workers

if TYPE_CHECKING:
    from tests.conftest import Serve
    from tests.live.test_jobdir import Running

__all__ = ["mode", "project", "state", "workers"]  # fixtures

SLOW = "User-agent: *\nCrawl-delay: 100\n"


def ended(running: Running, status: int) -> str:
    """Wait for the end of the worker, and return its log."""
    assert running.end() == status, running.log
    assert "Traceback" not in running.log
    return running.log


def command(workers: Workers, *arguments: str) -> str:
    """Run a command in the project of the workers, and return its output."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    ran = subprocess.run(
        [sys.executable, "-m", "scrapy", *arguments],
        cwd=workers.project.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.requirement("STATE-4")
def test_a_worker_that_would_decide_differently_is_refused_before_its_first_request(
    serve: Serve, workers: Workers
) -> None:
    server, other = serve(tree(12, SLOW)), serve(tree(3), host="127.0.0.2")
    first = workers.begin(1, {"COMITY_USES": "index"}, urls=server.url("/0"))
    first.until_asked(server, 1)
    refused = workers.begin(
        1, {"COMITY_USES": "index,train", "COMITY_MAX_DELAY": 7}, urls=other.url("/0")
    )
    log = ended(refused, 1)
    assert (
        "this worker would decide differently from crawl `test`: COMITY_USES is `index, train` here,"
        " and `index` in the crawl. Start it with the settings of the crawl, or give the crawl these"
        " settings with `comity frontier test --reconfigure`" in log
    )
    assert other.paths == []
    warned = workers.begin(
        1, {"COMITY_USES": "index", "COMITY_MAX_DELAY": 300.5}, urls=other.url("/0")
    )
    warned.until_asked(other, 3)
    assert (
        "settings of this worker differ from those of crawl `test`: COMITY_MAX_DELAY is `300.5`"
        " here, and `300` in the crawl" in warned.log
    )


@pytest.mark.requirement("STATE-4")
def test_new_settings_are_deployed_by_a_command(serve: Serve, workers: Workers) -> None:
    """A worker with the old settings ends, and a worker with the new ones goes on with what is left."""
    pages = tree(12, "User-agent: *\nCrawl-delay: 0.3\n")
    server = serve(pages)
    old = workers.begin(1, {"COMITY_USES": "index"}, urls=server.url("/0"))
    old.until_asked(server, 2)
    url = f"COMITY_STATE={workers.settings['COMITY_STATE']}"
    told = command(
        workers, "frontier", "test", "--reconfigure", "-s", url, "-s", "COMITY_USES=train"
    )
    assert told.splitlines()[0] == "COMITY_USES: `index` becomes `train`"
    assert "test has new settings: workers that decide differently end within 1 s" in told
    log = ended(old, 1)
    assert "'finish_reason': 'crawl_reconfigured'" in log
    assert "COMITY_USES is `index` here, and `train` in the crawl" in log
    assert len(asked(server)) < 12
    told = command(
        workers, "frontier", "test", "--reconfigure", "-s", url, "-s", "COMITY_USES=train"
    )
    assert told == "test has these settings already\n"
    new = workers.begin(1, {"COMITY_USES": "train"}, urls=server.url("/0"))
    ended(new, 0)
    assert sorted(asked(server)) == sorted(numbered(12))
