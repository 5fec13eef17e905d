"""Send requests of httpx through comity.

Each request, and each hop of a redirect, is judged, paced and counted before it goes out.

    async with Client("examplebot") as client:
        async with httpx.AsyncClient(transport=Transport(client)) as http:
            response = await http.get("https://example.com/")    # RefusedError
            page = await page_of(response)    # the permissions

The RefusedError of this module is an httpx.RequestError too. To declare more about a request than
URL, method and header fields, put the keywords of `Client.admit` into its extensions:
`extensions={"comity": {"kind": "xhr", "led_by": response}}`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from comity.extras import required

with required("comity.client.httpx", "httpx"):
    import httpx

from comity.client.admission import Admission
from comity.client.client import Client
from comity.client.errors import RefusedError as Refused
from comity.client.options import DOCUMENT_SECONDS, admit_options, redirect_options
from comity.gate.pace.standstill import StoodStillError
from comity.gate.request.books import BooksError
from comity.policies import Page, PolicyError
from comity.policies.document.offer import MAX_DOCUMENT, PAYMENT_REQUIRED

# Keys of extensions. KEY: the declared options in a request, the admission in a response. _LEADER:
# in each further hop of a redirect, the admission of the hop before. httpx copies the extensions of
# a request to the next hop.
KEY = "comity"
_LEADER = "comity_leader"

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_OWN_NAME = f"python-httpx/{httpx.__version__}"  # the default User-Agent of httpx


class RefusedError(Refused, httpx.RequestError):
    """The request may not be made, or its answer may not be used."""

    def __init__(self, refused: Refused, request: httpx.Request) -> None:
        httpx.RequestError.__init__(self, str(refused), request=request)
        self.decision, self.url, self.method = refused.decision, refused.url, refused.method
        self.offer = refused.offer


class Transport(httpx.AsyncBaseTransport):
    """A transport that has each request judged by a Client, and made by another transport."""

    def __init__(self, client: Client, transport: httpx.AsyncBaseTransport | None = None) -> None:
        """Take the client that judges the requests, and the transport that makes them.

        `transport`: None means `httpx.AsyncHTTPTransport()`. To use a proxy, pass a transport with
        that proxy here, and name the proxy to the Client too (`proxy=`)."""
        self._client = client
        self._transport = httpx.AsyncHTTPTransport() if transport is None else transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.headers["User-Agent"] = self._client.user_agent_for(
            request.headers.get("User-Agent"), _OWN_NAME
        )
        try:
            admission = await self._admit(request)
        except Refused as refused:
            raise RefusedError(refused, request) from None
        except BooksError as error:
            raise httpx.RequestError(str(error), request=request) from None
        admission.declare(request.headers)
        try:
            response = await admission.sent(lambda: self._transport.handle_async_request(request))
            body = await _document(response)
        except BaseException as error:
            admission.failed(is_sent=not isinstance(error, _NOT_SENT))
            if isinstance(error, StoodStillError):
                raise httpx.ConnectError(str(error), request=request) from None
            raise
        stream = response.extensions.get("network_stream")
        peer = stream.get_extra_info("server_addr") if stream is not None else None
        address = str(peer[0]) if isinstance(peer, tuple) else None
        refusal = admission.answered(
            response.status_code,
            response.headers.raw,
            address=address,
            body_follows=True,
            body=body,
        )
        if refusal is not None:
            await response.aclose()
            of_answer = Refused(refusal, admission.url, request.method, admission.offer)
            raise RefusedError(of_answer, request)
        if response.has_redirect_location:
            request.extensions[_LEADER] = admission
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Body(response.stream, admission)
        response.extensions[KEY] = admission
        return response

    async def _admit(self, request: httpx.Request) -> Admission:
        if "target" in request.extensions:
            raise PolicyError(
                "the extension `target` asks for another resource than the URL: leave it out, and"
                " write the URL of that resource"
            )
        options = admit_options(request.extensions.get(KEY, {}), _admission_of)
        leader: Admission | None = request.extensions.get(_LEADER)
        url = str(request.url.copy_with(userinfo=b"") if request.url.userinfo else request.url)
        if leader is not None:
            options = redirect_options(options, leader, url)
        return await self._client.admit(
            url, method=request.method, headers=request.headers.raw, **options
        )

    async def aclose(self) -> None:
        await self._transport.aclose()


async def _document(response: httpx.Response) -> bytes:
    """Return the beginning of the body if it may have the terms of an offer, else b"".

    A coded body is not read, because a small one may become large. If the task is cancelled, the
    response is closed."""
    body = b""
    if response.status_code == PAYMENT_REQUIRED and "Content-Encoding" not in response.headers:
        try:
            with suppress(httpx.HTTPError, TimeoutError):
                async with asyncio.timeout(DOCUMENT_SECONDS):
                    async for part in response.aiter_raw():
                        body += part
                        if len(body) > MAX_DOCUMENT:
                            break
        except BaseException:
            await response.aclose()
            raise
    return body


class _Body(httpx.AsyncByteStream):
    """The body of a response. Closing it also marks the request as ended."""

    def __init__(self, stream: httpx.AsyncByteStream, admission: Admission) -> None:
        self._stream = stream
        self._admission = admission

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for octets in self._stream:
            yield octets

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._admission.ended()


async def page_of(response: httpx.Response) -> Page:
    """Return the page of the response, with its permissions. The body is read if necessary.

    PolicyError: the response did not come through a Transport."""
    admission = _admission_of(response)
    body = await response.aread()
    return await admission.client.page(admission, response.status_code, response.headers.raw, body)


def _admission_of(response: Any) -> Admission:
    admission = response.extensions.get(KEY) if isinstance(response, httpx.Response) else response
    if not isinstance(admission, Admission):
        raise PolicyError(
            "this response did not come through comity: write one that did, or its admission"
        )
    return admission
