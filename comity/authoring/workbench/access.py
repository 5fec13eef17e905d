"""The access check of the workbench: only its page in the user's browser may use the server.

Every request, WebSockets included, must meet three conditions:

1. Its Host is 127.0.0.1 with the port of the server. Other names that resolve to 127.0.0.1 do not
   work (DNS rebinding).
2. It has no Origin other than that of the server.
3. It has the token. The first request has the token in the printed URL, all others have it in a
   cookie that scripts cannot read and other sites cannot send."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qs, urlencode

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Fields = Iterable[tuple[bytes, bytes]]

# The maximum octets of Cookie fields. Browsers send the cookies of all servers on this host.
MAX_COOKIE = 16 * 1024

_REFUSED = """<!doctype html><html lang="en"><meta charset="utf-8"><title>comity workbench</title>
<h1>This page needs a token</h1>
<p>Open the address that <code>comity workbench</code> has printed. It contains the token. To open a
link that you have received, append its part from the # on to that address.</p></html>"""


def origin(port: int) -> str:
    return f"http://127.0.0.1:{port}"


class AccessCheck:
    """An ASGI application that checks each request, and calls another application if it passes."""

    def __init__(self, app: App, *, token: str, port: int) -> None:
        self.app = app
        self._token = token
        self._host = f"127.0.0.1:{port}"
        self._origin = origin(port)
        self._cookie = f"comity-workbench-{port}"  # all ports of a host share their cookies
        self._policy = (
            "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
            "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
            f"connect-src 'self' ws://{self._host}; frame-src 'none'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif not self._is_addressed(scope):
            await _refuse(scope, receive, send, 403)
        elif (
            scope["type"] == "http"
            and scope["method"] == "GET"
            and scope["path"] == "/"
            and self._has_token(scope)
        ):
            await self._let_in(scope, send)
        elif not self._has_cookie(scope):
            await _refuse(scope, receive, send, 403)
        else:
            await self.app(scope, receive, self._with_policy(send))

    def _is_addressed(self, scope: Scope) -> bool:
        """Return True if the request has this Host, once, and is not made by another site's page.

        A page of another site may only link to the workbench."""
        fields = [(name.lower(), value) for name, value in scope["headers"]]
        hosts = [value for name, value in fields if name == b"host"]
        origins = [value for name, value in fields if name == b"origin"]
        sites = [value for name, value in fields if name == b"sec-fetch-site"]
        if hosts != [self._host.encode()] or any(
            value != self._origin.encode() for value in origins
        ):
            return False
        # When a page of another site links to the workbench, browsers send no cookie, so the link
        # needs the token.
        if any(site not in (b"same-origin", b"none") for site in sites) and not self._is_navigation(
            scope, fields
        ):
            return False
        # Browsers send an Origin with WebSockets and with methods other than GET and HEAD.
        return bool(origins) or (scope["type"] == "http" and scope["method"] in ("GET", "HEAD"))

    @staticmethod
    def _is_navigation(scope: Scope, fields: Fields) -> bool:
        return (
            scope["type"] == "http"
            and scope["method"] == "GET"
            and (b"sec-fetch-mode", b"navigate") in fields
        )

    def _has_token(self, scope: Scope) -> bool:
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        return len(tokens) == 1 and self._is_token(tokens[0])

    def _has_cookie(self, scope: Scope) -> bool:
        fields = [value for name, value in scope["headers"] if name.lower() == b"cookie"]
        if sum(map(len, fields)) > MAX_COOKIE:
            return False
        for field in fields:
            for pair in field.decode("latin-1").split(";"):
                name, _, value = pair.strip().partition("=")
                if name == self._cookie and self._is_token(value):
                    return True
        return False

    def _is_token(self, value: str) -> bool:
        return hmac.compare_digest(value.encode(), self._token.encode())

    async def _let_in(self, scope: Scope, send: Send) -> None:
        """Put the token into a cookie, and redirect to `/`.

        Browsers keep the fragment of the first address, which may contain a state (link.py)."""
        cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
        fields = [(b"location", b"/"), (b"set-cookie", cookie.encode()), *_FIELDS]
        await _answer(send, 303, fields, b"")

    def _with_policy(self, send: Send) -> Send:
        async def send_with_policy(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                fields = [
                    *message.get("headers", ()),
                    (b"content-security-policy", self._policy.encode()),
                    *_FIELDS,
                ]
                message = {**message, "headers": fields}
            await send(message)

        return send_with_policy


_FIELDS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def address(port: int, token: str) -> str:
    """Return the address for the user, with the token."""
    return f"{origin(port)}/?{urlencode({'token': token})}"


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    fields = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-security-policy", b"default-src 'none'"),
        *_FIELDS,
    ]
    await _answer(send, status, fields, _REFUSED.encode())


async def _answer(send: Send, status: int, fields: list[tuple[bytes, bytes]], body: bytes) -> None:
    fields.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})
