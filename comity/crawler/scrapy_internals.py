"""All uses of private names of Scrapy's engine, downloader and components.

The private names, and what comity does with a version of Scrapy that lacks them:

    engine._slot.nextcall       The engine is woken with a request that the scheduler drops.
    engine._slot.closing        `closing` is True only once the engine has stopped.
    engine._slot.inprogress     There is no JOBDIR.
    engine.scraper.itemproc.middlewares
                                Files are fetched even if their page refuses it, with a warning.
    _get_uri_params, _start_new_batch, _close_slot of the feed exporter
                                A crawl with feeds in parts ends.
    _split_domain of the cookie middleware
                                It fetches the public suffix list over the network.
    _get_handler, _pool, _session of download handlers
                                They may send a request again without waiting.
    _urlparse_cache             HTTP/2 requests lose the part of the URL after `;`.

The names that differ between versions of Scrapy:

    get_serialized_fields of item exporters
                                Up to 2.17 it is private, with `_` before it.
    apply_uri_params of the feed exporter
                                Up to 2.17 `%` is used instead.

slots.py has the names of the downloader's slots. No other module may use private names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from operator import mod
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy.downloadermiddlewares import cookies
from scrapy.exporters import BaseItemExporter
from scrapy.extensions import feedexport
from scrapy.extensions.feedexport import FeedExporter, FeedSlot
from scrapy.http import Request, Response
from scrapy.utils import httpobj
from scrapy.utils.httpobj import urlparse_cached
from tldextract import TLDExtract

from comity.gate.run.surroundings import Stats
from comity.policies import PolicyError

if TYPE_CHECKING:
    from scrapy.core.downloader import Downloader
    from scrapy.core.engine import ExecutionEngine
    from scrapy.core.scheduler import BaseScheduler
    from scrapy.crawler import Crawler

# The scheduler recognises this object, and drops it.
WAKE = Request("data:,wake", dont_filter=True, meta={"allow_offsite": True})


UNANSWERED = (
    "ResponseNeverReceived",
    "RequestTransmissionFailed",
    "ServerDisconnectedError",
    "UnansweredError",
    "ClientOSError",
)

_VERBATIM = "verbatim_url"  # key of request.meta


def engine_of(crawler: Crawler) -> ExecutionEngine | None:
    """Return the engine; None before the crawl begins, as in tests of single components.

    Scrapy raises a RuntimeError then."""
    try:
        return crawler.engine
    except RuntimeError:
        return None


def downloader_of(crawler: Crawler) -> Downloader | None:
    """Return the downloader; None before the crawl begins."""
    engine = engine_of(crawler)
    return engine.downloader if engine is not None else None


def wake(crawler: Crawler) -> None:
    """Make the engine ask the scheduler for requests in the next turn of the loop.

    Otherwise up to 5 seconds may pass, because the engine asks every 5 seconds."""
    engine = engine_of(crawler)
    if engine is None or engine.spider is None:
        return
    nextcall = getattr(getattr(engine, "_slot", None), "nextcall", None)
    if nextcall is not None:
        nextcall.schedule()
    else:
        engine.crawl(WAKE)


def closing(crawler: Crawler) -> bool:
    """Return True if the crawl is ending, or has not begun. A new request might never end then.

    Scrapy has no signal for the beginning of the end."""
    engine = engine_of(crawler)
    if engine is None or engine.spider is None:
        return True
    slot = getattr(engine, "_slot", None)
    return (
        slot.closing is not None
        if slot is not None and hasattr(slot, "closing")
        else not engine.running
    )


_ending: set[asyncio.Task[None]] = set()  # keeps the tasks from being collected as garbage


def end(crawler: Crawler, reason: str, *, is_complete: bool = True) -> None:
    """Let the crawl end when its current requests are done. `reason`: its finish_reason.

    `is_complete`: False if something is missing. Then `scrapy crawl` and `scrapy runspider` end
    with an exit status other than 0."""
    engine = engine_of(crawler)
    if engine is None or engine.spider is None:
        return
    if not is_complete:
        vars(engine.spider)["comity_is_complete"] = False
    if not closing(crawler):
        task = asyncio.create_task(engine.close_spider_async(reason=reason))
        _ending.add(task)
        task.add_done_callback(_ending.discard)


def scheduler_of(crawler: Crawler) -> BaseScheduler | None:
    """Return the scheduler; None before the spider is opened, or if Scrapy does not show it."""
    scheduler: BaseScheduler | None = getattr(
        getattr(engine_of(crawler), "_slot", None), "scheduler", None
    )
    return scheduler


def in_downloader(crawler: Crawler) -> Container[Request]:
    """Return the requests that are in the downloader middlewares or on the network."""
    downloader = downloader_of(crawler)
    return downloader.active if downloader else ()


def guard_downloads(
    crawler: Crawler,
    guard: Callable[[Request, Callable[[], Awaitable[Response]]], Awaitable[Response]],
) -> None:
    """Let `guard` call each download of the crawl. It is given the request and the download."""
    downloader = downloader_of(crawler)
    if downloader is None:
        return
    handlers = downloader.handlers
    download = handlers.download_request_async
    once: set[str] = set()  # schemes of handlers that send each request once

    async def download_guarded(request: Request) -> Response:
        scheme = urlparse_cached(request).scheme
        if scheme not in once:
            once.add(scheme)
            _send_once(getattr(handlers, "_get_handler", lambda _: None)(scheme))
        return await guard(request, partial(download, request))

    downloader.handlers.download_request_async = download_guarded  # type: ignore[method-assign]


def _send_once(handler: Any) -> None:
    """Let a download handler send each request once.

    Scrapy's handlers for HTTP/1.1 send a request again at once if a connection that was used before
    ends without an answer. The server may have read it, and then sees two requests where the pace
    permits one."""
    if hasattr(pool := getattr(handler, "_pool", None), "retryAutomatically"):
        vars(pool)["retryAutomatically"] = False
    if hasattr(session := getattr(handler, "_session", None), "_retry_connection"):
        vars(session)["_retry_connection"] = False


def is_unanswered(request: Request, error: Exception) -> bool:
    """Return True if a connection took the request, gave no answer, and it may be sent again.

    Scrapy's handlers would send it again after these errors. They are compared by name, because
    not every handler is installed."""
    return request.method in ("GET", "HEAD") and type(error.__cause__).__name__ in UNANSWERED


class UrlAsJudged:
    """A context in which download handlers send the URL of a request as it is.

    Otherwise Scrapy's handler for aiohttp writes it anew: `%2F` in a query becomes `/`, which is
    another target for patterns. The handler for HTTP/2 leaves out the part after `;` in the last
    segment."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def __enter__(self) -> None:
        request = self._request
        if ";" in request.url and hasattr(httpobj, "_urlparse_cache"):
            httpobj._urlparse_cache[request] = urlparse_cached(request)._replace(
                path=urlsplit(request.url).path, params=""
            )
        self._meta = meta = request.meta
        self._before = meta.get(_VERBATIM)
        meta[_VERBATIM] = True

    def __exit__(self, *_: object) -> None:
        if self._before is None:
            self._meta.pop(_VERBATIM, None)
        else:
            self._meta[_VERBATIM] = self._before


