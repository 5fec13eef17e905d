"""What a host costs before its first page: Python calls, CPU, statements of SQLite, connections, and memory.

A process of its own looks up the policies of loopback origins through the fetcher, with a store in a new file, and asks each site
what a crawl asks before its first page. A server in another process serves them, and counts connections and requests. Each origin
has a robots.txt of 0.2 KiB, one of some texts, and says 404 for the other files. The figures are of one origin: of all of them
less the first third, so that starting costs nothing. The Python calls are of the main thread. The CPU of the store is that of its
thread. The memory is what goes, by tracemalloc, when the fetcher drops all policies.

    python benchmarks/wide.py
    python benchmarks/wide.py --texts 1000000     every robots.txt is different"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import json
import multiprocessing
import pstats
import subprocess
import sys
import tempfile
import time
import tracemalloc
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from comity.policies.formats import WELL_KNOWN

AT_ONCE = 64  # origins
FIELDS = b"Server: bench\r\nDate: Sat, 21 Nov 2026 10:00:00 GMT\r\nContent-Type: text/plain\r\n"
HAS_NOT = b"HTTP/1.1 404 Not Found\r\n%sContent-Length: 9\r\n\r\nnot found" % FIELDS
WAYS = ("calls", "cpu", "memory")


def hosts(number: int) -> list[str]:
    return [f"127.0.{41 + n // 200}.{n % 200 + 1}" for n in range(number)]


def robots_txt(text: int) -> bytes:
    """Return one of the texts. All have 0.2 KiB."""
    lines = [b"User-agent: *", b"Disallow: /private/%08d/" % text]
    lines += [b"Disallow: /section-%d/print/" % number for number in range(6)]
    return b"\n".join(lines) + b"\n"


# The server


class Answers(asyncio.Protocol):
    seen: ClassVar = {"connections": 0, "requests": 0}

    def __init__(self, body: bytes) -> None:
        self._received = b""
        self._robots = b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (
            FIELDS,
            len(body),
            body,
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.seen["connections"] += 1

    def data_received(self, data: bytes) -> None:
        *requests, self._received = (self._received + data).split(b"\r\n\r\n")
        self.seen["requests"] += len(requests)
        self._transport.write(
            b"".join(
                self._robots if b" /robots.txt " in request else HAS_NOT for request in requests
            )
        )


async def serve(number: int, texts: int, channel: Connection) -> None:
    """Send the port, and after each message the counts since the last one."""
    loop = asyncio.get_running_loop()
    port = 0
    for index, host in enumerate(hosts(number)):
        body = robots_txt(index % texts)
        server = await loop.create_server(partial(Answers, body), host, port)
        port = server.sockets[0].getsockname()[1]

    def tell() -> None:
        channel.recv()
        channel.send(dict(Answers.seen))
        Answers.seen.update(connections=0, requests=0)

    loop.add_reader(channel.fileno(), tell)
    channel.send(port)
    await asyncio.Event().wait()


def run_server(number: int, texts: int, channel: Connection) -> None:
    asyncio.run(serve(number, texts, channel))


# The process that looks up


def statements_of(store: Any) -> list[str]:
    """Return a list that gets every statement that the store executes."""
    statements: list[str] = []
    store._db.set_trace_callback(statements.append)
    return statements


async def look_up(job: dict[str, Any], store_path: Path) -> dict[str, float]:
    """Look all origins up, and return the figures."""
    from comity.gate.fetching.fetcher import PolicyFetcher
    from comity.gate.fetching.files import PolicyFiles
    from comity.gate.fetching.options import TLS, ClientOptions
    from comity.gate.fetching.proxies import Proxies
    from comity.gate.fetching.store import PolicyStore
    from comity.policies import Agent

    agent = Agent("benchbot")
    run: Any = SimpleNamespace(
        stats=SimpleNamespace(inc_value=lambda *_: None), is_closing=False, in_downloader=()
    )
    options = ClientOptions(user_agent="benchbot", proxies=Proxies(), tls=TLS(), bind_address=None)
    store = PolicyStore(store_path)
    files = PolicyFiles.from_options(store, options, timeout=15)
    fetcher = PolicyFetcher(run, files, agent)
    at_once = asyncio.Semaphore(AT_ONCE)

    async def ask(origin: str) -> None:
        async with at_once:
            site = (await fetcher.get(origin)).site
        url = f"{origin}/page"
        site.asks_facts(agent)
        site.access(agent, url)
        site.rates(agent)
        site.limits(agent, url)
        site.unusable(agent)

    origins = [f"http://{host}:{job['port']}" for host in hosts(job["number"])]
    few, many = origins[: len(origins) // 3], origins[len(origins) // 3 :]
    told: dict[str, float] = {}

    def of_store_thread() -> float:
        return float(files._thread.submit(time.thread_time).result())

    await asyncio.gather(*map(ask, few))
    await asyncio.sleep(1)  # until the files of the first origins are saved
    if job["way"] == "calls":
        statements = statements_of(store)
        profile = cProfile.Profile()
        profile.enable()
        await asyncio.gather(*map(ask, many))
        profile.disable()
        await files.leave()
        told["calls"] = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
        told["statements"] = len(statements)
        told["transactions"] = statements.count("COMMIT")
    elif job["way"] == "cpu":
        began, of_store = time.process_time(), of_store_thread()
        await asyncio.gather(*map(ask, many))
        await asyncio.sleep(1)
        told["cpu"], told["store"] = time.process_time() - began, of_store_thread() - of_store
        await files.leave()
    else:
        gc.collect()
        tracemalloc.start()
        await asyncio.gather(*map(ask, many))
        await files.leave()
        gc.collect()
        whole = tracemalloc.get_traced_memory()[0]
        if job["lines"]:
            for line in tracemalloc.take_snapshot().statistics("lineno")[: job["lines"]]:
                print(f"{line.size / len(many):8.0f} {line.traceback}", file=sys.stderr)
        vars(fetcher)["_sites"] = None
        gc.collect()
        told["memory"] = whole - tracemalloc.get_traced_memory()[0]
    return {name: figure / len(many) for name, figure in told.items()}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--origins", type=int, default=1500)
    parser.add_argument("--texts", type=int, default=300, help="different robots.txt files")
    parser.add_argument("--lines", type=int, default=0, help="lines of code by their memory")
    options = parser.parse_args(arguments)
    if options.job:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "policies.sqlite"
            print(json.dumps(asyncio.run(look_up(json.loads(options.job), path))))
        return
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(
        target=run_server, args=(options.origins, options.texts, theirs), daemon=True
    )
    server.start()
    port = ours.recv()
    figures: dict[str, float] = {}
    for way in WAYS:
        job = {"way": way, "port": port, "number": options.origins, "lines": options.lines}
        done = subprocess.run(
            [sys.executable, __file__, "--job", json.dumps(job)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        figures |= json.loads(done.stdout)
        ours.send(None)
        figures |= {name: count / options.origins for name, count in ours.recv().items()}
    server.terminate()
    units = {
        "calls": "Python calls of the main thread",
        "cpu": "us of CPU, all threads",
        "store": "us of CPU of the store's thread",
        "statements": "statements of SQLite",
        "transactions": "transactions",
        "connections": "connections",
        "requests": "requests",
        "memory": "octets in memory",
    }
    print(
        f"{options.origins} origins with {len(WELL_KNOWN)} files and {options.texts} texts; of one origin:"
    )
    for name, unit in units.items():
        factor = 1e6 if name in ("cpu", "store") else 1
        print(f"{figures[name] * factor:10,.{3 if name == 'transactions' else 1}f} {unit}")


if __name__ == "__main__":
    main()
