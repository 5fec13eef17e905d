"""Datasets in an object store: outputs are the same as on a disk, and a manifest appears last."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from comity.dataset import manifest
from comity.dataset.expire import expire
from comity.dataset.export.export import export
from comity.dataset.export.folder_export import export_folder
from comity.dataset.files import folders, places
from comity.dataset.files.formats import open_reader
from comity.dataset.job import JobOptions
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError
from comity.dataset.stats import stats
from tests.live.test_jobdir import Project, links
from tests.live.two_items import TwoItems

if TYPE_CHECKING:
    from tests.conftest import Serve

MakeRecord = Callable[..., dict[str, Any]]

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
NOW = datetime(2026, 11, 22, tzinfo=UTC)
BEFORE = datetime(2026, 11, 21, tzinfo=UTC)
PERMITTED = [number for number in range(120) if number % 3 and number % 5]


@pytest.fixture
def crawled(tmp_path: Path, make_record: MakeRecord) -> Path:
    """Every third of the records refuses train, and every fifth permits it until yesterday."""
    folder = tmp_path / "crawled"
    for place_, name in enumerate(("a", "b", "deep/c")):
        path = folder / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            for number in range(place_ * 40, place_ * 40 + 40):
                until = {"until": "2026-11-21T23:59:59Z"} if number % 5 == 0 else {}
                url = f"https://example.com/{number}"
                fields = {"url": url, "final_url": url, "number": number}
                file.write(
                    json.dumps(make_record(train=None if number % 3 == 0 else until, fields=fields))
                    + "\n"
                )
    with (folder / "a.jsonl").open("a") as file:
        file.write("no record\n")
    return folder


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        entry.relative_to(folder).as_posix(): entry.read_bytes()
        for entry in folder.rglob("*")
        if entry.is_file()
    }


def numbers(folder: Path) -> list[Any]:
    readers = [open_reader(file) for file in folders.open_dataset(folder).files]
    return [
        record["number"]
        for reader in readers
        for part in reader.parts()
        for batch in reader.read(part)
        for record in batch
        if isinstance(record, dict)
    ]


@pytest.mark.requirement("REACH-5")
@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_a_folder_in_a_store(tmp_path: Path, store: Path, crawled: Path, ending: str) -> None:
    """Put there by an export, exported from there by other processes, and expired there."""
    everything, out = store / "everything", store / "out"
    export_folder([crawled], everything, Terms.of(["follow"], now=BEFORE), ending=ending)
    for options in (JobOptions(1), JobOptions(2)):
        exported = export_folder([everything], out, Terms.of(["train"], now=BEFORE), options)
        assert exported.counts.kept == 80
        local = export_folder([everything], tmp_path / "out", Terms.of(["train"], now=BEFORE))
        assert snapshot(out) == snapshot(tmp_path / "out")
        assert vars(local.counts) == vars(exported.counts)
    assert manifest.read(out) == manifest.read(tmp_path / "out")
    assert [entry.name for entry in store.iterdir() if entry.name.startswith(".")] == []
    counts = expire([out], NOW, options=JobOptions(2))
    assert counts.causes == {"expired:train": 16}
    assert numbers(out) == PERMITTED
    for file in json.loads(manifest.path_of(out).read_bytes())["distribution"][1:]:
        assert file["sha256"] == hashlib.sha256((out / file["name"]).read_bytes()).hexdigest()
    assert (
        sum(len(octets.splitlines()) for octets in snapshot(store / "out.expired").values()) == 16
    )
    assert stats([out], NOW).records == len(PERMITTED)


def test_a_file_in_a_store(tmp_path: Path, store: Path, crawled: Path) -> None:
    for name in ("out.jsonl", "out.jsonl.gz", "out.parquet"):
        for folder in (store, tmp_path):
            export([crawled], folder / name, Terms.of(["train"], now=NOW))
        assert (store / name).read_bytes() == (tmp_path / name).read_bytes()
        assert manifest.read(store / name) == manifest.read(tmp_path / name)
        assert (store / f"{name}.unreadable.jsonl").read_bytes() == (
            tmp_path / f"{name}.unreadable.jsonl"
        ).read_bytes()
    export([store / "out.parquet"], tmp_path / "again.jsonl", Terms.of(["follow"], now=NOW))
    assert len((tmp_path / "again.jsonl").read_bytes().splitlines()) == len(PERMITTED)
    with pytest.raises(DatasetError, match=r"s3://bucket/data/out\.jsonl is read from"):
        export([store / "out.jsonl"], store / "out.jsonl", Terms.of(["train"], now=NOW))
    with pytest.raises(DatasetError, match=r"s3://bucket/data/none\.jsonl cannot be read"):
        stats([store / "none.jsonl"], NOW)
    with pytest.raises(DatasetError, match=r"given twice"):
        stats([store / "out.jsonl", store / "out.jsonl"], NOW)


def test_an_error_leaves_what_was_there(store: Path, crawled: Path) -> None:
    out = store / "out"
    export_folder([crawled], out, Terms.of(["train"], now=NOW))
    export([crawled], store / "out.jsonl", Terms.of(["train"], now=NOW))
    before = snapshot(store)
    (crawled / "z.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(DatasetError, match="damaged"):
        export_folder([crawled], out, Terms.of(["index"], now=NOW))
    with pytest.raises(DatasetError, match="damaged"):
        export([crawled], store / "out.jsonl", Terms.of(["index"], now=NOW))
    assert snapshot(store) == before
    (out / "thesis.txt").write_bytes(b"mine")
    with pytest.raises(DatasetError, match=r"holds thesis\.txt"):
        export_folder([crawled / "deep"], out, Terms.of(["train"], now=NOW))


def test_what_is_killed_between_two_files_leaves_no_mixture_and_no_manifest(
    monkeypatch: pytest.MonkeyPatch, store: Path, crawled: Path
) -> None:
    out = store / "out"
    export_folder([crawled], out, Terms.of(["train"], now=BEFORE))
    copy_stored = places.copy_stored

    def killed(source: Path, target: Path) -> None:
        if target.name == "b.jsonl":
            raise RuntimeError("killed")
        copy_stored(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(folders, "copy_stored", killed)
        with pytest.raises(RuntimeError, match="killed"):
            export_folder([crawled], out, Terms.of(["train"], now=NOW))
    assert numbers(out) == [number for number in PERMITTED if number < 40]
    assert not manifest.path_of(out).exists()
    export_folder([crawled], out, Terms.of(["train"], now=NOW))
    assert numbers(out) == PERMITTED
    assert manifest.path_of(out).exists()


@pytest.mark.requirement("STATE-2")
@pytest.mark.parametrize("form", ["jsonl", "parquet", "warc.gz"])
def test_a_crawl_uploads_its_items_in_parts(
    tmp_path: Path, store: Path, serve: Serve, form: str
) -> None:
    """Nothing but complete parts and a manifest appears in the store."""
    pages = {f"/{number}": "page" for number in range(1, 12)}
    site = serve({"/robots.txt": "User-agent: *\nDisallow:\n", "/0": links(*pages), **pages})
    project = Project(tmp_path, reactor=True)
    settings = {
        "COMITY_ITEMS": str(store),
        "COMITY_ITEMS_FORMAT": form,
        "COMITY_PART_OCTETS": 3000,
        "ITEM_PIPELINES": {},
        "SPIDER_MODULES": ["two_items"],
    }
    project.crawl(TwoItems, settings, url=site.url("/0"))
    assert sorted(numbers(store)) == sorted([0, 1] * 12)
    files = {name: octets for name, octets in snapshot(store).items() if "/" not in name}
    assert all(name.endswith(f".{form}") for name in files)
    [described] = [json.loads(file.read_bytes()) for file in (store / "_crawl").iterdir()]
    assert described["finish_reason"] == "finished"
    listed = {part["name"]: part["sha256"] for part in described["parts"]}
    assert listed == {name: hashlib.sha256(octets).hexdigest() for name, octets in files.items()}
    assert len(listed) > 1 or form == "parquet"  # it is written in groups of rows


@pytest.mark.requirement("STATE-2")
def test_a_store_that_is_not_there_ends_the_crawl_with_one_line(
    tmp_path: Path, store: Path, serve: Serve
) -> None:
    site = serve({"/0": "page"})
    project = Project(tmp_path, reactor=True)
    settings = {"COMITY_ITEMS": "s3://no-bucket/items", "SPIDER_MODULES": ["two_items"]}
    ended = project.begin(TwoItems, settings | {"ITEM_PIPELINES": {}}, url=site.url("/0"))
    assert ended.end() == 1
    assert "The crawl ends: COMITY_ITEMS cannot be written (s3://no-bucket/items/" in ended.log
    assert "'finish_reason': 'items_lost'" in ended.log
    assert site.paths == []
