"""The output of commands and of the progress: for people on a terminal, for programs elsewhere, and nothing hidden in it
(SEC-4)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TextIO, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from comity.policies.syntax.printable import unhidden

UNLIMITED = 10**6  # columns


def open_console(*, stderr: bool = False) -> Console:
    """The terminal with its width and colours. Where it is a file or a pipe, a row of a table is a line, however long, of nothing
    but text."""
    file = sys.stderr if stderr else sys.stdout
    return Console(file=file) if file.isatty() else plain_console(file)


def plain_console(file: TextIO) -> Console:
    """The console of `open_console` where there is no terminal."""
    return Console(
        file=cast(IO[str], _Trimmed(file)),
        width=UNLIMITED,
        color_system=None,
        force_terminal=False,
        highlight=False,
    )


class _Trimmed:
    """A text file without the spaces that fill up the columns of tables."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.encoding = file.encoding

    def write(self, text: str) -> int:
        self._file.write(re.sub(r" +(?=\n)", "", text))
        return len(text)

    def flush(self) -> None:
        self._file.flush()


@contextmanager
def read_or_not() -> Iterator[None]:
    """Let the reader have enough, as `head` has: what is printed after that goes nowhere, and the command goes on."""
    try:
        yield
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def table(title: str, *columns: str) -> Table:
    """A table for `add_row`."""
    table_ = Table(
        *columns,
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
    )
    for column in table_.columns:
        column.overflow = "fold"
    return table_


def add_row(rows: Table, *cells: object) -> None:
    """Add a row; nothing in its cells is taken for markup."""
    rows.add_row(
        *(cell if isinstance(cell, Text) else Text(unhidden(str(cell), keep="")) for cell in cells)
    )


def line(text: str, style: str = "") -> Text:
    return Text(unhidden(text, keep=""), style)


def complain(text: str) -> None:
    """Print on standard error."""
    print(unhidden(text), file=sys.stderr)  # noqa: T201


def say(text: str) -> None:
    with read_or_not():
        print(text)  # noqa: T201


def flush_output() -> None:
    """Send all of it on its way: nothing is left for the end of the process, when it would be an error."""
    with read_or_not():
        sys.stdout.flush()
