"""The texts of the rules, for `comity rule`, docs/rules/, the language server and SARIF."""

from __future__ import annotations

from collections.abc import Mapping

from comity.authoring.lint import PAGE
from comity.policies.answers.rule import RULES, Example
from comity.policies.formats import FORMATS

_ROBOTS = "robots.txt"


def rules_of(prefix: str) -> list[str]:
    """Return the rules with this id or prefix: `robots` means all that begin with `robots.`."""
    return [rule for rule in RULES if rule == prefix or rule.startswith(f"{prefix.rstrip('.')}.")]


def files_of(rule: str, texts: str | Mapping[str, str]) -> Mapping[str, str]:
    """Return the texts of a rule's example by their paths in the folder of the site.

    `texts`: `Example.bad` or `Example.good`."""
    example = RULES[rule].example
    assert isinstance(example, Example)
    return {example.name or _file_name(rule): texts} if isinstance(texts, str) else texts


def _file_name(rule: str) -> str:
    """Return the path of the file in which a rule finds its findings, without its first slash."""
    format_ = next((format_ for format_ in FORMATS if rule in format_.rules), None)
    if format_ and format_.files:
        return format_.files[0].path.removeprefix("/")
    is_of_pages = format_ and format_.header_fields and not format_.robots_lines
    return PAGE if is_of_pages else _ROBOTS
