"""`comity lint`: find the problems in the policy files of a site."""

from __future__ import annotations

import difflib
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from comity.authoring.checks.named_readers import NAMED_READERS
from comity.authoring.ignoring import RULE
from comity.authoring.lint import (
    KINDS,
    LintKind,
    kind_of,
    lint_file,
    lint_site,
    place_problems,
    right_place,
    site_folder,
)
from comity.authoring.problems import Problem
from comity.authoring.reports import FORMS
from comity.authoring.rules import select_rules
from comity.authoring.sites import load, remedy_for
from comity.authoring.source import DEFAULT_ORIGIN, SiteSource, SourceFile
from comity.dataset.files.replacement import Replacement
from comity.gate.run.console import complain, say
from comity.policies import Fetched, PolicyError, Site
from comity.policies.answers.rule import Severity
from comity.policies.formats.authoring import apply
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_of

STANDARD_INPUT = "-"
# The suffixes of files without a fixed path on a site.
OTHER_SUFFIXES = (".xml", ".rsl", ".json", ".txt")
# The rules that compare files and pages.
ACROSS_FILES = ("comity.contradiction", "comity.unmatched-element")
MAX_LISTED = 3  # the maximum number of files that one message lists
MAX_ROUNDS = 10  # the maximum number of rounds of fixes: a fix may make a further fix possible
PROBLEMS = 1  # the exit status if there are problems


class Selection(NamedTuple):
    """The rules to report: those of --select without those of --ignore.

    Attributes:
        rules: The rules of --select. None means all.
        ignored: The rules of --ignore.
    """

    rules: frozenset[str] | None
    ignored: frozenset[str]

    @classmethod
    def from_options(cls, options: Namespace) -> Selection:
        ignored = frozenset(chain.from_iterable(map(select_rules, options.ignore)))
        selected = frozenset(chain.from_iterable(map(select_rules, options.select)))
        return cls(selected if options.select else None, ignored)

    def filter(self, problems: Iterable[Problem]) -> list[Problem]:
        """Return the problems of the selected rules."""
        return [
            problem
            for problem in problems
            if (self.rules is None or problem.rule in self.rules)
            and problem.rule not in self.ignored
        ]


def add_options(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Exit status: 0 no problems, or only notes (severity info); 1 errors or warnings; "
        "2 wrong usage, or a target that cannot be read. `comity rule ID` explains a rule."
    )
    kinds = ", ".join(sorted(KINDS))
    option = parser.add_argument
    option(
        "targets",
        nargs="*",
        metavar="FILE|FOLDER|URL",
        help="what to check; - is standard input (default: this folder)",
    )
    option(
        "--as",
        dest="kind",
        metavar="NAME",
        choices=sorted(KINDS),
        help=f"kind of the files, if their names do not show it: {kinds}",
    )
    option(
        "--origin",
        metavar="URL",
        help=f"address of the site that the files are for (default: {DEFAULT_ORIGIN})",
    )
    option(
        "--sample",
        action="append",
        default=[],
        metavar="FILE|URL",
        help="a page of the site. Rules for parts of pages (ai.txt) have to find their parts in it;"
        " may be repeated",
    )
    option(
        "--skip-unknown",
        action="store_true",
        help="skip files that are no policy files (default: they are an error)",
    )
    option(
        "--select",
        action="append",
        default=[],
        metavar="RULE",
        help="report only this rule, as `comity rule` lists them, or the rules of a format, such"
        " as `robots`; may be repeated",
    )
    option(
        "--ignore",
        action="append",
        default=[],
        metavar="RULE",
        help="do not report this rule, or the rules of this format; may be repeated",
    )
    option(
        "--readers",
        default="",
        metavar="NAMES",
        help="report also what these readers of robots.txt read differently, separated by commas: "
        + ", ".join(NAMED_READERS),
    )
    option(
        "--format", choices=FORMS, default="text", help="form of the output (default: %(default)s)"
    )
    mend = parser.add_mutually_exclusive_group()
    mend.add_argument(
        "--fix",
        action="store_true",
        help="mend the files where no decision changes; standard input is printed mended",
    )
    mend.add_argument(
        "--diff", action="store_true", help="show what --fix would change, and change nothing"
    )
    option(
        "--unsafe-fixes",
        action="store_true",
        help="with --fix or --diff: also mend what changes a decision, such as a misspelled name",
    )


def run(options: Namespace) -> int:
    """Check or fix the targets. Return the exit status: 0, or PROBLEMS."""
    if options.unsafe_fixes and not (options.fix or options.diff):
        raise PolicyError("--unsafe-fixes has no effect alone: add --fix or --diff")
    selection = Selection.from_options(options)
    _readers(options)
    _check_origin(options.origin)
    samples = tuple(_sample(name, options.origin) for name in options.sample)
    targets = options.targets or ["."]
    changed = False
    for target in targets:
        _check_target(target)
        if options.fix or options.diff:
            for name in _files(target):
                changed |= _mend(name, options, selection)
    if options.diff:
        return PROBLEMS if changed else 0
    problems = selection.filter(_lint(targets, options, samples))
    if not (options.fix and STANDARD_INPUT in options.targets):
        FORMS[options.format](problems)
    return PROBLEMS if any(problem.severity is not Severity.INFO for problem in problems) else 0


