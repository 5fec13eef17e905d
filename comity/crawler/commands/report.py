"""`comity report`: report on a crawl or on the permissions of items, or compare two reports."""

from __future__ import annotations

import asyncio
import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn
from scrapy.exceptions import UsageError

from comity.cluster.state import open_state
from comity.crawler.commands import listed, tag_option
from comity.crawler.commands.base import process_count, program_name, unknown_option
from comity.dataset.job import JobOptions
from comity.dataset.records import DatasetError
from comity.extras import install
from comity.gate.options import Options
from comity.gate.options.agreement import Agreement
from comity.gate.run.console import add_row, complain, flush_output, line, open_console, say, table
from comity.policies import PolicyError
from comity.policies.syntax.printable import unhidden
from comity.report import needs
from comity.report.difference import Section, as_json, difference
from comity.report.figures.figures import MEANINGS
from comity.report.figures.thresholds import parse
from comity.report.figures.trend import as_json as trend_as_json
from comity.report.figures.trend import in_order, trend
from comity.report.figures.trend import text_of as value_in_words
from comity.report.sources import PAGES, read_saved, report_from
from comity.report.value import Report, ReportError
from comity.report.whole_crawl import report_of_crawl
from comity.report.writing import text_of, write_text

OUTPUT = Path("report.html")
FAILED = 1  # exit status: a figure is beyond its threshold


class ReportCommand(listed.Report):
    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return (
            "[options] REPORT|ITEMS...|STORE|STATS, or --diff OLD NEW, or --trend REPORT...,"
            " or --state URL NAME"
        )

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. The page is made from a saved report (.html or .json,"
            " COMITY_REPORT), from items (JSON Lines, Parquet or WARC, also several files and"
            " folders), from a policy store, or from the statistics of a crawl as JSON (.json)."
            " With --state it is made from the counts of all workers of a crawl."
            " Exit status: 0, or 1 if a figure is beyond a threshold of --fail-on."
            f" Pages need `{install('report')}`."
        )

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "-o",
            dest="output",
            type=Path,
            metavar="FILE",
            help=f"file to write: .html or .json (default: {OUTPUT})",
        )
        parser.add_argument("--json", action="store_true", help="print JSON instead")
        parser.add_argument(
            "--diff",
            action="store_true",
            help="print the changes from one saved report to another",
        )
        parser.add_argument(
            "--trend",
            action="store_true",
            help="print the main figures of several saved reports, or write them as a page",
        )
        parser.add_argument(
            "--fail-on",
            action="append",
            default=[],
            metavar="THRESHOLD",
            help="end with status 1 if a figure is beyond a number or a percentage, e.g."
            " refused>5%%, unreadable>0 or items<100; may be repeated. The names of figures:"
            f" {', '.join(MEANINGS)}",
        )
        parser.add_argument(
            "--state",
            metavar="URL",
            help="report on a crawl by several workers: COMITY_STATE, and NAME is its COMITY_CRAWL",
        )
        tag_option.add_argument(parser)
        parser.add_argument(
            "--workers",
            type=process_count,
            metavar="N",
            help="processes that read items (default: one a core)",
        )

    def run(self, args: list[str], opts: Namespace) -> None:
        try:
            self._run(args, opts)
            flush_output()
        except (ReportError, DatasetError, PolicyError, OSError) as error:
            raise UsageError(unhidden(str(error)), print_help=False) from None

    def _run(self, args: list[str], opts: Namespace) -> None:
        output: Path | None = opts.output
        if unknown := unknown_option(args):
            raise UsageError(f"report has no option `{unknown}`", print_help=False)
        if output is not None and output.suffix not in (*PAGES, ".json"):
            raise UsageError(
                f"-o {output}: write a name that ends in .html, or in .json", print_help=False
            )
        as_page = not opts.json and (output is None or output.suffix in PAGES)
        if as_page and not ((opts.diff or opts.trend) and output is None):
            needs.check("comity report", needs.PAGE)
        thresholds = [parse(text) for text in opts.fail_on]
        if ((opts.diff or opts.trend) and (thresholds or opts.state)) or (opts.diff and opts.trend):
            raise UsageError(
                "--diff and --trend stand alone: leave out the other one, --fail-on and --state",
                print_help=False,
            )
        if opts.diff:
            self._show_difference(args, output, wants_json=opts.json)
            return
        if opts.trend:
            _show_trend(args, output, wants_json=opts.json)
            return
        if not args:
            raise UsageError(
                "report takes a saved report, items, a policy store or statistics: name a file",
                print_help=False,
            )
        assert self.settings is not None
        with _working("reading"):
            if opts.state:
                report = self._of_crawl(args, opts.state)
            else:
                report = report_from(
                    [Path(name) for name in args],
                    JobOptions(opts.workers),
                    tag_option.tag_source(opts, self.settings),
                )
        _write(
            text_of(report, as_page=as_page),
            None if opts.json and output is None else output or OUTPUT,
        )
        failures = [text for threshold in thresholds if (text := threshold.failure(report))]
        for text in failures:
            complain(f"{program_name()} report: {text}")
        self.exitcode = FAILED if failures else 0

    def _of_crawl(self, args: list[str], url: str) -> Report:
        """Return the report of the crawl with this name at COMITY_STATE."""
        if len(args) != 1:
            raise UsageError("--state takes the name of one crawl: URL NAME", print_help=False)
        assert self.settings is not None
        self.settings.set("COMITY_STATE", url, priority="cmdline")
        return asyncio.run(_report_of(Options.from_settings(self.settings), args[0]))

    def _show_difference(self, args: list[str], output: Path | None, *, wants_json: bool) -> None:
        if len(args) != 2:
            raise UsageError("--diff takes two saved reports: OLD NEW", print_help=False)
        old, new = (read_saved(Path(name)) for name in args)
        sections = difference(old, new)
        if wants_json or (output is not None and output.suffix == ".json"):
            _write(json.dumps(as_json(sections), indent=1, ensure_ascii=False) + "\n", output)
        elif output is not None:
            from comity.report.page import difference_page  # it needs the extra

            _write(difference_page(sections, old, new), output)
        else:
            _print(sections)


