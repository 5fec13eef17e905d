"""Reports from files: a saved page or data, items, a policy store, or the statistics of a crawl."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from comity.dataset.job import JobOptions, open_readers
from comity.dataset.passes import Sinks, UnreadRecord, run
from comity.dataset.tags.sources import GUESSED, TagSource
from comity.gate.fetching.files import failure_reason, url_of
from comity.gate.fetching.store import PolicyStore
from comity.policies.answers.fetched import Availability, availability
from comity.policies.answers.rule import RULES
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.use_rows import named
from comity.report.advice import advice
from comity.report.collector import MAX_ACTIONS, SiteCounts, moment
from comity.report.crawled import STATS
from comity.report.items import ItemCounts, ItemsPass
from comity.report.value import (
    MAX_OCTETS,
    Line,
    NamedCount,
    Report,
    ReportedAction,
    ReportedRefusal,
    ReportedUse,
    ReportError,
    read_report,
)

SQLITE = b"SQLite format 3\0"  # the beginning of such a file
PAGES = (".html", ".htm")


def report_from(
    paths: Sequence[Path],
    options: JobOptions = JobOptions(),  # noqa: B008
    tags: TagSource = GUESSED,
) -> Report:
    """Return the report from one file of any kind, or from several files of items.

    ReportError, DatasetError, PolicyError or OSError, with the name of the file: it cannot be read.
    """
    first = paths[0]
    if not first.exists():
        raise ReportError(f"{first}: there is no such file")
    if first.is_file() and len(paths) == 1:
        with first.open("rb") as file:
            beginning = file.read(len(SQLITE))
        if beginning == SQLITE:
            return of_store(first)
        if first.suffix == ".json" or first.suffix in PAGES:
            return read_saved(first)
    return of_items(paths, options, tags)


def read_saved(path: Path) -> Report:
    """Read a saved report, or report on the statistics of a crawl. ReportError: it is neither."""
    try:
        if path.stat().st_size > MAX_OCTETS:
            raise ReportError(f"it is larger than {MAX_OCTETS // 2**20} MiB, so it is not a report")
        text = path.read_text("utf-8")
        try:
            return read_report(text)
        except ReportError:
            if (stats := _stats(text)) is None:
                raise
            return of_stats(stats)
    except UnicodeDecodeError:
        raise ReportError(f"{path}: it is not a text in UTF-8") from None
    except ReportError as error:
        raise ReportError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise ReportError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror}") from None


def of_items(
    paths: Sequence[Path],
    options: JobOptions = JobOptions(),  # noqa: B008
    tags: TagSource = GUESSED,
) -> Report:
    """Report on the items in these files: the permitted uses, and the reasons of refusals."""
    counts, now = ItemCounts(), datetime.now(UTC)

    def unreadable(_: UnreadRecord) -> None:
        counts.unreadable += 1

    sinks = Sinks(counts.merge, unreadable=unreadable, progress=options.progress)
    run(
        ItemsPass(now, tags),
        open_readers(paths),
        sinks,
        workers=options.workers,
        executor=options.executor,
    )
    report = Report(
        source="items",
        title=f"Items of {', '.join(printable(path.name) for path in paths)}",
        until=moment(now.timestamp()),
    )
    report.agent = ", ".join(name for name, _ in counts.agents.largest(5))
    counts.fill(report)
    report.notes += [
        f"{count:,} items permit nothing, because their tag is missing or unreadable:"
        f" {printable(cause)}"
        for cause, count in counts.causes.largest(5)
    ]
    if counts.unreadable:
        report.notes.append(f"{counts.unreadable:,} records cannot be read")
    report.advice = advice(report)
    return report


def of_store(path: Path, progress: Callable[[int], object] = lambda _: None) -> Report:
    """Report on a policy store: the files that could be fetched, and requested take-downs."""
    now = time.time()
    report = Report(source="store", title=f"Policy store {printable(path.name)}", until=moment(now))
    store = PolicyStore(path)
    try:
        sites = SiteCounts()
        for origin in store.origins():
            files = {
                url_of(origin, name): file.current(now) for name, file in store.load(origin).items()
            }
            robots = files.get(f"{origin}/robots.txt")
            is_lost = robots is not None and availability(robots) is Availability.UNREACHABLE
            sites.looked_up(
                origin, files, failure_reason(robots) if robots is not None and is_lost else ""
            )
            progress(1)
        sites.fill(report)
        take_downs = store.take_downs()
    finally:
        store.close()
    report.actions.number = {"take-down": len(take_downs)} if take_downs else {}
    report.actions.listed = [
        ReportedAction(
            action="take-down",
            url=printable(url),
            is_arranged=True,
            line=Line(
                url="",
                text=f"requested at {moment.isoformat(timespec='seconds')}, not taken down yet",
            ),
        )
        for url, moment in take_downs[:MAX_ACTIONS]
    ]
    report.advice = advice(report)
    return report


# The ends of the names of statistics, and the fields of Use.
_VERDICTS = {
    "allow": "allow",
    "deny": "deny",
    "allow/not-stated": "allow_default",
    "deny/not-stated": "deny_default",
}


def _stats(text: str) -> dict[str, int] | None:
    """Return the numbers of Scrapy's statistics; None if the text is something else."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict) or not any(str(name).startswith("comity/") for name in raw):
        return None
    return {name: value for name, value in raw.items() if type(value) is int}


