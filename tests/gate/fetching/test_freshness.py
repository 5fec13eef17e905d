from __future__ import annotations

from email.utils import formatdate
from typing import NamedTuple

import pytest
import time_machine
from hishel import Headers, Response
from hishel._core._spec import get_age, get_freshness_lifetime
from hypothesis import given
from hypothesis import strategies as st

from comity.gate.fetching.freshness import DAY, MIN_LIFETIME, lifetime, refresh_headers, retry_after

NOW = 1_800_000_000.0
HOUR = 3600.0
NAMES = (b"Cache-Control", b"Expires", b"Date", b"Age", b"ETag", b"Retry-After", b"X-Other")


def fields(*lines: tuple[str, str]) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((name.encode(), value.encode()) for name, value in lines)


def at(seconds: float) -> str:
    return formatdate(NOW + seconds, usegmt=True)


class Case(NamedTuple):
    name: str
    lines: list[tuple[str, str]]
    want: float


CASES = [
    Case("2.4-nothing-stated", [], DAY),
    Case("2.4-nothing-stated-but-age", [("Age", "4000"), ("Date", at(-9 * HOUR))], DAY),
    Case(
        "2.4-nothing-explicit",
        [("Cache-Control", "private, must-revalidate"), ("Last-Modified", at(-HOUR))],
        DAY,
    ),
    Case("5.2.2.1-max-age", [("Cache-Control", "max-age=3600")], HOUR),
    Case("5.2.2.1-quoted", [("Cache-Control", 'max-age="3600"')], HOUR),
    Case("5.2.2.1-case", [("cache-control", "Max-Age=3600")], HOUR),
    Case("5.2.2.1-capped", [("Cache-Control", "max-age=31536000")], DAY),
    Case("5.2.2.1-huge", [("Cache-Control", "max-age=" + "9" * 5000)], DAY),
    Case(
        "5.2.2.1-before-expires",
        [("Cache-Control", "max-age=3600"), ("Expires", at(2 * HOUR))],
        HOUR,
    ),
    Case("5.2.2.10-shared-caches-only", [("Cache-Control", "s-maxage=7200, max-age=3600")], HOUR),
    Case("5.2.2.10-alone", [("Cache-Control", "s-maxage=60")], DAY),
    Case("5.2.2.4-no-cache", [("Cache-Control", "max-age=3600, no-cache")], MIN_LIFETIME),
    Case(
        "5.2.2.4-no-cache-of-a-field",
        [("Cache-Control", 'max-age=3600, no-cache="Set-Cookie"')],
        MIN_LIFETIME,
    ),
    Case("5.2.2.5-no-store", [("Cache-Control", "no-store, max-age=3600")], MIN_LIFETIME),
    Case("5.2-inside-quotes", [("Cache-Control", 'x="no-cache, no-store", max-age=3600')], HOUR),
    Case("5.2-two-lines", [("Cache-Control", "private"), ("Cache-Control", "max-age=3600")], HOUR),
    Case("4.2.1-values-differ", [("Cache-Control", "max-age=3600, max-age=7200")], MIN_LIFETIME),
    Case("4.2.1-value-twice", [("Cache-Control", "max-age=3600, max-age=3600")], HOUR),
    Case("4.2.1-no-number", [("Cache-Control", "max-age=soon")], MIN_LIFETIME),
    Case("4.2.1-no-value", [("Cache-Control", "max-age")], MIN_LIFETIME),
    Case("4.2.1-negative", [("Cache-Control", "max-age=-1")], MIN_LIFETIME),
    Case("4.2.1-floored", [("Cache-Control", "max-age=5")], MIN_LIFETIME),
    Case("5.3-expires", [("Expires", at(HOUR)), ("Date", at(0))], HOUR),
    Case("5.3-expires-without-date", [("Expires", at(HOUR))], HOUR),
    Case("5.3-counted-from-date", [("Expires", at(3 * HOUR)), ("Date", at(2 * HOUR))], HOUR),
    Case("5.3-in-the-past", [("Expires", at(-HOUR))], MIN_LIFETIME),
    Case("5.3-zero", [("Expires", "0")], MIN_LIFETIME),
    Case(
        "5.3-rfc850",
        [("Expires", "Friday, 15-Jan-27 09:00:00 GMT"), ("Date", "Fri, 15 Jan 2027 08:00:00 GMT")],
        HOUR,
    ),
    Case("5.3-asctime", [("Expires", "Fri Jan 15 09:00:00 2027"), ("Date", at(0))], HOUR),
    Case("5.3-two-that-differ", [("Expires", at(HOUR)), ("Expires", at(2 * HOUR))], MIN_LIFETIME),
    Case("4.2.3-age", [("Cache-Control", "max-age=7200"), ("Age", "3600")], HOUR),
    Case("4.2.3-date", [("Cache-Control", "max-age=7200"), ("Date", at(-HOUR))], HOUR),
    Case(
        "4.2.3-the-older-counts",
        [("Cache-Control", "max-age=7200"), ("Date", at(-HOUR)), ("Age", "10")],
        HOUR,
    ),
    Case("4.2.3-date-ahead", [("Cache-Control", "max-age=7200"), ("Date", at(HOUR))], 2 * HOUR),
    Case("4.2.3-bad-age", [("Cache-Control", "max-age=3600"), ("Age", "old")], HOUR),
]


