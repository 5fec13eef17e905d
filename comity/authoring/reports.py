"""Print problems: for people, in JSON, in SARIF 2.1.0, and as workflow commands of GitHub."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from rich.cells import cell_len
from rich.text import Text

from comity import __version__
from comity.authoring.problems import Problem
from comity.authoring.rules import as_markdown, as_plain_text, href
from comity.gate.run.console import line, open_console, say
from comity.policies.answers.rule import RULES, Severity, without_page
from comity.policies.syntax.printable import unhidden

# Limits of the output for people: problems of one rule in one file, and characters of one line.
MAX_OF_RULE = 5
MAX_WIDTH = 200
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
# SARIF 2.1.0 section-3.27.10
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def as_text(problems: Sequence[Problem]) -> None:
    """Print the problems for people.

    Print only the first MAX_OF_RULE problems of one rule in one file, and the number of the
    others."""
    console = open_console()
    totals = Counter((problem.file, problem.rule) for problem in problems)
    shown: Counter[tuple[str, str]] = Counter()
    for problem in problems:
        kind = problem.file, problem.rule
        shown[kind] += 1
        if shown[kind] == MAX_OF_RULE + 1:
            begins = f", from line {problem.span.line} on" if problem.span else ""
            text = (
                f"{problem.file}: {totals[kind] - MAX_OF_RULE} more by {problem.rule}{begins}. "
                "--format json lists all."
            )
            console.print(line(text), soft_wrap=True)
        if shown[kind] > MAX_OF_RULE:
            continue
        console.print(_heading(problem), soft_wrap=True)
        for row in _excerpt(problem):
            console.print(row, soft_wrap=True)
        if fix := problem.fix:
            option, style = (
                ("--unsafe-fixes", "yellow") if fix.changes_decisions else ("--fix", "green")
            )
            console.print(line(f"    {option}: {problem.fix_title}", style), soft_wrap=True)
    console.print(line(summary(problems)), soft_wrap=True)


def _heading(problem: Problem) -> Text:
    position = (
        f"{problem.file}:{problem.span.line}:{problem.span.column}"
        if problem.span
        else problem.file
    )
    heading = line(f"{position}: ", "bold")
    heading.append(problem.severity.value, _STYLES[problem.severity])
    return heading.append_text(
        line(f": {problem.message} [{problem.rule}, {without_page(problem.spec)}]")
    )


def _excerpt(problem: Problem) -> list[Text]:
    """Return the line of a problem, and a second line that marks the span."""
    span = problem.span
    if span is None or not problem.text.strip():
        return []
    start = max(0, span.column - MAX_WIDTH // 2)
    text = unhidden(problem.text[start : start + MAX_WIDTH], keep="")
    before, marked = (
        text[: span.column - 1 - start],
        text[span.column - 1 - start : span.end_column - 1 - start],
    )
    number = str(span.line)
    caret = line(f"  {' ' * len(number)} | {' ' * cell_len(before)}")
    return [
        line(f"  {number} | {text}"),
        caret.append("^" * max(cell_len(marked), 1), _STYLES[problem.severity]),
    ]


def summary(problems: Sequence[Problem]) -> str:
    """Return the numbers of problems, files and fixes in one sentence."""
    if not problems:
        return "Nothing is wrong."
    counts = Counter(problem.severity for problem in problems)
    totals = ", ".join(
        f"{count} {severity.value}{'s' * (count > 1)}"
        for severity in Severity
        if (count := counts[severity])
    )
    fixes = Counter(problem.fix.changes_decisions for problem in problems if problem.fix)
    files = len({problem.file for problem in problems})
    mended = f"; --fix mends {fixes[False]}" if fixes[False] else ""
    if fixes[True]:
        mended += f"; --fix --unsafe-fixes mends {fixes[True]} more and changes decisions"
    return f"{totals} in {files} file{'s' * (files > 1)}{mended}."


def as_json(problems: Sequence[Problem]) -> None:
    """Print the problems as one JSON document (`problem_as_json`)."""
    say(
        json.dumps(
            {"version": 1, "problems": [problem_as_json(problem) for problem in problems]}, indent=2
        )
    )


def problem_as_json(problem: Problem) -> dict[str, Any]:
    """Return a problem for JSON.

    Lines and columns count from 1. Columns count characters (Unicode code points). Edits count
    octets of the file."""
    span, fix = problem.span, problem.fix
    return {
        "file": problem.file,
        "rule": problem.rule,
        "severity": problem.severity.value,
        "message": problem.message,
        "spec": problem.spec,
        "line": span.line if span else None,
        "column": span.column if span else None,
        "end_column": span.end_column if span else None,
        "text": problem.text,
        "fix": {
            "title": fix.title,
            "changes_decisions": fix.changes_decisions,
            "edits": [
                {"start": edit.start, "end": edit.end, "text": edit.text.decode("utf-8", "replace")}
                for edit in fix.edits
            ],
        }
        if fix
        else None,
    }


def as_sarif(problems: Sequence[Problem]) -> None:
    """Print the problems in SARIF 2.1.0."""
    rules = sorted({problem.rule for problem in problems})
    results = [
        {
            "ruleId": problem.rule,
            "ruleIndex": rules.index(problem.rule),
            "level": _LEVELS[problem.severity],
            "message": {"text": problem.message},
            "locations": [{"physicalLocation": _location(problem)}],
            **({"fixes": [_fix(problem)]} if problem.fix else {}),
        }
        for problem in problems
    ]
    say(sarif_document([_rule(rule) for rule in rules], results))


def sarif_document(rules: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]]) -> str:
    """Return a SARIF document. `rules` has the rules of all `results`."""
    driver = {"name": "comity", "version": __version__, "rules": list(rules)}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": list(results)}
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(rule: str) -> dict[str, Any]:
    """Return a rule for SARIF, with its texts."""
    entry, address = RULES[rule], href(RULES[rule].spec)
    return {
        "id": rule,
        "shortDescription": {"text": entry.summary},
        "fullDescription": {"text": entry.why or f"{entry.summary} ({without_page(entry.spec)})"},
        "help": {"text": as_plain_text(rule), "markdown": as_markdown(rule)},
        **({"helpUri": address} if address else {}),
        "defaultConfiguration": {"level": _LEVELS[entry.severity]},
    }


def _location(problem: Problem) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": uri_of(problem.file)}}
    if span := problem.span:
        location["region"] = {
            "startLine": span.line,
            "startColumn": span.column,
            "endColumn": span.end_column,
        }
    return location


def uri_of(name: str) -> str:
    """Return the URI of a file for SARIF. `name`: a URL, or a path as the user writes it."""
    return name if "://" in name else quote(os.fsencode(PurePath(name).as_posix()))


def _fix(problem: Problem) -> dict[str, Any]:
    assert problem.fix
    replacements = [
        {
            "deletedRegion": {"byteOffset": edit.start, "byteLength": edit.end - edit.start},
            "insertedContent": {"text": edit.text.decode("utf-8", "replace")},
        }
        for edit in problem.fix.edits
    ]
    change = {"artifactLocation": {"uri": uri_of(problem.file)}, "replacements": replacements}
    return {"description": {"text": problem.fix_title}, "artifactChanges": [change]}


def as_github(problems: Sequence[Problem]) -> None:
    """Print the problems as workflow commands. GitHub shows them at their lines."""
    for problem in problems:
        fields = {"file": problem.file, "title": problem.rule}
        if span := problem.span:
            fields |= {
                "line": str(span.line),
                "col": str(span.column),
                "endColumn": str(span.end_column),
            }
        message = f"{problem.message} ({without_page(problem.spec)})"
        say(workflow_command(_COMMANDS[problem.severity], fields, message))


def workflow_command(name: str, fields: Mapping[str, str], message: str) -> str:
    """Return a workflow command of GitHub. `name`: "error", "warning" or "notice"."""
    properties = ",".join(f"{field}={_escape(value, ':,')}" for field, value in fields.items())
    return f"::{name} {properties}::{_escape(message)}"


def _escape(text: str, more: str = "") -> str:
    """Percent-encode line ends, percent signs and the characters of `more`."""
    text = unhidden(text, keep="\r\n")
    for char in f"%\r\n{more}":
        text = text.replace(char, f"%{ord(char):02X}")
    return text


FORMS: dict[str, Callable[[Sequence[Problem]], None]] = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
    "github": as_github,
}
