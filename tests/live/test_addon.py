"""The add-on puts everything in place, says what a project switches off, and never lets a crawl go on without it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.http import Request, Response
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

import comity
from comity.crawler.addon import Addon
from comity.crawler.items.pipeline import PermissionsPipeline
from comity.crawler.middlewares.access import AccessMiddleware
from comity.crawler.middlewares.page import PageMiddleware
from comity.gate.options import SettingsError
from tests.selection import one_in

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

NAMED = {"COMITY_AGENT": "testbot", "USER_AGENT": "testbot/1 (+https://example.org/bot)"}
SITE: dict[str, Any] = {
    "/robots.txt": "User-agent: *\nDisallow: /private\n",
    "/a": "<p>page</p>",
    "/private": "<p>no</p>",
}


class Component:
    """Somebody else's, in whatever list."""


class OwnRobots(RobotsTxtMiddleware):
    """A project's own version of it."""


def applied(settings: dict[str, Any], priority: str = "project") -> Settings:
    found = Settings(settings, priority=priority)
    Addon().update_settings(found)
    return found


def places(settings: Settings, name: str) -> dict[Any, Any]:
    return {
        load_object(component): place
        for component, place in settings.get_component_priority_dict_with_base(name).items()
    }


def test_what_it_sets() -> None:
    settings = applied({"COMITY_AGENT": "examplebot"})
    assert settings["SCHEDULER"].__name__ == "Scheduler"
    assert settings["USER_AGENT"] == f"examplebot/{comity.__version__} (Scrapy; comity)"
    assert [settings[name] for name in ("TELNETCONSOLE_ENABLED", "REMOTE_CONTROL_ENABLED")] == [
        False,
        False,
    ]
    assert settings["DOWNLOAD_VERIFY_CERTIFICATES"] is True
    assert settings["CONCURRENT_ITEMS"] == 8
    downloader = places(settings, "DOWNLOADER_MIDDLEWARES")
    assert downloader[AccessMiddleware] == 100
    assert downloader.get(RobotsTxtMiddleware) is None
    assert places(settings, "SPIDER_MIDDLEWARES")[PageMiddleware] == 10
    assert places(settings, "ITEM_PIPELINES") == {PermissionsPipeline: 0}


def test_what_the_project_sets_stays() -> None:
    own = {
        "USER_AGENT": "examplebot/2.0 (+https://example.org/bot)",
        "TELNETCONSOLE_ENABLED": True,
        "DOWNLOAD_VERIFY_CERTIFICATES": False,
        "CONCURRENT_ITEMS": 100,
        "SCHEDULER": "scrapy.core.scheduler.Scheduler",
        "SPIDER_MODULES": ["own.spiders"],
    }
    settings = applied({"COMITY_AGENT": "examplebot", **own})
    assert {name: settings[name] for name in own} == own


@pytest.mark.parametrize("lowest", [-7, 0, 1, 300])
def test_ours_stands_before_every_other_pipeline_and_spider_middleware(lowest: int) -> None:
    settings = applied(
        {name: {Component: lowest} for name in ("ITEM_PIPELINES", "SPIDER_MIDDLEWARES")}
    )
    assert places(settings, "ITEM_PIPELINES")[PermissionsPipeline] == min(0, lowest - 1)
    assert places(settings, "SPIDER_MIDDLEWARES")[PageMiddleware] == min(10, lowest - 1)


