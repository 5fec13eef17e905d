"""WARC files."""

from comity.dataset.files.warc.rewriting import Rewriter
from comity.dataset.files.warc.warc import Reader, Writer

__all__ = ["Reader", "Rewriter", "Writer"]
