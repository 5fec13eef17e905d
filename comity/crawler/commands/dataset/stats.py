"""`comity dataset stats DATASET`: how many records may be used, and why others may not."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.text import Text
from scrapy.settings import BaseSettings

from comity.crawler.commands import tag_option
from comity.crawler.commands.dataset.shared import (
    add_datasets,
    add_workers,
    counting,
    missing_tags,
    progress,
    row_count,
    show_causes,
    split_uses,
)
from comity.dataset import stats as statistics
from comity.dataset.counts.use_counts import BY, MONTH, ORIGIN, RULE, USE, Group, Tally, UseCounts
from comity.dataset.files.places import path_of
from comity.dataset.job import JobOptions
from comity.gate.run.console import add_row, flush_output, open_console, say
from comity.policies.answers.rule import RULES
from comity.policies.tag import BASIC_USES

DONE = 0
TOP = 10  # groups that are shown by default
OVERVIEW = 5  # origins and months in the overview
USES = 3  # uses with a column in the overview
EXPIRED = "the permission has ended"
NUMBERS = ["may be used", "may not", "ends in 30 days"]


def add_arguments(parser: ArgumentParser) -> None:
    add_datasets(
        parser,
        "datasets",
        "DATASET",
        "JSON Lines, CSV, Parquet, Arrow IPC, WARC or .tar; a folder: all in it",
    )
    parser.add_argument(
        "--for",
        dest="uses",
        default="",
        metavar="USE[,USE]",
        help="count these uses (default: all in tags)",
    )
    parser.add_argument(
        "--by",
        choices=BY,
        default=USE,
        help="count by use, by the rule that decides, by the site's origin, or by the month of the"
        " fetch (default: %(default)s)",
    )
    parser.add_argument(
        "--top",
        type=row_count,
        default=TOP,
        metavar="N",
        help="show N rules, origins or months (default: %(default)s)",
    )
    parser.add_argument(
        "-o",
        dest="output",
        metavar="FILE",
        help="write all rows: FILE.parquet, FILE.csv or FILE.json",
    )
    parser.add_argument("--json", action="store_true", help="print all rows as JSON")
    tag_option.add_argument(parser)
    add_workers(parser)


def run(opts: Namespace, settings: BaseSettings, _: Any) -> int:
    """Count the uses, and return the exit status.

    DatasetError or PolicyError: an argument is invalid, or a file cannot be read."""
    tags = tag_option.tag_source(opts, settings)
    output = path_of(opts.output) if opts.output else None
    if output:
        statistics.check_output(output, opts.datasets, tags)
    is_overview = opts.by == USE and not opts.json
    with progress("counting", opts.datasets) as advance:
        counts = statistics.stats(
            opts.datasets,
            datetime.now(UTC),
            JobOptions(opts.workers, advance, executor=opts.executor),
            tags,
            by=opts.by,
            also=(RULE, ORIGIN, MONTH) if is_overview else (),
            uses=split_uses(opts.uses),
        )
    if output:
        statistics.write(counts, output)
    if opts.json:
        say(json.dumps(counts.as_json(), indent=2))
        flush_output()
    else:
        show(counts, opts.top, open_console())
    return DONE


def show(counts: UseCounts, top: int, console: Console) -> None:
    """Print the counts for people, the largest groups first, and the totals."""
    if counts.by == USE:
        _show_overview(counts, top, console)
    else:
        _show_groups(counts, top, console)
    show_causes(
        "Records that permit nothing, because their tags are missing or unreadable",
        counts.causes,
        console,
    )
    for remedy in missing_tags(counts.causes):
        console.print(Text(remedy))
    about = "" if counts.origins.is_exact else "about "
    origins = f"{about}{counts.origins.number:,} origins"
    console.print(
        f"{counts.records:,} records of {origins}, {counts.unreadable:,} that cannot be read"
    )


def _show_overview(counts: UseCounts, top: int, console: Console) -> None:
    rows = counting("What the records may be used for", ["use"], NUMBERS)
    uses = sorted(
        counts.tables[USE].items(), key=lambda use: (-use[1].uses[use[0]].allowed, use[0])
    )
    for use, group in uses:
        add_row(rows, use, *_numbers(group.uses[use]))
    console.print(rows)
    if counts.refusing:
        rows = counting("Why they may not be used", ["rule", "why"], ["times"])
        for rule, number in counts.refusing.most_common(top):
            add_row(rows, rule, meaning(rule), f"{number:,}")
        console.print(rows)
    if len(counts.refusing) > top:
        console.print(
            f"{top:,} of {len(counts.refusing):,} rules: --top N shows more,"
            " --by rule shows the uses of each rule"
        )
    # The five basic uses are in every tag, so the others are those that the set is for.
    names = sorted((use for use, _ in uses), key=lambda use: (use in BASIC_USES, use))[:USES]
    _show_places("The largest origins", counts, ORIGIN, names, console)
    _show_places("The months in which the pages were fetched", counts, MONTH, names, console)


def _show_places(
    title: str, counts: UseCounts, by: str, uses: Sequence[str], console: Console
) -> None:
    """Print the largest origins or months, and their records that permit these uses."""
    groups = counts.tables[by]
    rows = counting(title, [by], ["records", *(f"{use}: may be used" for use in uses)])
    for name, group in groups.largest(OVERVIEW, lambda group: group.records):
        add_row(rows, name or f"no {by}", f"{group.records:,}", *_allowed(group, uses))
    console.print(rows)
    number = sum(1 for _ in groups.items())
    if number > OVERVIEW:
        console.print(f"{OVERVIEW} of {number:,} {by}s: --by {by} shows more")


def _allowed(group: Group, uses: Sequence[str]) -> list[str]:
    return [f"{group.uses[use].allowed if use in group.uses else 0:,}" for use in uses]


def _show_groups(counts: UseCounts, top: int, console: Console) -> None:
    groups = [*counts.sorted_groups()]
    rows = counting("What the records may be used for", [counts.by, "use"], NUMBERS)
    for group, uses in groups[:top]:
        label = group or f"no {counts.by}"
        for use, tally in sorted(uses.items()):
            add_row(rows, label, use, *_numbers(tally))
            label = ""
    console.print(rows)
    if len(groups) > top:
        console.print(
            f"{top:,} of {len(groups):,} {counts.by}s: --top N shows more, -o FILE writes all"
        )


def _numbers(tally: Tally) -> tuple[str, str, Text]:
    soon = Text(f"{tally.expiring:,}", "yellow" if tally.expiring else "")
    return f"{tally.allowed:,}", f"{tally.refused:,}", soon


def meaning(rule: str) -> str:
    """Return a rule in words."""
    return RULES[rule].summary if rule in RULES else EXPIRED
