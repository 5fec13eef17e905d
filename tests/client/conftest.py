"""Make requests with httpx and aiohttp, as scripts do."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import httpx
import pytest

from comity.client import Client
from comity.client import aiohttp as through_aiohttp
from comity.client import httpx as through_httpx
from comity.policies import Page


class Got(NamedTuple):
    """A response with its whole body and its page."""

    status: int
    url: str
    body: bytes
    page: Page
    response: Any


class Library(NamedTuple):
    """A library for requests.

    Inside `opened(client)`, call `ask(method, url, headers=..., said=..., follows=...)`."""

    name: str
    opened: Callable[[Client], AbstractAsyncContextManager[Callable[..., Any]]]
    error: type[Exception]  # the base class of its errors, refusals included


@asynccontextmanager
async def over_httpx(client: Client) -> AsyncIterator[Callable[..., Any]]:
    # Reading the certificates of the machine would take longer than most tests.
    transport = httpx.AsyncHTTPTransport(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    async with httpx.AsyncClient(transport=through_httpx.Transport(client, transport)) as http:

        async def ask(
            method: str,
            url: str,
            *,
            said: dict[str, Any] | None = None,
            follows: bool = True,
            **arguments: Any,
        ) -> Got:
            extensions = {"comity": said} if said else None
            response = await http.request(
                method, url, extensions=extensions, follow_redirects=follows, **arguments
            )
            page = await through_httpx.page_of(response)
            return Got(response.status_code, str(response.url), response.content, page, response)

        yield ask


@asynccontextmanager
async def over_aiohttp(client: Client) -> AsyncIterator[Callable[..., Any]]:
    async with aiohttp.ClientSession(middlewares=(through_aiohttp.middleware(client),)) as session:

        async def ask(
            method: str,
            url: str,
            *,
            said: dict[str, Any] | None = None,
            follows: bool = True,
            **arguments: Any,
        ) -> Got:
            with through_aiohttp.saying(**(said or {})):
                async with session.request(
                    method, url, allow_redirects=follows, **arguments
                ) as response:
                    page = await through_aiohttp.page_of(response)
                    return Got(
                        response.status, str(response.url), await response.read(), page, response
                    )

        yield ask


LIBRARIES = (
    Library("httpx", over_httpx, httpx.RequestError),
    Library("aiohttp", over_aiohttp, aiohttp.ClientError),
)


@pytest.fixture(params=LIBRARIES, ids=lambda library: library.name)
def library(request: pytest.FixtureRequest) -> Library:
    chosen: Library = request.param
    return chosen
