"""The parts that the components of one crawl share: `Crawl.of(crawler)`.

The first component that calls `Crawl.of` makes them."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast
from weakref import ref

from scrapy import signals
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    IgnoreRequest,
)
from scrapy.http import Request, Response
from scrapy.utils.asyncio import is_asyncio_available

from comity.cluster.state import open_state
from comity.crawler.action_requests import Actions
from comity.crawler.item_pages import ItemPages
from comity.crawler.item_tags import ItemTags
from comity.crawler.scrapy_internals import (
    Fields,
    ScrapyRun,
    UrlAsJudged,
    end,
    engine_of,
    guard_downloads,
    is_unanswered,
    lent_place,
)
from comity.database import log_mode
from comity.gate.fetching.files import PolicyFiles
from comity.gate.fetching.store import PolicyStore
from comity.gate.http import Request as AnyRequest
from comity.gate.http import fields_of
from comity.gate.options import ASYNCIO_REACTOR, Options, stop
from comity.gate.pace.ledger import Ledger, RateLedger
from comity.gate.pace.standstill import StoodStillError
from comity.gate.parts import Parts
from comity.gate.request.access import too_slow
from comity.gate.request.books import FILE, Books, BooksError, FileBooks
from comity.gate.request.purchases import Purchase, Purchases
from comity.gate.run.flights import ClosingError
from comity.gate.run.logs import show_nothing_hidden
from comity.gate.run.observer import Observer
from comity.gate.run.outcome import nothing_came
from comity.policies import PolicyError
from comity.policies.document.offer import ASKING, PAYING, offer_in
from comity.policies.vocabulary.use_rows import UseRows

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from comity.cluster.state import SharedState


logger = logging.getLogger(__name__)

# Errors before anything was sent.
NOT_SENT = (CannotResolveHostError, DownloadConnectionRefusedError)

# Reasons for which a crawl is ended early.
CANNOT_WRITE = "cannot_write"
ITEMS_LOST = "items_lost"

# The fields that offer money, as Scrapy spells the names of header fields.
_PAYING = frozenset(name.encode() for name in PAYING)

_UNSIGNED = nullcontext()


class LostTurnError(DownloadFailedError):
    """The request was not sent. It is to be tried again, in a later turn of its host."""


class Frontier(Protocol):
    """comity's scheduler, as the other components see it."""

    @property
    def goes_on(self) -> bool:
        """True if earlier processes may have stored items of this crawl."""

    @property
    def run(self) -> int:
        """The number of the run: 1 at first, one more each time the crawl begins again."""

    def __len__(self) -> int:
        """Return the number of requests that wait."""

    def hold(self, request: AnyRequest, wait: float) -> bool:
        """Take a request back for `wait` seconds. False if the scheduler did not hand it out."""


