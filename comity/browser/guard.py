"""Guard the way between a browser and the network.

How it works. Playwright's `route` only reports the first request of a chain of redirects, and no
requests of shared and service workers, worklets and pop-ups in other processes. The domain `Fetch`
of the Chrome DevTools Protocol covers the whole browser: it pauses each hop of a request of a frame
or worker just before it goes out.

    Fetch.requestPaused, request stage     judge the request, wait for its turn (admission.py),
                                           and continue it or let it fail as blocked by the client
    Fetch.requestPaused, response stage    the header fields came: the delay of the host counts from
                                           now; a redirect leads to another paused request

Some requests are never reported: those of a frame that is gone, of the browser itself, WebSockets
and others (docs/browsers.md). So the browser has one way out, the proxy (proxy.py), which asks the
guard about each request. A request that was admitted before goes out. All others are judged, and
wait for their turn, in the proxy."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import quote, urlsplit
from weakref import WeakKeyDictionary, WeakValueDictionary

from playwright.async_api import Browser, BrowserContext, BrowserType, CDPSession, Page
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Request as PlaywrightRequest

from comity.bounded import Bounded
from comity.browser.admission import Admissions, BrowserAdmission, PageRequest
from comity.browser.http1 import BrowserRequest
from comity.browser.kinds import ALL, DOCUMENT, SOCKET, UNTOLD, kind_of
from comity.browser.proxy import BrowserProxy, Passage, Route
from comity.browser.refusals import PageRefusals, Refusal, Refusals
from comity.gate.fetching.network import Network
from comity.gate.fetching.proxies import Proxy
from comity.gate.fetching.reach import Reach
from comity.policies import Decision, PolicyError
from comity.policies.syntax.urls import origin_or_empty

if TYPE_CHECKING:
    from comity.client import Client

logger = logging.getLogger(__name__)

# Seconds after which a request without an answer counts as failed. The protocol does not report
# requests that a page gives up.
UNANSWERED = 120.0
MAX_FRAMES = 10_000  # the maximum number of frames, and of redirects, that are remembered
Key = tuple[CDPSession, str]  # the session of a browser, and the id of a request in it
_USERINFO = re.compile("(?<=://)[^/?#@]*@")  # RFC 3986 section-3.2.1


@asynccontextmanager
async def guard(
    client: Client, *, automations: Iterable[str] = ("cdp", "headless")
) -> AsyncIterator[BrowserGuard]:
    """Guard browsers with the agent and settings of a client.

    `automations`: the automations of the browsers."""
    parts = client.parts
    admissions = Admissions(
        parts, client.counts, automations=automations, judged=ALL, is_led_by_operator=True
    )
    guarded = BrowserGuard(admissions, client.agent.user_agent, lambda: parts.client.network)
    guarded.start()
    try:
        yield guarded
    finally:
        await guarded.close()


class BrowserGuard:
    """The guard of one or more browsers."""

    def __init__(
        self, admissions: Admissions, user_agent: str, network: Callable[[], Network]
    ) -> None:
        """Create a guard without browsers.

        `user_agent`: the User-Agent of the browsers. `network`: returns the Network that connects
        to servers."""
        self.admissions = admissions
        self.user_agent = user_agent
        self.proxy = BrowserProxy(self, network, admissions.signed_fields)
        self.session_fields = frozenset(("authorization", "cookie", admissions.key_header.lower()))
        self._refusals = Refusals()
        # For each task that works on a request: the session, and the id of the frame or "".
        self._waiting: dict[asyncio.Task[None], Key] = {}
        self._out: dict[Key, _Out] = {}  # requests without an answer yet
        # Requests whose answer was a redirect.
        self._hops: Bounded[Key, BrowserAdmission] = Bounded(MAX_FRAMES)
        # The URL in each frame, page or worker, by its id.
        self._sites: Bounded[str, str] = Bounded(MAX_FRAMES)
        self._main_frames: set[str] = set()  # the ids of the main frames of pages
        self._entering: WeakKeyDictionary[Page, asyncio.Task[None]] = WeakKeyDictionary()
        # Pages, by the ids of their main frames and of the main frames of their pop-ups.
        self._pages: WeakValueDictionary[str, Page] = WeakValueDictionary()

    def refusals(self, page: Page) -> PageRefusals:
        """Return the refused requests of a page."""
        return self._refusals.for_page(page)

    def start(self) -> None:
        """Start the proxy. Call this method within the event loop."""
        self.proxy.start()

    async def close(self) -> None:
        await self.proxy.close()

    async def launch(self, browser_type: BrowserType, **options: Any) -> Browser:
        """Start a guarded browser. `options`: the options of Playwright's `launch`.

        PolicyError: the browser is not Chromium."""
        check_type(browser_type)
        browser = await browser_type.launch(**self.launch_options(options))
        return await self.adopt(browser, proxy=options.get("proxy"))

    def launch_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return Playwright's options for a browser that sends everything to comity's proxy.

        `options`: the options of Playwright's `launch`. If they have a proxy, comity's proxy sends
        the requests on to that proxy."""
        server = self.proxy.listen(route_of(options.get("proxy")))
        arguments = [
            *(options.get("args") or ()),
            f"--proxy-server={server}",
            "--proxy-bypass-list=<-loopback>",
            f"--ignore-certificate-errors-spki-list={self.proxy.identity.fingerprint}",
            "--webrtc-ip-handling-policy=disable_non_proxied_udp",
            "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
            f"--user-agent={self.user_agent}",
        ]
        return {
            **{name: value for name, value in options.items() if name != "proxy"},
            "args": arguments,
        }

    async def adopt(
        self,
        browser: Browser,
        *,
        proxy: Mapping[str, str] | None = None,
        is_started_elsewhere: bool = False,
    ) -> Browser:
        """Guard a running browser. Make its contexts with the returned browser.

        `proxy`: the proxy of contexts without their own, as in Playwright's options. None means no
        proxy.
        `is_started_elsewhere`: True if the browser was started without `launch_options`.
        PolicyError: the browser is not Chromium, or a page is open already."""
        await self.watch(browser)
        return cast(
            Browser,
            _GuardedBrowser(browser, self.proxy, proxy, is_started_elsewhere=is_started_elsewhere),
        )

    async def watch(self, browser: Browser) -> None:
        """Judge all requests of a browser that its protocol reports.

        PolicyError: the browser is not Chromium, or a page is open already."""
        check_type(browser.browser_type)
        for page in (page for context in browser.contexts for page in context.pages):
            if origin_or_empty(page.url):  # its requests would still go out unguarded
                raise PolicyError(
                    f"a page is open already, {page.url}: "
                    "guard a browser before its pages go anywhere"
                )
        session = await browser.new_browser_cdp_session()
        session.on("Fetch.requestPaused", partial(self._on_paused, session))
        session.on("Target.targetCreated", self._on_target_created)
        session.on("Target.targetDestroyed", self._on_target_destroyed)
        browser.on("disconnected", lambda _: self._on_disconnected(session))
        browser.on("context", self._enter)
        for context in browser.contexts:
            self._enter(context)
        await session.send(
            "Target.setDiscoverTargets", {"discover": True, "filter": [{"type": "page"}]}
        )
        await session.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]})

    def _enter(self, context: BrowserContext) -> None:
        """Listen to Playwright's events, because only these name the page of a request."""
        context.on("requestfailed", self._on_request_failed)
        context.on("page", self._on_page)

    def _on_page(self, page: Page) -> None:
        page.on(
            "websocket",
            lambda opened: opened.on(
                "socketerror", lambda _: self._refusals.note_failure(_http(opened.url), page)
            ),
        )
        self._entering[page] = asyncio.create_task(self._enter_page(page))

    async def _enter_page(self, page: Page) -> None:
        with suppress(PlaywrightError):  # the page is closed already
            session = await page.context.new_cdp_session(page)
            info = await session.send("Target.getTargetInfo")
            await session.detach()
            main_frame = info["targetInfo"]["targetId"]
            self._pages.setdefault(main_frame, page)
            self._refusals.for_page(page).main_frame = main_frame

    async def wait_for_page(self, page: Page) -> None:
        """Wait until the requests of this page and its pop-ups can be recognised."""
        await self._entering[page]

    # Events of the browser

    def _on_target_created(self, event: Mapping[str, Any]) -> None:
        """Note a new page. The page that opens a pop-up leads to it, even without a Referer."""
        info = event["targetInfo"]
        self._main_frames.add(info["targetId"])  # the id of a page is that of its main frame
        opener = info.get("openerId", "")
        if (site := self._sites.get(opener)) is not None:
            self._sites.setdefault(info["targetId"], site)
        if (page := self._pages.get(opener)) is not None:
            self._pages.setdefault(info["targetId"], page)

    def _on_target_destroyed(self, event: Mapping[str, Any]) -> None:
        """Give up the turns of a closed page's requests."""
        self._main_frames.discard(event["targetId"])
        for task, (_, frame) in self._waiting.items():
            if frame == event["targetId"]:
                task.cancel()

    def _on_paused(self, session: CDPSession, event: dict[str, Any]) -> None:
        is_answer = "responseStatusCode" in event or "responseErrorReason" in event
        key = session, event["requestId"]
        task = asyncio.create_task(
            self._on_response(key, event) if is_answer else self._on_request(key, event)
        )
        # A download outlives its page. It has no networkId.
        self._waiting[task] = session, event["frameId"] if "networkId" in event else ""
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        del self._waiting[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error(
                "A request of the browser was not judged, and does not go out: %(error)r",
                {"error": error},
            )

    def _on_disconnected(self, session: CDPSession) -> None:
        for key in [key for key in self._out if key[0] is session]:
            self._give_up(key)
        for task, (other, _) in self._waiting.items():
            if other is session:
                task.cancel()

    async def _on_request(self, key: Key, event: dict[str, Any]) -> None:
        request = event["request"]
        url, fields = request["url"], request["headers"]
        # data:, blob: and file: need no network.
        if urlsplit(url).scheme not in ("http", "https"):
            await self._continue(key)
            return
        kind = kind_of(event["resourceType"])
        frame, before = (
            event["frameId"],
            self._hops.pop((key[0], event.get("redirectedRequestId", "")), None),
        )
        page_request = PageRequest(
            url=url,
            method=request["method"],
            kind=kind,
            fields=fields,
            leads_there=before.url
            if before
            else fields.get("Referer") or self._sites.get(frame, ""),
            after=before,
            is_of_main_frame=frame in self._main_frames,
        )
        try:
            admission = await self.admissions.admit(page_request)
        except BaseException:
            await self._send(key, "Fetch.failRequest", errorReason="BlockedByClient")
            raise
        if isinstance(admission, Decision):
            self._note_refusal(Refusal(url, kind.name, admission), self._pages.get(frame))
            await self._send(key, "Fetch.failRequest", errorReason="BlockedByClient")
            return
        # The document of a frame, or the script of a worker.
        if kind is DOCUMENT or event.get("networkId") == frame:
            self._sites[frame] = url
        self._out[key] = _Out(admission, request["method"], lambda: self._give_up(key))
        await self._continue(key, interceptResponse=True, **self._changes(page_request))

    async def _on_response(self, key: Key, event: dict[str, Any]) -> None:
        fields = event.get("responseHeaders", ())
        status: int = event.get("responseStatusCode", 0)  # 0: the request failed
        out = self._out.pop(key, None)
        if out is not None:
            octets = tuple((_octets(field["name"]), _octets(field["value"])) for field in fields)
            out.note_answer(status, octets)
            page = self._pages.get(frame := event["frameId"])
            if 300 <= status < 400:
                self._hops[key] = out.admission
            elif page is not None and event["resourceType"] == "Document":
                self._refusals.for_page(page).note_document(frame, octets)
        await self._continue(key)

    def _on_request_failed(self, request: PlaywrightRequest) -> None:
        url = request.url
        given_up = next((key for key, out in self._out.items() if out.admission.url == url), None)
        if given_up is not None:
            self._give_up(given_up)
        with suppress(PlaywrightError):  # the request belongs to no page
            self._refusals.note_failure(url, request.frame.page)

    def _give_up(self, key: Key) -> None:
        if (out := self._out.pop(key, None)) is not None:
            out.end()

    def _note_refusal(self, refusal: Refusal, page: Page | None) -> None:
        """Note a refusal. `page`: None means that Playwright may tell the page later."""
        if page is not None:
            self._refusals.for_page(page).add(refusal)
        else:
            self._refusals.note(refusal)

    def _changes(self, page_request: PageRequest) -> dict[str, Any]:
        """Return the parameters that change the header fields of a request.

        A redirect to another origin loses its credentials, which Playwright repeats at each hop. A
        request for a document gets the fields with the purposes of the agent."""
        fields = dict(page_request.fields)
        if page_request.after is not None and origin_or_empty(
            page_request.after.url
        ) != origin_or_empty(page_request.url):
            fields = {
                name: value
                for name, value in fields.items()
                if name.lower() not in self.session_fields
            }
        if page_request.kind is DOCUMENT:
            names = set(map(str.lower, fields))
            fields |= {
                name: value
                for name, value in self.admissions.purpose_fields.items()
                if name.lower() not in names
            }
        if fields == page_request.fields:
            return {}
        # The browser adds the right cookies by itself.
        return {
            "headers": [
                {"name": name, "value": value}
                for name, value in fields.items()
                if name.lower() != "cookie"
            ]
        }

    # Commands to the browser

    async def _continue(self, key: Key, **parameters: Any) -> None:
        if not await self._send(key, "Fetch.continueRequest", **parameters):
            self._give_up(key)

    async def _send(self, key: Key, method: str, **parameters: Any) -> bool:
        """Send a command about a request. Return False if the request does not exist any more."""
        session, number = key
        try:
            await session.send(method, {"requestId": number, **parameters})
        except PlaywrightError:
            return False
        return True

    # Questions of the proxy

    async def let_out(self, request: BrowserRequest) -> Passage | None:
        """Return the permission for a request that came to the proxy. None means a refusal.

        A request that was admitted already, when the protocol reported it, goes out once. The
        protocol did not report other requests, so they are judged now. The browser's own requests
        are refused: no site led to them (Fetch Metadata section-2.3), and the operator did not ask
        for them."""
        for out in self._out.values():
            if not out.is_let_out and (out.method, out.url) == (request.method, request.url):
                out.is_let_out = True
                return _ToldPassage(out)
        fields = request.fields
        if self._is_own(fields):
            logger.debug(
                "The browser does not get what it wants for itself: %(url)s", {"url": request.url}
            )
            return None
        kind = SOCKET if request.is_socket else UNTOLD
        page_request = PageRequest(
            url=request.url,
            method=request.method,
            kind=kind,
            fields=fields,
            leads_there=fields.get("referer") or fields.get("origin", ""),
            may_be_script=kind is UNTOLD and "sec-fetch-dest" not in fields,
        )
        admission = await self.admissions.admit(page_request)
        if isinstance(admission, Decision):
            self._refusals.note(Refusal(request.url, kind.name, admission))
            return None
        return admission

    def _is_own(self, fields: Mapping[str, str]) -> bool:
        """Return True for a request of the browser itself, for example for updates.

        Requests that it makes for a page (Background Fetch) have the origin of the page."""
        if fields.get("sec-fetch-site") != "none" or fields.get("sec-fetch-mode") == "navigate":
            return False
        origin = fields.get("origin", "")
        return origin not in map(origin_or_empty, self._sites.values())

    def expected_passage(self, origin: str) -> Passage | None:
        """Return the permission for an admitted request to this origin.

        None means that no such request is expected at the proxy."""
        for out in self._out.values():
            if not out.is_let_out and origin_or_empty(out.url) == origin:
                return _ToldPassage(out)
        return None


class _ToldPassage(NamedTuple):
    """The permission of a request that the protocol reports.

    The protocol reports its answer, too."""

    out: _Out

    @property
    def referrer_reach(self) -> Reach | None:
        return self.out.admission.referrer_reach

    def note_no_server(self) -> None:
        self.out.is_let_out = False

    def note_answer(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Do nothing: `Fetch.requestPaused` reports the answer."""

    def note_end(self) -> None:
        """Do nothing: `Fetch.requestPaused` or Playwright reports the end."""


class _Out:
    """An admitted request without an answer yet."""

    def __init__(
        self, admission: BrowserAdmission, method: str, give_up: Callable[[], None]
    ) -> None:
        self.admission = admission
        self.method = method
        self.url = _USERINFO.sub("", admission.url)  # as the browser sends it
        self.is_let_out = False  # True after the proxy has let it out
        self._timer = asyncio.get_running_loop().call_later(UNANSWERED, give_up)

    def note_answer(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._timer.cancel()
        self.admission.note_answer(status, headers)

    def end(self) -> None:
        self._timer.cancel()
        self.admission.note_end()


def _octets(text: str) -> bytes:
    return text.encode("latin-1", "replace")


def check_type(browser_type: BrowserType) -> None:
    """Raise PolicyError if a browser is not Chromium."""
    if browser_type.name != "chromium":
        raise PolicyError(f"{browser_type.name} does not report its requests: use Chromium")


class _GuardedBrowser:
    """A browser that makes contexts with the proxy as their only way out."""

    def __init__(
        self,
        browser: Browser,
        guarding: BrowserProxy,
        proxy: Mapping[str, str] | None,
        *,
        is_started_elsewhere: bool,
    ) -> None:
        self._browser = browser
        self._guarding = guarding
        self._proxy = proxy
        self._is_started_elsewhere = is_started_elsewhere

    def __getattr__(self, name: str) -> Any:
        return getattr(self._browser, name)

    async def new_context(self, **options: Any) -> BrowserContext:
        return await self._browser.new_context(**self._options(options))

    async def new_page(self, **options: Any) -> Page:
        return await self._browser.new_page(**self._options(options))

    def _options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a context that uses comity's proxy.

        A browser that was started elsewhere does not trust the key of comity's proxy, so the
        context accepts all certificates. In place of the browser, the proxy then refuses servers
        with invalid certificates, unless `options` accept these."""
        route, new_options = route_of(options.get("proxy") or self._proxy), dict(options)
        if self._is_started_elsewhere and not options.get("ignore_https_errors"):
            route, new_options["ignore_https_errors"] = route._replace(is_strict=True), True
        return new_options | {"proxy": {"server": self._guarding.listen(route)}}


def route_of(proxy: Mapping[str, str] | None) -> Route:
    """Return the route for the proxy in Playwright's options. PolicyError: it is not HTTP."""
    if not proxy:
        return Route()
    scheme, separator, address = proxy["server"].rpartition("://")
    credentials = ":".join(
        quote(proxy[name], safe="") for name in ("username", "password") if name in proxy
    )
    server = f"{scheme}{separator}{credentials}{credentials and '@'}{address}"
    return Route(
        Proxy.parse("the proxy of a browser", server, "utf-8", remedy="write http://host:port"),
        proxy.get("bypass", ""),
    )


def _http(url: str) -> str:
    """Return the URL of a WebSocket with http in place of ws."""
    return "http" + url.removeprefix("ws")
