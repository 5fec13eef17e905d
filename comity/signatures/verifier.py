"""Verify the signatures of a request.

    for signature in verify(message, find_key, now):
        signature.outcome, signature.url, signature.problem

Fields come from the web, so `verify` never raises. The steps are those of RFC 9421 section-3.2,
with the rules of Web Bot Auth. Each signature has one of three outcomes
(draft-ietf-webbotauth-httpsig-protocol-00 appendix C.1):

    VERIFIED      the holder of a key that `url` publishes has signed the request
    INVALID       the signature, its parameters or its time are wrong
    UNVERIFIED    the keys of `url` are not known, so nothing is known about the signature
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import http_sf
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import HTTPMessageVerifier, algorithms

from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_of
from comity.signatures import TAG, WELL_KNOWN
from comity.signatures.message import (
    SIGNED_FIELDS,
    KeyAnswer,
    Outcome,
    Signature,
    SignedRequest,
)
from comity.signatures.one_key import OneKey

MAX_FIELD = 8192  # characters of a field that are read
MAX_URL = 512  # characters of the URL of a key directory, because guards keep it
MAX_SIGNATURES = 4  # signatures with TAG that are read
MAX_COVERED = 32  # covered components of a signature
MAX_TEXT = 256  # characters of `keyid` and `nonce`
SKEW = 30  # seconds by which the clock of the signer may be ahead
DAY = 24 * 3600  # seconds


# Called with the URL of a directory and a `keyid`.
FindKey = Callable[[str, str], KeyAnswer]
Members: TypeAlias = "dict[str, tuple[Any, dict[str, Any]]]"  # of a dictionary (RFC 9651)


class InvalidError(Exception):
    """The signature is invalid. The text says why."""


def verify(
    request: SignedRequest, find_key: FindKey, now: float, *, max_lifetime: int = DAY
) -> tuple[Signature, ...]:
    """Verify the signatures of a request that have the tag of Web Bot Auth. () means none.

    If the fields cannot be read, the result is one INVALID signature.
    `request`: its `headers` have lower-case names. Its `url` has the authority by which clients
    know the server. `find_key`: called for signatures that are valid apart from their key.
    `now`: seconds since the epoch. `max_lifetime`: the longest accepted validity, in seconds."""
    if not any(name.lower() in request.headers for name in SIGNED_FIELDS):
        return ()
    try:
        inputs, agents = _members(request.headers)
    except InvalidError as error:
        return (Signature(Outcome.INVALID, problem=str(error)),)
    labels = [label for label, (_, params) in inputs.items() if params.get("tag") == TAG]
    if len(labels) > MAX_SIGNATURES:
        problem = f"it has {len(labels)} signatures, and at most {MAX_SIGNATURES} are read"
        return (Signature(Outcome.INVALID, problem=problem),)
    return tuple(
        _verify_one(request, label, inputs[label], agents, find_key, now, max_lifetime)
        for label in labels
    )


def _members(headers: Mapping[str, str]) -> tuple[Members, Members | str]:
    """Return the members of Signature-Input, and of Signature-Agent or its legacy string."""
    for name in SIGNED_FIELDS:
        value = headers.get(name.lower())
        if value is None:
            raise InvalidError(f"it has no field {name}")
        if len(value) > MAX_FIELD:
            raise InvalidError(f"{name} has more than {MAX_FIELD} characters")
    agent = headers["signature-agent"]
    # draft-ietf-webbotauth-httpsig-protocol-00 section 5.2.1: "a String Item begins with a double
    # quote" and is the form of earlier drafts.
    is_legacy = agent.lstrip(" ").startswith('"')
    inputs: Members = _parse(headers, "Signature-Input", "dictionary")
    agents = _parse(headers, "Signature-Agent", "item" if is_legacy else "dictionary")
    if is_legacy:
        agents = agents[0]
    return inputs, agents


def _parse(headers: Mapping[str, str], name: str, kind: str) -> Any:
    def reject(key: str, context: str) -> None:
        if context == "dictionary":
            raise InvalidError(f"{name} has the label `{key}` twice")

    try:
        value = headers[name.lower()].encode("ascii")
        return http_sf.parse(value, tltype=kind, on_duplicate_key=reject)
    except (http_sf.StructuredFieldError, UnicodeError):
        raise InvalidError(f"{name} is not a valid structured field") from None


def _verify_one(
    request: SignedRequest,
    label: str,
    member: tuple[Any, dict[str, Any]],
    agents: Members | str,
    find_key: FindKey,
    now: float,
    max_lifetime: int,
) -> Signature:
    url = ""
    try:
        covered, params = _covered(member[0]), member[1]
        keyid, nonce, expires = _parameters(params, now, max_lifetime)
        url = directory_url(_agent_value(label, covered, agents))
        answer = find_key(url, keyid)
        if answer.problem:
            return Signature(
                Outcome.UNVERIFIED, url, keyid, nonce, expires, answer.problem, answer.wait
            )
        if answer.key is None:
            raise InvalidError(f"{url} has no key `{_shown(keyid)}`")
        _check_octets(request, label, covered, answer.key)
    except InvalidError as error:
        return Signature(Outcome.INVALID, url, problem=str(error))
    return Signature(Outcome.VERIFIED, url, keyid, nonce, expires)


def _covered(value: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the covered components, each with its parameters."""
    if not isinstance(value, list) or len(value) > MAX_COVERED:
        raise InvalidError(f"it does not cover a list of at most {MAX_COVERED} components")
    covered = [(name, params) for name, params in value if isinstance(name, str)]
    # draft-ietf-webbotauth-httpsig-protocol-00 section 5.2: "at least one of the following"
    if not any(name in ("@authority", "@target-uri") and not params for name, params in covered):
        raise InvalidError("it covers neither @authority nor @target-uri")
    return covered