def _check_origin(origin: str | None) -> None:
    """Raise PolicyError if --origin is no URL.

    Not every check of a target would notice this: some do not use the origin."""
    try:
        origin_of(DEFAULT_ORIGIN if origin is None else origin)
    except ValueError as error:
        raise PolicyError(f"--origin: {error}") from None


def _readers(options: Namespace) -> tuple[str, ...]:
    """Return the readers of --readers. PolicyError: one of them is unknown."""
    written = map(str.strip, options.readers.split(","))
    names = tuple(dict.fromkeys(filter(None, written)))
    for name in names:
        if name not in NAMED_READERS:
            *first, last = NAMED_READERS
            known = f"{', '.join(first)} or {last}"
            raise PolicyError(f"--readers: `{printable(name)}` is unknown. Write {known}.")
    return names


def _check_target(target: str) -> None:
    """Raise PolicyError if a target is no file, no folder, no URL and not `-`."""
    # `Path("")` is the current folder, and `Path.exists` raises if a name is too long.
    is_path = target != STANDARD_INPUT and "://" not in target
    if is_path and not os.path.exists(target):  # noqa: PTH110
        raise PolicyError(
            f"`{printable(os.fsencode(target))}` is not a file, a folder or a URL: "
            f"{remedy_for(target)}"
        )


def _lint(
    targets: Iterable[str], options: Namespace, samples: tuple[SourceFile, ...]
) -> list[Problem]:
    """Return the problems of the targets, in their order.

    A file is checked together with the other files in the folder of its site, if that is known."""
    problems: dict[str, list[Problem]] = {}
    files: dict[str, tuple[LintKind, bytes]] = {}
    folders: dict[Path, list[str]] = {}
    for target in dict.fromkeys(targets):
        if target != STANDARD_INPUT and not Path(target).is_file():
            problems[target] = _lint_site(target, options, samples)
            continue
        body = _octets(target)
        if kind := _kind(target, body, options):
            files[target] = kind, body
            if target != STANDARD_INPUT and (folder := site_folder(Path(target), kind)):
                folders.setdefault(folder, []).append(target)
    for folder, names in folders.items():
        problems |= _lint_in_folder(folder, names, options, samples)
    alone = [name for name in files if name not in problems]
    for name in alone:
        problems[name] = _lint_alone(
            name, *files[name], origin_of(options.origin or DEFAULT_ORIGIN), samples, options
        )
    if alone:
        complain(
            f"{_list_names(alone)}: checked without the other files and the pages of the site, "
            f"which {' and '.join(ACROSS_FILES)} need. "
            "Name the folder of the site to check these too."
        )
    return [*_told_once(problem for target in targets for problem in problems.get(target, ()))]


