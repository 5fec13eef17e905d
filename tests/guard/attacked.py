"""A site behind the guard that keeps what its application saw, for servers of both kinds.

/seen     what the application saw since it was last asked, as JSON: method, the path by which it
would route, and the rest
/...      what this request was, as the application sees it"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from comity.guard import ASGIMiddleware, Guard, WSGIMiddleware

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

    from comity.guard.asgi import Receive, Scope, Send

FILES: dict[str, bytes | Path] = {
    "/robots.txt": b"User-agent: *\nDisallow: /private/\n\nUser-agent: GoogleOther\nDisallow: /\n",
    "/automation-preferences.txt": b"""scope: /
allowed-methods: GET, HEAD, OPTIONS, POST, TRACE, CONNECT

scope: /reading/
allowed-methods: GET, POST

scope: /research/
allowed-methods: GET
allowed-purposes: research

scope: /minute/
allowed-methods: GET, HEAD
request-limit: 3/minute

scope: /keyed/
allowed-methods: GET
api-automation: with-key-only
""",
}

guard = Guard(os.environ.get("ORIGIN", "http://127.0.0.1:8000"), FILES)
seen: list[list[str]] = []


def answer(method: str, path: str, sent: str) -> bytes:
    """`path`: the path by which an application routes. `sent`: other facts that it may look at."""
    if path == "/seen":
        body = json.dumps(seen)
        seen.clear()
    else:
        seen.append([method, path, sent])
        body = json.dumps(seen[-1])
    return body.encode()


def wsgi_site(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    body = answer(
        environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""), environ.get("RAW_URI", "")
    )
    start_response(
        "200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    )
    return [body] if environ["REQUEST_METHOD"] != "HEAD" else []


async def site(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    if scope["type"] == "websocket":
        answer("WEBSOCKET", scope["path"], "")
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close"})
        return
    body = answer(scope["method"], scope["path"], (scope.get("raw_path") or b"").decode("latin-1"))
    fields = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": body if scope["method"] != "HEAD" else b""})


asgi = ASGIMiddleware(site, guard)
wsgi = WSGIMiddleware(wsgi_site, guard)
