"""A long crawl by several workers over COMITY_STATE while everything around it fails: pages, items, pace and memory afterwards.

These faults come again and again, at moments that `--seed` decides:

    kill        a worker is killed with -9; like every worker that fails, it is started again after 5 s
    freeze      a worker is stopped for longer than COMITY_WORKER_TIMEOUT
    restart     the server of the state is killed with -9, and started again with its files
    fail-over   the server of the state is killed, and its replica takes over the address
    items full  the disk of the items is full
    state full  the disk of the server of the state is full
    memory full the server of the state has reached its `maxmemory`
    clock       the clock of a worker is moved, or the clock of the server of the state is set forward

The first worker is never killed, so that its memory can be seen to grow. A disk is a tmpfs in a mount namespace of this process
(`unshare`), and clocks are moved by libfaketime: the program says so if one of them is not here, and leaves out these faults.

Each page leads to the next of its host, and has one item. The page server says which requests came, and when. The exit status is
1 if a page or an item is lost, if a request came too soon, or if `comity frontier` does not say that the crawl is finished."""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from itertools import count
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hosts import WORKER, Log, Server, hosts
from reach import (
    COMITY,
    CONCURRENT,
    Fault,
    Faults,
    Neighbours,
    Usage,
    Worker,
    all_work,
    freeze,
    judged,
    work,
)
from redis.exceptions import RedisError
from rich.console import Console
from rich.table import Table
from scrapy.http import Response

from tests.redis_server import Server as Redis

START_AGAIN = 5.0  # seconds; RestartSec of examples/cluster/comity-worker@.service
SAMPLED = 10.0  # seconds from one look at the memory to the next
FULL = 20.0  # seconds for which a disk or a memory is full
PATIENCE = 600.0  # seconds after twice `--minutes`, until the crawl is given up
IN_NAMESPACE = "SOAK_MAY_MOUNT"  # environment variable
STEPS = (-86400, -3600, -30, 30, 3600, 86400)  # seconds by which clocks are moved
SHOWN = 30.0  # seconds from one line about the progress to the next
PAGE = os.sysconf("SC_PAGE_SIZE")
MIB = 2**20
NO_ROOM = "\nOSError: [Errno 28]"  # ends a traceback
# What `comity frontier` says of the crawl afterwards: counts that are 0, and those that are shown.
LEFT = ("waiting", "out", "set_aside", "unreadable", "leased")
TOLD = (
    "state",
    "finish_reason",
    "done",
    "requests",
    "pages",
    "items",
    "errors",
    "workers_alive",
    "workers_died",
)
UNLIMITED = "8gb"
REWRITE = ("scheduled", "in_progress")  # states of a rewrite of the AOF


class Kept(Neighbours):
    """Each page has an item, too."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        yield from super().parse(response)


# What can fail


class Disk:
    """A folder on a disk of its own, which can be filled."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        folder.mkdir()
        self.folder = folder
        if can_mount():
            subprocess.run(["mount", "-t", "tmpfs", "comity-soak", str(folder)], check=True)
            stack.callback(subprocess.run, ["umount", "--lazy", str(folder)], check=True)

    def fill(self) -> str:
        used = 0
        while not used or not self._resize(str(used)):  # more may have been written meanwhile
            status = os.statvfs(self.folder)
            used = max(1, status.f_blocks - status.f_bfree) * status.f_frsize
        return f"at {used / MIB:.1f} MiB"

    def free(self) -> None:
        self._resize("50%")

    def _resize(self, size: str) -> bool:
        command = ["mount", "-o", f"remount,size={size}", str(self.folder)]
        return not subprocess.run(command, capture_output=True, check=False).returncode


def can_mount() -> bool:
    return IN_NAMESPACE in os.environ


