"""Messages as http-message-signatures takes them, and what is known about their signatures."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SIGNED_FIELDS = ("Signature-Agent", "Signature-Input", "Signature")


@dataclass
class SignedRequest:
    """A request.

    Attributes:
        method: The method in upper case.
        url: The absolute URL.
        headers: The header fields. The signer adds its own.
    """

    method: str
    url: str
    headers: dict[str, str]


@dataclass
class SignedResponse:
    """A response, and the request that it answers."""

    status_code: int
    headers: dict[str, str]
    request: SignedRequest


class Outcome(enum.Enum):
    VERIFIED = "verified"
    INVALID = "invalid"
    UNVERIFIED = "unverified"


class Signature(NamedTuple):
    """One signature of a request.

    Attributes:
        outcome: What is known about it.
        url: The URL of its key directory; "" if it has none that is valid.
        keyid: The thumbprint of its key.
        nonce: Its nonce; "" if it has none.
        expires: The end of its validity, in seconds since the epoch.
        problem: Why it is not verified, for people.
        wait: The seconds after which the keys may be known; 0 if waiting does not help.
    """

    outcome: Outcome
    url: str = ""
    keyid: str = ""
    nonce: str = ""
    expires: int = 0
    problem: str = ""
    wait: int = 0


class KeyAnswer(NamedTuple):
    """The answer to the question for a key of a directory.

    Attributes:
        key: The key. None: the directory has no such key, or is not known.
        problem: Why the directory is not known; "" if it is.
        wait: The seconds after which it may be known; 0 if waiting does not help.
    """

    key: Ed25519PublicKey | None
    problem: str = ""
    wait: int = 0