ACCESS = "comity.crawler.middlewares.access.AccessMiddleware"
PIPELINE = "comity.crawler.items.pipeline.PermissionsPipeline"
PAGE = "comity.crawler.middlewares.page.PageMiddleware"
CSV = {"format": "csv"}


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        ({"COMITY_AGENT": "comitybot"}, "COMITY_AGENT is the default `comitybot`"),
        ({"USER_AGENT": "otherbot (+https://example.org)"}, "does not name COMITY_AGENT `testbot`"),
        ({"USER_AGENT": "testbot/1.0"}, "has no way to reach you"),
        (
            {"SCHEDULER": "scrapy.core.scheduler.Scheduler"},
            "SCHEDULER is scrapy.core.scheduler.Scheduler",
        ),
        ({"DOWNLOADER_MIDDLEWARES": {ACCESS: None}}, "AccessMiddleware: nothing is refused"),
        ({"DOWNLOADER_MIDDLEWARES": {ACCESS: 700}}, "AccessMiddleware at 700 instead of 100"),
        ({"DOWNLOADER_MIDDLEWARES": {OwnRobots: 100}}, "OwnRobots too"),
        ({"SPIDER_MIDDLEWARES": {PAGE: None}}, "items do not know their page"),
        ({"SPIDER_MIDDLEWARES": {PAGE: 10, Component: 5}}, "Component before PageMiddleware"),
        ({"ITEM_PIPELINES": {PIPELINE: None}}, "items carry no permissions"),
        ({"ITEM_PIPELINES": {Component: 0, PIPELINE: 0}}, "Component before PermissionsPipeline"),
        ({"DOWNLOAD_VERIFY_CERTIFICATES": False}, "DOWNLOAD_VERIFY_CERTIFICATES is off"),
        ({"ROBOTSTXT_OBEY": False}, "comity obeys robots.txt all the same"),
        (
            {"FEEDS": {"a.csv": CSV, "b.csv": CSV}, "FEED_EXPORT_FIELDS": ["name"]},
            "a.csv, b.csv leave out `permissions`",
        ),
        (
            {"FEEDS": {"a.csv": {**CSV, "fields": {"name": "title"}}}, "COMITY_TAG": "json:rights"},
            "a.csv leave out `rights`",
        ),
        (
            {"COMITY_USES_": "index"},
            "COMITY_USES_ is not a setting of comity: did you mean COMITY_USES?",
        ),
        (
            {"COMITY_0123456789": 1},
            "COMITY_0123456789 is not a setting of comity, and has no effect",
        ),
    ],
)
@pytest.mark.parametrize("priority", ["project", "spider", "cmdline"])
def test_each_thing_that_is_switched_off_is_said(
    caplog: pytest.LogCaptureFixture, settings: dict[str, Any], warning: str, priority: str
) -> None:
    applied({**NAMED, **settings}, priority)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert warning in record.getMessage()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"ROBOTSTXT_OBEY": True},
        {"ITEM_PIPELINES": {Component: 1}},
        {"DOWNLOADER_MIDDLEWARES": {Component: 1}},
        {
            "DOWNLOADER_MIDDLEWARES": {ACCESS: 100},
            "SPIDER_MIDDLEWARES": {PAGE: 10},
            "ITEM_PIPELINES": {PIPELINE: 0},
        },
        {"USER_AGENT": "Mozilla/5.0 (compatible; TestBot; bots@example.org)"},
        {"FEEDS": {"a.csv": CSV}},
        {"FEEDS": {"a.csv": CSV}, "FEED_EXPORT_FIELDS": ["name", "permissions"]},
        {"FEEDS": {"a.csv": {**CSV, "fields": ["permissions"]}}, "FEED_EXPORT_FIELDS": ["name"]},
        {"FEEDS": {"a.warc.gz": {"format": "warc.gz"}}, "FEED_EXPORT_FIELDS": ["name"]},
        {"FEEDS": {"a.csv": CSV}, "FEED_EXPORT_FIELDS": ["name"], "COMITY_TAG": "off"},
        {"FEEDS": {"a.csv": CSV}, "FEED_EXPORT_FIELDS": ["name"], "COMITY_TAG": "sidecar:a.jsonl"},
    ],
)
def test_nothing_is_said_without_need(
    caplog: pytest.LogCaptureFixture, settings: dict[str, Any]
) -> None:
    applied({**NAMED, **settings})
    assert caplog.records == []


class Pages(Spider):
    name = "pages"
    urls: list[str]

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}


@pytest.mark.requirement("RFC-1")
def test_the_line_alone_makes_a_crawl_polite(serve: Serve, crawl: Crawl) -> None:
    server = serve(SITE)
    crawled = crawl(Pages, urls=[server.url("/private"), server.url("/a")])
    assert server.paths == ["/robots.txt", "/a"]
    assert {seen.headers["user-agent"] for seen in server.seen} == {
        f"testbot/{comity.__version__} (Scrapy; comity)"
    }
    assert [item["url"] for item in crawled.items] == [server.url("/a")]
    assert crawled.log.count("Refused") == 1


SPIDER = """
import scrapy

class Pages(scrapy.Spider):
    name = "pages"
    custom_settings = {custom}

    async def start(self):
        yield scrapy.Request("{url}", callback=self.page)

    def page(self, response):
        pass
"""


