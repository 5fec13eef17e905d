"""Read the settings of the key that signs requests (docs/signatures.md)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comity.extras import required
from comity.gate.options.errors import invalid
from comity.policies import PolicyError
from comity.policies.syntax.urls import origin_or_empty

if TYPE_CHECKING:
    from comity.signatures.signer import Signer

KEY_NAME = "COMITY_KEY"
URL_NAME = "COMITY_SIGNATURE_AGENT"
EXAMPLE = "https://bot.example.org"
# RFC 3986 without what a Structured Field String would escape, and without userinfo and fragment.
_URL = re.compile(r"https://[A-Za-z0-9.:\[\]-]+(?:/[!$-;=?-Z_a-z~]*)?")


def key_path(name: str, value: Any) -> Path | None:
    """Read the path of a key. None: the value is empty."""
    return Path(str(value)) if str(value) else None


def signature_agent(name: str, value: Any) -> str:
    """Read the URL of a key directory. "": the value is empty. PolicyError: it is no such URL."""
    url = str(value)
    if url and not (_URL.fullmatch(url) and origin_or_empty(url)):
        remedy = f"write the address at which your key directory is, e.g. {EXAMPLE}"
        raise invalid(name, url, f"is not an https URL: {remedy}")
    return url


def signer_of(path: Path | None, url: str) -> Signer | None:
    """Return the signer of all requests. None: neither setting is set.

    PolicyError: one of the settings is missing, the extra is missing, or the key is invalid."""
    if path is None and not url:
        return None
    if path is None:
        raise PolicyError(
            f"{URL_NAME} is set, but {KEY_NAME} is not: set it to the path of your private key"
        )
    if not url:
        raise PolicyError(
            f"{KEY_NAME} is set, but {URL_NAME} is not: set it to the address at which your key"
            f" directory is, e.g. {EXAMPLE}"
        )
    with required(KEY_NAME, "signatures", PolicyError):
        from comity.signatures.keys import read_private_key
        from comity.signatures.signer import Signer
    return Signer(url, read_private_key(KEY_NAME, path))
