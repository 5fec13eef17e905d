"""`comity`: the commands for authors of policies. The commands for crawls belong to `scrapy`."""

from __future__ import annotations

import platform
import sys
from argparse import Action, ArgumentParser
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module, metadata
from typing import Any, NoReturn

from comity import __version__
from comity.authoring.commands import LINT
from comity.dataset.records import DatasetError
from comity.gate.run.console import complain, escape_unencodable, flush_output, read_or_not, say
from comity.policies import PolicyError

# The modules of comity.authoring.commands. Only the module of the chosen command is imported,
# because some imports take a second.
COMMANDS = {
    "lint": LINT,
    "explain": "explain the files of a site together",
    "rule": "explain a rule, with its reason, its remedy and an example",
    "profile": "print the settings that a profile (COMITY_PROFILE) sets, with the reasons",
    "languageserver": "help in an editor, by the Language Server Protocol",
    "workbench": "write policies in the browser, and see their effect",
}
# The packages in the output of --version, as far as they are installed.
PACKAGES = (
    *("Scrapy", "Twisted", "aiohttp", "lxml", "parsel", "turbohtml", "protego", "w3lib"),
    *("tldextract", "pyarrow", "warcio", "redis", "playwright"),
)
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
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="print the versions of comity and its parts"
    )
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


class _Version(Action):
    """Print the versions of comity and of the packages on which its behaviour depends."""

    def __call__(self, parser: ArgumentParser, *_: object) -> NoReturn:
        say(f"comity {__version__}")
        say(f"Python {platform.python_version()} on {platform.platform()}")
        for package in PACKAGES:
            with suppress(metadata.PackageNotFoundError):
                say(f"{package} {metadata.version(package)}")
        parser.exit()


def _module(command: str) -> Any:
    return import_module(f"comity.authoring.commands.{command}")
