"""Pictures of pages for the documentation."""

from __future__ import annotations

import base64
from pathlib import Path

from playwright.sync_api import Page

DOCS = Path(__file__).parents[1] / "docs"


def shoot(page: Page, name: str) -> None:
    page.screenshot()  # by then everything is painted
    session = page.context.new_cdp_session(page)
    told = session.send("Page.captureScreenshot", {"format": "webp", "quality": 60})
    (DOCS / name).write_bytes(base64.b64decode(told["data"]))
