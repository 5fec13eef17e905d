"""Passes in one process and in several: the same records in the same order, and nothing lost on the
way."""

from __future__ import annotations

import base64
import gzip
import json
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from comity.dataset import manifest
from comity.dataset.expire import expire
from comity.dataset.export.export import export
from comity.dataset.files import jsonl
from comity.dataset.files.formats import open_reader
from comity.dataset.job import FetchPass, JobOptions
from comity.dataset.passes import Sinks, run
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError
from comity.dataset.stats import stats
from tests.selection import one_in

NOW = datetime(2026, 11, 22, tzinfo=UTC)
TRAIN = Terms.of(["train"], now=NOW)

MakeRecord = Callable[..., dict[str, Any]]


@pytest.fixture
def crawled(tmp_path: Path, make_record: MakeRecord) -> Path:
    """Of 300 pages every third refuses train, and every fifth permits it until yesterday."""
    path = tmp_path / "crawled.jsonl"
    with path.open("w") as file:
        for number in range(300):
            until = {"until": "2026-11-21T23:59:59Z"} if number % 5 == 0 else {}
            url = f"https://example.com/{number}"
            fields = {"url": url, "final_url": url, "text": f"text {number}", "number": number}
            file.write(
                json.dumps(make_record(train=None if number % 3 == 0 else until, fields=fields))
                + "\n"
            )
    return path


def records(path: Path) -> list[dict[str, Any]]:
    octets = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in octets.splitlines()]


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("workers", one_in(2, [2, 1, 3]))
@pytest.mark.parametrize("name", one_in(2, ["out.jsonl", "out.jsonl.gz"]))
@pytest.mark.usefixtures("processes")
def test_an_export_has_what_is_permitted_in_the_order_of_the_records(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, crawled: Path, workers: int, name: str
) -> None:
    monkeypatch.setattr(jsonl, "PART", 2000)
    out = tmp_path / name
    exported = export([crawled], out, TRAIN, JobOptions(workers))
    wanted = [number for number in range(300) if number % 3 and number % 5]
    assert [record["number"] for record in records(out)] == wanted
    assert (exported.counts.records, exported.counts.kept) == (300, len(wanted))
    assert exported.counts.causes == {"deny:acap.disallow": 100, "expired:train": 40}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.usefixtures("processes")
def test_several_inputs_stand_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, crawled: Path, workers: int
) -> None:
    monkeypatch.setattr(jsonl, "PART", 10_000)
    second = tmp_path / "second.jsonl.gz"
    second.write_bytes(gzip.compress(crawled.read_bytes().replace(b'"text ', b'"more ')))
    out = tmp_path / "out.jsonl"
    export([second, crawled], out, TRAIN, JobOptions(workers))
    texts = [record["text"].partition(" ")[0] for record in records(out)]
    assert texts == ["more"] * 160 + ["text"] * 160


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.usefixtures("processes")
def test_what_cannot_be_read_is_counted_and_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, crawled: Path, workers: int
) -> None:
    monkeypatch.setattr(jsonl, "PART", 10_000)
    lines = crawled.read_bytes().splitlines(keepends=True)
    lines[7:7] = [b'{"half": \n']
    lines[200:200] = [b"\xff\xfe no text\n"]
    crawled.write_bytes(b"".join(lines) + b'{"cut o')
    out, side = tmp_path / "out.jsonl", tmp_path / "out.jsonl.unreadable.jsonl"
    exported = export([crawled], out, TRAIN, JobOptions(workers))
    assert (exported.counts.unreadable, exported.counts.kept) == (3, 160)
    half, binary, cut = records(side)
    assert (half["file"], half["place"], half["text"]) == (str(crawled), "line 8", '{"half": ')
    assert (binary["place"], base64.b64decode(binary["base64"])) == (
        "line 201",
        b"\xff\xfe no text",
    )
    assert (cut["place"], cut["text"]) == ("line 303", '{"cut o')
    crawled.write_bytes(b"".join(line for line in lines if line.startswith(b'{"url"')))
    export([crawled], out, TRAIN)
    assert not side.exists()


