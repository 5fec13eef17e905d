"""A file takes the place of another whole, or not at all."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from comity.dataset.expire import expire
from comity.dataset.export.export import export
from comity.dataset.files.formats import OTHERS, format_of, open_reader, open_writer
from comity.dataset.files.replacement import Replacement
from comity.dataset.job import open_readers
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError
from tests.dataset.files.test_jsonl import everything
from tests.selection import one_in


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"old")
    return path


def test_the_old_file_stands_until_the_new_one_is_whole(path: Path) -> None:
    with Replacement(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert [*path.parent.iterdir()] == [path]


def test_an_error_leaves_the_old_file_and_nothing_else(path: Path) -> None:
    def fail() -> None:
        with Replacement(path) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_bytes() == b"old"
    assert [*path.parent.iterdir()] == [path]


def test_what_a_killed_process_left_is_written_over(path: Path) -> None:
    path.with_name(".a.jsonl.part").write_bytes(b"left by a killed process")
    with Replacement(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


def test_two_do_not_write_the_same_file(path: Path) -> None:
    with Replacement(path) as file:
        file.write(b"new")
        with (
            pytest.raises(DatasetError, match=r"a\.jsonl is being written by another process"),
            Replacement(path),
        ):
            pass
    assert path.read_bytes() == b"new"


def test_whoever_comes_when_it_is_done_writes_a_file_of_its_own(path: Path) -> None:
    """And not the one that has the name by now, on which it may have waited."""
    for number in range(50):
        threads = [
            threading.Thread(target=_replace, args=(path, f"{number} {name}" * 1000))
            for name in "ab"
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert path.read_text(encoding="utf-8") in (f"{number} a" * 1000, f"{number} b" * 1000)


def _replace(path: Path, text: str) -> None:
    try:
        with Replacement(path) as file:
            file.write(text.encode())
    except DatasetError:
        pass


@contextmanager
def room_for(octets: int) -> Iterator[None]:
    """In each file that is written."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (octets, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.parquet"])
@pytest.mark.parametrize("octets", one_in(3, [1000, 0, 1_000_000]))
def test_no_room_is_told_and_leaves_the_old_file(name: str, octets: int, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")
    chance = random.Random(1)
    records = [{"text": chance.randbytes(60).hex()} for _ in range(20_000)]

    def write() -> None:
        with room_for(octets), open_writer(path) as writer:
            for place in range(0, len(records), 5000):
                writer.write(writer.encode(records[place : place + 5000]))

    with pytest.raises(DatasetError, match=rf"{name} cannot be written: File too large"):
        write()
    assert path.read_bytes() == b"old"
    assert [*tmp_path.iterdir()] == [path]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.mkdir()
    with (
        pytest.raises(DatasetError, match=r"a\.jsonl cannot be written: Is a directory"),
        open_writer(path),
    ):
        pass
    assert [*tmp_path.iterdir()] == [path]


def test_a_link_stays_a_link_and_permissions_stay(path: Path) -> None:
    path.chmod(0o640)
    link = path.with_name("link.jsonl")
    link.symlink_to(path)
    with Replacement(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.jsonl", "jsonl"),
        ("A.JL.GZ", "jsonl"),
        ("a.b.parquet", "parquet"),
        ("a.warc.gz", "warc"),
        ("a.warc", "warc"),
    ],
)
def test_the_name_says_the_format(name: str, format: str) -> None:  # noqa: A002
    assert format_of(Path(name)) == format


@pytest.mark.parametrize("name", ["a.gz", "a", "jsonl"])
def test_a_name_that_says_none(name: str) -> None:
    with pytest.raises(DatasetError, match=r"unknown format.*\.parquet"):
        format_of(Path(name))


def test_the_hint_for_a_file_to_write_is_what_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(
        DatasetError,
        match=r"\.jsonl, \.jl, \.jsonl\.gz, \.jl\.gz, \.jsonl\.zst, \.jl\.zst, \.parquet, \.arrow",
    ):
        open_writer(tmp_path / "a.json")


@pytest.mark.parametrize("ending", OTHERS)
def test_another_ending_names_the_way(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"")
    for place in (path, tmp_path):
        with pytest.raises(DatasetError, match=rf"^{path}: {ending} cannot be read: ") as caught:
            open_readers([place])
        remedy = str(caught.value).partition(" cannot be read: ")[2]
        assert ("{" in OTHERS[ending]) == (str(tmp_path / "a") in remedy)
        assert "{" not in remedy


