"""A pause of the garbage collector while much plain data is made.

Plain data has no cycles, and the search for cycles takes longer than to make the data."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Suspend Python's search for cycles. Unreferenced objects are still freed."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
