"""The fields, records and definitions of ACAP in the text of a robots.txt.

    parse(text) -> Acap        the ACAP content of the text

The grammar is in ACAP 1.0 section-2.2 to section-2.9 and section-3.

1. Definitions come before all records (section-2.2). The fields of records refer to them by name
   (section-2.7).
2. A record begins with its ACAP-crawler fields and ends at the next one that follows any other
   field (section-2.3). A usage purpose begins a sub-record (section-2.3.3). The parser of
   conventional records decides which lines begin a record, so that both parsers see the same
   extents.
3. A line is read as one `Field` for each usage and each pattern that it stands for (section-2.4.4,
   section-2.7.2). So the users of this module need not resolve names.
4. A field that cannot be read permits nothing, and prohibits everything that it may mean: for any
   crawler, any purpose, the whole site. A permission that cannot be honoured as stated is a field
   too (`Field.unusable`): if it decides, it refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from sys import maxsize
from typing import NamedTuple

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.formats.acap.usages import (
    NONE,
    USAGES,
    FieldQualifiers,
    QualifierError,
    read_qualifiers,
)
from comity.policies.syntax.lines import EOL, MAX_FINDINGS, MAX_LINE, Findings, Lines
from comity.policies.syntax.path_patterns import escaped_text, normal_pattern
from comity.policies.syntax.records import RecordKind, read_record
from comity.policies.syntax.suspicions import INVISIBLE

MAX_RECORDS = 10_000  # maximum records of one file
# The maximum number of permissions and prohibitions of one file. A line counts once for each usage
# and pattern that it stands for.
MAX_FIELDS = 50_000

ACTIONS = ("take-down", "re-crawl")  # section-2.6
WHOLE_SITE = ""  # the pattern of a prohibition whose resources cannot be read

# The sections by which a permission grants nothing.
_LOCAL_USAGES = "ACAP 1.0 section-2.4.1.3"
_SET_REFERENCES = "ACAP 1.0 section-2.4.4"
_DEFINITIONS_FIRST = "ACAP 1.0 section-2.7"
_QUALIFIED = "ACAP 1.0 section-2.7.1"
_COMPOSITE = "ACAP 1.0 section-2.7.2"
_SETS = "ACAP 1.0 section-2.7.3"
_SYNTAX = "ACAP 1.0 section-3"
_LIMIT = "comity, docs/acap.md"

# section-3
#   name-start-char = ALPHA
#   name-char       = ALPHA / DIGIT / "-" / "_" / "."
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_LOCAL = re.compile(r"\(([A-Za-z][A-Za-z0-9._-]*)\)")
# section-3
#   crawler-name = name-start-char *(WSP / VCHAR-excluding-hash)
# LENIENT: letters of all scripts and digits are allowed, also after a `+` or `(`, because real
# files have such names. The name must not end with invalid UTF-8: it may be an invisible space.
_CRAWLER = re.compile(r"\*|[+(]?\w.*(?<!\ufffd)")
#   usage-purpose-pattern-field = "ACAP-usage-purpose:" *WSP (name / URI-pattern) field-end
_PURPOSE = re.compile(r"(?![^:/]*[,;%])[\w*]\S*")
#   permissions-reference-field = "ACAP-permissions-reference:" *WSP (URI / relative-part) field-end
# LENIENT: letters of all scripts are allowed, although URLs should escape them.
_URI = re.compile(r"[!$-;=?-\[\]~\w]+")
_SPACE = re.compile(r"[ \t]+")
# `acap:` is the scheme of versions before 1.0 ("Changes relative to previous version", 1.1).
SCHEMES = ("the-acap:", "acap:")
_SET = "resource-set:"
# RFC 3986 section-4.2: the first segment of a relative-part has no colon. A pattern that begins
# with `*` is a path even if its first segment has a colon.
_NO_PATH = re.compile(r"(?![/*?])[^/?]*:")
# Scheme and host, before the path of a URL.
_HOST = re.compile(r"[A-Za-z][A-Za-z0-9+.*-]*://[^/?]*")
# The path of an action request. Two slashes would begin a host.
_RESOURCE = re.compile(r"/(?!/)[^*\s]*")
_VERSION = re.compile(rb"##ACAP[ \t]+version=([!-~]{1,40})", re.IGNORECASE)

_IGNORE = "ignore-conventional-records"
_REFERENCE = "permissions-reference"
DEFINITIONS = ("qualified-usage", "composite-usage", "resource-set")

# Spaces, tabs, control characters and other invisible characters, such as a BOM where two files
# were joined.
_UNSEEN = rb"(?:[\x00-\x09\x0b\x0c\x0e-\x20\x7f]|%s)" % INVISIBLE.pattern

# Lines that have no meaning in ACAP and begin no record.
_OTHERS = re.compile(rb"(?:(?!%s*+(?i:acap-|##acap|user[ -]?agent))[^\r\n]*+%s)++" % (_UNSEEN, EOL))
# LENIENT: white space may be before the colon or instead of it. Invisible characters and further
# colons are accepted too, because otherwise less would be prohibited than is meant.
_FIELD = re.compile(
    rb"(%s*+)(?i:acap)-((?:(?!%s)[^:#\s])++)((?:%s|:)*+)([^#\r\n]*+)" % (_UNSEEN, _UNSEEN, _UNSEEN)
)


class Field(NamedTuple):
    """One permission or prohibition of one usage, by one pattern (section-2.4).

    Attributes:
        verdict: ALLOW for a permission.
        pattern: In normal form, or WHOLE_SITE.
        unusable: The section by which the permission grants nothing, or "" if it grants. The field
            takes part in conflicts in both cases.
        purposes: The purpose patterns of its sub-record. () means that it is in no sub-record.
        url: URL of the file.
        offset: The start of the line in the text.
    """

    usage: str
    verdict: Verdict
    pattern: str
    qualifiers: FieldQualifiers
    unusable: str
    purposes: tuple[str, ...]
    url: str
    line: int
    offset: int


class RequestedAction(NamedTuple):
    """An action request (section-2.6).

    Attributes:
        action: One of ACTIONS.
    """

    action: str
    path: str
    line: int
    offset: int


class Reference(NamedTuple):
    """A permissions reference (section-2.3.2).

    Attributes:
        locator: URL or path as written. "" means that it cannot be read.
    """

    locator: str
    line: int
    offset: int


@dataclass(slots=True)
class CrawlerRecord:
    """The fields that address the same crawlers (section-2.3).

    Attributes:
        url: URL of the file.
        crawlers: As written. "*" means any crawler.
        is_unreadable: True if its addressee is unknown. The record then permits nothing, and its
            prohibitions apply to any crawler. No other record overrides them.
    """

    url: str = ""
    crawlers: list[str] = field(default_factory=list)
    is_unreadable: bool = False
    fields: list[Field] = field(default_factory=list)
    requests: list[RequestedAction] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)

    @property
    def has_content(self) -> bool:
        """True if the record has more than ACAP-crawler fields, as section-3 demands."""
        return bool(self.fields or self.requests or self.references)


class Usage(NamedTuple):
    """One usage that a permission stands for (section-2.4.1).

    Attributes:
        unusable: As in `Field`.
    """

    usage: str
    qualifiers: FieldQualifiers = NONE
    unusable: str = ""


@dataclass(slots=True)
class Definitions:
    """The usages and sets that permissions refer to by name (section-2.7). Names are in lower case.

    Attributes:
        broken: "usage NAME" or "set NAME", for an invalid definition -> the section by which
            permissions with this name grant nothing.
    """

    usages: dict[str, tuple[Usage, ...]] = field(default_factory=dict)
    sets: dict[str, list[str]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acap:
    """The records and definitions of one file.

    Attributes:
        ignores_conventional: The number of the ACAP line that makes conventional records
            ineffective. 0 means that no such line is effective.
        ignores_offset: The start of this line in the text.
    """

    version: str
    ignores_conventional: int
    ignores_offset: int
    records: tuple[CrawlerRecord, ...]
    definitions: Definitions
    findings: tuple[Finding, ...]


def path_pattern(text: str) -> str:
    """Return a resource path pattern (section-2.8) in normal form.

    Paths are relative to the document root.
    """
    return normal_pattern((text if text.startswith(("/", "*")) else f"/{text}").encode())


def parse(
    text: bytes,
    *,
    url: str = "",
    definitions: Definitions | None = None,
    crawlers: Iterable[str] = (),
    max_records: int = MAX_RECORDS,
    max_fields: int = MAX_FIELDS,
) -> Acap:
    """Read the ACAP content of a text. Never raises. The time is linear in the octets.

    For a referenced file, `definitions` are the definitions of the referring file
    (section-2.4.1.3), and `crawlers` are the crawlers of the referring record. Fields before the
    first record of the referenced file address these crawlers.
    """
    lines = list(field_lines(text))
    return _Reader(url, definitions, max_records, max_fields).read(lines, list(crawlers))


def refusals(parsed: Acap) -> Acap:
    """Return the file without permissions, so that it can only refuse (RFC-10)."""
    records = []
    for record in parsed.records:
        denying = [field for field in record.fields if field.verdict is Verdict.DENY]
        records.append(replace(record, fields=denying))
    return replace(parsed, ignores_conventional=0, records=tuple(records))


class FieldLine(NamedTuple):
    """A line that begins a record, is a field of ACAP, or states the version of ACAP.

    Attributes:
        kind: AGENT or ACAP_CRAWLER if the line begins a conventional or an ACAP record. None for
            other lines.
        name: The name of a field without "acap-", in lower case. "" if the line begins a record,
            or is the comment with the version.
        value_at: The number of octets in the line before the value of a field.
        is_overlong: True if the value is cut at MAX_LINE.
        is_odd: True if an invisible character other than space and tab, or a further colon, is
            around its name.
    """

    number: int
    offset: int
    octets: bytes
    kind: RecordKind | None
    name: str
    value: str
    value_at: int
    has_colon: bool
    is_overlong: bool
    is_odd: bool = False

    @property
    def is_doubtful(self) -> bool:
        """True if the line can prohibit, but permits nothing."""
        return self.is_overlong or self.is_odd


def field_lines(text: bytes) -> Iterator[FieldLine]:
    """Yield the lines that are fields of ACAP, begin a record, or state the version of ACAP."""
    lines = Lines(text)
    while True:
        lines.skip(_OTHERS)
        octets = lines.read()
        if not octets:
            return
        record = read_record(octets)
        if record and record.kind in (RecordKind.AGENT, RecordKind.ACAP_CRAWLER):
            value = record.value.decode("utf-8", "replace")
            yield FieldLine(
                lines.number,
                lines.line_start,
                octets,
                record.kind,
                "",
                value,
                0,
                record.colon,
                record.overlong,
            )
        elif match := _FIELD.match(octets):
            name, separator = match[2].decode("utf-8", "replace"), match[3].translate(None, b" \t")
            value, is_overlong = (
                escaped_text(match[4], MAX_LINE).strip(" \t"),
                len(match[0]) > MAX_LINE,
            )
            is_odd = separator not in (b"", b":") or bool(match[1].strip(b" \t"))
            # `read_record` does not recognise this odd ACAP-crawler field, so its record's
            # addressee is unknown: the value becomes "".
            kind, name, value = (
                (RecordKind.ACAP_CRAWLER, "", "")
                if name.lower() == "crawler"
                else (None, name.lower(), value)
            )
            value_at, has_colon = match.start(4), b":" in separator
            yield FieldLine(
                lines.number,
                lines.line_start,
                octets,
                kind,
                name,
                value,
                value_at,
                has_colon,
                is_overlong,
                is_odd,
            )
        elif _VERSION.match(octets):
            yield FieldLine(
                lines.number,
                lines.line_start,
                octets,
                None,
                name="",
                value="",
                value_at=0,
                has_colon=True,
                is_overlong=False,
            )


class _Reader:
    """The state of reading one file: first its definitions, then its records."""

    def __init__(
        self, url: str, definitions: Definitions | None, max_records: int, max_fields: int
    ) -> None:
        self._url = url
        self._is_referenced = definitions is not None
        self._definitions = Definitions()
        # Names of sets that only the referring file has defined so far.
        self._inherited: set[str] = set()
        if definitions:
            self._definitions = Definitions(
                dict(definitions.usages),
                {name: list(patterns) for name, patterns in definitions.sets.items()},
                dict(definitions.broken),
            )
            self._inherited = set(definitions.sets)
        self._constituents: dict[str, tuple[Usage, ...]] = {}  # cache of `_constituents_of`
        # Composite usage of this file -> the qualified usages that it lists.
        self._composites: dict[str, list[str]] = {}
        # Composite usage of this file -> the names that it lists and must not list, such as names
        # that are defined below it.
        self._below: dict[str, list[str]] = {}
        self._qualified: set[str] = set()  # qualified usages of this file
        self._findings = Findings(url)
        self._records_left = max_records
        self._fields_left = max_fields
        self._records: list[CrawlerRecord] = []
        self._record: CrawlerRecord | None = None  # the open record
        self._has_fields = False  # the open record has fields other than ACAP-crawler
        self._crawler_line = 0  # the last crawler line of the open record
        self._open_purposes: list[str] = []  # the purposes of the open sub-record
        # `_open_purposes` as a tuple. None until a permission or prohibition follows them.
        self._purposes: tuple[str, ...] | None = None
        self._is_purpose_unreadable = False  # one of the open purposes cannot be read
        # The refusals of the open sub-record beyond the limit of fields.
        self._past_limit: set[tuple[str, Verdict]] = set()

    def read(self, lines: list[FieldLine], crawlers: list[str]) -> Acap:
        version = ""
        ignores = ignores_offset = 0
        has_record = has_definition = False
        for self._line in lines:
            name = self._line.name
            if self._line.kind:
                has_record = has_record or self._line.kind is RecordKind.ACAP_CRAWLER
            elif not name:
                match = _VERSION.match(self._line.octets)
                assert match
                version = version or match[1].decode("ascii")
            elif name == _IGNORE:
                if self._line.is_odd:
                    continue
                if has_record or has_definition:
                    self._report(
                        "acap.ignored",
                        "The field has no effect here. Put it before all definitions and records.",
                    )
                elif self._line.value:
                    self._report(
                        "acap.ignored",
                        "The field takes no value, so `{}` makes it ineffective. Delete the value.",
                        self._line.value,
                    )
                elif not ignores:
                    ignores, ignores_offset = self._line.number, self._line.offset
            elif name in DEFINITIONS:
                has_definition = True
                self._define(name, is_late=has_record)
        self._read_below()
        for composite, names in self._composites.items():
            for broken in (
                f"usage {name}" for name in names if f"usage {name}" in self._definitions.broken
            ):
                self._definitions.broken.setdefault(
                    f"usage {composite}", self._definitions.broken[broken]
                )
        if crawlers:
            self._open(crawlers)
            self._has_fields = True
        for self._line in lines:
            self._read()
        own_records = self._records[1:] if crawlers else self._records
        has_record = any(record.has_content for record in own_records if not record.is_unreadable)
        if ignores and not has_record:
            self._findings.report(
                "acap.ignored", "Without an ACAP record the field has no effect.", line=ignores
            )
        self._findings.sort(key=lambda finding: (finding.line or maxsize, finding.column))
        return Acap(
            version=version,
            ignores_conventional=ignores if has_record else 0,
            ignores_offset=ignores_offset,
            records=tuple(self._records),
            definitions=self._definitions,
            findings=tuple(self._findings),
        )

    def _report(self, rule: str, message: str, quoted: str = "", *, in_name: bool = False) -> None:
        """Report a finding about the quoted text.

        The text is in the value of the field. If `in_name` is True, it is in the field's name.
        """
        if len(self._findings) > MAX_FINDINGS:
            return
        octets, line, column = quoted.encode(), self._line, 0
        if octets and in_name:
            column = line.octets.lower().rfind(octets.lower(), 0, line.value_at) + 1
        elif octets:
            column = line.octets.lower().find(octets.lower(), line.value_at) + 1
        self._findings.report(rule, message, octets, line=line.number, column=column)

    # Definitions: section-2.7

    def _define(self, field_name: str, *, is_late: bool) -> None:
        name, words = _words(self._line.value)
        if not _NAME.fullmatch(name):
            self._report("acap.syntax", "`{}` is not a name, so the definition is not read.", name)
            return
        kind = "set" if field_name == "resource-set" else "usage"
        # The file's own set replaces that of the referring file.
        if kind == "set" and name.lower() in self._inherited:
            self._inherited.remove(name.lower())
            del self._definitions.sets[name.lower()]
            self._definitions.broken.pop(f"set {name.lower()}", None)
        is_defined = name.lower() in (
            self._definitions.sets if kind == "set" else self._definitions.usages
        )
        broken = ""
        if is_defined:
            broken = _SETS if kind == "set" else _SYNTAX
            self._report(
                "acap.duplicate",
                "`{}` is defined twice, so permissions by it grant nothing. Delete one definition.",
                name,
            )
        elif is_late:
            broken = _DEFINITIONS_FIRST
            self._report(
                "acap.late",
                "`{}` is defined after the first record, so permissions by it grant "
                "nothing. Put it before the records.",
                name,
            )
        elif self._line.is_overlong:
            broken = _LIMIT
            self._report(
                "acap.limit",
                f"The definition of `{{}}` has more than {MAX_LINE} octets, so "
                "permissions by it grant nothing.",
                name,
            )
        elif self._line.is_odd:
            broken = _SYNTAX
        if broken:
            self._definitions.broken[f"{kind} {name.lower()}"] = broken
        if kind == "set":
            self._define_set(name, words)
        else:
            reader = (
                self._qualified_usage if field_name == "qualified-usage" else self._composite_usage
            )
            usages = self._definitions.usages.get(name.lower(), ()) + reader(name.lower(), words)
            self._definitions.usages[name.lower()] = (
                _without_qualifiers(usages) if is_defined else usages
            )

    def _define_set(self, name: str, words: str) -> None:
        patterns = self._definitions.sets.setdefault(name.lower(), [])
        for word in words.split():
            patterns.append(_intended_path(word) if _NO_PATH.match(word) else path_pattern(word))
            if _NO_PATH.match(word):
                self._report(
                    "acap.syntax",
                    "`{}` is not a path, so permissions by its set grant nothing.",
                    word,
                )
                self._definitions.broken.setdefault(f"set {name.lower()}", _SETS)
        if not words:
            self._report("acap.syntax", "The set `{}` has no pattern.", name)
        if len(words.split()) != len([word for word in _SPACE.split(words) if word]):
            self._report(
                "acap.syntax",
                "The set `{}` has white space other than spaces and tabs, so permissions "
                "by it grant nothing.",
                name,
            )
            self._definitions.broken.setdefault(f"set {name.lower()}", _SETS)
        if self._line.is_overlong:
            patterns.append(WHOLE_SITE)  # the rest of the set cannot be read

    def _qualified_usage(self, name: str, words: str) -> tuple[Usage, ...]:
        self._qualified.add(name)
        usage, qualifiers = _words(words)
        if usage.lower() in USAGES and not qualifiers:
            self._report(
                "acap.qualifier",
                "`{}` has no qualifier, so permissions by this definition grant nothing.",
                usage,
            )
            return (Usage(usage.lower(), unusable=_QUALIFIED),)
        if usage.lower() in USAGES:
            return (self._usage(usage.lower(), qualifiers),)
        self._report(
            "acap.unknown-usage",
            "`{}` is not a usage, so permissions by this definition grant nothing.",
            usage,
        )
        return ()

    def _composite_usage(self, name: str, words: str) -> tuple[Usage, ...]:
        usages: list[Usage] = []
        problem = ""
        if not words:
            problem = "it lists no usage"
            self._report("acap.syntax", f"`{{}}` cannot be read, because {problem}.", name)
        for word in dict.fromkeys(words.lower().split()):
            local = _LOCAL.fullmatch(word)
            if local and local[1] in self._qualified:
                self._composites.setdefault(name, []).append(local[1])
                usages += self._definitions.usages[local[1]]
            elif word in USAGES:
                usages.append(Usage(word))
            else:
                if local:
                    self._below.setdefault(name, []).append(local[1])
                problem = (
                    "because it is neither a usage nor a qualified usage that is defined "
                    "above it in this file"
                )
                self._report(
                    "acap.undefined",
                    f"`{{}}` cannot be listed, {problem}. Permissions by this definition "
                    "grant nothing.",
                    word,
                )
        if problem:
            self._definitions.broken.setdefault(f"usage {name}", _COMPOSITE)
        return tuple(usages)

    def _read_below(self) -> None:
        """Add to composite usages the usages of names that they must not list.

        Such a name is defined below the composite usage, is a composite usage itself, or is a usage
        of ACAP in parentheses. Permissions by the composite usage then grant nothing. But they
        still need the usages, because they take part in conflicts. The time is linear in the names.
        """
        listing: dict[str, list[str]] = {}  # name -> the composite usages that list it
        for composite, names in self._below.items():
            for name in names:
                listing.setdefault(name, []).append(composite)
        usages = {
            name: dict.fromkeys(usage.usage for usage in self._usages_behind(name))
            for name in (*listing, *self._below)
        }
        pending = [*listing]
        while pending:
            name = pending.pop()
            for composite in listing.get(name, ()):
                if not usages[name].keys() <= usages[composite].keys():
                    usages[composite] |= usages[name]
                    pending.append(composite)
        self._definitions.usages |= {
            composite: tuple(map(Usage, usages[composite])) for composite in self._below
        }

    def _usages_behind(self, local: str) -> tuple[Usage, ...]:
        """Return the usages that a name in parentheses means, or () if the name is unknown."""
        return self._definitions.usages.get(local) or ((Usage(local),) if local in USAGES else ())

    def _usage(self, usage: str, qualifiers: str) -> Usage:
        try:
            return Usage(usage, read_qualifiers(qualifiers, usage))
        except QualifierError as error:
            self._report(
                "acap.qualifier",
                f"{error.message}, so the permission grants nothing.",
                error.quoted,
            )
            return Usage(usage, unusable=error.citation)

    # Records: section-2.3

    def _read(self) -> None:
        line = self._line
        if line.kind is RecordKind.AGENT:
            self._record = None  # ACAP-9: a conventional record ends the ACAP record
        elif line.kind is RecordKind.ACAP_CRAWLER:
            self._crawler(line.value)
        elif line.name:
            if line.is_odd:
                message = (
                    "An invisible character or a second colon is beside the field's name, "
                    "so the field permits nothing."
                )
                self._report("acap.syntax", message)
            elif not line.has_colon and line.name != _IGNORE:
                self._report(
                    "acap.syntax",
                    "`{}` has no colon. Write one after it.",
                    f"acap-{line.name}",
                    in_name=True,
                )
            self._field(line.name, line.value)

    def _field(self, name: str, value: str) -> None:
        match name.partition("-"):
            case ("allow", _, usage):
                self._permission(usage, value)
            case ("disallow", _, usage):
                self._prohibition(usage, value)
            case ("request", _, action):
                self._request(action, value)
            case ("usage", _, "purpose"):
                self._purpose(value)
            case _ if name == _REFERENCE:
                self._reference(value)
            case _ if name not in (_IGNORE, *DEFINITIONS):
                self._report(
                    "acap.unknown-field",
                    "ACAP 1.0 has no field `{}`.",
                    f"acap-{name}",
                    in_name=True,
                )

    def _crawler(self, name: str) -> None:
        record = self._record
        if record is None or self._has_fields:
            record = self._open([name or "*"])
        else:
            if "*" in (name, record.crawlers[-1]):
                self._report(
                    "acap.crawlers",
                    "`*` must be alone in its record. This record is for any crawler.",
                )
            elif self._line.number > self._crawler_line + 1:
                message = (
                    "No field is between this line and the ACAP-crawler line before it, so "
                    "both begin one record."
                )
                self._report("acap.fused", message)
            record.crawlers.append(name or "*")
        self._crawler_line = self._line.number
        if self._line.is_overlong or not _is_readable(name, _CRAWLER):
            self._report(
                "acap.syntax",
                "The name of the crawler cannot be read, so the record refuses for any "
                "crawler and permits nothing.",
            )
            record.is_unreadable = True

    def _open(self, crawlers: list[str]) -> CrawlerRecord:
        if self._records_left > 0:
            self._records.append(CrawlerRecord(self._url, crawlers))
        elif self._records_left == 0:
            self._report(
                "acap.limit",
                "There are too many records. From here on they refuse for any crawler "
                "and permit nothing.",
            )
            self._records.append(CrawlerRecord(self._url, ["*"], is_unreadable=True))
        self._record = self._records[-1]  # beyond the limit, all records share the last one
        self._records_left -= 1
        self._has_fields = False
        self._end_purposes()
        return self._record

    def _in_record(self) -> CrawlerRecord | None:
        """Return the open record, and note that it has a field."""
        if self._record is None:
            self._report(
                "acap.outside-record",
                "The field is outside of all ACAP records, so it has no effect. Put it "
                "below an ACAP-crawler line.",
            )
        elif (
            self._has_fields
            and (self._record.references or self._line.name == _REFERENCE)
            and not self._is_referenced
        ):
            self._report(
                "acap.reference",
                "A reference must be alone in its record. All fields of this record apply.",
            )
        self._has_fields = True
        return self._record

    def _reference(self, locator: str) -> None:
        record = self._in_record()
        if record is None:
            return
        if self._is_referenced:
            self._report(
                "acap.reference",
                "`{}` is not read, because a referenced file cannot refer to another one.",
                locator,
            )
        elif not locator:
            self._report("acap.syntax", "The reference names no file. Write a URL or a path.")
        else:
            # section-2.3: the grammar has no reference in a sub-record. The referenced file is not
            # read, because its fields would apply to any purpose.
            if self._open_purposes:
                self._report(
                    "acap.reference",
                    "A sub-record cannot refer to a file, so the file counts as one that "
                    "cannot be fetched.",
                )
            octets = self._line.octets[self._line.value_at :].partition(b"#")[0].strip(b" \t\r\n")
            is_uri = _URI.fullmatch(octets.decode("utf-8", "replace"))
            if not is_uri:
                self._report(
                    "acap.syntax",
                    "`{}` is neither a URL nor a path, so it counts as a file that "
                    "cannot be fetched.",
                    locator,
                )
            is_unreadable = (
                record.is_unreadable
                or self._line.is_doubtful
                or bool(self._open_purposes)
                or not is_uri
            )
            record.references.append(
                Reference("" if is_unreadable else locator, self._line.number, self._line.offset)
            )

    def _purpose(self, pattern: str) -> None:
        if self._in_record() is None:
            return
        if self._purposes is not None:
            self._end_purposes()
        if self._line.is_doubtful or not _is_readable(pattern, _PURPOSE):
            self._report(
                "acap.syntax",
                "The purpose cannot be read. Its prohibitions apply to any purpose, its "
                "permissions to none.",
            )
            self._is_purpose_unreadable = True
        self._open_purposes.append(pattern.lower())

    def _end_purposes(self) -> None:
        self._open_purposes, self._purposes, self._is_purpose_unreadable = [], None, False
        self._past_limit = set()

    def _request(self, action: str, path: str) -> None:
        record = self._in_record()
        if record is None:
            return
        if action not in ACTIONS:
            self._report(
                "acap.unknown-field",
                "ACAP 1.0 has no field `{}`.",
                f"acap-{self._line.name}",
                in_name=True,
            )
        elif self._open_purposes:
            self._report(
                "acap.action", "A sub-record cannot request an action, so the field has no effect."
            )
        elif not _RESOURCE.fullmatch(path) or self._line.is_doubtful:
            self._report(
                "acap.action",
                "`{}` is not the path of one resource, so the request has no effect.",
                path,
            )
        else:
            record.requests.append(
                RequestedAction(action, path, self._line.number, self._line.offset)
            )

    # Permissions and prohibitions: section-2.4

    def _permission(self, name: str, value: str) -> None:
        record = self._in_record()
        if record is None:
            return
        if self._purposes is None:
            self._purposes = tuple(self._open_purposes)
        spec, qualifiers = _words(value)
        unusable = _SYNTAX if self._line.is_odd else ""
        words = value.split()  # at white space of any kind
        if len(words) > 1 and words[0] != spec:
            spec, unusable = words[0], _SYNTAX
            self._report(
                "acap.syntax",
                "White space other than a space or tab follows `{}`, so the permission "
                "grants nothing.",
                spec,
            )
        if local := _LOCAL.fullmatch(name):
            usages, broken = self._local(local[1])
            unusable = unusable or broken
            if qualifiers and not unusable:
                unusable = _LOCAL_USAGES
                message = (
                    "`{}`: a usage of the file's own takes no qualifiers, so the permission "
                    "grants nothing."
                )
                self._report("acap.qualifier", message, qualifiers)
        elif name in USAGES:
            usages = (self._usage(name, qualifiers),)
        else:
            self._report(
                "acap.unknown-usage",
                "`{}` is not a usage, so the permission grants nothing.",
                name,
                in_name=True,
            )
            return
        if self._line.is_overlong:
            unusable = _LIMIT
            self._report(
                "acap.limit",
                f"Only its first {MAX_LINE} octets are read, so the permission grants nothing.",
            )
        if record.is_unreadable or self._is_purpose_unreadable:
            return  # the permission may be meant for other crawlers or purposes
        patterns, broken = self._patterns(spec, "the permission grants nothing")
        self._add(
            record,
            Verdict.ALLOW,
            usages,
            patterns or (),
            unusable or broken,
            local[1] if local else "",
        )

    def _local(self, name: str) -> tuple[tuple[Usage, ...], str]:
        """Return the usages that a usage defined in the file stands for.

        The second result is "" or, if the definition is missing or invalid, the section by which a
        permission of this usage grants nothing.
        """
        broken = self._definitions.broken.get(f"usage {name}", "")
        if name not in self._definitions.usages:
            broken = _LOCAL_USAGES
            self._report(
                "acap.undefined",
                "`{}` is not defined, so the permission grants nothing.",
                f"({name})",
                in_name=True,
            )
        return self._definitions.usages.get(name, ()), broken

    def _prohibition(self, name: str, value: str) -> None:
        record = self._in_record()
        if record is None:
            return
        if self._purposes is None:
            self._purposes = tuple(self._open_purposes)
        # Split at white space of any kind. Otherwise less would be prohibited than is meant.
        spec, *qualifiers = value.split(maxsplit=1) or [""]
        usages: tuple[Usage, ...] = (Usage(name),) if name in USAGES else ()
        if qualifiers:
            self._report(
                "acap.prohibition",
                "`{}`: a prohibition takes no qualifiers. It is read without them.",
                qualifiers[0],
            )
        if local := _LOCAL.fullmatch(name):
            usages = self._constituents_of(local[1])
            if usages:
                message = (
                    "`{}` is not a usage of ACAP. The usages that it stands for are "
                    "prohibited, without qualifiers."
                )
                self._report("acap.prohibition", message, name, in_name=True)
        if not usages:
            self._report(
                "acap.unknown-usage",
                "`{}` is not a usage, so the prohibition has no effect. Write one such "
                "as `present`.",
                name,
                in_name=True,
            )
            return
        patterns, _ = self._patterns(spec, "the prohibition applies to the whole site")
        self._add(record, Verdict.DENY, usages, (WHOLE_SITE,) if patterns is None else patterns)

    def _constituents_of(self, name: str) -> tuple[Usage, ...]:
        """Return the usages that a usage defined in the file stands for, without qualifiers.

        All definitions are read before the first call.
        """
        if name not in self._constituents:
            self._constituents[name] = _without_qualifiers(self._usages_behind(name))
        return self._constituents[name]

    def _patterns(self, spec: str, consequence: str) -> tuple[Sequence[str] | None, str]:
        """Return the patterns of a resource specification (section-2.4.3).

        None means that the specification cannot be read, or names an unknown set. The second result
        is the section by which permissions of these resources grant nothing, or "". `consequence`
        is the part of a finding that describes the effect.
        """
        if not spec:
            self._report(
                "acap.empty",
                "The field names no resource, so it has no effect. Write a path, such as `/`.",
            )
            return (), ""
        scheme = next((scheme for scheme in SCHEMES if spec.lower().startswith(scheme)), "")
        if not scheme and not _NO_PATH.match(spec):
            return (path_pattern(spec),), ""
        if not scheme:
            path = _intended_path(spec)
            effect = (
                consequence
                if path == WHOLE_SITE
                else "it prohibits its path on any host, and permits nothing"
            )
            self._report("acap.syntax", f"`{{}}` is not a path, so {effect}.", spec)
            return (None, "") if path == WHOLE_SITE else ((path,), _SYNTAX)
        is_set, name = (
            spec[len(scheme) :].lower().startswith(_SET),
            spec[len(scheme) + len(_SET) :].lower(),
        )
        patterns = self._definitions.sets.get(name) if is_set else None
        if not patterns:
            self._report("acap.unknown-set", f"`{{}}` is not defined, so {consequence}.", spec)
        elif scheme != SCHEMES[0]:
            self._report(
                "acap.syntax",
                "`{}` is the form of versions before 1.0. It can prohibit, and permits "
                "nothing. Write `the-acap:`.",
                spec,
            )
            return patterns, _SET_REFERENCES
        return patterns or None, self._definitions.broken.get(f"set {name}", "")

    def _add(
        self,
        record: CrawlerRecord,
        verdict: Verdict,
        usages: tuple[Usage, ...],
        patterns: Sequence[str],
        unusable: str = "",
        local: str = "",
    ) -> None:
        """Add a field for each usage and pattern.

        `unusable` is the section by which permissions grant nothing, or "". `local` is the usage
        that the line names if the file defines it, or "".
        """
        if not usages:
            return
        if len(patterns) * len(usages) > self._fields_left:
            message = (
                "There are too many fields. From here on, permissions and prohibitions "
                "refuse their usages everywhere."
            )
            self._report("acap.limit", message)
            patterns, unusable = (WHOLE_SITE,), _LIMIT if verdict is Verdict.ALLOW else ""
            usages = tuple(
                usage
                for usage in self._constituents_of(local) or usages
                if (usage.usage, verdict) not in self._past_limit
            )
            self._past_limit |= {(usage.usage, verdict) for usage in usages}
        else:
            self._fields_left -= len(patterns) * len(usages)
        # A prohibition with an unreadable purpose applies to requests with and without purposes.
        all_purposes = [(), ("*",)] if self._is_purpose_unreadable else [self._purposes or ()]
        record.fields += [
            Field(
                usage.usage,
                verdict,
                pattern,
                usage.qualifiers,
                unusable or usage.unusable,
                purposes,
                self._url,
                self._line.number,
                self._line.offset,
            )
            for pattern in patterns
            for usage in usages
            for purposes in all_purposes
        ]


def _without_qualifiers(usages: Iterable[Usage]) -> tuple[Usage, ...]:
    return tuple(Usage(usage) for usage in dict.fromkeys(usage.usage for usage in usages))


def _intended_path(text: str) -> str:
    """Return the pattern that was probably meant by an invalid path.

    For a URL, such as `https://example.com/a`, the pattern is its path `/a`. WHOLE_SITE means that
    the intention is unknown.
    """
    host = _HOST.match(text)
    return path_pattern(text[host.end() :] or "/") if host else WHOLE_SITE


def _is_readable(text: str, pattern: re.Pattern[str]) -> bool:
    """Return True if a text matches the pattern and has only visible characters and spaces."""
    return bool(pattern.fullmatch(text)) and text.replace("\t", " ").isprintable()


def _words(value: str) -> tuple[str, str]:
    """Return the first word of a value, and the rest. Only spaces and tabs separate words."""
    first, *rest = _SPACE.split(value, maxsplit=1)
    return first, "".join(rest)
