"""Writes into every item what may be done with it."""

from __future__ import annotations

import copy
import logging
from typing import TYPE_CHECKING, Any, Self

from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.exceptions import DropItem

from comity.crawler.items import FIELD, current_page, tagged
from comity.crawler.runtime import Runtime
from comity.policies.page import no_page

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


class PermissionsPipeline:
    """Item pipeline. It stands first (0), so that whatever stores items stores them with their tag."""

    def __init__(self, crawler: Crawler) -> None:
        self._runtime = Runtime.of(crawler)
        self._runtime.pages.wanted = True
        assert crawler.stats is not None
        self._stats = crawler.stats
        self._warned: set[str] = set()
        crawler.signals.connect(self._spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        """No coroutine: the ContextVar would be set in a task of its own, and later pipelines would not see it."""
        page = self._runtime.pages.take(item)
        current_page.set(page)
        agent = self._runtime.agent
        if page is None:
            self._warn("no-page", "An item came from no page (start(), an errback, or replaced on its way): nobody may use it")
            self._stats.inc_value("comity/items/no-page")
            tag = no_page(agent, "the item came from no page")
        else:
            tag = copy.deepcopy(page.permissions)
        if ItemAdapter(item).get(FIELD) not in (None, {}) and not _is_tag(ItemAdapter(item)[FIELD]):
            self._warn("own-field", f"An item has a `{FIELD}` of its own: it is replaced by the tag")
        self._stats.inc_value("comity/items/tagged")
        uses = tag["uses"]
        for use, decision in uses.items():
            stated = "" if decision["stated"] else "/not-stated"
            self._stats.inc_value(f"comity/items/use/{use}/{decision['verdict']}{stated}")
        refused = agent.uses and all(uses[use]["verdict"] == "deny" for use in agent.uses)
        if refused and self._runtime.options.drop_unusable:
            self._stats.inc_value("comity/items/dropped")
            rule = tag["reasons"][uses[agent.uses[0]]["because"][0]]["rule"]
            raise DropItem(f"none of COMITY_USES ({', '.join(agent.uses)}) is permitted: {rule}", log_level="INFO")
        return tagged(item, tag)

    def _warn(self, what: str, message: str) -> None:
        """Once a crawl."""
        if what not in self._warned:
            self._warned.add(what)
            logger.warning("%s (docs/items.md)", message)

    def _spider_closed(self) -> None:
        dropped = self._stats.get_value("comity/items/dropped")
        if dropped:
            logger.warning(
                "%(dropped)d items were dropped because none of COMITY_USES is permitted. Where nothing is stated COMITY_DEFAULTS"
                " decides; COMITY_DROP_UNUSABLE=False keeps them",
                {"dropped": dropped},
            )


def _is_tag(value: Any) -> bool:
    return isinstance(value, dict) and "schema" in value and "uses" in value
