"""The guard in front of an ASGI application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
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
    """Guards an ASGI application: `app = ASGIMiddleware(app, guard)`.

    A WebSocket is judged like the GET request that opens it."""

    def __init__(self, app: Application, guard: Guard, *, root_path: str | None = None) -> None:
        """`root_path`: the path under which clients know the application, e.g. `/app`. "" is the
        root of the site. None: the server's `root_path` is used. Some servers let any client set
        that value, so a request is then judged with and without it."""
        self._app = app
        self._guard = guard
        self._root_path = None if root_path is None else root_path.rstrip("/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "path" not in scope:  # not a request, e.g. lifespan
            await self._app(scope, receive, send)
            return
        checked = self._guard.check(_incoming(scope, self._root_path))
        if isinstance(checked, Answer):
            await _answer(checked, scope, send)
        elif checked.is_counted:
            try:
                await self._app(scope, receive, _counting(checked, scope, send))
            finally:
                checked.end()
        else:
            await self._app(scope, receive, send)


def _incoming(scope: Scope, root_path: str | None) -> Incoming:
    fields: dict[str, list[str]] = {}
    # Some applications make a WSGI environment from the scope, in which `_` and `-` are the same.
    # Values of names with `_` come first, because a proxy appends to the field with `-`, and its
    # value must be the last.
    for name, value in sorted(scope.get("headers") or (), key=_has_no_underscore):
        fields.setdefault(name.decode("latin-1").lower().replace("_", "-"), []).append(
            value.decode("latin-1")
        )
    client = scope.get("client")
    root = scope.get("root_path", "").rstrip("/") if root_path is None else root_path
    target, *aliases = _targets(scope, root_path)
    return Incoming(
        method=scope.get("method", "GET"),
        target=target,
        fields={name: ", ".join(values) for name, values in fields.items()},
        peer=client[0] if client else "",
        aliases=tuple(aliases),
        root=target_of_path(root.encode("utf-8", "surrogatepass"), b""),
    )


def _has_no_underscore(field: Sequence[bytes]) -> bool:
    return b"_" not in field[0]


def _targets(scope: Scope, root_path: str | None) -> Iterator[str]:
    """Yield the targets that a client of the origin may mean.

    These are the target as it was sent (`raw_path`), if the server provides it, and the decoded
    path. Some servers begin both with the `root_path` of the scope, and others do not."""
    query = scope.get("query_string", b"")
    scope_root = scope.get("root_path", "").encode("utf-8", "surrogatepass").rstrip(b"/")
    root = None if root_path is None else root_path.encode()
    if sent := scope.get("raw_path"):
        for path in _public(
            sent, quote(scope_root).encode(), None if root is None else quote(root).encode()
        ):
            yield target_from(path + b"?" + query if query else path)
    for path in _public(scope["path"].encode("utf-8", "surrogatepass"), scope_root, root):
        yield target_of_path(path, query)


def _public(path: bytes, scope_root: bytes, root: bytes | None) -> Iterator[bytes]:
    """Yield the paths under which clients of the origin may know a path in a scope.

    `scope_root`: the `root_path` of the scope. `root`: the `root_path` of the operator. None: the
    operator gave none."""
    if root is not None:
        yield root + _below(path, root)
        yield root + _below(path, scope_root)
    elif scope_root:
        yield scope_root + _below(path, scope_root)
        yield _below(path, scope_root)
    yield from () if root else (path,)


def _below(path: bytes, root: bytes) -> bytes:
    is_within = path == root or path.startswith(root + b"/")
    return path[len(root) :] if is_within else path


async def _answer(answer: Answer, scope: Scope, send: Send) -> None:
    kind = scope["type"]
    if kind == "websocket":
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            # Closed before it is accepted, so the server answers 403.
            await send({"type": "websocket.close", "code": answer.close_code})
            return
        kind = "websocket.http"
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers
    ]
    await send({"type": f"{kind}.response.start", "status": answer.status, "headers": headers})
    await send({"type": f"{kind}.response.body", "body": answer.body})


def _counting(passed: Pass, scope: Scope, send: Send) -> Send:
    """Wrap `send`: report the end of the response to the guard before the last octets are sent."""

    async def counting_send(message: Message) -> None:
        if message["type"] == "http.response.start":
            lengths = (
                value
                for name, value in message.get("headers", ())
                if bytes(name).lower() == b"content-length"
            )
            has_body = scope.get("method") != "HEAD" and message["status"] not in (204, 304)
            passed.begins(bytes(next(lengths, b"")).decode("latin-1"), has_body=has_body)
        elif message["type"] == "http.response.body":
            if message.get("more_body"):
                passed.sends(len(message.get("body", b"")))
            else:
                passed.end()
        await send(message)

    return counting_send
