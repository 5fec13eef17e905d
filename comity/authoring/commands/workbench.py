"""`comity workbench`: write policies in a browser, and see their effect."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from comity.authoring.workbench.desk import desk_of
from comity.extras import required
from comity.policies import PolicyError

PORT = 8643


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "target",
        nargs="?",
        metavar="DIR|URL",
        help="folder or site (default: the demonstration site)",
    )
    parser.add_argument(
        "--origin", metavar="URL", help="where the files of a folder are to be published"
    )
    parser.add_argument(
        "--port", type=int, default=PORT, help="port, 0 for any that is free (default: %(default)s)"
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def run(options: Namespace) -> int:
    """Serve the workbench until it is interrupted. Return the exit status 0."""
    with required("the page", "workbench", PolicyError):
        from comity.authoring.workbench.server import serve
    serve(
        desk_of(options.target, origin=options.origin),
        port=options.port,
        opens=not options.no_browser,
    )
    return 0
