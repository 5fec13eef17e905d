"""A site behind the guard, for a WSGI server; run by itself, with the one of the standard library.

python examples/wsgi_app.py"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from wsgiref.simple_server import make_server

from comity.guard import Guard, WSGIMiddleware

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

ORIGIN = os.environ.get("ORIGIN", "http://127.0.0.1:8000")


def site(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The application itself: any that speaks WSGI."""
    start_response("200 OK", [("Content-Type", "text/plain; charset=utf-8")])
    return [f"This is {environ['PATH_INFO']}.\n".encode("latin-1", "replace")]


guard = Guard(ORIGIN, Path(__file__).parent / "policies")
app = WSGIMiddleware(site, guard)

if __name__ == "__main__":
    parts = urlsplit(ORIGIN)
    with make_server(parts.hostname or "127.0.0.1", parts.port or 8000, app) as server:
        server.serve_forever()
