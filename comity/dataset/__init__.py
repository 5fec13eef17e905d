"""Passes over records that carry their tag: what may be used, for which use, today (docs/datasets.md)."""
