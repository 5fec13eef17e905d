"""Findings that the authors of a site have chosen to ignore.

    without_ignored(draft, findings)    leave out the findings that comments in the file name
    Configuration.of(file)              the rules that `.comity.toml` ignores in a file

A comment `# comity: ignore robots.agent` is for its own line. If the line has nothing else, it is
for the next line. `# comity: ignore-file robots.agent` is for the whole file. Markup has the same
comments as `<!-- comity: ignore rsl.pattern -->`. Each takes several rules, or the beginning of
rules such as `robots`."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import islice
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
_IN_MARKUP = re.compile(rb"<!--[ \t]*+comity:[ \t]*+ignore(-file)?(?=[ \t])")
_IN_LINES = re.compile(rb"(?:(?:\A|(?<=[ \t]))#|<!--)[ \t]*+comity:[ \t]*+ignore(-file)?(?=[ \t])")
_WORD = re.compile(rb"[^ \t,]++")
_NAME = re.compile(rb"[A-Za-z0-9._-]++")


def without_ignored(draft: Draft, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that no comment in the file names, and those about the comments."""
    if b"comity:" not in draft.body or not draft.has_places:
        return [*findings]
    ignored: dict[int, set[str]] = {}  # line -> rules. Line 0 is the whole file
    kept: list[Finding] = []
    names = 0
    has_lines = urlsplit(draft.url).path in WELL_KNOWN and not draft.is_markup
    opening = _IN_LINES if has_lines else _IN_MARKUP
    for line in range(1, draft.lines + 1):
        text = draft.line(line)
        match = opening.search(text) if b"comity:" in text else None
        if not match:
            continue
        end = len(text.rstrip(b" \t").removesuffix(b"-->"))
        words = [*islice(_WORD.finditer(text, match.end(), max(end, match.end())), MAX_NAMES + 1)]
        names += len(words)
        if names > MAX_NAMES:
            message = (
                f"Only {MAX_NAMES} names of rules are read in the comments of a file. This comment "
                f"and those below it are not read. Write `ignore-file` once, or {FILE_NAME}."
            )
            kept.append(_finding(draft, message, line, match))
            break
        if not all(_NAME.fullmatch(word[0]) for word in words):
            continue
        subject = line if text[: match.start()].strip(b" \t") else line + 1
        rules = ignored.setdefault(0 if match[1] else subject, set())
        for name in words:
            try:
                rules.update(select_rules(name[0].decode()))
            except PolicyError as error:
                kept.append(_finding(draft, str(error), line, name))
    everywhere = ignored.pop(0, set())
    kept += (
        finding
        for finding in findings
        if finding.rule not in everywhere and finding.rule not in ignored.get(finding.line, ())
    )
    return kept


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
