"""Which tests there are, and which requirements they name.

    python -m tests.collected

prints it as JSON: a list of files and an object from requirements to lists of tests."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import redirect_stdout
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


class Collected:
    """A plugin of pytest that keeps what is collected, before anything is left out."""

    def __init__(self) -> None:
        self._items: list[pytest.Item] = []
        self.is_whole = False  # all that a plain `pytest` finds

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        self.is_whole = config.args == config.getini("testpaths")
        self._items = [*items]

    @cached_property
    def files(self) -> set[str]:
        return {path.relative_to(ROOT).as_posix() for path in {item.path for item in self._items}}

    @cached_property
    def proofs(self) -> dict[str, set[str]]:
        """Requirement -> the tests that name it. Seldom asked for."""
        proofs: dict[str, set[str]] = {}
        for item in self._items:
            for marker in item.iter_markers("requirement"):
                for requirement in marker.args:
                    proofs.setdefault(requirement, set()).add(item.nodeid.partition("[")[0])
        return proofs


def collect() -> Collected:
    """What a plain `pytest` in the checkout finds. Pytest runs once in a process: see `collect_elsewhere`."""
    collected = Collected()
    with redirect_stdout(sys.stderr):
        status = pytest.main(["--collect-only", "-qq"], plugins=[collected])
    if status:
        raise SystemExit(status)
    return collected


def collect_elsewhere() -> Collected:
    """The same, by a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", __name__], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    collected = Collected()
    files, proofs = json.loads(done.stdout)
    collected.files.update(files)
    collected.proofs.update((requirement, set(tests)) for requirement, tests in proofs.items())
    return collected


if __name__ == "__main__":
    every = collect()
    json.dump(
        [
            sorted(every.files),
            {requirement: sorted(tests) for requirement, tests in every.proofs.items()},
        ],
        sys.stdout,
    )
