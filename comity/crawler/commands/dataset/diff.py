"""`comity dataset diff OLD NEW`: the uses that records gained or lost, and the changed files."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.text import Text
from scrapy.settings import BaseSettings

from comity.crawler.commands import tag_option
from comity.crawler.commands.dataset.shared import (
    add_workers,
    counting,
    place_argument,
    progress,
    row_count,
    split_uses,
)
from comity.dataset.diff.difference import (
    GAINED,
    Change,
    Difference,
    FileChanges,
    Side,
    compare,
)
from comity.dataset.diff.facts import Statement
from comity.dataset.job import JobOptions
from comity.gate.run.console import add_row, flush_output, line, open_console, say

SAME, LOSSES = 0, 1
TOP = 10  # changed files that are shown
LINES = 3  # lines of a changed file that are shown
KINDS = {
    "changed": "the file changed",
    "new": "the file is new",
    "gone": "the file is gone",
    "unchanged": "the file did not change: the sets were tagged in different ways",
}


def add_arguments(parser: ArgumentParser) -> None:
    for name, text in (("old", "the earlier dataset"), ("new", "the later dataset")):
        parser.add_argument(
            name,
            type=place_argument,
            metavar=name.upper(),
            help=f"{text}: JSON Lines, Parquet or WARC; a folder: all in it",
        )
    parser.add_argument(
        "--for",
        dest="uses",
        default="",
        metavar="USE[,USE]",
        help="compare these uses (default: all in tags)",
    )
    parser.add_argument(
        "--top",
        type=row_count,
        default=TOP,
        metavar="N",
        help="show N changed files (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print all changes as JSON")
    tag_option.add_argument(parser)
    add_workers(parser)


def run(opts: Namespace, settings: BaseSettings, _: Any) -> int:
    """Compare the datasets, and return the exit status.

    DatasetError or PolicyError: an argument is invalid, or a file cannot be read."""
    tags = tag_option.tag_source(opts, settings)
    with progress("comparing", [opts.old, opts.new]) as advance:
        options = JobOptions(opts.workers, advance, executor=opts.executor)
        difference = compare([opts.old], [opts.new], options, tags, uses=split_uses(opts.uses))
    if opts.json:
        for text in _json_lines(difference):
            say(text)
        flush_output()
    else:
        show(difference, opts.top, open_console())
    return LOSSES if difference.is_loss else SAME


def _json_lines(difference: Difference) -> Iterator[str]:
    """Yield the lines of a JSON object. Each file is one line, to save memory."""
    head = json.dumps(difference.totals(), indent=2).removesuffix("\n}")
    end = f'{head},\n  "files": ['
    for file in difference.files_as_json():
        yield end
        end = f"    {json.dumps(file)},"
    yield f"{end.removesuffix(',')}\n  ]\n}}"


def show(difference: Difference, top: int, console: Console) -> None:
    """Print the uses and the changed files, those of most records first."""
    rows = counting(
        "Records by use", ["use"], ["gained it", "lost it", "permit it in both", "in neither"]
    )
    for name, use in difference.sorted_uses():
        numbers = (use.gained, use.lost, use.both, use.neither)
        styles = ("green" if use.gained else "", "red" if use.lost else "", "", "")
        cells = (Text(f"{number:,}", style) for number, style in zip(numbers, styles, strict=True))
        add_row(rows, name, *cells)
    if difference.uses:
        console.print(rows)
    files = difference.largest_files(top)
    if files:
        console.print(Text("What changed, the most records first", "bold"))
    for change, changes in files:
        _show_file(change, changes, console)
    number = sum(1 for _ in difference.files.items())
    if number > top:
        console.print(f"{top:,} of {number:,} changes: --top N shows more, --json prints all")
    for side, other in zip(difference.sides, ("later", "earlier"), strict=True):
        _show_side(side, other, console)
    agents = [[name for name, _ in side.agents.most_common() if name] for side in difference.sides]
    if all(agents) and set(agents[0]) != set(agents[1]):
        old, new = (", ".join(names[:5]) for names in agents)
        console.print(line(f"The tags are for different crawlers: {old}, then {new}", "yellow"))
    console.print(
        f"{difference.compared:,} records compared, {difference.changed:,} gained or lost a use"
    )


def _show_file(change: Change, changes: FileChanges, console: Console) -> None:
    source = change.url or change.part or "tags that cannot be read"
    kind = f", {KINDS[change.kind]}" if change.kind else ""
    console.print(line(f"{source}: {changes.records:,} records{kind}", "bold"))
    if change.is_file:
        copies = (
            f"{sha256[:12] or 'no file'}{f' of {dates.first[:10]}' if dates.first else ''}"
            for sha256, dates in zip((change.old, change.new), changes.dates, strict=True)
        )
        console.print(line(f"    copies: {' -> '.join(copies)}"))
    uses = (
        f"{use} {direction} by {count:,}" for (use, direction), count in changes.uses.most_common()
    )
    console.print(line(f"    {', '.join(uses)}"))
    for (direction, before, after), _ in changes.lines.most_common(LINES):
        sign = "+" if direction == GAINED else "-"
        console.print(line(f"    {sign} {_said(before)} -> {_said(after)}"))
    if changes.other_lines or len(changes.lines) > LINES:
        console.print("      and by other lines")
    for url in changes.examples:
        console.print(line(f"    e.g. {url}"))


def _said(statement: Statement) -> str:
    """Return a statement as a reader finds it in its file."""
    place = f" line {statement.line}" if statement.line else ""
    text = f" `{statement.text}`" if statement.text else ""
    return f"{statement.rule}{place}{text}"


def _show_side(side: Side, other: str, console: Console) -> None:
    counts = [
        (side.only, f"are not in the {other} set"),
        (side.unnamed, "have no URL, sha256 or id, so they are not compared"),
        (side.unreadable, "cannot be read"),
    ]
    told = [f"{number:,} {text}" for number, text in counts if number]
    rest = f": {'; '.join(told)}" if told else ""
    console.print(line(f"{', '.join(side.paths)}: {side.records:,} records{rest}"))
