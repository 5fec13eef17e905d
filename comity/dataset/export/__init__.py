"""Exports of the records that may be used."""
