"""Preferences of the AIPREF working group: dictionaries, and lines with paths.

The field that two drafts define is tested too.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Site
from comity.policies.answers.decision import Reason, Source, Verdict
from comity.policies.formats import ROBOTS_LINES
from comity.policies.formats.aipref import content_usage
from comity.policies.formats.aipref import short_strings as usage
from comity.policies.formats.aipref.content_usage import UsageRules
from comity.policies.formats.robots import grammar as robots
from comity.policies.formats.robots.extension_lines import extension_lines
from comity.policies.syntax.lines import MAX_LINE, Findings
from comity.policies.vocabulary.preferences import Preferences
from comity.policies.vocabulary.statement import Location, Statement
from comity.policies.vocabulary.table import Vocabulary
from tests.selection import one_in

ALLOW, DENY = Verdict.ALLOW, Verdict.DENY
SHIPPED = Vocabulary.shipped()

Said = dict[str, str]


def verdicts(said: dict[str, Verdict] | None) -> Said | None:
    return (
        None
        if said is None
        else {label: "y" if verdict is ALLOW else "n" for label, verdict in said.items()}
    )


def of(statements: tuple[Statement, ...], vocabulary: str = "aipref") -> Said:
    """Return the verdict on each label: n if any statement refuses it."""
    rules = {
        "aipref": {ALLOW: "content-usage.allow", DENY: "content-usage.disallow"},
        "usage": {ALLOW: "usage.allow", DENY: "usage.disallow"},
    }[vocabulary]
    found: Said = {}
    for one in statements:
        name, _, label = one.term.partition(":")
        if name == vocabulary:
            assert one.verdict is not None
            assert one.rule == rules[one.verdict]
            if found.get(label) != "n":
                found[label] = "y" if one.verdict is ALLOW else "n"
    return found


def rules(body: bytes, token: str = "examplebot") -> UsageRules:
    parsed = robots.parse(body)
    return UsageRules(
        extension_lines(parsed, ROBOTS_LINES), parsed, token, url="https://example.com/robots.txt"
    )


def names(findings: Findings | tuple[object, ...]) -> list[str]:
    return [getattr(one, "rule", "") for one in findings]


def because(statement: Statement) -> Reason:
    return Reason(rule=statement.rule, source=Source(url=""))


SYNTAX, VALUE, LABEL = "content-usage.syntax", "content-usage.value", "content-usage.label"

DICTIONARIES: list[tuple[str, Said | None, list[str]]] = [
    ("", {}, []),
    ("train-ai=y, search=n", {"train-ai": "y", "search": "n"}, []),  # vocab, section format
    ("train-ai=y,search=n", {"train-ai": "y", "search": "n"}, []),
    ("  train-ai=y ,\tsearch=n", {"train-ai": "y", "search": "n"}, []),
    ("unknown=n", {"unknown": "n"}, []),
    # vocab, section processing: a value other than the two tokens is unknown, and no error.
    ("train-ai", {}, [VALUE]),
    ('train-ai="n"', {}, [VALUE]),
    ("train-ai=no", {}, [VALUE]),
    ("train-ai=N", {}, [VALUE]),
    ("train-ai=1", {}, [VALUE]),
    ("train-ai=?0", {}, [VALUE]),
    ("train-ai=:bg==:", {}, [VALUE]),
    ("train-ai=(n)", {}, [VALUE]),
    ('train-ai=%"n"', {}, [VALUE]),
    ('train-ai;has;parameters="?"', {}, [VALUE]),
    ("train-ai=no, search=n", {"search": "n"}, [VALUE]),
    # The last of equal keys counts, and only its parameters.
    ('train-ai=y, train-ai, search=n, search="n"', {}, [VALUE, VALUE]),
    ("train-ai;allow=n, train-ai=y", {"train-ai": "y"}, []),
    ("train-ai=n, train-ai=y", {"train-ai": "y"}, []),
    ("train-ai=y, train-ai=n", {"train-ai": "n"}, []),
    ("train-ai=n;x;y=2", {"train-ai": "n"}, []),
    # A parse failure.
    ("Train-AI=n", None, [SYNTAX]),
    ("train-ai=n,", None, [SYNTAX]),
    ("train-ai = n", None, [SYNTAX]),
    ("train-ai=n search=n", None, [SYNTAX]),
    ("train-ai=n; search=n,,", None, [SYNTAX]),
    ('train-ai=n, x="', None, [SYNTAX]),
    ("train-ai=n, ü=y", None, [SYNTAX]),
    ("train-ai=n, garbage!!!", None, [SYNTAX]),
    # A word of another vocabulary.
    ("ai-train=no", {}, [LABEL]),
    ("ai-train=n, ai-input=y", {"ai-train": "n", "ai-input": "y"}, [LABEL, LABEL]),
]


@pytest.mark.requirement("PREF-3", "PREF-6")
@pytest.mark.parametrize(("value", "want", "found"), one_in(3, DICTIONARIES))
def test_dictionaries(value: str, want: Said | None, found: list[str]) -> None:
    findings = Findings("")
    assert verdicts(content_usage.read(value, findings)) == want
    assert names(findings) == found
    assert verdicts(content_usage.read(value.encode())) == want


def by_each(values: list[bytes], said: Said) -> tuple[list[bytes], Said, Said, Said]:
    return values, said, said, said


FIELDS: list[
    tuple[list[bytes], Said, Said, Said]
] = [  # values; by the dictionary reader, by the string reader, by both
    ([b""], {}, {}, {}),
    by_each([b"train-ai=y, search=n"], {"train-ai": "y", "search": "n"}),
    by_each([b"train-ai=y", b"search=n"], {"train-ai": "y", "search": "n"}),
    ([b"ai=n, ai=y"], {"ai": "y"}, {"ai": "n"}, {"ai": "n"}),
    ([b"ai=n", b"ai=y"], {"ai": "y"}, {"ai": "n"}, {"ai": "n"}),
    by_each([b"ai=y, ai=n"], {"ai": "n"}),
    ([b"ai=y, ai"], {}, {"ai": "y"}, {}),
    ([b"ai=n, ai"], {}, {"ai": "n"}, {"ai": "n"}),
    by_each([b"train-ai;allow=n, train-ai=y"], {"train-ai": "y"}),
    ([b"ai=y;x=1, tdm=n;x=1"], {"ai": "y", "tdm": "n"}, {}, {"tdm": "n"}),
    (
        [b'train-ai=y, train-ai, search=n, search="n"'],
        {},
        {"train-ai": "y", "search": "n"},
        {"search": "n"},
    ),
    ([b"train-ai=n,"], {}, {"train-ai": "n"}, {"train-ai": "n"}),
    ([b"train-ai=y,"], {}, {}, {}),
    ([b"train-ai=n", b"Search=y"], {}, {"train-ai": "n"}, {"train-ai": "n"}),
    ([b"train-ai, search=no"], {}, {}, {}),
    ([b"ai-train=no"], {}, {}, {}),
]


@pytest.mark.requirement("PREF-3", "PREF-4", "PREF-6", "USE-11")
@pytest.mark.parametrize(("values", "dictionary", "strings", "both"), one_in(2, FIELDS))
def test_fields(values: list[bytes], dictionary: Said, strings: Said, both: Said) -> None:
    statements, _ = content_usage.field(values)
    assert of(statements, "aipref") == of(statements, "usage") == both
    assert all(one.location.part == "header Content-Usage" for one in statements)
    statements, _ = content_usage.field(values, readers=("aipref",))
    assert (of(statements, "aipref"), of(statements, "usage")) == (dictionary, {})
    statements, _ = content_usage.field(values, readers=["usage"])
    assert (of(statements, "aipref"), of(statements, "usage")) == ({}, strings)


@pytest.mark.requirement("PREF-6", "WHY-1", "SEC-4")
def test_findings_and_places_of_fields() -> None:
    statements, findings = content_usage.field(
        [b"ai-train=no", b'train-ai=n;x="\x7f"'], url="https://example.com/"
    )
    assert statements == ()
    assert [(one.rule, one.url) for one in findings] == [(SYNTAX, "https://example.com/")]
    statements, findings = content_usage.field(
        [b" ai-train=no ", b"train-ai=n"], readers=["aipref"]
    )
    place = Location("header Content-Usage", 0, "ai-train=no, train-ai=n")
    assert statements == (Statement("aipref:train-ai", DENY, "content-usage.disallow", place),)
    assert names(findings) == [LABEL]


@pytest.mark.requirement("SEC-1")
def test_a_field_that_is_too_long_permits_nothing() -> None:
    for values in (
        [b"ai=y, tdm=n, " + b"x=y, " * 2000 + b"y=n"],
        [b"ai=y, tdm=n"] + [b"x=y"] * 3000,
    ):
        statements, findings = content_usage.field(values)
        assert of(statements, "aipref") == of(statements, "usage") == {"tdm": "n"}
        assert names(findings) == ["content-usage.length"]
        assert of(content_usage.field(values, readers=["aipref"])[0]) == {"tdm": "n"}
    assert names(content_usage.field([b"a" * 10_000])[1]) == ["content-usage.length"]


EXAMPLE = b"""User-Agent: *
Allow: /
Disallow: /never/
Content-Usage: train-ai=n
Content-Usage: /ai-ok/ train-ai=y

