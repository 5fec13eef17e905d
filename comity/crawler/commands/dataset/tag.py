"""`comity dataset tag IN -o OUT --for USE`: tag records that comity did not crawl."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO

from rich.text import Text
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from comity import extras
from comity.crawler.captures import open_captures
from comity.crawler.commands.base import add_opt_out, set_opt_out
from comity.crawler.commands.dataset import repeat
from comity.crawler.commands.dataset.output import add_output, evidence, output_place
from comity.crawler.commands.dataset.shared import add_workers, bar, octets, place_argument
from comity.crawler.commands.refresh import refresh
from comity.dataset import manifest
from comity.dataset.captures.captures import MAX_AGE, PolicyCaptures
from comity.dataset.files.folders import APART
from comity.dataset.job import JobOptions, open_readers
from comity.dataset.records import DatasetError
from comity.dataset.tagging.columns import Columns
from comity.dataset.tagging.counts import Tagged
from comity.dataset.tagging.folder_tagging import tag_folder
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.page_fields import by_trafilatura
from comity.dataset.tagging.question import (
    AI_TRAINING,
    BOTH_DATES,
    CAPTURE,
    MISSING,
    TODAY,
    Question,
)
from comity.dataset.tagging.record_tagger import Making
from comity.dataset.tagging.tagging import captures_reader, origins, tag_dataset
from comity.gate.fetching.store import PolicyStore
from comity.gate.options import ASYNCIO_REACTOR, NAME, Options
from comity.gate.run.console import add_row, complain, line, open_console, table
from comity.policies import Agent, PolicyError
from comity.policies.syntax.printable import unhidden
from comity.policies.tag import DATES

DONE, FAILED = 0, 2


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "inputs",
        nargs="+",
        type=place_argument,
        metavar="IN",
        help="WARC or WACZ of any writer, CDXJ; tables with URLs: Parquet, Arrow IPC, JSON Lines,"
        " CSV; shards of images (.tar); a folder: all in it",
    )
    add_output(parser)
    parser.add_argument(
        "--for",
        dest="uses",
        required=True,
        metavar="USE[,USE]",
        help="the uses that the records are for",
    )
    parser.add_argument(
        "--agent", metavar="NAME", help="product token to judge for (default: COMITY_AGENT)"
    )
    parser.add_argument(
        "--policies",
        action="append",
        nargs="+",
        default=[],
        metavar="FILE|STORE",
        help="captures of policy files: WARC or WACZ files, folders of them or of files by host"
        " (s3:// too), policy stores",
    )
    parser.add_argument(
        "--index",
        type=Path,
        metavar="FILE",
        help="file for the index of the captures (default: it is made anew)",
    )
    parser.add_argument(
        "--refresh",
        action="store_true",
        help="fetch the policy files of all sites as they are today",
    )
    parser.add_argument(
        "--keep-policies",
        action="store_true",
        help="write the copies of policy files that decided to OUT.policies.warc.gz",
    )
    parser.add_argument(
        "--as-of",
        choices=DATES,
        help=f"the policies that count (default: {CAPTURE}; {BOTH_DATES} with --policies and"
        " --refresh)",
    )
    add_opt_out(parser)
    parser.add_argument(
        "--missing",
        choices=MISSING,
        default=MISSING[0],
        help="the answer if a site's policies cannot be found (default: %(default)s)",
    )
    parser.add_argument(
        "--captured-by",
        default="",
        metavar="NAME",
        help="crawler that made the capture, e.g. CCBot (default: as WARC says)",
    )
    parser.add_argument(
        "--captured-at",
        metavar="DATE",
        help="capture date of records without a date, e.g. 2024-05-18 (default: every use of them"
        " is refused)",
    )
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="NAME[,NAME]",
        help=f"other names that sites may use for this use, e.g. GPTBot; {AI_TRAINING}: all"
        " crawlers that train models",
    )
    parser.add_argument(
        "--page-url-field",
        default="",
        metavar="FIELD",
        help="field that has the URL of the page that shows the image or other work; the site of"
        " the page must permit a use too (default: the page does not count)",
    )
    for name, text in (
        ("url", "the URL of the page"),
        ("date", "when it was captured"),
        ("text", "its text"),
        ("headers", "its header fields"),
        ("status", "its HTTP status"),
        ("sha256", "the SHA-256 of the answer's body"),
        ("type", "its media type"),
    ):
        parser.add_argument(
            f"--{name}-field",
            default="",
            metavar="FIELD",
            help=f"field that has {text} (default: by usual names)",
        )
    parser.add_argument(
        "--text",
        choices=("main", "trafilatura"),
        default="main",
        help="how the text of pages is extracted (default: %(default)s)",
    )
    parser.add_argument("--html", action="store_true", help="keep the source of pages")
    add_workers(parser)


def crawls(opts: Namespace) -> bool:
    refresh: bool = opts.refresh
    return refresh


def process_options(opts: Namespace, settings: BaseSettings) -> None:
    """Change the settings before the crawler process is made. UsageError: they are invalid."""
    if not (opts.loglevel or opts.logfile):
        settings.set("LOG_LEVEL", "ERROR", priority="cmdline")
    # The project's crawls may use another reactor.
    settings.set("TWISTED_REACTOR", ASYNCIO_REACTOR, priority="cmdline")
    set_opt_out(settings, opts)
    try:
        _question(opts, settings)
        open_readers(opts.inputs)  # fail before any site is asked
        if opts.refresh:
            PolicyStore(Options.from_settings(settings).store).close()
    except (DatasetError, PolicyError) as error:
        raise UsageError(unhidden(str(error)), print_help=False) from None


def run(
    opts: Namespace, settings: BaseSettings, process: AsyncCrawlerProcess | CrawlerProcess | None
) -> int:
    """Tag the records, and return the exit status.

    UsageError, DatasetError, PolicyError or OSError: it fails."""
    if opts.keep_policies and not opts.evidence:
        raise UsageError("--keep-policies needs evidence: remove --no-evidence", print_help=False)
    if opts.text == "trafilatura" and extras.is_missing("trafilatura"):
        raise UsageError(
            extras.needs("--text trafilatura", "trafilatura", "text"), print_help=False
        )
    question, (output, in_folder) = _question(opts, settings), output_place(opts)
    columns = Columns(*(getattr(opts, f"{name}_field") for name in Columns._fields))
    sources = [argument for arguments in opts.policies for argument in arguments]
    if opts.refresh:
        assert process
        if not _refresh(opts.inputs, columns, process):
            return FAILED
        sources.append(str(Options.from_settings(settings).store))
        question = question._replace(now=datetime.now(UTC))
    elif not sources:
        complain("Without --policies and --refresh, no policies of any site are known")
    making = Making(columns, by_trafilatura if opts.text == "trafilatura" else None, html=opts.html)
    with _captures(sources, question, opts.index) as captures:
        for source, number in _unreadable(captures):
            complain(f"{source}: {number} places cannot be read")
        readers = open_readers(opts.inputs)
        with bar("tagging", octets(readers)) as advance:
            options = JobOptions(
                opts.workers,
                advance,
                executor=opts.executor,
                evidence=evidence(opts, getattr(opts, "sources", captures.sources)),
                keep=_keep(captures) if opts.keep_policies else None,
            )
            run_facts = repeat.facts(
                "tag",
                add_arguments,
                opts,
                settings,
                question.now,
                [reader.path for reader in readers],
                captures.versions,
                as_of=question.as_of,
            )
            options = options._replace(run=run_facts)
            judge = Judge(question, captures)
            if in_folder:
                tagged = tag_folder(
                    opts.inputs, output, judge, making, options, sources=sources, ending=opts.ending
                )
            else:
                tagged = tag_dataset(opts.inputs, output, judge, making, options, sources=sources)
    show(tagged, question, output, "" if in_folder else ".jsonl")
    return DONE


def _keep(captures: PolicyCaptures) -> Callable[[IO[bytes]], Callable[[str, datetime], object]]:
    """Return the function that opens the archive of the copies. DatasetError: it needs warcio."""
    with extras.required("--keep-policies", "warc", DatasetError):
        from comity.crawler.feeds.policy_archive import KeptPolicies
    return partial(KeptPolicies, captures.copy)


def _question(opts: Namespace, settings: BaseSettings) -> Question:
    """Return the question of the options. PolicyError or DatasetError: they are invalid."""
    uses = tuple(
        dict.fromkeys(use.strip().lower() for use in opts.uses.strip().removesuffix(",").split(","))
    )
    for use in uses:
        if not NAME.fullmatch(use):
            raise DatasetError(
                f"--for `{use}` is not a use: write names separated by commas, e.g. index,train"
            )
    options = Options.from_settings(settings)
    agent: Agent = replace(options.agent, uses=uses)
    if opts.agent:
        agent = replace(agent, token=opts.agent, user_agent=opts.agent)
    as_of = opts.as_of or (CAPTURE if not opts.refresh else BOTH_DATES if opts.policies else TODAY)
    also = [name for names in opts.also for name in names.split(",")]
    return Question.of(
        agent,
        now=getattr(opts, "moment", None),
        also=also,
        as_of=as_of,
        missing=opts.missing,
        captured_by=opts.captured_by,
        captured_at=opts.captured_at,
        redacts=options.elements == "redact",
    )


@contextmanager
def _captures(
    sources: Sequence[str], question: Question, index: Path | None
) -> Iterator[PolicyCaptures]:
    with bar("policies", None) as advance:
        captures = open_captures(
            sources,
            agent=question.agent,
            index=index,
            max_age=MAX_AGE,
            now=question.now,
            progress=advance,
        )
    with captures:
        yield captures


def _unreadable(captures: PolicyCaptures) -> Iterator[tuple[str, int]]:
    number, failures = captures.unreadable
    if number:
        first = failures[0]
        yield f"--policies {first.place}: {first.error}", number


def _refresh(
    inputs: Sequence[Path], columns: Columns, process: AsyncCrawlerProcess | CrawlerProcess
) -> bool:
    """Fetch today's policies. False if it was ended early."""
    readers = list(map(captures_reader, open_readers(inputs)))
    with bar("policies of today", octets(readers)) as advance:
        return refresh(process, origins(readers, columns, advance))


