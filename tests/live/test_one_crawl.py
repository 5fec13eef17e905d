"""The workers of a crawl have one configuration, one total and one end, by what the servers saw of all of them."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from comity.policies.formats import WELL_KNOWN
from tests.conftest import Answer
from tests.live.counting import Counting
from tests.live.test_jobdir import asked, links, numbered, tree
from tests.live.test_reach import Workers, mode, project, state, workers, woven

if TYPE_CHECKING:
    from tests.conftest import Serve
    from tests.live.test_jobdir import Running
    from tests.redis_server import Server

__all__ = ["mode", "project", "state", "workers"]  # fixtures

SLOW = "User-agent: *\nCrawl-delay: 100\n"


def ended(running: Running, status: int) -> str:
    """Wait for the end of the worker, and return its log."""
    assert running.end() == status, running.log
    assert "Traceback" not in running.log
    return running.log


def command(workers: Workers, *arguments: str) -> str:
    """Run a command in the project of the workers, and return its output."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    ran = subprocess.run(
        [sys.executable, "-m", "scrapy", *arguments],
        cwd=workers.project.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.slow
@pytest.mark.requirement("STATE-4")
def test_a_worker_that_would_decide_differently_is_refused_before_its_first_request(
    serve: Serve, workers: Workers
) -> None:
    server, other = serve(tree(12, SLOW)), serve(tree(3), host="127.0.0.2")
    first = workers.begin(1, {"COMITY_USES": "index"}, urls=server.url("/0"))
    first.until_asked(server, 1)
    refused = workers.begin(
        1, {"COMITY_USES": "index,train", "COMITY_MAX_DELAY": 7}, urls=other.url("/0")
    )
    log = ended(refused, 1)
    assert (
        "this worker would decide differently from crawl `test`: COMITY_USES is `index, train` here,"
        " and `index` in the crawl. Start it with the settings of the crawl, or give the crawl these"
        " settings with `comity frontier test --reconfigure`" in log
    )
    assert other.paths == []
    warned = workers.begin(
        1, {"COMITY_USES": "index", "COMITY_MAX_DELAY": 300.5}, urls=other.url("/0")
    )
    warned.until_asked(other, 3)
    assert (
        "settings of this worker differ from those of crawl `test`: COMITY_MAX_DELAY is `300.5`"
        " here, and `300` in the crawl" in warned.log
    )


@pytest.mark.slow
@pytest.mark.requirement("STATE-4")
def test_new_settings_are_deployed_by_a_command(serve: Serve, workers: Workers) -> None:
    """A worker with the old settings ends, and a worker with the new ones goes on with what is left."""
    pages = tree(12, "User-agent: *\nCrawl-delay: 0.3\n")
    server = serve(pages)
    old = workers.begin(1, {"COMITY_USES": "index"}, urls=server.url("/0"))
    old.until_asked(server, 2)
    url = f"COMITY_STATE={workers.settings['COMITY_STATE']}"
    told = command(
        workers, "frontier", "test", "--reconfigure", "-s", url, "-s", "COMITY_USES=train"
    )
    assert told.splitlines()[0] == "COMITY_USES: `index` becomes `train`"
    assert "test has new settings: workers that decide differently end within 1 s" in told
    log = ended(old, 1)
    assert "'finish_reason': 'crawl_reconfigured'" in log
    assert "COMITY_USES is `index` here, and `train` in the crawl" in log
    assert len(asked(server)) < 12
    told = command(
        workers, "frontier", "test", "--reconfigure", "-s", url, "-s", "COMITY_USES=train"
    )
    assert told == "test has these settings already\n"
    new = workers.begin(1, {"COMITY_USES": "train"}, urls=server.url("/0"))
    ended(new, 0)
    assert sorted(asked(server)) == sorted(numbered(12))


def report(workers: Workers) -> dict[str, Any]:
    url = str(workers.settings["COMITY_STATE"])
    found: dict[str, Any] = json.loads(command(workers, "report", "--state", url, "test", "--json"))
    return found


