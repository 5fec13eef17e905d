"""The conformance tests of stores, on the databases of SQL that comity supports."""

from __future__ import annotations

from pathlib import Path

import pytest

from comity.cluster.conformance.harness import Harness
from tests.cluster.sql_harness import OldPostgres, OwnPostgres, OwnSqlite
from tests.cluster.test_state_conformance import conform_with

NOT_MADE = {
    OwnPostgres: {"fail-over": 3},
    OldPostgres: {"fail-over": 3},
    OwnSqlite: {"answer lost": 4, "fail-over": 3, "server frozen": 1, "server killed": 4},
}


@pytest.mark.requirement("STATE-1", "REACH-1", "REACH-2", "REACH-3", "RATE-2", "RATE-4")
@pytest.mark.usefixtures("new_processes")
@pytest.mark.parametrize(
    "harness",
    [OwnSqlite, *(pytest.param(one, marks=pytest.mark.slow) for one in (OwnPostgres, OldPostgres))],
)
def test_a_database_keeps_every_promise(harness: type[Harness], tmp_path: Path) -> None:
    done = conform_with(harness, tmp_path)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    summary = done.stdout.partition("faults that were not made")[2]
    listed = dict(line.split(": ") for line in summary.splitlines() if ": test_" in line)
    assert {fault: tests.count("test_") for fault, tests in listed.items()} == NOT_MADE[harness]
