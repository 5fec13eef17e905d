"""Record the files of this version, for tests/test_recorded.py: python tests/recorded/run.py

The files are those of a crawl of the demonstration site that ends early, and of an export. They go
into tests/recorded/VERSION. A recorded folder never changes: when a file gets a new schema, record
another folder beside it."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import comity
from comity.crawler import demo

FOLDER = Path(__file__).parent / comity.__version__
FILES = (
    *("policies.sqlite", "pace.sqlite", "job/comity.sqlite", "report.json", "items.tags"),
    *("items.jsonl", "index.jsonl", "index.jsonl.croissant.json"),
)


def main() -> None:
    with tempfile.TemporaryDirectory() as name, demo.running() as server:
        folder = Path(name)
        settings = {
            "COMITY_STORE": "policies.sqlite",
            "COMITY_MIN_DELAY": 0,
            "COMITY_REPORT": "report.json",
            "JOBDIR": "job",
            "CLOSESPIDER_ITEMCOUNT": 5,
            "CONCURRENT_REQUESTS": 1,
        }
        options = [f"-s{key}={value}" for key, value in settings.items()]
        crawl = ["crawl", "site", "-a", f"url={server.url}", *options]
        _scrapy(folder, *crawl, "-O", "items.jsonl", "-O", "items.tags")
        _scrapy(folder, "dataset", "export", "items.jsonl", "--for", "index", "-o", "index.jsonl")
        for path in folder.rglob("*.sqlite"):
            with closing(sqlite3.connect(path)) as db:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                db.execute("PRAGMA journal_mode = DELETE")
        print(*sorted(path.relative_to(folder) for path in folder.rglob("*")), sep="\n")
        for file in FILES:
            (FOLDER / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / file, FOLDER / file)


def _scrapy(folder: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "scrapy", *arguments], cwd=folder, check=True)


if __name__ == "__main__":
    main()
