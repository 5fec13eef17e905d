"""Runs crawls for the tests: one JSON job a line on standard input, one JSON answer a line on standard output, the log on
standard error too.

    python harness.py reactor|no-reactor

A reactor cannot be restarted and the two modes cannot share a process, so each mode has a process of its own. It ends, with a
traceback on standard error, where a crawl takes longer than the job's `deadline`, in seconds."""

from __future__ import annotations

import asyncio
import faulthandler
import importlib.util
import inspect
import io
import json
import logging
import os
import signal
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from scrapy.addons import AddonManager
from scrapy.crawler import Crawler
from scrapy.settings import Settings
from scrapy.utils.conf import feed_complete_default_values_from_settings
from scrapy.utils.reactor import install_reactor

# Since Scrapy 2.19 a feed has the format that its name says. Before, FEEDS has to name the format.
FORMAT_FROM_NAME = "uri" in inspect.signature(feed_complete_default_values_from_settings).parameters


# Modules with spiders are modules of tests, and import `tests.selection`. Of its folder nothing else is found.
tests = ModuleType("tests")
tests.__path__ = [str(Path(__file__).parent)]
sys.modules["tests"] = tests


def load(file: str, qualname: str) -> Any:
    module_name = f"harness_{abs(hash(file))}"
    module = sys.modules.get(module_name)
    if module is None:
        spec = importlib.util.spec_from_file_location(module_name, file)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        spec.loader.exec_module(module)
    found: Any = module
    for name in qualname.split("."):
        found = getattr(found, name)
    return found


async def run(job: dict[str, Any], mode: str) -> dict[str, Any]:
    log = io.StringIO()
    handlers: list[logging.Handler] = [
        logging.StreamHandler(log),
        logging.StreamHandler(sys.stderr),
    ]  # the second one for a crawl that does not end
    root = logging.getLogger()
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        root.addHandler(handler)
    root.setLevel(logging.INFO)
    with tempfile.TemporaryDirectory() as folder:
        feed = Path(folder) / "items.jsonl"
        settings: dict[str, Any] = {
            "FEEDS": {str(feed): {"format": "jsonlines"}},
            "TELNETCONSOLE_ENABLED": False,
        }
        settings |= {"TWISTED_REACTOR_ENABLED": mode == "reactor", **job["settings"]}
        if not FORMAT_FROM_NAME:
            settings["FEEDS"] = {
                uri: {"format": Path(uri).suffix.removeprefix("."), **feed}
                for uri, feed in settings["FEEDS"].items()
            }
        # As AsyncCrawlerRunner does, which copies all settings once more, and looks for spiders.
        given = Settings(settings)
        AddonManager.load_pre_crawler_settings(given)
        # The crawler copies all once more, for whoever still has them: nobody has these.
        given.copy = lambda: given  # type: ignore[method-assign]
        crawler = Crawler(load(job["file"], job["spider"]), given)
        del given.copy
        try:
            await crawler.crawl_async(**job["arguments"])
        except Exception:
            logging.exception("the crawl failed")
        items = (
            [json.loads(line) for line in feed.read_text().splitlines()] if feed.exists() else []
        )
    for handler in handlers:
        root.removeHandler(handler)
    stats = dict(crawler.stats.get_stats()) if crawler.stats else {}
    return {"items": items, "stats": stats, "log": log.getvalue()}


def main(mode: str) -> None:
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # who ends the tests with Ctrl-C closes standard input
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    if mode == "reactor":
        install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
        from twisted.internet import reactor

        loop = reactor._asyncioEventloop
        reactor.startRunning(installSignalHandlers=False)
    for line in sys.stdin:
        job = json.loads(line)
        faulthandler.dump_traceback_later(job["deadline"], exit=True)
        answer = loop.run_until_complete(run(job, mode))
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps(answer, default=str), flush=True)  # noqa: T201
    os._exit(0)  # the reactor's thread pool would keep the process alive


if __name__ == "__main__":
    main(sys.argv[1])
