"""One crawl by several workers over COMITY_STATE, by what the servers saw of all of them."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack
import pytest

from comity.cluster.queue import QueuedRequest
from comity.cluster.redis.connection import StateConnection
from comity.cluster.steps.queue import StepQueue
from tests.conftest import Answer
from tests.live.test_jobdir import Follow, Project, Running, asked, gaps, links, numbered, tree
from tests.redis_server import Server

if TYPE_CHECKING:
    from tests.conftest import Serve

TTL = 2.0  # seconds; COMITY_WORKER_TIMEOUT
OPEN = "User-agent: *\nDisallow:\n"


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "state")
    server.start()
    yield server
    server.stop()


class Workers:
    """Workers of one crawl of the project."""

    def __init__(self, project: Project, state: Server) -> None:
        self.project = project
        self.settings = {
            "COMITY_STATE": state.url,
            "COMITY_WORKER_TIMEOUT": TTL,
            "JOBDIR": "",
            "COMITY_CRAWL": "test",
        }
        self._running: list[Running] = []

    def begin(
        self, number: int = 1, settings: dict[str, Any] | None = None, **arguments: str
    ) -> Running:
        """The last one of so many."""
        for _ in range(number):
            self._running.append(
                self.project.begin(Follow, self.settings | (settings or {}), **arguments)
            )
        return self._running[-1]

    def end(self, reason: str = "finished", status: int = 0) -> str:
        """To the end of the crawl, but for those that were killed. Their logs."""
        logs = []
        for running in self._running:
            if running.end() != -signal.SIGKILL:
                assert running.end() == status, running.log
                assert f"'finish_reason': '{reason}'" in running.log
                assert "Traceback" not in running.log
            logs.append(running.log)
        return "\n".join(logs)

    def frontier(self, *options: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-m",
            "scrapy",
            "frontier",
            "test",
            "-s",
            f"COMITY_STATE={self.settings['COMITY_STATE']}",
        ]
        return subprocess.run(
            [*command, *options],
            cwd=self.project.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def status(self) -> dict[str, Any]:
        told = self.frontier("--json")
        assert told.returncode == 0, told.stderr
        status: dict[str, Any] = json.loads(told.stdout)
        return status


@pytest.fixture(params=["reactor"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def project(mode: str, tmp_path: Path) -> Iterator[Project]:
    project = Project(tmp_path, reactor=mode == "reactor")
    yield project
    project.close()


@pytest.fixture
def workers(project: Project, state: Server) -> Workers:
    return Workers(project, state)


def woven(serve: Serve, number: int, pages: int, robots: str = OPEN) -> list[Any]:
    """Servers on hosts of their own. Each page leads to the next of its host, and to the same of the next host."""
    servers = [
        serve({"/robots.txt": robots}, host=f"127.0.0.{place + 2}") for place in range(number)
    ]
    for place, server in enumerate(servers):
        other = servers[(place + 1) % number]
        for page in range(pages):
            server.routes[f"/{page}"] = links(
                *([f"/{page + 1}"] if page + 1 < pages else []), other.url(f"/{page}")
            )
    return servers


def has_asked(servers: list[Any], number: int) -> bool:
    """True where more pages than that were asked for."""
    return sum(len(asked(server)) for server in servers) > number


@pytest.mark.parametrize(
    "mode", ["reactor", pytest.param("no-reactor", marks=pytest.mark.slow)], indirect=True
)
@pytest.mark.requirement("REACH-1", "REACH-3")
def test_workers_share_a_crawl_and_end_by_themselves(serve: Serve, workers: Workers) -> None:
    """Each page is asked for once, each policy file too, and the delay holds over both."""
    servers = woven(serve, 6, 8, "User-agent: *\nCrawl-delay: 0.2\n")
    workers.begin(
        2, {"COMITY_WORKER_TIMEOUT": 60}, urls=servers[0].url("/0")
    )  # none is taken for dead on a busy machine
    log = workers.end()
    for server in servers:
        assert Counter(asked(server)) == Counter(numbered(8))
        assert server.paths.count("/robots.txt") == 1
        assert min(gaps(server)) >= 0.195
    assert Counter(item["url"] for item in workers.project.items) == Counter(
        server.url(path) for server in servers for path in numbered(8)
    )
    assert log.count("scheduler/enqueued/shared") == 2
    status = workers.status()
    assert (status["waiting"], status["out"], status["done"], status["workers"]) == (0, 0, 48, {})
    assert status["state"] == "finished"
    assert "Crawl test: finished" in workers.frontier("--once").stdout


@pytest.mark.requirement("REACH-1", "RATE-4")
@pytest.mark.slow
def test_nobody_waits_for_a_host_that_is_too_slow_and_what_waits_for_it_is_kept(
    serve: Serve, workers: Workers
) -> None:
    fast, slow = woven(serve, 2, 3)
    slow.routes["/robots.txt"] = b"User-agent: *\nCrawl-delay: 1000\n"
    workers.begin(2, urls=fast.url("/0"))
    log = workers.end()
    assert sorted(asked(fast)) == numbered(3)
    assert asked(slow) == []
    assert "its host is to be asked each 1000 s" in log
    status = workers.status()
    assert (status["waiting"], status["out"], status["set_aside"], status["done"]) == (0, 0, 3, 3)
    assert "set aside" in workers.frontier("--once").stdout
    patient = workers.begin(1, {"COMITY_MAX_DELAY": 2000}, urls=fast.url("/0"))
    patient.until(lambda: asked(slow))


@pytest.mark.requirement("REACH-2", "REACH-3")
def test_kill_9_of_a_worker_loses_no_page(serve: Serve, workers: Workers) -> None:
    servers = woven(serve, 3, 15, "User-agent: *\nCrawl-delay: 0.1\n")
    victim = workers.begin(2, urls=servers[0].url("/0"))
    victim.until(partial(has_asked, servers, 15))
    victim.kill()
    workers.end()
    for server in servers:
        assert set(asked(server)) == set(numbered(15))
        assert min(gaps(server)) >= 0.095
    assert {item["url"] for item in workers.project.items} == {
        server.url(path) for server in servers for path in numbered(15)
    }


def owners(state: Server) -> Counter[str]:
    """How many hosts each worker has leased."""
    client: Any = state.client()
    return Counter(
        owner.decode()
        for key in client.scan_iter("comity:{test:*}:owner")
        for owner in client.hvals(key)
    )


def is_shared(owned: Counter[str], hosts: int, workers: int, most: int) -> bool:
    """True where so many workers have leased all hosts, and none of them more than `most`."""
    return owned.total() == hosts and len(owned) == workers and max(owned.values()) <= most


def filtered(state: Server) -> int:
    """How many requests the server knew already when a worker put them."""
    client: Any = state.client()
    return sum(
        int(client.hget(key, "filtered") or 0) for key in client.scan_iter("comity:{test:*}:n")
    )


@pytest.mark.slow
@pytest.mark.requirement("STATE-3")
def test_workers_share_the_hosts_also_with_one_that_joins(
    serve: Serve, workers: Workers, state: Server
) -> None:
    """The first has leased all of them. After its first page a host is asked for no other one while the test lasts."""
    servers = woven(serve, 40, 2, "User-agent: *\nCrawl-delay: 200\n")
    urls = " ".join(server.url("/0") for server in servers)
    first = workers.begin(urls=urls)
    first.until(
        lambda: (
            sum(len(asked(server)) for server in servers) == 40
            and [*owners(state).values()] == [40]
        )
    )
    for number in (4, 5):
        joining = workers.begin(number - len(workers._running), urls=urls)
        most = 40 // number + 1  # a worker keeps one host beyond its share
        joining.until(lambda: is_shared(owners(state), 40, number, most))  # noqa: B023  # it is called at once
    assert all(asked(server) == ["/0"] for server in servers)


async def put(state: Server, host: str, body: bytes) -> None:
    """Put a request into the crawl, as anyone who reaches the server can."""
    connection = StateConnection(state.address("test"))
    queue = StepQueue(connection, "somebody", TTL)
    await queue.open()
    await queue.put([QueuedRequest(host, body, queue.new_key(), 0, body)])
    await connection.close()


@pytest.mark.slow
@pytest.mark.requirement("REACH-2", "REACH-4")
def test_a_request_that_kills_its_readers_is_set_aside_and_told(
    serve: Serve, workers: Workers, state: Server
) -> None:
    server, other = serve(tree(10)), serve({"/robots.txt": OPEN, "/deadly": ""}, host="127.0.0.2")
    members = {"url": other.url("/deadly"), "_class": "stopping.Deadly", "is_deadly": True}
    asyncio.run(put(state, "127.0.0.2", msgpack.packb(members)))
    loaded = {"DOWNLOADER_MIDDLEWARES": {"stopping.Stops": 1000}}
    statuses: list[int] = []
    while not statuses or statuses[-1] == -signal.SIGKILL:
        running = workers.begin(1, loaded, urls=server.url("/0"))
        statuses.append(running.end())
    assert statuses == [-signal.SIGKILL] * 4 + [0]
    assert (
        "1 requests could not be read, and are set aside: `comity frontier test` lists them"
        in workers.end()
    )
    assert set(asked(server)) == set(numbered(10))
    status = workers.status()
    assert (status["state"], status["waiting"], status["unreadable"]) == ("finished", 0, 1)
    (unreadable,) = status["unreadable_requests"]
    assert unreadable == {
        "url": other.url("/deadly"),
        "host": "127.0.0.2",
        "why": "3 workers died while they read it",
    }
    assert other.url("/deadly") in workers.frontier("--once").stdout
    assert "1 requests that could not be read wait again" in workers.frontier("--resume").stdout
    assert workers.begin(1, loaded, urls=server.url("/0")).end() == -signal.SIGKILL
    assert asked(other) == []


@pytest.mark.slow
@pytest.mark.requirement("REACH-2", "REACH-3")
def test_worker_that_was_stopped_asks_no_host_too_soon(serve: Serve, workers: Workers) -> None:
    servers = woven(serve, 3, 30, "User-agent: *\nCrawl-delay: 0.2\n")
    stopped = workers.begin(2, urls=servers[0].url("/0"))
    stopped.until(partial(has_asked, servers, 20))
    stopped._process.send_signal(signal.SIGSTOP)
    seen = [len(asked(server)) for server in servers]
    other = workers._running[0]
    other.until(
        lambda: all(
            len(asked(server)) > before + 8 for server, before in zip(servers, seen, strict=True)
        )
    )
    stopped._process.send_signal(signal.SIGCONT)
    workers.end()
    for server in servers:
        assert set(asked(server)) == set(numbered(30))
        assert min(gaps(server)) >= 0.195


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["reactor", "no-reactor"], indirect=True)
@pytest.mark.parametrize("turns", [0, 1, 2])
@pytest.mark.requirement("REACH-3")
def test_what_a_stopped_worker_was_about_to_send_is_not_sent(
    serve: Serve, workers: Workers, turns: int
) -> None:
    """Its turn is over when it goes on: another worker has asked the host meanwhile, and asks it again soon."""
    (server,) = woven(serve, 1, 12, "User-agent: *\nCrawl-delay: 0.5\n")
    stopping = {
        "STOP_AT": "/3",
        "STOP_IN": turns,
        "DOWNLOADER_MIDDLEWARES": {"stopping.Stops": 1000},
    }
    stopped = workers.begin(1, stopping, urls=server.url("/0"))
    stopped.until(
        lambda: (
            Path(f"/proc/{stopped._process.pid}/stat")
            .read_text(encoding="utf-8")
            .rpartition(")")[2]
            .split()[0]
            == "T"
        )
    )
    other = workers.begin(1, urls=server.url("/0"))
    other.until(lambda: len(asked(server)) >= 6)
    stopped._process.send_signal(signal.SIGCONT)
    workers.end()
    assert set(asked(server)) == set(numbered(12))
    assert min(gaps(server)) >= 0.495


@pytest.mark.slow
@pytest.mark.requirement("REACH-2", "REACH-3")
def test_kill_9_of_the_state_server_loses_nothing(
    serve: Serve, workers: Workers, state: Server
) -> None:
    servers = woven(serve, 3, 30, "User-agent: *\nCrawl-delay: 0.1\n")
    running = workers.begin(2, urls=servers[0].url("/0"))
    for number in (20, 50):
        running.until(partial(has_asked, servers, number))
        state.kill()
        time.sleep(TTL / 2)  # that long it is away
        state.start()
    workers.end()
    for server in servers:
        assert set(asked(server)) == set(numbered(30))
        assert min(gaps(server)) >= 0.095


@pytest.mark.slow
@pytest.mark.requirement("REACH-1")
def test_a_finished_crawl_says_so_and_begins_again_when_it_is_told_to(
    serve: Serve, workers: Workers, state: Server
) -> None:
    """By several workers that begin at the same time, as cron does. The policies and the pace are known."""
    server = serve(tree(12, "User-agent: *\nCrawl-delay: 0.2\n"))
    workers.begin(urls=server.url("/0"))
    assert "has been finished since" not in workers.end()
    workers.begin(1, {"COMITY_AGAIN_AFTER": 3600}, urls=server.url("/0"))
    log = workers.end()
    assert log.count(" WARNING: COMITY_STATE: crawl `test` has been finished since ") == 1
    assert (
        "set COMITY_AGAIN_AFTER to the seconds after which a finished crawl begins again (it is 3600 now)"
        in log
    )
    assert "To crawl again: `comity frontier test --again`." in log
    assert sorted(asked(server)) == sorted(numbered(12))
    now: Any = state.client().time()
    state.client().hset("comity:{test}:meta", "finished", str((now[0] - 7200) * 1000))
    workers._running.clear()
    workers.begin(3, {"COMITY_AGAIN_AFTER": 3600}, urls=server.url("/0"))
    log = workers.end()
    assert log.count("`, finished at ") == 1
    assert Counter(asked(server)) == Counter(numbered(12) * 2)
    assert server.paths.count("/robots.txt") == 1
    assert min(gaps(server)) >= 0.195
    status = workers.status()
    assert (status["run"], status["done"], status["state"]) == (2, 12, "finished")
    assert "Crawl test: finished" in workers.frontier("--once").stdout


def evict(state: Server) -> None:
    state.client().config_set("maxmemory-policy", "allkeys-lru")


def come_back_empty(state: Server) -> None:
    state.kill()
    for file in state.folder.glob("appendonly*/*"):
        file.unlink()
    state.start()


@pytest.mark.requirement("REACH-2")
@pytest.mark.parametrize(
    ("lose", "why"),
    [
        (lambda state: state.client().flushall(), "the crawl is gone"),
        pytest.param(come_back_empty, "the crawl is gone", marks=pytest.mark.slow),
        pytest.param(evict, "its maxmemory-policy is `allkeys-lru`", marks=pytest.mark.slow),
    ],
)
def test_a_state_that_is_lost_ends_the_crawl_with_a_word(
    serve: Serve, workers: Workers, state: Server, lose: Callable[[Server], object], why: str
) -> None:
    """It does not look as if it were finished.

    Each worker has put its start request before. A worker that begins later would crawl anew."""
    server = serve(tree(1000, "User-agent: *\nCrawl-delay: 0.05\n"))
    running = workers.begin(2, urls=server.url("/0"))
    running.until(lambda: filtered(state) == 1)
    running.until_asked(server, 10)
    lose(state)
    log = workers.end("state_lost", 1)
    assert (
        log.count(" CRITICAL: ") == log.count(f"has lost crawl `test`, or a part of it: {why}") == 2
    )
    assert len(asked(server)) < 1000
    assert min(gaps(server)) >= 0.045


@pytest.mark.slow
@pytest.mark.requirement("REACH-1")
def test_a_host_that_is_dead_keeps_each_worker_no_longer_than_one(
    serve: Serve, workers: Workers
) -> None:
    """The second worker hears from the first that the robots.txt could not be had twice, and waits for it no more."""
    waits = iter(["1", "200"])
    robots = lambda _: Answer("", 503, headers={"Retry-After": next(waits)})  # noqa: E731
    server = serve({"/robots.txt": robots, "/0": "", "/1": ""})
    for page in ("/0", "/1"):
        workers.begin(1, {"RETRY_TIMES": 1}, urls=server.url(page))
        workers.end()
    assert server.paths == ["/robots.txt"] * 2


@pytest.mark.slow
@pytest.mark.requirement("REACH-2")
def test_ctrl_c_gives_back_what_waits(serve: Serve, workers: Workers) -> None:
    """Nothing is repeated, and what is in flight comes to its end."""
    server = serve(tree(60))
    first = workers.begin(urls=server.url("/0"))
    first.until_asked(server, 20)
    first.interrupt()
    assert first.log.count("COMITY_STATE keeps them") <= 1
    workers._running.clear()
    workers.begin(urls=server.url("/0"))
    workers.end()
    assert Counter(asked(server)) == Counter(numbered(60))


@pytest.mark.slow
@pytest.mark.requirement("REACH-1")
def test_crawl_is_paused_goes_on_ends_and_is_deleted(serve: Serve, workers: Workers) -> None:
    server = serve(tree(200, "User-agent: *\nCrawl-delay: 0.05\n"))
    running = workers.begin(urls=server.url("/0"))
    running.until_asked(server, 10)
    assert workers.frontier("--delete").returncode == 1
    assert "paused" in workers.frontier("--pause").stdout
    running.until(lambda: workers.status()["out"] == 0)
    before = len(asked(server))
    table = workers.frontier()
    assert "Crawl test: paused" in table.stdout
    assert server.host in table.stdout
    assert len(asked(server)) == before
    assert "running" in workers.frontier("--resume").stdout
    running.until_asked(server, before + 5)
    assert "ended" in workers.frontier("--end").stdout
    workers.end("crawl_ended")
    assert len(asked(server)) < 200
    assert workers.frontier("--delete").stdout == "test is deleted\n"
    gone = workers.frontier()
    assert gone.returncode == 1
    assert "there is no crawl `test`" in gone.stderr


@pytest.mark.slow
@pytest.mark.requirement("REACH-4")
def test_full_memory_holds_the_crawl_up_and_loses_nothing(
    serve: Serve, workers: Workers, state: Server
) -> None:
    server = serve(tree(100))
    running = workers.begin(urls=server.url("/0"))
    running.until_asked(server, 20)
    with state.client() as client:
        client.config_set("maxmemory", 1)
        running.until(lambda: "COMITY_STATE" in running.log.partition("Spider opened")[2])
        assert "memory" in running.log.partition("Spider opened")[2]
        client.config_set("maxmemory", "512mb")
    workers.end()
    assert set(asked(server)) == set(numbered(100))
    assert len(workers.project.items) == 100


SCRAPYS_OWN = """
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider


