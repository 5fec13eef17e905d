"""Keys: a crawler's private key in a file, and the public keys of a directory.

key = read_private_key("COMITY_KEY", Path("key.pem"))
thumbprint(key.public_key())    # the `keyid` of its signatures
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import os
import stat
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from comity.policies.answers.errors import PolicyError
from comity.policies.syntax.printable import printable

MAX_KEY_FILE = 16 * 1024  # octets of a file with a private key
MAX_KEYS = 64  # keys of a directory that are read
OTHERS = stat.S_IRWXG | stat.S_IRWXO  # the permissions of everybody but the owner
NEW_KEY = "`comity key new FILE` creates one"

# draft-ietf-webbotauth-httpsig-protocol-00 section 6.8: test keys must not be used in production.
# This is the key of RFC 9421 appendix B.1.4, which everybody has.
TEST_KEYS = frozenset({"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"})


def read_private_key(subject: str, path: Path) -> Ed25519PrivateKey:
    """Read an Ed25519 key from a file: PEM (PKCS #8) or a JWK (RFC 8037).

    `subject`: the setting or argument that a message begins with.
    PolicyError: the file cannot be read, other users can read it, or it has no such key."""
    shown = f"{subject} `{printable(os.fsencode(path))}`"
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            octets = file.read(MAX_KEY_FILE + 1)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or "the path is invalid"
        raise PolicyError(f"{shown} cannot be read: {cause}: {NEW_KEY}") from None
    if os.name == "posix" and mode & OTHERS:
        raise PolicyError(
            f"{shown} can be read by other users (mode {stat.S_IMODE(mode):04o}):"
            f" run `chmod 600 {printable(os.fsencode(path))}`, and create a new key if others may"
            " have read it"
        )
    try:
        key = _private_key(octets)
    except ValueError as error:
        raise PolicyError(f"{shown} {error}: {NEW_KEY}") from None
    if thumbprint(key.public_key()) in TEST_KEYS:
        raise PolicyError(f"{shown} is the test key of RFC 9421, which everybody has: {NEW_KEY}")
    return key


def _private_key(octets: bytes) -> Ed25519PrivateKey:
    """Return the key in the octets of a file. ValueError: there is none; the text says why."""
    if len(octets) > MAX_KEY_FILE:
        raise ValueError(f"has more than {MAX_KEY_FILE} octets, so it is no key")
    if octets.lstrip().startswith(b"{"):
        return _private_jwk(octets)
    try:
        key = load_pem_private_key(octets, password=None)
    except TypeError:
        raise ValueError("is encrypted, so it cannot be read without its password") from None
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("is neither a private key in PEM nor a private JWK") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("is a private key, but not of Ed25519")
    return key


def _private_jwk(octets: bytes) -> Ed25519PrivateKey:
    try:
        jwk = json.loads(octets)
        private = _base64url(jwk["d"])
        is_ed25519 = _is_ed25519(jwk)
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ValueError("is neither a private key in PEM nor a private JWK") from None
    if not is_ed25519 or len(private) != 32:
        raise ValueError("is a private JWK, but not of Ed25519")
    key = Ed25519PrivateKey.from_private_bytes(private)
    if jwk.get("x", public_x(key.public_key())) != public_x(key.public_key()):
        raise ValueError("is a damaged JWK: its `x` does not belong to its `d`")
    return key


def create_private_key(path: Path) -> Ed25519PrivateKey:
    """Create a key, and write it into a new file that only this user can read.

    PolicyError: the file exists, or cannot be written."""
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    shown = printable(os.fsencode(path))
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise PolicyError(
            f"`{shown}` exists, and may be a key in use: write the name of a new file"
        ) from None
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or "the path is invalid"
        raise PolicyError(
            f"`{shown}` cannot be written: {cause}: write a name in a folder that can be written"
        ) from None
    with os.fdopen(file, "wb") as written:
        written.write(pem)
    return key


def public_x(key: Ed25519PublicKey) -> str:
    """Return the `x` of the JWK of a key (RFC 8037 section-2)."""
    return base64.urlsafe_b64encode(key.public_bytes_raw()).rstrip(b"=").decode("ascii")


def thumbprint(key: Ed25519PublicKey) -> str:
    """Return the SHA-256 thumbprint of a key as a JWK (RFC 7638, RFC 8037 appendix-A.3)."""
    jwk = f'{{"crv":"Ed25519","kty":"OKP","x":"{public_x(key)}"}}'
    digest = hashlib.sha256(jwk.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def public_jwk(key: Ed25519PublicKey) -> dict[str, str]:
    """Return the public JWK of a key for a directory."""
    return {
        "kty": "OKP",
        "crv": "Ed25519",
        "kid": thumbprint(key),
        "x": public_x(key),
        "use": "sig",
    }


class PublishedKey(NamedTuple):
    """A public key of a directory.

    Attributes:
        key: The key.
        begin: The start of its validity, in seconds since the epoch.
        end: The end of its validity.
    """

    key: Ed25519PublicKey
    begin: float
    end: float

    def is_valid(self, now: float) -> bool:
        return self.begin <= now < self.end


def read_key_set(body: bytes) -> dict[str, PublishedKey]:
    """Return the Ed25519 keys of a JWK Set, by their thumbprints.

    Other and malformed entries are left out, as are the keys of TEST_KEYS, and entries whose `kid`
    is neither missing nor the thumbprint.
    ValueError: the body is no JWK Set, or has more than MAX_KEYS keys; the text says why."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError("it has no list of `keys`")
    if len(entries) > MAX_KEYS:
        raise ValueError(f"it has {len(entries)} keys, and at most {MAX_KEYS} are read")
    keys: dict[str, PublishedKey] = {}
    for entry in entries:
        key = _published_key(entry) if isinstance(entry, dict) else None
        if key is None or (keyid := thumbprint(key.key)) in TEST_KEYS:
            continue
        # draft-ietf-webbotauth-httpsig-protocol-00 section 5.5: "it MUST be set to the thumbprint"
        if entry.get("kid", keyid) == keyid:
            keys[keyid] = key
    return keys


def _published_key(jwk: dict[str, Any]) -> PublishedKey | None:
    """Return the key of a JWK. None: it is not a key of Ed25519 for signatures."""
    begin, end = jwk.get("nbf", 0), jwk.get("exp", math.inf)
    if not isinstance(begin, int | float) or not isinstance(end, int | float):
        return None
    try:
        if not _is_ed25519(jwk) or jwk.get("use", "sig") != "sig":
            return None
        return PublishedKey(Ed25519PublicKey.from_public_bytes(_base64url(jwk["x"])), begin, end)
    except (KeyError, TypeError, ValueError):
        return None


def _is_ed25519(jwk: dict[str, Any]) -> bool:
    return bool(jwk["kty"] == "OKP" and jwk["crv"] == "Ed25519")


def _base64url(text: object) -> bytes:
    """Decode base64url without padding. ValueError: the text is something else."""
    if not isinstance(text, str) or not text.isascii() or set("+/=") & set(text):
        raise ValueError("not base64url")
    try:
        padded = text + "=" * (-len(text) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True)
    except binascii.Error:
        raise ValueError("not base64url") from None
