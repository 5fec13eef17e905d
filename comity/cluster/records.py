"""Policy files as records, as the store of the shared state keeps them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.store import body_of, fetched_as_json, fetched_of_json, policy_file
from comity.policies.answers.fetched import STAND_IN

KEPT = round(STAND_IN)  # seconds that a file is kept after it was written

# Seconds since its last use until an entry is forgotten.
YEAR = 365 * 24 * 3600
# Without the entry, a term that counts from the first use would begin anew, and an item that is to
# be taken down would stay.
TERM = 10 * YEAR
# Without the entry, a session would count as new. RFC 6265bis section-5.5: no cookie lives longer
# than 400 days.
SESSION = 2 * YEAR
ACTION = YEAR  # without the entry, a page would be crawled once more


def pack_file(file: PolicyFile) -> bytes:
    """Return a policy file as JSON. Its body is named by its digest."""
    members: dict[str, Any] = {
        "due": float(file.due),
        "copy": fetched_as_json(file.copy) if file.copy else None,
        "body": hashlib.sha256(file.copy.body).hexdigest()
        if file.copy and file.copy.body
        else None,
        "failure": fetched_as_json(file.failure) if file.failure else None,
        "failing_since": file.failing_since.timestamp() if file.failing_since else None,
        "failures": file.failures,
        "reach": file.reach.value,
    }
    return json.dumps(
        {key: value for key, value in members.items() if value is not None}, separators=(",", ":")
    ).encode()


def unpack_file(record: Mapping[str, Any], bodies: Mapping[str, bytes | None]) -> PolicyFile:
    """Return the policy file of a record. `bodies`: digest -> the deflated body.

    One of UNREADABLE: the record or the body is damaged."""
    digest = record.get("body")
    body = body_of(bytes.fromhex(digest), bodies[digest]) if digest else b""
    since = record.get("failing_since")
    return policy_file(
        due=record["due"],
        copy=fetched_of_json(record["copy"], body) if "copy" in record else None,
        failure=fetched_of_json(record["failure"]) if "failure" in record else None,
        failing_since=datetime.fromtimestamp(since, UTC) if since else None,
        failures=record["failures"],
        reach=record["reach"],
    )
