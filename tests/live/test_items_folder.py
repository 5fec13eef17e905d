"""COMITY_ITEMS: one folder with the items of all workers, readable at any time, also after kill -9."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.settings import Settings

from comity.crawler.addon import Addon
from comity.dataset.export.export import export
from comity.dataset.files.folders import open_dataset
from comity.dataset.files.formats import open_reader
from comity.dataset.job import JobOptions
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import ARRIVED_AT, REQUEST, DatasetError, Unreadable
from comity.gate.options import SettingsError
from tests.live.test_jobdir import Project, Running, asked, links
from tests.live.two_items import ITEMS, ForeignItems, TwoItems
from tests.redis_server import Server
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Crawled, Loopback, Serve

PAGES = 12
FORMATS = ("jsonl", "parquet", "warc", "warc.gz")
HOSTS = 3
OF_EACH = 30  # pages of a host, for the workers
ROBOTS = "User-agent: *\nCrawl-delay: 0.1\n"
Run = Callable[..., "Crawled"]

pytestmark = pytest.mark.requirement("STATE-2")


@pytest.fixture
def server(serve: Serve) -> Loopback:
    pages = {f"/{number}": "page" for number in range(1, PAGES)}
    return serve({"/robots.txt": "User-agent: *\nDisallow:\n", "/0": links(*pages), **pages})


@pytest.fixture
def run(crawl: Run, server: Loopback) -> Run:
    """`run(folder, settings)` crawls the site with COMITY_ITEMS."""

    def crawled(
        folder: Path | str, settings: dict[str, Any] | None = None, number: int = ITEMS
    ) -> Crawled:
        fixed = {"COMITY_ITEMS": str(folder), "COMITY_DROP_UNUSABLE": False, "FEEDS": {}}
        return crawl(
            ForeignItems, fixed | (settings or {}), start_urls=[server.url("/0")], number=number
        )

    return crawled


def records(folder: Path) -> list[dict[str, Any]]:
    """All records of the folder, as the commands read them."""
    found = [
        record
        for reader in map(open_reader, open_dataset(folder).files)
        for part in reader.parts()
        for batch in reader.read(part)
        for record in batch
    ]
    readable = [record for record in found if not isinstance(record, Unreadable)]
    assert len(readable) == len(found)
    return readable


def manifests(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in (folder / "_crawl").glob("*.json")]


def listed(folder: Path) -> Counter[str]:
    """The parts in all manifests, whose facts are those of the files."""
    names: Counter[str] = Counter()
    for manifest in manifests(folder):
        for part in manifest["parts"]:
            octets = (folder / part["name"]).read_bytes()
            assert part["sha256"] == hashlib.sha256(octets).hexdigest()
            assert part["octets"] == len(octets)
            names[part["name"]] += 1
    return names


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "_crawl")


def pairs(found: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return sorted((record["page"], record["number"]) for record in found if "page" in record)


def expected(server: Loopback) -> list[tuple[str, int]]:
    return sorted(
        (server.url(f"/{page}"), number) for page in range(PAGES) for number in range(ITEMS)
    )


@pytest.mark.parametrize("form", one_in(2, FORMATS))
def test_items_are_in_one_folder_with_the_fetch_of_their_page(
    run: Run, server: Loopback, tmp_path: Path, form: str
) -> None:
    folder = tmp_path / "shared" / "items"
    crawled = run(folder, {"COMITY_ITEMS_FORMAT": form})
    assert crawled.finish_reason == "finished"
    found = [
        {name: value for name, value in record.items() if value is not None}
        for record in records(folder)
    ]
    assert pairs(found) == expected(server)
    assert len(found) == 2 * PAGES + 1  # and the item of no page
    assert all(name.endswith(f"-1.{form}") for name in names(folder))
    requests = Counter(record[REQUEST] for record in found if "page" in record)
    assert sorted(requests.values()) == [2] * PAGES
    assert all(
        datetime.fromisoformat(record[ARRIVED_AT]).tzinfo for record in found if "page" in record
    )
    assert [REQUEST in record for record in found if "page" not in record] == [False]
    assert all("permissions" in record for record in found)
    [manifest] = manifests(folder)
    assert (manifest["crawl"], manifest["run"], manifest["finish_reason"]) == (
        "foreign_items",
        1,
        "finished",
    )
    assert listed(folder) == Counter(names(folder))
    assert sum(part["items"] for part in manifest["parts"]) == 2 * PAGES + 1


@pytest.mark.parametrize("jobdir", one_in(2, [False, True]))
@pytest.mark.parametrize(
    "setting", ["COMITY_PART_OCTETS", "COMITY_PART_SECONDS", "FEED_EXPORT_BATCH_ITEM_COUNT"]
)
def test_a_part_is_complete_after_octets_seconds_or_items(
    run: Run, server: Loopback, tmp_path: Path, setting: str, *, jobdir: bool
) -> None:
    if setting == "COMITY_PART_SECONDS":  # parts are looked at each second
        server.routes["/robots.txt"] = "User-agent: *\nCrawl-delay: 0.3\n"
    value = {"COMITY_PART_OCTETS": 3000, "COMITY_PART_SECONDS": 1}.get(setting, 5)
    job = {"JOBDIR": str(tmp_path / "job")} if jobdir else {}
    folder = tmp_path / "items"
    run(folder, {setting: value, **job})
    assert pairs(records(folder)) == expected(server)
    assert len(names(folder)) > 1
    assert listed(folder) == Counter(names(folder))


@pytest.mark.parametrize(
    "form", ["jsonl", *(pytest.param(form, marks=pytest.mark.slow) for form in FORMATS[1:])]
)
def test_an_export_of_the_last_fetch_drops_doubles_by_their_request(
    run: Run, server: Loopback, tmp_path: Path, form: str, *, in_full: bool
) -> None:
    """Also if the second crawl has its pages from a cache, where nothing arrives."""
    folder = tmp_path / "items"
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    for crawl in ("first", "second"):
        run(folder, {"COMITY_CRAWL": crawl, "COMITY_ITEMS_FORMAT": form, **cache})
    assert pairs(records(folder)) == sorted(expected(server) * 2)
    for options in (JobOptions(1), JobOptions(2))[: 2 if in_full else 1]:
        terms = Terms.of(["follow"], now=datetime.now(UTC), last_fetch=True)
        export([folder], tmp_path / "out.jsonl", terms, options)
        lines = (tmp_path / "out.jsonl").read_text().splitlines()
        assert pairs([json.loads(line) for line in lines]) == expected(server)
    assert sorted(manifest["crawl"] for manifest in manifests(folder)) == ["first", "second"]
    assert listed(folder) == Counter(names(folder))


def test_parts_are_completed_beside_scrapys_own_scheduler(
    run: Run, server: Loopback, tmp_path: Path
) -> None:
    scheduler = {"SCHEDULER": "scrapy.core.scheduler.Scheduler", "JOBDIR": str(tmp_path / "job")}
    run(tmp_path / "items", {"COMITY_PART_OCTETS": 3000, **scheduler})
    assert pairs(records(tmp_path / "items")) == expected(server)
    assert len(names(tmp_path / "items")) > 1


def test_a_crawl_without_items_leaves_a_manifest_alone(
    run: Run, server: Loopback, tmp_path: Path
) -> None:
    run(tmp_path / "items", number=0)
    assert names(tmp_path / "items") == []
    [manifest] = manifests(tmp_path / "items")
    assert (manifest["parts"], manifest["finish_reason"]) == ([], "finished")
    with pytest.raises(DatasetError, match="there are no files of records in this folder"):
        open_dataset(tmp_path / "items")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"COMITY_ITEMS": "items.jsonl"},
            "COMITY_ITEMS `items.jsonl` is the name of a file: write the name of a folder, and the"
            " format of its files as COMITY_ITEMS_FORMAT",
        ),
        (
            {"COMITY_ITEMS": "{folder}/file/items"},
            "COMITY_ITEMS `{folder}/file/items`: {folder}/file is a file: write the name of a folder",
        ),
        (
            {"COMITY_ITEMS": "/"},
            "COMITY_ITEMS: /: name a folder in it: the manifest of a dataset is beside the dataset",
        ),
        (
            {"COMITY_ITEMS": "{folder}/items", "COMITY_ITEMS_FORMAT": "json"},
            "COMITY_ITEMS_FORMAT `json` is unknown: write jsonl, parquet, warc or warc.gz",
        ),
        (
            {"COMITY_ITEMS": "{folder}/others"},
            "COMITY_ITEMS `{folder}/others` has files of another format (a.parquet): name another"
            " folder, or set COMITY_ITEMS_FORMAT, which is jsonl, to their format",
        ),
        (
            {"COMITY_ITEMS": "{folder}/job/items", "JOBDIR": "{folder}/job"},
            "COMITY_ITEMS `{folder}/job/items` is in JOBDIR, which belongs to one crawl alone: name"
            " a folder outside of it",
        ),
        (
            {"COMITY_ITEMS": "{folder}/items", "COMITY_TAG": "sidecar:{folder}/items/tags.jsonl"},
            "COMITY_ITEMS `{folder}/items` would have another feed in it, and readers take its file"
            " for items: write tags.jsonl to another folder",
        ),
        (
            {"COMITY_ITEMS": "nosuch://items"},
            "COMITY_ITEMS: nosuch://items cannot be opened: ",
        ),
    ],
)
def test_a_folder_that_cannot_be_used_ends_with_one_line(
    tmp_path: Path, settings: dict[str, str], said: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "a.parquet").touch()
    filled = {name: value.format(folder=tmp_path) for name, value in settings.items()}
    with pytest.raises(SettingsError) as stopped:
        Addon().update_settings(Settings(filled | {"COMITY_STORE": str(tmp_path / "store")}))
    assert str(stopped.value).startswith(f"comity: {said.format(folder=tmp_path)}")
    assert "\n" not in str(stopped.value)


class Readers:
    """A thread that reads the folder again and again, as other programs may."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._is_over = threading.Event()
        self.counts: list[int] = []
        self.errors: list[str] = []
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> Readers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._is_over.wait(0.05):  # between two readings
            try:
                if any(self._folder.glob("2*")):
                    self.counts.append(len(records(self._folder)))
                    manifests(self._folder)
            except Exception as error:
                self.errors.append(repr(error))