def held(free: threading.Event, answer: Answer) -> Any:
    """A route that answers once `free` is set."""

    def respond(_: BaseHTTPRequestHandler) -> Answer:
        free.wait()
        return answer

    return respond


@pytest.mark.requirement("STATE-4")
def test_the_totals_of_three_workers_are_those_of_the_servers_also_after_kill_9(
    serve: Serve, workers: Workers
) -> None:
    """The servers hold their answers while one worker is killed: each request that went out is in their log by then."""
    free = threading.Event()
    files = dict.fromkeys(WELL_KNOWN, Answer(status=404))  # the log has them too
    files["/robots.txt"] = Answer("User-agent: *\nDisallow: /7\n")
    servers = [serve({**files}, host=f"127.0.0.{place + 2}") for place in range(6)]
    for server in servers:
        for path in numbered(12):
            page = Answer(links(*numbered(12)), content_type="text/html")
            server.routes[path] = held(free, page)
        server.routes["/3"] = Answer(status=404, content_type="text/html")
    urls = " ".join(server.url("/0") for server in servers)
    settings = {"COMITY_MIN_DELAY": 0.05, "HTTPERROR_ALLOW_ALL": True}
    victim = workers.begin(1, settings, urls=urls)
    victim.until(lambda: sum("/0" in server.paths for server in servers) >= 2)  # they are out
    workers.begin(2, settings, urls=urls)
    looks: list[tuple[int, int]] = []

    def is_told() -> bool:
        """True once no more requests arrive, and the crawl has counted all of them."""
        arrived = sum(len(server.paths) for server in servers)
        status = workers.status()
        looks.append((arrived, status["requests"] + status["policy_requests"]))
        return looks[-3:] == [(arrived, arrived)] * 3 and status["workers_alive"] == 3

    victim.until(is_told)
    victim.kill()
    free.set()
    workers.end()
    pages = Counter(
        server.url(path) for server in servers for path in server.paths if path not in WELL_KNOWN
    )
    expected = {server.url(path) for server in servers for path in numbered(12) if path != "/7"}
    assert pages.keys() == expected
    status = workers.status()
    assert status["finish_reason"] == "finished"
    assert status["requests"] == pages.total() > len(expected)
    assert status["policy_requests"] == sum(len(server.paths) for server in servers) - pages.total()
    assert status["errors"] == 0
    assert status["done"] - 6 == len(expected) == status["pages"]
    assert status["refused_by_rule"] == {"robots.disallow": status["refused"]}
    assert status["refused"] == 6
    assert status["items"] == len(workers.project.items) == len(expected)
    assert (status["workers_alive"], status["workers_left"], status["workers_died"]) == (0, 2, 1)
    assert status["seconds_left"] == 0
    told = workers.frontier("--once").stdout
    assert "\nworkers died                   1\n" in told
    assert "refused by robots.disallow" in told
    made = report(workers)
    assert (made["title"], made["state"]) == ("Crawl test", "finished")
    assert made["counts"]["sent"] == pages.total()
    assert made["counts"]["files"] == status["policy_requests"]
    assert made["counts"]["items"] == len(expected)
    assert made["settings"]["COMITY_MIN_DELAY"] == "0.05"
    answers = {row["name"]: row["count"] for row in made["statuses"]}
    assert answers == {"200": len(expected) - 6, "404": 6}


@pytest.mark.slow
@pytest.mark.requirement("STATE-4")
def test_a_limit_ends_the_crawl_for_all_workers(serve: Serve, workers: Workers) -> None:
    servers = woven(serve, 4, 40, "User-agent: *\nCrawl-delay: 0.1\n")
    settings = {"CLOSESPIDER_PAGECOUNT": 20}
    urls = " ".join(server.url("/0") for server in servers)
    workers.begin(2, settings, urls=urls)
    workers.end("closespider_pagecount")
    number = sum(len(asked(server)) for server in servers)
    assert 20 <= number < 160
    status = workers.status()
    assert (status["state"], status["finish_reason"]) == ("ended", "closespider_pagecount")
    assert status["pages"] == number
    assert "Crawl test: ended (closespider_pagecount)" in workers.frontier("--once").stdout
    refused = workers.begin(1, settings, urls=urls)
    assert "crawl `test` has been ended (closespider_pagecount)" in ended(refused, 1)


