"""`scrapy crawl policies` on real servers, and `scrapy policy history` of what it has made."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]

from comity.crawler.captures import open_captures
from comity.crawler.feeds.policy_archive import PolicyArchive
from comity.gate.explanation_shape import HISTORY
from comity.policies import Agent, Fetched, Site, Verdict
from comity.spiders.policies import PoliciesSpider
from comity.spiders.site import SiteSpider
from tests.dataset.captures.archives import NOON, Answered, write_warc
from tests.generated import HISTORY_SCHEMA
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Answer, Crawled, Loopback, Serve

    Crawl = Callable[..., Crawled]

CLOSED = "User-agent: *\nDisallow: /x\n"
AGENT = Agent("testbot")


def hosts(serve: Serve, number: int, robots: Any = CLOSED) -> list[Loopback]:
    return [
        serve({"/robots.txt": robots, "/": "a page"}, host=f"127.0.0.{at}")
        for at in range(1, number + 1)
    ]


def listed(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_policy_files_and_nothing_else_are_asked_for(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    sites = hosts(serve, 3)
    lines = [
        "# sites",
        "",
        sites[0].url("/a/page"),
        sites[0].url("/b"),
        sites[1].origin,
        "ftp://x.example",
        sites[2].url("/"),
    ]
    crawled = crawl(PoliciesSpider, origins=listed(tmp_path / "list.txt", *lines))
    assert [site.paths for site in sites] == [["/robots.txt"]] * 3
    assert (crawled.stats["comity/origins/done"], crawled.stats["comity/urls/bad"]) == (3, 1)
    assert "3 origins   0 unreachable" in crawled.log
    assert "100% of the list" in crawled.log
    assert f"{tmp_path / 'list.txt'}:6: `ftp://x.example` is not a host" in crawled.log
    with open_captures([tmp_path / "policies.sqlite"], agent=AGENT) as captures:
        for site in sites:
            today = captures.today(site.origin)
            assert today is not None
            assert today.site.access(AGENT, site.url("/x")).verdict is Verdict.DENY
            assert today.absent == ()
    crawl(PoliciesSpider, origins=str(tmp_path / "list.txt"))
    assert [site.paths for site in sites] == [["/robots.txt"]] * 3  # the store has them


@pytest.mark.parametrize("name", ["items.jsonl", "items.parquet"])
def test_the_origins_of_a_dataset(serve: Serve, crawl: Crawl, tmp_path: Path, name: str) -> None:
    sites, path = hosts(serve, 2), tmp_path / name
    records = [
        {"link": site.url(f"/{number}"), "text": "x"} for site in sites for number in range(5)
    ] + [{"link": "no URL"}]
    if name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(records), path)
    crawled = crawl(PoliciesSpider, origins=str(path), field="link")
    assert [site.paths for site in sites] == [["/robots.txt"]] * 2
    assert crawled.stats["comity/urls/bad"] == 1
    assert "a record has no http or https URL in link" in crawled.log


def test_the_files_of_a_warc_file_count_as_captures(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    referring = "ACAP-crawler: *\nACAP-permissions-reference: /more.txt\n"
    site = serve(
        {
            "/robots.txt": referring,
            "/more.txt": "ACAP-crawler: *\nACAP-disallow-crawl: /x\nACAP-allow-crawl: /y\n",
        }
    )
    path = tmp_path / "policies.warc.gz"
    crawl(PoliciesSpider, origins=listed(tmp_path / "list.txt", site.origin), warc=str(path))
    with open_captures([path], agent=AGENT) as captures:
        today = captures.today(site.origin)
        assert today is not None
        assert today.absent == ()
        assert today.site.access(AGENT, site.url("/x")).verdict is Verdict.DENY
        assert today.site.access(AGENT, site.url("/y")).verdict is Verdict.ALLOW


def test_the_policy_files_in_a_feed_of_warc_count_as_captures(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    [site], path = hosts(serve, 1), tmp_path / "pages.warc.gz"
    crawl(SiteSpider, {"FEEDS": {str(path): {"format": "warc.gz"}}}, url=site.url("/"))
    with open_captures([path], agent=AGENT) as captures:
        today = captures.today(site.origin)
        assert today is not None
        assert today.site.access(AGENT, site.url("/x")).verdict is Verdict.DENY
        assert site.url("/robots.txt") not in today.absent


def failing(times: int, status: int = 503) -> Callable[[BaseHTTPRequestHandler], Answer]:
    from tests.conftest import Answer

    left = iter(range(times))

    def answer(handler: BaseHTTPRequestHandler) -> Answer:
        return (
            Answer(CLOSED)
            if next(left, None) is None
            else Answer(status=status, headers={"Retry-After": "1"})
        )

    return answer


def test_what_cannot_be_had_is_asked_again_and_listed_at_the_end(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    recovers, fails, waits = (
        serve({"/robots.txt": failing(1)}, host="127.0.0.1"),
        serve({"/robots.txt": failing(9)}, host="127.0.0.2"),
        serve(
            {"/robots.txt": serve.Answer(status=503, headers={"Retry-After": "7200"})},
            host="127.0.0.3",
        ),
    )
    lines, unreachable = (
        [site.origin for site in (recovers, fails, waits)],
        tmp_path / "unreachable.jsonl",
    )
    crawled = crawl(
        PoliciesSpider,
        origins=listed(tmp_path / "list.txt", *lines),
        tries="2",
        unreachable=str(unreachable),
    )
    assert [len(site.seen) for site in (recovers, fails, waits)] == [2, 2, 1]
    entries = {
        entry["origin"]: entry["error"]
        for entry in map(json.loads, unreachable.read_text().splitlines())
    }
    assert entries == {fails.origin: "HTTP status 503", waits.origin: "HTTP status 503"}
    assert crawled.stats["comity/origins/unreachable"] == 2
    assert "2 origins could not be fetched:" in crawled.log
    assert f"{fails.origin}: HTTP status 503" in crawled.log


def test_one_origin_of_a_host_is_asked_at_a_time(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    under_way, most, lock = 0, 0, threading.Lock()
    both = threading.Event()

    def answer(handler: BaseHTTPRequestHandler) -> Answer:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        if handler.path == "/robots.txt":
            both.wait(0.1)  # nobody sets it: whoever else is asked has the time to come
        with lock:
            under_way -= 1
        return serve.Answer(CLOSED) if handler.path == "/robots.txt" else serve.Answer(status=404)

    sites = [serve({"/robots.txt": answer}, host="127.0.0.1") for _ in range(4)]
    crawl(PoliciesSpider, origins=listed(tmp_path / "list.txt", *(site.origin for site in sites)))
    assert most == 1
    assert [site.paths for site in sites] == [["/robots.txt"]] * 4


WRONG = [
    ({}, "no origins: add -a origins=FILE"),
    ({"origins": "nothing.txt"}, "origins `nothing.txt` cannot be read"),
    ({"origins": "nothing.parquet"}, "nothing.parquet cannot be read"),
    (
        {"origins": "list.txt", "warc": "a.zip"},
        "^comity crawl policies: warc `a.zip`: name a file that ends in .warc",
    ),
    ({"origins": "list.txt", "tries": "few"}, "tries `few` is not a whole number"),
    ({"origins": "list.txt", "pages": "1"}, "there is no argument `pages`"),
]


@pytest.mark.parametrize(("arguments", "error"), WRONG)
def test_wrong_arguments_end_the_program_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, str], error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.txt").write_text("example.com\n")
    with pytest.raises(Exception, match=error.replace("?", r"\?")):
        PoliciesSpider(**arguments)


RUN = """
import sys
from comity.crawler.feeds import policy_archive
from scrapy.cmdline import execute

