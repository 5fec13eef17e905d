"""The rules of RSL."""

from comity.policies.answers.rule import ALLOWS, FINDING, REFUSES, Rule

RULES = {
    "rsl.permits": Rule(ALLOWS, "RSL 1.0", "a license permits it", names_licence=True),
    "rsl.prohibits": Rule(REFUSES, "RSL 1.0", "a license prohibits it"),
    "rsl.unlicensed": Rule(REFUSES, "RSL 1.0", "no license that can be used permits it"),
    "rsl.syntax": Rule(FINDING, "RSL 1.0", "the document cannot be read: nothing is licensed by it"),
    "rsl.value": Rule(FINDING, "RSL 1.0", "an element or value that is none of RSL's"),
    "rsl.limit": Rule(FINDING, "RSL 1.0", "there is more than is read"),
}
