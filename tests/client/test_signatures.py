"""Signed requests of httpx and aiohttp, by what the servers saw."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from comity.client import Client
from comity.policies import PolicyError
from tests.live import test_signatures
from tests.live.test_signatures import AGENT, Verified, check_all, two_sites

if TYPE_CHECKING:
    from tests.client.conftest import Library
    from tests.conftest import Serve

key, verified = test_signatures.key, test_signatures.verified  # fixtures


@pytest.mark.requirement("BOT-1", "WEB-3")
def test_each_request_of_a_client_is_signed_for_its_server(
    serve: Serve, library: Library, key: Path, verified: Verified
) -> None:
    servers = site, other = two_sites(serve)

    async def run() -> None:
        client = Client(
            "testbot", store=None, min_delay=0, key=str(key), signature_agent=AGENT, inner="allow"
        )
        async with client, library.opened(client) as ask:
            for path in ("/page", "/near", "/away"):
                got = await ask("GET", site.url(path))
                assert got.status == 200

    asyncio.run(run())
    check_all(servers, verified)
    assert site.paths.count("/page") == 2
    assert other.paths == ["/robots.txt", "/page"]


@pytest.mark.requirement("BOT-1")
def test_a_client_needs_both_keywords() -> None:
    with pytest.raises(PolicyError, match="key is set, but signature_agent is not: set"):
        Client("testbot", store=None, key="key.pem")
