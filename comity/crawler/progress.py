"""The progress of a running crawl, and a summary at its end: COMITY_PROGRESS.

"line": a line on a terminal, with the summary below it at the end. "summary", or "line" without a
terminal: the summary is in the log."""

from __future__ import annotations

import asyncio
import logging
import sys
from io import StringIO
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, Self

from rich.console import Console
from rich.live import Live
from rich.logging import RichHandler
from rich.table import Table
from rich.text import Text
from scrapy import signals

from comity.crawler.scrapy_internals import scheduler_of
from comity.gate.fetching.causes import CAUSES
from comity.gate.run.console import add_row, plain_console
from comity.policies.syntax.printable import unhidden
from comity.policies.vocabulary.use_rows import named

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

REFRESH = 0.5  # seconds
USE_STATS = "comity/items/use/"
TERM_STATS = "comity/items/term/"  # the terms of tags, for uses that have several terms
REFUSED_STATS = "comity/access/deny/"
UNREACHABLE_STATS = "comity/access/unreachable/"


class Progress:
    """Extension that shows the progress."""

    # True if a crawl of this process has the line: a terminal has room for one.
    _has_line: ClassVar[bool] = False

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._console = Console(stderr=True, highlight=False)
        wants_line = str(crawler.settings.get("COMITY_PROGRESS", "")).lower() == "line"
        self._on_terminal = wants_line and self._console.is_terminal
        self._live: Live | None = None
        self._task: asyncio.Task[None] | None = None
        self._began = monotonic()
        crawler.signals.connect(self._open, signals.spider_opened)
        crawler.signals.connect(self._close, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _open(self) -> None:
        self._began = monotonic()
        if self._on_terminal and not Progress._has_line:
            Progress._has_line = True
            _log_through(self._console)
            self._live = Live(
                console=self._console, auto_refresh=False, transient=True, redirect_stdout=False
            )
            self._live.start()
            self._task = asyncio.get_running_loop().create_task(self._show())

    async def _show(self) -> None:
        while self._live is not None:
            self._live.update(self._line(), refresh=True)
            await asyncio.sleep(REFRESH)

    def _line(self) -> Text:
        seconds = max(monotonic() - self._began, 0.001)
        # A spider that does more than fetch pages has a line of its own.
        if (text := getattr(self._crawler.spider, "comity_progress", None)) is not None:
            return Text(unhidden(text()))
        pages, refused = self._number("response_received_count"), self._number("comity/access/deny")
        return Text(
            f"{pages} pages   {refused} refused   {self._waiting()} waiting"
            f"   {pages / seconds:.1f} a second"
        )

    def _close(self, reason: str) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._live is not None:
            self._live.stop()
            self._live = None
            Progress._has_line = False
        # After the last messages of other extensions, e.g. of the feeds.
        asyncio.get_running_loop().call_soon(self._tell, summary(self._stats.get_stats(), reason))

    def _tell(self, table: Table) -> None:
        if self._on_terminal:
            self._console.print(table)
        else:
            logger.info("%(summary)s", {"summary": _as_text(table)})

    def _waiting(self) -> int:
        scheduler = scheduler_of(self._crawler)
        return len(scheduler) if scheduler is not None and hasattr(scheduler, "__len__") else 0

    def _number(self, name: str) -> int:
        return int(self._stats.get_value(name, 0))


def summary(stats: dict[str, object], reason: str) -> Table:
    """Return the summary of a crawl, made from its statistics."""
    table = Table(
        title=Text(f"Crawl {unhidden(reason)}"),
        title_justify="left",
        show_header=False,
        box=None,
        padding=(0, 2, 0, 0),
    )
    table.add_column(justify="right")
    table.add_column()

    def row(name: str, label: str, *, always: bool = False) -> None:
        if (count := stats.get(name, 0)) or always:
            add_row(table, count, label)

    row("comity/origins/done", "origins whose policies were asked for")
    row("comity/origins/unreachable", "origins whose policies could not be fetched")
    row("item_scraped_count", "items", always=True)
    row("comity/items/dropped", "items dropped: none of COMITY_USES is permitted")
    row("comity/items/redacted", "items redacted: elements are refused for one of COMITY_USES")
    row(
        "comity/responses/stripped",
        "responses stripped of elements that are refused for one of COMITY_USES",
    )
    row("comity/access/allow", "requests allowed", always=True)
    row("comity/access/deny", "requests refused", always=True)
    for name in sorted(stats):
        if name.startswith(REFUSED_STATS):
            row(name, f"  {name.removeprefix(REFUSED_STATS)}")
    for cause in CAUSES:
        row(UNREACHABLE_STATS + cause.name, f"    {cause.words or cause.name}: {cause.remedy}")
    row(
        "comity/sites/unusable",
        "sites not crawled: they refuse every one of COMITY_USES (COMITY_SKIP_UNUSABLE)",
    )
    row("comity/access/stopped", "responses refused by their status or header fields")
    row("comity/offers/402", "  they ask for payment")
    row("comity/offers/401", "  they ask for a license token")
    row("comity/policies/lost", "policy files could not be fetched")
    row("comity/scheduler/left", "requests left waiting")
    row(
        "comity/scheduler/set-aside",
        "requests set aside: their host is too slow (COMITY_MAX_DELAY)",
    )
    row("comity/urls/bad", "lines that are no URL")
    uses: dict[str, list[str]] = {}
    for name in sorted(stats):
        if name.startswith(USE_STATS):
            # No use has a "/" in its name.
            use, verdict, *unstated = name.removeprefix(USE_STATS).split("/")
            uses.setdefault(use, []).append(
                f"{verdict} {stats[name]}{' (not stated)' if unstated else ''}"
            )
    for row_name, verdicts in uses.items():
        prefix = f"{TERM_STATS}{row_name}/"
        use, words = named(
            row_name, [name.removeprefix(prefix) for name in stats if name.startswith(prefix)]
        )
        add_row(table, f"{use} ({', '.join(words)})" if words else use, ", ".join(verdicts))
    return table


def _as_text(table: Table) -> str:
    """Return the table with one line per row, however long the lines are."""
    text = StringIO()
    plain_console(text).print(table)
    return text.getvalue().rstrip("\n")


def _log_through(console: Console) -> None:
    """Let log lines and the live line share the terminal.

    Scrapy's own log handler writes to standard error."""
    for handler in logging.root.handlers:
        if (
            isinstance(handler, logging.StreamHandler)
            and handler.stream is sys.stderr
            and not isinstance(handler, RichHandler)
        ):
            handler.setStream(_Above(console))


class _Above:
    """A stream whose lines appear above the live line."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def write(self, text: str) -> int:
        self._console.print(Text(unhidden(text)), end="", soft_wrap=True)
        return len(text)

    def flush(self) -> None:
        self._console.file.flush()
