"""`comity languageserver`: help authors of policies in their editors."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from comity.extras import required
from comity.policies import PolicyError

LOOPBACK = "127.0.0.1"
# Any scheme, because editors in pages have schemes of their own.
ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#@]+")


def add_options(parser: ArgumentParser) -> None:
    transport = parser.add_mutually_exclusive_group()
    transport.add_argument(
        "--stdio",
        action="store_true",
        help="use standard input and output (default)",
    )
    transport.add_argument(
        "--tcp",
        metavar="[HOST:]PORT",
        type=_address,
        help="listen by TCP for one editor (default HOST: this machine only)",
    )
    transport.add_argument(
        "--websocket",
        metavar="[HOST:]PORT",
        type=_address,
        help="listen by WebSocket (default HOST: this machine only)",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        type=_origin,
        help="let web pages of this origin connect by WebSocket; may be repeated",
    )


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ArgumentTypeError(f"`{text}` is not an address: write {LOOPBACK}:2087")
    return host.removeprefix("[").removesuffix("]") or LOOPBACK, int(port)


def _origin(text: str) -> str:
    """Return the origin as browsers send it, in lower case."""
    if not ORIGIN.fullmatch(text):
        raise ArgumentTypeError(
            f"`{text}` is not an origin: write https://example.com, without a path"
        )
    return text.lower()


def run(options: Namespace) -> int:
    """Serve editors until they disconnect or a signal ends the server. Return the exit status 0."""
    if options.allow_origin and not options.websocket:
        raise PolicyError("--allow-origin needs --websocket: write both")
    with required("the server", "languageserver", PolicyError):
        from comity.authoring.language_server import server
    if options.tcp or options.websocket:
        server.show_address()
    try:
        if options.tcp:
            server.create().start_tcp(*options.tcp)
        elif options.websocket:
            host, port = options.websocket
            server.create().start_ws(host, port, options.allow_origin)
        else:
            server.serve_stdio()
    except OSError as error:
        raise PolicyError(f"cannot listen: {error.strerror or error}") from None
    return 0
