"""The SQLite files of our own: what is no such file is said, with what to do about it, and left alone."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import sqlite3
import stat
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scrapy import Request, Spider

from comity.crawler.feeds import policy_archive
from comity.crawler.frontier import journal
from comity.crawler.frontier.journal import NAME, Journal
from comity.database import DatabaseKind, open_database
from comity.dataset.captures import index
from comity.gate.fetching import store
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.store import PolicyStore
from comity.gate.pace import ledger
from comity.gate.pace.ledger import PaceLimit, RateLedger
from comity.policies import Fetched, PolicyError
from comity.policies.syntax.windows import Window
from tests.selection import examples


@dataclass(frozen=True, kw_only=True)
class Kind:
    open: Callable[[Path], PolicyStore | RateLedger | Journal]
    subject: str
    remedies: tuple[str, ...]


KINDS = {
    "policy store": Kind(
        open=PolicyStore,
        subject="COMITY_STORE",
        remedies=("move the file away", "set COMITY_STORE to a path that can be written"),
    ),
    "pace file": Kind(
        open=RateLedger,
        subject="pace file",
        remedies=("move the file away", "set COMITY_STORE to a path in a folder"),
    ),
    "queue of comity": Kind(
        open=lambda path: Journal(path.parent),
        subject="JOBDIR:",
        remedies=("set JOBDIR to another folder", "move the file away"),
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


def of_another_version(path: Path, kind: str) -> str:
    KINDS[kind].open(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    return "its tables have version 99, and this comity uses version 1"


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
@pytest.mark.parametrize(
    "make",
    [
        no_database,
        foreign,
        another_of_ours,
        of_another_version,
        damaged,
        a_folder,
        in_no_folder,
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_used_is_said_and_left_alone(
    tmp_path: Path, kind: str, make: Callable[[Path, str], str]
) -> None:
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


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("version", [0, 2, 99])
@pytest.mark.parametrize(
    "kind",
    [store.KIND, ledger.KIND, journal.KIND, index.KIND, policy_archive.JOURNAL],
    ids=lambda kind: kind.name,
)
def test_a_file_of_another_version_is_refused_and_stays_unchanged(
    tmp_path: Path, kind: DatabaseKind, version: int
) -> None:
    path = tmp_path / "file.sqlite"
    with closing(open_database(path, kind)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (kind.version,) == (1,)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(PolicyError) as raised:
        open_database(path, kind)
    assert str(raised.value) == (
        f"{kind.subject} `{path}` was written by another version of comity: its tables have version"
        f" {version}, and this comity uses version 1; {kind.remedy}"
    )
    assert path.read_bytes() == before


# Damage anywhere

PAGE = 4096  # octets of a page of SQLite
SITE = "https://a.test"
MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
LATER = datetime(2026, 11, 22, tzinfo=UTC)
REFUSING = Fetched(status=200, body=b"User-agent: *\nDisallow: /\n" * 300, fetched_at=MOMENT)
RATE = PaceLimit("a.test", (Window(1, 10.0),))


class Pages(Spider):
    name = "pages"


def fill(kind: str, path: Path) -> None:
    opened = KINDS[kind].open(path)
    if isinstance(opened, PolicyStore):
        opened.save(
            SITE, {f"/{number}.txt": PolicyFile(due=0, copy=REFUSING) for number in range(20)}
        )
        opened.first_taken(SITE, ["index"], MOMENT)
        opened.requests_action(SITE, "take-down", "00", MOMENT)
        opened.session_began("a.test", b"secret", MOMENT)
    elif isinstance(opened, RateLedger):
        for number in range(50):
            turn = opened.acquire([PaceLimit(f"{number}.test", RATE.windows)], 1e9).number
            assert turn
            opened.settle(turn, 1e9)
        opened.back_off("a.test", 60, 1e9)
    else:
        opened.open(Pages())
        for number in range(50):
            opened.put(SITE, Request(f"{SITE}/{number}", meta={"note": "x" * 200}), b"%d" % number)
    opened.close()


def use(opened: PolicyStore | RateLedger | Journal) -> list[Any]:
    """What it tells. Each answer that it does not give is None."""
    if isinstance(opened, PolicyStore):
        asked = (
            lambda: opened.load(SITE),
            lambda: opened.first_taken(SITE, ["index"], LATER),
            opened.take_downs,
            lambda: opened.session_began("a.test", b"secret", LATER),
            lambda: opened.save(
                "https://b.test", {"/robots.txt": PolicyFile(due=0, copy=REFUSING)}
            ),
        )
        return [_told(ask, OSError) for ask in asked]
    if isinstance(opened, RateLedger):
        opened.beat(1e9)
        opened.back_off("b.test", 60, 1e9)
        return [opened.penalty("a.test", 1e9), opened.acquire([RATE], 1e9).number is not None]
    opened.open(Pages())
    stored = _told(lambda: list(opened.stored_requests()), PolicyError)
    if stored is None:
        return []
    opened.put(SITE, Request(SITE), b"new")
    _told(opened.flush, OSError)
    return [_told(partial(_url, opened, key), LookupError) for key, _, _ in stored]


def _url(journal: Journal, key: int) -> str:
    return str(journal.get(key).url)


def _told(ask: Callable[[], Any], error: type[Exception]) -> Any:
    try:
        return ask()
    except error as raised:
        return (
            None if str(raised).isprintable() else str(raised)
        )  # which is not what it should tell


class Whole:
    """A file that is not damaged. Hypothesis would show all that is in a data class."""

    def __init__(self, octets: bytes, told: list[Any]) -> None:
        self.octets = octets
        self.told = told


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Whole]:
    """By kind."""
    files = {}
    for kind in KINDS:
        path = tmp_path_factory.mktemp("whole") / NAME
        fill(kind, path)
        octets = path.read_bytes()
        opened = KINDS[kind].open(path)
        files[kind] = Whole(octets, use(opened))
        opened.close()
    return files


def _with_octets(whole: bytes, at: float, octets: bytes) -> bytes:
    place = int(at * (len(whole) - 1))
    return whole[:place] + octets + whole[place + len(octets) :]


def _with_octets_in_front(whole: bytes, at: float, octets: bytes) -> bytes:
    """In the header or in the schema."""
    return _with_octets(whole, at * PAGE / max(len(whole), PAGE), octets)


def _with_run(whole: bytes, at: float, octets: bytes) -> bytes:
    return _with_octets(whole, at, octets[:1] * 512)


def _with_page(whole: bytes, at: float, octets: bytes) -> bytes:
    """One page in the place of another."""
    pages = [whole[place : place + PAGE] for place in range(0, len(whole), PAGE)]
    pages[int(at * (len(pages) - 1))] = pages[octets[0] % len(pages)]
    return b"".join(pages)


def _with_word(whole: bytes, at: float, octets: bytes) -> bytes:
    """Another word in the schema, as long."""
    words = [*re.finditer(rb"[A-Za-z_]{3,}", whole[100:PAGE])]
    start, end = (100 + place for place in words[int(at * (len(words) - 1))].span())
    word = (b"x", b"TEXT", b"origin", b"NULL", b"--", b"'", b"(", b"sum")[octets[0] % 8]
    return whole[:start] + word.ljust(end - start)[: end - start] + whole[end:]


def _cut(whole: bytes, at: float, octets: bytes) -> bytes:
    return whole[: int(at * len(whole))]


DAMAGES = st.tuples(
    st.sampled_from([_with_octets, _with_octets_in_front, _with_run, _with_page, _with_word, _cut]),
    st.floats(0, 1),
    st.binary(min_size=1, max_size=8),
)


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(250), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=DAMAGES)
@example(damage=(_with_octets, 0.5258157290562785, b"\x01\x80"))
def test_damage_anywhere_is_said_and_permits_nothing(
    tmp_path: Path,
    whole: dict[str, Whole],
    kind: str,
    damage: tuple[Callable[[bytes, float, bytes], bytes], float, bytes],
) -> None:
    """Whatever a damaged file still tells, is what was written in it; or nothing, as of what it never knew."""
    octets, told = whole[kind].octets, whole[kind].told
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        path = Path(folder) / NAME
        how, at, other = damage
        path.write_bytes(how(octets, at, other))
        opened = _told(partial(KINDS[kind].open, path), PolicyError)
        if not isinstance(opened, PolicyStore | RateLedger | Journal):
            assert opened is None
            return
        try:
            answers = use(opened)
        finally:
            _told(opened.close, OSError)
    if kind == "policy store":
        stored, first, take_downs, began, _ = answers
        assert all(file in told[0].values() for file in (stored or {}).values())
        assert first in (told[1], {"index": LATER}, None)
        assert take_downs in (told[2], [], None)
        assert began in (told[3], LATER, None)
    elif kind == "queue of comity":
        assert set(answers) <= {*told, None}


# For this user alone


def modes(folder: Path) -> dict[str, int]:
    return {one.name: stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()}


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("kind", KINDS)
def test_new_files_are_for_this_user_alone(tmp_path: Path, kind: str) -> None:
    before = os.umask(0)
    try:
        opened = KINDS[kind].open(tmp_path / "outer" / "inner" / NAME)
        assert set(modes(tmp_path / "outer" / "inner")) >= {NAME, f"{NAME}-wal"}
        assert set(modes(tmp_path / "outer" / "inner").values()) == {0o600}
        assert modes(tmp_path) | modes(tmp_path / "outer") == {"outer": 0o700, "inner": 0o700}
        opened.close()
    finally:
        os.umask(before)


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("kind", KINDS)
def test_files_that_are_there_keep_their_mode_which_is_said(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "folder" / NAME
    KINDS[kind].open(path).close()
    path.chmod(0o644)
    path.parent.chmod(0o755)
    with caplog.at_level(logging.INFO):
        KINDS[kind].open(path).close()
    assert (modes(tmp_path), modes(path.parent)[NAME]) == ({"folder": 0o755}, 0o644)
    assert [record.getMessage() for record in caplog.records] == [
        f"{path} is open to other users of this machine: chmod 600 closes it"
    ]


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("kind", KINDS)
def test_a_link_to_no_file_leads_to_a_new_one_for_this_user_alone(
    tmp_path: Path, kind: str
) -> None:
    (tmp_path / NAME).symlink_to(tmp_path / "elsewhere.sqlite")
    KINDS[kind].open(tmp_path / NAME).close()
    assert modes(tmp_path)["elsewhere.sqlite"] == 0o600
    assert (tmp_path / NAME).is_symlink()
