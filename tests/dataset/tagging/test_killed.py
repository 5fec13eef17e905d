"""kill -9 at any step of tagging: the output is the old file or the new one, and its manifest fits
it. A step is a call or a return in the interpreter, so it does not depend on the speed of the
machine."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.dataset.tagging.archives import page, write

OLD = b'{"url":"https://old.test/"}\n'
RUN = """
import os, signal, sys
from pathlib import Path
from comity.dataset.job import JobOptions
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.folder_tagging import tag_folder
from comity.dataset.tagging.tagging import tag_dataset
from comity.policies import Agent
from tests.dataset.tagging.archives import NOW, Policies

for line in sys.stdin:
    source, output, last = line.split()
    child = os.fork()
    if not child:
        steps, last = 0, int(last)
        def step(*_):
            global steps
            steps += 1
            if steps == last:
                os.kill(os.getpid(), signal.SIGKILL)
        policies = Policies({"https://a.test": {"/robots.txt": "User-agent: *"}})
        agent = Agent("x", uses=("train",))
        judge = Judge(Question.of(agent, now=NOW, missing="keep-apart"), policies)
        sys.setprofile(step)
        tag = tag_dataset if Path(output).suffix else tag_folder
        options = JobOptions(evidence=lambda copies: [None for _ in copies])
        tag([Path(source)], Path(output), judge, options=options)
        sys.setprofile(None)
        print(steps, flush=True)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@contextmanager
def starting(
    source: Path, output: Path
) -> Iterator[tuple[Callable[[int], int], Callable[[], int]]]:
    """Give two functions.

    The first one tags and is killed at a step (0: at none), and returns the number of steps or
    the signal. The second one returns the status of a process that was not killed."""
    command, root = [sys.executable, "-c", RUN], Path(__file__).parents[3]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    ) as starter:
        assert starter.stdout
        told = starter.stdout

        def status() -> int:
            return int(told.readline())

        def tagged(last: int) -> int:
            print(source, output, last, file=starter.stdin, flush=True)
            return status()

        yield tagged, status


def table(path: Path) -> Path:
    """Rows of JSON Lines, and a line that is none."""
    rows = [f'{{"url":"https://{site}.test/","date":"2024-06-01"}}' for site in "abca"]
    path.write_text("\n".join([*rows, "no record"]), encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("form", ["in.warc.gz", "in.jsonl"])
@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_the_old_file_or_the_new_one(tmp_path: Path, name: str, form: str) -> None:
    pages = (page(url=url) for url in ("https://a.test/", "https://b.test/"))
    source = (
        table(tmp_path / form)
        if form == "in.jsonl"
        else write(tmp_path / form, *pages, page()[:-9])
    )
    output = tmp_path / name
    manifest = output.with_name(f"{name}.croissant.json")
    with starting(source, output) as (tagged, status):
        steps = tagged(0)
        assert status() == 0
        new = output.read_bytes()
        for last in [*range(1, steps, max(1, steps // 12)), *range(steps - 60, steps, 4)]:
            output.write_bytes(OLD)
            manifest.unlink(missing_ok=True)
            assert tagged(last) == -signal.SIGKILL
            assert output.read_bytes() in (OLD, new), last
            if manifest.exists():
                described = json.loads(manifest.read_bytes())
                [file] = described["distribution"]
                assert file["sha256"] == hashlib.sha256(new).hexdigest()
                assert output.read_bytes() == new
                assert len(described["comity:evidence"]) == 2
                for file in described["comity:evidence"]:
                    octets = output.with_name(file["name"]).read_bytes()
                    assert file["sha256"] == hashlib.sha256(octets).hexdigest()


@pytest.mark.slow
def test_the_old_folder_or_the_new_one(tmp_path: Path) -> None:
    """Or none, for the moment between them: never a mixture, and never a manifest of another
    one."""
    sources, output = tmp_path / "in", tmp_path / "out"
    sources.mkdir()
    for name in ("a", "b"):
        write(
            sources / f"{name}.warc.gz",
            *(page(url=url) for url in ("https://a.test/", "https://b.test/")),
            page()[:-9],
        )
    manifest = tmp_path / "out.croissant.json"
    with starting(sources, output) as (tagged, status):

        def made() -> tuple[int, dict[str, bytes], bytes]:
            steps = tagged(0)
            assert status() == 0
            return (
                steps,
                {file.name: file.read_bytes() for file in output.iterdir()},
                manifest.read_bytes(),
            )

        _, old, described_before = made()
        write(sources / "a.warc.gz", page(url="https://a.test/new"))
        steps, new, described = made()
        assert old.keys() == new.keys()
        assert old != new
        killed = 0
        for last in [*range(1, steps, max(1, steps // 12)), *range(steps - 400, steps, 25)]:
            output.mkdir(exist_ok=True)
            for name, octets in old.items():
                (output / name).write_bytes(octets)
            manifest.write_bytes(described_before)
            killed += (ended := tagged(last)) == -signal.SIGKILL
            # with less that a killed one has left it takes fewer steps
            if ended != -signal.SIGKILL:
                assert status() == 0
            found = (
                {file.name: file.read_bytes() for file in output.iterdir()}
                if output.exists()
                else None
            )
            assert found in (old, new, None), last
            if manifest.exists():
                assert found == (new if manifest.read_bytes() == described else old), last
        assert killed > 12
