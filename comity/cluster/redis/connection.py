"""A connection to a server of Redis or Valkey, or one to each node of a Cluster.

A batch of calls is a pipeline of scripts (comity/cluster/steps/line.py). It begins with the time of
the server. If the server's clock was set forward, starts of requests look older than they are. Then
the answers to the batch are dropped, and the server counts as another one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, ClassVar

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisClusterException, RedisError, ResponseError

from comity.cluster.errors import StateError, StateFullError
from comity.cluster.redis.address import StateAddress
from comity.cluster.redis.scripts import script
from comity.cluster.redis.tls import tls_remedy
from comity.cluster.steps.line import PATIENCE, Call, Line, LineConnection
from comity.policies.syntax.printable import printable

# How far the server's clock may be ahead of its last time: seconds, and a part of the time since
# then. A clock that chrony corrects runs faster by a twelfth at most.
AHEAD = (0.01, 0.1)


class StateConnection(LineConnection):
    """A connection to the server of the shared state."""

    def __init__(self, address: StateAddress, *, patience: float = PATIENCE) -> None:
        super().__init__(address, RedisLine(address, patience), RedisLine(address, patience))


class RedisLine(Line):
    """One connection, or one to each node of a Cluster, and the calls that wait for it."""

    most: ClassVar = 500
    # Cluster nodes fail in many ways. redis-py does not turn all of them into errors of its own.
    failures: ClassVar = (
        RedisError,
        RedisClusterException,
        OSError,
        EOFError,
        asyncio.IncompleteReadError,
        TimeoutError,
    )

    def __init__(self, address: StateAddress, patience: float) -> None:
        super().__init__(address, patience)
        self._nodes: list[tuple[str, int]] = []  # the nodes of a Cluster, as last seen
        self._client: Any = None
        # The latest time of the server, less the monotonic time when it was requested; and that
        # monotonic time.
        self._clock: tuple[float, float] | None = None

    @property
    def is_connected(self) -> bool:
        return self._client is not None

    def _error(self, call: Call, error: Exception) -> Exception:
        text = str(error)
        kind = StateFullError if "command not allowed when used memory" in text else StateError
        return kind(f"{self._address}: {call.step}: {printable(text)}")

    def _is_over(self, answers: Sequence[Any]) -> bool:
        # The server is a replica by now, and the name may lead to another server.
        return any(
            isinstance(answer, Exception) and "READONLY" in str(answer) for answer in answers
        )

    def _reason(self, error: Exception) -> str:
        reason, remedy = super()._reason(error), tls_remedy(self._address, error)
        return f"{reason}: {remedy}" if remedy else reason

    async def _run(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        answers = await self._pipeline(calls)
        if missing := [n for n, answer in enumerate(answers) if isinstance(answer, NoScriptError)]:
            # The server was started anew, or never had the scripts.
            await self._load({calls[n][0] for n in missing})
            for n, answer in zip(
                missing, await self._pipeline([calls[n] for n in missing]), strict=True
            ):
                answers[n] = answer
        return answers

    async def _load(self, steps: Iterable[str]) -> None:
        for step in steps:
            await self._client.script_load(script(step).text)

    async def _pipeline(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        pipeline = self._client.pipeline(transaction=False)
        watches_clock = not self._address.is_cluster  # the nodes have clocks of their own
        if watches_clock:
            pipeline.execute_command("TIME")
        sent = monotonic()
        for step, key, *arguments in calls:
            pipeline.execute_command("EVALSHA", script(step).sha, 1, key, *arguments)
        answers: list[Any] = await pipeline.execute(raise_on_error=False)
        if watches_clock:
            self._watch_clock(answers.pop(0), sent)
        for answer in answers:
            if isinstance(answer, Exception) and not isinstance(answer, ResponseError):
                raise answer  # a node of a Cluster cannot be reached
        return answers

    def _watch_clock(self, answer: Any, sent: float) -> None:
        """Note the time of the server. ConnectionError: its clock was set forward.

        Then the steps that begin a connection get another id than the server's: no start is granted
        before a whole window is over."""
        if isinstance(answer, Exception):
            return
        now = answer[0] + answer[1] / 1e6
        before, self._clock = self._clock, (now - sent, sent)
        if before is None:
            return
        ahead, moment = before
        seconds, part = AHEAD
        if now - monotonic() > ahead + seconds + part * (sent - moment):
            self.first = dict.fromkeys(self.first, f"clock-{now:.0f}".encode())
            raise ConnectionError("its clock was set forward")

    def _options(self) -> dict[str, Any]:
        # `Line` has a timeout for all calls. redis-py would set a timeout for
        # each call, which takes a third of the time of a call.
        options: dict[str, Any] = self._address.client_options(self._patience)
        return options | {"socket_timeout": None}

    async def _connect(self) -> None:
        options = self._options()
        if self._address.is_cluster:
            # The node that the address names may be away while others have taken its place.
            nodes = [
                ClusterNode(*node)
                for node in dict.fromkeys([(options["host"], options["port"]), *self._nodes])
            ]
            self._client = RedisCluster(**options | {"host": None, "startup_nodes": nodes})
            await self._client.initialize()
            self._nodes = [(node.host, int(node.port)) for node in self._client.get_nodes()]
        else:
            await self._connect_to(options)
            # While the server reads its files it refuses everything. Then no call was sent yet.
            await self._client.ping()
        await self._begin()

    async def _connect_to(self, options: dict[str, Any]) -> None:
        """Connect to one server, over a single connection."""
        self._client = Redis(**options, retry=Retry(NoBackoff(), 0), single_connection_client=True)
        await self._client.initialize()

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):  # errors of a connection that is given up do not matter
                await client.aclose()
