"""Findings that the authors of a site have chosen to ignore.

    without_ignored(draft, findings)    leave out the findings that comments in the file name
    Configuration.of(file)              the rules that `.comity.toml` ignores in a file

A comment `# comity: ignore robots.agent` is for its own line. If the line has nothing else, it is
for the next line that is no comment of this form. `# comity: ignore-file robots.agent` is for the
whole file. Markup has only `<!-- comity: ignore rsl.pattern -->`. Each comment takes several rules,
or the beginning of rules such as `robots`."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from comity.authoring.rules import select_rules
from comity.policies import Finding, PolicyError
from comity.policies.formats import WELL_KNOWN
from comity.policies.formats.authoring import Draft
from comity.policies.syntax.printable import printable

FILE_NAME = ".comity.toml"
RULE = "comity.ignore"
MAX_CONFIGURATION = 1024 * 1024  # maximum octets of a `.comity.toml`
MAX_NAMES = 200  # maximum names of rules that are read in the comments of one file
_BEHIND = rb"[ \t]*+comity:[ \t]*+ignore(-file)?(?=[ \t]|-->|\Z)"
_IN_MARKUP = re.compile(rb"(?i)(<!--)" + _BEHIND)
_IN_LINES = re.compile(rb"(?i)((?:\A|(?<=[ \t]))#|<!--)" + _BEHIND)
_WORD = re.compile(rb"[^ \t,]++")
_NAME = re.compile(rb"[A-Za-z0-9._-]++")


def without_ignored(draft: Draft, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that no comment in the file names, and those about the comments."""
    if not draft.has_places or b"comity:" not in draft.body.lower():
        return [*findings]
    kept: list[Finding] = []
    ignored = _ignored(draft, kept)
    everywhere = ignored.pop(0, set())
    kept += (
        finding
        for finding in findings
        if finding.rule not in everywhere and finding.rule not in ignored.get(finding.line, ())
    )
    return kept


def _ignored(draft: Draft, mistakes: list[Finding]) -> dict[int, set[str]]:
    """Return line -> its ignored rules, and add a finding for each mistake.

    Line 0 is the whole file."""
    ignored: dict[int, set[str]] = {}
    above: set[str] = set()  # the rules of the comments directly above the line
    names = 0
    has_lines = urlsplit(draft.url).path in WELL_KNOWN and not draft.is_markup
    for line in range(1, draft.lines + 1):
        comments, is_alone = _comments(draft.line(line), _IN_LINES if has_lines else _IN_MARKUP)
        if above and not is_alone:
            ignored[line], above = above, set()
        for comment in comments:
            names += len(comment.words) or 1
            if names > MAX_NAMES:
                message = (
                    f"Only {MAX_NAMES} names of rules are read in the comments of a file. This "
                    "comment and those below it are not read. Write `ignore-file` once, or "
                    f"{FILE_NAME}."
                )
                mistakes.append(_finding(draft, message, line, comment.opening))
                return ignored
            if not comment.is_readable:
                message = (
                    "This comment is not read. Write only names of rules behind `ignore`: "
                    f"`{comment.corrected}`."
                )
                mistakes.append(_finding(draft, message, line, comment.opening))
                continue
            rules = above if is_alone else ignored.setdefault(line, set())
            if comment.opening[2]:
                rules = ignored.setdefault(0, set())
            for name in comment.words:
                try:
                    rules.update(select_rules(name[0].decode()))
                except PolicyError as error:
                    mistakes.append(_finding(draft, str(error), line, name))
    return ignored


class _Comment(NamedTuple):
    """A comment that ignores rules.

    Attributes:
        opening: The sign of a comment and `comity: ignore`.
        words: The words behind it, at most one more than MAX_NAMES.
    """

    opening: re.Match[bytes]
    words: list[re.Match[bytes]]

    @property
    def is_readable(self) -> bool:
        """True if the comment is spelled well and has names only."""
        is_spelled = self.opening[0] == self.opening[0].lower()
        return is_spelled and bool(self.words) and all(map(_is_name, self.words))

    @property
    def corrected(self) -> str:
        """The comment with the rules that it names before any other word."""
        sign, file = self.opening[1].decode(), (self.opening[2] or b"").decode().lower()
        rules = [name[0].decode() for name in takewhile(_is_rule, self.words)]
        names = ", ".join(rules or ["comity.file-size"])
        return f"{sign} comity: ignore{file} {names}{' -->' * (sign == '<!--')}"


def _is_name(word: re.Match[bytes]) -> bool:
    return _NAME.fullmatch(word[0]) is not None


def _is_rule(word: re.Match[bytes]) -> bool:
    try:
        return bool(_is_name(word) and select_rules(word[0].decode()))
    except PolicyError:
        return False


