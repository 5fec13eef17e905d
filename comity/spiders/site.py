"""The spider `site`: crawl the pages of one site."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

import tldextract
from scrapy import Request, Spider
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.utils.gz import gunzip, gzip_magic_number
from scrapy.utils.sitemap import Sitemap

from comity.crawler.crawl import Crawl
from comity.gate.fetching.fetcher import OriginPolicies
from comity.gate.request.referrals import set_referrer_reach
from comity.gate.run.flights import ClosingError
from comity.policies.syntax.urls import origin_of, typed_url
from comity.spiders.arguments import extractor, flag, number, only, stop
from comity.spiders.pages import PageItem, page_item

ARGUMENTS = "url, depth, max_pages, subdomains, html, text"
MAX_SITEMAP_BYTES = 50 * 1024 * 1024  # octets of an uncompressed sitemap; the limit of sitemaps.org
MAX_SITEMAPS = 100  # sitemaps to request in a crawl, including those in sitemap indexes

# With no URL of a suffix list, tldextract fetches nothing and uses the list in its package.
registered_domain = tldextract.TLDExtract(suffix_list_urls=())


class SiteSpider(Spider):
    """Follow the links within a host, and read the sitemaps in its robots.txt.

    comity crawl site -a url=https://example.com [-a depth=N] [-a max_pages=N] [-a subdomains=true]
    [-a html=true] [-a text=trafilatura]"""

    name = "site"

    def __init__(
        self,
        url: str = "",
        depth: str | None = None,
        max_pages: str | None = None,
        *,
        subdomains: str | bool = False,
        html: str | bool = False,
        text: str = "main",
        **unknown: object,
    ) -> None:
        """Check the arguments.

        `url`: the URL of the first page.
        `depth`: the number of links to follow from the first page. 0 means only that page, None no
        limit.
        `max_pages`: the largest number of items. None means no limit.
        `subdomains`: true to crawl all hosts of the registered domain.
        `html`: true to keep the source of pages in their items.
        `text`: the extractor of the text: main or trafilatura."""
        super().__init__()
        only(self.name, unknown, f"it takes {ARGUMENTS}")
        if not url:
            stop(self.name, "no site: add -a url=https://example.com")
        try:
            self.url = typed_url(url)
        except ValueError as error:
            stop(self.name, f"{error}. An example: -a url=https://example.com")
        self.depth = number(self.name, "depth", depth)
        self.max_pages = number(self.name, "max_pages", max_pages)
        self.keep_html = flag(self.name, "html", html)
        self.extractor = extractor(self.name, text)
        self.scope = _scope(self.url, subdomains=flag(self.name, "subdomains", subdomains))
        self._pages = 0
        self._sitemaps = 0
        self._has_sitemaps = False  # True after the sitemaps in robots.txt have been requested

    async def start(self) -> AsyncIterator[Request]:
        yield Request(self.url)
        try:
            policies = await Crawl.of(self.crawler).policies.for_url(self.url)
        except ClosingError:
            return
        for request in self._named_sitemaps(policies):
            yield request

    def parse(self, response: Response) -> Iterator[Request | PageItem]:
        if not self._in_scope(response.url):
            self.logger.info(
                "%s led to %s, which does not belong to this site", response.request, response.url
            )
            return
        self._end_where_full()
        self._pages += 1
        item = page_item(response, html=self.keep_html, extractor=self.extractor)
        yield item
        self._end_where_full()
        yield from self._named_sitemaps(Crawl.of(self.crawler).policies.cached(origin_of(self.url)))
        if response.meta.get("depth", 0) != self.depth:
            yield from self._requests(item.links)

    def parse_sitemap(self, response: Response) -> Iterator[Request]:
        """Yield requests for the pages in a sitemap, or for the sitemaps in a sitemap index.

        For `depth`, the pages count as linked from the first page."""
        response.meta["depth"] = 0  # Scrapy adds 1 for the next requests
        try:
            body = (
                gunzip(response.body, max_size=MAX_SITEMAP_BYTES)
                if gzip_magic_number(response)
                else response.body
            )
            sitemap = Sitemap(body[:MAX_SITEMAP_BYTES])
            locations = [url for entry in sitemap if (url := _absolute(response, entry.get("loc")))]
        except Exception as error:  # lxml and zlib raise many kinds of errors for bad input
            self.logger.info("%s is not a sitemap: %s", response, type(error).__name__)
            return
        if sitemap.type == "sitemapindex":
            for location in locations:
                if request := self._sitemap_request(location):
                    yield request
        else:
            yield from self._requests(locations)

    def _named_sitemaps(self, policies: OriginPolicies | None) -> Iterator[Request]:
        """Yield requests for the sitemaps in robots.txt, at the first call that knows robots.txt.

        If robots.txt cannot be fetched yet, yield nothing: a later call may succeed. If `depth` is
        0, yield nothing."""
        if self._has_sitemaps or policies is None or policies.unreachable or self.depth == 0:
            return
        self._has_sitemaps = True
        for sitemap in policies.site.sitemaps:
            if request := self._sitemap_request(sitemap):
                yield set_referrer_reach(request, policies.reach)

    def _requests(self, urls: list[str]) -> Iterator[Request]:
        for url in urls:
            if request := self._request(url):
                yield request

    def _request(self, url: str) -> Request | None:
        """Return a request for a URL. None if the URL is invalid, or belongs to another site."""
        try:
            return Request(url) if self._in_scope(url) else None
        except ValueError:  # for example, an invalid port
            return None

    def _sitemap_request(self, url: str) -> Request | None:
        """Return the request for a sitemap.

        None means that its URL is invalid or belongs to another site, or that MAX_SITEMAPS is
        reached."""
        request = self._request(url) if self._sitemaps < MAX_SITEMAPS else None
        if request is None:
            return None
        self._sitemaps += 1
        return request.replace(callback=self.parse_sitemap, priority=-1)

    def _end_where_full(self) -> None:
        """End the crawl after `max_pages` items."""
        if self._pages == self.max_pages:
            raise CloseSpider("max_pages")

    def _in_scope(self, url: str) -> bool:
        host = urlsplit(url).hostname or ""
        return host == self.scope or (
            self.scope.startswith(".") and f".{host}".endswith(self.scope)
        )


def _absolute(response: Response, location: str | None) -> str:
    """Return the absolute URL of a sitemap entry. "" if `location` is missing or invalid."""
    try:
        return response.urljoin(location) if location else ""
    except ValueError:
        return ""


def _scope(url: str, *, subdomains: bool) -> str:
    """Return the scope of a crawl that starts at `url`: a host, or "." and a domain.

    With `subdomains`, the scope of https://www.example.com/ is ".example.com", which includes
    example.com and all its subdomains. It is the host if that has no registered domain, e.g. if
    it is an IP address."""
    host = urlsplit(url).hostname or ""
    domain = registered_domain(host).top_domain_under_public_suffix if subdomains else ""
    return f".{domain}" if domain else host
