"""The guard in front of an ASGI application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from comity.guard.answers import Answer
from comity.guard.guard import Guard, Pass
from comity.guard.incoming import Incoming, target_from

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
        if scope["type"] not in ("http", "websocket"):
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
    path = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
    fields: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1")
        fields[key] = f"{fields[key]}, {text}" if key in fields else text
    client = scope.get("client")
    return Incoming(
        method=scope.get("method", "GET"),
        target=target_from(path, scope.get("query_string", b"")),
        fields=fields,
        peer=client[0] if client else "",
    )


async def _answer(answer: Answer, scope: Scope, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close"})  # before it is accepted: the server answers 403
        return
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def _counting(passed: Pass, scope: Scope, send: Send) -> Send:
    """`send`, with the end of the response told to the guard just before the client can know of it."""

    async def counted(message: Message) -> None:
        if message["type"] == "http.response.start":
            lengths = (value for name, value in message.get("headers", ()) if bytes(name).lower() == b"content-length")
            has_body = scope["method"] != "HEAD" and message["status"] not in (204, 304)
            passed.begins(bytes(next(lengths, b"")).decode("latin-1"), has_body=has_body)
        elif message["type"] == "http.response.body":
            if message.get("more_body"):
                passed.sends(len(message.get("body", b"")))
            else:
                passed.end()
        await send(message)

    return counted
