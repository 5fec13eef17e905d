"""`comity dataset ACTION`: tag a dataset, and keep it compliant. ACTIONS has the actions."""

from __future__ import annotations

import os
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from rich.console import Console
from rich.text import Text
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from comity.crawler.commands import listed, tag_option
from comity.crawler.commands.base import add_opt_out, set_opt_out, unknown_option
from comity.crawler.commands.dataset import audit, diff, repeat, stats, tag, verify
from comity.crawler.commands.dataset.output import add_output, evidence, output_place
from comity.crawler.commands.dataset.shared import (
    add_datasets,
    add_workers,
    missing_tags,
    progress,
    show_causes,
)
from comity.dataset import manifest
from comity.dataset.counts.record_counts import RecordCounts
from comity.dataset.expire import expire
from comity.dataset.export.export import export
from comity.dataset.export.folder_export import export_folder
from comity.dataset.export.ranges import NO_PLACE, PLACE, ranges
from comity.dataset.files.places import path_of
from comity.dataset.job import JobOptions, open_readers, paths_read
from comity.dataset.passes import Note
from comity.dataset.permissions.terms import DEFAULT, Terms
from comity.dataset.records import DatasetError
from comity.gate.fetching.store import PolicyStore
from comity.gate.options import Options
from comity.gate.options.values import use_defaults
from comity.gate.run.arguments import CommandParser
from comity.gate.run.console import complain, flush_output, line, open_console, say
from comity.policies import PolicyError, Verdict
from comity.policies.registry import NO_OPT_OUTS
from comity.policies.syntax.printable import printable, unhidden
from comity.policies.vocabulary.table import Vocabulary

DONE, TO_DO, FAILED, INTERRUPTED = 0, 1, 2, 130

Process = AsyncCrawlerProcess | CrawlerProcess | None


class DatasetAction(NamedTuple):
    """One of the words after `comity dataset`.

    Attributes:
        help: The description of the action.
        add_arguments: Adds its arguments to the parser.
        run: Returns the exit status. DatasetError, PolicyError, OSError, UsageError: it fails.
        process_options: Changes the settings before the crawler process is made; None: nothing.
        crawls: Returns True if the action needs a Process.
    """

    help: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace, BaseSettings, Any], int]
    process_options: Callable[[Namespace, BaseSettings], None] | None = None
    crawls: Callable[[Namespace], bool] = lambda _: False


