"""The manifest: mlcroissant finds nothing wrong with it, and reads the records by it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from comity.dataset import manifest
from comity.dataset.expire import expire
from comity.dataset.export.export import export
from comity.dataset.export.folder_export import export_folder
from comity.dataset.files.field_types import Fields
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError
from comity.policies.vocabulary.table import Vocabulary
from tests.selection import one_in

MakeRecord = Callable[..., dict[str, Any]]

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ROBOTS = "https://example.com/robots.txt"


@pytest.fixture
def crawled(tmp_path: Path, make_record: MakeRecord) -> Path:
    path = tmp_path / "crawled.jsonl"
    further: list[dict[str, Any]] = [
        {},
        {"links": [], "price": 1.5, "title": "Käse \u2028 <b>", "a field/with marks": "x"},
        {"price": 2, "status": None, "tags": ["a", "b"], "nested": {"a": [1]}},
        {"price": None, "published_at": "soon", "flag": True},
    ]
    made = [
        make_record(
            train=None if number % 4 == 0 else {},
            index={},
            fields={"url": f"https://example.com/{number}", **more},
        )
        for number, more in enumerate(further)
    ]
    # The third is permitted by an arrangement of the operator's.
    made[2]["permissions"]["uses"]["train"]["because"] = [4]
    path.write_text("".join(json.dumps(record) + "\n" for record in made))
    return path


@pytest.mark.filterwarnings("ignore")  # pandas and others that mlcroissant reads with
@pytest.mark.parametrize("name", one_in(3, ["out set.jsonl", "out.jsonl.gz", "out.parquet"]))
def test_records_are_loaded_by_it(tmp_path: Path, crawled: Path, name: str) -> None:
    import mlcroissant  # type: ignore[import-untyped]

    out = tmp_path / name
    export([crawled], out, Terms.of(["train", "index"], now=NOW))
    dataset = mlcroissant.Dataset(manifest.path_of(out))
    assert not dataset.metadata.ctx.issues.errors
    loaded = list(dataset.records("records"))
    assert [record["records/url"] for record in loaded] == [
        f"https://example.com/{number}".encode() for number in (1, 2, 3)
    ]
    assert [record["records/title"] for record in loaded] == [
        "Käse \u2028 <b>".encode(),
        b"A title",
        b"A title",
    ]
    assert [[*record["records/links"]] for record in loaded] == [
        [],
        *[[b"https://example.com/b"]] * 2,
    ]
    assert [record["records/price"] for record in loaded] == [1.5, 2, None]
    assert loaded[0]["records/a%20field/with%20marks"] == b"x"
    tag = loaded[0]["records/permissions"]
    assert tag["records/permissions/agent"] == b"testbot"
    if "json" in name:
        assert tag["records/permissions/train"] == b"allow"


def test_it_says_how_the_dataset_came_about(tmp_path: Path, crawled: Path) -> None:
    with crawled.open("ab") as file:
        file.write(b'no record\n{"url": "https://example.com/untagged"}\n')
    out = tmp_path / "out.jsonl"
    export([crawled], out, Terms.of(["train", "index"], now=NOW))
    described = json.loads(manifest.path_of(out).read_bytes())
    assert described["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert described["comity:uses"] == ["train", "index"]
    assert (
        described["comity:exportedAt"] == described["datePublished"] == "2026-11-22T00:00:00+00:00"
    )
    assert described["comity:counts"] == {
        "read": 5,
        "exported": 3,
        "refused": {"deny:acap.disallow": 1, "no-tag": 1},
        "unreadable": 1,
    }
    assert described["comity:agents"] == {"testbot": 3}
    copy = {"status": 200, "sha256": "0" * 64, "fetched_at": "2026-11-21T03:00:00+00:00"}
    assert described["comity:policies"] == {ROBOTS: [copy]}
    assert [*described["comity:arrangements"]] == ["example.com: train, contract 1"]
    assert described["license"] == ["contract 1"]
    assert described["comity:vocabulary"]["acap"] == Vocabulary.shipped().words["acap"].revision
    [file] = described["distribution"]
    assert file["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert file["contentUrl"] == "out.jsonl"


@pytest.mark.filterwarnings("ignore")
def test_of_no_records(tmp_path: Path, crawled: Path) -> None:
    import mlcroissant

    for name in ("out.jsonl", "out.parquet"):
        out = tmp_path / name
        export([crawled], out, Terms.of(["preserve"], now=NOW))
        dataset = mlcroissant.Dataset(manifest.path_of(out))
        assert not dataset.metadata.ctx.issues.errors


def test_values_of_several_types(make_record: MakeRecord) -> None:
    fields, others = Fields(), Fields()
    for record in (
        {"a": 1, "b": "x", "c": [1], "at": None},
        {"a": 1.5, "b": 1, "c": [], "seen_at": "2026-11-22"},
    ):
        fields.note(record)
    others.note({"c": [1.5, 2], "seen_at": "2026-11-22T00:00:00+00:00", "d": [{}]})
    fields.merge(others)
    assert fields.kinds == {
        "a": {"sc:Integer", "sc:Float"},
        "b": {"sc:Text", "sc:Integer"},
        "c": {"[sc:Integer]", "[]", "[sc:Float]"},
        "at": {""},
        "seen_at": {"sc:DateTime"},
        "d": {"[?]"},
    }


@pytest.mark.parametrize("octets", [b"{", b"[]", b"\xff"])
def test_a_manifest_that_is_none(tmp_path: Path, octets: bytes) -> None:
    path = tmp_path / "a.jsonl"
    assert manifest.read(path) is None
    manifest.path_of(path).write_bytes(octets)
    with pytest.raises(DatasetError, match=r"a\.jsonl\.croissant\.json"):
        manifest.read(path)


@pytest.mark.parametrize("is_folder", [False, True])
def test_after_a_crash_no_manifest_tells_of_a_dataset_that_has_been_replaced(
    tmp_path: Path, crawled: Path, monkeypatch: pytest.MonkeyPatch, *, is_folder: bool
) -> None:
    """The manifest would state the uses and the date of the old dataset for the new one."""

    def run(use: str) -> None:
        job: Any = export_folder if is_folder else export
        job([crawled], out, Terms.of([use], now=NOW))

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / ("out" if is_folder else "out.jsonl")
    run("index")
    described = manifest.read(out)
    assert described
    manifest.retract(out, is_replaced=True)  # and no further
    assert manifest.read(out) == described
    manifest.write(out, described)
    monkeypatch.setattr(manifest, "write", end)
    with pytest.raises(KeyboardInterrupt):
        run("train")
    assert manifest.read(out) is None
    assert manifest.last(out) == described
    monkeypatch.undo()
    expire([out], NOW, ["https://example.com/0"])
    assert not manifest.path_of(out).exists()
    run("train")
    assert (manifest.read(out) or {})["comity:uses"] == ["train"]
    assert not [*tmp_path.glob(".out*")]
