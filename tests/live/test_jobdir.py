"""Crawls that are stopped or killed and go on from their JOBDIR, by what the servers saw of all their processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.http import Request, Response, TextResponse

from comity.policies.formats import WELL_KNOWN

if TYPE_CHECKING:  # the processes that run the spiders do not know the tests
    from tests.conftest import Loopback, Serve

OPEN = "User-agent: *\nDisallow:\n"
SLOW = "User-agent: *\nCrawl-delay: 100\n"  # after its first page a host keeps the others waiting
PATIENCE = 60  # seconds; after them what should have happened has not
ANSWER = 0.05  # seconds that a page takes, so that several are in flight at a time
CONCURRENT = 4
END = " end"  # of the line of an item that was kept


class Lines:
    """Pipeline: an item is kept when it stands in the file. Like a database it takes a while, in which the crawl may end, and
    keeps an item whole or not at all: `kill -9` can end a write where a page of the file ends, and a line is left without its
    end."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Lines:
        lines = cls()
        lines.path = Path(crawler.settings["ITEMS"])
        return lines

    path: Path

    async def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        import asyncio

        await asyncio.sleep(ANSWER / 2)
        with self.path.open("a") as file:
            file.write(f"\n{json.dumps(item)}{END}\n")
        return item


class Running:
    """A crawl in a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def until(self, condition: Callable[[], object]) -> None:
        give_up = time.monotonic() + PATIENCE
        while not condition():
            assert self._process.poll() is None, self.log
            assert time.monotonic() < give_up, self.log
            time.sleep(0.002)  # between two looks at another process

    def until_asked(self, server: Loopback, times: int) -> None:
        """For so many pages."""
        self.until(lambda: len(asked(server)) >= times)

    def kill(self) -> None:
        assert self._process.poll() is None, self.log
        self._process.kill()
        assert self._process.wait(PATIENCE) == -signal.SIGKILL

    def interrupt(self) -> None:
        """Ctrl-C."""
        assert self._process.poll() is None, self.log
        self._process.send_signal(signal.SIGINT)
        assert self.end() == 0, self.log
        assert "'finish_reason': 'shutdown'" in self.log

    def end(self) -> int:
        """Its status."""
        try:
            return self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(self.log) from None


class Project:
    """A Scrapy project with the spiders of this module. Its crawls share JOBDIR, store and file of items."""

    def __init__(self, folder: Path, *, reactor: bool) -> None:
        self.folder = folder
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = settings_0\n")
        self._settings = {
            "ADDONS": {"comity.crawler.addon.Addon": 100},
            "AUTOTHROTTLE_ENABLED": False,
            "COMITY_AGENT": "testbot",
            "COMITY_MIN_DELAY": 0,
            "COMITY_STORE": str(folder / "policies.sqlite"),
            "CONCURRENT_REQUESTS": CONCURRENT,
            "ITEMS": str(folder / "items.jsonl"),
            "ITEM_PIPELINES": {"test_jobdir.Lines": 500},
            "JOBDIR": str(folder / "job"),
            "LOG_LEVEL": "INFO",
            "SPIDER_MODULES": ["test_jobdir"],
            "TWISTED_REACTOR_ENABLED": reactor,
            "USER_AGENT": "testbot/1 (+https://example.org/bot)",
        }
        self.new_store = {
            "COMITY_STORE": str(folder / "new" / "policies.sqlite")
        }  # which knows of no pace and no policies
        self._running: list[Running] = []

    def begin(
        self, spider: type[Spider], settings: dict[str, Any] | None = None, **arguments: str
    ) -> Running:
        stated = self._settings | (settings or {})
        module = f"settings_{len(self._running)}"  # of this crawl alone: one that was just begun may be reading its own
        (self.folder / f"{module}.py").write_text(
            "".join(f"{name} = {value!r}\n" for name, value in stated.items())
        )
        command = [sys.executable, "-W", "error", "-m", "scrapy", "crawl", spider.name]
        command += [part for name, value in arguments.items() for part in ("-a", f"{name}={value}")]
        path = self.folder / f"{len(self._running)}.log"
        places = os.pathsep.join(
            filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH")))
        )
        environment = {**os.environ, "PYTHONPATH": places, "SCRAPY_SETTINGS_MODULE": module}
        with path.open("wb") as log:
            process = subprocess.Popen(command, cwd=self.folder, env=environment, stderr=log)
        self._running.append(Running(process, path))
        return self._running[-1]

    def crawl(
        self, spider: type[Spider], settings: dict[str, Any] | None = None, **arguments: str
    ) -> str:
        """To its end. The log."""
        running = self.begin(spider, settings, **arguments)
        assert running.end() == 0, running.log
        assert "'finish_reason': 'finished'" in running.log
        return running.log

    @property
    def items(self) -> list[dict[str, Any]]:
        path = self.folder / "items.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line.removesuffix(END)) for line in lines if line.endswith(END)]

    def close(self) -> None:
        for running in self._running:
            if running._process.poll() is None:
                running.kill()


# What does not hang on the mode of Scrapy runs in one of them: each of these tests starts several programs.
ONE_MODE = pytest.mark.parametrize("mode", ["reactor"], indirect=True)


@pytest.fixture
def project(mode: str, tmp_path: Path) -> Iterator[Project]:
    project = Project(tmp_path, reactor=mode == "reactor")
    yield project
    project.close()


def asked(server: Loopback) -> list[str]:
    return [path for path in server.paths if path != "/robots.txt"]


def gaps(server: Loopback) -> list[float]:
    hits = [seen.at for seen in server.seen if seen.path not in WELL_KNOWN]
    return [after - before for before, after in pairwise(hits)]


def links(*paths: str) -> str:
    return "".join(f'<a href="{path}">link</a>' for path in paths)


def tree(pages: int, robots: str = OPEN) -> dict[str, Any]:
    """Each page links to two further ones, to itself and to the first."""

    def page(number: int) -> Any:
        body = links(
            *(f"/{child}" for child in (2 * number + 1, 2 * number + 2, number, 0) if child < pages)
        )

        def answer(handler: Any) -> Any:
            time.sleep(
                ANSWER
            )  # the server is that slow, so that there is something in flight to kill
            return body

        return answer

    return {"/robots.txt": robots, **{f"/{number}": page(number) for number in range(pages)}}


def numbered(pages: int) -> list[str]:
    return [f"/{number}" for number in range(pages)]


class Follow(Spider):
    """Follows every link."""

    name = "follow"
    urls: str
    unfiltered = ""  # else the first requests are not filtered

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls.split():
            yield Request(url, dont_filter=bool(self.unfiltered))

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        yield {"url": response.url}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


@pytest.mark.requirement("SEC-6")
def test_kill_9_loses_no_page(serve: Serve, project: Project) -> None:
    """Again and again. What is fetched again was in flight, or done since the last 50 ms were written."""
    server = serve(tree(90))
    for number in (20, 50):
        running = project.begin(Follow, urls=server.url("/0"))
        running.until_asked(server, number)
        running.kill()
    assert len(asked(server)) < 90
    log = project.crawl(Follow, urls=server.url("/0"))
    assert "the crawl goes on with" in log
    assert set(asked(server)) == set(numbered(90))
    assert {item["url"] for item in project.items} == {server.url(path) for path in numbered(90)}
    # A page takes as long as lies between two writes; so at most two in each place have come to their end since.
    assert len(asked(server)) - 90 <= 2 * 3 * CONCURRENT
    assert len(project.items) - 90 <= 2 * 2 * CONCURRENT


@pytest.mark.requirement("SEC-6", "RATE-2")
@ONE_MODE
@pytest.mark.slow
def test_kill_9_breaks_no_rate(serve: Serve, project: Project) -> None:
    server = serve(tree(20, "User-agent: *\nCrawl-delay: 0.2\n"))
    running = project.begin(Follow, urls=server.url("/0"))
    running.until_asked(server, 8)
    running.kill()
    project.crawl(Follow, urls=server.url("/0"))
    assert set(asked(server)) == set(numbered(20))
    assert len(asked(server)) <= 22
    assert min(gaps(server)) >= 0.19
    assert {item["url"] for item in project.items} == {server.url(path) for path in numbered(20)}


@pytest.mark.requirement("SEC-6", "RATE-2")
@ONE_MODE
@pytest.mark.slow
def test_delay_longer_than_a_restart_is_kept_over_it(serve: Serve, project: Project) -> None:
    """Of a request that was through before the crawl was killed, not only of one that was in flight."""
    server = serve(tree(2, "User-agent: *\nCrawl-delay: 3\n"))
    running = project.begin(Follow, urls=server.url("/0"))
    running.until(lambda: project.items)
    running.kill()
    project.crawl(Follow, urls=server.url("/0"))
    assert set(asked(server)) == {"/0", "/1"}
    assert min(gaps(server)) >= 2.99


@pytest.mark.requirement("SEC-6")
def test_ctrl_c_loses_nothing_and_repeats_nothing(serve: Serve, project: Project) -> None:
    server = serve(tree(70))
    for number in (15, 35):
        running = project.begin(Follow, urls=server.url("/0"))
        running.until_asked(server, number)
        running.interrupt()
        assert "JOBDIR keeps them" in running.log
    assert len(asked(server)) < 70
    project.crawl(Follow, urls=server.url("/0"))
    assert Counter(asked(server)) == Counter(numbered(70))
    assert Counter(item["url"] for item in project.items) == Counter(
        server.url(path) for path in numbered(70)
    )


@pytest.mark.requirement("SEC-6")
@ONE_MODE
@pytest.mark.slow
def test_page_that_is_held_back_survives_kill_9(serve: Serve, project: Project) -> None:
    """It was out once: its host answered 429. The other host's pages show that the queue was written meanwhile."""
    busy = serve(
        {"/robots.txt": OPEN, "/busy": serve.Answer(status=429, headers={"Retry-After": "60"})}
    )
    other = serve(tree(60), host="127.0.0.2")
    running = project.begin(Follow, urls=f"{busy.url('/busy')} {other.url('/0')}")
    running.until_asked(busy, 1)
    running.until_asked(other, len(asked(other)) + 20)
    running.kill()
    busy.routes["/busy"] = "<p>page</p>"
    project.crawl(Follow, project.new_store, urls=f"{busy.url('/busy')} {other.url('/0')}")
    assert asked(busy) == ["/busy", "/busy"]
    assert busy.url("/busy") in {item["url"] for item in project.items}


