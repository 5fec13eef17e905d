"""The table that relates the words of vocabularies to uses, as shipped and as operators change it.

Statements are written as `usage tdm=n search=y; robots-meta noai=n`: a vocabulary and its words,
`y` for a permission, `n` for a refusal, `l` for a limit."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.policies import Agent, Decision, PolicyError, Site, UseDecision, Verdict
from comity.policies.answers.combining import most_restrictive
from comity.policies.answers.decision import Reason, Source
from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.page import Uses
from comity.policies.vocabulary.preferences import Preferences
from comity.policies.vocabulary.statement import Location, Statement
from comity.policies.vocabulary.table import Vocabulary
from tests.selection import one_in

SHIPPED = Vocabulary.shipped()
URL = "https://example.com/"
VERDICTS = {"y": Verdict.ALLOW, "n": Verdict.DENY, "l": None}
SIGNS = {Verdict.ALLOW: "+", Verdict.DENY: "-", None: "."}
UNKNOWN_USE = "print"
ALL_USES = (*SHIPPED.uses, UNKNOWN_USE)


def because(statement: Statement) -> Reason:
    return Reason(rule=statement.rule, source=Source(url=URL, text=statement.location.text))


def statements(text: str) -> list[Statement]:
    found = []
    for part in filter(None, map(str.strip, text.split(";"))):
        name, *members = part.split()
        for member in members:
            word, _, value = member.partition("=")
            qualifiers = Qualifiers(max_chars=50) if value == "l" else Qualifiers()
            found.append(
                Statement(
                    f"{name}:{word}",
                    VERDICTS[value],
                    "usage.allow",
                    Location(text=part),
                    qualifiers,
                )
            )
    return found


def sources(said: Iterable[Statement], vocabulary: Vocabulary = SHIPPED) -> list[Preferences]:
    """Return one source for each vocabulary, in the order of its first statement."""
    by_name: dict[str, list[Statement]] = {}
    for statement in said:
        by_name.setdefault(statement.term.partition(":")[0], []).append(statement)
    return [Preferences(vocabulary, name, about, because) for name, about in by_name.items()]


def decide(
    said: Iterable[Statement], use: str, vocabulary: Vocabulary = SHIPPED
) -> UseDecision | None:
    decisions = [
        one for source in sources(said, vocabulary) if (one := source.decide(use)) is not None
    ]
    return most_restrictive(decisions) if decisions else None


def verdict(text: str, use: str, vocabulary: Vocabulary = SHIPPED) -> Verdict | None:
    decision = decide(statements(text), use, vocabulary)
    return None if decision is None else decision.verdict


# The decisions of a careful reader: `+` permitted, `-` refused, `.` not stated, so that the
# operator's default decides.
COLUMNS = (
    *("tdm", "ai", "genai"),
    *("train", "train-ai", "train-genai"),
    *("ai-use", "inference", "ai-input", "summarize", "return"),
    *("search", "index", "ai-index"),
    *("preserve", "present", "present-snippet", "follow", UNKNOWN_USE),
)
# A document states something about each of these words.
RSL = "rsl all={} ai-all={} ai-train={} ai-input={} ai-index={} search={}"
REVIEWED = """
usage tdm=n                                                        | --- --- ----- --- ....-
usage tdm=y                                                        | +++ +++ ++++. +++ .....
usage ai=n                                                         | --- --- ----- ..- ....-
usage ai=y                                                         | .++ +++ ++++. ..+ .....
usage tdm=n search=y                                               | --- --- ----- ++- ....-
usage tdm=y ai=n                                                   | +-- --- ----- ++- ....-
usage tdm=y search=n                                               | +++ +++ ++++. --- .....
usage ai=y genai=n                                                 | -+- --- ----- ..- .....
usage ai=n genai=y                                                 | --+ --+ --++- ..- ....-
usage genai=n                                                      | --- --- ----- ..- .....
usage genai=y                                                      | ..+ ..+ ..++. ... .....
usage search=n                                                     | -.. ... ..... --- .....
usage search=y                                                     | ... ... ..... ++. .....
aipref train-ai=n                                                  | --- --- ..... ... .....
aipref train-ai=y                                                  | ... +++ ..... ... .....
aipref train-ai=n search=y                                         | --- --- ..... ++. .....
aipref ai-use=n                                                    | --- ... ----- ..- .....
aipref ai-use=y                                                    | ... ... +.++. ... .....
aipref train-ai=y ai-use=n                                         | --- +++ ----- ..- .....
aipref train-ai=n ai-use=y                                         | --- --- +.++. ... .....
aipref bots=n                                                      | --- --- ----- --- ....-
aipref bots=y                                                      | +++ +++ ++++. +++ .....
aipref bots=y train-ai=n                                           | --- --- ++++. +++ .....
aipref bots=n search=y                                             | --- --- ----- ++- ....-
aipref train-ai=y train-genai=n                                    | --- -+- ..... ... .....
aipref ai-output=n                                                 | --- ... ----- --- .....
aipref ai-output=n search=y                                        | --- ... ----- ++- .....
aipref ai-output=y                                                 | ... ... ..++. ++. .....
aipref all=n                                                       | --- --- ----- --- ....-
aipref all=y train-genai=n                                         | --- --- ++++. +++ .....
aipref tdm=n                                                       | --- --- ----- --- ....-
aipref tdm=y ai=n                                                  | +-- --- ++++. +++ .....
aipref tdm=y genai=n                                               | +-- --- ++++. +++ .....
aipref ai=y                                                        | ... +++ ..... ... .....
aipref inference=n                                                 | --- ... ----- ..- .....
aipref inference=y                                                 | ... ... ++++. ... .....
content-signal search=y ai-train=n                                 | --- --- ..... ++. .....
content-signal search=n                                            | -.. ... ..... --- .....
content-signal ai-input=n                                          | --- ... ----- ..- .....
content-signal ai-input=y                                          | ... ... ..+.. ... .....
content-signal ai-train=y                                          | ... +++ ..... ... .....
content-signal use-immediate=y use-reference=y use-full=n search=y | --- --- ...-- ++. .-..-
content-signal use-immediate=y use-reference=n use-full=n search=y | --- --- ...-- --- ---.-
content-signal use-immediate=y use-reference=y use-full=y          | ... ... ..... ... .....
robots-meta noai=n                                                 | --- --- ----- ..- ....-
robots-meta noml=n                                                 | --- --- ----- ..- ....-
robots-meta noimageai=n                                            | ... ... ..... ... .....
robots-meta noindex=n                                              | ... ... ..... --- .--..
robots-meta unavailable_after=n                                    | ... ... ..... --- .--..
robots-meta nofollow=n                                             | ... ... ..... ... ...-.
robots-meta noarchive=n                                            | ... ... ..... ... --...
robots-meta nosnippet=n                                            | .-- ... ----- ... .--..
robots-meta max-snippet=l notranslate=l                            | ... ... ..... ... .....
tdmrep reservation=n                                               | --- --- ----- ..- ....-
tdmrep reservation=y                                               | +.. ... ..... ... .....
tdmrep reservation=n; usage tdm=y                                  | --- --- ----- ++- ....-
tdmrep reservation=y; usage tdm=n                                  | --- --- ----- --- ....-
RSL n n n n n y                                                    | --- --- ----- ++- ....-
RSL n n n y n n                                                    | --- --- ++++- --- ....-
RSL y y n y y y                                                    | --- --- ++++. +++ .....
RSL y n n n n y                                                    | --- --- ----- ++- ....-
RSL y y y y y y                                                    | +++ +++ ++++. +++ .....
RSL n n n n n n                                                    | --- --- ----- --- ....-
content-signal search=y; robots-meta noindex=n                     | ... ... ..... --- .--..
content-signal ai-train=y; aipref train-ai=n                       | --- --- ..... ... .....
content-signal ai-train=y; robots-meta noai=n                      | --- --- ----- ..- ....-
usage ai=y; content-signal ai-train=n                              | --- --- ++++. ..+ .....
acap index=n                                                       | ... ... ..... --- .....
"""


def reviewed_rows() -> list[tuple[str, str]]:
    rows = [line.split("|") for line in REVIEWED.splitlines() if "|" in line]
    return [(said.strip(), "".join(cells.split())) for said, cells in rows]


@pytest.mark.requirement(
    "MEET-3", "MEET-4", "USE-3", "PREF-1", "PREF-4", "SIG-1", "META-2", "META-3", "TDM-2", "RSL-2"
)
@pytest.mark.parametrize(("said", "want"), one_in(3, reviewed_rows()))
def test_reviewed(said: str, want: str) -> None:
    text = RSL.format(*said.split()[1:]) if said.startswith("RSL ") else said
    assert "".join(SIGNS[verdict(text, use)] for use in COLUMNS) == want


# Words that refuse nothing.
LIMITS = {
    "max-snippet",
    "max-image-preview",
    "max-video-preview",
    "notranslate",
    "indexifembedded",
}


@pytest.mark.requirement("MEET-4")
def test_every_word_says_something_of_some_use() -> None:
    said = [
        f"{one.name} {word}"
        for one in SHIPPED.words.values()
        for word in one.narrows
        if word not in LIMITS
    ]
    idle = {term for term in said if all(verdict(f"{term}=n", use) is None for use in ALL_USES)}
    # The first is about embedded files only, where it means noai. The second cannot be refused
    # alone.
    # The last two are not uses of the table, but an operator may declare uses with these names.
    unnamed = {"modification annotation", "modification style"}
    assert idle == {"robots-meta noimageai", "content-signal use-immediate", *unnamed}


# Use -> uses that are a part of it, at least in some cases.
PARTS = {
    "tdm": "ai genai train train-ai train-genai ai-use inference ai-input ai-output analyze extract"
    " summarize",
    "ai": "genai train train-ai train-genai ai-use inference ai-input ai-output analyze extract"
    " summarize",
    "genai": "train-genai ai-input ai-use",
    "train": "train-ai train-genai",
    "ai-train": "train-genai",
    "inference": "ai-use ai-input",
    "ai-use": "ai-input",
    "present": "present-currentcopy present-oldcopy present-snippet present-oldsnippet"
    " present-link",
}


@pytest.mark.requirement("MEET-4")
@pytest.mark.parametrize(
    ("whole", "part"),
    one_in(3, [(whole, part) for whole, parts in PARTS.items() for part in parts.split()]),
)
def test_what_refuses_a_part_refuses_the_whole(whole: str, part: str) -> None:
    """ACAP is left out, because it defines itself which of its words refuse others.

    So is nosnippet, because showing snippets is not mining."""
    ignored = LIMITS | ({"nosnippet"} if whole == "tdm" else set())
    terms = [
        f"{one.name} {word}"
        for one in SHIPPED.words.values()
        if one.name != "acap"
        for word in one.narrows.keys() - ignored
    ]
    of_part = {term for term in terms if verdict(f"{term}=n", part) is Verdict.DENY}
    assert of_part == {term for term in of_part if verdict(f"{term}=n", whole) is Verdict.DENY}


LIMITED = [
    (
        "max-snippet",
        "ai-input ai-output present present-snippet present-oldsnippet summarize rephrase return "
        "clip",
    ),
    ("max-image-preview", "present-thumbnail present-oldthumbnail"),
    ("max-video-preview", "present-thumbnail present-oldthumbnail"),
    (
        "unavailable_after",
        "search index ai-index present present-original present-currentcopy present-oldcopy "
        "present-snippet present-oldsnippet"
        " present-thumbnail present-oldthumbnail present-link",
    ),
]


@pytest.mark.requirement("META-2", "MEET-3")
@pytest.mark.parametrize(("word", "uses"), LIMITED)
def test_limits(word: str, uses: str) -> None:
    (source,) = sources(statements(f"robots-meta {word}=l"))
    assert {use for use in ALL_USES if source.limits(use)} == set(uses.split())
    assert not [use for use in ALL_USES if source.decide(use) is not None]


# Short strings


@pytest.mark.requirement("USE-4")
@pytest.mark.parametrize(
    ("said", "default", "want"),
    [
        ("usage ai=n", {}, "- - - ."),
        ("usage ai=n", {"search": Verdict.ALLOW}, "- - - +"),
        ("usage search=y", {"ai": Verdict.ALLOW, "train": Verdict.DENY}, ". + - +"),
        (
            "usage ai=n",
            {"ai": Verdict.ALLOW, "train": Verdict.ALLOW, "tdm": Verdict.ALLOW},
            "- - - .",
        ),
        ("", {"tdm": Verdict.ALLOW, "search": Verdict.DENY}, "+ . . -"),
    ],
)
def test_what_is_unknown_is_filled_by_the_operator(
    said: str, default: dict[str, Verdict], want: str
) -> None:
    """draft-thomson-aipref-sup section-5.2. `.`: refused, because there is no default."""
    agent = Agent("examplebot", defaults=default)
    crawl = Decision(
        verdict=Verdict.ALLOW, reasons=(Reason(rule="robots.allow", source=Source(url=URL)),)
    )
    uses = Uses(agent, URL, crawl, sources(statements(said)))
    for use, sign in zip(("tdm", "ai", "train", "search"), want.split(), strict=True):
        decision = uses[use]
        is_told = decide(statements(said), use) is not None
        assert decision.stated is is_told
        assert decision.verdict is (Verdict.ALLOW if sign == "+" else Verdict.DENY)
        assert not (sign == "." and (is_told or use in default))


@pytest.mark.requirement("USE-5")
@pytest.mark.parametrize(
    ("example", "tdm", "updated", "old"),
    [("n", "n", "-", "-"), ("n", "y", "-", "+"), ("y", "n", "+", "-"), ("y", "y", "+", "+")],
)
def test_a_registered_label(example: str, tdm: str, updated: str, old: str) -> None:
    """Table 1 of draft-thomson-aipref-sup. Without the label, the use is still a kind of mining."""
    said = f"usage tdm={tdm} example={example}"
    registered = Vocabulary.from_toml('[vocabulary.usage.terms]\nexample = { narrows = ["tdm"] }')
    unregistered = Vocabulary.from_toml(
        '[[relation]]\nuses = ["example"]\nterms = ["usage:tdm"]\nkind = "within"'
    )
    assert SIGNS[verdict(said, "example", registered)] == updated
    assert SIGNS[verdict(said, "example", unregistered)] == old


@pytest.mark.requirement("USE-3", "USE-5")
def test_a_label_of_the_name_of_a_use_says_something_of_it() -> None:
    vocabulary = Vocabulary.from_toml(
        '[vocabulary.usage.terms]\nsummarize = { narrows = ["genai"] }\n'
    )
    assert verdict("usage summarize=n", "summarize") is None
    assert verdict("usage summarize=n", "summarize", vocabulary) is Verdict.DENY
    assert verdict("usage summarize=n genai=y", "summarize", vocabulary) is Verdict.DENY
    assert verdict("usage summarize=y genai=n", "summarize", vocabulary) is Verdict.ALLOW
    assert verdict("usage genai=n", "summarize", vocabulary) is Verdict.DENY


@pytest.mark.requirement("USE-8")
def test_one_reading_answers_for_every_use() -> None:
    said = statements("usage ai=n genai=y search=y")
    (source,) = sources(said)
    answers = {use: source.decide(use) for use in ALL_USES}
    assert answers == {use: decide(said, use) for use in reversed(ALL_USES)}
    assert answers == {use: source.decide(use) for use in ALL_USES}


# AIPREF by revision


# draft-ietf-aipref-vocab: revision -> label -> the label that it narrows.
REVISIONS = {
    "01": {"tdm": "", "ai": "tdm", "genai": "ai", "search": "tdm", "inference": "tdm"},
    "02": {
        "all": "",
        "train-ai": "all",
        "train-genai": "train-ai",
        "ai-use": "all",
        "search": "all",
    },
    "03": {"bots": "", "train-ai": "bots", "train-genai": "train-ai", "search": "bots"},
    "04": {"bots": "", "train-ai": "bots", "ai-output": "bots", "search": "ai-output"},
    "05": {"train-ai": "", "search": ""},
    "06": {"train-ai": "", "search": ""},
    "07": {"train-ai": "", "search": ""},
    "08": {"train-ai": "", "ai-use": "", "search": ""},
}


# These words of revision 01 mean training only.
TODAY = {"ai": "train", "genai": "train-genai"}


@pytest.mark.requirement("PREF-1")
@pytest.mark.parametrize(
    ("revision", "label"),
    one_in(3, [(revision, label) for revision, labels in REVISIONS.items() for label in labels]),
)
def test_labels_by_revision(revision: str, label: str) -> None:
    """The statement about a label, or else about the nearest more general one, decides the use."""
    use = TODAY.get(label, label)
    nearer: list[str] = []
    while label:
        for value, other in ("yn", "ny"):
            assert verdict(f"aipref {label}={value}", use) is VERDICTS[value]
            for near in nearer:
                assert verdict(f"aipref {label}={other} {near}={value}", use) is VERDICTS[value]
        nearer.append(label)
        label = REVISIONS[revision][label]


@pytest.mark.requirement("PREF-1")
def test_all_labels_of_all_revisions_are_there() -> None:
    assert set(SHIPPED.words["aipref"].narrows) == {
        label for labels in REVISIONS.values() for label in labels
    }


@pytest.mark.requirement("PREF-4", "USE-7")
def test_what_each_statement_of_preference_refuses_is_refused() -> None:
    """Only for AIPREF: short strings about one page are one statement (USE-7)."""
    assert verdict("aipref bots=n search=y", "search") is Verdict.ALLOW
    assert verdict("aipref bots=n; aipref search=y", "search") is Verdict.DENY
    assert verdict("aipref train-ai=n; aipref train-genai=y", "train-genai") is Verdict.DENY
    assert verdict("aipref bots=y; aipref search=y", "search") is Verdict.ALLOW
    assert verdict("usage tdm=n; usage search=y", "search") is Verdict.ALLOW
    separate = Vocabulary.from_toml("[vocabulary.usage]\nseparate = true\n")
    assert verdict("usage tdm=n; usage search=y", "search", separate) is Verdict.DENY


# Tables of operators


@pytest.mark.requirement("MEET-4")
def test_an_own_table_extends() -> None:
    vocabulary = Vocabulary.from_toml(
        """
        [vocabulary.usage]
        revision = "ours"
        [vocabulary.usage.terms]
        audio = { narrows = ["ai"] }
        [vocabulary.house.terms]
        no-robots = {}
        [[relation]]
        uses = ["Listen", "search"]
        terms = ["usage:audio", "house:no-robots"]
        kind = "touches"
        why = "a house rule"
        """
    )
    assert vocabulary.words["usage"].revision == "ours"
    assert vocabulary.words["usage"].title == SHIPPED.words["usage"].title
    assert set(vocabulary.words["usage"].narrows) == {*SHIPPED.words["usage"].narrows, "audio"}
    assert vocabulary.uses == (*SHIPPED.uses, "listen")
    assert verdict("house no-robots=n", "search", vocabulary) is Verdict.DENY
    assert verdict("house no-robots=y", "search", vocabulary) is None
    assert verdict("usage audio=n", "listen", vocabulary) is Verdict.DENY
    assert verdict("usage audio=y", "listen", vocabulary) is None
    assert verdict("usage ai=n", "audio", vocabulary) is Verdict.DENY
    assert all(
        verdict("usage tdm=n search=y", use, vocabulary) is verdict("usage tdm=n search=y", use)
        for use in ALL_USES
    )
    assert [
        verdict(f"house no-robots=n; usage search={value}", "search", vocabulary) for value in "yn"
    ] == [Verdict.DENY] * 2


@pytest.mark.requirement("MEET-4")
def test_an_own_table_replaces() -> None:
    row = 'uses = ["train"]\nterms = ["usage:tdm"]\nkind = "within"'
    vocabulary = Vocabulary.from_toml(
        f"replaces = true\n[vocabulary.usage.terms]\ntdm = {{}}\n[[relation]]\n{row}"
    )
    assert vocabulary.uses == ("train",)
    assert set(vocabulary.words) == {"usage"}
    assert verdict("usage tdm=n", "train", vocabulary) is Verdict.DENY
    assert verdict("usage ai=n; robots-meta noai=n; house no=n", "train", vocabulary) is None
    assert verdict("usage tdm=n", UNKNOWN_USE, vocabulary) is None


@pytest.mark.requirement("MEET-4", "TDM-2")
@pytest.mark.parametrize("kind", ["touches", "within"])
def test_whether_a_reservation_refuses_search_is_for_the_operator(kind: str) -> None:
    vocabulary = Vocabulary.from_toml(
        f'[[relation]]\nuses = ["search"]\nterms = ["tdmrep:reservation"]\nkind = "{kind}"'
    )
    assert verdict("tdmrep reservation=n", "search") is None
    assert verdict("tdmrep reservation=n", "search", vocabulary) is Verdict.DENY
    assert verdict("tdmrep reservation=n; usage search=y", "search", vocabulary) is Verdict.DENY
    assert verdict("tdmrep reservation=n; usage search=y", "index", vocabulary) is Verdict.ALLOW
    assert verdict("tdmrep reservation=y", "search", vocabulary) is (
        Verdict.ALLOW if kind == "within" else None
    )


ROW = 'uses = ["train"]\nterms = ["usage:ai"]\nkind = "within"'
MISTAKES = [
    ("a = \n", r"is not TOML: .*line 1, column 5"),
    ("\n\n[vocabulary.usage\n", r"is not TOML: .*line 3"),
    ("relations = []", "`relations` has no meaning: write replaces, "),
    ('replaces = "no"', "`replaces` is not true or false"),
    ('[vocabulary.usage]\ninherits = "no"', "vocabulary.usage.inherits is not true or false"),
    ("[vocabulary.usage]\nseparate = 1", "vocabulary.usage.separate is not true or false"),
    ("vocabulary = 1", "vocabulary is not a table"),
    ("[vocabulary]\nusage = 1", r"vocabulary\.usage is not a table"),
    ("[vocabulary.usage]\nterms = []", r"vocabulary\.usage\.terms is not a table"),
    ("[vocabulary.usage.terms]\nx = []", r"vocabulary\.usage\.terms\.x is not a table"),
    (
        '[vocabulary.usage.terms]\nx = { narrows = "ai" }',
        r"vocabulary\.usage\.terms\.x\.narrows is not a list of texts",
    ),
    (
        "[vocabulary.usage.terms]\nx = { narrows = [1] }",
        r"vocabulary\.usage\.terms\.x\.narrows is not a list of texts",
    ),
    (
        '[vocabulary.usage.terms]\nx = { narrows = ["y"] }',
        "`usage:x` narrows `y`, which is not a word of `usage`",
    ),
    ('[vocabulary.usage.terms]\nx = { narrows = ["x"] }', "`usage:x` narrows itself"),
    ('[vocabulary.usage.terms]\ntdm = { narrows = ["genai"] }', "`usage:tdm` narrows itself"),
    (
        '[vocabulary.h.terms]\na = { narrows = ["b"] }\nb = { narrows = ["c"] }\n'
        'c = { narrows = ["a"] }',
        "`h:a` narrows itself",
    ),
    ("relation = 1", r"`relation` is not a list of rows: write \[\[relation\]\]"),
    ("[relation]\n" + ROW, r"`relation` is not a list of rows: write \[\[relation\]\]"),
    ("relation = [1]", r"\[\[relation\]\] number 1 is not a table"),
    (
        f"[[relation]]\n{ROW}\n[[relation]]\n" + ROW.replace("within", "near"),
        "number 2: kind `near` is unknown: write within or touches",
    ),
    ('[[relation]]\nuses = ["train"]\nterms = ["usage:ai"]', "number 1: kind `None` is unknown"),
    (
        "[[relation]]\n" + ROW.replace('["train"]', '"train"'),
        "number 1: uses is not a list of texts",
    ),
    (
        "[[relation]]\n" + ROW.replace('["usage:ai"]', "[1]"),
        "number 1: terms is not a list of texts",
    ),
    ("[[relation]]\n" + ROW.replace("terms", "words"), "number 1: terms is not a list of texts"),
    (
        "[[relation]]\n" + ROW.replace("usage:ai", "usage:a1"),
        "`usage:a1` is not a word of a vocabulary: write vocabulary:word",
    ),
    ("[[relation]]\n" + ROW.replace("usage:ai", "ai"), "`ai` is not a word of a vocabulary"),
    (
        "[[relation]]\n" + ROW.replace("usage:ai", "house:ai"),
        "`house:ai` is not a word of a vocabulary",
    ),
    ("replaces = true\n[[relation]]\n" + ROW, "`usage:ai` is not a word of a vocabulary"),
]


@pytest.mark.requirement("MEET-4")
@pytest.mark.parametrize(("text", "says"), one_in(3, MISTAKES))
def test_mistakes(text: str, says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        Vocabulary.from_toml(text)


# Any statements


terms = st.sampled_from(
    [f"{one.name}:{word}" for one in SHIPPED.words.values() for word in one.narrows]
)


def statement(term: str, verdict: Verdict | None) -> Statement:
    return Statement(term, verdict, "usage.allow", Location(text=term))


some = st.lists(st.builds(statement, terms, st.sampled_from(list(VERDICTS.values()))), max_size=8)


def having(said: Iterable[Statement], verdict: Verdict) -> set[str]:
    """Return the uses with this verdict."""
    return {
        use for use in ALL_USES if (one := decide(said, use)) is not None and one.verdict is verdict
    }


@pytest.mark.requirement("MEET-3", "MEET-4", "PREF-4")
@settings(max_examples=2 * settings().max_examples)
@given(some, terms)
def test_a_refusal_more_permits_nothing(said: list[Statement], term: str) -> None:
    more = [*said, statement(term, Verdict.DENY)]
    assert having(more, Verdict.ALLOW) <= having(said, Verdict.ALLOW)
    assert having(more, Verdict.DENY) >= having(said, Verdict.DENY)


@pytest.mark.requirement("USE-3", "MEET-4")
@given(some, st.sampled_from(sorted(SHIPPED.words)), st.text(min_size=1), st.sampled_from("yn"))
def test_an_unknown_word_changes_nothing(
    said: list[Statement], name: str, word: str, value: str
) -> None:
    if word not in SHIPPED.words[name].narrows:
        more = [
            *said,
            statement(f"{name}:{word}", VERDICTS[value]),
            statement(f"house:{word}", VERDICTS[value]),
        ]
        assert [decide(more, use) for use in ALL_USES] == [decide(said, use) for use in ALL_USES]


@pytest.mark.requirement("USE-2", "USE-7", "MEET-3")
@given(st.data(), some)
def test_order_plays_no_part(data: st.DataObject, said: list[Statement]) -> None:
    """Statements of one vocabulary and vocabularies may be in any order."""
    other = data.draw(st.permutations(said))
    for use in ALL_USES:
        first, second = decide(said, use), decide(other, use)
        if first is None or second is None:
            assert first is second
        else:
            assert (first.verdict, set(first.reasons)) == (second.verdict, set(second.reasons))
    limits = [
        {limit for source in sources(each) for use in ALL_USES for limit in source.limits(use)}
        for each in (said, other)
    ]
    assert limits[0] == limits[1]


@pytest.mark.requirement("MEET-3", "MEET-4")
@given(some)
def test_what_one_vocabulary_refuses_no_other_permits(said: list[Statement]) -> None:
    for source in sources(said):
        for use in ALL_USES:
            one, together = source.decide(use), decide(said, use)
            if one is not None:
                assert together is not None
                assert together.verdict is one.verdict or together.verdict is Verdict.DENY
                assert set(one.reasons) <= set(together.reasons)


@pytest.mark.requirement("MEET-4")
@given(some)
def test_a_permission_has_a_word_that_the_use_is_within(said: list[Statement]) -> None:
    for source in sources(said):
        for use in ALL_USES:
            decision = source.decide(use)
            if decision is not None and decision.verdict is Verdict.ALLOW:
                for reason in decision.reasons:
                    name = reason.source.text.partition(":")[0]
                    within = {
                        word
                        for levels in SHIPPED.related(name, use).levels
                        for level in levels
                        for word in level
                    }
                    assert reason.source.text.partition(":")[2] in within


@pytest.mark.parametrize(
    ("expression", "verdict"),
    [
        ("tdm=y, genai=n", Verdict.ALLOW),
        ("ai=y, genai=n", Verdict.ALLOW),
        ("genai=n", Verdict.DENY),
        ("tdm=n, genai=n", Verdict.DENY),
    ],
)
@pytest.mark.requirement("USE-4")
def test_a_label_that_inherits_a_permission_has_it_by_name(
    expression: str, verdict: Verdict
) -> None:
    site = Site.from_files(
        "https://example.com",
        {"/robots.txt": f"User-agent: *\nUsage: {expression}\nAllow: /\n".encode()},
    )
    assert site.page(Agent("examplebot"), "https://example.com/").uses["ai"].verdict is verdict
