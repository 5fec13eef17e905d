"""The tag that an item carries (schema 1): the permitted uses of the item, and the reasons.

    TAG                                 the shape of a tag, for reading and writing tags, for the
                                        JSON Schema and for the columns of Parquet
    write_tag(agent, uses, policies)    write decisions as a tag
    join_tags(agent, first, second)     join the tags of two pages into one
    read_tag(raw)                       read a tag; TagError if any part of it is not understood
    schema()                            the content of permissions.schema.json

Additions of later versions are not understood, so they permit nothing here. Types are exact, as in
JSON: `true` is not a number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, NamedTuple

from comity.policies.agent import PRODUCT_TOKEN, Agent
from comity.policies.answers.decision import Reason, Source, UseDecision, Verdict
from comity.policies.answers.qualifiers import Extract, Qualifiers, Resource
from comity.policies.answers.rule import RULES, of_missing_resource
from comity.policies.elements.rules import Traced
from comity.policies.syntax.remembered import Remembered
from comity.policies.syntax.shapes import (
    Constant,
    Count,
    Keyed,
    Member,
    Moment,
    Names,
    Nullable,
    Object,
    Row,
    Several,
    Text,
    Truth,
    definitions,
)

USE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
# The uses that every tag lists (ACAP 1.0 section 2.5).
BASIC_USES = ("crawl", "follow", "index", "preserve", "present")
# Values of one part of tags that are cached.
MAX_REMEMBERED = 4096
# Which policies decided about a page that somebody else fetched, by their date.
DATES = ("capture", "today", "both")

# The shape


class _ResourceShape(Object):
    """The shape of a Resource."""

    def read(self, value: Mapping[str, str]) -> Any:
        kind, colon, name = value["extract"].partition(":")
        extract = Extract(kind=kind, name=name) if colon else None
        return Resource(
            role=value["role"], extract=extract, uri=value["url"], content=value["content"]
        )

    def write(self, value: Any) -> dict[str, str]:
        return {
            "role": value.role,
            "extract": str(value.extract or ""),
            "url": value.uri,
            "content": value.content,
        }


TEXT, COUNT, NAMES = Text(), Count(), Names()
ACTIONS = Names("[^A-Z]*", name="actions")
FETCHED_AT = Nullable(Moment("+00:00", is_checked=False))
REASON_INDICES = Several(
    COUNT,
    at_least=1,
    name="because",
    description="Indices into `reasons`, from 0. The deciding one is first.",
)
RESOURCE = _ResourceShape(
    {
        "role": Member(
            Text(values=("", "credit", "link")),
            "The resource is a credit or a link. Empty: it is neither.",
        ),
        "extract": Member(
            TEXT,
            "Element of the page: id:NAME, class:NAME or meta:NAME. Empty: the resource has a URL.",
        ),
        "url": Member(TEXT, "Address of the resource. Empty: it is an element of the page."),
        "content": Member(TEXT, "Markup of the element, or text of the resource."),
    }
)
RESOURCES = Several(RESOURCE, name="resources")
USE = Object(
    {
        "verdict": Member(Text(values=("allow", "deny")), "Whether the use is permitted."),
        "stated": Member(
            Truth(), "false: no source mentions this use, so the operator's default decided."
        ),
        "because": Member(REASON_INDICES),
        # From here on, the fields of Qualifiers.
        "until": Member(Moment("Z"), "The permission ends then.", is_required=False),
        "until_recrawled": Member(
            Truth(), "The permission ends when the page is fetched again.", is_required=False
        ),
        "max_chars": Member(COUNT, "Characters of text that may be shown.", is_required=False),
        "max_words": Member(COUNT, "Words of text that may be shown.", is_required=False),
        "prohibited_modifications": Member(NAMES, "Changes that are forbidden.", is_required=False),
        "prohibited_contexts": Member(
            NAMES, "Contexts where the page may not be shown.", is_required=False
        ),
        "required_contexts": Member(
            NAMES, "The only contexts where the page may be shown.", is_required=False
        ),
        "must_use": Member(RESOURCES, "Resources to use instead of the page.", is_required=False),
        "must_include": Member(RESOURCES, "Resources to show with the page.", is_required=False),
    },
    name="use",
)
GUIDELINE = Object(
    {
        "lang": Member(TEXT, "Language tag. `und`: none is given."),
        "text": Member(TEXT, "The instruction."),
    }
)
ELEMENT = Object(
    {
        "selector": Member(
            TEXT, "CSS selector or dotted name, as written. `*`: the whole document."
        ),
        "type": Member(
            Text(values=("", "html", "json", "xml")),
            "File type of the rules. Empty: any.",
        ),
        "whole": Member(
            Constant(True),
            "The element is the whole page. `uses` has its refusals too, and there are no spans.",
            is_required=False,
        ),
        "deny": Member(
            ACTIONS,
            "Prohibited actions of ai.txt and other uses, in lower case. `*`: all.",
        ),
        "guide": Member(
            Several(
                Object(
                    {
                        "actions": Member(NAMES, "The actions of ai.txt."),
                        "guidelines": Member(
                            Several(GUIDELINE), "The instructions, in several languages."
                        ),
                    }
                )
            ),
            "Actions that are permitted with instructions.",
        ),
        "spans": Member(
            Several(Row(TEXT, COUNT, COUNT)),
            "Positions in the item: [field], [field, index in the list] or [field, first "
            "character, first character after it].",
        ),
        "urls": Member(
            NAMES, "Absolute URLs of images and links in the element.", is_required=False
        ),
        "more_urls": Member(
            Constant(True),
            "The element has other URLs, which are not in the item.",
            is_required=False,
        ),
        "names": Member(
            NAMES,
            "Fields of the item with text of the element in their names.",
            is_required=False,
        ),
        "because": Member(REASON_INDICES),
    },
    name="element",
    description="The part of the page that one selector of an ai.txt covers.",
)
REASON = Object(
    {
        "rule": Member(Text(r"[a-z-]+\.[a-z-]+"), "Stable id; `comity rule` explains it."),
        "spec": Member(TEXT, "Specification and section."),
        "url": Member(
            TEXT,
            "URL of the statement, or name of a registry. The name of a setting, or empty, if it "
            "is not in a file.",
        ),
        "part": Member(
            TEXT,
            "Part of the source: a header field, an element of the page, the status, a setting. "
            "Absent: the body of a file.",
            is_required=False,
        ),
        "line": Member(
            COUNT, "Line number from 1. 0: no line, because a status or an absence is the reason."
        ),
        "text": Member(TEXT, "The statement as written, made printable."),
        "agent": Member(
            TEXT,
            "The other crawler that the statement addresses, if the page was tagged as captured "
            "by it, or for it too.",
            is_required=False,
        ),
        "fetched_at": Member(
            Moment("+00:00", is_checked=False),
            "Fetch time of the copy with the statement, if `policies` has several of the file.",
            is_required=False,
        ),
    },
    name="reason",
)
COPY = {
    "status": Member(COUNT, "HTTP status. 0: there was no response."),
    "sha256": Member(
        Nullable(Text("[0-9a-f]{64}")), "Hash of the body, hexadecimal. null: there is no body."
    ),
    "fetched_at": Member(FETCHED_AT, "Fetch time of the copy. null: there is no copy."),
}
POLICY = Object(
    {
        **COPY,
        "earlier": Member(
            Several(Object(COPY), at_least=1),
            "Copies of other dates that took part in the decisions.",
            is_required=False,
        ),
    },
    name="policy",
)
REFUSAL = Object(
    {
        "url": Member(TEXT, "URL of the request."),
        "kind": Member(
            TEXT,
            "Kind of request: document, image, script, xhr and others, by the names of Chromium.",
        ),
        "rule": Member(
            Text(r"[a-z-]+\.[a-z-]+"), "The rule that refused it; `comity rule` explains it."
        ),
        "policy": Member(TEXT, "URL of the statement that refused it."),
        "line": Member(COUNT, "Line number from 1. 0: no line."),
    }
)
BROWSER = Object(
    {
        "url": Member(TEXT, "Last URL of the browser."),
        "refused": Member(
            Several(REFUSAL),
            "The first refused requests of the page, which was made without them.",
        ),
        "more_refused": Member(Constant(True), "More requests were refused.", is_required=False),
    }
)
TAG = Object(
    {
        "schema": Member(Constant(1), "Version of the tag."),
        "agent": Member(
            Text(PRODUCT_TOKEN.pattern), "The product token for which the decisions were made."
        ),
        "uses": Member(
            Keyed("use", USE, pattern=USE_NAME.pattern, required=BASIC_USES),
            "Use -> decision: the five basic uses of ACAP, those that the operator declared and"
            " those that a source states.",
        ),
        "embedded": Member(
            Keyed("use", USE, pattern=USE_NAME.pattern, at_least=1),
            "Decisions about images and other files embedded in the page, where they differ. "
            "Absent: they are the same.",
            is_required=False,
        ),
        "elements": Member(Several(ELEMENT), "Parts of the page with rules of their own."),
        "browser": Member(
            BROWSER, "How a browser got the page. Absent: no browser was used.", is_required=False
        ),
        "reasons": Member(
            Several(REASON),
            "The statements that decided. `because` has indices into this list, from 0.",
        ),
        "policies": Member(
            Keyed("url", POLICY), "URL of each requested policy file -> the copy that decided."
        ),
        "as_of": Member(
            Text(values=DATES),
            "Date of the policies that decided about a page that somebody else fetched. Absent: "
            "the page was tagged when it was fetched.",
            is_required=False,
        ),
        "is_unread": Member(
            Constant(True),
            "The page itself was missing, so its header fields and markup did not count.",
            is_required=False,
        ),
    }
)
# Parts of a tag that are usually equal for the pages of one site.
IN_COMMON = ("uses", "embedded", "reasons", "policies")


def schema() -> dict[str, Any]:
    """Return the JSON Schema that the package ships as permissions.schema.json."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:comity:permissions:1",
        "title": "permissions",
        "description": "The permitted uses of an item, and the reasons. comity writes it into "
        "every item.",
        **TAG.schema,
        "$defs": definitions(TAG),
    }


