"""Read the arguments of commands: a mistake ends the program with one line and status USAGE."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import NoReturn

from comity.gate.run.console import complain

USAGE = 2  # exit status


def stop_usage(program: str, message: str) -> NoReturn:
    """End the program because of wrong arguments. `program`: with the name of the command."""
    complain(f"{program}: {message.strip()}")
    raise SystemExit(USAGE)


class CommandParser(ArgumentParser):
    """A parser that explains a mistake in one line."""

    def error(self, message: str) -> NoReturn:
        stop_usage(self.prog, message)
