"""A clock that moves when there is nothing to do until later."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from scrapy.utils.asyncio import call_later

EPOCH = 1_800_000_000.0  # what is added to the monotonic clock: 2027-01-15, 08:00 UTC


class Clock:
    now = 1000.0  # monotonic

    def call_later(self, delay: float, func: Callable[[], object]) -> Any:
        """Where no loop runs, nobody is called."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return SimpleNamespace(cancel=lambda: None)
        return call_later(delay, func)


class Selector(selectors.DefaultSelector):
    """The clock goes on by what the loop would sleep."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "nothing will ever happen"
        self._clock.now += timeout
        return super().select(0)


class Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: Clock) -> None:
        super().__init__(Selector(clock))
        self._clock = clock

    def time(self) -> float:
        return self._clock.now
