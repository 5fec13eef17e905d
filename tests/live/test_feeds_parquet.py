"""Parquet feeds of real crawls, loaded by the programs that people load them with."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from scrapy import Spider
from scrapy.http import Response

from comity.dataset.files.columns.parquet import Reader
from comity.dataset.records import Record

ROBOTS = b"User-agent: *\nAllow: /\nContent-Usage: train-ai=n\nDisallow: /private\n"
PAGES = {
    "/robots.txt": ROBOTS,
    "/": "<title>Home</title><p>At home",
    "/a": '<title>A</title><meta name="robots" content="noindex"><p>Apples',
    "/b": "<title>B</title><p>Béchamel \N{COOKING}",
    "/private": "<p>Nobody reads this",
}


@dataclass
class PageItem:
    url: str
    title: str
    seen: datetime
    note: str | None = None
    prices: list[float] = field(default_factory=list)


class Pages(Spider):
    name = "pages"

    def parse(self, response: Response) -> Iterator[Any]:
        title = response.css("title::text").get("")
        yield PageItem(
            response.url,
            title,
            datetime(2026, 11, 21, tzinfo=UTC),
            prices=[1, 2.5] if title == "A" else [],
        )
        for path in ("/a", "/b", "/private") if title == "Home" else ():
            yield response.follow(path)


@pytest.fixture
def crawled(
    crawl: Callable[..., Any], serve: Callable[..., Any], tmp_path: Path
) -> tuple[Path, list[Record]]:
    """A Parquet feed, and the items of the feed of JSON lines beside it."""
    server = serve(dict(PAGES))
    path, lines = tmp_path / "items.parquet", tmp_path / "items.jsonl"
    feeds = {str(path): {"format": "parquet"}, str(lines): {"format": "jsonlines"}}
    settings: dict[str, Any] = {"FEEDS": feeds}
    settings |= {
        "COMITY_USES": "train-ai,index",
        "COMITY_DEFAULTS": {"index": "allow"},
        "COMITY_DROP_UNUSABLE": False,
    }
    found = crawl(Pages, settings, start_urls=[server.url("/")])
    assert found.finish_reason == "finished"
    assert "/private" not in server.paths
    return path, [json.loads(line) for line in lines.read_text().splitlines()]


def records(path: Path) -> list[Any]:
    reader = Reader(path)
    return [record for part in reader.parts() for batch in reader.read(part) for record in batch]


@pytest.mark.requirement("MEET-3")
def test_the_feed_holds_what_a_feed_of_json_lines_holds(crawled: tuple[Path, list[Record]]) -> None:
    path, items = crawled
    assert len(items) == 3
    assert records(path) == items
    assert [json.dumps(one["permissions"], sort_keys=True) for one in records(path)] == [
        json.dumps(one["permissions"], sort_keys=True) for one in items
    ]


@pytest.mark.requirement("MEET-3")
def test_other_programs_ask_the_tag_by_its_names(
    crawled: tuple[Path, list[Record]], tmp_path: Path
) -> None:
    import datasets
    import duckdb
    import pandas as pd

    path, items = crawled
    indexed = {
        one["title"] for one in items if one["permissions"]["uses"]["index"]["verdict"] == "allow"
    }
    refused = {
        one["title"] for one in items if one["permissions"]["uses"]["index"]["verdict"] == "deny"
    }
    assert "A" in refused

    query = "SELECT title FROM read_parquet(?) WHERE list_filter(permissions.uses, lambda u: u.use = 'index')[1].verdict = 'deny'"
    assert {row[0] for row in duckdb.execute(query, [str(path)]).fetchall()} == refused
    moments = duckdb.execute(
        "SELECT DISTINCT typeof(policy.fetched_at) FROM (SELECT unnest(permissions.policies) AS policy FROM read_parquet(?))",
        [str(path)],
    ).fetchall()
    assert moments == [("TIMESTAMP WITH TIME ZONE",)]

    frame = pd.read_parquet(path)
    verdicts = frame.permissions.map(
        lambda tag: {use["use"]: use["verdict"] for use in tag["uses"]}
    )
    assert set(frame.title[verdicts.map(lambda uses: uses["index"] == "deny")]) == refused

    def permits(one: Record) -> bool:
        return any(
            use["use"] == "index" and use["verdict"] == "allow"
            for use in one["permissions"]["uses"]
        )

    loaded = datasets.load_dataset(
        "parquet", data_files=str(path), cache_dir=str(tmp_path / "cache"), split="train"
    )
    allowed = loaded.filter(permits)
    assert set(allowed["title"]) == indexed


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"SCRAPY_SETTINGS_MODULE": "comity.crawler.settings"}
    command = [sys.executable, "-m", "scrapy", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)


def command(server: Any, *options: str) -> list[str]:
    settings = [
        "-s",
        "COMITY_MIN_DELAY=0",
        "-s",
        "COMITY_AGENT=testbot",
        "-s",
        "COMITY_STORE=policies.sqlite",
    ]
    return ["crawl", "site", "-a", f"url={server.url('/b')}", *settings, *options]


def test_the_command_line_knows_the_format(serve: Callable[..., Any], tmp_path: Path) -> None:
    server = serve(dict(PAGES))
    done = run(command(server, "-O", "items.parquet"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert [one["title"] for one in records(tmp_path / "items.parquet")] == ["B"]
    assert run(command(server, "-O", "items.parquet"), tmp_path).returncode == 0
    assert len(records(tmp_path / "items.parquet")) == 1


def test_a_file_that_is_there_is_not_added_to(serve: Callable[..., Any], tmp_path: Path) -> None:
    server = serve(dict(PAGES))
    (tmp_path / "items.parquet").write_bytes(b"something")
    done = run(command(server, "-o", "items.parquet"), tmp_path)
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1] == (
        "comity: items.parquet exists, and Parquet files cannot be added to: give another name, or overwrite it with -O"
    )
    assert (tmp_path / "items.parquet").read_bytes() == b"something"
    assert server.paths == []


@pytest.mark.usefixtures("new_processes")
@pytest.mark.slow
def test_without_pyarrow_it_says_what_to_install(serve: Callable[..., Any], tmp_path: Path) -> None:
    server = serve(dict(PAGES))
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['pyarrow'] = None\n")
    environment = os.environ | {"SCRAPY_SETTINGS_MODULE": "comity.crawler.settings"}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), environment.get("PYTHONPATH", "")])
    arguments = [sys.executable, "-m", "scrapy", *command(server, "-O", "items.jsonl")]
    done = subprocess.run(
        arguments, cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr  # other feeds do not need it
    assert (tmp_path / "items.jsonl").read_text().count("\n") == 1
    arguments[-1] = "items.parquet"
    done = subprocess.run(
        arguments, cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1] == (
        'comity: items.parquet needs pyarrow: pip install "comity[parquet]"'
    )


@pytest.mark.parametrize("where", ["stdout", pytest.param("compressed", marks=pytest.mark.slow)])
def test_a_feed_needs_no_file_that_can_be_sought(
    where: str, serve: Callable[..., Any], tmp_path: Path
) -> None:
    server = serve(dict(PAGES))
    if where == "stdout":
        done = run(command(server, "-O", "-:parquet"), tmp_path)
        (tmp_path / "items.parquet").write_bytes(done.stdout)
    else:
        feed = {
            "items.parquet.gz": {
                "format": "parquet",
                "postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"],
            }
        }
        done = run(command(server, "-s", f"FEEDS={json.dumps(feed)}"), tmp_path)
        (tmp_path / "items.parquet").write_bytes(
            gzip.decompress((tmp_path / "items.parquet.gz").read_bytes())
        )
    assert done.returncode == 0, done.stderr
    assert pq.read_metadata(tmp_path / "items.parquet").num_rows == 1
