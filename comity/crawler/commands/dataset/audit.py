"""`comity dataset audit SET`: one page about a dataset, in plain words."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from comity import extras
from comity.crawler.commands import tag_option
from comity.crawler.commands.dataset.shared import add_workers, place_argument, progress
from comity.dataset.job import JobOptions, check_outside
from comity.dataset.records import DatasetError
from comity.gate.options import Options
from comity.gate.run.console import flush_output, say
from comity.policies.syntax.urls import origin_of, typed_url
from comity.report.needs import PAGE
from comity.report.writing import write_text

DONE = 0
OUTPUT = Path("audit.html")
ENDINGS = (".html", ".htm")
STDOUT = "-"
_ADDRESS = re.compile(r"https?://[^\s;,)]+|mailto:[^\s;,)]+|[\w.+-]+@[\w.-]+")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "dataset",
        metavar="SET",
        type=place_argument,
        help="dataset with a manifest and evidence files: a file, or a folder",
    )
    parser.add_argument(
        "-o",
        dest="output",
        type=Path,
        metavar="FILE",
        help=f"page to write (default: {OUTPUT}, or none with --json)",
    )
    parser.add_argument("--json", metavar="FILE", help="write the audit as data; `-` prints it")
    parser.add_argument(
        "--origin",
        type=_origin,
        metavar="URL",
        help="also list all that is kept of this website, why, and how to take it out",
    )
    parser.add_argument(
        "--contact", metavar="TEXT", help="address for questions (default: the one in USER_AGENT)"
    )
    tag_option.add_argument(parser)
    add_workers(parser)


def _origin(text: str) -> str:
    try:
        return origin_of(typed_url(text))
    except ValueError:
        raise ArgumentTypeError(
            f"`{text}` is not the URL of a website: write it like https://example.org"
        ) from None


def run(opts: Namespace, settings: BaseSettings, _: Any) -> int:
    """Write the audit, and return the exit status.

    UsageError, DatasetError or PolicyError: an argument is invalid, or a file cannot be used."""
    page = opts.output or (None if opts.json else OUTPUT)
    data = Path(opts.json) if opts.json and opts.json != STDOUT else None
    _check(opts.dataset, page, data)
    # Imported here because pyarrow may be missing.
    from comity.dataset.audit.audit import audit_of

    contact = opts.contact or _address(settings)
    with progress("auditing", [opts.dataset], passes=2 if opts.origin else 1) as advance:
        audit = audit_of(
            opts.dataset,
            datetime.now(UTC),
            JobOptions(opts.workers, advance, executor=opts.executor),
            tag_option.tag_source(opts, settings),
            origin=opts.origin or "",
            contact=contact,
        )
    text = json.dumps(audit, indent=1)
    if opts.json == STDOUT:
        say(text)
    elif data:
        write_text(f"{text}\n", data)
    if page:
        from comity.report.page import audit_page  # it needs the extra

        write_text(audit_page(audit), page)
    for file in filter(None, (page, data)):
        say(f"{file}: {file.stat().st_size:,} octets")
    flush_output()
    return DONE


def _address(settings: BaseSettings) -> str:
    """Return the address in USER_AGENT. "": it has none, or it is Scrapy's own."""
    if settings.getpriority("USER_AGENT") == SETTINGS_PRIORITIES["default"]:
        return ""
    address = _ADDRESS.search(Options.from_settings(settings).agent.user_agent)
    return address[0] if address else ""


def _check(dataset: Path, page: Path | None, data: Path | None) -> None:
    """Check the files to write. UsageError or DatasetError: they cannot be written."""
    needed = (("pyarrow", "parquet"), *((name, "report") for name in (PAGE if page else ())))
    for name, extra in needed:
        if extras.is_missing(name):
            need = extras.needs("comity dataset audit", name, extra)
            raise UsageError(need, print_help=False)
    if page and page.suffix not in ENDINGS:
        raise DatasetError(f"-o {page}: write a name that ends in .html")
    for file in filter(None, (page, data)):
        check_outside(file, [dataset])
        if file.exists() and dataset.exists() and file.samefile(dataset):
            raise DatasetError(f"{file} is read from: give the audit another name")
