"""examples/cluster: what the shells and programs there are given is what was meant (docs/cluster.md)."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples" / "cluster"


def test_the_command_of_compose_is_one_of_a_shell(tmp_path: Path) -> None:
    """Compose makes `$` of `$$`, YAML one line of the lines; the rest is the shell's."""
    text = (EXAMPLES / "compose.yaml").read_text()
    [command] = re.findall(r"- >-\n((?: {8}.*\n)+)", text)
    for name in ("pip", "scrapy"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" {name} "$@" >> {tmp_path}/calls\n')
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    words = ["sh", "-c", " ".join(command.split()).replace("$$", "$")]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    host = os.uname().nodename
    assert (tmp_path / "calls").read_text().split("\n") == [
        *("pip", "install", "--quiet", "comity[redis]"),
        *(
            "scrapy",
            "crawl",
            "news",
            "-s",
            "COMITY_STATE=redis://state:6379/0",
            "-s",
            "COMITY_CRAWL=news",
        ),
        *("-o", f"/items/{host}-%(time)s.jsonl", ""),
    ]
