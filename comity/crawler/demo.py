"""A site on loopback to crawl and to look at: robots.txt, pages allowed and refused, redirects.

A format adds its files to PAGES."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the site sends for one path. In the body, ORIGIN stands for scheme, host and port of the site."""

    body: str | bytes = ""
    media_type: str = HTML
    status: int = 200
    location: str = ""


def _page(title: str, main: str) -> Answer:
    links = '<a href="/">Home</a> <a href="/news/">News</a> <a href="/about">About</a>'
    return Answer(
        body=f"<!doctype html><html lang=en><head><title>{title}</title></head><body><header><nav>{links}</nav></header>"
        f"<main><h1>{title}</h1>{main}</main><footer>A demonstration site of comity.</footer></body></html>"
    )


def _redirect(location: str) -> Answer:
    return Answer(status=302, location=location)


_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cfc00000030101"
    "00c9fe92ef0000000049454e44ae426082"
)

PAGES: dict[str, Answer] = {
    "/robots.txt": Answer(
        media_type=TEXT,
        body="""# The demonstration site of comity
User-agent: *
Crawl-delay: 0.2
Disallow: /private/
Allow: /private/press.html
Disallow: /*.pdf$
Disallow: /search

User-agent: badbot
Disallow: /

Sitemap: ORIGIN/sitemap.xml

# ACAP 1.0: what may be done with the pages
ACAP-resource-set: articles /news/*.html
ACAP-qualified-usage: teaser present-snippet max-length=12-words

ACAP-crawler: *
ACAP-allow-index: / time-limit=until-recrawled
ACAP-disallow-index: /news/archive.html
ACAP-allow-preserve: / time-limit=30-days
ACAP-allow-present: /
ACAP-disallow-present: the-acap:resource-set:articles
ACAP-allow-(teaser): the-acap:resource-set:articles
ACAP-disallow-follow: /about
ACAP-request-take-down: /gone

ACAP-crawler: *
ACAP-permissions-reference: /press.txt

ACAP-crawler: badbot
ACAP-disallow-other: /
""",
    ),
    "/press.txt": Answer(
        media_type=TEXT,
        body="""# What else may be done with what is for the press
ACAP-allow-present: /private/press.html prohibited-modification=translation
""",
    ),
    "/": _page(
        "The Loopback Gazette",
        "<p>Everything that this site publishes, it publishes on this machine.</p>"
        '<ul><li><a href="/news/">News</a><li><a href="/private/diary.html">The editor\'s diary</a>'
        '<li><a href="/private/press.html">For the press</a><li><a href="/report.pdf">The annual report</a>'
        '<li><a href="/search?q=comity">Search</a><li><a href="/old">Moved</a><li><a href="/shortcut">A shortcut</a>'
        '<li><a href="/gone">Gone</a></ul><img src="/logo.png" alt="">',
    ),
    "/news/": _page(
        "News", '<ul><li><a href="/news/1.html">Packet arrives</a><li><a href="/news/2.html">Port closes early</a></ul>'
    ),
    "/news/1.html": _page("Packet arrives", "<p>It had been sent from the same machine, <b>a moment</b> earlier.</p>"),
    "/news/2.html": _page("Port closes early", "<p>Those who came late were refused.</p><p>They may try again.</p>"),
    "/news/archive.html": _page("Archive", "<p>Only the sitemap knows of this page.</p>"),
    "/about": _page("About", "<p>A site to try crawlers on.</p>"),
    "/private/diary.html": _page("Diary", "<p>REFUSED: no crawler should ever read this.</p>"),
    "/private/press.html": _page("For the press", "<p>Allowed, in the middle of what is not.</p>"),
    "/report.pdf": Answer(body=b"%PDF-1.4 REFUSED", media_type="application/pdf"),
    "/search": _page("Search", "<p>REFUSED: nothing found.</p>"),
    "/old": _redirect("/about"),
    "/shortcut": _redirect("/private/diary.html"),
    "/logo.png": Answer(body=_PIXEL, media_type="image/png"),
    "/sitemap.xml": Answer(
        media_type="application/xml",
        body='<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        "<url><loc>ORIGIN/news/archive.html</loc></url><url><loc>ORIGIN/private/diary.html</loc></url></urlset>",
    ),
}
NOT_FOUND = Answer(status=404, body="<!doctype html><title>Not found</title><p>There is nothing here.")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        answer = PAGES.get(self.path) or PAGES.get(self.path.partition("?")[0]) or NOT_FOUND
        assert isinstance(self.server, Server)
        body = answer.body
        if isinstance(body, str):
            body = body.replace("ORIGIN", self.server.url.rstrip("/")).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.media_type)
        self.send_header("Content-Length", str(len(body)))
        if answer.location:
            self.send_header("Location", answer.location)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815  # the name that http.server asks for

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name that http.server gives it
        pass


class Server(ThreadingHTTPServer):
    """The demonstration site. OSError where the address cannot be had."""

    daemon_threads = True

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """`port`: 0 for any that is free."""
        super().__init__((host, port), _Handler)
        self.server_name = host  # not what a name server calls it

    @property
    def url(self) -> str:
        return f"http://{self.server_name}:{self.server_port}/"


@contextmanager
def running(host: str = "127.0.0.1", port: int = 0) -> Iterator[Server]:
    """Serves in a thread until the block ends."""
    with Server(host, port) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
