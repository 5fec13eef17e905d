"""Runs Scrapy's own tests, as its source distribution has them, without comity and with the add-on on by default, and lists what
passes without it and not with it, by the reasons in differences.toml. Then it runs Scrapy's tests of download handlers for
comity's (handler_tests.py).

    python run.py FOLDER [pytest arguments, e.g. tests/test_crawl.py]

FOLDER: outside of the repository; Scrapy is unpacked there, what pytest says goes into *.log, and what ran without comity is kept
for the next time. The exit status is 1 where a difference has no reason, or a reason no difference any more."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from shutil import copy, move, rmtree
from signal import SIGKILL
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

OUTCOMES = "SUITE_OUTCOMES"  # environment variables: the file for what becomes of the tests,
STORES = "SUITE_STORES"  # the folder for what the add-on keeps, where it is on,
SETTINGS = "SUITE_SETTINGS"  # and settings of the project, as JSON
HERE = Path(__file__).resolve().parent
OPTIONS = (
    *(
        "-p",
        "outcomes",
        "-p",
        "no:cacheprovider",
        "-q",
        "--no-header",
        "--tb=short",
        "--durations=20",
    ),
    *("-n", "3", "--max-worker-restart=100", "-m", "not requires_internet"),
    # Long, since hosts that answer 503 are asked again after minutes. A test that hangs ends with its process, whose reactor
    # nobody could use any more.
    *("--timeout=300", "--timeout-method=thread"),
)
PROGRESS = re.compile(r"\[( *[0-9]+%)\]$")


class Outcome(NamedTuple):
    """How a test went."""

    outcome: str  # of ORDER
    error: str = ""  # the first line that pytest says of it


ORDER = ("passed", "skipped", "failed")
PASSED = Outcome("passed")


class Reason(NamedTuple):
    """Why tests do not pass with the add-on on."""

    text: str
    patterns: Sequence[str]  # of their names
    settings: Mapping[str, Any]  # with which they do pass, where there are such

    def fits(self, name: str) -> bool:
        return any(_fits(name, pattern) for pattern in self.patterns)


DIFFERENCES = tomllib.loads((HERE / "differences.toml").read_text())
REASONS = [
    Reason(text, entry["tests"], entry.get("settings", {})) for text, entry in DIFFERENCES.items()
]


def main(folder: Path, arguments: list[str]) -> int:
    if folder.resolve().is_relative_to(HERE.parents[1]):
        sys.exit(
            f"{folder} is in the repository, whose scrapy.cfg would count: name a folder outside of it"
        )
    source = unpacked(folder.resolve())
    _install_hook()
    suite = arguments or ["tests"]
    without = _without(source, suite)
    with_comity = run(source, "with comity", suite)
    passed = sorted(name for name, outcome in without.items() if outcome == PASSED)
    lost = _lost(passed, with_comity)
    unexplained = [name for name in lost if not any(reason.fits(name) for reason in REASONS)]
    if unexplained:  # what fails now and then is no difference
        unexplained = _lost(unexplained, run(source, "with comity, again", unexplained))
    explained = wrong = 0
    for reason in REASONS:
        names = [name for name in lost if reason.fits(name)]
        explained += len(names)
        _print(reason.text, names)
        if names and reason.settings:
            title = "with comity, " + ", ".join(
                f"{name} {value}" for name, value in reason.settings.items()
            )
            others = _lost(names, run(source, title, names, reason.settings))
            _print(f"THAT IS NOT WHY: they fail {title} too", others)
            wrong += len(others)
        obsolete = [
            pattern for pattern in reason.patterns if not any(_fits(name, pattern) for name in lost)
        ]
        if not arguments:
            _print("NO DIFFERENCE ANY MORE: take it out of differences.toml", obsolete)
            wrong += len(obsolete)
    _print(
        "NO REASON IS GIVEN", [f"{name}\n        {with_comity[name].error}" for name in unexplained]
    )
    failed = _failures_of_handler(source)
    _print("COMITY'S DOWNLOAD HANDLER FAILS", failed)
    left = len(passed) - explained - len(unexplained)
    print(
        f"\n{len(passed)} tests of {source.name} pass without comity, {left} of these with it.",
        end=" ",
    )
    print(f"{explained} do not for a reason that is known, {len(unexplained)} for none.")
    return 1 if wrong or unexplained or failed else 0


def _failures_of_handler(source: Path) -> list[str]:
    """Run handler_tests.py, and return the names of the tests that fail."""
    folder = source / "handler_tests"
    folder.mkdir(exist_ok=True)
    copy(HERE / "handler_tests.py", folder / "test_comity.py")
    outcomes = run(source, "download handler", [f"{folder.name}/test_comity.py"])
    return [name for name, outcome in outcomes.items() if outcome.outcome == "failed"]


def _without(source: Path, suite: list[str]) -> dict[str, Outcome]:
    title = f"without comity, {source.name} {' '.join(suite)}"
    kept = _outcomes(source, title)
    if not kept.exists():
        return run(source, title, suite)
    print(f"without comity: as it ran earlier (remove `{kept}` to repeat it)")
    return _read(kept)


def unpacked(folder: Path) -> Path:
    """The tests of the Scrapy that is installed."""
    name = f"scrapy-{version('scrapy')}"
    if not (folder / name).exists():
        folder.mkdir(parents=True, exist_ok=True)
        download = [
            "download",
            "--no-deps",
            "--no-binary",
            "scrapy",
            "--quiet",
            f"scrapy=={version('scrapy')}",
        ]
        subprocess.run([sys.executable, "-m", "pip", *download], cwd=folder, check=True)
        with (
            TemporaryDirectory(dir=folder) as unfinished,
            tarfile.open(folder / f"{name}.tar.gz") as archive,
        ):
            archive.extractall(unfinished, filter="data")
            rmtree(Path(unfinished) / name / "scrapy")  # the installed one is tested
            (Path(unfinished) / name).rename(folder / name)
    return folder / name


def run(
    source: Path, title: str, arguments: list[str], settings: Mapping[str, Any] | None = None
) -> dict[str, Outcome]:
    """By the name of the test. What pytest says goes into a file of that title, beside `source`."""
    outcomes = _outcomes(source, title)
    log = outcomes.with_suffix(".log")
    outcomes.unlink(missing_ok=True)
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COMITY_", "SCRAPY_"))
    }
    with TemporaryDirectory() as scratch, log.open("w") as lines:
        unfinished = Path(scratch) / "outcomes"
        environment |= {
            "PYTHONPATH": f"{HERE}{os.pathsep}{source}",
            OUTCOMES: str(unfinished),
            SETTINGS: json.dumps(settings or {}),
        }
        environment |= {STORES: scratch} if title.startswith("with comity") else {}
        command = [sys.executable, "-m", "pytest", *OPTIONS, *arguments]
        pipes: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
        }
        pytest = subprocess.Popen(
            command,
            cwd=source,
            env=environment,
            text=True,
            errors="replace",
            process_group=0,
            **pipes,
        )
        try:
            print(f"{title}: see `{log}`", flush=True)
            assert pytest.stdout
            for line in pytest.stdout:
                lines.write(line)
                lines.flush()
                if progress := PROGRESS.search(line):
                    print(f"\r{progress[1]}", end="", flush=True)
            print("\r", end="")
            status = pytest.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(pytest.pid, SIGKILL)  # with the servers of tests that hung
        if status not in (0, 1):
            sys.exit(f"pytest came to no end: see `{log}`")
        move(unfinished, outcomes)
    return _read(outcomes)


def _outcomes(source: Path, title: str) -> Path:
    return source.parent / f"{re.sub('[^A-Za-z0-9_.]+', '-', title)}.jsonl"


def _read(outcomes: Path) -> dict[str, Outcome]:
    read: dict[str, Outcome] = {}
    for line in outcomes.read_text(encoding="utf-8").splitlines():
        name, outcome, error = json.loads(line)
        read[name] = max(
            read.get(name, PASSED),
            Outcome(outcome, error),
            key=lambda each: ORDER.index(each.outcome),
        )
    return read


def _lost(names: Iterable[str], outcomes: Mapping[str, Outcome]) -> list[str]:
    return [name for name in names if outcomes.get(name) != PASSED]


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(
        name, pattern
    )  # the names of tests have brackets of their own


def _print(title: str, names: Sequence[str]) -> None:
    if names:
        print(f"\n{title} ({len(names)})", *names, sep="\n    ")


def _install_hook() -> None:
    """Every Python process of this environment looks whether it belongs to a run."""
    line = f'import os; os.environ.get("{OUTCOMES}") and __import__("comity_everywhere")\n'
    (Path(sysconfig.get_path("purelib")) / "comity_everywhere.pth").write_text(line)


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
    except KeyboardInterrupt:
        sys.exit(130)
