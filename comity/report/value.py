"""A report as a value, and the same as JSON (schema 1, docs/report.md)."""

from __future__ import annotations

import json
import math
import re
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

SCHEMA = 1
MAX_OCTETS = 64 * 2**20  # of a report that is read

T = TypeVar("T")


class ReportError(ValueError):
    """The reason why something is no report: one line, for people."""


@dataclass(slots=True)
class NamedCount:
    """A name, and how often it came."""

    name: str
    count: int


@dataclass(slots=True)
class Ranking:
    """The names that came most often, and how often all else came."""

    rows: list[NamedCount] = field(default_factory=list)
    others: int = 0


@dataclass(slots=True, kw_only=True)
class Line:
    """A line that decided."""

    url: str  # of the file, or the name of a setting
    part: str = ""  # "": the body of a file
    line: int = 0  # 1-based; 0: no line
    text: str = ""
    count: int = 0


@dataclass(slots=True, kw_only=True)
class Refusal:
    """All that one rule refused."""

    rule: str
    spec: str
    summary: str
    count: int
    hosts: Ranking = field(default_factory=Ranking)
    lines: list[Line] = field(default_factory=list)
    other_lines: int = 0  # refusals by lines that are not listed


@dataclass(slots=True, kw_only=True)
class Limit:
    """Requests that may start in some seconds."""

    requests: int
    seconds: float
    is_stated: bool  # the site asks for it; else the operator's own


@dataclass(slots=True, kw_only=True)
class Host:
    """Requests of one host, or of several."""

    host: str
    sent: int = 0  # requests for pages that went out
    answered: int = 0
    files: int = 0  # requests for policy files
    allowed: int = 0
    refused: int = 0
    stopped: int = 0  # responses refused by their header fields
    backed_off: int = 0  # answers that said that it is asked too often
    gaps: int = 0  # that were measured against its limits
    least: float | None = None  # the least of them, as a part of the limit: 1 is what it asks for
    limit: Limit | None = None  # by which that was measured


@dataclass(slots=True, kw_only=True)
class Hosts:
    number: int = 0
    is_exact: bool = True  # False: an estimate
    listed: list[Host] = field(default_factory=list)  # most requests first
    others: Host | None = None
    sizes: list[NamedCount] = field(default_factory=list)  # how many hosts got so many requests


@dataclass(slots=True, kw_only=True)
class Series:
    """The requests to one host over time, each by its gap to those before it."""

    host: str
    why: str  # "requests" or "margin": why it is shown
    limit: Limit
    points: list[tuple[float, float]]  # seconds since the crawl began, gap as a part of the limit
    thinned: int = 1  # of so many requests there is one point, that with the least gap


@dataclass(slots=True, kw_only=True)
class UnreadLimit:
    """A limit of automation-preferences.txt whose value cannot be read: the most restrictive one applies."""

    host: str  # and its scope
    requests: int  # the limit that applies
    seconds: float  # 0: so many requests at a time
    line: Line
    advice: str  # what to write instead


@dataclass(slots=True, kw_only=True)
class Pace:
    gaps: int = 0  # that were measured
    below: int = 0  # of these: shorter than the limit
    histogram: list[NamedCount] = field(
        default_factory=list
    )  # how many gaps were so many times the limit
    unlimited: int = 0  # requests to hosts without any limit
    first: int = 0  # requests before which the limit let any out
    least: list[Host] = field(default_factory=list)  # the hosts with the least margin
    series: list[Series] = field(default_factory=list)
    unread: list[UnreadLimit] = field(default_factory=list)  # at most some hundred


@dataclass(slots=True, kw_only=True)
class Timeline:
    """Requests of the whole crawl over time."""

    seconds: float = 1.0  # of each number
    sent: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class File:
    """A policy file of all sites."""

    name: str
    present: int = 0
    absent: int = 0
    unreachable: int = 0


@dataclass(slots=True, kw_only=True)
class Use:
    """One use: what items permit of it."""

    use: str
    allow: int = 0  # a source says so
    deny: int = 0
    allow_default: int = 0  # no source speaks of it
    deny_default: int = 0
    words: list[str] = field(
        default_factory=list
    )  # of sources that ask the same question otherwise


@dataclass(slots=True, kw_only=True)
class Site:
    """A site that could not be had."""

    origin: str
    why: str


@dataclass(slots=True, kw_only=True)
class Unreachable:
    number: int = 0
    listed: list[Site] = field(default_factory=list)
    reasons: Ranking = field(default_factory=Ranking)


@dataclass(slots=True, kw_only=True)
class Element:
    """The part of items that a selector of ai.txt covers."""

    selector: str
    actions: str  # that are refused
    items: int
    line: Line


@dataclass(slots=True, kw_only=True)
class Elements:
    items: int = 0  # with elements for which something else holds
    redacted: int = 0  # items that they were cut out of
    stripped: int = 0  # responses that they were taken from
    listed: list[Element] = field(default_factory=list)
    others: int = 0


