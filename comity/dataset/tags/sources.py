"""Sources of tags: where those of records are.

InField(name)       a field of the record, found out where it has no name
GUESSED             the one field that looks like a tag
comity.dataset.sidecar has tags in a file of their own.

read(record, source)    the tag of a record, TagError where it has none that is understood"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, Protocol

from comity.dataset.records import FIELD, SPARE_FIELD, TAG_FIELDS, Record, parsed
from comity.policies.tag import TAG, Tag, TagError, read_tag

TEXT_FIELDS = (FIELD, SPARE_FIELD)  # in which JSON text is taken for a tag, without being told so


class RawTag(NamedTuple):
    """The tag of a record as it stands there, not looked into yet."""

    raw: Any
    field: str  # that it stands in, or will where the record is written
    is_text: bool = False  # it stands there as JSON

    def put(self, record: Record, raw: dict[str, Any]) -> Record:
        """The record with this tag, where and as its own stands."""
        return record | {
            self.field: json.dumps(raw, separators=(",", ":")) if self.is_text else raw
        }


class TagSource(Protocol):
    """A place where the tags of records are. It can be pickled."""

    @property
    def fields(self) -> tuple[str, ...] | None:
        """The fields that `find` has to see of a record; None: all of them."""

    def find(self, record: Record) -> RawTag:
        """Return the tag of a record as it stands there. TagError where there is none, or nobody can tell which it is."""


class InField(NamedTuple):
    """A field of the record."""

    name: str = ""  # "": it is the only one that looks like a tag; as text, in TEXT_FIELDS only

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.name or TAG_FIELDS,)

    def find(self, record: Record) -> RawTag:
        if self.name:
            return _raw_tag(self.name, record.get(self.name))
        alike = [
            field
            for field, value in record.items()
            if (type(value) is dict and "schema" in value and "uses" in value)
            or (field in TEXT_FIELDS and is_tag_like(value))
        ]
        if len(alike) > 1:
            raise TagError("several-tags")
        field = alike[0] if alike else FIELD
        return _raw_tag(field, record.get(field))


def _raw_tag(field: str, value: Any) -> RawTag:
    if not value:
        raise TagError("no-tag")
    return (
        RawTag(from_json(value), field, is_text=True)
        if isinstance(value, str)
        else RawTag(value, field)
    )


def is_tag_like(value: Any) -> bool:
    """Return whether a value is meant as a tag, of whatever version, valid or not: an object, or the JSON of one."""
    if isinstance(value, str):
        if not (value.lstrip().startswith("{") and '"schema"' in value and '"uses"' in value):
            return False
        value = from_json(value)
        if value is None:
            return True  # cut off, or two in one: nobody knows what it would have refused
    return isinstance(value, dict) and "schema" in value and "uses" in value


def may_be_tag(value: Any) -> bool:
    """Return whether a value may be what is left of a tag: without some of its members, cut off, in a list, or as another text
    than JSON. One member other than `uses` may be data of any kind."""
    if isinstance(value, list):
        return any(map(may_be_tag, value))
    members = (
        _QUOTED_MEMBER.findall(value)
        if isinstance(value, str)
        else value
        if isinstance(value, dict)
        else ()
    )
    names = TAG.required.intersection(members)
    return "uses" in names or len(names) > 1


_QUOTED_MEMBER = re.compile(rf"""["']({"|".join(sorted(TAG.required))})\\*["']""")


def from_json(text: str) -> Any:
    """Parse JSON; None for what is none."""
    try:
        return parsed(text)
    except (ValueError, RecursionError):
        return None


GUESSED = InField()


def read(record: Record, source: TagSource = GUESSED) -> Tag:
    """Return the tag of a record. TagError where the record has no tag, or one that cannot be understood."""
    return read_tag(source.find(record).raw)
