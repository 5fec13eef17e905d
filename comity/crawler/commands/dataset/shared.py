"""Arguments, the progress bar and tables that the actions of `comity dataset` share."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from comity.crawler.commands.base import process_count
from comity.dataset.execution.executors import EXECUTORS, PROCESSES
from comity.dataset.files.folders import open_dataset
from comity.dataset.files.formats import Reader
from comity.dataset.files.places import path_of
from comity.dataset.records import DatasetError
from comity.gate.run.console import add_row, table

WORKERS_HELP = "processes (default: one a core if files are large)"


def place_argument(text: str) -> Path:
    """Return the path of a file or folder, also in a store."""
    try:
        return path_of(text)
    except DatasetError as error:
        raise ArgumentTypeError(str(error)) from None


def add_datasets(parser: ArgumentParser, name: str, metavar: str, text: str) -> None:
    parser.add_argument(name, nargs="+", type=place_argument, metavar=metavar, help=text)


def add_workers(parser: ArgumentParser, text: str = WORKERS_HELP) -> None:
    """Add --workers and --executor. `text`: the description of --workers."""
    parser.add_argument("--workers", type=process_count, metavar="N", help=text)
    parser.add_argument(
        "--executor",
        choices=EXECUTORS,
        default=PROCESSES,
        help="engine that does the work: processes of this machine, or an engine on the cluster"
        " that its settings name, or on this machine (default: %(default)s)",
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


def progress(
    description: str, paths: Sequence[Path], *, passes: int = 1
) -> AbstractContextManager[Callable[[int], object]]:
    """Show a bar for passes over the files of datasets (see `bar`)."""
    files = (file for path in paths if path.exists() for file in open_dataset(path).files)
    return bar(description, passes * sum(file.stat().st_size for file in files))


def octets(readers: Sequence[Reader]) -> int:
    """Return the number of octets of files."""
    return sum(reader.size for reader in readers)


@contextmanager
def bar(description: str, total: int | None) -> Iterator[Callable[[int], object]]:
    """Show a bar on a terminal, and nothing elsewhere.

    Give a function that is called with the number of octets that were done. `total`: the number of
    all octets. None: it is unknown."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as shown:
        task = shown.add_task(description, total=total)
        yield lambda done: shown.advance(task, done)


def counting(title: str, texts: Sequence[str], numbers: Sequence[str]) -> Table:
    """Return a table with columns of texts, then columns of numbers."""
    rows = table(title, *texts, *numbers)
    for column in rows.columns[len(texts) :]:
        column.justify = "right"
    return rows


def show_causes(title: str, causes: Counter[str], console: Console) -> None:
    if causes:
        rows = counting(title, ["why"], ["records"])
        for reason, number in causes.most_common():
            add_row(rows, reason, f"{number:,}")
        console.print(rows)


def missing_tags(causes: Collection[str]) -> Iterator[str]:
    """Yield remedies for tags that are not found."""
    if "no-tag" in causes:
        yield (
            "no-tag: name the place of the tags with --tag;"
            ' a crawl with COMITY_TAG = "off" writes none'
        )
    if "several-tags" in causes:
        yield "several-tags: name the field of the tag with --tag"
