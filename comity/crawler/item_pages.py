"""The pages that items came from, and tags in items of any class."""

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

# The tag of the item that is in the pipelines now, wherever COMITY_TAG puts the tag. Feeds read it.
current_tag: ContextVar[dict[str, Any] | None] = ContextVar("comity_tag", default=None)


class ItemPages:
    """The pages that items came from, from the spider middleware to the item pipeline.

    Attributes:
        has_pipeline: True if comity's item pipeline is in use, which takes the pages.
    """

    def __init__(self) -> None:
        self.has_pipeline = False
        # By the id of the item. The item is kept too, because a freed id can be used again.
        self._pages: dict[int, tuple[object, deque[Page | None]]] = {}

    def put(self, item: object, page: Page | None) -> None:
        """Note the page of an item. `page`: None if the response's URL can have no policies."""
        self._pages.setdefault(id(item), (item, deque()))[1].append(page)

    def take(self, item: object) -> Page | None:
        """Return and forget the page that the item was yielded for, or None.

        If the item was yielded several times, each call returns one page, in order."""
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
    """Return a copy of a tag, so that changes in one item's tag change no other.

    It takes a fifth of the time of copy.deepcopy."""
    copied: dict[str, Any] = pickle.loads(pickle.dumps(tag))  # noqa: S301  # comity's own bytes
    return copied


def with_tag(item: Any, tag: Any, field: str = FIELD) -> Any:
    """Return the item with the tag in this field: if possible the same object, else a copy of it.

    If its class has no such field, the item gets a generated subclass that has it (docs/items.md).
    TypeError: it is not an item."""
    if isinstance(item, dict):
        item[field] = tag
        return item
    adapter = ItemAdapter(item)
    if field not in adapter.field_names():
        return _of_subclass(item, field, tag)
    try:
        adapter[field] = tag
    except Exception:  # frozen: each kind of class has an exception of its own for it
        return copy_with(item, {field: tag})
    return item


def with_values(item: Any, values: Mapping[str, Any]) -> Any:
    """Return the item with these values in its fields: if possible the same object, else a copy."""
    adapter = ItemAdapter(item)
    try:
        for name, value in values.items():
            adapter[name] = value
    except Exception:  # frozen, or a validation that refuses the values
        return copy_with(item, values)
    return item


def _of_subclass(item: Any, name: str, tag: Any) -> Any:
    # mypy takes a class for unhashable.
    subclass = _with_field(type(item), name)  # type: ignore[arg-type]
    if isinstance(item, Item):
        item.__class__ = subclass
        item[name] = tag
        return item
    return _copy_as(subclass, item, {name: tag})


@cache
def _with_field(cls: type[Any], name: str) -> Any:
    """Return a subclass of the same name with one more field, which is None by default."""
    subclass: Any
    field: Any
    if issubclass(cls, Item):
        subclass = type(cls)(  # type: ignore[misc]  # its metaclass makes classes
            cls.__name__, (cls,), {name: Field()}
        )
    elif dataclasses.is_dataclass(cls):
        field = (name, Any, dataclasses.field(default=None, kw_only=True))
        # Every dataclass has `__dataclass_params__`, but typeshed does not list it.
        frozen = cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
        subclass = dataclasses.make_dataclass(cls.__name__, [field], bases=(cls,), frozen=frozen)
    elif hasattr(cls, "__attrs_attrs__"):
        import attrs

        field = attrs.field(default=None, kw_only=True)
        subclass = attrs.make_class(
            cls.__name__, {name: field}, bases=(cls,), slots="__slots__" in vars(cls)
        )
    else:  # ItemAdapter knows no other kind
        import pydantic

        subclass = pydantic.create_model(  # type: ignore[call-overload]
            cls.__name__, __base__=cls, **{name: (Any, None)}
        )
    subclass.__module__, subclass.__qualname__ = cls.__module__, cls.__qualname__
    return subclass


def copy_with(item: Any, values: Mapping[str, Any]) -> Any:
    """Return a copy of the item with these values. No code of its class runs.

    Not for `dict` and `scrapy.Item`."""
    return _copy_as(type(item), item, values)


def _copy_as(cls: Any, item: Any, values: Mapping[str, Any]) -> Any:
    """Return an instance of the class with the item's fields, and these values.

    There is no validation and no `__init__`: no code of the class runs."""
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
