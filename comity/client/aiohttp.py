"""aiohttp through comity: each request, and each hop of a redirect, is judged, paced and counted before it goes out.

    async with Client("examplebot") as client, aiohttp.ClientSession(middlewares=(middleware(client),)) as session:
        async with session.get("https://example.com/") as response:    # RefusedError, which is an aiohttp.ClientError
            page = await page_of(response)                             # what may be done with it

What a request is besides its URL, method and header fields is said around it: `with saying(kind="xhr", led_by=response): ...`,
with the keywords of `Client.admit`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

from aiohttp import (
    ClientConnectionError,
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
from comity.client.options import admit_options, redirect_options
from comity.gate.fetching.redirects import REDIRECTS
from comity.gate.pace.standstill import StoodStillError
from comity.policies import Page, PolicyError


class RefusedError(Refused, ClientError):
    """The request may not be made, or its answer may not be used."""


_SILENT = TraceConfig()  # hears nothing
_SILENT.freeze()


class _Leader(Trace):
    """The admission whose answer leads to the next hop. It stands among the traces of a request: nothing else goes with all of
    its hops, in whatever task other middlewares make them, and ends with the last one."""

    def __init__(self, request: ClientRequest, admission: Admission) -> None:
        super().__init__(request.session, _SILENT, SimpleNamespace())
        self.admission = admission


# In the task of a request: the options that are said around it.
_options: ContextVar[dict[str, Any] | None] = ContextVar("comity_said", default=None)

_admissions: WeakKeyDictionary[ClientResponse, Admission] = WeakKeyDictionary()


def middleware(client: Client) -> ClientMiddlewareType:
    """The middleware for `middlewares=` of a session: the last one, so that it sees what the others make of a request."""

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
                **options,
            )
        except Refused as refused:
            raise RefusedError(refused.decision, refused.url, refused.method) from None
        admission.declare(request.headers)
        peers: list[str] = []
        if request.proxy is None:
            _note_peer(request, peers)
        try:
            response = await admission.sent(lambda: handler(request))
        except BaseException as error:
            admission.failed()
            if isinstance(error, StoodStillError):
                raise ClientConnectionError(str(error)) from None
            raise
        connection = response.connection  # None: the body has come already
        refusal = admission.answered(
            response.status,
            response.raw_headers,
            address=peers[-1] if peers else None,
            body_follows=connection is not None,
        )
        if refusal is not None:
            response.close()
            raise RefusedError(refusal, admission.url, request.method)
        if connection is not None:
            connection.add_callback(admission.ended)
        if response.status in REDIRECTS:
            request._traces.append(_Leader(request, admission))
        _admissions[response] = admission
        return response

    return comity_middleware


def _note_peer(request: ClientRequest, peers: list[str]) -> None:
    """Note where the request goes, once that is known: the connection of an answer is gone when its body has come."""
    send = request.send

    async def noting(connection: Connection) -> ClientResponse:
        peer = (
            connection.transport.get_extra_info("peername")
            if connection.transport is not None
            else None
        )
        if isinstance(peer, tuple):
            peers.append(str(peer[0]))
        return await send(connection)

    request.send = noting  # type: ignore[assignment, method-assign]  # there is no other place that sees every connection


@contextmanager
def saying(**options: Any) -> Iterator[None]:
    """Say of the requests that are made within, in this task, what they are, with keywords of `Client.admit`. PolicyError for
    others.

    `led_by`: a response, or an admission."""
    token = _options.set(admit_options(options, _admission_of))
    try:
        yield
    finally:
        _options.reset(token)


async def page_of(response: ClientResponse) -> Page:
    """The permissions of what came back; it is read where it was not yet. PolicyError for a response that did not come through
    the middleware."""
    admission = _admission_of(response)
    body = await response.read()
    return await admission.client.page(admission, response.status, response.raw_headers, body)


def _admission_of(response: Any) -> Admission:
    admission = _admissions.get(response) if isinstance(response, ClientResponse) else response
    if not isinstance(admission, Admission):
        raise PolicyError(
            "this is no response that came through comity: write one, or its admission"
        )
    return admission
