"""Requests of scripts and agents without Scrapy: judged, paced and counted as those of a crawl (docs/clients.md).

    async with Client("examplebot") as client:
        admission = await client.admit("https://example.com/")    # RefusedError

`comity.client.httpx` and `comity.client.aiohttp` do that for each request of these libraries."""

from comity.client.admission import Admission
from comity.client.client import Client
from comity.client.counts import Counts
from comity.client.errors import ClosedError, RefusedError
from comity.policies.answers.request import Session

__all__ = ["Admission", "Client", "ClosedError", "Counts", "RefusedError", "Session"]
