"""Checks of Content Signals beyond their syntax. No crawler runs them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.formats.authoring import Remarks
from comity.policies.formats.content_signals.signals import (
    LABELS,
    LEVELS,
    NAMES,
    Signal,
    line_signals,
    members,
    split_path,
)
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.robots.extension_lines import ExtensionLine
from comity.policies.formats.robots.file import lines_of, robots_of
from comity.policies.formats.robots.grammar import IN_ACAP, Robots
from comity.policies.formats.robots.line_site import column_and_length, lines_together
from comity.policies.syntax.suspicions import nearest

# Word of another vocabulary -> the signal with nearly the same meaning.
_SYNONYMS = {
    **dict.fromkeys(
        ("train-ai", "ai", "genai", "train-genai", "train", "ai-training", "noai", "tdm"),
        "ai-train",
    ),
    **dict.fromkeys(("ai-use", "inference", "ai-output", "ai-inference", "input"), "ai-input"),
    "index": "search",
}
MAX_WORDS = 200  # maximum keys, known and unknown, in the search for misspellings


def check(site: SiteFiles) -> Iterator[Finding]:
    """Yield findings about signals in the site's robots.txt that are probably mistakes."""
    file = robots_of(site)
    lines = [line for line in lines_of(site) if line.name in NAMES and not line.overlong]
    if file.robots and lines and not file.is_marked_up:
        remarks = Remarks(file.url)
        _check_words(lines, file.robots, remarks)
        # Lines for some pages contradict no lines for others.
        general = [line for line in lines if not split_path(line.value)[0]]
        _check_verdicts(general, file.robots, remarks)
        yield from remarks.findings


def _check_words(lines: list[ExtensionLine], robots: Robots, remarks: Remarks) -> None:
    suggestions: dict[str, str] = dict.fromkeys((*LABELS, "use"), "")
    for line in lines:
        for key, _ in members(split_path(line.value)[1]):
            if key not in suggestions and len(suggestions) < MAX_WORDS:
                suggestions[key] = _SYNONYMS.get(key) or nearest(key, LABELS)
            if word := suggestions.get(key):
                column, length = _key_position(line, key, robots)
                message = f"`{{}}` is not a signal. Write `{word}=no` or `{word}=yes`."
                remarks.report(
                    "content-signal.label",
                    message,
                    key.encode(),
                    line=line.line,
                    column=column,
                    length=length,
                )
        if line.group < 0:
            speaks = "permits nothing" if line.group == IN_ACAP else "is for any agent"
            message = (
                f"The line is outside of all groups, and {speaks}. Write it below `User-agent: *`."
            )
            remarks.report("content-signal.outside", message, line=line.line)
        path, _ = split_path(line.value)
        usual = b"" if path else usual_form(line.value)
        if usual and (line.name != NAMES[0] or _squeeze(usual) != _squeeze(line.value)):
            message = "Not every reader understands this spelling. Write `Content-Signal: {}`."
            remarks.report("content-signal.spelling", message, usual, line=line.line)


def _key_position(line: ExtensionLine, key: str, robots: Robots) -> tuple[int, int]:
    """Return column and length of a key in a line. The line may write it with underscores."""
    value, octets = line.value.lower().replace(b"_", b"-"), key.encode()
    word = re.search(rb"(?<![\w-])" + re.escape(octets) + rb"(?![\w-])", value)
    start = word.start() if word else max(value.find(octets), 0)
    return column_and_length(line, line.value[start : start + len(octets)], robots)


def _squeeze(value: bytes) -> bytes:
    """Return the value in lower case, without white space around commas."""
    return b",".join(member.strip(b" \t") for member in value.lower().split(b","))


def usual_form(value: bytes) -> bytes:
    """Return the value in the spelling of its specification, such as b"search=yes, ai-train=no".

    The result is b"" if a member is unknown, or if the spelling would change the signals.
    """
    signals = members(value)
    is_known = all(
        (value in ("yes", "no") and key in LABELS) or (key == "use" and value in LEVELS)
        for key, value in signals
    )
    usual = ", ".join(f"{key}={value}" for key, value in signals).encode()
    return usual if is_known and signals and line_signals(usual) == line_signals(value) else b""


def _check_verdicts(lines: list[ExtensionLine], robots: Robots, remarks: Remarks) -> None:
    """Report permissions that a refusal for the same agents or for other agents overrides.

    Permissions in groups for `*`, outside of all groups, and by `use=` are not reported. Reading
    the file reports the contradictions in groups for `*` already.
    """
    signals: dict[ExtensionLine, list[Signal]] = {line: line_signals(line.value) for line in lines}
    everybodys = frozenset(robots.groups_naming("*"))
    anywhere: dict[str, ExtensionLine] = {}
    for line, of_line in signals.items():
        for word, verdict in of_line:
            if verdict is Verdict.DENY:
                anywhere.setdefault(word, line)
    reported: set[tuple[ExtensionLine, str]] = set()
    for rule in ("content-signal.contradiction", "content-signal.elsewhere"):
        for together in lines_together(lines, robots):
            refused: dict[str, ExtensionLine] = {}
            for line in together:
                for word, verdict in signals[line]:
                    if verdict is Verdict.DENY:
                        refused.setdefault(word, line)
            source = refused if rule == "content-signal.contradiction" else anywhere
            for line in together:
                for word, verdict in signals[line]:
                    refusing = source.get(word)
                    if verdict is not Verdict.ALLOW or not refusing or (line, word) in reported:
                        continue
                    reported.add((line, word))
                    if line.group in everybodys or line.group < 0 or word.startswith("use-"):
                        continue
                    column, length = _key_position(line, word, robots)
                    message = (
                        f"`{{}}` is permitted here, but line {refusing.line} refuses it "
                        "for the same agents. The refusal counts."
                        if rule == "content-signal.contradiction"
                        else f"Line {refusing.line} refuses `{{}}` for other agents. Some "
                        "readers apply that to all agents."
                    )
                    remarks.report(
                        rule, message, word.encode(), line=line.line, column=column, length=length
                    )
