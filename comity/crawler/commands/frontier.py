"""`comity frontier`: look at a crawl by several workers, and control it."""

from __future__ import annotations

import asyncio
import json
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from time import monotonic, time
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import Group, RenderableType
from rich.live import Live
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.settings import Settings
from scrapy.spiderloader import get_spider_loader
from scrapy.utils.project import inside_project

from comity.cluster.state import open_state
from comity.crawler.commands import listed
from comity.crawler.commands.base import program_name
from comity.crawler.commands.crawl import READY_SETTINGS
from comity.gate.options import Options
from comity.gate.options.agreement import SPIDER, Agreement
from comity.gate.options.kinds import MAX_PORT
from comity.gate.run.console import add_row, complain, flush_output, line, open_console, say, table
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable
from comity.report import needs
from comity.report.value import ReportError
from comity.report.whole_crawl import totals

if TYPE_CHECKING:
    from comity.cluster.queue import HostStatus
    from comity.cluster.state import CrawlQueue

    _Look = tuple[dict[str, Any], list[HostStatus], list[dict[str, str]]]

RENEW = 2.0  # seconds between two looks
LEAST_HOSTS = 20  # hosts that are looked at for the time that is left
_SHOWN = (
    "waiting",
    "out",
    "set_aside",
    "unreadable",
    "done",
    "filtered",
    "hosts",
    "leased",
    "requests",
    "pages",
    "items",
    "bytes",
    "policy_requests",
    "errors",
    "refused",
    "workers_alive",
    "workers_left",
    "workers_died",
)
ENDED = "crawl_ended"  # finish_reason
STATES = {"pause": "paused", "resume": "running", "end": "ended"}
_AGO = re.compile(r"([0-9]{1,6})([hd])")
_SECONDS = {"h": 3600.0, "d": 24 * 3600.0}
FAILED = 1  # exit status


class FrontierCommand(listed.Frontier):
    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "[options] NAME"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. NAME is its COMITY_CRAWL, or its spider; COMITY_STATE says where"
            " it is. On a terminal the table renews itself until Ctrl-C."
        )

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="print JSON, once")
        parser.add_argument(
            "--metrics",
            type=int,
            metavar="PORT",
            help="serve the counters of the crawl to Prometheus, until Ctrl-C; 0: any free port",
        )
        parser.add_argument("--once", action="store_true", help="do not renew the table")
        parser.add_argument(
            "--hosts",
            type=int,
            default=20,
            metavar="N",
            help="number of hosts in the table (default: %(default)s)",
        )
        action = parser.add_mutually_exclusive_group()
        action.add_argument(
            "--pause",
            action="store_const",
            dest="action",
            const="pause",
            help="hand out no more requests",
        )
        action.add_argument(
            "--resume",
            action="store_const",
            dest="action",
            const="resume",
            help="let a paused crawl go on, and try unreadable requests again",
        )
        action.add_argument(
            "--end",
            action="store_const",
            dest="action",
            const="end",
            help="let all its workers end",
        )
        action.add_argument(
            "--delete",
            action="store_const",
            dest="action",
            const="delete",
            help="delete all of it, once ended",
        )
        action.add_argument(
            "--again",
            action="store_const",
            dest="action",
            const="again",
            help="begin it again, once finished or ended; policies and pace stay known",
        )
        seen = parser.add_mutually_exclusive_group()
        seen.add_argument(
            "--keep-seen",
            action="store_const",
            dest="since",
            const=0.0,
            help="with --again: make only the start requests again, and requests never made before",
        )
        seen.add_argument(
            "--since",
            type=_moment,
            metavar="MOMENT",
            help="with --again: make those requests again too that no run since then has made; a"
            " date, a date and a time (UTC), or a time ago such as 12h or 7d",
        )
        action.add_argument(
            "--reconfigure",
            action="store_const",
            dest="action",
            const="reconfigure",
            help="give the crawl the settings of this project; workers with others end",
        )

    def run(self, args: list[str], opts: Namespace) -> None:
        if len(args) != 1:
            raise UsageError("frontier takes the name of one crawl", print_help=False)
        if opts.since is not None and opts.action != "again":
            raise UsageError("--keep-seen and --since need --again", print_help=False)
        assert self.settings is not None
        try:
            options = Options.from_settings(self.settings)
        except PolicyError as error:
            raise UsageError(str(error), print_help=False) from None
        if not options.state:
            raise UsageError(
                "COMITY_STATE is not set: -s COMITY_STATE=redis://HOST:PORT/DB", print_help=False
            )
        if opts.hosts < 0:
            raise UsageError(
                f"--hosts {opts.hosts}: write a number of at least 0", print_help=False
            )
        if opts.metrics is not None and not 0 <= opts.metrics <= MAX_PORT:
            raise UsageError(
                f"--metrics {opts.metrics}: write a port up to {MAX_PORT}, or 0", print_help=False
            )
        try:
            with suppress(KeyboardInterrupt):
                if opts.action == "reconfigure":
                    if not inside_project():
                        self.settings.setmodule(READY_SETTINGS, priority="project")
                    asyncio.run(_reconfigure(options, args[0], self.settings))
                else:
                    asyncio.run(_run(options, args[0], opts))
            flush_output()
        except (PolicyError, ReportError) as error:
            raise UsageError(str(error), print_help=False) from None
        except OSError as error:
            complain(f"{program_name()} frontier: {error}")
            self.exitcode = FAILED


