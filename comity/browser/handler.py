"""scrapy-playwright, guarded: its download handler with a guard before each browser that it starts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, cast

from playwright.async_api import Browser, BrowserContext, Page
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response
from scrapy_playwright.handler import Config, ScrapyPlaywrightDownloadHandler

from comity.browser.admission import Admissions
from comity.browser.guard import BrowserGuard, launch_arguments
from comity.browser.refusals import Visit
from comity.crawler.crawl import Crawl
from comity.policies.syntax.urls import origin_or_empty

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy_playwright.provider import BrowserProvider

logger = logging.getLogger(__name__)

PAGE_INIT = "playwright_page_init_callback"  # of request.meta: scrapy-playwright calls it before a page goes anywhere
PAGE = "playwright_page"  # of request.meta: a page that the spider has kept, to be used again


class GuardedHandler(ScrapyPlaywrightDownloadHandler):
    """Puts a guard between browsers and the network. `guarded_handler` makes one of a project's own handler."""

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
        )
        if self.config.cdp_url or self.config.connect_url:
            logger.warning(
                "The browser is started elsewhere: WebSockets of workers are judged only where it has the arguments of"
                " comity.browser.launch_arguments() (docs/browsers.md)"
            )
        self.config.launch_options = _guarded_launch(self.config.launch_options, crawl.agent.user_agent)
        self.browser_provider_cls = partial(_GuardedProvider, self.browser_provider_cls, self._guard)
        if self.process_request_headers is not None:
            self.process_request_headers = partial(_own_headers, self.process_request_headers, self._guard.session_fields)

    async def download_request(self, request: Request) -> Response:
        if not request.meta.get("playwright"):
            plain: Response = await super().download_request(request)
            return plain
        with self._guard.admissions.handed_out(request):
            return await self._browse(request)

    async def _browse(self, request: Request) -> Response:
        kept_page = request.meta.get(PAGE)
        pages: list[Page] = [kept_page] if isinstance(kept_page, Page) else []
        for page in pages:
            self._guard.refusals(page).document_fields.clear()
        theirs = request.meta.get(PAGE_INIT)

        async def init(page: Page, request: Request) -> None:
            pages.append(page)
            await self._guard.enter_page(page)
            if theirs is not None:
                await _awaited(theirs(page, request))

        request.meta[PAGE_INIT] = init
        try:
            response: Response = await super().download_request(request)
        except Exception:
            for refusal in self._guard.refusals(pages[-1]) if pages else ():
                if refusal.kind == "document":
                    raise IgnoreRequest(f"{refusal.decision} (of {refusal.url}, where the browser was led)") from None
            raise
        finally:
            if theirs is None:
                del request.meta[PAGE_INIT]
            else:
                request.meta[PAGE_INIT] = theirs
        if pages:
            refusals = self._guard.refusals(pages[-1])
            self._crawl.responses.browsed[request] = Visit(refusals, tuple(refusals.document_fields))
        return response


def guarded_handler(handler: type[ScrapyPlaywrightDownloadHandler]) -> type[ScrapyPlaywrightDownloadHandler]:
    """The same handler with a guard."""
    if handler is ScrapyPlaywrightDownloadHandler:
        return GuardedHandler
    return handler if issubclass(handler, GuardedHandler) else type(handler.__name__, (GuardedHandler, handler), {})


class _GuardedProvider:
    """A provider of browsers (PLAYWRIGHT_BROWSER_PROVIDER) that are guarded."""

    def __init__(self, provider: Callable[[Config], BrowserProvider], guard: BrowserGuard, config: Config) -> None:
        self._provider = provider(config)
        self._guard = guard

    async def start(self) -> None:
        await self._provider.start()

    async def launch_browser(self) -> Browser:
        browser = await self._provider.launch_browser()
        await self._guard.watch(browser)
        for context in browser.contexts:
            await self._guard.enter(context)
        return cast(Browser, _GuardedBrowser(browser, self._guard))

    async def launch_persistent_context(self, context_kwargs: dict[str, Any]) -> BrowserContext:
        context: BrowserContext = await self._provider.launch_persistent_context(
            _guarded_launch(context_kwargs, self._guard.user_agent)
        )
        assert context.browser is not None
        await self._guard.watch(context.browser)
        await self._guard.enter(context)
        return context

    async def close(self) -> None:
        await self._provider.close()


class _GuardedBrowser:
    """A browser whose contexts are guarded before anybody has them."""

    def __init__(self, browser: Browser, guard: BrowserGuard) -> None:
        self._browser = browser
        self._guard = guard

    def __getattr__(self, name: str) -> Any:
        return getattr(self._browser, name)

    async def new_context(self, **kwargs: Any) -> BrowserContext:
        if kwargs.get("proxy"):
            logger.warning("A context has a proxy of its own: WebSockets of workers are not judged there (docs/browsers.md)")
        context = await self._browser.new_context(**kwargs)
        await self._guard.enter(context)
        return context


def _guarded_launch(options: Mapping[str, Any], user_agent: str) -> dict[str, Any]:
    """The options with what switches off whatever nobody could judge, where the browser is started here."""
    proxy = (options.get("proxy") or {}).get("server", "")
    return {**options, "args": [*(options.get("args") or ()), *launch_arguments(user_agent=user_agent, proxy=proxy)]}


async def _own_headers(process: Callable[..., Any], session_fields: frozenset[str], **arguments: Any) -> dict[str, str]:
    """The header fields of a request of a page. Those of the Scrapy request are its page's; its credentials are for no other
    site that a frame of it may show."""
    headers: dict[str, str] = await _awaited(process(**arguments))
    data = arguments["scrapy_request_data"]
    if origin_or_empty(arguments["playwright_request"].url) == origin_or_empty(data["url"]):
        return headers
    declared = {name.lower(): value for name, value in data["headers"].to_unicode_dict().items()}
    return {
        name: value
        for name, value in headers.items()
        if name.lower() not in session_fields or declared.get(name.lower()) != value
    }


async def _awaited(value: Awaitable[Any] | Any) -> Any:
    return await value if isawaitable(value) else value
