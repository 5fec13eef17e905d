"""`comity`: the commands for those who write policies. `scrapy` has those for crawls."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from comity import __version__
from comity.dataset.records import DatasetError
from comity.gate.run.console import complain, flush_output, read_or_not
from comity.policies import PolicyError

COMMANDS = {  # modules of comity.authoring.commands; the one that is named is imported, as some take a second
    "lint": "find what is wrong with robots.txt, ai.txt and other policy files",
    "explain": "say what the files of a site mean together",
    "languageserver": "answer an editor by the Language Server Protocol",
    "workbench": "write policies in the browser, and see what they mean",
}
USAGE, INTERRUPTED = 2, 130  # exit statuses; USAGE: wrong usage, or what was named cannot be had


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit status."""
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # also while a command is imported, which takes a second
        return INTERRUPTED


def _run(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(
        prog="comity", description="Tools for those who write what crawlers may do on a site."
    )
    parser.add_argument("--version", action="version", version=f"comity {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        of_command = commands.add_parser(name, help=summary, description=summary)
        if name in arguments:
            _module(name).add_options(of_command)
    options = parser.parse_args(arguments)
    try:
        with read_or_not():
            status: int = _module(options.command).run(options)
        flush_output()
    except (PolicyError, DatasetError) as error:
        complain(f"comity {options.command}: {error}")
        return USAGE
    return status


def _module(command: str) -> Any:
    return import_module(f"comity.authoring.commands.{command}")
