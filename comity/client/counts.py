"""The statistics of a client's requests."""

from __future__ import annotations

from collections import Counter


class Counts(Counter[str]):
    """Counters under the names of a crawl's statistics (docs/projects.md).

    Attributes:
        waited: Seconds from `admit` to the decision, of all requests together.
    """

    waited = 0.0

    def inc_value(self, key: str, count: int = 1) -> None:
        """Add to a counter."""
        self[key] += count

    @property
    def asked(self) -> int:
        """The number of admitted requests."""
        return self["comity/access/allow"]

    @property
    def refused(self) -> dict[str, int]:
        """Rule -> the number of requests and answers that it refused."""
        refused = Counter[str]()
        for key, number in self.items():
            for kind in ("comity/access/deny/", "comity/access/stopped/"):
                if key.startswith(kind):
                    refused[key.removeprefix(kind)] += number
        return dict(refused)