# Reading


class TagError(ValueError):
    """The error for a tag that permits nothing.

    Its text is "no-tag", "several-tags", or "invalid-tag:" with the part that is not understood."""


# [field], [field, member of the list] or [field, first character, first character after it].
Span = list[Any]
# The qualifiers of a permission without restrictions.
FREE = Qualifiers()


class Use(NamedTuple):
    """The statement of a tag about one use.

    Attributes:
        is_allowed: True if the use is permitted.
        reason_indices: indices into the reasons of the tag, the deciding one first.
        qualifiers: restrictions. FREE: there are none."""

    is_allowed: bool
    reason_indices: tuple[int, ...]
    qualifiers: Qualifiers


class TaggedElement(NamedTuple):
    """The parts of a record that one element rule covers.

    Attributes:
        deny: refused actions and uses, in lower case.
        is_whole: True if the rule covers the whole page.
        spans: where the element is in the record.
        urls: absolute URLs of links and images in the element.
        more_urls: True if the element has URLs that are not listed.
        names: names of fields of the record whose names contain text of the element.
        reason_indices: indices into the reasons of the tag."""

    deny: frozenset[str]
    is_whole: bool
    spans: list[Span]
    urls: list[str]
    more_urls: bool
    names: list[str]
    reason_indices: tuple[int, ...]