@pytest.mark.slow
@pytest.mark.requirement("STATE-4")
def test_a_crawl_that_a_limit_has_ended_begins_again_when_it_is_time(
    serve: Serve, workers: Workers, state: Server
) -> None:
    server = serve(tree(40, "User-agent: *\nCrawl-delay: 0.1\n"))
    settings = {"CLOSESPIDER_PAGECOUNT": 2, "COMITY_AGAIN_AFTER": 3600}
    workers.begin(1, settings, urls=server.url("/0"))
    workers.end("closespider_pagecount")
    refused = workers.begin(1, settings, urls=server.url("/0"))
    assert "has been ended (closespider_pagecount)" in ended(refused, 1)
    number = len(asked(server))
    workers._running.clear()
    now: Any = state.client().time()
    state.client().hset("comity:{test}:meta", "ended", str((now[0] - 7200) * 1000))
    workers.begin(1, settings, urls=server.url("/0"))
    workers.end("closespider_pagecount")
    assert number < len(asked(server)) < 80
    assert asked(server)[number] == "/0"
    status = workers.status()
    assert (status["run"], status["pages"]) == (2, len(asked(server)) - number)


@pytest.mark.slow
@pytest.mark.requirement("STATE-4")
def test_a_setting_keeps_the_limits_to_the_worker(serve: Serve, workers: Workers) -> None:
    server = serve(tree(12, "User-agent: *\nCrawl-delay: 0.1\n"))
    settings = {"CLOSESPIDER_PAGECOUNT": 4, "COMITY_LIMITS": "worker"}
    for _ in range(2):
        running = workers.begin(1, settings, urls=server.url("/0"))
        assert "'finish_reason': 'closespider_pagecount'" in ended(running, 0)
    assert len(asked(server)) >= 8
    assert workers.status()["state"] == "running"


@pytest.mark.requirement("STATE-4")
def test_prometheus_gets_the_counts_of_the_crawl(serve: Serve, workers: Workers) -> None:
    server = serve(tree(5))
    workers.begin(1, urls=server.url("/0"))
    workers.end()
    url = f"COMITY_STATE={workers.settings['COMITY_STATE']}"
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy", "frontier", "test", "--metrics", "0", "-s", url],
        cwd=workers.project.folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().split()[-1]
        with urllib.request.urlopen(address, timeout=300) as answer:
            lines = answer.read().decode().splitlines()
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        process.stdout.close()
    assert "comity_crawl_pages_total 5.0" in lines
    assert "comity_crawl_workers_left_total 1.0" in lines
    assert 'comity_crawl_state{state="finished"} 1.0' in lines


@pytest.mark.slow
@pytest.mark.requirement("STATE-4")
def test_a_command_begins_the_crawl_again(serve: Serve, workers: Workers) -> None:
    server = serve(tree(5))
    running = workers.begin(1, {"COMITY_USES": "index"}, urls=server.url("/0"))
    running.until_asked(server, 1)
    workers.end()
    told = workers.frontier("--again")
    assert told.stdout == "test begins again: this is run 2. Start its workers\n"
    refused = workers.frontier("--again")
    assert refused.returncode == 2
    assert "test is running, so it cannot begin again: let it finish" in refused.stderr
    workers.begin(1, {"COMITY_USES": "train"}, urls=server.url("/0"))
    workers.end()
    assert Counter(asked(server)) == Counter(numbered(5) * 2)
    assert server.paths.count("/robots.txt") == 1
    status = workers.status()
    assert (status["run"], status["pages"], status["state"]) == (2, 5, "finished")


def front_page(server: Any, *links_to: str) -> None:
    """Let the start page, to which `/` is redirected, link to these pages and to itself."""
    server.routes["/"] = Answer(status=302, headers={"Location": "/front"})
    server.routes["/front"] = links("/front", *links_to)


