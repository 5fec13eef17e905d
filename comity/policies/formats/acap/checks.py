"""Checks of the ACAP records of a robots.txt beyond their syntax.

They find fields that match nothing or have no effect, and names that no field uses. No crawler runs
these checks. The time is linear in the octets of the file.
"""

from __future__ import annotations

from comity.policies.answers.decision import Verdict
from comity.policies.formats.acap.grammar import (
    DEFINITIONS,
    SCHEMES,
    Acap,
    Field,
    FieldLine,
    field_lines,
)
from comity.policies.formats.acap.usages import QUALIFIED
from comity.policies.formats.authoring import Remarks
from comity.policies.syntax.path_patterns import foldings
from comity.policies.syntax.records import RecordKind
from comity.policies.syntax.suspicions import INVISIBLE, several_names, suspicions, unquoted

_OF_SUSPICION = {
    "quotes": "acap.quotes",
    "invisible": "acap.invisible",
    "dollar": "acap.dollar",
    "regex": "acap.regex",
}


def check(acap: Acap, text: bytes, remarks: Remarks) -> None:
    """Report probable mistakes in a file. `text` is the text that `acap` was read from."""
    used: set[str] = set()  # the names that fields use, as "usage NAME" or "set NAME"
    defined: dict[str, tuple[FieldLine, bytes]] = {}
    for line in field_lines(text):
        value = (
            line.octets[line.value_at :].partition(b"#")[0].strip(b" \t\r\n")
            if line.value_at
            else line.value.encode()
        )
        if line.kind is RecordKind.ACAP_CRAWLER:
            _check_crawler(line, line.value.encode(), remarks)
        elif line.name in DEFINITIONS:
            words = value.lower().split()
            kind = "set" if line.name == "resource-set" else "usage"
            if words:
                defined.setdefault(
                    f"{kind} {words[0].decode('utf-8', 'replace')}", (line, words[0])
                )
            used |= {
                f"usage {word[1:-1].decode('utf-8', 'replace')}"
                for word in words[1:]
                if word[:1] == b"("
            }
        elif line.name.partition("-")[0] in ("allow", "disallow") and not line.is_overlong:
            usage = line.name.partition("-")[2]
            used |= {f"usage {usage[1:-1]}"} if usage[:1] == "(" else set()
            used |= {f"set {name}"} if (name := _set_name(value)) else set()
            _check_resource(line, value, remarks, permits=line.name.startswith("allow"))
    for key, (line, word) in defined.items():
        if key not in used:
            column = line.octets.lower().find(word, line.value_at) + 1
            remarks.report(
                "acap.unused",
                "No field uses `{}`. Delete the definition.",
                word,
                line=line.number,
                column=column,
                length=len(word),
            )
    _check_overruled(acap, remarks)


def check_ignoring(acap: Acap, remarks: Remarks) -> None:
    """Report the line that disables conventional records, if no ACAP record is for all crawlers.

    Other crawlers may then fetch everything. Call this only if conventional records of the file
    refuse something.
    """
    is_for_all = any(
        record.has_content and (record.is_unreadable or "*" in record.crawlers)
        for record in acap.records
    )
    if acap.ignores_conventional and not is_for_all:
        message = (
            "The User-agent records have no effect, and the ACAP records are for named "
            "crawlers only, so all other crawlers may fetch everything. Add a record for "
            "`ACAP-crawler: *` with your prohibitions, or delete this line."
        )
        remarks.report("acap.frees-others", message, line=acap.ignores_conventional)


def _set_name(value: bytes) -> str:
    spec = (value.split() or [b""])[0].decode("utf-8", "replace").lower()
    scheme = next((scheme for scheme in SCHEMES if spec.startswith(scheme)), "")
    return spec.rpartition(":")[2] if scheme else ""


def _check_crawler(line: FieldLine, name: bytes, remarks: Remarks) -> None:
    column = line.octets.find(name) + 1 if name else 0
    if several_names(name):
        message = (
            "ACAP reads `{}` as one name, which means no crawler. Write an ACAP-crawler "
            "line for each name."
        )
        remarks.report(
            "acap.several-crawlers",
            message,
            name,
            line=line.number,
            column=column,
            length=len(name),
        )
    elif unquoted(name) != name:
        message = "Quotes make the name unreadable. Write `{}`."
        remarks.report(
            "acap.quotes",
            message,
            unquoted(name),
            line=line.number,
            column=column,
            length=len(name),
        )
    elif match := INVISIBLE.search(name):
        message = "An invisible character makes the name unreadable. Write `{}`."
        column += match.start()
        remarks.report(
            "acap.invisible",
            message,
            INVISIBLE.sub(b"", name),
            line=line.number,
            column=column,
            length=len(match[0]),
        )


def _check_resource(line: FieldLine, value: bytes, remarks: Remarks, *, permits: bool) -> None:
    words = value.split(maxsplit=1)
    if not words:
        return
    column = line.octets.find(words[0], line.value_at) + 1
    if (
        words[0].partition(b"=")[0].decode("utf-8", "replace").lower() in QUALIFIED
        and b"=" in words[0]
    ):
        message = (
            "`{}` is in place of the resource, so it is read as a path. Write `/ {}` for "
            "the whole site."
        )
        length = len(words[0])
        remarks.report(
            "acap.no-resource",
            message,
            words[0],
            words[0],
            line=line.number,
            column=column,
            length=length,
        )
        return
    if len(words) > 1 and words[1][:1] in (b"/", b"*"):
        consequence = "the permission grants nothing" if permits else "it is not prohibited"
        message = (
            f"`{{}}` is a second path: {consequence}. Write a field for each, or an "
            "ACAP-resource-set."
        )
        second = line.octets.find(words[1], column) + 1
        remarks.report(
            "acap.second-path",
            message,
            words[1],
            line=line.number,
            column=second,
            length=len(words[1]),
        )
    for kind, message, quoted, start, length in suspicions(words[0]):
        if kind in _OF_SUSPICION:
            remarks.report(
                _OF_SUSPICION[kind],
                message,
                *quoted,
                line=line.number,
                column=column + start,
                length=length,
            )


def _check_overruled(acap: Acap, remarks: Remarks) -> None:
    """Report fields that repeat or contradict another field of their record or sub-record."""
    reported: set[int] = set()
    folded = {
        pattern: foldings(pattern)
        for pattern in {field.pattern for record in acap.records for field in record.fields}
    }

    def subject(field: Field) -> tuple[object, ...]:
        return field.usage, folded[field.pattern], field.purposes

    def sentence(field: Field) -> tuple[object, ...]:
        return *subject(field), field.verdict, field.pattern, field.qualifiers, field.unusable

    for record in acap.records:
        firsts: dict[tuple[object, ...], Field] = {}
        prohibited: dict[tuple[object, ...], Field] = {}
        for field in record.fields:
            if field.verdict is Verdict.DENY:
                prohibited.setdefault(subject(field), field)
        new = {
            field.line
            for field in record.fields
            if firsts.setdefault(sentence(field), field) is field
        }
        for field in record.fields:
            if field.line in reported:
                continue
            over = prohibited.get(subject(field))
            if field.verdict is Verdict.ALLOW and over:
                reported.add(field.line)
                message = (
                    f"This permission has no effect: line {over.line} prohibits the same usage."
                )
                remarks.report("acap.overruled", message, line=field.line)
            elif field.line not in new:
                reported.add(field.line)
                message = f"This field repeats line {firsts[sentence(field)].line}. Delete it."
                remarks.report("acap.repeated", message, line=field.line)