class Tag(NamedTuple):
    """A tag that is understood completely.

    Attributes:
        uses: use -> its statement.
        embedded: use -> its statement for files that are embedded in the page, where it differs.
        elements: the element rules.
        raw: the tag as it is in the record."""

    uses: Mapping[str, Use]
    embedded: Mapping[str, Use]
    elements: tuple[TaggedElement, ...]
    raw: dict[str, Any]

    def reasons_of(self, statement: Use | TaggedElement) -> tuple[dict[str, Any], ...]:
        """Return the reasons of a statement, the deciding one first."""
        return tuple(self.raw["reasons"][number] for number in statement.reason_indices)

    def _repr_html_(self) -> str:
        """Return the tag as a notebook shows it."""
        from comity import notebook

        return notebook.tag(self.raw)


def read_tag(raw: Any) -> Tag:
    """Read a tag from a record. TagError: a part of it is not understood."""
    if type(raw) is not dict or not TAG.members.keys() >= raw.keys() >= TAG.required:
        raise TagError("invalid-tag:keys")
    for name, is_valid in _CHECKS.items():
        if name in raw and not is_valid(raw[name]):
            raise TagError(f"invalid-tag:{name}")
    uses, highest = _USES(raw["uses"])
    embedded, other = _EMBEDDED(raw["embedded"]) if "embedded" in raw else ({}, 0)
    elements = tuple(map(_element, raw["elements"])) if raw["elements"] else ()
    if max(
        highest, other, *(number for element in elements for number in element.reason_indices)
    ) >= len(raw["reasons"]):
        raise TagError("invalid-tag:because")
    return Tag(uses, embedded, elements, raw)


