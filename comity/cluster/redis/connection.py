"""Calls of scripts on the server of the shared state, which do not wait for each other.

    call(script, key, *arguments)     queued; returns the future of its answer
    beat(script, key, *arguments)     the same over a connection of its own, so that a sign of life
                                      does not wait for other calls

All calls of one turn of the loop are sent as one pipeline. One pipeline is under way at a time.
Calls during that time go into the next pipeline, in order. A call whose answer is lost may or may
not have happened, and ends with StateError. Callers repeat it, since all scripts can be repeated.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisClusterException, RedisError, ResponseError

from comity.cluster.errors import StateError, StateFullError
from comity.cluster.redis.address import StateAddress
from comity.cluster.redis.scripts import Script
from comity.cluster.redis.tls import tls_remedy
from comity.policies.syntax.printable import printable

logger = logging.getLogger(__name__)

PATIENCE = 5.0  # seconds that a call waits for its answer, or to be sent
# Seconds between two tries to reach the server: the first value, doubled up to the last.
BACK_OFF = (0.05, 2.0)
MOST = 500  # calls of one pipeline

# Cluster nodes fail in many ways. redis-py does not turn all of them into errors of its own.
_FAILURES = (
    RedisError,
    RedisClusterException,
    OSError,
    EOFError,
    asyncio.IncompleteReadError,
    TimeoutError,
)


class _Call(NamedTuple):
    script: Script
    key: str
    arguments: tuple[Any, ...]
    answer: asyncio.Future[Any]
    until: float  # monotonic seconds; when it is given up


class StateConnection:
    """A connection to the server of the shared state. Make and use it inside the running loop."""

    def __init__(self, address: StateAddress, *, patience: float = PATIENCE) -> None:
        self.address = address
        self._calls = _Line(address, patience)
        self._beats = _Line(address, patience)

    def call(self, script: Script, key: str, *arguments: Any) -> asyncio.Future[Any]:
        """Return the future of a script's answer. StateError or StateFullError: it fails.

        `key`: the prefix of the names of all keys of its shard."""
        return self._calls.call(script, key, arguments)

    def beat(self, script: Script, key: str, *arguments: Any) -> asyncio.Future[Any]:
        """Do the same as `call` over the connection for signs of life."""
        return self._beats.call(script, key, arguments)

    def begin_with(self, script: Script, keys: Sequence[str]) -> None:
        """Have `script` called first over each new connection, once for each of the keys.

        The script returns an id of the server. Its argument is its answer over the connection
        before, or "", so that it can see whether the server is another one."""
        self._calls.first |= {(script, key): b"" for key in keys}

    def on_change(self, changed: Callable[[], object]) -> None:
        """Have `changed` called when another server has taken over, or the server was restarted.

        That server may have lost the effects of the latest calls, even of confirmed ones."""
        self._calls.changed.append(changed)

    async def close(self) -> None:
        """Wait for the answers to the calls so far, if the server answers, and disconnect."""
        await asyncio.gather(self._calls.close(), self._beats.close())


class _Line:
    """One connection, or one to each node of a Cluster, and the calls that wait for it."""

    def __init__(self, address: StateAddress, patience: float) -> None:
        self._address = address
        self._patience = patience
        # The calls that begin each new connection -> their last answers.
        self.first: dict[tuple[Script, str], bytes] = {}
        self.changed: list[Callable[[], object]] = []
        self._nodes: list[tuple[str, int]] = []  # the nodes of a Cluster, as last seen
        self._client: Any = None
        self._waiting: deque[_Call] = deque()
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        self._is_closed = False

    def call(self, script: Script, key: str, arguments: tuple[Any, ...]) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        # asyncio would complain of an error that the caller never retrieves.
        answer.add_done_callback(_retrieve)
        if self._is_closed:
            answer.set_exception(StateError(f"{self._address}: the connection is closed"))
            return answer
        self._waiting.append(_Call(script, key, arguments, answer, monotonic() + self._patience))
        if self._task is None:
            self._task = loop.create_task(self._send())  # begins when this turn of the loop is over
        return answer

    async def close(self) -> None:
        self._is_closed = True
        if (task := self._task) is not None:
            await asyncio.wait([task], timeout=self._patience)
            task.cancel()
            await asyncio.wait([task])
        self._give_up(list(self._waiting), "the connection is closed")
        self._waiting.clear()
        await self._disconnect()

    async def _send(self) -> None:
        """Send pipelines as long as there are calls."""
        try:
            while self._waiting:
                calls = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
                await self._send_pipeline(calls)
        finally:
            self._task = None

    async def _send_pipeline(self, calls: list[_Call]) -> None:
        is_sent = False
        try:
            async with asyncio.timeout(self._patience):
                if self._client is None:
                    await self._connect()
                is_sent = True
                answers = await self._run(
                    [(call.script, call.key, *call.arguments) for call in calls]
                )
        except Exception as error:
            if not isinstance(error, _FAILURES):
                # A bug, of comity or of redis-py. Without an answer, callers would wait for ever.
                logger.exception("%(address)s: calls failed by a bug", {"address": self._address})
            await self._fail(calls, error, is_sent=is_sent)
        except BaseException:  # the connection is closed
            self._give_up(calls, "the call was cancelled")
            raise
        else:
            self._failures = 0
            for call, answer in zip(calls, answers, strict=True):
                self._answer(call, answer)
            if any(
                isinstance(answer, Exception) and "READONLY" in str(answer) for answer in answers
            ):
                # The server is a replica by now, and the name may lead to another server.
                await self._disconnect()

    def _answer(self, call: _Call, answer: Any) -> None:
        if call.answer.done():  # the caller was cancelled
            return
        if not isinstance(answer, Exception):
            call.answer.set_result(answer)
            return
        kind = (
            StateFullError if "command not allowed when used memory" in str(answer) else StateError
        )
        call.answer.set_exception(
            kind(f"{self._address}: {call.script.name}: {printable(str(answer))}")
        )

    async def _fail(self, calls: list[_Call], error: Exception, *, is_sent: bool) -> None:
        """Fail calls that were sent or that have waited too long, and wait before the next try."""
        self._failures += 1
        reason = printable(str(error)).rstrip(".") or type(error).__name__
        if remedy := tls_remedy(self._address, error):
            reason = f"{reason}: {remedy}"
        now = monotonic()
        late = calls if is_sent else [call for call in calls if call.until <= now]
        if not is_sent:
            self._waiting.extendleft(reversed([call for call in calls if call.until > now]))
        self._give_up(late, reason)
        await self._disconnect()
        if self._waiting:
            first, last = BACK_OFF
            pause = min(first * 2 ** min(self._failures - 1, 10), last)
            # Random, so that workers do not come all at once.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311

    def _give_up(self, calls: list[_Call], reason: str) -> None:
        for call in calls:
            if not call.answer.done():
                call.answer.set_exception(StateError(f"{self._address}: {reason}"))

    async def _run(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        answers = await self._pipeline(calls)
        if missing := [n for n, answer in enumerate(answers) if isinstance(answer, NoScriptError)]:
            # The server was started anew, or never had the scripts.
            for script in {calls[n][0] for n in missing}:
                await self._client.script_load(script.text)
            for n, answer in zip(
                missing, await self._pipeline([calls[n] for n in missing]), strict=True
            ):
                answers[n] = answer
        return answers

    async def _pipeline(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        pipeline = self._client.pipeline(transaction=False)
        for script, key, *arguments in calls:
            pipeline.execute_command("EVALSHA", script.sha, 1, key, *arguments)
        answers: list[Any] = await pipeline.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, Exception) and not isinstance(answer, ResponseError):
                raise answer  # a node of a Cluster cannot be reached
        return answers

    async def _connect(self) -> None:
        # `_send_pipeline` has a timeout for all calls. redis-py would set a timeout for
        # each call, which takes a third of the time of a call.
        options = self._address.client_options(self._patience) | {"socket_timeout": None}
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
            self._client = Redis(
                **options, retry=Retry(NoBackoff(), 0), single_connection_client=True
            )
            await self._client.initialize()
            # While the server reads its files it refuses everything. Then no call was sent yet.
            await self._client.ping()
        if self.first:
            answers = await self._run([(*call, answer) for call, answer in self.first.items()])
            for answer in answers:
                if isinstance(answer, Exception):
                    raise answer
            before = [answer for answer in self.first.values() if answer]
            self.first = dict(zip(self.first, answers, strict=True))
            if before and before != answers:
                for changed in self.changed:
                    changed()

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):  # errors of a connection that is given up do not matter
                await client.aclose()


def _retrieve(answer: asyncio.Future[Any]) -> None:
    if not answer.cancelled():
        answer.exception()
