"""The rules of ACAP."""

from comity.policies.answers.rule import ALLOWS, FINDING, REFUSES, SILENT, Rule

RULES = {
    "acap.allow": Rule(ALLOWS, "ACAP 1.0 section-2.4.1", "a permission decides"),
    "acap.disallow": Rule(REFUSES, "ACAP 1.0 section-2.4.2", "a prohibition decides"),
    "acap.unusable": Rule(
        REFUSES,
        "ACAP 1.0 section-2.4.1",
        "a permission decides that cannot be honoured as stated: it grants nothing; the reason cites the section",
    ),
    "acap.ignore-conventional": Rule(
        SILENT, "ACAP 1.0 section-2.9.1", "the file says that its conventional records are to be ignored"
    ),
    "acap.reference-unreachable": Rule(
        REFUSES,
        "ACAP 1.0 section-2.3.2",
        "a referenced file cannot be had: nobody knows what it refuses",
        is_unreachable=True,
    ),
    "acap.expired": Rule(REFUSES, "ACAP 1.0 section-2.5.3.1", "the time limit of the permission is over"),
    "acap.no-arrangement": Rule(
        REFUSES, "ACAP 1.0 section-2.5.3.2", "the permission asks for what has not been arranged with the site"
    ),
    "acap.resource": Rule(REFUSES, "ACAP 1.0 section-2.5.3.2", "what is to be used or included is not there"),
    "acap.request": Rule(FINDING, "ACAP 1.0 section-2.6", "the site asks for an action"),
    "acap.action": Rule(FINDING, "ACAP 1.0 section-2.6", "an action request names no single path, or stands in a sub-record"),
    "acap.conventional": Rule(FINDING, "ACAP 1.0 section-2.9.2", "a conventional field within an ACAP record has no effect"),
    "acap.crawlers": Rule(FINDING, "ACAP 1.0 section-2.3.1", "`*` beside a crawler's name: the record is addressed to any"),
    "acap.duplicate": Rule(FINDING, "ACAP 1.0 section-3", "a name is defined twice: permissions by it grant nothing"),
    "acap.empty": Rule(FINDING, "ACAP 1.0 section-2.4.3", "a permission or prohibition names no resource: it states nothing"),
    "acap.fused": Rule(FINDING, "ACAP 1.0 section-2.3", "crawler lines with no field between them begin one record"),
    "acap.ignored": Rule(FINDING, "ACAP 1.0 section-2.9.1", "ACAP-ignore-conventional-records has no effect where it stands"),
    "acap.late": Rule(
        FINDING, "ACAP 1.0 section-2.7", "a definition stands after the first record: permissions by it grant nothing"
    ),
    "acap.limit": Rule(FINDING, "ACAP 1.0 section-4", "there is more than is read: what is left out grants nothing"),
    "acap.outside-record": Rule(FINDING, "ACAP 1.0 section-2.3", "a field stands in no ACAP record: it has no effect"),
    "acap.prohibition": Rule(
        FINDING, "ACAP 1.0 section-2.4.2", "a prohibition has qualifiers or a usage of the file's own: it prohibits all the same"
    ),
    "acap.qualifier": Rule(FINDING, "ACAP 1.0 section-2.5", "a qualifier cannot be honoured: the permission grants nothing"),
    "acap.reference": Rule(
        FINDING, "ACAP 1.0 section-2.3.2", "a permissions reference where it has no effect, or not alone in its record"
    ),
    "acap.syntax": Rule(FINDING, "ACAP 1.0 section-3", "a field is not written as the grammar has it"),
    "acap.undefined": Rule(
        FINDING, "ACAP 1.0 section-2.4.1.3", "a usage of the file's own is not defined: the permission grants nothing"
    ),
    "acap.unknown-field": Rule(FINDING, "ACAP 1.0 section-3", "ACAP 1.0 has no such field"),
    "acap.unknown-set": Rule(FINDING, "ACAP 1.0 section-2.4.4", "a resource set is not defined"),
    "acap.unknown-usage": Rule(FINDING, "ACAP 1.0 section-2.5", "ACAP 1.0 has no such usage: a permission of it grants nothing"),
}