class Crawl(Parts):
    """The parts of one crawl. Components take the parts that they need from here, by name.

    Attributes:
        scheduler: comity's scheduler; None while another one is in use.
        flushes: The functions that `before_done` was given.
        state: The state that this crawl shares with other workers, or None.
        purchases: Payments to hosts, and license tokens.
        pauses_hosts: True if RateMiddleware is on, and hosts that answer 429 or 503 get a pause.
        actions: The actions that sites request.
        item_pages: The pages that items came from.
        tags: The tags of items.
    """

    def __init__(self, crawler: Crawler) -> None:
        # Tests of single components have no loop and no crawl. They must not open stores.
        if crawler.crawling and not is_asyncio_available():
            stop(f"there is no asyncio loop: set TWISTED_REACTOR to {ASYNCIO_REACTOR}")
        show_nothing_hidden()  # Scrapy has made its log handler by now
        options = Options.checked(crawler.settings)
        self._crawler = crawler
        self.scheduler: Frontier | None = None
        self.flushes: list[Callable[[], Awaitable[object] | None]] = []
        self.state = _state(crawler, options)
        observer = _observer(options)
        self.actions = Actions(crawler, options.agent, observer)
        files = _files(crawler, options, self.state)
        ledger = _ledger(crawler, options, self.state)
        if isinstance(ledger, RateLedger):
            ledger.gives_up = partial(self.end, CANNOT_WRITE)
        run = ScrapyRun(crawler)
        super().__init__(
            run,
            crawler.settings,
            options,
            files,
            ledger,
            looked_up=lambda policies: self.actions.looked_up(policies, self.policies),
            observer=observer,
        )
        self.purchases = Purchases(
            options.payments,
            options.license_tokens,
            _books(crawler, options, self.state),
            run.stats,
            lambda: run.is_closing,
        )
        self.pauses_hosts = False
        self.item_pages = ItemPages()
        self.tags = ItemTags(options.tag)
        self._is_ended = False  # True if it was ended because it cannot go on
        _close_early()
        crawler.signals.connect(self._open, signals.spider_opened)
        crawler.signals.connect(self.referrals.make, signals.request_scheduled)
        crawler.signals.connect(self.pace.settle_start, signals.headers_received)
        crawler.signals.connect(self.pace.end_flight, signals.request_left_downloader)
        crawler.signals.connect(self._tell_if_nothing_came, signals.spider_closed)
        crawler.signals.connect(self.close, signals.spider_closed)

    @classmethod
    def of(cls, crawler: Crawler) -> Crawl:
        """Return the crawl of this crawler. The first call makes it.

        It is kept in the crawler: a table would keep every crawler of a long process in memory."""
        crawl: Crawl | None = vars(crawler).get("_comity")
        if crawl is None:
            crawl = vars(crawler)["_comity"] = cls(crawler)
        return crawl

    def _open(self) -> None:
        self.standstill.open()
        guard_downloads(self._crawler, self._send)

    def end(self, reason: str, why: str) -> None:
        """End the crawl because it cannot go on, with an exit status other than 0.

        `reason`: the finish reason. `why`: for the log, the problem and its remedy."""
        engine = engine_of(self._crawler)
        if engine is None or engine.spider is None or self._is_ended:
            return
        self._is_ended = True
        logger.critical("The crawl ends: %(why)s", {"why": why})
        end(self._crawler, reason, is_complete=False)

    async def _send(
        self, request: Request, download: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Download a request as it was judged, and show the answer to comity's parts first.

        A downloader middleware behind ours, or a handler of a signal, may have changed the request,
        and could change the answer later.

        If a connection that was used before ends without an answer, the request is sent once more,
        in another turn, because the server may have seen it."""
        self.refuse_changed(request)
        if not _PAYING.isdisjoint(request.headers):
            self.purchases.take_off(request)
        response = await self._download(request, download, may_fail=True)
        if response is None:
            response = await self._download(request, download)
            assert response is not None
        if response.status in ASKING and offer_in(response.status, fields_of(response.headers)):
            # A cache would still refuse the page after the operator has bought it.
            request.meta["dont_cache"] = True
        self.responses.received(request, response.headers)
        return response

    async def _download(
        self,
        request: Request,
        download: Callable[[], Awaitable[Response]],
        *,
        may_fail: bool = False,
    ) -> Response | None:
        """Download the request in its turn. `may_fail`: None if the connection gave no answer."""
        purchase = await self._turn(request)
        send = download if purchase is None else partial(self._buy, request, purchase, download)
        try:
            with UrlAsJudged(request), self._signature(request):
                try:
                    return await self.standstill.guard(request, send)
                except StoodStillError as error:
                    raise LostTurnError(str(error)) from None
        except DownloadFailedError as error:
            if not (may_fail and is_unanswered(request, error)):
                raise
            self.pace.lose_turn(request)
            return None
        finally:
            if purchase is not None:
                self.purchases.failed(purchase, is_sent=False)  # unless the sending began

    async def _turn(self, request: Request) -> Purchase | None:
        """Wait until the request may be sent, and reserve what that may cost.

        Requests wait for money in their turns, and for turns without money. So none waits for
        another one that waits for it."""
        while True:
            while not self.pace.sends(request):
                await self._wait_again(request)
            if not self.purchases.are_any:
                return None
            try:
                with lent_place(self._crawler):
                    purchase = await self.purchases.begin(request)
            except BooksError as error:
                raise LostTurnError(f"{request} was not sent: {error}") from None
            except ClosingError:
                raise IgnoreRequest("the crawl is ending") from None
            if self.pace.sends(request):
                return purchase
            if purchase is not None:
                self.purchases.failed(purchase, is_sent=False)

    def _signature(self, request: Request) -> AbstractContextManager[None]:
        """Return a context in which the request is signed, if there is a key.

        Each sending is signed anew, after all middlewares. Afterwards the fields of the signature
        are taken off, so no redirect, retry, cache or log repeats them."""
        client = self.options.client
        return (
            _UNSIGNED
            if client.signer is None
            else Fields(request, client.signed_fields(request.url))
        )

    async def _buy(
        self, request: Request, purchase: Purchase, download: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Download the request with the header fields of what it buys, and book the charge."""
        try:
            with Fields(request, purchase.fields):
                response = await download()
        except BaseException as error:
            self.purchases.failed(purchase, is_sent=not isinstance(error, NOT_SENT))
            raise
        if self.pauses_hosts:
            # Requests that wait for the rest of the money are woken next. They see the pause.
            self.passages[ref(request)].pause = self.back_off(
                request.url, response.status, fields_of(response.headers)
            )
        self.purchases.answered(purchase, response.status, response.headers)
        return response

    async def _wait_again(self, request: Request) -> None:
        """Wait for another turn.

        LostTurnError: the wait is too long, and the queue handed the request out, so it takes it
        again. IgnoreRequest: the wait is too long for another request, or the crawl ends."""
        # None if the project has switched our middleware off.
        outgoing = self.passages[ref(request)].outgoing
        host = (self.pace.host(request.url),)
        limiters = (
            self.pace.limiters(self.agent, request.url, outgoing.site)
            if outgoing is not None
            else host
        )
        try:
            with lent_place(self._crawler):
                too_long = await self.pace.acquire(
                    request, limiters, at_most=self.options.max_delay
                )
        except ClosingError:
            raise IgnoreRequest("the crawl is ending") from None
        if too_long is not None:
            if self.pace.was_handed_out(request):
                raise LostTurnError(
                    f"{request} has lost its turn: its host may be asked again in {too_long:.0f} s"
                )
            refused = too_slow(request.url, too_long, self.options.max_delay)
            self.access.record(request, refused)
            raise IgnoreRequest(str(refused))

    def refuse_changed(self, request: Request) -> None:
        """IgnoreRequest: the request was changed since it was judged, and is refused now."""
        refused = self.access.refusal_if_changed(request)
        if refused is not None:
            self.access.record(request, refused)
            raise IgnoreRequest(str(refused))

    def _tell_if_nothing_came(self) -> None:
        """If no page came, warn with the reason: a log of warnings shows no single refusal."""
        assert self._crawler.stats is not None
        if why := nothing_came(self._crawler.stats.get_stats(), self.access.first_refused):
            logger.warning("%(why)s", {"why": why})

    async def close(self) -> None:
        await self.actions.close()
        await super().close()
        await self.purchases.close()
        if self.state is not None:
            await self.state.close()

    def before_done(self, flush: Callable[[], Awaitable[object] | None]) -> None:
        """Have `flush` called, and awaited, before pages count as done in JOBDIR or COMITY_STATE.

        A pipeline that buffers items calls this in its `from_crawler`. `flush` writes all items
        that the pipeline has taken. While it raises an error, no page counts as done."""
        self.flushes.append(flush)

    def hold(self, request: AnyRequest, wait: float) -> bool:
        """Do as `Frontier.hold`. False also if comity's scheduler is not in use."""
        return self.scheduler is not None and self.scheduler.hold(request, wait)


# The files that were opened before the crawl of this thread is built, as attributes.
_early = threading.local()
_File = TypeVar("_File", PolicyStore, RateLedger)


def open_early(options: Options, jobdir: str | None = None) -> None:
    """Open the files of the crawl that this thread builds next. SettingsError: unusable.

    `jobdir`: JOBDIR. Only its books of payments are checked here."""
    _close_early()
    if options.state:
        try:
            state = open_state(options.state, options.crawl or "crawl", options.worker_timeout)
            if options.payments:
                _shared_books(state)
            remarks = state.check()
        except PolicyError as error:
            stop(str(error))
        for remark in remarks:
            logger.warning("COMITY_STATE: %(remark)s", {"remark": remark})
        return
    if options.payments:
        _own_books(jobdir, options).close()
    _early.PolicyStore = _open(PolicyStore, options.store)
    _early.RateLedger = _open(RateLedger, options.ledger)


def _close_early() -> None:
    """Close the early files that no crawl has taken.

    A crawl does not take them if it was never built, if its settings differ, or if it shares the
    store of another crawl."""
    for opened in vars(_early).values():
        opened.close()
    vars(_early).clear()


atexit.register(_close_early)


def _open(kind: type[_File], path: Path) -> _File:
    """Return the file at this path, if possible the early one. SettingsError: unusable."""
    early: _File | None = vars(_early).get(kind.__name__)
    if early is not None and early.path == path:
        del vars(_early)[kind.__name__]
        log_mode(path)  # there was no log when the file was opened
        return early
    try:
        return kind(path)
    except PolicyError as error:
        stop(str(error))


def _observer(options: Options) -> Observer:
    if not options.report and options.metrics is None:
        return Observer()
    from comity.report.collector import Collector

    return Collector(UseRows(options.agent.vocabulary, options.agent.uses))


def _state(crawler: Crawler, options: Options) -> SharedState | None:
    """Return the state that this crawl shares with other workers, or None.

    SettingsError: it cannot be used."""
    if not (crawler.crawling and options.state):
        return None
    try:
        return open_state(
            options.state, options.crawl or crawler.spidercls.name, options.worker_timeout
        )
    except PolicyError as error:
        stop(str(error))


def _files(crawler: Crawler, options: Options, state: SharedState | None) -> PolicyFiles:
    """Return the policy files, shared by the crawls of this thread with the same store and client.

    SettingsError: the store cannot be used."""
    if state is not None:
        return PolicyFiles.from_options(
            state.store(), options.client, timeout=options.policy_timeout
        )
    open_store = partial(_open, PolicyStore)
    if crawler.crawling:
        return PolicyFiles.joined(
            options.store, options.client, timeout=options.policy_timeout, open_store=open_store
        )
    store = cast(PolicyStore, _Later(partial(open_store, options.store)))
    return PolicyFiles.from_options(store, options.client, timeout=options.policy_timeout)


def _ledger(crawler: Crawler, options: Options, state: SharedState | None) -> Ledger:
    """Return the ledger of all crawls that share the store, or the state.

    SettingsError: it cannot be used."""
    if state is not None:
        return state.ledger()
    open_ledger = partial(_open, RateLedger, options.ledger)
    return open_ledger() if crawler.crawling else cast(RateLedger, _Later(open_ledger))


def _books(crawler: Crawler, options: Options, state: SharedState | None) -> Books | None:
    """Return the books of the crawl's payments; None: it makes none.

    SettingsError: they cannot be kept."""
    if not (crawler.crawling and options.payments):
        return None
    if state is None:
        return _own_books(crawler.settings.get("JOBDIR"), options)
    books = _shared_books(state)
    _open_accounts(books, options)
    return books


def _own_books(folder: str | None, options: Options) -> FileBooks:
    """Return the books in the folder of JOBDIR, or in memory. SettingsError: they are unusable."""
    try:
        books = FileBooks(Path(folder) / FILE if folder else None)
    except PolicyError as error:
        stop(str(error))
    _open_accounts(books, options)
    return books


def _open_accounts(books: Books, options: Options) -> None:
    """Open an account for each payment. SettingsError: it would begin a new sum for its host."""
    try:
        books.open(payment.account for payment in options.payments)
    except PolicyError as error:
        books.close()
        stop(str(error))


def _shared_books(state: SharedState) -> Books:
    """Return the books of all workers of the crawl. SettingsError: the store keeps none."""
    books: Books | None = getattr(state, "books", lambda: None)()
    if books is None:
        stop(
            "COMITY_ARRANGEMENTS has payments, and the store of COMITY_STATE keeps no books: set"
            " COMITY_STATE to a server of Redis, Valkey or PostgreSQL, or to a file of SQLite, or"
            " leave `max_price` and `sum` out"
        )
    return books


class _Later:
    """A store that opens at the first access to it. Closing does nothing before that."""

    def __init__(self, open_it: Callable[[], Any]) -> None:
        self._open = open_it
        self._opened: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._opened is None:
            self._opened = self._open()
        return getattr(self._opened, name)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