def _make_check(name: str) -> Callable[[Any], bool]:
    """Return the check of one part of a tag, with a cache if the part is often the same."""
    is_valid = TAG.members[name].shape.is_valid
    return Remembered(is_valid, most=MAX_REMEMBERED) if name in IN_COMMON else is_valid


# `_USES` and `_EMBEDDED` check the other two parts.
_CHECKS = {name: _make_check(name) for name in TAG.members if name not in ("uses", "embedded")}


def _uses(name: str) -> Remembered[tuple[dict[str, Use], int]]:
    """Return a reader of uses: use -> its statement, with the highest index into the reasons."""
    shape = TAG.members[name].shape
    assert isinstance(shape, Keyed)
    has_valid_keys = shape.has_valid_keys

    def uses(raw: Any) -> tuple[dict[str, Use], int]:
        decided = (
            {use: _USE(decision) for use, decision in raw.items()} if has_valid_keys(raw) else {}
        )
        valid = {use: decision for use, decision in decided.items() if decision}
        if not valid or len(valid) < len(decided):
            raise TagError(f"invalid-tag:{name}")
        return valid, max(max(use.reason_indices) for use in valid.values())

    return Remembered(uses, most=MAX_REMEMBERED)


def _use(raw: Any) -> Use | None:
    """Return the statement about a use; None if it is not valid."""
    if not USE.is_valid(raw):
        return None
    return Use(raw["verdict"] == "allow", tuple(raw["because"]), read_conditions(raw))


# Single uses are cached too: if permissions end some time after the fetch, no two pages have equal
# uses, but most of their uses are equal.
_USE = Remembered(_use, most=MAX_REMEMBERED)
_USES, _EMBEDDED = _uses("uses"), _uses("embedded")


def _element(raw: Mapping[str, Any]) -> TaggedElement:
    return TaggedElement(
        frozenset(raw["deny"]),
        "whole" in raw,
        raw["spans"],
        raw.get("urls", []),
        "more_urls" in raw,
        raw.get("names", []),
        tuple(raw["because"]),
    )


_CONDITIONS = {field.name: USE.members[field.name].shape for field in fields(Qualifiers)}


def read_conditions(use: Mapping[str, Any]) -> Qualifiers:
    """Return the restrictions of a use in a valid tag; FREE if it has none."""
    if use.keys() == USE.required:
        return FREE
    return Qualifiers(
        **{name: shape.read(use[name]) for name, shape in _CONDITIONS.items() if name in use}
    )


