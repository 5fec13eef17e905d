"""Clients that several processes count together: like those of one process, and freed of the
requests of a killed one."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.guard import Answer, Guard, Incoming, Pass, SharedClients
from comity.guard.clients import ClientLimit, Clients
from comity.policies import PolicyError
from comity.policies.syntax.windows import Window
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.guard.conftest import Client, Servers

HERE = Path(__file__).parent
START = 1_900_000_000.0


def limit(
    *windows: Window, concurrent: int | None = None, key: str = "k", tolerance: float = 0
) -> ClientLimit:
    return ClientLimit(key, "/automation-preferences.txt", windows, concurrent, tolerance)


@pytest.mark.requirement("GUARD-1", "AUTX-2")
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "\udcff"]),  # client
            st.sampled_from([0.0, 0.5, 1.0, 10.0, -0.25, -100.0]),  # seconds to the next
            st.sampled_from([(1, 1.0), (3, 5.0), (300, 20.0)]),  # window
            st.integers(1, 5),  # requests
            st.sampled_from([None, 1, 2]),  # in flight
            st.booleans(),  # whether one of those in flight ends
        ),
        max_size=30,
    )
)
def test_what_is_shared_is_counted_like_what_is_not(
    steps: list[tuple[str, float, tuple[int, float], int, int | None, bool]],
) -> None:
    with TemporaryDirectory() as folder:
        own, shared, now = Clients(10), SharedClients(Path(folder) / "counts.sqlite"), START
        flights: list[tuple[str, list[ClientLimit]]] = []
        for name, pause, window, requests, concurrent, ends in steps:
            now += pause
            limits = [
                limit(Window(*window), concurrent=concurrent),
                limit(Window(2, 3), key="other", tolerance=0.5),
            ]
            for _ in range(requests):
                refused = own.claim(name, limits, now)
                assert shared.claim(name, limits, now) == refused
                flights += [(name, limits)] if refused is None and concurrent is not None else []
            if ends and flights:
                flight = flights.pop()
                own.release(*flight)
                shared.release(*flight)


@pytest.mark.requirement("GUARD-1", "AUTX-2", "AUTX-3")
def test_two_are_one(tmp_path: Path) -> None:
    one, other = (SharedClients(tmp_path / "new" / "counts.sqlite") for _ in range(2))
    rate, two = [limit(Window(3, 60))], [limit(concurrent=2, key="two")]
    assert [counts.claim("c", rate, START) is None for counts in (one, other, one, other, one)] == [
        True
    ] * 3 + [False] * 2
    assert other.claim("d", rate, START) is None
    assert [counts.claim("c", two, START) is None for counts in (one, other, one, other)] == [
        True,
        True,
        False,
        False,
    ]
    other.release("c", two)
    assert [counts.claim("c", two, START) is None for counts in (one, other)] == [True, False]
    assert (tmp_path / "new" / "counts.sqlite").stat().st_mode & 0o077 == 0


CLAIM = """
import sys
from pathlib import Path
from comity.guard import SharedClients
from comity.guard.clients import ClientLimit
counts, limit = SharedClients(Path(sys.argv[1])), ClientLimit("k", "/", (), 2)
print([counts.claim("c", [limit], 1_900_000_000.0) is None for _ in range(3)], flush=True)
sys.stdin.read()
"""


@pytest.mark.requirement("GUARD-1", "AUTX-3")
def test_what_a_killed_process_had_in_flight_is_over(tmp_path: Path) -> None:
    path, two = tmp_path / "counts.sqlite", [limit(concurrent=2)]
    counts = SharedClients(path)
    for number in range(2):
        with subprocess.Popen(
            [sys.executable, "-c", CLAIM, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout
            assert process.stdout.readline().strip() == "[True, True, False]"
            assert counts.claim("c", two, START) is not None
            assert SharedClients(path).claim("c", two, START) is not None
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        if number:
            counts = SharedClients(path)  # a server that is started again
        assert [counts.claim("c", two, START) is None for _ in range(3)] == [True, True, False]
        for _ in range(2):
            counts.release("c", two)
    assert len(list(tmp_path.glob("counts.sqlite.*"))) <= 2  # of the dead ones nothing is left


@pytest.mark.requirement("GUARD-1")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_counts_for_itself(tmp_path: Path) -> None:
    """As the workers of a server that loads the application first."""
    counts, two = SharedClients(tmp_path / "counts.sqlite"), [limit(Window(5, 60), concurrent=2)]
    assert counts.claim("c", two, START) is None
    child = os.fork()
    if not child:
        os._exit(
            0 if [counts.claim("c", two, START) is None for _ in range(2)] == [True, False] else 1
        )
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    # the child is dead
    assert [counts.claim("c", two, START) is None for _ in range(2)] == [
        True,
        False,
    ]
    counts.release("c", two)
    assert [counts.claim("c", two, START) is None for _ in range(2)] == [True, False]


@pytest.mark.requirement("GUARD-1", "AUTX-2")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.slow
def test_processes_that_begin_at_once_are_one(tmp_path: Path) -> None:
    """As the workers of a server do. Each sends one request, and three in all are permitted."""
    for number in range(20):
        path = tmp_path / f"{number}.sqlite"
        together, begin = os.pipe()
        children = []
        for _ in range(8):
            child = os.fork()
            if not child:
                os.close(begin)
                os.read(together, 1)
                code = 2
                try:
                    code = int(
                        SharedClients(path).claim("c", [limit(Window(3, 60))], START) is None
                    )
                finally:
                    os._exit(code)
            children.append(child)
        os.close(begin)
        os.close(together)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        assert sorted(codes) == [0] * 5 + [1] * 3


@pytest.mark.requirement("GUARD-1", "SEC-1")
def test_what_is_kept_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "counts.sqlite"
    counts, minute, hour = (
        SharedClients(path, max_clients=100),
        [limit(Window(2, 60))],
        [limit(Window(1, 3600), key="h")],
    )
    assert counts.claim("long", hour, START) is None
    for number in range(2000):
        assert counts.claim(f"c{number}", minute, START + number * 0.01) is None
    assert counts.claim("long", hour, START + 30) is not None
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM stamps").fetchone()[0] <= 100 + 256
        for number in range(300):
            counts.claim("busy", minute, START + 100 + number)
        clients, longest = db.execute(
            "SELECT count(*), max(length(moments)) FROM stamps"
        ).fetchone()
        assert clients == 2
        assert longest <= 8 * 2 * (2 + 2)


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize("body", [b"no database" * 100, None])
def test_a_file_that_cannot_be_used_is_said_at_the_start(
    tmp_path: Path, body: bytes | None
) -> None:
    path = tmp_path / "counts.sqlite"
    if body:
        path.write_bytes(body)
    else:
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE own (x)")
    with pytest.raises(
        PolicyError, match=r"counts `.*counts.sqlite` cannot be used: .*; write a path in a folder"
    ):
        SharedClients(path)


@pytest.mark.requirement("GUARD-1")
def test_what_cannot_be_counted_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused with 503, and only if a limit applies.

    Requests that end meanwhile are released afterwards."""
    monkeypatch.setattr("comity.guard.shared.BUSY", 0.01)
    path = tmp_path / "counts.sqlite"
    automation = (
        b"scope: /\nallowed-methods: GET\n\nscope: /two/\nallowed-methods: GET\n"
        b"concurrent-limit: 2\n"
    )
    guard = Guard(
        "https://example.com",
        {"/automation-preferences.txt": automation},
        counts=SharedClients(path),
    )
    two, other = (
        Incoming("GET", target, {"user-agent": "testbot"}, "192.0.2.1") for target in ("/two/", "/")
    )
    passed = guard.check(two)
    assert isinstance(passed, Pass)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        for _ in range(2):
            answer = guard.check(two)
            assert isinstance(answer, Answer)
            assert (answer.status, json.loads(answer.body)["rule"]) == (503, "comity.uncounted")
            assert dict(answer.headers)["Retry-After"] == "1"
        assert isinstance(guard.check(other), Pass)
        passed.end()
        db.execute("ROLLBACK")
    assert [isinstance(guard.check(two), Pass) for _ in range(3)] == [True, True, False]
    assert [record.levelname for record in caplog.records if "counts `" in record.getMessage()] == [
        "ERROR"
    ]


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize(
    "damage",
    ["UPDATE stamps SET moments = x'00'", "UPDATE stamps SET moments = 'x'", "DROP TABLE stamps"],
)
def test_what_is_damaged_permits_nothing(tmp_path: Path, damage: str) -> None:
    path, rate = tmp_path / "counts.sqlite", [limit(Window(5, 60))]
    counts = SharedClients(path)
    assert counts.claim("c", rate, START) is None
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(damage)
    refused = counts.claim("c", rate, START)
    assert refused
    assert refused.rule == "comity.uncounted"


