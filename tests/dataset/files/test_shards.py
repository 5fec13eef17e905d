"""Shards of webdataset: samples and their files, and nothing that is not a plain file."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comity.dataset.expire import expire
from comity.dataset.export.export import export
from comity.dataset.export.folder_export import export_folder
from comity.dataset.files.formats import open_reader, open_writer
from comity.dataset.files.shards import reader as shards
from comity.dataset.files.shards import works
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError, Record, Unreadable
from comity.dataset.stats import stats
from comity.dataset.tagging.columns import Columns
from comity.dataset.tagging.folder_tagging import tag_folder
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.record_tagger import Making
from comity.dataset.tagging.tagging import tag_dataset
from comity.policies.registry import OptOuts, read_registry
from tests.dataset.files.test_jsonl import everything
from tests.dataset.tagging.archives import NOW, Policies
from tests.dataset.tagging.test_tagging import ALLOWED, OWN, SITES, URLS

IMAGES = Path(__file__).parents[2] / "policies" / "formats" / "plus" / "files"
REFUSING = (IMAGES / "training.jpg").read_bytes()  # PLUS: data mining is prohibited
PLAIN = b"\xff\xd8\xff\xe0 an image"
QUESTION = Question.of(OWN, now=NOW, captured_at="2024-06-01")
JUDGE = Judge(QUESTION, Policies(SITES))
# c.test has rules about elements of its pages, and an image may be one of them.
PERMITTED = [url for url in ALLOWED if "c.test" not in url]
TERMS = Terms.of(["train"], now=NOW)

Files = list[tuple[str, bytes]]


def shard(path: Path, files: Files, form: int = tarfile.PAX_FORMAT) -> Path:
    with tarfile.open(path, "w", format=form) as archive:
        for name, octets in files:
            head = tarfile.TarInfo(name)
            head.size = len(octets)
            archive.addfile(head, io.BytesIO(octets))
    return path


def sample(key: str, url: str, image: bytes = PLAIN, **more: Any) -> Files:
    """As img2dataset writes it."""
    fields = {"url": url, "caption": f"Of {url}", "key": key, "status": "success", **more}
    return [
        (f"{key}.jpg", image),
        (f"{key}.json", json.dumps(fields).encode()),
        (f"{key}.txt", f"Of {url}".encode()),
    ]


def samples(urls: list[str] = URLS) -> Files:
    return [file for number, url in enumerate(urls) for file in sample(f"{number:09}", url)]


def read_by_webdataset(path: Path) -> list[dict[str, Any]]:
    import webdataset

    return [*webdataset.WebDataset(str(path), shardshuffle=False)]


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_a_sample_is_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: int) -> None:
    long = "folder/" + "0" * (50 if form == tarfile.USTAR_FORMAT else 300)
    files = [("folder/README", b"x"), ("__meta__.json", b"{}")]
    files += [*sample(long, "https://a.test/1"), ("b.seg.png", b"1"), ("b.cls", b"2")]
    path = shard(tmp_path / "a.tar", files, form)
    for part in (1, 10**6):
        monkeypatch.setattr(shards, "PART", part)
        reader = open_reader(path)
        assert sum(part.octets for part in reader.parts()) == path.stat().st_size
        first, second = everything(reader)
        assert first == {
            "__key__": long,
            "url": "https://a.test/1",
            "caption": "Of https://a.test/1",
            "key": long,
            "status": "success",
            "text": "Of https://a.test/1",
            "__files__": [f"{long}.jpg"],
        }
        assert second == {"__key__": "b", "__files__": ["b.seg.png", "b.cls"]}


def test_samples_are_tagged_and_exported_as_a_shard(tmp_path: Path) -> None:
    path = shard(tmp_path / "00000.tar", samples())
    tagged = tag_dataset([path], tmp_path / "tagged.tar", JUDGE)
    assert tagged.counts.kept == len(URLS)
    export([tmp_path / "tagged.tar"], tmp_path / "train.tar", TERMS)
    before = {name: octets for name, octets in samples() if name.endswith(".jpg")}
    with tarfile.open(tmp_path / "train.tar") as archive:
        names = archive.getnames()
        kept = [json.load(archive.extractfile(name)) for name in names if name.endswith("json")]  # type: ignore[arg-type]
        for name in names:
            if name.endswith("jpg"):
                assert archive.extractfile(name).read() == before[name]  # type: ignore[union-attr]
    assert [one["url"] for one in kept] == PERMITTED
    assert all(one["permissions"]["uses"]["train"]["verdict"] == "allow" for one in kept)
    records = everything(open_reader(tmp_path / "train.tar"))
    assert [one["__key__"] for one in records if isinstance(one, dict)] == [
        f"{URLS.index(url):09}" for url in PERMITTED
    ]
    assert stats([tmp_path / "tagged.tar"], NOW).records == len(URLS)


def test_the_files_of_a_refused_element_are_not_exported(tmp_path: Path) -> None:
    """c.test refuses an element of its pages, and an element may be in any file of a sample."""
    path = shard(tmp_path / "a.tar", sample("0", ALLOWED[0], page="https://c.test/1"))
    tag_dataset([path], tmp_path / "tagged.tar", JUDGE, Making(Columns(page_url="page")))
    export([tmp_path / "tagged.tar"], tmp_path / "train.tar", TERMS)
    with tarfile.open(tmp_path / "train.tar") as archive:
        assert archive.getnames() == ["0.json", "0.txt"]
        assert archive.extractfile("0.txt").read() == b""  # type: ignore[union-attr]
        assert b'"caption":""' in archive.extractfile("0.json").read()  # type: ignore[union-attr]


def test_samples_become_rows_of_a_table(tmp_path: Path) -> None:
    path = shard(tmp_path / "00000.tar", samples())
    tag_dataset([path], tmp_path / "out.parquet", JUDGE)
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column("__key__").to_pylist() == [f"{number:09}" for number in range(len(URLS))]
    assert table.column("__files__").to_pylist()[0] == ["000000000.jpg"]
    assert table.column("permissions").null_count == 0


@pytest.mark.requirement("IMG-1")
def test_metadata_of_an_image_refuses(tmp_path: Path) -> None:
    path = shard(tmp_path / "a.tar", sample("0", ALLOWED[0], REFUSING) + sample("1", ALLOWED[0]))
    tag_dataset([path], tmp_path / "out.jsonl", JUDGE)
    refused, permitted = everything(open_reader(tmp_path / "out.jsonl"))
    assert isinstance(refused, dict)
    assert isinstance(permitted, dict)
    use = refused["permissions"]["uses"]["train"]
    assert use["verdict"] == "deny"
    rules = {refused["permissions"]["reasons"][number]["rule"] for number in use["because"]}
    assert any(rule.startswith("plus.") for rule in rules), rules
    assert permitted["permissions"]["uses"]["train"]["verdict"] == "allow"


def test_a_registry_names_the_image_or_its_original(tmp_path: Path) -> None:
    """img2dataset makes images smaller, and writes the SHA-256 of the original."""
    original, other = "ab" * 32, "cd" * 32
    listed = f"{hashlib.sha256(PLAIN).hexdigest()}\n{original}\n".encode()
    registry = read_registry("works", "lines", io.BytesIO(listed), lambda _: False)
    agent = replace(OWN, opt_outs=OptOuts((registry,)))
    path = shard(
        tmp_path / "a.tar",
        [
            *sample("0", ALLOWED[0]),
            *sample("1", ALLOWED[0], b"smaller", sha256=original),
            *sample("2", ALLOWED[0], b"smaller", sha256=other),
        ],
    )
    judge = Judge(Question.of(agent, now=NOW, captured_at="2024-06-01"), Policies(SITES))
    tag_dataset([path], tmp_path / "out.jsonl", judge)
    tags = [
        one["permissions"]
        for one in everything(open_reader(tmp_path / "out.jsonl"))
        if isinstance(one, dict)
    ]
    assert [tag["uses"]["train"]["verdict"] for tag in tags] == ["deny", "deny", "allow"]


def test_the_page_that_shows_the_image_counts_too(tmp_path: Path) -> None:
    path = shard(tmp_path / "a.tar", sample("0", ALLOWED[0], page="https://b.test/private/1"))
    tag_dataset([path], tmp_path / "out.jsonl", JUDGE, Making(Columns(page_url="page")))
    [one] = everything(open_reader(tmp_path / "out.jsonl"))
    assert isinstance(one, dict)
    assert one["permissions"]["uses"]["train"]["verdict"] == "deny"


def test_a_folder_of_img2dataset(tmp_path: Path) -> None:
    """Its tables have the rows of the shards again, and its statistics are no records."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(2):
        shard(folder / f"0000{number}.tar", samples())
        pq.write_table(pa.table({"url": URLS}), folder / f"0000{number}.parquet")
        (folder / f"0000{number}_stats.json").write_text("{}")
    tag_folder([folder], tmp_path / "tagged", JUDGE)
    export_folder([tmp_path / "tagged"], tmp_path / "train", TERMS)
    assert sorted(path.name for path in (tmp_path / "train").iterdir()) == [
        "00000.tar",
        "00001.tar",
    ]
    records = everything(open_reader(tmp_path / "train" / "00001.tar"))
    assert [one["url"] for one in records if isinstance(one, dict)] == PERMITTED


