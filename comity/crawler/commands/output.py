"""What commands print for programs to read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def read_or_not() -> Iterator[None]:
    """Whoever reads it may have enough, as `head` has: what is printed after that goes nowhere, and the command goes on."""
    try:
        yield
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def say(text: str) -> None:
    with read_or_not():
        print(text)  # noqa: T201


def said() -> None:
    """All of it is on its way: nothing is left for the end of the process, when it would be an error."""
    with read_or_not():
        sys.stdout.flush()
