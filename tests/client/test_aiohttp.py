"""The client with features that only aiohttp has."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import TYPE_CHECKING

import aiohttp
import pytest

from comity.client import Client
from comity.client.aiohttp import RefusedError, middleware, page_of
from comity.policies import PolicyError
from tests.live.test_inner_addresses import Outside
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Serve

ROBOTS = "User-agent: *\nDisallow: /no\n"
pytestmark = pytest.mark.requirement("WEB-3")


def test_a_web_socket_is_refused(serve: Serve) -> None:
    server = serve({"/robots.txt": ROBOTS})

    async def run() -> None:
        async with (
            Client("testbot", store=None) as client,
            aiohttp.ClientSession(middlewares=(middleware(client),)) as session,
        ):
            with pytest.raises(RefusedError) as refused:
                await session.ws_connect(server.url("/").replace("http", "ws"))
            assert refused.value.decision.reasons[0].rule == "comity.scheme"

    asyncio.run(run())
    assert server.seen == []


def test_a_wait_that_is_too_long_for_the_timeout_gives_its_turn_back(serve: Serve) -> None:
    server = serve({"/robots.txt": ROBOTS, "/": "<p>page</p>"})

    async def run() -> None:
        client, timeout = (
            Client("testbot", store=None, min_delay=0, per_host=1),
            aiohttp.ClientTimeout(total=0.1),
        )
        async with client, aiohttp.ClientSession(middlewares=(middleware(client),)) as session:
            admission = await client.admit(server.url("/"))
            with pytest.raises(TimeoutError):
                await session.get(server.url("/"), timeout=timeout)
            admission.ended()
            async with session.get(server.url("/")) as response:
                assert response.status == 200

    asyncio.run(run())


def test_a_refusal_after_a_redirect_leaves_the_next_request_to_the_operator(serve: Serve) -> None:
    """A refused redirect does not lead to a later request of the same task."""
    other = serve({"/robots.txt": ROBOTS})
    site = serve(
        {
            "/robots.txt": ROBOTS,
            "/": serve.Answer(status=302, headers={"Location": other.url("/no")}),
        }
    )

    async def run() -> None:
        async with (
            Client("testbot", store=None, min_delay=0) as client,
            aiohttp.ClientSession(middlewares=(middleware(client),)) as session,
        ):
            with pytest.raises(RefusedError):
                await session.get(site.url("/"))
            assert client._parts
            assert list(client._parts.referrals._origins) == [site.origin]
            async with session.get(other.url("/")):
                assert list(client._parts.referrals._origins) == [site.origin, other.origin]

    asyncio.run(run())


async def in_another_task(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Run the handler in another task, like time limits before Python 3.12, shields and races."""
    return await asyncio.ensure_future(handler(request))


async def once_more(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Repeat the request after status 401, as middlewares for credentials do."""
    response = await handler(request)
    if response.status != 401:
        return response
    response.release()
    return await handler(request)


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize(
    ("others", "is_requoted", "host"),
    one_in(
        5,  # every value occurs in a fifth of the cases
        product(
            [(), (in_another_task,), (once_more,)],
            [True, False],
            ["127.0.0.1", "LOCALHOST", "[::ffff:127.0.0.1]", "user:secret@127.0.0.1"],
        ),
    ),
)
def test_a_redirect_leads_however_it_is_spelt_and_followed(
    serve: Serve, others: tuple[aiohttp.ClientMiddlewareType, ...], is_requoted: bool, host: str
) -> None:
    inner = serve({"/robots.txt": ROBOTS})
    site = serve(
        {
            "/robots.txt": ROBOTS,
            "/": serve.Answer(status=302, headers={"Location": f"http://{host}:{inner.port}/"}),
        },
        "127.0.0.2",
    )

    async def run() -> None:
        async with Client("testbot", store=None, min_delay=0) as client:
            assert client._parts
            client._parts.client.network = Outside(client._parts.options.client)
            middlewares = (*others, middleware(client))
            async with aiohttp.ClientSession(
                middlewares=middlewares, requote_redirect_url=is_requoted
            ) as session:
                with pytest.raises(RefusedError) as refused:
                    await session.get(site.url("/"))
            assert refused.value.decision.reasons[0].rule == "comity.inner-address"

    asyncio.run(run())
    assert inner.seen == []


def test_a_site_leads_to_requests_repeated_behind_a_redirect(serve: Serve) -> None:
    """The site leads to the repeated request too: the operator has not chosen it."""
    statuses = iter((401, 200))
    other = serve({"/robots.txt": ROBOTS, "/": lambda _: serve.Answer(status=next(statuses))})
    site = serve(
        {"/robots.txt": ROBOTS, "/": serve.Answer(status=302, headers={"Location": other.url("/")})}
    )

    async def run() -> None:
        async with (
            Client("testbot", store=None, min_delay=0) as client,
            aiohttp.ClientSession(middlewares=(once_more, middleware(client))) as session,
        ):
            async with session.get(site.url("/")) as response:
                assert response.status == 200
            assert client._parts
            assert list(client._parts.referrals._origins) == [site.origin]

    asyncio.run(run())


def test_a_response_that_came_by_another_way_has_no_page(serve: Serve) -> None:
    server = serve({"/": "<p>page</p>"})

    async def run() -> None:
        async with aiohttp.ClientSession() as session, session.get(server.url("/")) as response:
            with pytest.raises(PolicyError, match="did not come through comity"):
                await page_of(response)

    asyncio.run(run())
