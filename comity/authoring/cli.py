"""`comity`: the commands for authors of policies. The commands for crawls belong to `scrapy`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from comity import __version__
from comity.authoring.commands import LINT
from comity.dataset.records import DatasetError
from comity.gate.run.console import complain, escape_unencodable, flush_output, read_or_not
from comity.policies import PolicyError

# The modules of comity.authoring.commands. Only the module of the chosen command is imported,
# because some imports take a second.
COMMANDS = {
    "lint": LINT,
    "explain": "explain the files of a site together",
    "languageserver": "help in an editor, by the Language Server Protocol",
    "workbench": "write policies in the browser, and see their effect",
}
# Exit statuses. USAGE: the usage is wrong, or a file or site cannot be read.
USAGE, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit status."""
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # perhaps during the import of a command, which takes a second
        return INTERRUPTED


def _run(arguments: Sequence[str]) -> int:
    escape_unencodable()
    parser = ArgumentParser(
        prog="comity", description="Tools for authors of policy files for crawlers."
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
