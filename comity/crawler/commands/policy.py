"""`scrapy policy URL`: what the policies of a site say of one URL, and which line of which file says it."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table
from rich.text import Text
from scrapy import Spider
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from comity.crawler.fetcher import ClosingError
from comity.crawler.options import ASYNCIO_REACTOR, Options
from comity.crawler.runtime import Runtime
from comity.policies import Agent, Fetched, PolicyError, Reason, Site, Verdict
from comity.policies.qualifiers import written
from comity.policies.requests import DOCUMENT, KINDS, PLAIN, Facts
from comity.policies.site import WELL_KNOWN
from comity.policies.text import printable
from comity.policies.urls import origin_of, target_of

EXIT = {Verdict.ALLOW: 0, Verdict.DENY: 1, Verdict.DEFER: 1}
UNREACHABLE = 2
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")


class Command(ScrapyCommand):
    requires_project = False
    default_settings: ClassVar[dict[str, Any]] = {"ADDONS": {"comity.crawler.addon.Addon": 100}}

    def syntax(self) -> str:
        return "[options] <url>"

    def short_desc(self) -> str:
        return "Explain what a site's policies say of a URL"

    def long_desc(self) -> str:
        return f"{self.short_desc()}. Exit status: 0 allowed, 1 refused, 2 wrong usage or policies unreachable."

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--agent", help="product token of the crawler (default: COMITY_AGENT)")
        parser.add_argument("--purpose", action="append", metavar="P", help="purpose of the crawl; may be repeated")
        parser.add_argument("--use", action="append", metavar="U", help="what will be done with the content; may be repeated")
        parser.add_argument("--method", default="GET", help="HTTP method of the request (default: %(default)s)")
        parser.add_argument("--kind", action="append", choices=KINDS, help="kind of request (default: document); may be repeated")
        parser.add_argument(
            "--automation", action="append", metavar="T", help="tool that makes the request, e.g. headless; may be repeated"
        )
        parser.add_argument("--key", action="store_true", help="the request carries a key")
        parser.add_argument("--referer", metavar="URL", help="page from which the request is made")
        parser.add_argument("--offline", metavar="DIR", help="read the policy files in DIR instead of asking the site")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def process_options(self, args: list[str], opts: Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        given = {"COMITY_AGENT": opts.agent, "COMITY_PURPOSES": opts.purpose, "COMITY_USES": opts.use}
        self.settings.setdict({name: value for name, value in given.items() if value}, priority="cmdline")
        if not (opts.loglevel or opts.logfile):
            self.settings.set("LOG_LEVEL", "ERROR", priority="cmdline")
        self.settings.set("TWISTED_REACTOR", ASYNCIO_REACTOR, priority="cmdline")  # whatever reactor the project's crawls use
        try:
            self._agent = Options.from_settings(self.settings).agent
        except PolicyError as error:
            raise UsageError(str(error), print_help=False) from None

    def run(self, args: list[str], opts: Namespace) -> None:
        if len(args) != 1:
            raise UsageError("policy takes one URL", print_help=False)
        url = args[0] if "://" in args[0] else f"https://{args[0]}"
        if opts.method.upper() not in METHODS:
            raise UsageError(f"`{opts.method}` is no HTTP method", print_help=False)
        try:
            origin = origin_of(url)
        except ValueError as error:
            raise UsageError(str(error), print_help=False) from None
        site = _read(origin, Path(opts.offline), self._agent) if opts.offline else self._fetch(url)
        if site is None:
            self.exitcode = UNREACHABLE
            return
        facts = Facts(
            method=opts.method.upper(),
            kinds=tuple(opts.kind or (DOCUMENT,)),
            automations=tuple(opts.automation or ()),
            has_key=opts.key,
            referer=opts.referer,
        )
        explanation = explain(site, self._agent, url, facts)
        if opts.json:
            print(json.dumps(explanation, indent=2))  # noqa: T201
        else:
            show(explanation, Console())
        decision = site.judge(self._agent, url, facts)
        self.exitcode = UNREACHABLE if decision.reasons[0].rule.endswith("unreachable") else EXIT[decision.verdict]

    def _fetch(self, url: str) -> Site | None:
        """None where the crawl could not even start; it has said why."""
        assert self.crawler_process
        crawler = self.crawler_process.create_crawler(PolicySpider)
        self.crawler_process.crawl(crawler, url=url)
        self.crawler_process.start()
        spider = crawler.spider
        return spider.site if isinstance(spider, PolicySpider) else None


class PolicySpider(Spider):
    """Fetches the policies of one site, and no page."""

    name = "policy"
    # Whatever the project does with pages and items is not wanted here.
    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]  # Scrapy reads it from the class only
        "ADDONS": {"comity.crawler.addon.Addon": 100},
        "EXTENSIONS": {},
        "FEEDS": {},
        "ITEM_PIPELINES": {},
        "JOBDIR": None,
        "SPIDER_MIDDLEWARES": {},
    }
    url: str
    site: Site | None = None

    async def start(self) -> AsyncIterator[Any]:
        runtime = Runtime.of(self.crawler)
        runtime.actions.wanted = False
        try:
            self.site = await runtime.site(self.url)
        except ClosingError:  # Ctrl-C
            return
        if False:  # what makes it a generator
            yield


def _read(origin: str, folder: Path, agent: Agent) -> Site:
    """The policies in a folder, under the paths that they have on a site; what is not there, the site has not.

    A file of another host stands in a folder with the name of the host. A file that robots.txt refers to cannot be had where it
    is not there."""
    if not folder.is_dir():
        raise UsageError(f"--offline `{folder}` is no folder", print_help=False)
    files = {path: file for path in WELL_KNOWN if (file := _offline(folder, path))}
    given = Site.from_files(origin, files)
    for url in (*given.references(agent), *given.licenses(agent)):
        path = target_of(url) if origin_of(url) == origin else f"/{urlsplit(url).netloc}{target_of(url)}"
        if file := _offline(folder, path):
            files[url] = file
    return Site.from_files(origin, files)


def _offline(folder: Path, path: str) -> Fetched | None:
    file = folder / path.lstrip("/")
    try:
        if not file.resolve().is_relative_to(folder.resolve()) or not file.is_file():
            return None
        changed = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        return Fetched(status=200, body=file.read_bytes(), fetched_at=changed)
    except ValueError:  # no path
        return None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", print_help=False) from None


def explain(site: Site, agent: Agent, url: str, facts: Facts = PLAIN) -> dict[str, Any]:
    """Everything that is known of a request for the URL, as JSON holds it."""
    decision = site.judge(agent, url, facts)
    page = site.page(agent, url, facts=facts)
    rules, limits = site.rates(agent), site.limits(agent, url)
    return {
        "url": url,
        "agent": agent.token,
        "verdict": decision.verdict.value,
        "not_before": decision.not_before.isoformat() if decision.not_before else None,
        "reasons": _reasons(decision.reasons),
        "overruled": _reasons(reason for reason in site.considered(agent, url, facts) if reason not in decision.reasons),
        "uses": {
            use: {"verdict": answer.verdict.value, "stated": answer.stated, "reasons": _reasons(answer.reasons)} | written(answer)
            for use, answer in page.uses.items()
        },
        "rates": {
            "crawl_delay": rules.crawl_delay if rules else None,
            "request_rates": [_rate(rate) for rate in rules.request_rates] if rules else [],
            "visit_time": rules.visit_time.text if rules and rules.visit_time else None,
            "request_limits": [_rate(window) for window in limits.windows] if limits else [],
            "concurrent_limit": limits.concurrent if limits else None,
        },
        "requests": [
            {"action": request.action, "url": request.url, "arranged": request.arranged, "reasons": _reasons([request.reason])}
            for request in site.requests(agent)
        ],
        "sitemaps": list(site.sitemaps),
        "findings": [
            {"rule": finding.rule, "message": finding.message, "url": finding.url, "line": finding.line, "column": finding.column}
            for finding in site.findings
        ],
        "policies": site.policies,
    }


def _rate(rate: Any) -> dict[str, Any]:
    hours = f"{rate.start:%H:%M}-{rate.end:%H:%M}" if rate.start and rate.end else None
    return {"requests": rate.requests, "seconds": rate.seconds, "hours": hours}


def _reasons(reasons: Iterable[Reason]) -> list[dict[str, Any]]:
    return [
        {
            "rule": reason.rule,
            "spec": reason.spec,
            "url": reason.source.url,
            "part": reason.source.part,
            "line": reason.source.line,
            "text": reason.source.text,
            "sha256": reason.source.sha256,
            "fetched_at": reason.source.fetched_at.isoformat() if reason.source.fetched_at else None,
        }
        for reason in reasons
    ]


COLORS = {"allow": "green", "deny": "red", "defer": "yellow"}


def show(explanation: dict[str, Any], console: Console) -> None:
    """The explanation for people. Nothing in it is taken for markup."""
    verdict = explanation["verdict"]
    until = f" until {explanation['not_before']}" if explanation["not_before"] else ""
    headline = Text.assemble((verdict.upper(), f"bold {COLORS[verdict]}"), f"{until}  {_shown(explanation['url'])}")
    console.print(headline.append(f"  for {explanation['agent']}"))
    for reason in explanation["reasons"]:
        console.print(Text(f"{reason['rule']} ({reason['spec']})"))
        if reason["text"]:
            console.print(Text(f"{_place(reason)}: {reason['text']}"))
    console.print()
    if explanation["overruled"]:
        table = _table("Rules that match too, and lose", "rule", "where", "line")
        for lost in explanation["overruled"]:
            table.add_row(Text(lost["rule"]), Text(_place(lost)), Text(lost["text"]))
        console.print(table)
    table = _table("What may be done with it", "use", "verdict", "limits", "where", "why")
    for use, answer in explanation["uses"].items():
        first = True
        for because in answer["reasons"] if answer["stated"] else answer["reasons"][:1]:  # the first decided
            why = because["text"] or because["rule"] if answer["stated"] else f"not stated: {because['text']}"
            where = _place(because).removeprefix(origin_of(explanation["url"])) if because["line"] else ""
            shown = (Text(use), Text(answer["verdict"], COLORS[answer["verdict"]]), Text(_limits(answer))) if first else ("",) * 3
            table.add_row(*shown, Text(where), Text(why))
            first = False
    console.print(table)
    if explanation["requests"]:
        table = _table("What the site asks to be done", "action", "url", "arranged", "where")
        for request in explanation["requests"]:
            where = _place(request["reasons"][0]).removeprefix(origin_of(explanation["url"]))
            table.add_row(request["action"], Text(_shown(request["url"])), "yes" if request["arranged"] else "no", Text(where))
        console.print(table)
    asked = explanation["rates"]
    rates = [
        ("Crawl-delay", asked["crawl_delay"]),
        *(("Request-rate", rate) for rate in asked["request_rates"]),
        ("Visit-time", asked["visit_time"]),
        *(("request-limit", rate) for rate in asked["request_limits"]),
        ("concurrent-limit", asked["concurrent_limit"]),
    ]
    rates = [(name, value) for name, value in rates if value is not None]
    if rates:
        table = _table("How often", "asked", "value")
        for name, value in rates:
            table.add_row(name, Text(_value(value)))
        console.print(table)
    table = _table("Files", "file", "status", "sha256")
    for url, file in explanation["policies"].items():
        table.add_row(Text(url), str(file["status"] or "none"), (file["sha256"] or "")[:16])
    console.print(table)
    if explanation["findings"]:
        table = _table("Findings", "where", "rule", "what")
        for finding in explanation["findings"]:
            where = _place(finding).removeprefix(origin_of(explanation["url"]))
            table.add_row(Text(where), finding["rule"], Text(finding["message"]))
        console.print(table)


def _table(title: str, *columns: str) -> Table:
    table = Table(*columns, title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for column in table.columns:
        column.overflow = "fold"
    return table


def _place(reason: dict[str, Any]) -> str:
    return f"{reason['url']}:{reason['line']}" if reason["line"] else str(reason["url"])


def _limits(answer: dict[str, Any]) -> str:
    """What restricts a permitted use, e.g. "max_words 12"."""
    return ", ".join(
        name if value is True else f"{name} {_listed(value)}"
        for name, value in answer.items()
        if name not in ("verdict", "stated", "reasons")
    )


def _listed(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    named = (f"{one['role']} {one['extract'] or one['url']}".strip() if isinstance(one, dict) else one for one in value)
    return " ".join(map(_shown, named))


def _value(value: Any) -> str:
    if isinstance(value, dict):
        hours = f", {value['hours']} UTC" if value["hours"] else ""
        return f"{value['requests']} requests in {value['seconds']} s{hours}"
    return f"{value:g} s between requests" if isinstance(value, float) else str(value)


def _shown(url: str) -> str:
    return printable(url.encode("utf-8", "replace"))
