"""Links in the Link fields of a response (RFC 8288 section-3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_LINK = re.compile(
    r"<([^<>]*+)>((?:\s*+;\s*+[^;,\"=\s]++\s*+(?:=\s*+(?:\"(?:[^\"\\]|\\.)*+\"|[^\",;]*+))?+)*+)"
)
_PARAMETER = re.compile(r";\s*+([^;,\"=\s]++)\s*+=\s*+(?:\"((?:[^\"\\]|\\.)*+)\"|([^\",;\s]*+))")


class Link(NamedTuple):
    """A link.

    Attributes:
        target: The address, as it is written.
        relations: The relation types, in lower case.
        media_type: The media type, in lower case. "": none.
        text: The link, as it is written.
    """

    target: str
    relations: tuple[str, ...]
    media_type: str
    text: str


def links_in(value: bytes) -> Iterator[Link]:
    """Yield the links of one field. Of a repeated parameter, the first counts."""
    for link in _LINK.finditer(value.decode("utf-8", "replace")):
        parameters: dict[str, str] = {}
        for key, quoted, bare in _PARAMETER.findall(link[2]):
            parameters.setdefault(key.lower(), (quoted or bare).lower())
        yield Link(
            link[1],
            tuple(parameters.get("rel", "").split()),
            parameters.get("type", "").partition(";")[0].strip(),
            link[0],
        )