def _show_trend(args: list[str], output: Path | None, *, wants_json: bool) -> None:
    if len(args) < 2:
        raise UsageError("--trend takes two saved reports or more", print_help=False)
    paths = set()
    for name in args:
        if (path := Path(name).resolve()) in paths:
            raise UsageError(
                f"--trend: {name} is there twice. Name each saved report once", print_help=False
            )
        paths.add(path)
    reports = in_order({name: report_from([Path(name)]) for name in args})
    if wants_json or (output is not None and output.suffix == ".json"):
        text = json.dumps(trend_as_json(reports), indent=1, ensure_ascii=False) + "\n"
        _write(text, output)
    elif output is not None:
        from comity.report.page import trend_page  # it needs the extra

        _write(trend_page(reports), output)
    else:
        rows = table("Trend", "figure", *_short_names(reports))
        for column in rows.columns[1:]:
            column.justify = "right"
        add_row(rows, "until", *(report.until or "–" for report in reports.values()))
        for row in trend([*reports.values()]):
            add_row(rows, row.name, *map(value_in_words, row.values))
        open_console().print(rows)


def _short_names(names: Iterable[str]) -> list[str]:
    """Return the shortest ends of different paths, of equally many parts, that all differ."""
    paths = [Path(name).absolute().parts for name in names]
    number = 1
    while len({path[-number:] for path in paths}) < len(paths):
        number += 1
    return [str(Path(*path[-number:])) for path in paths]


async def _report_of(options: Options, name: str) -> Report:
    state = open_state(options.state, name, options.worker_timeout)
    queue = state.queue()
    try:
        status = await queue.status()
        settings = Agreement.from_json(await queue.settings())
    finally:
        await state.close()
    return report_of_crawl(status, settings.decides)


def _write(text: str, output: Path | None) -> None:
    """Write the text into the file; None: to standard output."""
    if output is None:
        say(text.rstrip("\n"))
    else:
        write_text(text, output)
        say(f"{output}: {len(text.encode('utf-8', 'replace')):,} octets")


def _print(sections: list[Section]) -> None:
    console = open_console()
    for section in sections:
        rows = table(section.title, section.what, "before", "now", "change")
        for column in rows.columns[1:]:
            column.justify = "right"
        for change in section.changes:
            add_row(rows, change.name, change.old, change.new, change.delta)
        console.print(rows)
    if not sections:
        console.print(line("Nothing has changed"))


def _working(text: str) -> Progress:
    """Show a sign of life on a terminal, and nothing elsewhere."""
    console = Console(stderr=True)
    progress = Progress(
        SpinnerColumn(),
        TextColumn(text),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    progress.add_task(text, total=None)
    return progress
