"""Workers of one machine: whose process is gone is known, and of whom it is not."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from comity.cluster.neighbours import Neighbours

pytest.importorskip("fcntl")

CRAWL = "redis://127.0.0.1:6379/0 crawl"
OTHER = "redis://127.0.0.1:6379/0 other"
WORKER = """
import sys, time
from pathlib import Path
from comity.cluster.neighbours import Neighbours

neighbours = Neighbours("redis://127.0.0.1:6379/0 crawl", sys.argv[2], Path(sys.argv[1]))
neighbours.appear()
print("here", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "workers"


@pytest.fixture
def one(folder: Path) -> Iterator[Neighbours]:
    neighbours = Neighbours(CRAWL, "host:1:one", folder)
    neighbours.appear()
    yield neighbours
    neighbours.vanish()


class Process:
    """A worker in a process of its own."""

    def __init__(self, folder: Path, name: str) -> None:
        command = [sys.executable, "-c", WORKER, str(folder), name]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout
        assert self.process.stdout.readline() == b"here\n"

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def dead(neighbours: Neighbours) -> list[str]:
    with neighbours.dead() as names:
        return names


@pytest.mark.requirement("REACH-2")
def test_worker_is_dead_once_its_process_is_gone(folder: Path, one: Neighbours) -> None:
    two = Process(folder, "host:2:two")
    try:
        assert dead(one) == []
        two.process.send_signal(signal.SIGSTOP)  # it may go on, and send what it was about to
        assert dead(one) == []
    finally:
        two.end()
    assert dead(one) == ["host:2:two"]
    assert dead(one) == []


def test_dead_worker_is_told_again_where_the_first_time_failed(
    folder: Path, one: Neighbours
) -> None:
    Process(folder, "host:2:two").end()
    three = Neighbours(CRAWL, "host:3:three", folder)
    three.appear()
    look = one.dead()
    assert look.__enter__() == ["host:2:two"]
    assert dead(three) == []  # one at a time
    assert not look.__exit__(OSError, OSError("the server is away"), None)
    three.vanish()
    assert dead(one) == ["host:2:two"]


def test_whoever_has_left_is_not_dead(folder: Path, one: Neighbours) -> None:
    two = Neighbours(CRAWL, "host:2:two", folder)
    two.appear()
    two.vanish()
    assert dead(one) == []
    two.vanish()  # as often as one likes


def test_workers_of_other_crawls_are_left_to_these(folder: Path, one: Neighbours) -> None:
    Process(folder, "host:2:two").end()
    other = Neighbours(OTHER, "host:3:three", folder)
    other.appear()
    assert dead(other) == []
    other.vanish()
    assert dead(one) == ["host:2:two"]


def test_files_that_go_at_the_wrong_moment_tell_nothing(
    folder: Path, one: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker has left between two looks at its file."""
    Process(folder, "host:2:two").end()
    listed = one._others()
    assert dead(one) == ["host:2:two"]
    monkeypatch.setattr(one, "_others", lambda: listed)
    assert dead(one) == []


@pytest.mark.parametrize("mode", [0o777, 0o750])
def test_folder_that_others_may_read_or_write_tells_nothing(
    folder: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    folder.mkdir()
    folder.chmod(mode)
    caplog.set_level("INFO")
    one = Neighbours(CRAWL, "host:1:one", folder)
    one.appear()
    assert "is not a private folder of this user" in caplog.text
    assert list(folder.iterdir()) == []
    assert dead(one) == []
    one.vanish()


def test_folder_that_cannot_be_made_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    one = Neighbours(CRAWL, "host:1:one", tmp_path / "file")
    one.appear()
    assert dead(one) == []
    one.vanish()
