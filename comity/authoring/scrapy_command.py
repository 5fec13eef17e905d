"""`scrapy lint`: `comity lint` as a command of Scrapy projects.

Scrapy imports this module for each of its commands, so the methods import what they need."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from scrapy.exceptions import UsageError

from comity.authoring.commands import LINT
from comity.crawler.commands.base import BaseCommand


class LintCommand(BaseCommand):
    requires_crawler_process = False

    def syntax(self) -> str:
        return "[options] [FILE|FOLDER|URL ...]"

    def short_desc(self) -> str:
        return LINT.capitalize()

    def long_desc(self) -> str:
        return f"{self.short_desc()}: the same as `comity lint`."

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        from comity.authoring.commands import lint

        lint.add_options(parser)

    def run(self, args: list[str], opts: Namespace) -> None:
        from comity.authoring.commands import lint
        from comity.dataset.records import DatasetError
        from comity.policies import PolicyError

        if args:
            raise UsageError(f"lint knows no `{args[0]}`", print_help=False)
        try:
            self.exitcode = lint.run(opts)
        except (PolicyError, DatasetError) as error:
            raise UsageError(str(error), print_help=False) from None
