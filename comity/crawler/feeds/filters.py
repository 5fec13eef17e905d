"""The items that a feed takes: its option `"item_filter": "comity.crawler.feeds.PermittedFor"`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from itemadapter import ItemAdapter
from scrapy.extensions.feedexport import ItemFilter

from comity.crawler.item_tags import ItemTags
from comity.dataset.tags.setting import TagSetting
from comity.gate.options import NAME, stop

# Option of a feed: uses, as a list or separated by commas. The add-on fills in COMITY_USES.
OPTION = "comity_uses"
TAG_OPTION = "comity_tag"  # option of a feed: the add-on fills in COMITY_TAG


class PermittedFor(ItemFilter):
    """Accepts items whose tag permits each of the uses now.

    It accepts whole items: an export cuts out their refused elements."""

    def __init__(self, feed_options: dict[str, Any] | None) -> None:
        super().__init__(feed_options)
        self._tags = ItemTags((feed_options or {}).get(TAG_OPTION) or TagSetting())
        uses_option = (feed_options or {}).get(OPTION) or ()
        names = uses_option.split(",") if isinstance(uses_option, str) else uses_option
        if not isinstance(names, list | tuple | set | frozenset):
            stop(
                f"FEEDS: {OPTION} `{uses_option}` is not a list of uses:"
                f' write "{OPTION}": ["train"]'
            )
        self.uses = tuple(str(name).strip().lower() for name in names)
        if not self.uses:
            stop(
                "FEEDS: PermittedFor has no uses: set COMITY_USES,"
                f' or "{OPTION}": ["train"] in the feed\'s options'
            )
        if wrong := next((use for use in self.uses if not NAME.fullmatch(use)), None):
            stop(f"FEEDS: {OPTION} has `{wrong}`, which is not the name of a use: write e.g. train")

    def accepts(self, item: Any) -> bool:
        if not super().accepts(item) or not ItemAdapter.is_item(item):
            return False
        tag = self._tags.tag_of(item)
        uses = tag.get("uses") if isinstance(tag, dict) else None
        return isinstance(uses, dict) and all(
            _permits(uses.get(use), datetime.now(UTC)) for use in self.uses
        )


def _permits(decision: Any, now: datetime) -> bool:
    """Return True if the tag lists the use as permitted. Unreadable decisions permit nothing."""
    if not isinstance(decision, dict) or decision.get("verdict") != "allow":
        return False
    try:
        return "until" not in decision or now < datetime.fromisoformat(decision["until"])
    except (TypeError, ValueError):
        return False
