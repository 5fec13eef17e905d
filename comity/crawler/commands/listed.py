"""The commands of comity as Scrapy lists them: a name and a line.

Scrapy creates the commands of all installed packages whenever it runs a command, also in projects
that do not use comity. This module imports none of the work, so that `scrapy version` stays fast.
"""

from __future__ import annotations

from argparse import Namespace
from typing import ClassVar

from scrapy.utils.misc import load_object

from comity.crawler.commands.base import BaseCommand, import_formats


class ListedCommand(BaseCommand):
    """A command that becomes its subclass as soon as Scrapy runs it."""

    subclass: ClassVar[str]  # the path of the class that does the work
    summary: ClassVar[str]

    def short_desc(self) -> str:
        return self.summary

    def syntax(self) -> str:
        """Import the subclass: Scrapy asks only the command that it runs for its syntax.

        Scrapy asks for the syntax before anything else but the summary."""
        import_formats()
        self.__class__ = load_object(self.subclass)
        return self.syntax()

    def run(self, args: list[str], opts: Namespace) -> None:
        raise NotImplementedError  # Scrapy runs the subclass


class Dataset(ListedCommand):
    subclass = "comity.crawler.commands.dataset.DatasetCommand"
    summary = (
        "Tag records from elsewhere; export usable records of a dataset, remove records that may"
        " not be kept, count, verify"
    )


class Demo(ListedCommand):
    subclass = "comity.crawler.commands.demo.DemoCommand"
    summary = "Serve a demonstration site on this machine, to crawl and to look at"


class Frontier(ListedCommand):
    subclass = "comity.crawler.commands.frontier.FrontierCommand"
    summary = "Show a crawl by several workers, pause it, let it go on, end it or delete it"


class Policy(ListedCommand):
    subclass = "comity.crawler.commands.policy.PolicyCommand"
    summary = "Explain a site's policies on a URL"


class Report(ListedCommand):
    subclass = "comity.crawler.commands.report.ReportCommand"
    summary = "Write a page about a crawl and the permissions of its items, or compare two"
