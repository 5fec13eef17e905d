"""Stands between a browser and the network.

How it works. Playwright's `route` is asked about the first request of a chain of redirects only, and not about what shared and
service workers, worklets and pop-ups of other processes ask for. The Chrome DevTools Protocol has `Fetch` for the browser as a
whole, too: there each hop of each request of each frame and worker is paused, nearest to the network, as it is about to go out.
So requests pass these:

    Fetch.requestPaused, request stage     judged, waits for its turn (admission.py); goes on, or fails as blocked by the client
    Fetch.requestPaused, response stage    the header fields came: its turn counts from now; a redirect comes back as a request

What never comes there is switched off, or led around (docs/browsers.md has the list with what was measured):

    WebSockets of pages        Playwright replaces them in each frame: they are made by sockets.py
    WebSockets of workers      the browser has a SOCKS proxy for WebSockets alone, behind which there is nothing
    service workers            their script is refused, and so are their updates, which nobody sees
    speculation rules          a script takes them out of each document, the header field is taken off its answer
    WebRTC, WebTransport       no UDP but through a proxy; a script takes the names away, in frames
    payments, federated log-in what they need the browser asks for by itself; a script takes the names away"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from playwright.async_api import Browser, BrowserContext, CDPSession, Page
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Request as PlaywrightRequest

from comity.bounded import Bounded
from comity.browser.admission import Admission, Admissions, PageRequest, refusal_of
from comity.browser.kinds import ALL, DOCUMENT, kind_of
from comity.browser.refusals import PageRefusals, Refusal, Refusals
from comity.browser.sockets import Sockets
from comity.policies import Decision, PolicyError
from comity.policies.syntax.urls import origin_or_empty

if TYPE_CHECKING:
    from comity.client import Client

logger = logging.getLogger(__name__)

UNANSWERED = 120.0  # seconds after which a request without an answer counts as failed: the protocol does not tell who gave up
MAX_FRAMES = 10_000  # whose documents are remembered

# Nothing answers there. It stands for WebSockets alone, and also for those to this machine.
NO_SOCKETS = "socks=socks5://127.0.0.1:1"

# In the main world of each document before its own scripts. What stands in the markup is removed before it counts: both wait for
# the next microtask, and this one was first.
SCRIPT = """(() => {
    const remove = root => root.querySelectorAll('script[type=speculationrules i]').forEach(script => script.remove());
    const watch = root => new MutationObserver(() => remove(root)).observe(
        root, {childList: true, subtree: true, attributes: true, attributeFilter: ['type']});
    watch(document);
    const attach = Element.prototype.attachShadow;
    Element.prototype.attachShadow = function (init) {
        const root = attach.call(this, init);
        watch(root);
        return root;
    };
    for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'WebTransport', 'WebSocketStream', 'PaymentRequest',
        'IdentityCredential', 'IdentityProvider']) delete self[name];
    delete Navigator.prototype.credentials;
})();"""


def launch_arguments(*, user_agent: str = "", proxy: str = "") -> list[str]:
    """The arguments of Chromium that switch off what nobody could judge: for `args` of `launch`.

    `user_agent`: of what pages do not send themselves. `proxy`: URL of the proxy that the browser is to use, "" for none."""
    server = proxy or "direct://"
    return [
        f"--proxy-server=http={server};https={server};{NO_SOCKETS}",
        "--proxy-bypass-list=<-loopback>",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        *([f"--user-agent={user_agent}"] if user_agent else []),
    ]


async def guard(context: BrowserContext, client: Client, *, automations: Iterable[str] = ("cdp", "headless")) -> BrowserGuard:
    """Guard the browser of a context, this one and its others, as the client says. PolicyError for a browser that is not
    Chromium, and where a page is open already.

    `automations`: by which it is driven."""
    guarded = BrowserGuard(
        Admissions(client.parts, client.counts, automations=automations, judged=ALL, is_led_by_operator=True),
        client.agent.user_agent,
    )
    browser = context.browser
    if browser is None:
        raise unsupported("of an unknown kind")
    await guarded.watch(browser)
    for other in browser.contexts:
        await guarded.enter(other)
        other.on("page", guarded.enter_page)
        for page in other.pages:
            await guarded.enter_page(page)
    return guarded


class BrowserGuard:
    """The guard of one browser."""

    def __init__(self, admissions: Admissions, user_agent: str) -> None:
        self.admissions = admissions
        self.user_agent = user_agent
        self.session_fields = frozenset(("authorization", "cookie", admissions.key_header.lower()))
        self._refusals = Refusals()
        self._sockets = Sockets(admissions, self._note_refusal, user_agent)
        self._session: CDPSession | None = None
        self._waiting: dict[asyncio.Task[None], str] = {}  # what is asked or answered now -> id of its frame
        self._out: dict[str, _Out] = {}  # request id -> a request that is not answered yet
        self._hops: Bounded[str, Admission] = Bounded(MAX_FRAMES)  # request id -> one that was answered by a redirect
        self._sites: Bounded[str, str] = Bounded(MAX_FRAMES)  # id of a frame, page or worker -> URL of what is in it
        self._main_frames: set[str] = set()  # ids of those of pages
        self._pages: WeakValueDictionary[str, Page] = WeakValueDictionary()  # id of its main frame, or a pop-up's of it -> page

    def refusals(self, page: Page) -> PageRefusals:
        """The requests of the page that were refused."""
        return self._refusals.for_page(page)

    async def watch(self, browser: Browser) -> None:
        """Stand between this browser and the network."""
        if browser.browser_type.name != "chromium":
            raise unsupported(browser.browser_type.name)
        for page in (page for context in browser.contexts for page in context.pages):
            if origin_or_empty(page.url):  # what it asks for would go on to go out as it does
                raise PolicyError(f"a page is open already, {page.url}: guard a browser before its pages go anywhere")
        self._session = session = await browser.new_browser_cdp_session()
        session.on("Fetch.requestPaused", self._on_paused)
        session.on("Target.targetCreated", self._on_target_created)
        session.on("Target.targetDestroyed", self._on_target_destroyed)
        browser.on("disconnected", lambda _: self._on_disconnected())
        await session.send("Target.setDiscoverTargets", {"discover": True, "filter": [{"type": "page"}]})
        await session.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]})

    async def enter(self, context: BrowserContext) -> None:
        """See to what pages of this context do beside plain requests."""
        context.on("requestfailed", self._on_request_failed)
        await context.add_init_script(SCRIPT)
        await self._sockets.enter(context)

    async def enter_page(self, page: Page) -> None:
        """See to what this page does, and know that it does it, and what its pop-ups do."""
        with suppress(PlaywrightError):  # it is closed already
            session = await page.context.new_cdp_session(page)
            info = await session.send("Target.getTargetInfo")
            await session.detach()
            self._pages[info["targetInfo"]["targetId"]] = page
            self._refusals.for_page(page).main_frame = info["targetInfo"]["targetId"]
            await self._sockets.enter(page)

    # What the browser tells

    def _on_target_created(self, event: Mapping[str, Any]) -> None:
        """A pop-up is led to by the page that opens it, whatever it says of its Referer."""
        info = event["targetInfo"]
        self._main_frames.add(info["targetId"])  # the id of a page is that of its main frame
        opener = info.get("openerId", "")
        if (site := self._sites.get(opener)) is not None:
            self._sites.setdefault(info["targetId"], site)
        if (page := self._pages.get(opener)) is not None:
            self._pages.setdefault(info["targetId"], page)

    def _on_target_destroyed(self, event: Mapping[str, Any]) -> None:
        """A page that is closed gives up the turns of what it waits for."""
        self._main_frames.discard(event["targetId"])
        for task, frame in self._waiting.items():
            if frame == event["targetId"]:
                task.cancel()

    def _on_paused(self, event: dict[str, Any]) -> None:
        is_answer = "responseStatusCode" in event or "responseErrorReason" in event
        task = asyncio.create_task(self._on_response(event) if is_answer else self._on_request(event))
        self._waiting[task] = event["frameId"]
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        del self._waiting[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("A request of the browser was not judged, and does not go out: %(error)r", {"error": error})

    def _on_disconnected(self) -> None:
        for out in self._out.values():
            out.end()
        self._out.clear()
        for task in self._waiting:
            task.cancel()

    async def _on_request(self, event: dict[str, Any]) -> None:
        request, number = event["request"], event["requestId"]
        url, fields = request["url"], request["headers"]
        if urlsplit(url).scheme not in ("http", "https"):  # data:, blob:, file: nothing of it goes out
            await self._continue(number)
            return
        kind = kind_of(event["resourceType"])
        frame, before = event["frameId"], self._hops.pop(event.get("redirectedRequestId", ""), None)
        page_request = PageRequest(
            url=url,
            method=request["method"],
            kind=kind,
            fields=fields,
            leads_there=before.url if before else fields.get("Referer") or self._sites.get(frame, ""),
            after=before,
            is_of_main_frame=frame in self._main_frames,
        )
        try:
            if fields.get("Service-Worker") == "script":
                admission: Admission | Decision = refusal_of(url, "service workers are off: nobody sees their updates")
            else:
                admission = await self.admissions.admit(page_request)
        except BaseException:
            await self._send("Fetch.failRequest", requestId=number, errorReason="BlockedByClient")
            raise
        if isinstance(admission, Decision):
            self._note_refusal(Refusal(url, kind.name, admission), self._pages.get(frame))
            await self._send("Fetch.failRequest", requestId=number, errorReason="BlockedByClient")
            return
        if kind is DOCUMENT or event.get("networkId") == frame:  # a frame's, a worker's
            self._sites[frame] = url
        self._out[number] = _Out(admission, lambda: self._give_up(number))
        await self._continue(number, interceptResponse=True, **self._changes(page_request))

    async def _on_response(self, event: dict[str, Any]) -> None:
        number, fields = event["requestId"], event.get("responseHeaders", ())
        status: int = event.get("responseStatusCode", 0)  # 0: it failed
        out = self._out.pop(number, None)
        if out is not None:
            octets = tuple((_octets(field["name"]), _octets(field["value"])) for field in fields)
            out.answered(status, octets)
            page = self._pages.get(frame := event["frameId"])
            if 300 <= status < 400:
                self._hops[number] = out.admission
            elif page is not None and event["resourceType"] == "Document":
                self._refusals.for_page(page).showed(frame, octets)
        others = [field for field in fields if field["name"].lower() != "speculation-rules"]
        if len(others) < len(fields):
            await self._send("Fetch.continueResponse", requestId=number, responseCode=status, responseHeaders=others)
        else:
            await self._continue(number)

    def _on_request_failed(self, request: PlaywrightRequest) -> None:
        url = request.url
        for number, out in list(self._out.items()):
            if out.admission.url == url:  # it was given up
                out.end()
                del self._out[number]
                break
        if "BLOCKED_BY_CLIENT" in (request.failure or ""):
            try:
                page = request.frame.page
            except PlaywrightError:  # of no page
                return
            self._refusals.failed(url, page)

    def _give_up(self, number: str) -> None:
        if (out := self._out.pop(number, None)) is not None:
            out.end()

    def _note_refusal(self, refusal: Refusal, page: Page | None) -> None:
        """`page`: None where Playwright may tell."""
        if page is not None:
            self._refusals.for_page(page).add(refusal)
        else:
            self._refusals.note(refusal)

    def _changes(self, page_request: PageRequest) -> dict[str, Any]:
        """The parameters that change the header fields of a request. A redirect to another origin loses its credentials, which
        Playwright repeats at each hop; a document says what it is asked for."""
        fields = dict(page_request.fields)
        if page_request.after is not None and origin_or_empty(page_request.after.url) != origin_or_empty(page_request.url):
            fields = {name: value for name, value in fields.items() if name.lower() not in self.session_fields}
        if page_request.kind is DOCUMENT:
            names = set(map(str.lower, fields))
            fields |= {name: value for name, value in self.admissions.purpose_fields.items() if name.lower() not in names}
        if fields == page_request.fields:
            return {}
        # The browser adds the cookies that are right.
        return {"headers": [{"name": name, "value": value} for name, value in fields.items() if name.lower() != "cookie"]}

    # What it is told

    async def _continue(self, number: str, **parameters: Any) -> None:
        if not await self._send("Fetch.continueRequest", requestId=number, **parameters):
            self._give_up(number)

    async def _send(self, method: str, **parameters: Any) -> bool:
        """False where the request is gone."""
        assert self._session is not None
        try:
            await self._session.send(method, parameters)
        except PlaywrightError:
            return False
        return True


class _Out:
    """A request that is out."""

    def __init__(self, admission: Admission, give_up: Callable[[], None]) -> None:
        self.admission = admission
        self._timer = asyncio.get_running_loop().call_later(UNANSWERED, give_up)

    def answered(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._timer.cancel()
        self.admission.answered(status, headers)

    def end(self) -> None:
        self._timer.cancel()
        self.admission.ended()


def _octets(text: str) -> bytes:
    return text.encode("latin-1", "replace")


def unsupported(browser: str) -> PolicyError:
    return PolicyError(f"a browser {browser} does not tell all of its requests: use Chromium")
