"""The client. Each request asks the client before it goes out, and reports its answer afterwards.

How it works. The parts are those of a crawl (comity/gate/parts.py): policies, access, pace, pages.
A request passes these methods:

    admit       fetch the policies of its origin, decide, and wait until the host may be asked;
                a refused request raises RefusedError
    answered    its header fields came: the delay of the host counts from now, 429 and 503 pause the
                host, and the header fields may refuse the use of the answer
    ended       the request no longer counts as in flight; `failed`: it got no answer
    page        return the permissions of the answer

The source of a request matters (SEC-7): a site may not lead to an inner address, by a redirect, for
example. So if the answer to one request leads to another request, pass the admission of the first
request to `admit`, as `led_by`. Without `led_by`, the operator leads to the request."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, NoReturn, Self
from urllib.parse import urlsplit
from weakref import ref

from comity.client.admission import Admission
from comity.client.counts import Counts
from comity.client.errors import ClosedError, RefusedError
from comity.client.request import (
    Fields,
    declared_meta,
    plain_headers,
    plain_request,
    word_list,
)
from comity.gate.fetching.files import PolicyFiles
from comity.gate.http import PlainRequest, PlainResponse, Request
from comity.gate.options import Options
from comity.gate.pace.ledger import RateLedger
from comity.gate.parts import Parts
from comity.gate.request.books import KIND_OF_CLIENTS, FileBooks
from comity.gate.request.purchases import Purchase, Purchases
from comity.gate.request.referrals import set_referrer_reach
from comity.gate.run.flights import ClosingError
from comity.gate.settings import PlainSettings
from comity.policies import Agent, Decision, Page, PolicyError, Verdict
from comity.policies.answers.request import Session
from comity.policies.syntax.printable import printable

# Keywords of Client() for settings of crawls: `policy_timeout` is COMITY_POLICY_TIMEOUT.
KEYWORDS = (
    "defaults",
    "vocabulary",
    "arrangements",
    "opt_out",
    "purpose_header",
    "key_header",
    "content_usage",
    "automation_required",
    "unreachable_uses",
    "skip_unusable",
    "policy_timeout",
    "proxy",
    "inner",
    "profile",
    "key",
    "signature_agent",
)

# The name of a setting in a message. The group of the match is the keyword in upper case.
_SETTING = re.compile(r"\b(?:COMITY_|(?=USER_AGENT\b))([A-Z_]+)")


class Client:
    """Fetch the policies of sites, and admit the requests that they permit.

        async with Client("examplebot") as client:
            admission = await client.admit("https://example.com/")    # RefusedError

    Attributes:
        counts: The statistics of the client's requests.
    """

    def __init__(
        self,
        agent: str,
        *,
        user_agent: str = "",
        uses: Iterable[str] | None = None,
        purposes: Iterable[str] | None = None,
        store: Path | str | None = "",
        min_delay: float | None = None,
        max_delay: float | None = None,
        per_host: int = 8,
        books: Path | str | None = None,
        **settings: Any,
    ) -> None:
        """Check the arguments. Nothing is opened before `async with`.

        Arguments:
            agent: The product token by which policies name the agent.
            user_agent: The User-Agent field of all requests. "" means the product token alone.
            uses: The intended uses of the content. None means the use of `profile`, or none.
            purposes: The purposes of the requests. None means the purpose of `profile`, or none.
            store: The path of the file with policies. The pace file is in the same folder. All
                processes with this store share both files. "" means the default store of crawls,
                None a temporary store of this client.
            min_delay: The minimum number of seconds between two requests to a host. None means 1.
            max_delay: The maximum wait of a request in seconds. If a request would have to wait
                longer, it is refused. None means 300.
            per_host: The maximum number of requests in flight to a host.
            books: The path of the file with the books of payments. All clients with this file
                share the sums of `arrangements`. None means that each client has sums of its own.
            settings: Settings of KEYWORDS (docs/settings.md).

        PolicyError: a value is invalid. TypeError: a keyword is unknown."""
        for name in settings:
            if name not in KEYWORDS:
                raise TypeError(f"Client() has no `{name}`: write some of {', '.join(KEYWORDS)}")
        if not isinstance(per_host, int) or per_host < 1:
            raise PolicyError(
                f"per_host `{printable(str(per_host).encode())}` is not a number of requests:"
                " write 1 or more"
            )
        keywords = settings | {
            "agent": agent,
            "uses": None if uses is None else word_list(uses),
            "purposes": None if purposes is None else word_list(purposes),
            "store": str(store or ""),
            "min_delay": min_delay,
            "max_delay": max_delay,
        }
        self._settings = PlainSettings(
            {
                **{f"COMITY_{name.upper()}": value for name, value in keywords.items()},
                "USER_AGENT": user_agent,
                "CONCURRENT_REQUESTS_PER_DOMAIN": per_host,
                "DOWNLOAD_VERIFY_CERTIFICATES": True,
                "HTTPPROXY_ENABLED": True,
            }
        )
        try:
            self._options = Options.from_settings(self._settings)
        except PolicyError as error:
            _raise_with_keywords(error)
        self._is_alone = store is None
        self._books = None if books is None else Path(books)
        self._folder: TemporaryDirectory[str] | None = None  # folder of the temporary store
        self.counts = Counts()
        self._parts: Parts | None = None
        self._purchases: Purchases | None = None
        self._is_closed = False

    @property
    def agent(self) -> Agent:
        """The agent for which policies are read."""
        return self._options.agent

    def user_agent_for(self, user_agent: str | None, default: str) -> str:
        """Return the User-Agent field for a request: its own, if it has one that names the agent.

        `user_agent`: the field of the request; None if it has none. Then the client's is returned.
        `default`: the value that the library sends by itself. It counts as none.
        PolicyError: the field does not name the agent. Then the site could not know which of its
        rules apply to the request."""
        if user_agent is None or user_agent == default:
            return self.agent.user_agent
        if not re.search(
            rf"(?<![\w-]){re.escape(self.agent.token)}(?![\w-])", user_agent, re.IGNORECASE
        ):
            text, token = printable(user_agent.encode(errors="replace")), self.agent.token
            raise PolicyError(
                f"User-Agent `{text}` does not name `{token}`, for which policies are read:"
                " leave it out"
            )
        return user_agent

    @property
    def parts(self) -> Parts:
        """The parts that the client's requests pass. ClosedError: the client is not open."""
        if self._parts is None or self._is_closed:
            raise ClosedError("the client is not open: use it within `async with Client(...)`")
        return self._parts

    @property
    def purchases(self) -> Purchases:
        """The payments and license tokens. ClosedError: the client was never open."""
        if self._purchases is None:
            raise ClosedError("the client is not open: use it within `async with Client(...)`")
        return self._purchases

    # The interface to its parts (comity/gate/run/surroundings.py)

    @property
    def stats(self) -> Counts:
        return self.counts

    @property
    def is_closing(self) -> bool:
        return self._is_closed

    @property
    def in_downloader(self) -> Container[Request]:
        return ()  # `ended` is called at the end of each request

    def wake(self) -> None:
        """Do nothing: there is no queue, because each request waits in `admit`."""

    async def __aenter__(self) -> Self:
        if self._parts is not None or self._is_closed:
            raise ClosedError("the client is open already, or was closed: make a new one")
        if self._is_alone:
            self._folder = TemporaryDirectory(prefix="comity-")
            self._options = replace(
                self._options, store=Path(self._folder.name) / "policies.sqlite"
            )
        options = self._options
        books: FileBooks | None = None
        try:
            if options.payments:
                books = FileBooks(self._books, kind=KIND_OF_CLIENTS, is_shared=bool(self._books))
                books.open(payment.account for payment in options.payments)
            files = PolicyFiles.joined(
                options.store, options.client, timeout=options.policy_timeout
            )
            try:
                ledger = RateLedger(options.ledger)
            except PolicyError:
                await files.leave()
                raise
        except PolicyError as error:
            if books is not None:
                books.close()
            self._drop_folder()
            _raise_with_keywords(error)
        self._purchases = Purchases(
            options.payments, options.license_tokens, books, self.counts, lambda: self._is_closed
        )
        self._parts = Parts(self, self._settings, options, files, ledger)
        self._parts.standstill.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End all waiting and unanswered requests with ClosedError, and close the store.

        These requests may not go out later: their hosts are free for other processes then."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._parts is not None:
                await self._parts.standstill.end_all(lambda: ClosedError("the client was closed"))
                await self._parts.close()
                await self.purchases.close()
        finally:
            self._drop_folder()

    def _drop_folder(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    async def admit(
        self,
        url: str,
        *,
        method: str = "GET",
        kind: str | Iterable[str] | None = None,
        automations: Iterable[str] = (),
        purposes: Iterable[str] | None = None,
        headers: Fields = (),
        referer: str | None = None,
        session: Session | None = None,
        led_by: Admission | None = None,
        proxy: str | None = None,
    ) -> Admission:
        """Wait until the request may go out, count it, and return its admission.

        Arguments:
            url: The URL of the request.
            method: Its method.
            kind: "document", "api", "xhr", several of these, or "resource" for resources that a
                page embeds. None means that the header fields tell the kind.
            automations: The automation mechanisms of the request, e.g. "cdp", "headless".
            purposes: The purposes of the request. None means the purposes of the client.
            headers: Its header fields.
            referer: The page that makes the request, if the header fields do not name it; None:
                the header fields decide.
            session: Facts of the session that the request belongs to. None means no session.
            led_by: The admission of the request whose answer leads there, by a redirect, a link or
                as a part of its page. None means that the operator leads there.
            proxy: The proxy of this request. None means that of the client.

        RefusedError: the request may not go out, or would have to wait longer than `max_delay`.
        BooksError: the books of payments fail, so the request may not go out.
        ClosedError: the client is not open, or was closed meanwhile.
        PolicyError: a kind, a purpose, the URL or another argument is invalid."""
        parts = self.parts
        request = plain_request(
            url, method, headers, referer, declared_meta(kind, automations, purposes)
        )
        if session is not None:
            parts.passages[ref(request)].session = session
        purchase = await self._buy(request, proxy)
        try:
            decision = await self._wait(parts, request, led_by)
            parts.access.record(request, decision)
            if decision.verdict is not Verdict.ALLOW:
                parts.pace.cancel(request)  # the refused request may have got its turn already
                raise RefusedError(decision, url, request.method)
            parts.access.admit(request)
        except BaseException:
            if purchase is not None:
                self.purchases.failed(purchase, is_sent=False)
            raise
        return Admission(self, parts, request, decision, purchase)

    async def _buy(self, request: Request, proxy: str | None) -> Purchase | None:
        """Reserve what the request may cost. It has no turn yet, so no other one waits for it."""
        if not self.purchases.are_any:
            return None
        url = urlsplit(request.url)
        through = proxy or self._options.client.proxies.select(url.scheme, url.hostname or "")
        try:
            return await self.purchases.begin(
                PlainRequest(
                    request.url,
                    method=request.method,
                    headers=request.headers,
                    meta={"proxy": through} if through else {},
                ),
                at_most=self._options.max_delay,  # others may never be sent
            )
        except ClosingError:
            raise ClosedError("the client was closed") from None

    async def _wait(self, parts: Parts, request: Request, led_by: Admission | None) -> Decision:
        if led_by is not None:
            set_referrer_reach(request, led_by.leads_from)
        parts.referrals.make(request)
        began = monotonic()
        try:
            return await parts.gate.wait(
                request, parts.referrals.referrer_reach(request), in_downloader=False
            )
        except BaseException as error:
            parts.pace.cancel(request)
            if isinstance(error, ClosingError):
                raise ClosedError("the client was closed") from None
            raise
        finally:
            self.counts.waited += monotonic() - began

    async def page(
        self,
        admission: Admission | str,
        status: int,
        headers: Fields,
        body: bytes,
        *,
        url: str | None = None,
    ) -> Page:
        """Return the page of a response, with its permissions.

        Arguments:
            admission: The admission of the request, or the URL of a request that was made
                without this client.
            status: The status of the response.
            headers: Its header fields.
            body: Its body, without content coding.
            url: The final URL if it differs from the requested one, e.g. in a browser. Then the
                policies of both URLs apply. None: the requested URL.

        ClosedError: the client is closed. PolicyError: the URL cannot have policies."""
        parts = self.parts
        request = admission.request if isinstance(admission, Admission) else PlainRequest(admission)
        response = PlainResponse(
            url or request.url,
            status=status,
            headers=plain_headers(headers),
            body=body,
            request=request,
        )
        try:
            page = await parts.responses.page(response)
            if page is None:
                raise PolicyError(
                    f"`{printable(response.url.encode())}` does not belong to a site, so it has no"
                    " policies: write a URL of http or https"
                )
            return await parts.responses.completed(response, page)
        except ClosingError:
            raise ClosedError("the client was closed") from None


def _raise_with_keywords(error: PolicyError) -> NoReturn:
    """Raise the error with the keywords of Client() instead of the names of settings."""
    raise PolicyError(_SETTING.sub(lambda match: match[1].lower(), str(error))) from None
