"""OUT of the commands that write a dataset: one file, or a folder with a file per input file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from scrapy.exceptions import UsageError

from comity.dataset.files.folders import nameable_folder
from comity.dataset.files.formats import WRITABLE, ending_of
from comity.dataset.files.places import path_of
from comity.dataset.folder_output import is_folder
from comity.dataset.job import Sources
from comity.dataset.records import DatasetError
from comity.extras import is_missing, needs
from comity.gate.run.console import complain


def add_output(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        dest="output",
        required=True,
        metavar="OUT",
        help="JSON Lines, Parquet, Arrow IPC or .tar; a folder, if it ends with a /: one file per"
        " input file",
    )
    parser.add_argument(
        "--ending",
        choices=WRITABLE,
        default="",
        help="suffix of the files in the folder OUT (default: that of each input file)",
    )
    parser.add_argument(
        "--no-evidence",
        dest="evidence",
        action="store_false",
        help="do not write OUT.policies.parquet and OUT.refused.parquet",
    )


def evidence(opts: Namespace, sources: Sources) -> Sources | None:
    """Return `sources` if evidence files are written beside OUT, or None."""
    if not opts.evidence:
        return None
    if is_missing("pyarrow"):
        complain(needs("Evidence beside OUT (--no-evidence: none)", "pyarrow", "parquet"))
        return None
    return sources


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
    if not ending_of(output.name):
        raise DatasetError(
            f"{output}: unknown format of records: write a name that ends in {', '.join(WRITABLE)},"
            f" such as {output}.jsonl. For a folder with a file for each input file, write"
            f" {output}/"
        )
    return output, False
