"""Sign requests, so that servers know the crawler.

signer = Signer("https://bot.example.org", read_private_key("COMITY_KEY", path))
signer.fields("https://example.com/page")    # Signature-Agent, Signature-Input, Signature
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from http_message_signatures import HTTPMessageSigner, algorithms

from comity.policies.syntax.urls import origin_or_empty
from comity.signatures import TAG
from comity.signatures.keys import thumbprint
from comity.signatures.message import SignedRequest
from comity.signatures.one_key import OneKey

LIFETIME = 300  # seconds until a signature expires
NONCE = 64  # random octets; draft-meunier-web-bot-auth-architecture-05 section 4.2.3
LABEL = "sig1"
COVERED = ('"@authority"', f'"signature-agent";key="{LABEL}"')


@dataclass(frozen=True, slots=True)
class Signer:
    """A crawler's key. Signers are equal if they sign with one key for one URL.

    Attributes:
        agent_url: The value of Signature-Agent: the https URL by which servers find the public key.
        key: The private key.
        clock: Returns the seconds since the epoch.
        keyid: The thumbprint of the key.
    """

    agent_url: str
    key: Ed25519PrivateKey = field(repr=False, compare=False)
    clock: Callable[[], float] = field(default=time.time, repr=False, compare=False)
    keyid: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keyid", thumbprint(self.key.public_key()))

    def fields(self, url: str) -> dict[str, str]:
        """Return the header fields that sign one request to this URL; {} unless it is http(s).

        They hold for the authority of the URL only, and each call has a nonce of its own: call it
        for each request, and for each hop of a redirect."""
        origin = origin_or_empty(url)
        if not origin:
            return {}
        created = int(self.clock())
        # No path: the signature covers the authority, and a path could have characters that
        # http-message-signatures rejects.
        request = SignedRequest(
            "GET", f"{origin}/", {"Signature-Agent": f'{LABEL}="{self.agent_url}"'}
        )
        signer = HTTPMessageSigner(
            signature_algorithm=algorithms.ED25519, key_resolver=OneKey(private=self.key)
        )
        signer.sign(
            request,
            key_id=self.keyid,
            created=datetime.fromtimestamp(created, UTC),
            expires=datetime.fromtimestamp(created + LIFETIME, UTC),
            nonce=secrets.token_urlsafe(NONCE),
            label=LABEL,
            tag=TAG,
            covered_component_ids=COVERED,
        )
        return request.headers
