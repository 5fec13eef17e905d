"""Datasets of items with their tags: their files, the uses that each record permits today, and
passes over all records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comity.dataset.tagged_batches import tagger

__all__ = ("tagger",)


def __getattr__(name: str) -> Any:
    # pyarrow, which `tagger` needs, is loaded on the first use.
    if name != "tagger":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from comity.dataset.tagged_batches import tagger

    return tagger
