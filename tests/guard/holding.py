"""A site behind the guard, for both kinds of servers, some of whose responses end when the test
says so.

/hold/...     answers when /release was asked for, or not at all when its client has gone
/held?N       answers when N requests hold
/busy/...     takes its time
/guard        what the guard did
/boom/        raises
/stream/      answers in parts, without saying how long it will be
/endless/     goes on until its client has gone (WSGI)
/...          what the request was, as the application sees it"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Iterable
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from comity.guard import ASGIMiddleware, Guard, SharedClients, WSGIMiddleware

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

    from comity.guard.asgi import Receive, Scope, Send

FILES = {
    "/robots.txt": b"User-agent: *\nDisallow: /private/\n",
    "/automation-preferences.txt": b"""scope: /
allowed-methods: GET, HEAD

scope: /hold/
allowed-methods: GET
concurrent-limit: 2

scope: /boom/
allowed-methods: GET
concurrent-limit: 1

scope: /stream/
allowed-methods: GET
concurrent-limit: 1

scope: /endless/
allowed-methods: GET
concurrent-limit: 1

scope: /busy/
allowed-methods: GET
request-limit: 30/second
concurrent-limit: 2

scope: /hourly/
allowed-methods: GET, POST
request-limit: 3/hour

scope: /keyed/
allowed-methods: GET
api-automation: with-key-only
""",
}

counts = SharedClients(Path(os.environ["COUNTS"])) if "COUNTS" in os.environ else None
guard = Guard(os.environ.get("ORIGIN", "http://127.0.0.1:8000"), FILES, tolerance=0, counts=counts)
held: set[object] = set()
PLAIN = [("Content-Type", "text/plain")]


async def site(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    path, query = scope["path"], scope["query_string"].decode()
    parts = [b"done"]
    if path.startswith("/hold/"):
        asked = object()
        held.add(asked)
        gone = asyncio.ensure_future(_gone(receive))
        while not RELEASED.is_set() and not gone.done():  # noqa: ASYNC110  # one Event for threads and for coroutines
            await asyncio.sleep(0.002)
        gone.cancel()
        held.discard(asked)
    elif path == "/held":
        while len(held) != int(query):  # noqa: ASYNC110
            await asyncio.sleep(0.002)
    elif path == "/release":
        RELEASED.set()
    elif path.startswith("/busy/"):
        await asyncio.sleep(0.01)
    elif path == "/guard":
        parts = [json.dumps({"passed": guard.passed, "refused": guard.refused}).encode()]
    elif path == "/boom/":
        raise RuntimeError("boom")
    elif path == "/stream/":
        parts = [b"one", b"two", b"three"]
    else:
        parts = [
            json.dumps({"method": scope["method"], "path": path, "worker": os.getpid()}).encode()
        ]
    fields = [(name.lower().encode(), value.encode()) for name, value in PLAIN]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    for part in parts if scope["method"] != "HEAD" else ():
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


RELEASED = threading.Event()


def wsgi_site(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    path, query = environ["PATH_INFO"], environ.get("QUERY_STRING", "")
    parts = [b"done"]
    if path.startswith("/hold/"):
        asked = object()
        held.add(asked)
        RELEASED.wait(300)
        held.discard(asked)
    elif path == "/held":
        while len(held) != int(query):
            time.sleep(0.002)  # between two looks at the other threads
    elif path == "/release":
        RELEASED.set()
    elif path == "/boom/":
        raise RuntimeError("boom")
    elif path == "/endless/":
        start_response("200 OK", PLAIN)
        return repeat(b"x" * 65536)
    elif path == "/stream/":
        start_response("200 OK", PLAIN)
        return (part for part in (b"one", b"two", b"three"))
    else:
        parts = [
            json.dumps(
                {"method": environ["REQUEST_METHOD"], "path": path, "worker": os.getpid()}
            ).encode()
        ]
    start_response("200 OK", [*PLAIN, ("Content-Length", str(sum(map(len, parts))))])
    return parts if environ["REQUEST_METHOD"] != "HEAD" else []


asgi = ASGIMiddleware(site, guard)
wsgi = WSGIMiddleware(wsgi_site, guard)