# Writing


def write_conditions(qualifiers: Qualifiers) -> dict[str, Any]:
    """Return the restrictions of a permission, in the form of a use in a tag."""
    return {
        name: _CONDITIONS[name].write(value) for name, value in qualifiers.restrictions().items()
    }


def write_tag(
    agent: Agent,
    uses: Mapping[str, UseDecision],
    policies: Mapping[str, Any],
    *,
    embedded: Mapping[str, UseDecision] | None = None,
    elements: Iterable[Traced] = (),
) -> dict[str, Any]:
    """Return the tag of an item (schema 1).

    Args:
        agent: the agent for which the decisions were made.
        uses: use -> decision.
        policies: URL -> status, SHA-256 and fetch time of each policy file.
        embedded: use -> decision for embedded files. None: the same decisions.
        elements: the element rules, with their positions in the item."""
    reasons: dict[Reason, int] = {}  # reason -> its index

    def indices_of(deciding: Iterable[Reason]) -> list[int]:
        return [reasons.setdefault(reason, len(reasons)) for reason in deciding]

    def write_uses(decisions: Iterable[tuple[str, UseDecision]]) -> dict[str, Any]:
        return {
            use: {
                "verdict": decision.verdict.value,
                "stated": decision.stated,
                "because": indices_of(decision.reasons),
            }
            | write_conditions(decision)
            for use, decision in decisions
        }

    others = (
        {}
        if embedded is None or embedded is uses
        else {use: embedded[use] for use in {**embedded, **uses}}
    )
    differing = [
        (use, decision)
        for use, decision in others.items()
        if replace(decision, reasons=uses[use].reasons) != uses[use]
    ]
    return {
        "schema": 1,
        "agent": agent.token,
        "uses": write_uses(uses.items()),
        **({"embedded": write_uses(differing)} if differing else {}),
        "elements": [
            element.tag | {"because": indices_of(element.element.reasons)} for element in elements
        ],
        "reasons": [dict(_write_reason(reason)) for reason in reasons],  # callers change them
        "policies": dict(policies),
    }


@lru_cache(maxsize=1024)  # the pages of a site share their reasons
def _write_reason(reason: Reason) -> dict[str, Any]:
    source = reason.source
    part = {} if source.part == "body" else {"part": source.part}
    position = {"url": source.url, "line": source.line, "text": source.text}
    return REASON.write({"rule": reason.rule, "spec": reason.spec, **position, **part})


def without_extracts(tag: dict[str, Any]) -> dict[str, Any]:
    """Return the tag without permissions that depend on elements of a page that was cut.

    A permission may name an element of the page. If parts of the page are removed, this element may
    be one of them or contain one. A permission with such an element is replaced by a refusal."""
    reasons = list(tag["reasons"])
    changed = {part: dict(tag[part]) for part in ("uses", "embedded") if part in tag}
    for uses in changed.values():
        for name, use in uses.items():
            resources = (*use.get("must_use", ()), *use.get("must_include", ()))
            if any(resource["extract"] and resource["content"] for resource in resources):
                reason = reasons[use["because"][0]]
                rule = of_missing_resource(reason["rule"])
                reasons.append(reason | {"rule": rule, "spec": RULES[rule].spec})
                uses[name] = {
                    "verdict": "deny",
                    "stated": use["stated"],
                    "because": [len(reasons) - 1],
                }
    return tag | changed | {"reasons": reasons}


