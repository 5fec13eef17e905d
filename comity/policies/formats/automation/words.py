"""Values of automation-preferences.txt that no list of the parser contains, and their meaning."""

# The mechanisms of extension section-3.2. Authors may write others too.
MECHANISMS = {
    "webdriver": "WebDriver, as Selenium has it",
    "cdp": "the Chrome DevTools Protocol, as Puppeteer and Playwright have it",
    "webkit-remote": "the remote protocol of WebKit",
    "firefox-remote": "the remote protocol of Firefox",
    "headless": "a browser without a window",
    "headed": "a browser with a window",
}
