"""Test vectors of the specifications, and keys for tests."""

from __future__ import annotations

import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from comity.signatures.signer import Signer

NOW = 1_800_000_000  # seconds since the epoch

# RFC 9421 appendix-B.1.4
TEST_KEY_PEM = b"""-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
-----END PRIVATE KEY-----
"""
TEST_JWK = {
    "kty": "OKP",
    "crv": "Ed25519",
    "d": "n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU",
    "x": "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs",
}
# draft-ietf-webbotauth-httpsig-protocol-00 appendix E.2
TEST_KEYID = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"

AGENT_URL = "https://bot.example.org"


def new_key(number: int = 1) -> Ed25519PrivateKey:
    """Return a key that is the same in each run."""
    return Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)


def signer(number: int = 1, url: str = AGENT_URL, now: float = NOW) -> Signer:
    return Signer(url, new_key(number), lambda: now)


def jwk(**changes: object) -> bytes:
    return json.dumps(TEST_JWK | changes).encode()
