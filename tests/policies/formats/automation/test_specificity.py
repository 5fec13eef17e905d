"""The group that applies, against a second implementation of the order.

The order is that of draft-liao-aipref-autoctl-core-01 scope-and-applicability.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from comity.policies.formats.automation.grammar import parse
from comity.policies.formats.automation.resolution import ScopeRules

TOKEN, HOST = "examplebot", "www.example.com"

# scopes, hosts and user-agents of a group; [] if absent
Written = tuple[list[str], list[str], list[str]]

paths = st.lists(st.sampled_from(["/", "a", "b", "*", "ab", "/a/"]), max_size=4).map(
    lambda parts: "/" + "".join(parts)
)
scopes = st.builds(lambda path, end: path + end, paths, st.sampled_from(["", "", "$"]))
urls = st.builds(
    lambda host, path: f"https://{host}{path}",
    st.sampled_from([HOST, "*.com", "example.org"]),
    scopes,
)
hosts = st.lists(st.sampled_from([HOST, "*.example.com", "*", "example.com", "*.org"]), max_size=2)
agents = st.lists(st.sampled_from(["*", "ExampleBot", "other"]), max_size=2)
files = st.lists(
    st.tuples(st.lists(scopes | urls, max_size=3), hosts, agents).filter(any), max_size=8
)
targets = st.lists(st.sampled_from(["/", "a", "b", "ab", "/a/", "?"]), max_size=5).map(
    lambda parts: "/" + "".join(parts)
)


def covers(pattern: str, text: str, *, to_the_end: bool = False) -> bool:
    """Return True if a pattern with `*` and a final `$` matches from the start.

    A plain algorithm.
    """
    ends = to_the_end or pattern.endswith("$")
    pieces = (pattern.removesuffix("$") if not to_the_end else pattern).split("*")
    return (
        re.match(".*".join(map(re.escape, pieces)) + (r"\Z" if ends else ""), text, re.DOTALL)
        is not None
    )


def rank(group: Written, place: int, target: str) -> tuple[bool, bool, int, bool, int] | None:
    """Return the specificity of a group, or None if it does not match.

    A greater rank is more specific. A group without a scope has the least.
    """
    written, named, addressed = group
    own = [host for host in named if covers(host, HOST, to_the_end=True)]
    tokens = [agent.lower() for agent in addressed]
    if (named and not own) or (tokens and not {"*", TOKEN}.intersection(tokens)):
        return None
    is_exact, by_name = HOST in own, TOKEN in tokens
    if not written:
        return False, is_exact, 0, by_name, place
    ranks = []
    for scope in written:
        host, path = HOST if is_exact else "", scope
        if "://" in scope:
            host, _, path = scope.partition("://")[2].partition("/")
            path = f"/{path}"
            if not covers(host, HOST, to_the_end=True):
                continue
        if covers(path, target):
            ranks.append((True, is_exact or host == HOST, len(path), by_name, place))
    return max(ranks, default=None)


def text_of_groups(groups: list[Written]) -> str:
    blocks = []
    for written, named, addressed in groups:
        lines = [f"user-agent: {', '.join(addressed)}"] if addressed else []
        lines += (f"scope: {scope}" for scope in written)
        lines += (f"host: {host}" for host in named)
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


@pytest.mark.requirement("AUTO-11", "AUTO-8", "AUTO-9", "AUTO-10")
@given(files, targets)
@example([(["/a"], [], []), (["/a"], [], [])], "/a")
@example([(["/a*b"], [HOST], ["*"]), (["/aab"], ["*"], ["ExampleBot"])], "/aab")
@example([([], [HOST], ["ExampleBot"]), (["/"], [], [])], "/")
@example([(["https://*.com/aaaa", f"https://{HOST}/"], [], []), (["/aa"], [HOST], [])], "/aaaa")
def test_the_order_of_specificity(groups: list[Written], target: str) -> None:
    automation = parse(text_of_groups(groups).encode())
    assert len(automation.groups) == len(groups)
    ranks = [
        (found, place)
        for place, group in enumerate(groups)
        if (found := rank(group, place, target))
    ]
    rules = ScopeRules(automation, TOKEN, HOST)
    speaking = rules.group(target)
    want = [automation.groups[place] for _, place in sorted(ranks, reverse=True)]
    assert speaking == (want[0] if want else None)
    assert rules.matching(target) == want
