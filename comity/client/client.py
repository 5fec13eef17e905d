"""The client: each request asks here before it goes out, and says here how it went.

How it works. The parts are those of a crawl (comity/gate/parts.py): policies, access, pace, pages. A request passes them so:

    admit       the policies of its origin, the decision, the turn of its host; what is refused raises RefusedError
    answered    its turn counts from here, a 429 or 503 holds the host, and the answer may turn out to be of no use
    ended       it takes no place any more; `failed`: nor did it bring anything
    page        what may be done with what it brought

Whoever leads to a request matters (SEC-7): a site may not lead to an inner address, and a redirect is led to by its site. So
`admit` takes the admission of the request whose answer leads there; without one it is the operator's own."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, NoReturn, Self

from comity.client.admission import Admission
from comity.client.counts import Counts
from comity.client.errors import ClosedError, RefusedError
from comity.client.request import (
    Fields,
    SessionFacts,
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
from comity.gate.request.referrals import set_referrer_reach
from comity.gate.run.flights import ClosingError
from comity.gate.settings import PlainSettings
from comity.policies import Agent, Decision, Page, PolicyError, Verdict
from comity.policies.answers.request import Session
from comity.policies.syntax.printable import printable

# Settings of crawls that are keywords of Client() too.
KEYWORDS = (
    "defaults",
    "vocabulary",
    "arrangements",
    "purpose_header",
    "key_header",
    "content_usage",
    "automation_required",
    "unreachable_uses",
    "skip_unusable",
    "policy_timeout",
    "proxy",
    "inner",
)

_SETTING = re.compile(r"\b(?:COMITY_|(?=USER_AGENT\b))([A-Z_]+)")  # by its keyword here


class Client:
    """Asks for the policies of sites, and lets out the requests that they permit. To be opened with `async with`."""

    def __init__(
        self,
        agent: str,
        *,
        user_agent: str = "",
        uses: Iterable[str] = (),
        purposes: Iterable[str] = (),
        store: Path | str | None = "",
        min_delay: float = 1.0,
        max_delay: float = 300.0,
        per_host: int = 8,
        **settings: Any,
    ) -> None:
        """`agent`: the product token that policies know it by. `user_agent`: as it is sent; "": the token alone. `uses`: what is
        done with the content. `store`: the file of policies, with the pace of hosts beside it; all processes that have the same
        one share both. "": that of this user on this machine, as crawls have it; None: one of its own that is dropped at the
        end. `min_delay`: seconds between two requests to a host, at least. `max_delay`: seconds that a request may wait; one that
        would have to wait longer is refused. `per_host`: requests in flight at a time. `settings`: of KEYWORDS, as
        docs/settings.md has them. PolicyError where one makes no sense."""
        for name in settings:
            if name not in KEYWORDS:
                raise TypeError(f"Client() has no `{name}`: write some of {', '.join(KEYWORDS)}")
        if not isinstance(per_host, int) or per_host < 1:
            raise PolicyError(
                f"per_host `{printable(str(per_host).encode())}` is not a number of requests: write 1 or more"
            )
        keywords = settings | {
            "agent": agent,
            "uses": word_list(uses),
            "purposes": word_list(purposes),
        }
        keywords |= {"store": str(store or ""), "min_delay": min_delay, "max_delay": max_delay}
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
            _raise_in_own_words(error)
        self._is_alone = store is None
        self._folder: TemporaryDirectory[str] | None = (
            None  # of the store that is dropped at the end
        )
        self.counts = Counts()
        self._parts: Parts | None = None
        self._facts = SessionFacts(self._settings, self.agent)
        self._is_closed = False

    @property
    def agent(self) -> Agent:
        return self._options.agent

    def user_agent_for(self, user_agent: str | None, default: str) -> str:
        """The User-Agent of a request: that of the agent, or another one that names it. PolicyError for one that does not, as the
        site could not know whom it addresses. `user_agent`: on the request; `default`: what the library sends on its own."""
        if user_agent is None or user_agent == default:
            return self.agent.user_agent
        if not re.search(
            rf"(?<![\w-]){re.escape(self.agent.token)}(?![\w-])", user_agent, re.IGNORECASE
        ):
            text, token = printable(user_agent.encode(errors="replace")), self.agent.token
            raise PolicyError(
                f"User-Agent `{text}` does not name `{token}`, for which policies are read: leave it out"
            )
        return user_agent

    @property
    def parts(self) -> Parts:
        """The parts that its requests pass. ClosedError where it is not open."""
        if self._parts is None or self._is_closed:
            raise ClosedError("the client is not open: use it within `async with Client(...)`")
        return self._parts

    # As its parts see it: comity/gate/run/surroundings.py

    @property
    def stats(self) -> Counts:
        return self.counts

    @property
    def is_closing(self) -> bool:
        return self._is_closed

    @property
    def in_downloader(self) -> Container[Request]:
        return ()  # each request says by itself when it is through

    def wake(self) -> None:
        """Nothing waits but in place."""

    async def __aenter__(self) -> Self:
        if self._parts is not None or self._is_closed:
            raise ClosedError("the client is open already, or was closed: make a new one")
        if self._is_alone:
            self._folder = TemporaryDirectory(prefix="comity-")
            self._options = replace(
                self._options, store=Path(self._folder.name) / "policies.sqlite"
            )
        options = self._options
        try:
            files = PolicyFiles.joined(
                options.store, options.client, timeout=options.policy_timeout
            )
            try:
                ledger = RateLedger(options.ledger)
            except PolicyError:
                await files.leave()
                raise
        except PolicyError as error:
            self._drop_folder()
            _raise_in_own_words(error)
        self._parts = Parts(self, self._settings, options, files, ledger, facts=self._facts)
        self._parts.standstill.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End what waits or has no answer yet, with ClosedError, and close the store.

        The turn of a request is over then: if it went out later, it could follow one of another process at once."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._parts is not None:
                await self._parts.standstill.end_all(lambda: ClosedError("the client was closed"))
                await self._parts.close()
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
    ) -> Admission:
        """Wait until the request may go out, and count it. RefusedError where it may not, or would have to wait longer than
        `max_delay`; ClosedError where the client is closed meanwhile; PolicyError for a kind, purpose or URL that is none.

        `kind`: "document", "api", "xhr", several of them, or "resource" for what a page embeds; None: as the header fields say.
        `automations`: by which it is made, e.g. "cdp", "headless". `purposes`: None for those of the client. `referer`: the page
        from which it is made, where the fields do not say so. `session`: what it carries, where it is one of a session. `led_by`:
        the request whose answer leads there, by a redirect, a link or as part of its page; None: the operator does."""
        parts = self.parts
        request = plain_request(
            url, method, headers, referer, declared_meta(kind, automations, purposes)
        )
        if session is not None:
            self._facts.sessions[request] = session
        decision = await self._wait(parts, request, led_by)
        parts.access.record(request, decision)
        if decision.verdict is not Verdict.ALLOW:
            parts.pace.cancel(request)  # it may have had its turn before
            raise RefusedError(decision, url, request.method)
        parts.access.admit(request)
        return Admission(self, parts, request, decision)

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
        """The permissions of what came back. ClosedError where the client is closed; PolicyError where the URL can have no
        policies.

        `admission`: of the request; or the URL of one that was not asked for here. `body`: without content coding. `url`: where
        it was found in the end, if elsewhere, as in a browser: then the policies of both bind."""
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
                    f"`{printable(response.url.encode())}` is at no site: there are no policies for it"
                )
            return await parts.responses.completed(response, page)
        except ClosingError:
            raise ClosedError("the client was closed") from None


def _raise_in_own_words(error: PolicyError) -> NoReturn:
    """The settings of crawls are keywords here."""
    raise PolicyError(_SETTING.sub(lambda match: match[1].lower(), str(error))) from None
