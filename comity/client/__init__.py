"""Judge, pace and count the requests of scripts and agents without Scrapy (docs/clients.md).

    async with Client("examplebot") as client:
        admission = await client.admit("https://example.com/")    # RefusedError

The rules are those of a crawl. `comity.client.httpx` and `comity.client.aiohttp` apply them to each
request of these libraries."""

from comity.client.admission import Admission
from comity.client.client import Client
from comity.client.counts import Counts
from comity.client.errors import ClosedError, RefusedError
from comity.policies.answers.request import Session

__all__ = ["Admission", "Client", "ClosedError", "Counts", "RefusedError", "Session"]