def show(tagged: Tagged, question: Question, output: Path, ending: str) -> None:
    """Print the outcome for people.

    `ending`: the suffix of the files beside the output; "" for folders beside a folder."""
    console = open_console()
    counts = tagged.counts
    console.print(
        line(
            f"{counts.kept} of {tagged.read} records are tagged for {question.agent.token}:"
            f" {output}"
        )
    )
    console.print(line(f"The policies and the agent: {manifest.path_of(output)}"))
    if missing := counts.missing_copies.number:
        about = "" if counts.missing_copies.is_exact else "about "
        console.print(line(f"Policy files without a copy (status 0): {about}{missing}"))
    rows = table("What may be done with them", "use", "records")
    rows.columns[1].justify = "right"
    for verdict, number in sorted(tagged.verdicts.items()):
        add_row(rows, verdict, number)
    console.print(rows)
    if tagged.undated and question.as_of != TODAY:
        undated = (
            "None has a date" if tagged.undated == counts.kept else f"{tagged.undated} have no date"
        )
        remedy = (
            "name its field with --date-field, or give a date for all records with --captured-at"
            " 2024-05-18"
        )
        console.print(
            Text(f"{undated} that can be read, so every use is refused (comity.no-date): {remedy}")
        )
    if tagged.left_out:
        rows = table("Left out, because they are not pages", "why", "records")
        rows.columns[1].justify = "right"
        for reason, number in tagged.left_out.most_common():
            add_row(rows, reason, number)
        console.print(rows)
    if tagged.apart:
        console.print(
            line(
                f"{tagged.apart} of sites without policies are kept in {output}.{APART}{ending}",
                "yellow",
            )
        )
    if counts.unreadable:
        console.print(
            line(
                f"{counts.unreadable} cannot be read: they are listed in"
                f" {output}.unreadable{ending}",
                "yellow",
            )
        )
