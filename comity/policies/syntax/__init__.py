"""Syntax shared by several text formats: lines, path patterns, URLs, windows of time, XML."""