def _comments(text: bytes, opening: re.Pattern[bytes]) -> tuple[list[_Comment], bool]:
    """Return the comments that ignore rules in a line, and whether it has nothing else."""
    comments: list[_Comment] = []
    start, is_alone = 0, True
    while match := opening.search(text, start):
        is_alone = is_alone and not text[start : match.start()].strip(b" \t")
        close = text.find(b"-->", match.end()) if match[1] == b"<!--" else -1
        end, start = (len(text), len(text)) if close < 0 else (close, close + len(b"-->"))
        words = islice(_WORD.finditer(text, match.end(), end), MAX_NAMES + 1)
        comments.append(_Comment(match, [*words]))
    return comments, bool(comments) and is_alone and not text[start:].strip(b" \t")


def _finding(draft: Draft, message: str, line: int, place: re.Match[bytes]) -> Finding:
    """Return a finding about a comment. `place`: a match in the line."""
    return Finding(
        rule=RULE,
        message=message,
        url=draft.url,
        line=line,
        column=place.start() + 1,
        length=len(place[0]),
    )


class Configuration(NamedTuple):
    """The `.comity.toml` that applies to a file.

    Attributes:
        ignored: The rules to ignore in the file.
        mistakes: A message for each part of `.comity.toml` that cannot be read.
    """

    ignored: frozenset[str] = frozenset()
    mistakes: tuple[str, ...] = ()

    @classmethod
    def of(cls, file: str | os.PathLike[str]) -> Configuration:
        """Return the nearest configuration in the folder of a file and the folders above.

        Files that do not exist, such as URLs, have none."""
        path = Path(os.path.normpath(Path(file).absolute()))  # `absolute` keeps `..`
        if not path.is_file():
            return cls()
        for folder in path.parents:
            if (folder / FILE_NAME).is_file():
                return cls._read(folder / FILE_NAME, path.relative_to(folder).as_posix())
        return cls()

    @classmethod
    def _read(cls, file: Path, path: str) -> Configuration:
        """Read a configuration. `path`: the linted file, relative to the folder of `file`."""
        ignored: set[str] = set()
        mistakes: list[str] = []
        try:
            for pattern, names, key in _lists(_table(file), mistakes):
                rules = _rules(names, key, mistakes)
                ignored |= rules if fnmatchcase(path, pattern) else frozenset()
        except (OSError, ValueError) as error:
            mistakes.append(f"cannot be read: {printable(str(error))}")
        return cls(frozenset(ignored), tuple(f"{file}: {mistake}" for mistake in mistakes))


def _table(file: Path) -> dict[str, Any]:
    """Return the content of a `.comity.toml`. ValueError or OSError: it cannot be read."""
    with file.open("rb") as opened:
        body = opened.read(MAX_CONFIGURATION + 1)
    if len(body) > MAX_CONFIGURATION:
        raise ValueError(f"It has more than {MAX_CONFIGURATION:,} octets. Write fewer rules.")
    try:
        return tomllib.loads(body.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("A value is nested too deeply. Write lists of names.") from None


def _lists(table: dict[str, Any], mistakes: list[str]) -> Iterator[tuple[str, object, str]]:
    """Yield the pattern, the rules and the key of each list, and add a message for each mistake."""
    mistakes += (
        f"`{printable(key)}` is unknown. Write `ignore` or `ignore-in`."
        for key in table
        if key not in ("ignore", "ignore-in")
    )
    yield "*", table.get("ignore", []), "ignore"
    by_path = table.get("ignore-in", {})
    if isinstance(by_path, dict):
        yield from ((pattern, names, pattern) for pattern, names in by_path.items())
    else:
        mistakes.append(
            f"`ignore-in` is `{_shown(by_path)}`. Write a table: `[ignore-in]`, and below it "
            '`"site/*" = ["comity.file-size"]`.'
        )


def _rules(names: object, key: str, mistakes: list[str]) -> frozenset[str]:
    """Return the rules of all names in a list, and add a message for each mistake."""
    is_path = key != "ignore"
    where = f"`{printable(key)}`{' in `ignore-in`' * is_path}"
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        written = f'"{printable(key)}"' if is_path else key
        mistakes.append(
            f"{where} is `{_shown(names)}`. Write a list of rules: "
            f'`{written} = ["comity.file-size"]`.'
        )
        return frozenset()
    rules: set[str] = set()
    for name in names:
        try:
            rules.update(select_rules(name))
        except PolicyError as error:
            mistakes.append(f"{where}: {error}")
    return frozenset(rules)


def _shown(value: object) -> str:
    return printable(json.dumps(value, default=str, ensure_ascii=False))
