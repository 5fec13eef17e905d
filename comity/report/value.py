"""A report as a value, and as JSON (schema 1, docs/report.md)."""

from __future__ import annotations

import json
import math
import re
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

SCHEMA = 1
MAX_OCTETS = 64 * 2**20  # octets of a report that is read

T = TypeVar("T")


class ReportError(ValueError):
    """The reason why a file is not a report, or cannot be made: one line, for people."""


@dataclass(slots=True)
class NamedCount:
    """A name, and how often it occurred.

    Attributes:
        name: The name.
        count: How often it occurred.
    """

    name: str
    count: int


@dataclass(slots=True)
class Ranking:
    """The most frequent names, and the sum of the counts of all others.

    Attributes:
        rows: The most frequent names, the most frequent first.
        others: The sum of the counts of all other names.
    """

    rows: list[NamedCount] = field(default_factory=list)
    others: int = 0


@dataclass(slots=True, kw_only=True)
class Line:
    """A line that decided.

    Attributes:
        url: The URL of the file, or the name of a setting.
        part: The part of the answer; "" for the body of a file.
        line: The number of the line, from 1; 0 for no line.
        text: The text of the line.
        count: How often it decided.
        urls: Some of the URLs about which it decided.
    """

    url: str
    part: str = ""
    line: int = 0
    text: str = ""
    count: int = 0
    urls: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ReportedRefusal:
    """All refusals by one rule.

    Attributes:
        rule: The id of the rule.
        spec: The section of its specification.
        summary: The meaning of the rule.
        count: The number of refusals.
        hosts: The hosts with most refusals.
        lines: The lines that refused most.
        other_lines: The number of refusals by lines that are not listed.
    """

    rule: str
    spec: str
    summary: str
    count: int
    hosts: Ranking = field(default_factory=Ranking)
    lines: list[Line] = field(default_factory=list)
    other_lines: int = 0


@dataclass(slots=True, kw_only=True)
class ReportedLimit:
    """A number of requests that may start in some seconds.

    Attributes:
        requests: The number of requests.
        seconds: The seconds.
        is_stated: True if the site asks for it; False if it is the operator's own.
    """

    requests: int
    seconds: float
    is_stated: bool


@dataclass(slots=True, kw_only=True)
class ReportedHost:
    """Requests of one host, or of several.

    Attributes:
        host: The name of the host; "" for several hosts.
        sent: Requests for pages that were sent.
        answered: Answers to them.
        files: Requests for policy files.
        allowed: Requests that were allowed.
        refused: Requests that were refused.
        stopped: Responses that were refused by their status or header fields.
        backed_off: Answers that said that the host is asked too often.
        gaps: Gaps that were measured against the limits of the host.
        least: The shortest gap divided by the gap that its limit asks for. Below 1 the host was
            asked too soon. None: no gap was measured.
        limit: The limit that applied to the shortest gap, or None.
    """

    host: str
    sent: int = 0
    answered: int = 0
    files: int = 0
    allowed: int = 0
    refused: int = 0
    stopped: int = 0
    backed_off: int = 0
    gaps: int = 0
    least: float | None = None
    limit: ReportedLimit | None = None


@dataclass(slots=True, kw_only=True)
class Hosts:
    """The hosts of a crawl.

    Attributes:
        number: The number of hosts.
        is_exact: False if the number is an estimate.
        listed: The hosts with most requests, in this order.
        others: The sum of the other hosts, or None.
        sizes: The number of hosts by their number of requests.
    """

    number: int = 0
    is_exact: bool = True
    listed: list[ReportedHost] = field(default_factory=list)
    others: ReportedHost | None = None
    sizes: list[NamedCount] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Series:
    """The requests to one host over time, each by the gap before it.

    Attributes:
        host: The name of the host.
        why: "requests" or "margin": the criterion by which it is shown.
        limit: The limit of its least gap.
        points: Seconds since the crawl began, and the gap as a part of its limit.
        thinned: The number of requests per point. A point has the least gap of these requests.
    """

    host: str
    why: str
    limit: ReportedLimit
    points: list[tuple[float, float]]
    thinned: int = 1


@dataclass(slots=True, kw_only=True)
class UnreadLimit:
    """A limit of automation-preferences.txt whose value cannot be read.

    The most restrictive value applies.

    Attributes:
        host: The name of the host, with the scope.
        requests: The number of requests of the limit that applies.
        seconds: The seconds of this limit; 0 if it limits concurrent requests.
        line: The line of the limit.
        advice: The correct way to write it.
    """

    host: str
    requests: int
    seconds: float
    line: Line
    advice: str


