"""The formats that feeds write beside Scrapy's own, and PermittedFor (docs/datasets.md)."""

from __future__ import annotations

import os
from typing import Any

from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from comity.crawler.feeds import items_folder, parquet, storage
from comity.crawler.feeds.filters import OPTION, TAG_OPTION, PermittedFor
from comity.dataset.tags.setting import SIDECAR
from comity.gate.options import Options, stop

__all__ = ["EXPORTERS", "PermittedFor", "add_exporters", "register"]

# The exporters by format. The format is also the suffix of a file's name.
EXPORTERS = {
    "csv": "comity.crawler.feeds.csv.CsvExporter",
    "parquet": "comity.crawler.feeds.parquet.ParquetExporter",
    "warc": "comity.crawler.feeds.warc.WarcExporter",
    "warc.gz": "comity.crawler.feeds.warc.CompressedWarcExporter",
    "gz": "comity.crawler.feeds.warc.CompressedWarcExporter",  # Scrapy's suffix of .warc.gz
    "tags": "comity.crawler.feeds.sidecar.SidecarExporter",
}

# The options of the feed of tags. The project's own options for feeds do not apply to it.
SIDECAR_FEED: dict[str, Any] = {
    "format": "tags",
    "overwrite": False,
    "batch_item_count": 0,
    "store_empty": False,
}


def add_exporters(settings: BaseSettings) -> None:
    exporters = {**EXPORTERS, **settings.getdict("FEED_EXPORTERS")}
    settings.set("FEED_EXPORTERS", exporters, settings.getpriority("FEED_EXPORTERS") or 0)


def register(settings: BaseSettings, options: Options, *, place: str = "") -> None:
    """Add the exporters that the project has not replaced, and the feeds of tags and COMITY_ITEMS.

    The filters of feeds get the uses and COMITY_TAG.

    `place`: the setting that lets a killed crawl continue; "": there is none."""
    parquet.check(settings)
    add_exporters(settings)
    feeds = settings.getdict("FEEDS")
    filter_options = {OPTION: options.agent.uses, TAG_OPTION: options.tag}
    filled = {
        uri: {**filter_options, **feed} if _is_ours(feed) else feed for uri, feed in feeds.items()
    }
    if options.tag.kind == SIDECAR:  # first in order: the row of an item is written before the item
        if options.tag.name in map(str, feeds):
            stop(
                f"COMITY_TAG `{options.tag}` is the file of a feed of items:"
                " name another file for the tags"
            )
        if os.path.isdir(options.tag.name):  # noqa: PTH112  # Path raises if a name is too long
            stop(
                f"COMITY_TAG `{options.tag}` is a folder: name a file, as sidecar:permissions.jsonl"
            )
        filled = {options.tag.name: SIDECAR_FEED, **filled}
    if place:
        storage.add_storage(settings)
        filled = storage.kept_feeds(settings, filled, place)
    if options.items:
        items_folder.check(settings, options, filled)
        items_folder.add_storage(settings)
        filled = {**filled, **items_folder.feed(options.items_format)}
    if filled != feeds:
        settings.set("FEEDS", filled, settings.getpriority("FEEDS") or 0)


def _is_ours(feed: dict[str, Any]) -> bool:
    chosen = load_object(feed["item_filter"]) if "item_filter" in feed else None
    return isinstance(chosen, type) and issubclass(chosen, PermittedFor)