class Rules(CrawlSpider):
    name = "rules"
    rules = [Rule(LinkExtractor(), callback="parse_page", follow=True, errback="failed")]

    def __init__(self, urls, **options):
        super().__init__(**options)
        self.start_urls = [urls + "/0"]

    def parse_page(self, response):
        yield {"url": response.url}

    def failed(self, failure):
        yield {"url": failure.request.url}


class Maps(SitemapSpider):
    name = "maps"

    def __init__(self, urls, **options):
        super().__init__(**options)
        self.sitemap_urls = [urls + "/index.xml"]

    def parse(self, response):
        yield {"url": response.url}
"""


@pytest.mark.slow
@pytest.mark.requirement("REACH-4")
@pytest.mark.parametrize("name", ["rules", "maps"])
def test_scrapys_own_spiders_are_crawled_over_the_state(
    serve: Serve, workers: Workers, name: str
) -> None:
    """Their callbacks have private names."""
    server = serve(tree(6))
    maps = {
        "/index.xml": f"<sitemapindex><sitemap><loc>{server.url('/map.xml')}</loc></sitemap></sitemapindex>",
        "/map.xml": "<urlset>"
        + "".join(f"<url><loc>{server.url(path)}</loc></url>" for path in numbered(6))
        + "</urlset>",
    }
    server.routes |= {
        path: Answer(body, content_type="application/xml") for path, body in maps.items()
    }
    (workers.project.folder / "own.py").write_text(SCRAPYS_OWN)
    running = workers.project.begin(
        type(name, (Follow,), {"name": name}),
        workers.settings | {"SPIDER_MODULES": ["own"]},
        urls=server.url(""),
    )
    assert running.end() == 0
    assert " ERROR: " not in running.log
    assert "scheduler/unserializable" not in running.log
    assert {item["url"] for item in workers.project.items} == {
        server.url(path) for path in numbered(6)[name == "rules" :]
    }


@pytest.mark.slow
def test_start_requests_that_are_not_to_be_filtered_go_out_once(
    serve: Serve, workers: Workers
) -> None:
    """Scrapy's own `start()` makes such."""
    server = serve({"/robots.txt": OPEN, "/a": "a", "/b": "b"})
    workers.begin(3, urls=f"{server.url('/a')} {server.url('/b')}", unfiltered="1")
    workers.end()
    assert Counter(asked(server)) == {"/a": 1, "/b": 1}


