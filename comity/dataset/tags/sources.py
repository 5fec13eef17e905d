"""Sources of tags: the places of the tags of records.

    InField(name)           a field of the record
    GUESSED                 the only field that looks like a tag
    read(record, source)    the tag of a record; TagError if it has no valid tag

comity.dataset.sidecar is the source of tags that are in a separate file."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, Protocol

from comity.dataset.records import FIELD, SPARE_FIELD, TAG_FIELDS, Record, parse_json
from comity.policies.tag import TAG, Tag, TagError, read_tag

TEXT_FIELDS = (FIELD, SPARE_FIELD)  # the only fields where GUESSED looks for a tag as JSON text


class RawTag(NamedTuple):
    """The tag of a record, not yet checked."""

    raw: Any
    """The value in the place of the tag."""
    field: str
    """The field of the tag, or the field to write it to."""
    is_text: bool = False
    """True if the field has the tag as JSON text."""

    def put(self, record: Record, raw: dict[str, Any]) -> Record:
        """Return the record with the tag `raw` in `field`: as an object, or as text (`is_text`)."""
        return record | {
            self.field: json.dumps(raw, separators=(",", ":")) if self.is_text else raw
        }


class TagSource(Protocol):
    """The place of the tags of records. It can be pickled."""

    @property
    def fields(self) -> tuple[str, ...] | None:
        """The fields of a record that `find` needs. None: all of them."""

    def find(self, record: Record) -> RawTag:
        """Return the tag of a record, unchecked. TagError: it has no tag, or several."""


class InField(NamedTuple):
    """A field of the record."""

    name: str = ""
    """The name of the field. Empty: the tag is the only field that looks like a tag, with an object
    in any field, or with JSON text in one of TEXT_FIELDS."""

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
    """Return True if a value looks like a tag of any version, valid or not.

    It must be an object with `schema` and `uses`, or the JSON text of such an object. The text may
    be invalid JSON."""
    if isinstance(value, str):
        if not (value.lstrip().startswith("{") and '"schema"' in value and '"uses"' in value):
            return False
        value = from_json(value)
        if value is None:
            return True  # incomplete JSON, or a repeated name: a lost part may refuse something
    return isinstance(value, dict) and "schema" in value and "uses" in value


def may_be_tag(value: Any) -> bool:
    """Return True if a value may be the remains of a tag.

    The value must have `uses`, or two other members of a tag. It may be an object, a text that is
    incomplete or not JSON, or a list with such a value."""
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
    """Parse JSON. None if it is invalid."""
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return None


GUESSED = InField()


def read(record: Record, source: TagSource = GUESSED) -> Tag:
    """Return the tag of a record. TagError: the record has no valid tag."""
    return read_tag(source.find(record).raw)
