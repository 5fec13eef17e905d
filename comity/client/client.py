"""The client: each request asks here before it goes out, and says here how it went.

How it works. The parts are those of a crawl (comity/crawler/parts.py): policies, access, pace, pages. A request passes them so:

    admit       the policies of its origin, the decision, the turn of its host; what is refused raises RefusedError
    answered    its turn counts from here, a 429 or 503 holds the host, and the answer may turn out to be of no use
    ended       it takes no place any more; `failed`: nor did it bring anything
    page        what may be done with what it brought

Whoever leads to a request matters (SEC-7): a site may not lead to an inner address, and a redirect is led to by its site. So
`admit` takes the admission of the request whose answer leads there; without one it is the operator's own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, MutableMapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, time
from typing import Any, NoReturn, Self, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from scrapy.http import Headers, Request, Response
from scrapy.settings import BaseSettings

from comity.crawler.fetching.fetcher import TOO_MANY
from comity.crawler.fetching.files import PolicyFiles
from comity.crawler.fetching.freshness import retry_after
from comity.crawler.fetching.reach import Reach, literal
from comity.crawler.flights import ClosingError
from comity.crawler.options import Options
from comity.crawler.pace.ledger import RateLedger
from comity.crawler.parts import Parts
from comity.crawler.request.access import inner_address
from comity.crawler.request.facts import KEY, RequestFacts, check_host, declaration, fields_of
from comity.crawler.request.referrals import referrer_stamp, set_referrer_reach
from comity.crawler.scrapy_internals import sent_by_others
from comity.policies import Agent, Decision, Page, PolicyError, Verdict
from comity.policies.answers.request import Facts, Session
from comity.policies.syntax.printable import printable

T = TypeVar("T")
Fields = Mapping[str, str] | Iterable[tuple[str | bytes, str | bytes]]  # header fields, of one name several times too

RESOURCE = "resource"  # as a kind: what a page embeds. The formats have no word for it, it counts as what its fields say

# Header fields that no policy asks for: see `facts_of`.
_SILENT = frozenset((b"host", b"connection", b"accept-encoding", b"accept-language", b"user-agent", b"content-length"))

_SETTING = re.compile(r"\b(?:COMITY_|(?=USER_AGENT\b))([A-Z_]+)")  # by its keyword here


class RefusedError(Exception):
    """The request may not be made, or its answer may not be used."""

    def __init__(self, decision: Decision, url: str, method: str = "GET") -> None:
        super().__init__(decision, url, method)
        self.decision = decision
        self.url = url
        self.method = method

    def __str__(self) -> str:
        """The request, and the reasons that decided: what it would have to wait for too."""
        causes = self.decision.reasons[1:2] if self.decision.reasons[0].rule == "comity.max-delay" else ()
        url = printable(self.url.encode(errors="replace"))
        return "; ".join((f"{self.method} {url}: {self.decision}", *map(str, causes)))


class ClosedError(RuntimeError):
    """The client was closed, or is not open yet: nothing is asked for, and nothing was learnt about the site."""


class Counts(Counter[str]):
    """The counts, under the names that the statistics of a crawl have (docs/projects.md)."""

    waited = 0.0  # seconds from asking to being let out, of all requests together

    def inc_value(self, key: str, count: int = 1) -> None:
        self[key] += count

    @property
    def asked(self) -> int:
        """The requests that were let out."""
        return self["comity/access/allow"]

    @property
    def refused(self) -> dict[str, int]:
        """Rule -> how many requests it refused, and answers that were not read for it."""
        refused = Counter[str]()
        for key, number in self.items():
            for kind in ("comity/access/deny/", "comity/access/stopped/"):
                if key.startswith(kind):
                    refused[key.removeprefix(kind)] += number
        return dict(refused)


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
            raise PolicyError(f"per_host `{printable(str(per_host).encode())}` is not a number of requests: write 1 or more")
        given: dict[str, Any] = {"agent": agent, "purposes": _listed(purposes), "uses": _listed(uses), "store": str(store or "")}
        given |= {"min_delay": min_delay, "max_delay": max_delay, **settings}
        self._settings = BaseSettings(
            {
                **{f"COMITY_{name.upper()}": value for name, value in given.items()},
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
        self._folder: TemporaryDirectory[str] | None = None  # of the store that is dropped at the end
        self.counts = Counts()
        self._parts: Parts | None = None
        self._facts = _Facts(self._settings, self.agent)
        self._is_closed = False

    @property
    def agent(self) -> Agent:
        return self._options.agent

    def user_agent_for(self, given: str | None, default: str) -> str:
        """The User-Agent of a request: that of the agent, or another one that names it. PolicyError for one that does not, as the
        site could not know whom it addresses. `given`: on the request; `default`: what the library sends on its own."""
        if given is None or given == default:
            return self.agent.user_agent
        if not re.search(rf"(?<![\w-]){re.escape(self.agent.token)}(?![\w-])", given, re.IGNORECASE):
            shown, token = printable(given.encode(errors="replace")), self.agent.token
            raise PolicyError(f"User-Agent `{shown}` does not name `{token}`, for which policies are read: leave it out")
        return given

    @property
    def parts(self) -> Parts:
        """The parts that its requests pass. ClosedError where it is not open."""
        if self._parts is None or self._is_closed:
            raise ClosedError("the client is not open: use it within `async with Client(...)`")
        return self._parts

    # As its parts see it: comity/crawler/run.py

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
            self._options = replace(self._options, store=Path(self._folder.name) / "policies.sqlite")
        options = self._options
        try:
            files = PolicyFiles.joined(options.store, options.client, timeout=options.policy_timeout)
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
        """End what waits, with ClosedError, and close the store."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._parts is not None:
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
        request = _request(url, method, headers, referer, _declared(kind, automations, purposes))
        if session is not None:
            self._facts.sessions[request] = session
        decision = await self._wait(parts, request, led_by)
        parts.access.record(request, decision)
        if decision.verdict is not Verdict.ALLOW:
            parts.pace.withdraw(request)  # it may have had its turn before
            raise RefusedError(decision, url, request.method)
        parts.access.admit(request)
        return Admission(self, parts, request, decision)

    async def _wait(self, parts: Parts, request: Request, led_by: Admission | None) -> Decision:
        if led_by is not None:
            set_referrer_reach(request, led_by.leads_from)
        parts.referrals.make(request)
        began = monotonic()
        try:
            return await parts.gate.wait(request, parts.referrals.referrer_reach(request), in_downloader=False)
        except BaseException as error:
            parts.pace.withdraw(request)
            if isinstance(error, ClosingError):
                raise ClosedError("the client was closed") from None
            raise
        finally:
            self.counts.waited += monotonic() - began

    async def page(
        self, admission: Admission | str, status: int, headers: Fields, body: bytes, *, url: str | None = None
    ) -> Page:
        """The permissions of what came back. ClosedError where the client is closed; PolicyError where the URL can have no
        policies.

        `admission`: of the request; or the URL of one that was not asked for here. `body`: without content coding. `url`: where
        it was found in the end, if elsewhere, as in a browser: then the policies of both bind."""
        parts = self.parts
        request = admission.request if isinstance(admission, Admission) else Request(admission)
        response = Response(url or request.url, status=status, headers=Headers(_by_name(headers)), body=body, request=request)
        try:
            page = await parts.responses.page(response)
            if page is None:
                raise PolicyError(f"`{printable(response.url.encode())}` is at no site: there are no policies for it")
            return await parts.responses.completed(response, page)
        except ClosingError:
            raise ClosedError("the client was closed") from None


