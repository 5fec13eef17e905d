"""Datasets of items with their tags: files of them, what may be done with each record today, and passes over all of them."""

from __future__ import annotations

from typing import Any


def tagger(*args: Any, **options: Any) -> Any:
    """A step that tags Arrow batches: comity.dataset.tagged_batches.tagger, with pyarrow loaded when it is asked for."""
    from comity.dataset.tagged_batches import tagger

    return tagger(*args, **options)
