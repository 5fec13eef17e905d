"""A request that may not be made, and a client that makes none."""

from __future__ import annotations

from comity.policies import Decision
from comity.policies.syntax.printable import printable


class RefusedError(Exception):
    """The request may not be made, or its answer may not be used."""

    def __init__(self, decision: Decision, url: str, method: str = "GET") -> None:
        super().__init__(decision, url, method)
        self.decision = decision
        self.url = url
        self.method = method

    def __str__(self) -> str:
        """The request, and the reasons that decided: what it would have to wait for too."""
        causes = (
            self.decision.reasons[1:2]
            if self.decision.reasons[0].rule == "comity.max-delay"
            else ()
        )
        url = printable(self.url.encode(errors="replace"))
        return "; ".join((f"{self.method} {url}: {self.decision}", *map(str, causes)))


class ClosedError(RuntimeError):
    """The client was closed, or is not open yet: nothing is asked for, and nothing was learnt about the site."""