def test_an_error_leaves_everything_as_it_was(tmp_path: Path, crawled: Path) -> None:
    out, damaged = tmp_path / "out.jsonl", tmp_path / "damaged.jsonl.gz"
    export([crawled], out, TRAIN)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    damaged.write_bytes(gzip.compress(crawled.read_bytes())[:-100])
    with pytest.raises(DatasetError, match=r"damaged\.jsonl\.gz is damaged"):
        export([crawled, damaged], out, Terms.of(["index"], now=NOW))
    damaged.unlink()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_manifest_outlives_a_file_that_cannot_take_its_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, crawled: Path
) -> None:
    out = tmp_path / "out.jsonl"
    export([crawled], out, TRAIN)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    leave = jsonl.Writer.__exit__

    def barred(self: jsonl.Writer, *raised: Any) -> None:
        out.rename(tmp_path / "aside")
        out.mkdir()
        try:
            leave(self, *raised)
        finally:
            out.rmdir()
            (tmp_path / "aside").rename(out)

    monkeypatch.setattr(jsonl.Writer, "__exit__", barred)
    with pytest.raises(DatasetError, match=r"out\.jsonl cannot be written: Is a directory"):
        export([crawled], out, Terms.of(["follow"], now=NOW))
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_export_over_what_it_reads(tmp_path: Path, crawled: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(crawled)
    before = crawled.read_bytes()
    with pytest.raises(DatasetError, match=r"link\.jsonl is read from"):
        export([crawled], tmp_path / "link.jsonl", TRAIN)
    assert crawled.read_bytes() == before


@pytest.mark.parametrize(
    "name",
    [
        "out.jsonl.unreadable.jsonl",
        "out.jsonl.croissant.json",
        ".out.jsonl.croissant.json.before",
        ".out.jsonl.croissant.json.replaced",
    ],
)
def test_an_export_that_writes_beside_itself_what_it_reads(
    tmp_path: Path, crawled: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(crawled.read_bytes())
    (tmp_path / "link.jsonl").symlink_to(name)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(DatasetError, match=rf"{re.escape(name)} is read from"):
        export([tmp_path / "link.jsonl"], tmp_path / "out.jsonl", TRAIN)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("name", ["crawled.jsonl.unreadable.jsonl", "crawled.jsonl.expired.jsonl"])
def test_a_dataset_that_is_written_to_while_it_expires(
    tmp_path: Path, crawled: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(crawled.read_bytes())
    for path in (crawled, tmp_path / name):
        with path.open("a") as file:
            file.write("{}\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for datasets in ([crawled, tmp_path / name], [tmp_path / name, crawled]):
        with pytest.raises(DatasetError, match=rf"{name} is written when \S+crawled.jsonl expires"):
            expire(datasets, NOW)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_file_that_is_given_twice(tmp_path: Path, crawled: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(crawled)
    for given in ([crawled, crawled], [crawled, link]):
        for job in (
            lambda paths: export(paths, tmp_path / "out.jsonl", TRAIN),
            lambda paths: expire(paths, NOW),
            lambda paths: stats(paths, NOW),
        ):
            with pytest.raises(DatasetError, match=rf"{given[1].name} is given twice"):
                job(given)
    assert len(records(crawled)) == 300


def test_no_name_is_no_file(crawled: Path) -> None:
    with pytest.raises(DatasetError, match="unknown format"):
        export([crawled], Path(), TRAIN)


KILLS = """
import os, signal

class Kills:
    fields = None

    def __call__(self, records):
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.usefixtures("processes")
def test_a_process_that_is_killed_is_an_error_and_no_wait(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, crawled: Path
) -> None:
    """As the kernel does where memory runs out."""
    (tmp_path / "kills.py").write_text(KILLS)
    monkeypatch.syspath_prepend(tmp_path)
    import kills  # type: ignore[import-not-found]

    with pytest.raises(
        DatasetError, match=r"a process ended before its work was done.*--workers 1"
    ):
        run(kills.Kills(), [open_reader(crawled)], Sinks(lambda _: None), workers=2)


@pytest.mark.usefixtures("processes")
def test_an_error_in_another_process_is_the_same_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, crawled: Path
) -> None:
    monkeypatch.setattr(jsonl, "PART", 1000)
    reader = open_reader(crawled)
    parts = list(reader.parts())
    crawled.unlink()
    monkeypatch.setattr(jsonl.Reader, "parts", lambda self: iter(parts))
    monkeypatch.setattr(jsonl.Reader, "size", 0)
    with pytest.raises(FileNotFoundError):
        run(FetchPass(), [reader], Sinks(lambda _: None), workers=2)


def test_progress_is_the_whole_file(monkeypatch: pytest.MonkeyPatch, crawled: Path) -> None:
    monkeypatch.setattr(jsonl, "PART", 10_000)
    steps: list[int] = []
    stats([crawled], NOW, JobOptions(progress=steps.append))
    assert sum(steps) == crawled.stat().st_size
    assert len(steps) > 10


# expire


def test_exactly_what_is_past_its_limit_goes(tmp_path: Path, make_record: MakeRecord) -> None:
    path = tmp_path / "a.jsonl"
    untils = {
        "noon": "2026-11-22T12:00:00Z",
        "one": "2026-11-22T13:00:00Z",
        "two": "2026-11-22T14:00:00Z",
    }
    made = [
        make_record(train={"until": until}, fields={"url": f"https://a.test/{name}"})
        for name, until in untils.items()
    ]
    made.append(make_record(train={}, fields={"url": "https://a.test/always"}))
    for hour, left in [
        (11, ["noon", "one", "two", "always"]),
        (13, ["two", "always"]),
        (15, ["always"]),
    ]:
        path.write_text("".join(json.dumps(record) + "\n" for record in made))
        counts = expire([path], datetime(2026, 11, 22, hour, 30, tzinfo=UTC))
        assert [record["url"].rpartition("/")[2] for record in records(path)] == left
        assert (counts.records, counts.kept) == (4, len(left))


def test_what_went_is_recorded_and_a_dry_run_changes_nothing(tmp_path: Path, crawled: Path) -> None:
    before = crawled.read_bytes()
    seen: list[dict[str, Any]] = []
    options = JobOptions(removed=lambda note: seen.append(dict(note)))
    counts = expire([crawled], NOW, ["https://example.com/1"], dry_run=True, options=options)
    assert counts.causes == {"expired:train": 40, "taken-down": 1}
    assert (crawled.read_bytes(), [path.name for path in tmp_path.iterdir()]) == (
        before,
        ["crawled.jsonl"],
    )
    expire([crawled], NOW, ["https://example.com/1"])
    gone = records(tmp_path / "crawled.jsonl.expired.jsonl")
    assert [one["url"] for one in gone] == [one["url"] for one in seen]
    assert {one["when"] for one in gone} == {"2026-11-22T00:00:00+00:00"}
    assert gone[0] == {
        "url": "https://example.com/1",
        "why": "taken-down",
        "because": [],
        "when": "2026-11-22T00:00:00+00:00",
    }
    assert gone[1]["why"] == "expired:train"
    assert gone[1]["because"][0]["rule"] == "acap.allow"
    left = {record["url"] for record in records(crawled)}
    assert len(left) == 300 - 41
    assert not left & {one["url"] for one in gone}


def test_where_nothing_goes_the_file_is_not_touched(tmp_path: Path, crawled: Path) -> None:
    expire([crawled], NOW)
    before = {
        path: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
        for path in tmp_path.iterdir()
    }
    expire([crawled], NOW)
    assert {
        path: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
        for path in tmp_path.iterdir()
    } == before


def test_what_was_fetched_again_goes_where_its_permission_ends_then(
    tmp_path: Path, make_record: MakeRecord
) -> None:
    """Wherever the later record stands: the datasets that are given are looked at together."""
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    old = make_record(train={"until_recrawled": True})
    other = make_record(
        train={"until_recrawled": True},
        fields={"url": "https://b.test/", "final_url": "https://b.test/"},
    )
    first.write_text(json.dumps(old) + "\n" + json.dumps(other) + "\n")
    second.write_text(json.dumps(old | {"fetched_at": "2026-11-22T12:00:00+00:00"}) + "\n")
    expire([first], NOW)
    assert len(records(first)) == 2
    expire([first, second], NOW)
    assert [record["url"] for record in records(first)] == ["https://b.test/"]
    assert len(records(second)) == 1
    assert records(tmp_path / "first.jsonl.expired.jsonl")[0]["why"] == "superseded:train"


def test_a_record_without_a_tag_moves_to_the_side_file(tmp_path: Path, crawled: Path) -> None:
    with crawled.open("ab") as file:
        file.write(b'{"url": "https://example.com/untagged"}\nno record\n')
    for _ in range(2):
        expire([crawled], NOW)
    untagged, unreadable = sorted(
        records(tmp_path / "crawled.jsonl.unreadable.jsonl"),
        key=lambda one: str(one["why"]),
        reverse=True,
    )
    assert untagged["record"] == {"url": "https://example.com/untagged"}
    assert (untagged["why"], unreadable["text"]) == ("no-tag", "no record")


def test_half_a_line_in_the_record_of_what_went(tmp_path: Path, crawled: Path) -> None:
    """A process was killed while it wrote."""
    log = tmp_path / "crawled.jsonl.expired.jsonl"
    log.write_bytes(b'{"url": "https://exa')
    expire([crawled], NOW)
    assert log.read_bytes().splitlines()[0] == b'{"url": "https://exa'
    assert all(json.loads(line) for line in log.read_bytes().splitlines()[1:])


def test_the_manifest_follows(tmp_path: Path, crawled: Path) -> None:
    out = tmp_path / "out.jsonl"
    export([crawled], out, Terms.of(["train"], now=datetime(2026, 11, 21, tzinfo=UTC)))
    expire([out], NOW)
    described = manifest.read(out)
    assert described
    assert described["comity:removed"] == {"expired:train": 40}
    assert described["distribution"][0]["contentSize"] == f"{out.stat().st_size} B"
    assert described["comity:counts"]["exported"] == 200


# constant memory


@pytest.mark.usefixtures("processes")
def test_no_more_parts_are_read_than_are_needed_ahead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, crawled: Path
) -> None:
    monkeypatch.setattr(jsonl, "PART", 1000)
    asked = taken = most = 0
    parts = jsonl.Reader.parts

    def counted(self: jsonl.Reader) -> Any:
        nonlocal asked
        for part in parts(self):
            asked += 1
            yield part

    def take(_: object) -> None:
        nonlocal taken, most
        taken += 1
        most = max(most, asked - taken)
        if taken == 1:
            time.sleep(0.2)  # in which others could run ahead

    monkeypatch.setattr(jsonl.Reader, "parts", counted)
    run(FetchPass(), [open_reader(crawled)], Sinks(take), workers=2)
    assert taken == asked > 50
    assert most <= 4
