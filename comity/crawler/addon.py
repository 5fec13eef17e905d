"""The add-on: `ADDONS = {"comity.crawler.addon.Addon": 100}` in a project's settings, and nothing else.

Scrapy gives an add-on less weight than the project's own settings, so it can only say loudly what the project switches off."""

from __future__ import annotations

import logging
from typing import Any

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

import comity
from comity.crawler.downloadermw import AccessMiddleware
from comity.crawler.options import DEFAULT_AGENT, DEFAULTS, Options, stop
from comity.crawler.pipeline import PermissionsPipeline
from comity.crawler.scheduler import Scheduler
from comity.crawler.spidermw import PageMiddleware
from comity.crawler.transfer import PolicyTransfer

logger = logging.getLogger(__name__)

ASYNCIO_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"

COMPONENTS: dict[str, dict[type[object], int]] = {
    "DOWNLOADER_MIDDLEWARES": {AccessMiddleware: 100, PolicyTransfer: 950},
    "SPIDER_MIDDLEWARES": {PageMiddleware: 10},
    "ITEM_PIPELINES": {PermissionsPipeline: 0},
}

# What Scrapy leaves open by default: consoles that anyone on the machine can reach, and certificates that nobody checks.
SAFER: dict[str, Any] = {
    "DOWNLOAD_VERIFY_CERTIFICATES": True,
    "REMOTE_CONTROL_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
}


class Addon:
    """Puts comity's components in place and warns of settings that take them out."""

    def update_settings(self, settings: BaseSettings) -> None:
        if settings.getbool("TWISTED_REACTOR_ENABLED", True) and settings.get("TWISTED_REACTOR") != ASYNCIO_REACTOR:
            stop(f"TWISTED_REACTOR `{settings.get('TWISTED_REACTOR')}` has no asyncio loop: set it to {ASYNCIO_REACTOR}")
        for name, value in DEFAULTS.items():
            settings.setdefault(name, value, priority="default")
        for name, value in {"SCHEDULER": Scheduler, **SAFER}.items():
            settings.set(name, value, priority="addon")
        settings.set_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", RobotsTxtMiddleware, None)
        for name, components in COMPONENTS.items():
            for component, position in components.items():
                settings.setdefault_in_component_priority_dict(name, component, position)
        _name_agent(settings)
        Options.checked(settings)
        for warning in _switched_off(settings):
            logger.warning("%s", warning)


def _name_agent(settings: BaseSettings) -> None:
    token = settings.get("COMITY_AGENT")
    if token == DEFAULT_AGENT:
        logger.warning(
            "COMITY_AGENT is the default `%(token)s`: set it to a name of your own, which sites can address in their files,"
            ' and USER_AGENT to that name with a way to reach you, e.g. "examplebot/1.0 (+https://example.org/bot)"',
            {"token": token},
        )
    settings.set("USER_AGENT", f"{token}/{comity.__version__} (Scrapy; comity)", priority="addon")


def _switched_off(settings: BaseSettings) -> list[str]:
    """What the project's own settings take out, a line each."""
    warnings = []
    token, user_agent = str(settings.get("COMITY_AGENT")), str(settings.get("USER_AGENT"))
    if token.lower() not in user_agent.lower():
        warnings.append(f"USER_AGENT `{user_agent}` does not name COMITY_AGENT `{token}`: sites cannot know whom to address")
    if load_object(settings["SCHEDULER"]) is not Scheduler:
        warnings.append(f"SCHEDULER is {settings['SCHEDULER']}: requests wait in the downloader instead of the polite queue")
    if not settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"):
        warnings.append("DOWNLOAD_VERIFY_CERTIFICATES is off: anyone on the way can answer for a site, its policies included")
    for name, components in COMPONENTS.items():
        positions = _positions(settings, name)
        for component, position in components.items():
            found = positions.get(component)
            if found is None:
                warnings.append(f"{name} leaves out {component.__module__}.{component.__name__}: {_LOST[component]}")
            elif component is PermissionsPipeline:
                before = [other for other, place in positions.items() if place is not None and place < found]
                if before:
                    names = ", ".join(sorted(getattr(other, "__name__", str(other)) for other in before))
                    warnings.append(f"{name} runs {names} before PermissionsPipeline: items that it replaces lose their page")
            elif found != position and component is not PolicyTransfer:
                warnings.append(f"{name} has {component.__name__} at {found} instead of {position}")
    if _positions(settings, "DOWNLOADER_MIDDLEWARES").get(RobotsTxtMiddleware) is not None:
        warnings.append("DOWNLOADER_MIDDLEWARES has Scrapy's RobotsTxtMiddleware too: robots.txt is fetched and judged twice")
    return warnings


_LOST: dict[type[object], str] = {
    AccessMiddleware: "nothing is refused",
    PolicyTransfer: "redirects of policy files to other hosts are not followed, and their sites are refused",
    PageMiddleware: "items do not know their page, and nobody may use them",
    PermissionsPipeline: "items carry no permissions",
}


def _positions(settings: BaseSettings, name: str) -> dict[Any, int | None]:
    components = settings.get_component_priority_dict_with_base(name)
    return {load_object(component): position for component, position in components.items()}