def test_the_remedies_of_json_lists_of_urls_and_packed_files(tmp_path: Path) -> None:
    url = "https://a.test/"
    (tmp_path / "a.json").write_text(json.dumps([{"url": url}]))
    (tmp_path / "b.txt").write_text(f"{url}\n")
    with tarfile.open(tmp_path / "c.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "a.json", "0.json")
    lines = []
    for name in ("a.json", "b.txt", "c.tar.gz"):
        with pytest.raises(DatasetError) as caught:
            open_reader(tmp_path / name)
        lines.append(str(caught.value).partition("`")[2].rpartition("`")[0])
    duckdb.sql(lines[0].partition('"')[2].rpartition('"')[0])
    for line in lines[1:]:
        subprocess.run(line, shell=True, check=True)  # as a person would
    readers = open_readers([tmp_path / name for name in ("a.parquet", "b.csv")])
    assert [[one["url"] for one in everything(reader)] for reader in readers] == [[url], [url]]  # type: ignore[call-overload]
    assert len(everything(open_reader(tmp_path / "c.tar"))) == 1


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"a\.jsonl cannot be read: No such file"):
        open_reader(tmp_path / "a.jsonl")
    with (
        pytest.raises(DatasetError, match=r"a\.jsonl cannot be written: No such file"),
        open_writer(tmp_path / "b" / "a.jsonl"),
    ):
        pass


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("put", [Path.symlink_to, Path.hardlink_to, lambda at, _: os.mkfifo(at)])
def test_what_somebody_put_where_the_new_file_is_written_is_left_alone(
    path: Path, put: Callable[[Path, Path], None]
) -> None:
    victim = path.with_name("victim")
    victim.write_bytes(b"precious")
    put(path.with_name(f".{path.name}.part"), victim)
    with (
        pytest.raises(
            DatasetError, match=r"/\.[a-z.]+\.part is a link, or no plain file: remove it"
        ),
        Replacement(path) as file,
    ):
        file.write(b"new")
    assert (victim.read_bytes(), path.read_bytes()) == (b"precious", b"old")


@pytest.mark.requirement("SEC-6")
def test_a_link_that_nobody_has_named_is_replaced(path: Path) -> None:
    victim, link = path.with_name("victim"), path.with_name("a.jsonl.croissant.json")
    victim.write_bytes(b"precious")
    link.symlink_to(victim)
    with Replacement(link, is_named=False) as file:
        file.write(b"new")
    assert (victim.read_bytes(), link.read_bytes(), link.is_symlink()) == (
        b"precious",
        b"new",
        False,
    )


SIDE_FILES = [
    "{}.unreadable.jsonl",
    "{}.expired.jsonl",
    "{}.croissant.json",
    ".{}.croissant.json.before",
    ".{}.croissant.json.replaced",
    ".{}.croissant.json.part",
]


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("put", [Path.symlink_to, Path.hardlink_to])
@pytest.mark.parametrize("name", SIDE_FILES)
@pytest.mark.parametrize("job", ["export", "expire"])
def test_links_under_the_names_of_side_files_lead_nowhere(
    tmp_path: Path,
    make_record: Callable[..., dict[str, Any]],
    job: str,
    name: str,
    put: Callable[[Path, Path], None],
) -> None:
    """In a folder where others may write too."""
    crawled, data, victim = tmp_path / "crawled.jsonl", tmp_path / "data.jsonl", tmp_path / "victim"
    gone = {"until": "2020-01-01T00:00:00Z"}
    lines = (
        json.dumps(make_record(train={}, preserve=gone if number else {})) for number in range(2)
    )
    (crawled if job == "export" else data).write_text("\n".join([*lines, "no JSON"]))
    victim.write_bytes(b"{}")
    put(tmp_path / name.format("data.jsonl"), victim)
    now = datetime(2026, 11, 21, tzinfo=UTC)
    with suppress(DatasetError):  # or it is done
        if job == "export":
            export([crawled], data, Terms.of(["train"], now=now))
        else:
            expire([data], now)
    assert victim.read_bytes() == b"{}"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("a.zip", ".zip cannot be read: unpack it: `unzip a.zip -d a`, or name it .wacz if"),
        ("a.ARC.gz", ".arc.gz cannot be read: convert it: `warcio recompress a.ARC.gz a.warc.gz`"),
        ("a.arc", ".arc cannot be read: convert it: `warcio recompress a.arc a.warc.gz`"),
        ("a.warc.wet.gz", ".wet.gz cannot be read: it is WARC: rename it to a.warc.warc.gz"),
        ("a.warc.wat.gz", ".wat.gz cannot be read: it has no pages: take the WARC or WET"),
        ("a.warc.zst", ".warc.zst cannot be read: unpack it: `zstd -d a.warc.zst`"),
        ("cc-index-table.paths.gz", ".paths.gz cannot be read: it is a list of files: download"),
        ("cluster.idx", ".idx cannot be read: it is an index of an index: name the .cdx.gz files"),
        ("a.har", ".har cannot be read: convert it to WARC"),
        ("a.gz", "unknown format of records: write a name that ends in .jsonl"),
    ],
)
def test_a_format_that_is_not_read_names_the_way_to_one_that_is(name: str, remedy: str) -> None:
    with pytest.raises(DatasetError, match=re.escape(f"{name}: {remedy}")):
        format_of(Path(name))
