"""An index of captures: only the captures that may be used are downloaded."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import Answer
from tests.crawler.commands.running import scrapy
from tests.dataset.tagging.archives import http, page, record
from tests.selection import one_in

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler

    from tests.conftest import Loopback, Serve

OPEN, CLOSED = "User-agent: *\nAllow: /\n", "User-agent: *\nContent-Usage: train-ai=n\nAllow: /\n"
PLAIN = (b"Content-Type", b"text/plain")
DATE = datetime.fromisoformat("2024-05-18T01:58:10Z")
DAY = ("-s", "COMITY_DEFAULTS=train:allow")
WARC = "crawl-data/CC-MAIN-2024-22/segments/1715971057216.39/warc/CC-MAIN-00000.warc.gz"
ROBOTS = "crawl-data/CC-MAIN-2024-22/segments/1715971057216.39/robotstxt/CC-MAIN-00000.warc.gz"

# cc-index-schema-flat.json of cc-index-table, and its two columns of partitions
TEXTS = (
    *("url_host_tld", "url_host_2nd_last_part", "url_host_3rd_last_part"),
    *("url_host_4th_last_part", "url_host_5th_last_part", "url_host_registry_suffix"),
    *("url_host_registered_domain", "url_host_private_suffix", "url_host_private_domain"),
    *("url_host_name_reversed", "url_protocol"),
)
SCHEMA = pa.schema(
    [
        pa.field("url_surtkey", pa.string(), nullable=False),
        pa.field("url", pa.string(), nullable=False),
        pa.field("url_host_name", pa.string(), nullable=False),
        *(pa.field(name, pa.string()) for name in TEXTS),
        pa.field("url_port", pa.int32()),
        pa.field("url_path", pa.string(), nullable=False),
        pa.field("url_query", pa.string()),
        pa.field("fetch_time", pa.timestamp("ms", "UTC"), nullable=False),
        pa.field("fetch_status", pa.int16(), nullable=False),
        pa.field("fetch_redirect", pa.string()),
        pa.field("content_digest", pa.string()),
        pa.field("content_mime_type", pa.string()),
        pa.field("content_mime_detected", pa.string()),
        pa.field("content_charset", pa.string()),
        pa.field("content_languages", pa.string()),
        pa.field("content_truncated", pa.string()),
        pa.field("warc_record_id", pa.binary(), nullable=False),
        pa.field("warc_filename", pa.string(), nullable=False),
        pa.field("warc_record_offset", pa.int32(), nullable=False),
        pa.field("warc_record_length", pa.int32(), nullable=False),
        pa.field("warc_segment", pa.string(), nullable=False),
        pa.field("crawl", pa.string(), nullable=False),
        pa.field("subset", pa.string(), nullable=False),
    ]
)


class Archive:
    """The WARC files of an archive, and the rows of its index."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.rows: list[dict[str, Any]] = []

    def add(self, name: str, url: str, octets: bytes, status: int = 200) -> str:
        """Add a record. Return its range."""
        member, start = gzip.compress(octets, mtime=0), len(self.files.get(name, b""))
        self.files[name] = self.files.get(name, b"") + member
        place = {"filename": name, "offset": str(start), "length": str(len(member))}
        self.rows.append({"url": url, "mime": "text/html", "status": str(status), **place})
        return f"bytes={start}-{start + len(member) - 1}"

    def answer(self, handler: BaseHTTPRequestHandler) -> Answer:
        """Answer a request for a range, as RFC 9110 section-14.2 says."""
        octets = self.files[handler.path.lstrip("/")]
        first, last = map(int, handler.headers["Range"].removeprefix("bytes=").split("-"))
        return Answer(octets[first : last + 1], status=206)

    def write(self, path: Path) -> Path:
        """Write the index."""
        if path.suffix == ".parquet":
            rows = [_columns(row) for row in self.rows]
            pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path)
            return path
        lines = [f"test,a)/ {DATE:%Y%m%d%H%M%S} {json.dumps(row)}\n" for row in self.rows]
        octets = "".join(lines).encode()
        path.write_bytes(gzip.compress(octets) if path.suffix == ".gz" else octets)
        return path


