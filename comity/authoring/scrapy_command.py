"""`scrapy lint`: `comity lint` as a command of Scrapy projects."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from scrapy.exceptions import UsageError

from comity.authoring.commands import lint
from comity.crawler.commands import listed
from comity.crawler.commands.base import prepare
from comity.dataset.records import DatasetError
from comity.policies import PolicyError


class LintCommand(listed.Lint):
    """It reads no settings, so it has none of Scrapy's options."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return "[options] [FILE|FOLDER|URL ...]"

    def add_options(self, parser: ArgumentParser) -> None:
        prepare(parser)
        parser.set_defaults(profile=None)  # Scrapy reads it
        lint.add_options(parser)

    def process_options(self, args: list[str], opts: Namespace) -> None:
        if args:
            raise UsageError(f"unrecognized arguments: {' '.join(args)}", print_help=False)

    def run(self, args: list[str], opts: Namespace) -> None:
        try:
            self.exitcode = lint.run(opts)
        except (PolicyError, DatasetError) as error:
            raise UsageError(str(error), print_help=False) from None
