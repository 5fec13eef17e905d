"""WARC files: a format of records as `comity.dataset.files.formats` asks for one."""

from comity.dataset.files.warc.reader import Reader, Writer
from comity.dataset.files.warc.rewriting import Rewriter

__all__ = ("Reader", "Rewriter", "Writer")
