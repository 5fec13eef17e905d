"""The tag of a record, read as strictly as it is written: comity/policies/permissions.schema.json.

    read(record, source) -> Tag         TagError where anything in it is not understood
    InField(name)                       a source: a field of the record, found out where it has no name

What a later version may add is no permission here. Types are exact, as in JSON: `true` is no number."""

from __future__ import annotations

import json
import marshal
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from comity.dataset.records import FIELD, SPARE_FIELD, TAG_FIELDS, Record
from comity.policies.answers import qualifiers
from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.page import BASIC_USES, USE_NAME

# Patterns of texts.
AGENT, USE, RULE, HASH = r"[A-Za-z0-9_-]+", USE_NAME.pattern, r"[a-z-]+\.[a-z-]+", r"[0-9a-f]{64}"

T = TypeVar("T")

Span = list[Any]  # [field], [field, member of the list] or [field, first character, first one after it]


class TagError(ValueError):
    """Why the tag permits nothing: "no-tag", "several-tags", or "invalid-tag:" and the part of it that is not understood."""


FREE = Qualifiers()


class Use(NamedTuple):
    """What the tag says of one use."""

    is_allowed: bool
    because: tuple[int, ...]  # in the tag's reasons
    qualifiers: Qualifiers  # FREE where there are none


class Element(NamedTuple):
    """What one element rule covers of the record."""

    deny: frozenset[str]
    is_whole: bool  # the whole page
    spans: list[Span]
    urls: list[str]  # absolute, of links and images in it
    more_urls: bool  # it has others than these
    names: list[str]  # of fields of the record that have something of it in them
    because: tuple[int, ...]


class Tag(NamedTuple):
    """One that is understood as a whole."""

    uses: Mapping[str, Use]
    embedded: Mapping[str, Use]  # of files that are embedded in the page, where it differs
    elements: tuple[Element, ...]
    reasons: list[dict[str, Any]]
    carried: Carried

    @property
    def raw(self) -> dict[str, Any]:
        """As it stands in the record."""
        raw: dict[str, Any] = self.carried.raw
        return raw

    def because(self, said: Use | Element) -> tuple[dict[str, Any], ...]:
        return tuple(self.reasons[place] for place in said.because)


# Where it is

TEXT_FIELDS = (FIELD, SPARE_FIELD)  # in which JSON text is taken for a tag, without being told so


class Carried(NamedTuple):
    """The tag of a record, not looked into yet."""

    raw: Any
    field: str  # that it stands in, or will where the record is written
    is_text: bool = False  # it stands there as JSON

    def put(self, record: Record, raw: dict[str, Any]) -> Record:
        """The record with this tag, where and as its own stands."""
        return record | {self.field: json.dumps(raw, separators=(",", ":")) if self.is_text else raw}


class TagSource(Protocol):
    """Where the tags of records are. It can be pickled."""

    @property
    def fields(self) -> tuple[str, ...] | None:
        """What `find` has to see of a record; None: all of it."""

    def find(self, record: Record) -> Carried:
        """TagError where there is none, or nobody can tell which it is."""


class InField(NamedTuple):
    """A field of the record."""

    name: str = ""  # "": it is the only one that looks like a tag; as text, in TEXT_FIELDS only

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.name or TAG_FIELDS,)

    def find(self, record: Record) -> Carried:
        if self.name:
            return _carried(self.name, record.get(self.name))
        alike = [
            field
            for field, value in record.items()
            if (type(value) is dict and "schema" in value and "uses" in value) or (field in TEXT_FIELDS and is_tag_like(value))
        ]
        if len(alike) > 1:
            raise TagError("several-tags")
        field = alike[0] if alike else FIELD
        return _carried(field, record.get(field))


def _carried(field: str, value: Any) -> Carried:
    if not value:
        raise TagError("no-tag")
    return Carried(_from_json(value), field, is_text=True) if isinstance(value, str) else Carried(value, field)


def is_tag_like(value: Any) -> bool:
    """Whether it is meant as a tag, of whatever version, valid or not: an object, or the JSON of one."""
    if isinstance(value, str):
        if not (value.startswith("{") and '"schema"' in value and '"uses"' in value):
            return False
        value = _from_json(value)
    return isinstance(value, dict) and "schema" in value and "uses" in value


