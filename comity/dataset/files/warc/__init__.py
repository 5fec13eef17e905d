"""WARC files."""

from comity.dataset.files.warc.warc import Reader, Rewriter

__all__ = ["Reader", "Rewriter"]