@pytest.fixture
def project(
    tmp_path: Path, serve: Serve
) -> Callable[..., tuple[subprocess.CompletedProcess[str], Loopback]]:
    """`project(settings, custom, *arguments)`: `scrapy crawl` in a project of its own, and the server that it is to crawl."""

    def run(
        settings: dict[str, Any], custom: dict[str, Any], *arguments: str, spider: str = "pages"
    ) -> tuple[subprocess.CompletedProcess[str], Loopback]:
        server = serve(SITE)
        (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = own\n")
        own = {
            "SPIDER_MODULES": ["spider"],
            "ADDONS": {"comity.crawler.addon.Addon": 100},
            "LOG_LEVEL": "ERROR",
            **settings,
        }
        (tmp_path / "own.py").write_text(
            "".join(f"{name} = {value!r}\n" for name, value in own.items())
        )
        (tmp_path / "spider.py").write_text(SPIDER.format(custom=custom, url=server.url("/a")))
        command = [sys.executable, "-m", "scrapy", "crawl", spider, *arguments]
        environment = {
            name: value for name, value in os.environ.items() if name != "SCRAPY_SETTINGS_MODULE"
        }
        return subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        ), server

    return run


SELECT = "twisted.internet.selectreactor.SelectReactor"
BAD_STORE = "/dev/null/policies.sqlite"


@pytest.mark.parametrize(
    ("settings", "message"),
    one_in(
        2,
        [
            ({"COMITY_MIN_DELAY": "soon"}, "COMITY_MIN_DELAY `soon` is not a number of seconds"),
            ({"COMITY_AGENT": "example bot"}, "COMITY_AGENT `example bot` is not a product token"),
            (
                {"COMITY_DEFAULTS": {"index": "perhaps"}},
                "COMITY_DEFAULTS `index:perhaps` is neither allow nor deny",
            ),
            (
                {"COMITY_PROXY": "socks5://proxy.test"},
                "COMITY_PROXY `socks5://proxy.test` is not an HTTP proxy: write http://host:port",
            ),
        ],
    ),
)
@pytest.mark.parametrize("where", ["project", "command line", "spider"])
def test_bad_setting_ends_the_crawl_with_one_line(
    project: Any, mode: str, settings: dict[str, Any], message: str, where: str
) -> None:
    in_file = {"TWISTED_REACTOR_ENABLED": mode == "reactor"}
    on_command_line = [
        part for name, value in settings.items() for part in ("-s", f"{name}={value}")
    ]
    if where == "command line" and "COMITY_DEFAULTS" in settings:
        on_command_line = ["-s", "COMITY_DEFAULTS=index:perhaps"]
    done, server = project(
        in_file | (settings if where == "project" else {}),
        settings if where == "spider" else {},
        *(on_command_line if where == "command line" else []),
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"comity: {message}")
    assert done.returncode == 1
    assert server.paths == []


def test_store_that_cannot_be_opened_ends_the_crawl_with_one_line(project: Any, mode: str) -> None:
    done, server = project(
        {},
        {},
        "-s",
        f"TWISTED_REACTOR_ENABLED={mode == 'reactor'}",
        "-s",
        f"COMITY_STORE={BAD_STORE}",
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"comity: COMITY_STORE `{BAD_STORE}` cannot be opened")
    assert done.returncode == 1
    assert server.paths == []


def test_store_of_a_spiders_own_ends_the_crawl_without_a_traceback(project: Any, mode: str) -> None:
    """Here Scrapy has built half of the crawl already."""
    done, server = project(
        {"TWISTED_REACTOR_ENABLED": mode == "reactor"}, {"COMITY_STORE": BAD_STORE}
    )
    assert f"comity: COMITY_STORE `{BAD_STORE}` cannot be opened" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    assert server.paths == []


@pytest.mark.parametrize("argument", ["", "max_pages=few"])
def test_bad_argument_of_a_ready_spider_ends_the_crawl_with_one_line(
    project: Any, mode: str, argument: str
) -> None:
    """It is found while the loop runs: without a reactor asyncio would print a traceback besides."""
    spiders = {"SPIDER_MODULES": ["comity.spiders"], "TWISTED_REACTOR_ENABLED": mode == "reactor"}
    done, _ = project(spiders, {}, *(("-a", argument) if argument else ()), spider="site")
    (line,) = done.stderr.splitlines()
    assert line.startswith("comity crawl site: ")
    assert done.returncode == 1


def test_reactor_without_an_asyncio_loop_ends_the_crawl(project: Any) -> None:
    done, server = project({"TWISTED_REACTOR": SELECT}, {})
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert (
        f"TWISTED_REACTOR `{SELECT}` has no asyncio loop: set it to twisted.internet.asyncioreactor"
        in done.stderr
    )
    assert server.paths == []