PATIENCE = 60.0  # seconds for a server to do its task
LIMITED = one_in(3, ["gunicorn-2-workers", "gunicorn-preload", "uvicorn-2-workers"])


@pytest.fixture(params=LIMITED)
def origin(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[str]:
    kind = servers.SERVERS[request.param].kind
    with servers.serving(
        request.param, f"holding:{kind}", HERE, COUNTS=str(tmp_path / "counts.sqlite")
    ) as origin:
        yield origin


def workers_of(person: Client) -> set[int]:
    """Both."""
    found = set[int]()
    give_up = time.monotonic() + PATIENCE
    while len(found) < 2 and time.monotonic() < give_up:
        found.add(json.loads(person.ask("/pages/").body)["worker"])
    return found


def wait_until_gone(processes: set[int]) -> None:
    """A killed process lives until it is scheduled once more, and its requests in flight count
    until then."""
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up and any(map(is_there, processes)):
        time.sleep(0.002)  # between two looks at other processes


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def with_two_in_flight(path: Path, dead: set[int]) -> set[int]:
    """The processes with these requests. `dead`: processes that the file may still list."""
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        with closing(sqlite3.connect(path)) as db:
            rows = db.execute(
                "SELECT process, sum(requests) FROM in_flight GROUP BY process"
            ).fetchall()
        alive = {process: requests for process, requests in rows if process not in dead}
        if sum(alive.values()) == 2:
            return set(alive)
        time.sleep(0.01)  # between two looks at other processes
    raise AssertionError(rows)


@pytest.mark.requirement("GUARD-1", "AUTX-2", "AUTX-3")
def test_all_workers_of_a_server_together_permit_no_more(
    origin: str, servers: Servers, tmp_path: Path
) -> None:
    robot, person = servers.Client(origin), servers.person(origin)
    with ThreadPoolExecutor(16) as threads:
        hourly = list(threads.map(lambda _: robot.ask("/hourly/"), range(40)))
    assert sorted(got.status for got in hourly) == [200] * 3 + [429] * 37

    path = tmp_path / "counts.sqlite"
    dead = set[int]()
    for _ in range(2):
        waiting = [robot.begin("/hold/1"), robot.begin("/hold/2")]
        dead |= with_two_in_flight(path, dead)
        refused = [robot.ask("/hold/3") for _ in range(20)]
        assert {(got.status, got.problem["rule"]) for got in refused} == {
            (429, "comity.concurrent")
        }
        killed = workers_of(person)  # the server starts others
        for worker in killed:
            os.kill(worker, signal.SIGKILL)
        wait_until_gone(killed)
        for connection in waiting:
            connection.close()
