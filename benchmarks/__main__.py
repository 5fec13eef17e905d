"""Runs every benchmark, each in a process of its own: `make bench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

for benchmark in sorted(Path(__file__).parent.glob("[!_]*.py")):
    subprocess.run([sys.executable, str(benchmark)], check=True)
