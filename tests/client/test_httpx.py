"""What only httpx has."""

from __future__ import annotations

import asyncio
import ssl
import sys
from typing import TYPE_CHECKING

import httpx
import pytest

from comity.client import Client
from comity.client.httpx import Transport, page_of
from comity.policies import PolicyError

if TYPE_CHECKING:
    from tests.conftest import Serve

ROBOTS = "User-agent: *\nDisallow: /no\n"
pytestmark = pytest.mark.requirement("WEB-3")


def over(client: Client) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    return httpx.AsyncClient(transport=Transport(client, transport))


def test_streams_take_their_place_until_they_are_closed(serve: Serve) -> None:
    server = serve({"/robots.txt": ROBOTS, "/": "x" * 1_000_000})

    async def run() -> None:
        async with Client("testbot", store=None, min_delay=0, per_host=1) as client, over(client) as http:
            async with http.stream("GET", server.url("/")) as response:
                waiting = asyncio.create_task(http.get(server.url("/")))
                await asyncio.wait([waiting], timeout=0.05)
                assert not waiting.done()
                async for _ in response.aiter_bytes():
                    break
            assert len((await waiting).content) == 1_000_000

    asyncio.run(run())


def test_a_redirect_that_the_script_follows_is_one(serve: Serve) -> None:
    other = serve({"/robots.txt": ROBOTS})
    site = serve({"/robots.txt": ROBOTS, "/": serve.Answer(status=302, headers={"Location": other.url("/")})})

    async def run() -> None:
        async with Client("testbot", store=None, min_delay=0) as client, over(client) as http:
            response = await http.get(site.url("/"))
            assert response.next_request
            await http.send(response.next_request)
            assert client._parts
            assert list(client._parts.referrals._origins) == [site.origin]

    asyncio.run(run())


def test_what_is_asked_for_is_the_url(serve: Serve) -> None:
    server = serve({"/robots.txt": ROBOTS, "/": "<p>page</p>"})

    async def run() -> None:
        async with Client("testbot", store=None, min_delay=0) as client, over(client) as http:
            with pytest.raises(PolicyError, match="extension `target`"):
                await http.get(server.url("/"), extensions={"target": b"/no"})
            with pytest.raises(httpx.RequestError) as refused:  # no credential is shown
                await http.get(server.url("/no").replace("http://", "http://name:secret@"))
            assert "secret" not in str(refused.value)

    asyncio.run(run())
    assert server.paths == ["/robots.txt"]


def test_a_response_that_came_by_another_way_has_no_page() -> None:
    with pytest.raises(PolicyError, match="no response that came through comity"):
        asyncio.run(page_of(httpx.Response(200)))


def test_without_httpx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.delitem(sys.modules, "comity.client.httpx")
    with pytest.raises(ImportError, match=r"pip install 'comity\[httpx\]'"):
        import comity.client.httpx  # noqa: F401
