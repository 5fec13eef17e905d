"""TDM Reservation Protocol (W3C TDMRep): whether the right to mine text and data is reserved.

    read(body)            /.well-known/tdmrep.json -> TdmRep
    tdmrep_of(site)       the file of a site
    fields(headers)       the response fields
    markup(content)       the `meta` elements of a page
    document(content)     the metadata of an EPUB or PDF file
    statements(these)     the resulting statements; later sources override earlier ones

Every reading of an open point is in docs/tdmrep.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import urljoin

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.document.document import Content
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.tdmrep import metadata as tdmrep_metadata
from comity.policies.formats.tdmrep.lenient_json import strict_problem, without_extras
from comity.policies.syntax.lines import Findings, line_ends, text_of
from comity.policies.syntax.path_patterns import (
    PatternIndex,
    escaped_text,
    normal_pattern,
    normal_target,
)
from comity.policies.syntax.printable import printable
from comity.policies.syntax.suspicions import trimmed
from comity.policies.syntax.urls import origin_of, resolved, target_of, without_scheme
from comity.policies.vocabulary.statement import Location, Statement

SPEC = "https://w3c.github.io/tdm-reservation-protocol/spec/"
WELL_KNOWN = "/.well-known/tdmrep.json"
TERM = "tdmrep:reservation"

# The maximum number of values in the array of a file. Values that are not rules count too.
MAX_RULES = 5000
MAX_POLICY = 2000  # maximum characters of the address of a policy

RESERVATION, POLICY, LOCATION = "tdm-reservation", "tdm-policy", "location"


class Reservation(NamedTuple):
    """The properties that one source sets for a resource (sec-properties).

    Attributes:
        reserved: True for `tdm-reservation` 1, and False for 0. None means that it is not set.
        policy: The absolute URL of the policy. "" means that it is not set.
    """

    reserved: bool | None
    policy: str
    source: Location
    findings: tuple[Finding, ...] = ()

    @property
    def licensing(self) -> str:
        """The URL of the policy that applies. "" if the right is not reserved (sec-tdm-policy)."""
        return self.policy if self.reserved else ""


class TdmRule(NamedTuple):
    """One object of the file (sec-tdm-file).

    Attributes:
        location: The path pattern in normal form.
        reserved: True for `tdm-reservation` 1, and False for 0. None means that it is not set.
        policy: The absolute URL of the policy. "" means that it is not set.
        line: The number of the first line of the object, from 1.
        text: The object as written, printable.
    """

    location: str
    reserved: bool | None
    policy: str
    line: int
    text: str


# The values of the two properties (sec-tdm-reservation, sec-tdm-policy)


def _read_reservation(values: Iterable[Any], report: Findings, line: int = 0) -> bool | None:
    """Return True if the values of one source reserve the right, and False if they do not.

    None means that no reservation is set. If the values contradict each other, the right is
    reserved. LENIENT: JSON may contain the digit as a string ("1"). A field may contain a list of
    digits ("1, 1"), because caches join fields.
    """
    digits = [digit.strip() for value in values for digit in _digits(value)]
    for odd in dict.fromkeys(digit for digit in digits if digit not in ("0", "1")):
        message = "`{}` is neither 0 nor 1, so the reservation is not set."
        report.report("tdmrep.value", message, odd[:1000].encode(errors="replace"), line=line)
    # LENIENT: quotes and invisible characters may be around a 1. Around a 0 they are an error, so
    # that no site gives up the right by mistake.
    if any(trimmed(digit.strip("\"'").encode(errors="replace")) == b"1" for digit in digits):
        return True
    return False if digits and set(digits) == {"0"} else None


def _digits(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.split(",")
    # sec-tdm-reservation: other values are protocol errors. `true` is one of these, although it
    # equals 1 in Python.
    if isinstance(value, bool) or value is None:
        return [json.dumps(value)]
    if isinstance(value, int | float):
        return [str(int(value)) if value in (0, 1) else str(value)]
    return ["a list or an object"]


def _policy(values: Iterable[Any], url: str, report: Findings, line: int = 0) -> str:
    """Return the first value that is the address of a policy, as an absolute URL, or ""."""
    for value in values:
        address, mark, fragment = (
            value.strip().partition("#") if isinstance(value, str) else ("", "", "")
        )
        try:
            if address and len(value) <= MAX_POLICY:
                return resolved(url, address) + (
                    mark + fragment if fragment.isascii() and fragment.isprintable() else ""
                )
        except ValueError:
            pass
        if value:
            quoted = (
                value[:1000].encode(errors="replace")
                if isinstance(value, str)
                else b"a value that is not text"
            )
            report.report(
                "tdmrep.value",
                "`{}` is not the address of a policy. Write a URL.",
                quoted,
                line=line,
            )
    return ""


def _reservation(
    reservations: list[Any], policies: list[Any], part: str, url: str
) -> Reservation | None:
    if not reservations and not policies:
        return None
    report = Findings(url)
    reserved, policy = _read_reservation(reservations, report), _policy(policies, url, report)
    properties = [f"{RESERVATION}: {value}" for value in reservations] + [
        f"{POLICY}: {value}" for value in policies
    ]
    text = printable("; ".join(properties).encode(errors="replace"))
    return Reservation(reserved, policy, Location(part=part, text=text), tuple(report))


# sec-processing-priority


def effective(reservations: Iterable[Reservation | None]) -> Reservation | None:
    """Combine reservations into one. Of each property, the last value that is set counts.

    The caller passes the reservations in this order: file, fields, meta or document.
    """
    holds: Reservation | None = None
    for reservation in reservations:
        if holds is None or reservation is None:
            holds = holds or reservation
        else:
            source = (
                holds.source
                if reservation.reserved is None and holds.reserved is not None
                else reservation.source
            )
            reserved = holds.reserved if reservation.reserved is None else reservation.reserved
            holds = Reservation(
                reserved,
                reservation.policy or holds.policy,
                source,
                holds.findings + reservation.findings,
            )
    return holds


def statements(reservations: Iterable[Reservation | None]) -> tuple[Statement, ...]:
    """Return the one statement that reservations make together, or () if none sets a reservation.

    The caller passes the reservations in this order: file, fields, meta or document. If the right
    is reserved, the text of the statement's source contains the URL of the policy.
    """
    holds = effective(reservations)
    if holds is None or holds.reserved is None:
        return ()
    if not holds.reserved:
        return (Statement(TERM, Verdict.ALLOW, "tdmrep.not-reserved", holds.source),)
    source = holds.source
    if holds.licensing not in source.text:
        source = source._replace(
            text=f"{source.text}; {POLICY}: {printable(holds.licensing.encode())}"
        )
    return (Statement(TERM, Verdict.DENY, "tdmrep.reserved", source),)


# The file (sec-tdm-file)


class TdmRep:
    """The rules of one file."""

    def __init__(
        self,
        rules: tuple[TdmRule, ...],
        findings: tuple[Finding, ...],
        url: str = "",
        *,
        complete: bool = True,
    ) -> None:
        """Index the rules. `complete` is False if the end of the file was not read."""
        self.rules = rules
        self.findings = findings
        self._url = url
        self._complete = complete
        self._index = PatternIndex([rule.location for rule in rules])

    def reservation(self, target: str) -> Reservation | None:
        """Return the reservation by the first rule that matches a target, or None.

        `target` is path and query. If the first matching rule sets no reservation, later matching
        rules can reserve the right, and cannot give it up. If no rule matches and the end of the
        file was not read, the right is reserved.
        """
        unset = False
        for number in sorted(self._index.all(normal_target(target))):
            rule = self.rules[number]
            if rule.reserved or (rule.reserved is False and not unset):
                return Reservation(
                    rule.reserved,
                    rule.policy,
                    Location(line=rule.line, text=rule.text, url=self._url),
                )
            unset = True
        if not self._complete and not unset:
            return Reservation(
                reserved=True,
                policy="",
                source=Location(text="the file is longer than the limit", url=self._url),
            )
        return None

    def everywhere(self) -> bool:
        """Return True if the right is reserved for every resource."""
        for rule in self.rules:
            if rule.reserved is False:
                return False
            if rule.reserved and rule.location in ("/", "/*", "*"):
                return True
        return not self._complete and all(rule.reserved for rule in self.rules)


def read(body: bytes, url: str = "", *, cut: bool = False) -> TdmRep:
    """Read a tdmrep.json. Never raises. The time is linear in the octets.

    `cut` is True if the body is only the beginning of the file.
    """
    octets, cut = text_of(body, cut=cut)
    return _Reader(octets, url).read(cut=cut)


_SPACE = re.compile(r"[\s,]*+")
# A reservation of 1 in text that is not JSON, with any quotes.
_ONE = re.compile(
    r"[\"']?\btdm-reservation\b[\"']?\s*+[:=]\s*+[\"']?\s*+1(?:\.0*+)?(?![\w.])[\"']?",
    re.IGNORECASE,
)
_RELATIVE = re.compile(r"\.{1,2}(?:/|$)")  # RFC 3986 section-4.2


def tdmrep_of(site: SiteFiles) -> TdmRep | None:
    """Return the site's tdmrep.json, or None if it does not exist."""
    file = site.file(site.origin + WELL_KNOWN)
    return (
        site.once(TdmRep, lambda: read(file.fetched.body, file.url, cut=file.fetched.oversized))
        if file
        else None
    )