def join_tags(agent: Agent, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return the tag of an item that came from two pages.

    The more restrictive decision about each use holds, and stated decisions come before others. If
    both pages permit a use, the restrictions of both hold."""
    reasons: list[dict[str, Any]] = []

    def indices_of(tag: dict[str, Any], numbers: list[int]) -> list[int]:
        of_tag = [tag["reasons"][number] for number in numbers]
        reasons.extend(reason for reason in of_tag if reason not in reasons)
        return [reasons.index(reason) for reason in of_tag]

    def join_use(use: str, *, embedded: bool = False) -> dict[str, Any]:
        decided = []
        for tag in (first, second):
            decisions = tag["uses"] | tag.get("embedded", {}) if embedded else tag["uses"]
            if use not in decisions:  # a tag that does not list the use leaves it to the default
                tag = write_tag(agent, {use: agent.default_of(use, is_asked=False)}, {})
                decisions = tag["uses"]
            decided.append((tag, decisions[use]))
        deciding = [pair for pair in decided if pair[1]["verdict"] == "deny"] or decided
        deciding = [pair for pair in deciding if pair[1]["stated"]] or sorted(
            deciding, key=_is_refused_by_default
        )[:1]
        decision = {key: deciding[0][1][key] for key in ("verdict", "stated")}
        # Unless the use is refused by a statement, both may restrict it, a default refusal too.
        is_refused = decision == {"verdict": "deny", "stated": True}
        restricting = deciding if is_refused else [*deciding, *decided]
        numbers = [
            number
            for tag, use_of_tag in restricting
            for number in indices_of(tag, use_of_tag["because"])
        ]
        conditions = read_conditions(deciding[0][1]).conjoined(
            *(read_conditions(use_of_tag) for _, use_of_tag in restricting)
        )
        return decision | {"because": list(dict.fromkeys(numbers))} | write_conditions(conditions)

    uses = {use: join_use(use) for use in {**first["uses"], **second["uses"]}}
    embedded = {
        use: join_use(use, embedded=True)
        for use in {**first.get("embedded", {}), **second.get("embedded", {})}
    }
    embedded = {use: decision for use, decision in embedded.items() if decision != uses.get(use)}
    elements = [
        element | {"because": indices_of(tag, element["because"])}
        for tag in (first, second)
        for element in tag["elements"]
    ]
    policies = {**second["policies"], **first["policies"]}
    tagged = {key: value for key, value in first.items() if key != "embedded"} | (
        {"embedded": embedded} if embedded else {}
    )
    if browsers := [tag["browser"] for tag in (second, first) if "browser" in tag]:
        refusals = [refusal for browser in reversed(browsers) for refusal in browser["refused"]]
        tagged["browser"] = {**browsers[0], **browsers[-1], "refused": refusals}
    return tagged | {"uses": uses, "elements": elements, "reasons": reasons, "policies": policies}


def _is_refused_by_default(decision: tuple[dict[str, Any], dict[str, Any]]) -> bool:
    """Return True if only the operator's default refuses the use.

    `decision` is the tag and its use."""
    tag, use = decision
    reason = tag["reasons"][use["because"][0]]
    return (use["verdict"], reason["rule"], reason.get("part")) == (
        "deny",
        "comity.default",
        "setting",
    )


def no_page(agent: Agent, cause: str, uses: Iterable[str] = ()) -> dict[str, Any]:
    """Return the tag of an item that came from no page.

    It refuses all basic and declared uses and `uses`, without a statement."""
    return no_statements(
        agent, Reason(rule="comity.no-page", source=Source(url="", part="item", text=cause)), uses
    )


def not_understood(agent: Agent, error: TagError, uses: Iterable[str]) -> dict[str, Any]:
    """Return the tag of an item whose earlier tag is not understood, so its refusals are unknown.

    `uses` are the uses of the new tag."""
    return no_page(agent, f"it had a tag before: {error}", uses)


def no_statements(agent: Agent, reason: Reason, uses: Iterable[str] = ()) -> dict[str, Any]:
    """Return the tag of an item about which no source can state anything.

    It refuses all basic and declared uses and `uses`, without a statement."""
    refused = UseDecision(verdict=Verdict.DENY, stated=False, reasons=(reason,))
    return write_tag(agent, dict.fromkeys((*BASIC_USES, *agent.uses, *uses), refused), {})
