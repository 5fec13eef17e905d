"""The SQLite files of our own: what is no such file is said, with what to do about it, and left alone."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from comity.crawler.budget import Budget
from comity.crawler.job import NAME, Job
from comity.crawler.store import PolicyStore
from comity.policies import PolicyError


@dataclass(frozen=True, kw_only=True)
class Kind:
    open: Callable[[Path], PolicyStore | Budget | Job]
    subject: str
    remedies: tuple[str, ...]


KINDS = {
    "policy store": Kind(
        open=PolicyStore,
        subject="COMITY_STORE",
        remedies=("move the file away", "set COMITY_STORE to a path that can be written"),
    ),
    "pace file": Kind(
        open=Budget, subject="pace file", remedies=("move the file away", "set COMITY_STORE to a path in a folder")
    ),
    "queue of comity": Kind(
        open=lambda path: Job(path.parent), subject="JOBDIR:", remedies=("set JOBDIR to another folder", "move the file away")
    ),
}


def no_database(path: Path, kind: str) -> str:
    path.write_bytes(b"my notes" * 1000)
    return f"is damaged or is no {kind}"


def foreign(path: Path, kind: str) -> str:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs (x)")
    db.execute("INSERT INTO theirs VALUES ('precious')")
    db.commit()
    db.close()
    return f"is no {kind}"


def another_of_ours(path: Path, kind: str) -> str:
    other = next(one for name, one in KINDS.items() if name != kind)
    other.open(path).close()
    return f"is no {kind}"


def newer(path: Path, kind: str) -> str:
    KINDS[kind].open(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    return "was written by a newer version"


def damaged(path: Path, kind: str) -> str:
    KINDS[kind].open(path).close()
    octets = path.read_bytes()
    path.write_bytes(octets[:100] + b"\xff" * (len(octets) - 100))
    return "is damaged"


def a_folder(path: Path, kind: str) -> str:
    path.mkdir()
    return "cannot be opened"


def in_no_folder(path: Path, kind: str) -> str:
    path.parent.rmdir()
    path.parent.touch()
    return "cannot be opened"


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("make", [no_database, foreign, another_of_ours, newer, damaged, a_folder, in_no_folder])
@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_used_is_said_and_left_alone(tmp_path: Path, kind: str, make: Callable[[Path, str], str]) -> None:
    path = tmp_path / "folder" / NAME
    path.parent.mkdir()
    why = make(path, kind)
    before = hashlib.sha256(path.read_bytes()).digest() if path.is_file() else None
    with pytest.raises(PolicyError) as raised:
        KINDS[kind].open(path)
    message = str(raised.value)
    assert message.startswith(f"{KINDS[kind].subject} `{path}` ")
    assert [said for said in (why, *KINDS[kind].remedies) if said not in message] == []
    assert "\n" not in message
    assert before is None or hashlib.sha256(path.read_bytes()).digest() == before
