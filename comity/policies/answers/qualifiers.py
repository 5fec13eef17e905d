"""The restrictions under which a use is permitted."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, Self

# The uses whose permissions can prohibit modifications (ACAP 1.0 section-2.5.5.2.4): to show the page as a whole.
MODIFIABLE = ("present", "present-original", "present-currentcopy", "present-oldcopy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """One element of the page itself (ACAP 1.0 section-2.5.3.2)."""

    kind: str  # "id", "class" (the first that matches) or "meta"
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource to be used instead of the page, or to be shown with it (ACAP 1.0 section-2.5.3.2, section-2.5.5.2.5)."""

    role: str = ""  # "credit" or "link" of what is to be included; "": not said
    extract: Extract | None = None
    uri: str = ""  # where it is not an element of the page; absolute in a decision
    content: str = ""  # what was found there; markup of the element, text of the resource

    def __str__(self) -> str:
        address = self.uri or f"the page's {self.extract}"
        return f"{self.role} {address}".lstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Qualifiers:
    """The restrictions of a permission of any format; empty where it has none of its own (ACAP 1.0 section-2.5 NOTE)."""

    until: datetime | None = None  # aware; the permission ends then
    until_recrawled: bool = False  # it ends when the page is fetched again
    max_chars: int | None = None
    max_words: int | None = None
    prohibited_modifications: frozenset[str] = (
        frozenset()
    )  # "any", "format", "style", "translation", "annotation"
    prohibited_contexts: frozenset[str] = frozenset()  # "within-user-frame"
    required_contexts: frozenset[str] = frozenset()  # "within-original-frame"
    must_use: tuple[Resource, ...] = ()
    must_include: tuple[Resource, ...] = ()

    def conjoined(self, *others: Qualifiers) -> Self:
        """Return it with the restrictions of all (MEET-3): the shorter limits, the union of what is prohibited and required."""
        restrictions: dict[str, list[Any]] = {}
        for other in others:
            for name, value in other.restrictions().items():
                restrictions.setdefault(name, []).append(value)
        joined = {
            name: _all([getattr(self, name), *values])
            for name, values in restrictions.items()
            if hasattr(self, name)
        }
        return replace(self, **joined) if joined else self

    def restrictions(self) -> dict[str, Any]:
        """Return name -> value of those that restrict anything."""
        values = _values(self)
        if values == _NONE:  # as most
            return {}
        pairs = zip(_NAMES, values, strict=True)
        return {
            name: value for name, value in pairs if value or (value == 0 and value is not False)
        }


_NAMES = tuple(field.name for field in fields(Qualifiers))
_values = attrgetter(*_NAMES)
_NONE = _values(Qualifiers())


def _all(values: list[Any]) -> Any:
    values = [value for value in values if value is not None]
    if not values or not isinstance(values[0], bool | frozenset | tuple | int | datetime):
        return values[0] if values else None
    if isinstance(values[0], bool):
        return any(values)
    if isinstance(values[0], frozenset):
        return frozenset().union(*values)
    if isinstance(values[0], tuple):
        return tuple(dict.fromkeys(value for members in values for value in members))
    return min(values)
