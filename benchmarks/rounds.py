"""Rounds in which several things take turns, and the table of what they took: what the benchmarks share."""

from __future__ import annotations

import gc
import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from time import process_time
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

WORDS = 60_000  # of the calibrating loop


def peak() -> int:
    """Return the KiB that this process had at most. Its `ru_maxrss` begins with that of the process which started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0])


class Rounds(NamedTuple):
    """The figures of one thing, one of each round."""

    figures: tuple[float, ...]

    @property
    def least(self) -> float:
        """What the machine does beside it only adds."""
        return min(self.figures)

    @property
    def median(self) -> float:
        return statistics.median(self.figures)

    def __str__(self) -> str:
        return f"{self.least:.2f} ({self.median:.2f})"

    def times(self, factor: float) -> Rounds:
        return Rounds(tuple(figure * factor for figure in self.figures))


@contextmanager
def alone() -> Iterator[None]:
    """What else is in memory is not looked through by the garbage collector meanwhile."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def in_turns(*works: Callable[[], object], rounds: int, times: int = 1) -> list[Rounds]:
    """The seconds of CPU that one call of each took, by round."""
    found: list[list[float]] = [[] for _ in works]
    with alone():
        for _ in range(rounds):
            for work, figures in zip(works, found, strict=True):
                began = process_time()
                for _ in range(times):
                    work()
                figures.append((process_time() - began) / times)
    return [Rounds(tuple(figures)) for figures in found]


def calibrated() -> float:
    """The seconds of CPU of a loop that is always the same: calls, texts and dicts, as in what is measured."""
    chance = random.Random(1)
    began = process_time()
    counts: dict[str, int] = {}
    for _ in range(WORDS):
        word = f"/{chance.randrange(5000)}/".strip("/")
        counts[word] = counts.get(word, 0) + len(word)
    assert sorted(counts, key=counts.__getitem__)
    return process_time() - began


def progress() -> Progress:
    """A line about what is under way, which goes when it is done, to standard error."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    table = Table(*columns, box=box.MARKDOWN)
    for row in rows:
        table.add_row(*row)
    text = StringIO()
    Console(file=text, width=1000).print(table)
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().strip().splitlines())
