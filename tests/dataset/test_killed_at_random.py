"""kill -9 at random moments of `expire` and `tag`: nothing is lost, every file can be read, and the
next run completes.

test_killed.py kills at steps of the interpreter. Here moments within a system call are among those
that are hit."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

from comity.dataset import manifest
from comity.dataset.croissant import sha256_of
from comity.dataset.files.formats import open_reader, open_writer
from comity.dataset.records import Record, Unreadable
from tests.dataset.tagging.archives import page, write
from tests.selection import one_in

MakeRecord = Callable[..., dict[str, Any]]

NUMBER = 200  # records
KILLS = {"expire": 12, "folder": 8, "tag": 4}  # of a job; 2 without --all
TRIES = 10  # for each kill: a job may end before its moment
GONE = range(0, NUMBER, 5)  # records with an ended permission
UNTAGGED = range(3, NUMBER, 50)  # records without a tag

# Each line is a job, which a child of the process does. It is killed after so many seconds, if
# these are not negative. The answer is the status of the child and the seconds that the job took.
STARTER = """
import os, select, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from comity.dataset.expire import expire
from comity.dataset.files import jsonl
from comity.dataset.files.columns import parquet
from comity.dataset.files.warc import reader
from comity.dataset.job import JobOptions
from comity.dataset.tagging import warc
from comity.dataset.tagging.folder_tagging import tag_folder
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.tagging import tag_dataset
from comity.policies import Agent
from tests.dataset.tagging.archives import Policies

jsonl.PART = reader.PART = warc.PART = 20_000
parquet.GROUP_ROWS = 40
NOW = datetime(2026, 11, 22, tzinfo=UTC)
question = Question.of(Agent("x", uses=("train",)), now=NOW, missing="keep-apart")
judge = Judge(question, Policies({"https://a.test": {"/robots.txt": "User-agent: *"}}))
for line in sys.stdin:
    kind, source, output, seconds = line.split()
    child = os.fork()
    if not child:
        options = JobOptions(workers=1)
        if kind == "expire":
            expire([Path(output)], NOW, options=options)
        else:
            tag = tag_dataset if Path(output).suffix else tag_folder
            tag([Path(source)], Path(output), judge, options=options)
        os._exit(0)
    began, handle = monotonic(), os.pidfd_open(child)
    if float(seconds) >= 0 and not select.select([handle], [], [], float(seconds))[0]:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(handle)
    print(status, monotonic() - began, flush=True)
"""


class Jobs:
    """Jobs in children of one process that has imported everything."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, kind: str, source: Path, output: Path, seconds: float = -1) -> tuple[bool, float]:
        """Return whether the job was killed after these seconds, and the seconds that it took."""
        assert self._process.stdin
        assert self._process.stdout
        print(kind, source, output, seconds, file=self._process.stdin, flush=True)
        status, took = self._process.stdout.readline().split()
        assert int(status) in ((0, -signal.SIGKILL) if seconds >= 0 else (0,))
        return int(status) != 0, float(took)

    def killed(
        self, kind: str, source: Path, output: Path, begin: Callable[[], None], times: int
    ) -> Iterator[None]:
        """Begin anew and kill the job, so many times. Yield after each kill."""
        begin()
        took = max(self.run(kind, source, output)[1] for _ in range(2))
        choice, tries = random.Random(f"{kind} {output.name}"), 0
        for _ in range(times):
            is_killed = False
            while not is_killed:
                tries += 1
                assert tries <= TRIES * times
                begin()
                # Every other time near the end, where files take the places of others.
                share = choice.random() if tries % 2 else 1 - choice.random() ** 3
                is_killed, _ = self.run(kind, source, output, took * share)
            yield


@pytest.fixture(scope="module")
def jobs() -> Iterator[Jobs]:
    command, root = [sys.executable, "-c", STARTER], Path(__file__).parents[2]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    ) as process:
        yield Jobs(process)


def numbered(make_record: MakeRecord) -> list[Record]:
    records = []
    for number in range(NUMBER):
        until = {"until": "2026-11-21T23:59:59Z"} if number in GONE else {}
        url = f"https://example.com/{number}"
        record = make_record(train=until, fields={"url": url, "final_url": url, "number": number})
        if number in UNTAGGED:
            del record["permissions"]
        records.append(record)
    return records


