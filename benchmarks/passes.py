"""An export of a folder of files to a folder, by one process and by executors: the same files, how fast, in how much memory.

    python benchmarks/passes.py [--records 10000000] [--files 40] [--executors processes,ray] [--folder /tmp/passes]

One table is of Parquet that becomes Parquet, the other of the same records as JSON Lines. In every other file a third of the
records have an element that is cut out. It shows records a second, records a second of CPU (of all processes, those of the engine
among them), and the memory that all have together. The time that an engine takes to start is in it. With `--kill` a worker that
writes is killed in the middle of each run."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from exports import NOW, USE, descendants, made, proportional, write
from pyarrow import RecordBatch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from comity.dataset import manifest
from comity.dataset.execution.executors import EXECUTORS, PROCESSES, usable_cores
from comity.dataset.export.folder_export import export_folder
from comity.dataset.job import JobOptions
from comity.dataset.permissions.terms import Terms

FORMS = (".parquet", ".jsonl")
EVERY = 0.2  # seconds between two looks at the processes

console = Console(width=120)


class Cost(NamedTuple):
    """Of one run, in processes of its own."""

    kept: int
    seconds: float
    cpu: float  # seconds, of all processes
    together: int  # octets that all processes had at most at a time, what they share counted once
    killed: bool  # a worker was


def sources(folder: Path, records: int, files: int) -> dict[str, Path]:
    """The folders, by the ending of their files. What is there is not made again."""
    found = {ending: folder / f"in-{records}-{files}{ending.replace('.', '-')}" for ending in FORMS}
    each = records // files
    parquet = found[".parquet"]
    parquet.mkdir(parents=True, exist_ok=True)
    missing = [number for number in range(files) if not (parquet / f"{number:04}.parquet").exists()]
    with ProcessPoolExecutor(usable_cores(), multiprocessing.get_context("spawn")) as pool:
        for is_mixed in (False, True):
            numbers = [number for number in missing if number % 2 == is_mixed]
            if numbers:
                written = partial(write_file, parquet, made(is_mixed=is_mixed), each)
                for number in track(
                    pool.map(written, numbers), "Files are made", len(numbers), console=console
                ):
                    assert number in numbers
    return found


def write_file(folder: Path, batch: RecordBatch, records: int, number: int) -> int:
    path = folder / f"{number:04}.parquet"
    write(new := path.with_name(f"_{number}.parquet"), batch, records, first=number * records)
    new.rename(path)
    return number


def lines(folder: Path, into: Path) -> None:
    """The records as JSON Lines: all of them permit `crawl`."""
    if not into.exists():
        export_folder([folder], into, Terms.of(["crawl"], now=NOW), ending=".jsonl")


def run(source: Path, output: Path, executor: str, workers: int | None, told: Any) -> None:
    options = JobOptions(workers, executor=executor)
    kept = export_folder([source], output, Terms.of([USE], now=NOW), options).counts.kept
    told.send(kept)


def measured(source: Path, output: Path, executor: str, workers: int | None, *, kill: bool) -> Cost:
    context = multiprocessing.get_context("spawn")
    told, teller = context.Pipe(duplex=False)
    process = context.Process(target=run, args=(source, output, executor, workers, teller))
    cpu: dict[int, float] = {}
    together, killed = 0, False
    start = time.perf_counter()
    process.start()
    teller.close()
    chance, part = random.Random(8), output.with_name(f".{output.name}.part")
    assert process.pid
    while process.is_alive():
        process.join(EVERY)
        pids = [process.pid, *descendants(process.pid)]
        together = max(together, sum(map(proportional, pids)))
        cpu |= {pid: seconds for pid in pids if (seconds := cpu_of(pid))}
        if kill and not killed and part.exists() and len([*part.glob("[!.]*")]) >= 2:
            workers_now = [pid for pid in pids[1:] if has_open(pid, part)]
            if workers_now:
                os.kill(chance.choice(workers_now), signal.SIGKILL)
                killed = True
    seconds = time.perf_counter() - start
    try:
        kept = told.recv()
    except EOFError:
        raise SystemExit(f"{executor} failed with status {process.exitcode}") from None
    return Cost(kept, seconds, sum(cpu.values()), together, killed)


def cpu_of(pid: int) -> float:
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def has_open(pid: int, folder: Path) -> bool:
    """Whether the process writes there."""
    with suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if str(entry.readlink()).startswith(f"{folder}/"):
                    return True
    return False


def digests(output: Path) -> list[tuple[str, str]]:
    described = json.loads(manifest.path_of(output).read_bytes())
    return [(file["name"], file["sha256"]) for file in described["distribution"][1:]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--executors", default="processes,ray", help=f"of {', '.join(EXECUTORS)}")
    parser.add_argument("--forms", default=",".join(FORMS), help="endings of the files")
    parser.add_argument(
        "--folder", type=Path, help="for the files, which stay there; else they are removed"
    )
    parser.add_argument(
        "--kill", action="store_true", help="kill a worker in the middle of each run by an executor"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        found = sources(folder, options.records, options.files)
        for ending in options.forms.split(","):
            if ending == ".jsonl":
                lines(found[".parquet"], found[".jsonl"])
            show(found[ending], ending, folder, options)


def show(source: Path, ending: str, folder: Path, options: argparse.Namespace) -> None:
    columns = (
        "executor",
        "workers",
        "came out",
        "seconds",
        "records a second",
        "a CPU second",
        "together MB",
        "killed",
        "files",
    )
    table = Table(
        *columns,
        title=f"{options.records:,} records in {options.files} files, {ending} to {ending}",
    )
    first: list[tuple[str, str]] = []
    for executor, workers in [
        (PROCESSES, 1),
        *((name, usable_cores()) for name in options.executors.split(",")),
    ]:
        output = folder / "out"
        cost = measured(source, output, executor, workers, kill=options.kill and workers > 1)
        had = digests(output)
        first = first or had
        numbers = (
            f"{cost.kept:,}",
            f"{cost.seconds:.1f}",
            f"{options.records / cost.seconds:,.0f}",
            f"{options.records / cost.cpu:,.0f}",
            f"{cost.together / 1e6:.0f}",
        )
        table.add_row(
            executor,
            str(workers),
            *numbers,
            "one" if cost.killed else "",
            "the same" if had == first else "DIFFERENT",
        )
        shutil.rmtree(output)
        manifest.path_of(output).unlink()
    console.print(table)


if __name__ == "__main__":
    main()
