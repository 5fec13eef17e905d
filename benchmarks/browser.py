"""What a guard costs a browser: a page with 50 sub-resources, with comity and without.

Four ways take turns, each in a process of its own, over a server in another one: scrapy-playwright as it comes ("stock") and with
the add-on ("comity"), Playwright alone ("bare") and with `comity.browser.guard` ("guard"). Each opens the page so many times, one
after the other, in Chromium, in new contexts, so that nothing is cached. Counted are the CPU time of the asking Python process
from the first page to the last one, that of the browser and of Playwright's driver, and wall time; the difference of two ways,
divided by the requests, is what a sub-request costs more. No host has a delay."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PARTS = 50  # sub-resources of a page
WAYS = ("stock", "comity", "bare", "guard")
ROBOTS = b"User-agent: *\n" + b"".join(b"Disallow: /private/%d/\n" % number for number in range(20))
PIXEL = b"GIF89a\x01\x00\x01\x00\x80\x01\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02L\x01\x00;"


def page() -> bytes:
    images = "".join(f"<img src=/{number}.gif>" for number in range(PARTS - 10))
    scripts = "".join(f"<script src=/{number}.js></script>" for number in range(10))
    return (
        f"<!doctype html><title>A page</title><link rel=icon href=data:,>{images}{scripts}".encode()
    )


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        body, media_type = {
            "/": (page(), "text/html"),
            "/robots.txt": (ROBOTS, "text/plain"),
        }.get(path, (PIXEL, "image/gif") if path.endswith(".gif") else (b"0", "text/javascript"))
        is_there = path == "/robots.txt" or not path.endswith((".txt", ".json"))
        self.send_response(200 if is_there else 404)
        for name, value in {
            "Content-Type": media_type,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def serve() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


# One way, in a process of its own


class Clock:
    """The CPU and wall time since it was made."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def read(self) -> dict[str, float]:
        return {"cpu": time.process_time() - self._cpu, "wall": time.perf_counter() - self._wall}


def chromium() -> str:
    found = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if found is None:
        sys.exit("it takes Chromium: apt-get install --no-install-recommends chromium")
    return found


def launch_options() -> dict[str, Any]:
    return {"executable_path": chromium(), "args": ["--no-sandbox"] if os.geteuid() == 0 else []}


async def play(url: str, pages: int, *, is_guarded: bool) -> dict[str, float]:
    from playwright.async_api import async_playwright

    from comity.browser import guard
    from comity.client import Client

    async with (
        async_playwright() as playwright,
        Client("benchbot", store=None, min_delay=0, per_host=16) as client,
        guard(client) as guarded,
    ):
        if is_guarded:
            browser = await guarded.launch(playwright.chromium, **launch_options())
        else:
            browser = await playwright.chromium.launch(**launch_options())
        context = await browser.new_context()
        clock = None
        for number in range(pages + 1):
            tab = await context.new_page()
            await tab.goto(f"{url}?{number}")
            await tab.content()
            await tab.close()
            clock = clock or Clock()  # the first page is the start
        assert clock is not None
        times = clock.read()
        await browser.close()
    return times


def crawl(url: str, pages: int, *, is_guarded: bool) -> dict[str, float]:
    from scrapy import Request, Spider
    from scrapy.crawler import AsyncCrawlerProcess
    from scrapy.http import Response

    times: dict[str, float] = {}

    class Browses(Spider):
        name = "browses"
        clock: Clock | None = None

        async def start(self) -> AsyncIterator[Request]:
            yield Request(f"{url}?0", meta={"playwright": True}, cb_kwargs={"number": 0})

        def parse(self, response: Response, number: int) -> Any:
            self.clock = self.clock or Clock()
            times.update(self.clock.read())
            if number < pages:
                yield Request(
                    f"{url}?{number + 1}",
                    meta={"playwright": True},
                    cb_kwargs={"number": number + 1},
                )

    handler = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
    settings: dict[str, Any] = {
        "DOWNLOAD_HANDLERS": {"http": handler},
        "PLAYWRIGHT_LAUNCH_OPTIONS": launch_options(),
        "LOG_ENABLED": False,
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    }
    with tempfile.TemporaryDirectory() as folder:
        if is_guarded:
            settings |= {
                "ADDONS": {"comity.crawler.addon.Addon": 100},
                "COMITY_STORE": f"{folder}/policies.sqlite",
            }
            settings |= {
                "COMITY_MIN_DELAY": 0,
                "COMITY_PROGRESS": "off",
                "COMITY_AGENT": "benchbot",
            }
        process = AsyncCrawlerProcess(settings)
        process.crawl(Browses)
        process.start()
    return times


def measure(way: str, url: str, pages: int) -> None:
    is_guarded = way in ("comity", "guard")
    scrapy = way in ("stock", "comity")
    times = (
        crawl(url, pages, is_guarded=is_guarded)
        if scrapy
        else asyncio.run(play(url, pages, is_guarded=is_guarded))
    )
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps(times | {"browser": children.ru_utime + children.ru_stime}))


# All of them in turns


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    if options.way:
        measure(options.way, options.url, options.pages)
        return
    taken: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    with subprocess.Popen(
        [sys.executable, __file__, "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin
        assert server.stdout
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/"
        for _ in range(options.rounds):
            for way in WAYS:
                command = [
                    sys.executable,
                    __file__,
                    "--way",
                    way,
                    "--url",
                    url,
                    "--pages",
                    str(options.pages),
                ]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                taken[way].append(json.loads(done.stdout.splitlines()[-1]))
        server.stdin.close()
    requests = options.pages * (PARTS + 1)
    print(
        f"{'':8}{'CPU a page, ms':>16}{'wall a page, ms':>17}{'requests a s':>14}{'browser CPU, s':>16}   (least; median)"
    )
    for way, rounds in taken.items():
        row = []
        for name, scale in (
            ("cpu", 1000 / options.pages),
            ("wall", 1000 / options.pages),
            ("browser", 1.0),
        ):
            values = [one[name] * scale for one in rounds]
            row.append(f"{min(values):.1f}; {statistics.median(values):.1f}")
        rate = requests / min(one["wall"] for one in rounds)
        print(f"{way:8}{row[0]:>16}{row[1]:>17}{rate:>14.0f}{row[2]:>16}")
    for guarded, plain in (("comity", "stock"), ("guard", "bare")):
        added = [
            (one["cpu"] - other["cpu"]) / requests * 1e6
            for one, other in zip(taken[guarded], taken[plain], strict=True)
        ]
        ratio = statistics.median(
            one["wall"] / other["wall"]
            for one, other in zip(taken[guarded], taken[plain], strict=True)
        )
        print(
            f"{guarded} to {plain}: {statistics.median(added):.0f} us of CPU a request more, wall time {ratio:.2f}"
        )


if __name__ == "__main__":
    main()
