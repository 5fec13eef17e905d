"""The download handler of scrapy-playwright, with a guard for all browsers that it starts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import ref

from playwright.async_api import Browser, BrowserContext, Page
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response
from scrapy.settings import BaseSettings
from scrapy_playwright.handler import Config, ScrapyPlaywrightDownloadHandler

from comity.browser.admission import Admissions
from comity.browser.guard import BrowserGuard, route_of
from comity.browser.refusals import PageVisit
from comity.crawler.crawl import Crawl
from comity.gate.fetching.reach import literal
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_or_empty

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy_playwright.provider import BrowserProvider

# Keys of request.meta.
PAGE_INIT = "playwright_page_init_callback"  # called with a new page, before it loads a URL
PAGE = "playwright_page"  # an open page, which the spider kept to use it for this request


class GuardedHandler(ScrapyPlaywrightDownloadHandler):
    """A download handler with a guard between browsers and the network.

    `guarded_handler` adds the guard to a project's own handler."""

    browser_provider_cls: Any
    process_request_headers: Any

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler=crawler)
        self._crawl = crawl = Crawl.of(crawler)
        assert crawler.stats is not None
        self._guard = BrowserGuard(
            Admissions(
                crawl,
                crawler.stats,
                judged=crawl.options.browser,
            ),
            crawl.agent.user_agent,
            lambda: crawl.client.network,
        )
        provider = partial(
            _GuardedProvider,
            self.browser_provider_cls,
            self._guard,
            self.config.launch_options.get("proxy"),
        )
        self.browser_provider_cls = provider
        self.config.launch_options = self._guard.launch_options(self.config.launch_options)
        if self.process_request_headers is not None:
            self.process_request_headers = partial(
                _own_headers, self.process_request_headers, self._guard.session_fields
            )

    async def download_request(self, request: Request) -> Response:
        if not request.meta.get("playwright"):
            plain: Response = await super().download_request(request)
            return plain
        with self._guard.admissions.hand_out(request):
            return await self._browse(request)

    async def _browse(self, request: Request) -> Response:
        kept_page = request.meta.get(PAGE)
        pages: list[Page] = [kept_page] if isinstance(kept_page, Page) else []
        for page in pages:
            self._guard.refusals(page).document_fields.clear()
        own_init = request.meta.get(PAGE_INIT)  # the callback of the project, if it has one

        async def init(page: Page, request: Request) -> None:
            pages.append(page)
            await self._guard.wait_for_page(page)
            if own_init is not None:
                await _await_if_awaitable(own_init(page, request))

        request.meta[PAGE_INIT] = init
        try:
            response: Response = await super().download_request(request)
        except Exception:
            for refusal in self._guard.refusals(pages[-1]) if pages else ():
                if refusal.kind == "document":
                    raise IgnoreRequest(
                        f"{refusal.decision} (of {refusal.url}, where the browser was led)"
                    ) from None
            raise
        finally:
            if own_init is None:
                del request.meta[PAGE_INIT]
            else:
                request.meta[PAGE_INIT] = own_init
        if pages:
            refusals = self._guard.refusals(pages[-1])
            self._crawl.passages[ref(request)].browsed = PageVisit(
                refusals, tuple(refusals.document_fields)
            )
        # Playwright only knows the address of the proxy.
        return response.replace(
            ip_address=self._guard.proxy.address_of(urlsplit(response.url).hostname or "")
        )

    async def close(self) -> None:
        await super().close()
        await self._guard.close()


def guarded_handler(
    handler: type[ScrapyPlaywrightDownloadHandler],
) -> type[ScrapyPlaywrightDownloadHandler]:
    """Return a subclass of the handler with a guard, or the handler itself if it has one."""
    if handler is ScrapyPlaywrightDownloadHandler:
        return GuardedHandler
    return (
        handler
        if issubclass(handler, GuardedHandler)
        else type(handler.__name__, (GuardedHandler, handler), {})
    )


def check(settings: BaseSettings) -> None:
    """Raise PolicyError if a browser cannot be guarded with these settings of scrapy-playwright."""
    contexts = settings.getdict("PLAYWRIGHT_CONTEXTS").values()
    for options in (settings.getdict("PLAYWRIGHT_LAUNCH_OPTIONS"), *contexts):
        route_of(options.get("proxy"))
    for name in ("PLAYWRIGHT_CDP_URL", "PLAYWRIGHT_CONNECT_URL"):
        host = urlsplit(settings.get(name) or "").hostname
        address = literal(host or "")
        if host and host != "localhost" and (address is None or not address.is_loopback):
            raise PolicyError(
                f"{name} `{printable(host.encode())}` is another machine: its browser cannot reach"
                " comity's proxy, through which all requests go. Start the browser on this machine,"
                " and write an address such as 127.0.0.1"
            )


class _GuardedProvider:
    """A provider of guarded browsers (PLAYWRIGHT_BROWSER_PROVIDER)."""

    def __init__(
        self,
        provider: Callable[[Config], BrowserProvider],
        guard: BrowserGuard,
        proxy: Mapping[str, str] | None,
        config: Config,
    ) -> None:
        """`proxy`: the proxy in Playwright's options. None means no proxy."""
        self._provider = provider(config)
        self._guard = guard
        self._proxy = proxy
        self._is_started_elsewhere = bool(config.cdp_url or config.connect_url)

    async def start(self) -> None:
        self._guard.start()
        await self._provider.start()

    async def launch_browser(self) -> Browser:
        browser = await self._provider.launch_browser()
        return await self._guard.adopt(
            browser, proxy=self._proxy, is_started_elsewhere=self._is_started_elsewhere
        )

    async def launch_persistent_context(self, context_kwargs: dict[str, Any]) -> BrowserContext:
        context: BrowserContext = await self._provider.launch_persistent_context(
            self._guard.launch_options(context_kwargs)
        )
        assert context.browser is not None
        await self._guard.watch(context.browser)
        return context

    async def close(self) -> None:
        await self._provider.close()


async def _own_headers(
    process: Callable[..., Any], session_fields: frozenset[str], **arguments: Any
) -> dict[str, str]:
    """Return the header fields for a request that a page makes.

    The Scrapy request declares its header fields for the origin of its own URL. Parts of the page
    may come from other origins. Requests to these do not get the declared fields of
    `session_fields`, because they may be credentials."""
    headers: dict[str, str] = await _await_if_awaitable(process(**arguments))
    data = arguments["scrapy_request_data"]
    if origin_or_empty(arguments["playwright_request"].url) == origin_or_empty(data["url"]):
        return headers
    declared = {name.lower(): value for name, value in data["headers"].to_unicode_dict().items()}
    return {
        name: value
        for name, value in headers.items()
        if name.lower() not in session_fields or declared.get(name.lower()) != value
    }


async def _await_if_awaitable(value: Awaitable[Any] | Any) -> Any:
    """Return a value, or the result of an awaitable."""
    return await value if isawaitable(value) else value
