"""Feeds of crawls with JOBDIR or COMITY_STATE: which are added to, which are in parts, and where whole records end."""

from __future__ import annotations

import csv
import gzip
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Spider
from scrapy.exporters import BaseItemExporter, JsonLinesItemExporter
from scrapy.extensions.feedexport import BlockingFeedStorage
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from comity.crawler.feeds import register
from comity.crawler.feeds.parquet import ParquetExporter
from comity.crawler.feeds.storage import ENDS, FileStorage
from comity.crawler.feeds.warc_records import RecordWriter
from comity.crawler.frontier.item_barrier import PARTS, STORED
from comity.dataset.files.columns.arrow_schema import EXTRA
from comity.dataset.files.formats import open_reader
from comity.dataset.files.warc.records import WarcRecord, records
from comity.gate.options import Options, SettingsError


class Own(BaseItemExporter):
    """An exporter of which nobody knows when its file can be read."""

    def export_item(self, item: Any) -> None:
        raise NotImplementedError


class OwnLines(JsonLinesItemExporter):
    pass


class Uploads(BlockingFeedStorage):
    def __init__(self, uri: str, *, feed_options: dict[str, Any] | None = None) -> None:
        pass

    def _store_in_thread(self, file: Any) -> None:
        raise NotImplementedError


MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
PLUGIN = {"postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]}


def registered(
    feeds: dict[Any, dict[str, Any]], place: str = "JOBDIR", **settings: Any
) -> Settings:
    filled = Settings(
        {"FEEDS": feeds, "FEED_EXPORTERS": {"own": Own, "own-lines": OwnLines}, **settings}
    )
    register(filled, Options.from_settings(filled), place=place)
    return filled


@pytest.mark.requirement("STATE-2")
@pytest.mark.parametrize(
    ("uri", "feed", "way"),
    [
        ("items.jsonl", {}, "lines"),
        ("items.jl", {}, "lines"),
        ("items", {"format": "jsonlines"}, "lines"),
        ("items", {"format": "own-lines"}, "lines"),
        ("stdout:", {"format": "jsonl"}, "lines"),
        ("file:///tmp/items.csv", {}, "rows"),
        ("items.csv", {"item_export_kwargs": {"delimiter": ";"}}, "rows"),
        ("pages.warc", {}, "records"),
        ("pages.warc.gz", {"format": "warc.gz"}, "records"),
        ("a/%(batch_time)s.parquet", {}, PARTS),
        ("a/%(batch_time)s.json", {}, PARTS),
        ("a/%(batch_time)s.xml", {}, PARTS),
        ("a/%(batch_time)s.pickle", {}, PARTS),
        ("a/%(batch_time)s", {"format": "own"}, PARTS),
        ("a/%(batch_time)s.jsonl.gz", {"format": "jsonl", **PLUGIN}, PARTS),
        ("a/%(batch_time)s.jsonl", {"encoding": "utf-16"}, PARTS),
        ("a/%(batch_time)s.csv", {"item_export_kwargs": {"quotechar": "'"}}, PARTS),
        ("ftp://127.0.0.1/%(batch_time)s.jsonl", {}, PARTS),
        ("own://items/%(batch_time)s.jsonl", {}, PARTS),
    ],
)
def test_feeds_are_added_to_where_every_whole_record_can_be_read(
    uri: str, feed: dict[str, Any], way: str
) -> None:
    settings = registered({uri: feed}, FEED_STORAGES={"own": Uploads})
    [(name, kept)] = settings.getdict("FEEDS").items()
    told: dict[str, Any] = (
        {"item_export_kwargs": {"columns": {}}} if uri.endswith("parquet") else {}
    )
    assert kept == {**feed, **told, STORED: way}
    assert (name == uri) is (way != PARTS)
    assert settings.getdict("FEED_STORAGES") == {
        "": FileStorage,
        "file": FileStorage,
        "own": Uploads,
    }


@pytest.mark.requirement("STATE-2")
def test_tags_in_a_file_of_their_own_are_stored_too() -> None:
    settings = registered({"items.jsonl": {}}, COMITY_TAG="sidecar:tags.jsonl")
    assert [feed[STORED] for feed in settings.getdict("FEEDS").values()] == ["lines", "lines"]


@pytest.mark.requirement("STATE-2")
def test_parts_of_two_workers_have_two_names() -> None:
    names = {
        name
        for _ in range(2)
        for name in registered({"a/%(batch_time)s.parquet": {}}).getdict("FEEDS")
    }
    assert len(names) == 2
    assert all(name.startswith("a/%(batch_time)s-") and name.endswith(".parquet") for name in names)


@pytest.mark.requirement("STATE-2")
@pytest.mark.parametrize(
    ("uri", "feed", "settings", "told"),
    [
        (
            "items.parquet",
            {},
            {},
            "write `items/%(batch_time)s.parquet` to get files that are complete, or",
        ),
        (
            "out/items-%(batch_id)d.json",
            {"batch_item_count": 10},
            {},
            "write `out/items-%(batch_id)d/%(batch_time)s.json`",
        ),
        ("out/items-%(time)s.xml", {}, {}, "write `out/items-%(time)s/%(batch_time)s.xml`"),
        (
            "items.jsonl.gz",
            {"format": "jsonl", **PLUGIN},
            {},
            "write `items/%(batch_time)s.jsonl.gz`",
        ),
        (
            "ftp://127.0.0.1/items.jsonl",
            {},
            {},
            "write `ftp://127.0.0.1/items/%(batch_time)s.jsonl`",
        ),
        (
            "ftp://me:a/secret@127.0.0.1/items.jsonl",
            {},
            {},
            "comity: ftp://***@127.0.0.1/items.jsonl: a kill would lose items in spite of JOBDIR:"
            " write `ftp://***@127.0.0.1/items/%(batch_time)s.jsonl` to get",
        ),
        ("items.jsonl", {}, {"FEED_STORAGES": {"": Uploads}}, "write `items/%(batch_time)s.jsonl`"),
        ("stdout:", {"format": "json"}, {}, "write JSON Lines to standard output (-o -:jsonl)"),
        (
            "items.jsonl",
            {},
            {"FEED_URI": "items.json"},
            "FEED_URI is not for JOBDIR: write FEEDS = ",
        ),
    ],
)
def test_feeds_that_a_kill_would_break_are_refused(
    uri: str, feed: dict[str, Any], settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        registered({uri: feed}, **settings)
    assert told in str(raised.value)


def test_feeds_of_a_crawl_that_does_not_go_on_stay_as_they_are() -> None:
    settings = registered({"items.parquet": {}, "items.json": {}}, place="")
    assert settings.getdict("FEEDS") == {"items.parquet": {}, "items.json": {}}
    assert settings.getdict("FEED_STORAGES") == {}


# Where the whole records end


def end_of(way: str, octets: bytes, folder: Path, name: str = "file") -> int:
    path = folder / name
    path.write_bytes(octets)
    with path.open("rb") as file:
        return ENDS[way](file)


@pytest.mark.requirement("STATE-2")
@pytest.mark.parametrize(
    ("octets", "end"),
    [
        (b"", 0),
        (b'{"a": 1}\n', 9),
        (b'{"a": 1}\n{"b', 9),
        (b'{"a', 0),
        (b"\n" + b"x" * 200_000, 1),
        (b"x" * 70_000 + b"\ny", 70_001),
    ],
)
def test_lines_end_with_the_last_line_end(octets: bytes, end: int, tmp_path: Path) -> None:
    assert end_of("lines", octets, tmp_path) == end


rows = st.lists(
    st.lists(st.text(st.sampled_from('a",\n\r'), max_size=6), min_size=2, max_size=2), max_size=6
)


@pytest.mark.requirement("STATE-2")
@given(rows, st.data())
def test_rows_that_are_whole_stay(values: list[list[str]], data: st.DataObject) -> None:
    ends = [0]
    file = io.StringIO(newline="")
    for row in values:
        csv.writer(file).writerow(row)
        ends.append(len(file.getvalue()))
    octets = file.getvalue().encode()
    cut = data.draw(st.integers(0, len(octets)))
    end = ENDS["rows"](io.BytesIO(octets[:cut]))
    assert end == max(end for end in ends if end <= cut)


def archive(*, compressed: bool) -> tuple[bytes, list[int]]:
    """An archive of five records, and where each of them ends."""
    file, ends = io.BytesIO(), [0]
    writer = RecordWriter(file, compressed=compressed)
    writer.write_info(user_agent="testbot", description="test")
    ends.append(file.tell())
    for body in (b"", b"plain " * 50, bytes(range(256)) * 90, gzip.compress(b"inner") * 3):
        writer.write("metadata", MOMENT, body, {"WARC-Target-URI": "http://a.example/"})
        ends.append(file.tell())
    return file.getvalue(), ends


@pytest.mark.requirement("STATE-2")
@pytest.mark.parametrize("compressed", [False, True])
def test_records_that_are_whole_stay(compressed: bool, tmp_path: Path, in_full: bool) -> None:
    octets, ends = archive(compressed=compressed)
    name = "pages.warc.gz" if compressed else "pages.warc"
    cuts = {cut for end in ends for cut in range(end - 12, end + 90)} | set(
        range(0, len(octets), 1 if in_full else 371)
    )
    for cut in sorted(cut for cut in cuts if 0 <= cut <= len(octets)):
        assert end_of("records", octets[:cut], tmp_path, name) == max(
            end for end in ends if end <= cut
        ), cut


@pytest.mark.requirement("STATE-2")
@pytest.mark.parametrize(
    "octets", [gzip.compress(archive(compressed=False)[0]), b"no archive at all"]
)
def test_file_of_another_kind_stays_as_it_is(octets: bytes, tmp_path: Path) -> None:
    assert end_of("records", octets, tmp_path, "pages.warc.gz") == len(octets)


def test_what_follows_the_cut_is_read(tmp_path: Path) -> None:
    octets, ends = archive(compressed=True)
    path = tmp_path / "pages.warc.gz"
    torn = octets[: ends[-1] - 30]
    path.write_bytes(torn[: end_of("records", torn, tmp_path, path.name)] + octets)
    with path.open("rb") as file:
        found = [*records(file, 0, path.stat().st_size)]
    assert len(found) == 9
    assert all(isinstance(record, WarcRecord) for record in found)


@pytest.mark.requirement("STATE-2")
def test_parts_of_a_parquet_feed_are_one_table(tmp_path: Path) -> None:
    """A column keeps the type of the first part, later columns come behind, and nothing is lost."""
    [feed] = registered({"a/%(batch_time)s.parquet": {}}).getdict("FEEDS").values()
    crawler = get_crawler(
        Spider, {"COMITY_STORE": str(tmp_path / "policies.sqlite"), "COMITY_TAG": "off"}
    )
    items: list[dict[str, Any]] = [
        {"url": "a", "price": 1},
        {"url": "b", "price": 1.5, "seen": "today"},
        {"url": "c"},
    ]
    paths = [tmp_path / f"{number}.parquet" for number in range(len(items))]
    for path, item in zip(paths, items, strict=True):
        with path.open("wb") as file:
            exporter = ParquetExporter.from_crawler(crawler, file, **feed["item_export_kwargs"])
            exporter.start_exporting()
            exporter.export_item(item)
            exporter.finish_exporting()
    schemas = [pq.read_schema(path) for path in paths]
    assert [schema.names for schema in schemas] == [
        ["url", "price", EXTRA],
        *[["url", "price", "seen", EXTRA]] * 2,
    ]
    assert {schema.field("price").type for schema in schemas} == {pa.int64()}
    assert pq.ParquetDataset(paths, schema=schemas[-1]).read().num_rows == 3
    readers = [open_reader(path) for path in paths]
    found = [
        record
        for reader in readers
        for part in reader.parts()
        for batch in reader.read(part)
        for record in batch
    ]
    assert found == items
