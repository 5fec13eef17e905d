"""The `state` of a spider, as the crawl keeps it: a dict that all workers and all runs share.

Each worker has a copy of the dict. It sends the keys that it has changed, and takes over the keys
that other workers have changed. The last value of a key counts. Changes are sent before the server
is told which requests are done. So a worker that is killed loses no change that a done page has
made."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from comity.cluster.plain_values import pack, unpack
from comity.policies.syntax.printable import printable

if TYPE_CHECKING:
    from comity.cluster.state import CrawlQueue

logger = logging.getLogger(__name__)

DELETED = b""  # the value of a key that is deleted


class SpiderState:
    """The state of the spider at this worker.

    Attributes:
        values: The dict that the spider reads and changes.
    """

    def __init__(self, queue: CrawlQueue) -> None:
        self.values: dict[str, Any] = {}
        self._queue = queue
        self._stored: dict[str, bytes] = {}  # the packed values that the server has
        self._own: set[str] = set()  # keys that this worker was the last to change
        self._unusable: set[Any] = set()  # keys that the log has complained about
        queue.on_change(self._forget_own)

    @property
    def is_used(self) -> bool:
        """Return True if a spider has stored a value."""
        return bool(self.values or self._stored)

    def _forget_own(self) -> None:
        """Have this worker's values sent again: another server may lack the last ones."""
        for key in self._own:
            self._stored.pop(key, None)

    def _changes(self) -> dict[str, bytes]:
        """Return the packed values of the keys that the spider has changed."""
        changes = {}
        for key, value in [*self.values.items()]:
            try:
                if type(key) is not str:
                    raise ValueError("its key is not a text")
                key.encode()
                packed = pack(value)
            except ValueError as error:
                self._complain(
                    key,
                    f"stays in this process only, and is lost with it ({error}): use texts as keys,"
                    " and numbers, texts, bytes, lists, tuples and dicts as values",
                )
            else:
                if self._stored.get(key) != packed:
                    changes[key] = packed
        for key, packed in self._stored.items():
            if key not in self.values and packed != DELETED:
                changes[key] = DELETED
        return changes

    def _complain(self, key: Any, problem: str) -> None:
        if key not in self._unusable:
            self._unusable.add(key)
            logger.error(
                "COMITY_STATE: `%(key)s` in the state of the spider %(problem)s",
                {"key": printable(str(key)), "problem": printable(problem)},
            )

    async def send(self) -> None:
        """Send the changes of the spider, if there are any."""
        if changes := self._changes():
            await self._exchange(changes)

    async def exchange(self) -> None:
        """Send the changes of the spider, and take over those of other workers."""
        await self._exchange(self._changes())

    async def _exchange(self, changes: dict[str, bytes]) -> None:
        answer = await self._queue.exchange(changes)
        newer = self._changes()  # the spider may have changed more values meanwhile
        for key, packed in answer.items():
            if key in changes:
                self._own.add(key)
            else:
                self._own.discard(key)
                if key not in newer and not self._take_over(key, packed):
                    continue
            self._stored[key] = packed

    def _take_over(self, key: str, packed: bytes) -> bool:
        """Give the spider the value of another worker. False: it cannot be read."""
        if packed == DELETED:
            self.values.pop(key, None)
            return True
        try:
            self.values[key] = unpack(packed)
        except ValueError as error:
            self._complain(key, f"cannot be read, and is left out: {error}")
            return False
        return True
