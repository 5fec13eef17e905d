"""The files of feeds in a crawl that survives a kill, with JOBDIR or COMITY_STATE.

A page is done only when its items are on the disk (comity/crawler/frontier/item_barrier.py). Items
are appended to a file if its format can be read up to any whole record. Before that, a record that
a killed process has left unfinished is cut off. A file of another format is written in parts. A
part gets its name when it is complete."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
from asyncio import to_thread
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from stat import S_ISREG
from typing import IO, TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from scrapy.exceptions import NotConfigured
from scrapy.exporters import CsvItemExporter, JsonLinesItemExporter
from scrapy.extensions.feedexport import FileFeedStorage, StdoutFeedStorage
from scrapy.settings import BaseSettings
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.misc import load_object

from comity.crawler.crawl import Crawl
from comity.crawler.feeds.parquet import ParquetExporter
from comity.crawler.feeds.sidecar import SidecarExporter
from comity.crawler.frontier.item_barrier import PARTS, STORED, put_on_disk
from comity.dataset.files.locks import lock
from comity.dataset.files.replacement import Replacement, open_beside, sync
from comity.dataset.files.warc.records import end_of_records
from comity.dataset.records import DatasetError
from comity.gate.options import stop
from comity.policies.syntax.printable import without_passwords

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

logger = logging.getLogger(__name__)

BATCH_TIME = "%(batch_time)s"  # in the name of a feed: Scrapy fills in when a part was begun
TORN = ".torn"  # suffix of the file that gets the record that was cut off
CHUNK = 2**16  # octets that are read at a time
WARC = "comity.crawler.feeds.warc"  # a module that can be imported only with the extra `warc`
# In some encodings (UTF-16) these characters are other octets. Then `_end_of_lines` and
# `_end_of_rows` cannot find the end of a record.
LINE_END = '"\r\n'
# Arguments of the exporter for CSV. With them a row may end in a way that `_end_of_rows` does not
# know.
DIALECT = frozenset(
    ("dialect", "doublequote", "escapechar", "lineterminator", "quotechar", "quoting")
)


def add_storage(settings: BaseSettings) -> None:
    """Let feeds go to FileStorage, unless the project has a storage of its own for files."""
    storages = {"": FileStorage, "file": FileStorage, **settings.getdict("FEED_STORAGES")}
    settings.set("FEED_STORAGES", storages, settings.getpriority("FEED_STORAGES") or 0)


def kept_feeds(
    settings: BaseSettings, feeds: Mapping[Any, dict[str, Any]], place: str
) -> dict[str, dict[str, Any]]:
    """Return the feeds, each with the way in which it is stored.

    The names of parts get a token, so that no other process makes a part of this name.

    `place`: JOBDIR or COMITY_STATE, for messages. SettingsError: all parts of a feed would have one
    name, or FEED_URI is set."""
    if settings["FEED_URI"]:
        stop(f'FEED_URI is not for {place}: write FEEDS = {{"items.jsonl": {{"format": "jsonl"}}}}')
    token = secrets.token_hex(4)  # workers may begin a part at the same moment
    kept = {}
    for name, feed in feeds.items():
        uri = str(name.absolute() if isinstance(name, Path) else name)  # as Scrapy makes it
        way = _way(settings, uri, feed)
        if way == PARTS:
            if BATCH_TIME not in uri:
                shown = without_passwords(uri)
                stop(f"{shown}: a kill would lose items in spite of {place}: {_remedy(shown)}")
            if _exporter(settings, uri, feed) is ParquetExporter:  # all parts share the dictionary
                feed = {
                    **feed,
                    "item_export_kwargs": {**feed.get("item_export_kwargs", {}), "columns": {}},
                }
            uri = uri.replace(BATCH_TIME, f"{BATCH_TIME}-{token}")
        kept[uri] = {**feed, STORED: way}
    return kept


def _remedy(uri: str) -> str:
    if uri.startswith("stdout:"):
        return "write JSON Lines to standard output (-o -:jsonl)"
    folder, slash, name = uri.rpartition("/")
    stem, dot, ending = name.partition(".")
    parts = f"{folder}{slash}{stem}/{BATCH_TIME}{dot}{ending}"
    return f"write `{parts}` to get files that are complete, or a path that ends in .jsonl"


def _exporter(settings: BaseSettings, uri: str, feed: Mapping[str, Any]) -> Any:
    """Return the exporter of a feed. KeyError or NotConfigured if there is none."""
    return load_object(
        settings.getwithbase("FEED_EXPORTERS")[feed.get("format", Path(uri).suffix[1:])]
    )


def _way(settings: BaseSettings, uri: str, feed: Mapping[str, Any]) -> str:
    """Return how a feed is stored: PARTS, or a key of ENDS; "" if Scrapy cannot write the feed."""
    storages = settings.getwithbase("FEED_STORAGES")
    encoding = feed.get("encoding") or settings["FEED_EXPORT_ENCODING"] or "utf-8"
    try:
        storage = load_object(storages.get(urlsplit(uri).scheme) or storages["file"])
        exporter = _exporter(settings, uri, feed)
        has_line_ends = LINE_END.encode(encoding) == LINE_END.encode()
    except (LookupError, NotConfigured):
        return ""
    is_in_place = issubclass(storage, FileStorage | StdoutFeedStorage)
    if "postprocessing" in feed or not (
        is_in_place and has_line_ends and isinstance(exporter, type)
    ):
        return PARTS
    if issubclass(exporter, JsonLinesItemExporter | SidecarExporter):
        return "lines"
    if issubclass(exporter, CsvItemExporter):
        return "rows" if DIALECT.isdisjoint(feed.get("item_export_kwargs", ())) else PARTS
    return "records" if exporter.__module__ == WARC else PARTS


class FileStorage(FileFeedStorage):
    """Scrapy's storage for files on this machine. It writes a feed as `kept_feeds` has decided."""

    def __init__(
        self, uri: str, *, crawler: Crawler, feed_options: dict[str, Any] | None = None
    ) -> None:
        super().__init__(uri, feed_options=feed_options)
        self._crawler = crawler
        self._way = (feed_options or {}).get(STORED, "")
        self._part = ExitStack()

    @classmethod
    def from_crawler(
        cls, crawler: Crawler, uri: str, *, feed_options: dict[str, Any] | None = None
    ) -> Self:
        return cls(uri, crawler=crawler, feed_options=feed_options)

    def open(self, spider: Spider) -> IO[bytes]:
        """Open the file. OSError if it cannot be written, or another process writes it."""
        try:
            return self._open_part() if self._way == PARTS else self._open_whole(spider)
        except DatasetError as error:
            raise OSError(str(error)) from None

    def _open_part(self) -> IO[bytes]:
        path = Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        return self._part.enter_context(Replacement(path))

    def _open_whole(self, spider: Spider) -> IO[bytes]:
        overwrites = self.write_mode == "wb"
        self.write_mode = "ab"  # not "wb": another process may write the file until it is locked
        file = super().open(spider)
        if not S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        try:
            lock(file.fileno())
        except BlockingIOError:
            file.close()
            remedy = "name a file for each process"
            raise OSError(f"{self.path} is written by another process: {remedy}") from None
        except OSError:  # the file system has no locks
            pass
        try:
            self._prepare(file, overwrites=overwrites)
        except OSError:  # e.g. the disk is full
            file.close()  # or the file would stay locked
            raise
        return file

    def _prepare(self, file: IO[bytes], *, overwrites: bool) -> None:
        """Empty the file, or take an unfinished record off, and move to its end."""
        frontier = Crawl.of(self._crawler).scheduler
        goes_on = frontier is not None and frontier.goes_on
        if overwrites and goes_on and file.tell():
            message = "%(path)s is added to, not overwritten: the crawl has begun before"
            logger.warning(message, {"path": self.path})
        if overwrites and not goes_on:
            file.truncate(0)
        elif self._way in ENDS:
            self._cut(file, Path(self.path))
        file.seek(0, os.SEEK_END)
        sync(Path(self.path).resolve().parent)

    def _cut(self, file: IO[bytes], path: Path) -> None:
        """Move a record that a killed process has left unfinished to the file with TORN.

        Otherwise the next record would be read as a part of it."""
        with path.open("rb") as whole:
            end = ENDS[self._way](whole)
            size = whole.seek(0, os.SEEK_END)
            if size <= end:
                return
            whole.seek(end)
            torn = path.with_name(path.name + TORN)
            with open_beside(torn) as aside:
                aside.seek(0, os.SEEK_END)
                shutil.copyfileobj(whole, aside)
                aside.flush()
                os.fsync(aside.fileno())
        file.truncate(end)
        logger.warning(
            "%(path)s ended with %(number)d octets of a record that a killed process has left"
            " unfinished: they are in %(torn)s",
            {"path": path, "number": size - end, "torn": torn.name},
        )

    def store(self, file: IO[bytes]) -> Deferred[None]:
        return deferred_from_coro(to_thread(self._store, file))

    def _store(self, file: IO[bytes]) -> None:
        if self._way == PARTS:
            self._part.close()  # it puts the part on the disk and gives it its name
            return
        with file:
            file.flush()
            put_on_disk([file.fileno()])


def _end_of_lines(file: IO[bytes]) -> int:
    """Return where the last whole line ends."""
    position = file.seek(0, os.SEEK_END)
    while position:
        start = max(0, position - CHUNK)
        file.seek(start)
        if (found := file.read(position - start).rfind(b"\n")) >= 0:
            return start + found + 1
        position = start
    return 0


def _end_of_rows(file: IO[bytes]) -> int:
    """Return where the last whole row of CSV ends: a line end that no quotation marks enclose."""
    position, end, is_quoted = 0, 0, False
    for line in file:
        position += len(line)
        is_quoted ^= line.count(b'"') % 2 == 1
        if not is_quoted and line.endswith(b"\n"):
            end = position
    return end


ENDS: dict[str, Callable[[IO[bytes]], int]] = {
    "lines": _end_of_lines,
    "rows": _end_of_rows,
    "records": end_of_records,
}
