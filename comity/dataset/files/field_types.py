"""The fields of the records of a dataset, and their types in the vocabulary of Croissant."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from comity.dataset.records import Record
from comity.dataset.tags.sources import RawTag

_SIMPLE = {type(None): "", bool: "sc:Boolean", int: "sc:Integer", float: "sc:Float", str: "sc:Text"}


class Fields:
    """The fields of the records, and their data types. It can be merged and pickled."""

    def __init__(self) -> None:
        # Field -> types: "" for null, "[sc:Text]" for a list, "?" if Croissant has no type.
        self.kinds: dict[str, set[str]] = {}
        self.tags: dict[str, None] = {}  # fields with tags as objects

    def note(self, record: Record, tag: RawTag | None = None) -> None:
        if tag and not tag.is_text and tag.field in record:
            self.tags[tag.field] = None
        for name, value in record.items():
            kind = _SIMPLE.get(type(value)) or _type_of(name, value)
            if kind == "sc:Text" and taken_for_date(name):
                kind = _type_of_text(value)
            if (kinds_of_name := self.kinds.get(name)) is None:
                self.kinds[name] = {kind}
            else:
                kinds_of_name.add(kind)

    def merge(self, other: Fields) -> None:
        for name, kinds in other.kinds.items():
            self.kinds.setdefault(name, set()).update(kinds)
        self.tags |= other.tags


def _type_of(name: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, list):
        return "?"
    kinds = {_SIMPLE.get(type_, "?") for type_ in set(map(type, value))}
    return f"[{common_type(kinds)}]"


def common_type(kinds: set[str]) -> str:
    """Return the type that includes all of `kinds`, e.g. sc:Float for integers and floats.

    "" for null only. "?" if no type includes all of them."""
    kinds = kinds - {""}
    if len(kinds) > 1:
        kinds = kinds - {"[]"}
    if len(kinds) < 2:
        return next(iter(kinds), "")
    return "sc:Float" if kinds == {"sc:Integer", "sc:Float"} else "?"


def taken_for_date(name: str) -> bool:
    """Return True if pandas parses texts in a field of this name as times, e.g. `fetched_at`.

    mlcroissant reads JSON Lines with pandas."""
    return (
        name.endswith(("_at", "_time"))
        or name in ("modified", "date")
        or name.startswith("timestamp")
    )


def _type_of_text(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return "sc:Text"
    return "sc:DateTime"
