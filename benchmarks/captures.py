"""Captures of policy files: how fast many sites are asked for theirs, and what an index of them takes.

1. `scrapy crawl policies` over loopback hosts, each with a robots.txt and without the other files, into the policy store and into
   a WARC file: origins a second, CPU of the asking process with its start, peak memory. The server is another process.
2. The index of a WARC file as Common Crawl publishes them, of so many origins: a fifth say 404, a tenth redirect to another host,
   and of the texts a third are equal to others; the others have 2 KB on average. How long it takes, how much memory and disk, and
   look-ups a second of random origins, with the policies read and one question asked, and from one process. A file is made for
   it, with one origin in fifty captured twice."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from archive import origin, record
from policy_client import hosts, run_server

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
WORDS = [
    "/search",
    "/private/",
    "/cart",
    "/tmp/",
    "/admin/",
    "/*?sort=",
    "/login",
    "/wp-admin/",
    "/api/",
    "/feed/",
]


# Many sites


def crawled(number: int, *, warc: bool) -> dict[str, float]:
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=run_server, args=(number, theirs), daemon=True)
    server.start()
    port = ours.recv()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "origins.txt").write_text(
            "".join(f"http://{host}:{port}/\n" for host in hosts(number))
        )
        command = [
            sys.executable,
            "-m",
            "scrapy",
            "crawl",
            "policies",
            "-a",
            "origins=origins.txt",
            "-s",
            "LOG_LEVEL=ERROR",
        ]
        command += [
            "-s",
            f"COMITY_STORE={folder / 'policies.sqlite'}",
            "-s",
            "COMITY_AGENT=benchbot",
        ]
        command += ["-a", "warc=policies.warc.gz"] if warc else []
        environment = {
            **os.environ,
            "SCRAPY_SETTINGS_MODULE": "comity.crawler.settings",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        if status:
            raise SystemExit(f"scrapy crawl policies ended with {status}")
    server.terminate()
    server.join()
    return {
        "seconds": seconds,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak": usage.ru_maxrss / 1024,
    }


# An index


def text(chance: random.Random, number: int) -> bytes:
    """A robots.txt of 2 KB on average, one of three the same as many others."""
    if chance.random() < 1 / 3:
        chance = random.Random(number % 100)
    lines = [
        "User-agent: *",
        *(
            f"Disallow: {chance.choice(WORDS)}{chance.randrange(10**6)}"
            for _ in range(chance.randrange(140))
        ),
    ]
    return "\n".join(lines).encode()


def archive(number: int) -> Iterator[bytes]:
    chance = random.Random(0)
    for at in range(number):
        for visit in range(2 if at % 50 == 0 else 1):
            date = (NOON + timedelta(days=14 * visit, seconds=at)).strftime("%Y-%m-%dT%H:%M:%SZ")
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nServer: nginx\r\nContent-Length: %d"
            body = text(chance, at)
            if at % 5 == 1:
                head, body = head.replace(b"200 OK", b"404 Not Found"), b"not found"
            elif at % 10 == 2 and at + 1 < number:
                location = f"{origin(at + 1)}/robots.txt".encode()
                head, body = (
                    b"HTTP/1.1 301 Moved\r\nLocation: " + location + b"\r\nContent-Length: %d",
                    b"",
                )
            yield record(
                "response",
                f"{origin(at)}/robots.txt",
                date,
                head % len(body) + b"\r\n\r\n" + body,
                level=1,
            )


def indexed(number: int, folder: Path) -> dict[str, float]:
    from comity.crawler.captures import open_captures
    from comity.policies import Agent

    path, index = folder / "robotstxt.warc.gz", folder / "index.sqlite"
    with path.open("wb") as file:
        file.writelines(archive(number))
    agent = Agent("benchbot")
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began, cpu = time.monotonic(), time.process_time()
    open_captures([path], agent=agent, index=index).close()
    figures = {"seconds": time.monotonic() - began, "cpu": time.process_time() - cpu, "base": base}
    figures["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures["index"], figures["warc"] = index.stat().st_size, path.stat().st_size
    chance, asked = random.Random(1), 20_000
    with open_captures([path], agent=agent, index=index) as captures:
        origins = [origin(chance.randrange(number)) for _ in range(asked)]
        began = time.process_time()
        for each in origins:
            captured = captures.at(each, NOON + timedelta(days=13))
            assert captured
            captured.site.access(agent, f"{each}/a/page")
        figures["lookup"] = (time.process_time() - began) / asked
        began = time.process_time()
        for _ in range(asked):
            captures.at(origins[-1], NOON + timedelta(days=13))
        figures["again"] = (time.process_time() - began) / asked
    figures["all"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--origins", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--job", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.job:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(indexed(options.job, Path(folder))))
        return
    for warc in (False, True):
        rounds = [crawled(options.hosts, warc=warc) for _ in range(options.rounds)]
        least = {name: min(figures[name] for figures in rounds) for name in rounds[0]}
        print(
            f"{options.hosts} hosts into {'the store and a WARC file' if warc else 'the store'}:",
            end=" ",
        )
        print(f"{options.hosts / least['seconds']:.0f} origins a second,", end=" ")
        print(
            f"{least['cpu'] / options.hosts * 1e3:.2f} ms of CPU for each, peak {least['peak']:.0f} MiB"
        )
    done = subprocess.run(
        [sys.executable, __file__, "--job", str(options.origins)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    figures = json.loads(done.stdout)
    octets, origins = figures["index"] / options.origins, figures["warc"] / options.origins
    print(f"index of {options.origins:,} origins: {figures['cpu']:.0f} s of CPU,", end=" ")
    print(f"{octets:.0f} octets on disk for each ({origins:.0f} in the WARC file),", end=" ")
    print(f"peak {figures['peak']:.0f} MiB ({figures['base']:.0f} before)")
    for name, what in (("lookup", "random origins, with a question"), ("again", "the same one")):
        print(
            f"look-ups of {what}: {1 / figures[name]:,.0f} a second, {figures[name] * 1e6:.0f} us"
        )
    print(f"peak of all {figures['all']:.0f} MiB")


if __name__ == "__main__":
    main()
