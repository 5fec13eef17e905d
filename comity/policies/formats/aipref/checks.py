"""Checks of the lines of usage preferences beyond their syntax. No crawler runs them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.formats.aipref import content_usage, short_strings
from comity.policies.formats.aipref.words import (
    DICTIONARY_LABELS,
    MEANT_IN_DICTIONARIES,
    MEANT_IN_STRINGS,
    STRING_LABELS,
)
from comity.policies.formats.authoring import Remarks
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.robots.extension_lines import ExtensionLine
from comity.policies.formats.robots.file import lines_of, robots_of
from comity.policies.formats.robots.grammar import Robots
from comity.policies.formats.robots.line_site import column_and_length, lines_together
from comity.policies.syntax.lines import Findings
from comity.policies.syntax.path_patterns import normal_pattern
from comity.policies.syntax.suspicions import nearest


class _Member(NamedTuple):
    """One label of a line with its value.

    Attributes:
        path: The path that a Content-Usage line begins with, in normal form. "" for `usage` lines.
    """

    line: ExtensionLine
    label: str
    value: str
    path: str


def check(site: SiteFiles) -> Iterator[Finding]:
    """Yield findings about preferences in the site's robots.txt that are probably mistakes."""
    file = robots_of(site)
    if file.robots and not file.is_marked_up:
        remarks = Remarks(file.url)
        lines = [line for line in lines_of(site) if not line.overlong]
        strings = {line: list(_string(line)) for line in lines if line.name in short_strings.NAMES}
        _check_labels("usage.label", strings, STRING_LABELS, MEANT_IN_STRINGS, file.robots, remarks)
        _check_contradictions("usage.contradiction", strings, file.robots, remarks)
        dictionaries = {
            line: list(_dictionary(line)) for line in lines if line.name == content_usage.NAME
        }
        for line in dictionaries:
            _check_parameters(line, remarks)
        for members in dictionaries.values():
            _check_repeated(members, file.robots, remarks)
        last = {
            line: list({member.label: member for member in members}.values())
            for line, members in dictionaries.items()
        }
        _check_labels(
            "content-usage.unknown",
            last,
            DICTIONARY_LABELS,
            MEANT_IN_DICTIONARIES,
            file.robots,
            remarks,
        )
        _check_contradictions("content-usage.contradiction", last, file.robots, remarks)
        yield from remarks.findings


_Lines = Mapping[ExtensionLine, list[_Member]]


def _string(line: ExtensionLine) -> Iterator[_Member]:
    for member in line.value.decode("utf-8", "replace").split(","):
        label, _, value = (part.strip(" \t") for part in member.partition("="))
        if label and value in short_strings.VERDICTS:
            yield _Member(line, label, value, "")


def _dictionary(line: ExtensionLine) -> Iterator[_Member]:
    """Yield the members of a dictionary.

    A dictionary with quotes yields nothing, because its strings might contain commas.
    """
    path, value = content_usage.parts(line.value)
    if b'"' in value or not content_usage.read(value, Findings("")):
        return
    for member in value.decode("ascii").split(","):
        label, _, member_value = member.partition(";")[0].strip(" \t").partition("=")
        if member_value in short_strings.VERDICTS:
            yield _Member(line, label, member_value, normal_pattern(path))


def _check_labels(
    rule: str,
    lines: _Lines,
    labels: Iterable[str],
    synonyms: Mapping[str, str],
    robots: Robots,
    remarks: Remarks,
) -> None:
    suggestions: dict[str, str] = dict.fromkeys(labels, "")
    for line, members in lines.items():
        for member in members:
            if member.label not in suggestions and len(suggestions) < MAX_WORDS:
                suggestions[member.label] = synonyms.get(member.label.lower()) or nearest(
                    member.label, labels
                )
            if word := suggestions.get(member.label):
                column, length = column_and_length(line, member.label.encode(), robots)
                message = (
                    f"The label `{{}}` is unknown here and has no effect. Write "
                    f"`{word}={member.value}`."
                )
                remarks.report(
                    rule,
                    message,
                    member.label.encode(),
                    line=line.line,
                    column=column,
                    length=length,
                )


def _check_contradictions(rule: str, lines: _Lines, robots: Robots, remarks: Remarks) -> None:
    """Report permissions that a refusal with an equal path, for the same agents, overrides."""
    reported: set[tuple[ExtensionLine, Hashable]] = set()
    for together in lines_together(list(lines), robots):
        members = [member for line in together for member in lines[line]]
        refused: dict[tuple[str, str], ExtensionLine] = {}
        for member in members:
            if short_strings.VERDICTS[member.value] is Verdict.DENY:
                refused.setdefault((member.path, member.label), member.line)
        for line, label, value, path in members:
            refusing = refused.get((path, label))
            if (
                refusing
                and short_strings.VERDICTS[value] is Verdict.ALLOW
                and (line, label) not in reported
            ):
                reported.add((line, label))
                column, length = column_and_length(line, label.encode(), robots)
                position = "in this line" if refusing is line else f"by line {refusing.line}"
                message = (
                    f"`{{}}` is also refused {position}, for the same agents. The refusal counts."
                )
                remarks.report(
                    rule, message, label.encode(), line=line.line, column=column, length=length
                )


def _check_parameters(line: ExtensionLine, remarks: Remarks) -> None:
    """Report a label behind a semicolon, where it is a parameter of the label before it."""
    value = content_usage.parts(line.value)[1]
    match = _PARAMETER.search(value) if b'"' not in value else None
    if match and match[1].decode() in DICTIONARY_LABELS:
        message = "`{}` has no effect behind a semicolon. Write a comma between preferences."
        remarks.report("content-usage.parameter", message, match[1], line=line.line)


_PARAMETER = re.compile(rb";[ \t]*([a-z-]++)=")


def _check_repeated(members: list[_Member], robots: Robots, remarks: Remarks) -> None:
    values: dict[str, str] = {}
    for line, label, value, _ in members:
        if values.setdefault(label, value) != value:
            column, length = column_and_length(line, label.encode(), robots)
            message = "`{}` is repeated in this line. The last one counts."
            remarks.report(
                "content-usage.repeated",
                message,
                label.encode(),
                line=line.line,
                column=column,
                length=length,
            )
            return


MAX_WORDS = 200  # maximum labels, known and unknown, in the search for misspellings