async def _run(options: Options, name: str, opts: Namespace) -> None:
    state = open_state(options.state, name, options.worker_timeout)
    queue = state.queue()
    try:
        if opts.action == "delete":
            await queue.delete()
            say(f"{name} is deleted")
        elif opts.action == "again":
            await _begin_again(queue, name, opts.since)
        elif opts.action:
            await queue.set_state(STATES[opts.action], ENDED if opts.action == "end" else "")
            say(
                f"{name} is {STATES[opts.action]}: its workers notice within"
                f" {options.worker_timeout / 3:.0f} s"
            )
            if opts.action == "resume":
                await queue.status()  # reads which run it is
                if retried := await queue.retry():
                    say(f"{retried} requests that could not be read wait again")
        elif opts.metrics is not None:
            await _serve(queue, opts)
        elif opts.json:
            status, hosts, unreadable = await _look(queue, opts.hosts)
            lists = {"listed": [asdict(host) for host in hosts], "unreadable_requests": unreadable}
            say(json.dumps({**status, **lists}, indent=2))
        else:
            await _show(queue, opts)
    finally:
        await state.close()


def _moment(text: str) -> float:
    """Return the moment that `--since` names, in seconds since the epoch."""
    if ago := _AGO.fullmatch(text):
        return max(0.0, time() - int(ago[1]) * _SECONDS[ago[2]])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(
            f"`{printable(text)}` is not a moment: write 2026-11-20, 2026-11-20T06:00, 12h or 7d"
        ) from None
    return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


async def _begin_again(queue: CrawlQueue, name: str, since: float | None) -> None:
    """Begin a new run of the crawl. PolicyError: it is neither finished nor ended.

    `since`: as for `CrawlQueue.begin_again`."""
    state = (await queue.status())["state"]
    if state not in ("finished", "ended"):
        raise PolicyError(
            f"{name} is {state}, so it cannot begin again: let it finish, or end it with --end"
        )
    await queue.begin_again(since)
    say(f"{name} begins again: this is run {queue.run}. Start its workers")


async def _reconfigure(options: Options, name: str, settings: Settings) -> None:
    """Give the crawl the settings that its spider has in this project, and print the changes."""
    state = open_state(options.state, name, options.worker_timeout)
    queue = state.queue()
    try:
        before = Agreement.from_json(await queue.settings())
        crawler = Crawler(_spider(before.others[SPIDER], settings), settings)
        crawler.addons.load_settings(crawler.settings)  # as when the spider crawls
        now = Agreement.of(crawler.settings, crawler.spidercls.name)
        decisive, harmless = before.decisive(now), before.harmless(now)
        if decisive or harmless:
            await queue.deploy(now.as_json())
    finally:
        await state.close()
    for changed in decisive + harmless:
        setting, old, new = map(printable, changed)
        say(f"{setting}: `{old}` becomes `{new}`")
    if decisive:
        say(
            f"{name} has new settings: workers that decide differently end within"
            f" {options.worker_timeout / 3:.0f} s, with the status 1. Start them with the new"
            " settings"
        )
    elif harmless:
        say(f"{name} has new settings, by which nothing is decided differently")
    else:
        say(f"{name} has these settings already")


def _spider(name: str, settings: Settings) -> type[Spider]:
    """Return the class of a spider of this project.

    If the project has no such spider, as for `runspider`, the class has only this name."""
    try:
        return get_spider_loader(settings).load(name)
    except KeyError:
        say(f"This project has no spider `{name}`: its custom_settings are not included")
        return type("Unknown", (Spider,), {"name": name})


