"""Content Signals."""
