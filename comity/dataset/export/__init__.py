"""Exports of what may be used."""
