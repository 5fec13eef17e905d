"""Syntax that several text formats have in common: lines, patterns of paths, URLs, windows of time, XML."""
