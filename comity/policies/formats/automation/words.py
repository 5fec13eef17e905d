"""Words of automation-preferences.txt that the parser does not list, each with its meaning."""

# Extension section-3.2. Other mechanisms are allowed too.
MECHANISMS = {
    "webdriver": "WebDriver, as Selenium has it",
    "cdp": "the Chrome DevTools Protocol, as Puppeteer and Playwright have it",
    "webkit-remote": "the remote protocol of WebKit",
    "firefox-remote": "the remote protocol of Firefox",
    "headless": "a browser without a window",
    "headed": "a browser with a window",
}
