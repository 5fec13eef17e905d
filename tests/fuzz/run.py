"""Fuzzes all targets for some time, on all cores: `make fuzz MINUTES=60`.

python tests/fuzz/run.py [--minutes M] [--processes N] [--corpus FOLDER] [--seed S] [TARGET ...]

Where atheris is installed, every second turn of a target keeps inputs that reach code which no other has reached in the corpus,
and the next run goes on from there; the other turns change what is in the corpus by chance, many times as fast. An input for
which something does not hold is written into tests/fuzz/regressions/, one for each place where it fails, the shortest. FUZZ_SEEDS
names a folder with files from the web to begin with, besides those of tests/fuzz/seeds/. With --seed, and without atheris and a
corpus, each run makes the same inputs in the same order, for the check of every change: a find of chance is not its fault."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import runpy
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
REGRESSIONS = HERE / "regressions"
SLICE = 60.0  # seconds that a target has a core at a time
START = 2.0  # seconds until a process has imported everything
MOST_OCTETS = 4096  # of an input
MOST_FAILURES = 20  # of a target that are kept

Target = Callable[[bytes], None]

# File of a corpus -> the kind of input that it stands for, by the end of its name.
ENDINGS = {
    "ai.txt": "/ai.txt",
    "trust.txt": "/trust.txt",
    "automation-preferences.txt": "/automation-preferences.txt",
    ".txt": "/robots.txt",
    ".xml": "/license.xml",
    ".json": "/.well-known/tdmrep.json",
    ".html": "page",
    ".field": "field",
}


def seeds(raw: Callable[[str, bytes], bytes]) -> Iterator[bytes]:
    """What the targets begin with."""
    for folder in filter(None, (str(HERE / "seeds"), os.environ.get("FUZZ_SEEDS"))):
        for path in sorted(Path(folder).rglob("*")):
            kind = next(
                (kind for ending, kind in ENDINGS.items() if path.name.endswith(ending)), ""
            )
            if kind and path.is_file():
                yield raw(kind, path.read_bytes()[:MOST_OCTETS])


def place_of(error: BaseException) -> str:
    """By which two failures are told apart: what was raised, and where."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "comity" in frame.filename or "fuzz" in frame.filename
    ]
    last = frames[-1] if frames else None
    return (
        f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
        if last
        else type(error).__name__
    )


class Recorded:
    """A target whose failures are written down instead of ending the run."""

    def __init__(self, name: str, target: Target, told: Path) -> None:
        """`told`: where it says each second how far it is, for libFuzzer ends the process without a word."""
        self.name = name
        self._target = target
        self._told = told
        self._tell_at = 0.0
        self._inputs = 0
        self._failures: dict[
            str, tuple[int, Path]
        ] = {}  # place -> length and file of the shortest input

    def _tell(self) -> None:
        self._tell_at = time.monotonic() + 1
        failures = {place: path.name for place, (_, path) in self._failures.items()}
        self._told.write_text(json.dumps({"inputs": self._inputs, "failures": failures}))

    def __call__(self, octets: bytes) -> None:
        self._inputs += 1
        if time.monotonic() > self._tell_at:
            self._tell()
        try:
            self._target(octets)
        except Exception as error:
            place = place_of(error)
            length, path = self._failures.get(place, (len(octets) + 1, None))
            if len(octets) < length and (path or len(self._failures) < MOST_FAILURES):
                if path:
                    path.unlink(missing_ok=True)
                path = REGRESSIONS / f"{self.name}-{hashlib.sha256(octets).hexdigest()[:12]}"
                path.write_bytes(octets)
                self._failures[place] = len(octets), path
                self._tell()


def by_chance(
    target: Recorded, corpus: Path, seconds: float, begin: list[bytes], seed: str
) -> None:
    """Without coverage: what is in the corpus, changed here and there, and what is new. `seed`: "" for other inputs each time."""
    chance = random.Random(seed or None)
    known = [*begin, *(path.read_bytes() for path in sorted(corpus.iterdir()))]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        octets = bytearray(
            chance.choice(known)
            if known and chance.random() < 0.5
            else chance.randbytes(int(400 * chance.random() ** 2))
        )
        for _ in range(chance.randrange(4)):
            at = chance.randrange(len(octets) + 1)
            match chance.randrange(3):
                case 0:
                    octets[at:at] = chance.randbytes(chance.randrange(1, 5))
                case 1:
                    del octets[at : at + chance.randrange(1, 9)]
                case _ if known:
                    other = chance.choice(known)
                    octets[at:] = other[chance.randrange(len(other) + 1) :]
        target(bytes(octets[:MOST_OCTETS]))


