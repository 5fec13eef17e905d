"""The ready spiders on real servers, in both modes."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comity.spiders.site import SiteSpider
from comity.spiders.urls import UrlsSpider

if TYPE_CHECKING:
    from tests.conftest import Crawled, Serve

    Crawl = Callable[..., Crawled]


def _page(*hrefs: str) -> str:
    return "<title>t</title><main>" + "".join(f'<p><a href="{href}">x</a>' for href in hrefs)


def _sitemap(*locations: str, kind: str = "urlset", entry: str = "url") -> str:
    entries = "".join(f"<{entry}><loc>{location}</loc></{entry}>" for location in locations)
    return f'<?xml version="1.0"?><{kind} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</{kind}>'


def test_site_stays_on_its_host(serve: Serve, crawl: Crawl) -> None:
    other = serve({"/": _page()}, host="127.0.0.2")
    site = serve(
        {
            "/": _page("/a", "/a#part", other.url("/"), "/leaves"),
            "/a": _page("/"),
            "/leaves": serve.Answer(status=302),
        }
    )
    site.routes["/leaves"] = serve.Answer(status=302, headers={"Location": other.url("/")})
    crawled = crawl(SiteSpider, url=site.url("/"))
    assert site.paths[:2] == ["/robots.txt", "/"]
    assert sorted(site.paths[2:]) == ["/a", "/leaves"]
    assert sorted(item["final_url"] for item in crawled.items) == [site.url("/"), site.url("/a")]
    assert all(item["permissions"]["uses"]["crawl"]["verdict"] == "allow" for item in crawled.items)


def test_site_reads_sitemaps_of_its_host(serve: Serve, crawl: Crawl) -> None:
    site = serve({"/": _page(), "/b": _page(), "/c": _page(), "/secret": _page()})
    elsewhere = "http://127.0.0.9/x.xml"
    robots = f"User-agent: *\nDisallow: /secret\nSitemap: {site.url('/index.xml')}\nSitemap: {elsewhere}\nSitemap: /bad.xml\n"
    site.routes["/robots.txt"] = robots
    site.routes["/index.xml"] = serve.Answer(
        _sitemap(
            site.url("/one.xml"), site.url("/two.xml.gz"), kind="sitemapindex", entry="sitemap"
        ),
        content_type="application/xml",
    )
    site.routes["/one.xml"] = serve.Answer(
        _sitemap(site.url("/b"), "http://127.0.0.9/away"), content_type="application/xml"
    )
    compressed = gzip.compress(_sitemap(site.url("/c"), site.url("/secret")).encode())
    site.routes["/two.xml.gz"] = serve.Answer(compressed, content_type="application/octet-stream")
    site.routes["/bad.xml"] = serve.Answer("not xml at all", content_type="application/xml")
    crawled = crawl(SiteSpider, url=site.url("/"))
    assert site.paths[0] == "/robots.txt"
    assert sorted(site.paths[1:]) == [
        "/",
        "/b",
        "/bad.xml",
        "/c",
        "/index.xml",
        "/one.xml",
        "/two.xml.gz",
    ]
    assert sorted(item["url"] for item in crawled.items) == [
        site.url("/"),
        site.url("/b"),
        site.url("/c"),
    ]
    assert crawled.stats["comity/access/deny/robots.disallow"] == 1


def test_site_passes_over_what_is_no_url(serve: Serve, crawl: Crawl) -> None:
    no_urls = ("http://[broken/", "", "mailto:somebody", "//127.0.0.1:99999/")
    site = serve({"/": _page(*no_urls, "/a"), "/a": _page(), "/b": _page(), "/sitemap.xml": ""})
    lines = (
        f"Sitemap: {url}\n"
        for url in (*no_urls, "http://127.0.0.1:99999/", site.url("/sitemap.xml"))
    )
    site.routes["/robots.txt"] = "".join(lines)
    body = _sitemap(*no_urls, site.url("/b"))
    site.routes["/sitemap.xml"] = serve.Answer(body, content_type="application/xml")
    crawled = crawl(SiteSpider, url=site.url("/"))
    assert sorted(item["url"] for item in crawled.items) == [
        site.url("/"),
        site.url("/a"),
        site.url("/b"),
    ]
    assert "Traceback" not in crawled.log


def test_site_depth(serve: Serve, crawl: Crawl) -> None:
    site = serve({"/": _page("/a"), "/a": _page("/b"), "/b": _page()})
    crawl(SiteSpider, url=site.url("/"), depth="1")
    assert site.paths == ["/robots.txt", "/", "/a"]


def test_site_reads_sitemaps_of_a_robots_txt_that_cannot_be_had_at_first(
    serve: Serve, crawl: Crawl
) -> None:
    def robots(handler: Any) -> Any:
        fails = site.paths.count("/robots.txt") == 1
        return (
            serve.Answer("", 503, headers={"Retry-After": "1"})
            if fails
            else f"Sitemap: {site.url('/sitemap.xml')}\n"
        )

    site = serve({"/": _page("/b"), "/a": _page(), "/b": _page(), "/robots.txt": robots})
    site.routes["/sitemap.xml"] = serve.Answer(_sitemap(site.url("/a")))
    crawled = crawl(SiteSpider, url=site.url("/"))
    assert sorted(site.paths) == ["/", "/a", "/b", "/robots.txt", "/robots.txt", "/sitemap.xml"]
    assert len(crawled.items) == 3


def test_pages_of_sitemaps_count_as_linked_from_the_first_page(serve: Serve, crawl: Crawl) -> None:
    """Also those of sitemaps that a sitemap index names."""
    site = serve({"/": _page(), "/a": _page("/b"), "/b": _page("/c"), "/c": _page()})
    site.routes["/robots.txt"] = f"Sitemap: {site.url('/index.xml')}\n"
    index = _sitemap(site.url("/one.xml"), kind="sitemapindex", entry="sitemap")
    site.routes |= {
        "/index.xml": serve.Answer(index),
        "/one.xml": serve.Answer(_sitemap(site.url("/a"))),
    }
    crawl(SiteSpider, url=site.url("/"), depth="1")
    assert sorted(site.paths) == ["/", "/a", "/index.xml", "/one.xml", "/robots.txt"]


def test_site_max_pages_is_exact(serve: Serve, crawl: Crawl) -> None:
    pages = {f"/{number}": _page() for number in range(20)}
    site = serve({"/": _page(*pages), **pages})
    crawled = crawl(SiteSpider, url=site.url("/"), max_pages="3")
    assert len(crawled.items) == 3
    assert crawled.finish_reason == "max_pages"


def test_site_keeps_the_source_where_asked(serve: Serve, crawl: Crawl) -> None:
    site = serve({"/": _page()})
    crawled = crawl(SiteSpider, url=site.url("/"), html="true")
    assert crawled.items[0]["html"] == _page()


def test_subdomains_belong_to_the_registered_domain() -> None:
    spider = SiteSpider(url="https://www.example.co.uk/", subdomains="true")
    assert [
        spider._in_scope(f"https://{host}/")
        for host in ("example.co.uk", "a.example.co.uk", "other.co.uk", "notexample.co.uk")
    ] == [
        True,
        True,
        False,
        False,
    ]
    assert not SiteSpider(url="https://www.example.co.uk/")._in_scope("https://example.co.uk/")
    assert SiteSpider(url="http://127.0.0.1:80/", subdomains="true").scope == "127.0.0.1"


def test_urls_reports_bad_lines_and_goes_on(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    site = serve(
        {"/robots.txt": "User-agent: *\nDisallow: /no", "/a": _page("/not-followed"), "/b": _page()}
    )
    lines = [
        "# list",
        "",
        site.url("/a"),
        "ftp://example.com/x",
        "http://[bad",
        site.url("/no"),
        site.url("/b"),
    ]
    file = tmp_path / "urls.txt"
    file.write_text("\n".join(lines))
    crawled = crawl(UrlsSpider, file=str(file))
    assert site.paths[0] == "/robots.txt"
    assert sorted(site.paths[1:]) == ["/a", "/b"]
    assert sorted(item["url"] for item in crawled.items) == [site.url("/a"), site.url("/b")]
    assert crawled.stats["comity/urls/bad"] == 2
    assert f"{file}:4: `ftp://example.com/x` is no http or https URL" in crawled.log
    assert f"{file}:5:" in crawled.log


class Slow(UrlsSpider):
    """Reads on only when hardly anything waits, and remembers how much waited at most."""

    most_waiting = 3

    def _waiting(self) -> int:
        waiting = super()._waiting()
        assert self.crawler.stats
        self.crawler.stats.max_value("waited", waiting)
        return waiting


def test_urls_does_not_read_ahead_of_the_queue(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    site = serve({f"/{number}": _page() for number in range(30)})
    file = tmp_path / "urls.txt"
    file.write_text("".join(f"{site.url(f'/{number}')}\n" for number in range(30)))
    crawled = crawl(Slow, file=str(file))
    assert len(crawled.items) == 30
    assert 0 < crawled.stats["waited"] <= 3
