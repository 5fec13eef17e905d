"""Content codings of policy files: the decoded content, and codings that cannot be removed."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.syntax.content_coding import MAX_MEMBERS, decoded
from comity.policies.syntax.lines import MAX_BYTES

RULES = b"User-agent: *\nDisallow: /\n"
PACKED, FIRST, SECOND = (gzip.compress(part, mtime=0) for part in (RULES, RULES[:14], RULES[14:]))


@pytest.mark.requirement("SEC-3")
@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (RULES, b""),
        (RULES, b"identity"),
        (RULES, b"identity, identity"),
        (PACKED, b"gzip"),
        (PACKED, b"x-gzip"),
        (PACKED, b"gzip, identity"),
        (PACKED, b"identity,gzip"),
        (zlib.compress(RULES), b"deflate"),
        (zlib.compress(RULES, 1), b"deflate"),
        (zlib.compress(RULES, wbits=-zlib.MAX_WBITS), b"deflate"),
        (PACKED, b"deflate"),
        (FIRST + SECOND, b"gzip"),
        (gzip.compress(b"", mtime=0) + FIRST + SECOND, b"gzip"),
        # Compressed and stored, without the field
        (PACKED, b""),
        (FIRST + SECOND, b"identity"),
    ],
)
def test_codings_are_taken_off(body: bytes, coding: bytes) -> None:
    assert decoded(body, coding, is_cut=False) == (RULES, False)


@pytest.mark.requirement("SEC-3")
@pytest.mark.parametrize(
    ("body", "coding", "problem"),
    [
        (RULES, b"br", "not asked for"),
        (RULES, b"utf-8", "not asked for"),
        (gzip.compress(PACKED, mtime=0), b"gzip, gzip", "not asked for"),
        (RULES, b"gzip", "cannot be decoded"),
        (RULES, b"deflate", "cannot be decoded"),
        (zlib.compress(RULES)[:-1], b"deflate", "breaks off"),
        (zlib.compress(RULES, wbits=-zlib.MAX_WBITS) + b"more", b"deflate", "goes on"),
        (b"", b"deflate", "breaks off"),
        (FIRST + SECOND[:-9], b"gzip", "breaks off"),
        (FIRST + SECOND + b"more", b"gzip", "goes on"),
        (FIRST + b"\x1f\x8b\x08rubbish", b"gzip", "cannot be decoded"),
        (FIRST[:-9], b"", "breaks off"),
        (b"\x1f\x8b\x08rubbish", b"", "cannot be decoded"),
        (FIRST * (MAX_MEMBERS + 1), b"gzip", "goes on"),
    ],
)
def test_what_cannot_be_had(body: bytes, coding: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        decoded(body, coding, is_cut=False)


@pytest.mark.requirement("SEC-3")
@pytest.mark.parametrize("coding", [b"gzip", b""])
def test_no_more_is_taken_off_than_is_read(coding: bytes) -> None:
    half = gzip.compress(b"#" * (MAX_BYTES // 2))
    assert decoded(half * 2, coding, is_cut=False) == (b"#" * MAX_BYTES, False)
    content, is_more = decoded(half * 2 + FIRST, coding, is_cut=False)
    assert (len(content), is_more) == (MAX_BYTES + 1, True)
    content, is_more = decoded(gzip.compress(b"#" * 50 * MAX_BYTES), coding, is_cut=False)
    assert (len(content), is_more) == (MAX_BYTES + 1, True)
    assert decoded(FIRST + SECOND[:-9], coding, is_cut=True) == (RULES, True)


@pytest.mark.requirement("SEC-1", "SEC-3")
@given(
    st.binary(max_size=50) | st.binary(max_size=50).map(lambda octets: FIRST + octets),
    st.booleans(),
)
def test_content_is_had_or_it_is_said_why_not(body: bytes, is_cut: bool) -> None:
    for coding in (b"", b"gzip", b"deflate", b","):
        try:
            content, _ = decoded(body, coding, is_cut=is_cut)
        except ValueError:
            continue
        assert len(content) <= MAX_BYTES + 1
