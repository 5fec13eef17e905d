"""WARC files: a format of records with the interface of `comity.dataset.files.formats`."""

from comity.dataset.files.warc.reader import Reader, Writer
from comity.dataset.files.warc.rewriting import Rewriter

__all__ = ("Reader", "Rewriter", "Writer")
