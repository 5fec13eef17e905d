"""The wheel and the source distribution: how they are built, and the checks that are fast."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.sources import ROOT, source_files


@dataclass(frozen=True)
class Distributions:
    """The two files of a release."""

    wheel: Path
    sources: Path

    @property
    def version(self) -> str:
        return self.wheel.name.split("-")[1]

    def faults(self) -> list[str]:
        """Return the complaints of the programs that check distributions. [] means none."""
        checks = (
            ["twine", "check", "--strict", str(self.wheel), str(self.sources)],
            ["check_wheel_contents", str(self.wheel)],
            ["pyroma", "--min", "10", str(self.sources)],
        )
        outcomes = (run_module(*check, check=False) for check in checks)
        return [
            f"{check[0]}:\n{outcome.stdout}{outcome.stderr}"
            for check, outcome in zip(checks, outcomes, strict=True)
            if outcome.returncode
        ]


def build(folder: Path) -> Distributions:
    """Build the source distribution, and the wheel from it. `folder`: an empty folder for both.

    Only files of the repository are copied, so no other file of the tree gets into them."""
    tree = folder / "tree"
    for path in source_files():
        copy = tree / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    run_module("build", "--no-isolation", "--outdir", str(folder), str(tree))
    shutil.rmtree(tree)
    [wheel] = folder.glob("comity-*.whl")
    [sources] = folder.glob("comity-*.tar.gz")
    return Distributions(wheel, sources)


def run_module(
    module: str, *arguments: str, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a module of the environment of the tests."""
    return run([sys.executable, "-m", module, *arguments], check=check)


def run(
    command: Sequence[str], *, folder: Path | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a command, and return its outcome. If it fails, raise an error with its output.

    `check`: False to return failures too."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if check and done.returncode:
        output = f"{done.stdout}{done.stderr}"[-5000:]
        raise RuntimeError(f"{' '.join(command)} ended with status {done.returncode}:\n{output}")
    return done
