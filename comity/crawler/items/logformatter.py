"""Log lines of items with a short text in place of the tag, which may fill pages.

An example: `permissions: <allow: index; deny: train>`."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy import Item
from scrapy.logformatter import LogFormatter, LogFormatterResult
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from comity.crawler.item_pages import copy_with
from comity.crawler.item_tags import ItemTags
from comity.gate.options.declared import TAG

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


def shorten(settings: BaseSettings) -> None:
    """Make the project's LOG_FORMATTER show tags in short, and otherwise work as before."""
    formatter = load_object(settings["LOG_FORMATTER"])
    if (
        isinstance(formatter, type)
        and issubclass(formatter, LogFormatter)
        and not issubclass(formatter, ShortTags)
    ):
        short: Any = _with_short_tags(formatter)  # type: ignore[arg-type]  # a class
        settings.set("LOG_FORMATTER", short, settings.getpriority("LOG_FORMATTER") or 0)


class ShortTags(LogFormatter):
    """A base class that is mixed into the log formatter of a project."""

    _tags: ItemTags

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Any:
        formatter = super().from_crawler(crawler)
        # There may be no loop for a Crawl yet.
        formatter._tags = ItemTags(TAG.read(crawler.settings))
        return formatter

    def scraped(self, item: Any, *args: Any, **kwargs: Any) -> Any:
        return self._shorten(super().scraped(item, *args, **kwargs), item)

    def dropped(self, item: Any, *args: Any, **kwargs: Any) -> Any:
        return self._shorten(super().dropped(item, *args, **kwargs), item)

    def item_error(self, item: Any, *args: Any, **kwargs: Any) -> Any:
        return self._shorten(super().item_error(item, *args, **kwargs), item)

    def _shorten(self, result: LogFormatterResult | None, item: Any) -> Any:
        """Return the line with a short text for the tag; None if the project logs no line."""
        arguments = result and result["args"]
        if result and isinstance(arguments, dict) and arguments.get("item") is item:
            result["args"] = arguments | {"item": _ShortItem(item, self._tags)}
        return result


@cache
def _with_short_tags(formatter: type[LogFormatter]) -> type[LogFormatter]:
    return type(f"ShortTags{formatter.__name__}", (ShortTags, formatter), {"__module__": __name__})


class _ShortItem:
    """An item as its class writes it, with a short text for the tag.

    The text is made only if the line is logged."""

    def __init__(self, item: Any, tags: ItemTags) -> None:
        self._item = item
        self._tags = tags

    def __str__(self) -> str:
        item, field = self._item, self._tags.field_of(self._item)
        try:
            tag = self._tags.tag_of(item)
            if not field or tag is None or field not in ItemAdapter(item):
                return str(item)
            if isinstance(item, dict | Item):
                shortened = copy.copy(item) if isinstance(item, dict) else item.copy()
                shortened[field] = _Summary(tag)
            else:
                shortened = copy_with(item, {field: _Summary(tag)})
            return str(shortened)
        except Exception:  # copying an item may raise any; a log line is no reason to fail
            return str(item)

    __repr__ = __str__


class _Summary:
    def __init__(self, tag: Mapping[str, Any]) -> None:
        self._tag = tag

    def __repr__(self) -> str:
        uses = self._tag.get("uses", {})
        by_verdict = {
            verdict: ", ".join(name for name, use in uses.items() if use["verdict"] == verdict)
            for verdict in ("allow", "deny")
        }
        parts = [f"{verdict}: {names}" for verdict, names in by_verdict.items() if names]
        return f"<{'; '.join(parts)}>"
