"""What feeds write: WARC files, CSV, and the items that a filter lets through. What counts is what is in the files."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pytest
from fastwarc.warc import ArchiveIterator
from scrapy import Spider
from scrapy.exporters import CsvItemExporter
from scrapy.http import Request, Response
from warcio.cli import main as warcio_main  # type: ignore[import-untyped]

from comity.crawler.feeds import PermittedFor
from comity.crawler.feeds.csv import CsvExporter
from comity.crawler.feeds.responses import ItemResponses
from comity.dataset.export.export import export
from comity.dataset.files.formats import open_reader
from comity.dataset.job import JobOptions
from comity.dataset.permissions.terms import Terms
from comity.gate.options import SettingsError

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

ROBOTS = "User-agent: *\nAllow: /\nContent-Usage: train-ai=y\nContent-Usage: /b train-ai=n\nDisallow: /refused\n"
ZIPPED = gzip.compress("<p>Schön</p>".encode())
FILTER = "comity.crawler.feeds.PermittedFor"


def page(text: str) -> str:
    return f"<title>{text}</title><p>{text}</p>"


def in_chunks(handler: Any) -> None:
    handler.send_response(200)
    for name, value in {"Content-Type": "text/html", "Transfer-Encoding": "chunked"}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(b"6\r\n<p>in \r\n6\r\nchunks\r\n0\r\n\r\n")


class Pages(Spider):
    """Two items of /a, one of each other page, and one of none."""

    name = "pages"
    origin: str
    paths: ClassVar = ("/a", "/b", "/zipped", "/chunks", "/moved", "/refused", "/none")

    async def start(self) -> AsyncIterator[Any]:
        yield {"name": "of none"}
        for path in self.paths:
            yield Request(
                self.origin + path,
                headers={"Authorization": "Basic SECRET"},
                cookies={"id": "SECRET"},
                errback=self.failed,
            )

    def parse(self, response: Response) -> Iterator[dict[str, Any]]:
        yield {
            "name": response.url.rpartition("/")[2],
            "url": response.url,
            "nested": [{"a": 1}],
            "words": ["x", "y"],
        }
        if response.url.endswith("/a"):
            yield {"name": "a again", "url": response.url, "nested": [], "words": []}

    def closed(self, reason: str) -> None:
        assert self.crawler.stats
        held = self.crawler.get_extension(ItemResponses)
        self.crawler.stats.set_value("held", None if held is None else len(held))

    def failed(self, failure: Any) -> Iterator[dict[str, Any]]:
        yield {"name": f"failed {type(failure.value).__name__}"}


class Record(NamedTuple):
    """A record of a WARC file, as FastWARC reads it."""

    kind: str
    fields: dict[str, str]
    head: list[tuple[str, str]]  # of HTTP
    body: bytes


def records(path: Path) -> list[Record]:
    found = []
    with path.open("rb") as file:
        for one in ArchiveIterator(file, strict_mode=True, parse_http=False):
            assert one.verify_block_digest(consume=False)
            one.parse_http()
            assert "WARC-Payload-Digest" not in one.headers or one.verify_payload_digest(
                consume=False
            )
            head = (
                [(str(name), str(value)) for name, value in one.http_headers.items()]
                if one.http_headers
                else []
            )
            found.append(
                Record(one.headers["WARC-Type"], dict(one.headers.items()), head, one.reader.read())
            )
    return found


def passes_warcio_check(path: Path) -> bool:
    try:
        warcio_main(["check", str(path)])
    except SystemExit as ended:
        return not ended.code
    return True


def read_back(path: Path) -> list[dict[str, Any]]:
    reader = open_reader(path)
    found = [record for part in reader.parts() for batch in reader.read(part) for record in batch]
    assert all(isinstance(record, dict) for record in found)
    return found  # type: ignore[return-value]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def site(serve: Serve) -> Loopback:
    answer = serve.Answer  # type: ignore[attr-defined]
    return serve(
        {
            "/robots.txt": ROBOTS,
            "/a": answer(
                page("A"),
                content_type="text/html",
                headers={"Set-Cookie": "id=SECRET", "Content-Length": str(len(page("A")))},
            ),
            "/b": page("B"),
            "/zipped": answer(
                ZIPPED, content_type="text/html", headers={"Content-Encoding": "gzip"}
            ),
            "/chunks": in_chunks,
            "/moved": answer(status=302, headers={"Location": "/final"}),
            "/final": page("moved here"),
        }
    )


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("name", ["pages.warc", "pages.warc.gz"])
def test_what_a_warc_file_holds(name: str, site: Loopback, crawl: Crawl, tmp_path: Path) -> None:
    path, beside = tmp_path / name, tmp_path / "items.jsonl"
    feeds = {str(path): {}, str(beside): {"format": "jsonlines"}}
    done = crawl(Pages, {"FEEDS": feeds, "COMITY_DROP_UNUSABLE": False}, origin=site.origin)
    assert "ERROR" not in done.log
    assert done.stats["held"] == 0
    assert passes_warcio_check(path)
    found = records(path)
    of_kind = {
        kind: [record for record in found if record.kind == kind]
        for kind in {record.kind for record in found}
    }
    assert Counter(record.kind for record in found) == {
        "warcinfo": 1,
        "resource": 1,
        "metadata": 9,
        "response": 6,
        "request": 6,
    }

    # the policy file as it stood
    (policy,) = of_kind["resource"]
    assert policy.fields["WARC-Target-URI"] == site.url("/robots.txt")
    assert policy.body == ROBOTS.encode()
    assert policy.fields["Comity-Policy-SHA256"] == hashlib.sha256(ROBOTS.encode()).hexdigest()

    # every item, with its tag, and its response
    items = [json.loads(record.body) for record in of_kind["metadata"]]
    assert sorted(items, key=repr) == sorted(lines(beside), key=repr)
    responses = {record.fields["WARC-Record-ID"]: record for record in of_kind["response"]}
    for record, item in zip(of_kind["metadata"], items, strict=True):
        answered = responses.get(record.fields.get("WARC-Refers-To", ""))
        url = site.url("/none") if item["name"] == "failed HttpError" else item.get("url")
        assert (answered.fields["WARC-Target-URI"] if answered else None) == url
        assert record.fields.get("WARC-Concurrent-To") == record.fields.get("WARC-Refers-To")
        policies = item["permissions"]["policies"]
        if answered:
            assert (
                policies[policy.fields["WARC-Target-URI"]]["sha256"]
                == policy.fields["Comity-Policy-SHA256"]
            )
    assert Counter(item["name"] for item in items) == {
        "of none": 1,
        "a": 1,
        "a again": 1,
        "b": 1,
        "zipped": 1,
        "chunks": 1,
        "final": 1,
        "failed IgnoreRequest": 1,
        "failed HttpError": 1,
    }

    # what was asked and answered
    bodies = {record.fields["WARC-Target-URI"]: record for record in of_kind["response"]}
    assert bodies[site.url("/a")].body == page("A").encode()
    assert bodies[site.url("/final")].body == page("moved here").encode()
    assert all(record.fields["WARC-IP-Address"] == "127.0.0.1" for record in of_kind["response"])
    for record in of_kind["request"]:
        assert (
            responses[record.fields["WARC-Concurrent-To"]].fields["WARC-Target-URI"]
            == record.fields["WARC-Target-URI"]
        )
        assert ("Host", site.origin.partition("//")[2]) in record.head
    octets = path.read_bytes()
    assert b"SECRET" not in (gzip.decompress(octets) if name.endswith(".gz") else octets)
    assert any("SECRET" in seen.headers.get("cookie", "") for seen in site.seen)  # it was sent


@pytest.mark.requirement("MEET-3")
def test_what_was_decoded_is_said(site: Loopback, crawl: Crawl, mode: str, tmp_path: Path) -> None:
    path = tmp_path / "pages.warc.gz"
    crawl(Pages, {"FEEDS": {str(path): {}}, "COMITY_DROP_UNUSABLE": False}, origin=site.origin)
    answers = {
        record.fields["WARC-Target-URI"]: record
        for record in records(path)
        if record.kind == "response"
    }
    zipped, chunks = answers[site.url("/zipped")], answers[site.url("/chunks")]
    assert zipped.body == "<p>Schön</p>".encode()
    assert chunks.body == b"<p>in chunks"
    for record in (zipped, chunks):
        named = dict(record.head)
        assert named["Content-Length"] == str(len(record.body))
        assert not {"Content-Encoding", "Transfer-Encoding"} & set(named)
    assert {
        "X-Crawler-Content-Encoding": "gzip",
        "X-Crawler-Content-Length": str(len(ZIPPED)),
    }.items() <= dict(zipped.head).items()
    if mode == "no-reactor":  # with a reactor, Twisted keeps it for itself
        assert dict(chunks.head)["X-Crawler-Transfer-Encoding"] == "chunked"


@pytest.mark.requirement("MEET-3")
def test_fields_are_kept_octet_by_octet(serve: Serve, tmp_path: Path) -> None:
    answer = serve.Answer(page("A"), content_type="text/html", headers={"X-Odd": "caf\u00e9"})  # type: ignore[attr-defined]
    assert (
        run(tmp_path, "-a", f"url={serve({'/': answer}).origin}", "-O", "pages.warc").returncode
        == 0
    )
    assert b"\r\nX-Odd: caf\xe9\r\n" in (tmp_path / "pages.warc").read_bytes()


@pytest.mark.requirement("MEET-3")
def test_what_scrapy_was_told_not_to_decode_is_kept_as_it_came(
    site: Loopback, crawl: Crawl, tmp_path: Path
) -> None:
    path = tmp_path / "pages.warc"
    off = {"COMPRESSION_ENABLED": False, "COMITY_DROP_UNUSABLE": False}
    crawl(Pages, {"FEEDS": {str(path): {}}, **off}, origin=site.origin)
    (zipped,) = (
        record
        for record in records(path)
        if record.kind == "response" and b"\x1f\x8b" in record.body
    )
    assert zipped.body == ZIPPED
    assert dict(zipped.head)["Content-Encoding"] == "gzip"
    assert not any(name.startswith("X-Crawler") for name, _ in zipped.head)


class Odd(Spider):
    """What did not come whole, and what did not come by HTTP."""

    name = "odd"
    origin: str

    async def start(self) -> AsyncIterator[Request]:
        yield Request(self.origin + "/cut")
        yield Request("data:text/html,%3Cp%3Edata")

    def parse(self, response: Response) -> dict[str, Any]:
        return {"body": response.text}


def cut(handler: Any) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"<p>not whole")


@pytest.mark.requirement("MEET-3")
def test_what_is_not_whole_or_not_of_http_is_said(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    path = tmp_path / "pages.warc.gz"
    settings = {
        "FEEDS": {str(path): {}},
        "COMITY_DROP_UNUSABLE": False,
        "DOWNLOAD_FAIL_ON_DATALOSS": False,
        "RETRY_ENABLED": False,
    }
    crawl(Odd, settings, origin=serve({"/robots.txt": "", "/cut": cut}).origin)
    bodies = {
        record.body: record for record in records(path) if record.kind in ("response", "resource")
    }
    not_whole, not_http = bodies[b"<p>not whole"], bodies[b"<p>data"]
    assert not_whole.fields["WARC-Truncated"] == "disconnect"
    assert dict(not_whole.head)["Content-Length"] == "12"
    assert dict(not_whole.head)["X-Crawler-Content-Length"] == "1000"
    assert not_http.kind == "resource"
    assert not_http.fields["Content-Type"].startswith("text/html; charset=")
    assert "WARC-Truncated" not in not_http.fields
    assert sorted(record["html"] for record in read_back(path)) == ["<p>data", "<p>not whole"]


@pytest.mark.requirement("MEET-3")
def test_records_read_back_are_those_of_json_lines(
    site: Loopback, crawl: Crawl, tmp_path: Path
) -> None:
    path, beside = tmp_path / "pages.warc.gz", tmp_path / "items.jsonl"
    feeds = {str(path): {}, str(beside): {"format": "jsonlines"}}
    crawl(Pages, {"FEEDS": feeds, "COMITY_DROP_UNUSABLE": False}, origin=site.origin)
    found = {record["name"]: record for record in read_back(path)}
    for item in lines(beside):
        record = found.pop(item["name"])
        assert item.items() <= record.items()
        assert json.dumps(record["permissions"], sort_keys=True) == json.dumps(
            item["permissions"], sort_keys=True
        )
        assert ("html" in record) == ("url" in item or item["name"] == "failed HttpError")
    assert not found


@pytest.mark.requirement("MEET-3")
def test_an_export_of_either_has_the_same_records(
    site: Loopback, crawl: Crawl, tmp_path: Path
) -> None:
    path, beside = tmp_path / "pages.warc.gz", tmp_path / "items.jsonl"
    feeds = {str(path): {}, str(beside): {"format": "jsonlines"}}
    crawl(Pages, {"FEEDS": feeds, "COMITY_DROP_UNUSABLE": False}, origin=site.origin)
    terms = Terms.of(["train-ai"])
    for source in (path, beside):
        export([source], tmp_path / f"of-{source.name}.jsonl", terms, JobOptions(workers=1))
    of_warc = {record["name"]: record for record in lines(tmp_path / "of-pages.warc.gz.jsonl")}
    of_items = {record["name"]: record for record in lines(tmp_path / "of-items.jsonl.jsonl")}
    assert (
        sorted(of_warc)
        == sorted(of_items)
        == ["a", "a again", "chunks", "failed HttpError", "final", "zipped"]
    )
    assert all(record.items() <= of_warc[name].items() for name, record in of_items.items())


@pytest.mark.requirement("MEET-3")
def test_each_file_of_several_stands_for_itself(
    site: Loopback, crawl: Crawl, tmp_path: Path
) -> None:
    feed = {
        "format": "warc.gz",
        "batch_item_count": 1,
        "item_filter": FILTER,
        "comity_uses": "crawl",
    }
    crawl(
        Pages,
        {"FEEDS": {str(tmp_path / "%(batch_id)d.warc.gz"): feed}, "COMITY_DROP_UNUSABLE": False},
        origin=site.origin,
    )
    files = sorted(tmp_path.glob("*.warc.gz"))
    assert len(files) == 7
    for path in files:
        assert Counter(record.kind for record in records(path)) == dict.fromkeys(
            ("warcinfo", "resource", "metadata", "response", "request"), 1
        )


@pytest.mark.requirement("MEET-3")
def test_a_feed_takes_what_is_permitted_for_its_uses(
    site: Loopback, crawl: Crawl, tmp_path: Path
) -> None:
    asked: dict[str, dict[str, Any]] = {
        "asked.jsonl": {"comity_uses": ["train-ai"]},
        "declared.jsonl": {},
        "both.warc.gz": {"comity_uses": "train-ai, present"},
    }
    feeds = {
        str(tmp_path / name): options | {"item_filter": FILTER} for name, options in asked.items()
    }
    settings = {"FEEDS": feeds, "COMITY_USES": "crawl,train-ai", "COMITY_DROP_UNUSABLE": False}
    settings |= {"COMITY_DEFAULTS": {"present": "deny"}, "COMITY_SKIP_UNUSABLE": False}
    crawl(Pages, settings, origin=site.origin)
    allowed = ["a", "a again", "chunks", "failed HttpError", "final", "zipped"]
    assert sorted(item["name"] for item in lines(tmp_path / "asked.jsonl")) == allowed
    assert sorted(item["name"] for item in lines(tmp_path / "declared.jsonl")) == allowed
    assert not read_back(tmp_path / "both.warc.gz")


def test_a_filter_without_uses_is_a_mistake() -> None:
    with pytest.raises(SettingsError, match="set COMITY_USES"):
        PermittedFor({})
    with pytest.raises(SettingsError, match="`tr ain`"):
        PermittedFor({"comity_uses": ["tr ain"]})
    with pytest.raises(SettingsError, match="`3`"):
        PermittedFor({"comity_uses": 3})


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize(
    ("decision", "accepted"),
    [
        ({"verdict": "allow"}, True),
        ({"verdict": "deny"}, False),
        ({"verdict": "allow", "until": (datetime.now(UTC) + timedelta(days=1)).isoformat()}, True),
        (
            {"verdict": "allow", "until": (datetime.now(UTC) - timedelta(seconds=1)).isoformat()},
            False,
        ),
        ({"verdict": "allow", "until": "soon"}, False),
        ({"verdict": "allow", "until": "2999-01-01"}, False),  # of no time zone
        ({"verdict": "allow", "until": 3}, False),
        ({}, False),
        (None, False),
    ],
)
def test_what_a_filter_takes_for_a_permission(decision: Any, accepted: bool) -> None:
    chosen = PermittedFor({"comity_uses": ["train"]})
    assert chosen.accepts({"permissions": {"schema": 1, "uses": {"train": decision}}}) is accepted
    assert not chosen.accepts({"permissions": {"schema": 1, "uses": {"index": decision}}})
    assert not chosen.accepts({"permissions": {"schema": 1, "uses": []}})
    assert not chosen.accepts({"permissions": None})
    assert not chosen.accepts({})
    assert not chosen.accepts(3)


# CSV


@pytest.mark.requirement("MEET-3")
def test_csv_has_json_where_values_are_nested(site: Loopback, crawl: Crawl, tmp_path: Path) -> None:
    path, beside = tmp_path / "items.csv", tmp_path / "items.jsonl"
    feeds = {
        str(path): {"fields": ["name", "nested", "words", "permissions"]},
        str(beside): {"format": "jsonlines"},
    }
    crawl(Pages, {"FEEDS": feeds, "COMITY_DROP_UNUSABLE": False}, origin=site.origin)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    items = lines(beside)
    assert [json.loads(row["permissions"]) for row in rows] == [
        item["permissions"] for item in items
    ]
    assert [json.loads(row["nested"] or "[]") for row in rows] == [
        item.get("nested", []) for item in items
    ]
    assert {row["words"] for row in rows} == {"x,y", ""}  # a list of texts, as Scrapy writes it


class OwnCsv(CsvItemExporter):
    def serialize_field(self, field: Any, name: str, value: Any) -> Any:
        return "own"


def test_the_csv_exporter_of_the_project_stays(
    site: Loopback, crawl: Crawl, tmp_path: Path
) -> None:
    path = tmp_path / "items.csv"
    own = {
        "FEED_EXPORTERS": {"csv": "scrapy.exporters.CsvItemExporter"},
        "COMITY_DROP_UNUSABLE": False,
    }
    crawl(Pages, {"FEEDS": {str(path): {"fields": ["permissions"]}}, **own}, origin=site.origin)
    assert "{'schema': 1" in path.read_text()


def test_a_serializer_of_a_field_stays() -> None:
    written = CsvExporter(BytesIO()).serialize_field(
        {"serializer": lambda value: "own"}, "nested", [{"a": 1}]
    )
    assert written == "own"


# The command line


def command(
    folder: Path, *arguments: str, program: tuple[str, ...] = ("-m", "scrapy")
) -> list[str]:
    settings = (
        "-s",
        "COMITY_MIN_DELAY=0",
        "-s",
        "COMITY_AGENT=testbot",
        "-s",
        f"COMITY_STORE={folder / 'store.sqlite'}",
    )
    return [sys.executable, *program, "crawl", "site", *settings, *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "SCRAPY_SETTINGS_MODULE": "comity.crawler.settings"}


def run(folder: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(folder, *arguments, **options),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.requirement("MEET-3")
def test_the_name_says_the_format_on_the_command_line(site: Loopback, tmp_path: Path) -> None:
    url = ("-a", f"url={site.url('/a')}")
    for output in ("-O", "-o"):  # anew, and behind what stands there
        done = run(
            tmp_path, *url, output, "pages.warc.gz", output, "pages.warc", output, "items.csv"
        )
        assert done.returncode == 0, done.stderr
    for name in ("pages.warc", "pages.warc.gz"):
        assert passes_warcio_check(tmp_path / name)
        assert [record.kind for record in records(tmp_path / name)] == [
            "warcinfo",
            "resource",
            "metadata",
            "response",
            "request",
        ] * 2
        assert [record["title"] for record in read_back(tmp_path / name)] == ["A", "A"]
    assert (tmp_path / "pages.warc").read_bytes().startswith(b"WARC/1.1")
    assert (tmp_path / "pages.warc.gz").read_bytes().startswith(b"\x1f\x8b")
    with (tmp_path / "items.csv").open(newline="") as file:
        assert json.loads(next(csv.DictReader(file))["permissions"])["agent"] == "testbot"


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (
            "items.jsonl.gz",
            "items.jsonl.gz: this name does not tell the format of the compressed file",
        ),
        (
            "pages.warc.gz:warc",
            "pages.warc.gz: the format `warc` does not fit the name: leave the format out",
        ),
        (
            "pages.warc:warc.gz",
            "pages.warc: the format `warc.gz` does not fit the name: leave the format out",
        ),
        (
            "ftp://me:secret@127.0.0.1/pages.warc:warc.gz",
            "ftp://***@127.0.0.1/pages.warc: the format `warc.gz` does not fit the name",
        ),
    ],
)
def test_what_cannot_be_meant_is_told(output: str, told: str, tmp_path: Path) -> None:
    done = run(tmp_path, "-a", "url=http://127.0.0.1:9/", "-O", output)
    assert done.returncode == 1
    assert f"comity: {told}" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


WITHOUT_WARCIO = (
    "import sys; sys.modules['warcio'] = None; from scrapy.cmdline import execute; execute()"
)


def test_what_is_not_installed_is_told(site: Loopback, tmp_path: Path) -> None:
    without = ("-c", WITHOUT_WARCIO)
    done = run(tmp_path, "-a", f"url={site.url('/a')}", "-O", "pages.warc.gz", program=without)
    assert done.returncode == 1
    assert (
        done.stderr.splitlines()[-1]
        == 'comity: pages.warc.gz needs warcio: pip install "comity[warc]"'
    )
    assert "Traceback" not in done.stderr
    done = run(
        tmp_path, "-a", f"url={site.url('/a')}", "-O", "items.jsonl", program=without
    )  # nothing else needs it
    assert done.returncode == 0
    assert len(lines(tmp_path / "items.jsonl")) == 1


@pytest.mark.requirement("SEC-6")
def test_kill_9_leaves_every_whole_record(serve: Serve, tmp_path: Path) -> None:
    linked = "".join(f'<a href="/{number}">{number}</a>' for number in range(400))
    server = serve({"/": linked, **{f"/{number}": page(str(number)) for number in range(400)}})
    path = tmp_path / "pages.warc.gz"
    arguments = command(tmp_path, "-a", f"url={server.origin}", "-O", path.name)
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(arguments, cwd=tmp_path, env=environment(), stderr=log) as process,
    ):
        while len(server.seen) < 40 and process.poll() is None:
            time.sleep(0.01)  # between two looks at another process
        process.kill()
    reader = open_reader(path)
    found = [record for part in reader.parts() for batch in reader.read(part) for record in batch]
    items = [record for record in found if isinstance(record, dict)]
    assert len(items) >= 30
    assert len(found) - len(items) <= 1  # what was being written
    assert all(
        item["permissions"]["uses"]["crawl"]["verdict"] == "allow" and item["html"]
        for item in items[:-1]
    )
