"""Put the files of a wish into the folder of a site that has files already.

    for step in plan(files, Path("site")):
        step.content    the new octets of step.path, or None if nothing is to be written

Nothing is overwritten. Lines are appended to a file if the judge shows that the file then means
what it meant, and the wish. Otherwise `step.by_hand` has the lines and their places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from comity.authoring.explaining import NOBODY, UNSPOKEN
from comity.authoring.lint import lint_site
from comity.authoring.problems import Problem
from comity.authoring.source import DEFAULT_ORIGIN, SiteSource, SourceFile
from comity.authoring.stated_wishes import has_form, texts_to_add
from comity.authoring.wishes.files import WishFiles
from comity.authoring.wishes.wish import ROBOTS
from comity.policies import Agent, Fetched, Site, Verdict
from comity.policies.answers.rule import Severity

# The places in `ByHand` that are no line of the file.
END = "at the end"
WHOLE = "the format has no lines to append: write a file that says both"
_ADD = "add the lines below, or replace it with --force"
_AGENT = re.compile(r"[ \t]*user-?agent[ \t]*:([^#]*)(?:#.*)?", re.IGNORECASE)
_LINE_END = re.compile(r"\r\n|\r|\n")


class ByHand(NamedTuple):
    """Lines that the publisher has to add to a file.

    Attributes:
        place: A place in the file: END, WHOLE, or "below line 3, `User-agent: *`".
        text: The lines.
    """

    place: str
    text: str


class Step(NamedTuple):
    """What happens to one file.

    Attributes:
        path: The file.
        outcome: The words for the user, after the name of the file.
        content: The new content of the file. None: it is not written.
        by_hand: The lines that the publisher has to add. () means none.
    """

    path: Path
    outcome: str
    content: bytes | None = None
    by_hand: tuple[ByHand, ...] = ()


def plan(files: WishFiles, folder: Path, origin: str, *, force: bool = False) -> list[Step]:
    """Return a step for each file of a wish, and write nothing.

    `origin`: the origin of the site. `force`: replace the files that exist."""
    return [
        _step(location, text, folder / location.removeprefix("/"), origin, force=force)
        for location, text in files.texts.items()
    ]


def _step(location: str, text: str, path: Path, origin: str, *, force: bool) -> Step:
    if force or not (path.exists() or path.is_symlink()):
        return Step(path, "written", text.encode())
    try:
        octets = path.read_bytes()
        old = octets.decode()
    except (OSError, UnicodeDecodeError):
        return Step(
            path, f"is no file that can be read as UTF-8: {_ADD}", by_hand=(ByHand(END, text),)
        )
    if has_form(location, text, old):
        return Step(path, "is unchanged, because the lines would change nothing in it")
    added = texts_to_add({location: text}, {location: old}, keeps_permissions=True)
    if added is None or _new_problems(location, origin, old, text, added[location]):
        is_refused = _is_open(location, text) and not _is_open(location, old)
        why = (
            "it refuses what the wish permits: remove that,"
            if is_refused
            else "lines at its end could change what others mean:"
        )
        by_hand = tuple(_by_hand(location, old, text))
        return Step(path, f"is unchanged, because {why} {_ADD}", by_hand=by_hand)
    lines = len(text.splitlines())
    outcome = f"{lines} lines are added at its end, and its other lines still hold"
    return Step(path, outcome, octets + added[location].encode())


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


def _by_hand(location: str, old: str, text: str) -> Iterator[ByHand]:
    """Yield the lines to add, with the line of the file below which they belong.

    A crawler with a group of its own does not read the group for `*`, so a line for everybody is
    repeated in each group, except in those of crawlers that the text names itself."""
    if location != ROBOTS:
        yield ByHand(WHOLE, text)
        return
    blocks = [block.splitlines() for block in text.rstrip("\n").split("\n\n")]
    named = {agent for block in blocks for agent in _agents(block)} - {"*"}
    # Several groups for the same crawlers are read as one, so lines are added to the first.
    groups = [(line, set(agents)) for agents, line in dict(reversed([*_groups(old)])).items()][::-1]
    for block in blocks:
        agents = _agents(block)
        if agents == {"*"} and any("*" in group for _, group in groups):
            of_block = [(line, group) for line, group in groups if not group <= named]
        else:
            of_block = [(line, group) for line, group in groups if agents and group == agents][:1]
        lines = [line for line in block if not _AGENT.fullmatch(line)]
        # These groups have rules already. An empty rule changes nothing beside other lines.
        lines = [line for line in lines if line != "Disallow:"] or lines
        for number, _ in of_block:
            place = f"below line {number}, `{_LINE_END.split(old)[number - 1].strip()}`"
            yield ByHand(place, _text(lines))
        if not of_block:
            yield ByHand(END, _text(block))


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _agents(lines: Iterable[str]) -> set[str]:
    return {match[1].strip().lower() for line in lines if (match := _AGENT.fullmatch(line))}


def _groups(text: str) -> Iterator[tuple[frozenset[str], int]]:
    """Yield the groups of a robots.txt: the agents, and the line of the last of them, from 1."""
    agents: set[str] = set()
    last = 0
    for number, line in enumerate(_LINE_END.split(text), 1):
        if match := _AGENT.fullmatch(line):
            agents, last = agents | {match[1].strip().lower()}, number
        elif agents and line.strip() and not line.lstrip().startswith("#"):
            yield frozenset(agents), last
            agents = set()
    if agents:
        yield frozenset(agents), last
