"""Check whether a crawl can use the store, the shared state and the browser.

Only configured addresses are asked, and nothing is made or changed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

from scrapy.settings import BaseSettings

from comity.cluster.state import open_state
from comity.crawler.addon import browser_handlers
from comity.doctor.diagnosis import Check
from comity.gate.fetching.store import PolicyStore
from comity.gate.options import Options
from comity.policies import PolicyError

PROVIDER = "PLAYWRIGHT_BROWSER_PROVIDER"


def reach(options: Options, settings: BaseSettings) -> Iterator[Check]:
    """Yield the checks of the parts that the settings name.

    `settings`: those that the add-ons have made."""
    if options.state:
        yield _check_state(options)
    else:
        yield _check_store(options.store)
    if browser_handlers(settings):
        yield _check_browser(settings)


def _check_store(path: Path) -> Check:
    if path.exists():
        try:
            PolicyStore(path).close()
        except (PolicyError, OSError) as error:
            return Check("store", str(error), is_ok=False)
        return Check("store", f"{path} can be read and written")
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
        return Check("store", f"{path} does not exist yet: the first crawl makes it")
    return Check(
        "store",
        f"{path} cannot be made in {folder}",
        "set COMITY_STORE to a path that can be written",
        is_ok=False,
    )


def _check_state(options: Options) -> Check:
    try:
        state = open_state(options.state, options.crawl or "crawl", options.worker_timeout)
        remarks = state.check(is_dry=True)
    except PolicyError as error:
        return Check("state", str(error), is_ok=False)
    return Check("state", "; ".join([f"{state.address} answers", *remarks]))


def _check_browser(settings: BaseSettings) -> Check:
    if provider := settings.get(PROVIDER):
        return Check("browser", f"{PROVIDER} is {provider}: this browser is not started here")
    from playwright.async_api import Error

    try:
        version = asyncio.run(_start_browser(settings))
    except Error as error:
        first_line = error.message.partition("\n")[0]
        remedy = "playwright install chromium" if "Executable" in first_line else ""
        return Check("browser", f"Chromium does not start: {first_line}", remedy, is_ok=False)
    return Check("browser", f"Chromium {version} starts")


async def _start_browser(settings: BaseSettings) -> str:
    """Start the browser, or connect to it, and return its version."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        chromium = playwright.chromium
        if url := settings.get("PLAYWRIGHT_CDP_URL"):
            browser = await chromium.connect_over_cdp(url)
        elif url := settings.get("PLAYWRIGHT_CONNECT_URL"):
            browser = await chromium.connect(url)
        else:
            options = {**settings.getdict("PLAYWRIGHT_LAUNCH_OPTIONS"), "headless": True}
            browser = await chromium.launch(**options)
        version = browser.version
        await browser.close()
    return version
