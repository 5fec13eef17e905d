"""The guard in front of an ASGI application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote

from comity.guard.answers import Answer
from comity.guard.guard import Guard, Pass
from comity.guard.incoming import Incoming, target_from, target_of_path

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class ASGIMiddleware:
    """`app = ASGIMiddleware(app, guard)`. A WebSocket is judged by the GET that opens it."""

    def __init__(self, app: Application, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "path" not in scope:  # lifespan, and whatever else is no request
            await self._app(scope, receive, send)
            return
        checked = self._guard.check(_incoming(scope))
        if isinstance(checked, Answer):
            await _answer(checked, scope, send)
        elif checked.is_counted:
            try:
                await self._app(scope, receive, _counting(checked, scope, send))
            finally:
                checked.end()
        else:
            await self._app(scope, receive, send)


def _incoming(scope: Scope) -> Incoming:
    fields: dict[str, list[str]] = {}
    for name, value in scope.get("headers") or ():
        fields.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    raw_path, path, query = _public_paths(scope)
    client = scope.get("client")
    return Incoming(
        method=scope.get("method", "GET"),
        target=target_from(raw_path + b"?" + query if query else raw_path),
        fields={name: ", ".join(values) for name, values in fields.items()},
        peer=client[0] if client else "",
        aliases=(target_of_path(path, query),),
    )


def _public_paths(scope: Scope) -> tuple[bytes, bytes, bytes]:
    """Return the path as it was sent, the path that was decoded, and the query, as clients of the origin know them.

    `root_path`, which no client can set, belongs to both paths; not every server has put it there."""
    path = scope["path"].encode("utf-8", "surrogatepass")
    root = scope.get("root_path", "").encode("utf-8", "surrogatepass").rstrip(b"/")
    sent = scope.get("raw_path") or target_of_path(path, b"").encode()
    if root and not _is_within(path, root):
        path = root + path
    if root and not _is_within(sent, root) and not _is_within(sent, quote(root).encode()):
        sent = quote(root).encode() + sent
    return sent, path, scope.get("query_string", b"")


def _is_within(path: bytes, root: bytes) -> bool:
    return path == root or path.startswith(root + b"/")


async def _answer(answer: Answer, scope: Scope, send: Send) -> None:
    kind = scope["type"]
    if kind == "websocket":
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": answer.close_code})  # before it is accepted: the server answers 403
            return
        kind = "websocket.http"
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    await send({"type": f"{kind}.response.start", "status": answer.status, "headers": headers})
    await send({"type": f"{kind}.response.body", "body": answer.body})


def _counting(passed: Pass, scope: Scope, send: Send) -> Send:
    """`send`, with the end of the response told to the guard just before the client can know of it."""

    async def counted(message: Message) -> None:
        if message["type"] == "http.response.start":
            lengths = (value for name, value in message.get("headers", ()) if bytes(name).lower() == b"content-length")
            has_body = scope.get("method") != "HEAD" and message["status"] not in (204, 304)
            passed.begins(bytes(next(lengths, b"")).decode("latin-1"), has_body=has_body)
        elif message["type"] == "http.response.body":
            if message.get("more_body"):
                passed.sends(len(message.get("body", b"")))
            else:
                passed.end()
        await send(message)

    return counted
