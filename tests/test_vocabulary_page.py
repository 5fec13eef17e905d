"""The table of vocabularies, for people: docs/vocabulary.md, whose tables `make docs` writes from vocabulary.toml."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from comity.policies.answers.decision import Reason, Source, Verdict
from comity.policies.vocabulary.preferences import Preferences
from comity.policies.vocabulary.statement import Location, Statement
from comity.policies.vocabulary.table import ANY, Relation, Vocabulary

PAGE = Path(__file__).parent.parent / "docs" / "vocabulary.md"


def page(written: str) -> str:
    """The page with its tables made anew, each between `<!-- name -->` and `<!-- end -->`."""
    vocabulary = Vocabulary.shipped()
    tables = {
        "vocabularies": _vocabularies(vocabulary),
        "matrix": _matrix(vocabulary),
        "rows": _rows(vocabulary.relations),
    }
    for name, lines in tables.items():
        before, mark, rest = written.partition(f"<!-- {name} -->\n")
        written = (
            f"{before}{mark}\n"
            + "\n".join(lines)
            + "\n\n<!-- end -->"
            + rest.partition("<!-- end -->")[2]
        )
    return written


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    head = tuple(head)
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _vocabularies(vocabulary: Vocabulary) -> Iterator[str]:
    def written(narrows: dict[str, tuple[str, ...]]) -> str:
        return "; ".join(
            f"{word} < {', '.join(general)}" if general else word
            for word, general in narrows.items()
        )

    rows = (
        (
            f"`{one.name}`",
            one.title,
            f"{one.specification} {one.section}".strip(),
            one.revision,
            written(dict(one.narrows)),
        )
        for one in vocabulary.words.values()
    )
    return _table(("name", "", "specification", "revision", "words (`<`: narrows)"), rows)


def _matrix(vocabulary: Vocabulary) -> Iterator[str]:
    """Uses that are told the same share a row."""
    names = tuple(vocabulary.words)
    alike: dict[tuple[str, ...], list[str]] = {}
    for use in (*vocabulary.uses, ANY):
        alike.setdefault(tuple(_cell(vocabulary, name, use) for name in names), []).append(use)
    rows = (
        (", ".join("any other" if use == ANY else use for use in uses), *cells)
        for cells, uses in alike.items()
    )
    return _table(("use", *(f"`{name}`" for name in names)), rows)


def _cell(vocabulary: Vocabulary, name: str, use: str) -> str:
    related = vocabulary.related(name, use)
    within = dict.fromkeys(levels[0][0] for levels in related.levels)
    touching = (
        word
        for word in vocabulary.words[name].narrows
        if word in related.touching and word not in within
    )
    return " ".join((*(f"**{word}**" for word in within), *touching))


def _rows(relations: Iterable[Relation]) -> Iterator[str]:
    rows = (
        (
            ", ".join(one.uses).replace(ANY, "any other"),
            one.kind,
            " ".join(f"`{term}`" for term in one.terms),
            one.rationale,
        )
        for one in relations
    )
    return _table(("uses", "", "words", "why"), rows)


@pytest.mark.requirement("MEET-4")
def test_the_page_is_current() -> None:
    written = PAGE.read_text("utf-8")
    assert written == page(written), "run `make docs`"
    assert written.count("\n| tdm, all, bots |") == 3


@pytest.mark.requirement("MEET-4", "TDM-2")
def test_the_example_does_what_it_says() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    shipped, own = Vocabulary.shipped(), Vocabulary.from_toml(example)

    def verdict(vocabulary: Vocabulary, term: str, verdict: Verdict, use: str) -> Verdict | None:
        statement = Statement(term, verdict, "usage.allow", Location())
        reason = Reason(rule="usage.allow", source=Source(url=""))
        decision = Preferences(
            vocabulary, term.partition(":")[0], [statement], lambda _: reason
        ).decide(use)
        return None if decision is None else decision.verdict

    for term, said, use in (
        ("tdmrep:reservation", Verdict.DENY, "search"),
        ("tdmrep:reservation", Verdict.DENY, "index"),
        ("robots-meta:noarchive", Verdict.DENY, "train"),
        ("usage:x-audio", Verdict.DENY, "text-to-speech"),
        ("usage:x-audio", Verdict.ALLOW, "text-to-speech"),
    ):
        assert verdict(shipped, term, said, use) is None
        assert verdict(own, term, said, use) is said
    assert verdict(own, "tdmrep:reservation", Verdict.ALLOW, "search") is None
    assert verdict(own, "usage:ai", Verdict.DENY, "text-to-speech") is Verdict.DENY


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