class DatasetCommand(listed.Dataset):
    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"ADDONS": {"comity.crawler.addon.Addon": 100}}

    def syntax(self) -> str:
        return f"[options] {'|'.join(ACTIONS)} ..."

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. Exit status: {DONE} done, or all is compliant; {TO_DO} records"
            f" would be removed, are not compliant, or have lost a use; {FAILED} wrong usage, or an"
            f" unusable file; {INTERRUPTED} interrupted: nothing has changed."
        )

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        actions = parser.add_subparsers(
            parser_class=CommandParser,
            dest="action",
            metavar="|".join(ACTIONS),
            required=True,
            title="actions",
        )
        for name, action in ACTIONS.items():
            subparser = actions.add_parser(
                name, help=action.help, description=f"{action.help}.", prog=f"{parser.prog} {name}"
            )
            subparser.add_argument(
                "-s",
                "--set",
                action="append",
                default=SUPPRESS,
                metavar="NAME=VALUE",
                help="set a setting",
            )
            action.add_arguments(subparser)

    def process_options(self, args: list[str], opts: Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        # pyarrow's default pool keeps 30 MB of freed memory, and is no faster here.
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
        if args:
            remedy = _REMEDIES.get((opts.action, args[0])) or (
                f"global options must be before `{opts.action}`"
                if unknown_option(args[:1])
                else "remove it"
            )
            raise UsageError(
                f"dataset {opts.action} knows no `{args[0]}`: {remedy}", print_help=False
            )
        action = ACTIONS[opts.action]
        self.requires_crawler_process = action.crawls(opts)
        if action.process_options:
            action.process_options(opts, self.settings)

    def run(self, args: list[str], opts: Namespace) -> None:
        assert self.settings is not None
        try:
            self.exitcode = ACTIONS[opts.action].run(opts, self.settings, self.crawler_process)
        except (DatasetError, PolicyError, OSError) as error:
            raise UsageError(unhidden(str(error)), print_help=False) from None
        except KeyboardInterrupt:
            complain("Interrupted: the output files are as before.")
            self.exitcode = INTERRUPTED


# export


# Action and option that it does not have -> what to do instead.
_REMEDIES = {
    ("export", "--keep-policies"): (
        "tags have the lines that decided, but not the policy files. Crawl with -O pages.warc.gz,"
        " which keeps them, or write them with `dataset tag --keep-policies`"
    )
}


def _export_arguments(parser: ArgumentParser) -> None:
    add_datasets(
        parser,
        "inputs",
        "IN",
        "JSON Lines, CSV, Parquet, Arrow IPC, WARC, WACZ or .tar; a folder: all in it",
    )
    parser.add_argument(
        "--for",
        dest="uses",
        required=True,
        metavar="USE[,USE]",
        help="the uses that the records must permit, all of them",
    )
    add_output(parser)
    _add_terms(parser)
    add_workers(parser)


def _add_terms(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--default",
        dest="defaults",
        action="append",
        metavar="USE:allow[,USE:deny]",
        help="the answer for a use about which a site states nothing, instead of the crawl's"
        " COMITY_DEFAULTS",
    )
    parser.add_argument(
        "--last-fetch",
        action="store_true",
        help="of a page that was fetched several times, only the records of its last fetch:"
        " without duplicates of a killed crawl",
    )
    tag_option.add_argument(parser)


def _terms(opts: Namespace, settings: BaseSettings) -> Terms:
    """Return the terms of --for, --default, --last-fetch and --tag."""
    vocabulary = Options.from_settings(settings).agent.vocabulary
    terms = Terms.of(
        opts.uses.strip().removesuffix(",").split(","),
        now=repeat.moment_of(opts, datetime.now(UTC)),
        vocabulary=vocabulary,
        tags=tag_option.tag_source(opts, settings),
        defaults=use_defaults("--default", ",".join(opts.defaults or ())),
        last_fetch=opts.last_fetch,
    )
    for use in terms.uses:
        if hint := _unknown(use, vocabulary):
            complain(hint)
    return terms


def _export(opts: Namespace, settings: BaseSettings, _: Process) -> int:
    terms = _terms(opts, settings)
    output, in_folder = output_place(opts)
    with progress("exporting", opts.inputs, passes=2) as advance:
        options = JobOptions(
            opts.workers,
            advance,
            executor=opts.executor,
            complain=complain,
            evidence=evidence(opts, lambda copies: [None for _ in copies]),
        )
        read = paths_read(open_readers(opts.inputs), terms.tags)
        run_facts = repeat.facts("export", _export_arguments, opts, settings, terms.now, read, {})
        options = options._replace(run=run_facts)
        if in_folder:
            exported = export_folder(opts.inputs, output, terms, options, ending=opts.ending)
        else:
            exported = export(opts.inputs, output, terms, options)
    counts = exported.counts
    console = open_console()
    console.print(
        line(
            f"{counts.kept} of {counts.records} records may be used for {', '.join(terms.uses)}:"
            f" {opts.output}"
        )
    )
    console.print(line(f"Its manifest: {manifest.path_of(output)}"))
    show_causes("Not exported", counts.causes, console)
    for remedy in _remedies(counts.causes, terms):
        console.print(Text(remedy))
    _show_unreadable(counts, "are kept in", [output], console)
    return DONE


# ranges


def _ranges_arguments(parser: ArgumentParser) -> None:
    add_datasets(
        parser,
        "inputs",
        "IN",
        "tagged index with warc_filename, warc_record_offset, warc_record_length; a folder: all in"
        " it",
    )
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument(
        "--for",
        dest="uses",
        metavar="USE[,USE]",
        help="the uses that the captures must permit, all of them",
    )
    wanted.add_argument(
        "--policy-files",
        action="store_true",
        help="the captures of policy files, of an index with or without tags",
    )
    parser.add_argument(
        "-o", dest="output", required=True, metavar="LIST", help="the list, for curl --config LIST"
    )
    parser.add_argument(
        "--from",
        dest="source",
        required=True,
        metavar="URL",
        help="the URL of the archive, e.g. https://data.commoncrawl.org/",
    )
    _add_terms(parser)
    add_workers(parser)


def _ranges(opts: Namespace, settings: BaseSettings, _: Process) -> int:
    terms = None if opts.policy_files else _terms(opts, settings)
    with progress("listing", opts.inputs, passes=2) as advance:
        options = JobOptions(opts.workers, advance, executor=opts.executor)
        counts = ranges(opts.inputs, path_of(opts.output), terms, opts.source, options).counts
    console = open_console()
    subject = f"for {', '.join(terms.uses)}" if terms else "as policy files"
    console.print(line(f"{counts.kept} of {counts.records} captures are listed {subject}"))
    console.print(line(f"Download them: curl --config {opts.output} > captures.warc.gz"))
    show_causes("Not listed", counts.causes, console)
    for remedy in _remedies(counts.causes, terms) if terms else ():
        console.print(Text(remedy))
    if NO_PLACE in counts.causes:
        console.print(Text(f"{NO_PLACE}: {', '.join(PLACE)} are missing or not valid"))
    if counts.unreadable:
        console.print(line(f"{counts.unreadable} cannot be read", "yellow"))
    return DONE


def _remedies(causes: Collection[str], terms: Terms) -> Iterator[str]:
    """Yield remedies for records that no site has refused."""
    names = [reason.partition(":")[2] for reason in causes if reason.startswith("not-listed:")]
    if names:
        yield f'not-listed: no tag has this use; crawl with COMITY_USES = "{",".join(names)}"'
    silent = [use for use in terms.uses if terms.defaults.get(use) is not Verdict.ALLOW]
    if f"deny:{DEFAULT}" in causes and silent:
        allowed = ",".join(f"{use}:allow" for use in silent)
        yield (
            f"deny:{DEFAULT}: the site states nothing, and the crawl's COMITY_DEFAULTS did not"
            f" permit it; --default {allowed} permits it now"
        )
    yield from missing_tags(causes)


def _unknown(use: str, vocabulary: Vocabulary) -> str:
    vocabulary_uses = {
        *vocabulary.uses,
        *(word for words in vocabulary.words.values() for word in words.narrows),
    }
    if use in vocabulary_uses:
        return ""
    close = get_close_matches(use, vocabulary_uses, 1)
    suggestion = (
        f"did you mean `{close[0]}`?"
        if close
        else "it is permitted only if the crawl's COMITY_USES or a site names it."
    )
    return f"No vocabulary has a use `{use}`: {suggestion}"


# expire


def _expire_arguments(parser: ArgumentParser) -> None:
    add_datasets(
        parser,
        "datasets",
        "DATASET",
        "JSON Lines, Parquet, Arrow IPC, WARC or .tar, or a folder; it is rewritten",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help=f"change nothing; exit status {TO_DO} if records would be removed",
    )
    parser.add_argument(
        "--store",
        type=Path,
        metavar="PATH",
        help="policy store with the take-downs that sites request (default: COMITY_STORE, if it"
        " exists); given here, they count as done once their records are removed: name all"
        " datasets",
    )
    add_opt_out(parser)
    tag_option.add_argument(parser)
    add_workers(parser)


def _expire(opts: Namespace, settings: BaseSettings, _: Process) -> int:
    now, console = datetime.now(UTC), open_console(stderr=True)
    opt_outs = NO_OPT_OUTS
    if opts.opt_out:
        set_opt_out(settings, opts)
        opt_outs = Options.from_settings(settings).agent.opt_outs
    tags, store = tag_option.tag_source(opts, settings), _store(opts.store, settings)
    try:
        urls = [url for url, _ in store.take_downs()] if store else []
        source = (
            f"Take-downs that sites request: {len(urls)}, by {store.path}"
            if store
            else "No policy store, no take-downs"
        )
        console.print(line(source))
        # Each dataset is read twice, the first time for the fetch times of its pages.
        with progress("expiring", opts.datasets, passes=2) as advance:
            options = JobOptions(opts.workers, advance, _print_removed, opts.executor, complain)
            counts = expire(
                opts.datasets,
                now,
                urls,
                tags=tags,
                opt_outs=opt_outs,
                dry_run=opts.dry_run,
                options=options,
            )
        # With the default store, the datasets may not be all datasets.
        if store and opts.store and not opts.dry_run:
            store.took_down(urls, now)
    finally:
        if store:
            store.close()
    flush_output()
    show_causes("Would go" if opts.dry_run else "Gone", counts.causes, console)
    for remedy in missing_tags(counts.causes):
        console.print(Text(remedy))
    _show_unreadable(
        counts, "would move to" if opts.dry_run else "have moved to", opts.datasets, console
    )
    removed = counts.records - counts.kept
    console.print(
        line(
            f"{removed} of {counts.records} records {'would go' if opts.dry_run else 'went'},"
            f" {counts.kept} stay"
        )
    )
    return TO_DO if opts.dry_run and removed else DONE


def _store(option: Path | None, settings: BaseSettings) -> PolicyStore | None:
    """Return the store if it exists. A new store would be empty, so none is made."""
    if option and not option.is_file():
        raise DatasetError(f"--store {option}: there is no such file")
    path = option or Options.from_settings(settings).store
    return PolicyStore(path) if path.exists() else None


def _print_removed(note: Note) -> None:
    say(f"{printable(note['why'])}\t{printable(str(note['url'] or ''))}")


# all


def _show_unreadable(
    counts: RecordCounts, verb: str, paths: Sequence[Path], console: Console
) -> None:
    if counts.unreadable:
        files = ", ".join(f"{path}.unreadable{'' if path.is_dir() else '.jsonl'}" for path in paths)
        console.print(line(f"{counts.unreadable} cannot be read: they {verb} {files}", "yellow"))


def _repeat(opts: Namespace, settings: BaseSettings, _: Process) -> int:
    actions = {
        "tag": (tag.add_arguments, tag.run),
        "export": (_export_arguments, _export),
    }
    return repeat.run(opts, settings, actions)


ACTIONS = {
    "tag": DatasetAction(
        "Tag records from elsewhere, as a crawl would have tagged them",
        tag.add_arguments,
        tag.run,
        tag.process_options,
        tag.crawls,
    ),
    "export": DatasetAction(
        "Write the records that may be used today, with a manifest beside them",
        _export_arguments,
        _export,
    ),
    "ranges": DatasetAction(
        "List the places of captures that may be used today, for a download by curl",
        _ranges_arguments,
        _ranges,
    ),
    "expire": DatasetAction(
        "Remove records that may not be kept any longer", _expire_arguments, _expire
    ),
    "stats": DatasetAction("Count the permissions of the records", stats.add_arguments, stats.run),
    "diff": DatasetAction(
        "List the uses that records gained or lost since an earlier tagging, and the changed files",
        diff.add_arguments,
        diff.run,
    ),
    "audit": DatasetAction(
        "Write a page about the dataset, for readers without knowledge of programs: its content,"
        " its permissions, the dropped records and the gaps",
        audit.add_arguments,
        audit.run,
    ),
    "repeat": DatasetAction(
        "Tag or export a dataset again, and compare the octets", repeat.add_arguments, _repeat
    ),
    "verify": DatasetAction(
        "List the records that today's policies would refuse",
        verify.add_arguments,
        verify.run,
        verify.process_options,
        verify.crawls,
    ),
}
