"""The scripts that the server runs, from lua/: each with the clock, and with what those of its kind share, before it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from importlib.resources import files

DATA_VERSION = 2  # of the keys; another one is not read
RUNS_VERSION = 3  # of a crawl that was begun again: its keys have the number of its run


@dataclass(frozen=True, slots=True)
class Script:
    """A script that changes one shard: KEYS[1] is what the names of all keys of the shard begin with."""

    name: str
    text: str
    sha: str  # by which the server knows it once it was loaded


@cache
def script(kind: str, name: str) -> Script:
    """`kind`: `queue`, `pace` or `site`. `name`: of the file in the folder of that kind."""
    folder = files("comity.cluster") / "lua"
    text = "".join(
        (folder / file).read_text("utf-8")
        for file in ("clock.lua", f"{kind}.lua", f"{kind}_{name}.lua")
    )
    return Script(f"{kind} {name}", text, sha1(text.encode(), usedforsecurity=False).hexdigest())
