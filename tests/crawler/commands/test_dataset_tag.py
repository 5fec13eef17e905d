"""`scrapy dataset tag`, as a user calls it."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from comity.policies.formats import WELL_KNOWN
from tests.crawler.commands.running import scrapy
from tests.dataset.files.wacz_files import write_wacz
from tests.dataset.tagging.archives import http, page, record, write
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Loopback, Serve

OPEN, CLOSED = "User-agent: *\nAllow: /\n", "User-agent: *\nContent-Usage: train-ai=n\nAllow: /\n"
PLAIN = (b"Content-Type", b"text/plain")
SETTINGS = (
    "-s",
    "COMITY_DEFAULTS=train:allow",
    "-s",
    "COMITY_MIN_DELAY=0",
    "-s",
    "COMITY_STORE=policies.sqlite",
)


def tag(
    folder: Path, *words: str, settings: tuple[str, ...] = SETTINGS
) -> subprocess.CompletedProcess[str]:
    return scrapy(folder, "dataset", "tag", *settings, *words)


def verdicts(path: Path) -> dict[str, str]:
    return {
        one["url"].rpartition("/")[2]: one["permissions"]["uses"]["train"]["verdict"]
        for one in lines(path)
    }


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def captured(folder: Path, site: Loopback, robots: str, **others: str) -> None:
    """Pages of the site, and what it said when they were captured."""
    files = {**dict.fromkeys(WELL_KNOWN, ""), "/robots.txt": robots, **others}
    write(
        folder / "robots.warc.gz",
        *(
            record(
                "response",
                http(text.encode(), PLAIN, status="200 OK" if text else "404 Not Found"),
                site.url(path),
            )
            for path, text in files.items()
        ),
    )
    dates = {"WARC_Date": "2024-05-18T02:00:00Z"}
    write(
        folder / "pages.warc.gz",
        *(page(b"<p>Hello", url=site.url(f"/{name}"), **dates) for name in ("a", "b")),
    )


@pytest.fixture
def site(serve: Serve) -> Loopback:
    return serve({"/robots.txt": CLOSED})


@pytest.mark.requirement("TAG-2")
@pytest.mark.usefixtures("new_processes_in_full")
def test_a_site_that_refuses_since(site: Loopback, tmp_path: Path) -> None:
    """Of capture it is allowed, of today refused, of both refused; the manifest names both copies."""
    captured(tmp_path, site, OPEN)
    common = ("pages.warc.gz", "--for", "train", "--policies", "robots.warc.gz")
    done = tag(tmp_path, *common, "-o", "then.jsonl")
    assert (done.returncode, verdicts(tmp_path / "then.jsonl")) == (
        0,
        {"a": "allow", "b": "allow"},
    ), done.stderr
    assert "2 of 2 records are tagged for comitybot: then.jsonl" in done.stdout
    assert site.seen == []
    done = tag(tmp_path, *common, "-o", "both.jsonl", "--refresh", "--agent", "otherbot")
    assert (done.returncode, verdicts(tmp_path / "both.jsonl")) == (
        0,
        {"a": "deny", "b": "deny"},
    ), done.stderr
    assert [seen.path for seen in site.seen] == ["/robots.txt"]
    described = json.loads((tmp_path / "both.jsonl.croissant.json").read_bytes())
    copies = described["comity:policies"][site.url("/robots.txt")]
    assert len({copy["sha256"] for copy in copies}) == 2
    assert copies[1]["fetched_at"] == "2024-05-18T01:58:10+00:00"
    asked = {key: described["comity:tagged"][key] for key in ("agent", "asOf")}
    assert asked == {"agent": "otherbot", "asOf": "both"}
    done = tag(tmp_path, *common, "-o", "now.parquet", "--refresh", "--as-of", "today")
    assert "train: deny: content-usage.disallow" in done.stdout
    assert len(site.seen) == 1  # what is fresh is not asked for again


@pytest.mark.requirement("TAG-1", "TAG-2")
def test_a_wacz_file_has_pages_and_policies(tmp_path: Path) -> None:
    robots = page(CLOSED.encode(), PLAIN, url="https://a.test/robots.txt")
    members = {
        "archive/a.warc.gz": gzip.compress(robots) + gzip.compress(page(url="https://a.test/a")),
        "archive/b.warc": page(url="https://b.test/b") + b"damaged",
    }
    write_wacz(tmp_path / "in.wacz", members)
    done = tag(tmp_path, "in.wacz", "--for", "train", "--policies", "in.wacz", "-o", "out.jsonl")
    assert done.returncode == 0, done.stderr
    assert "1 cannot be read: they are listed in out.jsonl.unreadable.jsonl" in done.stdout
    place = f"archive/b.warc, record at octet {len(members['archive/b.warc']) - 7}"
    assert f"in.wacz: {place}: no WARC record begins here: 1 places cannot be read" in done.stderr
    rules = {
        one["url"]: one["permissions"]["reasons"][
            one["permissions"]["uses"]["train"]["because"][0]
        ]["rule"]
        for one in lines(tmp_path / "out.jsonl")
    }
    assert rules == {
        "https://a.test/a": "content-usage.disallow",
        "https://b.test/b": "comity.no-policies",
    }
    [unread] = lines(tmp_path / "out.jsonl.unreadable.jsonl")
    assert (unread["file"], unread["place"]) == ("in.wacz", place)
    words = ("policy", "history", "https://a.test/a", "--policies", "in.wacz")
    done = scrapy(tmp_path, *words, "--use", "train")
    assert "Content-Usage: train-ai=n" in done.stdout


@pytest.mark.requirement("TAG-3")
def test_sites_without_captures(site: Loopback, tmp_path: Path) -> None:
    captured(tmp_path, site, OPEN)
    write(
        tmp_path / "robots.warc.gz",
        record("response", http(OPEN.encode(), PLAIN), "https://other.test/robots.txt"),
    )
    common = ("pages.warc.gz", "--for", "train", "--policies", "robots.warc.gz", "-o", "out.jsonl")
    assert "train: deny: comity.no-policies" in tag(tmp_path, *common).stdout
    assert set(verdicts(tmp_path / "out.jsonl").values()) == {"deny"}
    assert tag(tmp_path, *common, "--missing", "allow").returncode == 0
    assert set(verdicts(tmp_path / "out.jsonl").values()) == {"allow"}
    done = tag(tmp_path, *common, "--missing", "keep-apart")
    assert "2 of sites without policies are kept in out.jsonl.no-policies.jsonl" in done.stdout
    assert (
        verdicts(tmp_path / "out.jsonl"),
        len(lines(tmp_path / "out.jsonl.no-policies.jsonl")),
    ) == ({}, 2)


@pytest.mark.requirement("TAG-3")
def test_records_without_dates(site: Loopback, tmp_path: Path) -> None:
    captured(tmp_path, site, OPEN)
    rows = [{"URL": site.url(f"/{name}"), "seen": "2024-05-20"} for name in "ab"]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    common = ("in.jsonl", "--for", "train", "--policies", "robots.warc.gz", "-o", "out.jsonl")
    done = tag(tmp_path, *common)
    [told] = [text for text in done.stdout.splitlines() if "--date-field" in text]
    assert told.startswith(
        "None has a date that can be read, so every use is refused (comity.no-date): "
    )
    assert "--captured-at 2024-05-18" in told
    assert set(verdicts(tmp_path / "out.jsonl").values()) == {"deny"}
    for remedy in (("--date-field", "seen"), ("--captured-at", "2024-05-20")):
        done = tag(tmp_path, *common, *remedy)
        assert "--date-field" not in done.stdout
        assert set(verdicts(tmp_path / "out.jsonl").values()) == {"allow"}
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in [*rows, {"URL": site.url("/c")}])
    )
    done = tag(tmp_path, *common, "--date-field", "seen")
    assert "1 have no date" in done.stdout


def test_robots_txt_alone(site: Loopback, tmp_path: Path) -> None:
    """As Common Crawl publishes it: other files are such that could not be had, as in a crawl."""
    captured(tmp_path, site, CLOSED)
    for robots, allowed in ((CLOSED, "deny"), (OPEN, "allow")):
        write(
            tmp_path / "robots.warc.gz",
            record("response", http(robots.encode(), PLAIN), site.url("/robots.txt")),
        )
        common = (
            "pages.warc.gz",
            "--for",
            "train",
            "--policies",
            "robots.warc.gz",
            "-o",
            "out.jsonl",
        )
        assert tag(tmp_path, *common).returncode == 0
        assert set(verdicts(tmp_path / "out.jsonl").values()) == {allowed}
    copies = lines(tmp_path / "out.jsonl")[0]["permissions"]["policies"]
    assert {url.rpartition("/")[2]: copy["status"] for url, copy in copies.items()} == {
        "robots.txt": 200,
        "ai.txt": 0,
        "tdmrep.json": 0,
        "automation-preferences.txt": 0,
        "trust.txt": 0,
    }


@pytest.mark.parametrize(
    ("words", "message"),
    one_in(
        3,
        [
            (("in.jsonl", "-o", "out.jsonl", "--for", "train ai"), "--for `train ai` is not a use"),
            (
                ("in.jsonl", "-o", "out.jsonl", "--for", "train", "--also", "GPT Bot"),
                "`GPT Bot` is not a product token",
            ),
            (
                ("in.jsonl", "-o", "out.jsonl", "--for", "train", "--captured-at", "May"),
                "`May` is not a date: write the day",
            ),
            (
                ("in.jsonl", "-o", "out.jsonl", "--for", "train", "--agent", "a b"),
                "agent `a b` is not a product token",
            ),
            (
                ("in.jsonl", "-o", "out.jsonl", "--for", "train", "--policies", "gone.warc"),
                "gone.warc",
            ),
            (("in.jsonl", "-o", "out.warc", "--for", "train"), "records cannot be written as WARC"),
            (("in.jsonl", "-o", "in.jsonl", "--for", "train"), "is read from"),
            (("gone.jsonl", "-o", "out.jsonl", "--for", "train"), "gone.jsonl cannot be read"),
            (("in.xyz", "-o", "out.jsonl", "--for", "train"), "unknown format of records"),
            (
                ("in.jsonl", "-o", "tagged", "--for", "train"),
                "such as tagged.jsonl. For a folder with a file for each input file, write tagged/\n",
            ),
            (("in.jsonl", "-o", "out.jsonl"), "--for"),
            (
                ("in.jsonl", "-o", "out.jsonl", "--for", "train", "--missing", "maybe"),
                "invalid choice",
            ),
        ],
    ),
)
def test_mistakes(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    (tmp_path / "in.jsonl").write_text('{"url": "https://a.test/"}\n')
    (tmp_path / "in.txt").write_text("")
    done = tag(tmp_path, *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {
        "in.jsonl",
        "in.txt",
        "home",
        "policies.sqlite",
    }