KEYWORDS = (
    "defaults",
    "vocabulary",
    "arrangements",
    "purpose_header",
    "key_header",
    "content_usage",
    "automation_required",
    "skip_unusable",
    "policy_timeout",
    "proxy",
    "inner",
)


class Admission:
    """A request that may go out. Whoever makes it says here how it went."""

    def __init__(self, client: Client, parts: Parts, request: Request, decision: Decision) -> None:
        self.client = client
        self.request = request
        self.decision = decision
        self.leads_from = Reach.PUBLIC  # where its site is, as far as it is known: by that is judged what its answer leads to
        self._parts = parts

    @property
    def url(self) -> str:
        return self.request.url

    @property
    def facts(self) -> Facts:
        """All that policies were asked about the request, but for its URL."""
        outgoing = self._parts.access.admitted(self.request)
        return outgoing.facts if outgoing is not None else Facts(method=self.request.method)

    @property
    def fields(self) -> dict[str, str]:
        """The header fields that the request is to carry: what it is made for."""
        purposes = self.facts.purposes
        return self._parts.options.purpose_fields(self.client.agent.purposes if purposes is None else purposes)

    def declare(self, headers: MutableMapping[str, str]) -> None:
        """Put the same into the header fields. Nobody else's word goes out under that name."""
        if (name := self._parts.options.purpose_header) in headers:
            del headers[name]
        headers.update(self.fields)

    async def sent(self, send: Callable[[], Awaitable[T]]) -> T:
        """Send it. StoodStillError where this process was stopped for so long that its turn is over, and others
        may ask the host: nothing goes out then."""
        return await self._parts.standstill.guard(self.request, send)

    def answered(
        self, status: int, headers: Fields = (), *, address: str | None = None, body_follows: bool = False
    ) -> Decision | None:
        """The header fields came: the delay of the host counts from now, and longer where the status says that it is asked too
        often. Return the refusal of an answer that may not be used: it is not to be read, and its request has ended.

        `address`: of the server, where it is known; of no account where a proxy is set. `body_follows`: the request takes its
        place until `ended` is called."""
        parts, request = self._parts, self.request
        parts.pace.settle(request)
        if status in TOO_MANY:
            seconds = retry_after(fields_of(Headers(_by_name(headers))), time())
            parts.back_off(request.url, status, seconds)
        refused = self._refused(headers, address)
        if refused is not None:
            parts.access.record_stopped(request, refused)
        if refused is not None or not body_follows:
            self.ended()
        return refused

    def _refused(self, headers: Fields, address: str | None) -> Decision | None:
        response = Response(self.url, request=self.request, ip_address=self._address(address))
        reaches = self._parts.referrals.check_response(self.request, response)
        if reaches is not None:
            leading, reach = reaches
            return inner_address(self.url, leading, f"the answer came from a {reach.value} address")
        self.leads_from = referrer_stamp(self.request) or Reach.PUBLIC
        if not self._parts.access.skips_unusable or self.request.method == "HEAD":
            return None
        fields = Headers(_by_name(headers))
        return None if "Location" in fields else self._parts.access.refused_by_headers(self.request, fields)

    def _address(self, address: str | None) -> Any:
        parts, proxies = urlsplit(self.url), self._parts.options.client.proxies
        is_known = address and proxies.select(parts.scheme, parts.hostname or "") is None
        return literal(address) if address and is_known else None

    def ended(self) -> None:
        """The request takes no place any more. What was not answered counts from now."""
        self._parts.pace.through(self.request)

    failed = ended  # it came to nothing, though the server may have seen it


