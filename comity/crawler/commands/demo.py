"""`comity demo`: a local site to crawl and to look at."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from threading import Event
from typing import Any, ClassVar

from scrapy.exceptions import UsageError

from comity.crawler import demo
from comity.crawler.commands import listed
from comity.guard import Guard
from comity.policies.formats import WELL_KNOWN

OUTPUT = "items.jsonl"


class DemoCommand(listed.Demo):
    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "[options]"

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--host", default="127.0.0.1", help="address to listen on (default: %(default)s)"
        )
        parser.add_argument(
            "--port",
            type=int,
            default=8642,
            help="port, 0 for any free port (default: %(default)s)",
        )
        parser.add_argument(
            "--crawl", action="store_true", help="crawl the site, then end (on any free port)"
        )
        parser.add_argument(
            "-O", dest="output", metavar="FILE", help=f"items of --crawl (default: {OUTPUT})"
        )

    def run(self, args: list[str], opts: Namespace) -> None:
        if args:
            raise UsageError(f"demo takes no argument: remove `{args[0]}`", print_help=False)
        if opts.output and not opts.crawl:
            raise UsageError(
                "-O is the file for the items of --crawl: write both", print_help=False
            )
        try:
            with demo.running(opts.host, 0 if opts.crawl else opts.port) as server:
                if opts.crawl:
                    self.exitcode = _crawl(server, opts)
                else:
                    _serve(server)
                    print(_summary(server.guard))  # noqa: T201
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"cannot listen on {opts.host}, port {opts.port}: {error}", print_help=False
            ) from None


def _crawl(server: demo.DemoServer, opts: Namespace) -> int:
    """Crawl the site in a process of its own, and say what happens.

    The settings and the log are those of the command line. Without options for the log, it has no
    dates and no list of Scrapy's parts."""
    output = opts.output or OUTPUT
    files = ", ".join(path.lstrip("/") for path in demo.PAGES if path in WELL_KNOWN)
    crawl = ["crawl", "site", "-a", f"url={server.url}", "-O", output]
    print(  # noqa: T201
        f"1. A demonstration site runs at {server.url}. Its policy files:\n   {files}\n"
        f"2. comity {' '.join(crawl)}",
        flush=True,
    )
    settings = ["COMITY_MIN_DELAY=0", *opts.set]  # the Crawl-delay of the site is enough
    has_log_options = opts.logfile or opts.loglevel or opts.nolog
    program = "scrapy" if has_log_options else demo.__name__
    if not has_log_options:
        settings.insert(0, "LOG_FORMAT=   %(message)s")
    command = [sys.executable, "-m", program, *crawl]
    command += [argument for setting in settings for argument in ("-s", setting)]
    command += ["--logfile", opts.logfile] if opts.logfile else []
    command += ["--loglevel", opts.loglevel] if opts.loglevel else []
    command += ["--nolog"] if opts.nolog else []
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "comity.crawler.settings"}
    # The command contains only the operator's own words.
    status = subprocess.run(command, env=environment, check=False).returncode  # noqa: S603
    print(  # noqa: T201
        f"3. {_summary(server.guard)}.\n"
        f"4. The field `permissions` of each line of {output} says which uses are permitted, and"
        " why.\n"
        "Next: `comity demo` serves the site until Ctrl-C, `comity policy URL` explains a page."
    )
    return status


def _serve(server: demo.DemoServer) -> None:
    try:
        print(  # noqa: T201
            f"The demonstration site is at {server.url} (Ctrl-C ends it). In another terminal:"
        )
        print(f"  comity policy {server.url}news/1.html")  # noqa: T201
        print(f"  comity crawl site -a url={server.url} -O items.jsonl", flush=True)  # noqa: T201
        Event().wait()
    except KeyboardInterrupt:
        print()  # noqa: T201


def _summary(guard: Guard) -> str:
    """Return a sentence with the numbers of the guard."""
    passed, refused = guard.passed.total(), guard.refused.total()
    rules = ", ".join(f"{rule} {times}" for rule, times in guard.refused.most_common())
    causes = f": {rules}" if rules else ""
    return (
        f"The guard of the site let {passed} automated requests pass and refused {refused}{causes}"
    )
