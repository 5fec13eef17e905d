"""Where COMITY_TAG puts the tags of items, and that nothing else about an item, or its lines in the log, is lost."""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import pickle
from pathlib import Path
from typing import Any

import attrs
import pydantic
import pytest
from itemadapter import ItemAdapter
from scrapy import Field, Item, Spider
from scrapy.exporters import PprintItemExporter, PythonItemExporter
from scrapy.http import Response
from scrapy.logformatter import LogFormatter
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from comity.crawler.feeds import register
from comity.crawler.item_pages import current_tag
from comity.crawler.item_tags import SWEEP, ItemTags
from comity.crawler.items.logformatter import shorten
from comity.dataset.tags.setting import TagSetting
from comity.gate.options import Options, SettingsError

TAG: dict[str, Any] = {
    "schema": 1,
    "agent": "testbot",
    "uses": {
        "index": {"verdict": "allow", "stated": True, "because": [0]},
        "train": {"verdict": "deny", "stated": True, "because": [0]},
    },
    "elements": [],
    "reasons": [{"rule": "a.b", "spec": "a very long text" * 99, "url": "", "line": 1, "text": ""}],
    "policies": {},
}


def tags(setting: str = "permissions") -> ItemTags:
    return ItemTags(TagSetting.parse(setting, subject="COMITY_TAG"))


class PlainItem(Item):
    url = Field()


class OwnItem(PlainItem):
    permissions = Field()


@dataclasses.dataclass
class Data:
    url: str


@dataclasses.dataclass
class OwnData:
    url: str
    permissions: Any = None


@attrs.define
class OwnAttrs:
    url: str
    permissions: Any = None


class OwnModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(validate_assignment=True)
    url: str
    permissions: str | None = None


CLASSES: list[Any] = [dict, OwnItem, OwnData, OwnAttrs, OwnModel]


def values(item: Any) -> dict[str, Any]:
    return ItemAdapter(item).asdict()


@pytest.mark.parametrize("cls", [*CLASSES, PlainItem, Data])
@pytest.mark.parametrize("name", ["rights", "permissions"])
def test_a_name_of_the_operators_choice(cls: Any, name: str) -> None:
    item = tags(name).write(cls(url="a"), TAG)
    assert isinstance(item, cls)
    assert values(item)[name] == TAG
    assert values(item)["url"] == "a"


@pytest.mark.parametrize("cls", CLASSES)
def test_data_of_the_items_own_is_kept(cls: Any, caplog: pytest.LogCaptureFixture) -> None:
    own = tags()
    for _ in range(2):
        item = own.write(cls(url="a", permissions="rw-r--r--"), TAG)
        assert isinstance(item, cls)
        assert values(item) == {"url": "a", "permissions": "rw-r--r--", "comity_permissions": TAG}
        assert own.tag_of(item) == TAG
        assert own.field_of(item) == "comity_permissions"
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert f"Items of {cls.__qualname__} have data of their own in `permissions`" in caplog.text


@pytest.mark.parametrize("own", ["rw-", ["read"], {"read": True}, 0, False, "", [], b"x"])
def test_whatever_the_data_are(own: Any) -> None:
    """Nothing but None and {} leaves room."""
    item = tags().write({"permissions": own}, TAG)
    assert item == {"permissions": own, "comity_permissions": TAG}


@pytest.mark.parametrize("cls", CLASSES)
def test_a_declared_field_without_data_is_the_tags(cls: Any) -> None:
    original = cls(url="a", permissions=None)
    item = tags().write(original, TAG)
    assert (item is original) is (cls is not OwnModel)  # which takes no object there by assignment
    assert type(item) is cls
    assert values(item)["permissions"] == TAG


@pytest.mark.parametrize("cls", CLASSES)
def test_json_is_one_text(cls: Any) -> None:
    own = tags("json")
    item = own.write(cls(url="a"), TAG)
    text = values(item)["permissions"]
    assert json.loads(text) == TAG
    assert own.tag_of(item) == TAG
    assert own.earlier(item) == [TAG]
    assert values(own.write(item, TAG)) == values(item)


@pytest.mark.parametrize("setting", ["off", "sidecar:tags.jsonl"])
@pytest.mark.parametrize("cls", [*CLASSES, Data, PlainItem])
def test_items_that_carry_none_are_as_they_were(setting: str, cls: Any) -> None:
    own, original = tags(setting), cls(url="a")
    before = values(original)
    item = own.write(original, TAG)
    assert item is original
    assert values(item) == before
    assert own.field_of(item) == ""
    assert own.tag_of(item) is current_tag.get() is TAG


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("setting", ["off", "sidecar:tags.jsonl", "permissions", "json:rights"])
def test_an_item_that_comes_again_has_its_earlier_tag(setting: str) -> None:
    own = tags(setting)
    held = [
        own.write(cls(url=str(n)), TAG | {"agent": str(n)})
        for n in range(SWEEP)
        for cls in (dict, OwnData, PlainItem)
    ]
    for _ in range(5 * SWEEP):
        own.write({"url": "gone"}, TAG)
    assert [tag["agent"] for item in held for tag in own.earlier(item)] == [
        values(item)["url"] for item in held
    ]
    assert own.earlier({"url": "0"}) == []


def test_items_that_are_gone_are_forgotten() -> None:
    own = tags("off")
    for number in range(100 * SWEEP):
        own.write({"url": str(number)}, TAG)
    assert len(own._apart) <= 2 * SWEEP


