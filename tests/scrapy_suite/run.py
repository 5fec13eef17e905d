"""Runs Scrapy's own tests, as its source distribution has them, without comity and with the add-on on by default, and lists what
passes without it and not with it.

    python run.py FOLDER [pytest arguments]

FOLDER: outside of the repository; Scrapy is unpacked there, and what ran without comity is kept. differences.toml gives the
reason of each difference. The exit status is 1 where a difference has none, or a reason no difference any more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from shutil import rmtree

HERE = Path(__file__).resolve().parent
TIMEOUT = 300  # seconds for one test
SWITCH = "COMITY_EVERYWHERE"  # environment variable: the add-on is on


def main(folder: Path, arguments: list[str]) -> int:
    if folder.resolve().is_relative_to(HERE.parents[1]):
        sys.exit(f"{folder} is in the repository, whose scrapy.cfg would count: name a folder outside of it")
    source = unpacked(folder)
    _install_switch()
    suite = arguments or ["tests", "-n", "2"]
    stock = folder / f"{source.name} {' '.join(suite).replace('/', '_')}.jsonl"
    without = _read(stock) if stock.exists() else run(source, stock, suite, with_comity=False)
    lost = _lost(without, run(source, folder / "with-comity.jsonl", suite, with_comity=True))
    if lost:  # a second time, alone: what fails now and then is no difference
        again = run(source, folder / "again.jsonl", sorted(lost), with_comity=True)
        lost = {name for name in lost if again.get(name) != "passed"}
    reasons = tomllib.loads((HERE / "differences.toml").read_text())
    unexplained = sorted(name for name in lost if not _reason(name, reasons))
    patterns = [] if arguments else _patterns(reasons)
    obsolete = [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in lost)]
    for name in sorted(lost):
        print(f"differs: {name}: {_reason(name, reasons) or 'NO REASON IS GIVEN'}")
    for pattern in obsolete:
        print(f"no difference any more: {pattern}")
    passed = sum(outcome == "passed" for outcome in without.values())
    print(f"{passed} tests of {source.name} pass without comity, {passed - len(lost)} of these with it")
    return 1 if unexplained or obsolete else 0


def unpacked(folder: Path) -> Path:
    """The tests of the Scrapy that is installed."""
    name = f"scrapy-{version('scrapy')}"
    if not (folder / name).exists():
        folder.mkdir(parents=True, exist_ok=True)
        download = ["download", "--no-deps", "--no-binary", "scrapy", "--quiet", f"scrapy=={version('scrapy')}"]
        subprocess.run([sys.executable, "-m", "pip", *download], cwd=folder, check=True)
        with tarfile.open(folder / f"{name}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
        rmtree(folder / name / "scrapy")  # the installed one is tested
    return folder / name


def run(source: Path, outcomes: Path, arguments: list[str], *, with_comity: bool) -> dict[str, str]:
    """Test -> "passed", "failed" or "skipped". What pytest says goes into a file beside `outcomes`."""
    own = {"PYTHONPATH": str(HERE), "COMITY_OUTCOMES": str(outcomes)} | ({SWITCH: "1"} if with_comity else {})
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMITY_")} | own
    options = ["-p", "outcomes", "-p", "no:cacheprovider", "-q", "--no-header", "--tb=short", f"--timeout={TIMEOUT}"]
    outcomes.unlink(missing_ok=True)
    with outcomes.with_suffix(".log").open("w") as log:
        print(f"{' '.join(arguments)[:80]}, {'with' if with_comity else 'without'} comity: {log.name}", flush=True)
        command = [sys.executable, "-m", "pytest", *options, *arguments]
        subprocess.run(command, cwd=source, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False)
    if not outcomes.exists():
        sys.exit(f"pytest came to no end: see {log.name}")
    return _read(outcomes)


def _read(outcomes: Path) -> dict[str, str]:
    return dict(json.loads(line) for line in outcomes.read_text().splitlines())


def _lost(without: Mapping[str, str], with_comity: Mapping[str, str]) -> set[str]:
    return {name for name, outcome in without.items() if outcome == "passed" and with_comity.get(name) != "passed"}


def _reason(name: str, reasons: Mapping[str, dict[str, list[str]]]) -> str:
    return next((why for why, stated in reasons.items() if any(fnmatchcase(name, one) for one in stated["tests"])), "")


def _patterns(reasons: Mapping[str, dict[str, list[str]]]) -> list[str]:
    return [pattern for stated in reasons.values() for pattern in stated["tests"]]


def _install_switch() -> None:
    """Every Python process of this environment looks at SWITCH when it starts."""
    line = f'import os; os.environ.get("{SWITCH}") and __import__("comity_everywhere")\n'
    (Path(sysconfig.get_path("purelib")) / "comity_everywhere.pth").write_text(line)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
