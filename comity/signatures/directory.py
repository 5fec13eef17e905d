"""The directory of a crawler's public keys, and the header fields that bind it to its host."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from http_message_signatures import HTTPMessageSigner, algorithms

from comity.signatures import DIRECTORY_TAG, MEDIA_TYPE, WELL_KNOWN
from comity.signatures.keys import public_jwk, thumbprint
from comity.signatures.message import SignedRequest, SignedResponse
from comity.signatures.one_key import OneKey

COVERED = ('"@authority";req', '"content-digest"')


def key_directory(keys: Sequence[Ed25519PrivateKey]) -> bytes:
    """Return the directory with the public parts of the keys, as JSON."""
    key_set = {"keys": [public_jwk(key.public_key()) for key in keys]}
    return json.dumps(key_set, indent=2).encode("ascii") + b"\n"


def directory_fields(
    body: bytes, origin: str, keys: Sequence[Ed25519PrivateKey], *, created: int, expires: int
) -> dict[str, str]:
    """Return the header fields with which a server sends the directory.

    Each key signs the body and the host, so that nobody can publish the keys as those of another
    host (draft-ietf-webbotauth-httpsig-protocol-00 appendix B.1).
    `origin`: scheme, host and port of the directory. `created`, `expires`: seconds since the
    epoch."""
    request = SignedRequest("GET", f"{origin}{WELL_KNOWN}", {})
    response = SignedResponse(200, {}, request)
    for number, key in enumerate(keys, 1):
        signer = HTTPMessageSigner(
            signature_algorithm=algorithms.ED25519, key_resolver=OneKey(private=key)
        )
        signer.sign(
            response,
            key_id=thumbprint(key.public_key()),
            created=datetime.fromtimestamp(created, UTC),
            expires=datetime.fromtimestamp(expires, UTC),
            label=f"sig{number}",
            tag=DIRECTORY_TAG,
            covered_component_ids=COVERED,
            append_if_signature_exists=number > 1,
            body=body,
            use_existing_digest=number > 1,
        )
    return {"Content-Type": MEDIA_TYPE, **response.headers}