def _columns(row: dict[str, str]) -> dict[str, Any]:
    host = row["url"].split("/")[2]
    return {
        **dict.fromkeys(TEXTS, host),
        "url_surtkey": f"{','.join(reversed(host.split('.')))})/",
        "url": row["url"],
        "url_host_name": host,
        "url_path": "/",
        "fetch_time": DATE,
        "fetch_status": int(row["status"]),
        "content_digest": "G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK",
        "content_mime_type": row["mime"],
        "content_mime_detected": row["mime"],
        "warc_record_id": b"\x01\x9d\x6d\x22",
        "warc_filename": row["filename"],
        "warc_record_offset": int(row["offset"]),
        "warc_record_length": int(row["length"]),
        "warc_segment": "1715971057216.39",
        "crawl": "CC-MAIN-2024-22",
        "subset": "robotstxt" if row["url"].endswith("/robots.txt") else "warc",
    }


@pytest.fixture
def archive() -> Archive:
    return Archive()


def curl(folder: Path, words: str, output: str) -> subprocess.CompletedProcess[bytes]:
    assert shutil.which("curl"), "curl is missing: apt-get install curl"
    with (folder / output).open("wb") as file:
        return subprocess.run(
            ["curl", "--disable", "--config", words],
            cwd=folder,
            stdout=file,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )


def asked(site: Loopback) -> list[tuple[str, str]]:
    """The paths and ranges of the requests that a server saw."""
    return [(seen.path.removeprefix("/"), seen.headers["range"]) for seen in site.seen]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.requirement("TAG-1", "TAG-2", "TAG-3")
@pytest.mark.parametrize("name", one_in(2, ["index.parquet", "index.cdxj.gz"]))
def test_only_what_may_be_used_is_downloaded(
    serve: Serve, tmp_path: Path, archive: Archive, name: str
) -> None:
    robots, wanted = [], []
    for host, text in (("open", OPEN), ("closed", CLOSED)):
        url = f"https://{host}.test/robots.txt"
        robots.append(archive.add(ROBOTS, url, record("response", http(text.encode(), PLAIN), url)))
    url = "https://none.test/robots.txt"
    gone = record("response", http(b"", PLAIN, status="404 Not Found"), url)
    robots.append(archive.add(ROBOTS, url, gone, 404))
    for host in ("open", "closed", "none", "unknown"):
        for number in range(3):
            url = f"https://{host}.test/{number}"
            place = archive.add(WARC, url, page(b"<p>%d</p>" % number, url=url))
            if host in ("open", "none"):
                wanted.append(place)
    moved = "https://open.test/moved"
    redirect = http(b"", (b"Location", b"/1"), status="301 Moved Permanently")
    archive.add(WARC, moved, record("response", redirect, moved), 301)
    site = serve(dict.fromkeys((f"/{WARC}", f"/{ROBOTS}"), archive.answer))
    archive.write(tmp_path / name)
    source = ("--from", site.url("/"))

    done = scrapy(
        *(tmp_path, "dataset", "ranges", name, "--policy-files", "-o", "robots.curl", *source)
    )
    assert done.returncode == 0, done.stderr
    assert "3 of 16 captures are listed as policy files" in done.stdout
    assert curl(tmp_path, "robots.curl", "robots.warc.gz").returncode == 0
    assert asked(site) == [(ROBOTS, place) for place in robots]

    train = ("--for", "train", "-o")
    policies = ("--policies", "robots.warc.gz")
    done = scrapy(tmp_path, "dataset", "tag", *DAY, name, *train, "tagged.parquet", *policies)
    assert done.returncode == 0, done.stderr
    assert "12 of 16 records are tagged" in done.stdout
    described = json.loads((tmp_path / "tagged.parquet.croissant.json").read_bytes())
    assert described["comity:counts"]["leftOut"] == {"policy file": 3, "status 301": 1}
    done = scrapy(tmp_path, "dataset", "export", "tagged.parquet", *train, "may.jsonl")
    assert done.returncode == 0, done.stderr
    exported = [
        (one["warc_record_offset"], one["warc_record_length"])
        for one in lines(tmp_path / "may.jsonl")
    ]
    assert [f"bytes={first}-{first + length - 1}" for first, length in exported] == wanted

    site.seen.clear()
    done = scrapy(tmp_path, "dataset", "ranges", "tagged.parquet", *train, "pages.curl", *source)
    assert done.returncode == 0, done.stderr
    assert "6 of 12 captures are listed for train" in done.stdout
    assert "deny:content-usage.disallow" in done.stdout
    assert "deny:comity.no-policies" in done.stdout
    assert curl(tmp_path, "pages.curl", "pages.warc.gz").returncode == 0
    assert asked(site) == [(WARC, place) for place in wanted]

    done = scrapy(tmp_path, "dataset", "tag", *DAY, "pages.warc.gz", *train, "out.jsonl", *policies)
    assert "6 of 6 records are tagged" in done.stdout, done.stderr
    verdicts = {
        one["url"]: one["permissions"]["uses"]["train"]["verdict"]
        for one in lines(tmp_path / "out.jsonl")
    }
    assert verdicts == {
        f"https://{host}.test/{number}": "allow" for host in ("open", "none") for number in range(3)
    }


