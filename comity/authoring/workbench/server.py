"""The server of the workbench. It listens on the loopback address; access.py checks requests."""

from __future__ import annotations

import secrets
import socket
import sys
import webbrowser
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from nicegui import ui

from comity.authoring.workbench.access import AccessCheck, address
from comity.authoring.workbench.desk import Desk, Workbench
from comity.authoring.workbench.page import build
from comity.gate.run.console import say
from comity.policies import PolicyError

HOST = "127.0.0.1"


class _Announcing(uvicorn.Server):
    """A server that prints its address when it is ready, and can open a browser there."""

    def __init__(self, config: uvicorn.Config, url: str, *, opens: bool) -> None:
        super().__init__(config)
        self._url = url
        self._opens = opens

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        say(
            f"The workbench is at {self._url} (Ctrl-C ends it). "
            "Keep this address private: it opens the workbench."
        )
        sys.stdout.flush()
        if self._opens:
            webbrowser.open(self._url)


def serve(desk: Desk, *, port: int, opens: bool) -> None:
    """Serve until Ctrl-C. PolicyError: the port cannot be used.

    `port`: 0 means any free port. `opens`: open the page in the browser."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise PolicyError(
            f"cannot listen on {HOST}, port {port}: {error}: write another one, or --port 0"
        ) from None
    with listening:
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe(32)
        config = uvicorn.Config(
            AccessCheck(_app(desk), token=token, port=port),
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="on",
            ws="websockets-sansio",
            timeout_graceful_shutdown=1,
        )
        _Announcing(config, address(port, token), opens=opens).run(sockets=[listening])


def _app(desk: Desk) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    workbench = Workbench(desk)

    @ui.page("/", title="comity workbench", language="en-US")
    async def index() -> None:
        await build(workbench)

    style = (Path(__file__).parent / "page.css").read_text("utf-8")
    ui.add_css(style, shared=True)
    # If the connection is lost for longer, the page loads again, without the text typed into it.
    ui.run_with(app, dark=None, tailwind=False, show_welcome_message=False, reconnect_timeout=30.0)
    return app
