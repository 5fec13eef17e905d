"""Restrictions on a permitted use."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, Self

# Uses that show the page as a whole. Permissions for them can prohibit modifications
# (ACAP 1.0 section-2.5.5.2.4).
MODIFIABLE = ("present", "present-original", "present-currentcopy", "present-oldcopy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """One element of the page itself (ACAP 1.0 section-2.5.3.2).

    Attributes:
        kind: "id", "class" (the first element that matches) or "meta".
        name: the id, the class or the name of the `meta` element."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource to use instead of the page, or to show with it.

    See ACAP 1.0 section-2.5.3.2 and section-2.5.5.2.5.

    Attributes:
        role: "credit" or "link" for a resource to include. "": not given.
        extract: the element of the page. None: the resource has a URI.
        uri: its URI if it is not an element of the page. It is absolute in a decision.
        content: markup of the element, or text of the resource."""

    role: str = ""
    extract: Extract | None = None
    uri: str = ""
    content: str = ""

    def __str__(self) -> str:
        address = self.uri or f"the page's {self.extract}"
        return f"{self.role} {address}".lstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Qualifiers:
    """The restrictions of a permission in any format (ACAP 1.0 section-2.5 NOTE).

    Attributes:
        until: when the permission ends, an aware datetime. None: it does not end.
        until_recrawled: True if the permission ends at the next fetch of the page.
        max_chars: most characters to show. None: no limit.
        max_words: most words to show. None: no limit.
        prohibited_modifications: of "any", "format", "style", "translation", "annotation".
        prohibited_contexts: "within-user-frame", or nothing.
        required_contexts: "within-original-frame", or nothing.
        must_use: resources to use instead of the page.
        must_include: resources to show with the page."""

    until: datetime | None = None
    until_recrawled: bool = False
    max_chars: int | None = None
    max_words: int | None = None
    prohibited_modifications: frozenset[str] = frozenset()
    prohibited_contexts: frozenset[str] = frozenset()
    required_contexts: frozenset[str] = frozenset()
    must_use: tuple[Resource, ...] = ()
    must_include: tuple[Resource, ...] = ()

    def conjoined(self, *others: Qualifiers) -> Self:
        """Return a copy with the restrictions of all (MEET-3).

        The shorter limits hold, and the union of prohibitions and requirements."""
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
        """Return name -> value of the fields that restrict something."""
        values = _values(self)
        if values == _NONE:  # the usual case, decided fast
            return {}
        pairs = zip(_NAMES, values, strict=True)
        return {
            name: value for name, value in pairs if value or (value == 0 and value is not False)
        }


_NAMES = tuple(field.name for field in fields(Qualifiers))
_values = attrgetter(*_NAMES)
_NONE = _values(Qualifiers())


def _all(values: list[Any]) -> Any:
    """Return the most restrictive combination of the values of one field."""
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
