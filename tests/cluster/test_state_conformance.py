"""The conformance tests of stores, on the servers of Redis that comity supports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from comity.cluster.conformance.harness import Harness
from tests.cluster.harness import OldServer, OwnCluster, OwnServer
from tests.selection import examples
from tests.sources import ROOT

NOT_MADE = {
    OwnServer: {"fail-over": 3},
    OldServer: {"fail-over": 3},
    OwnCluster: {
        "answer lost": 4,
        "server clock set": 6,
        "server frozen": 1,
    },
}


PACKAGE = "comity.cluster.conformance"
# The modules that `make test` runs on Redis. It runs the others, with killed workers and the model of the queue, on SQLite.
QUICK = ("test_books", "test_queue", "test_store", "test_turns")


def conform(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the conformance tests as the author of another store does."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, f"--rootdir={folder}", "--pyargs", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def conform_with(
    harness: type[Harness], folder: Path, *names: str
) -> subprocess.CompletedProcess[str]:
    """Run the conformance tests, or the modules of these names, with a harness and the profile of these tests."""
    name = f"{harness.__module__}:{harness.__name__}"
    number = f"--examples={examples(100, quick=3)}"
    path = f"pythonpath={ROOT}"
    seed = ["--hypothesis-seed=0"] if settings().derandomize else []
    modules = [f"{PACKAGE}.{name}" for name in names] or [PACKAGE]
    return conform(folder, *modules, "-o", path, "--harness", name, number, *seed)


@pytest.mark.requirement(
    "STATE-1",
    "AUTX-2",
    "AUTX-3",
    "REACH-1",
    "REACH-2",
    "REACH-3",
    "REACH-4",
    "RATE-2",
    "RATE-4",
    "STATE-4",
)
@pytest.mark.usefixtures("new_processes")
@pytest.mark.parametrize(
    "harness",
    [
        OwnServer,
        pytest.param(OldServer, marks=pytest.mark.slow),
        pytest.param(OwnCluster, marks=pytest.mark.slow),
    ],
)
def test_redis_keeps_every_promise(
    harness: type[OwnServer], tmp_path: Path, *, in_full: bool
) -> None:
    done = conform_with(harness, tmp_path, *(() if in_full else QUICK))
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    summary = done.stdout.partition("faults that were not made")[2]
    listed = dict(line.split(": ") for line in summary.splitlines() if ": test_" in line)
    assert {fault: tests.count("test_") for fault, tests in listed.items()} == NOT_MADE[harness]


@pytest.mark.slow
@pytest.mark.requirement("STATE-1")
@pytest.mark.usefixtures("new_processes")
def test_without_a_store_the_conformance_tests_say_so(tmp_path: Path) -> None:
    done = conform(tmp_path, PACKAGE)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stderr.splitlines() == ["ERROR: write the URL of the store: --state URL", ""]
