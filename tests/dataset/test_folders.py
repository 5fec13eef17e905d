"""Datasets that are folders: a file for each file, one manifest for all, and the same records as
from one file."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from comity.dataset import expire as expire_module
from comity.dataset import manifest
from comity.dataset.croissant import facts_of, sha256_of
from comity.dataset.expire import expire
from comity.dataset.export import folder_export
from comity.dataset.export.export import export
from comity.dataset.export.folder_export import export_folder
from comity.dataset.files.folders import FolderReplacement, open_dataset
from comity.dataset.files.formats import open_reader, open_writer
from comity.dataset.job import JobOptions
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError
from comity.dataset.stats import stats
from tests.selection import one_in

MakeRecord = Callable[..., dict[str, Any]]

NOW = datetime(2026, 11, 22, tzinfo=UTC)
TRAIN = Terms.of(["train"], now=NOW)
FILES = ("a", "b", "deep/c")
EACH = 40


def made(make_record: MakeRecord, number: int) -> dict[str, Any]:
    """Every third refuses train, and every fifth permits it until yesterday."""
    until = {"until": "2026-11-21T23:59:59Z"} if number % 5 == 0 else {}
    url = f"https://example.com/{number}"
    return make_record(
        train=None if number % 3 == 0 else until,
        fields={"url": url, "final_url": url, "number": number},
    )


def folder_of(make_record: MakeRecord, folder: Path, ending: str = ".jsonl") -> Path:
    for place, name in enumerate(FILES):
        path = folder / f"{name}{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_writer(path) as writer:
            writer.write(
                writer.encode(
                    [
                        made(make_record, number)
                        for number in range(place * EACH, (place + 1) * EACH)
                    ]
                )
            )
    return folder


@pytest.fixture
def crawled(tmp_path: Path, make_record: MakeRecord) -> Path:
    return folder_of(make_record, tmp_path / "crawled")


def numbers(path: Path) -> list[Any]:
    reader = open_reader(path)
    return [
        record["number"]
        for part in reader.parts()
        for batch in reader.read(part)
        for record in batch
        if isinstance(record, dict)
    ]


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


PERMITTED = [number for number in range(3 * EACH) if number % 3 and number % 5]


def of_file(place: int, among: list[int]) -> list[int]:
    return [number for number in among if number // EACH == place]


def test_one_file_of_a_folder(tmp_path: Path, crawled: Path) -> None:
    exported = export([crawled], tmp_path / "out.jsonl", TRAIN)
    assert numbers(tmp_path / "out.jsonl") == PERMITTED
    assert (exported.counts.records, exported.counts.kept) == (3 * EACH, len(PERMITTED))
    assert stats([crawled], NOW).records == 3 * EACH


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize(
    ("had", "ending", "workers"),
    one_in(
        10,
        [
            (had, ending, workers)
            for workers in (2, 1)
            for had, ending in (
                (".jsonl", ".parquet"),
                (".jsonl", ""),
                (".jsonl", ".jsonl.gz"),
                (".parquet", ""),
                (".jsonl", ".jsonl.zst"),
            )
        ],
    ),
)
@pytest.mark.usefixtures("processes")
def test_a_folder_of_a_folder(
    tmp_path: Path, make_record: MakeRecord, workers: int, had: str, ending: str
) -> None:
    source, out = folder_of(make_record, tmp_path / "crawled", had), tmp_path / "out"
    exported = export_folder([source], out, TRAIN, JobOptions(workers), ending=ending)
    assert (exported.counts.records, exported.counts.kept) == (3 * EACH, len(PERMITTED))
    assert exported.counts.causes == export([source], tmp_path / "one.jsonl", TRAIN).counts.causes
    names = [f"{name}{ending or had}" for name in FILES]
    assert sorted(snapshot(out)) == names
    for place, name in enumerate(names):
        assert numbers(out / name) == of_file(place, PERMITTED)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "crawled",
        "one.jsonl",
        "one.jsonl.croissant.json",
        "out",
        "out.croissant.json",
    ]


@pytest.mark.filterwarnings("ignore")  # pandas and others that mlcroissant reads with
@pytest.mark.parametrize("ending", one_in(2, [".jsonl", ".parquet"]))
def test_the_manifest_has_every_file_and_loads_them(
    tmp_path: Path, crawled: Path, ending: str
) -> None:
    import mlcroissant  # type: ignore[import-untyped]

    out = tmp_path / "out set"
    export_folder([crawled], out, TRAIN, ending=ending)
    described = json.loads(manifest.path_of(out).read_bytes())
    together, *files = described["distribution"]
    assert together["@type"] == "cr:FileSet"
    for place, (file, name) in enumerate(zip(files, FILES, strict=True)):
        octets = (out / f"{name}{ending}").read_bytes()
        assert (file["name"], file["sha256"]) == (
            f"{name}{ending}",
            hashlib.sha256(octets).hexdigest(),
        )
        assert (file["contentSize"], file["comity:records"]) == (
            f"{len(octets)} B",
            len(of_file(place, PERMITTED)),
        )
    dataset = mlcroissant.Dataset(manifest.path_of(out))
    assert not dataset.metadata.ctx.issues.errors
    loaded = sorted(int(record["records/number"]) for record in dataset.records("records"))
    assert loaded == PERMITTED


def test_what_cannot_be_read_is_kept_beside_the_folder(tmp_path: Path, crawled: Path) -> None:
    with (crawled / "deep/c.jsonl").open("ab") as file:
        file.write(b"no record\n")
    exported = export_folder([crawled], tmp_path / "out", TRAIN)
    assert exported.counts.unreadable == 1
    [(name, octets)] = snapshot(tmp_path / "out.unreadable").items()
    assert name == "deep/c.jsonl.jsonl"
    assert json.loads(octets)["text"] == "no record"
    (crawled / "deep/c.jsonl").unlink()
    export_folder([crawled], tmp_path / "out", TRAIN)
    assert not (tmp_path / "out.unreadable").exists()
    assert sorted(snapshot(tmp_path / "out")) == ["a.jsonl", "b.jsonl"]


def test_files_of_others_are_not_replaced(tmp_path: Path, crawled: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    with pytest.raises(DatasetError, match=r"out holds thesis\.txt, which comity has not written"):
        export_folder([crawled], out, TRAIN)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crawled", "out"]
    (out / "thesis.txt").unlink()
    export_folder([crawled], out, TRAIN)
    (out / "a.jsonl.bak").write_text("mine too")
    before = snapshot(tmp_path)
    with pytest.raises(DatasetError, match=r"a\.jsonl\.bak"):
        export_folder([crawled], out, TRAIN)
    assert snapshot(tmp_path) == before


def test_an_error_leaves_the_old_folder(tmp_path: Path, crawled: Path) -> None:
    out = tmp_path / "out"
    export_folder([crawled], out, TRAIN)
    (crawled / "z.jsonl.gz").write_bytes(gzip.compress(b"{}\n" * 1000)[:-9])
    before = snapshot(tmp_path)
    with pytest.raises(DatasetError, match="damaged"):
        export_folder([crawled], out, Terms.of(["index"], now=NOW))
    assert snapshot(tmp_path) == before


def test_an_export_over_what_it_reads(tmp_path: Path, crawled: Path) -> None:
    with pytest.raises(DatasetError, match=r"crawled is read from"):
        export_folder([crawled], crawled, TRAIN)
    crawled.rename(tmp_path / "out.unreadable")
    with pytest.raises(DatasetError, match=r"out\.unreadable is read from"):
        export_folder([tmp_path / "out.unreadable"], tmp_path / "out", TRAIN)


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("name", ["out.jsonl", "deep/out.jsonl", "out", "deep/out"])
def test_an_export_into_what_it_reads(tmp_path: Path, crawled: Path, name: str) -> None:
    """The next one would count its records twice."""
    (crawled / "deep").mkdir(exist_ok=True)
    (tmp_path / "link").symlink_to(crawled)
    before = snapshot(tmp_path)
    for folder in (crawled, tmp_path / "link"):
        with pytest.raises(DatasetError, match=r"would be a part of .*crawled, which is read from"):
            (export if name.endswith(".jsonl") else export_folder)([crawled], folder / name, TRAIN)
    assert snapshot(tmp_path) == before
    export([crawled / "a.jsonl"], crawled / "b-again.jsonl", TRAIN)  # of one file of a folder


def test_two_files_of_one_name(tmp_path: Path, crawled: Path) -> None:
    shutil.copytree(crawled, tmp_path / "again")
    with pytest.raises(DatasetError, match=r"a\.jsonl would be written twice"):
        export_folder([crawled, tmp_path / "again"], tmp_path / "out", TRAIN)


def test_two_processes_do_not_write_one_folder(tmp_path: Path, crawled: Path) -> None:
    with FolderReplacement(tmp_path / "out", lambda _: True) as part:
        with pytest.raises(DatasetError, match="is being written by another process"):
            export_folder([crawled], tmp_path / "out", TRAIN)
        (part / "a").touch()
    assert snapshot(tmp_path / "out") == {"a": b""}


def test_a_folder_that_was_moved_away_when_a_process_was_killed_comes_back(
    tmp_path: Path, crawled: Path
) -> None:
    out = tmp_path / "out"
    export_folder([crawled], out, TRAIN)
    before = snapshot(out)
    manifest.retract(out)
    out.rename(tmp_path / ".out.before")
    (crawled / "z.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(DatasetError):
        export_folder([crawled], out, TRAIN)
    assert snapshot(out) == before
    assert manifest.path_of(out).exists()


def test_which_files_are_of_a_folder(tmp_path: Path, crawled: Path) -> None:
    for name in (
        ".hidden.jsonl",
        "_temporary/x.jsonl",
        "README.md",
        "a.jsonl.expired.jsonl",
        "b.jsonl.unreadable.jsonl",
    ):
        (crawled / name).parent.mkdir(exist_ok=True)
        (crawled / name).write_text("{}\n")
    assert [path.relative_to(crawled).as_posix() for path in open_dataset(crawled).files] == [
        f"{name}.jsonl" for name in FILES
    ]
    (crawled / "gone.jsonl.expired.jsonl").write_text("{}\n")
    assert len(open_dataset(crawled).files) == 4
    (crawled / "d.parquet").touch()
    with pytest.raises(DatasetError, match="several formats"):
        open_dataset(crawled)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="no files of records"):
        open_dataset(tmp_path / "empty")


# expire


@pytest.mark.parametrize(
    ("ending", "workers"),
    one_in(3, [(".jsonl", 2), (".jsonl", 1), (".parquet", 2), (".parquet", 1)]),
)
@pytest.mark.usefixtures("processes")
def test_a_folder_expires(tmp_path: Path, crawled: Path, ending: str, workers: int) -> None:
    out = tmp_path / "out"
    export_folder(
        [crawled], out, Terms.of(["train"], now=datetime(2026, 11, 21, tzinfo=UTC)), ending=ending
    )
    whys: list[Any] = []
    counts = expire([out], NOW, options=JobOptions(workers, removed=whys.append))
    went = [number for number in range(3 * EACH) if number % 3 and not number % 5]
    assert counts.causes == {"expired:train": len(went)}
    assert [note["url"].rpartition("/")[2] for note in whys] == [str(number) for number in went]
    for place, name in enumerate(FILES):
        assert numbers(out / f"{name}{ending}") == of_file(place, PERMITTED)
        lines = (tmp_path / f"out.expired/{name}{ending}.jsonl").read_bytes().splitlines()
        assert len(lines) == len(of_file(place, went))
    described = json.loads(manifest.path_of(out).read_bytes())
    assert described["comity:removed"] == {"expired:train": len(went)}
    for file in described["distribution"][1:]:
        assert file["sha256"] == hashlib.sha256((out / file["name"]).read_bytes()).hexdigest()
    before = snapshot(tmp_path)
    expire([out], NOW)
    assert snapshot(tmp_path) == before


def test_a_manifest_follows_after_a_run_that_was_killed(tmp_path: Path, crawled: Path) -> None:
    """As if that had been between two files."""
    out = tmp_path / "out"
    export_folder([crawled], out, Terms.of(["train"], now=datetime(2026, 11, 21, tzinfo=UTC)))
    manifest.retract(out)
    expire([out / "a.jsonl"], NOW)
    expire([out / "b.jsonl", out / "deep"], NOW)
    expire([out], NOW)
    described = json.loads(manifest.path_of(out).read_bytes())
    for file in described["distribution"][1:]:
        assert file["sha256"] == hashlib.sha256((out / file["name"]).read_bytes()).hexdigest()


def test_a_dry_run_of_a_folder_changes_nothing(tmp_path: Path, crawled: Path) -> None:
    before = snapshot(tmp_path)
    assert expire([crawled], NOW, ["https://example.com/1"], dry_run=True).causes == {
        "expired:train": 16,
        "taken-down": 1,
    }
    assert snapshot(tmp_path) == before


def test_what_was_fetched_again_in_another_file(tmp_path: Path, make_record: MakeRecord) -> None:
    for name, day in (("a", 20), ("b", 21)):
        record = make_record(
            train={"until_recrawled": True}, fields={"fetched_at": f"2026-11-{day}T12:00:00+00:00"}
        )
        path = tmp_path / "in" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(record) + "\n")
    exported = export_folder([tmp_path / "in"], tmp_path / "out", TRAIN)
    assert exported.counts.causes == {"superseded:train": 1}
    assert (tmp_path / "out/a.jsonl").read_bytes() == b""
    assert (tmp_path / "out/b.jsonl").read_bytes() != b""


def test_the_task_of_a_file_can_be_done_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, crawled: Path
) -> None:
    """As an engine does where it does not know that the file is written."""
    export_folder([crawled], tmp_path / "out", TRAIN)
    once = snapshot(tmp_path)
    do = folder_export._ExportPart.__call__

    def twice(self: Any, part: Any) -> Any:
        do(self, part)
        return do(self, part)

    monkeypatch.setattr(folder_export._ExportPart, "__call__", twice)
    export_folder([crawled], tmp_path / "out", TRAIN)
    assert snapshot(tmp_path) == once


@pytest.mark.requirement("REACH-5")
def test_a_manifest_follows_where_a_process_could_not_say_what_it_did(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, crawled: Path
) -> None:
    """It was killed when its file had taken the place of the old one, and the task was done
    again."""
    out = tmp_path / "out"
    export_folder([crawled], out, Terms.of(["train"], now=datetime(2026, 11, 21, tzinfo=UTC)))
    do = expire_module._Expire.__call__

    def twice(self: Any, task: Any) -> Any:
        do(self, task)
        return do(self, task)

    monkeypatch.setattr(expire_module._Expire, "__call__", twice)
    expire([out], NOW)
    described = json.loads(manifest.path_of(out).read_bytes())
    for file in described["distribution"][1:]:
        assert file["sha256"] == hashlib.sha256((out / file["name"]).read_bytes()).hexdigest()


@pytest.mark.requirement("REACH-5")
@pytest.mark.parametrize("form", [".jsonl", ".parquet"])
def test_a_run_that_was_killed_before_its_manifest_was_there(
    tmp_path: Path, make_record: MakeRecord, form: str
) -> None:
    crawled, out = folder_of(make_record, tmp_path / "crawled", form), tmp_path / "out"
    export_folder([crawled], out, TRAIN)
    right, described = snapshot(out), manifest.read(out)
    assert described is not None
    manifest.path_of(out).unlink()
    with pytest.raises(DatasetError, match="which comity has not written"):
        export_folder([crawled], out, TRAIN)
    files = [facts_of(out / name, name) for name in right]
    manifest.announce(out, files)  # as a run does before its folder is in place
    export_folder([crawled], out, TRAIN)
    assert (snapshot(out), manifest.read(out)) == (right, described)
    assert not [*tmp_path.glob(".out*")]


def test_an_expiry_that_was_killed_before_its_manifest_was_there(
    tmp_path: Path, make_record: MakeRecord
) -> None:
    path = tmp_path / "out.jsonl"
    export(
        [folder_of(make_record, tmp_path / "crawled")],
        path,
        TRAIN._replace(now=datetime(2026, 11, 21, tzinfo=UTC)),
    )
    expire([path], NOW)
    right = manifest.path_of(path)
    moved = right.replace(manifest.before_path(path))
    # that of the file before
    moved.write_text(moved.read_text().replace(sha256_of(path), "0" * 64))
    assert expire([path], NOW, dry_run=True).causes == {}
    assert not right.exists()
    assert expire([path], NOW).causes == {}
    [digest] = manifest.described_files(json.loads(right.read_bytes())).values()
    assert digest.sha256 == sha256_of(path)
    assert not moved.exists()
