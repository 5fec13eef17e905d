"""The wheel in environments of its own, and the examples of README.md there.

The examples are the commands of README.md (lines that begin with `$ `, and those for a new project),
its Python that prints, and one command for each extra. They use the demonstration site on this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.release.distributions import run
from tests.sources import ROOT

# A command that needs the extra. `URL`: the demonstration site. `items.jsonl`: a crawl of it.
EXTRAS: Mapping[str, str] = {
    "aiohttp": "python -c 'import comity.client.aiohttp'",
    "playwright": "python -c 'import comity.browser.handler'",
    "parquet": "scrapy dataset export items.jsonl --for index -o parquet.parquet",
    "postgresql": "python -c 'import comity.cluster.sql.postgresql'",
    "redis": "python -c 'import comity.cluster.redis.state'",
    "report": "scrapy report items.jsonl -o report.html",
    "warc": "scrapy crawl site -a url=URL -O pages.warc.gz",
    "ray": "scrapy dataset export items.jsonl --for index -o ray/ --executor ray",
    "dask": "scrapy dataset export items.jsonl --for index -o dask/ --executor dask",
    "spark": "scrapy dataset export items.jsonl --for index -o spark/ --executor spark",
    "cloud": "scrapy dataset export items.jsonl --for index -o memory://cloud.jsonl",
    "httpx": "python -c 'import comity.client.httpx'",
    "signatures": "comity key new signatures.pem",
    "sqlite": "python -c 'import comity.cluster.sql.state, msgpack'",
    "text": "scrapy crawl site -a url=URL -a text=trafilatura -O text.jsonl",
    "languageserver": "comity languageserver < /dev/null",
    "workbench": "python -c 'import comity.authoring.workbench.server'",
}
# The address of the demonstration site in README.md, with its default port.
README_URL = "http://127.0.0.1:8642/"
REFUSED = 1  # the exit status of `scrapy policy` for a refused page


def extras() -> dict[str, frozenset[str]]:
    """Return the extras of setup.cfg, each with the extras that it installs, itself included."""
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    return {
        name: frozenset(
            {name, *",".join(re.findall(r"comity\[(.*)\]", packages)).split(",")} - {""}
        )
        for name, packages in setup["options.extras_require"].items()
    }


@dataclass(frozen=True)
class Example:
    """A command of README.md, and the first line that it prints there."""

    command: str
    first_line: str


def examples(readme: str) -> Iterator[Example]:
    """Yield the commands of README.md. `readme`: its text."""
    for language, block, _ in blocks(readme):
        if not language:
            for command, output in re.findall(r"(?m)^\$ (.*)\n((?:(?!\$ ).*\n)*)", block):
                yield Example(command, output.partition("\n")[0])


def programs(readme: str) -> Iterator[tuple[str, str]]:
    """Yield the programs of README.md that print, with their output. `readme`: its text."""
    for (language, program, between), (_, output, _) in pairwise(blocks(readme)):
        if language == "python" and not between.strip():
            yield program, output


def project_commands(readme: str) -> str:
    """Return the commands of README.md that create a project and crawl with it."""
    [block] = [text for _, text, _ in blocks(readme) if text.startswith("comity startproject")]
    return block


def blocks(readme: str) -> Iterator[tuple[str, str, str]]:
    """Yield the language and the text of each code block, and the text up to the next one."""
    _, *pieces = re.split(r"(?m)^```(\w*).*\n", readme)
    yield from zip(pieces[0::4], pieces[1::4], pieces[3::4], strict=True)


@dataclass(frozen=True)
class Environment:
    """A virtual environment that has the wheel.

    Attributes:
        folder: Its folder. `work` in it is the folder of the examples.
        extra: The extra that pip installs, "" for none.
        installed: The names of `extra` and of the extras that it installs."""

    folder: Path
    extra: str = ""
    installed: frozenset[str] = frozenset()

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def install(self, wheel: Path, constraints: Path | None) -> None:
        """Make the environment. `constraints`: a file of versions for pip, or None."""
        run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(self.folder)])
        python = str(self.folder / "bin" / "python")
        wanted = f"{wheel}[{self.extra}]" if self.extra else str(wheel)
        limits = ["--constraint", str(constraints)] if constraints else []
        # Most of the modules are never imported, so compiling them all would take longer.
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-compile"]
        run([*pip, "--quiet", *limits, wanted])
        self.work.mkdir()

    def version(self, package: str) -> str:
        code = f"from importlib.metadata import version; print(version({package!r}))"
        return run([str(self.folder / "bin" / "python"), "-c", code]).stdout.strip()

    def variables(self) -> dict[str, str]:
        """Return the variables of the environment for its processes."""
        names = ("PYTHONPATH", "SCRAPY_SETTINGS_MODULE", "VIRTUAL_ENV")
        kept = {name: value for name, value in os.environ.items() if name not in names}
        path = f"{self.folder / 'bin'}{os.pathsep}{kept['PATH']}"
        return {**kept, "PATH": path, "XDG_DATA_HOME": str(self.folder / "data")}

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.work,
            env=self.variables(),
            capture_output=True,
            text=True,
            check=False,
        )

    @contextmanager
    def demonstration_site(self) -> Iterator[str]:
        """Serve the demonstration site, and yield its address."""
        command = [str(self.folder / "bin" / "scrapy"), "demo", "--port", "0"]
        with subprocess.Popen(
            command, cwd=self.work, env=self.variables(), stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            try:
                address = re.search(r"http://[\d.:]+/", server.stdout.readline())
                assert address, "scrapy demo prints its address first"
                yield address.group()
            finally:
                server.terminate()

    def faults(self) -> Iterator[str]:
        """Run the examples, and yield a text for each that does not do its work.

        A command of README.md that needs a missing extra names this extra."""
        readme = (ROOT / "README.md").read_text("utf-8")
        crawl = self.shell("comity demo --crawl")
        if crawl.returncode or "Crawl finished" not in crawl.stdout + crawl.stderr:
            yield told("comity demo --crawl", crawl)
        for program, output in programs(readme):
            (self.work / "program.py").write_text(program, "utf-8")
            done = self.shell("python program.py")
            if done.stdout != output:
                yield told(program, done)
        with self.demonstration_site() as url:
            create = project_commands(readme)
            project = self.shell(f"set -e\n{create.replace('https://example.com', url)}")
            if project.returncode:
                yield told(create, project)
            for example in examples(readme):
                done = self.shell(example.command.replace(README_URL, url))
                if not self._is_right(done, example.first_line.replace(README_URL, url)):
                    yield told(example.command, done)
            for name in sorted(self.installed & EXTRAS.keys()):
                done = self.shell(EXTRAS[name].replace("URL", url))
                if done.returncode:
                    yield told(EXTRAS[name], done)

    def _is_right(self, done: subprocess.CompletedProcess[str], first_line: str) -> bool:
        missing = re.findall(r"comity\[(\w+)\]", done.stderr)
        if done.returncode and missing:
            return not self.installed.intersection(missing)
        return (
            done.returncode == (REFUSED if first_line.startswith("DENY") else 0)
            and first_line in done.stdout + done.stderr
        )


def told(command: str, done: subprocess.CompletedProcess[str]) -> str:
    """Return a command with its status and the end of its output."""
    return f"$ {command}\nstatus {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-3000:]}"