class Clock:
    """The clock of one process, which can be moved. Time goes on as fast as ever."""

    library = ""  # libfaketime, if it is installed

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds = 0
        self.move(0)

    def move(self, seconds: int) -> str:
        self._seconds += seconds
        written = self._file.with_suffix(".new")
        written.write_text(f"{self._seconds:+d}\n")
        written.replace(self._file)
        return f"{self._file.name.removeprefix('clock-of-')} {seconds:+d} s"

    @property
    def environment(self) -> dict[str, str]:
        if not self.library:
            return {}
        return {
            "LD_PRELOAD": self.library,
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }


def libfaketime() -> str:
    """Return the path of the library, or "" if it is not installed."""
    found = sorted(Path("/usr/lib").glob("**/faketime/libfaketimeMT.so.1"))
    return str(found[0]) if found else ""


class States:
    """The server of the state, and a replica that can take over its address.

    One fault of them at a time: a method that begins a fault returns None while another lasts."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._numbers = count(1)
        self.clock = Clock(folder / "clock-of-server")
        self.server, self._disk = self._new()
        self._replica = self._new_replica()
        self.client: Any = self.server.client()
        self._fails = False

    def _new(self) -> tuple[Redis, Disk]:
        disk = Disk(self._folder / f"state-{next(self._numbers)}", self._stack)
        options = {"maxmemory": UNLIMITED}
        server = Redis(disk.folder, options=options, environment=self.clock.environment)
        self._stack.callback(server.stop)
        server.start()
        return server, disk

    def _new_replica(self) -> tuple[Redis, Disk]:
        new = self._new()
        new[0].client().replicaof("127.0.0.1", self.server.port)
        return new

    def begin(self, fault: Callable[[], str]) -> str | None:
        if self._fails:
            return None
        details = fault()
        self._fails = True
        return details

    def end(self, fault: Callable[[], None]) -> None:
        fault()
        self._fails = False

    def kill(self) -> str:
        self.server.kill()
        return ""

    def restart(self) -> None:
        self.server.start()

    def promote(self) -> None:
        """Let the replica take over the address of the server, which is dead, and begin another."""
        port = self.server.port
        self.server, self._disk = self._replica
        client: Any = self.server.client()
        client.replicaof("NO", "ONE")
        client.config_set("port", port)
        self.server.port = port
        self._replica = self._new_replica()

    def fill_memory(self) -> str:
        used: int = self.client.info("memory")["used_memory"]
        self.client.config_set("maxmemory", used)
        return f"at {used / MIB:.1f} MiB"

    def free_memory(self) -> None:
        self.client.config_set("maxmemory", UNLIMITED)

    def fill_disk(self) -> str:
        return self._disk.fill()

    def free_disk(self) -> None:
        self._disk.free()
        # After a full disk, Valkey 9.1.2 cannot read its AOF again, unless the AOF is written anew.
        self.client.bgrewriteaof()
        while any(self.client.info("persistence")[f"aof_rewrite_{state}"] for state in REWRITE):
            time.sleep(0.05)


# The crawl


class Soak:
    """One crawl with all faults."""

    def __init__(self, options: argparse.Namespace, stack: ExitStack) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.options = options
        self.random = random.Random(options.seed)
        self.seconds: float = 60 * options.minutes
        pages = max(2, int(options.share * self.seconds / options.delay))
        self.hosts = hosts(40, options.hosts, pages=pages, delay=options.delay)
        self.log = options.log or folder / "log"
        self.log.write_bytes(b"")
        self.items = Disk(folder / "items", stack)
        self.states = States(folder, stack)
        self.pages = stack.enter_context(Server(self.hosts))
        self.seen: Log = []
        # Process -> seconds, its id, and its octets.
        self.memory: dict[str, list[tuple[float, int, int]]] = {}
        self.failed = 0  # workers that ended with a status above 0
        self.clocks = [
            Clock(folder / f"clock-of-worker-{number}") for number in range(options.workers)
        ]
        self.start_at = [inf] * options.workers  # seconds
        self.began = time.monotonic()
        self.workers = [self.start(number) for number in range(options.workers)]
        do_work = all_work(self.workers, self.states.server)
        self.faults = Faults(self.workers, do_work, self.plan())
        stack.callback(self.faults.finish)

    def start(self, number: int) -> Worker:
        settings = {
            **COMITY,
            "CONCURRENT_REQUESTS": CONCURRENT,
            "COMITY_STATE": self.states.server.url,
            "COMITY_WORKER_TIMEOUT": self.options.timeout,
            "DEFAULT_REQUEST_HEADERS": {WORKER: str(number)},
            "FEEDS": {f"{self.items.folder}/{number}.jsonl": {"format": "jsonlines"}},
        }
        job = {
            "settings": settings,
            "arguments": {"port": self.pages.port, "pages": self.hosts[0].pages},
            "addresses": [host.address for host in self.hosts],
            "level": "INFO" if self.options.verbose else "WARNING",
        }
        return Worker(job, self.log, __file__, self.clocks[number].environment)

    def plan(self) -> list[Fault]:
        """Return the faults: at the times of half an hour, or sooner in a shorter crawl."""

        def seconds(minutes: float) -> float:
            return minutes * 60 * min(1.0, self.seconds / 1800)

        def each(minutes: float) -> float:
            return max(30.0, seconds(minutes))

        def kill() -> str | None:
            number = self.random.randrange(1, len(self.workers))
            if not self.workers[number].runs:
                return None
            self.workers[number].kill()
            return f"worker {number}"

        def fill() -> str | None:
            # In the second half the first worker lives, so that its memory can be compared.
            return self.items.fill() if self.elapsed < self.seconds / 2 else None

        def move() -> str:
            step = self.random.choice(STEPS)
            if not (number := self.random.randrange(len(self.clocks) + 1)):
                return self.states.clock.move(abs(step))
            return self.clocks[number - 1].move(step)

        def of_state(
            name: str,
            at: float,
            again: float,
            lasts: float,
            begin: Callable[[], str],
            end: Callable[[], None],
        ) -> Fault:
            states = self.states
            return Fault(
                name,
                seconds(at),
                partial(states.begin, begin),
                partial(states.end, end),
                lasts,
                each(again),
            )

        states, full, kill_each = self.states, min(FULL, seconds(1)), self.options.kill
        choose = partial(self.random.randrange, len(self.workers))
        plan = [
            Fault("kill", kill_each, kill, each=kill_each),
            freeze(self.workers, choose, seconds(1.2), 2.5 * self.options.timeout, each(2)),
            of_state("restart", 4, 7, 3.0, states.kill, states.restart),
            of_state("fail-over", 7.5, 11, 5.0, states.kill, states.promote),
            of_state("memory full", 6, 12, full, states.fill_memory, states.free_memory),
        ]
        if can_mount():
            plan += [
                Fault("items full", seconds(2.5), fill, self.items.free, full, each(7)),
                of_state("state full", 9.5, 9, full, states.fill_disk, states.free_disk),
            ]
        if Clock.library:
            plan.append(
                Fault("clock", seconds(1), move, each=seconds(1) if self.seconds > 600 else 5)
            )
        return plan

    @property
    def expected(self) -> int:
        return len(self.hosts) * self.hosts[0].pages

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def run(self) -> bool:
        """Crawl to the end, with faults, and start workers again that have failed.

        Return False if the workers do not end."""
        shown, sample_at, show_at = 0, 0.0, 0.0
        while any(worker.process.poll() != 0 for worker in self.workers):
            time.sleep(0.05)
            now = self.elapsed
            if all(worker.process.poll() != 0 for worker in self.workers):
                self.faults.go_on()
            else:  # the crawl is finished
                self.faults.end()
            for number, worker in enumerate(self.workers):
                self.keep(number, worker, now)
            for name, details in self.faults.happened[shown:]:
                print(f"{now:7.1f} s  {name} {details}", flush=True)
            shown = len(self.faults.happened)
            if now > sample_at:
                sample_at = now + SAMPLED
                self.sample(now)
            if now > show_at:
                show_at = now + SHOWN
                asked = sum(path[1:].isdigit() for _, _, path, _ in self.seen)
                print(f"{now:7.1f} s  {asked:,} pages of {self.expected:,}", flush=True)
            if now > 2 * self.seconds + PATIENCE:
                print(f"{now:7.1f} s  given up", flush=True)
                return False
        return True

    def keep(self, number: int, worker: Worker, now: float) -> None:
        """Start a worker again a while after it has failed."""
        if worker.process.poll() in (None, 0):
            return
        if self.start_at[number] == inf:
            self.failed += worker.process.returncode > 0
            self.start_at[number] = now + START_AGAIN
        elif now > self.start_at[number]:
            self.start_at[number] = inf
            self.workers[number] = self.start(number)

    def sample(self, now: float) -> None:
        """Note the memory of all processes, and the log of the page server."""
        self.pages.channel.send(None)
        self.seen += self.pages.channel.recv()
        for number, worker in enumerate(self.workers):
            pid = worker.process.pid
            with suppress(OSError, IndexError):  # it has ended
                pages = int(Path(f"/proc/{pid}/statm").read_text("utf-8").split()[1])
                self.memory.setdefault(f"worker {number}", []).append((now, pid, pages * PAGE))
        with suppress(RedisError):  # it is away
            info = self.states.client.info("memory")
            for name, octets in (
                ("server", info["used_memory_rss"]),
                ("values", info["used_memory"]),
            ):
                self.memory.setdefault(name, []).append((now, 0, octets))

    # Afterwards

    def is_lost(self) -> bool:
        """Print the table, and return True if anything is lost, too soon or left wrong."""
        self.sample(self.elapsed)
        text = self.log.read_text(errors="replace")
        outcome = judged(
            self.seen, self.hosts, self.options.delay, self.faults, text, Usage(0.0, 0, 0)
        )
        items, torn = self.read_items()
        pages = {(host.address, page) for host in self.hosts for page in range(host.pages)}
        status = self.status()
        wrong = [name for name in LEFT if status.get(name)]
        if status.get("state") != "finished":
            wrong.append(f"state {status.get('state')}")
        # The retry of a request that failed is another request, and a killed worker has not told all.
        if status.get("done", 0) < self.expected:
            wrong.append("done")
        if not self.expected <= status.get("pages", 0) <= outcome.asked:
            wrong.append("pages")
        if not self.expected <= status.get("items", 0):
            wrong.append("items")
        lost_items = len(pages - items.keys())
        rows = [
            ("seconds", f"{self.elapsed:.0f}"),
            ("pages", f"{self.expected:,}"),
            ("pages lost", f"{outcome.lost:,}"),
            ("requests of pages", f"{outcome.asked:,}, {outcome.repeats:,} of them again"),
            ("requests too soon", f"{outcome.too_soon:,}"),
            ("least gap", f"{outcome.least_gap:.3f} s of {self.options.delay:g}"),
            ("items lost", f"{lost_items:,}"),
            ("items twice", f"{items.total() - len(items):,}"),
            ("unreadable items", f"{torn:,}"),
            ("most requests of a policy file", f"{outcome.policies:,}"),
            ("faults", ", ".join(f"{n} {name}" for name, n in self.faults.numbers().items())),
            ("workers that failed", f"{self.failed:,}"),
            ("other errors in the log", f"{text.count('Traceback') - text.count(NO_ROOM):,}"),
            ("frontier", ", ".join(f"{name} {status.get(name)}" for name in TOLD)),
            ("left wrong", ", ".join(wrong) or "nothing"),
            *((f"memory of {name}", self.growth(name)) for name in sorted(self.memory)),
        ]
        options = self.options
        table = Table(
            title=f"{options.workers} workers, {options.hosts:,} hosts, {self.hosts[0].pages} pages,"
            f" delay {options.delay:g} s, seed {options.seed}",
            show_header=False,
        )
        for row in rows:
            table.add_row(*row)
        Console(width=120).print(table)
        return bool(outcome.lost or outcome.too_soon or lost_items or wrong)

    def read_items(self) -> tuple[Counter[tuple[str, int]], int]:
        """Return the pages of the items, and the number of lines that are no items."""
        items: Counter[tuple[str, int]] = Counter()
        torn = 0
        for file in sorted(self.items.folder.glob("*.jsonl")):
            for line in file.read_bytes().splitlines():
                try:
                    url = json.loads(line)["url"]
                except (ValueError, KeyError):
                    torn += 1
                    continue
                items[urlsplit(url).hostname or "", int(url.rpartition("/")[2])] += 1
        return items, torn

    def status(self) -> dict[str, Any]:
        """Return the output of `comity frontier --json`."""
        command = [sys.executable, "-m", "comity", "frontier", Neighbours.name, "--json"]
        command += ["-s", f"COMITY_STATE={self.states.server.url}"]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        if told.returncode:
            print(told.stderr)
            return {}
        status: dict[str, Any] = json.loads(told.stdout)
        return status

    def growth(self, name: str) -> str:
        """Return the memory of a process, and how it grows from the middle on in one process."""
        samples = self.memory[name]
        most = max(octets for *_, octets in samples)
        half = [
            (at, octets)
            for at, pid, octets in samples
            if at > samples[-1][0] / 2 and pid == samples[-1][1]
        ]
        told = f"at most {most / MIB:.1f} MiB"
        if len(half) < 3:
            return told
        slope = statistics.linear_regression(*zip(*half, strict=True)).slope
        return (
            f"{told}; {half[0][1] / MIB:.1f} MiB at {half[0][0]:.0f} s, {half[-1][1] / MIB:.1f} at"
            f" {half[-1][0]:.0f} s; slope {slope * 3600 / MIB:+.1f} MiB an hour"
        )


def enter_namespace() -> None:
    """Start this program again where it may mount a disk, if the system allows that."""
    command = ["unshare", "--user", "--map-root-user", "--mount"]
    trial = [*command, "mount", "-t", "tmpfs", "comity-soak", tempfile.gettempdir()]
    try:
        tried = subprocess.run(trial, capture_output=True, text=True, check=False)
        reason = tried.stderr.strip()
    except OSError as error:
        reason = str(error)
    if reason:
        print(f"No disk is filled, because none can be mounted: {reason}", file=sys.stderr)
        return
    again = [*command, sys.executable, *sys.argv]
    os.execvpe(command[0], again, os.environ | {IN_NAMESPACE: "1"})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--hosts", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--delay", type=float, default=30.0, help="Crawl-delay, seconds")
    parser.add_argument(
        "--share", type=float, default=0.7, help="of the minutes, in which pages are requested"
    )
    parser.add_argument("--kill", type=float, default=20.0, help="seconds between two kills")
    parser.add_argument("--timeout", type=float, default=6.0, help="COMITY_WORKER_TIMEOUT")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, help="a file for the log of all workers")
    parser.add_argument("--verbose", action="store_true", help="write more into the log")
    options = parser.parse_args()
    if options.job:
        work(json.loads(options.job), Kept)
        return
    if not can_mount():
        enter_namespace()
    Clock.library = libfaketime()
    if not Clock.library:
        print("No clock is moved, because libfaketime is not installed.", file=sys.stderr)
    with ExitStack() as stack:
        soak = Soak(options, stack)
        has_ended = soak.run()
        soak.faults.finish()
        is_lost = soak.is_lost()
    sys.exit(is_lost or not has_ended)


if __name__ == "__main__":
    main()
