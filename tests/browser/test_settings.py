"""The add-on sees that a project uses browsers."""

from __future__ import annotations

import sys

import pytest
from scrapy.settings import Settings

from comity.crawler.addon import Addon
from comity.crawler.options import SettingsError

HANDLER = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"


def settings(**others: object) -> Settings:
    return Settings({"DOWNLOAD_HANDLERS": {"https": HANDLER}, "COMITY_STORE": "policies.sqlite", **others})


def test_browsers_that_do_not_tell_all_requests_are_not_started() -> None:
    with pytest.raises(SettingsError, match=r"PLAYWRIGHT_BROWSER_TYPE `firefox`.*set it to chromium"):
        Addon().update_settings(settings(PLAYWRIGHT_BROWSER_TYPE="firefox"))


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scrapy_playwright", None)
    monkeypatch.delitem(sys.modules, "comity.browser.handler", raising=False)
    with pytest.raises(SettingsError, match=r"scrapy_playwright.*: pip install 'comity\[playwright\]'"):
        Addon().update_settings(settings())


@pytest.mark.slow
def test_the_handler_is_guarded_with_whatever_a_project_has_made_of_it() -> None:
    from scrapy_playwright.handler import ScrapyPlaywrightDownloadHandler

    from comity.browser.handler import GuardedHandler, guarded_handler

    class Own(ScrapyPlaywrightDownloadHandler):  # type: ignore[misc]
        pass

    for handler in (HANDLER, Own):
        changed = settings(DOWNLOAD_HANDLERS={"http": handler, "ftp": None}, COMITY_MAX_DELAY=7)
        Addon().update_settings(changed)
        handlers = changed.getdict("DOWNLOAD_HANDLERS")
        assert issubclass(handlers["http"], GuardedHandler)
        assert handlers["ftp"] is None
        assert changed.getfloat("PLAYWRIGHT_DEFAULT_NAVIGATION_TIMEOUT") == 7000
    assert issubclass(handlers["http"], Own)
    assert guarded_handler(GuardedHandler) is GuardedHandler
