"""Browsers: every request that a page makes is judged, waits for its host's turn and is counted before it goes out.

    async with Client("examplebot") as client:
        guarded = await guard(context, client)    # a context of Playwright; each of its browser's contexts is guarded
        await page.goto("https://example.com/")
        guarded.refusals(page)                      # what the page did not get, and why

With scrapy-playwright the add-on does it by itself (docs/browsers.md)."""

from comity.browser.guard import BrowserGuard, guard, launch_arguments
from comity.browser.refusals import Refusal

__all__ = ["BrowserGuard", "Refusal", "guard", "launch_arguments"]
