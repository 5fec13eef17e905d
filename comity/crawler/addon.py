"""The add-on: `ADDONS = {"comity.crawler.addon.Addon": 100}` in a project's settings is enough.

In Scrapy the project's own settings take precedence over an add-on's. So the add-on can only warn,
loudly, of settings that switch its components off."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

from scrapy.core.scheduler import Scheduler as ScrapyScheduler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.extensions.closespider import CloseSpider
from scrapy.extensions.feedexport import FeedExporter
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.reactor import is_asyncio_reactor_installed, is_reactor_installed

import comity
from comity.crawler import feeds, reporting
from comity.crawler.crawl import open_early
from comity.crawler.downloads.handler import DownloadHandler
from comity.crawler.feeds.exporter import Feeds
from comity.crawler.feeds.responses import ItemResponses
from comity.crawler.frontier.backlog import most_waiting
from comity.crawler.frontier.scheduler import Scheduler
from comity.crawler.garbage import GarbageCollection
from comity.crawler.items import logformatter
from comity.crawler.items.pipeline import PermissionsPipeline
from comity.crawler.middlewares.access import AccessMiddleware
from comity.crawler.middlewares.credentials import FieldsMiddleware
from comity.crawler.middlewares.inner_addresses import AddressMiddleware
from comity.crawler.middlewares.offers import OfferMiddleware
from comity.crawler.middlewares.overload import RateMiddleware
from comity.crawler.middlewares.page import PageMiddleware
from comity.crawler.progress import Progress
from comity.crawler.scrapy_internals import take_shipped_suffixes
from comity.database import make_private_folder
from comity.dataset.tags.setting import AS_JSON, IN_FIELD
from comity.extras import required
from comity.gate.options import (
    ASYNCIO_REACTOR,
    DEFAULTS,
    Options,
    machine_store,
    project_store,
    stop,
)
from comity.gate.options.profiles import note_of_profile
from comity.gate.settings import DEFAULT_AGENT
from comity.policies import PolicyError

logger = logging.getLogger(__name__)

COMPONENTS: dict[str, dict[type[object], int]] = {
    "DOWNLOADER_MIDDLEWARES": {
        AccessMiddleware: 100,
        RateMiddleware: 560,
        OfferMiddleware: 570,
        FieldsMiddleware: 940,
        AddressMiddleware: 950,
    },
    "SPIDER_MIDDLEWARES": {PageMiddleware: 10},
    "ITEM_PIPELINES": {PermissionsPipeline: 0},
    "EXTENSIONS": {ItemResponses: -1},
}

# These must see items before and after other components replace them: if other components have a
# lower number, ours get one below it.
OUTERMOST = (PageMiddleware, PermissionsPipeline)

# By default Scrapy opens consoles to everybody on the machine, and does not check certificates.
SAFER: dict[str, Any] = {
    "DOWNLOAD_VERIFY_CERTIFICATES": True,
    "REMOTE_CONTROL_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
}

SCHEMES = ("http", "https")  # of comity's download handler
PROJECT = SETTINGS_PRIORITIES["project"]

# Scrapy starts a task for each item that may be in the pipelines at a time, even if a response has
# one item or none. Its default of 100 takes a third of the time of a page (docs/upstream.md).
CONCURRENT_ITEMS = 8


class Addon:
    """Puts comity's components in place and warns of settings that take them out."""

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Check the settings and open the files before a crawl is built.

        Later, a half-built crawl would leave things open, of which the program complains at its
        end, and an error within CrawlerProcess.crawl() would leave the exit status 0."""
        open_early(_check(settings), settings.get("JOBDIR"))

    def update_settings(self, settings: BaseSettings) -> None:
        if folder := settings.get("JOBDIR"):
            _make_private(Path(folder))  # before Scrapy makes it readable for everybody
        take_shipped_suffixes()
        for name, value in {
            "SCHEDULER": Scheduler,
            "CONCURRENT_ITEMS": CONCURRENT_ITEMS,
            **SAFER,
        }.items():
            settings.set(name, value, priority="addon")
        settings.set_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", RobotsTxtMiddleware, None)
        for name, components in COMPONENTS.items():
            for component, position in components.items():
                order = (
                    min(position, _lowest(settings, name) - 1)
                    if component in OUTERMOST
                    else position
                )
                settings.setdefault_in_component_priority_dict(name, component, order)
        if (place := _positions(settings, "EXTENSIONS").get(FeedExporter)) is not None:
            settings.set_in_component_priority_dict("EXTENSIONS", FeedExporter, None)
            settings.setdefault_in_component_priority_dict("EXTENSIONS", Feeds, place)
        options = _check(settings)
        agent = options.agent
        if options.download_handler:
            _set_download_handler(settings)
        if options.state and options.limits == "crawl":  # shared_queue.py has the limits
            settings.set_in_component_priority_dict("EXTENSIONS", CloseSpider, None)
        _guard_browsers(settings, options)
        feeds.register(settings, options, place=_place_of_queue(settings, options))
        logformatter.shorten(settings)
        settings.set(
            "USER_AGENT", f"{agent.token}/{comity.__version__} (Scrapy; comity)", priority="addon"
        )
        if options.progress != "off":
            settings.setdefault_in_component_priority_dict("EXTENSIONS", Progress, 0)
        if options.report or options.metrics is not None:
            settings.setdefault_in_component_priority_dict("EXTENSIONS", reporting.Reporting, 0)
        if options.sets_gc:
            settings.setdefault_in_component_priority_dict("EXTENSIONS", GarbageCollection, 0)
        if options.profile:
            logger.info("%s", note_of_profile(settings))
        warnings = (
            _warn_of_anonymity(settings, agent.token),
            _warn_of_missing_defaults(options),
            _warn_of_separate_store(settings, options),
            _warn_of_untagged_feeds(settings, options),
            _warn_of_missing_components(settings),
        )
        for warning in chain.from_iterable(warnings):
            logger.warning("%s", warning)


def _place_of_queue(settings: BaseSettings, options: Options) -> str:
    """Return the name of the setting that lets a killed crawl continue.

    "" if no such setting is set, or if Scrapy's own scheduler keeps the queue."""
    # issubclass() would look at the methods only.
    if ScrapyScheduler in load_object(settings["SCHEDULER"]).__mro__:
        return ""
    return "COMITY_STATE" if options.state else "JOBDIR" if settings.get("JOBDIR") else ""


