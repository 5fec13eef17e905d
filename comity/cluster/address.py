"""The names in addresses and keys that all stores share.

All keys of one shard have the same hash tag, so that in a Cluster of Redis they are on one node and
change in one step. A host's keys are in the shard of its name. The number of shards of a crawl is
set when it begins, and never changes. The numbers of shards of the pace and of policy files, which
all crawls in a store share, are fixed."""

from __future__ import annotations

import re
from zlib import crc32

from comity.policies import PolicyError
from comity.policies.syntax.printable import printable

SETTING = "COMITY_STATE"
PASSWORD = "COMITY_STATE_PASSWORD"  # noqa: S105  # the name of the environment variable
SHARDS = 64  # number of shards of the pace, and of a crawl unless set
CRAWL = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def check_name(crawl: str) -> None:
    """PolicyError: the name of the crawl is invalid."""
    if not CRAWL.fullmatch(crawl):
        raise PolicyError(
            f"COMITY_CRAWL: `{printable(crawl)}` is not the name of a crawl:"
            " write 1 to 64 letters, digits, `_`, `.` or `-`"
        )


def name_as_key(name: str) -> bytes:
    """Return the name of a host as a part of a key, even if the URL had invalid characters."""
    return name.encode("utf-8", "backslashreplace")


def shard_of(host: str, shards: int) -> int:
    """Return the number of the shard that has the keys of a host."""
    return crc32(name_as_key(host)) % shards


def owner_of(worker: str) -> str:
    """Return a worker's name as StepTurns knows it: the last part, which is unique already."""
    return worker.rpartition(":")[2]


def pace_shard(shard: int) -> str:
    """Return the prefix of all keys of a shard of the pace."""
    return f"comity:pace:{{{shard}}}"


def pace_key(host: str) -> str:
    """Return the prefix of all keys of the host's pace."""
    return pace_shard(shard_of(host, SHARDS))
