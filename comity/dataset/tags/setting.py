"""The setting COMITY_TAG and the option `--tag`: the place for tags of items (docs/items.md)."""

from __future__ import annotations

import re
from keyword import iskeyword
from typing import NamedTuple, Self

from comity.dataset.records import FIELD
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable

IN_FIELD = "field"  # a field of the item has the tag as an object
AS_JSON = "json"  # a field of the item has the tag as JSON text
SIDECAR = "sidecar"  # a separate file has the tags
OFF = "off"  # items get no tags

REMEDY = f"write the name of a field, json:NAME, sidecar:FILE or {OFF}"

_FIELD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")  # a name that every class of items can have


class TagSetting(NamedTuple):
    """`NAME`, `field:NAME`, `json:NAME`, `json`, `sidecar:FILE` or `off`."""

    kind: str = IN_FIELD
    """IN_FIELD, AS_JSON, SIDECAR or OFF."""
    name: str = FIELD
    """The name of the field. For SIDECAR the path or URI of the file, with the placeholders of
    Scrapy's FEEDS. Empty for OFF."""

    @classmethod
    def parse(cls, text: str, *, subject: str) -> Self:
        """Read the setting. `subject`: the name of the setting, for the message of the error.

        `json` alone means JSON text in FIELD. For an object in a field with the name `json`, the
        text must be `field:json`.

        PolicyError: the text is invalid."""
        kind, colon, name = text.strip().partition(":")
        if not colon:
            if kind == OFF:
                return cls(OFF, "")
            kind, name = (
                (kind, FIELD if kind == AS_JSON else "")
                if kind in (AS_JSON, SIDECAR)
                else (IN_FIELD, kind)
            )
        if kind == SIDECAR:
            if not name or "\0" in name:
                raise PolicyError(
                    f"{subject} `{_printable(text)}` names no file: write sidecar:permissions.jsonl"
                )
            return cls(SIDECAR, name)
        if kind not in (IN_FIELD, AS_JSON) or not _FIELD_NAME.fullmatch(name) or iskeyword(name):
            raise PolicyError(
                f"{subject} `{_printable(text)}` is not a place for the tag of an item: {REMEDY}"
            )
        return cls(kind, name)

    def __str__(self) -> str:
        is_plain = self.kind == IN_FIELD and self.name not in (AS_JSON, SIDECAR, OFF)
        return self.name if is_plain else ":".join(filter(None, self))


def _printable(text: str) -> str:
    return printable(text.encode("utf-8", "replace"))
