"""Reads the policy files and pages that a publisher names: a folder on this machine, or a site as a crawler has it."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote, urlsplit

from scrapy.crawler import AsyncCrawlerRunner
from scrapy.http import Request, Response
from scrapy.settings import Settings
from scrapy.utils.project import ENVVAR, get_project_settings

from comity.crawler.crawl import Crawl
from comity.crawler.sites.sources import (
    PolicySpider,
    misplaced_files,
    missing_host,
    path_in_folder,
    read_file,
    read_folder,
)
from comity.gate.fetching.reach import Reach
from comity.gate.fetching.redirects import REDIRECTS
from comity.gate.fetching.store import PolicyStore
from comity.gate.options import DEFAULT_AGENT, Options
from comity.gate.request.referrals import KEY as REFERRAL
from comity.policies import Agent, Fetched, PolicyError, Site, Verdict
from comity.policies.answers.decision import Source as ReasonSource
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_of, typed_url, url_remedy

DEFAULT_ORIGIN = "https://example.com"  # of a folder; RFC 2606 keeps it for examples
MAX_PAGES = 1000  # of a folder; those after them are left out, with a note
MAX_NAMES = 50_000  # of files in a folder and its folders, among which pages are searched
PAGE_SUFFIXES = (".html", ".htm", ".xhtml")
ANSWERS = [
    status for status in range(200, 600) if status not in REDIRECTS
]  # statuses with which the way to a page ends


class SourceFile(NamedTuple):
    """A policy file or a page that was had."""

    name: str  # as it is shown to the user: the path on this machine, relative as given, or the URL
    url: str  # absolute, at which the site has it
    fetched: Fetched


class Source(NamedTuple):
    """The files and pages that were had of what a publisher named."""

    origin: str
    site: Site  # of all policy files that were had, with what they refer to
    files: tuple[
        SourceFile, ...
    ]  # policy files that are there, or came back with anything but 404; robots.txt first
    pages: tuple[SourceFile, ...]  # of a folder the HTML pages below it, of a URL that page
    notes: tuple[str, ...] = ()  # what could not be had, and why
    reach: Reach = Reach.PUBLIC  # of the site's server; of a folder it does not matter
    misplaced: tuple[
        tuple[str, str], ...
    ] = ()  # names of policy files that are not read, and their places in the folder

    @property
    def place_notes(self) -> tuple[str, ...]:
        """The notes on policy files that are not at their place."""
        return tuple(
            f"{name} is not read: crawlers ask for it at {place}" for name, place in self.misplaced
        )

    def name_of(self, url: str) -> str:
        """Return the name by which the user knows the file or page of this URL."""
        return next((file.name for file in (*self.files, *self.pages) if file.url == url), url)


def load(target: str, *, origin: str | None = None, referrer_reach: Reach | None = None) -> Source:
    """Return what is there of a folder, or of a site by an http(s) URL. PolicyError where it is neither, or cannot be read.

    `origin`: of a folder, where its files are to be published. `referrer_reach`: a site is asked where one of this reach may
    lead, and nowhere else; None: anywhere. It is asked in a loop of its own: who has a loop that runs calls this in a thread."""
    if is_url(target):
        if origin is not None:
            raise PolicyError("an origin is given for a folder: a URL has its own")
        return _fetch(target, referrer_reach)
    folder = Path(target)
    try:
        is_file, is_folder = folder.is_file(), folder.is_dir()
    except OSError as error:
        raise PolicyError(
            f"`{printable(os.fsencode(target))}` cannot be read: {error.strerror}"
        ) from None
    if is_file:
        raise PolicyError(
            f"`{printable(os.fsencode(target))}` is a file: name the folder that it is in, or a URL"
        )
    if not is_folder:
        raise PolicyError(
            f"`{printable(os.fsencode(target))}` is no folder, and no URL: {remedy_for(target)}"
        )
    try:
        return _read(folder, origin_of(origin or DEFAULT_ORIGIN), agent_for(target))
    except ValueError as error:
        raise PolicyError(str(error)) from None


def is_url(target: str) -> bool:
    """Return whether a site is meant, and no folder."""
    scheme, separator, _ = target.partition("://")
    return bool(separator) and scheme.lower() in ("http", "https")


def remedy_for(target: str) -> str:
    """Return what to write instead of a target that is neither a folder nor a URL."""
    return printable(
        (url_remedy(target) or "write https:// before a host").encode("utf-8", "replace")
    )


def agent_for(target: str) -> Agent:
    """Return comity's agent. A site is asked with the settings of the project, a folder is read with the default ones.

    PolicyError where the settings of the project cannot be used."""
    return Options.from_settings(_settings()).agent if is_url(target) else Agent(DEFAULT_AGENT)


def _settings() -> Settings:
    module = os.environ.get(ENVVAR)
    try:
        settings = get_project_settings()
    except Exception as error:
        reason = printable(f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
        name = os.environ.get(ENVVAR, "scrapy.cfg")
        raise PolicyError(
            f"the settings of this project ({name}) cannot be used: {reason}. Mend them, or call the command elsewhere."
        ) from None
    finally:
        if (
            module is None
        ):  # which Scrapy has written there: it would be the project of every program that this one starts
            os.environ.pop(ENVVAR, None)
    settings.setdict(
        {
            "COMITY_ELEMENTS": "tag",  # the page as it came
            "COMITY_GC": False,  # an editor may be in this process
            "COMITY_SKIP_UNUSABLE": False,  # the page is looked at, and not used
            "DOWNLOAD_HANDLERS": {},
            "TWISTED_REACTOR_ENABLED": False,  # which cannot be started twice, nor anywhere but in the main thread
        },
        priority="cmdline",
    )
    return settings


# ---- folders


def _read(folder: Path, origin: str, agent: Agent) -> Source:
    site = read_folder(origin, folder, agent)
    names = {url: str(folder / path_in_folder(origin, url).lstrip("/")) for url in site.files}
    notes: list[str] = []
    pages: list[SourceFile] = []
    for path in _page_paths(folder, notes):
        if len(pages) == MAX_PAGES:
            notes.append(f"{folder} has more pages than {MAX_PAGES}: the others were not read")
            break
        if page := read_file(folder, path):
            pages.append(
                SourceFile(str(folder / path), f"{origin}/{quote(os.fsencode(path))}", page)
            )
    files = (
        SourceFile(names[url], url, fetched)
        for url, fetched in site.files.items()
        if fetched.status != 404
    )
    misplaced = tuple(
        (str(folder / path), place) for path, place in misplaced_files(folder).items()
    )
    return Source(
        origin, site, _sorted(origin, files), tuple(pages), tuple(notes), misplaced=misplaced
    )


def _page_paths(folder: Path, notes: list[str]) -> Iterator[str]:
    """Yield the paths of pages in their order, with slashes. Add a note if not all folders were searched.

    Names that begin with a dot are hidden: they are not published."""
    count = 0
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(PAGE_SUFFIXES) and not name.startswith("."):
                yield (Path(root) / name).relative_to(folder).as_posix()
        count += len(names)
        if count > MAX_NAMES:
            notes.append(
                f"{folder} has more files than {MAX_NAMES}: the pages in some of its folders were not read"
            )
            return


def _sorted(origin: str, files: Iterable[SourceFile]) -> tuple[SourceFile, ...]:
    return tuple(sorted(files, key=lambda file: file.url != f"{origin}/robots.txt"))


# ---- sites


class PageSpider(PolicySpider):
    """Fetches the policies of one site anew, and one page where they let it."""

    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        **PolicySpider.custom_settings,
        "DOWNLOAD_HANDLERS": {},
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.page: SourceFile | None = None
        self.notes: list[str] = []

    async def start(self) -> AsyncIterator[Any]:
        crawl = Crawl.of(self.crawler)
        crawl.policies.renew_before = time.time()  # who publishes has just changed them
        async for request in super().start():
            yield request
        if self.site is None:
            return
        decision = self.site.access(crawl.agent, self.url)
        if decision.verdict is Verdict.ALLOW:
            meta: dict[str, Any] = {"handle_httpstatus_list": ANSWERS, "dont_retry": True}
            if self.referrer_reach is not None:
                meta[REFERRAL] = self.referrer_reach.value
            yield Request(
                self.url, meta=meta, callback=self.parse, errback=self.failed, dont_filter=True
            )
        else:
            when = f" until {decision.not_before:%Y-%m-%d %H:%M} UTC" if decision.not_before else ""
            citation = _citation(decision.reasons[0].source)
            self.notes.append(
                f"{self.url} was not asked for: it is refused to {crawl.agent.token}{when} by {citation}"
            )

    def parse(self, response: Response, **kwargs: Any) -> None:
        fields = tuple(
            (name, value) for name, values in response.headers.items() for value in values
        )
        page = Fetched(
            status=response.status,
            headers=fields,
            body=response.body,
            url=response.url,
            fetched_at=datetime.now(UTC),
        )
        self.page = SourceFile(self.url, self.url, page)

    def failed(self, failure: Any) -> None:
        reason = (
            printable(str(failure.value).encode("utf-8", "replace")) or type(failure.value).__name__
        )
        self.notes.append(f"{self.url} could not be had: {reason}")


def _citation(source: ReasonSource) -> str:
    position = f"{source.url}:{source.line}" if source.line else source.url
    return f"{position}: {source.text}" if source.text else position


def _fetch(url: str, referrer_reach: Reach | None) -> Source:
    try:
        origin = origin_of(typed_url(url))
    except ValueError as error:
        raise PolicyError(str(error)) from None
    if not urlsplit(url).path:
        url += "/"
    settings = _settings()
    PolicyStore(
        Options.from_settings(settings).store
    ).close()  # PolicyError where it cannot be used
    logging.basicConfig(level=logging.ERROR)  # nothing, where the program has a log of its own
    spider = asyncio.run(_crawl(url, referrer_reach, settings))
    if spider is None or spider.policies is None:
        raise PolicyError(f"the policies of {origin} cannot be had: the crawl did not start")
    policies = spider.policies
    if policies.barred_for is not None:
        raise PolicyError(f"{origin} may not be asked: {policies.error}")
    site = policies.site
    if problem := missing_host(site):
        raise PolicyError(problem)
    files = (
        SourceFile(of_url, of_url, fetched)
        for of_url, fetched in site.files.items()
        if fetched.status != 404
    )
    pages = (spider.page,) if spider.page else ()
    return Source(
        origin, site, _sorted(origin, files), pages, tuple(spider.notes), policies.server_reach
    )


async def _crawl(url: str, referrer_reach: Reach | None, settings: Settings) -> PageSpider | None:
    crawler = AsyncCrawlerRunner(settings).create_crawler(PageSpider)
    await crawler.crawl_async(url=url, referrer_reach=referrer_reach)
    return crawler.spider if isinstance(crawler.spider, PageSpider) else None
