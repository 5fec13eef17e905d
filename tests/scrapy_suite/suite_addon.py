"""comity's add-on in a project that has nothing but it and what SETTINGS says."""

from __future__ import annotations

import json
import os

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from comity.crawler.addon import Addon

SETTINGS = json.loads(os.environ.get("SUITE_SETTINGS", "{}"))  # of run.py
PROJECT = SETTINGS_PRIORITIES["project"]


class SuiteAddon(Addon):
    """DOWNLOAD_VERIFY_CERTIFICATES is off as in Scrapy, where a test says nothing: nobody has signed those of its servers."""

    def update_settings(self, settings: BaseSettings) -> None:
        is_verified = settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES")
        for name, value in SETTINGS.items():
            if (settings.getpriority(name) or 0) < PROJECT:
                settings.set(name, value, priority=PROJECT)
        super().update_settings(settings)
        settings.set("DOWNLOAD_VERIFY_CERTIFICATES", is_verified, priority="addon")
