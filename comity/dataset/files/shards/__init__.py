"""Shards of samples: a format of records with the interface of `comity.dataset.files.formats`."""

from comity.dataset.files.shards.reader import Reader
from comity.dataset.files.shards.writer import Writer

__all__ = ("Reader", "Writer")