def _told_once(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Leave out repeated mistakes of a `.comity.toml`, which are the same for all of its files."""
    told: set[str] = set()
    for problem in problems:
        if problem.rule != RULE or problem.span or problem.message not in told:
            yield problem
        if problem.rule == RULE:
            told.add(problem.message)


def _list_names(names: Sequence[str]) -> str:
    """Return the first MAX_LISTED names in one text, and the number of the others."""
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return (
        ", ".join(
            "standard input" if name == STANDARD_INPUT else name for name in names[:MAX_LISTED]
        )
        + more
    )


def _lint_site(target: str, options: Namespace, samples: tuple[SourceFile, ...]) -> list[Problem]:
    """Return the problems of a folder or of a site by its URL."""
    source = load(target, origin=options.origin)
    for note in source.notes:
        complain(note)
    others = {
        name: kind for name in _others(target, source) if (kind := kind_of(name, _octets(name)))
    }
    if not source.files and not source.pages and not others:
        raise PolicyError(
            f"{target} has none of {', '.join(sorted(KINDS))}: "
            "name a file, or add --as with its kind"
        )
    problems = lint_site(source, samples, readers=_readers(options))
    places = dict(source.misplaced)
    for name, kind in others.items():
        problems += place_problems(name, places.get(name, ""))
        problems += lint_file(kind, name, _octets(name), origin=source.origin)
    return problems


def _lint_in_folder(
    folder: Path, names: Iterable[str], options: Namespace, samples: tuple[SourceFile, ...]
) -> dict[str, list[Problem]]:
    """Return the problems of files in the folder of a site, by name.

    Files that are not part of the site, and all files of a site that cannot be read, are left
    out."""
    is_relative = not any(map(os.path.isabs, names))
    try:
        source = load(
            os.path.relpath(folder) if is_relative else str(folder), origin=options.origin
        )
    except PolicyError as error:  # for example, another file of the site cannot be read
        complain(str(error))
        return {}
    for note in source.notes:
        complain(note)
    urls = {Path(file.name).resolve(): file.url for file in (*source.files, *source.pages)}
    url_of = {name: url for name in names if (url := urls.get(Path(name).resolve()))}
    of_url: dict[str, list[Problem]] = {}
    readers = _readers(options)
    for problem in lint_site(source, samples, only=frozenset(url_of.values()), readers=readers):
        of_url.setdefault(problem.finding.url, []).append(problem)
    return {
        name: [problem._replace(file=name) for problem in of_url.get(url, ())]
        for name, url in url_of.items()
    }


def _lint_alone(
    name: str,
    kind: LintKind,
    body: bytes,
    origin: str,
    samples: tuple[SourceFile, ...],
    options: Namespace,
) -> list[Problem]:
    """Return the problems of a file without the other files of its site."""
    if name == STANDARD_INPUT:
        name = "standard input"
    if not kind.path:
        return lint_file(kind, name, body, origin=origin)
    # If only --as says of which kind the file is, its name is not that of a published file.
    place = right_place(Path(name), kind) if kind_of(name, body) is kind else ""
    file = SourceFile(name, origin + kind.path, Fetched(status=200, body=body))
    site = Site.from_files(origin, {file.url: file.fetched})
    return place_problems(name, place) + lint_site(
        SiteSource(origin, site, (file,), ()), samples, readers=_readers(options)
    )


def _kind(target: str, body: bytes, options: Namespace) -> LintKind | None:
    """Return the kind of a file.

    None means that it has none of the kinds, and --skip-unknown is given."""
    if options.kind:
        return KINDS[options.kind]
    kind = kind_of(target, body) if target != STANDARD_INPUT else None
    if kind is None and not options.skip_unknown:
        raise PolicyError(
            f"{target}: its kind is not known: add --as with one of {', '.join(sorted(KINDS))}"
        )
    return kind


def _octets(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(name).read_bytes()
    except OSError as error:
        raise PolicyError(
            f"{printable(os.fsencode(name))} cannot be read: {error.strerror}"
        ) from None


def _files(target: str) -> list[str]:
    """Return the names of a target's files on this machine, including files of no known kind."""
    if target == STANDARD_INPUT or Path(target).is_file():
        return [target]
    if "://" in target:
        raise PolicyError(f"{target} cannot be fixed by its URL: name the folder with its files")
    source = load(target)
    return [*(file.name for file in (*source.files, *source.pages)), *_others(target, source)]


def _others(target: str, source: SiteSource) -> list[str]:
    """Return the other files that may be policy files in a folder.

    These are files at its top with one of OTHER_SUFFIXES, and policy files that are not at their
    place."""
    if not Path(target).is_dir():
        return []
    site_files = {os.path.realpath(file.name) for file in (*source.files, *source.pages)}
    paths = [
        path
        for path in sorted(Path(target).iterdir())
        if path.suffix in OTHER_SUFFIXES and path.is_file()
    ]
    paths += (Path(name) for name, _ in source.misplaced)
    return [str(path) for path in dict.fromkeys(paths) if os.path.realpath(path) not in site_files]


def _mend(name: str, options: Namespace, selection: Selection) -> bool:
    """Fix a file, or show the changes. Return True if there are changes."""
    before = body = _octets(name)
    kind = _kind(name, body, options) if name in options.targets else kind_of(name, body)
    if kind is None:
        return False
    for number in range(MAX_ROUNDS):
        problems = selection.filter(
            lint_file(kind, name, body, origin=options.origin or DEFAULT_ORIGIN)
        )
        # A fix that changes decisions is a guess. No other guess is built on it.
        is_unsafe_permitted = options.unsafe_fixes and number == 0
        fixes = (
            fix
            for problem in problems
            if (fix := problem.fix) and (is_unsafe_permitted or not fix.changes_decisions)
        )
        mended, _ = apply(body, fixes)
        if mended == body:
            break
        body = mended
    if options.diff:
        _show_difference(name, before, body)
    elif name == STANDARD_INPUT:
        sys.stdout.buffer.write(body)
    elif body != before:
        with Replacement(Path(name)) as file:
            file.write(body)
    return body != before


def _show_difference(name: str, before: bytes, after: bytes) -> None:
    old, new = (
        body.decode("utf-8", "replace").splitlines(keepends=True) for body in (before, after)
    )
    for difference in difflib.unified_diff(old, new, fromfile=name, tofile=name):
        say(difference.rstrip("\r\n"))


def _sample(name: str, origin: str | None) -> SourceFile:
    if "://" in name:
        source = load(name)
        for note in source.notes:
            complain(note)
        if not source.pages:
            raise PolicyError(f"the sample {name} cannot be fetched")
        return source.pages[0]
    headers = ((b"Content-Type", b"text/html; charset=utf-8"),)
    return SourceFile(
        name,
        f"{origin or DEFAULT_ORIGIN}/",
        Fetched(status=200, headers=headers, body=_octets(name)),
    )
