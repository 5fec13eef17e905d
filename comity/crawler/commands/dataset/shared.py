"""Arguments, the progress bar and tables that the actions of `comity dataset` share."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from comity.crawler.commands.base import process_count
from comity.crawler.commands.dataset import verify
from comity.dataset.execution.executors import EXECUTORS, PROCESSES
from comity.dataset.files.folders import open_dataset
from comity.gate.run.console import table


def add_datasets(parser: ArgumentParser, name: str, metavar: str, text: str) -> None:
    parser.add_argument(name, nargs="+", type=verify.place_argument, metavar=metavar, help=text)


def add_workers(parser: ArgumentParser) -> None:
    parser.add_argument("--workers", type=process_count, metavar="N", help=verify.WORKERS_HELP)
    parser.add_argument(
        "--executor", choices=EXECUTORS, default=PROCESSES, help=verify.EXECUTOR_HELP
    )


def row_count(text: str) -> int:
    """Return the number of rows to show."""
    if not text.isascii() or not text.isdigit() or not int(text):
        raise ArgumentTypeError(f"`{text}` is not a number of rows: write 1 or more")
    return int(text)


def split_uses(text: str) -> list[str]:
    """Return the uses of `--for`. Empty: the option is not given."""
    names = text.strip().lower().removesuffix(",").split(",") if text else []
    return [name.strip() for name in names]


@contextmanager
def progress(
    description: str, paths: Sequence[Path], *, passes: int = 1
) -> Iterator[Callable[[int], object]]:
    """Show a bar on a terminal, and nothing elsewhere."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    files = (file for path in paths if path.exists() for file in open_dataset(path).files)
    total = passes * sum(file.stat().st_size for file in files)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(description, total=total)
        yield lambda done: bar.advance(task, done)


def counting(title: str, texts: Sequence[str], numbers: Sequence[str]) -> Table:
    """Return a table with columns of texts, then columns of numbers."""
    rows = table(title, *texts, *numbers)
    for column in rows.columns[len(texts) :]:
        column.justify = "right"
    return rows
