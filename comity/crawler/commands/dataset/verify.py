"""`comity dataset verify DATASET`: find the records that today's policies would refuse."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from comity.crawler.commands import tag_option
from comity.crawler.commands.dataset.shared import add_workers, bar, octets, place_argument
from comity.crawler.commands.refresh import StoredSites, refresh
from comity.dataset import passes
from comity.dataset.changed_outside import MESSAGE, changed_outside
from comity.dataset.files.formats import Reader
from comity.dataset.files.replacement import Replacement
from comity.dataset.job import JobOptions, files_of, first_of, open_readers, paths_read
from comity.dataset.records import DatasetError
from comity.dataset.verify.origins import origins_in
from comity.dataset.verify.report import Host, Verify, VerifyReport
from comity.dataset.verify.result import GAINED, LOST, RESTRICTED
from comity.dataset.verify.today import Today
from comity.gate.fetching.store import PolicyStore
from comity.gate.options import ASYNCIO_REACTOR, NAME, Options
from comity.gate.run.console import add_row, flush_output, line, open_console, say
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable, unhidden

COMPLIANT, NOT_COMPLIANT, FAILED = 0, 1, 2
MOST_SHOWN = 50  # hosts
Notes = Callable[[list[dict[str, Any]]], None]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "dataset",
        metavar="DATASET",
        type=place_argument,
        help="JSON Lines, CSV, Parquet, Arrow IPC, WARC or .tar; a folder: all in it",
    )
    parser.add_argument(
        "--for",
        dest="uses",
        action="append",
        metavar="USE[,USE]",
        help="uses that must all be permitted (default: the uses that tags permit)",
    )
    parser.add_argument(
        "--refresh", action="store_true", help="fetch the policy files of all hosts again"
    )
    parser.add_argument("--store", metavar="PATH", help="the policy store (default: COMITY_STORE)")
    parser.add_argument(
        "--list",
        dest="listed",
        metavar="FILE",
        type=Path,
        help="write the records that are not compliant, and the reasons, as JSON Lines",
    )
    add_workers(parser, "processes (default: as many as there are cores)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    tag_option.add_argument(parser)


def crawls(opts: Namespace) -> bool:
    refresh: bool = opts.refresh
    return refresh


def process_options(opts: Namespace, settings: BaseSettings) -> None:
    """Change the settings before the crawler process is made. UsageError: they are invalid."""
    if opts.store:
        settings.set("COMITY_STORE", opts.store, priority="cmdline")
    if not (opts.loglevel or opts.logfile):
        settings.set("LOG_LEVEL", "ERROR", priority="cmdline")
    # The project's crawls may use another reactor.
    settings.set("TWISTED_REACTOR", ASYNCIO_REACTOR, priority="cmdline")
    try:
        options = Options.from_settings(settings)
        readers = open_readers([opts.dataset])  # fail before any site is asked
        tags = tag_option.tag_source(opts, settings)
        if opts.listed and first_of([opts.listed], files_of(paths_read(readers, tags))):
            raise DatasetError(f"{opts.listed} is read from: give the list another name")
        if opts.refresh or options.store.exists():
            PolicyStore(options.store).close()
    except (DatasetError, PolicyError, OSError) as error:  # OSError: e.g. the name is too long
        raise UsageError(unhidden(str(error)), print_help=False) from None


def run(
    opts: Namespace, settings: BaseSettings, process: AsyncCrawlerProcess | CrawlerProcess | None
) -> int:
    """Verify the dataset, and return the exit status.

    UsageError, DatasetError, PolicyError or OSError: it fails."""
    uses = _uses(opts.uses or ())
    options, readers = Options.from_settings(settings), open_readers([opts.dataset])
    if opts.refresh:
        assert process
        with bar("policies", octets(readers)) as advance:
            is_complete = refresh(process, origins_in(readers, progress=advance), again=True)
        if not is_complete:
            return FAILED
    now = datetime.now(UTC)
    work = Verify(
        StoredSites(options.store, now),
        Today(options.agent, now, uses, tag_option.tag_source(opts, settings)),
    )
    job = JobOptions(opts.workers, executor=opts.executor)
    altered = [str(path) for path in changed_outside([opts.dataset], job)]
    report = _verify(work, readers, opts.listed, job)
    report.altered += altered
    if opts.json:
        for text in _json_lines(report):
            say(text)
        flush_output()
    else:
        show(report, options.agent.token, open_console())
    return COMPLIANT if report.is_compliant else NOT_COMPLIANT


def _uses(options: list[str] | tuple[()]) -> tuple[str, ...]:
    uses = [
        use.strip().lower()
        for option in options
        for use in option.strip().removesuffix(",").split(",")
    ]
    for use in uses:
        if not NAME.fullmatch(use):
            raise UsageError(
                f"--for `{use}` is not a use: write names separated by commas, e.g. index,train",
                print_help=False,
            )
    return tuple(uses)


def _verify(
    work: Verify, readers: Sequence[Reader], list_path: Path | None, options: JobOptions
) -> VerifyReport:
    report = VerifyReport()
    with ExitStack() as stack:
        file = stack.enter_context(Replacement(list_path)) if list_path else None
        advance = stack.enter_context(bar("records", octets(readers)))

        def write(notes: list[dict[str, Any]]) -> None:
            if file:
                file.write(b"".join(json.dumps(note).encode() + b"\n" for note in notes))

        def keep(record: passes.UnreadRecord) -> None:
            report.unreadable += 1
            write(
                [
                    {
                        "place": record.unreadable.position,
                        "unknown": True,
                        "why": [f"unreadable: {record.unreadable.error}"],
                    }
                ]
            )

        sinks = passes.Sinks(report.merge, notes=write, unreadable=keep, progress=advance)
        passes.run(work, readers, sinks, workers=options.workers, executor=options.executor)
    return report


def _json_lines(report: VerifyReport) -> Iterator[str]:
    """Yield the lines of json.dumps(report.as_json()), host by host, to save memory."""
    head = json.dumps(report.totals(), indent=2).removesuffix("\n}")
    hosts = (_member(name, host) for name, host in report.hosts.items())
    last = next(hosts, "")
    if not last:
        yield f'{head},\n  "hosts": {{}}\n}}'
        return
    yield f'{head},\n  "hosts": {{'
    for host in hosts:
        yield f"{last},"
        last = host
    yield f"{last}\n  }}\n}}"


def _member(name: str, host: Host) -> str:
    _, *lines, _ = json.dumps({name: host.as_json()}, indent=2).splitlines()
    return "\n".join(f"  {line}" for line in lines)


COLORS = {LOST: "red", RESTRICTED: "yellow", GAINED: "green"}


def show(report: VerifyReport, token: str, console: Console) -> None:
    """Print the report for people."""
    for other, times in report.agents.most_common():
        if other.lower() != token.lower():
            console.print(
                line(
                    f"{times} records are tagged for {other}, not for {token}: they are judged for"
                    f" {other}."
                )
            )
    hosts = sum(1 for _ in report.hosts.items())
    for name, host in report.worst_hosts(MOST_SHOWN):
        if host.refused or host.unknown or host.changes or host.gained_elements:
            _show_host(name, host, console)
    if hosts > MOST_SHOWN:
        console.print(f"{hosts - MOST_SHOWN} more hosts: --json has all.")
    total = report.records + report.unreadable
    for path in report.altered:
        console.print(line(f"{path} {MESSAGE}.", "bold red"))
    is_any = report.refused or report.unknown
    verdict = (
        f"{report.refused} refused, {report.unknown} unknown"
        if is_any
        else "all of them are compliant"
    )
    verdict += ", but not the dataset" if report.altered and not is_any else ""
    console.print(
        Text(
            f"{total} records of {hosts} hosts: {verdict}",
            "green" if report.is_compliant else "bold red",
        )
    )


def _show_host(name: str, host: Host, console: Console) -> None:
    console.print(
        line(
            f"{printable(name) or 'without a host'}: {host.records} records, {host.refused}"
            f" refused, {host.unknown} unknown",
            "bold",
        )
    )
    table = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
    for (use, change), times in sorted(host.changes.items()):
        add_row(table, Text(change, COLORS[change]), use, times, "")
        for (*key, cause), records in host.losses.most_common():
            if key == [use, change]:
                add_row(table, "", "", records, cause)
    for cause, times in host.unknown_causes.most_common():
        add_row(table, Text("unknown", "yellow"), "", times, cause)
    if host.gained_elements:
        add_row(table, Text(GAINED, COLORS[GAINED]), "elements", host.gained_elements, "")
    console.print(table)
