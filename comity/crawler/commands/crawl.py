"""`crawl` and `runspider`, with comity's feed formats and ready spiders.

Scrapy checks the formats of -o and -O before it asks any add-on. The ready spiders need no project.

Run by `scrapy`, the commands behave as Scrapy's own wherever these work: a project that does not
use comity must not notice it. Run by `comity`, wrong arguments are explained in one line."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy.commands import BaseRunSpiderCommand, crawl, runspider
from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings, Settings
from scrapy.utils.conf import arglist_to_dict
from scrapy.utils.project import inside_project

from comity.crawler.commands.base import (
    COMITY,
    import_formats,
    name_program,
    program_name,
    unknown_option,
)

if TYPE_CHECKING:
    from scrapy.crawler import Crawler, CrawlerRunnerBase

ADDON = "comity.crawler.addon"
READY = ("site", "urls", "policies")  # the ready spiders
READY_SETTINGS = "comity.crawler.settings"
ENDED_EARLY = 1  # exit status, which a crawl that could not begin has too


class _RunSpider(BaseRunSpiderCommand):
    """A command that runs a spider, with the add-on's feeds and comity's own exit status.

    The feeds are there if the add-on is on."""

    argument: ClassVar[str]  # the argument that the command takes

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        if program_name() == COMITY:
            name_program(parser)

    def process_options(self, args: list[str], opts: Namespace) -> None:
        assert self.settings is not None
        if program_name() == COMITY:
            if unknown := unknown_option(args):
                raise UsageError(f"there is no option `{unknown}`", print_help=False)
            if len(args) != 1:
                raise UsageError(f"write {self.argument}", print_help=False)
        if has_addon(self.settings, opts.set):
            import_formats()
            from comity.crawler.feeds import add_exporters  # only projects with the add-on need it

            add_exporters(self.settings)
        super().process_options(args, opts)

    def run(self, args: list[str], opts: Namespace) -> None:
        """Run the spider. Exit with ENDED_EARLY if its `comity_is_complete` is False.

        So scripts continue only after a complete crawl."""
        assert self.crawler_process
        crawlers = _crawlers_of(self.crawler_process)
        super().run(args, opts)  # type: ignore[safe-super]  # Scrapy's own commands define it
        if any(not getattr(each.spider, "comity_is_complete", True) for each in crawlers):
            self.exitcode = ENDED_EARLY


class CrawlCommand(_RunSpider, crawl.Command):
    """Run a spider of the project by its name; outside of a project, one of the ready spiders."""

    requires_project = False
    argument = "the name of one spider"

    def process_options(self, args: list[str], opts: Namespace) -> None:
        assert self.settings is not None
        if not inside_project():
            if args and args[0] not in READY:
                raise UsageError(
                    f"`{args[0]}` needs a project, and there is none here; comity's ready spiders"
                    f" need none: {', '.join(READY)}",
                    print_help=False,
                )
            self.settings.setmodule(READY_SETTINGS, priority="project")
        super().process_options(args, opts)

    def run(self, args: list[str], opts: Namespace) -> None:
        assert self.crawler_process
        names = self.crawler_process.spider_loader.list()
        for name in args:
            if name in READY and name not in names:
                raise UsageError(
                    f"this project has no spider `{name}`. To run comity's own, use its settings:"
                    f" SCRAPY_SETTINGS_MODULE={READY_SETTINGS} comity crawl {name}. Or add"
                    ' "comity.spiders" to SPIDER_MODULES of the project',
                    print_help=False,
                )
            if program_name() == COMITY and name not in names:
                raise UsageError(
                    f"this project has no spider `{name}`: {_spider_remedy(name, names)}",
                    print_help=False,
                )
        super().run(args, opts)


class RunSpider(_RunSpider, runspider.Command):
    """Run the spider in a Python file.

    `comity runspider` outside of a project uses the settings of the ready crawler, which turn the
    add-on on. `scrapy runspider` does not: comity may be installed for another project."""

    argument = "the name of one Python file"

    def process_options(self, args: list[str], opts: Namespace) -> None:
        assert self.settings is not None
        if program_name() == COMITY and not inside_project():
            self.settings.setmodule(READY_SETTINGS, priority="project")
        super().process_options(args, opts)


def _spider_remedy(name: str, names: list[str]) -> str:
    close = get_close_matches(name, names, 1)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"write one of {', '.join(sorted(names))}" if names else "SPIDER_MODULES has no spider"


def has_addon(settings: BaseSettings, assignments: list[str] | None = None) -> bool:
    """Return True if the add-on is on. `assignments`: NAME=VALUE, which the settings lack yet."""
    try:
        added = arglist_to_dict(assignments or []).get("ADDONS")
        addons = Settings({"ADDONS": added or settings["ADDONS"]}).getdict("ADDONS")
    except ValueError:  # Scrapy reports it
        return False
    return any(
        (addon if isinstance(addon, str) else addon.__module__).startswith(ADDON)
        for addon in addons
    )


def _crawlers_of(process: CrawlerRunnerBase) -> list[Crawler]:
    """Return a list to which each crawler is added that the process creates from now on.

    Up to Scrapy 2.17 a command has no method of its own that creates its crawler."""
    crawlers: list[Crawler] = []
    create = process.create_crawler

    def create_and_add(crawler_or_spidercls: Any) -> Crawler:
        crawlers.append(create(crawler_or_spidercls))
        return crawlers[-1]

    vars(process)["create_crawler"] = create_and_add
    return crawlers