class First(Spider):
    name = "first"
    origin: str

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.origin + "/first", priority=100, callback=self.first)

    def first(self, response: Response) -> Iterator[Any]:
        yield {"first": response.url}


class Manifold(First):
    """Requests with all that can be said about them, behind a first one that keeps them waiting."""

    name = "manifold"

    def first(self, response: Response) -> Iterator[Any]:
        yield from super().first(response)
        yield Request(
            self.origin + "/low", priority=-1, callback=self.detail, cb_kwargs={"who": "low"}
        )
        yield Request(
            self.origin + "/plain", callback=self.detail, cb_kwargs={"who": {"name": ["plain", 1]}}
        )
        yield Request(
            self.origin + "/form",
            self.detail,
            "POST",
            {"X-Own": "own"},
            "a=1",
            meta={"note": ["x", 2.5]},
            cb_kwargs={"who": "form"},
        )
        yield Request(
            self.origin + "/missing",
            callback=self.detail,
            errback=self.failed,
            cb_kwargs={"who": "missing"},
        )
        yield Request(
            self.origin + "/first",
            dont_filter=True,
            callback=self.detail,
            cb_kwargs={"who": "again"},
        )
        yield Request(
            self.origin + "/high", priority=7, callback=self.detail, cb_kwargs={"who": "high"}
        )

    def detail(self, response: Response, who: Any) -> Iterator[Any]:
        yield {"who": who, "note": response.meta.get("note"), "body": response.text}

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"failed": failure.request.cb_kwargs["who"]}


