"""Short usage preference strings, and the lines and fields that carry them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.answers.decision import Reason, Source, Verdict
from comity.policies.formats import ROBOTS_LINES
from comity.policies.formats.aipref import short_strings as usage
from comity.policies.formats.aipref.short_strings import UsageLines, common, merge
from comity.policies.formats.robots import grammar as robots
from comity.policies.formats.robots.extension_lines import extension_lines
from comity.policies.syntax.lines import MAX_LINE, Findings
from comity.policies.vocabulary.preferences import Preferences
from comity.policies.vocabulary.statement import Location, Statement
from comity.policies.vocabulary.table import Vocabulary
from tests.selection import one_in

ALLOW, DENY = Verdict.ALLOW, Verdict.DENY
SHIPPED = Vocabulary.shipped()
LABELS = ("tdm", "ai", "genai", "search")


def verdicts(said: dict[str, Verdict]) -> dict[str, str]:
    return {label: "y" if verdict is ALLOW else "n" for label, verdict in said.items()}


def of(statements: tuple[Statement, ...]) -> dict[str, str]:
    for one in statements:
        assert one.rule == ("usage.allow" if one.verdict is ALLOW else "usage.disallow")
    return {
        one.term.removeprefix("usage:"): "y" if one.verdict is ALLOW else "n" for one in statements
    }


def decide(expression: str, use: str, vocabulary: Vocabulary = SHIPPED) -> str:
    """Return the result of the cascade of section-5.2, or "" if nothing is stated."""
    said = usage.read(expression).items()
    stated = [
        Statement(f"usage:{label}", verdict, usage.RULES[verdict], Location())
        for label, verdict in said
    ]
    decision = Preferences(vocabulary, "usage", stated, because).decide(use)
    return {ALLOW: "ALLOWED", DENY: "DENIED"}[decision.verdict] if decision is not None else ""


def because(statement: Statement) -> Reason:
    return Reason(rule=statement.rule, source=Source(url=""))


def lines(body: bytes, token: str = "examplebot") -> UsageLines:
    parsed = robots.parse(body)
    return UsageLines(
        extension_lines(parsed, ROBOTS_LINES), parsed, token, url="https://example.com/robots.txt"
    )


def rules(found: UsageLines) -> list[tuple[str, int]]:
    return [(one.rule, one.line) for one in found.findings]


EXPRESSIONS: list[
    tuple[str, dict[str, str], int]
] = [  # expression, values, members that are ignored
    # The examples of the draft: introduction, section-2, section-3.4, section-3.5.
    ("ai=n,search=y", {"ai": "n", "search": "y"}, 0),
    ("tdm=n", {"tdm": "n"}, 0),
    ("tdm=y,ai=n", {"tdm": "y", "ai": "n"}, 0),
    ("tdm=n,search=y", {"tdm": "n", "search": "y"}, 0),
    ("ai=y,ai=n,ai=y,unknown=y", {"ai": "n", "unknown": "y"}, 0),
    ("garbage!!!,genai=y,ai=n", {"genai": "y", "ai": "n"}, 1),
    # section-3.1, section-5.1
    ("", {}, 0),
    (" \t", {}, 0),
    (",,", {}, 0),
    ("tdm=n,", {"tdm": "n"}, 0),
    (" tdm\t= n , ai =\ty ", {"tdm": "n", "ai": "y"}, 0),
    ("tdm", {}, 1),
    ("tdm=", {}, 1),
    ("=n", {}, 1),
    ("=", {}, 1),
    ("tdm==n", {}, 1),
    ("tdm=n=y", {}, 1),
    ("tdm=N,ai=Y", {}, 2),
    ("TDM=n", {"TDM": "n"}, 0),  # another label: they are case-sensitive
    ("tdm=no,ai=yes,search=1", {}, 3),
    ("tdm='n'", {}, 1),
    ('tdm="n"', {}, 1),
    ("tdm=n;x=1", {}, 1),
    ("tdm=\u00a0n", {}, 1),  # a no-break space is neither space nor tab
    ("tdm=ｎ", {}, 1),
    ("tdm=n ai=y", {}, 1),
    ("tdm=n;ai=y", {}, 1),
    ("t dm=n", {"t dm": "n"}, 0),
    ("\u202etdm=n", {"\u202etdm": "n"}, 0),
    # section-3.4
    ("tdm=y,tdm=y", {"tdm": "y"}, 0),
    ("tdm=n,tdm=y", {"tdm": "n"}, 0),
    ("tdm=maybe,tdm=y", {"tdm": "y"}, 1),
    # A path, for which these strings have no place: the pages of a permission are not known.
    ("/a tdm=y, search=y, ai=n", {"ai": "n"}, 0),
    ("/a, tdm=y", {}, 1),
    ("tdm=y, *.pdf", {}, 1),
    ("path=/a, tdm=y", {}, 1),
    ("https://example.com/a, tdm=y, ai=n", {"ai": "n"}, 1),
    ("/a=n, tdm=y", {"/a": "n"}, 0),
]


@pytest.mark.requirement("USE-1", "USE-2")
@pytest.mark.parametrize(("expression", "want", "ignored"), one_in(3, EXPRESSIONS))
def test_expressions(expression: str, want: dict[str, str], ignored: int) -> None:
    findings = Findings("")
    assert verdicts(usage.read(expression, findings)) == want
    assert [one.rule for one in findings] == ["usage.ignored"] * ignored


DETERMINATIONS = [  # expression, then tdm, ai, genai, search
    ("tdm=n", "DENIED", "DENIED", "DENIED", "DENIED"),
    ("tdm=y", "ALLOWED", "ALLOWED", "ALLOWED", "ALLOWED"),
    ("tdm=y,ai=n", "ALLOWED", "DENIED", "DENIED", "ALLOWED"),
    ("tdm=n,search=y", "DENIED", "DENIED", "DENIED", "ALLOWED"),
    ("garbage!!!,genai=y,ai=n", "DENIED", "DENIED", "ALLOWED", ""),
    ("ai=y,ai=n,ai=y,unknown=y", "DENIED", "DENIED", "DENIED", ""),
    ("ai=y", "", "ALLOWED", "ALLOWED", ""),
    ("unknown=n", "", "", "", ""),
    ("", "", "", "", ""),
]


@pytest.mark.requirement("USE-3", "USE-4", "USE-8")
@pytest.mark.parametrize(
    ("expression", "want"), one_in(2, [(row[0], row[1:]) for row in DETERMINATIONS])
)
def test_determinations(expression: str, want: tuple[str, ...]) -> None:
    assert tuple(decide(expression, label) for label in LABELS) == want


@pytest.mark.requirement("USE-3")
def test_the_initial_registry() -> None:
    """Table 2 of the draft."""
    assert SHIPPED.words["usage"].narrows == {
        "tdm": (),
        "ai": ("tdm",),
        "genai": ("ai",),
        "search": ("tdm",),
    }


@pytest.mark.requirement("USE-3", "USE-5")
@pytest.mark.parametrize(
    ("example", "tdm", "updated", "old"),
    [
        ("n", "n", "DENIED", "DENIED"),
        ("n", "y", "DENIED", "ALLOWED"),
        ("y", "n", "ALLOWED", "DENIED"),
        ("y", "y", "ALLOWED", "ALLOWED"),
    ],
)
def test_backward_compatibility_of_a_new_label(
    example: str, tdm: str, updated: str, old: str
) -> None:
    """Table 1 of the draft. A reader that does not know the label takes the use for mining."""
    registered = Vocabulary.from_toml('[vocabulary.usage.terms]\nexample = { narrows = ["tdm"] }')
    assert decide(f"example={example},tdm={tdm}", "example", registered) == updated
    assert decide(f"example={example},tdm={tdm}", "tdm") == old


members = st.sampled_from(
    [f"{label}={value}" for label, value in itertools.product(LABELS, "yn")]
    + ["x=y", "x=n", " ai = n", "ai", "ai=no", "!", ""]
)


@pytest.mark.requirement("USE-2", "USE-7")
@given(st.data(), st.lists(members, max_size=10))
def test_neither_order_nor_place_matters(data: st.DataObject, stated: list[str]) -> None:
    """section-5.4: one string, or several in any order, equal their concatenation."""
    want = usage.read(",".join(stated))
    shuffled = data.draw(st.permutations(stated))
    assert usage.read(",".join(shuffled)) == want
    cut = data.draw(st.integers(0, len(stated)))
    parts = [",".join(shuffled[:cut]), ",".join(shuffled[cut:])]
    assert {
        label: verdict
        for label, (verdict, _) in merge((usage.read(part), part) for part in parts).items()
    } == want
    assert of(usage.string_field(part.encode() for part in parts)[0]) == verdicts(want)
    body = "\n".join(("User-agent: *", *(f"Usage: {part}" for part in parts), "Allow: /"))
    assert of(lines(body.encode()).statements("/")) == verdicts(want)


@pytest.mark.requirement("USE-1", "USE-2")
@given(
    st.data(),
    st.lists(members, max_size=6),
    st.text().filter(
        lambda text: not {*",/*"} & {*text} and text.rpartition("=")[2].strip(" \t") not in "yn"
    ),
)
def test_what_is_no_preference_changes_nothing(
    data: st.DataObject, stated: list[str], junk: str
) -> None:
    at = data.draw(st.integers(0, len(stated)))
    assert usage.read(",".join([*stated[:at], junk, *stated[at:]])) == usage.read(",".join(stated))


@pytest.mark.requirement("USE-3")
@given(
    st.lists(members, max_size=6),
    st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1),
    st.sampled_from("yn"),
)
def test_a_label_that_nobody_knows_decides_nothing(
    stated: list[str], label: str, value: str
) -> None:
    if label not in LABELS:
        expression = ",".join(stated)
        more = f"{expression},{label}={value}"
        assert [decide(more, use) for use in LABELS] == [decide(expression, use) for use in LABELS]


@pytest.mark.requirement("USE-1")
@given(st.lists(members | st.text(), max_size=6))
def test_a_refusal_more_never_permits(stated: list[str]) -> None:
    expression = ",".join(stated)
    for label in LABELS:
        before, after = usage.read(expression), usage.read(f"{expression},{label}=n")
        assert after[label] is DENY
        assert {name for name, verdict in after.items() if verdict is ALLOW} <= {
            name for name, verdict in before.items() if verdict is ALLOW
        }


@pytest.mark.requirement("SEC-1")
@given(st.text(), st.lists(st.binary()), st.binary())
def test_nothing_raises(text: str, values: list[bytes], body: bytes) -> None:
    assert set(usage.read(text).values()) <= {ALLOW, DENY}
    assert set(usage.field(values).values()) <= {ALLOW, DENY}
    usage.string_field(values)
    found = lines(b"User-agent: *\nUsage: " + body)
    found.statements(text)
    found.everywhere()


@pytest.mark.requirement("USE-6")
def test_length() -> None:
    """All of a line that ends within the limit counts."""
    filler = b"x=y," * 2000
    found = lines(b"User-agent: *\nUsage: tdm=y," + filler + b"tdm=n\nAllow: /")
    assert of(found.statements("/")) == {"tdm": "n", "x": "y"}
    assert rules(found) == [("usage.length", 2)]
    assert rules(lines(b"User-agent: *\nUsage: " + b"x=y," * 249 + b"ai=n")) == []


@pytest.mark.requirement("USE-6", "SEC-1")
def test_a_line_that_is_too_long_permits_nothing() -> None:
    """The rest is unknown, and its last member may be cut."""
    line = b"search=y,ai=n,".ljust(MAX_LINE - 5, b" ") + b"tdm=no"
    assert of(lines(b"User-agent: *\nUsage: " + line).statements("/")) == {"ai": "n"}
    assert of(lines(b"User-agent: *\nUsage: " + line[:-1]).statements("/")) == {
        "search": "y",
        "ai": "n",
        "tdm": "n",
    }


@pytest.mark.requirement("SEC-1")
def test_too_many_labels_permit_nothing() -> None:
    many = [f"x{number}=y" for number in range(usage.MAX_LABELS)]
    assert len(usage.read(",".join(many))) == usage.MAX_LABELS
    findings = Findings("")
    assert verdicts(usage.read(",".join([*many, "ai=n"]), findings)) == {"ai": "n"}
    assert [one.rule for one in findings] == ["usage.length"]
    body = "\n".join(["User-agent: *", *(f"Usage: {one}" for one in many), "Usage: ai=n"])
    assert of(lines(body.encode()).statements("/")) == {"ai": "n"}
    refused = usage.read(
        ",".join(f"{label}=n" for label in [*(f"aaa{number}" for number in range(200)), "ai"])
    )
    assert len(refused) == usage.MAX_LABELS
    assert "ai" in refused


FIELDS: list[tuple[list[bytes], dict[str, str]]] = [
    ([], {}),
    ([b""], {}),
    ([b"tdm=y,ai=n"], {"tdm": "y", "ai": "n"}),  # section-2
    ([b"  tdm=y ,\tai=n "], {"tdm": "y", "ai": "n"}),
    ([b"tdm=y", b"ai=n"], {"tdm": "y", "ai": "n"}),
    ([b"tdm=y", b"", b"ai=n"], {"tdm": "y", "ai": "n"}),
    # section-6.2: Booleans, parameters and other types are ignored.
    ([b"tdm, ai=n"], {"ai": "n"}),
    ([b"tdm=?0, ai=?1, search=y"], {"search": "y"}),
    ([b"tdm=n;x=1, ai=n;x, search=y"], {"search": "y"}),
    ([b'tdm="n", ai=:bg==:, search=(n), genai=0, x=@1, y=%"n"'], {}),
    ([b"tdm=N, ai=no, search=y"], {"search": "y"}),
    # Any n wins, in any order, in one line or in several.
    ([b"ai=n, ai=y"], {"ai": "n"}),
    ([b"ai=n", b"ai=y"], {"ai": "n"}),
    ([b"ai=y", b"ai=n"], {"ai": "n"}),
    ([b"ai=n, ai"], {"ai": "n"}),
    ([b'ai=n, ai="y"'], {"ai": "n"}),
    ([b"ai=y, ai=y;x=1"], {"ai": "y"}),
    # Commas in strings do not separate members.
    ([b'x="a, ai=n, \\", tdm=n", search=y'], {"search": "y"}),
    ([b'x=%"a, ai=n", search=y, search=y'], {"search": "y"}),
    ([b'x=%"\\", ai=n'], {"ai": "n"}),
    ([b'x=("a, ai=n" b);y="c, tdm=n", search=n'], {"search": "n"}),
    # A value that is no dictionary can still refuse.
    ([b"ai=n,"], {"ai": "n"}),
    ([b"ai = n, search = y"], {"ai": "n"}),
    ([b"ai=n, garbage!!!, search=y"], {"ai": "n"}),
    ([b"ai=n, Search=y"], {"ai": "n"}),
    ([b"ai=n", b"garbage!!!"], {"ai": "n"}),
    ([b"AI=n"], {"AI": "n"}),
    ([b"\xff, tdm=n"], {"tdm": "n"}),
    ([b"ai=n, " + b"x=y, " * 2000 + b"tdm=n"], {"ai": "n"}),  # too long
]


@pytest.mark.requirement("USE-11", "USE-7")
@pytest.mark.parametrize(("values", "want"), one_in(3, FIELDS))
def test_content_usage_fields(values: list[bytes], want: dict[str, str]) -> None:
    assert verdicts(usage.field(values)) == want


@pytest.mark.requirement("USE-11", "USE-2")
@given(
    st.data(),
    st.lists(
        st.sampled_from([b"ai=n", b"ai=y", b"tdm=y", b"ai", b"ai=1", b'x="y, ai=n"', b"tdm=n;x"]),
        min_size=1,
        max_size=6,
    ),
)
def test_order_does_not_matter_in_fields(data: st.DataObject, stated: list[bytes]) -> None:
    want = usage.field(stated)
    assert usage.field([b", ".join(data.draw(st.permutations(stated)))]) == want
    assert want.get("ai") is (DENY if b"ai=n" in stated else ALLOW if b"ai=y" in stated else None)


@pytest.mark.requirement("USE-12", "WHY-1")
def test_usage_pref_fields() -> None:
    statements, findings = usage.string_field(
        [b"tdm=y, ai=n", b"ai = y, garbage!!!"], url="https://example.com/gone"
    )
    assert of(statements) == {"tdm": "y", "ai": "n"}
    assert statements[1] == Statement(
        "usage:ai", DENY, "usage.disallow", Location("header Usage-Pref", 0, "tdm=y, ai=n")
    )
    assert [(one.rule, one.url) for one in findings] == [
        ("usage.ignored", "https://example.com/gone")
    ]
    statements, findings = usage.string_field([b"tdm=y, ai=n, " + b"x=y, " * 2000])
    assert of(statements) == {"ai": "n"}
    assert [one.rule for one in findings] == ["usage.length"]


@pytest.mark.requirement("USE-15", "SEC-4")
def test_confusing_characters_are_shown_as_replaced() -> None:
    found = lines("User-agent: *\nUsage: tdm=n, \u202eia=y, \x08x".encode())
    assert (
        next(one.location.text for one in found.statements("/"))
        == "Usage: tdm=n, \ufffdia=y, \ufffdx"
    )
    assert [one.message for one in found.findings] == [
        "`\ufffdx` is not a preference. Write label=y or label=n."
    ]
    (statement,) = usage.string_field(["tdm=n, \u2066".encode()])[0]
    assert statement.location.text == "tdm=n, \ufffd"


ANY, OWN, OTHER = "User-agent: *\n", "User-agent: ExampleBot\n", "User-agent: otherbot\n"

GROUPS: list[tuple[str, str, dict[str, str]]] = [
    ("for all", ANY + "Usage: tdm=n\nAllow: /\n", {"tdm": "n"}),
    ("own", OWN + "Usage: tdm=n\nAllow: /\n" + ANY + "Usage: ai=y\nAllow: /\n", {"tdm": "n"}),
    ("own without", OWN + "Allow: /\n" + ANY + "Usage: ai=n\nAllow: /\n", {}),
    ("other", OTHER + "Usage: tdm=n\nAllow: /\n", {}),
    ("no rules", ANY + "Usage: tdm=n\n", {"tdm": "n"}),
    ("shared", OTHER + OWN + "Usage: tdm=n\nAllow: /\n", {"tdm": "n"}),
    ("between agents", OTHER + "Usage: tdm=n\n" + OWN + "Allow: /\n", {"tdm": "n"}),
    (
        "merged",
        ANY + "Usage: tdm=y\nAllow: /\n" + ANY + "Usage: tdm=n, ai=y\nAllow: /\n",
        {"tdm": "n", "ai": "y"},
    ),
    (
        "several lines",
        ANY + "Usage: ai=y\nUSAGE-PREF: ai=n\nusage: search=y # yes\nAllow: /\n",
        {"ai": "n", "search": "y"},
    ),
    ("case of the value", ANY + "Usage: tdm=N, AI=n\n", {"AI": "n"}),
    ("comment", ANY + "Usage: tdm=n#, ai=n\n", {"tdm": "n"}),
    ("below the rules", ANY + "Allow: /\nUsage: tdm=n\n", {"tdm": "n"}),
    # Outside of any group a line refuses, and permits nothing.
    ("before all", "Usage: tdm=n, ai=y\n" + OWN + "Allow: /\n", {"tdm": "n"}),
    (
        "before all, beside own",
        "Usage: tdm=n\n" + ANY + "Usage: tdm=y, ai=y\nAllow: /\n",
        {"tdm": "n", "ai": "y"},
    ),
    ("no groups", "Usage: tdm=n, ai=y\n", {"tdm": "n"}),
    (
        "in a record of ACAP",
        OTHER + "Allow: /\nACAP-crawler: x\nUsage: tdm=n, ai=y\n",
        {"tdm": "n"},
    ),
]


@pytest.mark.requirement("USE-9", "USE-7")
@pytest.mark.parametrize(
    ("body", "want"), one_in(3, [row[1:] for row in GROUPS]), ids=[row[0] for row in GROUPS]
)
def test_groups(body: str, want: dict[str, str]) -> None:
    for token in ("examplebot", "EXAMPLEBOT"):
        found = lines(body.encode(), token)
        assert of(found.statements("/")) == of(found.statements("/a?b")) == want, token
        assert of(found.everywhere()) == want, token


COVERS: list[tuple[str, str, list[str], list[str]]] = [  # rules of the group; covered, not covered
    ("section-2", "Allow: /article/", ["/article/", "/article/1"], ["/", "/about", "/articles"]),
    ("two", "Allow: /a\nAllow: /b*c$", ["/a", "/bc", "/b/c"], ["/c", "/bcd"]),
    ("none", "", ["/", "/a"], []),
    ("all", "Allow: /", ["/", "/a"], []),
    ("all and some", "Allow: /a\nAllow: *", ["/", "/a"], []),
    ("empty disallow", "Allow: /a\nDisallow:", ["/a"], ["/b"]),
    ("empty rules", "Allow:\nDisallow:", ["/", "/a"], []),
    ("an exception", "Disallow: /private\nAllow: /private/open", ["/", "/a", "/private/open"], []),
    ("only refused", "Disallow: /private", ["/", "/a"], []),
    ("misspelt refusal", "Allow: /a\nDissallow: /b", ["/a", "/c"], []),
    ("an Allow that matches nothing", "Allow: a", ["/", "/a"], []),
    ("an Allow that is too long", "Allow: /a\nAllow: /" + "b" * MAX_LINE, ["/a", "/c"], []),
    ("of another group", "Allow: /a\n" + OTHER + "Disallow: /a", ["/a"], ["/b"]),
    ("refusal in a merged group", "Allow: /a\n" + ANY + "Disallow: /b", ["/a", "/c"], []),
    ("in a record of ACAP", "Allow: /a\nACAP-crawler: x\nDisallow: /b", ["/a"], ["/c"]),
]


@pytest.mark.requirement("USE-10")
@pytest.mark.parametrize(
    ("group", "covered", "left"),
    one_in(2, [row[1:] for row in COVERS]),
    ids=[row[0] for row in COVERS],
)
def test_what_a_line_covers(group: str, covered: list[str], left: list[str]) -> None:
    found = lines(f"{ANY}Usage: tdm=n, search=y\n{group}\n".encode())
    assert [of(found.statements(target)) for target in covered] == [
        {"tdm": "n", "search": "y"}
    ] * len(covered)
    assert [of(found.statements(target)) for target in left] == [{}] * len(left)
    assert of(found.everywhere()) == ({"search": "y"} if left else {"tdm": "n", "search": "y"})


@pytest.mark.requirement("USE-10")
def test_a_line_of_a_group_without_rules_covers_all_though_one_merged_with_it_has_some() -> None:
    found = lines(
        f"{ANY}Usage: tdm=n\nCrawl-delay: 1\nAllow:\n{ANY}Usage: ai=y\nAllow: /a\n".encode()
    )
    assert of(found.statements("/b")) == {"tdm": "n"}
    assert of(found.statements("/a")) == {"tdm": "n", "ai": "y"}
    assert of(found.everywhere()) == {"tdm": "n", "ai": "y"}


@pytest.mark.requirement("USE-9", "WHY-1")
def test_findings_and_places() -> None:
    found = lines(
        b"usage: a=n\nUser-agent: *\nUsage-Pref: ai=n\nAllow: /\nusage: ai=n, ?\n\n"
        b"User-agent: x\nAllow: /\nusage: !\n"
    )
    assert rules(found) == [
        ("usage.outside", 1),
        ("usage.ignored", 5),
        ("usage.ignored", 9),
        ("usage.late", 5),
    ]
    assert [one.location for one in found.statements("/")] == [
        Location("body", 1, "Usage: a=n", "https://example.com/robots.txt"),
        Location("body", 3, "Usage-Pref: ai=n", "https://example.com/robots.txt"),
    ]
    assert lines(b"User-agent: *\nDisallow: /").statements("/") == lines(b"").everywhere() == ()


GROUP_LINES = [
    "Allow: /a",
    "Allow: /",
    "Disallow: /a/b",
    "Usage: tdm=n",
    "Usage: ai=y",
    "Usage: tdm=y, genai=n",
    "Usage: search=n",
]


@pytest.mark.requirement("USE-10")
@given(
    st.lists(st.sampled_from([ANY.strip(), OWN.strip(), OTHER.strip(), *GROUP_LINES]), max_size=10)
)
def test_what_is_refused_everywhere_is_refused_of_each_resource(body: list[str]) -> None:
    found = lines("\n".join(body).encode())
    everywhere = Preferences(SHIPPED, "usage", found.everywhere(), because)
    for use in (*LABELS, "train", "index"):
        decision = everywhere.decide(use)
        if decision is not None and decision.verdict is DENY:
            for target in ("/", "/a", "/a/b", "/c"):
                of_one = Preferences(SHIPPED, "usage", found.statements(target), because).decide(
                    use
                )
                assert of_one is not None
                assert of_one.verdict is DENY


def test_what_is_common_to_all_that_can_be_said() -> None:
    def statements_with(**values: str) -> tuple[Statement, ...]:
        return tuple(
            Statement(f"usage:{label}", verdict, usage.RULES[verdict], Location())
            for label, value in values.items()
            for verdict in [usage.VERDICTS[value]]
        )

    assert of(common([statements_with(tdm="n", ai="n"), statements_with(tdm="n", search="y")])) == {
        "tdm": "n",
        "search": "y",
    }
    assert common([statements_with(tdm="n"), ()]) == common([]) == ()