def made(path: Path, records: list[Record]) -> Path:
    path.parent.mkdir(exist_ok=True)
    if ".warc" not in path.name:
        with open_writer(path) as writer:
            for start in range(0, len(records), 40):
                writer.write(writer.encode(records[start : start + 40]))
        return path
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=path.suffix == ".gz", warc_version="1.1")
        for record in records:
            name = f"<urn:{record['number']}>"
            body = json.dumps(record).encode()
            if "permissions" in record:
                about = {"WARC-Refers-To": name, "WARC-Date": "2026-11-21T12:00:00Z"}
                item = writer.create_warc_record(
                    record["url"],
                    "metadata",
                    BytesIO(body),
                    len(body),
                    warc_content_type="application/json",
                    warc_headers_dict=about,
                )
                writer.write_record(item)
            fields = {"WARC-Record-ID": name, "WARC-Date": "2026-11-21T12:00:00Z"}
            answer = writer.create_warc_record(
                record["url"], "resource", BytesIO(b"<p>"), 3, warc_headers_dict=fields
            )
            writer.write_record(answer)
    return path


def urls(path: Path) -> set[str]:
    """Return the URLs of the records of a file. All of it can be read."""
    reader = open_reader(path)
    found = [record for part in reader.parts() for batch in reader.read(part) for record in batch]
    assert not any(isinstance(record, Unreadable) for record in found)
    return {record["url"] for record in found if isinstance(record, dict)}


def url(number: int) -> str:
    return f"https://example.com/{number}"


def described(path: Path) -> bool:
    """Return whether a manifest is beside a file or a folder. If there is one, it describes
    that."""
    if not manifest.path_of(path).exists():
        return False
    files = manifest.described_files(json.loads(manifest.path_of(path).read_bytes()))
    for name, digest in files.items():
        file = path / name if path.is_dir() else path
        assert hashlib.sha256(file.read_bytes()).hexdigest() == digest.sha256
    return True


def lines(path: Path) -> list[Any]:
    """Return the lines of a side file. A killed process may leave half a line."""
    found = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            found.append({})
    return found


FORMS = (".parquet", ".jsonl", ".jsonl.zst", ".jsonl.gz", ".warc", ".warc.gz")


def kept_aside(path: Path) -> set[str]:
    """Return the URLs of untagged records that stand beside a file."""
    found: set[str] = set()
    for line in lines(path.with_name(f"{path.name}.unreadable.jsonl")):
        record = line.get("record") or {}
        found.add(record.get("url", ""))
    for ending in (".warc", ".warc.gz"):
        aside = path.with_name(f"{path.name}.unreadable{ending}")
        if aside.exists():
            found |= urls(aside)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_expire(
    tmp_path: Path, make_record: MakeRecord, jobs: Jobs, form: str, *, in_full: bool
) -> None:
    before = made(tmp_path / f"before{form}", numbered(make_record))
    path = tmp_path / "data" / f"d{form}"

    def begin() -> None:
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir()
        shutil.copy(before, path)
        composed = {
            "distribution": [
                {"@type": "cr:FileObject", "name": path.name, "sha256": sha256_of(path)}
            ]
        }
        manifest.write(path, composed | {"comity:uses": ["train"]})

    begin()
    jobs.run("expire", path, path)
    right, everything = path.read_bytes(), urls(before)
    staying = everything - {url(number) for number in (*GONE, *UNTAGGED)}
    for _ in jobs.killed("expire", path, path, begin, KILLS["expire"] if in_full else 2):
        found = urls(path)
        assert found in (everything, staying)
        described(path)
        aside, told = (
            kept_aside(path),
            {line.get("url") for line in lines(path.with_name(f"{path.name}.expired.jsonl"))},
        )
        assert found | aside >= {url(number) for number in UNTAGGED}
        assert found | told >= {url(number) for number in GONE}
        jobs.run("expire", path, path)
        assert path.read_bytes() == right
        assert described(path)
        assert kept_aside(path) >= {url(number) for number in UNTAGGED}
        told = {line.get("url") for line in lines(path.with_name(f"{path.name}.expired.jsonl"))}
        assert told >= {url(number) for number in GONE}
        assert not [*path.parent.glob(".*.part")]


