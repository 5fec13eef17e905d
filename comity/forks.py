"""Renew objects in processes that are forked from this one.

    call_in_forks(self._renew)
    hold_in_forks(self._lock)

A forked process has a copy of each lock, and one thread only. If another thread has the lock during
the fork, nothing releases the copy. What another thread was doing stays half done in the copy."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakMethod, WeakSet

_methods: set[WeakMethod[Callable[[], Any]]] = set()
_locks: WeakSet[threading.Lock] = WeakSet()
_held: list[threading.Lock] = []
# At the end of the interpreter, the callbacks of weak references find nothing that they need.
atexit.register(_methods.clear)


def call_in_forks(method: Callable[[], Any]) -> None:
    """Call a bound method in each forked process, before the code after the fork runs.

    This does not keep the object of the method in memory."""
    _methods.add(WeakMethod(method, _methods.discard))


def hold_in_forks(lock: threading.Lock) -> None:
    """Let a fork wait for a lock, so that no other thread has it meanwhile.

    A thread must not wait for another such lock, nor fork, while it has this one. This does not
    keep the lock in memory."""
    _locks.add(lock)


def _call() -> None:
    _release()
    for reference in [*_methods]:
        method = reference()
        if method is not None:
            method()


def _acquire() -> None:
    for lock in [*_locks]:
        lock.acquire()
        _held.append(lock)


def _release() -> None:
    while _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_call)