def test_records_that_expire_leave_the_shard(tmp_path: Path) -> None:
    path = shard(tmp_path / "a.tar", samples())
    tag_dataset([path], tmp_path / "tagged.tar", JUDGE)
    counts = expire([tmp_path / "tagged.tar"], NOW, [ALLOWED[0]])
    assert counts.records - counts.kept == 1
    urls = [
        one["url"]
        for one in everything(open_reader(tmp_path / "tagged.tar"))
        if isinstance(one, dict)
    ]
    assert urls == [url for url in URLS if url != ALLOWED[0]]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_webdataset_reads_it(tmp_path: Path) -> None:
    path = shard(tmp_path / "00000.tar", samples())
    tag_dataset([path], tmp_path / "tagged.tar", JUDGE)
    export([tmp_path / "tagged.tar"], tmp_path / "train.tar", TERMS)
    kept = read_by_webdataset(tmp_path / "train.tar")
    assert [json.loads(one["json"])["url"] for one in kept] == PERMITTED
    whole = {one["__key__"]: one for one in read_by_webdataset(path)}
    for one in kept[:2]:
        assert (one["jpg"], one["txt"]) == (
            whole[one["__key__"]]["jpg"],
            whole[one["__key__"]]["txt"],
        )


# Bad input

SPECIAL: list[tuple[Callable[[tarfile.TarInfo], object], str]] = [
    (lambda head: setattr(head, "type", tarfile.SYMTYPE), "is a symbolic link"),
    (lambda head: setattr(head, "type", tarfile.LNKTYPE), "is a hard link"),
    (lambda head: setattr(head, "type", tarfile.CHRTYPE), "is a device"),
    (lambda head: setattr(head, "type", tarfile.FIFOTYPE), "is a pipe"),
    (lambda head: setattr(head, "type", b"Z"), "is not a plain file"),
    (lambda head: setattr(head, "name", "../0.jpg"), "has a name outside the folder"),
    (lambda head: setattr(head, "name", "/etc/0.jpg"), "has a name outside the folder"),
    (lambda head: setattr(head, "name", "a/..\\0.jpg"), "has a name outside the folder"),
    (lambda head: setattr(head, "name", "\udcff.jpg"), "has a name that is not UTF-8"),
]


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize(("change", "error"), SPECIAL)
def test_only_plain_files_of_the_folder_are_read(
    tmp_path: Path, change: Callable[[tarfile.TarInfo], object], error: str
) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
        head = tarfile.TarInfo("0.jpg")
        head.linkname = "/etc/passwd"
        change(head)
        archive.addfile(head)
        for name, octets in sample("1", ALLOWED[0]):
            head = tarfile.TarInfo(name)
            head.size = len(octets)
            archive.addfile(head, io.BytesIO(octets))
    bad, good = everything(open_reader(path))
    assert isinstance(bad, Unreadable)
    assert bad.position == "file at octet 0"
    assert error in bad.error
    assert isinstance(good, dict)
    tagged = tag_dataset([path], tmp_path / "b.tar", JUDGE)
    assert (tagged.counts.kept, tagged.counts.unreadable) == (1, 1)
    with tarfile.open(tmp_path / "b.tar") as archive:
        assert archive.getnames() == ["1.jpg", "1.json", "1.txt"]
    with pytest.raises(DatasetError, match="It would be lost, so nothing has changed"):
        expire([path], NOW)


