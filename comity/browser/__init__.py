"""Browsers: every request that a page makes is judged, waits for its host's turn and is counted before it goes out.

    async with async_playwright() as playwright, Client("examplebot") as client, guard(client) as guarded:
        browser = await guarded.launch(playwright.chromium)
        page = await browser.new_page()
        await page.goto("https://example.com/")
        guarded.refusals(page)                      # the requests of the page that were refused, and why

With scrapy-playwright the add-on does it by itself (docs/browsers.md)."""

from comity.browser.guard import BrowserGuard, guard
from comity.browser.refusals import Refusal

__all__ = ["BrowserGuard", "Refusal", "guard"]
