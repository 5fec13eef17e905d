"""One row for each question, in any terms."""

from __future__ import annotations

from itertools import groupby

import pytest

from comity.policies.vocabulary.table import ANY, Vocabulary
from comity.policies.vocabulary.use_rows import UseRows, named

SHIPPED = Vocabulary.shipped()
DENY, ALLOW = ({"verdict": verdict, "stated": True} for verdict in ("deny", "allow"))
DENY_BY_DEFAULT, ALLOW_BY_DEFAULT = (decision | {"stated": False} for decision in (DENY, ALLOW))


@pytest.mark.requirement("MEET-4")
def test_the_table_says_which_words_are_one_question() -> None:
    questions = sorted((SHIPPED.question(use), use) for use in SHIPPED.uses)
    grouped = {
        question: [use for _, use in uses]
        for question, uses in groupby(questions, key=lambda pair: pair[0])
    }
    assert {question: uses for question, uses in grouped.items() if len(uses) > 1} == {
        "tdm": ["all", "bots", "tdm"],
        "ai": ["ai", "ai-all"],
        "train": ["ai-train", "train", "train-ai"],
    }
    # Uses that the table does not name have equal meanings, but are different questions.
    assert [SHIPPED.question(use) for use in ("crawl", "print", ANY)] == ["crawl", "print", ANY]


@pytest.mark.requirement("MEET-4")
def test_a_table_of_the_operators_may_tell_words_apart() -> None:
    more = '[[relation]]\nuses = ["ai-train"]\nterms = ["robots-meta:noarchive"]\nkind = "touches"'
    own = Vocabulary.from_toml(more)
    assert (own.question("ai-train"), own.question("train-ai")) == ("ai-train", "train")


@pytest.mark.requirement("MEET-4", "REPORT-1")
@pytest.mark.parametrize(
    ("declared", "uses", "rows"),
    [
        (
            (),
            {"train-ai": DENY, "ai-train": ALLOW, "index": ALLOW},
            {"train": ["train-ai", "ai-train"], "index": ["index"]},
        ),
        (
            ("train-ai",),
            {"ai-train": ALLOW, "train-ai": DENY},
            {"train-ai": ["train-ai", "ai-train"]},
        ),
        (("ai-train", "train-ai"), {"train-ai": ALLOW}, {"ai-train": ["train-ai"]}),
        # A refusal decides, and a statement comes before a default.
        ((), {"train": ALLOW, "ai-train": DENY_BY_DEFAULT}, {"train": ["ai-train", "train"]}),
        ((), {"train": DENY_BY_DEFAULT, "ai-train": DENY}, {"train": ["ai-train", "train"]}),
        ((), {"train": ALLOW_BY_DEFAULT, "ai-train": ALLOW}, {"train": ["ai-train", "train"]}),
        ((), {}, {}),
    ],
)
def test_rows(
    declared: tuple[str, ...], uses: dict[str, dict[str, object]], rows: dict[str, list[str]]
) -> None:
    assert UseRows(SHIPPED, declared).of(uses) == rows


@pytest.mark.requirement("MEET-4", "REPORT-1")
@pytest.mark.parametrize(
    ("row", "terms", "name", "words"),
    [
        ("index", [], "index", []),
        ("train", ["train-ai"], "train-ai", []),  # no source uses `train`
        ("train", ["train-ai", "ai-train"], "train", ["ai-train", "train-ai"]),
        ("train-ai", ["train-ai", "ai-train"], "train-ai", ["ai-train"]),
    ],
)
def test_names_of_rows(row: str, terms: list[str], name: str, words: list[str]) -> None:
    assert named(row, terms) == (name, words)


@pytest.mark.requirement("MEET-4")
def test_which_rows_are_shared() -> None:
    assert UseRows().shared == {"tdm", "ai", "train"}
    assert UseRows(declared=("ai-train", "bots", "print")).shared == {"bots", "ai", "ai-train"}
