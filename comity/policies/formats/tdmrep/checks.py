"""Checks of a tdmrep.json beyond its syntax.

    check_site(files)             the file of a site
    check_document(content, url)  the elements of a page, and its header fields
    members(text)                 the members of the objects in a file, with lines and columns

They find rules without effect, and forms that other readers ignore. The time is linear in the
octets, except for sorting the patterns.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import NamedTuple

from comity.policies.answers.decision import Finding
from comity.policies.document.document import Content
from comity.policies.formats.authoring import Remarks, literal
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.tdmrep.lenient_json import without_extras
from comity.policies.formats.tdmrep.reservation import (
    LOCATION,
    POLICY,
    RESERVATION,
    WELL_KNOWN,
    TdmRule,
    tdmrep_of,
)
from comity.policies.syntax.path_patterns import PatternIndex, sample
from comity.policies.syntax.suspicions import nearest, oddity

_TOKEN = re.compile(r'"(?:[^"\\\n]++|\\.)*+"?+|[\[\]{}:,\n]|[^\s"\[\]{}:,]++')
# Members that people use for comments, because JSON has none. They are not reported, like members
# of JSON-LD, which begin with `@`.
_REMARKS = ("comment", "description", "note")
# Wrong name of a member -> the name that was probably meant.
_SYNONYMS = {
    "policy": POLICY,
    "licence": POLICY,
    "license": POLICY,
    "reservation": RESERVATION,
    "reserved": RESERVATION,
    "tdm": RESERVATION,
    "path": LOCATION,
    "url": LOCATION,
    "pattern": LOCATION,
}
MEMBERS = (LOCATION, RESERVATION, POLICY)


class RuleMember(NamedTuple):
    """A member of an object that is a rule.

    Attributes:
        value: The value as written. "" for an array or object.
        line: The line of the name, from 1.
        column: The column of the name, from 1, in octets. 0 if the line is too long.
        value_column: The column of the value. 0 for an array or object, or if the value is on
            another line.
        number: The number of the object in the file, from 0.
    """

    name: str
    value: str
    line: int
    column: int
    value_column: int
    number: int


def members(text: str) -> Iterator[RuleMember]:
    """Yield the members of the objects in the array, or of the object if there is no array."""
    depth, line, line_start, number = 0, 1, 0, -1
    rules = 0  # the depth of the objects that are rules. 0 until the first object
    last, name, name_line, name_column = "", "", 0, 0
    for token in _TOKEN.finditer(text):
        kind = token[0]
        if kind == "\n":
            line, line_start = line + 1, token.end()
            continue
        if kind in "[{":
            if last == ":" and depth == rules and name:
                yield RuleMember(name, "", name_line, name_column, 0, number)
            depth += 1
            rules = rules or (depth if kind == "{" else 0)
            number += kind == "{" and depth == rules
        elif kind in "]}":
            depth -= 1
        elif last == ":" and depth == rules and name:
            column = _octets(text, line_start, token.start()) if line == name_line else 0
            yield RuleMember(name, kind, name_line, name_column, column, number)
            name = ""
        elif kind[0] == '"' and last in "{," and depth == rules:
            name, name_line, name_column = (
                kind[1:-1],
                line,
                _octets(text, line_start, token.start()),
            )
        last = kind if len(kind) == 1 else "value"


_MAX_LINE = 10_000  # the maximum number of characters before a column that is computed


def _octets(text: str, start: int, end: int) -> int:
    """Return the column, in octets from 1, of the offset `end` in the line that begins at `start`.

    The result is 0 beyond _MAX_LINE, because the work would grow quadratically.
    """
    return 1 + len(text[start:end].encode("utf-8", "replace")) if end - start <= _MAX_LINE else 0


def check_site(files: SiteFiles) -> tuple[Finding, ...]:
    """Return findings about the file of a site, in addition to the findings of reading it."""
    file, tdmrep = files.file(files.origin + WELL_KNOWN), tdmrep_of(files)
    if file is None or tdmrep is None:
        return ()
    remarks = Remarks(file.url)
    text = without_extras(file.text.decode("utf-8", "replace"))
    by_object: dict[int, dict[str, RuleMember]] = {}
    for member in members(text):
        rule = by_object.setdefault(member.number, {})
        if member.name in MEMBERS and member.name in rule:
            message = f"The rule has two members `{member.name}`, and readers differ. Delete one."
            remarks.report(
                "tdmrep.repeated",
                message,
                line=member.line,
                column=member.column,
                length=len(member.name) + 2,
            )
        rule[member.name] = member
    for rule in by_object.values():
        _check_object(remarks, rule)
    _check_rules(remarks, tdmrep.rules)
    if file.fetched.body.startswith(codecs.BOM_UTF8):
        message = "Strict readers refuse the whole file: it begins with a byte order mark."
        remarks.report("tdmrep.strict", message, line=1)
    return remarks.findings


def check_document(content: Content, url: str) -> tuple[Finding, ...]:
    """Return findings about the elements of a page and its header fields."""
    remarks = Remarks(url)
    fields = [(name.decode("latin-1").lower(), 0) for name, _ in content.headers]
    has_elements = content.mentions(b"tdm")
    metas = [(name, line) for name, _, line in content.metas_by_line()] if has_elements else []
    for attribute in ("property", "http-equiv") if has_elements else ():
        for name, _, line in content.metas_by_line(attribute):
            if name in (RESERVATION, POLICY):
                message = f'Few crawlers read `{attribute}` here. Write `name="{name}"`.'
                remarks.report("tdmrep.attribute", message, line=line)
    for name, line in metas:
        if right := _element_meant(name):
            message = f"No crawler reads an element `{{}}`. Write `{right}`."
            octets = name.encode("utf-8", "replace")
            remarks.report("tdmrep.member", message, octets, line=line)
    for carrier in (fields, metas):
        names = dict(reversed(carrier))
        if POLICY in names and RESERVATION not in names:
            message = "A policy alone reserves nothing. Add `tdm-reservation` with the value 1."
            remarks.report("tdmrep.policy-alone", message, line=names[POLICY])
    return remarks.findings


def _element_meant(name: str) -> str:
    """Return the name that a misspelled name of an element means. "": it is none."""
    names = (RESERVATION, POLICY)
    hyphened = name.replace("_", "-")
    if name in names:
        return ""
    return hyphened if hyphened in names else nearest(name, names)


def _check_object(remarks: Remarks, rule: dict[str, RuleMember]) -> None:
    for name, member in rule.items():
        length = len(name.encode("utf-8", "replace")) + 2
        near = (
            ""
            if name in MEMBERS
            else _SYNONYMS.get(name.lower().replace("tdm-", "").replace("tdm_", ""))
            or nearest(name, MEMBERS)
        )
        if near and near not in rule:
            message = f"Rules have no member `{{}}`. Write `{near}`."
            octets = name.encode("utf-8", "replace")
            remarks.report(
                "tdmrep.member",
                message,
                octets,
                line=member.line,
                column=member.column,
                length=length,
            )
        elif (
            name not in (*MEMBERS, *_REMARKS)
            and not name.startswith("@")
            and not rule.keys().isdisjoint(MEMBERS)
        ):
            message, octets = (
                "No known reader reads `{}`. Delete it.",
                name.encode("utf-8", "replace"),
            )
            remarks.report(
                "tdmrep.unread",
                message,
                octets,
                line=member.line,
                column=member.column,
                length=length,
            )
    reservation, policy = rule.get(RESERVATION), rule.get(POLICY)
    if reservation and re.fullmatch(r'"[ ]*[01][ ]*"', reservation.value):
        message = "The reservation is a text, so other readers may ignore it. Write a number."
        _report(remarks, "tdmrep.text", message, reservation)
    if policy and reservation and reservation.value.strip('" ') == "0":
        _report(
            remarks,
            "tdmrep.unused-policy",
            "The right is not reserved, so the policy has no effect. Delete it.",
            policy,
        )
    elif (
        policy
        and policy.value.startswith('"')
        and not re.match(r'"\s*https?://|"\s*"', policy.value, re.IGNORECASE)
    ):
        _report(
            remarks,
            "tdmrep.policy",
            "The address of the policy is not absolute, so other readers may ignore it. "
            "Write it with https:// and the host.",
            policy,
        )
    location = rule.get(LOCATION)
    if (
        location
        and location.value.startswith('"')
        and (odd := oddity(location.value.strip('"').strip().encode("utf-8", "replace")))
    ):
        _report(
            remarks,
            "tdmrep.pattern",
            f"The location probably matches nothing. {literal(odd)}",
            location,
        )


def _report(remarks: Remarks, rule: str, message: str, member: RuleMember) -> None:
    length = len(member.value.encode("utf-8", "replace")) if member.value_column else 0
    remarks.report(rule, message, line=member.line, column=member.value_column, length=length)


def _check_rules(remarks: Remarks, rules: tuple[TdmRule, ...]) -> None:
    """Report rules that never decide, because an earlier rule matches all of their resources."""
    first: dict[str, int] = {}  # location -> index of the first rule that can decide by it
    for number, rule in enumerate(rules):
        if rule.reserved is not None:
            first.setdefault(rule.location, number)
    patterns = list(first)
    index = PatternIndex(patterns)
    for number, rule in enumerate(rules):
        covering = {first[patterns[match]] for match in index.all(sample(rule.location))} | {
            first.get(rule.location, number)
        }
        if min(covering) >= number or rule.reserved is None:
            continue
        earlier = rules[min(covering)]
        if (earlier.reserved, earlier.policy) == (rule.reserved, rule.policy):
            remarks.report(
                "tdmrep.duplicate",
                f"This rule has no effect: the rule in line {earlier.line} matches the "
                "same resources with the same values.",
                line=rule.line,
            )
        else:
            message = (
                f"This rule never decides: the earlier rule in line {earlier.line} matches "
                "all of its resources. Put this rule first."
            )
            remarks.report("tdmrep.overruled", message, line=rule.line)