class Fields:
    """A context in which a request has more header fields, in place of its own of their names."""

    def __init__(self, request: Request, fields: Mapping[str, str]) -> None:
        self._headers = request.headers
        self._fields = fields

    def __enter__(self) -> None:
        self._before = {name: self._headers.getlist(name) for name in self._fields}
        for name, value in self._fields.items():
            self._headers[name] = value.encode("latin-1")

    def __exit__(self, *_: object) -> None:
        for name, values in self._before.items():
            if values:
                self._headers[name] = values
            else:
                self._headers.pop(name, None)


def in_progress(crawler: Crawler) -> Container[Request]:
    """Return the requests whose callbacks, items and errbacks have not all ended.

    PolicyError: Scrapy does not show them."""
    slot = getattr(engine_of(crawler), "_slot", None)
    inprogress: Container[Request] | None = getattr(slot, "inprogress", None)
    if inprogress is None:
        raise PolicyError("JOBDIR: this version of Scrapy does not show which requests are done")
    return inprogress


def item_pipelines(crawler: Crawler) -> Iterable[object]:
    """Return the item pipelines of the crawl in their order; none if Scrapy does not show them."""
    scraper = getattr(engine_of(crawler), "scraper", None)
    pipelines: Iterable[object] = getattr(getattr(scraper, "itemproc", None), "middlewares", ())
    return pipelines


