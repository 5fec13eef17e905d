"""The tag that an item carries (schema 1): what may be done with it, and why.

    write_tag(agent, uses, policies)    decisions as a tag
    join_tags(agent, first, second)     the tag of what came from two pages
    read_tag(raw)                       TagError where anything in it is not understood

What a later version may add is no permission here. Types are exact, as in JSON: `true` is no number."""

from __future__ import annotations

import marshal
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from comity.policies.agent import Agent
from comity.policies.answers import qualifiers
from comity.policies.answers.decision import Reason, Source, UseDecision, Verdict
from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.answers.rule import RULES
from comity.policies.elements.rules import Traced

USE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
BASIC_USES = ("crawl", "follow", "index", "preserve", "present")  # ACAP 1.0 section 2.5; every tag lists them

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
    raw: dict[str, Any]  # as it stands in the record

    def because(self, said: Use | Element) -> tuple[dict[str, Any], ...]:
        return tuple(self.raw["reasons"][place] for place in said.because)


# What it says


def read_tag(raw: Any) -> Tag:
    """The tag as it stands in a record. TagError where it cannot be understood."""
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
    return Tag(uses, embedded, elements, raw)


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


# Writing


def write_tag(
    agent: Agent,
    uses: Mapping[str, UseDecision],
    policies: Mapping[str, Any],
    *,
    embedded: Mapping[str, UseDecision] | None = None,
    elements: Iterable[Traced] = (),
) -> dict[str, Any]:
    """Decisions by use -> the tag on an item (schema 1). `embedded`: those for embedded files; None: the same. `elements`: with
    where they are in the item."""
    reasons: list[dict[str, Any]] = []
    places: dict[Reason, int] = {}

    def place(reason: Reason) -> int:
        number = places.get(reason)
        if number is None:
            number = places[reason] = len(reasons)
            source = reason.source
            part = {} if source.part == "body" else {"part": source.part}
            place = {"url": source.url, **part, "line": source.line, "text": source.text}
            reasons.append({"rule": reason.rule, "spec": reason.spec, **place})
        return number

    def told(decisions: Iterable[tuple[str, UseDecision]]) -> dict[str, Any]:
        return {
            use: {"verdict": decision.verdict.value, "stated": decision.stated, "because": list(map(place, decision.reasons))}
            | qualifiers.written(decision)
            for use, decision in decisions
        }

    others = {} if embedded is None or embedded is uses else {use: embedded[use] for use in {**embedded, **uses}}
    differing = [(use, decision) for use, decision in others.items() if replace(decision, reasons=uses[use].reasons) != uses[use]]
    return {
        "schema": 1,
        "agent": agent.token,
        "uses": told(uses.items()),
        **({"embedded": told(differing)} if differing else {}),
        "elements": [one.tag | {"because": list(map(place, one.element.reasons))} for one in elements],
        "reasons": reasons,
        "policies": dict(policies),
    }


def without_extracts(tag: dict[str, Any]) -> dict[str, Any]:
    """The tag of what is not the whole page any more: elements of the page that a permission names may be, or hold, what was cut
    from it. Such a permission cannot be used."""
    reasons = list(tag["reasons"])
    told = {part: dict(tag[part]) for part in ("uses", "embedded") if part in tag}
    for uses in told.values():
        for name, use in uses.items():
            resources = (*use.get("must_use", ()), *use.get("must_include", ()))
            if any(resource["extract"] and resource["content"] for resource in resources):
                reason = reasons[use["because"][0]]
                reasons.append(reason | {"rule": "acap.resource", "spec": RULES["acap.resource"].spec})
                uses[name] = {"verdict": "deny", "stated": use["stated"], "because": [len(reasons) - 1]}
    return tag | told | {"reasons": reasons}


def join_tags(agent: Agent, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The tag of what came from two pages: of each use the more restrictive decision, stated before not stated.

    Where both permit, what restricts either restricts the whole."""
    reasons: list[dict[str, Any]] = []

    def because(one: dict[str, Any], places: list[int]) -> list[int]:
        found = [one["reasons"][place] for place in places]
        reasons.extend(reason for reason in found if reason not in reasons)
        return [reasons.index(reason) for reason in found]

    def joined(use: str, *, embedded: bool = False) -> dict[str, Any]:
        said = []
        for one in (first, second):
            decisions = one["uses"] | one.get("embedded", {}) if embedded else one["uses"]
            if use not in decisions:  # a tag that does not list the use leaves it to the default
                one = write_tag(agent, {use: agent.default_of(use, is_asked=False)}, {})
                decisions = one["uses"]
            said.append((one, decisions[use]))
        deciding = [one for one in said if one[1]["verdict"] == "deny"] or said
        deciding = [one for one in deciding if one[1]["stated"]] or deciding[:1]
        decision = {key: deciding[0][1][key] for key in ("verdict", "stated")}
        is_refused = decision == {"verdict": "deny", "stated": True}  # else both may restrict it, a refusal by default too
        restricting = deciding if is_refused else [*deciding, *said]
        places = [place for one, its in restricting for place in because(one, its["because"])]
        restricted = qualifiers.read(deciding[0][1]).conjoined(*(qualifiers.read(its) for _, its in restricting))
        return decision | {"because": list(dict.fromkeys(places))} | qualifiers.written(restricted)

    uses = {use: joined(use) for use in {**first["uses"], **second["uses"]}}
    embedded = {use: joined(use, embedded=True) for use in {**first.get("embedded", {}), **second.get("embedded", {})}}
    embedded = {use: decision for use, decision in embedded.items() if decision != uses.get(use)}
    elements = [element | {"because": because(one, element["because"])} for one in (first, second) for element in one["elements"]]
    policies = {**second["policies"], **first["policies"]}
    tagged = {key: value for key, value in first.items() if key != "embedded"} | ({"embedded": embedded} if embedded else {})
    return tagged | {"uses": uses, "elements": elements, "reasons": reasons, "policies": policies}


def no_page(agent: Agent, why: str) -> dict[str, Any]:
    """The tag of an item that came from no page: every basic and declared use is refused, and nobody said so."""
    reason = Reason(rule="comity.no-page", source=Source(url="", part="item", text=why))
    refused = UseDecision(verdict=Verdict.DENY, stated=False, reasons=(reason,))
    return write_tag(agent, dict.fromkeys((*BASIC_USES, *agent.uses), refused), {})