def _set_download_handler(settings: BaseSettings) -> None:
    """Let comity's download handler fetch the pages. SettingsError: the project names another."""
    handlers = settings.getdict("DOWNLOAD_HANDLERS")
    for scheme in SCHEMES:
        if scheme in handlers:
            stop(
                f"COMITY_DOWNLOAD_HANDLER is True, but DOWNLOAD_HANDLERS has a handler for {scheme}"
                " too: remove one of them"
            )
    settings.set(
        "DOWNLOAD_HANDLERS",
        {**handlers, **dict.fromkeys(SCHEMES, DownloadHandler)},
        # Without a reactor, Scrapy's own handlers have the priority of the project.
        priority=max(settings.getpriority("DOWNLOAD_HANDLERS") or 0, PROJECT),
    )


def _guard_browsers(settings: BaseSettings, options: Options) -> None:
    """Put a guard between the network and the browsers of scrapy-playwright, if it is in use."""
    handlers = browser_handlers(settings)
    if not handlers:
        return
    browser = settings.get("PLAYWRIGHT_BROWSER_TYPE") or "chromium"
    if browser != "chromium":
        stop(
            f"PLAYWRIGHT_BROWSER_TYPE `{browser}`: this browser does not report its requests, so"
            " comity cannot judge them: set it to chromium"
        )
    try:
        with required("scrapy-playwright in DOWNLOAD_HANDLERS", "playwright", PolicyError):
            guard = load_object("comity.browser.handler.guarded_handler")
            load_object("comity.browser.handler.check")(settings)
    except PolicyError as error:
        stop(str(error))
    all_handlers = {
        **settings.getdict("DOWNLOAD_HANDLERS"),
        **{name: guard(load_object(handlers[name])) for name in handlers},
    }
    settings.set(
        "DOWNLOAD_HANDLERS", all_handlers, priority=settings.getpriority("DOWNLOAD_HANDLERS") or 0
    )
    # Requests of a page wait for the turn of their host, like all requests.
    settings.set(
        "PLAYWRIGHT_DEFAULT_NAVIGATION_TIMEOUT", options.max_delay * 1000, priority="addon"
    )


