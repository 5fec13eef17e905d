"""The errors of a client: a refused request, and a closed client."""

from __future__ import annotations

from comity.policies import Decision
from comity.policies.syntax.printable import printable


class RefusedError(Exception):
    """The request may not be made, or its answer may not be used.

    Attributes:
        decision: The decision, with its reasons.
        url: The URL of the request.
        method: The method of the request.
    """

    def __init__(self, decision: Decision, url: str, method: str = "GET") -> None:
        super().__init__(decision, url, method)
        self.decision = decision
        self.url = url
        self.method = method

    def __str__(self) -> str:
        """Return the request, the decision, and the cause of a wait that is too long."""
        causes = (
            self.decision.reasons[1:2]
            if self.decision.reasons[0].rule == "comity.max-delay"
            else ()
        )
        url = printable(self.url.encode(errors="replace"))
        return "; ".join((f"{self.method} {url}: {self.decision}", *map(str, causes)))


class ClosedError(RuntimeError):
    """The client was closed, or is not open yet, so nothing is known about the site."""