def manifold(robots: str) -> dict[str, Any]:
    def form(handler: Any) -> Any:
        return f"{handler.command} {handler.headers['X-Own']} {handler.body.decode()}"

    return {
        "/robots.txt": robots,
        "/form": form,
        **dict.fromkeys(("/first", "/low", "/plain", "/high"), "page"),
    }


@pytest.mark.requirement("SEC-6")
@ONE_MODE
def test_all_that_a_request_says_survives(serve: Serve, project: Project) -> None:
    server = serve(manifold(SLOW))
    running = project.begin(Manifold, origin=server.origin)
    running.until(lambda: project.items)
    running.interrupt()
    assert asked(server) == ["/first"]
    server.routes["/robots.txt"] = "User-agent: *\nCrawl-delay: 0.02\n"  # one after the other
    project.crawl(Manifold, project.new_store, origin=server.origin)
    assert asked(server) == ["/first", "/high", "/plain", "/form", "/missing", "/first", "/low"]
    said = [
        {name: value for name, value in item.items() if name != "permissions" and value is not None}
        for item in project.items
    ]
    assert said == [
        {"first": server.url("/first")},
        {"who": "high", "body": "page"},
        {"who": {"name": ["plain", 1]}, "body": "page"},
        {"who": "form", "note": ["x", 2.5], "body": "POST own a=1"},
        {"failed": "missing"},
        {"who": "again", "body": "page"},
        {"who": "low", "body": "page"},
    ]


