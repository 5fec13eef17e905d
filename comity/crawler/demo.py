"""A demonstration site on loopback, to crawl and to look at.

It has policy files, allowed and refused pages, redirects, a form and an API. It runs behind the
guard, which refuses requests by the site's own policy files. A format adds its files to PAGES.

    running()             serves it by WSGI, with the standard library
    Demonstration.asgi    the same site for an ASGI server (examples/demo_asgi.py)

`python -m comity.crawler.demo ARGUMENTS` is `scrapy ARGUMENTS` without the messages by which Scrapy
lists its parts."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from socketserver import ThreadingMixIn
from threading import Thread
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from comity.guard import ASGIMiddleware, Guard, Incoming, WSGIMiddleware, credentials
from comity.policies.answers.fetched import Fetched
from comity.policies.answers.request import Session
from comity.policies.formats import WELL_KNOWN

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

    from comity.guard.asgi import Receive, Scope, Send

JSON = "application/json"
HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoAnswer:
    """The site's answer for one path.

    Attributes:
        body: In a text, ORIGIN stands for scheme, host and port of the site, HOST for the last two.
        media_type: The value of Content-Type.
        status: The HTTP status.
        location: The value of Location; "" for no such field.
        posted: The body of the answer to a POST; "" if the path takes no POST.
        robots_tag: The value of X-Robots-Tag; "" for no such field.
    """

    body: str | bytes = ""
    media_type: str = HTML
    status: int = 200
    location: str = ""
    posted: str = ""
    robots_tag: str = ""


def _page(title: str, main: str, *, head: str = "", posted: str = "") -> DemoAnswer:
    links = '<a href="/">Home</a> <a href="/news/">News</a> <a href="/about">About</a>'
    return DemoAnswer(
        body=f"<!doctype html><html lang=en><head><title>{title}</title>{head}</head>"
        f"<body><header><nav>{links}</nav></header><main><h1>{title}</h1>{main}</main>"
        "<footer>A demonstration site of comity.</footer></body></html>",
        posted=posted,
    )


def _redirect(location: str) -> DemoAnswer:
    return DemoAnswer(status=302, location=location)


_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)

PAGES: dict[str, DemoAnswer] = {
    "/robots.txt": DemoAnswer(
        media_type=TEXT,
        body="""# The demonstration site of comity
