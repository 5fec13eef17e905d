"""The texts of the rules, for `comity rule`, docs/rules/, the language server and SARIF.

select_rules(prefix)    the rules with an id or a prefix
advice_of(rule)         why a finding matters, and how to mend it, in Markdown
as_markdown(rule)       all texts of a rule in Markdown
as_plain_text(rule)     all texts of a rule without markup
as_json(rule)           all texts of a rule for JSON"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from textwrap import indent
from typing import Any, NamedTuple

from comity.policies import PolicyError
from comity.policies.answers.rule import FINDING, RULES, Example, without_page
from comity.policies.formats import FORMATS

MAX_SIMILAR = 3  # the maximum number of ids that a message proposes
_ROBOTS, _PAGE = "robots.txt", "page.html"
_SPEC = re.compile(r"(RFC (\d+)|draft-[a-z0-9-]*[a-z0-9])(?:.*?section-([\d.]+))?", re.IGNORECASE)
_LANGUAGES = {".html": "html", ".json": "json", ".xml": "xml"}
_HIDDEN = re.compile(r"[^ -~\n]")


class Sample(NamedTuple):
    """One file of an example.

    Attributes:
        title: "Bad `robots.txt`", in Markdown.
        text: The text of the file, with hidden characters as `<U+200B>`.
        language: The language of the text, for the highlighting of Markdown.
    """

    title: str
    text: str
    language: str


def select_rules(prefix: str) -> list[str]:
    """Return the rules with this id or prefix: `robots` means all that begin with `robots.`.

    PolicyError: no rule has it."""
    rules = [rule for rule in RULES if rule == prefix or rule.startswith(f"{prefix.rstrip('.')}.")]
    if not rules:
        names = RULES if "." in prefix else {rule.partition(".")[0] for rule in RULES}
        similar = get_close_matches(prefix, sorted(names), MAX_SIMILAR)
        meant = f"Write {' or '.join(f'`{rule}`' for rule in similar)}. " if similar else ""
        raise PolicyError(
            f"`{prefix}` is not a rule or the beginning of one. {meant}`comity rule` lists all."
        )
    return rules


def files_of(rule: str, texts: str | Mapping[str, str]) -> Mapping[str, str]:
    """Return the texts of a rule's example by their paths in the folder of the site.

    `texts`: `Example.bad` or `Example.good`."""
    example = RULES[rule].example
    name = example.name if example else ""
    return {name or _file_name(rule): texts} if isinstance(texts, str) else texts


def _file_name(rule: str) -> str:
    """Return the path of the file in which a rule finds its findings, without its first slash."""
    format_ = next((format_ for format_ in FORMATS if rule in format_.rules), None)
    if format_ and format_.files:
        return format_.files[0].path.removeprefix("/")
    is_of_pages = format_ and format_.header_fields and not format_.robots_lines
    return _PAGE if is_of_pages else _ROBOTS


def weight_of(rule: str) -> str:
    """Return the severity of a finding, or the effect of another rule."""
    entry = RULES[rule]
    return entry.severity.value if entry.effect is FINDING else entry.effect.value


def samples_of(rule: str) -> Iterator[Sample]:
    """Yield the files of a rule's example: first the bad ones, then the good ones."""
    example = RULES[rule].example
    if example is None:
        return
    for path, text in files_of(rule, example.bad).items():
        yield _sample(f"Bad `{path}`{_repetition(example, text)}", path, text)
    for path, text in files_of(rule, example.good).items():
        yield _sample(f"Good `{path}`", path, text)


def _repetition(example: Example, text: str) -> str:
    if not example.repeated or example.repeated not in text:
        return ""
    return f", with `{example.repeated.strip()}` {example.times:,} times"


def _sample(title: str, path: str, text: str) -> Sample:
    is_response = text.startswith("HTTP/1.1 ")
    language = next((name for end, name in _LANGUAGES.items() if path.endswith(end)), "text")
    shown = _HIDDEN.sub(_visible, text).rstrip("\n")
    return Sample(title, shown, "http" if is_response else language)


def _visible(char: re.Match[str]) -> str:
    return char[0] if char[0].isprintable() else f"<U+{ord(char[0]):04X}>"


def advice_of(rule: str) -> str:
    """Return why a finding matters and how to mend it, in Markdown. "": the rule has no text."""
    entry = RULES[rule]
    return f"{entry.why}\n\n**Fix:** {entry.fix}" if entry.why else ""


def as_markdown(rule: str) -> str:
    """Return all texts of a rule in Markdown, without a heading."""
    entry = RULES[rule]
    address = href(entry.spec)
    spec = f"[{entry.spec}]({address})" if address else without_page(entry.spec)
    parts = [f"**{weight_of(rule)}**: {entry.summary} ({spec})", advice_of(rule)]
    for sample in samples_of(rule):
        parts += (f"{sample.title}:", f"```{sample.language}\n{sample.text}\n```")
    return "\n\n".join(filter(None, parts))


def as_plain_text(rule: str) -> str:
    """Return all texts of a rule without markup. The first line has its id and summary."""
    entry = RULES[rule]
    parts = [f"{rule} {weight_of(rule)}: {entry.summary} [{without_page(entry.spec)}]"]
    parts += (entry.why, f"Fix: {entry.fix}") if entry.why else ()
    parts += (f"{sample.title}:\n{indent(sample.text, '    ')}" for sample in samples_of(rule))
    return "\n\n".join(parts)


def as_json(rule: str) -> dict[str, Any]:
    """Return all texts of a rule for JSON.

    `severity` is None for rules of decisions. `example` is None for rules without an example."""
    entry = RULES[rule]
    example = entry.example
    return {
        "rule": rule,
        "effect": entry.effect.value,
        "severity": entry.severity.value if entry.effect is FINDING else None,
        "summary": entry.summary,
        "spec": entry.spec,
        "url": href(entry.spec),
        "why": entry.why,
        "fix": entry.fix,
        "example": {
            "bad": dict(files_of(rule, example.bad)),
            "good": dict(files_of(rule, example.good)),
            "repeated": example.repeated,
            "times": example.times,
        }
        if example
        else None,
    }


def href(spec: str) -> str:
    """Return the URL of a section, e.g. "RFC 9309 section-2.2" (RFCs and drafts; else "")."""
    match = _SPEC.match(spec)
    if match is None:
        return ""
    base = (
        f"https://www.rfc-editor.org/rfc/rfc{match[2]}"
        if match[2]
        else f"https://datatracker.ietf.org/doc/html/{match[1]}"
    )
    return f"{base}#section-{match[3]}" if match[3] else base
