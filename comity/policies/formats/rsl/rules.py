"""The rules of RSL."""

from comity.policies.answers.rule import ALLOWS, ERROR, FINDING, INFO, REFUSES, Rule

RULES = {
    "rsl.permits": Rule(ALLOWS, "RSL 1.0", "a license permits it", names_licence=True),
    "rsl.prohibits": Rule(REFUSES, "RSL 1.0", "a license prohibits it"),
    "rsl.unlicensed": Rule(REFUSES, "RSL 1.0", "no usable license permits it"),
    "rsl.syntax": Rule(
        FINDING, "RSL 1.0", "the document cannot be read: it licenses nothing", severity=ERROR
    ),
    "rsl.value": Rule(FINDING, "RSL 1.0", "an element or value is not part of RSL", severity=ERROR),
    "rsl.limit": Rule(FINDING, "RSL 1.0", "the document exceeds a limit", severity=ERROR),
    # Found for authors alone
    "rsl.contradiction": Rule(
        FINDING,
        "RSL 1.0 section-3.4",
        "a license permits and prohibits the same usage: it is not licensed",
    ),
    "rsl.namespace": Rule(
        FINDING,
        "RSL 1.0 section-3",
        "an element of another namespace has the name of an RSL element",
    ),
    "rsl.no-permits": Rule(FINDING, "RSL 1.0 section-3.4", "a license permits no usage"),
    "rsl.other-host": Rule(
        FINDING,
        "RSL 1.0 section-3.3",
        "a content is at another host than the others",
        severity=INFO,
    ),
    "rsl.pattern": Rule(
        FINDING, "RSL 1.0 section-3.3", "the url of a content probably matches nothing"
    ),
    "rsl.reference": Rule(
        FINDING, "RSL 1.0 section-4", "other readers may ignore a reference to a document"
    ),
    "rsl.repeated": Rule(
        FINDING, "RSL 1.0 section-3.3", "two contents have the same url: both apply"
    ),
    "rsl.server": Rule(
        FINDING,
        "RSL 1.0 section-3.3",
        "a license must be requested from a server: without it nothing is licensed",
        severity=INFO,
    ),
    "rsl.usage": Rule(FINDING, "RSL 1.0 section-3.4.1.1", "a misspelled usage"),
}
