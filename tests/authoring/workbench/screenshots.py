"""Write the pictures of docs/workbench.md, which show the demonstration site.

Run `python -m tests.authoring.workbench.screenshots`."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.authoring.workbench.workbench_process import INSTALL, chromium, launch_options, workbench
from tests.screenshots import shoot


def main() -> None:
    if chromium() is None:
        sys.stderr.write(f"The pictures of docs/workbench.md are left as they are: {INSTALL}\n")
        return
    with (
        TemporaryDirectory() as folder,
        workbench(folder=Path(folder)) as bench,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(**launch_options())
        page = opened(browser, bench.url, 1440, 900)
        page.locator(".pages button", has_text="/private/diary.html").click()
        expect(page.locator(".cm-line").nth(3)).to_have_class("decides-deny cm-line")
        shoot(page, "workbench.webp")
        page = opened(browser, bench.url, 390, 844, dark=True)
        page.locator("table").evaluate("(table) => table.scrollIntoView()")
        shoot(page, "workbench-narrow.webp")
        browser.close()


def opened(browser: Browser, url: str, width: int, height: int, *, dark: bool = False) -> Page:
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    page.goto(url)
    expect(page.locator("table")).to_be_visible(timeout=30_000)
    return page


if __name__ == "__main__":
    main()
