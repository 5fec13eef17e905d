"""The usages of ACAP, and the qualifiers of their permissions (ACAP 1.0 section-2.5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Any
from urllib.parse import unquote

from comity.policies.answers.qualifiers import MODIFIABLE, Extract, Qualifiers, Resource

# section-2.5
BASIC_USAGES = ("crawl", "follow", "index", "preserve", "present")
PRESENT_USAGES = (
    "present-original",
    "present-currentcopy",
    "present-oldcopy",
    "present-snippet",
    "present-thumbnail",
    "present-oldsnippet",
    "present-oldthumbnail",
    "present-link",
)
OTHER = "other"
USAGES = (*BASIC_USAGES, *PRESENT_USAGES, OTHER)

_PRESENTING = frozenset(("present", *PRESENT_USAGES))
_WHOLE_COPIES = frozenset(MODIFIABLE) - {"present"}

# Usages that take no qualifiers -> the section that forbids qualifiers.
_UNRESTRICTED = {"crawl": "2.5.1", "follow": "2.5.2", OTHER: "2.5.6"}

_LEVELS = {usage: (usage, OTHER) for usage in BASIC_USAGES} | {
    usage: (usage, "present", OTHER) for usage in PRESENT_USAGES
}


def levels(usage: str) -> tuple[str, ...]:
    """Return a usage and its more general usages, the most precise one first.

    The fields of all of these can apply to the usage (section-2.5.5, section-2.5.6).
    """
    return _LEVELS.get(usage, (OTHER,))


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldQualifiers(Qualifiers):
    """The qualifiers of one permission as its file states them. URIs of resources are as written.

    Attributes:
        days: The number of days from the first use until the permission ends. None means that the
            permission has no limit in days.
    """

    days: int | None = None

    @property
    def depends_on_page(self) -> bool:
        """True if the page, other resources or the time decide whether the qualifiers are met."""
        return (
            self.days is not None
            or self.until is not None
            or bool(self.must_use or self.must_include)
        )

    def restrictions(self) -> dict[str, Any]:
        # `super()` does not work in a dataclass with slots.
        restricting = Qualifiers.restrictions(self)
        return restricting if self.days is None else {**restricting, "days": self.days}


NONE = FieldQualifiers()


class QualifierError(ValueError):
    """The permission cannot be honoured as stated.

    This error never leaves the parser of the file.
    """

    def __init__(self, message: str, quoted: str, section: str) -> None:
        """Store the problem.

        `message` has a `{}` for `quoted`, the text of the file. `section` is the section of ACAP
        1.0 by which the permission grants nothing, such as "2.5.1".
        """
        super().__init__(message)
        self.message = message
        self.quoted = quoted
        self.citation = f"ACAP 1.0 section-{section}"


# section-3
#   qualifier-specification = qualifier-type *WSP "=" *WSP qualifier-value
#   value-char = %x21 / %x24-26 / %x28-7E
_QUALIFIER = re.compile(
    r"[ \t]*+([A-Za-z][A-Za-z0-9._-]*+)[ \t]*+=[ \t]*+([\x21\x24-\x26\x28-\x7e]++)(?=[ \t]|$)"
)
_COUNT = re.compile(r"([0-9]{1,9})-([a-z]+)")
_DATE = re.compile(r"until-([0-9]{4}-[0-9]{2}-[0-9]{2})")
_ACAP_SCHEME = "the-acap:"


def _time_limit(value: str) -> FieldQualifiers:
    value = value.lower()
    # LENIENT: section-2.4.1.2 writes `until-recrawl`.
    if value in ("until-recrawled", "until-recrawl"):
        return FieldQualifiers(until_recrawled=True)
    date = _DATE.fullmatch(value)
    if date:
        return FieldQualifiers(
            until=datetime.combine(datetime.fromisoformat(date[1]), time(23, 59, 59), UTC)
        )
    return FieldQualifiers(days=_count(value, "days"))


def _max_length(value: str) -> FieldQualifiers:
    value = value.lower()
    return (
        FieldQualifiers(max_words=_count(value, "words"))
        if value.endswith("words")
        else FieldQualifiers(max_chars=_count(value, "chars"))
    )


def _count(value: str, unit: str) -> int:
    match = _COUNT.fullmatch(value)
    if match is None or match[2] != unit:
        raise ValueError
    return int(match[1])


def _choice(value: str, *choices: str) -> frozenset[str]:
    if value.lower() not in choices:
        raise ValueError
    return frozenset((value.lower(),))


def _extract(text: str) -> Extract | None:
    kind, colon, name = text.partition(":")
    if not colon or kind.lower() not in ("id", "class", "meta"):
        return None
    if not name:
        raise ValueError
    return Extract(kind=kind.lower(), name=name)


def _must_use(value: str) -> FieldQualifiers:
    if not value.lower().startswith(_ACAP_SCHEME):
        return FieldQualifiers(must_use=(Resource(uri=value),))
    scheme, _, rest = value[len(_ACAP_SCHEME) :].partition(":")
    extract = _extract(rest)
    if scheme.lower() != "extract" or extract is None:
        raise ValueError
    return FieldQualifiers(must_use=(Resource(extract=extract),))


def _must_include(value: str) -> FieldQualifiers:
    if not value.lower().startswith(_ACAP_SCHEME):
        return FieldQualifiers(must_include=(Resource(uri=value),))
    role, _, locator = value[len(_ACAP_SCHEME) :].partition(":")
    if role.lower() not in ("credit", "link") or not locator:
        raise ValueError
    extract = _extract(locator)
    return FieldQualifiers(
        must_include=(Resource(role=role.lower(), extract=extract, uri="" if extract else locator),)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Type:
    """A type of qualifiers.

    Attributes:
        parse: Reads a value. ValueError: the value is invalid.
        sections: First word of a usage -> the section that defines the values.
        usages: The usages with permissions that can have a qualifier of this type.
        can_repeat: True if a permission may have several qualifiers of this type.
    """

    parse: Callable[[str], FieldQualifiers]
    sections: Mapping[str, str]
    usages: frozenset[str]
    can_repeat: bool = False


_TYPES: Mapping[str, _Type] = {
    "time-limit": _Type(
        parse=_time_limit,
        sections={"index": "2.5.3.1", "preserve": "2.5.4.1", "present": "2.5.5.2.1"},
        usages=_PRESENTING | {"index", "preserve"},
    ),
    "must-use-resource": _Type(
        parse=_must_use,
        sections={"index": "2.5.3.2", "present": "2.5.5.2.2"},
        usages=_PRESENTING | {"index"},
    ),
    "max-length": _Type(
        parse=_max_length,
        sections={"present": "2.5.5.2.3"},
        usages=frozenset(("present-snippet", "present-oldsnippet")),
    ),
    "prohibited-modification": _Type(
        parse=lambda value: FieldQualifiers(
            prohibited_modifications=_choice(
                value, "any", "format", "style", "translation", "annotation"
            )
        ),
        sections={"present": "2.5.5.2.4"},
        usages=frozenset(MODIFIABLE),
        can_repeat=True,
    ),
    "must-include-resource": _Type(
        parse=_must_include, sections={"present": "2.5.5.2.5"}, usages=_PRESENTING
    ),
    "prohibited-context": _Type(
        parse=lambda value: FieldQualifiers(
            prohibited_contexts=_choice(value, "within-user-frame")
        ),
        sections={"present": "2.5.5.2.6"},
        usages=_WHOLE_COPIES,
    ),
    "required-context": _Type(
        parse=lambda value: FieldQualifiers(
            required_contexts=_choice(value, "within-original-frame")
        ),
        sections={"present": "2.5.5.2.7"},
        usages=_WHOLE_COPIES,
    ),
}

QUALIFIED: Mapping[str, frozenset[str]] = {name: kind.usages for name, kind in _TYPES.items()}
"""Qualifier -> the usages with permissions that can have this qualifier."""


def read_qualifiers(text: str, usage: str) -> FieldQualifiers:
    """Read the qualifiers after the resource specification of a permission.

    `usage` is the usage of the permission. QualifierError: a qualifier cannot be honoured.
    """
    qualifiers, seen, position = NONE, set[str](), 0
    text = text.strip(" \t")
    while position < len(text):
        match = _QUALIFIER.match(text, position)
        if match is None:
            raise QualifierError(
                "`{}` is not a qualifier of the form name=value", text[position:].strip(), "3"
            )
        position = match.end()
        name, value = match[1].lower(), match[2]
        kind = _TYPES.get(name)
        if kind is None:
            raise QualifierError("the qualifier `{}` is unknown", name, "2.4.1.2")
        if usage not in kind.usages:
            raise QualifierError(
                f"the qualifier `{{}}` cannot limit `{usage}`",
                name,
                _UNRESTRICTED.get(usage, "2.4.1.2"),
            )
        try:
            qualifier = kind.parse(unquote(value, errors="strict"))
        except ValueError:
            section = kind.sections[usage.partition("-")[0]]
            raise QualifierError(f"`{{}}` is not a value of `{name}`", value, section) from None
        modifications = qualifiers.prohibited_modifications | qualifier.prohibited_modifications
        if name in seen and (not kind.can_repeat or "any" in modifications):
            section = kind.sections["present"] if kind.can_repeat else "2.5.5.2"
            raise QualifierError("the qualifier `{}` cannot be repeated here", name, section)
        seen.add(name)
        qualifiers = qualifiers.conjoined(qualifier)
    return qualifiers