@pytest.mark.parametrize("unfiltered", ["", pytest.param("1", marks=pytest.mark.slow)])
@pytest.mark.requirement("REACH-2")
def test_start_request_that_fails_is_tried_again(
    serve: Serve, workers: Workers, unfiltered: str
) -> None:
    """What is tried again has the meta of the first: it is no start request of another worker."""
    fails = iter([500])
    server = serve(
        {"/robots.txt": OPEN, "/a": lambda _: Answer("a", next(fails, 200), "text/html")}
    )
    workers.begin(1, urls=server.url("/a"), unfiltered=unfiltered)
    workers.end()
    assert asked(server) == ["/a", "/a"]
    assert [item["url"] for item in workers.project.items] == [server.url("/a")]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"JOBDIR": "job"}, "JOBDIR is set beside COMITY_STATE"),
        (
            {"COMITY_STATE": "redis://127.0.0.1:1/0"},
            "comity: COMITY_STATE: redis://127.0.0.1:1/0 cannot be used",
        ),
        ({"COMITY_STATE": "http://user:secret@127.0.0.1/"}, "write redis://HOST:PORT/DB"),
        ({"COMITY_CRAWL": "two words"}, "is not the name of a crawl"),
        ({"COMITY_WORKER_TIMEOUT": 0}, "COMITY_WORKER_TIMEOUT"),
        ({"COMITY_MAX_WAITING": -1}, "COMITY_MAX_WAITING"),
    ],
)
def test_settings_that_make_no_sense_end_the_crawl_with_one_line(
    workers: Workers, settings: dict[str, Any], message: str
) -> None:
    running = workers.begin(settings=settings, urls="http://127.0.0.1:1/")
    assert running.end() == 1
    assert message in running.log
    assert "comity: comity:" not in running.log
    assert "Traceback" not in running.log
    assert "secret" not in running.log


def test_state_that_evicts_keys_is_refused(project: Project, tmp_path: Path) -> None:
    server = Server(tmp_path / "evicting", options={"maxmemory-policy": "allkeys-lru"})
    server.start()
    try:
        running = Workers(project, server).begin(urls="http://127.0.0.1:1/")
        assert running.end() == 1
        assert "noeviction" in running.log
        assert "Traceback" not in running.log
    finally:
        server.stop()