User-agent: *
Crawl-delay: 0.2
Disallow: /private/
Allow: /private/press.html
Disallow: /*.pdf$
Disallow: /search
Content-Signal: search=yes, ai-train=no
Content-Usage: /archive/ train-ai=n, search=y

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
    "/press.txt": DemoAnswer(
        media_type=TEXT,
        body="""# What else may be done with what is for the press
ACAP-allow-present: /private/press.html prohibited-modification=translation
""",
    ),
    "/automation-preferences.txt": DemoAnswer(
        media_type=TEXT,
        body="""# What may be automated, and how
scope: /
allowed-methods: GET, HEAD
request-limit: 50/second

scope: /
user-agent: badbot
allowed-methods:   # none

scope: /news/
host: HOST
allowed-methods: GET, HEAD
allow-xhr: read-only
disallow-fetch-from: /account/*, /private/*

scope: /api/
allowed-methods: GET
api-automation: with-key-only   # any key will do, in X-API-Key or Authorization

scope: /forms/
allowed-methods: GET, HEAD, POST
request-limit: 120/minute

scope: /archive/
allowed-methods: GET, HEAD
request-limit: 2/second
concurrent-limit: 2

scope: /research/
allowed-methods: GET, HEAD
allowed-purposes: research, archiving

scope: /viewer/
allowed-methods: GET, HEAD
allowed-automations: cdp, headless

scope: /account/
allowed-methods: GET, HEAD
require-human-initiated-session: true
session-validation: cookie-based   # visitor=1800000000, the second in which the session began
session-ttl: 1h
""",
    ),
    "/.well-known/tdmrep.json": DemoAnswer(
        media_type=JSON,
        body="""[
{"location": "/news/*", "tdm-reservation": 1, "tdm-policy": "ORIGIN/tdm-policy.json"}
]""",
    ),
    "/ai.txt": DemoAnswer(
        media_type=TEXT,
        body="""# What AI may do with parts of the features
User-agent: *
  Path: /features/ html
    Element: blockquote
      Disallow: Train Rephrase Translate
      Guide: Cite Summarize
        Lang: en
        Guideline: Name who is quoted.
        Lang: de
        Guideline: Nennen Sie, wer zitiert wird.
    Element: .comments
      Disallow: Return
    Element: .comments .reply
      Disallow: *
    Element: aside, figure
      Disallow: Index Describe
  Path: /features/stories.json json
    Element: author.email
      Disallow: *
    Element: comments.text
      Disallow: Index Return
  Path: /features/feed.xml xml
    Element: channel.item.description
      Disallow: Index Summarize
""",
    ),
    "/": _page(
        "The Loopback Gazette",
        "<p>Everything that this site publishes, it publishes on this machine.</p>"
        '<ul><li><a href="/news/">News</a><li><a href="/features/">Features</a>'
        '<li><a href="/private/diary.html">The editor\'s diary</a>'
        '<li><a href="/private/press.html">For the press</a>'
        '<li><a href="/report.pdf">The annual report</a>'
        '<li><a href="/search?q=comity">Search</a><li><a href="/old">Moved</a>'
        '<li><a href="/shortcut">A shortcut</a><li><a href="/gone">Gone</a>'
        '<li><a href="/archive/">The archive</a><li><a href="/forms/contact">Write to us</a>'
        '<li><a href="/research/notes.html">Notes for research</a>'
        '<li><a href="/viewer/">For browsers</a>'
        '<li><a href="/account/">Your account</a></ul><img src="/logo.png" alt="">',
    ),
    "/news/": _page(
        "News",
        '<ul><li><a href="/news/1.html">Packet arrives</a>'
        '<li><a href="/news/2.html">Port closes early</a></ul>',
    ),
    "/news/1.html": _page(
        "Packet arrives", "<p>It had been sent from the same machine, <b>a moment</b> earlier.</p>"
    ),
    "/news/2.html": _page(
        "Port closes early", "<p>Those who came late were refused.</p><p>They may try again.</p>"
    ),
    "/news/archive.html": _page("Archive", "<p>Only the sitemap knows of this page.</p>"),
    "/about": _page(
        "About",
        "<p>A site to try crawlers on.</p>",
        head='<meta name="robots" content="noai, max-snippet:50">',
    ),
    "/private/diary.html": _page("Diary", "<p>REFUSED: no crawler should ever read this.</p>"),
    "/private/press.html": _page("For the press", "<p>Allowed, in the middle of what is not.</p>"),
    "/report.pdf": DemoAnswer(body=b"%PDF-1.4 REFUSED", media_type="application/pdf"),
    "/search": _page("Search", "<p>REFUSED: nothing found.</p>"),
    "/features/": _page(
        "Features",
        '<ul><li><a href="/features/lamp.html">The keeper of the lamp</a>'
        '<li><a href="/features/stories.json">All stories, as data</a>'
        '<li><a href="/features/feed.xml">The feed</a></ul>',
    ),
    "/features/lamp.html": _page(
        "The keeper of the lamp",
        "<p>There is one lamp on this machine, and one person who keeps it lit.</p>"
        '<blockquote title="The keeper, at night">I light it at dusk. '
        "<em>Nobody</em> has asked me to.</blockquote>"
        '<figure><a href="/features/lamp.png">'
        '<img src="/features/lamp.png" alt="The lamp, from afar"></a>'
        "<figcaption>The lamp takes up one pixel.</figcaption></figure>"
        '<aside data-hours="after dusk"><!-- The editor has the key. -->'
        "<p>The keeper receives visitors.</p>"
        '<script type="application/json">{"door": "the blue one"}</script></aside>'
        '<section class="comments"><h2>Comments</h2><p>I have seen it.</p>'
        "<blockquote>Nobody has asked me to.</blockquote>"
        '<div class="reply"><p>Then I ask now.</p> <a href="/features/">More like this</a></div>'
        "</section>",
    ),
    "/features/stories.json": DemoAnswer(
        media_type=JSON,
        body="""[
{"title": "The keeper of the lamp", "author": {"name": "A. Porter", "email": "porter@HOST"},
 "comments": [{"by": "a reader", "text": "I have seen it."}, \
{"by": "the keeper", "text": "Then I ask now."}]},
{"title": "Packet arrives", "author": {"name": "B. Ross", "email": "ross@HOST"}, "comments": []}
]""",
    ),
    "/features/feed.xml": DemoAnswer(
        media_type="application/xml",
        body='<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel>'
        "<title>Features</title><link>ORIGIN/features/</link>"
        "<description>Stories from this machine</description>"
        "<item><title>The keeper of the lamp</title><link>ORIGIN/features/lamp.html</link>"
        "<description>A lamp, and who lights it.</description></item></channel></rss>",
    ),
    "/features/lamp.png": DemoAnswer(body=_PIXEL, media_type="image/png"),
    "/archive/": _page(
        "The archive",
        '<p>Ask slowly.</p><a href="/archive/1.html">One</a> <a href="/archive/2.html">Two</a> '
        '<a href="/archive/letters.html">Letters</a>',
    ),
    "/archive/1.html": _page("Volume one", "<p>It is not yet full.</p>"),
    "/archive/2.html": _page("Volume two", "<p>It is not yet begun.</p>"),
    "/archive/letters.html": _page(
        "Letters",
        "<p>The letters say by themselves that they may be automated for no purpose.</p>",
        head='<script type="application/ld+json">{"@context": "https://schema.org", '
        '"@type": "AutomationPolicyAnnotation", "allowedPurposes": []}</script>',
    ),
    "/forms/contact": _page(
        "Write to us",
        '<form method="post" action="/forms/contact"><input name="message"><button>Send</button>'
        "</form>",
        posted="<!doctype html><title>Thank you</title><p>It will be read.",
    ),
    "/research/notes.html": _page("Notes", "<p>REFUSED: for research and archiving only.</p>"),
    "/viewer/": _page("For browsers", "<p>Headless ones are welcome too.</p>"),
    "/account/": _page("Your account", "<p>REFUSED: for people only.</p>"),
    "/account/settings": _page(
        "Settings", "<p>REFUSED: for people only.</p>", posted="<p>REFUSED: stored."
    ),
    "/api/articles": DemoAnswer(body='["Packet arrives", "Port closes early"]', media_type=JSON),
    "/news/latest": DemoAnswer(body='{"title": "Port closes early"}', media_type=JSON),
    "/old": _redirect("/about"),
    "/shortcut": _redirect("/private/diary.html"),
    "/logo.png": DemoAnswer(body=_PIXEL, media_type="image/png", robots_tag="noai"),
    "/sitemap.xml": DemoAnswer(
        media_type="application/xml",
        body='<?xml version="1.0" encoding="UTF-8"?>'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        "<url><loc>ORIGIN/news/archive.html</loc></url>"
        "<url><loc>ORIGIN/private/diary.html</loc></url></urlset>",
    ),
}
MAX_BODY = 64 * 1024  # octets that are read of a form
NOT_FOUND = DemoAnswer(
    status=404, body="<!doctype html><title>Not found</title><p>There is nothing here."
)


def files(origin: str) -> dict[str, Fetched]:
    """Return the answers of the site at an origin, by path, as if the guard refused nothing."""
    return {path: _to_fetched(answer, origin) for path, answer in PAGES.items()}


def _to_fetched(answer: DemoAnswer, origin: str) -> Fetched:
    headers = [(b"Content-Type", answer.media_type.encode())]
    if answer.robots_tag:
        headers.append((b"X-Robots-Tag", answer.robots_tag.encode()))
    return Fetched(status=answer.status, headers=tuple(headers), body=_body(answer, origin))


def _body(answer: DemoAnswer, origin: str) -> bytes:
    body = answer.body
    if isinstance(body, bytes):
        return body
    return body.replace("ORIGIN", origin).replace("HOST", origin.partition("://")[2]).encode()


class Demonstration:
    """The site at one origin, behind its guard, for servers of both kinds."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        policies = {
            path: _body(answer, self._origin)
            for path, answer in PAGES.items()
            if answer.media_type == TEXT or path in WELL_KNOWN
        }
        # The site shows how a crawler obeys an annotation, so every crawler gets the pages.
        self.guard = Guard(origin, policies, session=_session, max_page=0)
        self.wsgi = WSGIMiddleware(self._wsgi, self.guard)
        self.asgi = ASGIMiddleware(self._asgi, self.guard)

    def _answer(self, method: str, path: str) -> tuple[int, list[tuple[str, str]], bytes]:
        """Return the status, the header fields and the body."""
        answer = self._counts() if path == "/guard" else PAGES.get(path, NOT_FOUND)
        if method == "POST" and answer.posted:
            answer = DemoAnswer(body=answer.posted)
        elif method not in ("GET", "HEAD"):
            answer = DemoAnswer(status=405)
        body = _body(answer, self._origin)
        headers = [("Content-Type", answer.media_type), ("Content-Length", str(len(body)))]
        if answer.location:
            headers.append(("Location", answer.location))
        if answer.robots_tag:
            headers.append(("X-Robots-Tag", answer.robots_tag))
        return answer.status, headers, b"" if method == "HEAD" else body

    def _counts(self) -> DemoAnswer:
        """Return an answer with the numbers of requests by the rule that decided."""
        return DemoAnswer(
            body=json.dumps({"passed": self.guard.passed, "refused": self.guard.refused}),
            media_type=JSON,
        )

    def _wsgi(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        length = environ.get("CONTENT_LENGTH", "")
        if length.isdigit():
            environ["wsgi.input"].read(min(int(length), MAX_BODY))
        status, headers, body = self._answer(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        start_response(f"{status} {HTTPStatus(status).phrase}", headers)
        return [body]

    async def _asgi(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, headers, body = self._answer(scope["method"], scope["path"])
        fields = [(name.lower().encode(), value.encode()) for name, value in headers]
        await send({"type": "http.response.start", "status": status, "headers": fields})
        await send({"type": "http.response.body", "body": body})


def _session(incoming: Incoming) -> Session | None:
    """Return a person's session, which began at the time in the cookie `visitor`, or None.

    A real site would look the session up."""
    try:
        began = int(SimpleCookie(incoming.field("cookie"))["visitor"].value)
        started_at = datetime.fromtimestamp(began, UTC)
    except (CookieError, KeyError, ValueError, OverflowError, OSError):
        return None
    return Session(
        human_initiated=True, carries=credentials(incoming.fields), started_at=started_at
    )


class _Handler(WSGIRequestHandler):
    timeout = 60

    def get_environ(self) -> dict[str, Any]:
        return super().get_environ() | {"RAW_URI": self.path}

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # http.server's name
        pass


class DemoServer(ThreadingMixIn, WSGIServer):
    """The demonstration site. OSError: the address cannot be used."""

    daemon_threads = True

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """`port`: 0 for any free port."""
        super().__init__((host, port), _Handler)
        self.server_name = host  # http.server would ask a name server for a name
        demonstration = Demonstration(self.url.rstrip("/"))
        self.guard = demonstration.guard
        self.set_app(demonstration.wsgi)

    @property
    def url(self) -> str:
        return f"http://{self.server_name}:{self.server_port}/"


@contextmanager
def running(host: str = "127.0.0.1", port: int = 0) -> Iterator[DemoServer]:
    """Serve the site in a thread until the block ends."""
    with DemoServer(host, port) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


# The loggers of Scrapy's messages that are equal for each crawl.
QUIET = (
    *("scrapy.addons", "scrapy.core.engine", "scrapy.crawler", "scrapy.extensions.logstats"),
    *("scrapy.middleware", "scrapy.spidermiddlewares.httperror", "scrapy.utils.log"),
)


if __name__ == "__main__":
    from scrapy import cmdline

    for name in QUIET:  # by filters, because Scrapy resets the levels
        logging.getLogger(name).addFilter(lambda record: record.levelno > logging.INFO)
    # The advice to choose a name for the crawler is for crawls of other sites.
    logging.getLogger("comity.crawler.addon").addFilter(
        lambda record: record.levelno > logging.WARNING
    )
    cmdline.execute(["scrapy", *sys.argv[1:]])