def _from_json(text: str) -> Any:
    """None for what is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


GUESSED = InField()

# What it says


def read(record: Record, source: TagSource = GUESSED) -> Tag:
    """TagError where the record has no tag, or one that cannot be understood."""
    return read_carried(source.find(record))


def read_carried(carried: Carried) -> Tag:
    """TagError where it cannot be understood."""
    raw = carried.raw
    if type(raw) is not dict or not _TAG.keys() >= raw.keys() >= _REQUIRED:
        raise TagError("invalid-tag:keys")
    for key, is_valid in _TAG.items():
        if key in raw and not is_valid(raw[key]):
            raise TagError(f"invalid-tag:{key}")
    reasons: list[dict[str, Any]] = raw["reasons"]
    uses, highest = _USES(raw["uses"])
    embedded, other = _EMBEDDED(raw["embedded"]) if "embedded" in raw else ({}, 0)
    elements = tuple(map(_element, raw["elements"])) if raw["elements"] else ()
    if max(highest, other, *(place for element in elements for place in element.because)) >= len(reasons):
        raise TagError("invalid-tag:because")
    return Tag(uses, embedded, elements, reasons, carried)


# What of the schema is a type

Check = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return type(value) is str


def _count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _truth(value: Any) -> bool:
    return type(value) is bool


def _is_true(value: Any) -> bool:
    return value is True


def _matching(pattern: str) -> Check:
    matches = re.compile(pattern).fullmatch
    return lambda value: type(value) is str and matches(value) is not None


def _one_of(*values: str) -> Check:
    return lambda value: type(value) is str and value in values


def _list(is_member: Check, *, at_least: int = 0) -> Check:
    return lambda value: type(value) is list and len(value) >= at_least and all(map(is_member, value))


def _object(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    checks = {**required, **(optional or {})}

    def is_object(value: Any) -> bool:
        if type(value) is not dict or not checks.keys() >= value.keys() >= required.keys():
            return False
        return all(checks[key](member) for key, member in value.items())

    return is_object


def _names(value: Any) -> bool:
    return type(value) is list and all(map(_text, value)) and len(set(value)) == len(value)


def _moment(value: Any) -> bool:
    if type(value) is not str:
        return False
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _span(value: Any) -> bool:
    return type(value) is list and 1 <= len(value) <= 3 and type(value[0]) is str and all(map(_count, value[1:]))


_because = _list(_count, at_least=1)
_use_name = _matching(USE)
_resource = _object({"role": _one_of("", "credit", "link"), "extract": _text, "url": _text, "content": _text})
_use = _object(
    {"verdict": _one_of("allow", "deny"), "stated": _truth, "because": _because},
    {
        "until": _moment,
        "until_recrawled": _truth,
        "max_chars": _count,
        "max_words": _count,
        "prohibited_modifications": _names,
        "prohibited_contexts": _names,
        "required_contexts": _names,
        "must_use": _list(_resource),
        "must_include": _list(_resource),
    },
)
_FREE_KEYS = {"verdict", "stated", "because"}
_guideline = _object({"lang": _text, "text": _text})
_is_element = _object(
    {
        "selector": _text,
        "type": _one_of("", "html", "json", "xml"),
        "deny": _names,
        "guide": _list(_object({"actions": _names, "guidelines": _list(_guideline)})),
        "spans": _list(_span),
        "because": _because,
    },
    {"whole": _is_true, "urls": _names, "more_urls": _is_true, "names": _names},
)
_reason = _object({"rule": _matching(RULE), "spec": _text, "url": _text, "line": _count, "text": _text}, {"part": _text})
_hash = _matching(HASH)
_policy = _object(
    {
        "status": _count,
        "sha256": lambda value: value is None or _hash(value),
        "fetched_at": lambda value: value is None or _text(value),
    }
)


def _use_of(raw: dict[str, Any]) -> Use:
    said = FREE if raw.keys() == _FREE_KEYS else qualifiers.read(raw)
    return Use(raw["verdict"] == "allow", tuple(raw["because"]), said)


def _element(raw: dict[str, Any]) -> Element:
    return Element(
        frozenset(raw["deny"]),
        "whole" in raw,
        raw["spans"],
        raw.get("urls", []),
        "more_urls" in raw,
        raw.get("names", []),
        tuple(raw["because"]),
    )


# Records of a site have most of their tag in common. What has been read once is known again by its octets.

MAX_KNOWN = 4096  # values of each part
MAX_OCTETS = 4096  # of one


class _Known(Generic[T]):
    """A pure function of plain data, which remembers its results."""

    def __init__(self, read: Callable[[Any], T]) -> None:
        self._read = read
        self._results: dict[bytes, T] = {}

    def __call__(self, value: Any) -> T:
        try:
            octets = marshal.dumps(value, 2)  # version 2 tells equal values of equal types from all others, and nothing else
        except ValueError:  # no plain data
            return self._read(value)
        result = self._results.get(octets)
        if result is None:
            result = self._read(value)
            if len(octets) <= MAX_OCTETS:
                if len(self._results) >= MAX_KNOWN:
                    self._results.clear()
                self._results[octets] = result
        return result


def _read_uses(part: str, at_least: frozenset[str]) -> Callable[[Any], tuple[dict[str, Use], int]]:
    """Use -> what is said of it, and the highest place in the reasons that is named."""

    def read_uses(raw: Any) -> tuple[dict[str, Use], int]:
        if type(raw) is not dict or not raw or not raw.keys() >= at_least:
            raise TagError(f"invalid-tag:{part}")
        if not all(_use_name(use) and _use(decision) for use, decision in raw.items()):
            raise TagError(f"invalid-tag:{part}")
        uses = {use: _use_of(decision) for use, decision in raw.items()}
        return uses, max(max(use.because) for use in uses.values())

    return read_uses


_USES = _Known(_read_uses("uses", frozenset(BASIC_USES)))
_EMBEDDED = _Known(_read_uses("embedded", frozenset()))


def _any(value: Any) -> bool:
    return True


_TAG: Mapping[str, Check] = {
    "schema": lambda value: type(value) is int and value == 1,
    "agent": _matching(AGENT),
    "uses": _any,  # read
    "embedded": _any,  # read
    "elements": _list(_is_element),
    "reasons": _Known(_list(_reason)),
    "policies": _Known(lambda value: type(value) is dict and all(map(_text, value)) and all(map(_policy, value.values()))),
}
_REQUIRED = _TAG.keys() - {"embedded"}
