"""The pages that items came from, and tags in items of whatever class."""

from __future__ import annotations

import dataclasses
import pickle
from collections import deque
from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any

from itemadapter import ItemAdapter
from scrapy import Field, Item

from comity.dataset.records import FIELD
from comity.gate.request.referrals import current_page as current_page  # public (docs/items.md)
from comity.policies import Page

# The tag of the item that is in the pipelines now, wherever COMITY_TAG puts it. Feeds read it.
current_tag: ContextVar[dict[str, Any] | None] = ContextVar("comity_tag", default=None)


class ItemPages:
    """Item -> the pages that it came from, from the spider middleware to the item pipeline."""

    def __init__(self) -> None:
        self.has_pipeline = False  # which takes them out again
        self._pages: dict[
            int, tuple[object, deque[Page | None]]
        ] = {}  # the item itself too: a freed id can be used again

    def put(self, item: object, page: Page | None) -> None:
        """`page`: None where the response's URL can have no policies."""
        self._pages.setdefault(id(item), (item, deque()))[1].append(page)

    def take(self, item: object) -> Page | None:
        """The page that it was yielded for; of an item that was yielded several times, one page a time, in order."""
        entry = self._pages.get(id(item))
        if entry is None:
            return None
        page = entry[1].popleft()
        if not entry[1]:
            del self._pages[id(item)]
        return page

    def __len__(self) -> int:
        return len(self._pages)


def own_copy(tag: dict[str, Any]) -> dict[str, Any]:
    """So that whoever changes the tag of one item changes no other. In a fifth of the time of copy.deepcopy."""
    copied: dict[str, Any] = pickle.loads(pickle.dumps(tag))  # noqa: S301  # our own bytes
    return copied


def tagged(item: Any, tag: Any, field: str = FIELD) -> Any:
    """The item with the tag in this field: the same object where that is possible, else a copy of it.

    A class without the field becomes a generated subclass that has it (docs/items.md). TypeError for what is no item."""
    if isinstance(item, dict):
        item[field] = tag
        return item
    adapter = ItemAdapter(item)
    if field not in adapter.field_names():
        return _of_subclass(item, field, tag)
    try:
        adapter[field] = tag
    except Exception:  # frozen: each kind of class has an exception of its own for it
        return copied(item, {field: tag})
    return item


def changed(item: Any, values: Mapping[str, Any]) -> Any:
    """The item with these values in fields that it has: the same object where that is possible, else a copy of it."""
    adapter = ItemAdapter(item)
    try:
        for name, value in values.items():
            adapter[name] = value
    except Exception:  # frozen, or a validation that wants something else there
        return copied(item, values)
    return item


def _of_subclass(item: Any, name: str, tag: Any) -> Any:
    subclass = _with_field(type(item), name)  # type: ignore[arg-type]  # mypy takes a class for unhashable
    if isinstance(item, Item):
        item.__class__ = subclass
        item[name] = tag
        return item
    return _copied(subclass, item, {name: tag})


@cache
def _with_field(cls: type[Any], name: str) -> Any:
    """A subclass under the same name, with a field more, which is None by default."""
    subclass: Any
    field: Any
    if issubclass(cls, Item):
        subclass = type(cls)(cls.__name__, (cls,), {name: Field()})  # type: ignore[misc]  # its metaclass makes classes
    elif dataclasses.is_dataclass(cls):
        field = (name, Any, dataclasses.field(default=None, kw_only=True))
        frozen = cls.__dataclass_params__.frozen  # type: ignore[attr-defined]  # every dataclass has it, typeshed doesn't say so
        subclass = dataclasses.make_dataclass(cls.__name__, [field], bases=(cls,), frozen=frozen)
    elif hasattr(cls, "__attrs_attrs__"):
        import attrs

        field = attrs.field(default=None, kw_only=True)
        subclass = attrs.make_class(
            cls.__name__, {name: field}, bases=(cls,), slots="__slots__" in vars(cls)
        )
    else:  # ItemAdapter knows no other kind
        import pydantic

        subclass = pydantic.create_model(cls.__name__, __base__=cls, **{name: (Any, None)})  # type: ignore[call-overload]
    subclass.__module__, subclass.__qualname__ = cls.__module__, cls.__qualname__
    return subclass


def copied(item: Any, values: Mapping[str, Any]) -> Any:
    """A copy of the item with these values. None of the code of its class runs; not for `dict` and `scrapy.Item`."""
    return _copied(type(item), item, values)


def _copied(cls: Any, item: Any, values: Mapping[str, Any]) -> Any:
    """An instance of the class with the item's fields, these among them. No validation, no `__init__`: none of its code runs."""
    copy = cls.__new__(cls)
    if hasattr(item, "__pydantic_fields_set__"):
        object.__setattr__(copy, "__dict__", {**item.__dict__, **values})
        object.__setattr__(
            copy, "__pydantic_fields_set__", item.__pydantic_fields_set__ | values.keys()
        )
        object.__setattr__(copy, "__pydantic_extra__", item.__pydantic_extra__)
        object.__setattr__(copy, "__pydantic_private__", item.__pydantic_private__)
        return copy
    for name, value in getattr(item, "__dict__", {}).items():
        object.__setattr__(copy, name, value)
    for name in ItemAdapter(item).field_names():
        if hasattr(item, name):
            object.__setattr__(copy, name, getattr(item, name))
    for name, value in values.items():
        object.__setattr__(copy, name, value)
    return copy
