"""Calls of steps on the store of the shared state, which do not wait for each other.

    call(step, key, *arguments)     queued; returns the future of its answer
    beat(step, key, *arguments)     the same over a connection of its own, so that a sign of life
                                    does not wait for other calls

All calls of one turn of the loop are sent as one batch. One batch is under way at a time. Calls
during that time go into the next batch, in order. A call whose answer is lost may or may not have
happened, and ends with StateError. Callers repeat it, since all steps can be repeated."""

from __future__ import annotations

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, ClassVar, NamedTuple, Protocol

from comity.cluster.errors import StateError
from comity.policies.syntax.printable import printable

logger = logging.getLogger(__name__)

PATIENCE = 5.0  # seconds that a call waits for its answer, or to be sent
# Seconds between two tries to reach the store: the first value, doubled up to the last.
BACK_OFF = (0.05, 2.0)


class StepAddress(Protocol):
    """The address of a store that carries out steps. As a text it has no user and no password."""

    @property
    def crawl(self) -> str:
        """The name of the crawl."""

    @property
    def prefix(self) -> str:
        """The key of steps for the crawl as a whole."""

    @property
    def is_cluster(self) -> bool:
        """True if shards may be on several servers."""

    def shard_key(self, shard: int, run: int = 1) -> str:
        """Return the key of steps for a shard of the run."""


class Call(NamedTuple):
    """A call that waits to be sent, or for its answer.

    Attributes:
        step: The name of the step.
        key: The key. The names of all that the step changes begin with it.
        arguments: The arguments of the step.
        answer: The future of the answer.
        until: The moment when the call is given up, in monotonic seconds.
    """

    step: str
    key: str
    arguments: tuple[Any, ...]
    answer: asyncio.Future[Any]
    until: float


class LineConnection:
    """A connection to the store of the shared state. Make and use it inside the running loop."""

    def __init__(self, address: StepAddress, calls: Line, beats: Line) -> None:
        self.address = address
        self._calls = calls
        self._beats = beats

    def call(self, step: str, key: str, *arguments: Any) -> asyncio.Future[Any]:
        """Return the future of a step's answer. StateError or StateFullError: it fails.

        `key`: the prefix of the names of all that the step changes."""
        return self._calls.call(step, key, arguments)

    def beat(self, step: str, key: str, *arguments: Any) -> asyncio.Future[Any]:
        """Do the same as `call` over the connection for signs of life."""
        return self._beats.call(step, key, arguments)

    async def finish_beats(self) -> None:
        """Wait until the calls of `beat` so far have happened or failed, also cancelled ones."""
        await self._beats.finish()

    def begin_with(self, step: str, keys: Sequence[str]) -> None:
        """Have `step` called first over each new connection, once for each of the keys.

        The step returns an id of the server. Its argument is its answer over the connection
        before, or "", so that it can see whether the server is another one."""
        self._calls.first |= {(step, key): b"" for key in keys}

    def on_change(self, changed: Callable[[], object]) -> None:
        """Have `changed` called when another server has taken over, or the server was restarted.

        That server may have lost the effects of the latest calls, even of confirmed ones."""
        self._calls.changed.append(changed)

    async def close(self) -> None:
        """Wait for the answers to the calls so far, if the server answers, and disconnect."""
        await asyncio.gather(self._calls.close(), self._beats.close())


