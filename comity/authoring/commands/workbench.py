"""`comity workbench`: write policies in a browser, and see their effect."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from comity.authoring.workbench.desk import desk_of
from comity.extras import required
from comity.gate.run.console import say
from comity.policies import PolicyError

PORT = 8643
PYODIDE = "node_modules/pyodide"
PYODIDE_VERSION = "314.0.7"  # the one that the tests try


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
    parser.add_argument(
        "--export",
        metavar="DIR",
        help="write static files that answer in the browser alone, and start no server",
    )
    parser.add_argument(
        "--pyodide",
        metavar="DIR",
        default=PYODIDE,
        help="the package `pyodide` of npm, for --export (default: %(default)s)",
    )


def run(options: Namespace) -> int:
    """Serve the workbench until it is interrupted, or export it. Return the exit status 0."""
    if options.export is not None:
        from comity.authoring.workbench.export import export

        desk = desk_of(options.target, origin=options.origin)
        octets = export(desk, Path(options.export), Path(options.pyodide))
        say(
            f"The workbench is in {options.export}: {octets / 1e6:.1f} MB. Serve this folder, for "
            f"example with `python -m http.server --directory {options.export}`."
        )
        return 0
    with required("the page", "workbench", PolicyError):
        from comity.authoring.workbench.server import serve
    serve(
        desk_of(options.target, origin=options.origin),
        port=options.port,
        opens=not options.no_browser,
    )
    return 0
