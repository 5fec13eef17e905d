"""Requests as other processes get them: the same values, and nothing that runs."""

from __future__ import annotations

import pickle
import sys
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Spider
from scrapy.http import FormRequest, HtmlResponse, Request
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, CSVFeedSpider, Rule, SitemapSpider, XMLFeedSpider

from comity.cluster.plain_values import MAX_DEPTH, TUPLE
from comity.crawler.frontier.request_bodies import pack, unpack, url_of


class Pages(Spider):
    name = "pages"

    def parse_page(self, response: object) -> None: ...

    def failed(self, failure: object) -> None: ...

    def _clean(self, response: object) -> None: ...

    def closed(self, reason: object) -> None: ...

    @staticmethod
    def helper(response: object) -> None: ...

    @classmethod
    def build(cls, response: object) -> None: ...


class Shelf(Pages):
    @property
    def shelf(self) -> None:
        raise AssertionError("it was looked up")


SPIDER = Pages()
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(-5, 5), inner)
    ),
    max_leaves=20,
)


@pytest.mark.requirement("REACH-4")
@given(
    meta=st.dictionaries(st.text(), plain),
    values=st.dictionaries(st.text(), plain),
    body=st.binary(),
)
def test_what_is_unpacked_is_what_was_packed(
    meta: dict[str, Any], values: dict[str, Any], body: bytes
) -> None:
    request = Request(
        "https://example.com/a?b=c",
        method="POST",
        body=body,
        headers={"X-A": ["1", "2"]},
        cookies={"a": "b"},
        meta=meta,
        cb_kwargs=values,
        callback=SPIDER.parse_page,
        errback=SPIDER.failed,
        priority=-3,
        dont_filter=True,
        flags=["seen"],
    )
    octets = pack(request, SPIDER)
    assert url_of(octets) == request.url
    again = unpack(octets, SPIDER)
    assert again.to_dict(spider=SPIDER) == request.to_dict(spider=SPIDER)
    assert again.callback == SPIDER.parse_page


def test_a_class_of_requests_stays() -> None:
    request = FormRequest("https://example.com/", formdata={"a": "b"})
    again = unpack(pack(request, SPIDER), SPIDER)
    assert type(again) is FormRequest
    assert again.body == b"a=b"


class Own:
    pass


class Word(StrEnum):
    A = "a"


@pytest.mark.requirement("REACH-4")
@pytest.mark.parametrize("value", [Own(), datetime.now(UTC), {1, 2}, 2**64, Word.A, [(Own(),)]])
def test_what_is_no_plain_value_is_an_error_that_says_what_to_do(value: object) -> None:
    with pytest.raises(
        ValueError, match=r"its `meta` cannot be sent to other workers .*: use numbers, texts"
    ):
        pack(Request("https://example.com/", meta={"a": value}), SPIDER)


@pytest.mark.requirement("REACH-4")
def test_the_requests_of_rules_can_be_sent() -> None:
    """The text of a link is no plain `str` there, but one of lxml."""
    spider = CrawlSpider(name="rules", rules=[Rule(LinkExtractor())])
    body = b"<a href='/a'>A <b>link</b></a>"
    response = HtmlResponse("https://example.com/", body=body, encoding="utf-8")
    (request,) = spider._requests_to_follow(response)
    assert request is not None
    assert type(request.meta["link_text"]) is not str
    again = unpack(pack(request, spider), spider)
    assert (again.url, again.meta) == ("https://example.com/a", {"rule": 0, "link_text": "A link"})
    assert type(again.meta["link_text"]) is str


def test_a_callback_that_is_no_method_of_the_spider_is_an_error() -> None:
    with pytest.raises(ValueError, match="is not an instance method"):
        pack(Request("https://example.com/", callback=print), SPIDER)


MEMBERS = {"url": "https://example.com/", "callback": "parse_page"}


