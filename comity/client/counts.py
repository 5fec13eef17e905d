"""The counts of the requests of a client."""

from __future__ import annotations

from collections import Counter


class Counts(Counter[str]):
    """The counts, under the names that the statistics of a crawl have (docs/projects.md)."""

    waited = 0.0  # seconds from asking to being let out, of all requests together

    def inc_value(self, key: str, count: int = 1) -> None:
        self[key] += count

    @property
    def asked(self) -> int:
        """The requests that were let out."""
        return self["comity/access/allow"]

    @property
    def refused(self) -> dict[str, int]:
        """Rule -> how many requests it refused, and answers that were not read for it."""
        refused = Counter[str]()
        for key, number in self.items():
            for kind in ("comity/access/deny/", "comity/access/stopped/"):
                if key.startswith(kind):
                    refused[key.removeprefix(kind)] += number
        return dict(refused)
