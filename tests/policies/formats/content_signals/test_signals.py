"""Content Signals: lines of robots.txt and response fields, and the addressed agents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.answers.decision import Verdict
from comity.policies.answers.rule import RULES
from comity.policies.formats import ROBOTS_LINES
from comity.policies.formats.content_signals import signals as content_signal
from comity.policies.formats.content_signals.signals import Signals
from comity.policies.formats.robots import grammar as robots
from comity.policies.formats.robots.extension_lines import extension_lines
from comity.policies.syntax.lines import MAX_LINE
from comity.policies.vocabulary.statement import Statement
from tests.selection import one_in

ALLOW, DENY = Verdict.ALLOW, Verdict.DENY

Said = dict[str, tuple[str, int]]  # word -> rule without its format, line


def signals(body: bytes, token: str = "examplebot") -> Signals:
    parsed = robots.parse(body)
    return Signals(
        extension_lines(parsed, ROBOTS_LINES), parsed, token, url="https://example.com/robots.txt"
    )


def verdicts_of(body: bytes, token: str = "examplebot") -> Said:
    statements = signals(body, token).statements("/a")
    assert all(
        one.verdict is (ALLOW if one.rule == "content-signal.allow" else DENY) for one in statements
    )
    return {
        one.term.removeprefix("content-signal:"): (
            one.rule.removeprefix("content-signal."),
            one.location.line,
        )
        for one in statements
    }


def verdicts(statements: tuple[Statement, ...]) -> dict[str, bool]:
    return {one.term.removeprefix("content-signal:"): one.verdict is ALLOW for one in statements}


def field(*values: bytes) -> dict[str, bool]:
    return verdicts(content_signal.field(values)[0])


VALUES: list[tuple[bytes, dict[str, bool], int]] = [  # value, word -> permitted, number of findings
    (
        b"search=yes, ai-input=no, ai-train=no",
        {"search": True, "ai-input": False, "ai-train": False},
        0,
    ),
    (b"search=yes", {"search": True}, 0),
    (b"", {}, 0),
    (b"use=immediate", {"use-immediate": True, "use-reference": False, "use-full": False}, 0),
    (b"use=reference", {"use-immediate": True, "use-reference": True, "use-full": False}, 0),
    (b"use=full", {"use-immediate": True, "use-reference": True, "use-full": True}, 0),
    (
        b"use=full, use=reference",
        {"use-immediate": True, "use-reference": True, "use-full": False},
        0,
    ),
    (b"ai-train=yes, ai-train=no", {"ai-train": False}, 0),
    (b"ai-train=no, ai-train=yes", {"ai-train": False}, 0),
    # LENIENT
    (b" Search = YES ,AI-Train=No", {"search": True, "ai-train": False}, 0),
    (b"search=yes; ai-train=no", {"search": True, "ai-train": False}, 0),
    (b"search=yes ai-train=no", {"search": True, "ai-train": False}, 0),
    (b'search="yes", ai-train="no"', {"search": True, "ai-train": False}, 0),
    (b"ai_train=no", {"ai-train": False}, 0),
    ("search=yes,\u00a0ai-train=no".encode(), {"search": True, "ai-train": False}, 0),
    (
        "\u200bai-train=no\ufeff, ai-input\u00a0=\u2009no".encode(),
        {"ai-train": False, "ai-input": False},
        0,
    ),
    (
        "\u201cai-train\u201d=\u201cno\u201d, 'search'='yes'".encode(),
        {"ai-train": False, "search": True},
        0,
    ),
    ("ai\u2011train=no".encode(), {"ai-train": False}, 0),
    (b'{"ai-train": "no"}', {"ai-train": False}, 0),
    (b"[search=yes|ai-train=no]", {"search": True, "ai-train": False}, 0),
    (
        b"search=yes&ai-input=no/ai-train=no",
        {"search": True, "ai-input": False, "ai-train": False},
        0,
    ),
    (
        "search=yes\uff0cai-train=no\u3001ai-input=no".encode(),
        {"search": True, "ai-train": False, "ai-input": False},
        0,
    ),
    # An unreadable value permits nothing. With a known key it refuses, unless it is a form of yes.
    (b"ai-train=n, ai-input=none", {"ai-train": False, "ai-input": False}, 2),
    (b"ai-train=y, search=true", {}, 2),
    (b"search=yes/no, ai-train=yes|no", {"search": False, "ai-train": False}, 2),
    (b"search: yes, ai-train: none", {}, 4),
    (b"use=none", {"use-immediate": False, "use-reference": False, "use-full": False}, 1),
    (b"ai-train, search=", {}, 2),
    (b"/content-signals.json", {}, 1),
    (b"=no, ai-train=no", {"ai-train": False}, 1),
    # Words that only other specifications have.
    (b"train-ai=no, tdm=yes", {"train-ai": False, "tdm": True}, 2),
    (b"train-ai=n", {}, 1),
    (b"use-full=yes", {}, 1),
]


@pytest.mark.requirement("SIG-1")
@pytest.mark.parametrize(("value", "want", "findings"), one_in(3, VALUES))
def test_values(value: bytes, want: dict[str, bool], findings: int) -> None:
    assert field(value) == want
    assert [one.rule for one in content_signal.field([value])[1]] == [
        "content-signal.value"
    ] * findings
    for name in (b"Content-Signal", b"Content-Signals", b"content-signal"):
        found = signals(b"User-agent: *\n" + name + b": " + value + b"\nAllow: /\n")
        assert verdicts(found.statements("/a")) == want, name
        assert [one.line for one in found.findings if one.rule == "content-signal.value"] == [
            2
        ] * findings, name


@pytest.mark.requirement("SIG-1")
def test_fields() -> None:
    statements, _ = content_signal.field(
        [b"search=yes, ai-train=yes", b"ai-train=no, ai-train=yes"], url="https://example.com/"
    )
    assert verdicts(statements) == {"search": True, "ai-train": False}
    assert [one.rule for one in statements] == ["content-signal.allow", "content-signal.disallow"]
    assert statements[1].location == ("header Content-Signal", 0, "ai-train=no, ai-train=yes", "")


@pytest.mark.requirement("SIG-1", "WHY-1")
def test_the_place_is_the_line() -> None:
    (statement,) = signals(
        b"User-agent: *\n\nCONTENT-SIGNAL:  ai-train=no  # why\nAllow: /\n"
    ).statements("/a")
    assert statement.location == (
        "body",
        3,
        "Content-Signal: ai-train=no",
        "https://example.com/robots.txt",
    )


NO, YES = b"Content-Signal: ai-train=no\n", b"Content-Signal: ai-train=yes\n"
ANY, OWN, OTHER = b"User-agent: *\n", b"User-agent: ExampleBot\n", b"User-agent: otherbot\n"
RULE = b"Allow: /\n"

SCOPES: list[tuple[str, bytes, Said]] = [
    # By all readings.
    ("for all, no", ANY + NO, {"ai-train": ("disallow", 2)}),
    ("for all, yes", ANY + YES, {"ai-train": ("allow", 2)}),
    ("own, no", OWN + NO, {"ai-train": ("disallow", 2)}),
    ("own, yes", OWN + YES, {"ai-train": ("allow", 2)}),
    # By one more reading, a list of agents ends at a signal.
    ("before own, yes", OTHER + YES + OWN + RULE, {}),
    ("before own, no", OTHER + NO + OWN + RULE, {"ai-train": ("disallow", 2)}),
    (
        "below own, yes",
        OWN + b"Content-Signal: search=yes\n" + OTHER + YES + RULE,
        {"search": ("allow", 2)},
    ),
    ("before own and below it", OTHER + YES + OWN + YES, {"ai-train": ("allow", 4)}),
    (
        "before all, of one list",
        YES + OTHER + b"Content-Signal: search=yes\n" + OWN,
        {"ai-train": ("allow", 1)},
    ),
    ("own of two agents", OTHER + OWN + YES, {"ai-train": ("allow", 3)}),
    # For `*`, if the agent has a group without such a line: not by the reading as a group.
    ("fallback, no", ANY + NO + RULE + OWN + RULE, {"ai-train": ("fallback", 2)}),
    ("fallback, yes", ANY + YES + RULE + OWN + RULE, {}),
    # For `*`, if its own group has one: only by the reading of the whole file.
    ("own yes, for all no", ANY + NO + RULE + OWN + YES, {"ai-train": ("whole-file", 2)}),
    ("own no, for all yes", ANY + YES + RULE + OWN + NO, {"ai-train": ("disallow", 5)}),
    ("own yes, for all yes", ANY + YES + RULE + OWN + YES, {"ai-train": ("allow", 5)}),
    (
        "own of another word",
        ANY + NO + RULE + OWN + b"Content-Signal: search=yes\n",
        {"ai-train": ("whole-file", 2), "search": ("allow", 5)},
    ),
    # In a record of ACAP, which may be for another agent.
    ("acap, yes", ANY + RULE + b"ACAP-crawler: otherbot\n" + YES, {}),
    ("acap before all, yes", b"ACAP-crawler: otherbot\n" + YES + ANY + RULE, {}),
    (
        "acap, no",
        OWN + YES + RULE + b"ACAP-crawler: otherbot\n" + NO,
        {"ai-train": ("disallow", 5)},
    ),
    # For others.
    ("other, no", OTHER + NO + RULE + ANY + RULE, {"ai-train": ("whole-file", 2)}),
    ("other, yes", OTHER + YES + RULE + ANY + RULE, {}),
    ("other no, for all yes", OTHER + NO + RULE + ANY + YES, {"ai-train": ("whole-file", 2)}),
    ("other yes, for all no", OTHER + YES + RULE + ANY + NO, {"ai-train": ("disallow", 5)}),
    ("other, no group of ours", OTHER + YES, {}),
    # Before all groups: for any agent.
    ("before, no", NO + ANY + RULE, {"ai-train": ("disallow", 1)}),
    ("before, yes", YES + ANY + RULE, {"ai-train": ("allow", 1)}),
    ("before, yes, own without", YES + OWN + RULE, {"ai-train": ("allow", 1)}),
    ("before, yes, own no", YES + OWN + NO, {"ai-train": ("disallow", 3)}),
    ("before, yes, for all no", YES + ANY + NO + RULE + OWN + RULE, {"ai-train": ("fallback", 3)}),
    ("alone", NO, {"ai-train": ("disallow", 1)}),
    # SIG-4: two groups for the same agent are one.
    ("merged, no", ANY + YES + RULE + ANY + NO, {"ai-train": ("disallow", 5)}),
    ("merged, yes", ANY + YES + RULE + ANY + b"Disallow: /admin/\n", {"ai-train": ("allow", 2)}),
    ("merged, own", OWN + RULE + OTHER + RULE + OWN + YES, {"ai-train": ("allow", 6)}),
]


@pytest.mark.requirement("SIG-2", "SIG-4")
@pytest.mark.parametrize(
    ("body", "want"), one_in(3, [row[1:] for row in SCOPES]), ids=[row[0] for row in SCOPES]
)
def test_scopes(body: bytes, want: Said) -> None:
    assert verdicts_of(body) == want
    assert signals(body).everywhere() == signals(body).statements("/a")


NO_INPUT_NO_SEARCH = {"ai-input": False, "search": False}
PATHS: list[tuple[bytes, str, dict[str, bool]]] = [
    # A line with a path is for the URLs that begin with it.
    (
        b"Content-Signal: /blog/ ai-train=no, search=yes\n",
        "/blog/1",
        {"ai-train": False, "search": True},
    ),
    (b"Content-Signal: /blog/ ai-train=no, search=yes\n", "/a", {}),
    (b"Content-Signal: /about ai-train=yes\n", "/", {}),
    (b"Content-Signal: /*.pdf$ ai-train=no\n", "/a.pdf", {"ai-train": False}),
    (b"Content-Signal: /*.pdf$ ai-train=no\n", "/a.pdf?b", {}),
    (b"Content-Signal: / ai-train=no\n", "/a", {"ai-train": False}),
    # All lines that match apply together.
    (
        b"Content-Signal: ai-train=no\nContent-Signal: /open/ ai-train=yes\n",
        "/open/",
        {"ai-train": False},
    ),
    (b"Content-Signal: search=yes\nContent-Signal: /a search=no\n", "/b", {"search": True}),
    (b"Content-Signal: search=yes\nContent-Signal: /a search=no\n", "/a", {"search": False}),
    # Without a clear path a line refuses for the whole site, and permits nothing.
    (b"Content-Signal: blog/ ai-train=no, search=yes\n", "/b", {"ai-train": False}),
    (b"Content-Signal: /a, ai-train=no, search=yes\n", "/b", {"ai-train": False}),
    (b"Content-Signal: /a /b ai-train=no, search=yes\n", "/b", {"ai-train": False}),
    (b"Content-Signal: *.pdf ai-train=yes\n", "/b", {}),
    *(
        (b"Content-Signal: " + value.encode() + b"\n", "/b", {})
        for value in (
            *("/item?id=* ai-train=yes", "/a=b/ ai-train=yes", "/a?x=1 ai-train=yes"),
            *("/a=yes ai-train=yes", "/ai-train=yes", "/a&ai-train=yes", "*/ai-train=yes"),
            *("https://e.example/blog/ ai-train=yes", "//e.example/a=yes/ai-train=yes"),
            *("path=/a ai-train=yes", "path=blog, ai-train=yes", "path: /a ai-train=yes"),
            *(
                "/a\u00a0ai-train=yes",
                "/a\u3000search=yes ai-train=yes",
                "\u00a0/a=yes ai-train=yes",
            ),
            *("blog ai-train=yes", "blog, ai-train=yes", "blog/ai-train=yes", "'/a' ai-train=yes"),
            *("ai-train=yes /a", "ai-train=yes /a=yes", "ai-train=yes, *.pdf", "ai-train=yes blog"),
            *("ai-train=yes on /a", "search:yes ai-train=yes", "ai-train=yes; path=/a"),
        )
    ),
    (b"Content-Signal: ai-train=yes, ai-input=no/a, search=no\n", "/b", NO_INPUT_NO_SEARCH),
    (b"Content-Signal: ai-train=yes \xff\n", "/b", {}),
    # Behind a clear path other words permit nothing either.
    (b"Content-Signal: /a or blog ai-train=yes, search=no\n", "/a", {"search": False}),
    (b"Content-Signal: /a *.pdf ai-train=yes, search=no\n", "/b", {"search": False}),
    # Unknown signals, and known ones with other values, are words of a known form.
    (
        b"Content-Signal: ai-train=yes, mine=yes, search=never\n",
        "/b",
        {"ai-train": True, "mine": True, "search": False},
    ),
    # A slash between signals begins no path.
    (b"Content-Signal: /search=no\n", "/b", {"search": False}),
    (b"Content-Signal: search=yes/ai-train=no\n", "/b", {"search": True, "ai-train": False}),
]


@pytest.mark.requirement("SIG-1")
@pytest.mark.parametrize(("lines", "target", "want"), PATHS)
def test_paths(lines: bytes, target: str, want: dict[str, bool]) -> None:
    assert verdicts(signals(ANY + lines + RULE).statements(target)) == want


@pytest.mark.requirement("SIG-1")
@pytest.mark.parametrize(
    "value", [b"/blog/ ai-train=yes", b"ai-train=yes, /a", b"blog ai-train=yes"]
)
def test_a_field_with_a_path_permits_nothing(value: bytes) -> None:
    """A field is for the content of its response, so its path is unclear."""
    assert field(value + b", search=no") == {"search": False}


@pytest.mark.requirement("SIG-1")
def test_a_line_that_is_too_long_permits_nothing() -> None:
    value = b"ai-train=yes, search=no" + b" " * MAX_LINE + b"/a"
    assert verdicts(signals(ANY + b"Content-Signal: " + value + b"\n" + RULE).statements("/b")) == {
        "search": False
    }


@pytest.mark.requirement("SIG-1")
def test_a_permission_for_some_pages_is_none_for_the_site() -> None:
    lines = b"Content-Signal: /about ai-train=yes\nContent-Signal: /b ai-input=no\n"
    everywhere = signals(ANY + lines + RULE).everywhere()
    assert verdicts(everywhere) == {"ai-train": True}
    refused = signals(ANY + lines + b"Content-Signal: /* ai-train=no\n" + RULE).everywhere()
    assert verdicts(refused) == {"ai-train": False}


@pytest.mark.requirement("SIG-2")
def test_the_rule_says_by_which_reading_it_is_refused() -> None:
    bodies = (OWN + NO, ANY + NO + RULE + OWN + RULE, OTHER + NO + RULE + ANY + RULE)
    rules = [statement.rule for body in bodies for statement in signals(body).statements("/a")]
    assert rules == [
        "content-signal.disallow",
        "content-signal.fallback",
        "content-signal.whole-file",
    ]
    assert set(rules) <= set(RULES)


@pytest.mark.requirement("SIG-1")
def test_lines_of_other_vocabularies_say_nothing_here() -> None:
    body = (
        ANY
        + b"Usage: ai=n\nContent-Usage: train-ai=n\nLicense: https://example.com/l.xml\n"
        + YES
        + RULE
    )
    assert verdicts_of(body) == {"ai-train": ("allow", 5)}
    assert signals(body).findings == ()
    assert verdicts_of(ANY + b"Usage: ai=n\n") == {}
    assert signals(ANY + b"Usage: ai=n\n").findings == ()


CONTRADICTIONS: list[tuple[bytes, list[int]]] = [  # file, lines of findings
    (ANY + YES + b"Disallow: /\n", [2]),
    (ANY + YES + b"Disallow: /*\nAllow: /llms.txt\n", [2]),
    (ANY + YES + b"Disallow: /admin/\n", []),
    (ANY + YES + b"Disallow: /$\n", []),
    (ANY + NO + b"Disallow: /\n", []),
    (ANY + YES + RULE + OTHER + b"Disallow: /\n", []),
    (ANY + YES + RULE + OWN + b"Disallow: /\n", []),
    (YES + OWN + b"Disallow: /\n", [1]),
    (ANY + b"Content-Signal: ai-train=yes, search=yes, ai-train=no\n", [2]),
    (ANY + YES + NO, [2]),
    (ANY + YES + RULE + OTHER + NO, [2]),
    (ANY + NO + RULE + OTHER + YES, []),
]


@pytest.mark.requirement("SIG-3")
@pytest.mark.parametrize(("body", "want"), one_in(2, CONTRADICTIONS))
def test_contradictions(body: bytes, want: list[int]) -> None:
    findings = signals(body).findings
    assert [one.line for one in findings] == want
    assert {one.rule for one in findings} <= {"content-signal.contradiction"}
    assert all(one.url == "https://example.com/robots.txt" for one in findings)


# After content-signals/serchen.com-cloudflare-managed-robots.txt: a block that is put before the
# site's own groups.
MANAGED = b"""# BEGIN managed content

