"""The places of the tags of a crawl's items: COMITY_TAG (docs/items.md)."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from itemadapter import ItemAdapter

from comity.crawler.item_pages import current_tag, own_copy, with_tag
from comity.dataset.records import SPARE_FIELD
from comity.dataset.tags.setting import AS_JSON, IN_FIELD, TagSetting
from comity.dataset.tags.sources import from_json, is_tag_like

logger = logging.getLogger(__name__)

SWEEP = 128  # items: the least number at which items that are gone are forgotten


class ItemTags:
    """Writes tags, and finds them again.

    If an item has data of its own in the place for the tag, it keeps the data, and its tag goes
    into SPARE_FIELD."""

    def __init__(self, setting: TagSetting) -> None:
        # "": items carry no tag.
        self._name = setting.name if setting.kind in (IN_FIELD, AS_JSON) else ""
        self._is_text = setting.kind == AS_JSON
        self._apart = _Apart()
        self._warned = False

    @property
    def are_in_items(self) -> bool:
        return bool(self._name)

    def field_of(self, item: Any) -> str:
        """Return the field for the tag, even if the item lacks it; "" if items carry no tag."""
        if not self._name or not ItemAdapter.is_item(item):
            return self._name
        adapter = ItemAdapter(item)
        value, spare = adapter.get(self._name), adapter.get(SPARE_FIELD)
        return (
            self._name
            if self._is_nothing(spare) and (self._is_nothing(value) or _read(value) is not None)
            else SPARE_FIELD
        )

    def _is_nothing(self, value: Any) -> bool:
        return value is None or (isinstance(value, str if self._is_text else dict) and not value)

    def tag_of(self, item: Any) -> dict[str, Any] | None:
        """Return the tag of an item that has left our pipeline, as later pipelines have left it."""
        field = self.field_of(item)
        if not field:
            return current_tag.get()
        return _read(ItemAdapter(item).get(field)) if ItemAdapter.is_item(item) else None

    def earlier(self, item: Any) -> list[dict[str, Any]]:
        """Return copies of the tags that the item got when it was yielded before, or came with."""
        if not ItemAdapter.is_item(item):
            return []
        adapter, names = ItemAdapter(item), dict.fromkeys((self._name, SPARE_FIELD))
        values = [adapter.get(name) for name in names] if self._name else [self._apart.get(item)]
        return [
            own_copy(tag)
            for value in values
            if value is not None and (tag := _read(value)) is not None
        ]

    def write(self, item: Any, tag: dict[str, Any]) -> Any:
        """Return the item with its tag: if possible the same object, else a copy.

        Exceptions of any kind: its class can have no tag."""
        current_tag.set(tag)
        field = self.field_of(item)
        if not field:
            self._apart.put(item, tag)
            return item
        if field != self._name and not self._warned:
            self._warned = True
            logger.warning(
                "Items of %(class)s have data of their own in `%(name)s`: their tags go into"
                " `%(field)s`. To put them elsewhere, set COMITY_TAG to the name of"
                " a field",
                {"class": type(item).__qualname__, "name": self._name, "field": field},
            )
        return with_tag(
            item, json.dumps(tag, separators=(",", ":")) if self._is_text else tag, field
        )


def _read(value: Any) -> dict[str, Any] | None:
    """Return the tag that is the value of a field; None if the value is not a tag."""
    if not is_tag_like(value):
        return None
    tag: dict[str, Any] | None = from_json(value) if isinstance(value, str) else value
    return tag


class _Apart:
    """The last tag of each item that does not carry it, for items that are yielded again.

    A tag is kept as long as other objects refer to its item. An item without other references
    cannot come again. Weak references would be simpler, but some classes do not support them."""

    def __init__(self) -> None:
        self._tags: dict[int, tuple[object, dict[str, Any]]] = {}
        self._sweep_at = SWEEP

    def __len__(self) -> int:
        return len(self._tags)

    def put(self, item: object, tag: dict[str, Any]) -> None:
        if len(self._tags) >= self._sweep_at:
            self._tags = {
                name: entry for name, entry in self._tags.items() if _references(entry) > _OURS
            }
            self._sweep_at = max(SWEEP, 2 * len(self._tags))
        self._tags[id(item)] = item, tag

    def get(self, item: object) -> dict[str, Any] | None:
        entry = self._tags.get(id(item))
        return entry[1] if entry else None


def _references(entry: tuple[object, dict[str, Any]]) -> int:
    return sys.getrefcount(entry[0])


_OURS = _references((object(), {}))
