"""Robots meta elements and X-Robots-Tag."""