@pytest.mark.requirement("REACH-4")
@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"\xc1",
        pickle.dumps(MEMBERS),
        msgpack.packb([1]),
        msgpack.packb({"url": 5}),
        msgpack.packb(MEMBERS | {"callback": "no_such_method"}),
        msgpack.packb(MEMBERS | {"callback": 5}),
        msgpack.packb(MEMBERS | {"_class": "subprocess.Popen"}),
        msgpack.packb(MEMBERS | {"_class": "no.such.module"}),
        msgpack.packb(MEMBERS | {"meta": msgpack.ExtType(2, b"")}),
        msgpack.packb(MEMBERS | {"meta": msgpack.Timestamp(1)}),
    ],
)
def test_what_is_no_request_is_an_error_and_runs_nothing(octets: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the words are those of whoever found out
        unpack(octets, SPIDER)
    assert isinstance(url_of(octets), str)


CALLBACKS = [
    (Pages(), "parse"),
    (Pages(), "parse_page"),
    (CrawlSpider("rules"), "_callback"),
    (CrawlSpider("rules"), "_errback"),
    (CrawlSpider("rules"), "_parse"),
    (CrawlSpider("rules"), "parse_start_url"),
    (SitemapSpider("maps"), "_parse_sitemap"),
    (XMLFeedSpider("feed"), "_parse"),
    (CSVFeedSpider("table"), "_parse"),
]


@pytest.mark.requirement("REACH-4")
@pytest.mark.parametrize(("spider", "name"), CALLBACKS)
def test_the_callbacks_of_scrapys_own_spiders_can_be_sent(spider: Spider, name: str) -> None:
    method = getattr(spider, name)
    again = unpack(
        pack(Request("https://example.com/", callback=method, errback=method), spider), spider
    )
    assert (again.callback, again.errback) == (method, method)


@pytest.mark.requirement("REACH-4")
@pytest.mark.parametrize("place", ["callback", "errback"])
@pytest.mark.parametrize(
    "name",
    [
        *(
            "__init__",
            "__class__",
            "__repr__",
            "update_settings",
            "from_crawler",
            "_set_crawler",
            "handles_request",
            "log",
        ),
        *("start", "close", "closed", "logger", "shelf", "helper", "build", "name", "_clean"),
    ],
)
def test_a_body_names_no_method_but_a_callback(place: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"`{name}` is not a public method of the spider"):
        unpack(msgpack.packb({"url": "https://example.com/", place: name}), Shelf())


def test_a_callback_with_a_private_name_is_refused_with_the_remedy() -> None:
    with pytest.raises(
        ValueError, match="`_clean` is not a public method of the spider: name it `clean`"
    ):
        pack(Request("https://example.com/", callback=SPIDER._clean), SPIDER)


@pytest.mark.requirement("REACH-4")
def test_a_body_imports_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a class of requests found that this process has not loaded."""
    (tmp_path / "not_loaded_yet.py").write_text("import scrapy\nclass Own(scrapy.Request): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ValueError,
        match=r"`not_loaded_yet\.Own` is not a class of requests that is loaded here: import it",
    ):
        unpack(msgpack.packb(MEMBERS | {"_class": "not_loaded_yet.Own"}), SPIDER)
    assert "not_loaded_yet" not in sys.modules


class OwnRequest(Request):
    attributes = (*Request.attributes, "shelf")

    def __init__(self, *arguments: Any, shelf: int = 0, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.shelf = shelf


def test_a_class_of_the_project_stays() -> None:
    again = unpack(pack(OwnRequest("https://example.com/", shelf=3), SPIDER), SPIDER)
    assert isinstance(again, OwnRequest)
    assert again.shelf == 3


def test_a_class_that_no_name_leads_to_is_an_error() -> None:
    class OwnRequest(Request):
        pass

    first = OwnRequest
    assert pack(first("https://example.com/"), SPIDER)

    class OwnRequest(Request):  # type: ignore[no-redef]
        pass

    with pytest.raises(
        ValueError, match="is not its class: define the class at the top of its module"
    ):
        pack(first("https://example.com/"), SPIDER)
    assert pack(OwnRequest("https://example.com/"), SPIDER)


@pytest.mark.requirement("REACH-4")
@pytest.mark.parametrize(
    "meta",
    [
        {"playwright_page_init_callback": "os.system"},
        {"playwright_page_event_handlers": {"dialog": "update_settings"}},
    ],
)
def test_a_body_names_no_function_for_a_browser(meta: dict[str, Any]) -> None:
    with pytest.raises(
        ValueError, match="of its `meta` names a function, which the state does not hold"
    ):
        pack(Request("https://example.com/", meta=meta), SPIDER)
    with pytest.raises(ValueError, match="names a function"):
        unpack(msgpack.packb(MEMBERS | {"meta": meta}), SPIDER)


def nested(kind: str, depth: int) -> Any:
    """So many containers in each other."""
    value: Any = "end"
    for _ in range(depth):
        value = {"list": [value], "tuple": (value,), "dict": {"a": value}}[kind]
    return value


@pytest.mark.requirement("REACH-4")
@pytest.mark.parametrize("kind", ["list", "tuple", "dict"])
def test_what_is_nested_too_deep_is_refused_when_it_is_packed(kind: str) -> None:
    request = Request("https://example.com/", cb_kwargs={"a": nested(kind, MAX_DEPTH - 1)})
    assert unpack(pack(request, SPIDER), SPIDER).cb_kwargs == request.cb_kwargs
    for depth in (MAX_DEPTH, 200, 100_000):
        with pytest.raises(
            ValueError,
            match=r"its `cb_kwargs` cannot be sent .*more than 32 containers in each other",
        ):
            pack(Request("https://example.com/", cb_kwargs={"a": nested(kind, depth)}), SPIDER)


def extended(depth: int) -> bytes:
    """Values of the extension type in each other."""
    octets: bytes = msgpack.packb([])
    for _ in range(depth - 1):
        octets = msgpack.packb([msgpack.ExtType(TUPLE, octets)])
    body: bytes = msgpack.packb(MEMBERS | {"flags": msgpack.ExtType(TUPLE, octets)})
    return body


@pytest.mark.requirement("REACH-4")
@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 200, 2000])
def test_what_is_nested_too_deep_is_refused_when_it_is_read(depth: int) -> None:
    """A decoder that was called within a decoder ended the process, and the next one that leased the request."""
    arrays = b"\x82\xa3url\xa8http://a\xa5flags" + b"\x91" * depth + b"\xc0"
    for octets in (extended(depth), arrays):
        with pytest.raises(ValueError):  # noqa: PT011  # MessagePack's own words, or ours
            unpack(octets, SPIDER)
        assert isinstance(url_of(octets), str)


@pytest.mark.requirement("REACH-4")
def test_tuples_are_read_as_they_were_written_before() -> None:
    """By the packer that called itself for each tuple."""
    octets = bytes.fromhex(
        "82a375726cb1687474703a2f2f612e6578616d706c652fa46d65746181a161c7060192d501910102"
    )
    assert unpack(octets, SPIDER).meta == {"a": ((1,), 2)}
    assert url_of(octets) == "http://a.example/"
    assert unpack(extended(MAX_DEPTH), SPIDER).flags
