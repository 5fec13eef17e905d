"""The rules of ACAP."""

from comity.policies.answers.rule import ALLOWS, ERROR, FINDING, INFO, REFUSES, SILENT, Rule

RULES = {
    "acap.allow": Rule(ALLOWS, "ACAP 1.0 section-2.4.1", "a permission decides"),
    "acap.disallow": Rule(REFUSES, "ACAP 1.0 section-2.4.2", "a prohibition decides"),
    "acap.unusable": Rule(
        REFUSES,
        "ACAP 1.0 section-2.4.1",
        "a permission decides that cannot be honoured as stated: it grants nothing; the "
        "reason cites the section",
    ),
    "acap.ignore-conventional": Rule(
        SILENT,
        "ACAP 1.0 section-2.9.1",
        "the file says that its conventional records are to be ignored",
    ),
    "acap.reference-unreachable": Rule(
        REFUSES,
        "ACAP 1.0 section-2.3.2",
        "a referenced file cannot be had: nobody knows what it refuses",
        is_unreachable=True,
    ),
    "acap.expired": Rule(
        REFUSES, "ACAP 1.0 section-2.5.3.1", "the time limit of the permission is over"
    ),
    "acap.no-arrangement": Rule(
        REFUSES,
        "ACAP 1.0 section-2.5.3.2",
        "the permission asks for what has not been arranged with the site",
    ),
    "acap.resource": Rule(
        REFUSES,
        "ACAP 1.0 section-2.5.3.2",
        "what is to be used or included is not there",
        is_missing_resource=True,
    ),
    "acap.request": Rule(
        FINDING, "ACAP 1.0 section-2.6", "the site asks for an action", severity=INFO
    ),
    "acap.action": Rule(
        FINDING,
        "ACAP 1.0 section-2.6",
        "an action request names no single path, or stands in a sub-record",
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
        "`*` beside a crawler's name: the record is addressed to any",
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
        "ACAP-ignore-conventional-records has no effect where it stands",
        severity=ERROR,
    ),
    "acap.late": Rule(
        FINDING,
        "ACAP 1.0 section-2.7",
        "a definition stands after the first record: permissions by it grant nothing",
        severity=ERROR,
    ),
    "acap.limit": Rule(
        FINDING,
        "ACAP 1.0 section-4",
        "there is more than is read: what is left out grants nothing",
        severity=ERROR,
    ),
    "acap.outside-record": Rule(
        FINDING,
        "ACAP 1.0 section-2.3",
        "a field stands in no ACAP record: it has no effect",
        severity=ERROR,
    ),
    "acap.prohibition": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.2",
        "a prohibition has qualifiers or a usage of the file's own: it prohibits all the same",
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
        "a permissions reference where it has no effect, or not alone in its record",
    ),
    "acap.syntax": Rule(
        FINDING,
        "ACAP 1.0 section-3",
        "a field is not written as the grammar has it",
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
        "a character that cannot be seen stands in a path or name",
        severity=ERROR,
    ),
    "acap.no-resource": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.3",
        "a qualifier stands where the resource belongs, and is taken for a path",
        severity=ERROR,
    ),
    "acap.overruled": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.5",
        "a permission of what its record prohibits too: the prohibition holds",
    ),
    "acap.quotes": Rule(
        FINDING,
        "ACAP 1.0 section-3",
        "quotes around a path are taken for a part of it, and a name cannot be read with them",
        severity=ERROR,
    ),
    "acap.regex": Rule(
        FINDING, "ACAP 1.0 section-2.8", "a sign of regular expressions has no meaning in a pattern"
    ),
    "acap.repeated": Rule(
        FINDING,
        "ACAP 1.0 section-2.4",
        "a field says what another of its record says",
        severity=INFO,
    ),
    "acap.second-path": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.3",
        "a field has one resource: a second path is none of its resources",
        severity=ERROR,
    ),
    "acap.several-crawlers": Rule(
        FINDING,
        "ACAP 1.0 section-2.3.1",
        "several names in a crawler field are one name, which means nobody",
        severity=ERROR,
    ),
    "acap.frees-others": Rule(
        FINDING,
        "ACAP 1.0 section-2.9.1",
        "ACAP-ignore-conventional-records frees all crawlers that the ACAP records do not name",
    ),
    "acap.unused": Rule(
        FINDING, "ACAP 1.0 section-2.7", "a usage or set is defined, and no field uses it"
    ),
}
