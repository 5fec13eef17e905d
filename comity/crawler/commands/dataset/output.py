"""OUT of the commands that write a dataset: one file, or a folder with a file per input file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from scrapy.exceptions import UsageError

from comity.dataset.files.folders import nameable_folder
from comity.dataset.files.formats import WRITABLE
from comity.dataset.files.places import path_of
from comity.dataset.folder_output import is_folder


def add_output(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        dest="output",
        required=True,
        metavar="OUT",
        help="JSON Lines, Parquet, Arrow IPC or .tar; a folder, if it ends with a /: one file per input file",
    )
    parser.add_argument(
        "--ending",
        choices=WRITABLE,
        default="",
        help="suffix of the files in the folder OUT (default: that of each input file)",
    )


def output_place(opts: Namespace) -> tuple[Path, bool]:
    """Return the path of OUT, and True if it is a folder.

    UsageError: --ending is given for a file. DatasetError: OUT is not a valid place."""
    output = path_of(opts.output)
    if is_folder(opts.output, output):
        return nameable_folder(output), True
    if opts.ending:
        raise UsageError(
            f"--ending {opts.ending}: {output} is one file, whose name has its suffix",
            print_help=False,
        )
    return output, False
