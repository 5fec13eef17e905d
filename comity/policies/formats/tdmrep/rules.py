"""The rules of TDMRep."""

from comity.policies.answers.rule import ALLOWS, ERROR, FINDING, INFO, REFUSES, Rule

RULES = {
    "tdmrep.reserved": Rule(
        REFUSES, "W3C TDMRep section-4", "the rights of text and data mining are reserved"
    ),
    "tdmrep.not-reserved": Rule(
        ALLOWS, "W3C TDMRep section-4", "the rights of text and data mining are not reserved"
    ),
    "tdmrep.unreachable": Rule(
        REFUSES,
        "comity, docs/tdmrep.md",
        "tdmrep.json cannot be fetched: it may reserve the rights",
        is_unreachable=True,
    ),
    "tdmrep.syntax": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "tdmrep.json does not follow the specification",
        severity=ERROR,
    ),
    "tdmrep.strict": Rule(
        FINDING,
        "RFC 8259 section-2",
        "strict readers refuse the JSON: it has comments, or too many or too few commas",
        severity=ERROR,
    ),
    "tdmrep.value": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "a value is invalid: it counts as not set",
        severity=ERROR,
    ),
    "tdmrep.limit": Rule(
        FINDING, "W3C TDMRep section-4", "the file exceeds a limit", severity=ERROR
    ),
    # Found for authors alone
    "tdmrep.attribute": Rule(
        FINDING,
        "W3C TDMRep sec-tdm-html-meta",
        "an element has `property` or `http-equiv` instead of `name`",
    ),
    "tdmrep.duplicate": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "a rule repeats an earlier one for the same resources",
        severity=INFO,
    ),
    "tdmrep.member": Rule(
        FINDING, "W3C TDMRep section-4", "an unknown member probably stands for a known one"
    ),
    "tdmrep.overruled": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "a rule never decides: an earlier one matches all of its resources",
    ),
    "tdmrep.pattern": Rule(FINDING, "W3C TDMRep section-4", "a location probably matches nothing"),
    "tdmrep.policy": Rule(
        FINDING, "W3C TDMRep section-4", "the address of a policy is not absolute", severity=INFO
    ),
    "tdmrep.policy-alone": Rule(
        FINDING, "W3C TDMRep section-4", "a page has a policy and no reservation"
    ),
    "tdmrep.text": Rule(
        FINDING, "W3C TDMRep section-4", "the reservation is a text instead of a number"
    ),
    "tdmrep.unread": Rule(
        FINDING, "W3C TDMRep section-4", "no known reader reads a member", severity=INFO
    ),
    "tdmrep.unused-policy": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "a policy has no effect: the right is not reserved",
        severity=INFO,
    ),
}
