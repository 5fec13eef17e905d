"""WebSockets of pages. The protocol does not pause their handshakes, so Playwright replaces them in each frame, and each is made
from here once it is admitted: by the cookies of its context, as from its page."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial

from playwright.async_api import BrowserContext, Page, WebSocketRoute
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.http11 import Response as HttpResponse
from websockets.typing import Origin, Subprotocol

from comity.browser.admission import Admissions, PageRequest
from comity.browser.kinds import SOCKET
from comity.browser.refusals import Refusal
from comity.policies import Decision
from comity.policies.syntax.urls import origin_or_empty

logger = logging.getLogger(__name__)

REFUSED = 1008  # RFC 6455 section-7.4.1: a policy is violated
FAILED = 1011  # there is no connection


class Sockets:
    """The WebSockets of the pages of one browser."""

    def __init__(self, admissions: Admissions, note_refusal: Callable[[Refusal, Page | None], None], user_agent: str) -> None:
        """`note_refusal`: is told of what is refused, with the page where it is known."""
        self._admissions = admissions
        self._note_refusal = note_refusal
        self._user_agent = user_agent
        self._pumps: set[asyncio.Task[None]] = set()

    async def enter(self, target: BrowserContext | Page) -> None:
        context, page = (target.context, target) if isinstance(target, Page) else (target, None)
        await target.route_web_socket("**", partial(self._on_socket, context, page))

    def close(self) -> None:
        for pump in self._pumps:
            pump.cancel()

    async def _on_socket(self, context: BrowserContext, page: Page | None, route: WebSocketRoute) -> None:
        """The page takes it for open when this is through."""
        url = "http" + route.url.removeprefix("ws")
        cookies = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in await context.cookies(url))
        fields = {"Cookie": cookies} if cookies else {}
        leads_there = page.url if page is not None else ""
        admission = await self._admissions.admit(
            PageRequest(url=url, method="GET", kind=SOCKET, fields=fields, leads_there=leads_there)
        )
        if isinstance(admission, Decision):
            self._note_refusal(Refusal(url, SOCKET.name, admission), page)
            await route.close(code=REFUSED, reason="refused by a policy of the site")
            return
        try:
            connection = await _Direct(
                route.url,
                origin=Origin(origin_or_empty(leads_there)) if origin_or_empty(leads_there) else None,
                subprotocols=[Subprotocol(name) for name in route.protocols] or None,
                additional_headers=fields,
                user_agent_header=self._user_agent,
                max_size=None,
            )
        except (OSError, TimeoutError, WebSocketException) as error:
            if isinstance(error, InvalidStatus):
                admission.answered(error.response.status_code, _fields(error.response))
            logger.info("No WebSocket to %(url)s: %(error)s", {"url": url, "error": error})
            await route.close(code=FAILED, reason="no connection")
            return
        finally:
            admission.ended()
        pump = asyncio.create_task(_pump(connection, route))
        self._pumps.add(pump)
        pump.add_done_callback(self._pumps.discard)


def _fields(response: HttpResponse) -> Iterator[tuple[bytes, bytes]]:
    return (
        (name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in response.headers.raw_items()
    )


class _Direct(connect):
    """A connection as browsers make it: they follow no redirects, which nobody has judged."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def _pump(connection: ClientConnection, route: WebSocketRoute) -> None:
    """Hand messages on in both directions until one side is through."""
    outgoing: asyncio.Queue[str | bytes | None] = asyncio.Queue()
    route.on_message(outgoing.put_nowait)
    route.on_close(lambda code, reason: outgoing.put_nowait(None))

    async def send() -> None:
        while (message := await outgoing.get()) is not None:
            await connection.send(message)
        await connection.close()

    sending = asyncio.create_task(send())
    try:
        async for message in connection:
            route.send(message)
    except ConnectionClosed:
        pass
    finally:
        sending.cancel()
        await connection.close()
        await route.close(code=connection.close_code or 1000, reason=connection.close_reason)
