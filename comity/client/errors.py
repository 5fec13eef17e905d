"""The errors of a client: a refused request, and a closed client."""

from __future__ import annotations

from comity.policies import Decision, Offer
from comity.policies.syntax.printable import printable


class RefusedError(Exception):
    """The request may not be made, or its answer may not be used.

    Attributes:
        decision: The decision, with its reasons.
        url: The URL of the request.
        method: The method of the request.
        offer: The offer of a site that asks for payment or for a licence. None: it makes none.
    """

    def __init__(
        self, decision: Decision, url: str, method: str = "GET", offer: Offer | None = None
    ) -> None:
        super().__init__(decision, url, method, offer)
        self.decision = decision
        self.url = url
        self.method = method
        self.offer = offer

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
