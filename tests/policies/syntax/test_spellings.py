"""The targets that a server may read from a URL."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from urllib.parse import quote, unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.syntax.path_patterns import normal_target
from comity.policies.syntax.urls import base_url, spellings
from tests.selection import one_in

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
    # slashes are merged, before or after the dots are resolved
    ("//closed/", ["/closed/"]),
    ("/a///b", ["/a/b"]),
    ("/x/a//../closed/", ["/x/a/closed/", "/x/closed/"]),
    ("/x/\\../closed/", ["/x/closed/", "/closed/"]),
    # parameters of a segment
    ("/closed;x=1/a", ["/closed/a"]),
    ("/a/..;/closed/", ["/closed/"]),
    ("/a/..;x/closed;y", ["/closed"]),
    ("/;a/closed", ["/closed"]),
    # parameters of the last segment alone
    ("/x;1/closed;2", ["/x;1/closed", "/x/closed"]),
    ("/x;1/closed;", ["/x;1/closed", "/x/closed"]),
    ("/a/..%3B/closed/", ["/a/..;/closed/", "/closed/"]),
    # escaped reserved characters
    ("/a%28b%29%21", ["/a(b)!"]),
    ("/a%40b%2Cc", ["/a@b,c"]),
    # dots and slashes that are decoded twice on the way
    ("/a/%252e%252E/closed/", ["/closed/"]),
    ("/a%252F..%255c%252fb", ["/b"]),
    ("/a(b)/%252e%252e/closed(c)/", ["/closed(c)/"]),
    # only dots, while the slash stays escaped
    ("/a%2Fb/%2e%2e/closed/", ["/closed/", "/a/closed/"]),
    # all at once
    ("/a;b/%2e%2e//c%252fd", ["/c%252fd", "/c/d"]),
    ("/\ud800;x", ["/%ED%A0%80"]),
]


@pytest.mark.requirement("MEET-6")
@pytest.mark.parametrize(
    "url",
    [
        " https://a.test/b$",
        "https://a.test/b$\n",
        "https://a.test/\tb\r\n$ ",
        "\x00ht\ntps://a.test/b$\x1f",
        " /b$",
    ],
)
def test_what_parsers_of_urls_leave_out(url: str) -> None:
    assert spellings(url) == ("/b$",)


def test_what_is_within_a_target_is_a_part_of_it() -> None:
    assert spellings("/a\tb\n") == ("/a\tb\n",)  # a target that a server has decoded
    assert spellings("https://a.test/a b #c") == ("/a b ",)


@pytest.mark.requirement("MEET-6")
@pytest.mark.parametrize(("target", "others"), one_in(3, TAKEN_FOR))
def test_what_a_server_may_take_a_target_for(target: str, others: list[str]) -> None:
    taken = spellings(f"https://example.com{target}")
    assert taken[0] == target
    assert set(map(normal_target, others)) <= set(map(normal_target, taken[1:]))
    assert taken == spellings(target)


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


STEPS: dict[str, Callable[[str], str]] = {
    "decoded": lambda path: quote(unquote_to_bytes(path.encode()), safe="/\\!$&'()*+,:;=@[]"),
    "without parameters": lambda path: re.sub(r";[^/\\]*", "", path),
    "with slashes": lambda path: path.replace("\\", "/"),
    "merged": lambda path: re.sub("//+", "/", path),
    "without dots": lambda path: (
        posixpath.normpath(path.replace("%2e", ".")) + "/" * path.endswith(("/", "/.", "/.."))
    ),
}
PARTS = ("/", "//", "closed", "x", "..", ".", "%2e", "%2f", "%5c", "\\", ";a", "/closed/", "/../")
USUAL = (
    "decoded",
    "without parameters",
    "with slashes",
    "merged",
    "without dots",
    "with slashes",
    "merged",
)


@pytest.mark.requirement("MEET-6")
@given(
    st.lists(
        st.sampled_from(
            (
                "/",
                "//",
                "closed",
                "x",
                "..",
                ".",
                "%2e",
                "%2f",
                "%5c",
                "\\",
                ";a",
                "/closed/",
                "/../",
            )
        ),
        max_size=7,
    ),
    st.sets(st.integers(0, len(USUAL) - 1)),
)
def test_whatever_steps_a_server_leaves_out_it_reads_one_of_them(
    parts: list[str], taken: set[int]
) -> None:
    target = reading = "/" + "".join(parts)
    for step in sorted(taken):
        reading = STEPS[USUAL[step]](reading)
    if normal_target(reading).startswith("/closed/"):
        assert any(normal_target(one).startswith("/closed/") for one in spellings(target))


@pytest.mark.requirement("MEET-6", "SEC-1")
@given(st.text("ab/.%25cCfFeE?*#;\\é\ud800", max_size=30))
def test_each_is_another_path_with_the_same_query(target: str) -> None:
    taken = spellings(f"/{target}")
    assert len(set(map(normal_target, taken))) == len(taken)
    for other in taken:
        assert other.startswith("/")
        assert other.partition("?")[1:] == taken[0].partition("?")[1:]


@pytest.mark.requirement("MEET-6", "SEC-1")
@given(st.text("ab/.%25cCfFeE;\\", max_size=200))
def test_their_number_does_not_grow_with_the_path(target: str) -> None:
    assert len(spellings(f"/{target}")) <= 1 + 9 * 2**5  # nine beginnings, five optional steps


@pytest.mark.requirement("SEC-1")
@pytest.mark.parametrize("base", ["http://[x/", "//[", "http://a]/"])
def test_a_base_that_is_no_url_is_none(base: str) -> None:
    page = "https://example.com/d/page"
    assert base_url(f'<base href="{base}"><p>', page) == page
    assert base_url(f'<base href="/e/"><base href="{base}"><p>', page) == "https://example.com/e/"
