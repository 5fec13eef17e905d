"""`comity`: every command, with or without a Scrapy project.

`comity.commands` lists the commands. Only the module of the chosen command is imported, because
some imports take a second."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from importlib import import_module, metadata
from itertools import groupby
from typing import Any

from comity import __version__
from comity.commands import COMMANDS
from comity.dataset.records import DatasetError
from comity.gate.run.arguments import USAGE, CommandParser
from comity.gate.run.console import complain, escape_unencodable, flush_output, read_or_not, say
from comity.policies import PolicyError

# The packages in the output of --version, as far as they are installed.
PACKAGES = (
    *("Scrapy", "Twisted", "aiohttp", "lxml", "parsel", "turbohtml", "tinyhtml5", "protego"),
    *("w3lib", "tldextract", "pyarrow", "warcio", "redis", "playwright"),
)
INTERRUPTED = 130  # exit status


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit status.

    USAGE: the usage is wrong, or a file or site cannot be read."""
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # perhaps during the import of a command, which takes a second
        return INTERRUPTED


def _run(arguments: Sequence[str]) -> int:
    escape_unencodable()
    name, *rest = arguments or ["--help"]
    if name in ("-h", "--help"):
        say(usage())
    elif name == "--version":
        _print_versions()
    elif name not in COMMANDS:
        close = get_close_matches(name, COMMANDS, 1)
        remedy = f"did you mean `{close[0]}`?" if close else "`comity --help` lists the commands"
        kind = "option" if name.startswith("-") else "command"
        complain(f"comity: there is no {kind} `{name}`: {remedy}")
        return USAGE
    elif COMMANDS[name].by_scrapy:
        return _run_by_scrapy(name, *rest)
    else:
        return _run_module(name, rest)
    return 0


def _run_module(name: str, arguments: Sequence[str]) -> int:
    summary, module = COMMANDS[name].summary, _module(name)
    parser = CommandParser(prog=f"comity {name}", description=f"{summary}.")
    module.add_options(parser)
    options = parser.parse_args(arguments)
    try:
        with read_or_not():
            status: int = module.run(options)
        flush_output()
    except (PolicyError, DatasetError) as error:
        complain(f"{parser.prog}: {error}")
        return USAGE
    return status


def _run_by_scrapy(*arguments: str) -> int:
    """Run a command as `scrapy` does, within its project if there is one."""
    with named_comity(*arguments):
        try:
            import_module("scrapy.cmdline").execute()
        except SystemExit as ended:
            if isinstance(ended.code, str):
                raise
            return ended.code or 0
        except ModuleNotFoundError as error:
            module = os.environ.get("SCRAPY_SETTINGS_MODULE", "")
            if not error.name or not f"{module}.".startswith(f"{error.name}."):
                raise
            complain(
                f"comity: there is no module `{module}` with settings: write its name into"
                " scrapy.cfg, or into the environment variable SCRAPY_SETTINGS_MODULE"
            )
            return USAGE
    return 0


@contextmanager
def named_comity(*arguments: str) -> Iterator[None]:
    """Let the name of this program be `comity`, for Scrapy and its commands."""
    before, sys.argv = sys.argv, ["comity", *arguments]
    try:
        yield
    finally:
        sys.argv = before


def _module(name: str) -> Any:
    return import_module(COMMANDS[name].target)


def usage() -> str:
    """Return the help of `comity`: the commands in groups, with a line each."""
    width = max(map(len, COMMANDS))
    lines = [
        "usage: comity COMMAND [options] ...",
        "",
        "Crawl sites by their policies (robots.txt and others), or write such policies.",
    ]
    for group, names in groupby(COMMANDS, key=lambda name: COMMANDS[name].group):
        lines += ["", f"{group}:"]
        lines += [f"  {name:<{width}}  {COMMANDS[name].summary}" for name in names]
    return "\n".join(
        [
            *lines,
            "",
            "`comity COMMAND --help` shows the options of a command.",
            "`comity --version` prints the versions of comity and its parts.",
        ]
    )


def versions() -> dict[str, str]:
    """Return the versions of comity, Python and the packages that decide how comity behaves."""
    found = {"comity": __version__, "Python": platform.python_version()}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def _print_versions() -> None:
    for name, version in versions().items():
        system = f" on {platform.platform()}" if name == "Python" else ""
        say(f"{name} {version}{system}")