@pytest.mark.slow
@pytest.mark.requirement("STATE-4")
def test_a_run_that_keeps_the_seen_pages_asks_the_start_page_and_new_pages(
    serve: Serve, workers: Workers, state: Server
) -> None:
    server = serve({f"/{number}": links("/front") for number in range(4)})
    front_page(server, "/0", "/1")
    workers.begin(2, urls=server.url("/"))
    workers.end()
    assert sorted(asked(server)) == ["/", "/0", "/1", "/front"]
    assert workers.frontier("--again", "--keep-seen").returncode == 0
    front_page(server, "/0", "/1", "/2")
    workers.begin(2, urls=server.url("/"))
    workers.end()
    assert sorted(asked(server)[4:]) == ["/", "/2", "/front"]
    status = workers.status()
    assert (status["run"], status["pages"], status["done"], status["state"]) == (
        2,
        2,
        3,
        "finished",
    )
    state.client().hset("comity:{test}:runs", "1", "1000000")
    assert workers.frontier("--again", "--since", "1d").returncode == 0
    workers.begin(1, urls=server.url("/"))
    workers.end()
    assert sorted(asked(server)[7:]) == ["/", "/0", "/1", "/front"]


@pytest.mark.slow
@pytest.mark.requirement("STATE-4")
def test_a_worker_that_begins_the_crawl_again_keeps_the_seen_pages_of_a_time(
    serve: Serve, workers: Workers, state: Server
) -> None:
    server = serve({"/0": "", "/1": ""})
    front_page(server, "/0")
    settings = {"COMITY_AGAIN_AFTER": 3600, "COMITY_KEEP_SEEN": "all"}
    for number, kept in enumerate(("all", "all", 7200)):
        workers.begin(1, settings | {"COMITY_KEEP_SEEN": kept}, urls=server.url("/"))
        workers.end()
        now: Any = state.client().time()
        moment = str((now[0] - 9000 + number) * 1000)
        state.client().hset("comity:{test}:meta", "finished", moment)
        state.client().hset("comity:{test}:runs", str(number + 1), moment)
        front_page(server, "/0", "/1")
    assert asked(server)[:3] == ["/", "/front", "/0"]
    assert asked(server)[3:6] == ["/", "/front", "/1"]
    assert sorted(asked(server)[6:]) == ["/", "/0", "/1", "/front"]


def have_asked(servers: list[Any], number: int) -> bool:
    """True where each was asked for so many pages."""
    return all(len(asked(server)) >= number for server in servers)


@pytest.mark.slow
@pytest.mark.requirement("STATE-4")
def test_the_state_of_the_spider_belongs_to_the_crawl_and_outlives_kill_9(
    serve: Serve, workers: Workers
) -> None:
    """Each host is with one worker at a time, so its key has every page of it."""
    servers = [
        serve(tree(12, "User-agent: *\nCrawl-delay: 0.05\n"), host=f"127.0.0.{place}")
        for place in range(2, 5)
    ]
    urls = " ".join(server.url("/0") for server in servers)
    settings = workers.settings | {"SPIDER_MODULES": ["counting"]}
    running = [workers.project.begin(Counting, settings, urls=urls) for _ in range(3)]
    for number, victim in enumerate(running[:2], 1):
        victim.until(partial(have_asked, servers, 3 * number))
        victim.kill()
    assert running[2].end() == 0, running[2].log
    assert "Traceback" not in running[2].log
    assert workers.frontier("--again").returncode == 0
    again = workers.project.begin(Counting, settings, urls=urls)
    assert again.end() == 0, again.log
    starts = [item["start"] for item in workers.project.items if "start" in item]
    state: dict[str, Any] = ast.literal_eval(starts[-1])
    assert state.pop("settings") == ("a", b"\0", {"last": urls})
    expected = {server.url(path) for server in servers for path in numbered(12)}
    assert {url for pages in state.values() for url in pages} == expected
    assert state.keys() == {f"pages of 127.0.0.{place}" for place in range(2, 5)}
    assert sum(map(len, state.values())) < 1.5 * len(expected)  # those that were in flight, twice