@pytest.mark.requirement("RFC-8")
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_lifetime(case: Case) -> None:
    assert lifetime(fields(*case.lines), NOW) == pytest.approx(case.want, abs=1)


# hishel does not cover the Age field, repeated directives and dates, the two obsolete forms of a
# date, and endless numbers. Also, we keep a file with "no-store" for a moment.
OURS_ALONE = (
    "2.4",
    "4.2.1",
    "4.2.3-age",
    "5.2.2.1-huge",
    "5.2.2.10-alone",
    "5.2.2.4",
    "5.2.2.5",
    "5.3-asctime",
    "5.3-rfc850",
    "5.3-two",
)


@pytest.mark.requirement("RFC-8")
@pytest.mark.parametrize(
    "case",
    [case for case in CASES if not case.name.startswith(OURS_ALONE)],
    ids=lambda case: str(case.name),
)
def test_hishel_agrees(case: Case) -> None:
    """Our limits are the only difference."""
    headers: dict[str, list[str]] = {}
    for name, value in case.lines:
        headers.setdefault(name, []).append(value)
    with time_machine.travel(NOW, tick=False):
        response = Response(
            200, Headers({name: ", ".join(values) for name, values in headers.items()})
        )
        theirs = (get_freshness_lifetime(response, is_cache_shared=False) or 0) - get_age(response)
    assert min(max(theirs, MIN_LIFETIME), DAY) == pytest.approx(case.want, abs=1)


@pytest.mark.requirement("RFC-8", "SEC-1")
@given(
    st.lists(
        st.tuples(
            st.sampled_from(NAMES),
            st.binary(max_size=60)
            | st.sampled_from(
                [
                    b"max-age=",
                    b'max-age="',
                    b"no-cache",
                    b"-1",
                    b"9" * 5000,
                    b"\\" * 2000,
                    b'a="' + b"\\\\" * 500,
                ]
            )
            | st.builds(
                lambda parts: b",".join(parts),
                st.lists(st.sampled_from([b"max-age=1", b"private", b'"', b"=", b"max-age=1e9"])),
            ),
        ),
        max_size=5,
    ),
    st.floats(0, 4e9),
)
def test_hostile_headers(headers: list[tuple[bytes, bytes]], now: float) -> None:
    assert MIN_LIFETIME <= lifetime(headers, now) <= DAY
    wait = retry_after(headers, now)
    assert wait is None or 1 <= wait <= DAY


@pytest.mark.requirement("RFC-6", "RFC-7")
@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("120", 120),
        ("0", 1),
        ("9" * 5000, DAY),
        ("172800", DAY),
        (at(90), 90),
        (at(-90), 1),
        (at(9 * DAY), DAY),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        ("Fri, 99 Foo 99999 99:99:99 GMT", None),
    ],
)
def test_retry_after(value: str, want: float | None) -> None:
    assert retry_after(fields(("Retry-After", value)), NOW) == want


def test_of_several_retry_after_the_longest_counts() -> None:
    """Only one field is allowed (RFC 9110 section-10.2.3), but proxies add their own."""
    assert (
        retry_after(
            fields(("Retry-After", "1"), ("retry-after", at(90)), ("Retry-After", "soon")), NOW
        )
        == 90
    )
    assert retry_after(fields(("Retry-After", "1, 120")), NOW) == 120


@pytest.mark.requirement("RFC-8")
def test_refresh_headers() -> None:
    stored = fields(
        ("Content-Type", "text/plain"),
        ("Date", at(-DAY)),
        ("Age", "5"),
        ("Cache-Control", "max-age=60"),
        ("ETag", '"1"'),
    )
    confirming = fields(
        ("content-type", "text/html"), ("cache-control", "max-age=7200"), ("Content-Length", "0")
    )
    assert dict(refresh_headers(stored, confirming)) == dict(
        fields(("Content-Type", "text/plain"), ("ETag", '"1"'), ("cache-control", "max-age=7200"))
    )
    assert lifetime(refresh_headers(stored, ()), NOW) == MIN_LIFETIME
    assert lifetime(refresh_headers(stored, confirming), NOW) == 2 * HOUR


@pytest.mark.parametrize(
    "headers", [(), ((b"Cache-Control", b"max-age=600"),), ((b"ETag", b'"1"'),)]
)
@pytest.mark.requirement("USE-16")
def test_content_usage_plays_no_part(headers: tuple[tuple[bytes, bytes], ...]) -> None:
    stated = (*headers, (b"Content-Usage", b"train-ai=n"))
    assert lifetime(stated, 0.0) == lifetime(headers, 0.0)