def by_coverage(
    atheris: Any, target: Recorded, corpus: Path, seconds: float, begin: list[bytes]
) -> None:
    """libFuzzer does not return: it ends the process."""
    for octets in begin:
        (corpus / hashlib.sha256(octets).hexdigest()[:16]).write_bytes(octets)
    flags = [
        f"-max_total_time={max(1, int(seconds))}",
        f"-max_len={MOST_OCTETS}",
        "-timeout=60",
        "-rss_limit_mb=4096",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], str(corpus), f"-artifact_prefix={corpus}-", *flags], target)
    atheris.Fuzz()


def fuzz_one(name: str, corpus: Path, seconds: float, seed: str, *, with_coverage: bool) -> None:
    """In a process of its own. `with_coverage`: where atheris is installed."""
    try:
        import atheris
    except ImportError:
        with_coverage = False
    if not with_coverage:
        atheris = None
    if atheris:
        with atheris.instrument_imports(include=["comity"]):
            made = runpy.run_path(str(HERE / "targets.py"))
    else:
        made = runpy.run_path(str(HERE / "targets.py"))
    corpus.mkdir(parents=True, exist_ok=True)
    begin = list(seeds(made["raw"]))
    target = Recorded(name, made["TARGETS"][name], corpus.parent / f"{name}.{os.getpid()}.json")
    if atheris:
        by_coverage(atheris, target, corpus, seconds, begin)
    else:
        by_chance(target, corpus, seconds, begin, seed)


class Total(NamedTuple):
    """Of one target."""

    inputs: int
    seconds: float
    failures: dict[str, str]


def run(
    names: list[str], corpus: Path, minutes: float, processes: int, seed: str
) -> dict[str, Total]:
    """The targets take turns on each core: one to find inputs by coverage, which makes the code slow, and one to change many."""
    corpus.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * minutes
    totals = {name: Total(0, 0.0, {}) for name in names}
    running: dict[subprocess.Popen[bytes], tuple[str, float]] = {}
    slice_ = max(5.0, min(SLICE, 60 * minutes * processes / len(names) - START))
    turn = 0
    while True:
        left = end - time.monotonic()
        while len(running) < processes and left > 1:
            name = names[turn % len(names)]
            turn += 1
            command = [
                sys.executable,
                __file__,
                "--one",
                name,
                "--corpus",
                str(corpus),
                "--seconds",
                str(min(slice_, left)),
            ]
            if seed:
                command += "--seed", f"{seed}-{turn}"
            if turn // len(names) % 2:
                command.append("--with-coverage")
            log = (corpus / f"{name}.log").open("ab")
            running[subprocess.Popen(command, stdout=log, stderr=log)] = name, time.monotonic()
        if not running:
            return totals
        time.sleep(0.2)
        for process in [process for process in running if process.poll() is not None]:
            name, began = running.pop(process)
            totals[name] = _with(
                totals[name],
                corpus / f"{name}.{process.pid}.json",
                time.monotonic() - began,
                process.returncode,
            )


def _with(total: Total, told: Path, seconds: float, status: int) -> Total:
    found: dict[str, Any] = (
        json.loads(told.read_text(encoding="utf-8"))
        if told.exists()
        else {"inputs": 0, "failures": {}}
    )
    told.unlink(missing_ok=True)
    failures = total.failures | found["failures"]
    if status:
        failures[f"the process ended with {status}"] = "see the log in the corpus"
    return Total(total.inputs + found["inputs"], total.seconds + seconds, failures)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", help="default: all")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--corpus", type=Path, default=HERE.parent.parent / ".fuzz")
    parser.add_argument("--seed", default="", help="for the same inputs each time")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--with-coverage", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        fuzz_one(
            given.one,
            given.corpus / given.one,
            given.seconds,
            given.seed,
            with_coverage=given.with_coverage,
        )
        return 0
    names = given.targets or [*runpy.run_path(str(HERE / "targets.py"))["TARGETS"]]
    totals = run(names, given.corpus, given.minutes, given.processes, given.seed)
    print(f"{'target':<12}{'inputs':>12}{'a second':>10}  failures")
    for name, total in totals.items():
        print(
            f"{name:<12}{total.inputs:>12,}{total.inputs / max(1, total.seconds):>10,.0f}  {len(total.failures)}"
        )
        for place, file in total.failures.items():
            print(f"    {place}: {file}")
    print(f"{'in all':<12}{sum(total.inputs for total in totals.values()):>12,}")
    return 1 if any(total.failures for total in totals.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
