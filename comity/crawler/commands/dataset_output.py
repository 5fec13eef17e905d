"""OUT of the commands that write a dataset: one file, or a folder with a file for each that is read."""

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
        help="JSON Lines or Parquet; a folder, by a / at its end: a file for each that is read",
    )
    parser.add_argument(
        "--ending",
        choices=WRITABLE,
        default="",
        help="of the files in the folder OUT (default: that of each file that is read)",
    )


def output_place(opts: Namespace) -> tuple[Path, bool]:
    """The place of OUT, and whether it is a folder. UsageError for an ending of what is none, DatasetError for no place."""
    output = path_of(opts.output)
    if is_folder(opts.output, output):
        return nameable_folder(output), True
    if opts.ending:
        raise UsageError(
            f"--ending {opts.ending}: {output} is one file, whose name has its ending",
            print_help=False,
        )
    return output, False