def browser_handlers(settings: BaseSettings) -> dict[str, Any]:
    """Return the download handlers of scrapy-playwright by scheme."""
    return {
        scheme: handler
        for scheme, handler in settings.getdict("DOWNLOAD_HANDLERS").items()
        if _is_of_browser(handler)
    }


def _is_of_browser(handler: Any) -> bool:
    """Return True for scrapy-playwright's download handler and for its subclasses."""
    if isinstance(handler, str) and not handler.startswith("scrapy_playwright."):
        try:
            handler = load_object(handler)
        except Exception:  # Scrapy reports it
            return False
    if isinstance(handler, str):
        return True
    modules = (base.__module__ for base in getattr(handler, "__mro__", ()))
    return any(module.startswith("scrapy_playwright.") for module in modules)


def _make_private(folder: Path) -> None:
    try:
        make_private_folder(folder)
    except OSError as error:
        stop(
            f"JOBDIR `{folder}` cannot be made: {error.strerror};"
            " set it to a folder that can be written"
        )


def _check(settings: BaseSettings) -> Options:
    """Return the options. End the program if no crawl is possible with the settings.

    It is called twice. The spider's own settings are included only the second time."""
    if settings.getbool("TWISTED_REACTOR_ENABLED", default=True):
        # If another reactor than ASYNCIO_REACTOR is installed, Scrapy ends the crawl.
        reactor = settings.get("TWISTED_REACTOR")
        if reactor != ASYNCIO_REACTOR and not (
            is_reactor_installed() and is_asyncio_reactor_installed()
        ):
            stop(f"TWISTED_REACTOR `{reactor}` has no asyncio loop: set it to {ASYNCIO_REACTOR}")
    options = Options.checked(settings)
    reporting.check(options)
    return options


def _warn_of_anonymity(settings: BaseSettings, token: str) -> Iterator[str]:
    """Warn if sites cannot know the operator of the crawler and how to reach them."""
    example = '"examplebot/1.0 (+https://example.org/bot)"'
    user_agent = str(settings.get("USER_AGENT"))
    if token == DEFAULT_AGENT:
        yield (
            f"COMITY_AGENT is the default `{token}`: set it to a name of your own, which sites can"
            " address in their files, and USER_AGENT to that name with a way to reach you,"
            f" e.g. {example}"
        )
    elif token.lower() not in user_agent.lower():
        yield (
            f"USER_AGENT `{user_agent}` does not name COMITY_AGENT `{token}`, so sites do not know"
            f" which name to address: put it into USER_AGENT, e.g. {example}"
        )
    elif not any(contact in user_agent for contact in ("http://", "https://", "@")):
        yield (
            f"USER_AGENT `{user_agent}` has no way to reach you: set it to your name with an"
            f" address, e.g. {example}"
        )


def _warn_of_missing_defaults(options: Options) -> Iterator[str]:
    """Warn of declared uses that have no default: most sites state nothing about most uses."""
    uses = [
        use for use in options.agent.uses if use not in {*options.agent.defaults, "crawl", "follow"}
    ]
    if uses:
        allowed, denied = (
            ",".join(f"{use}:{verdict}" for use in uses) for verdict in ("allow", "deny")
        )
        yield (
            f"COMITY_DEFAULTS has no value for {', '.join(uses)}, named in COMITY_USES. Where sites"
            " state nothing, these uses are refused, and items with no permitted use are dropped."
            f' To permit them: COMITY_DEFAULTS = "{allowed}". To refuse them without this warning:'
            f' COMITY_DEFAULTS = "{denied}"'
        )


def _warn_of_separate_store(settings: BaseSettings, options: Options) -> Iterator[str]:
    """Warn if the project uses a store of its own, and so shares no pace with other projects."""
    if not settings.get("COMITY_STORE") and options.store == project_store():
        yield (
            f"COMITY_STORE is not set, and this project has a store of its own, {options.store}:"
            f" it is used. Other projects use {machine_store()}, and do not share the pace of hosts"
            " with this project: set COMITY_STORE to the store that you want"
        )


