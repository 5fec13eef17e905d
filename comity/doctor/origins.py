"""The settings of a crawl, and where each is from."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, Settings
from scrapy.utils.project import inside_project

from comity.cluster.state import open_state
from comity.crawler.commands.crawl import READY_SETTINGS
from comity.gate.options import DEFAULTS
from comity.gate.options.profiles import NAME as PROFILE
from comity.gate.options.profiles import NO_PROFILE, profile_of
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable, without_passwords

# The settings of Scrapy that count for comity: docs/settings.md.
OF_SCRAPY = (
    "ADDONS",
    "USER_AGENT",
    "DOWNLOAD_DELAY",
    "DOWNLOAD_SLOTS",
    "CONCURRENT_REQUESTS",
    "CONCURRENT_REQUESTS_PER_DOMAIN",
    "AUTOTHROTTLE_ENABLED",
    "RETRY_ENABLED",
    "RETRY_TIMES",
    "JOBDIR",
    "FEEDS",
    "SCHEDULER",
    "CONCURRENT_ITEMS",
    "DOWNLOAD_HANDLERS",
    "DOWNLOAD_TIMEOUT",
    "DOWNLOAD_VERIFY_CERTIFICATES",
    "REMOTE_CONTROL_ENABLED",
    "TELNETCONSOLE_ENABLED",
    "TWISTED_REACTOR",
    "ROBOTSTXT_OBEY",
)
DEFAULT = "default"
_ORIGINS = {
    SETTINGS_PRIORITIES["default"]: DEFAULT,
    SETTINGS_PRIORITIES["command"]: DEFAULT,
    SETTINGS_PRIORITIES["addon"]: "add-on",
    SETTINGS_PRIORITIES["cmdline"]: "command line",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """A setting, and where it is from.

    Attributes:
        name: The name of the setting.
        value: The value, without passwords.
        origin: DEFAULT, "add-on", "command line", PROFILE, or the module of the project's settings.
    """

    name: str
    value: str
    origin: str


def settings_module() -> str:
    """Return the module with the settings of the project, or of the ready crawler."""
    project = os.environ.get("SCRAPY_SETTINGS_MODULE", "")
    return project if inside_project() else READY_SETTINGS


def origins(settings: BaseSettings) -> list[Origin]:
    """Return the settings of comity, and those of Scrapy that count."""
    module, profile = settings_module(), NO_PROFILE
    with suppress(PolicyError):  # there is no such profile
        profile = profile_of(settings)
    found = []
    for name in (*DEFAULTS, *(name for name in OF_SCRAPY if name in settings)):
        value = settings.get(name)
        origin = _ORIGINS.get(settings.getpriority(name) or 0, module)
        if value is None and name in profile.settings:
            value, origin = profile.get(name, None), PROFILE
        found.append(
            Origin(name, _shown(name, DEFAULTS.get(name) if value is None else value), origin)
        )
    return found


def _shown(name: str, value: Any) -> str:
    """Return a value as text, without passwords and tokens."""
    if name == "COMITY_STATE" and value:
        try:
            return str(open_state(str(value), "crawl", ttl=1.0).address)
        except PolicyError:
            return "not shown: it cannot be used, and may contain a password"
    if name == "COMITY_SESSIONS" and value:
        return f"of {', '.join(map(str, value))}" if isinstance(value, dict) else "not shown"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    text = str(value.copy_to_dict() if isinstance(value, BaseSettings) else value)
    return without_passwords(printable(text.encode("utf-8", "replace")))


def with_addons(settings: BaseSettings) -> tuple[BaseSettings, list[str]]:
    """Return the settings that the add-ons make of these, and the warnings of comity.

    Exceptions of the add-ons are not caught."""
    jobdir = settings.attributes.get("JOBDIR")
    without_jobdir = Settings()
    without_jobdir.attributes = dict(settings.copy().attributes)
    without_jobdir.attributes.pop("JOBDIR", None)  # the add-on makes the folder
    with _warnings() as texts:
        crawler = Crawler(Spider, without_jobdir)
        crawler.addons.load_settings(crawler.settings)
    if jobdir is not None:
        crawler.settings.attributes["JOBDIR"] = jobdir
    return crawler.settings, texts


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Keep the warnings of comity's log, and show none of them."""
    texts: list[str] = []
    logger, handler = logging.getLogger("comity"), logging.Handler(logging.WARNING)
    vars(handler)["emit"] = lambda record: texts.append(record.getMessage())
    logger.addHandler(handler)
    propagate, logger.propagate = logger.propagate, False
    try:
        yield texts
    finally:
        logger.propagate = propagate
        logger.removeHandler(handler)
