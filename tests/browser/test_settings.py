"""The add-on recognises projects that use browsers."""

from __future__ import annotations

import base64
import sys

import pytest
from scrapy.settings import Settings

from comity.browser.guard import route_of
from comity.crawler.addon import Addon
from comity.gate.fetching.proxies import Proxy
from comity.gate.options import SettingsError

HANDLER = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"


def settings(**others: object) -> Settings:
    return Settings(
        {"DOWNLOAD_HANDLERS": {"https": HANDLER}, "COMITY_STORE": "policies.sqlite", **others}
    )


def test_browsers_that_do_not_tell_all_requests_are_not_started() -> None:
    with pytest.raises(
        SettingsError, match=r"PLAYWRIGHT_BROWSER_TYPE `firefox`.*set it to chromium"
    ):
        Addon().update_settings(settings(PLAYWRIGHT_BROWSER_TYPE="firefox"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PLAYWRIGHT_CDP_URL", "PLAYWRIGHT_CONNECT_URL"])
def test_a_browser_on_another_machine_is_not_used(name: str) -> None:
    with pytest.raises(
        SettingsError,
        match=rf"{name} `farm\.example` is another machine.*Start the browser on this machine",
    ):
        Addon().update_settings(settings(**{name: "ws://farm.example:3000/devtools"}))
    for host in ("127.0.0.1", "localhost", "[::1]"):
        Addon().update_settings(settings(**{name: f"http://{host}:9222"}))


@pytest.mark.slow
@pytest.mark.parametrize("server", ["socks5://127.0.0.1:1080", "https://proxy.example", "http://"])
def test_a_proxy_of_another_kind_is_not_used(server: str) -> None:
    options = {"proxy": {"server": server}}
    for changed in (
        {"PLAYWRIGHT_LAUNCH_OPTIONS": options},
        {"PLAYWRIGHT_CONTEXTS": {"default": options}},
    ):
        with pytest.raises(
            SettingsError,
            match=r"the proxy of a browser .* is not an HTTP proxy: write http://host:port$",
        ):
            Addon().update_settings(settings(**changed))


def test_the_proxy_of_a_browser_becomes_that_of_the_guard() -> None:
    proxy = {
        "server": "proxy.example:3128",
        "username": "a:b",
        "password": "c@d",
        "bypass": ".local, direct.example",
    }
    route = route_of(proxy)
    assert route.proxy == Proxy(
        "proxy.example", 3128, "Basic " + base64.b64encode(b"a:b:c@d").decode()
    )
    assert route.proxy_for("www.example") == route.proxy
    assert (route.proxy_for("a.local"), route.proxy_for("direct.example")) == (None, None)
    assert route_of(None).proxy_for("www.example") is None


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("scrapy_playwright", "scrapy_playwright.handler"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "comity.browser.handler", raising=False)
    with pytest.raises(
        SettingsError,
        match=r'scrapy-playwright in DOWNLOAD_HANDLERS needs scrapy_playwright.*: pip install "com'
        r'ity\[playwright\]"',
    ):
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