policy_archive.SAVE_AFTER = -1.0
execute(["scrapy", "crawl", "policies", *sys.argv[1:]])
"""


def policies(
    folder: Path, *arguments: str, settings: tuple[str, ...] = ()
) -> subprocess.Popen[str]:
    settings = (
        *settings,
        "COMITY_AGENT=testbot",
        f"COMITY_STORE={folder / 'killed.sqlite'}",
        "LOG_LEVEL=INFO",
    )
    command = [sys.executable, "-c", RUN, *(f"-a{argument}" for argument in arguments)]
    command += [part for setting in settings for part in ("-s", setting)]
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "comity.crawler.settings"}
    return subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)


@pytest.mark.usefixtures("new_processes")
@pytest.mark.slow
@pytest.mark.parametrize("last", [1, 4, 7, 12])
def test_a_killed_crawl_leaves_the_old_file_or_none_and_is_gone_on_with(
    serve: Serve, tmp_path: Path, last: int
) -> None:
    """The process is killed by the answer to a request, the `last` one of 12 sites: nothing depends on how fast anything is."""
    killer: list[subprocess.Popen[str]] = []
    count, lock, is_known = 0, threading.Lock(), threading.Event()

    def answer(handler: BaseHTTPRequestHandler) -> Answer:
        nonlocal count
        assert is_known.wait(60)  # the process may ask before this one knows its number
        with lock:
            count += 1
            if count == last and killer:
                os.kill(killer[0].pid, signal.SIGKILL)
        return serve.Answer(CLOSED)

    sites = hosts(serve, 12, answer)
    listed(tmp_path / "list.txt", *(site.origin for site in sites))
    path = tmp_path / "policies.warc.gz"
    path.write_bytes(b"the old one")
    killer.append(policies(tmp_path, "origins=list.txt", "warc=policies.warc.gz"))
    is_known.set()
    _, error = killer[0].communicate(timeout=300)
    assert killer[0].returncode == -signal.SIGKILL, error
    assert path.read_bytes() == b"the old one"
    killer.clear()
    again = policies(tmp_path, "origins=list.txt", "warc=policies.warc.gz")
    _, error = again.communicate(timeout=300)
    assert again.returncode == 0, error
    with path.open("rb") as file:
        urls = [
            record.rec_headers["WARC-Target-URI"]
            for record in ArchiveIterator(file)
            if record.rec_type == "response"
        ]
    assert sorted(urls.count(site.url("/robots.txt")) for site in sites) == [1] * 12
    assert not [entry for entry in tmp_path.iterdir() if entry.name.startswith(".policies")]


@pytest.mark.usefixtures("new_processes")
@pytest.mark.slow
def test_ctrl_c_keeps_what_was_had(serve: Serve, tmp_path: Path) -> None:
    running: list[subprocess.Popen[str]] = []
    is_known = threading.Event()

    def answer(handler: BaseHTTPRequestHandler) -> Answer:
        assert is_known.wait(60)
        running[0].send_signal(signal.SIGINT)
        return serve.Answer(status=503, headers={"Retry-After": "50"})  # it would wait for this

    sites = [*hosts(serve, 3), serve({"/robots.txt": answer}, host="127.0.0.9")]
    listed(tmp_path / "list.txt", *(site.origin for site in sites))
    running.append(policies(tmp_path, "origins=list.txt", "warc=policies.warc.gz"))
    is_known.set()
    _, error = running[0].communicate(timeout=300)
    assert running[0].returncode == 1, error  # a script does not go on with what is not whole
    assert "Ended early: fetched files are kept" in error, error
    assert not (tmp_path / "policies.warc.gz").exists()
    assert (tmp_path / ".policies.warc.gz.part").stat().st_size


@pytest.mark.usefixtures("new_processes")
@pytest.mark.slow
def test_a_crawl_that_the_operator_has_bounded_has_ended_early(
    serve: Serve, tmp_path: Path
) -> None:
    sites = [
        *hosts(serve, 2),
        serve(
            {"/robots.txt": serve.Answer(status=503, headers={"Retry-After": "50"})},
            host="127.0.0.9",
        ),
    ]
    listed(tmp_path / "list.txt", *(site.origin for site in sites))
    process = policies(tmp_path, "origins=list.txt", settings=("CLOSESPIDER_TIMEOUT=2",))
    _, error = process.communicate(timeout=40)
    assert (process.returncode, "Ended early" in error) == (1, True), error


def test_origins_that_a_killed_crawl_could_not_have_are_listed(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    dead, site = (
        serve({"/robots.txt": serve.Answer(status=503)}, host="127.0.0.99"),
        hosts(serve, 1)[0],
    )
    path = tmp_path / "policies.warc.gz"
    options = {"warc": str(path), "tries": "1", "unreachable": str(tmp_path / "dead.jsonl")}
    crawl(PoliciesSpider, origins=listed(tmp_path / "list.txt", dead.origin), **options)
    [entry] = (tmp_path / "dead.jsonl").read_text().splitlines()
    archive = PolicyArchive(path)
    archive.begin("testbot")
    archive.write(
        Site(dead.origin, {dead.url("/robots.txt"): Fetched(status=503)}), unreachable=entry
    )
    archive.close()  # as a process does that is killed then
    crawled = crawl(
        PoliciesSpider, origins=listed(tmp_path / "list.txt", dead.origin, site.origin), **options
    )
    assert (tmp_path / "dead.jsonl").read_text() == f"{entry}\n"
    assert f"1 origins could not be fetched:\n{dead.origin}: " in crawled.log
    assert dead.paths == ["/robots.txt"]


@pytest.mark.parametrize("name", one_in(2, ["policies.warc.gz", "policies.warc"]))
def test_kills_at_random_moments_lose_nothing(
    serve: Serve, tmp_path: Path, name: str, *, in_full: bool
) -> None:
    """The archive is the old file or the new one, the store can be read, and the next crawl has all sites, each once."""
    asked = threading.Event()

    def answer(_: BaseHTTPRequestHandler) -> Answer:
        asked.set()
        return serve.Answer(CLOSED)

    dead = serve({"/robots.txt": serve.Answer(status=503)}, host="127.0.0.99")
    sites = hosts(serve, 30, answer)
    listed(tmp_path / "list.txt", dead.origin, *(site.origin for site in sites))
    words = ("origins=list.txt", f"warc={name}", "tries=1", "unreachable=dead.jsonl")
    archive, store = tmp_path / name, tmp_path / "killed.sqlite"

    def begin() -> None:
        for path in tmp_path.glob("*killed.sqlite*"):
            path.unlink()
        for path in (*tmp_path.glob(f".{name}.*"), *tmp_path.glob("*dead.jsonl*")):
            path.unlink()
        archive.write_bytes(b"the old one")

    def archived() -> list[str]:
        with archive.open("rb") as file:
            responses = (
                record.rec_headers
                for record in ArchiveIterator(file)
                if record.rec_type == "response"
            )
            found = sorted(fields["WARC-Target-URI"] for fields in responses)
        assert len(found) == len(set(found))
        return [url for url in found if url.endswith("/robots.txt")]

    def completed(process: subprocess.Popen[str]) -> None:
        _, error = process.communicate(timeout=300)
        assert process.returncode == 0, error
        assert archived() == everything
        assert [
            json.loads(line)["origin"]
            for line in (tmp_path / "dead.jsonl").read_text().splitlines()
        ] == [dead.origin]
        assert not [*tmp_path.glob(f".{name}.*")]

    def begun() -> subprocess.Popen[str]:
        """Return a new crawl, with its first request under way."""
        begin()
        asked.clear()
        process = policies(tmp_path, *words)
        assert asked.wait(60)
        return process

    everything = sorted(site.url("/robots.txt") for site in (*sites, dead))
    process, began = begun(), time.monotonic()
    completed(process)
    took, choice, killed = time.monotonic() - began, random.Random(name), 0
    for _ in range(200):
        process = begun()
        try:
            process.communicate(timeout=took * choice.random())
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate(timeout=300)
            killed += process.returncode == -signal.SIGKILL
        if archive.read_bytes() != b"the old one":
            assert archived() == everything
        if store.exists():
            with closing(sqlite3.connect(store)) as database:
                assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        completed(policies(tmp_path, *words))
        if killed == (16 if in_full else 1):
            return
    pytest.fail("the crawls ended before they were killed")


# The history


def history(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scrapy", "policy", "history", *arguments]
    environment = {
        **os.environ,
        "SCRAPY_SETTINGS_MODULE": "comity.crawler.settings",
        "COLUMNS": "200",
    }
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def captures(tmp_path: Path) -> Path:
    from datetime import timedelta

    robots = "https://example.com/robots.txt"
    bodies = [
        b"User-agent: *\nDisallow:\n",
        b"User-agent: *\n\n",
        b"User-agent: *\nContent-Usage: ai=n\nDisallow: /a\n",
    ]
    answers = [
        Answered(robots, body, at=NOON + timedelta(days=30 * number))
        for number, body in enumerate(bodies)
    ]
    return write_warc(tmp_path / "robots.warc.gz", answers)


@pytest.mark.requirement("TAG-2")
def test_the_history_of_a_url_has_dates_changes_and_lines(captures: Path) -> None:
    done = history(captures.parent, "example.com/a", "--policies", captures.name, "--use", "train")
    assert done.returncode == 0, done.stderr
    assert "2024-05-01 12:00  2024-05-31 12:00  2       allow   deny (not stated)" in done.stdout
    assert "2024-06-30 12:00  2024-06-30 12:00  1       deny *  deny (not stated)" in done.stdout
    assert (
        "2024-06-30 12:00  access  deny               /robots.txt:3    Disallow: /a" in done.stdout
    )
    done = history(captures.parent, "example.com/b", "--policies", captures.name, "--use", "train")
    assert "2024-06-30 12:00  2024-06-30 12:00  1       allow   deny *" in done.stdout
    assert (
        "2024-06-30 12:00  train   deny               /robots.txt:2    Content-Usage: ai=n"
        in done.stdout
    )
    told = json.loads(
        history(
            captures.parent, "https://example.com/a", "--policies", str(captures), "--json"
        ).stdout
    )
    assert HISTORY.is_valid(told)
    Draft202012Validator(json.loads(HISTORY_SCHEMA.read_text("utf-8"))).validate(told)
    assert [date["at"][:10] for date in told["dates"]] == ["2024-05-01", "2024-05-31", "2024-06-30"]
    assert ["access" in date["changed"] for date in told["dates"]] == [False, False, True]
    assert told["dates"][2]["answers"]["access"]["reasons"][0]["line"] == 3
    assert told["dates"][2]["copies"][0]["source"] == str(captures)


WRONG_HISTORY = [
    (("example.com/a",), "write one URL, and --policies"),
    (("a", "b", "--policies", "x.warc"), "write one URL, and --policies"),
    (
        ("example.com", "--policies", "x.warc"),
        "--policies x.warc: it cannot be read: No such file or directory",
    ),
    (("ftp://example.com", "--policies", "x.warc"), "is not an http or https URL"),
]


@pytest.mark.parametrize(("arguments", "error"), WRONG_HISTORY)
def test_a_wrong_history_says_what_to_write(
    tmp_path: Path, arguments: tuple[str, ...], error: str
) -> None:
    done = history(tmp_path, *arguments)
    assert done.returncode == 2
    assert error in done.stderr


def test_a_site_without_captures_is_told(captures: Path) -> None:
    done = history(captures.parent, "other.example", "--policies", str(captures))
    assert (
        done.returncode,
        "there is no copy of the policy files of https://other.example" in done.stderr,
    ) == (2, True)