class _Reader:
    """Reads one file, object by object, and stops at the first malformed object."""

    def __init__(self, octets: bytes, url: str) -> None:
        self._written = escaped_text(octets)
        self._text = without_extras(self._written)
        self._url = url
        self._findings = Findings(url)
        self._rules: list[TdmRule] = []
        self._decode = json.JSONDecoder(object_pairs_hook=_object).raw_decode
        self._line, self._line_position = 1, 0
        self._complete = True  # False if the end of the file was not read
        # True if all text read so far is JSON. Comments and extra commas are ignored.
        self._is_json = True
        # The number of the line with the reservation that reserves the rest of a malformed file. 0
        # if there is no such line.
        self._reserving_line = 0

    def read(self, *, cut: bool) -> TdmRep:
        if cut:
            self._complete = False
            self._report(
                "tdmrep.limit",
                f"Only the whole lines in the first {len(self._text)} characters are "
                "read. Shorten the file.",
            )
        position = self._skip_space(0)
        if self._text.startswith("[", position):
            self._read_rules(position + 1, cut=cut)
        else:
            self._read_other(position)
        if self._is_json and not cut and (problem := strict_problem(self._written)):
            line = 1 + line_ends(self._written, 0, problem[1])
            message = "Strict readers refuse the whole file: {}."
            self._report("tdmrep.strict", message, problem[0], line=line)
        return TdmRep(tuple(self._rules), tuple(self._findings), self._url, complete=self._complete)

    def _skip_space(self, position: int) -> int:
        match = _SPACE.match(self._text, position)
        assert match  # the match may be empty
        return match.end()

    def _line_of(self, position: int) -> int:
        self._line += line_ends(self._text, self._line_position, position)
        self._line_position = position
        return self._line

    def _report(self, rule: str, message: str, *quoted: str, line: int = 0) -> None:
        self._findings.report(
            rule, message, *(text[:1000].encode(errors="replace") for text in quoted), line=line
        )

    def _value(self, position: int) -> tuple[Any, int] | None:
        try:
            return self._decode(self._text, position)
        except json.JSONDecodeError as error:
            place = max(position, error.pos)
            self._break_off(f"This is not JSON: {error.msg}", place, behind=position)
        except (ValueError, RecursionError):  # the file exceeds a limit of the decoder
            self._complete = False
            message = (
                "A number is too long, or values are nested too deeply. The rest of the "
                "file is not read."
            )
            self._report("tdmrep.limit", message, line=self._line_of(position))
        return None

    def _break_off(self, problem: str, position: int, *, behind: int) -> None:
        """Report the error that ends the reading, and reserve by the unread rest (TDM-3).

        `problem` is the first sentence of the message, and `position` is the offset of the error.
        If the text after the offset `behind` contains a reservation of 1, everything is reserved
        that no rule matches.
        """
        self._is_json = False
        line = self._line_of(position)
        message = f"{problem}. The rest of the file is not read."
        if one := self._reserve_by(behind, len(self._text)):
            message += f" As `tdm-reservation` is 1 in line {one}, everything is reserved that no"
            message += " rule before it matches."
        self._report("tdmrep.syntax", message, line=line)

    def _reserve_by(self, start: int, end: int) -> int:
        """Add a rule that reserves everything, if the text has a reservation of 1.

        `start` and `end` are offsets. The rule comes last, so earlier rules override it. Only one
        such rule is added. Return the number of its line, or 0 if there is no such rule.
        """
        one = _ONE.search(self._text, start, end) or _ONE.search(self._written, start, end)
        if one and not self._reserving_line:
            self._reserving_line = 1 + line_ends(self._text, 0, one.start())
            self._rules.append(
                TdmRule(
                    "/",
                    reserved=True,
                    policy="",
                    line=self._reserving_line,
                    text=_excerpt(one[0]),
                )
            )
        return self._reserving_line

    def _read_rules(self, position: int, *, cut: bool) -> None:
        position, count = self._skip_space(position), 0
        while not self._text.startswith("]", position):
            if cut and position == len(self._text):
                return
            if count == MAX_RULES:
                self._report(
                    "tdmrep.limit",
                    f"Only the first {MAX_RULES} rules are read. Write fewer rules.",
                    line=self._line_of(position),
                )
                self._complete = False
                return
            line = self._line_of(position)
            decoded = self._value(position)
            if decoded is None:
                return
            value, end = decoded
            if not self._read_rule(value, line, self._text[position:end]):
                self._reserve_by(position, end)
            position, count = self._skip_space(end), count + 1
        if self._text[position + 1 :].strip():
            self._break_off("The array ends here", position + 1, behind=position + 1)

    def _read_rule(self, rule: Any, line: int, source: str) -> bool:
        """Add the rule in a value of the array. Return False if the value is not a rule."""
        if not isinstance(rule, dict) or (RESERVATION not in rule and LOCATION not in rule):
            self._report(
                "tdmrep.syntax",
                "`{}` is not a rule. Write an object with `location` and `tdm-reservation`.",
                source,
                line=line,
            )
            return False
        if RESERVATION not in rule:
            self._report(
                "tdmrep.syntax",
                "The rule has no `tdm-reservation`, so the reservation is not set. Write 0 or 1.",
                line=line,
            )
        reserved = _read_reservation(
            [rule[RESERVATION]] if RESERVATION in rule else [], self._findings, line
        )
        policy = _policy([rule.get(POLICY)], self._url, self._findings, line)
        location, means = _location(rule.get(LOCATION), self._url)
        if means:
            written_location = rule.get(LOCATION)
            quoted = written_location if isinstance(written_location, str) else ""
            self._report("tdmrep.syntax", f"The location `{{}}` {means}", quoted, line=line)
            # A rule with an invalid location can reserve the right, and cannot give it up.
            reserved = reserved or None
        self._rules.append(TdmRule(location, reserved, policy, line, _excerpt(source)))
        return True

    def _read_other(self, position: int) -> None:
        """Read a file that is not an array of rules.

        If the file contains a reservation of 1, the whole site is reserved (TDM-3).
        """
        decoded = self._value(position)
        if decoded is None:
            return
        value, end = decoded
        line = self._line_of(position)
        self._report(
            "tdmrep.syntax",
            "The file is not an array of rules. Put the rules into `[` and `]`.",
            line=line,
        )
        self._is_json = not self._text[end:].strip()
        if (
            isinstance(value, dict)
            and RESERVATION in value
            and _read_reservation([value[RESERVATION]], self._findings, line)
        ):
            policy = _policy([value.get(POLICY)], self._url, self._findings, line)
            self._rules.append(
                TdmRule(
                    "/",
                    reserved=True,
                    policy=policy,
                    line=line,
                    text=_excerpt(self._text[position:end]),
                )
            )
        else:
            self._reserve_by(position, len(self._text))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the properties of an object.

    The properties can be repeated. If any of several reservations is 1, it counts. Different
    locations count as no location. Of other properties the last value counts.
    """
    properties = dict(pairs)
    if len(properties) < len(pairs):
        reservations = [value for key, value in pairs if key == RESERVATION]
        if len(reservations) > 1 and _read_reservation(reservations, Findings("")):
            properties[RESERVATION] = 1
        if len({str(value) for key, value in pairs if key == LOCATION}) > 1:
            properties[LOCATION] = None
    return properties


def _location(value: Any, url: str) -> tuple[str, str]:
    """Return the pattern of a location, and the problem with the location for a message.

    `url` is the URL of the file. The problem is "" if the location meets the specification.
    """
    if not isinstance(value, str) or not value.strip():
        return "/", "is not a pattern. The rule can only reserve, and it does so for everything."
    location = trimmed(value.strip().encode("utf-8", "replace")).decode()
    means = ""
    if absolute := without_scheme(location):
        scheme, rest = absolute
        try:
            is_own_host = not url or origin_of(f"{scheme or 'https'}://{rest}") == origin_of(url)
        except ValueError:
            is_own_host = False
        location, means = (
            target_of(f"https://{rest}"),
            "" if is_own_host else "is on another host. The rule can only reserve.",
        )
    elif not location.startswith(("/", "*")):
        location, means = (
            "/" + _RELATIVE.sub("", location),
            "is read with a leading `/`. The rule can only reserve.",
        )
    path, mark, _ = location.partition("#")
    if mark:
        location, means = path, means or "is read without its fragment. The rule can only reserve."
    return normal_pattern(location.encode()), means


def _excerpt(source: str) -> str:
    return printable(" ".join(source[:2000].split()).encode(errors="replace"))


# sec-tdm-header


def fields(headers: Iterable[tuple[bytes, bytes]], url: str = "") -> Reservation | None:
    """Return the reservation in the fields of a response, or None if it has no field of TDMRep.

    `url` is the URL of the response.
    """
    properties: dict[str, list[Any]] = {RESERVATION: [], POLICY: []}
    for name, value in headers:
        if (
            name[:4].lower() == b"tdm-"
            and (values := properties.get(name.lower().decode("latin-1"))) is not None
        ):
            values.append(value.decode("utf-8", "replace").strip())
    return _reservation(properties[RESERVATION], properties[POLICY], f"header {RESERVATION}", url)


# sec-tdm-html-meta


def markup(content: Content, url: str = "") -> Reservation | None:
    """Return the reservation in the `meta` elements of a page, or None if it has none of TDMRep.

    `url` is the URL of the page. An element with `property` instead of `name` can only reserve. The
    page is parsed only if it contains `tdm-`.
    """
    if not content.mentions(b"tdm-"):
        return None
    properties: dict[str, list[Any]] = {RESERVATION: [], POLICY: []}
    for name, value in content.metas():
        if name in properties:
            properties[name].append(value.strip())
    for name, value in content.metas("property"):
        if name == RESERVATION and _read_reservation([value], Findings("")):
            properties[name].append(value.strip())
    policies = properties[POLICY]
    # Addresses are made absolute for reasons that quote them, because a relative address depends on
    # the base URL of the page.
    if policies and (base := content.base(url)) != url:
        policies = [_join(base, address) for address in policies]
    return _reservation(properties[RESERVATION], policies, f"meta {RESERVATION}", url)


def _join(base: str, address: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError:
        return address


# sec-epub2, sec-epub3, sec-pdf


def document(content: Content, url: str = "") -> Reservation | None:
    """Return the reservation in an EPUB or PDF file.

    None means that the content is neither, or that it has no reservation and no findings.
    """
    report = Findings(url)
    metadata = tdmrep_metadata.read(content, report)
    if metadata is None:
        return None
    reservation = _reservation(metadata.reservations, metadata.policies, metadata.part, url)
    if reservation is None:
        return (
            Reservation(None, "", Location(part=metadata.part), tuple(report)) if report else None
        )
    return reservation._replace(findings=(*report, *reservation.findings))