def test_reactor_that_is_installed_but_not_asked_for(tmp_path: Path) -> None:
    """To set what is set already would be no advice: Scrapy says what is amiss."""
    asyncio_reactor = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
    settings = {
        "ADDONS": {"comity.crawler.addon.Addon": 100},
        "TWISTED_REACTOR": asyncio_reactor,
        "COMITY_STORE": str(tmp_path / "s"),
    }
    code = f"""
from twisted.internet import selectreactor
selectreactor.install()
from scrapy.utils.test import get_crawler
get_crawler(settings_dict={settings})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        f"The installed reactor ({SELECT}) does not match the requested one ({asyncio_reactor})"
        in done.stderr
    )
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("DOWNLOADER_MIDDLEWARES", ACCESS),
        ("SPIDER_MIDDLEWARES", PAGE),
        ("ITEM_PIPELINES", PIPELINE),
    ],
)
def test_component_alone_ends_the_crawl_without_an_asyncio_loop(
    project: Any, name: str, component: str
) -> None:
    done, server = project({"ADDONS": {}, "TWISTED_REACTOR": SELECT, name: {component: 100}}, {})
    assert done.returncode == 1
    assert (
        "there is no asyncio loop: set TWISTED_REACTOR to twisted.internet.asyncioreactor"
        in done.stderr
    )
    assert server.paths == []


def test_crawl_by_the_other_kind_of_process(project: Any) -> None:
    """FORCE_CRAWLER_PROCESS: Scrapy's older, Deferred-based process."""
    settings = {"FORCE_CRAWLER_PROCESS": True, "COMITY_MIN_DELAY": 0}
    done, server = project(settings, {})
    assert (done.returncode, done.stderr) == (0, "")
    assert server.paths == ["/robots.txt", "/a"]
    done, server = project(settings, {"COMITY_MIN_DELAY": "soon"})
    assert done.returncode == 1
    assert "COMITY_MIN_DELAY `soon`" in done.stderr
    assert server.paths == []


def test_program_that_starts_crawls_can_catch_the_error() -> None:
    with pytest.raises(SettingsError, match="COMITY_MAX_DELAY `-1`") as raised:
        applied({"COMITY_MAX_DELAY": -1})
    assert isinstance(raised.value, ValueError)


COOKIES = """
import sys
# Where the list is kept is read from the environment by an import; a forked process has done it already.
for name in [name for name in sys.modules if name.startswith(("comity", "scrapy.downloadermiddlewares.cookies", "tldextract"))]:
    del sys.modules[name]
import scrapy.downloadermiddlewares
vars(scrapy.downloadermiddlewares).pop("cookies", None)
from scrapy import Spider
from scrapy.crawler import AsyncCrawlerProcess
from tests.selection import one_in

class Pages(Spider):
    name = "pages"
    start_urls = [sys.argv[1] + "/a", sys.argv[1] + "/b"]
    def parse(self, response): pass

settings = {"ADDONS": {"comity.crawler.addon.Addon": 100}, "COMITY_STORE": sys.argv[2]} if sys.argv[2] else {}
process = AsyncCrawlerProcess(settings | {"LOG_ENABLED": False, "CONCURRENT_REQUESTS": 1})
process.crawl(Pages)
process.start()
"""


@pytest.mark.parametrize("is_added", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_cookie_makes_nobody_ask_for_the_public_suffix_list(
    serve: Serve, tmp_path: Path, *, is_added: bool
) -> None:
    """Whoever asks for it goes through the proxy. Without the add-on Scrapy does, so that this test can fail."""
    proxy = serve({})
    cookie = serve.Answer("", headers={"Set-Cookie": "id=1"})  # type: ignore[attr-defined]
    site = serve({"/a": cookie, "/b": ""})
    proxies = {"HTTPS_PROXY": proxy.origin, "HTTP_PROXY": proxy.origin, "NO_PROXY": "127.0.0.1"}
    store = str(tmp_path / "policies.sqlite") if is_added else ""
    subprocess.run(
        [sys.executable, "-c", COOKIES, site.origin, store],
        env=os.environ | proxies | {"TLDEXTRACT_CACHE": str(tmp_path)},
        check=True,
        timeout=300,
    )
    assert [seen.headers.get("cookie") for seen in site.seen if seen.path == "/b"] == ["id=1"]
    assert bool(proxy.seen) is not is_added
