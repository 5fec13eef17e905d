"""What a pass counts. Counts of parts are merged into those of the whole."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from comity.dataset.records import Record

SOON = timedelta(days=30)


class Tally(NamedTuple):
    """Records of one host, for one use."""

    allowed: int = 0
    refused: int = 0  # by a verdict, a limit that is over or a tag that cannot be understood
    expiring: int = 0  # of those that are allowed: within SOON


class Counts:
    """Mergeable; it can be pickled. All of it is plain numbers by text."""

    def __init__(self) -> None:
        self.records = 0  # that were read
        self.kept = 0  # that came out
        self.unreadable = 0
        self.whys: Counter[str] = Counter()  # why others did not come out: Judged.why, Expired.why
        self.rules: Counter[str] = Counter()  # of the uses that tags refuse, the rule that decided
        self.hosts: dict[str, dict[str, Tally]] = {}  # host -> use -> records
        self.agents: Counter[str] = Counter()  # of the records that came out
        self.policies: dict[str, dict[str, Any]] = {}  # URL -> the copies by SHA-256, of the records that came out

    def read(self, record: Record, now: datetime) -> None:
        """For stats: every use that its tag lists."""
        raise NotImplementedError

    def keep(self, record: Record) -> None:
        """A record that comes out: for the manifest."""
        raise NotImplementedError

    def drop(self, why: str) -> None:
        """A record that does not come out."""
        raise NotImplementedError

    def merge(self, other: Counts) -> None:
        raise NotImplementedError

    def as_json(self) -> dict[str, Any]:
        raise NotImplementedError
