"""Writes its permissions into every item."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Self

from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.exceptions import DropItem
from scrapy.pipelines.media import MediaPipeline

from comity.crawler.crawl import Crawl
from comity.crawler.elements import declared_selectors
from comity.crawler.item_pages import with_values
from comity.crawler.items.media import bind
from comity.crawler.scrapy_internals import engine_of, item_pipelines
from comity.gate.request.referrals import current_page
from comity.policies import Page
from comity.policies.elements.redaction import redacted_fields
from comity.policies.tag import TagError, join_tags, no_page, not_understood, read_tag
from comity.policies.vocabulary.use_rows import UseRows

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


_NO_PAGE = "the item came from no page"
_UNKNOWN_FIELD = (
    "If the reason is that a pipeline does not know the field of the tag, put the tag elsewhere:"
    ' COMITY_TAG = "sidecar:permissions.jsonl" leaves items as they are'
)


class PermissionsPipeline:
    """Item pipeline. It is the first (0), so that later pipelines store items with their tag."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._crawl = Crawl.of(crawler)
        self._crawl.item_pages.has_pipeline = True
        self._tags = self._crawl.tags
        assert crawler.stats is not None
        self._stats = crawler.stats
        self._warned: set[str] = set()
        self._rows = UseRows(self._crawl.agent.vocabulary, self._crawl.agent.uses)
        crawler.signals.connect(self._spider_opened, signals.spider_opened)
        crawler.signals.connect(self._spider_closed, signals.spider_closed)
        if self._tags.are_in_items:
            crawler.signals.connect(self._item_failed, signals.item_error)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _spider_opened(self) -> None:
        """Let the media pipelines judge the files that they fetch.

        All pipelines are open by now, and no item has come. This is not `open_spider`: if a later
        pipeline fails to open, Scrapy never awaits the result of ours, and Python warns."""
        pipelines = list(item_pipelines(self._crawler))
        if self not in pipelines and engine_of(self._crawler) is not None:
            self._warn(
                "This version of Scrapy does not show its item pipelines, so files that a page"
                " refuses are fetched"
            )
        for pipeline in pipelines:
            if isinstance(pipeline, MediaPipeline):
                bind(pipeline, self._crawl.access, self._crawl.responses)

    def process_item(self, item: Any) -> Any:
        """Write its tag into an item, or drop the item.

        This is not a coroutine: the ContextVar would be set in a task of its own, and later
        pipelines would not see it."""
        page = self._crawl.item_pages.take(item)
        current_page.set(page)
        item, tag, redacted = self._make_tag(item, page)
        tag = self._with_earlier(item, tag, redacted, has_page=page is not None)
        self._count(tag)
        self._crawl.observer.tagged(tag, page.url if page is not None else "")
        self._drop_unusable(tag)
        try:
            return self._tags.write(item, tag)
        except Exception as error:  # each kind of class has errors of its own
            self._stats.inc_value("comity/items/untaggable")
            name, field = type(item).__qualname__, self._tags.field_of(item)
            message = (
                f"no `{field}` can be written into {name}:"
                f" declare such a field in it, or set COMITY_TAG ({error!r})"
            )
            raise DropItem(message) from error

    def _make_tag(
        self, item: Any, page: Page | None
    ) -> tuple[Any, dict[str, Any], Collection[str]]:
        """Return the item, redacted where necessary, its tag, and the names of redacted fields."""
        rules = page.element_rules if page else None
        if page is None or rules is None or not ItemAdapter.is_item(item):
            return item, self._tag(page), ()
        field, selectors = self._tags.field_of(item), declared_selectors(item)
        fields = {name: value for name, value in ItemAdapter(item).items() if name != field}
        # The names of a class's fields are the spider's own, but a dict's may come from the page.
        names = fields.keys() if isinstance(item, dict) else ()
        if self._crawl.options.elements != "redact":
            return item, page.tag_of(fields, selectors, names=names), ()
        redacted = redacted_fields(
            rules, fields, selectors, page.refusable(self._crawl.agent.uses), names=names
        )
        if redacted.changed or redacted.removed:
            self._stats.inc_value("comity/items/redacted")
            item = with_values(item, redacted.changed)
            for name in redacted.removed:
                del item[name]
        return item, page.tag_with(redacted.traced), redacted.changed.keys()

    def _tag(self, page: Page | None) -> dict[str, Any]:
        if page is not None:
            return page.tag_of({}, {})
        self._warn(
            "An item came from no page (start(), an errback, or replaced on its way):"
            " every use of it is refused"
        )
        self._stats.inc_value("comity/items/no-page")
        return no_page(self._crawl.agent, _NO_PAGE)

    def _with_earlier(
        self, item: Any, tag: dict[str, Any], redacted: Collection[str], *, has_page: bool
    ) -> dict[str, Any]:
        """Join the tag with the tags that the item got before, and return it.

        An item with a tag was yielded for another page before. Uses that this page refuses stay
        refused.

        `redacted`: the fields that have changed since. The earlier tag's positions in them are
        unknown now."""
        for earlier in self._tags.earlier(item):
            try:
                read_tag(earlier)
            except TagError as error:
                self._warn(
                    "An item had a tag before that comity cannot read:"
                    " none of its uses is permitted"
                )
                earlier = not_understood(self._crawl.agent, error, tag["uses"])
            for element in earlier["elements"]:
                element["spans"] = [
                    [span[0]] if span[0] in redacted else span for span in element["spans"]
                ]
                if "names" in element:
                    element["names"] = [name for name in element["names"] if name in item]
            if not has_page:  # all uses of the earlier tag are refused
                tag = join_tags(
                    self._crawl.agent, tag, no_page(self._crawl.agent, _NO_PAGE, earlier["uses"])
                )
            tag = join_tags(self._crawl.agent, tag, earlier)
        return tag

    def _count(self, tag: dict[str, Any]) -> None:
        inc_value = self._stats.inc_value
        inc_value("comity/items/tagged")
        for row, terms in self._rows.of(tag["uses"]).items():
            decision = tag["uses"][terms[0]]
            suffix = "" if decision["stated"] else "/not-stated"
            inc_value(f"comity/items/use/{row}/{decision['verdict']}{suffix}")
            for term in terms if row in self._rows.shared else ():
                inc_value(f"comity/items/term/{row}/{term}")

    def _drop_unusable(self, tag: dict[str, Any]) -> None:
        declared_uses, uses = self._crawl.agent.uses, tag["uses"]
        if (
            self._crawl.options.drop_unusable
            and declared_uses
            and all(uses[use]["verdict"] == "deny" for use in declared_uses)
        ):
            self._stats.inc_value("comity/items/dropped")
            rule = tag["reasons"][uses[declared_uses[0]]["because"][0]]["rule"]
            raise DropItem(
                f"none of COMITY_USES ({', '.join(declared_uses)}) is permitted: {rule}",
                log_level="INFO",
            )

    def _warn(self, message: str) -> None:
        """Log the warning once a crawl."""
        if message not in self._warned:
            self._warned.add(message)
            logger.warning("%s", message)

    def _item_failed(self) -> None:
        self._warn(f"An item failed in a pipeline. {_UNKNOWN_FIELD}")

    def _spider_closed(self) -> None:
        dropped = self._stats.get_value("comity/items/dropped", 0)
        others = (
            self._stats.get_value("item_dropped_count", 0)
            - dropped
            - self._stats.get_value("comity/items/untaggable", 0)
        )
        if (
            self._tags.are_in_items
            and others > 0
            and not self._stats.get_value("item_scraped_count")
        ):
            self._warn(f"All items were dropped by other pipelines. {_UNKNOWN_FIELD}")
        if dropped:
            logger.warning(
                "Items dropped because none of COMITY_USES is permitted: %(dropped)d."
                " COMITY_DEFAULTS decides where sites state nothing. COMITY_DROP_UNUSABLE=False"
                " keeps them",
                {"dropped": dropped},
            )