@pytest.mark.parametrize("setting", ["permissions", "rights"])
def test_a_tag_that_an_item_brings_along_counts(setting: str) -> None:
    own = tags(setting)
    assert own.earlier({setting: TAG}) == [TAG]
    assert own.earlier({setting: TAG, "comity_permissions": TAG | {"agent": "b"}}) == [
        TAG,
        TAG | {"agent": "b"},
    ]
    assert (
        own.field_of({setting: TAG, "comity_permissions": TAG}) == "comity_permissions"
    )  # where readers look first
    assert own.earlier({setting: "rw-"}) == []


# The log


class Loud(LogFormatter):
    """A project's own."""

    def dropped(self, item: Any, exception: BaseException, response: Any, spider: Spider) -> Any:
        return {**super().dropped(item, exception, response, spider), "level": logging.INFO}

    def item_error(self, item: Any, exception: BaseException, response: Any, spider: Spider) -> Any:
        return None


class OwnWords(PlainItem):
    def __repr__(self) -> str:
        return f"<{self['url']} {dict(self).get('permissions')!r}>"


class NoCopies(dict[str, Any]):
    def __copy__(self) -> Any:
        raise TypeError


def formatter(**settings: Any) -> Any:
    own = Settings(settings)
    shorten(own)
    crawler = get_crawler(settings_dict={**settings, "LOG_FORMATTER": own["LOG_FORMATTER"]})
    crawler.spider = Spider.from_crawler(crawler, "s")
    return crawler.logformatter, crawler.spider


def line(result: Any) -> str:
    return str(result["msg"] % result["args"])


@pytest.mark.parametrize("setting", ["permissions", "rights", "json"])
@pytest.mark.parametrize("cls", [*CLASSES, PlainItem, Data, OwnWords])
def test_a_line_of_the_log_is_short(cls: Any, setting: str) -> None:
    own, spider = formatter(COMITY_TAG=setting)
    item = tags(setting).write(cls(url="http://a.example/"), TAG)
    before = pickle.dumps(values(item))
    for result in (
        own.scraped(item, Response("http://a.example/"), spider),
        own.dropped(item, ValueError("why"), None, spider),
        own.item_error(item, ValueError("why"), None, spider),
    ):
        assert "http://a.example/" in line(result)
        if not (cls is OwnWords and setting != "permissions"):
            assert "<allow: index; deny: train>" in line(result)
        assert "a very long text" not in line(result)
        assert len(line(result)) < 250
    assert pickle.dumps(values(item)) == before


def test_what_stores_items_sees_all_of_them(tmp_path: Any) -> None:
    item = tags().write({"url": "a"}, TAG)
    formatter()[0].scraped(item, None, formatter()[1])
    assert type(item["permissions"]) is dict
    assert PythonItemExporter().export_item(item)["permissions"] == TAG
    assert (
        pickle.loads(pickle.dumps(item))
        == copy.deepcopy(item)
        == json.loads(json.dumps(item))
        == {"url": "a"} | {"permissions": TAG}
    )
    with (tmp_path / "a").open("wb") as file:
        PprintItemExporter(file).export_item(item)
    assert b"a very long text" in (tmp_path / "a").read_bytes()


def test_log_formatter_of_the_project_is_kept() -> None:
    own, spider = formatter(LOG_FORMATTER=Loud)
    item = tags().write({"url": "a"}, TAG)
    assert isinstance(own, Loud)
    result = own.dropped(item, ValueError("why"), None, spider)
    assert result["level"] == logging.INFO
    assert "<allow: index; deny: train>" in line(result)
    assert own.item_error(item, ValueError(), None, spider) is None


@pytest.mark.parametrize(
    "item", [{"url": "a"}, "no item", NoCopies(url="a", permissions=TAG), None]
)
def test_lines_of_what_has_no_tag_or_cannot_be_shortened(item: Any) -> None:
    own, spider = formatter()
    assert str(item) in line(own.scraped(item, None, spider))


def test_the_file_of_tags_is_no_feed_of_items() -> None:
    settings = Settings(
        {
            "COMITY_TAG": "sidecar:items.jsonl",
            "FEEDS": {Path("items.jsonl"): {"format": "jsonlines"}},
        }
    )
    with pytest.raises(
        SettingsError,
        match=r"COMITY_TAG `sidecar:items\.jsonl` is the file of a feed of items: name another",
    ):
        register(settings, Options.from_settings(settings))


def test_the_file_of_tags_is_no_folder(tmp_path: Path) -> None:
    settings = Settings({"COMITY_TAG": f"sidecar:{tmp_path}"})
    with pytest.raises(
        SettingsError,
        match=r"COMITY_TAG `sidecar:.*` is a folder: name a file, as sidecar:permissions",
    ):
        register(settings, Options.from_settings(settings))


def test_a_name_that_is_too_long_for_a_file_is_no_folder() -> None:
    settings = Settings({"COMITY_TAG": f"sidecar:{'x' * 5000}"})
    register(
        settings, Options.from_settings(settings)
    )  # Scrapy says what it cannot open, as of any feed
    assert list(settings.getdict("FEEDS")) == ["x" * 5000]


def test_the_feed_of_tags_comes_first_and_is_one_file() -> None:
    feeds = {"items-%(batch_id)d.jsonl": {"format": "jsonlines"}}
    settings = Settings(
        {"COMITY_TAG": "sidecar:tags.jsonl", "FEEDS": feeds, "FEED_EXPORT_BATCH_ITEM_COUNT": 10}
    )
    register(settings, Options.from_settings(settings))
    [first, second] = settings.getdict("FEEDS").items()
    assert (first[0], first[1]["format"], first[1]["overwrite"], first[1]["batch_item_count"]) == (
        "tags.jsonl",
        "tags",
        False,
        0,
    )
    assert dict([second]) == feeds
