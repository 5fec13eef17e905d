"""Datasets of items with their tags: their files, the uses that each record permits today, and
passes over all records."""

from __future__ import annotations

from typing import Any


def tagger(*args: Any, **options: Any) -> Any:
    """Return a step that tags Arrow batches: comity.dataset.tagged_batches.tagger.

    pyarrow is loaded on the first call."""
    from comity.dataset.tagged_batches import tagger

    return tagger(*args, **options)
