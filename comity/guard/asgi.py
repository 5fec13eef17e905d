"""The guard in front of an ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping, Sequence
from typing import Any
from urllib.parse import quote

from comity.guard.answers import Answer
from comity.guard.guard import Guard, Pass
from comity.guard.incoming import Incoming, target_from, target_of_path
from comity.guard.pages import HeldPage, has_body, has_several_ranges, readable_codings

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
            return
        try:
            if checked.is_counted:
                send = _counting(checked, scope, send)
            if checked.reads_pages and scope["type"] == "http":
                await _read_page(self._app, checked, scope, receive, send)
            else:
                await self._app(scope, receive, send)
        finally:
            checked.end()


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
    method = scope.get("method", "")  # the application may write another one into the scope

    async def counting_send(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": list(message.get("headers", ()))}
            lengths = (
                value
                for name, value in message["headers"]
                if bytes(name).lower() == b"content-length"
            )
            passed.begins(
                bytes(next(lengths, b"")).decode("latin-1"),
                has_body=has_body(method, str(message["status"])),
            )
        elif message["type"] == "http.response.body":
            if message.get("more_body"):
                passed.sends(len(message.get("body", b"")))
            else:
                passed.end()
        await send(message)

    return counting_send


# Extensions by which an application hands a file to the server, past the guard.
_FILES = ("http.response.pathsend", "http.response.zerocopysend")


class _RefusedError(OSError):
    """Raised if an application sends more of a response that the guard has refused.

    The specification of ASGI has servers raise an OSError if the client has gone."""


async def _read_page(
    app: Application, passed: Pass, scope: Scope, receive: Receive, send: Send
) -> None:
    """Call the application, and hold its response until the guard has read the page."""
    given = {name: scope[name] for name in ("headers", "extensions") if scope.get(name)}
    readable = dict(given)
    if "headers" in given:
        readable["headers"] = _readable_fields(given["headers"])
    if "extensions" in given:
        readable["extensions"] = {
            name: value for name, value in given["extensions"].items() if name not in _FILES
        }
    sender = _PageSender(passed, scope, send)
    # In the scope itself, not in a copy: middleware around the guard reads what the application
    # writes into it, e.g. its route.
    scope.update(readable)
    try:
        await app(scope, receive, sender)
    except Exception:
        # The client has its answer. The application may have failed only because it was told so.
        if not sender.has_interrupted:
            raise
    finally:
        scope.update((name, given[name]) for name in given if scope.get(name) is readable[name])


def _readable_fields(fields: Iterable[Sequence[bytes]]) -> list[Sequence[bytes]]:
    """Return header fields that ask for a response that the guard can read."""
    ranges = b",".join(value for name, value in fields if name.lower() == b"range")
    has_several = has_several_ranges(ranges.decode("latin-1"))
    return [
        (name, readable_codings(value.decode("latin-1")).encode("latin-1"))
        if name.lower() == b"accept-encoding"
        else (name, value)
        for name, value in fields
        if not (has_several and name.lower() == b"range")
    ]


async def _end(held: HeldPage) -> None:
    """Judge a response. A long one is judged in a thread, so that the event loop goes on."""
    if held.is_long and held.answer is None and _runs_asyncio():
        await asyncio.to_thread(held.end)
    else:
        held.end()


def _runs_asyncio() -> bool:
    """Return True if this is an event loop of asyncio. Some servers have others, e.g. Trio's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _PageSender:
    """Sends the response of an application, or the answer of the guard in its place.

    Attributes:
        has_interrupted: True if the application was told to stop sending."""

    def __init__(self, passed: Pass, scope: Scope, send: Send) -> None:
        self.has_interrupted = False
        self._passed = passed
        self._scope = scope
        self._method = scope.get("method", "")
        self._send = send
        self._start: Message = {}
        self._held: HeldPage | None = None
        self._is_refused = False

    async def __call__(self, message: Message) -> None:
        kind = message["type"]
        if self._is_refused:
            if message.get("more_body"):  # it may go on for ever
                self.has_interrupted = True
                raise _RefusedError("the guard has refused this response")
            return
        if kind == "http.response.start":
            fields = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
            self._start = {**message, "headers": fields}  # they may be an iterator
            self._held = self._passed.hold(
                message["status"], fields, has_body=has_body(self._method, str(message["status"]))
            )
            message = self._start
        held = self._held
        if held is None or kind not in ("http.response.start", "http.response.body"):
            await self._send(message)
            return
        if kind == "http.response.body":
            held.add(message.get("body", b""))
            if not message.get("more_body"):
                await _end(held)
        if held.answer is not None:
            self._is_refused = True
            await _answer(held.answer, self._scope, self._send)
        elif kind == "http.response.body" and not message.get("more_body"):
            self._held = None
            await self._send(self._start)
            await self._send({"type": "http.response.body", "body": held.body})
