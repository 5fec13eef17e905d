"""docs/rules.md and the pages of docs/rules/. `make docs` writes both from RULES."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from comity.authoring.rules import as_markdown
from comity.policies.answers.rule import RULES, Effect

PAGE = Path(__file__).parent.parent.parent / "docs" / "rules.md"
FOLDER = PAGE.with_suffix("")
# `<!-- findings: robots -->`: the findings that begin with `robots.`. An id names one rule.
TABLE = re.compile(r"<!-- (findings|decisions): ([a-z. -]+?) -->\n(.*?)<!-- end -->\n", re.DOTALL)
FINDINGS = [rule for rule, entry in RULES.items() if entry.effect is Effect.FINDING]


def rules_of(kind: str, names: str, written: str) -> Iterator[str]:
    """Yield the rules of a table. A rule that a table names by its id is in no other table."""
    named = {name for match in TABLE.finditer(written) for name in match[2].split() if "." in name}
    for name in names.split():
        for rule in RULES:
            is_meant = rule.partition(".")[0] == name and rule not in named
            if (rule == name or is_meant) and (rule in FINDINGS) == (kind == "findings"):
                yield rule


def page(written: str) -> str:
    """Return the page with new tables."""
    return TABLE.sub(lambda match: _table(match[1], match[2], written), written)


def _table(kind: str, names: str, written: str) -> str:
    rows = [_row(rule) for rule in rules_of(kind, names, written)]
    head = ["| rule | specification | meaning |", "|---|---|---|"]
    return "\n".join([f"<!-- {kind}: {names} -->\n", *head, *rows, "\n<!-- end -->\n"])


def _row(rule: str) -> str:
    entry = RULES[rule]
    link = f"(rules/{rule.partition('.')[0]}.md#{rule})"
    cell = f"[`{rule}`]{link}" if rule in FINDINGS else f"`{rule}`"
    return f"| {cell} | {entry.spec} | {entry.summary} |"


def pages() -> dict[str, str]:
    """Return the pages of docs/rules/ by their names. Each has the findings with one prefix."""
    sections: dict[str, list[str]] = {}
    for rule in FINDINGS:
        text = re.sub(r"(?<=[( ])docs/([a-z-]+\.md)", r"[docs/\1](../\1)", as_markdown(rule))
        sections.setdefault(rule.partition(".")[0], []).append(
            f'<a id="{rule}"></a>\n\n## {rule}\n\n{text}\n'
        )
    return {
        f"{prefix}.md": f"# Findings: {prefix}\n\n[All rules](../rules.md). "
        f"`make docs` writes this page.\n\n" + "\n".join(parts)
        for prefix, parts in sections.items()
    }


def test_the_pages_are_what_the_rules_make_of_them() -> None:
    """If this test fails, run `make docs`."""
    assert PAGE.read_text("utf-8") == page(PAGE.read_text("utf-8"))
    assert {path.name: path.read_text("utf-8") for path in FOLDER.iterdir()} == pages()


def test_each_rule_is_in_one_table() -> None:
    written = PAGE.read_text("utf-8")
    listed = [
        rule for match in TABLE.finditer(written) for rule in rules_of(match[1], match[2], written)
    ]
    assert Counter(listed) == dict.fromkeys(RULES, 1)


def test_each_link_of_the_tables_leads_to_an_anchor() -> None:
    links = re.findall(r"\]\(rules/([a-z-]+\.md)#([a-z.-]+)\)", PAGE.read_text("utf-8"))
    anchors = {
        (path.name, anchor)
        for path in FOLDER.iterdir()
        for anchor in re.findall(r'<a id="([a-z.-]+)"></a>', path.read_text("utf-8"))
    }
    assert len(links) == len(FINDINGS)
    assert set(links) == anchors


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    for name, text in pages().items():
        (FOLDER / name).write_text(text, "utf-8")
