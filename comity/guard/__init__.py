"""The guard enforces and serves a site's own policy files (docs/guard.md).

    guard = Guard("https://example.com", Path("policies"))
    app = ASGIMiddleware(app, guard)     # or WSGIMiddleware

It depends neither on Scrapy nor on a server: bytes and header fields in, answers out."""

from comity.guard.answers import Answer
from comity.guard.asgi import ASGIMiddleware
from comity.guard.clients import behind_proxies
from comity.guard.guard import Guard, Pass
from comity.guard.incoming import Incoming, credentials, is_automated, mechanisms
from comity.guard.nonces import SharedNonces
from comity.guard.proofs import AgentRow, Proof, Proofs
from comity.guard.shared import SharedClients
from comity.guard.wsgi import WSGIMiddleware

__all__ = [
    "ASGIMiddleware",
    "AgentRow",
    "Answer",
    "Guard",
    "Incoming",
    "Pass",
    "Proof",
    "Proofs",
    "SharedClients",
    "SharedNonces",
    "WSGIMiddleware",
    "behind_proxies",
    "credentials",
    "is_automated",
    "mechanisms",
]
