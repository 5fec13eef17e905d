"""`comity`: the commands for those who write policies. `scrapy` has those for crawls."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module

from comity import __version__
from comity.crawler.console import complain, flush_output, read_or_not
from comity.dataset.records import DatasetError
from comity.policies import PolicyError

COMMANDS = ("lint", "explain", "languageserver", "workbench")  # modules of comity.authoring.commands
USAGE = 2  # exit status: wrong usage, or what was named cannot be had


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = ArgumentParser(prog="comity", description="Tools for those who write what crawlers may do on a site.")
    parser.add_argument("--version", action="version", version=f"comity {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    modules = {name: import_module(f"comity.authoring.commands.{name}") for name in COMMANDS}
    for name, module in modules.items():
        module.add_options(commands.add_parser(name, help=module.HELP, description=module.HELP))
    options = parser.parse_args(arguments)
    try:
        with read_or_not():
            status: int = modules[options.command].run(options)
        flush_output()
    except (PolicyError, DatasetError) as error:
        complain(f"comity {options.command}: {error}")
        return USAGE
    except KeyboardInterrupt:
        return 130
    return status