class Line(ABC):
    """One connection to a server, and the calls that wait for it.

    Attributes:
        most: The greatest number of calls in one batch.
        failures: The errors after which the connection is given up.
        first: The calls that begin each new connection, with their last answers.
        changed: Called when another server has taken over.
    """

    most: ClassVar[int]
    failures: ClassVar[tuple[type[BaseException], ...]]

    def __init__(self, address: Any, patience: float) -> None:
        self._address = address
        self._patience = patience
        self.first: dict[tuple[str, str], bytes] = {}
        self.changed: list[Callable[[], object]] = []
        self._waiting: deque[Call] = deque()
        self._task: asyncio.Task[None] | None = None
        self._failed = 0
        self._is_closed = False

    @property
    @abstractmethod
    def is_connected(self) -> bool:
        """True if there is a connection."""

    @abstractmethod
    async def _connect(self) -> None:
        """Connect. Call `_begin` at the end."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Give up the connection, if there is one."""

    @abstractmethod
    async def _run(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Carry out calls, each a step, its key and its arguments, and return their answers.

        The answer to a call that failed alone is an error."""

    @abstractmethod
    def _error(self, call: Call, error: Exception) -> Exception:
        """Return the error of the state for the error of one call."""

    @abstractmethod
    def _is_over(self, answers: Sequence[Any]) -> bool:
        """Return True if the server must not be used any more, after these answers."""

    def _reason(self, error: Exception) -> str:
        """Return the reason of a failure, in words."""
        return printable(str(error)).strip().rstrip(".") or type(error).__name__

    def call(self, step: str, key: str, arguments: tuple[Any, ...]) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        # asyncio would complain of an error that the caller never retrieves.
        answer.add_done_callback(_retrieve)
        if self._is_closed:
            answer.set_exception(StateError(f"{self._address}: the connection is closed"))
            return answer
        self._waiting.append(Call(step, key, arguments, answer, monotonic() + self._patience))
        if self._task is None:
            self._task = loop.create_task(self._send())  # begins when this turn of the loop is over
        return answer

    async def finish(self) -> None:
        """Wait until all calls so far have happened or failed."""
        if (task := self._task) is not None:
            await asyncio.wait([task])

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
        """Send batches as long as there are calls."""
        try:
            while self._waiting:
                number = min(self.most, len(self._waiting))
                await self._send_batch([self._waiting.popleft() for _ in range(number)])
        finally:
            self._task = None

    async def _send_batch(self, calls: list[Call]) -> None:
        is_sent = False
        try:
            async with asyncio.timeout(self._patience):
                if not self.is_connected:
                    await self._connect()
                is_sent = True
                answers = await self._run(
                    [(call.step, call.key, *call.arguments) for call in calls]
                )
        except Exception as error:
            if not isinstance(error, self.failures):
                # A bug, of comity or of the client. Without an answer, callers would wait for ever.
                logger.exception("%(address)s: calls failed by a bug", {"address": self._address})
            await self._fail(calls, error, is_sent=is_sent)
        except BaseException:  # the connection is closed
            self._give_up(calls, "the call was cancelled")
            raise
        else:
            self._failed = 0
            for call, answer in zip(calls, answers, strict=True):
                self._answer(call, answer)
            if self._is_over(answers):
                await self._disconnect()

    def _answer(self, call: Call, answer: Any) -> None:
        if call.answer.done():  # the caller was cancelled
            return
        if isinstance(answer, Exception):
            call.answer.set_exception(self._error(call, answer))
        else:
            call.answer.set_result(answer)

    async def _fail(self, calls: list[Call], error: Exception, *, is_sent: bool) -> None:
        """Fail calls that were sent or that have waited too long, and wait before the next try."""
        self._failed += 1
        reason = self._reason(error)
        now = monotonic()
        late = calls if is_sent else [call for call in calls if call.until <= now]
        if not is_sent:
            self._waiting.extendleft(reversed([call for call in calls if call.until > now]))
        self._give_up(late, reason)
        await self._disconnect()
        if self._waiting:
            first, last = BACK_OFF
            pause = min(first * 2 ** min(self._failed - 1, 10), last)
            # Random, so that workers do not come all at once.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311

    def _give_up(self, calls: list[Call], reason: str) -> None:
        for call in calls:
            if not call.answer.done():
                call.answer.set_exception(StateError(f"{self._address}: {reason}"))

    async def _begin(self) -> None:
        """Make the calls that begin a new connection."""
        if not self.first:
            return
        answers = await self._run([(*call, answer) for call, answer in self.first.items()])
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        before = [answer for answer in self.first.values() if answer]
        self.first = dict(zip(self.first, answers, strict=True))
        if before and before != answers:
            for changed in self.changed:
                changed()


def _retrieve(answer: asyncio.Future[Any]) -> None:
    if not answer.cancelled():
        answer.exception()
