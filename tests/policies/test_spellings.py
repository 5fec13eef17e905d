"""The targets that a server may take a URL for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.patterns import normal_target
from comity.policies.urls import MAX_SPELLINGS, spellings

TAKEN_FOR = [
    # RFC 3986 section-5.2.4
    ("/a/../closed/b", ["/closed/b"]),
    ("/./closed/", ["/closed/"]),
    ("/../../closed/", ["/closed/"]),
    ("/a/b/..", ["/a/"]),
    ("/a/.", ["/a/"]),
    ("/..", ["/"]),
    ("/a/..?q=/../b", ["/?q=/../b"]),
    # with percent-encoded dots and slashes, and backslashes
    ("/a/%2e%2E/closed/", ["/closed/"]),
    ("/a/.%2e/closed/", ["/closed/"]),
    ("/a%2F..%2fclosed/", ["/closed/"]),
    ("/a/..%5Cclosed/", ["/closed/"]),
    ("/a\\..\\closed\\", ["/closed/"]),
    ("/closed%2Fa", ["/closed/a"]),
    # slashes are merged, before the dots are resolved or after that
    ("//closed/", ["/closed/"]),
    ("/a///b", ["/a/b"]),
    ("/x/a//../closed/", ["/x/a/closed/", "/x/closed/"]),
    # parameters of a segment
    ("/closed;x=1/a", ["/closed/a"]),
    ("/a/..;/closed/", ["/closed/"]),
    ("/a/..;x/closed;y", ["/closed"]),
    ("/;a/closed", ["/closed"]),
    ("/a/..%3B/closed/", ["/a/..;/closed/", "/closed/"]),
    # reserved characters that are escaped
    ("/a%28b%29%21", ["/a(b)!"]),
    ("/a%40b%2Cc", ["/a@b,c"]),
    # dots and slashes that are decoded twice on the way
    ("/a/%252e%252E/closed/", ["/closed/"]),
    ("/a%252F..%255c%252fb", ["/b"]),
    # all at once
    ("/a;b/%2e%2e//c%252fd", ["/c%252fd", "/c/d"]),
    ("/\ud800;x", ["/%ED%A0%80"]),
]


@pytest.mark.requirement("MEET-6")
@pytest.mark.parametrize(("target", "others"), TAKEN_FOR)
def test_what_a_server_may_take_a_target_for(target: str, others: list[str]) -> None:
    assert spellings(f"https://example.com{target}") == (target, *others)
    assert spellings(target) == (target, *others)


@pytest.mark.requirement("MEET-6")
@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/news/2026/an-article_1.html?x=%2e%2e/%2F&y=//z;w\\v",
        "/.well-known/security.txt",
        "/a/...",
        "/a..b/.c",
        "/wiki/%C3%A9t%C3%A9",
        "/a%20b%22%3F%23",
        "/100%25",
        "/%2563losed/",
        "/p3%2525xy",
        "/a%zz%",
    ],
)
def test_most_are_taken_for_what_they_are(target: str) -> None:
    assert spellings(target) == (target,)


@pytest.mark.requirement("MEET-6", "SEC-1")
@given(st.text("ab/.%25cCfFeE?*#;\\é\ud800", max_size=30))
def test_there_are_few_and_all_but_the_first_come_to_rest(target: str) -> None:
    found = spellings(f"/{target}")
    assert 1 <= len(found) <= MAX_SPELLINGS
    assert len(set(map(normal_target, found))) == len(found)
    for other in found[1:]:
        path = other.partition("?")[0]
        assert path.startswith("/")
        assert not {".", ".."} & set(path.split("/"))
        assert "//" not in path
    assert found[0].partition("?")[1:] == found[-1].partition("?")[1:]
