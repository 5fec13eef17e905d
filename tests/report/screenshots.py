"""`python -m tests.report.screenshots`: the pictures of docs/report.md, of a crawl that never was."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from playwright.sync_api import sync_playwright

from comity.report.page import page_of
from tests.authoring.workbench.workbench_process import INSTALL, chromium, launch_options
from tests.report.made_reports import crawled
from tests.screenshots import shoot


def main() -> None:
    if chromium() is None:
        sys.stderr.write(f"The pictures of docs/report.md are left as they are: {INSTALL}\n")
        return
    with (
        pytest.MonkeyPatch.context() as patch,
        TemporaryDirectory() as folder,
        sync_playwright() as playwright,
    ):
        path = Path(folder) / "report.html"
        path.write_text(page_of(crawled(patch=patch)), "utf-8")
        browser = playwright.chromium.launch(**launch_options())
        page = browser.new_page(viewport={"width": 1180, "height": 900})
        page.goto(path.as_uri())
        shoot(page, "report.webp")
        page = browser.new_page(viewport={"width": 1180, "height": 1080})
        page.goto(f"{path.as_uri()}#pace")
        shoot(page, "report-pace.webp")
        page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
        page.goto(f"{path.as_uri()}#refused")
        shoot(page, "report-narrow.webp")
        browser.close()


if __name__ == "__main__":
    main()
