"""WARC files."""
