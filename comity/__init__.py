"""A polite crawler with built-in compliance."""

__version__ = "0.1.0"