User-agent: *
Content-Signal: search=yes,ai-train=no,use=reference
Allow: /

User-agent: trainbot
Disallow: /

# END managed content

User-agent: trainbot
Disallow: /

User-agent: *
Allow: /
Disallow: /admin/
"""
# After content-signals/crawler-commons-extensions-group-merging.txt: a line for everybody, and
# groups in pieces.
IN_PIECES = b"""# signals for all
Content-Signal: search=yes,ai-train=yes,ai-input=yes  # whole file

User-agent: *
Allow: /about.txt

User-agent: examplebot
Request-rate: 10/1m
User-agent: otherbot
Disallow: /private/

User-agent: *
Disallow: /
"""
# After content-signals/crawler-commons-extension-robots.txt: the address of a file instead of
# signals.
ADDRESS = b"""User-agent: *
Allow: /
Policy: /policy.txt
Content-Signals: /signals.json

User-agent: examplebot
Disallow: /private/
"""

SAMPLES: list[tuple[bytes, str, Said, list[tuple[str, int]]]] = [
    (
        MANAGED,
        "examplebot",
        {
            "search": ("allow", 4),
            "ai-train": ("disallow", 4),
            "use-immediate": ("allow", 4),
            "use-reference": ("allow", 4),
            "use-full": ("disallow", 4),
        },
        [],
    ),
    (MANAGED, "trainbot", {"ai-train": ("fallback", 4), "use-full": ("fallback", 4)}, []),
    (
        IN_PIECES,
        "examplebot",
        {"search": ("allow", 2), "ai-train": ("allow", 2), "ai-input": ("allow", 2)},
        [],
    ),
    (
        IN_PIECES,
        "thirdbot",
        {"search": ("allow", 2), "ai-train": ("allow", 2), "ai-input": ("allow", 2)},
        [("content-signal.contradiction", 2)],
    ),
    (ADDRESS, "examplebot", {}, [("content-signal.value", 4)]),
    (ADDRESS, "thirdbot", {}, [("content-signal.value", 4)]),
]


@pytest.mark.requirement("SIG-1", "SIG-2", "SIG-3", "SIG-4")
@pytest.mark.parametrize(("body", "token", "want", "findings"), SAMPLES)
def test_samples(body: bytes, token: str, want: Said, findings: list[tuple[str, int]]) -> None:
    assert verdicts_of(body, token) == want
    assert [(one.rule, one.line) for one in signals(body, token).findings] == findings


MEMBERS = st.sampled_from(
    b"search=yes search=no ai-train=yes ai-train=no ai-train=x ai-input=yes use=full "
    b"use=reference use=immediate use=x".split()
)
UNKNOWN = st.sampled_from(
    [b"x", b"x=maybe", b"=", b"", b" ", b"\xff", b"ai-train", b"search=", b"/signals.json"]
)
LINES = MEMBERS.map(lambda member: b"Content-Signal: " + member) | st.sampled_from(
    [ANY[:-1], OWN[:-1], OTHER[:-1], b"Disallow: /", b"Allow: /"]
)


@pytest.mark.requirement("SIG-1")
@given(
    st.lists(MEMBERS, max_size=6).flatmap(lambda one: st.tuples(st.just(one), st.permutations(one)))
)
def test_order_changes_nothing(lists: tuple[list[bytes], list[bytes]]) -> None:
    one, other = lists
    assert field(b",".join(one)) == field(*other)
    line = b"User-agent: *\nContent-Signal: "
    assert verdicts(signals(line + b",".join(one)).statements("/a")) == field(*other)


@pytest.mark.requirement("SIG-1")
@given(st.lists(MEMBERS, max_size=5), UNKNOWN, st.integers(0, 5))
def test_other_words_change_no_refusal_and_permit_nothing(
    members: list[bytes], unknown: bytes, at: int
) -> None:
    without = field(b",".join(members))
    if unknown.strip():
        without = {word: False for word, permitted in without.items() if not permitted}
    assert field(b",".join([*members[:at], unknown, *members[at:]])) == without


@pytest.mark.requirement("SIG-2")
@given(
    st.lists(LINES, max_size=10),
    st.sampled_from([b"search=no", b"ai-train=no", b"use=immediate"]),
    st.integers(0, 10),
)
def test_a_refusal_more_never_permits(lines: list[bytes], refusal: bytes, at: int) -> None:
    body = b"\n".join(lines)
    more = b"\n".join([*lines[:at], b"Content-Signal: " + refusal, *lines[at:]])
    before, after = (
        verdicts(signals(body).statements("/a")),
        verdicts(signals(more).statements("/a")),
    )
    permitted = {
        word
        for word in ("search", "ai-input", "ai-train", "use-reference", "use-full")
        if after.get(word)
    }
    assert permitted <= {word for word in before if before[word]}


@pytest.mark.requirement("SIG-2")
@given(st.lists(LINES, max_size=10))
def test_a_refusal_anywhere_refuses(lines: list[bytes]) -> None:
    found = verdicts(signals(b"\n".join(lines)).statements("/a"))
    if b"Content-Signal: ai-train=no" in lines:
        assert found["ai-train"] is False


@pytest.mark.requirement("SEC-1")
@given(
    st.lists(
        LINES | st.binary(max_size=20).map(lambda octets: b"Content-Signal:" + octets), max_size=10
    ).map(b"\n".join)
)
def test_nothing_raises(body: bytes) -> None:
    found = signals(body)
    assert all(one.location.text.isprintable() for one in found.statements("/a"))
    assert isinstance(found.findings, tuple)
    content_signal.field([body])


@pytest.mark.requirement("SEC-1")
def test_unknown_words_are_bounded() -> None:
    value = b",".join(b"x%d=no" % number for number in range(5_000)) + b",ai-train=no"
    statements, findings = content_signal.field([value])
    assert len(statements) == content_signal.MAX_WORDS + 1
    assert statements[-1].term == "content-signal:ai-train"
    assert len(findings) == 101


@pytest.mark.requirement("SEC-1", "SIG-1")
def test_unknown_words_of_a_file_are_bounded() -> None:
    """All lines of a word within the limit count, and so do all known words."""
    lines = [b"Content-Signal: x%d=yes, y%d=no" % (number, number) for number in range(1_000)]
    body = b"\n".join(
        [b"User-agent: *", *lines, b"Content-Signal: x0=no, search=yes, ai-train=no, use=reference"]
    )
    found = verdicts(signals(body).statements("/a"))
    unknown = [word for word in found if word[0] in "xy"]
    assert len(unknown) == content_signal.MAX_UNKNOWN
    assert (found["x0"], found["y0"], found["x1"], found["search"], found["ai-train"]) == (
        False,
        False,
        True,
        True,
        False,
    )
    assert found["use-full"] is False
