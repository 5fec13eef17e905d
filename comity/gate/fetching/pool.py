"""Open connections that wait for the next request to their server."""

from __future__ import annotations

import asyncio

from comity.gate.fetching.connection import Connection
from comity.gate.fetching.network import Channel, Route
from comity.gate.fetching.reach import Reach

MAX_SECONDS = 60.0  # the maximum seconds that a connection waits
MAX_CONNECTIONS = 200  # the maximum number of waiting connections; a further one ends the oldest


class Pool:
    """The waiting connections of a client.

        channel = pool.take(route, referrer_reach) or await network.connect(route, referrer_reach)
        ...
        pool.give(channel)

    Connections wait only while the pool has users. Without users, `give` ends each connection."""

    def __init__(self) -> None:
        self._users = 0
        self._by_route: dict[Route, list[Channel]] = {}
        # Each waiting channel, and the moment since when it waits, by the clock of the loop. The
        # oldest is first.
        self._waiting: dict[Connection, tuple[Channel, float]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def join(self) -> None:
        """Add a user."""
        self._users += 1

    def leave(self) -> None:
        """Remove a user. After the last one, end all waiting connections."""
        self._users -= 1
        if not self._users:
            for channel, _ in list(self._waiting.values()):
                self._end(channel)
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def take(self, route: Route, referrer_reach: Reach | None) -> Channel | None:
        """Take a connection with this route out of the pool; None if there is none.

        `referrer_reach`: the reach of the site that leads to the server; None if the operator asks.
        Connections to addresses that the site may not lead to are left in the pool.
        """
        for channel in reversed(self._by_route.get(route, ())):
            if channel.connection.is_reusable and (
                referrer_reach is None or referrer_reach.may_lead_to(channel.reach)
            ):
                self._remove(channel)
                channel.connection.octets = 0
                return channel
        return None

    def give(self, channel: Channel) -> None:
        """Let the connection wait for its next request, or end it if it cannot be used again."""
        if not (self._users and channel.connection.is_reusable):
            channel.connection.close()
            return
        if len(self._waiting) >= MAX_CONNECTIONS:
            oldest, _ = next(iter(self._waiting.values()))
            self._end(oldest)
        loop = asyncio.get_running_loop()
        self._by_route.setdefault(channel.route, []).append(channel)
        self._waiting[channel.connection] = channel, loop.time()
        if self._timer is None:
            self._timer = loop.call_later(MAX_SECONDS, self._end_old)

    def _end_old(self) -> None:
        """End the connections that have waited for MAX_SECONDS."""
        self._timer = None
        loop = asyncio.get_running_loop()
        for channel, since in list(self._waiting.values()):
            due = since + MAX_SECONDS
            if due > loop.time():
                self._timer = loop.call_at(due, self._end_old)
                return
            self._end(channel)

    def _end(self, channel: Channel) -> None:
        self._remove(channel)
        channel.connection.close()

    def _remove(self, channel: Channel) -> None:
        del self._waiting[channel.connection]
        channels = self._by_route[channel.route]
        channels.remove(channel)
        if not channels:
            del self._by_route[channel.route]