User-Agent: OtherBot
Allow: /
Content-Usage: train-ai=y
"""


@pytest.mark.requirement("PREF-2")
@pytest.mark.parametrize(
    ("token", "target", "want"),
    [
        ("examplebot", "/test", "n"),
        ("examplebot", "/ai-ok/test", "y"),
        ("examplebot", "/ai-ok", "n"),
        ("otherbot", "/test", "y"),
        ("otherbot", "/ai-ok/test", "y"),
    ],
)
def test_the_example_of_section_robots(token: str, target: str, want: str) -> None:
    """The file is figure f-ex-robots, the answers are table t-example."""
    assert of(rules(EXAMPLE, token).statements(target)) == {"train-ai": want}


@pytest.mark.requirement("PREF-2")
def test_what_may_not_be_fetched_has_no_preferences() -> None:
    """The second row of table t-example. Other lines of the file do not matter."""
    site = Site.from_files(
        "https://example.com",
        {"/robots.txt": EXAMPLE.replace(b"train-ai=n\n", b"train-ai=n\nUsage: search=n\n", 1)},
    )
    told = {}
    for path in ("/test", "/never/test", "/ai-ok/test", "/test/../never/", "/never/../test"):
        uses = site.page(Agent("examplebot"), f"https://example.com{path}", body=None).uses
        told[path] = [
            (uses[use].verdict is ALLOW, uses[use].stated) for use in ("train-ai", "search")
        ]
    refused = (False, True)
    assert told == {
        "/test": [refused, refused],
        "/never/test": [(False, False), refused],
        "/ai-ok/test": [(True, True), refused],
        "/test/../never/": [refused, refused],
        "/never/../test": [refused, refused],
    }


@pytest.mark.requirement("PREF-2", "PREF-5")
@pytest.mark.parametrize(
    ("preference", "body", "stated"),
    [("n", b"", True), ("n", None, False), ("y", b"", False), ("y", None, False)],
)
def test_a_refusal_holds_for_what_is_there_all_the_same(
    preference: str, body: bytes | None, stated: bool
) -> None:
    """A dataset may have pages from a time when they were allowed.

    A permission does not apply to them.
    """
    text = f"User-agent: *\nDisallow: /\nContent-Usage: train-ai={preference}\n"
    site = Site.from_files("https://example.com", {"/robots.txt": text.encode()})
    for default in (ALLOW, DENY):
        agent = Agent("examplebot", defaults={"train-ai": default})
        use = site.page(agent, "https://example.com/a", body=body).uses["train-ai"]
        assert (use.stated, use.verdict) == (stated, DENY if stated else default)


@pytest.mark.requirement("PREF-2", "ACAP-27")
@pytest.mark.parametrize(
    ("acap", "stated"),
    [
        ("", False),
        ("ACAP-crawler: *\nACAP-allow-crawl: /never/\n", True),
        ("ACAP-crawler: *\nACAP-disallow-crawl: /\n", False),
    ],
)
def test_what_may_be_fetched_after_all_has_them(acap: str, stated: bool) -> None:
    agent = Agent("examplebot", defaults={"train-ai": ALLOW})
    site = Site.from_files("https://example.com", {"/robots.txt": EXAMPLE + acap.encode()})
    use = site.page(agent, "https://example.com/never/test", body=None).uses["train-ai"]
    assert (use.stated, use.verdict) == ((True, DENY) if stated else (False, ALLOW))


@pytest.mark.requirement("PREF-2", "PREF-5")
def test_other_refusals_take_no_preference_away() -> None:
    agent = Agent("examplebot")
    files = {
        "/robots.txt": EXAMPLE,
        "/automation-preferences.txt": b"scope: /\nallowed-methods: POST\n",
    }
    site = Site.from_files("https://example.com", files)
    assert site.page(agent, "https://example.com/ai-ok/test", body=None).uses["train-ai"].stated
    before = site.access(agent, "https://example.com/test", method="POST")
    assert (
        site.page(agent, "https://example.com/never/test", body=None, access=before)
        .uses["train-ai"]
        .stated
    )


ANY, OWN, OTHER = "User-agent: *\n", "User-agent: ExampleBot\n", "User-agent: otherbot\n"


@pytest.mark.requirement("PREF-2", "USE-9")
def test_the_example_of_the_documentation() -> None:
    page = (Path(__file__).parents[4] / "docs" / "usage-preferences.md").read_text("utf-8")
    text = page.split("```")[1].encode()
    parsed = robots.parse(text)
    lines = extension_lines(parsed, ROBOTS_LINES)
    strings, dictionaries = (
        usage.UsageLines(lines, parsed, "examplebot"),
        UsageRules(lines, parsed, "examplebot"),
    )
    site = Site.from_files("https://example.com", {"/robots.txt": text})
    table = page.split("```")[2].split("\n\n")[1].splitlines()[2:]
    assert len(table) == 3
    for row in table:
        target, *stated = (cell.strip(" `") for cell in row.strip("|").split("|"))
        is_fetched = (
            site.access(Agent("examplebot"), f"https://example.com{target}").verdict is ALLOW
        )
        said = (
            of(strings.statements(target), "usage"),
            of(dictionaries.statements(target)) if is_fetched else {},
        )
        assert [", ".join("=".join(one) for one in each.items()) for each in said] == stated
        uses = site.page(Agent("examplebot"), f"https://example.com{target}", body=None).uses
        assert [
            reason.rule
            for reason in uses["train-ai"].reasons
            if reason.rule.startswith("content-usage")
        ] == (
            [f"content-usage.{'allow' if stated[1].endswith('y') else 'disallow'}"]
            if stated[1]
            else []
        )


PATHS: list[tuple[str, str, str, Said]] = [  # lines of the group, target, verdicts
    ("none", "", "/a", {}),
    ("no path", "train-ai=n", "/a", {"train-ai": "n"}),
    ("/", "/ train-ai=n", "/a", {"train-ai": "n"}),
    ("longer than none", "train-ai=n\n/ train-ai=y", "/a", {"train-ai": "y"}),
    ("longest", "/ train-ai=n\n/a train-ai=y\n/a/b train-ai=n", "/a/c", {"train-ai": "y"}),
    ("longest, order", "/a/b train-ai=n\n/a train-ai=y\n/ train-ai=n", "/a/c", {"train-ai": "y"}),
    ("longest speaks alone", "train-ai=n\n/a search=y", "/a", {"search": "y"}),
    ("longest says nothing", "train-ai=n\n/a train-ai", "/a", {}),
    ("other", "/b train-ai=n", "/a", {}),
    ("case", "/A train-ai=n", "/a", {}),
    ("query", "/a?b train-ai=n", "/a?b=1", {"train-ai": "n"}),
    ("end", "train-ai=n\n/$ train-ai=y", "/", {"train-ai": "y"}),
    ("end, elsewhere", "train-ai=n\n/$ train-ai=y", "/a", {"train-ai": "n"}),
    ("wildcard", "train-ai=n\n/*.html train-ai=y", "/a.html", {"train-ai": "y"}),
    ("wildcard and end", "train-ai=n\n/*.html$ train-ai=y", "/a.html?", {"train-ai": "n"}),
    ("tab", "/a\ttrain-ai=n", "/a", {"train-ai": "n"}),
    ("spaces", "/a \t train-ai=n, search=n", "/a", {"train-ai": "n", "search": "n"}),
    ("escapes", "/%7ea%2f train-ai=n", "/~a%2F", {"train-ai": "n"}),
    ("escapes of the target", "/~a/ä train-ai=n", "/%7ea/%c3%a4", {"train-ai": "n"}),
    ("unicode", "/ä train-ai=n", "/%C3%A4", {"train-ai": "n"}),
    ("comma", "/a,b=y train-ai=n", "/a,b=y", {"train-ai": "n"}),
    # Equal paths: the most restrictive.
    ("same path", "/a train-ai=n\n/a train-ai=y, search=y", "/a", {"train-ai": "n", "search": "y"}),
    (
        "same path, order",
        "/a train-ai=y, search=y\n/a train-ai=n",
        "/a",
        {"train-ai": "n", "search": "y"},
    ),
    ("same path, escaped", "/~a train-ai=n\n/%7Ea train-ai=y", "/~a", {"train-ai": "n"}),
    ("no path twice", "train-ai=n\ntrain-ai=y", "/a", {"train-ai": "n"}),
    (
        "as long",
        "/a*c train-ai=n\n/*bc train-ai=y\n/abc search=y",
        "/abc",
        {"train-ai": "n", "search": "y"},
    ),
    # Within one line: the last.
    ("same key", "/a train-ai=n, train-ai=y", "/a", {"train-ai": "y"}),
    # As if absent.
    ("no dictionary", "train-ai=n\n/a Train-AI=y", "/a", {"train-ai": "n"}),
    ("no dictionary, beside one", "/a train-ai=n\n/a train-ai=y,", "/a", {"train-ai": "n"}),
    ("no slash", "train-ai=n\n*.pdf train-ai=y", "/a.pdf", {"train-ai": "n"}),
    ("path alone", "train-ai=n\n/train-ai=y", "/a", {"train-ai": "n"}),
]


@pytest.mark.requirement("PREF-2", "PREF-3")
@pytest.mark.parametrize(
    ("group", "target", "want"),
    one_in(3, [row[1:] for row in PATHS]),
    ids=[row[0] for row in PATHS],
)
def test_paths(group: str, target: str, want: Said) -> None:
    lines = "".join(f"Content-Usage: {line}\n" for line in group.splitlines())
    assert of(rules((ANY + lines + "Disallow: /x\n").encode()).statements(target)) == want


GROUPS: list[tuple[str, str, Said]] = [
    (
        "own",
        OWN + "content-usage: ai=n\nAllow: /\n" + ANY + "Content-Usage: search=n\n",
        {"ai": "n"},
    ),
    ("own without", OWN + "Allow: /\n" + ANY + "Content-Usage: ai=n\n", {}),
    ("other", OTHER + "Content-Usage: ai=n\n", {}),
    (
        "merged",
        ANY + "Content-Usage: ai=y\nAllow: /\n" + ANY + "CONTENT-USAGE : ai=n # no\n",
        {"ai": "n"},
    ),
    ("between rules", ANY + "Allow: /\nContent-Usage: ai=n\nDisallow: /x\n", {"ai": "n"}),
    ("before all", "Content-Usage: ai=n, search=y\n" + OWN + "Allow: /\n", {"ai": "n"}),
    (
        "before all, beside own",
        "Content-Usage: ai=n\n" + OWN + "Content-Usage: / ai=y\n",
        {"ai": "n"},
    ),
    ("before all, with a path", "Content-Usage: /b ai=n\n" + OWN + "Allow: /\n", {}),
    (
        "before all, no refusal",
        "Content-Usage: /a ai=y\n" + OWN + "Content-Usage: search=n\n",
        {"search": "n"},
    ),
    (
        "in a record of ACAP",
        OTHER + "Allow: /\nACAP-crawler: x\nContent-Usage: ai=n, search=y\n",
        {"ai": "n"},
    ),
]


@pytest.mark.requirement("PREF-2")
@pytest.mark.parametrize(
    ("body", "want"), one_in(2, [row[1:] for row in GROUPS]), ids=[row[0] for row in GROUPS]
)
def test_groups(body: str, want: Said) -> None:
    assert of(rules(body.encode()).statements("/a")) == want


@pytest.mark.requirement("PREF-2", "PREF-6", "WHY-1")
def test_findings_and_places_of_lines() -> None:
    body = [
        "content-usage: /a ai=n",
        "User-agent: *",
        "Content-Usage: /a ai=y, search=n",
        "Content-Usage: /train-ai=n",
        "Content-Usage: *.pdf train-ai=n",
        "Content-Usage: ai-train=no",
        "Content-Usage: /c ai-train=no",
        "User-agent: other",
        "Content-Usage: /b Ai=n",
        "Content-Usage: /b ai=maybe",
    ]
    found = rules("\n".join(body).encode())
    assert [(one.rule, one.line) for one in found.findings] == [
        ("content-usage.outside", 1),
        ("content-usage.path", 4),
        (SYNTAX, 5),
        ("content-usage.path", 5),
        (LABEL, 6),
        (LABEL, 7),
        (SYNTAX, 9),
        ("content-usage.value", 10),
    ]
    assert {one.term: one.location for one in found.statements("/a")} == {
        "aipref:ai": Location(
            "body", 1, "Content-Usage: /a ai=n", "https://example.com/robots.txt"
        ),
        "aipref:search": Location(
            "body", 3, "Content-Usage: /a ai=y, search=n", "https://example.com/robots.txt"
        ),
    }
    assert rules(b"User-agent: *\nDisallow: /").statements("/") == rules(b"").everywhere() == ()


@pytest.mark.requirement("SEC-1")
def test_a_line_that_is_too_long_permits_nothing() -> None:
    group = (
        ANY
        + "Content-Usage: /a ai=n\nContent-Usage: /a/b x=y, tdm=n, "
        + "y=y, " * MAX_LINE
        + "z=n\n"
    )
    found = rules(group.encode())
    assert of(found.statements("/a/b")) == {"ai": "n", "tdm": "n"}
    assert [(finding.rule, finding.line) for finding in found.findings] == [
        ("content-usage.length", 3)
    ]
    assert of(rules(group.replace("*", "x", 1).encode()).statements("/a/b")) == {}


@pytest.mark.requirement("SEC-1")
@pytest.mark.parametrize("readers", [("aipref",), ("usage", "aipref")])
def test_what_is_cut_within_a_string_refuses(readers: tuple[str, ...]) -> None:
    value = b'ai=n, search=y, x="' + b"a," * MAX_LINE + b'"'
    assert of(rules(ANY.encode() + b"Content-Usage: /a " + value + b"\n").statements("/a")) == {
        "ai": "n"
    }
    assert of(content_usage.field([value], readers=readers)[0]) == {"ai": "n"}


@pytest.mark.requirement("SEC-1")
def test_many_lines_with_one_path() -> None:
    group = (
        ANY
        + "".join(f"Content-Usage: x{number}=y\n" for number in range(200))
        + "Content-Usage: ai=n, tdm=y\n"
    )
    assert of(rules(group.encode()).statements("/")) == {"ai": "n"}
    group = (
        ANY
        + "Content-Usage: ai=y\n" * 100
        + "Content-Usage: ai=n, tdm=y\n"
        + "Content-Usage: ai=y\n" * 100
    )
    statements = rules(group.encode()).statements("/")
    assert of(statements) == {"ai": "n", "tdm": "y"}
    assert [(one.location.line, one.term, one.verdict) for one in statements] == [
        (2, "aipref:ai", ALLOW),
        (102, "aipref:ai", DENY),
        (102, "aipref:tdm", ALLOW),
    ]


@pytest.mark.requirement("PREF-2", "PREF-4")
@pytest.mark.parametrize(
    ("lines", "want"),
    [
        ("bots=n\nsearch=y", DENY),
        ("search=y\nbots=n", DENY),
        ("/ bots=n\n/ search=y", DENY),
        ("bots=n, search=y", ALLOW),
        ("search=y\nbots=n, search=y", ALLOW),
        ("bots=y\nsearch=n", DENY),
        ("bots=n\n/ search=y", ALLOW),  # only the longest path decides
    ],
)
def test_each_line_is_a_statement_of_its_own(lines: str, want: Verdict) -> None:
    """See draft-ietf-aipref-vocab section-7.1.

    For lines with one path, see draft-ietf-aipref-attach section-3.1.
    """
    body = ANY + "".join(f"Content-Usage: {line}\n" for line in lines.splitlines()) + "Allow: /\n"
    decision = Preferences(
        SHIPPED, "aipref", rules(body.encode()).statements("/a"), because
    ).decide("search")
    assert decision is not None
    assert decision.verdict is want


@pytest.mark.requirement("PREF-2", "PREF-4")
def test_what_some_pages_are_permitted_is_not_refused_everywhere() -> None:
    body = ANY + "Content-Usage: bots=n\nContent-Usage: /a bots=n, search=y\nAllow: /\n"
    site = Site.from_files("https://example.com", {"/robots.txt": body.encode()})
    agent = Agent("examplebot", uses=("search",))
    assert site.unusable(agent) is None
    assert [
        site.page(agent, f"https://example.com{path}").uses["search"].verdict
        for path in ("/", "/a")
    ] == [DENY, ALLOW]
    everywhere = Site.from_files(
        "https://example.com", {"/robots.txt": body.replace(", search=y", "").encode()}
    )
    assert everywhere.unusable(agent) is not None


EVERYWHERE: list[tuple[str, str, Said]] = [
    ("no path", "ai=n, search=y", {"ai": "n", "search": "y"}),
    ("/", "/ ai=n", {"ai": "n"}),
    ("/*", "/* ai=n", {"ai": "n"}),
    ("some", "/a ai=n", {}),
    ("some permits", "/a ai=y", {"ai": "y"}),
    ("some more", "ai=n\n/a ai=n, search=n", {"ai": "n"}),
    ("an exception", "ai=n\n/a ai=y", {"ai": "y"}),
    ("unknown somewhere", "ai=n\n/a search=y", {"search": "y"}),
    ("a narrower word", "tdm=n\n/a tdm=n, ai=y", {"tdm": "n", "ai": "y"}),
    ("all but the end", "/*$ ai=n", {}),
]


@pytest.mark.requirement("PREF-2")
@pytest.mark.parametrize(
    ("group", "want"),
    one_in(2, [row[1:] for row in EVERYWHERE]),
    ids=[row[0] for row in EVERYWHERE],
)
def test_everywhere(group: str, want: Said) -> None:
    lines = "".join(f"Content-Usage: {line}\n" for line in group.splitlines())
    assert of(rules((ANY + lines).encode()).everywhere()) == want
    assert of(rules((lines + OWN + "Content-Usage: x=y").encode()).everywhere()) == {
        "x": "y",
        **{label: value for label, value in want.items() if value == "n"},
    }


@pytest.mark.requirement("PREF-2", "PREF-4")
def test_what_is_refused_outside_of_all_groups_is_permitted_nowhere() -> None:
    found = rules(b"Content-Usage: ai=n\nUser-agent: *\nContent-Usage: ai=y, search=y\n")
    assert [(one.term, one.verdict) for one in found.everywhere()] == [
        ("aipref:search", ALLOW),
        ("aipref:ai", DENY),
    ]


LINES = st.builds(
    "Content-Usage: {} {}".format,
    st.sampled_from(["", "/", "/a", "/a/b", "/a*", "/*b", "/a/b$", "/%61"]),
    st.sampled_from(
        [
            "ai=n",
            "ai=y",
            "tdm=n",
            "tdm=y, genai=n",
            "train-ai=n, search=y",
            "search=n",
            "ai",
            "AI=n",
            "x=n",
            "",
        ]
    ),
)
FILES = st.lists(
    LINES | st.sampled_from([ANY.strip(), OWN.strip(), OTHER.strip(), "Disallow: /x"]), max_size=10
)
TARGETS = ["/", "/a", "/a/b", "/a/b/c", "/b", "/ab?b"]


@pytest.mark.requirement("PREF-2")
@given(FILES)
def test_what_is_refused_everywhere_is_refused_of_each_resource(body: list[str]) -> None:
    found = rules("\n".join(body).encode())
    everywhere = Preferences(SHIPPED, "aipref", found.everywhere(), because)
    for use in SHIPPED.uses:
        decision = everywhere.decide(use)
        if decision is not None and decision.verdict is DENY:
            for target in TARGETS:
                of_one = Preferences(SHIPPED, "aipref", found.statements(target), because).decide(
                    use
                )
                assert of_one is not None
                assert of_one.verdict is DENY


@pytest.mark.requirement("PREF-2", "PREF-4")
@given(st.data(), st.lists(LINES, max_size=8), st.sampled_from(TARGETS))
def test_order_does_not_matter(data: st.DataObject, lines: list[str], target: str) -> None:
    shuffled = data.draw(st.permutations(lines))
    assert of(rules("\n".join([ANY, *shuffled]).encode()).statements(target)) == of(
        rules("\n".join([ANY, *lines]).encode()).statements(target)
    )


@pytest.mark.requirement("PREF-2", "PREF-4")
@given(
    st.lists(LINES, max_size=8),
    st.sampled_from(TARGETS),
    st.sampled_from(["", "/", "/a", "/a/b", "/a*"]),
)
def test_a_refusal_more_with_a_path_that_is_there_never_permits(
    lines: list[str], target: str, path: str
) -> None:
    stated = [*lines, f"Content-Usage: {path} x=y"]
    before = of(rules("\n".join([ANY, *stated]).encode()).statements(target))
    after = of(
        rules("\n".join([ANY, *stated, f"Content-Usage: {path} ai=n"]).encode()).statements(target)
    )
    assert {label for label, value in after.items() if value == "y"} <= {
        label for label, value in before.items() if value == "y"
    }


@pytest.mark.requirement("PREF-3")
@given(
    st.lists(LINES, max_size=6),
    st.sampled_from(TARGETS),
    st.sampled_from(["", "/", "/a", "/a/b/c"]),
    st.data(),
)
def test_what_is_no_dictionary_changes_nothing(
    lines: list[str], target: str, path: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(lines)))
    malformed = f"Content-Usage: {path} " + data.draw(
        st.sampled_from(["Train-AI=y", "ai=y,", "ai=n ai=y", '"', "?!", "ä=y"])
    )
    with_it = [*lines[:at], malformed, *lines[at:]]
    assert of(rules("\n".join([ANY, *with_it]).encode()).statements(target)) == of(
        rules("\n".join([ANY, *lines]).encode()).statements(target)
    )


READERS = [("usage", "aipref"), ("aipref",), ("usage",)]
PIECES = st.sampled_from(
    [
        b"a",
        b"b",
        b"=",
        b"y",
        b"n",
        b",",
        b" ",
        b"\t",
        b";",
        b'"',
        b"\\",
        b"(",
        b")",
        b":",
        b"@",
        b"?",
        b"%",
        b"1",
        b"-",
        b".",
    ]
)


@pytest.mark.requirement("SEC-1")
@given(st.binary() | st.lists(PIECES).map(b"".join), st.text())
def test_nothing_raises(value: bytes, target: str) -> None:
    content_usage.read(target, Findings(""))
    both, dictionary, strings = (
        content_usage.field([value], readers=readers)[0] for readers in READERS
    )
    each = [of(dictionary, "aipref").items(), of(strings, "usage").items()]
    assert of(both, "aipref") == of(both, "usage")
    assert {one for one in of(both).items() if one[1] == "n"} == {
        one for one in each[0] | each[1] if one[1] == "n"
    }
    assert {one for one in of(both).items() if one[1] == "y"} == {
        one for one in each[0] & each[1] if one[1] == "y"
    }
    found = rules(b"User-agent: *\nContent-Usage: " + value)
    found.statements(target)
    found.everywhere()


@pytest.mark.parametrize(
    ("readers", "verdict"),
    [(("usage",), Verdict.DENY), (("aipref",), Verdict.ALLOW), (("usage", "aipref"), Verdict.DENY)],
)
@pytest.mark.requirement("PREF-3", "USE-11")
def test_the_operator_chooses_by_which_draft_the_field_is_read(
    readers: tuple[str, ...], verdict: Verdict
) -> None:
    agent = Agent("examplebot", content_usage=readers)
    page = Site.from_files("https://example.com", {}).page(
        agent,
        "https://example.com/",
        headers=[(b"Content-Usage", b"train-ai=n, train-ai=y, ai=n, ai=y")],
    )
    assert page.uses["train-ai"].verdict is verdict


@pytest.mark.requirement("PREF-2", "PREF-4")
def test_a_longer_path_takes_no_refusal_back_that_stands_in_no_group() -> None:
    found = rules(
        b"Content-Usage: /a ai=n\nContent-Usage: /a/b ai=y, search=n\nUser-agent: *\nAllow: /\n"
    )
    assert of(found.statements("/a/b")) == {"ai": "n", "search": "n"}