class _Facts(RequestFacts):
    """The facts of requests that bring sessions of their own."""

    def __init__(self, settings: BaseSettings, agent: Agent) -> None:
        super().__init__(settings, agent)
        self.sessions: WeakKeyDictionary[Request, Session] = WeakKeyDictionary()

    def for_request(self, request: Request, session: Session | None = None) -> Facts:
        return super().for_request(request, session or self.sessions.get(request))


def _declared(kind: str | Iterable[str] | None, automations: Iterable[str], purposes: Iterable[str] | None) -> dict[str, Any]:
    declared = {
        "kind": None if kind is None or kind == RESOURCE else _listed(kind),
        "automations": _listed(automations) or None,
        "purposes": None if purposes is None else _listed(purposes),
    }
    return {name: value for name, value in declared.items() if value is not None}


def _listed(words: Iterable[str]) -> str | tuple[str, ...]:
    """The words; of a text, they stand in it with commas between."""
    return words if isinstance(words, str) else tuple(words)


def _request(url: str, method: str, headers: Fields, referer: str | None, declared: dict[str, Any]) -> Request:
    """PolicyError where it makes no sense."""
    fields = _by_name(headers)
    check_host(url, fields.get(b"host", ()))
    try:
        request = sent_by_others(url, method=method, headers=_telling(fields), meta={KEY: declared} if declared else None)
    except ValueError:  # it has no scheme
        raise PolicyError(f"`{printable(url.encode(errors='replace'))}` is no absolute URL") from None
    if referer is not None:
        request.headers["Referer"] = referer
    declaration(request)
    return request


def _telling(fields: Mapping[bytes, list[str | bytes]]) -> Headers:
    """The header fields of a request without those that tell nothing of what it is, as most requests of libraries have no other:
    what has none is known at once."""
    values = {name: of_name for name, of_name in fields.items() if name not in _SILENT}
    if values.get(b"accept") in (["*/*"], [b"*/*"]):
        del values[b"accept"]
    return Headers(values)


def _by_name(fields: Fields) -> dict[bytes, list[str | bytes]]:
    """The values by lower-case name."""
    values: dict[bytes, list[str | bytes]] = {}
    pairs: Iterable[tuple[str | bytes, str | bytes]] = fields.items() if isinstance(fields, Mapping) else fields
    for name, value in pairs:
        values.setdefault((name.encode("latin-1", "replace") if isinstance(name, str) else name).lower(), []).append(value)
    return values


def _raise_in_own_words(error: PolicyError) -> NoReturn:
    """The settings of crawls are keywords here."""
    raise PolicyError(_SETTING.sub(lambda match: match[1].lower(), str(error))) from None
