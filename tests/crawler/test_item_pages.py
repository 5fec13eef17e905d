"""The tag finds its way into every class of items, and the page to its item."""

from __future__ import annotations

import copy
import dataclasses
import gc
import json
from collections.abc import Callable
from typing import Any

import attrs
import pydantic
import pytest
from itemadapter import ItemAdapter
from scrapy import Field, Item
from scrapy.exporters import PythonItemExporter

from comity.crawler.item_pages import ItemPages, own_copy, with_tag
from comity.dataset.records import FIELD
from comity.policies import Agent, Page, Site

TAG: dict[str, Any] = {"schema": 1, "uses": {"index": {"verdict": "deny"}}}


class PlainItem(Item):
    url = Field()


class DeclaredItem(PlainItem):
    permissions = Field()


@dataclasses.dataclass
class Data:
    url: str
    more: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class DeclaredData:
    url: str
    permissions: dict[str, Any] | None = None


@dataclasses.dataclass(frozen=True)
class FrozenData:
    url: str

    def __post_init__(self) -> None:
        assert self.url


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FrozenSlottedData:
    url: str


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenDeclaredData:
    url: str
    permissions: dict[str, Any] | None = None


@attrs.define
class Attrs:
    url: str = attrs.field(validator=attrs.validators.min_len(1))


@attrs.define(slots=False)
class DictAttrs:
    url: str


@attrs.frozen
class FrozenAttrs:
    url: str


@attrs.frozen
class FrozenDeclaredAttrs:
    url: str
    permissions: dict[str, Any] | None = None


class Model(pydantic.BaseModel):
    url: str
    _seen: int = 1


class StrictModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", strict=True, validate_assignment=True)
    url: str = pydantic.Field(min_length=1)


class FrozenModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)
    url: str


class DeclaredModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(validate_assignment=True)
    url: str
    permissions: str = ""  # of another type than the tag's


class DictSubclass(dict[str, Any]):
    pass


CLASSES: list[Any] = [
    *(dict, DictSubclass, PlainItem, DeclaredItem),
    *(Data, DeclaredData, FrozenData, FrozenSlottedData, FrozenDeclaredData),
    *(Attrs, DictAttrs, FrozenAttrs, FrozenDeclaredAttrs),
    *(Model, StrictModel, FrozenModel, DeclaredModel),
]


@pytest.mark.parametrize("cls", CLASSES)
def test_tag_is_written_and_exported(cls: Any) -> None:
    item = with_tag(cls(url="https://example.com/a"), TAG)
    assert isinstance(item, cls)
    assert type(item).__qualname__ == cls.__qualname__
    assert item["permissions"] == TAG if isinstance(item, dict | Item) else item.permissions == TAG
    exported = PythonItemExporter().export_item(item)
    assert json.loads(json.dumps(exported))["permissions"] == TAG
    assert exported["url"] == "https://example.com/a"


@pytest.mark.parametrize("cls", CLASSES)
def test_second_tag_takes_the_place_of_the_first(cls: Any) -> None:
    once = with_tag(cls(url="https://example.com/a"), {"schema": 0})
    twice = with_tag(once, TAG)
    assert type(twice) is type(once)
    assert ItemAdapter(twice)["permissions"] == TAG


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("cls", CLASSES)
def test_tag_goes_with_a_copy_of_the_item(cls: Any, duplicate: Callable[[Any], Any]) -> None:
    duplicated = duplicate(with_tag(cls(url="https://example.com/a"), TAG))
    assert isinstance(duplicated, cls)
    assert ItemAdapter(duplicated).asdict() == {
        "url": "https://example.com/a",
        "permissions": TAG,
        **more(cls),
    }


def more(cls: Any) -> dict[str, Any]:
    return {"more": []} if cls is Data else {}


@pytest.mark.parametrize("cls", [Data, Model, Attrs])
def test_everything_else_about_the_item_stays(cls: Any) -> None:
    original = cls(url="https://example.com/a")
    item = with_tag(original, TAG)
    assert FIELD not in ItemAdapter(original).field_names()
    item.url = "https://example.com/b"
    copied = ItemAdapter(item).asdict()
    assert copied["url"] == "https://example.com/b"
    assert copied["permissions"] == TAG
    if cls is Model:
        assert item._seen == 1
        assert item.model_dump() == {"url": "https://example.com/b", "permissions": TAG}
        assert item.model_fields_set == {"url", "permissions"}
    if cls is Data:
        assert dataclasses.replace(item, url="c").permissions == TAG


def test_item_keeps_its_identity_where_it_can() -> None:
    for cls in (dict, PlainItem, DeclaredItem, DeclaredData):
        item = cls(url="https://example.com/a")
        assert with_tag(item, TAG) is item


def test_frozen_items_stay_frozen() -> None:
    item = with_tag(FrozenData(url="https://example.com/a"), TAG)
    with pytest.raises(dataclasses.FrozenInstanceError):
        item.url = "b"
    assert hash(item.url)


def test_field_that_was_never_set_stays_unset() -> None:
    assert dict(with_tag(PlainItem(), TAG)) == {"permissions": TAG}


def test_items_of_one_class_share_the_generated_class() -> None:
    one, other = (
        with_tag(Data(url=url), TAG) for url in ("https://example.com/a", "https://example.com/b")
    )
    assert type(one) is type(other)
    assert (one.url, other.url) == ("https://example.com/a", "https://example.com/b")


def test_each_item_has_a_copy_of_its_own() -> None:
    one, other = own_copy(TAG), own_copy(TAG)
    one["uses"]["index"]["verdict"] = "allow"
    assert other == TAG


def page(path: str) -> Page:
    url = f"https://example.com/{path}"
    return Site.from_files("https://example.com", {}).page(Agent("testbot"), url)


def test_page_of_an_item_is_taken_once() -> None:
    pages, item, equal = ItemPages(), {"a": 1}, {"a": 1}
    one = page("1")
    pages.put(item, one)
    assert pages.take(equal) is None
    assert pages.take(item) is one
    assert pages.take(item) is None
    assert len(pages) == 0


def test_item_that_is_yielded_for_several_pages_has_them_in_order() -> None:
    pages, item = ItemPages(), {"a": 1}
    expected = [page("1"), page("2"), None]
    for one in expected:
        pages.put(item, one)
    assert [pages.take(item) for _ in expected] == expected
    assert len(pages) == 0


def test_address_of_a_dead_item_leads_to_no_other_items_page() -> None:
    """The map holds the item, or its id would be given to the next one."""
    pages = ItemPages()
    for number in range(1000):
        pages.put({"number": number}, None)
    gc.collect()
    assert len(pages) == 1000