def of_stats(stats: Mapping[str, int]) -> Report:
    """Report on the statistics of a crawl: totals, refusals by rule, and uses.

    Statistics name no hosts, files and lines."""
    report = Report(source="stats", title="Statistics of a crawl")
    report.notes.append(
        "Statistics name no hosts, files, lines and moments. For a report that does, set"
        " COMITY_REPORT"
    )
    names = {
        "allowed": "comity/access/allow",
        "refused": "comity/access/deny",
        "stopped": "comity/access/stopped",
        "answered": "response_received_count",
        "sent": "downloader/request_count",
        "files": "comity/policies/requests",
        "items": "comity/items/tagged",
        "left": "comity/scheduler/left",
        **STATS,
    }
    report.counts = {name: stats.get(stat, 0) for name, stat in names.items()}
    report.counts["backed_off"] = stats.get("comity/pace/429", 0) + stats.get("comity/pace/503", 0)
    report.counts["failed"] = max(0, report.counts["sent"] - report.counts["answered"])
    report.refusals, report.stopped = (
        _refusals(stats, "comity/access/deny/"),
        _refusals(stats, "comity/access/stopped/"),
    )
    report.statuses = [
        NamedCount(status, count)
        for status, count in _under(stats, "downloader/response_status_count/").items()
    ]
    uses: dict[str, ReportedUse] = {}
    for name, count in _under(stats, "comity/items/use/").items():
        use, _, verdict = name.partition("/")
        if verdict in _VERDICTS:
            setattr(
                uses.setdefault(use, ReportedUse(use=printable(use))), _VERDICTS[verdict], count
            )
    for row, of_row in uses.items():
        name, words = named(row, _under(stats, f"comity/items/term/{row}/"))
        of_row.use, of_row.words = printable(name), list(map(printable, words))
    report.uses = [uses[row] for row in sorted(uses)]
    report.elements.redacted = stats.get("comity/items/redacted", 0)
    report.elements.stripped = stats.get("comity/responses/stripped", 0)
    report.advice = advice(report)
    return report


def _under(stats: Mapping[str, int], prefix: str) -> dict[str, int]:
    return {
        name.removeprefix(prefix): stats[name] for name in sorted(stats) if name.startswith(prefix)
    }


def _refusals(stats: Mapping[str, int], prefix: str) -> list[ReportedRefusal]:
    refusals = [
        ReportedRefusal(
            rule=printable(rule),
            spec=RULES[rule].spec if rule in RULES else "",
            summary=RULES[rule].summary if rule in RULES else "",
            count=count,
        )
        for rule, count in _under(stats, prefix).items()
    ]
    return sorted(refusals, key=lambda refusal: -refusal.count)
