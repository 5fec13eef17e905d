"""The key of one signature, as http-message-signatures takes it."""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from http_message_signatures import HTTPSignatureKeyResolver


class OneKey(HTTPSignatureKeyResolver):
    """The key of a signature, for any `keyid`: the caller has chosen it by the `keyid`."""

    def __init__(
        self, *, public: Ed25519PublicKey | None = None, private: Ed25519PrivateKey | None = None
    ) -> None:
        self._public = public
        self._private = private

    def resolve_public_key(self, key_id: str) -> Any:
        return self._public

    def resolve_private_key(self, key_id: str) -> Any:
        return self._private
