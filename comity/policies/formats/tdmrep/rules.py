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
        FINDING, "W3C TDMRep section-4", "tdmrep.json is not what it should be", severity=ERROR
    ),
    "tdmrep.strict": Rule(
        FINDING,
        "RFC 8259 section-2",
        "JSON that strict readers refuse: comments, or commas too many or too few",
        severity=ERROR,
    ),
    "tdmrep.value": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "a value that means nothing: it counts as not set",
        severity=ERROR,
    ),
    "tdmrep.limit": Rule(
        FINDING, "W3C TDMRep section-4", "there is more than is read", severity=ERROR
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
        "a rule says what an earlier one has said of the same",
        severity=INFO,
    ),
    "tdmrep.member": Rule(
        FINDING, "W3C TDMRep section-4", "a member that no rule has, and that is written for one"
    ),
    "tdmrep.overruled": Rule(
        FINDING,
        "W3C TDMRep section-4",
        "a rule never decides, as an earlier one matches all that it does",
    ),
    "tdmrep.pattern": Rule(FINDING, "W3C TDMRep section-4", "a location probably matches nothing"),
    "tdmrep.policy": Rule(
        FINDING, "W3C TDMRep section-4", "the address of a policy is not absolute", severity=INFO
    ),
    "tdmrep.policy-alone": Rule(
        FINDING, "W3C TDMRep section-4", "a page has a policy and no reservation"
    ),
    "tdmrep.text": Rule(
        FINDING, "W3C TDMRep section-4", "the reservation is a text in place of a number"
    ),
    "tdmrep.unread": Rule(
        FINDING, "W3C TDMRep section-4", "a member that no known reader reads", severity=INFO
    ),
    "tdmrep.unused-policy": Rule(
        FINDING, "W3C TDMRep section-4", "the policy of a right that is not reserved", severity=INFO
    ),
}
