"""The client with features that only httpx has."""

from __future__ import annotations

import asyncio
import ssl
import sys
from typing import TYPE_CHECKING

import httpx
import pytest

from comity.client import Client, RefusedError
from comity.client.httpx import Transport, page_of
from comity.policies import PolicyError
from tests.http2_server import Http2Server

if TYPE_CHECKING:
    from tests.certificates import Authority
    from tests.conftest import Serve

ROBOTS = "User-agent: *\nDisallow: /no\n"
pytestmark = pytest.mark.requirement("WEB-3")


def over(client: Client) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    return httpx.AsyncClient(transport=Transport(client, transport))


def test_streams_take_their_place_until_they_are_closed(serve: Serve) -> None:
    server = serve({"/robots.txt": ROBOTS, "/": "x" * 1_000_000})

    async def run() -> None:
        async with (
            Client("testbot", store=None, min_delay=0, per_host=1) as client,
            over(client) as http,
        ):
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
    site = serve(
        {"/robots.txt": ROBOTS, "/": serve.Answer(status=302, headers={"Location": other.url("/")})}
    )

    async def run() -> None:
        async with Client("testbot", store=None, min_delay=0) as client, over(client) as http:
            response = await http.get(site.url("/"))
            assert response.next_request
            await http.send(response.next_request)
            assert client._parts
            assert list(client._parts.referrals._origins) == [site.origin]

    asyncio.run(run())


def test_the_target_extension_is_an_error(serve: Serve) -> None:
    server = serve({"/robots.txt": ROBOTS, "/": "<p>page</p>"})

    async def run() -> None:
        async with Client("testbot", store=None, min_delay=0) as client, over(client) as http:
            with pytest.raises(PolicyError, match="extension `target`"):
                await http.get(server.url("/"), extensions={"target": b"/no"})
            with pytest.raises(httpx.RequestError) as refused:  # the error shows no credentials
                await http.get(server.url("/no").replace("http://", "http://name:secret@"))
            assert "secret" not in str(refused.value)

    asyncio.run(run())
    assert server.paths == ["/robots.txt"]


def test_a_response_that_came_by_another_way_has_no_page() -> None:
    with pytest.raises(PolicyError, match="did not come through comity"):
        asyncio.run(page_of(httpx.Response(200)))


def test_without_httpx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.delitem(sys.modules, "comity.client.httpx")
    with pytest.raises(
        ImportError, match=r'^comity.client.httpx needs httpx: pip install "comity\[httpx\]"$'
    ):
        import comity.client.httpx  # noqa: F401


@pytest.mark.requirement("MEET-1", "MEET-6")
def test_over_http2_the_judged_request_goes_out(authority: Authority) -> None:
    server = Http2Server(
        authority.issue("127.0.0.1"), {"/robots.txt": f"{ROBOTS}Disallow: /x;1/b$\n"}
    )
    context = ssl.create_default_context(cafile=authority.certificates)
    targets = ("/a;b", "/a;", "/a%2Fb", "/?q=%2F", "/a?", "/a?x=/../b", "/a!$&()*+,=", "/x;1/a;2")
    refused = ("/no", "/no;a", "//no", "/a/../no", "/..;/no", "/%6eo", "/x;1/b", "/x;1/b;2")
    shapes: list[dict[str, str]] = [
        {":path": "/no"},
        {":authority": "other.example"},
        {"X-A": "b\r\nHost: c"},
        {"X-A: b\r\nX": "c"},
    ]

    async def run() -> None:
        transport = httpx.AsyncHTTPTransport(verify=context, http2=True)
        async with (
            Client("testbot", store=None, min_delay=0) as client,
            httpx.AsyncClient(transport=Transport(client, transport)) as http,
        ):
            for target in targets:
                assert (await http.get(server.origin + target)).http_version == "HTTP/2"
            for target in refused:
                with pytest.raises(RefusedError, match=r"robots\.disallow"):
                    await http.get(server.origin + target)
            for fields in shapes:
                with pytest.raises(RefusedError, match=r"comity\.declaration"):
                    await http.get(f"{server.origin}/a", headers=fields)
            with pytest.raises(PolicyError, match="as Host names another site"):
                await http.get(f"{server.origin}/a", headers={"Host": "other.example"})

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(authority.certificates))
        asyncio.run(run())
    server.close()
    assert [stream.field(":path") for stream in server.streams] == list(targets)
    assert {stream.field(":authority") for stream in server.streams} == {
        server.origin.removeprefix("https://")
    }
