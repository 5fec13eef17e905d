"""`comity completion`: print a script that completes the commands and options in a shell.

shtab writes the script from the parsers. No program runs at the Tab key."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import shtab

from comity.cli import named_comity
from comity.commands import COMMANDS
from comity.crawler.commands.crawl import READY
from comity.gate.run.arguments import CommandParser
from comity.gate.run.console import say

SHELLS = ("bash", "fish", "zsh")
FOLDERS = {"DIR", "FOLDER"}
FILES = {"FILE", "PATH", "DATASET", "IN"}
# Scrapy's parsers do not know the arguments of these commands that are not options.
POSITIONALS: dict[str, dict[str, Any]] = {
    "crawl": {"choices": READY},
    "policy": {"choices": ("history",)},
    "report": {"complete": shtab.FILE},
    "runspider": {"complete": shtab.FILE},
}


def add_options(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Write the output to the file where the shell looks for it: bash"
        " ~/.local/share/bash-completion/completions/comity; fish"
        " ~/.config/fish/completions/comity.fish; zsh a file named _comity in a folder of $fpath."
    )
    parser.add_argument("shell", choices=SHELLS, help=f"the shell: {', '.join(SHELLS)}")


def run(options: Namespace) -> int:
    parser = full_parser()
    for name, positional in POSITIONALS.items():
        complete = positional.get("complete")
        action = subparsers(parser)[name].add_argument(
            "argument", nargs="*", choices=positional.get("choices")
        )
        if complete:
            vars(action)["complete"] = complete
    for action in _actions(parser):
        words = set(str(action.metavar or "").split("|"))
        if words & FILES:
            vars(action)["complete"] = shtab.FILE
        elif words & FOLDERS:
            vars(action)["complete"] = shtab.DIRECTORY
    say(shtab.complete(parser, options.shell))
    return 0


def full_parser() -> ArgumentParser:
    """Return one parser that has all commands with their options. It imports all commands."""
    from scrapy.settings import Settings

    parser = CommandParser(prog="comity")
    parser.add_argument("--version", action="store_true", help="print versions")
    commands = parser.add_subparsers(metavar="COMMAND")
    for name, command in COMMANDS.items():
        of_command = commands.add_parser(
            name, help=command.summary, description=command.summary, conflict_handler="resolve"
        )
        module, _, class_name = command.target.partition(":")
        if not command.by_scrapy:
            import_module(module).add_options(of_command)
            continue
        with named_comity(name):
            of_scrapy = getattr(import_module(module), class_name)()
            of_scrapy.settings = Settings()
            of_command.usage = f"comity {name} {of_scrapy.syntax()}"
            of_command.epilog = of_scrapy.long_desc().removeprefix(command.summary).lstrip(". ")
            of_scrapy.add_options(of_command)
    return parser


def subparsers(parser: ArgumentParser) -> dict[str, ArgumentParser]:
    """Return the parsers of the commands of a parser, by name."""
    # argparse has no public name for these
    actions = (each for each in parser._actions if isinstance(each, _SubParsersAction))
    return next((dict(action.choices) for action in actions), {})


def _actions(parser: ArgumentParser) -> Iterator[Action]:
    """Yield the options and arguments of a parser and of its commands."""
    yield from parser._actions
    for subparser in subparsers(parser).values():
        yield from _actions(subparser)
