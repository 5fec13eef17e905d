"""Datasets that differ from their manifests: an export, an expiry and a check report it, and vouch
for nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from comity.dataset import manifest
from comity.dataset.changed_outside import MESSAGE, changed_outside
from comity.dataset.expire import expire
from comity.dataset.export.export import export
from comity.dataset.export.folder_export import export_folder
from comity.dataset.job import JobOptions
from comity.dataset.permissions.terms import Terms

MakeRecord = Callable[..., dict[str, Any]]

NOW = datetime(2026, 11, 22, tzinfo=UTC)
LATER = datetime(2026, 11, 24, tzinfo=UTC)
TRAIN = Terms.of(["train"], now=NOW)
TAGGED = {"agent": "examplebot"}


@pytest.fixture(params=["out.jsonl", "out.jsonl.gz", "out.parquet", "out"])
def described(request: pytest.FixtureRequest, tmp_path: Path, make_record: MakeRecord) -> Path:
    """A dataset with a manifest.

    One of its records expires on the next day. A folder has two files."""
    name: str = request.param
    crawled, out = tmp_path / "crawled", tmp_path / name
    crawled.mkdir()
    for part in ("a.jsonl", "b.jsonl"):
        lines = (
            json.dumps(
                make_record(
                    train={}, preserve=limit, fields={"url": f"https://example.com/{part}/{number}"}
                )
            )
            + "\n"
            for number, limit in enumerate(({}, {"until": "2026-11-23T00:00:00+00:00"}, {}))
        )
        (crawled / part).write_text("".join(lines))
    if out.suffix:
        export([crawled], out, TRAIN)
    else:
        export_folder([crawled], out, TRAIN)
    manifest.write(out, (manifest.read(out) or {}) | {"comity:tagged": [TAGGED]})
    return out


def damage(path: Path) -> None:
    """Change one octet, which no reader sees."""
    octets = bytearray(path.read_bytes())
    position = (
        octets.find(b"Some words")
        if path.suffix == ".jsonl"
        else 4
        if path.suffix == ".gz"
        else octets.rindex(b"comity")
    )
    octets[position] ^= 1
    path.write_bytes(octets)


def change(path: Path) -> None:
    damage(path / "b.jsonl" if path.is_dir() else path)


def complaints(path: Path) -> list[str]:
    heard: list[str] = []
    assert bool(changed_outside([path])) == bool(
        changed_outside([path], JobOptions(complain=heard.append))
    )
    return heard


@pytest.mark.requirement("MEET-3")
def test_what_comity_has_written_is_what_it_describes(tmp_path: Path, described: Path) -> None:
    assert complaints(described) == []
    assert expire([described], LATER).records == 6
    assert complaints(described) == []
    output = tmp_path / f"again-{described.name}"
    (export if described.suffix else export_folder)([described], output, TRAIN)
    assert manifest.read(output)["comity:tagged"] == [TAGGED]  # type: ignore[index]


@pytest.mark.requirement("MEET-3")
def test_a_change_is_seen_and_nothing_is_taken_over(tmp_path: Path, described: Path) -> None:
    change(described)
    assert complaints(described) == [f"{described} {MESSAGE}"]
    output, heard = tmp_path / f"again-{described.name}", list[str]()
    (export if described.suffix else export_folder)(
        [described], output, TRAIN, JobOptions(complain=heard.append)
    )
    assert heard == [f"{described} {MESSAGE}"]
    assert "comity:tagged" not in (manifest.read(output) or {})


@pytest.mark.requirement("MEET-3")
def test_an_expiry_does_not_vouch_for_what_was_changed(described: Path) -> None:
    change(described)
    for _ in range(2):
        heard: list[str] = []
        expire([described], LATER, options=JobOptions(complain=heard.append))
        assert heard == [f"{described} {MESSAGE}"]
    assert (manifest.read(described) or {})["comity:changedOutside"] is True
    assert complaints(described) == [f"{described} {MESSAGE}"]


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("described", ["out"], indirect=True)
@pytest.mark.parametrize("kind", ["added", "removed", "longer"])
def test_files_of_a_folder(described: Path, kind: str) -> None:
    if kind == "added":
        (described / "c.jsonl").write_bytes((described / "a.jsonl").read_bytes())
    elif kind == "removed":
        (described / "a.jsonl").unlink()
    else:
        with (described / "a.jsonl").open("ab") as file:
            file.write(b"\n")
    assert complaints(described) == [f"{described} {MESSAGE}"]


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("described", ["out.jsonl"], indirect=True)
def test_a_file_in_a_folder_without_a_manifest(tmp_path: Path, described: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (described, manifest.path_of(described)):
        path.rename(folder / path.name)
    assert complaints(folder) == []
    change(folder / "out.jsonl")
    assert complaints(folder) == [f"{folder / 'out.jsonl'} {MESSAGE}"]


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("described", ["out.jsonl"], indirect=True)
@pytest.mark.parametrize(
    "told",
    [
        None,
        {},
        {"distribution": None},
        {"distribution": [{"@type": "cr:FileObject", "name": "out.jsonl", "md5": "ab"}, "x"]},
    ],
)
def test_what_no_manifest_describes(described: Path, told: dict[str, Any] | None) -> None:
    """Also where a killed process has left the last manifest, and where it is of another
    program."""
    if told is None:
        manifest.retract(described)
    else:
        manifest.write(described, told)
    change(described)
    assert complaints(described) == []
