"""Writes a report: whoever opens the file finds the old one or the new one, whole."""

from __future__ import annotations

from pathlib import Path

from comity.dataset.files.replacement import Replacement
from comity.report.value import Report, as_json


def write(report: Report, path: Path) -> None:
    """Write it as a page, or as JSON where the path ends so. DatasetError where it cannot be written."""
    write_text(text_of(report, as_page=path.suffix != ".json"), path)


def text_of(report: Report, *, as_page: bool) -> str:
    if not as_page:
        return as_json(report, indent=1) + "\n"
    from comity.report.page import page_of  # it takes the extra

    return page_of(report)


def write_text(text: str, path: Path) -> None:
    with Replacement(path) as file:
        file.write(text.encode("utf-8", "replace"))
