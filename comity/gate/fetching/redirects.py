"""Fetch one file: follow redirects, with one deadline over all hops (docs/fetching.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import NamedTuple

from comity.gate.fetching.client import Count, Hop, OriginRequests, PolicyClient
from comity.gate.fetching.connection import TransferError
from comity.gate.fetching.freshness import DAY, lifetime
from comity.gate.fetching.network import BarredError
from comity.gate.fetching.policy_copy import shared_body, shared_headers
from comity.gate.fetching.reach import Reach
from comity.policies.answers.fetched import Fetched
from comity.policies.document.offer import ASKING, FIELDS
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_of, resolved

MAX_HOPS = 5  # redirects that are followed; RFC 9309 section-2.3.1.2
REDIRECTS = (301, 302, 303, 307, 308)

# Only these header fields of an answer are stored, and the terms of offers. They are needed for
# freshness, for conditional requests, and to read the file.
KEPT_HEADERS = frozenset(
    (
        b"age",
        b"cache-control",
        b"content-type",
        b"date",
        b"etag",
        b"expires",
        b"last-modified",
        b"retry-after",
    )
)
MAX_HEADER = 4096  # the maximum octets of a header value; fields with longer values are dropped

# gate(url, referrer_reach): a context around each hop. Entering the context waits until the hop may
# be made, and gives header fields for the request. TransferError: the hop is refused.
# `referrer_reach`: the reach of the site that leads to the URL; None if the operator asks.
Gate = Callable[[str, Reach | None], AbstractAsyncContextManager[Mapping[str, str]]]


class FinalAnswer(NamedTuple):
    """The answer after all redirects. A 304 means that the stored copy is still good.

    Attributes:
        fetched: The answer.
        seconds: The maximum seconds for which the answer may be used. For a 304, only the redirects
            before it are counted; its own headers may state less.
        reach: The reach of the server that gave the answer.
    """

    fetched: Fetched
    seconds: float = 0.0
    reach: Reach = Reach.PUBLIC


class Redirects:
    """Fetch files, and follow their redirects."""

    def __init__(
        self,
        client: PolicyClient,
        *,
        timeout: float,
        clock: Callable[[], float],
        gate: Gate | None = None,
        patience: float = 0.0,
        on_hop: Callable[[str, Hop], None] = lambda url, hop: None,
    ) -> None:
        """Take the client.

        `timeout`: seconds for one file over all its hops; with a gate, also for each hop by itself.
        `clock`: return the seconds since the epoch. `gate`: wait until a hop may be made; None for
        no wait. `patience`: seconds added to the timeout of a file for its waits at gates.
        `on_hop`: called with the URL and the outcome of each hop, if there is a gate.
        """
        self._client = client
        self._timeout = timeout
        self._patience = patience
        self._clock = clock
        self._gate = gate
        self._on_hop = on_hop

    async def ask(
        self, url: str, copy: Fetched | None, server: OriginRequests, count: Count
    ) -> FinalAnswer:
        """Fetch the file at the URL. Failures are answers, too: with `error`, or with a 3xx status
        after MAX_HOPS redirects.

        `copy`: the stored answer, which the server may confirm; None if there is none. `server`:
        the server of the URL's origin. BarredError: the site of `server.referrer_reach` may not
        lead to this server. At a later hop, this failure is an answer with the status 0.
        """
        try:
            async with asyncio.timeout(self._timeout + self._patience):
                return await self._follow(url, copy, server, count)
        except TimeoutError:
            return FinalAnswer(
                Fetched(status=0, error=f"no answer within {self._timeout:g} seconds")
            )

    async def _follow(
        self, first_url: str, copy: Fetched | None, server: OriginRequests, count: Count
    ) -> FinalAnswer:
        url = first_url
        reach = server.referrer_reach
        seconds = DAY
        for _ in range(MAX_HOPS + 1):
            fields = conditions(url, copy, first_url)
            try:
                hop = await self._hop(url, fields, server, reach, count)
            except TransferError as error:
                if isinstance(error, BarredError) and url == first_url:
                    raise
                return FinalAnswer(Fetched(status=0, url=url, error=str(error)))
            now = self._clock()
            fetched = _read_hop(hop, url, now)
            if hop.status == 304:
                if not fields:
                    return FinalAnswer(_unusable(fetched, "a 304 to an unconditional request"))
                return FinalAnswer(fetched, seconds, hop.reach)
            seconds = min(seconds, lifetime(hop.headers, now))
            if hop.status // 100 != 3:
                return FinalAnswer(fetched, seconds, hop.reach)
            if hop.status not in REDIRECTS:
                return FinalAnswer(
                    _unusable(fetched, f"HTTP status {hop.status}, a redirect that is not followed")
                )
            try:
                target = _target(url, hop)
            except ValueError as error:
                return FinalAnswer(_unusable(fetched, str(error)))
            if reach is not None or origin_of(target) != server.origin:
                reach = hop.reach
            url = target
        # More than five redirects: the status of the last one makes the file unavailable.
        return FinalAnswer(fetched, seconds, hop.reach)

    async def _hop(
        self,
        url: str,
        fields: Mapping[str, str],
        server: OriginRequests,
        referrer_reach: Reach | None,
        count: Count,
    ) -> Hop:
        if self._gate is None:
            return await self._get(url, fields, server, referrer_reach, count)
        async with self._gate(url, referrer_reach) as more, asyncio.timeout(self._timeout):
            hop = await self._get(url, {**fields, **more}, server, referrer_reach, count)
            self._on_hop(url, hop)
            return hop

    async def _get(
        self,
        url: str,
        fields: Mapping[str, str],
        server: OriginRequests,
        referrer_reach: Reach | None,
        count: Count,
    ) -> Hop:
        """Request the URL over the connection of `server`, or over a new connection.

        A hop needs a new connection if it goes to another origin than the file, or if its referring
        site has another reach.
        """
        origin = origin_of(url)
        if origin == server.origin and referrer_reach is server.referrer_reach:
            return await server.get(url, fields)
        async with self._client.server(origin, referrer_reach, count) as other:
            return await other.get(url, fields)


def conditions(url: str, copy: Fetched | None, first_url: str) -> dict[str, str]:
    """Return the fields that make a request conditional on the copy (RFC 9110 section-13.1).

    {} if there is no copy with a status 2xx, if the copy came from another URL, or if it has no
    validator. `first_url`: the URL before all redirects, which a copy without a URL came from.
    """
    if copy is None or copy.status // 100 != 2 or (copy.url or first_url) != url:
        return {}
    validators = {
        "If-None-Match": copy.header(b"ETag"),
        "If-Modified-Since": copy.header(b"Last-Modified"),
    }
    return {name: value.decode("latin-1") for name, value in validators.items() if value}


def _read_hop(hop: Hop, url: str, now: float) -> Fetched:
    present = hop.status // 100 == 2
    kept = KEPT_HEADERS | FIELDS if hop.status in ASKING else KEPT_HEADERS
    headers = shared_headers(
        (name, value)
        for name, value in hop.headers
        if name.lower() in kept and len(value) <= MAX_HEADER
    )
    return Fetched(
        status=hop.status,
        headers=headers,
        body=shared_body(hop.body) if present else b"",
        url=url,
        fetched_at=datetime.fromtimestamp(now, UTC),
        oversized=present and hop.oversized,
    )


def _unusable(fetched: Fetched, error: str) -> Fetched:
    return Fetched(
        status=fetched.status,
        headers=fetched.headers,
        url=fetched.url,
        fetched_at=fetched.fetched_at,
        error=error,
    )


def _target(url: str, hop: Hop) -> str:
    """Return the URL that a redirect leads to. ValueError: its Location is missing or invalid."""
    location = next(
        (value for name, value in hop.headers if name.lower() == b"location"), b""
    ).strip()
    if not location:
        raise ValueError(f"HTTP status {hop.status} without a Location")
    try:
        return resolved(url, location)
    except ValueError:
        raise ValueError(
            f"led to {printable(location)}, which is not an http or https URL"
        ) from None
