"""The words of automation-preferences.txt that are no list of the parser's, each with what it says."""

# Extension section-3.2; others may stand there too.
MECHANISMS = {
    "webdriver": "WebDriver, as Selenium has it",
    "cdp": "the Chrome DevTools Protocol, as Puppeteer and Playwright have it",
    "webkit-remote": "the remote protocol of WebKit",
    "firefox-remote": "the remote protocol of Firefox",
    "headless": "a browser without a window",
    "headed": "a browser with a window",
}
