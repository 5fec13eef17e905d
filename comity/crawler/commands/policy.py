"""`comity policy URL`: explain a site's policies on one URL, with the deciding lines."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, ClassVar

from scrapy.exceptions import UsageError

from comity.crawler.captures import open_captures
from comity.crawler.commands import listed
from comity.crawler.commands.base import add_opt_out, program_name, set_opt_out, unknown_option
from comity.crawler.commands.policy_history import as_json, history
from comity.crawler.commands.policy_history import show as show_history
from comity.crawler.sites.sources import PolicySpider
from comity.gate.explanation import explain, show
from comity.gate.fetching.store import PolicyStore
from comity.gate.folder import misplaced_files, missing_host, read_folder
from comity.gate.options import ASYNCIO_REACTOR, Options
from comity.gate.run.console import complain, open_console
from comity.policies import Agent, Fetched, PolicyError, Site, Verdict, instructions
from comity.policies.answers.fetched import Availability, availability
from comity.policies.answers.request import DOCUMENT, KINDS, Facts
from comity.policies.answers.rule import RULES
from comity.policies.formats.ai_txt.conversion import other_form
from comity.policies.formats.ai_txt.file import PATH as AI_PATH
from comity.policies.syntax.printable import printable, unhidden
from comity.policies.syntax.urls import origin_of, typed_url

HISTORY = "history"  # a word before the URL
EXIT = {Verdict.ALLOW: 0, Verdict.DENY: 1, Verdict.DEFER: 1}
UNREACHABLE = 2
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")


class PolicyCommand(listed.Policy):
    default_settings: ClassVar[dict[str, Any]] = {"ADDONS": {"comity.crawler.addon.Addon": 100}}

    def syntax(self) -> str:
        return "[history] [options] <url>, or --xml <url or file>"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. The word history before the URL: show how the policies"
            " changed over time, from the captures in --policies. --prompt ACTION: print the site's"
            " rules for an action, for the prompt of a model. --xml <url>: print the ai.txt of a"
            " site as XML. --xml <file>: convert an ai.txt on this machine to XML, or back to text."
            " Exit status: 0 allowed, 1 refused or not now, 2 wrong usage or policies unreachable;"
            " with --xml: 0 printed, 2 there is no such ai.txt."
        )

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--agent", help="product token of the crawler (default: COMITY_AGENT)")
        parser.add_argument(
            "--purpose", action="append", metavar="P", help="purpose of the crawl; may be repeated"
        )
        parser.add_argument(
            "--use",
            action="append",
            metavar="U",
            help="use of the content; may be repeated",
        )
        parser.add_argument(
            "--method", default="GET", help="HTTP method of the request (default: %(default)s)"
        )
        parser.add_argument(
            "--kind",
            action="append",
            choices=KINDS,
            help="kind of request (default: document); may be repeated",
        )
        parser.add_argument(
            "--automation",
            action="append",
            metavar="T",
            help="tool that makes the request, e.g. headless; may be repeated",
        )
        parser.add_argument("--key", action="store_true", help="the request carries a key")
        parser.add_argument("--referer", metavar="URL", help="page from which the request is made")
        parser.add_argument(
            "--offline",
            metavar="DIR",
            help="read the policy files in DIR instead of asking the site",
        )
        parser.add_argument(
            "--policies",
            action="append",
            metavar="PATH",
            help="with history: the captures to read: a WARC file, a folder of WARC files or of"
            " policy files, or a policy store; may be repeated",
        )
        parser.add_argument(
            "--index",
            metavar="FILE",
            type=Path,
            help="with history: keep an index of the captures in this file, so that the next call"
            " is faster",
        )
        add_opt_out(parser)
        form = parser.add_mutually_exclusive_group()
        form.add_argument(
            "--all",
            action="store_true",
            help="print every use, matching rule, element, file and problem too",
        )
        form.add_argument("--json", action="store_true", help="print JSON")
        form.add_argument(
            "--xml",
            action="store_true",
            help="print the site's ai.txt as XML, or convert a file: text to XML, XML to text",
        )
        form.add_argument(
            "--prompt",
            metavar="ACTION",
            help="print the site's rules for an action, e.g. Summarize, for the prompt of a model",
        )
        parser.add_argument(
            "--lang",
            metavar="TAG",
            default="",
            help="with --prompt: language of the guidelines, e.g. en",
        )

    def process_options(self, args: list[str], opts: Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        overrides = {
            "COMITY_AGENT": opts.agent,
            "COMITY_PURPOSES": opts.purpose,
            "COMITY_USES": opts.use,
        }
        self.settings.setdict(
            {name: value for name, value in overrides.items() if value}, priority="cmdline"
        )
        set_opt_out(self.settings, opts)
        if not (opts.loglevel or opts.logfile):
            self.settings.set("LOG_LEVEL", "ERROR", priority="cmdline")
        # The project's crawls may use another reactor.
        self.settings.set("TWISTED_REACTOR", ASYNCIO_REACTOR, priority="cmdline")
        self.requires_crawler_process = not (opts.offline is not None or args[:1] == [HISTORY])
        try:
            options = Options.from_settings(self.settings)
            self._agent, self._max_delay = options.agent, options.max_delay
            if self.requires_crawler_process:
                PolicyStore(options.store).close()
        except PolicyError as error:
            raise UsageError(str(error), print_help=False) from None

    def run(self, args: list[str], opts: Namespace) -> None:
        if unknown := unknown_option(args):
            raise UsageError(f"policy has no option `{unknown}`", print_help=False)
        if args[:1] == [HISTORY]:
            self._print_history(args[1:], opts)
            return
        if opts.policies or opts.index:
            raise UsageError(
                "--policies and --index need the word history: comity policy history URL",
                print_help=False,
            )
        if len(args) != 1:
            raise UsageError(
                f"write one URL: `{program_name()} policy https://example.com/`", print_help=False
            )
        if opts.lang and not opts.prompt:
            raise UsageError("--lang is the language of --prompt: write both", print_help=False)
        if (
            opts.xml
            and "://" not in args[0]
            and (_is_file(args[0]) or args[0].endswith((".txt", ".xml")))
        ):
            body = _octets(Path(args[0]))
            is_xml = body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
            self._print_other_form(
                printable(args[0]), Fetched(status=200, body=body), is_xml=is_xml
            )
            return
        url, facts = _url(args[0]), _facts(opts)
        origin = origin_of(url)
        site = (
            self._fetch(url) if opts.offline is None else _read(origin, opts.offline, self._agent)
        )
        if site is None:
            self.exitcode = UNREACHABLE
        elif (problem := missing_host(site)) and not opts.json:
            _print(f"NOT KNOWN: {problem}.\n")
            self.exitcode = UNREACHABLE
        elif opts.xml:
            self._print_ai_txt(site, origin)
        else:
            self._print_answer(site, url, facts, opts)

    def _print_history(self, args: list[str], opts: Namespace) -> None:
        if len(args) != 1 or not opts.policies:
            raise UsageError(
                "write one URL, and --policies with the place of captures:"
                f" `{program_name()} policy history https://example.com/ --policies captures`",
                print_help=False,
            )
        if opts.offline is not None or opts.xml or opts.prompt or opts.lang or opts.all:
            raise UsageError(
                "--all, --offline, --xml, --prompt and --lang cannot be used with the word history",
                print_help=False,
            )
        url, facts = _url(args[0]), _facts(opts)
        try:
            captures = open_captures(opts.policies, agent=self._agent, index=opts.index)
        except PolicyError as error:
            raise UsageError(str(error), print_help=False) from None
        with captures:
            unreadable, failures = captures.unreadable
            for failure in failures:
                complain(f"{failure.place} cannot be read: {failure.error}")
            if unreadable > len(failures):
                complain(f"{unreadable - len(failures)} more places cannot be read")
            visits = history(captures, url, facts, declared_only=bool(opts.use))
        if opts.json:
            print(  # noqa: T201
                json.dumps(as_json(visits, url, self._agent) | {"unreadable": unreadable}, indent=2)
            )
        elif visits:
            show_history(visits, url, open_console())
        if not visits:
            complain(f"there is no copy of the policy files of {origin_of(url)}")
            self.exitcode = UNREACHABLE

    def _print_answer(self, site: Site, url: str, facts: Facts, opts: Namespace) -> None:
        if opts.prompt:
            try:
                _print(
                    instructions(
                        site.page(self._agent, url, body=None, facts=facts), opts.prompt, opts.lang
                    )
                )
            except PolicyError as error:
                raise UsageError(str(error), print_help=False) from None
        elif opts.json:
            print(  # noqa: T201
                json.dumps(
                    explain(site, self._agent, url, facts, max_delay=self._max_delay), indent=2
                )
            )
        else:
            show(
                explain(site, self._agent, url, facts, max_delay=self._max_delay),
                open_console(),
                is_full=opts.all,
            )
        decision = site.judge(self._agent, url, facts)
        self.exitcode = (
            UNREACHABLE
            if RULES[decision.reasons[0].rule].is_unreachable
            else EXIT[decision.verdict]
        )

    def _print_ai_txt(self, site: Site, origin: str) -> None:
        url, robots = origin + AI_PATH, site.files.get(f"{origin}/robots.txt")
        if robots and url not in site.files and availability(robots) is Availability.UNREACHABLE:
            # FETCH-13
            complain(
                f"{url}: it was not asked for: robots.txt cannot be fetched:"
                f" {robots.error or f'HTTP status {robots.status}'}"
            )
            self.exitcode = UNREACHABLE
        else:
            self._print_other_form(url, site.files.get(url, Fetched(status=404)))

    def _print_other_form(self, name: str, fetched: Fetched, *, is_xml: bool = False) -> None:
        """Print an ai.txt in its other form. `name`: the name of the file in messages."""
        try:
            form, notes = other_form(name, fetched, is_xml=is_xml)
        except PolicyError as error:
            complain(f"{name}: {error}")
            self.exitcode = UNREACHABLE
            return
        for note in notes:
            complain(note)
        _print(form.decode())

    def _fetch(self, url: str) -> Site | None:
        """Fetch and return the site; None if the crawl could not start, and has logged why."""
        assert self.crawler_process
        crawler = self.crawler_process.create_crawler(PolicySpider)
        self.crawler_process.crawl(crawler, url=url)
        self.crawler_process.start()
        spider = crawler.spider
        return spider.site if isinstance(spider, PolicySpider) else None


def _url(argument: str) -> str:
    try:
        return typed_url(argument)
    except ValueError as error:
        raise UsageError(str(error), print_help=False) from None


def _facts(opts: Namespace) -> Facts:
    if opts.method.upper() not in METHODS:
        raise UsageError(
            f"`{opts.method}` is not an HTTP method: write one of {', '.join(METHODS)}",
            print_help=False,
        )
    return Facts(
        method=opts.method.upper(),
        kinds=tuple(opts.kind or (DOCUMENT,)),
        automations=tuple(opts.automation or ()),
        has_key=opts.key,
        referer=opts.referer,
    )


def _read(origin: str, folder: str, agent: Agent) -> Site:
    # Path has no name for "", and raises if a name is too long.
    if not os.path.isdir(folder):  # noqa: PTH112
        raise UsageError(f"--offline `{folder}` is not a folder", print_help=False)
    for path, place in misplaced_files(Path(folder)).items():
        complain(f"{Path(folder) / path} is not read: crawlers ask for it at {place}")
    try:
        return read_folder(origin, Path(folder), agent)
    except PolicyError as error:
        raise UsageError(str(error), print_help=False) from None


def _is_file(name: str) -> bool:
    return os.path.isfile(name)  # noqa: PTH113  # Path raises if a name is too long


def _octets(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", print_help=False) from None


def _print(text: str) -> None:
    """Print as UTF-8, independent of the terminal's settings.

    A terminal gets no hidden characters."""
    sys.stdout.buffer.write((unhidden(text) if sys.stdout.isatty() else text).encode())
    sys.stdout.buffer.flush()
