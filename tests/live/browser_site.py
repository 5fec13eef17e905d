"""A site with a page that asks in every way in which a browser asks: for what is open, and in the same way for what robots.txt
refuses."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Collection, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Loopback, Serve

ROBOTS = "User-agent: *\nDisallow: /private/\n"
OPEN, PRIVATE = "/open/", "/private/"
PATIENCE = 200.0  # seconds that a page waits for what has to come; a browser on a busy machine

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
BODIES: dict[str, tuple[str, bytes]] = {
    "png": ("image/png", PNG),
    "svg": (
        "image/svg+xml",
        b"<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'><g id='a'/></svg>",
    ),
    "css": ("text/css", b"a {}"),
    "js": ("text/javascript", b"0"),
    "html": ("text/html", b"<link rel=icon href=data:,><p>here"),
    "events": ("text/event-stream", b"retry: 600000\ndata: 1\n\n"),
    "bin": ("application/octet-stream", b"here"),
    "rules": ("application/speculationrules+json", b"{}"),
}


# Chromium itself does not always send these: downloads of what is gone, what may wait, and what is a hint.
SPECULATION = {"speculation-prefetch", "speculation-prerender", "speculation-script"}
LOST = SPECULATION | {"gone-frame-download", "closed-popup-download", "fetch-later"}
# Playwright loses this with a route of its own, as scrapy-playwright has one.
LOST_BY_ROUTING = LOST | {"unload-beacon"}

TOTAL = "{total: {label: 'a', amount: {currency: 'EUR', value: '1'}}}"  # of a PaymentRequest


class Way(NamedTuple):
    """A way of asking."""

    ending: str  # of the path of what is asked for: of BODIES
    markup: str = ""  # of the page; § stands for what is asked for, ¶ for the document below, ¤ for the origin of another site
    script: str = ""  # the same, in the page's script
    help: str = ""  # the ending of a document that asks for it
    content: str = ""  # of that document
    is_off: bool = False  # nothing asks so


def _frame(content: str) -> Way:
    return Way(
        "html",
        "<iframe src=¶></iframe>",
        help="html",
        content=f"<link rel=icon href=data:,>{content}",
    )


def _worker(ending: str, script: str, make: str = "new Worker('¶')") -> Way:
    return Way(ending, script=make, help="js", content=script)


def _rules(action: str) -> str:
    return f'<script type=speculationrules>{{"{action}": [{{"urls": ["§"], "eagerness": "immediate"}}]}}</script>'


_CLICK = "querySelector('a').click()"


def _frame_of_popup(script: str) -> Way:
    content = f"<iframe srcdoc='<a href=§ download>a</a>'></iframe><script>onload = () => {{ {script} }}</script>"
    return Way(
        "bin",
        script="window.open('¶')",
        help="html",
        content=f"<link rel=icon href=data:,>{content}",
    )


def _service_worker(ending: str, script: str, then: str = "") -> Way:
    return Way(
        ending,
        script=f"navigator.serviceWorker.register('¶', {{scope: '¶'}}){then}.catch(() => 0)",
        help="js",
        content=script,
    )


def _css(ending: str, rule: str) -> Way:
    return Way(ending, "<link rel=stylesheet href=¶><p class='§'>a</p>", help="css", content=rule)


WAYS: dict[str, Way] = {
    "speculation-prefetch": Way("html", _rules("prefetch")),
    "speculation-prerender": Way("html", _rules("prerender")),
    "speculation-script": Way(
        "html",
        "<script>{const rules = document.createElement('script'); rules.type = 'speculationrules';"
        """rules.textContent = '{"prefetch": [{"urls": ["§"], "eagerness": "immediate"}]}';"""
        "document.head.append(rules)}</script>",
    ),
    "img": Way("png", "<img src=§>"),
    "srcset": Way("png", "<img srcset='§ 1x, §?2 2x'>"),
    "picture": Way("png", "<picture><source srcset=§><img></picture>"),
    "style-attribute": Way("png", "<p style='background: url(§)'>a</p>"),
    "input": Way("png", "<input type=image src=§>"),
    "svg-image": Way("png", "<svg><image href=§ /></svg>"),
    "svg-use": Way("svg", "<svg><use href='§#a'/></svg>"),
    "poster": Way("png", "<video poster=§></video>"),
    "video": Way("bin", "<video src=§ preload=auto></video>"),
    "audio": Way("bin", "<audio src=§ preload=auto></audio>"),
    "track": Way(
        "bin",
        "<video><track src=§ default></video>",
        script="document.querySelectorAll('video').forEach(v => v.load())",
    ),
    "new-image": Way("png", script="new Image().src = '§'"),
    "stylesheet": Way("css", "<link rel=stylesheet href=§>"),
    "preload": Way("png", "<link rel=preload as=image href=§>"),
    "modulepreload": Way("js", "<link rel=modulepreload href=§>"),
    "prefetch": Way("html", "<link rel=prefetch href=§>"),
    "css-import": _css("css", "@import '§';"),
    "css-url": _css("png", "[class='§'] {background: url(§)}"),
    "css-cursor": _css("png", "[class='§'] {cursor: url(§), auto}"),
    "script": Way("js", "<script src=§></script>"),
    "async-script": Way("js", "<script async src=§></script>"),
    "module": Way("js", "<script type=module src=§></script>"),
    "static-import": Way(
        "js", "<script type=module src=¶></script>", help="js", content="import '§'"
    ),
    "dynamic-import": Way("js", script="import('§').catch(() => 0)"),
    "written-script": Way("js", "<script>document.write('<script src=§><\\/script>')</script>"),
    "iframe": Way("html", "<iframe src=§></iframe>"),
    "object": Way("svg", "<object data=§ type=image/svg+xml></object>"),
    "embed": Way("svg", "<embed src=§ type=image/svg+xml>"),
    "nested-frame": _frame("<iframe src=§></iframe>"),
    "srcdoc": Way("png", "<iframe srcdoc='<img src=§>'></iframe>"),
    "image-of-frame": _frame("<img src=§>")._replace(ending="png"),
    "meta-refresh": _frame("<meta http-equiv=refresh content='0; url=§'>"),
    "location": _frame("<script>location = '§'</script>"),
    "form-get": _frame("<form action=§></form><script>document.forms[0].submit()</script>"),
    "form-post": _frame(
        "<form method=post action=§><input name=a></form><script>document.forms[0].submit()</script>"
    ),
    "click": _frame("<a href=§>a</a><script>document.querySelector('a').click()</script>"),
    "window-open": Way("html", script="window.open('§')"),
    "noopener": Way("html", script="window.open('§', '_blank', 'noopener,noreferrer')"),
    "popup-image": Way(
        "png",
        script="window.open('¶')",
        help="html",
        content="<link rel=icon href=data:,><img src=§>",
    ),
    "favicon": Way("png", script="window.open('¶')", help="html", content="<link rel=icon href=§>"),
    "redirect": Way("png", "<img src=/to/§>"),
    "redirects": Way("png", "<img src=/to//to/§>"),
    "frame-redirect": Way("html", "<iframe src=/to/§></iframe>"),
    "fetch-redirect": Way("bin", script="fetch('/to/§').catch(() => 0)"),
    "script-redirect": Way("js", "<script src=/to/§></script>"),
    "fetch": Way("bin", script="fetch('§').catch(() => 0)"),
    "fetch-post": Way("bin", script="fetch('§', {method: 'POST', body: 'a'}).catch(() => 0)"),
    "keepalive": Way("bin", script="fetch('§', {keepalive: true}).catch(() => 0)"),
    "fetch-later": Way("bin", script="self.fetchLater && fetchLater('§', {activateAfter: 100})"),
    "xhr": Way("bin", script="(x => {x.open('GET', '§'); x.send()})(new XMLHttpRequest())"),
    "beacon": Way("bin", script="navigator.sendBeacon('§', 'a')"),
    "ping": Way(
        "bin",
        "<a class=ping href=#a ping=§>a</a>",
        script="document.querySelectorAll('.ping').forEach(a => a.click())",
    ),
    "unload-beacon": Way(
        "bin",
        "<iframe class=gone src=¶></iframe>",
        help="html",
        content="<link rel=icon href=data:,><script>addEventListener('pagehide', () => navigator.sendBeacon('§'))</script>",
    ),
    "eventsource": Way("events", script="new EventSource('§')"),
    "websocket": Way("bin", script="new WebSocket(location.origin.replace('http', 'ws') + '§')"),
    "websocket-of-frame": _frame(
        "<script>new WebSocket(location.origin.replace('http', 'ws') + '§')</script>"
    )._replace(ending="bin"),
    "worker": Way("js", script="new Worker('§')"),
    "module-worker": Way("js", script="new Worker('§', {type: 'module'})"),
    "shared-worker": Way("js", script="new SharedWorker('§')"),
    "import-scripts": _worker("js", "importScripts('§')"),
    "worker-fetch": _worker("bin", "fetch('§').catch(() => 0)"),
    "worker-events": _worker("events", "new EventSource('§')"),
    "nested-worker": _worker("js", "new Worker('§')"),
    "module-worker-import": _worker("js", "import '§'", "new Worker('¶', {type: 'module'})"),
    "shared-worker-fetch": _worker("bin", "fetch('§').catch(() => 0)", "new SharedWorker('¶')"),
    "blob-worker-fetch": Way(
        "bin", script="new Worker(URL.createObjectURL(new Blob([`fetch('${location.origin}§')`])))"
    ),
    "paint-worklet": Way(
        "js", script="CSS.paintWorklet && CSS.paintWorklet.addModule('§').catch(() => 0)"
    ),
    "audio-worklet": Way(
        "js",
        script="new OfflineAudioContext(1, 1, 8000).audioWorklet.addModule('§').catch(() => 0)",
    ),
    "csp-report": Way(
        "bin",
        "<iframe src=¶></iframe>",
        help="html",
        content="<link rel=icon href=data:,><script>0</script>",
    ),
    "link-header": Way(
        "css", "<iframe src=¶></iframe>", help="html", content="<link rel=icon href=data:,>"
    ),
    "download": Way(
        "bin",
        script="window.open('¶')",
        help="html",
        content="<link rel=icon href=data:,><a href=§ download>a</a><script>document.querySelector('a').click()</script>",
    ),
    "frame-download": _frame_of_popup(f"frames[0].document.{_CLICK}"),
    "gone-frame-download": _frame_of_popup(
        f"frames[0].document.{_CLICK}; document.querySelector('iframe').remove()"
    ),
    "closed-popup-download": Way(
        "bin",
        script="window.open('¶')",
        help="html",
        content=f"<link rel=icon href=data:,><a href=§ download>a</a><script>document.{_CLICK}; window.close()</script>",
    ),
    "font-face": _css(
        "bin", "@font-face {font-family: '§'; src: url(§)} [class='§'] {font-family: '§'}"
    ),
    "mask": _css("svg", "[class='§'] {mask-image: url(§)}"),
    "filter": _css("svg", "[class='§'] {filter: url(§#a)}"),
    "form-blank": Way(
        "html",
        "<form class=blank action=§ target=_blank></form>",
        script="document.querySelector('[action=\"§\"]').submit()",
    ),
    "foreign-frame": Way(
        "png",
        "<iframe src=¤¶></iframe>",
        help="html",
        content="<link rel=icon href=data:,><img src=§>",
    ),
    "preflight": Way("bin", script="fetch('¤§', {method: 'PUT'}).catch(() => 0)"),
    "worker-xhr": _worker(
        "bin", "(x => {x.open('GET', '§', false); x.send()})(new XMLHttpRequest())"
    ),
    "service-worker": Way(
        "js", script="navigator.serviceWorker.register('§', {scope: '§'}).catch(() => 0)"
    ),
    "service-worker-import": _service_worker("js", "importScripts('§')"),
    "service-worker-fetch": _service_worker(
        "bin", "addEventListener('install', event => event.waitUntil(fetch('§').catch(() => 0)))"
    ),
    "background-fetch": _service_worker(
        "bin",
        "addEventListener('install', event => event.waitUntil(skipWaiting()))",
        ".then(async found => { while (!found.active) await new Promise(done => setTimeout(done, 10));"
        " await found.backgroundFetch.fetch('§', ['§']) })",
    ),
    "speculation-header": Way("rules"),  # the page's own
    "worker-websocket": _worker(
        "bin", "new WebSocket(location.origin.replace('http', 'ws') + '§')"
    ),
    "shared-worker-websocket": _worker(
        "bin", "new WebSocket(location.origin.replace('http', 'ws') + '§')", "new SharedWorker('¶')"
    ),
    "payment": Way(
        "html",
        script=f"new PaymentRequest([{{supportedMethods: location.origin + '§'}}], {TOTAL}).canMakePayment()",
    ),
    "payment-of-frame": _frame(
        "<iframe></iframe><script>frames[0].eval(`new PaymentRequest([{supportedMethods: parent.location.origin + '§'}],"
        f" {TOTAL}).canMakePayment()`)</script>"
    ),
    # No browser asks for it without its developer tools.
    "source-map": Way(
        "bin",
        "<script src=¶></script>",
        help="js",
        content="0\n//# sourceMappingURL=§",
        is_off=True,
    ),
}


class Site:
    """The site, on a server of its own."""

    def __init__(
        self, serve: Serve, *, lost: Collection[str] = (), certificate: Path | None = None
    ) -> None:
        """`lost`: ways whose open requests may stay out. `certificate`: file of a certificate and its key, for https."""
        self._lost = lost
        self._answer = serve.Answer
        routes: dict[str, Any] = {"/robots.txt": ROBOTS, "/": self._page, "/done": self._done}
        for name, way in WAYS.items():
            for folder in (OPEN, PRIVATE):
                target = self.target(name, folder)
                routes[target] = self._socket if "websocket" in name else self._body(way.ending)
                routes[f"/to/{target}"] = serve.Answer(status=302, headers={"Location": target})
                routes[f"/to//to/{target}"] = serve.Answer(
                    status=302, headers={"Location": f"/to/{target}"}
                )
                if way.help:
                    content_type, _ = BODIES[way.help]
                    content = way.content.replace("§", target)
                    routes[self._help(name, folder)] = serve.Answer(
                        content, content_type=content_type, headers=_fields(name, target)
                    )
        self.server: Loopback = serve(routes, certificate=certificate)
        self._other: Loopback = serve(routes, "127.0.0.2", certificate=certificate)

    @staticmethod
    def target(name: str, folder: str) -> str:
        return f"{folder}{name}.{WAYS[name].ending}"

    @staticmethod
    def _help(name: str, folder: str) -> str:
        return f"/help{folder}{name}.{WAYS[name].help}"

    @property
    def expected(self) -> set[str]:
        """The paths that a browser has to come to."""
        return {
            self.target(name, OPEN)
            for name, way in WAYS.items()
            if not way.is_off and name not in self._lost
        }

    @property
    def refused(self) -> list[str]:
        """The paths of requests that a file refuses and that came all the same."""
        return [path for path in self._paths if path.startswith(PRIVATE)]

    @property
    def missing(self) -> set[str]:
        return self.expected - {path.partition("?")[0] for path in self._paths}

    @property
    def _paths(self) -> list[str]:
        return self.server.paths + self._other.paths

    def _page(self, handler: BaseHTTPRequestHandler) -> Any:
        markup, script = [], []
        for name, way in WAYS.items():
            for folder in (OPEN, PRIVATE):
                markup.append(self._filled(way.markup, name, folder))
                script.append(f"try {{ {self._filled(way.script, name, folder)} }} catch (_) {{}}")
        gone = "addEventListener('load', () => document.querySelectorAll('.gone').forEach(frame => frame.remove()))"
        icon = "<!doctype html><title>All ways</title><link rel=icon href=data:,>"
        text = "\n".join((icon, *markup, "<script>", *script, gone, "</script>"))
        rules = ", ".join(
            f'"{self.target("speculation-header", folder)}"' for folder in (OPEN, PRIVATE)
        )
        return self._answer(
            text, content_type="text/html; charset=utf-8", headers={"Speculation-Rules": rules}
        )

    def _filled(self, text: str, name: str, folder: str) -> str:
        return (
            text.replace("§", self.target(name, folder))
            .replace("¶", self._help(name, folder) if WAYS[name].help else "")
            .replace("¤", self._other.origin)
        )

    def _body(self, ending: str) -> Any:
        content_type, body = BODIES[ending]
        return self._answer(body, content_type=content_type)

    def _done(self, handler: BaseHTTPRequestHandler) -> Any:
        """Answers when all has come that has to."""
        tick = threading.Event()
        for _ in range(int(PATIENCE / 0.1)):
            if not self.missing:
                break
            tick.wait(0.1)
        return self._answer("done")

    def _socket(self, handler: BaseHTTPRequestHandler) -> Any:
        """A WebSocket that says one thing."""
        key = handler.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(
            hashlib.sha1(key.encode()).digest()
        ).decode()  # RFC 6455 section-4.2.2
        handler.send_response(101)
        for name, value in {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Accept": accept,
        }.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(b"\x81\x05hello\x88\x02\x03\xe8")


def _fields(name: str, target: str) -> dict[str, str]:
    match name:
        case "csp-report":
            return {"Content-Security-Policy": f"script-src 'none'; report-uri {target}"}
        case "link-header":
            return {"Link": f"<{target}>; rel=preload; as=style"}
    return {}


def names(paths: Iterator[str] | list[str] | set[str]) -> list[str]:
    """The ways by which these paths were come to."""
    return sorted({path.rpartition("/")[2].partition(".")[0] for path in paths})