@dataclass(slots=True, kw_only=True)
class Action:
    """An action that a site asks for."""

    action: str
    url: str
    is_arranged: bool
    line: Line


@dataclass(slots=True, kw_only=True)
class Actions:
    number: dict[str, int] = field(default_factory=dict)  # by action
    not_arranged: int = 0
    listed: list[Action] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Advice:
    """A setting that would change something."""

    setting: str
    example: str  # as it may be written; "": that depends
    why: str
    count: int  # of requests or items that it is about
    total: int  # of all of them
    of: str  # "request", "item", "site" or "action"


@dataclass(slots=True, kw_only=True)
class Report:
    """A report: what was asked, refused and why, and what may be done with what there is."""

    source: str  # "crawl", "items", "store" or "stats": out of what it was made
    title: str
    schema: int = SCHEMA
    agent: str = ""
    user_agent: str = ""
    uses_declared: list[str] = field(default_factory=list)
    began: str = ""  # ISO 8601, UTC
    until: str = ""  # the same: what it covers
    state: str = ""  # "running", or the reason why the crawl ended
    notes: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)  # docs/report.md says what each is
    statuses: list[NamedCount] = field(default_factory=list)
    timeline: Timeline = field(default_factory=Timeline)
    refusals: list[Refusal] = field(default_factory=list)  # of requests, by rule
    stopped: list[Refusal] = field(default_factory=list)  # of responses
    files: list[File] = field(default_factory=list)
    hosts: Hosts = field(default_factory=Hosts)
    pace: Pace = field(default_factory=Pace)
    uses: list[Use] = field(default_factory=list)
    use_refusals: list[Refusal] = field(default_factory=list)  # of uses of items, by rule
    unreachable: Unreachable = field(default_factory=Unreachable)
    licences: Ranking = field(default_factory=Ranking)
    attributions: Ranking = field(default_factory=Ranking)
    elements: Elements = field(default_factory=Elements)
    actions: Actions = field(default_factory=Actions)
    advice: list[Advice] = field(default_factory=list)


def as_json(report: Report, *, indent: int | None = None) -> str:
    return json.dumps(asdict(report), indent=indent, ensure_ascii=False, allow_nan=False)


# In a page: of these characters none is left that HTML would read, and the JSON is the same.
_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}
_EMBEDDED = re.compile(r'<template id="report">([^<]*)</template>')


def embedded(report: Report) -> str:
    """The JSON as it stands in a page, without markup of any kind."""
    return as_json(report).translate(_ESCAPES)


def read_report(text: str) -> Report:
    """The report out of its JSON or its page. ReportError where it is none, or of another version."""
    if text.lstrip()[:1] == "<":
        match = _EMBEDDED.search(text)
        if match is None:
            raise ReportError("it is a page, and holds no report of comity")
        text = match[1]
    try:
        raw = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ReportError("it is no JSON") from None
    if not isinstance(raw, dict) or "schema" not in raw or "source" not in raw:
        raise ReportError("it is JSON, and no report of comity")
    if raw["schema"] != SCHEMA:
        raise ReportError(
            f"it is a report of schema {str(raw['schema'])[:20]}, and this version of comity reads schema {SCHEMA}"
        )
    report: Report = _loaded(Report, raw, "report")
    return report


def _no_number(text: str) -> float:
    raise ValueError(text)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _loaded(kind: Any, value: Any, path: str) -> Any:
    """The value as its type has it. ReportError with the place of what is wrong; what is missing is as it is by default."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list and isinstance(value, list):
        return [
            _loaded(arguments[0], member, f"{path}[{number}]")
            for number, member in enumerate(value)
        ]
    if origin is dict and isinstance(value, dict):
        return {
            name: _loaded(arguments[1], member, f"{path}.{name}") for name, member in value.items()
        }
    if origin is tuple and isinstance(value, list) and len(value) == len(arguments):
        return tuple(
            _loaded(part, member, path) for part, member in zip(arguments, value, strict=True)
        )
    if NoneType in arguments:
        return None if value is None else _loaded(arguments[0], value, path)
    if isinstance(kind, type) and hasattr(kind, "__dataclass_fields__") and isinstance(value, dict):
        names = {member.name: member for member in fields(kind)}
        if unknown := value.keys() - names.keys():
            raise ReportError(f"{path} has `{min(unknown)[:40]}`, which no report has")
        required = {
            name
            for name, member in names.items()
            if member.default is MISSING and member.default_factory is MISSING
        }
        if missing := required - value.keys():
            raise ReportError(f"{path} has no `{min(missing)}`")
        hints = _hints(kind)
        return kind(
            **{
                name: _loaded(hints[name], member, f"{path}.{name}")
                for name, member in value.items()
            }
        )
    if kind is float and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    if origin is None and type(value) is kind:
        return value
    raise ReportError(f"{path} is not what it should be in a report")
