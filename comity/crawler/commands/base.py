"""The base of the commands that Scrapy runs: the layout of their help, and types of arguments.

Both `comity` and `scrapy` have these commands."""

from __future__ import annotations

import sys
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from scrapy.commands import ScrapyCommand, ScrapyHelpFormatter
from scrapy.settings import BaseSettings

COMITY = "comity"  # the name of a program


class HelpFormatter(ScrapyHelpFormatter):
    """Scrapy's layout without headings inside an option's help.

    Scrapy takes each line that ends with a colon for a heading. `(default:` is such a line if the
    width of the terminal breaks the text there."""

    _of_option = False

    def _format_action(self, action: Action) -> str:
        was_of_option, self._of_option = self._of_option, True
        text = super()._format_action(action)
        self._of_option = was_of_option
        return text

    def format_part_strings(self, part_strings: list[str]) -> list[str]:
        return part_strings if self._of_option else super().format_part_strings(part_strings)


class BaseCommand(ScrapyCommand):
    """A command that needs no project."""

    requires_project = False

    def add_options(self, parser: ArgumentParser) -> None:
        prepare(parser)
        super().add_options(parser)


def prepare(parser: ArgumentParser) -> None:
    """Prepare the parser that Scrapy has made for a command of comity."""
    import_formats()
    from comity.gate.run.console import escape_unencodable

    escape_unencodable()
    name_program(parser)
    parser.formatter_class = HelpFormatter


def program_name() -> str:
    """Return the name of the program that runs the command: COMITY or "scrapy"."""
    return COMITY if Path(sys.argv[0]).stem == COMITY else "scrapy"


def name_program(parser: ArgumentParser) -> None:
    """Let the usage begin with the program, and let a mistake end it with one line.

    `parser`: the parser that Scrapy has made. Its usage begins with "scrapy" and the command."""
    from comity.gate.run.arguments import stop_usage

    assert parser.usage
    _, name, *syntax = parser.usage.split(" ", 2)
    parser.prog = f"{program_name()} {name}"
    parser.usage = " ".join([parser.prog, *syntax])
    vars(parser)["error"] = partial(stop_usage, parser.prog)


def import_formats() -> None:
    """Import the formats of policies.

    If a format of another package is faulty, end the program with one line that names it."""
    try:
        import comity.policies  # noqa: F401
    except ValueError as error:  # a PolicyError, but the failed package cannot give the class
        raise SystemExit(f"comity: {error}") from None


def unknown_option(arguments: Iterable[str]) -> str:
    """Return the first argument that is an option which the command does not have, or ""."""
    return next((argument for argument in arguments if argument.startswith("-")), "")


def add_opt_out(parser: ArgumentParser) -> None:
    """Add the option for registries of opt-outs."""
    parser.add_argument(
        "--opt-out",
        action="append",
        default=[],
        metavar="FILE",
        help="registry of domains, URLs or SHA-256 of works that may not be used: one in a line,"
        " .csv or .jsonl; may be repeated (in addition to COMITY_OPT_OUT)",
    )


def set_opt_out(settings: BaseSettings, opts: Namespace) -> None:
    """Add the registries of the option to those of the setting."""
    if opts.opt_out:
        paths = [*settings.getlist("COMITY_OPT_OUT"), *opts.opt_out]
        settings.set("COMITY_OPT_OUT", paths, priority="cmdline")


def process_count(text: str) -> int:
    """Return the number of processes that an option gives."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise ArgumentTypeError(f"`{text}` is not a number of processes: write 1 or more")
    return number
