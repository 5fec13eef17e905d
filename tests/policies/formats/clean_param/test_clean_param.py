"""Clean-param lines of robots.txt: what is taken off a URL, and what stays."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Site, Verdict
from comity.policies.formats.clean_param import FORMAT
from comity.policies.formats.clean_param.lines import MAX_RULE
from tests.policies.formats.mending import findings_of

pytestmark = pytest.mark.requirement("CLEAN-1")

ORIGIN = "https://example.com"
AGENT = Agent("examplebot")


def clean(robots: bytes, target: str) -> str:
    url = Site.from_files(ORIGIN, {"/robots.txt": robots}).clean(ORIGIN + target)
    assert url.startswith(ORIGIN)
    return url.removeprefix(ORIGIN)


ABC = b"Clean-param: abc /forum/showthread.php\n"
SENTENCES: list[tuple[bytes, str, str]] = [
    # The examples of the documentation.
    (
        b"Clean-param: ref /some_dir/get_book.pl\n",
        "/some_dir/get_book.pl?ref=site_1&book_id=123",
        "/some_dir/get_book.pl?book_id=123",
    ),
    (ABC, "/forum/showthread.php?abc=1&t=2", "/forum/showthread.php?t=2"),
    (b"Clean-param: sid&sort /forum/*.php\n", "/forum/a.php?sid=1&sort=2&t=3", "/forum/a.php?t=3"),
    (b"Clean-param: someTrash&otherTrash\n", "/a?otherTrash=1&b&someTrash", "/a?b"),
    # The first field lists parameters, separated by `&`.
    (b"Clean-param: a&b&c\n", "/?c=1&d=2&a=3", "/?d=2"),
    (b"Clean-param: &a&&b&\n", "/?a&b&c", "/?c"),
    # The second field is the begin of paths. `*` matches any octets, and stands at the end too.
    (ABC, "/forum/showthread.php/more?abc=1", "/forum/showthread.php/more"),
    (ABC, "/forum/?abc=1", "/forum/?abc=1"),
    (b"Clean-param: s */index.html\n", "/a/index.html?s=1", "/a/index.html"),
    (b"Clean-param: s /a*c/\n", "/abc/d?s", "/abc/d"),
    # Without it the rule is for the whole site.
    (b"Clean-param: s\n", "/any?s=1", "/any"),
    (b"Clean-param: s /\n", "/any?s=1", "/any"),
    # Upper and lower case differ.
    (b"Clean-param: sid\n", "/?SID=1&sid=2", "/?SID=1"),
    (b"Clean-param: sid /a\n", "/A?sid=2", "/A?sid=2"),
    # All lines count, in any group, outside of them and for any agent.
    (b"Clean-param: a\nUser-agent: Yandex\nDisallow:\nClean-param: b /x\n", "/x?a&b&c", "/x?c"),
    (b"CLEAN-PARAM:a\nclean-param : b # c\n", "/x?a&b&c", "/x?c"),
    # A rule has at most 500 characters.
    (b"Clean-param: a&%s\n" % (b"b" * (MAX_RULE - 2)), "/?a", "/"),
    (b"Clean-param: a&%s\n" % (b"b" * (MAX_RULE - 1)), "/?a", "/?a"),
    # Readings of docs/clean-param.md.
    (b"Clean-param: a b\n", "/?a&b", "/?a&b"),
    (b"Clean-param: a / b\n", "/?a", "/?a"),
    (b"Clean-param: a /x?y\n", "/x?y&a", "/x?y&a"),
    (b"Clean-param: a /x$\n", "/x?a", "/x?a"),
    (b"Clean-param:\nClean-param: &\n", "/?&=1", "/?&=1"),
    (b"Clean-param: a\n", "/?b=a&a=b=c&ab=1&a", "/?b=a&ab=1"),
    (b"Clean-param: a[]\n", "/?a%5B%5D=1&a[]=2&b", "/?b"),
    (b"Clean-param: a%5b%5d\n", "/?a%5B%5D=1&a[]=2&b", "/?b"),
    (b"Clean-param: \xc3\xa9\n", "/?%C3%A9=1&b", "/?b"),
    (b"Clean-param: a\n", "/p?&a=1&&%62=+%2b#a=1", "/p?&&%62=+%2b#a=1"),
    # A value with `;` may hold a parameter that no line names.
    (b"Clean-param: sid\n", "/s?sid=1;page=1", "/s?sid=1;page=1"),
    (b"Clean-param: sid\n", "/s?sid=1;page=1&sid=2&sid;", "/s?sid=1;page=1&sid;"),
    (b"Clean-param: sid\n", "/s?page=1;sid=1", "/s?page=1;sid=1"),
    (b"Clean-param: sid\n", "/s?sid=1%3Bpage=1", "/s"),
    (b"Clean-param: a;b\n", "/s?a;b=1&a=1", "/s?a;b=1&a=1"),
    (b"Clean-param: a\n", "/p?#?a", "/p?#?a"),
    (b"Clean-param: a\n", "/p#?a", "/p#?a"),
]


@pytest.mark.parametrize(("robots", "target", "cleaned"), SENTENCES)
def test_sentences(robots: bytes, target: str, cleaned: str) -> None:
    assert clean(robots, target) == cleaned


def test_a_url_without_a_path() -> None:
    site = Site.from_files(ORIGIN, {"/robots.txt": b"Clean-param: a /\n"})
    assert site.clean(f"{ORIGIN}?a=1&b=2") == f"{ORIGIN}/?b=2"
    assert site.clean(ORIGIN) == ORIGIN


def test_a_line_permits_nothing() -> None:
    robots = b"User-agent: *\nDisallow: /*?\nClean-param: a\n"
    site = Site.from_files(ORIGIN, {"/robots.txt": robots})
    assert site.access(AGENT, f"{ORIGIN}/p?a=1").verdict is Verdict.DENY
    assert site.access(AGENT, f"{ORIGIN}/p").verdict is Verdict.ALLOW


def test_a_site_in_markup_is_read_without_an_error() -> None:
    assert clean(b"<pre>\nClean-param: a\n", "/?a") in ("/?a", "/")


FINDINGS = [
    (b"Clean-param: a&b /c\n", []),
    (b"Clean-param: a b\n", ["clean-param.path"]),
    (b"Clean-param: a c:\\d\n", ["clean-param.path"]),
    (b"Clean-param: a /{0}\n", ["clean-param.path"]),
    (b"Clean-param: {0} b\n", ["clean-param.path"]),
    (b"Clean-param:\n", ["clean-param.names"]),
    (b"Clean-param: %s\n" % (b"b" * (MAX_RULE + 1)), ["clean-param.length"]),
]


@pytest.mark.parametrize(("line", "rules"), FINDINGS)
def test_findings(line: bytes, rules: list[str]) -> None:
    found = findings_of(FORMAT, "/robots.txt", b"User-agent: *\nAllow: /\n" + line)
    assert [finding.rule for finding in found] == rules


NAMES = st.sampled_from(["a", "b", "c", "%61", "a[]", "", "é"])
LINE = st.builds(
    lambda names, path: f"Clean-param: {'&'.join(names)} {path}".rstrip(" ").encode(),
    st.lists(NAMES, min_size=1, max_size=3),
    st.sampled_from(["", "/", "/p", "*q", "/p*", "p"]),
)
QUERY = st.lists(
    st.builds("{}{}".format, NAMES, st.sampled_from(["", "=", "=1", "=a&a", "=%3d+", "=?"]))
).map("&".join)
PATH = st.sampled_from(["/", "/p", "/p/q", "/a/../p", "/%70", "/é?x"])


@given(lines=st.lists(LINE, max_size=5), path=PATH, query=QUERY)
def test_what_is_left_is_kept_as_it_was(lines: list[bytes], path: str, query: str) -> None:
    """Cleaning twice changes nothing more, and the parameters that stay keep order and octets."""
    robots = b"\n".join(lines)
    target = f"{path}?{query}"
    cleaned = clean(robots, target)
    assert clean(robots, cleaned) == cleaned
    assert cleaned.partition("?")[0] == target.partition("?")[0]
    rest = iter(target.partition("?")[2].split("&"))
    assert all(kept in rest for kept in cleaned.partition("?")[2].split("&") if "?" in cleaned)


@given(lines=st.lists(LINE, max_size=5), path=PATH, query=QUERY)
def test_lines_change_no_decision(lines: list[bytes], path: str, query: str) -> None:
    rules = b"User-agent: *\nDisallow: /*a=1\nDisallow: /p?\n"
    url = f"{ORIGIN}{path}?{query}"
    verdicts = {
        Site.from_files(ORIGIN, {"/robots.txt": robots}).access(AGENT, url).verdict
        for robots in (rules, rules + b"\n".join(lines), b"\n".join([*lines, rules]))
    }
    assert len(verdicts) == 1


@given(robots=st.binary(max_size=100), url=st.text(max_size=60))
def test_any_octets_and_any_url(robots: bytes, url: str) -> None:
    site = Site.from_files(ORIGIN, {"/robots.txt": b"Clean-param: " + robots})
    target = f"/?{url}"
    cleaned = site.clean(ORIGIN + target)
    assert urlsplit(cleaned).hostname == "example.com"


def test_a_parameter_that_every_line_names() -> None:
    """10,000 lines, each of which names the parameter for another path."""
    lines = b"".join(b"Clean-param: a /%d/\n" % number for number in range(10_000))
    assert clean(lines, "/9999/?a=1&b=2") == "/9999/?b=2"
    assert clean(lines, "/10000/?a=1&b=2") == "/10000/?a=1&b=2"
