from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider

from comity.crawler.runtime import Runtime
from comity.crawler.transfer import PolicyTransfer

if TYPE_CHECKING:
    from tests.conftest import Crawled, Loopback

ALONE = {"ADDONS": {}, "DOWNLOADER_MIDDLEWARES": {"comity.crawler.transfer.PolicyTransfer": 950}, "COMITY_POLICY_TIMEOUT": 2}


class Asks(Spider):
    name = "asks"

    async def start(self) -> AsyncIterator[dict[str, Any]]:
        runtime = Runtime.of(self.crawler)
        for url in self.urls.split(","):
            origin = url.rsplit("/", 1)[0]
            policies = await runtime.policies.get(origin)
            yield {"decision": str(policies.site.access(runtime.agent, url)), "unreachable": policies.unreachable, "why": policies.why}


def test_a(serve: Callable[..., Loopback], crawl: Callable[..., Crawled]) -> None:
    site = serve({"/robots.txt": "User-agent: *\nDisallow: /x\n"})
    r = crawl(Asks, ALONE, urls=site.url("/x"))
    print(r.items, r.log, r.stats)
    assert 0
