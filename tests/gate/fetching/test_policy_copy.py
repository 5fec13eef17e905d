"""A policy file from one fetch to the next (docs/fetching.md). The tests move the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import formatdate

import pytest

from comity.gate.fetching.freshness import DAY
from comity.gate.fetching.policy_copy import (
    FIRST_BACK_OFF,
    MAX_SHARED_BODY,
    MAX_SHARED_HEADERS,
    PolicyFile,
    shared_body,
    shared_headers,
)
from comity.gate.fetching.reach import Reach
from comity.policies.answers.fetched import STAND_IN, Fetched

NOW = 1_800_000_000.0
FAILURE = Fetched(status=503)


def utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def had(confirmed: float = NOW, status: int = 200) -> PolicyFile:
    return PolicyFile(
        due=NOW + 60,
        copy=Fetched(status=status, body=b"User-agent: *\n", fetched_at=utc(confirmed)),
    )


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize(
    ("due", "is_due"),
    [(NOW - 1, True), (NOW, True), (NOW + 1, False), (NOW + DAY, False), (NOW + DAY + 1, True)],
)
def test_when_it_is_asked_for_again(due: float, is_due: bool) -> None:
    """No fetch is put off for more than a day: a later moment is from before a clock change."""
    assert replace(had(), due=due).is_due(NOW) is is_due


@pytest.mark.requirement("RFC-7")
def test_a_server_that_fails_is_asked_less_and_less() -> None:
    """Each wait is twice the last one, up to a day. The moment of the first failure is kept."""
    file, now, waits = had(), NOW, []
    for _ in range(20):
        file = file.after_failure(FAILURE, now)
        assert (file.failing_since, file.failure, file.copy) == (utc(NOW), FAILURE, had().copy)
        waits.append(file.due - now)
        now = file.due
    assert waits == [min(FIRST_BACK_OFF * 2**number, DAY) for number in range(20)]
    assert file.failures == 20
    for _ in range(20):
        file = file.after_failure(FAILURE, now)
        assert file.due == now + DAY


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize(
    ("retry_after", "at_least", "wait"),
    [
        ("100", 0, 100),
        (formatdate(NOW + 100, usegmt=True), 0, 100),
        ("1", 0, 1),
        ("1", 30, 30),
        ("100", 30, 100),
        ("999999", 0, DAY),
        ("soon", 0, FIRST_BACK_OFF),
        ("soon", 30, 30),
    ],
)
def test_a_server_that_says_when_is_asked_then(
    retry_after: str, at_least: float, wait: float
) -> None:
    failure = replace(FAILURE, headers=((b"Retry-After", retry_after.encode()),))
    assert had().after_failure(failure, NOW, at_least).due == NOW + wait


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize(
    ("confirmed", "status", "now", "counts"),
    [
        (NOW, 200, NOW + 1, True),
        (NOW, 200, NOW + STAND_IN - 1, True),
        (NOW, 200, NOW + STAND_IN, False),
        # The time counts from the last confirmation, not from the first failure.
        (NOW - 10 * DAY, 200, NOW + 21 * DAY, False),
        (NOW, 404, NOW + 1, False),  # the absence of a file is no permission
        (NOW, 503, NOW + 1, False),
    ],
)
def test_the_last_good_copy_stands_in_for_thirty_days(
    confirmed: float, status: int, now: float, counts: bool
) -> None:
    good = had(confirmed, status)
    assert good.current(NOW) == good.copy
    file = good.after_failure(FAILURE, NOW)
    assert good.copy
    assert file.current(now) == (
        replace(good.copy, unreachable_since=utc(NOW)) if counts else FAILURE
    )
    file = replace(file, due=confirmed + 2 * STAND_IN)
    assert file.counts_until(now) == (confirmed + STAND_IN if counts else file.due)
    assert replace(file, due=confirmed + 1).counts_until(now) == confirmed + 1
    assert good.counts_until(now) == good.due


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize(
    "file", [PolicyFile(due=NOW), PolicyFile(due=NOW, copy=Fetched(status=200, body=b"x"))]
)
def test_what_nobody_knows_the_time_of_stands_in_for_nothing(file: PolicyFile) -> None:
    failed = file.after_failure(FAILURE, NOW)
    assert failed.current(NOW + 1) == FAILURE
    assert failed.counts_until(NOW + 1) == failed.due == NOW + FIRST_BACK_OFF


@pytest.mark.parametrize(
    ("file", "moment", "is_due"),
    [
        (had(), NOW - 1, False),
        (had(), NOW, False),
        (had(), NOW + 1, True),
        (had(), 0.0, False),  # 0 renews no copy
        (PolicyFile(due=NOW + 60, copy=Fetched(status=200)), NOW, True),
        (PolicyFile(due=NOW + 60, copy=Fetched(status=200)), 0.0, False),
        # If a server fails, the wait that it asked for applies.
        (had().after_failure(FAILURE, NOW), NOW + 1, False),
    ],
)
def test_what_was_confirmed_before_a_moment_is_asked_for_anew(
    file: PolicyFile, moment: float, is_due: bool
) -> None:
    assert file.due_if_before(moment) == (replace(file, due=0.0) if is_due else file)


@pytest.mark.requirement("RFC-8")
@pytest.mark.parametrize(
    ("confirming", "at_most", "seconds"),
    [
        ([(b"Cache-Control", b"max-age=600")], DAY, 600),
        ([(b"Cache-Control", b"max-age=600")], 300, 300),
        ([], DAY, 900),
        ([(b"Date", formatdate(NOW, usegmt=True).encode())], DAY, 900),
        ([(b"Date", formatdate(NOW - 100, usegmt=True).encode())], DAY, 800),
        ([(b"Age", b"100")], DAY, 800),
        ([(b"Age", b"old")], DAY, 900),
        (
            [
                (b"Expires", formatdate(NOW + 500, usegmt=True).encode()),
                (b"Cache-Control", b"public"),
            ],
            DAY,
            500,
        ),
    ],
)
def test_a_copy_that_is_confirmed_counts_anew(
    confirming: Sequence[tuple[bytes, bytes]], at_most: float, seconds: float
) -> None:
    copy = Fetched(
        status=200,
        body=b"x",
        headers=((b"Cache-Control", b"max-age=900"),),
        fetched_at=utc(NOW - DAY),
    )
    failing = PolicyFile(due=NOW, copy=copy, reach=Reach.LOOPBACK).after_failure(FAILURE, NOW)
    file = failing.after_confirmation(tuple(confirming), at_most, NOW)
    assert (file.due, file.failure, file.failing_since, file.failures) == (
        NOW + seconds,
        None,
        None,
        0,
    )
    assert file.copy
    assert set(confirming) <= set(file.copy.headers)
    assert (file.copy.fetched_at, file.copy.body, file.reach) == (utc(NOW), b"x", Reach.LOOPBACK)


def again(octets: bytes) -> bytes:
    """Return the octets at another place in memory."""
    return bytes(bytearray(octets))


@pytest.mark.parametrize(
    ("octets", "is_shared"), [(MAX_SHARED_BODY, True), (MAX_SHARED_BODY + 1, False)]
)
def test_origins_share_equal_bodies_that_are_short(octets: int, is_shared: bool) -> None:
    body = b"#" * octets
    first, second = shared_body(again(body)), shared_body(again(body))
    assert first == second == body
    assert (first is second) is is_shared
    assert shared_body(body[1:] + b"\n") != body


@pytest.mark.parametrize(
    ("octets", "is_shared"), [(MAX_SHARED_HEADERS, True), (MAX_SHARED_HEADERS + 1, False)]
)
def test_origins_share_equal_header_fields_that_are_short(octets: int, is_shared: bool) -> None:
    names = (b"Content-Type", b"Server")
    values = b"text/plain", b"x" * (octets - sum(map(len, names)) - len(b"text/plain"))

    def fields(*values: bytes) -> list[tuple[bytes, bytes]]:
        return [(again(name), again(value)) for name, value in zip(names, values, strict=True)]

    first, second = shared_headers(fields(*values)), shared_headers(fields(*values))
    assert first == second == tuple(zip(names, values, strict=True))
    assert (first is second) is is_shared
    other = shared_headers(fields(b"text/plain", b"y"))
    assert other == ((b"Content-Type", b"text/plain"), (b"Server", b"y"))
    assert (other[0] is first[0]) is is_shared
