"""CPU seconds that the start of a command takes, beside Scrapy alone in the same environment.

    python benchmarks/startup.py --rounds 20

Each round runs each command once, in a new process. "Scrapy alone" is Scrapy without the commands
of other packages. The project of the crawls does not use the add-on, and its spider asks for
nothing. What a crawl imports in any case is not counted for the add-on."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

RUN = "from scrapy.cmdline import execute; execute(['scrapy', *{words}])"
ALONE = f"import importlib.metadata as m; m.entry_points = lambda **_: (); {RUN}"
CRAWL = ["crawl", "idle", "--nolog"]
# Modules that Scrapy itself imports for a crawl.
IMPORTED = (
    "import scrapy.crawler, scrapy.core.engine, scrapy.core.scheduler, scrapy.exporters;"
    "import scrapy.extensions.feedexport, scrapy.downloadermiddlewares.robotstxt;"
    "import scrapy.downloadermiddlewares.cookies;"
)
LINT = "from comity.cli import main; main(['lint', {target!r}])"
FILES = {
    "scrapy.cfg": "[settings]\ndefault = project\n",
    "project.py": "SPIDER_MODULES = ['idle']\nTELNETCONSOLE_ENABLED = False\n",
    "idle.py": "import scrapy\n\n\nclass Idle(scrapy.Spider):\n    name = 'idle'\n    start_urls = ()\n",
    "site/robots.txt": "User-agent: *\nDisallow: /private/\nContent-Usage: train-ai=n\n",
}


class Start(NamedTuple):
    """A program and its target: seconds of CPU, beyond another program if there is one."""

    name: str
    program: str
    target: float
    beyond: str = ""


STARTS = (
    Start("scrapy version", RUN.format(words=["version"]), 0.03, ALONE.format(words=["version"])),
    Start("scrapy crawl, no add-on", RUN.format(words=CRAWL), 0.03, ALONE.format(words=CRAWL)),
    Start("import of the add-on", f"{IMPORTED} import comity.crawler.addon", 0.25, IMPORTED),
    Start("comity lint FILE", LINT.format(target="site/robots.txt"), 0.35),
    Start("comity lint FOLDER", LINT.format(target="site"), 0.35),
    Start("comity --help", "from comity.cli import main; main(['--help'])", 0.35),
    Start(
        "comity policy --offline",
        "from comity.cli import main;"
        " main(['policy', '--offline', 'site', 'https://example.com/'])",
        0.9,
    ),
    Start(
        "scrapy policy --offline",
        RUN.format(words=["policy", "--offline", "site", "https://example.com/"]),
        0.9,
    ),
)


class Starts:
    """Rounds of one start."""

    def __init__(self, start: Start, folder: Path) -> None:
        self.start = start
        self.figures: list[float] = []
        self.beyond: list[float] = []
        self._folder = folder

    def add_round(self) -> None:
        for name, text in FILES.items():
            (self._folder / name).parent.mkdir(exist_ok=True)
            (self._folder / name).write_text(text, encoding="utf-8")
        self.figures.append(self._cpu(self.start.program))
        if self.start.beyond:
            self.beyond.append(self._cpu(self.start.beyond))

    def least(self) -> float:
        return min(self.figures) - min(self.beyond or [0.0])

    def median(self) -> float:
        return statistics.median(self.figures) - statistics.median(self.beyond or [0.0])

    def _cpu(self, program: str) -> float:
        environment = dict(os.environ)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles comity
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=self._folder,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        if os.waitstatus_to_exitcode(status):
            raise SystemExit(f"{self.start.name} failed")
        return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        starts = [Starts(start, Path(folder)) for start in STARTS]
        for _ in range(options.rounds):
            for one in starts:
                one.add_round()
    for one in starts:
        beyond = f", beyond {min(one.beyond):.3f}" if one.beyond else ""
        print(
            f"{one.start.name:<26}{one.least():7.3f} s (median {one.median():.3f}){beyond},"
            f" target {one.start.target}"
        )


if __name__ == "__main__":
    main()
