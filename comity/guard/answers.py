"""The guard's own answers: a refusal as a problem (RFC 9457), or a policy file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from comity.policies.answers.decision import Reason
from comity.policies.answers.rule import RULES

RETRY = (429, 503)  # statuses with a Retry-After
# The rules about proofs that another signature helps against, and the signature that is asked for
# (RFC 9421 section-5.1).
UNPROVED = ("comity.proof", "comity.proof-used")
ACCEPTED = (
    'sig1=("@authority" "signature-agent";key="sig1");created;expires;alg="ed25519"'
    ';tag="web-bot-auth"'
)

# HTTP status -> the code that closes a WebSocket, if the server cannot answer it by an HTTP
# response. The codes are "Unauthorized", "Forbidden" and "Try Again Later" in IANA's WebSocket
# Close Code Number Registry. Other statuses give 1008, "violates its policy" (RFC 6455
# section-7.4.1).
_CLOSE_CODES = {401: 3000, 403: 3003, 429: 1013, 503: 1013}

# RFC 9110 section-8.8.3, without the W/, because comparison is weak (section-13.1.2).
_ENTITY_TAG = re.compile(r'"[^"]*"')


class Answer(NamedTuple):
    """A complete response."""

    status: int
    """The HTTP status."""
    headers: tuple[tuple[str, str], ...]
    """Names and values of the header fields."""
    body: bytes
    """The body, b"" for HEAD."""

    @property
    def status_line(self) -> str:
        """The status with its reason phrase, for WSGI."""
        return f"{self.status} {HTTPStatus(self.status).phrase}"

    @property
    def close_code(self) -> int:
        """The code for closing a WebSocket."""
        return _CLOSE_CODES.get(self.status, 1008)


def status_of(reasons: tuple[Reason, ...]) -> tuple[int, Reason]:
    """Return the status for refusing a request, and the reason that decides the status.

    The first reason with a status other than 401 decides. The status is 401 only if it is the
    status of all reasons, because 401 means that credentials are enough."""
    statuses = [(RULES[reason.rule].status, reason) for reason in reasons]
    return next((pair for pair in statuses if pair[0] != HTTPStatus.UNAUTHORIZED), statuses[0])


class Problems:
    """Refusals as problems (RFC 9457)."""

    def __init__(self, *, types: str, challenge: str) -> None:
        """`types`: the beginning of a problem's `type`, before the rule id, e.g.
        "urn:comity:rule:". `challenge`: the WWW-Authenticate field of answers with status 401."""
        self._types = types
        self._challenge = challenge

    def answer(
        self, method: str, reasons: tuple[Reason, ...], *, detail: str = "", retry_after: int = 0
    ) -> Answer:
        """Return the refusal of a request.

        `method`: for HEAD, the answer has no body. `reasons`: at least one. `detail`: a sentence
        for people. "" means the reason that decides. `retry_after`: the seconds to wait, for
        status 429 or 503."""
        status, reason = status_of(reasons)
        source = reason.source
        problem: dict[str, Any] = {
            "type": self._types + reason.rule,
            "title": RULES[reason.rule].summary,
            "status": status,
            "detail": detail or str(reason),
            "rule": reason.rule,
            "spec": reason.spec,
            "source": {"url": source.url, "line": source.line, "text": source.text},
        }
        if len(reasons) > 1:
            problem["rules"] = [reason.rule for reason in reasons]
        body = json.dumps(problem, ensure_ascii=False).encode("utf-8", "replace")
        headers = [
            ("Content-Type", "application/problem+json"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
        ]
        if status == 401:
            headers.append(("WWW-Authenticate", self._challenge))
        if reason.rule in UNPROVED:
            headers.append(("Accept-Signature", ACCEPTED))
        if status in RETRY:
            headers.append(("Retry-After", str(max(1, retry_after))))
        return Answer(status, tuple(headers), b"" if method == "HEAD" else body)


class ServedFile:
    """A policy file, which all clients get."""

    def __init__(self, body: bytes, media_type: str, max_age: int) -> None:
        """`max_age`: the seconds for which clients may use a copy."""
        self._body = body
        self._entity_tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        self._cache_headers = (("ETag", self._entity_tag), ("Cache-Control", f"max-age={max_age}"))
        self._headers = (
            ("Content-Type", media_type),
            ("Content-Length", str(len(body))),
            *self._cache_headers,
        )

    def answer(self, method: str, fields: Mapping[str, str]) -> Answer:
        """Return the answer to a request. `fields`: its header fields, by lower-case name."""
        if method not in ("GET", "HEAD"):
            return Answer(405, (("Allow", "GET, HEAD"), ("Content-Length", "0")), b"")
        if_none_match = fields.get("if-none-match", "")
        if if_none_match.strip() == "*" or self._entity_tag in _ENTITY_TAG.findall(if_none_match):
            return Answer(304, self._cache_headers, b"")
        return Answer(200, self._headers, self._body if method == "GET" else b"")