def by_kind(path: Path) -> tuple[list[Record], list[Unreadable]]:
    found = everything(open_reader(path))
    return (
        [one for one in found if isinstance(one, dict)],
        [one for one in found if isinstance(one, Unreadable)],
    )


@pytest.mark.requirement("SEC-6")
def test_a_shard_that_is_cut_off_says_so_at_each_octet(tmp_path: Path) -> None:
    path = shard(tmp_path / "a.tar", samples(URLS[:2]))
    octets = path.read_bytes()
    with tarfile.open(path) as archive:
        end = archive.getmembers()[-1].offset + 2 * tarfile.BLOCKSIZE
    for length in range(0, end, 101):
        path.write_bytes(octets[:length])
        if length < tarfile.BLOCKSIZE:
            with pytest.raises(DatasetError, match=r"a\.tar is not a tar file: at octet 0"):
                by_kind(path)
            continue
        good, bad = by_kind(path)
        assert bad, length
        assert all("octet " in one.position for one in bad)
        assert all(record["__files__"] == [f"{record['__key__']}.jpg"] for record in good)


@pytest.mark.requirement("SEC-6")
def test_a_damaged_head_and_a_second_archive_are_named(tmp_path: Path) -> None:
    path = shard(tmp_path / "a.tar", samples(URLS[:2]))
    octets = path.read_bytes()
    with tarfile.open(path) as archive:
        place = archive.getmembers()[3].offset
    path.write_bytes(octets[:place] + b"\xff" * 512 + octets[place + 512 :])
    good, [bad] = by_kind(path)
    assert len(good) == 1
    assert (bad.position, bad.error) == (
        f"octet {place} and the rest",
        "the head is damaged",
    )
    path.write_bytes(octets + octets)
    good, [bad] = by_kind(path)
    assert len(good) == 2
    assert bad.error == "there is something behind the end"


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize(
    ("files", "error"),
    [
        ([("0.json", b"[1]")], "`0.json` is no object"),
        ([("0.json", b"{")], "`0.json` is no JSON"),
        ([("0.json", b"[" * 100_000)], "`0.json` is no JSON"),
        ([("0.json", b'{"__key__": "1"}')], "its JSON has a member `__key__`"),
        ([("0.txt", b"\xff")], "codec can't decode"),
        ([("0.jpg", b"1"), ("0.JPG", b"2")], "`0.JPG` is there twice"),
        ([("0.json", b'{"a": "' + b"x" * 2000 + b'"}')], "`0.json` has more than 1000 octets"),
    ],
)
def test_a_sample_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Files, error: str
) -> None:
    monkeypatch.setattr(
        shards, "MAX_TEXT", max(1000, len(files[0][1]) if len(files[0][1]) > 3000 else 0)
    )
    good, [bad] = by_kind(shard(tmp_path / "a.tar", [*files, *sample("1", ALLOWED[0])]))
    assert bad.position == "sample `0` at octet 0"
    assert error in bad.error
    assert [one["__key__"] for one in good] == ["1"]


