"""The report of a real crawl, against the log of its servers: every figure of the one is in the other."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from scrapy import Spider
from scrapy.http import Request, Response

from comity.crawler import reporting
from comity.policies.formats import WELL_KNOWN
from comity.report.value import Report, read_report

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

pytestmark = pytest.mark.requirement("REPORT-1")

DELAY = 0.05
ROBOTS = f"User-agent: *\nCrawl-delay: {DELAY}\nDisallow: /private/\nDisallow: /own/\nContent-Usage: train-ai=n\n"
PAGE = "<title>A page</title><p>text</p>"
TOLERANCE = 0.01  # seconds


class Urls(Spider):
    """Asks for URLs, and yields an item for each page."""

    name = "urls"
    urls: list[str]

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url, errback=self.failed)

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}

    def failed(self, failure: Any) -> None:
        pass


class Watched(Urls):
    """Asks the metrics of its own crawl before it ends, and keeps what they say."""

    name = "watched"
    metrics: str

    def closed(self, reason: str) -> None:
        assert self.crawler.extensions
        extension = next(
            each
            for each in self.crawler.extensions.middlewares
            if isinstance(each, reporting.Reporting)
        )
        assert extension._metrics
        with urllib.request.urlopen(extension._metrics.url, timeout=300) as answer:
            Path(self.metrics).write_bytes(answer.read())


class Again(Urls):
    """Its report is written again and again."""

    name = "again"

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        reporting.INTERVAL = 0.05

    def closed(self, reason: str) -> None:
        reporting.INTERVAL = 60.0  # the process goes on with other crawls


class Unwatched(Urls):
    """Says whether anything observes it."""

    name = "unwatched"

    def closed(self, reason: str) -> None:
        from comity.crawler.crawl import Crawl

        assert self.crawler.stats
        self.crawler.stats.set_value("observer", type(Crawl.of(self.crawler).observer).__name__)


def answer(body: str = "", status: int = 200, **headers: str) -> Any:
    from tests.conftest import Answer

    return Answer(body, status=status, headers=headers)


def site(*paths: str, robots: Any = ROBOTS) -> dict[str, Any]:
    """Every policy file has a route, so that the log has every request for one."""
    return {
        **dict.fromkeys(WELL_KNOWN, answer(status=404)),
        "/robots.txt": robots,
        **dict.fromkeys(paths, PAGE),
    }


def of_files(server: Loopback) -> int:
    return sum(path in WELL_KNOWN for path in server.paths)


def of_pages(server: Loopback) -> int:
    return len(server.seen) - of_files(server)


def page(path: Path) -> Report:
    return read_report(path.read_text("utf-8"))


def test_its_figures_are_those_of_the_servers(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    first = serve(
        {**site("/", "/a", "/b", "/c"), "/moved": answer(status=302, Location="/a?x")},
        host="127.0.0.2",
    )
    second = serve(site("/", "/d", robots="User-agent: *\nDisallow: /private/\n"), host="127.0.0.3")
    lost = serve(
        {**site("/"), "/robots.txt": answer(status=500, **{"Retry-After": "1"})}, host="127.0.0.4"
    )
    path = tmp_path / "report.html"
    paths = ["/", "/a", "/b", "/c", "/none", "/moved", "/private/1", "/private/2", "/own/3"]
    urls = [first.url(each) for each in paths]
    urls += [second.url(each) for each in ("/", "/d", "/private/4")] + [
        lost.url("/"),
        "ftp://127.0.0.5/file",
    ]
    settings = {"COMITY_REPORT": str(path), "COMITY_USES": "train-ai,index", "RETRY_ENABLED": False}
    done = crawl(Urls, settings, urls=urls)
    assert done.finish_reason == "finished"
    report = page(path)
    hosts = {host.host: host for host in report.hosts.listed}
    for server in (first, second, lost):
        host = hosts[server.host]
        assert (host.sent, host.files) == (of_pages(server), of_files(server)), server.paths
        assert host.answered == host.sent
    assert report.counts["sent"] == sum(map(of_pages, (first, second, lost)))
    assert report.counts["files"] == sum(map(of_files, (first, second, lost)))
    assert report.counts["failed"] == 0
    assert {row.name: row.count for row in report.statuses} == {"200": 7, "302": 1, "404": 1}
    assert sum(report.timeline.sent) == report.counts["sent"]
    assert (
        sum(report.timeline.refused)
        == report.counts["refused"]
        == done.stats["comity/access/deny"]
        == 6
    )
    refused = {refusal.rule: refusal for refusal in report.refusals}
    assert {rule: refusal.count for rule, refusal in refused.items()} == {
        name.removeprefix("comity/access/deny/"): number
        for name, number in done.stats.items()
        if name.startswith("comity/access/deny/")
    }
    lines = {
        (line.url, line.line, line.text): line.count for line in refused["robots.disallow"].lines
    }
    assert lines == {
        (first.url("/robots.txt"), 3, "Disallow: /private/"): 2,
        (first.url("/robots.txt"), 4, "Disallow: /own/"): 1,
        (second.url("/robots.txt"), 2, "Disallow: /private/"): 1,
    }
    assert {row.name: row.count for row in refused["robots.disallow"].hosts.rows} == {
        first.host: 3,
        second.host: 1,
    }
    assert (report.unreachable.number, report.unreachable.listed[0].origin) == (1, lost.origin)
    assert report.unreachable.listed[0].why == "HTTP status 500"
    robots = next(file for file in report.files if file.name == "/robots.txt")
    assert (robots.present, robots.absent, robots.unreachable) == (2, 0, 1)


def test_its_uses_are_those_of_the_items(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    server = serve(site("/", "/a", "/b"))
    path = tmp_path / "report.json"
    settings = {
        "COMITY_REPORT": str(path),
        "COMITY_USES": "train-ai,index",
        "COMITY_DROP_UNUSABLE": False,
    }
    done = crawl(
        Urls,
        {**settings, "COMITY_DEFAULTS": "index:allow"},
        urls=[server.url(each) for each in ("/", "/a", "/b")],
    )
    uses = Counter(
        (name, use["verdict"], use["stated"])
        for item in done.items
        for name, use in item["permissions"]["uses"].items()
    )
    report = page(path)
    assert {
        (use.use, verdict, is_stated): number
        for use in report.uses
        for verdict, is_stated, number in (
            ("allow", True, use.allow),
            ("deny", True, use.deny),
            ("allow", False, use.allow_default),
            ("deny", False, use.deny_default),
        )
        if number
    } == uses
    assert [use.use for use in report.uses[:2]] == ["index", "train-ai"]
    refusal = next(
        refusal for refusal in report.use_refusals if refusal.rule == "content-usage.disallow"
    )
    assert [(line.url, line.line) for line in refusal.lines] == [(server.url("/robots.txt"), 5)]


WORDS = "User-agent: *\nContent-Signal: ai-train=no\nContent-Usage: train-ai=n\nAllow: /\n"


@pytest.mark.requirement("MEET-4")
@pytest.mark.parametrize(
    ("declared", "row"), [("", "train"), ("train-ai", "train-ai"), ("index", "train")]
)
def test_one_question_has_one_row_with_the_words_of_the_sources(
    serve: Serve, crawl: Crawl, tmp_path: Path, declared: str, row: str
) -> None:
    both, other = (
        serve(site("/a", "/b", robots=WORDS)),
        serve(site("/c", robots=WORDS.replace("Content-Usage", "Unknown"))),
    )
    path = tmp_path / "report.html"
    settings = {
        "COMITY_REPORT": str(path),
        "COMITY_USES": declared,
        "COMITY_DROP_UNUSABLE": False,
        "COMITY_SKIP_UNUSABLE": False,
    }
    done = crawl(Urls, settings, urls=[both.url("/a"), both.url("/b"), other.url("/c")])
    terms = [{use for use in item["permissions"]["uses"] if "train" in use} for item in done.items]
    assert {"train-ai", "ai-train"} in terms  # the tags keep the terms
    report = page(path)
    (training,) = [use for use in report.uses if "train" in use.use]
    words = sorted({"train-ai", "ai-train"} - {row})
    assert (training.use, training.words) == (row, words)
    assert (training.allow, training.deny, training.allow_default, training.deny_default) == (
        0,
        3,
        0,
        0,
    )
    assert f"<small>({', '.join(words)})</small>" in path.read_text("utf-8")
    assert done.stats[f"comity/items/use/{row}/deny"] == 3
    summary = done.log.rpartition("Crawl finished")[2].partition("Dumping")[0]
    (line,) = [line.strip() for line in summary.splitlines() if "train" in line.split("deny")[0]]
    assert line == f"{row} ({', '.join(words)})  deny 3"


@pytest.mark.requirement("AUTX-14")
def test_a_limit_that_cannot_be_read_is_shown_with_its_line_and_the_right_way(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    preferences = "scope: /\nallowed-methods: GET\nrequest-limit: 1/5s\nconcurrent-limit: two\n"
    server = serve(site("/a", "/b") | {"/automation-preferences.txt": preferences})
    path = tmp_path / "report.html"
    settings = {"COMITY_REPORT": str(path), "COMITY_MAX_DELAY": 0.5}
    crawl(Urls, settings, urls=[server.url("/a"), server.url("/b")])
    rate, number = page(path).pace.unread
    assert rate.host.startswith(f"{server.origin} (scope ")
    assert (rate.requests, rate.seconds, rate.line.line, rate.line.text) == (
        1,
        0.5,
        3,
        "request-limit: 1/5s",
    )
    assert rate.line.url == server.url("/automation-preferences.txt")
    assert rate.advice == "write N/second, N/minute, N/hour or N/day, here `12/minute`"
    assert (number.requests, number.seconds, number.line.line, number.advice) == (
        1,
        0.0,
        4,
        "write a whole number, such as `1`",
    )
    shown = path.read_text("utf-8")
    assert "Limits that cannot be read" in shown
    assert "1 request in 0.5 s" in shown
    assert "1 request at a time" in shown


def test_no_gap_that_the_server_saw_is_shorter_than_the_report_says(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    paths = [f"/{number}" for number in range(12)]
    server = serve(site(*paths))
    path = tmp_path / "report.html"
    crawl(Urls, {"COMITY_REPORT": str(path)}, urls=[server.url(each) for each in paths])
    pace = page(path).pace
    assert (pace.gaps, pace.below, pace.first, pace.unlimited) == (11, 0, 1, 0)
    starts = [seen.at for seen in server.seen if seen.path not in WELL_KNOWN]
    measured = [part * DELAY for _, part in pace.series[0].points]
    assert pace.series[0].limit.is_stated
    assert len(measured) == 11
    for (before, after), gap in zip(pairwise(starts), measured, strict=True):
        assert after - before >= gap - TOLERANCE
    assert pace.least[0].least is not None
    assert pace.least[0].least * DELAY == pytest.approx(min(measured), abs=0.001)


def test_the_metrics_say_the_same(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    server = serve(site("/", "/a"))
    path, metrics = tmp_path / "report.json", tmp_path / "metrics.txt"
    settings = {"COMITY_REPORT": str(path), "COMITY_METRICS": 0}
    urls = [server.url(each) for each in ("/", "/a", "/private/")]
    done = crawl(Watched, settings, urls=urls, metrics=str(metrics))
    assert "Metrics are at http://127.0.0.1:" in done.log
    families = text_string_to_metric_families(metrics.read_text())
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }
    report = page(path)
    for name in ("sent", "answered", "files", "refused", "allowed"):
        assert samples[f"comity_{name}_total",] == report.counts[name]
    assert samples["comity_sent_total",] == of_pages(server)
    assert samples["comity_decisions_total", "deny", "robots.disallow"] == 1
    assert samples["comity_gap_count",] == report.pace.gaps == 1
    assert samples["comity_gap_bucket", "0.999"] == report.pace.below == 0
    port = int(re.findall(r"http://127.0.0.1:(\d+)/metrics", done.log)[0])
    with socket.socket() as probe:  # it ended with the crawl
        assert probe.connect_ex(("127.0.0.1", port))


def test_it_is_written_while_the_crawl_goes_on(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    states: list[str] = []
    came = threading.Event()

    def last(handler: Any) -> Any:
        while not path.exists():
            assert not came.wait(0.01)
        states.append(page(path).state)
        return answer(PAGE)

    server = serve({**site("/"), "/last": last})
    done = crawl(Again, {"COMITY_REPORT": str(path)}, urls=[server.url("/"), server.url("/last")])
    assert done.finish_reason == "finished"
    assert states == ["running"]
    assert page(path).state == "finished"
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_without_the_settings_nothing_is_collected(serve: Serve, crawl: Crawl) -> None:
    server = serve(site("/"))
    assert crawl(Unwatched, urls=[server.url("/")]).stats["observer"] == "Observer"


SCRIPT = """
import sys
from comity.crawler import reporting
reporting.INTERVAL = 0.02
from scrapy.cmdline import execute
execute(["scrapy", *sys.argv[1:]])
"""


def test_kill_9_leaves_a_whole_page(serve: Serve, tmp_path: Path, in_full: bool) -> None:
    pages = {f"/{number}": f'<a href="/{number + 1}">next</a>' for number in range(5000)}
    server = serve({**site(robots="User-agent: *\nDisallow:\n"), **pages})
    path = tmp_path / "report.html"
    command = [
        sys.executable,
        "-c",
        SCRIPT,
        "crawl",
        "site",
        "-a",
        f"url={server.url('/0')}",
        "-s",
        f"COMITY_REPORT={path}",
    ]
    command += [
        "-s",
        "COMITY_MIN_DELAY=0",
        "-s",
        f"COMITY_STORE={tmp_path / 'policies.sqlite'}",
        "-s",
        "COMITY_PROGRESS=off",
    ]
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "comity.crawler.settings"}
    for _ in range(8 if in_full else 2):
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
        )
        began = path.stat().st_mtime_ns if path.exists() else 0
        while not path.exists() or path.stat().st_mtime_ns == began:
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait(300)
        assert page(path).state == "running"


@pytest.mark.parametrize(
    ("settings", "missing", "message"),
    [
        (
            ["COMITY_REPORT=report.html"],
            "pygal",
            'COMITY_REPORT needs pygal: pip install "comity[report]"',
        ),
        (["COMITY_REPORT=none/report.html"], "", "there is no folder `none`"),
        (
            [f"COMITY_REPORT={'x' * 5000}.html"],
            "",
            ".html` cannot be written: File name too long: name another file",
        ),
        *(
            pytest.param([setting], module, message, marks=pytest.mark.slow)
            for setting, module, message in (
                (
                    "COMITY_METRICS=0",
                    "prometheus_client",
                    'COMITY_METRICS needs prometheus_client: pip install "comity[report]"',
                ),
                ("COMITY_REPORT=report.pdf", "", "ends in neither .html nor .json"),
                ("COMITY_METRICS=99999", "", "is not a port"),
            )
        ),
    ],
)
def test_what_is_missing_ends_the_crawl_before_it_begins(
    serve: Serve, tmp_path: Path, settings: list[str], missing: str, message: str
) -> None:
    server = serve(site("/"))
    hidden = f"import sys; sys.modules[{missing!r}] = None\n" if missing else ""
    program = f"{hidden}from scrapy.cmdline import execute; execute()"
    command = [sys.executable, "-c", program, "crawl", "site", "-a", f"url={server.url('/')}"]
    command += [
        word
        for setting in (*settings, f"COMITY_STORE={tmp_path / 'policies.sqlite'}")
        for word in ("-s", setting)
    ]
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "comity.crawler.settings"}
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert server.paths == []


def test_a_port_in_use_ends_the_crawl_before_it_begins(serve: Serve, tmp_path: Path) -> None:
    server = serve(site("/"))
    command = [sys.executable, "-m", "scrapy", "crawl", "site", "-a", f"url={server.url('/')}"]
    command += [
        "-s",
        f"COMITY_METRICS={server.port}",
        "-s",
        f"COMITY_STORE={tmp_path / 'policies.sqlite'}",
    ]
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "comity.crawler.settings"}
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (
        f"COMITY_METRICS: cannot listen on 127.0.0.1, port {server.port}: Address already in use"
        in done.stderr
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    assert server.paths == []


@pytest.mark.parametrize("is_given", [False, True], ids=["of the project", "of the command line"])
def test_a_look_at_policies_leaves_the_report_of_the_last_crawl(
    is_given: bool, serve: Serve, tmp_path: Path
) -> None:
    server, path = serve(site("/")), tmp_path / "report.html"
    path.write_text("that of the last crawl")
    (tmp_path / "project_settings.py").write_text(
        f"COMITY_REPORT = {str(path)!r}\nCOMITY_STORE = {str(tmp_path / 'a.sqlite')!r}\n"
    )
    search = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "project_settings", "PYTHONPATH": search}
    command = [sys.executable, "-m", "scrapy", "policy", server.url("/")]
    command += ["-s", f"COMITY_REPORT={path}"] if is_given else []
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.startswith("ALLOW"), done.stderr
    assert path.read_text() == "that of the last crawl"


def test_as_data_it_needs_no_extra(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    server = serve(site("/"))
    path = tmp_path / "report.json"
    crawl(Urls, {"COMITY_REPORT": str(path)}, urls=[server.url("/")])
    assert json.loads(path.read_text("utf-8"))["schema"] == 1
