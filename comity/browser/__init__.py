"""Guard browsers: judge, delay and count every request of a page before it goes out.

    async with (
        async_playwright() as playwright,
        Client("examplebot") as client,
        guard(client) as guarded,
    ):
        browser = await guarded.launch(playwright.chromium)
        page = await browser.new_page()
        await page.goto("https://example.com/")
        guarded.refusals(page)  # the refused requests of the page, with the reasons

With scrapy-playwright, the add-on guards browsers by itself (docs/browsers.md)."""

from comity.extras import required

with required("comity.browser", "playwright"):
    from comity.browser.guard import BrowserGuard, guard
    from comity.browser.refusals import Refusal

__all__ = ["BrowserGuard", "Refusal", "guard"]
