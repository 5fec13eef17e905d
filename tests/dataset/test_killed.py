"""kill -9 at any point of an export, and of expire: the dataset is there, whole, the old one or the
new one.

A point is a step of the interpreter, not a moment: where it is does not depend on how fast the
machine is."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

from comity.dataset import manifest
from comity.dataset.expire import expire
from comity.dataset.export.export import export
from comity.dataset.export.folder_export import export_folder
from comity.dataset.files.formats import open_reader
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import Unreadable
from tests.selection import one_in

MakeRecord = Callable[..., dict[str, Any]]

OLD, NOW = datetime(2026, 11, 21, tzinfo=UTC), datetime(2026, 11, 22, tzinfo=UTC)
EACH = 40  # records of each file of a folder
NUMBER = 5 * EACH
TIMES = 50  # in all; a fifth of it without --all
WAYS = [
    ("export", "jsonl"),
    ("export", "parquet"),
    ("expire", "jsonl"),
    ("expire", "parquet"),
    ("expire", "warc.gz"),
]

# Each line that it reads is a job for a process of its own: thus 50 of them need not start 50
# times. That one kills itself at the step that the line names, a call or a return, and else prints
# how many there were.
RUN = """
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from comity.dataset.files.columns import parquet
from comity.dataset.export.export import export
from comity.dataset.export.folder_export import export_folder
from comity.dataset.expire import expire
from comity.dataset.job import JobOptions
from comity.dataset.permissions.terms import Terms

for line in sys.stdin:
    kind, source, path, last = line.split()
    process = os.fork()
    if not process:
        now, last, steps = datetime(2026, 11, 22, tzinfo=UTC), int(last), 0

        def step(*_):
            global steps
            steps += 1
            if steps == last:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(step)
        if kind == "export":
            export([Path(source)], Path(path), Terms.of(["train"], now=now))
        elif kind == "folder":
            export_folder([Path(source)], Path(path), Terms.of(["train"], now=now))
        else:
            expire([Path(path)], now)
        sys.setprofile(None)
        print(steps, flush=True)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def starter() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process


@pytest.fixture
def crawled(tmp_path: Path, make_record: MakeRecord) -> Path:
    path = tmp_path / "crawled.jsonl"
    with path.open("w") as file:
        for number in range(NUMBER):
            until = {"until": "2026-11-21T23:59:59Z"} if number % 5 == 0 else {}
            url = f"https://example.com/{number}"
            file.write(
                json.dumps(
                    make_record(
                        train=until, fields={"url": url, "final_url": url, "number": number}
                    )
                )
                + "\n"
            )
    return path


def numbers(path: Path) -> list[int]:
    """Of the records. It raises where the file cannot be read to its end."""
    reader = open_reader(path)
    found = [record for part in reader.parts() for batch in reader.read(part) for record in batch]
    assert not any(isinstance(record, Unreadable) for record in found)
    return [record["number"] for record in found if isinstance(record, dict) and "number" in record]


UNTAGGED = b"nobody said what may be done with it"


def archive(crawled: Path, path: Path) -> None:
    """A file like that of a WARC feed, with an answer of another program in it."""
    with path.open("wb") as file:
        writer = WARCWriter(file)
        for line in crawled.read_bytes().splitlines():
            url, name = json.loads(line)["url"], f"<urn:{json.loads(line)['number']}>"
            about = {"WARC-Refers-To": name}
            for kind, media_type, body, fields in (
                ("metadata", "application/json", line, about),
                ("resource", "text/html", b"<p>", {"WARC-Record-ID": name}),
            ):
                record = writer.create_warc_record(
                    url,
                    kind,
                    BytesIO(body),
                    len(body),
                    warc_content_type=media_type,
                    warc_headers_dict=fields,
                )
                writer.write_record(record)
        other = writer.create_warc_record(
            "http://other.test/", "resource", BytesIO(UNTAGGED), len(UNTAGGED)
        )
        writer.write_record(other)


def steps(
    starter: subprocess.Popen[str], kind: str, source: Path, path: Path, last: int = 0
) -> int | None:
    """How many steps the job took. None: it was killed at the last one."""
    assert starter.stdin
    assert starter.stdout
    print(kind, source, path, last, file=starter.stdin, flush=True)
    said = int(starter.stdout.readline())
    if said == -signal.SIGKILL:
        return None
    assert int(starter.stdout.readline()) == 0
    return said


