"""The rules of ACAP."""

from comity.policies.answers.rule import ALLOWS, ASKS, ERROR, FINDING, INFO, REFUSES, SILENT, Rule

RULES = {
    "acap.allow": Rule(ALLOWS, "ACAP 1.0 section-2.4.1", "a permission decides"),
    "acap.disallow": Rule(REFUSES, "ACAP 1.0 section-2.4.2", "a prohibition decides"),
    "acap.unusable": Rule(
        REFUSES,
        "ACAP 1.0 section-2.4.1",
        "the deciding permission cannot be honoured as stated, so it grants nothing; the "
        "reason cites the section",
    ),
    "acap.ignore-conventional": Rule(
        SILENT,
        "ACAP 1.0 section-2.9.1",
        "the file asks to ignore its conventional records",
    ),
    "acap.reference-unreachable": Rule(
        REFUSES,
        "ACAP 1.0 section-2.3.2",
        "a referenced file cannot be fetched: its refusals are unknown",
        is_unreachable=True,
    ),
    "acap.expired": Rule(
        REFUSES, "ACAP 1.0 section-2.5.3.1", "the time limit of the permission is over"
    ),
    "acap.no-arrangement": Rule(
        REFUSES,
        "ACAP 1.0 section-2.5.3.2",
        "the permission requires something that is not arranged with the site",
    ),
    "acap.resource": Rule(
        REFUSES,
        "ACAP 1.0 section-2.5.3.2",
        "a resource that must be used or included does not exist",
        is_missing_resource=True,
    ),
    "acap.request": Rule(ASKS, "ACAP 1.0 section-2.6", "the site asks for an action"),
    "acap.action": Rule(
        FINDING,
        "ACAP 1.0 section-2.6",
        "an action request names no single path, or is in a sub-record",
        severity=ERROR,
    ),
    "acap.conventional": Rule(
        FINDING,
        "ACAP 1.0 section-2.9.2",
        "a conventional field within an ACAP record has no effect",
        severity=ERROR,
    ),
    "acap.crawlers": Rule(
        FINDING,
        "ACAP 1.0 section-2.3.1",
        "`*` is beside a crawler's name: the record is for any crawler",
    ),
    "acap.duplicate": Rule(
        FINDING,
        "ACAP 1.0 section-3",
        "a name is defined twice: permissions by it grant nothing",
        severity=ERROR,
    ),
    "acap.empty": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.3",
        "a permission or prohibition names no resource: it states nothing",
    ),
    "acap.fused": Rule(
        FINDING, "ACAP 1.0 section-2.3", "crawler lines with no field between them begin one record"
    ),
    "acap.ignored": Rule(
        FINDING,
        "ACAP 1.0 section-2.9.1",
        "ACAP-ignore-conventional-records has no effect in this place",
        severity=ERROR,
    ),
    "acap.late": Rule(
        FINDING,
        "ACAP 1.0 section-2.7",
        "a definition is after the first record: permissions by it grant nothing",
        severity=ERROR,
    ),
    "acap.limit": Rule(
        FINDING,
        "ACAP 1.0 section-4",
        "the file exceeds a limit: the omitted part grants nothing",
        severity=ERROR,
    ),
    "acap.outside-record": Rule(
        FINDING,
        "ACAP 1.0 section-2.3",
        "a field is outside of all ACAP records: it has no effect",
        severity=ERROR,
    ),
    "acap.prohibition": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.2",
        "a prohibition has qualifiers, or a usage of the file's own: it prohibits anyway",
        severity=ERROR,
    ),
    "acap.qualifier": Rule(
        FINDING,
        "ACAP 1.0 section-2.5",
        "a qualifier cannot be honoured: the permission grants nothing",
        severity=ERROR,
    ),
    "acap.reference": Rule(
        FINDING,
        "ACAP 1.0 section-2.3.2",
        "a permissions reference has no effect, or is not alone in its record",
    ),
    "acap.syntax": Rule(
        FINDING,
        "ACAP 1.0 section-3",
        "a field does not follow the grammar",
        severity=ERROR,
    ),
    "acap.undefined": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.1.3",
        "a usage of the file's own is not defined: the permission grants nothing",
        severity=ERROR,
    ),
    "acap.unknown-field": Rule(
        FINDING, "ACAP 1.0 section-3", "ACAP 1.0 has no such field", severity=ERROR
    ),
    "acap.unknown-set": Rule(
        FINDING, "ACAP 1.0 section-2.4.4", "a resource set is not defined", severity=ERROR
    ),
    "acap.unknown-usage": Rule(
        FINDING,
        "ACAP 1.0 section-2.5",
        "ACAP 1.0 has no such usage: a permission of it grants nothing",
        severity=ERROR,
    ),
    "acap.dollar": Rule(
        FINDING,
        "ACAP 1.0 section-2.8",
        "a `$` that is not the last character of a pattern is an ordinary character",
    ),
    "acap.invisible": Rule(
        FINDING,
        "ACAP 1.0 section-3",
        "an invisible character is in a path or name",
        severity=ERROR,
    ),
    "acap.no-resource": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.3",
        "a qualifier is in place of the resource, and counts as a path",
        severity=ERROR,
    ),
    "acap.overruled": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.5",
        "a prohibition of the same record overrides the permission",
    ),
    "acap.quotes": Rule(
        FINDING,
        "ACAP 1.0 section-3",
        "quotes around a path count as a part of it, and a name with quotes cannot be read",
        severity=ERROR,
    ),
    "acap.regex": Rule(
        FINDING, "ACAP 1.0 section-2.8", "a sign of regular expressions has no meaning in a pattern"
    ),
    "acap.repeated": Rule(
        FINDING,
        "ACAP 1.0 section-2.4",
        "a field repeats another one of its record",
        severity=INFO,
    ),
    "acap.second-path": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.3",
        "a field has one resource: a second path has no effect",
        severity=ERROR,
    ),
    "acap.several-crawlers": Rule(
        FINDING,
        "ACAP 1.0 section-2.3.1",
        "several names in a crawler field count as one name, which means no crawler",
        severity=ERROR,
    ),
    "acap.frees-others": Rule(
        FINDING,
        "ACAP 1.0 section-2.9.1",
        "ACAP-ignore-conventional-records frees all crawlers that the ACAP records do not name",
    ),
    "acap.unused": Rule(FINDING, "ACAP 1.0 section-2.7", "no field uses a defined usage or set"),
}