@dataclass(slots=True, kw_only=True)
class ReportedPace:
    """How well the pace of hosts was kept.

    Attributes:
        gaps: The number of gaps that were measured.
        below: The number of gaps that were shorter than their limit.
        histogram: The number of gaps by their length, as a multiple of the limit.
        unlimited: Requests to hosts without any limit.
        first: Requests that came before a limit could delay one.
        least: The hosts with the least margin.
        series: Hosts over time.
        unread: Limits that cannot be read, at most some hundred.
    """

    gaps: int = 0
    below: int = 0
    histogram: list[NamedCount] = field(default_factory=list)
    unlimited: int = 0
    first: int = 0
    least: list[ReportedHost] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)
    unread: list[UnreadLimit] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Timeline:
    """Requests of the whole crawl over time.

    Attributes:
        seconds: The seconds that each number covers.
        sent: The numbers of requests that were sent.
        refused: The numbers of requests that were refused.
    """

    seconds: float = 1.0
    sent: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ReportedFile:
    """The numbers of sites that have a policy file, lack it, or could not be asked for it.

    Attributes:
        name: The path of the file.
        present: Sites that have the file.
        absent: Sites that do not have it.
        unreachable: Sites that could not be asked for it.
    """

    name: str
    present: int = 0
    absent: int = 0
    unreachable: int = 0


@dataclass(slots=True, kw_only=True)
class ReportedUse:
    """The permissions of items for one use.

    Attributes:
        use: The name of the use.
        allow: Items for which a source allows it.
        deny: Items for which a source refuses it.
        allow_default: Items without a statement, which the default allows.
        deny_default: Items without a statement, which the default refuses.
        words: Words of sources that ask the same question in another way.
    """

    use: str
    allow: int = 0
    deny: int = 0
    allow_default: int = 0
    deny_default: int = 0
    words: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ReportedSite:
    """A site whose policies could not be fetched, and the reason.

    Attributes:
        origin: The origin.
        why: The reason, in words.
    """

    origin: str
    why: str


@dataclass(slots=True, kw_only=True)
class ReportedUnreachable:
    """The sites whose policies could not be fetched, and the most frequent reasons.

    Attributes:
        number: The number of such sites.
        listed: Some of the sites.
        reasons: The most frequent reasons.
    """

    number: int = 0
    listed: list[ReportedSite] = field(default_factory=list)
    reasons: Ranking = field(default_factory=Ranking)


@dataclass(slots=True, kw_only=True)
class ReportedElement:
    """The part of items that a selector of ai.txt covers.

    Attributes:
        selector: The selector.
        actions: The refused actions.
        items: The number of items with such a part.
        line: The line of the selector.
    """

    selector: str
    actions: str
    items: int
    line: Line


@dataclass(slots=True, kw_only=True)
class ReportedElements:
    """Parts of items that have rules of their own.

    Attributes:
        items: Items with such elements.
        redacted: Items from which elements were cut out.
        stripped: Responses from which elements were taken.
        listed: The most frequent elements.
        others: The sum of the counts of the others.
    """

    items: int = 0
    redacted: int = 0
    stripped: int = 0
    listed: list[ReportedElement] = field(default_factory=list)
    others: int = 0


@dataclass(slots=True, kw_only=True)
class ReportedAction:
    """An action that a site requests.

    Attributes:
        action: The action, e.g. "take-down".
        url: The URL that the site names.
        is_arranged: True if the operator has an arrangement for the action.
        line: The line that requests the action.
    """

    action: str
    url: str
    is_arranged: bool
    line: Line


@dataclass(slots=True, kw_only=True)
class ReportedActions:
    """The actions that sites request.

    Attributes:
        number: The number of requests by action.
        not_arranged: Requests for actions that are not arranged.
        listed: The first requests.
    """

    number: dict[str, int] = field(default_factory=dict)
    not_arranged: int = 0
    listed: list[ReportedAction] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Advice:
    """A setting that would change the next crawl.

    Attributes:
        setting: The name of the setting.
        example: The setting as it may be written; "" if that depends.
        why: The reason.
        count: The number of requests or items that it affects.
        total: The number of all of them.
        of: "request", "item", "site" or "action".
    """

    setting: str
    example: str
    why: str
    count: int
    total: int
    of: str