@pytest.mark.parametrize(("kind", "format"), one_in(len(WAYS), WAYS))
def test_the_dataset_is_whole(
    tmp_path: Path,
    crawled: Path,
    starter: subprocess.Popen[str],
    kind: str,
    format: str,  # noqa: A002
    *,
    in_full: bool,
) -> None:
    path, before = tmp_path / f"dataset.{format}", tmp_path / f"before.{format}"
    # The old one: all that may be used a day before, when nothing had expired.
    if format == "warc.gz":
        archive(crawled, before)
    else:
        export([crawled], before, Terms.of(["train"], now=OLD))
    old, new = list(range(NUMBER)), [number for number in range(NUMBER) if number % 5]
    log = tmp_path / f"dataset.{format}.expired.jsonl"

    def begin() -> None:
        shutil.copy(before, path)
        described = manifest.read(before)
        if described:  # an export
            manifest.write(path, described)
        log.unlink(missing_ok=True)
        Path(f"{path}.unreadable.warc.gz").unlink(missing_ok=True)

    begin()
    all_of_them = steps(starter, kind, crawled, path)
    assert all_of_them
    assert numbers(path) == new

    choice = random.Random(f"{kind} {format}")
    killed = 0
    times = TIMES // len(WAYS) // (1 if in_full else 5)
    for attempt in range(times):
        begin()
        # Every other time nearer to the end, where files take the places of others.
        left = (
            all_of_them * choice.random() if attempt % 2 else all_of_them ** choice.uniform(0.4, 1)
        )
        last = max(1, all_of_them - int(left))
        killed += steps(starter, kind, crawled, path, last) is None
        found = numbers(path)
        assert found in (old, new)
        place = manifest.path_of(path)
        if place.exists():  # then it is that of the file
            [file] = json.loads(place.read_bytes())["distribution"]
            assert file["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert bool(manifest.last(path)) == bool(manifest.last(before))
        # it is no other that says how this one came about
        if kind == "export" and (told := manifest.read(path)):
            assert told["comity:exportedAt"] == (NOW if found == new else OLD).isoformat()
        if kind == "expire":
            expire([path], NOW)
            assert numbers(path) == new
            gone = {_url(line) for line in log.read_bytes().splitlines()}
            assert gone >= {f"https://example.com/{number}" for number in range(0, NUMBER, 5)}
        if format == "warc.gz":
            assert UNTAGGED in gzip.decompress(Path(f"{path}.unreadable.warc.gz").read_bytes())
    assert killed >= times / 2  # a run may have some steps less than the first


@pytest.mark.requirement("REACH-5")
@pytest.mark.parametrize("kind", one_in(2, ["folder", "expire"]))
def test_the_folder_is_whole(
    tmp_path: Path,
    crawled: Path,
    starter: subprocess.Popen[str],
    kind: str,
    *,
    in_full: bool,
) -> None:
    """An export leaves the old one or the new one, or for a moment none; of expire each file is the
    old one or the new one."""
    source, before, path = tmp_path / "in", tmp_path / "before", tmp_path / "out"
    source.mkdir()
    lines = crawled.read_bytes().splitlines(keepends=True)
    for place in range(4):
        (source / f"{place}.jsonl").write_bytes(b"".join(lines[place * EACH : place * EACH + EACH]))
    export_folder([source], before, Terms.of(["train"], now=OLD))

    def begin() -> None:
        for folder in (
            path,
            tmp_path / ".out.before",
            tmp_path / ".out.part",
            tmp_path / "out.expired",
        ):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(before, path)
        described = manifest.read(before)
        assert described
        manifest.write(path, described)

    def of_files() -> list[list[int]]:
        assert sorted(file.name for file in path.iterdir() if file.name[0] != ".") == [
            f"{place}.jsonl" for place in range(4)
        ]
        return [numbers(path / f"{place}.jsonl") for place in range(4)]

    old = [list(range(place * EACH, place * EACH + EACH)) for place in range(4)]
    new = [[number for number in some if number % 5] for some in old]
    begin()
    all_of_them = steps(starter, kind, source, path)
    assert all_of_them
    assert of_files() == new
    choice, killed, times = random.Random(kind), 0, 20 if in_full else 4
    for attempt in range(times):
        begin()
        left = (
            all_of_them * choice.random() if attempt % 2 else all_of_them ** choice.uniform(0.3, 1)
        )
        killed += steps(starter, kind, source, path, max(1, all_of_them - int(left))) is None
        if not path.exists():
            assert kind == "folder"
            assert (tmp_path / ".out.before").exists()
        elif kind == "folder":
            assert of_files() in (old, new)
        else:
            assert all(
                found in (was, is_new)
                for found, was, is_new in zip(of_files(), old, new, strict=True)
            )
        if manifest.path_of(path).exists() and path.exists():  # then it is that of the files
            for file in json.loads(manifest.path_of(path).read_bytes())["distribution"][1:]:
                assert (
                    file["sha256"] == hashlib.sha256((path / file["name"]).read_bytes()).hexdigest()
                )
        assert manifest.last(path)
        if kind == "folder" and (told := manifest.read(path)):
            assert told["comity:exportedAt"] == (NOW if of_files() == new else OLD).isoformat()
        assert steps(starter, kind, source, path)
        assert of_files() == new
        for file in json.loads(manifest.path_of(path).read_bytes())["distribution"][1:]:
            assert file["sha256"] == hashlib.sha256((path / file["name"]).read_bytes()).hexdigest()
        assert not [*tmp_path.glob(".out.*")]
    assert killed >= times / 2


def _url(line: bytes) -> str | None:
    try:
        url: str = json.loads(line)["url"]
    except ValueError:  # the last line that a killed process wrote
        return None
    return url


WORKERS = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from comity.dataset.files import jsonl
from comity.dataset.export.export import export
from comity.dataset.export.folder_export import export_folder
from comity.dataset.expire import expire
from comity.dataset.job import JobOptions
from comity.dataset.permissions.terms import Terms

jsonl.PART = 1000
if __name__ == "__main__":
    how = JobOptions(2, lambda _: print("part", flush=True))
    while True:
        export([Path(sys.argv[1])], Path(sys.argv[2]), Terms.of(["train"]), how)
"""


def test_processes_end_with_the_one_that_gives_them_work(tmp_path: Path, crawled: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(WORKERS)
    process = subprocess.Popen(
        [sys.executable, script, crawled, tmp_path / "o.jsonl"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "part\n"
    children = _children(process.pid)
    assert len(children) >= 2
    process.kill()
    process.stdout.read()  # ends when all that could write there have ended
    process.wait()
    process.stdout.close()
    give_up = time.monotonic() + 20
    while any(map(_is_alive, children)):  # one of multiprocessing's own cleans up first
        assert time.monotonic() < give_up
        time.sleep(0.01)  # between two looks at other processes


def _children(parent: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{parent}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def _is_alive(process: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return False