@pytest.mark.parametrize("form", one_in(2, [".jsonl.zst", ".warc.gz"]))
def test_expire_a_folder(
    tmp_path: Path, make_record: MakeRecord, jobs: Jobs, form: str, *, in_full: bool
) -> None:
    """Each file is the old one or the new one.

    Its removed records are listed beside the folder, or are still in the file."""
    folder, before = tmp_path / "data" / "d", tmp_path / "before"
    records = numbered(make_record)
    names = [f"{place}{form}" for place in range(4)]
    for place, name in enumerate(names):
        made(before / name, records[place::4])

    def begin() -> None:
        shutil.rmtree(folder.parent, ignore_errors=True)
        shutil.copytree(before, folder)
        files = [
            {"@type": "cr:FileObject", "name": name, "sha256": sha256_of(folder / name)}
            for name in names
        ]
        manifest.write(folder, {"distribution": files})

    begin()
    jobs.run("expire", folder, folder)
    right = {name: (folder / name).read_bytes() for name in names}
    everything = {name: urls(before / name) for name in names}
    staying = {name: urls(folder / name) for name in names}
    for _ in jobs.killed("expire", folder, folder, begin, KILLS["folder"] if in_full else 2):
        described(folder)
        for name in names:
            found = urls(folder / name)
            assert found in (everything[name], staying[name])
            gone = lines(folder.parent / "d.expired" / f"{name}.jsonl")
            assert found | {line.get("url") for line in gone} == everything[name]
        jobs.run("expire", folder, folder)
        assert {name: (folder / name).read_bytes() for name in names} == right
        assert described(folder)
        assert not [*folder.parent.rglob(".*.part")]


def snapshot(path: Path) -> dict[str, bytes]:
    """Return all files beside an output, and in it, but for its manifest."""
    return {
        str(file.relative_to(path.parent)): file.read_bytes()
        for file in path.parent.rglob("*")
        if file.is_file() and not file.name.endswith(".croissant.json")
    }


OUTPUTS = ("out.parquet", "out.jsonl", "out.jsonl.zst", "out")
# Each form and each output once.
QUICK = {*zip(FORMS, (*OUTPUTS, *OUTPUTS), strict=False)}
PAIRS = [
    pytest.param(*pair, marks=() if pair in QUICK else pytest.mark.slow)
    for pair in product(FORMS, OUTPUTS)
]


@pytest.mark.slow
@pytest.mark.parametrize(("form", "output"), PAIRS)
def test_tag(
    tmp_path: Path, make_record: MakeRecord, jobs: Jobs, form: str, output: str, *, in_full: bool
) -> None:
    if ".warc" in form:
        pages = [
            page(url=f"https://{'b' if number % 7 == 0 else 'a'}.test/{number}")
            for number in range(NUMBER)
        ]
        source = write(tmp_path / f"in{form}", *pages, page()[:-9])
    else:
        rows = [
            {
                "url": f"https://{'b' if number % 7 == 0 else 'a'}.test/{number}",
                "date": "2024-05-18",
                "text": "a " * 99,
            }
            for number in range(NUMBER)
        ]
        source = made(tmp_path / f"in{form}", rows)
    if output == "out":
        source = source.replace(made(tmp_path / f"in/{source.name}", numbered(make_record)))
        shutil.copy(source, source.with_name(f"again{form}"))
        source = source.parent
    path = tmp_path / "data" / output

    def begin() -> None:
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir()

    begin()
    jobs.run("tag", source, path)
    right, written = snapshot(path), manifest.path_of(path).read_bytes()
    for _ in jobs.killed("tag", source, path, begin, KILLS["tag"] if in_full else 2):
        described(path)
        if path.exists():
            found = snapshot(path)
            assert {
                name: found[name]
                for name in right
                if name.startswith(f"{output}/") or name == output
            } == {
                name: right[name]
                for name in right
                if name.startswith(f"{output}/") or name == output
            }
        jobs.run("tag", source, path)
        assert snapshot(path) == right
        assert described(path)
        assert manifest.path_of(path).read_bytes() == written
