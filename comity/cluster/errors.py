"""The errors of the state that workers share."""

from __future__ import annotations


class StateError(OSError):
    """The server of the shared state cannot be reached, or gives no answer.

    The call may or may not have happened."""


class StateFullError(StateError):
    """The server's memory, or the queue of the crawl, is full. The call has not happened."""


class StateLostError(Exception):
    """The server has lost requests of the crawl, or may lose some at any time. The crawl ends."""
