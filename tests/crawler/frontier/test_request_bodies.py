"""Requests as other processes get them: the same values, and nothing that runs."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Spider
from scrapy.http import FormRequest, HtmlResponse, Request
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from comity.crawler.frontier.request_bodies import packed, unpacked, url_of


class Pages(Spider):
    name = "pages"

    def parse_page(self, response: object) -> None: ...

    def failed(self, failure: object) -> None: ...


SPIDER = Pages()
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(-5, 5), inner),
    max_leaves=20,
)


@pytest.mark.requirement("REACH-4")
@given(meta=st.dictionaries(st.text(), plain), values=st.dictionaries(st.text(), plain), body=st.binary())
def test_what_is_unpacked_is_what_was_packed(meta: dict[str, Any], values: dict[str, Any], body: bytes) -> None:
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
    octets = packed(request, SPIDER)
    assert url_of(octets) == request.url
    again = unpacked(octets, SPIDER)
    assert again.to_dict(spider=SPIDER) == request.to_dict(spider=SPIDER)
    assert again.callback == SPIDER.parse_page


def test_a_class_of_requests_stays() -> None:
    request = FormRequest("https://example.com/", formdata={"a": "b"})
    again = unpacked(packed(request, SPIDER), SPIDER)
    assert type(again) is FormRequest
    assert again.body == b"a=b"


class Own:
    pass


class Word(StrEnum):
    A = "a"


@pytest.mark.requirement("REACH-4")
@pytest.mark.parametrize("value", [Own(), datetime.now(UTC), {1, 2}, 2**64, Word.A, [(Own(),)]])
def test_what_is_no_plain_value_is_an_error_that_says_what_to_do(value: object) -> None:
    with pytest.raises(ValueError, match=r"its `meta` cannot be sent to other workers .*: use numbers, texts"):
        packed(Request("https://example.com/", meta={"a": value}), SPIDER)


@pytest.mark.requirement("REACH-4")
def test_the_requests_of_rules_can_be_sent() -> None:
    """The text of a link is no plain `str` there, but one of lxml."""
    spider = CrawlSpider(name="rules", rules=[Rule(LinkExtractor())])
    body = b"<a href='/a'>A <b>link</b></a>"
    response = HtmlResponse("https://example.com/", body=body, encoding="utf-8")
    (request,) = spider._requests_to_follow(response)
    assert request is not None
    assert type(request.meta["link_text"]) is not str
    again = unpacked(packed(request, spider), spider)
    assert (again.url, again.meta) == ("https://example.com/a", {"rule": 0, "link_text": "A link"})
    assert type(again.meta["link_text"]) is str


def test_a_callback_that_is_no_method_of_the_spider_is_an_error() -> None:
    with pytest.raises(ValueError, match="is not an instance method"):
        packed(Request("https://example.com/", callback=print), SPIDER)


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
        msgpack.packb(MEMBERS | {"_class": "subprocess.Popen"}),
        msgpack.packb(MEMBERS | {"_class": "no.such.module"}),
        msgpack.packb(MEMBERS | {"meta": msgpack.ExtType(2, b"")}),
        msgpack.packb(MEMBERS | {"meta": msgpack.Timestamp(1)}),
    ],
)
def test_what_is_no_request_is_an_error_and_runs_nothing(octets: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the words are those of whoever found out
        unpacked(octets, SPIDER)
    assert isinstance(url_of(octets), str)
