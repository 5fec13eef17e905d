"""Put the files of a wish into the folder of a site that has files already.

    for step in plan(files, Path("site")):
        step.content    the new octets of step.path, or None if nothing is to be written

Nothing is overwritten. Lines are appended to a robots.txt if the judge shows that the file then
means what it meant, and the wish. Otherwise `step.to_add` has the lines for the publisher, who
alone knows which groups are meant."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from comity.authoring.explaining import NOBODY, UNSPOKEN
from comity.authoring.lint import lint_site
from comity.authoring.problems import Problem
from comity.authoring.source import DEFAULT_ORIGIN, SiteSource, SourceFile
from comity.authoring.stated_wishes import has_form, texts_to_add
from comity.authoring.wishes.files import WishFiles
from comity.policies import Agent, Fetched, Site, Verdict
from comity.policies.answers.rule import Severity

_INSTEAD = "put the lines below into it, or replace it with --force"


class Step(NamedTuple):
    """What happens to one file.

    Attributes:
        path: The file.
        outcome: The words for the user, after the name of the file.
        content: The new content of the file. None: it is not written.
        to_add: The lines that the publisher has to add. "" means none.
    """

    path: Path
    outcome: str
    content: bytes | None = None
    to_add: str = ""


def plan(files: WishFiles, folder: Path, origin: str, *, force: bool = False) -> list[Step]:
    """Return a step for each file of a wish, and write nothing.

    `origin`: the origin of the site. `force`: replace the files that exist."""
    return [
        _step(location, text, folder / location.removeprefix("/"), origin, force=force)
        for location, text in files.texts.items()
    ]


def _step(location: str, text: str, path: Path, origin: str, *, force: bool) -> Step:
    if force or not os.path.lexists(path):
        return Step(path, "written", text.encode())
    old = _text_of(path)
    if old is None:
        return Step(path, f"is no file that can be read as UTF-8: {_INSTEAD}", to_add=text)
    if has_form(location, text, old):
        return Step(path, "is unchanged, because the lines would change nothing in it")
    added = texts_to_add({location: text}, {location: old}, keeps_permissions=True)
    if added is None or _new_problems(location, origin, old, text, added[location]):
        is_refused = _is_open(location, text) and not _is_open(location, old)
        why = (
            "it refuses what the wish permits. Remove that,"
            if is_refused
            else "lines at its end could change what others mean:"
        )
        return Step(path, f"is unchanged, because {why} {_INSTEAD}", to_add=text)
    lines = len(text.splitlines())
    outcome = f"{lines} lines are added at its end, and its other lines still hold"
    return Step(path, outcome, (old + added[location]).encode())


def _text_of(path: Path) -> str | None:
    """Return the text of a file, with its line ends. None: it is no file of UTF-8."""
    try:
        return path.read_bytes().decode() if path.is_file() else None
    except (OSError, UnicodeDecodeError):
        return None


def _is_open(location: str, text: str) -> bool:
    """Return True if a file permits requests for an ordinary path to a crawler without a name."""
    site = Site.from_files(DEFAULT_ORIGIN, {location: text.encode()})
    return site.access(Agent(NOBODY), DEFAULT_ORIGIN + UNSPOKEN[0]).verdict is Verdict.ALLOW


def problems_of_texts(origin: str, texts: Mapping[str, str]) -> list[Problem]:
    """Return the problems of files, notes included. `texts`: path on the site -> text."""
    fetched = {path: Fetched(status=200, body=text.encode()) for path, text in texts.items()}
    sources = (SourceFile(path, origin + path, file) for path, file in fetched.items())
    return lint_site(SiteSource(origin, Site.from_files(origin, fetched), tuple(sources), ()))


def _new_problems(location: str, origin: str, old: str, text: str, added: str) -> bool:
    """Return True if the two texts in one file have problems that neither has alone.

    Among them are differences between other readers and comity."""
    before, alone, after = (
        {
            problem.message
            for problem in problems_of_texts(origin, {location: one})
            if problem.severity is not Severity.INFO or problem.rule == "comity.other-readers"
        }
        for one in (old, text, old + added)
    )
    return not after <= before | alone
