"""Read the policy files and pages of a folder on this machine, or of a site as crawlers see it."""

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

DEFAULT_ORIGIN = "https://example.com"  # of a folder; RFC 2606 reserves it for examples
MAX_PAGES = 1000  # of a folder; further pages are left out, with a note
MAX_NAMES = 50_000  # of files in a folder and its subfolders; the search for pages ends there
PAGE_SUFFIXES = (".html", ".htm", ".xhtml")
# The statuses of final answers: all but redirects.
ANSWERS = [status for status in range(200, 600) if status not in REDIRECTS]


class SourceFile(NamedTuple):
    """A policy file or a page, as it was read or fetched.

    Attributes:
        name: The name that the user sees: the path on this machine, relative to the current folder
            if the user wrote it so, or the URL.
        url: The absolute URL at which the site publishes the file.
        fetched: The answer of the server, or the file on the disk.
    """

    name: str
    url: str
    fetched: Fetched


class Source(NamedTuple):
    """The files and pages of a folder or site.

    Attributes:
        origin: The origin of the site.
        site: The site, from all policy files and the files that they refer to.
        files: The policy files that exist, robots.txt first. Answers with a status other than 404
            count as existing.
        pages: The HTML pages below a folder, or the page at a URL.
        notes: Sentences about files and pages that could not be read or fetched, with the cause.
        reach: The reach of the site's server. It has no meaning for a folder.
        misplaced: The names of policy files that are not read, and their right places in the
            folder.
    """

    origin: str
    site: Site
    files: tuple[SourceFile, ...]
    pages: tuple[SourceFile, ...]
    notes: tuple[str, ...] = ()
    reach: Reach = Reach.PUBLIC
    misplaced: tuple[tuple[str, str], ...] = ()

    @property
    def place_notes(self) -> tuple[str, ...]:
        """The notes about policy files that are not at their place."""
        return tuple(
            f"{name} is not read: crawlers ask for it at {place}" for name, place in self.misplaced
        )

    def name_of(self, url: str) -> str:
        """Return the name of the file or page at this URL, as the user sees it, or else the URL."""
        return next((file.name for file in (*self.files, *self.pages) if file.url == url), url)


def load(target: str, *, origin: str | None = None, referrer_reach: Reach | None = None) -> Source:
    """Read a folder, or fetch the files of a site.

    `target`: the path of a folder, or an http(s) URL.
    `origin`: the origin at which the files of a folder will be published. None means
    DEFAULT_ORIGIN.
    `referrer_reach`: only servers that a site of this reach may lead to are asked. None means any
    server.
    PolicyError: the target is neither folder nor URL, or cannot be read or fetched.

    A site is fetched in an event loop of its own. Call this function in a thread if a loop is
    running."""
    if is_url(target):
        if origin is not None:
            raise PolicyError("a URL has its own origin: leave out --origin")
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
            f"`{printable(os.fsencode(target))}` is not a folder or a URL: {remedy_for(target)}"
        )
    try:
        return _read(folder, origin_of(origin or DEFAULT_ORIGIN), agent_for(target))
    except ValueError as error:
        raise PolicyError(str(error)) from None


def is_url(target: str) -> bool:
    """Return True if a target is a URL, and no folder."""
    scheme, separator, _ = target.partition("://")
    return bool(separator) and scheme.lower() in ("http", "https")


def remedy_for(target: str) -> str:
    """Return what to write instead of a target that is neither a folder nor a URL."""
    return printable(
        (url_remedy(target) or "write https:// before a host").encode("utf-8", "replace")
    )


def agent_for(target: str) -> Agent:
    """Return the agent that reads a target.

    A site is read with the settings of the project, a folder with the default agent.

    PolicyError: the settings of the project cannot be used."""
    return Options.from_settings(_settings()).agent if is_url(target) else Agent(DEFAULT_AGENT)


def _settings() -> Settings:
    module = os.environ.get(ENVVAR)
    try:
        settings = get_project_settings()
    except Exception as error:
        reason = printable(f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
        name = os.environ.get(ENVVAR, "scrapy.cfg")
        raise PolicyError(
            f"the settings of this project ({name}) cannot be used: {reason}. "
            "Mend them, or call the command elsewhere."
        ) from None
    finally:
        # Scrapy has set the variable. Every program that this process starts would use the project.
        if module is None:
            os.environ.pop(ENVVAR, None)
    settings.setdict(
        {
            "COMITY_ELEMENTS": "tag",  # the page is needed as the server sent it
            "COMITY_GC": False,  # the process may belong to an editor
            "COMITY_SKIP_UNUSABLE": False,  # the page is explained, not used
            "DOWNLOAD_HANDLERS": {},
            # A reactor starts once only, and only in the main thread.
            "TWISTED_REACTOR_ENABLED": False,
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
        origin,
        site,
        _sort_robots_first(origin, files),
        tuple(pages),
        tuple(notes),
        misplaced=misplaced,
    )


def _page_paths(folder: Path, notes: list[str]) -> Iterator[str]:
    """Yield the paths of pages in alphabetical order, with slashes.

    Names that begin with a dot are skipped: servers do not publish them. Add a note if not all
    folders were searched."""
    count = 0
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(PAGE_SUFFIXES) and not name.startswith("."):
                yield (Path(root) / name).relative_to(folder).as_posix()
        count += len(names)
        if count > MAX_NAMES:
            notes.append(
                f"{folder} has more files than {MAX_NAMES}: "
                "the pages in some of its folders were not read"
            )
            return


def _sort_robots_first(origin: str, files: Iterable[SourceFile]) -> tuple[SourceFile, ...]:
    return tuple(sorted(files, key=lambda file: file.url != f"{origin}/robots.txt"))


# ---- sites


class PageSpider(PolicySpider):
    """Fetch the current policies of one site, and one page if they permit it."""

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
        crawl.policies.renew_before = time.time()  # the publisher has just changed the files
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
                self.url,
                meta=meta,
                callback=self.parse,
                errback=self.note_failure,
                dont_filter=True,
            )
        else:
            when = f" until {decision.not_before:%Y-%m-%d %H:%M} UTC" if decision.not_before else ""
            citation = _citation(decision.reasons[0].source)
            self.notes.append(
                f"{self.url} was not fetched: it is refused to {crawl.agent.token}{when} "
                f"by {citation}"
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

    def note_failure(self, failure: Any) -> None:
        reason = (
            printable(str(failure.value).encode("utf-8", "replace")) or type(failure.value).__name__
        )
        self.notes.append(f"{self.url} could not be fetched: {reason}")


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
    # Raise PolicyError before the crawl if its store cannot be used.
    PolicyStore(Options.from_settings(settings).store).close()
    logging.basicConfig(level=logging.ERROR)  # no effect if the program has a log of its own
    spider = asyncio.run(_crawl(url, referrer_reach, settings))
    if spider is None or spider.policies is None:
        raise PolicyError(f"the policies of {origin} cannot be fetched: the crawl did not start")
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
        origin,
        site,
        _sort_robots_first(origin, files),
        pages,
        tuple(spider.notes),
        policies.server_reach,
    )


async def _crawl(url: str, referrer_reach: Reach | None, settings: Settings) -> PageSpider | None:
    crawler = AsyncCrawlerRunner(settings).create_crawler(PageSpider)
    await crawler.crawl_async(url=url, referrer_reach=referrer_reach)
    return crawler.spider if isinstance(crawler.spider, PageSpider) else None
