"""`comity lint`: what is wrong with the files that a site has for crawlers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from comity.authoring.lint import kind_of, lint_file
from comity.crawler.console import say
from comity.policies import PolicyError

HELP = "find what is wrong with policy files"


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE")


def run(options: Namespace) -> int:
    problems = []
    for name in options.files:
        body = Path(name).read_bytes()
        kind = kind_of(name, body)
        if kind is None:
            raise PolicyError(f"{name}: it is not known what this is: say it with --as")
        problems += lint_file(kind, name, body)
    for problem in problems:
        where = f"{problem.file}:{problem.place.line}:{problem.place.column}" if problem.place else problem.file
        say(f"{where}: {problem.severity.value}: {problem.message} [{problem.rule}, {problem.spec}]")
    return 1 if problems else 0
