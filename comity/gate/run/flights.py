"""Tasks of a crawl, one for a key, that end when the crawl is ending."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Hashable
from typing import Any, Generic, TypeVar

from comity.gate.run.surroundings import Run

T = TypeVar("T")

CLOSING_CHECK = 0.1  # seconds between two looks whether the crawl is ending: Scrapy says so only after waiting for what is in flight


class ClosingError(Exception):
    """The crawl is ending: nothing more is fetched, and nothing was learnt about the site."""


class Flights(Generic[T]):
    """Any number of callers may wait for a task. None of them takes anything from the others by waiting no more."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._tasks: dict[Hashable, asyncio.Task[T]] = {}
        self._watch: asyncio.Task[None] | None = None
        self._is_closed = False

    def get(self, key: Hashable) -> asyncio.Task[T] | None:
        return self._tasks.get(key)

    def begin(self, key: Hashable, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Raises ClosingError after `close`."""
        if self._is_closed:
            work.close()
            raise ClosingError
        task = self._tasks[key] = asyncio.create_task(work)
        task.add_done_callback(lambda done: self._landed(key, done))
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._watch_closing())
        return task

    async def wait(self, task: asyncio.Task[T]) -> T:
        """Raises ClosingError when the crawl ends meanwhile, and what the task raises."""
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise ClosingError from None  # nothing else cancels it
            raise

    async def close(self) -> None:
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

    def _landed(self, key: Hashable, task: asyncio.Task[T]) -> None:
        del self._tasks[key]
        if not task.cancelled():
            task.exception()  # it counts as seen, though nobody may be waiting any more