def feed_exporter(crawler: Crawler) -> FeedExporter | None:
    """Return the extension that writes the feeds; None if there are no feeds, or not yet."""
    try:
        return crawler.get_extension(FeedExporter)
    except RuntimeError:
        return None


def next_batch(exporter: FeedExporter, slot: FeedSlot) -> asyncio.Task[None]:
    """Let the next items of a feed go to another file, and return the closing of the current file.

    If the file cannot be stored, Scrapy logs it and counts it in `feedexport/failed_count/...`."""
    parameters = exporter._get_uri_params(slot.spider, slot.feed_options["uri_params"], slot)
    exporter.slots[exporter.slots.index(slot)] = exporter._start_new_batch(
        batch_id=slot.batch_id + 1,
        uri=_fill_in(slot.uri_template, parameters),
        feed_options=slot.feed_options,
        spider=slot.spider,
        uri_template=slot.uri_template,
    )
    return asyncio.create_task(exporter._close_slot(slot, slot.spider))


_fill_in: Callable[[str, dict[str, Any]], str] = getattr(feedexport, "apply_uri_params", mod)


def fields_of(exporter: BaseItemExporter, item: Any) -> dict[str, Any]:
    """Return the fields of the item that the exporter writes, as it writes them."""
    return dict(_serialized_fields(exporter, item))


_serialized_fields: Callable[[BaseItemExporter, Any], Iterable[tuple[str, Any]]] = getattr(
    BaseItemExporter,
    "get_serialized_fields"
    if hasattr(BaseItemExporter, "get_serialized_fields")
    else "_get_serialized_fields",
)


def never_opened(crawler: Crawler) -> None:
    """Mark the crawl as one without a scheduler, after its scheduler could not be created.

    Otherwise Scrapy would try to close the scheduler that was never opened, and report this failure
    instead of the cause."""
    if (engine := engine_of(crawler)) is not None:
        engine.spider = None


@cache  # all crawls of a process use one list
def take_shipped_suffixes() -> None:
    """Give Scrapy's cookie middleware the public suffix list that tldextract contains.

    Otherwise the first cookie of a crawl makes it fetch that list, and all requests wait."""
    if hasattr(cookies, "_split_domain"):
        cookies._split_domain = TLDExtract(
            cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True
        )


class ScrapyRun:
    """A crawl of Scrapy, as its parts see it."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @property
    def stats(self) -> Stats:
        assert self._crawler.stats is not None
        return self._crawler.stats

    @property
    def is_closing(self) -> bool:
        return closing(self._crawler)

    @property
    def in_downloader(self) -> Container[Request]:
        return in_downloader(self._crawler)

    def wake(self) -> None:
        wake(self._crawler)


@contextmanager
def lent_place(crawler: Crawler) -> Iterator[None]:
    """Lend the crawl one more place of CONCURRENT_REQUESTS, for a waiting request.

    The downloader counts every request in its `active` set, even one that only waits for a policy
    file or a due time."""
    downloader = downloader_of(crawler)
    if downloader is None or downloader.total_concurrency <= 0:  # 0: no limit
        yield
        return
    downloader.total_concurrency += 1
    try:
        yield
    finally:
        downloader.total_concurrency -= 1
