"""The rules of TDMRep."""

from comity.policies.answers.rule import ALLOWS, FINDING, REFUSES, Rule

RULES = {
    "tdmrep.reserved": Rule(REFUSES, "W3C TDMRep section-4", "the rights of text and data mining are reserved"),
    "tdmrep.not-reserved": Rule(ALLOWS, "W3C TDMRep section-4", "the rights of text and data mining are not reserved"),
    "tdmrep.syntax": Rule(FINDING, "W3C TDMRep section-4", "tdmrep.json is not what it should be"),
    "tdmrep.value": Rule(FINDING, "W3C TDMRep section-4", "a value that means nothing: it counts as not set"),
    "tdmrep.limit": Rule(FINDING, "W3C TDMRep section-4", "there is more than is read"),
}
