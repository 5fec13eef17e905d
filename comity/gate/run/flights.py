"""The tasks of a crawl, at most one for each key. They are cancelled when the crawl is ending."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Hashable
from typing import Any, Generic, TypeVar

from comity.gate.run.surroundings import Run

T = TypeVar("T")

# Seconds between two checks if the crawl is ending. Scrapy's signal comes too late for this: Scrapy
# waits for all requests in flight first.
CLOSING_CHECK = 0.1


class ClosingError(Exception):
    """The crawl is ending: the fetch was cancelled, so nothing is known about the site."""


class Flights(Generic[T]):
    """Tasks that any number of callers may wait for.

    A caller that stops waiting does not cancel the task for the others."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._tasks: dict[Hashable, asyncio.Task[T]] = {}
        self._watch: asyncio.Task[None] | None = None
        self._is_closed = False

    def get(self, key: Hashable) -> asyncio.Task[T] | None:
        """Return the unfinished task for the key; None if there is no such task."""
        return self._tasks.get(key)

    def begin(self, key: Hashable, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task for the key. ClosingError: `close` was called."""
        if self._is_closed:
            work.close()
            raise ClosingError
        task = self._tasks[key] = asyncio.create_task(work)
        task.add_done_callback(lambda done: self._remove(key, done))
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._watch_closing())
        return task

    async def wait(self, task: asyncio.Task[T]) -> T:
        """Return the result of the task, or raise its error.

        ClosingError: the crawl ended before the task did."""
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise ClosingError from None  # only the end of the crawl cancels tasks
            raise

    async def close(self) -> None:
        """Cancel all tasks, and wait until they have ended."""
        self._is_closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch_closing(self) -> None:
        while self._tasks:
            if self._run.is_closing:
                for task in self._tasks.values():
                    task.cancel()
            await asyncio.sleep(CLOSING_CHECK)

    def _remove(self, key: Hashable, task: asyncio.Task[T]) -> None:
        del self._tasks[key]
        if not task.cancelled():
            task.exception()  # or asyncio warns about the error if no caller waits any more
