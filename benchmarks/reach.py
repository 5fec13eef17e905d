"""One crawl by several workers over COMITY_STATE, by what the server of the pages saw: what is lost or too soon; what it costs.

    chaos       4 workers, 1,000 hosts x 20 pages, a delay of 1 s; one worker is killed each 3 s, and one stopped for a while.
                `--server kill` kills the server of the state under load, `--server away` takes it away for 20 s
    shares      4 workers, 40 hosts, a delay of 1 s, and after 15 s one worker more: how many pages each asks for
    rate        4 workers, one host at Request-rate 10/1s: what any second held at most
    policies    4 workers, 500 origins: how often each was asked for a policy file
    floor       4 workers, 1,000 hosts, a delay of 1 s, no faults; and 4 processes of Scrapy by itself, each with a quarter of the
                hosts: what the machine can do
    cost        1, 2 and 4 workers, one with SQLite, and Scrapy; scrapy-redis if it is installed: CPU, calls, octets and time
    memory      what a request that waits takes on the server, and one that was seen: 1,000,000 of them on 100,000 hosts are put
                and drained
    looks       the load of the server by 100 workers that look for work and renew their leases, over 1,000,000 hosts and
                10,000,000 waiting requests; and the memory of a request, a host and the policies of an origin

`--state` says which store the crawl has: redis, postgresql or sqlite.

Each host is a loopback address of one server process. A page leads to the next of its host and, once more, to one of the next
host. Pages are lost that no worker asked for; repeats are those that were asked for more than once."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from itertools import count, cycle, pairwise
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parent.parent))  # stores are started as the tests do

from hosts import WORKER, Host, Log, Server, hosts
from rich.console import Console
from rich.table import Table
from scrapy import Spider
from scrapy.http import Request, Response

from comity.cluster.errors import StateError
from comity.cluster.queue import Lease, QueuedRequest
from comity.cluster.redis.connection import StateConnection
from comity.cluster.redis.store import RedisStore
from comity.cluster.state import CrawlQueue, open_state
from comity.cluster.steps.queue import StepQueue
from comity.crawler.frontier.complaints import Complaints
from comity.crawler.frontier.host_share import HOSTS, HostShare
from comity.crawler.frontier.leased_hosts import LeasedHost
from comity.crawler.frontier.request_bodies import pack
from comity.crawler.frontier.shared_queue import TICK
from comity.gate.fetching.policy_copy import PolicyFile
from comity.policies.answers.fetched import Fetched
from comity.policies.formats import WELL_KNOWN
from tests.redis_server import Server as Redis
from tests.sql_server import PostgresServer, SqliteFile

State = Redis | PostgresServer | SqliteFile

PATIENCE = 900.0  # seconds until a crawl is given up
TOLERANCE = 0.005  # seconds
CONCURRENT = 64
TIMEOUT = 10.0  # seconds; the default of COMITY_WORKER_TIMEOUT


class Neighbours(Spider):
    """Each page leads to the next one of its host, and each fifth to that of the next host."""

    name = "neighbours"
    port: int
    addresses: list[str]
    pages: int

    async def start(self) -> Any:
        for address in self.addresses:
            yield Request(f"http://{address}:{self.port}/0")

    def parse(self, response: Response) -> Iterator[Request]:
        address, number = (
            response.url.split("/")[2].partition(":")[0],
            int(response.url.rpartition("/")[2]),
        )
        if number + 1 < self.pages:
            yield Request(f"http://{address}:{self.port}/{number + 1}")
        if number % 5 == 0:
            index = self.addresses.index(address)
            yield Request(
                f"http://{self.addresses[(index + 1) % len(self.addresses)]}:{self.port}/{number}"
            )


def work(job: dict[str, Any], spider: type[Spider] = Neighbours) -> None:
    """Crawl in this process, print the CPU time of the crawl, and exit as `comity crawl` does.

    Imports do not count as time of the crawl."""
    from scrapy.crawler import AsyncCrawlerProcess

    process = AsyncCrawlerProcess({**job["settings"], "LOG_LEVEL": job["level"]})
    crawler = process.create_crawler(spider)
    process.crawl(crawler, addresses=job["addresses"], **job["arguments"])
    before = resource.getrusage(resource.RUSAGE_SELF)
    process.start()
    after = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}))
    if process.bootstrap_failed or not getattr(crawler.spider, "comity_is_complete", True):
        sys.exit(1)


class Worker:
    """A process that runs this program, or another one, with a job."""

    def __init__(
        self,
        job: dict[str, Any],
        log: Path,
        program: str = __file__,
        environment: dict[str, str] | None = None,
    ) -> None:
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, program, "--job", json.dumps(job)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=os.environ | (environment or {}),
            )

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    @property
    def cpu(self) -> float:
        """Seconds, of one that has ended by itself."""
        assert self.process.stdout
        output = self.process.stdout.read()
        return float(json.loads(output)["cpu"]) if output else 0.0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Outcome(NamedTuple):
    asked: int
    lost: int
    repeats: int
    too_soon: int  # gaps below the delay
    least_gap: float
    in_a_second: int  # most requests of a host
    span: float  # seconds from the first page to the last
    policies: int  # most requests for one policy file
    killed: int
    errors: int  # in the logs
    failed: int  # workers that ended with another status than 0
    cpu: float  # ms a page, of all workers
    server_cpu: float  # ms a page, of the server of the state
    calls: float  # commands of Redis a page, those within scripts too; transactions of PostgreSQL
    octets: float  # to and from Redis a page


@dataclass(slots=True)
class Fault:
    """A fault begins, ends `lasts` seconds later, and may come again."""

    name: str
    at: float  # of the next begin: seconds after all workers work, then monotonic
    begin: Callable[[], str | None]  # returns its details, or None if it cannot begin now
    end: Callable[[], object] = bool
    lasts: float = 0.0
    each: float = inf  # seconds from one begin to the next
    until: float = inf  # monotonic, while it lasts


class Faults:
    """The faults of the workers and of the server of the state while the workers crawl."""

    def __init__(
        self, workers: list[Worker], do_work: Callable[[], bool], plan: list[Fault]
    ) -> None:
        self.workers = workers
        self._do_work = do_work
        self._plan = plan
        self._has_begun = False
        self.happened: list[tuple[str, str]] = []  # name, details

    def go_on(self) -> None:
        """Begin and end the faults that are due."""
        now = time.monotonic()
        if not self._has_begun:
            if not self._do_work():
                return
            self._has_begun = True
            for fault in self._plan:
                fault.at += now
        for fault in self._plan:
            if now > fault.until:
                fault.until = inf
                fault.end()
            if now > fault.at and (details := fault.begin()) is not None:
                fault.at, fault.until = now + fault.each, now + fault.lasts
                self.happened.append((fault.name, details))

    def numbers(self) -> Counter[str]:
        return Counter(name for name, _ in self.happened)

    def end(self) -> None:
        """End the faults that last."""
        for fault in self._plan:
            if fault.until < inf:
                fault.until = inf
                fault.end()

    def finish(self) -> None:
        """End the faults that last, and all workers: without the state they would wait for ever."""
        self.end()
        for worker in self.workers:
            if worker.runs:
                worker.kill()


def all_work(workers: list[Worker], state: State | None) -> Callable[[], bool]:
    """Return a function that returns True if each worker has given a sign of life.

    Workers on a busy machine take long to begin. If all of them were killed before, the crawl would
    never end."""
    if state is None:
        return lambda: True

    def do_all() -> bool:
        signs = asyncio.run(signs_of_life(state))
        return signs >= len(workers) and all(worker.runs for worker in workers)

    return do_all


def freeze(
    workers: list[Worker], choose: Callable[[], int], at: float, lasts: float, each: float = inf
) -> Fault:
    """Return the fault that a worker is stopped for a while. `choose`: returns its number."""
    frozen: list[Worker] = []

    def begin() -> str | None:
        worker = workers[number := choose()]
        if not worker.runs:
            return None
        worker.process.send_signal(signal.SIGSTOP)
        frozen.append(worker)
        return str(number)

    def end() -> None:
        if (worker := frozen.pop()).runs:
            worker.process.send_signal(signal.SIGCONT)

    return Fault("freeze", at, begin, end, lasts, each)


def planned(
    options: argparse.Namespace,
    workers: list[Worker],
    start: Callable[[], Worker],
    do_work: Callable[[], bool],
    state: State | None,
) -> list[Fault]:
    """Return the faults that the options ask for."""

    def kill() -> str | None:
        if not do_work():
            return None
        number = random.randrange(len(workers))
        workers[number].kill()
        workers[number] = start()
        return str(number)

    def end_server() -> str:
        assert isinstance(state, Redis | PostgresServer), "SQLite has no server"
        state.kill()
        return ""

    def join() -> str:
        workers.extend(start() for _ in range(options.join))
        return str(options.join)

    plan = []
    if options.kill:
        plan.append(Fault("kill", options.kill, kill, each=options.kill))
    if options.freeze:
        plan.append(freeze(workers, lambda: 0, 8, 2 * options.timeout))
    if options.server and isinstance(state, Redis | PostgresServer):
        lasts = 20 if options.server == "away" else 0
        plan.append(Fault("server", 7, end_server, state.start, lasts))
    if options.join:
        plan.append(Fault("join", options.join_at, join))
    return plan


def crawled(
    options: argparse.Namespace,
    settings: dict[str, Any],
    *,
    is_shared: bool = True,
    tell: Callable[[Log], None] = lambda pages: None,
) -> Outcome:
    """Return the outcome of one crawl with its faults. `tell`: is called with the pages that the server was asked for."""
    some = hosts(40, options.hosts, pages=options.pages, delay=options.delay, rate=options.rate)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        state = stack.enter_context(store(options.state)) if is_shared else None
        server = stack.enter_context(Server(some))
        shared = (
            {
                "COMITY_STATE": state.url,
                "COMITY_WORKER_TIMEOUT": options.timeout,
                "REDIS_URL": state.url,  # of scrapy-redis
            }
            if state
            else {}
        )
        local = (
            {"COMITY_STORE": f"{folder}/policies.sqlite", "JOBDIR": f"{folder}/job"}
            if not state
            else {}
        )
        job: dict[str, Any] = {
            "settings": {"CONCURRENT_REQUESTS": CONCURRENT, **(shared or local), **settings},
            "arguments": {"port": server.port, "pages": options.pages},
            "level": "INFO" if options.verbose else "WARNING",
        }
        log = folder / "log"
        addresses = [host.address for host in some]
        shares = cycle(
            [addresses]
            if is_shared
            else [addresses[first :: options.workers] for first in range(options.workers)]
        )
        numbers = count(1)

        def worker() -> Worker:
            fields = {"DEFAULT_REQUEST_HEADERS": {WORKER: str(next(numbers))}}
            return Worker(
                {**job, "addresses": next(shares), "settings": {**job["settings"], **fields}}, log
            )

        workers = [worker() for _ in range(options.workers)]
        do_work = all_work(workers, state)
        faults = Faults(workers, do_work, planned(options, workers, worker, do_work, state))
        stack.callback(faults.finish)
        give_up = time.monotonic() + PATIENCE
        while any(worker.runs for worker in workers):
            time.sleep(0.05)
            faults.go_on()
            if time.monotonic() > give_up:
                running = sum(worker.runs for worker in workers)
                raise SystemExit(
                    f"{running} workers still run after {PATIENCE:g} s,"
                    f" {faults.numbers()['kill']} were killed:\n{log.read_text()[-5000:]}"
                )
        text = log.read_text()
        lines = text.splitlines(keepends=True)
        sys.stderr.writelines(
            lines if options.verbose else [line for line in lines if " ERROR:" in line]
        )
        server.channel.send(None)
        used = usage(state)
        seen: Log = server.channel.recv()
        tell([hit for hit in seen if hit[2][1:].isdigit()])
        return judged(seen, some, options.delay, faults, text, used)


async def signs_of_life(server: State) -> int:
    """Return how many workers have given a sign of life; 0 if the server is away."""
    state = open_state(server.url, Neighbours.name, 60)
    try:
        return len((await state.queue().status())["workers"])
    except StateError:  # there is no crawl yet, or no server
        return 0
    finally:
        await state.close()


class Usage(NamedTuple):
    """Work of the state's server: seconds of CPU, commands or transactions, octets of Redis's network."""

    cpu: float
    calls: int
    octets: int


def usage(state: State | None) -> Usage:
    if state is None or isinstance(state, SqliteFile):
        return Usage(0.0, 0, 0)
    if isinstance(state, PostgresServer):
        ((calls,),) = state.execute("SELECT sum(xact_commit)::bigint FROM pg_stat_database")
        assert isinstance(calls, int)
        return Usage(state.cpu(), calls, 0)
    info: Any = state.client().info()
    commands: Any = state.client().info("commandstats")
    calls = sum(command["calls"] for command in commands.values())
    return Usage(
        info["used_cpu_user"] + info["used_cpu_sys"],
        calls,
        info["total_net_input_bytes"] + info["total_net_output_bytes"],
    )


def judged(
    seen: Log, some: list[Host], delay: float, faults: Faults, text: str, used: Usage
) -> Outcome:
    pages = [(moment, address, path) for moment, address, path, _ in seen if path[1:].isdigit()]
    expected = {(host.address, f"/{page}") for host in some for page in range(host.pages)}
    requests = Counter((address, path) for _, address, path in pages)
    times: dict[str, list[float]] = {}
    for moment, address, _ in sorted(pages):
        times.setdefault(address, []).append(moment)
    gaps = [after - before for of_host in times.values() for before, after in pairwise(of_host)]
    policies = Counter((address, path) for _, address, path, _ in seen if path in WELL_KNOWN)
    number = max(1, len(pages))
    return Outcome(
        asked=len(pages),
        lost=len(expected - requests.keys()),
        repeats=len(pages) - len(requests),
        too_soon=sum(gap < delay - TOLERANCE for gap in gaps),
        least_gap=min(gaps, default=0.0),
        in_a_second=max(most_in_a_second(of_host) for of_host in times.values()) if times else 0,
        span=max((moment for moment, *_ in pages), default=0.0)
        - min((moment for moment, *_ in pages), default=0.0),
        policies=max(policies.values(), default=0),
        killed=faults.numbers()["kill"],
        errors=text.count("Traceback") + text.count(" ERROR:"),
        failed=sum(worker.process.returncode != 0 for worker in faults.workers),
        cpu=1000 * sum(worker.cpu for worker in faults.workers) / number,
        server_cpu=1000 * used.cpu / number,
        calls=used.calls / number,
        octets=used.octets / number,
    )


def most_in_a_second(times: list[float]) -> int:
    first = most = 0
    for last, moment in enumerate(times):
        while times[first] < moment - 1 + TOLERANCE:
            first += 1
        most = max(most, last + 1 - first)
    return most


@contextmanager
def store(kind: str) -> Iterator[State]:
    with tempfile.TemporaryDirectory() as folder:
        server: State
        if kind == "redis":
            server = Redis(Path(folder), options={"maxmemory": "8gb"})
        elif kind == "postgresql":
            server = PostgresServer(Path(folder), {"shared_buffers": "1GB", "max_wal_size": "4GB"})
        else:
            server = SqliteFile(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


def show(rows: list[tuple[str, Outcome]], title: str) -> None:
    table = Table("", title=title)
    for name in Outcome._fields:
        table.add_column(name.replace("_", " "), justify="right")
    for name, row in rows:
        table.add_row(
            name, *(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row)
        )
    Console(width=200).print(table)


def show_shares(pages: Log, timeout: float) -> None:
    """Show how many pages each worker asked for: in all, and in each span of `timeout` seconds."""
    first = pages[0][0]
    spans = range(int((pages[-1][0] - first) / timeout) + 1)
    workers = sorted({worker for *_, worker in pages}, key=int)
    of_host: dict[str, list[str]] = {}
    for _, host, _, worker in pages:
        of_host.setdefault(host, []).append(worker)
    moves = sum(
        before != after for askers in of_host.values() for before, after in pairwise(askers)
    )
    table = Table(
        "worker",
        "pages",
        "of all",
        title=f"pages in % of each {timeout:g} s; hosts moved {moves} times",
    )
    for span in spans:
        table.add_column(f"{span * timeout:g}", justify="right")
    whole = Counter(int((at - first) / timeout) for at, *_ in pages)
    for worker in workers:
        own = [at for at, *_, name in pages if name == worker]
        in_span = Counter(int((at - first) / timeout) for at in own)
        shares = (f"{100 * in_span[span] / max(1, whole[span]):.0f}" for span in spans)
        table.add_row(worker, str(len(own)), f"{100 * len(own) / len(pages):.1f} %", *shares)
    Console(width=200).print(table)


# Memory


def memory(number: int, on_hosts: int, kind: str) -> None:
    """Puts so many requests on so many hosts, and drains them."""
    asyncio.run(_memory(number, on_hosts, kind))


def size_of(server: State) -> int:
    """The octets of the data of a store: of memory, or of tables."""
    if isinstance(server, Redis):
        info: Any = server.client().info()
        return int(info["used_memory"])
    if isinstance(server, SqliteFile):
        with closing(sqlite3.connect(server.path)) as db:
            pages, free, size = (
                db.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
        return int((pages - free) * size)
    server.execute("VACUUM FULL")
    ((size,),) = server.execute(
        "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class"
        " WHERE relkind = 'r' AND relnamespace = 'comity'::regnamespace"
    )
    assert isinstance(size, int)
    return size


async def _memory(number: int, on_hosts: int, kind: str) -> None:
    spider = Spider("memory")

    def row(queue: CrawlQueue, n: int) -> QueuedRequest:
        url = f"http://host-{n % on_hosts}.example/section/{n}/a-page-of-the-usual-length.html"
        body = pack(Request(url, meta={"depth": 3, "comity_led_from": "public"}), spider)
        return QueuedRequest(
            f"host-{n % on_hosts}.example", n.to_bytes(20, "big"), queue.new_key(), 0, body
        )

    with store(kind) as server:
        state = open_state(server.url, "crawl", 60)
        queue = state.queue()
        await queue.open()
        empty, used, began = size_of(server), usage(server)[0], time.monotonic()
        size = len(row(queue, 0).body)
        for first in range(0, number, 5000):
            await queue.put([row(queue, n) for n in range(first, min(first + 5000, number))])
        filling, full = time.monotonic() - began, size_of(server)
        began, drained = time.monotonic(), 0
        while leases := await queue.lease(500, 100):
            await asyncio.gather(
                *(
                    queue.ack(lease.host, [entry.key for entry in lease.requests])
                    for lease in leases
                )
            )
            await asyncio.gather(*(queue.release(lease.host) for lease in leases))
            drained += sum(len(lease.requests) for lease in leases)
        draining, seen = time.monotonic() - began, size_of(server)
        used = usage(server)[0] - used
        finished = await queue.is_finished()
        await queue.close()
        await state.close()
    print(f"{number:,} requests of {size} octets on {on_hosts:,} hosts")
    print(
        f"octets each, while they wait {(full - empty) / number:.0f}, once they were seen {(seen - empty) / number:.1f}"
    )
    print(f"a second, put {number / filling:,.0f}, drained {drained / draining:,.0f}")
    print(f"us of the server's CPU for each request: {1e6 * used / number:.0f}")
    print(f"{drained:,} came back, and the crawl is {'' if finished else 'NOT '}finished")


# Looking for work


class _Hosts:
    """The leased hosts of a simulated worker, which always has room for more and asks for no page."""

    def __init__(self) -> None:
        self.by_name: dict[str, LeasedHost] = {}
        self.changed: set[str] = set()
        self.taker = SimpleNamespace(has_room=True)

    def is_busy(self, name: str) -> bool:
        return False

    def add(self, lease: Lease) -> None:
        self.by_name[lease.host] = LeasedHost()

    def drop(self, name: str) -> None:
        self.by_name.pop(name, None)


class _Client:
    """A simulated worker. It looks for work and renews its leases as a real worker does."""

    def __init__(self, server: Redis, name: str) -> None:
        # Patient, because the server may stand still for some seconds while it is filled.
        self.connection = StateConnection(server.address(), patience=PATIENCE)
        self.queue = StepQueue(self.connection, name, TIMEOUT)
        self.hosts = _Hosts()
        self.renewals = self.lost = 0
        hosts: Any = self.hosts
        self.share = HostShare(self.queue, hosts, Complaints("COMITY_STATE"), most=0)

    async def lease(self, number: int) -> None:
        """Lease so many hosts, with one request each."""
        while len(self.hosts.by_name) < number:
            leases = await self.queue.lease(min(1000, number - len(self.hosts.by_name)), 1)
            if not leases:
                break
            for lease in leases:
                self.hosts.add(lease)

    async def look(self) -> None:
        await asyncio.sleep(random.random() * TICK)
        while True:
            await self.share.refill()
            await asyncio.sleep(TICK)

    async def renew(self) -> None:
        await asyncio.sleep(random.random() * TIMEOUT / 3)
        while True:
            for name in await self.queue.renew([*self.hosts.by_name]):
                self.hosts.drop(name)
                self.lost += 1
            self.renewals += 1
            await asyncio.sleep(TIMEOUT / 3)


def memory_of(server: Redis) -> int:
    info: Any = server.client().info("memory")
    return int(info["used_memory"])


async def fill(queue: StepQueue, hosts: range, each: int) -> None:
    """Put so many requests of each of the hosts."""
    body = pack(
        Request(
            "http://host-0000000.example/section/0000000/a-page-of-the-usual-length.html",
            meta={"depth": 3, "comity_led_from": "public"},
        ),
        Spider("looks"),
    )
    for first in range(hosts.start, hosts.stop, 5000 // each):
        rows = [
            QueuedRequest(
                f"host-{host:07}.example",
                f"{host} {page}".encode(),
                queue.new_key(),
                0,
                body.replace(b"-0000000", b"-%07d" % host).replace(b"/0000000", b"/%07d" % page),
            )
            for host in range(first, min(first + 5000 // each, hosts.stop))
            for page in range(each)
        ]
        await queue.put(rows)


async def sizes(server: Redis, number: int) -> None:
    """Print the memory of requests at 3 a host, of hosts, and of the policies of origins."""
    connection = StateConnection(server.address("sizes"))
    queue = StepQueue(connection, "one", TIMEOUT)
    await queue.open()
    before = memory_of(server)
    await fill(queue, range(number), 3)
    after = memory_of(server)
    print(
        f"{number:,} hosts with 3 requests each: {(after - before) / number / 3:.0f} octets"
        f" a request, {(after - before) / number:.0f} a host"
    )
    store = RedisStore(server.address())
    moment, text = datetime.now(UTC), b"User-agent: *\nDisallow: /private/%d/\nCrawl-delay: 1\n"
    missing = Fetched(status=404, fetched_at=moment, headers=((b"content-type", b"text/html"),))
    before = memory_of(server)
    for n in range(number):
        robots = Fetched(
            status=200,
            body=text % (n % 300),
            fetched_at=moment,
            headers=((b"content-type", b"text/plain"),),
        )
        files = {path: PolicyFile(due=0.0, copy=missing) for path in WELL_KNOWN}
        store.save(
            f"http://host-{n:07}.example",
            {**files, "/robots.txt": PolicyFile(due=0.0, copy=robots)},
        )
    print(f"policies: {(memory_of(server) - before) / number:.0f} octets an origin")
    store.close()
    await connection.close()


def looks(options: argparse.Namespace) -> None:
    with store("redis") as server:
        assert isinstance(server, Redis)
        asyncio.run(sizes(server, max(100, min(10_000, options.requests // 100))))
        server.client().flushall()
        asyncio.run(_looks(server, options))


async def _looks(server: Redis, options: argparse.Namespace) -> None:
    clients = [_Client(server, f"worker-{n}") for n in range(options.clients)]
    for client in clients:
        await client.queue.open()
    empty, hosts = memory_of(server), options.requests // 10
    fillers = clients[:4]
    parts = [
        range(n * hosts // len(fillers), (n + 1) * hosts // len(fillers))
        for n in range(len(fillers))
    ]
    await asyncio.gather(
        *(fill(filler.queue, part, 10) for filler, part in zip(fillers, parts, strict=True))
    )
    full = memory_of(server)
    print(
        f"{options.requests:,} requests on {hosts:,} hosts: {full / 1e9:.2f} GB,"
        f" {(full - empty) / options.requests:.0f} octets a request"
    )
    each = min(HOSTS, hosts // options.clients)
    for client in clients:
        await client.lease(each)
        await client.queue.renew(client.hosts.by_name)
    leased = sum(len(client.hosts.by_name) for client in clients)
    print(f"{leased:,} leases: {(memory_of(server) - full) / leased:.0f} octets each")
    tasks: list[asyncio.Task[None]] = []
    for name in ("renew", "look"):
        tasks += (asyncio.create_task(getattr(client, name)()) for client in clients)
        await asyncio.sleep(TIMEOUT / 3)  # until all workers have begun
        for client in clients:
            client.renewals = client.lost = 0
        before, began = usage(server), time.monotonic()
        await asyncio.sleep(options.seconds)
        now, span = usage(server), time.monotonic() - began
        print(
            f"{'renewing' if name == 'renew' else 'renewing and looking'}:"
            f" {100 * (now.cpu - before.cpu) / span:.2f} % of a core,"
            f" {(now.calls - before.calls) / span:,.0f} commands and"
            f" {sum(client.renewals for client in clients) / span:.1f} renewals a second,"
            f" {sum(client.lost for client in clients)} leases lost"
        )
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if not isinstance(outcome, asyncio.CancelledError):
            print(f"a worker has failed: {outcome!r}")
    for client in clients:
        await client.connection.close()


COMITY = {
    "ADDONS": {"comity.crawler.addon.Addon": 100},
    "COMITY_AGENT": "benchbot",
    "COMITY_MIN_DELAY": 0,
    "COMITY_PROGRESS": "off",
}
SCRAPY = {
    "ROBOTSTXT_OBEY": True,
    "TELNETCONSOLE_ENABLED": False,
    "USER_AGENT": "benchbot/1.0",
    "CONCURRENT_ITEMS": 8,
}
# Scrapy with the scheduler of scrapy-redis, which neither keeps a pace nor repeats lost requests.
SCRAPY_REDIS = SCRAPY | {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "SCHEDULER_PERSIST": True,
}
PRESETS: dict[str, dict[str, Any]] = {
    "chaos": {},
    "shares": {"hosts": 40, "pages": 60, "kill": 0.0, "freeze": False, "join": 1},
    "rate": {"hosts": 1, "pages": 300, "delay": 0.0, "rate": "10/1s", "kill": 0.0, "freeze": False},
    "policies": {"hosts": 500, "pages": 2, "delay": 0.0, "kill": 0.0, "freeze": False},
    "floor": {"kill": 0.0, "freeze": False},
    "cost": {
        "hosts": 200,
        "pages": 20,
        "delay": 0.0,
        "kill": 0.0,
        "freeze": False,
        "timeout": TIMEOUT,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", nargs="?", choices=(*PRESETS, "memory", "looks"), default="chaos")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--delay", type=float, default=1.0)
    parser.add_argument("--rate", default="")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument(
        "--kill", type=float, default=3.0, help="seconds between two kills; 0: none"
    )
    parser.add_argument("--freeze", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--server", choices=("kill", "away"))
    parser.add_argument("--join", type=int, default=0, help="workers that begin later")
    parser.add_argument("--join-at", type=float, default=15.0, help="seconds after the first ones")
    parser.add_argument("--timeout", type=float, default=3.0, help="COMITY_WORKER_TIMEOUT")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument(
        "--requests",
        type=int,
        default=1_000_000,
        help="of `memory` and `looks`; a tenth as many hosts",
    )
    parser.add_argument("--state", choices=("redis", "postgresql", "sqlite"), default="redis")
    parser.add_argument("--clients", type=int, default=100, help="of `looks`")
    parser.add_argument("--seconds", type=float, default=30.0, help="of `looks`")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if options.job:
        work(json.loads(options.job))
        return
    if options.what == "memory":
        memory(options.requests, options.requests // 10, options.state)
        return
    if options.what == "looks":
        looks(options)
        return
    preset = PRESETS[options.what]
    parser.set_defaults(**preset)
    options = parser.parse_args()
    rows = []
    title = f"{options.hosts} hosts, {options.pages} pages, delay {options.delay:g} s"
    delayed = {
        "DOWNLOAD_DELAY": options.delay,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    }
    comparisons: dict[str, list[tuple[str, int, dict[str, Any], bool]]] = {
        "floor": [
            ("Scrapy, hosts split", options.workers, SCRAPY | delayed, False),
            (options.state, options.workers, COMITY, True),
        ],
        "cost": [("Scrapy", 1, SCRAPY, False), ("SQLite, JOBDIR", 1, COMITY, False)]
        + [(f"{options.state}, {workers}", workers, COMITY, True) for workers in (1, 2, 4)]
        + [
            (f"scrapy-redis, {workers}", workers, SCRAPY_REDIS, True)
            for workers in (1, 4)
            if options.state == "redis" and find_spec("scrapy_redis")
        ],
    }
    if options.what in comparisons:
        for name, workers, settings, is_shared in comparisons[options.what]:
            for _ in range(options.runs):
                options.workers = workers
                rows.append((name, crawled(options, settings, is_shared=is_shared)))
        show(rows, title)
        return
    for number in range(options.runs):
        tell = partial(show_shares, timeout=options.timeout)
        rows.append(
            (
                str(number + 1),
                crawled(
                    options, COMITY, tell=tell if options.what == "shares" else lambda pages: None
                ),
            )
        )
        show(rows, f"{options.workers} workers, {title}")


if __name__ == "__main__":
    main()
