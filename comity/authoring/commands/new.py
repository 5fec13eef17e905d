"""`comity new "no training"`: write the files for a wish."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from comity.authoring.adding import Step, plan, problems_of_texts
from comity.authoring.problems import Problem
from comity.authoring.source import DEFAULT_ORIGIN
from comity.authoring.wishes import WISHES
from comity.authoring.wishes.files import WishFiles, write_files
from comity.authoring.wishes.matching import find_wish
from comity.authoring.wishes.readers import readers_of
from comity.authoring.wishes.wish import ELEMENT, FORMATS, Form, Parameter, Wish
from comity.dataset.files.replacement import Replacement
from comity.dataset.records import DatasetError
from comity.gate.run.console import add_row, complain, open_console, say, table
from comity.policies import PolicyError
from comity.policies.answers.rule import Severity
from comity.policies.syntax.printable import printable

BY_HAND = 1  # exit status: there are lines that have to be added by hand
VERSION = 1  # of the JSON
_PARAMETERS = {parameter.name: parameter for wish in WISHES for parameter in wish.parameters}
_METAVARS = {"crawlers": "NAME,NAME", "path": "/PATH/", "origin": "URL"}


def add_options(parser: ArgumentParser) -> None:
    parser.epilog = (
        'Values may be in the words: comity new "one request each 5 seconds". '
        "Exit status: 0 all is printed or written; 1 a file of --out needs lines that you have to "
        "add; 2 wrong usage, an unknown wish, or a folder that cannot be written."
    )
    parser.add_argument(
        "wish",
        nargs="?",
        metavar="WISH",
        help='the wish in plain words, such as "no training". Without it, all wishes are listed',
    )
    parser.add_argument(
        "--formats",
        metavar="NAME,NAME",
        help="formats to write. The default depends on the wish; `comity new` lists it. All "
        f"formats: {', '.join(FORMATS)}",
    )
    for parameter in _PARAMETERS.values():
        parser.add_argument(
            f"--{parameter.name}",
            metavar=_METAVARS.get(parameter.name, "N"),
            help=_help_of(parameter),
        )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="write into this folder of a site. Nothing is overwritten: lines are added at the end "
        "of a robots.txt that exists, or printed for you to add (default: print all)",
    )
    parser.add_argument(
        "--force", action="store_true", help="with --out: replace the files that exist"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def _help_of(parameter: Parameter) -> str:
    """Return the help for an option: the meaning of its value, and the wishes that have it."""
    titles = ", ".join(f"`{wish.title}`" for wish in WISHES if parameter in wish.parameters)
    return f"{parameter.summary}, for {titles}"


def run(options: Namespace) -> int:
    """Print or write the files. Return the exit status: 0, or BY_HAND.

    PolicyError: the wish, a format or a value is unknown, or a file cannot be written."""
    given = {name: getattr(options, name) for name in _PARAMETERS}
    if options.wish is None:
        if any((*given.values(), options.formats, options.out, options.force)):
            raise PolicyError('the options need a wish: write it first, such as "no training"')
        _list(is_json=options.json)
        return 0
    if options.force and options.out is None:
        raise PolicyError("--force needs --out: write --out DIR, or leave out --force")
    wish, values = find_wish(options.wish)
    values |= {name: value for name, value in given.items() if value is not None}
    formats = [name for name in (options.formats or "").split(",") if name.strip()]
    files = write_files(wish, values, formats)
    problems = _problems(files)
    steps: list[Step] = []
    if options.out:
        origin = files.values.get("origin", DEFAULT_ORIGIN)
        steps = plan(files, Path(options.out), origin, force=options.force)
        for step in steps:
            _write(step)
    if options.json:
        say(json.dumps(_as_json(files, problems, steps), indent=2))
    else:
        _show(files, is_short=bool(steps))
        for problem in problems:
            complain(f"comity new: {problem.severity.value}: {problem.message} [{problem.rule}]")
        for step in steps:
            _show_step(step)
    return BY_HAND if any(step.to_add for step in steps) else 0


def _problems(files: WishFiles) -> list[Problem]:
    """Return the problems of the files, such as contradictions between two formats."""
    origin = files.values.get("origin", DEFAULT_ORIGIN)
    problems = problems_of_texts(origin, files.texts)
    return [problem for problem in problems if problem.severity is not Severity.INFO]


def _write(step: Step) -> None:
    """Write a file completely, or not at all."""
    if step.content is None:
        return
    try:
        step.path.parent.mkdir(parents=True, exist_ok=True)
        with Replacement(step.path) as file:
            file.write(step.content)
    except DatasetError as error:
        raise PolicyError(str(error)) from None
    except OSError as error:
        raise PolicyError(f"{_name(step.path)} cannot be written: {error.strerror}") from None


def _name(path: Path) -> str:
    return printable(os.fsencode(path))


def _show_step(step: Step) -> None:
    """Print what happened to a file, and the lines to add by hand."""
    if not step.to_add:
        say(f"{_name(step.path)}: {step.outcome}")
        return
    complain(f"comity new: {_name(step.path)} {step.outcome}")
    say(f"To put into {_name(step.path)}:\n\n{step.to_add}")
    if step.path.name == "robots.txt":
        say(
            "A crawler reads only the groups with its name, or else those for `*`. So put a line"
            " into each group whose crawlers should obey it. `comity explain` shows what the files"
            " mean then."
        )


def _show(files: WishFiles, *, is_short: bool) -> None:
    """Print the files, with a sentence about each format. `is_short`: without texts of files."""
    say(f"{files.wish.title}: {files.wish.summary}")
    for form in files.forms:
        say(f"\n{form.format}: {form.remark}")
        for reader in readers_of(form):
            source = f" ({reader.source})" if reader.source else ""
            say(f"  {reader.statement}{source}.")
    if not is_short:
        for location, text in files.texts.items():
            say(f"\n{location}:\n\n{text.rstrip()}")
    for location, text in files.others:
        place = "In the head of each page" if location == ELEMENT else "As a field of each response"
        say(f"\n{place}:\n\n{text.rstrip()}")
    say("")


def _list(*, is_json: bool) -> None:
    if is_json:
        say(
            json.dumps(
                {"version": VERSION, "wishes": [_wish_as_json(one) for one in WISHES]}, indent=2
            )
        )
        return
    rows = table("The wishes", "wish", "meaning", "formats without --formats")
    for wish in WISHES:
        add_row(rows, wish.title, wish.summary, ", ".join(wish.defaults))
    open_console().print(rows)


def _wish_as_json(wish: Wish) -> dict[str, Any]:
    return {
        "name": wish.name,
        "title": wish.title,
        "summary": wish.summary,
        "phrases": list(wish.phrases),
        "parameters": [parameter._asdict() for parameter in wish.parameters],
        "defaults": list(wish.defaults),
        "formats": list(dict.fromkeys(form.format for form in wish.forms)),
        "unsaid": {unsaid.format: unsaid.reason for unsaid in wish.unsaid},
    }


def _as_json(files: WishFiles, problems: list[Problem], steps: list[Step]) -> dict[str, Any]:
    return {
        "version": VERSION,
        "wish": _wish_as_json(files.wish),
        "values": dict(files.values),
        "forms": [_form_as_json(form) for form in files.forms],
        "files": dict(files.texts),
        "others": [{"place": place, "text": text} for place, text in files.others],
        "problems": [
            {"rule": problem.rule, "message": problem.message, "file": problem.file}
            for problem in problems
        ],
        "written": [str(step.path) for step in steps if step.content is not None],
        "existing": [str(step.path) for step in steps if step.content is None],
        "to_add": [{"file": str(step.path), "text": step.to_add} for step in steps if step.to_add],
    }


def _form_as_json(form: Form) -> dict[str, Any]:
    return {
        "format": form.format,
        "remark": form.remark,
        "readers": [reader._asdict() for reader in readers_of(form)],
    }
