"""The scripts that the server runs, from lua/.

Each begins with the clock, and with the functions that scripts of its kind share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from importlib.resources import files

# The version of the keys of pace and policies, which all crawls share. Others are not read.
SHARED_VERSION = 1


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
def script(step: str) -> Script:
    """Return the script of a step, such as `queue put`: its kind and its name in lua/."""
    kind, name = step.split()
    folder = files("comity.cluster.redis") / "lua"
    text = "".join(
        (folder / file).read_text("utf-8")
        for file in ("clock.lua", f"{kind}.lua", f"{kind}_{name}.lua")
    )
    return Script(step, text, sha1(text.encode(), usedforsecurity=False).hexdigest())
