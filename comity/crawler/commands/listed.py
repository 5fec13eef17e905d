"""The commands of comity as Scrapy lists them: a name and a line.

Scrapy creates the commands of all installed packages whenever it runs a command, also in projects
that do not use comity. This module imports none of the work, so that `scrapy version` stays fast.
"""

from __future__ import annotations

from argparse import Namespace
from typing import ClassVar

from scrapy.utils.misc import load_object

from comity.commands import COMMANDS
from comity.crawler.commands.base import BaseCommand, import_formats


class ListedCommand(BaseCommand):
    """A command that becomes its subclass as soon as Scrapy runs it."""

    name: ClassVar[str]  # a key of COMMANDS

    def short_desc(self) -> str:
        return COMMANDS[self.name].summary

    def syntax(self) -> str:
        """Import the subclass: Scrapy asks only the command that it runs for its syntax.

        Scrapy asks for the syntax before anything else but the summary."""
        import_formats()
        self.__class__ = load_object(self.subclass())
        return self.syntax()

    def subclass(self) -> str:
        """Return the path of the class that does the work."""
        return COMMANDS[self.name].target.replace(":", ".")

    def run(self, args: list[str], opts: Namespace) -> None:
        raise NotImplementedError  # Scrapy runs the subclass


class Dataset(ListedCommand):
    name = "dataset"


class Demo(ListedCommand):
    name = "demo"


class Doctor(ListedCommand):
    name = "doctor"


class Frontier(ListedCommand):
    name = "frontier"


class Lint(ListedCommand):
    name = "lint"

    def subclass(self) -> str:
        return "comity.authoring.scrapy_command.LintCommand"


class Policy(ListedCommand):
    name = "policy"


class Report(ListedCommand):
    name = "report"
