"""Send requests of aiohttp through comity.

Each request, and each hop of a redirect, is judged, paced and counted before it goes out.

    async with Client("examplebot") as client:
        async with aiohttp.ClientSession(middlewares=(middleware(client),)) as session:
            async with session.get("https://example.com/") as response:    # RefusedError
                page = await page_of(response)    # the permissions

The RefusedError of this module is an aiohttp.ClientError too. To declare more about requests than
URL, method and header fields, make them inside `with saying(kind="xhr", led_by=response):`, which
takes keywords of `Client.admit`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

from comity.extras import required

with required("comity.client.aiohttp", "aiohttp"):
    from aiohttp import (
        ClientConnectionError,
        ClientConnectorError,
        ClientError,
        ClientHandlerType,
        ClientMiddlewareType,
        ClientRequest,
        ClientResponse,
        TraceConfig,
        hdrs,
    )
    from aiohttp.connector import Connection
    from aiohttp.http import SERVER_SOFTWARE
    from aiohttp.tracing import Trace

from comity.client.admission import Admission
from comity.client.client import Client
from comity.client.errors import RefusedError as Refused
from comity.client.options import DOCUMENT_SECONDS, admit_options, redirect_options
from comity.gate.fetching.redirects import REDIRECTS
from comity.gate.pace.standstill import StoodStillError
from comity.gate.request.books import BooksError
from comity.policies import Page, PolicyError
from comity.policies.document.offer import MAX_DOCUMENT, PAYMENT_REQUIRED


class RefusedError(Refused, ClientError):
    """The request may not be made, or its answer may not be used."""


_SILENT = TraceConfig()  # without callbacks
_SILENT.freeze()


class _Leader(Trace):
    """The admission of a redirected request, for the next hop of the redirect.

    aiohttp hands the list of traces from hop to hop, even if other middlewares make each hop in a
    task of its own, and drops the list after the last hop. Nothing else has both properties, so the
    admission is disguised as a trace."""

    def __init__(self, request: ClientRequest, admission: Admission) -> None:
        super().__init__(request.session, _SILENT, SimpleNamespace())
        self.admission = admission


# The options of the enclosing `saying`, for the requests of a task.
_options: ContextVar[dict[str, Any] | None] = ContextVar("comity_options", default=None)

_admissions: WeakKeyDictionary[ClientResponse, Admission] = WeakKeyDictionary()


def middleware(client: Client) -> ClientMiddlewareType:
    """Return the middleware for `middlewares=` of a session.

    Put it last: comity then judges each request after all other middlewares have changed it."""

    async def comity_middleware(
        request: ClientRequest, handler: ClientHandlerType
    ) -> ClientResponse:
        request.headers[hdrs.USER_AGENT] = client.user_agent_for(
            request.headers.get(hdrs.USER_AGENT), SERVER_SOFTWARE
        )
        options = dict(_options.get() or {})
        leader = next(
            (trace for trace in reversed(request._traces) if isinstance(trace, _Leader)), None
        )
        if leader is not None:
            options = redirect_options(options, leader.admission, str(request.url))
        try:
            admission = await client.admit(
                str(request.url),
                method=request.method,
                headers=list(request.headers.items()),
                proxy=None if request.proxy is None else str(request.proxy),
                **options,
            )
        except Refused as refused:
            raise RefusedError(refused.decision, refused.url, refused.method) from None
        except BooksError as error:
            raise ClientError(str(error)) from None
        admission.declare(request.headers)
        peers: list[str] = []
        if request.proxy is None:
            _note_peer(request, peers)
        try:
            response = await admission.sent(lambda: handler(request))
            connection = response.connection  # None: the whole body has arrived already
            body = await _document(response)
        except BaseException as error:
            admission.failed(is_sent=not isinstance(error, ClientConnectorError))
            if isinstance(error, StoodStillError):
                raise ClientConnectionError(str(error)) from None
            raise
        refusal = admission.answered(
            response.status,
            response.raw_headers,
            address=peers[-1] if peers else None,
            body_follows=connection is not None,
            body=body,
        )
        if refusal is not None:
            response.close()
            raise RefusedError(refusal, admission.url, request.method, admission.offer)
        if connection is not None:
            connection.add_callback(admission.ended)
        if response.status in REDIRECTS:
            request._traces.append(_Leader(request, admission))
        _admissions[response] = admission
        return response

    return comity_middleware


async def _document(response: ClientResponse) -> bytes:
    """Return the beginning of the body if it may have the terms of an offer, else b"".

    A coded body is not read, because a small one may become large. If the task is cancelled, the
    response is closed."""
    body = b""
    if response.status == PAYMENT_REQUIRED and hdrs.CONTENT_ENCODING not in response.headers:
        try:
            with suppress(ClientError, TimeoutError):
                async with asyncio.timeout(DOCUMENT_SECONDS):
                    while len(body) <= MAX_DOCUMENT and (part := await response.content.readany()):
                        body += part
        except BaseException:
            response.close()
            raise
    return body


def _note_peer(request: ClientRequest, peers: list[str]) -> None:
    """Make the request add the server's IP address to `peers` each time that it is sent.

    The response cannot give the address: if the body is complete, it has no connection any more."""
    send = request.send

    async def send_and_note(connection: Connection) -> ClientResponse:
        peer = (
            connection.transport.get_extra_info("peername")
            if connection.transport is not None
            else None
        )
        if isinstance(peer, tuple):
            peers.append(str(peer[0]))
        return await send(connection)

    # No other place sees every connection.
    request.send = send_and_note  # type: ignore[assignment, method-assign]


@contextmanager
def saying(**options: Any) -> Iterator[None]:
    """Declare facts of the requests that this task makes inside the `with` block.

    `options`: keywords of `Client.admit`. `led_by` may be a response or an admission.
    PolicyError: a keyword is unknown, or `led_by` is a response that did not come through comity.
    """
    token = _options.set(admit_options(options, _admission_of))
    try:
        yield
    finally:
        _options.reset(token)


async def page_of(response: ClientResponse) -> Page:
    """Return the page of the response, with its permissions. The body is read if necessary.

    PolicyError: the response did not come through the middleware."""
    admission = _admission_of(response)
    body = await response.read()
    return await admission.client.page(admission, response.status, response.raw_headers, body)


def _admission_of(response: Any) -> Admission:
    admission = _admissions.get(response) if isinstance(response, ClientResponse) else response
    if not isinstance(admission, Admission):
        raise PolicyError(
            "this response did not come through comity: write one that did, or its admission"
        )
    return admission
