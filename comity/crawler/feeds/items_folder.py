"""COMITY_ITEMS: the folder with the items of all workers of a crawl (docs/datasets.md).

It is a feed in parts, like those of comity/crawler/feeds/storage.py. A part gets its name when it
is complete, so the folder can be read at any time. The name has a token of the worker and the
number of the part, so no two parts have one name, whatever the clocks say.

Each worker has a manifest in the subfolder MANIFESTS. It is written after each part and before the
pages of the part are done, so the parts of all manifests have the items of all pages that are done.
Readers of datasets skip the subfolder, because its name begins with an underscore."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import shutil
from asyncio import to_thread
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from scrapy.settings import BaseSettings
from scrapy.utils.defer import deferred_from_coro
from w3lib.url import file_uri_to_path

import comity
from comity import extras
from comity.crawler.crawl import Crawl
from comity.crawler.feeds.responses import FETCHED
from comity.crawler.frontier.item_barrier import PARTS, STORED
from comity.dataset.files.folders import files_in, nameable_folder
from comity.dataset.files.formats import FORMATS, ending_of
from comity.dataset.files.places import is_local, is_within, path_of
from comity.dataset.files.replacement import Replacement
from comity.dataset.records import DatasetError
from comity.gate.options import Options, stop
from comity.policies.syntax.printable import without_passwords

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

SCHEME = "comity-items"  # of the feed's URI. The log and Scrapy's errors show it
MANIFESTS = "_crawl"  # subfolder of the manifests, one for each worker
WORKER = "comity_worker"  # option of the feed: the token of this worker

# COMITY_ITEMS_FORMAT -> exporter. Their names in FEED_EXPORTERS begin with SCHEME, so an exporter
# of the project never replaces them.
EXPORTERS = {
    "jsonl": "comity.crawler.feeds.lines.LinesExporter",
    "parquet": "comity.crawler.feeds.parquet.ParquetExporter",
    "warc": "comity.crawler.feeds.warc.WarcExporter",
    "warc.gz": "comity.crawler.feeds.warc.CompressedWarcExporter",
}
# COMITY_ITEMS_FORMAT -> the package and the extra that it needs
NEEDED = {
    "parquet": ("pyarrow", "parquet"),
    "warc": ("warcio", "warc"),
    "warc.gz": ("warcio", "warc"),
}


def feed(form: str) -> dict[str, dict[str, Any]]:
    """Return the feed, by its URI. `form`: COMITY_ITEMS_FORMAT."""
    token = secrets.token_hex(8)
    arguments: dict[str, Any] = {} if form == "jsonl" else {"has_fetch": True}
    if form == "parquet":
        arguments["columns"] = {}  # all parts share the dictionary
    options = {
        "format": f"{SCHEME}.{form}",
        "encoding": "utf-8",
        "item_export_kwargs": arguments,
        "store_empty": False,
        "uri_params": None,  # the project's own function may leave out `batch_time`
        STORED: PARTS,
        FETCHED: True,
        WORKER: token,
    }
    return {f"{SCHEME}:%(batch_time)s-{token}-%(batch_id)d.{form}": options}


def add_storage(settings: BaseSettings) -> None:
    """Add the storage and the exporters of the feed."""
    exporters = {f"{SCHEME}.{form}": exporter for form, exporter in EXPORTERS.items()}
    for name, added in (("FEED_STORAGES", {SCHEME: PartStorage}), ("FEED_EXPORTERS", exporters)):
        settings.set(
            name, {**settings.getdict(name), **added}, priority=settings.getpriority(name) or 0
        )


def check(settings: BaseSettings, options: Options, feeds: Iterable[str]) -> None:
    """SettingsError: the folder cannot be used. `feeds`: the URIs of all other feeds."""
    shown, form = f"COMITY_ITEMS `{without_passwords(options.items)}`", options.items_format
    if ending_of(options.items) or "\0" in options.items:
        stop(
            f"{shown} is the name of a file: write the name of a folder, and the format of its"
            " files as COMITY_ITEMS_FORMAT"
        )
    package, extra = NEEDED.get(form, ("", ""))
    if package and extras.is_missing(package):
        stop(extras.needs(f"COMITY_ITEMS_FORMAT `{form}`", package, extra))
    try:
        folder = nameable_folder(path_of(options.items))
    except DatasetError as error:
        stop(f"COMITY_ITEMS: {error}")
    if is_local(folder):
        _check_local(shown, folder, settings, feeds)
    try:
        names = sorted(path.name for path in files_in(folder)) if folder.is_dir() else []
    except Exception as error:  # the library of an object store may raise anything
        stop(f"{shown} cannot be read: {error}: check its address and your credentials")
    for name in names:
        if FORMATS[ending_of(name)] != FORMATS[f".{form}"]:
            stop(
                f"{shown} has files of another format ({name}): name another folder, or set"
                f" COMITY_ITEMS_FORMAT, which is {form}, to their format"
            )


def _check_local(shown: str, folder: Path, settings: BaseSettings, feeds: Iterable[str]) -> None:
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        stop(f"{shown}: {existing} is a file: write the name of a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        stop(f"{shown}: {existing} cannot be written: give this user the right to, or name another")
    if (job := settings.get("JOBDIR")) and is_within(folder, Path(job)):
        stop(f"{shown} is in JOBDIR, which belongs to one crawl alone: name a folder outside of it")
    for uri in map(str, feeds):
        path = Path(file_uri_to_path(uri) if uri.startswith("file:") else uri)
        if urlsplit(uri).scheme in ("", "file") and is_within(path, folder):
            stop(
                f"{shown} would have another feed in it, and readers take its file for items:"
                f" write {path.name} to another folder"
            )


@dataclass(frozen=True, slots=True)
class Part:
    """A complete part, as the manifest lists it."""

    name: str
    items: int
    octets: int
    sha256: str


class PartStorage:
    """Scrapy's storage for a part of COMITY_ITEMS.

    On this machine, the part is written under `.NAME.part`, and renamed when it is on the disk. In
    an object store, it is written to a temporary file, and uploaded in one piece."""

    def __init__(
        self, uri: str, *, crawler: Crawler, feed_options: dict[str, Any] | None = None
    ) -> None:
        self.name = uri.partition(":")[2]
        self._crawler = crawler
        self._stack = ExitStack()
        self._digest = ""
        self._octets = 0

    @classmethod
    def from_crawler(
        cls, crawler: Crawler, uri: str, *, feed_options: dict[str, Any] | None = None
    ) -> Self:
        return cls(uri, crawler=crawler, feed_options=feed_options)

    def part(self, items: int) -> Part:
        """Return the stored part. `items`: their number."""
        return Part(self.name, items, self._octets, self._digest)

    def open(self, spider: Spider) -> IO[bytes]:
        """Open the part. OSError: it cannot be written."""
        self._path = folder_of(self._crawler) / self.name
        if not is_local(self._path):
            folder = self._crawler.settings["FEED_TEMPDIR"] or None
            temporary = TemporaryFile(dir=folder)  # noqa: SIM115  # the stack closes it
            return self._stack.enter_context(temporary)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return self._stack.enter_context(Replacement(self._path))
        except DatasetError as error:
            raise OSError(str(error)) from None

    def store(self, file: IO[bytes]) -> Deferred[None]:
        return deferred_from_coro(to_thread(self._store, file))

    def _store(self, file: IO[bytes]) -> None:
        with self._stack:  # its end puts a local part on the disk, and gives it its name
            self._octets = file.seek(0, os.SEEK_END)
            file.seek(0)
            self._digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
            if not is_local(self._path):
                file.seek(0)
                with Replacement(self._path) as upload:
                    shutil.copyfileobj(file, upload, 2**20)


def folder_of(crawler: Crawler) -> Path:
    """Return the path of COMITY_ITEMS."""
    return path_of(Crawl.of(crawler).options.items)


@dataclass(slots=True)
class WorkerManifest:
    """The manifest of one worker: its crawl, its complete parts, and its end.

        await manifest.begin()
        await manifest.add(part)
        await manifest.end("finished")

    Each of these writes it as a whole, so a killed worker leaves the manifest of its last part.
    DatasetError or OSError: it cannot be written."""

    path: Path
    facts: Mapping[str, Any]
    """The facts about the crawl: see `manifest_of`."""
    parts: list[Part] = field(default_factory=list)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def begin(self) -> None:
        await self._write()

    async def add(self, part: Part) -> None:
        """List a part that is complete."""
        self.parts.append(part)
        await self._write()

    async def end(self, reason: str) -> None:
        """Note the end of the worker. `reason`: Scrapy's `finish_reason`."""
        await self._write(reason)

    async def _write(self, reason: str | None = None) -> None:
        async with self._lock:
            await to_thread(self._write_now, reason)

    def _write_now(self, reason: str | None) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        members = {
            **self.facts,
            "ended": None if reason is None else now,
            "finish_reason": reason,
            "parts": [asdict(part) for part in self.parts],
        }
        if is_local(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with Replacement(self.path, is_named=False) as file:
            file.write(json.dumps(members, indent=1).encode() + b"\n")


def manifest_of(crawler: Crawler, token: str) -> WorkerManifest:
    """Return the manifest of this worker. `token`: the value of WORKER."""
    crawl, spider = Crawl.of(crawler), crawler.spidercls.name
    facts = {
        "crawl": crawl.options.crawl or spider,
        "run": 1 if crawl.scheduler is None else crawl.scheduler.run,
        "spider": spider,
        "agent": crawl.agent.token,
        "comity": comity.__version__,
        "format": crawl.options.items_format,
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return WorkerManifest(folder_of(crawler) / MANIFESTS / f"{token}.json", facts)
