"""Commands of Scrapy, run as a user runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def scrapy(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Scrapy in a folder. It must not print a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", *words],
        cwd=folder,
        env={**os.environ, "COLUMNS": "120", "XDG_DATA_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done