@pytest.mark.requirement("SEC-6")
def test_a_head_and_a_work_that_would_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shard(tmp_path / "a.tar", [("n" * 2000 + ".jpg", b"1")], tarfile.GNU_FORMAT)
    monkeypatch.setattr(shards, "MAX_HEAD", 1000)
    with pytest.raises(DatasetError, match="at octet 0: a head of 2048 octets"):
        by_kind(path)
    monkeypatch.undo()
    monkeypatch.setattr(works, "MAX_BLOCK", 5)
    path = shard(tmp_path / "a.tar", sample("0", ALLOWED[0]))
    tag_dataset([path], tmp_path / "out.jsonl", JUDGE)
    [one] = by_kind(tmp_path / "out.jsonl")[0]
    assert one["permissions"]["uses"]["train"]["verdict"] == "deny"
    assert {
        "rule": "comity.unread",
        "text": "`0.jpg` has more than 5 octets",
    }.items() <= one["permissions"]["reasons"][0].items()


@pytest.mark.requirement("SEC-6")
def test_a_sparse_file_is_not_filled(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        head = tarfile.TarInfo("0.jpg")
        head.pax_headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(2**50)}
        head.size = 1
        archive.addfile(head, io.BytesIO(b"1"))
    [], [bad] = by_kind(path)
    assert "is not a plain file" in bad.error


def test_other_records_do_not_become_samples(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"{}\n")
    with pytest.raises(DatasetError, match=r"only samples of \.tar become \.tar, not those of"):
        open_writer(tmp_path / "b.tar", [tmp_path / "a.jsonl"])
