"""Writes a report. A file always holds the old report or the new one, completely."""

from __future__ import annotations

from pathlib import Path

from comity.dataset.files.replacement import Replacement
from comity.report.value import Report, as_json


def write(report: Report, path: Path) -> None:
    """Write the report as a page, or as JSON if `path` ends in .json.

    DatasetError: it cannot be written."""
    write_text(text_of(report, as_page=path.suffix != ".json"), path)


def text_of(report: Report, *, as_page: bool) -> str:
    if not as_page:
        return as_json(report, indent=1) + "\n"
    from comity.report.page import page_of  # it needs the extra

    return page_of(report)


def write_text(text: str, path: Path) -> None:
    with Replacement(path) as file:
        file.write(text.encode("utf-8", "replace"))