@pytest.mark.requirement("SEC-6")
@ONE_MODE
@pytest.mark.slow
def test_request_whose_callback_is_gone_is_said_and_kept(serve: Serve, project: Project) -> None:
    """The crawl goes on without it, and one that knows the callback again takes it up."""
    server, other = serve(manifold(SLOW)), serve(manifold(OPEN), host="127.0.0.2")
    running = project.begin(Manifold, origin=server.origin)
    running.until(lambda: project.items)
    running.interrupt()
    server.routes["/robots.txt"] = OPEN
    log = project.crawl(First, project.new_store, origin=other.origin)
    assert asked(server) == ["/first"]
    assert asked(other) == ["/first"]
    assert log.count("cannot be read") == 6
    assert "detail" in log
    assert "Traceback" not in log
    project.crawl(Manifold, project.new_store, origin=server.origin)
    assert sorted(asked(server)) == sorted(
        ["/first", "/high", "/plain", "/form", "/missing", "/first", "/low"]
    )


class Inner(Spider):
    """Callbacks that no file can keep."""

    name = "inner"
    origin: str

    async def start(self) -> AsyncIterator[Any]:
        def page(response: Response) -> Iterator[Any]:
            yield {"url": response.url}

        for number in range(5):
            yield Request(f"{self.origin}/{number}", callback=page)


@pytest.mark.requirement("SEC-6")
@ONE_MODE
@pytest.mark.slow
def test_what_cannot_be_stored_waits_in_memory(serve: Serve, project: Project) -> None:
    """And is asked for in the next crawl, when that is led there, as if it had never been seen."""
    server = serve(tree(5, SLOW))
    running = project.begin(Inner, origin=server.origin)
    running.until(lambda: project.items)
    running.interrupt()
    assert asked(server) == ["/0"]
    assert "'scheduler/unserializable': 5" in running.log
    assert running.log.count("cannot be stored in JOBDIR") == 1
    server.routes["/robots.txt"] = OPEN
    project.crawl(Inner, project.new_store, origin=server.origin)
    assert sorted(asked(server)) == numbered(5)
    assert sorted(item["url"] for item in project.items) == [
        server.url(path) for path in numbered(5)
    ]


class Awkward(Follow):
    """Fails in the callback of some pages, and asks for the first ones in two ways."""

    name = "awkward"

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            yield request
        yield Request(self.urls + "?again", dont_filter=True)

    def parse(self, response: Response) -> Iterator[Any]:
        yield from super().parse(response)
        if "fails" in response.url:
            raise ValueError("this page is not as expected")


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("ends", ["kill", "interrupt"])
@pytest.mark.slow
def test_what_is_done_is_done(serve: Serve, project: Project, ends: str) -> None:
    """Duplicates, start requests, redirects and pages whose callback failed: nothing of it is asked again, in whatever crawl."""
    pages = {"/": links("/moved", "/fails", "/target", "/0"), "/fails": links("/after")}
    moved = {"/moved": serve.Answer(status=301, headers={"Location": "/target"})}
    server = serve(
        {
            **tree(40),
            **pages,
            **moved,
            "/target": links("/", "/moved", "/fails"),
            "/after": links("/0"),
        }
    )
    known = ["/", "/moved", "/fails", "/target", "/after"]
    running = project.begin(Awkward, urls=server.url("/"))
    running.until_asked(server, 30)
    if ends == "kill":
        running.kill()
    else:
        running.interrupt()
    for _ in range(2):
        project.crawl(Awkward, urls=server.url("/"))
    times = Counter(asked(server))
    assert set(times) == {*numbered(40), *known, "/?again"}
    assert [times[path] for path in known] == [1] * len(known)
    assert times["/?again"] == 3  # it says itself that it is not to be filtered
    if ends == "interrupt":
        assert [times[path] for path in numbered(40)] == [1] * 40


@pytest.mark.requirement("SEC-6")
@ONE_MODE
@pytest.mark.slow
def test_redirect_that_waits_survives(serve: Serve, project: Project) -> None:
    server = serve(
        {
            "/robots.txt": SLOW,
            "/old": serve.Answer(status=302, headers={"Location": "/new"}),
            "/new": "page",
        }
    )
    running = project.begin(Follow, urls=server.url("/old"))
    running.until_asked(server, 1)
    running.interrupt()
    assert asked(server) == ["/old"]
    server.routes["/robots.txt"] = OPEN
    for _ in range(2):
        project.crawl(Follow, project.new_store, urls=server.url("/old"))
    assert asked(server) == ["/old", "/new"]
    assert [item["url"] for item in project.items] == [server.url("/new")]


