"""The pages for beginners: every block is run, or written into a file that a later block needs.

A page is one session in an empty folder. A block of `console` has commands after `$`, and their
output. `...` stands for any lines, and within a line for any text. A command that ends with `&` runs
until the end of the page. A paragraph that ends with "Write `FILE`:" or "Add to `FILE`:" says where
the block below it goes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.redis_server import free_port

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(
    path.name
    for pattern in ("start-*.md", "tutorial-*.md", "decisions.md", "troubleshooting.md")
    for path in DOCS.glob(pattern)
)
_BLOCK = re.compile(
    r"(?P<before>(?:[^\n]+\n)*)\n?^```(?P<language>\w*)\n(?P<text>.*?)^```",
    re.DOTALL | re.MULTILINE,
)
_FILE = re.compile(r"(?P<verb>Write|Add to)\s`(?P<path>[^`]+)`:$")
# The port of `comity demo`. Each test has its own.
PORT = "8642"


class Block(NamedTuple):
    before: str
    language: str
    text: str


def blocks(text: str) -> Iterator[Block]:
    for match in _BLOCK.finditer(text):
        yield Block(match["before"], match["language"], match["text"])


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands of a block of `console`, each with the lines of its output."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *output = part.splitlines()
        yield command, output


def as_pattern(lines: list[str]) -> re.Pattern[str]:
    """Return the pattern of an output. Two spaces stand for any gap between two columns."""
    parts = [
        "(?:.*\n)*?"
        if line == "..."
        else ".*".join(map(re.escape, line.rstrip().split("..."))) + "[ ]*\n"
        for line in lines
    ]
    return re.compile(re.sub(r"(\\ ){2,}", "[ ]+", "".join(parts)))


class Session:
    """A terminal in an empty folder."""

    def __init__(self, folder: Path, port: int) -> None:
        self._environment = {
            **os.environ,
            "HOME": str(folder / "home"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        (folder / "home").mkdir()
        self._demo = f"comity demo --port {port}"
        self._work = folder / "work"
        self._work.mkdir()
        self._background: list[subprocess.Popen[str]] = []

    def run(self, command: str, output: list[str]) -> None:
        command = command.replace("comity demo", self._demo)
        if command.startswith("cd "):
            self._work /= command.removeprefix("cd ")
            return
        if command.startswith("pip install "):
            # Everything is installed, and there may be no network: pip looks whether it is enough.
            command += " --dry-run --no-index --quiet"
        if command.endswith(" &"):
            process = subprocess.Popen(
                command.removesuffix(" &"), text=True, bufsize=1, **self._options()
            )
            self._background.append(process)
            assert process.stdout is not None
            printed = "".join(process.stdout.readline() for _ in output)
        else:
            printed = subprocess.run(command, text=True, check=False, **self._options()).stdout
        assert as_pattern(output).fullmatch(printed), f"$ {command}\n{printed}"

    def _options(self) -> dict[str, Any]:
        return {
            "shell": True,
            "cwd": self._work,
            "env": self._environment,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
            "start_new_session": True,
        }

    def write(self, verb: str, path: str, text: str) -> None:
        file = self._work / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w" if verb == "Write" else "a", encoding="utf-8") as stream:
            stream.write(text)

    def close(self) -> None:
        for process in self._background:
            os.killpg(process.pid, signal.SIGTERM)
            process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_page_does_as_it_says(name: str, tmp_path: Path) -> None:
    port = free_port()
    text = (DOCS / name).read_text("utf-8").replace(PORT, str(port))
    session = Session(tmp_path, port)
    try:
        assert text.count("\n```") == 2 * len([*blocks(text)])
        for block in blocks(text):
            file = _FILE.search(block.before.rstrip())
            if file:
                session.write(file["verb"], file["path"], block.text)
            else:
                assert block.language == "console", block.text
                for command, output in commands(block.text):
                    session.run(command, output)
    finally:
        session.close()
