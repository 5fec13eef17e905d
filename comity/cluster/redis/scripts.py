"""The scripts that the server runs, from lua/.

Each begins with the clock, and with the functions that scripts of its kind share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from importlib.resources import files

# Versions of the keys. Other versions are not read.
DATA_VERSION = 2  # of a crawl
SHARED_VERSION = 1  # of pace and policies, which all crawls share


@dataclass(frozen=True, slots=True)
class Script:
    """A script that changes one shard. KEYS[1] is the prefix of the names of all its keys.

    Attributes:
        name: The name of the script, for messages.
        text: The source.
        sha: The SHA-1 of the source, by which the server knows a script that was loaded.
    """

    name: str
    text: str
    sha: str


@cache
def script(kind: str, name: str) -> Script:
    """Return a script. `kind`: `queue`, `crawl`, `pace` or `site`. `name`: its name."""
    folder = files("comity.cluster.redis") / "lua"
    text = "".join(
        (folder / file).read_text("utf-8")
        for file in ("clock.lua", f"{kind}.lua", f"{kind}_{name}.lua")
    )
    return Script(f"{kind} {name}", text, sha1(text.encode(), usedforsecurity=False).hexdigest())