class Errbacks(Follow):
    """Says also what was refused."""

    name = "errbacks"

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        assert isinstance(response, TextResponse)
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link, errback=self.refused)

    def refused(self, failure: Any) -> Iterator[Any]:
        yield {"refused": failure.request.url}


@pytest.mark.requirement("SEC-6")
@ONE_MODE
@pytest.mark.slow
def test_each_refusal_is_heard_once(serve: Serve, project: Project) -> None:
    """Also of requests that are known to be refused before they have had their turn."""
    server = serve(
        {
            "/robots.txt": "User-agent: *\nDisallow: /private\n",
            "/": links(*(f"/private/{n}" for n in range(200))),
        }
    )
    running = project.begin(Errbacks, urls=server.url("/"))
    running.until(lambda: any("refused" in item for item in project.items))
    running.interrupt()
    assert len(project.items) < 201
    project.crawl(Errbacks, urls=server.url("/"))
    refused = Counter(item["refused"] for item in project.items if "refused" in item)
    assert refused == Counter(server.url(f"/private/{n}") for n in range(200))


@pytest.mark.requirement("RATE-4", "SEC-6")
@ONE_MODE
@pytest.mark.slow
def test_host_that_is_too_slow_waits_for_a_more_patient_crawl(
    serve: Serve, project: Project
) -> None:
    slow = serve(tree(3, "User-agent: *\nCrawl-delay: 0.5\n"))
    fast = serve(tree(3), host="127.0.0.2")
    urls = " ".join([*(slow.url(path) for path in numbered(3)), fast.url("/0")])
    for number in range(2):
        log = project.crawl(Follow, {"COMITY_MAX_DELAY": 0.4}, urls=urls)
        assert asked(slow) == []
        assert sorted(asked(fast)) == numbered(3)
        assert f"3 requests to {slow.origin} were set aside" in log, number
        assert "JOBDIR keeps them" in log
        assert "'comity/scheduler/set-aside': 3" in log
    log = project.crawl(Follow, urls=urls)
    assert asked(slow) == numbered(3)
    assert min(gaps(slow)) >= 0.49
    assert "set aside" not in log
    assert sorted(asked(fast)) == numbered(3)


@pytest.mark.requirement("SEC-6")
@ONE_MODE
def test_two_crawls_with_one_jobdir(serve: Serve, project: Project) -> None:
    """The second says so, in one line, and ends; the first notices nothing."""
    second_ended = threading.Event()

    def last(handler: Any) -> Any:
        assert second_ended.wait(PATIENCE)
        return "page"

    server = serve({**tree(60), "/59": last})
    first = project.begin(Follow, urls=server.url("/0"))
    first.until_asked(server, 10)
    second = project.begin(Follow, urls=server.url("/0"))
    assert second.end() == 1, second.log
    (line,) = [line for line in second.log.splitlines() if "in use by another crawl" in line]
    assert line.startswith("comity: JOBDIR: `")
    second_ended.set()
    assert first.end() == 0
    assert Counter(asked(server)) == Counter(numbered(60))


@pytest.mark.requirement("SEC-6")
@ONE_MODE
@pytest.mark.slow
def test_damaged_job_is_said_in_one_line(serve: Serve, project: Project) -> None:
    server = serve(tree(60))
    running = project.begin(Follow, urls=server.url("/0"))
    running.until_asked(server, 30)
    running.interrupt()
    path = project.folder / "job" / "comity.sqlite"
    octets = path.read_bytes()
    path.write_bytes(octets[:4096] + b"\xff" * (len(octets) - 4096))
    again = project.begin(Follow, urls=server.url("/0"))
    assert again.end() == 1, again.log
    (line,) = [line for line in again.log.splitlines() if "is damaged" in line]
    assert line.startswith("comity: JOBDIR: `")


@pytest.mark.requirement("SEC-6")
@ONE_MODE
@pytest.mark.slow
def test_without_jobdir_no_queue_is_written(serve: Serve, project: Project) -> None:
    server = serve(tree(10))
    before = {path.name for path in project.folder.iterdir()}
    log = project.crawl(Follow, {"JOBDIR": None}, urls=server.url("/0"))
    written = {path.name for path in project.folder.iterdir()} - before
    assert written == {"settings_0.py", "0.log", "items.jsonl", "policies.sqlite", "pace.sqlite"}
    assert "'scheduler/enqueued/memory': 10" in log
    assert "/disk'" not in log
    project.crawl(Follow, {"JOBDIR": None}, urls=server.url("/0"))
    assert Counter(asked(server)) == Counter(numbered(10) * 2)
