"""Remedies if the server of the shared state cannot be reached for a reason of TLS."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

from comity.cluster.redis.address import StateAddress
from comity.gate.fetching.causes import OTHER_NAME, TLS, UNTIMELY, cause_of, failure_of

REMEDIES = {
    UNTIMELY: "check the clock of this machine; if it is right, renew the server's certificate",
    OTHER_NAME: "write the host as the certificate of the server has it",
    TLS: "write redis:// if the server has no TLS at this port",
}
UNTRUSTED = "let SSL_CERT_FILE name the certificates to trust"
# redis-py's words if a server gives no answer to a handshake, or ends the connection without one.
_SILENT = ("timeout", "timed out")
_ENDED = ("reset", "closed by server")


def tls_remedy(address: StateAddress, error: Exception) -> str:
    """Return the remedy; "" if the error has no relation to TLS.

    A server without TLS waits for the end of the handshake, which it reads as a command. A server
    with TLS ends a connection on which no handshake comes."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError):
            return REMEDIES.get(cause_of(failure_of(cause)), UNTRUSTED)
    words = (str(error) or type(error).__name__).lower()
    if address.is_tls and any(word in words for word in _SILENT):
        return "start the server, or write its address, and redis:// if it has no TLS at this port"
    if not address.is_tls and any(word in words for word in _ENDED):
        return "write the port of a Redis server, and rediss:// if it expects TLS"
    return ""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error, and the errors that led to it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