def _parameters(params: dict[str, Any], now: float, max_lifetime: int) -> tuple[str, str, int]:
    """Return `keyid`, `nonce` and `expires`, and check all parameters."""
    for name in ("created", "expires"):
        if type(params.get(name)) is not int:
            raise InvalidError(f"its parameter `{name}` is missing, or is no number")
    for name in ("keyid", "nonce"):
        value = params.get(name, "")
        if type(value) is not str or len(value) > MAX_TEXT:
            raise InvalidError(f"its parameter `{name}` is no text of at most {MAX_TEXT}")
    if not params.get("keyid"):
        raise InvalidError("its parameter `keyid` is missing")
    if params.get("alg", "ed25519") != "ed25519":
        raise InvalidError("its algorithm is not ed25519")
    created, expires = params["created"], params["expires"]
    if created > now + SKEW:
        raise InvalidError("it was created in the future")
    if expires <= now:
        raise InvalidError("it has expired")
    if expires - created > max_lifetime:
        raise InvalidError(f"it is valid for more than {max_lifetime} s")
    return params["keyid"], params.get("nonce", ""), expires


def _agent_value(
    label: str, covered: list[tuple[str, dict[str, Any]]], agents: Members | str
) -> tuple[Any, dict[str, Any]]:
    """Return the value and the parameters of the Signature-Agent of a signature.

    "A verifier MUST NOT attribute a signature to a member that signature does not cover." (section
    5.2.2)"""
    if isinstance(agents, str):
        if ("signature-agent", {}) not in covered:
            raise InvalidError("it does not cover signature-agent")
        return agents, {}
    keys = [
        params["key"]
        for name, params in covered
        if name == "signature-agent" and params.keys() == {"key"}
    ]
    # The test vectors of the draft have a member with another key than the label.
    key = label if label in keys else keys[0] if len(keys) == 1 else None
    if not isinstance(key, str):
        raise InvalidError("it does not cover one member of signature-agent")
    if key not in agents:
        raise InvalidError(f"Signature-Agent has no member `{_shown(key)}`")
    return agents[key]


def directory_url(member: tuple[Any, dict[str, Any]]) -> str:
    """Return the URL of the key directory that a member of Signature-Agent names.

    Without a path it is the well-known one of its host. InvalidError: there is none."""
    value, params = member
    if type(value) is not str or not value.isascii():
        raise InvalidError("its Signature-Agent is no URL")
    if len(value) > MAX_URL:
        raise InvalidError(f"its Signature-Agent has more than {MAX_URL} characters")
    if str(params.get("type", "directory")) not in ("directory", "jwks_uri"):
        raise InvalidError("its Signature-Agent has a `type` that is not supported")
    try:
        parts = urlsplit(value)
        origin = origin_of(value)
    except ValueError:
        raise InvalidError("its Signature-Agent is no URL") from None
    if parts.scheme != "https" or not value.isprintable() or " " in value or parts.username:
        raise InvalidError("its Signature-Agent is no https URL")
    # Section 5.5: the query does not belong to the identifier.
    return origin + (WELL_KNOWN if parts.path in ("", "/") else parts.path)


def _check_octets(
    request: SignedRequest,
    label: str,
    covered: list[tuple[str, dict[str, Any]]],
    key: Ed25519PublicKey,
) -> None:
    """Check the signature itself. InvalidError: it is wrong."""
    if all(
        name not in ("@target-uri", "@path", "@query", "@query-param", "@request-target")
        for name, _ in covered
    ):
        # The target may have characters that http-message-signatures rejects.
        request = SignedRequest(request.method, f"{origin_of(request.url)}/", request.headers)
    verifier = _Verifier(signature_algorithm=algorithms.ED25519, key_resolver=OneKey(public=key))
    try:
        verifier.verify(request, expect_tag=TAG, expect_label=label, max_age=None)
    except Exception as error:  # http-message-signatures raises errors of several kinds
        cause = f": {_shown(str(error))}" if str(error) else ""
        raise InvalidError(f"its signature does not match the request{cause}") from None


class _Verifier(HTTPMessageVerifier):
    def validate_created_and_expires(self, sig_input: Any, max_age: Any = None) -> None:
        """Do nothing: `_parameters` has checked both, by the clock of the guard."""


def _shown(text: str) -> str:
    return printable(text[:MAX_TEXT].encode("utf-8", "replace"))