def _warn_of_untagged_feeds(settings: BaseSettings, options: Options) -> Iterator[str]:
    """Warn of feeds whose fields leave out the tag. WARC files have tags with all fields."""
    if options.tag.kind not in {IN_FIELD, AS_JSON}:
        return
    fields = settings.getdictorlist("FEED_EXPORT_FIELDS")
    untagged = [
        str(uri)
        for uri, feed in settings.getdict("FEEDS").items()
        if (written := feed.get("fields") or fields)
        and options.tag.name not in written
        and "warc" not in str(feed.get("format") or uri)
    ]
    if untagged:
        yield (
            f"The fields of {', '.join(untagged)} leave out `{options.tag.name}`, so their items"
            f" have no tags: add `{options.tag.name}` to FEED_EXPORT_FIELDS, or to `fields` in"
            ' FEEDS, or write the tags into a file: COMITY_TAG = "sidecar:permissions.jsonl"'
        )


def _warn_of_missing_components(settings: BaseSettings) -> Iterator[str]:
    """Warn of components that the project's own settings switch off, move or repeat."""
    if load_object(settings["SCHEDULER"]) is not Scheduler:
        most = most_waiting(settings)
        yield (
            f"SCHEDULER is {settings['SCHEDULER']}: requests that its queue hands out too early for"
            f" their host wait in the process, at most {most} at a time (CONCURRENT_REQUESTS). They"
            " hold up later requests, and are lost if the process is killed. Remove SCHEDULER to"
            " use comity's own queue, which has neither problem"
        )
    if not settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"):
        yield (
            "DOWNLOAD_VERIFY_CERTIFICATES is off: others on the network path can forge a site's"
            " answers, including its policies"
        )
    if settings.getpriority("ROBOTSTXT_OBEY") and not settings.getbool("ROBOTSTXT_OBEY"):
        yield "ROBOTSTXT_OBEY is off. That has no effect: comity obeys robots.txt all the same"
    for name, components in COMPONENTS.items():
        positions = _positions(settings, name)
        for component, position in components.items():
            if component not in positions:
                yield (
                    f"{name} leaves out {component.__module__}.{component.__name__}:"
                    f" {_LOST[component]}"
                )
            elif component in OUTERMOST:
                outer = list(positions)[: list(positions).index(component)]
                if outer:
                    names = ", ".join(other.__name__ for other in outer)
                    yield (
                        f"{name} has {names} before {component.__name__}: items that are replaced"
                        " there lose their page"
                    )
            elif positions[component] != position:
                yield (
                    f"{name} has {component.__name__} at {positions[component]}"
                    f" instead of {position}"
                )
    for other in _positions(settings, "DOWNLOADER_MIDDLEWARES"):
        if isinstance(other, type) and issubclass(other, RobotsTxtMiddleware):
            yield (
                f"DOWNLOADER_MIDDLEWARES has {other.__name__} too:"
                " robots.txt is fetched and judged twice"
            )
    for name in settings:
        if name.startswith("COMITY_") and name not in DEFAULTS:
            matches = get_close_matches(name, DEFAULTS, 1, cutoff=0.8)
            yield f"{name} is not a setting of comity" + (
                f": did you mean {matches[0]}?" if matches else ", and has no effect"
            )


# The effect of leaving out each component.
_LOST: dict[type[object], str] = {
    AccessMiddleware: "nothing is refused",
    RateMiddleware: "hosts that answer 429 or 503 are asked again at once",
    OfferMiddleware: "responses that ask for payment are retried and make items",
    FieldsMiddleware: "requests declare no purpose, and COMITY_SESSIONS are not used",
    AddressMiddleware: "answers from inner addresses are used, and their links may lead anywhere",
    PageMiddleware: "items do not know their page, so every use is refused",
    PermissionsPipeline: "items carry no permissions",
    ItemResponses: "WARC feeds hold no responses",
}


def _positions(settings: BaseSettings, name: str) -> dict[Any, int]:
    """Return the components that are switched on, with their numbers, in their order."""
    components = settings.get_component_priority_dict_with_base(name)
    orders = ((order, component) for component, order in components.items() if order is not None)
    return {load_object(component): order for order, component in sorted(orders, key=itemgetter(0))}


def _lowest(settings: BaseSettings, name: str) -> int:
    return min(_positions(settings, name).values(), default=sys.maxsize)
