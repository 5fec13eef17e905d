"""Applications in which the site of `attacked` is below /app, and the guard before it or around all
of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Mount
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from comity.guard import ASGIMiddleware, Guard, WSGIMiddleware
from tests.guard.attacked import answer, wsgi_site

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

    from comity.guard.asgi import Receive, Scope, Send

FILES = {"/robots.txt": b"User-agent: *\nDisallow: /app/private/\n"}
guard = Guard(os.environ.get("ORIGIN", "http://127.0.0.1:8000"), FILES)


async def site(scope: Scope, receive: Receive, send: Send) -> None:
    """It routes by the path below its root, as frameworks do."""
    root = scope.get("root_path", "")
    path = (
        scope["path"].removeprefix(root) if scope["path"].startswith(f"{root}/") else scope["path"]
    )
    body = answer(scope["method"], path, "")
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-length", b"%d" % len(body))],
        }
    )
    await send({"type": "http.response.body", "body": body if scope["method"] != "HEAD" else b""})


def nothing(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("404 Not Found", [("Content-Length", "0")])
    return []


# Guards before the site, which hear of the path from the server or are told, and around all.
asgi_inner = Starlette(routes=[Mount("/app", ASGIMiddleware(site, guard))])
asgi_told = Starlette(routes=[Mount("/app", ASGIMiddleware(site, guard, root_path="/app"))])
asgi_nested = Starlette(
    routes=[Mount("/app", Starlette(routes=[Mount("/", ASGIMiddleware(site, guard))]))]
)
asgi_outer = ASGIMiddleware(Starlette(routes=[Mount("/app", site)]), guard)
wsgi_inner = DispatcherMiddleware(nothing, {"/app": WSGIMiddleware(wsgi_site, guard)})
wsgi_told = DispatcherMiddleware(
    nothing, {"/app": WSGIMiddleware(wsgi_site, guard, script_name="/app")}
)
wsgi_outer = WSGIMiddleware(DispatcherMiddleware(nothing, {"/app": wsgi_site}), guard)
# A proxy takes /app away.
asgi_stripped = ASGIMiddleware(site, guard, root_path="/app")
wsgi_stripped = WSGIMiddleware(wsgi_site, guard, script_name="/app")
