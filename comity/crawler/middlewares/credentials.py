"""Header fields that comity adds to requests: the purpose, and the declared session of the host."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from weakref import ref

from scrapy import signals
from scrapy.http import Request, Response

from comity.crawler.crawl import Crawl
from comity.gate.http import normal_name
from comity.gate.request.sessions import DeclaredSession
from comity.policies.syntax.printable import printable

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


logger = logging.getLogger(__name__)


class FieldsMiddleware:
    """Downloader middleware at 940, after Scrapy's.

    If an outer middleware has changed a request in place, the changed request is decided on."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawl = Crawl.of(crawler)
        self._passages = self._crawl.passages
        self._crawl.sessions.send()
        self._purpose_header = normal_name(self._crawl.options.purpose_header)
        self._user_agent = self._crawl.agent.user_agent.encode("latin-1", "replace")
        self._token = self._crawl.agent.token.lower()
        self._warned = False
        assert crawler.stats is not None
        self._stats = crawler.stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FieldsMiddleware:
        """Return a middleware that sends sessions, if there are any."""
        has_sessions = bool(Crawl.of(crawler).options.sessions)
        return (SessionFieldsMiddleware if has_sessions else cls)(crawler)

    # Scrapy awaits every result. Awaiting a plain value costs it five calls more.
    async def process_request(self, request: Request) -> None:
        self._crawl.refuse_changed(request)
        outgoing = self._passages[ref(request)].outgoing_to(request.url)
        if outgoing is None:
            return
        self._look_at_name(request)
        if self._purpose_header:
            purposes = outgoing.facts.purposes
            self._declare(request, self._crawl.agent.purposes if purposes is None else purposes)

    def _look_at_name(self, request: Request) -> None:
        """Warn of a User-Agent field without the agent's name. The add-on checks the setting."""
        # The `get` of Scrapy's class would normalise the name again.
        values = dict.get(request.headers, b"User-Agent")
        octets = values[-1] if values else b""
        if octets == self._user_agent:
            return
        sent = octets.decode("latin-1")
        if self._token in sent.lower():
            return
        self._stats.inc_value("comity/user-agent/other")
        if not self._warned:
            self._warned = True
            logger.warning(
                "%(request)s goes out as `%(sent)s`, which does not name COMITY_AGENT `%(agent)s`:"
                " a spider or a middleware has set this field. Sites see another name than the one"
                " to address. Their statements for %(agent)s are obeyed all the same",
                {
                    "request": request,
                    "sent": printable(sent.encode("utf-8", "replace")),
                    "agent": self._crawl.agent.token,
                },
            )

    def _declare(self, request: Request, purposes: tuple[str, ...]) -> None:
        if purposes:
            request.headers[self._purpose_header] = ", ".join(purposes)
        else:
            dict.pop(request.headers, self._purpose_header, None)


class SessionFieldsMiddleware(FieldsMiddleware):
    """The middleware of a crawl with sessions.

    Credentials are on a request only while it is out. So redirects and retries do not copy them to
    another host, and logs, caches and queues of outer middlewares do not contain them."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        # An inner middleware sees the answer first. It may make a new request of this one, or end
        # it with an error.
        crawler.signals.connect(self._restore, signals.request_left_downloader)

    async def process_request(self, request: Request) -> None:
        self._restore(request)
        await super().process_request(request)
        outgoing = self._passages[ref(request)].outgoing_to(request.url)
        if outgoing is not None and outgoing.session is not None:
            self._attach(request, outgoing.session)

    def _attach(self, request: Request, session: DeclaredSession) -> None:
        fields: dict[str, str] = {}
        if session.token:
            fields[self._crawl.agent.key_header] = session.token
        if session.bearer:
            fields["Authorization"] = f"Bearer {session.bearer}"
        if session.cookies:
            cookies = dict(session.cookies)
            crumbs = b"; ".join(request.headers.getlist("Cookie")).decode("latin-1").split(";")
            others = [
                crumb.strip() for crumb in crumbs if crumb.strip() and _name(crumb) not in cookies
            ]
            fields["Cookie"] = "; ".join(
                [*others, *(f"{name}={value}" for name, value in cookies.items())]
            )
        self._passages[ref(request)].replaced_fields = {
            name: request.headers.getlist(name) for name in fields
        }
        for name, value in fields.items():
            request.headers[name] = value.encode("latin-1")
        self._stats.inc_value("comity/session/sent")

    async def process_response(self, request: Request, response: Response) -> Response:
        self._restore(request)
        self._keep_out_of_the_jar(request, response)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        self._restore(request)

    def _restore(self, request: Request) -> None:
        """Take the session off the request, if it has one."""
        passage = self._passages[ref(request)]
        if passage.replaced_fields is None:
            return
        fields, passage.replaced_fields = passage.replaced_fields, None
        for name, values in fields.items():
            if values:
                request.headers[name] = values
            else:
                request.headers.pop(name, None)

    def _keep_out_of_the_jar(self, request: Request, response: Response) -> None:
        """Keep cookies of the session out of Scrapy's cookie jar.

        The jar would send them even when the session is over."""
        outgoing = self._passages[ref(request)].outgoing_to(request.url)
        if outgoing is None or outgoing.session is None:
            return
        session_cookies = dict(outgoing.session.cookies)
        cookies = response.headers.getlist("Set-Cookie")
        others = [
            cookie for cookie in cookies if _name(cookie.decode("latin-1")) not in session_cookies
        ]
        if others:
            response.headers["Set-Cookie"] = others
        elif cookies:
            del response.headers["Set-Cookie"]


def _name(crumb: str) -> str:
    return crumb.partition("=")[0].strip()
