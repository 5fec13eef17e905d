"""This version reads the files that earlier versions wrote (docs/stability.md).

Each folder in tests/recorded has the files of one version. `python tests/recorded/run.py` makes a
folder for the present version."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from scrapy.utils.test import get_crawler

from comity.crawler.frontier.journal import Journal
from comity.dataset import manifest
from comity.dataset.croissant import sha256_of
from comity.dataset.sidecar import item_id
from comity.gate.fetching.store import PolicyStore
from comity.gate.pace.ledger import PaceLimit, RateLedger
from comity.policies.tag import read_tag
from comity.report.value import read_report
from comity.spiders.site import SiteSpider

RECORDED = Path(__file__).parent / "recorded"
VERSIONS = sorted(path.name for path in RECORDED.iterdir() if path.name[0].isdigit())


@pytest.fixture(params=VERSIONS)
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a folder with a copy of the files of one version."""
    folder = tmp_path / "recorded"
    shutil.copytree(RECORDED / request.param, folder)
    return folder


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines() if line]


def test_the_files_of_the_first_version_are_there() -> None:
    assert VERSIONS[0] == "0.1.0"


def test_the_store_is_read(recorded: Path) -> None:
    store = PolicyStore(recorded / "policies.sqlite")
    [origin] = store.origins()
    files = store.load(origin)
    store.close()
    assert {"/robots.txt", "/automation-preferences.txt", "/ai.txt"} <= files.keys()
    copy = files["/robots.txt"].copy
    assert copy is not None
    assert copy.status == 200
    assert b"Disallow: /private/" in copy.body


def test_the_pace_file_is_used(recorded: Path) -> None:
    ledger = RateLedger(recorded / "pace.sqlite")
    grant = ledger.acquire([PaceLimit("a.test", ())], now=0)
    ledger.close()
    assert grant.number is not None


def test_the_queue_goes_on(recorded: Path) -> None:
    spider = SiteSpider.from_crawler(get_crawler(SiteSpider), url="http://127.0.0.1/")
    queue = Journal(recorded / "job")
    queue.open(spider)
    waiting = list(queue.stored_requests())
    urls = [queue.get(key).url for key, _, _ in waiting]
    queue.close()
    assert len(waiting) == 12
    assert all(url.startswith(origin) for url, (_, origin, _) in zip(urls, waiting, strict=True))


def test_tags_are_read(recorded: Path) -> None:
    items = rows(recorded / "items.jsonl")
    assert len(items) == 5
    for item in items:
        uses = read_tag(item["permissions"]).uses
        assert uses["index"].is_allowed
        assert uses["index"].qualifiers.until_recrawled
        assert not uses["ai-train"].is_allowed
    sidecar = rows(recorded / "items.tags")
    assert [row["id"] for row in sidecar] == [item_id(item) for item in items]
    assert [row["permissions"] for row in sidecar] == [item["permissions"] for item in items]


def test_the_manifest_describes_its_file(recorded: Path) -> None:
    export = recorded / "index.jsonl"
    described = manifest.current(export)
    assert described is not None
    [digest] = manifest.described_files(described).values()
    assert digest.sha256 == sha256_of(export)


def test_the_report_is_read(recorded: Path) -> None:
    report = read_report((recorded / "report.json").read_text("utf-8"))
    assert (report.source, report.counts["items"]) == ("crawl", 5)
