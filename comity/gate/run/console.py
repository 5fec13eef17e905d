"""Print the output of commands and the progress of a crawl.

The output on a terminal is for people, elsewhere for programs. It never contains hidden characters
(SEC-4)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import IO, TextIO, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from comity.policies.syntax.printable import unhidden

UNLIMITED = 10**6  # columns


def open_console(*, stderr: bool = False) -> Console:
    """Return a console for standard output or standard error.

    A terminal keeps its width and colours. In a file or a pipe each row of a table is one line of
    plain text, of any length."""
    file = sys.stderr if stderr else sys.stdout
    return Console(file=file) if file.isatty() else plain_console(file)


def plain_console(file: TextIO) -> Console:
    """Return a console for a file or a pipe, as `open_console` does."""
    return Console(
        file=cast(IO[str], _Trimmed(file)),
        width=UNLIMITED,
        color_system=None,
        force_terminal=False,
        highlight=False,
    )


class _Trimmed:
    """A text file that drops spaces at the ends of lines, with which tables fill up columns."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.encoding = file.encoding

    def write(self, text: str) -> int:
        self._file.write(re.sub(r" +(?=\n)", "", text))
        return len(text)

    def flush(self) -> None:
        self._file.flush()


def escape_unencodable() -> None:
    """Let standard output escape the characters that its encoding does not have.

    On Windows, a pipe has an encoding of a few hundred characters."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def read_or_not() -> Iterator[None]:
    """Let the reader of a pipe stop reading, as `head` does.

    Later output is discarded, and the command goes on."""
    try:
        yield
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def table(title: str, *columns: str) -> Table:
    """Return a table without rows. Fill it with `add_row`."""
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
    """Add a row. Markup in its cells is printed as plain text."""
    rows.add_row(
        *(cell if isinstance(cell, Text) else Text(unhidden(str(cell), keep="")) for cell in cells)
    )


def line(text: str, style: str = "") -> Text:
    """Return a line of text for a console, without hidden characters and markup."""
    return Text(unhidden(text, keep=""), style)


def complain(text: str) -> None:
    """Print a text on standard error, without hidden characters."""
    print(unhidden(text), file=sys.stderr)  # noqa: T201


def say(text: str) -> None:
    """Print a text on standard output as it is."""
    with read_or_not():
        print(text)  # noqa: T201


def flush_output() -> None:
    """Flush standard output now.

    If its reader is gone, Python's own flush at the end of the process would report an error."""
    with read_or_not():
        sys.stdout.flush()