@dataclass(slots=True, kw_only=True)
class Report:
    """A report: requests, refusals with their reasons, and the permissions of items.

    Attributes:
        source: "crawl", "items", "store" or "stats": the data that it was made from.
        title: The heading.
        schema: The version of the format.
        agent: The product token.
        user_agent: The value of User-Agent.
        uses_declared: The uses in COMITY_USES.
        began: The begin of the period that it covers, in ISO 8601, UTC.
        until: The end of that period.
        state: "running", or the reason why the crawl ended.
        notes: Remarks.
        settings: Settings of the crawl, by name.
        counts: Counts by name, explained in docs/report.md.
        statuses: Responses by status.
        timeline: Requests over time.
        refusals: Refusals of requests, by rule.
        stopped: Refusals of responses, by rule.
        files: The policy files of all sites.
        hosts: The hosts.
        pace: The pace of hosts.
        uses: The uses of items.
        use_refusals: Refusals of uses of items, by rule.
        unreachable: Sites whose policies could not be fetched.
        licences: The licences of items.
        attributions: The attributions of items.
        elements: Parts of items that have rules of their own.
        actions: The actions that sites request.
        advice: Settings that would change the next crawl.
    """

    source: str
    title: str
    schema: int = SCHEMA
    agent: str = ""
    user_agent: str = ""
    uses_declared: list[str] = field(default_factory=list)
    began: str = ""
    until: str = ""
    state: str = ""
    notes: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    statuses: list[NamedCount] = field(default_factory=list)
    timeline: Timeline = field(default_factory=Timeline)
    refusals: list[ReportedRefusal] = field(default_factory=list)
    stopped: list[ReportedRefusal] = field(default_factory=list)
    files: list[ReportedFile] = field(default_factory=list)
    hosts: Hosts = field(default_factory=Hosts)
    pace: ReportedPace = field(default_factory=ReportedPace)
    uses: list[ReportedUse] = field(default_factory=list)
    use_refusals: list[ReportedRefusal] = field(default_factory=list)
    unreachable: ReportedUnreachable = field(default_factory=ReportedUnreachable)
    licences: Ranking = field(default_factory=Ranking)
    attributions: Ranking = field(default_factory=Ranking)
    elements: ReportedElements = field(default_factory=ReportedElements)
    actions: ReportedActions = field(default_factory=ReportedActions)
    advice: list[Advice] = field(default_factory=list)

    def _repr_html_(self) -> str:
        """Return the refusals and permissions of the report as a notebook shows them."""
        from comity import notebook

        return notebook.report(self)


def as_json(report: Report, *, indent: int | None = None) -> str:
    return json.dumps(asdict(report), indent=indent, ensure_ascii=False, allow_nan=False)


# In a page the JSON has none of the characters that HTML would read, and its meaning is the same.
_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}
_EMBEDDED = re.compile(r'<template id="report">([^<]*)</template>')


def embed(report: Report) -> str:
    """Return the JSON as a page contains it, without markup of any kind."""
    return as_json(report).translate(_ESCAPES)


def read_report(text: str) -> Report:
    """Read a report from its JSON or its page. ReportError: it is not a report of this version."""
    if text.lstrip()[:1] == "<":
        match = _EMBEDDED.search(text)
        if match is None:
            raise ReportError("it is a page without a report of comity")
        text = match[1]
    try:
        raw = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ReportError("it is not JSON") from None
    if not isinstance(raw, dict) or "schema" not in raw or "source" not in raw:
        raise ReportError("it is JSON, but not a report of comity")
    if raw["schema"] != SCHEMA:
        raise ReportError(
            f"it is a report of schema {str(raw['schema'])[:20]}, and this version of comity reads"
            f" schema {SCHEMA}"
        )
    report: Report = _load(Report, raw, "report")
    return report


def _no_number(text: str) -> float:
    raise ValueError(text)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _load(kind: Any, value: Any, path: str) -> Any:
    """Return the value with its type. Missing members get their defaults.

    ReportError, with the path of the fault: the value is invalid."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list and isinstance(value, list):
        return [
            _load(arguments[0], member, f"{path}[{number}]") for number, member in enumerate(value)
        ]
    if origin is dict and isinstance(value, dict):
        return {
            name: _load(arguments[1], member, f"{path}.{name}") for name, member in value.items()
        }
    if origin is tuple and isinstance(value, list) and len(value) == len(arguments):
        return tuple(
            _load(part, member, path) for part, member in zip(arguments, value, strict=True)
        )
    if NoneType in arguments:
        return None if value is None else _load(arguments[0], value, path)
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
            **{name: _load(hints[name], member, f"{path}.{name}") for name, member in value.items()}
        )
    if kind is float and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    if origin is None and type(value) is kind:
        return value
    raise ReportError(f"{path} has a value that no report has")
