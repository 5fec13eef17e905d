"""Renew objects in processes that are forked from this one.

    call_in_forks(self._renew)

A forked process has a copy of each lock, and one thread only. If another thread has the lock during
the fork, nothing releases the copy."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from weakref import WeakMethod

_methods: set[WeakMethod[Callable[[], Any]]] = set()


def call_in_forks(method: Callable[[], Any]) -> None:
    """Call a bound method in each forked process, before the code after the fork runs.

    This does not keep the object of the method in memory."""
    _methods.add(WeakMethod(method, _methods.discard))


def _call() -> None:
    for reference in [*_methods]:
        method = reference()
        if method is not None:
            method()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_call)