def test_a_server_without_ranges_sends_no_whole_file(
    serve: Serve, tmp_path: Path, archive: Archive
) -> None:
    """curl refuses the answer by its length."""
    url = "https://open.test/robots.txt"
    for _ in range(2):
        archive.add(ROBOTS, url, record("response", http(OPEN.encode(), PLAIN), url))
    site = serve({f"/{ROBOTS}": lambda _: Answer(archive.files[ROBOTS])})
    archive.write(tmp_path / "index.cdxj")
    words = ("--policy-files", "-o", "robots.curl", "--from", site.url("/"))
    scrapy(tmp_path, "dataset", "ranges", "index.cdxj", *words)
    done = curl(tmp_path, "robots.curl", "robots.warc.gz")
    assert done.returncode != 0
    assert done.stderr.count(b"Maximum file size exceeded") == 2
    assert (tmp_path / "robots.warc.gz").read_bytes() == b""


@pytest.mark.requirement("SEC-6")
def test_no_place_leads_out_of_the_archive(tmp_path: Path) -> None:
    """And no name is more than a part of a URL."""
    places: list[dict[str, Any]] = [
        {"filename": "../a.warc.gz"},
        {"filename": "a/./../../b"},
        {"filename": "/etc/passwd"},
        {"filename": "a//b"},
        {"filename": ""},
        {"filename": 'a"\nurl = "file:///etc/passwd'},
        {"filename": None},
        {"offset": "-1"},
        {"offset": "1e3"},
        {"length": "0"},
        {"length": True},
        {"length": "9" * 30},
        {"filename": "http://b.test/{x}[1-9]?#%2e%2e/é \\"},
    ]
    good = {"url": "https://a.test/robots.txt", "filename": "a", "offset": "5", "length": "2"}
    rows = "".join(f"{json.dumps(good | place)}\n" for place in places)
    (tmp_path / "index.cdxj").write_text(rows.replace("http://b", "http:b"), encoding="utf-8")
    words = ("--policy-files", "-o", "list.curl", "--from", "http://127.0.0.1:1/archive")
    done = scrapy(tmp_path, "dataset", "ranges", "index.cdxj", *words)
    assert "1 of 13 captures are listed as policy files" in done.stdout, done.stderr
    assert "no-place: warc_filename, warc_record_offset, warc_record_length are" in done.stdout
    assert (tmp_path / "list.curl").read_text(encoding="ascii").splitlines() == [
        "# curl --config LIST > captures.warc.gz",
        'url = "http://127.0.0.1:1/archive/http%3Ab.test/%7Bx%7D%5B1-9%5D%3F%23%252e%252e/%C3%A9%20%5C"',
        'range = "5-6"',
        "max-filesize = 2",
        "fail",
        "globoff",
        "silent",
        "show-error",
    ]


@pytest.mark.parametrize(
    "source",
    [
        "data.test",
        "file:///etc",
        "https://",
        'https://a.test/"',
        "https://a.test/?x",
        "https://\u00e9.test",
    ],
)
def test_an_archive_has_a_url(tmp_path: Path, source: str) -> None:
    (tmp_path / "index.cdxj").write_bytes(b"")
    words = ("--policy-files", "-o", "list.curl", "--from", source)
    done = scrapy(tmp_path, "dataset", "ranges", "index.cdxj", *words)
    assert done.returncode == 2
    assert "is not the URL of an archive: write, for example, https://" in done.stderr
    assert not (tmp_path / "list.curl").exists()