async def _look(queue: CrawlQueue, most: int) -> _Look:
    """Look at the crawl. `most`: the number of hosts, and of unreadable requests, in the lists."""
    from comity.crawler.frontier.request_bodies import url_of  # it needs the extra

    status = await queue.status()
    status |= totals(status["counts"])
    status["workers_alive"] = sum(seconds < queue.ttl for seconds in status["workers"].values())
    listed = await queue.hosts(max(most, LEAST_HOSTS))
    status["seconds_left"] = await _seconds_left(queue, status, listed)
    requests = await queue.unreadable_requests(most)
    unreadable = [
        {"url": printable(url_of(request.body)), "host": request.host, "why": request.why}
        for request in requests
    ]
    return status, listed[:most], unreadable


async def _seconds_left(
    queue: CrawlQueue, status: dict[str, Any], hosts: list[HostStatus]
) -> float | None:
    """Return about how many seconds the waiting requests take; None: not known.

    It is the longer one of two times: that of the largest host at its pace, and that of all
    requests at the rate of the crawl up to now."""
    if status["finish_reason"]:
        return 0.0
    open_hosts = [host for host in hosts if not host.is_aside]
    pauses = await queue.pauses([host.host for host in open_hosts])
    by_pace = [
        host.waiting * pause for host, pause in zip(open_hosts, pauses, strict=True) if pause
    ]
    rate = status["done_per_second"]
    by_rate = [status["waiting"] / rate] if rate else []
    return max(by_pace + by_rate, default=None)


async def _serve(queue: CrawlQueue, opts: Namespace) -> None:
    """Serve the counters of the crawl to Prometheus until Ctrl-C."""
    needs.check("--metrics", needs.METRICS)
    from comity.report.metrics import CrawlMetrics  # it needs the extra

    status, _, _ = await _look(queue, opts.hosts)
    with CrawlMetrics(status, opts.metrics) as metrics:
        say(f"Metrics are at {metrics.url}")
        flush_output()
        while True:
            await asyncio.sleep(RENEW)
            try:
                metrics.status, _, _ = await _look(queue, opts.hosts)
            except OSError as error:
                complain(f"{program_name()} frontier: {error}")


async def _show(queue: CrawlQueue, opts: Namespace) -> None:
    console = open_console()
    look = await _look(queue, opts.hosts)
    if opts.once or not console.is_terminal:
        console.print(_table(*look, None))
        return
    with Live(_table(*look, None), console=console, auto_refresh=False) as live:
        looked = monotonic()
        while True:
            await asyncio.sleep(RENEW)
            before, look = look, await _look(queue, opts.hosts)
            now = monotonic()
            rate, looked = (look[0]["done"] - before[0]["done"]) / (now - looked), now
            live.update(_table(*look, rate), refresh=True)


def _table(
    status: dict[str, Any],
    hosts: list[HostStatus],
    unreadable: list[dict[str, str]],
    rate: float | None,
) -> Group:
    """Return the tables. `rate`: requests done per second since the last look, or None."""
    crawl = table("", "", "")
    crawl.show_header = False
    for name in _SHOWN:
        add_row(crawl, name.replace("_", " "), f"{status[name]:,}")
    for rule, number in sorted(status["refused_by_rule"].items(), key=lambda pair: -pair[1]):
        add_row(crawl, f"refused by {rule}", f"{number:,}")
    if rate is not None:
        add_row(crawl, "done a second", f"{rate:.1f}")
    add_row(crawl, "done a second, since it began", f"{status['done_per_second']:.1f}")
    if status["seconds_left"]:
        left = timedelta(seconds=round(status["seconds_left"]))
        add_row(crawl, "time that is left, about", str(left))
    workers = table("Workers", "worker", "last sign of life")
    for worker, seconds in status["workers"].items():
        add_row(workers, worker, f"{seconds:.1f} s ago")
    busiest = table("Hosts with the most requests", "host", "waiting", "out", "leased by", "until")
    for host in hosts:
        until = ("set aside, " if host.is_aside else "") + (
            f"{host.seconds:.1f} s" if host.seconds > 0 else "due"
        )
        add_row(busiest, host.host, host.waiting, host.out, host.worker, until)
    reason = status["finish_reason"]
    because = f" ({reason})" if reason not in (None, "finished") else ""
    heading = line(f"Crawl {status['crawl']}: {status['state']}{because}", "bold")
    parts: list[RenderableType] = [heading, crawl, line(""), workers, line(""), busiest]
    if unreadable:
        stopped = table("Requests that could not be read: --resume tries them again", "URL", "why")
        for request in unreadable:
            add_row(stopped, request["url"] or request["host"], request["why"])
        parts += [line(""), stopped]
    return Group(*parts)