@pytest.mark.slow
@pytest.mark.parametrize(
    "form",
    [
        "jsonl",
        pytest.param("parquet", marks=pytest.mark.slow),
        pytest.param("warc.gz", marks=pytest.mark.slow),
    ],
)
def test_three_workers_fill_one_folder_although_one_is_killed(
    serve: Serve, tmp_path: Path, form: str
) -> None:
    """Every item of every page that the servers have served is there. The documented command drops the doubles."""
    servers = [
        serve({"/robots.txt": ROBOTS}, host=f"127.0.0.{place + 2}") for place in range(HOSTS)
    ]
    for place, server in enumerate(servers):
        other = servers[(place + 1) % HOSTS]
        for page in range(OF_EACH):
            children = [f"/{child}" for child in (2 * page + 1, 2 * page + 2) if child < OF_EACH]
            server.routes[f"/{page}"] = links(*children, other.url(f"/{page}"))
    state = Server(tmp_path / "state")
    state.start()
    project, folder = Project(tmp_path, reactor=True), tmp_path / "items"
    settings: dict[str, Any] = {
        "COMITY_DEFAULTS": "index:allow",
        "COMITY_ITEMS": str(folder),
        "COMITY_ITEMS_FORMAT": form,
        "COMITY_PART_SECONDS": 1,
        "COMITY_STATE": state.url,
        "COMITY_USES": "index",
        "COMITY_WORKER_TIMEOUT": 2,
        "ITEM_PIPELINES": {},
        "JOBDIR": "",
        "SPIDER_MODULES": ["two_items"],
    }

    def number_served() -> int:
        return sum(len(asked(server)) for server in servers)

    def has_open_part(*, at_least: int) -> bool:
        return number_served() >= at_least and any(folder.glob(".2*.part"))

    def begin() -> Running:
        return project.begin(TwoItems, settings, url=servers[0].url("/0"))

    try:
        workers = [begin() for _ in range(3)]
        with Readers(folder) as readers:
            for number in range(3):  # one after the other, each with items in an open part
                before = number_served()
                workers[number].until(partial(has_open_part, at_least=before + 8))
                workers[number].kill()
                workers[number] = begin()
            for worker in workers:
                assert worker.end() == 0, worker.log
        export = project.folder / "export.jsonl"
        command(project.folder, "export", "items", "--for", "index", "--last-fetch", "-o", export)
    finally:
        project.close()
        state.stop()
    assert readers.errors == []
    assert readers.counts == sorted(readers.counts)
    served = Counter(server.url(path) for server in servers for path in asked(server))
    items = Counter((url, number) for url in served for number in range(ITEMS))
    assert Counter({(r["url"], r["number"]) for r in records(folder)}) == items
    lines = [json.loads(line) for line in export.read_text().splitlines()]
    assert Counter((line["url"], line["number"]) for line in lines) == items
    assert listed(folder).keys() <= set(names(folder))
    assert Counter(listed(folder).values()).keys() == {1}
    ends = [(manifest["run"], manifest["finish_reason"]) for manifest in manifests(folder)]
    assert set(ends) <= {(1, "finished"), (1, None)}
    assert (1, "finished") in ends
    count = f"{len(records(folder))} records"
    assert count in command(project.folder, "stats", "items")
    assert count in command(project.folder, "verify", "items", statuses=(0, 1))


def command(folder: Path, *arguments: Any, statuses: tuple[int, ...] = (0,)) -> str:
    """Run `scrapy dataset`, and return its output."""
    ran = subprocess.run(
        [sys.executable, "-m", "scrapy", "dataset", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode in statuses, (ran.stdout, ran.stderr)
    return ran.stdout
