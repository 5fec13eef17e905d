"""The rules of RSL."""

from comity.policies.answers.rule import ALLOWS, ERROR, FINDING, INFO, REFUSES, Rule

RULES = {
    "rsl.permits": Rule(ALLOWS, "RSL 1.0", "a license permits it", names_licence=True),
    "rsl.prohibits": Rule(REFUSES, "RSL 1.0", "a license prohibits it"),
    "rsl.unlicensed": Rule(REFUSES, "RSL 1.0", "no license that can be used permits it"),
    "rsl.syntax": Rule(
        FINDING, "RSL 1.0", "the document cannot be read: nothing is licensed by it", severity=ERROR
    ),
    "rsl.value": Rule(
        FINDING, "RSL 1.0", "an element or value that is none of RSL's", severity=ERROR
    ),
    "rsl.limit": Rule(FINDING, "RSL 1.0", "there is more than is read", severity=ERROR),
    # Found for authors alone
    "rsl.contradiction": Rule(
        FINDING,
        "RSL 1.0 section-3.4",
        "a license permits and prohibits the same usage: it is not licensed",
    ),
    "rsl.namespace": Rule(
        FINDING, "RSL 1.0 section-3", "an element of another namespace has the name of one of RSL"
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
        FINDING, "RSL 1.0 section-4", "a reference to a document that other readers may pass over"
    ),
    "rsl.repeated": Rule(
        FINDING, "RSL 1.0 section-3.3", "two contents have the same url: both hold together"
    ),
    "rsl.server": Rule(
        FINDING,
        "RSL 1.0 section-3.3",
        "a license has to be asked for at a server: without that, nothing is licensed",
        severity=INFO,
    ),
    "rsl.usage": Rule(FINDING, "RSL 1.0 section-3.4.1.1", "a misspelled usage"),
}
