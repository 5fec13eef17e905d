"""A site behind the guard, for an ASGI server.

uvicorn --app-dir examples asgi_app:app"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from comity.guard import ASGIMiddleware, Guard

if TYPE_CHECKING:
    from comity.guard.asgi import Receive, Scope, Send


async def site(scope: Scope, receive: Receive, send: Send) -> None:
    """The application itself: any that speaks ASGI."""
    if scope["type"] != "http":
        return
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"text/plain; charset=utf-8")],
        }
    )
    await send({"type": "http.response.body", "body": f"This is {scope['path']}.\n".encode()})


guard = Guard(os.environ.get("ORIGIN", "http://127.0.0.1:8000"), Path(__file__).parent / "policies")
app = ASGIMiddleware(site, guard)
