"""The crawls of the tests themselves: none can wait for ever."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider

if TYPE_CHECKING:
    from tests.conftest import Crawled


class Stands(Spider):
    name = "stands"

    async def start(self) -> AsyncIterator[Any]:
        logging.getLogger("stands").info("the last that was heard")
        time.sleep(300)  # noqa: ASYNC251  # nobody in the process can help itself
        yield {}


class Ends(Spider):
    name = "ends"

    async def start(self) -> AsyncIterator[Any]:
        yield {"a": 1}


@pytest.mark.slow
def test_a_crawl_that_does_not_end_fails_with_its_log(
    crawl_together: Callable[..., list[Crawled]],
) -> None:
    off = {"COMITY_TAG": "off"}
    crawl_together(Ends, off, {})  # everything is loaded
    with pytest.raises(
        RuntimeError,
        match=r"(?s)the worker ended with 1:.*the last that was heard.*Timeout.*in start",
    ) as caught:
        crawl_together(Stands, off, {}, deadline=10)
    assert "Spider opened" in str(caught.value)
    (crawled,) = crawl_together(Ends, off, {})
    assert crawled.items == [{"a": 1}]
    assert "last that was heard" not in crawled.log
